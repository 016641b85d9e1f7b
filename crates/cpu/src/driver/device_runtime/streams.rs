//! The streams and events of one grid.
//!
//! Streams belong to the grid that created them. Work in one runs in order; a stream with work that can run is listed once,
//! and whoever runs it takes it off the list.

use std::collections::{HashMap, HashSet, VecDeque};

use super::child::Child;

/// A stream of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StreamKey {
    /// The null stream of a block.
    Null(u64),
    /// `cudaStreamPerThread` of a thread: block and thread.
    Thread(u64, u32),
    /// One that the grid created, by its handle.
    Created(u64),
    /// One launch into `cudaStreamFireAndForget`.
    Fired(u64),
}

/// An item of a stream.
enum Item {
    Child(Child),
    /// The record of an event, by the number of the record.
    Record(u64),
    /// A wait for a record.
    Wait(u64),
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// Whether the stream is listed as ready, blocked, or running.
    listed: bool,
}

/// The streams and events of a grid.
#[derive(Default)]
pub(super) struct Streams {
    queues: HashMap<StreamKey, Queue>,
    /// Streams whose next item can run, in the order in which they became so.
    ready: VecDeque<StreamKey>,
    /// Streams that wait for an event.
    blocked: Vec<StreamKey>,
    /// Handles of the streams of the grid.
    created: HashSet<u64>,
    /// The last record of each event, by its handle.
    events: HashMap<u64, Option<u64>>,
    /// Records that their streams have not reached.
    unreached: HashSet<u64>,
    /// Number of records, and of launches to fire and forget.
    serial: u64,
}

impl Streams {
    pub(super) fn create_stream(&mut self, handle: u64) {
        self.created.insert(handle);
    }

    /// Whether the stream is one of the grid.
    pub(super) fn is_stream(&self, handle: u64) -> bool {
        self.created.contains(&handle)
    }

    /// Destroys a stream; its work still runs. Returns false if the grid has no such stream.
    pub(super) fn destroy_stream(&mut self, handle: u64) -> bool {
        self.created.remove(&handle)
    }

    pub(super) fn create_event(&mut self, handle: u64) {
        self.events.insert(handle, None);
    }

    /// Destroys an event. Returns false if the grid has no such event.
    pub(super) fn destroy_event(&mut self, handle: u64) -> bool {
        self.events.remove(&handle).is_some()
    }

    /// A stream for a launch to fire and forget.
    pub(super) fn fired(&mut self) -> StreamKey {
        self.serial += 1;
        StreamKey::Fired(self.serial)
    }

    fn push(&mut self, stream: StreamKey, item: Item) {
        let queue = self.queues.entry(stream).or_default();
        queue.items.push_back(item);
        if !std::mem::replace(&mut queue.listed, true) {
            self.ready.push_back(stream);
        }
    }

    /// Adds a child to a stream.
    pub(super) fn launch(&mut self, stream: StreamKey, child: Child) {
        self.push(stream, Item::Child(child));
    }

    /// Records an event in a stream. Returns false if the grid has no such event.
    pub(super) fn record(&mut self, event: u64, stream: StreamKey) -> bool {
        let Some(last) = self.events.get_mut(&event) else {
            return false;
        };
        self.serial += 1;
        *last = Some(self.serial);
        let record = self.serial;
        self.unreached.insert(record);
        self.push(stream, Item::Record(record));
        true
    }

    /// Makes a stream wait for the last record of an event. Returns false if the grid has no such event.
    pub(super) fn wait(&mut self, stream: StreamKey, event: u64) -> bool {
        let Some(last) = self.events.get(&event) else {
            return false;
        };
        if let Some(record) = *last
            && self.unreached.contains(&record)
        {
            self.push(stream, Item::Wait(record));
        }
        true
    }

    /// Takes a child that can run, with its stream, which [`Streams::ran`] must get back.
    pub(super) fn next(&mut self) -> Option<(StreamKey, Child)> {
        while let Some(stream) = self.ready.pop_front() {
            loop {
                let queue = self.queues.get_mut(&stream)?;
                match queue.items.front() {
                    None => {
                        self.queues.remove(&stream);
                        break;
                    }
                    Some(Item::Wait(record)) if self.unreached.contains(record) => {
                        self.blocked.push(stream);
                        break;
                    }
                    Some(_) => {}
                }
                match queue.items.pop_front()? {
                    Item::Child(child) => return Some((stream, child)),
                    Item::Record(record) => {
                        self.unreached.remove(&record);
                        self.ready.extend(self.blocked.drain(..));
                    }
                    Item::Wait(_) => {}
                }
            }
        }
        None
    }

    /// Lists a stream again whose child has completed.
    pub(super) fn ran(&mut self, stream: StreamKey) {
        self.ready.push_back(stream);
    }

    /// Drops all work.
    pub(super) fn clear(&mut self) {
        *self = Streams::default();
    }
}

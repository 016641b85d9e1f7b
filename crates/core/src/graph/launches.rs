//! The launches of an instantiated graph that may still run.
//!
//! A user object of the driver (`cuUserObjectCreate`) could track them, but each launch of such a graph costs 1.25 us more
//! (docs/performance.md). So a graph notes in which streams it was launched, and events tell when those launches are done.

use std::collections::VecDeque;

use crate::context::{Context, RelaxedCapture};
use crate::deferred_drops;
use crate::error::Result;
use crate::stream::{Event, EventOptions, Stream, UniqueEvent, is_capturing};
use crate::synchronization;

/// The launches of an instantiated graph. Used under its lock.
#[derive(Default)]
pub(crate) struct Launches {
    /// [`Stream::identity`] of the last launch, if `streams` has a clone of that stream; else 0.
    last: usize,
    streams: Vec<LaunchStream>,
    /// Of launches in other streams, the oldest first: those of threads, and foreign ones, which this must not keep because
    /// their owners may refer to the graph.
    events: VecDeque<Event>,
    /// [`synchronization::begin_context_wait`] after the last launch of which neither stream nor event is known; else 0.
    unknown: u64,
}

/// A stream that its clone keeps.
#[derive(Clone)]
pub(super) struct LaunchStream {
    pub(super) stream: Stream,
    /// The context to which a default stream belonged at the launch.
    context: Option<Context>,
}

impl LaunchStream {
    fn is(&self, stream: &Stream, context: Option<&Context>) -> bool {
        self.stream == *stream && self.context.as_ref() == context && !self.stream.is_destroyed()
    }

    /// Calls `body` in the context of a default stream.
    pub(super) fn enter<T>(&self, body: impl FnOnce(&Stream) -> Result<T>) -> Result<T> {
        let _entered = self.context.as_ref().map(Context::enter).transpose()?;
        body(&self.stream)
    }

    /// Whether all work of the stream is done. False while it is captured: a query would invalidate the capture.
    fn is_idle(&self) -> bool {
        let idle = self.enter(|stream| Ok(!is_capturing(stream)? && stream.is_done()?));
        idle.unwrap_or(false)
    }
}

impl Launches {
    /// Notes a launch that was queued in a stream.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.last != stream.identity() {
            self.note_other(stream);
        }
    }

    #[cold]
    fn note_other(&mut self, stream: &Stream) {
        self.last = 0;
        if stream.is_per_thread() || stream.is_foreign() {
            if self.record(stream).is_err() {
                self.note_unknown();
            }
            return;
        }
        let is_unbound = stream.is_default() && stream.default_device().is_none();
        let context = if is_unbound {
            let Ok(Some(context)) = Context::current() else {
                self.note_unknown();
                return;
            };
            Some(context)
        } else {
            None
        };
        let mut streams = self.streams.iter();
        match streams.find(|known| known.is(stream, context.as_ref())) {
            // Another object with the same handle may be dropped, and its identity used again.
            Some(known) if is_unbound || !known.stream.is_clone_of(stream) => return,
            Some(_) => {}
            None => {
                self.prune_idle();
                self.streams.push(LaunchStream {
                    stream: stream.clone(),
                    context,
                });
            }
        }
        if !is_unbound {
            self.last = stream.identity();
        }
    }

    /// Notes that there was a launch in some stream.
    fn note_unknown(&mut self) {
        self.unknown = synchronization::begin_context_wait();
    }

    /// Records an event after the launch.
    fn record(&mut self, stream: &Stream) -> Result<()> {
        let _relaxed = RelaxedCapture::enter();
        let context = stream.context()?;
        // Recording an event again would lose a launch that is not done.
        let oldest = self.events.front();
        let event = if oldest.is_some_and(|event| matches!(event.is_done(), Ok(true))) {
            // Not one that content waits for, which would wait for this launch as well.
            self.events
                .pop_front()
                .and_then(Event::into_unique)
                .map(UniqueEvent::share)
                .filter(|event| *event.context() == context)
        } else {
            None
        };
        let event = match event {
            Some(event) => event,
            None => Event::new(&context, &EventOptions::default())?,
        };
        event.record(stream)?;
        self.events.push_back(event);
        Ok(())
    }

    /// Removes streams whose work is done, or that the program has destroyed, once there are many.
    fn prune_idle(&mut self) {
        const MANY: usize = 16;
        if self.streams.len() < MANY {
            return;
        }
        let _relaxed = RelaxedCapture::enter();
        let mut pruned = Vec::new();
        for entry in std::mem::take(&mut self.streams) {
            let is_destroyed = entry.stream.is_destroyed();
            if is_destroyed {
                self.note_unknown();
            }
            if is_destroyed || entry.is_idle() {
                pruned.push(entry);
            } else {
                self.streams.push(entry);
            }
        }
        // Destroying a stream is not done under the lock.
        deferred_drops::drop_later(Box::new(pruned));
    }

    /// The launches to wait for before content that they use is dropped.
    pub(crate) fn pending(&self) -> PendingLaunches {
        PendingLaunches {
            streams: self.streams.clone(),
            events: self.events.iter().cloned().collect(),
            unknown: self.unknown,
        }
    }
}

/// Launches to wait for: see [`Launches::pending`].
pub(crate) struct PendingLaunches {
    pub(super) streams: Vec<LaunchStream>,
    pub(super) events: Vec<Event>,
    pub(super) unknown: u64,
}

impl PendingLaunches {
    /// Includes launches of which nothing is known.
    pub(crate) fn add_unknown(&mut self) {
        self.unknown = synchronization::begin_context_wait();
    }
}

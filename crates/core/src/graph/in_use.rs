//! When what graphs retained is dropped.
//!
//! An instantiated graph owns what its nodes use. Launches may still run when it is dropped, or when an update replaces
//! some of it: the content is dropped after them. A user object of the driver (`cuUserObjectCreate`) could tell when that
//! is, but each launch of such a graph costs 1.25 us more (docs/performance.md). So a graph notes in which streams it was
//! launched, and events tell when those launches are done.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::destroyed::{OwnedKind, is_context_ending};
use cupyrite_sys::driver::CUresult;
use parking_lot::Mutex;

use crate::context::{Context, RelaxedCapture};
use crate::deferred_drops;
use crate::error::{Error, Result};
use crate::fork::is_forked_child;
use crate::graph::retained::Retained;
use crate::stream::{Event, EventOptions, Stream, UniqueEvent, is_capturing};
use crate::synchronization::{self, HookOwner, Synchronized};

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
struct LaunchStream {
    stream: Stream,
    /// The context to which a default stream belonged at the launch.
    context: Option<Context>,
}

impl LaunchStream {
    fn is(&self, stream: &Stream, context: Option<&Context>) -> bool {
        self.stream == *stream && self.context.as_ref() == context && !self.stream.is_destroyed()
    }

    /// Calls `body` in the context of a default stream.
    fn enter<T>(&self, body: impl FnOnce(&Stream) -> Result<T>) -> Result<T> {
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

    /// What to wait for before content that these launches use is dropped.
    pub(crate) fn waits(&self) -> Waits {
        Waits {
            streams: self.streams.clone(),
            events: self.events.iter().cloned().collect(),
            unknown: self.unknown,
        }
    }
}

/// What to wait for: see [`Launches::waits`].
pub(crate) struct Waits {
    streams: Vec<LaunchStream>,
    events: Vec<Event>,
    unknown: u64,
}

impl Waits {
    /// Includes launches of which nothing is known.
    pub(crate) fn add_unknown(&mut self) {
        self.unknown = synchronization::begin_context_wait();
    }
}

/// One condition for dropping content.
enum Wait {
    /// Until the work before an event is done.
    Event {
        event: Event,
        /// Where it was recorded, if the stream is known.
        stream: Option<LaunchStream>,
        context: Context,
    },
    /// Until the capture of the stream has ended, and its work before it.
    Captured {
        stream: LaunchStream,
        context: Context,
    },
    /// Until the host has waited for all work of the context.
    Context {
        context: Context,
        /// [`OwnedKind::epoch`] when this was created.
        created: u32,
        /// [`synchronization::begin_context_wait`] when this was created, or of the launch.
        since: u64,
    },
    /// Until the program's calls that destroy or reset contexts have returned.
    Ending,
}

impl Wait {
    /// The condition for the work that a stream holds now; `None` if it is done.
    fn of_stream(stream: LaunchStream, context: Context) -> Option<Wait> {
        if stream.stream.is_destroyed() {
            return Some(Wait::of_context(context));
        }
        match stream.enter(is_capturing) {
            Ok(true) => return Some(Wait::Captured { stream, context }),
            // The legacy default stream during a capture of a stream that waits for it.
            Err(error) if error.status() == Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) => {
                return Some(Wait::Captured { stream, context });
            }
            Ok(false) if matches!(stream.enter(Stream::is_done), Ok(true)) => return None,
            _ => {}
        }
        match stream.enter(|stream| stream.record_with(&EventOptions::default())) {
            Ok(event) => Some(Wait::Event {
                event,
                stream: Some(stream),
                context,
            }),
            Err(_) => Some(Wait::of_context(context)),
        }
    }

    fn of_context(context: Context) -> Wait {
        Wait::since(context, synchronization::begin_context_wait())
    }

    fn since(context: Context, since: u64) -> Wait {
        Wait::Context {
            context,
            created: OwnedKind::GraphExec.epoch(),
            since,
        }
    }

    /// What is left of the condition; `None` if it is met.
    fn remaining(self) -> Option<Wait> {
        match self {
            Wait::Event {
                event,
                stream,
                context,
            } => match event.is_done() {
                Ok(true) => None,
                Ok(false) => Some(Wait::Event {
                    event,
                    stream,
                    context,
                }),
                Err(error) if is_of_capture(&error) => match stream {
                    Some(stream) => Wait::of_stream(stream, context),
                    None => Some(Wait::of_context(context)),
                },
                // The work has ended as well if it failed, or if the event was destroyed with its context.
                Err(_) => is_context_ending().then_some(Wait::Event {
                    event,
                    stream,
                    context,
                }),
            },
            Wait::Captured { stream, context } => Wait::of_stream(stream, context),
            Wait::Ending => is_context_ending().then_some(Wait::Ending),
            Wait::Context {
                context,
                created,
                since,
            } => {
                let (handle, none) = (context.handle(), std::ptr::null_mut::<()>());
                let is_destroyed_with_context =
                    OwnedKind::GraphExec.is_destroyed(none, handle, created);
                let done = if is_destroyed_with_context {
                    !is_context_ending()
                } else {
                    synchronization::has_waited(handle.addr(), since)
                };
                (!done).then_some(Wait::Context {
                    context,
                    created,
                    since,
                })
            }
        }
    }
}

/// Whether the query of an event failed because it was recorded in a capture, which another thread began just before. After
/// the end of the capture it is an invalid value.
fn is_of_capture(error: &Error) -> bool {
    matches!(
        error.status(),
        Some(CUresult::CUDA_ERROR_CAPTURED_EVENT | CUresult::CUDA_ERROR_INVALID_VALUE)
    )
}

/// Content of a graph that launches may still use.
struct InUse {
    waits: Vec<Wait>,
    content: Vec<Retained>,
}

/// The oldest, or the longest unexamined, first.
static IN_USE: Mutex<VecDeque<InUse>> = Mutex::new(VecDeque::new());
/// Length of the list; avoids the lock if it is empty.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Entries that are examined after a call that may destroy a graph, and after a wait: enough to drop more than is added, and a
/// bound for the cost.
const AFTER_CALL: usize = 4;
const AFTER_WAIT: usize = 64;

/// Drops content of a graph of `context` once the launches are done.
pub(crate) fn drop_after(launches: Waits, context: &Context, content: Vec<Retained>) {
    let _relaxed = RelaxedCapture::enter();
    let streams = launches.streams.into_iter();
    let mut waits: Vec<Wait> = streams
        .filter_map(|stream| Wait::of_stream(stream, context.clone()))
        .collect();
    waits.extend(launches.events.into_iter().filter_map(|event| {
        let (stream, context) = (None, context.clone());
        Wait::Event {
            event,
            stream,
            context,
        }
        .remaining()
    }));
    if launches.unknown != 0 {
        waits.extend(Wait::since(context.clone(), launches.unknown).remaining());
    }
    hold(waits, content);
}

/// Drops content of a graph whose context the program has destroyed or reset, or is about to.
pub(crate) fn drop_with_context(content: Vec<Retained>) {
    hold(Wait::Ending.remaining().into_iter().collect(), content);
}

fn hold(waits: Vec<Wait>, content: Vec<Retained>) {
    if waits.is_empty() {
        deferred_drops::drop_later(Box::new(content));
        return;
    }
    synchronization::set_hook(HookOwner::Graphs, |waited| {
        drop_completed(match waited {
            Synchronized::StreamOrEvent => AFTER_WAIT,
            Synchronized::Context { .. } => usize::MAX,
        });
    });
    if is_forked_child() {
        // The content is the parent's, and a thread of the parent may hold the lock.
        std::mem::forget(content);
        return;
    }
    let mut list = IN_USE.lock();
    list.push_back(InUse { waits, content });
    COUNT.store(list.len(), Ordering::Release);
}

/// Drops the content of completed launches, among the first `limit` entries.
#[inline]
fn drop_completed(limit: usize) {
    let may_drop = || !deferred_drops::are_drops_deferred() && !is_forked_child();
    if COUNT.load(Ordering::Acquire) != 0 && may_drop() {
        examine(limit);
    }
}

#[cold]
fn examine(limit: usize) {
    let taken: Vec<InUse> = {
        let mut list = IN_USE.lock();
        let count = list.len().min(limit);
        let taken = list.drain(..count).collect();
        COUNT.store(list.len(), Ordering::Release);
        taken
    };
    let _relaxed = RelaxedCapture::enter();
    let (mut done, mut waiting) = (Vec::new(), Vec::new());
    for mut entry in taken {
        let waits = entry.waits.into_iter();
        entry.waits = waits.filter_map(Wait::remaining).collect();
        if entry.waits.is_empty() {
            done.push(entry.content);
        } else {
            waiting.push(entry);
        }
    }
    if !waiting.is_empty() {
        let mut list = IN_USE.lock();
        list.extend(waiting);
        COUNT.store(list.len(), Ordering::Release);
    }
    drop(done);
}

/// Drops what graphs have released since the last call, and what no launch uses any more. Called without locks, after
/// everything that may destroy a graph.
#[inline]
pub fn drop_released() {
    deferred_drops::drop_pending();
    drop_completed(AFTER_CALL);
}

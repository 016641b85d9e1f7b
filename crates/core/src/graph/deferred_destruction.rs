//! Deferred destruction of what graphs retain.
//!
//! An instantiated graph owns what its nodes use. Launches may still run when it is dropped, or when an update replaces
//! some of it: the content is dropped after them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::destroyed::{OwnedKind, is_context_ending};
use cupyrite_sys::driver::CUresult;
use parking_lot::Mutex;

use crate::context::{Context, RelaxedCapture};
use crate::deferred_drops;
use crate::error::Error;
use crate::fork::is_forked_child;
use crate::graph::launches::{LaunchStream, PendingLaunches};
use crate::graph::retained::Retained;
use crate::stream::{Event, EventOptions, Stream, is_capturing};
use crate::synchronization::{self, HookOwner, Synchronized};

/// One condition for dropping content.
enum DropCondition {
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

impl DropCondition {
    /// The condition for the work that a stream holds now; `None` if it is done.
    fn of_stream(stream: LaunchStream, context: Context) -> Option<DropCondition> {
        if stream.stream.is_destroyed() {
            return Some(DropCondition::of_context(context));
        }
        match stream.enter(is_capturing) {
            Ok(true) => return Some(DropCondition::Captured { stream, context }),
            // The legacy default stream during a capture of a stream that waits for it.
            Err(error) if error.status() == Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) => {
                return Some(DropCondition::Captured { stream, context });
            }
            Ok(false) if matches!(stream.enter(Stream::is_done), Ok(true)) => return None,
            _ => {}
        }
        match stream.enter(|stream| stream.record_with(&EventOptions::default())) {
            Ok(event) => Some(DropCondition::Event {
                event,
                stream: Some(stream),
                context,
            }),
            Err(_) => Some(DropCondition::of_context(context)),
        }
    }

    fn of_context(context: Context) -> DropCondition {
        DropCondition::since(context, synchronization::begin_context_wait())
    }

    fn since(context: Context, since: u64) -> DropCondition {
        DropCondition::Context {
            context,
            created: OwnedKind::GraphExec.epoch(),
            since,
        }
    }

    /// What is left of the condition; `None` if it is met.
    fn remaining(self) -> Option<DropCondition> {
        match self {
            DropCondition::Event {
                event,
                stream,
                context,
            } => match event.is_done() {
                Ok(true) => None,
                Ok(false) => Some(DropCondition::Event {
                    event,
                    stream,
                    context,
                }),
                Err(error) if is_of_capture(&error) => match stream {
                    Some(stream) => DropCondition::of_stream(stream, context),
                    None => Some(DropCondition::of_context(context)),
                },
                // The work has ended as well if it failed, or if the event was destroyed with its context.
                Err(_) => is_context_ending().then_some(DropCondition::Event {
                    event,
                    stream,
                    context,
                }),
            },
            DropCondition::Captured { stream, context } => {
                DropCondition::of_stream(stream, context)
            }
            DropCondition::Ending => is_context_ending().then_some(DropCondition::Ending),
            DropCondition::Context {
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
                (!done).then_some(DropCondition::Context {
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
struct DeferredContent {
    conditions: Vec<DropCondition>,
    content: Vec<Retained>,
}

/// The oldest, or the longest unexamined, first.
static DEFERRED: Mutex<VecDeque<DeferredContent>> = Mutex::new(VecDeque::new());
/// Length of the list; avoids the lock if it is empty.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Entries that are examined after a call that may destroy a graph, and after a wait: enough to drop more than is added, and a
/// bound for the cost.
const AFTER_CALL: usize = 4;
const AFTER_WAIT: usize = 64;

/// Drops content of a graph of `context` once the launches are done.
pub(crate) fn drop_after(launches: PendingLaunches, context: &Context, content: Vec<Retained>) {
    let _relaxed = RelaxedCapture::enter();
    let streams = launches.streams.into_iter();
    let mut conditions: Vec<DropCondition> = streams
        .filter_map(|stream| DropCondition::of_stream(stream, context.clone()))
        .collect();
    conditions.extend(launches.events.into_iter().filter_map(|event| {
        let (stream, context) = (None, context.clone());
        DropCondition::Event {
            event,
            stream,
            context,
        }
        .remaining()
    }));
    if launches.unknown != 0 {
        conditions.extend(DropCondition::since(context.clone(), launches.unknown).remaining());
    }
    defer(conditions, content);
}

/// Drops content of a graph whose context the program has destroyed or reset, or is about to.
pub(crate) fn drop_with_context(content: Vec<Retained>) {
    defer(
        DropCondition::Ending.remaining().into_iter().collect(),
        content,
    );
}

fn defer(conditions: Vec<DropCondition>, content: Vec<Retained>) {
    if conditions.is_empty() {
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
    let mut list = DEFERRED.lock();
    list.push_back(DeferredContent {
        conditions,
        content,
    });
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
    let taken: Vec<DeferredContent> = {
        let mut list = DEFERRED.lock();
        let count = list.len().min(limit);
        let taken = list.drain(..count).collect();
        COUNT.store(list.len(), Ordering::Release);
        taken
    };
    let _relaxed = RelaxedCapture::enter();
    let (mut done, mut waiting) = (Vec::new(), Vec::new());
    for mut entry in taken {
        let conditions = entry.conditions.into_iter();
        entry.conditions = conditions.filter_map(DropCondition::remaining).collect();
        if entry.conditions.is_empty() {
            done.push(entry.content);
        } else {
            waiting.push(entry);
        }
    }
    if !waiting.is_empty() {
        let mut list = DEFERRED.lock();
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

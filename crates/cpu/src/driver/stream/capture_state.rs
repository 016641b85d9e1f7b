//! Which streams take part in a capture, and whether a capture is still valid. The graph that a capture builds belongs
//! to `graph::capture`, which is above this module.
//!
//! All state is under one lock, guarded by a counter: a program that captures nothing pays one load per call.

use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::fresh_id;
use crate::driver::graph::edge_data::{Edge, EdgeData};
use crate::driver::stream::Stream;

const GLOBAL: u32 = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL.0;
const RELAXED: u32 = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0;

/// A capture in progress.
pub(in crate::driver) struct Capture {
    /// The graph under construction. The type belongs to `graph::capture`; dropping the value releases the graph.
    pub(in crate::driver) target: Box<dyn Any + Send>,
    mode: u32,
    /// The thread that began it.
    thread: u64,
    /// The stream it began in.
    pub(in crate::driver) origin: u64,
    pub(in crate::driver) invalid: bool,
    /// The ends of the work of streams that took part and have been destroyed.
    pub(in crate::driver) ends: Vec<Edge>,
}

/// A stream that takes part in a capture.
pub(in crate::driver) struct Joined {
    pub(in crate::driver) capture: u64,
    context: u64,
    /// Whether the stream synchronises with the legacy stream.
    blocking: bool,
    /// Dependencies of the stream's next node.
    pub(in crate::driver) next: Vec<Edge>,
    /// The last query's results; CUDA keeps their addresses valid until the next query.
    pub(in crate::driver) told: (Box<[u64]>, Box<[EdgeData]>),
}

/// All captures in progress.
#[derive(Default)]
pub(in crate::driver) struct Captures {
    pub(in crate::driver) running: HashMap<u64, Capture>,
    /// By stream id.
    pub(in crate::driver) joined: HashMap<u64, Joined>,
}

static CAPTURES: Mutex<Option<Captures>> = Mutex::new(None);
/// Number of captures in progress.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A position in a capture, marked by an event.
#[derive(Clone)]
pub(in crate::driver) struct Moment {
    capture: u64,
    edges: Arc<[Edge]>,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// The mode set by `cuThreadExchangeStreamCaptureMode`.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

/// An id that is unique to the thread.
fn this_thread() -> u64 {
    THREAD
        .try_with(|t| {
            if t.get() == 0 {
                t.set(fresh_id());
            }
            t.get()
        })
        .unwrap_or(0)
}

/// Runs `f` on the captures if there are any.
pub(in crate::driver) fn with_captures<R>(f: impl FnOnce(&mut Captures) -> R) -> Option<R> {
    if RUNNING.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut captures = CAPTURES.lock();
    captures.as_mut().map(f)
}

impl Captures {
    /// The capture a stream takes part in.
    pub(in crate::driver) fn of(&self, stream: &Stream) -> Option<(u64, &Capture)> {
        let id = self.joined.get(&stream.id)?.capture;
        Some((id, self.running.get(&id)?))
    }

    pub(in crate::driver) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.running.get_mut(&capture) {
            capture.invalid = true;
        }
    }

    /// Removes a capture and its streams.
    fn take(&mut self, id: u64) -> Option<(Capture, HashMap<u64, Joined>)> {
        let capture = self.running.remove(&id)?;
        RUNNING.fetch_sub(1, Ordering::AcqRel);
        let joined = self.joined.extract_if(|_, j| j.capture == id).collect();
        Some((capture, joined))
    }

    /// The captures that a use of the legacy stream would affect.
    pub(in crate::driver) fn implicit(&self, stream: &Stream) -> Vec<u64> {
        if !stream.is_legacy() {
            return Vec::new();
        }
        let joined = self.joined.values();
        joined
            .filter(|j| j.blocking && j.context == stream.context.id)
            .map(|j| j.capture)
            .collect()
    }
}

/// Whether work enqueued in the stream must become a node.
///
/// # Errors
/// `STREAM_CAPTURE_INVALIDATED` if the stream's capture is invalid.
pub(in crate::driver) fn is_capturing(stream: &Stream) -> Res<bool> {
    with_captures(|c| match c.of(stream) {
        Some((_, capture)) if capture.invalid => Err(Code::STREAM_CAPTURE_INVALIDATED),
        found => Ok(found.is_some()),
    })
    .unwrap_or(Ok(false))
}

/// Refuses a use of the legacy stream while a stream that it synchronises with is capturing, and invalidates the
/// capture.
pub(in crate::driver) fn refuse_implicit(stream: &Stream) -> Res {
    with_captures(|c| {
        let hit = c.implicit(stream);
        for &capture in &hit {
            c.invalidate(capture);
        }
        if hit.is_empty() {
            Ok(())
        } else {
            Err(Code::STREAM_CAPTURE_IMPLICIT)
        }
    })
    .unwrap_or(Ok(()))
}

/// Refuses an operation that cannot be captured, and invalidates the capture.
pub(in crate::driver) fn refuse(stream: &Stream) -> Res {
    refuse_implicit(stream)?;
    if is_capturing(stream) == Ok(false) {
        return Ok(());
    }
    invalidate(stream);
    Err(Code::STREAM_CAPTURE_UNSUPPORTED)
}

/// Invalidates the stream's capture, if any.
pub(in crate::driver) fn invalidate(stream: &Stream) {
    with_captures(|c| {
        if let Some((id, _)) = c.of(stream) {
            c.invalidate(id);
        }
    });
}

/// Refuses a call that captures may prohibit (waiting for the device, allocating, freeing, unloading code), depending
/// on the thread's mode and the captures in progress, which it invalidates. Must be called before any side effect. See
/// `cuThreadExchangeStreamCaptureMode`.
///
/// # Errors
/// `STREAM_CAPTURE_UNSUPPORTED`.
pub(in crate::driver) fn reject_if_capturing() -> Res {
    let mode = MODE.try_with(Cell::get).unwrap_or(GLOBAL);
    if mode == RELAXED {
        return Ok(());
    }
    with_captures(|c| {
        let me = this_thread();
        let prohibits = |capture: &Capture| {
            if capture.thread == me {
                capture.mode != RELAXED
            } else {
                mode == GLOBAL && capture.mode == GLOBAL
            }
        };
        let mut hit = false;
        for capture in c.running.values_mut() {
            if prohibits(capture) {
                capture.invalid = true;
                hit = true;
            }
        }
        if hit {
            Err(Code::STREAM_CAPTURE_UNSUPPORTED)
        } else {
            Ok(())
        }
    })
    .unwrap_or(Ok(()))
}

/// Refuses to wait for a context that has a capturing stream, and invalidates the capture.
///
/// # Errors
/// `STREAM_CAPTURE_UNSUPPORTED`.
pub(in crate::driver) fn refuse_context(context: u64) -> Res {
    reject_if_capturing()?;
    with_captures(|c| {
        let joined = c.joined.values().filter(|j| j.context == context);
        let hit: Vec<u64> = joined.map(|j| j.capture).collect();
        for &capture in &hit {
            c.invalidate(capture);
        }
        if hit.is_empty() {
            Ok(())
        } else {
            Err(Code::STREAM_CAPTURE_UNSUPPORTED)
        }
    })
    .unwrap_or(Ok(()))
}

/// The position that an event recorded now would mark; `None` if the stream is not capturing.
pub(in crate::driver) fn moment(stream: &Stream) -> Res<Option<Moment>> {
    with_captures(|c| {
        let Some((id, capture)) = c.of(stream) else {
            return Ok(None);
        };
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let edges = c.joined[&stream.id].next.as_slice().into();
        Ok(Some(Moment { capture: id, edges }))
    })
    .unwrap_or(Ok(None))
}

/// Makes a stream wait for a position in a capture, which it joins if necessary.
///
/// # Errors
/// `STREAM_CAPTURE_MERGE` if it takes part in another capture, `STREAM_CAPTURE_INVALIDATED` if the capture is invalid,
/// `INVALID_VALUE` if it has ended, `STREAM_CAPTURE_IMPLICIT` for the legacy stream, which cannot join.
pub(in crate::driver) fn wait(stream: &Arc<Stream>, moment: &Moment) -> Res {
    with_captures(|c| {
        let Some(capture) = c.running.get(&moment.capture) else {
            if let Some((id, _)) = c.of(stream) {
                c.invalidate(id);
            }
            return Err(Code::INVALID_VALUE);
        };
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        if stream.is_legacy() {
            c.invalidate(moment.capture);
            return Err(Code::STREAM_CAPTURE_IMPLICIT);
        }
        match c.joined.get_mut(&stream.id) {
            Some(joined) if joined.capture == moment.capture => {
                merge(&mut joined.next, &moment.edges)
            }
            Some(joined) => {
                let other = joined.capture;
                c.invalidate(other);
                c.invalidate(moment.capture);
                return Err(Code::STREAM_CAPTURE_MERGE);
            }
            None => c.join(stream, moment.capture, moment.edges.to_vec()),
        }
        Ok(())
    })
    .unwrap_or(Err(Code::INVALID_VALUE))
}

impl Captures {
    fn join(&mut self, stream: &Stream, capture: u64, next: Vec<Edge>) {
        let joined = Joined {
            capture,
            context: stream.context.id,
            blocking: stream.is_blocking(),
            next,
            told: Default::default(),
        };
        self.joined.insert(stream.id, joined);
    }
}

/// Adds the edges that are missing.
pub(in crate::driver) fn merge(edges: &mut Vec<Edge>, more: &[Edge]) {
    let mut known: HashSet<u64> = edges.iter().map(|e| e.node).collect();
    for edge in more {
        if known.insert(edge.node) {
            edges.push(*edge);
        }
    }
}

/// Invalidates the stream's capture because of a dependency on work outside it.
pub(in crate::driver) fn isolation(stream: &Stream) -> Code {
    invalidate(stream);
    Code::STREAM_CAPTURE_ISOLATION
}

/// The error of a query of an event that marks a position in a capture; with `invalidate_capture`, invalidates the
/// capture.
pub(in crate::driver) fn asked(moment: &Moment, invalidate_capture: bool) -> Code {
    with_captures(|c| {
        if !c.running.contains_key(&moment.capture) {
            return Code::INVALID_VALUE;
        }
        if invalidate_capture {
            c.invalidate(moment.capture);
        }
        Code::CAPTURED_EVENT
    })
    .unwrap_or(Code::INVALID_VALUE)
}

/// Handles the destruction of a stream: a capture that began in it ends. Another stream leaves its capture, which fails
/// at its end if the stream's work was not joined.
pub(in crate::driver) fn stream_ends(stream: &Stream) {
    let removed = with_captures(|c| {
        let (id, capture) = c.of(stream)?;
        if capture.origin == stream.id {
            return c.take(id);
        }
        let left = c.joined.remove(&stream.id)?;
        merge(&mut c.running.get_mut(&id)?.ends, &left.next);
        None
    });
    // Drops the capture without the lock: that releases its graph.
    drop(removed);
}

/// Begins a capture in a stream. `target` creates the graph under construction, under the lock of the captures; `next`
/// are the dependencies of the first node.
///
/// # Errors
/// `INVALID_VALUE` for an invalid mode, `STREAM_CAPTURE_UNSUPPORTED` for the legacy stream, `ILLEGAL_STATE` if the stream
/// is capturing; the error of `target`.
pub(in crate::driver) fn begin(
    stream: &Arc<Stream>,
    mode: u32,
    next: Vec<Edge>,
    target: impl FnOnce(&[Edge]) -> Res<Box<dyn Any + Send>>,
) -> Res {
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    if stream.is_legacy() {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut captures = CAPTURES.lock();
    let captures = captures.get_or_insert_default();
    if captures.joined.contains_key(&stream.id) {
        return Err(Code::ILLEGAL_STATE);
    }
    let target = target(&next)?;
    let id = fresh_id();
    captures.join(stream, id, next);
    let capture = Capture {
        target,
        mode,
        thread: this_thread(),
        origin: stream.id,
        invalid: false,
        ends: Vec::new(),
    };
    captures.running.insert(id, capture);
    RUNNING.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Ends the capture that began in the stream. Called by the wrong thread, the capture ends nonetheless; the third value
/// is then true.
///
/// # Errors
/// `ILLEGAL_STATE` if the stream is not capturing. `STREAM_CAPTURE_UNMATCHED` if the capture began in another stream,
/// which invalidates it.
pub(in crate::driver) fn end(stream: &Stream) -> Res<(Capture, HashMap<u64, Joined>, bool)> {
    with_captures(|c| {
        let (id, capture) = c.of(stream).ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream.id {
            c.invalidate(id);
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        let wrong = capture.mode != RELAXED && capture.thread != this_thread();
        let (capture, joined) = c.take(id).ok_or(Code::ILLEGAL_STATE)?;
        Ok((capture, joined, wrong))
    })
    .unwrap_or(Err(Code::ILLEGAL_STATE))
}

/// Sets the calling thread's capture mode and returns the previous one.
///
/// # Errors
/// `INVALID_VALUE` for an invalid mode; `DEINITIALIZED` at the exit of the thread.
pub(in crate::driver) fn exchange_mode(mode: u32) -> Res<u32> {
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    MODE.try_with(|m| m.replace(mode))
        .map_err(|_| Code::DEINITIALIZED)
}

//! Stream capture: work enqueued in a stream becomes graph nodes instead of running.
//!
//! A capture begins in one stream, its origin. Another stream joins by waiting for an event recorded in a stream of the
//! capture. Each captured node depends on the previous work of its stream, so stream order becomes graph edges.
//! Dependencies on anything outside (waiting for the host, foreign events, the legacy stream) are errors. Most errors
//! invalidate the capture; only ending it is then allowed.
//!
//! All state is under one lock, guarded by a counter: a program that captures nothing pays one load per call.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite_sys::driver as sys;
use parking_lot::{Mutex, MutexGuard};

use super::{Code, Edge, EdgeData, Graph, GraphState, Payload, edges};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_optional};
use crate::driver::entry::entries;
use crate::driver::entry::handles::fresh_id;
use crate::driver::stream::Stream;
use crate::driver::stream::resolve;

const GLOBAL: u32 = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL.0;
const RELAXED: u32 = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0;

/// Values of `CUstreamCaptureStatus`.
const STATUS_NONE: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE.0;
const STATUS_ACTIVE: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE.0;
const STATUS_INVALIDATED: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED.0;

/// A capture in progress.
struct Capture {
    graph: Arc<Graph>,
    /// Whether the capture created the graph.
    owned: bool,
    mode: u32,
    /// The thread that began it.
    thread: u64,
    /// The stream it began in.
    origin: u64,
    invalid: bool,
}

/// A stream that takes part in a capture.
struct Joined {
    capture: u64,
    context: u64,
    /// Whether the stream synchronises with the legacy stream.
    blocking: bool,
    /// Dependencies of the stream's next node.
    next: Vec<Edge>,
    /// The last query's results; CUDA keeps their addresses valid until the next query.
    told: (Box<[u64]>, Box<[EdgeData]>),
}

#[derive(Default)]
struct Captures {
    running: HashMap<u64, Capture>,
    /// By stream id.
    joined: HashMap<u64, Joined>,
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
fn with_captures<R>(f: impl FnOnce(&mut Captures) -> R) -> Option<R> {
    if RUNNING.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut captures = CAPTURES.lock();
    captures.as_mut().map(f)
}

impl Captures {
    /// The capture a stream takes part in.
    fn of(&self, stream: &Stream) -> Option<(u64, &Capture)> {
        let id = self.joined.get(&stream.id)?.capture;
        Some((id, self.running.get(&id)?))
    }

    fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.running.get_mut(&capture) {
            capture.invalid = true;
        }
    }

    /// Removes a capture and its streams.
    fn take(&mut self, id: u64) -> Option<(Capture, HashMap<u64, Joined>)> {
        let capture = self.running.remove(&id)?;
        RUNNING.fetch_sub(1, Ordering::AcqRel);
        let joined = self.joined.extract_if(|_, j| j.capture == id).collect();
        capture.graph.lock().capturing -= 1;
        Some((capture, joined))
    }

    /// The captures that a use of the legacy stream would affect.
    fn implicit(&self, stream: &Stream) -> Vec<u64> {
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

/// Adds a node to the stream's capture, after the stream's previous work.
///
/// # Errors
/// `STREAM_CAPTURE_INVALIDATED` if the capture is invalid or has ended. `INVALID_VALUE` if the previous work has been
/// removed from the graph.
pub(in crate::driver) fn record(stream: &Stream, payload: Payload) -> Res {
    with_captures(|c| {
        let joined = c.joined.get_mut(&stream.id);
        let joined = joined.ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
        let capture = c.running.get_mut(&joined.capture);
        let capture = capture.ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let node = capture.graph.add(payload, &joined.next);
        let node = node.inspect_err(|_| capture.invalid = true)?;
        joined.next = vec![Edge::plain(node)];
        Ok(())
    })
    .unwrap_or(Err(Code::STREAM_CAPTURE_INVALIDATED))
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
fn merge(edges: &mut Vec<Edge>, more: &[Edge]) {
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

/// Handles the destruction of a stream: its capture is invalidated, and ends if the stream is its origin.
pub(in crate::driver) fn stream_ends(stream: &Stream) {
    let gone = with_captures(|c| {
        let (id, capture) = c.of(stream)?;
        if capture.origin == stream.id {
            return c.take(id);
        }
        c.invalidate(id);
        c.joined.remove(&stream.id);
        None
    });
    if let Some(Some((capture, _))) = gone
        && capture.owned
    {
        capture.graph.retire();
    }
}

fn begin(stream: &Arc<Stream>, mode: u32, into: Option<(Arc<Graph>, Vec<Edge>)>) -> Res {
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    if stream.is_legacy() {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut captures: MutexGuard<'_, Option<Captures>> = CAPTURES.lock();
    let captures = captures.get_or_insert_default();
    if captures.joined.contains_key(&stream.id) {
        return Err(Code::ILLEGAL_STATE);
    }
    let owned = into.is_none();
    let (graph, next) = into.unwrap_or_else(|| (Graph::create(), Vec::new()));
    {
        let mut state = graph.lock();
        state.check_dependencies(&next, &Payload::Empty)?;
        state.capturing += 1;
    }
    let id = fresh_id();
    captures.join(stream, id, next);
    let capture = Capture {
        graph,
        owned,
        mode,
        thread: this_thread(),
        origin: stream.id,
        invalid: false,
    };
    captures.running.insert(id, capture);
    RUNNING.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Whether all work of a capture's streams precedes the origin's next node.
fn all_joined(state: &GraphState, origin: u64, joined: &HashMap<u64, Joined>) -> bool {
    let mut before = HashSet::new();
    let nodes = |j: &Joined| j.next.iter().map(|e| e.node).collect::<Vec<u64>>();
    let mut open = joined.get(&origin).map_or_else(Vec::new, nodes);
    while let Some(node) = open.pop() {
        if before.insert(node)
            && let Some(node) = state.nodes.get(&node)
        {
            open.extend(node.before.iter().map(|e| e.node));
        }
    }
    let mut ends = joined.values().flat_map(nodes);
    // A node removed from the graph in the meantime does not count.
    ends.all(|n| before.contains(&n) || !state.nodes.contains_key(&n))
}

/// Ends the capture that began in the stream; returns the graph's handle.
fn end(stream: &Stream) -> Res<u64> {
    let (capture, joined, wrong) = with_captures(|c| {
        let (id, capture) = c.of(stream).ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream.id {
            c.invalidate(id);
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        let wrong = capture.mode != RELAXED && capture.thread != this_thread();
        let (capture, joined) = c.take(id).ok_or(Code::ILLEGAL_STATE)?;
        Ok((capture, joined, wrong))
    })
    .unwrap_or(Err(Code::ILLEGAL_STATE))?;
    // Called by the wrong thread, the capture ends nonetheless.
    let outcome = if wrong {
        Err(Code::STREAM_CAPTURE_WRONG_THREAD)
    } else if capture.invalid {
        Err(Code::STREAM_CAPTURE_INVALIDATED)
    } else if !all_joined(&capture.graph.lock(), capture.origin, &joined) {
        Err(Code::STREAM_CAPTURE_UNJOINED)
    } else {
        Ok(capture.graph.handle)
    };
    if outcome.is_err() && capture.owned {
        capture.graph.retire();
    }
    outcome
}

/// Addresses of a query's outputs; zero for those that are not requested.
struct Wanted {
    status: u64,
    id: u64,
    graph: u64,
    dependencies: u64,
    edges: u64,
    count: u64,
}

fn info(stream: &Stream, wanted: &Wanted) -> Res {
    non_null(wanted.status)?;
    with_captures(|c| {
        // A query does not invalidate the capture.
        if !c.implicit(stream).is_empty() {
            return Err(Code::STREAM_CAPTURE_IMPLICIT);
        }
        let Some((id, capture)) = c.of(stream) else {
            return put(wanted.status, STATUS_NONE);
        };
        if capture.invalid {
            return put(wanted.status, STATUS_INVALIDATED);
        }
        let graph = capture.graph.handle;
        let Some(joined) = c.joined.get_mut(&stream.id) else {
            return put(wanted.status, STATUS_NONE);
        };
        if wanted.dependencies != 0
            && wanted.edges == 0
            && joined.next.iter().any(|e| e.data != [0; 8])
        {
            return Err(Code::LOSSY_QUERY);
        }
        joined.told = (
            joined.next.iter().map(|e| e.node).collect(),
            joined.next.iter().map(|e| e.data).collect(),
        );
        let (nodes, data) = &joined.told;
        let address = |empty: bool, p: u64| if empty { 0 } else { p };
        put(wanted.status, STATUS_ACTIVE)?;
        put_optional(wanted.id, id)?;
        put_optional(wanted.graph, graph)?;
        put_optional(
            wanted.dependencies,
            address(nodes.is_empty(), nodes.as_ptr() as u64),
        )?;
        put_optional(wanted.edges, address(data.is_empty(), data.as_ptr() as u64))?;
        put_optional(wanted.count, nodes.len() as u64)
    })
    .unwrap_or_else(|| put(wanted.status, STATUS_NONE))
}

/// `cuStreamUpdateCaptureDependencies`.
fn change_dependencies(stream: &Stream, nodes: u64, data: u64, count: u64, flags: u32) -> Res {
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let given = edges::read(nodes, data, count)?;
    with_captures(|c| {
        let Some((_, capture)) = c.of(stream) else {
            return Err(Code::ILLEGAL_STATE);
        };
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let state = capture.graph.lock();
        if given.iter().any(|e| !state.nodes.contains_key(&e.node)) {
            return Err(Code::INVALID_VALUE);
        }
        drop(state);
        if let Some(joined) = c.joined.get_mut(&stream.id) {
            if flags == 1 {
                joined.next.clear();
            }
            merge(&mut joined.next, &given);
        }
        Ok(())
    })
    .unwrap_or(Err(Code::ILLEGAL_STATE))
}

entries! {
    fn begin_capture "cuStreamBeginCapture_v2" | "cuStreamBeginCapture_v2_ptsz" (stream: u64, mode: u32) {
        begin(&resolve::look_up(stream, PER_THREAD)?, mode, None)
    }
    fn begin_capture_to "cuStreamBeginCaptureToGraph" | "cuStreamBeginCaptureToGraph_ptsz"
        (stream: u64, graph: u64, dependencies: u64, data: u64, count: u64, mode: u32) {
        let stream = resolve::look_up(stream, PER_THREAD)?;
        let graph = super::find(graph)?;
        let edges = edges::read(dependencies, data, count)?;
        begin(&stream, mode, Some((graph, edges)))
    }
    fn end_capture "cuStreamEndCapture" | "cuStreamEndCapture_ptsz" (stream: u64, out: u64) {
        non_null(out)?;
        let ended = end(&*resolve::look_up(stream, PER_THREAD)?);
        put(out, *ended.as_ref().unwrap_or(&0))?;
        ended.map(|_| ())
    }
    fn is_stream_capturing "cuStreamIsCapturing" | "cuStreamIsCapturing_ptsz" (stream: u64, status: u64) {
        non_null(status)?;
        let wanted = Wanted { status, id: 0, graph: 0, dependencies: 0, edges: 0, count: 0 };
        info(&*resolve::look_up(stream, PER_THREAD)?, &wanted)
    }
    fn capture_info_v2 "cuStreamGetCaptureInfo_v2" | "cuStreamGetCaptureInfo_v2_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, dependencies: u64, count: u64) {
        non_null(status)?;
        let wanted = Wanted { status, id, graph, dependencies, edges: 0, count };
        info(&*resolve::look_up(stream, PER_THREAD)?, &wanted)
    }
    fn capture_info_v3 "cuStreamGetCaptureInfo_v3" | "cuStreamGetCaptureInfo_v3_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, dependencies: u64, edges: u64, count: u64) {
        non_null(status)?;
        let wanted = Wanted { status, id, graph, dependencies, edges, count };
        info(&*resolve::look_up(stream, PER_THREAD)?, &wanted)
    }
    fn update_dependencies "cuStreamUpdateCaptureDependencies" | "cuStreamUpdateCaptureDependencies_ptsz"
        (stream: u64, dependencies: u64, count: u64, flags: u32) {
        change_dependencies(&*resolve::look_up(stream, PER_THREAD)?, dependencies, 0, count, flags)
    }
    fn update_dependencies_v2 "cuStreamUpdateCaptureDependencies_v2" | "cuStreamUpdateCaptureDependencies_v2_ptsz"
        (stream: u64, dependencies: u64, data: u64, count: u64, flags: u32) {
        change_dependencies(&*resolve::look_up(stream, PER_THREAD)?, dependencies, data, count, flags)
    }
    fn exchange_mode "cuThreadExchangeStreamCaptureMode" (mode: u64) {
        non_null(mode)?;
        let wanted = get::<u32>(mode)?;
        if wanted > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        let before = MODE.try_with(Cell::get).map_err(|_| Code::DEINITIALIZED)?;
        put(mode, before)?;
        MODE.set(wanted);
        Ok(())
    }
}

//! Stream capture: work enqueued in a stream becomes graph nodes instead of running.
//!
//! A capture begins in one stream, its origin. Another stream joins by waiting for an event recorded in a stream of the
//! capture. Each captured node depends on the previous work of its stream, so stream order becomes graph edges.
//! Dependencies on anything outside (waiting for the host, foreign events, the legacy stream) are errors. Most errors
//! invalidate the capture; only ending it is then allowed.
//!
//! Belongs here: the graph of a capture and the entry points. Does not belong here: which streams are capturing, and
//! the calls that captures prohibit (`stream::capture_state`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::memory::AllocationRequest;
use super::{Code, Edge, Graph, GraphState, Payload, edges};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::stream::Stream;
use crate::driver::stream::capture_state::{self, Capture, Joined, merge, with_captures};
use crate::driver::stream::resolve;

/// Values of `CUstreamCaptureStatus`.
const STATUS_NONE: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE.0;
const STATUS_ACTIVE: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE.0;
const STATUS_INVALIDATED: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED.0;

/// The flag of `cuStreamUpdateCaptureDependencies` that replaces the dependencies; 0 adds to them.
const SET_DEPENDENCIES: u32 =
    sys::CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES.0;

/// The graph of a capture: the type behind [`Capture::target`].
struct Target {
    graph: Arc<Graph>,
    /// Whether the graph is released with the capture: the capture created it and has not ended successfully.
    discard: bool,
}

impl Target {
    /// The graph that a capture adds nodes to.
    fn graph(capture: &Capture) -> Res<&Arc<Graph>> {
        let target = capture.target.downcast_ref::<Target>();
        target.map(|t| &t.graph).ok_or(Code::UNKNOWN)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.graph.lock().capturing -= 1;
        if self.discard {
            self.graph.retire();
        }
    }
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
        let node = Target::graph(capture)?.add(payload, &joined.next);
        let node = node.inspect_err(|_| capture.invalid = true)?;
        joined.next = vec![Edge::plain(node)];
        Ok(())
    })
    .unwrap_or(Err(Code::STREAM_CAPTURE_INVALIDATED))
}

/// Adds an allocation to the stream's capture and returns its address.
///
/// # Errors
/// Those of [`record`], and `OUT_OF_MEMORY`.
pub(in crate::driver) fn record_allocation(
    stream: &Stream,
    request: AllocationRequest,
) -> Res<u64> {
    // Memory is allocated outside of the captures' lock. If the node cannot be added, the capture is invalid, and no
    // later node needs the memory taken from its graph.
    let claim = with_captures(|c| {
        let joined = c.joined.get(&stream.id)?;
        let capture = c.running.get(&joined.capture)?;
        let graph = Target::graph(capture).ok()?;
        graph.lock().claim(&request, &joined.next)
    });
    let node = request.place(claim.flatten().as_ref())?;
    let address = node.address();
    record(stream, Payload::MemAlloc(node))?;
    Ok(address)
}

fn begin(stream: &Arc<Stream>, mode: u32, into: Option<Arc<Graph>>, next: Vec<Edge>) -> Res {
    capture_state::begin(stream, mode, next, |next| {
        let discard = into.is_none();
        let graph = into.unwrap_or_else(Graph::create);
        let mut state = graph.lock();
        state.check_dependencies(next, &Payload::Empty)?;
        state.capturing += 1;
        drop(state);
        Ok(Box::new(Target { graph, discard }))
    })
}

/// Whether all work of a capture's streams, and of destroyed ones, precedes the origin's next node.
fn all_joined(state: &GraphState, capture: &Capture, joined: &HashMap<u64, Joined>) -> bool {
    let mut before = HashSet::new();
    let nodes = |edges: &[Edge]| edges.iter().map(|e| e.node).collect::<Vec<u64>>();
    let origin = joined.get(&capture.origin);
    let mut open = origin.map_or_else(Vec::new, |j| nodes(&j.next));
    while let Some(node) = open.pop() {
        if before.insert(node)
            && let Some(node) = state.nodes.get(&node)
        {
            open.extend(node.before.iter().map(|e| e.node));
        }
    }
    let of_streams = joined.values().flat_map(|j| nodes(&j.next));
    let mut ends = of_streams.chain(nodes(&capture.ends));
    // A node removed from the graph in the meantime does not count.
    ends.all(|n| before.contains(&n) || !state.nodes.contains_key(&n))
}

/// Ends the capture that began in the stream; returns the graph's handle.
fn end(stream: &Stream, returned: bool) -> Res<u64> {
    let (mut capture, joined, wrong_thread) = capture_state::end(stream)?;
    if wrong_thread {
        return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
    }
    if capture.invalid {
        return Err(Code::STREAM_CAPTURE_INVALIDATED);
    }
    if !all_joined(&Target::graph(&capture)?.lock(), &capture, &joined) {
        return Err(Code::STREAM_CAPTURE_UNJOINED);
    }
    let target = capture.target.downcast_mut::<Target>();
    let target = target.ok_or(Code::UNKNOWN)?;
    // As on an H100, a capture ends without an address for its new graph; nothing else refers to the graph then.
    target.discard &= !returned;
    Ok(target.graph.handle)
}

/// Addresses of a query's outputs; zero for those that are not requested.
struct CaptureQueryOutputs {
    status: u64,
    id: u64,
    graph: u64,
    dependencies: u64,
    edges: u64,
    count: u64,
}

fn info(stream: &Stream, wanted: &CaptureQueryOutputs) -> Res {
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
        let graph = Target::graph(capture)?.handle;
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
    if flags > SET_DEPENDENCIES {
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
        let state = Target::graph(capture)?.lock();
        if given.iter().any(|e| !state.nodes.contains_key(&e.node)) {
            return Err(Code::INVALID_VALUE);
        }
        drop(state);
        if let Some(joined) = c.joined.get_mut(&stream.id) {
            if flags == SET_DEPENDENCIES {
                joined.next.clear();
            }
            merge(&mut joined.next, &given);
        }
        Ok(())
    })
    .unwrap_or(Err(Code::ILLEGAL_STATE))
}

driver_entry_points! {
    fn begin_capture "cuStreamBeginCapture_v2" | "cuStreamBeginCapture_v2_ptsz" (stream: u64, mode: u32) {
        begin(&resolve::look_up(stream, PER_THREAD)?, mode, None, Vec::new())
    }
    fn begin_capture_to "cuStreamBeginCaptureToGraph" | "cuStreamBeginCaptureToGraph_ptsz"
        (stream: u64, graph: u64, dependencies: u64, data: u64, count: u64, mode: u32) {
        let stream = resolve::look_up(stream, PER_THREAD)?;
        let graph = super::find(graph)?;
        let edges = edges::read(dependencies, data, count)?;
        begin(&stream, mode, Some(graph), edges)
    }
    fn end_capture "cuStreamEndCapture" | "cuStreamEndCapture_ptsz" (stream: u64, out: u64) {
        let stream = resolve::look_up(stream, PER_THREAD)?;
        let graph = end(&stream, out != 0);
        put_optional(out, *graph.as_ref().unwrap_or(&0))?;
        graph.map(|_| ())
    }
    fn is_stream_capturing "cuStreamIsCapturing" | "cuStreamIsCapturing_ptsz" (stream: u64, status: u64) {
        non_null(status)?;
        let wanted = CaptureQueryOutputs { status, id: 0, graph: 0, dependencies: 0, edges: 0, count: 0 };
        info(&*resolve::look_up(stream, PER_THREAD)?, &wanted)
    }
    fn capture_info_v2 "cuStreamGetCaptureInfo_v2" | "cuStreamGetCaptureInfo_v2_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, dependencies: u64, count: u64) {
        non_null(status)?;
        let wanted = CaptureQueryOutputs { status, id, graph, dependencies, edges: 0, count };
        info(&*resolve::look_up(stream, PER_THREAD)?, &wanted)
    }
    fn capture_info_v3 "cuStreamGetCaptureInfo_v3" | "cuStreamGetCaptureInfo_v3_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, dependencies: u64, edges: u64, count: u64) {
        non_null(status)?;
        let wanted = CaptureQueryOutputs { status, id, graph, dependencies, edges, count };
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
        put(mode, capture_state::exchange_mode(get(mode)?)?)
    }
}

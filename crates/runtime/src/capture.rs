//! Stream capture. Modes, statuses and flags have the driver's values.

use cupyrite_sys::driver::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUstreamCaptureMode, CUstreamCaptureStatus,
};

use crate::checked::{get, non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::stream::handle;

fn mode(of: u32) -> CUstreamCaptureMode {
    CUstreamCaptureMode(of as _)
}

/// Runs `undo`, which reverts a failed call, in relaxed capture mode: during a capture the driver may allow the
/// creation of an object but not its destruction.
pub(crate) fn relaxed(undo: impl FnOnce()) {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let exchanged = cu!(cuThreadExchangeStreamCaptureMode(&mut mode)).is_ok();
    undo();
    if exchanged {
        let _ = cu!(cuThreadExchangeStreamCaptureMode(&mut mode));
    }
}

fn edges(of: u64) -> *const CUgraphEdgeData {
    of as *const CUgraphEdgeData
}

runtime_entry_points! {
    fn begin_capture "cudaStreamBeginCapture" | "cudaStreamBeginCapture_ptsz" (stream: u64, wanted: u32) {
        context::current()?;
        cu!(cuStreamBeginCapture(handle::<PER_THREAD>(stream), mode(wanted)))
    }
    fn begin_capture_to_graph "cudaStreamBeginCaptureToGraph" | "cudaStreamBeginCaptureToGraph_ptsz"
        (stream: u64, graph: u64, nodes: u64, data: u64, count: usize, wanted: u32) {
        context::current()?;
        cu!(cuStreamBeginCaptureToGraph(
            handle::<PER_THREAD>(stream), graph as CUgraph, nodes as *const CUgraphNode, edges(data), count, mode(wanted)
        ))
    }
    fn end_capture "cudaStreamEndCapture" | "cudaStreamEndCapture_ptsz" (stream: u64, out: u64) {
        context::current()?;
        let mut graph: CUgraph = std::ptr::null_mut();
        // The driver accepts null.
        let returned: *mut CUgraph = if out == 0 { std::ptr::null_mut() } else { &mut graph };
        let status = cu!(cuStreamEndCapture(handle::<PER_THREAD>(stream), returned));
        put_optional(out, graph as u64)?;
        status
    }
    fn is_capturing "cudaStreamIsCapturing" | "cudaStreamIsCapturing_ptsz" (stream: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let mut status = CUstreamCaptureStatus::default();
        cu!(cuStreamIsCapturing(handle::<PER_THREAD>(stream), &mut status))?;
        put(out, status)
    }
    fn capture_info "cudaStreamGetCaptureInfo" | "cudaStreamGetCaptureInfo_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, nodes: u64, data: u64, count: u64) {
        info(handle::<PER_THREAD>(stream), [status, id, graph, nodes, data, count])
    }
    fn capture_info_v3 "cudaStreamGetCaptureInfo_v3" | "cudaStreamGetCaptureInfo_v3_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, nodes: u64, data: u64, count: u64) {
        info(handle::<PER_THREAD>(stream), [status, id, graph, nodes, data, count])
    }
    fn capture_info_v2 "cudaStreamGetCaptureInfo_v2" | "cudaStreamGetCaptureInfo_v2_ptsz"
        (stream: u64, status: u64, id: u64, graph: u64, nodes: u64, count: u64) {
        info(handle::<PER_THREAD>(stream), [status, id, graph, nodes, 0, count])
    }
    fn update_dependencies "cudaStreamUpdateCaptureDependencies" | "cudaStreamUpdateCaptureDependencies_ptsz"
        (stream: u64, nodes: u64, data: u64, count: usize, flags: u32) {
        context::current()?;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuStreamUpdateCaptureDependencies(stream, nodes as *mut CUgraphNode, edges(data), count, flags))
    }
    fn update_dependencies_v2 "cudaStreamUpdateCaptureDependencies_v2" | "cudaStreamUpdateCaptureDependencies_v2_ptsz"
        (stream: u64, nodes: u64, data: u64, count: usize, flags: u32) {
        context::current()?;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuStreamUpdateCaptureDependencies(stream, nodes as *mut CUgraphNode, edges(data), count, flags))
    }
    fn exchange_mode "cudaThreadExchangeStreamCaptureMode" (out: u64) {
        non_null(out)?;
        let mut wanted = mode(get::<u32>(out)?);
        cu!(cuThreadExchangeStreamCaptureMode(&mut wanted))?;
        put(out, wanted)
    }
}

/// Queries a stream's capture. `places` are the addresses of the outputs, zero if not requested: status, id, graph,
/// dependencies, edge data, their count. Outputs that the driver does not set are unchanged.
pub(crate) fn info(stream: cupyrite_sys::driver::CUstream, places: [u64; 6]) -> crate::errors::Res {
    let [status_at, id_at, graph_at, nodes_at, data_at, count_at] = places;
    non_null(status_at)?;
    context::current()?;
    let mut status = CUstreamCaptureStatus::default();
    let (mut id, mut count) = (0, 0usize);
    let mut graph: CUgraph = std::ptr::null_mut();
    let mut nodes: *const CUgraphNode = std::ptr::null();
    let mut data: *const CUgraphEdgeData = std::ptr::null();
    let told = if data_at == 0 {
        // Without a data array, the driver refuses the query if an edge has data.
        std::ptr::null_mut()
    } else {
        &raw mut data
    };
    let listed = if nodes_at == 0 {
        std::ptr::null_mut()
    } else {
        &raw mut nodes
    };
    cu!(cuStreamGetCaptureInfo(
        stream,
        &mut status,
        &mut id,
        &mut graph,
        listed,
        told,
        &mut count
    ))?;
    put(status_at, status)?;
    if status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE {
        put_optional(id_at, id)?;
        put_optional(graph_at, graph as u64)?;
        put_optional(nodes_at, nodes as u64)?;
        put_optional(data_at, data as u64)?;
        put_optional(count_at, count)?;
    }
    Ok(())
}

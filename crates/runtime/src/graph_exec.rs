//! Executable graphs: instantiation, launch, whole-graph updates. Flags, results and structures are the driver's.

use cupyrite_sys::driver::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUevent, CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo,
    CUgraphNode,
};

use crate::checked::{get, non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;
use crate::stream::handle;

fn instantiate(out: u64, graph: u64, flags: u64) -> Res {
    non_null(out)?;
    context::current()?;
    let mut exec: CUgraphExec = std::ptr::null_mut();
    cu!(cuGraphInstantiate(&mut exec, graph as CUgraph, flags))?;
    put(out, exec as u64)
}

runtime_entry_points! {
    fn graph_instantiate "cudaGraphInstantiate" (out: u64, graph: u64, flags: u64) {
        instantiate(out, graph, flags)
    }
    fn graph_instantiate_with_flags "cudaGraphInstantiateWithFlags" (out: u64, graph: u64, flags: u64) {
        instantiate(out, graph, flags)
    }
    fn graph_instantiate_with_params "cudaGraphInstantiateWithParams" | "cudaGraphInstantiateWithParams_ptsz"
        (out: u64, graph: u64, params: u64) {
        non_null(out)?;
        non_null(params)?;
        context::current()?;
        let mut wanted = get::<CUDA_GRAPH_INSTANTIATE_PARAMS>(params)?;
        let named = wanted.hUploadStream;
        wanted.hUploadStream = handle::<PER_THREAD>(named as u64);
        let mut exec: CUgraphExec = std::ptr::null_mut();
        let done = cu!(cuGraphInstantiateWithParams(&mut exec, graph as CUgraph, &mut wanted));
        wanted.hUploadStream = named;
        put(params, wanted)?;
        done?;
        put(out, exec as u64)
    }
    fn graph_launch "cudaGraphLaunch" | "cudaGraphLaunch_ptsz" (exec: u64, stream: u64) {
        context::current()?;
        cu!(cuGraphLaunch(exec as CUgraphExec, handle::<PER_THREAD>(stream)))
    }
    fn graph_upload "cudaGraphUpload" | "cudaGraphUpload_ptsz" (exec: u64, stream: u64) {
        context::current()?;
        cu!(cuGraphUpload(exec as CUgraphExec, handle::<PER_THREAD>(stream)))
    }
    fn exec_destroy "cudaGraphExecDestroy" (exec: u64) {
        cu!(cuGraphExecDestroy(exec as CUgraphExec))
    }
    fn exec_flags "cudaGraphExecGetFlags" (exec: u64, out: u64) {
        non_null(out)?;
        let mut flags = 0;
        cu!(cuGraphExecGetFlags(exec as CUgraphExec, &mut flags))?;
        put(out, flags)
    }
    fn exec_id "cudaGraphExecGetId" (exec: u64, out: u64) {
        non_null(out)?;
        let mut id = 0;
        cu!(cuGraphExecGetId(exec as CUgraphExec, &mut id))?;
        put(out, id)
    }
    fn exec_update "cudaGraphExecUpdate" (exec: u64, graph: u64, out: u64) {
        non_null(out)?;
        let mut told = CUgraphExecUpdateResultInfo::default();
        let done = cu!(cuGraphExecUpdate(exec as CUgraphExec, graph as CUgraph, &mut told));
        put(out, told)?;
        done
    }
    fn exec_child "cudaGraphExecChildGraphNodeSetParams" (exec: u64, node: u64, child: u64) {
        cu!(cuGraphExecChildGraphNodeSetParams(exec as CUgraphExec, node as CUgraphNode, child as CUgraph))
    }
    fn exec_event_record "cudaGraphExecEventRecordNodeSetEvent" (exec: u64, node: u64, event: u64) {
        cu!(cuGraphExecEventRecordNodeSetEvent(exec as CUgraphExec, node as CUgraphNode, event as CUevent))
    }
    fn exec_event_wait "cudaGraphExecEventWaitNodeSetEvent" (exec: u64, node: u64, event: u64) {
        cu!(cuGraphExecEventWaitNodeSetEvent(exec as CUgraphExec, node as CUgraphNode, event as CUevent))
    }
    fn node_set_enabled "cudaGraphNodeSetEnabled" (exec: u64, node: u64, enabled: u32) {
        cu!(cuGraphNodeSetEnabled(exec as CUgraphExec, node as CUgraphNode, enabled))
    }
    fn node_get_enabled "cudaGraphNodeGetEnabled" (exec: u64, node: u64, out: u64) {
        non_null(out)?;
        let mut enabled = 0;
        cu!(cuGraphNodeGetEnabled(exec as CUgraphExec, node as CUgraphNode, &mut enabled))?;
        put(out, enabled)
    }
}

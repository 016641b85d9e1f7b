//! Memory and semaphores of other APIs, and graph nodes that signal or wait: the driver's. Only descriptions of mipmapped
//! arrays have a layout of their own.

use cupyrite_sys::driver::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUdeviceptr,
    CUexternalMemory, CUexternalSemaphore, CUgraph, CUgraphExec, CUgraphNode, CUmipmappedArray,
};
use cupyrite_sys::runtime::{
    cudaExternalMemoryBufferDesc, cudaExternalMemoryHandleDesc,
    cudaExternalMemoryMipmappedArrayDesc, cudaExternalSemaphoreHandleDesc,
    cudaExternalSemaphoreSignalNodeParams, cudaExternalSemaphoreSignalParams,
    cudaExternalSemaphoreWaitNodeParams, cudaExternalSemaphoreWaitParams,
};

use crate::channel;
use crate::checked::{get, non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;
use crate::graph::{added, array};
use crate::stream::handle;

// The driver reads these structures from the caller's memory.
const _: () = {
    assert!(
        size_of::<cudaExternalMemoryHandleDesc>() == size_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>()
    );
    assert!(
        size_of::<cudaExternalMemoryBufferDesc>() == size_of::<CUDA_EXTERNAL_MEMORY_BUFFER_DESC>()
    );
    assert!(
        size_of::<cudaExternalSemaphoreHandleDesc>()
            == size_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>()
    );
    assert!(
        size_of::<cudaExternalSemaphoreSignalParams>()
            == size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>()
    );
    assert!(
        size_of::<cudaExternalSemaphoreWaitParams>()
            == size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>()
    );
    assert!(
        size_of::<cudaExternalSemaphoreSignalNodeParams>()
            == size_of::<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>()
    );
    assert!(
        size_of::<cudaExternalSemaphoreWaitNodeParams>()
            == size_of::<CUDA_EXT_SEM_WAIT_NODE_PARAMS>()
    );
};

/// The driver's description of a mapped mipmapped array.
fn mipmapped_desc(at: u64) -> Res<CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC> {
    let given = get::<cudaExternalMemoryMipmappedArrayDesc>(at)?;
    let (format, channels) = channel::to_driver(&given.formatDesc)?;
    Ok(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
        offset: given.offset,
        arrayDesc: CUDA_ARRAY3D_DESCRIPTOR {
            Width: given.extent.width,
            Height: given.extent.height,
            Depth: given.extent.depth,
            Format: format,
            NumChannels: channels,
            Flags: given.flags,
        },
        numLevels: given.numLevels,
        reserved: given.reserved,
    })
}

fn signal<const PER_THREAD: bool>(handles: u64, params: u64, count: u32, stream: u64) -> Res {
    context::current()?;
    cu!(cuSignalExternalSemaphoresAsync(
        array(handles),
        array(params),
        count,
        handle::<PER_THREAD>(stream)
    ))
}

fn wait<const PER_THREAD: bool>(handles: u64, params: u64, count: u32, stream: u64) -> Res {
    context::current()?;
    cu!(cuWaitExternalSemaphoresAsync(
        array(handles),
        array(params),
        count,
        handle::<PER_THREAD>(stream)
    ))
}

runtime_entry_points! {
    fn import_memory "cudaImportExternalMemory" (out: u64, desc: u64) {
        non_null(out)?;
        context::current()?;
        // The import takes the descriptor over, so that the driver stores the handle itself.
        cu!(cuImportExternalMemory(array(out), array(desc)))
    }
    fn mapped_buffer "cudaExternalMemoryGetMappedBuffer" (out: u64, memory: u64, desc: u64) {
        non_null(out)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        cu!(cuExternalMemoryGetMappedBuffer(&mut address, memory as CUexternalMemory, array(desc)))?;
        put(out, address).inspect_err(|_| {
            let _ = cu!(cuMemFree(address));
        })
    }
    fn mapped_mipmapped "cudaExternalMemoryGetMappedMipmappedArray" (out: u64, memory: u64, desc: u64) {
        non_null(out)?;
        non_null(desc)?;
        context::current()?;
        let desc = mipmapped_desc(desc)?;
        let mut mipmapped: CUmipmappedArray = std::ptr::null_mut();
        cu!(cuExternalMemoryGetMappedMipmappedArray(&mut mipmapped, memory as CUexternalMemory, &desc))?;
        put(out, mipmapped as u64).inspect_err(|_| {
            let _ = cu!(cuMipmappedArrayDestroy(mipmapped));
        })
    }
    fn destroy_memory "cudaDestroyExternalMemory" (memory: u64) {
        context::current()?;
        cu!(cuDestroyExternalMemory(memory as CUexternalMemory))
    }
    fn import_semaphore "cudaImportExternalSemaphore" (out: u64, desc: u64) {
        non_null(out)?;
        context::current()?;
        cu!(cuImportExternalSemaphore(array(out), array(desc)))
    }
    fn signal_semaphores "cudaSignalExternalSemaphoresAsync" | "cudaSignalExternalSemaphoresAsync_ptsz"
        (handles: u64, params: u64, count: u32, stream: u64) {
        signal::<PER_THREAD>(handles, params, count, stream)
    }
    fn signal_semaphores_v2 "cudaSignalExternalSemaphoresAsync_v2" | "cudaSignalExternalSemaphoresAsync_v2_ptsz"
        (handles: u64, params: u64, count: u32, stream: u64) {
        signal::<PER_THREAD>(handles, params, count, stream)
    }
    fn wait_semaphores "cudaWaitExternalSemaphoresAsync" | "cudaWaitExternalSemaphoresAsync_ptsz"
        (handles: u64, params: u64, count: u32, stream: u64) {
        wait::<PER_THREAD>(handles, params, count, stream)
    }
    fn wait_semaphores_v2 "cudaWaitExternalSemaphoresAsync_v2" | "cudaWaitExternalSemaphoresAsync_v2_ptsz"
        (handles: u64, params: u64, count: u32, stream: u64) {
        wait::<PER_THREAD>(handles, params, count, stream)
    }
    fn destroy_semaphore "cudaDestroyExternalSemaphore" (semaphore: u64) {
        context::current()?;
        cu!(cuDestroyExternalSemaphore(semaphore as CUexternalSemaphore))
    }
    fn add_signal "cudaGraphAddExternalSemaphoresSignalNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        added(out, |node| {
            cu!(cuGraphAddExternalSemaphoresSignalNode(node, graph as CUgraph, array(before), count, array(params)))
        })
    }
    fn add_wait "cudaGraphAddExternalSemaphoresWaitNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        added(out, |node| {
            cu!(cuGraphAddExternalSemaphoresWaitNode(node, graph as CUgraph, array(before), count, array(params)))
        })
    }
    fn signal_get "cudaGraphExternalSemaphoresSignalNodeGetParams" (node: u64, out: u64) {
        cu!(cuGraphExternalSemaphoresSignalNodeGetParams(node as CUgraphNode, array(out)))
    }
    fn wait_get "cudaGraphExternalSemaphoresWaitNodeGetParams" (node: u64, out: u64) {
        cu!(cuGraphExternalSemaphoresWaitNodeGetParams(node as CUgraphNode, array(out)))
    }
    fn signal_set "cudaGraphExternalSemaphoresSignalNodeSetParams" (node: u64, params: u64) {
        cu!(cuGraphExternalSemaphoresSignalNodeSetParams(node as CUgraphNode, array(params)))
    }
    fn wait_set "cudaGraphExternalSemaphoresWaitNodeSetParams" (node: u64, params: u64) {
        cu!(cuGraphExternalSemaphoresWaitNodeSetParams(node as CUgraphNode, array(params)))
    }
    fn exec_signal_set "cudaGraphExecExternalSemaphoresSignalNodeSetParams" (exec: u64, node: u64, params: u64) {
        cu!(cuGraphExecExternalSemaphoresSignalNodeSetParams(exec as CUgraphExec, node as CUgraphNode, array(params)))
    }
    fn exec_wait_set "cudaGraphExecExternalSemaphoresWaitNodeSetParams" (exec: u64, node: u64, params: u64) {
        cu!(cuGraphExecExternalSemaphoresWaitNodeSetParams(exec as CUgraphExec, node as CUgraphNode, array(params)))
    }
}

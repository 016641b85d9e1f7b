//! The functions of CUDA 12's `libcudart` that differ from CUDA 13's functions of the same names: in their parameters, in
//! the layout of structures, or because CUDA 13 has no such function. All others are the same in both.
//!
//! Belongs here: the conversion of parameters and structures. Does not belong here: the work, which the functions of
//! CUDA 13 do. The signatures are those of `cuda_runtime_api.h` of CUDA 12.9.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::sync::OnceLock;

use cupyrite_sys::driver::{CUDA_MEMCPY3D_BATCH_OP, CUgraph, CUgraphNode, CUmem_advise};
use cupyrite_sys::runtime::cudaDeviceProp_cuda12;

use crate::checked::{get, get_array, non_null, put};
use crate::entry::{EntryPoint, cu, runtime_entry_points};
use crate::graph::array;
use crate::stream::handle;
use crate::{
    capture, context, copy_batch, driver_access, event, graph_params, kernel, pointer, properties,
    surface, texture,
};

mod external;
mod layout;

/// The version of the runtime API whose functions these are, as 1000 × major + 10 × minor.
const VERSION: i32 = 12090;

/// Functions of CUDA 12 that CUDA 13 has under another name, with the same parameters. Most are second versions, of which
/// CUDA 13 has only the second, under the first one's name.
const RENAMED: &[(&str, &str)] = &[
    ("cudaEventElapsedTime_v2", "cudaEventElapsedTime"),
    ("cudaMemAdvise_v2", "cudaMemAdvise"),
    ("cudaMemPrefetchAsync_v2", "cudaMemPrefetchAsync"),
    ("cudaMemPrefetchAsync_v2_ptsz", "cudaMemPrefetchAsync_ptsz"),
    (
        "cudaSignalExternalSemaphoresAsync_v2",
        "cudaSignalExternalSemaphoresAsync",
    ),
    (
        "cudaSignalExternalSemaphoresAsync_v2_ptsz",
        "cudaSignalExternalSemaphoresAsync_ptsz",
    ),
    (
        "cudaWaitExternalSemaphoresAsync_v2",
        "cudaWaitExternalSemaphoresAsync",
    ),
    (
        "cudaWaitExternalSemaphoresAsync_v2_ptsz",
        "cudaWaitExternalSemaphoresAsync_ptsz",
    ),
    // The names before CUDA 4.0.
    ("cudaThreadExit", "cudaDeviceReset"),
    ("cudaThreadGetCacheConfig", "cudaDeviceGetCacheConfig"),
    ("cudaThreadGetLimit", "cudaDeviceGetLimit"),
    ("cudaThreadSetCacheConfig", "cudaDeviceSetCacheConfig"),
    ("cudaThreadSetLimit", "cudaDeviceSetLimit"),
    ("cudaThreadSynchronize", "cudaDeviceSynchronize"),
];

/// All entry points of this module by exported name.
fn table() -> &'static HashMap<&'static str, &'static EntryPoint> {
    static TABLE: OnceLock<HashMap<&'static str, &'static EntryPoint>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let entries = [ENTRIES, external::ENTRIES].into_iter().flatten();
        entries.map(|entry| (entry.name, entry)).collect()
    })
}

/// Address of CUDA 12's version of an exported function. Null if CUDA 12 uses the function of CUDA 13, and if no function has
/// that name.
pub(crate) fn get_proc(name: &CStr) -> *const c_void {
    let Ok(name) = name.to_str() else {
        return std::ptr::null();
    };
    if let Some(entry) = table().get(name) {
        return entry.address;
    }
    match RENAMED.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => crate::address_of(new),
        None => std::ptr::null(),
    }
}

/// Names of functions that this module implements, in no particular order. Those of `external` are implemented where CUDA
/// 13's functions are.
pub(crate) fn implemented() -> impl Iterator<Item = &'static str> {
    let own = ENTRIES.iter().map(|entry| entry.name);
    let renamed = RENAMED.iter();
    let renamed = renamed.filter(|(_, new)| crate::table().contains_key(new));
    own.chain(renamed.map(|(old, _)| *old))
}

runtime_entry_points! {
    fn runtime_get_version "cudaRuntimeGetVersion" (out: u64) {
        non_null(out)?;
        put(out, VERSION)
    }
    fn get_entry_point "cudaGetDriverEntryPoint" | "cudaGetDriverEntryPoint_ptsz"
        (name: u64, out: u64, flags: u64, status: u64) {
        driver_access::newest_entry_point(name, out, VERSION, flags, status, PER_THREAD)
    }

    // Structures that CUDA 13 changed.

    /// The layout of CUDA 11, which is the beginning of CUDA 12's. Programs of CUDA 12 call `cudaGetDeviceProperties_v2`.
    fn get_properties "cudaGetDeviceProperties" (out: u64, ordinal: i32) {
        non_null(out)?;
        let properties = properties::properties_cuda12(context::device(ordinal)?)?;
        const SIZE: usize = offset_of!(cudaDeviceProp_cuda12, hostRegisterSupported);
        layout::put_beginning::<SIZE, _>(out, &properties)
    }
    fn choose_device "cudaChooseDevice" (out: u64, wanted: u64) {
        non_null(out)?;
        let wanted = get::<cudaDeviceProp_cuda12>(wanted)?;
        properties::choose(out, &properties::requirements_cuda12(&wanted))
    }
    fn pointer_get_attributes "cudaPointerGetAttributes" (out: u64, address: u64) {
        non_null(out)?;
        put(out, layout::pointer_attributes(&pointer::attributes(address)?))
    }
    /// The two members that CUDA 13 added are reserved in CUDA 12.
    fn func_get_attributes "cudaFuncGetAttributes" (out: u64, func: u64) {
        non_null(out)?;
        let mut attributes = kernel::attributes(func)?;
        attributes.deviceNodeUpdateStatus = 0;
        attributes.sharedMemoryMode = Default::default();
        put(out, attributes)
    }
    fn texture_create "cudaCreateTextureObject" (out: u64, resource: u64, texture: u64, view: u64) {
        non_null(out)?;
        non_null(resource)?;
        non_null(texture)?;
        context::current()?;
        let resource = layout::resource(&get(resource)?);
        let view = match view {
            0 => None,
            _ => Some(layout::view_to_driver(&get(view)?)),
        };
        texture::create(out, &resource, texture, view)
    }
    fn texture_resource "cudaGetTextureObjectResourceDesc" (out: u64, object: u64) {
        non_null(out)?;
        put(out, layout::resource_cuda12(&texture::resource_of(object)?))
    }
    fn texture_view "cudaGetTextureObjectResourceViewDesc" (out: u64, object: u64) {
        non_null(out)?;
        put(out, layout::view_from_driver(&texture::view_of(object)?))
    }
    fn surface_create "cudaCreateSurfaceObject" (out: u64, resource: u64) {
        non_null(out)?;
        non_null(resource)?;
        context::current()?;
        surface::create(out, &layout::resource(&get(resource)?))
    }
    fn surface_resource "cudaGetSurfaceObjectResourceDesc" (out: u64, object: u64) {
        non_null(out)?;
        put(out, layout::resource_cuda12(&surface::resource_of(object)?))
    }

    // Functions without the parameters that CUDA 13 added. CUDA 12 has those with them under names that end in `_v2`.

    fn event_elapsed_time "cudaEventElapsedTime" (out: u64, start: u64, end: u64) {
        event::elapsed(out, start, end, |milliseconds, start, end| {
            cu!(cuEventElapsedTime_cuda12(milliseconds, start, end))
        })
    }
    fn mem_advise "cudaMemAdvise" (address: u64, count: usize, advice: u32, device: i32) {
        context::current()?;
        cu!(cuMemAdvise_cuda12(address, count, CUmem_advise(advice as _), device))
    }
    fn mem_prefetch "cudaMemPrefetchAsync" | "cudaMemPrefetchAsync_ptsz"
        (address: u64, count: usize, device: i32, stream: u64) {
        context::current()?;
        cu!(cuMemPrefetchAsync_cuda12(address, count, device, handle::<PER_THREAD>(stream)))
    }
    fn graph_add_node "cudaGraphAddNode" (out: u64, graph: u64, before: u64, count: usize, params: u64) {
        graph_params::add_generic(out, graph, before, 0, count, params)
    }
    fn graph_add_dependencies "cudaGraphAddDependencies" (graph: u64, from: u64, to: u64, count: usize) {
        cu!(cuGraphAddDependencies_cuda12(graph as CUgraph, array(from), array(to), count))
    }
    fn graph_remove_dependencies "cudaGraphRemoveDependencies" (graph: u64, from: u64, to: u64, count: usize) {
        cu!(cuGraphRemoveDependencies_cuda12(graph as CUgraph, array(from), array(to), count))
    }
    fn graph_get_edges "cudaGraphGetEdges" (graph: u64, from: u64, to: u64, count: u64) {
        cu!(cuGraphGetEdges_cuda12(graph as CUgraph, array(from), array(to), array(count)))
    }
    fn graph_dependencies "cudaGraphNodeGetDependencies" (node: u64, nodes: u64, count: u64) {
        cu!(cuGraphNodeGetDependencies_cuda12(node as CUgraphNode, array(nodes), array(count)))
    }
    fn graph_dependent_nodes "cudaGraphNodeGetDependentNodes" (node: u64, nodes: u64, count: u64) {
        cu!(cuGraphNodeGetDependentNodes_cuda12(node as CUgraphNode, array(nodes), array(count)))
    }
    /// The first version. CUDA 12's header names the second one.
    fn capture_info "cudaStreamGetCaptureInfo" | "cudaStreamGetCaptureInfo_ptsz" (stream: u64, status: u64, id: u64) {
        capture::info(handle::<PER_THREAD>(stream), [status, id, 0, 0, 0, 0])
    }
    fn update_dependencies
        "cudaStreamUpdateCaptureDependencies" | "cudaStreamUpdateCaptureDependencies_ptsz"
        (stream: u64, nodes: u64, count: usize, flags: u32) {
        context::current()?;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuStreamUpdateCaptureDependencies_cuda12(stream, array(nodes), count, flags))
    }

    // Functions with a parameter that CUDA 13 dropped: the index of the operation that failed.

    fn memcpy_batch "cudaMemcpyBatchAsync" | "cudaMemcpyBatchAsync_ptsz"
        (to: u64, from: u64, sizes: u64, count: usize, attributes: u64, indices: u64, n: usize, failed: u64,
         stream: u64) {
        context::current()?;
        let mut batch = copy_batch::Batch::read(to, from, sizes, count, attributes, indices, n)?;
        cu!(cuMemcpyBatchAsync_cuda12(
            batch.to.as_mut_ptr(), batch.from.as_mut_ptr(), batch.sizes.as_mut_ptr(), count,
            batch.attributes.as_mut_ptr(), batch.indices.as_mut_ptr(), n, array(failed), handle::<PER_THREAD>(stream)
        ))
    }
    fn memcpy_3d_batch "cudaMemcpy3DBatchAsync" | "cudaMemcpy3DBatchAsync_ptsz"
        (count: usize, operations: u64, failed: u64, flags: u64, stream: u64) {
        context::current()?;
        let mut operations = get_array::<CUDA_MEMCPY3D_BATCH_OP>(operations, count)?;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuMemcpy3DBatchAsync_cuda12(count, operations.as_mut_ptr(), array(failed), flags, stream))
    }

    // Functions that CUDA 13 dropped.

    /// Rounds a number for devices without arithmetic of double precision. All devices have it, so the number is unchanged.
    fn double_for_device "cudaSetDoubleForDevice" (number: u64) {
        non_null(number)
    }
    /// The opposite of `cudaSetDoubleForDevice`.
    fn double_for_host "cudaSetDoubleForHost" (number: u64) {
        non_null(number)
    }
}

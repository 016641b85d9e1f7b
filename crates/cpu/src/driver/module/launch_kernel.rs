//! The entry points that launch kernels, and the attributes of a launch.

use std::sync::{Arc, OnceLock};

use cupyrite_sys::driver::{
    CUclusterSchedulingPolicy as Policy, CUlaunchAttribute, CUlaunchAttributeID as Attribute,
    CUlaunchAttributeValue, CUlaunchConfig,
};

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::graph;
use crate::driver::module::launch::{Given, Launch, LaunchConfig, shape};
use crate::driver::stream::capture_state;
use crate::driver::stream::event;
use crate::driver::stream::queue;
use crate::driver::stream::resolve;
use crate::driver::stream::{self, OpPlacement};

/// Whether `CUDA_LAUNCH_BLOCKING` makes launches synchronous.
fn blocking() -> bool {
    static BLOCKING: OnceLock<bool> = OnceLock::new();
    *BLOCKING.get_or_init(|| std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|v| v == "1"))
}

/// Launches a kernel in a stream, or records the launch if the stream is captured. Returns the stream.
pub(crate) fn launch(
    handle: u64,
    config: LaunchConfig,
    stream: u64,
    per_thread: bool,
    given: Given<'_>,
    attributes: &[CUlaunchAttribute],
) -> Res<Arc<stream::Stream>> {
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    let launch = Launch::prepare(handle, &stream.context, config, given)
        .and_then(|launch| launch.check_explicit_clusters().map(|()| launch));
    // A failed launch would be missing from the graph.
    let launch = launch.inspect_err(|_| capture_state::invalidate(&stream))?;
    if capture_state::is_capturing(&stream)? {
        if launch.function.kernel.uses_references() {
            capture_state::invalidate(&stream);
            return refuse(Code::STREAM_CAPTURE_UNSUPPORTED, || {
                "the kernel uses texture or surface references, which graphs do not support; use objects".into()
            });
        }
        let node = graph::Kernel::captured(launch, attributes);
        graph::capture::record(&stream, graph::Payload::Kernel(node))?;
        return Ok(stream);
    }
    if launch.function.kernel.launches_graphs() {
        return refuse(Code::NOT_SUPPORTED, || {
            "the kernel launches graphs, which only kernels of a graph can do; add it to a graph and launch that".into()
        });
    }
    if blocking() {
        queue::check_may_wait()?;
    }
    stream.enqueue(&[], OpPlacement::Worker, move |_| launch.run());
    if blocking() {
        stream.synchronize()?;
    }
    Ok(stream)
}

/// The launch attributes that have an effect.
#[derive(Default)]
pub(crate) struct Attributes {
    cooperative: bool,
    /// Cluster dimensions in blocks.
    pub(crate) cluster: Option<[u32; 3]>,
    /// Events to record when the grid is done; CUDA allows recording later than the requested moment.
    events: Vec<u64>,
    /// All attributes, for the kernel node of a captured launch.
    raw: Vec<CUlaunchAttribute>,
}

/// The dimensions of a cluster in an attribute; `None` for zeros.
pub(crate) fn cluster_dimensions(value: &CUlaunchAttributeValue) -> Res<Option<[u32; 3]>> {
    // SAFETY: integers, for which any bits are valid; both members for clusters have the same fields.
    let dims = unsafe { value.clusterDim };
    let dims = [dims.x, dims.y, dims.z];
    match dims {
        [0, 0, 0] => Ok(None),
        _ if dims.contains(&0) => refuse(Code::INVALID_CLUSTER_SIZE, || {
            format!(
                "the cluster has {} blocks; the dimensions must all be zero or all be positive",
                shape(dims)
            )
        }),
        _ => Ok(Some(dims)),
    }
}

pub(crate) fn attributes(address: u64, count: u32) -> Res<Attributes> {
    let mut found = Attributes::default();
    if count == 0 {
        return Ok(found);
    }
    if count > 1024 {
        return Err(Code::INVALID_VALUE);
    }
    non_null(address)?;
    found.raw = get_array::<CUlaunchAttribute>(address, count as usize)?;
    let mut preferred = None;
    for CUlaunchAttribute { id, value, .. } in &found.raw {
        match *id {
            Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => {
                // SAFETY: an integer, for which any bits are valid.
                found.cooperative = unsafe { value.cooperative } != 0;
            }
            Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                found.cluster = cluster_dimensions(value)?;
            }
            // A preference, which the device may ignore if the launch names clusters as well.
            Attribute::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
                preferred = cluster_dimensions(value)?;
            }
            Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
                // SAFETY: an integer, for which any bits are valid.
                let policy = unsafe { value.clusterSchedulingPolicyPreference };
                if policy > Policy::CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING {
                    return Err(Code::INVALID_VALUE);
                }
            }
            Attribute::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
            | Attribute::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                // SAFETY: any bits are a handle, with which both members begin.
                let event = unsafe { value.launchCompletionEvent.event };
                if event.is_null() {
                    return Err(Code::INVALID_HANDLE);
                }
                found.events.push(event.addr() as u64);
            }
            // Nodes updated from the device.
            Attribute::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
                return Err(Code::NOT_SUPPORTED);
            }
            // Hints: access policy windows, priorities, memory domains, carve-outs, overlap.
            Attribute::CU_LAUNCH_ATTRIBUTE_IGNORE
            | Attribute::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | Attribute::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
            | Attribute::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            | Attribute::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | Attribute::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            | Attribute::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
            | Attribute::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE
            | Attribute::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE => {}
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    if preferred.is_some_and(|dims| dims != [1; 3]) && found.cluster.is_none() {
        return refuse(Code::INVALID_CLUSTER_SIZE, || {
            "CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION requires CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION".into()
        });
    }
    Ok(found)
}

driver_entry_points! {
    fn launch_kernel "cuLaunchKernel" | "cuLaunchKernel_ptsz"
        (f: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64, params: u64, extra: u64) {
        let config =
            LaunchConfig { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared: shared, cooperative: false, cluster: None };
        launch(f, config, stream, PER_THREAD, Given::Caller(params, extra), &[]).map(|_| ())
    }
    fn launch_cooperative "cuLaunchCooperativeKernel" | "cuLaunchCooperativeKernel_ptsz"
        (f: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64, params: u64) {
        let config = LaunchConfig { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared: shared, cooperative: true, cluster: None };
        launch(f, config, stream, PER_THREAD, Given::Caller(params, 0), &[]).map(|_| ())
    }
    fn launch_kernel_ex "cuLaunchKernelEx" | "cuLaunchKernelEx_ptsz" (config: u64, f: u64, params: u64, extra: u64) {
        non_null(config)?;
        let given = get::<CUlaunchConfig>(config)?;
        let found = attributes(given.attrs.addr() as u64, given.numAttrs)?;
        let config = LaunchConfig {
            grid: [given.gridDimX, given.gridDimY, given.gridDimZ],
            block: [given.blockDimX, given.blockDimY, given.blockDimZ],
            dynamic_shared: given.sharedMemBytes,
            cooperative: found.cooperative,
            cluster: found.cluster,
        };
        for event in &found.events {
            event::check(*event)?;
        }
        let stream = launch(f, config, given.hStream.addr() as u64, PER_THREAD, Given::Caller(params, extra), &found.raw)?;
        for event in found.events {
            event::record_in(event, &stream)?;
        }
        Ok(())
    }
}

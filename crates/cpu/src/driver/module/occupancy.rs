//! Occupancy: the number of a function's blocks that fit on a multiprocessor.
//!
//! The model is that of the CUDA occupancy calculator: threads, blocks, registers and shared memory, each with its
//! allocation granularity. It reports the occupancy on a GPU of the presented compute capability; the host processor
//! has no such limits.

use std::sync::Arc;

use cupyrite_sys::driver::CUlaunchConfig;

use crate::driver::device::attributes::{
    MAX_REGISTERS_PER_THREAD, MAX_THREADS_PER_BLOCK, REGISTERS_PER_SM, WARP,
};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, is_executable_address, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::module::cluster;
use crate::driver::module::function::{self, Function};
use crate::driver::module::launch_kernel;

/// Allocation granularity of registers, per warp.
const REGISTER_UNIT: u32 = 256;
const SHARED_UNIT: u64 = 128;
/// Blocks of clusters that a multiprocessor of an H100 holds at most.
const CLUSTERED_BLOCKS: u32 = 8;

/// Number of blocks of `threads` threads with `dynamic` bytes of shared memory that fit on one multiprocessor.
pub(crate) fn blocks_per_sm(f: &Function, threads: u32, dynamic: u64) -> Res<u32> {
    let sm = f.device()?.multiprocessor();
    if threads > f.kernel.max_threads_per_block.min(MAX_THREADS_PER_BLOCK) {
        return Ok(0);
    }
    let warps = threads.div_ceil(WARP).max(1);
    let by_threads = sm.threads / WARP / warps;
    let registers = f.kernel.num_regs().clamp(1, MAX_REGISTERS_PER_THREAD);
    let per_warp = (registers * WARP).next_multiple_of(REGISTER_UNIT);
    // The register count is an estimate: it may limit the number of blocks, but not to zero.
    let by_registers = (REGISTERS_PER_SM / per_warp / warps).max(1);
    let shared = u64::from(f.kernel.static_shared()).saturating_add(dynamic);
    if shared > u64::from(sm.shared_optin) {
        return Ok(0);
    }
    let shared = (shared + u64::from(sm.shared_reserved)).next_multiple_of(SHARED_UNIT);
    let by_shared = match shared {
        0 => sm.blocks,
        _ => (u64::from(sm.shared) / shared) as u32,
    };
    Ok(by_threads.min(by_registers).min(by_shared).min(sm.blocks))
}

fn active_blocks(out: u64, handle: u64, threads: i32, dynamic: u64, flags: u32) -> Res {
    non_null(out)?;
    if threads <= 0 || flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let f = function::find(handle)?;
    put(out, blocks_per_sm(&f, threads as u32, dynamic)? as i32)
}

type SharedOfBlock = unsafe extern "C" fn(i32) -> usize;

fn best_block(
    out: (u64, u64),
    handle: u64,
    callback: u64,
    dynamic: u64,
    limit: i32,
    flags: u32,
) -> Res {
    non_null(out.0)?;
    non_null(out.1)?;
    if flags > 1 || limit < 0 || (callback != 0 && !is_executable_address(callback)) {
        return Err(Code::INVALID_VALUE);
    }
    let f = function::find(handle)?;
    let most = f.kernel.max_threads_per_block.min(MAX_THREADS_PER_BLOCK);
    let most = if limit == 0 {
        most
    } else {
        most.min(limit as u32)
    };
    let (mut best, mut best_blocks, mut best_threads) = (0, 0, 0);
    let mut threads = most;
    // From the largest size downwards in steps of a warp; the first with the most resident threads wins.
    while threads > 0 {
        let dynamic = if callback == 0 {
            dynamic
        } else {
            // SAFETY: the caller passed the address, which is executable, as a function of this type.
            unsafe { std::mem::transmute::<u64, SharedOfBlock>(callback)(threads as i32) as u64 }
        };
        let blocks = blocks_per_sm(&f, threads, dynamic)?;
        if blocks * threads > best {
            (best, best_blocks, best_threads) = (blocks * threads, blocks, threads);
        }
        let step = if threads % WARP == 0 {
            WARP
        } else {
            threads % WARP
        };
        threads -= step;
    }
    put(out.0, best_blocks as i32 * f.device()?.threads)?;
    put(out.1, best_threads as i32)
}

/// The function, its resident blocks of a multiprocessor and the dimensions of its clusters in the configuration of an
/// occupancy query.
///
/// # Errors
/// `NOT_SUPPORTED` on a device without clusters, `INVALID_CLUSTER_SIZE` as for a launch.
fn clustered(out: u64, handle: u64, config: u64) -> Res<(Arc<Function>, u32, Option<[u32; 3]>)> {
    non_null(out)?;
    non_null(config)?;
    let f = function::find(handle)?;
    if !f.device()?.has_clusters() {
        return Err(Code::NOT_SUPPORTED);
    }
    let given = get::<CUlaunchConfig>(config)?;
    let attributes = launch_kernel::attributes(given.attrs.addr() as u64, given.numAttrs)?;
    let grid = [given.gridDimX, given.gridDimY, given.gridDimZ];
    let dims = cluster::resolve(&f, grid, attributes.cluster)?;
    cluster::check_explicit(&f, dims)?;
    let threads = [given.blockDimX, given.blockDimY, given.blockDimZ];
    let threads = threads.iter().fold(1, |n: u32, &d| n.saturating_mul(d));
    let dynamic = i64::from(given.sharedMemBytes);
    let resident = match dynamic > i64::from(f.max_dynamic_shared()) {
        true => 0,
        false => blocks_per_sm(&f, threads, given.sharedMemBytes.into())?,
    };
    Ok((f, resident, dims))
}

driver_entry_points! {
    fn occupancy_active_blocks "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        (out: u64, handle: u64, threads: i32, dynamic: u64) {
        active_blocks(out, handle, threads, dynamic, 0)
    }
    fn occupancy_active_blocks_flags "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
        (out: u64, handle: u64, threads: i32, dynamic: u64, flags: u32) {
        active_blocks(out, handle, threads, dynamic, flags)
    }
    fn occupancy_block_size "cuOccupancyMaxPotentialBlockSize"
        (grid: u64, block: u64, handle: u64, callback: u64, dynamic: u64, limit: i32) {
        best_block((grid, block), handle, callback, dynamic, limit, 0)
    }
    fn occupancy_block_size_flags "cuOccupancyMaxPotentialBlockSizeWithFlags"
        (grid: u64, block: u64, handle: u64, callback: u64, dynamic: u64, limit: i32, flags: u32) {
        best_block((grid, block), handle, callback, dynamic, limit, flags)
    }
    fn occupancy_available_shared "cuOccupancyAvailableDynamicSMemPerBlock"
        (out: u64, handle: u64, blocks: i32, threads: i32) {
        non_null(out)?;
        if blocks <= 0 || threads <= 0 {
            return Err(Code::INVALID_VALUE);
        }
        let f = function::find(handle)?;
        let sm = f.device()?.multiprocessor();
        if blocks as u32 > blocks_per_sm(&f, threads as u32, 0)? {
            return Err(Code::INVALID_VALUE);
        }
        let share = (u64::from(sm.shared) / blocks as u64) & !(SHARED_UNIT - 1);
        let free = share.saturating_sub(u64::from(sm.shared_reserved) + u64::from(f.kernel.static_shared()));
        put(out, free.min(u64::from(sm.shared_optin.saturating_sub(f.kernel.static_shared()))))
    }
    fn occupancy_cluster_size "cuOccupancyMaxPotentialClusterSize" (out: u64, handle: u64, config: u64) {
        let (f, resident, _) = clustered(out, handle, config)?;
        put(out, if resident == 0 { 0 } else { cluster::most_of_device(&f) as i32 })
    }
    fn occupancy_active_clusters "cuOccupancyMaxActiveClusters" (out: u64, handle: u64, config: u64) {
        let (f, resident, dims) = clustered(out, handle, config)?;
        let Some(dims) = dims.filter(|_| resident > 0) else {
            return put(out, 0);
        };
        let blocks = resident.min(CLUSTERED_BLOCKS) * f.device()?.threads as u32;
        // Unlike on a GPU, the blocks of a cluster can share a multiprocessor.
        put(out, (blocks / dims.iter().product::<u32>()).max(1) as i32)
    }
}

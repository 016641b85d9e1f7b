//! Grid launches: the clusters of a grid are handed to the worker threads in small chunks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use cupyrite_ptx::ir::Special;
use parking_lot::Mutex;

use super::aligned::zeroed_lines;
use super::block::BlockStop;
use super::cluster::Cluster;
use super::launch_config::LaunchConfig;
use super::launch_state::{GraphLauncher, Launch, thread_indices};
use super::memory::host;
use super::memory::model::MemoryModel;
use super::thread_pool;
use super::tier::Tier;
use super::worker::WorkerState;
use crate::build::PaddedVariable;
use crate::bytecode::Program;
use crate::fault::{Fault, FaultKind};
use crate::limits::{MAX_CLUSTER, MAX_LOCAL, MAX_SHARED, RESERVED_SHARED, RESERVED_SHARED_IN_USE};
use crate::memory::{AddressSpace, RegionKind};
use crate::register_file::{fixed, run_prologue};
use crate::semantics::lane::Slot;

/// Blocks of a launch that may be in progress at once.
const MAX_RESIDENT: u64 = 2048;

/// Sleeps until `time`.
fn sleep_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// Memory that is freed when the launch ends.
struct ScopedAllocation<'a> {
    space: &'a AddressSpace,
    base: u64,
}

impl Drop for ScopedAllocation<'_> {
    fn drop(&mut self) {
        // `base` was allocated from `space` and is freed only here.
        let _ = self.space.free(self.base);
    }
}

/// Hands the clusters of a launch to its workers.
struct Scheduler<'a> {
    launch: Launch<'a>,
    /// Whether every cluster must make progress, because others may wait for it.
    cooperative: bool,
    /// Clusters that may be in progress before others start.
    resident: u64,
    /// Number of clusters.
    total: u64,
    /// Clusters that a worker takes at once.
    chunk: u64,
    /// First cluster that no worker has taken.
    next: AtomicU64,
    /// Clusters that have yielded.
    parked: Mutex<VecDeque<Box<Cluster>>>,
    /// Approximate length of `parked`.
    waiting: AtomicU64,
}

impl Scheduler<'_> {
    /// Runs clusters until none is left for this worker.
    fn work<T: Tier, M: MemoryModel>(&self, number: u32, worker: &mut WorkerState<M>, model: &M) {
        let launch = &self.launch;
        let mut spare: Option<Box<Cluster>> = None;
        let (mut from, mut to) = (0, 0);
        let mut is_first = true;
        // Clusters that this worker has found asleep since it last ran one, and when the first of them wakes.
        let mut asleep: (usize, Option<Instant>) = (0, None);
        loop {
            if launch.is_stopped() {
                return;
            }
            let mut cluster = None;
            if from == to && !is_first {
                T::during_launch::<M>(launch.program, launch.start);
            }
            is_first = false;
            if from == to
                && (self.cooperative || self.waiting.load(Ordering::Relaxed) < self.resident)
            {
                from = self
                    .next
                    .fetch_add(self.chunk, Ordering::Relaxed)
                    .min(self.total);
                to = (from + self.chunk).min(self.total);
            }
            if from < to {
                let mut c = spare
                    .take()
                    .unwrap_or_else(|| Box::new(Cluster::new(launch)));
                c.reset(launch, from, number);
                from += 1;
                cluster = Some(c);
            }
            let is_new = cluster.is_some();
            let next = cluster.or_else(|| {
                let mut parked = self.parked.lock();
                let c = parked.pop_front();
                self.waiting.store(parked.len() as u64, Ordering::Relaxed);
                c
            });
            let Some(mut cluster) = next else {
                return;
            };
            worker.refresh(launch.space);
            loop {
                let stop = cluster.run::<T, M>(launch, worker, model);
                asleep = match stop {
                    BlockStop::Sleep(time) if !is_new => {
                        (asleep.0 + 1, Some(asleep.1.map_or(time, |t| t.min(time))))
                    }
                    _ => (0, None),
                };
                match stop {
                    BlockStop::Done => {
                        spare = Some(cluster);
                        if launch.runtime.is_some_and(|r| !r.make_progress()) {
                            launch.stopped.store(true, Ordering::Relaxed);
                            return;
                        }
                    }
                    BlockStop::Fault | BlockStop::Blocked => return,
                    BlockStop::Yield | BlockStop::Sleep(_) => {
                        // The block may wait for what it launched.
                        if launch.runtime.is_some_and(|r| !r.make_progress()) {
                            launch.stopped.store(true, Ordering::Relaxed);
                            return;
                        }
                        let mut parked = self.parked.lock();
                        let more = from < to
                            || !parked.is_empty()
                            || self.next.load(Ordering::Relaxed) < self.total;
                        if !more {
                            drop(parked);
                            // The last cluster of this worker sleeps or waits for a cluster of another worker.
                            match stop {
                                BlockStop::Sleep(time) => sleep_until(time),
                                _ => std::thread::yield_now(),
                            }
                            if launch.is_stopped() {
                                return;
                            }
                            worker.refresh(launch.space);
                            continue;
                        }
                        parked.push_back(cluster);
                        let count = parked.len();
                        self.waiting.store(count as u64, Ordering::Relaxed);
                        drop(parked);
                        if let Some(time) = asleep.1.filter(|_| asleep.0 >= count) {
                            sleep_until(time);
                            asleep = (0, None);
                        } else if !is_new {
                            std::thread::yield_now();
                        }
                    }
                }
                break;
            }
        }
    }
}

/// The fault of a launch that does not fit.
pub fn refuse(text: String) -> Fault {
    Fault::plain(
        FaultKind::LaunchOutOfResources,
        format!("cupyrite: {text}\n"),
    )
}

/// Writes the launch-wide special registers to the template of the register files.
fn set_launch_specials(
    program: &Program,
    file: &mut [u8],
    config: &LaunchConfig<'_>,
    cluster: Option<[u32; 3]>,
    shared: u32,
    warps: u32,
    workspace: u64,
) {
    let size = cluster.unwrap_or([1; 3]);
    // A multiple of the unit in which a GPU allocates shared memory.
    let own_shared = u64::from(shared - program.reserved_shared).next_multiple_of(128);
    for s in &program.file.launch_specials {
        let v: u64 = match s.special {
            Special::Ntid(a) => u64::from(config.block[usize::from(a) % 3]),
            Special::Nctaid(a) => u64::from(config.grid[usize::from(a) % 3]),
            Special::NClusterId(a) => {
                let a = usize::from(a) % 3;
                u64::from(config.grid[a] / size[a])
            }
            Special::NWarpId => u64::from(warps),
            Special::NSmId => thread_pool::threads() as u64,
            Special::GridId => config.grid_id,
            Special::CurrentGraphExec => config.graph.map_or(0, GraphLauncher::current),
            Special::ClusterNCtaId(a) => u64::from(size[usize::from(a) % 3]),
            Special::ClusterNCtaRank => u64::from(size.iter().product::<u32>()),
            // A predicate of all lanes.
            Special::IsExplicitCluster if cluster.is_some() => u64::from(u32::MAX),
            Special::DynamicSmemSize => u64::from(config.dynamic_shared),
            Special::TotalSmemSize => own_shared,
            Special::AggrSmemSize => own_shared + u64::from(RESERVED_SHARED),
            Special::ReservedSmemOffset(n) => match n {
                // As on an H100: cooperative groups have their 288 bytes, which begin at `_1`, and the rest is not used.
                0..=2 => 0,
                3 => u64::from(RESERVED_SHARED_IN_USE),
                _ => u64::from(RESERVED_SHARED),
            },
            // Address of the state of the grid-wide barrier.
            Special::EnvReg(1) => workspace >> 32,
            Special::EnvReg(2) => workspace & 0xffff_ffff,
            Special::LaneId
            | Special::LaneMaskEq
            | Special::LaneMaskLe
            | Special::LaneMaskLt
            | Special::LaneMaskGe
            | Special::LaneMaskGt => continue,
            _ => 0,
        };
        s.slot.broadcast(file, s.at, u128::from(v));
    }
}

/// Executes the loads that run once per launch.
fn hoisted_loads(program: &Program, file: &mut [u8], params: &[u8]) {
    for e in &program.file.hoisted_loads {
        let n = e.size.min(16) as usize;
        let mut bytes = [0u8; 16];
        if e.absolute {
            // SAFETY: the compiler has checked that the range lies in a constant variable of the kernel's image, with its
            // padding. The image outlives the launch.
            unsafe { host::copy_out(e.from, &mut bytes[..n]) };
        } else {
            // Zeros behind the last parameter.
            let rest = params.get(e.from as usize..).unwrap_or(&[]);
            let n = n.min(rest.len());
            bytes[..n].copy_from_slice(&rest[..n]);
        }
        let mut v = u128::from_le_bytes(bytes);
        if e.signed && n < 16 {
            let shift = 128 - 8 * n as u32;
            v = ((v << shift) as i128 >> shift) as u128;
        }
        if e.narrow {
            v &= 0xffff;
        }
        e.to.slot.broadcast(file, e.to.at, v);
    }
}

/// Checks the dimensions of the clusters of a launch.
fn check_clusters(config: &LaunchConfig<'_>, cluster: [u32; 3]) -> Result<(), Fault> {
    let blocks = cluster
        .iter()
        .fold(1, |n: u64, &dim| n.saturating_mul(dim.into()));
    if blocks == 0 || blocks > u64::from(MAX_CLUSTER) {
        return Err(refuse(format!(
            "a cluster of {blocks} blocks; the number must be 1 to {MAX_CLUSTER}"
        )));
    }
    let divides = |a: usize| config.grid[a].is_multiple_of(cluster[a]);
    if !(0..3).all(divides) {
        return Err(refuse(format!(
            "a grid of {:?} blocks; the dimensions must be multiples of those of the cluster, {cluster:?}",
            config.grid
        )));
    }
    Ok(())
}

/// Runs a grid of a program whose variables are in `space`, in clusters of one block unless the launch names their dimensions.
/// The caller has checked the size of the block and of the parameter bank against the kernel.
///
/// # Errors
/// The first fault of any thread; [`FaultKind::LaunchOutOfResources`] if a block or cluster does not fit.
pub fn run_grid<T: Tier, M: MemoryModel>(
    program: &Program,
    space: &AddressSpace,
    config: &LaunchConfig<'_>,
    cluster: Option<[u32; 3]>,
    model: &M,
) -> Result<(), Fault> {
    if let Some(cluster) = cluster {
        check_clusters(config, cluster)?;
    }
    let count = |d: [u32; 3]| d.iter().try_fold(1u64, |n, &x| n.checked_mul(u64::from(x)));
    let blocks = count(config.grid).unwrap_or(0);
    if blocks == 0 {
        return Err(refuse("the number of blocks must be 1 to 2^64 - 1".into()));
    }
    let shared = u64::from(program.dynamic_shared_at) + u64::from(config.dynamic_shared);
    let own_shared = shared - u64::from(program.reserved_shared);
    if own_shared > u64::from(MAX_SHARED) {
        return Err(refuse(format!(
            "{own_shared} bytes of shared memory per block; the limit is {MAX_SHARED}"
        )));
    }
    let size = cluster.unwrap_or([1; 3]);
    let cluster_blocks: u32 = size.iter().product();
    let total = blocks / u64::from(cluster_blocks);
    let _pin = space.pin();
    let shared = shared as u32;
    let threads: u32 = config.block.iter().product();
    let warps = threads.div_ceil(32);

    let mut owned = Vec::new();
    let mut allocate = |bytes: u64| -> Result<u64, Fault> {
        let base = space
            .alloc(bytes, 256, RegionKind::Internal)
            .map_err(|e| refuse(format!("cannot allocate memory for the launch: {e}")))?;
        owned.push(ScopedAllocation { space, base });
        Ok(base)
    };
    let mut params = (0, 0);
    if !program.file.parameter_addresses.is_empty() && !config.params.is_empty() {
        // Loads that begin in the last parameter may end behind it.
        let len = config.params.len() as u64;
        let bytes = len.next_multiple_of(u64::from(PaddedVariable::LARGEST));
        let base = allocate(bytes)?;
        // SAFETY: the allocation has this size.
        unsafe {
            host::fill_zero(base, bytes);
            host::copy_in(config.params, base);
        };
        params = (base, len);
    }
    let mut workspace = 0;
    if config.cooperative {
        workspace = allocate(256)?;
        // SAFETY: the allocation has this size.
        unsafe { host::fill_zero(workspace, 256) };
    }

    let mut template = zeroed_lines(program.file.bytes as usize);
    // SAFETY: `template` has `bytes` bytes, rounded up.
    let file = unsafe {
        std::slice::from_raw_parts_mut(
            template.as_mut_ptr().cast::<u8>(),
            program.file.bytes as usize,
        )
    };
    file[..fixed::END as usize].copy_from_slice(&program.file.template[..fixed::END as usize]);
    let tail = program.file.block_to as usize;
    file[tail..].copy_from_slice(&program.file.template[tail..]);
    set_launch_specials(program, file, config, cluster, shared, warps, workspace);
    for &(at, offset) in &program.file.parameter_addresses {
        Slot::R64.broadcast(file, at, u128::from(params.0.wrapping_add(offset)));
    }
    hoisted_loads(program, file, config.params);
    // SAFETY: the template has the size of the program's register file.
    unsafe { run_prologue(&program.file.launch_prologue, template.as_mut_ptr().cast()) };

    // Frames here hold the arguments and results that a GPU passes in registers. The stack is large enough for the
    // recursion that the limit allows: a frame of a GPU has at least 24 bytes.
    let stack = if program.calls.is_empty() && !program.uses_local {
        0
    } else {
        let limit = config.local_limit.max(1024);
        let frames = (limit / 24 + 1).saturating_mul(program.largest_recursive_frame);
        limit.saturating_mul(16).max(frames)
    };
    let needed = program.static_local.saturating_add(stack);
    let workers = match config.sms {
        Some(sms) => (sms.len() as u64).clamp(1, thread_pool::threads() as u64),
        None => thread_pool::threads() as u64,
    };
    let chunk = (total / (workers * 16)).clamp(1, 64);
    let launch = Launch {
        program,
        space,
        clusters: std::array::from_fn(|a| config.grid[a] / size[a]),
        cluster: size,
        has_clusters: cluster.is_some(),
        cluster_blocks,
        block: config.block,
        threads,
        warps,
        thread_indices: thread_indices(config.block, warps),
        shared_bytes: shared,
        local_bytes: needed.min(MAX_LOCAL),
        stack_limit: config.local_limit,
        heap_limit: config.heap_limit,
        printf: config.printf,
        graph: config.graph,
        runtime: config.runtime,
        references: config.references,
        viewer: config.viewer.clone(),
        template,
        start: Instant::now(),
        params,
        cancel: config.cancel,
        stopped: AtomicBool::new(false),
        fault: Mutex::new(None),
    };
    let scheduler = Scheduler {
        launch,
        cooperative: config.cooperative,
        resident: MAX_RESIDENT / u64::from(cluster_blocks),
        total,
        chunk: if config.cooperative { 1 } else { chunk },
        next: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        parked: Mutex::new(VecDeque::new()),
    };
    let helpers = if total == 1 {
        0
    } else {
        (total - 1).min(workers - 1) as usize
    };
    // Waking other threads costs more than running a few warps.
    let helpers = if !config.cooperative && blocks.saturating_mul(u64::from(warps)) < 8 {
        0
    } else {
        helpers
    };
    thread_pool::run(helpers, &|n| {
        // The numbers of the workers are those of the multiprocessors.
        let sm = match config.sms {
            Some(sms) => sms.get(n as usize).copied().unwrap_or(n),
            None => n,
        };
        let work = || {
            let mut worker = WorkerState::new(scheduler.launch.viewer.clone(), model);
            scheduler.work::<T, M>(sm, &mut worker, model);
            model.end(worker.model);
        };
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
            scheduler.launch.panicked();
        }
    });
    let fault = scheduler.launch.fault.into_inner();
    match fault {
        Some(f) => Err(f),
        None => Ok(()),
    }
}

//! Launches: a grid becomes blocks, blocks are handed to the workers in small chunks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cupyrite_ptx::ir::Special;

use super::block::{Block, BlockCore, BlockStop};
use super::interpreter::run_prologue;
use super::memory::RegionCache;
use super::texture::ObjectCache;
use super::thread_pool;
use super::warp::{Line, zeroed_lines};
use crate::engine::compile::splat;
use crate::engine::fault_report::{Fault, FaultKind, LaneFault, report};
use crate::engine::load::Kernel;
use crate::engine::ops::Slot;
use crate::engine::program::{Program, fixed};
use crate::memory::{AddressSpace, RegionKind, Viewer};

/// Where `printf` goes. Called from several threads at once, with one call's output at a time.
pub trait PrintfSink: Sync {
    /// Takes one formatted call; what does not fit into the buffer is the sink's business.
    fn emit(&self, text: &[u8]);
}

/// What to launch, and how.
pub struct LaunchSpec<'a> {
    /// The kernel.
    pub kernel: &'a Arc<Kernel>,
    /// Grid dimensions in blocks.
    pub grid: [u32; 3],
    /// Block dimensions in threads.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameter bank: [`Kernel::param_bytes`] bytes, parameters at their offsets.
    pub params: &'a [u8],
    /// All blocks must be able to wait for each other.
    pub cooperative: bool,
    /// Set by another thread to end the launch early.
    pub cancel: &'a AtomicBool,
    /// Where `printf` goes.
    pub printf: &'a dyn PrintfSink,
    /// `CU_LIMIT_STACK_SIZE`: bytes of stack a thread has beyond what the kernel is known to need.
    pub local_limit: u32,
    /// `CU_LIMIT_MALLOC_HEAP_SIZE`: bytes that device-side `malloc` may have given out.
    pub heap_limit: u64,
    /// `%gridid`.
    pub grid_id: u64,
    /// Whose memory the kernel may use.
    pub viewer: Viewer,
}

/// Threads a block may have.
pub const MAX_THREADS: u32 = 1024;
/// Shared memory a block may have, static and dynamic, in bytes.
pub const MAX_SHARED: u32 = 227 << 10;
/// Blocks of one launch that may be under way at once.
const MAX_RESIDENT: u64 = 2048;

/// What a worker keeps between blocks.
pub struct WorkerState {
    /// Regions it has seen.
    pub cache: Box<RegionCache>,
    /// Textures and surfaces it has used.
    pub objects: ObjectCache,
    /// Whether the machine is an x86-64-v3.
    pub v3: bool,
}

impl WorkerState {
    /// Forgets what memory that has come or gone since makes wrong.
    fn refresh(&mut self, space: &AddressSpace) {
        if self.cache.refresh(space) {
            self.objects.forget_memory();
        }
    }
}

/// Whether this machine has what the vector code is compiled for.
pub fn has_v3() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("f16c")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Memory that goes back to the address space.
struct Owned<'a> {
    space: &'a AddressSpace,
    base: u64,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // It was allocated, hence it can be freed.
        let _ = self.space.free(self.base);
    }
}

/// A launch under way, shared by its workers.
pub struct Run<'a> {
    /// The program.
    pub program: &'a Program,
    /// The address space.
    pub space: &'a AddressSpace,
    /// Grid dimensions.
    pub grid: [u32; 3],
    /// Block dimensions.
    pub block: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Warps of a block.
    pub warps: u32,
    /// Shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// Bytes that device-side `malloc` may have given out.
    pub heap_limit: u64,
    /// Where `printf` goes.
    pub printf: &'a dyn PrintfSink,
    /// Whose rights count.
    pub viewer: Viewer,
    /// Every block must get to run, as others may wait for it.
    cooperative: bool,
    template: Vec<Line>,
    params: (u64, u64),
    cancel: &'a AtomicBool,
    over: AtomicBool,
    fault: Mutex<Option<Fault>>,
    total: u64,
    chunk: u64,
    next: AtomicU64,
    /// Length of `parked`, roughly.
    waiting: AtomicU64,
    parked: Mutex<VecDeque<Box<Block>>>,
}

impl Run<'_> {
    /// Whether the launch has faulted or been cancelled.
    pub fn is_over(&self) -> bool {
        if self.over.load(Ordering::Relaxed) {
            return true;
        }
        if self.cancel.load(Ordering::Relaxed) {
            let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_none() {
                *slot = Some(Fault::plain(FaultKind::Cancelled, String::new()));
            }
            self.over.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    /// Records a fault; the first one counts.
    pub fn raise(&self, core: &BlockCore, warp: u32, pc: u32, fault: &LaneFault) {
        let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            let at = core.coordinates(self.block, warp, fault.lane);
            *slot = Some(Fault {
                kind: fault.kind,
                report: report(self.program, self.space, &self.viewer, pc, at, fault),
            });
        }
        self.over.store(true, Ordering::Relaxed);
    }

    /// A worker has panicked, which is a bug: the launch fails instead of the process.
    #[cold]
    fn panicked(&self) {
        let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            let text = format!(
                "cupyrite: internal error in the CPU device while running kernel `{}`; please report it\n",
                self.program.name
            );
            *slot = Some(Fault::plain(FaultKind::Trap, text));
        }
        self.over.store(true, Ordering::Relaxed);
    }

    /// A clock that counts about as fast as a GPU's, and never stands still for long.
    pub fn clock(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: every x86-64 has the instruction.
            unsafe { std::arch::x86_64::_rdtsc() }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |d| d.as_nanos() as u64)
        }
    }

    /// Address and size of the parameter bank.
    pub fn param_bank(&self) -> (u64, u64) {
        self.params
    }

    /// A register file with everything that stays the same during the launch.
    pub fn fresh_file(&self) -> Vec<Line> {
        self.template.clone()
    }

    /// Writes the block-wide special registers.
    pub fn fill_block_specials(&self, regs: *mut u8, index: [u32; 3], worker: u32) {
        for s in &self.program.block_specials {
            let v = match s.special {
                Special::Ctaid(a) | Special::ClusterId(a) => index[usize::from(a) % 3],
                _ => worker,
            };
            // SAFETY: the place lies in the file; the slot is 32 bits wide.
            let lanes = unsafe {
                std::slice::from_raw_parts_mut(regs.add(s.at as usize).cast::<u32>(), 32)
            };
            lanes.fill(v);
        }
    }

    /// Works until no block is left that this worker could run.
    fn work(&self, number: u32) {
        let mut worker = WorkerState {
            cache: Box::new(RegionCache::new(self.viewer.clone())),
            objects: ObjectCache::default(),
            v3: has_v3(),
        };
        let mut spare: Option<Box<Block>> = None;
        let (mut from, mut to) = (0, 0);
        loop {
            if self.is_over() {
                return;
            }
            let mut block = None;
            if from == to
                && (self.cooperative || self.waiting.load(Ordering::Relaxed) < MAX_RESIDENT)
            {
                from = self
                    .next
                    .fetch_add(self.chunk, Ordering::Relaxed)
                    .min(self.total);
                to = (from + self.chunk).min(self.total);
            }
            if from < to {
                let mut b = spare.take().unwrap_or_else(|| Box::new(Block::new(self)));
                b.reset(self, from, number);
                from += 1;
                block = Some(b);
            }
            let fresh = block.is_some();
            let next = block.or_else(|| {
                let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
                let b = parked.pop_front();
                self.waiting.store(parked.len() as u64, Ordering::Relaxed);
                b
            });
            let Some(mut block) = next else {
                return;
            };
            worker.refresh(self.space);
            loop {
                match block.run(self, &mut worker) {
                    BlockStop::Done => spare = Some(block),
                    BlockStop::Fault => return,
                    BlockStop::Yield => {
                        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
                        let more = from < to
                            || !parked.is_empty()
                            || self.next.load(Ordering::Relaxed) < self.total;
                        if !more {
                            drop(parked);
                            // Alone: whatever it waits for happens in another thread.
                            std::thread::yield_now();
                            if self.is_over() {
                                return;
                            }
                            worker.refresh(self.space);
                            continue;
                        }
                        parked.push_back(block);
                        self.waiting.store(parked.len() as u64, Ordering::Relaxed);
                        drop(parked);
                        if !fresh {
                            std::thread::yield_now();
                        }
                    }
                }
                break;
            }
        }
    }
}

fn refuse(text: String) -> Fault {
    Fault::plain(
        FaultKind::LaunchOutOfResources,
        format!("cupyrite: {text}\n"),
    )
}

fn set_launch_specials(
    program: &Program,
    file: &mut [u8],
    spec: &LaunchSpec<'_>,
    shared: u32,
    warps: u32,
    workspace: u64,
) {
    for s in &program.launch_specials {
        let v: u64 = match s.special {
            Special::Ntid(a) => u64::from(spec.block[usize::from(a) % 3]),
            Special::Nctaid(a) | Special::NClusterId(a) => u64::from(spec.grid[usize::from(a) % 3]),
            Special::NWarpId => u64::from(warps),
            Special::NSmId => thread_pool::threads() as u64,
            Special::GridId => spec.grid_id,
            Special::ClusterNCtaId(_) | Special::ClusterNCtaRank => 1,
            Special::DynamicSmemSize => u64::from(spec.dynamic_shared),
            Special::TotalSmemSize | Special::AggrSmemSize => u64::from(shared),
            // Where the grid-wide barrier keeps its state.
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
        splat(file, s.at, s.slot, u128::from(v));
    }
}

fn early_loads(program: &Program, file: &mut [u8], params: &[u8]) {
    for e in &program.early_loads {
        let n = e.size.min(16) as usize;
        let mut bytes = [0u8; 16];
        if e.absolute {
            // SAFETY: the decoder has checked that the range lies in a constant variable of the kernel's image, which
            // lives as long as the kernel.
            unsafe { std::ptr::copy_nonoverlapping(e.from as *const u8, bytes.as_mut_ptr(), n) };
        } else if let Some(src) = params.get(e.from as usize..e.from as usize + n) {
            bytes[..n].copy_from_slice(src);
        }
        let mut v = u128::from_le_bytes(bytes);
        if e.signed && n < 16 {
            let shift = 128 - 8 * n as u32;
            v = ((v << shift) as i128 >> shift) as u128;
        }
        if e.narrow {
            v &= 0xffff;
        }
        splat(file, e.at, e.slot, v);
    }
}

/// Runs a grid: on the calling thread and on the pool; returns when it is done.
///
/// # Errors
/// The first fault of any thread; [`FaultKind::LaunchOutOfResources`] if the block does not fit,
/// [`FaultKind::IllegalInstruction`] if the kernel has an instruction that the engine does not.
pub fn launch(spec: &LaunchSpec<'_>) -> Result<(), Fault> {
    let kernel = spec.kernel;
    let program = match &kernel.program {
        Ok(p) => p,
        Err(e) => {
            let report = format!(
                "cupyrite: kernel `{}` cannot run on the CPU device\n  PTX line {}: {}\n",
                kernel.name, e.line, e.message
            );
            return Err(Fault::plain(FaultKind::IllegalInstruction, report));
        }
    };
    let count = |d: [u32; 3]| d.iter().try_fold(1u64, |n, &x| n.checked_mul(u64::from(x)));
    let threads = count(spec.block).unwrap_or(u64::MAX);
    if threads == 0 || threads > u64::from(MAX_THREADS.min(kernel.max_threads_per_block)) {
        return Err(refuse(format!(
            "{threads} threads a block; kernel `{}` allows {}",
            kernel.name, kernel.max_threads_per_block
        )));
    }
    let total = count(spec.grid).unwrap_or(0);
    if total == 0 {
        return Err(refuse("a grid without blocks, or with too many".into()));
    }
    if spec.params.len() < kernel.param_bytes as usize {
        return Err(refuse(format!(
            "{} bytes of parameters; kernel `{}` has {}",
            spec.params.len(),
            kernel.name,
            kernel.param_bytes
        )));
    }
    let shared = u64::from(program.dynamic_shared_at) + u64::from(spec.dynamic_shared);
    if shared > u64::from(MAX_SHARED) {
        return Err(refuse(format!(
            "{shared} bytes of shared memory a block; the limit is {MAX_SHARED}"
        )));
    }
    let space: &AddressSpace = kernel.space();
    let _pin = space.pin();
    let shared = shared as u32;
    let threads = threads as u32;
    let warps = threads.div_ceil(32);

    let mut owned = Vec::new();
    let mut allocate = |bytes: u64| -> Result<u64, Fault> {
        let base = space
            .alloc(bytes, 256, RegionKind::Internal)
            .map_err(|e| refuse(format!("no memory for the launch: {e}")))?;
        owned.push(Owned { space, base });
        Ok(base)
    };
    let mut params = (0, 0);
    if !program.param_addrs.is_empty() && kernel.param_bytes > 0 {
        let base = allocate(u64::from(kernel.param_bytes))?;
        // SAFETY: the allocation has this size.
        unsafe {
            std::ptr::copy_nonoverlapping(
                spec.params.as_ptr(),
                base as *mut u8,
                kernel.param_bytes as usize,
            )
        };
        params = (base, u64::from(kernel.param_bytes));
    }
    let mut workspace = 0;
    if spec.cooperative {
        workspace = allocate(256)?;
        // SAFETY: the allocation has this size.
        unsafe { std::ptr::write_bytes(workspace as *mut u8, 0, 256) };
    }

    let mut template = zeroed_lines(program.file_bytes as usize);
    // SAFETY: the lines are `file_bytes` bytes, rounded up.
    let file = unsafe {
        std::slice::from_raw_parts_mut(
            template.as_mut_ptr().cast::<u8>(),
            program.file_bytes as usize,
        )
    };
    file[..fixed::END as usize].copy_from_slice(&program.template[..fixed::END as usize]);
    let tail = program.block_to as usize;
    file[tail..].copy_from_slice(&program.template[tail..]);
    set_launch_specials(program, file, spec, shared, warps, workspace);
    for &(at, offset) in &program.param_addrs {
        splat(
            file,
            at,
            Slot::R64,
            u128::from(params.0.wrapping_add(offset)),
        );
    }
    early_loads(program, file, spec.params);
    // SAFETY: the file has the program's size.
    unsafe { run_prologue(&program.launch_prologue, template.as_mut_ptr().cast()) };

    // Twice the limit: frames hold arguments and results that a GPU passes in registers.
    let stack = if program.calls.is_empty() && !program.uses_local {
        0
    } else {
        spec.local_limit.max(1024).saturating_mul(2)
    };
    let needed = program.static_local.saturating_add(stack);
    let workers = thread_pool::threads() as u64;
    let chunk = (total / (workers * 16)).clamp(1, 64);
    let run = Run {
        program,
        space,
        grid: spec.grid,
        block: spec.block,
        threads,
        warps,
        shared_bytes: shared,
        local_bytes: needed.min(512 << 10),
        heap_limit: spec.heap_limit,
        printf: spec.printf,
        viewer: spec.viewer.clone(),
        cooperative: spec.cooperative,
        template,
        params,
        cancel: spec.cancel,
        over: AtomicBool::new(false),
        fault: Mutex::new(None),
        total,
        chunk: if spec.cooperative { 1 } else { chunk },
        next: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        parked: Mutex::new(VecDeque::new()),
    };
    let helpers = if total == 1 {
        0
    } else {
        (total - 1).min(workers - 1) as usize
    };
    // A few warps in all are not worth waking anybody.
    let helpers = if !spec.cooperative && total * u64::from(warps) < 8 {
        0
    } else {
        helpers
    };
    thread_pool::run(helpers, &|n| {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.work(n))).is_err() {
            run.panicked();
        }
    });
    let fault = run
        .fault
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match fault {
        Some(f) => Err(f),
        None => Ok(()),
    }
}

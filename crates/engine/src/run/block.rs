//! A block: its warps and register files. The worker that runs its cluster runs it, and a block can yield to another.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::aligned::{Line, zeroed_lines};
use super::block_barrier::release;
use super::block_state::{BARRIERS, BlockBarrier, BlockState, NAMED_BARRIERS};
use super::cluster_state::{self, ClusterState};
use super::context::Context;
use super::lanes::lanes;
use super::launch_state::Launch;
use super::memory::model::MemoryModel;
use super::tier::{Tier, Together, WarpStop};
use super::warp::{FragmentState, Warp};
use super::warp_collectives;
use super::worker::WorkerState;
use crate::bytecode::{GUARDED, Inst, InstKind, Program};
use crate::fault::{FaultDetail, FaultKind, LaneFault};
use crate::kir::BarrierMode;
use crate::register_file::run_prologue;

/// How a block stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStop {
    /// All threads have exited.
    Done,
    /// Its warps wait for other blocks, or have used up their time.
    Yield,
    /// No warp can run until this time.
    Sleep(Instant),
    /// No warp can run until the barrier of the cluster completes.
    Blocked,
    /// A thread has faulted, or the launch has been stopped.
    Fault,
}

// SAFETY: the pointers of the warps lead into register files that the block owns, and only the worker that holds the
// block dereferences them.
unsafe impl Send for Block {}

/// A block.
pub struct Block {
    state: BlockState,
    warps: Vec<Warp>,
    /// Register files, each with the serial number of the block whose constants it holds.
    files: Vec<(Vec<Line>, u64)>,
    /// Unused register files. The last one was used most recently.
    free: Vec<u32>,
    /// The block-wide part of the register files, which the block prologue has computed.
    constants: Vec<Line>,
    /// Number of blocks that this object has run.
    serial: u64,
    /// Warps that can run.
    runnable: u32,
    /// Warps that sleep.
    sleeping: u32,
    /// When the first of them wakes.
    wake_time: Option<Instant>,
    /// Whether none of its warps has run.
    fresh: bool,
    /// The warp that runs next, if it is runnable.
    turn: u32,
    /// The phase of the cluster's barrier up to which warps have been released.
    cluster_phase: u32,
}

impl Block {
    /// A block of the launch. [`Self::reset`] sets its index.
    pub fn new(launch: &Launch<'_>) -> Self {
        let shared_bytes = launch.shared_bytes;
        Self {
            state: BlockState {
                index: [0; 3],
                shared_bytes,
                memory: zeroed_lines(shared_bytes as usize),
                window: 0,
                cluster: Arc::default(),
                barriers: [BlockBarrier::default(); BARRIERS],
                live_threads: 0,
                released: false,
            },
            warps: (0..launch.warps).map(|_| Warp::empty()).collect(),
            files: Vec::new(),
            free: Vec::new(),
            constants: Vec::new(),
            serial: 0,
            runnable: 0,
            sleeping: 0,
            wake_time: None,
            fresh: false,
            turn: 0,
            cluster_phase: 0,
        }
    }

    /// Address of the block's shared memory, which stays the same as long as the object exists.
    pub fn shared(&self) -> u64 {
        self.state.shared() as u64
    }

    /// Adds the block to a cluster, whose other blocks must exist as long as this one runs.
    /// `window` is the offset in the shared window at which the launch addresses the block's shared memory.
    pub fn join_cluster(&mut self, cluster: &Arc<ClusterState>, window: u32) {
        self.state.cluster = Arc::clone(cluster);
        self.state.window = window;
    }

    /// Starts the block with this index on this worker.
    #[inline]
    pub fn reset(&mut self, launch: &Launch<'_>, index: [u32; 3], worker: u32) {
        self.state.index = index;
        if !launch.program.barriers.is_empty() {
            self.state.barriers = [BlockBarrier::default(); BARRIERS];
        }
        self.state.live_threads = launch.threads;
        self.state.released = false;
        // The words of cooperative groups must be zero, and groups set none of them.
        let reserved = (launch.program.reserved_shared / 64) as usize;
        self.state.memory[..reserved].fill(Line([0; 64]));
        let mut left = launch.threads;
        for (n, w) in self.warps.iter_mut().enumerate() {
            let lanes = if left >= 32 {
                u32::MAX
            } else {
                (1u32 << left) - 1
            };
            left = left.saturating_sub(32);
            w.reset(n as u32, lanes);
        }
        self.free.clear();
        self.free.extend(0..self.files.len() as u32);
        self.serial += 1;
        self.runnable = if launch.warps >= 32 {
            u32::MAX
        } else {
            (1 << launch.warps) - 1
        };
        self.sleeping = 0;
        self.wake_time = None;
        self.turn = 0;
        self.fresh = true;
        self.cluster_phase = 0;
        let program = launch.program;
        if program.file.block_to > program.file.block_from {
            let file = self.take_file(launch);
            let regs: *mut u8 = self.files[file].0.as_mut_ptr().cast();
            launch.fill_block_specials(regs, index, worker);
            program.file.fill_shared_addresses(regs, self.state.window);
            // SAFETY: the register file has the size that the program requires.
            unsafe { run_prologue(&program.file.block_prologue, regs) };
            let bytes = (program.file.block_to - program.file.block_from) as usize;
            if self.constants.is_empty() {
                self.constants = zeroed_lines(bytes);
            }
            // SAFETY: the range lies in the register file, and `constants` has its size.
            unsafe {
                let from = regs.add(program.file.block_from as usize);
                std::ptr::copy_nonoverlapping(from, self.constants.as_mut_ptr().cast(), bytes);
            }
            self.files[file].1 = self.serial;
            self.free.push(file as u32);
        }
    }

    /// Index of an unused register file.
    #[inline]
    fn take_file(&mut self, launch: &Launch<'_>) -> usize {
        match self.free.pop() {
            Some(n) => n as usize,
            None => {
                self.files.push((launch.template.clone(), 0));
                self.files.len() - 1
            }
        }
    }

    /// Assigns a register file to warp `n`.
    #[inline]
    fn assign_file(&mut self, launch: &Launch<'_>, n: usize) {
        let program = launch.program;
        let number = self.take_file(launch);
        let (file, serial) = &mut self.files[number];
        let regs: *mut u8 = file.as_mut_ptr().cast();
        if *serial != self.serial && program.file.block_to > program.file.block_from {
            *serial = self.serial;
            let bytes = (program.file.block_to - program.file.block_from) as usize;
            // SAFETY: the range lies in the register file, and `constants` has its size.
            unsafe {
                let to = regs.add(program.file.block_from as usize);
                std::ptr::copy_nonoverlapping(self.constants.as_ptr().cast(), to, bytes);
            }
        }
        self.warps[n].file = number as u32;
        self.warps[n].regs = regs;
    }

    /// Runs the warps in turn until the block stops.
    // Inlined into the loop over the blocks, it would spill more registers at each warp.
    #[inline(never)]
    pub fn run<T: Tier, M: MemoryModel>(
        &mut self,
        launch: &Launch<'_>,
        worker: &mut WorkerState<M>,
        model: &M,
    ) -> BlockStop {
        let program: &Program = launch.program;
        let mut spins = 0u32;
        if let Some(stop) = self.start_together::<T, M>(launch, worker, model) {
            return stop;
        }
        loop {
            if program.uses_cluster_barrier && self.release_cluster() {
                spins = 0;
            }
            self.wake();
            if self.runnable == 0 {
                if let Some(time) = self.wake_time {
                    return BlockStop::Sleep(time);
                }
                if self.warps.iter().all(|w| w.live == 0) {
                    return BlockStop::Done;
                }
                if launch.cluster_blocks > 1 && self.waits_for_cluster() {
                    return BlockStop::Blocked;
                }
                if !self.force_collectives() {
                    self.report_deadlock(launch);
                    return BlockStop::Fault;
                }
                continue;
            }
            // The next runnable warp at or after `turn`.
            let ahead = self.runnable & (u32::MAX << (self.turn & 31));
            let n = if ahead != 0 { ahead } else { self.runnable }.trailing_zeros() as usize;
            if !self.warps[n].started {
                self.assign_file(launch, n);
            }
            let mut cx = Context::new(launch, &mut self.state, worker, n as u32, model);
            // SAFETY: the warp belongs to this block and has a register file of the program.
            let stop = unsafe { T::run(&mut cx, &mut self.warps[n]) };
            match stop {
                WarpStop::Exited => {
                    self.runnable &= !(1 << n);
                    self.free.push(self.warps[n].file);
                    spins = 0;
                }
                WarpStop::Waiting => {
                    self.runnable &= !(1 << n);
                    spins = 0;
                }
                WarpStop::Sleeping => {
                    self.runnable &= !(1 << n);
                    self.sleeping |= 1 << n;
                    let times = [self.wake_time, self.warps[n].wake_time()];
                    self.wake_time = times.into_iter().flatten().min();
                }
                WarpStop::Yield => {
                    self.turn = (n as u32 + 1) & 31;
                    spins += 1;
                }
                WarpStop::Fault => return BlockStop::Fault,
            }
            if self.state.released {
                self.release(program);
                spins = 0;
                if let Some(stop) = self.go_on_together::<T, M>(launch, worker, model) {
                    return stop;
                }
            }
            if spins > self.runnable.count_ones() {
                return BlockStop::Yield;
            }
        }
    }

    /// Runs the warps of a block that has not started, as far as they stay together. Returns how the block stopped, if it has.
    fn start_together<T: Tier, M: MemoryModel>(
        &mut self,
        launch: &Launch<'_>,
        worker: &mut WorkerState<M>,
        model: &M,
    ) -> Option<BlockStop> {
        let program = launch.program;
        if !std::mem::take(&mut self.fresh)
            || !T::runs_together::<M>(program)
            || program.uses_cluster_barrier
            || self.warps.iter().any(|w| w.calls.is_some())
        {
            return None;
        }
        // A register file that several warps use in turn is not initialized for each of them.
        let needs_own = program.uses_warp_id || program.writes_carry;
        if !program.barriers.is_empty() || needs_own {
            for n in 0..self.warps.len() {
                self.assign_file(launch, n);
                self.warps[n].begin(program, launch);
            }
            return self.run_together::<T, M>(launch, worker, model, 0..launch.warps as usize);
        }
        // Warps that never wait for each other use the same register file, one after the other.
        let mut first = 0;
        let mut interpreted = false;
        while first < self.warps.len() {
            self.assign_file(launch, first);
            let (file, regs) = (self.warps[first].file, self.warps[first].regs);
            for w in &mut self.warps[first..] {
                (w.file, w.regs) = (file, regs);
            }
            let mut cx = Context::new(launch, &mut self.state, worker, first as u32, model);
            // SAFETY: the warps belong to this block, have not started, and have a register file of the program.
            let (ended, other) = unsafe { T::run_in_turn(&mut cx, &mut self.warps[first..]) };
            self.retire(first..first + ended);
            first += ended;
            if !other {
                // The rest is not started: it gets register files of its own.
                self.free.push(file);
                break;
            }
            self.warps[first].begin(program, launch);
            first += 1;
            interpreted = true;
        }
        let all = first == self.warps.len() && !interpreted;
        all.then_some(BlockStop::Done)
    }

    /// Retires warps all of whose live lanes exit.
    fn retire(&mut self, range: Range<usize>) {
        for n in range {
            let w = &mut self.warps[n];
            self.state.live_threads -= w.live.count_ones();
            w.live = 0;
            w.mask = 0;
            self.runnable &= !(1 << n);
        }
    }

    /// Runs the warps together again if all of them are at the same instruction, after a barrier.
    fn go_on_together<T: Tier, M: MemoryModel>(
        &mut self,
        launch: &Launch<'_>,
        worker: &mut WorkerState<M>,
        model: &M,
    ) -> Option<BlockStop> {
        let program = launch.program;
        if !T::runs_together::<M>(program) || program.uses_cluster_barrier || self.sleeping != 0 {
            return None;
        }
        let mut at = None;
        for w in &mut self.warps {
            if w.live == 0 {
                continue;
            }
            let together = w.calls.is_none() && w.started && w.assemble();
            if !together || *at.get_or_insert(w.pc) != w.pc {
                return None;
            }
        }
        self.run_together::<T, M>(launch, worker, model, 0..launch.warps as usize)
    }

    /// Runs these warps, all of whose live lanes are at the same instruction, until they part. Returns how the block stopped, if
    /// these warps have nothing left to do.
    fn run_together<T: Tier, M: MemoryModel>(
        &mut self,
        launch: &Launch<'_>,
        worker: &mut WorkerState<M>,
        model: &M,
        range: Range<usize>,
    ) -> Option<BlockStop> {
        let program = launch.program;
        let first = self.warps[range.clone()].iter().find(|w| w.live != 0)?;
        /// Instructions of the interpreter after which a block checks whether the launch has been stopped.
        const CHECK_EVERY: u32 = 64;
        let mut at = first.pc;
        let mut again = false;
        let mut steps = 0u32;
        loop {
            let mut cx = Context::new(launch, &mut self.state, worker, range.start as u32, model);
            // SAFETY: the warps belong to this block and have register files of the program and no fragments.
            let together =
                unsafe { T::run_together(&mut cx, &mut self.warps[range.clone()], at, again) };
            again = true;
            match together {
                Together::At(pc) => at = pc,
                Together::Parted => return None,
                Together::Stopped => return Some(BlockStop::Fault),
            }
            let inst = &program.code[at as usize];
            if inst.kind == InstKind::Ret && inst.flags & GUARDED == 0 {
                for w in &self.warps[range.clone()] {
                    if w.live != 0 {
                        self.free.push(w.file);
                    }
                }
                self.retire(range);
                return Some(BlockStop::Done);
            }
            if !self.pass_barrier(program, inst, &range) {
                // Warp by warp, the interpreter runs several instructions in a shorter time.
                if !program.native.begins_at(at + 1) {
                    break;
                }
                let mut cx =
                    Context::new(launch, &mut self.state, worker, range.start as u32, model);
                // SAFETY: the warps belong to this block, have register files of the program, and are at `at`.
                let stepped = unsafe {
                    warp_collectives::step_together(&mut cx, &mut self.warps[range.clone()], at)
                };
                if !stepped {
                    break;
                }
            }
            at += 1;
            steps += 1;
            if steps.is_multiple_of(CHECK_EVERY) && launch.is_stopped() {
                return Some(BlockStop::Fault);
            }
        }
        for w in &mut self.warps[range] {
            w.pc = at;
            w.mask = w.live;
        }
        None
    }

    /// Completes the barrier of an instruction at which all threads of the block have arrived, and returns whether it is such a
    /// one.
    fn pass_barrier(&mut self, program: &Program, inst: &Inst, range: &Range<usize>) -> bool {
        if inst.kind != InstKind::Bar || inst.flags & GUARDED != 0 {
            return false;
        }
        let op = &program.barriers[inst.target as usize];
        let uniform = op.id.at >= program.file.block_from;
        if op.mode != BarrierMode::Sync || op.count.is_some() || !uniform {
            return false;
        }
        let live = self.warps[range.clone()]
            .iter()
            .map(|w| w.live.count_ones());
        if live.sum::<u32>() != self.state.live_threads {
            return false;
        }
        let regs = self.warps[range.start].regs;
        // SAFETY: the operand is a 32-bit slot of the register file.
        let id = unsafe { *regs.add(op.id.at as usize).cast::<u32>() } as usize;
        match self.state.barriers[..NAMED_BARRIERS].get_mut(id) {
            Some(b) if b.arrived == 0 => {
                b.pass();
                true
            }
            _ => false,
        }
    }

    /// Makes the warps runnable that have slept long enough.
    #[inline]
    fn wake(&mut self) {
        let Some(first) = self.wake_time else {
            return;
        };
        let now = Instant::now();
        if now < first {
            return;
        }
        self.wake_time = None;
        for n in lanes(self.sleeping) {
            match self.warps[n].wake_time() {
                Some(time) if now < time => {
                    self.wake_time = Some(self.wake_time.map_or(time, |t| t.min(time)));
                }
                _ => {
                    self.sleeping &= !(1 << n);
                    self.runnable |= 1 << n;
                }
            }
        }
    }

    /// Makes the warps runnable whose barriers have completed.
    #[inline]
    fn release(&mut self, program: &Program) {
        self.state.released = false;
        for (n, w) in self.warps.iter_mut().enumerate() {
            // SAFETY: a warp with fragments has started, hence it has a register file of the program.
            if !w.fragments.is_empty() && unsafe { release(program, &self.state.barriers, w) } {
                self.runnable |= 1 << n;
            }
        }
    }

    /// Makes the warps runnable that have waited for a completed phase of the cluster's barrier, and returns whether a phase
    /// has completed.
    #[inline]
    fn release_cluster(&mut self) -> bool {
        let phase = self.state.cluster.phase();
        if phase == self.cluster_phase {
            return false;
        }
        self.cluster_phase = phase;
        for (n, w) in self.warps.iter_mut().enumerate() {
            if cluster_state::release(&self.state.cluster, w) {
                self.runnable |= 1 << n;
            }
        }
        true
    }

    /// Whether a thread waits at the barrier of the cluster.
    fn waits_for_cluster(&self) -> bool {
        let mut fragments = self.warps.iter().flat_map(|w| &w.fragments);
        fragments.any(|f| matches!(f.state, FragmentState::ClusterBarrier(_)))
    }

    /// Lets warp collectives proceed without the members that wait at barriers, and returns whether there were any. Called
    /// when no warp can run.
    pub fn force_collectives(&mut self) -> bool {
        let mut any = false;
        for (n, w) in self.warps.iter_mut().enumerate() {
            if w.fragments
                .iter()
                .any(|f| matches!(f.state, FragmentState::Sync(_)))
            {
                w.force_collective = true;
                self.runnable |= 1 << n;
                any = true;
            }
        }
        any
    }

    /// Raises a fault because no warp can ever run again.
    pub fn report_deadlock(&self, launch: &Launch<'_>) {
        for w in &self.warps {
            if let Some(f) = w.fragments.first() {
                let mut bars: Vec<String> = self
                    .state
                    .barriers
                    .iter()
                    .enumerate()
                    .filter(|(_, b)| b.arrived > 0)
                    .map(|(n, b)| {
                        let expected = b.threads(self.state.live_threads);
                        format!("{} of {expected} threads at barrier {n}", b.arrived)
                    })
                    .collect();
                let mut what = "block";
                if self.waits_for_cluster() {
                    what = "cluster";
                    let (arrived, expected) = self.state.cluster.arrived();
                    bars.push(format!(
                        "{arrived} of {expected} threads at barrier.cluster"
                    ));
                }
                let fault = LaneFault {
                    kind: FaultKind::Trap,
                    lane: f.mask.trailing_zeros().min(31),
                    detail: FaultDetail::Text(format!(
                        "deadlock of the {what}: {}; a GPU would hang",
                        bars.join(", ")
                    )),
                };
                launch.raise(&self.state, w.index, f.pc, &fault);
                return;
            }
        }
    }
}

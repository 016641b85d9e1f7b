//! A block: its warps, shared memory and barriers, run by one worker at a time and able to stop in the middle.

use super::aligned::{Line, zeroed_lines};
use super::block_barrier::release;
use super::block_state::{BlockBarrier, BlockState};
use super::context::Context;
use super::interpreter::{WarpStop, run_prologue, run_warp};
use super::launch_state::Launch;
use super::warp::{FragmentState, Warp};
use super::worker::WorkerState;
use crate::engine::fault_report::{FaultDetail, FaultKind, LaneFault};
use crate::engine::program::Program;

/// How a block stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStop {
    /// All threads have exited.
    Done,
    /// It waits for other blocks, or has run long enough.
    Yield,
    /// It faulted, or the launch is over.
    Fault,
}

// SAFETY: the warps' pointers lead into the block's own register files; a block is run by one thread at a time.
unsafe impl Send for Block {}

/// A block.
pub struct Block {
    state: BlockState,
    warps: Vec<Warp>,
    /// Register files, with the serial number of the block whose constants they hold.
    files: Vec<(Vec<Line>, u64)>,
    /// Those not in use; the last one is the warmest.
    free: Vec<u32>,
    /// The block-wide part of a register file, as the prologue computed it.
    constants: Vec<Line>,
    /// Number of this block among those that this object has been.
    serial: u64,
    runnable: u32,
    turn: u32,
}

impl Block {
    /// A block of the launch, to be given an index by [`Self::reset`].
    pub fn new(launch: &Launch<'_>) -> Self {
        let shared_bytes = launch.shared_bytes;
        Self {
            state: BlockState {
                index: [0; 3],
                shared_bytes,
                memory: zeroed_lines(shared_bytes as usize),
                barriers: [BlockBarrier::default(); 16],
                live_threads: 0,
                released: false,
            },
            warps: (0..launch.warps).map(|_| Warp::empty()).collect(),
            files: Vec::new(),
            free: Vec::new(),
            constants: Vec::new(),
            serial: 0,
            runnable: 0,
            turn: 0,
        }
    }

    /// Makes it the block with this linear index, run by this worker.
    pub fn reset(&mut self, launch: &Launch<'_>, linear: u64, worker: u32) {
        let (gx, gy) = (u64::from(launch.grid[0]), u64::from(launch.grid[1]));
        let index = if linear < gx {
            [linear as u32, 0, 0]
        } else {
            let rest = linear / gx;
            [(linear % gx) as u32, (rest % gy) as u32, (rest / gy) as u32]
        };
        self.state.index = index;
        if !launch.program.barriers.is_empty() {
            self.state.barriers = [BlockBarrier::default(); 16];
        }
        self.state.live_threads = launch.threads;
        self.state.released = false;
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
        self.turn = 0;
        let program = launch.program;
        if program.block_to > program.block_from {
            let file = self.take_file(launch);
            let regs: *mut u8 = self.files[file].0.as_mut_ptr().cast();
            launch.fill_block_specials(regs, index, worker);
            // SAFETY: the file has the program's size.
            unsafe { run_prologue(&program.block_prologue, regs) };
            let bytes = (program.block_to - program.block_from) as usize;
            if self.constants.is_empty() {
                self.constants = zeroed_lines(bytes);
            }
            // SAFETY: the range lies in the file, and `constants` has its size.
            unsafe {
                let from = regs.add(program.block_from as usize);
                std::ptr::copy_nonoverlapping(from, self.constants.as_mut_ptr().cast(), bytes);
            }
            self.files[file].1 = self.serial;
            self.free.push(file as u32);
        }
    }

    /// A register file that is not in use.
    fn take_file(&mut self, launch: &Launch<'_>) -> usize {
        match self.free.pop() {
            Some(n) => n as usize,
            None => {
                self.files.push((launch.template.clone(), 0));
                self.files.len() - 1
            }
        }
    }

    /// Gives warp `n` a register file.
    fn equip(&mut self, launch: &Launch<'_>, n: usize) {
        let program = launch.program;
        let number = self.take_file(launch);
        let (file, stamp) = &mut self.files[number];
        let regs: *mut u8 = file.as_mut_ptr().cast();
        if *stamp != self.serial && program.block_to > program.block_from {
            *stamp = self.serial;
            let bytes = (program.block_to - program.block_from) as usize;
            // SAFETY: the range lies in the file, and `constants` has its size.
            unsafe {
                let to = regs.add(program.block_from as usize);
                std::ptr::copy_nonoverlapping(self.constants.as_ptr().cast(), to, bytes);
            }
        }
        self.warps[n].file = number as u32;
        self.warps[n].regs = regs;
    }

    /// Runs until all threads have exited, or there is a reason to stop.
    pub fn run(&mut self, launch: &Launch<'_>, worker: &mut WorkerState) -> BlockStop {
        let program: &Program = launch.program;
        let mut spins = 0u32;
        loop {
            if self.runnable == 0 {
                if self.warps.iter().all(|w| w.live == 0) {
                    return BlockStop::Done;
                }
                if !self.unlock() {
                    self.deadlock(launch);
                    return BlockStop::Fault;
                }
                continue;
            }
            // The next runnable warp at or after `turn`.
            let ahead = self.runnable & (u32::MAX << (self.turn & 31));
            let n = if ahead != 0 { ahead } else { self.runnable }.trailing_zeros() as usize;
            if !self.warps[n].started {
                self.equip(launch, n);
            }
            let mut cx = Context {
                launch,
                program,
                block: &mut self.state,
                worker,
            };
            // SAFETY: the warp has a register file of the program and belongs to this block.
            let stop = unsafe { run_warp(&mut cx, &mut self.warps[n]) };
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
                WarpStop::Yield(_) => {
                    self.turn = (n as u32 + 1) & 31;
                    spins += 1;
                }
                WarpStop::Fault => return BlockStop::Fault,
            }
            if self.state.released {
                self.release(program);
                spins = 0;
            }
            if spins > self.runnable.count_ones() {
                return BlockStop::Yield;
            }
        }
    }

    fn release(&mut self, program: &Program) {
        self.state.released = false;
        for (n, w) in self.warps.iter_mut().enumerate() {
            // SAFETY: a warp that waits has begun and has a register file of the program.
            if !w.fragments.is_empty() && unsafe { release(program, &self.state.barriers, w) } {
                self.runnable |= 1 << n;
            }
        }
    }

    /// Nobody can run: lets warp collectives go without members that never come.
    fn unlock(&mut self) -> bool {
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

    fn deadlock(&mut self, launch: &Launch<'_>) {
        for w in &self.warps {
            if let Some(f) = w.fragments.first() {
                let bars: Vec<String> = self
                    .state
                    .barriers
                    .iter()
                    .enumerate()
                    .filter(|(_, b)| b.arrived > 0)
                    .map(|(n, b)| {
                        let want = if b.expected == 0 {
                            self.state.live_threads
                        } else {
                            b.expected
                        };
                        format!("{} of {want} threads at barrier {n}", b.arrived)
                    })
                    .collect();
                let fault = LaneFault {
                    kind: FaultKind::Trap,
                    lane: f.mask.trailing_zeros().min(31),
                    detail: FaultDetail::Text(format!(
                        "the block can never go on: {}; a GPU would hang",
                        bars.join(", ")
                    )),
                };
                launch.raise(&self.state, w.index, f.pc, &fault);
                return;
            }
        }
    }
}

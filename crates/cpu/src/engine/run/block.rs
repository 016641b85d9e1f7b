//! A block: its warps, shared memory and barriers, run by one worker at a time and able to stop in the middle.

use super::collectives::{Barrier, release};
use super::grid::{Run, WorkerState};
use super::interpreter::{Cx, Stop, run_prologue, run_warp};
use super::warp::{Line, State, Warp, zeroed_lines};
use crate::engine::fault_report::{Coordinates, FaultKind, LaneFault, What};
use crate::engine::program::Program;

/// What warps of a block share.
pub struct BlockCore {
    /// `%ctaid`.
    pub index: [u32; 3],
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    memory: Vec<Line>,
    /// Barriers 0 to 15.
    pub barriers: [Barrier; 16],
    /// Threads that have not exited.
    pub live_threads: u32,
    /// A barrier has completed since the block last looked.
    pub released: bool,
}

impl BlockCore {
    /// Base of shared memory.
    pub fn shared(&self) -> *mut u8 {
        self.memory.as_ptr().cast::<u8>().cast_mut()
    }

    /// Threads have exited; whoever waited only for them goes on.
    pub fn threads_exited(&mut self) {
        for b in &mut self.barriers {
            if b.arrived > 0 && b.settle(self.live_threads) {
                self.released = true;
            }
        }
    }

    /// Coordinates of a lane's thread.
    pub fn coordinates(&self, block: [u32; 3], warp: u32, lane: u32) -> Coordinates {
        let t = warp * 32 + lane;
        let [x, y, _] = block.map(|n| n.max(1));
        Coordinates {
            block: self.index,
            thread: [t % x, t / x % y, t / x / y],
        }
    }
}

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
    core: BlockCore,
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
    pub fn new(run: &Run<'_>) -> Self {
        let shared_bytes = run.shared_bytes;
        Self {
            core: BlockCore {
                index: [0; 3],
                shared_bytes,
                memory: zeroed_lines(shared_bytes as usize),
                barriers: [Barrier::default(); 16],
                live_threads: 0,
                released: false,
            },
            warps: (0..run.warps).map(|_| Warp::empty()).collect(),
            files: Vec::new(),
            free: Vec::new(),
            constants: Vec::new(),
            serial: 0,
            runnable: 0,
            turn: 0,
        }
    }

    /// Makes it the block with this linear index, run by this worker.
    pub fn reset(&mut self, run: &Run<'_>, linear: u64, worker: u32) {
        let (gx, gy) = (u64::from(run.grid[0]), u64::from(run.grid[1]));
        let index = if linear < gx {
            [linear as u32, 0, 0]
        } else {
            let rest = linear / gx;
            [(linear % gx) as u32, (rest % gy) as u32, (rest / gy) as u32]
        };
        self.core.index = index;
        if !run.program.bars.is_empty() {
            self.core.barriers = [Barrier::default(); 16];
        }
        self.core.live_threads = run.threads;
        self.core.released = false;
        let mut left = run.threads;
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
        self.runnable = if run.warps >= 32 {
            u32::MAX
        } else {
            (1 << run.warps) - 1
        };
        self.turn = 0;
        let program = run.program;
        if program.block_to > program.block_from {
            let file = self.take_file(run);
            let regs: *mut u8 = self.files[file].0.as_mut_ptr().cast();
            run.fill_block_specials(regs, index, worker);
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
    fn take_file(&mut self, run: &Run<'_>) -> usize {
        match self.free.pop() {
            Some(n) => n as usize,
            None => {
                self.files.push((run.fresh_file(), 0));
                self.files.len() - 1
            }
        }
    }

    /// Gives warp `n` a register file.
    fn equip(&mut self, run: &Run<'_>, n: usize) {
        let program = run.program;
        let number = self.take_file(run);
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
    pub fn run(&mut self, run: &Run<'_>, worker: &mut WorkerState) -> BlockStop {
        let program: &Program = run.program;
        let mut spins = 0u32;
        loop {
            if self.runnable == 0 {
                if self.warps.iter().all(|w| w.live == 0) {
                    return BlockStop::Done;
                }
                if !self.unlock() {
                    self.deadlock(run);
                    return BlockStop::Fault;
                }
                continue;
            }
            // The next runnable warp at or after `turn`.
            let ahead = self.runnable & (u32::MAX << (self.turn & 31));
            let n = if ahead != 0 { ahead } else { self.runnable }.trailing_zeros() as usize;
            if !self.warps[n].started {
                self.equip(run, n);
            }
            let mut cx = Cx {
                run,
                program,
                core: &mut self.core,
                worker,
            };
            // SAFETY: the warp has a register file of the program and belongs to this block.
            let stop = unsafe { run_warp(&mut cx, &mut self.warps[n]) };
            match stop {
                Stop::Exited => {
                    self.runnable &= !(1 << n);
                    self.free.push(self.warps[n].file);
                    spins = 0;
                }
                Stop::Waiting => {
                    self.runnable &= !(1 << n);
                    spins = 0;
                }
                Stop::Yield(_) => {
                    self.turn = (n as u32 + 1) & 31;
                    spins += 1;
                }
                Stop::Fault => return BlockStop::Fault,
            }
            if self.core.released {
                self.release(program);
                spins = 0;
            }
            if spins > self.runnable.count_ones() {
                return BlockStop::Yield;
            }
        }
    }

    fn release(&mut self, program: &Program) {
        self.core.released = false;
        for (n, w) in self.warps.iter_mut().enumerate() {
            // SAFETY: a warp that waits has begun and has a register file of the program.
            if !w.frags.is_empty() && unsafe { release(program, &self.core.barriers, w) } {
                self.runnable |= 1 << n;
            }
        }
    }

    /// Nobody can run: lets warp collectives go without members that never come.
    fn unlock(&mut self) -> bool {
        let mut any = false;
        for (n, w) in self.warps.iter_mut().enumerate() {
            if w.frags.iter().any(|f| matches!(f.state, State::Sync(_))) {
                w.force = true;
                self.runnable |= 1 << n;
                any = true;
            }
        }
        any
    }

    fn deadlock(&mut self, run: &Run<'_>) {
        for w in &self.warps {
            if let Some(f) = w.frags.first() {
                let bars: Vec<String> = self
                    .core
                    .barriers
                    .iter()
                    .enumerate()
                    .filter(|(_, b)| b.arrived > 0)
                    .map(|(n, b)| {
                        let want = if b.expected == 0 {
                            self.core.live_threads
                        } else {
                            b.expected
                        };
                        format!("{} of {want} threads at barrier {n}", b.arrived)
                    })
                    .collect();
                let fault = LaneFault {
                    kind: FaultKind::Trap,
                    lane: f.mask.trailing_zeros().min(31),
                    what: What::Text(format!(
                        "the block can never go on: {}; a GPU would hang",
                        bars.join(", ")
                    )),
                };
                run.raise(&self.core, w.index, f.pc, &fault);
                return;
            }
        }
    }
}

//! A warp: its register file, its live lanes and the fragments into which divergence has split them.
//!
//! Lanes with the same position run together. The fragment with the lowest position goes first, and fragments that
//! meet merge; that reconverges structured code without any analysis. When a fragment keeps jumping backwards while
//! others wait, the warp *rotates*: the one that has waited longest runs for a while, so that a lock held by a lane
//! further down the program is released in the end.

use crate::engine::program::{Program, fixed};

/// All 32 lanes.
pub const ALL: u32 = u32::MAX;
/// The warp size.
pub const LANES: usize = 32;

/// Back edges until the slow path looks around; a spinning one costs [`SPIN_COST`].
pub const FUEL: i32 = 1024;
/// See [`FUEL`].
pub const SPIN_COST: i32 = 32;

/// Sixty-four bytes, aligned as vector loads like it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Line(pub [u8; 64]);

/// Memory of `bytes` zero bytes, aligned to 64.
pub fn zeroed_lines(bytes: usize) -> Vec<Line> {
    let n = bytes.div_ceil(64);
    if n == 0 {
        return Vec::new();
    }
    let layout = match std::alloc::Layout::array::<Line>(n) {
        Ok(l) => l,
        Err(_) => return Vec::new(),
    };
    // SAFETY: the layout is not empty; all-zero bytes are a valid `Line`; pointer, length and capacity belong together.
    unsafe {
        let p = std::alloc::alloc_zeroed(layout).cast::<Line>();
        if p.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(p, n, n)
    }
}

/// What a fragment is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Can run.
    Ready,
    /// At a warp collective with this member mask, of which members are missing. The fragment holds all lanes of the
    /// group that have arrived, and executes the instruction again when others join it.
    Sync(u32),
    /// At a block barrier (its position is that of the barrier), in this phase of it.
    Bar(u8, u32),
}

/// Lanes that are at the same position.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// Position.
    pub pc: u32,
    /// Lanes.
    pub mask: u32,
    /// What they are doing.
    pub state: State,
    /// When they were set aside.
    pub since: u32,
}

/// Where a lane returns to, and what it gets back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Return {
    /// Position after the call.
    pub pc: u32,
    /// The caller's frame.
    pub frame: u32,
    /// Bytes that `alloca` added to it.
    pub dynamic: u32,
}

/// Calls in progress, per lane.
#[derive(Default)]
pub struct Calls {
    /// Number of calls in progress.
    pub depth: [u32; LANES],
    /// Return records by depth.
    pub stack: Vec<[Return; LANES]>,
    /// Saved registers by depth, in the layout of the register file.
    pub saved: Vec<Vec<Line>>,
}

/// A warp.
pub struct Warp {
    /// Number in the block.
    pub index: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Position of the running fragment.
    pub pc: u32,
    /// Lanes of the running fragment; zero if none is.
    pub mask: u32,
    /// Position at which another fragment joins in.
    pub stop: u32,
    /// Fragments set aside.
    pub frags: Vec<Fragment>,
    /// The running fragment need not be the lowest.
    pub rotating: bool,
    /// The next collective runs with whoever is there.
    pub force: bool,
    /// Source of [`Fragment::since`].
    pub time: u32,
    /// Remaining fuel.
    pub fuel: i32,
    /// Slow paths taken since the last yield.
    pub slow: u32,
    /// Base of the register file, which the block owns; null while the warp has none.
    pub regs: *mut u8,
    /// The block's number for it.
    pub file: u32,
    /// Local memory, word-interleaved; allocated when first touched.
    pub local: Vec<Line>,
    /// Calls in progress.
    pub calls: Option<Box<Calls>>,
    /// Whether the warp has begun.
    pub started: bool,
}

impl Warp {
    /// A warp without threads.
    pub fn empty() -> Self {
        Self {
            index: 0,
            live: 0,
            pc: 0,
            mask: 0,
            stop: u32::MAX,
            frags: Vec::new(),
            rotating: false,
            force: false,
            time: 0,
            fuel: FUEL,
            slow: 0,
            regs: std::ptr::null_mut(),
            file: 0,
            local: Vec::new(),
            calls: None,
            started: false,
        }
    }

    /// Prepares for the threads `lanes` of a new block.
    pub fn reset(&mut self, index: u32, lanes: u32) {
        self.index = index;
        self.live = lanes;
        self.pc = 0;
        self.mask = lanes;
        self.stop = u32::MAX;
        self.frags.clear();
        self.rotating = false;
        self.force = false;
        self.time = 0;
        self.fuel = FUEL;
        self.slow = 0;
        self.started = false;
        if let Some(c) = &mut self.calls {
            c.depth = [0; LANES];
        }
    }

    /// Fills the places that depend on the thread's index.
    ///
    /// Inlined into the interpreter's loop, so that it stores in vectors as wide as those that will be loaded.
    #[inline(always)]
    pub fn begin(&mut self, program: &Program, block: [u32; 3]) {
        self.started = true;
        let regs = self.regs;
        let lane = |at: u32| regs.wrapping_add(at as usize).cast::<u32>();
        let first = self.index * 32;
        // SAFETY: the fixed places lie inside every register file, aligned.
        unsafe {
            *lane(fixed::CARRY) = 0;
            if program.uses_local {
                std::ptr::write_bytes(lane(fixed::FRAME), 0, LANES);
                std::ptr::write_bytes(lane(fixed::DYNAMIC), 0, LANES);
            }
            if program.uses_warp_id {
                for l in 0..LANES {
                    *lane(fixed::WARP_ID).add(l) = self.index;
                }
            }
            if program.uses_tid == [true, false, false] && block[0].is_multiple_of(32) {
                let x = if first < block[0] {
                    first
                } else {
                    first % block[0]
                };
                for l in 0..LANES {
                    *lane(fixed::TID[0]).add(l) = x + l as u32;
                }
            } else if block[1] == 1 && block[2] == 1 {
                for l in 0..LANES {
                    *lane(fixed::TID[0]).add(l) = first + l as u32;
                }
                if program.uses_tid[1] || program.uses_tid[2] {
                    std::ptr::write_bytes(lane(fixed::TID[1]), 0, LANES);
                    std::ptr::write_bytes(lane(fixed::TID[2]), 0, LANES);
                }
            } else if program.uses_tid != [false; 3] {
                for l in 0..LANES {
                    let t = first + l as u32;
                    *lane(fixed::TID[0]).add(l) = t % block[0];
                    *lane(fixed::TID[1]).add(l) = t / block[0] % block[1];
                    *lane(fixed::TID[2]).add(l) = t / block[0] / block[1];
                }
            }
        }
    }

    /// Sets lanes aside.
    pub fn park(&mut self, pc: u32, mask: u32, state: State) {
        self.time = self.time.wrapping_add(1);
        for f in &mut self.frags {
            if f.pc == pc && f.state == state {
                f.mask |= mask;
                return;
            }
        }
        self.frags.push(Fragment {
            pc,
            mask,
            state,
            since: self.time,
        });
    }

    fn take(&mut self, n: usize) {
        let f = self.frags.swap_remove(n);
        self.pc = f.pc;
        self.mask = f.mask;
    }

    /// Removes lanes that have exited, and resumes the groups at collectives that waited only for them.
    pub fn remove(&mut self, exited: u32) {
        self.live &= !exited;
        for f in &mut self.frags {
            if matches!(f.state, State::Sync(members) if members & self.live & !f.mask == 0) {
                f.state = State::Ready;
            }
        }
    }

    /// Index of the fragment with the lowest position among those that `wanted` accepts.
    fn lowest(&self, wanted: impl Fn(&Fragment) -> bool) -> Option<usize> {
        self.frags
            .iter()
            .enumerate()
            .filter(|(_, f)| wanted(f))
            .min_by_key(|(_, f)| f.pc)
            .map(|(n, _)| n)
    }

    /// Takes up the lowest fragment that can run; false if there is none.
    pub fn pick(&mut self) -> bool {
        self.mask = 0;
        self.rotating = false;
        if let Some(n) = self.lowest(|f| f.state == State::Ready) {
            self.take(n);
        } else if let Some(n) = self.lowest(|f| matches!(f.state, State::Sync(_))) {
            // The missing members wait at a block barrier and may come yet, or will never come.
            if self.frags.iter().any(|f| matches!(f.state, State::Bar(..))) && !self.force {
                return false;
            }
            self.force = true;
            self.take(n);
        } else {
            return false;
        }
        self.join();
        true
    }

    /// Merges fragments at the running one's position into it and finds out where the next one waits.
    fn join(&mut self) {
        let mut stop = u32::MAX;
        let mut n = 0;
        while n < self.frags.len() {
            let f = self.frags[n];
            if matches!(f.state, State::Bar(..)) {
                n += 1;
            } else if f.pc == self.pc {
                self.mask |= f.mask;
                self.frags.swap_remove(n);
            } else {
                if f.pc > self.pc {
                    stop = stop.min(f.pc);
                }
                n += 1;
            }
        }
        self.stop = stop;
    }

    /// The running fragment has moved to `pc`: merge, or let a lower one go first.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self, pc: u32, mask: u32) {
        self.pc = pc;
        self.mask = mask;
        self.join();
        if !self.rotating
            && self
                .frags
                .iter()
                .any(|f| f.state == State::Ready && f.pc < pc)
        {
            let (pc, mask) = (self.pc, self.mask);
            self.park(pc, mask, State::Ready);
            self.pick();
        }
    }

    /// Splits the running fragment: `taken` goes to `target`, the other lanes of `mask` to `next`.
    #[cold]
    #[inline(never)]
    pub fn split(&mut self, mask: u32, taken: u32, target: u32, next: u32) {
        let rest = mask & !taken;
        if target < next {
            self.park(next, rest, State::Ready);
            self.settle(target, taken);
        } else {
            self.park(target, taken, State::Ready);
            self.settle(next, rest);
        }
    }

    /// Lets the fragment that has waited longest run, if there is one.
    pub fn rotate(&mut self, pc: u32, mask: u32) -> bool {
        let oldest = self
            .frags
            .iter()
            .enumerate()
            .filter(|(_, f)| f.state == State::Ready)
            .min_by_key(|(_, f)| f.since)
            .map(|(n, _)| n);
        let Some(n) = oldest else {
            return false;
        };
        self.take(n);
        self.park(pc, mask, State::Ready);
        self.rotating = true;
        self.join();
        true
    }
}

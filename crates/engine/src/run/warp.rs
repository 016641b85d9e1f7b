//! A warp: its live lanes, and the fragments into which divergence has split them.
//!
//! Lanes at the same position run together as a fragment. A position is the program counter and the return addresses of the
//! calls in progress, so lanes that called a function from different call sites do not merge inside it. Positions are ordered
//! as if every call were inlined. The ready fragment with the lowest position runs first, and fragments that reach the same
//! position merge, which reconverges structured code without analysis. When a fragment takes many backward branches while
//! others are ready, the warp *rotates*: the ready fragment that was parked first runs until the warp selects a fragment again.
//! A spinning lane therefore cannot starve the lane that holds the lock.
//!
//! While a fragment sleeps (`nanosleep`), no fragment of its warp runs, so that the other lanes do not run past the position
//! where they would merge with it. If one of its lanes sleeps again before it has merged with lanes that have not slept, the
//! fragment polls: the others then run while it sleeps.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use super::aligned::Line;
use super::cluster_state::ClusterArrivals;
use super::lanes::{LANES, first_lane, lanes};
use super::launch_state::Launch;
use crate::bytecode::{InstKind, Program};
use crate::register_file::fixed;

/// Fuel of a warp. A backward branch takes 1, a spinning one [`SPIN_COST`]. When the fuel has run out, the interpreter checks
/// for cancellation; if the branch spins, and otherwise every 64th time, the warp also rotates and yields to other warps.
pub const FUEL: i32 = 1024;
/// Fuel that a spinning backward branch takes.
pub const SPIN_COST: i32 = 32;
/// How much earlier than requested a fragment may wake, together with another one of its warp, so that they can merge.
const SLEEP_SLACK: Duration = Duration::from_micros(20);

/// A warp collective: the properties that instructions must share for lanes to execute them together (PTX ISA,
/// `vote.sync`: "the same qualifiers and the same membermask").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Kind of the instructions.
    pub kind: InstKind,
    /// Their qualifiers.
    pub qualifiers: u16,
    /// Index of the operation of `redux`.
    pub redux: u32,
    /// Member mask.
    pub members: u32,
}

/// State of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentState {
    /// It can run.
    Ready,
    /// It waits at this warp collective for members that have not arrived. Lanes that merge with the fragment execute the
    /// instruction again together with it; lanes that complete the collective at another instruction execute it for the
    /// fragment.
    Sync(Collective),
    /// It waits at the block barrier of this number, in this phase. Its position is that of the barrier.
    Bar(u8, u32),
    /// It waits at the barrier of the cluster for the completion of this phase. Its position is that of the barrier.
    ClusterBarrier(u32),
    /// It sleeps until this time.
    Sleep(Instant),
}

/// Lanes at the same position.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// Program counter.
    pub pc: u32,
    /// Lanes.
    pub mask: u32,
    /// State.
    pub state: FragmentState,
    /// Value of [`Warp::time`] when the fragment was parked.
    pub since: u32,
}

/// The state that a return restores in one lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Return {
    /// Position after the call.
    pub pc: u32,
    /// Offset of the caller's frame.
    pub frame: u32,
    /// Bytes that `alloca` has added to that frame.
    pub dynamic: u32,
    /// Path of the caller.
    pub path: u64,
    /// Bytes of stack that the calls up to the caller use on a GPU.
    pub gpu_stack: u32,
}

/// Calls in progress, per lane.
#[derive(Default)]
pub struct Calls {
    /// Number of calls in progress.
    pub depth: [u32; LANES],
    /// Paths: lanes have the same one if they have the same return addresses at every depth. Zero without calls.
    pub path: [u64; LANES],
    /// The highest path in use.
    pub last_path: u64,
    /// Bytes of stack that the calls in progress use on a GPU at least.
    pub gpu_stack: [u32; LANES],
    /// Return records by depth.
    pub stack: Vec<[Return; LANES]>,
    /// Saved registers by depth, in the layout of the register file.
    pub saved: Vec<Vec<Line>>,
}

impl Calls {
    /// The path of lanes that call from the path and to the return address of `from`: that of a lane of `others` that has
    /// done so and not returned, or a new one.
    pub fn callee_path(&mut self, from: Return, depth: u32, others: u32) -> u64 {
        for l in lanes(others) {
            if self.depth[l] > depth {
                let r = self.stack[depth as usize][l];
                if (r.path, r.pc) == (from.path, from.pc) {
                    return self.path_at(l, depth + 1);
                }
            }
        }
        self.last_path += 1;
        self.last_path
    }

    /// The path of a lane when `depth` of its calls were in progress.
    fn path_at(&self, lane: usize, depth: u32) -> u64 {
        if depth == self.depth[lane] {
            self.path[lane]
        } else {
            self.stack[depth as usize][lane].path
        }
    }

    /// Orders two positions, each a lane and its program counter.
    fn order(&self, a: (usize, u32), b: (usize, u32)) -> Ordering {
        if self.path[a.0] == self.path[b.0] {
            return a.1.cmp(&b.1);
        }
        // The depth below which both have made the same calls. Paths differ at every depth beyond it.
        let mut same = 0;
        let mut differs = self.depth[a.0].min(self.depth[b.0]) + 1;
        while differs - same > 1 {
            let middle = same + (differs - same) / 2;
            if self.path_at(a.0, middle) == self.path_at(b.0, middle) {
                same = middle;
            } else {
                differs = middle;
            }
        }
        // A lane in a call is between the call and its return address.
        let key = |(lane, pc): (usize, u32)| {
            if self.depth[lane] == same {
                2 * u64::from(pc)
            } else {
                2 * u64::from(self.stack[same as usize][lane].pc) - 1
            }
        };
        key(a).cmp(&key(b))
    }
}

/// A warp.
pub struct Warp {
    /// Number in the block.
    pub index: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Program counter of the running fragment.
    pub pc: u32,
    /// Lanes of the running fragment; zero if no fragment is running.
    pub mask: u32,
    /// The lowest program counter after `pc` at which the running fragment can merge with a parked one of the same path.
    pub next_merge: u32,
    /// Parked fragments.
    pub fragments: Vec<Fragment>,
    /// Whether the running fragment runs although a ready one may have a lower position.
    pub rotating: bool,
    /// Lanes that have slept since a fragment of sleepers last merged with lanes that have not slept.
    pub slept: u32,
    /// Whether one of them has slept again.
    pub polling: bool,
    /// Whether no fragment may run because one sleeps that does not poll.
    pub asleep: bool,
    /// Whether the next collective proceeds without its missing members.
    pub force_collective: bool,
    /// Number of times that lanes were parked: the clock of [`Fragment::since`].
    pub time: u32,
    /// Remaining fuel.
    pub fuel: i32,
    /// How often the fuel has run out in this block.
    pub slow: u32,
    /// Base of the register file, which the block owns; null while the warp has none.
    pub regs: *mut u8,
    /// Index of the register file in the block.
    pub file: u32,
    /// Local memory of the lanes, interleaved by 4-byte words; allocated on first use.
    pub local: Vec<Line>,
    /// Calls in progress.
    pub calls: Option<Box<Calls>>,
    /// Its arrivals at the barrier of the cluster.
    pub cluster_barrier: ClusterArrivals,
    /// Whether the warp has started.
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
            next_merge: u32::MAX,
            fragments: Vec::new(),
            rotating: false,
            slept: 0,
            polling: false,
            asleep: false,
            force_collective: false,
            time: 0,
            fuel: FUEL,
            slow: 0,
            regs: std::ptr::null_mut(),
            file: 0,
            local: Vec::new(),
            calls: None,
            cluster_barrier: ClusterArrivals::default(),
            started: false,
        }
    }

    /// Prepares the warp for the threads `lanes` of a new block.
    pub fn reset(&mut self, index: u32, lanes: u32) {
        self.index = index;
        self.live = lanes;
        self.pc = 0;
        self.mask = lanes;
        self.next_merge = u32::MAX;
        self.fragments.clear();
        self.rotating = false;
        self.slept = 0;
        self.polling = false;
        self.asleep = false;
        self.force_collective = false;
        self.time = 0;
        self.fuel = FUEL;
        self.slow = 0;
        self.cluster_barrier = ClusterArrivals::default();
        self.started = false;
        if let Some(c) = &mut self.calls {
            c.depth = [0; LANES];
            c.path = [0; LANES];
            c.last_path = 0;
            c.gpu_stack = [0; LANES];
        }
    }

    /// Initializes the fixed locations that depend on the thread index.
    ///
    /// Inlined into the interpreter's loop, so that its vector stores are as wide as the loads that follow.
    #[inline(always)]
    pub fn begin(&mut self, program: &Program, launch: &Launch<'_>) {
        self.started = true;
        let regs = self.regs;
        let lane = |at: u32| regs.wrapping_add(at as usize).cast::<u32>();
        // SAFETY: every register file contains the fixed locations, aligned.
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
            let indices = &launch.thread_indices[self.index as usize];
            for (axis, of_axis) in indices.iter().enumerate() {
                if program.uses_tid[axis] {
                    *lane(fixed::TID[axis]).cast::<[u32; LANES]>() = of_axis.0;
                }
            }
        }
    }

    /// The path of the lanes `mask`, which are those of one fragment.
    #[inline(always)]
    fn path(&self, mask: u32) -> u64 {
        self.calls.as_ref().map_or(0, |c| c.path[first_lane(mask)])
    }

    /// Orders the positions of two fragments, each a mask and a program counter.
    fn order(&self, a: (u32, u32), b: (u32, u32)) -> Ordering {
        match &self.calls {
            Some(c) => c.order((first_lane(a.0), a.1), (first_lane(b.0), b.1)),
            None => a.1.cmp(&b.1),
        }
    }

    /// Parks lanes of one path.
    pub fn park(&mut self, pc: u32, mask: u32, state: FragmentState) {
        self.time = self.time.wrapping_add(1);
        let path = self.path(mask);
        let calls = self.calls.as_deref();
        for f in &mut self.fragments {
            let same_path = calls.is_none_or(|c| c.path[first_lane(f.mask)] == path);
            if f.pc == pc && f.state == state && same_path {
                f.mask |= mask;
                return;
            }
        }
        self.fragments.push(Fragment {
            pc,
            mask,
            state,
            since: self.time,
        });
    }

    /// Makes parked fragment `n` the running one.
    fn take(&mut self, n: usize) {
        let f = self.fragments.swap_remove(n);
        self.pc = f.pc;
        self.mask = f.mask;
    }

    /// Whether all live lanes are one fragment that can run; it then runs.
    pub fn assemble(&mut self) -> bool {
        if self.mask == 0 {
            match self.fragments.as_slice() {
                [f] if f.mask == self.live && f.state == FragmentState::Ready => {
                    self.take(0);
                    self.next_merge = u32::MAX;
                    self.rotating = false;
                }
                _ => return false,
            }
        }
        self.mask == self.live && self.fragments.is_empty()
    }

    /// Lanes that wait at this collective.
    pub fn waiting_at(&self, collective: Collective) -> u32 {
        self.fragments
            .iter()
            .filter(|f| f.state == FragmentState::Sync(collective))
            .fold(0, |s, f| s | f.mask)
    }

    /// Removes lanes that have exited, and resumes one fragment of each collective that waited only for them. It executes
    /// the collective for the others.
    pub fn remove(&mut self, exited: u32) {
        self.live &= !exited;
        for n in 0..self.fragments.len() {
            if let FragmentState::Sync(c) = self.fragments[n].state
                && c.members & self.live & !self.waiting_at(c) == 0
            {
                self.fragments[n].state = FragmentState::Ready;
            }
        }
    }

    /// Index of the fragment with the lowest position among those that `wanted` accepts.
    fn lowest(&self, wanted: impl Fn(&Fragment) -> bool) -> Option<usize> {
        self.fragments
            .iter()
            .enumerate()
            .filter(|(_, f)| wanted(f))
            .min_by(|(_, a), (_, b)| self.order((a.mask, a.pc), (b.mask, b.pc)))
            .map(|(n, _)| n)
    }

    /// Records that the running fragment sleeps, and returns whether it polls: its lanes have slept repeatedly without
    /// meeting others, which therefore no longer wait for them.
    pub fn polls(&mut self, mask: u32) -> bool {
        self.polling |= self.slept & mask != 0;
        self.slept |= mask;
        self.polling
    }

    /// Parks the running fragment, which sleeps until `until` and then runs at `pc`.
    pub fn sleep(&mut self, pc: u32, mask: u32, until: Instant) {
        self.asleep = !self.polls(mask);
        self.park(pc, mask, FragmentState::Sleep(until));
    }

    /// When the first of the sleeping fragments wakes; `None` if none sleeps.
    pub fn wake_time(&self) -> Option<Instant> {
        let times = self.fragments.iter().filter_map(|f| match f.state {
            FragmentState::Sleep(until) => Some(until),
            _ => None,
        });
        times.min()
    }

    /// Makes the fragments ready that have slept long enough.
    fn wake(&mut self) {
        let Some(first) = self.wake_time() else {
            return;
        };
        let now = Instant::now();
        if now < first {
            return;
        }
        self.asleep = false;
        for f in &mut self.fragments {
            if matches!(f.state, FragmentState::Sleep(until) if until <= now + SLEEP_SLACK) {
                f.state = FragmentState::Ready;
            }
        }
    }

    /// Runs the lowest fragment that can run; returns false if no fragment can.
    pub fn resume_next(&mut self) -> bool {
        self.mask = 0;
        self.rotating = false;
        self.wake();
        if self.asleep {
            return false;
        }
        if let Some(n) = self.lowest(|f| f.state == FragmentState::Ready) {
            self.take(n);
        } else if let Some(n) = self.lowest(|f| matches!(f.state, FragmentState::Sync(_))) {
            // The missing members may still arrive if they sleep or wait at a barrier. Otherwise they never will.
            let missing = |f: &Fragment| match f.state {
                FragmentState::Sleep(_) => true,
                FragmentState::Bar(..) | FragmentState::ClusterBarrier(_) => !self.force_collective,
                _ => false,
            };
            if self.fragments.iter().any(missing) {
                return false;
            }
            self.force_collective = true;
            self.take(n);
        } else {
            return false;
        }
        self.merge_at_pc();
        true
    }

    /// Merges the fragments at the running fragment's position into it, and updates [`Self::next_merge`].
    fn merge_at_pc(&mut self) {
        let mut stop = u32::MAX;
        let path = self.path(self.mask);
        let mut n = 0;
        while n < self.fragments.len() {
            let f = self.fragments[n];
            let waits = matches!(
                f.state,
                FragmentState::Bar(..) | FragmentState::ClusterBarrier(_) | FragmentState::Sleep(_)
            );
            if waits || self.path(f.mask) != path {
                n += 1;
            } else if f.pc == self.pc {
                self.mask |= f.mask;
                if self.mask & !self.slept != 0 {
                    self.slept = 0;
                    self.polling = false;
                }
                self.fragments.swap_remove(n);
            } else {
                if f.pc > self.pc {
                    stop = stop.min(f.pc);
                }
                n += 1;
            }
        }
        self.next_merge = stop;
    }

    /// Moves the running fragment to `pc`: it merges with the fragments there, and yields to a lower one.
    #[cold]
    #[inline(never)]
    pub fn reconverge(&mut self, pc: u32, mask: u32) {
        self.pc = pc;
        self.mask = mask;
        self.merge_at_pc();
        if !self.rotating
            && self.fragments.iter().any(|f| {
                f.state == FragmentState::Ready && self.order((f.mask, f.pc), (mask, pc)).is_lt()
            })
        {
            let (pc, mask) = (self.pc, self.mask);
            self.park(pc, mask, FragmentState::Ready);
            self.resume_next();
        }
    }

    /// Splits the running fragment: `taken` goes to `target`, the other lanes of `mask` to `next`.
    #[cold]
    #[inline(never)]
    pub fn split(&mut self, mask: u32, taken: u32, target: u32, next: u32) {
        let rest = mask & !taken;
        if target < next {
            self.park(next, rest, FragmentState::Ready);
            self.reconverge(target, taken);
        } else {
            self.park(target, taken, FragmentState::Ready);
            self.reconverge(next, rest);
        }
    }

    /// Runs the ready fragment that has waited longest; returns false if no fragment is ready.
    pub fn rotate(&mut self, pc: u32, mask: u32) -> bool {
        self.wake();
        let oldest = self
            .fragments
            .iter()
            .enumerate()
            .filter(|(_, f)| f.state == FragmentState::Ready)
            .min_by_key(|(_, f)| f.since)
            .map(|(n, _)| n);
        let Some(n) = oldest else {
            return false;
        };
        self.take(n);
        self.park(pc, mask, FragmentState::Ready);
        self.rotating = true;
        self.merge_at_pc();
        true
    }
}

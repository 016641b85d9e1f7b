//! What lanes of a warp, and warps of a block, do together.

use cupyrite_ptx::ir::{AtomOp, Type};

use super::interpreter::{Cx, fault};
use super::memory::splat32;
use super::warp::{ALL, LANES, State, Warp};
use crate::engine::fault_report::{FaultKind, LaneFault};
use crate::engine::program::{BarMode, Inst, Kind};

/// A block barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Barrier {
    /// Threads that have arrived in this phase.
    pub arrived: u32,
    /// Threads expected; zero is every live thread of the block.
    pub expected: u32,
    /// Number of completed phases.
    pub phase: u32,
    /// Threads of this phase whose predicate holds.
    pub holds: u32,
    /// Threads of this phase that brought a predicate.
    pub voted: u32,
    /// [`Self::holds`] and [`Self::voted`] of the phase before.
    pub result: (u32, u32),
}

impl Barrier {
    fn complete(&mut self) {
        self.phase = self.phase.wrapping_add(1);
        self.result = (self.holds, self.voted);
        self.arrived = 0;
        self.holds = 0;
        self.voted = 0;
        self.expected = 0;
    }

    /// Completes the phase if everybody is there.
    pub fn settle(&mut self, live: u32) -> bool {
        let want = if self.expected == 0 {
            live
        } else {
            self.expected
        };
        let full = self.arrived > 0 && self.arrived >= want;
        if full {
            self.complete();
        }
        full
    }
}

/// What an arriving fragment does.
pub enum Bar {
    /// Goes on (it only arrived).
    Continue,
    /// Waits in this state.
    Wait(State),
}

/// `bar`, `barrier`.
///
/// # Safety
/// `inst` is a decoded instruction of the program whose register file `regs` is.
pub unsafe fn barrier(
    cx: &mut Cx<'_>,
    w: &Warp,
    regs: *mut u8,
    inst: &Inst,
    _pc: u32,
    m: u32,
) -> Result<Bar, Box<LaneFault>> {
    let op = cx.program.bars[inst.target as usize];
    let first = m.trailing_zeros() as usize & 31;
    // SAFETY: places lie in the register file.
    let (id, count, holds) = unsafe {
        let read = |at: u32| *regs.add(at as usize).cast::<u32>().add(first);
        let p = *regs.add(op.pred.0 as usize).cast::<u32>();
        (
            read(op.id),
            op.count.map_or(0, read),
            if op.pred.1 { !p } else { p },
        )
    };
    if id > 15 {
        return Err(fault(
            FaultKind::IllegalInstruction,
            m,
            format!("barrier {id}; there are 16"),
        ));
    }
    if !count.is_multiple_of(32) || count > 1024 {
        return Err(fault(
            FaultKind::IllegalInstruction,
            m,
            format!("a barrier of {count} threads; it must be a multiple of 32"),
        ));
    }
    let live = cx.core.live_threads;
    let bar = &mut cx.core.barriers[id as usize & 15];
    if count != 0 {
        bar.expected = count;
        // Counts are in whole warps: absent lanes of a warp that has arrived count too.
        if m == w.live {
            bar.arrived += 32 - w.live.count_ones();
        }
    }
    bar.arrived += m.count_ones();
    bar.holds += (holds & m).count_ones();
    bar.voted += m.count_ones();
    let phase = bar.phase;
    let full = bar.settle(live);
    cx.core.released |= full;
    if op.mode == BarMode::Arrive {
        return Ok(Bar::Continue);
    }
    Ok(Bar::Wait(State::Bar(id as u8, phase)))
}

/// Lets the fragments of `w` go whose barrier has completed; true if there were any.
///
/// # Safety
/// The warp has a register file of `program`.
pub unsafe fn release(
    program: &crate::engine::program::Program,
    barriers: &[Barrier; 16],
    w: &mut Warp,
) -> bool {
    let mut any = false;
    let regs = w.regs;
    for n in 0..w.frags.len() {
        let f = w.frags[n];
        let State::Bar(id, phase) = f.state else {
            continue;
        };
        let bar = &barriers[usize::from(id) & 15];
        if bar.phase == phase {
            continue;
        }
        any = true;
        let inst = &program.code[f.pc as usize];
        let op = program.bars[inst.target as usize];
        let (holds, voted) = bar.result;
        // SAFETY: places lie in the register file.
        unsafe {
            match op.mode {
                BarMode::RedPopc => splat32(regs, op.dst, holds, f.mask),
                BarMode::RedAnd | BarMode::RedOr => {
                    let yes = if op.mode == BarMode::RedAnd {
                        holds == voted
                    } else {
                        holds > 0
                    };
                    let p = regs.add(op.dst as usize).cast::<u32>();
                    *p = if yes { *p | f.mask } else { *p & !f.mask };
                }
                _ => {}
            }
        }
        w.frags[n].pc = f.pc + 1;
        w.frags[n].state = State::Ready;
    }
    any
}

fn members_at(inst: &Inst) -> Option<u32> {
    match inst.kind {
        Kind::BarWarp => Some(inst.args.src[0]),
        Kind::Shfl if inst.aux & 0x80 == 0 => Some(inst.args.src[3]),
        Kind::Vote if inst.aux & 0x80 == 0 => Some(inst.args.src[1]),
        Kind::Match | Kind::Redux | Kind::Elect => Some(inst.args.src[1]),
        _ => None,
    }
}

/// Lanes whose element equals `wanted`.
fn lanes_equal(elements: &[u32; LANES], wanted: u32) -> u32 {
    if elements.iter().fold(0, |d, &e| d | (e ^ wanted)) == 0 {
        return ALL;
    }
    (0..LANES).fold(0, |s, l| s | u32::from(elements[l] == wanted) << l)
}

/// Executes a warp collective for the lanes `m` and returns the lanes that have executed it.
///
/// Lanes with the same member mask form one group, and each group is a collective of its own (PTX ISA, `vote.sync`:
/// a thread waits for the threads of its mask to execute the instruction "with the same membermask"). A group is
/// complete if it holds every member that has not exited. Incomplete groups are parked until the missing members
/// arrive. A lane outside its own mask, which the PTX ISA leaves undefined, receives the result of its group.
///
/// # Safety
/// `inst` is a decoded instruction of the program whose register file `regs` is.
#[inline(never)]
pub unsafe fn run(
    cx: &mut Cx<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    pc: u32,
    m: u32,
) -> u32 {
    let forced = std::mem::take(&mut w.force);
    let Some(at) = members_at(inst) else {
        // SAFETY: the caller's promise.
        unsafe { run_group(cx, regs, inst, m, m) };
        return m;
    };
    // SAFETY: member masks are in a 32-bit slot. They are copied, as a result may overwrite the slot.
    let masks: [u32; LANES] = unsafe { *regs.add(at as usize).cast() };
    let mut left = m;
    let mut done = 0;
    while left != 0 {
        let members = masks[left.trailing_zeros() as usize & 31];
        let group = lanes_equal(&masks, members) & left;
        left &= !group;
        if members & w.live & !group != 0 && !forced {
            w.park(pc, group, State::Sync(members));
            continue;
        }
        let participating = if group & members == 0 {
            group
        } else {
            group & members
        };
        // SAFETY: the caller's promise.
        unsafe { run_group(cx, regs, inst, group, participating) };
        done |= group;
    }
    done
}

/// Executes a warp collective for one group: `g` participates, and the lanes `m` receive the result.
///
/// # Safety
/// `inst` is a decoded instruction of the program whose register file `regs` is.
unsafe fn run_group(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32, g: u32) {
    // SAFETY: places lie in the register file and have the widths that the decoder gave them.
    unsafe {
        let slot = |at: u32| regs.add(at as usize).cast::<u32>();
        let set_pred = |at: u32, bits: u32| {
            let p = slot(at);
            *p = *p & !m | bits & m;
        };
        match inst.kind {
            Kind::Shfl => shfl(regs, inst, m),
            Kind::Vote => {
                let p = *slot(inst.args.src[0]);
                let p = if inst.aux & 0x40 != 0 { !p } else { p };
                let yes = p & g;
                let flag = |b: bool| if b { ALL } else { 0 };
                match inst.aux & 3 {
                    0 => set_pred(inst.args.dst[0], flag(yes == g)),
                    1 => set_pred(inst.args.dst[0], flag(yes != 0)),
                    2 => set_pred(inst.args.dst[0], flag(yes == g || yes == 0)),
                    _ => splat32(regs, inst.args.dst[0], yes, m),
                }
            }
            Kind::Match => {
                let value = |l: usize| {
                    if inst.aux & 2 != 0 {
                        *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l)
                    } else {
                        u64::from(*slot(inst.args.src[0]).add(l))
                    }
                };
                let values: [u64; LANES] = std::array::from_fn(value);
                let equal = |v: u64| {
                    (0..LANES).fold(0u32, |s, l| {
                        s | u32::from(values[l] == v && g >> l & 1 != 0) << l
                    })
                };
                if inst.aux & 1 != 0 {
                    let all = equal(values[g.trailing_zeros() as usize & 31]) == g;
                    splat32(regs, inst.args.dst[0], if all { g } else { 0 }, m);
                    set_pred(inst.args.dst[1], if all { ALL } else { 0 });
                } else {
                    for (l, &v) in values.iter().enumerate() {
                        if m >> l & 1 != 0 {
                            *slot(inst.args.dst[0]).add(l) = equal(v);
                        }
                    }
                }
            }
            Kind::Redux => {
                let op = cx.program.redux[inst.target as usize];
                let src = slot(inst.args.src[0]);
                let mut it = (0..LANES).filter(|l| g >> l & 1 != 0).map(|l| *src.add(l));
                let mut r = it.next().unwrap_or(0);
                if op.abs {
                    r &= 0x7fff_ffff;
                }
                for v in it {
                    r = redux(op.op, op.ty, op.abs, op.nan, r, v);
                }
                splat32(regs, inst.args.dst[0], r, m);
            }
            Kind::Elect => {
                let leader = g.trailing_zeros();
                splat32(regs, inst.args.dst[0], leader, m);
                set_pred(inst.args.dst[1], 1 << (leader & 31));
            }
            _ => {}
        }
    }
}

fn redux(op: AtomOp, ty: Type, abs: bool, nan: bool, a: u32, b: u32) -> u32 {
    if ty == Type::F32 {
        let (x, mut y) = (f32::from_bits(a), f32::from_bits(b));
        if abs {
            y = y.abs();
        }
        if nan && (x.is_nan() || y.is_nan()) {
            return 0x7fff_ffff;
        }
        let r = match op {
            AtomOp::Min if x == y => {
                if x.is_sign_negative() {
                    x
                } else {
                    y
                }
            }
            AtomOp::Max if x == y => {
                if x.is_sign_negative() {
                    y
                } else {
                    x
                }
            }
            AtomOp::Min => x.min(y),
            _ => x.max(y),
        };
        return if r.is_nan() { 0x7fff_ffff } else { r.to_bits() };
    }
    match op {
        AtomOp::Min if ty.is_signed() => (a as i32).min(b as i32) as u32,
        AtomOp::Max if ty.is_signed() => (a as i32).max(b as i32) as u32,
        AtomOp::Min => a.min(b),
        AtomOp::Max => a.max(b),
        AtomOp::And => a & b,
        AtomOp::Or => a | b,
        AtomOp::Xor => a ^ b,
        _ => a.wrapping_add(b),
    }
}

unsafe fn shfl(regs: *mut u8, inst: &Inst, m: u32) {
    // SAFETY: all four sources and the first destination are 32-bit slots, the second a predicate.
    unsafe {
        let slot = |at: u32| regs.add(at as usize).cast::<u32>();
        let values: [u32; LANES] = *slot(inst.args.src[0]).cast();
        let b: [u32; LANES] = *slot(inst.args.src[1]).cast();
        let c: [u32; LANES] = *slot(inst.args.src[2]).cast();
        let dst = slot(inst.args.dst[0]);
        let mut inside = 0u32;
        for lane in 0..32u32 {
            if m >> lane & 1 == 0 {
                continue;
            }
            let l = lane as usize;
            let bval = b[l] & 31;
            let segment = c[l] >> 8 & 31;
            let max = (lane & segment) | (c[l] & 31 & !segment);
            let min = lane & segment;
            let (from, ok) = match inst.aux & 3 {
                0 => {
                    let j = lane as i32 - bval as i32;
                    (j, j >= max as i32)
                }
                1 => {
                    let j = (lane + bval) as i32;
                    (j, j <= max as i32)
                }
                2 => {
                    let j = (lane ^ bval) as i32;
                    (j, j <= max as i32)
                }
                _ => {
                    let j = (min | (bval & !segment)) as i32;
                    (j, j <= max as i32)
                }
            };
            let from = if ok { from as u32 & 31 } else { lane };
            inside |= u32::from(ok) << lane;
            // Reading from a lane that is not taking part gives an unspecified value.
            *dst.add(l) = values[from as usize];
        }
        let p = slot(inst.args.dst[1]);
        *p = *p & !m | inside;
    }
}

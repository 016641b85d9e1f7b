//! Instructions that lanes of a warp execute together: `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp.sync`.

use cupyrite_ptx::ir::{AtomOp, Type};

use super::context::Context;
use super::lanes::{ALL, LANES, first_lane, lanes};
use super::memory::splat32;
use super::warp::{FragmentState, Warp};
use crate::engine::program::{Inst, InstKind};

/// Location of the member mask; `None` for the forms without `.sync`.
fn members_at(inst: &Inst) -> Option<u32> {
    match inst.kind {
        InstKind::BarWarp => Some(inst.args.src[0]),
        InstKind::Shfl if inst.aux & 0x80 == 0 => Some(inst.args.src[3]),
        InstKind::Vote if inst.aux & 0x80 == 0 => Some(inst.args.src[1]),
        InstKind::Match | InstKind::Redux | InstKind::Elect => Some(inst.args.src[1]),
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

/// Executes a warp collective for the lanes `active` and returns the lanes that have executed it.
///
/// Lanes with the same member mask form one group, and each group is a collective of its own (PTX ISA, `vote.sync`:
/// a thread waits for the threads of its mask to execute the instruction "with the same membermask"). A group is
/// complete if it holds every member that has not exited. Incomplete groups are parked until the missing members
/// arrive. A lane outside its own mask, which the PTX ISA leaves undefined, receives the result of its group.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn run(
    cx: &mut Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    pc: u32,
    active: u32,
) -> u32 {
    let forced = std::mem::take(&mut w.force_collective);
    let Some(at) = members_at(inst) else {
        // SAFETY: upheld by the caller.
        unsafe { run_group(cx, regs, inst, active, active) };
        return active;
    };
    // SAFETY: member masks are in a 32-bit slot. They are copied, as a result may overwrite the slot.
    let masks: [u32; LANES] = unsafe { *regs.add(at as usize).cast() };
    let mut left = active;
    let mut done = 0;
    while left != 0 {
        let members = masks[first_lane(left)];
        let group = lanes_equal(&masks, members) & left;
        left &= !group;
        if members & w.live & !group != 0 && !forced {
            w.park(pc, group, FragmentState::Sync(members));
            continue;
        }
        let participating = if group & members == 0 {
            group
        } else {
            group & members
        };
        // SAFETY: upheld by the caller.
        unsafe { run_group(cx, regs, inst, group, participating) };
        done |= group;
    }
    done
}

/// Executes a warp collective for one group: the lanes `participating` contribute, the lanes `active` receive the result.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
unsafe fn run_group(
    cx: &mut Context<'_>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
    participating: u32,
) {
    // SAFETY: the operands lie in the register file and have the shapes that the compiler chose.
    unsafe {
        let slot = |at: u32| regs.add(at as usize).cast::<u32>();
        let set_pred = |at: u32, bits: u32| {
            let p = slot(at);
            *p = *p & !active | bits & active;
        };
        match inst.kind {
            InstKind::Shfl => shfl(regs, inst, active),
            InstKind::Vote => {
                let p = *slot(inst.args.src[0]);
                let p = if inst.aux & 0x40 != 0 { !p } else { p };
                let yes = p & participating;
                let flag = |b: bool| if b { ALL } else { 0 };
                match inst.aux & 3 {
                    0 => set_pred(inst.args.dst[0], flag(yes == participating)),
                    1 => set_pred(inst.args.dst[0], flag(yes != 0)),
                    2 => set_pred(inst.args.dst[0], flag(yes == participating || yes == 0)),
                    _ => splat32(regs, inst.args.dst[0], yes, active),
                }
            }
            InstKind::Match => {
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
                        s | u32::from(values[l] == v && participating >> l & 1 != 0) << l
                    })
                };
                if inst.aux & 1 != 0 {
                    let all = equal(values[first_lane(participating)]) == participating;
                    splat32(
                        regs,
                        inst.args.dst[0],
                        if all { participating } else { 0 },
                        active,
                    );
                    set_pred(inst.args.dst[1], if all { ALL } else { 0 });
                } else {
                    for l in lanes(active) {
                        *slot(inst.args.dst[0]).add(l) = equal(values[l]);
                    }
                }
            }
            InstKind::Redux => {
                let op = cx.program.redux[inst.target as usize];
                let src = slot(inst.args.src[0]);
                let mut it = lanes(participating).map(|l| *src.add(l));
                let mut r = it.next().unwrap_or(0);
                if op.abs {
                    r &= 0x7fff_ffff;
                }
                for v in it {
                    r = redux(op.op, op.ty, op.abs, op.nan, r, v);
                }
                splat32(regs, inst.args.dst[0], r, active);
            }
            InstKind::Elect => {
                let leader = participating.trailing_zeros();
                splat32(regs, inst.args.dst[0], leader, active);
                set_pred(inst.args.dst[1], 1 << (leader & 31));
            }
            _ => {}
        }
    }
}

/// One step of `redux`: combines two values.
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

/// `shfl`. Groups need no distinction: a lane only reads the lane that it names.
unsafe fn shfl(regs: *mut u8, inst: &Inst, active: u32) {
    // SAFETY: the sources and the first destination are 32-bit slots, the second destination is a predicate.
    unsafe {
        let slot = |at: u32| regs.add(at as usize).cast::<u32>();
        let values: [u32; LANES] = *slot(inst.args.src[0]).cast();
        let b: [u32; LANES] = *slot(inst.args.src[1]).cast();
        let c: [u32; LANES] = *slot(inst.args.src[2]).cast();
        let dst = slot(inst.args.dst[0]);
        let mut inside = 0u32;
        for lane in 0..32u32 {
            if active >> lane & 1 == 0 {
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
            // The value of a lane that does not participate is unspecified.
            *dst.add(l) = values[from as usize];
        }
        let p = slot(inst.args.dst[1]);
        *p = *p & !active | inside;
    }
}

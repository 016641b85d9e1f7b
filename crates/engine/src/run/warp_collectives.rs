//! Instructions that lanes of a warp execute together: `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp.sync`.

use cupyrite_ptx::ir::VoteMode;

use super::context::Context;
use super::lanes::{ALL, LANES, first_lane, lanes};
use super::memory::model::MemoryModel;
use super::memory::splat32;
use super::warp::{Collective, Fragment, FragmentState, Warp};
use crate::bytecode::{GUARD_NOT, GUARDED, Inst, InstKind, VOTE_NOT, shfl_mode, vote_mode};
use crate::semantics::collective;

/// Location of the member mask; `None` for the forms without `.sync` and for other instructions.
pub fn members_at(inst: &Inst) -> Option<u32> {
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

/// Executes a warp collective for the lanes `active` and returns the lanes that proceed with the next instruction.
///
/// Lanes with the same member mask form one group, and each group is a collective of its own (PTX ISA, `vote.sync`:
/// a thread waits for the threads of its mask to execute the instruction "with the same qualifiers and same membermask").
/// A group is complete if every member that has not exited has arrived, at this instruction or at others with the same
/// qualifiers and mask. Incomplete groups are parked until the missing members arrive. Groups that other instructions
/// complete are executed and parked behind them. A lane outside its own mask, which the PTX ISA leaves undefined, receives
/// the result of its group.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn run(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    pc: u32,
    active: u32,
) -> u32 {
    let forced = std::mem::take(&mut w.force_collective);
    let Some(at) = members_at(inst) else {
        // SAFETY: upheld by the caller.
        unsafe { run_group(cx, regs, inst, source(regs, inst), active, active) };
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
        if members & w.live & !group != 0 {
            let collective = Collective {
                kind: inst.kind,
                qualifiers: inst.aux & !VOTE_NOT,
                redux: inst.target,
                members,
            };
            let waiting = w.waiting_at(collective);
            if !forced && members & w.live & !(group | waiting) != 0 {
                w.park(pc, group, FragmentState::Sync(collective));
                continue;
            }
            if waiting != 0 {
                // SAFETY: upheld by the caller; `pc` is the position of `inst`.
                unsafe { run_joined(cx, w, regs, collective, group | waiting, (pc, group)) };
                continue;
            }
        }
        // SAFETY: upheld by the caller.
        unsafe {
            let participating = participating(group, members);
            run_group(cx, regs, inst, source(regs, inst), group, participating);
        }
        done |= group;
    }
    done
}

/// Executes the instruction at `pc` for all live lanes of several warps if it is a lane function or a warp collective that every
/// warp executes as one group; otherwise changes nothing. Returns whether all lanes proceed with the next instruction.
///
/// # Safety
/// The warps belong to the block of `cx` and have register files of its program. All their live lanes are at `pc`.
pub unsafe fn step_together(
    cx: &mut Context<'_, impl MemoryModel>,
    warps: &mut [Warp],
    pc: u32,
) -> bool {
    let inst = &cx.program.code[pc as usize];
    let guarded = inst.flags & GUARDED != 0;
    let collective = match inst.kind {
        InstKind::Lanes => false,
        InstKind::BarWarp
        | InstKind::Shfl
        | InstKind::Vote
        | InstKind::Match
        | InstKind::Redux
        | InstKind::Elect
        | InstKind::ActiveMask
            if !guarded =>
        {
            true
        }
        _ => return false,
    };
    if let Some(at) = members_at(inst).filter(|_| collective) {
        // SAFETY: upheld by the caller; member masks are in a 32-bit slot.
        let whole = |w: &Warp| unsafe { is_one_group(&*w.regs.add(at as usize).cast(), w.live) };
        if !warps.iter().all(|w| w.live == 0 || whole(w)) {
            return false;
        }
    }
    for w in warps.iter_mut().filter(|w| w.live != 0) {
        let (regs, live) = (w.regs, w.live);
        // SAFETY: upheld by the caller.
        unsafe {
            match inst.kind {
                InstKind::Lanes => {
                    let p = *regs.add(inst.guard as usize).cast::<u32>();
                    let p = match (guarded, inst.flags & GUARD_NOT != 0) {
                        (false, _) => ALL,
                        (true, false) => p,
                        (true, true) => !p,
                    };
                    (inst.run)(regs, &inst.args, live & p);
                }
                InstKind::ActiveMask => splat32(regs, inst.args.dst[0], live, live),
                _ => {
                    // The group is complete.
                    run(cx, w, regs, inst, pc, live);
                }
            }
        }
    }
    true
}

/// Executes a warp collective, the instruction at `pc`, for all lanes of a warp, unless some of them are no members. Returns
/// whether all lanes proceed with the next instruction.
///
/// # Safety
/// The warp belongs to the block of `cx` and has a register file of its program. All its lanes are live, and at `pc`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub unsafe fn step_whole(cx: &mut Context<'_, impl MemoryModel>, w: &mut Warp, pc: u32) -> bool {
    let inst = &cx.program.code[pc as usize];
    let regs = w.regs;
    if let Some(at) = members_at(inst) {
        // SAFETY: upheld by the caller; member masks are in a 32-bit slot.
        let whole = unsafe { is_one_group(&*regs.add(at as usize).cast(), ALL) };
        if !whole {
            return false;
        }
    }
    // SAFETY: upheld by the caller.
    unsafe { run(cx, w, regs, inst, pc, ALL) == ALL }
}

/// Whether the lanes `live` have the same member mask, and are its live members.
fn is_one_group(masks: &[u32; LANES], live: u32) -> bool {
    let members = masks[first_lane(live)];
    members & live == live && lanes_equal(masks, members) & live == live
}

/// Lanes of a group that contribute to its result.
fn participating(group: u32, members: u32) -> u32 {
    if group & members == 0 {
        group
    } else {
        group & members
    }
}

/// The elements that the lanes contribute.
fn source(regs: *mut u8, inst: &Inst) -> *const u8 {
    regs.wrapping_add(inst.args.src[0] as usize)
}

/// Executes a collective that the lanes `group` have reached at several instructions: the fragments that wait at it, and
/// `running` (position and lanes), which completes it. All of them become ready behind their instructions.
///
/// # Safety
/// `regs` is a register file of the program. The lanes of `running` are at an instruction of `collective`, which holds for
/// the waiting fragments because they were parked there.
#[cold]
#[inline(never)]
unsafe fn run_joined(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    collective: Collective,
    group: u32,
    running: (u32, u32),
) {
    let program = cx.program;
    let participating = participating(group, collective.members);
    w.park(running.0, running.1, FragmentState::Sync(collective));
    let waiting = |f: &&mut Fragment| f.state == FragmentState::Sync(collective);
    // Each instruction has its elements in a register of its own.
    let mut elements = [0u64; LANES];
    for f in w.fragments.iter_mut().filter(waiting) {
        // SAFETY: the operands lie in the register file, which the caller upholds.
        unsafe { gather(regs, &program.code[f.pc as usize], f.mask, &mut elements) };
    }
    for f in w.fragments.iter_mut().filter(waiting) {
        let mut inst = program.code[f.pc as usize];
        // `gather` has applied the negation.
        inst.aux = collective.qualifiers;
        // SAFETY: upheld by the caller; `elements` has the elements of all lanes, in the shape of the source.
        unsafe {
            run_group(
                cx,
                regs,
                &inst,
                elements.as_ptr().cast(),
                f.mask,
                participating,
            )
        };
        f.pc += 1;
        f.state = FragmentState::Ready;
    }
}

/// Copies the contributions of the lanes `from` at `inst` into `elements`, in the shape of the source register.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
unsafe fn gather(regs: *mut u8, inst: &Inst, from: u32, elements: &mut [u64; LANES]) {
    let source = source(regs, inst);
    let words = elements.as_mut_ptr().cast::<u32>();
    // SAFETY: sources are predicates (`vote`), 64-bit slots (`match.b64`) or 32-bit slots; `elements` has room for each.
    unsafe {
        match inst.kind {
            InstKind::Vote => {
                let p = *source.cast::<u32>();
                let p = if inst.aux & VOTE_NOT != 0 { !p } else { p };
                *words = *words & !from | p & from;
            }
            InstKind::Match if inst.aux & 2 != 0 => {
                for l in lanes(from) {
                    elements[l] = *source.cast::<u64>().add(l);
                }
            }
            InstKind::Shfl | InstKind::Match | InstKind::Redux => {
                for l in lanes(from) {
                    *words.add(l) = *source.cast::<u32>().add(l);
                }
            }
            // The others have no elements.
            _ => {}
        }
    }
}

/// Executes a warp collective for one group: the lanes `participating` contribute their elements of `source`, the lanes
/// `active` receive the result.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to. `source` has the shape of the source register.
unsafe fn run_group(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    source: *const u8,
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
            InstKind::Shfl => {
                let [_, lane, clamp, _] = inst.args.src;
                let (lane, clamp) = (slot(lane), slot(clamp));
                let (value, in_range) = collective::shuffle(
                    shfl_mode(inst.aux),
                    &*source.cast(),
                    &*lane.cast(),
                    &*clamp.cast(),
                );
                for l in lanes(active) {
                    *slot(inst.args.dst[0]).add(l) = value[l];
                }
                set_pred(inst.args.dst[1], in_range);
            }
            InstKind::Vote => {
                let p = *source.cast::<u32>();
                let p = if inst.aux & VOTE_NOT != 0 { !p } else { p };
                let yes = p & participating;
                match vote_mode(inst.aux) {
                    VoteMode::Ballot => splat32(regs, inst.args.dst[0], yes, active),
                    mode => {
                        let holds = collective::vote(mode, yes, participating);
                        set_pred(inst.args.dst[0], if holds { ALL } else { 0 });
                    }
                }
            }
            InstKind::Match => {
                let value = |l: usize| {
                    if inst.aux & 2 != 0 {
                        *source.cast::<u64>().add(l)
                    } else {
                        u64::from(*source.cast::<u32>().add(l))
                    }
                };
                let values: [u64; LANES] = std::array::from_fn(value);
                if inst.aux & 1 != 0 {
                    let first = values[first_lane(participating)];
                    let all = collective::equal(&values, first, participating) == participating;
                    let found = if all { participating } else { 0 };
                    splat32(regs, inst.args.dst[0], found, active);
                    set_pred(inst.args.dst[1], if all { ALL } else { 0 });
                } else {
                    for l in lanes(active) {
                        let equal = collective::equal(&values, values[l], participating);
                        *slot(inst.args.dst[0]).add(l) = equal;
                    }
                }
            }
            InstKind::Redux => {
                let op = cx.program.redux[inst.target as usize];
                let values = lanes(participating).map(|l| *source.cast::<u32>().add(l));
                let r = collective::redux(op, values);
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

//! `bar` and `barrier`: barriers of the warps of a block.

use super::block_state::{BARRIERS, BlockBarrier, NAMED_BARRIERS};
use super::context::{Context, fault};
use super::lanes::first_lane;
use super::memory::model::MemoryModel;
use super::memory::splat32;
use super::warp::{FragmentState, Warp};
use crate::bytecode::{Inst, Program};
use crate::fault::{FaultKind, LaneFault};
use crate::kir::BarrierMode;
use crate::register_file::fixed;

/// The action of a fragment after it has arrived at a barrier.
pub enum Arrival {
    /// Proceeds: `bar.arrive` does not wait.
    Proceed,
    /// Waits in this state.
    Wait(FragmentState),
}

/// `bar`, `barrier`: the lanes `active` arrive.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn arrive(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> Result<Arrival, Box<LaneFault>> {
    let op = cx.program.barriers[inst.target as usize];
    let first = first_lane(active);
    // SAFETY: the operands lie in the register file.
    let (mut id, mut count, holds) = unsafe {
        let read = |at: u32| *regs.add(at as usize).cast::<u32>().add(first);
        let p = *regs.add(op.predicate.at as usize).cast::<u32>();
        (
            read(op.id.at),
            op.count.map_or(0, |r| read(r.at)),
            if op.negated { !p } else { p },
        )
    };
    if op.mode == BarrierMode::Warpgroup {
        const WARPS: u32 = 4;
        let [x, y, z] = cx.launch.block;
        let (group, warps) = (w.index / WARPS, (x * y * z).div_ceil(32));
        id = NAMED_BARRIERS as u32 + group;
        count = 32 * (warps - WARPS * group).min(WARPS);
    } else if id as usize >= NAMED_BARRIERS {
        return Err(fault(
            FaultKind::IllegalInstruction,
            active,
            format!("barrier {id}; a block has barriers 0 to 15"),
        ));
    }
    if !count.is_multiple_of(32) || count > 1024 {
        return Err(fault(
            FaultKind::IllegalInstruction,
            active,
            format!(
                "a barrier of {count} threads; the number must be a multiple of 32, at most 1024"
            ),
        ));
    }
    let live = cx.block.live_threads;
    let bar = &mut cx.block.barriers[id as usize % BARRIERS];
    if count != 0 {
        bar.expected = count;
        // Barriers count whole warps: lanes that do not exist or have exited count with the last ones of their warp.
        let here = FragmentState::Bar(id as u8, bar.phase);
        let earlier = w.fragments.iter().filter(|f| f.state == here);
        if earlier.fold(active, |all, f| all | f.mask) == w.live {
            bar.arrived += 32 - w.live.count_ones();
        }
    }
    bar.arrived += active.count_ones();
    bar.holds += (holds & active).count_ones();
    bar.voted += active.count_ones();
    let phase = bar.phase;
    let full = bar.complete_if_full(live);
    cx.block.released |= full;
    if op.mode == BarrierMode::Arrive {
        return Ok(Arrival::Proceed);
    }
    Ok(Arrival::Wait(FragmentState::Bar(id as u8, phase)))
}

/// Resumes the fragments of `w` whose barrier has completed, and returns whether there were any.
///
/// # Safety
/// `w` has a register file of `program`.
pub unsafe fn release(
    program: &Program,
    barriers: &[BlockBarrier; BARRIERS],
    w: &mut Warp,
) -> bool {
    let mut any = false;
    let regs = w.regs;
    for n in 0..w.fragments.len() {
        let f = w.fragments[n];
        let FragmentState::Bar(id, phase) = f.state else {
            continue;
        };
        let bar = &barriers[usize::from(id) % BARRIERS];
        if bar.phase == phase {
            continue;
        }
        any = true;
        let inst = &program.code[f.pc as usize];
        let op = program.barriers[inst.target as usize];
        let dst = op.dst.map_or(fixed::SINK, |r| r.at);
        let (holds, voted) = bar.result;
        // SAFETY: the operands lie in the register file.
        unsafe {
            match op.mode {
                BarrierMode::RedPopc => splat32(regs, dst, holds, f.mask),
                BarrierMode::RedAnd | BarrierMode::RedOr => {
                    let yes = if op.mode == BarrierMode::RedAnd {
                        holds == voted
                    } else {
                        holds > 0
                    };
                    let p = regs.add(dst as usize).cast::<u32>();
                    *p = if yes { *p | f.mask } else { *p & !f.mask };
                }
                _ => {}
            }
        }
        w.fragments[n].pc = f.pc + 1;
        w.fragments[n].state = FragmentState::Ready;
    }
    any
}

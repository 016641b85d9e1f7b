//! `mbarrier` objects in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
//!
//! The object is an opaque 64-bit word: pending arrivals in bits 0 to 19, expected arrivals in bits 20 to 39, the number of
//! completed phases above. Plain accesses suffice because the warps of a block run in turn. Asynchronous copies complete
//! at once, and so do their arrivals. Transaction counts (sm_90 and later) are not implemented.

use super::context::{Context, ExecResult, fault};
use super::lanes::lanes;
use super::memory::{ResolvedAddress, addresses, refused, resolve, set};
use crate::engine::fault_report::FaultKind;
use crate::engine::ops::Slot;
use crate::engine::program::{Inst, MbarrierAction, fixed};

const COUNT: u64 = (1 << 20) - 1;
const PHASE: u64 = 1 << 40;

fn pending(word: u64) -> u64 {
    word & COUNT
}

fn expected(word: u64) -> u64 {
    word >> 20 & COUNT
}

fn phase(word: u64) -> u64 {
    word >> 40
}

/// Executes an `mbarrier` instruction for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn run(cx: &mut Context<'_>, regs: *mut u8, inst: &Inst, active: u32) -> ExecResult {
    let op = cx.program.mbarriers[inst.target as usize];
    // SAFETY: the operands lie in the register file, and `resolve` checks every access.
    unsafe {
        let a = addresses(
            regs,
            inst.args.src[0],
            op.addr32,
            inst.imm,
            inst.args.src[2],
        );
        let narrow = regs.add(inst.args.src[1] as usize).cast::<u32>();
        let wide = regs.add(inst.args.src[1] as usize).cast::<u64>();
        for l in lanes(active) {
            let at = a[l];
            let place = resolve(cx, op.space, inst.aux, l as u32, at, 8, 8, true)?;
            let ResolvedAddress::Host(p) = place else {
                let kind = FaultKind::InvalidAddressSpace;
                return Err(refused(kind, l as u32, at, 8, true, "shared", None));
            };
            let object = p as *mut u64;
            let word = *object;
            match op.kind {
                MbarrierAction::Init => {
                    let n = u64::from(*narrow.add(l));
                    if n == 0 || n > COUNT {
                        let text =
                            format!("an mbarrier of {n} arrivals; the number must be 1 to {COUNT}");
                        return Err(fault(FaultKind::IllegalInstruction, 1 << l, text));
                    }
                    *object = n | n << 20;
                }
                MbarrierAction::Inval => *object = 0,
                MbarrierAction::Arrive { drop, open } => {
                    let n = u64::from(*narrow.add(l));
                    if n == 0 || n > pending(word) || open && n == pending(word) {
                        let text = format!(
                            "{n} arrivals at an mbarrier with {} pending arrivals",
                            pending(word)
                        );
                        return Err(fault(FaultKind::IllegalInstruction, 1 << l, text));
                    }
                    let mut next = word - n;
                    if drop {
                        next -= n << 20;
                    }
                    if pending(next) == 0 {
                        next = next.wrapping_add(PHASE) | expected(next);
                    }
                    *object = next;
                    if inst.args.dst[0] != fixed::SINK {
                        set(regs, inst.args.dst[0], Slot::R64, l, u128::from(word));
                    }
                }
                MbarrierAction::Wait => {
                    let done = phase(word) != phase(*wide.add(l));
                    set(regs, inst.args.dst[0], Slot::Pred, l, u128::from(done));
                }
                MbarrierAction::WaitParity => {
                    let done = phase(word) & 1 != u64::from(*narrow.add(l)) & 1;
                    set(regs, inst.args.dst[0], Slot::Pred, l, u128::from(done));
                }
            }
        }
    }
    Ok(())
}

/// `mbarrier.pending_count`.
///
/// # Safety
/// As for [`run`].
pub unsafe fn pending_count(regs: *mut u8, inst: &Inst, active: u32) {
    for l in lanes(active) {
        // SAFETY: the operands lie in the register file and have the shapes that the compiler chose.
        unsafe {
            let state = *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l);
            set(
                regs,
                inst.args.dst[0],
                Slot::R32,
                l,
                u128::from(pending(state)),
            );
        }
    }
}

//! `mbarrier` objects in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
//!
//! The object is an opaque 64-bit word: pending arrivals in bits 0 to 19, expected arrivals in bits 20 to 39, the
//! transaction count (two's complement) in bits 40 to 60, the number of completed phases above. Plain accesses suffice
//! because the warps of a block run in turn. Asynchronous copies complete at once, and so do their arrivals and
//! transactions.

use cupyrite_ptx::ir::{Scope, Semantics};

use super::context::{Context, ExecResult, fault};
use super::lanes::{LANES, lanes};
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{ResolvedAddress, addresses, host, refused, resolve, set};
use crate::fault_report::{FaultKind, LaneFault};
use crate::kir::{MbarrierAction, MbarrierOp, MemSpace};
use crate::register_file::fixed;
use crate::semantics::lane::Slot;
use crate::tier::interpreter::code::Inst;

const COUNT: u64 = (1 << 20) - 1;
const TRANSACTIONS_AT: u32 = 40;
const TRANSACTIONS: u64 = ((1 << 21) - 1) << TRANSACTIONS_AT;
const PHASE: u64 = 1 << 61;

fn pending(word: u64) -> u64 {
    word & COUNT
}

fn expected(word: u64) -> u64 {
    word >> 20 & COUNT
}

fn phase(word: u64) -> u64 {
    word >> 61
}

fn transactions(word: u64) -> i64 {
    // Shifts the sign bit of the field to the top and back.
    (word << 3).cast_signed() >> (3 + TRANSACTIONS_AT)
}

/// Begins the next phase if the current one is complete.
fn completed(word: u64) -> u64 {
    if pending(word) == 0 && word & TRANSACTIONS == 0 {
        word.wrapping_add(PHASE) | expected(word)
    } else {
        word
    }
}

/// The word after `count` was added to its transaction count; `None` if the sum is beyond the range.
fn with_transactions(word: u64, count: i64) -> Option<u64> {
    let sum = transactions(word).checked_add(count)?;
    let fits = sum.unsigned_abs() <= COUNT;
    let field = (sum.cast_unsigned() << TRANSACTIONS_AT) & TRANSACTIONS;
    fits.then(|| completed(word & !TRANSACTIONS | field))
}

fn transactions_fault(lane: usize, word: u64, count: i64) -> Box<LaneFault> {
    let text = format!(
        "{count} transactions at an mbarrier with {}; the count must stay between -{COUNT} and {COUNT}",
        transactions(word)
    );
    fault(FaultKind::IllegalInstruction, 1 << lane, text)
}

/// Completes `bytes` transactions at the object at `address` of shared memory.
///
/// # Errors
/// The fault of a refused access, or of a count beyond the range.
pub fn complete(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lane: usize,
    (space, address): (MemSpace, u64),
    bytes: u64,
) -> ExecResult {
    let admitted = admit(cx, inst, 1 << lane, || AccessRequest {
        order: Semantics::Relaxed,
        scope: Scope::Cluster,
        asynchronous: true,
        ..AccessRequest::of_lane(space, address, 8, AccessKind::Atomic)
    })?;
    let place = resolve(
        cx,
        admitted,
        space,
        inst.aux,
        lane as u32,
        address,
        8,
        8,
        true,
    )?;
    let ResolvedAddress::Host(p) = place else {
        let kind = FaultKind::InvalidAddressSpace;
        return Err(refused(kind, lane as u32, address, 8, true, "shared", None));
    };
    // SAFETY: `resolve` has checked the access, and the warps of a block run in turn.
    let word = unsafe { host::read_64(p) };
    let count = -(bytes.min(1 << 40).cast_signed());
    let next =
        with_transactions(word, count).ok_or_else(|| transactions_fault(lane, word, count))?;
    // SAFETY: `resolve` has checked the access for writing, and the warps of a block run in turn.
    unsafe { host::write(p, 8, next.into()) };
    Ok(())
}

/// The access of an `mbarrier` instruction to its objects.
fn request(op: &MbarrierOp, addresses: [u64; LANES]) -> AccessRequest {
    use MbarrierAction::{Arrive, Init, Inval, Wait, WaitParity};
    let (kind, order) = match op.kind {
        Init | Inval => (AccessKind::Store, Semantics::Weak),
        Wait | WaitParity => (AccessKind::Load, Semantics::Acquire),
        Arrive { .. } => (AccessKind::Atomic, Semantics::Release),
        _ => (AccessKind::Atomic, Semantics::Relaxed),
    };
    AccessRequest {
        order,
        scope: op.scope.unwrap_or(Scope::Cta),
        ..AccessRequest::weak(op.address.space, addresses, 8, kind)
    }
}

/// Executes an `mbarrier` instruction for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn run(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.mbarriers[inst.target as usize];
    // SAFETY: the operands lie in the register file, and `resolve` checks every access.
    unsafe {
        let a = addresses(regs, &op.address);
        let admitted = admit(cx, inst, active, || request(op, a))?;
        let narrow = regs.add(inst.args.src[1] as usize).cast::<u32>();
        let wide = regs.add(inst.args.src[1] as usize).cast::<u64>();
        for l in lanes(active) {
            let at = a[l];
            let place = resolve(
                cx,
                admitted,
                op.address.space,
                inst.aux,
                l as u32,
                at,
                8,
                8,
                true,
            )?;
            let ResolvedAddress::Host(p) = place else {
                let kind = FaultKind::InvalidAddressSpace;
                return Err(refused(kind, l as u32, at, 8, true, "shared", None));
            };
            let word = host::read_64(p);
            let set_word = |word: u64| host::write(p, 8, word.into());
            match op.kind {
                MbarrierAction::Init => {
                    let n = u64::from(*narrow.add(l));
                    if n == 0 || n > COUNT {
                        let text =
                            format!("an mbarrier of {n} arrivals; the number must be 1 to {COUNT}");
                        return Err(fault(FaultKind::IllegalInstruction, 1 << l, text));
                    }
                    set_word(n | n << 20);
                }
                MbarrierAction::Inval => set_word(0),
                MbarrierAction::ExpectTransactions | MbarrierAction::CompleteTransactions => {
                    let n = i64::from(*narrow.add(l));
                    let count = match op.kind {
                        MbarrierAction::ExpectTransactions => n,
                        _ => -n,
                    };
                    set_word(
                        with_transactions(word, count)
                            .ok_or_else(|| transactions_fault(l, word, count))?,
                    );
                }
                MbarrierAction::Arrive { expect, drop, open } => {
                    let operand = *narrow.add(l);
                    let n = if expect { 1 } else { u64::from(operand) };
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
                    if expect {
                        // The arrival is pending, so that the sum completes no phase.
                        let count = i64::from(operand);
                        let sum = with_transactions(word, count)
                            .ok_or_else(|| transactions_fault(l, word, count))?;
                        next = next & !TRANSACTIONS | sum & TRANSACTIONS;
                    }
                    set_word(completed(next));
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

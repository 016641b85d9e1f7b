//! `mbarrier` objects in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
//!
//! The object is an opaque 64-bit word: pending arrivals in bits 0 to 19, expected arrivals in bits 20 to 39, the
//! transaction count (two's complement) in bits 40 to 60, whether the layout is `layout::v1` in bit 61, the number of completed phases
//! above. Copies that report errors are refused, so that both layouts behave alike. Every operation is one
//! atomic access to the word, so that threads of other workers may operate on the object at the same time. Asynchronous
//! copies complete at once, and so do their arrivals and transactions.

use std::sync::atomic::{AtomicU64, Ordering};

use cupyrite_ptx::ir::{Scope, Semantics};

use super::context::{Context, ExecResult, fault};
use super::lanes::{LANES, lanes};
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{ResolvedAddress, addresses, host, refused, resolve, set};
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::{MbarrierAction, MbarrierOp, MemSpace};
use crate::register_file::fixed;
use crate::semantics::lane::Slot;

const COUNT: u64 = (1 << 20) - 1;
const TRANSACTIONS_AT: u32 = 40;
const TRANSACTIONS: u64 = ((1 << 21) - 1) << TRANSACTIONS_AT;
const LAYOUT_V1: u64 = 1 << 61;
const PHASE: u64 = 1 << 62;

fn pending(word: u64) -> u64 {
    word & COUNT
}

fn expected(word: u64) -> u64 {
    word >> 20 & COUNT
}

fn phase(word: u64) -> u64 {
    word >> 62
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

/// The word after `count` was added to its transaction count.
fn add_transactions(lane: usize, word: u64, count: i64) -> Result<u64, Box<LaneFault>> {
    with_transactions(word, count).ok_or_else(|| transactions_fault(lane, word, count))
}

/// The word after the arrival of a lane with this operand.
fn arrived(
    lane: usize,
    word: u64,
    operand: u32,
    (expect, drop, open): (bool, bool, bool),
) -> Result<u64, Box<LaneFault>> {
    let n = if expect { 1 } else { u64::from(operand) };
    if n == 0 || n > pending(word) || open && n == pending(word) {
        let text = format!(
            "{n} arrivals at an mbarrier with {} pending arrivals",
            pending(word)
        );
        return Err(fault(FaultKind::IllegalInstruction, 1 << lane, text));
    }
    let mut next = word - n;
    if drop {
        next -= n << 20;
    }
    if expect {
        // The arrival is pending, so that the sum completes no phase.
        let sum = add_transactions(lane, word, operand.into())?;
        next = next & !TRANSACTIONS | sum & TRANSACTIONS;
    }
    Ok(completed(next))
}

/// Replaces the word of an object by that which `next` makes of it, and returns the old word. If another thread has
/// changed the object in between, `next` decides again about the new word.
///
/// # Errors
/// That of `next`, which leaves the object as it is.
fn update<E>(object: &AtomicU64, mut next: impl FnMut(u64) -> Result<u64, E>) -> Result<u64, E> {
    let mut word = object.load(Ordering::Relaxed);
    loop {
        let new = next(word)?;
        // An arrival releases the accesses of its thread to the waiting threads, and continues the order of the earlier
        // arrivals.
        match object.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Ok(word),
            Err(found) => word = found,
        }
    }
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
    // SAFETY: `resolve` has checked the access and its alignment.
    let object = unsafe { host::atomic(p) };
    let count = -(bytes.min(1 << 40).cast_signed());
    update(object, |word| add_transactions(lane, word, count))?;
    Ok(())
}

/// The access of an `mbarrier` instruction to its objects.
fn request(op: &MbarrierOp, addresses: [u64; LANES]) -> AccessRequest {
    use MbarrierAction::{Arrive, CheckLayout, Init, Inval, Wait, WaitParity};
    let (kind, order) = match op.kind {
        Init(_) | Inval => (AccessKind::Store, Semantics::Weak),
        CheckLayout(_) => (AccessKind::Load, Semantics::Weak),
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
            let object: &AtomicU64 = host::atomic(p);
            match op.kind {
                MbarrierAction::Init(v1) => {
                    let n = u64::from(*narrow.add(l));
                    if n == 0 || n > COUNT {
                        let text =
                            format!("an mbarrier of {n} arrivals; the number must be 1 to {COUNT}");
                        return Err(fault(FaultKind::IllegalInstruction, 1 << l, text));
                    }
                    let layout = if v1 { LAYOUT_V1 } else { 0 };
                    object.store(n | n << 20 | layout, Ordering::Release);
                }
                MbarrierAction::Inval => object.store(0, Ordering::Release),
                MbarrierAction::ExpectTransactions | MbarrierAction::CompleteTransactions => {
                    let n = i64::from(*narrow.add(l));
                    let count = match op.kind {
                        MbarrierAction::ExpectTransactions => n,
                        _ => -n,
                    };
                    update(object, |word| add_transactions(l, word, count))?;
                }
                MbarrierAction::Arrive { expect, drop, open } => {
                    let operand = *narrow.add(l);
                    let word = update(object, |word| {
                        arrived(l, word, operand, (expect, drop, open))
                    })?;
                    if inst.args.dst[0] != fixed::SINK {
                        set(regs, inst.args.dst[0], Slot::R64, l, u128::from(word));
                    }
                }
                MbarrierAction::Wait => {
                    let word = object.load(Ordering::Acquire);
                    let done = phase(word) != phase(*wide.add(l));
                    set(regs, inst.args.dst[0], Slot::Pred, l, u128::from(done));
                }
                MbarrierAction::CheckLayout(v1) => {
                    let found = object.load(Ordering::Relaxed) & LAYOUT_V1 != 0;
                    set(
                        regs,
                        inst.args.dst[0],
                        Slot::Pred,
                        l,
                        u128::from(found == v1),
                    );
                }
                MbarrierAction::WaitParity => {
                    let word = object.load(Ordering::Acquire);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{add_transactions, arrived, expected, pending, phase, transactions, update};

    #[test]
    fn arrivals_of_several_threads_are_all_counted() {
        const THREADS: u64 = 4;
        const ROUNDS: u64 = 20_000;
        // Each round, a thread expects bytes as it arrives, waits for the others, and the bytes complete the phase.
        let object = AtomicU64::new(THREADS | THREADS << 20);
        std::thread::scope(|scope| {
            for n in 0..THREADS {
                let object = &object;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let bytes = 16 * (n as u32 + 1);
                        let old =
                            update(object, |word| arrived(0, word, bytes, (true, false, false)));
                        assert_eq!(phase(old.unwrap()), round % 4);
                        let completed =
                            update(object, |word| add_transactions(0, word, -i64::from(bytes)));
                        assert_eq!(phase(completed.unwrap()), round % 4);
                        while phase(object.load(Ordering::Acquire)) == round % 4 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        let word = object.into_inner();
        assert_eq!(pending(word), THREADS);
        assert_eq!(expected(word), THREADS);
        assert_eq!(transactions(word), 0);
        assert_eq!(phase(word), ROUNDS % 4);
    }

    #[test]
    fn a_refused_arrival_leaves_the_object_unchanged() {
        let object = AtomicU64::new(1 | 1 << 20);
        let refused = update(&object, |word| arrived(3, word, 2, (false, false, false)));
        assert_eq!(refused.unwrap_err().lane, 3);
        assert_eq!(object.into_inner(), 1 | 1 << 20);
    }
}

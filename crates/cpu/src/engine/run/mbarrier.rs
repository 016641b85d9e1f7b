//! `mbarrier` objects in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
//!
//! The object is an opaque 64-bit word of our own layout: pending arrivals in bits 0 to 19, expected ones in bits 20 to
//! 39, the number of completed phases in the rest. A block's warps run in turn, so that plain accesses are enough.
//! Asynchronous copies are done at once, hence their arrivals are too. Transaction counts, which newer architectures
//! have, are not there.

use cupyrite_ptx::ir::{Instr, Op, Type};

use super::interpreter::{Cx, Done, fault};
use super::memory::{Place, addresses, refused, resolve, set};
use super::warp::LANES;
use crate::engine::compile::DecodeError;
use crate::engine::compile::lower::Lower;
use crate::engine::fault_report::FaultKind;
use crate::engine::ops::Slot;
use crate::engine::program::{Inst, Kind, MemSpace, fixed};

/// What an instruction does with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarKind {
    /// `init`.
    Init,
    /// `inval`.
    Inval,
    /// `arrive`, `arrive_drop`, `cp.async.mbarrier.arrive.noinc`.
    Arrive {
        /// The thread takes no part in later phases.
        drop: bool,
        /// The phase must not end (`.noComplete`).
        open: bool,
    },
    /// `test_wait`, `try_wait`, by the state of an arrival.
    Wait,
    /// The same by the parity of a phase.
    WaitParity,
}

/// An `mbarrier` instruction in full. Address in `src[0]`, `src[2]` and `imm`, count or state in `src[1]`.
#[derive(Clone, Copy, Debug)]
pub struct MbarOp {
    /// What it does.
    pub kind: MbarKind,
    /// Where the object is.
    pub space: MemSpace,
    /// The address register is 32 bits wide.
    pub addr32: bool,
}

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

impl Lower<'_, '_> {
    /// `mbarrier`, `cp.async.mbarrier.arrive`.
    pub fn mbarrier(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let mods = &i.mods;
        let copy = i.op == Op::CpAsync;
        if copy && !mods.has("noinc") {
            // One more arrival is expected, and there it is.
            return Ok(());
        }
        let mut list = Vec::new();
        if mods.has("pending_count") {
            // The lowest bits of the state.
            let state = self.source(self.operand(i, 1)?, Slot::R64, Type::B64, &mut list)?;
            let mut inst = Inst::new(Kind::PendingCount);
            inst.args.src[0] = state;
            return self.with_result(i, inst, Slot::R32, list);
        }
        let kind = if mods.has("init") {
            MbarKind::Init
        } else if mods.has("inval") {
            MbarKind::Inval
        } else if mods.has("expect_tx") || mods.has("complete_tx") {
            return Err(self.error("transaction counts, which the CPU device does not have"));
        } else if mods.has("arrive") || mods.has("arrive_drop") {
            MbarKind::Arrive {
                drop: mods.has("arrive_drop"),
                open: mods.has("noComplete"),
            }
        } else if mods.has("parity") {
            MbarKind::WaitParity
        } else if mods.has("test_wait") || mods.has("try_wait") {
            MbarKind::Wait
        } else {
            return Err(self.error("the CPU device has no implementation of it"));
        };
        let result = !copy && !matches!(kind, MbarKind::Init | MbarKind::Inval);
        let at = u8::from(result);
        let a = self.address(i, &self.operand(i, at)?.clone(), i.mods.space, &mut list)?;
        let mut inst = Inst::new(Kind::Mbarrier);
        inst.imm = a.imm;
        inst.args.src[0] = a.slot;
        inst.args.src[2] = a.plus;
        inst.aux = self.cache_entry();
        inst.args.src[1] = match (kind, i.operands.get(usize::from(at) + 1)) {
            (MbarKind::Wait, Some(state)) => self.source(state, Slot::R64, Type::B64, &mut list)?,
            (_, Some(count)) => self.source(count, Slot::R32, Type::U32, &mut list)?,
            (_, None) => self.b.constant(Slot::R32, 1),
        };
        inst.target = self.b.program.mbars.len() as u32;
        self.b.program.mbars.push(MbarOp {
            kind,
            space: a.space,
            addr32: a.addr32,
        });
        if !result {
            inst.args.dst[0] = fixed::SINK;
            list.push(inst);
            return self.emit(list, i);
        }
        let slot = match kind {
            MbarKind::Arrive { .. } => Slot::R64,
            _ => Slot::Pred,
        };
        self.with_result(i, inst, slot, list)
    }
}

/// Runs an `mbarrier` instruction for the lanes `m`.
///
/// # Safety
/// `inst` is a decoded instruction of the program whose register file `regs` is.
pub unsafe fn run(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    let op = cx.program.mbars[inst.target as usize];
    // SAFETY: places lie in the register file; every access is checked before it is made.
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
        for l in (0..LANES).filter(|l| m >> l & 1 != 0) {
            let at = a[l];
            let place = resolve(cx, op.space, inst.aux, l as u32, at, 8, 8, true)?;
            let Place::Host(p) = place else {
                let kind = FaultKind::InvalidAddressSpace;
                return Err(refused(kind, l as u32, at, 8, true, "shared", None));
            };
            let object = p as *mut u64;
            let word = *object;
            match op.kind {
                MbarKind::Init => {
                    let n = u64::from(*narrow.add(l));
                    if n == 0 || n > COUNT {
                        let text = format!("an mbarrier for {n} arrivals; 1 to {COUNT} can be");
                        return Err(fault(FaultKind::IllegalInstruction, 1 << l, text));
                    }
                    *object = n | n << 20;
                }
                MbarKind::Inval => *object = 0,
                MbarKind::Arrive { drop, open } => {
                    let n = u64::from(*narrow.add(l));
                    if n == 0 || n > pending(word) || open && n == pending(word) {
                        let text = format!(
                            "{n} arrivals at an mbarrier that waits for {}",
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
                MbarKind::Wait => {
                    let done = phase(word) != phase(*wide.add(l));
                    set(regs, inst.args.dst[0], Slot::Pred, l, u128::from(done));
                }
                MbarKind::WaitParity => {
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
pub unsafe fn pending_count(regs: *mut u8, inst: &Inst, m: u32) {
    for l in (0..LANES).filter(|l| m >> l & 1 != 0) {
        // SAFETY: places lie in the register file and have the widths that the decoder gave them.
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

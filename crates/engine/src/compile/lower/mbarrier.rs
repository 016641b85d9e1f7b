//! Lowering of `mbarrier` instructions.

use cupyrite_ptx::ir::{Instr, Op, Type, Word};

use super::Lower;
use crate::compile::unit::CompileError;
use crate::program::{Inst, InstKind, MbarrierAction, MbarrierOp, fixed};
use crate::semantics::lane::Slot;

impl Lower<'_, '_> {
    /// `mbarrier`, `cp.async.mbarrier.arrive`.
    pub fn mbarrier(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mods = &i.mods;
        let copy = i.op == Op::CpAsync;
        if copy && !mods.has(Word::Noinc) {
            // Without `.noinc` the pending count rises by one and falls by one: the copies are complete.
            return Ok(());
        }
        let mut list = Vec::new();
        if mods.has(Word::PendingCount) {
            // The low bits of the state.
            let state = self.source(self.operand(i, 1)?, Slot::R64, Type::B64, &mut list)?;
            let mut inst = Inst::new(InstKind::PendingCount);
            inst.args.src[0] = state;
            return self.with_result(i, inst, Slot::R32, list);
        }
        let kind = if mods.has(Word::Init) {
            MbarrierAction::Init
        } else if mods.has(Word::Inval) {
            MbarrierAction::Inval
        } else if mods.has(Word::CompleteTx) {
            MbarrierAction::CompleteTransactions
        } else if mods.has(Word::ExpectTx) && !mods.has(Word::Arrive) && !mods.has(Word::ArriveDrop)
        {
            MbarrierAction::ExpectTransactions
        } else if mods.has(Word::Arrive) || mods.has(Word::ArriveDrop) || copy {
            MbarrierAction::Arrive {
                expect: mods.has(Word::ExpectTx),
                drop: mods.has(Word::ArriveDrop),
                open: mods.has(Word::NoComplete),
            }
        } else if mods.has(Word::Parity) {
            MbarrierAction::WaitParity
        } else if mods.has(Word::TestWait) || mods.has(Word::TryWait) {
            MbarrierAction::Wait
        } else {
            return Err(self.unimplemented(i));
        };
        let result = !copy
            && !matches!(
                kind,
                MbarrierAction::Init
                    | MbarrierAction::Inval
                    | MbarrierAction::ExpectTransactions
                    | MbarrierAction::CompleteTransactions
            );
        let at = u8::from(result);
        let a = self.address(&self.operand(i, at)?.clone(), i.mods.space, &mut list)?;
        let mut inst = Inst::new(InstKind::Mbarrier);
        inst.imm = a.imm;
        inst.args.src[0] = a.slot;
        inst.args.src[2] = a.plus;
        inst.aux = self.cache_entry();
        inst.args.src[1] = match (kind, i.operands.get(usize::from(at) + 1)) {
            (MbarrierAction::Wait, Some(state)) => {
                self.source(state, Slot::R64, Type::B64, &mut list)?
            }
            (_, Some(count)) => self.source(count, Slot::R32, Type::U32, &mut list)?,
            (_, None) => self.b.constant(Slot::R32, 1),
        };
        inst.target = self.b.program.mbarriers.len() as u32;
        self.b.program.mbarriers.push(MbarrierOp {
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
            MbarrierAction::Arrive { .. } => Slot::R64,
            _ => Slot::Pred,
        };
        self.with_result(i, inst, slot, list)
    }
}

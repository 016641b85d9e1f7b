//! Translation of `mbarrier` instructions.

use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Op, Operand, Type, Word};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, MbarrierAction, MbarrierOp};
use crate::semantics::lane::Slot;

impl FunctionBuilder<'_, '_> {
    /// `mbarrier`, `cp.async.mbarrier.arrive`.
    pub fn mbarrier(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mods = &i.mods;
        if mods.has(Word::PhaseTypePrimary) {
            return self.wait_with_report(i);
        }
        let copy = i.op == Op::CpAsync;
        if copy && !mods.has(Word::Noinc) {
            // Without `.noinc` the pending count rises by one and falls by one: the copies are complete.
            return Ok(());
        }
        let mut list = Vec::new();
        if mods.has(Word::PendingCount) {
            // The low bits of the state.
            let state = self.source(self.operand(i, 1)?, Slot::R64, Type::B64, &mut list)?;
            return self.with_result(i, Slot::R32, list, |dst| Action::PendingCount {
                dst,
                state,
            });
        }
        let kind = if mods.has(Word::Init) {
            MbarrierAction::Init(mods.has(Word::LayoutV1))
        } else if mods.has(Word::CheckLayout) {
            MbarrierAction::CheckLayout(mods.has(Word::LayoutV1))
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
                MbarrierAction::Init(_)
                    | MbarrierAction::Inval
                    | MbarrierAction::ExpectTransactions
                    | MbarrierAction::CompleteTransactions
            );
        let at = u8::from(result);
        let address = self.address(self.operand(i, at)?, i.mods.space, &mut list)?;
        let operand = match (kind, i.operands.get(usize::from(at) + 1)) {
            (MbarrierAction::Wait, Some(state)) => {
                self.source(state, Slot::R64, Type::B64, &mut list)?
            }
            (_, Some(count)) => self.source(count, Slot::R32, Type::U32, &mut list)?,
            (_, None) => self.constant(Slot::R32, 1),
        };
        let action = |dst| {
            Action::Mbarrier(Box::new(MbarrierOp {
                kind,
                address,
                scope: i.mods.scope,
                operand,
                dst,
            }))
        };
        if !result {
            list.push(action(None));
            return self.emit(list, i);
        }
        let slot = match kind {
            MbarrierAction::Arrive { .. } => Slot::R64,
            _ => Slot::Pred,
        };
        self.with_result(i, slot, list, |dst| action(Some(dst)))
    }

    /// A wait with `.phase_type::primary`, whose predicate and value report failed copies: `p|q, value, [a], state`. Copies that
    /// report are refused, so that both are zero; and the conditional phase, which a report holds back, is the primary one.
    fn wait_with_report(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut wait = i.clone();
        let mods = Arc::make_mut(&mut wait.mods);
        mods.other.retain(|&word| word != Word::PhaseTypePrimary);
        let mut reports = Vec::new();
        if !matches!(wait.operands.get(1), Some(Operand::Addr(..))) && wait.operands.len() > 1 {
            reports.push((wait.operands.remove(1), Type::B32));
        }
        let result = wait.operands.first().cloned();
        if let Some(Operand::Pair(complete, reported)) = result {
            wait.operands[0] = *complete;
            reports.push((*reported, Type::Pred));
        }
        // The guard is written last.
        let guard = i.guard.map(|(guard, _)| Operand::Reg(guard));
        let late = reports.iter().any(|(o, _)| Some(o) == guard.as_ref());
        if late {
            self.mbarrier(&wait)?;
        }
        for (report, ty) in reports {
            let zero = Instr {
                op: Op::Mov,
                types: Arc::new([ty]),
                mods: Arc::default(),
                operands: vec![report, Operand::Int(0)],
                ..i.clone()
            };
            self.lane_function(&zero)?;
        }
        if late { Ok(()) } else { self.mbarrier(&wait) }
    }
}

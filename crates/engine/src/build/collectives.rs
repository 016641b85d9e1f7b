//! Translation of block barriers and of warp collectives.

use cupyrite_ptx::ir::{AtomOp, Instr, Op, Operand, Type, VoteMode, Word};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, BarrierMode, BarrierOp, Fixed, ReduxOp, Reg};
use crate::semantics::lane::Slot;

impl FunctionBuilder<'_, '_> {
    /// `bar`, `barrier`.
    pub fn barrier(&mut self, i: &Instr) -> Result<(), CompileError> {
        let red = i.is_barrier_reduction();
        let mode = match i.mods.atom {
            Some(AtomOp::And) if red => BarrierMode::RedAnd,
            Some(AtomOp::Popc) if red => BarrierMode::RedPopc,
            _ if red => BarrierMode::RedOr,
            _ if i.mods.has(Word::Arrive) => BarrierMode::Arrive,
            _ => BarrierMode::Sync,
        };
        let mut list = Vec::new();
        let first = usize::from(red);
        let last = i.operands.len() - usize::from(red && !i.operands.is_empty());
        let id = match i.operands.get(first) {
            Some(id) => self.source(id, Slot::R32, Type::U32, &mut list)?,
            None => self.constant(Slot::R32, 0),
        };
        let mut op = BarrierOp {
            mode,
            id,
            count: None,
            predicate: Fixed::True.reg(),
            negated: false,
            dst: None,
        };
        if let Some(count) = i.operands.get(first + 1).filter(|_| first + 1 < last) {
            op.count = Some(self.source(count, Slot::R32, Type::U32, &mut list)?);
        }
        if red {
            let Some(p) = i.operands.last() else {
                return Err(self.error("the predicate operand is missing"));
            };
            op.predicate = self.source(p, Slot::Pred, Type::Pred, &mut list)?;
            op.negated = matches!(p, Operand::NotReg(_));
            let slot = if mode == BarrierMode::RedPopc {
                Slot::R32
            } else {
                Slot::Pred
            };
            op.dst = Some(self.exact_destination(&i.operands[0], slot)?);
        }
        list.push(Action::Barrier(Box::new(op)));
        self.emit(list, i)
    }

    /// The warp collectives.
    pub fn warp_collective(&mut self, i: &Instr) -> Result<(), CompileError> {
        match i.op {
            Op::BarWarp => {
                let mut list = Vec::new();
                let members = self.operand(i, 0)?;
                let members = self.source(members, Slot::R32, Type::B32, &mut list)?;
                list.push(Action::WarpBarrier { members });
                self.emit(list, i)
            }
            Op::Shfl => self.shfl(i),
            Op::Vote => self.vote(i),
            Op::Match => self.match_values(i),
            Op::Redux => self.redux(i),
            Op::Elect => self.elect(i),
            Op::Activemask => {
                self.with_result(i, Slot::R32, Vec::new(), |dst| Action::ActiveMask { dst })
            }
            _ => Err(self.unimplemented(i)),
        }
    }

    /// `d` and `p` of a destination written `d|p`.
    fn pair(&self, i: &Instr) -> Result<(Operand, Operand), CompileError> {
        Ok(match self.operand(i, 0)? {
            Operand::Pair(a, b) => ((**a).clone(), (**b).clone()),
            o => (o.clone(), Operand::Sink),
        })
    }

    /// A destination that must have the shape `slot`.
    fn exact_destination(&mut self, o: &Operand, slot: Slot) -> Result<Reg, CompileError> {
        match self.destination(o, slot, false)? {
            (reg, None) => Ok(reg),
            _ => Err(self.error("the destination register has the wrong width")),
        }
    }

    fn pair_destinations(&mut self, i: &Instr) -> Result<(Reg, Reg), CompileError> {
        let (d, p) = self.pair(i)?;
        let d = self.exact_destination(&d, Slot::R32)?;
        Ok((d, self.exact_destination(&p, Slot::Pred)?))
    }

    /// The member mask in operand `k`; `None` for the forms without `.sync`.
    fn members(
        &mut self,
        i: &Instr,
        k: usize,
        list: &mut Vec<Action>,
    ) -> Result<Option<Reg>, CompileError> {
        match i.operands.get(k).filter(|_| i.mods.sync) {
            Some(o) => self.source(o, Slot::R32, Type::B32, list).map(Some),
            None => Ok(None),
        }
    }

    /// The member mask in operand `k` of an instruction that always has one.
    fn all_members(
        &mut self,
        i: &Instr,
        k: u8,
        list: &mut Vec<Action>,
    ) -> Result<Reg, CompileError> {
        let mask = self.operand(i, k)?;
        self.source(mask, Slot::R32, Type::B32, list)
    }

    fn shfl(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(mode) = i.mods.shfl else {
            return Err(self.error("the mode is missing"));
        };
        let mut list = Vec::new();
        let mut word = |k| self.source(self.operand(i, k)?, Slot::R32, Type::B32, &mut list);
        let (value, lane, clamp) = (word(1)?, word(2)?, word(3)?);
        let members = self.members(i, 4, &mut list)?;
        let (dst, in_range) = self.pair_destinations(i)?;
        list.push(Action::Shuffle {
            mode,
            dst,
            in_range,
            value,
            lane,
            clamp,
            members,
        });
        self.emit(list, i)
    }

    fn vote(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(mode) = i.mods.vote else {
            return Err(self.error("the mode is missing"));
        };
        let mut list = Vec::new();
        let p = self.operand(i, 1)?;
        let negated = matches!(p, Operand::NotReg(_));
        let predicate = self.source(p, Slot::Pred, Type::Pred, &mut list)?;
        let members = self.members(i, 2, &mut list)?;
        let slot = match mode {
            VoteMode::Ballot => Slot::R32,
            _ => Slot::Pred,
        };
        self.with_result(i, slot, list, |dst| Action::Vote {
            mode,
            dst,
            predicate,
            negated,
            members,
        })
    }

    fn match_values(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let mut list = Vec::new();
        let value = self.source(self.operand(i, 1)?, Slot::of(ty), ty, &mut list)?;
        let members = self.all_members(i, 2, &mut list)?;
        let (dst, found) = self.pair_destinations(i)?;
        list.push(Action::Match {
            all: i.mods.has(Word::All),
            dst,
            found,
            value,
            members,
        });
        self.emit(list, i)
    }

    fn redux(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let Some(op) = i.mods.atom else {
            return Err(self.error("the operation is missing"));
        };
        let op = ReduxOp {
            op,
            ty,
            abs: i.mods.abs,
            nan: i.mods.nan,
        };
        let mut list = Vec::new();
        let value = self.source(self.operand(i, 1)?, Slot::R32, ty, &mut list)?;
        let members = self.all_members(i, 2, &mut list)?;
        self.with_result(i, Slot::R32, list, |dst| Action::Redux {
            op,
            dst,
            value,
            members,
        })
    }

    fn elect(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        let members = self.all_members(i, 1, &mut list)?;
        let (dst, elected) = self.pair_destinations(i)?;
        list.push(Action::Elect {
            dst,
            elected,
            members,
        });
        self.emit(list, i)
    }
}

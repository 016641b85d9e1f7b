//! Lowering of block barriers and of warp collectives.

use cupyrite_ptx::ir::{AtomOp, Instr, Op, Operand, Type, Word};

use super::Lower;
use crate::compile::unit::CompileError;
use crate::program::{
    BarrierMode, BarrierOp, Inst, InstKind, ReduxOp, VOTE_NOT, fixed, shfl_code, vote_code,
};
use crate::semantics::lane::Slot;

impl Lower<'_, '_> {
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
        let mut op = BarrierOp {
            mode,
            id: 0,
            count: None,
            pred: (fixed::ONES, false),
            dst: fixed::SINK,
        };
        let first = usize::from(red);
        let last = i.operands.len() - usize::from(red && !i.operands.is_empty());
        if first >= i.operands.len() {
            op.id = self.b.constant(Slot::R32, 0);
        } else {
            op.id = self.source(&i.operands[first], Slot::R32, Type::U32, &mut list)?;
        }
        if let Some(count) = i.operands.get(first + 1).filter(|_| first + 1 < last) {
            op.count = Some(self.source(count, Slot::R32, Type::U32, &mut list)?);
        }
        if red {
            let Some(p) = i.operands.last() else {
                return Err(self.error("the predicate operand is missing"));
            };
            op.pred = (
                self.source(p, Slot::Pred, Type::Pred, &mut list)?,
                matches!(p, Operand::NotReg(_)),
            );
            let slot = if mode == BarrierMode::RedPopc {
                Slot::R32
            } else {
                Slot::Pred
            };
            let (at, then) = self.destination(&i.operands[0].clone(), slot)?;
            if then.is_some() {
                return Err(self.error("the destination register has the wrong width"));
            }
            op.dst = at;
        }
        let mut inst = Inst::new(InstKind::Bar);
        inst.target = self.b.program.barriers.len() as u32;
        self.b.program.barriers.push(op);
        list.push(inst);
        self.emit(list, i)
    }

    /// The warp collectives.
    pub fn warp_collective(&mut self, i: &Instr) -> Result<(), CompileError> {
        match i.op {
            Op::BarWarp => {
                let mut list = Vec::new();
                let mut inst = Inst::new(InstKind::BarWarp);
                let members = self.operand(i, 0)?;
                inst.args.src[0] = self.source(members, Slot::R32, Type::B32, &mut list)?;
                list.push(inst);
                self.emit(list, i)
            }
            Op::Shfl => self.shfl(i),
            Op::Vote => self.vote(i),
            Op::Match => self.match_values(i),
            Op::Redux => self.redux(i),
            Op::Elect => self.elect(i),
            Op::Activemask => {
                let inst = Inst::new(InstKind::ActiveMask);
                self.with_result(i, inst, Slot::R32, Vec::new())
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

    fn pair_destinations(&mut self, i: &Instr, inst: &mut Inst) -> Result<(), CompileError> {
        let (d, p) = self.pair(i)?;
        let (at, then) = self.destination(&d, Slot::R32)?;
        let (pat, pthen) = self.destination(&p, Slot::Pred)?;
        if then.is_some() || pthen.is_some() {
            return Err(self.error("the destination register has the wrong width"));
        }
        inst.args.dst[0] = at;
        inst.args.dst[1] = pat;
        Ok(())
    }

    /// The slot of the member mask; all lanes for the forms without `.sync`.
    fn members(&mut self, i: &Instr, k: usize, list: &mut Vec<Inst>) -> Result<u32, CompileError> {
        match i.operands.get(k) {
            Some(o) => self.source(o, Slot::R32, Type::B32, list),
            None => Ok(self.b.constant(Slot::R32, u128::from(u32::MAX))),
        }
    }

    fn shfl(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(mode) = i.mods.shfl else {
            return Err(self.error("the mode is missing"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::Shfl);
        inst.aux = shfl_code(mode) | if i.mods.sync { 0 } else { 0x80 };
        for k in 0..3u8 {
            inst.args.src[usize::from(k)] =
                self.source(self.operand(i, k + 1)?, Slot::R32, Type::B32, &mut list)?;
        }
        inst.args.src[3] = self.members(i, 4, &mut list)?;
        self.pair_destinations(i, &mut inst)?;
        list.push(inst);
        self.emit(list, i)
    }

    fn vote(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(mode) = i.mods.vote else {
            return Err(self.error("the mode is missing"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::Vote);
        let code = vote_code(mode);
        let p = self.operand(i, 1)?;
        let not = matches!(p, Operand::NotReg(_));
        inst.args.src[0] = self.source(p, Slot::Pred, Type::Pred, &mut list)?;
        inst.args.src[1] = self.members(i, 2, &mut list)?;
        inst.aux = code | if i.mods.sync { 0 } else { 0x80 } | if not { VOTE_NOT } else { 0 };
        let slot = if code == 3 { Slot::R32 } else { Slot::Pred };
        self.with_result(i, inst, slot, list)
    }

    fn match_values(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let all = i.mods.has(Word::All);
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::Match);
        inst.aux = u16::from(all) | if ty.bits() == 64 { 2 } else { 0 };
        inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::of(ty), ty, &mut list)?;
        inst.args.src[1] = self.members(i, 2, &mut list)?;
        self.pair_destinations(i, &mut inst)?;
        list.push(inst);
        self.emit(list, i)
    }

    fn redux(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let Some(op) = i.mods.atom else {
            return Err(self.error("the operation is missing"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::Redux);
        let op = ReduxOp {
            op,
            ty,
            abs: i.mods.abs,
            nan: i.mods.nan,
        };
        // Equal operations share an entry: lanes at different instructions execute them together.
        let table = &mut self.b.program.redux;
        let n = table.iter().position(|o| *o == op).unwrap_or_else(|| {
            table.push(op);
            table.len() - 1
        });
        inst.target = n as u32;
        inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::R32, ty, &mut list)?;
        inst.args.src[1] = self.members(i, 2, &mut list)?;
        self.with_result(i, inst, Slot::R32, list)
    }

    fn elect(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::Elect);
        inst.args.src[1] = self.members(i, 1, &mut list)?;
        self.pair_destinations(i, &mut inst)?;
        list.push(inst);
        self.emit(list, i)
    }
}

//! Translation of loads, stores, atomics and asynchronous copies.

use cupyrite_ptx::ir::{
    AtomOp, Base, Instr, Op, Operand, Scope, Semantics, Space, Type, VarId, Variable, Word,
};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::build::PaddedVariable;
use crate::kir::{
    Action, Address, AtomicOp, ConstantLoad, CopyOp, Fixed, MbarrierAction, MbarrierOp, MemOp,
    MemSpace, MultimemKind, MultimemOp, Reg,
};
use crate::semantics::atomic;
use crate::semantics::lane::Slot;

impl FunctionBuilder<'_, '_> {
    /// Translates an address operand.
    ///
    /// # Errors
    /// An operand that is not an address, or a variable without one.
    pub fn address(
        &mut self,
        o: &Operand,
        space: Option<Space>,
        list: &mut Vec<Action>,
    ) -> Result<Address, CompileError> {
        let (base, offset) = match o {
            Operand::Addr(b, n) => (*b, *n),
            Operand::Reg(r) => (Base::Reg(*r), 0),
            Operand::Int(n) => (Base::None, *n),
            _ => return Err(self.error("the operand is not an address")),
        };
        let named_space = match space {
            Some(Space::Shared | Space::SharedCluster) => MemSpace::Shared,
            Some(Space::Local) => MemSpace::Local,
            Some(Space::Param) if !self.function.is_entry => MemSpace::Local,
            Some(Space::Global | Space::Const | Space::Param) => MemSpace::Global,
            _ => MemSpace::Generic,
        };
        let at = |base, offset, space| Address {
            base,
            offset,
            uniform: None,
            space,
        };
        match base {
            Base::None => {
                let base = self.constant(Slot::R64, u128::from(offset as u64));
                Ok(at(base, 0, named_space))
            }
            Base::Reg(r) => {
                let base = self.reg(r)?;
                let base = match (base.slot, named_space) {
                    (Slot::R64, _) | (Slot::R32, MemSpace::Shared | MemSpace::Local) => base,
                    (Slot::R32, _) => self.source(&Operand::Reg(r), Slot::R64, Type::U64, list)?,
                    _ => return Err(self.error("the address register has the wrong width")),
                };
                Ok(at(base, offset, named_space))
            }
            Base::Var(v) => self.variable_address(v, offset),
        }
    }

    /// The address of a byte of a variable.
    fn variable_address(&mut self, v: VarId, offset: i64) -> Result<Address, CompileError> {
        let (base, offset, space) = match (self.variable(v).map(|v| v.space), v) {
            (Some(Space::Param), VarId::Param(n)) if self.function.is_entry => {
                let at = self.layout.params.get(n as usize).copied().unwrap_or(0);
                let base = self.parameter_address(u64::from(at));
                (base, offset, MemSpace::Global)
            }
            (Some(Space::Param | Space::Local | Space::Reg), _) => {
                let at = i64::from(self.frame_offset(v)?);
                (Fixed::Frame.reg(), offset.wrapping_add(at), MemSpace::Local)
            }
            (Some(Space::Shared | Space::SharedCluster), _) => {
                let Some(at) = self.shared_offset(v) else {
                    return Err(self.error("internal error: a shared variable has no offset"));
                };
                let base = self.constant(Slot::R32, u128::from(at));
                (base, offset, MemSpace::Shared)
            }
            _ => {
                let placed = self.placed;
                let at = match v {
                    VarId::Module(n) => placed.globals.get(n as usize).copied().flatten(),
                    VarId::Local(n) => placed.body_globals.get(&(self.id(), n)).copied(),
                    _ => None,
                };
                let Some(at) = at else {
                    return Err(self.error("the variable has no address"));
                };
                let base = self.constant(Slot::R64, u128::from(at));
                (base, offset, MemSpace::Global)
            }
        };
        Ok(Address {
            base,
            offset,
            uniform: None,
            space,
        })
    }

    /// The declaration of a variable. Those of a function's parameters and results may name register space.
    fn variable(&self, v: VarId) -> Option<&Variable> {
        match v {
            VarId::Module(n) => self.placed.module.globals.get(n as usize),
            VarId::Local(n) => self.body.vars.get(n as usize),
            VarId::Param(n) => self.function.params.get(n as usize),
            VarId::Return(n) => self.function.returns.get(n as usize),
        }
    }

    fn element_type(&self, i: &Instr) -> Result<Type, CompileError> {
        match i.types.last() {
            Some(Type::Pred) | None => Err(self.error("the type cannot be stored in memory")),
            Some(t) if t.bits() % 8 != 0 => Err(self.error("the type cannot be stored in memory")),
            Some(t) => Ok(*t),
        }
    }

    /// Destinations of a load, and whether the registers have at most 16 bits.
    pub fn load_targets(&self, o: &Operand) -> Result<(Vec<Reg>, bool), CompileError> {
        let mut narrow = false;
        let mut out = Vec::new();
        for p in elements(o) {
            match p {
                Operand::Reg(r) => {
                    narrow |= self.body.regs[r.0 as usize].ty.bits() <= 16;
                    out.extend(self.components(*r)?);
                }
                Operand::RegComponent(r, c) => {
                    narrow |= self.body.regs[r.0 as usize].ty.bits() <= 16;
                    out.push(self.component(*r, *c)?);
                }
                Operand::Sink => out.push(Fixed::discarded(Slot::R32)),
                _ => return Err(self.error("the destination is not a register")),
            }
        }
        if out.iter().any(|r| r.slot == Slot::Pred) {
            return Err(self.error("a predicate cannot be loaded"));
        }
        Ok((out, narrow))
    }

    /// A load or store of this instruction.
    fn access(&self, i: &Instr, address: Address, ty: Type) -> MemOp {
        let order = i.mods.semantics.unwrap_or(Semantics::Weak);
        MemOp {
            address,
            size: ty.bytes(),
            signed: false,
            regs: Vec::new(),
            narrow: false,
            order,
            // A volatile access is relaxed in system scope (PTX ISA, "Volatile Operations").
            scope: i.mods.scope.or(i.mods.volatile.then_some(Scope::Sys)),
            atomic: i.mods.volatile || order != Semantics::Weak,
            store: false,
            constant: None,
        }
    }

    /// `ld`, `ldu`.
    pub fn load(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = self.element_type(i)?;
        let mut list = Vec::new();
        let address = self.address(self.operand(i, 1)?, i.mods.space, &mut list)?;
        let mut op = self.access(i, address, ty);
        (op.regs, op.narrow) = self.load_targets(self.operand(i, 0)?)?;
        op.signed = ty.is_signed();
        op.constant = self.constant_load(i, &op).map(Box::new);
        list.push(Action::Load(Box::new(op)));
        self.emit(list, i)
    }

    /// What is known before the launch of a load from a kernel parameter or from constant memory.
    fn constant_load(&self, i: &Instr, op: &MemOp) -> Option<ConstantLoad> {
        if i.op != Op::Ld || i.mods.volatile {
            return None;
        }
        let Some(&Operand::Addr(Base::Var(v), offset)) = i.operands.get(1) else {
            return None;
        };
        let (base, absolute) = match (i.mods.space, v) {
            (Some(Space::Param), VarId::Param(n)) if self.function.is_entry => {
                (u64::from(*self.layout.params.get(n as usize)?), false)
            }
            (Some(Space::Const), VarId::Module(n)) => (
                self.placed.globals.get(n as usize).copied().flatten()?,
                true,
            ),
            _ => return None,
        };
        let variable = self.variable(v)?;
        let size = variable.size();
        // A load that begins in a parameter may read beyond it, like one of a GPU's parameter bank.
        let padding = match absolute {
            true => PaddedVariable::padding(size, variable.align),
            false => u64::from(PaddedVariable::LARGEST),
        };
        let length = u64::from(op.size) * op.regs.len() as u64;
        let start = u64::try_from(offset).ok().filter(|at| *at < size);
        let start = start.filter(|at| at + length <= size + padding);
        let refused = match start {
            Some(_) => None,
            None => Some(format!(
                "the load of {length} bytes at offset {offset} exceeds the variable `{}` of {size} bytes",
                variable.name
            )),
        };
        Some(ConstantLoad {
            from: base + start.unwrap_or(0),
            absolute,
            refused: refused.map(|text| self.error(&text).message),
        })
    }

    /// A load from (or store to) the function's own frame.
    pub fn frame_access(
        &self,
        at: u32,
        size: u32,
        reg: Reg,
        store: bool,
    ) -> Result<Action, CompileError> {
        if reg.slot == Slot::Pred {
            return Err(self.error("a predicate cannot be a parameter"));
        }
        let op = Box::new(MemOp {
            address: Address {
                base: Fixed::Frame.reg(),
                offset: i64::from(at),
                uniform: None,
                space: MemSpace::Local,
            },
            size,
            signed: false,
            regs: vec![reg],
            narrow: size <= 2,
            order: Semantics::Weak,
            scope: None,
            atomic: false,
            store,
            constant: None,
        });
        Ok(if store {
            Action::Store(op)
        } else {
            Action::Load(op)
        })
    }

    /// The values of a store or an atomic.
    pub fn values(
        &mut self,
        o: &Operand,
        ty: Type,
        list: &mut Vec<Action>,
    ) -> Result<Vec<Reg>, CompileError> {
        let mut out = Vec::new();
        for p in elements(o) {
            match p {
                Operand::Reg(r) => out.extend(self.components(*r)?),
                Operand::RegComponent(r, c) => out.push(self.component(*r, *c)?),
                _ => out.push(self.source(p, Slot::of(ty), ty, list)?),
            }
        }
        if out.iter().any(|r| r.slot == Slot::Pred) {
            return Err(self.error("a predicate cannot be stored"));
        }
        Ok(out)
    }

    /// `st`.
    pub fn store(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = self.element_type(i)?;
        let mut list = Vec::new();
        let address = self.address(self.operand(i, 0)?, i.mods.space, &mut list)?;
        let mut op = self.access(i, address, ty);
        op.regs = self.values(self.operand(i, 1)?, ty, &mut list)?;
        op.store = true;
        let bytes = op.size * op.regs.len() as u32;
        list.push(Action::Store(Box::new(op)));
        self.complete_transactions(i, bytes, &mut list)?;
        self.emit(list, i)
    }

    /// Completes `bytes` transactions at the `mbarrier` object of `st.async` and `red.async`. The access before it has
    /// completed at once.
    fn complete_transactions(
        &mut self,
        i: &Instr,
        bytes: u32,
        list: &mut Vec<Action>,
    ) -> Result<(), CompileError> {
        if !i.mods.has(Word::Async) {
            return Ok(());
        }
        let address = self.address(self.operand(i, 2)?, i.mods.space, list)?;
        list.push(Action::Mbarrier(Box::new(MbarrierOp {
            kind: MbarrierAction::CompleteTransactions,
            address,
            scope: Some(Scope::Cluster),
            operand: self.constant(Slot::R32, bytes.into()),
            dst: None,
        })));
        Ok(())
    }

    /// `atom`, `red`.
    pub fn atomic(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(op) = i.mods.atom else {
            return Err(self.error("the operation is missing"));
        };
        let ty = self.element_type(i)?;
        if !atomic::exists(op, ty) {
            return Err(self.error("the operation does not exist for this type"));
        }
        let mut list = Vec::new();
        let red = i.op == Op::Red;
        let k = u8::from(!red);
        let address = self.address(self.operand(i, k)?, i.mods.space, &mut list)?;
        let dst = match red {
            true => Vec::new(),
            false => self.load_targets(self.operand(i, 0)?)?.0,
        };
        let src = self.values(self.operand(i, k + 1)?, ty, &mut list)?;
        let src2 = match op {
            AtomOp::Cas => self.values(self.operand(i, k + 2)?, ty, &mut list)?.pop(),
            _ => None,
        };
        list.push(Action::Atomic(Box::new(AtomicOp {
            address,
            op,
            ty,
            order: i.mods.semantics.unwrap_or(Semantics::Relaxed),
            scope: i.mods.scope,
            dst,
            src,
            src2,
        })));
        if red {
            self.complete_transactions(i, ty.bytes(), &mut list)?;
        }
        self.emit(list, i)
    }

    /// `multimem.ld_reduce`, `multimem.st`, `multimem.red`.
    pub fn multimem(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = self.element_type(i)?;
        let operation = || i.mods.atom.ok_or_else(|| self.unimplemented(i));
        let (kind, default) = if i.mods.has(Word::LdReduce) {
            let (op, wide) = (operation()?, i.mods.has(Word::AccF32));
            (MultimemKind::LoadReduce { op, wide }, Semantics::Weak)
        } else if i.mods.has(Word::Red) {
            (MultimemKind::Reduce(operation()?), Semantics::Relaxed)
        } else {
            (MultimemKind::Store, Semantics::Weak)
        };
        let loads = matches!(kind, MultimemKind::LoadReduce { .. });
        let mut list = Vec::new();
        let at = self.operand(i, u8::from(loads))?;
        let address = self.address(at, i.mods.space, &mut list)?;
        let regs = match loads {
            true => self.load_targets(self.operand(i, 0)?)?.0,
            false => self.values(self.operand(i, 1)?, ty, &mut list)?,
        };
        list.push(Action::Multimem(Box::new(MultimemOp {
            kind,
            address,
            ty,
            order: i.mods.semantics.unwrap_or(default),
            scope: i.mods.scope,
            regs,
        })));
        self.emit(list, i)
    }

    /// `cp.async`. The copy completes at once, so that the group forms do nothing.
    pub fn cp_async(&mut self, i: &Instr) -> Result<(), CompileError> {
        if i.operands.len() < 2 || !matches!(i.operands[0], Operand::Addr(..)) {
            return Ok(());
        }
        let mut list = Vec::new();
        let to = self.address(&i.operands[0], Some(Space::Shared), &mut list)?;
        let from = self.address(&i.operands[1], Some(Space::Global), &mut list)?;
        let size = match i.operands.get(2) {
            Some(Operand::Int(n @ (4 | 8 | 16))) => *n as u32,
            _ => return Err(self.error("the size must be 4, 8 or 16 bytes")),
        };
        let mut op = CopyOp {
            to,
            from,
            size,
            read: None,
            ignore: None,
        };
        match i.operands.get(3) {
            Some(o @ (Operand::Reg(_) | Operand::Int(_))) if !self.is_predicate(o) => {
                op.read = Some(self.source(o, Slot::R32, Type::U32, &mut list)?);
            }
            Some(o @ (Operand::Reg(_) | Operand::NotReg(_))) => {
                let predicate = self.source(o, Slot::Pred, Type::Pred, &mut list)?;
                op.ignore = Some((predicate, matches!(o, Operand::NotReg(_))));
            }
            _ => {}
        }
        list.push(Action::Copy(Box::new(op)));
        self.emit(list, i)
    }

    fn is_predicate(&self, o: &Operand) -> bool {
        matches!(o, Operand::Reg(r) | Operand::NotReg(r) if self.body.regs[r.0 as usize].ty == Type::Pred)
    }
}

/// The elements of a vector operand; the operand itself if it is none.
fn elements(o: &Operand) -> &[Operand] {
    match o {
        Operand::Vector(v) => v,
        _ => std::slice::from_ref(o),
    }
}

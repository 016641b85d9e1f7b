//! Lowering of loads, stores, atomics, asynchronous copies and calls.

use cupyrite_ptx::ir::{
    Base, FuncId, InitElem, Instr, Op, Operand, Semantics, Space, Type, VarId, Variable,
};

use super::Lower;
use crate::engine::compile::{DecodeError, builtin};
use crate::engine::ops::Slot;
use crate::engine::program::{
    ArgCopy, AtomicOp, BuiltinArg, BuiltinKind, BuiltinOp, CallOp, Inst, Kind, MemOp, MemSpace,
    fixed,
};

/// Where an address operand points.
pub struct Address {
    /// Slot of the base.
    pub slot: u32,
    /// The slot is 32 bits wide.
    pub addr32: bool,
    /// The space it is meant for.
    pub space: MemSpace,
    /// Added to every address.
    pub imm: i64,
    /// A 64-bit slot whose first lane is added to every address.
    pub plus: u32,
}

impl<'m> Lower<'_, 'm> {
    /// Where an address operand points.
    ///
    /// # Errors
    /// An operand that is no address, or a variable without one.
    pub fn address(
        &mut self,
        i: &Instr,
        o: &Operand,
        space: Option<Space>,
        list: &mut Vec<Inst>,
    ) -> Result<Address, DecodeError> {
        let is_entry = self.unit().function.is_entry;
        let (base, imm) = match o {
            Operand::Addr(b, n) => (*b, *n),
            Operand::Reg(r) => (Base::Reg(*r), 0),
            Operand::Int(n) => (Base::None, *n),
            _ => return Err(self.error("an operand that is no address")),
        };
        let space_of = |s: Option<Space>| match s {
            Some(Space::Shared | Space::SharedCluster) => MemSpace::Shared,
            Some(Space::Local) => MemSpace::Local,
            Some(Space::Param) if !is_entry => MemSpace::Local,
            Some(Space::Global | Space::Const | Space::Param) => MemSpace::Global,
            _ => MemSpace::Generic,
        };
        let _ = i;
        match base {
            Base::None => {
                let space = space_of(space);
                let slot = self.b.constant(Slot::R64, u128::from(imm as u64));
                Ok(Address {
                    slot,
                    addr32: false,
                    space,
                    imm: 0,
                    plus: fixed::ZERO,
                })
            }
            Base::Reg(r) => {
                if let Some((varying, uniform)) = self.unit().fused.get(self.at).copied().flatten()
                {
                    let (slot, plus) = (self.reg(varying)?.0, self.reg(uniform)?.0);
                    let space = space_of(space);
                    return Ok(Address {
                        slot,
                        addr32: false,
                        space,
                        imm,
                        plus,
                    });
                }
                let (at, have) = self.reg(r)?;
                let space = space_of(space);
                match (have, space) {
                    (Slot::R64, _) => Ok(Address {
                        slot: at,
                        addr32: false,
                        space,
                        imm,
                        plus: fixed::ZERO,
                    }),
                    (Slot::R32, MemSpace::Shared | MemSpace::Local) => Ok(Address {
                        slot: at,
                        addr32: true,
                        space,
                        imm,
                        plus: fixed::ZERO,
                    }),
                    (Slot::R32, _) => {
                        let slot = self.source(&Operand::Reg(r), Slot::R64, Type::U64, list)?;
                        Ok(Address {
                            slot,
                            addr32: false,
                            space,
                            imm,
                            plus: fixed::ZERO,
                        })
                    }
                    _ => Err(self.error("an address in a register of the wrong width")),
                }
            }
            Base::Var(v) => {
                let declared = self.variable_space(v);
                match declared {
                    Some(Space::Param) if is_entry && matches!(v, VarId::Param(_)) => {
                        let VarId::Param(n) = v else {
                            return Err(self.error("lost on the way"));
                        };
                        let at = self.layout.params.get(n as usize).copied().unwrap_or(0);
                        let slot = self.param_address(u64::from(at));
                        Ok(Address {
                            slot,
                            addr32: false,
                            space: MemSpace::Global,
                            imm,
                            plus: fixed::ZERO,
                        })
                    }
                    Some(Space::Param | Space::Local | Space::Reg) => {
                        let at = self.frame_offset(v)?;
                        let imm = imm.wrapping_add(i64::from(at));
                        Ok(Address {
                            slot: fixed::FRAME,
                            addr32: true,
                            space: MemSpace::Local,
                            imm,
                            plus: fixed::ZERO,
                        })
                    }
                    Some(Space::Shared | Space::SharedCluster) => {
                        let key = match v {
                            VarId::Module(n) => (None, n),
                            VarId::Local(n) => (Some(self.unit().id.0), n),
                            _ => return Err(self.error("a parameter in shared memory")),
                        };
                        let Some(&at) = self.layout.shared.get(&key) else {
                            return Err(self.error("a shared variable that has no place"));
                        };
                        let slot = self.b.constant(Slot::R32, u128::from(at));
                        Ok(Address {
                            slot,
                            addr32: true,
                            space: MemSpace::Shared,
                            imm,
                            plus: fixed::ZERO,
                        })
                    }
                    _ => {
                        let at = match v {
                            VarId::Module(n) => {
                                self.linked.globals.get(n as usize).copied().flatten()
                            }
                            VarId::Local(n) => self
                                .linked
                                .body_globals
                                .get(&(self.unit().id.0, n))
                                .copied(),
                            _ => None,
                        };
                        let Some(at) = at else {
                            return Err(self.error("a variable that has no address"));
                        };
                        let slot = self.b.constant(Slot::R64, u128::from(at));
                        Ok(Address {
                            slot,
                            addr32: false,
                            space: MemSpace::Global,
                            imm,
                            plus: fixed::ZERO,
                        })
                    }
                }
            }
        }
    }

    fn variable_space(&self, v: VarId) -> Option<Space> {
        let f = self.unit().function;
        match v {
            VarId::Module(n) => self.linked.module.globals.get(n as usize).map(|v| v.space),
            VarId::Local(n) => self.unit().body.vars.get(n as usize).map(|v| v.space),
            VarId::Param(n) => f.params.get(n as usize).map(|_| Space::Param),
            VarId::Return(n) => f.returns.get(n as usize).map(|_| Space::Param),
        }
    }

    /// Number of a region cache entry for the next memory instruction.
    pub fn cache_entry(&self) -> u16 {
        (self.b.program.code.len() & 0xff) as u16
    }

    fn order(i: &Instr) -> (Semantics, bool) {
        let order = i.mods.semantics.unwrap_or(Semantics::Weak);
        (order, i.mods.volatile || order != Semantics::Weak)
    }

    fn element_type(&self, i: &Instr) -> Result<Type, DecodeError> {
        match i.types.last() {
            Some(Type::Pred) | None => Err(self.error("no type that memory holds")),
            Some(t) if t.bits() % 8 != 0 => Err(self.error("no type that memory holds")),
            Some(t) => Ok(*t),
        }
    }

    /// Destination registers of a load: shapes and whether all are 16-bit ones.
    pub fn load_targets(&self, o: &Operand) -> Result<(Vec<(u32, Slot)>, bool), DecodeError> {
        let mut narrow = false;
        let mut out = Vec::new();
        let single = std::slice::from_ref(o);
        let parts: &[Operand] = if let Operand::Vector(v) = o {
            v
        } else {
            single
        };
        for p in parts {
            match p {
                Operand::Reg(r) => {
                    let reg = &self.unit().body.regs[r.0 as usize];
                    let (at, slot) = self.reg(*r)?;
                    narrow |= reg.ty.bits() <= 16;
                    for c in 0..reg.vector.max(1) {
                        out.push((at + c * slot.bytes(), slot));
                    }
                }
                Operand::RegComponent(r, c) => {
                    let reg = &self.unit().body.regs[r.0 as usize];
                    if u32::from(*c) >= reg.vector.max(1) {
                        return Err(
                            self.error("a component that the vector register does not have")
                        );
                    }
                    let (at, slot) = self.reg(*r)?;
                    narrow |= reg.ty.bits() <= 16;
                    out.push((at + u32::from(*c) * slot.bytes(), slot));
                }
                Operand::Sink => out.push((fixed::SINK, Slot::R32)),
                _ => return Err(self.error("a destination that is no register")),
            }
        }
        if out.iter().any(|(_, s)| *s == Slot::Pred) {
            return Err(self.error("a predicate as destination"));
        }
        Ok((out, narrow))
    }

    /// `ld`, `ldu`.
    pub fn load(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let ty = self.element_type(i)?;
        let mut list = Vec::new();
        let a = self.address(i, &self.operand(i, 1)?.clone(), i.mods.space, &mut list)?;
        let (regs, narrow) = self.load_targets(self.operand(i, 0)?)?;
        let (order, atomic) = Self::order(i);
        let size = ty.bytes();
        let kind = match (regs.as_slice(), size, a.space, a.addr32, atomic) {
            ([(_, Slot::R32)], 4, MemSpace::Global | MemSpace::Generic, false, false) => {
                Kind::LdGlobal4
            }
            ([(_, Slot::R64)], 8, MemSpace::Global | MemSpace::Generic, false, false) => {
                Kind::LdGlobal8
            }
            ([(_, Slot::R32)], 4, MemSpace::Shared, true, false) => Kind::LdShared4,
            _ => Kind::Ld,
        };
        let mut inst = Inst::new(kind);
        inst.imm = a.imm;
        inst.args.src[0] = a.slot;
        inst.args.src[2] = a.plus;
        inst.args.dst[0] = regs.first().map_or(fixed::SINK, |r| r.0);
        inst.aux = self.cache_entry();
        inst.target = self.b.program.mem.len() as u32;
        self.b.program.mem.push(MemOp {
            space: a.space,
            size,
            signed: ty.is_signed(),
            regs,
            narrow,
            order,
            atomic,
            addr32: a.addr32,
            store: false,
        });
        list.push(inst);
        self.emit(list, i)
    }

    /// A load from (or store to) the function's own frame.
    pub fn frame_access(
        &mut self,
        at: u32,
        size: u32,
        reg: (u32, Slot),
        store: bool,
    ) -> Result<Inst, DecodeError> {
        if reg.1 == Slot::Pred {
            return Err(self.error("a predicate as parameter"));
        }
        let mut inst = Inst::new(if store { Kind::St } else { Kind::Ld });
        inst.imm = i64::from(at);
        inst.args.src[0] = fixed::FRAME;
        inst.args.src[2] = fixed::ZERO;
        inst.target = self.b.program.mem.len() as u32;
        self.b.program.mem.push(MemOp {
            space: MemSpace::Local,
            size,
            signed: false,
            regs: vec![reg],
            narrow: size <= 2,
            order: Semantics::Weak,
            atomic: false,
            addr32: true,
            store,
        });
        Ok(inst)
    }

    /// Slots of the values of a store or an atomic.
    pub fn values(
        &mut self,
        o: &Operand,
        ty: Type,
        list: &mut Vec<Inst>,
    ) -> Result<Vec<(u32, Slot)>, DecodeError> {
        let single = std::slice::from_ref(o);
        let parts: &[Operand] = if let Operand::Vector(v) = o {
            v
        } else {
            single
        };
        let mut out = Vec::new();
        for p in parts {
            match p {
                Operand::Reg(r) => {
                    let (at, slot) = self.reg(*r)?;
                    for c in 0..self.unit().body.regs[r.0 as usize].vector.max(1) {
                        out.push((at + c * slot.bytes(), slot));
                    }
                }
                Operand::RegComponent(..) => {
                    let (targets, _) = self.load_targets(p)?;
                    out.extend(targets);
                }
                _ => {
                    let slot = Slot::of(ty);
                    out.push((self.source(p, slot, ty, list)?, slot));
                }
            }
        }
        if out.iter().any(|(_, s)| *s == Slot::Pred) {
            return Err(self.error("a predicate as value"));
        }
        Ok(out)
    }

    /// `st`.
    pub fn store(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let ty = self.element_type(i)?;
        let mut list = Vec::new();
        let a = self.address(i, &self.operand(i, 0)?.clone(), i.mods.space, &mut list)?;
        let regs = self.values(&self.operand(i, 1)?.clone(), ty, &mut list)?;
        let (order, atomic) = Self::order(i);
        let size = ty.bytes();
        let kind = match (regs.as_slice(), size, a.space, a.addr32, atomic) {
            ([(_, Slot::R32)], 4, MemSpace::Global | MemSpace::Generic, false, false) => {
                Kind::StGlobal4
            }
            ([(_, Slot::R64)], 8, MemSpace::Global | MemSpace::Generic, false, false) => {
                Kind::StGlobal8
            }
            ([(_, Slot::R32)], 4, MemSpace::Shared, true, false) => Kind::StShared4,
            _ => Kind::St,
        };
        let mut inst = Inst::new(kind);
        inst.imm = a.imm;
        inst.args.src[0] = a.slot;
        inst.args.src[2] = a.plus;
        inst.args.src[1] = regs.first().map_or(fixed::SINK, |r| r.0);
        inst.aux = self.cache_entry();
        inst.target = self.b.program.mem.len() as u32;
        self.b.program.mem.push(MemOp {
            space: a.space,
            size,
            signed: false,
            regs,
            narrow: false,
            order,
            atomic,
            addr32: a.addr32,
            store: true,
        });
        list.push(inst);
        self.emit(list, i)
    }

    /// `atom`, `red`.
    pub fn atomic(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let Some(op) = i.mods.atom else {
            return Err(self.error("no operation"));
        };
        let ty = self.element_type(i)?;
        if !crate::engine::run::atomics::supported(op, ty) {
            return Err(self.error("no such operation on this type"));
        }
        let mut list = Vec::new();
        let red = i.op == Op::Red;
        let k = u8::from(!red);
        let a = self.address(i, &self.operand(i, k)?.clone(), i.mods.space, &mut list)?;
        let dst = if red {
            Vec::new()
        } else {
            self.load_targets(self.operand(i, 0)?)?.0
        };
        let src = self.values(&self.operand(i, k + 1)?.clone(), ty, &mut list)?;
        let src2 = match op {
            cupyrite_ptx::ir::AtomOp::Cas => Some(
                self.values(&self.operand(i, k + 2)?.clone(), ty, &mut list)?
                    .remove(0),
            ),
            _ => None,
        };
        let mut inst = Inst::new(Kind::Atom);
        inst.imm = a.imm;
        inst.args.src[0] = a.slot;
        inst.args.src[2] = a.plus;
        inst.aux = self.cache_entry();
        inst.target = self.b.program.atomics.len() as u32;
        self.b.program.atomics.push(AtomicOp {
            space: a.space,
            op,
            ty,
            order: i.mods.semantics.unwrap_or(Semantics::Relaxed),
            addr32: a.addr32,
            dst,
            src,
            src2,
        });
        list.push(inst);
        self.emit(list, i)
    }

    /// `cp.async`: the copy is done at once, so that the group forms have nothing left to wait for.
    pub fn cp_async(&mut self, i: &Instr) -> Result<(), DecodeError> {
        if i.operands.len() < 2 || !matches!(i.operands[0], Operand::Addr(..)) {
            return Ok(());
        }
        let mut list = Vec::new();
        let to = self.address(i, &i.operands[0].clone(), Some(Space::Shared), &mut list)?;
        let from = self.address(i, &i.operands[1].clone(), Some(Space::Global), &mut list)?;
        let size = match i.operands.get(2) {
            Some(Operand::Int(n @ (4 | 8 | 16))) => *n as u32,
            _ => return Err(self.error("a size other than 4, 8 or 16")),
        };
        let mut inst = Inst::new(Kind::CpAsync);
        // Both offsets are folded into constants: the interpreter adds them up.
        inst.imm = to.imm;
        inst.args.imm = size;
        inst.args.src[0] = to.slot;
        inst.args.src[1] = from.slot;
        inst.args.dst[0] = u32::from(to.addr32);
        inst.args.src[3] = from.imm as u32;
        inst.args.dst[1] = (from.imm >> 32) as u32;
        inst.args.dst[2] = fixed::SINK;
        match i.operands.get(3) {
            // The number of bytes actually read; the rest is zeroed.
            Some(o @ (Operand::Reg(_) | Operand::Int(_))) if !self.is_predicate(o) => {
                inst.args.src[2] = self.source(&o.clone(), Slot::R32, Type::U32, &mut list)?;
            }
            Some(o @ (Operand::Reg(_) | Operand::NotReg(_))) => {
                // `ignore-src`: where it holds, zeros are written.
                inst.args.dst[2] = self.source(&o.clone(), Slot::Pred, Type::Pred, &mut list)?;
                inst.target = 1 + u32::from(matches!(o, Operand::NotReg(_)));
                inst.args.src[2] = self.b.constant(Slot::R32, u128::from(size));
            }
            _ => inst.args.src[2] = self.b.constant(Slot::R32, u128::from(size)),
        }
        inst.aux = self.cache_entry();
        list.push(inst);
        self.emit(list, i)
    }

    fn is_predicate(&self, o: &Operand) -> bool {
        matches!(o, Operand::Reg(r) | Operand::NotReg(r) if self.unit().body.regs[r.0 as usize].ty == Type::Pred)
    }

    /// The pieces of `call (returns), callee, (arguments), prototype`.
    fn call_parts<'i>(
        &self,
        i: &'i Instr,
    ) -> Result<(&'i [Operand], &'i Operand, &'i [Operand]), DecodeError> {
        let mut ops = i.operands.iter();
        let mut returns: &[Operand] = &[];
        let mut callee = ops.next();
        if let Some(Operand::Args(v)) = callee {
            returns = v;
            callee = ops.next();
        }
        let args: &[Operand] = match ops.next() {
            Some(Operand::Args(v)) => v,
            _ => &[],
        };
        match callee {
            Some(c @ (Operand::Func(_) | Operand::Reg(_))) => Ok((returns, c, args)),
            _ => Err(self.error("no callee")),
        }
    }

    fn builtin_arg(
        &mut self,
        o: &Operand,
        size: u32,
        list: &mut Vec<Inst>,
    ) -> Result<BuiltinArg, DecodeError> {
        match o {
            Operand::Var(v, n) => {
                if *n != 0 {
                    return Err(self.error("an argument that is not a whole variable"));
                }
                let at = self.frame_offset(*v)?;
                Ok(BuiltinArg::Memory(at, size))
            }
            Operand::Reg(r) => {
                let (at, slot) = self.reg(*r)?;
                Ok(BuiltinArg::Register(at, slot))
            }
            o => {
                let (slot, ty) = if size > 4 {
                    (Slot::R64, Type::U64)
                } else {
                    (Slot::R32, Type::U32)
                };
                Ok(BuiltinArg::Register(self.source(o, slot, ty, list)?, slot))
            }
        }
    }

    fn call_builtin(&mut self, i: &Instr, f: FuncId, kind: BuiltinKind) -> Result<(), DecodeError> {
        let function = &self.linked.module.functions[f.0 as usize];
        let (returns, _, args) = self.call_parts(i)?;
        let expected = match kind {
            BuiltinKind::Vprintf => 2,
            BuiltinKind::AssertFail => 5,
            BuiltinKind::Malloc | BuiltinKind::Free => 1,
        };
        if args.len() != expected || function.params.len() != expected {
            return Err(self.error("a wrong number of arguments"));
        }
        let mut list = Vec::new();
        let mut places = Vec::new();
        for (o, p) in args.iter().zip(&function.params) {
            places.push(self.builtin_arg(o, p.size() as u32, &mut list)?);
        }
        let result = match (returns.first(), function.returns.first()) {
            (Some(o), Some(v)) => Some(self.builtin_arg(o, v.size() as u32, &mut list)?),
            _ => None,
        };
        let mut inst = Inst::new(Kind::Builtin);
        inst.target = self.b.program.builtins.len() as u32;
        self.b.program.builtins.push(BuiltinOp {
            kind,
            args: places,
            result,
        });
        list.push(inst);
        self.emit(list, i)
    }

    fn copies(
        &mut self,
        ops: &[Operand],
        callee: &[(u32, u32)],
        list: &mut Vec<Inst>,
    ) -> Result<Vec<ArgCopy>, DecodeError> {
        if ops.len() != callee.len() {
            return Err(self.error("a wrong number of arguments"));
        }
        let mut out = Vec::new();
        for (o, &(at, size)) in ops.iter().zip(callee) {
            out.push(match o {
                Operand::Var(v, n) => {
                    let have = self.variable_size(*v);
                    if *n != 0 {
                        return Err(self.error("an argument that is not a whole variable"));
                    }
                    let caller = self.frame_offset(*v)?;
                    ArgCopy::Memory {
                        caller,
                        callee: at,
                        size: size.min(have),
                    }
                }
                Operand::Reg(r) => {
                    let (caller, slot) = self.reg(*r)?;
                    ArgCopy::Register {
                        caller,
                        slot,
                        callee: at,
                        size,
                    }
                }
                Operand::Sink => continue,
                o => {
                    let (slot, ty) = if size > 4 {
                        (Slot::R64, Type::U64)
                    } else {
                        (Slot::R32, Type::U32)
                    };
                    ArgCopy::Register {
                        caller: self.source(o, slot, ty, list)?,
                        slot,
                        callee: at,
                        size,
                    }
                }
            });
        }
        Ok(out)
    }

    fn variable_size(&self, v: VarId) -> u32 {
        let f = self.unit().function;
        let found = match v {
            VarId::Local(n) => self.unit().body.vars.get(n as usize),
            VarId::Param(n) => f.params.get(n as usize),
            VarId::Return(n) => f.returns.get(n as usize),
            VarId::Module(_) => None,
        };
        found.map_or(0, |v| u32::try_from(v.size()).unwrap_or(u32::MAX))
    }

    /// Results and parameters of an indirect call's callees: of its prototype, or of the first function of its list.
    fn signature(&self, i: &Instr) -> Option<(&'m [Variable], &'m [Variable])> {
        let module = self.linked.module;
        let of = |f: FuncId| {
            let f = module.functions.get(f.0 as usize)?;
            Some((f.returns.as_slice(), f.params.as_slice()))
        };
        i.operands.iter().find_map(|o| match o {
            Operand::Proto(p) => {
                let p = module.prototypes.get(p.0 as usize)?;
                Some((p.returns.as_slice(), p.params.as_slice()))
            }
            Operand::Targets(n) => {
                of(*self.unit().body.call_targets.get(*n as usize)?.1.first()?)
            }
            Operand::Var(VarId::Module(n), _) => {
                let table = module.globals.get(*n as usize)?;
                table.init.iter().find_map(|e| match e {
                    InitElem::Func { func, .. } => of(*func),
                    _ => None,
                })
            }
            _ => None,
        })
    }

    /// `call`.
    pub fn call(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let (returns, callee, args) = self.call_parts(i)?;
        let (returns, args) = (returns.to_vec(), args.to_vec());
        let mut list = Vec::new();
        let mut op = CallOp {
            frame: self.unit().frame.size,
            ..CallOp::default()
        };
        let (kind, ret_places, arg_places) = match callee {
            Operand::Func(f) => {
                let function = &self.linked.module.functions[f.0 as usize];
                if function.body.is_none() {
                    return match builtin(&function.name) {
                        Some(kind) => self.call_builtin(i, *f, kind),
                        None => Err(self.error(&format!("`{}` is not defined", function.name))),
                    };
                }
                let Some(n) = self.units.iter().position(|u| u.id == *f) else {
                    return Err(self.error("a callee that the decoder lost"));
                };
                if function.is_entry {
                    return Err(self.error("a kernel as callee"));
                }
                op.entry = n as u32;
                let frame = &self.units[n].frame;
                let pairs = |at: &[u32], v: &[Variable]| -> Vec<(u32, u32)> {
                    at.iter()
                        .zip(v)
                        .map(|(a, v)| (*a, v.size() as u32))
                        .collect()
                };
                (
                    Kind::Call,
                    pairs(&frame.returns, &function.returns),
                    pairs(&frame.params, &function.params),
                )
            }
            Operand::Reg(r) => {
                op.entry = u32::MAX;
                let Some((proto_returns, proto_params)) = self.signature(i) else {
                    return Err(self.error("an indirect call without prototype"));
                };
                let slot = self.source(&Operand::Reg(*r), Slot::R64, Type::U64, &mut list)?;
                // The same rule as for a function's own frame: results first, then parameters.
                let mut at = 0u64;
                let mut place = |v: &Variable| {
                    at = at.next_multiple_of(u64::from(v.align.max(1)));
                    let here = at;
                    at += v.size();
                    (here as u32, v.size() as u32)
                };
                let rets: Vec<_> = proto_returns.iter().map(&mut place).collect();
                let args: Vec<_> = proto_params.iter().map(&mut place).collect();
                op.callee_frame = at as u32;
                let mut inst = Inst::new(Kind::CallIndirect);
                inst.args.src[0] = slot;
                list.push(inst);
                (Kind::CallIndirect, rets, args)
            }
            _ => return Err(self.error("no callee")),
        };
        op.args = self.copies(&args, &arg_places, &mut list)?;
        op.returns = self.copies(&returns, &ret_places, &mut list)?;
        if self.unit().recursive {
            op.save = Some(self.unit().save);
        }
        let index = self.b.program.calls.len() as u32;
        self.b.program.calls.push(op);
        // Conversions that `copies` added must come before the call itself.
        let mut inst = if kind == Kind::CallIndirect {
            let at = list
                .iter()
                .position(|i| i.kind == Kind::CallIndirect)
                .unwrap_or(0);
            list.remove(at)
        } else {
            Inst::new(Kind::Call)
        };
        inst.target = index;
        list.push(inst);
        let mut after = Inst::new(Kind::AfterCall);
        after.target = index;
        self.emit(list, i)?;
        // Only lanes that called come here, so that it needs no guard of its own.
        let unguarded = Instr {
            guard: None,
            ..i.clone()
        };
        self.emit(vec![after], &unguarded)
    }
}

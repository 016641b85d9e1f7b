//! Lowering of loads, stores, atomics and asynchronous copies.

use cupyrite_ptx::ir::{AtomOp, Base, Instr, Op, Operand, Semantics, Space, Type, VarId};

use super::Lower;
use crate::compile::unit::CompileError;
use crate::program::{AtomicOp, Inst, InstKind, MemOp, MemSpace, atomic_exists, fixed};
use crate::semantics::lane::Slot;

/// A lowered address operand. The address in a lane is the base slot's element plus `imm` plus lane 0 of `plus`.
pub struct LoweredAddress {
    /// Slot of the base.
    pub slot: u32,
    /// Whether that slot is 32 bits wide.
    pub addr32: bool,
    /// State space of the address.
    pub space: MemSpace,
    /// Constant offset.
    pub imm: i64,
    /// 64-bit slot of the uniform part.
    pub plus: u32,
}

impl Lower<'_, '_> {
    /// Lowers an address operand.
    ///
    /// # Errors
    /// An operand that is not an address, or a variable without one.
    pub fn address(
        &mut self,
        o: &Operand,
        space: Option<Space>,
        list: &mut Vec<Inst>,
    ) -> Result<LoweredAddress, CompileError> {
        let is_entry = self.unit().function.is_entry;
        let (base, imm) = match o {
            Operand::Addr(b, n) => (*b, *n),
            Operand::Reg(r) => (Base::Reg(*r), 0),
            Operand::Int(n) => (Base::None, *n),
            _ => return Err(self.error("the operand is not an address")),
        };
        let space_of = |s: Option<Space>| match s {
            Some(Space::Shared | Space::SharedCluster) => MemSpace::Shared,
            Some(Space::Local) => MemSpace::Local,
            Some(Space::Param) if !is_entry => MemSpace::Local,
            Some(Space::Global | Space::Const | Space::Param) => MemSpace::Global,
            _ => MemSpace::Generic,
        };
        match base {
            Base::None => {
                let space = space_of(space);
                let slot = self.b.constant(Slot::R64, u128::from(imm as u64));
                Ok(LoweredAddress {
                    slot,
                    addr32: false,
                    space,
                    imm: 0,
                    plus: fixed::ZERO,
                })
            }
            Base::Reg(r) => {
                if let Some((varying, uniform)) =
                    self.unit().split_addresses.get(self.at).copied().flatten()
                {
                    let (slot, plus) = (self.reg(varying)?.0, self.reg(uniform)?.0);
                    let space = space_of(space);
                    return Ok(LoweredAddress {
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
                    (Slot::R64, _) => Ok(LoweredAddress {
                        slot: at,
                        addr32: false,
                        space,
                        imm,
                        plus: fixed::ZERO,
                    }),
                    (Slot::R32, MemSpace::Shared | MemSpace::Local) => Ok(LoweredAddress {
                        slot: at,
                        addr32: true,
                        space,
                        imm,
                        plus: fixed::ZERO,
                    }),
                    (Slot::R32, _) => {
                        let slot = self.source(&Operand::Reg(r), Slot::R64, Type::U64, list)?;
                        Ok(LoweredAddress {
                            slot,
                            addr32: false,
                            space,
                            imm,
                            plus: fixed::ZERO,
                        })
                    }
                    _ => Err(self.error("the address register has the wrong width")),
                }
            }
            Base::Var(v) => {
                let declared = self.variable_space(v);
                match declared {
                    Some(Space::Param) if is_entry && matches!(v, VarId::Param(_)) => {
                        let VarId::Param(n) = v else {
                            return Err(self.error("internal error: the instruction has no form"));
                        };
                        let at = self.layout.params.get(n as usize).copied().unwrap_or(0);
                        let slot = self.param_address(u64::from(at));
                        Ok(LoweredAddress {
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
                        Ok(LoweredAddress {
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
                            _ => return Err(self.error("a parameter cannot lie in shared memory")),
                        };
                        let Some(&at) = self.layout.shared.get(&key) else {
                            return Err(
                                self.error("internal error: a shared variable has no offset")
                            );
                        };
                        let slot = self.b.constant(Slot::R32, u128::from(at));
                        Ok(LoweredAddress {
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
                                self.placed.globals.get(n as usize).copied().flatten()
                            }
                            VarId::Local(n) => self
                                .placed
                                .body_globals
                                .get(&(self.unit().id.0, n))
                                .copied(),
                            _ => None,
                        };
                        let Some(at) = at else {
                            return Err(self.error("the variable has no address"));
                        };
                        let slot = self.b.constant(Slot::R64, u128::from(at));
                        Ok(LoweredAddress {
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
            VarId::Module(n) => self.placed.module.globals.get(n as usize).map(|v| v.space),
            VarId::Local(n) => self.unit().body.vars.get(n as usize).map(|v| v.space),
            VarId::Param(n) => f.params.get(n as usize).map(|_| Space::Param),
            VarId::Return(n) => f.returns.get(n as usize).map(|_| Space::Param),
        }
    }

    /// The region-cache entry of the next memory instruction.
    pub fn cache_entry(&self) -> u16 {
        (self.b.program.code.len() & 0xff) as u16
    }

    fn order(i: &Instr) -> (Semantics, bool) {
        let order = i.mods.semantics.unwrap_or(Semantics::Weak);
        (order, i.mods.volatile || order != Semantics::Weak)
    }

    fn element_type(&self, i: &Instr) -> Result<Type, CompileError> {
        match i.types.last() {
            Some(Type::Pred) | None => Err(self.error("the type cannot be stored in memory")),
            Some(t) if t.bits() % 8 != 0 => Err(self.error("the type cannot be stored in memory")),
            Some(t) => Ok(*t),
        }
    }

    /// Destination slots of a load, and whether the registers have at most 16 bits.
    pub fn load_targets(&self, o: &Operand) -> Result<(Vec<(u32, Slot)>, bool), CompileError> {
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
                        return Err(self.error("the vector register has no such component"));
                    }
                    let (at, slot) = self.reg(*r)?;
                    narrow |= reg.ty.bits() <= 16;
                    out.push((at + u32::from(*c) * slot.bytes(), slot));
                }
                Operand::Sink => out.push((fixed::SINK, Slot::R32)),
                _ => return Err(self.error("the destination is not a register")),
            }
        }
        if out.iter().any(|(_, s)| *s == Slot::Pred) {
            return Err(self.error("a predicate cannot be loaded"));
        }
        Ok((out, narrow))
    }

    /// `ld`, `ldu`.
    pub fn load(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = self.element_type(i)?;
        let mut list = Vec::new();
        let a = self.address(&self.operand(i, 1)?.clone(), i.mods.space, &mut list)?;
        let (regs, narrow) = self.load_targets(self.operand(i, 0)?)?;
        let (order, atomic) = Self::order(i);
        let size = ty.bytes();
        let kind = match (regs.as_slice(), size, a.space, a.addr32, atomic) {
            ([(_, Slot::R32)], 4, MemSpace::Global | MemSpace::Generic, false, false) => {
                InstKind::LdGlobal4
            }
            ([(_, Slot::R64)], 8, MemSpace::Global | MemSpace::Generic, false, false) => {
                InstKind::LdGlobal8
            }
            ([(_, Slot::R32)], 4, MemSpace::Shared, true, false) => InstKind::LdShared4,
            _ => InstKind::Ld,
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
    ) -> Result<Inst, CompileError> {
        if reg.1 == Slot::Pred {
            return Err(self.error("a predicate cannot be a parameter"));
        }
        let mut inst = Inst::new(if store { InstKind::St } else { InstKind::Ld });
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
    ) -> Result<Vec<(u32, Slot)>, CompileError> {
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
            return Err(self.error("a predicate cannot be stored"));
        }
        Ok(out)
    }

    /// `st`.
    pub fn store(&mut self, i: &Instr) -> Result<(), CompileError> {
        let ty = self.element_type(i)?;
        let mut list = Vec::new();
        let a = self.address(&self.operand(i, 0)?.clone(), i.mods.space, &mut list)?;
        let regs = self.values(&self.operand(i, 1)?.clone(), ty, &mut list)?;
        let (order, atomic) = Self::order(i);
        let size = ty.bytes();
        let kind = match (regs.as_slice(), size, a.space, a.addr32, atomic) {
            ([(_, Slot::R32)], 4, MemSpace::Global | MemSpace::Generic, false, false) => {
                InstKind::StGlobal4
            }
            ([(_, Slot::R64)], 8, MemSpace::Global | MemSpace::Generic, false, false) => {
                InstKind::StGlobal8
            }
            ([(_, Slot::R32)], 4, MemSpace::Shared, true, false) => InstKind::StShared4,
            _ => InstKind::St,
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
    pub fn atomic(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(op) = i.mods.atom else {
            return Err(self.error("the operation is missing"));
        };
        let ty = self.element_type(i)?;
        if !atomic_exists(op, ty) {
            return Err(self.error("the operation does not exist for this type"));
        }
        let mut list = Vec::new();
        let red = i.op == Op::Red;
        let k = u8::from(!red);
        let a = self.address(&self.operand(i, k)?.clone(), i.mods.space, &mut list)?;
        let dst = if red {
            Vec::new()
        } else {
            self.load_targets(self.operand(i, 0)?)?.0
        };
        let src = self.values(&self.operand(i, k + 1)?.clone(), ty, &mut list)?;
        let src2 = match op {
            AtomOp::Cas => Some(
                self.values(&self.operand(i, k + 2)?.clone(), ty, &mut list)?
                    .remove(0),
            ),
            _ => None,
        };
        let mut inst = Inst::new(InstKind::Atom);
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

    /// `cp.async`. The copy completes at once, so that the group forms do nothing.
    pub fn cp_async(&mut self, i: &Instr) -> Result<(), CompileError> {
        if i.operands.len() < 2 || !matches!(i.operands[0], Operand::Addr(..)) {
            return Ok(());
        }
        let mut list = Vec::new();
        let to = self.address(&i.operands[0].clone(), Some(Space::Shared), &mut list)?;
        let from = self.address(&i.operands[1].clone(), Some(Space::Global), &mut list)?;
        let size = match i.operands.get(2) {
            Some(Operand::Int(n @ (4 | 8 | 16))) => *n as u32,
            _ => return Err(self.error("the size must be 4, 8 or 16 bytes")),
        };
        let mut inst = Inst::new(InstKind::CpAsync);
        // The instruction holds both offsets; the interpreter adds them to the bases.
        inst.imm = to.imm;
        inst.args.imm = size;
        inst.args.src[0] = to.slot;
        inst.args.src[1] = from.slot;
        inst.args.dst[0] = u32::from(to.addr32);
        inst.args.src[3] = from.imm as u32;
        inst.args.dst[1] = (from.imm >> 32) as u32;
        inst.args.dst[2] = fixed::SINK;
        match i.operands.get(3) {
            // The number of bytes to read; the rest of the destination becomes zero.
            Some(o @ (Operand::Reg(_) | Operand::Int(_))) if !self.is_predicate(o) => {
                inst.args.src[2] = self.source(&o.clone(), Slot::R32, Type::U32, &mut list)?;
            }
            Some(o @ (Operand::Reg(_) | Operand::NotReg(_))) => {
                // `ignore-src`: where it is true, the destination becomes zero.
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
}

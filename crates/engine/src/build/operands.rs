//! Translation of operands and of lane arithmetic.

use cupyrite_ptx::ir::{Instr, Op, Operand, RegId, Space, Special, Type, VarId, Word};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, BarrierMode, BarrierOp, Fixed, LaneOp, Reg, Source, Uniformity, WarpOp};
use crate::semantics::lane::{self, OpFn, OperandRef, OperandSlot, Selected, Slot, VectorOp};
use crate::semantics::warp;

/// Shape of a special register.
fn special_slot(s: Special) -> Slot {
    match s {
        Special::Clock64
        | Special::GlobalTimer
        | Special::GridId
        | Special::CurrentGraphExec
        | Special::Pm64(_) => Slot::R64,
        Special::IsExplicitCluster => Slot::Pred,
        _ => Slot::R32,
    }
}

/// How often a special register changes; `None` if it does while a warp runs.
fn special_uniformity(s: Special) -> Option<Uniformity> {
    use Special::*;
    Some(match s {
        Ntid(_)
        | Nctaid(_)
        | LaneId
        | NWarpId
        | NSmId
        | GridId
        | LaneMaskEq
        | LaneMaskLe
        | LaneMaskLt
        | LaneMaskGe
        | LaneMaskGt
        | NClusterId(_)
        | ClusterNCtaId(_)
        | ClusterNCtaRank
        | IsExplicitCluster
        | DynamicSmemSize
        | TotalSmemSize
        | AggrSmemSize
        | ReservedSmemOffset(_)
        | CurrentGraphExec
        | EnvReg(_)
        | Pm(_)
        | Pm64(_) => Uniformity::Launch,
        Ctaid(_) | ClusterId(_) | ClusterCtaId(_) | ClusterCtaRank | SmId => Uniformity::Block,
        Tid(_) | WarpId => Uniformity::Varying,
        Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi => return None,
    })
}

/// An action that copies between registers of different shape.
fn resize(run: OpFn, from: Reg, to: Reg, signed: bool) -> Action {
    let narrow =
        matches!(from.slot, Slot::R32 | Slot::R64) && matches!(to.slot, Slot::R32 | Slot::R64);
    Action::Lanes(LaneOp {
        run,
        dst: [Some(to), None, None, None],
        src: [Some(from), None, None, None],
        imm: 0,
        op: None,
        vector: narrow.then_some(VectorOp::Extend {
            bits: 32,
            signed,
            from: from.slot,
            to: to.slot,
        }),
    })
}

impl FunctionBuilder<'_, '_> {
    /// The register of a register of the PTX.
    pub fn reg(&self, r: RegId) -> Result<Reg, CompileError> {
        let reg = self.declared(r.0);
        reg.ok_or_else(|| self.error("internal error: a register is not declared"))
    }

    /// The registers of all components of a register of the PTX.
    pub fn components(&self, r: RegId) -> Result<impl Iterator<Item = Reg> + use<>, CompileError> {
        let Reg { at, slot } = self.reg(r)?;
        let count = self.body.regs[r.0 as usize].vector.max(1);
        Ok((at..at + count).map(move |at| Reg { at, slot }))
    }

    /// The register of one component.
    pub fn component(&self, r: RegId, c: u8) -> Result<Reg, CompileError> {
        let component = self.components(r)?.nth(c.into());
        component.ok_or_else(|| self.error("the vector register has no such component"))
    }

    /// The register of shape `slot` that holds `o` as a value of type `ty`. Appends the actions that fill it to `out`.
    pub fn source(
        &mut self,
        o: &Operand,
        slot: Slot,
        ty: Type,
        out: &mut Vec<Action>,
    ) -> Result<Reg, CompileError> {
        let reg = match o {
            Operand::Reg(r) | Operand::NotReg(r) | Operand::RegSelect(r, _) => self.reg(*r)?,
            Operand::Neg(o) => return self.source(o, slot, ty, out),
            Operand::RegComponent(r, c) => self.component(*r, *c)?,
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                let element = lane::immediate(o, ty).unwrap_or(0);
                return Ok(self.constant(slot, element));
            }
            Operand::Sink => Fixed::discarded(slot),
            Operand::Special(s) => match special_uniformity(*s) {
                Some(uniformity) => {
                    self.interned(special_slot(*s), Source::Special(*s), uniformity)
                }
                None => {
                    let dst = self.temporary(special_slot(*s));
                    out.push(Action::Special { dst, special: *s });
                    dst
                }
            },
            Operand::Var(v, offset) if let Some(at) = self.shared_offset(*v) => {
                let source = Source::SharedAddress(at.wrapping_add(*offset as u32));
                self.interned(Slot::R32, source, Uniformity::Block)
            }
            Operand::Var(VarId::Param(n), offset) if self.function.is_entry => {
                let base = self.layout.params.get(*n as usize).copied().unwrap_or(0);
                self.parameter_address(u64::from(base).wrapping_add(*offset as u64))
            }
            Operand::Var(v, offset) => {
                let at = self.frame_offset(*v)?;
                let offset = i64::from(at).wrapping_add(*offset);
                if self.function.is_entry {
                    // The frame of a kernel begins at offset zero.
                    self.constant(Slot::R64, u128::from(offset as u64))
                } else {
                    let dst = self.temporary(Slot::R64);
                    out.push(Action::FrameAddress { dst, offset });
                    dst
                }
            }
            _ => return Err(self.error("the operand is not a value")),
        };
        if reg.slot == slot {
            return Ok(reg);
        }
        let Some(run) = lane::resize(reg.slot, slot, ty.is_signed()) else {
            return Err(self.error("the register has the wrong width"));
        };
        let resized = self.temporary(slot);
        out.push(resize(run, reg, resized, ty.is_signed()));
        Ok(resized)
    }

    /// Offset of a variable in the block's shared memory; `None` for one of another state space.
    pub fn shared_offset(&self, v: VarId) -> Option<u32> {
        let key = match v {
            VarId::Module(n) => (None, n),
            VarId::Local(n) => (Some(self.id()), n),
            _ => return None,
        };
        self.layout.shared.get(&key).copied()
    }

    /// The register that holds the address of a byte of the parameter bank.
    pub fn parameter_address(&mut self, offset: u64) -> Reg {
        let source = Source::ParameterAddress(offset);
        self.interned(Slot::R64, source, Uniformity::Launch)
    }

    /// Offset in the frame of a local variable, a call's parameter or a function's own parameter.
    pub fn frame_offset(&self, v: VarId) -> Result<u32, CompileError> {
        let frame = self.frame();
        let found = match v {
            VarId::Local(n) => {
                let local = self.body.vars.get(n as usize);
                let here = local.is_some_and(|v| matches!(v.space, Space::Local | Space::Param));
                frame.vars.get(n as usize).filter(|_| here)
            }
            VarId::Param(n) => frame.params.get(n as usize),
            VarId::Return(n) => frame.returns.get(n as usize),
            VarId::Module(_) => None,
        };
        found
            .copied()
            .ok_or_else(|| self.error("the variable has no address in this function"))
    }

    /// The register of shape `slot` that an instruction writes for destination `o`, and the action that copies it to the
    /// register of the PTX if that has another shape. `signed` is whether the copy extends by sign.
    pub fn destination(
        &mut self,
        o: &Operand,
        slot: Slot,
        signed: bool,
    ) -> Result<(Reg, Option<Action>), CompileError> {
        let reg = match o {
            Operand::Reg(r) | Operand::RegSelect(r, _) => self.reg(*r)?,
            Operand::RegComponent(r, c) => self.component(*r, *c)?,
            Operand::Sink => return Ok((Fixed::discarded(slot), None)),
            _ => return Err(self.error("the destination is not a register")),
        };
        if reg.slot == slot {
            return Ok((reg, None));
        }
        let Some(run) = lane::resize(slot, reg.slot, signed) else {
            return Err(self.error("the destination register has the wrong width"));
        };
        let written = self.temporary(slot);
        Ok((written, Some(resize(run, written, reg, signed))))
    }

    /// A lane-arithmetic instruction with the conversions of width that it needs.
    pub fn arithmetic(&mut self, i: &Instr, s: &Selected) -> Result<Vec<Action>, CompileError> {
        let mut out = Vec::new();
        let mut after = Vec::new();
        let mut op = LaneOp {
            run: s.run,
            dst: [None; 4],
            src: [None; 4],
            imm: s.imm,
            op: Some((i.op, i.types.first().copied().unwrap_or(Type::B32))),
            vector: lane::vector_op(i),
        };
        let fixed = |p: &OperandSlot| match p.operand {
            OperandRef::Carry => Some(Fixed::Carry.reg()),
            OperandRef::Scratch => Some(Fixed::discarded(p.slot)),
            _ => None,
        };
        for (src, p) in op.src.iter_mut().zip(&s.srcs) {
            let Some(p) = p else { continue };
            *src = match fixed(p) {
                None => Some(self.source(&self.part(i, p.operand)?, p.slot, p.ty, &mut out)?),
                fixed => fixed,
            };
        }
        for (dst, p) in op.dst.iter_mut().zip(&s.dsts) {
            let Some(p) = p else { continue };
            *dst = match fixed(p) {
                None => {
                    let o = self.part(i, p.operand)?;
                    let (reg, copy) = self.destination(&o, p.slot, p.ty.is_signed())?;
                    after.extend(copy);
                    Some(reg)
                }
                fixed => fixed,
            };
        }
        out.push(Action::Lanes(op));
        out.extend(after);
        Ok(out)
    }

    /// A warp function with the conversions of width that it needs.
    pub fn warp_function(&mut self, i: &Instr, s: &warp::Selected) -> Result<(), CompileError> {
        let (mut list, mut after) = (Vec::new(), Vec::new());
        let address = match s.address {
            Some(k) => Some(self.address(self.operand(i, k)?, i.mods.space, &mut list)?),
            None => None,
        };
        let mut src = Vec::with_capacity(s.srcs.len());
        for p in &s.srcs {
            let o = self.part(i, p.operand)?;
            // A warp function applies the negation of a predicate itself.
            if matches!(o, Operand::Neg(_) | Operand::RegSelect(..))
                || matches!(o, Operand::NotReg(_)) && p.ty != Type::Pred
            {
                return Err(self.error("the operand must be a whole register that is not negated"));
            }
            src.push(self.source(&o, p.slot, p.ty, &mut list)?);
        }
        let mut dst = Vec::with_capacity(s.dsts.len());
        for p in &s.dsts {
            let o = self.part(i, p.operand)?;
            let (reg, copy) = self.destination(&o, p.slot, p.ty.is_signed())?;
            after.extend(copy);
            dst.push(reg);
        }
        list.push(Action::Warp(Box::new(WarpOp {
            run: s.run,
            dst,
            src,
            address,
            detail: s.detail.clone(),
        })));
        list.extend(after);
        if i.op == Op::Wgmma && i.mods.has(Word::MmaAsync) {
            // The warps execute their parts one by one. A warp that goes on may let others overwrite the matrices.
            list.push(Action::Barrier(Box::new(BarrierOp {
                mode: BarrierMode::Warpgroup,
                id: Fixed::Frame.reg(),
                count: None,
                predicate: Fixed::True.reg(),
                negated: false,
                dst: None,
            })));
        }
        self.emit(list, i)
    }

    /// Operand `k`.
    pub fn operand<'i>(&self, i: &'i Instr, k: u8) -> Result<&'i Operand, CompileError> {
        i.operands
            .get(usize::from(k))
            .ok_or_else(|| self.error("an operand is missing"))
    }

    /// The operand, or the component of one, that `at` names.
    fn part(&self, i: &Instr, at: OperandRef) -> Result<Operand, CompileError> {
        let (k, c) = match at {
            OperandRef::Operand(k) => return self.operand(i, k).cloned(),
            OperandRef::Part(k, c) => (k, c),
            _ => {
                return Err(self.error("internal error: the operand is not one of the instruction"));
            }
        };
        let o = self.operand(i, k)?;
        let found = match o {
            Operand::Vector(v) => v.get(usize::from(c)).cloned(),
            Operand::Pair(a, b) => Some(if c == 0 { (**a).clone() } else { (**b).clone() }),
            // A vector register has its elements as components.
            Operand::Reg(r)
                if self
                    .body
                    .regs
                    .get(r.0 as usize)
                    .is_some_and(|r| r.vector > 1) =>
            {
                Some(Operand::RegComponent(*r, c))
            }
            Operand::Reg(_) if c == 0 => Some(o.clone()),
            _ => None,
        };
        found.ok_or_else(|| self.error("a component of the operand is missing"))
    }
}

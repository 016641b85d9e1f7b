//! Lowering of operands and of lane arithmetic.

use std::sync::Arc;

use cupyrite_ptx::ir::{Base, FuncId, Instr, Op, Operand, RegId, Space, Special, Type, VarId};

use super::Lower;
use crate::address_windows::{function_address, windows};
use crate::compile::uniform::{Uniformity, special_uniformity};
use crate::compile::unit::{CompileError, Frame, KernelLayout, PlacedModule};
use crate::program::{HoistedLoad, Inst, InstKind, PaddedVariable, SpecialSlot, fixed};
use crate::semantics::lane::{self, OperandRef, Selected, Slot};

/// The address of a variable if it is the same for every thread.
fn fixed_address(
    v: VarId,
    placed: &PlacedModule,
    id: FuncId,
    layout: &KernelLayout,
    frame: &Frame,
) -> Option<u64> {
    let function = &placed.module.functions[id.0 as usize];
    match v {
        VarId::Module(n) => placed
            .globals
            .get(n as usize)
            .copied()
            .flatten()
            .or_else(|| layout.shared.get(&(None, n)).map(|&o| u64::from(o))),
        VarId::Local(n) => {
            let var = function.body.as_ref()?.vars.get(n as usize)?;
            match var.space {
                Space::Shared => layout.shared.get(&(Some(id.0), n)).map(|&o| u64::from(o)),
                Space::Global | Space::Const => placed.body_globals.get(&(id.0, n)).copied(),
                // The frame of a kernel starts at offset zero of local memory.
                Space::Local | Space::Param if function.is_entry => {
                    frame.vars.get(n as usize).map(|&o| u64::from(o))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Simplifies an instruction: known addresses become integers, `cvta` becomes arithmetic.
pub fn simplify(
    i: &mut Instr,
    placed: &PlacedModule,
    id: FuncId,
    layout: &KernelLayout,
    frame: &Frame,
) {
    if i.op == Op::Call {
        return;
    }
    for o in &mut i.operands {
        // The address of a texture reference stays symbolic.
        if matches!(o, Operand::TexAddr(_)) {
            continue;
        }
        o.walk_mut(&mut |o| match *o {
            Operand::Var(v, offset) => {
                if let Some(address) = fixed_address(v, placed, id, layout, frame) {
                    *o = Operand::Int((address as i64).wrapping_add(offset));
                }
            }
            Operand::Func(f) => *o = Operand::Int(function_address(f.0) as i64),
            _ => {}
        });
    }
    if i.op == Op::Cvta {
        let is_entry = placed.module.functions[id.0 as usize].is_entry;
        let window = match i.mods.space {
            Some(Space::Shared | Space::SharedCluster) => windows().shared,
            Some(Space::Local) => windows().local,
            Some(Space::Param) if !is_entry => windows().local,
            _ => 0,
        };
        if window == 0 {
            i.op = Op::Mov;
            i.types = Arc::new([Type::B64]);
        } else {
            i.op = if i.mods.to { Op::Sub } else { Op::Add };
            i.types = Arc::new([Type::U64]);
            i.operands.push(Operand::Int(window as i64));
        }
        let mods = Arc::make_mut(&mut i.mods);
        mods.space = None;
        mods.to = false;
    }
}

/// The slot of discarded results.
fn scratch(slot: Slot) -> u32 {
    if slot == Slot::Pred {
        fixed::SINK_PRED
    } else {
        fixed::SINK
    }
}

/// Shape of a special register.
pub fn special_slot(s: Special) -> Slot {
    match s {
        Special::Clock64
        | Special::GlobalTimer
        | Special::GridId
        | Special::CurrentGraphExec
        | Special::Pm64(_) => Slot::R64,
        _ => Slot::R32,
    }
}

/// Code ([`Inst::aux`]) of a special register whose value changes while a warp runs.
pub fn dynamic_special(s: Special) -> Option<u16> {
    Some(match s {
        Special::Clock => 0,
        Special::ClockHi => 1,
        Special::Clock64 => 2,
        Special::GlobalTimer => 3,
        Special::GlobalTimerLo => 4,
        Special::GlobalTimerHi => 5,
        _ => return None,
    })
}

impl Lower<'_, '_> {
    /// Location of a register.
    pub fn reg(&self, r: RegId) -> Result<(u32, Slot), CompileError> {
        let unit = self.unit();
        match unit.regs.get(r.0 as usize).copied().flatten() {
            Some(l) => Ok((l.at, l.slot)),
            None => Err(self.error("internal error: a register has no location")),
        }
    }

    fn component(&self, r: RegId, c: u8) -> Result<(u32, Slot), CompileError> {
        let (at, slot) = self.reg(r)?;
        if u32::from(c) >= self.unit().body.regs[r.0 as usize].vector.max(1) {
            return Err(self.error("the vector register has no such component"));
        }
        Ok((at + u32::from(c) * slot.bytes(), slot))
    }

    /// Location of a special register that is constant for a warp.
    fn special_location(&mut self, s: Special) -> Option<(u32, Slot)> {
        match s {
            Special::Tid(a) => return Some((fixed::TID[usize::from(a) % 3], Slot::R32)),
            Special::WarpId => return Some((fixed::WARP_ID, Slot::R32)),
            _ => {}
        }
        match special_uniformity(s)? {
            Uniformity::Block => {
                let found = self.layout.block_specials.iter().find(|p| p.special == s)?;
                Some((found.at, found.slot))
            }
            _ => {
                if let Some(p) = self
                    .b
                    .program
                    .launch_specials
                    .iter()
                    .find(|p| p.special == s)
                {
                    return Some((p.at, p.slot));
                }
                let slot = special_slot(s);
                let at = self.b.allocate_slot(slot);
                self.b.program.launch_specials.push(SpecialSlot {
                    special: s,
                    at,
                    slot,
                });
                Some((at, slot))
            }
        }
    }

    /// The slot of shape `slot` that holds `o` as a value of type `ty`. Appends the instructions that fill it to `out`.
    pub fn source(
        &mut self,
        o: &Operand,
        slot: Slot,
        ty: Type,
        out: &mut Vec<Inst>,
    ) -> Result<u32, CompileError> {
        let (at, have) = match o {
            Operand::Reg(r) | Operand::NotReg(r) | Operand::RegSelect(r, _) => self.reg(*r)?,
            Operand::Neg(o) => return self.source(o, slot, ty, out),
            Operand::RegComponent(r, c) => self.component(*r, *c)?,
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                let element = lane::immediate(o, ty).unwrap_or(0);
                return Ok(self.b.constant(slot, element));
            }
            Operand::Sink => (scratch(slot), slot),
            Operand::Special(s) => {
                if let Some(location) = self.special_location(*s) {
                    location
                } else if let Some(code) = dynamic_special(*s) {
                    let have = special_slot(*s);
                    let at = self.b.allocate_slot(have);
                    let mut i = Inst::new(InstKind::Special);
                    i.aux = code;
                    i.args.dst[0] = at;
                    out.push(i);
                    (at, have)
                } else {
                    return Err(self.error("the CPU device does not have this special register"));
                }
            }
            Operand::Var(VarId::Param(n), offset) if self.unit().function.is_entry => {
                let base = self.layout.params.get(*n as usize).copied().unwrap_or(0);
                (
                    self.param_address(u64::from(base).wrapping_add(*offset as u64)),
                    Slot::R64,
                )
            }
            Operand::Var(v, offset) => {
                let at = self.frame_offset(*v)?;
                let t = self.b.allocate_slot(Slot::R64);
                let mut i = Inst::new(InstKind::FrameAddr);
                i.args.dst[0] = t;
                i.imm = i64::from(at).wrapping_add(*offset);
                out.push(i);
                (t, Slot::R64)
            }
            _ => return Err(self.error("the operand is not a value")),
        };
        self.shaped(at, have, slot, ty.is_signed(), out)
    }

    /// `at` if it has the wanted shape, otherwise a converted copy.
    fn shaped(
        &mut self,
        at: u32,
        have: Slot,
        want: Slot,
        signed: bool,
        out: &mut Vec<Inst>,
    ) -> Result<u32, CompileError> {
        if have == want {
            return Ok(at);
        }
        let Some(run) = lane::resize(have, want, signed) else {
            return Err(self.error("the register has the wrong width"));
        };
        let t = self.b.allocate_slot(want);
        let mut i = Inst::new(InstKind::Lanes);
        i.run = run;
        i.args.src[0] = at;
        i.args.dst[0] = t;
        out.push(i);
        Ok(t)
    }

    /// The slot that holds the address of a byte of the parameter bank.
    pub fn param_address(&mut self, offset: u64) -> u32 {
        if let Some(&(at, _)) = self
            .b
            .program
            .param_addrs
            .iter()
            .find(|(_, o)| *o == offset)
        {
            return at;
        }
        let at = self.b.allocate_slot(Slot::R64);
        self.b.program.param_addrs.push((at, offset));
        at
    }

    /// Offset in the frame of a local variable, a call's parameter or a function's own parameter.
    pub fn frame_offset(&self, v: VarId) -> Result<u32, CompileError> {
        let frame = &self.unit().frame;
        let found = match v {
            VarId::Local(n) => {
                let local = self.unit().body.vars.get(n as usize);
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

    /// The slot of shape `slot` that an instruction writes for destination `o`, and the register to convert it to
    /// afterwards if that has another shape.
    pub fn destination(
        &mut self,
        o: &Operand,
        slot: Slot,
    ) -> Result<(u32, Option<(u32, Slot)>), CompileError> {
        let (at, have) = match o {
            Operand::Reg(r) | Operand::RegSelect(r, _) => self.reg(*r)?,
            Operand::RegComponent(r, c) => self.component(*r, *c)?,
            Operand::Sink => return Ok((scratch(slot), None)),
            _ => return Err(self.error("the destination is not a register")),
        };
        if have == slot {
            Ok((at, None))
        } else {
            Ok((self.b.allocate_slot(slot), Some((at, have))))
        }
    }

    /// A lane-arithmetic instruction with the conversions of width that it needs.
    pub fn arithmetic(&mut self, i: &Instr, s: &Selected) -> Result<Vec<Inst>, CompileError> {
        let mut out = Vec::new();
        let mut inst = Inst::new(InstKind::Lanes);
        inst.run = s.run;
        inst.args.imm = s.imm;
        for (n, place) in s.srcs.iter().enumerate() {
            let Some(p) = place else { continue };
            inst.args.src[n] = match p.operand {
                OperandRef::Carry => fixed::CARRY,
                OperandRef::Scratch => scratch(p.slot),
                OperandRef::Operand(k) => {
                    let o = self.operand(i, k)?;
                    self.source(o, p.slot, p.ty, &mut out)?
                }
                OperandRef::Part(k, c) => {
                    let o = self.part(i, k, c)?;
                    self.source(&o, p.slot, p.ty, &mut out)?
                }
            };
        }
        let mut after = Vec::new();
        for (n, place) in s.dsts.iter().enumerate() {
            let Some(p) = place else { continue };
            let o = match p.operand {
                OperandRef::Carry => {
                    inst.args.dst[n] = fixed::CARRY;
                    continue;
                }
                OperandRef::Scratch => {
                    inst.args.dst[n] = scratch(p.slot);
                    continue;
                }
                OperandRef::Operand(k) => self.operand(i, k)?.clone(),
                OperandRef::Part(k, c) => self.part(i, k, c)?,
            };
            let (at, then) = self.destination(&o, p.slot)?;
            inst.args.dst[n] = at;
            if let Some((to, have)) = then {
                let Some(run) = lane::resize(p.slot, have, p.ty.is_signed()) else {
                    return Err(self.error("the destination register has the wrong width"));
                };
                let mut r = Inst::new(InstKind::Lanes);
                r.run = run;
                r.args.src[0] = at;
                r.args.dst[0] = to;
                after.push(r);
            }
        }
        out.push(inst);
        out.extend(after);
        Ok(out)
    }

    /// Operand `k`.
    pub fn operand<'i>(&self, i: &'i Instr, k: u8) -> Result<&'i Operand, CompileError> {
        i.operands
            .get(usize::from(k))
            .ok_or_else(|| self.error("an operand is missing"))
    }

    fn part(&self, i: &Instr, k: u8, c: u8) -> Result<Operand, CompileError> {
        let o = self.operand(i, k)?;
        let found = match o {
            Operand::Vector(v) => v.get(usize::from(c)).cloned(),
            Operand::Pair(a, b) => Some(if c == 0 { (**a).clone() } else { (**b).clone() }),
            // A vector register has its elements as components.
            Operand::Reg(r)
                if self
                    .unit()
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

    /// A load that runs before the threads: adds its elements to the program's hoisted loads.
    pub fn hoisted_load(&mut self, i: &Instr) -> Result<(), CompileError> {
        let Some(Operand::Addr(Base::Var(v), offset)) = i.operands.get(1) else {
            return Err(self.error("the address is not constant"));
        };
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let (base, absolute, variable) = match *v {
            VarId::Param(n) => {
                let at = self.layout.params.get(n as usize).copied().unwrap_or(0);
                let variable = self.unit().function.params.get(n as usize);
                (u64::from(at), false, variable)
            }
            VarId::Module(n) => {
                let at = self.placed.globals.get(n as usize).copied().flatten();
                let variable = self.placed.module.globals.get(n as usize);
                (at.unwrap_or(0), true, variable)
            }
            _ => (0, true, None),
        };
        let size = variable.map_or(0, |v| v.size());
        let single = [i.operands[0].clone()];
        let parts: &[Operand] = match &i.operands[0] {
            Operand::Vector(v) => v,
            _ => &single,
        };
        let bytes = ty.bytes().max(1);
        // A load that begins in a parameter may read beyond it, like one of a GPU's parameter bank.
        let padding = match absolute {
            true => PaddedVariable::padding(size, variable.map_or(1, |v| v.align)),
            false => u64::from(PaddedVariable::LARGEST),
        };
        let start = u64::try_from(*offset).ok().filter(|at| *at < size);
        let length = u64::from(bytes) * parts.len() as u64;
        let Some(start) = start.filter(|at| at + length <= size + padding) else {
            let text = format!(
                "the load of {length} bytes at offset {offset} exceeds the variable `{}` of {size} bytes",
                variable.map_or("?", |v| v.name.as_str())
            );
            return Err(self.error(&text));
        };
        for (k, o) in parts.iter().enumerate() {
            let from = start + k as u64 * u64::from(bytes);
            if matches!(o, Operand::Sink) {
                continue;
            }
            let Operand::Reg(r) = o else {
                return Err(self.error("the destination is not a register"));
            };
            let (at, slot) = self.reg(*r)?;
            let narrow = self.unit().body.regs[r.0 as usize].ty.bits() <= 16;
            self.b.program.hoisted_loads.push(HoistedLoad {
                from: base + from,
                absolute,
                size: bytes,
                signed: ty.is_signed(),
                at,
                slot,
                narrow,
            });
        }
        Ok(())
    }
}

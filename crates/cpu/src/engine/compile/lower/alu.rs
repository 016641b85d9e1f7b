//! Lowering of operands and of lane arithmetic.

use cupyrite_ptx::ir::{Base, FuncId, Instr, Op, Operand, RegId, Space, Special, Type, VarId};

use super::Lower;
use crate::engine::address_windows::{function_address, windows};
use crate::engine::compile::uniform::{Class, special_class};
use crate::engine::compile::{DecodeError, Frame, Layout, Linked};
use crate::engine::ops::{self, Selected, Slot};
use crate::engine::program::{EarlyLoad, Inst, Kind, SpecialSlot, fixed};

/// Address of a variable that is the same for every thread, if it has one.
fn fixed_address(
    v: VarId,
    linked: &Linked<'_>,
    id: FuncId,
    layout: &Layout,
    frame: &Frame,
) -> Option<u64> {
    let function = &linked.module.functions[id.0 as usize];
    match v {
        VarId::Module(n) => linked
            .globals
            .get(n as usize)
            .copied()
            .flatten()
            .or_else(|| layout.shared.get(&(None, n)).map(|&o| u64::from(o))),
        VarId::Local(n) => {
            let var = function.body.as_ref()?.vars.get(n as usize)?;
            match var.space {
                Space::Shared => layout.shared.get(&(Some(id.0), n)).map(|&o| u64::from(o)),
                Space::Global | Space::Const => linked.body_globals.get(&(id.0, n)).copied(),
                // The kernel's own frame begins at zero in every thread.
                Space::Local | Space::Param if function.is_entry => {
                    frame.vars.get(n as usize).map(|&o| u64::from(o))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Rewrites an instruction into simpler ones: known addresses become integers, `cvta` becomes arithmetic.
pub fn normalise(i: &mut Instr, linked: &Linked<'_>, id: FuncId, layout: &Layout, frame: &Frame) {
    if i.op == Op::Call {
        return;
    }
    fn rewrite(o: &mut Operand, f: &dyn Fn(VarId) -> Option<u64>) {
        match o {
            Operand::Var(v, offset) => {
                if let Some(a) = f(*v) {
                    *o = Operand::Int((a as i64).wrapping_add(*offset));
                }
            }
            Operand::Func(id) => *o = Operand::Int(function_address(id.0) as i64),
            Operand::Vector(v) => v.iter_mut().for_each(|o| rewrite(o, f)),
            _ => {}
        }
    }
    let find = |v| fixed_address(v, linked, id, layout, frame);
    i.operands.iter_mut().for_each(|o| rewrite(o, &find));
    if i.op == Op::Cvta {
        let is_entry = linked.module.functions[id.0 as usize].is_entry;
        let window = match i.mods.space {
            Some(Space::Shared | Space::SharedCluster) => windows().shared,
            Some(Space::Local) => windows().local,
            Some(Space::Param) if !is_entry => windows().local,
            _ => 0,
        };
        if window == 0 {
            i.op = Op::Mov;
            i.types = vec![Type::B64];
        } else {
            i.op = if i.mods.to { Op::Sub } else { Op::Add };
            i.types = vec![Type::U64];
            i.operands.push(Operand::Int(window as i64));
        }
        i.mods.space = None;
        i.mods.to = false;
    }
}

/// Where results nobody wants go.
fn scratch(slot: Slot) -> u32 {
    if slot == Slot::Pred {
        fixed::SINK_PRED
    } else {
        fixed::SINK
    }
}

/// Number of low bits that special registers have.
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

/// The codes of special registers that are read while running.
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
    /// Place of a register.
    pub fn reg(&self, r: RegId) -> Result<(u32, Slot), DecodeError> {
        let unit = self.unit();
        match unit.regs.get(r.0 as usize).copied().flatten() {
            Some(l) => Ok((l.at, l.slot)),
            None => Err(self.error("a register that the decoder lost")),
        }
    }

    fn component(&self, r: RegId, c: u8) -> Result<(u32, Slot), DecodeError> {
        let (at, slot) = self.reg(r)?;
        if u32::from(c) >= self.unit().body.regs[r.0 as usize].vector.max(1) {
            return Err(self.error("a component that the vector register does not have"));
        }
        Ok((at + u32::from(c) * slot.bytes(), slot))
    }

    /// Place of a special register that stays the same for a warp.
    fn special_place(&mut self, s: Special) -> Option<(u32, Slot)> {
        match s {
            Special::Tid(a) => return Some((fixed::TID[usize::from(a) % 3], Slot::R32)),
            Special::WarpId => return Some((fixed::WARP_ID, Slot::R32)),
            _ => {}
        }
        match special_class(s)? {
            Class::Block => {
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
                let at = self.b.fresh(slot);
                self.b.program.launch_specials.push(SpecialSlot {
                    special: s,
                    at,
                    slot,
                });
                Some((at, slot))
            }
        }
    }

    /// The slot from which `o`, meant as `ty`, can be read in shape `slot`; may add instructions to `out`.
    pub fn source(
        &mut self,
        o: &Operand,
        slot: Slot,
        ty: Type,
        out: &mut Vec<Inst>,
    ) -> Result<u32, DecodeError> {
        let (at, have) = match o {
            Operand::Reg(r) | Operand::NotReg(r) | Operand::RegSelect(r, _) => self.reg(*r)?,
            Operand::Neg(o) => return self.source(o, slot, ty, out),
            Operand::RegComponent(r, c) => self.component(*r, *c)?,
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                let element = ops::immediate(o, ty).unwrap_or(0);
                return Ok(self.b.constant(slot, element));
            }
            Operand::Sink => (scratch(slot), slot),
            Operand::Special(s) => {
                if let Some(place) = self.special_place(*s) {
                    place
                } else if let Some(code) = dynamic_special(*s) {
                    let have = special_slot(*s);
                    let at = self.b.fresh(have);
                    let mut i = Inst::new(Kind::Special);
                    i.aux = code;
                    i.args.dst[0] = at;
                    out.push(i);
                    (at, have)
                } else {
                    return Err(self.error("a special register that the CPU device does not have"));
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
                let t = self.b.fresh(Slot::R64);
                let mut i = Inst::new(Kind::FrameAddr);
                i.args.dst[0] = t;
                i.imm = i64::from(at).wrapping_add(*offset);
                out.push(i);
                (t, Slot::R64)
            }
            _ => return Err(self.error("an operand that does not fit here")),
        };
        self.shaped(at, have, slot, ty.is_signed(), out)
    }

    /// `at`, if it already has the wanted shape, or a copy that has it.
    fn shaped(
        &mut self,
        at: u32,
        have: Slot,
        want: Slot,
        signed: bool,
        out: &mut Vec<Inst>,
    ) -> Result<u32, DecodeError> {
        if have == want {
            return Ok(at);
        }
        let Some((run, _)) = ops::resize(have, want, signed) else {
            return Err(self.error("a register of the wrong width"));
        };
        let t = self.b.fresh(want);
        let mut i = Inst::new(Kind::Alu);
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
        let at = self.b.fresh(Slot::R64);
        self.b.program.param_addrs.push((at, offset));
        at
    }

    /// Offset in the frame of a local variable, a call's parameter or a function's own parameter.
    pub fn frame_offset(&self, v: VarId) -> Result<u32, DecodeError> {
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
            .ok_or_else(|| self.error("a variable whose address cannot be taken here"))
    }

    /// The slot an instruction writes for destination `o`, and the place the value then has to be moved to, if any.
    pub fn destination(
        &mut self,
        o: &Operand,
        slot: Slot,
    ) -> Result<(u32, Option<(u32, Slot)>), DecodeError> {
        let (at, have) = match o {
            Operand::Reg(r) | Operand::RegSelect(r, _) => self.reg(*r)?,
            Operand::RegComponent(r, c) => self.component(*r, *c)?,
            Operand::Sink => return Ok((scratch(slot), None)),
            _ => return Err(self.error("a destination that is no register")),
        };
        if have == slot {
            Ok((at, None))
        } else {
            Ok((self.b.fresh(slot), Some((at, have))))
        }
    }

    /// A lane-arithmetic instruction with whatever conversions of width it needs.
    pub fn alu(&mut self, i: &Instr, s: &Selected) -> Result<Vec<Inst>, DecodeError> {
        let mut out = Vec::new();
        let mut inst = Inst::new(Kind::Alu);
        inst.run = s.run;
        inst.args.imm = s.imm;
        for (n, place) in s.srcs.iter().enumerate() {
            let Some(p) = place else { continue };
            inst.args.src[n] = match p.from {
                ops::From::Carry => fixed::CARRY,
                ops::From::Scratch => scratch(p.slot),
                ops::From::Operand(k) => {
                    let o = self.operand(i, k)?;
                    self.source(o, p.slot, p.ty, &mut out)?
                }
                ops::From::Part(k, c) => {
                    let o = self.part(i, k, c)?;
                    self.source(&o, p.slot, p.ty, &mut out)?
                }
            };
        }
        let mut after = Vec::new();
        for (n, place) in s.dsts.iter().enumerate() {
            let Some(p) = place else { continue };
            let o = match p.from {
                ops::From::Carry => {
                    inst.args.dst[n] = fixed::CARRY;
                    continue;
                }
                ops::From::Scratch => {
                    inst.args.dst[n] = scratch(p.slot);
                    continue;
                }
                ops::From::Operand(k) => self.operand(i, k)?.clone(),
                ops::From::Part(k, c) => self.part(i, k, c)?,
            };
            let (at, then) = self.destination(&o, p.slot)?;
            inst.args.dst[n] = at;
            if let Some((to, have)) = then {
                let Some((run, _)) = ops::resize(p.slot, have, p.ty.is_signed()) else {
                    return Err(self.error("a destination of the wrong width"));
                };
                let mut r = Inst::new(Kind::Alu);
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
    pub fn operand<'i>(&self, i: &'i Instr, k: u8) -> Result<&'i Operand, DecodeError> {
        i.operands
            .get(usize::from(k))
            .ok_or_else(|| self.error("too few operands"))
    }

    fn part(&self, i: &Instr, k: u8, c: u8) -> Result<Operand, DecodeError> {
        let o = self.operand(i, k)?;
        let found = match o {
            Operand::Vector(v) => v.get(usize::from(c)).cloned(),
            Operand::Pair(a, b) => Some(if c == 0 { (**a).clone() } else { (**b).clone() }),
            // A whole vector register stands for its components.
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
        found.ok_or_else(|| self.error("too few components"))
    }

    /// A load that can be done before the launch, as entries of the program's table.
    pub fn early_load(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let Some(Operand::Addr(Base::Var(v), offset)) = i.operands.get(1) else {
            return Err(self.error("an address that is not constant"));
        };
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let (base, absolute, limit) = match *v {
            VarId::Param(n) => {
                let at = self.layout.params.get(n as usize).copied().unwrap_or(0);
                (
                    u64::from(at),
                    false,
                    self.unit()
                        .function
                        .params
                        .get(n as usize)
                        .map_or(0, |p| p.size()),
                )
            }
            VarId::Module(n) => {
                let size = self
                    .linked
                    .module
                    .globals
                    .get(n as usize)
                    .map_or(0, |p| p.size());
                (
                    self.linked
                        .globals
                        .get(n as usize)
                        .copied()
                        .flatten()
                        .unwrap_or(0),
                    true,
                    size,
                )
            }
            _ => (0, true, 0),
        };
        let single = [i.operands[0].clone()];
        let parts: &[Operand] = match &i.operands[0] {
            Operand::Vector(v) => v,
            _ => &single,
        };
        let bytes = ty.bytes().max(1);
        for (k, o) in parts.iter().enumerate() {
            let from = (*offset).wrapping_add(k as i64 * i64::from(bytes));
            if from < 0 || from as u64 + u64::from(bytes) > limit {
                return Err(self.error("a load from beyond the end of the variable"));
            }
            if matches!(o, Operand::Sink) {
                continue;
            }
            let Operand::Reg(r) = o else {
                return Err(self.error("a destination that is no register"));
            };
            let (at, slot) = self.reg(*r)?;
            let narrow = self.unit().body.regs[r.0 as usize].ty.bits() <= 16;
            self.b.program.early_loads.push(EarlyLoad {
                from: base + from as u64,
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

//! Lowering of one function: instructions of the IR to [`Inst`]s, branch targets to positions.

mod alu;
mod memory;
mod texture;

pub use alu::normalise;

use cupyrite_ptx::ir::{AtomOp, BoolOp, Instr, LabelId, Op, Operand, Space, Type, VarId};

use crate::engine::compile::uniform::{Class, early_address, is_reduction};
use crate::engine::compile::{Builder, DecodeError, Layout, Linked, Unit, register_parameters};
use crate::engine::ops::Slot;
use crate::engine::program::{
    BACKWARD, BarMode, BarOp, GUARD_NOT, GUARDED, Inst, Kind, Origin, ReduxOp, SPIN, fixed,
    shfl_code, vote_code,
};

/// Instructions that are not lane arithmetic.
pub fn is_ours(i: &Instr) -> bool {
    matches!(
        i.op,
        Op::Ld
            | Op::Ldu
            | Op::St
            | Op::Atom
            | Op::Red
            | Op::Bra
            | Op::BrxIdx
            | Op::Call
            | Op::Ret
            | Op::Exit
            | Op::Trap
            | Op::Brkpt
            | Op::Bar
            | Op::Barrier
            | Op::BarWarp
            | Op::Shfl
            | Op::Vote
            | Op::Match
            | Op::Redux
            | Op::Activemask
            | Op::Elect
            | Op::Membar
            | Op::Fence
            | Op::Nanosleep
            | Op::Isspacep
            | Op::Prefetch
            | Op::Prefetchu
            | Op::CpAsync
            | Op::Mbarrier
            | Op::Tex
            | Op::Tld4
            | Op::Txq
            | Op::Suq
            | Op::Suld
            | Op::Sust
            | Op::Sured
            | Op::Alloca
            | Op::Stacksave
            | Op::Stackrestore
            | Op::Pmevent
            | Op::Discard
            | Op::Applypriority
            | Op::Griddepcontrol
            | Op::Setmaxnreg
    )
}

/// The lowering of one function.
pub struct Lower<'a, 'm> {
    /// Where the result goes.
    pub b: &'a mut Builder,
    /// The module.
    pub linked: &'a Linked<'m>,
    /// Layout of the kernel.
    pub layout: &'a Layout,
    /// All functions of the kernel.
    pub units: &'a [Unit<'m>],
    /// The one being lowered.
    pub n: usize,
    /// The instruction being lowered.
    pub at: usize,
    /// Branches to patch: position and label.
    fixups: Vec<(usize, LabelId)>,
    /// Jump tables to patch: table and labels.
    table_fixups: Vec<(usize, Vec<LabelId>)>,
}

/// Lowers unit `n` and appends it to the program.
///
/// # Errors
/// An instruction or operand that the engine does not have.
pub fn lower_function(
    b: &mut Builder,
    linked: &Linked<'_>,
    layout: &Layout,
    units: &[Unit<'_>],
    n: usize,
) -> Result<(), DecodeError> {
    let mut l = Lower {
        b,
        linked,
        layout,
        units,
        n,
        at: 0,
        fixups: Vec::new(),
        table_fixups: Vec::new(),
    };
    for &k in &units[n].classes.early {
        l.at = k as usize;
        l.early()?;
    }
    let unit = &units[n];
    l.at = 0;
    l.register_parameters(true)?;
    let mut starts = Vec::with_capacity(unit.instrs.len() + 1);
    for (k, i) in unit.instrs.iter().enumerate() {
        starts.push(l.b.program.code.len() as u32);
        l.at = k;
        if !unit.classes.gone[k] {
            l.instruction(i)?;
        }
    }
    starts.push(l.b.program.code.len() as u32);
    l.at = unit.instrs.len();
    l.register_parameters(false)?;
    l.push(Inst::new(Kind::End), "ret");
    l.patch(&starts)
}

impl<'m> Lower<'_, 'm> {
    /// The function being lowered.
    pub fn unit(&self) -> &Unit<'m> {
        &self.units[self.n]
    }

    /// An error at the current instruction.
    pub fn error(&self, what: &str) -> DecodeError {
        let unit = self.unit();
        let i = unit.instrs.get(self.at);
        let op = i.map_or("", |i| i.op.name());
        DecodeError {
            line: i.map_or(unit.function.pos.line, |i| i.pos.line),
            message: format!("`{op}` in `{}`: {what}", unit.function.name),
        }
    }

    fn push(&mut self, i: Inst, name: &str) {
        let unit = &self.units[self.n];
        let from = unit.instrs.get(self.at).or(unit.instrs.last());
        self.b.program.code.push(i);
        self.b.program.opcodes.push(name.into());
        self.b.program.origins.push(Origin {
            line: from.map_or(unit.function.pos.line, |i| i.pos.line),
            loc: from.and_then(|i| i.loc),
            function: self.n as u32,
        });
    }

    /// Appends instructions, all under the guard of `i`.
    pub fn emit(&mut self, list: Vec<Inst>, i: &Instr) -> Result<(), DecodeError> {
        let guard = match i.guard {
            Some((r, not)) => Some((self.reg(r)?.0, not)),
            None => None,
        };
        let name = i.mnemonic();
        for mut inst in list {
            if let Some((at, not)) = guard {
                inst.guard = at;
                inst.flags |= GUARDED | if not { GUARD_NOT } else { 0 };
            }
            self.push(inst, &name);
        }
        Ok(())
    }

    /// Old-style parameters and results in registers: they travel through the frame like the others.
    fn register_parameters(&mut self, enter: bool) -> Result<(), DecodeError> {
        for (n, v) in register_parameters(self.unit().function)
            .into_iter()
            .enumerate()
        {
            if enter != matches!(v, VarId::Param(_)) {
                continue;
            }
            // A register that is never used has no place.
            let Some(place) = self.unit().regs.get(n).copied().flatten() else {
                continue;
            };
            let ty = self.unit().body.regs[n].ty;
            let at = self.frame_offset(v)?;
            let inst = self.frame_access(at, ty.bytes().max(1), (place.at, place.slot), !enter)?;
            self.push(inst, if enter { "ld.param" } else { "st.param" });
        }
        Ok(())
    }

    fn early(&mut self) -> Result<(), DecodeError> {
        let unit = &self.units[self.n];
        let i = &unit.instrs[self.at];
        if early_address(i, unit.function.is_entry) {
            return self.early_load(i);
        }
        let Some(s) = unit.selected[self.at] else {
            return Err(self.error("lost on the way"));
        };
        let list = self.alu(i, &s)?;
        let mut target = Vec::new();
        crate::engine::compile::uniform::writes(i, &mut target);
        let class = target
            .first()
            .map_or(Class::Launch, |r| unit.classes.regs[r.0 as usize]);
        if class == Class::Block {
            self.b.program.block_prologue.extend(list);
        } else {
            self.b.program.launch_prologue.extend(list);
        }
        Ok(())
    }

    fn instruction(&mut self, i: &'_ Instr) -> Result<(), DecodeError> {
        let unit = &self.units[self.n];
        if let Some(s) = unit.selected[self.at] {
            let list = self.alu(i, &s)?;
            return self.emit(list, i);
        }
        if let Some(why) = &unit.unsupported[self.at] {
            return Err(DecodeError {
                line: i.pos.line,
                message: why.clone(),
            });
        }
        match i.op {
            Op::Ld | Op::Ldu => self.load(i),
            Op::St => self.store(i),
            Op::Atom | Op::Red => self.atomic(i),
            Op::CpAsync if i.mods.has("mbarrier") => self.mbarrier(i),
            Op::CpAsync => self.cp_async(i),
            Op::Mbarrier => self.mbarrier(i),
            Op::Tex | Op::Tld4 | Op::Txq | Op::Suq | Op::Suld | Op::Sust | Op::Sured => {
                self.texture(i)
            }
            Op::Call => self.call(i),
            Op::Bra => {
                let Some(Operand::Label(label)) = i.operands.first() else {
                    return Err(self.error("a target that is no label"));
                };
                self.fixups.push((self.b.program.code.len(), *label));
                self.emit(vec![Inst::new(Kind::Bra)], i)
            }
            Op::BrxIdx => self.brx(i),
            Op::Ret => {
                self.register_parameters(false)?;
                self.emit(vec![Inst::new(Kind::Ret)], i)
            }
            Op::Exit => self.emit(vec![Inst::new(Kind::Exit)], i),
            Op::Trap => self.emit(vec![Inst::new(Kind::Trap)], i),
            Op::Brkpt
            | Op::Prefetch
            | Op::Prefetchu
            | Op::Pmevent
            | Op::Discard
            | Op::Applypriority
            | Op::Griddepcontrol
            | Op::Setmaxnreg => Ok(()),
            Op::Membar | Op::Fence => self.emit(vec![Inst::new(Kind::Fence)], i),
            Op::Bar | Op::Barrier => self.barrier(i),
            Op::BarWarp => {
                let mut list = Vec::new();
                let mut inst = Inst::new(Kind::BarWarp);
                inst.args.src[0] =
                    self.source(self.operand(i, 0)?, Slot::R32, Type::B32, &mut list)?;
                list.push(inst);
                self.emit(list, i)
            }
            Op::Shfl => self.shfl(i),
            Op::Vote => self.vote(i),
            Op::Match => self.matching(i),
            Op::Redux => self.redux(i),
            Op::Activemask => self.simple(i, Kind::ActiveMask, &[]),
            Op::Elect => self.elect(i),
            Op::Nanosleep => {
                let mut list = Vec::new();
                let mut inst = Inst::new(Kind::Nanosleep);
                inst.args.src[0] =
                    self.source(self.operand(i, 0)?, Slot::R32, Type::U32, &mut list)?;
                list.push(inst);
                self.emit(list, i)
            }
            Op::Isspacep => self.isspacep(i),
            Op::Alloca => {
                let align = match i.operands.get(2) {
                    Some(Operand::Int(n)) if *n > 0 => *n,
                    _ => 16,
                };
                let mut list = Vec::new();
                let ty = i.types.first().copied().unwrap_or(Type::U64);
                let mut inst = Inst::new(Kind::Alloca);
                inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::R64, ty, &mut list)?;
                inst.args.src[1] = self.unit().frame.size;
                inst.imm = align;
                self.with_result(i, inst, Slot::R64, list)
            }
            Op::Stacksave => {
                let mut inst = Inst::new(Kind::StackSave);
                inst.args.src[1] = self.unit().frame.size;
                self.with_result(i, inst, Slot::R64, Vec::new())
            }
            Op::Stackrestore => {
                let mut list = Vec::new();
                let mut inst = Inst::new(Kind::StackRestore);
                inst.args.src[0] =
                    self.source(self.operand(i, 0)?, Slot::R64, Type::U64, &mut list)?;
                inst.args.src[1] = self.unit().frame.size;
                list.push(inst);
                self.emit(list, i)
            }
            _ => Err(self.error("the CPU device has no implementation of it")),
        }
    }

    /// Completes an instruction whose only destination is operand 0, of shape `slot`.
    pub fn with_result(
        &mut self,
        i: &Instr,
        mut inst: Inst,
        slot: Slot,
        mut list: Vec<Inst>,
    ) -> Result<(), DecodeError> {
        let dst = self.operand(i, 0)?.clone();
        let (at, then) = self.destination(&dst, slot)?;
        inst.args.dst[0] = at;
        list.push(inst);
        if let Some((to, have)) = then {
            let Some((run, _)) = crate::engine::ops::resize(slot, have, false) else {
                return Err(self.error("a destination of the wrong width"));
            };
            let mut r = Inst::new(Kind::Alu);
            r.run = run;
            r.args.src[0] = at;
            r.args.dst[0] = to;
            list.push(r);
        }
        self.emit(list, i)
    }

    fn simple(&mut self, i: &Instr, kind: Kind, sources: &[(u8, Type)]) -> Result<(), DecodeError> {
        let mut list = Vec::new();
        let mut inst = Inst::new(kind);
        for (n, (k, ty)) in sources.iter().enumerate() {
            inst.args.src[n] = self.source(self.operand(i, *k)?, Slot::of(*ty), *ty, &mut list)?;
        }
        self.with_result(i, inst, Slot::R32, list)
    }

    fn brx(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let labels = match i.operands.get(1) {
            Some(Operand::Vector(v) | Operand::Args(v)) => v
                .iter()
                .map(|o| {
                    if let Operand::Label(l) = o {
                        Some(*l)
                    } else {
                        None
                    }
                })
                .collect::<Option<Vec<_>>>(),
            Some(Operand::Targets(n)) => self
                .unit()
                .body
                .branch_targets
                .get(*n as usize)
                .map(|t| t.1.clone()),
            _ => None,
        };
        let Some(labels) = labels else {
            return Err(self.error("no list of targets"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::BrxIdx);
        inst.args.src[0] = self.source(self.operand(i, 0)?, Slot::R32, Type::U32, &mut list)?;
        inst.target = self.b.program.tables.len() as u32;
        self.table_fixups
            .push((self.b.program.tables.len(), labels));
        self.b.program.tables.push(Vec::new());
        list.push(inst);
        self.emit(list, i)
    }

    fn barrier(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let red = is_reduction(i);
        let mode = if red {
            match (i.mods.atom, i.mods.bool_op) {
                (Some(AtomOp::And), _) | (_, Some(BoolOp::And)) => BarMode::RedAnd,
                (Some(AtomOp::Or), _) | (_, Some(BoolOp::Or)) => BarMode::RedOr,
                (Some(AtomOp::Popc), _) => BarMode::RedPopc,
                _ if i.mods.has("popc") => BarMode::RedPopc,
                _ if i.mods.has("and") => BarMode::RedAnd,
                _ => BarMode::RedOr,
            }
        } else if i.mods.has("arrive") {
            BarMode::Arrive
        } else {
            BarMode::Sync
        };
        let mut list = Vec::new();
        let mut op = BarOp {
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
                return Err(self.error("no predicate"));
            };
            op.pred = (
                self.source(p, Slot::Pred, Type::Pred, &mut list)?,
                matches!(p, Operand::NotReg(_)),
            );
            let slot = if mode == BarMode::RedPopc {
                Slot::R32
            } else {
                Slot::Pred
            };
            let (at, then) = self.destination(&i.operands[0].clone(), slot)?;
            if then.is_some() {
                return Err(self.error("a destination of the wrong width"));
            }
            op.dst = at;
        }
        let mut inst = Inst::new(Kind::Bar);
        inst.target = self.b.program.bars.len() as u32;
        self.b.program.bars.push(op);
        list.push(inst);
        self.emit(list, i)
    }

    /// `d` and `p` of a destination written `d|p`.
    fn pair(&self, i: &Instr) -> Result<(Operand, Operand), DecodeError> {
        Ok(match self.operand(i, 0)? {
            Operand::Pair(a, b) => ((**a).clone(), (**b).clone()),
            o => (o.clone(), Operand::Sink),
        })
    }

    fn pair_places(&mut self, i: &Instr, inst: &mut Inst) -> Result<(), DecodeError> {
        let (d, p) = self.pair(i)?;
        let (at, then) = self.destination(&d, Slot::R32)?;
        let (pat, pthen) = self.destination(&p, Slot::Pred)?;
        if then.is_some() || pthen.is_some() {
            return Err(self.error("a destination of the wrong width"));
        }
        inst.args.dst[0] = at;
        inst.args.dst[1] = pat;
        Ok(())
    }

    /// The member mask, or all lanes for the old forms without `.sync`.
    fn members(&mut self, i: &Instr, k: usize, list: &mut Vec<Inst>) -> Result<u32, DecodeError> {
        match i.operands.get(k) {
            Some(o) => self.source(o, Slot::R32, Type::B32, list),
            None => Ok(self.b.constant(Slot::R32, u128::from(u32::MAX))),
        }
    }

    fn shfl(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let Some(mode) = i.mods.shfl else {
            return Err(self.error("no mode"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::Shfl);
        inst.aux = shfl_code(mode) | if i.mods.sync { 0 } else { 0x80 };
        for k in 0..3u8 {
            inst.args.src[usize::from(k)] =
                self.source(self.operand(i, k + 1)?, Slot::R32, Type::B32, &mut list)?;
        }
        inst.args.src[3] = self.members(i, 4, &mut list)?;
        self.pair_places(i, &mut inst)?;
        list.push(inst);
        self.emit(list, i)
    }

    fn vote(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let Some(mode) = i.mods.vote else {
            return Err(self.error("no mode"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::Vote);
        let code = vote_code(mode);
        let p = self.operand(i, 1)?;
        let not = matches!(p, Operand::NotReg(_));
        inst.args.src[0] = self.source(p, Slot::Pred, Type::Pred, &mut list)?;
        inst.args.src[1] = self.members(i, 2, &mut list)?;
        inst.aux = code | if i.mods.sync { 0 } else { 0x80 } | if not { 0x40 } else { 0 };
        let slot = if code == 3 { Slot::R32 } else { Slot::Pred };
        self.with_result(i, inst, slot, list)
    }

    fn matching(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let all = i.mods.has("all");
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::Match);
        inst.aux = u16::from(all) | if ty.bits() == 64 { 2 } else { 0 };
        inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::of(ty), ty, &mut list)?;
        inst.args.src[1] = self.members(i, 2, &mut list)?;
        self.pair_places(i, &mut inst)?;
        list.push(inst);
        self.emit(list, i)
    }

    fn redux(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let ty = i.types.first().copied().unwrap_or(Type::B32);
        let Some(op) = i.mods.atom else {
            return Err(self.error("no operation"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::Redux);
        inst.target = self.b.program.redux.len() as u32;
        self.b.program.redux.push(ReduxOp {
            op,
            ty,
            abs: i.mods.abs,
            nan: i.mods.nan,
        });
        inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::R32, ty, &mut list)?;
        inst.args.src[1] = self.members(i, 2, &mut list)?;
        self.with_result(i, inst, Slot::R32, list)
    }

    fn elect(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::Elect);
        inst.args.src[1] = self.members(i, 1, &mut list)?;
        self.pair_places(i, &mut inst)?;
        list.push(inst);
        self.emit(list, i)
    }

    fn isspacep(&mut self, i: &Instr) -> Result<(), DecodeError> {
        let mut list = Vec::new();
        let mut inst = Inst::new(Kind::IsSpace);
        inst.aux = match i.mods.space {
            Some(Space::Shared | Space::SharedCluster) => 1,
            Some(Space::Local) => 2,
            Some(Space::Const) => 3,
            Some(Space::Param) => 4,
            _ => 0,
        };
        inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::R64, Type::U64, &mut list)?;
        self.with_result(i, inst, Slot::Pred, list)
    }

    fn patch(&mut self, starts: &[u32]) -> Result<(), DecodeError> {
        let body = self.unit().body;
        let of = |l: LabelId| {
            body.labels
                .get(l.0 as usize)
                .and_then(|l| starts.get(l.at as usize))
                .copied()
        };
        for (at, label) in std::mem::take(&mut self.fixups) {
            let Some(target) = of(label) else {
                return Err(self.error("a branch to a label that does not exist"));
            };
            let waits = (target as usize) <= at
                && self.b.program.code[target as usize..=at]
                    .iter()
                    .any(|i| match i.kind {
                        Kind::Atom | Kind::Mbarrier | Kind::Nanosleep => true,
                        Kind::Ld => self.b.program.mem[i.target as usize].atomic,
                        _ => false,
                    });
            let inst = &mut self.b.program.code[at];
            inst.target = target;
            if target as usize <= at {
                inst.flags |= BACKWARD;
            }
            if waits {
                inst.flags |= SPIN;
            }
        }
        for (table, labels) in std::mem::take(&mut self.table_fixups) {
            let targets: Option<Vec<u32>> = labels.iter().map(|l| of(*l)).collect();
            let Some(targets) = targets else {
                return Err(self.error("a branch to a label that does not exist"));
            };
            self.b.program.tables[table] = targets;
        }
        Ok(())
    }
}

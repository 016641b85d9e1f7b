//! Lowering of one function: instructions of the IR become [`Inst`]s, and labels become positions.
//!
//! [`Lower::instruction`] dispatches on the class of the opcode. The other files of this folder lower one class each.

mod bulk_copy;
mod calls;
mod collectives;
mod mbarrier;
mod memory;
mod operands;
mod texture;

use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, LabelId, Op, OpClass, Operand, Space, Type, VarId, Word};
use cupyrite_ptx::isa::Support;

pub use operands::simplify;

use super::builder::ProgramBuilder;
use super::uniform::{Uniformity, is_hoistable_load};
use super::unit::{CompileError, FunctionUnit, KernelLayout, PlacedModule, register_parameters};
use crate::program::{BACKWARD, GUARD_NOT, GUARDED, Inst, InstKind, Origin, SPIN};
use crate::semantics::lane::{self, Slot};

/// The lowering of one function.
pub struct Lower<'a, 'm> {
    /// The program to append to.
    b: &'a mut ProgramBuilder,
    /// The module.
    placed: &'m PlacedModule,
    /// Layout of the kernel.
    layout: &'a KernelLayout,
    /// All functions of the kernel.
    units: &'a [FunctionUnit<'m>],
    /// Index of the function that is being lowered.
    n: usize,
    /// Index of the instruction that is being lowered.
    at: usize,
    /// Branches to patch: position and label.
    branches: Vec<(usize, LabelId)>,
    /// Jump tables to patch: table and labels.
    tables: Vec<(usize, Vec<LabelId>)>,
}

/// Lowers unit `n` and appends it to the program.
///
/// # Errors
/// An instruction or operand that the engine does not implement.
pub fn lower_function<'m>(
    b: &mut ProgramBuilder,
    placed: &'m PlacedModule,
    layout: &KernelLayout,
    units: &[FunctionUnit<'m>],
    n: usize,
) -> Result<(), CompileError> {
    let mut l = Lower {
        b,
        placed,
        layout,
        units,
        n,
        at: 0,
        branches: Vec::new(),
        tables: Vec::new(),
    };
    let unit = &units[n];
    for &k in &unit.uniformity.hoisted {
        l.at = k as usize;
        l.hoisted()?;
    }
    l.at = 0;
    l.register_parameters(true)?;
    let mut starts = Vec::with_capacity(unit.instrs.len() + 1);
    for (k, i) in unit.instrs.iter().enumerate() {
        starts.push(l.b.program.code.len() as u32);
        l.at = k;
        if !unit.uniformity.omitted[k] {
            l.instruction(i)?;
        }
    }
    starts.push(l.b.program.code.len() as u32);
    l.at = unit.instrs.len();
    l.register_parameters(false)?;
    l.push(Inst::new(InstKind::End), "ret".into());
    l.patch(&starts)
}

impl<'m> Lower<'_, 'm> {
    /// The function that is being lowered.
    fn unit(&self) -> &FunctionUnit<'m> {
        &self.units[self.n]
    }

    /// An error at the current instruction.
    fn error(&self, problem: &str) -> CompileError {
        let unit = self.unit();
        let i = unit.instrs.get(self.at);
        let op = i.map_or("", |i| i.op.name());
        CompileError {
            line: i.map_or(unit.function.pos.line, |i| i.pos.line),
            message: format!("`{op}` in `{}`: {problem}", unit.function.name),
        }
    }

    /// The error for an instruction that the engine does not implement.
    fn unimplemented(&self, i: &Instr) -> CompileError {
        CompileError {
            line: i.pos.line,
            message: format!("the CPU device has no implementation of `{}`", i.mnemonic()),
        }
    }

    fn push(&mut self, inst: Inst, opcode: Arc<str>) {
        let unit = &self.units[self.n];
        let from = unit.instrs.get(self.at).or(unit.instrs.last());
        self.b.program.code.push(inst);
        self.b.program.opcodes.push(opcode);
        self.b.program.origins.push(Origin {
            line: from.map_or(unit.function.pos.line, |i| i.pos.line),
            loc: from.and_then(|i| i.loc),
            function: self.n as u32,
            variable: unit.accessed.get(self.at).copied().flatten(),
        });
    }

    /// Appends instructions, all under the guard of `i`.
    fn emit(&mut self, list: Vec<Inst>, i: &Instr) -> Result<(), CompileError> {
        let guard = match i.guard {
            Some((r, not)) => Some((self.reg(r)?.0, not)),
            None => None,
        };
        let opcode = self.b.spelling(i);
        for mut inst in list {
            if let Some((at, not)) = guard {
                inst.guard = at;
                inst.flags |= GUARDED | if not { GUARD_NOT } else { 0 };
            }
            self.push(inst, opcode.clone());
        }
        Ok(())
    }

    /// Appends an instruction without operands.
    fn emit_kind(&mut self, kind: InstKind, i: &Instr) -> Result<(), CompileError> {
        self.emit(vec![Inst::new(kind)], i)
    }

    /// Copies parameters and results in registers (PTX ISA 1.x) from and to the frame.
    fn register_parameters(&mut self, enter: bool) -> Result<(), CompileError> {
        for (n, v) in register_parameters(self.unit().function)
            .into_iter()
            .enumerate()
        {
            if enter != matches!(v, VarId::Param(_)) {
                continue;
            }
            // An unused register has no location.
            let Some(location) = self.unit().regs.get(n).copied().flatten() else {
                continue;
            };
            let ty = self.unit().body.regs[n].ty;
            let at = self.frame_offset(v)?;
            let reg = (location.at, location.slot);
            let inst = self.frame_access(at, ty.bytes().max(1), reg, !enter)?;
            self.push(inst, if enter { "ld.param" } else { "st.param" }.into());
        }
        Ok(())
    }

    /// Appends the current instruction to the prologue of the launch or of the block.
    fn hoisted(&mut self) -> Result<(), CompileError> {
        let unit = &self.units[self.n];
        let i = &unit.instrs[self.at];
        if is_hoistable_load(i, unit.function.is_entry) {
            return self.hoisted_load(i);
        }
        let Some(s) = unit.selected[self.at] else {
            return Err(self.error("internal error: a hoisted instruction has no lane function"));
        };
        let list = self.arithmetic(i, &s)?;
        let mut written = None;
        i.for_each_written(|r| written = written.or(Some(r)));
        let uniformity = written.map(|r| unit.uniformity.registers[r.0 as usize]);
        if uniformity == Some(Uniformity::Block) {
            self.b.program.block_prologue.extend(list);
        } else {
            self.b.program.launch_prologue.extend(list);
        }
        Ok(())
    }

    fn instruction(&mut self, i: &Instr) -> Result<(), CompileError> {
        if i.form.support == Support::Refused {
            return Err(self.unimplemented(i));
        }
        match i.op.class() {
            OpClass::Arithmetic | OpClass::Video => match self.unit().selected[self.at] {
                Some(s) => {
                    let list = self.arithmetic(i, &s)?;
                    self.emit(list, i)
                }
                None => Err(self.unimplemented(i)),
            },
            OpClass::Address => match i.op {
                Op::Isspacep => self.isspacep(i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::ControlFlow => self.control_flow(i),
            OpClass::Barrier => match i.op {
                Op::Bar | Op::Barrier => self.barrier(i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::WarpCollective => self.warp_collective(i),
            OpClass::Memory => match i.op {
                Op::Ld | Op::Ldu => self.load(i),
                Op::St => self.store(i),
                Op::Atom | Op::Red => self.atomic(i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::Fence => self.emit_kind(InstKind::Fence, i),
            OpClass::Mbarrier => self.mbarrier(i),
            OpClass::AsyncCopy => match i.op {
                Op::CpAsync if i.mods.has(Word::Mbarrier) => self.mbarrier(i),
                Op::CpAsync => self.cp_async(i),
                Op::CpAsyncBulk | Op::CpReduceAsync => self.bulk_copy(i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::Texture => match i.op {
                Op::Istypep => Err(self.unimplemented(i)),
                _ => self.texture(i),
            },
            OpClass::Stack => self.stack(i),
            OpClass::Monitor => match i.op {
                Op::Nanosleep => {
                    let mut list = Vec::new();
                    let mut inst = Inst::new(InstKind::Nanosleep);
                    inst.args.src[0] =
                        self.source(self.operand(i, 0)?, Slot::R32, Type::U32, &mut list)?;
                    list.push(inst);
                    self.emit(list, i)
                }
                _ => Ok(()),
            },
            OpClass::Hint => match i.op {
                Op::Createpolicy => Err(self.unimplemented(i)),
                _ => Ok(()),
            },
            OpClass::Matrix | OpClass::Cluster => Err(self.unimplemented(i)),
        }
    }

    fn control_flow(&mut self, i: &Instr) -> Result<(), CompileError> {
        match i.op {
            Op::Bra => {
                let Some(Operand::Label(label)) = i.operands.first() else {
                    return Err(self.error("the branch target is not a label"));
                };
                self.branches.push((self.b.program.code.len(), *label));
                self.emit_kind(InstKind::Bra, i)
            }
            Op::BrxIdx => self.brx(i),
            Op::Call => self.call(i),
            Op::Ret => {
                self.register_parameters(false)?;
                self.emit_kind(InstKind::Ret, i)
            }
            Op::Exit => self.emit_kind(InstKind::Exit, i),
            Op::Trap => self.emit_kind(InstKind::Trap, i),
            // A breakpoint without a debugger.
            Op::Brkpt => Ok(()),
            _ => Err(self.unimplemented(i)),
        }
    }

    fn stack(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        let kind = match i.op {
            Op::Alloca => InstKind::Alloca,
            Op::Stacksave => InstKind::StackSave,
            _ => InstKind::StackRestore,
        };
        let mut inst = Inst::new(kind);
        inst.args.src[1] = self.unit().frame.size;
        match kind {
            InstKind::Alloca => {
                let ty = i.types.first().copied().unwrap_or(Type::U64);
                inst.args.src[0] = self.source(self.operand(i, 1)?, Slot::R64, ty, &mut list)?;
                inst.imm = match i.operands.get(2) {
                    Some(Operand::Int(align)) if *align > 0 => *align,
                    _ => 16,
                };
            }
            InstKind::StackSave => {}
            _ => {
                let saved = self.operand(i, 0)?;
                inst.args.src[0] = self.source(saved, Slot::R64, Type::U64, &mut list)?;
                list.push(inst);
                return self.emit(list, i);
            }
        }
        self.with_result(i, inst, Slot::R64, list)
    }

    /// Appends `list` and then `inst`, whose only destination is operand 0 of `i`, of shape `slot`.
    fn with_result(
        &mut self,
        i: &Instr,
        mut inst: Inst,
        slot: Slot,
        mut list: Vec<Inst>,
    ) -> Result<(), CompileError> {
        let dst = self.operand(i, 0)?.clone();
        let (at, then) = self.destination(&dst, slot)?;
        inst.args.dst[0] = at;
        list.push(inst);
        if let Some((to, have)) = then {
            let Some(run) = lane::resize(slot, have, false) else {
                return Err(self.error("the destination register has the wrong width"));
            };
            let mut r = Inst::new(InstKind::Lanes);
            r.run = run;
            r.args.src[0] = at;
            r.args.dst[0] = to;
            list.push(r);
        }
        self.emit(list, i)
    }

    fn brx(&mut self, i: &Instr) -> Result<(), CompileError> {
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
            return Err(self.error("the list of branch targets is missing"));
        };
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::BrxIdx);
        inst.args.src[0] = self.source(self.operand(i, 0)?, Slot::R32, Type::U32, &mut list)?;
        inst.target = self.b.program.tables.len() as u32;
        self.tables.push((self.b.program.tables.len(), labels));
        self.b.program.tables.push(Vec::new());
        list.push(inst);
        self.emit(list, i)
    }

    fn isspacep(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        let mut inst = Inst::new(InstKind::IsSpace);
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

    /// Resolves the branches of the function. `starts` holds the position of each instruction of the body.
    fn patch(&mut self, starts: &[u32]) -> Result<(), CompileError> {
        let body = self.unit().body;
        let of = |l: LabelId| {
            body.labels
                .get(l.0 as usize)
                .and_then(|l| starts.get(l.at as usize))
                .copied()
        };
        for (at, label) in std::mem::take(&mut self.branches) {
            let Some(target) = of(label) else {
                return Err(self.error("the branch target is not a label of this function"));
            };
            let spins = (target as usize) <= at
                && self.b.program.code[target as usize..=at]
                    .iter()
                    .any(|i| match i.kind {
                        InstKind::Atom | InstKind::Mbarrier | InstKind::Nanosleep => true,
                        InstKind::Ld => self.b.program.mem[i.target as usize].atomic,
                        _ => false,
                    });
            let inst = &mut self.b.program.code[at];
            inst.target = target;
            if target as usize <= at {
                inst.flags |= BACKWARD;
            }
            if spins {
                inst.flags |= SPIN;
            }
        }
        for (table, labels) in std::mem::take(&mut self.tables) {
            let targets: Option<Vec<u32>> = labels.iter().map(|l| of(*l)).collect();
            let Some(targets) = targets else {
                return Err(self.error("the branch target is not a label of this function"));
            };
            self.b.program.tables[table] = targets;
        }
        Ok(())
    }
}

//! Translation of one function: instructions of PTX become instructions of KIR, and labels become blocks.
//!
//! [`FunctionBuilder::instruction`] dispatches on the class of the opcode. The other files of this folder translate one
//! class each.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_ptx::ir::{
    Body, Function, Instr, LabelId, Op, OpClass, Operand, Space, Type, VarId, Word,
};
use cupyrite_ptx::isa::Support;

use super::accessed_variable::accessed_variables;
use super::layout::gpu_frame;
use super::placed::{CompileError, Frame, KernelLayout, PlacedModule, register_parameters};
use super::simplify::simplify;
use crate::kir::{
    self, Action, Block, BlockId, Fixed, Guard, Instruction, Origin, Reg, Register, Source,
    Uniformity,
};
use crate::semantics::lane::{self, Slot};
use crate::semantics::warp;

/// A function under construction.
pub struct FunctionBuilder<'a, 'm> {
    /// The module.
    pub placed: &'m PlacedModule,
    /// Layout of the kernel.
    pub layout: &'a KernelLayout<'m>,
    /// Index of the function in the kernel.
    n: usize,
    /// The function.
    pub function: &'m Function,
    /// Its body.
    pub body: &'m Body,
    /// Index of the instruction that is being translated.
    at: usize,
    /// Virtual registers so far.
    registers: Vec<Register>,
    /// The first register of each register of the PTX.
    declared: Vec<u32>,
    /// The registers that no instruction writes, each of which there is once.
    interned: HashMap<(Slot, Source), Reg>,
    /// Blocks so far.
    blocks: Vec<Block>,
    /// Block of each instruction of the body, and of its end.
    block_of: Vec<BlockId>,
    /// Origins so far.
    origins: Vec<Origin>,
    /// The spelling of instructions, by opcode and by the address of the modifiers, which those spelled alike share.
    spellings: HashMap<(Op, usize), Arc<str>>,
}

/// Translates function `n` of a kernel.
///
/// # Errors
/// An instruction or operand that the engine does not implement.
pub fn function(
    placed: &PlacedModule,
    layout: &KernelLayout<'_>,
    n: usize,
) -> Result<kir::Function, CompileError> {
    let of = &layout.functions[n];
    let mut b = FunctionBuilder {
        placed,
        layout,
        n,
        function: of.function,
        body: of.body,
        at: 0,
        registers: Vec::new(),
        declared: Vec::new(),
        interned: HashMap::new(),
        blocks: Vec::new(),
        block_of: Vec::new(),
        origins: Vec::new(),
        spellings: HashMap::new(),
    };
    b.declare_registers();
    let starts = b.block_starts();
    let accessed = accessed_variables(b.body);
    for (k, i) in b.body.instrs.iter().enumerate() {
        if starts[k] {
            b.blocks.push(Block::default());
        }
        b.at = k;
        let key = (i.op, Arc::as_ptr(&i.mods).addr());
        let opcode = b.spellings.entry(key);
        let opcode = opcode.or_insert_with(|| i.mnemonic().into()).clone();
        b.origins.push(Origin {
            line: i.pos.line,
            loc: i.loc,
            variable: accessed[k].and_then(|v| placed.variable_index(of.id, v)),
            opcode,
        });
        b.instruction(&simplify(i, placed, of, layout))?;
    }
    b.at = b.body.instrs.len();
    b.blocks.push(Block::default());
    let mut list = b.register_parameters(false)?;
    list.push(Action::Return);
    b.synthetic("ret", list);
    Ok(kir::Function {
        id: of.id,
        name: of.function.name.clone(),
        line: of.function.pos.line,
        names: of.body.regs.iter().map(|r| r.name.clone()).collect(),
        registers: b.registers,
        blocks: b.blocks,
        reconvergence: Vec::new(),
        origins: b.origins,
        hoisted_loads: Vec::new(),
        launch_prologue: Vec::new(),
        block_prologue: Vec::new(),
        frame: of.frame.size,
        gpu_frame: gpu_frame(of.body),
        recursive: of.recursive,
        address_taken: of.address_taken,
    })
}

impl<'m> FunctionBuilder<'_, 'm> {
    /// Adds the fixed registers and those of the PTX.
    fn declare_registers(&mut self) {
        for fixed in Fixed::ALL {
            self.registers.push(Register {
                slot: fixed.reg().slot,
                source: Source::Fixed(fixed),
                uniformity: Uniformity::Varying,
            });
        }
        for (n, r) in self.body.regs.iter().enumerate() {
            self.declared.push(self.registers.len() as u32);
            for c in 0..r.vector.max(1) {
                self.registers.push(Register {
                    slot: Slot::of(r.ty),
                    source: Source::Declared(n as u32, c as u8),
                    uniformity: Uniformity::Varying,
                });
            }
        }
    }

    /// Which instructions of the body begin a block. Adds the block in front of them if the function has parameters in
    /// registers, and numbers the others.
    fn block_starts(&mut self) -> Vec<bool> {
        let instrs = &self.body.instrs;
        let mut starts = vec![false; instrs.len() + 1];
        starts[0] = true;
        starts[instrs.len()] = true;
        for l in &self.body.labels {
            if let Some(start) = starts.get_mut(l.at as usize) {
                *start = true;
            }
        }
        for (k, i) in instrs.iter().enumerate() {
            starts[k + 1] |= matches!(
                i.op,
                Op::Bra | Op::BrxIdx | Op::Ret | Op::Exit | Op::Trap | Op::Brkpt
            );
        }
        if let Ok(list) = self.register_parameters(true)
            && !list.is_empty()
        {
            self.blocks.push(Block::default());
            self.synthetic("ld.param", list);
        }
        let mut next = self.blocks.len() as u32;
        for &start in &starts {
            next += u32::from(start);
            self.block_of.push(BlockId(next - 1));
        }
        starts
    }

    /// The layout of the function's frame.
    pub fn frame(&self) -> &Frame {
        &self.layout.functions[self.n].frame
    }

    /// The function's index in the module.
    pub fn id(&self) -> u32 {
        self.layout.functions[self.n].id.0
    }

    /// An error at the current instruction.
    pub fn error(&self, problem: &str) -> CompileError {
        let i = self.body.instrs.get(self.at);
        let op = i.map_or("", |i| i.op.name());
        CompileError {
            line: i.map_or(self.function.pos.line, |i| i.pos.line),
            message: format!("`{op}` in `{}`: {problem}", self.function.name),
        }
    }

    /// The error for an instruction that the engine does not implement.
    pub fn unimplemented(&self, i: &Instr) -> CompileError {
        CompileError {
            line: i.pos.line,
            message: format!("the CPU device has no implementation of `{}`", i.mnemonic()),
        }
    }

    /// A new register that the instructions of the current instruction of the PTX write.
    pub fn temporary(&mut self, slot: Slot) -> Reg {
        self.add_register(slot, Source::Temporary, Uniformity::Varying)
    }

    /// The register that holds `element` in every lane.
    pub fn constant(&mut self, slot: Slot, element: u128) -> Reg {
        self.interned(slot, Source::Constant(element), Uniformity::Launch)
    }

    /// The register of this source, which no instruction writes.
    pub fn interned(&mut self, slot: Slot, source: Source, uniformity: Uniformity) -> Reg {
        if let Some(&reg) = self.interned.get(&(slot, source)) {
            return reg;
        }
        let reg = self.add_register(slot, source, uniformity);
        self.interned.insert((slot, source), reg);
        reg
    }

    fn add_register(&mut self, slot: Slot, source: Source, uniformity: Uniformity) -> Reg {
        let at = self.registers.len() as u32;
        self.registers.push(Register {
            slot,
            source,
            uniformity,
        });
        Reg { at, slot }
    }

    /// The first register of a register of the PTX.
    pub fn declared(&self, n: u32) -> Option<Reg> {
        let at = *self.declared.get(n as usize)?;
        let slot = self.registers[at as usize].slot;
        Some(Reg { at, slot })
    }

    /// Appends actions, all under the guard of `i`.
    pub fn emit(&mut self, list: Vec<Action>, i: &Instr) -> Result<(), CompileError> {
        let guard = match i.guard {
            Some((r, negated)) => Some(Guard {
                predicate: self.reg(r)?,
                negated,
            }),
            None => None,
        };
        self.append(list, guard);
        Ok(())
    }

    fn append(&mut self, list: Vec<Action>, guard: Option<Guard>) {
        let origin = self.origins.len() as u32 - 1;
        if let Some(block) = self.blocks.last_mut() {
            let instructions = list.into_iter().map(|action| Instruction {
                guard,
                action,
                origin,
            });
            block.instructions.extend(instructions);
        }
    }

    /// Appends actions that stand for no instruction of the PTX.
    fn synthetic(&mut self, opcode: &str, list: Vec<Action>) {
        let nearest = self.body.instrs.get(self.at).or(self.body.instrs.last());
        self.origins.push(Origin {
            line: nearest.map_or(self.function.pos.line, |i| i.pos.line),
            loc: nearest.and_then(|i| i.loc),
            variable: None,
            opcode: opcode.into(),
        });
        self.append(list, None);
    }

    /// Appends one action.
    fn emit_one(&mut self, action: Action, i: &Instr) -> Result<(), CompileError> {
        self.emit(vec![action], i)
    }

    /// Copies of parameters (`enter`) or results in registers (PTX ISA 1.x) from or to the frame.
    fn register_parameters(&mut self, enter: bool) -> Result<Vec<Action>, CompileError> {
        let mut list = Vec::new();
        for (n, v) in register_parameters(self.function).into_iter().enumerate() {
            if enter != matches!(v, VarId::Param(_)) {
                continue;
            }
            let Some(reg) = self.declared(n as u32) else {
                continue;
            };
            let size = self.body.regs[n].ty.bytes().max(1);
            let at = self.frame_offset(v)?;
            list.push(self.frame_access(at, size, reg, !enter)?);
        }
        Ok(list)
    }

    fn instruction(&mut self, i: &Instr) -> Result<(), CompileError> {
        if i.support() == Support::Refused {
            return Err(self.unimplemented(i));
        }
        match i.op.class() {
            OpClass::Arithmetic | OpClass::Video => self.lane_function(i),
            OpClass::Address => match i.op {
                Op::Isspacep => self.isspacep(i),
                _ => self.lane_function(i),
            },
            OpClass::ControlFlow => self.control_flow(i),
            OpClass::Barrier => match i.op {
                Op::Bar | Op::Barrier => self.barrier(i),
                Op::BarrierCluster if i.mods.has(Word::Arrive) => {
                    self.emit_one(Action::ClusterArrive, i)
                }
                Op::BarrierCluster => self.emit_one(Action::ClusterWait, i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::WarpCollective => self.warp_collective(i),
            OpClass::Memory => match i.op {
                Op::Ld | Op::Ldu => self.load(i),
                Op::St => self.store(i),
                Op::Atom | Op::Red => self.atomic(i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::Fence => self.emit_one(Action::Fence, i),
            OpClass::Mbarrier => self.mbarrier(i),
            OpClass::AsyncCopy => match i.op {
                Op::CpAsync if i.mods.has(Word::Mbarrier) => self.mbarrier(i),
                Op::CpAsync => self.cp_async(i),
                Op::CpAsyncBulk
                | Op::CpReduceAsync
                | Op::MultimemCpAsyncBulk
                | Op::MultimemCpReduceAsyncBulk => self.bulk_copy(i),
                _ => Err(self.unimplemented(i)),
            },
            OpClass::Texture => match i.op {
                Op::Istypep => self.lane_function(i),
                _ => self.texture(i),
            },
            OpClass::Stack => self.stack(i),
            OpClass::Monitor => match i.op {
                Op::Nanosleep => {
                    let mut list = Vec::new();
                    let duration = self.operand(i, 0)?;
                    let duration = self.source(duration, Slot::R32, Type::U32, &mut list)?;
                    list.push(Action::Nanosleep { duration });
                    self.emit(list, i)
                }
                _ => Ok(()),
            },
            OpClass::Hint => match i.op {
                Op::Createpolicy => self.lane_function(i),
                _ => Ok(()),
            },
            OpClass::Cluster if i.op == Op::Tensormap => self.tensor_map(i),
            OpClass::Cluster if i.op == Op::Multimem => self.multimem(i),
            OpClass::Matrix | OpClass::Cluster => match warp::select(i) {
                Some(s) => self.warp_function(i, &s),
                None => Err(self.unimplemented(i)),
            },
        }
    }

    /// An instruction whose result depends on the registers of its lane alone.
    pub fn lane_function(&mut self, i: &Instr) -> Result<(), CompileError> {
        match lane::select(i, &self.body.regs) {
            Some(s) => {
                let list = self.arithmetic(i, &s)?;
                self.emit(list, i)
            }
            None => Err(self.unimplemented(i)),
        }
    }

    fn control_flow(&mut self, i: &Instr) -> Result<(), CompileError> {
        match i.op {
            Op::Bra => {
                let Some(Operand::Label(label)) = i.operands.first() else {
                    return Err(self.error("the branch target is not a label"));
                };
                let target = self.block_of_label(*label)?;
                let spins = false;
                self.emit_one(Action::Branch { target, spins }, i)
            }
            Op::BrxIdx => self.brx(i),
            Op::Call => self.call(i),
            Op::Ret => {
                let mut list = self.register_parameters(false)?;
                list.push(Action::Return);
                self.emit(list, i)
            }
            Op::Exit => self.emit_one(Action::Exit, i),
            Op::Trap | Op::Brkpt => {
                let breakpoint = i.op == Op::Brkpt;
                self.emit_one(Action::Trap { breakpoint }, i)
            }
            _ => Err(self.unimplemented(i)),
        }
    }

    fn block_of_label(&self, label: LabelId) -> Result<BlockId, CompileError> {
        let label = self.body.labels.get(label.0 as usize);
        let block = label.and_then(|l| self.block_of.get(l.at as usize));
        let outside = || self.error("the branch target is not a label of this function");
        block.copied().ok_or_else(outside)
    }

    fn stack(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        match i.op {
            Op::Alloca => {
                let ty = i.types.first().copied().unwrap_or(Type::U64);
                let size = self.source(self.operand(i, 1)?, Slot::R64, ty, &mut list)?;
                let align = match i.operands.get(2) {
                    Some(Operand::Int(align)) if *align > 0 => *align,
                    _ => 16,
                };
                self.with_result(i, Slot::R64, list, |dst| Action::Alloca {
                    dst,
                    size,
                    align,
                })
            }
            Op::Stacksave => self.with_result(i, Slot::R64, list, |dst| Action::StackSave { dst }),
            _ => {
                let saved = self.operand(i, 0)?;
                let saved = self.source(saved, Slot::R64, Type::U64, &mut list)?;
                list.push(Action::StackRestore { saved });
                self.emit(list, i)
            }
        }
    }

    /// Appends `list` and then an action whose only destination is operand 0 of `i`, of shape `slot`.
    pub fn with_result(
        &mut self,
        i: &Instr,
        slot: Slot,
        mut list: Vec<Action>,
        action: impl FnOnce(Reg) -> Action,
    ) -> Result<(), CompileError> {
        let (dst, copy) = self.destination(self.operand(i, 0)?, slot, false)?;
        list.push(action(dst));
        list.extend(copy);
        self.emit(list, i)
    }

    fn brx(&mut self, i: &Instr) -> Result<(), CompileError> {
        let labels = match i.operands.get(1) {
            Some(Operand::Vector(v) | Operand::Args(v)) => v
                .iter()
                .map(|o| match o {
                    Operand::Label(l) => Some(*l),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>(),
            Some(Operand::Targets(n)) => {
                let lists = &self.body.branch_targets;
                lists.get(*n as usize).map(|t| t.1.clone())
            }
            _ => None,
        };
        let Some(labels) = labels else {
            return Err(self.error("the list of branch targets is missing"));
        };
        let targets = labels.iter().map(|l| self.block_of_label(*l));
        let targets = targets.collect::<Result<Box<[_]>, _>>()?;
        let mut list = Vec::new();
        let index = self.source(self.operand(i, 0)?, Slot::R32, Type::U32, &mut list)?;
        list.push(Action::BranchIndexed { index, targets });
        self.emit(list, i)
    }

    fn isspacep(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        let space = i.mods.space.unwrap_or(Space::Global);
        let address = self.source(self.operand(i, 1)?, Slot::R64, Type::U64, &mut list)?;
        self.with_result(i, Slot::Pred, list, |dst| Action::IsSpace {
            dst,
            address,
            space,
        })
    }
}

//! Kernels, functions, blocks and instructions.

use std::sync::Arc;

use cupyrite_ptx::ir::{FuncId, SourceLoc};

use super::action::Action;
use super::register::{Reg, Register};

/// A kernel and every function that it can reach.
#[derive(Debug)]
pub struct Kernel {
    /// The kernel first.
    pub functions: Vec<Function>,
    /// Bytes of static shared memory, with those at its start that are reserved.
    pub static_shared: u32,
    /// Offset of dynamic shared memory.
    pub dynamic_shared_at: u32,
    /// Bytes at the start of shared memory that are reserved for system software.
    pub reserved_shared: u32,
    /// Bytes of local memory that a thread needs without recursion.
    pub static_local: u32,
    /// Bytes of stack that the calls of a thread need on a GPU without recursion, at least.
    pub gpu_stack: u32,
    /// Whether a thread uses local memory.
    pub uses_local: bool,
    /// Whether an instruction names a texture, sampler or surface reference.
    pub uses_references: bool,
}

impl Kernel {
    /// The largest frame of a function that can be entered again before it returns; zero without recursion.
    pub fn largest_recursive_frame(&self) -> u32 {
        let recursive = self.functions.iter().filter(|f| f.recursive);
        recursive.map(|f| f.frame).max().unwrap_or(0)
    }
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its index in the module.
    pub id: FuncId,
    /// Name in the PTX.
    pub name: String,
    /// Line of its declaration in the PTX.
    pub line: u32,
    /// Virtual registers; the first are [`Fixed::ALL`](super::Fixed::ALL).
    pub registers: Vec<Register>,
    /// Names of the registers that the PTX declares.
    pub names: Vec<String>,
    /// Basic blocks in layout order: a block that does not end in an unconditional transfer of control falls through to the
    /// next one. The first is the entry; the last does not fall through.
    pub blocks: Vec<Block>,
    /// For each block, where the lanes that leave it in different ways come together; `None` if control leaves it in one way,
    /// or if they meet at the end of the function. Empty before the pass that finds them.
    pub reconvergence: Vec<Option<BlockId>>,
    /// The instructions of the PTX that [`Instruction::origin`] refers to.
    pub origins: Vec<Origin>,
    /// Loads that run once per launch.
    pub hoisted_loads: Vec<HoistedLoad>,
    /// Instructions that run once per launch, in order, after the loads.
    pub launch_prologue: Vec<Instruction>,
    /// Instructions that run once per block, in order.
    pub block_prologue: Vec<Instruction>,
    /// Size of its frame in local memory in bytes, a multiple of the largest alignment of any frame of the kernel.
    pub frame: u32,
    /// Bytes that its frame has on a GPU at least.
    pub gpu_frame: u32,
    /// Whether it can be entered again before it returns.
    pub recursive: bool,
    /// Whether an indirect call may reach it.
    pub address_taken: bool,
}

impl Function {
    /// All instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.blocks.iter().flat_map(|b| &b.instructions)
    }

    /// The blocks that control can reach from the end of a block.
    pub fn successors(&self, block: BlockId) -> Vec<BlockId> {
        let next = BlockId(block.0 + 1);
        let mut out = Vec::new();
        let last = self.blocks[block.0 as usize].instructions.last();
        if let Some(i) = last {
            match &i.action {
                Action::Branch { target, .. } => out.push(*target),
                Action::BranchIndexed { targets, .. } => out.extend_from_slice(targets),
                _ => {}
            }
        }
        let ends = last.is_some_and(|i| i.guard.is_none() && i.action.ends_block());
        if !ends && (next.0 as usize) < self.blocks.len() && !out.contains(&next) {
            out.push(next);
        }
        out
    }
}

/// Index into [`Function::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// A basic block, possibly empty. Control enters it at the first instruction; only the last one can branch, return, exit or
/// trap.
#[derive(Debug, Default)]
pub struct Block {
    /// Instructions in order.
    pub instructions: Vec<Instruction>,
}

/// The guard predicate of an instruction, `@p` or `@!p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub predicate: Reg,
    /// Whether it is negated: the instruction executes in the lanes where the predicate is false.
    pub negated: bool,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Guard: selects which active lanes execute the instruction. Without one, all of them do.
    pub guard: Option<Guard>,
    /// What it does.
    pub action: Action,
    /// Index into [`Function::origins`].
    pub origin: u32,
}

/// Position of an instruction in the PTX and in the source.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Line of the PTX.
    pub line: u32,
    /// `.loc`.
    pub loc: Option<SourceLoc>,
    /// The variable that it accesses, if the address shows it: an index into the module's placed variables.
    pub variable: Option<u32>,
    /// Spelling of the opcode, with its modifiers.
    pub opcode: Arc<str>,
}

/// The address of a load from the parameter bank or from constant memory, if it is known before the launch.
#[derive(Clone, Debug)]
pub struct ConstantLoad {
    /// Offset in the parameter bank, or an absolute address.
    pub from: u64,
    /// Whether `from` is an absolute address.
    pub absolute: bool,
    /// Why the load cannot run before the launch.
    pub refused: Option<String>,
}

/// An element that is loaded before the threads run, from the parameter bank or from constant memory.
#[derive(Clone, Copy, Debug)]
pub struct HoistedLoad {
    /// Offset in the parameter bank, or an absolute address.
    pub from: u64,
    /// Whether `from` is an absolute address.
    pub absolute: bool,
    /// Bytes.
    pub size: u32,
    /// Whether to sign-extend.
    pub signed: bool,
    /// Whether the register has 16 bits.
    pub narrow: bool,
    /// Destination.
    pub to: Reg,
}

//! The data that compiler stages exchange: a module with its variables placed, and one function being compiled.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_ptx::ir::{Body, FuncId, Function, Instr, Module, RegId, Space, VarId, Variable};

use super::call_graph::ModuleCalls;
use super::uniform::UniformityAnalysis;
use crate::program::{PaddedVariable, PlacedVariable, SaveSet, SpecialSlot};
use crate::semantics::lane::{Selected, Slot};

/// Why a kernel cannot be compiled.
#[derive(Clone, Debug)]
pub struct CompileError {
    /// Line of the PTX; zero if unknown.
    pub line: u32,
    /// The reason.
    pub message: String,
}

/// A module whose module-level variables have been placed in memory.
pub struct PlacedModule {
    /// The module.
    pub module: Module,
    /// Address of each module-level variable; `None` for variables in shared memory.
    pub globals: Vec<Option<u64>>,
    /// Address of each `.global` and `.const` variable declared in a body, by function and variable.
    pub body_globals: HashMap<(u32, u32), u64>,
    /// Constant memory: base and size of each range.
    pub const_ranges: Vec<(u64, u64)>,
    /// The variables with padding.
    pub padded: Vec<PaddedVariable>,
    /// The variables in device memory, by address.
    pub variables: Arc<Vec<PlacedVariable>>,
    /// Which functions call each other.
    pub calls: ModuleCalls,
    /// The `.file` table.
    pub files: Arc<Vec<(u32, String)>>,
}

impl PlacedModule {
    /// The index in [`PlacedModule::variables`] of a variable of a function.
    pub fn variable_index(&self, function: FuncId, variable: VarId) -> Option<u32> {
        let base = match variable {
            VarId::Module(n) => self.globals.get(n as usize).copied().flatten()?,
            VarId::Local(n) => *self.body_globals.get(&(function.0, n))?,
            _ => return None,
        };
        let found = self.variables.binary_search_by_key(&base, |v| v.base);
        found.ok().and_then(|n| u32::try_from(n).ok())
    }
}

/// Location of a register in the register file.
#[derive(Clone, Copy, Debug)]
pub struct RegisterLocation {
    /// Byte offset of the slot; of the first one for a vector register.
    pub at: u32,
    /// Shape.
    pub slot: Slot,
}

/// Layout of a function's stack frame, as byte offsets.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Offsets of [`Function::returns`].
    pub returns: Vec<u32>,
    /// Offsets of [`Function::params`]; empty for a kernel, whose parameters lie in the parameter bank.
    pub params: Vec<u32>,
    /// Offsets of the variables of [`Body::vars`] in local and parameter space; zero for the others.
    pub vars: Vec<u32>,
    /// Size, a multiple of the largest alignment of any frame of the kernel.
    pub size: u32,
}

/// A function between analysis and lowering.
pub struct FunctionUnit<'m> {
    /// Index in the module.
    pub id: FuncId,
    /// The function.
    pub function: &'m Function,
    /// Its body.
    pub body: &'m Body,
    /// Instructions, simplified.
    pub instrs: Vec<Instr>,
    /// The lane function of each arithmetic instruction.
    pub selected: Vec<Option<Selected>>,
    /// Which registers are uniform, and which instructions are hoisted.
    pub uniformity: UniformityAnalysis,
    /// For each memory access whose address is a sum: its varying and its uniform register.
    pub split_addresses: Vec<Option<(RegId, RegId)>>,
    /// For each instruction, the variable that it accesses, as far as known: an index into [`PlacedModule::variables`].
    pub accessed: Vec<Option<u32>>,
    /// Register locations; `None` for unused registers.
    pub regs: Vec<Option<RegisterLocation>>,
    /// Frame layout.
    pub frame: Frame,
    /// Whether the function can be entered again before it returns.
    pub recursive: bool,
    /// Locations of its varying registers, which a recursive call saves.
    pub save: SaveSet,
}

/// Layout that all functions of a kernel share.
pub struct KernelLayout {
    /// The unit of each function that the kernel reaches, by its index in the module.
    pub units: HashMap<u32, usize>,
    /// Offset of each shared variable, by function (`None` for module level) and index.
    pub shared: HashMap<(Option<u32>, u32), u32>,
    /// Offsets of the kernel's parameters.
    pub params: Vec<u32>,
    /// Location of each block-wide special register.
    pub block_specials: Vec<SpecialSlot>,
}

/// Results and parameters that a function has in registers (PTX ISA 1.x), in register order.
pub fn register_parameters(f: &Function) -> Vec<VarId> {
    let of = |list: &[Variable], make: &dyn Fn(u32) -> VarId| -> Vec<VarId> {
        list.iter()
            .enumerate()
            .filter(|(_, v)| v.space == Space::Reg)
            .map(|(n, _)| make(n as u32))
            .collect()
    };
    let mut all = of(&f.returns, &VarId::Return);
    all.extend(of(&f.params, &VarId::Param));
    all
}

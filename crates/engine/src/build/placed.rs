//! What is known before a function is translated: a module with its variables placed, and the layout of a kernel.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_ptx::ir::{Body, FuncId, Function, Module, Space, VarId, Variable};

use super::call_graph::ModuleCalls;
use crate::load::KernelAddresses;

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
    /// Addresses of the kernels that code or variables name.
    pub kernel_addresses: Arc<KernelAddresses>,
    /// Which functions call each other.
    pub calls: ModuleCalls,
    /// The `.file` table.
    pub files: Arc<Vec<(u32, String)>>,
}

impl PlacedModule {
    /// Whether the module's architecture has clusters.
    pub fn has_clusters(&self) -> bool {
        self.module.arch() >= 90
    }

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

/// A function of a kernel, with the layout of its frame.
pub struct FunctionLayout<'m> {
    /// Index in the module.
    pub id: FuncId,
    /// The function.
    pub function: &'m Function,
    /// Its body.
    pub body: &'m Body,
    /// Frame layout.
    pub frame: Frame,
    /// Whether it can be entered again before it returns.
    pub recursive: bool,
    /// Whether an indirect call may reach it.
    pub address_taken: bool,
}

/// Layout that all functions of a kernel share.
pub struct KernelLayout<'m> {
    /// The functions, the kernel first.
    pub functions: Vec<FunctionLayout<'m>>,
    /// The index of each function, by its index in the module.
    pub indices: HashMap<u32, usize>,
    /// Offset of each shared variable, by function (`None` for module level) and index.
    pub shared: HashMap<(Option<u32>, u32), u32>,
    /// Offsets of the kernel's parameters.
    pub params: Vec<u32>,
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

/// A variable of a module in device memory.
#[derive(Clone, Debug)]
pub struct PlacedVariable {
    /// Name in the PTX.
    pub name: String,
    /// First address.
    pub base: u64,
}

/// A variable whose size is not a multiple of its alignment. A load that begins in it may end in the padding, because
/// compilers widen loads up to the alignment; the value that it returns there is undefined. All other accesses to the
/// padding are faults.
#[derive(Clone, Copy, Debug)]
pub struct PaddedVariable {
    /// First address.
    pub base: u64,
    /// Size in bytes, without the padding.
    pub size: u64,
    /// Bytes of padding.
    pub padding: u64,
}

impl PaddedVariable {
    /// Size of the largest load in bytes. More padding cannot be reached.
    pub const LARGEST: u32 = 32;

    /// Bytes of padding of a variable.
    pub fn padding(size: u64, align: u32) -> u64 {
        let unit = u64::from(align.clamp(1, Self::LARGEST));
        size.next_multiple_of(unit) - size
    }

    /// Whether a load of `bytes` bytes begins in the variable and ends in it or in its padding.
    pub fn allows(&self, address: u64, bytes: u32) -> bool {
        let offset = address.wrapping_sub(self.base);
        offset < self.size && offset + u64::from(bytes) <= self.size + self.padding
    }
}

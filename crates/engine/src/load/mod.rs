//! Loading of modules: from PTX text to variables in memory and kernels that can be launched.

mod device_runtime;
mod error;
mod kernel;
mod kernel_addresses;
mod parse;
mod references;
mod unit;
mod variables;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use cupyrite_ptx::ir::{FuncId, Linkage, Module, Space, VarId};

use error::unresolved;
pub use error::{LoadError, LoadErrorKind};
use kernel::kernel;
pub use kernel::{ClusterDirectives, Kernel, ParamInfo};
pub use kernel_addresses::KernelAddresses;
use parse::{check_functions, single};
pub use parse::{check_unit, link_units, undefined_functions};
pub use references::is_reference;
use references::{handle, references};
pub use unit::Unit;
use variables::{Placer, VariableMemory};

use super::address_windows::windows;
use super::build::layout::kernel_params;
use super::build::{ModuleCalls, PlacedModule};
use super::limits::MAX_PARAMS;
use crate::memory::AddressSpace;
use crate::texture::Reference;

/// A module-level variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Address.
    pub addr: u64,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is `__managed__`.
    pub managed: bool,
}

/// A loaded module.
pub struct Image {
    kernels: Vec<Arc<Kernel>>,
    by_name: HashMap<String, usize>,
    /// Those that device code can launch, by address.
    by_address: HashMap<u64, usize>,
    globals: Vec<(String, Global)>,
    /// The module's managed variables: index and address.
    managed: Vec<(usize, u64)>,
    references: Vec<Reference>,
    memory: Arc<VariableMemory>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("kernels", &self.by_name)
            .field("globals", &self.globals)
            .finish_non_exhaustive()
    }
}

impl Image {
    /// Loads a module: parses it, places and initializes its variables, compiles its kernels.
    ///
    /// A kernel with an instruction that the engine does not implement is loaded, but cannot be launched.
    ///
    /// # Errors
    /// See [`LoadErrorKind`].
    pub fn load(ptx: &str, space: &Arc<AddressSpace>) -> Result<Image, LoadError> {
        Self::place(single(&Unit::new("", ptx))?, space, None)
    }

    /// Links modules and loads the result: see [`cupyrite_ptx::link`].
    ///
    /// # Errors
    /// See [`LoadErrorKind`]; the message has a line for each undefined or duplicate symbol.
    pub fn load_units(units: &[Unit], space: &Arc<AddressSpace>) -> Result<Image, LoadError> {
        Self::place(linked(units)?, space, None)
    }

    /// Loads the modules of `first` again, for another context: with other variables, except that its managed ones are those of
    /// `first`, whose units these are.
    ///
    /// # Errors
    /// See [`LoadErrorKind`].
    pub fn load_again(units: &[Unit], first: &Image) -> Result<Image, LoadError> {
        Self::place(linked(units)?, first.space(), Some(first))
    }

    fn place(
        owned: Module,
        space: &Arc<AddressSpace>,
        first: Option<&Image>,
    ) -> Result<Image, LoadError> {
        let module = &owned;
        let version = module
            .version
            .0
            .saturating_mul(10)
            .saturating_add(module.version.1);
        if module.address_size != 64 {
            return Err(LoadError {
                kind: LoadErrorKind::UnsupportedPtxVersion,
                line: 0,
                column: 0,
                message: format!(
                    "`.address_size {}` is not supported; the CPU device has 64-bit addresses",
                    module.address_size
                ),
            });
        }
        check_functions(module)?;
        let calls = ModuleCalls::new(module);
        let kernel_addresses = Arc::new(KernelAddresses::new(&calls.kernels)?);
        let memory = VariableMemory {
            space: Arc::clone(space),
            bases: Vec::new(),
            shared: first.map(|first| Arc::clone(&first.memory)),
            kernels: Arc::clone(&kernel_addresses),
        };
        // The pin keeps other threads from moving memory while this one writes to it.
        let _pin = space.pin();
        let mut placer = Placer {
            module,
            space,
            memory,
            const_ranges: Vec::new(),
            padded: Vec::new(),
            variables: Vec::new(),
        };
        let mut addresses = vec![None; module.globals.len()];
        let mut globals = Vec::new();
        let mut managed = Vec::new();
        let mut used = None;
        for (n, v) in module.globals.iter().enumerate() {
            if !matches!(v.space, Space::Global | Space::Const | Space::Tex) {
                continue;
            }
            if v.linkage == Linkage::Extern {
                // An external variable that no instruction uses need not be defined.
                if used
                    .get_or_insert_with(|| named_variables(module))
                    .contains(&(n as u32))
                {
                    return Err(unresolved(&v.name, v.pos.line));
                }
                continue;
            }
            let base = match first.and_then(|first| first.managed_variable(n)) {
                Some(base) => {
                    placer.record(v, base);
                    base
                }
                None => placer.allocate(v)?,
            };
            addresses[n] = Some(handle(v, base));
            if v.managed {
                managed.push((n, base));
            }
            if is_reference(v) {
                continue;
            }
            globals.push((
                v.name.clone(),
                Global {
                    addr: base,
                    size: v.size(),
                    managed: v.managed,
                },
            ));
        }
        let mut body_globals = HashMap::new();
        for (f, function) in module.functions.iter().enumerate() {
            let Some(body) = &function.body else { continue };
            for (n, v) in body.vars.iter().enumerate() {
                if matches!(v.space, Space::Global | Space::Const) {
                    body_globals.insert((f as u32, n as u32), placer.allocate(v)?);
                }
            }
        }
        let module_address = |v: VarId| match v {
            VarId::Module(n) => addresses.get(n as usize).copied().flatten().or_else(|| {
                // The address of a shared variable is known only as the start of the window.
                let shared = module
                    .globals
                    .get(n as usize)
                    .is_some_and(|g| g.space == Space::Shared);
                shared.then(|| windows().shared)
            }),
            _ => None,
        };
        for (n, v) in module.globals.iter().enumerate() {
            let is_shared = first.is_some_and(|first| first.managed_variable(n).is_some());
            if let Some(base) = addresses[n].filter(|_| !is_shared && !is_reference(v)) {
                placer.initialize(v, base, module_address)?;
            }
        }
        for (&(f, n), &base) in &body_globals {
            if let Some(body) = &module.functions[f as usize].body {
                let here = |v: VarId| match v {
                    VarId::Local(k) => body_globals.get(&(f, k)).copied(),
                    v => module_address(v),
                };
                placer.initialize(&body.vars[n as usize], base, here)?;
            }
        }
        placer.variables.sort_unstable_by_key(|v| v.base);
        let const_bytes = placer.const_ranges.iter().map(|r| r.1).sum::<u64>();
        let files = Arc::new(module.files.clone());
        let Placer {
            memory,
            const_ranges,
            padded,
            variables,
            ..
        } = placer;
        let placed = Arc::new(PlacedModule {
            module: owned,
            globals: addresses,
            body_globals,
            const_ranges,
            padded,
            variables: Arc::new(variables),
            kernel_addresses,
            calls,
            files,
        });
        let references = references(&placed);
        let memory = Arc::new(memory);
        let mut kernels = Vec::new();
        let (mut by_name, mut by_address) = (HashMap::new(), HashMap::new());
        for (n, f) in placed.module.functions.iter().enumerate() {
            if !f.is_entry || f.body.is_none() {
                continue;
            }
            let bytes = kernel_params(f).1;
            if bytes > MAX_PARAMS {
                return Err(LoadError {
                    kind: LoadErrorKind::InvalidPtx,
                    line: f.pos.line,
                    column: f.pos.column,
                    message: format!(
                        "ptx line {}: `{}` has {bytes} bytes of parameters; the limit is {MAX_PARAMS}",
                        f.pos.line, f.name
                    ),
                });
            }
            by_name.insert(f.name.clone(), kernels.len());
            if let Some(address) = memory.kernels.of(n as u32) {
                by_address.insert(address, kernels.len());
            }
            kernels.push(Arc::new(kernel(
                &placed,
                FuncId(n as u32),
                version,
                const_bytes,
                &memory,
            )));
        }
        Ok(Image {
            kernels,
            by_name,
            by_address,
            globals,
            managed,
            references,
            memory,
        })
    }

    /// The address of the managed variable with this index in the module.
    fn managed_variable(&self, index: usize) -> Option<u64> {
        self.managed.iter().find(|v| v.0 == index).map(|v| v.1)
    }

    /// The kernel with this name.
    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.by_name
            .get(name)
            .map(|&n| Arc::clone(&self.kernels[n]))
    }

    /// The kernel with this address in device code.
    pub fn kernel_at(&self, address: u64) -> Option<Arc<Kernel>> {
        let n = self.by_address.get(&address)?;
        Some(Arc::clone(&self.kernels[*n]))
    }

    /// All kernels, in PTX order.
    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }

    /// The module-level variable with this name.
    pub fn global(&self, name: &str) -> Option<Global> {
        self.globals.iter().find(|g| g.0 == name).map(|g| g.1)
    }

    /// The texture, sampler and surface references of the module, in PTX order.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// All module-level variables in device memory, in PTX order.
    pub fn globals(&self) -> &[(String, Global)] {
        &self.globals
    }

    /// Address space of its variables.
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.memory.space
    }
}

/// The module that the units are linked to.
fn linked(units: &[Unit]) -> Result<Module, LoadError> {
    match units {
        [unit] => single(unit),
        _ => link_units(units),
    }
}

/// The variables of the module that its instructions name.
fn named_variables(module: &Module) -> HashSet<u32> {
    let mut named = HashSet::new();
    let bodies = module.functions.iter().filter_map(|f| f.body.as_ref());
    for o in bodies.flat_map(|b| &b.instrs).flat_map(|i| &i.operands) {
        o.walk(&mut |o| {
            if let Some(VarId::Module(n)) = o.variable() {
                named.insert(n);
            }
        });
    }
    named
}

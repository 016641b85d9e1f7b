//! Loaded modules: PTX text to variables in memory and kernels that can be launched.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cupyrite_ptx::ir::{
    FuncId, Function, InitElem, Linkage, Module, Op, Operand, Space, VarId, Variable,
};
use cupyrite_ptx::link;

use crate::code::Unit;
use crate::engine::address_windows::{function_address, windows};
use crate::engine::compile::{DecodeError, Linked, builtin, decode_kernel, kernel_params};
use crate::engine::program::Program;
use crate::memory::{AddressSpace, MemoryError, RegionKind};

/// The newest PTX version that is understood, as `10 * major + minor`.
const NEWEST_PTX: u32 = 99;

/// Most bytes of parameters a kernel may have (PTX ISA, "Kernel Function Parameters").
const MAX_PARAMS: u32 = 32764;

/// Why a module was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// The text is not PTX, or not valid PTX.
    InvalidPtx,
    /// A version or an address size that the device does not support.
    UnsupportedPtxVersion,
    /// A variable or function that is declared but nowhere defined.
    UnresolvedSymbol,
    /// No memory for the variables.
    OutOfMemory,
}

/// Why a module was refused, and where.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// Why.
    pub kind: LoadErrorKind,
    /// Line of the PTX, from one; zero if it is no particular line.
    pub line: u32,
    /// Column, from one.
    pub column: u32,
    /// For a person, with line, column and token where there is one.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Offset in the parameter bank.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A module-level variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Address.
    pub addr: u64,
    /// Size in bytes.
    pub size: u64,
    /// `__managed__`.
    pub managed: bool,
}

/// The variables of a module; freed with the last of its image and kernels.
struct Memory {
    space: Arc<AddressSpace>,
    bases: Vec<u64>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        for &b in &self.bases {
            // It was allocated here, hence it can be freed.
            let _ = self.space.free(b);
        }
    }
}

/// A kernel of a loaded module.
pub struct Kernel {
    /// Name, as in the PTX.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<ParamInfo>,
    /// Size of the parameter bank in bytes.
    pub param_bytes: u32,
    /// Static shared memory in bytes.
    pub static_shared: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// Constant memory of the module in bytes.
    pub const_bytes: u32,
    /// Registers a thread would take on a GPU: an estimate.
    pub num_regs: u32,
    /// Largest block.
    pub max_threads_per_block: u32,
    /// Version of the PTX, `10 * major + minor`.
    pub ptx_version: u32,
    /// Architecture the PTX was made for, as `89`.
    pub ptx_target: u32,
    /// The block size the kernel demands.
    pub req_ntid: Option<[u32; 3]>,
    /// What runs, or why it cannot.
    pub(super) program: Result<Program, DecodeError>,
    memory: Arc<Memory>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

impl Kernel {
    /// The address space of its variables.
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.memory.space
    }

    /// Why the kernel cannot run on this device, if it cannot.
    pub fn unsupported(&self) -> Option<String> {
        self.program
            .as_ref()
            .err()
            .map(|e| format!("PTX line {}: {}", e.line, e.message))
    }
}

/// A loaded module.
pub struct Image {
    kernels: Vec<Arc<Kernel>>,
    by_name: HashMap<String, usize>,
    globals: Vec<(String, Global)>,
    memory: Arc<Memory>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("kernels", &self.by_name)
            .field("globals", &self.globals)
            .finish_non_exhaustive()
    }
}

/// Parses a module; messages name it if it has a name.
fn parse(ptx: &str, name: &str) -> Result<Module, LoadError> {
    cupyrite_ptx::parse(ptx).map_err(|e| LoadError {
        kind: match e.kind {
            cupyrite_ptx::ErrorKind::UnsupportedVersion => LoadErrorKind::UnsupportedPtxVersion,
            _ => LoadErrorKind::InvalidPtx,
        },
        line: e.pos.line,
        column: e.pos.column,
        message: if name.is_empty() {
            e.to_string()
        } else {
            format!("'{name}', {e}")
        },
    })
}

/// Whether a module is valid by itself.
///
/// # Errors
/// As [`Image::load`], but nothing that is declared has to be defined.
pub fn check_unit(unit: &Unit) -> Result<(), LoadError> {
    parse(&unit.text, &unit.name).map(|_| ())
}

/// Parses modules and makes them one.
///
/// # Errors
/// As [`Image::load_units`].
pub fn link_units(units: &[Unit]) -> Result<Module, LoadError> {
    let inputs = units.iter().enumerate().map(|(n, unit)| {
        let name = match unit.name.as_str() {
            "" => format!("input {}", n + 1),
            name => name.to_owned(),
        };
        let module = parse(&unit.text, &name)?;
        Ok(link::Input { name, module })
    });
    let inputs = inputs.collect::<Result<Vec<_>, LoadError>>()?;
    link::link(&inputs, &|name| builtin(name).is_some()).map_err(|errors| LoadError {
        kind: LoadErrorKind::UnresolvedSymbol,
        line: 0,
        column: 0,
        message: errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
    })
}

/// Replaces every mention of an alias by the function it stands for.
fn resolve_aliases(m: &mut Module) {
    fn replace(o: &mut Operand, aliases: &[(FuncId, FuncId)]) {
        match o {
            Operand::Func(f) => {
                if let Some((_, to)) = aliases.iter().find(|(a, _)| a == f) {
                    *f = *to;
                }
            }
            Operand::Vector(v) | Operand::Args(v) => v.iter_mut().for_each(|o| replace(o, aliases)),
            _ => {}
        }
    }
    if m.aliases.is_empty() {
        return;
    }
    let aliases = std::mem::take(&mut m.aliases);
    for body in m.functions.iter_mut().filter_map(|f| f.body.as_mut()) {
        for o in body.instrs.iter_mut().flat_map(|i| &mut i.operands) {
            replace(o, &aliases);
        }
    }
    for e in m.globals.iter_mut().flat_map(|g| &mut g.init) {
        if let InitElem::Func { func, .. } = e
            && let Some((_, to)) = aliases.iter().find(|(a, _)| a == func)
        {
            *func = *to;
        }
    }
}

fn unresolved(name: &str, line: u32) -> LoadError {
    LoadError {
        kind: LoadErrorKind::UnresolvedSymbol,
        line,
        column: 0,
        message: format!("ptx line {line}: `{name}` is declared but not defined in this module"),
    }
}

/// External functions that somebody uses must be the device's own.
fn check_functions(m: &Module) -> Result<(), LoadError> {
    for f in &m.functions {
        let Some(body) = &f.body else { continue };
        for i in &body.instrs {
            for o in &i.operands {
                let Operand::Func(id) = o else { continue };
                let Some(callee) = m.functions.get(id.0 as usize) else {
                    return Err(unresolved("?", i.pos.line));
                };
                if callee.body.is_none() && (i.op != Op::Call || builtin(&callee.name).is_none()) {
                    return Err(unresolved(&callee.name, i.pos.line));
                }
            }
        }
    }
    Ok(())
}

struct Placer<'a> {
    m: &'a Module,
    space: &'a AddressSpace,
    memory: Memory,
    const_ranges: Vec<(u64, u64)>,
}

impl Placer<'_> {
    fn allocate(&mut self, v: &Variable) -> Result<u64, LoadError> {
        let kind = match v.space {
            Space::Const => RegionKind::Const,
            _ if v.managed => RegionKind::Managed,
            _ => RegionKind::Global,
        };
        let size = v.size().max(1);
        let base = self
            .space
            .alloc(size, u64::from(v.align.max(1)).next_power_of_two(), kind)
            .map_err(|e| {
                let kind = match e {
                    MemoryError::OutOfMemory => LoadErrorKind::OutOfMemory,
                    _ => LoadErrorKind::InvalidPtx,
                };
                LoadError {
                    kind,
                    line: v.pos.line,
                    column: v.pos.column,
                    message: format!(
                        "ptx line {}: no memory for `{}` ({size} bytes): {e}",
                        v.pos.line, v.name
                    ),
                }
            })?;
        self.memory.bases.push(base);
        if kind == RegionKind::Const {
            self.const_ranges.push((base, size));
        }
        // Large allocations are fresh pages, which are zero; touching them all would only cost memory.
        if size <= 1 << 20 {
            // SAFETY: the allocation has this size and nobody else knows it yet.
            unsafe { std::ptr::write_bytes(base as *mut u8, 0, size as usize) };
        }
        Ok(base)
    }

    /// Writes a variable's initial contents.
    fn initialise(
        &self,
        v: &Variable,
        base: u64,
        at: impl Fn(VarId) -> Option<u64>,
    ) -> Result<(), LoadError> {
        let step = u64::from(v.ty.bytes().max(1));
        let size = v.size();
        let mut offset = 0u64;
        for e in &v.init {
            let (value, width) = match e {
                InitElem::Bits(b) => (*b, step),
                // The whole variable was zeroed.
                InitElem::Zeros(n) => {
                    offset = offset.saturating_add(step.saturating_mul(*n));
                    continue;
                }
                InitElem::Var {
                    var, offset, byte, ..
                } => {
                    let Some(a) = at(*var) else {
                        return Err(self.unknown(*var, v.pos.line));
                    };
                    let a = a.wrapping_add(*offset as u64);
                    match byte {
                        Some(n) => (a >> (8 * u32::from(*n & 7)) & 0xff, step),
                        None => (a, step.min(8)),
                    }
                }
                InitElem::Func { func, byte } => {
                    let defined = self
                        .m
                        .functions
                        .get(func.0 as usize)
                        .is_some_and(|f| f.body.is_some());
                    if !defined {
                        let name = self
                            .m
                            .functions
                            .get(func.0 as usize)
                            .map_or("?", |f| f.name.as_str());
                        return Err(unresolved(name, v.pos.line));
                    }
                    let a = function_address(func.0);
                    match byte {
                        Some(n) => (a >> (8 * u32::from(*n & 7)) & 0xff, step),
                        None => (a, step.min(8)),
                    }
                }
            };
            if offset.saturating_add(width) > size {
                break;
            }
            let bytes = value.to_le_bytes();
            // SAFETY: `offset + width` lies in the variable, which was allocated with its size.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    (base + offset) as *mut u8,
                    width.min(8) as usize,
                );
            }
            offset += step;
        }
        Ok(())
    }

    fn unknown(&self, v: VarId, line: u32) -> LoadError {
        let name = match v {
            VarId::Module(n) => self
                .m
                .globals
                .get(n as usize)
                .map_or("?", |g| g.name.as_str()),
            _ => "?",
        };
        unresolved(name, line)
    }
}

/// A plausible number of registers: what a simple allocator would need at the busiest place, bounded as on a GPU.
fn estimate_registers(f: &Function) -> u32 {
    let Some(body) = &f.body else { return 16 };
    let mut last = vec![0usize; body.regs.len()];
    let mut first = vec![usize::MAX; body.regs.len()];
    let mut list = Vec::new();
    for (n, i) in body.instrs.iter().enumerate() {
        list.clear();
        i.operands
            .iter()
            .for_each(|o| crate::engine::compile::uniform::read(o, &mut list));
        for r in &list {
            let r = r.0 as usize;
            first[r] = first[r].min(n);
            last[r] = n;
        }
    }
    let mut change = vec![0i64; body.instrs.len() + 2];
    for (n, r) in body.regs.iter().enumerate() {
        if first[n] != usize::MAX {
            let words = i64::from(r.ty.bits().div_ceil(32)) * i64::from(r.vector.max(1));
            let words = if r.ty == cupyrite_ptx::ir::Type::Pred {
                0
            } else {
                words
            };
            change[first[n]] += words;
            change[last[n] + 1] -= words;
        }
    }
    let mut live = 0;
    let mut most = 0;
    for c in change {
        live += c;
        most = most.max(live);
    }
    (u32::try_from(most).unwrap_or(255) + 8)
        .next_multiple_of(2)
        .clamp(10, 255)
}

impl Image {
    /// Loads a module: parses it, places and initialises its variables, decodes its kernels.
    ///
    /// A kernel with an instruction that the engine does not have is loaded, but cannot be launched.
    ///
    /// # Errors
    /// See [`LoadErrorKind`].
    pub fn load(ptx: &str, space: &Arc<AddressSpace>) -> Result<Image, LoadError> {
        let mut module = parse(ptx, "")?;
        resolve_aliases(&mut module);
        Self::place(&module, space)
    }

    /// Loads modules that belong together as one: see [`cupyrite_ptx::link`].
    ///
    /// # Errors
    /// See [`LoadErrorKind`]; the message has a line for each symbol that is missing or defined twice.
    pub fn load_units(units: &[Unit], space: &Arc<AddressSpace>) -> Result<Image, LoadError> {
        if let [unit] = units {
            return Self::load(&unit.text, space);
        }
        Self::place(&link_units(units)?, space)
    }

    fn place(module: &Module, space: &Arc<AddressSpace>) -> Result<Image, LoadError> {
        let version = module
            .version
            .0
            .saturating_mul(10)
            .saturating_add(module.version.1);
        if version > NEWEST_PTX || module.address_size == 32 {
            return Err(LoadError {
                kind: LoadErrorKind::UnsupportedPtxVersion,
                line: 0,
                column: 0,
                message: format!(
                    "PTX version {}.{} with {}-bit addresses is not supported",
                    module.version.0, module.version.1, module.address_size
                ),
            });
        }
        check_functions(module)?;
        let memory = Memory {
            space: Arc::clone(space),
            bases: Vec::new(),
        };
        // Nobody moves memory while it is written without the table's knowledge.
        let _pin = space.pin();
        let mut placer = Placer {
            m: module,
            space,
            memory,
            const_ranges: Vec::new(),
        };
        let mut addresses = vec![None; module.globals.len()];
        let mut globals = Vec::new();
        for (n, v) in module.globals.iter().enumerate() {
            if !matches!(v.space, Space::Global | Space::Const | Space::Tex) {
                continue;
            }
            if v.linkage == Linkage::Extern {
                // An unresolved variable only matters to those who use it.
                let used = module
                    .functions
                    .iter()
                    .filter_map(|f| f.body.as_ref())
                    .any(|b| {
                        b.instrs.iter().any(|i| {
                            i.operands
                                .iter()
                                .any(|o| mentions(o, VarId::Module(n as u32)))
                        })
                    });
                if used {
                    return Err(unresolved(&v.name, v.pos.line));
                }
                continue;
            }
            let base = placer.allocate(v)?;
            addresses[n] = Some(base);
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
                // A table may hold the address of a shared variable only if it is generic and nothing else is known.
                let shared = module
                    .globals
                    .get(n as usize)
                    .is_some_and(|g| g.space == Space::Shared);
                shared.then(|| windows().shared)
            }),
            _ => None,
        };
        for (n, v) in module.globals.iter().enumerate() {
            if let Some(base) = addresses[n] {
                placer.initialise(v, base, module_address)?;
            }
        }
        for (&(f, n), &base) in &body_globals {
            if let Some(body) = &module.functions[f as usize].body {
                let here = |v: VarId| match v {
                    VarId::Local(k) => body_globals.get(&(f, k)).copied(),
                    v => module_address(v),
                };
                placer.initialise(&body.vars[n as usize], base, here)?;
            }
        }
        let const_bytes = placer.const_ranges.iter().map(|r| r.1).sum::<u64>();
        let linked = Linked {
            module,
            globals: addresses,
            body_globals,
            const_ranges: placer.const_ranges,
            files: Arc::new(module.files.clone()),
        };
        let memory = Arc::new(placer.memory);
        let mut kernels = Vec::new();
        let mut by_name = HashMap::new();
        for (n, f) in module.functions.iter().enumerate() {
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
            kernels.push(Arc::new(kernel(
                &linked,
                FuncId(n as u32),
                f,
                version,
                const_bytes,
                &memory,
            )));
        }
        Ok(Image {
            kernels,
            by_name,
            globals,
            memory,
        })
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.by_name
            .get(name)
            .map(|&n| Arc::clone(&self.kernels[n]))
    }

    /// All kernels, in the order of the PTX.
    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }

    /// The module-level variable of this name.
    pub fn global(&self, name: &str) -> Option<Global> {
        self.globals.iter().find(|g| g.0 == name).map(|g| g.1)
    }

    /// All module-level variables in device memory, in the order of the PTX.
    pub fn globals(&self) -> &[(String, Global)] {
        &self.globals
    }

    /// The address space of its variables.
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.memory.space
    }
}

fn mentions(o: &Operand, v: VarId) -> bool {
    match o {
        Operand::Var(x, _) | Operand::Addr(cupyrite_ptx::ir::Base::Var(x), _) => *x == v,
        Operand::Vector(list) | Operand::Args(list) | Operand::TexAddr(list) => {
            list.iter().any(|o| mentions(o, v))
        }
        _ => false,
    }
}

fn kernel(
    linked: &Linked<'_>,
    id: FuncId,
    f: &Function,
    version: u32,
    const_bytes: u64,
    memory: &Arc<Memory>,
) -> Kernel {
    let (offsets, param_bytes) = kernel_params(f);
    let params = f
        .params
        .iter()
        .zip(offsets)
        .map(|(v, offset)| ParamInfo {
            offset,
            size: u32::try_from(v.size()).unwrap_or(u32::MAX),
            align: v.align,
        })
        .collect();
    let program = decode_kernel(linked, id);
    let threads = |d: [u32; 3]| {
        d.iter()
            .fold(1u32, |n, &x| n.saturating_mul(x.max(1)))
            .clamp(1, crate::engine::run::grid::MAX_THREADS)
    };
    let max = f
        .directives
        .req_ntid
        .or(f.directives.max_ntid)
        .map_or(crate::engine::run::grid::MAX_THREADS, threads);
    let target = linked.module.target.first().map_or(0, |t| {
        t.trim_start_matches(|c: char| !c.is_ascii_digit())
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap_or(0)
    });
    Kernel {
        name: f.name.clone(),
        params,
        param_bytes,
        static_shared: program.as_ref().map_or(0, |p| p.static_shared),
        local_bytes: program.as_ref().map_or(0, |p| p.static_local),
        const_bytes: u32::try_from(const_bytes).unwrap_or(u32::MAX),
        num_regs: estimate_registers(f),
        max_threads_per_block: max,
        ptx_version: version,
        ptx_target: target,
        req_ntid: f.directives.req_ntid,
        program,
        memory: Arc::clone(memory),
    }
}

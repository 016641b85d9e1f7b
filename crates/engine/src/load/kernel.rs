//! Kernels of a loaded module.

use std::fmt;
use std::sync::{Arc, OnceLock};

use cupyrite_ptx::ir::{FuncId, Function, Type};

use parking_lot::Mutex;

use super::variables::VariableMemory;
use crate::build::layout::kernel_params;
use crate::build::{CompileError, PlacedModule};
use crate::bytecode::Program;
use crate::compile::{compile_kernel, kir_text};
use crate::dump;
use crate::kir::BuiltinKind;
use crate::limits::MAX_THREADS;
use crate::memory::AddressSpace;

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

/// The cluster directives of a kernel (PTX ISA, "Cluster Dimension Directives").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterDirectives {
    /// Required dimensions in blocks (`.reqnctapercluster`).
    pub required: Option<[u32; 3]>,
    /// The most blocks (`.maxclusterrank`).
    pub max_rank: Option<u32>,
    /// Whether a launch must have clusters (`.explicitcluster`).
    pub explicit: bool,
}

/// A kernel of a loaded module.
pub struct Kernel {
    /// Name in the PTX.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<ParamInfo>,
    /// Size of the parameter bank in bytes.
    pub param_bytes: u32,
    /// Constant memory of the module in bytes.
    pub const_bytes: u32,
    /// Maximum number of threads of a block.
    pub max_threads_per_block: u32,
    /// Version of the PTX, `10 * major + minor`.
    pub ptx_version: u32,
    /// Target architecture of the PTX, such as 89.
    pub ptx_target: u32,
    /// Required block dimensions (`.reqntid`).
    pub req_ntid: Option<[u32; 3]>,
    /// What the kernel says about clusters.
    pub cluster: ClusterDirectives,
    /// The program, or why the kernel cannot run.
    compiled: OnceLock<Result<Program, CompileError>>,
    /// What [`Self::compiled`] is made from; `None` once it is.
    source: Mutex<Option<Arc<PlacedModule>>>,
    id: FuncId,
    /// Estimate of the registers that a thread would need on a GPU.
    num_regs: OnceLock<u32>,
    memory: Arc<VariableMemory>,
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
    /// The program, which the first call compiles; or why the kernel cannot run.
    pub(crate) fn program(&self) -> &Result<Program, CompileError> {
        self.compiled.get_or_init(|| {
            let source = self.source.lock().take();
            // The lock excludes a second call, so that the source is still there.
            let source = source.ok_or_else(|| CompileError {
                line: 0,
                message: "internal error: the kernel has no source".into(),
            })?;
            let function = &source.module.functions[self.id.0 as usize];
            let _ = self.num_regs.set(estimate_registers(function));
            compile_kernel(&source, self.id)
        })
    }

    /// The text of the kernel's KIR after a pass; by default after the last one, with the locations of registers.
    ///
    /// # Errors
    /// Fails if the kernel cannot be compiled, with the reason; if no pass has this name, with the names of the passes; and if
    /// the kernel has been compiled already, by its first launch or query, which drops the source.
    pub fn kir(&self, pass: Option<&str>) -> Result<String, String> {
        let pass = pass.unwrap_or(dump::POINTS[dump::POINTS.len() - 1]);
        if !dump::POINTS.contains(&pass) {
            return Err(format!(
                "no pass '{pass}'; the passes are {}",
                dump::POINTS.join(", ")
            ));
        }
        let source = self.source.lock().clone();
        let source = source.ok_or("the kernel has been compiled already")?;
        kir_text(&source, self.id, pass).map_err(|e| format!("PTX line {}: {}", e.line, e.message))
    }

    /// What the kernel is compiled from.
    #[cfg(test)]
    pub(crate) fn source_for_tests(&self) -> (Arc<PlacedModule>, FuncId) {
        (
            self.source.lock().clone().expect("not compiled yet"),
            self.id,
        )
    }

    /// Static shared memory in bytes.
    pub fn static_shared(&self) -> u32 {
        self.program().as_ref().map_or(0, |p| p.static_shared)
    }

    /// Local memory of a thread in bytes.
    pub fn local_bytes(&self) -> u32 {
        self.program().as_ref().map_or(0, |p| p.static_local)
    }

    /// Estimate of the registers that a thread would need on a GPU.
    pub fn num_regs(&self) -> u32 {
        let _ = self.program();
        self.num_regs.get().copied().unwrap_or(0)
    }

    /// Whether the kernel, or a function that it calls, launches graphs.
    pub fn launches_graphs(&self) -> bool {
        let builtins = self.program().as_ref().map_or(&[][..], |p| &p.builtins);
        builtins.iter().any(|b| b.kind == BuiltinKind::LaunchGraph)
    }

    /// Whether the kernel, or a function that it calls, calls functions of the device runtime, such as those that launch
    /// kernels.
    pub fn uses_device_runtime(&self) -> bool {
        let builtins = self.program().as_ref().map_or(&[][..], |p| &p.builtins);
        let is_runtime = |kind| matches!(kind, BuiltinKind::Runtime(..));
        builtins.iter().any(|b| is_runtime(b.kind))
    }

    /// Whether the kernel, or a function that it calls, launches kernels, copies or fills.
    pub fn launches_kernels(&self) -> bool {
        let builtins = self.program().as_ref().map_or(&[][..], |p| &p.builtins);
        builtins.iter().any(|b| match b.kind {
            BuiltinKind::Runtime(f, _) => f.launches(),
            _ => false,
        })
    }

    /// Address of the kernel in device code; `None` if no code or variable of its module contains it.
    pub fn address(&self) -> Option<u64> {
        self.memory.kernels.of(self.id.0)
    }

    /// Whether the kernel, or a function that it calls, uses texture or surface references.
    pub fn uses_references(&self) -> bool {
        self.program().as_ref().is_ok_and(|p| p.uses_references)
    }

    /// Address space of its variables.
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.memory.space
    }

    /// The line of the PTX, zero if unknown, and the reason why the kernel cannot run on this device; `None` if it can.
    pub fn compile_error(&self) -> Option<(u32, &str)> {
        let error = self.program().as_ref().err()?;
        Some((error.line, &error.message))
    }

    /// Why the kernel cannot run on this device; `None` if it can.
    pub fn unsupported(&self) -> Option<String> {
        self.compile_error()
            .map(|(line, message)| format!("PTX line {line}: {message}"))
    }
}

/// The most registers that a thread may have: the limit of `.maxnreg` or of the compilation, otherwise as many as let the
/// blocks of the launch bounds be resident together. As `ptxas` does, ignores bounds that no multiprocessor meets.
fn register_limit(f: &Function) -> u32 {
    /// Registers of a multiprocessor.
    const FILE: u64 = 65536;
    /// The most threads that are resident on a multiprocessor.
    const RESIDENT: u64 = 2048;
    /// Minimum of the calling convention.
    const LEAST: u32 = 16;
    const MOST: u32 = 255;
    let d = &f.directives;
    if let Some(limit) = d.max_nreg {
        return limit.clamp(LEAST, MOST);
    }
    let Some(threads) = d.req_ntid.or(d.max_ntid).map(threads_of_block) else {
        return MOST;
    };
    if threads > RESIDENT {
        return MOST;
    }
    let blocks = u64::from(d.min_ncta_per_sm.unwrap_or(1));
    let fits = threads.saturating_mul(blocks) <= RESIDENT;
    let threads = threads.next_multiple_of(32) * if fits { blocks } else { 1 };
    // Registers are allocated in units of eight per thread. The parser refuses bounds of zero.
    let limit = FILE / threads.max(1) / 8 * 8;
    limit.clamp(LEAST.into(), MOST.into()) as u32
}

/// The threads of a block of this shape.
fn threads_of_block(shape: [u32; 3]) -> u64 {
    let [x, y, z] = shape.map(u64::from);
    (x * y).saturating_mul(z)
}

/// Estimate of the registers that a thread would need on a GPU: the largest number of live 32-bit words, within the bounds
/// of a GPU and of the kernel.
fn estimate_registers(f: &Function) -> u32 {
    let Some(body) = &f.body else { return 16 };
    let mut last = vec![0usize; body.regs.len()];
    let mut first = vec![usize::MAX; body.regs.len()];
    for (n, i) in body.instrs.iter().enumerate() {
        i.for_each_register(|r| {
            let r = r.0 as usize;
            first[r] = first[r].min(n);
            last[r] = n;
        });
    }
    let mut change = vec![0i64; body.instrs.len() + 2];
    for (n, r) in body.regs.iter().enumerate() {
        if first[n] != usize::MAX {
            let words = i64::from(r.ty.bits().div_ceil(32)) * i64::from(r.vector.max(1));
            let words = if r.ty == Type::Pred { 0 } else { words };
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
        .clamp(10, register_limit(f))
}

/// A kernel of a module. It is compiled when it is first needed; if that fails, it cannot be launched.
pub fn kernel(
    placed: &Arc<PlacedModule>,
    id: FuncId,
    version: u32,
    const_bytes: u64,
    memory: &Arc<VariableMemory>,
) -> Kernel {
    let f = &placed.module.functions[id.0 as usize];
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
    let bounds = f.directives.req_ntid.or(f.directives.max_ntid);
    let max = bounds.map_or(MAX_THREADS, |shape| {
        threads_of_block(shape).min(MAX_THREADS.into()) as u32
    });
    let target = placed.module.target.first().map_or(0, |t| {
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
        const_bytes: u32::try_from(const_bytes).unwrap_or(u32::MAX),
        max_threads_per_block: max,
        ptx_version: version,
        ptx_target: target,
        req_ntid: f.directives.req_ntid,
        cluster: ClusterDirectives {
            required: f.directives.req_ncta_per_cluster,
            max_rank: f.directives.max_cluster_rank,
            explicit: f.directives.explicit_cluster,
        },
        compiled: OnceLock::new(),
        source: Mutex::new(Some(Arc::clone(placed))),
        id,
        num_regs: OnceLock::new(),
        memory: Arc::clone(memory),
    }
}

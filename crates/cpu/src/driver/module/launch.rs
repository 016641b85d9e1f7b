//! A kernel launch: its checks, the copies of its arguments, and the execution of its grid. The entry points are in
//! `launch_kernel`, graph nodes in `graph::node`.

use std::cell::RefCell;
use std::sync::Arc;

use cupyrite_engine::texture::BoundReference;
use cupyrite_engine::{Bounds, DeviceRuntime, FaultKind, GraphLauncher, Kernel, launch_clusters};

use crate::driver::context::activity::RunningKernel;
use crate::driver::context::{Context, green};
use crate::driver::coredump::{self, FailedLaunch};
use crate::driver::device::attributes::{MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK};
use crate::driver::device::peers;
use crate::driver::device_runtime;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{gather, get, get_array};
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::fresh_id;
use crate::driver::entry::logs::{self, Level, because, refuse};
use crate::driver::memory::space::space;
use crate::driver::module::cluster;
use crate::driver::module::function::{self, Function};
use crate::driver::module::occupancy;

/// The dimensions and attributes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) cooperative: bool,
    /// Cluster dimensions in blocks, if the launch names them.
    pub(crate) cluster: Option<[u32; 3]>,
}

/// Copies of a launch's arguments and their addresses, as reported by a kernel node.
pub(crate) struct Arguments {
    bytes: Box<[u8]>,
    /// Addresses within `bytes`, whose allocation does not move.
    pointers: Box<[u64]>,
}

impl Arguments {
    fn new(kernel: &Kernel, bytes: Box<[u8]>) -> Arguments {
        let base = bytes.as_ptr() as u64;
        let pointers = kernel.params.iter();
        Arguments {
            pointers: pointers.map(|p| base + u64::from(p.offset)).collect(),
            bytes,
        }
    }

    /// Address of the array of pointers to the arguments, zero if there are none. Valid as long as `self` lives.
    pub(crate) fn pointers(&self) -> u64 {
        if self.pointers.is_empty() {
            0
        } else {
            self.pointers.as_ptr() as u64
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A launcher of graphs for a kernel.
pub(crate) type Launcher = Arc<dyn GraphLauncher + Send>;

thread_local! {
    /// The launcher of graphs for the kernels that this thread runs.
    static LAUNCHER: RefCell<Option<Launcher>> = const { RefCell::new(None) };
}

/// Runs `f`; kernels that it runs on this thread launch graphs through `launcher`.
pub(crate) fn with_graph_launcher<R>(launcher: Option<Launcher>, f: impl FnOnce() -> R) -> R {
    let Some(launcher) = launcher else {
        return f();
    };
    let former = LAUNCHER.with(|l| l.replace(Some(launcher)));
    let result = f();
    LAUNCHER.with(|l| l.replace(former));
    result
}

/// A validated launch that can run any number of times.
#[derive(Clone)]
pub(crate) struct Launch {
    /// The function or library kernel that the caller named.
    pub(crate) handle: u64,
    pub(crate) function: Arc<Function>,
    pub(crate) config: LaunchConfig,
    /// Cluster dimensions in blocks; `None` without clusters.
    cluster: Option<[u32; 3]>,
    pub(crate) arguments: Arc<Arguments>,
    /// What the module's references are bound to.
    references: Arc<[BoundReference]>,
}

/// What the references of the function's module are bound to, if its kernel uses any.
fn bound_references(function: &Function) -> Res<Arc<[BoundReference]>> {
    if function.kernel.uses_references() {
        function.references.bound()
    } else {
        Ok(Arc::default())
    }
}

impl Launch {
    /// Validates a launch of `handle` in `context` and copies the arguments.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an invalid handle or one of another context, `INVALID_VALUE` for unreadable arguments and
    /// for dimensions that the device or the function does not allow.
    pub(crate) fn prepare(
        handle: u64,
        context: &Arc<Context>,
        config: LaunchConfig,
        given: Given<'_>,
    ) -> Res<Launch> {
        let function = function::find_for(handle, || Ok(context.clone()))?;
        if context.id != function.context.id {
            return Err(Code::INVALID_HANDLE);
        }
        let cluster = check(&function, &config)?;
        let bytes = arguments(&function.kernel, given)?;
        let arguments = Arc::new(Arguments::new(&function.kernel, bytes));
        Ok(Launch {
            handle,
            references: bound_references(&function)?,
            function,
            config,
            cluster,
            arguments,
        })
    }

    /// The same launch with other dimensions, validated again.
    pub(crate) fn with_config(&self, config: LaunchConfig) -> Res<Launch> {
        let cluster = check(&self.function, &config)?;
        Ok(Launch {
            config,
            cluster,
            ..self.clone()
        })
    }

    /// Checks that the launch has clusters if the kernel needs them.
    pub(crate) fn check_explicit_clusters(&self) -> Res {
        cluster::check_explicit(&self.function, self.cluster)
    }

    /// Checks a launch by a kernel.
    ///
    /// # Errors
    /// As for [`Launch::prepare`].
    pub(crate) fn check_of_device(function: &Arc<Function>, config: &LaunchConfig) -> Res {
        let cluster = check(function, config)?;
        cluster::check_explicit(function, cluster)
    }

    /// A launch by a kernel, which [`Launch::check_of_device`] has checked.
    ///
    /// # Errors
    /// As for [`Launch::prepare`], if the settings of the function have changed.
    pub(crate) fn of_device(
        function: Arc<Function>,
        config: LaunchConfig,
        parameters: Box<[u8]>,
    ) -> Res<Launch> {
        Ok(Launch {
            handle: function.handle(),
            references: bound_references(&function)?,
            cluster: cluster::resolve(&function, config.grid, None)?,
            config,
            arguments: Arc::new(Arguments::new(&function.kernel, parameters)),
            function,
        })
    }

    /// Runs the grid on this thread, and what its kernel launches. Fault reports go to standard error.
    pub(crate) fn run(&self) -> Res {
        let share = green::share();
        let launcher = LAUNCHER.with(|l| l.borrow().clone());
        if self.function.kernel.uses_device_runtime() {
            return device_runtime::run(self, share.as_ref(), launcher.as_ref());
        }
        self.run_grid(share.as_deref(), launcher.as_ref(), None)
    }

    /// Runs the grid on this thread, on these multiprocessors.
    pub(crate) fn run_grid(
        &self,
        share: Option<&[u32]>,
        launcher: Option<&Launcher>,
        runtime: Option<&dyn DeviceRuntime>,
    ) -> Res {
        let context = &self.function.context;
        let _pin = space().pin();
        let _running = RunningKernel::on(context.device);
        let config = &self.config;
        let (kernel, params) = (&self.function.kernel, self.arguments.bytes());
        let engine_config = cupyrite_engine::LaunchConfig {
            dynamic_shared: config.dynamic_shared,
            cooperative: config.cooperative,
            cancel: &context.cancel,
            printf: &context.printf,
            local_limit: context.stack_limit(),
            heap_limit: context.heap_limit(),
            grid_id: fresh_id(),
            viewer: peers::viewer(context),
            sms: share,
            graph: launcher.map(|l| &**l as &dyn GraphLauncher),
            runtime,
            references: &self.references,
            ..cupyrite_engine::LaunchConfig::new(config.grid, config.block, params)
        };
        let outcome = match self.cluster {
            Some(cluster) => launch_clusters(kernel, &engine_config, cluster, &Bounds),
            None => cupyrite_engine::launch(kernel, &engine_config),
        };
        outcome.map_err(|fault| {
            let status = code_of(&fault.kind);
            if !fault.report.is_empty() && !context.has_failed() {
                eprintln!("{}", fault.report.trim_end());
                logs::message(Level::Error, &fault.report);
                let failed = FailedLaunch {
                    fault: &fault,
                    status,
                    kernel: &kernel.name,
                    grid: config.grid,
                    block: config.block,
                    cluster: self.cluster,
                    dynamic_shared: config.dynamic_shared,
                    parameters: params,
                };
                coredump::on_exception(context, &failed);
            }
            status
        })
    }
}

/// Checks a launch against the limits of the device and the function, and returns the dimensions of its clusters.
fn check(f: &Function, config: &LaunchConfig) -> Res<Option<[u32; 3]>> {
    let LaunchConfig {
        grid,
        block,
        dynamic_shared,
        cooperative,
        cluster,
    } = *config;
    let name = &f.kernel.name;
    for (what, dims, most) in [("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)] {
        if dims.iter().zip(most).any(|(&d, m)| !(1..=m).contains(&d)) {
            return refuse(Code::INVALID_VALUE, || {
                format!(
                    "launch of '{name}': the {what} is {}; valid sizes are 1 to {}",
                    shape(dims),
                    shape(most)
                )
            });
        }
    }
    let threads = block.iter().map(|&d| u64::from(d)).product::<u64>();
    let most = MAX_THREADS_PER_BLOCK.min(f.kernel.max_threads_per_block);
    if threads > u64::from(most) {
        return refuse(Code::INVALID_VALUE, || {
            let whose = if most < MAX_THREADS_PER_BLOCK {
                "the kernel's launch bounds allow"
            } else {
                "the device allows"
            };
            format!(
                "launch of '{name}': the block is {}, {threads} threads; {whose} at most {most}",
                shape(block)
            )
        });
    }
    if let Some(required) = f.kernel.req_ntid.filter(|r| *r != block) {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "launch of '{name}': the block is {}; the kernel was compiled for blocks of {} (.reqntid)",
                shape(block),
                shape(required)
            )
        });
    }
    let cluster = cluster::resolve(f, grid, cluster)?;
    let most_shared = f.max_dynamic_shared();
    if i64::from(dynamic_shared) > i64::from(most_shared) {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "launch of '{name}': {dynamic_shared} bytes of dynamic shared memory; at most {most_shared} are allowed until \
                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is set higher (the kernel itself takes {} bytes)",
                f.kernel.static_shared()
            )
        });
    }
    let resident = occupancy::blocks_per_sm(f, threads as u32, dynamic_shared.into())?;
    if resident == 0 {
        return refuse(Code::LAUNCH_OUT_OF_RESOURCES, || {
            format!(
                "launch of '{name}': not one block of {threads} threads with {} + {dynamic_shared} bytes of shared \
                 memory fits on a multiprocessor",
                f.kernel.static_shared()
            )
        });
    }
    if cooperative {
        let blocks = grid.iter().map(|&d| u64::from(d)).product::<u64>();
        let most = u64::from(resident) * f.device()?.threads as u64;
        if blocks > most {
            return refuse(Code::COOPERATIVE_LAUNCH_TOO_LARGE, || {
                format!(
                    "cooperative launch of '{name}': {blocks} blocks; at most {most} can be resident together \
                     ({resident} on each of {} multiprocessors)",
                    most / u64::from(resident)
                )
            });
        }
    }
    Ok(cluster)
}

/// `2 x 3 x 4`
pub(crate) fn shape(dims: [u32; 3]) -> String {
    let [x, y, z] = dims;
    format!("{x} x {y} x {z}")
}

/// Reads the arguments through an array of pointers.
fn by_pointers(kernel: &Kernel, pointers: u64) -> Res<Box<[u8]>> {
    let mut bytes = vec![0u8; kernel.param_bytes as usize].into_boxed_slice();
    let count = kernel.params.len();
    let unreadable = |_| {
        because(Code::INVALID_VALUE, || {
            format!(
                "launch of '{}': kernelParams must hold {count} pointers to readable arguments",
                kernel.name
            )
        })
    };
    let addresses = get_array::<u64>(pointers, count).map_err(unreadable)?;
    let parts: Vec<(u64, usize, usize)> = kernel
        .params
        .iter()
        .zip(addresses)
        .map(|(p, address)| (address, p.offset as usize, p.size as usize))
        .collect();
    gather(&parts, &mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Checks the size of a buffer of arguments.
fn check_size(kernel: &Kernel, size: u64) -> Res {
    let needed = u64::from(kernel.param_bytes);
    // The buffer may include the trailing padding of a C structure, but may not be smaller than the parameters.
    if size < needed || size > needed.next_multiple_of(16) + 16 {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "launch of '{}': the argument buffer has {size} bytes; the parameters need {needed}",
                kernel.name
            )
        });
    }
    Ok(())
}

/// Reads the arguments from the buffer that `extra` describes.
fn by_buffer(kernel: &Kernel, extra: u64) -> Res<Box<[u8]>> {
    const END: u64 = 0;
    const BUFFER_POINTER: u64 = 1;
    const BUFFER_SIZE: u64 = 2;
    let (mut buffer, mut size) = (0, None);
    for i in 0.. {
        // Each of the two keys at most once, then the end marker.
        if i > 2 {
            return Err(Code::INVALID_VALUE);
        }
        let at = extra.checked_add(16 * i).ok_or(Code::INVALID_VALUE)?;
        match get::<u64>(at)? {
            END => break,
            BUFFER_POINTER => buffer = get::<u64>(at + 8)?,
            BUFFER_SIZE => size = Some(get::<u64>(get::<u64>(at + 8)?)?),
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    let needed = u64::from(kernel.param_bytes);
    check_size(kernel, size.ok_or(Code::INVALID_VALUE)?)?;
    let mut bytes = vec![0u8; needed as usize].into_boxed_slice();
    gather(&[(buffer, 0, needed as usize)], &mut bytes)?;
    Ok(bytes)
}

/// Where the arguments of a launch are.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    /// In the caller's memory: the addresses of `kernelParams` and `extra`.
    Caller(u64, u64),
    /// In these bytes.
    Bytes(&'a [u8]),
}

fn arguments(kernel: &Kernel, given: Given<'_>) -> Res<Box<[u8]>> {
    let (pointers, extra) = match given {
        Given::Caller(pointers, extra) => (pointers, extra),
        Given::Bytes(bytes) => {
            check_size(kernel, bytes.len() as u64)?;
            return Ok(bytes[..kernel.param_bytes as usize].into());
        }
    };
    match (pointers, extra) {
        (_, _) if pointers != 0 && extra != 0 => refuse(Code::INVALID_VALUE, || {
            "kernelParams and extra are mutually exclusive".into()
        }),
        _ if kernel.params.is_empty() => Ok(Box::default()),
        (0, 0) => refuse(Code::INVALID_VALUE, || {
            let (name, count) = (&kernel.name, kernel.params.len());
            format!("launch of '{name}': missing arguments; the kernel has {count} parameters")
        }),
        (0, extra) => by_buffer(kernel, extra),
        (pointers, _) => by_pointers(kernel, pointers),
    }
}

/// The result code of a fault.
fn code_of(kind: &FaultKind) -> Code {
    match kind {
        FaultKind::IllegalAddress => Code::ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress => Code::MISALIGNED_ADDRESS,
        FaultKind::Assert => Code::ASSERT,
        FaultKind::IllegalInstruction => Code::ILLEGAL_INSTRUCTION,
        FaultKind::InvalidPc => Code::INVALID_PC,
        FaultKind::InvalidAddressSpace => Code::INVALID_ADDRESS_SPACE,
        // As an H100 does for missing blocks of a cluster.
        FaultKind::Trap | FaultKind::ClusterBlockNotPresent => Code::LAUNCH_FAILED,
        // As an H100 does.
        FaultKind::StackOverflow => Code::ILLEGAL_ADDRESS,
        FaultKind::Cancelled => Code::LAUNCH_TIMEOUT,
        FaultKind::LaunchOutOfResources => Code::LAUNCH_OUT_OF_RESOURCES,
    }
}

//! Launches of kernels. The tier is chosen here.

use crate::fault::{Fault, FaultKind};
use crate::limits::MAX_THREADS;
use crate::load::Kernel;
use crate::run::grid::{refuse, run_grid};
use crate::run::{Bounds, LaunchConfig, MemoryModel};
use crate::tier::Interpreter;
#[cfg(target_arch = "x86_64")]
use crate::tier::native;

/// Runs a kernel on the calling thread and on the thread pool, and returns when the grid has completed.
///
/// # Errors
/// The first fault of any thread; [`FaultKind::LaunchOutOfResources`] if the block does not fit;
/// [`FaultKind::IllegalInstruction`] if the kernel contains an instruction that the engine does not implement.
pub fn launch(kernel: &Kernel, config: &LaunchConfig<'_>) -> Result<(), Fault> {
    launch_with(kernel, config, &Bounds)
}

/// [`launch`] under a memory model, which sees every access and can refuse it.
///
/// # Errors
/// As [`launch`]; also the fault of an access that the model has refused.
pub fn launch_with<M: MemoryModel>(
    kernel: &Kernel,
    config: &LaunchConfig<'_>,
    model: &M,
) -> Result<(), Fault> {
    run(kernel, config, None, model)
}

/// [`launch_with`], with the blocks in clusters of these dimensions. The blocks of a cluster are resident together, and can
/// access each other's shared memory.
///
/// # Errors
/// As [`launch_with`]; also [`FaultKind::LaunchOutOfResources`] for clusters of no or more than 16 blocks, or into which
/// the grid cannot be divided (CUDA C++ Programming Guide, "Thread Block Clusters").
pub fn launch_clusters<M: MemoryModel>(
    kernel: &Kernel,
    config: &LaunchConfig<'_>,
    cluster: [u32; 3],
    model: &M,
) -> Result<(), Fault> {
    run(kernel, config, Some(cluster), model)
}

fn run<M: MemoryModel>(
    kernel: &Kernel,
    config: &LaunchConfig<'_>,
    cluster: Option<[u32; 3]>,
    model: &M,
) -> Result<(), Fault> {
    let program = kernel.program().as_ref().map_err(|e| {
        let report = format!(
            "cupyrite: kernel `{}` cannot run on the CPU device\n  PTX line {}: {}\n",
            kernel.name, e.line, e.message
        );
        Fault::plain(FaultKind::IllegalInstruction, report)
    })?;
    let dims = config.block.map(u64::from);
    let threads = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    let most = MAX_THREADS.min(kernel.max_threads_per_block);
    if !threads.is_some_and(|n| (1..=u64::from(most)).contains(&n)) {
        return Err(refuse(format!(
            "a block of {dims:?} threads; kernel `{}` allows 1 to {most}",
            kernel.name
        )));
    }
    if config.params.len() < kernel.param_bytes as usize {
        return Err(refuse(format!(
            "{} bytes of parameters; kernel `{}` takes {}",
            config.params.len(),
            kernel.name,
            kernel.param_bytes
        )));
    }
    #[cfg(target_arch = "x86_64")]
    if !M::CHECKS {
        let warps = threads.unwrap_or(0).div_ceil(32);
        let grid = config.grid.iter();
        let warps = grid.fold(warps, |n, &d| n.saturating_mul(d.into()));
        native::before_launch(program, warps);
    }
    #[cfg(target_arch = "x86_64")]
    let start = std::time::Instant::now();
    let result = run_grid::<Interpreter, M>(program, kernel.space(), config, cluster, model);
    #[cfg(target_arch = "x86_64")]
    if !M::CHECKS {
        native::after_launch(program, start.elapsed());
    }
    result
}

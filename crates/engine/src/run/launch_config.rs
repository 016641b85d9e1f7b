//! The configuration of a launch.

use std::sync::atomic::AtomicBool;

use super::launch_state::{GraphLauncher, PrintfSink, StandardOutput};
use crate::memory::Viewer;
use crate::runtime_calls::DeviceRuntime;
use crate::texture::BoundReference;

/// Everything about a launch except the kernel.
pub struct LaunchConfig<'a> {
    /// Grid dimensions in blocks.
    pub grid: [u32; 3],
    /// Block dimensions in threads.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameter bank: [`Kernel::param_bytes`](crate::Kernel::param_bytes) bytes with the parameters at their offsets.
    pub params: &'a [u8],
    /// Whether blocks may wait for each other.
    pub cooperative: bool,
    /// Set by another thread to cancel the launch.
    pub cancel: &'a AtomicBool,
    /// Receives the output of `printf`.
    pub printf: &'a dyn PrintfSink,
    /// `CU_LIMIT_STACK_SIZE`: bytes of stack per thread, besides what the calls need without recursion.
    pub local_limit: u32,
    /// `CU_LIMIT_MALLOC_HEAP_SIZE`: size of the device-side heap in bytes.
    pub heap_limit: u64,
    /// `%gridid`.
    pub grid_id: u64,
    /// The device whose access rights apply.
    pub viewer: Viewer,
    /// The multiprocessors to run on; `None` for all.
    pub sms: Option<&'a [u32]>,
    /// Launches graphs for the kernel; `None` if the kernel is in no graph.
    pub graph: Option<&'a dyn GraphLauncher>,
    /// Executes the kernel's calls of the device runtime. Without it, such a call is a fault.
    pub runtime: Option<&'a dyn DeviceRuntime>,
    /// The texture, surface and sampler references of the kernel's module.
    pub references: &'a [BoundReference],
}

/// Never set: the launch cannot be cancelled.
static NEVER_CANCELLED: AtomicBool = AtomicBool::new(false);

impl<'a> LaunchConfig<'a> {
    /// A launch with the default limits of the driver, on all multiprocessors of device 0. It has no dynamic shared memory, is
    /// not cooperative, cannot be cancelled and belongs to no graph, and its references are bound to nothing; `%gridid` is 1, and `printf` writes to standard output.
    pub fn new(grid: [u32; 3], block: [u32; 3], params: &'a [u8]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared: 0,
            params,
            cooperative: false,
            cancel: &NEVER_CANCELLED,
            printf: &StandardOutput,
            local_limit: 1024,
            heap_limit: 8 << 20,
            grid_id: 1,
            viewer: Viewer::default(),
            sms: None,
            graph: None,
            runtime: None,
            references: &[],
        }
    }
}

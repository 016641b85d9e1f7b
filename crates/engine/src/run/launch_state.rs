//! State of a launch in progress.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cupyrite_ptx::ir::Special;
use parking_lot::Mutex;

use super::aligned::Line;
use super::block_state::BlockState;
use super::lanes::LANES;
use crate::bytecode::Program;
use crate::fault::{Fault, FaultDetail, FaultKind, FaultPlace, LaneFault};
use crate::fault_report::{report, source_line};
use crate::memory::{AddressSpace, Viewer};
use crate::runtime_calls::DeviceRuntime;
use crate::texture::BoundReference;

/// Receives the output of device-side `printf`. Several threads call it concurrently.
pub trait PrintfSink: Sync {
    /// Receives the formatted output of one call. The sink decides what to do when its buffer is full.
    fn emit(&self, text: &[u8]);
}

/// Writes the output of `printf` to standard output.
pub struct StandardOutput;

impl PrintfSink for StandardOutput {
    fn emit(&self, text: &[u8]) {
        // A kernel has no use for the error of a closed pipe.
        let _ = std::io::stdout().write_all(text);
    }
}

/// The graph with a kernel, which can launch other graphs.
pub trait GraphLauncher: Sync {
    /// `cudaGraphLaunch`: launches a graph; returns a `cudaError_t`.
    fn launch(&self, graph: u64, stream: u64) -> u32;

    /// `%current_graph_exec`: the handle of the graph with the kernel; zero if the device cannot launch it.
    fn current(&self) -> u64;
}

/// The thread indices of a warp along one axis.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct ThreadIndices(pub [u32; LANES]);

/// The thread indices of the warps of a block of these dimensions.
pub fn thread_indices(block: [u32; 3], warps: u32) -> Vec<[ThreadIndices; 3]> {
    let [x, y, _] = block.map(|n| n.max(1));
    let of_warp = |warp: u32| {
        let mut axes = [ThreadIndices([0; LANES]); 3];
        let first = 32 * warp;
        let mut at = [first % x, first / x % y, first / x / y];
        for l in 0..LANES {
            for (axis, at) in axes.iter_mut().zip(at) {
                axis.0[l] = at;
            }
            at[0] += 1;
            if at[0] == x {
                at = [0, at[1] + 1, at[2]];
            }
            if at[1] == y {
                at = [at[0], 0, at[2] + 1];
            }
        }
        axes
    };
    (0..warps).map(of_warp).collect()
}

/// A launch in progress, shared by its workers.
pub struct Launch<'a> {
    /// The program.
    pub program: &'a Program,
    /// The address space.
    pub space: &'a AddressSpace,
    /// Dimensions of the grid in clusters.
    pub clusters: [u32; 3],
    /// Dimensions of a cluster in blocks.
    pub cluster: [u32; 3],
    /// Whether the launch names these dimensions; without them, a cluster is a block.
    pub has_clusters: bool,
    /// Blocks of a cluster.
    pub cluster_blocks: u32,
    /// Block dimensions.
    pub block: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Warps of a block.
    pub warps: u32,
    /// The thread indices of each warp, for each axis.
    pub thread_indices: Vec<[ThreadIndices; 3]>,
    /// Shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// `CU_LIMIT_STACK_SIZE`.
    pub stack_limit: u32,
    /// Limit of the device-side heap in bytes.
    pub heap_limit: u64,
    /// Receives the output of `printf`.
    pub printf: &'a dyn PrintfSink,
    /// Launches graphs for the kernel.
    pub graph: Option<&'a dyn GraphLauncher>,
    /// Executes calls of the device runtime.
    pub runtime: Option<&'a dyn DeviceRuntime>,
    /// Texture, surface and sampler references.
    pub references: &'a [BoundReference],
    /// The device whose access rights apply.
    pub viewer: Viewer,
    /// Initial contents of the register files.
    pub template: Vec<Line>,
    /// When it began.
    pub start: Instant,
    /// Address and size of the parameter bank.
    pub params: (u64, u64),
    /// Set by another thread to cancel the launch.
    pub cancel: &'a AtomicBool,
    /// Whether the launch has faulted or been cancelled.
    pub stopped: AtomicBool,
    /// The first fault.
    pub fault: Mutex<Option<Fault>>,
}

impl Launch<'_> {
    /// Whether the launch has faulted or been cancelled.
    pub fn is_stopped(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return true;
        }
        if self.cancel.load(Ordering::Relaxed) {
            let mut slot = self.fault.lock();
            if slot.is_none() {
                *slot = Some(Fault::plain(FaultKind::Cancelled, String::new()));
            }
            self.stopped.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    /// Stops the launch with a fault, unless it has one already.
    pub fn raise(&self, block: &BlockState, warp: u32, pc: u32, fault: &LaneFault) {
        let mut slot = self.fault.lock();
        if slot.is_none() {
            let at = block.coordinates(self.block, warp, fault.lane);
            let origin = self.program.origin(pc);
            let place = FaultPlace {
                at,
                function: self.program.function_at(pc).unwrap_or("?").to_owned(),
                opcode: origin.map_or("?", |o| &*o.opcode).to_owned(),
                line: origin.map_or(0, |o| o.line),
                source: origin.and_then(|o| source_line(self.program, o)),
                address: match fault.detail {
                    FaultDetail::Access { address, .. } => Some(address),
                    FaultDetail::Text(_) => None,
                },
            };
            *slot = Some(Fault {
                kind: fault.kind,
                report: report(self.program, self.space, &self.viewer, pc, at, fault),
                place: Some(Box::new(place)),
            });
        }
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Stops the launch after a panic of a worker, which is a bug of the engine.
    #[cold]
    pub fn panicked(&self) {
        let mut slot = self.fault.lock();
        if slot.is_none() {
            let text = format!(
                "cupyrite: internal error in the CPU device while running kernel `{}`; please report it\n",
                self.program.name
            );
            *slot = Some(Fault::plain(FaultKind::Trap, text));
        }
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// A clock of about a gigahertz, as on a GPU.
    pub fn clock(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: every x86-64 processor has the instruction.
            unsafe { std::arch::x86_64::_rdtsc() }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |d| d.as_nanos() as u64)
        }
    }

    /// Writes the block-wide special registers.
    pub fn fill_block_specials(&self, regs: *mut u8, index: [u32; 3], worker: u32) {
        for s in &self.program.file.block_specials {
            let size = self.cluster;
            let in_cluster = |a: usize| index[a] % size[a];
            let v = match s.special {
                Special::Ctaid(a) => index[usize::from(a) % 3],
                Special::ClusterId(a) => {
                    let a = usize::from(a) % 3;
                    index[a] / size[a]
                }
                Special::ClusterCtaId(a) => in_cluster(usize::from(a) % 3),
                Special::ClusterCtaRank => {
                    (in_cluster(2) * size[1] + in_cluster(1)) * size[0] + in_cluster(0)
                }
                _ => worker,
            };
            // SAFETY: the location is a 32-bit slot of the register file.
            let lanes = unsafe {
                std::slice::from_raw_parts_mut(regs.add(s.at as usize).cast::<u32>(), 32)
            };
            lanes.fill(v);
        }
    }
}

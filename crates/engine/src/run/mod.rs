//! Executes compiled kernels.
//!
//! [`grid`] hands blocks to the [`thread_pool`], [`block`] runs the warps of one block in turn, and a [tier](crate::tier) runs
//! one warp until it stops. The other files implement the instructions.
//!
//! Throughout, `regs` is the register file of the running warp, and `active` is the mask of the lanes that execute the
//! instruction: the running fragment without the lanes that the guard excludes.

mod aligned;
pub mod atomics;
mod block;
pub mod block_barrier;
mod block_state;
pub mod builtins;
pub mod bulk_copy;
pub mod calls;
mod cluster;
pub mod cluster_state;
pub mod context;
pub mod grid;
mod kernel_memory;
pub mod lanes;
mod launch_config;
pub mod launch_state;
pub mod mbarrier;
pub mod memory;
pub mod multimem;
#[cfg(target_arch = "x86_64")]
pub mod native_context;
mod printf;
pub mod tensor_map;
pub mod texture;
mod texture_cache;
mod thread_pool;
pub mod tier;
pub mod warp;
pub mod warp_collectives;
pub mod warp_functions;
mod worker;

pub use launch_config::LaunchConfig;
pub use launch_state::{GraphLauncher, PrintfSink, StandardOutput};
pub use memory::model::{AccessKind, Bounds, LaneAccess, MemoryModel, StateSpace, WarpAccess};

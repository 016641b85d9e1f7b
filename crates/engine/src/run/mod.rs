//! Executes compiled kernels.
//!
//! [`grid`] hands blocks to the [`thread_pool`], [`block`] runs the warps of one block in turn, and [`interpreter`] is the
//! loop that executes one warp. The other files implement the instructions.
//!
//! Throughout, `regs` is the register file of the running warp, and `active` is the mask of the lanes that execute the
//! instruction: the running fragment without the lanes that the guard excludes.

mod aligned;
mod atomics;
mod block;
mod block_barrier;
mod block_state;
mod builtins;
mod bulk_copy;
mod calls;
mod context;
pub mod grid;
mod interpreter;
mod lanes;
mod launch_state;
mod mbarrier;
mod memory;
mod printf;
mod texture;
mod texture_cache;
mod thread_pool;
mod warp;
mod warp_collectives;
mod warp_functions;
mod worker;

pub use launch_state::{GraphLauncher, PrintfSink};
pub use memory::model::{AccessKind, Bounds, LaneAccess, MemoryModel, StateSpace, WarpAccess};

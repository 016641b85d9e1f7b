//! Executes compiled kernels: a grid is scheduled over worker threads, a block over its warps, and the interpreter
//! executes one warp at a time.

pub mod atomics;
mod block;
mod builtins;
mod calls;
mod collectives;
pub mod grid;
mod interpreter;
pub mod mbarrier;
mod memory;
mod texture;
mod thread_pool;
mod warp;

//! The PTX engine: loads PTX, runs kernels.
//!
//! The driver half of this crate (`crate::driver`) uses only what this file exports. The way of a kernel:
//! [`image`] places a module's variables, [`decode`] and the `lower` files turn each kernel and what it calls into a
//! compact program, [`launch`] hands blocks to the [`pool`], [`block`] runs the warps of one block in turn and
//! [`exec`] is the loop that runs a warp, with [`ops`] for everything that a lane computes by itself.

mod atomics;
mod block;
mod builtins;
mod calls;
mod collectives;
mod decode;
mod exec;
mod image;
mod launch;
mod lower;
mod lower_alu;
mod lower_mem;
mod lower_tex;
mod mbarrier;
mod memory_access;
mod memory_fast;
mod memory_general;
pub mod ops;
mod pool;
mod program;
mod report;
mod texture;
mod uniform;
mod warp;
mod window;

pub use image::{Global, Image, Kernel, LoadError, LoadErrorKind, ParamInfo};
pub(crate) use image::{check_unit, link_units};
pub use launch::{LaunchSpec, MAX_SHARED, MAX_THREADS, PrintfSink, launch};
pub use report::{Fault, FaultKind};

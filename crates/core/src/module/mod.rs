//! Device code, the libraries it is loaded into, their kernels, and launches.
//!
//! Device code comes from [`compile`](crate::compile) or from a file.

pub(crate) mod args;
pub(crate) mod image;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod library;
mod library_kernels;
pub(crate) mod object_code;
pub(crate) mod occupancy;
pub(crate) mod signature;
pub(crate) mod typed;

pub use args::{KernelArg, KernelArgs};
pub use kernel::{FunctionAttribute, Kernel, ParamInfo};
pub use launch::LaunchConfig;
pub use library::Library;
pub use object_code::{CodeKind, CodeSource, ObjectCode};
pub use occupancy::{DynamicSharedMemory, MaxPotentialBlockSize};
pub use signature::ParamKind;
pub use typed::{ConstPtr, MutPtr, Param, Params, TypedKernel};

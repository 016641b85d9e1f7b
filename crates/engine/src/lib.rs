//! The PTX engine: loads PTX and runs its kernels on the host's processor, in memory that every access is checked against.
//!
//! Belongs here: everything that a kernel can reach: its program, device memory, textures, tensor maps, condition
//! variables. Does not belong here: the syntax of PTX (`cupyrite-ptx`), containers of PTX, the driver API with its handles
//! and error codes (`cupyrite-cpu`).
//!
//! A kernel passes through these stages: `load` parses modules and places their variables in memory, `build` translates
//! each kernel and the functions that it calls to `kir`, `passes` analyze and rewrite it, a `tier` makes code of it, and
//! `run` executes the code. [`semantics`] says what instructions compute.

mod address_windows;
mod build;
mod bytecode;
mod compile;
pub mod conditions;
mod cpu_features;
pub mod dump;
mod executable_memory;
mod fault;
mod fault_report;
mod kir;
mod launch;
mod limits;
mod load;
pub mod memory;
mod passes;
mod register_file;
mod run;
mod runtime_calls;
pub mod semantics;
pub mod settings;
pub mod tensor_map;
pub mod texture;
mod tier;

pub use cupyrite_ptx::ir::{Scope, Semantics};
pub use fault::{Coordinates, Fault, FaultDetail, FaultKind, FaultPlace, LaneFault};
pub use launch::{launch, launch_clusters, launch_with};
pub use limits::{MAX_SHARED, MAX_THREADS, RESERVED_SHARED};
pub use load::{
    ClusterDirectives, Global, Image, Kernel, LoadError, LoadErrorKind, ParamInfo, Unit,
    check_unit, link_units, undefined_functions,
};
pub use run::{
    AccessKind, Bounds, GraphLauncher, LaneAccess, LaunchConfig, MemoryModel, PrintfSink,
    StandardOutput, StateSpace, WarpAccess,
};
pub use runtime_calls::{
    DeviceRuntime, KernelMemory, MAX_RUNTIME_WORDS, RuntimeCall, RuntimeFault, RuntimeFunction,
};

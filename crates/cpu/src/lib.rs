//! The CPU device: a CUDA driver in software.
//!
//! Belongs here: the driver and NVML entry points on top of the PTX engine, and what finds PTX in the code that programs
//! load. Does not belong here: running PTX (`cupyrite-engine`), Python, safe wrappers, compilation of CUDA C++ (NVRTC does
//! that).

mod code;
pub mod driver;
mod install;
pub mod nvml;
pub mod ptxas;
mod settings;
mod toolchain;

pub use cupyrite_engine::Unit;
pub use install::{DEVICE, connect, install};

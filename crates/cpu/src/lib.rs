//! The CPU device: a CUDA driver in software.
//!
//! Belongs here: the PTX engine, and the driver and NVML entry points on top of it. Does not belong here: Python, safe
//! wrappers, compilation of CUDA C++ (NVRTC does that).

mod code;
mod conditions;
pub mod driver;
pub mod engine;
mod install;
pub mod memory;
pub mod nvml;
mod settings;
mod tensor_map;
pub mod texture;
mod toolchain;

pub use code::Unit;
pub use install::{DEVICE, connect, install};

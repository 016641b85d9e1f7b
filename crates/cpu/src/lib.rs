//! The CPU device: a CUDA driver in software.
//!
//! Belongs here: the PTX engine and the driver entry points on top of it. Does not belong here: Python,
//! safe wrappers, compilation of CUDA C++ (NVRTC does that).

pub mod driver;
pub mod engine;
pub mod memory;

pub use driver::{describe, install, remember_cubin, set_interrupt_hook};

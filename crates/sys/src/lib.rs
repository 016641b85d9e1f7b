//! The CUDA libraries as C sees them: types, constants, and symbols that resolve on first use.
//!
//! Belongs here: generated declarations and the loader beneath them. Does not belong here: safe wrappers,
//! ownership, the CPU device itself (it plugs in from above).

pub mod abi;
mod generated;
pub mod loader;

pub use generated::{driver, nvrtc};

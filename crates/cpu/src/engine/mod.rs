//! The PTX engine: loads PTX, runs kernels.
//!
//! The driver half of this crate (`crate::driver`) uses only what this file exports.

pub mod ops;

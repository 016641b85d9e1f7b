//! Code: programs, linkers, object code, kernels and their occupancy.

pub mod kernel;
pub mod kernel_attributes;
pub mod linker;
pub mod object_code;
pub mod occupancy;
pub mod program;

//! Modules whose functions return values and raise on a failure status: nvJitLink, libNVVM, nvFatbin, NVML, cuFile, cuDLA.

pub mod enums;
pub mod functions;
pub mod requests;
pub mod structs;

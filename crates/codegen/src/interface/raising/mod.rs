//! Modules whose functions return values and raise on a failure status: nvJitLink, libNVVM, nvFatbin, NVML, cuFile, cuDLA, and
//! the second modules over the driver API, the runtime API and NVRTC.

pub mod enums;
pub mod functions;
mod kinds;
pub mod requests;
pub mod structs;

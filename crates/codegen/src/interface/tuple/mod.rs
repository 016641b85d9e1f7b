//! Modules whose functions return a tuple that begins with the status: driver, runtime, NVRTC.

pub mod classes;
pub mod functions;
pub mod nature;

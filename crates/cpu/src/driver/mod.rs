//! The CUDA driver API in software: the entry points of `libcuda` with the same names and the same C signatures.
//!
//! Belongs here: what the driver API documents (contexts, streams, events, memory operations, modules, launches) and
//! validation of all arguments. Does not belong here: PTX (the engine) and allocation (`cupyrite_engine::memory`).
//!
//! An entry point is a thin shim made by `driver_entry_points!`. Pointer and handle arguments arrive as numbers and are
//! checked before use (`entry::caller_memory`, `entry::handles`). A panic never crosses the FFI boundary. On the two
//! ABIs this crate is built for (System V x86-64, AAPCS64), a pointer argument and a 64-bit integer are passed alike.

mod array;
mod checkpoint;
mod context;
mod coredump;
mod device;
mod device_runtime;
mod entry;
mod entry_points;
mod external;
mod graph;
mod graphics;
mod memory;
mod module;
mod stream;
mod tensor_map;

pub(crate) use context::activity::busy_percent;
pub(crate) use context::entries::memory_in_contexts;
pub(crate) use context::faults;
pub(crate) use device::attributes::clock_rate_khz;
pub(crate) use device::{DeviceFacts, facts as device_facts};
pub use entry::errors::Code;
pub(crate) use entry::init::DRIVER_VERSION;
pub use entry_points::{get_proc, implemented};
pub(crate) use stream::host_call::set_host_function_gate;
pub(crate) use stream::queue::set_interrupt_hook;

#[cfg(test)]
mod tests;

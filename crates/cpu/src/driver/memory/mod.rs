//! Memory of the driver API: allocations, memory pools, managed and virtual memory, copies, and pointers.
//!
//! Does not belong here: the address space itself ([`cupyrite_engine::memory`]).

pub(crate) mod allocation;
pub(crate) mod copy;
pub(crate) mod copy_batch;
pub(crate) mod copy_job;
pub(crate) mod copy_nd;
pub(crate) mod copy_range;
pub(crate) mod decompress;
pub(crate) mod fill;
pub(crate) mod host_flags;
pub(crate) mod ipc;
pub(crate) mod ipc_message;
pub(crate) mod managed;
pub(crate) mod memset;
pub(crate) mod multicast;
pub(crate) mod pointer;
pub(crate) mod pool;
pub(crate) mod queued;
pub(crate) mod range_handle;
pub(crate) mod residency;
pub(crate) mod rights;
pub(crate) mod space;
pub(crate) mod virtual_memory;

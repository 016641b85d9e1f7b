//! Memory of the driver API: allocations, memory pools, managed and virtual memory, copies, and pointers.
//!
//! Does not belong here: the address space itself ([`crate::memory`]).

use crate::driver::entry::Entry;

pub(crate) mod allocation;
pub(crate) mod copy;
pub(crate) mod copy_batch;
pub(crate) mod copy_nd;
pub(crate) mod host_flags;
pub(crate) mod ipc;
pub(crate) mod ipc_message;
pub(crate) mod managed;
pub(crate) mod memset;
pub(crate) mod pointer;
pub(crate) mod pool;
pub(crate) mod space;
pub(crate) mod virtual_memory;

/// The entry points of this folder.
pub(crate) fn entry_points() -> impl Iterator<Item = &'static Entry> {
    [
        allocation::ENTRIES,
        copy::ENTRIES,
        copy_batch::ENTRIES,
        copy_nd::ENTRIES,
        ipc::ENTRIES,
        managed::ENTRIES,
        memset::ENTRIES,
        pointer::ENTRIES,
        pool::ENTRIES,
        virtual_memory::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

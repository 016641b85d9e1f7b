//! Memory: buffers, the resources that allocate them, sharing between processes.

pub mod batch;
pub mod buffer;
pub mod copy_operand;
pub mod ipc;
pub mod ipc_handles;
pub mod keep_alive;
pub mod location;
pub mod managed;
pub mod pinned;
pub mod pool_attributes;
pub mod resource;
pub mod virtual_memory;

//! Limits of the device.

/// Threads of a block.
pub const MAX_THREADS: u32 = 1024;
/// Blocks of a cluster, if the kernel allows more than the portable 8.
pub const MAX_CLUSTER: u32 = 16;
/// Shared memory of a block in bytes, static and dynamic.
pub const MAX_SHARED: u32 = 227 << 10;
/// Shared memory of each block that system software reserves on GPUs of compute capability 8.0 and later, in bytes.
pub const RESERVED_SHARED: u32 = 1 << 10;
/// Bytes in use in that region, for the barriers of cooperative groups.
pub const RESERVED_SHARED_IN_USE: u32 = 288;
/// Local memory of a thread in bytes, as on a GPU.
pub const MAX_LOCAL: u32 = 512 << 10;
/// Parameters of a kernel in bytes (PTX ISA, "Kernel Function Parameters").
pub const MAX_PARAMS: u32 = 32764;

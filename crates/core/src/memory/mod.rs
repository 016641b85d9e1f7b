//! Memory: where it comes from, what owns it, copies and fills.

pub(crate) mod copy;
pub(crate) mod device_copy;
pub(crate) mod device_ptr;
pub(crate) mod host;
pub(crate) mod location;
pub mod managed;
pub(crate) mod pool;
pub(crate) mod raw;
pub(crate) mod resource;
pub(crate) mod stream_context;
pub(crate) mod strided;
pub(crate) mod typed;
pub(crate) mod virtual_memory;

pub use copy::{
    CopyOptions, CopyRange, FillPattern, MemoryKind, PointerInfo, SourceAccessOrder, copy_async,
    copy_batch_async, fill_async, pointer_info,
};
pub use device_copy::DeviceCopy;
pub use device_ptr::DevicePtr;
pub use host::{HostBuffer, StreamScope};
pub use location::MemoryLocation;
pub use pool::deferred_destroy::deferred_pool_count;
pub use pool::ipc::BufferDescriptor;
pub use pool::{MemoryAccess, MemoryPool, PoolAttribute, PoolKind, PoolOptions, UniquePool};
pub use raw::{DeviceBuffer, FREED, RawAllocation, SimpleAllocation};
pub use resource::{HostMemoryResource, MemoryResource};
pub use stream_context::enter_for_default_stream;
pub use strided::{StridedMemory, copy_strided};
pub use typed::Buffer;
pub use virtual_memory::{
    Granularity, ShareableHandleKind, VirtualAllocationKind, VirtualMemoryOptions,
    VirtualMemoryResource,
};

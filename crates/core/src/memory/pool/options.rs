//! Options and attributes of memory pools.

use cupyrite_sys::driver::{CUmemAllocationType, CUmemLocation, CUmemPool_attribute};

use crate::context::Device;
use crate::error::Result;
use crate::memory::location::MemoryLocation;

/// Options for creating a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The largest size of the pool in bytes; 0 leaves the limit to the driver (`CUmemPoolProps::maxSize`).
    pub max_size: usize,
    /// Whether other processes can import the pool ([`MemoryPool::export`](crate::MemoryPool::export)).
    pub shareable: bool,
}

impl PoolOptions {
    /// Sets whether other processes can import the pool.
    #[must_use]
    pub fn shareable(mut self, shareable: bool) -> Self {
        self.shareable = shareable;
        self
    }

    /// Sets the largest size in bytes; 0 leaves the limit to the driver.
    #[must_use]
    pub fn max_size(mut self, bytes: usize) -> Self {
        self.max_size = bytes;
        self
    }
}

/// An attribute of a pool (`CUmemPool_attribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolAttribute {
    /// Whether (0 or 1) memory freed in one stream is reused in another that waited for it by an event.
    ReuseFollowEventDependencies,
    /// Whether (0 or 1) memory is reused across streams once the free happens to be done.
    ReuseAllowOpportunistic,
    /// Whether (0 or 1) the driver may make a stream wait for another one in order to reuse memory.
    ReuseAllowInternalDependencies,
    /// Unused bytes that the pool keeps when a stream, event or context is synchronised.
    ReleaseThreshold,
    /// Bytes reserved by the pool; read-only.
    ReservedCurrent,
    /// High-water mark of the reserved bytes; writing 0 resets it.
    ReservedHigh,
    /// Bytes allocated from the pool; read-only.
    UsedCurrent,
    /// High-water mark of the allocated bytes; writing 0 resets it.
    UsedHigh,
}

impl PoolAttribute {
    pub(crate) fn to_raw(self) -> CUmemPool_attribute {
        type A = CUmemPool_attribute;
        match self {
            Self::ReuseFollowEventDependencies => {
                A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
            }
            Self::ReuseAllowOpportunistic => A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
            Self::ReuseAllowInternalDependencies => {
                A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
            }
            Self::ReleaseThreshold => A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            Self::ReservedCurrent => A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
            Self::ReservedHigh => A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
            Self::UsedCurrent => A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
            Self::UsedHigh => A::CU_MEMPOOL_ATTR_USED_MEM_HIGH,
        }
    }

    /// Whether the driver stores it as a C `int`; the others have 64 bits.
    pub(crate) fn is_flag(self) -> bool {
        matches!(
            self,
            Self::ReuseFollowEventDependencies
                | Self::ReuseAllowOpportunistic
                | Self::ReuseAllowInternalDependencies
        )
    }
}

/// Access rights of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAccess {
    /// No access.
    None,
    /// Read access.
    Read,
    /// Read and write access.
    ReadWrite,
}

/// The kind and location of a pool's memory (`CUmemPoolProps::allocType` and `location`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolKind {
    /// Device memory.
    Device(Device),
    /// Page-locked host memory, of one NUMA node or any. The host and all devices can access it.
    Host(Option<i32>),
    /// Managed memory, with a preferred location. Since CUDA 13.
    Managed(Option<MemoryLocation>),
}

impl PoolKind {
    pub(crate) fn to_raw(self) -> (CUmemAllocationType, CUmemLocation) {
        let pinned = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        match self {
            PoolKind::Device(device) => (pinned, MemoryLocation::Device(device.ordinal()).to_raw()),
            PoolKind::Host(None) => (pinned, MemoryLocation::Host.to_raw()),
            PoolKind::Host(Some(node)) => (pinned, MemoryLocation::HostNuma(node).to_raw()),
            PoolKind::Managed(preferred) => (
                CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED,
                MemoryLocation::hint_to_raw(preferred),
            ),
        }
    }

    /// The device to which default streams belong if none is named: that of the memory, else the thread's current one.
    ///
    /// # Errors
    ///
    /// Same as [`Device::current`].
    #[inline]
    pub fn default_stream_device(self) -> Result<Device> {
        match self {
            PoolKind::Device(device) => Ok(device),
            _ => self.device().map_or_else(Device::current, Ok),
        }
    }

    /// The device of the memory, or the preferred one of managed memory; else `None`.
    #[inline]
    pub fn device(self) -> Option<Device> {
        match self {
            PoolKind::Device(device) => Some(device),
            PoolKind::Managed(Some(MemoryLocation::Device(ordinal))) => Device::new(ordinal).ok(),
            PoolKind::Host(_) | PoolKind::Managed(_) => None,
        }
    }
}

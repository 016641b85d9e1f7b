//! Options and attributes of memory pools.

use cupyrite_sys::driver::{CUmemAllocationType, CUmemLocation, CUmemPool_attribute};

use crate::context::device::Device;
use crate::error::Result;
use crate::memory::location::MemoryLocation;

/// How a pool is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Most bytes that the pool takes from the device; 0 leaves the limit to the driver (`CUmemPoolProps::maxSize`).
    pub max_size: usize,
    /// Whether other processes can import the pool ([`MemoryPool::export`]).
    pub shareable: bool,
}

impl PoolOptions {
    /// Whether other processes can import the pool.
    #[must_use]
    pub fn shareable(mut self, shareable: bool) -> Self {
        self.shareable = shareable;
        self
    }

    /// At most this many bytes; 0 leaves the limit to the driver.
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
    /// Whether (0 or 1) memory freed in one stream is given to another one that waited for it by an event.
    ReuseFollowEventDependencies,
    /// Whether (0 or 1) memory is reused across streams where the free happens to be done already.
    ReuseAllowOpportunistic,
    /// Whether (0 or 1) the driver may make a stream wait for another one so that memory can be reused.
    ReuseAllowInternalDependencies,
    /// Bytes that the pool keeps, though unused, when a stream, event or context is waited for.
    ReleaseThreshold,
    /// Bytes that the pool holds of the device's memory; read only.
    ReservedCurrent,
    /// The most it held since this was last reset; only 0 can be written, which resets it.
    ReservedHigh,
    /// Bytes that are allocated from the pool; read only.
    UsedCurrent,
    /// The most that was allocated since this was last reset; only 0 can be written, which resets it.
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

    /// Whether the driver keeps it as a C `int`; the others are 64 bits wide.
    pub(crate) fn is_flag(self) -> bool {
        matches!(
            self,
            Self::ReuseFollowEventDependencies
                | Self::ReuseAllowOpportunistic
                | Self::ReuseAllowInternalDependencies
        )
    }
}

/// What a device may do with the memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAccess {
    /// Nothing.
    None,
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

/// What the memory of a pool is, and where (`CUmemPoolProps::allocType` and `location`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolKind {
    /// Memory of a device.
    Device(Device),
    /// Page-locked memory of the host, of one NUMA node or of any. The host and all devices can use it.
    Host(Option<i32>),
    /// Managed memory, with the place where it should rather be. Such pools came with CUDA 13.
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

    /// The device whose default streams are meant where none is told: that of the memory, or else the thread's current
    /// one.
    ///
    /// # Errors
    ///
    /// As [`Device::current`].
    #[inline]
    pub fn default_stream_device(self) -> Result<Device> {
        match self {
            PoolKind::Device(device) => Ok(device),
            _ => self.device().map_or_else(Device::current, Ok),
        }
    }

    /// The device whose memory it is, or that managed memory should rather be on; `None` for other memory.
    #[inline]
    pub fn device(self) -> Option<Device> {
        match self {
            PoolKind::Device(device) => Some(device),
            PoolKind::Managed(Some(MemoryLocation::Device(ordinal))) => Device::new(ordinal).ok(),
            PoolKind::Host(_) | PoolKind::Managed(_) => None,
        }
    }
}

//! Ranges of device-accessible memory.

use super::Reach;

/// How a region was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// `cuMemAlloc` and related functions.
    Device,
    /// Page-locked host memory: `cuMemAllocHost`, `cuMemHostAlloc`.
    Host,
    /// `cuMemAllocManaged`.
    Managed,
    /// A module's `.global` variables.
    Global,
    /// A module's `.const` variables: read-only for kernels, writable by the host.
    Const,
    /// Memory of the program, registered with `cuMemHostRegister`.
    Registered,
    /// A buffer of OpenGL, mapped by `cuGraphicsMapResources`.
    Graphics,
    /// Memory of another API, mapped by `cuExternalMemoryGetMappedBuffer`.
    External,
    /// Physical memory mapped at a reserved address by `cuMemMap`.
    Virtual,
    /// Memory of the device that kernels may access (heaps, parameter banks).
    Internal,
}

/// A live range of device-accessible memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Requested length in bytes.
    pub size: u64,
    /// How it was allocated.
    pub kind: RegionKind,
    /// Unique over the life of the process (`CU_POINTER_ATTRIBUTE_BUFFER_ID`).
    pub id: u64,
    /// Whether a store by a kernel is a fault.
    pub read_only: bool,
    /// An id chosen by the allocator's caller: the driver stores the owning context's id, otherwise zero.
    pub owner: u64,
    /// The devices whose kernels may load and store.
    pub reach: Reach,
}

impl Region {
    /// Address past the last byte.
    pub const fn end(&self) -> u64 {
        self.base + self.size
    }
    /// Whether the region contains `[addr, addr + len)`.
    pub const fn contains(&self, addr: u64, len: u64) -> bool {
        addr >= self.base && len <= self.size && addr - self.base <= self.size - len
    }
}

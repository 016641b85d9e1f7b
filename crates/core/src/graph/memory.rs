//! Memory that graphs allocate.

use std::fmt;

use cupyrite_sys::driver::{CUdeviceptr, CUgraphMem_attribute};

use crate::context::Device;
use crate::error::{Error, Result, driver};
use crate::memory::MemoryResource;
use crate::stream::{Stream, is_capturing};

/// Memory that a device holds for the allocations of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphMemory {
    device: Device,
}

/// A counter of [`GraphMemory`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMemoryAttribute {
    /// Memory that graphs use.
    UsedCurrent,
    /// Highest value of [`GraphMemoryAttribute::UsedCurrent`] since it was reset.
    UsedHigh,
    /// Memory that is reserved for graphs.
    ReservedCurrent,
    /// Highest value of [`GraphMemoryAttribute::ReservedCurrent`] since it was reset.
    ReservedHigh,
}

impl GraphMemoryAttribute {
    fn raw(self) -> CUgraphMem_attribute {
        match self {
            GraphMemoryAttribute::UsedCurrent => {
                CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT
            }
            GraphMemoryAttribute::UsedHigh => CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            GraphMemoryAttribute::ReservedCurrent => {
                CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
            }
            GraphMemoryAttribute::ReservedHigh => {
                CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
            }
        }
    }
}

impl GraphMemory {
    /// That of a device.
    pub const fn of(device: Device) -> GraphMemory {
        GraphMemory { device }
    }

    /// The device.
    pub const fn device(self) -> Device {
        self.device
    }

    /// A counter.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuDeviceGetGraphMemAttribute`.
    pub fn attribute(self, attribute: GraphMemoryAttribute) -> Result<u64> {
        let mut value = 0u64;
        let _entered = self.device.enter()?;
        // SAFETY: the attributes are 64-bit numbers; `value` is valid for writes.
        unsafe {
            driver!(cuDeviceGetGraphMemAttribute(
                self.device.handle(),
                attribute.raw(),
                (&raw mut value).cast()
            ))?;
        }
        Ok(value)
    }

    /// Resets a highest value to the current one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a current value; the driver's error. Source: `cuDeviceSetGraphMemAttribute`.
    pub fn reset(self, attribute: GraphMemoryAttribute) -> Result<()> {
        if matches!(
            attribute,
            GraphMemoryAttribute::UsedCurrent | GraphMemoryAttribute::ReservedCurrent
        ) {
            let problem = format!("is {attribute:?}; expected UsedHigh or ReservedHigh");
            return Err(Error::argument("GraphMemory::reset", "attribute", problem));
        }
        let mut value = 0u64;
        let _entered = self.device.enter()?;
        // SAFETY: the attributes are 64-bit numbers; `value` is valid for reads.
        unsafe {
            driver!(cuDeviceSetGraphMemAttribute(
                self.device.handle(),
                attribute.raw(),
                (&raw mut value).cast()
            ))
        }
    }

    /// Returns reserved memory that no graph uses to the system.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuDeviceGraphMemTrim`.
    pub fn trim(self) -> Result<()> {
        let _entered = self.device.enter()?;
        // SAFETY: takes a device.
        unsafe { driver!(cuDeviceGraphMemTrim(self.device.handle())) }
    }
}

/// Allocates in graphs that are being captured: an allocation is a node of the graph, and so is a free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GraphMemoryResource {
    device: Device,
}

impl fmt::Debug for GraphMemoryResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphMemoryResource({})", self.device.ordinal())
    }
}

impl GraphMemoryResource {
    /// For memory of a device.
    pub const fn new(device: Device) -> GraphMemoryResource {
        GraphMemoryResource { device }
    }

    /// The device's memory for graphs.
    pub const fn memory(self) -> GraphMemory {
        GraphMemory::of(self.device)
    }
}

// SAFETY: the driver gives memory of a graph to one allocation node at a time.
unsafe impl MemoryResource for GraphMemoryResource {
    fn allocate(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        if !is_capturing(stream)? {
            return Err(Error::Unsupported {
                function: "GraphMemoryResource::allocate",
                problem: "the stream is not being captured; allocate between begin_building() and end_building() of \
                          its graph builder"
                    .to_owned(),
            });
        }
        let _entered = self.device.enter()?;
        let mut address: CUdeviceptr = 0;
        let place = &raw mut address;
        // SAFETY: the stream is live, `place` is valid for writes.
        stream.queue(|| unsafe { driver!(cuMemAllocAsync(place, bytes, stream.handle())) })?;
        Ok(address)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's contract.
        stream.call(|| unsafe { driver!(owned cuMemFreeAsync(address, stream.handle())) })
    }

    fn device(&self) -> Option<Device> {
        Some(self.device)
    }

    fn is_device_accessible(&self) -> bool {
        true
    }

    fn is_host_accessible(&self) -> bool {
        false
    }
}

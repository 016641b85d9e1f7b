//! `MemoryResource`, a trait for allocators, and the resource of plain page-locked memory.

use std::ffi::c_void;
use std::fmt;

use cupyrite_sys::driver::{CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr};

use crate::context::Device;
use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Result, driver};
use crate::memory::pool::{MemoryPool, PoolKind};
use crate::stream::Stream;
use crate::stream::capture::synchronize_unless_capturing;

/// An allocator for [`DeviceBuffer`](crate::DeviceBuffer)s.
///
/// [`MemoryPool`], [`HostMemoryResource`] and [`VirtualMemoryResource`](crate::VirtualMemoryResource) implement it;
/// [`DeviceBuffer::from_resource`](crate::DeviceBuffer::from_resource) takes any implementation.
///
/// # Safety
///
/// [`MemoryResource::allocate`] returns memory of the requested size that nothing else uses until
/// [`MemoryResource::deallocate`] is called for it, and that devices and host can access as the other methods state.
pub unsafe trait MemoryResource: fmt::Debug + Send + Sync {
    /// Allocates memory for work of `stream`; `bytes` is not 0.
    ///
    /// For a default stream, its context is current.
    ///
    /// # Errors
    ///
    /// Any error; nothing is allocated then.
    fn allocate(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr>;

    /// Frees memory after the work that `stream` holds now.
    ///
    /// Buffers call it when they are dropped, possibly during a capture: in a [`RelaxedCapture`].
    ///
    /// # Errors
    ///
    /// Any error; the call is not repeated.
    ///
    /// # Safety
    ///
    /// `address` came from [`MemoryResource::allocate`] of this resource with the same size, this is the only call for
    /// it, and only work that `stream` holds or waits for uses the memory.
    unsafe fn deallocate(&self, address: CUdeviceptr, bytes: usize, stream: &Stream) -> Result<()>;

    /// The size of an allocation of `bytes`: larger for resources with a granularity.
    ///
    /// # Errors
    ///
    /// Any error of the query.
    fn rounded(&self, bytes: usize) -> Result<usize> {
        Ok(bytes)
    }

    /// The device whose memory it is; `None` for memory of no device in particular.
    fn device(&self) -> Option<Device>;

    /// Whether kernels can access the memory.
    fn is_device_accessible(&self) -> bool;

    /// Whether the host can access the memory.
    fn is_host_accessible(&self) -> bool;

    /// Whether the memory is managed, so that it migrates to its users.
    fn is_managed(&self) -> bool {
        false
    }
}

// SAFETY: a pool allocates memory once; `with_kind` has made host memory accessible to all devices.
unsafe impl MemoryResource for MemoryPool {
    fn allocate(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        self.take(bytes, stream)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { MemoryPool::deallocate(self, address, stream) }
    }

    fn device(&self) -> Option<Device> {
        MemoryPool::device(self)
    }

    fn is_device_accessible(&self) -> bool {
        true
    }

    fn is_host_accessible(&self) -> bool {
        !matches!(self.kind(), PoolKind::Device(_))
    }

    fn is_managed(&self) -> bool {
        matches!(self.kind(), PoolKind::Managed(_))
    }
}

/// Page-locked host memory, allocated immediately (`cuMemHostAlloc`), for the host and all devices.
///
/// Freeing waits for the deallocation stream. A pool of [`PoolKind::Host`], where the driver supports it, does not
/// wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemoryResource;

// SAFETY: the driver allocates memory once; portable memory is page-locked in all contexts.
unsafe impl MemoryResource for HostMemoryResource {
    fn allocate(&self, bytes: usize, _: &Stream) -> Result<CUdeviceptr> {
        let mut place: *mut c_void = std::ptr::null_mut();
        let _entered = Device::current()?.enter()?;
        let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: `place` is valid for writes.
        unsafe { driver!(cuMemHostAlloc(&mut place, bytes, flags))? };
        // With unified addressing the host address is valid on devices.
        Ok(place.expose_provenance() as CUdeviceptr)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        let _relaxed = RelaxedCapture::enter();
        synchronize_unless_capturing(stream);
        let _entered = Device::current()?.enter()?;
        let place = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // SAFETY: the caller's contract.
        unsafe { driver!(owned cuMemFreeHost(place)) }
    }

    fn device(&self) -> Option<Device> {
        None
    }

    fn is_device_accessible(&self) -> bool {
        true
    }

    fn is_host_accessible(&self) -> bool {
        true
    }
}

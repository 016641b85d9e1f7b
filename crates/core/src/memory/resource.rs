//! `MemoryResource`, which anybody can implement, and the resource of plain page-locked memory.

use std::ffi::c_void;
use std::fmt;

use cupyrite_sys::driver::{CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::device::Device;
use crate::error::{Result, driver, report};
use crate::memory::pool::{MemoryPool, PoolKind};
use crate::memory::raw::is_capturing;
use crate::stream::Stream;

/// Where [`DeviceBuffer`](crate::DeviceBuffer)s get their memory, and give it back.
///
/// A [`MemoryPool`] is one, and so are [`HostMemoryResource`] and [`VirtualMemoryResource`](crate::VirtualMemoryResource);
/// [`DeviceBuffer::from_resource`](crate::DeviceBuffer::from_resource) takes any.
///
/// # Safety
///
/// What [`MemoryResource::allocate`] returns holds as many bytes as were asked for, is used by nobody else until
/// [`MemoryResource::deallocate`] is called for it, and is usable by devices and host as the other methods say.
pub unsafe trait MemoryResource: fmt::Debug + Send + Sync {
    /// Allocates memory that work of `stream` can use; `bytes` is not 0.
    ///
    /// Where `stream` is a default stream, the context that is current is the one it is of.
    ///
    /// # Errors
    ///
    /// What went wrong; nothing is allocated then.
    fn allocate(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr>;

    /// Frees memory once `stream` has done what it holds now.
    ///
    /// Buffers call it where they end, which may be while a graph is captured: they do so in a [`RelaxedCapture`].
    ///
    /// # Errors
    ///
    /// What went wrong; the memory is not asked for again.
    ///
    /// # Safety
    ///
    /// `address` came from [`MemoryResource::allocate`] of this resource for as many bytes, this is the only call for it,
    /// and nothing but work that `stream` holds or waits for uses the memory.
    unsafe fn deallocate(&self, address: CUdeviceptr, bytes: usize, stream: &Stream) -> Result<()>;

    /// Bytes that an allocation of `bytes` really has: as many, or more for resources that have no smaller pieces.
    ///
    /// # Errors
    ///
    /// What went wrong in asking.
    fn rounded(&self, bytes: usize) -> Result<usize> {
        Ok(bytes)
    }

    /// The device whose memory it is; `None` for memory of no device in particular.
    fn device(&self) -> Option<Device>;

    /// Whether kernels can use the memory.
    fn is_device_accessible(&self) -> bool;

    /// Whether the host can use the memory.
    fn is_host_accessible(&self) -> bool;

    /// Whether the memory is managed: it moves to whoever uses it.
    fn is_managed(&self) -> bool {
        false
    }
}

// SAFETY: pools give out memory once, and `with_kind` has made that of the host usable for all devices.
unsafe impl MemoryResource for MemoryPool {
    fn allocate(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        self.take(bytes, stream)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's promise.
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

/// Page-locked memory of the host, allocated at once (`cuMemHostAlloc`), for the host and all devices.
///
/// Freeing waits for the stream that the memory is freed on. A pool of [`PoolKind::Host`] does not wait, where the driver
/// has those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemoryResource;

// SAFETY: the driver gives out memory once, and portable memory is page-locked for all contexts.
unsafe impl MemoryResource for HostMemoryResource {
    fn allocate(&self, bytes: usize, _: &Stream) -> Result<CUdeviceptr> {
        let mut place: *mut c_void = std::ptr::null_mut();
        let _entered = Device::current()?.enter()?;
        let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: `place` is a valid place for the result.
        unsafe { driver!(cuMemHostAlloc(&mut place, bytes, flags))? };
        // Under unified addressing the host's address is the devices' too.
        Ok(place.expose_provenance() as CUdeviceptr)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        let _relaxed = RelaxedCapture::enter();
        finish(stream);
        let _entered = Device::current()?.enter()?;
        let place = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // SAFETY: the caller's promise.
        unsafe { driver!(cuMemFreeHost(place)) }
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

/// Waits for what a stream holds, before memory that its work uses goes: in a [`RelaxedCapture`], as the memory is freed in.
///
/// A stream that is being captured holds nothing that runs, and waiting for it would end the capture. One that failed runs
/// nothing any more.
pub(crate) fn finish(stream: &Stream) {
    report(is_capturing(stream).and_then(|capturing| {
        if capturing {
            Ok(())
        } else {
            stream.synchronize()
        }
    }));
}

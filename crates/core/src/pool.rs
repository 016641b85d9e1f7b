//! Memory pools, and buffers that are allocated and freed in the order of streams.
//!
//! Source of all of this: CUDA Driver API, section "Stream Ordered Memory Allocator", and the chapter of the same name
//! in the CUDA C++ Programming Guide.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use cupyrite_sys::driver::{
    CUdevice_attribute, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocation_st_anon0, CUmemLocationType,
    CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstreamCaptureStatus,
};

use crate::birth::Birth;
use crate::context::{Context, Entered};
use crate::device::Device;
use crate::error::{Error, Result, driver, report};
use crate::ipc::Imports;
use crate::memory::DeviceCopy;
use crate::stream::Stream;
use crate::transfer::{CopyOptions, FillPattern, copy_async, fill_async};

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
    fn id(self) -> CUmemPool_attribute {
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
    fn is_flag(self) -> bool {
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
pub enum PoolAccess {
    /// Nothing.
    None,
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

/// A pool of device memory; cheap to clone.
///
/// A pool that was made here is destroyed with its last clone and its last buffer; one that belongs to the device is
/// only referred to.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUmemoryPool,
    owned: bool,
    device: Device,
    birth: Birth,
    /// For the pool of another process: what was imported from it.
    imports: Option<Imports>,
}

// SAFETY: pool handles may be used from any thread; they are only ever passed to the driver.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver locks the pool.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owned && self.birth.is_here() {
            // SAFETY: the handle was made by `MemoryPool::new` and is destroyed once, here. No buffer is left: each one
            // owns its pool.
            report(unsafe { driver!(cuMemPoolDestroy(self.handle)) });
        }
    }
}

fn on_device(ordinal: usize) -> CUmemLocation {
    CUmemLocation {
        r#type: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        anon0: CUmemLocation_st_anon0 {
            id: ordinal as c_int,
        },
    }
}

impl MemoryPool {
    /// Whether the device has pools (`CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`).
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn supported(device: &Device) -> Result<bool> {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        Ok(device.attribute(attribute)? != 0)
    }

    /// The pool that the device allocates from when none is named (`cuDeviceGetMemPool`).
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_NOT_SUPPORTED` where there are no pools.
    pub fn current(device: &Device) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDeviceGetMemPool(&mut handle, device.handle()))? };
        Ok(Self::wrap(handle, false, device))
    }

    /// The pool that the driver made for the device (`cuDeviceGetDefaultMemPool`).
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::current`].
    pub fn default_of(device: &Device) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDeviceGetDefaultMemPool(&mut handle, device.handle()))? };
        Ok(Self::wrap(handle, false, device))
    }

    /// Makes a pool of the device's memory.
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::current`].
    pub fn new(device: &Device, options: &PoolOptions) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: if options.shareable {
                CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
            } else {
                CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE
            },
            location: on_device(device.ordinal()),
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: options.max_size,
            usage: 0,
            gpuDirectRDMACapable: 0,
            reserved: [0; 53],
        };
        // SAFETY: `handle` is a valid place for the result, `properties` is complete.
        unsafe { driver!(cuMemPoolCreate(&mut handle, &properties))? };
        Ok(Self::wrap(handle, true, device))
    }

    fn wrap(handle: CUmemoryPool, owned: bool, device: &Device) -> MemoryPool {
        Self::wrap_all(handle, owned, device, None)
    }

    /// A pool that was imported.
    pub(crate) fn wrap_imported(handle: CUmemoryPool, device: &Device) -> MemoryPool {
        Self::wrap_all(handle, true, device, Some(Imports::default()))
    }

    fn wrap_all(
        handle: CUmemoryPool,
        owned: bool,
        device: &Device,
        imports: Option<Imports>,
    ) -> MemoryPool {
        MemoryPool {
            inner: Arc::new(Inner {
                handle,
                owned,
                device: *device,
                birth: Birth::now(),
                imports,
            }),
        }
    }

    /// What was imported from the pool, if it is another process's.
    pub(crate) fn imports(&self) -> Option<&Imports> {
        self.inner.imports.as_ref()
    }

    /// Whether the pool is another process's.
    pub fn is_imported(&self) -> bool {
        self.inner.imports.is_some()
    }

    /// A buffer of memory that is there, freed in the order of `stream`. The memory is freed in any case.
    pub(crate) fn adopt(
        &self,
        address: CUdeviceptr,
        size: usize,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        let mut buffer = DeviceBuffer {
            address,
            size,
            stream: stream.clone(),
            context: None,
            others: Mutex::default(),
            pool: self.clone(),
            birth: Birth::now(),
        };
        buffer.context = home_of(stream, self.device())?.0;
        Ok(buffer)
    }

    /// The driver's handle; valid while a clone of this pool lives.
    pub fn handle(&self) -> CUmemoryPool {
        self.inner.handle
    }

    /// Whether the pool was made by [`MemoryPool::new`], and is not the device's own.
    pub fn is_owned(&self) -> bool {
        self.inner.owned
    }

    /// The device whose memory it holds.
    #[inline]
    pub fn device(&self) -> Device {
        self.inner.device
    }

    /// One attribute, in bytes or as 0 and 1.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn attribute(&self, attribute: PoolAttribute) -> Result<u64> {
        let mut value = 0u64;
        // SAFETY: eight bytes are room for every attribute; four-byte ones come first in them (little endian).
        unsafe {
            let place = (&raw mut value).cast::<c_void>();
            driver!(cuMemPoolGetAttribute(self.handle(), attribute.id(), place))?;
        }
        Ok(value)
    }

    /// Sets one attribute.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a flag other than 0 and 1; `CUDA_ERROR_INVALID_VALUE` for one that is read only.
    pub fn set_attribute(&self, attribute: PoolAttribute, value: u64) -> Result<()> {
        if attribute.is_flag() && value > 1 {
            return Err(Error::argument(
                "MemoryPool::set_attribute",
                "value",
                format!("is {value}; {attribute:?} is either 0 or 1"),
            ));
        }
        let mut value = value;
        // SAFETY: as in `attribute`; the driver only reads.
        unsafe {
            let place = (&raw mut value).cast::<c_void>();
            driver!(cuMemPoolSetAttribute(self.handle(), attribute.id(), place))
        }
    }

    /// Gives memory that is not in use back to the device, down to this many bytes.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn trim_to(&self, bytes: usize) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { driver!(cuMemPoolTrimTo(self.handle(), bytes)) }
    }

    /// What the device with this ordinal may do with the pool's memory.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn access(&self, ordinal: usize) -> Result<PoolAccess> {
        let mut flags = CUmemAccess_flags(0);
        let mut location = on_device(ordinal);
        // SAFETY: both are valid places; the driver reads the location.
        unsafe { driver!(cuMemPoolGetAccess(&mut flags, self.handle(), &mut location))? };
        Ok(match flags {
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE => PoolAccess::ReadWrite,
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => PoolAccess::Read,
            _ => PoolAccess::None,
        })
    }

    /// Sets what the devices with these ordinals may do with the pool's memory, all of them or none.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_DEVICE` for a device that cannot reach the pool's.
    pub fn set_access(&self, rights: &[(usize, PoolAccess)]) -> Result<()> {
        if rights.is_empty() {
            return Ok(());
        }
        let rights: Vec<CUmemAccessDesc> = rights
            .iter()
            .map(|&(ordinal, access)| CUmemAccessDesc {
                location: on_device(ordinal),
                flags: match access {
                    PoolAccess::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
                    PoolAccess::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                    PoolAccess::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                },
            })
            .collect();
        // SAFETY: an array of as many descriptions as the call is told.
        unsafe {
            driver!(cuMemPoolSetAccess(
                self.handle(),
                rights.as_ptr(),
                rights.len()
            ))
        }
    }

    /// Allocates memory in the order of `stream`; its contents are unspecified.
    ///
    /// The memory may be used by work of `stream` from here on, and by other streams once they wait for this point. It
    /// is freed in the order of the same stream, unless [`DeviceBuffer`] is told otherwise. No bytes need no driver:
    /// such a buffer has the address 0.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_OUT_OF_MEMORY` for one.
    pub fn allocate(&self, bytes: usize, stream: &Stream) -> Result<DeviceBuffer> {
        let mut address: CUdeviceptr = 0;
        let mut context = None;
        if bytes != 0 {
            let (home, _entered) = home_of(stream, self.device())?;
            context = home;
            let place = &raw mut address;
            // SAFETY: `place` is a valid place for the result; both handles are live.
            stream.call(|| unsafe {
                driver!(cuMemAllocFromPoolAsync(
                    place,
                    bytes,
                    self.handle(),
                    stream.handle()
                ))
            })?;
        }
        Ok(DeviceBuffer {
            address,
            size: bytes,
            stream: stream.clone(),
            context,
            others: Mutex::default(),
            pool: self.clone(),
            birth: Birth::now(),
        })
    }
}

impl MemoryPool {
    /// Frees memory by its address, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_VALUE` for an address that is not the beginning of an allocation.
    ///
    /// # Safety
    ///
    /// Nothing uses the memory any more, and no [`DeviceBuffer`] owns it.
    pub unsafe fn deallocate(&self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        let _entered = enter_for(stream, self.device())?;
        // SAFETY: the caller's promise.
        stream.call(|| unsafe { driver!(cuMemFreeAsync(address, stream.handle())) })
    }
}

impl PartialEq for MemoryPool {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for MemoryPool {}

/// Untyped memory of a [`MemoryPool`]; freed once, in the order of a stream, when it is closed or dropped.
///
/// It owns its pool and the stream that it is freed on, so these may be let go of first. Copies and fills that ran on
/// other streams are waited for by that stream before the memory is freed, never by the host. A kernel's use of the
/// memory is known to nobody but who launches it: see [`DeviceBuffer::used_by`]. The per-thread default stream is that of
/// the thread that frees.
#[derive(Debug)]
pub struct DeviceBuffer {
    address: CUdeviceptr,
    size: usize,
    /// Where it is freed.
    stream: Stream,
    /// The context that `stream` is of, where the stream alone does not say it.
    context: Option<Context>,
    /// Other streams whose work uses it.
    others: Mutex<Vec<Stream>>,
    pool: MemoryPool,
    birth: Birth,
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        report(self.free());
    }
}

impl DeviceBuffer {
    /// Frees the memory; does nothing the second time.
    fn free(&mut self) -> Result<()> {
        let address = std::mem::take(&mut self.address);
        if address == 0 || !self.birth.is_here() {
            return Ok(());
        }
        let others = std::mem::take(self.others.get_mut().unwrap_or_else(|e| e.into_inner()));
        let _entered = match &self.context {
            Some(context) => Some(context.enter()?),
            None if others.iter().any(Stream::is_default) => Some(self.pool.device().enter()?.0),
            None => None,
        };
        // The memory is freed in any case: what fails here is a context that can no longer be used.
        report(wait_for_streams(&self.stream, &others));
        if let Some(imports) = self.pool.imports() {
            return imports.release(address, &self.stream);
        }
        // SAFETY: the address was allocated by `MemoryPool::allocate` and is freed once: it was taken out above.
        self.stream
            .call(|| unsafe { driver!(cuMemFreeAsync(address, self.stream.handle())) })
    }

    /// Frees the memory, in the order of `stream` where one is given.
    ///
    /// # Errors
    ///
    /// What the driver says. The buffer is gone in any case.
    pub fn close(mut self, stream: Option<&Stream>) -> Result<()> {
        if let Some(stream) = stream
            && self.birth.is_here()
        {
            self.set_deallocation_stream(stream)?;
        }
        self.free()
    }

    /// Has the memory freed in the order of another stream, after the work that the stream set before holds then.
    ///
    /// # Errors
    ///
    /// What the driver says of a stream whose context it cannot tell; nothing is changed then.
    pub fn set_deallocation_stream(&mut self, stream: &Stream) -> Result<()> {
        let (context, _entered) = home_of(stream, self.pool.device())?;
        if stream.handle() != self.stream.handle() {
            self.context = context;
            let before = std::mem::replace(&mut self.stream, stream.clone());
            self.used_by(&before);
        }
        Ok(())
    }

    /// Says that work of `stream` uses the memory, so that it is freed after what the stream holds when it is freed.
    ///
    /// Nothing has to be said of the stream that it is freed on.
    pub fn used_by(&self, stream: &Stream) {
        if stream.handle() == self.stream.handle() {
            return;
        }
        let mut others = self.others.lock().unwrap_or_else(|e| e.into_inner());
        if !others.iter().any(|o| o.handle() == stream.handle()) {
            others.push(stream.clone());
        }
    }

    /// The streams whose work uses the memory, as far as this buffer knows: see [`DeviceBuffer::used_by`].
    pub fn streams(&self) -> Vec<Stream> {
        let mut streams = self
            .others
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone();
        streams.push(self.stream.clone());
        streams
    }

    /// The device address; 0 for no bytes.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The pool that it came from.
    pub fn pool(&self) -> &MemoryPool {
        &self.pool
    }

    /// The stream that it is freed on.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Copies the whole buffer into another one of the same size, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the sizes differ; otherwise what the driver says.
    pub fn copy_to(
        &self,
        destination: &DeviceBuffer,
        stream: &Stream,
        options: &CopyOptions,
    ) -> Result<()> {
        self.same_size(
            "DeviceBuffer::copy_to",
            "destination",
            destination.size,
            "bytes",
        )?;
        // Noted first: the copy may have begun even where an error is returned.
        self.used_by(stream);
        destination.used_by(stream);
        let _entered = enter_for(stream, self.pool.device())?;
        // SAFETY: both blocks hold `size` bytes, and are not freed before the copy is done: see `used_by`.
        unsafe {
            copy_async(
                destination.address,
                self.address,
                self.size,
                stream,
                options,
            )
        }
    }

    /// Copies a slice as large as the buffer into it, in the order of `stream`, and waits for that.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the sizes differ; otherwise what earlier work raised.
    pub fn write<T: DeviceCopy>(&self, data: &[T], stream: &Stream) -> Result<()> {
        self.same_size("DeviceBuffer::write", "data", size_of_val(data), "bytes")?;
        self.used_by(stream);
        let options = CopyOptions::default();
        let _entered = enter_for(stream, self.pool.device())?;
        // SAFETY: both sides hold `size` bytes; the slice is borrowed until the copy is done.
        unsafe {
            copy_async(
                self.address,
                data.as_ptr() as u64,
                self.size,
                stream,
                &options,
            )?
        };
        stream.synchronize()
    }

    /// Copies the buffer into a slice as large as it is, in the order of `stream`, and waits for that.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::write`].
    pub fn read<T: DeviceCopy>(&self, out: &mut [T], stream: &Stream) -> Result<()> {
        self.same_size("DeviceBuffer::read", "out", size_of_val(out), "bytes")?;
        self.used_by(stream);
        let options = CopyOptions::default();
        let _entered = enter_for(stream, self.pool.device())?;
        // SAFETY: as in `write`; `T: DeviceCopy` makes every bit pattern valid.
        unsafe {
            copy_async(
                out.as_mut_ptr() as u64,
                self.address,
                self.size,
                stream,
                &options,
            )?
        };
        stream.synchronize()
    }

    /// Fills the buffer with a pattern, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size is no multiple of the pattern's; otherwise what the driver says.
    pub fn fill(&self, pattern: FillPattern, stream: &Stream) -> Result<()> {
        self.used_by(stream);
        let _entered = enter_for(stream, self.pool.device())?;
        // SAFETY: the block holds `size` bytes and is not freed before it is filled: see `used_by`.
        unsafe { fill_async(self.address, self.size, pattern, stream) }
    }

    fn same_size(
        &self,
        function: &'static str,
        parameter: &str,
        given: usize,
        unit: &str,
    ) -> Result<()> {
        if given == self.size {
            return Ok(());
        }
        let problem = format!("has {given} {unit}, the buffer {}", self.size);
        Err(Error::argument(function, parameter, problem))
    }
}

/// The context in which a stream means what it is to mean for memory of `device`, if the stream alone does not say
/// that; it is current while the guard lives.
///
/// A default stream is one of the current context: that has to be one of the memory's device. A stream that somebody
/// else made is looked up while that somebody certainly has it.
fn home_of(stream: &Stream, device: Device) -> Result<(Option<Context>, Option<Entered>)> {
    if stream.is_default() {
        let (entered, context) = device.enter()?;
        Ok((Some(context), Some(entered)))
    } else if stream.is_foreign() {
        Ok((Some(stream.context()?), None))
    } else {
        Ok((None, None))
    }
}

/// Makes a context of `device` current, where `stream` is a default stream and the current one is of another device or
/// there is none. Other streams need no current context.
///
/// # Errors
///
/// What the driver says.
pub fn enter_for(stream: &Stream, device: Device) -> Result<Option<Entered>> {
    if stream.is_default() {
        Ok(Some(device.enter()?.0))
    } else {
        Ok(None)
    }
}

/// Makes later work of `stream` wait for what the others hold now; the host does not wait. Default streams among them are
/// those of the current context.
///
/// # Errors
///
/// What the driver says.
pub fn wait_for_streams(stream: &Stream, others: &[Stream]) -> Result<()> {
    let mut done = Ok(());
    for other in others {
        if other.handle() != stream.handle() {
            // One that fails does not keep the others from being waited for.
            done = done.and(order(other, stream));
        }
    }
    done
}

/// Makes `later` wait for what `earlier` holds now.
fn order(earlier: &Stream, later: &Stream) -> Result<()> {
    if is_capturing(earlier)? {
        // What was captured runs when its graph is launched, which no wait here can foresee; and a wait for a capture
        // would make the other stream part of it.
        return Ok(());
    }
    later.wait_for_stream(earlier)
}

/// Whether the stream is recording its work into a graph.
///
/// # Errors
///
/// What the driver says. Source: `cuStreamIsCapturing`.
pub fn is_capturing(stream: &Stream) -> Result<bool> {
    let mut status = CUstreamCaptureStatus(0);
    let place = &raw mut status;
    // SAFETY: the handle is live, `place` a valid place for the result.
    stream.call(|| unsafe { driver!(cuStreamIsCapturing(stream.handle(), place)) })?;
    Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

//! Untyped memory of any resource, freed in stream order.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::destroyed::{OwnedKind, disown_memory, is_memory_freed, own_memory};
use cupyrite_sys::driver::{CUdeviceptr, CUresult};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::{Context, Device};
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::memory::copy::{
    CopyOptions, FillPattern, MemoryKind, copy_async, fill_async, free_async, free_without_stream,
    pointer_info,
};
use crate::memory::device_copy::DeviceCopy;
use crate::memory::pool::MemoryPool;
use crate::memory::resource::MemoryResource;
use crate::memory::stream_context::{enter_allocation_context, enter_for_default_stream};
use crate::stream::Stream;
use crate::stream::capture::wait_before_free;
use crate::stream::lending::copy_and_wait;
use crate::stream::usage::StreamUsage;

/// The origin of an allocation. A pool, the common case, needs no second pointer.
#[derive(Clone, Debug)]
pub(crate) enum AllocationSource {
    Pool(MemoryPool),
    Resource(Arc<dyn MemoryResource>),
}

/// Untyped memory of a [`MemoryPool`] or another [`MemoryResource`]; freed once, in stream order, when it is closed or
/// dropped.
///
/// It owns its resource and its deallocation stream, so these may be dropped first. Before it frees the memory, that
/// stream waits for copies and fills on other streams; the host does not. Use by a kernel must be declared: see
/// [`DeviceBuffer::record_stream`].
#[derive(Debug)]
pub struct DeviceBuffer {
    pub(crate) address: CUdeviceptr,
    pub(crate) size: usize,
    /// The result of [`own_memory`], unless the address is 0.
    created: u32,
    /// The deallocation stream, and other streams whose work uses the memory.
    usage: StreamUsage,
    /// The context of the deallocation stream, if the stream alone does not imply it.
    context: Option<Context>,
    source: AllocationSource,
    /// The device to which default streams belong.
    home: Device,
    generation: ForkGeneration,
}

impl Drop for DeviceBuffer {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0
            && let Err(error) = self.free_unless_reset()
        {
            report(Err(error));
        }
    }
}

/// Whether freeing failed because the program has reset or destroyed the context, which has freed the memory. `context`
/// is that of the buffer, if it has one.
#[cold]
#[inline(never)]
fn was_freed_by_reset(
    error: &Error,
    address: CUdeviceptr,
    created: u32,
    home: Device,
    context: Option<&Context>,
    stream: &Stream,
) -> bool {
    if error.status() == Some(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED) {
        // The driver says so, also of a reset after a fault, when it no longer returns the handle of the context.
        return true;
    }
    let is_refusal = matches!(
        error.status(),
        Some(
            CUresult::CUDA_ERROR_INVALID_VALUE
                | CUresult::CUDA_ERROR_INVALID_CONTEXT
                | CUresult::CUDA_ERROR_INVALID_HANDLE
        )
    );
    let mut contexts = [
        context,
        stream.context_if_destroyed(),
        home.retained_primary(),
    ]
    .into_iter()
    .flatten();
    let pointer = std::ptr::without_provenance_mut::<c_void>(address as usize);
    is_refusal
        && contexts.any(|known| OwnedKind::Memory.is_destroyed(pointer, known.handle(), created))
        && pointer_info(address).is_ok_and(|found| found.kind == MemoryKind::Unknown)
}

/// Memory of a pool without an owner yet, for [`MemoryPool::into_buffer_from`]; leaked if it is dropped.
#[derive(Debug)]
#[must_use = "the memory is lost unless a buffer owns it"]
pub struct RawAllocation {
    pub(crate) address: CUdeviceptr,
    /// The context of the stream, if the stream alone does not imply it.
    pub(crate) context: Option<Context>,
    pub(crate) home: Device,
}

impl RawAllocation {
    /// The device address; 0 for a size of 0.
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }
}

/// Memory of a pool that a single driver call frees, on a stream that this crate owns and that has nothing to wait
/// for: see [`DeviceBuffer::into_simple`].
#[derive(Debug)]
#[doc(hidden)] // For the Python package, which frees the memory of its objects with it.
#[must_use = "the memory is lost, and its pool never ends, unless it is freed"]
pub struct SimpleAllocation {
    address: CUdeviceptr,
    stream: Stream,
    /// Kept until the memory is freed.
    pool: MemoryPool,
}

impl SimpleAllocation {
    /// Frees the memory.
    ///
    /// # Errors
    ///
    /// The driver's error. The memory is given up in any case.
    #[inline(always)]
    pub fn free(self) -> Result<()> {
        self.free_and_keep_stream().0.map_err(|error| *error)
    }

    /// [`SimpleAllocation::free`], which also returns the memory's clone of the stream; if it is the last one,
    /// dropping it destroys the stream.
    #[inline(always)]
    pub fn free_and_keep_stream(self) -> (std::result::Result<(), Box<Error>>, Stream) {
        let SimpleAllocation {
            address,
            stream,
            pool,
        } = self;
        disown_memory(address);
        let done = Self::free_at(address, &stream);
        drop(pool);
        (done, stream)
    }

    #[inline(always)]
    fn free_at(address: CUdeviceptr, stream: &Stream) -> std::result::Result<(), Box<Error>> {
        if let Some(context) = stream.context_if_destroyed() {
            // SAFETY: the caller gives the memory up.
            return unsafe { free_without_stream(address, context) }.map_err(Box::new);
        }
        // Relaxed as in `free_async`.
        let relaxed = RelaxedCapture::enter();
        // SAFETY: a pool allocated the address; it is freed once, here: `DeviceBuffer::into_simple` took it from its
        // owner.
        let done = match unsafe { driver!(owned cuMemFreeAsync(address, stream.handle())) } {
            Ok(()) => Ok(()),
            Err(error) => {
                crate::hint::cold_path();
                // SAFETY: the driver refused the first call for lack of a context, so that the memory is not freed yet.
                let again = stream.retry_with_context(error, &|| unsafe {
                    driver!(owned cuMemFreeAsync(address, stream.handle()))
                });
                // Boxed: errors are large, and rare.
                again.map_err(Box::new)
            }
        };
        relaxed.leave();
        done
    }
}

impl DeviceBuffer {
    /// Allocates memory from a resource, for work of `stream`. The resource lives as long as the memory.
    ///
    /// The memory is freed on the same stream unless another one is set. A size of 0 needs no resource: the buffer has
    /// the address 0.
    ///
    /// # Errors
    ///
    /// The resource's error.
    pub fn from_resource(
        resource: Arc<dyn MemoryResource>,
        bytes: usize,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        let home = resource.device().map_or_else(Device::current, Ok)?;
        let bytes = if bytes == 0 {
            0
        } else {
            resource.rounded(bytes)?
        };
        Self::from_source(
            AllocationSource::Resource(resource),
            home,
            bytes,
            stream.clone(),
        )
    }

    fn from_source(
        source: AllocationSource,
        home: Device,
        bytes: usize,
        stream: Stream,
    ) -> Result<DeviceBuffer> {
        let (mut address, mut context) = (0, None);
        if bytes != 0 {
            let (known, _entered) = enter_allocation_context(&stream, home)?;
            context = known;
            address = match &source {
                AllocationSource::Pool(pool) => pool.take(bytes, &stream)?,
                AllocationSource::Resource(resource) => resource.allocate(bytes, &stream)?,
            };
        }
        let taken = RawAllocation {
            address,
            context,
            home,
        };
        Ok(DeviceBuffer::from_raw_allocation(
            source, taken, bytes, stream,
        ))
    }

    /// The owner of memory that was just allocated from `source` for work of `stream`.
    #[inline(always)]
    pub(crate) fn from_raw_allocation(
        source: AllocationSource,
        taken: RawAllocation,
        bytes: usize,
        stream: Stream,
    ) -> DeviceBuffer {
        // Computed first, as in `StreamUsage::new`.
        let generation = ForkGeneration::current();
        DeviceBuffer {
            address: taken.address,
            size: bytes,
            created: own_memory(taken.address),
            usage: StreamUsage::new(stream),
            context: taken.context,
            source,
            home: taken.home,
            generation,
        }
    }

    /// Owns existing memory, freed in stream order on `stream`; freed also if this returns an error.
    pub(crate) fn from_existing(
        source: AllocationSource,
        home: Device,
        address: CUdeviceptr,
        size: usize,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        let mut buffer = DeviceBuffer {
            address,
            size,
            created: own_memory(address),
            usage: StreamUsage::new(stream.clone()),
            context: None,
            source,
            home,
            generation: ForkGeneration::current(),
        };
        buffer.context = enter_allocation_context(stream, home)?.0;
        Ok(buffer)
    }

    /// Whether a single driver call frees the memory: [`DeviceBuffer::into_simple`] requires it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn is_simple(&mut self) -> bool {
        self.address != 0
            && !self.is_freed_by_program()
            && self.generation.is_current()
            && self.context.is_none()
            && matches!(&self.source, AllocationSource::Pool(pool) if pool.imports().is_none())
            && self.usage.is_single_owned_stream()
    }

    /// Reduces the buffer to what freeing it needs.
    ///
    /// # Safety
    ///
    /// [`DeviceBuffer::is_simple`] holds.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn into_simple(self) -> SimpleAllocation {
        let memory = ManuallyDrop::new(self);
        // SAFETY: the caller's contract; it is not dropped.
        unsafe { memory.read_simple() }
    }

    /// [`DeviceBuffer::into_simple`] for a buffer whose storage is overwritten in place: the buffer is large, and most
    /// of it is not needed.
    ///
    /// # Safety
    ///
    /// [`DeviceBuffer::is_simple`] holds, and the buffer is neither used nor dropped afterwards.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn read_simple(&self) -> SimpleAllocation {
        let AllocationSource::Pool(pool) = &self.source else {
            // SAFETY: the caller's contract.
            unsafe { std::hint::unreachable_unchecked() }
        };
        SimpleAllocation {
            address: self.address,
            // SAFETY: both are read once. The rest is not used again and owns nothing: there is no context and no
            // other stream (see `StreamUsage::is_single_owned_stream`).
            stream: unsafe { std::ptr::read(self.usage.deallocation_stream()) },
            // SAFETY: read once: the source is not used or dropped again.
            pool: unsafe { std::ptr::read(pool) },
        }
    }

    /// Whether the program has freed the memory itself, with a function of the driver or of the runtime. The address may
    /// belong to other memory by now.
    #[inline(always)]
    pub fn is_freed_by_program(&self) -> bool {
        is_memory_freed(self.address, self.created)
    }

    /// What [`is_memory_freed`] takes besides the address.
    #[doc(hidden)] // For the Python package.
    #[inline(always)]
    pub fn created(&self) -> u32 {
        self.created
    }

    /// Notes that the memory has another address or size.
    pub(crate) fn move_to(&mut self, address: CUdeviceptr, size: usize) {
        if address != self.address {
            disown_memory(self.address);
            self.created = own_memory(address);
            self.address = address;
        }
        self.size = size;
    }

    /// Refuses memory that the program has freed.
    fn check_live(&self, call: &'static str) -> Result<()> {
        check_memory(call, self.address, self.created)
    }

    /// Frees the memory; does nothing after the first call, or if the program has freed it.
    fn free(&mut self) -> Result<()> {
        let is_freed = self.is_freed_by_program();
        let address = std::mem::take(&mut self.address);
        if address == 0 || !self.generation.is_current() {
            return Ok(());
        }
        disown_memory(address);
        if is_freed {
            return Ok(());
        }
        if self.usage.deallocation_stream().has_ended_recording() {
            // The graph owns the memory, and may have been destroyed with it: the address may belong to another one.
            return Ok(());
        }
        self.free_in_context(address)
    }

    /// As [`DeviceBuffer::free`], for destructors: succeeds if the context was reset, which has freed the memory.
    fn free_unless_reset(&mut self) -> Result<()> {
        let address = self.address;
        match self.free() {
            Err(error)
                if was_freed_by_reset(
                    &error,
                    address,
                    self.created,
                    self.home,
                    self.context.as_ref(),
                    self.usage.deallocation_stream(),
                ) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    fn free_in_context(&mut self, address: CUdeviceptr) -> Result<()> {
        let others = self.usage.take_other_streams();
        let stream = self.usage.deallocation_stream();
        let _entered = match &self.context {
            Some(context) => Some(context.enter()?),
            None if others.iter().any(Stream::is_default) => Some(self.home.enter()?.0),
            None => None,
        };
        // The memory is freed in any case: this fails only if the context is unusable.
        if !others.is_empty() {
            report(wait_before_free(stream, &others));
        }
        match &self.source {
            AllocationSource::Pool(pool) => match pool.imports() {
                Some(imports) => imports.release(address, stream),
                // SAFETY: the pool allocated the address; it is freed once: `free` took it out.
                None => unsafe { free_async(address, stream) },
            },
            AllocationSource::Resource(resource) => {
                let _relaxed = RelaxedCapture::enter();
                // SAFETY: the resource allocated the address; it is freed once: `free` took it out.
                unsafe { resource.deallocate(address, self.size, stream) }
            }
        }
    }

    /// Frees the memory, on `stream` if one is given.
    ///
    /// # Errors
    ///
    /// The driver's error. The buffer is closed in any case.
    pub fn close(mut self, stream: Option<&Stream>) -> Result<()> {
        if stream.is_none() && self.is_simple() {
            // SAFETY: just checked.
            return unsafe { self.into_simple() }.free();
        }
        if let Some(stream) = stream
            && self.generation.is_current()
        {
            self.set_deallocation_stream(stream)?;
        }
        self.free()
    }

    /// Frees the memory as [`DeviceBuffer::close`] does, for a destructor.
    ///
    /// # Errors
    ///
    /// The driver's error, unless the program has reset or destroyed the context: that has freed the memory.
    pub fn close_in_destructor(mut self) -> Result<()> {
        if !self.is_simple() {
            return self.free_unless_reset();
        }
        let (address, created, home) = (self.address, self.created, self.home);
        // SAFETY: just checked.
        let memory = unsafe { self.into_simple() };
        match memory.free_and_keep_stream() {
            (Err(error), stream)
                if !was_freed_by_reset(&error, address, created, home, None, &stream) =>
            {
                Err(*error)
            }
            _ => Ok(()),
        }
    }

    /// Sets another deallocation stream, which first waits for the work that the former one holds then.
    ///
    /// # Errors
    ///
    /// The driver's error if it cannot tell the context of a stream; nothing is changed then.
    pub fn set_deallocation_stream(&mut self, stream: &Stream) -> Result<()> {
        let (context, _entered) = enter_allocation_context(stream, self.home)?;
        if stream.handle() != self.stream().handle() {
            self.context = context;
        }
        self.usage.set_deallocation_stream(stream);
        Ok(())
    }

    /// Declares that work of `stream` uses the memory: it is freed after the work that the stream holds at that time.
    ///
    /// The deallocation stream needs no declaration. A default stream belongs to the memory's device
    /// ([`DeviceBuffer::default_stream_device`]); [`Stream::on_device`] names that of another device.
    pub fn record_stream(&self, stream: &Stream) {
        self.usage.add_and_prune(stream);
    }

    /// Whether freeing it drops no object of another owner: it came from a pool, and only streams of this crate or
    /// default streams are known to use it.
    #[inline]
    pub fn has_no_foreign_owner(&mut self) -> bool {
        matches!(self.source, AllocationSource::Pool(_))
            && self.usage.is_exclusive_and_not_foreign()
    }

    /// The streams known to use the memory.
    #[inline]
    pub fn usage(&self) -> &StreamUsage {
        &self.usage
    }

    /// The streams known to use the memory: see [`DeviceBuffer::record_stream`].
    pub fn streams(&self) -> Vec<Stream> {
        self.usage.streams()
    }

    /// The device address; 0 for a size of 0.
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Size in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The pool of the memory; `None` for another resource.
    pub fn pool(&self) -> Option<&MemoryPool> {
        match &self.source {
            AllocationSource::Pool(pool) => Some(pool),
            AllocationSource::Resource(_) => None,
        }
    }

    /// The device of the memory; `None` if it belongs to no particular device.
    pub fn device(&self) -> Option<Device> {
        match &self.source {
            AllocationSource::Pool(pool) => pool.device(),
            AllocationSource::Resource(resource) => resource.device(),
        }
    }

    /// The device to which default streams belong for this buffer: that of the memory, else the one that was current
    /// at the allocation.
    pub fn default_stream_device(&self) -> Device {
        self.home
    }

    /// The deallocation stream.
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.usage.deallocation_stream()
    }

    /// Copies the whole buffer into another one of the same size, in stream order on `stream`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the sizes differ; otherwise the driver's error.
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
        self.check_live("DeviceBuffer::copy_to")?;
        destination.check_live("DeviceBuffer::copy_to")?;
        // Recorded first: the copy may have been queued even if an error is returned.
        self.record_stream(stream);
        if destination.home == self.home {
            destination.record_stream(stream);
        } else {
            destination.record_stream(&stream.on_device(self.home));
        }
        let _entered = enter_for_default_stream(stream, self.home)?;
        // SAFETY: both buffers hold `size` bytes and are not freed before the copy is done: see `record_stream`.
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

    /// Copies a slice of the buffer's size into it, in stream order on `stream`, and waits.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the sizes differ or the stream is being captured; the driver's error where the thread
    /// must not wait, in a host callback or because a capture forbids it: nothing is copied then; otherwise the error of
    /// earlier work.
    pub fn write<T: DeviceCopy>(&self, data: &[T], stream: &Stream) -> Result<()> {
        self.same_size("DeviceBuffer::write", "data", size_of_val(data), "bytes")?;
        self.check_live("DeviceBuffer::write")?;
        self.record_stream(stream);
        let options = CopyOptions::default();
        let _entered = enter_for_default_stream(stream, self.home)?;
        copy_and_wait("DeviceBuffer::write", stream, || {
            // SAFETY: both sides hold `size` bytes; the slice is borrowed until the copy is done.
            unsafe {
                copy_async(
                    self.address,
                    data.as_ptr() as u64,
                    self.size,
                    stream,
                    &options,
                )
            }
        })
    }

    /// Copies the buffer into a slice of its size, in stream order on `stream`, and waits.
    ///
    /// # Errors
    ///
    /// Same as [`DeviceBuffer::write`].
    pub fn read<T: DeviceCopy>(&self, out: &mut [T], stream: &Stream) -> Result<()> {
        self.same_size("DeviceBuffer::read", "out", size_of_val(out), "bytes")?;
        self.check_live("DeviceBuffer::read")?;
        self.record_stream(stream);
        let options = CopyOptions::default();
        let _entered = enter_for_default_stream(stream, self.home)?;
        copy_and_wait("DeviceBuffer::read", stream, || {
            // SAFETY: as in `write`; `T: DeviceCopy` makes every bit pattern valid.
            unsafe {
                copy_async(
                    out.as_mut_ptr() as u64,
                    self.address,
                    self.size,
                    stream,
                    &options,
                )
            }
        })
    }

    /// Fills the buffer with a pattern, in stream order on `stream`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size is not a multiple of the pattern's width; otherwise the driver's error.
    pub fn fill(&self, pattern: FillPattern, stream: &Stream) -> Result<()> {
        self.check_live("DeviceBuffer::fill")?;
        self.record_stream(stream);
        let _entered = enter_for_default_stream(stream, self.home)?;
        // SAFETY: the buffer holds `size` bytes and is not freed before it is filled: see `record_stream`.
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

/// Refuses memory that the program has freed; `created` is the result of [`own_memory`].
#[inline]
pub(crate) fn check_memory(call: &'static str, address: CUdeviceptr, created: u32) -> Result<()> {
    if is_memory_freed(address, created) {
        return Err(Error::Driver {
            call,
            status: CUresult::CUDA_ERROR_INVALID_VALUE,
            log: FREED.to_owned(),
        });
    }
    Ok(())
}

/// Why memory cannot be used that the program has freed.
#[doc(hidden)] // For the Python package.
pub const FREED: &str = "its memory was freed by the program, with cuMemFree, cuMemFreeAsync or cuMemFreeHost of the driver, or \
                         cudaFree, cudaFreeAsync or cudaFreeHost of the runtime";

impl StreamUsage {
    /// Makes the deallocation stream wait for the others and drops them; `address` is that of the memory. Errors are
    /// logged: the memory is freed in any case.
    pub fn order_free_after_others(&mut self, address: CUdeviceptr) {
        let others = self.take_other_streams();
        let ordered = || {
            // A default stream belongs to the current context, which has to be one of the memory's device.
            let _entered = if others
                .iter()
                .chain([self.deallocation_stream()])
                .any(Stream::is_default)
            {
                let device = match pointer_info(address)?.device {
                    Some(ordinal) => Device::new(ordinal)?,
                    None => Device::current()?,
                };
                Some(device.enter()?.0)
            } else {
                None
            };
            wait_before_free(self.deallocation_stream(), &others)
        };
        report(ordered());
    }
}

//! Untyped memory that is freed in the order of streams, whichever resource it came from.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use cupyrite_sys::driver::{CUdeviceptr, CUstreamCaptureStatus};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::device::Device;
use crate::context::{Context, ContextGuard};
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::memory::copy::{CopyOptions, FillPattern, copy_async, fill_async};
use crate::memory::pool::MemoryPool;
use crate::memory::resource::{MemoryResource, finish};
use crate::memory::typed::DeviceCopy;
use crate::stream::Stream;
use crate::stream::usage::StreamUsage;

/// Where memory comes from and goes back to. Pools are the common case, and need no second pointer.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Pool(MemoryPool),
    Resource(Arc<dyn MemoryResource>),
}

/// Untyped memory of a [`MemoryPool`] or another [`MemoryResource`]; freed once, in the order of a stream, when it is closed or dropped.
///
/// It owns its resource and the stream that it is freed on, so these may be let go of first. Copies and fills that ran on
/// other streams are waited for by that stream before the memory is freed, never by the host. A kernel's use of the
/// memory is known to nobody but who launches it: see [`DeviceBuffer::record_stream`].
#[derive(Debug)]
pub struct DeviceBuffer {
    pub(crate) address: CUdeviceptr,
    pub(crate) size: usize,
    /// Where it is freed, and other streams whose work uses it.
    usage: StreamUsage,
    /// The context that the stream is of where it is freed, where the stream alone does not say it.
    context: Option<Context>,
    source: Source,
    /// Whose default streams are meant.
    home: Device,
    generation: ForkGeneration,
}

impl Drop for DeviceBuffer {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0
            && let Err(error) = self.free()
        {
            report(Err(error));
        }
    }
}

/// Memory of a pool that belongs to nobody yet, for [`MemoryPool::into_buffer_from`]; lost where it is dropped.
#[derive(Debug)]
#[must_use = "the memory is lost unless a buffer owns it"]
pub struct RawAllocation {
    pub(crate) address: CUdeviceptr,
    /// Of the stream, where it alone does not say it.
    pub(crate) context: Option<Context>,
    pub(crate) home: Device,
}

impl RawAllocation {
    /// The device address; 0 for no bytes.
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }
}

/// Memory of a pool that is freed by the driver's call alone, on a stream that this crate made and for which nothing has to
/// wait: see [`DeviceBuffer::into_simple`].
#[derive(Debug)]
#[doc(hidden)] // For the Python package, which frees the memory of its objects with it.
#[must_use = "the memory is lost, and its pool never ends, unless it is freed"]
pub struct SimpleAllocation {
    address: CUdeviceptr,
    stream: Stream,
    /// Outlives the memory.
    pool: MemoryPool,
}

impl SimpleAllocation {
    /// Frees the memory.
    ///
    /// # Errors
    ///
    /// What the driver says. The memory is gone in any case.
    #[inline(always)]
    pub fn free(self) -> Result<()> {
        self.free_and_keep_stream().0.map_err(|error| *error)
    }

    /// As [`SimpleAllocation::free`], and returns the clone of the stream that the memory had, for who has a use for it: where
    /// it is the last one, dropping it destroys the stream.
    #[inline(always)]
    pub fn free_and_keep_stream(self) -> (std::result::Result<(), Box<Error>>, Stream) {
        let SimpleAllocation {
            address,
            stream,
            pool,
        } = self;
        let done = Self::free_at(address, &stream);
        drop(pool);
        (done, stream)
    }

    #[inline(always)]
    fn free_at(address: CUdeviceptr, stream: &Stream) -> std::result::Result<(), Box<Error>> {
        if let Some(context) = stream.context_if_destroyed() {
            // SAFETY: the caller gives up the memory.
            return unsafe { free_without_stream(address, context) }.map_err(Box::new);
        }
        // As in `free_in_order`.
        let relaxed = RelaxedCapture::enter();
        // SAFETY: the address is one of a pool's allocations, and is freed once, here: `DeviceBuffer::into_simple`
        // took it out of its owner.
        let done = match unsafe { driver!(cuMemFreeAsync(address, stream.handle())) } {
            Ok(()) => Ok(()),
            Err(error) => {
                crate::hint::cold_path();
                // SAFETY: as above; the driver has refused the call for want of a context.
                let again = stream.call_again(error, &|| unsafe {
                    driver!(cuMemFreeAsync(address, stream.handle()))
                });
                // Errors are large, and mostly there is none.
                again.map_err(Box::new)
            }
        };
        relaxed.leave();
        done
    }
}

/// Frees memory of a pool in the order of a stream, also while another stream is captured.
///
/// # Safety
///
/// As `cuMemFreeAsync`: the address is that of an allocation of a pool, and nobody else frees it.
pub(crate) unsafe fn free_in_order(address: CUdeviceptr, stream: &Stream) -> Result<()> {
    if let Some(context) = stream.context_if_destroyed() {
        // SAFETY: the caller's promise.
        return unsafe { free_without_stream(address, context) };
    }
    let _relaxed = RelaxedCapture::enter();
    // SAFETY: the caller's promise.
    stream.call(|| unsafe { driver!(cuMemFreeAsync(address, stream.handle())) })
}

/// Frees memory of a pool whose stream the program has destroyed: in the legacy default stream of its context, which waits
/// for what the stream held. After a reset of the context the driver has freed the memory, and returns an error.
///
/// # Safety
///
/// As [`free_in_order`].
#[cold]
#[inline(never)]
unsafe fn free_without_stream(address: CUdeviceptr, context: &Context) -> Result<()> {
    let _relaxed = RelaxedCapture::enter();
    // SAFETY: the caller's promise.
    context.with_current(|| unsafe { driver!(cuMemFreeAsync(address, std::ptr::null_mut())) })
}

impl DeviceBuffer {
    /// Allocates memory from a resource, for work of `stream`; the resource lives as long as the memory.
    ///
    /// The memory is freed in the order of the same stream, unless it is told otherwise. No bytes need no resource: such a
    /// buffer has the address 0.
    ///
    /// # Errors
    ///
    /// What the resource says.
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
        Self::from_source(Source::Resource(resource), home, bytes, stream.clone())
    }

    fn from_source(
        source: Source,
        home: Device,
        bytes: usize,
        stream: Stream,
    ) -> Result<DeviceBuffer> {
        let (mut address, mut context) = (0, None);
        if bytes != 0 {
            let (known, _entered) = home_of(&stream, home)?;
            context = known;
            address = match &source {
                Source::Pool(pool) => pool.take(bytes, &stream)?,
                Source::Resource(resource) => resource.allocate(bytes, &stream)?,
            };
        }
        let taken = RawAllocation {
            address,
            context,
            home,
        };
        Ok(DeviceBuffer::of(source, taken, bytes, stream))
    }

    /// What owns memory that was just taken from `source`, for work of `stream`.
    #[inline(always)]
    pub(crate) fn of(
        source: Source,
        taken: RawAllocation,
        bytes: usize,
        stream: Stream,
    ) -> DeviceBuffer {
        // First, as in `StreamUsage::new`.
        let generation = ForkGeneration::current();
        DeviceBuffer {
            address: taken.address,
            size: bytes,
            usage: StreamUsage::new(stream),
            context: taken.context,
            source,
            home: taken.home,
            generation,
        }
    }

    /// Memory that is there already, freed in the order of `stream`; freed also where an error is returned.
    pub(crate) fn adopted(
        source: Source,
        home: Device,
        address: CUdeviceptr,
        size: usize,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        let mut buffer = DeviceBuffer {
            address,
            size,
            usage: StreamUsage::new(stream.clone()),
            context: None,
            source,
            home,
            generation: ForkGeneration::current(),
        };
        buffer.context = home_of(stream, home)?.0;
        Ok(buffer)
    }

    /// Whether freeing the memory takes no more than the driver's call: [`DeviceBuffer::into_simple`] is for that.
    #[doc(hidden)]
    #[inline(always)]
    pub fn is_simple(&mut self) -> bool {
        self.address != 0
            && self.generation.is_current()
            && self.context.is_none()
            && matches!(&self.source, Source::Pool(pool) if pool.imports().is_none())
            && self.usage.is_single_owned_stream()
    }

    /// The memory without what it does not need to be freed.
    ///
    /// # Safety
    ///
    /// [`DeviceBuffer::is_simple`] holds.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn into_simple(self) -> SimpleAllocation {
        let memory = ManuallyDrop::new(self);
        // SAFETY: the caller's promise; it is not dropped.
        unsafe { memory.read_simple() }
    }

    /// As [`DeviceBuffer::into_simple`], for memory that is written over in its place: it is large, and most of it is not
    /// needed any more.
    ///
    /// # Safety
    ///
    /// [`DeviceBuffer::is_simple`] holds, and the buffer is neither used nor dropped afterwards.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn read_simple(&self) -> SimpleAllocation {
        let Source::Pool(pool) = &self.source else {
            // SAFETY: the caller's promise.
            unsafe { std::hint::unreachable_unchecked() }
        };
        SimpleAllocation {
            address: self.address,
            // SAFETY: both are taken once, and the rest, which is never looked at again, owns nothing: there is no context,
            // and no other stream (see `StreamUsage::is_single_owned_stream`).
            stream: unsafe { std::ptr::read(self.usage.deallocation_stream()) },
            // SAFETY: as above.
            pool: unsafe { std::ptr::read(pool) },
        }
    }

    /// Frees the memory; does nothing the second time.
    fn free(&mut self) -> Result<()> {
        let address = std::mem::take(&mut self.address);
        if address == 0 || !self.generation.is_current() {
            return Ok(());
        }
        self.free_in_context(address)
    }

    fn free_in_context(&mut self, address: CUdeviceptr) -> Result<()> {
        let others = self.usage.take_other_streams();
        let stream = self.usage.deallocation_stream();
        let _entered = match &self.context {
            Some(context) => Some(context.enter()?),
            None if others.iter().any(Stream::is_default) => Some(self.home.enter()?.0),
            None => None,
        };
        // The memory is freed in any case: what fails here is a context that can no longer be used.
        if !others.is_empty() {
            report(wait_before_end(stream, &others));
        }
        match &self.source {
            Source::Pool(pool) => match pool.imports() {
                Some(imports) => imports.release(address, stream),
                // SAFETY: the pool allocated it, and it is freed once: `free` took the address out.
                None => unsafe { free_in_order(address, stream) },
            },
            Source::Resource(resource) => {
                let _relaxed = RelaxedCapture::enter();
                // SAFETY: the resource allocated it, and it is freed once: `free` took the address out.
                unsafe { resource.deallocate(address, self.size, stream) }
            }
        }
    }

    /// Frees the memory, in the order of `stream` where one is given.
    ///
    /// # Errors
    ///
    /// What the driver says. The buffer is gone in any case.
    pub fn close(mut self, stream: Option<&Stream>) -> Result<()> {
        if stream.is_none() && self.is_simple() {
            // SAFETY: just asked.
            return unsafe { self.into_simple() }.free();
        }
        if let Some(stream) = stream
            && self.generation.is_current()
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
        let (context, _entered) = home_of(stream, self.home)?;
        if stream.handle() != self.stream().handle() {
            self.context = context;
        }
        self.usage.set_deallocation_stream(stream);
        Ok(())
    }

    /// Says that work of `stream` uses the memory, so that it is freed after what the stream holds when it is freed.
    ///
    /// Nothing has to be said of the stream that it is freed on. A default stream is that of the memory's device
    /// ([`DeviceBuffer::default_stream_device`]); that of another device is named by [`Stream::on_device`].
    pub fn record_stream(&self, stream: &Stream) {
        self.usage.add_and_prune(stream);
    }

    /// Whether freeing it ends nothing of anybody else's: it came from a pool, and only a stream of this crate's, or a
    /// default one, is known to use it.
    #[inline]
    pub fn has_no_foreign_owner(&mut self) -> bool {
        matches!(self.source, Source::Pool(_)) && self.usage.is_exclusive_and_not_foreign()
    }

    /// The streams whose work uses the memory, as far as this buffer knows.
    #[inline]
    pub fn usage(&self) -> &StreamUsage {
        &self.usage
    }

    /// The streams whose work uses the memory, as far as this buffer knows: see [`DeviceBuffer::record_stream`].
    pub fn streams(&self) -> Vec<Stream> {
        self.usage.streams()
    }

    /// The device address; 0 for no bytes.
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Size in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The pool that it came from; `None` for memory of another resource.
    pub fn pool(&self) -> Option<&MemoryPool> {
        match &self.source {
            Source::Pool(pool) => Some(pool),
            Source::Resource(_) => None,
        }
    }

    /// The device whose memory it is; `None` for memory of no device in particular.
    pub fn device(&self) -> Option<Device> {
        match &self.source {
            Source::Pool(pool) => pool.device(),
            Source::Resource(resource) => resource.device(),
        }
    }

    /// The device whose default streams are meant for it: that of the memory, or else the one that was current when it was
    /// allocated.
    pub fn default_stream_device(&self) -> Device {
        self.home
    }

    /// The stream that it is freed on.
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.usage.deallocation_stream()
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
        self.record_stream(stream);
        if destination.home == self.home {
            destination.record_stream(stream);
        } else {
            destination.record_stream(&stream.on_device(self.home));
        }
        let _entered = enter_for_default_stream(stream, self.home)?;
        // SAFETY: both blocks hold `size` bytes, and are not freed before the copy is done: see `record_stream`.
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
        self.record_stream(stream);
        let options = CopyOptions::default();
        let _entered = enter_for_default_stream(stream, self.home)?;
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
        self.record_stream(stream);
        let options = CopyOptions::default();
        let _entered = enter_for_default_stream(stream, self.home)?;
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
        self.record_stream(stream);
        let _entered = enter_for_default_stream(stream, self.home)?;
        // SAFETY: the block holds `size` bytes and is not freed before it is filled: see `record_stream`.
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
#[inline]
pub(crate) fn home_of(
    stream: &Stream,
    device: Device,
) -> Result<(Option<Context>, Option<ContextGuard>)> {
    if stream.is_owned() {
        Ok((None, None))
    } else {
        home_of_others(stream, device)
    }
}

#[inline(never)]
fn home_of_others(
    stream: &Stream,
    device: Device,
) -> Result<(Option<Context>, Option<ContextGuard>)> {
    if stream.is_default() {
        let (entered, context) = device.enter()?;
        Ok((Some(context), Some(entered)))
    } else {
        Ok((Some(stream.context()?), None))
    }
}

/// Makes a context of `device` current, where `stream` is a default stream and the current one is of another device or
/// there is none. Other streams need no current context.
///
/// # Errors
///
/// What the driver says.
pub fn enter_for_default_stream(stream: &Stream, device: Device) -> Result<Option<ContextGuard>> {
    if stream.is_default() {
        Ok(Some(device.enter()?.0))
    } else {
        Ok(None)
    }
}

/// Makes later work of `stream` wait for what the others hold now; the host does not wait. Default streams among them are
/// those of the current context, or of the device that they are of ([`Stream::on_device`]).
///
/// # Errors
///
/// What the driver says.
pub fn wait_for_streams(stream: &Stream, others: &[Stream]) -> Result<()> {
    let mut done = Ok(());
    for other in others {
        if other != stream {
            // One that fails does not keep the others from being waited for.
            done = done.and(order(other, stream));
        }
    }
    done
}

/// As [`wait_for_streams`], before memory is freed in the order of `stream`. Where that is captured, or must not be used
/// because a stream is that it waits for, it cannot wait for what is not captured, and to try that spoils the capture: so
/// the host waits.
pub(crate) fn wait_before_end(stream: &Stream, others: &[Stream]) -> Result<()> {
    if matches!(is_capturing(stream), Ok(false)) {
        return wait_for_streams(stream, others);
    }
    let _relaxed = RelaxedCapture::enter();
    others.iter().for_each(finish);
    Ok(())
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

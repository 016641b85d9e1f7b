//! Typed device memory.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::destroyed::{disown_memory, is_memory_freed, own_memory};
use cupyrite_sys::driver::CUdeviceptr;

use crate::context::capture_mode::{self, RelaxedCapture};
use crate::context::{Context, Device};
use crate::error::{Error, Result, driver};
use crate::memory::device_copy::DeviceCopy;
use crate::memory::device_ptr::DevicePtr;
use crate::memory::raw::check_memory;
use crate::stream::Stream;
use crate::stream::capture::{is_capturing, synchronize_unless_capturing};

/// Device memory for `len` elements of `T`; cheap to clone. The last clone frees it.
///
/// Freeing waits for the context's work (`cuMemFree`), so no running kernel loses its memory.
#[derive(Debug)]
pub struct Buffer<T> {
    inner: Arc<BufferAllocation>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

#[derive(Debug)]
struct BufferAllocation {
    address: CUdeviceptr,
    /// The result of [`own_memory`].
    created: u32,
    context: Context,
}

impl BufferAllocation {
    fn check_live(&self, call: &'static str) -> Result<()> {
        check_memory(call, self.address, self.created)
    }
}

impl Drop for BufferAllocation {
    fn drop(&mut self) {
        disown_memory(self.address);
        if self.address != 0 && !is_memory_freed(self.address, self.created) {
            capture_mode::release(|| {
                // SAFETY: `Buffer::new` allocated the address; it is freed once, here.
                self.context
                    .with_current(|| unsafe { driver!(owned cuMemFree(self.address)) })
            });
        }
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Buffer {
            inner: self.inner.clone(),
            len: self.len,
            element: PhantomData,
        }
    }
}

impl<T: DeviceCopy> Buffer<T> {
    pub(crate) fn new(context: &Context, len: usize) -> Result<Buffer<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
            let problem = format!(
                "{len} elements of {} bytes are more than an address space holds",
                size_of::<T>()
            );
            Error::argument("Device::buffer", "len", problem)
        })?;
        let mut address: CUdeviceptr = 0;
        if bytes != 0 {
            // SAFETY: `address` is valid for writes.
            context.with_current(|| unsafe { driver!(cuMemAlloc(&mut address, bytes)) })?;
        }
        let inner = Arc::new(BufferAllocation {
            address,
            created: own_memory(address),
            context: context.clone(),
        });
        Ok(Buffer {
            inner,
            len,
            element: PhantomData,
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The device address; 0 for an empty buffer.
    pub fn address(&self) -> CUdeviceptr {
        self.inner.address
    }

    /// The host location of the address, for passing it to a launch without a copy.
    pub(crate) fn address_place(&self) -> *const CUdeviceptr {
        &self.inner.address
    }

    /// The address as a typed launch argument that does not keep the buffer alive.
    pub fn as_ptr(&self) -> DevicePtr<T> {
        DevicePtr::new(self.inner.address)
    }

    /// Its address, and what [`is_memory_freed`] takes besides.
    #[doc(hidden)] // For the Python package.
    pub fn created(&self) -> u32 {
        self.inner.created
    }

    /// The context it was allocated in.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Copies a slice of the same length into the buffer and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the lengths differ; otherwise the error of earlier work.
    pub fn copy_from(&self, data: &[T]) -> Result<()> {
        self.same_length("Buffer::copy_from", "data", data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.inner.check_live("Buffer::copy_from")?;
        // SAFETY: source and destination hold `size_bytes()` bytes; the call returns after it has read the source.
        self.context().with_current(|| unsafe {
            driver!(cuMemcpyHtoD(
                self.inner.address,
                data.as_ptr().cast::<c_void>(),
                self.size_bytes()
            ))
        })
    }

    /// Copies the buffer into a slice of the same length and waits for it.
    ///
    /// # Errors
    ///
    /// Same as [`Buffer::copy_from`].
    pub fn copy_to(&self, out: &mut [T]) -> Result<()> {
        self.same_length("Buffer::copy_to", "out", out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        self.inner.check_live("Buffer::copy_to")?;
        // SAFETY: source and destination hold `size_bytes()` bytes; `T: DeviceCopy` makes every bit pattern valid.
        self.context().with_current(|| unsafe {
            driver!(cuMemcpyDtoH(
                out.as_mut_ptr().cast::<c_void>(),
                self.inner.address,
                self.size_bytes()
            ))
        })
    }

    /// Copies another buffer of the same length into this one, in stream order on `stream`.
    ///
    /// Freeing a buffer waits for the copy. On the stream of a [`GraphBuilder`](crate::graph::GraphBuilder) the copy becomes
    /// a node, and the graph retains both buffers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the lengths differ, or for a captured stream that is not
    /// [`GraphBuilder::stream`](crate::graph::GraphBuilder::stream); otherwise the error of earlier work.
    pub fn copy_from_buffer(&self, stream: &Stream, source: &Buffer<T>) -> Result<()> {
        self.same_length("Buffer::copy_from_buffer", "source", source.len())?;
        if self.is_empty() {
            return Ok(());
        }
        stream.check_live()?;
        self.inner.check_live("Buffer::copy_from_buffer")?;
        source.inner.check_live("Buffer::copy_from_buffer")?;
        // SAFETY: both blocks hold `size_bytes()` bytes and outlive the copy: freeing waits for the device, and a graph that
        // records the copy retains them.
        let copy = || unsafe {
            driver!(cuMemcpyDtoDAsync(
                self.address(),
                source.address(),
                self.size_bytes(),
                stream.handle()
            ))
        };
        self.context().with_current(|| {
            if stream.is_of_builder() {
                self.retain_for_graph(stream, source)?;
            } else if is_capturing(stream)? {
                let problem = "is being captured, and the graph would not keep the buffers; pass GraphBuilder::stream()";
                return Err(Error::argument("Buffer::copy_from_buffer", "stream", problem));
            }
            stream.queue(copy)
        })
    }

    /// Retains both buffers for the graph that the stream records.
    #[cold]
    fn retain_for_graph(&self, stream: &Stream, source: &Buffer<T>) -> Result<()> {
        for buffer in [self, source] {
            let inner = &buffer.inner;
            stream.retain_recorded_once(Arc::as_ptr(inner).addr(), || inner.clone())?;
        }
        Ok(())
    }

    /// Copies the contents to the host.
    ///
    /// # Errors
    ///
    /// The error of earlier work.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut out: Vec<T> = Vec::with_capacity(self.len);
        if self.len != 0 {
            self.inner.check_live("Buffer::to_vec")?;
            // SAFETY: the vector has capacity for `size_bytes()` bytes; on success all of them are written, and every
            // bit pattern is a `T`.
            self.context().with_current(|| unsafe {
                driver!(cuMemcpyDtoH(
                    out.as_mut_ptr().cast::<c_void>(),
                    self.inner.address,
                    self.size_bytes()
                ))?;
                out.set_len(self.len);
                Ok(())
            })?;
        }
        Ok(out)
    }

    /// Sets every byte to zero and waits for it.
    ///
    /// # Errors
    ///
    /// The error of earlier work.
    pub fn zero(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.inner.check_live("Buffer::zero")?;
        self.context().with_current(|| {
            // SAFETY: the buffer holds `size_bytes()` bytes. `cuMemsetD8` may return before it is done, so this waits
            // for the legacy default stream, in which it runs.
            unsafe {
                driver!(cuMemsetD8(self.inner.address, 0, self.size_bytes()))?;
                driver!(cuStreamSynchronize(std::ptr::null_mut()))
            }
        })
    }

    fn same_length(&self, function: &'static str, parameter: &str, given: usize) -> Result<()> {
        if given == self.len {
            return Ok(());
        }
        Err(Error::argument(
            function,
            parameter,
            format!("has {given} elements, the buffer has {}", self.len),
        ))
    }
}

impl Device {
    /// Allocates memory for `len` elements, contents unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size overflows; otherwise the driver's error, such as
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn buffer<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self.context()?, len)
    }

    /// Allocates memory for `len` elements and zeroes it.
    ///
    /// # Errors
    ///
    /// Same as [`Device::buffer`].
    pub fn buffer_zeroed<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.buffer(len)?;
        buffer.zero()?;
        Ok(buffer)
    }

    /// Allocates memory and copies `data` into it.
    ///
    /// # Errors
    ///
    /// Same as [`Device::buffer`].
    pub fn buffer_from<T: DeviceCopy>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.buffer(data.len())?;
        buffer.copy_from(data)?;
        Ok(buffer)
    }

    /// Frees memory of this device by its address (`cuMemFree`), after waiting for `stream` if one is given, and for
    /// the device. A [`Buffer`] frees its own. Runs in relaxed capture mode ([`RelaxedCapture`]).
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_VALUE` for an address that is not the beginning of an allocation.
    ///
    /// # Safety
    ///
    /// Nothing uses the memory, and no [`Buffer`] owns it.
    pub unsafe fn free(&self, address: CUdeviceptr, stream: Option<&Stream>) -> Result<()> {
        let _relaxed = RelaxedCapture::enter();
        let _entered = self.enter()?;
        if let Some(stream) = stream {
            synchronize_unless_capturing(stream);
        }
        // SAFETY: the caller's contract.
        unsafe { driver!(cuMemFree(address)) }
    }
}

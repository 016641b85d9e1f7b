//! Device memory.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use cupyrite_sys::driver::CUdeviceptr;

use crate::context::Context;
use crate::context::capture_mode::{self, RelaxedCapture};
use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::memory::resource::finish;
use crate::module::args::DevicePtr;
use crate::stream::Stream;

/// Types whose bytes may be copied to a device and back: plain data without pointers to host objects, valid for
/// every bit pattern that a kernel may write.
///
/// # Safety
///
/// The implementor promises just that: `Copy`, no padding whose contents matter, no invalid bit patterns (so not
/// `bool`, `char` or enums), no references.
pub unsafe trait DeviceCopy: Copy + Send + Sync + 'static {}

macro_rules! device_copy {
    ($($t:ty),*) => {$(
        // SAFETY: plain numbers; every bit pattern is a value.
        unsafe impl DeviceCopy for $t {}
    )*};
}
device_copy!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
);
// SAFETY: an array of plain data is plain data.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}

/// A block of device memory holding `len` elements of `T`; cheap to clone, the last clone frees it.
///
/// Freeing waits for the context's work (`cuMemFree`), so memory is never taken from under a running kernel.
#[derive(Debug)]
pub struct Buffer<T> {
    inner: Arc<Inner>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

#[derive(Debug)]
struct Inner {
    address: CUdeviceptr,
    context: Context,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.address != 0 {
            capture_mode::release(|| {
                // SAFETY: the address was allocated by `Buffer::new` and is freed once, here.
                self.context
                    .with_current(|| unsafe { driver!(cuMemFree(self.address)) })
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
            // SAFETY: `address` is a valid place for the result.
            context.with_current(|| unsafe { driver!(cuMemAlloc(&mut address, bytes)) })?;
        }
        let inner = Arc::new(Inner {
            address,
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

    /// Whether it holds no element.
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

    /// Where the address lies on the host, for passing it to a launch without a copy.
    pub(crate) fn address_place(&self) -> *const CUdeviceptr {
        &self.inner.address
    }

    /// The address as a typed launch argument that does not keep the buffer alive.
    pub fn as_ptr(&self) -> DevicePtr<T> {
        DevicePtr::new(self.inner.address)
    }

    /// The context it was allocated in.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Copies a slice of the same length into the buffer and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the lengths differ; otherwise what earlier work raised.
    pub fn copy_from(&self, data: &[T]) -> Result<()> {
        self.same_length("Buffer::copy_from", "data", data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: source and destination hold `size_bytes()` bytes, and the call returns after it has read the source.
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
    /// As [`Buffer::copy_from`].
    pub fn copy_to(&self, out: &mut [T]) -> Result<()> {
        self.same_length("Buffer::copy_to", "out", out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        // SAFETY: source and destination hold `size_bytes()` bytes; `T: DeviceCopy` makes every bit pattern valid.
        self.context().with_current(|| unsafe {
            driver!(cuMemcpyDtoH(
                out.as_mut_ptr().cast::<c_void>(),
                self.inner.address,
                self.size_bytes()
            ))
        })
    }

    /// Copies another buffer of the same length into this one, in the order of `stream`.
    ///
    /// Both buffers must stay alive until the copy is done; freeing one waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the lengths differ; otherwise what earlier work raised.
    pub fn copy_from_buffer(&self, stream: &Stream, source: &Buffer<T>) -> Result<()> {
        self.same_length("Buffer::copy_from_buffer", "source", source.len())?;
        if self.is_empty() {
            return Ok(());
        }
        stream.check_live()?;
        // SAFETY: both blocks hold `size_bytes()` bytes and outlive the copy, because freeing waits for the device.
        self.context().with_current(|| unsafe {
            driver!(cuMemcpyDtoDAsync(
                self.address(),
                source.address(),
                self.size_bytes(),
                stream.handle()
            ))
        })
    }

    /// A copy of the contents on the host.
    ///
    /// # Errors
    ///
    /// What earlier work raised.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut out: Vec<T> = Vec::with_capacity(self.len);
        if self.len != 0 {
            // SAFETY: the vector has room for `size_bytes()` bytes; on success all of them are written, and every bit
            // pattern is a `T`.
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
    /// What earlier work raised.
    pub fn zero(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.context().with_current(|| {
            // SAFETY: the block holds `size_bytes()` bytes. `cuMemsetD8` may return before it is done, so the legacy
            // default stream, which it runs in, is waited for.
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
    /// Frees memory of this device by its address (`cuMemFree`), after waiting for the device, and first for `stream` where
    /// one is given. A [`Buffer`] frees its own. It is no part of a capture ([`RelaxedCapture`]).
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_VALUE` for an address that is not the beginning of an allocation.
    ///
    /// # Safety
    ///
    /// Nothing uses the memory any more, and no [`Buffer`] owns it.
    pub unsafe fn free(&self, address: CUdeviceptr, stream: Option<&Stream>) -> Result<()> {
        let _relaxed = RelaxedCapture::enter();
        let _entered = self.enter()?;
        if let Some(stream) = stream {
            finish(stream);
        }
        // SAFETY: the caller's promise.
        unsafe { driver!(cuMemFree(address)) }
    }
}

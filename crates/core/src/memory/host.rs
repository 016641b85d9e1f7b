//! Typed page-locked host memory, and scoped copies.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cupyrite_sys::driver::CUdeviceptr;

use crate::context::Context;
use crate::context::capture_mode::RelaxedCapture;
use crate::context::device::Device;
use crate::error::{Error, Result, report};
use crate::memory::copy::{CopyOptions, copy_async};
use crate::memory::raw::DeviceBuffer;
use crate::memory::resource::HostMemoryResource;
use crate::memory::typed::{Buffer, DeviceCopy};
use crate::stream::Stream;
use crate::stream::capture::is_capturing;

/// A slice in page-locked host memory: copies from and to it run asynchronously and without staging.
///
/// Dropping it waits for the legacy default stream and frees it; [`Stream::scope`] has waited for its copies before.
#[derive(Debug)]
pub struct HostBuffer<T> {
    memory: DeviceBuffer,
    len: usize,
    element: PhantomData<T>,
}

impl<T: DeviceCopy> HostBuffer<T> {
    /// A slice of `len` copies of `value`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size overflows; otherwise the driver's error, such as
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn filled(len: usize, value: T) -> Result<HostBuffer<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
            let problem = format!(
                "{len} elements of {} bytes are more than an address space holds",
                size_of::<T>()
            );
            Error::argument("HostBuffer::filled", "len", problem)
        })?;
        let memory = DeviceBuffer::from_resource(
            Arc::new(HostMemoryResource),
            bytes,
            &Stream::legacy_default(),
        )?;
        let place = std::ptr::with_exposed_provenance_mut::<T>(memory.address() as usize);
        for i in 0..if bytes == 0 { 0 } else { len } {
            // SAFETY: new memory for `len` elements, aligned to pages (`cuMemHostAlloc`).
            unsafe { place.add(i).write(value) };
        }
        Ok(HostBuffer {
            memory,
            len,
            element: PhantomData,
        })
    }

    /// A copy of a slice.
    ///
    /// # Errors
    ///
    /// Same as [`HostBuffer::filled`].
    pub fn from_slice(data: &[T]) -> Result<HostBuffer<T>> {
        let Some(&first) = data.first() else {
            return Ok(HostBuffer {
                memory: DeviceBuffer::from_resource(
                    Arc::new(HostMemoryResource),
                    0,
                    &Stream::legacy_default(),
                )?,
                len: 0,
                element: PhantomData,
            });
        };
        let mut made = Self::filled(data.len(), first)?;
        made.copy_from_slice(data);
        Ok(made)
    }

    /// The address, valid on the host and on devices.
    pub fn address(&self) -> CUdeviceptr {
        self.memory.address()
    }
}

impl<T: DeviceCopy> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.memory.size() == 0 {
            // Zero-sized elements need only an aligned pointer.
            // SAFETY: no bytes are read: there are no elements, or they are zero-sized.
            return unsafe {
                std::slice::from_raw_parts(std::ptr::NonNull::dangling().as_ptr(), self.len)
            };
        }
        let place = std::ptr::with_exposed_provenance::<T>(self.memory.address() as usize);
        // SAFETY: `len` elements, written by the constructor; this owns them, and copies that use them borrow it.
        unsafe { std::slice::from_raw_parts(place, self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.memory.size() == 0 {
            // SAFETY: as in `deref`.
            return unsafe {
                std::slice::from_raw_parts_mut(std::ptr::NonNull::dangling().as_ptr(), self.len)
            };
        }
        let place = std::ptr::with_exposed_provenance_mut::<T>(self.memory.address() as usize);
        // SAFETY: as in `deref`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(place, self.len) }
    }
}

/// Queues copies in a stream; what they use stays borrowed until [`Stream::scope`] has waited.
#[derive(Debug)]
pub struct StreamScope<'scope, 'env: 'scope> {
    stream: &'scope Stream,
    /// The context of a default stream, for the copies and for the wait.
    context: Option<&'scope Context>,
    // Invariant in both lifetimes, as in `std::thread::Scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl Stream {
    /// Queues asynchronous copies and waits for them at the end.
    ///
    /// Everything that a copy uses is borrowed until then: reading a result too early, or changing or freeing a source
    /// too early, does not compile.
    ///
    /// ```
    /// # use cupyrite::{Device, HostBuffer};
    /// # fn main() -> cupyrite::Result<()> {
    /// let device = Device::new(0)?;
    /// let stream = device.create_stream()?;
    /// let there = device.buffer::<f32>(3)?;
    /// let (data, mut back) = (HostBuffer::from_slice(&[1.0f32, 2.0, 3.0])?, [0.0; 3]);
    /// stream.scope(|scope| {
    ///     scope.upload(&data, &there)?;
    ///     scope.download(&there, &mut back)
    /// })?;
    /// assert_eq!(back, [1.0, 2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # use cupyrite::Device;
    /// # fn main() -> cupyrite::Result<()> {
    /// # let device = Device::new(0)?;
    /// # let stream = device.create_stream()?;
    /// # let there = device.buffer::<f32>(3)?;
    /// let mut back = [0.0; 3];
    /// stream.scope(|scope| {
    ///     scope.download(&there, &mut back)?;
    ///     println!("{}", back[0]); // not there yet
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0597
    /// # use cupyrite::Device;
    /// # fn main() -> cupyrite::Result<()> {
    /// # let device = Device::new(0)?;
    /// # let stream = device.create_stream()?;
    /// # let there = device.buffer::<f32>(3)?;
    /// stream.scope(|scope| {
    ///     let data = [1.0; 3];
    ///     scope.upload(&data, &there) // gone before it was copied
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `body`; otherwise the error of the wait: that of the copies or of earlier work.
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope StreamScope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        /// Waits, also if `body` panics: the borrows end afterwards.
        struct Finish<'a>(&'a Stream, Option<&'a Context>);
        impl Finish<'_> {
            fn wait(&self) -> Result<()> {
                // The borrows end now, also while another thread captures.
                let _relaxed = RelaxedCapture::enter();
                with_optional_context(self.1, || self.0.synchronize())
            }
        }
        impl Drop for Finish<'_> {
            fn drop(&mut self) {
                report(self.wait());
            }
        }
        let context = if self.is_default() {
            Some(Device::current()?.active_context()?)
        } else {
            None
        };
        let finish = Finish(self, context.as_ref());
        let done = body(&StreamScope {
            stream: self,
            context: context.as_ref(),
            scope: PhantomData,
            env: PhantomData,
        })?;
        finish.wait()?;
        // Disarmed: it has waited.
        std::mem::forget(finish);
        Ok(done)
    }
}

impl<'scope, 'env> StreamScope<'scope, 'env> {
    /// The stream.
    pub fn stream(&self) -> &'scope Stream {
        self.stream
    }

    /// Queues the copy of a slice into a buffer of as many elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the lengths differ or the stream is being captured; otherwise the driver's error.
    pub fn upload<T: DeviceCopy>(&self, data: &'env [T], to: &'env Buffer<T>) -> Result<()> {
        check_length("StreamScope::upload", "data", data.len(), to.len())?;
        self.copy(to.address(), data.as_ptr() as u64, size_of_val(data))
    }

    /// Queues the copy of a buffer into a slice of as many elements.
    ///
    /// # Errors
    ///
    /// Same as [`StreamScope::upload`].
    pub fn download<T: DeviceCopy>(&self, from: &'env Buffer<T>, out: &'env mut [T]) -> Result<()> {
        check_length("StreamScope::download", "out", out.len(), from.len())?;
        let bytes = size_of_val(out);
        self.copy(out.as_mut_ptr() as u64, from.address(), bytes)
    }

    fn copy(&self, destination: CUdeviceptr, source: CUdeviceptr, bytes: usize) -> Result<()> {
        with_optional_context(self.context, || {
            if is_capturing(self.stream)? {
                // The copy would run when the graph is launched, after the borrow.
                let problem = "is being captured; a graph borrows nothing";
                return Err(Error::argument("Stream::scope", "stream", problem));
            }
            let options = CopyOptions::default();
            // SAFETY: both sides hold `bytes` bytes and are borrowed until `scope` has waited; every bit pattern is a
            // `T`.
            unsafe { copy_async(destination, source, bytes, self.stream, &options) }
        })
    }
}

/// Runs `body`, with a context current if one is given.
fn with_optional_context<R>(
    context: Option<&Context>,
    body: impl FnOnce() -> Result<R>,
) -> Result<R> {
    match context {
        Some(context) => context.with_current(body),
        None => body(),
    }
}

fn check_length(function: &'static str, parameter: &str, given: usize, len: usize) -> Result<()> {
    if given == len {
        return Ok(());
    }
    let problem = format!("has {given} elements, the buffer has {len}");
    Err(Error::argument(function, parameter, problem))
}

//! Typed page-locked host memory, and scoped copies.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use cupyrite_sys::driver::CUdeviceptr;

use crate::context::capture_mode::RelaxedCapture;
use crate::context::{Context, Device};
use crate::error::{Error, Result, report};
use crate::memory::copy::{CopyOptions, copy_async};
use crate::memory::device_copy::DeviceCopy;
use crate::memory::raw::DeviceBuffer;
use crate::memory::resource::HostMemoryResource;
use crate::memory::typed::Buffer;
use crate::stream::{Event, EventOptions, Stream, is_capturing, lending};

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
    pending: &'scope PendingCopies,
    // Invariant in both lifetimes, as in `std::thread::Scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The copies of a scope.
#[derive(Debug)]
struct PendingCopies {
    /// The context of a default stream, for the copies and for the wait.
    context: Option<Context>,
    /// The thread to which a per-thread default stream belongs.
    thread: ThreadId,
    /// Recorded after each copy: the stream may be captured at the end of the scope, when it cannot be waited for.
    last: OnceLock<Event>,
}

impl PendingCopies {
    /// Queues a copy.
    fn queue(&self, stream: &Stream, copy: impl FnOnce() -> Result<()>) -> Result<()> {
        const FUNCTION: &str = "Stream::scope";
        if stream.is_per_thread() && self.thread != thread::current().id() {
            let problem = "is the per-thread default stream of another thread; pass a stream of Device::create_stream";
            return Err(Error::argument(FUNCTION, "stream", problem));
        }
        with_optional_context(self.context.as_ref(), || {
            lending::check(FUNCTION, stream)?;
            let last = match self.last.get() {
                Some(event) => event,
                None => {
                    let event = Event::new(&stream.context()?, &EventOptions::default())?;
                    self.last.get_or_init(|| event)
                }
            };
            let queued = copy();
            let recorded = last.record(stream);
            if recorded.is_err() && queued.is_ok() {
                lending::settle(stream, None);
            }
            queued.and(recorded)
        })
    }

    /// Waits for the copies, and for the stream unless it is captured. Returns when the device has left the memory, also
    /// with an error.
    fn wait(&self, stream: &Stream) -> Result<()> {
        // The borrows end now, also while another thread captures.
        let _relaxed = RelaxedCapture::enter();
        let last = self.last.get();
        let waited = with_optional_context(self.context.as_ref(), || match last {
            Some(event) if is_capturing(stream)? => event.synchronize(),
            _ => stream.synchronize(),
        });
        if waited.is_err() && last.is_some() {
            // A query of an event needs no current context.
            lending::settle(stream, last);
        }
        waited
    }
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
    ///     scope.upload(&data, &there) // dropped before it was copied
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// A stream that `body` begins to capture is not waited for; the copies before the capture are.
    ///
    /// The borrows end when the device has left the memory, also if this returns an error. If the driver refuses to tell when
    /// that is, the process is aborted.
    ///
    /// # Errors
    ///
    /// Those of `body`; otherwise the error of the wait: that of the copies or of earlier work.
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope StreamScope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        /// Waits, also if `body` panics: the borrows end afterwards.
        struct Finish<'a>(&'a Stream, &'a PendingCopies);
        impl Drop for Finish<'_> {
            fn drop(&mut self) {
                report(self.1.wait(self.0));
            }
        }
        let context = if self.is_default() {
            Some(Device::current()?.active_context()?)
        } else {
            None
        };
        let pending = PendingCopies {
            context,
            thread: thread::current().id(),
            last: OnceLock::new(),
        };
        let finish = Finish(self, &pending);
        let done = body(&StreamScope {
            stream: self,
            pending: &pending,
            scope: PhantomData,
            env: PhantomData,
        })?;
        // Disarmed: the wait follows.
        std::mem::forget(finish);
        pending.wait(self)?;
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
    /// [`Error::InvalidArgument`] if the lengths differ, the stream is being captured, or it is the per-thread default
    /// stream of another thread; `CUDA_ERROR_NOT_PERMITTED` in a host callback; otherwise the driver's error.
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
        let options = CopyOptions::default();
        self.pending.queue(self.stream, || {
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

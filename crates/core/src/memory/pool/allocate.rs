//! Buffers of memory that a pool allocates.

use cupyrite_sys::driver::CUdeviceptr;

use crate::context::Device;
use crate::error::{Error, Result, driver};
use crate::memory::pool::{MemoryPool, PoolKind};
use crate::memory::raw::{AllocationSource, DeviceBuffer, RawAllocation};
use crate::memory::stream_context::enter_allocation_context;
use crate::stream::Stream;

impl MemoryPool {
    /// A buffer of existing memory, freed in stream order on `stream`, also if this fails.
    pub(crate) fn adopt(
        &self,
        home: Device,
        address: CUdeviceptr,
        size: usize,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        DeviceBuffer::from_existing(
            AllocationSource::Pool(self.clone()),
            home,
            address,
            size,
            stream,
        )
    }

    /// Allocates memory in stream order on `stream`, with unspecified contents.
    ///
    /// Later work of `stream` may use the memory, and other streams once they wait for this point. It is freed on the
    /// same stream unless another one is set. A size of 0 needs no driver: the buffer has the address 0.
    ///
    /// # Errors
    ///
    /// The driver's error, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    #[inline]
    pub fn allocate(&self, bytes: usize, stream: &Stream) -> Result<DeviceBuffer> {
        self.clone().into_buffer(bytes, stream.clone())
    }

    /// [`MemoryPool::allocate`], which moves the pool and the stream into the buffer.
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::allocate`].
    #[inline]
    pub fn into_buffer(self, bytes: usize, stream: Stream) -> Result<DeviceBuffer> {
        let taken = self.allocate_raw(bytes, &stream)?;
        Ok(self.into_buffer_from(taken, bytes, stream))
    }

    /// The driver call of [`MemoryPool::into_buffer`]: memory without an owner until [`MemoryPool::into_buffer_from`].
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::allocate`].
    #[inline(always)]
    pub fn allocate_raw(&self, bytes: usize, stream: &Stream) -> Result<RawAllocation> {
        match self.fast_allocation_device(bytes, stream) {
            Some(home) => self
                .allocate_raw_on(home, bytes, stream)
                .map_err(|error| *error),
            None => self.take_otherwise(bytes, stream),
        }
    }

    /// The device of the memory, if a single driver call allocates it: the handle of a stream that this crate owns
    /// implies the context.
    #[doc(hidden)]
    #[inline(always)]
    pub fn fast_allocation_device(&self, bytes: usize, stream: &Stream) -> Option<Device> {
        match self.kind() {
            PoolKind::Device(home) if bytes != 0 && stream.is_owned() => Some(home),
            _ => None,
        }
    }

    /// [`MemoryPool::allocate_raw`] after [`MemoryPool::fast_allocation_device`] has returned `home`.
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::allocate`].
    #[doc(hidden)]
    #[inline(always)]
    pub fn allocate_raw_on(
        &self,
        home: Device,
        bytes: usize,
        stream: &Stream,
    ) -> std::result::Result<RawAllocation, Box<Error>> {
        debug_assert!(stream.is_owned(), "fast_allocation_device() requires it");
        stream.check_live().map_err(Box::new)?;
        self.check_live().map_err(Box::new)?;
        let mut address: CUdeviceptr = 0;
        let (pool, handle) = (self.handle(), stream.handle());
        let place = &raw mut address;
        // SAFETY: `place` is valid for writes; both handles are live.
        if let Err(error) = unsafe { driver!(cuMemAllocFromPoolAsync(place, bytes, pool, handle)) }
        {
            crate::hint::cold_path();
            // SAFETY: `place` is valid for writes; both handles are live.
            let again = stream.retry_with_context(error, &|| unsafe {
                driver!(cuMemAllocFromPoolAsync(place, bytes, pool, handle))
            });
            // Boxed: errors are large, and rare.
            again.map_err(Box::new)?;
        }
        Ok(RawAllocation {
            address,
            context: None,
            home,
        })
    }

    #[inline(never)]
    fn take_otherwise(&self, bytes: usize, stream: &Stream) -> Result<RawAllocation> {
        let home = self.default_stream_device()?;
        if bytes == 0 {
            return Ok(RawAllocation {
                address: 0,
                context: None,
                home,
            });
        }
        let (context, _entered) = enter_allocation_context(stream, home)?;
        let address = self.take(bytes, stream)?;
        Ok(RawAllocation {
            address,
            context,
            home,
        })
    }

    /// The owner of memory that [`MemoryPool::allocate_raw`] allocated from this pool, with the same size and stream.
    #[inline(always)]
    pub fn into_buffer_from(
        self,
        taken: RawAllocation,
        bytes: usize,
        stream: Stream,
    ) -> DeviceBuffer {
        DeviceBuffer::from_raw_allocation(AllocationSource::Pool(self), taken, bytes, stream)
    }
}

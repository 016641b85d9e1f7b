//! Pools and their memory between processes.
//!
//! One process makes a pool that can be shared ([`PoolOptions::shareable`](crate::PoolOptions::shareable)), sends its
//! descriptor over ([`MemoryPool::export`]), and for every buffer the bytes that describe it
//! ([`DeviceBuffer::descriptor`]). The other one imports the pool ([`MemoryPool::import`]) and then its buffers
//! ([`MemoryPool::import_buffer`]). Memory has to be freed by those who imported it before its maker frees it.
//! [`Event::open`](crate::Event::open) does the same for events.
//!
//! Source: CUDA Driver API, "Stream Ordered Memory Allocator"; CUDA C++ Programming Guide, "Interprocess communication
//! support" of the chapter of the same name.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemPoolPtrExportData, CUmemoryPool,
    CUpointer_attribute, CUresult,
};

use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::memory::pool::deferred_destroy::{self, Scan};
use crate::memory::pool::{MemoryPool, PoolKind};
use crate::memory::raw::DeviceBuffer;
use crate::stream::Stream;

/// The only kind of handle that Linux has.
const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/// What another process needs to import a buffer of a pool that it has imported. Plain bytes: send them however the
/// processes talk. They come from outside, and are not believed: the driver proves them, and the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferDescriptor {
    /// The driver's 64 bytes; all zero for a buffer of no bytes.
    pub bytes: [u8; 64],
    /// Bytes of the buffer.
    pub size: usize,
}

/// Bytes from `address` to the end of its allocation, as far as the driver tells.
fn room_at(address: CUdeviceptr) -> Result<usize> {
    let mut room = 0usize;
    let place = (&raw mut room).cast::<c_void>();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE;
    // SAFETY: `place` is a valid place for a size.
    unsafe { driver!(cuPointerGetAttribute(place, attribute, address))? };
    Ok(room)
}

impl MemoryPool {
    /// A descriptor of the pool for another process (`cuMemPoolExportToShareableHandle`). It keeps the pool's memory, but
    /// not the pool.
    ///
    /// It is closed when another program is executed. The standard input of a child, or a Unix socket, carries it there:
    ///
    /// ```no_run
    /// use std::os::fd::AsFd;
    /// use std::process::{Command, Stdio};
    /// use cupyrite::{BufferDescriptor, Device, MemoryPool, PoolOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::new(0)?;
    /// let stream = device.create_stream()?;
    /// let pool = MemoryPool::new(&device, &PoolOptions::default().shareable(true))?;
    /// let buffer = pool.allocate(4096, &stream)?;
    /// stream.synchronize()?;
    /// let BufferDescriptor { bytes, size } = buffer.descriptor()?;
    /// # let text = format!("{bytes:?} {size}");
    /// let child = Command::new("worker").arg(text).stdin(Stdio::from(pool.export()?)).spawn()?;
    ///
    /// // In the child:
    /// let theirs = MemoryPool::import(&device, std::io::stdin().as_fd())?;
    /// let memory = theirs.import_buffer(&BufferDescriptor { bytes, size }, &stream)?;
    /// # let _ = (child, memory);
    /// # Ok(()) }
    /// ```
    ///
    /// The example `two_processes` is the whole of it.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_VALUE` for a pool that was not made to be shared, or was imported.
    pub fn export(&self) -> Result<OwnedFd> {
        let mut descriptor: RawFd = -1;
        let place = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: `place` is a valid place for a descriptor, the handle is live.
        unsafe {
            driver!(cuMemPoolExportToShareableHandle(
                place,
                self.handle(),
                DESCRIPTOR,
                0
            ))?;
        }
        // SAFETY: the driver made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// The pool of another process, on `device`, by the descriptor it [exported](Self::export), which remains the caller's
    /// (`cuMemPoolImportFromShareableHandle`). It hands out no memory of its own.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_VALUE` for a descriptor of something else.
    pub fn import(device: &Device, descriptor: BorrowedFd<'_>) -> Result<MemoryPool> {
        Self::import_with_kind(PoolKind::Device(*device), descriptor)
    }

    /// As [`MemoryPool::import`], for a pool of any kind: that of the pool that was exported, which the descriptor does not
    /// tell.
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::import`].
    pub fn import_with_kind(kind: PoolKind, descriptor: BorrowedFd<'_>) -> Result<MemoryPool> {
        deferred_destroy::destroy_ready(Scan::All);
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        let given = std::ptr::without_provenance_mut::<c_void>(descriptor.as_raw_fd() as usize);
        // SAFETY: `handle` is a valid place for the result; the descriptor itself goes where a pointer is declared.
        unsafe {
            driver!(cuMemPoolImportFromShareableHandle(
                &mut handle,
                given,
                DESCRIPTOR,
                0
            ))?;
        }
        let pool = Self::wrap_imported(handle, kind);
        // Rights are each process's own.
        pool.open_to_devices()?;
        Ok(pool)
    }

    /// A buffer of another process, in a pool of it that was [imported](Self::import). When it is freed the memory stays
    /// the other process's. Buffers of the same memory have the same address, and its last one lets go of it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where `descriptor.size` is more than the memory has; otherwise what the driver says,
    /// `CUDA_ERROR_INVALID_VALUE` for a pool that was not imported, a descriptor of another pool or, on the CPU device, of
    /// freed memory.
    pub fn import_buffer(
        &self,
        descriptor: &BufferDescriptor,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        let device = self.device().map_or_else(Device::current, Ok)?;
        if descriptor.size == 0 && descriptor.bytes == [0; 64] {
            return self.adopt(device, 0, 0, stream);
        }
        // Asking for the memory's size needs a current context.
        let (_entered, _) = device.enter()?;
        let Some(imports) = self.imports() else {
            // Not left to the driver: one that gave the address of the very allocation would free it twice.
            return Err(Error::Driver {
                call: "cuMemPoolImportPointer",
                status: CUresult::CUDA_ERROR_INVALID_VALUE,
                log: "the memory pool is this process's own: buffers are imported into pools that were imported".into(),
            });
        };
        let address = imports.add(self.handle(), &descriptor.bytes)?;
        let buffer = self.adopt(device, address, descriptor.size, stream)?;
        let room = room_at(address)?;
        if descriptor.size > room {
            return Err(Error::argument(
                "MemoryPool::import_buffer",
                "descriptor.size",
                format!("is {}; the memory has {room} bytes", descriptor.size),
            ));
        }
        Ok(buffer)
    }
}

impl DeviceBuffer {
    /// What another process needs to import this buffer (`cuMemPoolExportPointer`).
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_VALUE` for memory of a pool that was not made to be shared.
    pub fn descriptor(&self) -> Result<BufferDescriptor> {
        let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
        if self.size() != 0 {
            // SAFETY: `data` is a valid place for the result, the address is live.
            unsafe { driver!(cuMemPoolExportPointer(&mut data, self.address()))? };
        }
        Ok(BufferDescriptor {
            bytes: data.reserved,
            size: self.size(),
        })
    }
}

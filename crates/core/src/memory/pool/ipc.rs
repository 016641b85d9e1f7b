//! Sharing pools and their memory between processes.
//!
//! One process creates a shareable pool ([`PoolOptions::shareable`](crate::PoolOptions::shareable)) and sends its
//! descriptor ([`MemoryPool::export`]) and, for each buffer, the bytes that describe it
//! ([`DeviceBuffer::descriptor`]). The other process imports the pool ([`MemoryPool::import`]) and then its buffers
//! ([`MemoryPool::import_buffer`]). Importers free memory before its creator does. [`Event::open`](crate::Event::open)
//! shares events.
//!
//! Source: CUDA Driver API, "Stream Ordered Memory Allocator"; CUDA C++ Programming Guide, "Interprocess communication
//! support" of the chapter of the same name.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemPoolPtrExportData, CUmemoryPool,
    CUpointer_attribute, CUresult,
};

use crate::context::Device;
use crate::error::{Error, Result, driver};
use crate::memory::pool::deferred_destroy::{self, Scan};
use crate::memory::pool::{MemoryPool, PoolKind};
use crate::memory::raw::DeviceBuffer;
use crate::stream::Stream;

/// The only handle type on Linux.
const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/// What another process needs to import a buffer of an imported pool: plain bytes, to be sent by any means. They are
/// untrusted: the driver validates them, and this crate the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferDescriptor {
    /// The driver's 64 bytes; all zero for a buffer of size 0.
    pub bytes: [u8; 64],
    /// Size of the buffer in bytes.
    pub size: usize,
}

/// Bytes from `address` to the end of its allocation, as reported by the driver.
fn room_at(address: CUdeviceptr) -> Result<usize> {
    let mut room = 0usize;
    let place = (&raw mut room).cast::<c_void>();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE;
    // SAFETY: `place` is valid for writes of a size.
    unsafe { driver!(cuPointerGetAttribute(place, attribute, address))? };
    Ok(room)
}

impl MemoryPool {
    /// A file descriptor of the pool for another process (`cuMemPoolExportToShareableHandle`). It keeps the pool's
    /// memory alive, but not the pool.
    ///
    /// It is closed on `exec`. The standard input of a child, or a Unix socket, transports it:
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
    /// See the example `two_processes`.
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_VALUE` for a pool that is not shareable, or was imported.
    pub fn export(&self) -> Result<OwnedFd> {
        let mut descriptor: RawFd = -1;
        let place = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: `place` is valid for writes of a descriptor; the handle is live.
        unsafe {
            driver!(cuMemPoolExportToShareableHandle(
                place,
                self.handle(),
                DESCRIPTOR,
                0
            ))?;
        }
        // SAFETY: the driver created the descriptor for this call.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Imports a pool of another process on `device` by the descriptor that it [exported](Self::export), which remains
    /// the caller's (`cuMemPoolImportFromShareableHandle`). Nothing can be allocated from it.
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_VALUE` for any other descriptor.
    pub fn import(device: &Device, descriptor: BorrowedFd<'_>) -> Result<MemoryPool> {
        Self::import_with_kind(PoolKind::Device(*device), descriptor)
    }

    /// [`MemoryPool::import`] for any kind of pool: the kind of the exported pool, which the descriptor does not
    /// contain.
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::import`].
    pub fn import_with_kind(kind: PoolKind, descriptor: BorrowedFd<'_>) -> Result<MemoryPool> {
        deferred_destroy::destroy_ready(Scan::All);
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        let given = std::ptr::without_provenance_mut::<c_void>(descriptor.as_raw_fd() as usize);
        // SAFETY: `handle` is valid for writes; the descriptor is passed by value in the pointer.
        unsafe {
            driver!(cuMemPoolImportFromShareableHandle(
                &mut handle,
                given,
                DESCRIPTOR,
                0
            ))?;
        }
        let pool = Self::wrap_imported(handle, kind);
        // Access rights are per process.
        pool.open_to_devices()?;
        Ok(pool)
    }

    /// Imports a buffer of another process from an [imported](Self::import) pool. Freeing it does not free the other
    /// process's memory. Buffers of the same memory have the same address; the last one ends the import.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if `descriptor.size` exceeds the memory; otherwise the driver's error:
    /// `CUDA_ERROR_INVALID_VALUE` for a pool that was not imported, a descriptor of another pool or, on the CPU
    /// device, of freed memory.
    pub fn import_buffer(
        &self,
        descriptor: &BufferDescriptor,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        let device = self.device().map_or_else(Device::current, Ok)?;
        if descriptor.size == 0 && descriptor.bytes == [0; 64] {
            return self.adopt(device, 0, 0, stream);
        }
        // Querying the size needs a current context.
        let (_entered, _) = device.enter()?;
        let Some(imports) = self.imports() else {
            // Not left to the driver: one that returned the address of the original allocation would free it twice.
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
    /// Describes the buffer for another process (`cuMemPoolExportPointer`).
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_VALUE` for memory of a pool that is not shareable.
    pub fn descriptor(&self) -> Result<BufferDescriptor> {
        let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
        if self.size() != 0 {
            // SAFETY: `data` is valid for writes; the address is live.
            unsafe { driver!(cuMemPoolExportPointer(&mut data, self.address()))? };
        }
        Ok(BufferDescriptor {
            bytes: data.reserved,
            size: self.size(),
        })
    }
}

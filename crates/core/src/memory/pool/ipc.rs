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

use std::collections::HashMap;
use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemPoolPtrExportData, CUmemoryPool,
    CUpointer_attribute, CUresult,
};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::device::Device;
use crate::error::{Error, Result, driver, report};
use crate::memory::pool::deferred_destroy::{self, Look};
use crate::memory::pool::pending_frees::Frees;
use crate::memory::pool::{MemoryPool, PoolKind};
use crate::memory::raw::{DeviceBuffer, free_in_order, is_capturing, wait_for_streams};
use crate::stream::Stream;
use crate::stream::event::Event;

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

/// What was imported from a pool, once however often that was asked for: drivers do not count.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    state: Mutex<State>,
    /// What was freed again.
    frees: Frees,
}

#[derive(Debug, Default)]
struct State {
    addresses: HashMap<[u8; 64], CUdeviceptr>,
    live: HashMap<CUdeviceptr, Import>,
}

#[derive(Debug)]
struct Import {
    bytes: [u8; 64],
    buffers: usize,
    /// Where buffers of it were freed that were not the last one.
    streams: Vec<Stream>,
    /// How many there may be before those that are done are looked for.
    limit: usize,
}

/// As many streams are never looked through.
const FEW: usize = 8;

impl Import {
    /// Notes a stream that one of the buffers was freed on. Gives those that are done, of which there is nothing to wait for:
    /// dropping them may destroy them.
    fn freed_on(&mut self, stream: &Stream) -> Vec<Stream> {
        if self.streams.contains(stream) {
            return Vec::new();
        }
        let mut gone = Vec::new();
        if self.streams.len() >= self.limit {
            let _relaxed = RelaxedCapture::enter();
            // Default streams are those of some context, and others' may be no more: these are not asked.
            let is_done = |stream: &Stream| {
                stream.is_owned()
                    && matches!(is_capturing(stream), Ok(false))
                    && matches!(stream.is_done(), Ok(true))
            };
            let streams = std::mem::take(&mut self.streams);
            (gone, self.streams) = streams.into_iter().partition(is_done);
            self.limit = FEW.max(2 * self.streams.len());
        }
        self.streams.push(stream.clone());
        gone
    }
}

impl Imports {
    // Held across the driver's import, queries and free, which neither wait for work nor call back, so that no thread imports what
    // another one is about to free.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, pool: CUmemoryPool, bytes: &[u8; 64]) -> Result<CUdeviceptr> {
        let mut state = self.lock();
        if let Some(&address) = state.addresses.get(bytes)
            && let Some(import) = state.live.get_mut(&address)
        {
            import.buffers += 1;
            return Ok(address);
        }
        let address = import_pointer(pool, bytes)?;
        state.addresses.insert(*bytes, address);
        let import = Import {
            bytes: *bytes,
            buffers: 1,
            streams: Vec::new(),
            limit: FEW,
        };
        state.live.insert(address, import);
        Ok(address)
    }

    /// Frees the memory with its last buffer, after what the streams held that the others were freed on.
    pub(crate) fn release(&self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        let mut state = self.lock();
        let streams = match state.live.get_mut(&address) {
            Some(import) if import.buffers > 1 => {
                import.buffers -= 1;
                let gone = import.freed_on(stream);
                drop(state);
                drop(gone);
                return Ok(());
            }
            Some(_) => state.live.remove(&address).map(|import| {
                state.addresses.remove(&import.bytes);
                import.streams
            }),
            None => None,
        };
        let streams = streams.unwrap_or_default();
        // Memory may end anywhere, and freeing it is refused while this thread captures, or another one globally.
        let relaxed = RelaxedCapture::enter();
        // One that is captured cannot wait for what is not, and to try that spoils the capture; it frees nothing either.
        let can_wait = matches!(is_capturing(stream), Ok(false));
        if can_wait {
            report(wait_for_streams(stream, &streams));
        }
        // SAFETY: the last buffer of the memory is being freed.
        let done = unsafe { free_in_order(address, stream) };
        drop(state);
        if can_wait && done.is_ok() {
            self.frees.note(stream);
        }
        // Streams end without the lock, and in the thread's own mode: who they belong to may end with them.
        drop(relaxed);
        drop(streams);
        done
    }

    /// What tells when all that was freed is free, for [`pool_end`]; no buffer is left.
    pub(crate) fn into_frees(self) -> Vec<Event> {
        self.frees.into_events()
    }
}

fn import_pointer(pool: CUmemoryPool, bytes: &[u8; 64]) -> Result<CUdeviceptr> {
    let mut address: CUdeviceptr = 0;
    let mut data = CUmemPoolPtrExportData { reserved: *bytes };
    // SAFETY: `address` is a valid place for the result, the handle is live, and the driver proves the bytes.
    unsafe { driver!(cuMemPoolImportPointer(&mut address, pool, &mut data))? };
    Ok(address)
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
        deferred_destroy::look(Look::All);
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

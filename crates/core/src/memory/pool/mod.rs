//! Memory pools: stream-ordered allocation.
//!
//! Source: CUDA Driver API, "Stream Ordered Memory Allocator"; the chapter of the same name in the CUDA C++
//! Programming Guide.

use std::ffi::c_void;
use std::sync::Arc;

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{
    CUdevice_attribute, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemPoolProps, CUmemoryPool, CUresult,
};

use parking_lot::Mutex;

use crate::context::Device;
use crate::error::{Error, Result, driver};
use crate::fork::ForkGeneration;
use crate::memory::copy::free_async;
use crate::memory::location::MemoryLocation;
use crate::memory::pool::deferred_destroy::{Origin, Scan};
use crate::memory::pool::imports::Imports;
use crate::memory::stream_context::enter_for_default_stream;
use crate::shared::Shared;
use crate::stream::Stream;

mod allocate;
pub(crate) mod deferred_destroy;
pub(crate) mod imports;
pub(crate) mod ipc;
pub(crate) mod options;
pub(crate) mod pending_frees;

pub use options::{MemoryAccess, PoolAttribute, PoolKind, PoolOptions};

/// A memory pool; cheap to clone.
///
/// A pool that this crate created or imported is destroyed after its last clone and its last buffer are dropped:
/// deferred until the driver has freed its memory, without any action of the program
/// ([`deferred_pool_count`](crate::deferred_pool_count)). A pool of the device is borrowed.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    inner: Shared<PoolState>,
}

/// A pool without clones and buffers; dropping it destroys the pool. See [`MemoryPool::into_unique`].
#[must_use = "dropping it ends the pool"]
pub struct UniquePool {
    _inner: PoolState,
}

impl PoolState {
    /// The one static value for a borrowed pool. Its clones are plain copies: every buffer has one.
    fn borrowed(handle: CUmemoryPool, kind: PoolKind) -> Shared<PoolState> {
        static KNOWN: Mutex<Vec<&'static PoolState>> = Mutex::new(Vec::new());
        // Held for a few instructions that do not panic.
        let mut known = KNOWN.lock();
        let same = |inner: &&&'static PoolState| inner.handle == handle && inner.kind == kind;
        if let Some(inner) = known.iter().find(same) {
            return Shared::Static(inner);
        }
        let inner: &'static PoolState = Box::leak(Box::new(PoolState {
            handle,
            owned: false,
            created: OwnedKind::MemoryPool.epoch(),
            kind,
            generation: ForkGeneration::current(),
            imports: None,
        }));
        known.push(inner);
        Shared::Static(inner)
    }
}

#[derive(Debug)]
struct PoolState {
    handle: CUmemoryPool,
    owned: bool,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    kind: PoolKind,
    generation: ForkGeneration,
    /// For the pool of another process: its imported allocations.
    imports: Option<Imports>,
}

// SAFETY: pool handles may be used from any thread; they are only ever passed to the driver.
unsafe impl Send for PoolState {}
// SAFETY: pool handles may be used from several threads at once: the driver synchronises.
unsafe impl Sync for PoolState {}

impl Drop for PoolState {
    fn drop(&mut self) {
        if self.owned && self.generation.is_current() {
            let origin = match self.imports.take() {
                Some(imports) => Origin::Imported(imports.into_pending_frees()),
                None => Origin::Local(self.kind),
            };
            // SAFETY: `MemoryPool::with_kind` or an import created the handle; it is given away once, here. No buffer
            // exists: each owns its pool.
            unsafe { deferred_destroy::destroy_or_defer(self.handle, self.created, origin) };
        }
    }
}

#[cold]
fn destroyed() -> Error {
    Error::Driver {
        call: "MemoryPool",
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: "the pool was destroyed by the program, with cuMemPoolDestroy or cudaMemPoolDestroy"
            .into(),
    }
}

impl MemoryPool {
    /// Whether the device supports pools (`CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`).
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn supported(device: &Device) -> Result<bool> {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        Ok(device.attribute(attribute)? != 0)
    }

    /// The device's current pool (`cuDeviceGetMemPool`).
    ///
    /// # Errors
    ///
    /// The driver's error, `CUDA_ERROR_NOT_SUPPORTED` where there are no pools.
    pub fn current(device: &Device) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuDeviceGetMemPool(&mut handle, device.handle()))? };
        Ok(Self::refer(handle, PoolKind::Device(*device)))
    }

    /// The device's default pool (`cuDeviceGetDefaultMemPool`).
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::current`].
    pub fn default_for(device: &Device) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuDeviceGetDefaultMemPool(&mut handle, device.handle()))? };
        Ok(Self::refer(handle, PoolKind::Device(*device)))
    }

    /// The current pool for a kind of memory (`cuMemGetMemPool`).
    ///
    /// # Errors
    ///
    /// The driver's error. Drivers before CUDA 13 have current pools for devices only.
    pub fn current_for_kind(kind: PoolKind) -> Result<MemoryPool> {
        if let PoolKind::Device(device) = kind {
            return Self::current(&device);
        }
        // Initialises the driver.
        Device::count()?;
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        let (sort, mut location) = kind.to_raw();
        // SAFETY: `handle` is valid for writes, `location` is only read.
        unsafe { driver!(cuMemGetMemPool(&mut handle, &mut location, sort))? };
        let pool = Self::refer(handle, kind);
        pool.open_to_devices()?;
        Ok(pool)
    }

    /// Creates a pool of device memory.
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::current`].
    pub fn new(device: &Device, options: &PoolOptions) -> Result<MemoryPool> {
        Self::with_kind(PoolKind::Device(*device), options)
    }

    /// Creates a pool of any kind of memory (`cuMemPoolCreate`).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a largest size of managed memory, which is not supported; otherwise the driver's
    /// error: `CUDA_ERROR_NOT_SUPPORTED` if there are no such pools.
    pub fn with_kind(kind: PoolKind, options: &PoolOptions) -> Result<MemoryPool> {
        if matches!(kind, PoolKind::Managed(_)) && options.max_size != 0 {
            return Err(Error::argument(
                "MemoryPool::with_kind",
                "options.max_size",
                format!(
                    "is {}; pools of managed memory have no largest size",
                    options.max_size
                ),
            ));
        }
        Device::count()?;
        deferred_destroy::destroy_ready(Scan::All);
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        let (sort, location) = kind.to_raw();
        let properties = CUmemPoolProps {
            allocType: sort,
            handleTypes: if options.shareable {
                CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
            } else {
                CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE
            },
            location,
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: options.max_size,
            usage: 0,
            gpuDirectRDMACapable: 0,
            reserved: [0; 53],
        };
        // SAFETY: `handle` is valid for writes, `properties` is complete.
        unsafe { driver!(cuMemPoolCreate(&mut handle, &properties))? };
        let pool = Self::own_pool(handle, kind, None);
        pool.open_to_devices()?;
        Ok(pool)
    }

    /// Grants all devices access to a host pool, which at first only the host has.
    pub(crate) fn open_to_devices(&self) -> Result<()> {
        if !matches!(self.inner.kind, PoolKind::Host(_)) {
            return Ok(());
        }
        let mut rights = Vec::new();
        for ordinal in 0..Device::count()? {
            if self.access(ordinal)? != MemoryAccess::ReadWrite {
                rights.push((ordinal, MemoryAccess::ReadWrite));
            }
        }
        self.set_access(&rights)
    }

    /// Borrows a pool.
    fn refer(handle: CUmemoryPool, kind: PoolKind) -> MemoryPool {
        MemoryPool {
            inner: PoolState::borrowed(handle, kind),
        }
    }

    /// Owns a pool that was created or imported.
    fn own_pool(handle: CUmemoryPool, kind: PoolKind, imports: Option<Imports>) -> MemoryPool {
        MemoryPool {
            inner: Shared::Counted(Arc::new(PoolState {
                handle,
                owned: true,
                created: OwnedKind::MemoryPool.epoch(),
                kind,
                generation: ForkGeneration::current(),
                imports,
            })),
        }
    }

    /// Owns an imported pool.
    pub(crate) fn wrap_imported(handle: CUmemoryPool, kind: PoolKind) -> MemoryPool {
        Self::own_pool(handle, kind, Some(Imports::default()))
    }

    /// The imported allocations, if the pool belongs to another process.
    #[inline]
    pub(crate) fn imports(&self) -> Option<&Imports> {
        self.inner.imports.as_ref()
    }

    /// Whether the pool belongs to another process.
    #[inline]
    pub fn is_imported(&self) -> bool {
        self.inner.imports.is_some()
    }

    /// Drops this clone. Returns the pool if this was the last clone of an owned pool: dropping the result destroys
    /// the pool, for which the driver may wait for other threads.
    pub fn into_unique(self) -> Option<UniquePool> {
        match self.inner {
            Shared::Static(_) => None,
            Shared::Counted(inner) => {
                Arc::into_inner(inner).map(|inner| UniquePool { _inner: inner })
            }
        }
    }

    /// The driver's handle; valid while a clone of this pool lives.
    #[inline]
    pub fn handle(&self) -> CUmemoryPool {
        self.inner.handle
    }

    /// Refuses a pool that the program has destroyed by its handle.
    #[inline(always)]
    fn check_live(&self) -> Result<()> {
        let (handle, created) = (self.handle(), self.inner.created);
        if OwnedKind::MemoryPool.is_destroyed(handle, std::ptr::null_mut(), created) {
            Err(destroyed())
        } else {
            Ok(())
        }
    }

    /// Whether this crate created or imported the pool.
    pub fn is_owned(&self) -> bool {
        self.inner.owned
    }

    /// The kind and location of its memory.
    #[inline]
    pub fn kind(&self) -> PoolKind {
        self.inner.kind
    }

    /// The device of its memory, or the preferred one of managed memory; else `None`.
    #[inline]
    pub fn device(&self) -> Option<Device> {
        self.kind().device()
    }

    /// The device to which default streams belong if none is named: that of the memory, else the thread's current one.
    ///
    /// # Errors
    ///
    /// Same as [`Device::current`].
    #[inline]
    pub fn default_stream_device(&self) -> Result<Device> {
        self.kind().default_stream_device()
    }

    /// Queries an attribute: bytes, or 0 or 1.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn attribute(&self, attribute: PoolAttribute) -> Result<u64> {
        self.check_live()?;
        let mut value = 0u64;
        // SAFETY: every attribute fits into eight bytes; a four-byte one fills the low half (little endian).
        unsafe {
            let place = (&raw mut value).cast::<c_void>();
            driver!(cuMemPoolGetAttribute(
                self.handle(),
                attribute.to_raw(),
                place
            ))?;
        }
        Ok(value)
    }

    /// Sets an attribute.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a flag other than 0 and 1; `CUDA_ERROR_INVALID_VALUE` for a read-only attribute.
    pub fn set_attribute(&self, attribute: PoolAttribute, value: u64) -> Result<()> {
        if attribute.is_flag() && value > 1 {
            return Err(Error::argument(
                "MemoryPool::set_attribute",
                "value",
                format!("is {value}; {attribute:?} is either 0 or 1"),
            ));
        }
        self.check_live()?;
        let mut value = value;
        // SAFETY: as in `attribute`; the driver only reads.
        unsafe {
            let place = (&raw mut value).cast::<c_void>();
            driver!(cuMemPoolSetAttribute(
                self.handle(),
                attribute.to_raw(),
                place
            ))
        }
    }

    /// Releases unused memory to the device, down to this many reserved bytes.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn trim_to(&self, bytes: usize) -> Result<()> {
        self.check_live()?;
        // SAFETY: the handle is live.
        unsafe { driver!(cuMemPoolTrimTo(self.handle(), bytes)) }
    }

    /// The access rights of the device with this ordinal.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn access(&self, ordinal: usize) -> Result<MemoryAccess> {
        self.check_live()?;
        let mut flags = CUmemAccess_flags(0);
        let mut location = MemoryLocation::Device(ordinal).to_raw();
        // SAFETY: both are valid for writes; the driver reads the location.
        unsafe { driver!(cuMemPoolGetAccess(&mut flags, self.handle(), &mut location))? };
        Ok(match flags {
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE => MemoryAccess::ReadWrite,
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => MemoryAccess::Read,
            _ => MemoryAccess::None,
        })
    }

    /// Sets the access rights of devices by ordinal, all or none of them.
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_DEVICE` for a device that cannot access the pool's.
    pub fn set_access(&self, rights: &[(usize, MemoryAccess)]) -> Result<()> {
        if rights.is_empty() {
            return Ok(());
        }
        let rights: Vec<CUmemAccessDesc> = rights
            .iter()
            .map(|&(ordinal, access)| CUmemAccessDesc {
                location: MemoryLocation::Device(ordinal).to_raw(),
                flags: match access {
                    MemoryAccess::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
                    MemoryAccess::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                    MemoryAccess::ReadWrite => {
                        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                    }
                },
            })
            .collect();
        self.check_live()?;
        // SAFETY: the array has the length passed.
        unsafe {
            driver!(cuMemPoolSetAccess(
                self.handle(),
                rights.as_ptr(),
                rights.len()
            ))
        }
    }

    /// The driver call of [`MemoryPool::allocate`], for a size other than 0.
    #[inline]
    pub(crate) fn take(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        self.check_live()?;
        let mut address: CUdeviceptr = 0;
        let place = &raw mut address;
        // SAFETY: `place` is valid for writes; both handles are live.
        stream.queue(|| unsafe {
            driver!(cuMemAllocFromPoolAsync(
                place,
                bytes,
                self.handle(),
                stream.handle()
            ))
        })?;
        Ok(address)
    }
}

impl MemoryPool {
    /// Frees memory by its address, in stream order on `stream`.
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_VALUE` for an address that is not the beginning of an allocation.
    ///
    /// # Safety
    ///
    /// Nothing uses the memory, and no [`DeviceBuffer`](crate::DeviceBuffer) owns it.
    pub unsafe fn deallocate(&self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.kind().deallocate(address, stream) }
    }
}

impl PoolKind {
    /// Frees memory of a pool of this kind by its address, in stream order on `stream`; needs no pool.
    ///
    /// # Errors
    ///
    /// Same as [`MemoryPool::deallocate`].
    ///
    /// # Safety
    ///
    /// Same as [`MemoryPool::deallocate`].
    pub unsafe fn deallocate(self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        let _entered = enter_for_default_stream(stream, self.default_stream_device()?)?;
        // SAFETY: the caller's contract.
        unsafe { free_async(address, stream) }
    }
}

impl PartialEq for MemoryPool {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for MemoryPool {}

//! Memory pools, and buffers that are allocated and freed in the order of streams.
//!
//! Source of all of this: CUDA Driver API, section "Stream Ordered Memory Allocator", and the chapter of the same name
//! in the CUDA C++ Programming Guide.

use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use cupyrite_sys::driver::{
    CUdevice_attribute, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocation_st_anon0, CUmemLocationType,
    CUmemPool_attribute, CUmemPoolProps, CUmemoryPool,
};

use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::fork::ForkGeneration;
use crate::memory::location::MemoryLocation;
use crate::memory::pool::deferred_destroy::{Look, Origin};
use crate::memory::pool::ipc::Imports;
use crate::memory::raw::{
    DeviceBuffer, RawAllocation, Source, enter_for_default_stream, free_in_order, home_of,
};
use crate::stream::Stream;

pub(crate) mod deferred_destroy;
pub(crate) mod ipc;
pub(crate) mod pending_frees;

/// How a pool is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Most bytes that the pool takes from the device; 0 leaves the limit to the driver (`CUmemPoolProps::maxSize`).
    pub max_size: usize,
    /// Whether other processes can import the pool ([`MemoryPool::export`]).
    pub shareable: bool,
}

impl PoolOptions {
    /// Whether other processes can import the pool.
    #[must_use]
    pub fn shareable(mut self, shareable: bool) -> Self {
        self.shareable = shareable;
        self
    }

    /// At most this many bytes; 0 leaves the limit to the driver.
    #[must_use]
    pub fn max_size(mut self, bytes: usize) -> Self {
        self.max_size = bytes;
        self
    }
}

/// An attribute of a pool (`CUmemPool_attribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolAttribute {
    /// Whether (0 or 1) memory freed in one stream is given to another one that waited for it by an event.
    ReuseFollowEventDependencies,
    /// Whether (0 or 1) memory is reused across streams where the free happens to be done already.
    ReuseAllowOpportunistic,
    /// Whether (0 or 1) the driver may make a stream wait for another one so that memory can be reused.
    ReuseAllowInternalDependencies,
    /// Bytes that the pool keeps, though unused, when a stream, event or context is waited for.
    ReleaseThreshold,
    /// Bytes that the pool holds of the device's memory; read only.
    ReservedCurrent,
    /// The most it held since this was last reset; only 0 can be written, which resets it.
    ReservedHigh,
    /// Bytes that are allocated from the pool; read only.
    UsedCurrent,
    /// The most that was allocated since this was last reset; only 0 can be written, which resets it.
    UsedHigh,
}

impl PoolAttribute {
    fn id(self) -> CUmemPool_attribute {
        type A = CUmemPool_attribute;
        match self {
            Self::ReuseFollowEventDependencies => {
                A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
            }
            Self::ReuseAllowOpportunistic => A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
            Self::ReuseAllowInternalDependencies => {
                A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
            }
            Self::ReleaseThreshold => A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            Self::ReservedCurrent => A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
            Self::ReservedHigh => A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
            Self::UsedCurrent => A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
            Self::UsedHigh => A::CU_MEMPOOL_ATTR_USED_MEM_HIGH,
        }
    }

    /// Whether the driver keeps it as a C `int`; the others are 64 bits wide.
    fn is_flag(self) -> bool {
        matches!(
            self,
            Self::ReuseFollowEventDependencies
                | Self::ReuseAllowOpportunistic
                | Self::ReuseAllowInternalDependencies
        )
    }
}

/// What a device may do with the memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAccess {
    /// Nothing.
    None,
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

/// What the memory of a pool is, and where (`CUmemPoolProps::allocType` and `location`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolKind {
    /// Memory of a device.
    Device(Device),
    /// Page-locked memory of the host, of one NUMA node or of any. The host and all devices can use it.
    Host(Option<i32>),
    /// Managed memory, with the place where it should rather be. Such pools came with CUDA 13.
    Managed(Option<MemoryLocation>),
}

impl PoolKind {
    pub(crate) fn to_raw(self) -> (CUmemAllocationType, CUmemLocation) {
        let pinned = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        match self {
            PoolKind::Device(device) => (pinned, on_device(device.ordinal())),
            PoolKind::Host(None) => (pinned, MemoryLocation::Host.to_raw()),
            PoolKind::Host(Some(node)) => (pinned, MemoryLocation::HostNuma(node).to_raw()),
            PoolKind::Managed(preferred) => (
                CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED,
                MemoryLocation::hint_to_raw(preferred),
            ),
        }
    }
}

/// A pool of memory; cheap to clone.
///
/// A pool that was made here, or imported, ends with its last clone and its last buffer: it is destroyed once the driver has no
/// more of its memory to free, which needs no attention ([`deferred_pool_count`](crate::deferred_pool_count)). One that belongs to
/// the device is only referred to.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    inner: Shared,
}

/// A pool that has no clone and no buffer any more; dropping it ends it. See [`MemoryPool::into_unique`].
#[must_use = "dropping it ends the pool"]
pub struct UniquePool {
    _inner: Inner,
}

/// What is known of a pool of somebody else's is kept until the process ends, once for each, so that the clones of such a
/// pool are plain copies: every buffer has one.
#[derive(Clone, Debug)]
enum Shared {
    Kept(&'static Inner),
    Counted(Arc<Inner>),
}

impl Deref for Shared {
    type Target = Inner;

    #[inline]
    fn deref(&self) -> &Inner {
        match self {
            Shared::Kept(inner) => inner,
            Shared::Counted(inner) => inner,
        }
    }
}

impl Shared {
    fn kept(handle: CUmemoryPool, kind: PoolKind) -> Shared {
        static KNOWN: Mutex<Vec<&'static Inner>> = Mutex::new(Vec::new());
        // Held for a few instructions that leave it whole.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |inner: &&&'static Inner| inner.handle == handle && inner.kind == kind;
        if let Some(inner) = known.iter().find(same) {
            return Shared::Kept(inner);
        }
        let inner: &'static Inner = Box::leak(Box::new(Inner {
            handle,
            owned: false,
            kind,
            generation: ForkGeneration::current(),
            imports: None,
        }));
        known.push(inner);
        Shared::Kept(inner)
    }
}

#[derive(Debug)]
struct Inner {
    handle: CUmemoryPool,
    owned: bool,
    kind: PoolKind,
    generation: ForkGeneration,
    /// For the pool of another process: what was imported from it.
    imports: Option<Imports>,
}

// SAFETY: pool handles may be used from any thread; they are only ever passed to the driver.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver locks the pool.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owned && self.generation.is_current() {
            let origin = match self.imports.take() {
                Some(imports) => Origin::Imported(imports.into_frees()),
                None => Origin::Made(self.kind),
            };
            // SAFETY: the handle was made by `MemoryPool::with_kind` or imported, and is given away once, here. No buffer is
            // left: each one owns its pool.
            unsafe { deferred_destroy::end(self.handle, origin) };
        }
    }
}

fn on_device(ordinal: usize) -> CUmemLocation {
    CUmemLocation {
        r#type: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        anon0: CUmemLocation_st_anon0 {
            id: ordinal as c_int,
        },
    }
}

impl MemoryPool {
    /// Whether the device has pools (`CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`).
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn supported(device: &Device) -> Result<bool> {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        Ok(device.attribute(attribute)? != 0)
    }

    /// The pool that the device allocates from when none is named (`cuDeviceGetMemPool`).
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_NOT_SUPPORTED` where there are no pools.
    pub fn current(device: &Device) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDeviceGetMemPool(&mut handle, device.handle()))? };
        Ok(Self::refer(handle, PoolKind::Device(*device)))
    }

    /// The pool that the driver made for the device (`cuDeviceGetDefaultMemPool`).
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::current`].
    pub fn default_for(device: &Device) -> Result<MemoryPool> {
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDeviceGetDefaultMemPool(&mut handle, device.handle()))? };
        Ok(Self::refer(handle, PoolKind::Device(*device)))
    }

    /// The pool that memory of a kind is allocated from when none is named (`cuMemGetMemPool`).
    ///
    /// # Errors
    ///
    /// What the driver says. Drivers before CUDA 13 have such pools for devices only.
    pub fn current_for_kind(kind: PoolKind) -> Result<MemoryPool> {
        if let PoolKind::Device(device) = kind {
            return Self::current(&device);
        }
        // Pools are there once the driver is initialised.
        Device::count()?;
        let mut handle: CUmemoryPool = std::ptr::null_mut();
        let (sort, mut location) = kind.to_raw();
        // SAFETY: `handle` is a valid place for the result, `location` is only read.
        unsafe { driver!(cuMemGetMemPool(&mut handle, &mut location, sort))? };
        let pool = Self::refer(handle, kind);
        pool.open_to_devices()?;
        Ok(pool)
    }

    /// Makes a pool of the device's memory.
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::current`].
    pub fn new(device: &Device, options: &PoolOptions) -> Result<MemoryPool> {
        Self::with_kind(PoolKind::Device(*device), options)
    }

    /// Makes a pool of memory of any kind (`cuMemPoolCreate`).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a largest size of managed memory, which has none; otherwise what the driver says,
    /// `CUDA_ERROR_NOT_SUPPORTED` where there are no such pools.
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
        deferred_destroy::look(Look::All);
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
        // SAFETY: `handle` is a valid place for the result, `properties` is complete.
        unsafe { driver!(cuMemPoolCreate(&mut handle, &properties))? };
        let pool = Self::own_pool(handle, kind, None);
        pool.open_to_devices()?;
        Ok(pool)
    }

    /// Lets all devices use the memory of a pool of the host, which at first is the host's alone.
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

    /// A pool of somebody else's.
    fn refer(handle: CUmemoryPool, kind: PoolKind) -> MemoryPool {
        MemoryPool {
            inner: Shared::kept(handle, kind),
        }
    }

    /// A pool that was made here, or imported, and is to be destroyed.
    fn own_pool(handle: CUmemoryPool, kind: PoolKind, imports: Option<Imports>) -> MemoryPool {
        MemoryPool {
            inner: Shared::Counted(Arc::new(Inner {
                handle,
                owned: true,
                kind,
                generation: ForkGeneration::current(),
                imports,
            })),
        }
    }

    /// A pool that was imported.
    pub(crate) fn wrap_imported(handle: CUmemoryPool, kind: PoolKind) -> MemoryPool {
        Self::own_pool(handle, kind, Some(Imports::default()))
    }

    /// What was imported from the pool, if it is another process's.
    #[inline]
    pub(crate) fn imports(&self) -> Option<&Imports> {
        self.inner.imports.as_ref()
    }

    /// Whether the pool is another process's.
    #[inline]
    pub fn is_imported(&self) -> bool {
        self.inner.imports.is_some()
    }

    /// A buffer of memory that is there, freed in the order of `stream`. The memory is freed in any case.
    pub(crate) fn adopt(
        &self,
        home: Device,
        address: CUdeviceptr,
        size: usize,
        stream: &Stream,
    ) -> Result<DeviceBuffer> {
        DeviceBuffer::adopted(Source::Pool(self.clone()), home, address, size, stream)
    }

    /// Lets go of a clone. Where it was the last one, and the pool is to end with it, that is left to whoever drops what this
    /// gives: the driver may wait for other threads then.
    pub fn into_unique(self) -> Option<UniquePool> {
        match self.inner {
            Shared::Kept(_) => None,
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

    /// Whether the pool was made here, by [`MemoryPool::new`] or [`MemoryPool::with_kind`], and is not the driver's own.
    pub fn is_owned(&self) -> bool {
        self.inner.owned
    }

    /// What its memory is, and where.
    #[inline]
    pub fn kind(&self) -> PoolKind {
        self.inner.kind
    }

    /// The device whose memory it holds, or that managed memory should rather be on; `None` for other memory.
    #[inline]
    pub fn device(&self) -> Option<Device> {
        self.kind().device()
    }

    /// The device whose default streams are meant where none is told: that of the memory, or else the thread's current
    /// one.
    ///
    /// # Errors
    ///
    /// As [`Device::current`].
    #[inline]
    pub fn default_stream_device(&self) -> Result<Device> {
        self.kind().default_stream_device()
    }

    /// One attribute, in bytes or as 0 and 1.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn attribute(&self, attribute: PoolAttribute) -> Result<u64> {
        let mut value = 0u64;
        // SAFETY: eight bytes are room for every attribute; four-byte ones come first in them (little endian).
        unsafe {
            let place = (&raw mut value).cast::<c_void>();
            driver!(cuMemPoolGetAttribute(self.handle(), attribute.id(), place))?;
        }
        Ok(value)
    }

    /// Sets one attribute.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a flag other than 0 and 1; `CUDA_ERROR_INVALID_VALUE` for one that is read only.
    pub fn set_attribute(&self, attribute: PoolAttribute, value: u64) -> Result<()> {
        if attribute.is_flag() && value > 1 {
            return Err(Error::argument(
                "MemoryPool::set_attribute",
                "value",
                format!("is {value}; {attribute:?} is either 0 or 1"),
            ));
        }
        let mut value = value;
        // SAFETY: as in `attribute`; the driver only reads.
        unsafe {
            let place = (&raw mut value).cast::<c_void>();
            driver!(cuMemPoolSetAttribute(self.handle(), attribute.id(), place))
        }
    }

    /// Gives memory that is not in use back to the device, down to this many bytes.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn trim_to(&self, bytes: usize) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { driver!(cuMemPoolTrimTo(self.handle(), bytes)) }
    }

    /// What the device with this ordinal may do with the pool's memory.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn access(&self, ordinal: usize) -> Result<MemoryAccess> {
        let mut flags = CUmemAccess_flags(0);
        let mut location = on_device(ordinal);
        // SAFETY: both are valid places; the driver reads the location.
        unsafe { driver!(cuMemPoolGetAccess(&mut flags, self.handle(), &mut location))? };
        Ok(match flags {
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE => MemoryAccess::ReadWrite,
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => MemoryAccess::Read,
            _ => MemoryAccess::None,
        })
    }

    /// Sets what the devices with these ordinals may do with the pool's memory, all of them or none.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_DEVICE` for a device that cannot reach the pool's.
    pub fn set_access(&self, rights: &[(usize, MemoryAccess)]) -> Result<()> {
        if rights.is_empty() {
            return Ok(());
        }
        let rights: Vec<CUmemAccessDesc> = rights
            .iter()
            .map(|&(ordinal, access)| CUmemAccessDesc {
                location: on_device(ordinal),
                flags: match access {
                    MemoryAccess::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
                    MemoryAccess::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                    MemoryAccess::ReadWrite => {
                        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                    }
                },
            })
            .collect();
        // SAFETY: an array of as many descriptions as the call is told.
        unsafe {
            driver!(cuMemPoolSetAccess(
                self.handle(),
                rights.as_ptr(),
                rights.len()
            ))
        }
    }

    /// Allocates memory in the order of `stream`; its contents are unspecified.
    ///
    /// The memory may be used by work of `stream` from here on, and by other streams once they wait for this point. It
    /// is freed in the order of the same stream, unless [`DeviceBuffer`] is told otherwise. No bytes need no driver:
    /// such a buffer has the address 0.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_OUT_OF_MEMORY` for one.
    #[inline]
    pub fn allocate(&self, bytes: usize, stream: &Stream) -> Result<DeviceBuffer> {
        self.clone().into_buffer(bytes, stream.clone())
    }

    /// As [`MemoryPool::allocate`], for those who need neither any more: the buffer gets them.
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::allocate`].
    #[inline]
    pub fn into_buffer(self, bytes: usize, stream: Stream) -> Result<DeviceBuffer> {
        let taken = self.allocate_raw(bytes, &stream)?;
        Ok(self.into_buffer_from(taken, bytes, stream))
    }

    /// The driver's half of [`MemoryPool::into_buffer`]: memory that belongs to nobody before [`MemoryPool::into_buffer_from`].
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::allocate`].
    #[inline(always)]
    pub fn allocate_raw(&self, bytes: usize, stream: &Stream) -> Result<RawAllocation> {
        match self.fast_allocation_device(bytes, stream) {
            Some(home) => self
                .allocate_raw_on(home, bytes, stream)
                .map_err(|error| *error),
            None => self.take_otherwise(bytes, stream),
        }
    }

    /// The device whose memory it is, where allocating takes no more than the driver's call: a stream that this crate made
    /// says by itself where it is.
    #[doc(hidden)]
    #[inline(always)]
    pub fn fast_allocation_device(&self, bytes: usize, stream: &Stream) -> Option<Device> {
        match self.kind() {
            PoolKind::Device(home) if bytes != 0 && stream.is_owned() => Some(home),
            _ => None,
        }
    }

    /// [`MemoryPool::allocate_raw`] where [`MemoryPool::fast_allocation_device`] has said `home`.
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::allocate`].
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
        let mut address: CUdeviceptr = 0;
        let (pool, handle) = (self.handle(), stream.handle());
        let place = &raw mut address;
        // SAFETY: `place` is a valid place for the result; both handles are live.
        if let Err(error) = unsafe { driver!(cuMemAllocFromPoolAsync(place, bytes, pool, handle)) }
        {
            crate::hint::cold_path();
            // SAFETY: as above.
            let again = stream.call_again(error, &|| unsafe {
                driver!(cuMemAllocFromPoolAsync(place, bytes, pool, handle))
            });
            // Errors are large, and mostly there is none.
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
        let (context, _entered) = home_of(stream, home)?;
        let address = self.take(bytes, stream)?;
        Ok(RawAllocation {
            address,
            context,
            home,
        })
    }

    /// What owns memory that [`MemoryPool::allocate_raw`] took from this pool: as many bytes, for the same stream.
    #[inline(always)]
    pub fn into_buffer_from(
        self,
        taken: RawAllocation,
        bytes: usize,
        stream: Stream,
    ) -> DeviceBuffer {
        DeviceBuffer::of(Source::Pool(self), taken, bytes, stream)
    }

    /// The driver's call behind [`MemoryPool::allocate`], for more than no bytes.
    #[inline]
    pub(crate) fn take(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        let mut address: CUdeviceptr = 0;
        let place = &raw mut address;
        // SAFETY: `place` is a valid place for the result; both handles are live.
        stream.call(|| unsafe {
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
    /// Frees memory by its address, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_VALUE` for an address that is not the beginning of an allocation.
    ///
    /// # Safety
    ///
    /// Nothing uses the memory any more, and no [`DeviceBuffer`] owns it.
    pub unsafe fn deallocate(&self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.kind().deallocate(address, stream) }
    }
}

impl PoolKind {
    /// The device whose default streams are meant where none is told: that of the memory, or else the thread's current
    /// one.
    ///
    /// # Errors
    ///
    /// As [`Device::current`].
    #[inline]
    pub fn default_stream_device(self) -> Result<Device> {
        match self {
            PoolKind::Device(device) => Ok(device),
            _ => self.device().map_or_else(Device::current, Ok),
        }
    }

    /// The device whose memory it is, or that managed memory should rather be on; `None` for other memory.
    #[inline]
    pub fn device(self) -> Option<Device> {
        match self {
            PoolKind::Device(device) => Some(device),
            PoolKind::Managed(Some(MemoryLocation::Device(ordinal))) => Device::new(ordinal).ok(),
            PoolKind::Host(_) | PoolKind::Managed(_) => None,
        }
    }

    /// Frees memory of a pool of this kind by its address, in the order of `stream`; the pool itself is not needed for it.
    ///
    /// # Errors
    ///
    /// As [`MemoryPool::deallocate`].
    ///
    /// # Safety
    ///
    /// As [`MemoryPool::deallocate`].
    pub unsafe fn deallocate(self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        let _entered = enter_for_default_stream(stream, self.default_stream_device()?)?;
        // SAFETY: the caller's promise.
        unsafe { free_in_order(address, stream) }
    }
}

impl PartialEq for MemoryPool {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for MemoryPool {}

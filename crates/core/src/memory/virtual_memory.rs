//! Virtual memory management: addresses and physical memory are managed separately, so that allocations can grow.
//!
//! Source: CUDA Driver API, "Virtual Memory Management", and the chapter of the same name in the CUDA C++ Programming
//! Guide.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_st_allocFlags,
    CUmemAllocationType, CUmemGenericAllocationHandle, CUresult,
};

use parking_lot::{Mutex, MutexGuard};

use crate::context::capture_mode::{self, RelaxedCapture};
use crate::context::{ContextGuard, Device};
use crate::error::{Error, Result, driver};
use crate::fork::ForkGeneration;
use crate::memory::location::MemoryLocation;
use crate::memory::pool::MemoryAccess;
use crate::memory::raw::DeviceBuffer;
use crate::memory::resource::MemoryResource;
use crate::stream::Stream;
use crate::stream::capture::synchronize_unless_capturing;

/// The error for an address that the resource did not allocate.
fn unknown_address(call: &'static str, address: CUdeviceptr) -> Error {
    Error::Driver {
        call,
        status: CUresult::CUDA_ERROR_INVALID_VALUE,
        log: format!("{address:#x} is no allocation of this resource"),
    }
}

/// The kind of memory (`CUmemAllocationType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VirtualAllocationKind {
    /// Memory with a fixed location.
    #[default]
    Pinned,
    /// Managed memory, which migrates.
    Managed,
}

/// How memory can be shared with other processes (`CUmemAllocationHandleType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ShareableHandleKind {
    /// Not at all.
    None,
    /// As a file descriptor.
    #[default]
    PosixFd,
    /// As a Windows kernel handle.
    Win32Kmt,
    /// As a handle for other nodes of the fabric.
    Fabric,
}

/// The granularity of sizes (`CUmemAllocationGranularity_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// The smallest valid granularity.
    Minimum,
    /// The granularity for the best performance.
    #[default]
    Recommended,
}

/// Options for creating and mapping memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VirtualMemoryOptions {
    /// The kind of memory.
    pub allocation: VirtualAllocationKind,
    /// Where.
    pub location: MemoryLocation,
    /// How it can be shared with other processes.
    pub share: ShareableHandleKind,
    /// The granularity of sizes.
    pub granularity: Granularity,
    /// Whether other PCIe devices may access it directly (GPUDirect RDMA).
    pub gpu_direct_rdma: bool,
    /// The preferred address; 0 for any.
    pub address_hint: CUdeviceptr,
    /// The alignment of the address, a power of two; 0 for the driver's.
    pub alignment: usize,
    /// Access rights by location.
    pub access: Vec<(MemoryLocation, MemoryAccess)>,
}

impl VirtualMemoryOptions {
    /// Pinned memory at a location that can read and write it.
    pub fn at(location: MemoryLocation) -> VirtualMemoryOptions {
        VirtualMemoryOptions {
            allocation: VirtualAllocationKind::default(),
            location,
            share: ShareableHandleKind::default(),
            granularity: Granularity::default(),
            gpu_direct_rdma: false,
            address_hint: 0,
            alignment: 0,
            access: vec![(location, MemoryAccess::ReadWrite)],
        }
    }

    fn properties(&self) -> CUmemAllocationProp {
        type H = CUmemAllocationHandleType;
        CUmemAllocationProp {
            r#type: match self.allocation {
                VirtualAllocationKind::Pinned => CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
                VirtualAllocationKind::Managed => {
                    CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED
                }
            },
            requestedHandleTypes: match self.share {
                ShareableHandleKind::None => H::CU_MEM_HANDLE_TYPE_NONE,
                ShareableHandleKind::PosixFd => H::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                ShareableHandleKind::Win32Kmt => H::CU_MEM_HANDLE_TYPE_WIN32_KMT,
                ShareableHandleKind::Fabric => H::CU_MEM_HANDLE_TYPE_FABRIC,
            },
            location: self.location.to_raw(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: CUmemAllocationProp_st_allocFlags {
                compressionType: 0,
                gpuDirectRDMACapable: u8::from(self.gpu_direct_rdma),
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    /// Rounds `bytes` up to the granularity.
    fn rounded(&self, bytes: usize) -> Result<usize> {
        let mut unit = 0usize;
        let properties = self.properties();
        let option = match self.granularity {
            Granularity::Minimum => {
                CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM
            }
            Granularity::Recommended => {
                CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
            }
        };
        // SAFETY: `unit` is valid for writes, `properties` is complete.
        unsafe {
            driver!(cuMemGetAllocationGranularity(
                &mut unit,
                &properties,
                option
            ))?
        };
        bytes.checked_next_multiple_of(unit.max(1)).ok_or_else(|| {
            let problem = format!("is {bytes}; rounded up to a multiple of {unit} that is more than an address space holds");
            Error::argument("VirtualMemoryResource::allocate", "bytes", problem)
        })
    }
}

/// AddressReservation addresses; given back when it is dropped.
#[derive(Debug)]
struct AddressReservation {
    address: CUdeviceptr,
    bytes: usize,
}

impl AddressReservation {
    fn new(bytes: usize, alignment: usize, hint: CUdeviceptr) -> Result<AddressReservation> {
        let mut address: CUdeviceptr = 0;
        // SAFETY: `address` is valid for writes.
        unsafe { driver!(cuMemAddressReserve(&mut address, bytes, alignment, hint, 0))? };
        Ok(AddressReservation { address, bytes })
    }
}

impl Drop for AddressReservation {
    fn drop(&mut self) {
        // SAFETY: reserved by `new`, freed once; mappings in it were unmapped before.
        capture_mode::release(|| unsafe { driver!(cuMemAddressFree(self.address, self.bytes)) });
    }
}

/// Physical memory; released when it is dropped, and freed when it is mapped nowhere either.
#[derive(Debug)]
struct PhysicalMemory {
    handle: CUmemGenericAllocationHandle,
    bytes: usize,
    /// Access rights, wherever it is mapped.
    access: Vec<(MemoryLocation, MemoryAccess)>,
}

impl PhysicalMemory {
    fn new(bytes: usize, options: &VirtualMemoryOptions) -> Result<PhysicalMemory> {
        let mut handle: CUmemGenericAllocationHandle = 0;
        let properties = options.properties();
        // SAFETY: `handle` is valid for writes, `properties` is complete.
        unsafe { driver!(cuMemCreate(&mut handle, bytes, &properties, 0))? };
        Ok(PhysicalMemory {
            handle,
            bytes,
            access: options.access.clone(),
        })
    }
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        // SAFETY: created by `new`, released once.
        capture_mode::release(|| unsafe { driver!(cuMemRelease(self.handle)) });
    }
}

/// PhysicalMemory memory at an address; unmapped when it is dropped.
#[derive(Debug)]
struct Mapping {
    address: CUdeviceptr,
    bytes: usize,
}

impl Mapping {
    fn new(address: CUdeviceptr, physical: &PhysicalMemory) -> Result<Mapping> {
        let bytes = physical.bytes;
        // SAFETY: the handle is live; the driver rejects addresses that are not reserved, or are mapped.
        unsafe { driver!(cuMemMap(address, bytes, 0, physical.handle, 0))? };
        let mapped = Mapping { address, bytes };
        let rights: Vec<CUmemAccessDesc> = physical
            .access
            .iter()
            .map(|&(location, access)| CUmemAccessDesc {
                location: location.to_raw(),
                flags: match access {
                    MemoryAccess::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
                    MemoryAccess::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                    MemoryAccess::ReadWrite => {
                        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                    }
                },
            })
            .collect();
        if !rights.is_empty() {
            // SAFETY: the array has the length passed; the range was just mapped.
            unsafe {
                driver!(cuMemSetAccess(
                    address,
                    bytes,
                    rights.as_ptr(),
                    rights.len()
                ))?
            };
        }
        Ok(mapped)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, unmapped once.
        capture_mode::release(|| unsafe { driver!(cuMemUnmap(self.address, self.bytes)) });
    }
}

/// One allocation. Fields are dropped in order: mappings, addresses, physical memory.
#[derive(Debug, Default)]
struct Block {
    mapped: Vec<Mapping>,
    reserved: Vec<AddressReservation>,
    physical: Vec<PhysicalMemory>,
    bytes: usize,
}

impl Block {
    /// Maps all pieces contiguously from `address` on.
    fn map(address: CUdeviceptr, pieces: &[PhysicalMemory]) -> Result<Vec<Mapping>> {
        let mut at = address;
        let mut mapped = Vec::with_capacity(pieces.len());
        for piece in pieces {
            mapped.push(Mapping::new(at, piece)?);
            at += piece.bytes as u64;
        }
        Ok(mapped)
    }
}

/// Memory of reserved addresses and physical pieces, which can grow.
///
/// Allocating and freeing are immediate; freeing waits for the deallocation stream.
#[derive(Debug)]
pub struct VirtualMemoryResource {
    options: Mutex<Arc<VirtualMemoryOptions>>,
    blocks: Mutex<HashMap<CUdeviceptr, Block>>,
    generation: ForkGeneration,
}

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl std::panic::RefUnwindSafe for VirtualMemoryResource {}

impl Drop for VirtualMemoryResource {
    fn drop(&mut self) {
        let blocks = std::mem::take(self.blocks.get_mut());
        if !self.generation.is_current() {
            // The parent process owns them.
            std::mem::forget(blocks);
        }
    }
}

impl VirtualMemoryResource {
    /// A resource; makes no driver call.
    pub fn new(options: VirtualMemoryOptions) -> VirtualMemoryResource {
        VirtualMemoryResource {
            options: Mutex::new(Arc::new(options)),
            blocks: Mutex::default(),
            generation: ForkGeneration::current(),
        }
    }

    /// Options for creating and mapping memory.
    pub fn options(&self) -> Arc<VirtualMemoryOptions> {
        self.options.lock().clone()
    }

    /// Sets the options for later allocations.
    pub fn set_options(&self, options: VirtualMemoryOptions) {
        *self.options.lock() = Arc::new(options);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CUdeviceptr, Block>> {
        // Held for a lookup, never across a driver call.
        self.blocks.lock()
    }

    /// Makes a context current, which some calls need.
    fn enter(&self) -> Result<ContextGuard> {
        let device = self.device().map_or_else(Device::current, Ok)?;
        Ok(device.enter()?.0)
    }

    fn create_block(&self, bytes: usize) -> Result<(CUdeviceptr, Block)> {
        let options = &*self.options();
        let physical = vec![PhysicalMemory::new(bytes, options)?];
        let reserved = AddressReservation::new(bytes, options.alignment, options.address_hint)?;
        let address = reserved.address;
        let mapped = Block::map(address, &physical)?;
        let block = Block {
            mapped,
            reserved: vec![reserved],
            physical,
            bytes,
        };
        Ok((address, block))
    }

    /// Grows an allocation to at least `bytes` bytes and returns whether its address is unchanged. The contents are
    /// kept. An allocation never shrinks.
    ///
    /// The added memory is created with `options`, or those of the resource. If the following addresses are taken, the
    /// whole allocation is mapped at new ones: this first waits for the device, and invalidates the former addresses.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a buffer of another resource; otherwise the driver's error, such as
    /// `CUDA_ERROR_OUT_OF_MEMORY`. The buffer is unchanged then.
    pub fn grow(
        &self,
        buffer: &mut DeviceBuffer,
        bytes: usize,
        options: Option<&VirtualMemoryOptions>,
    ) -> Result<bool> {
        let own = self.options();
        let options = options.unwrap_or(&own);
        let _entered = self.enter()?;
        let total = own.rounded(bytes)?.max(options.rounded(bytes)?);
        let address = buffer.address;
        let Some(mut block) = self.lock().remove(&address) else {
            return Err(unknown_address("cuMemMap", address));
        };
        if total <= block.bytes {
            self.lock().insert(address, block);
            return Ok(true);
        }
        let extra = total - block.bytes;
        let done = match self.extend(address, &mut block, extra, options) {
            Ok(true) => Ok(address),
            Ok(false) => self.relocate(&mut block, extra, options, buffer),
            Err(error) => Err(error),
        };
        let now = *done.as_ref().unwrap_or(&address);
        let have = block.bytes;
        self.lock().insert(now, block);
        done?;
        buffer.move_to(now, have);
        Ok(now == address)
    }

    /// Adds memory at the following addresses; false if they are taken.
    fn extend(
        &self,
        address: CUdeviceptr,
        block: &mut Block,
        extra: usize,
        options: &VirtualMemoryOptions,
    ) -> Result<bool> {
        let end = address + block.bytes as u64;
        let reserved = match AddressReservation::new(extra, 0, end) {
            Ok(reserved) if reserved.address == end => reserved,
            // The driver did not follow the hint: the reservation is dropped.
            _ => return Ok(false),
        };
        let physical = PhysicalMemory::new(extra, options)?;
        // Declared after the addresses, so that it is dropped before them if the next call fails.
        let mapped = Mapping::new(end, &physical)?;
        block.mapped.push(mapped);
        block.reserved.push(reserved);
        block.physical.push(physical);
        block.bytes += extra;
        Ok(true)
    }

    /// Maps the existing and the added memory at new addresses; returns the first one.
    fn relocate(
        &self,
        block: &mut Block,
        extra: usize,
        options: &VirtualMemoryOptions,
        buffer: &DeviceBuffer,
    ) -> Result<CUdeviceptr> {
        let total = block.bytes + extra;
        let more = PhysicalMemory::new(extra, options)?;
        let reserved = AddressReservation::new(total, options.alignment, 0)?;
        let address = reserved.address;
        // Queued work uses the former addresses, possibly on streams that are not known.
        for stream in buffer.streams() {
            synchronize_unless_capturing(&stream);
        }
        buffer.default_stream_device().synchronize()?;
        block.physical.push(more);
        // Memory may be mapped twice: nothing is unmapped until everything has succeeded.
        let mapped = match Block::map(address, &block.physical) {
            Ok(mapped) => mapped,
            Err(error) => {
                block.physical.pop();
                return Err(error);
            }
        };
        // Unmapped before the addresses are freed.
        block.mapped = mapped;
        block.reserved = vec![reserved];
        block.bytes = total;
        Ok(address)
    }
}

// SAFETY: each block has its own addresses and memory, mapped for its whole size until it is removed.
unsafe impl MemoryResource for VirtualMemoryResource {
    fn allocate(&self, bytes: usize, _: &Stream) -> Result<CUdeviceptr> {
        let _entered = self.enter()?;
        let (address, block) = self.create_block(self.rounded(bytes)?)?;
        self.lock().insert(address, block);
        Ok(address)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        let Some(block) = self.lock().remove(&address) else {
            return Err(unknown_address("cuMemUnmap", address));
        };
        let _relaxed = RelaxedCapture::enter();
        synchronize_unless_capturing(stream);
        let _entered = self.enter()?;
        drop(block);
        Ok(())
    }

    fn rounded(&self, bytes: usize) -> Result<usize> {
        Device::count()?;
        self.options().rounded(bytes)
    }

    fn device(&self) -> Option<Device> {
        match self.options().location {
            MemoryLocation::Device(ordinal) => Device::new(ordinal).ok(),
            _ => None,
        }
    }

    fn is_device_accessible(&self) -> bool {
        let device = |&(location, access): &(MemoryLocation, MemoryAccess)| {
            matches!(location, MemoryLocation::Device(_)) && access != MemoryAccess::None
        };
        self.options().access.iter().any(device)
    }

    fn is_host_accessible(&self) -> bool {
        !matches!(self.options().location, MemoryLocation::Device(_))
    }
}

//! Memory whose addresses and physical pieces are managed apart, so that it can grow.
//!
//! Source: CUDA Driver API, "Virtual Memory Management", and the chapter of the same name in the CUDA C++ Programming
//! Guide.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_st_allocFlags,
    CUmemAllocationType, CUmemGenericAllocationHandle, CUresult,
};

use crate::context::ContextGuard;
use crate::context::capture_mode::{self, RelaxedCapture};
use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::fork::ForkGeneration;
use crate::memory::location::MemoryLocation;
use crate::memory::pool::MemoryAccess;
use crate::memory::raw::DeviceBuffer;
use crate::memory::resource::{MemoryResource, finish};
use crate::stream::Stream;

/// What the driver would say of an address, with what is wrong with it.
fn not_mine(call: &'static str, address: CUdeviceptr) -> Error {
    Error::Driver {
        call,
        status: CUresult::CUDA_ERROR_INVALID_VALUE,
        log: format!("{address:#x} is no allocation of this resource"),
    }
}

/// What kind of memory is created (`CUmemAllocationType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VirtualAllocationKind {
    /// Memory that stays where it was created.
    #[default]
    Pinned,
    /// Managed memory, which moves.
    Managed,
}

/// How memory can be handed to other processes (`CUmemAllocationHandleType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ShareableHandleKind {
    /// Not at all.
    None,
    /// As a file descriptor.
    #[default]
    PosixFd,
    /// As a handle of Windows' kernel.
    Win32Kmt,
    /// As a handle that other nodes of the fabric understand.
    Fabric,
}

/// Which multiples sizes are rounded up to (`CUmemAllocationGranularity_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// The smallest that work.
    Minimum,
    /// Those that are fastest.
    #[default]
    Recommended,
}

/// How memory is created and mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VirtualMemoryOptions {
    /// What kind of memory.
    pub allocation: VirtualAllocationKind,
    /// Where.
    pub location: MemoryLocation,
    /// How it can be handed to other processes.
    pub share: ShareableHandleKind,
    /// What sizes are rounded up to.
    pub granularity: Granularity,
    /// Whether other devices on the bus may read and write it directly (GPUDirect RDMA).
    pub gpu_direct_rdma: bool,
    /// The address it should rather have; 0 for any.
    pub address_hint: CUdeviceptr,
    /// What the address is a multiple of, a power of two; 0 for what the driver wants.
    pub alignment: usize,
    /// Who may do what with it.
    pub access: Vec<(MemoryLocation, MemoryAccess)>,
}

impl VirtualMemoryOptions {
    /// Pinned memory at a place, which may be read and written there.
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

    /// `bytes` rounded up to what the driver can create.
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
        // SAFETY: `unit` is a valid place for the result, `properties` is complete.
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
        // SAFETY: `address` is a valid place for the result.
        unsafe { driver!(cuMemAddressReserve(&mut address, bytes, alignment, hint, 0))? };
        Ok(AddressReservation { address, bytes })
    }
}

impl Drop for AddressReservation {
    fn drop(&mut self) {
        // SAFETY: reserved by `new`, given back once; what was mapped there was unmapped before.
        capture_mode::release(|| unsafe { driver!(cuMemAddressFree(self.address, self.bytes)) });
    }
}

/// PhysicalMemory memory; released when it is dropped, and gone when it is mapped nowhere either.
#[derive(Debug)]
struct PhysicalMemory {
    handle: CUmemGenericAllocationHandle,
    bytes: usize,
    /// Who may do what with it, wherever it is mapped.
    access: Vec<(MemoryLocation, MemoryAccess)>,
}

impl PhysicalMemory {
    fn new(bytes: usize, options: &VirtualMemoryOptions) -> Result<PhysicalMemory> {
        let mut handle: CUmemGenericAllocationHandle = 0;
        let properties = options.properties();
        // SAFETY: `handle` is a valid place for the result, `properties` is complete.
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
        // SAFETY: the handle is live; the driver refuses addresses that are not reserved, or mapped already.
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
            // SAFETY: an array of as many descriptions as the call is told, for a range that was mapped just now.
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

/// One allocation. Fields go in their order: what is mapped, then the addresses, then the memory.
#[derive(Debug, Default)]
struct Block {
    mapped: Vec<Mapping>,
    reserved: Vec<AddressReservation>,
    physical: Vec<PhysicalMemory>,
    bytes: usize,
}

impl Block {
    /// Maps all pieces one after the other from `address` on.
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

/// Memory made of reserved addresses and physical pieces, which can grow.
///
/// Allocating and freeing are immediate; freeing waits for the stream that the memory is freed on.
#[derive(Debug)]
pub struct VirtualMemoryResource {
    options: Mutex<Arc<VirtualMemoryOptions>>,
    blocks: Mutex<HashMap<CUdeviceptr, Block>>,
    generation: ForkGeneration,
}

impl Drop for VirtualMemoryResource {
    fn drop(&mut self) {
        let blocks = std::mem::take(
            self.blocks
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if !self.generation.is_current() {
            // The parent's: it alone may give them back.
            std::mem::forget(blocks);
        }
    }
}

impl VirtualMemoryResource {
    /// A resource; nothing is asked of the driver yet.
    pub fn new(options: VirtualMemoryOptions) -> VirtualMemoryResource {
        VirtualMemoryResource {
            options: Mutex::new(Arc::new(options)),
            blocks: Mutex::default(),
            generation: ForkGeneration::current(),
        }
    }

    /// How memory is created and mapped.
    pub fn options(&self) -> Arc<VirtualMemoryOptions> {
        self.options
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Has memory created and mapped otherwise from now on.
    pub fn set_options(&self, options: VirtualMemoryOptions) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(options);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CUdeviceptr, Block>> {
        // Held for a look-up, never across a call of the driver.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a context current, as some of the calls need one.
    fn enter(&self) -> Result<ContextGuard> {
        let device = self.device().map_or_else(Device::current, Ok)?;
        Ok(device.enter()?.0)
    }

    fn make(&self, bytes: usize) -> Result<(CUdeviceptr, Block)> {
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

    /// Lets an allocation have at least `bytes` bytes, and says whether it stayed where it is. Its contents stay in any
    /// case; there is no shrinking, so fewer bytes than it has change nothing.
    ///
    /// The memory that is added is made with `options`, those of the resource where there are none. Where the addresses
    /// after the allocation are taken, all of it is mapped at other ones; this waits for the device first, and the former
    /// addresses are not valid any more.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a buffer of another resource; otherwise what the driver says,
    /// `CUDA_ERROR_OUT_OF_MEMORY` for one. The buffer is as it was then.
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
            return Err(not_mine("cuMemMap", address));
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
        buffer.address = now;
        buffer.size = have;
        Ok(now == address)
    }

    /// Adds memory at the addresses that follow; false where those are taken.
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
            // The hint was not followed; what came instead goes back.
            _ => return Ok(false),
        };
        let physical = PhysicalMemory::new(extra, options)?;
        // Declared after the addresses, so that it goes before them where the next call fails.
        let mapped = Mapping::new(end, &physical)?;
        block.mapped.push(mapped);
        block.reserved.push(reserved);
        block.physical.push(physical);
        block.bytes += extra;
        Ok(true)
    }

    /// Maps what there is, and more, at new addresses; gives the first of them.
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
        // Work that was queued has the former addresses, as far as anybody knows on any stream.
        for stream in buffer.streams() {
            finish(&stream);
        }
        buffer.default_stream_device().synchronize()?;
        block.physical.push(more);
        // The same memory may be mapped twice, so until all has worked out nothing is taken away.
        let mapped = match Block::map(address, &block.physical) {
            Ok(mapped) => mapped,
            Err(error) => {
                block.physical.pop();
                return Err(error);
            }
        };
        // Unmapped before the addresses go.
        block.mapped = mapped;
        block.reserved = vec![reserved];
        block.bytes = total;
        Ok(address)
    }
}

// SAFETY: every block has addresses and memory of its own, mapped for as many bytes, until it is removed from the table.
unsafe impl MemoryResource for VirtualMemoryResource {
    fn allocate(&self, bytes: usize, _: &Stream) -> Result<CUdeviceptr> {
        let _entered = self.enter()?;
        let (address, block) = self.make(self.rounded(bytes)?)?;
        self.lock().insert(address, block);
        Ok(address)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        let Some(block) = self.lock().remove(&address) else {
            return Err(not_mine("cuMemUnmap", address));
        };
        let _relaxed = RelaxedCapture::enter();
        finish(stream);
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

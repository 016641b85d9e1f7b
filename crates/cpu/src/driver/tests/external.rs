//! Memory of other APIs.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use cupyrite_sys::driver::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUarray_format,
    CUexternalMemoryHandleType, CUexternalSemaphoreHandleType,
};

use super::super::Code;
use super::kernels::{PTX, function, launch, module};
use super::{Session, cu, ok};

pub(super) const OPAQUE: u32 = 1;
pub(super) const TYPE_9: u32 = 9;

/// An all-zero C structure.
pub(super) fn zeroed<T: Copy>() -> T {
    // SAFETY: used for structures of integers and pointers only.
    unsafe { std::mem::zeroed() }
}

pub(super) fn memfd(size: u64) -> OwnedFd {
    // SAFETY: a new file, owned by the returned value.
    unsafe {
        let file = OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0));
        assert_eq!(libc::ftruncate(file.as_raw_fd(), size as i64), 0);
        file
    }
}

pub(super) fn eventfd() -> OwnedFd {
    // SAFETY: a new descriptor, owned by the returned value.
    unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) }
}

pub(super) fn is_open(descriptor: i32) -> bool {
    // SAFETY: queries the flags of a number.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) >= 0 }
}

pub(super) fn read_word(file: &OwnedFd, offset: i64) -> u64 {
    let mut word = 0u64;
    // SAFETY: reads eight bytes into an integer.
    let n = unsafe { libc::pread(file.as_raw_fd(), (&raw mut word).cast(), 8, offset) };
    assert_eq!(n, 8);
    word
}

pub(super) fn write_word(file: &OwnedFd, offset: i64, word: u64) {
    // SAFETY: writes the eight bytes of an integer.
    let n = unsafe { libc::pwrite(file.as_raw_fd(), (&raw const word).cast(), 8, offset) };
    assert_eq!(n, 8);
}

fn memory_desc(
    kind: u32,
    descriptor: i32,
    size: u64,
    flags: u32,
) -> CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    let mut desc: CUDA_EXTERNAL_MEMORY_HANDLE_DESC = zeroed();
    desc.r#type = CUexternalMemoryHandleType(kind);
    desc.handle.fd = descriptor;
    (desc.size, desc.flags) = (size, flags);
    desc
}

/// The status of an import, and the handle.
pub(super) fn try_import(kind: u32, descriptor: i32, size: u64, flags: u32) -> (u32, u64) {
    let mut memory = 0u64;
    let desc = memory_desc(kind, descriptor, size, flags);
    (cu!("cuImportExternalMemory", &mut memory, &desc), memory)
}

pub(super) fn import(file: &OwnedFd, size: u64) -> u64 {
    let copy = file.try_clone().unwrap().into_raw_fd();
    let (status, memory) = try_import(OPAQUE, copy, size, 0);
    assert_eq!(status, 0);
    memory
}

pub(super) fn try_map(memory: u64, offset: u64, size: u64, flags: u32) -> (u32, u64) {
    let mut desc: CUDA_EXTERNAL_MEMORY_BUFFER_DESC = zeroed();
    (desc.offset, desc.size, desc.flags) = (offset, size, flags);
    let mut address = 0u64;
    let status = cu!(
        "cuExternalMemoryGetMappedBuffer",
        &mut address,
        memory,
        &desc
    );
    (status, address)
}

pub(super) fn map(memory: u64, offset: u64, size: u64) -> u64 {
    let (status, address) = try_map(memory, offset, size, 0);
    assert_eq!(status, 0);
    address
}

pub(super) fn try_semaphore(kind: u32, descriptor: i32, flags: u32) -> (u32, u64) {
    let mut desc: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC = zeroed();
    desc.r#type = CUexternalSemaphoreHandleType(kind);
    desc.handle.fd = descriptor;
    desc.flags = flags;
    let mut semaphore = 0u64;
    (
        cu!("cuImportExternalSemaphore", &mut semaphore, &desc),
        semaphore,
    )
}

pub(super) fn semaphore(kind: u32, file: &OwnedFd) -> u64 {
    let (status, semaphore) = try_semaphore(kind, file.try_clone().unwrap().into_raw_fd(), 0);
    assert_eq!(status, 0);
    semaphore
}

#[test]
fn a_mapped_buffer_is_the_memory_of_the_object() {
    let s = Session::new();
    let file = memfd(10_000);
    let descriptor = file.try_clone().unwrap().into_raw_fd();
    let (status, memory) = try_import(OPAQUE, descriptor, 10_000, 1);
    assert_eq!(status, 0);
    assert!(!is_open(descriptor), "the import takes the descriptor over");
    let address = map(memory, 4104, 800);
    ok!("cuMemsetD32_v2", address, 7, 2);
    ok!("cuCtxSynchronize");
    assert_eq!(read_word(&file, 4104), 0x7_0000_0007);
    write_word(&file, 4112, 99);
    let mut word = 0u64;
    ok!("cuMemcpyDtoH_v2", &mut word, address + 8, 8);
    assert_eq!(word, 99);
    // Accesses behind the mapping are refused, although the page goes on.
    assert_ne!(cu!("cuMemsetD8_v2", address, 1, 801), 0);
    let (mut base, mut size, mut kind, mut context) = (0u64, 0u64, 0u32, 0u64);
    ok!("cuMemGetAddressRange_v2", &mut base, &mut size, address + 5);
    assert_eq!((base, size), (address, 800));
    ok!("cuPointerGetAttribute", &mut kind, 2, address);
    ok!("cuPointerGetAttribute", &mut context, 1, address);
    assert_eq!((kind, context), (2, s.0));
    let mut handle = [0u8; 64];
    assert_eq!(
        cu!("cuIpcGetMemHandle", &mut handle, address),
        Code::INVALID_VALUE.0
    );
    assert_eq!(cu!("cuMemFreeAsync", address, 0u64), Code::INVALID_VALUE.0);
    // A second mapping, of the whole object; both outlive it.
    let whole = map(memory, 0, 10_000);
    ok!("cuDestroyExternalMemory", memory);
    ok!("cuMemcpyDtoH_v2", &mut word, whole + 4104, 8);
    assert_eq!(word, 0x7_0000_0007);
    ok!("cuMemFree_v2", whole);
    assert_eq!(
        cu!("cuMemcpyDtoH_v2", &mut word, whole, 8),
        Code::INVALID_VALUE.0
    );
    assert_eq!(cu!("cuMemFree_v2", address + 8), Code::INVALID_VALUE.0);
    ok!("cuMemFree_v2", address);
    assert_eq!(cu!("cuMemFree_v2", address), Code::INVALID_VALUE.0);
}

#[test]
fn kernels_fault_behind_a_mapped_buffer() {
    let _s = Session::new();
    let file = memfd(4096);
    let address = map(import(&file, 4096), 0, 256);
    let f = function(module(PTX), "store");
    let store_at = |at: u64| assert_eq!(launch(f, 1, 1, 0, &[std::ptr::from_ref(&at) as u64]), 0);
    store_at(address + 252);
    ok!("cuCtxSynchronize");
    assert_eq!(read_word(&file, 248), 42 << 32);
    // In the same page.
    store_at(address + 256);
    assert_eq!(cu!("cuCtxSynchronize"), Code::ILLEGAL_ADDRESS.0);
}

#[test]
fn invalid_imports_of_memory_keep_the_descriptor() {
    let _s = Session::new();
    let file = memfd(4096);
    let fd = file.as_raw_fd();
    for (kind, size, flags, status) in [
        (0, 4096, 0, Code::INVALID_VALUE),
        (2, 4096, 0, Code::NOT_SUPPORTED),
        (3, 4096, 0, Code::NOT_SUPPORTED),
        (4, 4096, 0, Code::NOT_SUPPORTED),
        (5, 4096, 0, Code::INVALID_VALUE),
        (5, 4096, 1, Code::NOT_SUPPORTED),
        (8, 4096, 0, Code::NOT_SUPPORTED),
        (10, 4096, 0, Code::INVALID_VALUE),
        (u32::MAX, 4096, 0, Code::INVALID_VALUE),
        (1, 0, 0, Code::INVALID_VALUE),
        (1, 4097, 0, Code::INVALID_VALUE),
        (1, u64::MAX, 0, Code::INVALID_VALUE),
        (1, 4096, 2, Code::INVALID_VALUE),
        (9, 4096, 1, Code::INVALID_VALUE),
    ] {
        assert_eq!(
            try_import(kind, fd, size, flags),
            (status.0, 0),
            "{kind} {size} {flags}"
        );
        assert!(is_open(fd));
    }
    let event = eventfd();
    let null = std::fs::File::open("/dev/null").unwrap();
    for (kind, fd, status) in [
        (1, -1, Code::UNKNOWN),
        (9, -1, Code::INVALID_VALUE),
        (1, 1 << 20, Code::UNKNOWN),
        (9, 1 << 20, Code::UNKNOWN),
        (1, event.as_raw_fd(), Code::UNKNOWN),
        (1, null.as_raw_fd(), Code::UNKNOWN),
    ] {
        assert_eq!(try_import(kind, fd, 4096, 0).0, status.0, "{kind} {fd}");
    }
    assert!(is_open(event.as_raw_fd()) && is_open(null.as_raw_fd()));
    let mut desc = memory_desc(1, fd, 4096, 0);
    desc.reserved[15] = 1;
    let mut memory = 0u64;
    assert_eq!(
        cu!("cuImportExternalMemory", &mut memory, &desc),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuImportExternalMemory", 0u64, &desc),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuImportExternalMemory", &mut memory, 0u64),
        Code::INVALID_VALUE.0
    );
    // A handle that cannot be stored: the descriptor stays the program's.
    desc.reserved[15] = 0;
    assert_eq!(
        cu!("cuImportExternalMemory", 64u64, &desc),
        Code::INVALID_VALUE.0
    );
    assert!(is_open(fd));
}

#[test]
fn invalid_mappings_are_refused() {
    let s = Session::new();
    let memory = import(&memfd(8192), 4096);
    for (offset, size, flags) in [
        (0, 0, 0),
        (0, 4097, 0),
        (4096, 1, 0),
        (u64::MAX, 2, 0),
        (1, u64::MAX, 0),
        (0, 4096, 1),
    ] {
        assert_eq!(
            try_map(memory, offset, size, flags).0,
            Code::INVALID_VALUE.0
        );
    }
    assert_eq!(try_map(0, 0, 16, 0).0, Code::INVALID_VALUE.0);
    for handle in [1, s.0, 0xdead_beef] {
        assert_eq!(try_map(handle, 0, 16, 0).0, Code::INVALID_HANDLE.0);
    }
    assert_eq!(cu!("cuDestroyExternalMemory", 0u64), Code::INVALID_VALUE.0);
    ok!("cuDestroyExternalMemory", memory);
    assert_eq!(
        cu!("cuDestroyExternalMemory", memory),
        Code::INVALID_HANDLE.0
    );
    assert_eq!(try_map(memory, 0, 16, 0).0, Code::INVALID_HANDLE.0);
    // As a semaphore.
    let other = semaphore(OPAQUE, &eventfd());
    assert_eq!(
        cu!("cuDestroyExternalMemory", other),
        Code::INVALID_HANDLE.0
    );
    assert_eq!(
        cu!("cuDestroyExternalSemaphore", memory),
        Code::INVALID_HANDLE.0
    );
}

#[test]
fn mappings_and_objects_end_with_their_context() {
    let (memory, address, other) = {
        let _s = Session::new();
        let memory = import(&memfd(4096), 4096);
        (memory, map(memory, 0, 4096), semaphore(OPAQUE, &eventfd()))
    };
    let _s = Session::new();
    assert_eq!(cu!("cuMemFree_v2", address), Code::INVALID_VALUE.0);
    assert_eq!(
        cu!("cuDestroyExternalMemory", memory),
        Code::INVALID_HANDLE.0
    );
    assert_eq!(
        cu!("cuDestroyExternalSemaphore", other),
        Code::INVALID_HANDLE.0
    );
}

#[test]
fn memory_of_mem_create_is_imported() {
    let s = Session::new();
    let mut properties: cupyrite_sys::driver::CUmemAllocationProp = zeroed();
    properties.r#type = cupyrite_sys::driver::CUmemAllocationType(1);
    properties.requestedHandleTypes = cupyrite_sys::driver::CUmemAllocationHandleType(1);
    properties.location.r#type = cupyrite_sys::driver::CUmemLocationType(1);
    let (mut handle, mut descriptor) = (0u64, -1i32);
    ok!("cuMemCreate", &mut handle, 2 << 20, &properties, 0u64);
    ok!(
        "cuMemExportToShareableHandle",
        &mut descriptor,
        handle,
        1,
        0u64
    );
    let (status, memory) = try_import(OPAQUE, descriptor, 2 << 20, 0);
    assert_eq!(status, 0);
    let address = map(memory, 1 << 20, 4096);
    ok!("cuMemsetD8_v2", address, 5, 4096);
    let mut at = 0u64;
    ok!("cuMemAddressReserve", &mut at, 2 << 20, 0u64, 0u64, 0u64);
    ok!("cuMemMap", at, 2 << 20, 0u64, handle, 0u64);
    let access = [1u32, 0, 3];
    ok!("cuMemSetAccess", at, 2 << 20, &access, 1u64);
    let mut byte = 0u8;
    ok!("cuMemcpyDtoH_v2", &mut byte, at + (1 << 20) + 4095, 1);
    assert_eq!(byte, 5);
    ok!("cuMemUnmap", at, 2 << 20);
    ok!("cuMemAddressFree", at, 2 << 20);
    ok!("cuMemRelease", handle);
    // A pool's file has a layout of its own.
    let mut pool_properties: cupyrite_sys::driver::CUmemPoolProps = zeroed();
    pool_properties.allocType = properties.r#type;
    pool_properties.handleTypes = properties.requestedHandleTypes;
    pool_properties.location.r#type = properties.location.r#type;
    let mut pool = 0u64;
    ok!("cuMemPoolCreate", &mut pool, &pool_properties);
    ok!(
        "cuMemPoolExportToShareableHandle",
        &mut descriptor,
        pool,
        1,
        0u64
    );
    assert_eq!(try_import(OPAQUE, descriptor, 4096, 0).0, Code::UNKNOWN.0);
    // SAFETY: closes the descriptor that the driver returned.
    unsafe { libc::close(descriptor) };
    ok!("cuMemPoolDestroy", pool);
    drop(s);
}

#[test]
fn a_mipmapped_array_lies_in_the_object() {
    let s = Session::new();
    let file = memfd(16_384);
    let memory = import(&file, 16_384);
    let mut desc: CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC = zeroed();
    desc.offset = 4096;
    desc.arrayDesc = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 16,
        Height: 4,
        Depth: 0,
        Format: CUarray_format::CU_AD_FORMAT_FLOAT,
        NumChannels: 1,
        // CUDA_ARRAY3D_COLOR_ATTACHMENT
        Flags: 0x20,
    };
    desc.numLevels = 2;
    let (mut mipmapped, mut array) = (0u64, 0u64);
    let name = "cuExternalMemoryGetMappedMipmappedArray";
    assert_eq!(
        super::call(
            name,
            &[&raw mut mipmapped as u64, memory, &raw const desc as u64]
        ),
        0
    );
    ok!("cuMipmappedArrayGetLevel", &mut array, mipmapped, 1);
    let data = [1.5f32; 8];
    ok!("cuMemcpyHtoA_v2", array, 0u64, &data, 32);
    assert_eq!(read_word(&file, 4096 + 512), 0x3FC0_0000_3FC0_0000);
    for (offset, levels, reserved, status) in [
        (4100, 1, 0, Code::INVALID_VALUE),
        (16_384, 1, 0, Code::INVALID_VALUE),
        (16_384 - 512, 1, 0, Code::SUCCESS),
        (16_384 - 512, 2, 0, Code::INVALID_VALUE),
        (u64::MAX - 511, 1, 0, Code::INVALID_VALUE),
        (0, 1, 1, Code::INVALID_VALUE),
    ] {
        (desc.offset, desc.numLevels, desc.reserved[0]) = (offset, levels, reserved);
        desc.arrayDesc.Height = 8;
        let mut other = 0u64;
        let given = cu!(
            "cuExternalMemoryGetMappedMipmappedArray",
            &mut other,
            memory,
            &desc
        );
        assert_eq!(given, status.0, "{offset} {levels}");
    }
    // The flag is for memory of other APIs.
    let mut refused = 0u64;
    assert_eq!(
        cu!("cuMipmappedArrayCreate", &mut refused, &desc.arrayDesc, 1),
        Code::INVALID_VALUE.0
    );
    let mut dma_buf = 0u64;
    let descriptor = memory_desc(TYPE_9, file.try_clone().unwrap().into_raw_fd(), 4096, 0);
    ok!("cuImportExternalMemory", &mut dma_buf, &descriptor);
    desc.reserved[0] = 0;
    let status = cu!(
        "cuExternalMemoryGetMappedMipmappedArray",
        &mut refused,
        dma_buf,
        &desc
    );
    assert_eq!(status, Code::NOT_SUPPORTED.0);
    ok!("cuDestroyExternalMemory", memory);
    ok!("cuMipmappedArrayDestroy", mipmapped);
    assert_eq!(
        cu!("cuMipmappedArrayDestroy", mipmapped),
        Code::INVALID_HANDLE.0
    );
    drop(s);
}

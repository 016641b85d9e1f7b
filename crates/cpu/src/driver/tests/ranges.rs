//! Descriptors of memory ranges, locations of pages, flushes and notifications.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use cupyrite_sys::driver::CUmemLocation;

use super::super::Code;
use super::{Session, cu, ok};

const SIZE: usize = 1 << 20;

/// The status and the descriptor of a range.
fn range(address: u64, size: usize, kind: u32, flags: u64) -> (u32, i32) {
    let mut descriptor = -5i32;
    let status = cu!(
        "cuMemGetHandleForAddressRange",
        &mut descriptor,
        address,
        size,
        kind,
        flags
    );
    (status, descriptor)
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the driver has passed the ownership of a new descriptor.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

#[test]
fn a_range_has_the_descriptor_of_its_memory() {
    let s = Session::new();
    let address = s.alloc(SIZE);
    let (status, descriptor) = range(address, SIZE, 1, 0);
    assert_eq!(status, 0);
    let file = owned(descriptor);
    ok!("cuMemsetD8_v2", address + 4096, 7, 8);
    ok!("cuCtxSynchronize");
    let mut word = 0u64;
    // SAFETY: reads eight bytes into an integer.
    let n = unsafe { libc::pread(file.as_raw_fd(), (&raw mut word).cast(), 8, 4096) };
    assert_eq!((n, word), (8, 0x0707_0707_0707_0707));
    // Another descriptor of the same memory.
    let (status, again) = range(address, 8192, 1, 0);
    assert_eq!(status, 0);
    drop(owned(again));
    ok!("cuMemFree_v2", address);
    let attribute = |number: i32| {
        let mut value = -1i32;
        ok!("cuDeviceGetAttribute", &mut value, number, 0);
        value
    };
    // DMA_BUF, DMA_BUF_MMAP, timeline semaphores, flush options, order of writes, RDMA.
    let values = [124, 152, 114, 117, 118, 116].map(attribute);
    assert_eq!(values, [1, 1, 1, 1, 200, 0]);
}

#[test]
fn other_ranges_have_no_descriptor() {
    let s = Session::new();
    let (address, host) = (s.alloc(SIZE), s.pinned(SIZE));
    // Of a size whose places are multiples of a page.
    let small = s.alloc(8192);
    let mut managed = 0u64;
    ok!("cuMemAllocManaged", &mut managed, SIZE, 1);
    let (invalid, missing) = (Code::INVALID_VALUE.0, Code::NOT_SUPPORTED.0);
    for (address, size, kind, flags, expected) in [
        (address, 100, 1, 0, (invalid, -5)),
        (address + 512, 4096, 1, 0, (invalid, -5)),
        (address, 0, 1, 0, (invalid, -5)),
        (address, SIZE, 0, 0, (invalid, -5)),
        (address, SIZE, 2, 0, (invalid, -5)),
        (address, SIZE, 1, 2, (invalid, -5)),
        (address, SIZE, 1, 1, (missing, -1)),
        (address, 2 * SIZE, 1, 0, (invalid, -1)),
        (address + 4096, 4096, 1, 0, (missing, -1)),
        (small, 4096, 1, 0, (missing, -1)),
        (host, SIZE, 1, 0, (invalid, -1)),
        (managed, SIZE, 1, 0, (invalid, -1)),
        (0, 4096, 1, 0, (invalid, -5)),
        (0x1234_5000, 4096, 1, 0, (invalid, -1)),
    ] {
        let given = range(address, size, kind, flags);
        assert_eq!(given, expected, "{address:#x} {size} {kind} {flags}");
    }
    assert_eq!(
        cu!(
            "cuMemGetHandleForAddressRange",
            0u64,
            address,
            SIZE,
            1,
            0u64
        ),
        invalid
    );
}

#[test]
fn flushes_accept_the_documented_scopes() {
    let _s = Session::new();
    for (target, scope, status) in [
        (0, 100, 0),
        (0, 200, 0),
        (0, 0, Code::INVALID_VALUE.0),
        (0, 150, Code::INVALID_VALUE.0),
        (1, 100, Code::INVALID_VALUE.0),
    ] {
        assert_eq!(cu!("cuFlushGPUDirectRDMAWrites", target, scope), status);
    }
}

/// Never called.
unsafe extern "C" fn notified(_: u64, _: u64, _: u64) {
    panic!("the CPU device sends no notifications");
}

#[test]
fn notifications_are_registered_per_device() {
    ok!("cuInit", 0);
    let callback = notified as *const () as u64;
    let (mut first, mut second) = (0u64, 0u64);
    ok!(
        "cuDeviceRegisterAsyncNotification",
        0,
        callback,
        7u64,
        &mut first
    );
    ok!(
        "cuDeviceRegisterAsyncNotification",
        0,
        callback,
        7u64,
        &mut second
    );
    assert_ne!(first, second);
    let register = |device: i32, callback: u64, out: u64| {
        cu!(
            "cuDeviceRegisterAsyncNotification",
            device,
            callback,
            0u64,
            out
        )
    };
    let mut other = 0u64;
    let out = &raw mut other as u64;
    assert_eq!(register(99, callback, out), Code::INVALID_DEVICE.0);
    assert_eq!(register(-1, callback, out), Code::INVALID_DEVICE.0);
    assert_eq!(register(0, 0, out), Code::INVALID_VALUE.0);
    assert_eq!(register(0, callback, 0), Code::INVALID_VALUE.0);
    assert_eq!(register(0, callback, 64), Code::INVALID_VALUE.0);
    assert_eq!(
        cu!("cuDeviceUnregisterAsyncNotification", 99, first),
        Code::INVALID_DEVICE.0
    );
    ok!("cuDeviceUnregisterAsyncNotification", 0, first);
    for handle in [first, 0, 1, 0xdead_beef] {
        let status = cu!("cuDeviceUnregisterAsyncNotification", 0, handle);
        assert_eq!(status, Code::INVALID_VALUE.0);
    }
    ok!("cuDeviceUnregisterAsyncNotification", 0, second);
}

#[test]
fn locations_follow_prefetches_and_accesses() {
    let s = Session::new();
    let mut managed = 0u64;
    ok!("cuMemAllocManaged", &mut managed, 4 * SIZE, 1);
    let mut locations = [CUmemLocation::default(); 4];
    let mut kinds = |sampling: usize| {
        ok!(
            "cuMemGetLocationInfo",
            managed,
            4 * SIZE,
            SIZE,
            sampling,
            &mut locations
        );
        locations.map(|l| l.r#type.0)
    };
    kinds(SIZE);
    // A prefetch to device 0 (type 1, id 0) of the second part; the host (2) touches the third.
    let device = 1u64;
    ok!(
        "cuMemPrefetchAsync_v2",
        managed + SIZE as u64,
        SIZE,
        device,
        0,
        0u64
    );
    ok!("cuMemsetD8_v2", managed + 2 * SIZE as u64, 1, SIZE);
    ok!("cuCtxSynchronize");
    let found = kinds(4096);
    assert_eq!((found[1], found[2]), (1, 2));
    assert_eq!(kinds(0)[1], 1);
    let device = s.alloc(SIZE);
    let mut one = [CUmemLocation::default(); 1];
    let local = vec![1u8; 2 * SIZE];
    let pageable = local.as_ptr() as u64;
    ok!(
        "cuMemGetLocationInfo",
        pageable,
        2 * SIZE,
        2 * SIZE,
        4096,
        &mut one
    );
    assert_eq!(one[0].r#type.0, 2);
    for (address, size, summary, sampling) in [
        (managed, 0, 1, 1),
        (managed, SIZE, 0, 0),
        (managed, SIZE, SIZE + 1, 1),
        (managed, SIZE, 4096, 4097),
        (managed, 4 * SIZE + 1, SIZE, SIZE),
        (device, SIZE, SIZE, SIZE),
        (0, SIZE, SIZE, SIZE),
        (0x10_0000, SIZE, SIZE, SIZE),
        (u64::MAX - 4096, SIZE, SIZE, SIZE),
    ] {
        let status = cu!(
            "cuMemGetLocationInfo",
            address,
            size,
            summary,
            sampling,
            &mut one
        );
        assert_eq!(status, Code::INVALID_VALUE.0, "{address:#x} {size}");
    }
    assert_eq!(
        cu!("cuMemGetLocationInfo", managed, SIZE, SIZE, SIZE, 0u64),
        Code::INVALID_VALUE.0
    );
}

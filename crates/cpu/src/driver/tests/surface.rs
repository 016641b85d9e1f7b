//! Queries of the driver: initialisation, devices, contexts, names, addresses, memory.

use super::super::{Code, get_proc, implemented};
use super::{Session, Word, cu, ok};

fn text(pointer: u64) -> String {
    // SAFETY: the tests pass addresses of NUL-terminated strings.
    unsafe { std::ffi::CStr::from_ptr(pointer as *const _) }
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn every_entry_point_exists() {
    for point in &cupyrite_sys::driver::ENTRY_POINTS {
        assert!(!get_proc(point.symbol).is_null(), "{:?}", point.symbol);
    }
    for row in cupyrite_sys::driver::TABLE.symbols() {
        assert!(!get_proc(row.export).is_null(), "{:?}", row.export);
    }
    assert!(get_proc(c"cuNoSuchFunction").is_null());
    ok!("cuInit", 0);
    assert_eq!(
        cu!("cuEGLStreamConsumerConnect", 0u64, 0u64),
        Code::NOT_SUPPORTED.0
    );
    assert!(implemented().count() > 250);
    for name in implemented() {
        let known = cupyrite_sys::driver::ENTRY_POINTS
            .iter()
            .any(|p| p.symbol.to_str() == Ok(name));
        assert!(known, "{name} is not a CUDA name");
    }
}

#[test]
fn devices() {
    ok!("cuInit", 0);
    assert_eq!(cu!("cuInit", 1), Code::INVALID_VALUE.0);
    let mut n = 0i32;
    ok!("cuDriverGetVersion", &mut n);
    assert_eq!(n, 13050);
    ok!("cuDeviceGetCount", &mut n);
    assert_eq!(n, 1);
    let mut dev = -1i32;
    ok!("cuDeviceGet", &mut dev, 0);
    assert_eq!(dev, 0);
    assert_eq!(cu!("cuDeviceGet", &mut dev, 1), Code::INVALID_DEVICE.0);
    assert_eq!(cu!("cuDeviceGet", &mut dev, -1), Code::INVALID_DEVICE.0);
    assert_eq!(cu!("cuDeviceGet", 0u64, 0), Code::INVALID_VALUE.0);
    let mut name = [0u8; 64];
    ok!("cuDeviceGetName", &mut name, 64, 0);
    assert!(name.starts_with(b"CPU"));
    let mut short = [0xFFu8; 4];
    ok!("cuDeviceGetName", &mut short, 4, 0);
    assert_eq!(&short, b"CPU\0");
    assert_eq!(
        cu!("cuDeviceGetName", &mut name, 0, 0),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuDeviceGetName", &mut name, -5, 0),
        Code::INVALID_VALUE.0
    );
    let mut id = [0u8; 20];
    ok!("cuDeviceGetPCIBusId", &mut id, 20, 0);
    let mut back = -1i32;
    ok!("cuDeviceGetByPCIBusId", &mut back, &id);
    assert_eq!(back, 0);
    assert_eq!(
        cu!("cuDeviceGetPCIBusId", &mut id, 5, 0),
        Code::INVALID_VALUE.0
    );
    let mut bytes = 0u64;
    ok!("cuDeviceTotalMem_v2", &mut bytes, 0);
    assert!(bytes > 1 << 28);
    for attribute in 1..=161 {
        let mut v = i32::MIN;
        ok!("cuDeviceGetAttribute", &mut v, attribute, 0);
        assert!(v >= -1, "{attribute}");
    }
    let mut v = 0;
    for bad in [0, -1, 162, 100_000] {
        assert_eq!(
            cu!("cuDeviceGetAttribute", &mut v, bad, 0),
            Code::INVALID_VALUE.0
        );
    }
    let (mut major, mut minor) = (0, 0);
    ok!("cuDeviceComputeCapability", &mut major, &mut minor, 0);
    assert_eq!((major, minor), (8, 9));
    let mut prop = [0i32; 14];
    ok!("cuDeviceGetProperties", &mut prop, 0);
    assert_eq!(prop[0], 1024);
}

#[test]
fn error_texts() {
    let mut p = 0u64;
    ok!("cuGetErrorName", 700, &mut p);
    assert_eq!(text(p), "CUDA_ERROR_ILLEGAL_ADDRESS");
    ok!("cuGetErrorName", 0, &mut p);
    assert_eq!(text(p), "CUDA_SUCCESS");
    assert_eq!(cu!("cuGetErrorName", 12345, &mut p), Code::INVALID_VALUE.0);
    assert_eq!(p, 0);
    for &(_, code) in cupyrite_sys::driver::CUresult::MEMBERS {
        ok!("cuGetErrorString", code.0, &mut p);
        assert_ne!(text(p), "", "{code:?}");
        let mut name = 0u64;
        ok!("cuGetErrorName", code.0, &mut name);
        assert_eq!(Some(text(name).as_str()), code.name());
    }
}

#[test]
fn proc_addresses() {
    ok!("cuInit", 0);
    let (mut p, mut status) = (0u64, 9u32);
    ok!(
        "cuGetProcAddress_v2",
        c"cuMemAlloc",
        &mut p,
        13000,
        0u64,
        &mut status
    );
    assert_eq!((p, status), (super::address("cuMemAlloc_v2") as u64, 0));
    ok!(
        "cuGetProcAddress_v2",
        c"cuMemcpyHtoD",
        &mut p,
        13000,
        2u64,
        &mut status
    );
    assert_eq!(p, super::address("cuMemcpyHtoD_v2_ptds") as u64);
    ok!(
        "cuGetProcAddress_v2",
        c"cuMemcpyHtoD",
        &mut p,
        13000,
        1u64,
        &mut status
    );
    assert_eq!(p, super::address("cuMemcpyHtoD_v2") as u64);
    ok!(
        "cuGetProcAddress_v2",
        c"cuMemAlloc",
        &mut p,
        13000,
        2u64,
        0u64
    );
    assert_eq!(p, super::address("cuMemAlloc_v2") as u64);
    let missing = cu!(
        "cuGetProcAddress_v2",
        c"cuNothing",
        &mut p,
        13000,
        0u64,
        &mut status
    );
    assert_eq!(missing, Code::NOT_FOUND.0);
    assert_eq!((p, status), (0, 1));
    let newer = cu!(
        "cuGetProcAddress_v2",
        c"cuLibraryLoadData",
        &mut p,
        11000,
        0u64,
        &mut status
    );
    assert_eq!(newer, Code::NOT_FOUND.0);
    assert_eq!((p, status), (0, 2));
    // numba-cuda-mlir asks for these with a version older than the header's.
    for name in [c"cuFuncGetAttribute", c"cuFuncSetAttribute"] {
        ok!("cuGetProcAddress_v2", name, &mut p, 2000, 0u64, &mut status);
        assert_eq!(p, super::address(name.to_str().unwrap()) as u64);
        let older = cu!("cuGetProcAddress_v2", name, &mut p, 1000, 0u64, &mut status);
        assert_eq!((older, p, status), (Code::NOT_FOUND.0, 0, 2));
    }
    ok!(
        "cuGetProcAddress_v2",
        c"cuCtxCreate",
        &mut p,
        12000,
        0u64,
        &mut status
    );
    assert_eq!(p, super::address("cuCtxCreate_v3") as u64);
    assert_eq!(
        cu!(
            "cuGetProcAddress_v2",
            c"cuMemAlloc",
            &mut p,
            99000,
            0u64,
            &mut status
        ),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!(
            "cuGetProcAddress_v2",
            0u64,
            &mut p,
            13000,
            0u64,
            &mut status
        ),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!(
            "cuGetProcAddress_v2",
            7u64,
            &mut p,
            13000,
            0u64,
            &mut status
        ),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!(
            "cuGetProcAddress_v2",
            c"cuMemAlloc",
            &mut p,
            13000,
            7u64,
            &mut status
        ),
        Code::INVALID_VALUE.0
    );
}

#[test]
fn the_context_stack() {
    std::thread::spawn(|| {
        ok!("cuInit", 0);
        let mut p = 5u64;
        ok!("cuCtxGetCurrent", &mut p);
        assert_eq!(p, 0);
        assert_eq!(cu!("cuMemAlloc_v2", &mut p, 16u64), Code::INVALID_CONTEXT.0);
        assert_eq!(cu!("cuCtxPopCurrent_v2", &mut p), Code::INVALID_CONTEXT.0);
        let (mut a, mut b, mut c) = (0u64, 0u64, 0u64);
        ok!("cuCtxCreate_v2", &mut a, 0, 0);
        ok!("cuCtxCreate_v4", &mut b, 0u64, 8, 0);
        assert_eq!(cu!("cuCtxCreate_v2", &mut c, 3, 0), Code::INVALID_VALUE.0);
        assert_eq!(cu!("cuCtxCreate_v2", &mut c, 0, 7), Code::INVALID_DEVICE.0);
        assert_eq!(cu!("cuCtxCreate_v2", 0u64, 0, 0), Code::INVALID_VALUE.0);
        ok!("cuCtxGetCurrent", &mut c);
        assert_eq!(c, b);
        ok!("cuCtxPopCurrent_v2", &mut c);
        assert_eq!(c, b);
        ok!("cuCtxGetCurrent", &mut c);
        assert_eq!(c, a);
        ok!("cuCtxSetCurrent", b);
        ok!("cuCtxDestroy_v2", a);
        assert_eq!(cu!("cuCtxDestroy_v2", a), Code::INVALID_CONTEXT.0);
        assert_eq!(cu!("cuCtxSetCurrent", a), Code::INVALID_CONTEXT.0);
        let mut id = 0u64;
        ok!("cuCtxGetId", b, &mut id);
        assert_ne!(id, 0);
        let mut flags = 0u32;
        ok!("cuCtxGetFlags", &mut flags);
        assert_eq!(flags, 8);
        // Destroyed while current on another thread.
        std::thread::spawn(move || {
            ok!("cuCtxSetCurrent", b);
            std::thread::spawn(move || ok!("cuCtxDestroy_v2", b))
                .join()
                .unwrap();
            assert_eq!(cu!("cuCtxSynchronize"), Code::CONTEXT_IS_DESTROYED.0);
            assert_eq!(
                cu!("cuMemAlloc_v2", &mut 0u64, 8),
                Code::CONTEXT_IS_DESTROYED.0
            );
        })
        .join()
        .unwrap();
        ok!("cuCtxSetCurrent", 0u64);
        ok!("cuCtxGetCurrent", &mut c);
        assert_eq!(c, 0);
    })
    .join()
    .unwrap();
}

#[test]
fn limits_and_configuration() {
    let _s = Session::new();
    let mut v = 0u64;
    for limit in 0..=9 {
        ok!("cuCtxGetLimit", &mut v, limit);
    }
    assert_eq!(cu!("cuCtxGetLimit", &mut v, 11), Code::INVALID_VALUE.0);
    ok!("cuCtxSetLimit", 0, 2000u64);
    ok!("cuCtxGetLimit", &mut v, 0);
    assert_eq!(v, 2000);
    assert_eq!(cu!("cuCtxSetLimit", 0, u64::MAX), Code::INVALID_VALUE.0);
    assert_eq!(cu!("cuCtxSetLimit", 7, 1u64), Code::UNSUPPORTED_LIMIT.0);
    ok!("cuCtxSetCacheConfig", 2);
    let mut config = 0u32;
    ok!("cuCtxGetCacheConfig", &mut config);
    assert_eq!(config, 2);
    assert_eq!(cu!("cuCtxSetCacheConfig", 9), Code::INVALID_VALUE.0);
    let (mut least, mut greatest) = (9i32, 9i32);
    ok!("cuCtxGetStreamPriorityRange", &mut least, &mut greatest);
    assert!(greatest < least);
}

#[test]
fn allocation() {
    let s = Session::new();
    let mut p = 0u64;
    assert_eq!(cu!("cuMemAlloc_v2", &mut p, 0u64), Code::INVALID_VALUE.0);
    assert_eq!(cu!("cuMemAlloc_v2", 0u64, 8u64), Code::INVALID_VALUE.0);
    assert_eq!(
        cu!("cuMemAlloc_v2", 0xdead_beefu64, 8u64),
        Code::INVALID_VALUE.0
    );
    for huge in [u64::MAX, u64::MAX / 2, 1 << 62, 1 << 45] {
        assert_eq!(cu!("cuMemAlloc_v2", &mut p, huge), Code::OUT_OF_MEMORY.0);
        assert_eq!(
            cu!("cuMemAllocHost_v2", &mut p, huge),
            Code::OUT_OF_MEMORY.0
        );
        let mut pitch = 0u64;
        assert_ne!(
            cu!("cuMemAllocPitch_v2", &mut p, &mut pitch, huge, huge, 4),
            0
        );
    }
    let p = s.alloc(1000);
    assert_eq!(p % 256, 0);
    let (mut base, mut size) = (0u64, 0u64);
    ok!("cuMemGetAddressRange_v2", &mut base, &mut size, p + 999);
    assert_eq!((base, size), (p, 1000));
    assert_eq!(
        cu!("cuMemGetAddressRange_v2", &mut base, &mut size, p + 1000),
        Code::NOT_FOUND.0
    );
    assert_eq!(cu!("cuMemFree_v2", p + 1), Code::INVALID_VALUE.0);
    assert_eq!(cu!("cuMemFreeHost", p), Code::INVALID_VALUE.0);
    ok!("cuMemFree_v2", p);
    assert_eq!(cu!("cuMemFree_v2", p), Code::INVALID_VALUE.0);
    ok!("cuMemFree_v2", 0u64);
    for bad in [1u64, 0xdead_beef, u64::MAX] {
        assert_eq!(cu!("cuMemFree_v2", bad), Code::INVALID_VALUE.0);
    }
    let h = s.pinned(100);
    let mut d = 0u64;
    ok!("cuMemHostGetDevicePointer_v2", &mut d, h, 0);
    assert_eq!(d, h);
    let mut attribute = 0u32;
    ok!("cuPointerGetAttribute", &mut attribute, 2, h);
    assert_eq!(attribute, 1);
    ok!("cuMemFreeHost", h);
    let mut block = vec![0u8; 20_000];
    ok!("cuMemHostRegister_v2", &mut block[0], 20_000u64, 2);
    assert_eq!(
        cu!("cuMemHostRegister_v2", &mut block[5], 20u64, 0),
        Code::HOST_MEMORY_ALREADY_REGISTERED.0
    );
    let mut flags = 0u32;
    ok!("cuMemHostGetFlags", &mut flags, &mut block[0]);
    assert_eq!(flags, 2);
    ok!("cuMemHostUnregister", &mut block[0]);
    assert_eq!(
        cu!("cuMemHostUnregister", &mut block[0]),
        Code::HOST_MEMORY_NOT_REGISTERED.0
    );
    assert_eq!(
        cu!("cuMemHostRegister_v2", 4096u64, 20u64, 0),
        Code::INVALID_VALUE.0
    );
    let (mut free, mut total) = (0u64, 0u64);
    ok!("cuMemGetInfo_v2", &mut free, &mut total);
    assert!(free <= total && total > 0);
}

#[test]
fn pointer_attributes() {
    let s = Session::new();
    let p = s.alloc(4096);
    let mut m = 0u64;
    ok!("cuMemAllocManaged", &mut m, 64u64, 1);
    let (mut kind, mut managed, mut ordinal) = (0u32, 0u32, 9i32);
    let (mut base, mut size, mut context) = (0u64, 0u64, 0u64);
    ok!("cuPointerGetAttribute", &mut kind, 2, p + 5);
    ok!("cuPointerGetAttribute", &mut managed, 8, m);
    ok!("cuPointerGetAttribute", &mut ordinal, 9, p);
    ok!("cuPointerGetAttribute", &mut base, 11, p + 5);
    ok!("cuPointerGetAttribute", &mut size, 12, p + 5);
    ok!("cuPointerGetAttribute", &mut context, 1, p);
    assert_eq!(
        (kind, managed, ordinal, base, size, context),
        (2, 1, 0, p, 4096, s.0)
    );
    assert_eq!(
        cu!("cuPointerGetAttribute", &mut base, 4, p),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuPointerGetAttribute", &mut base, 2, 12345u64),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuPointerGetAttribute", 3u64, 2, p),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuPointerGetAttribute", &mut base, 99, p),
        Code::INVALID_VALUE.0
    );
    let ids = [2u32, 12];
    let outs = [Word::word(&mut kind), Word::word(&mut size)];
    ok!("cuPointerGetAttributes", 2, &ids, &outs, 77u64);
    assert_eq!((kind, size), (0, 0));
    assert_eq!(
        cu!("cuPointerGetAttributes", u32::MAX, &ids, &outs, p),
        Code::INVALID_VALUE.0
    );
    let on = 1u32;
    ok!("cuPointerSetAttribute", &on, 6, p);
    assert_eq!(
        cu!("cuPointerSetAttribute", &on, 7, p),
        Code::INVALID_VALUE.0
    );
}

#[test]
fn the_primary_context() {
    ok!("cuInit", 0);
    let (mut a, mut b) = (0u64, 0u64);
    ok!("cuDevicePrimaryCtxRetain", &mut a, 0);
    ok!("cuDevicePrimaryCtxRetain", &mut b, 0);
    assert_eq!(a, b);
    let (mut flags, mut active) = (9u32, 9i32);
    ok!("cuDevicePrimaryCtxGetState", 0, &mut flags, &mut active);
    assert_eq!(active, 1);
    ok!("cuCtxPushCurrent_v2", a);
    let mut p = 0u64;
    ok!("cuMemAlloc_v2", &mut p, 64u64);
    assert_eq!(cu!("cuCtxDestroy_v2", a), Code::INVALID_CONTEXT.0);
    ok!("cuDevicePrimaryCtxRelease_v2", 0);
    ok!("cuMemsetD8_v2", p, 1u8, 64u64);
    ok!("cuDevicePrimaryCtxReset_v2", 0);
    // The contents are destroyed, the context is not.
    assert_eq!(cu!("cuMemFree_v2", p), Code::INVALID_VALUE.0);
    ok!("cuDevicePrimaryCtxRelease_v2", 0);
    assert_eq!(
        cu!("cuDevicePrimaryCtxRelease_v2", 0),
        Code::INVALID_CONTEXT.0
    );
    assert_eq!(
        cu!("cuMemAlloc_v2", &mut p, 64u64),
        Code::CONTEXT_IS_DESTROYED.0
    );
    ok!("cuDevicePrimaryCtxRetain", &mut b, 0);
    assert_eq!(a, b);
    ok!("cuMemAlloc_v2", &mut p, 64u64);
    // After a reset, a thread's default stream is a new stream.
    super::busy(2, 1);
    ok!("cuDevicePrimaryCtxReset_v2", 0);
    super::busy(2, 40);
    assert_eq!(cu!("cuStreamQuery", 0u64), super::NOT_READY);
    ok!("cuCtxSynchronize");
    ok!("cuStreamQuery", 2u64);
    ok!("cuDevicePrimaryCtxRelease_v2", 0);
    ok!("cuCtxPopCurrent_v2", 0u64);
}

#[test]
fn pools() {
    let s = Session::new();
    let stream = s.stream(0);
    let (mut p, mut used, mut pool, mut of) = (0u64, 0u64, 0u64, 0u64);
    ok!("cuMemAllocAsync", &mut p, 1 << 20, stream);
    ok!("cuMemsetD8Async", p, 7u8, 1 << 20, stream);
    ok!("cuDeviceGetDefaultMemPool", &mut pool, 0);
    ok!("cuPointerGetAttribute", &mut of, 17, p);
    assert_eq!(of, pool);
    ok!("cuMemPoolGetAttribute", pool, 7, &mut used);
    assert!(used >= 1 << 20);
    ok!("cuMemFreeAsync", p, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(cu!("cuMemFreeAsync", p, stream), Code::INVALID_VALUE.0);
    assert_eq!(cu!("cuMemPoolDestroy", pool), Code::INVALID_VALUE.0);
    assert_eq!(
        cu!("cuMemPoolGetAttribute", 5u64, 7, &mut used),
        Code::INVALID_VALUE.0
    );
    let props = [
        1u32, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let mut mine = 0u64;
    ok!("cuMemPoolCreate", &mut mine, &props);
    ok!("cuMemAllocFromPoolAsync", &mut p, 4096u64, mine, stream);
    ok!("cuMemPoolGetAttribute", mine, 7, &mut used);
    assert_eq!(used, 4096);
    ok!("cuMemFree_v2", p);
    ok!("cuMemPoolGetAttribute", mine, 7, &mut used);
    assert_eq!(used, 0);
    ok!("cuMemPoolDestroy", mine);
}

#[test]
fn a_forked_child_is_not_initialised() {
    ok!("cuInit", 0);
    // SAFETY: the child only makes calls that return immediately, and exits without running destructors.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let mut p = 0u64;
            let fine = cu!("cuCtxGetCurrent", &mut p) == 3
                && cu!("cuInit", 0) == 3
                && cu!("cuCtxSynchronize") == 3;
            libc::_exit(i32::from(!fine));
        }
        let mut status = 0;
        libc::waitpid(pid, &mut status, 0);
        assert_eq!(status, 0);
    }
}

//! Streams, events, host functions, libraries and launches.

use std::sync::atomic::{AtomicU32, Ordering};

use cupyrite_sys::driver::CUcontext;
use cupyrite_sys::runtime::{cudaDeviceProp, cudaFuncAttributes, cudaLaunchConfig_t, dim3};

use super::*;
use crate::entry::cu;

const ADD: &std::ffi::CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 total;
.visible .entry add(.param .u64 to, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p ret;
    mul.wide.u32 %rd2, %r5, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r6, [%rd3];
    add.u32 %r6, %r6, %r5;
    st.global.u32 [%rd3], %r6;
    ret;
}
";

fn library() -> u64 {
    let mut library = 0u64;
    ok!("cudaLibraryLoadData", &mut library, ADD, 0, 0, 0, 0, 0, 0);
    library
}

fn kernel(library: u64) -> u64 {
    let mut kernel = 0u64;
    ok!("cudaLibraryGetKernel", &mut kernel, library, c"add");
    kernel
}

#[test]
fn a_kernel_of_a_library_runs() {
    let library = library();
    let kernel = kernel(library);
    let mut p = 0u64;
    ok!("cudaMalloc", &mut p, 400);
    ok!("cudaMemset", p, 0, 400);
    let n = 100u32;
    let arguments = [&raw const p as u64, &raw const n as u64];
    let config = cudaLaunchConfig_t {
        gridDim: dim3 { x: 4, y: 1, z: 1 },
        blockDim: dim3 { x: 32, y: 1, z: 1 },
        ..cudaLaunchConfig_t::default()
    };
    ok!("cudaLaunchKernelExC", &config, kernel, &arguments);
    // The three numbers of a `dim3` in two words.
    let one = |x: u64| [x | 1 << 32, 1];
    let ([g0, g1], [b0, b1]) = (one(4), one(32));
    for name in ["cudaLaunchKernel", "cudaLaunchKernel_ptsz"] {
        assert_eq!(
            call(name, &[kernel, g0, g1, b0, b1, (&arguments).word(), 0, 0]),
            0
        );
        ok!("cudaDeviceSynchronize");
    }
    let mut values = [0u32; 100];
    ok!("cudaMemcpy", &mut values, p, 400, 2);
    assert!(values.iter().enumerate().all(|(i, &v)| v == 3 * i as u32));

    let too_many = cudaLaunchConfig_t {
        blockDim: dim3 {
            x: 2048,
            y: 1,
            z: 1,
        },
        ..config
    };
    assert_eq!(
        rt!("cudaLaunchKernelExC", &too_many, kernel, &arguments),
        Error::INVALID_CONFIGURATION
    );
    let none = cudaLaunchConfig_t {
        gridDim: dim3 { x: 0, y: 1, z: 1 },
        ..config
    };
    assert_eq!(
        rt!("cudaLaunchKernelExC", &none, kernel, &arguments),
        Error::INVALID_CONFIGURATION
    );
    assert_eq!(
        rt!("cudaLaunchKernelExC", &config, 0, &arguments),
        Error::INVALID_DEVICE_FUNCTION
    );
    for garbage in [0x1234_5678u64, p] {
        assert_eq!(
            rt!("cudaLaunchKernelExC", &config, garbage, &arguments),
            Error::INVALID_RESOURCE_HANDLE
        );
    }
    ok!("cudaFree", p);
    ok!("cudaLibraryUnload", library);
    assert_eq!(
        rt!("cudaLaunchKernelExC", &config, kernel, &arguments),
        Error::INVALID_RESOURCE_HANDLE
    );
}

#[test]
fn a_cooperative_kernel_is_launched_on_each_device() {
    let kernel = kernel(library());
    let (mut p, mut stream) = (0u64, 0u64);
    ok!("cudaStreamCreate", &mut stream);
    ok!("cudaMalloc", &mut p, 16);
    ok!("cudaMemset", p, 0, 16);
    let n = 4u32;
    let arguments = [&raw const p as u64, &raw const n as u64];
    // `cudaLaunchParams`: function, grid, block, arguments, shared memory, stream.
    let one = 1u64 | 1 << 32;
    let with = |f: u64, stream: u64| {
        [
            f,
            one,
            1 | 4 << 32,
            one,
            arguments.as_ptr() as u64,
            0,
            stream,
        ]
    };
    let launch = |list: &[u64; 7], count: u32, flags: u32| {
        rt!("cudaLaunchCooperativeKernelMultiDevice", list, count, flags)
    };
    assert_eq!(launch(&with(kernel, stream), 1, 0), Error::SUCCESS);
    ok!("cudaStreamSynchronize", stream);
    let mut got = [9u32; 4];
    ok!("cudaMemcpy", &mut got, p, 16, 2);
    assert_eq!(got, [0, 1, 2, 3]);
    assert_eq!(launch(&with(kernel, stream), 0, 0), Error::INVALID_VALUE);
    assert_eq!(launch(&with(kernel, stream), 1, 8), Error::INVALID_VALUE);
    assert_eq!(
        launch(&with(kernel, 0), 1, 0),
        Error::INVALID_RESOURCE_HANDLE
    );
    assert_eq!(
        launch(&with(0, stream), 1, 0),
        Error::INVALID_DEVICE_FUNCTION
    );
    assert_eq!(
        rt!("cudaLaunchCooperativeKernelMultiDevice", 0u64, 1, 0),
        Error::INVALID_VALUE
    );
    ok!("cudaStreamDestroy", stream);
    ok!("cudaFree", p);
}

#[test]
fn kernels_and_their_functions_have_attributes() {
    let library = library();
    let kernel = kernel(library);
    let mut function = 0u64;
    ok!("cudaGetFuncBySymbol", &mut function, kernel);
    for func in [kernel, function] {
        let mut a = cudaFuncAttributes::default();
        ok!("cudaFuncGetAttributes", &mut a, func);
        assert!(a.maxThreadsPerBlock >= 256 && a.ptxVersion == 80);
        let mut blocks = 0;
        ok!(
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
            &mut blocks,
            func,
            128,
            0
        );
        assert!(blocks > 0);
        let mut count = 0usize;
        ok!("cudaFuncGetParamCount", func, &mut count);
        assert_eq!(count, 2);
    }
    let mut a = cudaFuncAttributes::default();
    assert_eq!(
        rt!("cudaFuncGetAttributes", &mut a, 0),
        Error::INVALID_DEVICE_FUNCTION
    );
    assert_eq!(
        rt!("cudaFuncGetAttributes", &mut a, 0xabcdu64),
        Error::INVALID_RESOURCE_HANDLE
    );
    ok!("cudaFuncSetAttribute", kernel, 8, 1024);
    ok!("cudaFuncGetAttributes", &mut a, kernel);
    assert_eq!(a.maxDynamicSharedSizeBytes, 1024);
    assert_eq!(
        rt!("cudaFuncSetAttribute", kernel, 3, 1),
        Error::INVALID_VALUE
    );

    let mut count = 0u32;
    ok!("cudaLibraryGetKernelCount", &mut count, library);
    assert_eq!(count, 1);
    let mut kernels = [0u64; 1];
    ok!("cudaLibraryEnumerateKernels", &mut kernels, 1, library);
    assert_eq!(kernels, [kernel]);
    let (mut global, mut bytes) = (0u64, 0usize);
    ok!(
        "cudaLibraryGetGlobal",
        &mut global,
        &mut bytes,
        library,
        c"total"
    );
    assert!(global != 0 && bytes == 4);
    let mut none = 0u64;
    assert_eq!(
        rt!("cudaLibraryGetKernel", &mut none, library, c"nothing"),
        Error::SYMBOL_NOT_FOUND
    );
    assert_eq!(
        rt!("cudaGetSymbolAddress", &mut none, &count),
        Error::INVALID_SYMBOL
    );
    ok!("cudaLibraryUnload", library);
}

#[test]
fn streams_have_flags_and_priorities_and_run_in_order() {
    let mut stream = 0u64;
    let (mut least, mut greatest) = (9, 9);
    ok!(
        "cudaDeviceGetStreamPriorityRange",
        &mut least,
        &mut greatest
    );
    ok!("cudaStreamCreateWithPriority", &mut stream, 1, greatest);
    let (mut flags, mut priority, mut id, mut device) = (0u32, 9i32, 0u64, 9i32);
    ok!("cudaStreamGetFlags", stream, &mut flags);
    ok!("cudaStreamGetPriority", stream, &mut priority);
    ok!("cudaStreamGetId", stream, &mut id);
    ok!("cudaStreamGetDevice", stream, &mut device);
    assert_eq!((flags, priority, device), (1, greatest, 0));
    for default in [0u64, 1, 2] {
        assert_eq!(
            rt!("cudaStreamDestroy", default),
            Error::INVALID_RESOURCE_HANDLE
        );
        ok!("cudaStreamSynchronize", default);
    }
    assert_eq!(
        rt!("cudaStreamCreateWithFlags", &mut stream, 8),
        Error::INVALID_VALUE
    );

    static ORDER: AtomicU32 = AtomicU32::new(0);
    extern "C" fn append(digit: *mut c_void) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _ = ORDER.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |o| {
            Some(o * 10 + digit as u32)
        });
    }
    extern "C" fn called(stream: u64, status: u32, digit: *mut c_void) {
        assert!(stream != 0 && status == 0);
        append(digit);
    }
    let (mut start, mut end) = (0u64, 0u64);
    ok!("cudaEventCreate", &mut start);
    ok!("cudaEventCreateWithFlags", &mut end, 1);
    ok!("cudaEventRecord", start, stream);
    ok!("cudaLaunchHostFunc", stream, append as *const () as u64, 1);
    ok!(
        "cudaStreamAddCallback",
        stream,
        called as *const () as u64,
        2,
        0
    );
    ok!("cudaEventRecordWithFlags", end, stream, 0);
    assert_eq!(rt!("cudaStreamQuery", stream), Error::NOT_READY);
    assert_eq!(rt!("cudaEventQuery", end), Error::NOT_READY);
    let mut other = 0u64;
    ok!("cudaStreamCreate", &mut other);
    ok!("cudaStreamWaitEvent", other, end, 0);
    ok!("cudaLaunchHostFunc", other, append as *const () as u64, 3);
    ok!("cudaStreamSynchronize", other);
    assert_eq!(ORDER.load(Ordering::SeqCst), 123);
    let mut milliseconds = 0f32;
    ok!("cudaEventElapsedTime", &mut milliseconds, start, end);
    assert!(milliseconds >= 30.0, "{milliseconds}");
    for event in [start, end] {
        ok!("cudaEventDestroy", event);
        assert_eq!(
            rt!("cudaEventDestroy", event),
            Error::INVALID_RESOURCE_HANDLE
        );
    }
    ok!("cudaStreamDestroy", stream);
    ok!("cudaStreamDestroy", other);
}

#[test]
fn failed_library_loads_are_reverted_during_capture() {
    let (mut stream, mut graph) = (0u64, 0u64);
    ok!("cudaFree", 0);
    // In a context of its own and with thread-local capture: the other tests run concurrently and wait for theirs.
    let mut context: CUcontext = std::ptr::null_mut();
    assert_eq!(
        cu!(cuCtxCreate(&mut context, std::ptr::null_mut(), 0, 0)),
        Ok(())
    );
    ok!("cudaStreamCreateWithFlags", &mut stream, 1);
    ok!("cudaStreamBeginCapture", stream, 1);
    assert_eq!(
        rt!("cudaLibraryLoadData", 8u64, ADD, 0, 0, 0, 0, 0, 0),
        Error::INVALID_VALUE
    );
    ok!("cudaStreamEndCapture", stream, &mut graph);
    ok!("cudaGraphDestroy", graph);
    ok!("cudaStreamDestroy", stream);
    assert_eq!(cu!(cuCtxDestroy(context)), Ok(()));
}

#[test]
fn devices_have_properties() {
    let mut p = cudaDeviceProp::default();
    ok!("cudaGetDeviceProperties", &mut p, 0);
    assert_eq!(
        rt!("cudaGetDeviceProperties", &mut p, 1000),
        Error::INVALID_DEVICE
    );
    let attribute = |which: u32| {
        let mut value = 0i32;
        ok!("cudaDeviceGetAttribute", &mut value, which, 0);
        value
    };
    assert_eq!((p.major, p.minor), (attribute(75), attribute(76)));
    assert_eq!(p.sharedMemPerBlock, attribute(8) as usize);
    assert_eq!(p.maxGridSize, [attribute(5), attribute(6), attribute(7)]);
    assert_eq!(p.warpSize, 32);
    assert!(p.totalGlobalMem > 0 && p.name[0] != 0);
    let mut old = cupyrite_sys::runtime::cudaDeviceProp_cuda12::default();
    ok!("cudaGetDeviceProperties_v2", &mut old, 0);
    assert_eq!((old.name, old.clockRate), (p.name, attribute(13)));
    let mut chosen = -1;
    ok!("cudaChooseDevice", &mut chosen, &p);
    assert_eq!(chosen, 0);
    let mut text = [1u8; 20];
    ok!("cudaDeviceGetPCIBusId", &mut text, 20, 0);
    ok!("cudaDeviceGetByPCIBusId", &mut chosen, &text);
    assert_eq!(chosen, 0);
    let mut value = 0usize;
    ok!("cudaDeviceGetLimit", &mut value, 0);
    assert!(value > 0);
    assert_eq!(
        rt!("cudaDeviceGetLimit", &mut value, 77),
        Error::UNSUPPORTED_LIMIT
    );
    let mut flags = 0u32;
    ok!("cudaGetDeviceFlags", &mut flags);
    assert_eq!(flags & 8, 8);
    assert_eq!(rt!("cudaSetDeviceFlags", 3), Error::INVALID_VALUE);
}

#[test]
fn device_properties_log_no_errors() {
    let mut p = cudaDeviceProp::default();
    ok!("cudaGetDeviceProperties", &mut p, 0);
    let (mut before, mut after) = (0, 0);
    assert!(cu!(cuLogsCurrent(&mut before, 0)).is_ok());
    ok!("cudaGetDeviceProperties", &mut p, 0);
    assert!(cu!(cuLogsCurrent(&mut after, 0)).is_ok());
    assert_eq!(before, after, "the call logged messages");
    assert_eq!((p.luid, p.luidDeviceNodeMask), ([0; 8], 0));
}

#[test]
fn entry_points_of_the_driver_are_found() {
    let (mut address, mut status) = (0u64, 9u32);
    ok!(
        "cudaGetDriverEntryPoint",
        c"cuMemAlloc",
        &mut address,
        0,
        &mut status
    );
    assert!(address != 0 && status == 0);
    ok!(
        "cudaGetDriverEntryPointByVersion",
        c"cuMemAlloc",
        &mut address,
        12000,
        0,
        &mut status
    );
    assert!(address != 0 && status == 0);
    ok!(
        "cudaGetDriverEntryPoint",
        c"cuNothing",
        &mut address,
        0,
        &mut status
    );
    assert_eq!((address, status), (0, 1));
}

#[test]
fn unimplemented_functions_return_not_supported() {
    assert_eq!(rt!("cudaVDPAUGetDevice", 0, 0, 0), Error::NOT_SUPPORTED);
    assert_eq!(rt!("cudaGetLastError"), Error::NOT_SUPPORTED);
    for name in [c"cudaNothing", c"cudaMalloc_ptsz", c"cudaMemcpy_ptsz", c""] {
        assert!(get_proc(name).is_null(), "{name:?}");
    }
    for row in &cupyrite_sys::runtime::SYMBOLS {
        assert!(!get_proc(row.export).is_null(), "{:?}", row.export);
    }
    for name in crate::implemented() {
        let is_private = crate::registration::names().any(|private| private == name);
        assert!(crate::is_known(name) || is_private, "{name}");
    }
}

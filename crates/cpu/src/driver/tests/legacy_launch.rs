//! The launch functions before CUDA 4, and the usage count of contexts.

use super::super::Code;
use super::kernels::{PTX, function, launch, module};
use super::libraries::library;
use super::{Session, cu, ok};

const INVALID_VALUE: u32 = Code::INVALID_VALUE.0;
const INVALID_HANDLE: u32 = Code::INVALID_HANDLE.0;
const INVALID_CONTEXT: u32 = Code::INVALID_CONTEXT.0;

/// `cuParamSetf` takes its number in another register than words.
fn set_f(f: u64, offset: i32, value: f32) -> u32 {
    // SAFETY: the type is that of the C function.
    unsafe {
        let set: unsafe extern "C" fn(u64, i32, f32) -> u32 =
            std::mem::transmute(super::address("cuParamSetf"));
        set(f, offset, value)
    }
}

/// Sets the parameters of `saxpy(2, x, y, n)`.
fn saxpy(m: u64, x: u64, y: u64, n: u32) -> u64 {
    let f = function(m, "saxpy");
    assert_eq!(set_f(f, 0, 2.0), 0);
    ok!("cuParamSetv", f, 8, &x, 8);
    ok!("cuParamSetv", f, 16, &y, 8);
    ok!("cuParamSeti", f, 24, n);
    ok!("cuParamSetSize", f, 28);
    f
}

fn floats<const N: usize>(address: u64) -> [f32; N] {
    let mut out = [0f32; N];
    ok!("cuMemcpyDtoH_v2", &mut out, address, 4 * N);
    out
}

#[test]
fn functions_are_launched_with_their_settings() {
    let s = Session::new();
    let m = module(PTX);
    let (x, y) = (s.alloc(48), s.alloc(48));
    let ones = [1f32; 12];
    ok!("cuMemcpyHtoD_v2", x, &ones, 48);
    ok!("cuMemcpyHtoD_v2", y, &ones, 48);
    let f = saxpy(m, x, y, 12);
    ok!("cuFuncSetBlockShape", f, 4, 1, 1);
    ok!("cuFuncSetSharedSize", f, 64);
    ok!("cuLaunch", f);
    ok!("cuCtxSynchronize");
    let one_block = [3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(floats(y), one_block);
    ok!("cuLaunchGrid", f, 2, 1);
    ok!("cuCtxSynchronize");
    assert_eq!(
        floats(y),
        [5.0, 5.0, 5.0, 5.0, 3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    );
    // A launch copies the parameters.
    let stream = s.stream(1);
    super::busy(stream, 30);
    ok!("cuLaunchGridAsync", f, 3, 1, stream);
    assert_eq!(set_f(f, 0, 100.0), 0);
    ok!("cuParamSeti", f, 24, 0);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(
        floats(y),
        [7.0, 7.0, 7.0, 7.0, 5.0, 5.0, 5.0, 5.0, 3.0, 3.0, 3.0, 3.0]
    );
}

#[test]
fn captured_launches_become_kernel_nodes() {
    let s = Session::new();
    let m = module(PTX);
    let (x, y) = (s.alloc(16), s.alloc(16));
    ok!("cuMemcpyHtoD_v2", x, &[1f32; 4], 16);
    ok!("cuMemcpyHtoD_v2", y, &[0f32; 4], 16);
    let f = saxpy(m, x, y, 4);
    ok!("cuFuncSetBlockShape", f, 4, 1, 1);
    let stream = s.stream(1);
    ok!("cuStreamBeginCapture_v2", stream, 2);
    ok!("cuLaunchGridAsync", f, 1, 1, stream);
    let (mut graph, mut exec) = (0u64, 0u64);
    ok!("cuStreamEndCapture", stream, &mut graph);
    // In the other modes, a capture refuses these functions.
    let other = s.stream(1);
    ok!("cuStreamBeginCapture_v2", other, 0);
    assert_eq!(
        cu!("cuLaunchGridAsync", f, 1, 1, other),
        Code::STREAM_CAPTURE_UNSUPPORTED.0
    );
    let mut none = 0u64;
    assert_eq!(
        cu!("cuStreamEndCapture", other, &mut none),
        Code::STREAM_CAPTURE_INVALIDATED.0
    );
    ok!("cuGraphInstantiateWithFlags", &mut exec, graph, 0u64);
    ok!("cuGraphLaunch", exec, stream);
    ok!("cuGraphLaunch", exec, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(floats(y), [4.0; 4]);
    ok!("cuGraphExecDestroy", exec);
    ok!("cuGraphDestroy", graph);
}

#[test]
fn invalid_settings_are_refused() {
    let s = Session::new();
    let m = module(PTX);
    let memory = s.alloc(64);
    let f = saxpy(m, memory, memory, 1);
    for [x, y, z] in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [-1, 1, 1]] {
        assert_eq!(cu!("cuFuncSetBlockShape", f, x, y, z), INVALID_VALUE);
    }
    for (offset, bytes) in [(-1, 4), (32764, 1), (32761, 4), (0, 1 << 20)] {
        assert_eq!(
            cu!("cuParamSetv", f, offset, &[0u64; 8], bytes),
            INVALID_VALUE,
            "{offset} {bytes}"
        );
    }
    assert_eq!(cu!("cuParamSetv", f, 0, 0u64, 8), INVALID_VALUE);
    assert_eq!(cu!("cuParamSeti", f, 32762, 0), INVALID_VALUE);
    assert_eq!(set_f(f, -4, 0.0), INVALID_VALUE);
    assert_eq!(cu!("cuParamSetSize", f, 1 << 20), INVALID_VALUE);
    assert_eq!(cu!("cuLaunchGrid", f, 0, 1), INVALID_VALUE);
    assert_eq!(cu!("cuLaunchGrid", f, 1, -1), INVALID_VALUE);
    for [x, y, z] in [[1025, 1, 1], [32, 64, 1], [1, 1, 65]] {
        assert_eq!(cu!("cuFuncSetBlockShape", f, x, y, z), INVALID_VALUE);
    }
    assert_eq!(cu!("cuFuncSetSharedSize", f, 49153), INVALID_VALUE);
    assert_eq!(cu!("cuLaunchGrid", f, 1, 65536), INVALID_VALUE);
    ok!("cuParamSetSize", f, 32);
    assert_eq!(cu!("cuLaunch", f), Code::LAUNCH_OUT_OF_RESOURCES.0);
    // Missing parameters are zero: here, the number of elements.
    ok!("cuParamSetSize", f, 24);
    ok!("cuLaunch", f);
    ok!("cuParamSetSize", f, 28);
    ok!("cuLaunch", f);
    // A new launch function does not need the settings.
    assert_eq!(launch(function(m, "count"), 1, 1, 0, &[]), 0);
    ok!("cuCtxSynchronize");
    ok!("cuModuleUnload", m);
    let library = library(PTX);
    let mut kernel = 0u64;
    ok!("cuLibraryGetKernel", &mut kernel, library, c"saxpy");
    for garbage in [f, 0, 0x1234, m, kernel] {
        assert_eq!(cu!("cuLaunch", garbage), INVALID_HANDLE);
        assert_eq!(cu!("cuFuncSetBlockShape", garbage, 1, 1, 1), INVALID_HANDLE);
        assert_eq!(cu!("cuFuncSetSharedSize", garbage, 1), INVALID_HANDLE);
        assert_eq!(cu!("cuParamSetSize", garbage, 1), INVALID_HANDLE);
        assert_eq!(cu!("cuParamSeti", garbage, 0, 1), INVALID_HANDLE);
        assert_eq!(cu!("cuParamSetv", garbage, 0, &0u64, 8), INVALID_HANDLE);
        assert_eq!(
            cu!("cuParamSetTexRef", garbage, -1, garbage),
            INVALID_HANDLE
        );
        assert_eq!(cu!("cuLaunchGrid", garbage, 1, 1), INVALID_HANDLE);
        assert_eq!(set_f(garbage, 0, 0.0), INVALID_HANDLE);
    }
}

#[test]
fn a_context_is_destroyed_by_its_last_detach() {
    let s = Session::new();
    let mut handle = 0u64;
    assert_eq!(cu!("cuCtxAttach", &mut handle, 1), INVALID_VALUE);
    assert_eq!(cu!("cuCtxAttach", 0u64, 0), INVALID_VALUE);
    ok!("cuCtxAttach", &mut handle, 0);
    assert_eq!(handle, s.0);
    let memory = s.alloc(16);
    ok!("cuCtxDetach", handle);
    ok!("cuMemFree_v2", memory);
    // The count is that of `cuCtxCreate` again.
    let mut popped = 0u64;
    ok!("cuCtxPopCurrent_v2", &mut popped);
    assert_eq!(cu!("cuCtxDetach", handle), INVALID_CONTEXT);
    assert_eq!(cu!("cuCtxAttach", &mut handle, 0), INVALID_CONTEXT);
    ok!("cuCtxPushCurrent_v2", handle);
    ok!("cuCtxDetach", handle);
    assert_eq!(cu!("cuCtxPushCurrent_v2", handle), INVALID_CONTEXT);
    assert_eq!(cu!("cuCtxDetach", handle), INVALID_CONTEXT);
}

#[test]
fn no_function_is_unified() {
    let _s = Session::new();
    let library = library(PTX);
    let mut pointer = 0u64;
    for name in [c"saxpy", c"nothing"] {
        assert_eq!(
            cu!("cuLibraryGetUnifiedFunction", &mut pointer, library, name),
            INVALID_VALUE
        );
    }
    assert_eq!(
        cu!("cuLibraryGetUnifiedFunction", &mut pointer, 1u64, c"saxpy"),
        INVALID_HANDLE
    );
    ok!("cuLibraryUnload", library);
}

#[test]
fn a_cooperative_kernel_is_launched_on_each_device() {
    let s = Session::new();
    let f = function(module(PTX), "store");
    let (stream, memory) = (s.stream(1), s.alloc(16));
    let argument = memory;
    let parameters = [(&raw const argument) as u64];
    // `CUDA_LAUNCH_PARAMS`: function, seven 32-bit numbers with padding, stream, parameters.
    let with = |f: u64, stream: u64| {
        let one = 1u64 | 1 << 32;
        [f, one, one, one, 0, stream, parameters.as_ptr() as u64]
    };
    ok!(
        "cuLaunchCooperativeKernelMultiDevice",
        &with(f, stream),
        1,
        0
    );
    ok!("cuCtxSynchronize");
    let mut word = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut word, memory, 4);
    assert_eq!(word, 42);
    let call = |list: [u64; 7], count: u32, flags: u32| {
        cu!("cuLaunchCooperativeKernelMultiDevice", &list, count, flags)
    };
    assert_eq!(call(with(f, stream), 1, 3), 0);
    assert_eq!(call(with(f, stream), 1, 4), INVALID_VALUE);
    assert_eq!(call(with(f, stream), 0, 0), INVALID_VALUE);
    assert_eq!(call(with(f, stream), 2, 0), INVALID_VALUE);
    for default in 0..3 {
        assert_eq!(call(with(f, default), 1, 0), INVALID_HANDLE);
    }
    assert_eq!(call(with(0, stream), 1, 0), INVALID_HANDLE);
    assert_eq!(call(with(f, 0x1234_5670), 1, 0), INVALID_HANDLE);
    assert_eq!(
        cu!("cuLaunchCooperativeKernelMultiDevice", 0u64, 1, 0),
        INVALID_VALUE
    );
    ok!("cuCtxSynchronize");
}

#[test]
fn the_profiler_is_not_initialised() {
    let _s = Session::new();
    assert_eq!(
        cu!("cuProfilerInitialize", 0u64, 0u64, 0),
        Code::NOT_SUPPORTED.0
    );
}

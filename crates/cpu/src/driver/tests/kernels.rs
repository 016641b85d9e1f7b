//! Modules, libraries, launches, and faults in kernels.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cupyrite_sys::loader::cpu_library::Interrupt;

use super::super::{Code, set_interrupt_hook};
use super::libraries::library;
use super::{Session, Word, cu, ok};
use crate::code;

pub(super) const PTX: &str = r#"
.version 8.0
.target sm_89
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.visible .const .align 4 .f32 factor = 0f40000000;

.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<5>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
DONE:
    ret;
}

.visible .entry forever()
{
LOOP:
    bra LOOP;
}

.visible .entry trapped()
{
    trap;
}

.visible .entry store(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 42;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry count()
{
    .reg .b32 %r<2>;
    atom.global.add.u32 %r1, [counter], 1;
    ret;
}

.visible .entry shared_user(.param .u64 p) .maxntid 128, 1, 1
{
    .shared .align 4 .b8 block[4096];
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 1;
    st.shared.u32 [block], %r1;
    ret;
}
"#;

pub(super) fn module(ptx: &str) -> u64 {
    let text = CString::new(ptx).unwrap();
    let mut m = 0u64;
    ok!("cuModuleLoadData", &mut m, text.as_c_str());
    m
}

pub(super) fn function(module: u64, name: &str) -> u64 {
    let name = CString::new(name).unwrap();
    let mut f = 0u64;
    ok!("cuModuleGetFunction", &mut f, module, name.as_c_str());
    f
}

/// Launches with pointers to the arguments.
pub(super) fn launch(f: u64, grid: u32, block: u32, stream: u64, args: &[u64]) -> u32 {
    cu!(
        "cuLaunchKernel",
        f,
        grid,
        1,
        1,
        block,
        1,
        1,
        0,
        stream,
        args.as_ptr() as u64,
        0u64
    )
}

#[test]
fn saxpy_with_every_argument_form() {
    let s = Session::new();
    let n = 10_000usize;
    let (x, y) = (s.alloc(n * 4), s.alloc(n * 4));
    let m = module(PTX);
    let f = function(m, "saxpy");
    let host: Vec<f32> = (0..n).map(|i| i as f32).collect();
    ok!("cuMemcpyHtoD_v2", x, &host[0], n * 4);
    ok!("cuMemcpyHtoD_v2", y, &host[0], n * 4);
    let stream = s.stream(1);
    let (a, count) = (2f32, n as u32);
    let args = [
        Word::word(&a),
        Word::word(&x),
        Word::word(&y),
        Word::word(&count),
    ];
    assert_eq!(launch(f, 40, 256, stream, &args), 0);
    // One buffer, padded as in C.
    #[repr(C)]
    struct Packed(f32, u64, u64, u32);
    let (packed, size) = (Packed(1.0, x, y, count), 32u64);
    let extra = [1u64, Word::word(&packed), 2, Word::word(&size), 0];
    ok!(
        "cuLaunchKernel",
        f,
        40,
        1,
        1,
        256,
        1,
        1,
        0,
        stream,
        0u64,
        &extra
    );
    // A configuration structure, arguments on the heap.
    let boxed = (Box::new(1f32), Box::new(x), Box::new(y), Box::new(count));
    let args = Box::new([
        Word::word(&*boxed.0),
        Word::word(&*boxed.1),
        Word::word(&*boxed.2),
        Word::word(&*boxed.3),
    ]);
    let config = [
        40u32,
        1,
        1,
        256,
        1,
        1,
        0,
        0,
        stream as u32,
        (stream >> 32) as u32,
        0,
        0,
        0,
        0,
    ];
    ok!("cuLaunchKernelEx", &config, f, args.as_ptr() as u64, 0u64);
    let mut back = vec![0f32; n];
    ok!("cuMemcpyDtoHAsync_v2", &mut back[0], y, n * 4, stream);
    ok!("cuStreamSynchronize", stream);
    assert!(back.iter().zip(&host).all(|(b, h)| *b == 5.0 * h));
    for bad in [0u64, 1, 0xdead_beef] {
        let broken = [Word::word(&a), bad, Word::word(&y), Word::word(&count)];
        assert_eq!(launch(f, 1, 1, stream, &broken), Code::INVALID_VALUE.0);
        assert_eq!(
            cu!("cuLaunchKernel", f, 1, 1, 1, 1, 1, 1, 0, stream, bad, 0u64),
            Code::INVALID_VALUE.0
        );
        assert_eq!(
            cu!("cuLaunchKernel", f, 1, 1, 1, 1, 1, 1, 0, stream, 0u64, bad),
            Code::INVALID_VALUE.0
        );
        assert_eq!(
            cu!("cuLaunchKernelEx", bad, f, 0u64, 0u64),
            Code::INVALID_VALUE.0
        );
        assert_eq!(
            cu!(
                "cuLaunchKernel",
                bad,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                0u64,
                0u64
            ),
            Code::INVALID_HANDLE.0
        );
    }
    ok!("cuCtxSynchronize");
}

#[test]
fn launches_are_validated() {
    let s = Session::new();
    let m = module(PTX);
    let (f, bounded) = (function(m, "count"), function(m, "shared_user"));
    let dims = |g: [u32; 3], b: [u32; 3], shared: u32| {
        cu!(
            "cuLaunchKernel",
            f,
            g[0],
            g[1],
            g[2],
            b[0],
            b[1],
            b[2],
            shared,
            0u64,
            0u64,
            0u64
        )
    };
    let one = [1, 1, 1];
    assert_eq!(dims([0, 1, 1], one, 0), Code::INVALID_VALUE.0);
    assert_eq!(dims([1, 65536, 1], one, 0), Code::INVALID_VALUE.0);
    assert_eq!(dims(one, [0, 1, 1], 0), Code::INVALID_VALUE.0);
    assert_eq!(dims(one, [1025, 1, 1], 0), Code::INVALID_VALUE.0);
    assert_eq!(dims(one, [1, 1, 65], 0), Code::INVALID_VALUE.0);
    assert_eq!(dims(one, [64, 64, 1], 0), Code::INVALID_VALUE.0);
    assert_eq!(dims(one, [u32::MAX; 3], 0), Code::INVALID_VALUE.0);
    assert_eq!(dims(one, one, 49_153), Code::INVALID_VALUE.0);
    ok!("cuFuncSetAttribute", f, 8, 90_000);
    assert_eq!(dims(one, one, 49_153), 0);
    assert_eq!(
        cu!("cuFuncSetAttribute", f, 8, 101_377),
        Code::INVALID_VALUE.0
    );
    assert_eq!(cu!("cuFuncSetAttribute", f, 0, 5), Code::INVALID_VALUE.0);
    let p = s.alloc(4);
    assert_eq!(
        launch(bounded, 1, 129, 0, &[Word::word(&p)]),
        Code::INVALID_VALUE.0
    );
    assert_eq!(launch(bounded, 1, 128, 0, &[Word::word(&p)]), 0);
    let mut v = 0i32;
    for (id, expected) in [(0, 128), (1, 4096), (6, 89), (8, 49_152 - 4096)] {
        ok!("cuFuncGetAttribute", &mut v, id, bounded);
        assert_eq!(v, expected, "attribute {id}");
    }
    assert_eq!(
        cu!("cuFuncGetAttribute", &mut v, 18, bounded),
        Code::INVALID_VALUE.0
    );
    // Cooperative launches must be resident at once.
    let cooperative = |blocks: u32| {
        cu!(
            "cuLaunchCooperativeKernel",
            f,
            blocks,
            1,
            1,
            32,
            1,
            1,
            0,
            0u64,
            0u64
        )
    };
    assert_eq!(cooperative(1), 0);
    assert_eq!(cooperative(100_000), Code::COOPERATIVE_LAUNCH_TOO_LARGE.0);
    // Launch attributes.
    let attribute = |id: u64, v: [u64; 2]| {
        let a = [id, v[0], v[1], 0, 0, 0, 0, 0, 0];
        let w = Word::word(&a);
        let config = [
            1u32,
            1,
            1,
            32,
            1,
            1,
            0,
            0,
            0,
            0,
            w as u32,
            (w >> 32) as u32,
            1,
            0,
        ];
        cu!("cuLaunchKernelEx", &config, f, 0u64, 0u64)
    };
    assert_eq!(attribute(0, [0; 2]), 0);
    assert_eq!(attribute(2, [1, 0]), 0);
    assert_eq!(attribute(4, [1 | 1 << 32, 1]), 0);
    assert_eq!(attribute(4, [2 | 1 << 32, 1]), Code::INVALID_CLUSTER_SIZE.0);
    assert_eq!(attribute(8, [5, 0]), 0);
    assert_eq!(attribute(99, [5, 0]), Code::INVALID_VALUE.0);
    assert_eq!(attribute(12, [5, 0]), Code::INVALID_HANDLE.0);
    let e = s.event();
    assert_eq!(attribute(12, [e, 0]), 0);
    ok!("cuEventSynchronize", e);
    // A stream of another context.
    let other = Session::new();
    let stream = other.stream(0);
    assert_eq!(launch(f, 1, 1, stream, &[]), Code::INVALID_HANDLE.0);
}

#[test]
fn module_contents() {
    let _s = Session::new();
    let m = module(PTX);
    let (mut p, mut size) = (0u64, 0u64);
    ok!("cuModuleGetGlobal_v2", &mut p, &mut size, m, c"counter");
    assert_eq!(size, 4);
    let f = function(m, "count");
    assert_eq!(launch(f, 3, 32, 0, &[]), 0);
    let mut v = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut v, p, 4);
    assert_eq!(v, 7 + 96);
    ok!("cuModuleGetGlobal_v2", &mut p, 0u64, m, c"factor");
    let mut factor = 0f32;
    ok!("cuMemcpyDtoH_v2", &mut factor, p, 4);
    assert_eq!(factor, 2.0);
    ok!("cuMemcpyHtoD_v2", p, &3f32, 4);
    assert_eq!(
        cu!("cuModuleGetGlobal_v2", &mut p, &mut size, m, c"none"),
        Code::NOT_FOUND.0
    );
    let mut f = 0u64;
    assert_eq!(
        cu!("cuModuleGetFunction", &mut f, m, c"none"),
        Code::NOT_FOUND.0
    );
    assert_eq!(
        cu!("cuModuleGetFunction", &mut f, m, 5u64),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuModuleGetFunction", &mut f, 5u64, c"count"),
        Code::INVALID_HANDLE.0
    );
    let mut n = 0u32;
    ok!("cuModuleGetFunctionCount", &mut n, m);
    assert_eq!(n, 6);
    let mut all = [0u64; 6];
    ok!("cuModuleEnumerateFunctions", &mut all, 6, m);
    assert!(all.contains(&function(m, "saxpy")));
    let (mut name, mut owner, mut count) = (0u64, 0u64, 0u64);
    let saxpy = function(m, "saxpy");
    ok!("cuFuncGetName", &mut name, saxpy);
    // SAFETY: the driver never frees names.
    let name = unsafe { std::ffi::CStr::from_ptr(name as *const _) };
    assert_eq!(name, c"saxpy");
    ok!("cuFuncGetModule", &mut owner, saxpy);
    assert_eq!(owner, m);
    ok!("cuFuncGetParamCount", saxpy, &mut count);
    assert_eq!(count, 4);
    let (mut offset, mut size) = (0u64, 0u64);
    for (i, expected) in [(0, 4), (8, 8), (16, 8), (24, 4)].into_iter().enumerate() {
        ok!("cuFuncGetParamInfo", saxpy, i, &mut offset, &mut size);
        assert_eq!((offset, size), expected);
    }
    assert_eq!(
        cu!("cuFuncGetParamInfo", saxpy, 4, &mut offset, &mut size),
        Code::INVALID_VALUE.0
    );
    ok!("cuModuleUnload", m);
    assert_eq!(cu!("cuModuleUnload", m), Code::INVALID_HANDLE.0);
    assert_eq!(launch(saxpy, 1, 1, 0, &[]), Code::INVALID_HANDLE.0);
}

#[test]
fn libraries() {
    let _s = Session::new();
    let lib = library(PTX);
    let (mut kernel, mut f, mut m) = (0u64, 0u64, 0u64);
    ok!("cuLibraryGetKernel", &mut kernel, lib, c"count");
    ok!("cuKernelGetFunction", &mut f, kernel);
    ok!("cuLibraryGetModule", &mut m, lib);
    let (mut p, mut n) = (0u64, 0u32);
    ok!("cuLibraryGetGlobal", &mut p, 0u64, lib, c"counter");
    // A kernel handle can be launched like a function.
    assert_eq!(launch(kernel, 1, 32, 0, &[]), 0);
    assert_eq!(launch(f, 1, 32, 0, &[]), 0);
    let mut v = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut v, p, 4);
    assert_eq!(v, 7 + 64);
    ok!("cuLibraryGetKernelCount", &mut n, lib);
    assert_eq!(n, 6);
    let mut all = [0u64; 9];
    ok!("cuLibraryEnumerateKernels", &mut all, 9, lib);
    assert!(all.contains(&kernel));
    ok!("cuKernelSetAttribute", 8, 60_000, kernel, 0);
    let mut shared = 0i32;
    ok!("cuFuncGetAttribute", &mut shared, 8, f);
    assert_eq!(shared, 60_000);
    let mut of_module = 0u64;
    ok!("cuModuleGetFunction", &mut of_module, m, c"store");
    let mut stored = 0u64;
    ok!("cuLibraryGetKernel", &mut stored, lib, c"store");
    ok!("cuKernelSetAttribute", 8, 60_000, stored, 0);
    ok!("cuFuncGetAttribute", &mut shared, 8, of_module);
    assert_eq!(shared, 60_000);
    let mut of = 0u64;
    ok!("cuKernelGetLibrary", &mut of, kernel);
    assert_eq!(of, lib);
    assert_eq!(
        cu!("cuLibraryGetManaged", &mut p, 0u64, lib, c"counter"),
        Code::NOT_FOUND.0
    );
    assert_eq!(cu!("cuModuleUnload", m), Code::NOT_PERMITTED.0);
    // Its variables are per context.
    {
        let _other = Session::new();
        let mut q = 0u64;
        ok!("cuLibraryGetGlobal", &mut q, 0u64, lib, c"counter");
        assert_ne!(p, q);
        assert_eq!(launch(kernel, 1, 32, 0, &[]), 0);
        ok!("cuMemcpyDtoH_v2", &mut v, q, 4);
        assert_eq!(v, 7 + 32);
    }
    ok!("cuLibraryUnload", lib);
    assert_eq!(cu!("cuLibraryUnload", lib), Code::INVALID_HANDLE.0);
    assert_eq!(launch(kernel, 1, 1, 0, &[]), Code::INVALID_HANDLE.0);
}

#[test]
fn bad_images_and_their_logs() {
    let _s = Session::new();
    let mut m = 0u64;
    let mut load = |image: &std::ffi::CStr| cu!("cuModuleLoadData", &mut m, image);
    assert_eq!(load(c"garbage"), Code::INVALID_IMAGE.0);
    assert_eq!(load(c""), Code::INVALID_IMAGE.0);
    assert_eq!(load(c"\x7fELF\x02\x01\x01"), Code::INVALID_IMAGE.0);
    assert_eq!(
        load(c".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry f( {"),
        Code::INVALID_PTX.0
    );
    for bad in [0u64, 5, 0xdead_beef] {
        assert_eq!(cu!("cuModuleLoadData", &mut m, bad), Code::INVALID_VALUE.0);
        assert_eq!(cu!("cuModuleLoad", &mut m, bad), Code::INVALID_VALUE.0);
    }
    for path in [c"/no/such/file", c"/dev/zero", c"/", c""] {
        assert_eq!(cu!("cuModuleLoad", &mut m, path), Code::FILE_NOT_FOUND.0);
    }
    let path = std::env::temp_dir().join(format!("cupyrite-{}.ptx", std::process::id()));
    std::fs::write(&path, PTX).unwrap();
    let name = CString::new(path.to_str().unwrap()).unwrap();
    ok!("cuModuleLoad", &mut m, name.as_c_str());
    std::fs::remove_file(path).unwrap();
    function(m, "saxpy");
    let text = c".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry f()\n{\n  frobnicate.u32 %r1;\n}\n";
    let (mut info, mut error) = ([1u8; 64], [1u8; 256]);
    let ids = [3u32, 4, 5, 6, 2];
    let mut values = [Word::word(&mut info), 64, Word::word(&mut error), 256, 0];
    let code = cu!("cuModuleLoadDataEx", &mut m, text, 5, &ids, &mut values);
    assert_eq!(code, Code::INVALID_PTX.0);
    let used = values[3] as usize;
    let log = std::str::from_utf8(&error[..used - 1]).unwrap();
    assert!(
        log.contains("line 6") && log.contains("frobnicate"),
        "{log}"
    );
    assert_eq!((error[used - 1], info[0], values[1]), (0, 0, 0));
    // A log that does not fit is truncated.
    let mut values = [Word::word(&mut info), 64, Word::word(&mut error), 8, 0];
    assert_eq!(
        cu!("cuModuleLoadDataEx", &mut m, text, 5, &ids, &mut values),
        Code::INVALID_PTX.0
    );
    assert_eq!((values[3], error[7]), (8, 0));
    assert_eq!(
        cu!(
            "cuModuleLoadDataEx",
            &mut m,
            text,
            u32::MAX,
            &ids,
            &mut values
        ),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuModuleLoadDataEx", &mut m, text, 1, &99u32, &mut values),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuModuleLoadDataEx", &mut m, text, 1, 7u64, &mut values),
        Code::INVALID_VALUE.0
    );
    // Machine code with embedded PTX.
    let bare = code::wrap(&[]);
    let sass = code::attach_reason(&bare, "foreign").unwrap();
    assert_eq!(
        cu!("cuModuleLoadData", &mut m, &sass[0]),
        Code::NO_BINARY_FOR_GPU.0
    );
    let cubin = code::attach(&bare, &[cupyrite_engine::Unit::new("", PTX)]).unwrap();
    ok!("cuModuleLoadData", &mut m, &cubin[0]);
    function(m, "saxpy");
}

#[test]
fn launch_bounds_beyond_the_device_are_loaded_and_those_of_zero_refused() {
    let s = Session::new();
    let p = s.alloc(4);
    let ptx = |bounds: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {bounds}\n{{
    .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret; }}"
        )
    };
    // ptxas accepts these bounds, too.
    for bounds in [
        ".maxntid 65536, 65536",
        ".maxntid 4294967295, 4294967295, 4294967295",
        ".maxntid 4294967295 .minnctapersm 4294967295",
        ".maxnreg 4294967295",
    ] {
        let f = function(module(&ptx(bounds)), "k");
        let attribute = |id: u32| {
            let mut value = 0i32;
            ok!("cuFuncGetAttribute", &mut value, id, f);
            value
        };
        // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK and CU_FUNC_ATTRIBUTE_NUM_REGS.
        assert_eq!(attribute(0), 1024, "{bounds}");
        assert!(attribute(4) >= 10, "{bounds}");
        assert_eq!(launch(f, 1, 1024, 0, &[&raw const p as u64]), 0, "{bounds}");
        ok!("cuCtxSynchronize");
    }
    let required = function(module(&ptx(".reqntid 65536, 65536")), "k");
    assert_eq!(
        launch(required, 1, 1024, 0, &[&raw const p as u64]),
        Code::INVALID_VALUE.0
    );
    for bounds in [".maxntid 0", ".reqntid 1, 0", ".maxnreg 0"] {
        let text = CString::new(ptx(bounds)).unwrap();
        let mut m = 0u64;
        assert_eq!(
            cu!("cuModuleLoadData", &mut m, text.as_c_str()),
            Code::INVALID_PTX.0,
            "{bounds}"
        );
    }
}

#[test]
fn occupancy() {
    let _s = Session::new();
    let f = function(module(PTX), "count");
    let (mut blocks, mut grid, mut block, mut shared) = (0i32, 0i32, 0i32, 0u64);
    ok!(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        &mut blocks,
        f,
        256,
        0u64
    );
    assert_eq!(blocks, 6);
    ok!(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        &mut blocks,
        f,
        32,
        50_000u64
    );
    assert_eq!(blocks, 2);
    ok!(
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        &mut blocks,
        f,
        1024,
        0u64,
        1
    );
    assert_eq!(blocks, 1);
    ok!(
        "cuOccupancyMaxPotentialBlockSize",
        &mut grid,
        &mut block,
        f,
        0u64,
        0u64,
        0
    );
    assert_eq!(
        block * (grid / std::thread::available_parallelism().unwrap().get() as i32),
        1536
    );
    unsafe extern "C" fn bytes(threads: i32) -> usize {
        threads as usize * 100
    }
    ok!(
        "cuOccupancyMaxPotentialBlockSize",
        &mut grid,
        &mut block,
        f,
        bytes as *const () as u64,
        0u64,
        512
    );
    assert!((32..=512).contains(&block));
    ok!(
        "cuOccupancyAvailableDynamicSMemPerBlock",
        &mut shared,
        f,
        2,
        256
    );
    assert!(shared > 40_000);
    assert_eq!(
        cu!(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            &mut blocks,
            f,
            0,
            0u64
        ),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!(
            "cuOccupancyMaxPotentialBlockSize",
            &mut grid,
            &mut block,
            f,
            0xdead_beefu64,
            0u64,
            0
        ),
        Code::INVALID_VALUE.0
    );
}

#[test]
fn faults_are_sticky_per_context() {
    let s = Session::new();
    let m = module(PTX);
    let d = s.alloc(4);
    let f = function(m, "store");
    let wild = d + 4096;
    assert_eq!(launch(f, 1, 1, 0, &[Word::word(&wild)]), 0);
    assert_eq!(cu!("cuCtxSynchronize"), Code::ILLEGAL_ADDRESS.0);
    let mut p = 0u64;
    assert_eq!(cu!("cuMemAlloc_v2", &mut p, 8), Code::ILLEGAL_ADDRESS.0);
    assert_eq!(
        cu!("cuMemcpyDtoH_v2", &mut p, d, 4),
        Code::ILLEGAL_ADDRESS.0
    );
    assert_eq!(cu!("cuStreamSynchronize", 0u64), Code::ILLEGAL_ADDRESS.0);
    assert_eq!(
        launch(f, 1, 1, 0, &[Word::word(&d)]),
        Code::ILLEGAL_ADDRESS.0
    );
    assert_eq!(cu!("cuModuleUnload", m), Code::ILLEGAL_ADDRESS.0);
    // Other contexts are unaffected.
    let other = Session::new();
    let d = other.alloc(64);
    let f = function(module(PTX), "store");
    assert_eq!(launch(f, 1, 1, 0, &[Word::word(&d)]), 0);
    let mut v = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut v, d, 4);
    assert_eq!(v, 42);
    let bad = d + 1;
    assert_eq!(launch(f, 1, 1, 0, &[Word::word(&bad)]), 0);
    assert_eq!(cu!("cuCtxSynchronize"), Code::MISALIGNED_ADDRESS.0);
}

#[test]
fn trap_fails_the_launch() {
    let _s = Session::new();
    let f = function(module(PTX), "trapped");
    assert_eq!(launch(f, 1, 32, 0, &[]), 0);
    assert_eq!(cu!("cuStreamSynchronize", 0u64), Code::LAUNCH_FAILED.0);
}

#[test]
fn endless_kernels_can_be_interrupted() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    thread_local! {
        static ARMED: std::cell::Cell<Interrupt> = const { std::cell::Cell::new(Interrupt::Continue) };
    }
    // Other tests wait on other threads; only this one is interrupted.
    set_interrupt_hook(|| {
        if ARMED.get() != Interrupt::Continue {
            ASKED.store(true, Ordering::Relaxed);
        }
        ARMED.get()
    });
    let s = Session::new();
    let m = module(PTX);
    let (forever, stream) = (function(m, "forever"), s.stream(0));
    assert_eq!(launch(forever, 2, 64, stream, &[]), 0);
    assert_eq!(cu!("cuStreamQuery", stream), super::NOT_READY);
    let start = std::time::Instant::now();
    ARMED.set(Interrupt::EndWait);
    assert_eq!(cu!("cuStreamSynchronize", stream), Code::LAUNCH_TIMEOUT.0);
    assert_eq!(cu!("cuStreamQuery", stream), super::NOT_READY);
    ARMED.set(Interrupt::CancelWork);
    assert_eq!(cu!("cuStreamSynchronize", stream), Code::LAUNCH_TIMEOUT.0);
    assert!(start.elapsed().as_millis() < 2000 && ASKED.load(Ordering::Relaxed));
    assert_eq!(cu!("cuCtxSynchronize"), Code::LAUNCH_TIMEOUT.0);
    ARMED.set(Interrupt::Continue);
    drop(s);
}

/// Fails the context by a kernel in a stream of its own; returns once a query shows the error.
fn fail(s: &Session, m: u64) {
    let (stream, wild) = (s.stream(1), 64u64);
    let f = function(m, "store");
    assert_eq!(launch(f, 1, 1, stream, &[Word::word(&wild)]), 0);
    while cu!("cuStreamQuery", stream) != Code::ILLEGAL_ADDRESS.0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_sticky_error_is_returned_after_running_work_has_ended() {
    let s = Session::new();
    let m = module(PTX);
    let (stream, n) = (s.stream(1), 256 << 20);
    let (from, to) = (s.alloc(n), s.pinned(n));
    ok!("cuMemsetD8_v2", from, 1u8, n);
    ok!("cuCtxSynchronize");
    // SAFETY: the host allocation has `n` bytes, which only the copy writes.
    let at = |i: usize| unsafe { (to as *const u8).add(i).read_volatile() };
    assert_eq!((at(0), at(n - 1)), (0, 0));
    ok!("cuMemcpyDtoHAsync_v2", to, from, n, stream);
    while (at(0), at(n - 1)) == (0, 0) {
        std::hint::spin_loop();
    }
    fail(&s, m);
    assert_eq!((at(0), at(n - 1)), (1, 1), "the copy still runs");
}

#[test]
fn a_fault_cancels_the_other_kernels_of_its_context() {
    let s = Session::new();
    let m = module(PTX);
    let stream = s.stream(1);
    assert_eq!(launch(function(m, "forever"), 1, 32, stream, &[]), 0);
    fail(&s, m);
    assert_eq!(cu!("cuStreamSynchronize", stream), Code::ILLEGAL_ADDRESS.0);
}

#[test]
fn waits_in_a_failed_context_wait_for_host_functions() {
    static RETURNED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn slow(_: *mut std::ffi::c_void) {
        std::thread::sleep(std::time::Duration::from_millis(80));
        RETURNED.fetch_add(1, Ordering::SeqCst);
    }
    let waits: [fn(u64, u64) -> u32; 3] = [
        |stream, _| cu!("cuStreamSynchronize", stream),
        |_, event| cu!("cuEventSynchronize", event),
        |_, _| cu!("cuCtxSynchronize"),
    ];
    for (i, wait) in (1..).zip(waits) {
        let s = Session::new();
        let (stream, event) = (s.stream(1), s.event());
        let m = module(PTX);
        ok!("cuLaunchHostFunc", stream, slow as *const () as u64, 0u64);
        ok!("cuEventRecord", event, stream);
        fail(&s, m);
        assert_eq!(wait(stream, event), Code::ILLEGAL_ADDRESS.0);
        assert_eq!(RETURNED.load(Ordering::SeqCst), i, "wait {i}");
    }
}

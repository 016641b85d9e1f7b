//! Arrays, mipmapped arrays, texture and surface objects: lifetimes and invalid handles.

use super::super::Code;
use super::copies::copy2d;
use super::{Session, Word, cu, ok};

const INVALID_VALUE: u32 = Code::INVALID_VALUE.0;
const INVALID_HANDLE: u32 = Code::INVALID_HANDLE.0;
const FLOAT: u64 = 0x20;
const LAYERED: u64 = 1;

/// `CUDA_ARRAY3D_DESCRIPTOR`: extents, format and channels, flags.
fn descriptor(size: [u64; 3], flags: u64) -> [u64; 5] {
    [size[0], size[1], size[2], FLOAT | 1 << 32, flags]
}

fn array(size: [u64; 3], flags: u64) -> u64 {
    let mut handle = 0u64;
    ok!("cuArray3DCreate_v2", &mut handle, &descriptor(size, flags));
    handle
}

/// `CUDA_RESOURCE_DESC` of an array (0) or a mipmapped one (1).
fn resource(kind: u64, handle: u64) -> [u64; 18] {
    let mut words = [0; 18];
    (words[0], words[1]) = (kind, handle);
    words
}

#[test]
fn arrays_report_their_descriptors() {
    let _s = Session::new();
    let a = array([8, 4, 3], LAYERED);
    let mut d = [0u64; 5];
    ok!("cuArray3DGetDescriptor_v2", &mut d, a);
    assert_eq!(d, descriptor([8, 4, 3], LAYERED));
    let mut flat = [0u64; 3];
    ok!("cuArrayGetDescriptor_v2", &mut flat, a);
    assert_eq!(flat, [8, 4, FLOAT | 1 << 32]);
    let mut b = 0u64;
    ok!("cuArrayCreate_v2", &mut b, &[5u64, 0, FLOAT | 2 << 32]);
    ok!("cuArray3DGetDescriptor_v2", &mut d, b);
    assert_eq!(d, [5, 0, 0, FLOAT | 2 << 32, 0]);
    ok!("cuArrayDestroy", a);
    assert_eq!(cu!("cuArrayDestroy", a), INVALID_HANDLE);
    assert_eq!(cu!("cuArray3DGetDescriptor_v2", &mut d, a), INVALID_HANDLE);
}

#[test]
fn destroyed_arrays_free_their_memory() {
    let _s = Session::new();
    let free = || {
        let mut bytes = 0u64;
        ok!("cuMemGetInfo_v2", &mut bytes, 0u64);
        bytes
    };
    // Other tests allocate at the same time: one of several measurements must show the array's 16 MiB.
    let freed = (0..20).any(|_| {
        let a = array([2048, 2048, 0], 0);
        let with = free();
        ok!("cuArrayDestroy", a);
        free() >= with + (16 << 20)
    });
    assert!(freed);
    let mut none = 0u64;
    let huge = descriptor([131_072, 65_536, 0], 0);
    let four = [huge[0], huge[1], 0, FLOAT | 4 << 32, 0];
    assert_eq!(
        cu!("cuArray3DCreate_v2", &mut none, &four),
        Code::OUT_OF_MEMORY.0
    );
}

#[test]
fn levels_are_invalidated_with_their_array() {
    let _s = Session::new();
    let mut m = 0u64;
    ok!(
        "cuMipmappedArrayCreate",
        &mut m,
        &descriptor([16, 8, 0], 0),
        20
    );
    let (mut first, mut again, mut last) = (0u64, 0u64, 0u64);
    ok!("cuMipmappedArrayGetLevel", &mut first, m, 0);
    ok!("cuMipmappedArrayGetLevel", &mut again, m, 0);
    assert_eq!(first, again);
    ok!("cuMipmappedArrayGetLevel", &mut last, m, 4);
    let mut d = [0u64; 5];
    ok!("cuArray3DGetDescriptor_v2", &mut d, last);
    assert_eq!(d, descriptor([1, 1, 0], 0));
    assert_eq!(
        cu!("cuMipmappedArrayGetLevel", &mut last, m, 5),
        INVALID_VALUE
    );
    ok!("cuArrayDestroy", first);
    ok!("cuMipmappedArrayGetLevel", &mut again, m, 0);
    assert_ne!(first, again);
    ok!("cuMipmappedArrayDestroy", m);
    for removed in [first, again, last] {
        assert_eq!(
            cu!("cuArray3DGetDescriptor_v2", &mut d, removed),
            INVALID_HANDLE
        );
    }
    assert_eq!(cu!("cuMipmappedArrayDestroy", m), INVALID_HANDLE);
}

#[test]
fn objects_outlive_their_arrays() {
    let _s = Session::new();
    let a = array([8, 4, 0], 2);
    let words = resource(0, a);
    let mut linear = [0u32; 26];
    linear[..3].fill(1);
    let (mut t, mut surface) = (0u64, 0u64);
    ok!("cuTexObjectCreate", &mut t, &words, &linear, 0u64);
    ok!("cuSurfObjectCreate", &mut surface, &words);
    ok!("cuArrayDestroy", a);
    let mut back = [0u64; 18];
    ok!("cuTexObjectGetResourceDesc", &mut back, t);
    assert_eq!(back, words);
    ok!("cuSurfObjectGetResourceDesc", &mut back, surface);
    assert_eq!(back, words);
    let mut descriptor_back = [0u32; 26];
    ok!("cuTexObjectGetTextureDesc", &mut descriptor_back, t);
    assert_eq!(descriptor_back, linear);
    let mut view = [7u64; 14];
    ok!("cuTexObjectGetResourceViewDesc", &mut view, t);
    assert_eq!(view, [0; 14]);
    // Invalid as a resource, and a texture handle is not a surface handle.
    assert_eq!(
        cu!("cuTexObjectCreate", &mut t, &words, &linear, 0u64),
        INVALID_VALUE
    );
    assert_eq!(cu!("cuTexObjectDestroy", surface), INVALID_VALUE);
    ok!("cuTexObjectDestroy", t);
    assert_eq!(cu!("cuTexObjectDestroy", t), INVALID_VALUE);
    ok!("cuSurfObjectDestroy", surface);
    ok!("cuTexObjectDestroy", 0u64);
}

#[test]
fn context_destruction_destroys_arrays() {
    let s = Session::new();
    let a = array([8, 4, 0], 0);
    let mut t = 0u64;
    let words = resource(0, a);
    ok!("cuTexObjectCreate", &mut t, &words, &[0u32; 26], 0u64);
    drop(s);
    let _other = Session::new();
    let mut d = [0u64; 5];
    assert_eq!(cu!("cuArray3DGetDescriptor_v2", &mut d, a), INVALID_HANDLE);
    assert_eq!(cu!("cuTexObjectDestroy", t), INVALID_VALUE);
    assert!(cupyrite_engine::texture::objects::find(t).is_none());
}

#[test]
fn invalid_arguments_are_refused() {
    let s = Session::new();
    let a = array([8, 4, 0], 0);
    let data = [0u8; 256];
    let mut out = 0u64;
    for bad in [0u64, 1, 0xdead_beef, u64::MAX, s.0, Word::word(&data)] {
        assert_eq!(cu!("cuArrayDestroy", bad), INVALID_HANDLE);
        assert_eq!(cu!("cuMipmappedArrayDestroy", bad), INVALID_HANDLE);
        assert_eq!(
            cu!("cuMipmappedArrayGetLevel", &mut out, bad, 0),
            INVALID_HANDLE
        );
        assert_eq!(
            cu!("cuSurfObjectCreate", &mut out, &resource(0, bad)),
            INVALID_VALUE
        );
        for kind in 0..5 {
            let linear = [0u32; 26];
            let words = resource(kind, bad);
            assert_eq!(
                cu!("cuTexObjectCreate", &mut out, &words, &linear, 0u64),
                INVALID_VALUE
            );
        }
        assert_eq!(cu!("cuMemcpyHtoA_v2", bad, 0u64, &data, 4), INVALID_VALUE);
        assert_eq!(cu!("cuMemcpyAtoA_v2", a, 0u64, bad, 0u64, 4), INVALID_VALUE);
    }
    // Invalid addresses in place of structures.
    for bad in [0u64, 1, 0xdead_beef, u64::MAX - 8] {
        assert_eq!(cu!("cuArray3DCreate_v2", &mut out, bad), INVALID_VALUE);
        assert_eq!(
            cu!("cuArray3DCreate_v2", bad, &descriptor([8, 4, 0], 0)),
            INVALID_VALUE
        );
        assert_eq!(cu!("cuArrayCreate_v2", &mut out, bad), INVALID_VALUE);
        assert_eq!(cu!("cuArray3DGetDescriptor_v2", bad, a), INVALID_VALUE);
        assert_eq!(
            cu!("cuTexObjectCreate", &mut out, bad, bad, bad),
            INVALID_VALUE
        );
        assert_eq!(
            cu!("cuTexObjectCreate", bad, &resource(0, a), &[0u32; 26], 0u64),
            INVALID_VALUE
        );
        assert_eq!(cu!("cuSurfObjectCreate", &mut out, bad), INVALID_VALUE);
        assert_eq!(cu!("cuMemcpyHtoA_v2", a, 0u64, bad, 4), INVALID_VALUE);
        assert_eq!(cu!("cuMemcpyAtoH_v2", bad, a, 0u64, 4), INVALID_VALUE);
        assert_eq!(cu!("cuMemcpyDtoA_v2", a, 0u64, bad, 4), INVALID_VALUE);
    }
    // Ranges that exceed the array, including by overflow.
    let host = [0, 0, 1, Word::word(&data), 0, 0, 0];
    let at = |x, y| [x, y, 3, 0, 0, a, 0];
    for (x, y, width, height) in [
        (0, 0, 36, 1),
        (0, 0, 4, 5),
        (32, 0, 4, 1),
        (0, 4, 4, 1),
        (u64::MAX, 0, 4, 1),
        (0, u64::MAX, 4, 1),
        (4, 1, u64::MAX, 1),
        (4, 1, 4, u64::MAX),
    ] {
        assert_eq!(
            cu!("cuMemcpy2D_v2", &copy2d(host, at(x, y), width, height)),
            INVALID_VALUE
        );
    }
    ok!("cuCtxSynchronize");
}

/// Reads element 3 of a texture, and writes 7.0 to element 3 of a surface.
const OBJECTS: &std::ffi::CStr = c".version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 object, .param .u64 to)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<6>;
    ld.param.u64 %rd1, [object];
    ld.param.u64 %rd2, [to];
    mov.f32 %f5, 0f40600000;
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];
    st.global.f32 [%rd2], %f1;
    ret;
}
.visible .entry write(.param .u64 object)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [object];
    mov.u32 %r1, 12;
    mov.f32 %f1, 0f40E00000;
    sust.b.1d.b32.trap [%rd1, {%r1}], {%f1};
    ret;
}
";

#[test]
fn launched_kernels_keep_destroyed_objects() {
    use super::kernels::{function, launch, module};
    let s = Session::new();
    let (stream, to) = (s.stream(1), s.alloc(4));
    let m = module(OBJECTS.to_str().unwrap());
    let (read, write) = (function(m, "read"), function(m, "write"));
    let a = array([8, 0, 0], 2);
    let (mut t, mut surface) = (0u64, 0u64);
    ok!(
        "cuTexObjectCreate",
        &mut t,
        &resource(0, a),
        &[0u32; 26],
        0u64
    );
    ok!("cuSurfObjectCreate", &mut surface, &resource(0, a));
    // The kernels run after their objects are destroyed.
    super::busy(stream, 60);
    assert_eq!(launch(write, 1, 1, stream, &[Word::word(&surface)]), 0);
    assert_eq!(
        launch(read, 1, 1, stream, &[Word::word(&t), Word::word(&to)]),
        0
    );
    ok!("cuSurfObjectDestroy", surface);
    ok!("cuTexObjectDestroy", t);
    assert_eq!(cu!("cuTexObjectDestroy", t), INVALID_VALUE);
    assert_eq!(cu!("cuStreamQuery", stream), super::NOT_READY);
    ok!("cuStreamSynchronize", stream);
    let mut value = 0f32;
    ok!("cuMemcpyDtoH_v2", &mut value, to, 4);
    assert_eq!(value, 7.0);
    // Afterwards the handles are invalid in kernels, too.
    for _ in 0..1000 {
        if cupyrite_engine::texture::objects::find(t).is_none() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(
        launch(read, 1, 1, stream, &[Word::word(&t), Word::word(&to)]),
        0
    );
    assert_eq!(cu!("cuStreamSynchronize", stream), Code::ILLEGAL_ADDRESS.0);
}

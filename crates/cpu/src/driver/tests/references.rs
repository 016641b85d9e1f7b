//! Texture and surface references.

use super::super::Code;
use super::copies::copy2d;
use super::kernels::{self, function, module};
use super::{Session, Word, call, cu, ok};

const INVALID_VALUE: u32 = Code::INVALID_VALUE.0;
const INVALID_HANDLE: u32 = Code::INVALID_HANDLE.0;
const NOT_FOUND: u32 = Code::NOT_FOUND.0;
const UINT8: u64 = 0x01;
const UINT32: u64 = 0x03;
const FLOAT: u64 = 0x20;
const OVERRIDE: u64 = 1;
const SURFACE: u64 = 2;

/// Kernels of PTX 4.0, as old compilers write them: eight threads fetch texels at their number n, or at 0.75 n - 0.5 in two
/// dimensions.
const PTX: &str = r#"
.version 4.0
.target sm_20
.address_size 64
.global .texref t;
.global .surfref s;
.global .u32 plain;
.visible .entry linear(.param .u64 out)
{
    .reg .f32 %f<6>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1}];
    st.global.f32 [%rd1], %f1;
    ret;
}
.visible .entry plane(.param .u64 out)
{
    .reg .f32 %f<8>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    cvt.rn.f32.u32 %f5, %r1; mul.f32 %f5, %f5, 0f3F400000; add.f32 %f5, %f5, 0fBF000000; mov.f32 %f6, 0f3F000000;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}];
    st.global.f32 [%rd1], %f1;
    ret;
}
.visible .entry surface(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    shl.b32 %r2, %r1, 2; mov.u32 %r3, 0;
    suld.b.2d.b32.zero {%r4}, [s, {%r2, %r3}];
    add.u32 %r5, %r4, 1;
    sust.b.2d.b32.zero [s, {%r2, %r3}], {%r5};
    st.global.u32 [%rd1], %r4;
    ret;
}
"#;

/// Launches with these arguments.
fn launch(f: u64, grid: u32, block: u32, stream: u64, arguments: &[u64]) -> u32 {
    let pointers: Vec<u64> = arguments.iter().map(|a| (&raw const *a) as u64).collect();
    kernels::launch(f, grid, block, stream, &pointers)
}

fn texture_reference(module: u64) -> u64 {
    let mut t = 0u64;
    ok!("cuModuleGetTexRef", &mut t, module, c"t");
    t
}

fn array(width: u64, format: u64, channels: u64, flags: u64) -> u64 {
    let mut a = 0u64;
    let descriptor = [width, 1, 0, format | channels << 32, flags];
    ok!("cuArray3DCreate_v2", &mut a, &descriptor);
    a
}

fn filled<T>(width: u64, format: u64, flags: u64, elements: &[T]) -> u64 {
    let a = array(width, format, 1, flags);
    let bytes = size_of_val(elements) as u64;
    ok!(
        "cuMemcpy2D_v2",
        &copy2d(
            [0, 0, 1, elements.as_ptr() as u64, 0, 0, bytes],
            [0, 0, 3, 0, 0, a, 0],
            bytes,
            1
        )
    );
    a
}

fn words(address: u64) -> [u32; 8] {
    let mut out = [0u32; 8];
    ok!("cuMemcpyDtoH_v2", &mut out, address, 32);
    out
}

fn floats(address: u64) -> [f32; 8] {
    words(address).map(f32::from_bits)
}

/// Runs a kernel on eight threads and returns its output.
fn run(s: &Session, m: u64, kernel: &str) -> [f32; 8] {
    let out = s.alloc(32);
    assert_eq!(launch(function(m, kernel), 1, 8, 0, &[out]), 0);
    ok!("cuCtxSynchronize");
    floats(out)
}

#[test]
fn linear_memory_is_fetched() {
    let s = Session::new();
    let m = module(PTX);
    let t = texture_reference(m);
    let memory = s.alloc(1024);
    let values: [f32; 8] = std::array::from_fn(|k| k as f32 + 1.0);
    ok!("cuMemcpyHtoD_v2", memory, &values, 32);
    let mut offset = 7u64;
    ok!("cuTexRefSetFormat", t, FLOAT, 1);
    ok!("cuTexRefSetAddress_v2", &mut offset, t, memory, 32);
    assert_eq!(offset, 0);
    assert_eq!(run(&s, m, "linear"), values);
    // An address between two aligned ones: the reference begins at the lower one.
    ok!("cuTexRefSetAddress_v2", &mut offset, t, memory + 8, 24);
    assert_eq!(offset, 8);
    assert_eq!(run(&s, m, "linear"), values);
    assert_eq!(
        cu!("cuTexRefSetAddress_v2", 0u64, t, memory + 8, 24),
        INVALID_VALUE
    );
    ok!("cuTexRefSetAddress_v2", 0u64, t, memory, 16);
    assert_eq!(
        run(&s, m, "linear"),
        [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    );
    // Integers are normalised unless the reference reads them as such.
    let bytes: [u8; 8] = [0, 51, 102, 153, 204, 255, 0, 255];
    ok!("cuMemcpyHtoD_v2", memory, &bytes, 8);
    ok!("cuTexRefSetFormat", t, UINT8, 1);
    ok!("cuTexRefSetAddress_v2", 0u64, t, memory, 8);
    assert_eq!(
        run(&s, m, "linear"),
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 0.0, 1.0]
    );
}

#[test]
fn arrays_are_fetched_with_the_settings_of_the_reference() {
    let s = Session::new();
    let m = module(PTX);
    let t = texture_reference(m);
    let a = filled(4, FLOAT, 0, &[10.0f32, 20.0, 30.0, 40.0]);
    ok!("cuTexRefSetArray", t, a, OVERRIDE);
    // The default: clamped coordinates in texels, nearest texel.
    assert_eq!(
        run(&s, m, "plane"),
        [10.0, 10.0, 20.0, 20.0, 30.0, 40.0, 40.0, 40.0]
    );
    for dim in 0..2 {
        ok!("cuTexRefSetAddressMode", t, dim, 3);
    }
    ok!("cuTexRefSetBorderColor", t, &[5.0f32, 0.0, 0.0, 0.0]);
    assert_eq!(
        run(&s, m, "plane"),
        [5.0, 10.0, 20.0, 20.0, 30.0, 40.0, 5.0, 5.0]
    );
    for dim in 0..2 {
        ok!("cuTexRefSetAddressMode", t, dim, 1);
    }
    ok!("cuTexRefSetFilterMode", t, 1);
    assert_eq!(
        run(&s, m, "plane"),
        [10.0, 10.0, 15.0, 22.5, 30.0, 37.5, 40.0, 40.0]
    );
    let mut format = [0u32; 2];
    let [code, channels] = &mut format;
    ok!("cuTexRefGetFormat", code, channels, t);
    assert_eq!(u64::from(format[0]), FLOAT);
    assert_eq!(format[1], 1);
    // Destroying the array unbinds it.
    let mut bound = 0u64;
    ok!("cuTexRefGetArray", &mut bound, t);
    assert_eq!(bound, a);
    ok!("cuArrayDestroy", a);
    assert_eq!(cu!("cuTexRefGetArray", &mut bound, t), INVALID_VALUE);
}

#[test]
fn a_launch_uses_the_binding_of_its_time() {
    let s = Session::new();
    let m = module(PTX);
    let t = texture_reference(m);
    let f = function(m, "plane");
    let (a, b) = (
        filled(4, FLOAT, 0, &[1.0f32; 4]),
        filled(4, FLOAT, 0, &[2.0f32; 4]),
    );
    let (first, second) = (s.alloc(32), s.alloc(32));
    let stream = s.stream(1);
    super::busy(stream, 50);
    ok!("cuTexRefSetArray", t, a, OVERRIDE);
    assert_eq!(launch(f, 1, 8, stream, &[first]), 0);
    ok!("cuTexRefSetArray", t, b, OVERRIDE);
    assert_eq!(launch(f, 1, 8, stream, &[second]), 0);
    ok!("cuModuleUnload", m);
    ok!("cuArrayDestroy", a);
    ok!("cuArrayDestroy", b);
    ok!("cuCtxSynchronize");
    assert_eq!(floats(first), [1.0; 8]);
    assert_eq!(floats(second), [2.0; 8]);
}

#[test]
fn an_array_is_read_in_the_format_of_the_reference() {
    let s = Session::new();
    let m = module(PTX);
    let t = texture_reference(m);
    let a = filled(4, UINT32, 0, &[1.5f32, 2.5, 3.5, 4.5]);
    ok!("cuTexRefSetFormat", t, FLOAT, 1);
    ok!("cuTexRefSetArray", t, a, 0);
    assert_eq!(
        run(&s, m, "plane"),
        [1.5, 1.5, 2.5, 2.5, 3.5, 4.5, 4.5, 4.5]
    );
    // A format that does not exist, or with elements of another size.
    let f = function(m, "plane");
    for (format, channels) in [(999, 1), (UINT8, 1), (FLOAT, 4)] {
        ok!("cuTexRefSetFormat", t, format, channels);
        assert_eq!(launch(f, 1, 8, 0, &[s.alloc(32)]), INVALID_VALUE);
    }
    ok!("cuTexRefSetFormat", t, FLOAT, 1);
    // Any filter mode but the linear one is the nearest texel.
    ok!("cuTexRefSetFilterMode", t, 99);
    assert_eq!(run(&s, m, "plane")[2], 2.5);
}

#[test]
fn captures_refuse_kernels_with_references() {
    let s = Session::new();
    let m = module(PTX);
    let stream = s.stream(1);
    ok!("cuStreamBeginCapture_v2", stream, 2);
    let f = function(m, "plane");
    assert_eq!(
        launch(f, 1, 8, stream, &[s.alloc(32)]),
        Code::STREAM_CAPTURE_UNSUPPORTED.0
    );
    let mut graph = 0u64;
    assert_eq!(
        cu!("cuStreamEndCapture", stream, &mut graph),
        Code::STREAM_CAPTURE_INVALIDATED.0
    );
    // `cuParamSetTexRef` accepts the references of the function's module.
    let t = texture_reference(m);
    ok!("cuParamSetTexRef", f, -1, t);
    let other = module(PTX);
    assert_eq!(
        cu!("cuParamSetTexRef", function(other, "plane"), -1, t),
        INVALID_VALUE
    );
    assert_eq!(cu!("cuParamSetTexRef", f, -1, 0u64), INVALID_HANDLE);
}

#[test]
fn pitched_memory_is_fetched() {
    let s = Session::new();
    let m = module(PTX);
    let t = texture_reference(m);
    let memory = s.alloc(4096);
    ok!("cuMemcpyHtoD_v2", memory, &[1.0f32, 2.0, 3.0, 4.0], 16);
    let descriptor = |width: u64, height: u64| [width, height, FLOAT | 1 << 32];
    ok!("cuTexRefSetAddress2D_v3", t, &descriptor(4, 2), memory, 512);
    assert_eq!(
        run(&s, m, "plane"),
        [1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0]
    );
    let mut address = 0u64;
    ok!("cuTexRefGetAddress_v2", &mut address, t);
    assert_eq!(address, memory);
    for (width, height, address, pitch) in [
        (4u64, 2u64, memory + 4, 512u64),
        (16, 2, memory, 32),
        (4, 2, memory, 520),
        (256, 2, memory, 512),
        (1 << 20, 2, memory, 4 << 20),
    ] {
        assert_eq!(
            cu!(
                "cuTexRefSetAddress2D_v3",
                t,
                &descriptor(width, height),
                address,
                pitch
            ),
            INVALID_VALUE,
            "{width} {height} {address:#x} {pitch}"
        );
    }
    assert_eq!(
        cu!("cuTexRefSetAddress2D_v3", t, 0u64, memory, 512),
        INVALID_VALUE
    );
}

#[test]
fn surface_references_load_and_store() {
    let s = Session::new();
    let m = module(PTX);
    let mut r = 0u64;
    ok!("cuModuleGetSurfRef", &mut r, m, c"s");
    let mut bound = 0u64;
    assert_eq!(cu!("cuSurfRefGetArray", &mut bound, r), INVALID_VALUE);
    let a = filled(4, UINT32, SURFACE, &[1u32, 2, 3, 4]);
    ok!("cuSurfRefSetArray", r, a, 0);
    ok!("cuSurfRefGetArray", &mut bound, r);
    assert_eq!(bound, a);
    let out = s.alloc(32);
    let f = function(m, "surface");
    for first in [1, 2] {
        assert_eq!(launch(f, 1, 8, 0, &[out]), 0);
        ok!("cuCtxSynchronize");
        let want: [u32; 8] = std::array::from_fn(|k| if k < 4 { first + k as u32 } else { 0 });
        assert_eq!(words(out), want);
    }
    assert_eq!(cu!("cuSurfRefSetArray", r, a, 1), INVALID_VALUE);
    assert_eq!(cu!("cuSurfRefSetArray", a, a, 0), INVALID_HANDLE);
}

#[test]
fn settings_are_returned() {
    let _s = Session::new();
    let m = module(PTX);
    let mut own = 0u64;
    ok!("cuTexRefCreate", &mut own);
    for t in [texture_reference(m), own] {
        let get = |name: &str| {
            let mut value = u32::MAX;
            assert_eq!(call(name, &[(&mut value).word(), t]), 0, "{name}");
            value
        };
        let mut mode = 9u32;
        for dim in 0..3 {
            ok!("cuTexRefGetAddressMode", &mut mode, t, dim);
            assert_eq!(mode, 1);
            ok!("cuTexRefSetAddressMode", t, dim, dim);
            ok!("cuTexRefGetAddressMode", &mut mode, t, dim);
            assert_eq!(mode, dim as u32);
        }
        for (set, read) in [
            ("cuTexRefSetFilterMode", "cuTexRefGetFilterMode"),
            ("cuTexRefSetMipmapFilterMode", "cuTexRefGetMipmapFilterMode"),
            ("cuTexRefSetMaxAnisotropy", "cuTexRefGetMaxAnisotropy"),
            ("cuTexRefSetFlags", "cuTexRefGetFlags"),
        ] {
            assert_eq!(get(read), 0, "{read}");
            assert_eq!(call(set, &[t, 1]), 0);
            assert_eq!(get(read), 1);
        }
        let colour = [0.5f32, 1.0, -2.0, 3.0];
        let mut back = [9.0f32; 4];
        ok!("cuTexRefGetBorderColor", &mut back, t);
        assert_eq!(back, [0.0; 4]);
        ok!("cuTexRefSetBorderColor", t, &colour);
        ok!("cuTexRefGetBorderColor", &mut back, t);
        assert_eq!(back, colour);
        for name in [
            "cuTexRefGetArray",
            "cuTexRefGetMipmappedArray",
            "cuTexRefGetAddress_v2",
        ] {
            let mut handle = 0u64;
            assert_eq!(call(name, &[(&mut handle).word(), t]), INVALID_VALUE);
        }
    }
    ok!("cuTexRefDestroy", own);
    assert_eq!(cu!("cuTexRefDestroy", own), INVALID_HANDLE);
}

/// `cuTexRefSetMipmapLevelBias` and `cuTexRefSetMipmapLevelClamp` take numbers in other registers than words.
#[test]
fn levels_of_detail_are_returned() {
    let _s = Session::new();
    let t = texture_reference(module(PTX));
    // SAFETY: the types are those of the C functions.
    unsafe {
        let bias: unsafe extern "C" fn(u64, f32) -> u32 =
            std::mem::transmute(super::address("cuTexRefSetMipmapLevelBias"));
        let clamp: unsafe extern "C" fn(u64, f32, f32) -> u32 =
            std::mem::transmute(super::address("cuTexRefSetMipmapLevelClamp"));
        assert_eq!(bias(t, 1.5), 0);
        assert_eq!(clamp(t, 0.5, 3.0), 0);
        assert_eq!(clamp(1, 0.5, 3.0), INVALID_HANDLE);
    }
    let (mut bias, mut least, mut most) = (0f32, 0f32, 0f32);
    ok!("cuTexRefGetMipmapLevelBias", &mut bias, t);
    ok!("cuTexRefGetMipmapLevelClamp", &mut least, &mut most, t);
    assert_eq!((bias, least, most), (1.5, 0.5, 3.0));
}

#[test]
fn invalid_settings_are_refused() {
    let s = Session::new();
    let t = texture_reference(module(PTX));
    let a = array(4, FLOAT, 1, 0);
    for (name, arguments) in [
        ("cuTexRefSetAddressMode", [3u64, 0, 0]),
        ("cuTexRefSetAddressMode", [u64::MAX, 0, 0]),
        ("cuTexRefSetMipmapFilterMode", [2, 0, 0]),
        ("cuTexRefSetFlags", [0x1000, 0, 0]),
        ("cuTexRefSetFormat", [FLOAT, 5, 0]),
        ("cuTexRefSetFormat", [FLOAT, 3, 0]),
        ("cuTexRefSetBorderColor", [0, 0, 0]),
        ("cuTexRefSetArray", [a, 2, 0]),
    ] {
        let [x, y, z] = arguments;
        assert_eq!(
            call(name, &[t, x, y, z]),
            INVALID_VALUE,
            "{name} {arguments:?}"
        );
    }
    assert_eq!(cu!("cuTexRefSetArray", t, t, OVERRIDE), INVALID_HANDLE);
    assert_eq!(
        cu!("cuTexRefSetMipmappedArray", t, a, OVERRIDE),
        INVALID_HANDLE
    );
    let memory = s.alloc(512);
    ok!("cuTexRefSetFormat", t, FLOAT, 1);
    assert_eq!(
        cu!("cuTexRefSetAddress_v2", 0u64, t, memory, 1u64 << 40),
        INVALID_VALUE
    );
    assert_eq!(
        cu!("cuTexRefSetAddress_v2", 0u64, t, memory, u64::MAX),
        INVALID_VALUE
    );
}

#[test]
fn references_are_found_by_name_and_removed_with_their_module() {
    let _s = Session::new();
    let m = module(PTX);
    let (t, mut other) = (texture_reference(m), 0u64);
    assert_eq!(t, texture_reference(m));
    for name in [c"s", c"plain", c"linear", c"nothing"] {
        assert_eq!(
            cu!("cuModuleGetTexRef", &mut other, m, name),
            NOT_FOUND,
            "{name:?}"
        );
    }
    assert_eq!(cu!("cuModuleGetTexRef", &mut other, m, c""), INVALID_VALUE);
    let mut size = 0u64;
    assert_eq!(
        cu!("cuModuleGetGlobal_v2", &mut other, &mut size, m, c"t"),
        INVALID_VALUE
    );
    for name in [c"t", c"plain", c"nothing"] {
        assert_eq!(cu!("cuModuleGetSurfRef", &mut other, m, name), NOT_FOUND);
    }
    assert_eq!(cu!("cuModuleGetTexRef", 0u64, m, c"t"), INVALID_VALUE);
    assert_eq!(cu!("cuModuleGetTexRef", &mut other, m, 0u64), INVALID_VALUE);
    assert_eq!(
        cu!("cuModuleGetTexRef", &mut other, 0u64, c"t"),
        INVALID_HANDLE
    );
    let mut surface = 0u64;
    ok!("cuModuleGetSurfRef", &mut surface, m, c"s");
    let destroyed = module(PTX);
    ok!("cuTexRefDestroy", texture_reference(destroyed));
    assert_eq!(
        cu!("cuModuleGetTexRef", &mut other, destroyed, c"t"),
        NOT_FOUND
    );
    ok!("cuModuleUnload", destroyed);
    ok!("cuModuleUnload", m);
    let mut flags = 0u32;
    assert_eq!(cu!("cuTexRefGetFlags", &mut flags, t), INVALID_HANDLE);
    assert_eq!(cu!("cuTexRefSetFlags", t, 1), INVALID_HANDLE);
    assert_eq!(
        cu!("cuSurfRefSetArray", surface, surface, 0),
        INVALID_HANDLE
    );
    for garbage in [0, 0x1234u64, u64::MAX, m] {
        assert_eq!(cu!("cuTexRefGetFlags", &mut flags, garbage), INVALID_HANDLE);
    }
}

#[test]
fn a_fetch_from_an_unbound_reference_is_reported() {
    let s = Session::new();
    let m = module(PTX);
    assert_eq!(launch(function(m, "plane"), 1, 8, 0, &[s.alloc(32)]), 0);
    assert_eq!(cu!("cuCtxSynchronize"), Code::ILLEGAL_ADDRESS.0);
}

#[test]
fn a_mipmapped_array_is_fetched_by_level() {
    let s = Session::new();
    let m = module(&PTX.replace(
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}]",
        "tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}], 0f3F800000",
    ));
    let t = texture_reference(m);
    let mut array = 0u64;
    let descriptor = [4, 1, 0, FLOAT | 1 << 32, 0];
    ok!("cuMipmappedArrayCreate", &mut array, &descriptor, 2);
    let mut level = 0u64;
    ok!("cuMipmappedArrayGetLevel", &mut level, array, 1);
    let values = [7f32, 8.0];
    ok!(
        "cuMemcpy2D_v2",
        &copy2d(
            [0, 0, 1, values.as_ptr() as u64, 0, 0, 8],
            [0, 0, 3, 0, 0, level, 0],
            8,
            1
        )
    );
    ok!("cuTexRefSetMipmappedArray", t, array, OVERRIDE);
    // `CU_TRSF_NORMALIZED_COORDINATES`.
    ok!("cuTexRefSetFlags", t, 2);
    // SAFETY: the type is that of the C function.
    unsafe {
        let clamp: unsafe extern "C" fn(u64, f32, f32) -> u32 =
            std::mem::transmute(super::address("cuTexRefSetMipmapLevelClamp"));
        assert_eq!(clamp(t, 0.0, 1.0), 0);
    }
    assert_eq!(
        run(&s, m, "plane"),
        [7.0, 7.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]
    );
    let mut bound = 0u64;
    ok!("cuTexRefGetMipmappedArray", &mut bound, t);
    assert_eq!(bound, array);
    assert_eq!(cu!("cuTexRefGetArray", &mut bound, t), INVALID_VALUE);
}

#[test]
fn freed_memory_of_a_reference_is_not_fetched() {
    let s = Session::new();
    let m = module(PTX);
    let t = texture_reference(m);
    let memory = s.alloc(512);
    ok!("cuTexRefSetFormat", t, FLOAT, 1);
    ok!("cuTexRefSetAddress_v2", 0u64, t, memory, 512);
    ok!("cuMemFree_v2", memory);
    assert_eq!(launch(function(m, "linear"), 1, 8, 0, &[s.alloc(32)]), 0);
    assert_eq!(cu!("cuCtxSynchronize"), Code::ILLEGAL_ADDRESS.0);
}

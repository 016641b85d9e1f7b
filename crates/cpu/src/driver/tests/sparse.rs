//! Sparse arrays and arrays with deferred mapping.

use super::super::Code;
use super::copies::copy2d;
use super::kernels::{self, function, module};
use super::{Session, Word, cu, ok};

const INVALID_VALUE: u32 = Code::INVALID_VALUE.0;
const INVALID_HANDLE: u32 = Code::INVALID_HANDLE.0;
const FLOAT: u64 = 0x20;
const LAYERED: u64 = 1;
const SURFACE: u64 = 2;
const CUBEMAP: u64 = 4;
const SPARSE: u64 = 0x40;
const DEFERRED: u64 = 0x80;
const TILE: u64 = 64 << 10;
/// Extent of a tile of `f32` elements in two dimensions.
const SIDE: u64 = 128;
const POOL: u64 = 2 << 20;

/// Launches with these arguments.
fn launch(f: u64, grid: u32, block: u32, stream: u64, arguments: &[u64]) -> u32 {
    let pointers: Vec<u64> = arguments.iter().map(|a| (&raw const *a) as u64).collect();
    kernels::launch(f, grid, block, stream, &pointers)
}

fn descriptor(size: [u64; 3], flags: u64) -> [u64; 5] {
    [size[0], size[1], size[2], FLOAT | 1 << 32, flags]
}

fn array(size: [u64; 3], flags: u64) -> u64 {
    let mut a = 0u64;
    ok!("cuArray3DCreate_v2", &mut a, &descriptor(size, flags));
    a
}

/// Memory with or without `CU_MEM_CREATE_USAGE_TILE_POOL`.
fn memory(tile_pool: bool) -> u64 {
    let mut handle = 0u64;
    let properties = [1u64, 1, 0, u64::from(tile_pool) << 16];
    ok!("cuMemCreate", &mut handle, POOL, &properties, 0u64);
    handle
}

/// A `CUarrayMapInfo`.
#[derive(Clone, Copy)]
struct Info([u32; 24]);

impl Info {
    fn new(kind: u32, resource: u64, subresource: u32) -> Self {
        let mut w = [0; 24];
        w[0] = kind;
        (w[2], w[3]) = (resource as u32, (resource >> 32) as u32);
        w[4] = subresource;
        w[14] = 2;
        w[20] = 1;
        Info(w)
    }
    /// Tiles of a level and layer: offset and extent in elements.
    fn tiles(
        kind: u32,
        resource: u64,
        place: [u64; 2],
        offset: [u64; 3],
        extent: [u64; 3],
    ) -> Self {
        let mut info = Self::new(kind, resource, 0);
        let all = place.iter().chain(&offset).chain(&extent);
        for (slot, v) in info.0[6..14].iter_mut().zip(all) {
            *slot = *v as u32;
        }
        info
    }
    fn tail(resource: u64, layer: u64, offset: u64, size: u64) -> Self {
        let mut info = Self::new(1, resource, 1);
        info.0[6] = layer as u32;
        (info.0[8], info.0[9]) = (offset as u32, (offset >> 32) as u32);
        (info.0[10], info.0[11]) = (size as u32, (size >> 32) as u32);
        info
    }
    fn mapped(mut self, memory: u64, offset: u64) -> Self {
        self.0[14] = 1;
        (self.0[16], self.0[17]) = (memory as u32, (memory >> 32) as u32);
        (self.0[18], self.0[19]) = (offset as u32, (offset >> 32) as u32);
        self
    }
    fn with(mut self, word: usize, value: u32) -> Self {
        self.0[word] = value;
        self
    }
}

/// The tile at these tile coordinates of an array.
fn tile(a: u64, x: u64, y: u64) -> Info {
    Info::tiles(0, a, [0; 2], [x * SIDE, y * SIDE, 0], [SIDE, SIDE, 1])
}

fn change(infos: &[Info], stream: u64) -> u32 {
    cu!(
        "cuMemMapArrayAsync",
        infos.as_ptr() as u64,
        infos.len(),
        stream
    )
}

/// Copies a rectangle of floats into an array, or out of it.
fn copy(a: u64, [x, y]: [u64; 2], [width, height]: [u64; 2], host: &mut [f32], into: bool) {
    let memory = [0, 0, 1, host.as_mut_ptr() as u64, 0, 0, 4 * width];
    let place = [4 * x, y, 3, 0, 0, a, 0];
    let (from, to) = if into {
        (memory, place)
    } else {
        (place, memory)
    };
    ok!("cuMemcpy2D_v2", &copy2d(from, to, 4 * width, height));
}

fn read(a: u64, x: u64, y: u64) -> f32 {
    let mut v = [-1f32];
    copy(a, [x, y], [1, 1], &mut v, false);
    v[0]
}

fn properties(entry: &str, a: u64) -> (u32, [u64; 6]) {
    let mut w = [0u64; 6];
    (super::call(entry, &[(&mut w).word(), a]), w)
}

const FETCH: &str = "
.version 7.1
.target sm_80
.address_size 64
.visible .entry fetch(.param .u64 t, .param .u64 out, .param .u64 step)
{
    .reg .f32 %f<8>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [out]; ld.param.u32 %r4, [step];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3;
    mul.lo.u32 %r2, %r1, %r4; mov.u32 %r3, 3;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r2, %r3}];
    st.global.f32 [%rd2], %f1;
    ret;
}
";

fn texture(a: u64) -> u64 {
    let mut t = 0u64;
    let mut resource = [0u64; 18];
    resource[1] = a;
    let mut d = [0u32; 26];
    (d[0], d[1], d[2]) = (1, 1, 1);
    ok!("cuTexObjectCreate", &mut t, &resource, &d, 0u64);
    t
}

/// The texels in row 3 of four columns with this distance.
fn fetch(s: &Session, a: u64, step: u64) -> [f32; 4] {
    let out = s.alloc(16);
    let f = function(module(FETCH), "fetch");
    assert_eq!(launch(f, 1, 4, 0, &[texture(a), out, step]), 0);
    let mut got = [0f32; 4];
    ok!("cuMemcpyDtoH_v2", &mut got, out, 16);
    got
}

#[test]
fn tiles_are_mapped_and_unmapped() {
    let s = Session::new();
    let (a, pool) = (array([512, 256, 0], SPARSE), memory(true));
    let stream = s.stream(1);
    // Without memory, elements are zero, and written values are lost.
    let mut row: Vec<f32> = (0..512).map(|x| x as f32 + 1.0).collect();
    copy(a, [0, 3], [512, 1], &mut row, true);
    assert_eq!(fetch(&s, a, SIDE), [0.0; 4]);
    assert_eq!(
        change(
            &[
                tile(a, 0, 0).mapped(pool, 0),
                tile(a, 2, 0).mapped(pool, TILE)
            ],
            stream
        ),
        0
    );
    ok!("cuStreamSynchronize", stream);
    copy(a, [0, 3], [512, 1], &mut row, true);
    assert_eq!(fetch(&s, a, SIDE), [1.0, 0.0, 257.0, 0.0]);
    let mut back = vec![-1f32; 512];
    copy(a, [0, 3], [512, 1], &mut back, false);
    for (x, v) in back.iter().enumerate() {
        let want = if x / 128 % 2 == 0 {
            x as f32 + 1.0
        } else {
            0.0
        };
        assert_eq!(*v, want, "{x}");
    }
    // Two tiles with the same memory, and the memory outlives its handle.
    assert_eq!(change(&[tile(a, 1, 0).mapped(pool, 0)], stream), 0);
    ok!("cuMemRelease", pool);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(fetch(&s, a, SIDE), [1.0, 1.0, 257.0, 0.0]);
    assert_eq!(change(&[tile(a, 0, 0)], stream), 0);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(fetch(&s, a, SIDE), [0.0, 1.0, 257.0, 0.0]);
    ok!("cuArrayDestroy", a);
}

#[test]
fn the_last_tiles_end_with_the_array() {
    let s = Session::new();
    let (a, pool) = (array([1000, 700, 0], SPARSE), memory(true));
    let stream = s.stream(1);
    let at = |offset: [u64; 3], extent: [u64; 3]| Info::tiles(0, a, [0; 2], offset, extent);
    assert_eq!(
        change(&[at([896, 640, 0], [104, 60, 1]).mapped(pool, 0)], stream),
        0
    );
    assert_eq!(
        change(
            &[at([896, 640, 0], [SIDE, SIDE, 1]).mapped(pool, 0)],
            stream
        ),
        INVALID_VALUE
    );
    ok!("cuStreamSynchronize", stream);
    let mut v = [6f32];
    copy(a, [999, 699], [1, 1], &mut v, true);
    assert_eq!((read(a, 999, 699), read(a, 895, 699)), (6.0, 0.0));
    // The whole array has 48 tiles, more than the memory.
    assert_eq!(
        change(&[at([0; 3], [1000, 700, 1]).mapped(pool, 0)], stream),
        INVALID_VALUE
    );
    assert_eq!(change(&[at([0; 3], [1000, 700, 1])], stream), 0);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(a, 999, 699), 0.0);
}

#[test]
fn fetches_tell_whether_texels_have_memory() {
    let s = Session::new();
    let (a, pool) = (array([512, 256, 0], SPARSE), memory(true));
    assert_eq!(change(&[tile(a, 1, 0).mapped(pool, 0)], 0), 0);
    let ptx = FETCH
        .replace("{%f1, %f2, %f3, %f4}, [", "{%f1, %f2, %f3, %f4}|%p1, [")
        .replace(
            "    st.global",
            "    selp.f32 %f1, 0f3F800000, 0f00000000, %p1;\n    st.global",
        )
        .replace(".reg .f32", ".reg .pred %p<2>; .reg .f32");
    let out = s.alloc(16);
    let f = function(module(&ptx), "fetch");
    assert_eq!(launch(f, 1, 4, 0, &[texture(a), out, SIDE]), 0);
    let mut got = [9f32; 4];
    ok!("cuMemcpyDtoH_v2", &mut got, out, 16);
    assert_eq!(got, [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn mappings_change_in_stream_order() {
    let s = Session::new();
    let (a, pool) = (array([256, 128, 0], SPARSE), memory(true));
    let stream = s.stream(1);
    super::busy(stream, 50);
    assert_eq!(change(&[tile(a, 0, 0).mapped(pool, 0)], stream), 0);
    let mut early = [5f32];
    copy(a, [0, 0], [1, 1], &mut early, true);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(a, 0, 0), 0.0);
    copy(a, [0, 0], [1, 1], &mut early, true);
    assert_eq!(read(a, 0, 0), 5.0);
}

#[test]
fn levels_and_layers_have_tiles_of_their_own() {
    let s = Session::new();
    let pool = memory(true);
    let stream = s.stream(1);
    let mut m = 0u64;
    ok!(
        "cuMipmappedArrayCreate",
        &mut m,
        &descriptor([256, 256, 2], SPARSE | LAYERED),
        9
    );
    let (status, p) = properties("cuMipmappedArrayGetSparseProperties", m);
    assert_eq!(
        (status, p[0], p[1], p[2], p[3] as u32),
        (0, SIDE | SIDE << 32, 1 | 2 << 32, TILE, 0)
    );
    let level = |n: u32| {
        let mut l = 0u64;
        ok!("cuMipmappedArrayGetLevel", &mut l, m, n);
        l
    };
    let (top, second, third) = (level(0), level(1), level(2));
    let whole = [SIDE, SIDE, 1];
    let infos = [
        Info::tiles(1, m, [0, 1], [SIDE, SIDE, 0], whole).mapped(pool, 0),
        Info::tiles(1, m, [1, 0], [0; 3], whole).mapped(pool, TILE),
        Info::tail(m, 1, 0, TILE).mapped(pool, 2 * TILE),
    ];
    assert_eq!(change(&infos, stream), 0);
    ok!("cuStreamSynchronize", stream);
    // `CUDA_MEMCPY3D` of one float: x, y, z.
    let put = |a: u64, z: u64, x: u64, y: u64, v: f32| {
        let value = [v];
        let mut w = [0u64; 25];
        (w[4], w[5], w[9], w[10]) = (1, value.as_ptr() as u64, 4, 1);
        (w[11], w[12], w[13], w[15], w[18]) = (4 * x, y, z, 3, a);
        (w[22], w[23], w[24]) = (4, 1, 1);
        ok!("cuMemcpy3D_v2", &w);
    };
    let get = |a: u64, z: u64, x: u64, y: u64| {
        let mut value = [-1f32];
        let mut w = [0u64; 25];
        (w[0], w[1], w[2], w[4], w[7]) = (4 * x, y, z, 3, a);
        (w[15], w[16], w[20], w[21]) = (1, value.as_mut_ptr() as u64, 4, 1);
        (w[22], w[23], w[24]) = (4, 1, 1);
        ok!("cuMemcpy3D_v2", &w);
        value[0]
    };
    for (n, (a, z, x, y, mapped)) in [
        (top, 1, 200, 130, true),
        (top, 0, 200, 130, false),
        (top, 1, 100, 130, false),
        (second, 0, 127, 127, true),
        (second, 1, 127, 127, false),
        (third, 1, 63, 5, true),
        (third, 0, 63, 5, false),
    ]
    .into_iter()
    .enumerate()
    {
        let v = n as f32 + 1.0;
        put(a, z, x, y, v);
        assert_eq!(get(a, z, x, y), if mapped { v } else { 0.0 }, "{n}");
    }
    // Levels are mapped by their array, and the mip tail as such.
    assert_eq!(
        change(&[tile(top, 0, 0).mapped(pool, 0)], stream),
        INVALID_VALUE
    );
    for bad in [
        Info::tiles(1, m, [2, 0], [0; 3], whole),
        Info::tiles(1, m, [9, 0], [0; 3], whole),
        Info::tiles(1, m, [0, 2], [0; 3], whole),
        Info::tail(m, 0, TILE, TILE),
        Info::tail(m, 0, 1, TILE),
        Info::tail(m, 0, 0, 1),
        Info::tail(m, 0, 0, 0),
        Info::tail(m, 0, 0, 2 * TILE),
        Info::tail(m, 2, 0, TILE),
        Info::tail(m, 0, u64::MAX, TILE),
    ] {
        assert_eq!(change(&[bad.mapped(pool, 0)], stream), INVALID_VALUE);
    }
    assert_eq!(
        properties("cuArrayGetSparseProperties", top).0,
        INVALID_VALUE
    );
}

#[test]
fn invalid_mappings_are_refused() {
    let s = Session::new();
    let (a, pool, plain) = (array([512, 256, 0], SPARSE), memory(true), memory(false));
    let stream = s.stream(1);
    let good = tile(a, 0, 0).mapped(pool, 0);
    let at = |offset: [u64; 3], extent: [u64; 3]| {
        Info::tiles(0, a, [0; 2], offset, extent).mapped(pool, 0)
    };
    for bad in [
        tile(a, 0, 0).mapped(plain, 0),
        tile(a, 0, 0).mapped(0, 0),
        tile(a, 0, 0).mapped(0x1234, 0),
        tile(a, 0, 0).mapped(pool, 1),
        tile(a, 0, 0).mapped(pool, 4096),
        tile(a, 0, 0).mapped(pool, POOL),
        tile(a, 0, 0).mapped(pool, u64::MAX - TILE + 1),
        at([1, 0, 0], [SIDE, SIDE, 1]),
        at([0; 3], [5, SIDE, 1]),
        at([0; 3], [0, SIDE, 1]),
        at([0; 3], [SIDE, SIDE, 0]),
        at([0; 3], [SIDE, SIDE, 2]),
        at([0, 0, 1], [SIDE, SIDE, 1]),
        at([512, 0, 0], [SIDE, SIDE, 1]),
        at([0; 3], [1024, SIDE, 1]),
        at([u64::from(u32::MAX) - 127, 0, 0], [SIDE, SIDE, 1]),
        good.with(6, 1),
        good.with(7, 1),
        good.with(0, 1),
        good.with(0, 2),
        good.with(4, 2),
        good.with(14, 0),
        good.with(14, 3),
        good.with(14, 2),
        good.with(15, 1),
        good.with(20, 0),
        good.with(20, 2),
        good.with(20, 3),
        good.with(21, 1),
        good.with(22, 1),
        good.with(23, 1),
    ] {
        let status = change(&[bad], stream);
        assert!(matches!(status, INVALID_VALUE | INVALID_HANDLE), "{status}");
    }
    for handle in [0, 0x1234, u64::MAX] {
        assert_eq!(
            change(&[tile(handle, 0, 0).mapped(pool, 0)], stream),
            INVALID_HANDLE
        );
    }
    let ordinary = array([512, 256, 0], 0);
    assert_eq!(
        change(&[tile(ordinary, 0, 0).mapped(pool, 0)], stream),
        INVALID_VALUE
    );
    assert_eq!(change(&[], stream), INVALID_VALUE);
    assert_eq!(cu!("cuMemMapArrayAsync", 0u64, 1, stream), INVALID_VALUE);
    assert_eq!(cu!("cuMemMapArrayAsync", 16u64, 1, stream), INVALID_VALUE);
    // Nothing of a refused call is done.
    assert_eq!(
        change(&[good, tile(a, 1, 0).mapped(pool, 1)], stream),
        INVALID_VALUE
    );
    ok!("cuStreamSynchronize", stream);
    let mut v = [3f32];
    copy(a, [0, 0], [1, 1], &mut v, true);
    assert_eq!(read(a, 0, 0), 0.0);
    // The memory is for arrays only.
    let mut address = 0u64;
    ok!("cuMemAddressReserve", &mut address, POOL, 0u64, 0u64, 0u64);
    assert_eq!(
        cu!("cuMemMap", address, POOL, 0u64, pool, 0u64),
        INVALID_VALUE
    );
    ok!("cuMemAddressFree", address, POOL);
}

#[test]
fn properties_and_flags_are_checked() {
    let _s = Session::new();
    let a = array([512, 256, 0], SPARSE);
    let (status, p) = properties("cuArrayGetSparseProperties", a);
    assert_eq!(
        (status, p[0], p[1], p[2], p[3] as u32),
        (0, SIDE | SIDE << 32, 1, 0, 0)
    );
    let small = array([64, 64, 0], SPARSE);
    let (_, p) = properties("cuArrayGetSparseProperties", small);
    assert_eq!((p[1] >> 32, p[2], p[3] as u32), (0, TILE, 1));
    let ordinary = array([64, 64, 0], 0);
    let mut requirements = [0u64; 4];
    for (entry, a, status) in [
        ("cuArrayGetSparseProperties", ordinary, INVALID_VALUE),
        ("cuArrayGetSparseProperties", 0x1234, INVALID_HANDLE),
        ("cuMipmappedArrayGetSparseProperties", a, INVALID_HANDLE),
        ("cuArrayGetMemoryRequirements", ordinary, INVALID_VALUE),
        ("cuArrayGetMemoryRequirements", a, INVALID_VALUE),
        ("cuMipmappedArrayGetMemoryRequirements", a, INVALID_HANDLE),
    ] {
        assert_eq!(
            super::call(entry, &[(&mut requirements).word(), a, 0]),
            status,
            "{entry}"
        );
        assert_eq!(super::call(entry, &[0, a, 0]), INVALID_VALUE);
    }
    let mut none = 0u64;
    for (size, flags) in [
        ([512, 0, 0], SPARSE),
        ([512, 0, 3], SPARSE | LAYERED),
        ([512, 512, 0], SPARSE | SURFACE),
        ([512, 512, 0], SPARSE | DEFERRED),
        ([512, 512, 6], SPARSE | CUBEMAP),
    ] {
        let status = cu!("cuArray3DCreate_v2", &mut none, &descriptor(size, flags));
        assert_eq!(status, INVALID_VALUE, "{size:?} {flags}");
    }
    // Sparse arrays have no surfaces.
    let mut resource = [0u64; 18];
    resource[1] = a;
    assert_eq!(
        cu!("cuSurfObjectCreate", &mut none, &resource),
        INVALID_VALUE
    );
}

#[test]
fn deferred_arrays_are_mapped_as_a_whole() {
    let s = Session::new();
    let (a, pool) = (array([100, 100, 0], DEFERRED | SURFACE), memory(true));
    let mut requirements = [0u64; 4];
    ok!("cuArrayGetMemoryRequirements", &mut requirements, a, 0);
    assert_eq!(requirements[..2], [TILE, TILE]);
    let stream = s.stream(1);
    let info = Info::new(0, a, 9);
    assert_eq!(change(&[info.mapped(pool, POOL)], stream), INVALID_VALUE);
    assert_eq!(change(&[info.mapped(pool, 1)], stream), INVALID_VALUE);
    assert_eq!(change(&[info.mapped(pool, TILE)], stream), 0);
    ok!("cuStreamSynchronize", stream);
    let mut values: Vec<f32> = (0..10_000).map(|k| k as f32).collect();
    copy(a, [0, 0], [100, 100], &mut values, true);
    assert_eq!(read(a, 99, 99), 9999.0);
    assert_eq!(fetch(&s, a, 10), [300.0, 310.0, 320.0, 330.0]);
    // The memory keeps its contents.
    assert_eq!(change(&[info], stream), 0);
    assert_eq!(change(&[info.mapped(pool, 2 * TILE)], stream), 0);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(a, 99, 99), 0.0);
    assert_eq!(change(&[info.mapped(pool, TILE)], stream), 0);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(a, 99, 99), 9999.0);
}

#[test]
fn an_unmapped_deferred_array_is_not_accessed() {
    let s = Session::new();
    let a = array([64, 64, 0], DEFERRED);
    let out = s.alloc(16);
    let t = texture(a);
    assert_eq!(
        launch(function(module(FETCH), "fetch"), 1, 4, 0, &[t, out, 1]),
        0
    );
    assert_eq!(cu!("cuCtxSynchronize"), Code::LAUNCH_FAILED.0);
    drop(s);
    let _s = Session::new();
    let a = array([64, 64, 0], DEFERRED);
    let values = [1f32];
    let place = copy2d(
        [0, 0, 1, values.as_ptr() as u64, 0, 0, 4],
        [0, 0, 3, 0, 0, a, 0],
        4,
        1,
    );
    let status = cu!("cuMemcpy2D_v2", &place);
    let after = cu!("cuCtxSynchronize");
    assert!(
        [status, after].contains(&Code::LAUNCH_FAILED.0),
        "{status} {after}"
    );
}

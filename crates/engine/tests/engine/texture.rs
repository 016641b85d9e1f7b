//! Texture and surface instructions in kernels: operands, forms, faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cupyrite_engine::FaultKind;
use cupyrite_engine::texture::{
    AddressMode, ChannelKind, Format, Resource, Storage, Surface, SurfaceDescriptor, Texture,
    TextureDescriptor, objects,
};

use crate::harness::{Buffer, Launch, module};

/// A new handle: a multiple of 16, like those of the driver.
fn new_handle() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x7700_0000_0001);
    NEXT.fetch_add(1, Ordering::Relaxed) << 4
}

/// An array of `width` by `height` whose texel (x, y) is 100 y + x, as `f32` or integers.
fn array(kind: ChannelKind, width: u64, height: u64) -> Arc<Storage> {
    let s = Storage::new(Format::plain(kind, 32, 1), [width, height, 0], 0, 1).unwrap();
    let level = s.level(0).unwrap();
    for y in 0..height.max(1) {
        for x in 0..width {
            let v = (100 * y + x) as u32;
            let v = if kind == ChannelKind::Float {
                (v as f32).to_bits()
            } else {
                v
            };
            // SAFETY: the element lies in the level, and no other thread accesses it.
            unsafe { *((level.base + y * level.row_pitch + 4 * x) as *mut u32) = v };
        }
    }
    s
}

fn clamped() -> TextureDescriptor {
    TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        ..TextureDescriptor::default()
    }
}

fn texture(storage: Arc<Storage>) -> u64 {
    let handle = new_handle();
    let t = Texture::new(Resource::Array { storage, level: 0 }, clamped(), None).unwrap();
    objects::insert_texture(handle, Arc::new(t));
    handle
}

fn surface(storage: Arc<Storage>) -> u64 {
    let handle = new_handle();
    let s = Surface::new(SurfaceDescriptor { storage, level: 0 }).unwrap();
    objects::insert_surface(handle, Arc::new(s));
    handle
}

/// A kernel with the lane in `%r1` and, as a float, in `%f1`, the first parameters in `%rd1` and `%rd2`, and the address of
/// the lane's output in `%rd3`. The output buffer is the last parameter.
fn kernel(params: usize, body: &str) -> String {
    let out = params - 1;
    module(
        "",
        params,
        &format!(
            "
    .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .f32 %f<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p{}]; ld.param.u64 %rd4, [p{out}];
    mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd3, %rd4, %rd5;
    {body}
    ret;",
            1.min(out)
        ),
    )
}

fn run(handles: &[u64], body: &str) -> Vec<u32> {
    let out = Buffer::zeros(32);
    let mut args = handles.to_vec();
    args.push(out.addr);
    Launch::new(1, 32)
        .run(&kernel(args.len(), body), &args)
        .unwrap_or_else(|f| panic!("{f}"));
    out.get()
}

fn floats(v: &[u32]) -> Vec<f32> {
    v.iter().map(|v| f32::from_bits(*v)).collect()
}

fn fails(handles: &[u64], body: &str) -> (FaultKind, String) {
    let out = Buffer::zeros(32);
    let mut args = handles.to_vec();
    args.push(out.addr);
    let f = Launch::new(1, 32)
        .run(&kernel(args.len(), body), &args)
        .unwrap_err();
    (f.kind, f.report)
}

#[test]
fn fetches() {
    let t = texture(array(ChannelKind::Float, 40, 8));
    let got = run(
        &[t],
        "mov.f32 %f2, 0f40200000; // 2.5
         tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
         st.global.f32 [%rd3], %f3;",
    );
    let want: Vec<f32> = (0..32).map(|l| 200.0 + l as f32).collect();
    assert_eq!(floats(&got), want);
    // Coordinates in a vector register, a sink, a predicate, a destination that is a source, a guard.
    let got = run(
        &[t],
        ".reg .v2 .f32 %c; mov.f32 %c.x, %f1; mov.f32 %c.y, 0f3FC00000;
         setp.lt.u32 %p2, %r1, 20; mov.f32 %f1, 0fBF800000; setp.ne.u32 %p1, %r1, %r1;
         @%p2 tex.level.2d.v4.f32.f32 {%f1, _, _, _}|%p1, [%rd1, %c], 0f00000000;
         @!%p1 mov.f32 %f1, 0fC0000000;
         st.global.f32 [%rd3], %f1;",
    );
    for (l, v) in floats(&got).into_iter().enumerate() {
        assert_eq!(v, if l < 20 { 100.0 + l as f32 } else { -2.0 });
    }
    // Offsets, gradients, texel numbers.
    let got = run(
        &[t],
        "mov.f32 %f2, 0f00000000; mov.u32 %r2, 3;
         tex.grad.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}], {%f2, %f2}, {%f2, %f2}, {-2, 5};
         tex.2d.v4.f32.s32 {%f7, %f8, %f9, %f10}, [%rd1, {%r1, %r2}];
         add.f32 %f3, %f3, %f7;
         st.global.f32 [%rd3], %f3;",
    );
    for (l, v) in floats(&got).into_iter().enumerate() {
        let x = l.saturating_sub(2);
        assert_eq!(v, 500.0 + x as f32 + 300.0 + l as f32);
    }
    let got = run(
        &[t],
        "mov.f32 %f2, 0f3FC00000;
         tld4.r.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
         st.global.f32 [%rd3], %f6;",
    );
    assert_eq!(floats(&got)[5], 104.0);
}

#[test]
fn halves() {
    let t = texture(array(ChannelKind::Float, 40, 0));
    let got = run(
        &[t],
        "tex.1d.v4.f16.f32 {%h1, %h2, %h3, %h4}, [%rd1, {%f1}];
         cvt.u32.u16 %r2, %h1;
         tex.1d.v2.f16x2.f32 {%r3, %r4}, [%rd1, {%f1}];
         sub.u32 %r2, %r2, %r3;
         add.u32 %r2, %r2, %r4;
         shl.b32 %r3, %r3, 1; add.u32 %r2, %r2, %r3;
         st.global.u32 [%rd3], %r2;",
    );
    // The bits of 3.0 in half precision, twice; the differences cancel.
    assert_eq!(got[3], 2 * 0x4200);
}

#[test]
fn lanes_can_use_different_textures() {
    let a = texture(array(ChannelKind::Float, 40, 0));
    let b = texture(array(ChannelKind::Float, 10, 0));
    let got = run(
        &[a, b],
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %rd6, %rd1, %rd2, %p1;
         tex.1d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd6, {%f1}];
         st.global.f32 [%rd3], %f3;",
    );
    for (l, v) in floats(&got).into_iter().enumerate() {
        assert_eq!(v, if l % 2 == 0 { l } else { l.min(9) } as f32);
    }
}

#[test]
fn queries() {
    let s = array(ChannelKind::Float, 40, 8);
    let (t, u) = (texture(s.clone()), surface(s));
    let got = run(
        &[t, u],
        "txq.width.b32 %r2, [%rd1]; txq.height.b32 %r3, [%rd1]; txq.addr_mode_1.b32 %r4, [%rd1];
         txq.channel_data_type.b32 %r5, [%rd1]; suq.width.b32 %r6, [%rd2];
         mov.u32 %r8, 1; txq.level.width.b32 %r7, [%rd1], %r8;
         mad.lo.u32 %r2, %r2, 100, %r3; mad.lo.u32 %r2, %r2, 10, %r4; sub.u32 %r5, %r5, 4318;
         add.u32 %r2, %r2, %r5; mad.lo.u32 %r2, %r6, 1000000, %r2; add.u32 %r2, %r2, %r7;
         st.global.u32 [%rd3], %r2;",
    );
    // Width, height, clamp to edge (3); CL_FLOAT is 0x10DE; there is no level 1.
    assert_eq!(got[7], 40_000_000 + 40_083);
}

#[test]
fn surfaces() {
    let s = array(ChannelKind::Unsigned, 64, 2);
    let u = surface(s.clone());
    // Byte addresses; outside: nearest, zero, nothing.
    let got = run(
        &[u],
        "shl.b32 %r2, %r1, 3; mov.u32 %r3, 1;
         suld.b.2d.v2.b32.trap {%r4, %r5}, [%rd1, {%r2, %r3}];
         add.u32 %r4, %r4, %r5; st.global.u32 [%rd3], %r4;",
    );
    assert_eq!(got[3], 106 + 107);
    let got = run(
        &[u],
        "mad.lo.u32 %r2, %r1, 16, 4294967232; mov.u32 %r3, 7; // from -64 on
         suld.b.2d.b32.clamp {%r4}, [%rd1, {%r2, %r3}];
         suld.b.2d.b16.zero {%h1}, [%rd1, {%r2, %r3}]; cvt.u32.u16 %r5, %h1;
         mad.lo.u32 %r4, %r5, 1000, %r4; st.global.u32 [%rd3], %r4;",
    );
    assert_eq!((got[0], got[4], got[5], got[31]), (100, 100, 104, 163));
    run(
        &[u],
        "shl.b32 %r2, %r1, 2; mov.u32 %r3, 0; add.u32 %r4, %r1, 500;
         sust.b.2d.b32.zero [%rd1, {%r2, %r3}], {%r4};
         sub.u32 %r2, %r2, 4000; sust.b.2d.b32.zero [%rd1, {%r2, %r3}], {%r4};
         mov.u32 %r5, 160; sured.b.add.2d.u32.trap [%rd1, {%r5, %r3}], %r1;
         sured.p.max.2d.b32.trap [%rd1, {41, %r3}], %r4;",
    );
    let row = s.level(0).unwrap().base as *const u32;
    // SAFETY: the row has 64 elements, and no kernel is running.
    let row = unsafe { std::slice::from_raw_parts(row, 64) };
    assert_eq!(row[..32], (500..532).collect::<Vec<u32>>());
    assert_eq!((row[40], row[41], row[42]), (40 + 496, 531, 42));
}

#[test]
fn invalid_accesses_are_faults() {
    let s = array(ChannelKind::Float, 16, 4);
    let (t, u) = (texture(s.clone()), surface(s));
    let fetch = "mov.f32 %f2, %f1; tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];";
    for (handle, text) in [
        (0, "the texture handle is zero"),
        (new_handle(), "is not the handle of a texture object"),
        (u, "is not the handle of a texture object"),
    ] {
        let (kind, report) = fails(&[handle], fetch);
        assert_eq!(kind, FaultKind::IllegalAddress);
        assert!(report.contains(text), "{report}");
        assert!(report.contains("`tex.2d.v4.f32.f32`"), "{report}");
    }
    let (_, report) = fails(
        &[t],
        "tex.cube.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f1, %f1, %f1}];",
    );
    assert!(report.contains("accesses a cubemap"), "{report}");
    let removed = texture(array(ChannelKind::Float, 4, 0));
    assert!(objects::remove_texture(removed).is_some() && objects::remove_surface(u).is_some());
    assert!(objects::remove_texture(removed).is_none());
    assert_eq!(fails(&[removed], fetch).0, FaultKind::IllegalAddress);

    let u = surface(array(ChannelKind::Unsigned, 16, 4));
    let load =
        |x: &str| format!("{x} mov.u32 %r3, 1; suld.b.2d.b32.trap {{%r4}}, [%rd1, {{%r2, %r3}}];");
    let (kind, report) = fails(&[u], &load("shl.b32 %r2, %r1, 2;"));
    assert_eq!(kind, FaultKind::IllegalAddress);
    assert!(
        report.contains("(64, 1, 0)") || report.contains("(64, 1)"),
        "{report}"
    );
    assert!(report.contains("thread (16, 0, 0)"), "{report}");
    let (kind, _) = fails(&[u], &load("add.u32 %r2, %r1, 1;"));
    assert_eq!(kind, FaultKind::MisalignedAddress);
}

#[test]
fn the_memory_of_a_texture_is_checked() {
    let memory = Buffer::new(&(0..64).map(|v| (v as f32).to_bits()).collect::<Vec<_>>());
    let linear = |bytes| {
        let handle = new_handle();
        let resource = Resource::Linear {
            address: memory.addr,
            bytes,
            format: Format::plain(ChannelKind::Float, 32, 1),
        };
        let t = Texture::new(resource, clamped(), None).unwrap();
        objects::insert_texture(handle, Arc::new(t));
        handle
    };
    let fetch = "shl.b32 %r2, %r1, 1; tex.1d.v4.f32.s32 {%f3, %f4, %f5, %f6}, [%rd1, {%r2}];
                 st.global.f32 [%rd3], %f3;";
    let got = floats(&run(&[linear(4 * 40)], fetch));
    for (l, v) in got.into_iter().enumerate() {
        assert_eq!(v, if l < 20 { 2.0 * l as f32 } else { 0.0 });
    }
    let (kind, report) = fails(&[linear(4 * 65)], fetch);
    assert_eq!(kind, FaultKind::IllegalAddress);
    assert!(report.contains("256-byte allocation"), "{report}");
    let handle = linear(4 * 64);
    drop(memory);
    assert_eq!(fails(&[handle], fetch).0, FaultKind::IllegalAddress);
}

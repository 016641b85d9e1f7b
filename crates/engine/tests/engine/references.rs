//! Texture, surface and sampler references.

use std::sync::Arc;

use cupyrite_engine::texture::objects::Object;
use cupyrite_engine::texture::{
    AddressMode, BoundReference, ChannelKind, Filter, Format, ReferenceKind, Resource, Storage,
    Surface, SurfaceDescriptor, Texture, TextureDescriptor,
};
use cupyrite_engine::{Fault, FaultKind, Image, LaunchConfig, launch};

use crate::harness::Buffer;
use cupyrite_engine::memory::AddressSpace;

const HEAD: &str = ".version 4.0\n.target sm_20\n.address_size 64\n";

/// An array of four elements with these bits.
fn storage(kind: ChannelKind, values: [u32; 4]) -> Arc<Storage> {
    let s = Storage::new(Format::plain(kind, 32, 1), [4, 1, 0], 0, 1).unwrap();
    let base = s.level(0).unwrap().base;
    for (k, v) in values.iter().enumerate() {
        // SAFETY: the element lies in the level, and no other thread accesses it.
        unsafe { *((base + 4 * k as u64) as *mut u32) = *v };
    }
    s
}

fn texture(descriptor: TextureDescriptor) -> Object {
    let storage = storage(
        ChannelKind::Float,
        [10.0f32, 20.0, 30.0, 40.0].map(f32::to_bits),
    );
    let resource = Resource::Array { storage, level: 0 };
    Object::Texture(Arc::new(Texture::new(resource, descriptor, None).unwrap()))
}

fn clamped() -> TextureDescriptor {
    TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        ..TextureDescriptor::default()
    }
}

/// Runs the first kernel of a module with its references bound to these objects, on eight threads, and returns eight words.
fn run(ptx: &str, objects: &[(&str, Object)]) -> Result<Vec<u32>, Fault> {
    let image = Image::load(ptx, AddressSpace::global()).unwrap_or_else(|e| panic!("{e}"));
    let kernel = &image.kernels()[0];
    assert_eq!(kernel.unsupported(), None);
    let out = Buffer::zeros(8);
    let references: Vec<BoundReference> = image
        .references()
        .iter()
        .map(|reference| BoundReference {
            reference: reference.clone(),
            object: objects
                .iter()
                .find(|(name, _)| *name == &*reference.name)
                .map(|(_, object)| object.clone()),
        })
        .collect();
    let params = out.addr.to_le_bytes();
    let config = LaunchConfig {
        references: &references,
        ..LaunchConfig::new([1; 3], [8, 1, 1], &params)
    };
    launch(kernel, &config)?;
    Ok(out.get())
}

/// A kernel with the thread in `%r1` and as a float in `%f1`, and the address of its output in `%rd1`.
fn kernel(variables: &str, body: &str) -> String {
    format!(
        "{HEAD}{variables}
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p<4>; .reg .f32 %f<16>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    {body}
    ret;
}}
"
    )
}

fn floats(words: Vec<u32>) -> Vec<f32> {
    words.into_iter().map(f32::from_bits).collect()
}

const FETCH: &str = "mov.f32 %f2, 0f00000000; add.f32 %f1, %f1, 0fBF000000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [t, {%f1, %f2}]; st.global.f32 [%rd1], %f3;";

#[test]
fn texture_references_fetch_what_they_are_bound_to() {
    let want = [10.0, 10.0, 20.0, 30.0, 40.0, 40.0, 40.0, 40.0];
    // `.tex` is the form of PTX 1.x.
    for variable in [
        ".global .texref t;",
        ".visible .global .texref t;",
        ".tex .u64 t;",
    ] {
        let got = run(&kernel(variable, FETCH), &[("t", texture(clamped()))]);
        assert_eq!(floats(got.unwrap()), want, "{variable}");
    }
    let wrapped = TextureDescriptor {
        address: [AddressMode::Border; 3],
        border: [7.0; 4],
        ..clamped()
    };
    let got = run(
        &kernel(".global .texref t;", FETCH),
        &[("t", texture(wrapped))],
    );
    assert_eq!(
        floats(got.unwrap()),
        [7.0, 10.0, 20.0, 30.0, 40.0, 7.0, 7.0, 7.0]
    );
}

#[test]
fn the_value_of_a_reference_is_its_handle() {
    let body = "mov.u64 %rd3, t; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @!%p1 mov.u64 %rd3, s;
        mov.f32 %f2, 0f00000000; tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd3, {%f1, %f2}]; st.global.f32 [%rd1], %f3;";
    let other = {
        let storage = storage(
            ChannelKind::Float,
            [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits),
        );
        let resource = Resource::Array { storage, level: 0 };
        Object::Texture(Arc::new(Texture::new(resource, clamped(), None).unwrap()))
    };
    let got = run(
        &kernel(".global .texref t;\n.global .texref s;", body),
        &[("t", texture(clamped())), ("s", other)],
    );
    assert_eq!(
        floats(got.unwrap()),
        [10.0, 2.0, 30.0, 4.0, 40.0, 4.0, 40.0, 4.0]
    );
}

#[test]
fn handles_have_types() {
    let body = "mov.u64 %rd3, t; mov.u64 %rd4, s; mov.u32 %r2, 0;
        istypep.texref %p1, %rd3; @%p1 or.b32 %r2, %r2, 1; istypep.surfref %p1, %rd3; @%p1 or.b32 %r2, %r2, 2;
        istypep.texref %p1, %rd4; @%p1 or.b32 %r2, %r2, 4; istypep.surfref %p1, %rd4; @%p1 or.b32 %r2, %r2, 8;
        st.global.u32 [%rd1], %r2;";
    let ptx = kernel(".global .texref t;\n.global .surfref s;", body);
    assert_eq!(run(&ptx, &[]).unwrap(), [9; 8]);
}

#[test]
fn references_are_queried() {
    let body = "txq.width.b32 %r2, [t]; txq.height.b32 %r3, [t]; txq.filter_mode.b32 %r4, [t]; txq.addr_mode_0.b32 %r5, [t];
        suq.width.b32 %r6, [s]; mad.lo.u32 %r2, %r2, 10, %r3; mad.lo.u32 %r2, %r2, 10, %r4; mad.lo.u32 %r2, %r2, 10, %r5;
        mad.lo.u32 %r2, %r2, 10, %r6; st.global.u32 [%rd1], %r2;";
    let linear = TextureDescriptor {
        filter: Filter::Linear,
        ..clamped()
    };
    let got = run(
        &kernel(".global .texref t;\n.global .surfref s;", body),
        &[("t", texture(linear)), ("s", surface().0)],
    );
    assert_eq!(got.unwrap(), [41134; 8]);
}

fn surface() -> (Object, Arc<Storage>) {
    let storage = storage(ChannelKind::Unsigned, [100, 200, 300, 400]);
    let surface = Surface::new(SurfaceDescriptor {
        storage: storage.clone(),
        level: 0,
    });
    (Object::Surface(Arc::new(surface.unwrap())), storage)
}

#[test]
fn surface_references_load_and_store() {
    let body = "shl.b32 %r2, %r1, 2; mov.u32 %r3, 0;
        suld.b.2d.b32.zero {%r4}, [s, {%r2, %r3}]; add.u32 %r5, %r4, 1; sust.b.2d.b32.zero [s, {%r2, %r3}], {%r5};
        suld.b.2d.b32.zero {%r6}, [s, {%r2, %r3}]; st.global.u32 [%rd1], %r6;";
    let (object, _storage) = surface();
    let got = run(&kernel(".global .surfref s;", body), &[("s", object)]);
    assert_eq!(got.unwrap(), [101, 201, 301, 401, 0, 0, 0, 0]);
}

#[test]
fn samplers_are_separate_in_independent_mode() {
    let independent = |sampler: &str| {
        kernel(
            &format!(".global .texref t;\n.global .samplerref smp{sampler};"),
            "mov.f32 %f2, 0f00000000; add.f32 %f1, %f1, 0fBF000000;
             tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [t, smp, {%f1, %f2}]; st.global.f32 [%rd1], %f3;",
        )
        .replace("sm_20", "sm_20, texmode_independent")
    };
    let bordered = TextureDescriptor {
        border: [7.0; 4],
        ..clamped()
    };
    let fetched = |ptx: &str| floats(run(ptx, &[("t", texture(bordered))]).unwrap());
    assert_eq!(
        fetched(&independent("")),
        [10.0, 10.0, 20.0, 30.0, 40.0, 40.0, 40.0, 40.0]
    );
    assert_eq!(
        fetched(&independent(
            " = { addr_mode_0 = clamp_to_border, filter_mode = nearest }"
        )),
        [7.0, 10.0, 20.0, 30.0, 40.0, 7.0, 7.0, 7.0]
    );
    let between = independent(" = { filter_mode = linear }").replace("0fBF000000", "0fBE800000");
    assert_eq!(fetched(&between)[..4], [10.0, 12.5, 22.5, 32.5]);
    // The attributes of the sampler.
    let query = kernel(
        ".global .samplerref smp = { addr_mode_1 = mirror, filter_mode = linear };",
        "txq.addr_mode_1.b32 %r2, [smp]; txq.filter_mode.b32 %r3, [smp]; mad.lo.u32 %r2, %r2, 10, %r3; st.global.u32 [%rd1], %r2;",
    );
    assert_eq!(run(&query, &[]).unwrap(), [11; 8]);
}

#[test]
fn invalid_references_are_reported() {
    let fails = |ptx: &str, objects: &[(&str, Object)]| {
        let fault = run(ptx, objects).unwrap_err();
        assert_eq!(fault.kind, FaultKind::IllegalAddress);
        fault.report
    };
    let fetch = kernel(".global .texref t;\n.global .surfref s;", FETCH);
    let unbound = fails(&fetch, &[]);
    assert!(
        unbound.contains("texture reference `t` was bound to no memory"),
        "{unbound}"
    );
    let surface_as_texture = fetch.replace("[t, {", "[s, {");
    let report = fails(&surface_as_texture, &[("s", surface().0)]);
    assert!(report.contains("not a texture reference"), "{report}");
    let shape = fails(
        &fetch
            .replace("tex.2d", "tex.3d")
            .replace("{%f1, %f2}]", "{%f1, %f2, %f2, %f2}]"),
        &[("t", texture(clamped()))],
    );
    assert!(shape.contains("another shape"), "{shape}");
    // The address of any other variable is no handle.
    let image = Image::load(&kernel(".global .u64 t;", FETCH), AddressSpace::global()).unwrap();
    let reason = image.kernels()[0].unsupported().unwrap();
    assert!(
        reason.contains("not a texture, sampler or surface reference"),
        "{reason}"
    );
}

#[test]
fn an_image_lists_its_references() {
    let image = Image::load(
        &format!(
            "{HEAD}.global .texref a;\n.global .u32 b;\n.global .surfref c;\n.tex .u64 d;\n.global .samplerref e;\n"
        ),
        AddressSpace::global(),
    )
    .unwrap();
    let kinds: Vec<_> = image
        .references()
        .iter()
        .map(|r| (&*r.name, r.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("a", ReferenceKind::Texture),
            ("c", ReferenceKind::Surface),
            ("d", ReferenceKind::Texture),
            ("e", ReferenceKind::Sampler(Default::default())),
        ]
    );
}

//! Loads that begin in a variable and end in its padding.

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::{FaultKind, Image};

use crate::harness::{Buffer, Launch, module};

/// Variables of 12 bytes, with an alignment of 16, 8 and 4.
const HEAD: &str = "
.const .align 16 .b8 c[12] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
.global .align 16 .b8 g[12] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
.global .align 8 .b8 h[12] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
.global .align 4 .b8 tight[12] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
";

/// The last four bytes of the variable, which `load` reads into `%r5` to `%r8` or `%rd5`.
fn run(load: &str) -> Result<u32, (FaultKind, String)> {
    let body = format!(
        "
    .reg .b32 %r<16>; .reg .b64 %rd<16>;
    .global .align 8 .b8 inner[12] = {{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}};
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 0;
    mov.u64 %rd3, g; cvta.global.u64 %rd4, %rd3; add.s64 %rd4, %rd4, %rd2;
    mov.u64 %rd6, c; cvta.const.u64 %rd6, %rd6; add.s64 %rd6, %rd6, %rd2;
    mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u64 %rd5, 0;
    {load}
    cvt.u32.u64 %r9, %rd5;
    or.b32 %r7, %r7, %r9;
    st.global.u32 [%rd1], %r7;
    ret;"
    );
    let out = Buffer::zeros(1);
    Launch::new(1, 32)
        // Accesses of 32 bytes need a newer module.
        .run(
            &module(HEAD, 1, &body)
                .replace(".version 8.3", ".version 8.8")
                .replace("sm_89", "sm_100"),
            &[out.addr],
        )
        .map_err(|f| (f.kind, f.report))?;
    Ok(out.get()[0])
}

const VECTOR: &str = "{%r5, %r6, %r7, %r8}";

#[test]
fn loads_may_end_in_the_padding_of_a_variable() {
    for load in [
        format!("ld.const.v4.u32 {VECTOR}, [c];"),
        "ld.const.u64 %rd5, [c+8];".into(),
        "ld.const.v2.u32 {%r7, %r8}, [c+8];".into(),
        "ld.const.u64 %rd5, [%rd6+8];".into(),
        format!("ld.v4.u32 {VECTOR}, [%rd6];"),
        format!("ld.global.v4.u32 {VECTOR}, [g];"),
        format!("ld.global.v4.u32 {VECTOR}, [%rd4];"),
        format!("ld.v4.u32 {VECTOR}, [%rd4];"),
        format!("ld.volatile.v4.u32 {VECTOR}, [%rd4];"),
        "ld.u64 %rd5, [%rd4+8];".into(),
        "ld.global.nc.u64 %rd5, [h+8];".into(),
        "ld.global.u64 %rd5, [inner+8];".into(),
    ] {
        assert_eq!(run(&load), Ok(3), "{load}");
    }
}

#[test]
fn other_accesses_outside_a_variable_are_faults() {
    for wrong in [
        // They begin in the padding.
        "ld.global.u32 %r7, [g+12];",
        "ld.u32 %r7, [%rd4+12];",
        "ld.u32 %r7, [%rd6+12];",
        // They end behind it.
        "ld.global.v2.u64 {%rd5, %rd7}, [h+8];",
        "ld.global.u64 %rd5, [tight+8];",
        "ld.global.v4.u64 {%rd5, %rd7, %rd8, %rd9}, [g];",
        // They write.
        "st.global.v4.u32 [g], {%r5, %r6, %r7, %r8};",
        "st.global.u64 [h+8], %rd5;",
        "atom.global.add.u64 %rd5, [g+8], %rd1;",
    ] {
        let (kind, report) = run(wrong).expect_err(wrong);
        assert!(
            matches!(
                kind,
                FaultKind::IllegalAddress | FaultKind::MisalignedAddress
            ),
            "{wrong}: {report}"
        );
    }
}

#[test]
fn loads_outside_constant_variables_disable_the_kernel() {
    for wrong in [
        "ld.const.u32 %r7, [c+12];",
        "ld.const.v2.u64 {%rd5, %rd7}, [c+8];",
        "ld.const.u32 %r7, [c+-4];",
    ] {
        let body = format!(".reg .b32 %r<16>; .reg .b64 %rd<16>; {wrong} ret;");
        let image = Image::load(&module(HEAD, 0, &body), AddressSpace::global()).unwrap();
        let why = image.kernels()[0].unsupported().expect(wrong);
        assert!(
            why.contains("exceeds the variable `c` of 12 bytes"),
            "{why}"
        );
    }
}

#[test]
fn loads_of_parameters_may_end_behind_them() {
    // The first load also reads the next parameter; the others end behind the last one. The address of `s` makes the
    // device keep the parameters in memory, too.
    let ptx = "
.version 8.3
.target sm_89
.address_size 64
.visible .entry k(.param .u64 out, .param .align 4 .b8 r[4], .param .align 8 .b8 s[12])
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [r];
    st.global.u64 [%rd1], %rd2;
    ld.param.v2.u64 {%rd3, %rd4}, [s];
    st.global.u64 [%rd1+8], %rd4;
    ld.param.u64 %rd5, [s+4];
    st.global.u64 [%rd1+16], %rd5;
    mov.b64 %rd6, s;
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd7, %r1, 8; add.s64 %rd6, %rd6, %rd7;
    ld.param.u64 %rd7, [%rd6+8];
    st.global.u64 [%rd1+24], %rd7;
    ret;
}";
    let out = Buffer::zeros(8);
    let image = Image::load(ptx, AddressSpace::global()).unwrap();
    assert_eq!(image.kernels()[0].unsupported(), None);
    assert_eq!(image.kernels()[0].param_bytes, 28);
    let params = [out.addr as u32, (out.addr >> 32) as u32, 1, 0, 2, 3, 4];
    Launch::new(1, 1).run_words(ptx, &params).unwrap();
    assert_eq!(out.get(), [1, 0, 4, 0, 3, 4, 4, 0]);
}

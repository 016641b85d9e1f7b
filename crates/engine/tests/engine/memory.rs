//! Loads, stores, atomics, state spaces.

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::{FaultKind, Image};

use crate::harness::{Buffer, Launch, module};

const INDEX: &str = "
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<8>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
";

#[test]
fn narrow_loads_extend_according_to_their_type() {
    let body = format!(
        "{INDEX}
    ld.global.s8 %r5, [%rd1+1];
    ld.global.u8 %r6, [%rd1+1];
    ld.global.s16 %r7, [%rd1+2];
    ld.global.u16 %h1, [%rd1+2];
    cvt.u32.u16 %r8, %h1;
    ld.global.s8 %h2, [%rd1+1];
    cvt.u32.u16 %r9, %h2;
    st.global.v4.u32 [%rd1+16], {{%r5, %r6, %r7, %r8}};
    st.global.u32 [%rd1+32], %r9;
    ret;"
    );
    let out = Buffer::new(&[0x8765_f3ff, 0, 0, 0, 0, 0, 0, 0, 0]);
    Launch::new(1, 1)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(
        out.get()[4..],
        [0xffff_fff3, 0xf3, 0xffff_8765, 0x8765, 0xfff3]
    );
}

#[test]
fn local_arrays_belong_to_their_thread() {
    let body = format!(
        "{INDEX}
    .local .align 8 .b8 a[64];
    mov.u64 %rd4, a;
    cvta.local.u64 %rd5, %rd4;
    mov.u32 %r5, 0;
L:  mul.wide.u32 %rd6, %r5, 4;
    add.s64 %rd7, %rd4, %rd6;
    mul.lo.u32 %r6, %r5, %r4;
    st.local.u32 [%rd7], %r6;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 16;
    @%p1 bra L;
    and.b32 %r7, %r4, 15;
    mul.wide.u32 %rd6, %r7, 4;
    add.s64 %rd8, %rd5, %rd6;
    ld.u32 %r8, [%rd8];
    and.b32 %r9, %r7, 14;
    mul.wide.u32 %rd6, %r9, 4;
    add.s64 %rd9, %rd4, %rd6;
    ld.local.u64 %rd10, [%rd9];
    shr.u64 %rd11, %rd10, 32;
    cvt.u32.u64 %r10, %rd11;
    add.u32 %r8, %r8, %r10;
    st.global.u32 [%rd3], %r8;
    ret;"
    );
    let out = Buffer::zeros(64);
    Launch::new(2, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let want: Vec<u32> = (0..64)
        .map(|n| (n % 16) * n + (((n % 16) & 14) + 1) * n)
        .collect();
    assert_eq!(out.get(), want);
}

#[test]
fn shared_memory_reverses_a_block() {
    let body = format!(
        "{INDEX}
    .shared .align 4 .b8 tile[512];
    mov.u32 %r5, tile;
    shl.b32 %r6, %r3, 2;
    add.u32 %r7, %r5, %r6;
    st.shared.u32 [%r7], %r4;
    bar.sync 0;
    mov.u32 %r8, 127;
    sub.u32 %r9, %r8, %r3;
    shl.b32 %r10, %r9, 2;
    cvt.u64.u32 %rd4, %r10;
    mov.u64 %rd5, tile;
    cvta.shared.u64 %rd6, %rd5;
    add.s64 %rd7, %rd6, %rd4;
    ld.u32 %r11, [%rd7];
    st.global.u32 [%rd3], %r11;
    ret;"
    );
    let out = Buffer::zeros(512);
    Launch::new(4, 128)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let want: Vec<u32> = (0..512).map(|n| n / 128 * 128 + 127 - n % 128).collect();
    assert_eq!(out.get(), want);
}

#[test]
fn reserved_shared_memory_precedes_the_own_and_is_zero_at_the_start_of_each_block() {
    let body = "
    .reg .pred %p<2>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    .shared .align 4 .b8 own[64];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 48;
    add.s64 %rd1, %rd1, %rd2;
    mov.u32 %r2, %reserved_smem_offset_begin;
    mov.u32 %r3, %reserved_smem_offset_end;
    mov.u32 %r4, %reserved_smem_offset_cap;
    mov.u32 %r5, %reserved_smem_offset_0;
    mov.u32 %r6, %reserved_smem_offset_1;
    mov.u32 %r7, own;
    mov.u32 %r8, %total_smem_size;
    mov.u32 %r9, %aggr_smem_size;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
    st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r9};
    // Every word of the region is zero before it is written.
    mov.u32 %r10, 0;
    mov.u32 %r11, 0;
L:  ld.shared.u32 %r12, [%r10];
    or.b32 %r11, %r11, %r12;
    st.shared.u32 [%r10], 7;
    add.u32 %r10, %r10, 4;
    setp.lt.u32 %p1, %r10, %r3;
    @%p1 bra L;
    st.shared.u32 [own+60], 5;
    ld.shared.u32 %r13, [own+60];
    st.global.v4.u32 [%rd1+32], {%r11, %r13, %r10, %r10};
    ret;";
    let out = Buffer::zeros(4 * 12);
    let mut launch = Launch::new(4, 1);
    launch.shared = 100;
    let ptx = module("", 1, body);
    launch.run(&ptx, &[out.addr]).unwrap();
    for block in out.get().chunks(12) {
        assert_eq!(block[..4], [0, 288, 1024, 0]);
        // Sizes are in units of 128 bytes.
        assert_eq!(block[4..8], [0, 1024, 256, 1280]);
        assert_eq!(block[8..], [0, 5, 288, 288]);
    }
    // The own shared memory ends where it should.
    let beyond = body.replace("[own+60], 5", "[own+164], 5");
    let fault = launch
        .run(&module("", 1, &beyond), &[out.addr])
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    let words = "has 164 bytes, from address 0x400 on";
    assert!(fault.report.contains(words), "{}", fault.report);
}

#[test]
fn dynamic_shared_memory_follows_static() {
    let body = format!(
        "{INDEX}
    .shared .align 4 .b8 fixed[20];
    mov.u32 %r5, fixed;
    mov.u32 %r6, dyn;
    mov.u32 %r7, %dynamic_smem_size;
    st.shared.u32 [dyn+60], %r7;
    ld.shared.u32 %r8, [%r6+60];
    st.global.v4.u32 [%rd1], {{%r5, %r6, %r7, %r8}};
    ret;"
    );
    let ptx = module(".extern .shared .align 16 .b8 dyn[];", 1, &body);
    let out = Buffer::zeros(4);
    let mut l = Launch::new(1, 1);
    l.shared = 64;
    l.run(&ptx, &[out.addr]).unwrap();
    assert_eq!(out.get(), [0, 32, 64, 64]);
}

#[test]
fn atomics_of_all_threads_add_up() {
    let body = format!(
        "{INDEX}
    red.global.add.u32 [%rd1], 1;
    atom.global.max.s32 %r5, [%rd1+4], %r4;
    atom.global.inc.u32 %r6, [%rd1+8], 9;
    mov.f32 %f1, 0f3F800000;
    atom.global.add.f32 %f2, [%rd1+12], %f1;
    mov.u64 %rd4, 1;
    atom.global.add.u64 %rd5, [%rd1+16], %rd4;
    atom.global.xor.b32 %r7, [%rd1+24], %r4;
    red.global.min.u32 [%rd1+28], %r4;
    ret;"
    );
    let out = Buffer::new(&[0, 0, 0, 0, u32::MAX, 0, 0, 99999]);
    Launch::new(100, 100)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let xor = (0..10000).fold(0, |x, n| x ^ n);
    let f = 10000f32.to_bits();
    assert_eq!(out.get(), [10000, 9999, 0, f, 9999, 1, xor, 0]);
}

/// As an H100 does (PTX ISA, "atom"): the operand in memory and the result are flushed; the old value is returned as it was.
#[test]
fn float_additions_flush_subnormal_numbers_in_global_memory_only() {
    let body = format!(
        "{INDEX}
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f80A80000;
    atom.global.add.f32 %f3, [%rd1], %f1;
    st.global.f32 [%rd1+4], %f3;
    red.global.add.f32 [%rd1+8], %f2;
    red.add.f32 [%rd1+12], %f2;
    mov.f32 %f4, 0f00A00000;
    st.shared.f32 [s], %f4;
    red.shared.add.f32 [s], %f2;
    ld.shared.f32 %f5, [s];
    st.global.f32 [%rd1+16], %f5;
    mov.u32 %r5, s;
    cvt.u64.u32 %rd4, %r5;
    cvta.shared.u64 %rd4, %rd4;
    atom.add.f32 %f6, [%rd4], %f1;
    st.global.f32 [%rd1+20], %f6;
    ret;"
    );
    let out = Buffer::new(&[0x800623D4, 0, 0x00A00000, 0x00A00000, 0, 0]);
    Launch::new(1, 1)
        .run(&module(".shared .align 4 .b32 s;", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(
        out.get(),
        [
            0, 0x800623D4, 0x80000000, 0x80000000, 0x80080000, 0x80080000
        ]
    );
}

#[test]
fn half_atomics() {
    let body = format!(
        "{INDEX}
    mov.b16 %h1, 0x3c00;
    atom.global.add.noftz.f16 %h2, [%rd1], %h1;
    mov.b32 %r5, 0x40003c00;
    atom.global.add.noftz.f16x2 %r6, [%rd1+4], %r5;
    atom.global.cas.b16 %h3, [%rd1+8], 5, 6;
    ret;"
    );
    let out = Buffer::new(&[0, 0, 5]);
    Launch::new(1, 64)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    // 64.0, (64.0, 128.0), 6
    assert_eq!(out.get(), [0x5400, 0x5800_5400, 6]);
}

#[test]
fn globals_and_constants_are_placed_and_initialized() {
    let head = "
.global .align 4 .u32 numbers[4] = {1, 2, 3};
.const .align 8 .u64 pointer = generic(numbers)+8;
.visible .global .u32 counter;
";
    let body = format!(
        "{INDEX}
    ld.const.u64 %rd4, [pointer];
    ld.u32 %r5, [%rd4];
    ld.global.u32 %r6, [numbers+12];
    red.global.add.u32 [counter], 3;
    ld.global.u32 %r7, [counter];
    st.global.v2.u32 [%rd1], {{%r5, %r6}};
    st.global.u32 [%rd1+8], %r7;
    ret;"
    );
    let ptx = module(head, 1, &body);
    let out = Buffer::zeros(3);
    Launch::new(1, 1).run(&ptx, &[out.addr]).unwrap();
    assert_eq!(out.get(), [3, 0, 3]);
    let image = Image::load(&ptx, AddressSpace::global()).unwrap();
    let g = image.global("counter").unwrap();
    assert_eq!((g.size, g.managed), (4, false));
    assert!(image.global("nothing").is_none());
    assert_eq!(image.kernels()[0].const_bytes, 8);
}

#[test]
fn struct_parameters_can_be_indexed() {
    let ptx = "
.version 8.3
.target sm_89
.address_size 64
.visible .entry k(.param .u64 out, .param .align 4 .b8 s[32])
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.b64 %rd2, s;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.param.u32 %r2, [%rd4];
    cvta.param.u64 %rd5, %rd4;
    ld.u32 %r3, [%rd5];
    add.u32 %r4, %r2, %r3;
    add.s64 %rd6, %rd1, %rd3;
    st.global.u32 [%rd6], %r4;
    ret;
}";
    let out = Buffer::zeros(8);
    let args = [out.addr, 1 | 2 << 32, 3 | 4 << 32, 5 | 6 << 32, 7 | 8 << 32];
    Launch::new(1, 8).run(ptx, &args).unwrap();
    assert_eq!(out.get(), [2, 4, 6, 8, 10, 12, 14, 16]);
}

#[test]
fn device_side_malloc_printf_and_free() {
    let head = "
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.global .align 1 .b8 fmt[] = {37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 115, 32, 37, 108, 108, 120, 32, 37, 99, 37, 37, 10, 0};
.global .align 1 .b8 word[] = {104, 105, 0};
";
    let body = format!(
        "{INDEX}
    .local .align 8 .b8 args[40];
    mov.u64 %rd4, args;
    cvta.local.u64 %rd5, %rd4;
    .param .b64 n; .param .b64 p;
    mov.u64 %rd6, 4;
    st.param.b64 [n], %rd6;
    call (p), malloc, (n);
    ld.param.b64 %rd7, [p];
    st.u32 [%rd7], %r4;
    ld.u32 %r5, [%rd7];
    st.local.u32 [%rd4], %r5;
    mov.f64 %rd8, 0d400921FB54442D18;
    st.local.u64 [%rd4+8], %rd8;
    mov.u64 %rd9, word;
    st.local.u64 [%rd4+16], %rd9;
    mov.u64 %rd10, 0x123456789abc;
    st.local.u64 [%rd4+24], %rd10;
    mov.u32 %r6, 65;
    st.local.u32 [%rd4+32], %r6;
    .param .b64 f; .param .b64 a; .param .b32 c;
    mov.u64 %rd11, fmt;
    st.param.b64 [f], %rd11;
    st.param.b64 [a], %rd5;
    call (c), vprintf, (f, a);
    ld.param.b32 %r7, [c];
    st.global.u32 [%rd3], %r7;
    .param .b64 q;
    st.param.b64 [q], %rd7;
    call free, (q);
    ret;"
    )
    .replace("mov.f64 %rd8", "mov.b64 %rd8");
    let out = Buffer::zeros(2);
    let text = Launch::new(1, 2)
        .run(&module(head, 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(
        text,
        "0  3.14 hi 123456789abc A%\n1  3.14 hi 123456789abc A%\n"
    );
    assert_eq!(out.get(), [5, 5]);
}

#[test]
fn asynchronous_copies_and_zero_fill() {
    let body = format!(
        "{INDEX}
    .shared .align 16 .b8 s[512];
    ld.param.u64 %rd4, [p1];
    mov.u32 %r5, s;
    shl.b32 %r6, %r3, 4;
    add.u32 %r7, %r5, %r6;
    cvt.u64.u32 %rd5, %r6;
    add.s64 %rd6, %rd4, %rd5;
    cp.async.cg.shared.global [%r7], [%rd6], 16, 8;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.v4.u32 {{%r8, %r9, %r10, %r11}}, [%r7];
    add.u32 %r8, %r8, %r9;
    add.u32 %r10, %r10, %r11;
    add.u32 %r8, %r8, %r10;
    st.global.u32 [%rd3], %r8;
    ret;"
    );
    let input = Buffer::new(&(0..128).collect::<Vec<u32>>());
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 2, &body), &[out.addr, input.addr])
        .unwrap();
    assert_eq!(out.get(), (0..32).map(|n| 8 * n + 1).collect::<Vec<u32>>());
}

//! Variables of modules, and functions of the system: malloc, free, vprintf.

use cupyrite_engine::Image;
use cupyrite_engine::memory::AddressSpace;

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

/// `new` of an over-aligned type. A request without bytes, or with an alignment that is no power of two, returns null.
#[test]
fn device_side_malloc_aligns() {
    let head = "
.extern .func (.param .b64 r) __cuda_syscall_aligned_malloc(.param .b64 n, .param .b64 alignment);
.extern .func free(.param .b64 p);
";
    let body = format!(
        "{INDEX}
    .param .b64 n; .param .b64 a; .param .b64 p;
    mul.wide.u32 %rd4, %r4, 100;
    st.param.b64 [n], %rd4;
    mov.u64 %rd5, 1; shl.b64 %rd5, %rd5, %r4;
    setp.eq.u32 %p1, %r4, 9; @%p1 mov.u64 %rd5, 48;
    st.param.b64 [a], %rd5;
    call (p), __cuda_syscall_aligned_malloc, (n, a);
    ld.param.b64 %rd7, [p];
    rem.u64 %rd8, %rd7, %rd5; cvt.u32.u64 %r5, %rd8;
    setp.eq.u64 %p2, %rd7, 0; @%p2 mov.u32 %r5, 1;
    st.global.u32 [%rd3], %r5;
    @!%p2 st.u32 [%rd7], %r5;
    .param .b64 q; st.param.b64 [q], %rd7;
    call free, (q);
    ret;"
    );
    let out = Buffer::new(&[7; 12]);
    Launch::new(1, 12)
        .run(&module(head, 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
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

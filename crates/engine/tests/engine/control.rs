//! Divergence, loops, calls, cancellation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cupyrite_engine::FaultKind;

use crate::harness::{Buffer, Launch, module};

const INDEX: &str = "
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
";

#[test]
fn lanes_that_leave_a_loop_early_keep_their_values() {
    // Collatz steps of the thread number plus one.
    let body = format!(
        "{INDEX}
    add.u32 %r5, %r4, 1; mov.u32 %r6, 0;
L: setp.eq.u32 %p1, %r5, 1;
    @%p1 bra D;
    and.b32 %r7, %r5, 1;
    setp.eq.u32 %p2, %r7, 0;
    @%p2 bra E;
    mad.lo.u32 %r5, %r5, 3, 1;
    bra N;
E: shr.u32 %r5, %r5, 1;
N: add.u32 %r6, %r6, 1;
    bra L;
D: st.global.u32 [%rd3], %r6;
    ret;"
    );
    let out = Buffer::zeros(1000);
    Launch::new(10, 100)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    for (n, got) in out.get().into_iter().enumerate() {
        let (mut v, mut steps) = (n as u64 + 1, 0);
        while v != 1 {
            v = if v % 2 == 0 { v / 2 } else { 3 * v + 1 };
            steps += 1;
        }
        assert_eq!(got, steps, "thread {n}");
    }
}

#[test]
fn a_value_computed_in_a_divergent_loop_is_varying() {
    // Each lane leaves the loop in a different iteration; `%r8` depends only on the iteration.
    let body = format!(
        "{INDEX}
    mov.u32 %r6, 0;
L: shl.b32 %r8, %r6, 2;
    setp.ge.u32 %p1, %r6, %r4;
    @%p1 bra D;
    add.u32 %r6, %r6, 1;
    bra L;
D: st.global.u32 [%rd3], %r8;
    ret;"
    );
    let out = Buffer::zeros(64);
    Launch::new(2, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), (0..64).map(|n| 4 * n).collect::<Vec<u32>>());
}

#[test]
fn a_spin_lock_within_one_warp_makes_progress() {
    // The critical section follows the loop, so that the lowest position alone never reaches it.
    let body = format!(
        "{INDEX}
    add.s64 %rd5, %rd1, 4;
S: atom.global.cas.b32 %r5, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra S;
    ld.volatile.global.u32 %r6, [%rd5];
    add.u32 %r6, %r6, 1;
    st.volatile.global.u32 [%rd5], %r6;
    membar.gl;
    atom.global.exch.b32 %r7, [%rd1], 0;
    ret;"
    );
    let out = Buffer::zeros(2);
    Launch::new(8, 64)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), [0, 512]);
}

#[test]
fn a_block_that_waits_for_a_later_block_yields_to_it() {
    let body = format!(
        "{INDEX}
    setp.eq.u32 %p1, %r1, 63;
    @%p1 bra W;
S: ld.acquire.gpu.global.u32 %r5, [%rd1];
    setp.eq.u32 %p2, %r5, 0;
    @%p2 bra S;
    red.global.add.u32 [%rd1+4], 1;
    ret;
W: st.release.gpu.global.u32 [%rd1], 1;
    ret;"
    );
    let out = Buffer::zeros(2);
    Launch::new(64, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), [1, 63 * 32]);
}

#[test]
fn warps_of_a_block_wait_for_each_other_in_shared_memory() {
    let body = format!(
        "{INDEX}
    .shared .u32 flag;
    mov.u32 %r9, flag;
    setp.ne.u32 %p3, %r3, 0;
    @%p3 bra B;
    mov.u32 %r10, 0;
    st.shared.u32 [flag], %r10;
B:  bar.sync 0;
    setp.ge.u32 %p1, %r3, 32;
    @%p1 bra W;
S: ld.volatile.shared.u32 %r5, [%r9];
    setp.eq.u32 %p2, %r5, 0;
    @%p2 bra S;
    st.global.u32 [%rd3], %r5;
    ret;
W: mov.u32 %r11, 7;
    st.volatile.shared.u32 [flag], %r11;
    ret;"
    );
    let out = Buffer::zeros(64);
    Launch::new(1, 64)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert!(out.get()[..32].iter().all(|&v| v == 7));
}

const FIB: &str = "
.func (.param .b32 r) fib(.param .b32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<8>;
    ld.param.u32 %r1, [n];
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra D;
    { .param .b32 a; .param .b32 b;
    sub.u32 %r2, %r1, 1;
    st.param.b32 [a], %r2;
    call (b), fib, (a);
    ld.param.b32 %r3, [b]; }
    { .param .b32 a; .param .b32 b;
    sub.u32 %r4, %r1, 2;
    st.param.b32 [a], %r4;
    call (b), fib, (a);
    ld.param.b32 %r5, [b]; }
    add.u32 %r6, %r3, %r5;
    st.param.b32 [r], %r6;
    ret;
D:  st.param.b32 [r], %r1;
    ret;
}";

#[test]
fn recursion_has_a_different_depth_in_every_lane() {
    let body = format!(
        "{INDEX}
    .param .b32 a; .param .b32 b;
    rem.u32 %r5, %r4, 12;
    st.param.b32 [a], %r5;
    call (b), fib, (a);
    ld.param.b32 %r6, [b];
    st.global.u32 [%rd3], %r6;
    ret;"
    );
    let out = Buffer::zeros(64);
    Launch::new(1, 64)
        .run(&module(FIB, 1, &body), &[out.addr])
        .unwrap();
    let fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
    let want: Vec<u32> = (0..64).map(|n| fib[n % 12]).collect();
    assert_eq!(out.get(), want);
}

#[test]
fn endless_recursion_is_a_stack_overflow() {
    let head = "
.func deep(.param .b64 n)
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [n];
    { .param .b64 a;
    add.u64 %rd2, %rd1, 1;
    st.param.b64 [a], %rd2;
    call deep, (a); }
    ret;
}";
    let body = "
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    { .param .b64 a;
    st.param.b64 [a], %rd1;
    call deep, (a); }
    ret;";
    let fault = Launch::new(1, 32)
        .run(&module(head, 1, body), &[0])
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::StackOverflow);
    assert!(fault.report.contains("deep"), "{}", fault.report);
}

#[test]
fn calls_are_nested_thousands_deep() {
    const DEPTH: u32 = 3000;
    let mut head = String::from(".func (.param .b32 r) f0() { st.param.b32 [r], 1; ret; }\n");
    for n in 1..DEPTH {
        let callee = n - 1;
        head += &format!(
            ".func (.param .b32 r) f{n}() {{ .reg .b32 %r<3>; {{ .param .b32 a;
    call (a), f{callee}, (); ld.param.b32 %r1, [a]; }}
    add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }}\n"
        );
    }
    let last = DEPTH - 1;
    let body = format!(
        "{INDEX}
    .param .b32 a;
    call (a), f{last}, ();
    ld.param.b32 %r5, [a];
    st.global.u32 [%rd3], %r5;
    ret;"
    );
    let out = Buffer::zeros(32);
    let done = Launch::new(1, 32).run(&module(&head, 1, &body), &[out.addr]);
    done.unwrap();
    assert_eq!(out.get(), [DEPTH; 32]);
}

#[test]
fn calls_through_valid_and_invalid_pointers() {
    let head = "
.func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %r<4>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) square(.param .b32 x)
{ .reg .b32 %r<4>; ld.param.u32 %r1, [x]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.global .align 8 .u64 table[3] = {twice, square, 64};
";
    let body = format!(
        "{INDEX}
    .param .b32 a; .param .b32 b;
    ld.param.u64 %rd8, [p1];
    cvt.u32.u64 %r12, %rd8;
    rem.u32 %r5, %r4, %r12;
    mul.wide.u32 %rd4, %r5, 8;
    mov.u64 %rd5, table;
    add.s64 %rd6, %rd5, %rd4;
    ld.global.u64 %rd7, [%rd6];
    st.param.b32 [a], %r4;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (b), %rd7, (a), proto;
    ld.param.b32 %r6, [b];
    st.global.u32 [%rd3], %r6;
    ret;"
    );
    let out = Buffer::zeros(32);
    let ptx = module(head, 2, &body);
    Launch::new(1, 32).run(&ptx, &[out.addr, 2]).unwrap();
    let want: Vec<u32> = (0..32)
        .map(|n| if n % 2 == 0 { 2 * n } else { n * n })
        .collect();
    assert_eq!(out.get(), want);
    let fault = Launch::new(1, 32).run(&ptx, &[out.addr, 3]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidPc);
    assert!(
        fault.report.contains("thread (2, 0, 0)"),
        "{}",
        fault.report
    );
}

#[test]
fn an_indexed_branch_sends_every_lane_to_its_target() {
    let body = format!(
        "{INDEX}
    and.b32 %r5, %r4, 3;
    ts: .branchtargets A, B, C;
    @!%p0 brx.idx %r5, ts;
A:  mov.u32 %r6, 10; bra.uni D;
B:  mov.u32 %r6, 20; bra.uni D;
C:  mov.u32 %r6, 30;
D:  st.global.u32 [%rd3], %r6;
    ret;"
    )
    .replace("@!%p0 ", "");
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    // An index past the end of the list is undefined; the device takes the last target.
    let want: Vec<u32> = (0..32).map(|n| [10, 20, 30, 30][n % 4]).collect();
    assert_eq!(out.get(), want);
}

#[test]
fn functions_of_ptx_isa_1_have_parameters_in_registers() {
    let head = "
.func (.reg .u32 %res) inc(.reg .u32 %x, .reg .u32 %by)
{ add.u32 %res, %x, %by; ret; }";
    let body = format!(
        "{INDEX}
    call (%r6), inc, (%r4, 5);
    st.global.u32 [%rd3], %r6;
    ret;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module(head, 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), (5..37).collect::<Vec<u32>>());
}

#[test]
fn an_endless_kernel_can_be_cancelled() {
    let cancel = AtomicBool::new(false);
    let body = "
    .reg .b32 %r<2>;
L:  add.u32 %r1, %r1, 1;
    bra L;";
    let start = Instant::now();
    std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            cancel.store(true, Ordering::Relaxed);
        });
        let mut l = Launch::new(1000, 64);
        l.cancel = &cancel;
        let fault = l.run(&module("", 0, body), &[]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Cancelled);
    });
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn guarded_calls_and_returns() {
    let head = "
.func (.param .b32 r) one(.param .b32 x)
{ .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, [x];
  setp.lt.u32 %p1, %r1, 16;
  mov.u32 %r2, 1; st.param.b32 [r], %r2;
  @%p1 ret;
  mov.u32 %r3, 2; st.param.b32 [r], %r3; ret; }";
    let body = format!(
        "{INDEX}
    .param .b32 a; .param .b32 b;
    and.b32 %r5, %r4, 1;
    setp.eq.u32 %p1, %r5, 1;
    mov.u32 %r6, 9;
    st.param.b32 [a], %r4;
    st.param.b32 [b], %r6;
    @%p1 call (b), one, (a);
    ld.param.b32 %r6, [b];
    setp.eq.u32 %p2, %r4, 5;
    @%p2 exit;
    st.global.u32 [%rd3], %r6;
    ret;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module(head, 1, &body), &[out.addr])
        .unwrap();
    let want: Vec<u32> = (0..32)
        .map(|n| match n {
            5 => 0,
            n if n % 2 == 0 => 9,
            n if n < 16 => 1,
            _ => 2,
        })
        .collect();
    assert_eq!(out.get(), want);
}

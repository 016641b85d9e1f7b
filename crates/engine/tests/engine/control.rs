//! Progress of lanes, warps and blocks that wait for each other, nested calls, cancellation.

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

/// Goes on with the loop `S` while the old value of the lock in `%r5` is not zero; then increments the word at `%rd5` and unlocks.
const CRITICAL_SECTION: &str = "
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra S;
    ld.volatile.global.u32 %r6, [%rd5];
    add.u32 %r6, %r6, 1;
    st.volatile.global.u32 [%rd5], %r6;
    membar.gl;
    atom.global.exch.b32 %r7, [%rd1], 0;
    ret;";

#[test]
fn a_spin_lock_within_one_warp_makes_progress() {
    // The critical section follows the loop, so that the lowest position alone never reaches it.
    let body = format!(
        "{INDEX}
    add.s64 %rd5, %rd1, 4;
S: atom.global.cas.b32 %r5, [%rd1], 0, 1;
    {CRITICAL_SECTION}"
    );
    let out = Buffer::zeros(2);
    Launch::new(8, 64)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), [0, 512]);
}

/// The same with the atomics in functions, one of which calls the other, directly and by address. Without yielding in such loops
/// this takes minutes.
#[test]
fn a_spin_lock_whose_atomic_is_in_a_function_makes_progress() {
    let functions = "
.func (.param .b32 r) swap(.param .b64 p, .param .b32 old, .param .b32 new)
{ .reg .b64 %p; .reg .b32 %o, %n, %r; ld.param.u64 %p, [p]; ld.param.u32 %o, [old]; ld.param.u32 %n, [new];
  atom.global.cas.b32 %r, [%p], %o, %n; st.param.u32 [r], %r; ret; }
.func (.param .b32 r) lock(.param .b64 p)
{ .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p];
  { .param .b64 a; .param .b32 b, c, d; st.param.u64 [a], %p; st.param.u32 [b], 0; st.param.u32 [c], 1;
    call (d), swap, (a, b, c); ld.param.u32 %r, [d]; }
  st.param.u32 [r], %r; ret; }";
    let direct = "call (d), lock, (a);";
    let by_address = "mov.u64 %rd6, lock; call (d), %rd6, (a), prototype;";
    for call in [direct, by_address] {
        let body = format!(
            "{INDEX}
    prototype: .callprototype (.param .b32 _) _ (.param .b64 _);
    add.s64 %rd5, %rd1, 4;
S: {{ .param .b64 a; .param .b32 d; st.param.u64 [a], %rd1; {call} ld.param.u32 %r5, [d]; }}
    {CRITICAL_SECTION}"
        );
        let out = Buffer::zeros(2);
        Launch::new(4, 64)
            .run(&module(functions, 1, &body), &[out.addr])
            .unwrap();
        assert_eq!(out.get(), [0, 256]);
    }
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

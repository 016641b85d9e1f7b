//! Which lanes run together: convergence in and after functions.

use crate::harness::{Buffer, Launch, module};

/// Runs `body` on one warp, with the lane in `%r1` and the address of its word in `%rd3`, and returns the words.
fn words(head: &str, body: &str) -> Vec<u32> {
    let body = format!(
        "
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .param .b32 a;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %laneid;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    {body}
    ret;"
    );
    let out = Buffer::zeros(64);
    Launch::new(1, 32)
        .run(&module(head, 1, &body), &[out.addr])
        .unwrap();
    out.get()
}

/// Returns the active lanes.
const ACTIVE: &str = "
.func (.param .b32 r) active() { .reg .b32 %r<2>; activemask.b32 %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) nested()
{ .reg .b32 %r<2>; .param .b32 a; call (a), active, (); ld.param.b32 %r1, [a]; st.param.b32 [r], %r1; ret; }";

/// Calls `f` at one instruction in the first ten lanes and at another in the others.
fn branches(f: &str) -> String {
    format!(
        "
    setp.lt.u32 %p1, %r1, 10;
    @%p1 bra A;
    call (a), {f}, ();
    ld.param.b32 %r2, [a];
    bra D;
A:  call (a), {f}, ();
    ld.param.b32 %r2, [a];
D:  activemask.b32 %r3;
    st.global.u32 [%rd3], %r2;
    st.global.u32 [%rd3+128], %r3;"
    )
}

#[test]
fn lanes_that_call_a_function_at_different_instructions_do_not_meet_in_it() {
    for f in ["active", "nested"] {
        let got = words(ACTIVE, &branches(f));
        let want: Vec<u32> = (0..32)
            .map(|n| if n < 10 { 0x3ff } else { !0x3ff })
            .collect();
        assert_eq!(got[..32], want, "{f}");
        // They meet behind the branches.
        assert_eq!(got[32..], [u32::MAX; 32], "{f}");
    }
}

#[test]
fn lanes_meet_behind_calls_of_different_functions() {
    // `active` comes before the kernel, `late` after it, and the second call has the lower position.
    let head = format!("{ACTIVE}\n.func (.param .b32 r) late();");
    let body = branches("active").replacen("active", "late", 1);
    let late = ".func (.param .b32 r) late() { .reg .b32 %r<2>; mov.u32 %r1, 5; st.param.b32 [r], %r1; ret; }";
    let got = words(&head, &format!("{body} ret; }}\n{late}\n.func unused() {{"));
    let want: Vec<u32> = (0..32).map(|n| if n < 10 { 0x3ff } else { 5 }).collect();
    assert_eq!(got[..32], want);
    assert_eq!(got[32..], [u32::MAX; 32]);
}

#[test]
fn recursive_calls_meet_at_the_same_depth_only() {
    let head = "
.func (.param .b32 r) down(.param .b32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra D;
    { .param .b32 a; .param .b32 b;
    sub.u32 %r2, %r1, 1;
    st.param.b32 [a], %r2;
    call (b), down, (a);
    ld.param.b32 %r3, [b]; }
    st.param.b32 [r], %r3;
    ret;
D:  activemask.b32 %r3;
    st.param.b32 [r], %r3;
    ret;
}";
    let got = words(
        head,
        "
    .param .b32 b;
    and.b32 %r2, %r1, 3;
    st.param.b32 [b], %r2;
    call (a), down, (b);
    activemask.b32 %r3;
    ld.param.b32 %r2, [a];
    st.global.u32 [%rd3], %r2;
    st.global.u32 [%rd3+128], %r3;",
    );
    let want: Vec<u32> = (0..32).map(|n| 0x1111_1111 << (n % 4)).collect();
    assert_eq!(got[..32], want);
    assert_eq!(got[32..], [u32::MAX; 32]);
}

#[test]
fn lanes_that_call_at_one_instruction_after_each_other_meet_in_the_function() {
    // The upper lanes reach the call when the others wait in the function.
    let head = "
.func (.param .b32 r) meet()
{ .reg .b32 %r<2>; bar.warp.sync -1; activemask.b32 %r1; st.param.b32 [r], %r1; ret; }";
    let got = words(
        head,
        "
    setp.ge.u32 %p1, %r1, 16;
    @%p1 bra L;
C:  call (a), meet, ();
    ld.param.b32 %r2, [a];
    st.global.u32 [%rd3], %r2;
    ret;
L:  mov.u32 %r3, 1;
    bra C;",
    );
    assert_eq!(got[..32], [u32::MAX; 32]);
}

#[test]
fn callers_in_different_branches_share_barriers_and_collectives() {
    // Both kinds of barriers complete in the function, and each lane returns to its own caller.
    let head = "
.func (.param .b32 r) gather(.param .b32 x)
{
    .reg .pred %p<4>; .reg .b32 %r<8>;
    ld.param.u32 %r1, [x];
    setp.ne.u32 %p1, %r1, 0;
    vote.sync.ballot.b32 %r2, %p1, -1;
    bar.red.popc.u32 %r3, 0, %p1;
    activemask.b32 %r4;
    mul.lo.u32 %r5, %r3, 1000;
    popc.b32 %r6, %r2;
    mad.lo.u32 %r5, %r6, 100000, %r5;
    popc.b32 %r6, %r4;
    add.u32 %r5, %r5, %r6;
    st.param.b32 [r], %r5;
    ret;
}";
    let got = words(
        head,
        "
    .param .b32 b;
    and.b32 %r4, %r1, 1;
    setp.lt.u32 %p1, %r1, 10;
    @%p1 bra A;
    st.param.b32 [b], %r4;
    call (a), gather, (b);
    ld.param.b32 %r2, [a];
    add.u32 %r2, %r2, 50000000;
    bra D;
A:  mov.u32 %r5, 1;
    st.param.b32 [b], %r5;
    call (a), gather, (b);
    ld.param.b32 %r2, [a];
D:  st.global.u32 [%rd3], %r2;",
    );
    // Ten lanes and the eleven odd ones of the others vote yes.
    let want: Vec<u32> = (0..32)
        .map(|n| 2_121_000 + if n < 10 { 10 } else { 50_000_022 })
        .collect();
    assert_eq!(got[..32], want);
}

#[test]
fn lanes_of_a_partial_warp_complete_a_barrier_from_different_branches() {
    let head = "
.func (.param .b32 r) meet()
{ .reg .b32 %r<2>; barrier.sync 1, 64; mov.u32 %r1, 5; st.param.b32 [r], %r1; ret; }";
    let body = "
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .param .b32 a;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    and.b32 %r3, %r1, 3;
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra A;
    call (a), meet, ();
    ld.param.b32 %r2, [a];
    bra D;
A:  call (a), meet, ();
    ld.param.b32 %r2, [a];
D:  st.global.u32 [%rd3], %r2;
    ret;";
    let out = Buffer::zeros(48);
    Launch::new(1, 48)
        .run(&module(head, 1, body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), [5; 48]);
}

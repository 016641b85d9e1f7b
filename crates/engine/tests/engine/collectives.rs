//! Progress of warp collectives and cooperative grids while other lanes or blocks wait.

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
fn a_complete_group_does_not_wait_for_the_lanes_of_another() {
    // Lane 31 reaches the vote only after lane 0 has passed it. The other odd lanes wait for lane 31.
    let body = format!(
        "{INDEX}
    .shared .u32 flag;
    st.shared.u32 [flag], 0;
    bar.sync 0;
    and.b32 %r5, %r3, 1;
    setp.eq.u32 %p1, %r5, 0;
    selp.b32 %r6, 0x55555555, 0xaaaaaaaa, %p1;
    setp.ne.u32 %p2, %r3, 31;
    @%p2 bra V;
W:  ld.volatile.shared.u32 %r7, [flag];
    setp.eq.u32 %p3, %r7, 0;
    @%p3 bra W;
V:  setp.lt.u32 %p4, %r3, 16;
    vote.sync.ballot.b32 %r8, %p4, %r6;
    setp.ne.u32 %p5, %r3, 0;
    @%p5 bra E;
    st.volatile.shared.u32 [flag], 1;
E:  st.global.u32 [%rd3], %r8;
    ret;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let want: Vec<u32> = (0..32)
        .map(|n| if n % 2 == 0 { 0x5555 } else { 0xaaaa })
        .collect();
    assert_eq!(out.get(), want);
}

#[test]
fn a_group_goes_on_while_another_lane_spins() {
    // Lane 1 exits and completes the group of lane 0, for which lane 2 waits.
    let body = format!(
        "{INDEX}
    .shared .u32 flag;
    st.shared.u32 [flag], 0;
    bar.sync 0;
    setp.eq.u32 %p1, %r3, 1;
    @%p1 bra X;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra W;
    vote.sync.ballot.b32 %r8, 1, 3;
    st.volatile.shared.u32 [flag], %r8;
    ret;
W:  ld.volatile.shared.u32 %r7, [flag];
    setp.eq.u32 %p3, %r7, 0;
    @%p3 bra W;
    st.global.u32 [%rd3], %r7;
    ret;
X:  mov.u32 %r9, 0;
D:  add.u32 %r9, %r9, 1;
    setp.lt.u32 %p4, %r9, 5000;
    @%p4 bra D;
    exit;"
    );
    let out = Buffer::zeros(3);
    Launch::new(1, 3)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert_eq!(out.get(), [0, 0, 1]);
}

#[test]
fn blocks_of_a_cooperative_grid_wait_for_each_other() {
    // More blocks than workers. Three times, each block waits until all have arrived.
    let body = format!(
        "{INDEX}
    mov.u32 %r10, %nctaid.x;
    mov.u32 %r11, %r10;
    mov.u32 %r12, 0;
R:  bar.sync 0;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra B;
    red.release.gpu.global.add.u32 [%rd1], 1;
S:  ld.acquire.gpu.global.u32 %r5, [%rd1];
    setp.lt.u32 %p2, %r5, %r11;
    @%p2 bra S;
B:  bar.sync 0;
    add.u32 %r11, %r11, %r10;
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p3, %r12, 3;
    @%p3 bra R;
    ret;"
    );
    // The second grid has more blocks than may be in progress at once in other launches.
    for (blocks, threads) in [(40, 96), (2500, 32)] {
        let out = Buffer::zeros(1);
        let mut l = Launch::new(blocks, threads);
        l.cooperative = true;
        l.run(&module("", 1, &body), &[out.addr]).unwrap();
        assert_eq!(out.get(), [3 * blocks]);
    }
}

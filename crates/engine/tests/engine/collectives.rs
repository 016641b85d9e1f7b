//! Warp collectives, block barriers, cooperative grids, mbarriers.

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
fn shuffles_in_all_modes() {
    let body = format!(
        "{INDEX}
    shfl.sync.down.b32 %r5|%p1, %r4, 3, 31, -1;
    shfl.sync.up.b32 %r6, %r4, 1, 0, -1;
    shfl.sync.bfly.b32 %r7, %r4, 5, 31, -1;
    shfl.sync.idx.b32 %r8, %r4, 2, 6175, -1;
    selp.u32 %r9, 1, 0, %p1;
    mul.wide.u32 %rd4, %r4, 20;
    add.s64 %rd5, %rd1, %rd4;
    st.global.u32 [%rd5], %r5;
    st.global.u32 [%rd5+4], %r6;
    st.global.u32 [%rd5+8], %r7;
    st.global.u32 [%rd5+12], %r8;
    st.global.u32 [%rd5+16], %r9;
    ret;"
    );
    let out = Buffer::zeros(160);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    for (n, got) in out.get().chunks(5).enumerate() {
        let n = n as u32;
        let down = if n + 3 > 31 { n } else { n + 3 };
        // 6175 = 0x181f: segments of eight lanes.
        let want = [
            down,
            n.saturating_sub(1),
            n ^ 5,
            (n & 24) + 2,
            u32::from(n < 29),
        ];
        assert_eq!(got, want, "lane {n}");
    }
}

#[test]
fn votes_matches_and_reductions_of_part_of_a_warp() {
    let body = format!(
        "{INDEX}
    mov.u32 %r20, 0;
    setp.ge.u32 %p1, %r3, 20;
    @%p1 bra D;
    and.b32 %r5, %r3, 1;
    setp.eq.u32 %p2, %r5, 1;
    vote.sync.ballot.b32 %r6, %p2, 0xfffff;
    and.b32 %r7, %r3, 3;
    match.any.sync.b32 %r8, %r7, 0xfffff;
    redux.sync.add.u32 %r9, %r3, 0xfffff;
    redux.sync.max.s32 %r10, %r3, 0xfffff;
    activemask.b32 %r11;
    vote.sync.any.pred %p3, %p2, 0xfffff;
    selp.u32 %r12, 1, 0, %p3;
    add.u32 %r20, %r6, %r8;
    add.u32 %r20, %r20, %r9;
    add.u32 %r20, %r20, %r10;
    add.u32 %r20, %r20, %r11;
    add.u32 %r20, %r20, %r12;
D:  st.global.u32 [%rd3], %r20;
    ret;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    for (n, got) in out.get().into_iter().enumerate() {
        let want = if n < 20 {
            0xaaaaa + (0x11111 << (n % 4) & 0xfffff) + 190 + 19 + 0xfffff + 1
        } else {
            0
        };
        assert_eq!(got, want, "lane {n}");
    }
}

#[test]
fn diverged_lanes_meet_at_a_collective() {
    // Odd lanes execute a loop first; the shuffle has all lanes as members.
    let body = format!(
        "{INDEX}
    and.b32 %r5, %r3, 1;
    setp.eq.u32 %p1, %r5, 0;
    mov.u32 %r6, %r3;
    @%p1 bra J;
    mov.u32 %r7, 0;
L:  add.u32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, %r3;
    @%p2 bra L;
    add.u32 %r6, %r7, 100;
J:  bar.warp.sync -1;
    shfl.sync.bfly.b32 %r8, %r6, 1, 31, -1;
    st.global.u32 [%rd3], %r8;
    ret;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let want: Vec<u32> = (0..32)
        .map(|n| if n % 2 == 0 { n + 101 } else { n - 1 })
        .collect();
    assert_eq!(out.get(), want);
}

#[test]
fn lanes_with_different_member_masks_are_separate_collectives() {
    // Three groups by key; every collective takes the mask of the lane's own group.
    let body = format!(
        "{INDEX}
    rem.u32 %r5, %r3, 3;
    match.any.sync.b32 %r6, %r5, -1;
    and.b32 %r7, %r3, 4;
    setp.ne.u32 %p1, %r7, 0;
    vote.sync.ballot.b32 %r8, %p1, %r6;
    vote.sync.all.pred %p2, %p1, %r6;
    setp.lt.u32 %p3, %r3, 3;
    vote.sync.any.pred %p4, %p3, %r6;
    redux.sync.add.u32 %r9, %r3, %r6;
    redux.sync.min.s32 %r10, %r3, %r6;
    brev.b32 %r11, %r6;
    bfind.u32 %r12, %r11;
    sub.u32 %r12, 31, %r12;
    shfl.sync.idx.b32 %r13, %r4, %r12, 31, %r6;
    bar.warp.sync %r6;
    match.any.sync.b32 %r14, %r7, %r6;
    match.all.sync.b32 %r15|%p5, %r5, %r6;
    elect.sync %r16|%p6, %r6;
    selp.u32 %r17, 1, 0, %p2;
    selp.u32 %r18, 2, 0, %p4;
    selp.u32 %r19, 4, 0, %p5;
    selp.u32 %r20, 8, 0, %p6;
    add.u32 %r17, %r17, %r18;
    add.u32 %r17, %r17, %r19;
    add.u32 %r17, %r17, %r20;
    mul.wide.u32 %rd4, %r4, 36;
    add.s64 %rd5, %rd1, %rd4;
    st.global.u32 [%rd5], %r6;
    st.global.u32 [%rd5+4], %r8;
    st.global.u32 [%rd5+8], %r9;
    st.global.u32 [%rd5+12], %r10;
    st.global.u32 [%rd5+16], %r13;
    st.global.u32 [%rd5+20], %r14;
    st.global.u32 [%rd5+24], %r15;
    st.global.u32 [%rd5+28], %r16;
    st.global.u32 [%rd5+32], %r17;
    ret;"
    );
    // 20 threads: the lanes 20 to 31 do not exist.
    for threads in [32u32, 20] {
        let out = Buffer::zeros(9 * threads as usize);
        let ptx = module("", 1, &body).replace("sm_89", "sm_100a");
        Launch::new(1, threads)
            .run(&ptx.replace(".version 8.3", ".version 8.6"), &[out.addr])
            .unwrap();
        for (lane, got) in (0..threads).zip(out.get().chunks(9)) {
            let group: Vec<u32> = (0..threads).filter(|l| l % 3 == lane % 3).collect();
            let mask = |want: &dyn Fn(u32) -> bool| -> u32 {
                group.iter().filter(|&&l| want(l)).map(|l| 1 << l).sum()
            };
            let all = mask(&|_| true);
            let first = lane % 3;
            let want = [
                all,
                mask(&|l| l & 4 != 0),
                group.iter().sum(),
                first,
                first,
                mask(&|l| l & 4 == lane & 4),
                all,
                first,
                2 + 4 + if lane == first { 8 } else { 0 },
            ];
            assert_eq!(got, want, "lane {lane} of {threads}");
        }
    }
}

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
fn a_lane_votes_with_several_masks_in_turn() {
    // Lane n votes with the masks of lanes 0 to k for k = n, ..., 3. All lanes arrive together, with different masks;
    // mask k is complete when lane 0 has passed the k smaller ones.
    let body = format!(
        "{INDEX}
    setp.gt.u32 %p1, %r3, 3;
    @%p1 exit;
    mov.u32 %r10, 0;
    mov.u32 %r5, %r3;
    and.b32 %r7, %r3, 1;
    setp.ne.u32 %p2, %r7, 0;
L:  shl.b32 %r6, 2, %r5;
    sub.u32 %r6, %r6, 1;
    vote.sync.ballot.b32 %r8, %p2, %r6;
    add.u32 %r10, %r10, %r8;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 4;
    @%p3 bra L;
    st.global.u32 [%rd3], %r10;
    ret;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let ballots = [0, 2, 2, 10];
    for (lane, got) in out.get().into_iter().enumerate() {
        let want: u32 = ballots[lane.min(4)..].iter().sum();
        assert_eq!(got, want, "lane {lane}");
    }
}

#[test]
fn a_group_goes_on_when_the_lanes_that_it_waits_for_exit() {
    // Lanes 16 to 30 wait for lane 31 at V, lanes 0 to 15 for all lanes at B. Lane 31 exits: V is complete, B is not.
    let body = format!(
        "{INDEX}
    setp.gt.u32 %p1, %r3, 15;
    @%p1 bra H;
B:  vote.sync.ballot.b32 %r8, 1, -1;
    st.global.u32 [%rd3], %r8;
    ret;
H:  setp.eq.u32 %p2, %r3, 31;
    @%p2 bra X;
V:  vote.sync.ballot.b32 %r9, 1, 0xffff0000;
    bra B;
X:  st.global.u32 [%rd3], %r3;
    exit;"
    );
    let out = Buffer::zeros(32);
    Launch::new(1, 32)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let mut want = vec![0x7fff_ffff; 31];
    want.push(31);
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

/// Runs `body` in one warp; it leaves results in `%r20` to `%r22`, which are 0 at first. Returns them by lane.
fn three_results(threads: u32, body: &str) -> Vec<[u32; 3]> {
    let body = format!(
        "{INDEX}
    mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0;
    and.b32 %r10, %r3, 1;
    setp.ne.u32 %p6, %r10, 0;
    setp.ge.u32 %p7, %r3, 16;
    mul.wide.u32 %rd4, %r4, 12;
    add.s64 %rd5, %rd1, %rd4;
    {body}
J:  st.global.u32 [%rd5], %r20;
    st.global.u32 [%rd5+4], %r21;
    st.global.u32 [%rd5+8], %r22;
    ret;"
    );
    let out = Buffer::zeros(3 * threads as usize);
    let ptx = module("", 1, &body).replace("sm_89", "sm_100a");
    Launch::new(1, threads)
        .run(&ptx.replace(".version 8.3", ".version 8.6"), &[out.addr])
        .unwrap();
    out.get().chunks(3).map(|c| c.try_into().unwrap()).collect()
}

#[test]
fn branches_execute_one_vote_together() {
    // One branch negates the predicate, which is an operand and not a qualifier.
    let got = three_results(
        32,
        "@%p7 bra H;
    vote.sync.ballot.b32 %r20, %p6, -1;
    vote.sync.any.pred %p1, 0, -1;
    selp.u32 %r21, 1, 0, %p1;
    vote.sync.all.pred %p1, 1, -1;
    selp.u32 %r22, 1, 0, %p1;
    bra J;
H:  setp.lt.u32 %p2, %r3, 20;
    vote.sync.ballot.b32 %r20, !%p2, -1;
    setp.eq.u32 %p3, %r3, 31;
    vote.sync.any.pred %p1, %p3, -1;
    selp.u32 %r21, 1, 0, %p1;
    vote.sync.all.pred %p1, !%p3, -1;
    selp.u32 %r22, 1, 0, %p1;",
    );
    assert_eq!(got, [[0xfff0_aaaa, 1, 0]; 32]);
}

#[test]
fn branches_execute_matches_reductions_and_elections_together() {
    let got = three_results(
        32,
        "cvt.u64.u32 %rd6, %r10;
    shl.b64 %rd6, %rd6, 40;
    @%p7 bra H;
    match.any.sync.b64 %r20, %rd6, -1;
    match.all.sync.b32 %r11|%p1, 5, -1;
    selp.u32 %r21, %r11, 0, %p1;
    redux.sync.add.u32 %r12, %r3, -1;
    elect.sync %r13|%p2, -1;
    bra K;
H:  mov.u64 %rd7, %rd6;
    match.any.sync.b64 %r20, %rd7, -1;
    mov.u32 %r14, 5;
    match.all.sync.b32 %r11|%p1, %r14, -1;
    selp.u32 %r21, %r11, 0, %p1;
    add.u32 %r15, %r3, 1000;
    redux.sync.add.u32 %r12, %r15, -1;
    elect.sync %r13|%p2, -1;
K:  add.u32 %r22, %r12, %r13;
    @%p2 add.u32 %r22, %r22, 100000;",
    );
    for (lane, got) in got.into_iter().enumerate() {
        let same = if lane % 2 == 0 {
            0x5555_5555
        } else {
            0xaaaa_aaaa
        };
        let sum = 496 + 16_000 + if lane == 0 { 100_000 } else { 0 };
        assert_eq!(got, [same, u32::MAX, sum], "lane {lane}");
    }
}

#[test]
fn branches_shuffle_with_each_other() {
    // Each branch has values and distances of its own; the lanes exchange across the branches.
    let got = three_results(
        32,
        "@%p7 bra H;
    mov.u32 %r11, %r3;
    shfl.sync.bfly.b32 %r20, %r11, 16, 31, -1;
    shfl.sync.down.b32 %r21|%p1, %r11, 4, 31, -1;
    shfl.sync.idx.b32 %r22, %r11, 31, 31, -1;
    bra J;
H:  add.u32 %r12, %r3, 100;
    shfl.sync.bfly.b32 %r20, %r12, 31, 31, -1;
    shfl.sync.down.b32 %r21|%p1, %r12, 1, 31, -1;
    shfl.sync.idx.b32 %r22, %r12, 3, 31, -1;",
    );
    let value = |lane: u32| if lane < 16 { lane } else { lane + 100 };
    for (lane, got) in (0..32u32).zip(got) {
        let want = if lane < 16 {
            [value(lane ^ 16), value(lane + 4), 131]
        } else {
            [value(lane ^ 31), value((lane + 1).min(31)), 3]
        };
        assert_eq!(got, want, "lane {lane}");
    }
}

#[test]
fn barriers_of_the_warp_in_different_branches_are_one() {
    // The upper lanes read what the lower ones write before their barrier, and the reverse.
    let got = three_results(
        32,
        ".shared .u32 box[32];
    mov.u32 %r11, box;
    shl.b32 %r12, %r3, 2;
    add.u32 %r13, %r11, %r12;
    xor.b32 %r14, %r12, 64;
    add.u32 %r14, %r11, %r14;
    add.u32 %r15, %r3, 1;
    @%p7 bra H;
    st.shared.u32 [%r13], %r15;
    bar.warp.sync -1;
    ld.shared.u32 %r20, [%r14];
    bra J;
H:  mul.lo.u32 %r15, %r15, 10;
    st.shared.u32 [%r13], %r15;
    bar.warp.sync -1;
    ld.shared.u32 %r20, [%r14];",
    );
    for (lane, got) in (0..32u32).zip(got) {
        let want = if lane < 16 {
            10 * (lane + 17)
        } else {
            lane - 15
        };
        assert_eq!(got, [want, 0, 0], "lane {lane}");
    }
}

#[test]
fn collectives_with_other_masks_or_qualifiers_stay_apart() {
    // The odd and the even lanes vote with their own masks in both branches, then the branches reduce with theirs. The
    // last reductions are an error of the program: their mask is the same and their types differ.
    let got = three_results(
        32,
        "selp.b32 %r11, 0xaaaaaaaa, 0x55555555, %p6;
    @%p7 bra H;
    vote.sync.ballot.b32 %r20, 1, %r11;
    redux.sync.max.u32 %r21, %r3, 0xffff;
    redux.sync.min.u32 %r22, %r3, -1;
    bra J;
H:  setp.lt.u32 %p1, %r3, 24;
    vote.sync.ballot.b32 %r20, %p1, %r11;
    redux.sync.max.u32 %r21, %r3, 0xffff0000;
    redux.sync.min.s32 %r22, %r3, -1;",
    );
    for (lane, got) in (0..32u32).zip(got) {
        let own = if lane % 2 == 0 {
            0x5555_5555
        } else {
            0xaaaa_aaaa
        };
        let want = if lane < 16 {
            [own & 0x00ff_ffff, 15, 0]
        } else {
            [own & 0x00ff_ffff, 31, 16]
        };
        assert_eq!(got, want, "lane {lane}");
    }
}

#[test]
fn votes_of_nested_branches_are_one_without_the_lanes_that_exit() {
    // Lanes 0, 4, ... exit before, and lanes 1, 5, ... after the others have arrived; 20 threads leave lanes without a
    // thread. The second vote joins in the other order of instructions.
    for threads in [32u32, 20] {
        let got = three_results(
            threads,
            "and.b32 %r11, %r3, 3;
    setp.eq.u32 %p1, %r11, 0;
    @%p1 exit;
    setp.eq.u32 %p1, %r11, 1;
    @%p1 bra X;
    @%p7 bra H;
    setp.eq.u32 %p2, %r11, 2;
    @%p2 bra A;
    vote.sync.ballot.b32 %r20, 1, -1;
    bra S;
A:  vote.sync.ballot.b32 %r20, %p7, -1;
    bra S;
H:  vote.sync.ballot.b32 %r20, 1, -1;
    vote.sync.ballot.b32 %r21, %p6, -1;
    bra J;
S:  vote.sync.ballot.b32 %r21, 1, -1;
    bra J;
X:  mov.u32 %r12, 0;
L:  add.u32 %r12, %r12, 1;
    setp.lt.u32 %p3, %r12, 5000;
    @%p3 bra L;
    exit;",
        );
        for (lane, got) in (0..threads).zip(got) {
            let mask = |wanted: &dyn Fn(u32) -> bool| -> u32 {
                (0..threads)
                    .filter(|&l| l % 4 >= 2 && wanted(l))
                    .map(|l| 1 << l)
                    .sum()
            };
            let want = if lane % 4 < 2 {
                [0; 3]
            } else {
                let first = mask(&|l| l >= 16 || l % 4 == 3);
                [first, mask(&|l| l < 16 || l % 2 == 1), 0]
            };
            assert_eq!(got, want, "lane {lane} of {threads}");
        }
    }
}

#[test]
fn lanes_in_a_loop_reduce_with_lanes_behind_it() {
    // Lane n reduces n times in the loop, and 31 - n times in the second one: each reduction has all lanes.
    let got = three_results(
        32,
        "mov.u32 %r11, 0;
A:  setp.ge.u32 %p1, %r11, %r3;
    @%p1 bra B;
    redux.sync.add.u32 %r12, 1, -1;
    mad.lo.u32 %r20, %r20, 3, %r12;
    add.u32 %r11, %r11, 1;
    bra A;
B:  setp.ge.u32 %p1, %r11, 31;
    @%p1 bra J;
    redux.sync.add.u32 %r12, 100, -1;
    mad.lo.u32 %r20, %r20, 3, %r12;
    add.u32 %r11, %r11, 1;
    bra B;",
    );
    // In round k, the lanes above k are in the first loop.
    let want = (0..31u32).fold(0u32, |s, k| {
        s.wrapping_mul(3).wrapping_add(31 - k + 100 * (k + 1))
    });
    assert_eq!(got, [[want, 0, 0]; 32]);
}

#[test]
fn a_collective_whose_members_wait_elsewhere_proceeds_without_them() {
    // An error of the program: nothing can complete the ballots of the lanes below 24, which are one collective. The
    // others wait at a block barrier, and vote when it has completed.
    let got = three_results(
        32,
        "setp.ge.u32 %p1, %r3, 24;
    @%p1 bra W;
    @%p7 bra H;
    vote.sync.ballot.b32 %r20, 1, -1;
    bra B;
H:  vote.sync.ballot.b32 %r20, %p6, -1;
B:  bar.sync 0;
    bra J;
W:  bar.sync 0;
    vote.sync.any.pred %p2, 1, 0xff000000;
    selp.u32 %r21, 1, 0, %p2;",
    );
    for (lane, got) in got.into_iter().enumerate() {
        let want = if lane < 24 {
            [0x00aa_ffff, 0, 0]
        } else {
            [0, 1, 0]
        };
        assert_eq!(got, want, "lane {lane}");
    }
}

#[test]
fn barriers_count_threads_that_have_exited() {
    let body = format!(
        "{INDEX}
    .shared .u32 sum;
    setp.ge.u32 %p1, %r3, 40;
    @%p1 exit;
    mov.u32 %r9, 0;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra B;
    st.shared.u32 [sum], %r9;
B:  bar.sync 0;
    red.shared.add.u32 [sum], %r3;
    bar.sync 0;
    ld.shared.u32 %r6, [sum];
    st.global.u32 [%rd3], %r6;
    ret;"
    );
    let out = Buffer::zeros(128);
    Launch::new(1, 128)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    let got = out.get();
    assert!(got[..40].iter().all(|&v| v == 780));
    assert!(got[40..].iter().all(|&v| v == 0));
}

#[test]
fn barrier_reductions() {
    let body = format!(
        "{INDEX}
    setp.lt.u32 %p1, %r3, 50;
    bar.red.popc.u32 %r5, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, !%p1;
    selp.u32 %r6, 100, 0, %p2;
    selp.u32 %r7, 1000, 0, %p3;
    add.u32 %r5, %r5, %r6;
    add.u32 %r5, %r5, %r7;
    st.global.u32 [%rd3], %r5;
    ret;"
    );
    let out = Buffer::zeros(192);
    Launch::new(2, 96)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert!(out.get().iter().all(|&v| v == 1050));
}

#[test]
fn named_barriers_between_producers_and_consumers() {
    let body = format!(
        "{INDEX}
    .shared .u32 box[32];
    mov.u32 %r5, box;
    and.b32 %r6, %r3, 31;
    shl.b32 %r7, %r6, 2;
    add.u32 %r8, %r5, %r7;
    mov.u32 %r9, 0;
    setp.ge.u32 %p1, %r3, 32;
    @%p1 bra C;
P:  st.shared.u32 [%r8], %r9;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, 10;
    @%p2 bra P;
    ret;
C:  mov.u32 %r10, 0;
L:  bar.sync 1, 64;
    ld.shared.u32 %r11, [%r8];
    add.u32 %r10, %r10, %r11;
    bar.arrive 2, 64;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, 10;
    @%p2 bra L;
    st.global.u32 [%rd3], %r10;
    ret;"
    );
    let out = Buffer::zeros(64);
    Launch::new(1, 64)
        .run(&module("", 1, &body), &[out.addr])
        .unwrap();
    assert!(out.get()[32..].iter().all(|&v| v == 45));
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

/// Runs 64 threads around one mbarrier: `body` has its address in `%r2` and leaves a result in `%r9`.
fn mbarrier(count: u32, body: &str) -> Result<Vec<u32>, cupyrite_engine::Fault> {
    let out = Buffer::zeros(64);
    let ptx = module(
        ".shared .align 8 .b64 bar; .shared .align 4 .b32 seen;",
        1,
        &format!(
            "
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, bar; mov.u32 %r3, seen; mov.u32 %r9, 0;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra START;
    mbarrier.init.shared.b64 [%r2], {count}; st.shared.u32 [%r3], 0;
START: bar.sync 0;
    {body}
    st.global.u32 [%rd3], %r9;
    ret;"
        ),
    );
    // Counts of arrivals need sm_90.
    let ptx = ptx.replace("sm_89", "sm_90");
    Launch::new(1, 64).run(&ptx, &[out.addr])?;
    Ok(out.get())
}

#[test]
fn mbarriers_hold_threads_until_all_have_arrived() {
    // Three phases; every thread accumulates the counter after each.
    let got = mbarrier(
        64,
        "mov.u32 %r4, 0;
LOOP: atom.shared.add.u32 %r5, [%r3], 1;
    mbarrier.arrive.shared.b64 %rd4, [%r2];
WAIT: mbarrier.test_wait.shared.b64 %p2, [%r2], %rd4; @!%p2 bra WAIT;
    ld.volatile.shared.u32 %r6, [%r3]; mad.lo.u32 %r9, %r9, 1000, %r6;
    mbarrier.arrive.shared.b64 %rd5, [%r2]; and.b32 %r7, 1, 1;
WAIT2: mbarrier.test_wait.parity.shared.b64 %p2, [%r2], %r7; @!%p2 bra WAIT2;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 3; @%p3 bra LOOP;",
    )
    .unwrap();
    assert_eq!(got, vec![64_128_192; 64]);
}

#[test]
fn mbarriers_count_and_drop() {
    // Half of the threads leave the barrier in the first phase; the others complete the second phase alone.
    let got = mbarrier(
        64,
        "setp.lt.u32 %p2, %r1, 32; @!%p2 bra LEAVE;
    mbarrier.arrive.shared.b64 %rd4, [%r2];
W1: mbarrier.test_wait.shared.b64 %p3, [%r2], %rd4; @!%p3 bra W1;
    mbarrier.arrive.shared.b64 %rd5, [%r2];
    mbarrier.pending_count.b64 %r8, %rd5; add.u32 %r9, %r9, %r8;
W2: mbarrier.test_wait.shared.b64 %p3, [%r2], %rd5; @!%p3 bra W2;
    bra DONE;
LEAVE: mbarrier.arrive_drop.shared.b64 %rd6, [%r2];
DONE: ",
    )
    .unwrap();
    let mut first = got[..32].to_vec();
    first.sort_unstable();
    assert_eq!(first, (1..=32).collect::<Vec<u32>>());
    assert_eq!(got[32..], [0; 32]);
    for (count, body) in [
        (1, "mbarrier.arrive.noComplete.shared.b64 %rd4, [%r2], 2;"),
        (0, ""),
        (5, "mbarrier.arrive.noComplete.shared.b64 %rd4, [%r2], 5;"),
    ] {
        let fault = mbarrier(count, body).unwrap_err();
        assert_eq!(fault.kind, cupyrite_engine::FaultKind::IllegalInstruction);
        assert!(fault.report.contains("arrivals"), "{}", fault.report);
    }
}

//! Warp collectives: of whole warps, of parts of them, with any operands, in loops, and with faults and deadlocks.

use std::fmt::Write as _;

use super::{Both, Random, Words, module};
use crate::memory::AddressSpace;
use crate::{Fault, Image};

const PROLOGUE: &str = ".reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>; .reg .b32 %tx; .reg .b32 %lane; .reg .b32 %v;
    .shared .b32 memory[256]; .reg .b32 %own;
    mov.u32 %r90, %ctaid.x; mov.u32 %r91, %ntid.x; mov.u32 %tx, %tid.x; mad.lo.u32 %r92, %r90, %r91, %tx;
    ld.param.u64 %q90, [p0]; ld.param.u64 %q91, [p1]; mul.wide.u32 %q92, %r92, 4; and.b32 %lane, %tx, 31;
    add.u64 %q90, %q90, %q92; add.u64 %q91, %q91, %q92; ld.global.u32 %v, [%q90]; mov.u32 %r0, 0;
    mov.u32 %r93, memory; mad.lo.u32 %own, %tx, 4, %r93;
    xor.b32 %r94, %v, %r92; mul.lo.u32 %r95, %r94, 0x9e3779b1; shr.u32 %r96, %r95, 9; setp.lt.s32 %p90, %r95, 0;
    mov.u32 %r1, 0; setp.ne.u32 %p1, %r1, 0;\n";
const STORE: &str = "\nst.global.u32 [%q91], %r0; ret;";
/// Grids and blocks without partial warps. In those, a shuffle may read lanes without threads, whose elements are unspecified.
const WHOLE: [(usize, usize); 3] = [(4, 32), (2, 96), (2, 256)];
/// Single blocks of them. Of several blocks, any can be the first to fault.
const SINGLE: [(usize, usize); 3] = [(1, 32), (1, 96), (1, 256)];
/// Others.
const PARTIAL: [(usize, usize); 5] = [(3, 20), (2, 40), (2, 48), (2, 100), (1, 13)];

/// A kernel for which each thread has a number `%v`, and leaves its result in `%r0`. `%tx` and `%lane` are its thread and lane,
/// `%own` is the address of its word in shared memory, `%r95` and `%r96` are pseudo-random, and `%p90` is a predicate.
fn kernel(body: &str) -> Option<Both> {
    let body = format!("{PROLOGUE}{body}{STORE}");
    // `elect` needs this target.
    let ptx = module("", 2, &body).replace("sm_89", "sm_90");
    Both::new(ptx)
}

/// Runs a kernel in these grids and blocks, with random numbers below `limit` and with equal ones, and compares results or faults.
fn compare(blocks: &[(usize, usize)], body: &str, limit: usize) -> Vec<Result<Words, Fault>> {
    let Some(both) = kernel(body) else {
        return Vec::new();
    };
    let mut random = Random(11);
    let mut results = Vec::new();
    for &(grid, block) in blocks {
        let threads = grid * block;
        let numbers: Vec<u32> = (0..threads).map(|_| random.below(limit) as u32).collect();
        let by_half: Vec<u32> = (0..threads).map(|i| i as u32 / 16 % limit as u32).collect();
        for numbers in [numbers, by_half, vec![limit as u32 / 2; threads]] {
            let contents = vec![numbers, vec![0; threads]];
            let (grid, block) = (grid as u32, block as u32);
            results.push(both.compare([grid, 1, 1], [block, 1, 1], contents));
        }
    }
    results
}

/// [`compare`] for a kernel that does not fault.
fn check_in(blocks: &[(usize, usize)], body: &str, limit: usize) {
    for result in compare(blocks, body, limit) {
        let words = result.unwrap_or_else(|f| panic!("{f}\n{body}"));
        assert!(words[1].iter().any(|w| *w != 0), "no results\n{body}");
    }
}

/// [`check_in`] blocks with whole warps.
fn check(body: &str, limit: usize) {
    check_in(&WHOLE, body, limit);
}

/// [`check_in`] all blocks.
fn check_all(body: &str, limit: usize) {
    check_in(&WHOLE, body, limit);
    check_in(&PARTIAL, body, limit);
}

/// Appends the use of a result in `%r1` and `%p1`.
const USE: &str =
    "selp.b32 %r2, 7, 11, %p1; mad.lo.u32 %r0, %r0, 31, %r1; mad.lo.u32 %r0, %r0, 3, %r2;\n";

/// Shuffles of every mode, with these lanes, clamps and members.
fn shuffles(lanes: &[&str], clamps: &[&str], members: &str) -> String {
    let mut body = String::new();
    for mode in ["up", "down", "bfly", "idx"] {
        for lane in lanes {
            for clamp in clamps {
                let _ = write!(
                    body,
                    "shfl.sync.{mode}.b32 %r1|%p1, %r95, {lane}, {clamp}, {members};\n{USE}add.u32 %r95, %r95, %r1;\n"
                );
            }
        }
    }
    body
}

#[test]
fn machine_code_goes_on_behind_collectives() {
    let step = "shfl.sync.bfly.b32 %r1, %r95, 1, 31, -1; xor.b32 %r0, %r0, %r1;\n";
    let ptx = module("", 2, &format!("{PROLOGUE}{}{STORE}", step.repeat(5)));
    let image = Image::load(&ptx, AddressSpace::global()).unwrap();
    let program = image.kernels()[0].program().as_ref().unwrap();
    let code = super::super::compile(program, super::Isa::Avx512, 4).unwrap();
    let whole: Vec<bool> = code.entries.iter().map(|e| e.pairs).collect();
    // One for the whole kernel: it is not entered again after each of them.
    assert_eq!(whole, [true]);
}

#[test]
fn shuffles_with_constant_operands() {
    let lanes = ["0", "1", "5", "16", "17", "31", "32", "50", "-1"];
    let clamps = [
        "31", "0", "0x1f1f", "0x181f", "0x1000", "0x1c03", "15", "-1",
    ];
    check(&shuffles(&lanes, &clamps, "-1"), 1 << 31);
}

#[test]
fn shuffles_with_operands_that_vary() {
    check(
        &shuffles(&["%r96", "%lane", "%v"], &["%r95", "%r96", "31", "0"], "-1"),
        1 << 31,
    );
    check(
        &format!("mov.u32 %r50, -1; add.u32 %r50, %r50, %r0; setp.eq.u32 %p5, %v, 0xffffffff; selp.b32 %r50, 0, %r50, %p5;
            {}", shuffles(&["%r96", "3"], &["%r95", "31"], "%r50")),
        1 << 31,
    );
}

#[test]
fn shuffles_in_place_and_of_special_registers() {
    check(
        "mov.u32 %r1, %r95; shfl.sync.bfly.b32 %r1, %r1, 16, 31, -1; add.u32 %r0, %r0, %r1;
        shfl.sync.down.b32 %r1|%p1, %r1, %r1, %r1, -1; add.u32 %r0, %r0, %r1; @%p1 add.u32 %r0, %r0, 5;
        shfl.sync.idx.b32 %r2, %tx, 20, 31, -1; mad.lo.u32 %r0, %r0, 3, %r2; shfl.sync.up.b32 %r2, %tx, %tx, 0, -1; xor.b32 %r0, %r0, %r2;
        shfl.sync.idx.b32 %r2, %r90, %tx, 31, -1; add.u32 %r0, %r0, %r2; shfl.sync.idx.b32 %r2, 77, %tx, 31, -1; add.u32 %r0, %r0, %r2;
        mov.u32 %r3, %warpid; shfl.sync.bfly.b32 %r3, %r3, 17, 31, -1; add.u32 %r0, %r0, %r3;
        cvt.rn.f32.u32 %r4, %v; mul.f32 %r4, %r4, 0f7f800000; sub.f32 %r4, %r4, %r4; shfl.sync.bfly.b32 %r5, %r4, 16, 31, -1; xor.b32 %r0, %r0, %r5;",
        9,
    );
}

#[test]
fn shuffles_of_partial_warps() {
    let mut body = String::from("setp.eq.u32 %p2, %r0, 0; vote.sync.ballot.b32 %r3, %p2, -1;\n");
    for (mode, source, distance) in [
        ("bfly", "xor.b32 %r4, %lane, 5;", "5"),
        ("down", "add.u32 %r4, %lane, 3;", "3"),
        ("up", "sub.u32 %r4, %lane, 7;", "7"),
        ("idx", "and.b32 %r4, %r96, 31;", "%r96"),
        ("bfly", "xor.b32 %r4, %lane, 16;", "16"),
    ] {
        let clamp = if mode == "up" { 0 } else { 31 };
        // A lane without a thread has no element.
        let _ = write!(
            body,
            "shfl.sync.{mode}.b32 %r1|%p1, %r95, {distance}, {clamp}, -1; {source} and.b32 %r4, %r4, 31; shr.u32 %r5, %r3, %r4; and.b32 %r5, %r5, 1;
            setp.ne.u32 %p3, %r5, 0; not.pred %p4, %p1; or.pred %p3, %p3, %p4; selp.b32 %r1, %r1, 9, %p3;\n{USE}add.u32 %r95, %r95, %r1;\n"
        );
    }
    check_all(&body, 1 << 31);
}

#[test]
fn votes() {
    let mut body = String::new();
    for p in ["%p90", "!%p90", "%p2", "!%p2", "%p3"] {
        let _ = write!(
            body,
            "setp.ge.u32 %p2, %r95, 0; setp.gt.u32 %p3, %v, 3;
            vote.sync.ballot.b32 %r1, {p}, -1; mad.lo.u32 %r0, %r0, 31, %r1;\n"
        );
        for mode in ["all", "any", "uni"] {
            let _ = writeln!(
                body,
                "vote.sync.{mode}.pred %p1, {p}, -1; selp.b32 %r1, 3, 5, %p1; mad.lo.u32 %r0, %r0, 31, %r1;"
            );
        }
    }
    for limit in [4, 6, 1 << 30] {
        check_all(&body, limit);
    }
}

#[test]
fn reductions() {
    let mut body = String::new();
    for op in [
        "add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32",
        "xor.b32",
    ] {
        for source in ["%r95", "%v", "%tx", "-3"] {
            let _ = writeln!(
                body,
                "redux.sync.{op} %r1, {source}, -1; mad.lo.u32 %r0, %r0, 31, %r1; xor.b32 %r95, %r95, %r1;"
            );
        }
    }
    check_all(&body, 1 << 31);
}

#[test]
fn matches_and_elections() {
    let mut body = String::new();
    for source in ["%v", "%r96", "4"] {
        let _ = write!(
            body,
            "match.any.sync.b32 %r1, {source}, -1; mad.lo.u32 %r0, %r0, 31, %r1; match.all.sync.b32 %r1|%p1, {source}, -1;\n{USE}
            mov.b64 %q1, {{{source}, %r90}}; match.any.sync.b64 %r1, %q1, -1; mad.lo.u32 %r0, %r0, 31, %r1;
            match.all.sync.b64 %r1|%p1, %q1, -1;\n{USE}elect.sync %r1|%p1, -1;\n{USE}"
        );
    }
    check_all(&body, 4);
}

#[test]
fn exchanges_through_shared_memory() {
    check_all(
        "mov.u32 %r1, 0; xor.b32 %r2, %own, 64; xor.b32 %r3, %lane, 19; sub.u32 %r3, %r3, %lane; mad.lo.u32 %r3, %r3, 4, %own;
        mov.u32 %r4, %ntid.x; mad.lo.u32 %r4, %r4, 4, %r93; setp.lt.u32 %p2, %r2, %r4; setp.lt.u32 %p3, %r3, %r4; mov.u32 %r0, %v;
        L: st.shared.u32 [%own], %r0; bar.warp.sync -1; mov.u32 %r5, 1; @%p2 ld.shared.u32 %r5, [%r2]; mov.u32 %r6, 2;
        @%p3 ld.shared.u32 %r6, [%r3]; bar.warp.sync -1; mad.lo.u32 %r0, %r0, 3, %r5; xor.b32 %r0, %r0, %r6; add.u32 %r0, %r0, %r1;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 12; @%p1 bra L;",
        1000,
    );
}

#[test]
fn active_lanes() {
    check_all(
        "activemask.b32 %r1; mov.u32 %r0, %r1; and.b32 %r2, %v, 1; setp.eq.u32 %p1, %r2, 0; add.u32 %r3, %v, 3; @%p1 bra A;
        activemask.b32 %r1; mad.lo.u32 %r0, %r0, 31, %r1; xor.b32 %r0, %r0, %v; add.u32 %r0, %r0, 1;
        A: add.u32 %r0, %r0, 1; activemask.b32 %r1; mad.lo.u32 %r0, %r0, 31, %r1; @%p90 activemask.b32 %r4; @%p90 add.u32 %r0, %r0, %r4;
        setp.lt.u32 %p2, %lane, 16; @%p2 bra B; activemask.b32 %r1; mad.lo.u32 %r0, %r0, 31, %r1; xor.b32 %r0, %r0, %r3;
        B: bar.warp.sync -1; activemask.b32 %r1; mad.lo.u32 %r0, %r0, 31, %r1;",
        16,
    );
}

#[test]
fn members_that_are_a_part_of_the_warp() {
    check(
        "setp.lt.u32 %p2, %lane, 16; selp.b32 %r50, 0xffff, 0xffff0000, %p2; and.b32 %r51, %lane, 1; setp.eq.u32 %p3, %r51, 0;
        selp.b32 %r51, 0x55555555, 0xaaaaaaaa, %p3; mov.u32 %r52, -1; @%p2 mov.u32 %r52, 0xffff;
        shfl.sync.bfly.b32 %r1, %r95, 3, 31, %r50; add.u32 %r0, %r0, %r1; vote.sync.ballot.b32 %r1, %p90, %r50; mad.lo.u32 %r0, %r0, 31, %r1;
        shfl.sync.bfly.b32 %r1, %r95, 18, 31, %r51; add.u32 %r0, %r0, %r1; redux.sync.add.u32 %r1, %r95, %r51; mad.lo.u32 %r0, %r0, 31, %r1;
        match.any.sync.b32 %r1, %v, %r51; mad.lo.u32 %r0, %r0, 31, %r1; bar.warp.sync %r50; bar.warp.sync %r51;
        @%p2 bra LOW; shfl.sync.down.b32 %r1, %r95, 1, 31, 0xffff0000; mad.lo.u32 %r0, %r0, 31, %r1; vote.sync.ballot.b32 %r1, %p90, 0xffff0000;
        mad.lo.u32 %r0, %r0, 31, %r1; bra MEET; LOW: shfl.sync.up.b32 %r1, %r95, 1, 0, 0xffff; mad.lo.u32 %r0, %r0, 31, %r1;
        MEET: vote.sync.all.pred %p1, %p3, %r51; selp.b32 %r1, 3, 5, %p1; mad.lo.u32 %r0, %r0, 31, %r1; bar.warp.sync -1;",
        8,
    );
}

#[test]
fn collectives_that_lanes_reach_apart() {
    for members in ["-1", "%r52"] {
        check(
            &format!(
                "mov.u32 %r52, -1; add.u32 %r52, %r52, %r0; and.b32 %r2, %v, 1; setp.eq.u32 %p2, %r2, 0; setp.lt.u32 %p3, %lane, 16;
                add.u32 %r0, %r0, 1; @%p2 bra A; mad.lo.u32 %r0, %r0, 5, %v; mul.lo.u32 %r95, %r95, 3; vote.sync.ballot.b32 %r1, %p90, {members}; bra B;
                A: xor.b32 %r0, %r0, 99; vote.sync.ballot.b32 %r1, %p90, {members};
                B: mad.lo.u32 %r0, %r0, 31, %r1; @%p3 bra C; add.u32 %r0, %r0, 5; xor.b32 %r95, %r95, %r0; shfl.sync.bfly.b32 %r1, %r95, 17, 31, {members};
                mad.lo.u32 %r0, %r0, 31, %r1; bra D; C: mul.lo.u32 %r95, %r95, 5; shfl.sync.bfly.b32 %r1, %r95, 17, 31, {members}; mad.lo.u32 %r0, %r0, 31, %r1;
                D: @%p3 bra E; add.u32 %r0, %r0, 5; add.u32 %r0, %r0, %v; add.u32 %r0, %r0, 7; E: shfl.sync.up.b32 %r1, %r0, 9, 0, {members}; add.u32 %r0, %r0, %r1;"
            ),
            16,
        );
    }
}

#[test]
fn collectives_under_guards() {
    check_all(
        "vote.sync.ballot.b32 %r3, %p90, -1; not.b32 %r4, %r3; mov.u32 %r1, 1; @%p90 redux.sync.xor.b32 %r1, %r95, %r3;
        add.u32 %r0, %r0, %r1; @!%p90 match.any.sync.b32 %r1, %v, %r4; mad.lo.u32 %r0, %r0, 31, %r1; setp.ge.u32 %p2, %v, 0;
        @%p2 vote.sync.ballot.b32 %r1, %p90, -1; mad.lo.u32 %r0, %r0, 31, %r1; @%p2 bar.warp.sync -1; @!%p2 bar.warp.sync -1;
        @%p2 redux.sync.add.u32 %r1, %r95, -1; mad.lo.u32 %r0, %r0, 31, %r1;",
        4,
    );
}

#[test]
fn loops_with_collectives() {
    // As often as the thread of lane 5 says.
    check(
        "shfl.sync.idx.b32 %r5, %v, 5, 31, -1; mov.u32 %r1, 0;
        L: shfl.sync.bfly.b32 %r2|%p2, %r95, %r1, 31, -1; add.u32 %r95, %r95, %r2; vote.sync.ballot.b32 %r3, %p90, -1; popc.b32 %r3, %r3;
        add.u32 %r0, %r0, %r3; xor.b32 %r0, %r0, %r95; setp.lt.s32 %p90, %r95, 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r5; @%p1 bra L;
        add.u32 %r0, %r0, 1;",
        70,
    );
}

#[test]
fn loops_that_lanes_leave_apart() {
    // Those that have left wait at the last collective, or exit.
    for last in [
        "add.u32 %r0, %r0, 1;",
        "bar.warp.sync -1; redux.sync.max.u32 %r2, %r95, -1; add.u32 %r0, %r0, %r2;",
    ] {
        check_all(
            &format!(
                "mov.u32 %r1, 0; add.u32 %v, %v, 1;
                L: redux.sync.xor.b32 %r2, %r95, -1; vote.sync.ballot.b32 %r3, %p90, -1; add.u32 %r95, %r95, %r2; sub.u32 %r95, %r95, %r3; add.u32 %r1, %r1, 1; mad.lo.u32 %r0, %r0, 3, %r95;
                setp.lt.u32 %p1, %r1, %v; @%p1 bra L; {last}"
            ),
            20,
        );
    }
}

#[test]
fn loops_with_collectives_that_exhaust_the_fuel() {
    check(
        "mov.u32 %r1, 0;
        L: shfl.sync.bfly.b32 %r2, %r95, 16, 31, -1; mad.lo.u32 %r95, %r95, 3, %r2; add.u32 %r1, %r1, 1; xor.b32 %r0, %r0, %r95;
        setp.lt.u32 %p1, %r1, 1100; @%p1 bra L;
        M: vote.sync.any.pred %p2, %p90, -1; mov.u32 %r3, 0; @!%p2 bra N; N: add.u32 %r3, %r3, %r1; xor.b32 %r0, %r0, %r3; add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 2200; @%p1 bra M;
        setp.lt.u32 %p3, %lane, 16; @%p3 bra S;
        T: add.u32 %r1, %r1, 1; mad.lo.u32 %r0, %r0, 3, %r1; setp.lt.u32 %p1, %r1, 3400; @%p1 bra T;
        S: shfl.sync.bfly.b32 %r2, %r0, 16, 31, -1; add.u32 %r0, %r0, %r2;",
        100,
    );
}

#[test]
fn collectives_between_barriers() {
    check(
        "mov.u32 %r1, 0; shr.u32 %r10, %tx, 5; mad.lo.u32 %r10, %r10, 4, %r93; setp.eq.u32 %p2, %lane, 0;
        L: mov.u32 %r2, %r95; shfl.sync.down.b32 %r3, %r2, 16, 31, -1; add.u32 %r2, %r2, %r3; shfl.sync.down.b32 %r3, %r2, 8, 31, -1; add.u32 %r2, %r2, %r3;
        shfl.sync.down.b32 %r3, %r2, 4, 31, -1; add.u32 %r2, %r2, %r3; shfl.sync.down.b32 %r3, %r2, 2, 31, -1; add.u32 %r2, %r2, %r3;
        shfl.sync.down.b32 %r3, %r2, 1, 31, -1; add.u32 %r2, %r2, %r3; @!%p2 bra A; st.shared.u32 [%r10], %r2; A: bar.sync 0;
        ld.shared.u32 %r4, [memory]; mad.lo.u32 %r0, %r0, 3, %r4; bar.sync 0; add.u32 %r95, %r95, %r0; add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 70; @%p1 bra L; setp.gt.u32 %p3, %tx, 31; @%p3 bra END; vote.sync.ballot.b32 %r5, %p90, -1; add.u32 %r0, %r0, %r5;
        redux.sync.max.s32 %r6, %r0, -1; xor.b32 %r0, %r0, %r6; END: add.u32 %r0, %r0, 1;",
        1 << 30,
    );
}

#[test]
fn warps_that_part_and_meet() {
    check(
        "shr.u32 %r1, %tx, 5; and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 0; st.shared.u32 [%own], %v; @%p2 bra A;
        shfl.sync.up.b32 %r3, %r95, 3, 0, -1; mad.lo.u32 %r0, %r0, 3, %r3; bra B; A: vote.sync.ballot.b32 %r3, %p90, -1; mad.lo.u32 %r0, %r0, 5, %r3;
        B: bar.sync 0; ld.shared.u32 %r4, [memory+8]; add.u32 %r0, %r0, %r4; shfl.sync.bfly.b32 %r3, %r0, 16, 31, -1; add.u32 %r0, %r0, %r3;
        setp.eq.u32 %p3, %r1, 1; mov.u32 %r50, -1; @%p3 mov.u32 %r50, %r0; @%p3 or.b32 %r50, %r50, 0xffff; bar.sync 0; shfl.sync.idx.b32 %r3, %r0, 0, 31, -1; add.u32 %r0, %r0, %r3;
        bar.sync 0; add.u32 %r0, %r0, 1; @%p3 exit; bar.sync 0; shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1; add.u32 %r0, %r0, %r3;",
        50,
    );
}

#[test]
fn lanes_that_exit_before_collectives() {
    check_all(
        "mov.u32 %r0, 5; setp.gt.u32 %p1, %v, 11; @%p1 st.global.u32 [%q91], %v; @%p1 exit; redux.sync.add.u32 %r1, %r95, -1; add.u32 %r0, %r0, %r1;
        vote.sync.ballot.b32 %r1, %p90, -1; mad.lo.u32 %r0, %r0, 31, %r1; setp.lt.u32 %p2, %lane, 16; @%p2 st.global.u32 [%q91], %r0; @%p2 exit; redux.sync.add.u32 %r1, %v, -1; mad.lo.u32 %r0, %r0, 31, %r1;
        bar.warp.sync -1; match.any.sync.b32 %r1, %v, -1; mad.lo.u32 %r0, %r0, 31, %r1;",
        16,
    );
}

#[test]
fn faults_around_collectives() {
    let mut faults = 0;
    for (lanes, at) in [
        ("setp.lt.u32 %p2, %lane, 16;", 3),
        ("setp.ge.u32 %p2, %lane, 16;", 9),
        ("setp.eq.u32 %p2, %lane, 20;", 9),
        ("setp.ge.u32 %p2, %lane, 0;", 9),
    ] {
        for exchange in [
            "shfl.sync.bfly.b32 %r1, %r95, 16, 31, -1;",
            "match.any.sync.b32 %r1, %v, -1;",
        ] {
            let body = format!(
                "{lanes} setp.eq.u32 %p3, %v, {at}; and.pred %p2, %p2, %p3; mov.u64 %q1, %q90; @%p2 mov.u64 %q1, 16;
                {exchange} add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, 1; ld.global.u32 %r2, [%q1]; add.u32 %r0, %r0, %r2; {exchange}
                add.u32 %r0, %r0, %r1; bar.sync 0; add.u32 %r0, %r0, %r2; st.shared.u32 [%own], %r0; {exchange} xor.b32 %r0, %r0, %r1; @%p2 trap;"
            );
            faults += compare(&SINGLE, &body, 18)
                .iter()
                .filter(|r| r.is_err())
                .count();
        }
    }
    assert!(faults > 20 || super::isas().is_empty(), "{faults} faults");
}

#[test]
fn halves_at_different_barriers() {
    // The barrier of the block and the collective wait for each other's lanes.
    let results = compare(
        &SINGLE,
        "add.u32 %r0, %r0, 1; setp.lt.u32 %p2, %lane, 16; add.u32 %r0, %r0, %v; @%p2 bra A; bar.sync 0; bra B;
        A: redux.sync.add.u32 %r1, %r95, -1; add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, 3; bar.sync 0; B: add.u32 %r0, %r0, 1;",
        18,
    );
    assert!(results.iter().any(Result::is_ok) || results.is_empty());
    // One half exits, and the other waits at a barrier for more threads than there are.
    let results = compare(
        &SINGLE,
        "add.u32 %r0, %r0, 1; add.u32 %r0, %r0, %v; vote.sync.ballot.b32 %r1, %p90, -1; setp.lt.u32 %p2, %lane, 16; add.u32 %r0, %r0, %r1; @%p2 bra A;
        bar.sync 1, 512; A: redux.sync.add.u32 %r1, %r95, -1; add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, 3;",
        18,
    );
    let deadlock = |r: &Result<Words, Fault>| {
        let fault = r.as_ref().err();
        fault.is_some_and(|f| f.report.contains("deadlock"))
    };
    assert!(results.iter().all(deadlock));
}

#[test]
fn random_collectives() {
    let mut random = Random(77);
    for _ in 0..40 {
        let mut body = String::new();
        for n in 0..20 {
            let register =
                |random: &mut Random| random.of(&["%r95", "%r96", "%v", "%lane", "%r0", "7", "-1"]);
            let lane = register(&mut random);
            let clamp = random.of(&["31", "0", "%r96", "0x181f", "%r95"]);
            let source = random.of(&["%r95", "%r96", "%v", "%r0"]);
            let mode = random.of(&["up", "down", "bfly", "idx"]);
            let op = random.of(&[
                "add.u32", "min.s32", "max.u32", "xor.b32", "and.b32", "or.b32", "max.s32",
                "min.u32",
            ]);
            let vote = random.of(&["all", "any", "uni"]);
            let text = match random.below(12) {
                0..=3 => {
                    format!("shfl.sync.{mode}.b32 %r1|%p1, {source}, {lane}, {clamp}, -1;\n{USE}")
                }
                4 => format!("vote.sync.ballot.b32 %r1, %p90, -1;\n{USE}"),
                5 => format!("vote.sync.{vote}.pred %p1, %p90, -1;\n{USE}"),
                6 => format!("redux.sync.{op} %r1, {source}, -1;\n{USE}"),
                7 => format!("match.any.sync.b32 %r1, {lane}, -1;\n{USE}"),
                8 => format!("setp.lt.u32 %p90, {source}, %r0; add.u32 %r95, %r95, %r0;"),
                9 => format!(
                    "setp.lt.s32 %p2, {source}, 77; @%p2 bra L{n}; add.u32 %r0, %r0, {source}; mul.lo.u32 %r95, %r95, 3; L{n}: xor.b32 %r96, %r96, %r0;"
                ),
                10 => "bar.sync 0; activemask.b32 %r1; add.u32 %r0, %r0, %r1;".to_owned(),
                _ => format!(
                    "st.shared.u32 [%own], {source}; bar.warp.sync -1; ld.shared.u32 %r96, [%own];"
                ),
            };
            body += &text;
            body += "\n";
        }
        check(&body, 1 << 20);
    }
}

#[test]
fn endless_loops_with_collectives_are_cancelled() {
    let body = format!(
        "{PROLOGUE} L: shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; add.u32 %r0, %r0, %r1; xor.b32 %r0, %r0, %tx; add.u32 %r0, %r0, 3; bra L; {STORE}"
    );
    let Some(both) = Both::new(module("", 2, &body)) else {
        return;
    };
    both.assert_cancelled(&[32, 256, 40]);
}

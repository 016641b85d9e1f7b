//! Branches, loops, barriers, calls and returns.

use std::fmt::Write as _;

use super::{Both, Random, module};

const PROLOGUE: &str = ".reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>; .reg .b32 %tx; .reg .b32 %v;
    mov.u32 %r90, %ctaid.x; mov.u32 %r91, %ntid.x; mov.u32 %tx, %tid.x; mad.lo.u32 %r92, %r90, %r91, %tx;
    ld.param.u64 %q90, [p0]; ld.param.u64 %q91, [p1]; mul.wide.u32 %q92, %r92, 4;
    add.u64 %q90, %q90, %q92; add.u64 %q91, %q91, %q92; ld.global.u32 %v, [%q90]; mov.u32 %r0, 0;\n";
const STORE: &str = "\nst.global.u32 [%q91], %r0; ret;";

/// Runs a kernel with a number `%v` below `limit` for each thread, which leaves its result in `%r0`.
fn check(head: &str, body: &str, limit: usize) {
    let Some(both) = Both::new(module(head, 2, &format!("{PROLOGUE}{body}{STORE}"))) else {
        return;
    };
    let mut random = Random(5);
    for (grid, block) in [(4, 32), (3, 20), (2, 48), (2, 100), (2, 256)] {
        let threads = grid * block;
        let numbers: Vec<u32> = (0..threads).map(|_| random.below(limit) as u32).collect();
        let equal: Vec<u32> = (0..threads).map(|i| i as u32 / 16 % limit as u32).collect();
        for numbers in [numbers, equal, vec![limit as u32 / 2; threads]] {
            let words = both.same(grid as u32, block as u32, vec![numbers, vec![0; threads]]);
            assert!(words[1].iter().any(|w| *w != 0), "no results");
        }
    }
}

#[test]
fn nested_loops_and_branches() {
    check(
        "",
        "mov.u32 %r1, 0;
        OUTER: setp.ge.u32 %p1, %r1, %v; @%p1 bra DONE;
            mov.u32 %r2, %r1;
            INNER: and.b32 %r3, %r2, 3; setp.eq.u32 %p2, %r3, 1; @%p2 bra ONE;
                setp.eq.u32 %p3, %r3, 2; @!%p3 bra OTHER;
                    mad.lo.u32 %r0, %r0, 5, %r2; bra NEXT;
                OTHER: xor.b32 %r0, %r0, %tx; bra NEXT;
            ONE: add.u32 %r0, %r0, 7; setp.gt.u32 %p4, %r0, 5000; @%p4 bra NEXT; shl.b32 %r0, %r0, 1;
            NEXT: add.u32 %r2, %r2, 1; setp.lt.u32 %p5, %r2, %v; @%p5 bra INNER;
            add.u32 %r1, %r1, 1; bra OUTER;
        DONE: add.u32 %r0, %r0, 1;",
        14,
    );
}

#[test]
fn loops_that_exhaust_the_fuel() {
    check(
        "",
        "mov.u32 %r1, 0;
        L: mad.lo.u32 %r0, %r0, 3, %r1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %v; @%p1 bra L;
        setp.gt.u32 %p2, %v, 1500; @%p2 bra BEHIND; mov.u32 %r1, 0;
        M: add.u32 %r0, %r0, %v; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1100; @%p1 bra M;
        BEHIND: add.u32 %r0, %r0, 1;",
        3300,
    );
}

#[test]
fn lanes_that_leave_loops() {
    check(
        "",
        "mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 1; mad.lo.u32 %r0, %r0, 3, %r1; and.b32 %r2, %r0, 31; setp.eq.u32 %p1, %r2, %v;
        @%p1 st.global.u32 [%q91], %r1; @%p1 exit; setp.eq.u32 %p2, %r1, %v; @%p2 bra OUT;
        setp.gt.u32 %p3, %r1, 40; @%p3 bra STORE; bra L;
        OUT: add.u32 %r0, %r0, 1000; setp.lt.u32 %p4, %v, 9; @%p4 ret;
        STORE: add.u32 %r0, %r0, 1;",
        60,
    );
}

#[test]
fn a_branch_into_a_loop() {
    check(
        "",
        "mov.u32 %r1, %v; and.b32 %r2, %v, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra MIDDLE;
        TOP: mad.lo.u32 %r0, %r0, 5, 3; setp.eq.u32 %p3, %r1, 3; @%p3 bra LAST;
        MIDDLE: xor.b32 %r0, %r0, %r1; add.s32 %r1, %r1, -1;
        LAST: add.u32 %r0, %r0, 9; add.s32 %r1, %r1, -1; setp.gt.s32 %p2, %r1, 0; @%p2 bra TOP;",
        30,
    );
}

#[test]
fn many_branch_targets() {
    for targets in [60, 64, 66, 90] {
        let mut body = String::new();
        for n in 0..targets {
            let _ = writeln!(
                body,
                "and.b32 %r1, %v, {}; setp.ne.u32 %p1, %r1, 0; @%p1 bra L{n};
                mad.lo.u32 %r0, %r0, 3, {n}; add.u32 %v, %v, %tx; xor.b32 %r0, %r0, %v;
                L{n}: add.u32 %r0, %r0, 1;",
                1 << (n % 7)
            );
        }
        check("", &body, 128);
    }
}

#[test]
fn predicates_and_many_branch_targets() {
    // Each branch uses a predicate of another block, while all registers of predicates have later ones.
    let mut body = String::from("setp.gt.u32 %p0, %v, 50;\n");
    for n in 0..70 {
        let (guard, not) = (n % 3 * 7 % 5, if n % 2 == 0 { "!" } else { "" });
        let _ = writeln!(
            body,
            "add.u32 %r1, %r0, {n}; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r1, %v; and.b32 %r3, %v, 3;
            setp.ne.u32 %p3, %r3, 1; @%p2 add.u32 %r0, %r0, 3; setp.gt.u32 %p4, %r1, 9; @{not}%p{guard} bra L{n};
            selp.u32 %r4, 5, 2, %p3; mad.lo.u32 %r0, %r0, 3, %r4; xor.pred %p0, %p1, %p4;
            L{n}: selp.u32 %r4, 1, 7, %p1; @%p3 xor.b32 %r0, %r0, %r4; @%p2 add.u32 %r0, %r0, 9; @%p4 add.u32 %r0, %r0, 2;"
        );
    }
    check("", &body, 99);
}

#[test]
fn barriers_in_loops() {
    check(
        "",
        ".shared .b32 memory[256]; mov.u32 %r1, memory; mad.lo.u32 %r2, %tx, 4, %r1; mov.u32 %r3, 0;
        add.u32 %r4, %tx, 1; rem.u32 %r4, %r4, %r91; mad.lo.u32 %r4, %r4, 4, %r1; mov.u32 %r0, %v;
        L: st.shared.u32 [%r2], %r0; bar.sync 0; ld.shared.u32 %r5, [%r4]; mad.lo.u32 %r0, %r0, 3, %r5; add.u32 %r0, %r0, %r3;
        add.u32 %r3, %r3, 1; bar.sync 0; setp.lt.u32 %p1, %r3, 20; @%p1 bra L;",
        1000,
    );
}

#[test]
fn lanes_that_diverge_before_barriers() {
    check(
        "",
        ".shared .b32 memory[256]; mov.u32 %r1, memory; mad.lo.u32 %r2, %tx, 4, %r1; mov.u32 %r3, 0;
        xor.b32 %r4, %tx, 3; mad.lo.u32 %r4, %r4, 4, %r1;
        L: and.b32 %r6, %v, 1; setp.eq.u32 %p2, %r6, 0; @%p2 bra EVEN;
            mov.u32 %r7, 0; M: mad.lo.u32 %r0, %r0, 3, %r7; add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, %v; @%p3 bra M;
            bra MEET;
        EVEN: add.u32 %r0, %r0, %v;
        MEET: st.shared.u32 [%r2], %r0; bar.sync 0; ld.shared.u32 %r5, [%r4]; add.u32 %v, %v, %r5; and.b32 %v, %v, 15;
        add.u32 %r0, %r0, %v; add.u32 %r3, %r3, 1; bar.sync 0; setp.lt.u32 %p1, %r3, 9; @%p1 bra L;",
        16,
    );
}

#[test]
fn exited_lanes_and_barriers() {
    check(
        "",
        "setp.lt.u32 %p1, %v, 5; @%p1 st.global.u32 [%q91], 77; @%p1 exit;
        bar.sync 0; mad.lo.u32 %r0, %v, 3, %tx; bar.sync 0; setp.gt.u32 %p1, %v, 9; @%p1 bra L;
        add.u32 %r0, %r0, 5; mul.lo.u32 %r0, %r0, 3; xor.b32 %r0, %r0, 1;
        L: bar.sync 0; add.u32 %r0, %r0, 1; add.u32 %r0, %r0, %v; add.u32 %r0, %r0, %tx;",
        16,
    );
}

#[test]
fn calls_with_divergent_bodies() {
    let head = ".func (.reg .b32 %x) f (.reg .b32 %a, .reg .b32 %b)
        { .reg .pred %p<3>; .reg .b32 %n; mov.u32 %x, %b; and.b32 %n, %a, 7; setp.gt.u32 %p1, %a, 20; @%p1 ret;
        L: mad.lo.u32 %x, %x, 5, %a; add.s32 %n, %n, -1; setp.ge.s32 %p0, %n, 0; @%p0 bra L; ret; }
        .func (.reg .b32 %x) g (.reg .b32 %a)
        { .reg .pred %p<3>; .reg .b32 %n<3>; setp.lt.u32 %p1, %a, 9; mov.u32 %n1, 3; @%p1 bra M; add.u32 %n1, %a, 1;
        call (%n2), f, (%n1, %a); xor.b32 %n1, %n1, %n2; M: add.u32 %n1, %n1, %a; call (%x), f, (%a, %n1); add.u32 %x, %x, %n1; ret; }";
    check(
        head,
        "mov.u32 %r1, 0;
        L: call (%r2), g, (%v); add.u32 %r0, %r0, %r2; and.b32 %r3, %r0, 1; setp.eq.u32 %p2, %r3, 0;
        @%p2 bra EVEN; call (%r2), f, (%r1, %r0); xor.b32 %r0, %r0, %r2; mul.lo.u32 %r0, %r0, 3; EVEN: add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 6; @%p1 bra L;",
        32,
    );
}

#[test]
fn indexed_branches() {
    check(
        "",
        "mov.u32 %r1, 0; T: .branchtargets A, B, C, D;
        L: add.u32 %r2, %v, %r1; and.b32 %r2, %r2, 3; brx.idx %r2, T;
        A: add.u32 %r0, %r0, 3; mul.lo.u32 %r0, %r0, 3; bra MEET;
        B: mad.lo.u32 %r0, %r0, 7, %v; xor.b32 %r0, %r0, %tx;
        C: shl.b32 %r0, %r0, 1; add.u32 %r0, %r0, 1; setp.gt.u32 %p2, %v, 11; @%p2 bra MEET;
        D: sub.u32 %r0, %r0, %r1; not.b32 %r0, %r0;
        MEET: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %v; @%p1 bra L; add.u32 %r0, %r0, 1;",
        16,
    );
}

#[test]
fn lanes_that_wait_for_others() {
    // Even threads wait for the next thread, which works first.
    check(
        "",
        ".shared .b32 memory[257]; mov.u32 %r1, memory; mad.lo.u32 %r2, %tx, 4, %r1; st.shared.u32 [%r2], 0; bar.sync 0;
        and.b32 %r3, %tx, 1; setp.eq.u32 %p1, %r3, 0; mov.u32 %r4, 0; @%p1 bra WAIT;
        M: mad.lo.u32 %r0, %r0, 3, %r4; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %v; @%p2 bra M;
        add.u32 %r5, %v, 1; st.volatile.shared.u32 [%r2], %r5; bra DONE;
        WAIT: ld.volatile.shared.u32 %r0, [%r2+4]; setp.eq.u32 %p3, %r0, 0; @%p3 bra WAIT;
        DONE: add.u32 %r0, %r0, 1;",
        2000,
    );
}

#[test]
fn endless_loops_are_cancelled() {
    let loops = [
        "L: add.u32 %r0, %r0, %v; and.b32 %r1, %r0, %tx; setp.lt.u32 %p1, %r1, 1000; @%p1 bra L; bra L;",
        "L: add.u32 %r0, %r0, %v; bar.sync 0; xor.b32 %r0, %r0, %tx; add.u32 %r0, %r0, 3; and.b32 %r1, %r0, 7; bra L;",
    ];
    for endless in loops {
        let body = format!("{PROLOGUE} {endless} {STORE}");
        let Some(both) = Both::new(module("", 2, &body)) else {
            return;
        };
        both.assert_cancelled(&[32, 256, 20]);
    }
}

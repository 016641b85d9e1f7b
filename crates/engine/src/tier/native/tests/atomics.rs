//! Atomics with and without results, on equal and different addresses.

use std::fmt::Write as _;

use super::{Both, Random, module};

/// Operation and type, registers of its operands, and whether its effect does not depend on the order.
const OPERATIONS: [(&str, &str, bool); 30] = [
    ("add.u32", "%r1", true),
    ("add.s32", "%r1", true),
    ("add.u64", "%q1", true),
    ("add.f32", "%r2", false),
    ("min.u32", "%r1", true),
    ("max.s32", "%r1", true),
    ("max.u64", "%q1", true),
    ("and.b32", "%r1", true),
    ("or.b32", "%r1", true),
    ("xor.b32", "%r1", true),
    ("inc.u32", "%r1", false),
    ("exch.b32", "%r1", false),
    ("cas.b32", "%r3, %r1", false),
    ("exch.b64", "%q1", false),
    ("relaxed.gpu.add.u32", "%r1", true),
    ("add.f64", "%q12", false),
    ("dec.u32", "%r1", false),
    ("dec.u32", "%r3", false),
    ("inc.u32", "%r3", false),
    ("min.s32", "%r1", true),
    ("max.u32", "%r1", true),
    ("min.s64", "%q1", true),
    ("max.s64", "%q13", true),
    ("min.u64", "%q13", true),
    ("and.b64", "%q1", true),
    ("or.b64", "%q13", true),
    ("xor.b64", "%q1", true),
    ("cas.b64", "%q14, %q1", false),
    ("add.f32", "%r13", false),
    ("add.f32", "%r14", false),
];

/// Slots of 8 bytes that each instruction accesses.
const SLOTS: usize = 128;

/// A kernel that executes all operations on memory of their own: slot `p0[thread]`, if `p1[thread]` is set.
fn kernel(space: &str, result: bool, any_order: bool, mode: &str) -> String {
    let mut body = format!(
        ".reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>; .shared .align 8 .b64 memory[{0}];
        mov.u32 %r0, %tid.x; ld.param.u64 %q2, [p0]; ld.param.u64 %q3, [p1]; ld.param.u64 %q4, [p2]; ld.param.u64 %q5, [p3];
        mul.wide.u32 %q6, %r0, 4; add.u64 %q2, %q2, %q6; add.u64 %q3, %q3, %q6;
        mul.wide.u32 %q6, %r0, 8; add.u64 %q5, %q5, %q6; ld.global.u32 %r4, [%q2]; ld.global.u32 %r5, [%q3];
        setp.ne.u32 %p0, %r5, 0; mul.wide.u32 %q6, %r4, 8; add.u64 %q7, %q4, %q6;
        mov.u32 %r6, memory; mad.lo.u32 %r7, %r4, 8, %r6; mul.lo.u32 %r1, %r0, 0x7654321; mul.wide.u32 %q1, %r1, 77;
        cvt.rn.f32.s32 %r2, %r1; and.b32 %r3, %r0, 3; add.u64 %q8, %q4, %q6; cvt.rn.f64.s32 %q12, %r1; not.b64 %q13, %q1;
        cvt.u64.u32 %q14, %r3; shl.b32 %r13, %r0, 22; xor.b32 %r13, %r13, 0x80012345; add.u32 %r14, %r0, 0x7fc00001;
        mov.u32 %r8, %r0;
        IN: mul.wide.u32 %q9, %r8, 8; add.u64 %q9, %q4, %q9; ld.global.u64 %q10, [%q9]; mad.lo.u32 %r9, %r8, 8, %r6;
        st.shared.u64 [%r9], %q10; mov.u32 %r10, %ntid.x; add.u32 %r8, %r8, %r10; setp.lt.u32 %p1, %r8, {0}; @%p1 bra IN;
        bar.sync 0;\n",
        SLOTS * OPERATIONS.len()
    );
    if mode == "divergent" {
        body += "@!%p0 bra BEHIND;\n";
    }
    let guard = if mode == "guarded" { "@!%p0 " } else { "" };
    let base = if space == "shared" { "%r7" } else { "%q7" };
    for (n, (op, source, commutes)) in OPERATIONS.iter().enumerate() {
        if !commutes && any_order {
            continue;
        }
        let at = 8 * SLOTS * n;
        let d = if source.contains('q') { "%q11" } else { "%r11" };
        let (order, op) = match op.strip_prefix("relaxed.gpu.") {
            Some(op) => (".relaxed.gpu", op),
            None => ("", *op),
        };
        let _ = match result {
            true => writeln!(
                body,
                "{guard}atom{order}.{space}.{op} {d}, [{base}+{at}], {source};"
            ),
            false if op.starts_with("exch") || op.starts_with("cas") => continue,
            false => writeln!(
                body,
                "{guard}red{order}.{space}.{op} [{base}+{at}], {source};"
            ),
        };
        if result {
            let ty = if d == "%q11" { "u64" } else { "u32" };
            let _ = writeln!(body, "st.global.{ty} [%q5+{at}], {d};");
        }
    }
    let _ = writeln!(
        body,
        "BEHIND: bar.sync 0; mov.u32 %r8, %r0;
        OUT: mul.wide.u32 %q9, %r8, 8; add.u64 %q9, %q4, %q9; mad.lo.u32 %r9, %r8, 8, %r6; ld.shared.u64 %q10, [%r9];
        {} add.u32 %r8, %r8, %r10; setp.lt.u32 %p1, %r8, {}; @%p1 bra OUT;",
        if space == "shared" { "st.global.u64 [%q9], %q10;" } else { "" },
        SLOTS * OPERATIONS.len(),
    );
    module("", 4, &(body + "ret;"))
}

fn check(space: &str) {
    let mut random = Random(9);
    for result in [false, true] {
        for mode in ["plain", "guarded", "divergent"] {
            for block in [32, 20, 100] {
                let warps = block > 32;
                let Some(both) = Both::new(kernel(space, result, warps, mode)) else {
                    return;
                };
                for pattern in 0..5 {
                    // Results depend on the order of warps if their addresses are equal.
                    if warps && result && pattern != 1 {
                        continue;
                    }
                    let slots = (0..block).map(|i| match pattern {
                        0 => 5,
                        1 => i,
                        2 => i % 3,
                        3 => 127 - i,
                        _ => random.below(9) as u32,
                    });
                    let slots: Vec<u32> = slots.collect();
                    let flags = (0..block)
                        .map(|i| i.wrapping_mul(0x9e37_79b9) >> 31)
                        .collect();
                    let words = 2 * SLOTS * OPERATIONS.len();
                    let memory = (0..words)
                        .map(|i| [i as u32 % 5, 0x4040_0000, 0xffff_fff0, 0x0080_0001][i / 7 % 4])
                        .collect();
                    both.same(1, block, vec![slots, flags, memory, vec![0; words]]);
                }
            }
        }
    }
}

#[test]
fn global_atomics() {
    check("global");
}

#[test]
fn shared_atomics() {
    check("shared");
}

#[test]
fn blocks_add_to_the_same_words() {
    let body = ".reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<3>; ld.param.u64 %q1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        and.b32 %r3, %r1, 7; mul.wide.u32 %q2, %r3, 4; add.u64 %q2, %q2, %q1; mad.lo.u32 %r4, %r1, 3, %r2; mov.u32 %r5, 0;
        L: red.global.add.u32 [%q2], %r4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 30; @%p1 bra L; ret;";
    let Some(both) = Both::new(module("", 1, body)) else {
        return;
    };
    both.same(200, 100, vec![vec![0; 8]]);
}

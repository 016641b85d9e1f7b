//! Loads and stores with all patterns of addresses, and the faults of those that are not allowed.

use std::fmt::Write as _;

use super::{Both, Random, module};
use crate::FaultKind;

/// Accesses: type with vector, registers, bytes.
const ACCESSES: [(&str, &str, u32); 23] = [
    ("u8", "%r0", 1),
    ("s8", "%r0", 1),
    ("u8", "%h0", 1),
    ("s8", "%h0", 1),
    ("u16", "%h0", 2),
    ("s16", "%h0", 2),
    ("s16", "%r0", 2),
    ("u16", "%r0", 2),
    ("f32", "%r0", 4),
    ("b64", "%q0", 8),
    ("v2.u32", "{%r0, %r1}", 8),
    ("v4.f32", "{%r0, %r1, %r2, %r3}", 16),
    ("v2.b64", "{%q0, %q1}", 16),
    ("v2.b16", "{%h0, %h1}", 4),
    ("v2.s8", "{%r0, %r1}", 2),
    ("v4.u8", "{%r0, %r1, %r2, %r3}", 4),
    ("v4.s8", "{%h0, %h1, %h2, %h3}", 4),
    ("v4.s16", "{%r0, %r1, %r2, %r3}", 8),
    ("v4.b16", "{%h0, %h1, %h2, %h3}", 8),
    ("u32", "%q0", 4),
    ("s16", "%q0", 2),
    ("u8", "%q0", 1),
    ("relaxed.gpu.u32", "%r0", 4),
];

/// Bytes of the memory that a kernel accesses, in a buffer or in shared memory.
const BYTES: u32 = 16384;

/// How the accesses are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Guarded,
    Divergent,
}

/// A kernel that loads and stores at the byte offsets of its thread in `p0`, if its flag in `p1` is set, plus `offsets`. The memory is
/// `p2`; a copy in shared memory is written back. The results of loads go to `p3`.
fn kernel(
    space: &str,
    (ty, list, _): (&str, &str, u32),
    offsets: &[i64],
    mode: Mode,
    store: bool,
) -> String {
    let guard = if mode == Mode::Guarded { "@%p0 " } else { "" };
    let shared = space == "shared";
    let (base, address) = match shared {
        true => (
            "mov.u32 %r20, memory; add.u32 %r20, %r20, %r10;".into(),
            "%r20",
        ),
        false => (
            "cvt.s64.s32 %q10, %r10; add.s64 %q10, %q10, %q7;".to_owned(),
            "%q10",
        ),
    };
    let copy = |from: &str| {
        let (load, to) = match from {
            "global" => (
                "ld.global.u32 %r13, [%q11]; st.shared.u32 [%r12], %r13;",
                "IN",
            ),
            _ => (
                "ld.shared.u32 %r13, [%r12]; st.global.u32 [%q11], %r13;",
                "OUT",
            ),
        };
        format!(
            "mov.u32 %r11, %tid.x;
            {to}: mul.wide.u32 %q11, %r11, 4; add.u64 %q11, %q11, %q7; mov.u32 %r12, memory; mad.lo.u32 %r12, %r11, 4, %r12;
            {load} mov.u32 %r14, %ntid.x; add.u32 %r11, %r11, %r14; setp.lt.u32 %p3, %r11, {}; @%p3 bra {to};\n",
            BYTES / 4
        )
    };
    let mut body = format!(
        ".reg .b16 %h<99>; .reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>;
        {} mov.u32 %r9, %tid.x; mul.wide.u32 %q4, %r9, 4;
        ld.param.u64 %q5, [p0]; ld.param.u64 %q6, [p1]; ld.param.u64 %q7, [p2]; ld.param.u64 %q8, [p3];
        add.u64 %q5, %q5, %q4; add.u64 %q6, %q6, %q4; mul.wide.u32 %q4, %r9, 128; add.u64 %q8, %q8, %q4;
        ld.global.u32 %r10, [%q5]; ld.global.u32 %r11, [%q6]; setp.ne.u32 %p0, %r11, 0;
        mad.lo.u32 %r0, %r9, 0x01020304, 0xfe80; not.b32 %r1, %r0; shl.b32 %r2, %r0, 5; neg.s32 %r3, %r0;
        cvt.u16.u32 %h0, %r0; cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u16.u32 %h3, %r3; mul.wide.u32 %q0, %r0, %r1; not.b64 %q1, %q0;\n",
        if shared { format!(".shared .align 16 .b8 memory[{BYTES}];") } else { String::new() },
    );
    if shared {
        body += &copy("global");
        body += "bar.sync 0;\n";
    }
    let _ = writeln!(body, "{base}");
    if mode == Mode::Divergent {
        body += "@!%p0 bra BEHIND;\n";
    }
    let (space, ty) = match ty.strip_prefix("relaxed.gpu.") {
        Some(ty) => (format!("relaxed.gpu.{space}"), ty),
        None => (space.to_owned(), ty),
    };
    for (n, offset) in offsets.iter().enumerate() {
        if store {
            let _ = writeln!(body, "{guard}st.{space}.{ty} [{address}+{offset}], {list};");
            continue;
        }
        let _ = writeln!(body, "{guard}ld.{space}.{ty} {list}, [{address}+{offset}];");
        // The whole destination, and what is next to it.
        let result = if list.contains("%h") {
            "cvt.u32.u16 %r0, %h0; cvt.u32.u16 %r1, %h1; cvt.u32.u16 %r2, %h2; cvt.u32.u16 %r3, %h3;"
        } else if list.contains("%q") {
            "cvt.u32.u64 %r0, %q0; shr.u64 %q2, %q0, 32; cvt.u32.u64 %r1, %q2; cvt.u32.u64 %r2, %q1; shr.u64 %q2, %q1, 32; cvt.u32.u64 %r3, %q2;"
        } else {
            ""
        };
        let _ = writeln!(
            body,
            "{result} st.global.v4.u32 [%q8+{}], {{%r0, %r1, %r2, %r3}};",
            16 * n
        );
    }
    body += "BEHIND: add.u32 %r0, %r0, 1; st.global.u32 [%q8+112], %r0;\n";
    if shared {
        body += "bar.sync 0;\n";
        body += &copy("shared");
    }
    module("", 4, &(body + "ret;"))
}

/// Byte offsets of 100 threads, and their flags; the threads with a flag access elements of `size` bytes below `end`.
fn patterns(size: u32, end: u32) -> Vec<(&'static str, Vec<u32>, Vec<u32>)> {
    let mut random = Random(size.into());
    let last = end / size;
    let flags = |random: &mut Random| {
        (0..100)
            .map(|_| random.below(2) as u32)
            .collect::<Vec<u32>>()
    };
    let some = flags(&mut random);
    let mut shuffled: Vec<u32> = (0..100).collect();
    for i in 0..100 {
        shuffled.swap(i, random.below(i + 1));
    }
    let of = |f: &mut dyn FnMut(u32) -> u32| {
        (0..100)
            .map(|i| f(i).wrapping_mul(size))
            .collect::<Vec<u32>>()
    };
    let all = vec![1; 100];
    vec![
        ("consecutive", of(&mut |i| i), some.clone()),
        ("all consecutive", of(&mut |i| i + 1), all.clone()),
        ("equal", of(&mut |_| 7), some.clone()),
        ("all equal", of(&mut |_| 7), all.clone()),
        ("equal in a row", of(&mut |i| i / 16), some.clone()),
        ("strided", of(&mut |i| 3 * i), some.clone()),
        ("reversed", of(&mut |i| 99 - i), all.clone()),
        ("shuffled", of(&mut |i| shuffled[i as usize]), all.clone()),
        (
            "random",
            of(&mut |_| random.below(100) as u32),
            some.clone(),
        ),
        // Threads without the flag have addresses that are not allowed.
        (
            "consecutive where active",
            of(&mut |i| {
                if some[i as usize] != 0 {
                    i
                } else {
                    0x0100_0000
                }
            }),
            some.clone(),
        ),
        (
            "equal where active",
            of(&mut |i| {
                if some[i as usize] != 0 {
                    9
                } else {
                    i + 0x0100_0000
                }
            }),
            some.clone(),
        ),
        // Rows whose active threads are at the end, or at the start, while the others are beyond it.
        (
            "end",
            of(&mut |i| last.wrapping_sub(5).wrapping_add(i % 16)),
            (0..100).map(|i| u32::from(i % 16 < 5)).collect(),
        ),
        (
            "start",
            of(&mut |i| (i % 16).wrapping_sub(9)),
            (0..100).map(|i| u32::from(i % 16 >= 9)).collect(),
        ),
        (
            "one",
            of(&mut |_| last - 1),
            (0..100).map(|i| u32::from(i % 32 == 19)).collect(),
        ),
        ("none", of(&mut |i| i + 0x0100_0000), vec![0; 100]),
    ]
}

fn contents(offsets: &[u32], flags: &[u32]) -> Vec<Vec<u32>> {
    let mut random = Random(3);
    // Signalling NaNs are among the words.
    let memory = (0..BYTES / 4)
        .map(|i| random.bits() as u32 | [0, 0x7f80_0000, 0x8080_8080][i as usize % 3]);
    vec![
        offsets.to_vec(),
        flags.to_vec(),
        memory.collect(),
        vec![0; 3200],
    ]
}

fn check(space: &str, store: bool) {
    for access in ACCESSES {
        let size = access.2;
        for mode in [Mode::Plain, Mode::Guarded, Mode::Divergent] {
            let one = Both::new(kernel(space, access, &[0], mode, store));
            // The elements of a thread must not be those of another one: the order of their stores is not defined.
            let far = 100 * i64::from(size);
            let several = Both::new(kernel(space, access, &[far, 0, 3 * far, far], mode, store));
            let (Some(one), Some(several)) = (one, several) else {
                return;
            };
            for (name, offsets, flags) in patterns(size, BYTES) {
                let edge = matches!(name, "start" | "end" | "one");
                let outside = edge || name == "none" || name.contains("active");
                let conflict = edge || name == "random" || name.contains("equal");
                for block in [32, 20, 48, 100] {
                    // The order of warps is not defined.
                    if store && conflict && block > 32 || mode == Mode::Plain && outside {
                        continue;
                    }
                    one.same(1, block, contents(&offsets, &flags));
                    if !edge {
                        several.same(1, block, contents(&offsets, &flags));
                    }
                }
            }
        }
    }
}

#[test]
fn global_loads() {
    check("global", false);
}

#[test]
fn global_stores() {
    check("global", true);
}

#[test]
fn shared_loads() {
    check("shared", false);
}

#[test]
fn shared_stores() {
    check("shared", true);
}

#[test]
fn faults() {
    for (space, end) in [("global", BYTES), ("shared", BYTES)] {
        for access in [0, 4, 8, 9, 11, 15, 18, 19, 22].map(|n| ACCESSES[n]) {
            let size = access.2;
            for (lane, mode, store) in [
                (0, Mode::Plain, false),
                (13, Mode::Plain, true),
                (29, Mode::Guarded, false),
                (3, Mode::Divergent, true),
                (18, Mode::Guarded, true),
                (31, Mode::Divergent, false),
            ] {
                for offsets in [&[0][..], &[i64::from(size), 0]] {
                    let Some(both) = Both::new(kernel(space, access, offsets, mode, store)) else {
                        return;
                    };
                    for equal in [false, true] {
                        for (wrong, kind) in [
                            (end, FaultKind::IllegalAddress),
                            (0x7000_0000, FaultKind::IllegalAddress),
                            (
                                size.wrapping_neg().wrapping_mul(2),
                                FaultKind::IllegalAddress,
                            ),
                            (end - 3 * size - 1, FaultKind::MisalignedAddress),
                            (size / 2, FaultKind::MisalignedAddress),
                        ] {
                            if size == 1 && kind == FaultKind::MisalignedAddress {
                                continue;
                            }
                            let mut lanes: Vec<u32> = (0..32).map(|i| i * size).collect();
                            if equal {
                                lanes.fill(wrong);
                            }
                            lanes[lane] = wrong;
                            let flags: Vec<u32> =
                                (0..32).map(|i| u32::from(i % 3 == lane % 3)).collect();
                            let found = both
                                .compare([1; 3], [32, 1, 1], contents(&lanes, &flags))
                                .err()
                                .map(|f| super::address_fault(f.kind));
                            assert_eq!(
                                found,
                                Some(kind),
                                "{space} {access:?} {mode:?} {wrong:#x}\n{}",
                                both.ptx
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_load_replaces_its_address() {
    let body = ".reg .b64 %q<9>; .reg .b32 %r<9>; ld.param.u64 %q1, [p0]; ld.param.u64 %q2, [p1];
        mov.u32 %r1, %tid.x; mul.wide.u32 %q3, %r1, 8; add.u64 %q1, %q1, %q3; add.u64 %q2, %q2, %q3;
        st.global.u64 [%q1], %q2; ld.global.u64 %q1, [%q1]; st.global.u64 [%q1], 5; st.global.u32 [%q1+256], %r1;
        ld.global.u32 %r2, [%q1]; add.u64 %q1, %q1, 512; st.global.u32 [%q1], %r2; ld.global.u32 %r1, [%q1+4]; st.global.u32 [%q1+4], %r1; ret;";
    let Some(both) = Both::new(module("", 2, body)) else {
        return;
    };
    both.same(1, 32, vec![vec![0; 64], vec![0; 256]]);
}

#[test]
fn a_misaligned_access_beside_an_aligned_one() {
    for access in ["ld.global.u32 %r2, [%q1+2]", "st.global.u32 [%q1-6], %r1"] {
        let body = format!(
            ".reg .b64 %q<9>; .reg .b32 %r<9>; ld.param.u64 %q1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %q3, %r1, 4; add.u64 %q1, %q1, %q3;
            add.u64 %q1, %q1, 16; ld.global.u32 %r3, [%q1]; st.global.u32 [%q1+4], %r3; {access}; ld.global.u32 %r4, [%q1+8];
            st.global.u32 [%q1+128], %r4; ret;"
        );
        let Some(both) = Both::new(module("", 1, &body)) else {
            return;
        };
        let found = both.compare([1; 3], [32, 1, 1], vec![vec![3; 256]]);
        assert_eq!(
            found.err().map(|f| f.kind),
            Some(FaultKind::MisalignedAddress)
        );
    }
}

#[test]
fn large_offsets() {
    for (shared, offset) in [
        (false, 0x7fff_0000i64),
        (false, 0x7fff_ff00),
        (false, -0x7fff_0000),
        (false, 0x4000_0000),
        (false, 0x3fff_fffc),
        (false, -0x4000_0000),
        (true, 0x7fff_0000),
        (true, -0x7fff_0000),
    ] {
        // The address without the offset is not allowed.
        let body = format!(
            ".reg .b32 %r<9>; .reg .b64 %q<9>; .shared .align 8 .b64 memory[64]; ld.param.u64 %q1, [p0]; mov.u32 %r1, %tid.x;
            mul.wide.u32 %q2, %r1, 8; add.u64 %q1, %q1, %q2; mov.u64 %q3, {offset}; sub.u64 %q3, %q1, %q3; add.u64 %q4, %q3, %q2;
            mov.u32 %r2, memory; mad.lo.u32 %r2, %r1, 8, %r2; mov.u32 %r3, {}; sub.u32 %r4, %r2, %r3; {} ret;",
            offset as i32,
            match shared {
                true => format!("st.shared.u64 [%r2], %q1; ld.shared.u64 %q5, [%r4+{offset}]; ld.shared.u32 %r5, [%r4+{}]; sub.u64 %q5, %q5, %q1;
                    add.u32 %r5, %r5, 1; st.global.u64 [%q1], %q5;", offset + 4),
                false => format!("st.global.u64 [%q3+{offset}], 77; ld.global.u32 %r5, [%q3+{}]; ld.global.u64 %q5, [%q4+{offset}];
                    add.u32 %r5, %r5, 3; st.global.u32 [%q3+{}], %r5;", offset + 4, offset + 4),
            }
        );
        let Some(both) = Both::new(module("", 1, &body)) else {
            return;
        };
        let _ = both.compare([1; 3], [32, 1, 1], vec![vec![9; 256]]);
    }
}

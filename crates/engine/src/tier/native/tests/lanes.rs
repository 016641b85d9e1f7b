//! Lane functions on special values, in every kind of mask.

use std::fmt::Write as _;

use super::{Both, Random, Words, module, more_lanes};

/// Bounds of integers, distances of shifts, and single-precision numbers near the bounds of conversions and functions.
pub(super) const WORDS: [u32; 65] = [
    0,
    1,
    2,
    5,
    31,
    32,
    33,
    64,
    0x7f,
    0x80,
    0xff80,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    u32::MAX,
    0xffff_fffe,
    0x007f_ffff,
    0x0080_0000,
    0x8040_0000,
    0x3f00_0000,
    0x3eff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x3f7f_ffff,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x4b00_0001,
    0x4eff_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0xcf00_0001,
    0x4f7f_ffff,
    0x4f80_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7fff_ffff,
    0xffc1_2345,
    0x7f80_0001,
    0xffa0_0001,
    0xc2fd_0000,
    0x5eff_ffff,
    0x5f00_0000,
    0xdf00_0000,
    0x5f80_0000,
    0x42fe_0000,
    0x437f_0000,
    0x4380_0000,
    0xc300_0000,
    0xc300_8000,
    0x477f_ff00,
    0x4780_0000,
    // Pairs of half precision.
    0x7c00_3c00,
    0xfc00_7e01,
    0x7bff_0400,
    0x8000_03ff,
    0xfbff_7c01,
    0x3555_0001,
    0x7f80_ff80,
    0x0080_7f7f,
];

/// The same for 64 bits.
pub(super) const LONGS: [u64; 44] = [
    0,
    1,
    63,
    0x8000_0000,
    0xffff_ffff,
    0xffff_ffff_8000_0000,
    u64::MAX,
    i64::MAX as u64,
    1 << 63,
    (1 << 63) + 1,
    0x1_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x3fe0_0000_0000_0000,
    0x3ff0_0000_1000_0000,
    0x3ff0_0000_3000_0000,
    0x47ef_ffff_f000_0000,
    0x47ef_ffff_e000_0000,
    0x3690_0000_0000_0000,
    0x380f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0xfff8_0000_dead_beef,
    0x7ff0_0000_0000_0001,
    0x7ff4_0000_2000_0000,
    0x43df_ffff_ffff_ffff,
    0x43e0_0000_0000_0000,
    0xc3e0_0000_0000_0000,
    0x43f0_0000_0000_0000,
    0x41df_ffff_ffe0_0000,
    0x41e0_0000_0000_0000,
    0x41f0_0000_0000_0000,
    0xc1e0_0000_0020_0000,
    0x3ff8_0000_0000_0000,
    0x4004_0000_0000_0000,
    0xc004_0000_0000_0000,
    (1 << 52) - 1,
    1 << 52,
    1 << 53,
];

/// Instructions with their operands: `d a` are 32 bits wide, `D A` 64 bits, `H h` 16 bits, `P p` predicates. Upper case letters and
/// `d` are destinations where they come first; other operands are text. A letter can be a part of an operand: `!p`, `{h,h}`.
pub(super) fn instructions() -> Vec<String> {
    let mut list = more_lanes::instructions();
    let mut add = |text: String| list.push(text);
    for t in ["u32", "s32"] {
        for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
            add(format!("{op}.{t} d a a"));
        }
        add(format!("mad.lo.{t} d a a a"));
        add(format!("mul.wide.{t} D a a"));
        add(format!("mad.wide.{t} D a a A"));
        add(format!("shr.{t} d a a"));
        add(format!("cvt.rn.f32.{t} d a"));
        add(format!("cvt.rz.f32.{t} d a"));
        add(format!("cvt.rn.f64.{t} D a"));
        for to in [
            "rni", "rzi", "rmi", "rpi", "rni.ftz", "rzi.ftz", "rmi.ftz", "rzi.sat",
        ] {
            add(format!("cvt.{to}.{t}.f32 d a"));
        }
    }
    for t in ["u64", "s64"] {
        for op in ["add", "sub", "mul.lo", "min", "max", "div"] {
            add(format!("{op}.{t} D A A"));
        }
        add(format!("mad.lo.{t} D A A A"));
        add(format!("shr.{t} D A a"));
    }
    for op in ["abs.s32 d a", "neg.s32 d a", "abs.s64 D A", "neg.s64 D A"] {
        add(op.into());
    }
    for op in ["and", "or", "xor"] {
        add(format!("{op}.b32 d a a"));
        add(format!("{op}.b64 D A A"));
        add(format!("{op}.pred P p p"));
    }
    for op in ["not", "mov"] {
        let t = |n| {
            if op == "not" {
                format!("b{n}")
            } else {
                format!("u{n}")
            }
        };
        add(format!("{op}.{} d a", t(32)));
        add(format!("{op}.{} D A", t(64)));
        add(format!("{op}.pred P p"));
    }
    for op in ["shl", "shr"] {
        add(format!("{op}.b32 d a a"));
        add(format!("{op}.b64 D A a"));
        for distance in [0, 1, 31, 32, 63, 64, 255] {
            add(format!("{op}.b32 d a {distance}"));
            add(format!("{op}.b64 D A {distance}"));
        }
    }
    for distance in [31, 32, 64] {
        add(format!("shr.s32 d a {distance}"));
        add(format!("shr.s64 D A {distance}"));
    }
    for table in [0x00, 0xff, 0x96, 0xe8, 0xca, 0x1b, 0x80, 0x7f] {
        add(format!("lop3.b32 d a a a {table}"));
    }
    for (t, registers) in [
        ("b32", "d a a"),
        ("f32", "d a a"),
        ("u64", "D A A"),
        ("f64", "D A A"),
    ] {
        add(format!("selp.{t} {registers} p"));
    }
    for (t, s) in [
        ("s32", "a"),
        ("u32", "a"),
        ("s64", "A"),
        ("u64", "A"),
        ("f32", "a"),
        ("f64", "A"),
    ] {
        for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
            add(format!("setp.{cmp}.{t} P {s} {s}"));
        }
        let more: &[&str] = match t.as_bytes()[0] {
            b'u' => &["lo", "ls", "hi", "hs"],
            b'f' => &["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"],
            _ => &[],
        };
        for cmp in more {
            add(format!("setp.{cmp}.{t} P {s} {s}"));
        }
        add(format!("setp.lt.and.{t} P {s} {s} p"));
    }
    add("setp.eq.b32 P a a".into());
    add("setp.ne.b64 P A A".into());
    add("setp.lt.ftz.f32 P a a".into());
    add("setp.ltu.f32 P a 0f3F800000".into());
    let widths = ["8", "16", "32", "64"];
    for to in widths {
        for from in widths {
            for (d, s) in [("u", "u"), ("u", "s"), ("s", "u"), ("s", "s")] {
                let letter = |w| match w {
                    "8" | "16" => "h",
                    "32" => "a",
                    _ => "A",
                };
                let result = match to {
                    "8" | "16" => "H",
                    "32" => "d",
                    _ => "D",
                };
                add(format!("cvt.{d}{to}.{s}{from} {result} {}", letter(from)));
                if from.len() == 1 || from == "16" {
                    add(format!("cvt.{d}{to}.{s}{from} {result} a"));
                }
            }
        }
    }
    add("cvt.sat.s32.s64 d A".into());
    add("cvt.sat.u32.s32 d a".into());
    add("mul.wide.u16 d h h".into());
    add("mul.wide.s16 d h h".into());
    add("mov.u16 H h".into());
    for ftz in ["", ".ftz"] {
        for sat in ["", ".sat"] {
            for rounding in ["", ".rn", ".rz", ".rm", ".rp"] {
                for op in ["add", "sub", "mul"] {
                    add(format!("{op}{rounding}{ftz}{sat}.f32 d a a"));
                }
                if !rounding.is_empty() {
                    add(format!("fma{rounding}{ftz}{sat}.f32 d a a a"));
                }
            }
            add(format!("cvt{ftz}{sat}.f32.f32 d a"));
        }
        for rounding in ["rn", "rz", "rm", "rp", "approx"] {
            add(format!("div.{rounding}{ftz}.f32 d a a"));
            add(format!("rcp.{rounding}{ftz}.f32 d a"));
            add(format!("sqrt.{rounding}{ftz}.f32 d a"));
        }
        add(format!("div.full{ftz}.f32 d a a"));
        for op in ["rsqrt", "ex2", "lg2", "sin", "cos"] {
            add(format!("{op}.approx{ftz}.f32 d a"));
        }
        for op in ["min", "max"] {
            add(format!("{op}{ftz}.f32 d a a"));
        }
        for op in ["abs", "neg"] {
            add(format!("{op}{ftz}.f32 d a"));
        }
        add(format!("cvt{ftz}.f64.f32 D a"));
        add(format!("cvt.rn{ftz}.f32.f64 d A"));
    }
    add("mad.rn.f32 d a a a".into());
    add("mov.f32 d a".into());
    add("add.f32 d a 0f80000000".into());
    add("cvt.rz.f32.f64 d A".into());
    for op in ["add", "sub", "mul", "div.rn", "min", "max", "add.rz"] {
        add(format!("{op}.f64 D A A"));
    }
    for op in ["rcp.rn", "sqrt.rn", "neg", "abs", "mov"] {
        add(format!("{op}.f64 D A"));
    }
    add("fma.rn.f64 D A A A".into());
    for op in [
        "add.u32 d a 7",
        "sub.s32 d a %tx",
        "mad.lo.u32 d a 3 a",
        "mov.u32 d %tid.x",
        "mov.u32 d 9",
    ] {
        add(op.into());
    }
    for op in [
        "add.s64 D A -5",
        "mul.wide.u32 D a 12",
        "min.s64 D A 0",
        "mov.u64 D 77",
        "and.b32 d a 255",
    ] {
        add(op.into());
    }
    list
}

/// The text of an instruction, with each operand from `register`, which is given its letter and whether it is the destination.
pub(super) fn instruction(row: &str, mut register: impl FnMut(char, bool) -> String) -> String {
    let mut words = row.split(' ');
    let mut text = words.next().unwrap().to_owned();
    for (n, word) in words.enumerate() {
        let letter = word.trim_matches(|c: char| "!{},|_".contains(c)).len() < word.len();
        let letters = letter || word.len() == 1;
        let mut operand = String::new();
        for c in word.chars() {
            match letters && c.is_ascii_alphabetic() {
                true => operand += &register(c, n == 0),
                false => operand.push(c),
            }
        }
        let _ = write!(text, "{}{operand}", if n == 0 { " " } else { ", " });
    }
    text + ";"
}

/// How a test executes instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Guarded,
    GuardedNot,
    Divergent,
    /// In lanes that diverge, under a guard.
    Both,
    /// The destination is the first source of its width.
    InPlace,
}

/// A kernel that executes instructions for the operands of its thread, and stores the results.
fn kernel(rows: &[String], mode: Mode, threads: u32) -> String {
    let mut body = format!(
        ".reg .b16 %h<99>; .reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>; .reg .b32 %tx;
        mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %tx, %tid.x; mad.lo.u32 %r3, %r3, %r4, %tx;
        ld.param.u64 %q3, [p0]; ld.param.u64 %q4, [p1];
        mul.wide.u32 %q5, %r3, 4; add.u64 %q3, %q3, %q5; mul.wide.u32 %q5, %r3, 8; add.u64 %q4, %q4, %q5;
        ld.global.u32 %r0, [%q3]; ld.global.u32 %r1, [%q3+{0}]; ld.global.u32 %r2, [%q3+{1}]; ld.global.u32 %r6, [%q3+{2}];
        mul.wide.u32 %q5, %r3, 4; add.u64 %q6, %q3, %q5;
        ld.global.u64 %q0, [%q6+{3}]; ld.global.u64 %q1, [%q6+{4}]; ld.global.u64 %q2, [%q6+{5}];
        cvt.u16.u32 %h0, %r0; cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2;
        and.b32 %r7, %r6, 1; setp.ne.u32 %p0, %r7, 0; and.b32 %r7, %r6, 2; setp.ne.u32 %p1, %r7, 0;
        and.b32 %r7, %r6, 4; setp.ne.u32 %p2, %r7, 0; add.cc.u32 %r7, %r7, %r7;\n",
        4 * threads,
        8 * threads,
        12 * threads,
        16 * threads,
        24 * threads,
        32 * threads,
    );
    let mut after = String::new();
    let diverge = matches!(mode, Mode::Divergent | Mode::Both);
    let mut operations = String::new();
    for (k, row) in rows.iter().enumerate() {
        let to = k + 10;
        let kind = row.split(' ').nth(1).unwrap();
        let kind = kind.trim_matches(|c: char| !c.is_ascii_alphabetic());
        let in_place = mode == Mode::InPlace;
        let raw = matches!(mode, Mode::GuardedNot | Mode::Both);
        let _ = match kind {
            "d" => writeln!(
                body,
                "xor.b32 %r{to}, %r0, {};",
                if in_place { 0 } else { k }
            ),
            "D" => writeln!(
                body,
                "xor.b64 %q{to}, %q0, {};",
                if in_place { 0 } else { k }
            ),
            "H" => writeln!(body, "mov.b16 %h{to}, %h0;"),
            _ => writeln!(body, "mov.pred %p{to}, %p1;"),
        };
        if raw && kind == "d" {
            // Perhaps a NaN, which the guarded instruction overwrites in some lanes.
            let _ = writeln!(operations, "mul.f32 %r{to}, %r0, %r1;");
        }
        let guard = match mode {
            Mode::Guarded => "@%p0 ",
            Mode::GuardedNot | Mode::Both => "@!%p2 ",
            _ => "",
        };
        let mut next = [0; 4];
        let text = instruction(row, |letter, first| {
            let (n, prefix) = match letter {
                'd' | 'a' => (0, 'r'),
                'D' | 'A' => (1, 'q'),
                'H' | 'h' => (2, 'h'),
                _ => (3, 'p'),
            };
            if first {
                return format!("%{prefix}{to}");
            }
            next[n] += 1;
            match next[n] - 1 {
                0 if in_place && letter.eq_ignore_ascii_case(&kind.chars().next().unwrap()) => {
                    format!("%{prefix}{to}")
                }
                0 if in_place && (letter, kind) == ('a', "d") => format!("%{prefix}{to}"),
                m => format!("%{prefix}{m}"),
            }
        });
        let _ = writeln!(operations, "{guard}{text}");
        let at = u64::from(threads) * 8 * k as u64;
        let _ = match kind {
            "d" => writeln!(after, "st.global.u32 [%q4+{at}], %r{to};"),
            "D" => writeln!(after, "st.global.u64 [%q4+{at}], %q{to};"),
            "H" => writeln!(
                after,
                "cvt.u32.u16 %r7, %h{to}; st.global.u32 [%q4+{at}], %r7;"
            ),
            _ => writeln!(
                after,
                "selp.u32 %r7, 1, 2, %p{to}; st.global.u32 [%q4+{at}], %r7;"
            ),
        };
    }
    if diverge {
        body += "@%p0 bra BEHIND;\n";
    }
    body += &operations;
    body += "BEHIND:\n";
    body += &after;
    module("", 2, &(body + "ret;"))
}

/// The operands of `threads` threads: pairs of special values first, then mixtures, then random ones; and bits for predicates, equal
/// in some rows of 16 lanes.
pub(super) fn operands(threads: usize) -> Vec<u32> {
    let mut random = Random(1);
    let mut words = vec![Vec::new(); 4];
    let mut longs = vec![Vec::new(); 3];
    for i in 0..threads {
        let n = WORDS.len();
        let number = |r: &mut Random| match r.below(3) {
            0 => r.of(&WORDS),
            1 => r.bits() as u32,
            _ => r.bits() as u32 % 0x2000_0000 + 0x3000_0000,
        };
        let long = |r: &mut Random| match r.below(3) {
            0 => r.of(&LONGS),
            1 => r.bits(),
            _ => r.bits() >> 4 | 0x3000_0000_0000_0000,
        };
        let pairs = i < n * n;
        words[0].push(if pairs {
            WORDS[i % n]
        } else {
            number(&mut random)
        });
        words[1].push(if pairs {
            WORDS[i / n]
        } else {
            number(&mut random)
        });
        words[2].push(number(&mut random));
        words[3].push(match i / 16 % 4 {
            0 => 0,
            1 => 7,
            _ => random.bits() as u32,
        });
        let n = LONGS.len();
        let pairs = i < n * n;
        longs[0].push(if pairs {
            LONGS[i % n]
        } else {
            long(&mut random)
        });
        longs[1].push(if pairs {
            LONGS[i / n]
        } else {
            long(&mut random)
        });
        longs[2].push(long(&mut random));
    }
    let longs = longs.concat();
    let halves = longs.iter().flat_map(|l| [*l as u32, (*l >> 32) as u32]);
    words.concat().into_iter().chain(halves).collect()
}

fn check(mode: Mode, blocks: &[u32]) {
    // So many that registers do not suffice, or so few that they do.
    let size = match mode {
        Mode::GuardedNot | Mode::Both => 12,
        _ => 56,
    };
    let rows = instructions();
    let mut different = String::new();
    for rows in rows.chunks(size) {
        for &block in blocks {
            let grid = 4300 / block;
            let threads = (grid * block) as usize;
            let ptx = kernel(rows, mode, grid * block);
            let operands = operands(threads);
            let out = vec![0; 2 * threads * rows.len()];
            let Some(both) = Both::new(ptx) else {
                return;
            };
            let pairs = both.pairs([grid, 1, 1], [block, 1, 1], vec![operands.clone(), out]);
            let pairs: Vec<[Words; 2]> = pairs.collect();
            let each = pairs
                .iter()
                .flat_map(|p| rows.iter().zip(0..).map(move |r| (p, r)));
            for ([expected, found], (row, k)) in each {
                let of = |words: &Words, n: usize| words[1][2 * threads * k + n];
                let Some(n) = (0..2 * threads).find(|&n| of(expected, n) != of(found, n)) else {
                    continue;
                };
                let i = n / 2;
                let words: Vec<u32> = (0..4).map(|s| operands[s * threads + i]).collect();
                let longs: Vec<u32> = (0..3)
                    .flat_map(|s| operands[4 * threads + 2 * (s * threads + i)..][..2].to_vec())
                    .collect();
                let [e, f] = [of(expected, n), of(found, n)];
                let _ = writeln!(
                    different,
                    "{row}, block {block}, thread {i}, half {}: {f:#x}, expected {e:#x}; operands {words:x?} {longs:x?}",
                    n % 2
                );
            }
        }
    }
    assert!(different.is_empty(), "{mode:?}\n{different}");
}

#[test]
fn all_lanes() {
    check(Mode::Plain, &[32]);
}

#[test]
fn lanes_of_partial_warps() {
    check(Mode::Plain, &[20, 48, 100]);
}

#[test]
fn lanes_under_a_guard() {
    check(Mode::Guarded, &[32, 100]);
}

#[test]
fn lanes_under_a_negated_guard() {
    check(Mode::GuardedNot, &[48]);
}

#[test]
fn lanes_that_diverge() {
    check(Mode::Divergent, &[32, 20]);
}

#[test]
fn lanes_that_diverge_under_a_guard() {
    check(Mode::Both, &[32, 100]);
}

#[test]
fn destinations_that_are_sources() {
    check(Mode::InPlace, &[32, 48]);
}

#[test]
fn sums_with_saturation_of_spilled_sources() {
    let mut body = String::from(
        ".reg .b32 %r<99>; .reg .b64 %q<9>; ld.param.u64 %q1, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %q2, %r0, 4;
        add.u64 %q1, %q1, %q2;\n",
    );
    let each = |body: &mut String, line: fn(u32, u32) -> String| {
        (1..41).for_each(|n| body.push_str(&line(n, 128 * n)));
    };
    each(&mut body, |n, at| {
        format!("ld.global.f32 %r{n}, [%q1+{at}];\n")
    });
    each(&mut body, |n, _| {
        format!(
            "fma.rn.sat.f32 %r{n}, %r{n}, %r{}, %r{};\n",
            n % 40 + 1,
            (n + 7) % 40 + 1
        )
    });
    each(&mut body, |n, at| {
        format!("st.global.f32 [%q1+{at}], %r{n};\n")
    });
    let Some(both) = Both::new(module("", 1, &(body + "ret;"))) else {
        return;
    };
    let numbers = (0..41 * 32).map(|i| (i as f32 / 1312.0).to_bits());
    both.same(1, 32, vec![numbers.collect()]);
}

#[test]
fn guarded_instructions_overwrite_nans() {
    // The word of all ones has the pattern of a NaN, but is an integer.
    let writes = [
        "@%p1 mov.u32 %r1, %r3;",
        "@%p1 mov.u32 %r1, -1;",
        "@%p1 cvt.u32.s32 %r1, %r3;",
        "@%p1 ld.global.u32 %r1, [%q1];",
        "@%p1 atom.global.add.u32 %r1, [%q1], 0;",
        "@%p1 atom.global.or.b32 %r1, [%q1], 0;",
        "@%p1 div.u32 %r1, %r3, %r4;",
        "@%p1 div.u32 %r1, %r3, %r5;",
        "@%p1 ld.global.u32 %r1, [%q4+4];",
        "@%p1 ld.global.u32 %r1, [%q5+4];",
        "@%p1 ld.global.u16 %r1, [%q4+4];",
        "@%p1 ld.shared.u32 %r1, [%r6];",
        "@%p1 atom.shared.add.u32 %r1, [%r6], 0;",
        "@%p1 ld.global.v2.u32 {%r1, %r5}, [%q3];",
    ];
    let mut wrong = Vec::new();
    for write in writes {
        let body = format!(
            ".shared .b32 memory; .reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<3>; ld.param.u64 %q1, [p0]; ld.param.u64 %q3, [p1];
            mov.u32 %r0, %tid.x; mul.wide.u32 %q2, %r0, 4; add.u64 %q1, %q1, %q2; mul.wide.u32 %q2, %r0, 8; add.u64 %q3, %q3, %q2;
            and.b32 %r2, %r0, 1; setp.eq.u32 %p1, %r2, 0; ld.global.u32 %r3, [%q1]; mov.u32 %r4, 1; mov.u32 %r5, 0;
            sub.u64 %q4, %q3, %q2; shl.b32 %r6, %r0, 3; sub.u32 %r6, 248, %r6; cvt.u64.u32 %q5, %r6; add.u64 %q4, %q4, %q5; sub.u64 %q5, %q3, %q2;
            mov.u32 %r6, memory; st.shared.u32 [%r6], %r3;
            add.f32 %r1, %r3, %r3; {write} st.global.u32 [%q1], %r1; st.global.u32 [%q3], %r5; ret;"
        );
        let Some(both) = Both::new(module("", 2, &body)) else {
            return;
        };
        let contents = vec![vec![u32::MAX; 32], vec![u32::MAX; 64]];
        for [expected, found] in both.pairs([1; 3], [32, 1, 1], contents) {
            if expected != found {
                wrong.push((write, expected, found));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:x?}");
}

#[test]
fn blocks_of_three_dimensions() {
    let body = ".reg .b32 %r<19>; .reg .b64 %q<9>; .reg .pred %p<3>; ld.param.u64 %q1, [p0];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ntid.x;
        mov.u32 %r7, %ntid.y; mov.u32 %r8, %ntid.z; mov.u32 %r9, %nctaid.x; mad.lo.u32 %r10, %r5, %r9, %r4; mad.lo.u32 %r10, %r10, %r8, %r3;
        mad.lo.u32 %r10, %r10, %r7, %r2; mad.lo.u32 %r10, %r10, %r6, %r1; mul.wide.u32 %q2, %r10, 4; add.u64 %q1, %q1, %q2;
        setp.gt.u32 %p1, %r1, %r3; mul.lo.u32 %r11, %r2, 100; @%p1 bra L; mad.lo.u32 %r11, %r3, 10000, %r11; cvt.rn.f32.u32 %r12, %r2;
        add.u32 %r11, %r11, %r12; L: add.u32 %r11, %r11, %r1; st.global.u32 [%q1], %r11; ret;";
    let Some(both) = Both::new(module("", 1, body)) else {
        return;
    };
    for block in [[5, 3, 2], [1, 7, 9], [16, 2, 4], [3, 1, 31]] {
        let threads = 6 * block.iter().product::<u32>();
        both.same_in([3, 2, 1], block, vec![vec![0; threads as usize]]);
    }
}

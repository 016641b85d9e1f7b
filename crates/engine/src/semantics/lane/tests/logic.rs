//! Logic, shifts, bit fields, moves, comparisons and selections.

use super::half::value;
use super::reference::{BF16, F16};
use super::{check, d, f, u};

#[test]
fn bitwise() {
    for (t, r, all) in [
        ("b16", 'h', 0xffff_u128),
        ("b32", 'r', 0xffff_ffff),
        ("b64", 'd', u128::from(u64::MAX)),
        ("pred", 'p', 1),
    ] {
        check(&format!("and.{t} %{r}0, %{r}1, %{r}2;"), 20, |i| {
            vec![i[0] & i[1]]
        });
        check(&format!("or.{t} %{r}0, %{r}1, %{r}2;"), 20, |i| {
            vec![i[0] | i[1]]
        });
        check(&format!("xor.{t} %{r}0, %{r}1, %{r}2;"), 20, |i| {
            vec![i[0] ^ i[1]]
        });
        check(&format!("not.{t} %{r}0, %{r}1;"), 20, |i| vec![!i[0] & all]);
        if t != "pred" {
            check(&format!("cnot.{t} %{r}0, %{r}1;"), 50, |i| {
                vec![u128::from(i[0] == 0)]
            });
        }
    }
}

#[test]
fn lookup_tables() {
    for table in 0..256_u32 {
        check(&format!("lop3.b32 %r0, %r1, %r2, %r3, {table};"), 2, |i| {
            let mut d = 0;
            for n in 0..32 {
                let bit = |v: u128| (v >> n & 1) as u32;
                d |= u128::from(table >> (bit(i[0]) << 2 | bit(i[1]) << 1 | bit(i[2])) & 1) << n;
            }
            vec![d]
        });
    }
    check("lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 0x80, %p1;", 30, |i| {
        let v = i[0] & i[1] & i[2];
        vec![v, u128::from(v != 0 || i[3] != 0)]
    });
    check(
        "lop3.and.b32 %r0|%p0, %r1, %r2, %r3, 0x3c, !%p1;",
        30,
        |i| {
            let v = i[0] ^ i[1];
            vec![v, u128::from(v != 0 && i[3] == 0)]
        },
    );
}

#[test]
fn shifts() {
    let wide = |v: u128, bits: u32| {
        if v >> (bits - 1) & 1 != 0 {
            v as i128 - (1 << bits)
        } else {
            v as i128
        }
    };
    for (bits, r) in [(16_u32, 'h'), (32, 'r'), (64, 'd')] {
        let m = (1_u128 << bits) - 1;
        let n = move |v: u128| u(v).min(bits);
        check(&format!("shl.b{bits} %{r}0, %{r}1, %r2;"), 100, move |i| {
            vec![i[0] << n(i[1]) & m]
        });
        check(&format!("shr.u{bits} %{r}0, %{r}1, %r2;"), 100, move |i| {
            vec![i[0] >> n(i[1])]
        });
        check(&format!("shr.b{bits} %{r}0, %{r}1, %r2;"), 100, move |i| {
            vec![i[0] >> n(i[1])]
        });
        check(&format!("shr.s{bits} %{r}0, %{r}1, %r2;"), 100, move |i| {
            vec![(wide(i[0], bits) >> n(i[1])) as u128 & m]
        });
    }
    let join = |i: &[u128]| i[1] << 32 | i[0];
    check("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 100, |i| {
        vec![join(i) << (i[2] & 31) >> 32 & 0xffff_ffff]
    });
    check("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", 100, |i| {
        vec![join(i) << i[2].min(32) >> 32 & 0xffff_ffff]
    });
    check("shf.r.wrap.b32 %r0, %r1, %r2, %r3;", 100, |i| {
        vec![join(i) >> (i[2] & 31) & 0xffff_ffff]
    });
    check("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 100, |i| {
        vec![join(i) >> i[2].min(32) & 0xffff_ffff]
    });
}

#[test]
fn counting() {
    for (bits, r) in [(32_u32, 'r'), (64, 'd')] {
        check(&format!("popc.b{bits} %r0, %{r}1;"), 50, |i| {
            vec![u128::from(i[0].count_ones())]
        });
        check(&format!("clz.b{bits} %r0, %{r}1;"), 50, move |i| {
            vec![u128::from(i[0].leading_zeros() - (128 - bits))]
        });
        check(&format!("brev.b{bits} %{r}0, %{r}1;"), 50, move |i| {
            vec![i[0].reverse_bits() >> (128 - bits)]
        });
        for signed in [false, true] {
            let t = if signed { 's' } else { 'u' };
            let find = move |v: u128| {
                let sign = if signed { v >> (bits - 1) & 1 } else { 0 };
                (0..bits).rev().find(|&n| v >> n & 1 != sign)
            };
            check(&format!("bfind.{t}{bits} %r0, %{r}1;"), 50, move |i| {
                vec![u128::from(find(i[0]).unwrap_or(u32::MAX))]
            });
            check(
                &format!("bfind.shiftamt.{t}{bits} %r0, %{r}1;"),
                50,
                move |i| vec![u128::from(find(i[0]).map_or(u32::MAX, |n| bits - 1 - n))],
            );
        }
    }
}

#[test]
fn nth_set_bit() {
    check("fns.b32 %r0, %r1, %r2, %r3;", 300, |i| {
        let (mask, base, n) = (u(i[0]), u(i[1]) & 31, u(i[2]) as i32);
        let found = if n == 0 {
            (mask >> base & 1 != 0).then_some(base)
        } else if n > 0 {
            (base..32)
                .filter(|&b| mask >> b & 1 != 0)
                .nth(n as usize - 1)
        } else {
            (0..=base)
                .rev()
                .filter(|&b| mask >> b & 1 != 0)
                .nth(n.unsigned_abs() as usize - 1)
        };
        vec![u128::from(found.unwrap_or(u32::MAX))]
    });
}

#[test]
fn fields() {
    for (bits, r) in [(32_u32, 'r'), (64, 'd')] {
        for signed in [false, true] {
            let t = if signed { 's' } else { 'u' };
            check(
                &format!("bfe.{t}{bits} %{r}0, %{r}1, %r2, %r3;"),
                300,
                move |i| {
                    // The loop of the PTX ISA.
                    let (pos, len) = (u(i[1]) & 0xff, u(i[2]) & 0xff);
                    let msb = bits - 1;
                    let sign = if !signed || len == 0 {
                        0
                    } else {
                        i[0] >> (pos + len - 1).min(msb) & 1
                    };
                    let mut d = 0;
                    for n in 0..bits {
                        let bit = if n < len && pos + n <= msb {
                            i[0] >> (pos + n) & 1
                        } else {
                            sign
                        };
                        d |= bit << n;
                    }
                    vec![d]
                },
            );
        }
        check(
            &format!("bfi.b{bits} %{r}0, %{r}1, %{r}2, %r3, %r4;"),
            300,
            move |i| {
                let (pos, len) = (u(i[2]) & 0xff, u(i[3]) & 0xff);
                let mut d = i[1];
                for n in 0..len {
                    if pos + n < bits {
                        d = d & !(1 << (pos + n)) | (i[0] >> n & 1) << (pos + n);
                    }
                }
                vec![d]
            },
        );
    }
    check("bmsk.clamp.b32 %r0, %r1, %r2;", 100, |i| {
        let ones = (1_u128 << i[1].min(32)) - 1;
        vec![ones << i[0].min(32) & 0xffff_ffff]
    });
    check("bmsk.wrap.b32 %r0, %r1, %r2;", 100, |i| {
        vec![((1_u128 << (i[1] & 31)) - 1) << (i[0] & 31) & 0xffff_ffff]
    });
    for signed in [false, true] {
        let t = if signed { "s32" } else { "u32" };
        for wrap in [false, true] {
            let name = format!(
                "szext.{}.{t} %r0, %r1, %r2;",
                if wrap { "wrap" } else { "clamp" }
            );
            check(&name, 100, move |i| {
                let n = if wrap { u(i[1]) & 31 } else { u(i[1]).min(32) };
                let low = i[0] & ((1 << n) - 1);
                let negative = signed && n > 0 && low >> (n - 1) != 0;
                vec![(if negative { low | !((1 << n) - 1) } else { low }) & 0xffff_ffff]
            });
        }
    }
}

#[test]
fn permutations() {
    let byte = |i: &[u128], n: u128| (i[1] << 32 | i[0]) >> (8 * (n & 7)) & 0xff;
    check("prmt.b32 %r0, %r1, %r2, %r3;", 200, |i| {
        let one = |k: u32| {
            let n = i[2] >> (4 * k) & 15;
            let b = byte(i, n);
            if n & 8 != 0 {
                if b >> 7 != 0 { 0xff } else { 0 }
            } else {
                b
            }
        };
        vec![(0..4).fold(0, |d, k| d | one(k) << (8 * k))]
    });
    let modes: [(&str, [[u128; 4]; 4]); 6] = [
        (
            "f4e",
            [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
        ),
        (
            "b4e",
            [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
        ),
        ("rc8", [[0; 4], [1; 4], [2; 4], [3; 4]]),
        (
            "ecl",
            [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
        ),
        (
            "ecr",
            [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
        ),
        (
            "rc16",
            [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
        ),
    ];
    for (name, table) in modes {
        check(&format!("prmt.b32.{name} %r0, %r1, %r2, %r3;"), 50, |i| {
            let row = table[(i[2] & 3) as usize];
            vec![(0..4).fold(0, |d, k| d | byte(i, row[k]) << (8 * k))]
        });
    }
}

#[test]
fn moves() {
    check("mov.b32 %r0, %r1;", 5, |i| vec![i[0]]);
    check("mov.b64 %d0, %d1;", 5, |i| vec![i[0]]);
    check("mov.b128 %q0, %q1;", 5, |i| vec![i[0]]);
    check("mov.pred %p0, %p1;", 5, |i| vec![i[0]]);
    check("mov.b16 %h0, %h1;", 5, |i| vec![i[0]]);
    check("mov.b32 %r0, {%h1, %h2};", 5, |i| vec![i[0] | i[1] << 16]);
    check("mov.b64 %d0, {%r1, %r2};", 5, |i| vec![i[0] | i[1] << 32]);
    check("mov.b64 %d0, {%h1, %h2, %h3, %h4};", 5, |i| {
        vec![i[0] | i[1] << 16 | i[2] << 32 | i[3] << 48]
    });
    check("mov.b128 %q0, {%d1, %d2};", 5, |i| vec![i[0] | i[1] << 64]);
    check("mov.b32 {%h0, %h1}, %r2;", 5, |i| {
        vec![i[0] & 0xffff, i[0] >> 16]
    });
    check("mov.b64 {%r0, %r1}, %d2;", 5, |i| {
        vec![i[0] & 0xffff_ffff, i[0] >> 32]
    });
    check("mov.b64 {_, %r1}, %d2;", 5, |i| {
        vec![i[0] & 0xffff_ffff, i[0] >> 32]
    });
    check("mov.b128 {%d0, %d1}, %q2;", 5, |i| {
        vec![i[0] & u128::from(u64::MAX), i[0] >> 64]
    });
}

/// Result of a comparison.
fn compare(name: &str, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let Some(o) = order else {
        return name.ends_with('u') && name.len() == 3 || name == "nan";
    };
    match name {
        "eq" | "equ" => o == Equal,
        "ne" | "neu" => o != Equal,
        "lt" | "ltu" | "lo" => o == Less,
        "le" | "leu" | "ls" => o != Greater,
        "gt" | "gtu" | "hi" => o == Greater,
        "ge" | "geu" | "hs" => o != Less,
        "num" => true,
        _ => false,
    }
}
const ORDERED: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const FLOATING: [&str; 14] = [
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

fn order_of(t: &str, a: u128, b: u128) -> Option<std::cmp::Ordering> {
    let z = |x: f32| if x.is_subnormal() { 0.0 } else { x };
    match t {
        "f32" => f(a).partial_cmp(&f(b)),
        "ftz.f32" => z(f(a)).partial_cmp(&z(f(b))),
        "f64" => d(a).partial_cmp(&d(b)),
        "f16" => value(a, F16).partial_cmp(&value(b, F16)),
        "bf16" => value(a, BF16).partial_cmp(&value(b, BF16)),
        "s16" => Some((a as i16).cmp(&(b as i16))),
        "s32" => Some((a as i32).cmp(&(b as i32))),
        "s64" => Some((a as i64).cmp(&(b as i64))),
        _ => Some(a.cmp(&b)),
    }
}

#[test]
fn comparisons() {
    let types = [
        ("u16", 'h'),
        ("s16", 'h'),
        ("u32", 'r'),
        ("s32", 'r'),
        ("u64", 'd'),
        ("s64", 'd'),
        ("b32", 'r'),
        ("f32", 'r'),
        ("ftz.f32", 'r'),
        ("f64", 'd'),
        ("f16", 'h'),
        ("bf16", 'h'),
    ];
    for (t, r) in types {
        let names: &[&str] = if t.contains('f') { &FLOATING } else { &ORDERED };
        let names = if t == "b32" { &names[..2] } else { names };
        for &name in names {
            check(&format!("setp.{name}.{t} %p0, %{r}1, %{r}2;"), 30, |i| {
                vec![u128::from(compare(name, order_of(t, i[0], i[1])))]
            });
            // Comparisons of half-precision numbers write one predicate.
            let both = !t.ends_with("f16");
            let pair = if both { "%p0|%p1" } else { "%p0" };
            let results = |c: bool, q: bool| {
                let all = [u128::from(c), u128::from(q)];
                all[..1 + usize::from(both)].to_vec()
            };
            check(
                &format!("setp.{name}.and.{t} {pair}, %{r}1, %{r}2, !%p3;"),
                10,
                |i| {
                    let (c, p) = (compare(name, order_of(t, i[0], i[1])), i[2] == 0);
                    results(c && p, !c && p)
                },
            );
            check(
                &format!("setp.{name}.xor.{t} %p0, %{r}1, %{r}2, %p3;"),
                10,
                |i| {
                    let c = compare(name, order_of(t, i[0], i[1]));
                    vec![u128::from(c ^ (i[2] != 0)), 0]
                },
            );
            check(&format!("setp.{name}.{t} {pair}, %{r}1, %{r}2;"), 10, |i| {
                let c = compare(name, order_of(t, i[0], i[1]));
                results(c, !c)
            });
        }
        for (out, yes) in [
            ("u32", 0xffff_ffff_u128),
            ("s32", 0xffff_ffff),
            ("f32", 0x3f80_0000),
        ] {
            if t == "b32" || t.ends_with("f16") && out == "f32" {
                continue;
            }
            let (z, plain) = t.strip_prefix("ftz.").map_or(("", t), |p| (".ftz", p));
            check(
                &format!("set.le.or{z}.{out}.{plain} %r0, %{r}1, %{r}2, %p3;"),
                10,
                |i| {
                    let c = compare("le", order_of(t, i[0], i[1]));
                    vec![if c || i[2] != 0 { yes } else { 0 }]
                },
            );
        }
    }
    for name in ["lo", "ls", "hi", "hs"] {
        check(&format!("setp.{name}.u32 %p0, %r1, %r2;"), 10, |i| {
            vec![u128::from(compare(name, Some(i[0].cmp(&i[1]))))]
        });
    }
    check("set.lt.f32.f32 %r0, %r1, %r2;", 30, |i| {
        vec![if f(i[0]) < f(i[1]) { 0x3f80_0000 } else { 0 }]
    });
    check("set.eq.f16.f16 %h0, %h1, %h2;", 30, |i| {
        vec![if value(i[0], F16) == value(i[1], F16) {
            0x3c00
        } else {
            0
        }]
    });
    check("set.gtu.bf16x2.bf16x2 %r0, %r1, %r2;", 30, |i| {
        let one = |s: u32| {
            let greater = value(i[0] >> s, BF16).partial_cmp(&value(i[1] >> s, BF16));
            if compare("gtu", greater) {
                0x3f80_u128 << s
            } else {
                0
            }
        };
        vec![one(0) | one(16)]
    });
    check("setp.lt.f16x2 %p0|%p1, %r1, %r2;", 30, |i| {
        let one = |s: u32| u128::from(value(i[0] >> s, F16) < value(i[1] >> s, F16));
        vec![one(0), one(16)]
    });
}

#[test]
fn selections() {
    check("selp.b16 %h0, %h1, %h2, %p0;", 10, |i| {
        vec![if i[2] != 0 { i[0] } else { i[1] }]
    });
    check("selp.b32 %r0, %r1, %r2, %p0;", 10, |i| {
        vec![if i[2] != 0 { i[0] } else { i[1] }]
    });
    check("selp.f64 %d0, %d1, %d2, %p0;", 10, |i| {
        vec![if i[2] != 0 { i[0] } else { i[1] }]
    });
    check("slct.u32.s32 %r0, %r1, %r2, %r3;", 20, |i| {
        vec![if u(i[2]) as i32 >= 0 { i[0] } else { i[1] }]
    });
    check("slct.b64.f32 %d0, %d1, %d2, %r3;", 20, |i| {
        vec![if f(i[2]) >= 0.0 { i[0] } else { i[1] }]
    });
    check("slct.ftz.f32.f32 %r0, %r1, %r2, %r3;", 20, |i| {
        let c = f(i[2]);
        vec![if c >= 0.0 || c.is_subnormal() {
            i[0]
        } else {
            i[1]
        }]
    });
}

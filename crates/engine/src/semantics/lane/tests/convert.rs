//! Conversions between all types.

use super::half::value;
use super::reference::{BF16, F16, F32, F64, MODES, Number, from_f64, round};
use super::{check, d, double, exists, f};
use crate::semantics::lane::rounding::{Format, RM, RN, RNA, RP, RZ};

const INTEGERS: [(&str, u32, bool); 8] = [
    ("u8", 8, false),
    ("s8", 8, true),
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];
const FLOATS: [(&str, Format, u64); 4] = [
    ("f16", F16, 0x7fff),
    ("bf16", BF16, 0x7fff),
    ("f32", F32, 0x7fff_ffff),
    ("f64", F64, 0xfff8_0000_0000_0000),
];

fn register(bits: u32) -> char {
    match bits {
        8 | 16 => 'h',
        32 => 'r',
        _ => 'd',
    }
}
fn number(v: u128, bits: u32, signed: bool) -> i128 {
    let v = v & ((1 << bits) - 1);
    if signed && v >> (bits - 1) != 0 {
        v as i128 - (1 << bits)
    } else {
        v as i128
    }
}
fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}
/// A value of an integer type in a register of at least that width.
fn element(v: i128, bits: u32, signed: bool, register: u32) -> Vec<u128> {
    vec![number(v as u128, bits, signed) as u128 & ((1 << register) - 1)]
}
fn bits_of(f: Format) -> u32 {
    f.fraction + f.exponent + 1
}
/// Value of an encoding.
fn real(v: u128, g: Format) -> f64 {
    match bits_of(g) {
        16 => value(v, g),
        32 => f64::from(f(v)),
        _ => d(v),
    }
}

#[test]
fn integers_to_integers() {
    for (dt, db, ds) in INTEGERS {
        for (st, sb, ss) in INTEGERS {
            let (rd, rs) = (register(db), register(sb));
            check(&format!("cvt.{dt}.{st} %{rd}0, %{rs}1;"), 20, |i| {
                element(number(i[0], sb, ss), db, ds, db.max(16))
            });
            let (low, high) = range(db, ds);
            let (least, most) = range(sb, ss);
            let text = format!("cvt.sat.{dt}.{st} %{rd}0, %{rs}1;");
            // Only where a value can be out of range.
            assert_eq!(exists(&text), least < low || most > high, "{text}");
            if exists(&text) {
                check(&text, 20, |i| {
                    element(number(i[0], sb, ss).clamp(low, high), db, ds, db.max(16))
                });
            }
            // A register that is wider than the type: the value is extended according to the type.
            if db < 32 {
                check(&format!("cvt.{dt}.{st} %r0, %{rs}1;"), 20, |i| {
                    element(number(i[0], sb, ss), db, ds, 32)
                });
            }
        }
    }
}

#[test]
fn floats_to_integers() {
    type Round = fn(f64) -> f64;
    let modes: [(&str, Round); 4] = [
        ("rni", f64::round_ties_even),
        ("rzi", f64::trunc),
        ("rmi", f64::floor),
        ("rpi", f64::ceil),
    ];
    for (dt, db, ds) in INTEGERS {
        for (st, g, _) in FLOATS {
            for (m, integral) in modes {
                let (rd, rs) = (register(db), register(bits_of(g)));
                let text = format!("cvt.{m}.{dt}.{st} %{rd}0, %{rs}1;");
                // PTX wants an 8-bit register here.
                assert_eq!(exists(&text), st != "bf16" || db > 8, "{text}");
                if !exists(&text) {
                    continue;
                }
                check(&text, 40, |i| {
                    let x = real(i[0], g);
                    let (low, high) = range(db, ds);
                    let v = if x.is_nan() {
                        if st == "f64" || db == 64 {
                            1 << (db - 1)
                        } else {
                            0
                        }
                    } else {
                        (integral(x) as i128).clamp(low, high)
                    };
                    element(v, db, ds, db.max(16))
                });
            }
        }
    }
    check("cvt.rni.ftz.s32.f32 %r0, %r1;", 20, |i| {
        element(f64::from(f(i[0])).round_ties_even() as i128, 32, true, 32)
            .into_iter()
            .map(|v| {
                if f(i[0]).is_nan() {
                    0
                } else if f(i[0]) >= 2_147_483_648.0 {
                    0x7fff_ffff
                } else if f(i[0]) < -2_147_483_648.0 {
                    0x8000_0000
                } else {
                    v
                }
            })
            .collect()
    });
}

#[test]
fn integers_to_floats() {
    for (dt, g, _) in FLOATS {
        for (st, sb, ss) in INTEGERS {
            for (m, mode) in MODES {
                let (rd, rs) = (register(bits_of(g)), register(sb));
                let text = format!("cvt.{m}.{dt}.{st} %{rd}0, %{rs}1;");
                // PTX wants an 8-bit register here.
                assert_eq!(exists(&text), dt != "bf16" || sb > 8, "{text}");
                if !exists(&text) {
                    continue;
                }
                check(&text, 40, |i| {
                    let v = number(i[0], sb, ss);
                    vec![u128::from(round(
                        Number {
                            negative: v < 0,
                            sig: v.unsigned_abs(),
                            exp: 0,
                        },
                        g,
                        mode,
                    ))]
                });
            }
        }
    }
}

#[test]
fn floats_to_floats() {
    for (dt, g, nan) in FLOATS {
        for (st, h, _) in FLOATS {
            if dt == st {
                continue;
            }
            let (rd, rs) = (register(bits_of(g)), register(bits_of(h)));
            let widening = bits_of(g) > bits_of(h);
            for (m, mode) in MODES {
                let m = if widening {
                    String::new()
                } else {
                    format!(".{m}")
                };
                check(&format!("cvt{m}.{dt}.{st} %{rd}0, %{rs}1;"), 200, |i| {
                    vec![u128::from(from_f64(real(i[0], h), g, mode, nan))]
                });
                let one = real(u128::from(from_f64(1.0, g, RN, 0)), g);
                let text = format!("cvt{m}.sat.{dt}.{st} %{rd}0, %{rs}1;");
                if !exists(&text) {
                    assert!([dt, st].contains(&"bf16"), "{text}");
                    continue;
                }
                check(&text, 50, |i| {
                    let x = real(i[0], h);
                    let x = if x.is_nan() || x <= 0.0 {
                        0.0
                    } else {
                        x.min(one)
                    };
                    vec![u128::from(from_f64(x, g, mode, nan))]
                });
            }
        }
    }
}

#[test]
fn integral_values() {
    check("cvt.rni.f32.f32 %r0, %r1;", 100, |i| {
        super::single(f(i[0]).round_ties_even())
    });
    check("cvt.rzi.f32.f32 %r0, %r1;", 100, |i| {
        super::single(f(i[0]).trunc())
    });
    check("cvt.rmi.f32.f32 %r0, %r1;", 100, |i| {
        super::single(f(i[0]).floor())
    });
    check("cvt.rpi.f32.f32 %r0, %r1;", 100, |i| {
        super::single(f(i[0]).ceil())
    });
    check("cvt.rni.f64.f64 %d0, %d1;", 100, |i| {
        double(d(i[0]).round_ties_even())
    });
    check("cvt.rmi.f64.f64 %d0, %d1;", 100, |i| {
        double(d(i[0]).floor())
    });
    check("cvt.rni.f16.f16 %h0, %h1;", 100, |i| {
        vec![u128::from(from_f64(
            value(i[0], F16).round_ties_even(),
            F16,
            RN,
            0x7fff,
        ))]
    });
    check("cvt.sat.f32.f32 %r0, %r1;", 100, |i| {
        let x = f(i[0]);
        super::single(if x.is_nan() || x <= 0.0 {
            0.0
        } else {
            x.min(1.0)
        })
    });
    check("cvt.ftz.f32.f32 %r0, %r1;", 100, |i| {
        let x = f(i[0]);
        super::single(if x.is_subnormal() {
            0.0_f32.copysign(x)
        } else {
            x
        })
    });
}

/// Single precision to half precision for every bit pattern of a few exponents.
#[test]
fn sweep_to_half() {
    for (m, mode) in MODES {
        for (t, g) in [("f16", F16), ("bf16", BF16)] {
            let test = super::Test::new(&format!("cvt.{m}.{t}.f32 %h0, %r1;"));
            // All exponents and signs, with significands around the points where the result changes.
            for head in (0..0x200_u128).flat_map(|e| {
                [
                    0, 0x1000, 0x8000, 0x3f_ffff, 0x40_0000, 0x7f_e000, 0x7f_f000,
                ]
                .map(|s| e << 23 | s)
            }) {
                let inputs: Vec<Vec<u128>> = (0..32_u128)
                    .map(|n| vec![(head + n).wrapping_sub(16) & 0xffff_ffff])
                    .collect();
                let expected: Vec<Vec<u128>> = inputs
                    .iter()
                    .map(|i| vec![u128::from(from_f64(f64::from(f(i[0])), g, mode, 0x7fff))])
                    .collect();
                test.run(0, &inputs, u32::MAX, &expected);
            }
        }
    }
}

#[test]
fn pairs() {
    for (t, g) in [("f16", F16), ("bf16", BF16)] {
        for (m, mode) in [("rn", RN), ("rz", RZ)] {
            for relu in [false, true] {
                let name = format!(
                    "cvt.{m}{}.{t}x2.f32 %r0, %r1, %r2;",
                    if relu { ".relu" } else { "" }
                );
                check(&name, 100, |i| {
                    let one = |v: u128| {
                        let h = from_f64(f64::from(f(v)), g, mode, 0x7fff);
                        u128::from(if relu && h >> 15 != 0 { 0 } else { h })
                    };
                    vec![one(i[0]) << 16 | one(i[1])]
                });
            }
        }
    }
    check("cvt.rn.satfinite.f16.f32 %h0, %r1;", 100, |i| {
        let h = from_f64(f64::from(f(i[0])), F16, RN, 0x7fff);
        vec![u128::from(if h & 0x7fff == 0x7c00 { h - 1 } else { h })]
    });
}

/// All values of an eight-bit format with `fraction` bits, its greatest number last.
fn eight(fraction: u32, most: u8) -> Vec<(f64, u8)> {
    let bias = if fraction == 3 { 7 } else { 15 };
    (0..=most)
        .map(|e| {
            let field = i32::from(e >> fraction);
            let low = f64::from(e & ((1 << fraction) - 1));
            let sig = if field == 0 {
                low
            } else {
                low + f64::from(1 << fraction)
            };
            (sig * 2.0_f64.powi(field.max(1) - bias - fraction as i32), e)
        })
        .collect()
}
/// The nearest value, ties to even; the greatest for larger numbers.
fn nearest(x: f64, list: &[(f64, u8)]) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let a = x.abs();
    let after = list.iter().position(|&(v, _)| v > a);
    let e = match after {
        None => list[list.len() - 1].1,
        Some(n) => {
            let (low, high) = (list[n - 1], list[n]);
            let middle = (low.0 + high.0) / 2.0;
            if a > middle || a == middle && low.1 & 1 == 1 {
                high.1
            } else {
                low.1
            }
        }
    };
    e | u8::from(x.is_sign_negative()) << 7
}

#[test]
fn eight_bit_formats() {
    for (t, fraction, most) in [("e4m3", 3, 0x7e), ("e5m2", 2, 0x7b)] {
        let list = eight(fraction, most);
        check(
            &format!("cvt.rn.satfinite.{t}x2.f32 %h0, %r1, %r2;"),
            300,
            |i| {
                let one = |v: u128| u128::from(nearest(f64::from(f(v)), &list));
                vec![one(i[0]) << 8 | one(i[1])]
            },
        );
        // Values in the format's own range.
        super::check_with(
            &format!("cvt.rn.satfinite.{t}x2.f32 %h0, %r1, %r2;"),
            300,
            |rng| {
                let mut one = || {
                    let (v, _) = list[rng.below(list.len())];
                    let nudge = [
                        1.0,
                        1.0 + 1.0 / 16.0,
                        1.0 + 1.0 / 8.0,
                        1.0 + 3.0 / 32.0,
                        0.999,
                    ][rng.below(5)];
                    u128::from(((v * nudge) as f32).to_bits())
                };
                vec![one(), one()]
            },
            |i| {
                let one = |v: u128| u128::from(nearest(f64::from(f(v)), &list));
                vec![one(i[0]) << 8 | one(i[1])]
            },
        );
        check(
            &format!("cvt.rn.satfinite.relu.{t}x2.f16x2 %h0, %r1;"),
            200,
            |i| {
                let one = |v: u128| {
                    let e = nearest(value(v & 0xffff, F16), &list);
                    u128::from(if e >> 7 != 0 { 0 } else { e })
                };
                vec![one(i[0] >> 16) << 8 | one(i[0])]
            },
        );
        check(&format!("cvt.rn.f16x2.{t}x2 %r0, %h1;"), 200, |i| {
            let one = |e: u128| {
                let e = e as u8;
                let sign = if e >> 7 != 0 { -1.0 } else { 1.0 };
                let x = match list.iter().find(|&&(_, c)| c == e & 0x7f) {
                    Some(&(v, _)) => sign * v,
                    None if t == "e5m2" && e & 0x7f == 0x7c => sign * f64::INFINITY,
                    None => f64::NAN,
                };
                u128::from(from_f64(x, F16, RN, 0x7fff))
            };
            vec![one(i[0] >> 8) << 16 | one(i[0] & 0xff)]
        });
    }
}

#[test]
fn tensor_float() {
    const TF32: Format = Format {
        fraction: 10,
        exponent: 8,
    };
    for (m, mode) in [("rna", RNA), ("rn", RN), ("rz", RZ)] {
        check(&format!("cvt.{m}.tf32.f32 %r0, %r1;"), 200, |i| {
            if f(i[0]).is_nan() {
                return vec![0x7fff_ffff];
            }
            vec![u128::from(from_f64(f64::from(f(i[0])), TF32, mode, 0)) << 13]
        });
    }
}

#[test]
fn packs_of_integers() {
    for (t, bits, signed, third) in [
        ("u16", 16, false, false),
        ("s16", 16, true, false),
        ("u8", 8, false, true),
        ("s8", 8, true, true),
    ] {
        let text = if third {
            format!("cvt.pack.sat.{t}.s32.b32 %r0, %r1, %r2, %r3;")
        } else {
            format!("cvt.pack.sat.{t}.s32 %r0, %r1, %r2;")
        };
        check(&text, 100, |i| {
            let (low, high) = range(bits, signed);
            let one = |v: u128| number(v, 32, true).clamp(low, high) as u128 & ((1 << bits) - 1);
            let both = one(i[0]) << bits | one(i[1]);
            vec![if third {
                (both | i[2] << 16) & 0xffff_ffff
            } else {
                both
            }]
        });
    }
}

#[test]
fn directed_modes_are_ordered() {
    // A check of the reference itself.
    let x = 1.0 + 2.0_f64.powi(-30);
    assert_eq!(from_f64(x, F32, RM, 0), u64::from(1.0_f32.to_bits()));
    assert_eq!(from_f64(x, F32, RP, 0), u64::from(1.0_f32.to_bits()) + 1);
    assert_eq!(from_f64(f64::MAX, F32, RN, 0), 0x7f80_0000);
}

//! Half-precision arithmetic.

use super::check;
use super::reference::{BF16, F16, from_f64};
use crate::semantics::lane::rounding::{Format, RM, RN, RP, RZ, fma64};

/// Value of a half-precision encoding.
pub fn value(h: u128, f: Format) -> f64 {
    let h = h as u16;
    let bits = f.fraction + f.exponent;
    let sign = if h >> bits & 1 != 0 { -1.0 } else { 1.0 };
    let magnitude = u64::from(h) & ((1 << bits) - 1);
    let field = (magnitude >> f.fraction) as i32;
    let fraction = (magnitude & ((1 << f.fraction) - 1)) as f64;
    let bias = (1 << (f.exponent - 1)) - 1;
    if field == (1 << f.exponent) - 1 {
        return if fraction == 0.0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let sig = if field == 0 {
        fraction
    } else {
        fraction + f64::from(1 << f.fraction)
    };
    sign * sig * 2.0_f64.powi(field.max(1) - bias - f.fraction as i32)
}

/// `a · b + c` as a double that rounds to every shorter format like the exact value.
fn odd(a: f64, b: f64, c: f64) -> f64 {
    let r = fma64(a, b, c, RZ);
    let inexact = fma64(a, b, c, RM) != fma64(a, b, c, RP);
    if inexact && !r.is_nan() {
        f64::from_bits(r.to_bits() | 1)
    } else {
        r
    }
}

const FORMATS: [(&str, Format); 2] = [("f16", F16), ("bf16", BF16)];

fn flush(h: u128, f: Format) -> u128 {
    let field = ((1 << f.exponent) - 1) << f.fraction;
    if h & field == 0 {
        h & 0x8000
    } else {
        h & 0xffff
    }
}

/// Checks scalars and, with the same reference for both halves, pairs.
fn both(name: &str, modifiers: &str, t: &str, sources: usize, g: impl Fn(&[u128]) -> u128) {
    let operands = |r: char| {
        (0..=sources)
            .map(|n| format!("%{r}{n}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    check(
        &format!("{name}{modifiers}.{t} {};", operands('h')),
        300,
        |i| vec![g(i)],
    );
    check(
        &format!("{name}{modifiers}.{t}x2 {};", operands('r')),
        150,
        |i| {
            let part = |s: u32| g(&i.iter().map(|v| v >> s & 0xffff).collect::<Vec<_>>()) << s;
            vec![part(0) | part(16)]
        },
    );
}

#[test]
fn arithmetic() {
    for (t, f) in FORMATS {
        let v = move |h: u128| value(h, f);
        let r = move |x: f64| u128::from(from_f64(x, f, RN, 0x7fff));
        both("add", "", t, 2, |i| r(odd(v(i[0]), 1.0, v(i[1]))));
        both("sub", "", t, 2, |i| r(odd(v(i[0]), 1.0, -v(i[1]))));
        both("mul", "", t, 2, |i| {
            let p = v(i[0]) * v(i[1]);
            r(p)
        });
        both("fma", ".rn", t, 3, |i| r(odd(v(i[0]), v(i[1]), v(i[2]))));
        both("fma", ".rn.relu", t, 3, |i| {
            let x = r(odd(v(i[0]), v(i[1]), v(i[2])));
            if x >> 15 != 0 { 0 } else { x }
        });
        let number = move |x: u128, r: u128| if v(x).is_nan() { 0x7fff } else { r };
        both("neg", "", t, 1, |i| number(i[0], i[0] ^ 0x8000));
        both("abs", "", t, 1, |i| number(i[0], i[0] & 0x7fff));
        let least = move |a: u128, b: u128| {
            let (x, y) = (v(a), v(b));
            if x.is_nan() && y.is_nan() {
                0x7fff
            } else if x.is_nan() || (y < x) || (x == y && b >> 15 != 0) {
                b
            } else {
                a
            }
        };
        both("min", "", t, 2, |i| least(i[0], i[1]));
        both("max", ".NaN", t, 2, |i| {
            if v(i[0]).is_nan() || v(i[1]).is_nan() {
                return 0x7fff;
            }
            least(i[0] ^ 0x8000, i[1] ^ 0x8000) ^ 0x8000
        });
    }
}

#[test]
fn multiply_add_gives_zero_for_factors_out_of_bounds() {
    for (t, f) in FORMATS {
        for relu in ["", ".relu"] {
            both("fma", &format!(".rn.oob{relu}"), t, 3, |i| {
                let out = |h: u128| h & 0x7fff == 0x7ff7;
                let x = odd(value(i[0], f), value(i[1], f), value(i[2], f));
                let x = u128::from(from_f64(x, f, RN, 0x7fff));
                let clamped = !relu.is_empty() && x >> 15 != 0;
                if out(i[0]) || out(i[1]) || clamped {
                    0
                } else {
                    x
                }
            });
        }
    }
}

#[test]
fn modifiers_of_f16() {
    let v = |h: u128| value(flush(h, F16), F16);
    let z = |x: f64| flush(u128::from(from_f64(x, F16, RN, 0x7fff)), F16);
    both("add", ".ftz", "f16", 2, |i| z(odd(v(i[0]), 1.0, v(i[1]))));
    both("mul", ".ftz.sat", "f16", 2, |i| {
        let x = z(v(i[0]) * v(i[1]));
        if x >> 15 != 0 || x > 0x7c00 {
            0
        } else {
            x.min(0x3c00)
        }
    });
    both("fma", ".rn.ftz.sat", "f16", 3, |i| {
        let x = z(odd(v(i[0]), v(i[1]), v(i[2])));
        if x >> 15 != 0 || x > 0x7c00 {
            0
        } else {
            x.min(0x3c00)
        }
    });
}

#[test]
fn every_pair_of_some_rows() {
    // All second operands for a few first ones: every difference of exponents, and subnormals in both operands.
    use super::Test;
    for (t, f) in FORMATS {
        let test = Test::new(&format!("add.{t} %h0, %h1, %h2;"));
        for a in [
            0x0001_u128,
            0x03ff,
            0x0400,
            0x3c01,
            0x7bff,
            0x8001,
            0xbfff,
            0x3f7f,
            0x0080,
        ] {
            for base in (0..0x1_0000).step_by(32) {
                let inputs: Vec<Vec<u128>> = (0..32).map(|n| vec![a, base + n]).collect();
                let expected: Vec<Vec<u128>> = inputs
                    .iter()
                    .map(|i| {
                        vec![u128::from(from_f64(
                            odd(value(i[0], f), 1.0, value(i[1], f)),
                            f,
                            RN,
                            0x7fff,
                        ))]
                    })
                    .collect();
                test.run(0, &inputs, u32::MAX, &expected);
            }
        }
    }
}

//! Integer arithmetic.

use super::{check, u};

/// A value of `bits` bits as a signed or unsigned number.
fn number(v: u128, bits: u32, signed: bool) -> i128 {
    let v = v & ((1 << bits) - 1);
    if signed && v >> (bits - 1) != 0 {
        v as i128 - (1 << bits)
    } else {
        v as i128
    }
}
fn wrap(v: i128, bits: u32) -> Vec<u128> {
    vec![v as u128 & ((1 << bits) - 1)]
}
fn register(bits: u32) -> char {
    match bits {
        16 => 'h',
        32 => 'r',
        _ => 'd',
    }
}
const TYPES: [(&str, u32, bool); 6] = [
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

#[test]
fn two_operands() {
    type Op = fn(i128, i128, u32) -> i128;
    let ops: [(&str, Op); 8] = [
        ("add", |a, b, _| a + b),
        ("sub", |a, b, _| a - b),
        ("mul.lo", |a, b, _| a.wrapping_mul(b)),
        (
            "mul.hi",
            |a, b, n| if n == 64 { high64(a, b) } else { (a * b) >> n },
        ),
        ("min", |a, b, _| a.min(b)),
        ("max", |a, b, _| a.max(b)),
        ("div", |a, b, _| if b == 0 { -1 } else { a / b }),
        ("rem", |a, b, _| if b == 0 { -1 } else { a % b }),
    ];
    for (t, bits, signed) in TYPES {
        let r = register(bits);
        for (name, f) in ops {
            check(&format!("{name}.{t} %{r}0, %{r}1, %{r}2;"), 200, |i| {
                wrap(
                    f(number(i[0], bits, signed), number(i[1], bits, signed), bits),
                    bits,
                )
            });
            // The destination is also a source.
            check(&format!("{name}.{t} %{r}1, %{r}1, %{r}2;"), 10, |i| {
                wrap(
                    f(number(i[0], bits, signed), number(i[1], bits, signed), bits),
                    bits,
                )
            });
        }
    }
}

/// Upper half of a product of 64-bit numbers, computed from partial products.
fn high64(a: i128, b: i128) -> i128 {
    let (b1, b0) = (b >> 32, b & 0xffff_ffff);
    ((a * b1) + ((a * b0) >> 32)) >> 32
}

#[test]
fn one_and_three_operands() {
    for (t, bits, signed) in TYPES {
        let r = register(bits);
        let n = |v| number(v, bits, signed);
        if signed {
            check(&format!("abs.{t} %{r}0, %{r}1;"), 50, |i| {
                wrap(n(i[0]).abs(), bits)
            });
            check(&format!("neg.{t} %{r}0, %{r}1;"), 50, |i| {
                wrap(-n(i[0]), bits)
            });
        }
        check(&format!("sad.{t} %{r}0, %{r}1, %{r}2, %{r}3;"), 100, |i| {
            wrap((n(i[0]) - n(i[1])).abs() + n(i[2]), bits)
        });
        check(
            &format!("mad.lo.{t} %{r}0, %{r}1, %{r}2, %{r}3;"),
            100,
            |i| wrap(n(i[0]).wrapping_mul(n(i[1])).wrapping_add(n(i[2])), bits),
        );
        check(
            &format!("mad.hi.{t} %{r}0, %{r}1, %{r}2, %{r}3;"),
            100,
            |i| {
                let p = if bits == 64 {
                    high64(n(i[0]), n(i[1]))
                } else {
                    (n(i[0]) * n(i[1])) >> bits
                };
                wrap(p + n(i[2]), bits)
            },
        );
        if bits < 64 {
            let w = register(2 * bits);
            check(&format!("mul.wide.{t} %{w}0, %{r}1, %{r}2;"), 100, |i| {
                wrap(n(i[0]) * n(i[1]), 2 * bits)
            });
            check(
                &format!("mad.wide.{t} %{w}0, %{r}1, %{r}2, %{w}3;"),
                100,
                |i| wrap(n(i[0]) * n(i[1]) + number(i[2], 2 * bits, signed), 2 * bits),
            );
        }
    }
}

#[test]
fn saturation() {
    let s = |v: u128| number(v, 32, true);
    let clamp = |v: i128| wrap(v.clamp(i128::from(i32::MIN), i128::from(i32::MAX)), 32);
    check("add.sat.s32 %r0, %r1, %r2;", 100, |i| {
        clamp(s(i[0]) + s(i[1]))
    });
    check("sub.sat.s32 %r0, %r1, %r2;", 100, |i| {
        clamp(s(i[0]) - s(i[1]))
    });
    check("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 100, |i| {
        clamp(((s(i[0]) * s(i[1])) >> 32) + s(i[2]))
    });
}

#[test]
fn products_of_24_bits() {
    let un = |v: u128| number(v, 24, false);
    let si = |v: u128| number(v, 24, true);
    check("mul24.lo.u32 %r0, %r1, %r2;", 100, |i| {
        wrap(un(i[0]) * un(i[1]), 32)
    });
    check("mul24.hi.u32 %r0, %r1, %r2;", 100, |i| {
        wrap((un(i[0]) * un(i[1])) >> 16, 32)
    });
    check("mul24.lo.s32 %r0, %r1, %r2;", 100, |i| {
        wrap(si(i[0]) * si(i[1]), 32)
    });
    check("mul24.hi.s32 %r0, %r1, %r2;", 100, |i| {
        wrap((si(i[0]) * si(i[1])) >> 16, 32)
    });
    check("mad24.lo.s32 %r0, %r1, %r2, %r3;", 100, |i| {
        wrap(si(i[0]) * si(i[1]) + i[2] as i128, 32)
    });
    check("mad24.hi.u32 %r0, %r1, %r2, %r3;", 100, |i| {
        wrap(((un(i[0]) * un(i[1])) >> 16) + i[2] as i128, 32)
    });
    check("mad24.hi.sat.s32 %r0, %r1, %r2, %r3;", 100, |i| {
        let v = ((si(i[0]) * si(i[1])) >> 16) + number(i[2], 32, true);
        wrap(v.clamp(i128::from(i32::MIN), i128::from(i32::MAX)), 32)
    });
}

#[test]
fn packed_halves() {
    type Op = fn(i128, i128) -> i128;
    let ops: [(&str, bool, Op); 8] = [
        ("add.u16x2", false, |a, b| a + b),
        ("add.s16x2", true, |a, b| a + b),
        ("min.u16x2", false, |a, b| a.min(b)),
        ("min.s16x2", true, |a, b| a.min(b)),
        ("max.u16x2", false, |a, b| a.max(b)),
        ("max.s16x2", true, |a, b| a.max(b)),
        ("max.s16x2.relu", true, |a, b| a.max(b).max(0)),
        ("min.s16x2.relu", true, |a, b| a.min(b).max(0)),
    ];
    for (name, signed, f) in ops {
        check(&format!("{name} %r0, %r1, %r2;"), 100, |i| {
            let half = |n: u32| {
                wrap(
                    f(number(i[0] >> n, 16, signed), number(i[1] >> n, 16, signed)),
                    16,
                )[0] << n
            };
            vec![half(0) | half(16)]
        });
    }
}

#[test]
fn dot_products() {
    for (sa, ta) in [(false, "u32"), (true, "s32")] {
        for (sb, tb) in [(false, "u32"), (true, "s32")] {
            check(&format!("dp4a.{ta}.{tb} %r0, %r1, %r2, %r3;"), 100, |i| {
                let sum: i128 = (0..4)
                    .map(|n| number(i[0] >> (8 * n), 8, sa) * number(i[1] >> (8 * n), 8, sb))
                    .sum();
                wrap(sum + i[2] as i128, 32)
            });
            for (part, first) in [("lo", 0), ("hi", 2)] {
                check(
                    &format!("dp2a.{part}.{ta}.{tb} %r0, %r1, %r2, %r3;"),
                    100,
                    |i| {
                        let sum: i128 = (0..2)
                            .map(|n| {
                                number(i[0] >> (16 * n), 16, sa)
                                    * number(i[1] >> (8 * (n + first)), 8, sb)
                            })
                            .sum();
                        wrap(sum + i[2] as i128, 32)
                    },
                );
            }
        }
    }
}

#[test]
fn carries() {
    for (t, bits) in [("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)] {
        let r = register(bits);
        let signed = t.starts_with('s');
        let m = |v: i128| v & ((1 << bits) - 1);
        let x = |v: u128| v as i128;
        let split = move |v: i128| vec![m(v) as u128, u128::from(v >> bits & 1 != 0)];
        // The flag of a subtraction is set if there is no borrow.
        let difference = move |v: i128| vec![m(v) as u128, u128::from(v >= 0)];
        check(&format!("add.cc.{t} %{r}0, %{r}1, %{r}2;"), 50, |i| {
            split(x(i[0]) + x(i[1]))
        });
        check(&format!("addc.{t} %{r}0, %{r}1, %{r}2;"), 50, |i| {
            split(x(i[0]) + x(i[1]) + x(i[2]))
        });
        check(&format!("addc.cc.{t} %{r}0, %{r}1, %{r}2;"), 50, |i| {
            split(x(i[0]) + x(i[1]) + x(i[2]))
        });
        check(&format!("sub.cc.{t} %{r}0, %{r}1, %{r}2;"), 50, |i| {
            difference(x(i[0]) - x(i[1]))
        });
        check(&format!("subc.cc.{t} %{r}0, %{r}1, %{r}2;"), 50, |i| {
            difference(x(i[0]) - x(i[1]) - (1 - x(i[2])))
        });
        check(&format!("subc.{t} %{r}0, %{r}1, %{r}2;"), 50, |i| {
            difference(x(i[0]) - x(i[1]) - (1 - x(i[2])))
        });
        let lo = move |a: u128, b: u128| m((a as i128).wrapping_mul(b as i128));
        let hi = move |a: u128, b: u128| {
            let (a, b) = (number(a, bits, signed), number(b, bits, signed));
            m(if bits == 64 {
                high64(a, b)
            } else {
                (a * b) >> bits
            })
        };
        check(
            &format!("mad.lo.cc.{t} %{r}0, %{r}1, %{r}2, %{r}3;"),
            50,
            |i| split(lo(i[0], i[1]) + x(i[2])),
        );
        check(
            &format!("mad.hi.cc.{t} %{r}0, %{r}1, %{r}2, %{r}3;"),
            50,
            |i| split(hi(i[0], i[1]) + x(i[2])),
        );
        check(
            &format!("madc.lo.cc.{t} %{r}0, %{r}1, %{r}2, %{r}3;"),
            50,
            |i| split(lo(i[0], i[1]) + x(i[2]) + x(i[3])),
        );
        check(
            &format!("madc.hi.{t} %{r}0, %{r}1, %{r}2, %{r}3;"),
            50,
            |i| split(hi(i[0], i[1]) + x(i[2]) + x(i[3])),
        );
    }
}

#[test]
fn division_sweep() {
    // Quotients near integers, where a division in double precision could be wrong.
    super::check_with(
        "div.u32 %r0, %r1, %r2;",
        3000,
        |rng| {
            let b = (rng.next() >> (32 + rng.below(32))).max(1);
            let q = (rng.next() >> (32 + rng.below(32))) % (u64::from(u32::MAX) / b + 1);
            vec![
                u128::from((q * b).wrapping_add(rng.next() % 3).wrapping_sub(1) as u32),
                u128::from(b),
            ]
        },
        |i| vec![u128::from(u(i[0]) / u(i[1]))],
    );
}

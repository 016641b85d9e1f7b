//! Video instructions.

use super::{check, u};

fn number(v: u32, at: u32, width: u32, signed: bool) -> i64 {
    let v = u64::from(v) >> at & ((1 << width) - 1);
    if signed && v >> (width - 1) != 0 {
        v as i64 - (1 << width)
    } else {
        v as i64
    }
}
fn low(v: i64) -> Vec<u128> {
    vec![u128::from(v as u32)]
}

#[test]
fn scalar() {
    check("vadd.s32.s32.s32 %r0, %r1, %r2;", 50, |i| {
        low(number(u(i[0]), 0, 32, true) + number(u(i[1]), 0, 32, true))
    });
    check("vadd.s32.u32.s32.sat %r0, %r1.b0, %r2.h0;", 50, |i| {
        let v = number(u(i[0]), 0, 8, false) + number(u(i[1]), 0, 16, true);
        low(v.clamp(i64::from(i32::MIN), i64::from(i32::MAX)))
    });
    check("vsub.s32.s32.u32.sat %r0, %r1.h1, %r2.h1;", 50, |i| {
        low(number(u(i[0]), 16, 16, true) - number(u(i[1]), 16, 16, false))
    });
    check(
        "vabsdiff.u32.u32.u32.add %r0, %r1.b3, %r2.b2, %r3;",
        50,
        |i| {
            low(
                (number(u(i[0]), 24, 8, false) - number(u(i[1]), 16, 8, false)).abs()
                    + i64::from(u(i[2])),
            )
        },
    );
    check("vmin.s32.s32.s32.max %r0, %r1, %r2, %r3;", 50, |i| {
        let s = |n: usize| i64::from(u(i[n]) as i32);
        low(s(0).min(s(1)).max(s(2)))
    });
    check("vmax.u32.u32.u32.sat %r0.b1, %r1, %r2, %r3;", 50, |i| {
        let v = u(i[0]).max(u(i[1])).min(255);
        vec![u128::from(u(i[2]) & !0xff00 | v << 8)]
    });
    check("vshl.u32.u32.u32.clamp %r0, %r1, %r2;", 50, |i| {
        low((i[0] << i[1].min(32)) as i64)
    });
    check("vshr.s32.s32.u32.wrap %r0, %r1, %r2;", 50, |i| {
        low(i64::from(u(i[0]) as i32 >> (u(i[1]) & 31)))
    });
    check("vset.s32.u32.lt %r0, %r1, %r2;", 50, |i| {
        low(i64::from(
            number(u(i[0]), 0, 32, true) < number(u(i[1]), 0, 32, false),
        ))
    });
}

#[test]
fn multiply_add() {
    let s = |v: u128| i128::from(u(v) as i32);
    let n = |v: u128| i128::from(u(v));
    check("vmad.s32.s32.s32.shr7 %r0, %r1, %r2, %r3;", 50, |i| {
        low(((s(i[0]) * s(i[1]) + s(i[2])) >> 7) as i64)
    });
    check(
        "vmad.u32.u32.u32.po.sat.shr15 %r0, %r1, %r2, %r3;",
        50,
        |i| {
            let v = (n(i[0]) * n(i[1]) + n(i[2]) + 1) >> 15;
            low(v.clamp(0, i128::from(u32::MAX)) as i64)
        },
    );
    check("vmad.s32.s32.u32.sat %r0, %r1.h0, -%r2.b0, %r3;", 50, |i| {
        let a = i128::from(number(u(i[0]), 0, 16, true));
        let b = i128::from(number(u(i[1]), 0, 8, false));
        low((-(a * b) + s(i[2])).clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i64)
    });
}

#[test]
fn simd() {
    type Op = fn(i64, i64) -> i64;
    let ops: [(&str, Op); 6] = [
        ("vadd", |a, b| a + b),
        ("vsub", |a, b| a - b),
        ("vavrg", |a, b| {
            if a + b >= 0 {
                (a + b + 1) >> 1
            } else {
                (a + b) >> 1
            }
        }),
        ("vabsdiff", |a, b| (a - b).abs()),
        ("vmin", |a, b| a.min(b)),
        ("vmax", |a, b| a.max(b)),
    ];
    for (name, g) in ops {
        for (count, width) in [(2, 16), (4, 8)] {
            for (t, signed) in [("u32", false), ("s32", true)] {
                let parts = |i: &[u128]| -> Vec<i64> {
                    (0..count)
                        .map(|k| {
                            g(
                                number(u(i[0]), k * width, width, signed),
                                number(u(i[1]), k * width, width, signed),
                            )
                        })
                        .collect()
                };
                check(
                    &format!("{name}{count}.{t}.{t}.{t} %r0, %r1, %r2, %r3;"),
                    30,
                    |i| {
                        let mut r = 0_u32;
                        for (k, v) in parts(i).into_iter().enumerate() {
                            r |= (v as u32 & ((1 << width) - 1)) << (k as u32 * width);
                        }
                        vec![u128::from(r)]
                    },
                );
                check(
                    &format!("{name}{count}.{t}.{t}.{t}.sat %r0, %r1, %r2, %r3;"),
                    30,
                    |i| {
                        let mut r = 0_u32;
                        for (k, v) in parts(i).into_iter().enumerate() {
                            let v = if signed {
                                v.clamp(-(1 << (width - 1)), (1 << (width - 1)) - 1)
                            } else {
                                v.clamp(0, (1 << width) - 1)
                            };
                            r |= (v as u32 & ((1 << width) - 1)) << (k as u32 * width);
                        }
                        vec![u128::from(r)]
                    },
                );
                check(
                    &format!("{name}{count}.{t}.{t}.{t}.add %r0, %r1, %r2, %r3;"),
                    30,
                    |i| low(parts(i).into_iter().sum::<i64>() + i64::from(u(i[2]))),
                );
            }
        }
    }
    check("vset4.u32.u32.ge %r0, %r1, %r2, %r3;", 30, |i| {
        vec![(0..4).fold(0, |r, k| {
            r | u128::from(i[0] >> (8 * k) & 0xff >= i[1] >> (8 * k) & 0xff) << (8 * k)
        })]
    });
    check(
        "vadd4.u32.u32.u32 %r0.b20, %r1.b7654, %r2.b0123, %r3;",
        30,
        |i| {
            let both = i[1] << 32 | i[0];
            let byte = |n: u32| both >> (8 * n) & 0xff;
            let mut r = i[2];
            for (k, a, b) in [(0, 4, 3), (2, 6, 1)] {
                r = r & !(0xff << (8 * k)) | ((byte(a) + byte(b)) & 0xff) << (8 * k);
            }
            vec![r]
        },
    );
}

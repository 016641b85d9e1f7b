//! Approximate functions against the bounds of the PTX ISA, in dense sweeps.

use super::{Test, check, d, double, f, single};

/// Results of a one-operand instruction for many inputs. Both versions of the code must agree.
fn sweep(text: &str, inputs: impl Iterator<Item = u32>) -> Vec<(f32, f32)> {
    let test = Test::new(text);
    let mut results = Vec::new();
    let inputs: Vec<u32> = inputs.collect();
    for chunk in inputs.chunks(32) {
        let mut out = [[0_u32; 32]; 2];
        for (version, out) in out.iter_mut().enumerate() {
            let mut file = super::File::new();
            for lane in 0..32 {
                let v = chunk.get(lane).copied().unwrap_or(0);
                file.set(test.args.src[0], super::Slot::R32, lane, u128::from(v));
            }
            // SAFETY: every offset is that of a slot of the aligned file.
            unsafe { (test.versions[version].run)(file.0.as_mut_ptr(), &test.args, u32::MAX) };
            for (lane, out) in out.iter_mut().enumerate() {
                *out = file.lane(test.args.dst[0], super::Slot::R32, lane) as u32;
            }
        }
        assert_eq!(out[0], out[1], "{text}: the versions differ");
        results.extend(
            chunk
                .iter()
                .zip(out[0])
                .map(|(&a, r)| (f32::from_bits(a), f32::from_bits(r))),
        );
    }
    results
}
/// Every `step`-th bit pattern of a range of positive numbers, and its negative.
fn between(low: f32, high: f32, step: usize) -> impl Iterator<Item = u32> {
    (low.to_bits()..=high.to_bits())
        .step_by(step)
        .flat_map(|b| [b, b | 1 << 31])
}
fn relative(got: f32, want: f64) -> f64 {
    ((f64::from(got) - want) / want).abs()
}

#[test]
fn sine_and_cosine() {
    for (name, g) in [("sin", f64::sin as fn(f64) -> f64), ("cos", f64::cos)] {
        let worst = |limit: f32| {
            let text = format!("{name}.approx.f32 %r0, %r1;");
            sweep(
                &text,
                between(0.0, limit, 9973).chain(between(0.5, limit, 1009)),
            )
            .into_iter()
            .map(|(x, r)| (f64::from(r) - g(f64::from(x))).abs())
            .fold(0.0, f64::max)
        };
        // PTX ISA: 2^-20.5 within one turn, 2^-14.7 within fifty.
        assert!(
            worst(std::f32::consts::TAU) < 2.0_f64.powf(-24.0),
            "{name}: {}",
            worst(std::f32::consts::TAU)
        );
        assert!(
            worst(100.0 * std::f32::consts::PI) < 2.0_f64.powf(-24.0),
            "{name}"
        );
        assert!(worst(1.0e5) < 2.0_f64.powf(-23.0), "{name}");
        for (x, r) in sweep(
            &format!("{name}.approx.f32 %r0, %r1;"),
            between(1.0e5, f32::MAX, 100_003),
        ) {
            assert!(r.abs() <= 1.0, "{name} {x}: {r}");
        }
    }
    let special = |name: &str, x: f32| {
        sweep(
            &format!("{name}.approx.f32 %r0, %r1;"),
            [x.to_bits()].into_iter(),
        )[0]
        .1
    };
    assert_eq!(special("sin", -0.0).to_bits(), 1 << 31);
    assert_eq!(special("cos", 0.0), 1.0);
    assert_eq!(special("sin", f32::INFINITY).to_bits(), 0x7fff_ffff);
    assert_eq!(special("cos", f32::NAN).to_bits(), 0x7fff_ffff);
    assert_eq!(special("sin", f32::from_bits(1)).to_bits(), 1);
}

#[test]
fn logarithm() {
    let name = "lg2.approx.f32 %r0, %r1;";
    for (x, r) in sweep(name, (1..0x7f80_0000_u32).step_by(49_999)) {
        let want = f64::from(x).log2();
        // PTX ISA: 2^-22 absolute near one, relative elsewhere.
        assert!(
            relative(r, want) < 2.0_f64.powi(-23) || r == 0.0 && want == 0.0,
            "{x}: {r}, {want}"
        );
    }
    for (x, r) in sweep(name, (0x3f7f_8000..0x3f80_8000).step_by(7)) {
        let want = f64::from(x).log2();
        assert!(
            relative(r, want) < 2.0_f64.powi(-23) || r == 0.0 && want == 0.0,
            "{x}: {r}, {want}"
        );
    }
    let special = |x: f32, z: &str| {
        sweep(
            &format!("lg2.approx{z}.f32 %r0, %r1;"),
            [x.to_bits()].into_iter(),
        )[0]
        .1
    };
    assert_eq!(special(0.0, ""), f32::NEG_INFINITY);
    assert_eq!(special(-0.0, ""), f32::NEG_INFINITY);
    assert_eq!(special(f32::from_bits(1), ""), -149.0);
    assert_eq!(special(f32::from_bits(1), ".ftz"), f32::NEG_INFINITY);
    assert_eq!(special(f32::INFINITY, ""), f32::INFINITY);
    assert_eq!(special(-1.0, "").to_bits(), 0x7fff_ffff);
    assert_eq!(special(1.0, "").to_bits(), 0);
    assert_eq!(special(0.5, ""), -1.0);
}

#[test]
fn exponential() {
    for (x, r) in sweep("ex2.approx.f32 %r0, %r1;", between(0.0, 160.0, 19_997)) {
        let want = f64::from(x).exp2();
        if want < f64::from(f32::MIN_POSITIVE) {
            assert!(
                (f64::from(r) - want).abs() <= 2.0_f64.powi(-150) * 1.01,
                "{x}: {r}, {want}"
            );
        } else if want > f64::from(f32::MAX) {
            assert_eq!(r, f32::INFINITY, "{x}");
        } else {
            // PTX ISA: about 2^-22.
            assert!(relative(r, want) < 2.0_f64.powi(-23), "{x}: {r}, {want}");
        }
    }
    let special = |x: f32, z: &str| {
        sweep(
            &format!("ex2.approx{z}.f32 %r0, %r1;"),
            [x.to_bits()].into_iter(),
        )[0]
        .1
    };
    assert_eq!(special(f32::NEG_INFINITY, "").to_bits(), 0);
    assert_eq!(special(f32::INFINITY, ""), f32::INFINITY);
    assert_eq!(special(-130.0, ".ftz").to_bits(), 0);
    assert_eq!(special(-130.0, ""), 2.0_f32.powi(-130));
    assert_eq!(special(10.0, ""), 1024.0);
    assert_eq!(special(f32::NAN, "").to_bits(), 0x7fff_ffff);
}

#[test]
fn hyperbolic_tangent() {
    for (x, r) in sweep("tanh.approx.f32 %r0, %r1;", between(0.0, f32::MAX, 49_999)) {
        let want = f64::from(x).tanh();
        // PTX ISA: 2^-11.
        assert!(
            relative(r, want) < 2.0_f64.powi(-22) || r == x,
            "{x}: {r}, {want}"
        );
    }
    let special = |x: f32| sweep("tanh.approx.f32 %r0, %r1;", [x.to_bits()].into_iter())[0].1;
    assert_eq!(special(f32::NEG_INFINITY), -1.0);
    assert_eq!(special(f32::INFINITY), 1.0);
    assert_eq!(special(-0.0).to_bits(), 1 << 31);
}

#[test]
fn reciprocals_and_roots() {
    let flush = |x: f32| {
        if x.is_subnormal() {
            0.0_f32.copysign(x)
        } else {
            x
        }
    };
    for (name, g) in [
        ("rcp", (|x: f32| 1.0 / x) as fn(f32) -> f32),
        ("sqrt", f32::sqrt),
    ] {
        check(&format!("{name}.approx.f32 %r0, %r1;"), 100, |i| {
            single(g(f(i[0])))
        });
        check(&format!("{name}.approx.ftz.f32 %r0, %r1;"), 100, |i| {
            single(flush(g(flush(f(i[0])))))
        });
    }
    for (x, r) in sweep(
        "rsqrt.approx.f32 %r0, %r1;",
        (1..0x7f80_0000_u32).step_by(49_999),
    ) {
        // PTX ISA: 2^-22.9.
        assert!(
            relative(r, 1.0 / f64::from(x).sqrt()) < 2.0_f64.powf(-23.9),
            "{x}: {r}"
        );
    }
    let special = |x: f32| sweep("rsqrt.approx.f32 %r0, %r1;", [x.to_bits()].into_iter())[0].1;
    assert_eq!(special(0.0), f32::INFINITY);
    assert_eq!(special(-0.0), f32::NEG_INFINITY);
    assert_eq!(special(f32::INFINITY).to_bits(), 0);
    assert_eq!(special(-1.0).to_bits(), 0x7fff_ffff);
    check("div.full.f32 %r0, %r1, %r2;", 100, |i| {
        single(f(i[0]) / f(i[1]))
    });
    check("div.approx.f32 %r0, %r1, %r2;", 200, |i| {
        let (a, b) = (f(i[0]), f(i[1]));
        if b.abs() > 2.0_f32.powi(126) && b.is_finite() {
            return single(if a.is_infinite() || a.is_nan() {
                f32::NAN
            } else {
                0.0_f32.copysign(a) * 1.0_f32.copysign(b)
            });
        }
        single(a / b)
    });
}

#[test]
fn double_precision_seeds() {
    for (name, g) in [
        ("rcp", (|x: f64| 1.0 / x) as fn(f64) -> f64),
        ("rsqrt", |x| 1.0 / x.sqrt()),
    ] {
        let test = Test::new(&format!("{name}.approx.ftz.f64 %d0, %d1;"));
        let mut rng = super::Rng::new(name);
        for _ in 0..300 {
            let mut file = super::File::new();
            let inputs: Vec<u128> = (0..32)
                .map(|_| super::values::of(super::Type::F64, &mut rng))
                .collect();
            for (lane, &v) in inputs.iter().enumerate() {
                file.set(test.args.src[0], super::Slot::R64, lane, v);
            }
            // SAFETY: every offset is that of a slot of the aligned file.
            unsafe { (test.versions[0].run)(file.0.as_mut_ptr(), &test.args, u32::MAX) };
            for (lane, &v) in inputs.iter().enumerate() {
                let got = d(file.lane(test.args.dst[0], super::Slot::R64, lane));
                assert_eq!(got.to_bits() & 0xffff_ffff, 0);
                let x = d(v);
                let x = if x.is_subnormal() {
                    0.0_f64.copysign(x)
                } else {
                    x
                };
                let want = g(x);
                if want.is_nan() {
                    assert!(got.is_nan(), "{name} {x:e}");
                } else if want.is_subnormal() {
                    assert_eq!(got, 0.0, "{name} {x:e}");
                } else if want.is_infinite() || want == 0.0 {
                    assert_eq!(got.to_bits(), want.to_bits(), "{name} {x:e}");
                } else {
                    // The lower half of the operand is ignored, and the result has 20 bits.
                    assert!(
                        ((got - want) / want).abs() < 2.0_f64.powi(-19),
                        "{name} {x:e}: {got:e}, {want:e}"
                    );
                }
            }
        }
    }
    check("rsqrt.approx.f64 %d0, %d1;", 100, |i| {
        double(1.0 / d(i[0]).sqrt())
    });
}

#[test]
fn half_precision() {
    use super::half::value;
    use super::reference::{BF16, F16, from_f64};
    use crate::semantics::lane::rounding::RN;
    for (t, g, name, h) in [
        ("f16", F16, "tanh", f64::tanh as fn(f64) -> f64),
        ("f16", F16, "ex2", f64::exp2),
        ("bf16", BF16, "tanh", f64::tanh),
        ("bf16", BF16, "ex2", f64::exp2),
    ] {
        let z = if t == "bf16" && name == "ex2" {
            ".ftz"
        } else {
            ""
        };
        let test = Test::new(&format!("{name}.approx{z}.{t} %h0, %h1;"));
        for base in (0..0x1_0000_u128).step_by(32) {
            let inputs: Vec<Vec<u128>> = (0..32).map(|n| vec![base + n]).collect();
            let expected: Vec<Vec<u128>> = inputs
                .iter()
                .map(|i| {
                    let x = value(i[0], g);
                    let want = h(x);
                    let flushed = !z.is_empty() && want.abs() < f64::from(f32::MIN_POSITIVE);
                    vec![if flushed {
                        0
                    } else {
                        u128::from(from_f64(want, g, RN, 0x7fff))
                    }]
                })
                .collect();
            for version in 0..2 {
                test.run(version, &inputs, u32::MAX, &expected);
            }
        }
    }
    check("ex2.approx.f16x2 %r0, %r1;", 50, |i| {
        let one = |s: u32| {
            u128::from(from_f64(
                value(i[0] >> s & 0xffff, F16).exp2(),
                F16,
                RN,
                0x7fff,
            )) << s
        };
        vec![one(0) | one(16)]
    });
}

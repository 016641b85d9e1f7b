//! Single and double precision, in every rounding mode.

use super::reference::MODES;
#[cfg(target_arch = "x86_64")]
use super::reference::hardware;
use super::{check, d, double, f, single};

fn flush(x: f32) -> f32 {
    if x.is_subnormal() {
        0.0_f32.copysign(x)
    } else {
        x
    }
}
fn saturate(x: f32) -> f32 {
    if x.is_nan() || x <= 0.0 {
        0.0
    } else {
        x.min(1.0)
    }
}

/// Checks an instruction with `.ftz`, `.sat` and both.
fn with_modifiers(name: &str, t: &str, operands: &str, rounds: usize, g: &dyn Fn(&[f32]) -> f32) {
    for (ftz, sat) in [(false, false), (true, false), (false, true), (true, true)] {
        let text = format!(
            "{name}{}{}.{t} {operands};",
            if ftz { ".ftz" } else { "" },
            if sat { ".sat" } else { "" }
        );
        check(&text, rounds, |i| {
            let x: Vec<f32> = i
                .iter()
                .map(|&v| if ftz { flush(f(v)) } else { f(v) })
                .collect();
            let r = g(&x);
            let r = if ftz { flush(r) } else { r };
            single(if sat { saturate(r) } else { r })
        });
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn single_precision() {
    for (m, mode) in MODES {
        with_modifiers(&format!("add.{m}"), "f32", "%r0, %r1, %r2", 300, &|x| {
            hardware::add32(x[0], x[1], mode)
        });
        with_modifiers(&format!("sub.{m}"), "f32", "%r0, %r1, %r2", 300, &|x| {
            hardware::add32(x[0], -x[1], mode)
        });
        with_modifiers(&format!("mul.{m}"), "f32", "%r0, %r1, %r2", 300, &|x| {
            hardware::mul32(x[0], x[1], mode)
        });
        if is_x86_feature_detected!("fma") {
            with_modifiers(
                &format!("fma.{m}"),
                "f32",
                "%r0, %r1, %r2, %r3",
                500,
                &|x| hardware::fma32(x[0], x[1], x[2], mode),
            );
        }
        for ftz in [false, true] {
            let z = if ftz { ".ftz" } else { "" };
            let input = move |v: u128| if ftz { flush(f(v)) } else { f(v) };
            let output = move |x: f32| single(if ftz { flush(x) } else { x });
            check(&format!("div.{m}{z}.f32 %r0, %r1, %r2;"), 500, |i| {
                output(hardware::div32(input(i[0]), input(i[1]), mode))
            });
            check(&format!("rcp.{m}{z}.f32 %r0, %r1;"), 300, |i| {
                output(hardware::div32(1.0, input(i[0]), mode))
            });
            check(&format!("sqrt.{m}{z}.f32 %r0, %r1;"), 300, |i| {
                output(hardware::sqrt32(0.0, input(i[0]), mode))
            });
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn double_precision() {
    for (m, mode) in MODES {
        check(&format!("add.{m}.f64 %d0, %d1, %d2;"), 500, |i| {
            double(hardware::add64(d(i[0]), d(i[1]), mode))
        });
        check(&format!("sub.{m}.f64 %d0, %d1, %d2;"), 500, |i| {
            double(hardware::add64(d(i[0]), -d(i[1]), mode))
        });
        check(&format!("mul.{m}.f64 %d0, %d1, %d2;"), 500, |i| {
            double(hardware::mul64(d(i[0]), d(i[1]), mode))
        });
        check(&format!("div.{m}.f64 %d0, %d1, %d2;"), 500, |i| {
            double(hardware::div64(d(i[0]), d(i[1]), mode))
        });
        check(&format!("rcp.{m}.f64 %d0, %d1;"), 300, |i| {
            double(hardware::div64(1.0, d(i[0]), mode))
        });
        check(&format!("sqrt.{m}.f64 %d0, %d1;"), 500, |i| {
            double(hardware::sqrt64(0.0, d(i[0]), mode))
        });
        if is_x86_feature_detected!("fma") {
            check(&format!("fma.{m}.f64 %d0, %d1, %d2, %d3;"), 1000, |i| {
                double(hardware::fma64(d(i[0]), d(i[1]), d(i[2]), mode))
            });
            // Addends that nearly cancel the product.
            super::check_with(
                &format!("fma.{m}.f64 %d0, %d1, %d2, %d3;"),
                300,
                |rng| {
                    let v = super::values::of(cupyrite_ptx::ir::Type::F64, rng);
                    let w = super::values::of(cupyrite_ptx::ir::Type::F64, rng);
                    let c = (-(d(v) * d(w))).to_bits().wrapping_add(rng.next() % 3);
                    vec![v, w, u128::from(c)]
                },
                |i| double(hardware::fma64(d(i[0]), d(i[1]), d(i[2]), mode)),
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn packed_and_mixed() {
    for (m, mode) in MODES {
        check(&format!("add.{m}.f32x2 %d0, %d1, %d2;"), 100, |i| {
            let part = |s: u32| single(hardware::add32(f(i[0] >> s), f(i[1] >> s), mode))[0] << s;
            vec![part(0) | part(32)]
        });
        check(&format!("mul.{m}.ftz.f32x2 %d0, %d1, %d2;"), 100, |i| {
            let part = |s: u32| {
                single(flush(hardware::mul32(
                    flush(f(i[0] >> s)),
                    flush(f(i[1] >> s)),
                    mode,
                )))[0]
                    << s
            };
            vec![part(0) | part(32)]
        });
    }
}

/// The result is the first operand that is a NaN, made quiet; invalid operations have a NaN of their own.
#[test]
fn payloads_of_double_precision() {
    let test = |text: &str, inputs: &[u64], want: u64| {
        let t = super::Test::new(text);
        let lane: Vec<u128> = inputs.iter().map(|&v| u128::from(v)).collect();
        let mut file = super::File::new();
        for (n, &v) in lane.iter().enumerate() {
            for k in 0..32 {
                file.set(t.args.src[n], super::Slot::R64, k, v);
            }
        }
        for s in &t.versions {
            // SAFETY: every offset is that of a slot of the aligned file.
            unsafe { (s.run)(file.0.as_mut_ptr(), &t.args, u32::MAX) };
            let got = file.lane(t.args.dst[0], t.destinations[0].slot, 31) as u64;
            assert_eq!(got, want, "{text}: {got:#x}");
        }
    };
    let (nan, quiet) = (0xfff0_0000_0000_1234, 0xfff8_0000_0000_1234);
    let (one, inf, minus_inf) = (
        1.0_f64.to_bits(),
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
    );
    let invalid = 0xfff8_0000_0000_0000;
    let other = 0x7ff0_0000_0000_0001;
    for op in ["min", "max"] {
        let text = format!("{op}.f64 %d0, %d1, %d2;");
        test(&text, &[nan, other], other | 1 << 51);
        test(&text, &[other, nan], quiet);
        test(&text, &[nan, one], one);
        test(&text, &[one, nan], one);
    }
    for m in ["rn", "rz", "rm", "rp"] {
        for (op, want) in [("add", 1), ("sub", 1), ("mul", 1), ("div", 0)] {
            let text = format!("{op}.{m}.f64 %d0, %d1, %d2;");
            for nans in [[nan, other], [other, nan]] {
                test(&text, &nans, nans[want] | 1 << 51);
            }
        }
        let third = 0x7ff8_0000_0000_0002;
        for (operands, want) in [
            ([nan, other, third], other | 1 << 51),
            ([nan, other, one], other | 1 << 51),
            ([nan, one, third], third),
            ([one, other, third], other | 1 << 51),
        ] {
            test(&format!("fma.{m}.f64 %d0, %d1, %d2, %d3;"), &operands, want);
        }
        test(&format!("add.{m}.f64 %d0, %d1, %d2;"), &[nan, one], quiet);
        test(&format!("add.{m}.f64 %d0, %d1, %d2;"), &[one, nan], quiet);
        test(
            &format!("add.{m}.f64 %d0, %d1, %d2;"),
            &[inf, minus_inf],
            invalid,
        );
        test(&format!("sub.{m}.f64 %d0, %d1, %d2;"), &[one, nan], quiet);
        test(&format!("mul.{m}.f64 %d0, %d1, %d2;"), &[0, inf], invalid);
        test(
            &format!("fma.{m}.f64 %d0, %d1, %d2, %d3;"),
            &[one, one, nan],
            quiet,
        );
        test(
            &format!("fma.{m}.f64 %d0, %d1, %d2, %d3;"),
            &[0, inf, one],
            invalid,
        );
        test(&format!("div.{m}.f64 %d0, %d1, %d2;"), &[nan, one], quiet);
        test(&format!("div.{m}.f64 %d0, %d1, %d2;"), &[0, 0], invalid);
        test(
            &format!("sqrt.{m}.f64 %d0, %d1;"),
            &[(-1.0_f64).to_bits()],
            invalid,
        );
        test(
            &format!("cvt.{m}.f32.f64 %r0, %d1;"),
            &[0x7ff8_0000_0000_0000],
            0x7fc0_0000,
        );
    }
}

/// IEEE minimum with +0 greater than -0.
fn least(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else if a == b {
        if a.is_sign_negative() { a } else { b }
    } else if a < b {
        a
    } else {
        b
    }
}

#[test]
fn extremes() {
    for ftz in [false, true] {
        let z = if ftz { ".ftz" } else { "" };
        let input = move |v: u128| if ftz { flush(f(v)) } else { f(v) };
        let greatest = |a: f32, b: f32| -least(-a, -b);
        check(&format!("min{z}.f32 %r0, %r1, %r2;"), 300, |i| {
            single(least(input(i[0]), input(i[1])))
        });
        check(&format!("max{z}.f32 %r0, %r1, %r2;"), 300, |i| {
            single(greatest(input(i[0]), input(i[1])))
        });
        check(&format!("min{z}.NaN.f32 %r0, %r1, %r2;"), 300, |i| {
            let (a, b) = (input(i[0]), input(i[1]));
            single(if a.is_nan() || b.is_nan() {
                f32::NAN
            } else {
                least(a, b)
            })
        });
        check(
            &format!("max{z}.xorsign.abs.f32 %r0, %r1, %r2;"),
            300,
            |i| {
                let (a, b) = (input(i[0]), input(i[1]));
                let r = greatest(a.abs(), b.abs());
                let negative = a.is_sign_negative() != b.is_sign_negative();
                single(if negative { -r.abs() } else { r.abs() })
            },
        );
        check(&format!("max{z}.f32 %r0, %r1, %r2, %r3;"), 100, |i| {
            single(greatest(greatest(input(i[0]), input(i[1])), input(i[2])))
        });
    }
    let least64 = |a: f64, b: f64| {
        if a.is_nan() {
            b
        } else if b.is_nan() {
            a
        } else if a == b {
            if a.is_sign_negative() { a } else { b }
        } else {
            a.min(b)
        }
    };
    check("min.f64 %d0, %d1, %d2;", 300, |i| {
        double(least64(d(i[0]), d(i[1])))
    });
    check("max.f64 %d0, %d1, %d2;", 300, |i| {
        double(-least64(-d(i[0]), -d(i[1])))
    });
}

#[test]
fn signs_and_tests() {
    check("neg.f32 %r0, %r1;", 50, |i| single(-f(i[0])));
    check("neg.ftz.f32 %r0, %r1;", 50, |i| single(-flush(f(i[0]))));
    check("abs.f32 %r0, %r1;", 50, |i| single(f(i[0]).abs()));
    // A NaN keeps its sign and becomes quiet.
    let number = |x: u128, r: u128| vec![if d(x).is_nan() { x | 1 << 51 } else { r }];
    check("neg.f64 %d0, %d1;", 50, |i| number(i[0], i[0] ^ 1 << 63));
    check("abs.f64 %d0, %d1;", 50, |i| number(i[0], i[0] & !(1 << 63)));
    check("copysign.f32 %r0, %r1, %r2;", 50, |i| {
        vec![i[1] & 0x7fff_ffff | i[0] & 1 << 31]
    });
    check("copysign.f64 %d0, %d1, %d2;", 50, |i| {
        vec![i[1] & !(1 << 63) | i[0] & 1 << 63]
    });
    for (t, r) in [("f32", 'r'), ("f64", 'd')] {
        let test = |name: &str, g: &dyn Fn(f64, bool) -> bool| {
            check(&format!("testp.{name}.{t} %p0, %{r}1;"), 100, |i| {
                let (x, subnormal) = if t == "f32" {
                    (f64::from(f(i[0])), f(i[0]).is_subnormal())
                } else {
                    (d(i[0]), d(i[0]).is_subnormal())
                };
                vec![u128::from(g(x, subnormal))]
            });
        };
        test("finite", &|x, _| x.is_finite());
        test("infinite", &|x, _| x.is_infinite());
        test("number", &|x, _| !x.is_nan());
        test("notanumber", &|x, _| x.is_nan());
        test("normal", &|x, s| x.is_finite() && !s);
        test("subnormal", &|_, s| s);
    }
}

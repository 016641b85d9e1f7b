//! Approximate functions: `div.approx`, `div.full`, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`
//! (PTX ISA, "Floating Point Instructions").
//!
//! A GPU uses tables, for which the PTX ISA states error bounds. These functions compute in double precision and round
//! once, well within the bounds. They use no fused operations, so that every host computes the same bits.

use super::float::{FTZ, flush, result, source};
use super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, flush_f16};
use super::lanes::lane;
use super::operation::{OpFn, Selected};
use super::rounding::{RN, narrow_odd};
use cupyrite_ptx::ir::{Instr, Op, Type, Word};
use std::f64::consts::{FRAC_2_PI, LN_2, LOG2_E, TAU};

/// Selects the function of an approximation.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let (&t, 1) = (i.types.first()?, i.types.len()) else {
        return None;
    };
    let m = &i.mods;
    if !(m.approx || (m.full && i.op == Op::Div)) {
        return None;
    }
    let code = match t {
        Type::F32 => single(i)?,
        Type::F64 => double(i)?,
        _ => half(i, t)?,
    };
    let sources = if i.op == Op::Div { 2 } else { 1 };
    if i.operands.len() != sources + 1 {
        return None;
    }
    let imm = if m.ftz { FTZ } else { 0 };
    Some(Selected::new(code, t, &[t; 2][..sources]).with_imm(imm))
}

fn single(i: &Instr) -> Option<OpFn> {
    /// Expands with `.ftz` applied to sources and results.
    macro_rules! with_ftz {
        (|$($a:ident),*| $e:expr) => {
            lane!(imm n; |$($a: f32),*| -> f32 {
                $(let $a = source($a, n);)*
                result($e, n)
            })
        };
    }
    Some(match i.op {
        Op::Div if i.mods.full => with_ftz!(|a, b| a / b),
        Op::Div => with_ftz!(|a, b| quotient(a, b)),
        Op::Rcp => with_ftz!(|a| 1.0 / a),
        Op::Sqrt => with_ftz!(|a| a.sqrt()),
        Op::Rsqrt => with_ftz!(|a| (1.0 / f64::from(a).sqrt()) as f32),
        Op::Sin if i.mods.has(Word::N2pi) => with_ftz!(|a| sine_of_turns(a, 0)),
        Op::Cos if i.mods.has(Word::N2pi) => with_ftz!(|a| sine_of_turns(a, 1)),
        Op::Sin => with_ftz!(|a| sine(a, 0)),
        Op::Cos => with_ftz!(|a| sine(a, 1)),
        Op::Lg2 => with_ftz!(|a| logarithm(a)),
        Op::Ex2 => with_ftz!(|a| exponential(f64::from(a)) as f32),
        Op::Tanh => with_ftz!(|a| tangent(f64::from(a)) as f32),
        _ => return None,
    })
}

/// `div.approx`. A divisor above 2^126 has a subnormal reciprocal, which the instruction treats as zero.
#[inline(always)]
fn quotient(a: f32, b: f32) -> f32 {
    /// 2^126.
    const LARGE: f32 = f32::from_bits(253 << 23);
    let large = (b.abs() > LARGE) & (b.abs() < f32::INFINITY);
    let reciprocal = if large { f32::copysign(0.0, b) } else { 1.0 };
    if large { a * reciprocal } else { a / b }
}

/// Adding it rounds to an integer, which is in the low bits of the sum.
const SHIFTER: f64 = 6_755_399_441_055_744.0;

/// Beyond this bound, neighbours in single precision are further apart than a turn, and the argument of a sine counts as
/// zero.
const FAR: f64 = 1_073_741_824.0;

/// Sine of `x` plus `quarter` quarter turns.
#[inline(always)]
fn sine(x: f32, quarter: u64) -> f32 {
    /// π/2 in parts of 33 bits, whose products with small integers are exact, and the rest.
    const FIRST: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
    const SECOND: f64 = f64::from_bits(0x3dd0_b461_1a60_0000);
    const THIRD: f64 = f64::from_bits(0x3ba3_198a_2e03_7073);
    let w = f64::from(x);
    let w = if w.abs() < FAR { w } else { w * 0.0 };
    let shifted = w * FRAC_2_PI + SHIFTER;
    let k = shifted - SHIFTER;
    let turn = shifted.to_bits().wrapping_add(quarter);
    sine_in_quadrant(((w - k * FIRST) - k * SECOND) - k * THIRD, turn)
}

/// Sine of `x` turns plus `quarter` quarter turns.
#[inline(always)]
fn sine_of_turns(x: f32, quarter: u64) -> f32 {
    let w = f64::from(x);
    let w = if w.abs() < FAR { w } else { w * 0.0 };
    let shifted = w * 4.0 + SHIFTER;
    let k = shifted - SHIFTER;
    let turn = shifted.to_bits().wrapping_add(quarter);
    let v = sine_in_quadrant((w - k * 0.25) * TAU, turn);
    // Zeros of the cosine are positive.
    if quarter == 1 { v + 0.0 } else { v }
}

/// Sine of `r`, at most an eighth of a turn, plus `turn` quarter turns.
#[inline(always)]
fn sine_in_quadrant(r: f64, turn: u64) -> f32 {
    let z = r * r;
    let sin = {
        let p = z * (1.0 / 6_227_020_800.0) - 1.0 / 39_916_800.0;
        let p = p * z + 1.0 / 362_880.0;
        let p = p * z - 1.0 / 5_040.0;
        let p = p * z + 1.0 / 120.0;
        let p = p * z - 1.0 / 6.0;
        r * (1.0 + z * p)
    };
    let cos = {
        let p = z * (1.0 / 479_001_600.0) - 1.0 / 3_628_800.0;
        let p = p * z + 1.0 / 40_320.0;
        let p = p * z - 1.0 / 720.0;
        let p = p * z + 1.0 / 24.0;
        let p = p * z - 0.5;
        1.0 + z * p
    };
    let v = if turn & 1 != 0 { cos } else { sin };
    f64::from_bits(v.to_bits() ^ (turn & 2) << 62) as f32
}

/// Binary logarithm.
#[inline(always)]
fn logarithm(x: f32) -> f32 {
    /// Bits of the square root of 1/2.
    const LEAST: u64 = 0x3fe6_a09e_667f_3bcd;
    // Every positive single-precision number is a normal double.
    let bits = f64::from(x).to_bits();
    let offset = bits.wrapping_sub(LEAST);
    let e = (offset as i64 >> 52) as i32;
    let m = f64::from_bits(bits.wrapping_sub(offset & 0xfff0_0000_0000_0000));
    let t = (m - 1.0) / (m + 1.0);
    let z = t * t;
    let p = z * (1.0 / 13.0) + 1.0 / 11.0;
    let p = p * z + 1.0 / 9.0;
    let p = p * z + 1.0 / 7.0;
    let p = p * z + 1.0 / 5.0;
    let p = p * z + 1.0 / 3.0;
    let y = (f64::from(e) + (2.0 * LOG2_E) * (t + t * (z * p))) as f32;
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    if (x < 0.0) | x.is_nan() { f32::NAN } else { y }
}

/// Two to the power of `x`, in double precision.
#[inline(always)]
fn exponential(x: f64) -> f64 {
    // Clamps far beyond the range of single precision, and keeps a NaN.
    let w = if x > 200.0 { 200.0 } else { x };
    let w = if w < -200.0 { -200.0 } else { w };
    let shifted = w + SHIFTER;
    let y = (w - (shifted - SHIFTER)) * LN_2;
    let p = y * (1.0 / 362_880.0) + 1.0 / 40_320.0;
    let p = p * y + 1.0 / 5_040.0;
    let p = p * y + 1.0 / 720.0;
    let p = p * y + 1.0 / 120.0;
    let p = p * y + 1.0 / 24.0;
    let p = p * y + 1.0 / 6.0;
    let p = p * y + 0.5;
    let p = p * y + 1.0;
    let p = p * y + 1.0;
    // The low bits of `shifted` are the integer in two's complement.
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    p * scale
}

#[inline(always)]
fn tangent(w: f64) -> f64 {
    let e = exponential(w * (2.0 * LOG2_E));
    let y = (e - 1.0) / (e + 1.0);
    let z = w * w;
    let small = w * (1.0 - z * (1.0 / 3.0 - z * (2.0 / 15.0)));
    // For small arguments `e - 1` cancels.
    if z < 1.0 / 4096.0 { small } else { y }
}

/// Half-precision forms of `ex2` and `tanh`.
fn half(i: &Instr, t: Type) -> Option<OpFn> {
    macro_rules! forms {
        (|$x:ident| $e:expr) => {
            match t {
                Type::F16 => lane!(imm n; |h: u16| -> u16 { f16(h, n, |$x| $e) }),
                Type::BF16 => lane!(|h: u16| -> u16 { bf16(h, |$x| $e) }),
                Type::F16x2 => lane!(imm n; |h: u32| -> u32 {
                    u32::from(f16(h as u16, n, |$x| $e))
                } upper {
                    u32::from(f16((h >> 16) as u16, n, |$x| $e)) << 16
                }),
                Type::BF16x2 => lane!(|h: u32| -> u32 {
                    u32::from(bf16(h as u16, |$x| $e)) | u32::from(bf16((h >> 16) as u16, |$x| $e)) << 16
                }),
                _ => return None,
            }
        };
    }
    #[inline(always)]
    fn f16(h: u16, imm: u32, f: impl Fn(f32) -> f32) -> u16 {
        let h = if imm & FTZ != 0 { flush_f16(h) } else { h };
        let r = f32_to_f16::<RN>(f(f16_to_f32(h)));
        if imm & FTZ != 0 { flush_f16(r) } else { r }
    }
    /// `ex2` of `.bf16` always flushes. The `tanh` of a subnormal is the subnormal itself; both zero and it are within the
    /// bound.
    #[inline(always)]
    fn bf16(h: u16, f: impl Fn(f32) -> f32) -> u16 {
        f32_to_bf16::<RN>(f(bf16_to_f32(h)))
    }
    Some(match i.op {
        Op::Ex2 if i.mods.ftz && matches!(t, Type::BF16 | Type::BF16x2) => {
            forms!(|x| flush(narrow_odd(exponential(f64::from(flush(x))))))
        }
        Op::Ex2 => forms!(|x| narrow_odd(exponential(f64::from(x)))),
        Op::Tanh => forms!(|x| narrow_odd(tangent(f64::from(x)))),
        _ => return None,
    })
}

fn double(i: &Instr) -> Option<OpFn> {
    /// Replaces a subnormal number by a zero of the same sign.
    #[inline(always)]
    fn flush64(x: f64) -> f64 {
        let bits = x.to_bits();
        f64::from_bits(if bits & 0x7ff0_0000_0000_0000 == 0 {
            bits & (1 << 63)
        } else {
            bits
        })
    }
    /// The upper 32 bits of a number: sign, exponent and 20 bits, rounded to nearest.
    #[inline(always)]
    fn upper(x: f64) -> f64 {
        let bits = flush64(x).to_bits();
        let finite = bits & 0x7ff0_0000_0000_0000 != 0x7ff0_0000_0000_0000;
        let rounded = if finite {
            bits.wrapping_add(1 << 31)
        } else {
            bits
        };
        f64::from_bits(rounded & 0xffff_ffff_0000_0000)
    }
    /// The upper 32 bits of a source; the instruction ignores the lower ones.
    #[inline(always)]
    fn head(x: f64) -> f64 {
        flush64(f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000))
    }
    Some(match (i.op, i.mods.ftz) {
        (Op::Rcp, true) => lane!(|a: f64| -> f64 { upper(1.0 / keep_nan(a, head(a))) }),
        (Op::Rsqrt, true) => lane!(|a: f64| -> f64 { upper(1.0 / keep_nan(a, head(a)).sqrt()) }),
        (Op::Rsqrt, false) => lane!(|a: f64| -> f64 { 1.0 / a.sqrt() }),
        _ => return None,
    })
}

/// `b`, or a NaN if `a` is one. The payload of `a` may lie in the bits that `b` lacks.
#[inline(always)]
fn keep_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() { a } else { b }
}

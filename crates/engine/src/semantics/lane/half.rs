//! Half precision: `.f16`, `.bf16` and their pairs (PTX ISA, "Half Precision Floating Point Instructions").
//!
//! Values are computed in single or double precision and rounded again. For sums and products of `.f16` and sums of
//! `.bf16` in single precision, rounding twice is exact: the intermediate format has at least 2p + 2 bits, and results
//! below the normal range are exact. All other intermediate results are rounded to odd.

use super::lanes::lane;
use super::operation::{OpFn, Selected};
use super::rounding::{RM, RN, RNA, RP, RZ, narrow_odd, odd_sum};
use cupyrite_ptx::ir::{Instr, Op, Type, Word};

/// The canonical NaN of half precision.
pub const NAN16: u16 = 0x7fff;

/// Converts to single precision, which is exact.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    /// Difference of the exponent biases.
    const REBIAS: u32 = (127 - 15) << 23;
    let h = u32::from(h);
    let magnitude = h & 0x7fff;
    let normal = (magnitude << 13) + REBIAS;
    let special = normal + REBIAS;
    // Subnormals as an integer number of units, because arithmetic on subnormals is slow.
    let small = (magnitude as i32 as f32 * (1.0 / 16_777_216.0)).to_bits();
    let bits = if magnitude < 0x400 { small } else { normal };
    let bits = if magnitude >= 0x7c00 { special } else { bits };
    f32::from_bits(bits | (h & 0x8000) << 16)
}
/// Converts to single precision, which is exact.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}
/// Replaces a subnormal number by a zero of the same sign.
#[inline(always)]
pub fn flush_f16(h: u16) -> u16 {
    if h & 0x7c00 == 0 { h & 0x8000 } else { h }
}

/// Whether a directed mode moves a number of this sign away from zero.
#[inline(always)]
fn away<const M: u8>(negative: bool) -> bool {
    match M {
        RM => negative,
        RP => !negative,
        _ => false,
    }
}
/// Value to add before truncating at bit `n`.
#[inline(always)]
fn increment<const M: u8>(a: u32, n: u32, negative: bool) -> u32 {
    match M {
        RN => (1 << (n - 1)) - 1 + (a >> n & 1),
        RNA => 1 << (n - 1),
        RZ => 0,
        _ => {
            if away::<M>(negative) {
                (1 << n) - 1
            } else {
                0
            }
        }
    }
}

/// Rounds to `.f16`.
#[inline(always)]
pub fn f32_to_f16<const M: u8>(x: f32) -> u16 {
    /// The smallest normal number, in single precision.
    const NORMAL: u32 = 113 << 23;
    let bits = x.to_bits();
    let negative = bits >> 31 != 0;
    let a = bits & 0x7fff_ffff;
    // Normal numbers. Rounding may carry into the exponent, up to infinity.
    let normal = (a
        .wrapping_sub(112 << 23)
        .wrapping_add(increment::<M>(a, 13, negative)))
        >> 13;
    let stays = M == RZ || (M == RM && !negative) || (M == RP && negative);
    let most = if stays { 0x7bff } else { 0x7c00 };
    let normal = normal.min(most);
    let normal = if a >= 0x4780_0000 { most } else { normal };
    // Subnormal numbers. Adding 0.5, whose unit is that of a subnormal, rounds to nearest.
    let magnitude = f32::from_bits(a);
    let n = (magnitude + 0.5).to_bits() - 0x3f00_0000;
    let back = f32::from_bits(0x3f00_0000 | n) - 0.5;
    let n = match M {
        RN => n,
        RNA => n + u32::from(magnitude - back == f32::from_bits(0x3300_0000)),
        RZ => n - u32::from(back > magnitude),
        _ if away::<M>(negative) => n + u32::from(back < magnitude),
        _ => n - u32::from(back > magnitude),
    };
    let h = if a < NORMAL { n } else { normal };
    let h = if a == 0x7f80_0000 { 0x7c00 } else { h };
    let h = h | (bits >> 16 & 0x8000);
    (if a > 0x7f80_0000 { u32::from(NAN16) } else { h }) as u16
}

/// Rounds to `.bf16`.
#[inline(always)]
pub fn f32_to_bf16<const M: u8>(x: f32) -> u16 {
    let bits = x.to_bits();
    let a = bits & 0x7fff_ffff;
    let h = (a + increment::<M>(a, 16, bits >> 31 != 0)) >> 16;
    let h = if a == 0x7f80_0000 { 0x7f80 } else { h };
    let h = h | (bits >> 16 & 0x8000);
    (if a > 0x7f80_0000 { u32::from(NAN16) } else { h }) as u16
}

/// Whether a factor is the NaN that a tensor copy writes outside of the tensor, of either sign. `fma.oob` then gives zero,
/// whatever the addend (H100, driver 580).
#[inline(always)]
fn is_out_of_bounds(h: u16) -> bool {
    h & 0x7fff == 0x7ff7
}

/// A half-precision format.
trait Half {
    fn widen(h: u16) -> f32;
    fn round(x: f32) -> u16;
    fn add(a: u16, b: u16) -> u16;
    fn mul(a: u16, b: u16) -> u16;
    #[inline(always)]
    fn fma(a: u16, b: u16, c: u16) -> u16 {
        let p = f64::from(Self::widen(a)) * f64::from(Self::widen(b));
        Self::round(narrow_odd(odd_sum(p, f64::from(Self::widen(c)))))
    }
}
struct F16;
struct Bf16;
impl Half for F16 {
    #[inline(always)]
    fn widen(h: u16) -> f32 {
        f16_to_f32(h)
    }
    #[inline(always)]
    fn round(x: f32) -> u16 {
        f32_to_f16::<RN>(x)
    }
    #[inline(always)]
    fn add(a: u16, b: u16) -> u16 {
        Self::round(f16_to_f32(a) + f16_to_f32(b))
    }
    #[inline(always)]
    fn mul(a: u16, b: u16) -> u16 {
        Self::round(f16_to_f32(a) * f16_to_f32(b))
    }
}
impl Half for Bf16 {
    #[inline(always)]
    fn widen(h: u16) -> f32 {
        bf16_to_f32(h)
    }
    #[inline(always)]
    fn round(x: f32) -> u16 {
        f32_to_bf16::<RN>(x)
    }
    #[inline(always)]
    fn add(a: u16, b: u16) -> u16 {
        Self::round(bf16_to_f32(a) + bf16_to_f32(b))
    }
    #[inline(always)]
    fn mul(a: u16, b: u16) -> u16 {
        // The product may be subnormal in single precision, and therefore inexact.
        Self::round(narrow_odd(
            f64::from(bf16_to_f32(a)) * f64::from(bf16_to_f32(b)),
        ))
    }
}

/// Bits of `imm`.
const FTZ: u32 = 1;
const SAT: u32 = 2;
const RELU: u32 = 4;
const NAN: u32 = 8;
const XORSIGN: u32 = 16;

#[inline(always)]
fn flush(h: u16, imm: u32) -> u16 {
    if imm & FTZ != 0 { flush_f16(h) } else { h }
}

/// The result, or the NaN of arithmetic if the source is a NaN.
#[inline(always)]
fn number<H: Half>(source: u16, result: u16) -> u16 {
    if H::widen(source).is_nan() {
        NAN16
    } else {
        result
    }
}

/// Applies `.ftz`, `.sat` and `.relu` to a result; `one` is 1.0 in the format.
#[inline(always)]
fn finish(h: u16, imm: u32, one: u16) -> u16 {
    let h = flush(h, imm);
    let infinity = if one == 0x3c00 { 0x7c00 } else { 0x7f80 };
    let nan = h & 0x7fff > infinity;
    let negative = h >> 15 != 0;
    let saturated = if nan | negative { 0 } else { h.min(one) };
    let h = if imm & SAT != 0 { saturated } else { h };
    if (imm & RELU != 0) & negative & !nan {
        0
    } else {
        h
    }
}

/// Minimum or maximum; +0 is greater than -0.
#[inline(always)]
fn extreme<H: Half>(a: u16, b: u16, imm: u32, greater: bool) -> u16 {
    let (a, b) = (flush(a, imm), flush(b, imm));
    let sign = (a ^ b) & 0x8000;
    let (a, b) = if imm & XORSIGN != 0 {
        (a & 0x7fff, b & 0x7fff)
    } else {
        (a, b)
    };
    let (x, y) = (H::widen(a), H::widen(b));
    let tie = if greater { a & b } else { a | b };
    let first = if greater { x > y } else { x < y };
    let second = if greater { y > x } else { y < x };
    let r = if first {
        a
    } else if second {
        b
    } else {
        tie
    };
    let lone = if x.is_nan() { b } else { a };
    let either = x.is_nan() | y.is_nan();
    let nan = (x.is_nan() & y.is_nan()) | (either & (imm & NAN != 0));
    let r = if nan {
        NAN16
    } else if either {
        lone
    } else {
        r
    };
    let r = if (imm & RELU != 0) & (r >> 15 != 0) & !nan {
        0
    } else {
        r
    };
    if (imm & XORSIGN != 0) & !nan {
        r | sign
    } else {
        r
    }
}

/// Selects the function of an instruction on half-precision types.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    if i.types.len() != 1 || !matches!(t, Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2) {
        return None;
    }
    let m = &i.mods;
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let imm = flag(m.ftz, FTZ)
        | flag(m.sat, SAT)
        | flag(m.relu, RELU)
        | flag(m.nan, NAN)
        | flag(m.xorsign, XORSIGN);
    /// Expands to one function per type; `$one` is 1.0.
    macro_rules! types {
        (|$a:ident, $b:ident, $c:ident, $n:ident, $h:ident, $one:ident| $e:expr) => {
            types!(@ $a, $b, $c, $n, $h, $one, $e)
        };
        (@ $a:ident, $b:ident, $c:ident, $n:ident, $h:ident, $one:ident, $e:expr) => {
            match t {
                Type::F16 => types!(@one F16, 0x3c00, $a, $b, $c, $n, $h, $one, $e),
                Type::BF16 => types!(@one Bf16, 0x3f80, $a, $b, $c, $n, $h, $one, $e),
                Type::F16x2 => types!(@two F16, 0x3c00, $a, $b, $c, $n, $h, $one, $e),
                _ => types!(@two Bf16, 0x3f80, $a, $b, $c, $n, $h, $one, $e),
            }
        };
        (@one $ty:ty, $v:literal, $a:ident, $b:ident, $c:ident, $n:ident, $h:ident, $one:ident, $e:expr) => {{
            type $h = $ty;
            const $one: u16 = $v;
            lane!(imm $n; |$a: u16, $b: u16, $c: u16| -> u16 { $e })
        }};
        (@two $ty:ty, $v:literal, $a:ident, $b:ident, $c:ident, $n:ident, $h:ident, $one:ident, $e:expr) => {{
            type $h = $ty;
            const $one: u16 = $v;
            lane!(imm $n; |a: u32, b: u32, c: u32| -> u32 {
                let ($a, $b, $c) = (a as u16, b as u16, c as u16);
                u32::from($e)
            } upper {
                let ($a, $b, $c) = ((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
                u32::from($e) << 16
            })
        }};
    }
    let (code, sources): (OpFn, usize) = match i.op {
        Op::Add => (
            types!(|a, b, _c, n, H, ONE| finish(H::add(flush(a, n), flush(b, n)), n, ONE)),
            2,
        ),
        Op::Sub => (
            types!(|a, b, _c, n, H, ONE| {
                // The negation of a NaN is the canonical NaN.
                finish(H::add(flush(a, n), flush(b, n) ^ 0x8000), n, ONE)
            }),
            2,
        ),
        Op::Mul => (
            types!(|a, b, _c, n, H, ONE| finish(H::mul(flush(a, n), flush(b, n)), n, ONE)),
            2,
        ),
        Op::Fma if m.has(Word::Oob) => (
            types!(|a, b, c, n, H, ONE| {
                let r = finish(H::fma(flush(a, n), flush(b, n), flush(c, n)), n, ONE);
                if is_out_of_bounds(a) | is_out_of_bounds(b) {
                    0
                } else {
                    r
                }
            }),
            3,
        ),
        // The assembler accepts directed rounding of `.bf16`, which the manual does not have, and rounds to nearest
        // (ptxas 13.5).
        Op::Fma | Op::Mad => (
            types!(|a, b, c, n, H, ONE| finish(
                H::fma(flush(a, n), flush(b, n), flush(c, n)),
                n,
                ONE
            )),
            3,
        ),
        Op::Neg => (
            types!(|a, _b, _c, n, H, ONE| {
                let _ = ONE;
                number::<H>(a, flush(a, n) ^ 0x8000)
            }),
            1,
        ),
        Op::Abs => (
            types!(|a, _b, _c, n, H, ONE| {
                let _ = ONE;
                number::<H>(a, flush(a, n) & 0x7fff)
            }),
            1,
        ),
        Op::Min if i.operands.len() == 3 => (
            types!(|a, b, _c, n, H, ONE| {
                let _ = ONE;
                extreme::<H>(a, b, n, false)
            }),
            2,
        ),
        Op::Max if i.operands.len() == 3 => (
            types!(|a, b, _c, n, H, ONE| {
                let _ = ONE;
                extreme::<H>(a, b, n, true)
            }),
            2,
        ),
        _ => return None,
    };
    let mut s = Selected::new(code, t, &[t; 3][..sources]).with_imm(imm);
    s.scratch_up_to(3, t);
    Some(s)
}

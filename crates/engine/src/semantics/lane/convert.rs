//! `cvt` between integers and floating-point numbers (PTX ISA, "Data Movement and Conversion Instructions: cvt").
//! The packed and the eight-bit formats are in [`super::formats`].

use super::float::{by_mode, canonical, flush, mode, saturate};
use super::half::{NAN16, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::lanes::lane;
use super::operation::{OpFn, Selected, Slot};
use super::rounding::{Exact, F64, RM, RN, RP, RZ, narrow, narrow_odd, odd_u64};
use cupyrite_ptx::ir::{Instr, Op, Operand, Register, Rounding, Type};

/// Selects the function of a `cvt`.
pub(super) fn select(i: &Instr, regs: &[Register]) -> Option<Selected> {
    if i.op != Op::Cvt || i.operands.len() != 2 {
        return None;
    }
    let (&d, &s) = (i.types.first()?, i.types.get(1)?);
    if i.types.len() != 2 {
        return None;
    }
    let (code, imm) = match (class(d)?, class(s)?) {
        (Class::Int, Class::Int) if i.mods.sat => (clamp(d, s)?, d),
        (Class::Int, Class::Int) => (truncate(d, s)?, d),
        (Class::Int, Class::Float) => (to_int(d, s, i.mods.rounding?)?, d),
        (Class::Float, Class::Int) => {
            return Some(Selected::new(from_int(i, d, s)?, d, &[s]).with_imm(flags(i)));
        }
        (Class::Float, Class::Float) => {
            return Some(Selected::new(float_to_float(i, d, s)?, d, &[s]).with_imm(flags(i)));
        }
    };
    let ftz = if i.mods.ftz { FTZ } else { 0 };
    Some(Selected::new(code, d, &[s]).with_imm(extension(imm, i, regs) | ftz))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Int,
    Float,
}

fn class(t: Type) -> Option<Class> {
    Some(match t {
        Type::U8
        | Type::S8
        | Type::U16
        | Type::S16
        | Type::U32
        | Type::S32
        | Type::U64
        | Type::S64 => Class::Int,
        Type::B8 | Type::B16 | Type::B32 | Type::B64 => Class::Int,
        Type::F16 | Type::BF16 | Type::F32 | Type::F64 => Class::Float,
        _ => return None,
    })
}

/// Bits of `imm`.
pub const FTZ: u32 = 1 << 16;
pub const SAT: u32 = 1 << 17;
pub const RELU: u32 = 1 << 18;
pub const SATFINITE: u32 = 1 << 19;

/// Modifiers that apply to a floating-point result.
pub fn flags(i: &Instr) -> u32 {
    let m = &i.mods;
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    flag(m.ftz, FTZ) | flag(m.sat, SAT) | flag(m.relu, RELU) | flag(m.satfinite, SATFINITE)
}

/// How an integer result of type `d` is extended to its slot, as bits of `imm`. Bits 0 to 4: distance of the shifts up and
/// down. Bit 5: the shift down copies the sign. Bit 6: the result keeps 16 bits. Bits 8 to 10: index of the type in the
/// tables of bounds.
fn extension(d: Type, i: &Instr, regs: &[Register]) -> u32 {
    let shift = if d.bits() < 32 { 32 - d.bits() } else { 0 };
    let narrow_register = match i.operands.first() {
        Some(Operand::Reg(r) | Operand::RegComponent(r, _)) => {
            regs.get(r.0 as usize).is_none_or(|r| r.ty.bits() <= 16)
        }
        _ => true,
    };
    let half = d.bits() < 32 && narrow_register;
    shift | u32::from(d.is_signed()) << 5 | u32::from(half) << 6 | index(d) << 8
}
/// Index of an integer type in [`LOWEST`] and [`HIGHEST`].
fn index(t: Type) -> u32 {
    match t {
        Type::U8 | Type::B8 => 0,
        Type::S8 => 1,
        Type::U16 | Type::B16 => 2,
        Type::S16 => 3,
        Type::U32 | Type::B32 => 4,
        Type::S32 => 5,
        Type::U64 | Type::B64 => 6,
        _ => 7,
    }
}
const LOWEST: [i64; 8] = [
    0,
    i8::MIN as i64,
    0,
    i16::MIN as i64,
    0,
    i32::MIN as i64,
    0,
    i64::MIN,
];
const HIGHEST: [u64; 8] = [
    u8::MAX as u64,
    i8::MAX as u64,
    u16::MAX as u64,
    i16::MAX as u64,
    u32::MAX as u64,
    i32::MAX as u64,
    u64::MAX,
    i64::MAX as u64,
];
#[inline(always)]
fn bounds(imm: u32) -> (i64, u64) {
    let n = (imm >> 8 & 7) as usize;
    (LOWEST[n], HIGHEST[n])
}
/// Extends a value as [`extension`] encodes it.
#[inline(always)]
fn extend(v: u32, imm: u32) -> u32 {
    let shift = imm & 31;
    let up = v << shift;
    let v = if imm & 32 != 0 {
        (up as i32 >> shift) as u32
    } else {
        up >> shift
    };
    if imm & 64 != 0 { v & 0xffff } else { v }
}

/// Expands with the Rust type of an integer type.
macro_rules! by_source {
    ($s:expr, $t:ident => $e:expr) => {
        match $s {
            Type::U8 | Type::B8 => {
                type $t = u8;
                Some($e)
            }
            Type::S8 => {
                type $t = i8;
                Some($e)
            }
            Type::U16 | Type::B16 => {
                type $t = u16;
                Some($e)
            }
            Type::S16 => {
                type $t = i16;
                Some($e)
            }
            Type::U32 | Type::B32 => {
                type $t = u32;
                Some($e)
            }
            Type::S32 => {
                type $t = i32;
                Some($e)
            }
            Type::U64 | Type::B64 => {
                type $t = u64;
                Some($e)
            }
            Type::S64 => {
                type $t = i64;
                Some($e)
            }
            _ => None,
        }
    };
}

fn truncate(d: Type, s: Type) -> Option<OpFn> {
    match d.bits() {
        64 => by_source!(s, S => lane!(|a: S| -> u64 { a as u64 })),
        32 => by_source!(s, S => lane!(|a: S| -> u32 { a as u32 })),
        _ => by_source!(s, S => lane!(imm n; |a: S| -> u32 { extend(a as u32, n) })),
    }
}

/// `.sat` between integers: clamps to the range of the destination.
fn clamp(d: Type, s: Type) -> Option<OpFn> {
    /// Bounds for a source that fits `i64`, and for one that does not.
    #[inline(always)]
    fn signed(v: i64, imm: u32) -> u64 {
        let (low, high) = bounds(imm);
        let v = v.max(low);
        if v >= 0 {
            (v as u64).min(high)
        } else {
            v as u64
        }
    }
    #[inline(always)]
    fn unsigned(v: u64, imm: u32) -> u64 {
        v.min(bounds(imm).1)
    }
    if s == Type::U64 {
        return Some(if d.bits() == 64 {
            lane!(imm n; |a: u64| -> u64 { unsigned(a, n) })
        } else {
            lane!(imm n; |a: u64| -> u32 { extend(unsigned(a, n) as u32, n) })
        });
    }
    if d.bits() == 64 {
        by_source!(s, S => lane!(imm n; |a: S| -> u64 { signed(a as i64, n) }))
    } else {
        by_source!(s, S => lane!(imm n; |a: S| -> u32 { extend(signed(a as i64, n) as u32, n) }))
    }
}

/// Conversions from a floating-point number to an integer. Those of the language do not vectorize.
trait Round: Copy {
    fn integral<const M: u8>(self) -> Self;
    /// Converts an integral value, clamped; a NaN becomes 0.
    fn to_i32(self) -> i32;
    /// Converts an integral value to an unsigned integer, clamped; a NaN becomes 0.
    fn to_u32(self) -> u32;
}
macro_rules! round {
    ($($t:ty)*) => { $(
        impl Round for $t {
            #[inline(always)]
            fn integral<const M: u8>(self) -> $t {
                match M {
                    RN => self.round_ties_even(),
                    RZ => self.trunc(),
                    RM => self.floor(),
                    _ => self.ceil(),
                }
            }
            // Both comparisons are evaluated, to avoid a branch per lane.
            #[allow(clippy::manual_range_contains)]
            #[inline(always)]
            fn to_i32(self) -> i32 {
                const END: $t = 2_147_483_648.0;
                let inside = if (self >= -END) & (self < END) { self } else { 0.0 };
                // SAFETY: the value is clamped to the range of `i32`.
                let i: i32 = unsafe { inside.to_int_unchecked() };
                let i = if self >= END { i32::MAX } else { i };
                if self < -END { i32::MIN } else { i }
            }
            #[allow(clippy::manual_range_contains)]
            #[inline(always)]
            fn to_u32(self) -> u32 {
                const HALF: $t = 2_147_483_648.0;
                let inside = if (self >= 0.0) & (self < 2.0 * HALF) { self } else { 0.0 };
                let upper = inside >= HALF;
                let low = if upper { inside - HALF } else { inside };
                // SAFETY: the value is between 0 and 2^31 - 1.
                let i: i32 = unsafe { low.to_int_unchecked() };
                let i = if upper { i as u32 | 1 << 31 } else { i as u32 };
                if self >= 2.0 * HALF { u32::MAX } else { i }
            }
        }
    )* };
}
round!(f32 f64);

fn integer_mode(r: Rounding) -> Option<u8> {
    Some(match r {
        Rounding::Rni => RN,
        Rounding::Rzi => RZ,
        Rounding::Rmi => RM,
        Rounding::Rpi => RP,
        _ => return None,
    })
}

/// Float to integer. Results are clamped to the range of the destination. A NaN becomes 0, or only the top bit set if the
/// source is double precision or the destination has 64 bits.
fn to_int(d: Type, s: Type, r: Rounding) -> Option<OpFn> {
    let m = integer_mode(r)?;
    macro_rules! from {
        ($raw:ty, $top:literal, |$x:ident, $n:ident| $e:expr) => {
            by_mode!(m, M => match d {
                Type::S32 => lane!(imm $n; |$x: $raw| -> i32 {
                    let v = ($e).integral::<M>();
                    if $top && v.is_nan() { i32::MIN } else { v.to_i32() }
                }),
                Type::U32 => lane!(imm $n; |$x: $raw| -> u32 {
                    let v = ($e).integral::<M>();
                    if $top && v.is_nan() { 1 << 31 } else { v.to_u32() }
                }),
                Type::S64 => lane!(imm $n; |$x: $raw| -> i64 {
                    let v = ($e).integral::<M>();
                    if v.is_nan() { i64::MIN } else { v as i64 }
                }),
                Type::U64 => lane!(imm $n; |$x: $raw| -> u64 {
                    let v = ($e).integral::<M>();
                    if v.is_nan() { 1 << 63 } else { v as u64 }
                }),
                Type::U8 | Type::S8 | Type::U16 | Type::S16 => lane!(imm $n; |$x: $raw| -> u32 {
                    let v = ($e).integral::<M>();
                    let (low, high) = bounds($n);
                    let i = v.to_i32().clamp(low as i32, high as i32) as u32;
                    let top = 1 << (31 - ($n & 31));
                    extend(if $top && v.is_nan() { top } else { i }, $n)
                }),
                _ => return None,
            })
        };
    }
    Some(match s {
        Type::F32 => from!(f32, false, |x, n| if n & FTZ != 0 { flush(x) } else { x }),
        Type::F64 => from!(f64, true, |x, _n| x),
        Type::F16 => from!(u16, false, |x, _n| f16_to_f32(x)),
        Type::BF16 => from!(u16, false, |x, _n| bf16_to_f32(x)),
        _ => return None,
    })
}

/// Applies the modifiers in `imm` to a single-precision result.
#[inline(always)]
fn finish(x: f32, imm: u32) -> f32 {
    finish_wide(canonical(x), imm)
}
/// Applies the modifiers in `imm` to a result that was double precision. A NaN keeps the part of its payload that fits.
#[inline(always)]
fn finish_wide(x: f32, imm: u32) -> f32 {
    let x = if imm & FTZ != 0 { flush(x) } else { x };
    let x = if (imm & RELU != 0) & (x < 0.0) {
        0.0
    } else {
        x
    };
    if imm & SAT != 0 { saturate(x) } else { x }
}
#[inline(always)]
fn finish64(x: f64, imm: u32) -> f64 {
    let low = if x > 0.0 { x } else { 0.0 };
    let saturated = if low < 1.0 { low } else { 1.0 };
    if imm & SAT != 0 { saturated } else { x }
}
/// Applies the modifiers in `imm` to a half-precision result of the format with this infinity.
#[inline(always)]
pub fn finish16(h: u16, imm: u32, infinity: u16) -> u16 {
    let magnitude = h & 0x7fff;
    let negative = h >> 15 != 0;
    let nan = magnitude > infinity;
    let one = if infinity == 0x7c00 { 0x3c00 } else { 0x3f80 };
    let saturated = if nan | negative { 0 } else { h.min(one) };
    let h = if imm & SAT != 0 { saturated } else { h };
    let h = if (imm & RELU != 0) & negative & !nan {
        0
    } else {
        h
    };
    let h = if (imm & SATFINITE != 0) & (h & 0x7fff == infinity) {
        h - 1
    } else {
        h
    };
    if nan & (imm & SAT == 0) { NAN16 } else { h }
}

/// An integer as a double that rounds to every shorter format like the integer.
trait RoundToOdd: Copy {
    fn odd(self) -> f64;
}
macro_rules! odd {
    ($($t:ty)*) => { $(
        impl RoundToOdd for $t {
            #[inline(always)]
            fn odd(self) -> f64 { f64::from(self) }
        }
    )* };
}
odd!(u8 i8 u16 i16 u32 i32);
impl RoundToOdd for u64 {
    #[inline(always)]
    fn odd(self) -> f64 {
        odd_u64(self)
    }
}
impl RoundToOdd for i64 {
    #[inline(always)]
    fn odd(self) -> f64 {
        let v = odd_u64(self.unsigned_abs());
        if self < 0 { -v } else { v }
    }
}

fn from_int(i: &Instr, d: Type, s: Type) -> Option<OpFn> {
    let m = mode(i.mods.rounding)?;
    match d {
        Type::F64 if m == RN || s.bits() < 64 => by_source!(s, S => lane!(imm n; |a: S| -> f64 {
            let v = a as f64;
            if n & SAT != 0 { finish64(v, n) } else { v }
        })),
        Type::F64 => Some(match s {
            Type::S64 => by_mode!(m, M => lane!(imm n; |a: i64| -> f64 {
                let e = Exact { negative: a < 0, sig: u128::from(a.unsigned_abs()), exp: 0 };
                finish64(f64::from_bits(e.encode(F64, M)), n)
            })),
            _ => by_mode!(m, M => lane!(imm n; |a: u64| -> f64 {
                let e = Exact { negative: false, sig: u128::from(a), exp: 0 };
                finish64(f64::from_bits(e.encode(F64, M)), n)
            })),
        }),
        Type::F32 if m == RN || s.bits() < 32 => by_source!(s, S => lane!(imm n; |a: S| -> f32 {
            let v = a as f32;
            if n & SAT != 0 { saturate(v) } else { v }
        })),
        Type::F32 => by_mode!(m, M => by_source!(s, S => lane!(imm n; |a: S| -> f32 {
            let v = narrow::<M>(a.odd());
            if n & SAT != 0 { saturate(v) } else { v }
        }))),
        Type::F16 => by_mode!(m, M => by_source!(s, S => lane!(imm n; |a: S| -> u16 {
            finish16(f32_to_f16::<M>(narrow_odd(a.odd())), n, 0x7c00)
        }))),
        Type::BF16 => by_mode!(m, M => by_source!(s, S => lane!(imm n; |a: S| -> u16 {
            finish16(f32_to_bf16::<M>(narrow_odd(a.odd())), n, 0x7f80)
        }))),
        _ => None,
    }
}

/// Float to float, including conversions within a format, which only round to an integer or apply modifiers.
fn float_to_float(i: &Instr, d: Type, s: Type) -> Option<OpFn> {
    use Type::{BF16, F16, F32, F64};
    let plain = flags(i) == 0;
    let r = i.mods.rounding;
    if d == s {
        return match r {
            None => same(d, None),
            Some(r) => same(d, Some(integer_mode(r)?)),
        };
    }
    /// Expands with the source converted to single precision, which is exact.
    macro_rules! widened {
        (|$x:ident, $n:ident| -> $o:ty $e:block) => {
            match s {
                F32 => lane!(imm $n; |$x: f32| -> $o { let $x = if $n & FTZ != 0 { flush($x) } else { $x }; $e }),
                F16 => lane!(imm $n; |h: u16| -> $o { let $x = f16_to_f32(h); $e }),
                BF16 => lane!(imm $n; |h: u16| -> $o { let $x = bf16_to_f32(h); $e }),
                _ => lane!(imm $n; |w: f64| -> $o { let $x = narrow_odd(w); $e }),
            }
        };
    }
    let m = mode(r)?;
    Some(match (d, s) {
        (F64, F32) if plain => lane!(|a: f32| -> f64 { f64::from(a) }),
        (F32, F64) if plain && m == RN => lane!(|a: f64| -> f32 { a as f32 }),
        (F32, F64) => {
            by_mode!(m, M => lane!(imm n; |a: f64| -> f32 { finish_wide(narrow::<M>(a), n) }))
        }
        (F32, F16) if plain => lane!(|h: u16| -> f32 { canonical(f16_to_f32(h)) }),
        (F32, BF16) if plain => lane!(|h: u16| -> f32 { canonical(bf16_to_f32(h)) }),
        (F32, _) => widened!(|x, n| -> f32 { finish(x, n) }),
        (F64, _) => widened!(|x, n| -> f64 { finish64(f64::from(x), n) }),
        (F16, F32) if plain && m == RN => lane!(|x: f32| -> u16 { f32_to_f16::<RN>(x) }),
        (BF16, F32) if plain && m == RN => lane!(|x: f32| -> u16 { f32_to_bf16::<RN>(x) }),
        (F16, _) => {
            by_mode!(m, M => widened!(|x, n| -> u16 { finish16(f32_to_f16::<M>(x), n, 0x7c00) }))
        }
        (BF16, _) => {
            by_mode!(m, M => widened!(|x, n| -> u16 { finish16(f32_to_bf16::<M>(x), n, 0x7f80) }))
        }
        _ => return None,
    })
}

fn same(t: Type, m: Option<u8>) -> Option<OpFn> {
    macro_rules! form {
        ($raw:ty, |$x:ident, $n:ident| $in:expr, |$y:ident| $out:expr) => {
            match m {
                None => lane!(imm $n; |$x: $raw| -> $raw { let $y = $in; $out }),
                Some(m) => by_mode!(m, M => lane!(imm $n; |$x: $raw| -> $raw {
                    let $y = ($in).integral::<M>();
                    $out
                })),
            }
        };
    }
    Some(match t {
        Type::F32 => form!(f32, |x, n| if n & FTZ != 0 { flush(x) } else { x }, |y| {
            finish(y, n)
        }),
        Type::F64 => form!(f64, |x, n| x, |y| finish64(y, n)),
        Type::F16 => form!(u16, |x, n| f16_to_f32(x), |y| finish16(
            f32_to_f16::<RN>(y),
            n,
            0x7c00
        )),
        Type::BF16 => form!(u16, |x, n| bf16_to_f32(x), |y| finish16(
            f32_to_bf16::<RN>(y),
            n,
            0x7f80
        )),
        _ => return None,
    })
}

/// The copy between slots of different shape.
pub fn resize(from: Slot, to: Slot, signed: bool) -> Option<OpFn> {
    Some(match (from, to, signed) {
        (Slot::R32, Slot::R64, false) => lane!(|a: u32| -> u64 { u64::from(a) }),
        (Slot::R32, Slot::R64, true) => lane!(|a: i32| -> i64 { i64::from(a) }),
        (Slot::R64, Slot::R32, _) => lane!(|a: u64| -> u32 { a as u32 }),
        (Slot::R32, Slot::R128, false) => lane!(|a: u32| -> u128 { u128::from(a) }),
        (Slot::R32, Slot::R128, true) => lane!(|a: i32| -> u128 { a as u128 }),
        (Slot::R64, Slot::R128, false) => lane!(|a: u64| -> u128 { u128::from(a) }),
        (Slot::R64, Slot::R128, true) => lane!(|a: i64| -> u128 { a as u128 }),
        (Slot::R128, Slot::R32, _) => lane!(|a: u128| -> u32 { a as u32 }),
        (Slot::R128, Slot::R64, _) => lane!(|a: u128| -> u64 { a as u64 }),
        _ => return None,
    })
}

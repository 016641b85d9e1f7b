//! Conversions of packed, eight-bit and tensor-core formats: `cvt` to and from `.f16x2`, `.bf16x2`, `.e4m3x2`,
//! `.e5m2x2`, `.tf32`, and `cvt.pack`.

use super::convert::{FTZ, RELU, SATFINITE, finish16, flags};
use super::float::{flush, mode};
use super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::lanes::lane;
use super::operation::{OpFn, Selected};
use super::rounding::{RN, RNA, RZ};
use cupyrite_ptx::ir::{Instr, Op, Rounding, Type, Word};

/// Selects the function of a conversion of these formats.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    match i.op {
        Op::CvtPack => return pack_integers(i),
        Op::Cvt => {}
        _ => return None,
    }
    let (&d, &s) = (i.types.first()?, i.types.get(1)?);
    let selected = match (d, s) {
        (Type::F16x2 | Type::BF16x2, Type::F32) => {
            Selected::new(pair(d, mode(i.mods.rounding)?)?, d, &[s, s])
        }
        (Type::E4M3x2 | Type::E5M2x2, Type::F32) => Selected::new(eight_from_f32(d), d, &[s, s]),
        (Type::E4M3x2 | Type::E5M2x2, Type::F16x2 | Type::BF16x2) => {
            Selected::new(eight_from_half(d, s), d, &[s])
        }
        (Type::F16x2, Type::E4M3x2 | Type::E5M2x2) => Selected::new(half_from_eight(s), d, &[s]),
        (Type::TF32, Type::F32) => Selected::new(tf32(i.mods.rounding?)?, Type::B32, &[s]),
        _ => return None,
    };
    let wanted = selected.srcs.iter().flatten().count() + 1;
    (i.operands.len() == wanted && i.types.len() == 2).then(|| selected.with_imm(flags(i)))
}

/// Packs two halves, the first operand into the upper one.
#[inline(always)]
fn join(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

fn pair(d: Type, m: u8) -> Option<OpFn> {
    macro_rules! round {
        ($f:ident, $m:ident, $infinity:literal) => {
            lane!(imm n; |a: f32, b: f32| -> u32 {
                let one = |x: f32| {
                    let x = if n & FTZ != 0 { flush(x) } else { x };
                    finish16($f::<$m>(x), n, $infinity)
                };
                join(one(a), one(b))
            })
        };
    }
    Some(match (d, m) {
        (Type::F16x2, RN) => round!(f32_to_f16, RN, 0x7c00),
        (Type::F16x2, RZ) => round!(f32_to_f16, RZ, 0x7c00),
        (_, RN) => round!(f32_to_bf16, RN, 0x7f80),
        (_, RZ) => round!(f32_to_bf16, RZ, 0x7f80),
        _ => return None,
    })
}

/// Rounds to an eight-bit format, to nearest. Larger values become the greatest number: these conversions always have
/// `.satfinite`.
#[inline(always)]
fn to_eight(x: f32, e4m3: bool, imm: u32) -> u8 {
    let bits = x.to_bits();
    let a = bits & 0x7fff_ffff;
    // Dropped bits, difference of the biases, greatest number, and a number whose unit is that of a subnormal.
    let (n, bias, most, magic) = if e4m3 {
        (20, 120 << 23, 0x7e, 16384.0_f32)
    } else {
        (21, 112 << 23, 0x7b, 128.0)
    };
    let normal = (a
        .wrapping_sub(bias)
        .wrapping_add((1 << (n - 1)) - 1 + (a >> n & 1))
        >> n)
        .min(most);
    let small = (f32::from_bits(a) + magic)
        .to_bits()
        .wrapping_sub(magic.to_bits());
    let r = if a < bias + (1 << 23) { small } else { normal };
    let r = if a >= 0x4780_0000 { most } else { r };
    let sign = bits >> 24 & 0x80;
    let r = if a > 0x7f80_0000 {
        0x7f
    } else if (imm & RELU != 0) & (sign != 0) {
        0
    } else {
        r | sign
    };
    r as u8
}

fn eight_from_f32(d: Type) -> OpFn {
    if d == Type::E4M3x2 {
        lane!(imm n; |a: f32, b: f32| -> u16 { u16::from(to_eight(a, true, n)) << 8 | u16::from(to_eight(b, true, n)) })
    } else {
        lane!(imm n; |a: f32, b: f32| -> u16 { u16::from(to_eight(a, false, n)) << 8 | u16::from(to_eight(b, false, n)) })
    }
}

fn eight_from_half(d: Type, s: Type) -> OpFn {
    macro_rules! halves {
        ($w:ident, $e4m3:literal) => {
            lane!(imm n; |a: u32| -> u16 {
                let one = |h: u16| u16::from(to_eight($w(h), $e4m3, n));
                one((a >> 16) as u16) << 8 | one(a as u16)
            })
        };
    }
    match (d == Type::E4M3x2, s == Type::F16x2) {
        (true, true) => halves!(f16_to_f32, true),
        (false, true) => halves!(f16_to_f32, false),
        (true, false) => halves!(bf16_to_f32, true),
        (false, false) => halves!(bf16_to_f32, false),
    }
}

/// Converts from an eight-bit format, which is exact.
#[inline(always)]
pub fn from_e4m3(e: u16) -> u16 {
    let magnitude = u32::from(e & 0x7f);
    let x = f32::from_bits(magnitude << 20) * f32::from_bits((127 + 120) << 23);
    let h = f32_to_f16::<RZ>(x);
    (if magnitude == 0x7f { 0x7fff } else { h }) | (e & 0x80) << 8
}
/// `.e5m2` is the upper half of an `.f16`.
#[inline(always)]
pub fn from_e5m2(e: u16) -> u16 {
    e << 8
}

fn half_from_eight(s: Type) -> OpFn {
    macro_rules! halves {
        ($f:ident) => {
            lane!(imm n; |a: u16| -> u32 {
                join(finish16($f(a >> 8), n, 0x7c00), finish16($f(a & 0xff), n, 0x7c00))
            })
        };
    }
    if s == Type::E4M3x2 {
        halves!(from_e4m3)
    } else {
        halves!(from_e5m2)
    }
}

/// The upper 19 bits of a single-precision number.
fn tf32(r: Rounding) -> Option<OpFn> {
    #[inline(always)]
    fn round(x: f32, imm: u32, increment: impl Fn(u32) -> u32) -> u32 {
        let bits = x.to_bits();
        let a = bits & 0x7fff_ffff;
        let r = (a + increment(a)) & !0x1fff;
        let r = if a == 0x7f80_0000 { a } else { r };
        let r = if (imm & SATFINITE != 0) & (r == 0x7f80_0000) {
            0x7f7f_e000
        } else {
            r
        };
        let sign = bits & 0x8000_0000;
        if a > 0x7f80_0000 {
            0x7fff_ffff
        } else if (imm & RELU != 0) & (sign != 0) {
            0
        } else {
            r | sign
        }
    }
    let mode = match r {
        Rounding::Rna => RNA,
        Rounding::Rn => RN,
        Rounding::Rz => RZ,
        _ => return None,
    };
    Some(match mode {
        RNA => lane!(imm n; |x: f32| -> u32 { round(x, n, |_| 0x1000) }),
        RN => lane!(imm n; |x: f32| -> u32 { round(x, n, |a| 0xfff + (a >> 13 & 1)) }),
        _ => lane!(imm n; |x: f32| -> u32 { round(x, n, |_| 0) }),
    })
}

/// `cvt.pack.sat.t.s32 d, a, b` (two halves) and `cvt.pack.sat.t.s32.b32 d, a, b, c`: clamps `a` and `b` to `t` and packs
/// them below the low bits of `c`.
fn pack_integers(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    if i.types.get(1) != Some(&Type::S32) {
        return None;
    }
    macro_rules! clamp {
        ($low:expr, $high:expr, $bits:literal) => {
            lane!(|a: i32, b: i32, c: u32| -> u32 {
                let one = |v: i32| v.clamp($low, $high) as u32 & ((1 << $bits) - 1);
                let both = one(a) << $bits | one(b);
                if $bits == 16 {
                    both
                } else {
                    both | c << (2 * $bits & 31)
                }
            })
        };
    }
    let (code, three) = match t {
        Type::U16 => (clamp!(0, 0xffff, 16), false),
        Type::S16 => (clamp!(-0x8000, 0x7fff, 16), false),
        Type::U8 => (clamp!(0, 0xff, 8), true),
        Type::S8 => (clamp!(-0x80, 0x7f, 8), true),
        // `Type::Packed` has the width of a sub-byte type; its name determines whether it is signed.
        Type::Packed(4) if i.mods.has(Word::U4) => (clamp!(0, 0xf, 4), true),
        Type::Packed(4) => (clamp!(-8, 7, 4), true),
        Type::Packed(2) if i.mods.has(Word::U2) => (clamp!(0, 3, 2), true),
        Type::Packed(2) => (clamp!(-2, 1, 2), true),
        _ => return None,
    };
    let sources = &[Type::S32, Type::S32, Type::B32][..if three { 3 } else { 2 }];
    let mut s = Selected::new(code, Type::B32, sources);
    s.scratch_up_to(3, Type::B32);
    Some(s)
}

//! Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic
//! Instructions").

use super::lanes::lane;
use super::operation::{OpFn, OperandRef, OperandSlot, Selected};
use cupyrite_ptx::ir::{Instr, MulHalf, Op, Type};

/// Selects the function of an integer instruction.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    let m = &i.mods;
    let same = |code: OpFn, sources: usize| Some(Selected::new(code, t, &[t; 4][..sources]));
    match i.op {
        Op::Add | Op::Sub | Op::Addc | Op::Subc | Op::Mad | Op::Madc
            if m.cc || is_carry_in(i.op) =>
        {
            carry(i, t)
        }
        Op::Add => same(add(t, m.sat)?, 2),
        Op::Sub => same(sub(t, m.sat)?, 2),
        Op::Mul => {
            let half = m.mul?;
            Some(Selected::new(mul(t, half)?, product(t, half)?, &[t, t]))
        }
        Op::Mad => {
            let half = m.mul?;
            let d = product(t, half)?;
            Some(Selected::new(mad(t, half, m.sat)?, d, &[t, t, d]))
        }
        Op::Mul24 => same(mul24(t, m.mul?)?, 2),
        Op::Mad24 => same(mad24(t, m.mul?, m.sat)?, 3),
        Op::Sad => same(sad(t)?, 3),
        Op::Div => same(div(t)?, 2),
        Op::Rem => same(rem(t)?, 2),
        Op::Abs => same(abs(t)?, 1),
        Op::Neg => same(neg(t)?, 1),
        Op::Min => same(min(t, m.relu)?, 2),
        Op::Max => same(max(t, m.relu)?, 2),
        Op::Dp4a | Op::Dp2a => {
            let u = *i.types.get(1)?;
            let code = if i.op == Op::Dp4a {
                dp4a(t, u)?
            } else {
                dp2a(t, u, m.mul?)?
            };
            let signed = t.is_signed() || u.is_signed();
            let d = if signed { Type::S32 } else { Type::U32 };
            Some(Selected::new(code, d, &[t, u, d]))
        }
        _ => None,
    }
}

fn is_carry_in(op: Op) -> bool {
    matches!(op, Op::Addc | Op::Subc | Op::Madc)
}

/// Expands the second argument with a name for the Rust type of an integer type.
macro_rules! by_int {
    ($ty:expr, $t:ident => $e:expr) => {
        match $ty {
            Type::U16 => Some({
                type $t = u16;
                $e
            }),
            Type::S16 => Some({
                type $t = i16;
                $e
            }),
            Type::U32 => Some({
                type $t = u32;
                $e
            }),
            Type::S32 => Some({
                type $t = i32;
                $e
            }),
            Type::U64 => Some({
                type $t = u64;
                $e
            }),
            Type::S64 => Some({
                type $t = i64;
                $e
            }),
            _ => None,
        }
    };
}
/// Expands with the unsigned Rust type of the same width, where the sign does not matter.
macro_rules! by_width {
    ($ty:expr, $t:ident => $e:expr) => {
        match $ty {
            Type::U16 | Type::S16 => Some({
                type $t = u16;
                $e
            }),
            Type::U32 | Type::S32 => Some({
                type $t = u32;
                $e
            }),
            Type::U64 | Type::S64 => Some({
                type $t = u64;
                $e
            }),
            _ => None,
        }
    };
}
/// Expands for signed types.
macro_rules! by_signed {
    ($ty:expr, $t:ident => $e:expr) => {
        match $ty {
            Type::S16 => Some({
                type $t = i16;
                $e
            }),
            Type::S32 => Some({
                type $t = i32;
                $e
            }),
            Type::S64 => Some({
                type $t = i64;
                $e
            }),
            _ => None,
        }
    };
}

/// Applies a function to both halves of two packed pairs.
#[inline(always)]
fn pairs(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn add(t: Type, sat: bool) -> Option<OpFn> {
    match (t, sat) {
        (Type::S32, true) => Some(lane!(|a: i32, b: i32| -> i32 { a.saturating_add(b) })),
        (Type::U32, true) => Some(lane!(|a: u32, b: u32| -> u32 { a.saturating_add(b) })),
        (_, true) => None,
        (Type::U16x2 | Type::S16x2, _) => Some(lane!(|a: u32, b: u32| -> u32 {
            pairs(a, b, u16::wrapping_add)
        })),
        _ => by_width!(t, T => lane!(|a: T, b: T| -> T { a.wrapping_add(b) })),
    }
}

fn sub(t: Type, sat: bool) -> Option<OpFn> {
    match (t, sat) {
        (Type::S32, true) => Some(lane!(|a: i32, b: i32| -> i32 { a.saturating_sub(b) })),
        (Type::U32, true) => Some(lane!(|a: u32, b: u32| -> u32 { a.saturating_sub(b) })),
        (_, true) => None,
        (Type::U16x2 | Type::S16x2, _) => Some(lane!(|a: u32, b: u32| -> u32 {
            pairs(a, b, u16::wrapping_sub)
        })),
        _ => by_width!(t, T => lane!(|a: T, b: T| -> T { a.wrapping_sub(b) })),
    }
}

/// Type of a `.wide` product.
fn product(t: Type, half: MulHalf) -> Option<Type> {
    match (half, t) {
        (MulHalf::Wide, Type::U16) => Some(Type::U32),
        (MulHalf::Wide, Type::S16) => Some(Type::S32),
        (MulHalf::Wide, Type::U32) => Some(Type::U64),
        (MulHalf::Wide, Type::S32) => Some(Type::S64),
        (MulHalf::Wide, _) => None,
        _ => Some(t),
    }
}

/// Products of the integer types.
trait Product: Sized {
    /// Upper half of the exact product.
    fn high(self, b: Self) -> Self;
}
macro_rules! impl_product {
    ($($t:ty, $wide:ty);*) => { $(
        impl Product for $t {
            #[inline(always)]
            fn high(self, b: $t) -> $t {
                ((<$wide>::from(self) * <$wide>::from(b)) >> <$t>::BITS) as $t
            }
        }
    )* };
}
impl_product!(u16, u32; i16, i32; u32, u64; i32, i64; u64, u128; i64, i128);

fn mul(t: Type, half: MulHalf) -> Option<OpFn> {
    match half {
        MulHalf::Lo => by_width!(t, T => lane!(|a: T, b: T| -> T { a.wrapping_mul(b) })),
        MulHalf::Hi => by_int!(t, T => lane!(|a: T, b: T| -> T { a.high(b) })),
        MulHalf::Wide => match t {
            Type::U16 => Some(lane!(|a: u16, b: u16| -> u32 {
                u32::from(a) * u32::from(b)
            })),
            Type::S16 => Some(lane!(|a: i16, b: i16| -> i32 {
                i32::from(a) * i32::from(b)
            })),
            Type::U32 => Some(lane!(|a: u32, b: u32| -> u64 {
                u64::from(a) * u64::from(b)
            })),
            Type::S32 => Some(lane!(|a: i32, b: i32| -> i64 {
                i64::from(a) * i64::from(b)
            })),
            _ => None,
        },
    }
}

fn mad(t: Type, half: MulHalf, sat: bool) -> Option<OpFn> {
    match (half, sat) {
        (MulHalf::Hi, true) if t == Type::S32 => Some(lane!(|a: i32, b: i32, c: i32| -> i32 {
            a.high(b).saturating_add(c)
        })),
        (_, true) => None,
        (MulHalf::Lo, _) => {
            by_width!(t, T => lane!(|a: T, b: T, c: T| -> T { a.wrapping_mul(b).wrapping_add(c) }))
        }
        (MulHalf::Hi, _) => {
            by_int!(t, T => lane!(|a: T, b: T, c: T| -> T { a.high(b).wrapping_add(c) }))
        }
        (MulHalf::Wide, _) => match t {
            Type::U16 => Some(lane!(|a: u16, b: u16, c: u32| -> u32 {
                (u32::from(a) * u32::from(b)).wrapping_add(c)
            })),
            Type::S16 => Some(lane!(|a: i16, b: i16, c: i32| -> i32 {
                (i32::from(a) * i32::from(b)).wrapping_add(c)
            })),
            Type::U32 => Some(lane!(|a: u32, b: u32, c: u64| -> u64 {
                (u64::from(a) * u64::from(b)).wrapping_add(c)
            })),
            Type::S32 => Some(lane!(|a: i32, b: i32, c: i64| -> i64 {
                (i64::from(a) * i64::from(b)).wrapping_add(c)
            })),
            _ => None,
        },
    }
}

/// The 48-bit product of two 24-bit values, low 32 bits or bits 16 to 47.
#[inline(always)]
fn product24(a: i64, b: i64, hi: bool) -> u32 {
    let p = a * b;
    if hi { (p >> 16) as u32 } else { p as u32 }
}
#[inline(always)]
fn low24(a: u32) -> i64 {
    i64::from(a & 0xff_ffff)
}
#[inline(always)]
fn signed24(a: u32) -> i64 {
    i64::from((a << 8) as i32 >> 8)
}

fn mul24(t: Type, half: MulHalf) -> Option<OpFn> {
    Some(match (t, half) {
        (Type::U32, MulHalf::Lo) => {
            lane!(|a: u32, b: u32| -> u32 { product24(low24(a), low24(b), false) })
        }
        (Type::U32, MulHalf::Hi) => {
            lane!(|a: u32, b: u32| -> u32 { product24(low24(a), low24(b), true) })
        }
        (Type::S32, MulHalf::Lo) => {
            lane!(|a: u32, b: u32| -> u32 { product24(signed24(a), signed24(b), false) })
        }
        (Type::S32, MulHalf::Hi) => {
            lane!(|a: u32, b: u32| -> u32 { product24(signed24(a), signed24(b), true) })
        }
        _ => return None,
    })
}

fn mad24(t: Type, half: MulHalf, sat: bool) -> Option<OpFn> {
    Some(match (t, half, sat) {
        (Type::S32, MulHalf::Hi, true) => lane!(|a: u32, b: u32, c: i32| -> i32 {
            (product24(signed24(a), signed24(b), true) as i32).saturating_add(c)
        }),
        (_, _, true) => return None,
        (Type::U32, MulHalf::Lo, _) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 {
                product24(low24(a), low24(b), false).wrapping_add(c)
            })
        }
        (Type::U32, MulHalf::Hi, _) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 {
                product24(low24(a), low24(b), true).wrapping_add(c)
            })
        }
        (Type::S32, MulHalf::Lo, _) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 {
                product24(signed24(a), signed24(b), false).wrapping_add(c)
            })
        }
        (Type::S32, MulHalf::Hi, _) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 {
                product24(signed24(a), signed24(b), true).wrapping_add(c)
            })
        }
        _ => return None,
    })
}

fn sad(t: Type) -> Option<OpFn> {
    by_int!(t, T => lane!(|a: T, b: T, c: T| -> T {
        let d = if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
        c.wrapping_add(d)
    }))
}

/// Exact quotient of two integers below 2^32. The quotient in double precision truncates to the right integer, because the
/// relative distance of the true quotient to the next integer is at least 2^-32.
#[inline(always)]
fn quotient(a: f64, b: f64) -> f64 {
    /// Adding and subtracting it rounds to an integer.
    const MAGIC: f64 = 4_503_599_627_370_496.0;
    let q = a / b;
    let r = (q + MAGIC) - MAGIC;
    if r > q { r - 1.0 } else { r }
}
/// The low 32 bits of an integer in 0 ..= 2^32.
#[inline(always)]
fn low32(q: f64) -> u32 {
    (q + 4_503_599_627_370_496.0).to_bits() as u32
}
/// `a` as a double, in a form that vectorizes on the baseline.
#[inline(always)]
fn wide(a: u32) -> f64 {
    f64::from_bits(0x4330_0000_0000_0000 | u64::from(a)) - 4_503_599_627_370_496.0
}
#[inline(always)]
fn div_u32(a: u32, b: u32) -> u32 {
    let q = low32(quotient(wide(a), wide(b)));
    if b == 0 { u32::MAX } else { q }
}
#[inline(always)]
fn div_s32(a: i32, b: i32) -> i32 {
    let q = div_u32(a.unsigned_abs(), b.unsigned_abs());
    let q = if (a ^ b) < 0 { q.wrapping_neg() } else { q };
    if b == 0 { -1 } else { q as i32 }
}

/// `div`. As on a GPU, the quotient and remainder of a division by zero have all bits set, and `MIN / -1` is `MIN`.
fn div(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::U16 => lane!(|a: u16, b: u16| -> u16 { div_u32(u32::from(a), u32::from(b)) as u16 }),
        Type::S16 => lane!(|a: i16, b: i16| -> i16 { div_s32(i32::from(a), i32::from(b)) as i16 }),
        Type::U32 => lane!(|a: u32, b: u32| -> u32 { div_u32(a, b) }),
        Type::S32 => lane!(|a: i32, b: i32| -> i32 { div_s32(a, b) }),
        Type::U64 => lane!(|a: u64, b: u64| -> u64 { a.checked_div(b).unwrap_or(u64::MAX) }),
        Type::S64 => lane!(|a: i64, b: i64| -> i64 { if b == 0 { -1 } else { a.wrapping_div(b) } }),
        _ => return None,
    })
}

fn rem(t: Type) -> Option<OpFn> {
    /// Remainder for a quotient; all ones for a zero divisor.
    #[inline(always)]
    fn rest(a: u32, b: u32, q: u32) -> u32 {
        if b == 0 {
            u32::MAX
        } else {
            a.wrapping_sub(q.wrapping_mul(b))
        }
    }
    Some(match t {
        Type::U16 => lane!(|a: u16, b: u16| -> u16 {
            let (a, b) = (u32::from(a), u32::from(b));
            rest(a, b, div_u32(a, b)) as u16
        }),
        Type::S16 => lane!(|a: i16, b: i16| -> i16 {
            let (a, b) = (i32::from(a), i32::from(b));
            rest(a as u32, b as u32, div_s32(a, b) as u32) as i16
        }),
        Type::U32 => lane!(|a: u32, b: u32| -> u32 { rest(a, b, div_u32(a, b)) }),
        Type::S32 => {
            lane!(|a: i32, b: i32| -> i32 { rest(a as u32, b as u32, div_s32(a, b) as u32) as i32 })
        }
        Type::U64 => lane!(|a: u64, b: u64| -> u64 { a.checked_rem(b).unwrap_or(u64::MAX) }),
        Type::S64 => lane!(|a: i64, b: i64| -> i64 { if b == 0 { -1 } else { a.wrapping_rem(b) } }),
        _ => return None,
    })
}

fn abs(t: Type) -> Option<OpFn> {
    by_signed!(t, T => lane!(|a: T| -> T { a.wrapping_abs() }))
}

fn neg(t: Type) -> Option<OpFn> {
    by_signed!(t, T => lane!(|a: T| -> T { a.wrapping_neg() }))
}

fn min(t: Type, relu: bool) -> Option<OpFn> {
    Some(match (t, relu) {
        (Type::S32, true) => lane!(|a: i32, b: i32| -> i32 { a.min(b).max(0) }),
        (Type::S16x2, true) => {
            lane!(|a: u32, b: u32| -> u32 {
                pairs(a, b, |a, b| (a as i16).min(b as i16).max(0) as u16)
            })
        }
        (_, true) => return None,
        (Type::S16x2, _) => {
            lane!(|a: u32, b: u32| -> u32 { pairs(a, b, |a, b| (a as i16).min(b as i16) as u16) })
        }
        (Type::U16x2, _) => lane!(|a: u32, b: u32| -> u32 { pairs(a, b, u16::min) }),
        _ => return by_int!(t, T => lane!(|a: T, b: T| -> T { a.min(b) })),
    })
}

fn max(t: Type, relu: bool) -> Option<OpFn> {
    Some(match (t, relu) {
        (Type::S32, true) => lane!(|a: i32, b: i32| -> i32 { a.max(b).max(0) }),
        (Type::S16x2, true) => {
            lane!(|a: u32, b: u32| -> u32 {
                pairs(a, b, |a, b| (a as i16).max(b as i16).max(0) as u16)
            })
        }
        (_, true) => return None,
        (Type::S16x2, _) => {
            lane!(|a: u32, b: u32| -> u32 { pairs(a, b, |a, b| (a as i16).max(b as i16) as u16) })
        }
        (Type::U16x2, _) => lane!(|a: u32, b: u32| -> u32 { pairs(a, b, u16::max) }),
        _ => return by_int!(t, T => lane!(|a: T, b: T| -> T { a.max(b) })),
    })
}

/// Byte `n` of a word, as a signed or unsigned number.
#[inline(always)]
fn byte(a: u32, n: u32, signed: bool) -> i32 {
    let b = (a >> (8 * n)) as u8;
    if signed {
        i32::from(b as i8)
    } else {
        i32::from(b)
    }
}
/// Half-word `n` of a word, as a signed or unsigned number.
#[inline(always)]
fn half(a: u32, n: u32, signed: bool) -> i32 {
    let h = (a >> (16 * n)) as u16;
    if signed {
        i32::from(h as i16)
    } else {
        i32::from(h)
    }
}
#[inline(always)]
fn dot4(a: u32, b: u32, c: u32, sa: bool, sb: bool) -> u32 {
    let mut d = c as i32;
    for n in 0..4 {
        d = d.wrapping_add(byte(a, n, sa) * byte(b, n, sb));
    }
    d as u32
}
#[inline(always)]
fn dot2(a: u32, b: u32, c: u32, sa: bool, sb: bool, first: u32) -> u32 {
    let mut d = c as i32;
    for n in 0..2 {
        d = d.wrapping_add(half(a, n, sa).wrapping_mul(byte(b, first + n, sb)));
    }
    d as u32
}

fn dp4a(t: Type, u: Type) -> Option<OpFn> {
    Some(match (t, u) {
        (Type::U32, Type::U32) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { dot4(a, b, c, false, false) })
        }
        (Type::U32, Type::S32) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { dot4(a, b, c, false, true) })
        }
        (Type::S32, Type::U32) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { dot4(a, b, c, true, false) })
        }
        (Type::S32, Type::S32) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { dot4(a, b, c, true, true) })
        }
        _ => return None,
    })
}

fn dp2a(t: Type, u: Type, part: MulHalf) -> Option<OpFn> {
    macro_rules! part {
        ($sa:literal, $sb:literal) => {
            match part {
                MulHalf::Lo => {
                    lane!(|a: u32, b: u32, c: u32| -> u32 { dot2(a, b, c, $sa, $sb, 0) })
                }
                MulHalf::Hi => {
                    lane!(|a: u32, b: u32, c: u32| -> u32 { dot2(a, b, c, $sa, $sb, 2) })
                }
                MulHalf::Wide => return None,
            }
        };
    }
    Some(match (t, u) {
        (Type::U32, Type::U32) => part!(false, false),
        (Type::U32, Type::S32) => part!(false, true),
        (Type::S32, Type::U32) => part!(true, false),
        (Type::S32, Type::S32) => part!(true, true),
        _ => return None,
    })
}

/// `a + b + c` and the carry out of it.
macro_rules! sum {
    ($a:expr, $b:expr, $c:expr, $t:ty) => {{
        let (s, c0) = $a.overflowing_add($b);
        let (s, c1) = s.overflowing_add(<$t>::from($c));
        (s, c0 | c1)
    }};
}

/// Instructions that read or write the carry flag. The second destination is a scratch slot if an instruction does not
/// write it, and there is no carry source if an instruction does not read it.
///
/// A GPU subtracts by adding the complement, so that a subtraction sets the flag if there is no borrow. Compilers rely on
/// it: NVRTC's 128-bit division reads the flag of `sub.cc` with `addc`.
fn carry(i: &Instr, t: Type) -> Option<Selected> {
    let reads = is_carry_in(i.op);
    if !matches!(t, Type::U32 | Type::S32 | Type::U64 | Type::S64) {
        return None;
    }
    macro_rules! both_widths {
        ($t:ident => $e:expr) => {
            if t.bits() == 32 {
                type $t = u32;
                $e
            } else {
                type $t = u64;
                $e
            }
        };
    }
    let half = i.mods.mul;
    let code = match (i.op, half) {
        (Op::Add, _) => {
            both_widths!(T => lane!(|a: T, b: T| -> (T, bool) { a.overflowing_add(b) }))
        }
        (Op::Sub, _) => {
            both_widths!(T => lane!(|a: T, b: T| -> (T, bool) { (a.wrapping_sub(b), a >= b) }))
        }
        (Op::Addc, _) => {
            both_widths!(T => lane!(|a: T, b: T, c: bool| -> (T, bool) { sum!(a, b, c, T) }))
        }
        (Op::Subc, _) => {
            both_widths!(T => lane!(|a: T, b: T, c: bool| -> (T, bool) { sum!(a, !b, c, T) }))
        }
        (Op::Mad, Some(MulHalf::Lo)) => {
            both_widths!(T => lane!(|a: T, b: T, c: T| -> (T, bool) { a.wrapping_mul(b).overflowing_add(c) }))
        }
        (Op::Madc, Some(MulHalf::Lo)) => {
            both_widths!(T => lane!(|a: T, b: T, c: T, d: bool| -> (T, bool) { sum!(a.wrapping_mul(b), c, d, T) }))
        }
        (Op::Mad, Some(MulHalf::Hi)) => match t {
            Type::S32 => lane!(|a: i32, b: i32, c: u32| -> (u32, bool) {
                (a.high(b) as u32).overflowing_add(c)
            }),
            Type::S64 => lane!(|a: i64, b: i64, c: u64| -> (u64, bool) {
                (a.high(b) as u64).overflowing_add(c)
            }),
            _ => {
                both_widths!(T => lane!(|a: T, b: T, c: T| -> (T, bool) { a.high(b).overflowing_add(c) }))
            }
        },
        (Op::Madc, Some(MulHalf::Hi)) => match t {
            Type::S32 => {
                lane!(|a: i32, b: i32, c: u32, d: bool| -> (u32, bool) {
                    sum!((a.high(b) as u32), c, d, u32)
                })
            }
            Type::S64 => {
                lane!(|a: i64, b: i64, c: u64, d: bool| -> (u64, bool) {
                    sum!((a.high(b) as u64), c, d, u64)
                })
            }
            _ => {
                both_widths!(T => lane!(|a: T, b: T, c: T, d: bool| -> (T, bool) { sum!(a.high(b), c, d, T) }))
            }
        },
        _ => return None,
    };
    let sources = if matches!(i.op, Op::Mad | Op::Madc) {
        3
    } else {
        2
    };
    let mut s = Selected::new(code, t, &[t; 4][..sources]);
    let flag = |operand| Some(OperandSlot::new(operand, Type::Pred));
    s.dsts[1] = flag(if i.mods.cc {
        OperandRef::Carry
    } else {
        OperandRef::Scratch
    });
    if reads {
        s.srcs[sources] = flag(OperandRef::Carry);
    }
    Some(s)
}

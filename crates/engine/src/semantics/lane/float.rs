//! Single- and double-precision arithmetic (PTX ISA, "Floating Point Instructions"), except approximations.

use super::lanes::lane;
use super::operation::{OpFn, Selected};
use super::rounding::{self, RM, RN, RP, RZ};
use cupyrite_ptx::ir::{Instr, Op, Rounding, TestpOp, Type};

/// Replaces a subnormal number by a zero of the same sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    })
}
/// Replaces every NaN by the canonical NaN, the result of single-precision arithmetic on a GPU. Works on bits, because the
/// compiler may remove a floating-point comparison that only replaces one NaN by another.
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_ffff
    } else {
        bits
    })
}
/// Result of an invalid operation in double precision.
pub const NAN64: u64 = 0xfff8_0000_0000_0000;
/// Propagates NaNs as double precision does: the result is the last of `sources` that is a NaN, made quiet, or [`NAN64`] for an
/// invalid operation. An H100 prefers the second operand of `add`, `sub` and `mul`, the first of `div`, and of `fma` the second,
/// then the third. (The PTX ISA does not specify it.)
#[inline(always)]
pub fn payload64<const N: usize>(x: f64, sources: [f64; N]) -> f64 {
    if !x.is_nan() {
        return x;
    }
    let last = sources.into_iter().rfind(|s| s.is_nan());
    last.map_or(f64::from_bits(NAN64), quiet64)
}
/// The result of a host instruction with the NaN of [`payload64`], whose first source is left out. A host propagates a single NaN
/// and, of several, one that depends on the compiler's order of operands.
#[inline(always)]
fn last_nan64<const N: usize>(x: f64, sources: [f64; N]) -> f64 {
    sources
        .into_iter()
        .fold(x, |r, s| if s.is_nan() { quiet64(s) } else { r })
}
/// A NaN in double precision with the bit that makes it quiet; sign and payload stay.
#[inline(always)]
fn quiet64(nan: f64) -> f64 {
    f64::from_bits(nan.to_bits() | 1 << 51)
}
/// Clamps to 0 ..= 1; a NaN becomes +0.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    let x = if x > 0.0 { x } else { 0.0 };
    if x < 1.0 { x } else { 1.0 }
}

/// Bits of `imm`.
pub const FTZ: u32 = 1;
const SAT: u32 = 2;
const NAN: u32 = 4;
const XORSIGN: u32 = 8;

/// Applies `.ftz` to a source.
#[inline(always)]
pub fn source(x: f32, imm: u32) -> f32 {
    if imm & FTZ != 0 { flush(x) } else { x }
}
/// Applies `.ftz` and `.sat` to a result and canonicalizes NaNs.
#[inline(always)]
pub fn result(x: f32, imm: u32) -> f32 {
    let x = source(canonical(x), imm);
    if imm & SAT != 0 { saturate(x) } else { x }
}

/// Mode of a rounding modifier; to nearest without a modifier.
pub fn mode(r: Option<Rounding>) -> Option<u8> {
    Some(match r {
        None | Some(Rounding::Rn) => RN,
        Some(Rounding::Rz) => RZ,
        Some(Rounding::Rm) => RM,
        Some(Rounding::Rp) => RP,
        _ => return None,
    })
}

/// Selects the function of a floating-point instruction.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let m = &i.mods;
    let imm = flag(m.ftz, FTZ) | flag(m.sat, SAT) | flag(m.nan, NAN) | flag(m.xorsign, XORSIGN);
    if i.types.len() > 1 {
        return if i.op == Op::Testp {
            None
        } else {
            mixed(i, imm)
        };
    }
    if i.op == Op::Testp {
        return Some(Selected::new(testp(t, m.testp?)?, Type::Pred, &[t]));
    }
    if m.approx || m.full {
        return None;
    }
    let sources = i.operands.len().checked_sub(1)?;
    let code = match t {
        Type::F32 => single(i, imm, sources)?,
        Type::F64 => double(i, sources)?,
        Type::F32x2 => pair(i)?,
        _ => return None,
    };
    if sources > 3 {
        return None;
    }
    Some(Selected::new(code, t, &[t; 3][..sources]).with_imm(imm))
}

/// Expands to one function per rounding mode.
macro_rules! by_mode {
    ($mode:expr, $m:ident => $e:expr) => {
        match $mode {
            RN => {
                const $m: u8 = RN;
                $e
            }
            RZ => {
                const $m: u8 = RZ;
                $e
            }
            RM => {
                const $m: u8 = RM;
                $e
            }
            _ => {
                const $m: u8 = RP;
                $e
            }
        }
    };
}
pub(super) use by_mode;

/// Expands to a specialized function for rounding to nearest without modifiers.
macro_rules! modes {
    ($mode:expr, $imm:expr, |$($a:ident),*| $plain:expr, $m:ident => $any:expr) => {
        if $mode == RN && $imm == 0 {
            lane!(|$($a: f32),*| -> f32 { canonical($plain) })
        } else if $mode == RN && $imm == FTZ {
            lane!(|$($a: f32),*| -> f32 {
                $(let $a = flush($a);)*
                flush(canonical($plain))
            })
        } else {
            by_mode!($mode, $m => lane!(imm n; |$($a: f32),*| -> f32 {
                $(let $a = source($a, n);)*
                result($any, n)
            }))
        }
    };
}

fn single(i: &Instr, imm: u32, sources: usize) -> Option<OpFn> {
    let mode = mode(i.mods.rounding)?;
    Some(match (i.op, sources) {
        (Op::Add, 2) => modes!(mode, imm, |a, b| a + b, M => rounding::add::<M>(a, b)),
        (Op::Sub, 2) => modes!(mode, imm, |a, b| a - b, M => rounding::add::<M>(a, -b)),
        (Op::Mul, 2) => modes!(mode, imm, |a, b| a * b, M => rounding::mul::<M>(a, b)),
        (Op::Fma | Op::Mad, 3) => {
            modes!(mode, imm, |a, b, c| a.mul_add(b, c), M => rounding::fma::<M>(a, b, c))
        }
        (Op::Div, 2) => modes!(mode, imm, |a, b| a / b, M => rounding::div::<M>(a, b)),
        (Op::Rcp, 1) => modes!(mode, imm, |a| 1.0 / a, M => rounding::div::<M>(1.0, a)),
        (Op::Sqrt, 1) => modes!(mode, imm, |a| a.sqrt(), M => rounding::sqrt::<M>(a)),
        (Op::Abs, 1) => lane!(imm n; |a: f32| -> f32 { canonical(source(a, n).abs()) }),
        (Op::Neg, 1) => lane!(imm n; |a: f32| -> f32 { canonical(-source(a, n)) }),
        (Op::Min, 2) if imm == 0 => lane!(|a: f32, b: f32| -> f32 { extreme(a, b, 0, false) }),
        (Op::Max, 2) if imm == 0 => lane!(|a: f32, b: f32| -> f32 { extreme(a, b, 0, true) }),
        (Op::Min, 2) => lane!(imm n; |a: f32, b: f32| -> f32 { extreme(a, b, n, false) }),
        (Op::Max, 2) => lane!(imm n; |a: f32, b: f32| -> f32 { extreme(a, b, n, true) }),
        (Op::Min, 3) => {
            lane!(imm n; |a: f32, b: f32, c: f32| -> f32 { extreme(extreme(a, b, n, false), c, n, false) })
        }
        (Op::Max, 3) => {
            lane!(imm n; |a: f32, b: f32, c: f32| -> f32 { extreme(extreme(a, b, n, true), c, n, true) })
        }
        (Op::Copysign, 2) => lane!(|a: f32, b: f32| -> f32 { b.copysign(a) }),
        _ => return None,
    })
}

/// Minimum or maximum. A number wins against a NaN unless `.NaN` is set, and +0 is greater than -0.
#[inline(always)]
fn extreme(a: f32, b: f32, imm: u32, greater: bool) -> f32 {
    let (a, b) = (source(a, imm), source(b, imm));
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let (a, b) = if imm & XORSIGN != 0 {
        (a.abs(), b.abs())
    } else {
        (a, b)
    };
    let tie = if greater {
        a.to_bits() & b.to_bits()
    } else {
        a.to_bits() | b.to_bits()
    };
    let first = if greater { a > b } else { a < b };
    let second = if greater { b > a } else { b < a };
    let r = if first { a } else { f32::from_bits(tie) };
    let r = if second { b } else { r };
    let r = if a.is_nan() { b } else { r };
    let r = if b.is_nan() { a } else { r };
    let nan = (a.is_nan() & b.is_nan()) | ((a.is_nan() | b.is_nan()) & (imm & NAN != 0));
    let sign = if imm & XORSIGN != 0 { sign } else { 0 };
    f32::from_bits(if nan { 0x7fff_ffff } else { r.to_bits() | sign })
}

fn double(i: &Instr, sources: usize) -> Option<OpFn> {
    let mode = mode(i.mods.rounding)?;
    // The operands are followed by the order in which [`payload64`] prefers them.
    macro_rules! modes64 {
        (|$($a:ident),*| [$first:ident $(, $rest:ident)*] $plain:expr, $m:ident => $any:expr) => {
            if mode == RN {
                lane!(|$($a: f64),*| -> f64 { last_nan64($plain, [$($rest),*]) })
            } else {
                by_mode!(mode, $m => lane!(|$($a: f64),*| -> f64 { payload64($any, [$first $(, $rest)*]) }))
            }
        };
    }
    Some(match (i.op, sources) {
        (Op::Add, 2) => modes64!(|a, b| [a, b] a + b, M => rounding::add64(a, b, M)),
        (Op::Sub, 2) => modes64!(|a, b| [a, b] a - b, M => rounding::add64(a, -b, M)),
        (Op::Mul, 2) => modes64!(|a, b| [a, b] a * b, M => rounding::mul64(a, b, M)),
        (Op::Fma | Op::Mad, 3) => {
            modes64!(|a, b, c| [a, c, b] a.mul_add(b, c), M => rounding::fma64(a, b, c, M))
        }
        (Op::Div, 2) => modes64!(|a, b| [b, a] a / b, M => rounding::div64(a, b, M)),
        (Op::Rcp, 1) => modes64!(|a| [a] 1.0 / a, M => rounding::div64(1.0, a, M)),
        (Op::Sqrt, 1) => modes64!(|a| [a] a.sqrt(), M => rounding::sqrt64(a, M)),
        (Op::Abs, 1) => lane!(|a: f64| -> f64 { if a.is_nan() { quiet64(a) } else { a.abs() } }),
        (Op::Neg, 1) => lane!(|a: f64| -> f64 { if a.is_nan() { quiet64(a) } else { -a } }),
        (Op::Min, 2) => lane!(|a: f64, b: f64| -> f64 { extreme64(a, b, false) }),
        (Op::Max, 2) => lane!(|a: f64, b: f64| -> f64 { extreme64(a, b, true) }),
        (Op::Copysign, 2) => lane!(|a: f64, b: f64| -> f64 { b.copysign(a) }),
        _ => return None,
    })
}

/// Minimum or maximum in double precision. Of two NaNs the second, made quiet (observed on an H100).
#[inline(always)]
fn extreme64(a: f64, b: f64, greater: bool) -> f64 {
    let tie = if greater {
        a.to_bits() & b.to_bits()
    } else {
        a.to_bits() | b.to_bits()
    };
    let first = if greater { a > b } else { a < b };
    let second = if greater { b > a } else { b < a };
    let r = if first { a } else { f64::from_bits(tie) };
    let r = if second { b } else { r };
    let r = if b.is_nan() { a } else { r };
    if !a.is_nan() {
        r
    } else if b.is_nan() {
        quiet64(b)
    } else {
        b
    }
}

/// Arithmetic on packed pairs.
// Closures are compiled with the features of the enclosing version; functions passed by name are not.
#[allow(clippy::redundant_closure)]
fn pair(i: &Instr) -> Option<OpFn> {
    #[inline(always)]
    fn both(a: u64, b: u64, c: u64, n: u32, f: impl Fn(f32, f32, f32) -> f32) -> u64 {
        let one = |s: u32| {
            let part = |x: u64| source(f32::from_bits((x >> s) as u32), n);
            u64::from(result(f(part(a), part(b), part(c)), n).to_bits()) << s
        };
        one(0) | one(32)
    }
    let mode = mode(i.mods.rounding)?;
    Some(match i.op {
        Op::Add => by_mode!(mode, M => lane!(imm n; |a: u64, b: u64| -> u64 {
            both(a, b, 0, n, |a, b, _| rounding::add::<M>(a, b))
        })),
        Op::Sub => by_mode!(mode, M => lane!(imm n; |a: u64, b: u64| -> u64 {
            both(a, b, 0, n, |a, b, _| rounding::add::<M>(a, -b))
        })),
        Op::Mul => by_mode!(mode, M => lane!(imm n; |a: u64, b: u64| -> u64 {
            both(a, b, 0, n, |a, b, _| rounding::mul::<M>(a, b))
        })),
        Op::Fma => by_mode!(mode, M => lane!(imm n; |a: u64, b: u64, c: u64| -> u64 {
            both(a, b, c, n, |a, b, c| rounding::fma::<M>(a, b, c))
        })),
        _ => return None,
    })
}

/// Mixed precision (PTX ISA 8.6): half-precision sources, single-precision addend and result.
fn mixed(i: &Instr, imm: u32) -> Option<Selected> {
    use super::half::{bf16_to_f32, f16_to_f32};
    let (Type::F32, h) = (i.types[0], i.types[1]) else {
        return None;
    };
    let mode = mode(i.mods.rounding)?;
    macro_rules! widen {
        ($w:ident) => {
            match i.op {
                Op::Add => by_mode!(mode, M => lane!(imm n; |a: u16, c: f32| -> f32 {
                    result(rounding::add::<M>($w(a), c), n)
                })),
                Op::Sub => by_mode!(mode, M => lane!(imm n; |a: u16, c: f32| -> f32 {
                    result(rounding::add::<M>($w(a), -c), n)
                })),
                Op::Fma => by_mode!(mode, M => lane!(imm n; |a: u16, b: u16, c: f32| -> f32 {
                    result(rounding::fma::<M>($w(a), $w(b), c), n)
                })),
                _ => return None,
            }
        };
    }
    let code = match h {
        Type::F16 => widen!(f16_to_f32),
        Type::BF16 => widen!(bf16_to_f32),
        _ => return None,
    };
    let sources: &[Type] = if i.op == Op::Fma {
        &[h, h, Type::F32]
    } else {
        &[h, Type::F32]
    };
    Some(Selected::new(code, Type::F32, sources).with_imm(imm))
}

fn testp(t: Type, p: TestpOp) -> Option<OpFn> {
    macro_rules! test {
        ($t:ty) => {
            match p {
                TestpOp::Finite => lane!(|a: $t| -> bool { a.abs() < <$t>::INFINITY }),
                TestpOp::Infinite => lane!(|a: $t| -> bool { a.abs() == <$t>::INFINITY }),
                TestpOp::Number => lane!(|a: $t| -> bool { !a.is_nan() }),
                TestpOp::NotANumber => lane!(|a: $t| -> bool { a.is_nan() }),
                // "As a special case, positive and negative zero are considered normal numbers" (PTX ISA, `testp`).
                TestpOp::Normal => {
                    lane!(|a: $t| -> bool {
                        (a.abs() < <$t>::INFINITY) & ((a.abs() >= <$t>::MIN_POSITIVE) | (a == 0.0))
                    })
                }
                TestpOp::Subnormal => {
                    lane!(|a: $t| -> bool { (a.abs() < <$t>::MIN_POSITIVE) & (a != 0.0) })
                }
            }
        };
    }
    Some(match t {
        Type::F32 => test!(f32),
        Type::F64 => test!(f64),
        _ => return None,
    })
}

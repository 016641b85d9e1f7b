//! Comparison and selection (PTX ISA, "Comparison and Selection Instructions" and their half precision forms).

use super::half;
use super::lanes::lane;
use super::operation::{OpFn, OperandRef, OperandSlot, Selected, Slot};
use cupyrite_ptx::ir::{BoolOp, Cmp, Instr, Op, Operand, Type};

/// Selects the function of a comparison or a selection.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    match i.op {
        Op::Setp => setp(i, t),
        Op::Set => set(i, t, *i.types.get(1)?),
        Op::Selp => Some(Selected::new(selp(t)?, t, &[t, t, Type::Pred])),
        Op::Slct => {
            let by = *i.types.get(1)?;
            Some(Selected::new(slct(t, by, i.mods.ftz)?, t, &[t, t, by]))
        }
        _ => None,
    }
}

/// Results of a comparison in the four cases, as bits of `imm`.
const LESS: u32 = 1;
const EQUAL: u32 = 2;
const GREATER: u32 = 4;
const UNORDERED: u32 = 8;

fn cases(c: Cmp) -> u32 {
    match c {
        Cmp::Eq => EQUAL,
        // An ordered comparison is false for a NaN.
        Cmp::Ne => LESS | GREATER,
        Cmp::Lt | Cmp::Lo => LESS,
        Cmp::Le | Cmp::Ls => LESS | EQUAL,
        Cmp::Gt | Cmp::Hi => GREATER,
        Cmp::Ge | Cmp::Hs => GREATER | EQUAL,
        Cmp::Equ => EQUAL | UNORDERED,
        Cmp::Neu => LESS | GREATER | UNORDERED,
        Cmp::Ltu => LESS | UNORDERED,
        Cmp::Leu => LESS | EQUAL | UNORDERED,
        Cmp::Gtu => GREATER | UNORDERED,
        Cmp::Geu => GREATER | EQUAL | UNORDERED,
        Cmp::Num => LESS | EQUAL | GREATER,
        Cmp::Nan => UNORDERED,
    }
}

/// A comparable value. The result of a comparison is a bit of `cases`.
trait Compare: Copy {
    fn compare(self, b: Self, cases: u32) -> bool;
}
macro_rules! compare {
    ($($t:ty)*) => { $(
        impl Compare for $t {
            #[inline(always)]
            fn compare(self, b: $t, cases: u32) -> bool {
                ((self < b) & (cases & LESS != 0))
                    | ((self == b) & (cases & EQUAL != 0))
                    | ((self > b) & (cases & GREATER != 0))
            }
        }
    )* };
}
compare!(u16 i16 u32 i32 u64 i64);
macro_rules! compare_float {
    ($($t:ty)*) => { $(
        impl Compare for $t {
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn compare(self, b: $t, cases: u32) -> bool {
                ((self < b) & (cases & LESS != 0))
                    | ((self == b) & (cases & EQUAL != 0))
                    | ((self > b) & (cases & GREATER != 0))
                    | (((self != self) | (b != b)) & (cases & UNORDERED != 0))
            }
        }
    )* };
}
compare_float!(f32 f64);

/// `result op c`, where bits 4 and 5 of `imm` are the operation (0: none) and bit 6 negates `c`.
#[inline(always)]
fn combine(result: bool, c: bool, imm: u32) -> bool {
    let c = c ^ (imm & 64 != 0);
    let op = imm >> 4 & 3;
    // Masks avoid a branch per lane.
    ((result & c) & (op == 1))
        | ((result | c) & (op == 2))
        | ((result ^ c) & (op == 3))
        | (result & (op == 0))
}

fn combination(i: &Instr) -> u32 {
    let op = match i.mods.bool_op {
        None => 0,
        Some(BoolOp::And) => 1,
        Some(BoolOp::Or) => 2,
        Some(BoolOp::Xor) => 3,
    };
    let negated = matches!(i.operands.get(3), Some(Operand::NotReg(_)));
    op << 4 | u32::from(negated) << 6
}

/// Expands an expression with sources that `$conv` converts from the element type to a comparable type.
macro_rules! by_operand {
    ($t:expr, $ftz:expr, |$raw:ident, $conv:ident| $e:expr) => {
        match ($t, $ftz) {
            (Type::B16 | Type::U16, _) => by_operand!(@ u16, |x| x, $raw, $conv, $e),
            (Type::S16, _) => by_operand!(@ i16, |x| x, $raw, $conv, $e),
            (Type::B32 | Type::U32, _) => by_operand!(@ u32, |x| x, $raw, $conv, $e),
            (Type::S32, _) => by_operand!(@ i32, |x| x, $raw, $conv, $e),
            (Type::B64 | Type::U64, _) => by_operand!(@ u64, |x| x, $raw, $conv, $e),
            (Type::S64, _) => by_operand!(@ i64, |x| x, $raw, $conv, $e),
            (Type::F32, false) => by_operand!(@ f32, |x| x, $raw, $conv, $e),
            (Type::F32, true) => by_operand!(@ f32, |x| super::float::flush(x), $raw, $conv, $e),
            (Type::F64, _) => by_operand!(@ f64, |x| x, $raw, $conv, $e),
            (Type::F16, false) => by_operand!(@ u16, |x| half::f16_to_f32(x), $raw, $conv, $e),
            (Type::F16, true) => by_operand!(@ u16, |x| half::f16_to_f32(half::flush_f16(x)), $raw, $conv, $e),
            (Type::BF16, _) => by_operand!(@ u16, |x| half::bf16_to_f32(x), $raw, $conv, $e),
            _ => None,
        }
    };
    (@ $ty:ty, |$x:ident| $c:expr, $raw:ident, $conv:ident, $e:expr) => {{
        type $raw = $ty;
        macro_rules! $conv { ($v:expr) => {{ let $x = $v; $c }}; }
        Some($e)
    }};
}

fn setp(i: &Instr, t: Type) -> Option<Selected> {
    let cmp = unsigned_order(i.mods.cmp?, t)?;
    let dual = matches!(i.operands.first(), Some(Operand::Pair(..)));
    if matches!(t, Type::F16x2 | Type::BF16x2) {
        return setp_x2(i, t, cmp, dual);
    }
    if i.mods.bool_op.is_none() && !dual {
        let (code, imm) = setp_plain(t, cmp, i.mods.ftz)?;
        return Some(Selected::new(code, Type::Pred, &[t, t]).with_imm(imm));
    }
    let code = by_operand!(
        t,
        i.mods.ftz,
        |R, conv| lane!(imm n; |a: R, b: R, c: bool| -> (bool, bool) {
            let r = conv!(a).compare(conv!(b), n);
            (combine(r, c, n), combine(!r, c, n))
        })
    )?;
    let mut s = Selected::new(code, Type::Pred, &[t, t, Type::Pred]);
    dual_places(&mut s, i, dual);
    Some(s.with_imm(cases(cmp) | combination(i)))
}

/// Sets the destinations `p|q` and the predicate source of a `setp`.
fn dual_places(s: &mut Selected, i: &Instr, dual: bool) {
    let flag = |operand| Some(OperandSlot::new(operand, Type::Pred));
    s.dsts[0] = flag(if dual {
        OperandRef::Part(0, 0)
    } else {
        OperandRef::Operand(0)
    });
    s.dsts[1] = flag(if dual {
        OperandRef::Part(0, 1)
    } else {
        OperandRef::Scratch
    });
    s.srcs[2] = flag(if i.mods.bool_op.is_some() {
        OperandRef::Operand(3)
    } else {
        OperandRef::Scratch
    });
}

/// `lo`, `ls`, `hi` and `hs` as comparisons of unsigned values; `None` for signed and floating-point types.
fn unsigned_order(c: Cmp, t: Type) -> Option<Cmp> {
    let unsigned = matches!(c, Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs);
    if unsigned && (t.is_signed() || t.is_float()) {
        None
    } else {
        Some(c)
    }
}

/// Specialized functions of common comparisons. An unordered comparison negates an ordered one.
fn setp_plain(t: Type, c: Cmp, ftz: bool) -> Option<(OpFn, u32)> {
    macro_rules! one {
        (|$a:ident, $b:ident| $e:expr) => {
            by_operand!(t, ftz, |R, conv| lane!(|a: R, b: R| -> bool {
                let ($a, $b) = (conv!(a), conv!(b));
                $e
            }))
        };
    }
    let half = matches!(t, Type::F16 | Type::BF16);
    let code = match c {
        _ if half => by_operand!(t, ftz, |R, conv| lane!(imm n; |a: R, b: R| -> bool {
            conv!(a).compare(conv!(b), n)
        })),
        Cmp::Eq => one!(|a, b| a == b),
        // For floats, `ne` is not the negation of `eq`: it is false for a NaN.
        Cmp::Ne => one!(|a, b| (a < b) | (a > b)),
        Cmp::Lt | Cmp::Lo => one!(|a, b| a < b),
        Cmp::Le | Cmp::Ls => one!(|a, b| a <= b),
        Cmp::Gt | Cmp::Hi => one!(|a, b| a > b),
        Cmp::Ge | Cmp::Hs => one!(|a, b| a >= b),
        _ => match t {
            Type::F32 | Type::F64 => unordered(t, c, ftz),
            _ => None,
        },
    }?;
    Some((code, cases(c)))
}

#[allow(clippy::eq_op, clippy::neg_cmp_op_on_partial_ord)]
fn unordered(t: Type, c: Cmp, ftz: bool) -> Option<OpFn> {
    macro_rules! one {
        (|$a:ident, $b:ident| $e:expr) => {
            match (t, ftz) {
                (Type::F64, _) => lane!(|$a: f64, $b: f64| -> bool { $e }),
                (_, false) => lane!(|$a: f32, $b: f32| -> bool { $e }),
                (_, true) => lane!(|a: f32, b: f32| -> bool {
                    let ($a, $b) = (super::float::flush(a), super::float::flush(b));
                    $e
                }),
            }
        };
    }
    Some(match c {
        Cmp::Equ => one!(|a, b| !((a < b) | (a > b))),
        Cmp::Neu => one!(|a, b| a != b),
        Cmp::Ltu => one!(|a, b| !(a >= b)),
        Cmp::Leu => one!(|a, b| !(a > b)),
        Cmp::Gtu => one!(|a, b| !(a <= b)),
        Cmp::Geu => one!(|a, b| !(a < b)),
        Cmp::Num => one!(|a, b| (a == a) & (b == b)),
        Cmp::Nan => one!(|a, b| (a != a) | (b != b)),
        _ => return None,
    })
}

/// `setp.f16x2 p|q, a, b`: one predicate per half, each combined with `c`. `p` alone is that of the lower half.
fn setp_x2(i: &Instr, t: Type, cmp: Cmp, dual: bool) -> Option<Selected> {
    macro_rules! two {
        (|$x:ident| $e:expr) => {
            lane!(imm n; |a: u32, b: u32, c: bool| -> (bool, bool) {
                let f = |$x: u16| $e;
                let low = f(a as u16).compare(f(b as u16), n);
                let high = f((a >> 16) as u16).compare(f((b >> 16) as u16), n);
                (combine(low, c, n), combine(high, c, n))
            })
        };
    }
    let code = match (t, i.mods.ftz) {
        (Type::F16x2, false) => two!(|x| half::f16_to_f32(x)),
        (Type::F16x2, true) => two!(|x| half::f16_to_f32(half::flush_f16(x))),
        _ => two!(|x| half::bf16_to_f32(x)),
    };
    let mut s = Selected::new(code, Type::Pred, &[t, t, Type::Pred]);
    dual_places(&mut s, i, dual);
    Some(s.with_imm(cases(cmp) | combination(i)))
}

/// `set.cmp.d.s`: true is all ones for an integer type and 1.0 for a floating-point type.
fn set(i: &Instr, d: Type, t: Type) -> Option<Selected> {
    let cmp = unsigned_order(i.mods.cmp?, t)?;
    let ftz = i.mods.ftz;
    macro_rules! with {
        ($o:ty, |$n:ident| $yes:expr) => {
            by_operand!(t, ftz, |R, conv| lane!(imm $n; |a: R, b: R, c: bool| -> $o {
                if combine(conv!(a).compare(conv!(b), $n), c, $n) { $yes } else { 0 }
            }))
        };
    }
    macro_rules! with_x2 {
        ($one:literal, |$x:ident| $e:expr) => {
            lane!(imm n; |a: u32, b: u32, c: bool| -> u32 {
                let f = |$x: u16| $e;
                let low = combine(f(a as u16).compare(f(b as u16), n), c, n);
                let high = combine(f((a >> 16) as u16).compare(f((b >> 16) as u16), n), c, n);
                (if low { $one } else { 0 }) | (if high { $one << 16 } else { 0 })
            })
        };
    }
    let code = match (d, t) {
        (Type::U32 | Type::S32 | Type::B32, Type::F16x2) if ftz => Some(with_x2!(
            0xffff_u32,
            |x| half::f16_to_f32(half::flush_f16(x))
        )),
        (Type::U32 | Type::S32 | Type::B32, Type::F16x2) => {
            Some(with_x2!(0xffff_u32, |x| half::f16_to_f32(x)))
        }
        (Type::U32 | Type::S32 | Type::B32, Type::BF16x2) => {
            Some(with_x2!(0xffff_u32, |x| half::bf16_to_f32(x)))
        }
        (Type::F16x2, Type::F16x2) if ftz => Some(with_x2!(0x3c00_u32, |x| half::f16_to_f32(
            half::flush_f16(x)
        ))),
        (Type::F16x2, Type::F16x2) => Some(with_x2!(0x3c00_u32, |x| half::f16_to_f32(x))),
        (Type::BF16x2, Type::BF16x2) => Some(with_x2!(0x3f80_u32, |x| half::bf16_to_f32(x))),
        (Type::U32 | Type::S32 | Type::B32, _) => with!(u32, |n| u32::MAX),
        (Type::F32, _) => with!(u32, |n| 0x3f80_0000),
        (Type::U16 | Type::S16 | Type::F16 | Type::BF16, _) => with!(u16, |n| (n >> 16) as u16),
        _ => None,
    }?;
    let mut s = Selected::new(code, d, &[t, t, Type::Pred]);
    if i.mods.bool_op.is_none() {
        s.srcs[2] = Some(OperandSlot::new(OperandRef::Scratch, Type::Pred));
    }
    // Results of 16 bits take their value for true from the upper half.
    let yes = match d {
        Type::F16 => 0x3c00,
        Type::BF16 => 0x3f80,
        _ => 0xffff,
    };
    Some(s.with_imm(cases(cmp) | combination(i) | yes << 16))
}

fn selp(t: Type) -> Option<OpFn> {
    Some(match Slot::of(t) {
        Slot::R32 => lane!(|a: u32, b: u32, p: bool| -> u32 { if p { a } else { b } }),
        Slot::R64 => lane!(|a: u64, b: u64, p: bool| -> u64 { if p { a } else { b } }),
        Slot::R128 => lane!(|a: u128, b: u128, p: bool| -> u128 { if p { a } else { b } }),
        Slot::Pred => return None,
    })
}

/// `slct d, a, b, c`: `a` if `c >= 0`, including minus zero; otherwise, and for a NaN, `b`.
fn slct(t: Type, by: Type, ftz: bool) -> Option<OpFn> {
    macro_rules! slct {
        ($t:ty) => {
            match (by, ftz) {
                (Type::S32, _) => {
                    lane!(|a: $t, b: $t, c: i32| -> $t { if c >= 0 { a } else { b } })
                }
                (Type::F32, false) => {
                    lane!(|a: $t, b: $t, c: f32| -> $t { if c >= 0.0 { a } else { b } })
                }
                (Type::F32, true) => {
                    lane!(|a: $t, b: $t, c: f32| -> $t {
                        if super::float::flush(c) >= 0.0 { a } else { b }
                    })
                }
                _ => return None,
            }
        };
    }
    Some(match Slot::of(t) {
        Slot::R32 => slct!(u32),
        Slot::R64 => slct!(u64),
        _ => return None,
    })
}

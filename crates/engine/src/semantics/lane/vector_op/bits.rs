//! Bit manipulation, and integer arithmetic of other widths than 32 and 64 bits or with more than one result.

use super::{IntegerOp, VectorOp, has_plain_operands};
use crate::semantics::lane::operation::Slot;
use cupyrite_ptx::ir::{ClampMode, Instr, MulHalf, Op, Operand, Type};

/// Bit manipulation and less common integer arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// Number of ones. The result has 32 bits.
    CountOnes,
    /// Number of leading zeros. The result has 32 bits.
    LeadingZeros,
    /// `bfind`: the position of the most significant bit that differs from the sign, or its distance from the top bit; all ones if
    /// no bit differs.
    /// The result has 32 bits.
    FindBit {
        /// Whether the source is signed.
        signed: bool,
        /// Whether the result is the distance.
        distance: bool,
    },
    /// The bits in opposite order.
    Reverse,
    /// `bfe`.
    ExtractField {
        /// Whether the field is signed.
        signed: bool,
    },
    /// `bfi`.
    InsertField,
    /// `shf`.
    FunnelShift {
        /// Whether it shifts to the left.
        left: bool,
        /// Whether the distance counts modulo 32, instead of at most 32.
        wrap: bool,
    },
    /// `sad`.
    SumOfDifference {
        /// Whether the sources are signed.
        signed: bool,
    },
    /// The low 32 bits of the product of 24-bit integers.
    Multiply24 {
        /// Whether they are signed.
        signed: bool,
        /// Whether a third source is added.
        add: bool,
    },
    /// The magnitude of the second source with the sign of the first.
    CopySign,
    /// `slct` by a signed integer.
    SelectBySign,
    /// `slct` by a single-precision number.
    SelectBySingle {
        /// Whether subnormal numbers count as zero.
        flush: bool,
    },
    /// The upper half of the product.
    MultiplyHigh {
        /// Whether the sources are signed.
        signed: bool,
        /// Whether a third source is added.
        add: bool,
    },
    /// Quotient or remainder of 64-bit integers.
    Divide {
        /// Whether they are signed.
        signed: bool,
        /// Whether the result is the remainder.
        remainder: bool,
    },
}

/// Sums with a carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarryOp {
    /// `a + b`.
    Add,
    /// `a - b`, as the sum of `a` and the complement of `b`.
    Subtract,
    /// The low half of `a * b`, plus `c`.
    MultiplyAdd,
    /// The upper half of `a * b`, plus `c`.
    MultiplyHighAdd {
        /// Whether `a` and `b` are signed.
        signed: bool,
    },
}

/// Which integers a `mov` joins or splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerLayout {
    /// 2 of 16 bits.
    Shorts2,
    /// 2 of 32 bits.
    Words2,
    /// 4 of 16 bits.
    Shorts4,
    /// 4 of 8 bits.
    Bytes4,
}

/// The operation of an integer instruction.
pub fn select(i: &Instr) -> Option<VectorOp> {
    let t = *i.types.first()?;
    let m = &i.mods;
    if i.op == Op::Mov {
        return layout(i, t);
    }
    if !has_plain_operands(i) || m.sat || m.relu {
        return None;
    }
    if i.op == Op::Slct && i.types.len() == 2 {
        let op = match i.types.get(1)? {
            Type::S32 => BitOp::SelectBySign,
            Type::F32 => BitOp::SelectBySingle { flush: m.ftz },
            _ => return None,
        };
        let slot = Slot::of(t);
        return matches!(slot, Slot::R32 | Slot::R64).then_some(VectorOp::Bits(op, slot));
    }
    if i.types.len() != 1 {
        return None;
    }
    if m.cc || matches!(i.op, Op::Addc | Op::Subc | Op::Madc) {
        return carry(i, t);
    }
    match t {
        Type::U16 | Type::S16 | Type::B16 => short(i, t),
        Type::F32 | Type::F64 if i.op == Op::Copysign => {
            Some(VectorOp::Bits(BitOp::CopySign, Slot::of(t)))
        }
        Type::U32 | Type::S32 | Type::B32 | Type::U64 | Type::S64 | Type::B64 => word(i, t),
        _ => None,
    }
}

fn layout(i: &Instr, t: Type) -> Option<VectorOp> {
    if i.mods.vector > 1 || i.types.len() != 1 {
        return None;
    }
    let of = |parts: &[Operand]| match (t.bits(), parts.len()) {
        (32, 2) => Some(IntegerLayout::Shorts2),
        (32, 4) => Some(IntegerLayout::Bytes4),
        (64, 2) => Some(IntegerLayout::Words2),
        (64, 4) => Some(IntegerLayout::Shorts4),
        _ => None,
    };
    match (i.operands.first()?, i.operands.get(1)?) {
        (Operand::Vector(parts), Operand::Reg(_)) => of(parts).map(VectorOp::Unpack),
        (Operand::Reg(_), Operand::Vector(parts)) => of(parts).map(VectorOp::Pack),
        _ => None,
    }
}

fn short(i: &Instr, t: Type) -> Option<VectorOp> {
    use IntegerOp::{
        Absolute, Add, And, MaxSigned, MaxUnsigned, MinSigned, MinUnsigned, Multiply, MultiplyAdd,
        Negate, Not, Or, ShiftLeft, ShiftRightSigned, ShiftRightUnsigned, Subtract, Xor,
    };
    let signed = t.is_signed();
    let of_sign = |unsigned, of_signed| if signed { of_signed } else { unsigned };
    let low = i.mods.mul == Some(MulHalf::Lo);
    let op = match i.op {
        Op::Mad if i.mods.mul == Some(MulHalf::Wide) && t != Type::B16 => {
            return Some(VectorOp::MultiplyAddWide16 { signed });
        }
        Op::And => return Some(VectorOp::Integer(And, Slot::R32)),
        Op::Or => return Some(VectorOp::Integer(Or, Slot::R32)),
        Op::Xor => return Some(VectorOp::Integer(Xor, Slot::R32)),
        Op::Not => Not,
        Op::Shl => ShiftLeft,
        Op::Shr => of_sign(ShiftRightUnsigned, ShiftRightSigned),
        Op::Add => Add,
        Op::Sub => Subtract,
        Op::Mul if low => Multiply,
        Op::Mad if low => MultiplyAdd,
        Op::Min => of_sign(MinUnsigned, MinSigned),
        Op::Max => of_sign(MaxUnsigned, MaxSigned),
        Op::Abs if signed => Absolute,
        Op::Neg if signed => Negate,
        _ => return None,
    };
    Some(VectorOp::Integer16(op))
}

fn word(i: &Instr, t: Type) -> Option<VectorOp> {
    let m = &i.mods;
    let (slot, signed) = (Slot::of(t), t.is_signed());
    let long = slot == Slot::R64;
    let op = match i.op {
        Op::Popc => BitOp::CountOnes,
        Op::Clz => BitOp::LeadingZeros,
        Op::Bfind => BitOp::FindBit {
            signed,
            distance: m.shiftamt,
        },
        Op::Brev => BitOp::Reverse,
        Op::Bfe => BitOp::ExtractField { signed },
        Op::Bfi => BitOp::InsertField,
        Op::Shf if !long => BitOp::FunnelShift {
            left: m.shift_left?,
            wrap: m.clamp? == ClampMode::Wrap,
        },
        Op::Prmt if !long && m.prmt.is_none() => match i.operands.get(3)? {
            Operand::Int(selector) => return Some(VectorOp::Permute(*selector as u16)),
            _ => return Some(VectorOp::PermuteBy),
        },
        Op::Sad => BitOp::SumOfDifference { signed },
        Op::Mul24 | Op::Mad24 if m.mul == Some(MulHalf::Lo) => BitOp::Multiply24 {
            signed,
            add: i.op == Op::Mad24,
        },
        Op::Mul | Op::Mad if m.mul == Some(MulHalf::Hi) => BitOp::MultiplyHigh {
            signed,
            add: i.op == Op::Mad,
        },
        Op::Div | Op::Rem if long => BitOp::Divide {
            signed,
            remainder: i.op == Op::Rem,
        },
        _ => return None,
    };
    Some(VectorOp::Bits(op, slot))
}

fn carry(i: &Instr, t: Type) -> Option<VectorOp> {
    let op = match (i.op, i.mods.mul) {
        (Op::Add | Op::Addc, _) => CarryOp::Add,
        (Op::Sub | Op::Subc, _) => CarryOp::Subtract,
        (Op::Mad | Op::Madc, Some(MulHalf::Lo)) => CarryOp::MultiplyAdd,
        (Op::Mad | Op::Madc, Some(MulHalf::Hi)) => CarryOp::MultiplyHighAdd {
            signed: t.is_signed(),
        },
        _ => return None,
    };
    let integer = matches!(t, Type::U32 | Type::S32 | Type::U64 | Type::S64);
    integer.then_some(VectorOp::Carry {
        op,
        reads: matches!(i.op, Op::Addc | Op::Subc | Op::Madc),
        writes: i.mods.cc,
        slot: Slot::of(t),
    })
}

//! Half-precision arithmetic.

use super::{VectorOp, has_plain_operands};
use cupyrite_ptx::ir::{Instr, Op, Type, Word};

/// A half-precision format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfFormat {
    /// `.f16`, IEEE 754 binary16.
    Binary16,
    /// `.bf16`.
    Brain,
}

impl HalfFormat {
    /// The format of a type of one element.
    pub fn of(t: Type) -> Option<Self> {
        match t {
            Type::F16 => Some(Self::Binary16),
            Type::BF16 => Some(Self::Brain),
            _ => None,
        }
    }
}

/// Half-precision operations, rounded to nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HalfOp {
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Negate,
    Absolute,
    Min,
    Max,
}

/// The operation of half-precision arithmetic.
pub fn select(i: &Instr) -> Option<VectorOp> {
    let (&t, 1) = (i.types.first()?, i.types.len()) else {
        return None;
    };
    let m = &i.mods;
    let modified = m.ftz || m.sat || m.relu || m.nan || m.xorsign || m.approx || m.has(Word::Oob);
    if modified || !has_plain_operands(i) {
        return None;
    }
    let (format, pair) = match t {
        Type::F16 => (HalfFormat::Binary16, false),
        Type::BF16 => (HalfFormat::Brain, false),
        Type::F16x2 => (HalfFormat::Binary16, true),
        Type::BF16x2 => (HalfFormat::Brain, true),
        _ => return None,
    };
    let op = match (i.op, i.operands.len()) {
        (Op::Add, 3) => HalfOp::Add,
        (Op::Sub, 3) => HalfOp::Subtract,
        (Op::Mul, 3) => HalfOp::Multiply,
        (Op::Fma | Op::Mad, 4) => HalfOp::MultiplyAdd,
        (Op::Neg, 2) => HalfOp::Negate,
        (Op::Abs, 2) => HalfOp::Absolute,
        (Op::Min, 3) => HalfOp::Min,
        (Op::Max, 3) => HalfOp::Max,
        _ => return None,
    };
    Some(VectorOp::Half { op, format, pair })
}

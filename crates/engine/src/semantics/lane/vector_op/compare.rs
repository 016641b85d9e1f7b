//! Comparisons with modifiers: `setp` with a combination or two destinations, `set`, `testp`.

use super::{CompareType, HalfFormat, VectorOp, has_plain_operands};
use crate::semantics::lane::operation::Slot;
use cupyrite_ptx::ir::{BoolOp, Cmp, Instr, Op, Operand, TestpOp, Type};

/// A comparison with the modifiers of `setp` and `set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Type of the sources.
    pub ty: CompareType,
    /// The comparison; never `lo`, `ls`, `hi` or `hs`.
    pub cmp: Cmp,
    /// Whether subnormal sources become zero.
    pub flush: bool,
    /// How the result is combined with the third source.
    pub combination: Option<BoolOp>,
    /// Whether the third source is negated before.
    pub negated: bool,
    /// Whether there is a second destination.
    pub pair: bool,
}

/// The operation of a comparison.
pub fn select(i: &Instr) -> Option<VectorOp> {
    match i.op {
        Op::Setp => {
            let (&t, 1) = (i.types.first()?, i.types.len()) else {
                return None;
            };
            comparison(i, t).map(VectorOp::CompareAndCombine)
        }
        Op::Set => set(i),
        Op::Testp if i.types.len() == 1 && has_plain_operands(i) => test(i),
        _ => None,
    }
}

fn comparison(i: &Instr, t: Type) -> Option<Comparison> {
    let ty = match t {
        Type::S16 => CompareType::Signed16,
        Type::U16 | Type::B16 => CompareType::Unsigned16,
        Type::S32 => CompareType::Signed32,
        Type::U32 | Type::B32 => CompareType::Unsigned32,
        Type::S64 => CompareType::Signed64,
        Type::U64 | Type::B64 => CompareType::Unsigned64,
        Type::F32 => CompareType::Single,
        Type::F64 => CompareType::Double,
        Type::F16 if !i.mods.ftz => CompareType::Half(HalfFormat::Binary16),
        Type::BF16 => CompareType::Half(HalfFormat::Brain),
        _ => return None,
    };
    let cmp = super::without_sign(i.mods.cmp?);
    Some(Comparison {
        ty,
        cmp,
        flush: i.mods.ftz && t == Type::F32,
        combination: i.mods.bool_op,
        negated: matches!(i.operands.get(3), Some(Operand::NotReg(_))),
        pair: matches!(i.operands.first(), Some(Operand::Pair(..))),
    })
}

fn set(i: &Instr) -> Option<VectorOp> {
    let (&d, &t, 2) = (i.types.first()?, i.types.get(1)?, i.types.len()) else {
        return None;
    };
    let value = match d {
        Type::U32 | Type::S32 | Type::B32 => u32::MAX,
        Type::F32 => 1f32.to_bits(),
        Type::U16 | Type::S16 => 0xffff,
        Type::F16 => 0x3c00,
        Type::BF16 => 0x3f80,
        _ => return None,
    };
    comparison(i, t).map(|c| VectorOp::CompareToValue(c, value))
}

/// `testp`. Zeros count as normal numbers.
fn test(i: &Instr) -> Option<VectorOp> {
    let (slot, normal, infinity, most) = match i.types.first()? {
        Type::F32 => (Slot::R32, 0x0080_0000, 0x7f80_0000, 0x7fff_ffff),
        Type::F64 => (Slot::R64, 1 << 52, 0x7ff << 52, u64::MAX >> 1),
        _ => return None,
    };
    let (low, high) = match i.mods.testp? {
        TestpOp::Finite => (0, infinity - 1),
        TestpOp::Infinite => (infinity, infinity),
        TestpOp::Number => (0, infinity),
        TestpOp::NotANumber => (infinity + 1, most),
        TestpOp::Subnormal => (1, normal - 1),
        // Two ranges.
        TestpOp::Normal => return None,
    };
    Some(VectorOp::MagnitudeBetween(slot, low, high))
}

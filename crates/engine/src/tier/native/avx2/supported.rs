//! The lane functions whose translation has counterparts in AVX2.

use crate::semantics::lane::{BitOp, Conversion, Direction, HalfFormat, HalfOp, VectorOp};

/// Whether every instruction of the translation of a lane function has a counterpart. Those without one round in another way
/// than the processor is set to, count leading zeros, compare 16-bit elements, or convert 64-bit integers.
pub fn has_counterparts(op: VectorOp) -> bool {
    let nearest = |rounding| rounding == Direction::Nearest;
    match op {
        VectorOp::Single { rounding, .. } => nearest(rounding),
        VectorOp::Bits(BitOp::LeadingZeros | BitOp::FindBit { .. }, _) => false,
        VectorOp::Half { op, format, .. } => match op {
            HalfOp::MultiplyAdd | HalfOp::Negate | HalfOp::Absolute => false,
            HalfOp::Multiply => format == HalfFormat::Binary16,
            _ => true,
        },
        VectorOp::Convert(conversion) => match conversion {
            Conversion::FloatFromInteger {
                double,
                bits,
                rounding,
                ..
            } => nearest(rounding) && (bits < 64 || double),
            Conversion::WordFromDouble { signed, .. } => signed,
            Conversion::LongFromFloat { .. } => false,
            Conversion::SingleFromDouble { rounding, .. } => nearest(rounding),
            _ => true,
        },
        _ => true,
    }
}

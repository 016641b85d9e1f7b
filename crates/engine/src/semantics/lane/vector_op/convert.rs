//! Conversions from and to floating-point numbers, and of integers to fewer than 32 bits.

use super::{Direction, FloatOp, HalfFormat, VectorOp, has_plain_operands};
use crate::semantics::lane::operation::Slot;
use cupyrite_ptx::ir::{Instr, Op, Rounding, Type};

/// A conversion from or to floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Integer to single precision, or to double precision.
    FloatFromInteger {
        /// Whether the result is double precision.
        double: bool,
        /// Bits of the integer.
        bits: u8,
        /// Whether the integer is signed.
        signed: bool,
        /// Rounding of the result.
        rounding: Direction,
    },
    /// Double precision to a 32-bit integer, clamped. A NaN becomes an integer with only the top bit set.
    WordFromDouble {
        /// Whether the integer is signed.
        signed: bool,
        /// Rounding to an integer.
        rounding: Direction,
    },
    /// The same to a 64-bit integer, also from single precision.
    LongFromFloat {
        /// Whether the source is double precision.
        double: bool,
        /// Whether the integer is signed.
        signed: bool,
        /// Rounding to an integer.
        rounding: Direction,
    },
    /// Single precision to an integer of 8 or 16 bits, clamped; a NaN becomes zero. The extension of the result is in the
    /// immediate of the lane function.
    ShortFromSingle {
        /// The least result.
        least: i32,
        /// The greatest result.
        most: i32,
        /// Rounding to an integer.
        rounding: Direction,
    },
    /// Rounds single precision to an integral number.
    SingleToIntegral {
        /// Whether subnormal sources and results become zero.
        flush: bool,
        /// Whether results are clamped to 0 ..= 1; a NaN becomes +0.
        saturate: bool,
        /// Rounding to an integer.
        rounding: Direction,
    },
    /// Rounds double precision to an integral number.
    DoubleToIntegral(Direction),
    /// Double to single precision.
    SingleFromDouble {
        /// Whether subnormal results become zero.
        flush: bool,
        /// Whether results are clamped to 0 ..= 1; a NaN becomes +0.
        saturate: bool,
        /// Rounding of the result.
        rounding: Direction,
    },
    /// Single to double precision; subnormal sources become zero.
    DoubleFromFlushedSingle,
}

fn direction(i: &Instr) -> Option<Direction> {
    Some(match i.mods.rounding {
        None | Some(Rounding::Rn) => Direction::Nearest,
        Some(Rounding::Rz) => Direction::TowardsZero,
        Some(Rounding::Rm) => Direction::Down,
        Some(Rounding::Rp) => Direction::Up,
        _ => return None,
    })
}

fn to_integer(i: &Instr) -> Option<Direction> {
    Some(match i.mods.rounding? {
        Rounding::Rni => Direction::Nearest,
        Rounding::Rzi => Direction::TowardsZero,
        Rounding::Rmi => Direction::Down,
        Rounding::Rpi => Direction::Up,
        _ => return None,
    })
}

fn is_integer(t: Type) -> bool {
    matches!(
        t,
        Type::U8
            | Type::S8
            | Type::U16
            | Type::S16
            | Type::U32
            | Type::S32
            | Type::U64
            | Type::S64
            | Type::B8
            | Type::B16
            | Type::B32
            | Type::B64
    )
}

/// The operation of a conversion.
pub fn select(i: &Instr) -> Option<VectorOp> {
    let (&d, &s, 2) = (i.types.first()?, i.types.get(1)?, i.types.len()) else {
        return None;
    };
    let m = &i.mods;
    if i.op != Op::Cvt || !has_plain_operands(i) || m.relu || m.satfinite {
        return None;
    }
    let pair = matches!(d, Type::F16x2 | Type::BF16x2);
    if i.operands.len() != if pair { 3 } else { 2 } {
        return None;
    }
    let (flush, saturate) = (m.ftz, m.sat);
    let signed = |t: Type| t.is_signed();
    let convert = |c| Some(VectorOp::Convert(c));
    match (d, s) {
        (Type::F32 | Type::F64, s) if is_integer(s) && !saturate => {
            convert(Conversion::FloatFromInteger {
                double: d == Type::F64,
                bits: s.bits() as u8,
                signed: signed(s),
                rounding: direction(i)?,
            })
        }
        (d, s) if is_integer(d) && is_integer(s) && d.bits() < 32 && !saturate => {
            Some(VectorOp::Extend16 {
                bits: s.bits().min(32) as u8,
                signed: signed(s),
                from: Slot::of(s),
            })
        }
        (Type::U32 | Type::S32, Type::F64) => convert(Conversion::WordFromDouble {
            signed: signed(d),
            rounding: to_integer(i)?,
        }),
        (Type::U64 | Type::S64, Type::F32 | Type::F64) => {
            let rounding = to_integer(i)?;
            // Rounding up or down distinguishes subnormal numbers from zeros.
            let flushed = matches!(rounding, Direction::Down | Direction::Up) && flush;
            if flushed {
                return None;
            }
            convert(Conversion::LongFromFloat {
                double: s == Type::F64,
                signed: signed(d),
                rounding,
            })
        }
        (Type::U8 | Type::S8 | Type::U16 | Type::S16, Type::F32) if !flush => {
            let bits = d.bits();
            let (least, most) = match signed(d) {
                true => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
                false => (0, (1 << bits) - 1),
            };
            convert(Conversion::ShortFromSingle {
                least,
                most,
                rounding: to_integer(i)?,
            })
        }
        (Type::F32, Type::F32) if m.rounding.is_none() => Some(VectorOp::Single {
            op: FloatOp::Identity,
            flush,
            saturate,
            rounding: Direction::Nearest,
        }),
        (Type::F32, Type::F32) => convert(Conversion::SingleToIntegral {
            flush,
            saturate,
            rounding: to_integer(i)?,
        }),
        (Type::F64, Type::F64) if !saturate && m.rounding.is_some() => {
            to_integer(i).and_then(|r| convert(Conversion::DoubleToIntegral(r)))
        }
        (Type::F32, Type::F64) => convert(Conversion::SingleFromDouble {
            flush,
            saturate,
            rounding: direction(i)?,
        }),
        (Type::F64, Type::F32) if flush && !saturate && m.rounding.is_none() => {
            convert(Conversion::DoubleFromFlushedSingle)
        }
        (Type::F32, s) if !flush && !saturate && m.rounding.is_none() => {
            HalfFormat::of(s).map(VectorOp::SingleFromHalf)
        }
        (d, Type::F32) if !flush && !saturate => {
            let (format, pair) = match d {
                Type::F16 | Type::BF16 => (HalfFormat::of(d)?, false),
                Type::F16x2 => (HalfFormat::Binary16, true),
                Type::BF16x2 => (HalfFormat::Brain, true),
                _ => return None,
            };
            let rounding = direction(i)?;
            let known = match format {
                HalfFormat::Binary16 => true,
                HalfFormat::Brain => rounding == Direction::Nearest,
            };
            known.then_some(VectorOp::HalfFromSingle {
                format,
                rounding,
                pair,
            })
        }
        _ => None,
    }
}

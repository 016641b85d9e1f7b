//! The lane functions that a compiler of vector code knows, as data.
//!
//! A [`VectorOp`] and the lane function of the same instruction compute the same bits in every lane. Instructions without one
//! are executed by their lane function.

mod bits;
mod compare;
mod convert;
mod half;

pub use bits::{BitOp, CarryOp, IntegerLayout};
pub use compare::Comparison;
pub use convert::Conversion;
pub use half::{HalfFormat, HalfOp};

use super::operation::Slot;
use cupyrite_ptx::ir::{Cmp, Instr, MulHalf, Op, Operand, Rounding, Type, Word};

/// A lane function as data. Sources and destinations are those of the [function](super::OpFn), in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorOp {
    /// Copies a slot.
    Move(Slot),
    /// Integer arithmetic and logic of this width; of predicates, logic only.
    Integer(IntegerOp, Slot),
    /// The 64-bit product of two 32-bit integers.
    MultiplyWide {
        /// Whether they are signed.
        signed: bool,
        /// Whether a third source of 64 bits is added.
        add: bool,
    },
    /// The upper half of that product.
    MultiplyHigh {
        /// Whether the integers are signed.
        signed: bool,
    },
    /// Quotient or remainder of 32-bit integers.
    Divide {
        /// Whether they are signed.
        signed: bool,
        /// Whether the result is the remainder.
        remainder: bool,
    },
    /// Bitwise function of three 32-bit words: bit `4a + 2b + c` of the table.
    Lookup(u8),
    /// The 32-bit product of two 16-bit integers.
    MultiplyWide16 {
        /// Whether they are signed.
        signed: bool,
    },
    /// Single-precision arithmetic.
    Single {
        /// The operation.
        op: FloatOp,
        /// Whether subnormal sources and results become zero.
        flush: bool,
        /// Whether results are clamped to 0 ..= 1; a NaN becomes +0.
        saturate: bool,
        /// Rounding of the result.
        rounding: Direction,
    },
    /// An approximation in single precision.
    Approximate {
        /// The function.
        function: Approximation,
        /// Whether subnormal sources and results become zero.
        flush: bool,
    },
    /// Double-precision arithmetic, rounded to nearest.
    Double(FloatOp),
    /// Comparison of two values; the result is a predicate. `lo`, `ls`, `hi`, `hs` are spelled as for signed integers.
    Compare(CompareType, Cmp),
    /// The first source where the predicate, the third source, is true, otherwise the second.
    Select(Slot),
    /// Conversion between integers: extends the low bits of the source to the width of the slots.
    Extend {
        /// Bits of the source that count.
        bits: u8,
        /// Whether the extension copies the sign.
        signed: bool,
        /// Slot of the source.
        from: Slot,
        /// Slot of the destination.
        to: Slot,
    },
    /// Integer to single precision.
    SingleFromInteger {
        /// Whether the integer is signed.
        signed: bool,
    },
    /// Single precision to a 32-bit integer, clamped; a NaN becomes 0.
    IntegerFromSingle {
        /// Whether the integer is signed.
        signed: bool,
        /// Rounding to an integer.
        rounding: Direction,
    },
    /// Single to double precision.
    DoubleFromSingle,
    /// Double to single precision, rounded to nearest.
    SingleFromDouble,
    /// 32-bit integer to double precision.
    DoubleFromInteger {
        /// Whether the integer is signed.
        signed: bool,
    },
    /// Comparison whose result is combined with the third source; a second result is that of the complement.
    CompareAndCombine(Comparison),
    /// Comparison whose result is this value or zero, in a 32-bit slot.
    CompareToValue(Comparison, u32),
    /// Arithmetic and logic of 16-bit integers; results are zero-extended.
    Integer16(IntegerOp),
    /// The 32-bit product of two 16-bit integers plus a 32-bit integer.
    MultiplyAddWide16 {
        /// Whether they are signed.
        signed: bool,
    },
    /// Conversion of an integer to one of 8 or 16 bits, whose extension is in the immediate of the lane function.
    Extend16 {
        /// Bits of the source that count.
        bits: u8,
        /// Whether the source is signed.
        signed: bool,
        /// Slot of the source.
        from: Slot,
    },
    /// Conversion from or to floating-point numbers that has no variant of its own.
    Convert(Conversion),
    /// Bit manipulation and integer arithmetic that is not in [`IntegerOp`].
    Bits(BitOp, Slot),
    /// Bytes of the concatenation of two words, by a selector that is an immediate.
    Permute(u16),
    /// The same by a selector that is the third source.
    PermuteBy,
    /// Arithmetic that reads or writes the carry flag. The last source is the flag.
    Carry {
        /// The operation.
        op: CarryOp,
        /// Whether it adds the flag.
        reads: bool,
        /// Whether it writes the flag.
        writes: bool,
        /// Slot of the integers.
        slot: Slot,
    },
    /// Joins sources to a wider integer, the first one lowest.
    Pack(IntegerLayout),
    /// Splits an integer; the first destination is the lowest part.
    Unpack(IntegerLayout),
    /// Half-precision arithmetic, without modifiers.
    Half {
        /// The operation.
        op: HalfOp,
        /// Format of the sources and the result.
        format: HalfFormat,
        /// Whether operands are pairs.
        pair: bool,
    },
    /// Half precision to single precision.
    SingleFromHalf(HalfFormat),
    /// Single to half precision.
    HalfFromSingle {
        /// Format of the result.
        format: HalfFormat,
        /// Rounding of the result.
        rounding: Direction,
        /// Whether the result is a pair, the first source in its upper half.
        pair: bool,
    },
    /// `div.approx` of single precision.
    ApproximateQuotient {
        /// Whether subnormal sources and results become zero.
        flush: bool,
    },
    /// `rcp.approx.ftz` or `rsqrt.approx.ftz` of double precision.
    ApproximateReciprocal {
        /// Whether it is that of the square root.
        root: bool,
    },
    /// Whether the magnitude of a floating-point number, as an integer, is in this range of bit patterns.
    MagnitudeBetween(Slot, u64, u64),
}

/// Rounding to an integer or to the precision of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Direction {
    Nearest,
    Down,
    Up,
    TowardsZero,
}

/// Integer operations on one or more sources of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntegerOp {
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    And,
    Or,
    Xor,
    Not,
    Negate,
    Absolute,
    MinSigned,
    MinUnsigned,
    MaxSigned,
    MaxUnsigned,
    ShiftLeft,
    ShiftRightSigned,
    ShiftRightUnsigned,
}

/// Floating-point operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FloatOp {
    /// The source itself.
    Identity,
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Divide,
    Reciprocal,
    SquareRoot,
    /// `1 / sqrt(x)`, computed in double precision.
    ReciprocalSquareRoot,
    Min,
    Max,
    Negate,
    Absolute,
}

/// Functions that are approximated in double precision (see [`math`](super::math)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Approximation {
    Exponential,
    Logarithm,
    Sine,
    Cosine,
    HyperbolicTangent,
}

/// Type of the operands of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CompareType {
    Signed32,
    Unsigned32,
    Signed64,
    Unsigned64,
    Single,
    Double,
    Signed16,
    Unsigned16,
    Half(HalfFormat),
}

/// The operation of an instruction that has a lane function; `None` for one that compilers do not know.
pub fn vector_op(i: &Instr) -> Option<VectorOp> {
    common(i)
        .or_else(|| compare::select(i))
        .or_else(|| convert::select(i))
        .or_else(|| bits::select(i))
        .or_else(|| half::select(i))
}

/// Whether every operand is a value or a register as a whole.
fn has_plain_operands(i: &Instr) -> bool {
    let plain = |o: &Operand| {
        !matches!(
            o,
            Operand::NotReg(_)
                | Operand::Neg(_)
                | Operand::RegSelect(..)
                | Operand::Vector(_)
                | Operand::Pair(..)
                | Operand::Sink
        )
    };
    i.operands.iter().all(plain)
}

fn common(i: &Instr) -> Option<VectorOp> {
    if !has_plain_operands(i) {
        return None;
    }
    let t = *i.types.first()?;
    let m = &i.mods;
    if m.cc
        || m.sat && t != Type::F32
        || m.relu
        || m.satfinite
        || m.nan
        || m.xorsign
        || m.bool_op.is_some()
    {
        return None;
    }
    match i.op {
        Op::Cvt => conversion(i),
        Op::Setp => comparison(i, t),
        Op::Mov if i.operands.len() == 2 && i.types.len() == 1 => match Slot::of(t) {
            Slot::R128 => None,
            slot => Some(VectorOp::Move(slot)),
        },
        Op::Selp => match Slot::of(t) {
            slot @ (Slot::R32 | Slot::R64) => Some(VectorOp::Select(slot)),
            _ => None,
        },
        Op::Lop3 => match i.operands.get(4) {
            Some(&Operand::Int(table)) => Some(VectorOp::Lookup(table as u8)),
            _ => None,
        },
        _ if i.types.len() != 1 => None,
        _ => match t {
            Type::F32 if m.approx => approximation(i).or_else(|| single(i)),
            Type::F32 => single(i),
            Type::F64 if m.approx => reciprocal(i),
            Type::F64 => double(i).map(VectorOp::Double),
            _ => integer(i, t),
        },
    }
}

fn integer(i: &Instr, t: Type) -> Option<VectorOp> {
    use IntegerOp::{
        Absolute, Add, And, MaxSigned, MaxUnsigned, MinSigned, MinUnsigned, Multiply, MultiplyAdd,
        Negate, Not, Or, ShiftLeft, ShiftRightSigned, ShiftRightUnsigned, Subtract, Xor,
    };
    let arithmetic = match t {
        Type::U32 | Type::S32 => Some(Slot::R32),
        Type::U64 | Type::S64 => Some(Slot::R64),
        _ => None,
    };
    let bits = match t {
        Type::Pred => Some(Slot::Pred),
        Type::B32 => Some(Slot::R32),
        Type::B64 => Some(Slot::R64),
        _ => None,
    };
    let signed = t.is_signed();
    let half = i.mods.mul;
    let op = match i.op {
        Op::Add => Add,
        Op::Sub => Subtract,
        Op::Mul | Op::Mad if half == Some(MulHalf::Wide) && arithmetic == Some(Slot::R32) => {
            let add = i.op == Op::Mad;
            return Some(VectorOp::MultiplyWide { signed, add });
        }
        Op::Mul if half == Some(MulHalf::Wide) && matches!(t, Type::U16 | Type::S16) => {
            return Some(VectorOp::MultiplyWide16 { signed });
        }
        Op::Mul if half == Some(MulHalf::Hi) && arithmetic == Some(Slot::R32) => {
            return Some(VectorOp::MultiplyHigh { signed });
        }
        Op::Mul if half == Some(MulHalf::Lo) => Multiply,
        Op::Mad if half == Some(MulHalf::Lo) => MultiplyAdd,
        Op::Div | Op::Rem if arithmetic == Some(Slot::R32) => {
            let remainder = i.op == Op::Rem;
            return Some(VectorOp::Divide { signed, remainder });
        }
        Op::Min => [MinUnsigned, MinSigned][usize::from(signed)],
        Op::Max => [MaxUnsigned, MaxSigned][usize::from(signed)],
        Op::Abs if signed => Absolute,
        Op::Neg if signed => Negate,
        Op::And => return bits.map(|slot| VectorOp::Integer(And, slot)),
        Op::Or => return bits.map(|slot| VectorOp::Integer(Or, slot)),
        Op::Xor => return bits.map(|slot| VectorOp::Integer(Xor, slot)),
        Op::Not => return bits.map(|slot| VectorOp::Integer(Not, slot)),
        Op::Shl if bits != Some(Slot::Pred) => {
            return bits.map(|slot| VectorOp::Integer(ShiftLeft, slot));
        }
        Op::Shr if t != Type::Pred => {
            let op = [ShiftRightUnsigned, ShiftRightSigned][usize::from(signed)];
            return bits.or(arithmetic).map(|slot| VectorOp::Integer(op, slot));
        }
        _ => return None,
    };
    arithmetic.map(|slot| VectorOp::Integer(op, slot))
}

fn to_nearest(i: &Instr) -> bool {
    matches!(i.mods.rounding, None | Some(Rounding::Rn))
}

fn single(i: &Instr) -> Option<VectorOp> {
    let m = &i.mods;
    if m.full && i.op != Op::Div {
        return None;
    }
    let rounding = match m.rounding {
        None | Some(Rounding::Rn) => Direction::Nearest,
        Some(Rounding::Rm) => Direction::Down,
        Some(Rounding::Rp) => Direction::Up,
        Some(Rounding::Rz) => Direction::TowardsZero,
        _ => return None,
    };
    let op = match (i.op, i.operands.len()) {
        (Op::Div, 3) if !m.approx => FloatOp::Divide,
        (Op::Rcp, 2) => FloatOp::Reciprocal,
        (Op::Sqrt, 2) => FloatOp::SquareRoot,
        (Op::Rsqrt, 2) if m.approx => FloatOp::ReciprocalSquareRoot,
        _ if m.approx => return None,
        (Op::Add, 3) => FloatOp::Add,
        (Op::Sub, 3) => FloatOp::Subtract,
        (Op::Mul, 3) => FloatOp::Multiply,
        (Op::Fma | Op::Mad, 4) => FloatOp::MultiplyAdd,
        (Op::Min, 3) => FloatOp::Min,
        (Op::Max, 3) => FloatOp::Max,
        (Op::Neg, 2) => FloatOp::Negate,
        (Op::Abs, 2) => FloatOp::Absolute,
        _ => return None,
    };
    Some(VectorOp::Single {
        op,
        flush: m.ftz,
        saturate: m.sat,
        rounding,
    })
}

fn approximation(i: &Instr) -> Option<VectorOp> {
    if i.op == Op::Div {
        let plain = i.operands.len() == 3 && !i.mods.sat && !i.mods.full;
        let flush = i.mods.ftz;
        return plain.then_some(VectorOp::ApproximateQuotient { flush });
    }
    let function = match i.op {
        Op::Ex2 => Approximation::Exponential,
        Op::Lg2 => Approximation::Logarithm,
        Op::Sin => Approximation::Sine,
        Op::Cos => Approximation::Cosine,
        Op::Tanh => Approximation::HyperbolicTangent,
        _ => return None,
    };
    let plain = i.operands.len() == 2 && !i.mods.sat && !i.mods.has(Word::N2pi);
    plain.then_some(VectorOp::Approximate {
        function,
        flush: i.mods.ftz,
    })
}

fn reciprocal(i: &Instr) -> Option<VectorOp> {
    let root = match i.op {
        Op::Rcp => false,
        Op::Rsqrt => true,
        _ => return None,
    };
    (i.mods.ftz && i.operands.len() == 2).then_some(VectorOp::ApproximateReciprocal { root })
}

fn double(i: &Instr) -> Option<FloatOp> {
    let m = &i.mods;
    if !to_nearest(i) || m.approx || m.full {
        return None;
    }
    Some(match (i.op, i.operands.len()) {
        (Op::Add, 3) => FloatOp::Add,
        (Op::Sub, 3) => FloatOp::Subtract,
        (Op::Mul, 3) => FloatOp::Multiply,
        (Op::Fma | Op::Mad, 4) => FloatOp::MultiplyAdd,
        (Op::Div, 3) => FloatOp::Divide,
        (Op::Rcp, 2) => FloatOp::Reciprocal,
        (Op::Sqrt, 2) => FloatOp::SquareRoot,
        (Op::Neg, 2) => FloatOp::Negate,
        (Op::Abs, 2) => FloatOp::Absolute,
        (Op::Min, 3) => FloatOp::Min,
        (Op::Max, 3) => FloatOp::Max,
        _ => return None,
    })
}

/// A comparison of unsigned integers, spelled as that of signed ones: the type says which it is.
fn without_sign(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lo => Cmp::Lt,
        Cmp::Ls => Cmp::Le,
        Cmp::Hi => Cmp::Gt,
        Cmp::Hs => Cmp::Ge,
        cmp => cmp,
    }
}

fn comparison(i: &Instr, t: Type) -> Option<VectorOp> {
    let ty = match t {
        Type::S32 => CompareType::Signed32,
        Type::U32 | Type::B32 => CompareType::Unsigned32,
        Type::S64 => CompareType::Signed64,
        Type::U64 | Type::B64 => CompareType::Unsigned64,
        Type::F32 if !i.mods.ftz => CompareType::Single,
        Type::F64 => CompareType::Double,
        _ => return None,
    };
    let cmp = without_sign(i.mods.cmp?);
    Some(VectorOp::Compare(ty, cmp))
}

fn conversion(i: &Instr) -> Option<VectorOp> {
    let (&d, &s) = (i.types.first()?, i.types.get(1)?);
    if i.types.len() != 2 || i.operands.len() != 2 {
        return None;
    }
    let integer =
        |t: Type| !t.is_float() && matches!(t.bits(), 8 | 16 | 32 | 64) && t != Type::Pred;
    let word = |t: Type| matches!(t, Type::U32 | Type::S32);
    let signed = |t: Type| t.is_signed();
    if i.mods.sat {
        let plain = (d, s) == (Type::F32, Type::F32) && i.mods.rounding.is_none();
        return plain.then_some(VectorOp::Single {
            op: FloatOp::Identity,
            flush: i.mods.ftz,
            saturate: true,
            rounding: Direction::Nearest,
        });
    }
    match (d, s) {
        // Results of fewer than 32 bits are extended by rules of their own.
        _ if integer(d) && integer(s) && d.bits() >= 32 => Some(VectorOp::Extend {
            bits: s.bits().min(d.bits()) as u8,
            signed: signed(s),
            from: Slot::of(s),
            to: Slot::of(d),
        }),
        (Type::F32, s) if word(s) && to_nearest(i) => {
            Some(VectorOp::SingleFromInteger { signed: signed(s) })
        }
        (Type::F64, s) if word(s) && to_nearest(i) => {
            Some(VectorOp::DoubleFromInteger { signed: signed(s) })
        }
        (d, Type::F32) if word(d) => {
            let rounding = match i.mods.rounding? {
                Rounding::Rni => Direction::Nearest,
                Rounding::Rmi if !i.mods.ftz => Direction::Down,
                Rounding::Rpi if !i.mods.ftz => Direction::Up,
                Rounding::Rzi => Direction::TowardsZero,
                _ => return None,
            };
            let signed = signed(d);
            Some(VectorOp::IntegerFromSingle { signed, rounding })
        }
        (Type::F64, Type::F32) if i.mods.rounding.is_none() && !i.mods.ftz => {
            Some(VectorOp::DoubleFromSingle)
        }
        (Type::F32, Type::F64) if i.mods.rounding == Some(Rounding::Rn) && !i.mods.ftz => {
            Some(VectorOp::SingleFromDouble)
        }
        _ => None,
    }
}

//! The lane functions: the results of arithmetic, logic, comparison, selection and conversion instructions.
//!
//! Belongs here: value functions over the 32 lanes of a warp. Does not belong here: control flow, memory, special
//! registers, anything that combines lanes.
//!
//! # Register file
//!
//! A warp's register file is one block of bytes, aligned to 64. A register is a *slot* in it ([`Slot`]):
//!
//! | slot   | bytes | contents                                                     |
//! |--------|-------|--------------------------------------------------------------|
//! | `Pred` | 4     | one `u32`; bit n is lane n                                   |
//! | `R32`  | 128   | 32 × `u32`; 8- and 16-bit registers, zero-extended, too      |
//! | `R64`  | 256   | 32 × `u64`                                                   |
//! | `R128` | 512   | 32 × `u128`                                                  |
//!
//! Immediates are slots that the compiler fills beforehand ([`immediate`] returns the element). A destination may be the
//! same slot as a source; otherwise slots do not overlap. A sink (`_`) is a scratch slot.
//!
//! # Two versions of the code
//!
//! Every function is compiled for the baseline of the architecture and, on x86-64, for `x86-64-v3` (AVX2, FMA).
//! [`select`] returns the version for this machine. Both produce the same bits.

mod blend;
mod cluster_address;
mod compare;
mod convert;
mod float;
mod formats;
mod half;
mod integer;
mod lanes;
mod logic;
mod math;
mod opaque;
mod operation;
mod rounding;
#[cfg(test)]
mod tests;
mod vector_op;
mod video;

use cupyrite_ptx::ir::{Instr, Register};

pub use float::{flush, payload64};
pub use formats::{from_e4m3, from_e5m2};
pub use operation::{OpArgs, OpFn, OperandRef, OperandSlot, Selected, Slot, immediate};
pub use rounding::{RM, RN, RP, RZ, fma64};
pub use vector_op::{
    Approximation, BitOp, CarryOp, CompareType, Comparison, Conversion, Direction, FloatOp,
    HalfFormat, HalfOp, IntegerLayout, IntegerOp, VectorOp, vector_op,
};

/// Selects the lane function of an instruction; `None` if it has none. `regs` is the register table of the body.
///
/// There is a function for every instruction whose result in a lane depends only on register operands of that lane.
/// `mov` from a special register, of an address or of a function needs an operand that the compiler has turned into a
/// slot or an immediate.
pub fn select(i: &Instr, regs: &[Register]) -> Option<Selected> {
    integer::select(i)
        .or_else(|| logic::select(i))
        .or_else(|| compare::select(i))
        .or_else(|| float::select(i))
        .or_else(|| half::select(i))
        .or_else(|| convert::select(i, regs))
        .or_else(|| formats::select(i))
        .or_else(|| math::select(i))
        .or_else(|| video::select(i))
        .or_else(|| opaque::select(i))
        .or_else(|| cluster_address::select(i))
}

/// The function that copies between slots of different shape: it truncates the value, or extends it (by sign if
/// `signed`). It has one source and one destination. `None` for predicates and for equal shapes.
pub fn resize(from: Slot, to: Slot, signed: bool) -> Option<OpFn> {
    convert::resize(from, to, signed)
}

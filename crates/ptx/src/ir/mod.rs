//! The typed form of a PTX module, with every name resolved.
//!
//! The parser produces it, the linker renumbers it, the CPU device compiles it. Names follow the PTX ISA manual (9.x).
//! Everything is plain data. Indices stand in for references, so that threads can share a module and code can visit it in
//! any order.

mod instruction;
mod mnemonic;
mod module;
mod opcode;
mod operand;
mod types;

pub use crate::isa::{Op, Word};
pub use instruction::{
    AtomOp, BoolOp, ClampMode, Cmp, Instr, Mods, MulHalf, PrmtMode, Rounding, Scope, Semantics,
    ShflMode, TestpOp, VoteMode,
};
pub use module::{
    Body, Directives, FuncId, Function, InitElem, Label, LabelId, Linkage, Module, Pos, ProtoId,
    Prototype, RegId, Register, SourceLoc, VarId, Variable,
};
pub use opcode::{Destination, OpClass};
pub use operand::{Base, Operand, Selector, Special};
pub use types::{Space, Type};

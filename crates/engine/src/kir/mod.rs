//! KIR, the kernel intermediate representation: the compiler lowers PTX to it, and the tiers generate their code from it.
//!
//! Belongs here: plain data, with its visitors, its text form and its verifier. Does not belong here: PTX (`build` translates
//! it), analyses (`passes`), locations in a register file (`passes::register_allocation`).
//!
//! A [`Kernel`] holds a [`Function`] for the kernel and for every function that it can reach. A function has virtual
//! [`Register`]s and basic [`Block`]s in layout order. A register has no type but a slot shape: the instruction determines how
//! its bits are interpreted. An [`Instruction`] is an [`Action`] with an optional guard. Constants, special registers that do
//! not change while a warp runs, and addresses of parameters are registers that no instruction writes, so that every
//! value operand is a register. KIR is not in SSA form: a register can have several definitions, as in PTX.

mod action;
mod function;
mod operation;
mod print;
mod register;
mod verify;

pub use action::{Action, LaneOp, Role};
pub use function::{
    Block, BlockId, ConstantLoad, Function, Guard, HoistedLoad, Instruction, Kernel, Origin,
};
pub use operation::*;
pub use register::{Fixed, Reg, Register, Source, Uniformity};
pub use verify::verify;

//! KIR, the kernel intermediate representation: what the compiler makes of PTX, and what the tiers execute.
//!
//! Belongs here: plain data, with its visitors, its text form and its verifier. Does not belong here: PTX (`build` translates
//! it), analyses (`passes`), locations in a register file (`passes::register_allocation`).
//!
//! A [`Kernel`] holds a [`Function`] for the kernel and for every function that it can reach. A function has typed virtual
//! [`Register`]s, of which each instruction names some, and [`Block`]s in the order of the PTX; control falls through to the
//! next one. An [`Instruction`] is an [`Action`] under an optional guard. Constants, special registers and addresses of
//! parameters are registers that no instruction writes, so that an operand is always a register. KIR is not in SSA form:
//! a register may have several definitions, like the one of PTX that it stands for.

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

//! Properties of opcodes that follow from the instruction table.

use std::fmt;

use crate::isa::Op;

/// The effect of an opcode besides computing a value. The classes follow the sections of the PTX ISA manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Arithmetic, logic, comparison, selection, conversion and moves. The result of a lane depends only on that lane's
    /// register operands.
    Arithmetic,
    /// Video instructions: arithmetic on parts of registers.
    Video,
    /// Tests and conversions of addresses.
    Address,
    /// Branches, calls, returns, and instructions that end a thread.
    ControlFlow,
    /// Barriers of a block or cluster.
    Barrier,
    /// Instructions that the lanes of a warp execute together.
    WarpCollective,
    /// Loads, stores and atomics with one address per lane.
    Memory,
    /// Memory fences.
    Fence,
    /// `mbarrier` objects.
    Mbarrier,
    /// Asynchronous copies and reductions.
    AsyncCopy,
    /// Texture and surface instructions.
    Texture,
    /// Dynamic allocation in the stack frame.
    Stack,
    /// Waiting and performance monitoring.
    Monitor,
    /// Cache and scheduling hints, without effect on results.
    Hint,
    /// Matrix instructions.
    Matrix,
    /// Instructions of a cluster or of several GPUs.
    Cluster,
}

impl OpClass {
    /// Whether the class takes the modifiers of arithmetic (rounding, `.ftz`, `.sat`) and no others.
    pub const fn is_computation(self) -> bool {
        matches!(
            self,
            OpClass::Arithmetic | OpClass::Video | OpClass::Address
        )
    }
}

/// Whether the first operand of an opcode is a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// In every form.
    First,
    /// In no form.
    None,
    /// In some forms: [`Instr::has_destination`](super::Instr::has_destination) decides by the form.
    ByForm,
}

impl Op {
    /// Whether its first operand is a destination.
    pub fn destination(self) -> Destination {
        self.row().destination
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

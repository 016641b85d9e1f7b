//! What a tier provides: the compilation of KIR, and the execution of a warp.
//!
//! The trait is declared here, where it is called, so that this folder does not depend on the tiers.

use std::fmt;
use std::time::Instant;

use super::context::Context;
use super::memory::model::MemoryModel;
use super::warp::Warp;
use crate::build::{CompileError, PlacedModule};
use crate::bytecode::Program;
use crate::kir::Kernel;
use crate::passes::register_allocation::Allocation;

/// A way to execute KIR.
pub trait Tier {
    /// What a kernel is executed from.
    type Code: fmt::Debug + Send + Sync;

    /// Makes the code of a kernel.
    ///
    /// # Errors
    /// A kernel that needs more than the tier has, such as a register file that is too large.
    fn compile(
        kernel: Kernel,
        allocation: &Allocation,
        placed: &PlacedModule,
    ) -> Result<Self::Code, CompileError>;

    /// Runs a warp from its state until it stops. The state says then where each lane goes on.
    ///
    /// # Safety
    /// The warp has a register file of the kernel's size and belongs to the block of `cx`.
    unsafe fn run<M: MemoryModel>(cx: &mut Context<'_, M>, warp: &mut Warp) -> WarpStop;

    /// Tells the tier from time to time that a launch which began at `start` goes on.
    fn during_launch<M: MemoryModel>(program: &Program, start: Instant);

    /// Whether [`Self::run_together`] can do anything for a program.
    fn runs_together<M: MemoryModel>(program: &Program) -> bool;

    /// Runs all live lanes of several warps, which are at the position `from`, until an instruction that each warp must execute
    /// for itself. `again` says that the last call was for the same warps.
    ///
    /// # Safety
    /// The warps have register files of the kernel's size, no fragments, and belong to the block of `cx`.
    unsafe fn run_together<M: MemoryModel>(
        cx: &mut Context<'_, M>,
        warps: &mut [Warp],
        from: u32,
        again: bool,
    ) -> Together;

    /// Runs the first warps of `warps` from the start of the kernel to its end, one after the other, with the same register file.
    /// Returns how many have ended, and whether the one after them has run to another instruction. The others have not started.
    ///
    /// # Safety
    /// The warps have not started; they have the same register file of the kernel's size, and belong to the block of `cx`.
    unsafe fn run_in_turn<M: MemoryModel>(
        cx: &mut Context<'_, M>,
        warps: &mut [Warp],
    ) -> (usize, bool);
}

/// Where warps are that have run together.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All lanes are at this position.
    At(u32),
    /// They are at different positions: all are parked.
    Parted,
    /// The launch has been stopped.
    Stopped,
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpStop {
    /// All lanes have exited.
    Exited,
    /// All remaining lanes wait at a block barrier.
    Waiting,
    /// No lane can run until the first of those that sleep wakes.
    Sleeping,
    /// It has used up its time, or spins.
    Yield,
    /// A lane has faulted, or the launch has been stopped.
    Fault,
}

//! What a tier provides: the compilation of KIR, and the execution of a warp.
//!
//! The trait is declared here, where it is called, so that this folder does not depend on the tiers.

use std::fmt;

use super::context::Context;
use super::memory::model::MemoryModel;
use super::warp::Warp;
use crate::build::{CompileError, PlacedModule};
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

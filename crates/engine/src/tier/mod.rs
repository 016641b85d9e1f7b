//! Tiers: ways to execute KIR.
//!
//! Belongs here: the code that a tier makes of KIR, and the loop that runs it. Does not belong here: what instructions mean
//! (`semantics`), when a warp runs and on which thread (`run`).
//!
//! The [`Interpreter`] is the first tier, and the reference: another one must produce the same bits. Tiers share the
//! [register file](crate::register_file), the [state of a warp](crate::run::warp) and its fuel, so that a warp can stop in one
//! and go on in another.

pub mod interpreter;

use std::fmt;

pub use interpreter::Interpreter;

use crate::build::{CompileError, PlacedModule};
use crate::kir::Kernel;
use crate::passes::register_allocation::Allocation;
use crate::run::context::Context;
use crate::run::memory::model::MemoryModel;
use crate::run::warp::Warp;

/// A way to execute KIR.
pub trait Tier {
    /// What a kernel is executed from.
    type Code: fmt::Debug + Send + Sync;

    /// Makes the code of a kernel.
    ///
    /// # Errors
    /// A kernel that needs more than the tier has, such as a register file that is too large.
    fn compile(
        kernel: &Kernel,
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

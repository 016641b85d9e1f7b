//! The state that instructions of the interpreter can access, and their faults.

use super::block_state::BlockState;
use super::launch_state::Launch;
use super::memory::model::MemoryModel;
use super::worker::WorkerState;
use crate::bytecode::Program;
use crate::fault::{FaultDetail, FaultKind, LaneFault};

/// The state that an instruction can access besides its warp.
pub struct Context<'a, M: MemoryModel> {
    /// The launch.
    pub launch: &'a Launch<'a>,
    /// The program.
    pub program: &'a Program,
    /// The block.
    pub block: &'a mut BlockState,
    /// The worker.
    pub worker: &'a mut WorkerState<M>,
    /// Index of the warp in its block.
    pub warp: u32,
    /// The memory model of the launch.
    pub model: &'a M,
}

impl<'a, M: MemoryModel> Context<'a, M> {
    /// The context of the instructions of warp `warp` of a block.
    pub fn new(
        launch: &'a Launch<'a>,
        block: &'a mut BlockState,
        worker: &'a mut WorkerState<M>,
        warp: u32,
        model: &'a M,
    ) -> Self {
        Self {
            launch,
            program: launch.program,
            block,
            worker,
            warp,
            model,
        }
    }
}

/// Result of an instruction.
pub type ExecResult = Result<(), Box<LaneFault>>;

/// A fault of the first lane of `mask`, with a text.
#[cold]
pub fn fault(kind: FaultKind, mask: u32, text: impl Into<String>) -> Box<LaneFault> {
    Box::new(LaneFault {
        kind,
        lane: mask.trailing_zeros().min(31),
        detail: FaultDetail::Text(text.into()),
    })
}

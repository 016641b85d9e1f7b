//! If-conversion: a block that a branch skips is executed under a mask, when a part of the lanes takes the branch.
//!
//! Code for all lanes executes them for the lanes that do not branch, and goes on with all lanes: nothing waits, and nothing is merged.

use iced_x86::{Code, Register};

use super::emit::{Emitter, MASK, RUNNING};
use super::flow::Flow;
use crate::bytecode::Program;

/// The most instructions that are emitted once more for it.
const MOST: usize = 24;

/// Whether a branch of block `n` to `target` skips one block that it can execute for the other lanes.
pub fn is_short(program: &Program, flow: &Flow, n: usize, target: usize) -> bool {
    let Some(skipped) = flow.blocks.get(n + 1) else {
        return false;
    };
    // Lanes that branch to the skipped block from elsewhere could wait there.
    target == n + 2
        && flow.can_wait
        && !skipped.interpreted
        && !skipped.collective
        && skipped.waiting.is_none()
        && skipped.code.len() <= MOST
        && flow.branch(program, n + 1).is_none()
}

impl Emitter<'_> {
    /// Executes the block after `n` for the lanes of `rest`, and goes on at `target` with all lanes.
    pub fn short_conditional(&mut self, n: usize, target: usize, rest: Register) {
        self.begin_block(n + 1);
        self.masked = true;
        self.others = Some(target);
        self.asm.op2(Code::VEX_Kmovw_kr_km16, RUNNING, rest);
        self.upper_lanes();
        self.block(n + 1);
        self.masked = false;
        self.others = None;
        let to = self.full[target];
        self.asm.jump(Code::Jmp_rel32_64, to);
    }

    /// Before an exit from conditional code: lets the other lanes wait.
    pub fn let_others_wait(&mut self, others: Option<usize>) {
        if let Some(block) = others {
            self.clear_waiting();
            self.asm.op2(Code::VEX_Knotw_kr_kr, MASK, RUNNING);
            self.wait(block, MASK);
        }
    }
}

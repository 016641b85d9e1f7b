//! Loops that may wait for another thread.
//!
//! The backward branch of such a loop takes more fuel from its warp, so that the warp soon yields: the loop may end only after
//! other lanes or another warp have run.

use crate::build::CompileError;
use crate::kir::{Action, Function};

/// Marks each backward branch that encloses, in layout order, an instruction that may wait for another thread
/// ([`Action::may_wait`]): an atomic, an operation on an `mbarrier` object, a volatile or non-weak load, `nanosleep`.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a pass")]
pub fn mark_spin_loops(f: &mut Function) -> Result<(), CompileError> {
    // Prefix sums: instructions that may wait in all blocks before each block, then in the whole function.
    let mut before = vec![0usize];
    for b in &f.blocks {
        let own = b.instructions.iter().filter(|i| i.action.may_wait());
        before.push(before[before.len() - 1] + own.count());
    }
    for (n, b) in f.blocks.iter_mut().enumerate() {
        if let Some(last) = b.instructions.last_mut()
            && let Action::Branch { target, spins } = &mut last.action
        {
            let to = target.0 as usize;
            *spins = to <= n && before[n + 1] > before[to];
        }
    }
    Ok(())
}

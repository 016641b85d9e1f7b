//! Loops that may wait for another thread.
//!
//! The scheduler gives such a loop less time: another warp must run before the loop can end.

use crate::build::CompileError;
use crate::kir::{Action, Function};

/// Marks the branches that go back around an instruction that may wait for another thread, such as an atomic or a volatile
/// load.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a pass")]
pub fn mark_spin_loops(f: &mut Function) -> Result<(), CompileError> {
    // For each block, the number of waiting instructions before it, and behind the last one.
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

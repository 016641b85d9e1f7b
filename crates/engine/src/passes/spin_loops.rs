//! Loops that may wait for another thread.
//!
//! The backward branch of such a loop takes more fuel from its warp, so that the warp soon yields: the loop may end only after
//! other lanes or another warp have run.

use crate::build::CompileError;
use crate::kir::{Action, Callee, Function, Kernel, Role};

/// The registers that instructions of a function read.
fn read_registers(f: &Function) -> Vec<bool> {
    let mut read = vec![false; f.registers.len()];
    for i in f.instructions() {
        i.guard
            .iter()
            .for_each(|g| read[g.predicate.at as usize] = true);
        i.action
            .for_each(&mut |role, r| read[r.at as usize] |= role == Role::Read);
    }
    read
}

/// Whether an action may wait for another thread. An atomic whose result nothing reads tells the thread nothing.
fn may_wait(action: &Action, read: &[bool]) -> bool {
    match action {
        Action::Atomic(op) => op.dst.iter().any(|r| read[r.at as usize]),
        other => other.may_wait(),
    }
}

/// Marks each backward branch that encloses, in layout order, an instruction that may wait for another thread
/// ([`Action::may_wait`]): an atomic with a result, an operation on an `mbarrier` object, a volatile or non-weak load, `nanosleep`, a call of a
/// function with one of these.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a pass")]
pub fn mark_spin_loops(f: &mut Function) -> Result<(), CompileError> {
    // Prefix sums: instructions that may wait in all blocks before each block, then in the whole function.
    let mut before = vec![0usize];
    let read = read_registers(f);
    for b in &f.blocks {
        let own = b.instructions.iter().filter(|i| may_wait(&i.action, &read));
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

/// Finds the calls whose callee has an instruction that may wait, or calls such a function. Any function may be called
/// indirectly: such a call may wait.
pub fn find_waiting_calls(kernel: &mut Kernel) {
    let callees = |f: &Function| -> Vec<u32> {
        let actions = f
            .blocks
            .iter()
            .flat_map(|b| b.instructions.iter().map(|i| &i.action));
        let direct = actions.filter_map(|action| match action {
            Action::Call(op) => match op.callee {
                Callee::Direct(n) => Some(n),
                Callee::Indirect(..) => None,
            },
            _ => None,
        });
        direct.collect()
    };
    let waits = |action: &Action, read: &[bool]| match action {
        Action::Call(op) => matches!(op.callee, Callee::Indirect(..)),
        other => may_wait(other, read),
    };
    let functions = &kernel.functions;
    let mut waiting: Vec<bool> = functions
        .iter()
        .map(|f| {
            let read = read_registers(f);
            f.instructions().any(|i| waits(&i.action, &read))
        })
        .collect();
    // From callees to callers.
    let mut callers = vec![Vec::new(); functions.len()];
    for (n, f) in functions.iter().enumerate() {
        for callee in callees(f) {
            callers[callee as usize].push(n);
        }
    }
    let mut found: Vec<usize> = (0..functions.len()).filter(|&n| waiting[n]).collect();
    while let Some(n) = found.pop() {
        for &caller in &callers[n] {
            if !waiting[caller] {
                waiting[caller] = true;
                found.push(caller);
            }
        }
    }
    let instructions = kernel
        .functions
        .iter_mut()
        .flat_map(|f| &mut f.blocks)
        .flat_map(|b| &mut b.instructions);
    for instruction in instructions {
        if let Action::Call(op) = &mut instruction.action
            && let Callee::Direct(n) = op.callee
        {
            op.may_wait = waiting[n as usize];
        }
    }
}

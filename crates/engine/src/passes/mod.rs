//! Passes: each analyzes or rewrites the KIR of one function.
//!
//! [`PASSES`] lists them in order; each has a file. Register allocation is not one of them: it runs after the passes, on all
//! functions of a kernel together. Nor is liveness: it is an analysis that register allocation uses.

mod control_flow;
mod liveness;
pub mod register_allocation;
mod spin_loops;
mod split_addresses;
#[cfg(test)]
mod tests;
mod uniformity;

use crate::build::CompileError;
use crate::kir::{Function, Kernel, verify};

/// A pass.
pub struct Pass {
    /// Name in dumps.
    pub name: &'static str,
    /// What it does to a function.
    pub run: fn(&mut Function) -> Result<(), CompileError>,
}

/// The passes in order.
pub const PASSES: [Pass; 4] = [
    Pass {
        name: "uniformity",
        run: uniformity::hoist_uniform,
    },
    Pass {
        name: "split_addresses",
        run: split_addresses::split_addresses,
    },
    Pass {
        name: "spin_loops",
        run: spin_loops::mark_spin_loops,
    },
    Pass {
        name: "control_flow",
        run: control_flow::find_reconvergence_points,
    },
];

/// Runs all passes on all functions of a kernel, after the one analysis of the whole kernel, and calls `after` with the name of each pass when it has run. In builds with
/// debug assertions, such as those of the tests, the verifier runs before the first pass and after each pass.
///
/// # Errors
/// The first error of a pass: an instruction that the engine cannot execute.
pub fn run(
    kernel: &mut Kernel,
    mut after: impl FnMut(&'static str, &Kernel),
) -> Result<(), CompileError> {
    let check = |pass, kernel: &Kernel| {
        if cfg!(debug_assertions) {
            verify(kernel, pass);
        }
    };
    check("build", kernel);
    spin_loops::find_waiting_calls(kernel);
    for pass in &PASSES {
        for f in &mut kernel.functions {
            (pass.run)(f)?;
        }
        check(pass.name, kernel);
        after(pass.name, kernel);
    }
    Ok(())
}

/// Removes instructions of a function. `omitted` says for each, in order, whether to.
fn remove(f: &mut Function, omitted: &[bool]) {
    let mut omitted = omitted.iter();
    for block in &mut f.blocks {
        block
            .instructions
            .retain(|_| !omitted.next().copied().unwrap_or(false));
    }
}

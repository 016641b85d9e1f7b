//! The compiler: from a parsed module to the code of one kernel.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use cupyrite_ptx::ir::FuncId;

use crate::build::{self, CompileError, PlacedModule};
use crate::bytecode::Program;
use crate::dump;
use crate::kir::Kernel;
use crate::passes;
use crate::passes::register_allocation::{Allocation, allocate};
use crate::tier::{Interpreter, Tier};

/// Compiles a kernel and every function that it can reach. Writes its KIR to a file if `CUPYRITE_CPU_DUMP` says so.
///
/// # Errors
/// An instruction that the engine does not implement, or a variable that does not fit.
pub fn compile_kernel(placed: &PlacedModule, kernel: FuncId) -> Result<Program, CompileError> {
    let requested = dump::requested().ok().flatten();
    let wanted = requested.as_ref().map(|d| d.point);
    let (kernel, allocation, text) = to_kir(placed, kernel, wanted)?;
    if let (Some(dump), Some(text)) = (requested, text) {
        dump.write(&kernel.functions[0].name, text.as_bytes());
    }
    Interpreter::compile(kernel, &allocation, placed)
}

/// The text of a kernel's KIR after one of [`dump::POINTS`].
///
/// # Errors
/// As for [`compile_kernel`].
pub fn kir_text(placed: &PlacedModule, kernel: FuncId, pass: &str) -> Result<String, CompileError> {
    Ok(to_kir(placed, kernel, Some(pass))?.2.unwrap_or_default())
}

/// The KIR of a kernel after the passes, the locations of its registers, and its text after the pass `wanted`.
pub(crate) fn to_kir(
    placed: &PlacedModule,
    kernel: FuncId,
    wanted: Option<&str>,
) -> Result<(Kernel, Allocation, Option<String>), CompileError> {
    let mut kernel = build::kernel(placed, kernel)?;
    let mut text = (wanted == Some("build")).then(|| kernel.to_string());
    passes::run(&mut kernel, |pass, kernel| {
        if wanted == Some(pass) {
            text = Some(kernel.to_string());
        }
    })?;
    let allocation = allocate(&kernel);
    if wanted == Some("register_allocation") {
        let mut out = kernel.to_string();
        let _ = write!(out, "\n{}", allocation.display(&kernel));
        text = Some(out);
    }
    Ok((kernel, allocation, text))
}

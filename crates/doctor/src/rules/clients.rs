//! Installed packages that load the driver themselves, and do not find the CPU device without `cupyrite run`.

use std::path::Path;

use crate::evidence::Evidence;
use crate::report::{Backend, Fix, Problem, Severity};
use crate::variables;

/// The packages, in pip's spelling.
pub(crate) const CLIENTS: &[&str] = &["numba-cuda", "numba-cuda-mlir", "pycuda"];

/// The rule: on the CPU device, each of [`CLIENTS`] needs `cupyrite run`.
pub(crate) fn without_run(evidence: &Evidence<'_>) -> Option<Problem> {
    let clients = &evidence.python.clients;
    if clients.is_empty()
        || evidence.outcome.probe.backend != Some(Backend::Cpu)
        || runs_under_cupyrite(evidence)
    {
        return None;
    }
    let names: Vec<String> = clients
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let python = evidence.python_command()?;
    Some(Problem {
        code: "client-without-run",
        severity: Severity::Note,
        what: format!(
            "{} is installed, which loads the driver (libcuda.so.1) itself",
            names.join(", ")
        ),
        why: "There is no libcuda.so.1 here. Such packages find the CPU device if Cupyrite starts the program, as do programs \
              in C."
            .to_owned(),
        fix: vec![
            Fix::command(format!("{python} -m cupyrite run program.py")),
            Fix::advice_with_command("or", format!("{python} -m cupyrite run -m pytest")),
        ],
    })
}

/// Whether the loader finds the CPU device as `libcuda.so.1`.
fn runs_under_cupyrite(evidence: &Evidence<'_>) -> bool {
    let Some(path) = variables::value(evidence.variables, "LD_LIBRARY_PATH") else {
        return false;
    };
    std::env::split_paths(path).any(|folder| folder.ends_with(Path::new("cupyrite/lib/cpu")))
}

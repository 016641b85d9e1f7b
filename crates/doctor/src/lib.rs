//! The doctor: reports what is installed, whether kernels can be compiled and run, and how to fix problems.
//!
//! ```no_run
//! use cupyrite_doctor::{Facts, examine};
//!
//! let report = examine(&Facts::default());
//! print!("{report}"); // one screen
//! std::fs::write("report.json", report.to_json())?; // the same for programs
//! std::process::exit(if report.ok { 0 } else { 1 });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Everything is read from files, except for the main test: it loads the driver and NVRTC, and compiles, launches and
//! checks a small kernel. This happens in a child process if this process has only one thread, so that a driver that
//! hangs or a library that crashes becomes a line of the report; see [`Facts::in_process`].
//!
//! This crate searches, judges and renders. How things are found belongs to `cupyrite-pathfinder`, and what the kernel
//! of the main test is launched with to `cupyrite`; facts about a Python interpreter are passed in.

mod evidence;
mod find;
mod isolate;
mod machine;
mod probe;
mod python;
mod render;
mod report;
mod rules;
#[cfg(test)]
mod tests;
mod variables;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cupyrite_pathfinder::{Environment, Finder};

use evidence::Evidence;

pub use render::Style;
pub use report::{
    Backend, Choice, Cupyrite, DeviceInfo, Driver, FORMAT, Fix, Interpreter, Item, ItemState,
    Machine, ModuleOrigin, Package, Problem, Proof, Report, Severity, Step, Variable, Version,
};

/// Facts that the caller provides.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The Python interpreter; `None` in a Rust program, which ignores the Python fields below.
    pub interpreter: Option<Interpreter>,
    /// The folder of the running `cupyrite` package.
    pub package: Option<PathBuf>,
    /// The version of the running `cupyrite` package.
    pub package_version: Option<String>,
    /// `sys.path`, made absolute.
    pub path: Vec<PathBuf>,
    /// The suffixes of module files, in the order in which Python tries them: `.cpython-312-x86_64-linux-gnu.so`,
    /// `.abi3.so`, `.so`, `.py`, `.pyc`.
    pub suffixes: Vec<String>,
    /// Whether the demo follows, which needs NumPy.
    pub demo: bool,
    /// The deadline for the driver, NVRTC and the kernel together.
    pub deadline: Duration,
    /// Whether they run in this process even if a child is possible. They always do if this process has several
    /// threads or has used the driver. A hang then stays ([`Proof::hung_at`]), and a crash terminates this process.
    pub in_process: bool,
}

impl Default for Facts {
    /// Facts of a Rust program, with a deadline of 60 seconds: a machine with eight GPUs may take twenty for the first
    /// initialisation after booting.
    fn default() -> Facts {
        Facts {
            interpreter: None,
            package: None,
            package_version: None,
            path: Vec::new(),
            suffixes: Vec::new(),
            demo: false,
            deadline: Duration::from_secs(60),
            in_process: false,
        }
    }
}

/// Examines this machine and this process. Never fails: problems are in [`Report::problems`].
pub fn examine(facts: &Facts) -> Report {
    // First, before this process does anything else.
    let outcome = isolate::run(facts.deadline, facts.in_process);
    let environment = Environment::current();
    let finder = Finder::new(&environment);
    let variables = std::env::vars_os().collect();
    judge(facts, &finder, &variables, outcome)
}

/// Builds the report; a pure function of its arguments.
fn judge(
    facts: &Facts,
    finder: &Finder<'_>,
    variables: &variables::Variables,
    outcome: isolate::Outcome,
) -> Report {
    let files = finder.files;
    let looked = find::libraries(finder);
    let machine = machine::look(finder.platform, files);
    let imports = python::Imports {
        path: &facts.path,
        suffixes: &facts.suffixes,
        files,
    };
    let python = match facts.interpreter {
        Some(_) => python::look(&imports, facts.package.as_deref()),
        None => python::Python::default(),
    };
    let evidence = Evidence {
        facts,
        variables,
        files,
        machine: &machine,
        outcome: &outcome,
        libraries: &looked,
        headers: find::headers(finder),
        both: find::of_both_majors(finder),
        kernel_module: machine::kernel_module(files),
        python: &python,
    };
    let mut problems = rules::all(&evidence);
    // Problems of equal severity keep the order of the rules.
    problems.sort_by_key(|problem| problem.severity);

    let Evidence {
        headers,
        kernel_module,
        ..
    } = evidence;
    let mut libraries: Vec<Item> = looked.into_iter().map(|looked| looked.item).collect();
    let probe = outcome.probe;
    // NVRTC's own answer is more reliable than its files.
    if let (Some(version), Some(item)) = (
        probe.nvrtc_version,
        libraries.iter_mut().find(|item| item.name == "nvrtc"),
    ) && item.version.is_none()
    {
        item.version = Some(version.to_string());
    }
    let located = libraries
        .iter()
        .find(|item| item.name == "cuda" && item.state == ItemState::Found);
    let driver = Driver {
        path: probe
            .driver_path
            .map(PathBuf::from)
            .or_else(|| located.and_then(|item| item.path.clone())),
        found_via: probe
            .driver_found_via
            .or_else(|| located.and_then(|item| item.found_via.clone())),
        cuda: probe.driver_version,
        kernel_module,
    };
    let errors = problems.iter().any(|p| p.severity == Severity::Error);
    Report {
        format: FORMAT,
        ok: probe.ran && !errors,
        cupyrite: Cupyrite {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            location: facts
                .package
                .clone()
                .or_else(|| std::env::current_exe().ok()),
        },
        interpreter: facts.interpreter.clone(),
        platform: machine,
        device: Choice {
            backend: probe.backend,
            reason: probe.reason,
        },
        driver,
        devices: probe.devices,
        proof: Proof {
            ok: probe.ran,
            milliseconds: outcome.milliseconds,
            nvrtc: probe.nvrtc_version,
            in_process: outcome.in_process,
            hung_at: (outcome.end == isolate::End::Hung).then(|| outcome.stage.words().to_owned()),
            stopped_at: (!probe.ran).then(|| stopped_at(&probe.failures, outcome.stage).to_owned()),
            steps: probe.steps,
        },
        headers,
        tools: find::tools(finder),
        variables: variables::that_matter(variables),
        packages: python.packages,
        modules: python.modules,
        libraries,
        problems,
    }
}

/// The step that kept the kernel from running.
fn stopped_at(failures: &[probe::Failure], last: probe::Stage) -> &'static str {
    failures
        .first()
        .map_or(last, |failure| failure.step)
        .words()
}

/// A path for display and for commands.
fn show(path: &Path) -> String {
    path.display().to_string()
}

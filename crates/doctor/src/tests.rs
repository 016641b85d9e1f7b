//! The doctor on simulated machines: simulated files, variables and probe results.

mod machines;
mod packages;
mod screen;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use cupyrite_pathfinder::files::InMemoryFiles;
use cupyrite_pathfinder::loader::{DynamicLoader, LibraryHandle, OpenMode};
use cupyrite_pathfinder::{Environment, Finder, Platform};

use super::isolate::{End, Outcome};
use super::probe::{Failure, FailureKind, Probe, Stage};
use super::report::{Backend, DeviceInfo, Interpreter, Report, Step, Version};
use super::variables::Variables;
use super::{Facts, judge};

/// A loader that finds nothing: libraries are found only in files.
struct NoLoader;

impl DynamicLoader for NoLoader {
    fn find_loaded(&self, _soname: &str) -> Option<LibraryHandle> {
        None
    }

    fn open(&self, _path: &OsStr, _mode: OpenMode) -> Result<LibraryHandle, String> {
        panic!("the doctor loads nothing outside the probe");
    }

    fn path(&self, _handle: LibraryHandle) -> Option<PathBuf> {
        None
    }

    fn resolve(&self, _soname: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// A machine to examine.
struct Case {
    facts: Facts,
    files: InMemoryFiles,
    variables: Variables,
    outcome: Outcome,
}

const V13_5: Version = Version {
    major: 13,
    minor: 5,
};

/// A machine with a GPU on which everything works, examined from Rust.
fn healthy() -> Case {
    let steps = [Stage::Choose, Stage::Init, Stage::LoadNvrtc, Stage::Compile];
    let probe = Probe {
        backend: Some(Backend::Gpu),
        reason: Some("an NVIDIA driver is installed (/usr/lib/libcuda.so.1)".to_owned()),
        driver_path: Some("/usr/lib/libcuda.so.1".to_owned()),
        driver_found_via: Some("system-search".to_owned()),
        driver_version: Some(V13_5),
        devices: vec![DeviceInfo {
            ordinal: 0,
            name: "NVIDIA H200".to_owned(),
            compute_capability: Version { major: 9, minor: 0 },
            memory: 150_000_000_000,
        }],
        nvrtc_path: Some("/venv/nvidia/cu13/lib/libnvrtc.so.13".to_owned()),
        nvrtc_found_via: Some("site-packages".to_owned()),
        nvrtc_version: Some(V13_5),
        steps: steps
            .iter()
            .map(|stage| Step {
                name: stage.words().to_owned(),
                milliseconds: 1.0,
            })
            .collect(),
        ran: true,
        failures: Vec::new(),
    };
    Case {
        facts: Facts::default(),
        files: InMemoryFiles::new(),
        variables: BTreeMap::new(),
        outcome: Outcome {
            probe,
            stage: Stage::Ptx,
            end: End::Finished,
            milliseconds: 123.0,
            in_process: false,
        },
    }
}

/// The same machine without a driver, on the CPU device.
fn on_cpu() -> Case {
    let mut case = healthy();
    let probe = &mut case.outcome.probe;
    probe.backend = Some(Backend::Cpu);
    probe.reason = Some("no NVIDIA driver is installed".to_owned());
    probe.driver_path = None;
    probe.driver_found_via = None;
    probe.devices[0].name = "CPU: a processor".to_owned();
    case
}

/// An interpreter below `/venv`.
fn python() -> Option<Interpreter> {
    Some(Interpreter {
        implementation: "CPython".to_owned(),
        version: "3.12.3".to_owned(),
        executable: Some("/venv/bin/python".into()),
        prefix: Some("/venv".into()),
    })
}

impl Case {
    fn set(mut self, name: &str, value: &str) -> Case {
        self.variables
            .insert(OsString::from(name), OsString::from(value));
        self
    }

    fn file(mut self, path: &str, bytes: &[u8]) -> Case {
        self.files = self.files.file(path, bytes);
        self
    }

    /// Makes a step fail, and with it the proof, which does not cover the steps after the launch.
    fn fails(mut self, step: Stage, kind: FailureKind, status: Option<u32>, words: &str) -> Case {
        let probe = &mut self.outcome.probe;
        probe.ran = step == Stage::Ptx;
        probe.failures.push(Failure {
            step,
            kind,
            message: words.to_owned(),
            status,
            advice: Vec::new(),
            file: None,
        });
        self
    }

    fn ends(mut self, stage: Stage, end: End) -> Case {
        self.outcome.probe.ran = false;
        self.outcome.stage = stage;
        self.outcome.end = end;
        self
    }

    fn report(&self) -> Report {
        let environment = Environment::default();
        let finder = Finder {
            platform: Platform::CURRENT,
            environment: &environment,
            files: &self.files,
            loader: &NoLoader,
        };
        judge(&self.facts, &finder, &self.variables, self.outcome.clone())
    }
}

/// The codes of a report's problems.
fn codes(report: &Report) -> Vec<&'static str> {
    report.problems.iter().map(|problem| problem.code).collect()
}

/// Every command in a problem's fix.
fn commands(report: &Report, code: &str) -> Vec<String> {
    let problem = report.problem(code).unwrap_or_else(|| {
        panic!("no {code} among {:?}", codes(report));
    });
    let commands = problem.fix.iter().filter_map(|fix| fix.command.clone());
    commands.collect()
}

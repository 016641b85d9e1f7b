//! The rules: each judges the evidence and states the problem and its fix.
//!
//! Every problem code is in this folder, and in docs/doctor.md. This file has the list of the rules, the rule on broken
//! libraries, and what several rules share.

mod clients;
mod driver;
mod ending;
mod kernel;
mod nvrtc;
mod packages;
mod peers;
mod variables;
mod versions;

use crate::evidence::Evidence;
use crate::probe::{Failure, FailureKind, Stage};
use crate::report::{Fix, ItemState, Problem, Severity};
use crate::show;

pub(crate) use clients::CLIENTS;

/// All problems, in rule order.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    found.extend(ending::crash_or_hang(evidence));
    for failure in &evidence.outcome.probe.failures {
        found.extend(failed(evidence, failure));
    }
    found.extend(driver::gpu_without_driver(evidence));
    found.extend(versions::old_driver(evidence));
    found.extend(packages::all(evidence));
    found.extend(versions::two_majors(evidence));
    found.extend(versions::headers(evidence));
    found.extend(clients::without_run(evidence));
    found.extend(variables::all(evidence.variables, evidence.files));
    found.extend(broken_libraries(evidence, &found));
    found
}

fn failed(evidence: &Evidence<'_>, failure: &Failure) -> Option<Problem> {
    if failure.kind == FailureKind::Setting && crate::variables::has_unknown(evidence.variables) {
        // A problem of its own has the cause and the remedy.
        return None;
    }
    Some(match failure.step {
        Stage::Choose => driver::choice_failed(evidence, failure),
        Stage::Init | Stage::Devices | Stage::Context => driver::driver_failed(evidence, failure),
        Stage::LoadNvrtc => nvrtc::nvrtc_failed(evidence, failure),
        Stage::Compile => nvrtc::compile_failed(evidence, failure),
        Stage::Load | Stage::Launch => kernel::kernel_failed(evidence, failure),
        Stage::Ptx => kernel::ptx_failed(evidence, failure),
    })
}

/// Files that exist but cannot be loaded, except those reported already.
fn broken_libraries(evidence: &Evidence<'_>, told: &[Problem]) -> Vec<Problem> {
    let told = |code: &str| told.iter().any(|problem| problem.code == code);
    evidence
        .libraries
        .iter()
        .filter(|looked| looked.item.state == ItemState::Broken)
        .filter(|looked| match looked.item.name.as_str() {
            "nvrtc" => !told("nvrtc-broken"),
            "cuda" => !told("driver-broken"),
            _ => true,
        })
        .map(|looked| {
            let item = &looked.item;
            let path = item.path.as_deref().map_or(String::new(), show);
            problem(
                "library-broken",
                Severity::Warning,
                format!("{} is here, but cannot be loaded: {path}", item.name),
                format!("It is {}.", item.reason.as_deref().unwrap_or("damaged")),
                advised(&looked.advice),
            )
        })
        .collect()
}

fn problem(
    code: &'static str,
    severity: Severity,
    what: impl Into<String>,
    why: impl Into<String>,
    fix: Vec<Fix>,
) -> Problem {
    Problem {
        code,
        severity,
        what: what.into(),
        why: why.into(),
        fix,
    }
}

/// The fix that uses the CPU device instead.
fn on_the_cpu() -> Fix {
    Fix::advice_with_command(
        "or work on the CPU device meanwhile",
        "export CUPYRITE_DEVICE=cpu",
    )
}

/// The lines of an error after the first one, which the problem states itself.
fn rest_of(message: &str) -> String {
    let end = message.find("\nTo fix it:").unwrap_or(message.len());
    let mut lines = message[..end].lines().map(str::trim);
    let first = lines.next().unwrap_or("");
    let rest: Vec<&str> = lines.collect();
    if rest.is_empty() {
        return first.to_owned();
    }
    format!("{first}\n{}", rest.join("\n"))
}

/// The advice of a search: commands and text in lines.
fn advised(lines: &[String]) -> Vec<Fix> {
    let mut fix = Vec::new();
    for line in lines {
        // "pip install A    (for CUDA 12: B)"
        let (line, note) = match line.split_once("    (") {
            Some((line, note)) => (line.trim(), note.trim_end_matches(')').trim()),
            None => (line.trim(), ""),
        };
        let is_command = line.starts_with("pip ") || line.starts_with("conda ");
        if !is_command {
            fix.push(Fix::advice(line));
        } else if fix.is_empty() {
            fix.push(Fix::command(line));
        } else {
            fix.push(Fix::advice_with_command("or", line));
        }
        if let Some((words, package)) = note.split_once(": ") {
            let words = format!("or, {words}");
            fix.push(Fix::advice_with_command(
                words,
                format!("pip install {package}"),
            ));
        }
    }
    fix
}

//! `cargo xtask ci`: what CI checks, the cheap checks first. `.github/workflows/ci.yml` runs these steps on several
//! machines and nothing else; `.ci/run` runs them in one process.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::environment::find_wheel;
use crate::generate::absolute;
use crate::{Error, Run, deny, generate, lint, policy, report, testing};

/// Name, command, its words.
const STEPS: &[(&str, Run, &[&str])] = &[
    ("lint", lint::lint, &[]),
    ("deny", deny::deny, &[]),
    ("generated files", generate::codegen, &["--check"]),
    ("oldest Rust", lint::msrv, &[]),
    ("Rust tests", testing::test, &["--rust"]),
    ("Python tests", testing::test, &["--python"]),
    ("strict ABI", testing::test, &["--strict-abi"]),
    ("installations", testing::installations, &[]),
    ("clients", testing::clients, &[]),
    ("wheel size", policy::wheel_size, &[]),
    ("stubs", lint::stubs, &[]),
    ("interface", lint::interface, &[]),
    ("reference", generate::reference, &[]),
    ("docs", generate::docs, &[]),
    ("site", generate::site, &[]),
];

static ACTIVE: AtomicBool = AtomicBool::new(false);
static GIVEN_WHEEL: OnceLock<PathBuf> = OnceLock::new();

/// Whether `cargo xtask ci` runs: its tests use the CPU device and fail where a network is missing.
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// The wheel of `cupyrite` that another machine has built, beside its stand-ins.
pub fn given_wheel() -> Option<PathBuf> {
    GIVEN_WHEEL.get().cloned()
}

/// `cargo xtask ci [--list | --wheel FILE] [STEP ...]`.
pub fn ci(rest: &[&str]) -> Result<(), Error> {
    let names: Vec<&str> = STEPS.iter().map(|(name, ..)| *name).collect();
    if rest == ["--list"] {
        println!("{}", names.join("\n"));
        return Ok(());
    }
    let (wheel, rest) = match rest {
        ["--wheel", wheel, rest @ ..] => (Some(*wheel), rest),
        rest => (None, rest),
    };
    if let Some(unknown) = rest.iter().find(|name| !names.contains(name)) {
        return Err(format!(
            "unknown step '{unknown}'; expected one of: {}",
            names.join(", ")
        ));
    }
    if let Some(wheel) = wheel {
        let _ = GIVEN_WHEEL.set(find_wheel(&absolute(wheel))?);
    }
    ACTIVE.store(true, Ordering::Relaxed);
    let start = Instant::now();
    for (name, run, words) in STEPS {
        if !rest.is_empty() && !rest.contains(name) {
            continue;
        }
        let begun = Instant::now();
        println!("=== {name}");
        let result = run(words);
        let seconds = begun.elapsed().as_secs();
        result.map_err(|message| format!("{message}\n=== {name} FAILED after {seconds} s"))?;
        println!("=== {name}: ok, {seconds} s");
    }
    for gap in report::gaps() {
        println!("=== not checked: {gap}");
    }
    let seconds = start.elapsed().as_secs();
    println!("=== all checks passed in {seconds} s");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{STEPS, ci};
    use crate::environment::{read, root};

    #[test]
    fn unknown_steps_are_refused() {
        assert!(ci(&["lint", "nonsense"]).is_err());
        assert!(ci(&["--wheel", "no/folder", "lint"]).is_err());
        assert!(ci(&["--list"]).is_ok());
    }

    /// The words of a command line without escapes.
    fn words(line: &str) -> Vec<&str> {
        let quoted = line.split('"').enumerate();
        quoted
            .flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            })
            .collect()
    }

    #[test]
    fn the_workflow_runs_each_step_once_and_no_other_check() {
        let workflow = read(&root().join(".github/workflows/ci.yml")).unwrap();
        let mut run = Vec::new();
        let commands = workflow
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .filter_map(|line| line.split_once("cargo xtask "));
        for (_, command) in commands {
            match words(command)[..] {
                ["wheel"] => {}
                ["ci", "--wheel", "dist", ref steps @ ..] | ["ci", ref steps @ ..] => {
                    run.extend_from_slice(steps);
                }
                _ => panic!("'{command}' is no step of `cargo xtask ci`"),
            }
        }
        let mut steps: Vec<&str> = STEPS.iter().map(|(name, ..)| *name).collect();
        run.sort_unstable();
        steps.sort_unstable();
        assert_eq!(run, steps);
    }
}

//! `cargo xtask ci`: what CI checks, the cheap checks first. `.ci/run` and the public workflows run these steps and
//! nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::{Error, Run, deny, generate, lint, policy, report, testing};

/// Name, command, its words.
const STEPS: &[(&str, Run, &[&str])] = &[
    ("lint", lint::lint, &[]),
    ("deny", deny::deny, &[]),
    ("generated files", generate::codegen, &["--check"]),
    ("tests", testing::test, &[]),
    ("strict ABI", testing::test, &["--strict-abi"]),
    ("installations", testing::installations, &[]),
    ("clients", testing::clients, &[]),
    ("wheel size", policy::wheel_size, &[]),
    ("stubs", lint::stubs, &[]),
    ("interface", lint::interface, &[]),
    ("reference", generate::reference, &[]),
    ("docs", generate::docs, &[]),
    ("site", generate::site, &[]),
    ("listings", lint::listings, &[]),
];

static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether `cargo xtask ci` runs: its tests use the CPU device and fail where a network is missing.
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// `cargo xtask ci [--list] [STEP ...]`.
pub fn ci(rest: &[&str]) -> Result<(), Error> {
    let names: Vec<&str> = STEPS.iter().map(|(name, ..)| *name).collect();
    if rest == ["--list"] {
        println!("{}", names.join("\n"));
        return Ok(());
    }
    if let Some(unknown) = rest.iter().find(|name| !names.contains(name)) {
        return Err(format!(
            "unknown step '{unknown}'; expected one of: {}",
            names.join(", ")
        ));
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
    use super::ci;

    #[test]
    fn unknown_steps_are_refused() {
        assert!(ci(&["lint", "nonsense"]).is_err());
        assert!(ci(&["--list"]).is_ok());
    }
}

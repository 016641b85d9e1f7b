//! `cargo xtask deny`: the rules of deny.toml on dependencies, with cargo-deny.

use std::path::PathBuf;

use crate::environment::{cargo, log, target};
use crate::report::{loud, note_gap, output, quiet, step};
use crate::{Error, ci};

/// Built where no cargo-deny is installed.
const VERSION: &str = "0.20.2";

/// `cargo xtask deny [--advisories]`.
pub fn deny(rest: &[&str]) -> Result<(), Error> {
    let checks: &[&str] = match rest {
        [] => &["bans", "licenses", "sources"],
        ["--advisories"] => &["advisories"],
        _ => return Err("usage: cargo xtask deny [--advisories]".into()),
    };
    let mut command = cargo();
    if let Some(tools) = install()? {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(tools).chain(std::env::split_paths(&path));
        command.env(
            "PATH",
            std::env::join_paths(paths).map_err(|e| e.to_string())?,
        );
    }
    // Not --locked: that is an argument of `cargo metadata`, which `--all-features` would change.
    command.args(["deny", "--workspace", "check", "--hide-inclusion-graph"]);
    loud(command.args(checks))?;
    if ci::is_active() && rest.is_empty() {
        note_gap("advisories (cargo xtask deny --advisories; needs the advisory database)");
    }
    Ok(())
}

/// The folder with a cargo-deny made here, or `None` where one is installed.
fn install() -> Result<Option<PathBuf>, Error> {
    if output(cargo().args(["deny", "--version"])).is_ok() {
        return Ok(None);
    }
    let root = target().join("tools");
    let tools = root.join("bin");
    if !tools.join("cargo-deny").exists() {
        // Unoptimised: it compiles in half the time, and the check takes seconds either way.
        step(
            "cargo-deny: building (the first time takes minutes)",
            || {
                quiet(
                    cargo()
                        .args(["install", "cargo-deny", "--locked", "--debug", "--version"])
                        .arg(VERSION)
                        .arg("--root")
                        .arg(&root)
                        .arg("--target-dir")
                        .arg(root.join("build")),
                    &log("cargo-deny"),
                )?;
                // Only the program is kept: its intermediate files take over a gigabyte.
                let _ = std::fs::remove_dir_all(root.join("build"));
                Ok(String::new())
            },
        )?;
    }
    Ok(Some(tools))
}

//! `cargo xtask ptxas`: the instruction table against NVIDIA's assembler.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::environment::{Env, cargo, log, read, target, write};
use crate::report::{loud, quiet, step};

/// The packages of the assembler: `ptxas` itself, and what its package needs.
const PACKAGES: &[&str] = &["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt"];
const USAGE: &str = "usage: cargo xtask ptxas [--all] [PTXAS]";

/// Compares the parser with the assembler at a given path, at that of `PTXAS`, on `PATH`, or from PyPI.
pub fn ptxas(rest: &[&str]) -> Result<(), Error> {
    let (all, rest) = match rest {
        ["--all", rest @ ..] => (true, rest),
        _ => (false, rest),
    };
    let program = match rest {
        [] => match given().or_else(on_path) {
            Some(program) => program,
            None => installed()?,
        },
        [path] if !path.starts_with('-') => PathBuf::from(path),
        _ => return Err(USAGE.into()),
    };
    if !program.is_file() {
        return Err(format!("{}: no such file", program.display()));
    }
    eprintln!("  with {}", program.display());
    loud(
        cargo()
            .args(["run", "--quiet", "--release", "--package=cupyrite-ptx"])
            .args(["--example=ptxas", "--"])
            .args(all.then_some("--all"))
            .arg(program)
            .arg(target().join("ptxas").join("modules")),
    )
}

/// The value of `PTXAS`.
fn given() -> Option<PathBuf> {
    let value = std::env::var_os("PTXAS")?;
    (!value.is_empty()).then(|| PathBuf::from(value))
}

fn on_path() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join("ptxas"))
        .find(|program| program.is_file())
}

/// Installs the packages of the assembler into a folder of their own below the target folder, unless they are there.
fn installed() -> Result<PathBuf, Error> {
    let folder = target().join("ptxas").join("packages");
    let stamp = folder.join(".packages");
    let wanted = PACKAGES.join("\n");
    if !read(&stamp).is_ok_and(|old| old == wanted) {
        let env = Env::ready()?;
        step("packages from PyPI (ptxas)", || {
            quiet(
                env.command()
                    .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
                    .arg("--target")
                    .arg(&folder)
                    .args(PACKAGES),
                &log("ptxas"),
            )?;
            write(&stamp, &wanted)?;
            Ok(String::new())
        })?;
    }
    find(&folder).ok_or_else(|| format!("{}: no ptxas", folder.display()))
}

/// `nvidia/cu13/bin/ptxas`, for any version of CUDA.
fn find(folder: &Path) -> Option<PathBuf> {
    let toolkits = std::fs::read_dir(folder.join("nvidia")).ok()?;
    let programs = toolkits.flatten().map(|toolkit| toolkit.path().join("bin"));
    programs
        .map(|bin| bin.join("ptxas"))
        .find(|program| program.is_file())
}

//! Commands that write something: generated files, documentation, the wheel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::environment::{Env, cargo, root, target, wheels};
use crate::report::loud;

/// `cargo xtask codegen`: runs the generator, which fetches the pinned headers on its first run.
pub fn codegen(rest: &[&str]) -> Result<(), Error> {
    if !matches!(rest, [] | ["--check"]) {
        return Err("usage: cargo xtask codegen [--check]".into());
    }
    let env = Env::ready()?;
    loud(generator().args(rest).env("PYTHON", env.python()))?;
    // The tables of docs/cpu-device.md, and docs/ptx.md.
    for (package, example) in [
        ("--package=cupyrite-cudart", "--example=unsupported"),
        ("--package=cupyrite-ptx", "--example=manual"),
    ] {
        loud(
            cargo()
                .args(["run", "--quiet", package, example, "--"])
                .args(rest),
        )?;
    }
    Ok(())
}

/// `cargo xtask reference`: the HTML reference of the Python modules.
pub fn reference(rest: &[&str]) -> Result<(), Error> {
    let folder = match rest {
        [] => target().join("reference"),
        [folder] if !folder.starts_with('-') => absolute(folder),
        _ => return Err("usage: cargo xtask reference [FOLDER]".into()),
    };
    let env = Env::ready()?;
    let mut command = generator();
    command
        .arg("--reference")
        .arg(&folder)
        .env("PYTHON", env.python());
    loud(&mut command)?;
    println!("{}", folder.join("index.html").display());
    Ok(())
}

/// `cargo xtask site [--serve]`: the pages of `docs/` and the reference of the installed modules, with MkDocs.
pub fn site(rest: &[&str]) -> Result<(), Error> {
    if !matches!(rest, [] | ["--serve"]) {
        return Err("usage: cargo xtask site [--serve]".into());
    }
    let env = Env::ready()?;
    env.wheel()?;
    env.extra("site")?;
    let mkdocs = |words: &[&str]| {
        let mut command = env.command();
        // MkDocs prints an advertisement of another generator unless told not to.
        command
            .args(["-m", "mkdocs"])
            .args(words)
            .env("NO_MKDOCS_2_WARNING", "1");
        command
    };
    if rest == ["--serve"] {
        return loud(&mut mkdocs(&["serve", "--strict"]));
    }
    let folder = target().join("site");
    // Not with --quiet: it hides warnings from --strict as well, so that dead links would pass.
    loud(mkdocs(&["build", "--strict", "--site-dir"]).arg(&folder))?;
    println!("{}", folder.join("index.html").display());
    Ok(())
}

/// `cargo xtask docs`: the Rust documentation.
pub fn docs(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask docs".into());
    }
    loud(
        cargo()
            .args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"])
            // Links to private items are for readers of the source.
            .env(
                "RUSTDOCFLAGS",
                "-Dwarnings -Arustdoc::private_intra_doc_links",
            ),
    )
}

/// The generator, which runs in the repository's root.
pub fn generator() -> Command {
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--package=cupyrite-codegen",
        "--bin=codegen",
        "--",
    ]);
    command
}

/// `cargo xtask wheel [--manylinux] [--out FOLDER]`.
pub fn wheel(rest: &[&str]) -> Result<(), Error> {
    let (manylinux, rest) = match rest {
        ["--manylinux", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let out = match rest {
        [] => root().join("dist"),
        ["--out", folder] => absolute(folder),
        _ => return Err("usage: cargo xtask wheel [--manylinux] [--out FOLDER]".into()),
    };
    let env = Env::ready()?;
    let wheel = match manylinux {
        true => env.build_manylinux_wheel()?,
        false => env.build_wheel()?,
    };
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    for wheel in wheels(wheel.parent().unwrap_or(&out)) {
        let copy = out.join(wheel.file_name().ok_or("a wheel has no name")?);
        fs::copy(&wheel, &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
        println!("{}", copy.display());
    }
    Ok(())
}

/// `cargo xtask release --dry-run [WORD ...]`: builds, installs and tries what would be published. Words go to
/// `distributions/rehearsal.py`.
pub fn release(rest: &[&str]) -> Result<(), Error> {
    let ["--dry-run", rest @ ..] = rest else {
        return Err("usage: cargo xtask release --dry-run [WORD ...]\n\
             Only the rehearsal is a command; RELEASING.md describes the steps that publish."
            .into());
    };
    let env = Env::ready()?;
    env.extra("release")?;
    env.extra("installations")?;
    loud(
        env.command()
            .arg("distributions/rehearsal.py")
            .arg("--work")
            .arg(target().join("rehearsal"))
            .args(rest)
            .env("PYO3_PYTHON", env.python()),
    )
}

/// `cargo xtask python`.
pub fn python(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask python".into());
    }
    let env = Env::ready()?;
    env.wheel()?;
    println!("{}", env.python().display());
    Ok(())
}

/// `path`, relative to the folder that cargo was called in.
pub fn absolute(path: &str) -> PathBuf {
    std::env::current_dir()
        .unwrap_or_default()
        .join(Path::new(path))
}

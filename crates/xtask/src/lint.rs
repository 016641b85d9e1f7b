//! `cargo xtask lint` and the checks that other tools make: rustfmt, clippy, ruff, stubtest, the interface checker.

use std::process::{Command, Stdio};

use crate::environment::{Env, cargo, root};
use crate::report::{loud, note_gap, output};
use crate::{Error, ci, commits, generate, links, names, policy, testing};

/// Public modules, which have stubs.
const STUBBED_MODULES: &[&str] = &[
    "cuda.bindings.driver",
    "cuda.bindings.runtime",
    "cuda.bindings.nvrtc",
    "cuda.bindings.nvjitlink",
    "cuda.bindings.nvvm",
    "cuda.bindings.nvfatbin",
    "cuda.bindings.nvml",
    "cuda.bindings.cufile",
    "cuda.bindings.cudla",
    "cuda.bindings._v2.driver",
    "cuda.bindings._v2.nvrtc",
    "cuda.bindings._v2.runtime",
    "cuda.core",
    "cuda.pathfinder",
];

/// `cargo xtask lint [--fix | --fast]`.
pub fn lint(rest: &[&str]) -> Result<(), Error> {
    let (fix, clippy) = match rest {
        [] => (false, true),
        ["--fast"] => (false, false),
        ["--fix"] => (true, false),
        _ => return Err("usage: cargo xtask lint [--fix | --fast]".into()),
    };
    let env = Env::ready()?;
    let ruff = |words: &[&str]| loud(env.command().args(["-m", "ruff"]).args(words).arg("."));
    if fix {
        loud(cargo().args(["fmt", "--all"]))?;
        ruff(&["check", "--fix"])?;
        ruff(&["format"])?;
        policy::policy(&[])?;
        return names::check(&root());
    }
    loud(cargo().args(["fmt", "--all", "--check"]))?;
    policy::policy(&[])?;
    commits::commits(&[])?;
    links::check(&root())?;
    names::check(&root())?;
    ruff(&["check"])?;
    ruff(&["format", "--check"])?;
    loud(env.command().arg("tests/check_assertions.py"))?;
    if clippy {
        loud(cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-Dwarnings",
        ]))?;
    }
    Ok(())
}

/// `cargo xtask msrv`: compiles with the toolchain that `rust-version` names.
pub fn msrv(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask msrv".into());
    }
    let manifest = crate::environment::read(&root().join("Cargo.toml"))?;
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .map(|text| text.trim_matches('"'))
        .ok_or("Cargo.toml: no rust-version")?;
    let toolchain = format!("+{version}");
    let rustc = output(
        Command::new("rustc")
            .args([&toolchain, "--version"])
            .current_dir(root()),
    );
    if rustc.is_err() && ci::is_active() {
        note_gap(&format!(
            "compilation with the oldest supported Rust ({version} is not installed)"
        ));
        return Ok(());
    }
    if rustc.is_err() {
        return Err(format!(
            "Rust {version} is not installed; run: rustup toolchain install {version}"
        ));
    }
    // The toolchain's own cargo: the one that runs this would pass its own rustc on.
    loud(
        Command::new("rustup")
            .args(["run", version, "cargo", "check", "--workspace", "--locked"])
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN")
            .current_dir(root()),
    )
}

/// `cargo xtask stubs`.
pub fn stubs(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask stubs".into());
    }
    let env = Env::ready()?;
    env.wheel()?;
    let mut command = env.command();
    command
        .args(["-m", "mypy.stubtest"])
        .args(STUBBED_MODULES)
        .arg("--allowlist")
        .arg(root().join("tests/packaging/stubtest-allowlist.txt"));
    loud(command.env("CUPYRITE_DEVICE", "cpu").stdin(Stdio::null()))
}

/// `cargo xtask interface`: the generator's tables and the installed modules against the manifests.
pub fn interface(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask interface".into());
    }
    let manifests = root().join("api").join("interface");
    for name in ["bindings-13.json", "pathfinder-1.9.json"] {
        loud(
            generate::generator()
                .arg("--facts")
                .arg(manifests.join(name)),
        )?;
    }
    testing::test(&["--python", "tests/packaging/test_interface.py"])
}

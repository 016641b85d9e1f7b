//! The project's own commands: `cargo xtask --help` lists them.
//!
//! Belongs here: the project's Python environment, the order of CI's checks, and checks that no other tool makes.
//! Does not belong here: anything a user of the package needs, and tests or benchmarks themselves. Every command sets up
//! what it needs below the target folder, prints what it runs, and repeats no step whose inputs are unchanged.

mod ci;
mod commits;
mod deny;
mod environment;
mod generate;
mod links;
mod lint;
mod names;
mod policy;
mod ptxas;
mod report;
mod testing;

use std::process::ExitCode;

/// Why a command failed, written for the person at the terminal.
pub type Error = String;

/// What `cargo xtask NAME` runs, with the words after the name.
type Run = fn(&[&str]) -> Result<(), Error>;

/// Name and arguments, one line of help, function.
type Command = (&'static str, &'static str, Run);

/// Commands by subject.
const COMMANDS: &[(&str, &[Command])] = &[
    (
        "Everyday",
        &[
            (
                "demo",
                "set everything up, compile a kernel, run it (CUPYRITE_DEVICE=auto|gpu|cpu)",
                testing::demo,
            ),
            (
                "test [--rust | --python] [WORD ...]",
                "Rust tests, Python tests on the CPU device, or both; words go to the runner",
                testing::test,
            ),
            (
                "test --quick",
                "without optimisation, examples of the documentation and slow Python tests: minutes",
                testing::test,
            ),
            (
                "test --python --wheel FILE [WORD ...]",
                "the Python tests against a wheel that is already built",
                testing::test,
            ),
            (
                "test --strict-abi [--wheel FILE] [WORD ...]",
                "bindings and core tests with CUPYRITE_STRICT_ABI=1",
                testing::test,
            ),
            (
                "test --gpu [--wheel FILE] [WORD ...]",
                "the Python tests on this machine's GPU; with a wheel, builds and fetches nothing",
                testing::test,
            ),
            (
                "installations [--full] [WORD ...]",
                "install Cupyrite beside real clients from PyPI, with pip, uv and a conda solver (minutes)",
                testing::installations,
            ),
            (
                "clients [--full] [--list] [NAME ...]",
                "numba-cuda's tests and the checks of other clients, from PyPI (--full: whole suites, an hour)",
                testing::clients,
            ),
            (
                "judges [NAME PATH] [WORD ...]",
                "CUDA samples and other suites from outside, by path, on the CPU device (no NAME: lists them)",
                testing::judges,
            ),
            (
                "bench [NAME ...]",
                "the benchmarks of benches/ that can run on this machine",
                testing::bench,
            ),
            (
                "bench --against REVISION [WORD ...]",
                "what became slower by more than 5 %: both wheels in turns; words go to benches/against/against.py",
                testing::bench,
            ),
            (
                "fuzz [--seconds N] [TARGET]",
                "fuzz the PTX parser with cargo-fuzz (60 s)",
                testing::fuzz,
            ),
            (
                "ptxas [--all] [PTXAS]",
                "compare the instruction table with NVIDIA's assembler (PTXAS, on PATH or from PyPI; minutes)",
                ptxas::ptxas,
            ),
        ],
    ),
    (
        "Output",
        &[
            (
                "codegen [--check]",
                "regenerate the generated files; --check compares only",
                generate::codegen,
            ),
            (
                "wheel [--manylinux] [--out FOLDER]",
                "build the wheels (into dist/); --manylinux: for glibc 2.28 and newer, linked by zig",
                generate::wheel,
            ),
            (
                "release --dry-run [WORD ...]",
                "build what would be published, install and try it as users do (--only STEP: one of its steps)",
                generate::release,
            ),
            (
                "reference [FOLDER]",
                "write the Python reference as HTML (below target/) and check its links",
                generate::reference,
            ),
            (
                "site [--serve]",
                "build the site of docs/ (below target/); a dead link is an error; --serve: on a local port",
                generate::site,
            ),
            (
                "docs",
                "build the Rust documentation; warnings are errors",
                generate::docs,
            ),
            (
                "python",
                "set up the environment with Cupyrite in it, print its interpreter",
                generate::python,
            ),
        ],
    ),
    (
        "Checks",
        &[
            (
                "ci [--list | --wheel FILE] [STEP ...]",
                "everything CI checks, or the named steps; with a wheel, builds none",
                ci::ci,
            ),
            (
                "lint [--fix | --fast]",
                "rustfmt, policy, commits, links in Markdown, names, ruff, assertions, clippy; --fast: without clippy",
                lint::lint,
            ),
            (
                "policy",
                "rules on files: length, generated headers, folders of one machine, unfinished code",
                policy::policy,
            ),
            (
                "commits [--message FILE]",
                "subjects of commits: 72 characters, imperative, no merges; --message: of one to be made",
                commits::commits,
            ),
            (
                "deny [--advisories]",
                "licences, sources and duplicates of dependencies; advisories need a network",
                deny::deny,
            ),
            (
                "msrv",
                "compile with the oldest supported Rust (rust-version in Cargo.toml)",
                lint::msrv,
            ),
            (
                "stubs",
                "compare the .pyi stubs with the running modules (stubtest)",
                lint::stubs,
            ),
            (
                "interface",
                "compare the modules and the generator's tables with the manifests in api/interface",
                lint::interface,
            ),
            (
                "wheel-size",
                "compare the size of the wheels with their budget",
                policy::wheel_size,
            ),
        ],
    ),
];

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND\n");
    for (subject, commands) in COMMANDS {
        text += &format!("\n{subject}:\n");
        for (words, help, _) in *commands {
            text += &format!("  {words:<38} {help}\n");
        }
    }
    text + "\nThe Python environment is made with PYTHON, or with the newest Python on PATH from 3.11 on."
}

fn find(name: &str) -> Option<Run> {
    let mut commands = COMMANDS.iter().flat_map(|(_, commands)| *commands);
    commands
        .find(|(words, ..)| words.split(' ').next() == Some(name))
        .map(|(.., run)| *run)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["help" | "--help" | "-h"] => {
            println!("{}", usage());
            Ok(())
        }
        [] => Err(usage()),
        [name, rest @ ..] => match find(name) {
            Some(run) => run(rest),
            None => Err(format!("unknown command '{name}'\n{}", usage())),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, find, usage};

    #[test]
    fn every_command_is_found_and_listed() {
        let usage = usage();
        for (words, help, _) in COMMANDS.iter().flat_map(|(_, commands)| *commands) {
            let name = words.split(' ').next().unwrap_or_default();
            assert!(find(name).is_some(), "{name}");
            assert!(usage.contains(words) && usage.contains(help), "{name}");
        }
        assert!(find("nonsense").is_none());
    }
}

//! The project's own commands: `cargo xtask demo`, `test`, `bench`, `codegen`, `reference`, `wheel`.
//!
//! Belongs here: setting up the project's environment and calling the tools in it. Every command does all its
//! set-up itself, below the target folder, says what it does, and does it once. Does not belong here:
//! anything a user of the project needs, and any test or benchmark itself.

mod environment;
mod policy;
mod report;
mod testing;

use std::process::ExitCode;

/// What went wrong, written for the person at the terminal.
pub type Error = String;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo                      compile a kernel, run it, show what happened (CUPYRITE_DEVICE=auto|gpu|cpu)
  test                      Rust tests, then the Python tests on the CPU device
  test --rust | --python    only one half; further words go to the test runner
  test --gpu [--wheel FILE] the Python tests on this machine's GPU; with a wheel nothing is built or fetched
  bench [NAME ...]          the benchmarks of benches/ that can run here (imports, calls, raising, ...)
  codegen [--check]         regenerate the generated files; --check only compares
  reference [FOLDER]        the reference pages of the Python modules as HTML (into the target folder), links checked
  wheel [--out FOLDER]      build the wheel (into dist/)
  ci-helpers WHAT           python: set up, print the interpreter; stubs: stubtest; policy: rules on files;
                            size: the wheel's budgets

The environment is made with PYTHON, or with the newest Python on PATH from 3.11 on.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["demo", rest @ ..] => testing::demo(rest),
        ["test", rest @ ..] => testing::test(rest),
        ["bench", rest @ ..] => testing::bench(rest),
        ["codegen", rest @ ..] => testing::codegen(rest),
        ["reference", rest @ ..] => testing::reference(rest),
        ["wheel", rest @ ..] => testing::wheel(rest),
        ["ci-helpers", rest @ ..] => testing::ci_helpers(rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => Err(USAGE.to_owned()),
        [other, ..] => Err(format!("no command {other:?}\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

//! Commands that run something: the demo, tests, benchmarks, the fuzzer.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::Error;
use crate::environment::{Env, cargo, find_python, find_wheel, log, root, target};
use crate::generate::absolute;
use crate::report::{loud, note_gap, output, quiet, step};

/// Benchmarks that need no second interpreter and no GPU: name and program.
const BENCHMARKS: &[(&str, &str)] = &[
    ("imports", "benches/bindings/imports.py"),
    ("pathfinder", "benches/pathfinder/pathfinder.py"),
    ("calls", "benches/bindings/calls.py"),
    ("raising", "benches/bindings/raising.py"),
    ("kernels", "benches/cpu_device/kernels.py"),
];
/// The quick selection that runs with `CUPYRITE_STRICT_ABI=1`: files that carry the marker.
const STRICT_ABI_TESTS: &[&str] = &["tests/bindings", "tests/core", "-m", "strict_abi"];
/// Makes the CPU device compile every kernel to machine code, if the processor has what that needs.
const COMPILER: (&str, &str) = ("CUPYRITE_CPU_TIER", "2");
/// Processes of pytest, at most: in each of them, kernels on the CPU device use every processor.
const MOST_WORKERS: usize = 8;
/// Seconds that `cargo xtask fuzz` runs.
const FUZZ_SECONDS: &str = "60";

/// `cargo xtask demo`.
pub fn demo(rest: &[&str]) -> Result<(), Error> {
    let env = Env::ready()?;
    env.wheel()?;
    eprintln!();
    loud(env.command().args(["-m", "cupyrite.demo"]).args(rest))
}

/// `cargo xtask test`.
pub fn test(rest: &[&str]) -> Result<(), Error> {
    match rest {
        ["--gpu", rest @ ..] => gpu_tests(rest),
        ["--quick"] => quick_tests(),
        ["--rust", rest @ ..] => rust_tests(rest),
        ["--python", rest @ ..] => python_tests(rest),
        ["--strict-abi", rest @ ..] => strict_abi_tests(rest),
        [] => {
            rust_tests(&[])?;
            python_tests(&[])
        }
        _ => Err(
            "usage: cargo xtask test [--quick | --rust | --python | --strict-abi | --gpu] [--wheel FILE] [WORD ...]"
                .into(),
        ),
    }
}

fn rust_tests(rest: &[&str]) -> Result<(), Error> {
    let env = Env::ready()?;
    loud(rust_runner(&env, &["--workspace"]).args(rest))?;
    if rest.is_empty() {
        loud(rust_runner(&env, &["--package=cupyrite-engine"]).env(COMPILER.0, COMPILER.1))?;
        loud(cargo_in(&env).args(["test", "--workspace", "--doc"]))?;
        extension_tests(&env)?;
    }
    Ok(())
}

/// cargo for tests, which find NVRTC in the environment.
fn cargo_in(env: &Env) -> Command {
    let mut command = cargo();
    command
        .env("PYO3_PYTHON", env.python())
        .env("VIRTUAL_ENV", &env.folder);
    on_cpu_device(command)
}

/// The Rust tests of these packages but those of the documentation.
fn rust_runner(env: &Env, packages: &[&str]) -> Command {
    let nextest = output(cargo().args(["nextest", "--version"])).is_ok();
    let mut command = cargo_in(env);
    command.args(match nextest {
        true => ["nextest", "run", "--no-fail-fast"],
        false => ["test", "--all-targets", "--no-fail-fast"],
    });
    command.args(packages);
    command
}

/// The Rust tests of the extension module. `cargo test` cannot link them: an extension module leaves Python's symbols
/// undefined, so a program needs Python's shared library for them.
fn extension_tests(env: &Env) -> Result<(), Error> {
    let ask = "import sysconfig as s; v = s.get_config_var; print(v('Py_ENABLE_SHARED'), v('LIBDIR'), v('LDVERSION'))";
    let answer = output(env.command().args(["-c", ask]))?;
    let ["1", folder, version] = answer.split_whitespace().collect::<Vec<_>>()[..] else {
        note_gap("Rust tests of the extension module (they need a Python with a shared library)");
        return Ok(());
    };
    let built = output(
        cargo()
            .args([
                "rustc",
                "--package=cupyrite-python",
                "--lib",
                "--profile=test",
            ])
            .args(["--message-format=json-render-diagnostics", "--"])
            .arg(format!("-Clink-arg=-L{folder}"))
            .arg(format!("-Clink-arg=-lpython{version}"))
            .arg(format!("-Clink-arg=-Wl,-rpath,{folder}"))
            .env("PYO3_PYTHON", env.python()),
    )?;
    let program = (built.rsplit_once("\"executable\":\""))
        .and_then(|(_, rest)| rest.split('"').next())
        .ok_or("cargo printed no path of the extension module's tests")?;
    loud(&mut Command::new(program))
}

/// The environment with a wheel in it: the one that `--wheel` names, or one built from the working tree.
fn env_with_wheel<'w, 'a>(rest: &'w [&'a str]) -> Result<(Env, &'w [&'a str]), Error> {
    let env = Env::ready()?;
    match rest {
        ["--wheel", wheel, rest @ ..] => {
            env.install(&find_wheel(&absolute(wheel))?)?;
            Ok((env, rest))
        }
        _ => {
            env.wheel()?;
            Ok((env, rest))
        }
    }
}

fn python_tests(rest: &[&str]) -> Result<(), Error> {
    let (env, rest) = env_with_wheel(rest)?;
    loud(pytest(&env, rest).args(rest))?;
    if rest.is_empty() {
        let mut compiled = pytest(&env, rest);
        loud(compiled.arg("tests/cpu_device").env(COMPILER.0, COMPILER.1))?;
    }
    Ok(())
}

/// pytest on the CPU device: the whole suite on all processors, chosen tests (words) in one process, where `--pdb` works.
fn pytest(env: &Env, rest: &[&str]) -> Command {
    let mut command = on_cpu_device(env.command());
    command.args(["-m", "pytest"]);
    if rest.is_empty() {
        // pytest-xdist's `auto` counts cores, not the threads that run on them.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        command.args(["--numprocesses", &processors.min(MOST_WORKERS).to_string()]);
    }
    command
}

/// What a change breaks first, in about three minutes on two processors once everything is compiled: unoptimised, without the
/// documentation's examples, and without tests that are marked slow.
fn quick_tests() -> Result<(), Error> {
    let env = Env::ready()?;
    loud(&mut rust_runner(&env, &["--workspace"]))?;
    env.debug_wheel()?;
    loud(pytest(&env, &[]).args(["-m", "not slow and not installation"]))
}

/// `cargo xtask installations [--full] [WORD ...]`.
pub fn installations(rest: &[&str]) -> Result<(), Error> {
    let (marker, rest) = match rest {
        ["--full", rest @ ..] => ("installation", rest),
        rest => ("installation and not installation_full", rest),
    };
    let env = Env::ready()?;
    env.wheel()?;
    env.extra("installations")?;
    let wheel = env.build_wheel()?;
    loud(
        on_cpu_device(env.command())
            .args(["-m", "pytest", "-m", marker])
            .arg(root().join("tests/packaging/test_installations.py"))
            .args(rest)
            .env("CUPYRITE_TEST_WHEELS", wheel.parent().unwrap_or(&wheel))
            // Clones are installed with the same compiler output.
            .env("CARGO_TARGET_DIR", target())
            .env("PYO3_PYTHON", env.python()),
    )
}

/// `cargo xtask clients [--full] [NAME ...]`.
pub fn clients(rest: &[&str]) -> Result<(), Error> {
    let runner = root().join("tests/clients/run.py");
    if rest.contains(&"--list") {
        return loud(Command::new(find_python()?.0).arg(runner).arg("--list"));
    }
    let env = Env::ready()?;
    let wheel = env.build_wheel()?;
    loud(
        on_cpu_device(env.command())
            .arg(runner)
            .arg("--wheels")
            .arg(wheel.parent().unwrap_or(&wheel))
            .arg("--environments")
            .arg(target().join("clients"))
            .args(rest),
    )
}

/// `cargo xtask judges`: suites from outside on the CPU device, with Cupyrite's wheels.
pub fn judges(rest: &[&str]) -> Result<(), Error> {
    let runner = root().join("tests/judges/run.py");
    let helps = |word: &&str| matches!(*word, "--help" | "-h");
    if rest.is_empty() || rest.iter().any(helps) {
        return loud(Command::new(find_python()?.0).arg(runner).arg("--help"));
    }
    let env = Env::ready()?;
    let wheel = env.build_wheel()?;
    loud(
        env.command()
            .arg(runner)
            .args(rest)
            .arg("--wheels")
            .arg(wheel.parent().unwrap_or(&wheel))
            .arg("--work")
            .arg(target().join("judges")),
    )
}

/// The tests of bindings and core without the private layouts of CPython and other packages.
fn strict_abi_tests(rest: &[&str]) -> Result<(), Error> {
    let (env, rest) = env_with_wheel(rest)?;
    let mut command = pytest(&env, rest);
    command.env("CUPYRITE_STRICT_ABI", "1");
    if rest.is_empty() {
        command.args(STRICT_ABI_TESTS);
    }
    loud(command.args(rest))
}

fn gpu_tests(rest: &[&str]) -> Result<(), Error> {
    let runner = root().join("tests/run_gpu.py");
    let (mut command, wheel, rest) = match rest {
        // The interpreter brings what the tests need: nothing is built or fetched.
        ["--wheel", wheel, rest @ ..] => (
            Command::new(find_python()?.0),
            find_wheel(&absolute(wheel))?,
            rest,
        ),
        _ => {
            let env = Env::ready()?;
            let wheel = env.build_wheel()?;
            (env.command(), wheel, rest)
        }
    };
    loud(command.arg(runner).arg("--wheel").arg(wheel).args(rest))
}

/// Sets `CUPYRITE_DEVICE=cpu`, unless the caller chose a device. CI chooses the CPU device itself.
fn on_cpu_device(mut command: Command) -> Command {
    if std::env::var_os("CUPYRITE_DEVICE").is_none() {
        command.env("CUPYRITE_DEVICE", "cpu");
    }
    command
}

/// `cargo xtask bench`.
pub fn bench(rest: &[&str]) -> Result<(), Error> {
    if let ["--against", revision, rest @ ..] = rest {
        return bench_against(revision, rest);
    }
    let known: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = rest.iter().find(|name| !known.contains(name)) {
        return Err(format!(
            "unknown benchmark '{unknown}'; expected one of: {}",
            known.join(", ")
        ));
    }
    let env = Env::ready()?;
    env.wheel()?;
    for (name, program) in BENCHMARKS {
        if rest.is_empty() || rest.contains(name) {
            eprintln!();
            loud(env.command().arg(root().join(program)))?;
        }
    }
    Ok(())
}

/// `cargo xtask bench --against REVISION [WORD ...]`: builds the wheel of the revision in a work tree of its own, and
/// compares the calls of both wheels.
fn bench_against(revision: &str, rest: &[&str]) -> Result<(), Error> {
    let git = |words: &[&str]| {
        output(Command::new("git").current_dir(root()).args(words)).map_err(|e| {
            format!(
                "--against '{revision}': expected a commit, tag or branch of this repository\n{e}"
            )
        })
    };
    let commit = git(&[
        "rev-parse",
        "--verify",
        "--quiet",
        &format!("{revision}^{{commit}}"),
    ])?;
    let commit = commit.trim();
    let env = Env::ready()?;
    let folder = target().join("against");
    let wheels = folder.join("wheels").join(commit);
    if find_wheel(&wheels).is_err() {
        let tree = folder.join("tree");
        let shown = tree.to_string_lossy();
        // One tree for all revisions: most of the compiler's output can be used again.
        if tree.is_dir() {
            loud(
                Command::new("git")
                    .current_dir(&tree)
                    .args(["checkout", "--quiet", "--force", "--detach", commit]),
            )?;
        } else {
            git(&["worktree", "prune"])?;
            git(&[
                "worktree", "add", "--quiet", "--force", "--detach", &shown, commit,
            ])?;
        }
        step(&format!("wheel of {revision}: building"), || {
            quiet(
                env.command()
                    .current_dir(&tree)
                    .args(["distributions/assemble.py", "--out"])
                    .arg(&wheels)
                    .args(["--release", "--locked", "--interpreter"])
                    .arg(env.python())
                    .env("PYO3_PYTHON", env.python())
                    .env("CARGO_TARGET_DIR", folder.join("build")),
                &log("against"),
            )?;
            Ok(String::new())
        })?;
    }
    let wheel = env.build_wheel()?;
    loud(
        env.command()
            .arg(root().join("benches/against/against.py"))
            .arg("--wheel")
            .arg(wheel)
            .arg("--before")
            .arg(find_wheel(&wheels)?)
            .args(rest),
    )
}

/// `cargo xtask fuzz [--seconds N] [TARGET]`.
pub fn fuzz(rest: &[&str]) -> Result<(), Error> {
    let (seconds, rest) = match rest {
        ["--seconds", seconds, rest @ ..] => (*seconds, rest),
        _ => (FUZZ_SECONDS, rest),
    };
    let name = match rest {
        [] => "parse",
        [name] if !name.starts_with('-') => name,
        _ => return Err("usage: cargo xtask fuzz [--seconds N] [TARGET]".into()),
    };
    if seconds.parse::<u32>().is_err() {
        return Err(format!("--seconds '{seconds}': expected a whole number"));
    }
    if output(cargo().args(["fuzz", "--version"])).is_err() {
        return Err("cargo-fuzz is not installed; run: cargo install cargo-fuzz --locked".into());
    }
    let crate_folder = root().join("crates").join("ptx");
    // Found inputs are kept beside the seeds, below the target folder.
    let corpus = target().join("fuzz").join("corpus").join(name);
    fs::create_dir_all(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    let mut seeds = Vec::new();
    ptx_files(&crate_folder.join("tests").join("data"), &mut seeds);
    for (index, seed) in seeds.iter().enumerate() {
        let copy = corpus.join(format!("seed-{index}.ptx"));
        fs::copy(seed, &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    }
    loud(
        cargo()
            .args(["fuzz", "run", "--fuzz-dir"])
            .arg(crate_folder.join("fuzz"))
            .arg("--target-dir")
            .arg(target().join("fuzz"))
            .arg(name)
            .arg(&corpus)
            .arg("--")
            .arg(format!(
                "-dict={}",
                crate_folder.join("fuzz").join("ptx.dict").display()
            ))
            .arg(format!("-max_total_time={seconds}"))
            // libFuzzer's instrumentation needs unstable compiler options.
            .env("RUSTC_BOOTSTRAP", "1"),
    )
}

fn ptx_files(folder: &std::path::Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            ptx_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "ptx") {
            files.push(path);
        }
    }
}

//! The commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::env::{Env, cargo, find_python, root, target};
use crate::report::{loud, output};
use crate::{Error, policy};

/// `cargo xtask demo`: everything a newcomer needs, in one command.
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
        ["--rust", rest @ ..] => rust_tests(rest),
        ["--python", rest @ ..] => python_tests(rest),
        [] => {
            rust_tests(&[])?;
            python_tests(&[])
        }
        _ => Err(
            "usage: cargo xtask test [--rust | --python | --gpu [--wheel FILE]] [WORD ...]".into(),
        ),
    }
}

fn rust_tests(rest: &[&str]) -> Result<(), Error> {
    // Tests that compile CUDA C++ find NVRTC in the project's environment.
    let env = Env::ready()?;
    let with_env = |mut command: Command| {
        command
            .env("PYO3_PYTHON", env.python())
            .env("VIRTUAL_ENV", &env.folder);
        if std::env::var_os("CUPYRITE_DEVICE").is_none() {
            command.env("CUPYRITE_DEVICE", "cpu");
        }
        command
    };
    let nextest = output(cargo().args(["nextest", "--version"])).is_ok();
    if !nextest {
        return loud(
            with_env(cargo())
                .args(["test", "--workspace", "--all-targets"])
                .args(rest),
        )
        .and_then(|()| loud(with_env(cargo()).args(["test", "--workspace", "--doc"])))
        .and_then(|()| extension_tests(&env, rest));
    }
    loud(
        with_env(cargo())
            .args(["nextest", "run", "--workspace", "--no-fail-fast"])
            .args(rest),
    )?;
    if rest.is_empty() {
        loud(with_env(cargo()).args(["test", "--workspace", "--doc"]))?;
    }
    extension_tests(&env, rest)
}

/// The Rust tests of the extension module. `cargo test` cannot link them: the symbols of Python that an extension module
/// leaves open have to come from somewhere in a program, here from Python's own shared library.
fn extension_tests(env: &Env, rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Ok(());
    }
    let ask = "import sysconfig as s; v = s.get_config_var; print(v('Py_ENABLE_SHARED'), v('LIBDIR'), v('LDVERSION'))";
    let answer = output(env.command().args(["-c", ask]))?;
    let ["1", folder, version] = answer.split_whitespace().collect::<Vec<_>>()[..] else {
        eprintln!("skipped: the extension module's Rust tests need a Python with a shared library");
        return Ok(());
    };
    let words = [
        "rustc",
        "--package=cupyrite-python",
        "--lib",
        "--profile=test",
    ];
    let built = output(
        cargo()
            .args(words)
            .args(["--message-format=json-render-diagnostics", "--"])
            .arg(format!("-Clink-arg=-L{folder}"))
            .arg(format!("-Clink-arg=-lpython{version}"))
            .arg(format!("-Clink-arg=-Wl,-rpath,{folder}"))
            .env("PYO3_PYTHON", env.python()),
    )?;
    let program = (built.rsplit_once("\"executable\":\""))
        .and_then(|(_, rest)| rest.split('"').next())
        .ok_or("cargo did not tell where the extension module's tests are")?;
    loud(&mut Command::new(program))
}

fn python_tests(rest: &[&str]) -> Result<(), Error> {
    let env = Env::ready()?;
    env.wheel()?;
    let mut command = env.command();
    if std::env::var_os("CUPYRITE_DEVICE").is_none() {
        command.env("CUPYRITE_DEVICE", "cpu");
    }
    loud(command.args(["-m", "pytest"]).args(rest))
}

fn gpu_tests(rest: &[&str]) -> Result<(), Error> {
    let runner = root().join("tests").join("run_gpu.py");
    let (mut command, wheel, rest) = match rest {
        // Nothing is built, nothing fetched: the interpreter brings what the tests need.
        ["--wheel", wheel, rest @ ..] => (Command::new(find_python()?.0), absolute(wheel), rest),
        _ => {
            let env = Env::ready()?;
            let wheel = env.build_wheel()?;
            (env.command(), wheel, rest)
        }
    };
    loud(command.arg(runner).arg("--wheel").arg(wheel).args(rest))
}

/// The benchmarks below `benches/` that need no GPU, in the order in which they run.
const BENCHMARKS: [&str; 5] = [
    "bindings/imports",
    "pathfinder/pathfinder",
    "bindings/calls",
    "bindings/raising",
    "cpu_device/saxpy_cpu",
];

/// `cargo xtask bench`.
pub fn bench(rest: &[&str]) -> Result<(), Error> {
    let short = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
    if let Some(other) = rest
        .iter()
        .find(|name| !BENCHMARKS.iter().any(|path| short(path) == **name))
    {
        return Err(format!(
            "no benchmark {other:?}; there are {}",
            BENCHMARKS.map(short).join(", ")
        ));
    }
    let env = Env::ready()?;
    env.wheel()?;
    for path in BENCHMARKS {
        if rest.is_empty() || rest.contains(&short(path)) {
            eprintln!();
            let script = root().join("benches").join(path).with_extension("py");
            loud(env.command().arg(script))?;
        }
    }
    Ok(())
}

/// `cargo xtask codegen`: the generator, which fetches the pinned headers itself, once.
pub fn codegen(rest: &[&str]) -> Result<(), Error> {
    if !matches!(rest, [] | ["--check"]) {
        return Err("usage: cargo xtask codegen [--check]".into());
    }
    let env = Env::ready()?;
    let mut command = generator();
    command.args(rest).env("PYTHON", env.python());
    loud(&mut command)?;
    // What the CPU device lacks, in the documentation.
    let words = [
        "run",
        "--quiet",
        "--package=cupyrite-cudart",
        "--example=unsupported",
        "--",
    ];
    loud(cargo().args(words).args(rest))
}

/// `cargo xtask reference`: the reference pages, with every link checked.
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

/// The generator, which runs in the repository's root.
fn generator() -> Command {
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--package",
        "cupyrite-codegen",
        "--bin",
        "codegen",
        "--",
    ]);
    command
}

/// `cargo xtask wheel`.
pub fn wheel(rest: &[&str]) -> Result<(), Error> {
    let out = match rest {
        [] => root().join("dist"),
        ["--out", folder] => absolute(folder),
        _ => return Err("usage: cargo xtask wheel [--out FOLDER]".into()),
    };
    let wheel = Env::ready()?.build_wheel()?;
    let name = wheel.file_name().ok_or("the wheel has no name")?;
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let copy = out.join(name);
    fs::copy(&wheel, &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    println!("{}", copy.display());
    Ok(())
}

/// `cargo xtask ci-helpers`.
pub fn ci_helpers(rest: &[&str]) -> Result<(), Error> {
    match rest {
        ["python"] => {
            let env = Env::ready()?;
            env.wheel()?;
            println!("{}", env.python().display());
            Ok(())
        }
        ["stubs"] => {
            let env = Env::ready()?;
            env.wheel()?;
            let modules = [
                "cuda.bindings.driver",
                "cuda.bindings.runtime",
                "cuda.bindings.nvrtc",
                "cuda.bindings.nvjitlink",
                "cuda.bindings.nvvm",
                "cuda.bindings.nvfatbin",
                "cuda.bindings.nvml",
                "cuda.bindings.cufile",
                "cuda.bindings.cudla",
                "cuda.core",
                "cuda.pathfinder",
            ];
            let mut command = env.command();
            command.args(["-m", "mypy.stubtest"]).args(modules);
            let allowed = root().join("tests/packaging/stubtest-allowlist.txt");
            if allowed.exists() {
                command.arg("--allowlist").arg(allowed);
            }
            loud(command.env("CUPYRITE_DEVICE", "cpu").stdin(Stdio::null()))
        }
        ["policy"] => policy::check(&root()),
        ["size"] => policy::sizes(&Env::ready()?),
        _ => Err("usage: cargo xtask ci-helpers python | stubs | policy | size".into()),
    }
}

fn absolute(path: &str) -> PathBuf {
    std::env::current_dir()
        .unwrap_or_default()
        .join(Path::new(path))
}

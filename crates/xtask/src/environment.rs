//! The project's Python environment below the target folder, and the wheel that is built with it.
//!
//! Invariant: each stamp file beside an output holds what the output was made from. A step is skipped only if its stamp
//! matches.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::report::{output, quiet, step};
use crate::{Error, ci};

/// The oldest supported Python, as (major, minor).
const OLDEST: (u32, u32) = (3, 11);
/// Names to look for on `PATH`, the newest first.
const PYTHONS: &[&str] = &[
    "python3.14",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3",
    "python",
];
/// Files and folders that the wheel is built from, relative to the root.
const WHEEL_INPUTS: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "python",
    "crates/pathfinder",
    "crates/sys",
    "crates/ptx/src",
    "crates/ptx/Cargo.toml",
    "crates/cpu",
    "crates/runtime",
    "crates/core/src",
    "crates/core/Cargo.toml",
    "crates/python",
];

/// The repository's root.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .ancestors()
        .nth(2)
        .map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// The target folder, which holds everything that commands write.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        // Cargo resolves a relative path from the folder it was called in.
        Some(dir) => std::env::current_dir().unwrap_or_default().join(dir),
        None => root().join("target"),
    }
}

/// A log file for a step.
pub fn log(name: &str) -> PathBuf {
    target().join("xtask-logs").join(format!("{name}.log"))
}

/// The cargo that started this program, in the repository's root.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    apply_ci_settings(&mut command);
    command
}

/// In CI, tests run on the CPU device whatever the caller's setting, and tests of real wheels fail without a network
/// instead of being skipped.
fn apply_ci_settings(command: &mut Command) {
    if ci::is_active() {
        command
            .env("CUPYRITE_DEVICE", "cpu")
            .env("CUPYRITE_REQUIRE_WHEELS", "1");
    }
}

/// A virtual environment with the packages of `pyproject.toml`.
pub struct Env {
    /// The environment's folder.
    pub folder: PathBuf,
}

impl Env {
    /// Creates the environment if it is missing or broken, and installs the build requirements and the extras `all`,
    /// `test` and `lint` of `pyproject.toml` into it.
    pub fn ready() -> Result<Env, Error> {
        let env = Env {
            folder: target().join("env"),
        };
        // Without PYTHON, a working environment is kept.
        let asked = std::env::var_os("PYTHON").is_some_and(|name| !name.is_empty());
        let origin = env.folder.join(".python");
        let made_with = fs::read_to_string(&origin).unwrap_or_default();
        if !env.works() || (asked && find_python()?.0 != made_with) {
            let (python, version) = find_python()?;
            let shown = format!(
                "environment with Python {}.{} ({python})",
                version.0, version.1
            );
            step(&shown, || {
                let _ = fs::remove_dir_all(&env.folder);
                quiet(
                    Command::new(&python).args(["-m", "venv"]).arg(&env.folder),
                    &log("venv"),
                )
                .map_err(|e| {
                    format!(
                        "{e}\nCould not make a virtual environment. On Debian and Ubuntu the \
                             package python3-venv is needed; or set PYTHON to another interpreter."
                    )
                })?;
                Ok(String::new())
            })?;
        }
        env.packages()?;
        Ok(env)
    }

    /// The interpreter.
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin").join("python")
    }

    /// A command of the interpreter without the caller's Python settings, in the repository's root.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.python());
        command
            .current_dir(root())
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            .env("VIRTUAL_ENV", &self.folder)
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        apply_ci_settings(&mut command);
        command
    }

    fn works(&self) -> bool {
        output(self.command().args(["-c", "import pip"])).is_ok()
    }

    fn packages(&self) -> Result<(), Error> {
        let script = "import tomllib; t = tomllib.load(open('pyproject.toml', 'rb')); \
             e = t['project']['optional-dependencies']; \
             print('\\n'.join(t['build-system']['requires'] + e['all'] + e['test'] + e['lint']))";
        let wanted = output(self.command().args(["-c", script]))?;
        let stamp = self.folder.join(".packages");
        if fs::read_to_string(&stamp).is_ok_and(|old| old == wanted) {
            return Ok(());
        }
        step(
            "packages from PyPI (NVRTC, headers, NumPy, maturin, pytest, ruff)",
            || {
                quiet(
                    self.command()
                        .args(["-m", "pip", "install", "--quiet"])
                        .args(wanted.lines()),
                    &log("pip"),
                )?;
                write(&stamp, &wanted)?;
                Ok(String::new())
            },
        )
    }

    /// Builds and installs the wheel, each only if its inputs changed.
    pub fn wheel(&self) -> Result<(), Error> {
        self.install(&self.build_wheel()?)
    }

    /// Installs a wheel, unless this very file is installed.
    pub fn install(&self, wheel: &Path) -> Result<(), Error> {
        let stamp = self.folder.join(".installed");
        let mark = format!("{}\n{}", wheel.display(), fingerprint(&[wheel.to_owned()]));
        if fs::read_to_string(&stamp).is_ok_and(|old| old == mark) {
            return Ok(());
        }
        step("wheel: installing", || {
            quiet(
                self.command()
                    .args([
                        "-m",
                        "pip",
                        "install",
                        "--quiet",
                        "--no-deps",
                        "--force-reinstall",
                    ])
                    .arg(wheel),
                &log("install"),
            )?;
            write(&stamp, &mark)?;
            Ok(String::new())
        })
    }

    /// Builds the wheel if one of its inputs changed since the last build.
    pub fn build_wheel(&self) -> Result<PathBuf, Error> {
        let folder = target().join("wheels");
        let inputs: Vec<PathBuf> = WHEEL_INPUTS.iter().map(|path| root().join(path)).collect();
        let mark = fingerprint(&inputs).to_string();
        let stamp = folder.join(".inputs");
        if let Some(wheel) = newest_wheel(&folder)
            && fs::read_to_string(&stamp).is_ok_and(|old| old == mark)
        {
            return Ok(wheel);
        }
        step(
            "wheel: building (optimised; the first time takes minutes)",
            || {
                let _ = fs::remove_dir_all(&folder);
                quiet(
                    self.command()
                        .args(["-m", "maturin", "build", "--release", "--locked", "--out"])
                        .arg(&folder)
                        .args(["--interpreter"])
                        .arg(self.python())
                        .env("PYO3_PYTHON", self.python()),
                    &log("wheel"),
                )?;
                let wheel = newest_wheel(&folder).ok_or("maturin wrote no wheel")?;
                write(&stamp, &mark)?;
                let size = fs::metadata(&wheel).map_or(0, |data| data.len());
                Ok(format!("{:.1} MB", size as f64 / 1e6))
            },
        )?;
        newest_wheel(&folder).ok_or_else(|| "maturin wrote no wheel".to_owned())
    }
}

fn newest_wheel(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "whl"))
        .max_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
}

/// The interpreter to create the environment with, and its version.
pub fn find_python() -> Result<(String, (u32, u32)), Error> {
    let script = "import sys, sysconfig; print(*sys.version_info[:2], \
         int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), sys.executable)";
    let asked = std::env::var("PYTHON").ok().filter(|name| !name.is_empty());
    let mut seen = Vec::new();
    let names: Vec<&str> = match &asked {
        Some(name) => vec![name],
        None => PYTHONS.to_vec(),
    };
    for name in names {
        let Ok(text) = output(Command::new(name).args(["-c", script])) else {
            continue;
        };
        let mut words = text.trim().splitn(4, ' ');
        let mut number = || {
            words
                .next()
                .and_then(|word| word.parse::<u32>().ok())
                .unwrap_or(0)
        };
        let (version, free_threaded) = ((number(), number()), number() == 1);
        let path = words.next().unwrap_or(name).to_owned();
        let kind = if free_threaded { ", free-threaded" } else { "" };
        seen.push(format!("{path} ({}.{}{kind})", version.0, version.1));
        if version >= OLDEST && !free_threaded {
            return Ok((path, version));
        }
    }
    let (major, minor) = OLDEST;
    let seen = match (seen.is_empty(), &asked) {
        (false, _) => format!("Found only: {}.", seen.join(", ")),
        (true, Some(name)) => format!("PYTHON='{name}' does not run."),
        (true, None) => "PATH has no Python.".to_owned(),
    };
    Err(format!(
        "Python {major}.{minor} or newer with the GIL is required: the wheel uses the stable ABI. {seen}\n\
         Install one, or name it: PYTHON=/path/to/python3 cargo xtask ..."
    ))
}

/// A hash of names, sizes and modification times of all files below `paths`.
fn fingerprint(paths: &[PathBuf]) -> u64 {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

fn collect(path: &Path, files: &mut Vec<(PathBuf, u64, u128)>) {
    let Ok(data) = fs::metadata(path) else { return };
    if data.is_dir() {
        if path.file_name().is_some_and(|name| name == "__pycache__") {
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            collect(&entry.path(), files);
        }
        return;
    }
    let time = data
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |time| time.as_nanos());
    files.push((path.to_owned(), data.len(), time));
}

/// Reads a file; the error names it.
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes a file; the error names it.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

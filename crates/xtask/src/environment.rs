//! The project's own Python environment below the target folder, and the wheel in it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::Error;
use crate::report::{output, quiet, step};

/// The oldest Python that works, as (major, minor).
const OLDEST: (u32, u32) = (3, 11);
/// Names to try on `PATH`, the newest first.
const PYTHONS: &[&str] = &[
    "python3.14",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3",
    "python",
];
/// What the wheel is made of, below the root.
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

/// The target folder, where everything made here lies.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        // Relative to where cargo was called, as cargo reads it.
        Some(dir) => std::env::current_dir().unwrap_or_default().join(dir),
        None => root().join("target"),
    }
}

/// A log file for a step.
pub fn log(name: &str) -> PathBuf {
    target().join("xtask-logs").join(format!("{name}.log"))
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A Python environment that exists.
pub struct Env {
    /// Its folder.
    pub folder: PathBuf,
}

impl Env {
    /// Makes the environment if need be, with the packages of the extras `all` and `test` and the build
    /// requirements of `pyproject.toml`.
    pub fn ready() -> Result<Env, Error> {
        let env = Env {
            folder: target().join("env"),
        };
        // PYTHON chooses again; without it an environment that works stays.
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

    /// A command of the interpreter that sees none of the caller's Python settings.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.python());
        command
            .current_dir(root())
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            .env("VIRTUAL_ENV", &self.folder)
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        command
    }

    fn works(&self) -> bool {
        output(self.command().args(["-c", "import pip"])).is_ok()
    }

    fn packages(&self) -> Result<(), Error> {
        let script = "import tomllib; t = tomllib.load(open('pyproject.toml', 'rb')); \
             e = t['project']['optional-dependencies']; \
             print('\\n'.join(t['build-system']['requires'] + e['all'] + e['test']))";
        let wanted = output(self.command().args(["-c", script]))?;
        let stamp = self.folder.join(".packages");
        if fs::read_to_string(&stamp).is_ok_and(|old| old == wanted) {
            return Ok(());
        }
        step(
            "packages from PyPI (NVRTC, headers, NumPy, maturin, pytest)",
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

    /// Builds the wheel and installs it, each only if something changed. Returns the wheel.
    pub fn wheel(&self) -> Result<PathBuf, Error> {
        let wheel = self.build_wheel()?;
        let stamp = self.folder.join(".installed");
        let mark = format!(
            "{}\n{}",
            wheel.display(),
            fingerprint(std::slice::from_ref(&wheel))
        );
        if fs::read_to_string(&stamp).is_ok_and(|old| old == mark) {
            return Ok(wheel);
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
                    .arg(&wheel),
                &log("install"),
            )?;
            write(&stamp, &mark)?;
            Ok(String::new())
        })?;
        Ok(wheel)
    }

    /// Builds the wheel if a file it is made of changed since the last time.
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
                let wheel = newest_wheel(&folder).ok_or("maturin made no wheel")?;
                write(&stamp, &mark)?;
                let size = fs::metadata(&wheel).map_or(0, |data| data.len());
                Ok(format!("{:.1} MB", size as f64 / 1e6))
            },
        )?;
        newest_wheel(&folder).ok_or_else(|| "maturin made no wheel".to_owned())
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

/// The interpreter to make the environment with, and its version.
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
        (true, Some(name)) => format!("PYTHON={name} is not an interpreter that runs."),
        (true, None) => "No Python was found on PATH.".to_owned(),
    };
    Err(format!(
        "Python {major}.{minor} or newer is needed (with the GIL: the wheel uses the stable ABI). {seen}\n\
         Install one, or say where it is: PYTHON=/path/to/python3 cargo xtask ..."
    ))
}

/// A number that changes when a file below `paths` does (by name, size and time).
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

/// Writes a file and names it in the error.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

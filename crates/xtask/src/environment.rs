//! The project's Python environment below the target folder, and the wheels that are built with it.
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
/// Files and folders that the wheels are built from, relative to the root.
const WHEEL_INPUTS: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "distributions",
    "docs",
    "python",
    "crates/pathfinder",
    "crates/sys",
    "crates/ptx/src",
    "crates/ptx/Cargo.toml",
    "crates/engine",
    "crates/cpu",
    "crates/cpu-driver",
    "crates/libcuda",
    "crates/libcudart",
    "crates/libcudart12",
    "crates/libnvml",
    "crates/ptxas",
    "crates/runtime",
    "crates/core/src",
    "crates/core/Cargo.toml",
    "crates/doctor/src",
    "crates/doctor/Cargo.toml",
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

    /// Installs an extra of `pyproject.toml` that `ready` does not.
    pub fn extra(&self, name: &str) -> Result<(), Error> {
        let script = "import sys, tomllib; t = tomllib.load(open('pyproject.toml', 'rb')); \
             print('\\n'.join(t['project']['optional-dependencies'][sys.argv[1]]))";
        let wanted = output(self.command().args(["-c", script, name]))?;
        let stamp = self.folder.join(format!(".extra-{name}"));
        if fs::read_to_string(&stamp).is_ok_and(|old| old == wanted) {
            return Ok(());
        }
        step(&format!("packages from PyPI ({name})"), || {
            quiet(
                self.command()
                    .args(["-m", "pip", "install", "--quiet"])
                    .args(wanted.lines()),
                &log(name),
            )?;
            write(&stamp, &wanted)?;
            Ok(String::new())
        })
    }

    /// Builds and installs Cupyrite, each only if its inputs changed.
    pub fn wheel(&self) -> Result<(), Error> {
        self.install(&self.build_wheel()?)
    }

    /// Installs the wheel of `cupyrite` and the stand-ins that it carries, unless this very file is installed.
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
            quiet(
                self.command()
                    .args(["-m", "cupyrite", "stand-in", "--quiet"]),
                &log("stand-in"),
            )?;
            write(&stamp, &mark)?;
            Ok(String::new())
        })
    }

    /// Builds all wheels if one of their inputs changed since the last build. Returns that of `cupyrite`; the
    /// stand-ins lie in the same folder.
    pub fn build_wheel(&self) -> Result<PathBuf, Error> {
        self.build_wheel_in("wheels", &["--release"])
    }

    /// Builds and installs Cupyrite unoptimised, from what the Rust tests are compiled from anyway.
    pub fn debug_wheel(&self) -> Result<(), Error> {
        self.install(&self.build_wheel_in("debug-wheels", &[])?)
    }

    /// The same for every system that the published wheels support, whatever the C library of this machine.
    pub fn build_manylinux_wheel(&self) -> Result<PathBuf, Error> {
        self.extra("release")?;
        self.build_wheel_in("manylinux-wheels", &["--release", "--manylinux"])
    }

    /// Builds the wheels into a folder below the target folder, with further options of `distributions/assemble.py`.
    fn build_wheel_in(&self, name: &str, options: &[&str]) -> Result<PathBuf, Error> {
        if let Some(wheel) = ci::given_wheel() {
            return Ok(wheel);
        }
        let folder = target().join(name);
        let inputs: Vec<PathBuf> = WHEEL_INPUTS.iter().map(|path| root().join(path)).collect();
        let mark = fingerprint(&inputs).to_string();
        let stamp = folder.join(".inputs");
        if let Ok(wheel) = find_wheel(&folder)
            && fs::read_to_string(&stamp).is_ok_and(|old| old == mark)
        {
            return Ok(wheel);
        }
        step("wheels: building (the first time takes minutes)", || {
            let _ = fs::remove_dir_all(&folder);
            quiet(
                self.command()
                    .args(["distributions/assemble.py", "--out"])
                    .arg(&folder)
                    .args(options)
                    .args(["--locked", "--interpreter"])
                    .arg(self.python())
                    .env("PYO3_PYTHON", self.python()),
                &log(name),
            )?;
            let wheel = find_wheel(&folder)?;
            write(&stamp, &mark)?;
            let size = fs::metadata(&wheel).map_or(0, |data| data.len());
            Ok(format!("{:.1} MB", size as f64 / 1e6))
        })?;
        find_wheel(&folder)
    }
}

/// The wheels in a folder.
pub fn wheels(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "whl"))
        .collect();
    found.sort();
    found
}

/// The wheel of `cupyrite`: `path` itself, or the only one in the folder `path`.
pub fn find_wheel(path: &Path) -> Result<PathBuf, Error> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("cupyrite-")
    };
    let found: Vec<PathBuf> = match path.is_dir() {
        true => wheels(path).into_iter().filter(is_ours).collect(),
        false => vec![path.to_owned()],
    };
    match found.as_slice() {
        [wheel] if is_ours(wheel) && wheel.is_file() => Ok(wheel.clone()),
        [] | [_] => Err(format!(
            "{}: expected cupyrite-*.whl, or a folder with it",
            path.display()
        )),
        _ => Err(format!(
            "{}: has {} wheels of cupyrite; name one of them",
            path.display(),
            found.len()
        )),
    }
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

#[cfg(test)]
mod tests {
    use super::{find_wheel, target, wheels};
    use std::fs;

    #[test]
    fn the_wheel_of_cupyrite_is_found_among_the_stand_ins() {
        let folder = target().join("xtask-tests").join("wheels");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        assert!(find_wheel(&folder).is_err());
        for name in [
            "cuda_core-1-py3-none-any.whl",
            "cupyrite-1-a.whl",
            "notes.txt",
        ] {
            fs::write(folder.join(name), "").unwrap();
        }
        let wheel = folder.join("cupyrite-1-a.whl");
        assert_eq!(find_wheel(&folder), Ok(wheel.clone()));
        assert_eq!(find_wheel(&wheel), Ok(wheel));
        assert!(find_wheel(&folder.join("cuda_core-1-py3-none-any.whl")).is_err());
        assert_eq!(wheels(&folder).len(), 2);
        fs::write(folder.join("cupyrite-2-a.whl"), "").unwrap();
        assert!(find_wheel(&folder).unwrap_err().contains("2 wheels"));
    }
}

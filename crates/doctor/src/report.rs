//! The report as data. The field names are those of the JSON, and stable.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

/// The version of the JSON format: raised when a field is removed or changes its meaning, not when one is added.
pub const FORMAT: u32 = 1;

/// The result of an examination. `Display` renders it as text, [`Report::to_json`] as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Whether kernels run: one was compiled, loaded and launched with the correct result, and there is no problem of
    /// severity [`Severity::Error`].
    pub ok: bool,
    /// Cupyrite itself.
    pub cupyrite: Cupyrite,
    /// The Python interpreter; `None` in a Rust program.
    pub interpreter: Option<Interpreter>,
    /// The machine.
    pub platform: Machine,
    /// The driver that serves this process.
    pub device: Choice,
    /// The NVIDIA driver.
    pub driver: Driver,
    /// The devices, by ordinal; the probe uses the first one.
    pub devices: Vec<DeviceInfo>,
    /// Whether a kernel could be run.
    pub proof: Proof,
    /// Every library in the table.
    pub libraries: Vec<Item>,
    /// Every set of headers in the table.
    pub headers: Vec<Item>,
    /// Every command-line tool in the table.
    pub tools: Vec<Item>,
    /// Relevant environment variables that are set, by name.
    pub variables: Vec<Variable>,
    /// Relevant installed packages, in module path order.
    pub packages: Vec<Package>,
    /// The file that Python imports for each module of Cupyrite; empty in a Rust program.
    pub modules: Vec<ModuleOrigin>,
    /// The problems, the most severe first.
    pub problems: Vec<Problem>,
}

impl Report {
    /// The report as indented JSON. Invalid UTF-8 in paths and values is replaced by U+FFFD.
    pub fn to_json(&self) -> String {
        // Cannot fail: every key is a string and every path is written lossily.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The problem with this code, if there is one.
    pub fn problem(&self, code: &str) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.code == code)
    }
}

/// Cupyrite itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cupyrite {
    /// Its version.
    pub version: String,
    /// The folder of the Python package, or the program that contains the Rust crate.
    #[serde(serialize_with = "optional_path")]
    pub location: Option<PathBuf>,
}

/// A Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interpreter {
    /// Such as `CPython`.
    pub implementation: String,
    /// Such as `3.12.3`.
    pub version: String,
    /// The executable; `None` if an embedding program does not set it.
    #[serde(serialize_with = "optional_path")]
    pub executable: Option<PathBuf>,
    /// The root of its environment.
    #[serde(serialize_with = "optional_path")]
    pub prefix: Option<PathBuf>,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Such as `Linux on x86-64`.
    pub name: String,
    /// Windows Subsystem for Linux.
    pub wsl: bool,
    /// Whether this seems to be a container.
    pub container: bool,
    /// NVIDIA's display controllers on the PCI bus, such as `0000:01:00.0`. A container sees those of its host.
    pub pci_gpus: Vec<String>,
    /// NVIDIA's device files: `/dev/nvidia0`, `/dev/nvidiactl`, ...
    pub device_files: Vec<String>,
}

/// The driver that serves this process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// `gpu` or `cpu`; `None` if neither could be selected.
    pub backend: Option<Backend>,
    /// The reason, a sentence without a full stop.
    pub reason: Option<String>,
}

/// The backend of driver calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// NVIDIA's driver.
    Gpu,
    /// The CPU device.
    Cpu,
}

/// The NVIDIA driver.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Driver {
    /// The path of its library: as loaded, else as found.
    #[serde(serialize_with = "optional_path")]
    pub path: Option<PathBuf>,
    /// The step of the search that found it, in the words of `cuda.pathfinder`.
    pub found_via: Option<String>,
    /// The newest CUDA version that it supports, from `cuDriverGetVersion`. With the CPU device, that device's
    /// version.
    pub cuda: Option<Version>,
    /// The kernel module's own version, from `/proc/driver/nvidia/version`.
    pub kernel_module: Option<String>,
}

/// A CUDA version. In JSON: `"13.5"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Version {
    /// The number before the point.
    pub major: u32,
    /// The number after the point.
    pub minor: u32,
}

impl Version {
    /// From NVIDIA's number, 1000 × major + 10 × minor.
    pub fn from_number(number: u32) -> Version {
        Version {
            major: number / 1000,
            minor: number % 1000 / 10,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl std::str::FromStr for Version {
    type Err = String;

    /// Reads `13.5` and `13.5.37`.
    fn from_str(text: &str) -> Result<Version, String> {
        let mut numbers = text.trim().splitn(3, '.').map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Version { major, minor }),
            _ => Err(format!("{text:?} is no version such as 13.5")),
        }
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        text.parse()
    }
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The ordinal, counted from 0.
    pub ordinal: usize,
    /// The name; that of the CPU device begins with `CPU`.
    pub name: String,
    /// Such as `9.0`.
    pub compute_capability: Version,
    /// Bytes.
    pub memory: u64,
}

/// Whether a kernel could be compiled, loaded and launched, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Whether it succeeded with the correct result.
    pub ok: bool,
    /// Total duration, from the selection of the device on.
    pub milliseconds: f64,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The step that failed, described.
    pub stopped_at: Option<String>,
    /// NVRTC's version, from `nvrtcVersion`.
    pub nvrtc: Option<Version>,
    /// The step at which the deadline expired.
    pub hung_at: Option<String>,
    /// Whether it ran in this process and not in a child ([`super::Facts::in_process`]). A hang there cannot be
    /// stopped: a program should then exit through `_exit`.
    pub in_process: bool,
}

/// One step of the probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// A description.
    pub name: String,
    /// Its duration.
    pub milliseconds: f64,
}

/// A library, a set of headers or a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its name: `nvrtc`, `nvcc`.
    pub name: String,
    /// Whether it was found.
    pub state: ItemState,
    /// Its path: the file of a library or tool, the folder of headers.
    #[serde(serialize_with = "optional_path")]
    pub path: Option<PathBuf>,
    /// The step of the search that found it, in the words of `cuda.pathfinder`.
    pub found_via: Option<String>,
    /// Its version, if the files contain it.
    pub version: Option<String>,
    /// Its CUDA major, if the name contains it.
    pub major: Option<u32>,
    /// For [`ItemState::Broken`]: the problem.
    pub reason: Option<String>,
}

/// Whether an item was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemState {
    /// Found.
    Found,
    /// Not found in any searched location.
    Missing,
    /// Found, but unusable.
    Broken,
    /// NVIDIA does not make it for this platform.
    Unavailable,
}

/// An environment variable that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// An installed Python package.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Package {
    /// Its name, as pip writes it: `cuda-bindings`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The folder that it is installed in.
    #[serde(serialize_with = "path")]
    pub location: PathBuf,
    /// Number of its files that are missing or overwritten by another package; `None` without a readable list.
    pub damaged: Option<usize>,
    /// Whether it belongs to Cupyrite: `cupyrite`, or a stand-in with the name of one of NVIDIA's packages.
    pub ours: bool,
}

/// The file that Python imports for a module.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModuleOrigin {
    /// Its full name: `cuda.bindings.driver`.
    pub module: String,
    /// The file that would be imported; `None` if no file matches.
    #[serde(serialize_with = "optional_path")]
    pub file: Option<PathBuf>,
    /// The package that the file belongs to by its content: `cupyrite`, `cuda-bindings`, ...; `None` if no package's
    /// list contains it.
    pub package: Option<String>,
    /// Whether it is Cupyrite's own file, unmodified.
    pub ours: bool,
    /// Whether it is a file of one of NVIDIA's packages.
    pub peer: bool,
}

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Kernels cannot run, or another package's modules are imported.
    Error,
    /// Kernels run; something else does not, or may surprise.
    Warning,
    /// For information.
    Note,
}

/// A problem and its fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable name: `nvrtc-missing`. All of them are in docs/doctor.md.
    pub code: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The problem, a sentence without a full stop.
    pub what: String,
    /// The evidence and the consequences.
    pub why: String,
    /// The fix, in steps. A step belongs to the preceding one, unless its text begins with "or".
    pub fix: Vec<Fix>,
}

/// One step of a fix: text, a shell command, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to do, or the purpose of the command; may be empty if there is a command.
    pub words: String,
    /// The shell command.
    pub command: Option<String>,
}

impl Fix {
    /// A command without text.
    pub fn command(command: impl Into<String>) -> Fix {
        Fix::advice_with_command("", command)
    }

    /// Text without a command.
    pub fn advice(words: impl Into<String>) -> Fix {
        Fix {
            words: words.into(),
            command: None,
        }
    }

    /// A command and its purpose.
    pub fn advice_with_command(words: impl Into<String>, command: impl Into<String>) -> Fix {
        Fix {
            words: words.into(),
            command: Some(command.into()),
        }
    }
}

fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}

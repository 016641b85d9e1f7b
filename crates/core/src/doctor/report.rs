//! What an examination found, as data. The names of the fields are those of the JSON, and stay.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

/// The version of the JSON's fields: raised when one is taken away or changes its meaning, not when one is added.
pub const FORMAT: u32 = 1;

/// Everything an examination found. `Display` is the screen, [`Report::to_json`] the same for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Whether the main job can run: a kernel was compiled, loaded and launched, its result was right, and no
    /// problem of severity [`Severity::Error`] was found.
    pub ok: bool,
    /// Cupyrite itself.
    pub cupyrite: Cupyrite,
    /// The Python interpreter; `None` in a Rust program.
    pub interpreter: Option<Interpreter>,
    /// The machine.
    pub platform: Machine,
    /// Where driver calls go.
    pub device: Choice,
    /// The NVIDIA driver.
    pub driver: Driver,
    /// The devices, in the order of their ordinals; the first one is used for the proof.
    pub devices: Vec<DeviceInfo>,
    /// Whether a kernel could be run.
    pub proof: Proof,
    /// Every library in the table.
    pub libraries: Vec<Item>,
    /// Every set of headers in the table.
    pub headers: Vec<Item>,
    /// Every command-line tool in the table.
    pub tools: Vec<Item>,
    /// Environment variables that matter and are set, by name.
    pub variables: Vec<Variable>,
    /// Installed packages that matter, in the order of the module path.
    pub packages: Vec<Package>,
    /// Which file Python takes for each module of Cupyrite; empty in a Rust program.
    pub modules: Vec<ModuleOrigin>,
    /// What is wrong, the worst first.
    pub problems: Vec<Problem>,
}

impl Report {
    /// The report as JSON on several lines. Paths and values that are not UTF-8 have U+FFFD in them.
    pub fn to_json(&self) -> String {
        // Cannot fail: every key is a string and every path is written lossily.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The problem with this code, if it was found.
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
    /// The program; `None` where an embedding program does not say.
    #[serde(serialize_with = "optional_path")]
    pub executable: Option<PathBuf>,
    /// The root of the environment that it serves.
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
    /// Whether this looks like the inside of a container.
    pub container: bool,
    /// NVIDIA's display controllers on the PCI bus, such as `0000:01:00.0`. A container sees those of its host.
    pub pci_gpus: Vec<String>,
    /// NVIDIA's device files: `/dev/nvidia0`, `/dev/nvidiactl`, ...
    pub device_files: Vec<String>,
}

/// Where driver calls go.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// `gpu` or `cpu`; `None` where nothing could be chosen.
    pub backend: Option<Backend>,
    /// Why, as a sentence without its full stop.
    pub reason: Option<String>,
}

/// Who serves driver calls.
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
    /// Its library, where it was loaded; else where it would be found.
    #[serde(serialize_with = "optional_path")]
    pub path: Option<PathBuf>,
    /// The step of the search that found it, in the words of `cuda.pathfinder`.
    pub found_via: Option<String>,
    /// The newest CUDA version that it speaks, from `cuDriverGetVersion`. That of the CPU device where it serves.
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
    /// Counted from 0.
    pub ordinal: usize,
    /// That of the CPU device begins with `CPU`.
    pub name: String,
    /// Such as `9.0`.
    pub compute_capability: Version,
    /// Bytes.
    pub memory: u64,
}

/// Whether a kernel could be compiled, loaded and launched, and what that took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Whether it could, with the right result.
    pub ok: bool,
    /// All of it together, from the choice of the device on.
    pub milliseconds: f64,
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// The step that kept the kernel from running, in words.
    pub stopped_at: Option<String>,
    /// NVRTC's version, from `nvrtcVersion`.
    pub nvrtc: Option<Version>,
    /// The step at which the driver, NVRTC or the kernel gave no answer within the deadline.
    pub hung_at: Option<String>,
    /// Whether it ran in this process and not in a child ([`super::Facts::in_process`]). What hangs there cannot be
    /// stopped: a program should then leave through `_exit`.
    pub in_process: bool,
}

/// One step of the proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What was done, in words.
    pub name: String,
    /// What it took.
    pub milliseconds: f64,
}

/// One thing of the tables that was looked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its name: `nvrtc`, `nvcc`.
    pub name: String,
    /// Whether it is there.
    pub state: State,
    /// Where: a library's or a tool's file, the headers' folder.
    #[serde(serialize_with = "optional_path")]
    pub path: Option<PathBuf>,
    /// The step of the search that found it, in the words of `cuda.pathfinder`.
    pub found_via: Option<String>,
    /// Its version, as far as the files tell.
    pub version: Option<String>,
    /// The CUDA major that it belongs to, where its name tells.
    pub major: Option<u32>,
    /// For [`State::Broken`]: what is wrong with it.
    pub reason: Option<String>,
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is.
    Found,
    /// It lies in none of the places that are searched.
    Missing,
    /// It is there and cannot be used.
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
    /// How many of its files are not there, or hold what another package wrote. `None` without a readable list.
    pub damaged: Option<usize>,
}

/// Which file Python takes for a module.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModuleOrigin {
    /// Its full name: `cuda.bindings.driver`.
    pub module: String,
    /// The file that would be imported; `None` if there is none.
    #[serde(serialize_with = "optional_path")]
    pub file: Option<PathBuf>,
    /// The package that the file belongs to by its contents: `cupyrite`, `cuda-bindings`, ...; `None` if no
    /// package's list tells.
    pub package: Option<String>,
    /// Whether that is Cupyrite's own file, as it was installed.
    pub ours: bool,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The main job cannot run, or what runs is not Cupyrite.
    Error,
    /// The main job can run; something else cannot, or will surprise.
    Warning,
    /// Worth knowing.
    Note,
}

/// Something wrong, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable name: `nvrtc-missing`. All of them are in docs/doctor.md.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in a sentence without its full stop.
    pub what: String,
    /// What shows it and what follows from it.
    pub why: String,
    /// What would fix it: the way to take first. What follows belongs to it, or its words begin with "or".
    pub fix: Vec<Fix>,
}

/// One step of a fix: words, a command for the shell, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to do, or what the command is for; may be empty where there is a command.
    pub words: String,
    /// For the shell.
    pub command: Option<String>,
}

impl Fix {
    /// A command that needs no words.
    pub fn command(command: impl Into<String>) -> Fix {
        Fix::advice_with_command("", command)
    }

    /// Words without a command.
    pub fn advice(words: impl Into<String>) -> Fix {
        Fix {
            words: words.into(),
            command: None,
        }
    }

    /// A command and what it is for.
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

//! Problems of the main test: the driver, NVRTC, and the kernel.

use cupyrite_pathfinder::files::FileSystem;
use cupyrite_pathfinder::table;
use cupyrite_sys::driver::CUresult;

use super::clients;
use super::find::Looked;
use super::isolate::{End, Outcome};
use super::machine;
use super::mismatches;
use super::probe::{Failure, FailureKind, Stage};
use super::python::Python;
use super::report::{Backend, Fix, Item, Machine, Problem, Severity, State};
use super::variables::{self, Variables};
use super::{Facts, show};

/// The evidence that the rules judge.
pub(crate) struct Evidence<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) variables: &'a Variables,
    pub(crate) files: &'a dyn FileSystem,
    pub(crate) machine: &'a Machine,
    pub(crate) outcome: &'a Outcome,
    pub(crate) libraries: &'a [Looked],
    pub(crate) headers: Vec<Item>,
    pub(crate) both: Vec<[Item; 2]>,
    pub(crate) kernel_module: Option<String>,
    pub(crate) python: &'a Python,
}

impl Evidence<'_> {
    /// The examined interpreter as the first word of a command; `None` from Rust.
    pub(crate) fn python_command(&self) -> Option<String> {
        let python = self.facts.interpreter.as_ref()?;
        let active = variables::value(self.variables, "VIRTUAL_ENV");
        Some(match (&python.executable, &python.prefix) {
            // The environment is active: its programs come first on PATH.
            (_, Some(prefix)) if active == Some(prefix.as_os_str()) => "python".to_owned(),
            (Some(executable), _) => quoted(&show(executable)),
            (None, _) => "python".to_owned(),
        })
    }

    /// The command that installs `words` for the examined interpreter: with pip, or with uv where pip is missing.
    pub(crate) fn install(&self, words: &str) -> String {
        match self.python_command() {
            None => format!("pip install {words}"),
            Some(python) if self.python.without_pip => {
                format!("uv pip install --python {python} {words}")
            }
            Some(python) => format!("{python} -m pip install {words}"),
        }
    }

    /// The command that uninstalls `names` from the examined interpreter's environment.
    pub(crate) fn uninstall(&self, names: &str) -> String {
        match self.python_command() {
            None => format!("pip uninstall -y {names}"),
            Some(python) if self.python.without_pip => {
                format!("uv pip uninstall --python {python} {names}")
            }
            Some(python) => format!("{python} -m pip uninstall -y {names}"),
        }
    }

    pub(crate) fn on_gpu(&self) -> bool {
        self.outcome.probe.backend == Some(Backend::Gpu)
    }

    fn located(&self, name: &str) -> Option<&Item> {
        let mut items = self.libraries.iter().map(|looked| &looked.item);
        items.find(|item| item.name == name)
    }

    /// Whether there is evidence of an NVIDIA GPU.
    fn has_gpu(&self) -> bool {
        let machine = self.machine;
        !machine.pci_gpus.is_empty()
            || machine
                .device_files
                .iter()
                .any(|name| is_gpu_file(name.as_str()))
    }

    /// A description of the evidence of an NVIDIA GPU.
    fn gpu_signs(&self) -> String {
        let machine = self.machine;
        let mut signs = Vec::new();
        if !machine.pci_gpus.is_empty() {
            signs.push(format!("PCI device {}", machine.pci_gpus.join(", ")));
        }
        let files: Vec<&str> = machine
            .device_files
            .iter()
            .map(String::as_str)
            .filter(|name| is_gpu_file(name))
            .collect();
        if !files.is_empty() {
            signs.push(files.join(", "));
        }
        signs.join("; ")
    }
}

/// `/dev/nvidia0`, not `/dev/nvidiactl`.
fn is_gpu_file(name: &str) -> bool {
    name.strip_prefix("/dev/nvidia")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// All problems, in rule order.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    found.extend(ended(evidence));
    for failure in &evidence.outcome.probe.failures {
        found.extend(failed(evidence, failure));
    }
    found.extend(gpu_without_driver(evidence));
    found.extend(mismatches::all(evidence));
    found.extend(clients::without_run(evidence));
    found.extend(variables::problems(evidence.variables, evidence.files));
    found.extend(broken_libraries(evidence, &found));
    found
}

fn problem(
    code: &'static str,
    severity: Severity,
    what: impl Into<String>,
    why: impl Into<String>,
    fix: Vec<Fix>,
) -> Problem {
    Problem {
        code,
        severity,
        what: what.into(),
        why: why.into(),
        fix,
    }
}

/// The fix that uses the CPU device instead.
fn on_the_cpu() -> Fix {
    Fix::advice_with_command(
        "or work on the CPU device meanwhile",
        "export CUPYRITE_DEVICE=cpu",
    )
}

/// A hang or a crash.
fn ended(evidence: &Evidence<'_>) -> Option<Problem> {
    let outcome = evidence.outcome;
    let words = outcome.stage.words();
    let library = match outcome.stage {
        Stage::LoadNvrtc | Stage::Compile => "nvrtc",
        _ => "cuda",
    };
    let path = evidence
        .located(library)
        .and_then(|item| item.path.as_deref())
        .map(show);
    let on_cpu = outcome.probe.backend == Some(Backend::Cpu);
    let mut fix = match library {
        "nvrtc" => reinstall_nvrtc(evidence),
        _ if on_cpu => vec![Fix::advice(
            "please report this: the CPU device is part of Cupyrite",
        )],
        _ => vec![
            Fix::advice_with_command(
                "see what the kernel module says",
                "sudo dmesg | grep -iE 'nvrm|xid'",
            ),
            Fix::advice(
                "restart the machine, or the container; if that does not help, reinstall the NVIDIA driver",
            ),
            on_the_cpu(),
        ],
    };
    match &outcome.end {
        End::Finished => None,
        End::Hung => {
            let seconds = evidence.facts.deadline.as_secs_f64();
            let mut why = match library {
                "nvrtc" => "NVRTC gave no answer; a slow network file system could be the reason.",
                _ if on_cpu => "The CPU device gave no answer.",
                _ => "The NVIDIA driver gave no answer; it usually waits for its kernel module or for the GPU.",
            }
            .to_owned();
            why.push_str(" A longer wait: --deadline SECONDS.");
            if !outcome.in_process && library == "cuda" && !on_cpu {
                fix.insert(
                    0,
                    Fix::advice_with_command("see whether it hangs for others too", "nvidia-smi"),
                );
            }
            Some(problem(
                "hang",
                Severity::Error,
                format!("no answer within {seconds} s: {words}"),
                why,
                fix,
            ))
        }
        End::Crashed { how, .. } if how == "SIGINT" => Some(problem(
            "interrupted",
            Severity::Error,
            format!("interrupted: {words}"),
            "The examination is not complete.",
            vec![Fix::advice("run it again")],
        )),
        End::Crashed { how, said } => {
            let mut why = match &path {
                Some(path) if !on_cpu || library == "nvrtc" => {
                    format!(
                        "The library in use is {path}. It is damaged, or does not fit this machine."
                    )
                }
                _ => "A library in use is damaged, or does not fit this machine.".to_owned(),
            };
            if !said.is_empty() {
                why.push_str("\nIts last words: ");
                why.push_str(said);
            }
            if variables::value(evidence.variables, "LD_PRELOAD").is_some() {
                fix.push(Fix::advice_with_command(
                    "or try without LD_PRELOAD",
                    "unset LD_PRELOAD",
                ));
            }
            Some(problem(
                "crash",
                Severity::Error,
                format!("the process died ({how}): {words}"),
                why,
                fix,
            ))
        }
    }
}

fn failed(evidence: &Evidence<'_>, failure: &Failure) -> Option<Problem> {
    if failure.kind == FailureKind::Setting && variables::has_unknown(evidence.variables) {
        // A problem of its own has the cause and the remedy.
        return None;
    }
    Some(match failure.step {
        Stage::Choose => choice_failed(evidence, failure),
        Stage::Init | Stage::Devices | Stage::Context => driver_failed(evidence, failure),
        Stage::LoadNvrtc => nvrtc_failed(evidence, failure),
        Stage::Compile => compile_failed(evidence, failure),
        Stage::Load | Stage::Launch => kernel_failed(evidence, failure),
        Stage::Ptx => ptx_failed(evidence, failure),
    })
}

/// The lines of an error after the first one, which the problem states itself.
fn rest_of(message: &str) -> String {
    let end = message.find("\nTo fix it:").unwrap_or(message.len());
    let mut lines = message[..end].lines().map(str::trim);
    let first = lines.next().unwrap_or("");
    let rest: Vec<&str> = lines.collect();
    if rest.is_empty() {
        return first.to_owned();
    }
    format!("{first}\n{}", rest.join("\n"))
}

fn choice_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    let asked = variables::value(evidence.variables, "CUPYRITE_DEVICE");
    match failure.kind {
        FailureKind::NotFound => problem(
            "driver-missing",
            Severity::Error,
            "CUPYRITE_DEVICE=gpu asks for the NVIDIA driver, which is not here",
            driver_missing_why(evidence),
            driver_missing_fix(evidence),
        ),
        FailureKind::Broken => {
            let file = failure.file.clone().unwrap_or_default();
            let mut fix = Vec::new();
            if variables::value(evidence.variables, "CUPYRITE_LIB_CUDA").is_some() {
                fix.push(Fix::command("unset CUPYRITE_LIB_CUDA"));
            } else {
                fix.push(Fix::advice(
                    "reinstall the NVIDIA driver; in a container: the host's, and its container toolkit",
                ));
            }
            fix.push(on_the_cpu());
            problem(
                "driver-broken",
                Severity::Error,
                format!("the NVIDIA driver library does not load: {file}"),
                rest_of(&failure.message),
                fix,
            )
        }
        FailureKind::NoCpuDevice => problem(
            "cpu-device-missing",
            Severity::Error,
            "the CPU device cannot be loaded",
            rest_of(&failure.message),
            vec![Fix::command(
                "pip install --force-reinstall --no-deps cupyrite",
            )],
        ),
        FailureKind::Setting if asked.is_some() => problem(
            "device-setting",
            Severity::Error,
            rest_of(&failure.message),
            "Every use of the driver fails with this message.",
            vec![
                Fix::command("unset CUPYRITE_DEVICE"),
                Fix::advice_with_command("or take the CPU device", "export CUPYRITE_DEVICE=cpu"),
            ],
        ),
        _ => problem(
            "driver-fails",
            Severity::Error,
            "the device could not be chosen",
            rest_of(&failure.message),
            advised(&failure.advice)
                .into_iter()
                .chain([on_the_cpu()])
                .collect(),
        ),
    }
}

fn driver_missing_why(evidence: &Evidence<'_>) -> String {
    let machine = evidence.machine;
    let mut why = if machine.wsl {
        "Below Windows the driver is Windows' own; its library appears as /usr/lib/wsl/lib/libcuda.so.1, and is \
         not there."
            .to_owned()
    } else if evidence.has_gpu() {
        format!(
            "There is an NVIDIA GPU ({}), but no driver library (libcuda.so.1).",
            evidence.gpu_signs()
        )
    } else {
        "No NVIDIA GPU can be seen from here either.".to_owned()
    };
    if machine.container && !machine.wsl {
        why.push_str(
            " This is a container: the host's driver is passed into it when it is started.",
        );
    }
    why
}

fn driver_missing_fix(evidence: &Evidence<'_>) -> Vec<Fix> {
    let machine = evidence.machine;
    let mut fix = Vec::new();
    if machine.wsl {
        fix.push(Fix::advice(
            "install NVIDIA's driver on Windows (never inside WSL), then: wsl --shutdown",
        ));
    } else if machine.container {
        fix.push(Fix::advice_with_command(
            "start the container with the GPU (needs the NVIDIA Container Toolkit on the host)",
            "docker run --gpus all ...",
        ));
        fix.push(Fix::advice_with_command(
            "or, with Podman",
            "podman run --device nvidia.com/gpu=all ...",
        ));
    } else {
        fix.push(Fix::advice(
            "install the NVIDIA driver with the system's package manager; on Ubuntu: sudo ubuntu-drivers install",
        ));
    }
    fix.push(on_the_cpu());
    fix
}

/// The CPU device is used although there is a GPU.
fn gpu_without_driver(evidence: &Evidence<'_>) -> Option<Problem> {
    let asked = variables::value(evidence.variables, "CUPYRITE_DEVICE")
        .is_some_and(|value| value.to_string_lossy().trim().eq_ignore_ascii_case("cpu"));
    let serves = evidence.outcome.probe.backend == Some(Backend::Cpu);
    if !serves || asked || !(evidence.has_gpu() || evidence.machine.wsl) {
        return None;
    }
    let (severity, what) = if evidence.has_gpu() {
        let what = "there is an NVIDIA GPU without a driver: the CPU device is used instead";
        (Severity::Warning, what)
    } else {
        let what = "Windows' NVIDIA driver is not visible here: the CPU device is used";
        (Severity::Note, what)
    };
    Some(problem(
        "gpu-without-driver",
        severity,
        what,
        driver_missing_why(evidence),
        driver_missing_fix(evidence),
    ))
}

/// The meaning of an initialisation status, and its remedy.
fn driver_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    let first = failure.message.lines().next().unwrap_or("").to_owned();
    if !evidence.on_gpu() {
        return problem(
            "cpu-device-fails",
            Severity::Error,
            format!("the CPU device does not start: {first}"),
            "One of its settings is invalid: CUPYRITE_CPU_DEVICES, CUPYRITE_CPU_COMPUTE_CAPABILITY, \
             CUPYRITE_CPU_MEMORY, CUPYRITE_CPU_THREADS.",
            vec![Fix::command(
                "unset CUPYRITE_CPU_DEVICES CUPYRITE_CPU_COMPUTE_CAPABILITY CUPYRITE_CPU_MEMORY \
                 CUPYRITE_CPU_THREADS",
            )],
        );
    }
    if failure.kind == FailureKind::Symbol {
        return problem(
            "driver-too-old",
            Severity::Error,
            "the NVIDIA driver is too old",
            rest_of(&failure.message),
            vec![Fix::advice("install a newer NVIDIA driver"), on_the_cpu()],
        );
    }
    let status = CUresult(failure.status.unwrap_or(CUresult::CUDA_ERROR_UNKNOWN.0));
    let (why, mut fix) = meaning(evidence, status);
    fix.push(on_the_cpu());
    let code = match status {
        CUresult::CUDA_ERROR_NO_DEVICE => "no-device",
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => "driver-mismatch",
        CUresult::CUDA_ERROR_STUB_LIBRARY => "driver-stub",
        _ => "driver-fails",
    };
    problem(
        code,
        Severity::Error,
        format!("the NVIDIA driver is here, but cannot be used: {first}"),
        why,
        fix,
    )
}

fn meaning(evidence: &Evidence<'_>, status: CUresult) -> (String, Vec<Fix>) {
    let machine = evidence.machine;
    let container_fix = || {
        Fix::advice_with_command(
            "start the container with the GPU",
            "docker run --gpus all ...",
        )
    };
    match status {
        CUresult::CUDA_ERROR_NO_DEVICE => {
            let hidden = evidence
                .variables
                .get(std::ffi::OsStr::new("CUDA_VISIBLE_DEVICES"));
            if let Some(hidden) = hidden {
                let hidden = hidden.to_string_lossy();
                return (
                    format!("CUDA_VISIBLE_DEVICES={hidden} hides every GPU, or names none that is there."),
                    vec![Fix::command("unset CUDA_VISIBLE_DEVICES")],
                );
            }
            if evidence.has_gpu() {
                let why = format!(
                    "There is a GPU ({}), but the driver is not let at it: its device files are missing or this \
                     user may not open them, or another driver holds the GPU.",
                    evidence.gpu_signs()
                );
                let fix = if machine.container {
                    container_fix()
                } else {
                    Fix::advice_with_command("see what is there and who may open it", "ls -l /dev/nvidia*")
                };
                return (why, vec![fix]);
            }
            let why = "The driver sees no GPU on this machine.";
            let fix = if machine.container {
                container_fix()
            } else {
                Fix::advice_with_command("see whether the machine has one", "lspci -d 10de:")
            };
            (why.to_owned(), vec![fix])
        }
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            let located = evidence.located("cuda").and_then(|item| item.path.as_deref());
            let library = located.and_then(|path| machine::library_version(path, evidence.files));
            let why = format!(
                "The driver library ({}) and the kernel module ({}) are of different versions: the driver was \
                 updated while the old module stayed loaded, or a container has its own library.",
                library.as_deref().unwrap_or("version unknown"),
                evidence.kernel_module.as_deref().unwrap_or("version unknown"),
            );
            (why, vec![Fix::advice("restart the machine, so that the new module is loaded")])
        }
        CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => (
            "The library is NVIDIA's forward-compatibility package, which works with data-centre GPUs only."
                .to_owned(),
            vec![Fix::advice(
                "remove its folder (.../compat) from LD_LIBRARY_PATH or ld.so.conf, or uninstall cuda-compat",
            )],
        ),
        CUresult::CUDA_ERROR_STUB_LIBRARY => (
            "The library that was loaded is a toolkit's stub, made for linking only.".to_owned(),
            vec![Fix::advice("remove the toolkit's stubs folder from LD_LIBRARY_PATH")],
        ),
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => (
            "The GPUs are connected by NVSwitch, and the service that sets it up does not run.".to_owned(),
            vec![Fix::command("sudo systemctl enable --now nvidia-fabricmanager")],
        ),
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => (
            "Another process has the GPU for itself (exclusive compute mode).".to_owned(),
            vec![Fix::advice_with_command("see which", "nvidia-smi")],
        ),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => (
            "The GPU's memory, or this process's address space (ulimit -v), is used up.".to_owned(),
            vec![Fix::advice_with_command("see by whom", "nvidia-smi")],
        ),
        CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED
        | CUresult::CUDA_ERROR_MPS_RPC_FAILURE
        | CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY
        | CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
        | CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED => (
            "The GPU is shared through NVIDIA's Multi-Process Service, which does not answer or is full.".to_owned(),
            vec![Fix::advice_with_command("restart it", "echo quit | nvidia-cuda-mps-control; nvidia-cuda-mps-control -d")],
        ),
        _ => {
            let mut why = String::from(
                "The kernel module is not loaded, does not answer, or its device files cannot be opened.",
            );
            if evidence.kernel_module.is_none() && !machine.wsl {
                why = "NVIDIA's kernel module is not loaded (/proc/driver/nvidia/version cannot be read).".to_owned();
            }
            let mut fix = Vec::new();
            if machine.container {
                fix.push(container_fix());
            } else {
                fix.push(Fix::advice_with_command("load the modules", "sudo nvidia-modprobe -u -c=0"));
            }
            fix.push(Fix::advice_with_command("then see what NVIDIA's own tool says", "nvidia-smi"));
            (why, fix)
        }
    }
}

/// The package for the CUDA major that the driver supports.
fn nvrtc_packages(evidence: &Evidence<'_>) -> (&'static str, Option<u32>) {
    let row = table::find_library("nvrtc");
    let asked = variables::value(evidence.variables, "CUPYRITE_CUDA_MAJOR")
        .and_then(|value| value.to_str()?.trim().parse::<u32>().ok());
    let driver = evidence.outcome.probe.driver_version.map(|v| v.major);
    let major = asked.or(driver.filter(|_| evidence.on_gpu()));
    let name = match (row, major) {
        (Some(row), Some(12)) => row.packages.pip_cuda12,
        (Some(row), _) => row.packages.pip,
        (None, _) => "",
    };
    (name, major)
}

fn install_nvrtc(evidence: &Evidence<'_>, options: &str) -> Vec<Fix> {
    let (package, major) = nvrtc_packages(evidence);
    let mut fix = Vec::new();
    if !package.is_empty() {
        fix.push(Fix::command(
            evidence.install(&format!("{options}{package}")),
        ));
    }
    let conda = table::find_library("nvrtc").map_or("", |row| row.packages.conda);
    if !conda.is_empty() {
        let version = major.map_or(String::new(), |major| format!(" cuda-version={major}"));
        fix.push(Fix::advice_with_command(
            "or, in a conda environment",
            format!("conda install -c conda-forge {conda}{version}"),
        ));
    }
    fix
}

fn reinstall_nvrtc(evidence: &Evidence<'_>) -> Vec<Fix> {
    if variables::value(evidence.variables, "CUPYRITE_LIB_NVRTC").is_some() {
        return vec![Fix::command("unset CUPYRITE_LIB_NVRTC")];
    }
    install_nvrtc(evidence, "--force-reinstall --no-deps ")
}

fn nvrtc_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    let whole = rest_of(&failure.message);
    match failure.kind {
        FailureKind::NotFound => {
            let mut fix = install_nvrtc(evidence, "");
            fix.push(Fix::advice_with_command(
                "or name an installed one",
                "export CUPYRITE_LIB_NVRTC=/path/to/libnvrtc.so.13",
            ));
            problem(
                "nvrtc-missing",
                Severity::Error,
                "NVRTC, the run-time compiler, is not installed",
                whole,
                fix,
            )
        }
        FailureKind::Broken => {
            let file = failure.file.clone().unwrap_or_default();
            problem(
                "nvrtc-broken",
                Severity::Error,
                format!("NVRTC is here, but does not load: {file}"),
                whole,
                reinstall_nvrtc(evidence),
            )
        }
        FailureKind::Setting => problem(
            "nvrtc-setting",
            Severity::Error,
            "NVRTC is not found because of a setting",
            whole,
            if failure.advice.is_empty() {
                vec![Fix::command("unset CUPYRITE_LIB_NVRTC CUPYRITE_CUDA_MAJOR")]
            } else {
                advised(&failure.advice)
            },
        ),
        _ => problem(
            "nvrtc-fails",
            Severity::Error,
            "NVRTC is loaded, but does not work",
            whole,
            reinstall_nvrtc(evidence),
        ),
    }
}

fn compile_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    let message = rest_of(&failure.message);
    let lower = message.to_lowercase();
    let probe = &evidence.outcome.probe;
    let nvrtc = probe
        .nvrtc_version
        .map_or("?".to_owned(), |v| v.to_string());
    if lower.contains("builtin") {
        return problem(
            "nvrtc-incomplete",
            Severity::Error,
            format!("NVRTC {nvrtc} cannot find its second library, libnvrtc-builtins"),
            message,
            reinstall_nvrtc(evidence),
        );
    }
    if lower.contains("gpu-architecture")
        && let Some(device) = probe.devices.first()
    {
        let capability = device.compute_capability;
        let old = (capability.major, capability.minor) < (7, 5);
        let row = table::find_library("nvrtc").map(|row| row.packages);
        let (words, package) = if old {
            (
                "CUDA 13 knows compute capability 7.5 and later",
                row.map(|r| r.pip_cuda12),
            )
        } else {
            ("a newer NVRTC knows it", row.map(|r| r.pip))
        };
        return problem(
            "nvrtc-architecture",
            Severity::Error,
            format!(
                "NVRTC {nvrtc} cannot compile for {}, compute capability {capability}",
                device.name
            ),
            message,
            vec![Fix::advice_with_command(
                words,
                evidence.install(&format!(
                    "--upgrade {}",
                    package.unwrap_or("nvidia-cuda-nvrtc")
                )),
            )],
        );
    }
    problem(
        "compile-fails",
        Severity::Error,
        format!("NVRTC {nvrtc} cannot compile a kernel"),
        message,
        reinstall_nvrtc(evidence),
    )
}

fn kernel_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    if let Some(problem) = mismatches::driver_too_old(evidence, failure) {
        return problem;
    }
    let code = match (failure.step, failure.kind) {
        (_, FailureKind::Wrong) => "result-wrong",
        (Stage::Load, _) => "load-fails",
        _ => "launch-fails",
    };
    let mut fix = vec![Fix::advice_with_command(
        "see what the kernel module says",
        "sudo dmesg | grep -iE 'nvrm|xid'",
    )];
    if !evidence.on_gpu() {
        fix = vec![Fix::advice(
            "please report this: the CPU device is part of Cupyrite",
        )];
    } else {
        fix.push(on_the_cpu());
    }
    problem(
        code,
        Severity::Error,
        format!("failed to {}", failure.step.words()),
        rest_of(&failure.message),
        fix,
    )
}

fn ptx_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    if let Some(problem) = mismatches::driver_too_old(evidence, failure) {
        return problem;
    }
    problem(
        "ptx-fails",
        Severity::Warning,
        "kernels run as machine code, but not as PTX",
        rest_of(&failure.message),
        reinstall_nvrtc(evidence),
    )
}

/// Files that exist but cannot be loaded, except those reported already.
fn broken_libraries(evidence: &Evidence<'_>, told: &[Problem]) -> Vec<Problem> {
    let told = |code: &str| told.iter().any(|problem| problem.code == code);
    evidence
        .libraries
        .iter()
        .filter(|looked| looked.item.state == State::Broken)
        .filter(|looked| match looked.item.name.as_str() {
            "nvrtc" => !told("nvrtc-broken"),
            "cuda" => !told("driver-broken"),
            _ => true,
        })
        .map(|looked| {
            let item = &looked.item;
            let path = item.path.as_deref().map_or(String::new(), show);
            problem(
                "library-broken",
                Severity::Warning,
                format!("{} is here, but cannot be loaded: {path}", item.name),
                format!("It is {}.", item.reason.as_deref().unwrap_or("damaged")),
                advised(&looked.advice),
            )
        })
        .collect()
}

/// The advice of a search: commands and text in lines.
fn advised(lines: &[String]) -> Vec<Fix> {
    let mut fix = Vec::new();
    for line in lines {
        // "pip install A    (for CUDA 12: B)"
        let (line, note) = match line.split_once("    (") {
            Some((line, note)) => (line.trim(), note.trim_end_matches(')').trim()),
            None => (line.trim(), ""),
        };
        let is_command = line.starts_with("pip ") || line.starts_with("conda ");
        if !is_command {
            fix.push(Fix::advice(line));
        } else if fix.is_empty() {
            fix.push(Fix::command(line));
        } else {
            fix.push(Fix::advice_with_command("or", line));
        }
        if let Some((words, package)) = note.split_once(": ") {
            let words = format!("or, {words}");
            fix.push(Fix::advice_with_command(
                words,
                format!("pip install {package}"),
            ));
        }
    }
    fix
}

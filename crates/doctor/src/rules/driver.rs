//! The driver cannot be chosen, loaded or initialised, or is missing beside a GPU.

use cupyrite_sys::driver::CUresult;

use super::{advised, on_the_cpu, problem, rest_of};
use crate::evidence::Evidence;
use crate::probe::{Failure, FailureKind};
use crate::report::{Backend, Fix, Problem, Severity};
use crate::{machine, variables};

/// The device could not be chosen.
pub(crate) fn choice_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
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
pub(crate) fn gpu_without_driver(evidence: &Evidence<'_>) -> Option<Problem> {
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
pub(crate) fn driver_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    let first = failure.message.lines().next().unwrap_or("").to_owned();
    if !evidence.on_gpu() {
        return problem(
            "cpu-device-fails",
            Severity::Error,
            format!("the CPU device does not start: {first}"),
            "One of its settings is invalid: CUPYRITE_CPU_DEVICES, CUPYRITE_CPU_COMPUTE_CAPABILITY, \
             CUPYRITE_CPU_MEMORY, CUPYRITE_CPU_THREADS, CUPYRITE_CPU_TIER, CUPYRITE_CPU_INSTRUCTIONS.",
            vec![Fix::command(
                "unset CUPYRITE_CPU_DEVICES CUPYRITE_CPU_COMPUTE_CAPABILITY CUPYRITE_CPU_MEMORY \
                 CUPYRITE_CPU_THREADS CUPYRITE_CPU_TIER CUPYRITE_CPU_INSTRUCTIONS",
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

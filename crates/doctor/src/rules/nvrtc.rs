//! NVRTC cannot be found, loaded or used, or does not compile the kernel.

use cupyrite_pathfinder::table;

use super::{advised, problem, rest_of};
use crate::evidence::Evidence;
use crate::probe::{Failure, FailureKind};
use crate::report::{Fix, Problem, Severity};
use crate::variables;

/// NVRTC could not be loaded.
pub(crate) fn nvrtc_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
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

/// NVRTC did not compile the kernel.
pub(crate) fn compile_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
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

/// The fix that installs NVRTC again.
pub(crate) fn reinstall_nvrtc(evidence: &Evidence<'_>) -> Vec<Fix> {
    if variables::value(evidence.variables, "CUPYRITE_LIB_NVRTC").is_some() {
        return vec![Fix::command("unset CUPYRITE_LIB_NVRTC")];
    }
    install_nvrtc(evidence, "--force-reinstall --no-deps ")
}

//! Versions of CUDA that do not fit together: of the driver and NVRTC, of the libraries, of the headers and NVRTC.

use cupyrite_pathfinder::table;
use cupyrite_sys::driver::CUresult;

use crate::evidence::{Evidence, quoted};
use crate::probe::{Failure, FailureKind, Stage};
use crate::report::{Fix, Item, ItemState, Problem, Severity, Version};
use crate::{show, variables};

/// The driver is older than NVRTC.
fn older(evidence: &Evidence<'_>) -> Option<(Version, Version)> {
    let probe = &evidence.outcome.probe;
    let (driver, nvrtc) = (probe.driver_version?, probe.nvrtc_version?);
    (evidence.on_gpu() && driver < nvrtc).then_some((driver, nvrtc))
}

/// The driver rejected a kernel because it is older than NVRTC.
pub(crate) fn driver_too_old(evidence: &Evidence<'_>, failure: &Failure) -> Option<Problem> {
    let (driver, nvrtc) = older(evidence)?;
    let refused = [
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUresult::CUDA_ERROR_INVALID_PTX,
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUresult::CUDA_ERROR_INVALID_IMAGE,
        CUresult::CUDA_ERROR_INVALID_SOURCE,
        CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
    ];
    let status = failure.status.map(CUresult);
    if failure.kind != FailureKind::Driver || !status.is_some_and(|s| refused.contains(&s)) {
        return None;
    }
    let only_ptx = failure.step == Stage::Ptx;
    let first = failure.message.lines().next().unwrap_or("");
    Some(Problem {
        code: "driver-older",
        severity: if only_ptx {
            Severity::Warning
        } else {
            Severity::Error
        },
        what: format!("the driver speaks CUDA {driver}, NVRTC is of CUDA {nvrtc}"),
        why: if only_ptx {
            format!(
                "Machine code for this GPU loads; PTX, which programs compile to as well, does not ({first})."
            )
        } else {
            format!("The driver cannot load what this NVRTC makes ({first}).")
        },
        fix: fitting_nvrtc(evidence, driver, nvrtc),
    })
}

fn fitting_nvrtc(evidence: &Evidence<'_>, driver: Version, nvrtc: Version) -> Vec<Fix> {
    let packages = table::find_library("nvrtc").map(|row| row.packages);
    let mut fix = Vec::new();
    if driver.major == nvrtc.major {
        let package = packages.map_or("nvidia-cuda-nvrtc", |p| match driver.major {
            12 => p.pip_cuda12,
            _ => p.pip,
        });
        let wanted = quoted(&format!("{package}=={driver}.*"));
        fix.push(Fix::command(evidence.install(&wanted)));
    } else if driver.major == 12 {
        let installed = evidence
            .both
            .iter()
            .find(|[old, _]| old.name == "nvrtc")
            .and_then(|[old, _]| old.path.as_deref());
        if let Some(path) = installed {
            fix.push(Fix::advice_with_command(
                format!("take the NVRTC of CUDA 12 that is here ({})", show(path)),
                "export CUPYRITE_CUDA_MAJOR=12",
            ));
        } else {
            let package = packages.map_or("nvidia-cuda-nvrtc-cu12", |p| p.pip_cuda12);
            let wanted = quoted(&format!("{package}<=12.{}.9999", driver.minor));
            fix.push(Fix::command(evidence.install(&wanted)));
            fix.push(Fix::advice_with_command(
                "and, if CUDA 13 stays installed",
                "export CUPYRITE_CUDA_MAJOR=12",
            ));
        }
    }
    fix.push(Fix::advice(format!(
        "or install an NVIDIA driver for CUDA {nvrtc} or newer"
    )));
    fix
}

/// The driver's CUDA major is older than NVRTC's, without a failure so far.
pub(crate) fn old_driver(evidence: &Evidence<'_>) -> Option<Problem> {
    let (driver, nvrtc) = older(evidence)?;
    let failures = &evidence.outcome.probe.failures;
    if driver.major == nvrtc.major
        || failures
            .iter()
            .any(|f| driver_too_old(evidence, f).is_some())
    {
        return None;
    }
    Some(Problem {
        code: "driver-older",
        severity: Severity::Warning,
        what: format!("the driver speaks CUDA {driver}, NVRTC is of CUDA {nvrtc}"),
        why: "PTX of a newer CUDA major cannot be relied upon to load.".to_owned(),
        fix: fitting_nvrtc(evidence, driver, nvrtc),
    })
}

/// Libraries of both CUDA majors: used together, or installed side by side.
pub(crate) fn two_majors(evidence: &Evidence<'_>) -> Option<Problem> {
    let found = |major: u32| -> Vec<&Item> {
        let items = evidence.libraries.iter().map(|looked| &looked.item);
        items
            .filter(|item| item.state == ItemState::Found && item.major == Some(major))
            .collect()
    };
    let (old, new) = (found(12), found(13));
    let names = |items: &[&Item]| {
        let names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        names.join(", ")
    };
    if !old.is_empty() && !new.is_empty() {
        let fix = old
            .iter()
            .filter_map(|item| table::find_library(&item.name))
            .map(|row| row.packages.pip)
            .filter(|package| !package.is_empty())
            .collect::<Vec<_>>();
        let mut packages: Vec<&str> = Vec::new();
        for package in fix {
            if !packages.contains(&package) {
                packages.push(package);
            }
        }
        let mut fix = Vec::new();
        if !packages.is_empty() {
            fix.push(Fix::command(evidence.install(&packages.join(" "))));
        }
        fix.push(Fix::advice_with_command(
            "or take CUDA 12 for everything",
            "export CUPYRITE_CUDA_MAJOR=12",
        ));
        return Some(Problem {
            code: "majors-mixed",
            severity: Severity::Warning,
            what: "libraries of CUDA 12 and of CUDA 13 would be used together".to_owned(),
            why: format!(
                "Of CUDA 13: {}. Only of CUDA 12: {}. What one of them makes, the other may not understand.",
                names(&new),
                names(&old)
            ),
            fix,
        });
    }
    let both: Vec<&str> = evidence
        .both
        .iter()
        .map(|[old, _]| old.name.as_str())
        .collect();
    if both.is_empty() {
        return None;
    }
    let asked = variables::value(evidence.variables, "CUPYRITE_CUDA_MAJOR");
    let (taken, other) = match asked.map(|value| value.to_string_lossy()) {
        Some(value) if value.trim() == "12" => (12, 13),
        _ => (13, 12),
    };
    let mut fix = vec![Fix::advice_with_command(
        format!("nothing to do, unless CUDA {other} is wanted"),
        format!("export CUPYRITE_CUDA_MAJOR={other}"),
    )];
    if asked.is_some() {
        fix = vec![Fix::advice_with_command(
            format!("nothing to do, unless CUDA {other} is wanted"),
            "unset CUPYRITE_CUDA_MAJOR",
        )];
    }
    Some(Problem {
        code: "two-majors",
        severity: Severity::Note,
        what: format!("CUDA 12 and CUDA 13 are installed side by side; CUDA {taken} is taken"),
        why: format!("Installed for both: {}.", both.join(", ")),
        fix,
    })
}

/// Headers of another CUDA version than NVRTC's.
pub(crate) fn headers(evidence: &Evidence<'_>) -> Option<Problem> {
    let nvrtc = evidence.outcome.probe.nvrtc_version?;
    let item = evidence.headers.iter().find(|item| item.name == "cudart")?;
    let version: Version = item.version.as_deref()?.parse().ok()?;
    if version == nvrtc {
        return None;
    }
    let packages = table::find_header_set("cudart").map(|row| row.packages);
    let package = packages.map_or("nvidia-cuda-runtime", |p| match nvrtc.major {
        12 => p.pip_cuda12,
        _ => p.pip,
    });
    let package = if package.is_empty() {
        "nvidia-cuda-runtime"
    } else {
        package
    };
    let wanted = quoted(&format!("{package}=={nvrtc}.*"));
    Some(Problem {
        code: "headers-differ",
        severity: Severity::Warning,
        what: format!("the CUDA headers are of CUDA {version}, NVRTC is of CUDA {nvrtc}"),
        why: format!(
            "Kernels that include cuda_fp16.h and the like may not compile. The headers lie in {}.",
            item.path.as_deref().map_or(String::new(), show)
        ),
        fix: vec![Fix::command(evidence.install(&wanted))],
    })
}

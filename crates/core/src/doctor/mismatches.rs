//! Mismatches: driver and toolkit, two toolkits, headers and compiler, packages that write the same files.

use std::path::Path;

use cupyrite_pathfinder::files::FileEntry;
use cupyrite_pathfinder::table;
use cupyrite_sys::driver::CUresult;

use super::probe::{Failure, FailureKind, Stage};
use super::problems::{Evidence, quoted};
use super::python::{OURS, PEERS};
use super::report::{Fix, Item, ModuleOrigin, Package, Problem, Severity, State, Version};
use super::{show, variables};

/// All rules.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    found.extend(old_driver(evidence));
    found.extend(packages(evidence));
    found.extend(two_majors(evidence));
    found.extend(headers(evidence));
    found
}

// ---------------------------------------------------------------------------------------------------------
// Driver and toolkit

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
    let pip = evidence.pip();
    let packages = table::find_library("nvrtc").map(|row| row.packages);
    let mut fix = Vec::new();
    if driver.major == nvrtc.major {
        let package = packages.map_or("nvidia-cuda-nvrtc", |p| match driver.major {
            12 => p.pip_cuda12,
            _ => p.pip,
        });
        let wanted = quoted(&format!("{package}=={driver}.*"));
        fix.push(Fix::command(format!("{pip} install {wanted}")));
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
            fix.push(Fix::command(format!("{pip} install {wanted}")));
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
fn old_driver(evidence: &Evidence<'_>) -> Option<Problem> {
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

// ---------------------------------------------------------------------------------------------------------
// Two toolkits

fn two_majors(evidence: &Evidence<'_>) -> Option<Problem> {
    let found = |major: u32| -> Vec<&Item> {
        let items = evidence.libraries.iter().map(|looked| &looked.item);
        items
            .filter(|item| item.state == State::Found && item.major == Some(major))
            .collect()
    };
    let (old, new) = (found(12), found(13));
    let names = |items: &[&Item]| {
        let names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        names.join(", ")
    };
    let pip = evidence.pip();
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
            fix.push(Fix::command(format!(
                "{pip} install {}",
                packages.join(" ")
            )));
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
fn headers(evidence: &Evidence<'_>) -> Option<Problem> {
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
        fix: vec![Fix::command(format!("{} install {wanted}", evidence.pip()))],
    })
}

// ---------------------------------------------------------------------------------------------------------
// Packages

fn packages(evidence: &Evidence<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    if evidence.facts.interpreter.is_none() {
        return found;
    }
    found.extend(version_mixed(evidence));
    found.extend(shadowed_by_cuda(evidence));
    found.extend(foreign_modules(evidence));
    found.extend(damaged(evidence));
    found.extend(peers(evidence));
    found.extend(copies(evidence));
    found.extend(numpy(evidence));
    found
}

fn reinstall(evidence: &Evidence<'_>) -> Fix {
    Fix::command(format!(
        "{} install --force-reinstall --no-deps {OURS}",
        evidence.pip()
    ))
}

fn version_mixed(evidence: &Evidence<'_>) -> Option<Problem> {
    let given = evidence.facts.package_version.as_deref()?;
    let native = env!("CARGO_PKG_VERSION");
    (given != native).then(|| Problem {
        code: "version-mixed",
        severity: Severity::Error,
        what: format!("Cupyrite's Python files are of {given}, its native module is of {native}"),
        why: "Files of two versions lie in one folder.".to_owned(),
        fix: vec![reinstall(evidence)],
    })
}

/// A `cuda/__init__` file, which breaks the namespace that packages share.
fn shadowed_by_cuda(evidence: &Evidence<'_>) -> Option<Problem> {
    let init = evidence.python.cuda_init.as_deref()?;
    Some(Problem {
        code: "cuda-shadowed",
        severity: Severity::Error,
        what: format!("{} hides every other `cuda` package", show(init)),
        why: "`cuda` is a namespace that several packages share; a file of this kind makes Python look nowhere \
              else, so that cuda.bindings is not found. It comes from a program of your own in the working \
              directory, or from an old cuda-python."
            .to_owned(),
        fix: vec![
            Fix::advice_with_command(
                "if it is an old cuda-python",
                format!("{} uninstall -y cuda-python", evidence.pip()),
            ),
            Fix::advice("if it is your own: rename that folder or file"),
        ],
    })
}

/// Commands that uninstall one of the two.
fn keep_one(evidence: &Evidence<'_>) -> Vec<Fix> {
    let pip = evidence.pip();
    let installed: Vec<&Package> = evidence
        .python
        .packages
        .iter()
        .filter(|package| PEERS.contains(&package.name.as_str()))
        .collect();
    let mut names: Vec<&str> = Vec::new();
    let mut pinned: Vec<String> = Vec::new();
    for package in installed {
        if !names.contains(&package.name.as_str()) {
            names.push(&package.name);
            pinned.push(format!("{}=={}", package.name, package.version));
        }
    }
    if names.is_empty() {
        return vec![reinstall(evidence)];
    }
    vec![
        Fix::advice_with_command(
            "to use Cupyrite",
            format!("{pip} uninstall -y {}", names.join(" ")),
        ),
        Fix::advice_with_command(
            "and then",
            format!("{pip} install --force-reinstall --no-deps {OURS}"),
        ),
        Fix::advice_with_command("or, to use NVIDIA's", format!("{pip} uninstall -y {OURS}")),
        Fix::advice_with_command(
            "and then",
            format!(
                "{pip} install --force-reinstall --no-deps {}",
                pinned.join(" ")
            ),
        ),
    ]
}

/// "cuda.bindings.driver, cuda.bindings.nvrtc and 3 more".
fn list<'a>(modules: impl Iterator<Item = &'a ModuleOrigin>) -> String {
    const SHOWN: usize = 6;
    let names: Vec<&str> = modules.map(|module| module.module.as_str()).collect();
    if names.len() <= SHOWN + 1 {
        return names.join(", ");
    }
    format!(
        "{} and {} more",
        names[..SHOWN].join(", "),
        names.len() - SHOWN
    )
}

/// Modules of Cupyrite that another file shadows.
fn foreign_modules(evidence: &Evidence<'_>) -> Vec<Problem> {
    let python = evidence.python;
    if python.cuda_init.is_some() {
        return Vec::new();
    }
    let root = evidence.facts.package.as_deref().and_then(Path::parent);
    let foreign: Vec<&ModuleOrigin> = python
        .modules
        .iter()
        .filter(|module| !module.ours && module.file.is_some())
        .filter(|module| module.package.as_deref() != Some(OURS))
        .collect();
    let mut found = Vec::new();
    let is_peer = |module: &&&ModuleOrigin| {
        let package = module.package.as_deref();
        package.is_some_and(|package| PEERS.contains(&package))
    };
    let here = |module: &&&ModuleOrigin| {
        let file = module.file.as_deref();
        root.is_some_and(|root| file.is_some_and(|file| file.starts_with(root)))
    };
    let of = |peer: bool, inside: bool| -> Vec<&ModuleOrigin> {
        let chosen = foreign
            .iter()
            .filter(|module| is_peer(module) == peer && here(module) == inside);
        chosen.copied().collect()
    };
    let mixed = of(true, true);
    if !mixed.is_empty() {
        let owned = python.modules.len();
        let what = format!(
            "NVIDIA's packages ({}) lie in the same folder, and Python takes {} of Cupyrite's {owned} modules from \
             them",
            peers_of(evidence, &mixed),
            mixed.len()
        );
        found.push(Problem {
            code: "peer-mixed",
            severity: Severity::Error,
            what,
            why: format!(
                "RawAllocation from them: {}. All of them install files below cuda/: what was installed last overwrote \
                 files of the same name, and an extension module or a package comes before a .py file.",
                list(mixed.iter().copied())
            ),
            fix: keep_one(evidence),
        });
    }
    let earlier = of(true, false);
    if let Some(first) = earlier.first().and_then(|module| module.file.as_deref()) {
        found.push(Problem {
            code: "peer-first",
            severity: Severity::Error,
            what: format!(
                "Python finds NVIDIA's packages ({}) before Cupyrite",
                peers_of(evidence, &earlier)
            ),
            why: format!(
                "They come earlier on the module path: {}. Affected: {}.",
                show(first),
                list(earlier.iter().copied())
            ),
            fix: keep_one(evidence),
        });
    }
    let unknown: Vec<&ModuleOrigin> = foreign.iter().filter(|m| !is_peer(m)).copied().collect();
    // Modified files of Cupyrite are reported by `damaged`.
    let changed = &python.changed;
    let unknown: Vec<&ModuleOrigin> = unknown
        .into_iter()
        .filter(|module| module.file.as_ref().is_some_and(|f| !changed.contains(f)))
        .collect();
    if let Some(first) = unknown.first().and_then(|module| module.file.as_deref()) {
        found.push(Problem {
            code: "module-shadowed",
            severity: Severity::Error,
            what: format!("Python takes {} instead of Cupyrite's own", show(first)),
            why: format!(
                "It comes earlier on the module path, or before a .py file of the same name. Affected: {}.",
                list(unknown.iter().copied())
            ),
            fix: vec![Fix::advice(
                "remove or rename it, or start Python from another folder",
            )],
        });
    }
    found
}

fn peers_of(evidence: &Evidence<'_>, modules: &[&ModuleOrigin]) -> String {
    let mut names: Vec<String> = Vec::new();
    for module in modules {
        let Some(name) = &module.package else {
            continue;
        };
        let version = evidence
            .python
            .packages
            .iter()
            .find(|package| package.name == *name)
            .map_or(String::new(), |package| format!(" {}", package.version));
        let text = format!("{name}{version}");
        if !names.contains(&text) {
            names.push(text);
        }
    }
    names.join(", ")
}

/// Files of Cupyrite that are missing or modified.
fn damaged(evidence: &Evidence<'_>) -> Option<Problem> {
    let python = evidence.python;
    let (gone, changed) = (&python.missing, &python.changed);
    let (severity, what, example) = match (gone.first(), changed.first()) {
        (Some(file), _) => (
            Severity::Error,
            format!("files of Cupyrite are missing: {}", gone.len()),
            file,
        ),
        (None, Some(file)) => (
            Severity::Warning,
            format!("files of Cupyrite were changed: {}", changed.len()),
            file,
        ),
        (None, None) => return None,
    };
    Some(Problem {
        code: "files-damaged",
        severity,
        what,
        why: format!(
            "The first one: {}. Uninstalling another package that had overwritten them would do this.",
            show(example)
        ),
        fix: vec![reinstall(evidence)],
    })
}

/// NVIDIA's packages are installed too, and Cupyrite's modules take precedence.
fn peers(evidence: &Evidence<'_>) -> Option<Problem> {
    let python = evidence.python;
    if python.cuda_init.is_some()
        || python
            .modules
            .iter()
            .any(|module| !module.ours && module.package.as_deref() != Some(OURS))
    {
        return None;
    }
    let installed: Vec<String> = python
        .packages
        .iter()
        .filter(|package| PEERS.contains(&package.name.as_str()))
        .map(|package| format!("{} {}", package.name, package.version))
        .collect();
    if installed.is_empty() {
        return None;
    }
    let damage: usize = python.peers_damaged.iter().map(|(_, count)| count).sum();
    let names = installed.join(", ");
    let hidden = || {
        let names: Vec<&str> = python
            .packages
            .iter()
            .map(|package| package.name.as_str())
            .filter(|name| PEERS.contains(name))
            .collect();
        vec![Fix::advice_with_command(
            "nothing to do; so that it stays so",
            format!("{} uninstall -y {}", evidence.pip(), names.join(" ")),
        )]
    };
    let (code, severity, what, why, fix) = if damage > 0 {
        (
            "peer-overwritten",
            Severity::Warning,
            format!(
                "NVIDIA's packages are here too ({names}), and {damage} of their files are gone or overwritten"
            ),
            "Python takes Cupyrite's modules. What is left of the others does not fit them: an import of a module \
             that only they have may fail.",
            keep_one(evidence),
        )
    } else {
        (
            "peer-installed",
            Severity::Note,
            format!("NVIDIA's packages are here too ({names}); Python takes Cupyrite's modules"),
            "They come earlier on the module path. Another order of the path would turn this around.",
            hidden(),
        )
    };
    Some(Problem {
        code,
        severity,
        what,
        why: why.to_owned(),
        fix,
    })
}

fn copies(evidence: &Evidence<'_>) -> Option<Problem> {
    let python = evidence.python;
    let ours: Vec<&Package> = python
        .packages
        .iter()
        .filter(|package| package.name == OURS)
        .collect();
    let same_folder = ours.iter().enumerate().find_map(|(i, package)| {
        let rest = &ours[i + 1..];
        rest.iter()
            .find(|other| other.location == package.location)
            .map(|other| (package, other))
    });
    if let Some((one, other)) = same_folder {
        return Some(Problem {
            code: "two-copies",
            severity: Severity::Warning,
            what: format!(
                "two versions of Cupyrite claim one folder: {} and {}",
                one.version, other.version
            ),
            why: format!(
                "An installation into {} was not complete.",
                show(&one.location)
            ),
            fix: vec![
                Fix::command(format!("{} uninstall -y {OURS}", evidence.pip())),
                reinstall(evidence),
            ],
        });
    }
    if python.copies.len() < 2 {
        return None;
    }
    let places: Vec<String> = python
        .copies
        .iter()
        .map(|file| show(file.parent().unwrap_or(file)))
        .collect();
    Some(Problem {
        code: "two-copies",
        severity: Severity::Warning,
        what: format!(
            "there are {} copies of Cupyrite on the module path",
            places.len()
        ),
        why: format!("The first one is used: {}.", places.join(", ")),
        fix: vec![Fix::advice(
            "uninstall the one that is not wanted, or remove its folder from PYTHONPATH",
        )],
    })
}

fn numpy(evidence: &Evidence<'_>) -> Option<Problem> {
    if let Some(file) = &evidence.python.numpy
        && evidence.files.entry(file) != FileEntry::Absent
    {
        return None;
    }
    let severity = if evidence.facts.demo {
        Severity::Error
    } else {
        Severity::Note
    };
    Some(Problem {
        code: "numpy-missing",
        severity,
        what: "NumPy is not installed".to_owned(),
        why: "The demo needs it, and so does every program that passes arrays; Cupyrite itself does not."
            .to_owned(),
        fix: vec![Fix::command(format!("{} install numpy", evidence.pip()))],
    })
}

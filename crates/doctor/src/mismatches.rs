//! Mismatches: driver and toolkit, two toolkits, headers and compiler, packages that write the same files.

use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::FileEntry;
use cupyrite_pathfinder::table;
use cupyrite_sys::driver::CUresult;

use super::probe::{Failure, FailureKind, Stage};
use super::problems::{Evidence, quoted};
use super::python::{OURS, SHARED_NAMES};
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
        fix: vec![Fix::command(evidence.install(&wanted))],
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
    let foreign = foreign_modules(evidence);
    if foreign.iter().all(|problem| problem.code != "peer-mixed") {
        found.extend(absent_stand_ins(evidence));
    }
    found.extend(foreign);
    found.extend(damaged(evidence));
    found.extend(peers(evidence));
    found.extend(copies(evidence));
    found.extend(numpy(evidence));
    found
}

/// Installs the package with the native module again, from where it came.
fn reinstall(evidence: &Evidence<'_>) -> Fix {
    const OPTIONS: &str = "--force-reinstall --no-deps";
    match &evidence.python.source {
        Some(source) => Fix::command(evidence.install(&format!("{OPTIONS} {}", quoted(source)))),
        None => Fix::advice(format!(
            "install Cupyrite's wheel again from where it came, with the options {OPTIONS}"
        )),
    }
}

/// Installs the stand-ins that the installed `cupyrite` carries, in place of NVIDIA's packages.
fn stand_in(evidence: &Evidence<'_>) -> String {
    let python = evidence.python_command();
    format!(
        "{} -m {OURS} stand-in",
        python.as_deref().unwrap_or("python")
    )
}

fn version_mixed(evidence: &Evidence<'_>) -> Option<Problem> {
    let given = evidence.facts.package_version.as_deref()?;
    let native = env!("CARGO_PKG_VERSION");
    if given != native {
        return Some(Problem {
            code: "version-mixed",
            severity: Severity::Error,
            what: format!(
                "Cupyrite's Python files are of {given}, its native module is of {native}"
            ),
            why: "Files of two versions lie in one folder.".to_owned(),
            fix: vec![reinstall(evidence)],
        });
    }
    let stale = &evidence.python.stale;
    let names: Vec<String> = stale
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    (!stale.is_empty()).then(|| Problem {
        code: "version-mixed",
        severity: Severity::Error,
        what: format!(
            "Cupyrite is of {native}, but not all of its stand-ins: {}",
            names.join(", ")
        ),
        why: "The modules below cuda/ and the native module are of two versions.".to_owned(),
        fix: vec![Fix::command(stand_in(evidence))],
    })
}

/// Stand-ins that are missing, or that NVIDIA's packages have replaced.
fn absent_stand_ins(evidence: &Evidence<'_>) -> Option<Problem> {
    let python = evidence.python;
    let root = evidence.facts.package.as_deref().and_then(Path::parent)?;
    let absent = &python.absent;
    let replacing: Vec<&Package> = python
        .packages
        .iter()
        .filter(|package| is_peer(package) && absent.contains(&package.name.as_str()))
        .filter(|package| package.location == root)
        .collect();
    if absent.is_empty() {
        return None;
    }
    // It has no modules.
    let severity = if absent == &["cuda-python"] {
        Severity::Warning
    } else {
        Severity::Error
    };
    if replacing.is_empty() {
        return Some(Problem {
            code: "stand-in-missing",
            severity,
            what: format!("Cupyrite's {} are not installed", absent.join(", ")),
            why: format!(
                "The package {OURS} has the native module; those have the modules below cuda/, under names that \
                 other packages require."
            ),
            fix: vec![Fix::command(stand_in(evidence))],
        });
    }
    let names: Vec<String> = replacing
        .iter()
        .map(|package| format!("{} {}", package.name, package.version))
        .collect();
    Some(Problem {
        code: "peer-mixed",
        severity,
        what: format!(
            "NVIDIA's packages ({}) were installed in place of Cupyrite's",
            names.join(", ")
        ),
        why: "An installer replaced them: another package requires a version that Cupyrite's do not have, or they \
              were upgraded by name. NVIDIA's modules and Cupyrite's do not work together."
            .to_owned(),
        fix: keep_one(evidence),
    })
}

/// Whether it is one of NVIDIA's packages.
fn is_peer(package: &Package) -> bool {
    !package.ours && SHARED_NAMES.contains(&package.name.as_str())
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
                evidence.uninstall("cuda-python"),
            ),
            Fix::advice("if it is your own: rename that folder or file"),
        ],
    })
}

/// Commands after which one of the two is installed, and the other is not.
fn keep_one(evidence: &Evidence<'_>) -> Vec<Fix> {
    let python = evidence.python;
    if !python.installed {
        return vec![Fix::advice(
            "uninstall NVIDIA's packages, or start Python without the folder of Cupyrite on its module path",
        )];
    }
    // The version of the interface, without the label of a stand-in. cuda-python has no modules.
    let mut pinned: Vec<String> = Vec::new();
    for package in &python.packages {
        let version = package.version.split('+').next().unwrap_or_default();
        let text = format!("{}=={version}", package.name);
        let again = pinned
            .iter()
            .any(|old| old.split("==").next() == Some(&package.name));
        if SHARED_NAMES.contains(&package.name.as_str()) && package.name != "cuda-python" && !again
        {
            pinned.push(text);
        }
    }
    let empty = python
        .packages
        .iter()
        .any(|package| package.ours && package.name == "cuda-python");
    let ours = if empty { "cupyrite cuda-python" } else { OURS };
    let mut fix = vec![
        Fix::advice_with_command("to use Cupyrite", stand_in(evidence)),
        Fix::advice_with_command("or, to use NVIDIA's", evidence.uninstall(ours)),
    ];
    if !pinned.is_empty() {
        fix.push(Fix::advice_with_command(
            "and then",
            evidence.install(&format!("--force-reinstall --no-deps {}", pinned.join(" "))),
        ));
    }
    fix
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
        .filter(|module| module.peer || !of_cupyrite(evidence, module))
        .collect();
    let mut found = Vec::new();
    let is_peer = |module: &&&ModuleOrigin| module.peer;
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
                "Taken from them: {}. All of them install files below cuda/: what was installed last overwrote \
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
            fix: vec![Fix::advice(format!(
                "remove {} from the module path (PYTHONPATH), or uninstall NVIDIA's packages there",
                show(
                    python
                        .packages
                        .iter()
                        .filter(|package| self::is_peer(package))
                        .map(|package| package.location.as_path())
                        .find(|location| first.starts_with(location))
                        .unwrap_or(first)
                )
            ))],
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

/// Whether the file that Python takes is of `cupyrite` or of a stand-in.
fn of_cupyrite(evidence: &Evidence<'_>, module: &ModuleOrigin) -> bool {
    let Some(name) = &module.package else {
        return false;
    };
    !module.peer
        && evidence
            .python
            .packages
            .iter()
            .any(|p| p.ours && p.name == *name)
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
            .find(|package| package.name == *name && is_peer(package))
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
        fix: repair(evidence, gone.iter().chain(changed)),
    })
}

/// Installs what these files belong to again.
fn repair<'a>(evidence: &Evidence<'_>, files: impl Iterator<Item = &'a PathBuf>) -> Vec<Fix> {
    let folder = evidence.facts.package.as_deref();
    let (native, others): (Vec<_>, Vec<_>) =
        files.partition(|file| folder.is_some_and(|folder| file.starts_with(folder)));
    let mut fix = Vec::new();
    if !native.is_empty() || !evidence.python.installed {
        fix.push(reinstall(evidence));
    }
    if !others.is_empty() && evidence.python.installed {
        fix.push(Fix::command(stand_in(evidence)));
    }
    fix
}

/// NVIDIA's packages are installed too, and Cupyrite's modules take precedence.
fn peers(evidence: &Evidence<'_>) -> Option<Problem> {
    let python = evidence.python;
    if python.cuda_init.is_some()
        || python
            .modules
            .iter()
            .any(|module| !module.ours && !of_cupyrite(evidence, module))
        || !python.absent.is_empty()
    {
        return None;
    }
    let installed: Vec<String> = python
        .packages
        .iter()
        .filter(|package| is_peer(package))
        .map(|package| format!("{} {}", package.name, package.version))
        .collect();
    if installed.is_empty() {
        return None;
    }
    let damage: usize = python.peers_damaged.iter().map(|(_, count)| count).sum();
    let names = installed.join(", ");
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
            vec![Fix::advice(
                "nothing to do; so that it stays so, uninstall them from that folder",
            )],
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
            fix: vec![Fix::command(evidence.uninstall(OURS)), reinstall(evidence)],
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
        fix: vec![Fix::command(evidence.install("numpy"))],
    })
}

//! NVIDIA's packages: in place of Cupyrite's, mixed with them, or before or beside them on the module path.

use std::path::Path;

use super::packages::stand_in;
use crate::evidence::Evidence;
use crate::python::{OURS, SHARED_NAMES};
use crate::report::{Fix, ModuleOrigin, Package, Problem, Severity};
use crate::show;

/// Stand-ins that are missing, or that NVIDIA's packages have replaced.
pub(crate) fn absent_stand_ins(evidence: &Evidence<'_>) -> Option<Problem> {
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

/// A `cuda/__init__` file, which breaks the namespace that packages share.
pub(crate) fn shadowed_by_cuda(evidence: &Evidence<'_>) -> Option<Problem> {
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

/// Modules of Cupyrite that another file shadows.
pub(crate) fn foreign_modules(evidence: &Evidence<'_>) -> Vec<Problem> {
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

/// NVIDIA's packages are installed too, and Cupyrite's modules take precedence.
pub(crate) fn installed_beside(evidence: &Evidence<'_>) -> Option<Problem> {
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

/// Whether it is one of NVIDIA's packages.
fn is_peer(package: &Package) -> bool {
    !package.ours && SHARED_NAMES.contains(&package.name.as_str())
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

//! The installation of Cupyrite in a Python environment: versions, damaged files, copies. NVIDIA's packages: `peers.rs`.

use std::path::PathBuf;

use cupyrite_pathfinder::files::FileEntry;

use super::peers;
use crate::evidence::{Evidence, quoted};
use crate::python::OURS;
use crate::report::{Fix, Package, Problem, Severity};
use crate::show;

/// The rules on packages; none if no interpreter is examined.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    if evidence.facts.interpreter.is_none() {
        return found;
    }
    found.extend(version_mixed(evidence));
    found.extend(peers::shadowed_by_cuda(evidence));
    let foreign = peers::foreign_modules(evidence);
    if foreign.iter().all(|problem| problem.code != "peer-mixed") {
        found.extend(peers::absent_stand_ins(evidence));
    }
    found.extend(foreign);
    found.extend(damaged(evidence));
    found.extend(peers::installed_beside(evidence));
    found.extend(copies(evidence));
    found.extend(numpy(evidence));
    found
}

/// Files of two versions of Cupyrite.
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

/// Several versions or copies of `cupyrite`.
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

/// NumPy is missing.
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
pub(crate) fn stand_in(evidence: &Evidence<'_>) -> String {
    let python = evidence.python_command();
    format!(
        "{} -m {OURS} stand-in",
        python.as_deref().unwrap_or("python")
    )
}

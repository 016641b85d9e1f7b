//! The folders in which this interpreter has packages installed: the roots of the search for NVIDIA's wheels.
//!
//! Reads settings only (`sys.path`, `site`, `PYTHONPATH`), never the file system; the search reads the folders when a
//! library is needed. The script's folder and the working directory are not roots, although Python imports from them:
//! the process must not load a library that happens to lie there.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Computes the roots again and passes them to the search. Call it before each search.
///
/// Programs change `sys.path` at run time. This function never fails: it skips whatever it cannot read in `sys.path`
/// or `site`.
pub fn refresh(py: Python<'_>) {
    cupyrite_pathfinder::set_site_packages(roots(py));
}

/// The roots sorted by their position in `sys.path`, followed by those outside `sys.path`.
///
/// A folder is a root if `site` reports it, if `PYTHONPATH` names it, if this package was imported from it
/// (`pip install --target`, frozen programs), or if the program put it on `sys.path` and it is named `site-packages` or
/// `dist-packages`.
fn roots(py: Python<'_>) -> Vec<PathBuf> {
    let Ok(sys) = py.import("sys") else {
        return Vec::new();
    };
    let modules = sys.getattr("modules").ok();
    let module = |name: &str| modules.as_ref()?.get_item(name).ok();
    let mut known: Vec<PathBuf> = Vec::new();
    if let Some(site) = module("site") {
        said_by_site(&site, &mut known);
    }
    let (absolute, relative): (Vec<PathBuf>, Vec<PathBuf>) = python_path(&sys)
        .into_iter()
        .partition(|entry| entry.is_absolute());
    known.extend(absolute);
    if let Some(package) = module("cupyrite") {
        known.extend(folder_of(&package));
    }
    known.retain(|root| root.is_absolute());
    let named: HashSet<&PathBuf> = known.iter().collect();
    // Python itself puts three kinds of folders on `sys.path` that are never roots, whatever their names: the script's
    // folder, the working directory, and the resolved relative entries of `PYTHONPATH`.
    let script = module("__main__").and_then(|main| folder(&main.getattr("__file__").ok()?));
    let working = std::env::current_dir().ok();
    let by_itself = |entry: &Path| {
        script.as_deref().and_then(Path::parent) == Some(entry)
            || working.as_deref() == Some(entry)
            || relative.iter().any(|relative| entry.ends_with(relative))
    };
    let on_path = entries(&sys);
    let on_path = on_path
        .iter()
        .filter(|entry| named.contains(entry) || (usual_name(entry) && !by_itself(entry)));
    let mut seen = HashSet::new();
    on_path
        .chain(&known)
        .filter(|root| seen.insert(*root))
        .cloned()
        .collect()
}

/// The folders that the module `site` calls site-packages. With `-S`, the interpreter does not import `site`.
fn said_by_site(site: &Bound<'_, PyAny>, known: &mut Vec<PathBuf>) {
    let all = site
        .call_method0("getsitepackages")
        .and_then(|all| all.try_iter());
    if let Ok(all) = all {
        known.extend(all.flatten().filter_map(|entry| folder(&entry)));
    }
    // None or False: disabled (`-s`, `-I`, a virtual environment without the system's packages).
    let enabled = site.getattr("ENABLE_USER_SITE");
    if enabled.is_ok_and(|enabled| enabled.is_truthy().unwrap_or(false)) {
        let user = site.call_method0("getusersitepackages");
        known.extend(user.ok().and_then(|user| folder(&user)));
    }
}

/// The absolute entries of `sys.path`. Programs may put objects of any type there.
fn entries(sys: &Bound<'_, PyModule>) -> Vec<PathBuf> {
    let Ok(path) = sys.getattr("path").and_then(|path| path.try_iter()) else {
        return Vec::new();
    };
    path.flatten()
        .filter_map(|entry| folder(&entry))
        .filter(|entry| entry.is_absolute())
        .collect()
}

/// The entries of `PYTHONPATH`, unless the interpreter ignores it (`-E`, `-I`). A relative entry is reduced to the part
/// after `..`.
fn python_path(sys: &Bound<'_, PyModule>) -> Vec<PathBuf> {
    let ignored = sys
        .getattr("flags")
        .and_then(|flags| flags.getattr("ignore_environment"))
        .and_then(|flag| flag.is_truthy());
    match std::env::var_os("PYTHONPATH") {
        Some(value) if !ignored.unwrap_or(false) => std::env::split_paths(&value)
            .map(|entry| plain(&entry))
            // Skips the working directory and its parents.
            .filter(|entry| entry.file_name().is_some())
            .collect(),
        _ => Vec::new(),
    }
}

/// The folder that holds a package's folder.
fn folder_of(package: &Bound<'_, PyAny>) -> Option<PathBuf> {
    let path = package.getattr("__path__").ok()?.get_item(0).ok()?;
    Some(folder(&path)?.parent()?.to_owned())
}

/// The folder that a `str` names; `None` for any other object, from which Python does not import either.
fn folder(entry: &Bound<'_, PyAny>) -> Option<PathBuf> {
    let entry = entry.cast::<PyString>().ok()?;
    let entry: OsString = entry.extract().ok()?;
    Some(plain(Path::new(&entry)))
}

/// The path without `.`, `..` and repeated slashes, as `site` normalizes the entries of `sys.path`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Whether the folder has the usual name for installed packages (`dist-packages` on Debian).
fn usual_name(entry: &Path) -> bool {
    entry
        .file_name()
        .is_some_and(|name| name == "site-packages" || name == "dist-packages")
}

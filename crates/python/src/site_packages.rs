//! Where this interpreter has Python packages installed: the roots in which wheels of NVIDIA's are looked for.
//!
//! Only words are read here (`sys.path`, what `site` says, `PYTHONPATH`), never the file system: what lies in those
//! folders is looked at when something is needed. The folder of the script and the working directory are no roots,
//! although Python imports from them: a file that happens to lie there must not become a library of the process.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Reads the roots anew and hands them to the search, for those that start one.
///
/// Programs change `sys.path` while they run, so this comes before each search. Nothing in here can fail: whatever
/// a program made of `sys.path` or `site`, what cannot be read is left out.
pub fn refresh(py: Python<'_>) {
    cupyrite_pathfinder::set_site_packages(roots(py));
}

/// The roots, in the order in which Python imports from them; those that are not on `sys.path` come last.
///
/// A folder is one if `site` says so, if `PYTHONPATH` names it, if this package was imported from it
/// (`pip install --target`, frozen programs), or if a program put it on `sys.path` and its name is the usual one
/// (`site-packages`, `dist-packages`).
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
    // Python puts three folders on `sys.path` by itself that are no roots whatever their names: that of the script,
    // the working directory, and what becomes of relative entries of `PYTHONPATH`.
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

/// What the module `site`, which is there unless the interpreter was started with `-S`, calls site-packages.
fn said_by_site(site: &Bound<'_, PyAny>, known: &mut Vec<PathBuf>) {
    let all = site
        .call_method0("getsitepackages")
        .and_then(|all| all.try_iter());
    if let Ok(all) = all {
        known.extend(all.flatten().filter_map(|entry| folder(&entry)));
    }
    // None or False: not wanted (`-s`, `-I`, a virtual environment without the system's packages).
    let enabled = site.getattr("ENABLE_USER_SITE");
    if enabled.is_ok_and(|enabled| enabled.is_truthy().unwrap_or(false)) {
        let user = site.call_method0("getusersitepackages");
        known.extend(user.ok().and_then(|user| folder(&user)));
    }
}

/// The absolute entries of `sys.path`. Anything can have been put there.
fn entries(sys: &Bound<'_, PyModule>) -> Vec<PathBuf> {
    let Ok(path) = sys.getattr("path").and_then(|path| path.try_iter()) else {
        return Vec::new();
    };
    path.flatten()
        .filter_map(|entry| folder(&entry))
        .filter(|entry| entry.is_absolute())
        .collect()
}

/// The entries of `PYTHONPATH`, unless the interpreter was told to pass over it (`-E`, `-I`). Of a relative one only
/// the end counts, behind `..`.
fn python_path(sys: &Bound<'_, PyModule>) -> Vec<PathBuf> {
    let ignored = sys
        .getattr("flags")
        .and_then(|flags| flags.getattr("ignore_environment"))
        .and_then(|flag| flag.is_truthy());
    match std::env::var_os("PYTHONPATH") {
        Some(value) if !ignored.unwrap_or(false) => std::env::split_paths(&value)
            .map(|entry| plain(&entry))
            // The working directory itself, or one above it.
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

/// The folder that a `str` names; `None` for any other object, which Python does not import from either.
fn folder(entry: &Bound<'_, PyAny>) -> Option<PathBuf> {
    let entry = entry.cast::<PyString>().ok()?;
    let entry: OsString = entry.extract().ok()?;
    Some(plain(Path::new(&entry)))
}

/// The path without `.`, `..` and doubled slashes, as `site` writes the entries of `sys.path`.
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

/// Whether this is the name of folders in which packages are installed (`dist-packages` on Debian).
fn usual_name(entry: &Path) -> bool {
    entry
        .file_name()
        .is_some_and(|name| name == "site-packages" || name == "dist-packages")
}

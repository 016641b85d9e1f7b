//! CUDA major and version of a library, from file, folder and package names.

use std::path::{Path, PathBuf};

use crate::files::FileEntry;
use crate::loader::elf::DynamicSection;
use crate::search::Finder;
use crate::search::probe::{expand, natural_key};
use crate::search::toolkit;
use crate::table::{self, LIBRARIES, LibraryDescriptor};

/// The CUDA major of a library's dependencies: a library that requires `libnvJitLink.so.13` is for CUDA 13.
pub(crate) fn major_of_needed(dynamic: &DynamicSection) -> Option<u32> {
    dynamic.needed.iter().flatten().find_map(|needed| {
        LIBRARIES.iter().find_map(|row| {
            let index = row.linux_sonames.iter().position(|name| name == needed)?;
            row.linux_majors.get(index).copied()
        })
    })
}

/// The CUDA major of a library's location: from its folder names (`cu13`, `cuda-13.0`, `CUDA/v13.0`), as given or
/// resolved, its wheel, the CUDA runtime beside it, or the toolkit that contains it.
pub(crate) fn major_of_place(
    finder: &Finder<'_>,
    library: &LibraryDescriptor,
    path: &Path,
) -> Option<u32> {
    major_of_folders(path)
        .or_else(|| major_of_folders(&finder.files.resolve(path)?))
        .or_else(|| major_of_wheel(finder, library, path))
        .or_else(|| major_beside(finder, path))
        .or_else(|| {
            let mut roots = path.ancestors().skip(2).take(3);
            roots.find_map(|root| toolkit::major(finder.files, finder.platform, root))
        })
}

/// The CUDA major of a product with one package per major, if only one is installed: `nvidia_cudnn_cu13`.
fn major_of_wheel(finder: &Finder<'_>, library: &LibraryDescriptor, path: &Path) -> Option<u32> {
    let (new, old) = (library.packages.pip, library.packages.pip_cuda12);
    if new == old || new.is_empty() || old.is_empty() {
        return None;
    }
    let root = root_of(&finder.environment.site_packages, path)?;
    match [new, old].map(|package| wheel_versions(finder, root, package).next().is_some()) {
        [true, false] => Some(13),
        [false, true] => Some(12),
        _ => None,
    }
}

fn major_of_folders(path: &Path) -> Option<u32> {
    let number = |text: &str| text.split('.').next()?.parse().ok();
    let mut before = "";
    for part in path.parent()?.components() {
        let part = part.as_os_str().to_str().unwrap_or_default();
        let found = if let Some(rest) = part.strip_prefix("cuda-") {
            number(rest)
        } else if let Some(rest) = part.strip_prefix("cu") {
            number(rest)
        } else if let (Some(rest), "CUDA") = (part.strip_prefix('v'), before) {
            number(rest)
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
        before = part;
    }
    None
}

/// The major of the only CUDA runtime in a library's folder or the three folders above it.
fn major_beside(finder: &Finder<'_>, path: &Path) -> Option<u32> {
    let cudart = table::find_library("cudart")?;
    let platform = finder.platform;
    let folders = path.ancestors().skip(1).take(4);
    folders
        .flat_map(|folder| {
            ["", "lib64", "lib", "bin/x64", "bin"].map(|dir| {
                if dir.is_empty() {
                    folder.to_owned()
                } else {
                    folder.join(dir)
                }
            })
        })
        .find_map(|folder| {
            let names = cudart.names(platform).iter();
            let mut found = names
                .zip(cudart.majors(platform))
                .filter(|(name, _)| {
                    matches!(finder.files.entry(&folder.join(name)), FileEntry::File(_))
                })
                .map(|(_, major)| *major);
            match (found.next(), found.next()) {
                (Some(major), None) => Some(major),
                _ => None,
            }
        })
}

/// The CUDA major of the installed wheels, if it is unambiguous.
pub(crate) fn installed_major(finder: &Finder<'_>) -> Option<u32> {
    let has = |dirs: &[&str]| {
        finder.environment.site_packages.iter().any(|root| {
            let is_folder = |dir: &&str| finder.files.entry(&root.join(dir)) == FileEntry::Folder;
            dirs.iter().any(is_folder)
        })
    };
    let new = has(&["nvidia/cu13"]);
    let old = has(&["nvidia/cuda_runtime", "nvidia/cuda_nvrtc", "nvidia/cublas"]);
    match (new, old) {
        (true, false) => Some(13),
        (false, true) => Some(12),
        _ => None,
    }
}

/// A library's version, from its resolved file name, its package, or the toolkit's folder.
pub(crate) fn version(
    finder: &Finder<'_>,
    library: &LibraryDescriptor,
    path: &Path,
    major: Option<u32>,
) -> Option<String> {
    let real = finder.files.resolve(path);
    let of_file = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let version = name.split_once(".so.")?.1;
        is_version(version).then(|| version.to_owned())
    };
    real.as_deref()
        .and_then(of_file)
        .or_else(|| of_wheel(finder, library, path, major))
        .or_else(|| of_conda(finder, library, path))
        .or_else(|| of_folder(real.as_deref().unwrap_or(path)))
}

/// At least two numbers, separated by dots.
fn is_version(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('.') && text.split('.').all(number)
}

/// The version in the name of a wheel's `.dist-info` folder.
fn of_wheel(
    finder: &Finder<'_>,
    library: &LibraryDescriptor,
    path: &Path,
    major: Option<u32>,
) -> Option<String> {
    let root = root_of(&finder.environment.site_packages, path)?;
    let (new, old) = (library.packages.pip, library.packages.pip_cuda12);
    let packages = if major == Some(12) {
        [old, new]
    } else {
        [new, old]
    };
    packages
        .into_iter()
        .filter(|package| !package.is_empty())
        .find_map(|package| wheel_versions(finder, root, package).next())
}

/// The versions in the names of a package's `.dist-info` folders below a site-packages root.
fn wheel_versions(
    finder: &Finder<'_>,
    root: &Path,
    package: &str,
) -> impl Iterator<Item = String> + use<> {
    // The normalized package name in installed metadata.
    let package = package.replace(['-', '.'], "_").to_lowercase();
    let found = expand(finder.files, root, &format!("{package}-*.dist-info"));
    found
        .into_iter()
        .filter_map(move |folder| between(&folder, &package, ".dist-info"))
}

/// The version in the name of a conda package's record: `conda-meta/name-version-build.json`.
fn of_conda(finder: &Finder<'_>, library: &LibraryDescriptor, path: &Path) -> Option<String> {
    let prefix = finder.environment.conda_prefix.as_deref()?;
    let package = library.packages.conda;
    if package.is_empty() || !path.starts_with(prefix) {
        return None;
    }
    let records = prefix.join("conda-meta");
    let found = expand(finder.files, &records, &format!("{package}-*.json"));
    // Another package's name may begin with this one's; the rest is then not a version.
    found.iter().find_map(|record| {
        let rest = between(record, package, ".json")?;
        let (version, _build) = rest.split_once('-')?;
        is_version(version).then(|| version.to_owned())
    })
}

fn between(path: &Path, package: &str, end: &str) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let rest = name.strip_prefix(package)?.strip_prefix('-')?;
    Some(rest.strip_suffix(end)?.to_owned())
}

/// The version in the name of a toolkit's folder on Windows: `CUDA/v13.0`.
fn of_folder(path: &Path) -> Option<String> {
    path.components().find_map(|part| {
        let version = part.as_os_str().to_str()?.strip_prefix('v')?;
        is_version(version).then(|| version.to_owned())
    })
}

/// The innermost root that contains a path.
fn root_of<'r>(roots: &'r [PathBuf], path: &Path) -> Option<&'r PathBuf> {
    roots
        .iter()
        .filter(|root| path.starts_with(root))
        .max_by_key(|root| root.as_os_str().len())
}

/// The file beside a library whose name is `prefix` and a version: of the library's own major and minor version, else
/// the only one of its major version.
pub(crate) fn companion(finder: &Finder<'_>, path: &Path, prefix: &str) -> Option<PathBuf> {
    let folder = path.parent()?;
    let real = finder.files.resolve(path)?;
    let own = real.file_name()?.to_str()?.split_once(".so.")?.1.to_owned();
    let mut parts = own.split('.');
    if let (Some(major), Some(minor)) = (parts.next(), parts.next()) {
        let exact = folder.join(format!("{prefix}{major}.{minor}"));
        if matches!(finder.files.entry(&exact), FileEntry::File(_)) {
            return Some(exact);
        }
    }
    let mut found = expand(finder.files, folder, &format!("{prefix}*"));
    // A file with several names counts once, by the shortest.
    found.sort_by_key(|file| file.as_os_str().len());
    let mut real: Vec<PathBuf> = Vec::new();
    found.retain(|file| match finder.files.resolve(file) {
        Some(target) if !real.contains(&target) => {
            real.push(target);
            true
        }
        _ => false,
    });
    // Several matches mean a system folder, where the library finds its companions itself.
    found.retain(|file| {
        let name = file.file_name().unwrap_or_default();
        let wanted = natural_key(own.as_ref()).first().map(|(_, number)| *number);
        let rest = name.to_str().and_then(|name| name.strip_prefix(prefix));
        rest.is_some_and(|rest| natural_key(rest.as_ref()).first().map(|(_, n)| *n) == wanted)
    });
    match found.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

//! What Python would import, read from the file system: its path finder's rules, the installers' file lists, and
//! conflicts between packages that write into the same folder.

mod imports;
mod installed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::FileSystem;

use crate::report::{ModuleOrigin, Package};
use crate::rules::CLIENTS;
use imports::{In, same_file};
use installed::{Fate, Installed};

pub(crate) use imports::Imports;
#[cfg(test)]
pub(crate) use installed::base64;

/// NVIDIA's packages whose modules Cupyrite replaces, and Cupyrite's stand-ins for them.
pub(crate) const SHARED_NAMES: &[&str] = &[
    "cuda-bindings",
    "cuda-core",
    "cuda-pathfinder",
    "cuda-python",
];

/// The package with the native module.
pub(crate) const OURS: &str = "cupyrite";

/// What the local label of a stand-in's version begins with; Cupyrite's version follows.
const LABEL: &str = "cupyrite.";

/// The version of Cupyrite that a stand-in with this version belongs to: `0.1.0` of `13.5.0+cupyrite.0.1.0`.
pub(crate) fn stand_in_of(version: &str) -> Option<&str> {
    version.split_once('+')?.1.strip_prefix(LABEL)
}

/// Findings about packages and modules.
#[derive(Debug, Default)]
pub(crate) struct Python {
    pub(crate) packages: Vec<Package>,
    pub(crate) modules: Vec<ModuleOrigin>,
    /// Missing files of Cupyrite.
    pub(crate) missing: Vec<PathBuf>,
    /// Files of Cupyrite with content that no package's list contains.
    pub(crate) changed: Vec<PathBuf>,
    /// Numbers of a peer's files that Cupyrite has overwritten, or that are missing.
    pub(crate) peers_damaged: Vec<(String, usize)>,
    /// Every `cupyrite` on the path.
    pub(crate) copies: Vec<PathBuf>,
    /// A `cuda/__init__` file: Python then ignores all other `cuda` folders.
    pub(crate) cuda_init: Option<PathBuf>,
    /// Where NumPy would come from.
    pub(crate) numpy: Option<PathBuf>,
    /// Packages that load the driver themselves ([`CLIENTS`]): name and version.
    pub(crate) clients: Vec<(String, String)>,
    /// Whether pip is known to be missing: environments that uv made have none.
    pub(crate) without_pip: bool,
    /// Whether the running `cupyrite` was installed by an installer.
    pub(crate) installed: bool,
    /// What the running `cupyrite` was installed from, if it is known.
    pub(crate) source: Option<String>,
    /// Stand-ins that are not beside the installed `cupyrite`.
    pub(crate) absent: Vec<&'static str>,
    /// Stand-ins of another version of Cupyrite: name and version.
    pub(crate) stale: Vec<(String, String)>,
}

/// Examines the relevant packages. `package` is the folder of the running `cupyrite`.
pub(crate) fn look(imports: &Imports<'_>, package: Option<&Path>) -> Python {
    let files = imports.files;
    let names: Vec<&str> = [OURS]
        .into_iter()
        .chain(SHARED_NAMES.iter().copied())
        .collect();
    let installed = Installed::all(imports.path, &names, files);
    let numpy = Installed::all(imports.path, &["numpy"], files);
    let root = package.and_then(Path::parent);
    let same = |a: &Path, b: &Path| same_file(a, b, files);
    // The running package and its stand-ins, if an installer put them here.
    let beside = |p: &&Installed| p.is_ours() && root.is_some_and(|root| same(root, &p.root));
    let native = installed.iter().find(|p| p.name == OURS && beside(p));
    let ours: Vec<&Installed> = match native {
        Some(_) => installed.iter().filter(beside).collect(),
        None => Vec::new(),
    };
    // Whether several packages claim the same file.
    let contested = |root: &Path, relative: &str| {
        let claims = |p: &&Installed| {
            let list = p.files.as_ref();
            list.is_some_and(|list| list.contains_key(relative)) && same(&p.root, root)
        };
        installed.iter().filter(claims).count() > 1
    };

    let mut found = Python {
        copies: imports.all(OURS),
        numpy: imports.find("numpy"),
        clients: Installed::all(imports.path, CLIENTS, files)
            .into_iter()
            .map(|client| (client.name, client.version))
            .collect(),
        without_pip: !imports.path.is_empty() && imports.find("pip").is_none(),
        installed: native.is_some(),
        source: native.and_then(|native| native.source.clone()),
        ..Python::default()
    };
    for package in installed.iter().chain(&numpy) {
        let damaged = package.files.as_ref().map(|list| {
            list.keys()
                .filter(|file| is_module_of_interest(file))
                .filter(|file| {
                    package.fate(file, contested(&package.root, file), files) != Fate::Kept
                })
                .count()
        });
        if let Some(count) = damaged
            && count > 0
            && package.is_peer()
        {
            found.peers_damaged.push((package.name.clone(), count));
        }
        found.packages.push(Package {
            name: package.name.clone(),
            version: package.version.clone(),
            location: package.root.clone(),
            damaged,
            ours: package.is_ours(),
        });
    }
    let Some(root) = root else { return found };
    found.cuda_init = cuda_init(imports);

    if native.is_some() {
        let is_here = |name: &&&str| ours.iter().any(|package| package.name == **name);
        let absent = SHARED_NAMES.iter().filter(|name| !is_here(name));
        found.absent = absent.copied().collect();
        let stale = ours.iter().filter(|package| {
            stand_in_of(&package.version)
                .is_some_and(|version| version != env!("CARGO_PKG_VERSION"))
        });
        found.stale = stale
            .map(|package| (package.name.clone(), package.version.clone()))
            .collect();
    }

    let has_lists = native.is_some_and(|native| native.files.is_some());
    let listed = has_lists.then_some(&ours[..]);
    for (module, expected) in expected_modules(imports, root, listed) {
        let file = imports.find(&module);
        let here = file.as_deref().is_some_and(|file| same(file, &expected));
        let owner = file
            .as_deref()
            .and_then(|file| owner(file, &installed, &contested, files));
        let fate = expected
            .strip_prefix(root)
            .ok()
            .and_then(Path::to_str)
            .and_then(|relative| {
                let lists = |package: &&&Installed| {
                    let list = package.files.as_ref();
                    list.is_some_and(|list| list.contains_key(relative))
                };
                let package = ours.iter().find(lists)?;
                Some(package.fate(relative, contested(root, relative), files))
            });
        match fate {
            Some(Fate::Gone) => found.missing.push(expected.clone()),
            Some(Fate::Changed) if owner.is_none_or(Installed::is_ours) => {
                found.changed.push(expected.clone());
            }
            _ => {}
        }
        found.modules.push(ModuleOrigin {
            ours: here && fate != Some(Fate::Changed),
            peer: owner.is_some_and(Installed::is_peer),
            // A tree without a list belongs to Cupyrite if no other package claims the file.
            package: owner
                .map(|owner| owner.name.clone())
                .or_else(|| (here && fate.is_none()).then(|| OURS.to_owned())),
            module,
            file,
        });
    }
    found
}

/// Cupyrite's modules and their files below `root`: those that the lists of `ours` name, or without lists (a source
/// tree, an unpacked wheel) those that are there.
fn expected_modules(
    imports: &Imports<'_>,
    root: &Path,
    ours: Option<&[&Installed]>,
) -> Vec<(String, PathBuf)> {
    let mut modules: Vec<(String, PathBuf)> = Vec::new();
    match ours {
        Some(ours) => {
            let lists = ours.iter().filter_map(|package| package.files.as_ref());
            for file in lists.flat_map(BTreeMap::keys) {
                if is_module_of_interest(file)
                    && let Some(module) = imports.module_of(file)
                {
                    modules.push((module, root.join(file)));
                }
            }
        }
        None => {
            for top in ["cupyrite", "cuda/bindings", "cuda/core", "cuda/pathfinder"] {
                for module in imports.modules_below(root, top) {
                    let own = Imports {
                        path: &[root.to_owned()],
                        suffixes: imports.suffixes,
                        files: imports.files,
                    };
                    if let Some(file) = own.find(&module) {
                        modules.push((module, file));
                    }
                }
            }
        }
    }
    modules.sort();
    modules.dedup();
    modules
}

/// The package whose list has this file with this content.
fn owner<'a>(
    file: &Path,
    installed: &'a [Installed],
    contested: &dyn Fn(&Path, &str) -> bool,
    files: &dyn FileSystem,
) -> Option<&'a Installed> {
    let of = |package: &&Installed| {
        let Some(relative) = file.strip_prefix(&package.root).ok().and_then(Path::to_str) else {
            return false;
        };
        package.fate(relative, contested(&package.root, relative), files) == Fate::Kept
    };
    // Two packages may contain identical files: no conflict.
    installed
        .iter()
        .filter(of)
        .max_by_key(|package| package.is_ours())
}

/// Files that several packages may write: modules below `cuda/`, and Cupyrite's own.
fn is_module_of_interest(relative: &str) -> bool {
    let below = ["cuda/", "cupyrite/", "numpy/__init__"];
    below.iter().any(|top| relative.starts_with(top)) && !relative.contains("__pycache__")
}

fn cuda_init(imports: &Imports<'_>) -> Option<PathBuf> {
    imports
        .path
        .iter()
        .find_map(|folder| match imports.in_folder(folder, "cuda") {
            In::Package(_, init) => Some(init),
            In::Module(file) => Some(file),
            _ => None,
        })
}

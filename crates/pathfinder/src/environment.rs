//! What the search reads from the process: variables and the Python installation's folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use crate::table::{DRIVER_DIRS, LIBRARIES, TOOLKIT_ROOTS};

static SITE_PACKAGES: RwLock<Option<Vec<PathBuf>>> = RwLock::new(None);

/// Hands in the folders in which Python packages are installed (`sys.path` will do: folders without NVIDIA
/// wheels cost one look each). Without this call the environment in `VIRTUAL_ENV` is used.
pub fn set_site_packages(roots: Vec<PathBuf>) {
    *SITE_PACKAGES.write().unwrap_or_else(|e| e.into_inner()) = Some(roots);
}

/// The folders in which wheels are looked for.
pub fn site_packages() -> Vec<PathBuf> {
    let handed_in = SITE_PACKAGES
        .read()
        .unwrap_or_else(|e| e.into_inner())
        .clone();
    handed_in.unwrap_or_else(|| {
        variable("VIRTUAL_ENV").map_or_else(Vec::new, |root| site_packages_of(Path::new(&root)))
    })
}

/// The `site-packages` folders of a virtual environment.
pub fn site_packages_of(virtual_env: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["lib", "lib64"]
        .iter()
        .filter_map(|lib| std::fs::read_dir(virtual_env.join(lib)).ok())
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python"))
        .map(|entry| entry.path().join("site-packages"))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    // `lib64` is usually a link to `lib`.
    found.dedup_by_key(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    found
}

/// Everything the search depends on besides the file system; tests make their own.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Roots in which wheels are installed.
    pub site_packages: Vec<PathBuf>,
    /// `CONDA_PREFIX`.
    pub conda_prefix: Option<PathBuf>,
    /// `CUDA_PATH`.
    pub cuda_path: Option<PathBuf>,
    /// `CUDA_HOME`.
    pub cuda_home: Option<PathBuf>,
    /// Toolkit roots to try last.
    pub toolkit_roots: Vec<PathBuf>,
    /// Driver folders to try last.
    pub driver_dirs: Vec<PathBuf>,
    /// `CUPYRITE_LIB_<NAME>`, by library name.
    pub overrides: BTreeMap<&'static str, PathBuf>,
}

impl Environment {
    /// The environment of this process, read now.
    pub fn current() -> Environment {
        let path = |name: &str| variable(name).map(PathBuf::from);
        Environment {
            site_packages: site_packages(),
            conda_prefix: path("CONDA_PREFIX"),
            cuda_path: path("CUDA_PATH"),
            cuda_home: path("CUDA_HOME"),
            toolkit_roots: TOOLKIT_ROOTS.iter().map(PathBuf::from).collect(),
            driver_dirs: DRIVER_DIRS.iter().map(PathBuf::from).collect(),
            overrides: LIBRARIES
                .iter()
                .filter_map(|library| Some((library.name, path(&override_variable(library.name))?)))
                .collect(),
        }
    }
}

/// The variable that overrides where a library is: `CUPYRITE_LIB_NVRTC` for `nvrtc`.
pub fn override_variable(library: &str) -> String {
    format!("CUPYRITE_LIB_{}", library.to_uppercase())
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

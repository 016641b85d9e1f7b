//! The environment of a search: variables and the folders of the Python installation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::table::{DRIVER_DIRS, HEADERS, LIBRARIES, TOOLKIT_ROOTS};

/// The folders passed to [`set_site_packages`]; null before. Lock-free, because a process may fork while another
/// thread holds a lock.
static SITE_PACKAGES: AtomicPtr<Vec<PathBuf>> = AtomicPtr::new(std::ptr::null_mut());

/// The variable that selects a CUDA major where several are installed.
pub const MAJOR_VARIABLE: &str = "CUPYRITE_CUDA_MAJOR";

/// Prefix of the variables that override a library's location.
const OVERRIDE_PREFIX: &str = "CUPYRITE_LIB_";

/// Windows' variable for the program folder.
pub const PROGRAM_FILES: &str = "ProgramFiles";

/// Sets the folders in which Python packages are installed. `sys.path` works: a folder without NVIDIA wheels costs
/// one file system query. Without this call, the search uses the environment in `VIRTUAL_ENV`.
///
/// Each distinct list is leaked, because a search in another thread may be reading the old one.
pub fn set_site_packages(folders: Vec<PathBuf>) {
    if stored_site_packages() == Some(&folders) {
        return;
    }
    let new = Box::into_raw(Box::new(folders));
    SITE_PACKAGES.store(new, Ordering::Release);
}

fn stored_site_packages() -> Option<&'static Vec<PathBuf>> {
    // SAFETY: null, or a leaked box that is immutable once stored.
    unsafe { SITE_PACKAGES.load(Ordering::Acquire).as_ref() }
}

/// The folders in which the search looks for wheels.
pub fn site_packages() -> Vec<PathBuf> {
    stored_site_packages().cloned().unwrap_or_else(|| {
        variable("VIRTUAL_ENV").map_or_else(Vec::new, |root| site_packages_in(Path::new(&root)))
    })
}

/// The `site-packages` folders of a virtual environment. A relative path has none.
pub fn site_packages_in(virtual_env: &Path) -> Vec<PathBuf> {
    if !virtual_env.is_absolute() {
        return Vec::new();
    }
    if cfg!(windows) {
        return vec![virtual_env.join("Lib").join("site-packages")];
    }
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

/// The inputs of a search besides the file system and the loader. A search records and ignores paths that are not
/// absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Site-packages folders.
    pub site_packages: Vec<PathBuf>,
    /// `CONDA_PREFIX`.
    pub conda_prefix: Option<PathBuf>,
    /// `CUDA_PATH`.
    pub cuda_path: Option<PathBuf>,
    /// `CUDA_HOME`.
    pub cuda_home: Option<PathBuf>,
    /// Variables of products that name an installation root (`CUDNN_PATH`), and `ProgramFiles`.
    pub variables: BTreeMap<&'static str, PathBuf>,
    /// Toolkit roots searched last.
    pub toolkit_roots: Vec<PathBuf>,
    /// Driver folders searched last.
    pub driver_dirs: Vec<PathBuf>,
    /// `CUPYRITE_LIB_<NAME>`, by library name.
    pub overrides: BTreeMap<&'static str, PathBuf>,
    /// `CUPYRITE_CUDA_MAJOR`: the required CUDA major.
    pub major: Option<u32>,
    /// The value of `CUPYRITE_CUDA_MAJOR` if it is not a positive number; every search then fails.
    pub rejected_major: Option<String>,
    /// Windows: the installation folders of Nsight products.
    pub nsight_folders: Vec<PathBuf>,
}

impl Environment {
    /// The environment of this process, read now.
    pub fn current() -> Environment {
        let path = |name: &str| variable(name).map(PathBuf::from);
        let (major, rejected_major) = match variable(MAJOR_VARIABLE) {
            Some(value) => parse_major(&value.to_string_lossy()),
            None => (None, None),
        };
        let rows = LIBRARIES.iter().flat_map(|row| row.root_variables);
        let headers = HEADERS.iter().flat_map(|row| row.root_variables);
        Environment {
            site_packages: site_packages(),
            conda_prefix: path("CONDA_PREFIX"),
            cuda_path: path("CUDA_PATH"),
            cuda_home: path("CUDA_HOME"),
            variables: rows
                .chain(headers)
                .chain(cfg!(windows).then_some(&PROGRAM_FILES))
                .filter_map(|name| Some((*name, path(name)?)))
                .collect(),
            toolkit_roots: TOOLKIT_ROOTS.iter().map(PathBuf::from).collect(),
            driver_dirs: DRIVER_DIRS.iter().map(PathBuf::from).collect(),
            overrides: overrides(),
            major,
            rejected_major,
            nsight_folders: Vec::new(),
        }
    }

    /// A variable of [`Environment::variables`].
    pub fn variable(&self, name: &str) -> Option<&Path> {
        self.variables.get(name).map(PathBuf::as_path)
    }
}

/// The `CUPYRITE_LIB_<NAME>` variables. One pass over the environment costs less than a lookup per library.
fn overrides() -> BTreeMap<&'static str, PathBuf> {
    std::env::vars_os()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix(OVERRIDE_PREFIX)?;
            let mut rows = LIBRARIES.iter();
            let row = rows.find(|row| row.name.to_uppercase() == name)?;
            Some((row.name, value.into()))
        })
        .collect()
}

/// Parses a CUDA major; returns the rejected text otherwise.
fn parse_major(value: &str) -> (Option<u32>, Option<String>) {
    match value.trim().parse() {
        Ok(number @ 1..) => (Some(number), None),
        _ => (None, Some(value.to_owned())),
    }
}

/// The variable that overrides a library's location: `CUPYRITE_LIB_NVRTC` for `nvrtc`.
pub fn path_override_variable(library: &str) -> String {
    format!("{OVERRIDE_PREFIX}{}", library.to_uppercase())
}

/// The value of a variable that is set and not empty.
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::parse_major;

    #[test]
    fn majors_are_positive_numbers() {
        assert_eq!(parse_major("13"), (Some(13), None));
        assert_eq!(parse_major(" 12 "), (Some(12), None));
        for wrong in ["0", "-1", "13.0", "cu13", "99999999999"] {
            assert_eq!(parse_major(wrong), (None, Some(wrong.to_owned())));
        }
    }
}

//! Environment variables: which are relevant, and their values. Invalid values are judged by `rules/variables.rs`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use cupyrite_pathfinder::table;
use cupyrite_sys::loader::variables::{PREFIX, is_unknown};

use crate::report::Variable;

/// The process's variables, or a test's.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// Others that affect the search or the driver.
const OTHERS: &[&str] = &[
    "CONDA_PREFIX",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_PATH",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_HOME",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_PATH",
    "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM",
    "CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];

/// The relevant variables that are set, by name.
pub(crate) fn that_matter(variables: &Variables) -> Vec<Variable> {
    let products = product_variables();
    variables
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| {
            let name = name.to_str()?;
            let matters =
                name.starts_with(PREFIX) || OTHERS.contains(&name) || products.contains(&name);
            matters.then(|| Variable {
                name: name.to_owned(),
                value: value.to_string_lossy().into_owned(),
            })
        })
        .collect()
}

/// Variables that name the root of one product: `CUDNN_PATH`, ...
pub(crate) fn product_variables() -> Vec<&'static str> {
    let libraries = table::LIBRARIES.iter().flat_map(|row| row.root_variables);
    let headers = table::HEADERS.iter().flat_map(|row| row.root_variables);
    libraries.chain(headers).copied().collect()
}

/// A variable that is set and not empty.
pub(crate) fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    variables
        .get(OsStr::new(name))
        .map(OsString::as_os_str)
        .filter(|value| !value.is_empty())
}

/// Whether a variable is unknown, with which every first use of a library fails.
pub(crate) fn has_unknown(variables: &Variables) -> bool {
    variables
        .iter()
        .any(|(name, given)| !given.is_empty() && name.to_str().is_some_and(is_unknown))
}

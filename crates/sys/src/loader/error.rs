//! Errors of loading a library or resolving a symbol.

use std::ffi::CStr;
use std::fmt;
use std::sync::Mutex;

use cupyrite_pathfinder as pathfinder;

use super::library_path;
use super::{CudaLibrary, SymbolDescriptor};

/// Why a symbol has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// The library was not found.
    LibraryNotFound,
    /// The library was found, and the system loader failed to load it.
    LibraryFailed,
    /// The library does not export the function: it is older than the function.
    SymbolNotFound,
    /// `CUPYRITE_DEVICE`, `CUPYRITE_RUNTIME` or `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM` has an invalid value, or a
    /// variable that begins with `CUPYRITE_` is unknown.
    InvalidSelection,
    /// The CPU device, or its runtime, is selected in a program that does not contain it.
    NoCpuDevice,
}

/// A missing library or symbol. `Display` names the searched locations and the command that fixes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// What is missing.
    pub kind: LoadErrorKind,
    /// The library's name: `cuda`, `nvrtc`, `nvJitLink`.
    pub library: &'static str,
    /// The exported name of the missing symbol.
    pub symbol: Option<&'static CStr>,
    /// The failed search for the library, with every searched location.
    pub search: Option<Box<pathfinder::LoadError>>,
    message: String,
}

impl LoadError {
    pub(super) fn library(
        library: CudaLibrary,
        error: pathfinder::LoadError,
        prefix: &str,
    ) -> LoadError {
        LoadError {
            kind: match error.kind {
                pathfinder::LoadErrorKind::Failed => LoadErrorKind::LibraryFailed,
                _ => LoadErrorKind::LibraryNotFound,
            },
            library: library.name(),
            symbol: None,
            message: format!("{prefix}{error}"),
            search: Some(Box::new(error)),
        }
    }

    pub(super) fn symbol(library: CudaLibrary, symbol: &SymbolDescriptor) -> LoadError {
        let name = symbol.export.to_string_lossy();
        let location = match (library_path(library), library) {
            (Some(path), _) => format!("lib{} ({})", library.name(), path.display()),
            (None, CudaLibrary::Driver | CudaLibrary::Nvml) => "the embedded CPU device".to_owned(),
            (None, CudaLibrary::Runtime) => "Cupyrite's own runtime".to_owned(),
            (None, _) => format!("lib{}", library.name()),
        };
        let since = match symbol.version {
            0 => String::new(),
            v => format!(" (added in CUDA {}.{})", v / 1000, v % 1000 / 10),
        };
        let advice = library.upgrade_advice();
        LoadError {
            kind: LoadErrorKind::SymbolNotFound,
            library: library.name(),
            symbol: Some(symbol.export),
            search: None,
            message: format!("function {name}{since} not found in {location}; {advice}"),
        }
    }

    pub(super) fn plain(kind: LoadErrorKind, message: String) -> LoadError {
        LoadError {
            kind,
            library: CudaLibrary::Driver.name(),
            symbol: None,
            search: None,
            message,
        }
    }

    /// The error of an environment variable with an invalid value.
    pub fn selection(variable: &str, value: &str, expected: &str) -> LoadError {
        LoadError::plain(
            LoadErrorKind::InvalidSelection,
            format!("{variable}='{value}': expected {expected}"),
        )
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// Gives an error the lifetime of the process, each distinct error once, so that callers can return a plain reference.
pub(super) fn intern(error: LoadError) -> &'static LoadError {
    static KNOWN: Mutex<Vec<&'static LoadError>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(same) = known.iter().find(|old| ***old == error) {
        return same;
    }
    let error: &'static LoadError = Box::leak(Box::new(error));
    known.push(error);
    error
}

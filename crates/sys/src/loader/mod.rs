//! Symbols that resolve on first use, and the choice of the device.
//!
//! A library is opened when its first symbol is resolved, a symbol is looked up on its first call, and a resolved
//! symbol costs one atomic load. A missing library or symbol is an error value ([`LoadError`]) that lists the searched
//! locations and the command that fixes it. A failed attempt is not cached: a library installed meanwhile is found by
//! the next call.
//!
//! The driver's symbols come from one of two backends. `CUPYRITE_DEVICE` chooses it once per process, on first use:
//!
//! | value | meaning |
//! |---|---|
//! | `auto` (or unset) | the NVIDIA driver where its library exists, else the CPU device |
//! | `gpu` | the NVIDIA driver; an error if its library is missing |
//! | `cpu` | the CPU device |
//!
//! A program registers its CPU device with [`register_cpu_device`]: linked, or in a shared library ([`cpu_library`]). A
//! `libcuda.so.1` that is the CPU device counts as the CPU device. NVML makes the same choice on its own first use ([`nvml_backend`]). The runtime API has a choice of its own ([`runtime_source`]). All other
//! libraries are the installed ones.

use std::path::PathBuf;
use std::sync::OnceLock;

use cupyrite_pathfinder as pathfinder;
use pathfinder::loader::LibraryHandle;

mod cpu;
pub mod cpu_library;
mod driver;
mod error;
mod library;
mod nvml;
mod runtime;
mod symbol;
pub mod variables;

pub use cpu::{
    CpuDevice, CpuDeviceSource, EntryPointLookup, NEVER_REUSED, file_of, register_cpu_device,
};
pub use driver::{
    Backend, PER_THREAD_DEFAULT_STREAM_VALUES, backend_reason, choose_cpu_device, chosen_backend,
    driver_backend, is_cpu_fallback, per_thread_default_stream,
    requested_per_thread_default_stream, selects_per_thread_default_stream,
    set_per_thread_default_stream,
};
pub use error::{LoadError, LoadErrorKind};
pub use library::CudaLibrary;
pub use nvml::nvml_backend;
pub use runtime::{
    RuntimeSource, chosen_runtime, register_own_runtime, runtime_reason, runtime_source,
};
pub use symbol::{
    INTERPOSED, PerThreadVariant, SymbolDescriptor, SymbolInterposer, SymbolSlot, SymbolTable,
    wrap_symbols,
};

/// The loaded libraries, by [`CudaLibrary`]. The driver's is part of the chosen driver.
static LOADED: [OnceLock<pathfinder::LoadedLibrary>; CudaLibrary::COUNT] =
    [const { OnceLock::new() }; CudaLibrary::COUNT];

/// The file a library was loaded from; `None` before its first use and for the CPU device.
pub fn library_path(library: CudaLibrary) -> Option<PathBuf> {
    loaded_library(library).map(|loaded| loaded.path.clone())
}

/// The search step that found a library, in the words of `cuda.pathfinder`; `None` as for [`library_path`].
pub fn library_found_via(library: CudaLibrary) -> Option<String> {
    loaded_library(library).map(|loaded| loaded.found_via.to_string())
}

/// The library if it is loaded; loads nothing.
fn loaded_library(library: CudaLibrary) -> Option<&'static pathfinder::LoadedLibrary> {
    match library {
        CudaLibrary::Driver => driver::loaded_library(),
        library => LOADED[library as usize].get(),
    }
}

/// Loads a library other than the driver on first use.
fn load_library(library: CudaLibrary) -> Result<&'static pathfinder::LoadedLibrary, LoadError> {
    let cell = &LOADED[library as usize];
    if let Some(loaded) = cell.get() {
        return Ok(loaded);
    }
    variables::check_names()?;
    let loaded =
        pathfinder::load(library.name()).map_err(|error| LoadError::library(library, error, ""))?;
    Ok(cell.get_or_init(|| loaded))
}

/// The handle of a library, for symbols outside the generated tables. Loads the library on first use. `None` for the
/// CPU device, which has no library.
///
/// # Errors
///
/// The errors of [`SymbolTable::get`].
pub fn library_handle(library: CudaLibrary) -> Result<Option<LibraryHandle>, LoadError> {
    match library {
        CudaLibrary::Driver => driver::library_handle(),
        CudaLibrary::Nvml if nvml_backend()? == Backend::Cpu => Ok(None),
        CudaLibrary::Runtime => runtime::library_handle(),
        library => load_library(library).map(|loaded| Some(loaded.handle)),
    }
}

#[cfg(test)]
mod tests;

//! The runtime API's two sources: NVIDIA's `libcudart`, and this project's runtime on top of the chosen driver.
//!
//! `CUPYRITE_RUNTIME` chooses the source once per process, on first use:
//!
//! | value | meaning |
//! |---|---|
//! | `auto` (or unset) | on the CPU device this project's runtime; else `libcudart` of the driver's CUDA major, or this project's runtime where none is installed |
//! | `cudart` | `libcudart`; an error if it is not installed |
//! | `own` | this project's runtime, on any driver |

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use cupyrite_pathfinder as pathfinder;
use pathfinder::loader::LibraryHandle;

use super::symbol::lookup_export;
use super::{
    Backend, CudaLibrary, EntryPointLookup, LoadError, LoadErrorKind, PerThreadVariant,
    SymbolDescriptor, driver, driver_backend, per_thread_default_stream,
};
use crate::generated::runtime::CUDA12_EXPORTS;

/// Where the runtime API's symbols come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeSource {
    /// NVIDIA's `libcudart`, and its CUDA major.
    Cudart(u32),
    /// This project's runtime.
    Own,
}

static OWN: OnceLock<EntryPointLookup> = OnceLock::new();
static CHOSEN: OnceLock<(RuntimeSource, &'static str)> = OnceLock::new();

/// Registers this project's runtime. Called once at start-up; later calls have no effect.
pub fn register_own_runtime(lookup: EntryPointLookup) {
    let _ = OWN.set(lookup);
}

/// Where the runtime's symbols come from. `CUPYRITE_RUNTIME` chooses it on first use, for the rest of the process.
///
/// # Errors
///
/// `CUPYRITE_RUNTIME` or `CUPYRITE_DEVICE` is invalid, the selected library is missing, or an installed library does not
/// load. An error makes no choice.
pub fn runtime_source() -> Result<RuntimeSource, LoadError> {
    chosen().map(|(source, _)| source)
}

/// Why the source was chosen, as a sentence without its full stop. Chooses the source on first use.
///
/// # Errors
///
/// The errors of [`runtime_source`].
pub fn runtime_reason() -> Result<&'static str, LoadError> {
    chosen().map(|(_, reason)| reason)
}

/// The source if it is chosen; chooses nothing.
pub fn chosen_runtime() -> Option<RuntimeSource> {
    CHOSEN.get().map(|(source, _)| *source)
}

fn chosen() -> Result<(RuntimeSource, &'static str), LoadError> {
    if let Some(chosen) = CHOSEN.get() {
        return Ok(*chosen);
    }
    let value = std::env::var_os("CUPYRITE_RUNTIME");
    let value = value.as_deref().map(|value| value.to_string_lossy());
    let chosen = choose(
        parse_selection(value.as_deref())?,
        OWN.get().is_some(),
        driver_backend,
        || load().map(major_of),
    )?;
    // Two threads may choose concurrently, from the same inputs; the first choice is kept.
    let chosen = CHOSEN.get_or_init(|| chosen);
    log::info!("runtime: {}", chosen.1);
    Ok(*chosen)
}

/// The values of `CUPYRITE_RUNTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuntimeSelection {
    Auto,
    Cudart,
    Own,
}

fn parse_selection(value: Option<&str>) -> Result<RuntimeSelection, LoadError> {
    match value.map(str::trim).unwrap_or("") {
        "" => Ok(RuntimeSelection::Auto),
        v if v.eq_ignore_ascii_case("auto") => Ok(RuntimeSelection::Auto),
        v if v.eq_ignore_ascii_case("cudart") => Ok(RuntimeSelection::Cudart),
        v if v.eq_ignore_ascii_case("own") => Ok(RuntimeSelection::Own),
        other => Err(LoadError::selection(
            "CUPYRITE_RUNTIME",
            other,
            "auto, cudart or own",
        )),
    }
}

fn choose(
    selection: RuntimeSelection,
    has_own: bool,
    driver: impl FnOnce() -> Result<Backend, LoadError>,
    load: impl FnOnce() -> Result<u32, LoadError>,
) -> Result<(RuntimeSource, &'static str), LoadError> {
    let own = |reason| {
        if has_own {
            return Ok((RuntimeSource::Own, reason));
        }
        Err(LoadError::plain(
            LoadErrorKind::NoCpuDevice,
            format!("{reason}; this program was built without it"),
        ))
    };
    let backend = match driver() {
        // An invalid `CUPYRITE_DEVICE` is an error, whichever runtime is selected.
        Err(error) if error.kind == LoadErrorKind::InvalidSelection => return Err(error),
        // Without a driver, the runtime reports what is missing.
        other => other.unwrap_or(Backend::Gpu),
    };
    match selection {
        RuntimeSelection::Own => return own("CUPYRITE_RUNTIME=own selects Cupyrite's own runtime"),
        RuntimeSelection::Cudart => {
            let major = load()?;
            let reason = "CUPYRITE_RUNTIME=cudart selects libcudart";
            return Ok((RuntimeSource::Cudart(major), reason));
        }
        RuntimeSelection::Auto => {}
    }
    if backend == Backend::Cpu {
        return own("the embedded CPU device uses Cupyrite's own runtime");
    }
    match load() {
        Ok(major) => Ok((RuntimeSource::Cudart(major), "libcudart is installed")),
        Err(error) if error.kind == LoadErrorKind::LibraryNotFound && has_own => {
            own("no libcudart is installed; CUPYRITE_RUNTIME=auto selects Cupyrite's own runtime")
        }
        Err(error) => Err(error),
    }
}

/// Loads `libcudart` of the driver's CUDA major, because a newer one does not work with that driver; if that major is
/// not installed, of any major.
fn load() -> Result<&'static pathfinder::LoadedLibrary, LoadError> {
    let cell = &super::LOADED[CudaLibrary::Runtime as usize];
    if let Some(loaded) = cell.get() {
        return Ok(loaded);
    }
    let mut environment = pathfinder::Environment::current();
    let any = || pathfinder::load(CudaLibrary::Runtime.name());
    let loaded = match (environment.major, driver::cuda_major()) {
        (None, Some(major @ (12 | 13))) => {
            environment.major = Some(major);
            match pathfinder::Finder::new(&environment).load(CudaLibrary::Runtime.name()) {
                Err(error) if error.kind == pathfinder::LoadErrorKind::NotFound => any(),
                result => result,
            }
        }
        _ => any(),
    };
    let loaded = loaded.map_err(|error| LoadError::library(CudaLibrary::Runtime, error, ""))?;
    Ok(cell.get_or_init(|| loaded))
}

/// The CUDA major of a loaded `libcudart`, which `cudaRuntimeGetVersion` reports without a driver; 0 if it fails.
fn major_of(loaded: &pathfinder::LoadedLibrary) -> u32 {
    let address = loaded.handle.symbol(c"cudaRuntimeGetVersion");
    if address.is_null() {
        return 0;
    }
    let mut version = 0;
    // SAFETY: the library exports the symbol with this signature and stores one integer.
    let status = unsafe {
        let get =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(address);
        get(&raw mut version)
    };
    match u32::try_from(version / 1000) {
        Ok(major) if status == 0 => major,
        _ => 0,
    }
}

/// The handle of `libcudart`; `None` for this project's runtime.
pub(super) fn library_handle() -> Result<Option<LibraryHandle>, LoadError> {
    match runtime_source()? {
        RuntimeSource::Cudart(_) => load().map(|loaded| Some(loaded.handle)),
        RuntimeSource::Own => Ok(None),
    }
}

pub(super) fn symbol(symbol: &SymbolDescriptor) -> Result<*const c_void, LoadError> {
    let per_thread = symbol.per_thread != PerThreadVariant::None && per_thread_default_stream();
    match runtime_source()? {
        RuntimeSource::Own => Ok(OWN.get().map_or(std::ptr::null(), |lookup| {
            lookup_export(symbol, per_thread, lookup)
        })),
        RuntimeSource::Cudart(major) => {
            let handle = load()?.handle;
            let Some(export) = export_name(symbol.export, major) else {
                return Ok(std::ptr::null());
            };
            let symbol = SymbolDescriptor { export, ..*symbol };
            Ok(lookup_export(&symbol, per_thread, |name| {
                handle.symbol(name).cast_const()
            }))
        }
    }
}

/// The name by which a library of a CUDA major exports the function that CUDA 13 exports as `export`; `None` if it has
/// no function of that signature.
fn export_name(export: &'static CStr, major: u32) -> Option<&'static CStr> {
    if major != 12 {
        return Some(export);
    }
    match CUDA12_EXPORTS.iter().find(|(name, _)| *name == export) {
        Some((_, older)) => *older,
        None => Some(export),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(kind: LoadErrorKind) -> LoadError {
        LoadError::plain(kind, "nothing".to_owned())
    }

    #[test]
    fn runtime_selection_values() {
        for (value, expected) in [
            (None, RuntimeSelection::Auto),
            (Some(""), RuntimeSelection::Auto),
            (Some("AUTO"), RuntimeSelection::Auto),
            (Some(" cudart "), RuntimeSelection::Cudart),
            (Some("own"), RuntimeSelection::Own),
        ] {
            assert_eq!(parse_selection(value), Ok(expected), "{value:?}");
        }
        let error = parse_selection(Some("cuda")).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::InvalidSelection);
        assert!(error.to_string().contains("cudart"), "{error}");
    }

    #[test]
    fn the_cpu_device_uses_its_own_runtime() {
        let chosen = choose(
            RuntimeSelection::Auto,
            true,
            || Ok(Backend::Cpu),
            || panic!("loads a library"),
        );
        assert_eq!(chosen.unwrap().0, RuntimeSource::Own);
        let error = choose(
            RuntimeSelection::Auto,
            false,
            || Ok(Backend::Cpu),
            || panic!("loads a library"),
        );
        assert_eq!(error.unwrap_err().kind, LoadErrorKind::NoCpuDevice);
    }

    #[test]
    fn a_gpu_uses_the_installed_runtime() {
        let choose = |selection, load: Result<u32, LoadErrorKind>| {
            choose(
                selection,
                true,
                || Ok(Backend::Gpu),
                || load.map_err(failing),
            )
            .map(|(source, _)| source)
            .map_err(|e| e.kind)
        };
        assert_eq!(
            choose(RuntimeSelection::Auto, Ok(12)),
            Ok(RuntimeSource::Cudart(12))
        );
        assert_eq!(
            choose(RuntimeSelection::Own, Ok(12)),
            Ok(RuntimeSource::Own)
        );
        let missing = Err(LoadErrorKind::LibraryNotFound);
        assert_eq!(
            choose(RuntimeSelection::Auto, missing),
            Ok(RuntimeSource::Own)
        );
        assert_eq!(
            choose(RuntimeSelection::Cudart, missing),
            Err(LoadErrorKind::LibraryNotFound)
        );
        assert_eq!(
            choose(RuntimeSelection::Auto, Err(LoadErrorKind::LibraryFailed)),
            Err(LoadErrorKind::LibraryFailed)
        );
    }

    #[test]
    fn without_a_driver_the_runtime_reports_the_error() {
        let missing = || Err(failing(LoadErrorKind::LibraryNotFound));
        let chosen = choose(RuntimeSelection::Auto, true, missing, || Ok(13)).unwrap();
        assert_eq!(chosen.0, RuntimeSource::Cudart(13));
        let wrong = || Err(failing(LoadErrorKind::InvalidSelection));
        let error = choose(RuntimeSelection::Auto, true, wrong, || Ok(13)).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::InvalidSelection);
    }

    #[test]
    fn cuda_12_has_todays_functions_under_other_names() {
        for (name, major, expected) in [
            (c"cudaGraphAddNode", 13, Some(c"cudaGraphAddNode")),
            (c"cudaGraphAddNode", 12, Some(c"cudaGraphAddNode_v2")),
            (
                c"cudaStreamGetCaptureInfo",
                12,
                Some(c"cudaStreamGetCaptureInfo_v3"),
            ),
            (c"cudaMemcpyBatchAsync", 12, None),
            (c"cudaMalloc", 12, Some(c"cudaMalloc")),
        ] {
            assert_eq!(
                export_name(name, major),
                expected,
                "{name:?} of CUDA {major}"
            );
        }
    }
}

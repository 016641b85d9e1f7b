//! The runtime API's two sources: NVIDIA's `libcudart`, and the runtime of this project over whichever driver is in use.
//!
//! `CUPYRITE_RUNTIME` chooses, once, on first use:
//!
//! | value | meaning |
//! |---|---|
//! | `auto` (or unset) | on the CPU device this project's runtime; else `libcudart` of the driver's CUDA major, or where none is installed this project's |
//! | `cudart` | `libcudart`; an error where there is none |
//! | `own` | this project's runtime, on any driver |

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use cupyrite_pathfinder as pathfinder;
use pathfinder::loader::Handle;

use super::{
    Backend, CudaLibrary, EntryPointLookup, LoadError, LoadErrorKind, Source, SymbolDescriptor,
    driver, driver_backend, per_thread_default_stream, with_export,
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

/// Plugs this project's runtime in: `get_proc` gives the address of an entry point by its exported name
/// (`cudaMemcpy`, `cudaMemcpy_ptds`), or null. Called once at start-up; later calls change nothing.
pub fn register_own_runtime(get_proc: EntryPointLookup) {
    let _ = OWN.set(get_proc);
}

/// Where the runtime's symbols come from, chosen on first use by `CUPYRITE_RUNTIME` and the same for the rest of the
/// process.
///
/// # Errors
///
/// `CUPYRITE_RUNTIME` or `CUPYRITE_DEVICE` means nothing, the library it asks for is not there, or the library is there
/// and does not load. Nothing is chosen then.
pub fn runtime_source() -> Result<RuntimeSource, LoadError> {
    chosen().map(|(source, _)| source)
}

/// Why that source was chosen, as a sentence without its full stop; chooses if need be.
///
/// # Errors
///
/// As [`runtime_source`].
pub fn runtime_reason() -> Result<&'static str, LoadError> {
    chosen().map(|(_, reason)| reason)
}

/// The source if it was chosen already; chooses nothing.
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
        selection(value.as_deref())?,
        OWN.get().is_some(),
        driver_backend,
        || load().map(major),
    )?;
    // Two threads may get here together: both chose from the same facts, the first one counts.
    let chosen = CHOSEN.get_or_init(|| chosen);
    log::info!("runtime: {}", chosen.1);
    Ok(*chosen)
}

/// What `CUPYRITE_RUNTIME` may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selection {
    Auto,
    Cudart,
    Own,
}

fn selection(value: Option<&str>) -> Result<Selection, LoadError> {
    match value.map(str::trim).unwrap_or("") {
        "" => Ok(Selection::Auto),
        v if v.eq_ignore_ascii_case("auto") => Ok(Selection::Auto),
        v if v.eq_ignore_ascii_case("cudart") => Ok(Selection::Cudart),
        v if v.eq_ignore_ascii_case("own") => Ok(Selection::Own),
        other => Err(LoadError::plain(
            LoadErrorKind::InvalidSelection,
            format!(
                "CUPYRITE_RUNTIME={other:?} means nothing: it is auto (the default), cudart or own"
            ),
        )),
    }
}

fn choose(
    selection: Selection,
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
            format!("{reason}, but this program was built without it"),
        ))
    };
    let backend = match driver() {
        // A word that means nothing is told, whichever runtime was asked for.
        Err(error) if error.kind == LoadErrorKind::InvalidSelection => return Err(error),
        // Without a driver the runtime itself says what is missing.
        other => other.unwrap_or(Backend::Gpu),
    };
    match selection {
        Selection::Own => return own("CUPYRITE_RUNTIME=own asks for Cupyrite's own runtime"),
        Selection::Cudart => {
            let major = load()?;
            let reason = "CUPYRITE_RUNTIME=cudart asks for libcudart";
            return Ok((RuntimeSource::Cudart(major), reason));
        }
        Selection::Auto => {}
    }
    if backend == Backend::Cpu {
        return own("on the embedded CPU device the runtime is Cupyrite's own");
    }
    match load() {
        Ok(major) => Ok((RuntimeSource::Cudart(major), "libcudart is installed")),
        Err(error) if error.kind == LoadErrorKind::LibraryNotFound && has_own => {
            own("no libcudart is installed, so the runtime is Cupyrite's own")
        }
        Err(error) => Err(error),
    }
}

/// `libcudart` in the driver's major (a newer one would not work with it), or where that is not there, any.
fn load() -> Result<&'static pathfinder::Loaded, LoadError> {
    let place = &super::LOADED[CudaLibrary::Runtime as usize];
    if let Some(loaded) = place.get() {
        return Ok(loaded);
    }
    let mut environment = pathfinder::Environment::current();
    let any = || pathfinder::load(CudaLibrary::Runtime.name());
    let loaded = match (environment.major, driver_major()) {
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
    Ok(place.get_or_init(|| loaded))
}

/// The CUDA major of NVIDIA's driver; `None` where there is none.
fn driver_major() -> Option<u32> {
    match driver().ok()?.source {
        Source::Gpu { version, .. } if version > 0 => u32::try_from(version / 1000).ok(),
        _ => None,
    }
}

/// The library's own major, which it tells without a driver.
fn major(loaded: &pathfinder::Loaded) -> u32 {
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

/// `libcudart`'s handle; `None` where the runtime is this project's.
pub(super) fn handle() -> Result<Option<Handle>, LoadError> {
    match runtime_source()? {
        RuntimeSource::Cudart(_) => load().map(|loaded| Some(loaded.handle)),
        RuntimeSource::Own => Ok(None),
    }
}

pub(super) fn symbol(row: &SymbolDescriptor) -> Result<*const c_void, LoadError> {
    let per_thread = row.per_thread != super::PerThreadVariant::None && per_thread_default_stream();
    match runtime_source()? {
        RuntimeSource::Own => Ok(OWN.get().map_or(std::ptr::null(), |get_proc| {
            with_export(row, per_thread, get_proc)
        })),
        RuntimeSource::Cudart(major) => {
            let handle = load()?.handle;
            let Some(export) = exported(row.export, major) else {
                return Ok(std::ptr::null());
            };
            let row = SymbolDescriptor { export, ..*row };
            Ok(with_export(&row, per_thread, |name| {
                handle.symbol(name).cast_const()
            }))
        }
    }
}

/// The name under which a library of a CUDA major exports what CUDA 13 exports as `export`; `None` where it has no
/// function of that signature.
fn exported(export: &'static CStr, major: u32) -> Option<&'static CStr> {
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
    fn selection_words() {
        for (value, expected) in [
            (None, Selection::Auto),
            (Some(""), Selection::Auto),
            (Some("AUTO"), Selection::Auto),
            (Some(" cudart "), Selection::Cudart),
            (Some("own"), Selection::Own),
        ] {
            assert_eq!(selection(value), Ok(expected), "{value:?}");
        }
        let error = selection(Some("cuda")).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::InvalidSelection);
        assert!(error.to_string().contains("cudart"), "{error}");
    }

    #[test]
    fn the_cpu_device_has_its_own_runtime() {
        let chosen = choose(
            Selection::Auto,
            true,
            || Ok(Backend::Cpu),
            || panic!("nothing is to be loaded"),
        );
        assert_eq!(chosen.unwrap().0, RuntimeSource::Own);
        let error = choose(
            Selection::Auto,
            false,
            || Ok(Backend::Cpu),
            || panic!("nothing is to be loaded"),
        );
        assert_eq!(error.unwrap_err().kind, LoadErrorKind::NoCpuDevice);
    }

    #[test]
    fn a_gpu_has_the_installed_one() {
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
            choose(Selection::Auto, Ok(12)),
            Ok(RuntimeSource::Cudart(12))
        );
        assert_eq!(choose(Selection::Own, Ok(12)), Ok(RuntimeSource::Own));
        let missing = Err(LoadErrorKind::LibraryNotFound);
        assert_eq!(choose(Selection::Auto, missing), Ok(RuntimeSource::Own));
        assert_eq!(
            choose(Selection::Cudart, missing),
            Err(LoadErrorKind::LibraryNotFound)
        );
        assert_eq!(
            choose(Selection::Auto, Err(LoadErrorKind::LibraryFailed)),
            Err(LoadErrorKind::LibraryFailed)
        );
    }

    #[test]
    fn without_a_driver_the_runtime_speaks_for_itself() {
        let missing = || Err(failing(LoadErrorKind::LibraryNotFound));
        let chosen = choose(Selection::Auto, true, missing, || Ok(13)).unwrap();
        assert_eq!(chosen.0, RuntimeSource::Cudart(13));
        let wrong = || Err(failing(LoadErrorKind::InvalidSelection));
        let error = choose(Selection::Auto, true, wrong, || Ok(13)).unwrap_err();
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
            assert_eq!(exported(name, major), expected, "{name:?} of CUDA {major}");
        }
    }
}

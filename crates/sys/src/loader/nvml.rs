//! NVML's two sources: the driver's library, and the CPU device.

use std::ffi::c_void;
use std::sync::OnceLock;

use cupyrite_pathfinder as pathfinder;

use super::{
    Backend, CudaLibrary, EntryPointLookup, LoadError, LoadErrorKind, Selection, SymbolDescriptor,
    driver_backend, loaded,
};

static CPU_NVML: OnceLock<EntryPointLookup> = OnceLock::new();
static CHOSEN: OnceLock<Backend> = OnceLock::new();

/// Plugs the CPU device's NVML in. Called once at start-up by whatever contains it; later calls change nothing.
pub fn register_cpu_nvml(get_proc: EntryPointLookup) {
    let _ = CPU_NVML.set(get_proc);
}

/// Where NVML's symbols come from, chosen on first use by `CUPYRITE_DEVICE` and the same for the rest of the process.
///
/// `auto` takes NVIDIA's library where there is one. Where there is none, it takes the CPU device's if the driver's
/// calls go there too: a machine that has a GPU and lacks NVML should be told so.
///
/// # Errors
///
/// `CUPYRITE_DEVICE` means nothing, the library it asks for is not there, or the library is there and does not load.
/// Nothing is chosen then.
pub fn nvml_backend() -> Result<Backend, LoadError> {
    if let Some(backend) = CHOSEN.get() {
        return Ok(*backend);
    }
    let chosen = choose(
        super::asked_for()?,
        CPU_NVML.get().is_some(),
        || loaded(CudaLibrary::Nvml).map(|_| ()),
        || matches!(driver_backend(), Ok(Backend::Cpu)),
    )?;
    // Two threads may get here together: both chose from the same facts, the first one counts.
    Ok(*CHOSEN.get_or_init(|| chosen))
}

fn choose(
    selection: Selection,
    has_cpu: bool,
    load: impl FnOnce() -> Result<(), LoadError>,
    driver_is_cpu: impl FnOnce() -> bool,
) -> Result<Backend, LoadError> {
    if selection == Selection::Cpu {
        return if has_cpu {
            Ok(Backend::Cpu)
        } else {
            Err(LoadError::plain(
                LoadErrorKind::NoCpuDevice,
                "CUPYRITE_DEVICE=cpu asks for the CPU device, but this program was built without its NVML".to_owned(),
            ))
        };
    }
    match load() {
        Ok(()) => Ok(Backend::Gpu),
        Err(error)
            if selection == Selection::Auto
                && has_cpu
                && error.kind == LoadErrorKind::LibraryNotFound
                && driver_is_cpu() =>
        {
            Ok(Backend::Cpu)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn symbol(row: &SymbolDescriptor) -> Result<*const c_void, LoadError> {
    match nvml_backend()? {
        Backend::Gpu => loaded(CudaLibrary::Nvml)
            .map(|loaded: &pathfinder::Loaded| loaded.handle.symbol(row.export).cast_const()),
        Backend::Cpu => Ok(CPU_NVML
            .get()
            .map_or(std::ptr::null(), |get_proc| get_proc(row.export))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(kind: LoadErrorKind) -> impl Fn() -> Result<(), LoadError> {
        move || Err(LoadError::plain(kind, "no library".to_owned()))
    }

    #[test]
    fn an_installed_library_wins_unless_the_cpu_is_asked_for() {
        let choose = |selection, has_cpu| choose(selection, has_cpu, || Ok(()), || true);
        assert_eq!(choose(Selection::Auto, true), Ok(Backend::Gpu));
        assert_eq!(choose(Selection::Gpu, true), Ok(Backend::Gpu));
        assert_eq!(choose(Selection::Cpu, true), Ok(Backend::Cpu));
        let error = choose(Selection::Cpu, false).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::NoCpuDevice);
    }

    #[test]
    fn a_missing_library_leads_to_the_cpu_only_with_its_driver() {
        let missing = failing(LoadErrorKind::LibraryNotFound);
        assert_eq!(
            choose(Selection::Auto, true, &missing, || true),
            Ok(Backend::Cpu)
        );
        for result in [
            choose(Selection::Auto, true, &missing, || false),
            choose(Selection::Auto, false, &missing, || true),
            choose(Selection::Gpu, true, &missing, || true),
        ] {
            assert_eq!(result.unwrap_err().kind, LoadErrorKind::LibraryNotFound);
        }
    }

    #[test]
    fn a_broken_library_is_never_passed_over() {
        let broken = failing(LoadErrorKind::LibraryFailed);
        let result = choose(Selection::Auto, true, broken, || true);
        assert_eq!(result.unwrap_err().kind, LoadErrorKind::LibraryFailed);
    }
}

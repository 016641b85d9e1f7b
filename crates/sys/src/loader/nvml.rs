//! NVML's two backends: the driver's library, and the CPU device.

use std::ffi::c_void;
use std::sync::OnceLock;

use cupyrite_pathfinder as pathfinder;

use super::driver::DeviceSelection;
use super::{
    Backend, CudaLibrary, EntryPointLookup, LoadError, LoadErrorKind, SymbolDescriptor,
    driver_backend, load_library,
};

static CPU_NVML: OnceLock<EntryPointLookup> = OnceLock::new();
static CHOSEN: OnceLock<Backend> = OnceLock::new();

/// Registers the CPU device's NVML. The crate that contains it calls this once at start-up; later calls have no effect.
pub fn register_cpu_nvml(lookup: EntryPointLookup) {
    let _ = CPU_NVML.set(lookup);
}

/// Where NVML's symbols come from. `CUPYRITE_DEVICE` chooses it on first use, for the rest of the process.
///
/// `auto` takes NVIDIA's library if it is installed, and otherwise the CPU device's if the driver is the CPU device too.
/// A machine with a GPU and without NVML gets an error.
///
/// # Errors
///
/// `CUPYRITE_DEVICE` is invalid, the selected library is missing, or an installed library does not load. An error makes
/// no choice.
pub fn nvml_backend() -> Result<Backend, LoadError> {
    if let Some(backend) = CHOSEN.get() {
        return Ok(*backend);
    }
    let chosen = choose(
        DeviceSelection::from_environment()?,
        CPU_NVML.get().is_some(),
        || load_library(CudaLibrary::Nvml).map(|_| ()),
        || matches!(driver_backend(), Ok(Backend::Cpu)),
    )?;
    // Two threads may choose at once, from the same facts; the first choice counts.
    Ok(*CHOSEN.get_or_init(|| chosen))
}

fn choose(
    selection: DeviceSelection,
    has_cpu: bool,
    load: impl FnOnce() -> Result<(), LoadError>,
    driver_is_cpu: impl FnOnce() -> bool,
) -> Result<Backend, LoadError> {
    if selection == DeviceSelection::Cpu {
        return if has_cpu {
            Ok(Backend::Cpu)
        } else {
            Err(LoadError::plain(
                LoadErrorKind::NoCpuDevice,
                "CUPYRITE_DEVICE=cpu: this program was built without the NVML of the CPU device"
                    .to_owned(),
            ))
        };
    }
    match load() {
        Ok(()) => Ok(Backend::Gpu),
        Err(error)
            if selection == DeviceSelection::Auto
                && has_cpu
                && error.kind == LoadErrorKind::LibraryNotFound
                && driver_is_cpu() =>
        {
            Ok(Backend::Cpu)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn symbol(symbol: &SymbolDescriptor) -> Result<*const c_void, LoadError> {
    match nvml_backend()? {
        Backend::Gpu => {
            load_library(CudaLibrary::Nvml).map(|loaded: &pathfinder::LoadedLibrary| {
                loaded.handle.symbol(symbol.export).cast_const()
            })
        }
        Backend::Cpu => Ok(CPU_NVML
            .get()
            .map_or(std::ptr::null(), |lookup| lookup(symbol.export))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(kind: LoadErrorKind) -> impl Fn() -> Result<(), LoadError> {
        move || Err(LoadError::plain(kind, "no library".to_owned()))
    }

    #[test]
    fn an_installed_library_wins_unless_cpu_is_selected() {
        let choose = |selection, has_cpu| choose(selection, has_cpu, || Ok(()), || true);
        assert_eq!(choose(DeviceSelection::Auto, true), Ok(Backend::Gpu));
        assert_eq!(choose(DeviceSelection::Gpu, true), Ok(Backend::Gpu));
        assert_eq!(choose(DeviceSelection::Cpu, true), Ok(Backend::Cpu));
        let error = choose(DeviceSelection::Cpu, false).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::NoCpuDevice);
    }

    #[test]
    fn a_missing_library_falls_back_to_the_cpu_only_with_its_driver() {
        let missing = failing(LoadErrorKind::LibraryNotFound);
        assert_eq!(
            choose(DeviceSelection::Auto, true, &missing, || true),
            Ok(Backend::Cpu)
        );
        for result in [
            choose(DeviceSelection::Auto, true, &missing, || false),
            choose(DeviceSelection::Auto, false, &missing, || true),
            choose(DeviceSelection::Gpu, true, &missing, || true),
        ] {
            assert_eq!(result.unwrap_err().kind, LoadErrorKind::LibraryNotFound);
        }
    }

    #[test]
    fn a_broken_library_never_falls_back() {
        let broken = failing(LoadErrorKind::LibraryFailed);
        let result = choose(DeviceSelection::Auto, true, broken, || true);
        assert_eq!(result.unwrap_err().kind, LoadErrorKind::LibraryFailed);
    }
}

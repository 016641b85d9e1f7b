//! NVML's two backends: the driver's library, and the CPU device.

use std::ffi::c_void;
use std::sync::OnceLock;

use cupyrite_pathfinder as pathfinder;

use super::driver::DeviceSelection;
use super::{
    Backend, CudaLibrary, LoadError, LoadErrorKind, SymbolDescriptor, cpu, driver_backend,
    load_library,
};

static CHOSEN: OnceLock<Backend> = OnceLock::new();

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
        cpu::is_registered(),
        || load_library(CudaLibrary::Nvml).map(|loaded| cpu::is_cpu_device(loaded.handle)),
        || matches!(driver_backend(), Ok(Backend::Cpu)),
    )?;
    // Two threads may choose concurrently, from the same inputs; the first choice is kept.
    Ok(*CHOSEN.get_or_init(|| chosen))
}

fn choose(
    selection: DeviceSelection,
    has_cpu: bool,
    load: impl FnOnce() -> Result<bool, LoadError>,
    driver_is_cpu: impl Fn() -> bool,
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
        Ok(false) => Ok(Backend::Gpu),
        // NVML of the CPU device, loaded by its library name. It reports the devices of the same driver.
        Ok(true) if driver_is_cpu() => Ok(Backend::Cpu),
        Ok(true) => Err(LoadError::plain(
            LoadErrorKind::LibraryNotFound,
            "libnvidia-ml.so.1 is that of Cupyrite's CPU device, and the driver is NVIDIA's. Remove its folder from \
             LD_LIBRARY_PATH, or set CUPYRITE_DEVICE=cpu."
                .to_owned(),
        )),
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
        Backend::Cpu => cpu::device().map(|device| (device.nvml)(symbol.export)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(kind: LoadErrorKind) -> impl Fn() -> Result<bool, LoadError> {
        move || Err(LoadError::plain(kind, "no library".to_owned()))
    }

    #[test]
    fn an_installed_library_wins_unless_cpu_is_selected() {
        let choose = |selection, has_cpu| choose(selection, has_cpu, || Ok(false), || true);
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
    fn the_cpu_devices_library_belongs_to_its_driver() {
        let choose =
            |selection, driver_is_cpu| choose(selection, true, || Ok(true), || driver_is_cpu);
        assert_eq!(choose(DeviceSelection::Auto, true), Ok(Backend::Cpu));
        let error = choose(DeviceSelection::Auto, false).unwrap_err();
        assert!(error.to_string().contains("LD_LIBRARY_PATH"), "{error}");
    }

    #[test]
    fn a_broken_library_never_falls_back() {
        let broken = failing(LoadErrorKind::LibraryFailed);
        let result = choose(DeviceSelection::Auto, true, broken, || true);
        assert_eq!(result.unwrap_err().kind, LoadErrorKind::LibraryFailed);
    }
}

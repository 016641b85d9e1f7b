//! The driver's two backends: NVIDIA's driver, and the CPU device.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite_pathfinder as pathfinder;
use pathfinder::loader::LibraryHandle;

use super::symbol::{clear_interposed, lookup_export};
use super::{
    CudaLibrary, EntryPointLookup, LoadError, LoadErrorKind, PerThreadVariant, SymbolDescriptor,
    cpu, variables,
};

/// Where the driver's symbols come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// NVIDIA's driver.
    Gpu,
    /// The embedded CPU device.
    Cpu,
}

static PER_THREAD_DEFAULT_STREAM: AtomicBool = AtomicBool::new(false);
static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Chooses between the legacy (`false`, the default) and the per-thread default stream, for every function of the
/// driver and the runtime that is resolved from now on. Call it before the first use of either.
pub fn set_per_thread_default_stream(per_thread: bool) {
    PER_THREAD_DEFAULT_STREAM.store(per_thread, Ordering::Relaxed);
}

/// The valid values of `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`, for messages.
pub const PER_THREAD_DEFAULT_STREAM_VALUES: &str =
    "an integer: 0 for the legacy default stream, another for the per-thread one";

/// Whether `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM` selects the per-thread default stream. A valid value is read
/// once.
///
/// As in NVIDIA's package, the value is what Python's `int()` accepts: a decimal integer, not an empty text. 0 and an
/// unset variable select the legacy default stream.
///
/// # Errors
/// `InvalidSelection` for any other value.
pub fn requested_per_thread_default_stream() -> Result<bool, LoadError> {
    const NAME: &str = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM";
    static REQUESTED: OnceLock<bool> = OnceLock::new();
    if let Some(requested) = REQUESTED.get() {
        return Ok(*requested);
    }
    let requested = match std::env::var_os(NAME) {
        None => false,
        Some(value) => {
            let value = value.to_string_lossy();
            selects_per_thread_default_stream(&value).ok_or_else(|| {
                LoadError::selection(NAME, &value, PER_THREAD_DEFAULT_STREAM_VALUES)
            })?
        }
    };
    Ok(*REQUESTED.get_or_init(|| requested))
}

/// The rule of [`requested_per_thread_default_stream`]: whether the text is a decimal integer other than 0, in Python's
/// syntax (space around it, a sign, and single underscores between digits are allowed). `None` if it is not an integer.
pub fn selects_per_thread_default_stream(text: &str) -> Option<bool> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = |group: &str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    digits
        .split('_')
        .all(is_number)
        .then(|| digits.bytes().any(|b| !matches!(b, b'0' | b'_')))
}

/// The choice made by [`set_per_thread_default_stream`].
pub fn per_thread_default_stream() -> bool {
    PER_THREAD_DEFAULT_STREAM.load(Ordering::Relaxed)
}

pub(super) struct Driver {
    pub(super) source: DriverSource,
    pub(super) reason: String,
}

pub(super) enum DriverSource {
    Gpu {
        loaded: pathfinder::LoadedLibrary,
        get_proc: Option<GetProcAddress>,
        /// The result of `cuDriverGetVersion`; 0 if the call fails.
        version: c_int,
    },
    Cpu(EntryPointLookup),
}

/// `cuGetProcAddress_v2`: name, result, CUDA version, flags, status of the query (may be null).
pub(super) type GetProcAddress = unsafe extern "C" fn(
    *const std::ffi::c_char,
    *mut *mut c_void,
    c_int,
    u64,
    *mut c_int,
) -> c_int;

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`.
const LEGACY_STREAM: u64 = 1;
/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD_STREAM: u64 = 2;
/// The CUDA version that introduced the per-thread default stream; `cuGetProcAddress` finds no per-thread variant for
/// an older one.
const PER_THREAD_SINCE: c_int = 7000;

/// The backend. `CUPYRITE_DEVICE` chooses it on first use, for the rest of the process.
///
/// # Errors
///
/// `CUPYRITE_DEVICE` is invalid, a variable is unknown ([`variables::check_names`]), the selected driver is missing, or an installed driver does not load. A driver that
/// does not load never falls back to the CPU device, which would hide a broken installation. An error makes no choice.
pub fn driver_backend() -> Result<Backend, LoadError> {
    driver().map(Driver::backend)
}

/// The backend if it is chosen; chooses nothing.
pub fn chosen_backend() -> Option<Backend> {
    DRIVER.get().map(Driver::backend)
}

/// Why the backend was chosen, as a sentence without its full stop. Chooses the backend on first use.
///
/// # Errors
///
/// The errors of [`driver_backend`].
pub fn backend_reason() -> Result<String, LoadError> {
    driver().map(|driver| driver.reason.clone())
}

/// Whether `auto` chose the CPU device because no NVIDIA driver is installed (Python warns about it once). `false`
/// before the choice.
pub fn is_cpu_fallback() -> bool {
    DRIVER.get().is_some_and(|driver| {
        driver.backend() == Backend::Cpu && driver.reason == CPU_FALLBACK_REASON
    })
}

pub(super) const CPU_FALLBACK_REASON: &str = "no NVIDIA driver (libcuda.so.1) is installed on this machine; \
     CUPYRITE_DEVICE=auto selects the embedded CPU device";

impl Driver {
    fn backend(&self) -> Backend {
        match self.source {
            DriverSource::Gpu { .. } => Backend::Gpu,
            DriverSource::Cpu(_) => Backend::Cpu,
        }
    }

    fn library(&self) -> Option<&pathfinder::LoadedLibrary> {
        match &self.source {
            DriverSource::Gpu { loaded, .. } => Some(loaded),
            DriverSource::Cpu(_) => None,
        }
    }
}

/// NVIDIA's driver library, if it is the chosen backend.
pub(super) fn loaded_library() -> Option<&'static pathfinder::LoadedLibrary> {
    DRIVER.get()?.library()
}

/// The driver library's handle; `None` for the CPU device.
pub(super) fn library_handle() -> Result<Option<LibraryHandle>, LoadError> {
    driver().map(|driver| driver.library().map(|loaded| loaded.handle))
}

/// The CUDA major of NVIDIA's driver; `None` if another driver is in use.
pub(super) fn cuda_major() -> Option<u32> {
    match driver().ok()?.source {
        DriverSource::Gpu { version, .. } if version > 0 => u32::try_from(version / 1000).ok(),
        _ => None,
    }
}

/// The values of `CUPYRITE_DEVICE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceSelection {
    Auto,
    Gpu,
    Cpu,
}

impl DeviceSelection {
    pub(super) fn parse(value: Option<&str>) -> Result<DeviceSelection, LoadError> {
        match value.map(str::trim).unwrap_or("") {
            "" => Ok(DeviceSelection::Auto),
            v if v.eq_ignore_ascii_case("auto") => Ok(DeviceSelection::Auto),
            v if v.eq_ignore_ascii_case("gpu") => Ok(DeviceSelection::Gpu),
            v if v.eq_ignore_ascii_case("cpu") => Ok(DeviceSelection::Cpu),
            other => Err(LoadError::selection(
                "CUPYRITE_DEVICE",
                other,
                "auto, gpu or cpu",
            )),
        }
    }

    /// Reads `CUPYRITE_DEVICE`, and refuses unknown variables.
    pub(super) fn from_environment() -> Result<DeviceSelection, LoadError> {
        variables::check_names()?;
        let value = std::env::var_os("CUPYRITE_DEVICE");
        let value = value.as_deref().map(|value| value.to_string_lossy());
        DeviceSelection::parse(value.as_deref())
    }
}

fn driver() -> Result<&'static Driver, LoadError> {
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let chosen = choose(
        DeviceSelection::from_environment()?,
        cpu::is_registered().then_some(|| cpu::device().map(|device| device.driver)),
        || pathfinder::load(CudaLibrary::Driver.name()),
    )?;
    // Two threads may choose concurrently, from the same inputs; the first choice is kept.
    let driver = DRIVER.get_or_init(|| chosen);
    if driver.backend() == Backend::Cpu {
        clear_interposed();
    }
    log::info!("driver: {}", driver.reason);
    Ok(driver)
}

/// Chooses the CPU device with these driver functions, without regard to `CUPYRITE_DEVICE`: in the CPU device's own library
/// there is no other. Has no effect once a backend is chosen.
pub fn choose_cpu_device(lookup: EntryPointLookup) {
    DRIVER.get_or_init(|| Driver {
        source: DriverSource::Cpu(lookup),
        reason: "the runtime belongs to the CPU device".to_owned(),
    });
}

pub(super) fn choose(
    selection: DeviceSelection,
    cpu: Option<impl FnOnce() -> Result<EntryPointLookup, LoadError>>,
    load: impl FnOnce() -> Result<pathfinder::LoadedLibrary, pathfinder::LoadError>,
) -> Result<Driver, LoadError> {
    let has_cpu = cpu.is_some();
    let cpu_device = |reason: &str| match cpu {
        Some(load) => Ok(Driver {
            source: DriverSource::Cpu(load()?),
            reason: reason.to_owned(),
        }),
        None => Err(LoadError::plain(
            LoadErrorKind::NoCpuDevice,
            "CUPYRITE_DEVICE=cpu: this program was built without the CPU device".to_owned(),
        )),
    };
    if selection == DeviceSelection::Cpu {
        return cpu_device("CUPYRITE_DEVICE=cpu selects the embedded CPU device");
    }
    match load() {
        Ok(loaded) if cpu::is_cpu_device(loaded.handle) => {
            let path = loaded.path.display();
            if selection == DeviceSelection::Gpu {
                return Err(LoadError::plain(
                    LoadErrorKind::LibraryNotFound,
                    format!(
                        "CUPYRITE_DEVICE=gpu: libcuda.so.1 ({path}) is Cupyrite's CPU device. Remove its folder from \
                         LD_LIBRARY_PATH, or set CUPYRITE_DEVICE=cpu."
                    ),
                ));
            }
            Ok(Driver {
                source: DriverSource::Cpu(cpu::adopt(loaded.handle, &loaded.path)?.driver),
                reason: format!("libcuda.so.1 is Cupyrite's CPU device ({path})"),
            })
        }
        Ok(loaded) => {
            let path = loaded.path.display();
            let reason = match selection {
                DeviceSelection::Gpu => {
                    format!("CUPYRITE_DEVICE=gpu selects the NVIDIA driver ({path})")
                }
                _ => format!("an NVIDIA driver is installed ({path})"),
            };
            let get_proc = loaded.handle.symbol(c"cuGetProcAddress_v2");
            // SAFETY: the driver exports the symbol with this signature (cuda.h, CUDA 12.0 and later).
            let get_proc = (!get_proc.is_null())
                .then(|| unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(get_proc) });
            let version = driver_version(loaded.handle);
            Ok(Driver {
                source: DriverSource::Gpu {
                    loaded,
                    get_proc,
                    version,
                },
                reason,
            })
        }
        Err(error)
            if selection == DeviceSelection::Auto
                && error.kind == pathfinder::LoadErrorKind::NotFound
                && has_cpu =>
        {
            cpu_device(CPU_FALLBACK_REASON)
        }
        Err(error) => {
            let prefix = match selection {
                DeviceSelection::Gpu => "CUPYRITE_DEVICE=gpu: ",
                _ => "",
            };
            Err(LoadError::library(CudaLibrary::Driver, error, prefix))
        }
    }
}

/// The driver's own CUDA version, which `cuDriverGetVersion` reports before `cuInit`; 0 if it fails.
fn driver_version(driver: LibraryHandle) -> c_int {
    let address = driver.symbol(c"cuDriverGetVersion");
    if address.is_null() {
        return 0;
    }
    let mut version = 0;
    // SAFETY: the driver exports the symbol with this signature and stores one integer.
    let status = unsafe {
        let get =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(address);
        get(&raw mut version)
    };
    if status == 0 { version } else { 0 }
}

pub(super) fn symbol(symbol: &SymbolDescriptor) -> Result<*const c_void, LoadError> {
    let per_thread = symbol.per_thread != PerThreadVariant::None && per_thread_default_stream();
    match &driver()?.source {
        DriverSource::Cpu(lookup) => Ok(lookup_export(symbol, per_thread, lookup)),
        DriverSource::Gpu {
            loaded,
            get_proc,
            version,
        } => {
            // A driver older than this ABI version might return an earlier one, whose arguments differ.
            if let Some(get_proc) = *get_proc
                && symbol.version <= *version
                && let Some(address) = proc_address(get_proc, symbol, per_thread)
            {
                return Ok(address);
            }
            Ok(lookup_export(symbol, per_thread, |name| {
                loaded.handle.symbol(name).cast_const()
            }))
        }
    }
}

/// Asks the driver for exactly this ABI version of a function.
pub(super) fn proc_address(
    get_proc: GetProcAddress,
    symbol: &SymbolDescriptor,
    per_thread: bool,
) -> Option<*const c_void> {
    let (version, flags) = if per_thread {
        (symbol.version.max(PER_THREAD_SINCE), PER_THREAD_STREAM)
    } else {
        (symbol.version, LEGACY_STREAM)
    };
    let mut address = std::ptr::null_mut();
    let mut found: c_int = 0;
    // SAFETY: the name is NUL-terminated, and both results have room for what the driver stores.
    let status = unsafe {
        get_proc(
            symbol.name.as_ptr(),
            &raw mut address,
            version,
            flags,
            &raw mut found,
        )
    };
    (status == 0 && !address.is_null()).then_some(address.cast_const())
}

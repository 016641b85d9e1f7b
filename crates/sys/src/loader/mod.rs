//! Symbols that resolve on first use, and the choice of the device.
//!
//! Nothing is loaded before it is needed. A library is opened when its first symbol is asked for, a symbol is
//! looked up when it is first called, and a resolved symbol costs one atomic load. What is missing is an error
//! value ([`LoadError`]) that says where it was looked for and what to install; a failed attempt is not
//! remembered, so a library installed meanwhile is found by the next call.
//!
//! The driver's symbols come from one of two backends, chosen once, on first use, by `CUPYRITE_DEVICE`:
//!
//! | value | meaning |
//! |---|---|
//! | `auto` (or unset) | the NVIDIA driver where its library exists, else the CPU device |
//! | `gpu` | the NVIDIA driver; an error where there is none |
//! | `cpu` | the CPU device |
//!
//! The CPU device plugs in from above with [`register_cpu_driver`] and [`register_cpu_nvml`]. NVML has the same
//! choice ([`nvml_backend`]), made on its own first use. The runtime API has one of its own ([`runtime_source`]).
//! All other libraries are the installed ones.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use cupyrite_pathfinder as pathfinder;
use pathfinder::loader::Handle;

mod library;
mod nvml;
mod runtime;

pub use library::CudaLibrary;
pub use nvml::{nvml_backend, register_cpu_nvml};
pub use runtime::{
    RuntimeSource, chosen_runtime, register_own_runtime, runtime_reason, runtime_source,
};

/// Where the driver's symbols come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// NVIDIA's driver.
    Gpu,
    /// The CPU device inside this program.
    Cpu,
}

/// Whether a driver function has a second form for the per-thread default stream, and its name's ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerThreadVariant {
    /// One form only.
    None,
    /// `_ptds`: synchronous functions that use the default stream.
    Ptds,
    /// `_ptsz`: functions that take a stream, where 0 means the default stream.
    Ptsz,
}

impl PerThreadVariant {
    /// The ending of the exported name.
    pub const fn suffix(self) -> &'static str {
        match self {
            PerThreadVariant::None => "",
            PerThreadVariant::Ptds => "_ptds",
            PerThreadVariant::Ptsz => "_ptsz",
        }
    }
}

/// One function of a library: a row of a generated table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolDescriptor {
    /// The name without version: `cuMemAlloc`. What `cuGetProcAddress` is asked for.
    pub name: &'static CStr,
    /// The exported symbol of this form: `cuMemAlloc_v2`.
    pub export: &'static CStr,
    /// The CUDA version that introduced this form, as 1000 × major + 10 × minor: 3020. 0 where the library
    /// has no such notion (NVRTC).
    pub version: c_int,
    /// The form for the per-thread default stream.
    pub per_thread: PerThreadVariant,
}

/// The address of one symbol once it is known.
#[derive(Debug)]
pub struct SymbolSlot(AtomicPtr<c_void>);

impl Default for SymbolSlot {
    fn default() -> SymbolSlot {
        SymbolSlot::new()
    }
}

impl SymbolSlot {
    /// An unresolved slot; an array of them is `[const { Slot::new() }; N]`.
    pub const fn new() -> SymbolSlot {
        SymbolSlot(AtomicPtr::new(std::ptr::null_mut()))
    }
}

/// The functions of a library with their slots; generated modules hold one `static` each.
///
/// ```
/// use cupyrite_sys::loader::{CudaLibrary, PerThreadVariant, SymbolDescriptor, SymbolSlot, SymbolTable};
/// static SYMBOLS: [SymbolDescriptor; 1] =
///     [Row { name: c"cuInit", export: c"cuInit", version: 2000, per_thread: PerThread::None }];
/// static SLOTS: [SymbolSlot; 1] = [const { SymbolSlot::new() }; 1];
/// static TABLE: SymbolTable = SymbolTable::new(CudaLibrary::Driver, &SYMBOLS, &SLOTS);
/// assert_eq!(TABLE.symbols()[0].name, c"cuInit");
/// ```
#[derive(Debug)]
pub struct SymbolTable {
    library: CudaLibrary,
    rows: &'static [SymbolDescriptor],
    slots: &'static [SymbolSlot],
}

impl SymbolTable {
    /// A table; `rows` and `slots` have the same length.
    pub const fn new(
        library: CudaLibrary,
        rows: &'static [SymbolDescriptor],
        slots: &'static [SymbolSlot],
    ) -> SymbolTable {
        assert!(rows.len() == slots.len());
        SymbolTable {
            library,
            rows,
            slots,
        }
    }

    /// The library they are of.
    pub const fn library(&self) -> CudaLibrary {
        self.library
    }

    /// The rows, in the order of the generated `Symbol` indices.
    pub const fn symbols(&self) -> &'static [SymbolDescriptor] {
        self.rows
    }

    /// The address of the symbol with this index. After the first success: one atomic load.
    ///
    /// # Errors
    ///
    /// The library or the symbol is missing, or `CUPYRITE_DEVICE` cannot be obeyed.
    ///
    /// # Panics
    ///
    /// If `index` is not below the number of rows; indices come from generated constants.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Result<*const c_void, &'static LoadError> {
        // Acquire pairs with the release in `resolve`: the library's data is visible before its address.
        let address = self.slots[index].0.load(Ordering::Acquire);
        if address.is_null() {
            self.resolve(index)
        } else {
            Ok(address)
        }
    }

    /// Whether the symbol was resolved already; resolves nothing.
    pub fn is_resolved(&self, index: usize) -> bool {
        !self.slots[index].0.load(Ordering::Relaxed).is_null()
    }

    /// Forgets every address, so that each is looked up anew.
    fn forget(&self) {
        for slot in self.slots {
            slot.0.store(std::ptr::null_mut(), Ordering::Release);
        }
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self, index: usize) -> Result<*const c_void, &'static LoadError> {
        let row = &self.rows[index];
        let address = match self.library {
            CudaLibrary::Driver => driver_symbol(row),
            CudaLibrary::Nvml => nvml::symbol(row),
            CudaLibrary::Runtime => runtime::symbol(row),
            library => loaded(library)
                .map(|loaded| library.find(row, |name| loaded.handle.symbol(name).cast_const())),
        }
        .map_err(intern)?;
        if address.is_null() {
            return Err(intern(LoadError::symbol(self.library, row)));
        }
        let address = match INTERPOSER.get() {
            Some(interpose) if is_interposed(self.library) => {
                interpose(self.library, row.export, address)
            }
            _ => address,
        };
        self.slots[index]
            .0
            .store(address.cast_mut(), Ordering::Release);
        Ok(address)
    }
}

// ---------------------------------------------------------------------------------------------------------
// Errors

/// Why a symbol has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// The library is nowhere to be found.
    LibraryNotFound,
    /// The library was found and the system's loader refused it.
    LibraryFailed,
    /// The library is older than the function.
    SymbolNotFound,
    /// `CUPYRITE_DEVICE` or `CUPYRITE_RUNTIME` has a value that means nothing.
    InvalidSelection,
    /// The CPU device, or its runtime, was chosen in a program that does not contain it.
    NoCpuDevice,
}

/// A missing library or symbol. `Display` is written for the person who has to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// What is missing.
    pub kind: LoadErrorKind,
    /// The library's name: `cuda`, `nvrtc`, `nvJitLink`.
    pub library: &'static str,
    /// The exported name of the symbol, if one is missing.
    pub symbol: Option<&'static CStr>,
    /// The search for the library, if it failed: every place looked at.
    pub search: Option<Box<pathfinder::LoadError>>,
    message: String,
}

impl LoadError {
    fn library(library: CudaLibrary, error: pathfinder::LoadError, prefix: &str) -> LoadError {
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

    fn symbol(library: CudaLibrary, row: &SymbolDescriptor) -> LoadError {
        let name = row.export.to_string_lossy();
        let place = match (library_path(library), library) {
            (Some(path), _) => format!("the loaded lib{} ({})", library.name(), path.display()),
            (None, CudaLibrary::Driver | CudaLibrary::Nvml) => "the embedded CPU device".to_owned(),
            (None, CudaLibrary::Runtime) => "Cupyrite's own runtime".to_owned(),
            (None, _) => format!("the loaded lib{}", library.name()),
        };
        let since = match row.version {
            0 => String::new(),
            v => format!("; it came with CUDA {}.{}", v / 1000, v % 1000 / 10),
        };
        let fix = library.newer();
        LoadError {
            kind: LoadErrorKind::SymbolNotFound,
            library: library.name(),
            symbol: Some(row.export),
            search: None,
            message: format!("the function {name} is not in {place}{since}; {fix}"),
        }
    }

    fn plain(kind: LoadErrorKind, message: String) -> LoadError {
        LoadError {
            kind,
            library: CudaLibrary::Driver.name(),
            symbol: None,
            search: None,
            message,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// Errors live as long as the process, each distinct one once, so that callers can pass a plain reference on.
fn intern(error: LoadError) -> &'static LoadError {
    static KNOWN: Mutex<Vec<&'static LoadError>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(same) = known.iter().find(|old| ***old == error) {
        return same;
    }
    let error: &'static LoadError = Box::leak(Box::new(error));
    known.push(error);
    error
}

// ---------------------------------------------------------------------------------------------------------
// The driver

/// Gives the address of an entry point of the CPU device by its exported name (`cuMemAlloc_v2`,
/// `cuMemcpyHtoD_v2_ptds`), or null if there is no such function.
pub type EntryPointLookup = fn(&CStr) -> *const c_void;

static CPU_DRIVER: OnceLock<EntryPointLookup> = OnceLock::new();
static PER_THREAD_DEFAULT_STREAM: AtomicBool = AtomicBool::new(false);
static DRIVER: OnceLock<Driver> = OnceLock::new();
/// The libraries that were loaded, by [`CudaLibrary`]. The driver has a place of its own, [`DRIVER`].
static LOADED: [OnceLock<pathfinder::Loaded>; CudaLibrary::COUNT] =
    [const { OnceLock::new() }; CudaLibrary::COUNT];

/// Plugs the CPU device in. Called once at start-up by whatever contains it; later calls change nothing.
pub fn register_cpu_driver(get_proc: EntryPointLookup) {
    let _ = CPU_DRIVER.set(get_proc);
}

/// Stands between callers and a library of the toolchain: given a library, the exported name of a function of it and the
/// function's address, gives the address to be called instead, of a function of the same type; or the same address.
pub type SymbolInterposer = fn(CudaLibrary, &CStr, *const c_void) -> *const c_void;

static INTERPOSER: OnceLock<SymbolInterposer> = OnceLock::new();

/// The libraries whose functions an [`SymbolInterposer`] sees.
fn is_interposed(library: CudaLibrary) -> bool {
    matches!(library, CudaLibrary::Nvrtc | CudaLibrary::NvJitLink)
}

/// Lets the CPU device follow what NVRTC and nvJitLink do: it runs the PTX that their machine code was made from, so it
/// has to know that PTX. Called once at start-up, as [`register_cpu_driver`]; later calls change nothing. Functions that
/// were resolved before are resolved again.
pub fn register_interposer(interpose: SymbolInterposer) {
    if INTERPOSER.set(interpose).is_ok() {
        crate::nvrtc::TABLE.forget();
        crate::nvjitlink::TABLE.forget();
    }
}

/// Whether a CPU device is plugged in.
pub fn has_cpu_driver() -> bool {
    CPU_DRIVER.get().is_some()
}

/// Chooses between the legacy (`false`, the default) and the per-thread default stream, for every function of the
/// driver and the runtime that is resolved from now on. Call it before the first use of either.
pub fn set_per_thread_default_stream(per_thread: bool) {
    PER_THREAD_DEFAULT_STREAM.store(per_thread, Ordering::Relaxed);
}

/// What [`set_per_thread_default_stream`] chose.
pub fn per_thread_default_stream() -> bool {
    PER_THREAD_DEFAULT_STREAM.load(Ordering::Relaxed)
}

struct Driver {
    source: Source,
    reason: String,
}

enum Source {
    Gpu {
        loaded: pathfinder::Loaded,
        get_proc: Option<GetProcAddress>,
        /// What `cuDriverGetVersion` says; 0 if it does not.
        version: c_int,
    },
    Cpu(EntryPointLookup),
}

/// `cuGetProcAddress_v2`: name, result, CUDA version, flags, status of the query (may be null).
type GetProcAddress = unsafe extern "C" fn(
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
/// The CUDA version that introduced the per-thread default stream; no such form is found below it.
const PER_THREAD_SINCE: c_int = 7000;

/// The backend, chosen on first use by `CUPYRITE_DEVICE` and the same for the rest of the process.
///
/// # Errors
///
/// `CUPYRITE_DEVICE` means nothing, the driver it asks for is not there, or the driver is there and does not
/// load (which never falls back to the CPU device: a broken driver should be seen). Nothing is chosen then.
pub fn driver_backend() -> Result<Backend, LoadError> {
    driver().map(|driver| match driver.source {
        Source::Gpu { .. } => Backend::Gpu,
        Source::Cpu(_) => Backend::Cpu,
    })
}

/// The backend if it was chosen already; chooses nothing.
pub fn chosen_backend() -> Option<Backend> {
    DRIVER.get().map(|driver| match driver.source {
        Source::Gpu { .. } => Backend::Gpu,
        Source::Cpu(_) => Backend::Cpu,
    })
}

/// Why the backend was chosen, as a sentence without its full stop; chooses if need be.
///
/// # Errors
///
/// As [`driver_backend`].
pub fn backend_reason() -> Result<String, LoadError> {
    driver().map(|driver| driver.reason.clone())
}

/// Whether `auto` took the CPU device, because there is no NVIDIA driver (what Python warns about once).
/// `false` before the choice.
pub fn is_cpu_fallback() -> bool {
    DRIVER.get().is_some_and(|driver| {
        matches!(driver.source, Source::Cpu(_)) && driver.reason == AUTO_CPU_REASON
    })
}

const AUTO_CPU_REASON: &str = "no NVIDIA driver (libcuda.so.1) is installed on this machine, \
     so CUPYRITE_DEVICE=auto takes the embedded CPU device";

/// The file a library was loaded from; `None` before its first use and for the CPU device.
pub fn library_path(library: CudaLibrary) -> Option<PathBuf> {
    in_use(library).map(|loaded| loaded.path.clone())
}

/// How a library was found, in the words of `cuda.pathfinder`; `None` as for [`library_path`].
pub fn library_found_via(library: CudaLibrary) -> Option<String> {
    in_use(library).map(|loaded| loaded.found_via.to_string())
}

/// The library if it was loaded already.
fn in_use(library: CudaLibrary) -> Option<&'static pathfinder::Loaded> {
    match library {
        CudaLibrary::Driver => match &DRIVER.get()?.source {
            Source::Gpu { loaded, .. } => Some(loaded),
            Source::Cpu(_) => None,
        },
        library => LOADED[library as usize].get(),
    }
}

/// What `CUPYRITE_DEVICE` may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selection {
    Auto,
    Gpu,
    Cpu,
}

fn selection(value: Option<&str>) -> Result<Selection, LoadError> {
    match value.map(str::trim).unwrap_or("") {
        "" => Ok(Selection::Auto),
        v if v.eq_ignore_ascii_case("auto") => Ok(Selection::Auto),
        v if v.eq_ignore_ascii_case("gpu") => Ok(Selection::Gpu),
        v if v.eq_ignore_ascii_case("cpu") => Ok(Selection::Cpu),
        other => Err(LoadError::plain(
            LoadErrorKind::InvalidSelection,
            format!(
                "CUPYRITE_DEVICE={other:?} means nothing: it is auto (the default), gpu or cpu"
            ),
        )),
    }
}

/// What `CUPYRITE_DEVICE` says.
fn asked_for() -> Result<Selection, LoadError> {
    let value = std::env::var_os("CUPYRITE_DEVICE");
    let value = value.as_deref().map(|value| value.to_string_lossy());
    selection(value.as_deref())
}

fn driver() -> Result<&'static Driver, LoadError> {
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let chosen = choose(asked_for()?, CPU_DRIVER.get().copied(), || {
        pathfinder::load(CudaLibrary::Driver.name())
    })?;
    // Two threads may get here together: both chose from the same facts, the first one counts.
    let driver = DRIVER.get_or_init(|| chosen);
    log::info!("driver: {}", driver.reason);
    Ok(driver)
}

fn choose(
    selection: Selection,
    cpu: Option<EntryPointLookup>,
    find: impl FnOnce() -> Result<pathfinder::Loaded, pathfinder::LoadError>,
) -> Result<Driver, LoadError> {
    let take_cpu = |reason: &str, asked: &str| match cpu {
        Some(get_proc) => Ok(Driver {
            source: Source::Cpu(get_proc),
            reason: reason.to_owned(),
        }),
        None => Err(LoadError::plain(
            LoadErrorKind::NoCpuDevice,
            format!("{asked}, but this program was built without the CPU device"),
        )),
    };
    if selection == Selection::Cpu {
        let reason = "CUPYRITE_DEVICE=cpu asks for the embedded CPU device";
        return take_cpu(reason, "CUPYRITE_DEVICE=cpu asks for the CPU device");
    }
    match find() {
        Ok(loaded) => {
            let path = loaded.path.display();
            let reason = match selection {
                Selection::Gpu => {
                    format!("CUPYRITE_DEVICE=gpu asks for the NVIDIA driver ({path})")
                }
                _ => format!("an NVIDIA driver is installed ({path})"),
            };
            let get_proc = loaded.handle.symbol(c"cuGetProcAddress_v2");
            // SAFETY: the driver exports the symbol with this signature (cuda.h, CUDA 12.0 and later).
            let get_proc = (!get_proc.is_null())
                .then(|| unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(get_proc) });
            let version = driver_version(loaded.handle);
            Ok(Driver {
                source: Source::Gpu {
                    loaded,
                    get_proc,
                    version,
                },
                reason,
            })
        }
        Err(error)
            if selection == Selection::Auto
                && error.kind == pathfinder::LoadErrorKind::NotFound
                && cpu.is_some() =>
        {
            take_cpu(AUTO_CPU_REASON, "")
        }
        Err(error) => {
            let prefix = match selection {
                Selection::Gpu => "CUPYRITE_DEVICE=gpu asks for the NVIDIA driver, but ",
                _ => "",
            };
            Err(LoadError::library(CudaLibrary::Driver, error, prefix))
        }
    }
}

/// The driver's own CUDA version, which it tells without initialisation.
fn driver_version(driver: Handle) -> c_int {
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

fn driver_symbol(row: &SymbolDescriptor) -> Result<*const c_void, LoadError> {
    let per_thread = row.per_thread != PerThreadVariant::None && per_thread_default_stream();
    match &driver()?.source {
        Source::Cpu(get_proc) => Ok(with_export(row, per_thread, get_proc)),
        Source::Gpu {
            loaded,
            get_proc,
            version,
        } => {
            // A driver older than this form might answer with an earlier one, whose arguments differ.
            if let Some(get_proc) = *get_proc
                && row.version <= *version
                && let Some(address) = proc_address(get_proc, row, per_thread)
            {
                return Ok(address);
            }
            Ok(with_export(row, per_thread, |name| {
                loaded.handle.symbol(name).cast_const()
            }))
        }
    }
}

/// Asks the driver for exactly this form of a function.
fn proc_address(
    get_proc: GetProcAddress,
    row: &SymbolDescriptor,
    per_thread: bool,
) -> Option<*const c_void> {
    let (version, flags) = if per_thread {
        (row.version.max(PER_THREAD_SINCE), PER_THREAD_STREAM)
    } else {
        (row.version, LEGACY_STREAM)
    };
    let mut address = std::ptr::null_mut();
    let mut found: c_int = 0;
    // SAFETY: the name ends with a nul and both results have room for what the driver stores.
    let status = unsafe {
        get_proc(
            row.name.as_ptr(),
            &raw mut address,
            version,
            flags,
            &raw mut found,
        )
    };
    (status == 0 && !address.is_null()).then_some(address.cast_const())
}

/// Calls `lookup` with the exported name, which for the per-thread default stream has an ending.
fn with_export(
    row: &SymbolDescriptor,
    per_thread: bool,
    lookup: impl Fn(&CStr) -> *const c_void,
) -> *const c_void {
    if !per_thread {
        return lookup(row.export);
    }
    let mut name = row.export.to_bytes().to_vec();
    name.extend_from_slice(row.per_thread.suffix().as_bytes());
    match CString::new(name) {
        Ok(name) => lookup(&name),
        Err(_) => std::ptr::null(),
    }
}

/// A library that is not the driver, loaded by the first call.
fn loaded(library: CudaLibrary) -> Result<&'static pathfinder::Loaded, LoadError> {
    let place = &LOADED[library as usize];
    if let Some(loaded) = place.get() {
        return Ok(loaded);
    }
    let loaded =
        pathfinder::load(library.name()).map_err(|error| LoadError::library(library, error, ""))?;
    Ok(place.get_or_init(|| loaded))
}

/// The handle of a library, for symbols outside the generated tables; loads it if need be. `None` for the
/// CPU device, which is no library.
///
/// # Errors
///
/// As [`SymbolTable::get`].
pub fn library_handle(library: CudaLibrary) -> Result<Option<Handle>, LoadError> {
    match library {
        CudaLibrary::Driver => driver().map(|driver| match &driver.source {
            Source::Gpu { loaded, .. } => Some(loaded.handle),
            Source::Cpu(_) => None,
        }),
        CudaLibrary::Nvml if nvml_backend()? == Backend::Cpu => Ok(None),
        CudaLibrary::Runtime => runtime::handle(),
        library => loaded(library).map(|loaded| Some(loaded.handle)),
    }
}

#[cfg(test)]
mod tests;

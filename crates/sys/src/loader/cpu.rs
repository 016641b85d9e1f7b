//! The CPU device of this process: linked into the program, or in a shared library that is loaded when it is chosen.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cupyrite_pathfinder::loader::LibraryHandle;

use super::cpu_library::{self, CPU_LIBRARY_ENTRY, CpuLibrary, CpuLibraryEntry, Program};
use super::symbol::SymbolInterposer;
use super::{CudaLibrary, LoadError, LoadErrorKind};

/// The high bits of the handles of the CPU device. No mapped address has them, and no two objects have the same handle. The
/// low four bits of such a handle are zero.
pub const NEVER_REUSED: u64 = 0x00C0_0000_0000_0000;

/// Returns the address of an entry point by its exported name (`cuMemAlloc_v2`, `cuMemcpyHtoD_v2_ptds`), or null if
/// there is no such function.
pub type EntryPointLookup = fn(&CStr) -> *const c_void;

/// The functions of a CPU device.
#[derive(Clone, Copy, Debug)]
pub struct CpuDevice {
    /// Finds entry points of the driver.
    pub driver: EntryPointLookup,
    /// Finds entry points of NVML.
    pub nvml: EntryPointLookup,
    /// Replaces functions of the toolchain: the CPU device executes the PTX that machine code was compiled from, and must
    /// therefore see what NVRTC and nvJitLink compile.
    pub interpose: SymbolInterposer,
}

/// Location of the CPU device of this program.
#[derive(Debug)]
pub enum CpuDeviceSource {
    /// In the program.
    Linked(CpuDevice),
    /// In a shared library, which is loaded when the CPU device is chosen.
    Library {
        /// The library's file; an error says why it is unknown.
        path: fn() -> Result<PathBuf, String>,
        /// The functions that the program provides to the library.
        program: &'static Program,
    },
}

static SOURCE: OnceLock<CpuDeviceSource> = OnceLock::new();
static DEVICE: OnceLock<CpuDevice> = OnceLock::new();
static LIBRARY: OnceLock<&'static CpuLibrary> = OnceLock::new();

/// Registers the CPU device. A program calls this at start-up; later calls have no effect.
pub fn register_cpu_device(source: CpuDeviceSource) {
    let _ = SOURCE.set(source);
}

/// Whether the program has a CPU device.
pub(super) fn is_registered() -> bool {
    SOURCE.get().is_some()
}

/// The CPU device; loads its library on first use.
///
/// # Errors
///
/// [`LoadErrorKind::NoCpuDevice`] if the program has no CPU device, or if the device's library is missing, damaged or of another
/// build. Errors are not cached: the next call tries again.
pub(super) fn device() -> Result<CpuDevice, LoadError> {
    if let Some(device) = DEVICE.get() {
        return Ok(*device);
    }
    match SOURCE.get() {
        None => Err(LoadError::plain(
            LoadErrorKind::NoCpuDevice,
            "this program was built without the CPU device".to_owned(),
        )),
        Some(CpuDeviceSource::Linked(device)) => Ok(*DEVICE.get_or_init(|| *device)),
        Some(CpuDeviceSource::Library { path, .. }) => {
            // The process must have one device, also for libraries that load it by the driver's name.
            if let Some((handle, file)) = loaded_as_driver() {
                return adopt(handle, &file);
            }
            let path = path().map_err(|why| failure(&why))?;
            adopt(open(&path)?, &path)
        }
    }
}

fn failure(why: &str) -> LoadError {
    LoadError::plain(
        LoadErrorKind::NoCpuDevice,
        format!(
            "the CPU device cannot be loaded: {why}. Install Cupyrite again: pip install --force-reinstall --no-deps cupyrite; \
             in a clone of its repository: python distributions/cpu_device.py"
        ),
    )
}

/// Loads the library of the CPU device. Its symbols stay invisible to others, and it is never unloaded.
fn open(path: &Path) -> Result<LibraryHandle, LoadError> {
    let name = path.as_os_str().as_encoded_bytes();
    let name = CString::new(name).map_err(|_| failure("its path contains a NUL"))?;
    // SAFETY: the name is a C string. The library's initialisation has no requirements.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !handle.is_null() {
        return Ok(LibraryHandle(handle));
    }
    let shown = path.display();
    if !path.exists() {
        return Err(failure(&format!("{shown} does not exist")));
    }
    // SAFETY: the result is null or a C string that lives until the thread's next call of these functions.
    let said = unsafe {
        let said = libc::dlerror();
        (!said.is_null()).then(|| CStr::from_ptr(said).to_string_lossy().into_owned())
    };
    Err(failure(
        &said.unwrap_or_else(|| format!("{shown} is damaged")),
    ))
}

/// A CPU device that the process has loaded by the driver's name, and its file.
fn loaded_as_driver() -> Option<(LibraryHandle, PathBuf)> {
    // SAFETY: the name is a C string; nothing is loaded.
    let handle = unsafe {
        libc::dlopen(
            c"libcuda.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        )
    };
    let handle = LibraryHandle(handle);
    if handle.0.is_null() || !is_cpu_device(handle) {
        return None;
    }
    let file =
        file_of(handle.symbol(CPU_LIBRARY_ENTRY).addr()).unwrap_or_else(|| "libcuda.so.1".into());
    Some((handle, file))
}

/// The file of the library that contains the function at this address.
pub fn file_of(address: usize) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: all bytes zero are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the result has room for what is stored.
    let found = unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of the file, which lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(std::ffi::OsStr::from_bytes(name.to_bytes()).into())
}

/// Whether a library is the CPU device, or its `libcuda.so.1` or `libnvidia-ml.so.1`.
pub(super) fn is_cpu_device(handle: LibraryHandle) -> bool {
    !handle.symbol(CPU_LIBRARY_ENTRY).is_null()
}

/// Takes the CPU device of a loaded library.
///
/// # Errors
///
/// The errors of [`device`].
pub(super) fn adopt(handle: LibraryHandle, path: &Path) -> Result<CpuDevice, LoadError> {
    let entry = handle.symbol(CPU_LIBRARY_ENTRY);
    let shown = path.display();
    if entry.is_null() {
        return Err(failure(&format!("{shown} is another library")));
    }
    // SAFETY: libraries that export this name export a function of this type.
    let table = unsafe { std::mem::transmute::<*mut c_void, CpuLibraryEntry>(entry)() };
    // SAFETY: the table comes from that function.
    let library = unsafe { cpu_library::checked(table) };
    let library = library.map_err(|why| failure(&format!("{shown} {why}")))?;
    if let Some(CpuDeviceSource::Library { program, .. }) = SOURCE.get() {
        (library.connect)(program);
    }
    // If two threads load concurrently, the first library is used; both usually loaded the same file.
    LIBRARY.get_or_init(|| library);
    Ok(*DEVICE.get_or_init(|| CpuDevice {
        driver: |name| look_up(|library| library.driver, name),
        nvml: |name| look_up(|library| library.nvml, name),
        interpose,
    }))
}

fn look_up(
    function: fn(&CpuLibrary) -> extern "C" fn(*const std::ffi::c_char) -> *const c_void,
    name: &CStr,
) -> *const c_void {
    LIBRARY
        .get()
        .map_or(std::ptr::null(), |library| function(library)(name.as_ptr()))
}

fn interpose(library: CudaLibrary, name: &CStr, address: *const c_void) -> *const c_void {
    match (LIBRARY.get(), CString::new(library.name())) {
        (Some(loaded), Ok(library)) => (loaded.interpose)(library.as_ptr(), name.as_ptr(), address),
        _ => address,
    }
}

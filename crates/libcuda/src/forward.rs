//! Fills the table of the exported functions with those of the CPU device, `libcupyrite_cpu_device.so` in the same folder.
//!
//! `crates/libcuda` and `crates/libnvml` contain this file. It allocates nothing but what the loader and messages need, and
//! uses no feature that would pull a large part of the standard library into libraries that consist of jumps.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use cupyrite_sys::loader::cpu_library::{self, CPU_LIBRARY_ENTRY, CpuLibrary, CpuLibraryEntry};

/// The library that is forwarded to.
const DEVICE: &[u8] = b"libcupyrite_cpu_device.so\0";

/// The table of the CPU device that this library leads to; `None` if it cannot be loaded.
static LIBRARY: OnceLock<Option<&'static CpuLibrary>> = OnceLock::new();

/// As the function of this name in the library that is forwarded to.
#[unsafe(no_mangle)]
pub extern "C" fn cupyrite_cpu_device() -> *const CpuLibrary {
    LIBRARY
        .get()
        .copied()
        .flatten()
        .map_or(std::ptr::null(), |library| library)
}

/// Loads the CPU device, and stores the address of each function of `names` in the table at `table`. Where the device cannot
/// be loaded, a message goes to standard error, and every function returns what `failed` returns.
///
/// # Safety
///
/// `table` has a place for each name; nothing reads it meanwhile.
pub unsafe fn fill(
    names: &[&CStr],
    table: *mut *const c_void,
    find: fn(&CpuLibrary) -> extern "C" fn(*const c_char) -> *const c_void,
    failed: extern "C" fn() -> c_int,
) {
    let library = match load() {
        Ok(library) => Some(library),
        Err(why) => {
            eprintln!("Cupyrite's CPU device: {why}");
            None
        }
    };
    let library = *LIBRARY.get_or_init(|| library);
    for (i, name) in names.iter().enumerate() {
        let address = match library {
            Some(library) => find(library)(name.as_ptr()),
            None => failed as *const c_void,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { table.add(i).write(address) };
    }
}

fn load() -> Result<&'static CpuLibrary, String> {
    let mut path = folder().unwrap_or_default();
    path.extend_from_slice(DEVICE);
    // SAFETY: the path ends with a NUL; the library's initialisation has no requirements.
    let handle = unsafe { libc::dlopen(path.as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: the result is null or a C string that lives until the thread's next call of these functions.
        return Err(unsafe {
            let said = libc::dlerror();
            match said.is_null() {
                true => "it cannot be loaded".to_owned(),
                false => CStr::from_ptr(said).to_string_lossy().into_owned(),
            }
        });
    }
    // SAFETY: the handle is live, the name is a C string.
    let entry = unsafe { libc::dlsym(handle, CPU_LIBRARY_ENTRY.as_ptr()) };
    let table = if entry.is_null() {
        std::ptr::null()
    } else {
        // SAFETY: the library exports a function of this type by this name.
        unsafe { std::mem::transmute::<*mut c_void, CpuLibraryEntry>(entry)() }
    };
    // SAFETY: the table comes from that function.
    unsafe { cpu_library::checked(table) }
        .map_err(|why| format!("{} {why}", String::from_utf8_lossy(&path[..path.len() - 1])))
}

/// The folder of this library with a slash at its end.
fn folder() -> Option<Vec<u8>> {
    // SAFETY: all bytes zero are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the result has room for what is stored.
    let found = unsafe { libc::dladdr(load as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of the file.
    let mut path = unsafe { CStr::from_ptr(info.dli_fname) }
        .to_bytes()
        .to_vec();
    let end = path.iter().rposition(|&byte| byte == b'/')?;
    path.truncate(end + 1);
    Some(path)
}

//! `ptxas` of the CPU device: an executable that runs the function of that name in `libcupyrite_cpu_device.so`, in the same
//! folder.
//!
//! Belongs here: loading the library. Does not belong here: the program (`cupyrite_cpu::ptxas`).

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

use cupyrite_sys::loader::cpu_library::{self, CPU_LIBRARY_ENTRY, CpuLibrary, CpuLibraryEntry};

const DEVICE: &str = "libcupyrite_cpu_device.so";
/// Exit status where the library cannot be loaded; NVIDIA's program does not use it.
const NO_DEVICE: u8 = 127;

/// The table of the CPU device at `path`.
fn load(path: &Path) -> Result<&'static CpuLibrary, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: a C string; the library's initialisation has no requirements.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err("cannot be loaded".into());
    }
    // SAFETY: the handle is live, the name is a C string.
    let entry = unsafe { libc::dlsym(handle, CPU_LIBRARY_ENTRY.as_ptr()) };
    if entry.is_null() {
        return Err("is another library".into());
    }
    // SAFETY: libraries that export this name export a function of this type.
    let table = unsafe { std::mem::transmute::<*mut c_void, CpuLibraryEntry>(entry)() };
    // SAFETY: the library exports the function under this name.
    unsafe { cpu_library::checked(table) }
}

fn main() -> ExitCode {
    let folder = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("ptxas fatal   : the path of this program is unknown: {error}");
            return ExitCode::from(NO_DEVICE);
        }
    };
    let path = folder.with_file_name(DEVICE);
    let library = match load(&path) {
        Ok(library) => library,
        Err(reason) => {
            eprintln!("ptxas fatal   : {} {reason}", path.display());
            return ExitCode::from(NO_DEVICE);
        }
    };
    let words: Vec<CString> = std::env::args_os()
        .filter_map(|word| CString::new(word.into_vec()).ok())
        .collect();
    let pointers: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    let status = (library.ptxas)(pointers.len() as c_int, pointers.as_ptr());
    ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}

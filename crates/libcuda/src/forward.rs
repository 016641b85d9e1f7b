//! Fills the table of the exported functions with those of the CPU device, `libcupyrite_cpu_device.so` in the same folder.
//!
//! `crates/libcuda`, `crates/libcudart`, `crates/libcudart12` and `crates/libnvml` contain this file. It neither allocates nor panics: the dynamic loader runs it, possibly
//! before the program's own initialisation.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite_sys::loader::cpu_library::{BUILD, CPU_LIBRARY_ENTRY, CpuLibrary, CpuLibraryEntry};

/// The library to which calls are forwarded.
const DEVICE: &CStr = c"libcupyrite_cpu_device.so";
/// The longest path of a file on Linux (`PATH_MAX`).
const LONGEST: usize = 4096;

/// The table of the CPU device to which this library forwards; null if it cannot be loaded.
static LIBRARY: AtomicPtr<CpuLibrary> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the result of the function of this name in the library to which this one forwards.
#[unsafe(no_mangle)]
pub extern "C" fn cupyrite_cpu_device() -> *const CpuLibrary {
    LIBRARY.load(Ordering::Acquire)
}

/// The API whose functions a library exports.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each library uses one of them")]
pub enum ForwardedApi {
    /// The driver's.
    Driver,
    /// NVML's.
    Nvml,
    /// The runtime's.
    Runtime,
    /// The runtime's of CUDA 12.
    RuntimeCuda12,
}

/// Loads the CPU device, and stores the address of each function of `names` in the table at `table`. If `refused` says why
/// the device must not be used, or it cannot be loaded, prints the reason to standard error and stores the results of
/// `failed`: addresses of functions that return a status.
///
/// # Safety
///
/// `table` is valid for writes of one pointer for each name, and no other thread accesses it during the call.
pub unsafe fn fill(
    names: &[&CStr],
    table: *mut *const c_void,
    of: ForwardedApi,
    refused: Option<&CStr>,
    failed: impl Fn(&CStr) -> *const c_void,
) {
    let library = match refused {
        None => load(),
        Some(why) => {
            report(file().unwrap_or(DEVICE.as_ptr()), why);
            None
        }
    };
    if let Some(library) = library {
        LIBRARY.store((&raw const *library).cast_mut(), Ordering::Release);
    }
    for (i, name) in names.iter().enumerate() {
        let address = match library {
            Some(library) => match of {
                ForwardedApi::Driver => (library.driver)(name.as_ptr()),
                ForwardedApi::Nvml => (library.nvml)(name.as_ptr()),
                ForwardedApi::Runtime => (library.runtime)(name.as_ptr()),
                ForwardedApi::RuntimeCuda12 => (library.runtime_cuda12)(name.as_ptr()),
            },
            None => failed(name),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { table.add(i).write(address) };
    }
}

/// Prints why the device cannot be loaded: a path and what is wrong with it.
fn report(path: *const c_char, why: &CStr) {
    let parts = [
        c"Cupyrite's CPU device: ".as_ptr(),
        path,
        c": ".as_ptr(),
        why.as_ptr(),
        c"\n".as_ptr(),
    ];
    let parts = parts.map(|part| libc::iovec {
        iov_base: part.cast_mut().cast(),
        // SAFETY: all are C strings.
        iov_len: unsafe { libc::strlen(part) },
    });
    // SAFETY: the parts are live. That nothing can be printed has no remedy.
    unsafe { libc::writev(libc::STDERR_FILENO, parts.as_ptr(), parts.len() as c_int) };
}

/// The dynamic loader's name of this library's file: a C string that lives as long as the library.
fn file() -> Option<*const c_char> {
    // SAFETY: all bytes zero are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the result has room for what is stored.
    let found = unsafe { libc::dladdr(file as *const c_void, &raw mut info) };
    (found != 0 && !info.dli_fname.is_null()).then_some(info.dli_fname)
}

fn load() -> Option<&'static CpuLibrary> {
    let mut buffer = [0_u8; LONGEST];
    let path: *mut c_char = buffer.as_mut_ptr().cast();
    let Some(file) = file() else {
        report(DEVICE.as_ptr(), c"the folder of this library is unknown");
        return None;
    };
    // SAFETY: the loader's name of this file is a C string. With the device's name it fits into the buffer, which is all
    // zero, or nothing is copied. Its folder ends with the last slash; a name without one has no folder, and the loader
    // searches for the device.
    unsafe {
        let slash = libc::strrchr(file, c_int::from(b'/'));
        let folder = match slash.is_null() {
            true => 0,
            false => slash.offset_from(file).cast_unsigned() + 1,
        };
        if folder + DEVICE.count_bytes() >= LONGEST {
            report(file, c"the path is too long");
            return None;
        }
        std::ptr::copy_nonoverlapping(file, path, folder);
        std::ptr::copy_nonoverlapping(DEVICE.as_ptr(), path.add(folder), DEVICE.count_bytes());
    }
    // SAFETY: a C string; the library's initialisation has no requirements.
    let handle = unsafe { libc::dlopen(path, libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: the result is null or a C string that lives until the thread's next call of these functions.
        let said = unsafe { libc::dlerror() };
        match said.is_null() {
            true => report(path, c"cannot be loaded"),
            // SAFETY: `dlerror` returned a C string that lives until the thread's next call of these functions.
            false => report(path, unsafe { CStr::from_ptr(said) }),
        }
        return None;
    }
    // SAFETY: the handle is live, the name is a C string.
    let entry = unsafe { libc::dlsym(handle, CPU_LIBRARY_ENTRY.as_ptr()) };
    let table = if entry.is_null() {
        std::ptr::null()
    } else {
        // SAFETY: libraries that export this name export a function of this type.
        unsafe { std::mem::transmute::<*mut c_void, CpuLibraryEntry>(entry)() }
    };
    if table.is_null() {
        report(path, c"is another library");
        return None;
    }
    // SAFETY: the first member is a C string in every build.
    if unsafe { libc::strcmp(*table.cast::<*const c_char>(), BUILD.as_ptr()) } != 0 {
        report(path, c"belongs to another build of Cupyrite");
        return None;
    }
    // SAFETY: of the same build, so the table has this type; it lives as long as the process.
    Some(unsafe { &*table })
}

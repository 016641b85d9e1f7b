//! The system's dynamic loader, behind a trait so that the search can be tested without libraries.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::files::RealFiles;
use crate::found::FoundVia;
use crate::ldso;
use crate::platform::Platform;

/// `RTLD_NOLOAD` of glibc and musl: succeed only if the library is in the process already.
const RTLD_NOLOAD: c_int = 0x4;
/// `RTLD_DEEPBIND` of glibc; musl ignores it.
const RTLD_DEEPBIND: c_int = 0x8;
/// `RTLD_DI_LINKMAP` of glibc and musl.
const RTLD_DI_LINKMAP: c_int = 2;

/// A library in this process. It is never unloaded: the driver and its companions keep threads and exit
/// handlers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub *mut c_void);

// SAFETY: a handle is a token for `dlsym`, which may be called from any thread; it is never closed.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// The address of `name`, or null if the library has no such symbol.
    pub fn symbol(self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle came from `dlopen` and is never closed; the name ends with a nul.
        unsafe { dlsym(self.0, name.as_ptr()) }
    }
}

/// How a library is loaded. On Linux all symbols are resolved at once and visible to libraries loaded later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    /// `RTLD_DEEPBIND`: it prefers its own symbols to the process's.
    pub deep_bind: bool,
    /// Windows: its folder is added to the search path of libraries, and stays there.
    pub add_folder: bool,
}

/// What the search asks of a loader.
pub trait Loader: Sync {
    /// The library called `soname` if it is in the process already, under whatever path it was loaded.
    fn loaded(&self, soname: &str) -> Option<Handle>;

    /// Loads a path, or a bare name through the loader's own search.
    ///
    /// # Errors
    ///
    /// The loader's message. It begins with `name: ` if a bare name was not found at all.
    fn open(&self, path: &OsStr, mode: Mode) -> Result<Handle, String>;

    /// The file behind a handle.
    fn path(&self, handle: Handle) -> Option<PathBuf>;

    /// The files that the loader's own search knows by this name, in its order: it would take the first. On
    /// Linux: `LD_LIBRARY_PATH`, `/etc/ld.so.cache`, the default folders. Only files are read.
    fn resolve(&self, soname: &str) -> Vec<PathBuf>;

    /// Remembers which step found a library.
    fn remember(&self, _handle: Handle, _found_via: FoundVia) {}

    /// What [`Loader::remember`] was told of this library; the first answer counts.
    fn remembered(&self, _handle: Handle) -> Option<FoundVia> {
        None
    }
}

/// What this crate has loaded. A library has one handle as long as it is in the process, which is for ever.
static REMEMBERED: Mutex<Vec<(Handle, FoundVia)>> = Mutex::new(Vec::new());

/// The real loader.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Loader for System {
    fn loaded(&self, soname: &str) -> Option<Handle> {
        // SAFETY: with RTLD_NOLOAD nothing is loaded, so no initialiser runs.
        unsafe { Library::open(Some(soname), RTLD_NOW | RTLD_NOLOAD) }
            .ok()
            .map(|library| Handle(library.into_raw()))
    }

    fn open(&self, path: &OsStr, mode: Mode) -> Result<Handle, String> {
        let deep = if mode.deep_bind { RTLD_DEEPBIND } else { 0 };
        // SAFETY: initialisers of NVIDIA's libraries run here, which is what the caller asks for.
        match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL | deep) } {
            Ok(library) => Ok(Handle(library.into_raw())),
            Err(libloading::Error::DlOpen { source, .. }) => Err(source.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn path(&self, handle: Handle) -> Option<PathBuf> {
        let mut map: *const LinkMap = std::ptr::null();
        // SAFETY: the handle is live and RTLD_DI_LINKMAP stores one pointer.
        let status = unsafe { dlinfo(handle.0, RTLD_DI_LINKMAP, (&raw mut map).cast()) };
        if status != 0 || map.is_null() {
            return None;
        }
        // SAFETY: the entry lives as long as the library, and its name is a C string or null.
        let name = unsafe {
            let name = (*map).name;
            if name.is_null() {
                return None;
            }
            CStr::from_ptr(name)
        };
        (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name.to_bytes())))
    }

    fn resolve(&self, soname: &str) -> Vec<PathBuf> {
        ldso::resolve(&RealFiles, Platform::CURRENT, &ldso::library_path(), soname)
    }

    fn remember(&self, handle: Handle, found_via: FoundVia) {
        let mut known = REMEMBERED.lock().unwrap_or_else(|e| e.into_inner());
        if !known.iter().any(|(old, _)| *old == handle) {
            known.push((handle, found_via));
        }
    }

    fn remembered(&self, handle: Handle) -> Option<FoundVia> {
        let known = REMEMBERED.lock().unwrap_or_else(|e| e.into_inner());
        known
            .iter()
            .find(|(old, _)| *old == handle)
            .map(|(_, via)| *via)
    }
}

/// The public beginning of `struct link_map` (`<link.h>`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}

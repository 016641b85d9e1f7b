//! The system's dynamic loader, behind a trait so that tests of the search need no libraries.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::files::HostFiles;
use crate::found_via::FoundVia;
use crate::platform::Platform;

pub(crate) mod elf;
mod ldso;

/// Handle of a loaded library. It is never closed, because the driver and its companions own threads and exit
/// handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryHandle(pub *mut c_void);

// SAFETY: a handle is a token for `dlsym`, which is thread-safe; it is never closed.
unsafe impl Send for LibraryHandle {}
// SAFETY: a handle is a token for `dlsym`, which is thread-safe; it is never closed.
unsafe impl Sync for LibraryHandle {}

impl LibraryHandle {
    /// The address of `name`, or null if the library has no such symbol.
    pub fn symbol(self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle came from `dlopen` and is never closed; the name is NUL-terminated.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

/// How a library is loaded. On Linux, all symbols are resolved at once and visible to libraries loaded later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenMode {
    /// `RTLD_DEEPBIND`: the library prefers its own symbols to the process's.
    pub deep_bind: bool,
    /// Windows: adds its folder to the DLL search path, permanently.
    pub add_folder: bool,
}

/// The loader operations that the search uses.
pub trait DynamicLoader: Sync {
    /// The loaded library called `soname`, whatever its path.
    fn find_loaded(&self, soname: &str) -> Option<LibraryHandle>;

    /// Loads a path, or a bare name through the loader's search.
    ///
    /// # Errors
    ///
    /// The loader's message. It begins with `name: ` if a bare name was not found.
    fn open(&self, path: &OsStr, mode: OpenMode) -> Result<LibraryHandle, String>;

    /// The file behind a handle.
    fn path(&self, handle: LibraryHandle) -> Option<PathBuf>;

    /// The files that the loader's search finds for a name, in its order; it would take the first. On Linux:
    /// `LD_LIBRARY_PATH`, `/etc/ld.so.cache`, the default folders. Loads nothing.
    fn resolve(&self, soname: &str) -> Vec<PathBuf>;

    /// Records the step that found a library.
    fn record_found_via(&self, _handle: LibraryHandle, _found_via: FoundVia) {}

    /// The step recorded by [`DynamicLoader::record_found_via`]; the first one counts.
    fn recorded_found_via(&self, _handle: LibraryHandle) -> Option<FoundVia> {
        None
    }
}

/// The libraries that this crate has loaded: an append-only list. Lock-free, because a process may fork while another
/// thread holds a lock.
static FOUND_VIA_RECORDS: AtomicPtr<FoundViaRecord> = AtomicPtr::new(std::ptr::null_mut());

struct FoundViaRecord {
    handle: LibraryHandle,
    found_via: FoundVia,
    next: *const FoundViaRecord,
}

/// Iterates the list from an entry.
fn records_from(mut entry: *const FoundViaRecord) -> impl Iterator<Item = &'static FoundViaRecord> {
    std::iter::from_fn(move || {
        // SAFETY: null, or a leaked box that is immutable once it is in the list.
        let this = unsafe { entry.as_ref() }?;
        entry = this.next;
        Some(this)
    })
}

/// The loader of this process.
#[derive(Debug, Clone, Copy)]
pub struct SystemLoader;

impl DynamicLoader for SystemLoader {
    /// `dlopen` of a bare name with `RTLD_NOLOAD` searches the file system, and blocks on a pipe it finds there. So
    /// this searches the list of loaded libraries, and passes `dlopen` only a path in that list.
    fn find_loaded(&self, soname: &str) -> Option<LibraryHandle> {
        let mut wanted = LibraryQuery {
            soname: soname.as_bytes(),
            found: None,
        };
        // SAFETY: the callback has the required signature, and the data lives until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(match_library), (&raw mut wanted).cast()) };
        let path = wanted.found?;
        // SAFETY: with RTLD_NOLOAD nothing is loaded, so no initialiser runs.
        unsafe {
            Library::open(
                Some(OsStr::from_bytes(path.to_bytes())),
                RTLD_NOW | libc::RTLD_NOLOAD,
            )
        }
        .ok()
        .map(|library| LibraryHandle(library.into_raw()))
    }

    fn open(&self, path: &OsStr, mode: OpenMode) -> Result<LibraryHandle, String> {
        let deep = if mode.deep_bind {
            libc::RTLD_DEEPBIND
        } else {
            0
        };
        let resolved;
        let mut path = path;
        if let Some(name) = path.to_str().filter(|name| !name.contains('/'))
            && ldso::library_path()
                .iter()
                .any(|folder| !folder.is_absolute())
        {
            // The loader would search the working directory.
            let Some(first) = self.resolve(name).into_iter().next() else {
                return Err(format!(
                    "{name}: not found on the absolute paths of LD_LIBRARY_PATH"
                ));
            };
            resolved = first;
            path = resolved.as_os_str();
        }
        // SAFETY: runs the initialisers of the library, which the caller requests.
        match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL | deep) } {
            Ok(library) => Ok(LibraryHandle(library.into_raw())),
            Err(libloading::Error::DlOpen { source, .. }) => Err(source.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn path(&self, handle: LibraryHandle) -> Option<PathBuf> {
        let mut map: *const LinkMap = std::ptr::null();
        // SAFETY: the handle is live and RTLD_DI_LINKMAP stores one pointer.
        let status =
            unsafe { libc::dlinfo(handle.0, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
        if status != 0 || map.is_null() {
            return None;
        }
        // SAFETY: the entry lives as long as the library.
        let map = unsafe { &*map };
        if map.name.is_null() {
            return None;
        }
        // SAFETY: the name is a C string, which lives as long as the entry.
        let name = unsafe { CStr::from_ptr(map.name) };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        // Loaded by a path relative to the working directory at that time.
        mapped_file(map.dynamic as usize).or_else(|| (!name.is_empty()).then(|| path.to_owned()))
    }

    fn resolve(&self, soname: &str) -> Vec<PathBuf> {
        let mut folders = ldso::program_path();
        folders.extend(ldso::library_path());
        ldso::resolve(&HostFiles, Platform::CURRENT, &folders, soname)
    }

    fn record_found_via(&self, handle: LibraryHandle, found_via: FoundVia) {
        if self.recorded_found_via(handle).is_some() {
            return;
        }
        let entry = Box::into_raw(Box::new(FoundViaRecord {
            handle,
            found_via,
            next: std::ptr::null(),
        }));
        let mut first = FOUND_VIA_RECORDS.load(Ordering::Acquire);
        loop {
            // SAFETY: the entry is private to this thread until the exchange below succeeds.
            unsafe { (*entry).next = first };
            // Two threads may record the same library at once; the later entry hides the earlier one.
            match FOUND_VIA_RECORDS.compare_exchange(
                first,
                entry,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    fn recorded_found_via(&self, handle: LibraryHandle) -> Option<FoundVia> {
        // A library has one handle for the lifetime of the process.
        records_from(FOUND_VIA_RECORDS.load(Ordering::Acquire))
            .find(|entry| entry.handle == handle)
            .map(|entry| entry.found_via)
    }
}

/// Input and result of [`match_library`].
struct LibraryQuery<'a> {
    soname: &'a [u8],
    found: Option<CString>,
}

/// Compares one loaded library with the wanted name: its file name, then its `DT_SONAME`.
///
/// # Safety
///
/// `data` points to a [`LibraryQuery`]; `dl_iterate_phdr` calls it.
unsafe extern "C" fn match_library(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: both are live for this call and not aliased.
    let (info, wanted) = unsafe { (&*info, &mut *data.cast::<LibraryQuery<'_>>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the name is a C string.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) };
    let bytes = path.to_bytes();
    // The main program has no name.
    if bytes.is_empty() {
        return 0;
    }
    let file = bytes.rsplit(|byte| *byte == b'/').next();
    // SAFETY: the entry belongs to a loaded library, which stays loaded during this call.
    if file == Some(wanted.soname) || unsafe { soname_of(info) } == Some(wanted.soname) {
        wanted.found = Some(path.to_owned());
        return 1;
    }
    0
}

/// `DT_SONAME` of a loaded library.
///
/// # Safety
///
/// The library stays loaded while the result is used.
unsafe fn soname_of(info: &libc::dl_phdr_info) -> Option<&[u8]> {
    // SAFETY: the program headers of a loaded library are readable while it is loaded.
    let segments = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let dynamic = segments
        .iter()
        .find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
    let mut entry = (info.dlpi_addr + dynamic.p_vaddr) as *const [u64; 2];
    let (mut strings, mut name) = (None, None);
    loop {
        // SAFETY: a dynamic segment is an array of tags and values that ends with DT_NULL.
        let [tag, value] = unsafe { *entry };
        match tag {
            DT_NULL => break,
            DT_STRTAB => strings = Some(value),
            DT_SONAME => name = Some(value),
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    let (strings, name) = (strings?, name?);
    // glibc relocates the address in the segment; other loaders keep the value of the file.
    let strings = if strings < info.dlpi_addr {
        info.dlpi_addr + strings
    } else {
        strings
    };
    // SAFETY: the loader resolves names from this table of NUL-terminated strings.
    Some(unsafe { CStr::from_ptr((strings + name) as *const c_char) }.to_bytes())
}

/// Tags of the dynamic segment, from the ELF specification.
const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;

/// The public beginning of `struct link_map` (`<link.h>`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const c_void,
}

/// The file behind an address of this process.
fn mapped_file(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let file = maps.split(|byte| *byte == b'\n').find_map(|line| {
        let (start, rest) = line.split_at(line.iter().position(|byte| *byte == b'-')?);
        let end = rest[1..].split(|byte| *byte == b' ').next()?;
        let number = |text| usize::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
        if !(number(start)?..number(end)?).contains(&address) {
            return None;
        }
        // No column before the path contains a slash.
        line.get(line.iter().position(|byte| *byte == b'/')?..)
    })?;
    Some(PathBuf::from(OsStr::from_bytes(file)))
}

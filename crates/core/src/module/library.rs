//! Loaded libraries, usable in every context.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUjit_option, CUkernel, CUlibrary, CUmodule, CUresult};
use parking_lot::{Mutex, MutexGuard};

use crate::context::Device;
use crate::context::capture_mode;
use crate::error::{Error, Result, driver};
use crate::fork::ForkGeneration;
use crate::module::image;

/// Size of the buffer for the driver's load log.
const LOG_BYTES: usize = 16 << 10;

/// A loaded library; cheap to clone. It is unloaded with its last clone and the last of its kernels, unless
/// [`Library::disown`] was called.
///
/// Libraries and their kernels belong to no context: the driver loads the code into a context on first use there (CUDA
/// driver API, "Library Management").
#[derive(Clone, Debug)]
pub struct Library {
    inner: Arc<LibraryState>,
}

#[derive(Debug)]
struct LibraryState {
    handle: CUlibrary,
    /// [`OwnedKind::epoch`] when it was loaded.
    created: u32,
    generation: ForkGeneration,
    /// Whether unloading is left to the program ([`Library::disown`]).
    disowned: AtomicBool,
    /// The handles of its kernels in the table of [`owners`].
    kernels: Mutex<Vec<usize>>,
    /// The log buffer: the driver may write to it until the library is unloaded.
    log: Option<Box<[u8]>>,
}

// SAFETY: library handles may be used from any thread, and belong to no context.
unsafe impl Send for LibraryState {}
// SAFETY: the driver synchronises calls with the handle; later changes are atomic or under a lock.
unsafe impl Sync for LibraryState {}

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl std::panic::RefUnwindSafe for LibraryState {}

impl LibraryState {
    #[inline(always)]
    fn is_loaded(&self) -> bool {
        !OwnedKind::Library.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }
}

impl Drop for LibraryState {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            // A forked child makes no driver calls, and a thread that it does not have may hold the lock.
            return;
        }
        let mut owners = owners();
        for kernel in self.kernels.get_mut() {
            // If the program unloaded this library, another one may have a kernel with the same handle.
            if owners
                .get(kernel)
                .is_some_and(|owner| owner.strong_count() == 0)
            {
                owners.remove(kernel);
            }
        }
        drop(owners);
        if *self.disowned.get_mut() {
            std::mem::forget(self.log.take());
            return;
        }
        if self.is_loaded() {
            // SAFETY: `load` made the handle; the program has not unloaded it, and this is its owner's only call.
            capture_mode::release(|| unsafe { driver!(owned cuLibraryUnload(self.handle)) });
        }
    }
}

/// The library of each kernel handle, for handles that come back from the program.
fn owners() -> MutexGuard<'static, HashMap<usize, Weak<LibraryState>>> {
    static OWNERS: OnceLock<Mutex<HashMap<usize, Weak<LibraryState>>>> = OnceLock::new();
    let owners = OWNERS.get_or_init(Mutex::default);
    owners.lock()
}

/// The library of a kernel handle, if it came from this crate and is loaded.
pub(crate) fn library_of_kernel(kernel: CUkernel) -> Option<Library> {
    let found = owners().get(&(kernel as usize)).cloned();
    let inner = found?.upgrade()?;
    // The driver reuses the handles of unloaded kernels.
    inner.is_loaded().then_some(Library { inner })
}

/// The source of the code.
enum LoadSource<'a> {
    /// In memory, NUL-terminated.
    Memory(&'a [u8]),
    File(&'a CStr),
}

impl LoadSource<'_> {
    fn load(&self, handle: &mut CUlibrary, log: Option<&mut [u8]>) -> Result<()> {
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [std::ptr::null_mut::<c_void>(); 2];
        let mut count = 0;
        if let Some(log) = log {
            values = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
            count = options.len() as c_uint;
        }
        let none = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; the image ends where its headers say; text and file name are
        // NUL-terminated; the arrays have the length passed, and the log buffer its own.
        unsafe {
            match self {
                LoadSource::Memory(code) => driver!(cuLibraryLoadData(
                    handle,
                    code.as_ptr().cast(),
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                    count,
                    none,
                    none.cast(),
                    0,
                )),
                LoadSource::File(name) => driver!(cuLibraryLoadFromFile(
                    handle,
                    name.as_ptr(),
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                    count,
                    none,
                    none.cast(),
                    0,
                )),
            }
        }
    }
}

impl Library {
    /// Loads PTX text, a cubin or a fat binary.
    ///
    /// With lazy loading the driver compiles PTX when a kernel is first used, and returns its errors then.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] with the loader's log: `CUDA_ERROR_INVALID_PTX` with line and column,
    /// `CUDA_ERROR_NO_BINARY_FOR_GPU` for code of another architecture, `CUDA_ERROR_INVALID_IMAGE` for anything else.
    pub fn load(code: &[u8]) -> Result<Library> {
        image::check(code).map_err(|log| Error::Driver {
            call: "cuLibraryLoadData",
            status: CUresult::CUDA_ERROR_INVALID_IMAGE,
            log,
        })?;
        // PTX must be NUL-terminated; the other formats contain their length.
        let mut owned = Vec::with_capacity(code.len() + 1);
        owned.extend_from_slice(code);
        owned.push(0);
        Self::load_from(&LoadSource::Memory(&owned))
    }

    /// Loads a file with PTX text, a cubin or a fat binary.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_FILE_NOT_FOUND`, else as [`Library::load`].
    pub fn load_file(path: &Path) -> Result<Library> {
        use std::os::unix::ffi::OsStrExt;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| {
            let problem = format!("{} contains a NUL", path.display());
            Error::argument("Library::load_file", "path", problem)
        })?;
        if !path.exists() {
            return Err(Error::Driver {
                call: "cuLibraryLoadFromFile",
                status: CUresult::CUDA_ERROR_FILE_NOT_FOUND,
                log: format!("there is no file {}", path.display()),
            });
        }
        Self::load_from(&LoadSource::File(&name))
    }

    fn load_from(source: &LoadSource<'_>) -> Result<Library> {
        // SAFETY: takes an integer; initialising twice does nothing.
        unsafe { driver!(cuInit(0))? };
        crate::fork::mark_driver_used();
        let mut handle: CUlibrary = std::ptr::null_mut();
        let mut kept = None;
        if let Err(first) = source.load(&mut handle, None) {
            // Loads again for the log. The first attempt has no log buffer: the driver may keep its address while the
            // library lives, and nearly every library loads.
            let mut log = vec![0u8; LOG_BYTES].into_boxed_slice();
            if source.load(&mut handle, Some(&mut log)).is_err() {
                return Err(first.with_log(&text_of(&log)));
            }
            kept = Some(log);
        }
        Ok(Library {
            inner: Arc::new(LibraryState {
                handle,
                created: OwnedKind::Library.epoch(),
                generation: ForkGeneration::current(),
                disowned: AtomicBool::new(false),
                kernels: Mutex::default(),
                log: kept,
            }),
        })
    }

    /// The driver's handle; valid while a clone of this library or one of its kernels lives.
    pub fn handle(&self) -> CUlibrary {
        self.inner.handle
    }

    /// Leaves unloading to the program: from now on, dropping the last clone does not unload the library.
    ///
    /// For handles that are given to code with a lifetime of its own. numba-cuda calls `cuLibraryUnload` after the object
    /// that lent the handle was dropped; a second unload of a library crashes NVIDIA's driver 580. A library that the
    /// program does not unload stays loaded until the process exits.
    pub fn disown(&self) {
        self.inner.disowned.store(true, Ordering::Relaxed);
    }

    /// Whether the library is loaded: false once the program has unloaded [`Library::handle`] with `cuLibraryUnload` or
    /// `cudaLibraryUnload`. The methods of the library and of its kernels return `CUDA_ERROR_INVALID_HANDLE` then.
    #[inline(always)]
    pub fn is_loaded(&self) -> bool {
        self.inner.is_loaded()
    }

    /// An error in place of a driver call that would use an unloaded library.
    pub(super) fn check_loaded(&self, call: &'static str) -> Result<()> {
        if self.is_loaded() {
            Ok(())
        } else {
            Err(unloaded(call, "the library"))
        }
    }

    /// Registers a kernel handle of this library.
    pub(super) fn register_kernel(&self, kernel: CUkernel) {
        let mut owners = owners();
        let weak = Arc::downgrade(&self.inner);
        let former = owners.insert(kernel as usize, weak);
        // The driver reuses the kernel handles of unloaded libraries.
        if former.is_none_or(|former| !std::ptr::eq(former.as_ptr(), &*self.inner)) {
            let mut kernels = self.inner.kernels.lock();
            kernels.push(kernel as usize);
        }
    }

    /// The names of the kernels, in the driver's order; empty if the driver is too old (before CUDA 12.4).
    ///
    /// # Errors
    ///
    /// The driver's error; code that is compiled on first use may fail here.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        self.check_loaded("cuLibraryGetKernelCount")?;
        let mut count: c_uint = 0;
        // SAFETY: the library is loaded; `count` is valid for writes.
        match unsafe { driver!(cuLibraryGetKernelCount(&mut count, self.handle())) } {
            Err(Error::Load(_)) => return Ok(Vec::new()),
            other => other?,
        }
        let mut handles = vec![std::ptr::null_mut() as CUkernel; count as usize];
        if count > 0 {
            // SAFETY: the array has the length passed.
            match unsafe {
                driver!(cuLibraryEnumerateKernels(
                    handles.as_mut_ptr(),
                    count,
                    self.handle()
                ))
            } {
                Err(Error::Load(_)) => return Ok(Vec::new()),
                other => other?,
            }
        }
        let mut names = Vec::with_capacity(handles.len());
        for handle in handles {
            // SAFETY: a kernel of this library, which is loaded.
            match unsafe { kernel_name(handle) } {
                Err(Error::Load(_)) => return Ok(Vec::new()),
                other => names.push(other?),
            }
        }
        Ok(names)
    }

    /// Address and size in bytes of a `__device__` or `__constant__` variable on a device.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` if no variable has that name.
    pub fn global(&self, device: &Device, name: &str) -> Result<(u64, usize)> {
        let c_name = c_name("global", name)?;
        self.check_loaded("cuLibraryGetGlobal")?;
        let (mut address, mut size) = (0u64, 0usize);
        device
            .context()?
            .with_current(|| {
                // SAFETY: both results are valid for writes, the name is NUL-terminated, the library is live.
                unsafe {
                    driver!(cuLibraryGetGlobal(
                        &mut address,
                        &mut size,
                        self.handle(),
                        c_name.as_ptr()
                    ))
                }
            })
            .map_err(|e| match e.status() {
                Some(CUresult::CUDA_ERROR_NOT_FOUND) => {
                    e.with_log(&format!("the code has no variable `{name}`"))
                }
                _ => e,
            })?;
        Ok((address, size))
    }

    /// The library's module in the current context; valid while the library is loaded.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` if no context is current; errors of loading the code there.
    pub fn module(&self) -> Result<CUmodule> {
        self.check_loaded("cuLibraryGetModule")?;
        let mut module: CUmodule = std::ptr::null_mut();
        // SAFETY: `module` is valid for writes, the library is live.
        unsafe { driver!(cuLibraryGetModule(&mut module, self.handle()))? };
        Ok(module)
    }
}

impl PartialEq for Library {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
impl Eq for Library {}

/// The error for a handle that the program has unloaded.
#[cold]
pub(crate) fn unloaded(call: &'static str, what: &str) -> Error {
    Error::Driver {
        call,
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: format!(
            "{what} was unloaded by the program, with cuLibraryUnload or cudaLibraryUnload"
        ),
    }
}

pub(super) fn c_name(function: &'static str, name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| {
        let function = match function {
            "global" => "Library::global",
            _ => "Library::kernel",
        };
        Error::argument(function, "name", format!("{name:?} contains a NUL"))
    })
}

/// The name of a kernel in its code.
///
/// # Safety
///
/// The handle is that of a kernel whose library is loaded.
pub(crate) unsafe fn kernel_name(kernel: CUkernel) -> Result<String> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: `name` is valid for writes; the kernel is live.
    unsafe { driver!(cuKernelGetName(&mut name, kernel))? };
    if name.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the driver returns a NUL-terminated string that lives as long as the kernel.
    Ok(unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned())
}

fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

/// Describes a missing kernel: the most similar name, the existing ones, and why the code may lack the name.
pub(crate) fn describe_missing_kernel(name: &str, names: &[String]) -> String {
    let mut text = describe_missing_name(name, names, "kernel", "the code");
    // An instance of a template: `scale<float>`.
    let (base, arguments) = name.split_at(name.find('<').unwrap_or(name.len()));
    let is_name = !base.is_empty() && base.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name {
        return text;
    }
    let is_instance = |known: &String| {
        known
            .strip_prefix(base)
            .is_some_and(|rest| rest.starts_with('<'))
            || mangled_signature(known, base).is_some_and(|rest| rest.starts_with('I'))
    };
    let pass = "and pass the same text to get_kernel";
    if !arguments.is_empty() || names.iter().any(is_instance) {
        let expression = match arguments {
            "" => format!("{base}<...>"),
            _ => name.to_owned(),
        };
        text.push_str(&format!(
            "\nInstances of templates are compiled on request: compile with name_expressions=[\"{expression}\"] {pass}"
        ));
    } else if names
        .iter()
        .any(|known| mangled_signature(known, base).is_some())
    {
        text.push_str(&format!(
            "\nNames of C++ functions are mangled: add extern \"C\" to the declaration of the kernel, or compile with \
             name_expressions=[\"{name}\"] {pass}"
        ));
    } else if names.is_empty() {
        text.push_str(&format!(
            ", and no other\nTemplates are compiled on request: compile with name_expressions=[\"{name}<...>\"] {pass}. \
             Static kernels, too: name_expressions=[\"{name}\"]"
        ));
    }
    text
}

/// What follows the name in the mangled form of a function `name` outside of classes and namespaces: template arguments
/// (`I`...`E`) or parameters (Itanium C++ ABI).
fn mangled_signature<'a>(symbol: &'a str, name: &str) -> Option<&'a str> {
    let length = name.len().to_string();
    let rest = symbol.strip_prefix("_Z")?.strip_prefix(&length)?;
    rest.strip_prefix(name).filter(|rest| !rest.is_empty())
}

/// Describes a missing name: the most similar name, and the existing ones.
pub(crate) fn describe_missing_name(
    name: &str,
    names: &[String],
    what: &str,
    whose: &str,
) -> String {
    const SHOWN: usize = 20;
    let mut text = format!("{whose} has no {what} `{name}`");
    if names.is_empty() {
        return text;
    }
    let near = names
        .iter()
        .map(|n| (distance(name, n), n))
        .filter(|(d, n)| {
            *d <= name.len().max(n.len()) / 3 || (!name.is_empty() && n.contains(name))
        })
        .min();
    if let Some((_, near)) = near {
        text.push_str(&format!("; did you mean `{near}`?"));
    }
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let more = sorted.len().saturating_sub(SHOWN);
    sorted.truncate(SHOWN);
    text.push_str(&format!("\nIt has: {}", sorted.join(", ")));
    if more > 0 {
        text.push_str(&format!(", and {more} more"));
    }
    text
}

/// Levenshtein distance for names of at most 200 bytes; longer ones are compared for equality.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > 200 || b.len() > 200 {
        return if a == b { 0 } else { usize::MAX };
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_name_suggests_a_similar_one() {
        let names = ["saxpy", "daxpy", "copy"].map(String::from);
        let text = describe_missing_name("saxpi", &names, "kernel", "the code");
        assert!(text.contains("did you mean `saxpy`?"), "{text}");
        assert!(text.contains("copy, daxpy, saxpy"), "{text}");
        let text = describe_missing_name("something_else", &names, "kernel", "the code");
        assert!(!text.contains("did you mean"), "{text}");
        let many: Vec<String> = (0..30).map(|i| format!("k{i:02}")).collect();
        assert!(
            describe_missing_name("q", &many, "kernel", "the code").ends_with("k19, and 10 more")
        );
        let mangled = ["_Z5scaleIfEvPT_".to_owned()];
        assert!(
            describe_missing_name("scale", &mangled, "kernel", "the code").contains("did you mean")
        );
    }

    #[test]
    fn a_missing_kernel_is_explained_by_mangling_and_templates() {
        let explained = |name: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            describe_missing_kernel(name, &names)
        };
        let text = explained("scale", &["_Z5scalePf", "copy"]);
        assert!(
            text.contains("add extern \"C\"") && text.contains("name_expressions=[\"scale\"]"),
            "{text}"
        );
        for (name, names, expected) in [
            ("scale", &["_Z5scaleIfEvPT_"][..], "scale<...>"),
            ("scale", &["scale<float>"], "scale<...>"),
            ("scale<int>", &["scale<float>"], "scale<int>"),
            ("scale", &[], "scale<...>"),
        ] {
            let text = explained(name, names);
            let expected = format!("name_expressions=[\"{expected}\"]");
            assert!(text.contains(&expected), "{text}");
            assert!(!text.contains("extern"), "{text}");
        }
        for (name, names) in [("scale", &["_Z6scaledPf", "copy"][..]), ("", &["_Z0"])] {
            assert!(
                !explained(name, names).contains("name_expressions"),
                "{name}"
            );
        }
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}

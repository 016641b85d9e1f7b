//! Tests of the choice of the device and of resolving symbols, without any NVIDIA library.

use super::*;

extern "C" fn legacy() {}
extern "C" fn per_thread() {}

fn fake_cpu(name: &CStr) -> *const c_void {
    match name.to_bytes() {
        b"cuMemcpy" => legacy as *const c_void,
        b"cuMemcpy_ptds" => per_thread as *const c_void,
        _ => std::ptr::null(),
    }
}

const MEMCPY: SymbolDescriptor = SymbolDescriptor {
    name: c"cuMemcpy",
    export: c"cuMemcpy",
    version: 4000,
    per_thread: PerThreadVariant::Ptds,
};

fn missing() -> Result<pathfinder::Loaded, pathfinder::LoadError> {
    let nowhere = pathfinder::Environment::default();
    pathfinder::Finder {
        files: &pathfinder::files::MadeUpFiles::new(),
        loader: &Nothing,
        ..pathfinder::Finder::new(&nowhere)
    }
    .load("cuda")
}

/// A loader that knows no library.
struct Nothing;
impl pathfinder::loader::Loader for Nothing {
    fn loaded(&self, _: &str) -> Option<Handle> {
        None
    }
    fn open(&self, path: &std::ffi::OsStr, _: pathfinder::loader::Mode) -> Result<Handle, String> {
        Err(format!(
            "{}: cannot open shared object file: No such file or directory",
            path.to_string_lossy()
        ))
    }
    fn path(&self, _: Handle) -> Option<PathBuf> {
        None
    }
    fn resolve(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

fn broken() -> Result<pathfinder::Loaded, pathfinder::LoadError> {
    missing().map_err(|mut error| {
        error.kind = pathfinder::LoadErrorKind::Failed;
        error.file = Some("/somewhere/libcuda.so.1".into());
        error
    })
}

fn error(result: Result<Driver, LoadError>) -> LoadError {
    match result {
        Err(error) => error,
        Ok(driver) => panic!("chose a device: {}", driver.reason),
    }
}

#[test]
fn selection_words() {
    for (value, expected) in [
        (None, Selection::Auto),
        (Some(""), Selection::Auto),
        (Some("auto"), Selection::Auto),
        (Some("GPU"), Selection::Gpu),
        (Some(" cpu "), Selection::Cpu),
    ] {
        assert_eq!(selection(value), Ok(expected), "{value:?}");
    }
    let error = selection(Some("tpu")).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::InvalidSelection);
    assert!(error.to_string().contains("\"tpu\""), "{error}");
}

#[test]
fn no_driver_means_the_cpu_device_only_for_auto() {
    let auto = choose(Selection::Auto, Some(fake_cpu), missing).map(|d| d.reason);
    assert_eq!(auto.as_deref(), Ok(AUTO_CPU_REASON));

    let gpu = error(choose(Selection::Gpu, Some(fake_cpu), missing));
    assert_eq!(gpu.kind, LoadErrorKind::LibraryNotFound);
    let text = gpu.to_string();
    assert!(text.starts_with("CUPYRITE_DEVICE=gpu asks for"), "{text}");
    assert!(text.contains("CUPYRITE_DEVICE=cpu"), "{text}");
}

#[test]
fn a_broken_driver_never_falls_back() {
    let broken = error(choose(Selection::Auto, Some(fake_cpu), broken));
    assert_eq!(broken.kind, LoadErrorKind::LibraryFailed);
    assert!(broken.to_string().contains("does not load"), "{broken}");
}

#[test]
fn cpu_looks_for_no_driver() {
    let cpu = choose(Selection::Cpu, Some(fake_cpu), || panic!("looked"));
    assert!(matches!(cpu.map(|d| d.source), Ok(Source::Cpu(_))));
    let none = error(choose(Selection::Cpu, None, || panic!("looked")));
    assert_eq!(none.kind, LoadErrorKind::NoCpuDevice);
    // Without a CPU device `auto` reports the missing driver.
    let none = error(choose(Selection::Auto, None, missing));
    assert_eq!(none.kind, LoadErrorKind::LibraryNotFound);
}

#[test]
fn per_thread_forms_have_an_ending() {
    assert_eq!(
        with_export(&MEMCPY, false, fake_cpu),
        legacy as *const c_void
    );
    assert_eq!(
        with_export(&MEMCPY, true, fake_cpu),
        per_thread as *const c_void
    );
}

#[test]
fn errors_are_kept_once() {
    let one = intern(LoadError::plain(LoadErrorKind::NoCpuDevice, "same".into()));
    let two = intern(LoadError::plain(LoadErrorKind::NoCpuDevice, "same".into()));
    assert!(std::ptr::eq(one, two));
}

#[test]
fn proc_address_asks_for_the_exact_form() {
    use std::sync::atomic::{AtomicI32, AtomicU64};
    static VERSION: AtomicI32 = AtomicI32::new(0);
    static FLAGS: AtomicU64 = AtomicU64::new(0);
    unsafe extern "C" fn get(
        _: *const std::ffi::c_char,
        result: *mut *mut c_void,
        version: c_int,
        flags: u64,
        _: *mut c_int,
    ) -> c_int {
        VERSION.store(version, Ordering::Relaxed);
        FLAGS.store(flags, Ordering::Relaxed);
        // SAFETY: the caller passes room for one pointer.
        unsafe { *result = legacy as *mut c_void };
        0
    }
    assert!(proc_address(get, &MEMCPY, false).is_some());
    assert_eq!(
        (
            VERSION.load(Ordering::Relaxed),
            FLAGS.load(Ordering::Relaxed)
        ),
        (4000, 1)
    );
    assert!(proc_address(get, &MEMCPY, true).is_some());
    assert_eq!(
        (
            VERSION.load(Ordering::Relaxed),
            FLAGS.load(Ordering::Relaxed)
        ),
        (7000, 2)
    );
}

#[test]
fn a_missing_symbol_says_when_it_came() {
    let row = SymbolDescriptor {
        version: 13010,
        ..MEMCPY
    };
    let text = LoadError::symbol(CudaLibrary::Driver, &row).to_string();
    assert!(text.contains("CUDA 13.1"), "{text}");
}

#[test]
fn tables_resolve_once() {
    static SYMBOLS: [SymbolDescriptor; 2] = [
        MEMCPY,
        SymbolDescriptor {
            name: c"cuNope",
            export: c"cuNope",
            version: 1,
            per_thread: PerThreadVariant::None,
        },
    ];
    static SLOTS: [SymbolSlot; 2] = [const { SymbolSlot::new() }; 2];
    static TABLE: SymbolTable = SymbolTable::new(CudaLibrary::Driver, &SYMBOLS, &SLOTS);
    register_cpu_driver(fake_cpu);
    let first = match TABLE.get(0) {
        // A machine with a driver resolves to that, one without to the stand-in.
        Ok(address) => address,
        Err(error) => panic!("{error}"),
    };
    assert!(TABLE.is_resolved(0));
    assert_eq!(TABLE.get(0), Ok(first));
    let error = TABLE.get(1).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::SymbolNotFound);
    assert_eq!(error.symbol, Some(c"cuNope"));
    assert!(driver_backend().is_ok());
}

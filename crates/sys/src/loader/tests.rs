//! Tests of the choice of the device and of resolving symbols, without any NVIDIA library.

use std::ffi::{CStr, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::driver::{
    CPU_FALLBACK_REASON, DeviceSelection, Driver, DriverSource, choose, proc_address,
};
use super::error::intern;
use super::symbol::lookup_export;
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

fn with_cpu() -> Result<EntryPointLookup, LoadError> {
    Ok(fake_cpu)
}

const WITHOUT_CPU: Option<fn() -> Result<EntryPointLookup, LoadError>> = None;

const MEMCPY: SymbolDescriptor = SymbolDescriptor {
    name: c"cuMemcpy",
    export: c"cuMemcpy",
    version: 4000,
    per_thread: PerThreadVariant::Ptds,
};

fn missing_driver() -> Result<pathfinder::LoadedLibrary, pathfinder::LoadError> {
    let nowhere = pathfinder::Environment::default();
    pathfinder::Finder {
        files: &pathfinder::files::InMemoryFiles::new(),
        loader: &EmptyLoader,
        ..pathfinder::Finder::new(&nowhere)
    }
    .load("cuda")
}

/// A loader without any library.
struct EmptyLoader;
impl pathfinder::loader::DynamicLoader for EmptyLoader {
    fn find_loaded(&self, _: &str) -> Option<LibraryHandle> {
        None
    }
    fn open(
        &self,
        path: &std::ffi::OsStr,
        _: pathfinder::loader::OpenMode,
    ) -> Result<LibraryHandle, String> {
        Err(format!(
            "{}: cannot open shared object file: No such file or directory",
            path.to_string_lossy()
        ))
    }
    fn path(&self, _: LibraryHandle) -> Option<PathBuf> {
        None
    }
    fn resolve(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

fn broken_driver() -> Result<pathfinder::LoadedLibrary, pathfinder::LoadError> {
    missing_driver().map_err(|mut error| {
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
fn device_selection_values() {
    for (value, expected) in [
        (None, DeviceSelection::Auto),
        (Some(""), DeviceSelection::Auto),
        (Some("auto"), DeviceSelection::Auto),
        (Some("GPU"), DeviceSelection::Gpu),
        (Some(" cpu "), DeviceSelection::Cpu),
    ] {
        assert_eq!(DeviceSelection::parse(value), Ok(expected), "{value:?}");
    }
    let error = DeviceSelection::parse(Some("tpu")).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::InvalidSelection);
    assert_eq!(
        error.to_string(),
        "CUPYRITE_DEVICE='tpu': expected auto, gpu or cpu"
    );
}

#[test]
fn per_thread_default_stream_values_are_python_integers() {
    for (value, expected) in [
        ("0", Some(false)),
        ("-00", Some(false)),
        ("1", Some(true)),
        (" +2\n", Some(true)),
        ("-1", Some(true)),
        ("1_0", Some(true)),
        ("99999999999999999999", Some(true)),
        ("", None),
        (" ", None),
        ("+", None),
        ("x", None),
        ("1x", None),
        ("1.0", None),
        ("0x1", None),
        ("_1", None),
        ("1__0", None),
        ("- 1", None),
    ] {
        assert_eq!(
            selects_per_thread_default_stream(value),
            expected,
            "{value:?}"
        );
    }
}

#[test]
fn a_missing_driver_falls_back_only_for_auto() {
    let auto = choose(DeviceSelection::Auto, Some(with_cpu), missing_driver).map(|d| d.reason);
    assert_eq!(auto.as_deref(), Ok(CPU_FALLBACK_REASON));

    let gpu = error(choose(DeviceSelection::Gpu, Some(with_cpu), missing_driver));
    assert_eq!(gpu.kind, LoadErrorKind::LibraryNotFound);
    let text = gpu.to_string();
    assert!(text.starts_with("CUPYRITE_DEVICE=gpu: "), "{text}");
    assert!(text.contains("CUPYRITE_DEVICE=cpu"), "{text}");
}

#[test]
fn a_broken_driver_never_falls_back() {
    let broken = error(choose(DeviceSelection::Auto, Some(with_cpu), broken_driver));
    assert_eq!(broken.kind, LoadErrorKind::LibraryFailed);
    assert!(broken.to_string().contains("failed to load"), "{broken}");
}

#[test]
fn cpu_does_not_search_for_a_driver() {
    let cpu = choose(DeviceSelection::Cpu, Some(with_cpu), || {
        panic!("searches for a driver")
    });
    assert!(matches!(cpu.map(|d| d.source), Ok(DriverSource::Cpu(_))));
    let none = error(choose(DeviceSelection::Cpu, WITHOUT_CPU, || {
        panic!("searches for a driver")
    }));
    assert_eq!(none.kind, LoadErrorKind::NoCpuDevice);
    // Without a CPU device `auto` reports the missing driver.
    let none = error(choose(DeviceSelection::Auto, WITHOUT_CPU, missing_driver));
    assert_eq!(none.kind, LoadErrorKind::LibraryNotFound);
}

#[test]
fn per_thread_variants_have_a_suffix() {
    assert_eq!(
        lookup_export(&MEMCPY, false, fake_cpu),
        legacy as *const c_void
    );
    assert_eq!(
        lookup_export(&MEMCPY, true, fake_cpu),
        per_thread as *const c_void
    );
}

#[test]
fn equal_errors_are_interned_once() {
    let one = intern(LoadError::plain(LoadErrorKind::NoCpuDevice, "same".into()));
    let two = intern(LoadError::plain(LoadErrorKind::NoCpuDevice, "same".into()));
    assert!(std::ptr::eq(one, two));
}

#[test]
fn proc_address_requests_the_exact_version() {
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
fn a_missing_symbol_names_its_cuda_version() {
    let row = SymbolDescriptor {
        version: 13010,
        ..MEMCPY
    };
    let text = LoadError::symbol(CudaLibrary::Driver, &row).to_string();
    assert!(text.contains("CUDA 13.1"), "{text}");
}

#[test]
fn a_symbol_resolves_once() {
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
    register_cpu_device(CpuDeviceSource::Linked(CpuDevice {
        driver: fake_cpu,
        nvml: fake_cpu,
        interpose: |_, _, address| address,
    }));
    let first = match TABLE.get(0) {
        // Resolves to the NVIDIA driver where one is installed, else to `fake_cpu`.
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

//! Buffers dropped after a kernel's fault and after the reset of their context. A test binary of its own: the context is
//! unusable after the fault.

use std::sync::Mutex;

use cupyrite::sys::driver::{CUresult, cuDevicePrimaryCtxReset};
use cupyrite::{Device, LaunchConfig, Library, MemoryPool};

const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry fails() { trap; }
";

static LOGGED: Mutex<Vec<(log::Level, String)>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        if text.contains("while releasing") {
            LOGGED.lock().unwrap().push((record.level(), text));
        }
    }

    fn flush(&self) {}
}

#[test]
fn one_warning_is_logged_for_all_buffers_of_a_failed_context() {
    log::set_logger(&Logger).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let library = Library::load(PTX.as_bytes()).unwrap();
    let kernel = library.kernel("fails").unwrap();
    let pool = MemoryPool::default_for(&device).unwrap();
    let allocate = || pool.allocate(64, &stream).unwrap();
    let (now, closed, later) = ([allocate(), allocate(), allocate()], allocate(), allocate());
    // SAFETY: the kernel has no parameters and uses no memory.
    unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 1), &()) }.unwrap();
    let failed = stream.synchronize().unwrap_err();
    assert!(failed.leaves_context_unusable(), "{failed}");

    drop(now);
    let logged = std::mem::take(&mut *LOGGED.lock().unwrap());
    let levels: Vec<log::Level> = logged.iter().map(|(level, _)| *level).collect();
    let (warn, debug) = (log::Level::Warn, log::Level::Debug);
    assert_eq!(levels, [warn, debug, debug], "{logged:?}");
    let error = closed.close_in_destructor().unwrap_err();
    assert_eq!(error.status(), failed.status());

    // SAFETY: nothing of the context is used afterwards but what the drops below release.
    let reset = unsafe { cuDevicePrimaryCtxReset(device.handle()) };
    assert_eq!(reset.unwrap(), CUresult::CUDA_SUCCESS);
    drop(later);
    drop(stream);
    let logged = std::mem::take(&mut *LOGGED.lock().unwrap());
    assert!(logged.is_empty(), "{logged:?}");
}

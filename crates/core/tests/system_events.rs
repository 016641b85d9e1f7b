//! Events of NVML. The kernel that fails makes the process's context unusable.

use std::time::{Duration, Instant};

use cupyrite::sys::nvml::nvmlReturn_t;
use cupyrite::system::{DeviceEvents, EventType, SystemEventType, SystemEvents};
use cupyrite::{Device, Error, LaunchConfig, Library};

const TRAP: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry fail() { trap; ret; }
";

/// The events, or `None` where the machine does not report them.
fn supported<T>(result: cupyrite::Result<T>) -> Option<T> {
    match result {
        Err(Error::Nvml {
            status:
                nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED
                | nvmlReturn_t::NVML_ERROR_NO_PERMISSION
                | nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND,
            ..
        }) => None,
        other => Some(other.unwrap()),
    }
}

#[test]
fn a_failed_kernel_is_an_event() {
    let device = Device::new(0).unwrap();
    let managed = device.to_system_device().unwrap();
    let is_cpu = device.name().unwrap().starts_with("CPU");
    let Some(events) = supported(managed.register_events(&[EventType::XidCriticalError])) else {
        assert!(!is_cpu);
        return;
    };
    let supported = managed.supported_events().unwrap();
    assert!(supported.contains(&EventType::XidCriticalError));
    let start = Instant::now();
    let short = Duration::from_millis(50);
    assert_eq!(events.wait(Some(short)).unwrap(), None);
    assert!(start.elapsed() >= short);
    assert_eq!(events.wait(Some(Duration::ZERO)).unwrap(), None);

    let waiting = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| events.wait(Some(Duration::from_secs(60))));
        let module = Library::load(TRAP.as_bytes()).unwrap();
        let kernel = module.kernel("fail").unwrap();
        let stream = device.create_stream().unwrap();
        // SAFETY: the kernel uses no memory.
        unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 1), &()) }.unwrap();
        assert!(stream.synchronize().is_err());
        waiter.join().unwrap()
    });
    let event = waiting.unwrap().expect("an event within a minute");
    assert_eq!(event.device, managed);
    assert_eq!(event.kind, Some(EventType::XidCriticalError));
    assert_eq!((event.gpu_instance, event.compute_instance), (None, None));
    if is_cpu {
        assert_eq!(event.xid, 13);
        let other = managed.register_events(&[EventType::Clock]).unwrap_err();
        assert!(
            other.to_string().starts_with("nvmlDeviceRegisterEvents: "),
            "{other}"
        );
    }

    // A set of an earlier initialisation is not used again, and is dropped without a call.
    // SAFETY: takes nothing.
    let _ = unsafe { cupyrite::sys::nvml::nvmlShutdown() };
    managed.name().unwrap();
    if is_cpu {
        let error = events.wait(Some(Duration::ZERO)).unwrap_err();
        assert!(matches!(
            error,
            Error::Nvml {
                call: "nvmlEventSetWait_v2",
                status: nvmlReturn_t::NVML_ERROR_UNINITIALIZED
            }
        ));
    }
    drop(events);
    for _ in 0..1000 {
        DeviceEvents::new().unwrap();
    }
}

#[test]
fn events_of_the_system() {
    let Some(events) = supported(SystemEvents::register(&[
        SystemEventType::Bind,
        SystemEventType::Unbind,
    ])) else {
        return;
    };
    assert_eq!(events.wait(Some(Duration::from_millis(10)), 4).unwrap(), []);
    for most in [0, (1 << 20) + 1] {
        let error = events.wait(None, most).unwrap_err();
        assert!(error.to_string().contains("most"), "{error}");
    }
}

//! The machine through NVML, and checkpoints of processes.

use std::time::Duration;

use cupyrite::checkpoint::{DeviceMapping, Process, ProcessState};
use cupyrite::sys::driver::CUresult;
use cupyrite::sys::nvml::nvmlReturn_t;
use cupyrite::{Device, Error, system};

#[test]
fn devices_map_to_each_other() {
    for device in Device::all().unwrap() {
        let managed = device.to_system_device().unwrap();
        assert_eq!(managed.name().unwrap(), device.name().unwrap());
        assert_eq!(managed.to_cuda_device().unwrap(), Some(device));
        assert_eq!(
            system::Device::new(managed.index().unwrap()).unwrap(),
            managed
        );
    }
    assert!(!system::Device::all().unwrap().is_empty());
}

#[test]
fn memory_adds_up() {
    let device = system::Device::new(0).unwrap();
    let memory = device.memory_info().unwrap();
    assert_eq!(memory.total, memory.free + memory.used + memory.reserved);
    if let Ok(rates) = device.utilization() {
        assert!(rates.gpu <= 100 && rates.memory <= 100);
    }
    device.compute_processes().unwrap();
}

#[test]
fn unknown_devices_name_the_call() {
    let error = system::Device::from_uuid("GPU-0").unwrap_err();
    assert!(
        matches!(
            error,
            Error::Nvml {
                call: "nvmlDeviceGetHandleByUUID",
                ..
            }
        ),
        "{error}"
    );
    let error = system::Device::new(1 << 16).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("nvmlDeviceGetHandleByIndex_v2: ")
    );
    assert!(system::Device::from_uuid("a\0b").is_err());
    let error = system::process_name(i32::MAX as u32).unwrap_err();
    assert!(matches!(
        error,
        Error::Nvml {
            status: nvmlReturn_t::NVML_ERROR_NOT_FOUND,
            ..
        }
    ));
}

#[test]
fn versions_are_numbers() {
    for version in [system::driver_version(), system::nvml_version()] {
        let version = version.unwrap();
        assert!(
            version.split('.').all(|part| part.parse::<u32>().is_ok()),
            "{version}"
        );
    }
    assert!(!system::process_name(std::process::id()).unwrap().is_empty());
}

#[test]
fn queries_survive_a_shutdown_by_another_library() {
    let device = system::Device::new(0).unwrap();
    let name = device.name().unwrap();
    // SAFETY: takes nothing.
    let _ = unsafe { cupyrite::sys::nvml::nvmlShutdown() };
    assert_eq!(device.name().unwrap(), name);
}

/// One test, because it locks the whole process.
#[test]
fn a_process_is_checkpointed_and_restored() {
    let device = Device::new(0).unwrap();
    if !device.name().unwrap().starts_with("CPU") {
        // What a GPU's driver allows a process to do to itself is tested from a second process, in Python.
        return;
    }
    let values: Vec<u32> = (0..100_000).collect();
    let buffer = device.buffer_from(&values).unwrap();
    let process = Process::new(std::process::id());
    assert_eq!(process.state().unwrap(), ProcessState::Running);
    let status = |result: cupyrite::Result<()>| result.unwrap_err().status();
    assert_eq!(
        status(process.unlock()),
        Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
    );
    assert_eq!(
        status(process.restore(&[])),
        Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
    );
    assert!(process.lock(Some(Duration::from_micros(1))).is_err());
    process.lock(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(process.state().unwrap(), ProcessState::Locked);
    process.checkpoint().unwrap();
    assert_eq!(process.state().unwrap(), ProcessState::Checkpointed);
    let uuid = device.uuid().unwrap();
    let wrong = DeviceMapping {
        old: uuid,
        new: [1; 16],
    };
    assert_eq!(
        status(process.restore(&[wrong])),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    process
        .restore(&[DeviceMapping {
            old: uuid,
            new: uuid,
        }])
        .unwrap();
    process.unlock().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), values);
    assert!(process.restore_thread_id().unwrap() > 0);
    assert!(Process::new(u32::MAX).state().is_err());
    assert!(Process::new(1).state().is_err());
}

//! The machine through NVML, and checkpoints of processes.

use std::time::Duration;

use cupyrite::checkpoint::{DeviceMapping, Process, ProcessState};
use cupyrite::sys::driver::CUresult;
use cupyrite::sys::nvml::nvmlReturn_t;
use cupyrite::system::{
    AffinityScope, ClockId, ClockType, InforomObject, PeerCapability, TemperatureThreshold,
    ThermalTarget, TopologyLevel,
};
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

fn is_cpu(device: &system::Device) -> bool {
    device.name().unwrap().starts_with("CPU")
}

#[test]
fn devices_are_found_by_every_name() {
    let all = system::Device::all().unwrap();
    assert_eq!(system::Device::count().unwrap() as usize, all.len());
    for device in &all {
        let uuid = device.uuid();
        assert_eq!(&system::Device::from_uuid(uuid).unwrap(), device);
        assert_eq!(&system::Device::from_uuid(&uuid[4..]).unwrap(), device);
        let pci = device.pci_info().unwrap();
        assert_eq!(
            &system::Device::from_pci_bus_id(&pci.bus_id).unwrap(),
            device
        );
        assert!(pci.bus <= 255 && pci.device <= 31);
    }
    for wrong in ["", "x", "1:2:3:4"] {
        assert!(
            system::Device::from_pci_bus_id(wrong)
                .unwrap_err()
                .to_string()
                .starts_with("nvmlDeviceGetHandleByPciBusId_v2: ")
        );
    }
    let error = system::Device::from_pci_bus_id("a\0b").unwrap_err();
    assert!(error.to_string().contains("bus_id"), "{error}");
}

#[test]
fn identity_agrees_with_the_driver() {
    for device in Device::all().unwrap() {
        let managed = device.to_system_device().unwrap();
        let (major, minor) = managed.compute_capability().unwrap();
        let capability = device.compute_capability().unwrap();
        assert_eq!(
            (major as u32, minor as u32),
            (capability.major, capability.minor)
        );
        assert!(managed.architecture().unwrap().is_some());
        managed.minor_number().unwrap();
        assert!(!managed.mig().is_mig_device().unwrap());
        if is_cpu(&managed) {
            assert_eq!(managed.brand().unwrap(), None);
            assert_eq!(managed.module_id().unwrap(), 0);
            assert!(!managed.is_display_active().unwrap());
            assert_eq!(managed.mig().devices().unwrap(), []);
        }
    }
    let (major, minor) = system::cuda_driver_version().unwrap();
    assert!(major >= 12 && minor < 10);
}

#[test]
fn clocks_and_resources() {
    let device = system::Device::new(0).unwrap();
    let clock = device.clock(ClockType::Sm);
    // A computer may not tell the frequencies of its processors.
    for frequency in [clock.mhz(ClockId::Current), clock.max_mhz()] {
        assert!(!matches!(frequency, Ok(0)), "{frequency:?}");
    }
    for state in [16, u32::MAX] {
        for error in [
            clock.range_mhz(state).unwrap_err(),
            clock.offsets(state).map(|_| (0, 0)).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(
                text.contains("performance_state") && text.contains("0 (fastest) to 15"),
                "{text}"
            );
        }
    }
    if is_cpu(&device) {
        let resources = device.resources().unwrap();
        let cuda = device.to_cuda_device().unwrap().unwrap();
        let total = device.memory_info().unwrap().total;
        assert!(resources.multiprocessors > 0 && cuda.name().is_ok());
        assert_eq!(resources.memory_mib, total >> 20);
    }
}

#[test]
fn the_calling_process_is_listed_with_its_memory() {
    let device = Device::new(0).unwrap();
    let managed = device.to_system_device().unwrap();
    let _buffer = device.buffer_from(&vec![1u8; 1 << 20]).unwrap();
    let processes = managed.compute_processes().unwrap();
    if is_cpu(&managed) {
        let [process] = processes[..] else {
            panic!("{processes:?}")
        };
        assert_eq!(process.pid, std::process::id());
        assert!(process.used_memory.unwrap() >= 1 << 20);
        assert_eq!(
            (process.gpu_instance, process.compute_instance),
            (None, None)
        );
    }
}

#[test]
fn topology() {
    let all = system::Device::all().unwrap();
    let device = &all[0];
    for scope in [AffinityScope::Node, AffinityScope::Socket] {
        let (cpus, nodes) = (device.cpu_affinity(scope), device.memory_affinity(scope));
        if is_cpu(device) {
            let cpus = cpus.unwrap();
            assert!(!cpus.is_empty() && cpus.is_sorted());
            assert!(!nodes.unwrap().is_empty());
            assert_eq!(system::Device::near_cpu(cpus[0]).unwrap(), all);
        }
    }
    let near = device.nearest_devices(TopologyLevel::System);
    if is_cpu(device) {
        assert!(!near.unwrap().contains(device));
    }
    for other in &all[1..] {
        assert!(device.common_ancestor(other).is_ok());
        let status = device.peer_status(other, PeerCapability::Read).unwrap();
        assert!(status.is_some());
    }
    // Another thread, because it is bound to CPUs.
    let bound = device.clone();
    std::thread::spawn(move || {
        if is_cpu(&bound) {
            bound.set_cpu_affinity().unwrap();
            bound.clear_cpu_affinity().unwrap();
        }
    })
    .join()
    .unwrap();
}

#[test]
fn missing_features_name_the_call() {
    let device = system::Device::new(0).unwrap();
    if !is_cpu(&device) {
        return;
    }
    let inforom = device.inforom();
    let fan = |_| device.fan(0).map(drop);
    let calls: [(&str, cupyrite::Result<()>); 27] = [
        ("nvmlDeviceGetSerial", device.serial().map(drop)),
        ("nvmlDeviceGetTemperatureV", device.temperature().map(drop)),
        (
            "nvmlDeviceGetMarginTemperature",
            device.temperature_margin().map(drop),
        ),
        (
            "nvmlDeviceGetTemperatureThreshold",
            device
                .temperature_threshold(TemperatureThreshold::Slowdown)
                .map(drop),
        ),
        (
            "nvmlDeviceGetThermalSettings",
            device.thermal_sensors(ThermalTarget::All).map(drop),
        ),
        ("nvmlDeviceGetCoolerInfo", device.cooler().map(drop)),
        ("nvmlDeviceGetNumFans", fan(())),
        (
            "nvmlDeviceGetMinMaxFanSpeed",
            device.fan_speed_range().map(drop),
        ),
        (
            "nvmlDeviceGetBAR1MemoryInfo",
            device.bar1_memory_info().map(drop),
        ),
        (
            "nvmlDeviceGetRepairStatus",
            device.repair_status().map(drop),
        ),
        (
            "nvmlDeviceGetDynamicPstatesInfo",
            device.domain_utilization().map(drop),
        ),
        (
            "nvmlDeviceGetPerformanceState",
            device.performance_state().map(drop),
        ),
        (
            "nvmlDeviceGetSupportedPerformanceStates",
            device.supported_performance_states().map(drop),
        ),
        (
            "nvmlDeviceGetCurrentClocksEventReasons",
            device.clock_event_reasons().map(drop),
        ),
        (
            "nvmlDeviceGetSupportedClocksEventReasons",
            device.supported_clock_event_reasons().map(drop),
        ),
        (
            "nvmlDeviceGetAutoBoostedClocksEnabled",
            device.is_auto_boost_enabled().map(drop),
        ),
        (
            "nvmlDeviceGetPersistenceMode",
            device.is_persistence_mode_enabled().map(drop),
        ),
        (
            "nvmlDeviceSetPersistenceMode",
            device.set_persistence_mode(true),
        ),
        (
            "nvmlDeviceGetC2cModeInfoV",
            device.is_c2c_enabled().map(drop),
        ),
        (
            "nvmlDeviceGetAddressingMode",
            device.addressing_mode().map(drop),
        ),
        ("nvmlDeviceGetNumaNodeId", device.numa_node().map(drop)),
        ("nvmlDeviceGetMigMode", device.mig().mode().map(drop)),
        (
            "nvmlDeviceGetCurrPcieLinkGeneration",
            device.pcie_link().map(drop),
        ),
        ("nvmlDeviceGetPcieThroughput", device.pcie_sent().map(drop)),
        (
            "nvmlDeviceGetInforomVersion",
            inforom.version(InforomObject::Ecc).map(drop),
        ),
        (
            "nvmlDeviceGetInforomImageVersion",
            inforom.image_version().map(drop),
        ),
        ("nvmlDeviceValidateInforom", inforom.validate()),
    ];
    for (name, result) in calls {
        let Err(Error::Nvml { call, status }) = result else {
            panic!("{name}: {result:?}");
        };
        assert_eq!(call, name);
        assert_eq!(status, nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED, "{name}");
    }
}

#[test]
fn errors_of_fields_belong_to_the_fields() {
    use cupyrite::sys::nvml::{NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_NVLINK_LINK_COUNT};
    let device = system::Device::new(0).unwrap();
    assert!(device.field_values(&[]).unwrap().is_empty());
    device.clear_field_values(&[]).unwrap();
    let fields = [
        (NVML_FI_DEV_ECC_CURRENT, 0),
        (NVML_FI_DEV_NVLINK_LINK_COUNT, 3),
        (1 << 20, 0),
    ];
    let Ok(values) = device.field_values(&fields) else {
        return;
    };
    let found: Vec<_> = values.iter().map(|v| (v.field, v.scope)).collect();
    assert_eq!(found, fields);
    let error = values[2].value().unwrap_err();
    assert!(
        error.to_string().starts_with("nvmlDeviceGetFieldValues: "),
        "{error}"
    );
    if is_cpu(&device) {
        assert!(values.iter().all(|value| value.value().is_err()));
        let error = device.nvlink(0).unwrap_err();
        assert!(
            error.to_string().starts_with("nvmlDeviceGetFieldValues: "),
            "{error}"
        );
    }
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
    let mapping: Vec<DeviceMapping> = (Device::all().unwrap().iter())
        .map(|device| device.uuid().unwrap())
        .map(|uuid| DeviceMapping {
            old: uuid,
            new: uuid,
        })
        .collect();
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
    process.restore(&mapping).unwrap();
    process.unlock().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), values);
    assert!(process.restore_thread_id().unwrap() > 0);
    assert!(Process::new(u32::MAX).state().is_err());
    assert!(Process::new(1).state().is_err());
}

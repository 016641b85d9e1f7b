//! Calls NVML's C entry points as a program would.

use std::ffi::{CStr, CString, c_char};

use cupyrite_sys::nvml::{
    SYMBOLS, nvmlGpuP2PStatus_t, nvmlMemory_st, nvmlMemory_v2_st, nvmlPciInfo_st,
    nvmlProcessInfo_v2_st, nvmlUtilization_st,
};
use parking_lot::{Mutex, MutexGuard};

use super::get_proc;

const UNINITIALIZED: u32 = 1;
const INVALID_ARGUMENT: u32 = 2;
const NOT_SUPPORTED: u32 = 3;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;
const VERSION_MISMATCH: u32 = 25;

/// An entry point called with words only; surplus arguments are ignored.
type Words = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> u32;

fn call(name: &str, args: &[u64]) -> u32 {
    let address = get_proc(&CString::new(name).unwrap());
    assert!(!address.is_null(), "{name} has no address");
    let mut a = [0u64; 6];
    a[..args.len()].copy_from_slice(args);
    // SAFETY: all entry points are C functions of at most six integer arguments, which both ABIs pass in registers.
    unsafe {
        std::mem::transmute::<*const std::ffi::c_void, Words>(address)(
            a[0], a[1], a[2], a[3], a[4], a[5],
        )
    }
}

fn at<T>(value: &mut T) -> u64 {
    std::ptr::from_mut(value) as u64
}

/// NVML's initialisation count is per process: tests run one at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Session(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Session {
    fn new() -> Self {
        let turn = TURN.lock();
        assert_eq!(call("nvmlInit_v2", &[]), 0);
        Session(turn)
    }

    fn device(&self) -> u64 {
        let mut device = 0u64;
        assert_eq!(
            call("nvmlDeviceGetHandleByIndex_v2", &[0, at(&mut device)]),
            0
        );
        device
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        assert_eq!(call("nvmlShutdown", &[]), 0);
    }
}

/// The text returned by a function of (device, buffer, length).
fn text(name: &str, device: u64) -> String {
    let mut buffer = [0x55u8; 96];
    assert_eq!(
        call(name, &[device, at(&mut buffer), buffer.len() as u64]),
        0,
        "{name}"
    );
    CStr::from_bytes_until_nul(&buffer)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn initialisations_are_counted() {
    let session = Session::new();
    let mut count = 0u32;
    assert_eq!(call("nvmlInitWithFlags", &[1]), 0);
    assert_eq!(call("nvmlShutdown", &[]), 0);
    assert_eq!(call("nvmlDeviceGetCount_v2", &[at(&mut count)]), 0);
    assert!(count >= 1);
    drop(session);
    let _turn = TURN.lock();
    assert_eq!(
        call("nvmlDeviceGetCount_v2", &[at(&mut count)]),
        UNINITIALIZED
    );
    assert_eq!(call("nvmlDeviceGetFanSpeed", &[0, 0]), UNINITIALIZED);
    assert_eq!(call("nvmlShutdown", &[]), UNINITIALIZED);
}

#[test]
fn every_entry_point_returns_a_status() {
    let _session = Session::new();
    let mut done = 0;
    for row in &SYMBOLS {
        let name = row.export.to_str().unwrap();
        if super::implemented().any(|e| e.name == name) {
            done += 1;
        } else if name != "nvmlErrorString" {
            assert_eq!(call(name, &[0; 6]), NOT_SUPPORTED, "{name}");
        }
    }
    assert_eq!(
        done,
        super::implemented().count(),
        "an entry point that NVML does not have"
    );
    assert!(get_proc(c"nvmlNoSuchFunction").is_null());
    assert!(get_proc(c"cuInit").is_null());
}

#[test]
fn devices_are_found_by_index_uuid_and_pci_id() {
    let session = Session::new();
    let device = session.device();
    let uuid = text("nvmlDeviceGetUUID", device);
    assert!(
        uuid.starts_with("GPU-63757079-7269-") && uuid.len() == 40,
        "{uuid}"
    );
    assert!(text("nvmlDeviceGetName", device).starts_with("CPU"));
    // SAFETY: all zeros is a valid struct of integers.
    let mut pci: nvmlPciInfo_st = unsafe { std::mem::zeroed() };
    assert_eq!(call("nvmlDeviceGetPciInfo_v3", &[device, at(&mut pci)]), 0);
    // SAFETY: the array ends with a NUL, as the function promises.
    let bus_id = unsafe { CStr::from_ptr(pci.busId.as_ptr()) }
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        (bus_id.as_str(), pci.domain, pci.bus),
        ("0000C0DE:01:00.0", 0xC0DE, 1)
    );

    for (name, key) in [
        ("nvmlDeviceGetHandleByUUID", uuid.as_str()),
        ("nvmlDeviceGetHandleByUUID", &uuid["GPU-".len()..]),
        ("nvmlDeviceGetHandleByPciBusId_v2", &bus_id),
    ] {
        let key = CString::new(key).unwrap();
        let mut found = 0u64;
        assert_eq!(
            call(name, &[key.as_ptr() as u64, at(&mut found)]),
            0,
            "{name}"
        );
        assert_eq!(found, device);
        assert_eq!(call(name, &[key.as_ptr() as u64, 0]), INVALID_ARGUMENT);
        assert_eq!(call(name, &[0, at(&mut found)]), INVALID_ARGUMENT);
    }
    let mut found = 0u64;
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByUUID",
            &[c"GPU-0".as_ptr() as u64, at(&mut found)]
        ),
        NOT_FOUND
    );
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByPciBusId_v2",
            &[c"0000:01:00.0".as_ptr() as u64, at(&mut found)]
        ),
        NOT_FOUND
    );
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByPciBusId_v2",
            &[c"nonsense".as_ptr() as u64, at(&mut found)]
        ),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call("nvmlDeviceGetHandleByIndex_v2", &[1 << 20, at(&mut found)]),
        INVALID_ARGUMENT
    );
    let mut index = 9u32;
    assert_eq!(call("nvmlDeviceGetIndex", &[device, at(&mut index)]), 0);
    assert_eq!(index, 0);
}

#[test]
fn devices_are_found_by_versioned_uuid() {
    let session = Session::new();
    let device = session.device();
    let uuid = text("nvmlDeviceGetUUID", device);
    let mut found = 0u64;
    let mut request = [0u8; 52];
    request[..4].copy_from_slice(&(52u32 | 1 << 24).to_ne_bytes());
    request[4] = 1;
    request[8..48].copy_from_slice(uuid.as_bytes());
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByUUIDV",
            &[at(&mut request), at(&mut found)]
        ),
        0
    );
    assert_eq!(found, device);
    request[8..].fill(0);
    request[8..44].copy_from_slice(&uuid.as_bytes()["GPU-".len()..]);
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByUUIDV",
            &[at(&mut request), at(&mut found)]
        ),
        0
    );
    request[4] = 2;
    request[8..].fill(0);
    request[8..24].copy_from_slice(b"cupyri\x84e\x80\0\0\0\0\0\0\0");
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByUUIDV",
            &[at(&mut request), at(&mut found)]
        ),
        0
    );
    request[4] = 3;
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByUUIDV",
            &[at(&mut request), at(&mut found)]
        ),
        INVALID_ARGUMENT
    );
    request[0] = 0;
    assert_eq!(
        call(
            "nvmlDeviceGetHandleByUUIDV",
            &[at(&mut request), at(&mut found)]
        ),
        VERSION_MISMATCH
    );
    assert_eq!(
        call("nvmlDeviceGetHandleByUUIDV", &[8, at(&mut found)]),
        INVALID_ARGUMENT
    );
}

#[test]
fn invalid_handles_are_refused() {
    let session = Session::new();
    let device = session.device();
    let mut out = [0u8; 128];
    for wrong in [0, 1, 8, device - 1, device + 1000, u64::MAX, at(&mut out)] {
        for name in [
            "nvmlDeviceGetIndex",
            "nvmlDeviceGetMemoryInfo",
            "nvmlDeviceGetUtilizationRates",
            "nvmlDeviceGetPciInfo_v3",
        ] {
            assert_eq!(
                call(name, &[wrong, at(&mut out)]),
                INVALID_ARGUMENT,
                "{name} {wrong:#x}"
            );
        }
    }
    for name in [
        "nvmlDeviceGetIndex",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetName",
    ] {
        for nowhere in [0, 8, u64::MAX - 7] {
            assert_eq!(
                call(name, &[device, nowhere, 64]),
                INVALID_ARGUMENT,
                "{name} {nowhere:#x}"
            );
        }
    }
}

#[test]
fn short_buffers_are_reported() {
    let session = Session::new();
    let device = session.device();
    let mut buffer = [0x55u8; 8];
    assert_eq!(
        call("nvmlDeviceGetName", &[device, at(&mut buffer), 3]),
        INSUFFICIENT_SIZE
    );
    assert_eq!(
        call("nvmlSystemGetDriverVersion", &[at(&mut buffer), 0]),
        INSUFFICIENT_SIZE
    );
    assert_eq!(buffer, [0x55; 8]);
    let mut version = 0i32;
    assert_eq!(
        call("nvmlSystemGetCudaDriverVersion_v2", &[at(&mut version)]),
        0
    );
    assert!(version >= 13000);
    // Process names are truncated.
    assert_eq!(
        call(
            "nvmlSystemGetProcessName",
            &[std::process::id().into(), at(&mut buffer), 2]
        ),
        0
    );
    assert_eq!(buffer[1], 0);
    assert_eq!(
        call(
            "nvmlSystemGetProcessName",
            &[u32::MAX.into(), at(&mut buffer), 8]
        ),
        NOT_FOUND
    );
    assert_eq!(
        call("nvmlSystemGetProcessName", &[1, at(&mut buffer), 0]),
        INVALID_ARGUMENT
    );
}

#[test]
fn free_and_used_memory_add_up() {
    let session = Session::new();
    let device = session.device();
    // SAFETY: all zeros is a valid struct of integers.
    let (mut v1, mut v2): (nvmlMemory_st, nvmlMemory_v2_st) = unsafe { std::mem::zeroed() };
    assert_eq!(call("nvmlDeviceGetMemoryInfo", &[device, at(&mut v1)]), 0);
    assert!(v1.total > 0 && v1.used + v1.free == v1.total);
    assert_eq!(
        call("nvmlDeviceGetMemoryInfo_v2", &[device, at(&mut v2)]),
        VERSION_MISMATCH
    );
    v2.version = 40 | 2 << 24;
    assert_eq!(
        call("nvmlDeviceGetMemoryInfo_v2", &[device, at(&mut v2)]),
        0
    );
    assert_eq!(v2.total, v1.total);
    assert_eq!(v2.used + v2.free + v2.reserved, v2.total);
}

#[test]
fn process_count_is_queried_first() {
    let session = Session::new();
    let device = session.device();
    let mut count = 0u32;
    for name in [
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    ] {
        count = 5;
        assert_eq!(call(name, &[device, at(&mut count), 0]), 0);
        assert_eq!(count, 0);
    }
    // SAFETY: all zeros is a valid struct of integers.
    let mut info: nvmlProcessInfo_v2_st = unsafe { std::mem::zeroed() };
    let name = "nvmlDeviceGetComputeRunningProcesses_v3";
    let first = call(name, &[device, at(&mut count), 0]);
    // Whether this process has a context depends on the other tests.
    assert_eq!(first, if count == 0 { 0 } else { INSUFFICIENT_SIZE });
    count = 1;
    assert_eq!(call(name, &[device, at(&mut count), at(&mut info)]), 0);
    if count == 1 {
        assert_eq!(
            (info.pid, info.gpuInstanceId),
            (std::process::id(), u32::MAX)
        );
    }
    assert_eq!(call(name, &[device, 0, 0]), INVALID_ARGUMENT);
}

#[test]
fn utilization_is_a_percentage() {
    let session = Session::new();
    // SAFETY: all zeros is a valid struct of integers.
    let mut rates: nvmlUtilization_st = unsafe { std::mem::zeroed() };
    assert_eq!(
        call(
            "nvmlDeviceGetUtilizationRates",
            &[session.device(), at(&mut rates)]
        ),
        0
    );
    assert!(rates.gpu <= 100 && rates.memory <= 100);
}

#[test]
fn every_status_has_a_description() {
    let text = |status: u64| {
        let address = get_proc(c"nvmlErrorString");
        // SAFETY: the function takes any status and returns a constant string.
        unsafe {
            let f = std::mem::transmute::<
                *const std::ffi::c_void,
                extern "C" fn(u64) -> *const c_char,
            >(address);
            CStr::from_ptr(f(status)).to_str().unwrap().to_owned()
        }
    };
    for status in (0..=30).chain([999]) {
        assert_ne!(text(status), text(77), "{status}");
    }
}

#[test]
fn every_processor_and_node_is_close_to_a_device() {
    let session = Session::new();
    let device = session.device();
    let (mut cpus, mut nodes) = ([0u64; 16], [0u64; 2]);
    for name in [
        "nvmlDeviceGetCpuAffinity",
        "nvmlDeviceGetCpuAffinityWithinScope",
    ] {
        cpus.fill(0);
        assert_eq!(call(name, &[device, 16, at(&mut cpus), 0]), 0, "{name}");
        assert_eq!(cpus[0] & 1, 1);
    }
    assert_eq!(
        call(
            "nvmlDeviceGetMemoryAffinity",
            &[device, 2, at(&mut nodes), 1]
        ),
        0
    );
    assert_ne!(nodes[0], 0);
    for (name, words, out, scope) in [
        ("nvmlDeviceGetMemoryAffinity", 2, at(&mut nodes), 2),
        ("nvmlDeviceGetCpuAffinityWithinScope", 0, at(&mut cpus), 0),
        ("nvmlDeviceGetCpuAffinityWithinScope", 16, 8, 0),
    ] {
        assert_eq!(call(name, &[device, words, out, scope]), INVALID_ARGUMENT);
    }
    assert_eq!(call("nvmlDeviceSetCpuAffinity", &[device]), 0);
    assert_eq!(call("nvmlDeviceClearCpuAffinity", &[device]), 0);
}

#[test]
fn devices_are_neighbours() {
    let session = Session::new();
    let device = session.device();
    let (mut value, mut count, mut handles) = (9u32, 4u32, [0u64; 4]);
    assert_eq!(
        call(
            "nvmlDeviceGetTopologyCommonAncestor",
            &[device, device, at(&mut value)]
        ),
        0
    );
    assert_eq!(value, 0);
    assert_eq!(
        call(
            "nvmlSystemGetTopologyGpuSet",
            &[0, at(&mut count), at(&mut handles)]
        ),
        0
    );
    assert!(count >= 1);
    assert_eq!(handles[0], device);
    assert_eq!(
        call(
            "nvmlSystemGetTopologyGpuSet",
            &[1 << 20, at(&mut count), at(&mut handles)]
        ),
        INVALID_ARGUMENT
    );
    let name = "nvmlDeviceGetTopologyNearestGpus";
    count = 4;
    assert_eq!(
        call(name, &[device, 50, at(&mut count), at(&mut handles)]),
        0
    );
    assert_eq!(count, 0);
    assert_eq!(
        call(name, &[device, 7, at(&mut count), at(&mut handles)]),
        INVALID_ARGUMENT
    );
    let name = "nvmlDeviceGetP2PStatus";
    // The results of an H200 for itself as the peer (driver 580): read access is not supported, and unknown indices are
    // not an error.
    for (index, expected) in [
        (0, nvmlGpuP2PStatus_t::NVML_P2P_STATUS_NOT_SUPPORTED),
        (5, nvmlGpuP2PStatus_t::NVML_P2P_STATUS_OK),
        (6, nvmlGpuP2PStatus_t::NVML_P2P_STATUS_OK),
    ] {
        assert_eq!(call(name, &[device, device, index, at(&mut value)]), 0);
        assert_eq!(value, expected.0);
    }
}

#[test]
fn clocks_are_those_of_the_processor() {
    let session = Session::new();
    let device = session.device();
    let mut mhz = 0u32;
    assert_eq!(call("nvmlDeviceGetClock", &[device, 1, 0, at(&mut mhz)]), 0);
    assert!((100..20_000).contains(&mhz), "{mhz}");
    assert_eq!(
        call("nvmlDeviceGetClockInfo", &[device, 0, at(&mut mhz)]),
        0
    );
    assert_eq!(
        call("nvmlDeviceGetClock", &[device, 2, 0, at(&mut mhz)]),
        NOT_SUPPORTED
    );
    assert_eq!(
        call("nvmlDeviceGetClock", &[device, 1, 3, at(&mut mhz)]),
        NOT_SUPPORTED
    );
    for wrong in [[9, 0], [1, 9]] {
        let result = call(
            "nvmlDeviceGetClock",
            &[device, wrong[0], wrong[1], at(&mut mhz)],
        );
        assert_eq!(result, INVALID_ARGUMENT);
    }
}

#[test]
fn each_field_has_its_own_status() {
    let session = Session::new();
    // SAFETY: all zeros is a valid struct of integers.
    let mut fields: [cupyrite_sys::nvml::nvmlFieldValue_st; 2] = unsafe { std::mem::zeroed() };
    let name = "nvmlDeviceGetFieldValues";
    assert_eq!(call(name, &[session.device(), 2, at(&mut fields)]), 0);
    assert!(fields.iter().all(|f| f.nvmlReturn.0 == NOT_SUPPORTED));
    assert_eq!(
        call(name, &[session.device(), 0, at(&mut fields)]),
        INVALID_ARGUMENT
    );
    assert_eq!(call(name, &[session.device(), 1, 8]), INVALID_ARGUMENT);
}

#[test]
fn event_sets_deliver_each_fault_once() {
    const TIMEOUT: u32 = 10;
    let session = Session::new();
    let device = session.device();
    let (mut set, mut other, mut types) = (0u64, 0u64, 0u64);
    assert_eq!(call("nvmlEventSetCreate", &[at(&mut set)]), 0);
    assert_eq!(call("nvmlEventSetCreate", &[at(&mut other)]), 0);
    assert_ne!(set, other);
    assert_eq!(
        call(
            "nvmlDeviceGetSupportedEventTypes",
            &[device, at(&mut types)]
        ),
        0
    );
    assert_eq!(types, 8);
    let register = "nvmlDeviceRegisterEvents";
    assert_eq!(call(register, &[device, 4, set]), NOT_SUPPORTED);
    assert_eq!(call(register, &[device, 8, 1]), INVALID_ARGUMENT);
    assert_eq!(call(register, &[device, 8, set]), 0);
    assert_eq!(call(register, &[device, 0, other]), 0);

    // SAFETY: all zeros is a valid struct.
    let mut event: cupyrite_sys::nvml::nvmlEventData_st = unsafe { std::mem::zeroed() };
    let wait = "nvmlEventSetWait_v2";
    assert_eq!(call(wait, &[set, at(&mut event), 0]), TIMEOUT);
    let waiting = std::thread::spawn(move || {
        // SAFETY: all zeros is a valid struct.
        let mut event: cupyrite_sys::nvml::nvmlEventData_st = unsafe { std::mem::zeroed() };
        let result = call(wait, &[set, at(&mut event), 10_000]);
        (result, event.eventData, event.device as u64)
    });
    crate::driver::faults::record(0, crate::driver::Code::ILLEGAL_ADDRESS);
    assert_eq!(waiting.join().unwrap(), (0, 31, device));
    assert_eq!(call(wait, &[set, at(&mut event), 0]), TIMEOUT);
    assert_eq!(call(wait, &[other, at(&mut event), 0]), TIMEOUT);
    assert_eq!(call("nvmlEventSetFree", &[set]), 0);
    assert_eq!(call("nvmlEventSetFree", &[set]), INVALID_ARGUMENT);
    assert_eq!(call(wait, &[set, at(&mut event), 0]), INVALID_ARGUMENT);
    assert_eq!(call("nvmlEventSetFree", &[other]), 0);
}

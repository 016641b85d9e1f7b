//! Initialisation, versions, process names, error strings.

use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;

use cupyrite_sys::nvml::{nvmlReturn_t, nvmlSystemDriverBranchInfo_v1_t};
use parking_lot::Mutex;

use super::{Res, get, nvml_entry_points, put, put_text};
use crate::driver;

/// Initialisation count and process: a forked child starts over.
static INITS: Mutex<(u32, u64)> = Mutex::new((0, 0));

pub(super) fn initialised() -> bool {
    let inits = INITS.lock();
    inits.0 == std::process::id() && inits.1 > 0
}

fn init() -> Res {
    if driver::device_facts().is_none() {
        // The environment requests impossible devices; `cuInit` fails too.
        return Err(nvmlReturn_t::NVML_ERROR_DRIVER_NOT_LOADED);
    }
    let pid = std::process::id();
    let mut inits = INITS.lock();
    if inits.0 != pid {
        *inits = (pid, 0);
    }
    inits.1 += 1;
    Ok(())
}

fn shutdown() -> Res {
    let mut inits = INITS.lock();
    if inits.0 != std::process::id() || inits.1 == 0 {
        return Err(nvmlReturn_t::NVML_ERROR_UNINITIALIZED);
    }
    inits.1 -= 1;
    Ok(())
}

/// The driver version reported to programs: the project's version.
const DRIVER: &str = env!("CARGO_PKG_VERSION");

/// The command line of a process.
fn process_name(pid: u32) -> Res<String> {
    let not_found = |_| nvmlReturn_t::NVML_ERROR_NOT_FOUND;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).map_err(not_found)?;
    let first = command.split(|&b| b == 0).next().unwrap_or_default();
    if !first.is_empty() {
        return Ok(String::from_utf8_lossy(first).into_owned());
    }
    // Kernel threads have no command line.
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).map_err(not_found)?;
    Ok(name.trim_end().to_owned())
}

/// Truncates `text` to `most` bytes, at a character boundary.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

nvml_entry_points! { bare;
    fn init_v1 "nvmlInit" () { init() }
    fn init_v2 "nvmlInit_v2" () { init() }
    fn init_with_flags "nvmlInitWithFlags" (_flags: u32) {
        // The flags concern missing and detached GPUs.
        init()
    }
    fn shut_down "nvmlShutdown" () { shutdown() }
    // Versions can be queried before initialisation, as documented by NVIDIA.
    fn cuda_version "nvmlSystemGetCudaDriverVersion" (out: u64) { put(out, driver::DRIVER_VERSION) }
    fn cuda_version_v2 "nvmlSystemGetCudaDriverVersion_v2" (out: u64) { put(out, driver::DRIVER_VERSION) }
    fn nvml_version "nvmlSystemGetNVMLVersion" (out: u64, length: u32) {
        put_text(out, length, &format!("{}.{DRIVER}", driver::DRIVER_VERSION / 1000))
    }
    fn driver_version "nvmlSystemGetDriverVersion" (out: u64, length: u32) {
        if !initialised() {
            return Err(nvmlReturn_t::NVML_ERROR_UNINITIALIZED);
        }
        put_text(out, length, DRIVER)
    }
    fn driver_branch "nvmlSystemGetDriverBranch" (out: u64, length: u32) {
        if !initialised() {
            return Err(nvmlReturn_t::NVML_ERROR_UNINITIALIZED);
        }
        let version = size_of::<nvmlSystemDriverBranchInfo_v1_t>() as u32 | 1 << 24;
        if get(out)? != version {
            return Err(nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        // The branch is the version without the patch number.
        let branch = DRIVER.rsplit_once('.').map_or(DRIVER, |(branch, _)| branch);
        put_text(out + offset_of!(nvmlSystemDriverBranchInfo_v1_t, branch) as u64, length.min(80), branch)
    }
    fn name_of_process "nvmlSystemGetProcessName" (pid: u32, out: u64, length: u32) {
        if !initialised() {
            return Err(nvmlReturn_t::NVML_ERROR_UNINITIALIZED);
        }
        if length == 0 {
            return Err(nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT);
        }
        let name = process_name(pid)?;
        // An overlong name is truncated, as documented by NVIDIA.
        put_text(out, length, cut(&name, length as usize - 1))
    }
}

/// Descriptions of the statuses, in this project's words.
const TEXTS: &[(nvmlReturn_t, &CStr)] = &[
    (nvmlReturn_t::NVML_SUCCESS, c"success"),
    (
        nvmlReturn_t::NVML_ERROR_UNINITIALIZED,
        c"NVML is not initialised; call nvmlInit first",
    ),
    (
        nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT,
        c"an argument is invalid",
    ),
    (
        nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED,
        c"the device does not support the request",
    ),
    (
        nvmlReturn_t::NVML_ERROR_NO_PERMISSION,
        c"the user lacks the permission",
    ),
    (
        nvmlReturn_t::NVML_ERROR_ALREADY_INITIALIZED,
        c"NVML is already initialised",
    ),
    (nvmlReturn_t::NVML_ERROR_NOT_FOUND, c"not found"),
    (
        nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE,
        c"the buffer is too small",
    ),
    (
        nvmlReturn_t::NVML_ERROR_INSUFFICIENT_POWER,
        c"the device's external power supply is insufficient",
    ),
    (
        nvmlReturn_t::NVML_ERROR_DRIVER_NOT_LOADED,
        c"the driver is not loaded",
    ),
    (nvmlReturn_t::NVML_ERROR_TIMEOUT, c"the request timed out"),
    (
        nvmlReturn_t::NVML_ERROR_IRQ_ISSUE,
        c"the kernel detected an interrupt problem",
    ),
    (
        nvmlReturn_t::NVML_ERROR_LIBRARY_NOT_FOUND,
        c"a shared library of NVML was not found",
    ),
    (
        nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND,
        c"the installed driver lacks this function",
    ),
    (
        nvmlReturn_t::NVML_ERROR_CORRUPTED_INFOROM,
        c"the device's infoROM is corrupted",
    ),
    (
        nvmlReturn_t::NVML_ERROR_GPU_IS_LOST,
        c"the device is lost: it is no longer accessible on the bus",
    ),
    (
        nvmlReturn_t::NVML_ERROR_RESET_REQUIRED,
        c"the device must be reset before it can be used",
    ),
    (
        nvmlReturn_t::NVML_ERROR_OPERATING_SYSTEM,
        c"the operating system denies control of the device",
    ),
    (
        nvmlReturn_t::NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        c"driver and library versions do not match",
    ),
    (nvmlReturn_t::NVML_ERROR_IN_USE, c"the device is in use"),
    (nvmlReturn_t::NVML_ERROR_MEMORY, c"not enough memory"),
    (nvmlReturn_t::NVML_ERROR_NO_DATA, c"no data is available"),
    (
        nvmlReturn_t::NVML_ERROR_VGPU_ECC_NOT_SUPPORTED,
        c"not available for a vGPU while ECC is enabled",
    ),
    (
        nvmlReturn_t::NVML_ERROR_INSUFFICIENT_RESOURCES,
        c"resources are exhausted",
    ),
    (
        nvmlReturn_t::NVML_ERROR_FREQ_NOT_SUPPORTED,
        c"the device does not support this frequency",
    ),
    (
        nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        c"the argument's structure version is unknown",
    ),
    (
        nvmlReturn_t::NVML_ERROR_DEPRECATED,
        c"the function is deprecated",
    ),
    (
        nvmlReturn_t::NVML_ERROR_NOT_READY,
        c"the system is not ready",
    ),
    (
        nvmlReturn_t::NVML_ERROR_GPU_NOT_FOUND,
        c"no device was found",
    ),
    (
        nvmlReturn_t::NVML_ERROR_INVALID_STATE,
        c"the current state does not allow the request",
    ),
    (
        nvmlReturn_t::NVML_ERROR_RESET_TYPE_NOT_SUPPORTED,
        c"the device does not support this type of reset",
    ),
    (nvmlReturn_t::NVML_ERROR_UNKNOWN, c"an unknown error"),
];

extern "C" fn error_string(status: u32) -> *const c_char {
    let known = TEXTS.iter().find(|(s, _)| s.0 == status);
    known
        .map_or(c"an unknown status", |(_, text)| text)
        .as_ptr()
}

pub(super) fn error_string_address() -> *const c_void {
    error_string as *const c_void
}

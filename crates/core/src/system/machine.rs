//! The machine: versions and processes.

use std::ffi::c_int;

use cupyrite_sys::nvml::nvmlSystemDriverBranchInfo_v1_t;

use super::library::{call, nvml, text, text_in, version};
use crate::error::Result;

/// Version of the driver, for example `580.65.06`.
///
/// Source: `nvmlSystemGetDriverVersion`.
///
/// # Errors
///
/// [`Error::Load`](crate::Error::Load) if there is no NVML; [`Error::Nvml`](crate::Error::Nvml).
pub fn driver_version() -> Result<String> {
    call(|| text(|to, room| nvml!(nvmlSystemGetDriverVersion(to, room))))
}

/// Branch of the driver, for example `r580_00`.
///
/// Source: `nvmlSystemGetDriverBranch`.
///
/// # Errors
///
/// As [`driver_version`]; drivers before 560 lack the function.
pub fn driver_branch() -> Result<String> {
    call(|| {
        let mut info = nvmlSystemDriverBranchInfo_v1_t {
            version: version::<nvmlSystemDriverBranchInfo_v1_t>(1),
            ..Default::default()
        };
        let room = info.branch.len() as u32;
        nvml!(nvmlSystemGetDriverBranch(&mut info, room))?;
        Ok(text_in(&info.branch))
    })
}

/// The newest CUDA whose programs the driver runs, as (major, minor).
///
/// Source: `nvmlSystemGetCudaDriverVersion_v2`.
///
/// # Errors
///
/// As [`driver_version`].
pub fn cuda_driver_version() -> Result<(u32, u32)> {
    call(|| {
        let mut number: c_int = 0;
        nvml!(nvmlSystemGetCudaDriverVersion_v2(&mut number))?;
        let number = number.unsigned_abs();
        Ok((number / 1000, number % 1000 / 10))
    })
}

/// Version of NVML.
///
/// Source: `nvmlSystemGetNVMLVersion`.
///
/// # Errors
///
/// As [`driver_version`].
pub fn nvml_version() -> Result<String> {
    call(|| text(|to, room| nvml!(nvmlSystemGetNVMLVersion(to, room))))
}

/// Name of a process.
///
/// Source: `nvmlSystemGetProcessName`.
///
/// # Errors
///
/// [`Error::Nvml`](crate::Error::Nvml) with `NVML_ERROR_NOT_FOUND` if there is no such process; as [`driver_version`].
pub fn process_name(pid: u32) -> Result<String> {
    call(|| text(|to, room| nvml!(nvmlSystemGetProcessName(pid, to, room))))
}

//! `cuGetProcAddress`: selects the version of a function by CUDA version and default stream.

use std::collections::HashMap;
use std::sync::OnceLock;

use cupyrite_sys::abi::EntryPoint;
use cupyrite_sys::driver::{self as sys, ENTRY_POINTS};
use cupyrite_sys::loader::PerThreadVariant;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_name, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::init::DRIVER_VERSION;
use crate::driver::entry_points::get_proc;

/// Every version of every function, by base name and by exported name.
struct Names {
    base: HashMap<&'static str, Vec<&'static EntryPoint>>,
    exported: HashMap<&'static str, &'static EntryPoint>,
}

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = Names {
            base: HashMap::new(),
            exported: HashMap::new(),
        };
        for point in &ENTRY_POINTS {
            if let (Ok(base), Ok(symbol)) = (point.base.to_str(), point.symbol.to_str()) {
                names.base.entry(base).or_default().push(point);
                names.exported.insert(symbol, point);
            }
        }
        names
    })
}

/// Whether the driver API has an entry point of that exported name.
pub(crate) fn is_known(name: &str) -> bool {
    names().exported.contains_key(name)
}

/// Values of `CUdriverProcAddressQueryResult`.
const FOUND: u32 = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS.0;
const NOT_FOUND: u32 = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND.0;
const VERSION_NOT_SUFFICIENT: u32 =
    sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT.0;

/// Functions that NVIDIA's driver returns for versions older than the one that its header gives them. numba-cuda-mlir 0.6
/// asks for them with version 2000.
const OLDER_THAN_THE_HEADER: &[(&str, i32)] =
    &[("cuFuncGetAttribute", 2000), ("cuFuncSetAttribute", 2000)];

/// The newest version of function `base` that is not newer than `version`.
fn choose(base: &str, version: i32, per_thread: bool) -> Result<&'static EntryPoint, u32> {
    let forms = names().base.get(base).ok_or(NOT_FOUND)?;
    let version = OLDER_THAN_THE_HEADER
        .iter()
        .filter(|(name, since)| *name == base && version >= *since)
        .filter_map(|_| forms.iter().map(|p| p.version).min())
        .fold(version, i32::max);
    forms
        .iter()
        .filter(|p| p.version <= version && (per_thread || p.per_thread == PerThreadVariant::None))
        // Prefers the per-thread variant among entries of the same version.
        .max_by_key(|p| (p.version, p.per_thread != PerThreadVariant::None))
        .copied()
        .ok_or(VERSION_NOT_SUFFICIENT)
}

fn get_proc_address(symbol: u64, out: u64, version: i32, flags: u64, status: u64) -> Res {
    /// 0 and 1 select the default and the legacy stream.
    const PER_THREAD_DEFAULT: u64 =
        sys::CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0 as u64;
    if symbol == 0
        || out == 0
        || flags > PER_THREAD_DEFAULT
        || !(0..=DRIVER_VERSION).contains(&version)
    {
        return Err(Code::INVALID_VALUE);
    }
    let name = get_name(symbol)?;
    let found = choose(&name, version, flags == PER_THREAD_DEFAULT);
    let address = found
        .map(|p| get_proc(p.symbol))
        .unwrap_or(std::ptr::null());
    put(out, address as u64)?;
    put_optional(status, found.err().unwrap_or(FOUND))?;
    // CUDA's documentation promises success with a null pointer here. NVIDIA's driver returns this error, and programs
    // rely on it.
    found.map(|_| ()).map_err(|_| Code::NOT_FOUND)
}

driver_entry_points! { bare;
    fn get_proc_address_v1 "cuGetProcAddress" (symbol: u64, out: u64, version: i32, flags: u64) {
        get_proc_address(symbol, out, version, flags, 0)
    }
    fn get_proc_address_v2 "cuGetProcAddress_v2" (symbol: u64, out: u64, version: i32, flags: u64, status: u64) {
        get_proc_address(symbol, out, version, flags, status)
    }
}

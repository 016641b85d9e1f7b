//! `cuGetProcAddress`: which form of a function a program gets, by CUDA version and default stream.

use std::collections::HashMap;
use std::sync::OnceLock;

use cupyrite_sys::abi::EntryPoint;
use cupyrite_sys::driver::ENTRY_POINTS;
use cupyrite_sys::loader::PerThreadVariant;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_name, put, put_optional};
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::entry::init::DRIVER_VERSION;
use crate::driver::get_proc;

/// Every form of every function, by base name and by exported name.
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

/// Whether the driver API has an entry point with that exported name.
pub(crate) fn is_known(name: &str) -> bool {
    names().exported.contains_key(name)
}

/// Answers of `CUdriverProcAddressQueryResult`.
const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;
const VERSION_NOT_SUFFICIENT: u32 = 2;

/// The exported name of the newest form that a program made for `version` knows.
fn choose(base: &str, version: i32, per_thread: bool) -> Result<&'static EntryPoint, u32> {
    let forms = names().base.get(base).ok_or(NOT_FOUND)?;
    forms
        .iter()
        .filter(|p| p.version <= version && (per_thread || p.per_thread == PerThreadVariant::None))
        // A form for the thread's own default stream goes before one of the same version without.
        .max_by_key(|p| (p.version, p.per_thread != PerThreadVariant::None))
        .copied()
        .ok_or(VERSION_NOT_SUFFICIENT)
}

fn get_proc_address(symbol: u64, out: u64, version: i32, flags: u64, status: u64) -> Res {
    /// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`; 0 and 1 are the default and the legacy stream.
    const PER_THREAD_DEFAULT: u64 = 2;
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
    // The manual promises success with a null pointer here; the driver answers like this, and programs rely on it.
    found.map(|_| ()).map_err(|_| Code::NOT_FOUND)
}

entries! { bare;
    fn get_proc_address_v1 "cuGetProcAddress" (symbol: u64, out: u64, version: i32, flags: u64) {
        get_proc_address(symbol, out, version, flags, 0)
    }
    fn get_proc_address_v2 "cuGetProcAddress_v2" (symbol: u64, out: u64, version: i32, flags: u64, status: u64) {
        get_proc_address(symbol, out, version, flags, status)
    }
}

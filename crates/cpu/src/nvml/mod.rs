//! NVML for the CPU device: the entry points of `libnvidia-ml` with the same names and the same C signatures.
//!
//! Belongs here: properties that a computer reports: names, memory, utilisation, processes, processor clocks, affinity,
//! topology, and events for failed kernels. All other functions (fans, power, ECC, MIG, NVLink, vGPU) return
//! `NVML_ERROR_NOT_SUPPORTED`, as a GPU without the feature does. Does not belong here: how the figures are obtained
//! (the driver).
//!
//! Pointers arrive as numbers and are accessed through the operating system ([`cupyrite_engine::memory::checked`]): an invalid
//! one yields `NVML_ERROR_INVALID_ARGUMENT`. A panic never crosses the FFI boundary.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cupyrite_engine::memory::checked::{self, BadAddress};
use cupyrite_sys::nvml::{SYMBOLS, nvmlReturn_t};

mod device;
mod events;
mod state;
mod system;
mod topology;
mod usage;

/// Result of NVML's internal functions; the error is a status other than `NVML_SUCCESS`.
type Res<T = ()> = Result<T, nvmlReturn_t>;

/// The status of an invalid pointer.
fn bad(_: BadAddress) -> nvmlReturn_t {
    nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT
}

/// One entry point: exported name and address.
struct EntryPoint {
    name: &'static str,
    address: *const c_void,
}

// SAFETY: an entry holds a constant name and a function address.
unsafe impl Sync for EntryPoint {}

/// Defines entry points and the table `ENTRIES` that lists them: `fn name "nvmlName" (args) { body }`, where the body
/// returns a [`Res`]. A leading `bare;` omits the check that `nvmlInit` was called.
macro_rules! nvml_entry_points {
    (bare; $($rest:tt)*) => { $crate::nvml::nvml_entry_points!(@with $crate::nvml::guard_bare; $($rest)*); };
    (@with $guard:path; $(fn $name:ident $c:literal ($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            extern "C" fn $name($($arg: $ty),*) -> u32 {
                $guard(|| $body)
            }
        )*
        /// The entry points of this file.
        pub(super) static ENTRIES: &[$crate::nvml::EntryPoint] = &[
            $($crate::nvml::EntryPoint { name: $c, address: $name as *const std::ffi::c_void }),*
        ];
    };
    ($($rest:tt)*) => { $crate::nvml::nvml_entry_points!(@with $crate::nvml::guard; $($rest)*); };
}
use nvml_entry_points;

/// Runs an entry point's body; turns a panic into a status.
fn guard_bare(body: impl FnOnce() -> Res) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => nvmlReturn_t::NVML_SUCCESS.0,
        Ok(Err(status)) => status.0,
        Err(_) => nvmlReturn_t::NVML_ERROR_UNKNOWN.0,
    }
}

/// [`guard_bare`] for entry points that require `nvmlInit`.
fn guard(body: impl FnOnce() -> Res) -> u32 {
    if !system::initialised() {
        return nvmlReturn_t::NVML_ERROR_UNINITIALIZED.0;
    }
    guard_bare(body)
}

/// Serves every unimplemented entry point. It reads no argument, so one function serves all signatures.
extern "C" fn not_supported() -> u32 {
    guard(|| Err(nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED))
}

/// Writes `value` to the caller's address.
fn put<T: Copy>(addr: u64, value: T) -> Res {
    if addr == 0 {
        return Err(nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT);
    }
    checked::write(addr, &value).map_err(bad)
}

/// Reads an unsigned integer.
fn get(addr: u64) -> Res<u32> {
    // SAFETY: any bytes are a valid integer.
    unsafe { checked::read::<u32>(addr) }.map_err(bad)
}

/// Writes `text` and its NUL to a buffer of `length` bytes; fails if they do not fit.
fn put_text(addr: u64, length: u32, text: &str) -> Res {
    if addr == 0 {
        return Err(nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE);
    }
    let bytes: Vec<u8> = text.bytes().chain([0]).collect();
    checked::write_bytes(addr, &bytes).map_err(bad)
}

/// Longest accepted text argument.
const MAX_TEXT_LENGTH: u64 = 256;

/// Reads a NUL-terminated text.
fn get_text(addr: u64) -> Res<String> {
    let bytes = checked::read_c_string(addr, MAX_TEXT_LENGTH).map_err(bad)?;
    String::from_utf8(bytes).map_err(|_| nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT)
}

/// Function addresses by exported name.
type AddressesByName = HashMap<&'static [u8], *const c_void>;

/// [`AddressesByName`] as a static value.
struct Addresses(AddressesByName);
// SAFETY: the addresses are those of functions, which any thread may call.
unsafe impl Send for Addresses {}
// SAFETY: the addresses never change and are those of functions, which any thread may call.
unsafe impl Sync for Addresses {}

fn addresses() -> &'static AddressesByName {
    static ADDRESSES: OnceLock<Addresses> = OnceLock::new();
    &ADDRESSES
        .get_or_init(|| {
            let nothing = not_supported as extern "C" fn() -> u32 as *const c_void;
            let mut all: AddressesByName = SYMBOLS
                .iter()
                .map(|row| (row.export.to_bytes(), nothing))
                .collect();
            all.extend(implemented().map(|e| (e.name.as_bytes(), e.address)));
            all.insert(b"nvmlErrorString", system::error_string_address());
            Addresses(all)
        })
        .0
}

fn implemented() -> impl Iterator<Item = &'static EntryPoint> {
    [
        system::ENTRIES,
        device::ENTRIES,
        events::ENTRIES,
        state::ENTRIES,
        topology::ENTRIES,
        usage::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

/// The address of the NVML entry point of that exported name (`nvmlInit_v2`); null if NVML has no such entry point.
/// Unimplemented entry points return `NVML_ERROR_NOT_SUPPORTED`.
pub fn get_proc(name: &CStr) -> *const c_void {
    addresses()
        .get(name.to_bytes())
        .copied()
        .unwrap_or(std::ptr::null())
}

#[cfg(test)]
mod tests;

//! Calls of NVML: initialisation, repetition after a shutdown, texts.

use std::ffi::{CStr, c_char, c_uint};

use cupyrite_sys::nvml::{nvmlEnableState_t, nvmlReturn_t};
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The process in which NVML was initialised, and the number of initialisations.
static INITIALISED: Mutex<(u32, u64)> = Mutex::new((0, 0));

/// Calls a function of NVML.
macro_rules! nvml {
    ($name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: the caller of the macro passes what the function's documentation asks for.
        match unsafe { cupyrite_sys::nvml::$name($($arg),*) } {
            Ok(cupyrite_sys::nvml::nvmlReturn_t::NVML_SUCCESS) => Ok(()),
            Ok(status) => Err($crate::error::Error::Nvml { call: stringify!($name), status }),
            Err(error) => Err($crate::error::Error::from(error.clone())),
        }
    };
}
pub(super) use nvml;

/// Initialises NVML once per process; returns the number of the initialisation.
pub(super) fn initialise() -> Result<u64> {
    crate::preparation::prepare_loader();
    let mut state = INITIALISED.lock();
    if state.0 != std::process::id() {
        nvml!(nvmlInit_v2())?;
        *state = (std::process::id(), state.1 + 1);
    }
    Ok(state.1)
}

/// Whether `initialisation` is the current one of this process.
pub(super) fn is_current(initialisation: u64) -> bool {
    *INITIALISED.lock() == (std::process::id(), initialisation)
}

/// Makes a call; once more if NVML was shut down meanwhile.
pub(super) fn call<T>(mut query: impl FnMut() -> Result<T>) -> Result<T> {
    let seen = initialise()?;
    match query() {
        Err(Error::Nvml {
            status: nvmlReturn_t::NVML_ERROR_UNINITIALIZED,
            ..
        }) => {
            let mut state = INITIALISED.lock();
            if state.1 == seen {
                state.0 = 0;
            }
            drop(state);
            initialise()?;
            query()
        }
        other => other,
    }
}

/// A text that NVML writes to a buffer.
pub(super) fn text(write: impl FnOnce(*mut c_char, c_uint) -> Result<()>) -> Result<String> {
    let mut buffer = [0 as c_char; 256];
    write(buffer.as_mut_ptr(), 255)?;
    Ok(text_in(&buffer))
}

/// The text at the start of an array.
pub(super) fn text_in(array: &[c_char]) -> String {
    let mut bytes: Vec<u8> = array.iter().map(|&c| c.to_ne_bytes()[0]).collect();
    bytes.push(0);
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().into_owned()
}

/// The version word of a structure: its size, and the number of its version.
pub(super) const fn version<T>(number: u32) -> c_uint {
    size_of::<T>() as c_uint | number << 24
}

/// A list whose length NVML tells: `read` gets a length and the address of as many elements, and changes the length.
pub(super) fn list<T: Copy + Default>(
    mut read: impl FnMut(&mut c_uint, *mut T) -> Result<()>,
) -> Result<Vec<T>> {
    let mut room = 16usize;
    loop {
        let mut found = vec![T::default(); room];
        let mut count = room as c_uint;
        match read(&mut count, found.as_mut_ptr()) {
            // The list may grow between two calls.
            Err(Error::Nvml {
                status: nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE,
                ..
            }) if room < 1 << 20 => room = (count as usize + 16).max(2 * room),
            Err(error) => return Err(error),
            Ok(()) => {
                found.truncate(count as usize);
                return Ok(found);
            }
        }
    }
}

/// Whether a feature is enabled, as C's type.
pub(super) fn state(enabled: bool) -> nvmlEnableState_t {
    match enabled {
        true => nvmlEnableState_t::NVML_FEATURE_ENABLED,
        false => nvmlEnableState_t::NVML_FEATURE_DISABLED,
    }
}

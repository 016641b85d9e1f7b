//! Checked reads and writes of the caller's memory ([`cupyrite_sys::checked::caller`]): an invalid pointer yields
//! `cudaErrorInvalidValue` instead of a crash.

pub(crate) use cupyrite_sys::checked::caller::Plain;
use cupyrite_sys::checked::caller::{self, ArrayError};
use cupyrite_sys::checked::{self, BadAddress};

use crate::errors::Error;
use crate::errors::Res;

impl From<BadAddress> for Error {
    fn from(_: BadAddress) -> Self {
        Error::INVALID_VALUE
    }
}

impl From<ArrayError> for Error {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::BadAddress => Error::INVALID_VALUE,
            ArrayError::OutOfMemory => Error::MEMORY_ALLOCATION,
        }
    }
}

/// Refuses a null pointer before any side effect.
pub(crate) fn non_null(addr: u64) -> Res {
    if addr == 0 {
        Err(Error::INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// [`caller::put`] with the runtime's status.
pub(crate) fn put<T: Copy>(addr: u64, value: T) -> Res {
    Ok(caller::put(addr, value)?)
}

/// [`caller::put_with`] with the runtime's status.
pub(crate) fn put_with<T: Plain>(addr: u64, fill: impl FnOnce(&mut T)) -> Res {
    Ok(caller::put_with(addr, fill)?)
}

/// [`put`]; does nothing for a null pointer.
pub(crate) fn put_optional<T: Copy>(addr: u64, value: T) -> Res {
    if addr == 0 { Ok(()) } else { put(addr, value) }
}

/// [`caller::get`] with the runtime's status.
pub(crate) fn get<T: Plain>(addr: u64) -> Res<T> {
    Ok(caller::get(addr)?)
}

/// [`caller::get_array`] with the runtime's status.
pub(crate) fn get_array<T: Plain>(addr: u64, count: usize) -> Res<Vec<T>> {
    Ok(caller::get_array(addr, count)?)
}

/// [`caller::put_bytes`] with the runtime's status.
pub(crate) fn put_bytes(addr: u64, bytes: &[u8]) -> Res {
    Ok(caller::put_bytes(addr, bytes)?)
}

/// Longest accepted name; mangled C++ names are long.
const MAX_NAME_LENGTH: u64 = 1 << 20;

/// Reads a NUL-terminated string.
pub(crate) fn get_text(addr: u64) -> Res<std::ffi::CString> {
    let bytes = checked::read_c_string(addr, MAX_NAME_LENGTH)?;
    std::ffi::CString::new(bytes).map_err(|_| Error::INVALID_VALUE)
}

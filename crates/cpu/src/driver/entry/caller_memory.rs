//! Checked reads and writes of the caller's memory ([`cupyrite_sys::checked::caller`]): an invalid pointer yields
//! `INVALID_VALUE` instead of a crash.

pub(crate) use cupyrite_engine::memory::checked::is_executable_address;
use cupyrite_engine::memory::checked::{self, BadAddress, is_on_stack};
use cupyrite_sys::checked::caller;
use cupyrite_sys::checked::caller::ArrayError;
pub(crate) use cupyrite_sys::checked::caller::Plain;

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;

impl From<BadAddress> for Code {
    fn from(_: BadAddress) -> Self {
        Code::INVALID_VALUE
    }
}

impl From<ArrayError> for Code {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::BadAddress => Code::INVALID_VALUE,
            ArrayError::OutOfMemory => Code::OUT_OF_MEMORY,
        }
    }
}

/// A C structure from a caller that the driver keeps. Its pointers are numbers: nothing dereferences them.
#[derive(Clone, Copy)]
pub(crate) struct Kept<T>(pub(crate) T);

// SAFETY: a plain value is a copy of bytes, and the pointers in it are not dereferenced.
unsafe impl<T: Plain> Send for Kept<T> {}
// SAFETY: as above; a plain value has no interior mutability.
unsafe impl<T: Plain> Sync for Kept<T> {}

/// [`caller::put`] with the driver's status.
pub(crate) fn put<T: Copy>(addr: u64, value: T) -> Res {
    Ok(caller::put(addr, value)?)
}

/// [`caller::put_with`] with the driver's status.
pub(crate) fn put_with<T: Plain>(addr: u64, fill: impl FnOnce(&mut T)) -> Res {
    Ok(caller::put_with(addr, fill)?)
}

/// [`put`]; does nothing for a null pointer.
pub(crate) fn put_optional<T: Copy>(addr: u64, value: T) -> Res {
    if addr == 0 { Ok(()) } else { put(addr, value) }
}

/// Refuses a null out-parameter before any side effect.
pub(crate) fn non_null(addr: u64) -> Res {
    if addr == 0 {
        return refuse(Code::INVALID_VALUE, || {
            "a required pointer argument is null".into()
        });
    }
    Ok(())
}

/// [`caller::get`] with the driver's status.
pub(crate) fn get<T: Plain>(addr: u64) -> Res<T> {
    Ok(caller::get(addr)?)
}

/// [`caller::get_array`] with the driver's status.
pub(crate) fn get_array<T: Plain>(addr: u64, count: usize) -> Res<Vec<T>> {
    Ok(caller::get_array(addr, count)?)
}

/// [`caller::put_bytes`] with the driver's status.
pub(crate) fn put_bytes(addr: u64, bytes: &[u8]) -> Res {
    Ok(caller::put_bytes(addr, bytes)?)
}

/// Writes `text`, truncated to `size` bytes including the terminating NUL.
pub(crate) fn put_text(addr: u64, size: u64, text: &[u8]) -> Res {
    if addr == 0 || size == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let n = text
        .len()
        .min(usize::try_from(size - 1).unwrap_or(usize::MAX));
    let mut buffer = text[..n].to_vec();
    buffer.push(0);
    put_bytes(addr, &buffer)
}

/// Longest accepted name; mangled C++ names are long.
const MAX_NAME_LENGTH: u64 = 1 << 20;

/// Reads a NUL-terminated name.
pub(crate) fn get_name(addr: u64) -> Res<String> {
    let bytes = checked::read_c_string(addr, MAX_NAME_LENGTH)?;
    String::from_utf8(bytes).map_err(|_| Code::INVALID_VALUE)
}

/// Copies ranges `(address, offset in out, length)` into `out` with as few system calls as possible.
pub(crate) fn gather(parts: &[(u64, usize, usize)], out: &mut [u8]) -> Res {
    let mut rest = Vec::with_capacity(parts.len());
    for &(addr, offset, len) in parts {
        let target = offset
            .checked_add(len)
            .and_then(|end| out.get_mut(offset..end))
            .ok_or(Code::INVALID_VALUE)?;
        if is_on_stack(addr, len as u64) {
            // SAFETY: the range lies within this thread's stack; `target` is heap memory owned by this crate.
            unsafe { std::ptr::copy_nonoverlapping(addr as *const u8, target.as_mut_ptr(), len) };
        } else if len > 0 {
            rest.push((addr, target.as_mut_ptr(), len as u64));
        }
    }
    // SAFETY: each target is a part of `out` of that length.
    Ok(unsafe { checked::read_scattered(&rest) }?)
}

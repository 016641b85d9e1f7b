//! Checked reads and writes of the caller's memory.
//!
//! A pointer argument arrives as a number. Addresses on the calling thread's stack, where out-parameters of C and of
//! our bindings live, are accessed directly. All others are accessed through the operating system
//! ([`cupyrite_sys::checked`]), so that an invalid pointer yields `cudaErrorInvalidValue` instead of a crash.

use cupyrite_sys::checked::{self, BadAddress, is_on_stack};

use crate::errors::Error;
use crate::errors::Res;

impl From<BadAddress> for Error {
    fn from(_: BadAddress) -> Self {
        Error::INVALID_VALUE
    }
}

/// Types for which every bit pattern is valid: integers, floats, raw pointers, and structures of them.
///
/// # Safety
/// Every bit pattern is valid.
pub(crate) unsafe trait Plain: Copy {}
macro_rules! plain {
    ($($t:ty),* $(,)?) => {$(
        // SAFETY: integers, floats, raw pointers and structures of them have no invalid bit patterns.
        unsafe impl $crate::checked::Plain for $t {}
    )*};
}
pub(crate) use plain;
plain!(u8, u16, u32, u64, usize, i32, i64, f32);
// SAFETY: an array of plain values is plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Refuses a null pointer before any side effect.
pub(crate) fn non_null(addr: u64) -> Res {
    if addr == 0 {
        Err(Error::INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// Writes `value` to the caller's address.
pub(crate) fn put<T: Copy>(addr: u64, value: T) -> Res {
    if is_on_stack(addr, size_of::<T>() as u64) {
        // SAFETY: the range lies within this thread's stack, above every frame of this call.
        unsafe { (addr as *mut T).write_unaligned(value) };
        return Ok(());
    }
    Ok(checked::write(addr, &value)?)
}

/// [`put`]; does nothing for a null pointer.
pub(crate) fn put_optional<T: Copy>(addr: u64, value: T) -> Res {
    if addr == 0 { Ok(()) } else { put(addr, value) }
}

/// Reads a plain value.
pub(crate) fn get<T: Plain>(addr: u64) -> Res<T> {
    if is_on_stack(addr, size_of::<T>() as u64) {
        // SAFETY: the range lies within this thread's stack, and any bytes are a valid `T`.
        return Ok(unsafe { (addr as *const T).read_unaligned() });
    }
    // SAFETY: any bytes are a valid `T`.
    Ok(unsafe { checked::read(addr) }?)
}

/// Reads `count` consecutive values.
pub(crate) fn get_array<T: Plain>(addr: u64, count: usize) -> Res<Vec<T>> {
    let mut values = Vec::<T>::new();
    if count == 0 {
        return Ok(values);
    }
    let bytes = count
        .checked_mul(size_of::<T>())
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(Error::INVALID_VALUE)?;
    // Reading the first and the last element checks the range before the allocation.
    get::<T>(addr)?;
    let last = addr.checked_add((bytes - size_of::<T>()) as u64);
    get::<T>(last.ok_or(Error::INVALID_VALUE)?)?;
    values
        .try_reserve_exact(count)
        .map_err(|_| Error::MEMORY_ALLOCATION)?;
    // SAFETY: the vector has room for `bytes`, all of them are written before `set_len`, and any bytes are valid
    // values.
    unsafe {
        checked::read_into(addr, values.as_mut_ptr().cast(), bytes as u64)?;
        values.set_len(count);
    }
    Ok(values)
}

/// Copies `bytes` to the caller's address.
pub(crate) fn put_bytes(addr: u64, bytes: &[u8]) -> Res {
    Ok(checked::write_bytes(addr, bytes)?)
}

/// Longest accepted name; mangled C++ names are long.
const MAX_NAME_LENGTH: u64 = 1 << 20;

/// Reads a NUL-terminated string.
pub(crate) fn get_text(addr: u64) -> Res<std::ffi::CString> {
    let bytes = checked::read_c_string(addr, MAX_NAME_LENGTH)?;
    std::ffi::CString::new(bytes).map_err(|_| Error::INVALID_VALUE)
}

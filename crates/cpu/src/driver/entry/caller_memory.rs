//! Checked reads and writes of the caller's memory.
//!
//! A pointer argument arrives as a number. Addresses on the calling thread's stack, where out-parameters of C and of
//! our bindings live, are accessed directly. All others are accessed through the operating system
//! ([`crate::memory::checked`]), so that an invalid pointer yields `INVALID_VALUE` instead of a crash.

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
pub(crate) use crate::memory::checked::is_executable_address;
use crate::memory::checked::{self, BadAddress, is_on_stack};

impl From<BadAddress> for Code {
    fn from(_: BadAddress) -> Self {
        Code::INVALID_VALUE
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

/// Refuses a null out-parameter before any side effect.
pub(crate) fn non_null(addr: u64) -> Res {
    if addr == 0 {
        return refuse(Code::INVALID_VALUE, || {
            "a required pointer argument is null".into()
        });
    }
    Ok(())
}

/// Reads a plain value: an integer, a float or a structure of them.
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
        .ok_or(Code::INVALID_VALUE)?;
    // Reading the first and the last element checks the range before the allocation.
    get::<T>(addr)?;
    get::<T>(
        addr.checked_add((bytes - size_of::<T>()) as u64)
            .ok_or(Code::INVALID_VALUE)?,
    )?;
    values
        .try_reserve_exact(count)
        .map_err(|_| Code::OUT_OF_MEMORY)?;
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
    if is_on_stack(addr, bytes.len() as u64) {
        // SAFETY: the range lies within this thread's stack, above every frame of this call.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), addr as *mut u8, bytes.len()) };
        return Ok(());
    }
    Ok(checked::write_bytes(addr, bytes)?)
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

/// Types for which every bit pattern is valid.
///
/// # Safety
/// Padding is allowed; invalid bit patterns are not.
pub(crate) unsafe trait Plain: Copy {}
macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: integers and floats have no invalid bit patterns.
        unsafe impl Plain for $t {}
    )*};
}
plain!(u8, u16, u32, u64, i32, i64, f32);
// SAFETY: an array of plain values is plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

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

//! Reading and writing what callers point at.
//!
//! A pointer argument is a number until it has proved to be an address. One that lies on the calling thread's own stack
//! (where out-parameters of C and of our bindings live) is used directly; every other goes through the operating system
//! ([`crate::memory::checked`]), so that garbage is `INVALID_VALUE` and not a crash.

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

/// Writes `value` where the caller wants it.
pub(crate) fn put<T: Copy>(addr: u64, value: T) -> Res {
    if is_on_stack(addr, size_of::<T>() as u64) {
        // SAFETY: the range lies within this thread's stack, above every frame of this call.
        unsafe { (addr as *mut T).write_unaligned(value) };
        return Ok(());
    }
    Ok(checked::write(addr, &value)?)
}

/// [`put`], or nothing for a null pointer.
pub(crate) fn put_optional<T: Copy>(addr: u64, value: T) -> Res {
    if addr == 0 { Ok(()) } else { put(addr, value) }
}

/// Refuses a null out-parameter before anything happens.
pub(crate) fn non_null(addr: u64) -> Res {
    if addr == 0 {
        return refuse(Code::INVALID_VALUE, || {
            "a pointer that has to be given is null".into()
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

/// Reads `count` values that stand one after the other.
pub(crate) fn get_array<T: Plain>(addr: u64, count: usize) -> Res<Vec<T>> {
    let mut values = Vec::<T>::new();
    if count == 0 {
        return Ok(values);
    }
    let bytes = count
        .checked_mul(size_of::<T>())
        .ok_or(Code::INVALID_VALUE)?;
    // The first and last element prove the range before memory is set aside for it.
    get::<T>(addr)?;
    get::<T>(
        addr.checked_add((bytes - size_of::<T>()) as u64)
            .ok_or(Code::INVALID_VALUE)?,
    )?;
    values
        .try_reserve_exact(count)
        .map_err(|_| Code::OUT_OF_MEMORY)?;
    // SAFETY: the vector has room for `bytes`, all of them are written before the length says so, and any bytes are
    // valid values.
    unsafe {
        checked::read_into(addr, values.as_mut_ptr().cast(), bytes as u64)?;
        values.set_len(count);
    }
    Ok(values)
}

/// Copies `bytes` to the caller.
pub(crate) fn put_bytes(addr: u64, bytes: &[u8]) -> Res {
    if is_on_stack(addr, bytes.len() as u64) {
        // SAFETY: the range lies within this thread's stack, above every frame of this call.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), addr as *mut u8, bytes.len()) };
        return Ok(());
    }
    Ok(checked::write_bytes(addr, bytes)?)
}

/// Writes as much of `text` as `size` bytes hold, always with a NUL at the end.
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

/// Longest name accepted (mangled C++ names get long).
const LONGEST_NAME: u64 = 1 << 20;

/// Reads a NUL-terminated name.
pub(crate) fn get_name(addr: u64) -> Res<String> {
    let bytes = checked::read_c_string(addr, LONGEST_NAME)?;
    String::from_utf8(bytes).map_err(|_| Code::INVALID_VALUE)
}

/// Types of which any bytes are a valid value.
///
/// # Safety
/// No padding rules are needed, but no bit pattern may be invalid.
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

/// Copies ranges `(address, offset in out, length)` into `out`, with as few system calls as possible.
pub(crate) fn gather(parts: &[(u64, usize, usize)], out: &mut [u8]) -> Res {
    let mut rest = Vec::with_capacity(parts.len());
    for &(addr, offset, len) in parts {
        let target = offset
            .checked_add(len)
            .and_then(|end| out.get_mut(offset..end))
            .ok_or(Code::INVALID_VALUE)?;
        if is_on_stack(addr, len as u64) {
            // SAFETY: the range lies within this thread's stack; `target` is a buffer of ours on the heap.
            unsafe { std::ptr::copy_nonoverlapping(addr as *const u8, target.as_mut_ptr(), len) };
        } else if len > 0 {
            rest.push((addr, target.as_mut_ptr(), len as u64));
        }
    }
    // SAFETY: each target is a part of `out` with that length.
    Ok(unsafe { checked::read_scattered(&rest) }?)
}

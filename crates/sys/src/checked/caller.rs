//! Reads and writes of the memory that a caller passes to a C function: a pointer argument arrives as a number.
//!
//! Addresses on the calling thread's stack, where out-parameters of C and of the bindings live, are accessed directly; all others
//! through the operating system. The CPU device and the CUDA runtime convert the errors to their statuses.

use std::mem::MaybeUninit;

use super::{BadAddress, is_on_stack, read, read_into, write_from};

/// Types for which every bit pattern is valid: integers, floats, raw pointers, and structures of them, with or without padding.
/// The C structs and unions of this crate are plain.
///
/// # Safety
///
/// Every bit pattern is valid.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: integers and floats have no invalid bit patterns.
        unsafe impl Plain for $t {}
    )*};
}
plain!(u8, u16, u32, u64, usize, i32, i64, f32);
// SAFETY: an array of plain values is plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Why an array could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayError {
    /// The range cannot be read, or does not fit in the address space.
    BadAddress,
    /// There is no memory for the copy.
    OutOfMemory,
}

impl From<BadAddress> for ArrayError {
    fn from(_: BadAddress) -> ArrayError {
        ArrayError::BadAddress
    }
}

/// Writes `value` to the caller's address.
///
/// # Errors
///
/// [`BadAddress`] if the range cannot be written.
pub fn put<T: Copy>(addr: u64, value: T) -> Result<(), BadAddress> {
    if is_on_stack(addr, size_of::<T>() as u64) {
        // SAFETY: the range lies within this thread's stack, above every frame of this call.
        unsafe { (addr as *mut T).write_unaligned(value) };
        return Ok(());
    }
    super::write(addr, &value)
}

/// Writes a struct of which `fill` sets the fields, with zeros in its padding. A struct that is copied whole carries whatever
/// its padding held.
///
/// # Errors
///
/// [`BadAddress`] if the range cannot be written.
pub fn put_with<T: Plain>(addr: u64, fill: impl FnOnce(&mut T)) -> Result<(), BadAddress> {
    let mut storage = MaybeUninit::<T>::zeroed();
    // SAFETY: zeros are a valid `T`.
    fill(unsafe { storage.assume_init_mut() });
    // SAFETY: the storage has this size; it is copied as memory, with its padding.
    unsafe { put_memory(addr, storage.as_ptr().cast(), size_of::<T>()) }
}

/// Copies `bytes` to the caller's address.
///
/// # Errors
///
/// [`BadAddress`] if the range cannot be written.
pub fn put_bytes(addr: u64, bytes: &[u8]) -> Result<(), BadAddress> {
    // SAFETY: the slice has this length.
    unsafe { put_memory(addr, bytes.as_ptr(), bytes.len()) }
}

/// # Safety
///
/// `from` is valid for reads of `len` bytes.
unsafe fn put_memory(addr: u64, from: *const u8, len: usize) -> Result<(), BadAddress> {
    if is_on_stack(addr, len as u64) {
        // SAFETY: the target lies within this thread's stack, above every frame of this call; the source is the caller's
        // promise.
        unsafe { std::ptr::copy_nonoverlapping(from, addr as *mut u8, len) };
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { write_from(addr, from, len as u64) }
}

/// Reads a value.
///
/// # Errors
///
/// [`BadAddress`] if the range cannot be read.
pub fn get<T: Plain>(addr: u64) -> Result<T, BadAddress> {
    if is_on_stack(addr, size_of::<T>() as u64) {
        // SAFETY: the range lies within this thread's stack, and any bytes are a valid `T`.
        return Ok(unsafe { (addr as *const T).read_unaligned() });
    }
    // SAFETY: any bytes are a valid `T`.
    unsafe { read(addr) }
}

/// Reads `count` consecutive values.
///
/// # Errors
///
/// [`ArrayError`].
pub fn get_array<T: Plain>(addr: u64, count: usize) -> Result<Vec<T>, ArrayError> {
    let mut values = Vec::<T>::new();
    if count == 0 {
        return Ok(values);
    }
    let bytes = count
        .checked_mul(size_of::<T>())
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(ArrayError::BadAddress)?;
    // Reading the first and the last element checks the range before the allocation.
    get::<T>(addr)?;
    let last = addr.checked_add((bytes - size_of::<T>()) as u64);
    get::<T>(last.ok_or(ArrayError::BadAddress)?)?;
    values
        .try_reserve_exact(count)
        .map_err(|_| ArrayError::OutOfMemory)?;
    // SAFETY: the vector has room for `bytes`, all of them are written before `set_len`, and any bytes are valid
    // values.
    unsafe {
        read_into(addr, values.as_mut_ptr().cast(), bytes as u64)?;
        values.set_len(count);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::CUDA_RESOURCE_VIEW_DESC;

    #[test]
    fn values_pass_through_the_stack_and_the_heap() {
        let mut on_stack = 0u64;
        let mut on_heap = Box::new(0u64);
        for at in [&raw mut on_stack as u64, &raw mut *on_heap as u64] {
            assert_eq!(put(at, 0x0102_0304_0506_0708_u64), Ok(()));
            assert_eq!(get::<[u32; 2]>(at), Ok([0x0506_0708, 0x0102_0304]));
            assert_eq!(put_bytes(at, &[9]), Ok(()));
            assert_eq!(get::<u8>(at), Ok(9));
        }
        assert_eq!(put(16, 1u8), Err(BadAddress));
        assert_eq!(get::<u8>(16), Err(BadAddress));
    }

    #[test]
    fn padding_is_reported_as_zeros() {
        let mut out = [0xFFu8; size_of::<CUDA_RESOURCE_VIEW_DESC>()];
        let written = put_with(
            out.as_mut_ptr() as u64,
            |view: &mut CUDA_RESOURCE_VIEW_DESC| {
                (view.format.0, view.width) = (1, 2);
            },
        );
        assert_eq!(written, Ok(()));
        assert_eq!(out[..16], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert!(out[16..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn arrays_are_read_whole_or_not_at_all() {
        let values = vec![1u16, 2, 3];
        let at = values.as_ptr() as u64;
        assert_eq!(get_array(at, 3), Ok(values.clone()));
        assert_eq!(get_array::<u16>(0, 0), Ok(Vec::new()));
        let bad = Err(ArrayError::BadAddress);
        assert_eq!(get_array::<u64>(at, usize::MAX), bad);
        assert_eq!(get_array::<u64>(at, usize::MAX / 16), bad);
        assert_eq!(get_array::<u64>(16, 2), bad);
    }
}

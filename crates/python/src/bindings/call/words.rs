//! Values of C types in 64-bit words.

use crate::bindings::descriptor::Int;
use crate::cpython;
use crate::cpython::{Owned, R};

/// An address or a length as `usize`.
#[allow(clippy::cast_possible_truncation)] // 64-bit machines only
#[inline(always)]
pub fn address(word: u64) -> usize {
    word as usize
}

/// The value of type `kind` in the low bytes of a word, sign-extended.
#[allow(clippy::cast_possible_truncation)] // the low bytes are what C stored
pub fn low_bytes(word: u64, kind: Int) -> u64 {
    match kind {
        Int::I8 => i64::from(word as i8).cast_unsigned(),
        Int::U8 => u64::from(word as u8),
        Int::I16 => i64::from(word as i16).cast_unsigned(),
        Int::U16 => u64::from(word as u16),
        Int::I32 => i64::from(word as i32).cast_unsigned(),
        Int::U32 => u64::from(word as u32),
        Int::I64 | Int::U64 => word,
    }
}

/// An `int` from the low bytes of a word.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn int_from(word: u64, kind: Int) -> R<Owned> {
    match kind {
        Int::U64 => cpython::from_u64(word),
        _ => cpython::from_i64(low_bytes(word, kind).cast_signed()),
    }
}

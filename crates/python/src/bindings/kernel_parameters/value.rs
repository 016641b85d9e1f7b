//! Reading of values that become kernel parameters.

use pyo3::ffi;

use crate::cpython;
use crate::cpython::{Obj, R, Raised};
use crate::types;

/// The value of a `float` or an object with `__float__`.
///
/// # Errors
///
/// `TypeError`; errors of `__float__`.
#[inline(always)]
pub fn double(value: Obj<'_>) -> R<f64> {
    // SAFETY: the object is live.
    let number = unsafe { ffi::PyFloat_AsDouble(value.ptr()) };
    if number == -1.0 && cpython::raised() {
        return Err(Raised);
    }
    Ok(number)
}

/// The low 64 bits of an `int` of any size.
pub fn low_bits(value: Obj<'_>) -> u64 {
    // SAFETY: callers pass an int, for which this does not fail.
    unsafe { ffi::PyLong_AsUnsignedLongLongMask(value.ptr()) }
}

/// The value of a non-negative `int` of up to 64 bits; `None`, without an exception, for other ints.
pub fn unsigned(value: Obj<'_>) -> Option<u64> {
    // SAFETY: callers pass an int.
    let number = unsafe { ffi::PyLong_AsUnsignedLongLong(value.ptr()) };
    if number == u64::MAX && cpython::raised() {
        cpython::clear();
        return None;
    }
    Some(number)
}

/// Whether a signed integer of `bytes` bytes can have this value.
#[inline(always)]
pub fn fits_signed(number: i64, bytes: usize) -> bool {
    let unused = 64 - 8 * bytes as u32;
    number << unused >> unused == number
}

/// Whether a signed or an unsigned integer of `bytes` bytes can have this value.
#[inline(always)]
pub fn fits_either(number: i64, bytes: usize) -> bool {
    let unused = 64 - 8 * bytes as u32;
    fits_signed(number, bytes)
        || number.cast_unsigned() << unused >> unused == number.cast_unsigned()
}

/// Address of a structure of `cuda.bindings` whose members were written to memory; `None` for other objects.
///
/// # Errors
///
/// Errors of the members' conversions.
pub fn structure(value: Obj<'_>) -> R<Option<*mut u8>> {
    let Some(address) = types::any_struct_ptr(value) else {
        return Ok(None);
    };
    types::prepare_struct(value)?;
    Ok(Some(address))
}

#[cfg(test)]
mod tests {
    use super::{fits_either, fits_signed};

    #[test]
    fn integers_fit_by_size() {
        for (number, bytes, signed, either) in [
            (127, 1, true, true),
            (128, 1, false, true),
            (255, 1, false, true),
            (256, 1, false, false),
            (-128, 1, true, true),
            (-129, 1, false, false),
            (65_535, 2, false, true),
            (-65_535, 2, false, false),
            (i64::from(i32::MIN), 4, true, true),
            (i64::from(u32::MAX), 4, false, true),
            (i64::from(u32::MAX) + 1, 4, false, false),
            (i64::MIN, 8, true, true),
            (i64::MAX, 8, true, true),
            (-1, 8, true, true),
        ] {
            assert_eq!(fits_signed(number, bytes), signed, "{number} {bytes}");
            assert_eq!(fits_either(number, bytes), either, "{number} {bytes}");
        }
    }
}

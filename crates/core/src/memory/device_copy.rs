//! Plain data that can be copied to a device and back.

/// Types whose bytes can be copied to a device and back: plain data without pointers to host objects, valid for every
/// bit pattern.
///
/// # Safety
///
/// The type is `Copy`, has no padding whose contents matter, no invalid bit patterns (so not `bool`, `char` or enums)
/// and no references.
pub unsafe trait DeviceCopy: Copy + Send + Sync + 'static {}

macro_rules! device_copy {
    ($($t:ty),*) => {$(
        // SAFETY: plain numbers; every bit pattern is a value.
        unsafe impl DeviceCopy for $t {}
    )*};
}
device_copy!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
);
// SAFETY: an array of plain data is plain data.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}

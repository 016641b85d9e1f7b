//! Zeroed memory with the alignment of vector loads.

/// 64 bytes with the alignment of a vector load.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Line(pub [u8; 64]);

/// `bytes` zero bytes, rounded up to lines.
pub fn zeroed_lines(bytes: usize) -> Vec<Line> {
    let n = bytes.div_ceil(64);
    if n == 0 {
        return Vec::new();
    }
    let layout = match std::alloc::Layout::array::<Line>(n) {
        Ok(l) => l,
        Err(_) => return Vec::new(),
    };
    // SAFETY: the layout is not empty; all-zero bytes are a valid `Line`; pointer, length and capacity belong together.
    unsafe {
        let p = std::alloc::alloc_zeroed(layout).cast::<Line>();
        if p.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(p, n, n)
    }
}

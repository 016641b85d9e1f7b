//! Memory and objects that must outlive the C call.

use crate::bindings::errors;
use crate::cpython::{Buffer, Owned, R};

/// Owners of the memory that must outlive the C call.
#[derive(Default)]
pub struct Keep {
    /// Views of Python memory.
    pub buffers: Vec<Buffer>,
    /// Objects whose memory C reads.
    pub objects: Vec<Owned>,
    /// Arrays allocated for C.
    pub arrays: Vec<Vec<u64>>,
}

impl Keep {
    /// An empty value.
    #[inline(always)]
    pub const fn new() -> Keep {
        Keep {
            buffers: Vec::new(),
            objects: Vec::new(),
            arrays: Vec::new(),
        }
    }

    /// A zeroed array of `bytes` bytes, 8-byte aligned, that lives as long as `self`; null if `bytes` is 0.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn array(&mut self, bytes: usize) -> R<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        let words = bytes.div_ceil(8);
        let Ok(layout) = std::alloc::Layout::array::<u64>(words) else {
            return Err(errors::no_memory());
        };
        // The allocator zeroes: untouched pages take no memory, however large the count.
        // SAFETY: the layout has at least one word, as `bytes` is not 0.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(errors::no_memory());
        }
        // SAFETY: the memory comes from the global allocator with this layout and is zeroed.
        let mut array = unsafe { Vec::from_raw_parts(memory.cast::<u64>(), words, words) };
        let address = array.as_mut_ptr().cast();
        self.arrays.push(array);
        Ok(address)
    }
}

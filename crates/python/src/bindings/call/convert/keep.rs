//! Memory and objects that must outlive the C call.

use smallvec::SmallVec;

use crate::bindings::errors;
use crate::cpython::{Buffer, Owned, R};

/// Objects kept alive for C; a call seldom needs more than these without allocating.
pub type Objects = SmallVec<[Owned; 4]>;

/// Words of the first chunk of arrays: small arrays share it.
const CHUNK: usize = 64;

/// Owners of the memory that must outlive the C call.
#[derive(Default)]
pub struct Keep {
    /// Views of Python memory.
    pub buffers: Vec<Buffer>,
    /// Objects whose memory C reads.
    pub objects: Objects,
    /// Memory for C. Arrays of up to [`CHUNK`] words are taken from the last chunk of that size.
    arrays: SmallVec<[Vec<u64>; 2]>,
    /// Words that are left at the end of `chunk`.
    left: usize,
    /// Index of the chunk in `arrays`.
    chunk: usize,
}

impl Keep {
    /// An empty value.
    #[inline(always)]
    pub fn new() -> Keep {
        Keep {
            buffers: Vec::new(),
            objects: SmallVec::new(),
            arrays: SmallVec::new(),
            left: 0,
            chunk: 0,
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
        if words > CHUNK {
            return self.allocate(words);
        }
        if words > self.left {
            self.chunk = self.arrays.len();
            self.allocate(CHUNK)?;
            self.left = CHUNK;
        }
        let start = CHUNK - self.left;
        self.left -= words;
        Ok(self.arrays[self.chunk][start..].as_mut_ptr().cast())
    }

    /// Zeroed memory of this many words, not 0.
    fn allocate(&mut self, words: usize) -> R<*mut u8> {
        let Ok(layout) = std::alloc::Layout::array::<u64>(words) else {
            return Err(errors::no_memory());
        };
        // The allocator zeroes: untouched pages take no memory, however large the count.
        // SAFETY: the layout has at least one word.
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

#[cfg(test)]
mod tests {
    use super::{CHUNK, Keep};

    #[test]
    fn arrays_are_zeroed_and_do_not_overlap() {
        let mut keep = Keep::new();
        let mut ranges = Vec::new();
        for bytes in (1..200).chain([CHUNK * 8, CHUNK * 8 + 1, 4096, 8]) {
            let at = keep.array(bytes).unwrap();
            assert!(at.addr().is_multiple_of(8));
            // SAFETY: the array has `bytes` bytes and lives as long as `keep`.
            let array = unsafe { std::slice::from_raw_parts_mut(at, bytes) };
            assert!(array.iter().all(|byte| *byte == 0), "{bytes}");
            array.fill(0xFF);
            ranges.push(at.addr()..at.addr() + bytes);
        }
        ranges.sort_by_key(|range| range.start);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(keep.array(0).unwrap().is_null());
    }

    #[test]
    fn arrays_stay_where_they_are_when_the_owner_moves() {
        let mut keep = Keep::new();
        let at = keep.array(16).unwrap();
        // SAFETY: the array has 16 bytes.
        unsafe { at.cast::<u64>().write(7) };
        let moved = Box::new(keep);
        // SAFETY: as above; `moved` owns the array.
        assert_eq!(unsafe { at.cast::<u64>().read() }, 7);
        drop(moved);
    }
}

//! Memory for kernel parameters: the array of pointers that `cuLaunchKernel` takes, and the values they point to.
//!
//! `cuLaunchKernel` ([`super::kernel_arguments`]) and `cuda.core.launch` pack their arguments into it. Up to [`INLINE`]
//! arguments need no heap memory; for more, pointers and values share one allocation.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::bindings::errors;
use crate::cpython::R;

/// Largest number of parameters that needs no heap memory.
pub const INLINE: usize = 32;

/// Inline room for values, in 8-byte words: 32 values of 16 bytes, and as much again for structures.
const INLINE_WORDS: usize = 4 * INLINE;

/// Pointers and values. Must not move between [`ParameterArena::begin`] and the end of the C call.
pub struct ParameterArena {
    pointers: MaybeUninit<[*mut c_void; INLINE]>,
    words: MaybeUninit<[u128; INLINE_WORDS / 2]>,
    /// The chunk that values are written to, 16-byte aligned; null while values go to `words`.
    chunk: *mut u64,
    /// Words in use in the chunk.
    used: usize,
    /// Words in the chunk.
    capacity: usize,
    /// Heap memory; its address does not change when this list grows.
    heap: Vec<Vec<u128>>,
}

impl ParameterArena {
    /// An empty arena. Allocates and initialises nothing.
    #[inline(always)]
    pub const fn new() -> ParameterArena {
        ParameterArena {
            pointers: MaybeUninit::uninit(),
            words: MaybeUninit::uninit(),
            chunk: std::ptr::null_mut(),
            used: 0,
            capacity: INLINE_WORDS,
            heap: Vec::new(),
        }
    }

    /// An uninitialised array of `count` pointers.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline(always)]
    pub fn begin(&mut self, count: usize) -> R<*mut *mut c_void> {
        if count <= INLINE {
            return Ok(self.pointers.as_mut_ptr().cast());
        }
        self.begin_on_heap(count)
    }

    /// One allocation for the pointers and for values of 16 bytes each.
    #[cold]
    fn begin_on_heap(&mut self, count: usize) -> R<*mut *mut c_void> {
        let pieces = count.div_ceil(2);
        let pointers = self.allocate(pieces + count)?;
        // SAFETY: the allocation has `pieces + count` elements; the pointers take the first `pieces`.
        self.chunk = unsafe { pointers.add(pieces) }.cast();
        self.used = 0;
        self.capacity = 2 * count;
        Ok(pointers.cast())
    }

    /// Uninitialised memory for `pieces` pieces of 16 bytes.
    fn allocate(&mut self, pieces: usize) -> R<*mut u128> {
        let mut memory: Vec<u128> = Vec::new();
        if memory.try_reserve_exact(pieces).is_err() || self.heap.try_reserve(1).is_err() {
            return Err(errors::no_memory());
        }
        let start = memory.as_mut_ptr();
        self.heap.push(memory);
        Ok(start)
    }

    /// Stores a value of up to 8 bytes and returns its address.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline(always)]
    pub fn word(&mut self, word: u64) -> R<*mut c_void> {
        let room = self.room(8)?;
        // SAFETY: `room(8)` returned 8 bytes, aligned to 8.
        unsafe { room.cast::<u64>().write(word) };
        Ok(room.cast())
    }

    /// Stores a copy of `bytes` and returns its address.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn bytes(&mut self, bytes: &[u8]) -> R<*mut c_void> {
        let room = self.room(bytes.len())?;
        // SAFETY: `room` returned `bytes.len()` bytes of the arena, which do not overlap `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) };
        Ok(room.cast())
    }

    /// Room for a value of `size` bytes, aligned to 8 bytes, or to 16 if it is larger than 8.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline(always)]
    pub fn room(&mut self, size: usize) -> R<*mut u8> {
        let words = size.div_ceil(8);
        let start = if words > 1 {
            self.used.next_multiple_of(2)
        } else {
            self.used
        };
        if words > self.capacity.saturating_sub(start) {
            return self.room_in_new_chunk(words);
        }
        self.used = start + words;
        let base = if self.chunk.is_null() {
            self.words.as_mut_ptr().cast::<u64>()
        } else {
            self.chunk
        };
        // SAFETY: the chunk has `capacity` words; `start + words <= capacity` was checked above.
        Ok(unsafe { base.add(start) }.cast())
    }

    /// Room in a new chunk, of at least twice the size of the last one.
    #[cold]
    fn room_in_new_chunk(&mut self, words: usize) -> R<*mut u8> {
        let pieces = words.div_ceil(2).max(self.capacity);
        self.chunk = self.allocate(pieces)?.cast();
        self.capacity = 2 * pieces;
        self.used = words;
        Ok(self.chunk.cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs `count` values of these sizes, verifies them, and returns the number of heap allocations.
    fn pack(count: usize, size: impl Fn(usize) -> usize) -> usize {
        let mut arena = ParameterArena::new();
        let pointers = arena.begin(count).unwrap();
        for index in 0..count {
            let bytes = vec![index as u8; size(index)];
            let at = arena.bytes(&bytes).unwrap();
            let alignment = if bytes.len() > 8 { 16 } else { 8 };
            assert_eq!(at.addr() % alignment, 0);
            // SAFETY: `begin` returned room for `count` pointers.
            unsafe { pointers.add(index).write(at) };
        }
        for index in 0..count {
            // SAFETY: written above.
            let value = unsafe {
                let at = pointers.add(index).read().cast::<u8>();
                std::slice::from_raw_parts(at, size(index))
            };
            assert!(value.iter().all(|&byte| byte == index as u8));
        }
        arena.heap.len()
    }

    #[test]
    fn values_stay_where_they_are_and_do_not_overlap() {
        for count in [0, 1, 31, 32, 33, 64, 65, 255, 256, 512, 1024] {
            pack(count, |index| [1, 2, 4, 8, 16, 12][index % 6]);
            pack(count, |index| 1 + index % 200);
        }
    }

    #[test]
    fn the_number_of_allocations_does_not_grow_with_the_number_of_arguments() {
        assert_eq!(pack(32, |_| 16), 0);
        for count in [33, 65, 256, 512, 1024] {
            assert_eq!(pack(count, |_| 16), 1);
        }
        assert_eq!(pack(1, |_| 4096), 1);
    }
}

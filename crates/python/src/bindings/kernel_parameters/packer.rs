//! Memory for kernel parameters: the array of pointers that `cuLaunchKernel` takes, and the values they point to.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::bindings::errors;
use crate::cpython::R;

/// Largest number of parameters that needs no heap memory.
pub const INLINE: usize = 32;

/// Memory for a value of up to 8 bytes, or for a pointer.
type Slot = MaybeUninit<u64>;

/// 16 aligned bytes of memory for larger values.
type Block = MaybeUninit<u128>;

/// Blocks that need no heap memory.
const INLINE_BLOCKS: usize = 64;

/// The parameters of one launch: pointers and values. Must not move between [`Packer::begin`] and the end of the C call.
///
/// Up to [`INLINE`] parameters need no heap memory; for more, pointers and slots share one allocation. Values of more than
/// 8 bytes go to a `Room`, which allocates chunks of doubling size after its first 1 KiB.
pub struct Packer {
    pointers: [MaybeUninit<*mut c_void>; INLINE],
    slots: [Slot; INLINE],
    /// Pointers and slots of more than [`INLINE`] parameters.
    heap: Vec<Slot>,
    room: Room,
}

/// Memory for values of more than 8 bytes.
struct Room {
    inline: [Block; INLINE_BLOCKS],
    /// The chunk that values are written to; null while they go to `inline`.
    chunk: *mut Block,
    /// Blocks in use in the chunk.
    used: usize,
    /// Blocks in the chunk.
    capacity: usize,
    /// All chunks; their addresses do not change when this list grows.
    heap: Vec<Vec<Block>>,
}

impl Packer {
    /// An empty packer. Allocates and initialises nothing.
    #[inline(always)]
    pub const fn new() -> Packer {
        Packer {
            pointers: [const { MaybeUninit::uninit() }; INLINE],
            slots: [const { MaybeUninit::uninit() }; INLINE],
            heap: Vec::new(),
            room: Room {
                inline: [const { MaybeUninit::uninit() }; INLINE_BLOCKS],
                chunk: std::ptr::null_mut(),
                used: 0,
                capacity: INLINE_BLOCKS,
                heap: Vec::new(),
            },
        }
    }

    /// Begins `count` parameters; called once.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline(always)]
    pub fn begin(&mut self, count: usize) -> R<Parameters<'_>> {
        if count > INLINE {
            return self.begin_on_heap(count);
        }
        Ok(Parameters {
            pointers: self.pointers.as_mut_ptr().cast(),
            slots: self.slots.as_mut_ptr(),
            room: &mut self.room,
            count,
            memory: PhantomData,
        })
    }

    #[cold]
    fn begin_on_heap(&mut self, count: usize) -> R<Parameters<'_>> {
        if self.heap.try_reserve_exact(2 * count).is_err() {
            return Err(errors::no_memory());
        }
        let pointers = self.heap.as_mut_ptr();
        Ok(Parameters {
            pointers: pointers.cast(),
            // SAFETY: the allocation has `2 * count` slots; the pointers take the first `count`.
            slots: unsafe { pointers.add(count) },
            room: &mut self.room,
            count,
            memory: PhantomData,
        })
    }
}

/// Writes the values and pointers of a [`Packer`].
///
/// Each parameter has a pointer and a slot of 8 bytes, which its setter writes without further checks.
pub struct Parameters<'a> {
    /// `count` pointers.
    pointers: *mut *mut c_void,
    /// `count` slots.
    slots: *mut Slot,
    room: &'a mut Room,
    count: usize,
    memory: PhantomData<&'a mut [Slot]>,
}

impl Parameters<'_> {
    /// The array of pointers (`void **`), complete once each parameter was set.
    #[inline(always)]
    pub fn pointers(&self) -> *mut *mut c_void {
        self.pointers
    }

    /// Sets a parameter to the value at this address, which stays valid until the end of the C call.
    ///
    /// # Safety
    ///
    /// `index` is less than the number of parameters.
    #[inline(always)]
    pub unsafe fn set_address(&mut self, index: usize, address: *mut c_void) {
        debug_assert!(index < self.count);
        // SAFETY: there are `count` pointers, and the caller guarantees the index.
        unsafe { self.pointers.add(index).write(address) };
    }

    /// Sets a parameter to a value of up to 8 bytes: the low bytes of `word`.
    ///
    /// # Safety
    ///
    /// As for [`Parameters::set_address`].
    #[inline(always)]
    pub unsafe fn set_word(&mut self, index: usize, word: u64) {
        // SAFETY: there are `count` slots of 8 bytes, and the caller guarantees the index.
        unsafe {
            let slot = self.slots.add(index).cast::<u64>();
            slot.write(word);
            self.set_address(index, slot.cast());
        }
    }

    /// Sets a parameter to a copy of the `size` bytes at `from`.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    ///
    /// # Safety
    ///
    /// As for [`Parameters::set_address`]; the bytes are readable.
    #[inline(always)]
    pub unsafe fn set_copy(&mut self, index: usize, from: *const u8, size: usize) -> R<()> {
        // SAFETY: guaranteed by the caller; unaligned reads of exactly `size` bytes.
        unsafe {
            let word = match size {
                8 => from.cast::<u64>().read_unaligned(),
                4 => from.cast::<u32>().read_unaligned().into(),
                2 => from.cast::<u16>().read_unaligned().into(),
                1 => from.read().into(),
                _ => return self.set_bytes(index, from, size),
            };
            self.set_word(index, word);
        }
        Ok(())
    }

    /// As [`Parameters::set_copy`], for unusual sizes.
    #[inline(never)]
    unsafe fn set_bytes(&mut self, index: usize, from: *const u8, size: usize) -> R<()> {
        // SAFETY: the caller guarantees the index and the bytes; a slot has 8 bytes, the room `size`.
        unsafe {
            let to = if size <= size_of::<Slot>() {
                self.slots.add(index).cast::<u8>()
            } else {
                self.room.reserve(size)?
            };
            std::ptr::copy_nonoverlapping(from, to, size);
            self.set_address(index, to.cast());
        }
        Ok(())
    }
}

impl Room {
    /// Memory for a value of `size` bytes, aligned to 16.
    fn reserve(&mut self, size: usize) -> R<*mut u8> {
        let blocks = size.div_ceil(size_of::<Block>());
        if blocks > self.capacity - self.used {
            self.begin_chunk(blocks)?;
        }
        let base = if self.chunk.is_null() {
            self.inline.as_mut_ptr()
        } else {
            self.chunk
        };
        // SAFETY: the chunk has `capacity` blocks, of which at least `blocks` follow the used ones.
        let start = unsafe { base.add(self.used) };
        self.used += blocks;
        Ok(start.cast())
    }

    /// Begins a chunk with room for `blocks`, of at least twice the size of the last one.
    #[cold]
    fn begin_chunk(&mut self, blocks: usize) -> R<()> {
        let capacity = blocks.max(2 * self.capacity);
        let mut memory: Vec<Block> = Vec::new();
        if memory.try_reserve_exact(capacity).is_err() || self.heap.try_reserve(1).is_err() {
            return Err(errors::no_memory());
        }
        self.chunk = memory.as_mut_ptr();
        self.capacity = capacity;
        self.used = 0;
        self.heap.push(memory);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs `count` values of these sizes, verifies them, and returns the number of heap allocations.
    fn pack(count: usize, size: impl Fn(usize) -> usize) -> usize {
        let mut packer = Packer::new();
        let mut parameters = packer.begin(count).unwrap();
        for index in 0..count {
            let bytes = vec![index as u8; size(index)];
            // SAFETY: one of `count` parameters.
            unsafe { parameters.set_copy(index, bytes.as_ptr(), bytes.len()) }.unwrap();
        }
        let pointers = parameters.pointers();
        for index in 0..count {
            // SAFETY: written above.
            let value = unsafe {
                let at = pointers.add(index).read().cast::<u8>();
                assert_eq!(at.addr() % if size(index) > 8 { 16 } else { 8 }, 0);
                std::slice::from_raw_parts(at, size(index))
            };
            assert!(value.iter().all(|&byte| byte == index as u8));
        }
        usize::from(packer.heap.capacity() != 0) + packer.room.heap.len()
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
        assert_eq!(pack(32, |_| 32), 0);
        for count in [33, 65, 256, 512, 1024] {
            assert_eq!(pack(count, |_| 8), 1);
            assert!(pack(count, |_| 16) <= 5);
        }
        assert_eq!(pack(1, |_| 4096), 1);
    }
}

//! Hash map from types to small numbers, for lookups on every argument. Open addressing; readers take no lock.

use std::sync::atomic::{AtomicPtr, AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;

/// Hashes an address (Fibonacci hashing). The upper bits are the best distributed.
#[inline(always)]
pub const fn spread(address: u64) -> u64 {
    // 2^64 divided by the golden ratio.
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Map of at most `N / 2` types; `N` is a power of two. Entries are never removed, and their types must stay alive.
pub struct PointerMap<const N: usize> {
    keys: [AtomicPtr<ffi::PyTypeObject>; N],
    values: [AtomicU16; N],
    inserting: Mutex<()>,
}

impl<const N: usize> PointerMap<N> {
    /// An empty map.
    pub const fn new() -> PointerMap<N> {
        assert!(N.is_power_of_two());
        PointerMap {
            keys: [const { AtomicPtr::new(std::ptr::null_mut()) }; N],
            values: [const { AtomicU16::new(0) }; N],
            inserting: Mutex::new(()),
        }
    }

    #[inline(always)]
    fn first(key: *mut ffi::PyTypeObject) -> usize {
        // Types are aligned to 16 bytes.
        (spread(key.addr() as u64 >> 4) >> (64 - N.trailing_zeros())) as usize
    }

    /// The number of exactly this type; does not consider base types.
    #[inline(always)]
    pub fn get(&self, key: *mut ffi::PyTypeObject) -> Option<u16> {
        let mut at = Self::first(key);
        loop {
            let known = self.keys[at].load(Ordering::Acquire);
            if known == key {
                return Some(self.values[at].load(Ordering::Relaxed));
            }
            if known.is_null() {
                return None;
            }
            at = (at + 1) % N;
        }
    }

    /// Adds a type, which the caller keeps alive for the lifetime of the process. Returns false and changes nothing if
    /// the type is already present.
    pub fn insert(&self, key: *mut ffi::PyTypeObject, value: u16) -> bool {
        let _inserting = (self.inserting.lock()).unwrap_or_else(PoisonError::into_inner);
        let mut at = Self::first(key);
        let mut used = 0;
        loop {
            let known = self.keys[at].load(Ordering::Relaxed);
            if known == key {
                return false;
            }
            if known.is_null() {
                break;
            }
            at = (at + 1) % N;
            used += 1;
            debug_assert!(used < N / 2, "the map is too small");
        }
        self.values[at].store(value, Ordering::Relaxed);
        self.keys[at].store(key, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_the_same_first_place_are_told_apart() {
        static MAP: PointerMap<16> = PointerMap::new();
        let keys: Vec<_> = (1..8usize)
            .map(|n| std::ptr::without_provenance_mut::<ffi::PyTypeObject>(n * 0x1000))
            .collect();
        for (index, key) in keys.iter().enumerate() {
            assert!(MAP.insert(*key, index as u16));
            assert!(!MAP.insert(*key, 99));
        }
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(MAP.get(*key), Some(index as u16));
        }
        assert_eq!(MAP.get(std::ptr::without_provenance_mut(0x9000)), None);
    }
}

//! The handles of one kind that the program has destroyed.
//!
//! NVIDIA's driver reuses the values of destroyed handles, so there are at most as many records as objects were alive
//! at the same time. The CPU device never reuses a value ([`NEVER_REUSED`]): its handles need no epoch, and a bit each,
//! 64 in a word, records their destruction.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use cupyrite_sys::loader::NEVER_REUSED;

/// By handle or another address.
pub(super) type ByHandle<T> = HashMap<usize, T, BuildHasherDefault<HandleHasher>>;

/// Hashes handles, which are addresses: a multiplication spreads them well enough.
#[derive(Default)]
pub(super) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn write_usize(&mut self, handle: usize) {
        let mixed = (handle as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The destroyed handles of a kind.
#[derive(Default)]
pub(super) struct Handles {
    /// The epoch of the last call that destroyed a handle, for values that are reused.
    pub(super) reused: ByHandle<u32>,
    /// Destroyed handles that are never reused: a bit each, by [`place`].
    unique: ByHandle<u64>,
}

/// The word and the bit of a handle that is never reused.
fn place(handle: usize) -> Option<(usize, u64)> {
    const TAG: u64 = 0xFFC0_0000_0000_0000;
    let handle = handle as u64;
    let unique = handle & TAG == NEVER_REUSED && handle & 15 == 0;
    unique.then_some(((handle >> 10) as usize, 1 << (handle >> 4 & 63)))
}

/// Whether the value of this handle is never reused.
pub(super) fn is_never_reused(handle: usize) -> bool {
    place(handle).is_some()
}

impl Handles {
    /// Records that a handle whose value is never reused is destroyed.
    pub(super) fn destroy(&mut self, handle: usize) {
        if let Some((word, bit)) = place(handle) {
            *self.unique.entry(word).or_default() |= bit;
        }
    }

    /// Whether an object with that handle, created in an epoch, is destroyed.
    pub(super) fn is_destroyed(&self, handle: usize, created: u32) -> bool {
        match place(handle) {
            Some((word, bit)) => self.unique.get(&word).is_some_and(|bits| bits & bit != 0),
            None => self
                .reused
                .get(&handle)
                .is_some_and(|&destroyed| is_later(destroyed, created)),
        }
    }
}

/// Whether an epoch is later than another one.
pub(super) fn is_later(epoch: u32, than: u32) -> bool {
    epoch.wrapping_sub(than).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_handles_share_a_word() {
        let handle = |id: usize| NEVER_REUSED as usize | 2 << 48 | id << 4;
        let mut handles = Handles::default();
        for id in 0..1_000_000 {
            if id % 1000 != 7 {
                handles.destroy(handle(id));
            }
        }
        for id in 0..1_000_000 {
            assert_eq!(handles.is_destroyed(handle(id), 5), id % 1000 != 7, "{id}");
        }
        // Another kind of object, and values that are not handles of the CPU device.
        for other in [
            handle(0) | 1 << 48,
            handle(0) | 8,
            handle(0) | 1 << 60,
            0x40,
        ] {
            assert!(!handles.is_destroyed(other, 5), "{other:#x}");
        }
        assert_eq!(handles.unique.len(), 1_000_000_usize.div_ceil(64));
        assert!(handles.reused.is_empty());
    }
}

//! Memory that queued work will allocate: the allocations of graphs that were launched and have not run yet.
//!
//! Their addresses are valid for work that is enqueued later. Work checks when it runs that the memory exists.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Sizes in bytes, by address.
static RANGES: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Records that queued work allocates `size` bytes at `address`.
pub(crate) fn add(address: u64, size: u64) {
    RANGES.lock().insert(address, size);
}

/// Records that queued work, or a call, frees the memory at `address`.
pub(crate) fn remove(address: u64) {
    RANGES.lock().remove(&address);
}

/// Whether a range lies in one allocation that will exist after all queued work.
pub(crate) fn covers(address: u64, len: u64) -> bool {
    let ranges = RANGES.lock();
    let below = ranges.range(..=address).next_back();
    below.is_some_and(|(start, size)| {
        let offset = address - start;
        offset < *size && len <= size - offset
    })
}

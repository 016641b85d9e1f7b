//! Parked memory: the memory of a freed region, kept for reuse by a pool.
//!
//! No region covers parked memory, so an access through a stale pointer is detected as a use after free.

use std::sync::atomic::Ordering;

use super::{AddressSpace, MemoryError, Reach, Region, RegionEntry};

/// Memory that is allocated but belongs to no region. [`AddressSpace::release`] frees it; dropping it leaks it.
#[must_use]
pub struct Parked {
    entry: RegionEntry,
}

impl Parked {
    /// Size of the memory in bytes.
    pub fn capacity(&self) -> u64 {
        self.entry.capacity
    }
}

impl AddressSpace {
    /// Removes the region that starts at `addr` from the table if `accept` returns true, and keeps its memory.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no live region starts there or `accept` returns false.
    pub fn park(
        &self,
        addr: u64,
        accept: impl FnOnce(&Region) -> bool,
    ) -> Result<Parked, MemoryError> {
        let mut regions = self.regions.write();
        match regions.get(&addr) {
            Some(e) if accept(&e.region) => {}
            _ => return Err(MemoryError::NotAllocated),
        }
        let entry = regions.remove(&addr).ok_or(MemoryError::NotAllocated)?;
        self.generation.fetch_add(1, Ordering::SeqCst);
        Ok(Parked { entry })
    }

    /// Turns parked memory into a region of `size` bytes of the same kind as before.
    ///
    /// # Errors
    /// Returns the parked memory if it is smaller than `size`.
    pub fn unpark(
        &self,
        mut parked: Parked,
        size: u64,
        owner: u64,
        reach: Reach,
    ) -> Result<Region, Parked> {
        if size == 0 || size > parked.capacity() {
            return Err(parked);
        }
        let region = &mut parked.entry.region;
        region.size = size;
        region.owner = owner;
        region.reach = reach;
        region.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let region = *region;
        self.insert(parked.entry);
        Ok(region)
    }

    /// Returns parked memory to the system.
    pub fn release(&self, parked: Parked) {
        self.heap.lock().limbo.push(parked.entry);
        self.reclaim();
    }
}

#[cfg(test)]
mod tests {
    use super::super::RegionKind;
    use super::*;

    #[test]
    fn parked_memory_is_kept_and_inaccessible() {
        let s = AddressSpace::new(1 << 30);
        for size in [1000, 3 << 20] {
            let a = s.alloc(size, 256, RegionKind::Device).unwrap();
            let used = s.used();
            assert!(s.park(a + 1, |_| true).is_err());
            assert!(s.park(a, |_| false).is_err());
            let p = s.park(a, |r| r.kind == RegionKind::Device).unwrap();
            assert!(s.find(a).is_none());
            assert!(s.free(a).is_err());
            assert_eq!(s.used(), used);
            let Err(p) = s.unpark(p, size + 1, 7, Reach::ALL) else {
                panic!("unparked more than the capacity");
            };
            let r = s.unpark(p, size / 2, 7, Reach::of(2)).ok().unwrap();
            assert_eq!((r.base, r.size, r.owner), (a, size / 2, 7));
            assert_eq!(s.find(a).unwrap().reach, Reach::of(2));
            assert!(s.find_range(a, size / 2 + 1).is_none());
            if size > 1000 {
                let p = s.park(a, |_| true).unwrap();
                s.release(p);
            } else {
                s.free(a).unwrap();
            }
            assert_eq!(s.used(), 0);
        }
    }
}

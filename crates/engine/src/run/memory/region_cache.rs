//! Cache of memory regions: a bounds check that hits costs two comparisons.

use crate::memory::{Access, AddressSpace, Viewer};

/// A region that an instruction has accessed.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Cached {
    /// First address.
    pub base: u64,
    /// Address past the last byte.
    pub end: u64,
    /// `end`, or zero if the region is read-only.
    pub write_end: u64,
}

/// Cache of regions, by memory instruction.
pub struct RegionCache {
    entries: [Cached; 256],
    generation: u64,
    viewer: Viewer,
}

impl RegionCache {
    /// An empty cache for the access rights of `viewer`.
    pub fn new(viewer: Viewer) -> Self {
        Self {
            entries: [Cached::default(); 256],
            generation: 0,
            viewer,
        }
    }

    /// The entries, for machine code.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub fn entries(&self) -> *const Cached {
        self.entries.as_ptr()
    }

    /// Empties the cache if the address space has changed since the last call, and returns whether it has.
    pub fn refresh(&mut self, space: &AddressSpace) -> bool {
        let now = space.generation();
        let changed = now != self.generation;
        if changed {
            self.entries = [Cached::default(); 256];
            self.generation = now;
        }
        changed
    }

    /// Whether the range lies in the region that the instruction accessed last.
    #[inline(always)]
    pub fn hit(&self, entry: u16, address: u64, len: u64, write: bool) -> bool {
        let e = &self.entries[usize::from(entry & 0xff)];
        let end = if write { e.write_end } else { e.end };
        address >= e.base && address < end && end - address >= len
    }

    /// Looks for the region of a range, and keeps it for [`Self::hit`].
    #[cold]
    #[inline(never)]
    pub fn find(
        &mut self,
        space: &AddressSpace,
        entry: u16,
        address: u64,
        len: u64,
        write: bool,
    ) -> bool {
        let Some(r) = space.find_range(address, len) else {
            return false;
        };
        let access = self.viewer.access(&r);
        let writable = access == Access::ReadWrite && !r.read_only;
        if access == Access::None || (write && !writable) {
            return false;
        }
        self.entries[usize::from(entry & 0xff)] = Cached {
            base: r.base,
            end: r.base + r.size,
            write_end: if writable { r.base + r.size } else { 0 },
        };
        true
    }

    /// Whether `[address, address + len)` lies in one region that allows the access.
    #[inline(always)]
    pub fn check(
        &mut self,
        space: &AddressSpace,
        entry: u16,
        address: u64,
        len: u64,
        write: bool,
    ) -> bool {
        self.hit(entry, address, len, write) || self.find(space, entry, address, len, write)
    }
}

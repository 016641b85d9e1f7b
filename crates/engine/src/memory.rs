//! Device memory: one address space per process, in which device pointers are host addresses.
//!
//! Belongs here: allocation, the table of live regions that every kernel access is checked against, and checked copies
//! from and to foreign memory. Does not belong here: contexts, streams, error codes.
//!
//! Three rules keep an incorrect program from crashing:
//! * an address is accessed directly only if a [`Region`] covers it and an [`AddressSpace::pin`] is held, which delays
//!   the release of freed pages;
//! * a freed address is not reused immediately, so that accesses through stale pointers are detected;
//! * all other accesses go through [`checked`], where the operating system performs the access and reports failures.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

mod checkpoint;
pub mod files;
mod multicast;
pub mod object;
pub mod pages;
mod parking;
mod reach;
mod region;
mod shared;
mod virtual_memory;

pub use checkpoint::SavedMemory;
pub use cupyrite_sys::checked;
pub use multicast::{BindError, Bindable, Multicast, MulticastWindow};
use pages::Pages;
pub use parking::Parked;
pub use reach::{Access, Reach, Viewer};
pub use region::{Region, RegionKind};
pub use shared::{Arena, SHARED_NAME, SharedRange};
use virtual_memory::Reservation;
pub use virtual_memory::{Mappable, Mapping, Physical};

/// Why an allocation or a deallocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The device has too little free memory.
    OutOfMemory,
    /// A size of zero or an alignment that is not a power of two.
    InvalidRequest,
    /// Not the start of a live region of the expected kind.
    NotAllocated,
    /// The range overlaps a live region ([`AddressSpace::register`] only).
    Overlap,
    /// The range is not mapped ([`AddressSpace::register`] and virtual memory only).
    NotMapped,
    /// An operating system call failed (shared memory only).
    System,
    /// Kernels or copies access memory continuously ([`AddressSpace::share`] only).
    Busy,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "out of device memory",
            Self::InvalidRequest => "invalid size or alignment",
            Self::NotAllocated => "not the start of a live allocation",
            Self::Overlap => "the range overlaps another registered or allocated range",
            Self::NotMapped => "the range is not mapped",
            Self::System => "an operating system call failed",
            Self::Busy => "the device is busy",
        })
    }
}

impl std::error::Error for MemoryError {}

/// Backing of a region's bytes.
enum Backing {
    /// A slab slot, by size class.
    Slot(u8),
    /// A separate mapping.
    Mapping(Pages),
    /// Memory of the program.
    Foreign,
    /// Physical memory mapped into a reservation, which owns the addresses.
    Window(Arc<Physical>),
    /// A reservation of addresses.
    Reserved(Pages),
    /// A range of a file, and the block to free; without a block if another process created the file.
    File(Pages, Option<Box<shared::Block>>),
}

struct RegionEntry {
    region: Region,
    backing: Backing,
    /// Size of the underlying block in bytes; larger than the region if the block was reused.
    capacity: u64,
}

/// Slots of one size class, cut from chunks of [`CHUNK`] bytes.
#[derive(Default)]
struct Slab {
    /// Freed slots, oldest first; reused only while more than [`QUARANTINE_SLOTS`] are queued.
    free: VecDeque<u64>,
    /// Start of the unused rest of the newest chunk.
    bump: u64,
    bump_end: u64,
}

#[derive(Default)]
struct Heap {
    slabs: [Slab; CLASSES],
    /// Chunks are never unmapped.
    chunks: Vec<Pages>,
    /// Addresses of freed large regions, kept inaccessible for a while.
    quarantine: VecDeque<Pages>,
    quarantined: u64,
    /// Freed regions that a kernel or a copy may still be accessing.
    limbo: Vec<RegionEntry>,
}

impl Heap {
    /// The slab chunk that starts at `base`.
    fn chunk(&mut self, base: u64) -> Option<&mut Pages> {
        self.chunks.iter_mut().find(|c| c.base() == base)
    }

    /// Releases the memory of a mapping and keeps its addresses inaccessible for a while.
    fn retire(&mut self, mut pages: Pages) {
        pages.retire();
        self.quarantined += pages.len();
        self.quarantine.push_back(pages);
        while self.quarantine.len() > QUARANTINE_MAPPINGS || self.quarantined > QUARANTINE_BYTES {
            let Some(oldest) = self.quarantine.pop_front() else {
                break;
            };
            self.quarantined -= oldest.len();
        }
    }
}

const CHUNK: u64 = 2 << 20;
/// Slot sizes 512 B, 1 KiB, ... 256 KiB.
const CLASSES: usize = 10;
const SMALLEST_SLOT: u64 = 512;
/// Minimum number of unowned bytes after every small region, so that neighbours are never adjacent.
const GUARD: u64 = 256;
const QUARANTINE_SLOTS: usize = 64;
const QUARANTINE_MAPPINGS: usize = 1024;
const QUARANTINE_BYTES: u64 = 1 << 42;
/// Accounting granularity: the minimum cost of an allocation in bytes.
const GRAIN: u64 = 512;
/// Minimum alignment (CUDA guarantees 256 bytes for `cuMemAlloc`).
const MIN_ALIGN: u64 = 256;

/// The table of live regions and its allocator. There is one per process ([`AddressSpace::global`]); tests create more.
pub struct AddressSpace {
    regions: RwLock<BTreeMap<u64, RegionEntry>>,
    /// Reservations by first address. Locked before `regions` and `heap`.
    reservations: Mutex<BTreeMap<u64, Reservation>>,
    heap: Mutex<Heap>,
    generation: AtomicU64,
    next_id: AtomicU64,
    used: AtomicU64,
    /// Number of pins, and [`shared::CLOSED`].
    pins: AtomicU64,
    /// Held while memory moves to a file. Locked before all others.
    sharing: Mutex<()>,
    capacity: u64,
    /// Allocation limit; smaller than the capacity if less memory was free at creation.
    budget: u64,
}

impl fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressSpace")
            .field("used", &self.used())
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl AddressSpace {
    /// Creates an empty space with a capacity in bytes.
    pub fn new(capacity: u64) -> Self {
        Self::with_budget(capacity, capacity)
    }

    fn with_budget(capacity: u64, budget: u64) -> Self {
        Self {
            regions: RwLock::new(BTreeMap::new()),
            reservations: Mutex::new(BTreeMap::new()),
            heap: Mutex::new(Heap::default()),
            generation: AtomicU64::new(1),
            next_id: AtomicU64::new(1),
            used: AtomicU64::new(0),
            pins: AtomicU64::new(0),
            sharing: Mutex::default(),
            capacity,
            budget,
        }
    }

    /// The process's address space. Its capacity is the machine's memory. Memory that was in use at creation, and a
    /// safety margin, cannot be allocated, so that device allocations never trigger the system's out-of-memory killer.
    pub fn global() -> &'static Arc<AddressSpace> {
        static SPACE: OnceLock<Arc<AddressSpace>> = OnceLock::new();
        SPACE.get_or_init(|| {
            let capacity = pages::physical_memory();
            let free = pages::available_memory();
            let budget = capacity.min(free - free / 16);
            Arc::new(AddressSpace::with_budget(capacity, budget))
        })
    }

    /// Total capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes in use, rounded up per allocation, including memory whose release is delayed.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that can still be allocated: the free capacity, or less if the machine is short of memory.
    pub fn available(&self) -> u64 {
        (self.budget.saturating_sub(self.used())).min(pages::available_memory())
    }

    /// Changes whenever a region is added or removed; a cached [`Region`] stays valid as long as this value does not
    /// change.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Allocates `size` bytes aligned to `align` (a power of two, rounded up to 256). The contents are unspecified.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] for a size of zero or an invalid alignment, [`MemoryError::OutOfMemory`] if the
    /// device has too little free memory.
    pub fn alloc(&self, size: u64, align: u64, kind: RegionKind) -> Result<u64, MemoryError> {
        self.alloc_owned(size, align, kind, 0, Reach::ALL)
            .map(|r| r.base)
    }

    /// [`Self::alloc`] with an owner id and the devices that may access it; returns the region.
    ///
    /// # Errors
    /// As [`Self::alloc`].
    pub fn alloc_owned(
        &self,
        size: u64,
        align: u64,
        kind: RegionKind,
        owner: u64,
        reach: Reach,
    ) -> Result<Region, MemoryError> {
        if size == 0 || !align.is_power_of_two() || align > 1 << 30 {
            return Err(MemoryError::InvalidRequest);
        }
        let align = align.max(MIN_ALIGN);
        if size > self.budget {
            return Err(MemoryError::OutOfMemory);
        }
        let cost = Self::cost(size);
        self.debit(cost)?;
        let made = self.back(size, align);
        let (base, backing) = match made {
            Ok(made) => made,
            Err(e) => {
                self.used.fetch_sub(cost, Ordering::SeqCst);
                return Err(e);
            }
        };
        let region = Region {
            base,
            size,
            kind,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            read_only: kind == RegionKind::Const,
            owner,
            reach,
        };
        self.insert(RegionEntry {
            region,
            backing,
            capacity: size,
        });
        Ok(region)
    }

    /// Makes `[base, base + size)` of the program's memory accessible to kernels.
    ///
    /// # Errors
    /// [`MemoryError::Overlap`] if part of the range is already known, [`MemoryError::NotMapped`] if part of it is
    /// inaccessible, [`MemoryError::InvalidRequest`] for an empty or wrapping range.
    pub fn register(
        &self,
        base: u64,
        size: u64,
        kind: RegionKind,
        read_only: bool,
        owner: u64,
    ) -> Result<Region, MemoryError> {
        if base == 0 || size == 0 || base.checked_add(size).is_none() || size > self.capacity {
            return Err(MemoryError::InvalidRequest);
        }
        if !checked::is_mapped(base, size, !read_only) {
            return Err(MemoryError::NotMapped);
        }
        let region = Region {
            base,
            size,
            kind,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            read_only,
            owner,
            reach: Reach::ALL,
        };
        let mut regions = self.regions.write();
        if let Some((_, below)) = regions.range(..base + size).next_back()
            && below.region.end() > base
        {
            return Err(MemoryError::Overlap);
        }
        regions.insert(
            base,
            RegionEntry {
                region,
                backing: Backing::Foreign,
                capacity: 0,
            },
        );
        self.generation.fetch_add(1, Ordering::Release);
        Ok(region)
    }

    /// Frees the region that starts at `addr`, of any kind. Its pages stay mapped as long as a pin is held.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no live region starts there.
    pub fn free(&self, addr: u64) -> Result<Region, MemoryError> {
        self.free_if(addr, |_| true)
    }

    /// Frees the region that starts at `addr` if `accept` returns true.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no live region starts there or `accept` returns false.
    pub fn free_if(
        &self,
        addr: u64,
        accept: impl FnOnce(&Region) -> bool,
    ) -> Result<Region, MemoryError> {
        let entry = {
            let mut regions = self.regions.write();
            match regions.get(&addr) {
                Some(e) if accept(&e.region) => {}
                _ => return Err(MemoryError::NotAllocated),
            }
            let Some(entry) = regions.remove(&addr) else {
                return Err(MemoryError::NotAllocated);
            };
            self.generation.fetch_add(1, Ordering::SeqCst);
            entry
        };
        let region = entry.region;
        self.heap.lock().limbo.push(entry);
        self.reclaim();
        Ok(region)
    }

    /// Frees and returns all regions of an owner.
    pub fn free_owned(&self, owner: u64) -> Vec<Region> {
        let mut removed = Vec::new();
        {
            let mut regions = self.regions.write();
            let doomed: Vec<u64> = regions
                .values()
                .filter(|e| e.region.owner == owner)
                .map(|e| e.region.base)
                .collect();
            let entries: Vec<RegionEntry> = doomed
                .iter()
                .filter_map(|base| regions.remove(base))
                .collect();
            removed.extend(entries.iter().map(|e| e.region));
            self.generation.fetch_add(1, Ordering::SeqCst);
            self.heap.lock().limbo.extend(entries);
        }
        self.reclaim();
        removed
    }

    /// Bytes in the device's own live regions whose owner `belongs` accepts, rounded up per allocation.
    pub fn used_by(&self, belongs: impl Fn(u64) -> bool) -> u64 {
        let regions = self.regions.read();
        regions
            .values()
            .map(|e| &e.region)
            .filter(|r| {
                !matches!(
                    r.kind,
                    RegionKind::Host | RegionKind::Registered | RegionKind::External
                ) && belongs(r.owner)
            })
            .map(|r| Self::cost(r.size))
            .sum()
    }

    /// The region that contains `addr`.
    pub fn find(&self, addr: u64) -> Option<Region> {
        let regions = self.regions.read();
        let (_, entry) = regions.range(..=addr).next_back()?;
        entry.region.contains(addr, 1).then_some(entry.region)
    }

    /// The region that contains `[addr, addr + len)`. For a range that spans adjacent mappings, a synthesised region
    /// with the access rights common to all of them.
    pub fn find_range(&self, addr: u64, len: u64) -> Option<Region> {
        let regions = self.regions.read();
        let (_, entry) = regions.range(..=addr).next_back()?;
        let mut whole = entry.region;
        if whole.kind == RegionKind::Virtual && whole.contains(addr, 1) {
            for (_, next) in regions.range(whole.end()..) {
                if whole.contains(addr, len)
                    || next.region.base != whole.end()
                    || next.region.kind != RegionKind::Virtual
                {
                    break;
                }
                whole.size += next.region.size;
                whole.reach = whole.reach.and(next.region.reach);
            }
        }
        whole.contains(addr, len).then_some(whole)
    }

    /// Changes which devices may access the region that starts at `base`; false if no region starts there.
    pub fn set_reach(&self, base: u64, reach: Reach) -> bool {
        let mut regions = self.regions.write();
        let Some(entry) = regions.get_mut(&base) else {
            return false;
        };
        entry.region.reach = reach;
        self.generation.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// The live region that contains `addr` or is the next one below it, and the next one above it.
    pub fn neighbours(&self, addr: u64) -> [Option<Region>; 2] {
        let regions = self.regions.read();
        let below = regions.range(..=addr).next_back().map(|(_, e)| e.region);
        let above = addr
            .checked_add(1)
            .and_then(|next| regions.range(next..).next())
            .map(|(_, e)| e.region);
        [below, above]
    }

    /// Keeps all currently mapped pages mapped until the guard is dropped. Held during direct accesses to regions:
    /// kernels, copies, fills.
    pub fn pin(&self) -> Pin<'_> {
        self.enter_gate();
        Pin { space: self }
    }

    /// Reserves `bytes` of memory outside the address space (an array's) from the available memory until the guard is
    /// dropped.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] if too little memory is available.
    pub fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, MemoryError> {
        if bytes > self.budget {
            return Err(MemoryError::OutOfMemory);
        }
        let cost = Self::cost(bytes);
        self.debit(cost)?;
        Ok(Charge {
            space: self.clone(),
            cost,
        })
    }

    fn cost(size: u64) -> u64 {
        size.div_ceil(GRAIN) * GRAIN
    }

    /// Adds `cost` bytes to the memory in use.
    fn debit(&self, cost: u64) -> Result<(), MemoryError> {
        if self.used().saturating_add(cost) > self.budget {
            self.reclaim();
        }
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
                used.checked_add(cost).filter(|&n| n <= self.budget)
            })
            .map(|_| ())
            .map_err(|_| MemoryError::OutOfMemory)
    }

    fn insert(&self, entry: RegionEntry) {
        let mut regions = self.regions.write();
        regions.insert(entry.region.base, entry);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Allocates backing: a slot for a small request, a mapping for a large one.
    fn back(&self, size: u64, align: u64) -> Result<(u64, Backing), MemoryError> {
        let slot = (size + GUARD)
            .max(align)
            .max(SMALLEST_SLOT)
            .next_power_of_two();
        let class = (slot / SMALLEST_SLOT).trailing_zeros() as usize;
        if class >= CLASSES {
            if size >= 64 << 20 && size > pages::available_memory() {
                return Err(MemoryError::OutOfMemory);
            }
            let mapping = Pages::map(size, align).ok_or(MemoryError::OutOfMemory)?;
            return Ok((mapping.base(), Backing::Mapping(mapping)));
        }
        let mut heap = self.heap.lock();
        let slab = &mut heap.slabs[class];
        if slab.free.len() > QUARANTINE_SLOTS
            && let Some(addr) = slab.free.pop_front()
        {
            return Ok((addr, Backing::Slot(class as u8)));
        }
        if slab.bump == slab.bump_end {
            let Some(chunk) = Pages::map(CHUNK, CHUNK) else {
                // No address space for a new chunk: reuses a quarantined slot.
                let addr = slab.free.pop_front().ok_or(MemoryError::OutOfMemory)?;
                return Ok((addr, Backing::Slot(class as u8)));
            };
            slab.bump = chunk.base();
            slab.bump_end = chunk.base() + CHUNK;
            heap.chunks.push(chunk);
        }
        let slab = &mut heap.slabs[class];
        let addr = slab.bump;
        slab.bump += slot;
        Ok((addr, Backing::Slot(class as u8)))
    }

    /// Releases freed memory if nothing is pinned. Limbo entries have already left the table, so a pin taken after the
    /// check below cannot refer to them.
    fn reclaim(&self) {
        let mut heap = self.heap.lock();
        if heap.limbo.is_empty() || self.pins.load(Ordering::SeqCst) != 0 {
            return;
        }
        for entry in std::mem::take(&mut heap.limbo) {
            match entry.backing {
                Backing::Foreign => continue,
                Backing::Slot(class) => heap.slabs[usize::from(class)]
                    .free
                    .push_back(entry.region.base),
                Backing::Mapping(pages) => heap.retire(pages),
                // The physical memory carries the cost; addresses are free.
                Backing::Window(_) => {
                    pages::close_window(entry.region.base, entry.region.size);
                    continue;
                }
                Backing::Reserved(pages) => {
                    heap.retire(pages);
                    continue;
                }
                // The file carries the cost; its block is freed.
                Backing::File(pages, block) => {
                    heap.retire(pages);
                    drop(block);
                    continue;
                }
            }
            self.used
                .fetch_sub(Self::cost(entry.capacity), Ordering::SeqCst);
        }
    }
}

/// See [`AddressSpace::charge`].
pub struct Charge {
    space: Arc<AddressSpace>,
    cost: u64,
}

impl Charge {
    /// Bytes charged.
    pub fn bytes(&self) -> u64 {
        self.cost
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.space.used.fetch_sub(self.cost, Ordering::SeqCst);
    }
}

/// See [`AddressSpace::pin`].
#[derive(Debug)]
pub struct Pin<'a> {
    space: &'a AddressSpace,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if self.space.pins.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.space.reclaim();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_found_exactly_and_never_touch() {
        let s = AddressSpace::new(1 << 30);
        let a = s.alloc(100, 1, RegionKind::Device).unwrap();
        let b = s.alloc(300_000, 4096, RegionKind::Device).unwrap();
        let c = s.alloc(3 << 20, 512, RegionKind::Host).unwrap();
        assert_eq!((a % 256, b % 4096, c % 512), (0, 0, 0));
        assert!(s.find_range(a, 100).is_some());
        assert!(s.find_range(a, 101).is_none());
        assert!(s.find(a + 100).is_none());
        assert!(s.find(a.wrapping_sub(1)).is_none());
        assert!(s.find_range(c, 3 << 20).is_some());
        assert!(s.find_range(c + 1, 3 << 20).is_none());
        assert!(s.find_range(c, u64::MAX).is_none());
        assert!(s.find(u64::MAX).is_none());
        for (addr, n) in [(a, 100usize), (b, 300_000), (c, 3 << 20)] {
            // SAFETY: the region was just allocated with that size.
            unsafe { std::ptr::write_bytes(addr as *mut u8, 0xA5, n) };
        }
        let used = s.used();
        assert!(used >= 100 + 300_000 + (3 << 20));
        for addr in [a, b, c] {
            s.free(addr).unwrap();
            assert_eq!(s.free(addr), Err(MemoryError::NotAllocated));
            assert!(s.find(addr).is_none());
        }
        assert_eq!(s.used(), 0);
    }

    #[test]
    fn freed_addresses_are_not_reused_immediately() {
        let s = AddressSpace::new(1 << 30);
        for size in [64, 5 << 20] {
            let mut seen = std::collections::HashSet::new();
            for _ in 0..40 {
                let a = s.alloc(size, 256, RegionKind::Device).unwrap();
                assert!(seen.insert(a));
                s.free(a).unwrap();
            }
        }
    }

    #[test]
    fn limits_are_enforced() {
        let s = AddressSpace::new(1 << 20);
        assert_eq!(
            s.alloc(0, 1, RegionKind::Device),
            Err(MemoryError::InvalidRequest)
        );
        assert_eq!(
            s.alloc(8, 3, RegionKind::Device),
            Err(MemoryError::InvalidRequest)
        );
        assert_eq!(
            s.alloc(u64::MAX, 1, RegionKind::Device),
            Err(MemoryError::OutOfMemory)
        );
        let a = s.alloc(1 << 20, 1, RegionKind::Device).unwrap();
        assert_eq!(
            s.alloc(1, 1, RegionKind::Device),
            Err(MemoryError::OutOfMemory)
        );
        s.free(a).unwrap();
        s.alloc(1, 1, RegionKind::Device).unwrap();
    }

    #[test]
    fn pinned_pages_outlive_their_region() {
        let s = AddressSpace::new(1 << 30);
        let a = s.alloc(8 << 20, 256, RegionKind::Device).unwrap();
        let g = s.generation();
        let pin = s.pin();
        s.free(a).unwrap();
        assert_ne!(s.generation(), g);
        assert!(s.find(a).is_none());
        // SAFETY: the pin keeps the freed pages mapped.
        unsafe { (a as *mut u8).write_volatile(1) };
        assert_ne!(s.used(), 0);
        drop(pin);
        assert_eq!(s.used(), 0);
        assert!(!checked::is_mapped(a, 1, false));
    }

    #[test]
    fn registered_memory() {
        let s = AddressSpace::new(1 << 30);
        let v = vec![0u8; 10_000];
        let p = v.as_ptr() as u64;
        assert_eq!(
            s.register(p, 10_000, RegionKind::Registered, false, 0)
                .unwrap()
                .kind,
            RegionKind::Registered
        );
        assert_eq!(
            s.register(p + 50, 10, RegionKind::Registered, false, 0),
            Err(MemoryError::Overlap)
        );
        assert_eq!(
            s.register(16, 10, RegionKind::Registered, false, 0),
            Err(MemoryError::NotMapped)
        );
        assert_eq!(s.free(p + 1), Err(MemoryError::NotAllocated));
        s.free(p).unwrap();
        assert_eq!(v[0], 0);
    }

    #[test]
    fn many_threads() {
        let s = Arc::new(AddressSpace::new(1 << 30));
        let threads: Vec<_> = (0..4u64)
            .map(|t| {
                let s = s.clone();
                std::thread::spawn(move || {
                    for i in 0..500 {
                        let _pin = s.pin();
                        let a = s
                            .alloc(1 + (i * 37 + t) % 600_000, 256, RegionKind::Device)
                            .unwrap();
                        assert!(s.find(a).is_some());
                        s.free(a).unwrap();
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(s.used(), 0);
    }
}

//! Device memory: one address space for the process, in which device pointers are host addresses.
//!
//! Belongs here: allocation, the table of live regions that every access of a kernel is checked against, and checked
//! copies from and to memory that is not ours. Does not belong here: contexts, streams, error codes.
//!
//! Three rules keep a wrong program from becoming a crash:
//! * an address is touched directly only if a [`Region`] covers it and an [`AddressSpace::pin`] is held, which delays
//!   the release of freed pages;
//! * a freed address is not handed out again at once, so that a stale pointer is found out;
//! * everything else goes through [`checked`], where the kernel of the operating system does the access and says no.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

pub(crate) mod files;
pub(crate) mod pages;
mod parking;
mod reach;
mod shared;
mod virtual_memory;

pub use cupyrite_sys::checked;
use pages::Pages;
pub use parking::Parked;
pub use reach::{Access, Reach, Viewer};
pub(crate) use shared::SHARED_NAME;
pub use shared::{Arena, SharedRange};
use virtual_memory::Reservation;
pub use virtual_memory::{Mapping, Physical};

/// What a region was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `cuMemAlloc` and its relatives.
    Device,
    /// Page-locked host memory: `cuMemAllocHost`, `cuMemHostAlloc`.
    Host,
    /// `cuMemAllocManaged`.
    Managed,
    /// A module's `.global` variables.
    Global,
    /// A module's `.const` variables: kernels may not write them, the host may.
    Const,
    /// The caller's own memory, announced with `cuMemHostRegister`.
    Registered,
    /// Physical memory mapped at a reserved address: `cuMemMap`.
    Virtual,
    /// Memory of the device's own that kernels may reach (heaps, parameter banks).
    Internal,
}

/// A live range of device-accessible memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Length in bytes, exactly as asked for.
    pub size: u64,
    /// What it was made for.
    pub kind: Kind,
    /// Unique over the life of the process (`CU_POINTER_ATTRIBUTE_BUFFER_ID`).
    pub id: u64,
    /// Whether a store by a kernel is a fault.
    pub read_only: bool,
    /// A number of the allocator's caller (the driver stores the owning context's id; zero otherwise).
    pub owner: u64,
    /// Which devices' kernels may load from it and store to it.
    pub reach: Reach,
}

impl Region {
    /// Address just past the last byte.
    pub const fn end(&self) -> u64 {
        self.base + self.size
    }
    /// Whether `[addr, addr + len)` lies within.
    pub const fn contains(&self, addr: u64, len: u64) -> bool {
        addr >= self.base && len <= self.size && addr - self.base <= self.size - len
    }
}

/// Why an allocation or a release was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// More than the device has left.
    OutOfMemory,
    /// A size of zero or an alignment that is not a power of two.
    InvalidRequest,
    /// Not the first address of a live region of that sort.
    NotAllocated,
    /// The range overlaps a live region (only for [`AddressSpace::register`]).
    Overlap,
    /// The range is not mapped (only for [`AddressSpace::register`] and for virtual memory).
    NotMapped,
    /// The operating system refused (only for memory that another process shares).
    System,
    /// Kernels or copies are touching memory all the time (only for [`AddressSpace::share`]).
    Busy,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "not enough device memory left",
            Self::InvalidRequest => "size or alignment is not valid",
            Self::NotAllocated => "not the start of a live allocation",
            Self::Overlap => "the range overlaps another registered or allocated range",
            Self::NotMapped => "the range is not mapped",
            Self::System => "the operating system refused",
            Self::Busy => "the device is busy",
        })
    }
}

impl std::error::Error for MemoryError {}

/// How a region's bytes are backed.
enum Backing {
    /// A slot of a slab, by class.
    Slot(u8),
    /// A mapping of its own.
    Mapping(Pages),
    /// Not ours.
    Foreign,
    /// Physical memory at a reserved address, which the reservation owns.
    Window(Arc<Physical>),
    /// A reservation of addresses.
    Reserved(Pages),
    /// A part of a file, and what gives it back; nothing where another process made it.
    File(Pages, Option<Box<shared::Block>>),
}

struct Entry {
    region: Region,
    backing: Backing,
    /// Bytes it was allocated with: the region may be smaller if it was handed out again.
    capacity: u64,
}

/// Slots of one size, cut from chunks of [`CHUNK`] bytes.
#[derive(Default)]
struct Slab {
    /// Freed slots, oldest first; reused only when more than [`QUARANTINE_SLOTS`] wait.
    free: VecDeque<u64>,
    /// Unused rest of the newest chunk.
    bump: u64,
    bump_end: u64,
}

#[derive(Default)]
struct Heap {
    slabs: [Slab; CLASSES],
    /// Chunks are never unmapped: they are part of the process's device memory from then on.
    chunks: Vec<Pages>,
    /// Addresses of freed large regions, kept unusable for a while.
    quarantine: VecDeque<Pages>,
    quarantined: u64,
    /// Freed, but a kernel or a copy may still be touching it.
    limbo: Vec<Entry>,
}

impl Heap {
    /// The chunk of slots that begins there.
    fn chunk(&mut self, base: u64) -> Option<&mut Pages> {
        self.chunks.iter_mut().find(|c| c.base() == base)
    }

    /// Gives the memory of a mapping back and keeps its addresses unusable for a while.
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
/// At least this many unowned bytes follow every small region, so that neighbours never touch.
const GUARD: u64 = 256;
const QUARANTINE_SLOTS: usize = 64;
const QUARANTINE_MAPPINGS: usize = 1024;
const QUARANTINE_BYTES: u64 = 1 << 42;
/// Accounting granularity: what a small allocation costs at least.
const GRAIN: u64 = 512;
/// Smallest alignment handed out (CUDA promises 256 for `cuMemAlloc`).
const MIN_ALIGN: u64 = 256;

/// The table of live regions and the allocator behind it. One per process ([`AddressSpace::global`]); tests may make more.
pub struct AddressSpace {
    regions: RwLock<BTreeMap<u64, Entry>>,
    /// Reserved addresses by their first one. Locked before `regions` and `heap`.
    reservations: Mutex<BTreeMap<u64, Reservation>>,
    heap: Mutex<Heap>,
    generation: AtomicU64,
    next_id: AtomicU64,
    used: AtomicU64,
    /// Those who touch memory now, and [`shared::CLOSED`].
    pins: AtomicU64,
    /// Held while memory becomes a file's. Locked before all others.
    sharing: Mutex<()>,
    capacity: u64,
    /// What may be allocated in all: less than the capacity if the machine had not that much to give.
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
    /// An empty space that may hold `capacity` bytes.
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

    /// The space of the process. Its capacity is the machine's memory; what was in use when it was made, and a margin,
    /// cannot be allocated, so that the system never has to kill a process for what a program puts on the device.
    pub fn global() -> &'static Arc<AddressSpace> {
        static SPACE: OnceLock<Arc<AddressSpace>> = OnceLock::new();
        SPACE.get_or_init(|| {
            let capacity = pages::physical_memory();
            let free = pages::available_memory();
            let budget = capacity.min(free - free / 16);
            Arc::new(AddressSpace::with_budget(capacity, budget))
        })
    }

    /// Bytes this space may hold in all.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes in use (rounded up per allocation), memory on its way out included.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that can still be allocated: what the capacity leaves, or less if the machine itself is short.
    pub fn available(&self) -> u64 {
        (self.budget.saturating_sub(self.used())).min(pages::available_memory())
    }

    /// Changes whenever a region appears or disappears; a cached [`Region`] is good as long as it stays the same.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Allocates `size` bytes aligned to `align` (a power of two; at least 256 is given). The contents are unspecified.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] for a size of zero or a bad alignment, [`MemoryError::OutOfMemory`] if the
    /// device has not that much left.
    pub fn alloc(&self, size: u64, align: u64, kind: Kind) -> Result<u64, MemoryError> {
        self.alloc_owned(size, align, kind, 0, Reach::ALL)
            .map(|r| r.base)
    }

    /// [`Self::alloc`] with an owner to remember and the devices that may use it; returns the whole region.
    ///
    /// # Errors
    /// As [`Self::alloc`].
    pub fn alloc_owned(
        &self,
        size: u64,
        align: u64,
        kind: Kind,
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
            read_only: kind == Kind::Const,
            owner,
            reach,
        };
        self.insert(Entry {
            region,
            backing,
            capacity: size,
        });
        Ok(region)
    }

    /// Announces `[base, base + size)` of the caller's own memory as accessible to kernels.
    ///
    /// # Errors
    /// [`MemoryError::Overlap`] if part of it is known already, [`MemoryError::NotMapped`] if part of it cannot be
    /// accessed, [`MemoryError::InvalidRequest`] for an empty or wrapping range.
    pub fn register(
        &self,
        base: u64,
        size: u64,
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
            kind: Kind::Registered,
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
            Entry {
                region,
                backing: Backing::Foreign,
                capacity: 0,
            },
        );
        self.generation.fetch_add(1, Ordering::Release);
        Ok(region)
    }

    /// Frees the region that begins at `addr`, whatever its kind. The pages stay mapped as long as a pin is held.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no live region begins there.
    pub fn free(&self, addr: u64) -> Result<Region, MemoryError> {
        self.free_if(addr, |_| true)
    }

    /// Frees the region that begins at `addr` if `accept` agrees to it.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no live region begins there or `accept` refuses it.
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

    /// Frees every region of that owner and says which they were.
    pub fn free_owned(&self, owner: u64) -> Vec<Region> {
        let mut gone = Vec::new();
        {
            let mut regions = self.regions.write();
            let doomed: Vec<u64> = regions
                .values()
                .filter(|e| e.region.owner == owner)
                .map(|e| e.region.base)
                .collect();
            let entries: Vec<Entry> = doomed
                .iter()
                .filter_map(|base| regions.remove(base))
                .collect();
            gone.extend(entries.iter().map(|e| e.region));
            self.generation.fetch_add(1, Ordering::SeqCst);
            self.heap.lock().limbo.extend(entries);
        }
        self.reclaim();
        gone
    }

    /// Bytes in the live regions of the device's own memory whose owner `belongs` accepts (rounded up per allocation).
    pub fn used_by(&self, belongs: impl Fn(u64) -> bool) -> u64 {
        let regions = self.regions.read();
        regions
            .values()
            .map(|e| &e.region)
            .filter(|r| !matches!(r.kind, Kind::Host | Kind::Registered) && belongs(r.owner))
            .map(|r| Self::cost(r.size))
            .sum()
    }

    /// The region that holds `addr`.
    pub fn find(&self, addr: u64) -> Option<Region> {
        let regions = self.regions.read();
        let (_, entry) = regions.range(..=addr).next_back()?;
        entry.region.contains(addr, 1).then_some(entry.region)
    }

    /// The region that holds all of `[addr, addr + len)`. For a range over several mappings that touch each other it is
    /// one made of them, with the rights that all of them give.
    pub fn find_range(&self, addr: u64, len: u64) -> Option<Region> {
        let regions = self.regions.read();
        let (_, entry) = regions.range(..=addr).next_back()?;
        let mut whole = entry.region;
        if whole.kind == Kind::Virtual && whole.contains(addr, 1) {
            for (_, next) in regions.range(whole.end()..) {
                if whole.contains(addr, len)
                    || next.region.base != whole.end()
                    || next.region.kind != Kind::Virtual
                {
                    break;
                }
                whole.size += next.region.size;
                whole.reach = whole.reach.and(next.region.reach);
            }
        }
        whole.contains(addr, len).then_some(whole)
    }

    /// Changes which devices may use the region that begins at `base`; false if there is none.
    pub fn set_reach(&self, base: u64, reach: Reach) -> bool {
        let mut regions = self.regions.write();
        let Some(entry) = regions.get_mut(&base) else {
            return false;
        };
        entry.region.reach = reach;
        self.generation.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// The live region nearest to `addr` (for fault reports): it, or how far away the next one is.
    pub fn nearest(&self, addr: u64) -> Option<Region> {
        let regions = self.regions.read();
        let below = regions.range(..=addr).next_back().map(|(_, e)| e.region);
        let above = regions.range(addr..).next().map(|(_, e)| e.region);
        match (below, above) {
            (Some(b), Some(a)) => Some(if addr.saturating_sub(b.end()) <= a.base - addr {
                b
            } else {
                a
            }),
            (b, a) => b.or(a),
        }
    }

    /// Keeps every page that is mapped now mapped until the guard is dropped. Held around anything that touches regions
    /// directly: a kernel's run, a copy, a set.
    pub fn pin(&self) -> Pin<'_> {
        self.enter_gate();
        Pin { space: self }
    }

    /// Takes `bytes` of memory that lies outside the address space (an array's) off what is available, until the guard is
    /// dropped.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] if there is not that much left.
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

    /// Puts `cost` bytes on the account.
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

    fn insert(&self, entry: Entry) {
        let mut regions = self.regions.write();
        regions.insert(entry.region.base, entry);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Finds bytes: a slot for small requests, a mapping for large ones.
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
                // No address space for a new chunk: the quarantine is all that is left.
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

    /// Releases what was freed, if nothing is pinned. Entries in limbo left the table before they came here, so a pin
    /// taken after the check below cannot have found them.
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
                // What they cost is the physical memory's account, and addresses cost nothing.
                Backing::Window(_) => {
                    pages::close_window(entry.region.base, entry.region.size);
                    continue;
                }
                Backing::Reserved(pages) => {
                    heap.retire(pages);
                    continue;
                }
                // The file keeps the account, and is given its part back.
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
        let a = s.alloc(100, 1, Kind::Device).unwrap();
        let b = s.alloc(300_000, 4096, Kind::Device).unwrap();
        let c = s.alloc(3 << 20, 512, Kind::Host).unwrap();
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
            // SAFETY: the region was just allocated with that many bytes.
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
    fn a_freed_address_does_not_come_back_at_once() {
        let s = AddressSpace::new(1 << 30);
        for size in [64, 5 << 20] {
            let mut seen = std::collections::HashSet::new();
            for _ in 0..40 {
                let a = s.alloc(size, 256, Kind::Device).unwrap();
                assert!(seen.insert(a));
                s.free(a).unwrap();
            }
        }
    }

    #[test]
    fn limits_hold() {
        let s = AddressSpace::new(1 << 20);
        assert_eq!(
            s.alloc(0, 1, Kind::Device),
            Err(MemoryError::InvalidRequest)
        );
        assert_eq!(
            s.alloc(8, 3, Kind::Device),
            Err(MemoryError::InvalidRequest)
        );
        assert_eq!(
            s.alloc(u64::MAX, 1, Kind::Device),
            Err(MemoryError::OutOfMemory)
        );
        let a = s.alloc(1 << 20, 1, Kind::Device).unwrap();
        assert_eq!(s.alloc(1, 1, Kind::Device), Err(MemoryError::OutOfMemory));
        s.free(a).unwrap();
        s.alloc(1, 1, Kind::Device).unwrap();
    }

    #[test]
    fn pinned_pages_outlive_their_region() {
        let s = AddressSpace::new(1 << 30);
        let a = s.alloc(8 << 20, 256, Kind::Device).unwrap();
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
            s.register(p, 10_000, false, 0).unwrap().kind,
            Kind::Registered
        );
        assert_eq!(s.register(p + 50, 10, false, 0), Err(MemoryError::Overlap));
        assert_eq!(s.register(16, 10, false, 0), Err(MemoryError::NotMapped));
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
                            .alloc(1 + (i * 37 + t) % 600_000, 256, Kind::Device)
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

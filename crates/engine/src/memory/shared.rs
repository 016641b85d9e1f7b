//! Memory shared with other processes: allocations within a file, mappings of another process's file, and existing
//! memory that moves to a file when it is shared.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::files;
use super::pages::{self, Pages};
use super::{
    AddressSpace, Backing, CHUNK, Charge, MemoryError, Reach, Region, RegionEntry, RegionKind,
};

const PAGE: u64 = 4096;
/// Prefix of the names of files for memory that was shared after its allocation.
pub const SHARED_NAME: &str = "cupyrite-shared-";

/// A file from which memory is allocated, in units of pages.
pub struct Arena {
    space: Arc<AddressSpace>,
    file: OwnedFd,
    /// Free ranges: offset to length. Adjacent ranges are merged.
    free: Mutex<BTreeMap<u64, u64>>,
}

impl Arena {
    /// Creates a file of that name. Its first `head` bytes, a multiple of a page, belong to the caller; the rest, sized
    /// after the space, is for allocations. Only written parts of a file occupy memory.
    ///
    /// # Errors
    /// [`MemoryError::System`] if the file cannot be created.
    pub fn create(
        space: &Arc<AddressSpace>,
        name: &str,
        head: u64,
    ) -> Result<Arc<Arena>, MemoryError> {
        // Several times the space, to allow for fragmentation.
        let body = (space.capacity().next_multiple_of(PAGE))
            .checked_mul(4)
            .filter(|n| i64::try_from(n.saturating_add(head)).is_ok())
            .ok_or(MemoryError::System)?;
        let file = files::create(name, head + body).ok_or(MemoryError::System)?;
        Ok(Arc::new(Arena {
            space: space.clone(),
            file,
            free: Mutex::new(BTreeMap::from([(head, body)])),
        }))
    }

    /// The file.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    fn take(&self, len: u64) -> Option<u64> {
        let mut free = self.free.lock();
        let (offset, room) = free
            .iter()
            .find(|(_, room)| **room >= len)
            .map(|(&o, &r)| (o, r))?;
        free.remove(&offset);
        if room > len {
            free.insert(offset + len, room - len);
        }
        Some(offset)
    }

    fn free_range(&self, mut offset: u64, mut len: u64) {
        files::punch(&self.file, offset, len);
        let mut free = self.free.lock();
        if let Some((&before, &room)) = free.range(..offset).next_back()
            && before + room == offset
        {
            free.remove(&before);
            (offset, len) = (before, len + room);
        }
        if let Some(room) = free.remove(&(offset + len)) {
            len += room;
        }
        free.insert(offset, len);
    }
}

/// A range of an [`Arena`], freed on drop.
pub(super) struct Block {
    arena: Arc<Arena>,
    offset: u64,
    len: u64,
    _charge: Charge,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.arena.free_range(self.offset, self.len);
    }
}

/// The location of shareable memory: a file and an offset.
#[derive(Clone)]
pub struct SharedRange {
    /// The file, open as long as this value lives.
    pub file: Arc<OwnedFd>,
    /// Offset of the memory in the file.
    pub offset: u64,
}

/// Flag in [`AddressSpace::pins`]: no new access may begin.
pub(super) const CLOSED: u64 = 1 << 63;
/// Maximum time to wait until no access is in progress.
const SHARE_TIMEOUT: Duration = Duration::from_secs(10);

impl AddressSpace {
    /// Allocates memory within a file.
    ///
    /// # Errors
    /// As [`AddressSpace::alloc_owned`].
    pub fn alloc_in(
        &self,
        arena: &Arc<Arena>,
        size: u64,
        kind: RegionKind,
        owner: u64,
        reach: Reach,
    ) -> Result<Region, MemoryError> {
        if size == 0 {
            return Err(MemoryError::InvalidRequest);
        }
        let len = size
            .checked_next_multiple_of(PAGE)
            .ok_or(MemoryError::OutOfMemory)?;
        if len >= 64 << 20 && len > pages::available_memory() {
            return Err(MemoryError::OutOfMemory);
        }
        let charge = arena.space.charge(len)?;
        let offset = arena.take(len).ok_or(MemoryError::OutOfMemory)?;
        let block = Box::new(Block {
            arena: arena.clone(),
            offset,
            len,
            _charge: charge,
        });
        self.open(
            arena.file.as_raw_fd(),
            offset,
            size,
            kind,
            owner,
            reach,
            Some(block),
        )
    }

    /// Maps memory of another process's file.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] if the mapping fails.
    #[allow(clippy::too_many_arguments)]
    pub fn map_foreign(
        &self,
        file: &OwnedFd,
        offset: u64,
        size: u64,
        kind: RegionKind,
        owner: u64,
        reach: Reach,
    ) -> Result<Region, MemoryError> {
        self.open(file.as_raw_fd(), offset, size, kind, owner, reach, None)
    }

    #[allow(clippy::too_many_arguments)]
    fn open(
        &self,
        file: i32,
        offset: u64,
        size: u64,
        kind: RegionKind,
        owner: u64,
        reach: Reach,
        block: Option<Box<Block>>,
    ) -> Result<Region, MemoryError> {
        // The memory of slots is not page-aligned.
        let skip = offset % PAGE;
        let len = skip
            .checked_add(size)
            .and_then(|n| n.checked_next_multiple_of(PAGE))
            .filter(|_| size > 0)
            .ok_or(MemoryError::InvalidRequest)?;
        let window = Pages::reserve(len, PAGE).ok_or(MemoryError::OutOfMemory)?;
        if !pages::open_window(window.base(), len, file, offset - skip) {
            return Err(MemoryError::OutOfMemory);
        }
        let region = Region {
            base: window.base() + skip,
            size,
            kind,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            read_only: false,
            owner,
            reach,
        };
        self.insert(RegionEntry {
            region,
            backing: Backing::File(window, block),
            capacity: size,
        });
        Ok(region)
    }

    /// The file offset of an allocation made by [`AddressSpace::alloc_in`].
    pub fn offset_in(&self, arena: &Arc<Arena>, base: u64) -> Option<u64> {
        let regions = self.regions.read();
        match &regions.get(&base)?.backing {
            Backing::File(_, Some(block)) if Arc::ptr_eq(&block.arena, arena) => Some(block.offset),
            _ => None,
        }
    }

    /// Moves the memory of the region that starts at `base` to a file, at the same address, so that another process can
    /// map it. Regions on the same pages move along. Waits until no access is in progress.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no region of this process's own memory starts there, [`MemoryError::Busy`] if
    /// accesses never cease, [`MemoryError::System`] if a system call fails.
    pub fn share(&self, base: u64) -> Result<SharedRange, MemoryError> {
        // One at a time, so that no memory moves twice.
        let _exclusive = self.sharing.lock();
        let (id, start, len, known) = {
            let regions = self.regions.read();
            let entry = regions.get(&base).ok_or(MemoryError::NotAllocated)?;
            let (start, len, known) = match &entry.backing {
                Backing::Slot(_) => {
                    let start = base & !(CHUNK - 1);
                    let known = self.heap.lock().chunk(start).and_then(|c| c.file.clone());
                    (start, CHUNK, known)
                }
                Backing::Mapping(pages) => {
                    let len = entry.capacity.next_multiple_of(PAGE);
                    (pages.base(), len, pages.file.clone())
                }
                _ => return Err(MemoryError::NotAllocated),
            };
            (entry.region.id, start, len, known)
        };
        let offset = base - start;
        if let Some(file) = known {
            return Ok(SharedRange { file, offset });
        }
        let file =
            files::create(&format!("{SHARED_NAME}{start:x}"), len).ok_or(MemoryError::System)?;
        self.close_gate()?;
        let moved = self.move_to_file(base, id, start, len, Arc::new(file));
        self.open_gate();
        moved.map(|file| SharedRange { file, offset })
    }

    /// Moves the memory while the gate is closed: memory freed in the meantime is released after the gate opens.
    fn move_to_file(
        &self,
        base: u64,
        id: u64,
        start: u64,
        len: u64,
        file: Arc<OwnedFd>,
    ) -> Result<Arc<OwnedFd>, MemoryError> {
        let mut regions = self.regions.write();
        // The region may have been freed, and its address reused, during the wait.
        let entry = regions
            .get_mut(&base)
            .filter(|e| e.region.id == id)
            .ok_or(MemoryError::NotAllocated)?;
        let mut heap = self.heap.lock();
        let pages = match &mut entry.backing {
            Backing::Mapping(pages) => pages,
            _ => heap.chunk(start).ok_or(MemoryError::NotAllocated)?,
        };
        // SAFETY: the range is a mapping of this space that a live region keeps, and it does not change because the
        // gate is closed.
        let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, len as usize) };
        if !copy_to_file(&file, bytes) || !pages::open_window(start, len, file.as_raw_fd(), 0) {
            return Err(MemoryError::System);
        }
        pages.file = Some(file.clone());
        Ok(file)
    }

    /// Blocks new accesses and waits until none is in progress.
    pub(super) fn close_gate(&self) -> Result<(), MemoryError> {
        let start = Instant::now();
        loop {
            let closed = self
                .pins
                .compare_exchange(0, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
            if closed.is_ok() {
                return Ok(());
            }
            if start.elapsed() > SHARE_TIMEOUT {
                return Err(MemoryError::Busy);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    pub(super) fn open_gate(&self) {
        self.pins.fetch_sub(CLOSED, Ordering::SeqCst);
        // Memory freed in the meantime could not be released.
        self.reclaim();
    }

    /// Registers an access once the gate is open.
    pub(super) fn enter_gate(&self) {
        while self.pins.fetch_add(1, Ordering::SeqCst) & CLOSED != 0 {
            self.pins.fetch_sub(1, Ordering::SeqCst);
            // The gate is closed only while memory is copied.
            while self.pins.load(Ordering::SeqCst) & CLOSED != 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
}

/// Writes memory to the start of a file; zero blocks are skipped, so that they occupy no memory.
fn copy_to_file(file: &OwnedFd, bytes: &[u8]) -> bool {
    const STEP: usize = 64 << 10;
    bytes.chunks(STEP).enumerate().all(|(i, part)| {
        part.iter().all(|&b| b == 0) || files::write(file, (i * STEP) as u64, part)
    })
}

#[cfg(test)]
mod tests {
    use super::super::checked;
    use super::*;

    fn space() -> Arc<AddressSpace> {
        Arc::new(AddressSpace::new(1 << 30))
    }

    fn get(addr: u64) -> u64 {
        // SAFETY: any eight bytes are a valid integer.
        unsafe { checked::read(addr) }.unwrap()
    }

    #[test]
    fn file_memory_is_visible_to_every_mapping() {
        let s = space();
        let arena = Arena::create(&s, "cupyrite-test", PAGE).unwrap();
        let a = s
            .alloc_in(&arena, 5000, RegionKind::Device, 1, Reach::ALL)
            .unwrap();
        let b = s
            .alloc_in(&arena, 100, RegionKind::Device, 1, Reach::ALL)
            .unwrap();
        assert_eq!((a.size, s.used()), (5000, 3 * PAGE));
        assert_eq!(s.offset_in(&arena, a.base), Some(PAGE));
        assert_eq!(s.offset_in(&arena, b.base), Some(3 * PAGE));
        assert!(s.find_range(a.base, 5000).is_some() && s.find_range(a.base, 5001).is_none());
        checked::write(a.base + 4096, &7u64).unwrap();
        let theirs = space();
        let window = theirs
            .map_foreign(
                arena.file(),
                PAGE,
                5000,
                RegionKind::Device,
                2,
                Reach::of(1),
            )
            .unwrap();
        assert_eq!(theirs.used(), 0);
        assert_eq!(get(window.base + 4096), 7);
        checked::write(window.base, &8u64).unwrap();
        assert_eq!(get(a.base), 8);
        // Freed memory is unmapped here, reads as zeros there, and its range is reused.
        s.free(a.base).unwrap();
        assert_eq!(s.used(), PAGE);
        assert!(!checked::is_mapped(a.base, 8, false));
        assert_eq!(get(window.base), 0);
        let c = s
            .alloc_in(&arena, 4096, RegionKind::Device, 1, Reach::ALL)
            .unwrap();
        assert_eq!(s.offset_in(&arena, c.base), Some(PAGE));
        theirs.free(window.base).unwrap();
        for r in [b, c] {
            s.free(r.base).unwrap();
        }
        assert_eq!(arena.free.lock().len(), 1);
        assert_eq!(s.used(), 0);
    }

    #[test]
    fn shared_memory_keeps_its_address() {
        let s = space();
        for size in [1000, 3 << 20] {
            let a = s.alloc(size, 256, RegionKind::Device).unwrap();
            let neighbour = s.alloc(size, 256, RegionKind::Device).unwrap();
            checked::write(a + size - 8, &1u64).unwrap();
            checked::write(neighbour, &2u64).unwrap();
            let shared = s.share(a).unwrap();
            let again = s.share(a).unwrap();
            assert_eq!(
                (again.offset, Arc::as_ptr(&again.file)),
                (shared.offset, Arc::as_ptr(&shared.file))
            );
            assert_eq!((get(a + size - 8), get(neighbour)), (1, 2));
            let theirs = space();
            let window = theirs
                .map_foreign(
                    &shared.file,
                    shared.offset,
                    size,
                    RegionKind::Device,
                    0,
                    Reach::ALL,
                )
                .unwrap();
            assert_eq!(get(window.base + size - 8), 1);
            checked::write(a, &3u64).unwrap();
            assert_eq!(get(window.base), 3);
            checked::write(window.base, &4u64).unwrap();
            assert_eq!(get(a), 4);
            assert_eq!(s.share(a + 8).err(), Some(MemoryError::NotAllocated));
            assert_eq!(
                theirs.share(window.base).err(),
                Some(MemoryError::NotAllocated)
            );
            for at in [a, neighbour] {
                s.free(at).unwrap();
            }
        }
        assert_eq!(s.used(), 0);
        // Slab chunks stay backed by the file.
        let chunks = &s.heap.lock().chunks;
        assert_eq!(chunks.iter().filter(|c| c.file.is_some()).count(), 1);
    }

    #[test]
    fn sharing_waits_for_accesses() {
        let s = space();
        let a = s.alloc(1 << 20, 256, RegionKind::Device).unwrap();
        let pin = s.pin();
        std::thread::scope(|scope| {
            let sharing = scope.spawn(|| s.share(a).is_ok());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!sharing.is_finished());
            // Nested accesses are allowed.
            drop(s.pin());
            drop(pin);
            assert!(sharing.join().unwrap());
        });
        drop(s.pin());
        s.free(a).unwrap();
    }
}

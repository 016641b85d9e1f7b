//! Device memory that is saved to a file and released until it is restored at the same addresses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::virtual_memory::Physical;
use super::{AddressSpace, Backing, MemoryError, Region, RegionKind, files};

/// Unit of copies; blocks of zeros occupy no room in the file.
const STEP: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Memory that a checkpoint saves.
enum SavedPart {
    /// A slot, which shares its pages with others: its bytes are zeroed.
    Slot { base: u64, len: u64 },
    /// Whole pages, which are returned to the system.
    Pages { base: u64, len: u64 },
    /// Physical memory without a certain address.
    Physical(Arc<Physical>),
}

impl SavedPart {
    fn len(&self) -> u64 {
        match self {
            SavedPart::Slot { len, .. } | SavedPart::Pages { len, .. } => *len,
            SavedPart::Physical(physical) => physical.size(),
        }
    }

    /// Reads `[at, at + out.len())` of the memory.
    fn load(&self, at: u64, out: &mut [u8]) -> bool {
        match self {
            SavedPart::Slot { base, .. } | SavedPart::Pages { base, .. } => {
                // SAFETY: the range is part of a live region of this space, and the gate is closed: no kernel or copy
                // writes it.
                let bytes =
                    unsafe { std::slice::from_raw_parts((base + at) as *const u8, out.len()) };
                out.copy_from_slice(bytes);
                true
            }
            SavedPart::Physical(physical) => files::read(physical.file(), at, out),
        }
    }

    /// Writes `bytes` to the memory from `at` on.
    fn store(&self, at: u64, bytes: &[u8]) -> bool {
        match self {
            SavedPart::Slot { base, .. } | SavedPart::Pages { base, .. } => {
                // SAFETY: the range is part of a live region of this space, which cannot be freed because the driver's
                // entry points are locked; the gate is closed: no kernel or copy accesses it.
                let to =
                    unsafe { std::slice::from_raw_parts_mut((base + at) as *mut u8, bytes.len()) };
                to.copy_from_slice(bytes);
                true
            }
            SavedPart::Physical(physical) => files::write(physical.file(), at, bytes),
        }
    }

    fn release(&self) {
        match self {
            SavedPart::Slot { base, len } => {
                // SAFETY: the slot belongs to a live region, which cannot be freed because the driver's entry points are
                // locked; the gate is closed: no kernel or copy accesses it.
                unsafe { std::ptr::write_bytes(*base as *mut u8, 0, *len as usize) };
            }
            SavedPart::Pages { base, len } => {
                // SAFETY: the range is an anonymous private mapping of a live region; its contents were saved.
                unsafe { libc::madvise(*base as *mut _, *len as usize, libc::MADV_DONTNEED) };
            }
            SavedPart::Physical(physical) => files::punch(physical.file(), 0, physical.size()),
        }
    }
}

/// The device memory of a process in a file. While it exists, accesses to device memory wait.
pub struct SavedMemory {
    file: File,
    parts: Vec<SavedPart>,
    /// Bytes that no longer count as used.
    cost: u64,
}

impl SavedMemory {
    /// Bytes saved.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(SavedPart::len).sum()
    }
}

impl AddressSpace {
    /// All live regions, by address.
    pub fn regions(&self) -> Vec<Region> {
        let regions = self.regions.read();
        regions.values().map(|e| e.region).collect()
    }

    /// Saves device memory to the file, releases it, and blocks accesses until [`Self::restore`].
    ///
    /// Page-locked host memory stays. Nothing changes on an error.
    ///
    /// # Errors
    /// [`MemoryError::Busy`] if accesses never cease, [`MemoryError::InvalidRequest`] if memory is shared with other
    /// processes, [`MemoryError::System`] if the file cannot be written.
    pub fn save(&self, file: File) -> Result<SavedMemory, MemoryError> {
        let _exclusive = self.sharing.lock();
        self.close_gate()?;
        let saved = self.parts().and_then(|(parts, cost)| {
            let saved = SavedMemory { file, parts, cost };
            write(&saved).map(|()| saved).ok_or(MemoryError::System)
        });
        match saved {
            Ok(saved) => {
                saved.parts.iter().for_each(SavedPart::release);
                self.used.fetch_sub(saved.cost, Ordering::SeqCst);
                Ok(saved)
            }
            Err(error) => {
                self.open_gate();
                Err(error)
            }
        }
    }

    /// Restores the memory that [`Self::save`] has saved, and allows accesses again.
    ///
    /// # Errors
    /// [`MemoryError::System`] if the file cannot be read; the contents are lost then.
    pub fn restore(&self, saved: &SavedMemory) -> Result<(), MemoryError> {
        let done = read(saved);
        self.used.fetch_add(saved.cost, Ordering::SeqCst);
        self.open_gate();
        done.ok_or(MemoryError::System)
    }

    /// The memory to be saved, and its cost.
    fn parts(&self) -> Result<(Vec<SavedPart>, u64), MemoryError> {
        let regions = self.regions.read();
        let (mut parts, mut cost) = (Vec::new(), 0);
        let mut physicals: Vec<Arc<Physical>> = Vec::new();
        for entry in regions.values() {
            let (base, size) = (entry.region.base, entry.region.size);
            let on_host = matches!(entry.region.kind, RegionKind::Host | RegionKind::Registered);
            match &entry.backing {
                _ if on_host => continue,
                Backing::Foreign | Backing::Reserved(_) => continue,
                Backing::File(..) => return Err(MemoryError::InvalidRequest),
                Backing::Slot(_) => {
                    let chunk = base & !(super::CHUNK - 1);
                    let mut heap = self.heap.lock();
                    if heap.chunk(chunk).is_some_and(|chunk| chunk.file.is_some()) {
                        return Err(MemoryError::InvalidRequest);
                    }
                    parts.push(SavedPart::Slot { base, len: size });
                    cost += Self::cost(entry.capacity);
                }
                Backing::Mapping(pages) => {
                    if pages.file.is_some() {
                        return Err(MemoryError::InvalidRequest);
                    }
                    let len = entry.capacity.next_multiple_of(PAGE);
                    parts.push(SavedPart::Pages {
                        base: pages.base(),
                        len,
                    });
                    cost += Self::cost(entry.capacity);
                }
                Backing::Window(physical) => {
                    if physical.is_shared() {
                        return Err(MemoryError::InvalidRequest);
                    }
                    if !physicals.iter().any(|known| Arc::ptr_eq(known, physical)) {
                        physicals.push(physical.clone());
                        cost += physical.cost();
                    }
                }
            }
        }
        parts.extend(physicals.into_iter().map(SavedPart::Physical));
        Ok((parts, cost))
    }
}

/// Calls `f` with each block of the parts: the part, the offset in it, its length, the offset in the file.
fn blocks(
    parts: &[SavedPart],
    mut f: impl FnMut(&SavedPart, u64, usize, u64) -> Option<()>,
) -> Option<()> {
    let mut offset = 0;
    for part in parts {
        let mut at = 0;
        while at < part.len() {
            let len = STEP.min(part.len() - at);
            f(part, at, len as usize, offset + at)?;
            at += len;
        }
        offset += part.len();
    }
    Some(())
}

fn write(saved: &SavedMemory) -> Option<()> {
    saved.file.set_len(saved.bytes()).ok()?;
    let mut buffer = vec![0u8; STEP as usize];
    blocks(&saved.parts, |part, at, len, offset| {
        let bytes = &mut buffer[..len];
        if !part.load(at, bytes) {
            return None;
        }
        if bytes.iter().any(|&byte| byte != 0) {
            saved.file.write_all_at(bytes, offset).ok()?;
        }
        Some(())
    })
}

fn read(saved: &SavedMemory) -> Option<()> {
    let mut buffer = vec![0u8; STEP as usize];
    blocks(&saved.parts, |part, at, len, offset| {
        let bytes = &mut buffer[..len];
        saved.file.read_exact_at(bytes, offset).ok()?;
        // Released memory is zero.
        (bytes.iter().all(|&byte| byte == 0) || part.store(at, bytes)).then_some(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Reach, checked};
    use super::*;

    fn get(addr: u64) -> u64 {
        // SAFETY: any eight bytes are a valid integer.
        unsafe { checked::read(addr) }.unwrap()
    }

    #[test]
    fn saved_memory_is_released_and_restored_at_its_address() {
        let s = Arc::new(AddressSpace::new(1 << 30));
        let small = s.alloc(100, 256, RegionKind::Device).unwrap();
        let large = s.alloc(5 << 20, 256, RegionKind::Managed).unwrap();
        let host = s.alloc(100, 256, RegionKind::Host).unwrap();
        for (at, value) in [(small, 1u64), (large, 2), (large + (4 << 20), 3), (host, 4)] {
            checked::write(at, &value).unwrap();
        }
        let used = s.used();
        let saved = s.save(tempfile()).unwrap();
        assert_eq!((get(small), get(large), get(large + (4 << 20))), (0, 0, 0));
        assert_eq!(get(host), 4);
        assert!(s.used() <= used - (5 << 20));
        s.restore(&saved).unwrap();
        assert_eq!((get(small), get(large), get(large + (4 << 20))), (1, 2, 3));
        assert_eq!(s.used(), used);
        drop(s.pin());
        for at in [small, large, host] {
            s.free(at).unwrap();
        }
        assert_eq!(s.used(), 0);
    }

    #[test]
    fn accesses_wait_until_memory_is_restored() {
        let s = Arc::new(AddressSpace::new(1 << 30));
        let a = s.alloc(1 << 20, 256, RegionKind::Device).unwrap();
        checked::write(a, &7u64).unwrap();
        let saved = s.save(tempfile()).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let _pin = s.pin();
                get(a)
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!reader.is_finished());
            s.restore(&saved).unwrap();
            assert_eq!(reader.join().unwrap(), 7);
        });
        s.free(a).unwrap();
    }

    #[test]
    fn memory_of_other_processes_is_refused() {
        let s = Arc::new(AddressSpace::new(1 << 30));
        let a = s.alloc_owned(1 << 20, 256, RegionKind::Device, 0, Reach::ALL);
        let a = a.unwrap().base;
        s.share(a).unwrap();
        checked::write(a, &7u64).unwrap();
        assert_eq!(s.save(tempfile()).err(), Some(MemoryError::InvalidRequest));
        drop(s.pin());
        assert_eq!(get(a), 7);
        s.free(a).unwrap();
    }

    fn tempfile() -> File {
        super::super::files::temporary().unwrap()
    }
}

//! Virtual memory management: address reservations, physical memory, and mappings.
//!
//! Physical memory is an anonymous file, so that it can be mapped several times and exported to other processes as a
//! descriptor. A mapping is a region of kind [`RegionKind::Virtual`] as soon as a device may access it.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files;
use super::multicast::Multicast;
use super::pages::{self, Pages};
use super::{AddressSpace, Backing, MemoryError, Reach, Region, RegionEntry, RegionKind};

/// Prefix of the file names; the caller's label follows.
const NAME: &str = "cupyrite-memory-";

/// Memory without an address. It is freed with its last mapping and handle.
pub struct Physical {
    space: Arc<AddressSpace>,
    file: OwnedFd,
    size: u64,
    tag: u64,
    /// Bytes charged to this process: zero if another process created it.
    cost: u64,
    /// Whether a descriptor was made for another process.
    exported: AtomicBool,
}

impl Physical {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The tag it was created with.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Bytes from `offset` on at addresses of their own, for the device. `None` if the mapping fails.
    pub(super) fn window(&self, offset: u64, size: u64) -> Option<Pages> {
        let pages = Pages::reserve(size, 4096)?;
        pages::open_window(pages.base(), size, self.file.as_raw_fd(), offset).then_some(pages)
    }

    /// A descriptor of the file for another process, owned by the caller.
    ///
    /// # Errors
    /// [`MemoryError::System`] if no descriptor is available.
    pub fn export(&self) -> Result<OwnedFd, MemoryError> {
        self.exported.store(true, Ordering::SeqCst);
        self.file.try_clone().map_err(|_| MemoryError::System)
    }

    /// Whether other processes may have it mapped.
    pub(super) fn is_shared(&self) -> bool {
        self.cost == 0 || self.exported.load(Ordering::SeqCst)
    }

    /// The file with the memory.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Bytes charged to this process.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        self.space.used.fetch_sub(self.cost, Ordering::SeqCst);
    }
}

/// What can be mapped at an address.
#[derive(Clone)]
pub enum Mappable {
    /// Physical memory.
    Physical(Arc<Physical>),
    /// A multicast object. The host cannot access such a mapping, and it is no region: only `multimem` instructions use
    /// it.
    Multicast(Arc<Multicast>),
}

impl Mappable {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Mappable::Physical(physical) => physical.size(),
            Mappable::Multicast(object) => object.size(),
        }
    }

    /// The tag it was created with.
    pub fn tag(&self) -> u64 {
        match self {
            Mappable::Physical(physical) => physical.tag(),
            Mappable::Multicast(object) => object.tag(),
        }
    }
}

impl From<&Arc<Physical>> for Mappable {
    fn from(physical: &Arc<Physical>) -> Self {
        Mappable::Physical(physical.clone())
    }
}

impl From<&Arc<Multicast>> for Mappable {
    fn from(object: &Arc<Multicast>) -> Self {
        Mappable::Multicast(object.clone())
    }
}

/// Physical memory or a multicast object mapped at an address.
#[derive(Clone)]
pub struct Mapping {
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// What is mapped.
    pub memory: Mappable,
    /// Offset of the first byte in it.
    pub offset: u64,
    /// The devices that may access it.
    pub reach: Reach,
    /// Id of the region, unique over the life of the process.
    pub id: u64,
}

/// Reserved addresses and the mappings within them.
pub(super) struct Reservation {
    pages: Pages,
    size: u64,
    mappings: BTreeMap<u64, Mapping>,
}

/// The mappings that exactly cover `[addr, addr + size)`.
fn exactly(mappings: &BTreeMap<u64, Mapping>, addr: u64, size: u64) -> Option<Vec<u64>> {
    let end = addr.checked_add(size)?;
    let mut at = addr;
    let mut found = Vec::new();
    while at < end {
        at += mappings.get(&at)?.size;
        found.push(at);
    }
    (at == end && size > 0).then(|| {
        let mut starts = vec![addr];
        starts.extend(&found[..found.len() - 1]);
        starts
    })
}

impl AddressSpace {
    /// Allocates `size` zeroed bytes of physical memory. `label` becomes part of the name by which other processes
    /// identify it; `tag` is the caller's.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] for a size of zero, [`MemoryError::OutOfMemory`] if too little memory is free,
    /// [`MemoryError::System`] if the process has too many open files.
    pub fn create_physical(
        self: &Arc<Self>,
        size: u64,
        label: &str,
        tag: u64,
    ) -> Result<Arc<Physical>, MemoryError> {
        if size == 0 {
            return Err(MemoryError::InvalidRequest);
        }
        let cost = Self::cost(size);
        if size > self.budget || (size >= 64 << 20 && size > pages::available_memory()) {
            return Err(MemoryError::OutOfMemory);
        }
        self.debit(cost)?;
        let made = files::create(&format!("{NAME}{label}"), size).ok_or_else(|| {
            match std::io::Error::last_os_error().raw_os_error() {
                // Too many open files: not a lack of memory.
                Some(libc::EMFILE | libc::ENFILE) => MemoryError::System,
                _ => MemoryError::OutOfMemory,
            }
        });
        if made.is_err() {
            self.used.fetch_sub(cost, Ordering::SeqCst);
        }
        Ok(Arc::new(Physical {
            space: self.clone(),
            file: made?,
            size,
            tag,
            cost,
            exported: AtomicBool::new(false),
        }))
    }

    /// Imports memory that another address space has exported; returns it with its label. The caller keeps the
    /// descriptor.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] if the descriptor is not from [`Physical::export`].
    pub fn import_physical(
        self: &Arc<Self>,
        descriptor: i32,
        tag: u64,
    ) -> Result<(Arc<Physical>, String), MemoryError> {
        let known = files::recognise(descriptor, NAME).ok_or(MemoryError::InvalidRequest)?;
        let physical = Physical {
            space: self.clone(),
            file: known.file,
            size: known.size,
            tag,
            cost: 0,
            exported: AtomicBool::new(true),
        };
        Ok((Arc::new(physical), known.label))
    }

    /// Reserves `size` bytes of addresses (a multiple of a page) aligned to `align` (a power of two), at `wish` if that
    /// is non-zero and free.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] for an invalid size or alignment, [`MemoryError::OutOfMemory`] if the address
    /// space is exhausted.
    pub fn reserve(&self, size: u64, align: u64, wish: u64) -> Result<u64, MemoryError> {
        if size == 0 || !size.is_multiple_of(4096) || !align.is_power_of_two() || align < 4096 {
            return Err(MemoryError::InvalidRequest);
        }
        let pages = (wish != 0 && wish.is_multiple_of(align))
            .then(|| Pages::reserve_at(wish, size))
            .flatten()
            .or_else(|| Pages::reserve(size, align))
            .ok_or(MemoryError::OutOfMemory)?;
        let base = pages.base();
        let reservation = Reservation {
            pages,
            size,
            mappings: BTreeMap::new(),
        };
        self.reservations.lock().insert(base, reservation);
        Ok(base)
    }

    /// Frees a reservation: exactly the range of [`Self::reserve`], with nothing mapped.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if the range is not a reservation, [`MemoryError::Overlap`] if something is mapped
    /// in it.
    pub fn unreserve(&self, base: u64, size: u64) -> Result<(), MemoryError> {
        let mut reservations = self.reservations.lock();
        match reservations.get(&base) {
            Some(r) if r.size == size && r.mappings.is_empty() => {}
            Some(r) if r.size == size => return Err(MemoryError::Overlap),
            _ => return Err(MemoryError::NotAllocated),
        }
        let Some(removed) = reservations.remove(&base) else {
            return Err(MemoryError::NotAllocated);
        };
        drop(reservations);
        let region = window(base, size, Reach::NONE, 0);
        self.heap.lock().limbo.push(RegionEntry {
            region,
            backing: Backing::Reserved(removed.pages),
            capacity: 0,
        });
        self.reclaim();
        Ok(())
    }

    /// First address and size of the reservation that contains `addr`.
    pub fn reservation_of(&self, addr: u64) -> Option<(u64, u64)> {
        let reservations = self.reservations.lock();
        let (&base, r) = reservations.range(..=addr).next_back()?;
        (addr - base < r.size).then_some((base, r.size))
    }

    /// Maps `size` bytes of `memory`, from `offset` on, at `addr`. No device has access yet.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] if the range exceeds the memory, [`MemoryError::NotAllocated`] if it
    /// does not lie in one reservation, [`MemoryError::Overlap`] if something is mapped there,
    /// [`MemoryError::OutOfMemory`] if the mapping fails.
    pub fn map(
        &self,
        addr: u64,
        size: u64,
        memory: impl Into<Mappable>,
        offset: u64,
    ) -> Result<(), MemoryError> {
        let memory = memory.into();
        if size == 0
            || !(addr | size | offset).is_multiple_of(4096)
            || offset
                .checked_add(size)
                .is_none_or(|end| end > memory.size())
        {
            return Err(MemoryError::InvalidRequest);
        }
        let mut reservations = self.reservations.lock();
        let (&base, reservation) = reservations
            .range_mut(..=addr)
            .next_back()
            .ok_or(MemoryError::NotAllocated)?;
        if size > reservation.size || addr - base > reservation.size - size {
            return Err(MemoryError::NotAllocated);
        }
        if let Some((_, below)) = reservation.mappings.range(..addr + size).next_back()
            && below.base + below.size > addr
        {
            return Err(MemoryError::Overlap);
        }
        let mut heap = self.heap.lock();
        // A running kernel may delay the release of an earlier mapping there: the new mapping replaces it, and the rest
        // is released later.
        let mut rests = Vec::new();
        heap.limbo.retain(|e| {
            let Backing::Window(before) = &e.backing else {
                return true;
            };
            let r = e.region;
            if r.end() <= addr || r.base >= addr + size {
                return true;
            }
            for (from, to) in [(r.base, addr), (addr + size, r.end())] {
                if from < to {
                    rests.push(RegionEntry {
                        region: window(from, to - from, Reach::NONE, r.id),
                        backing: Backing::Window(before.clone()),
                        capacity: 0,
                    });
                }
            }
            false
        });
        heap.limbo.extend(rests);
        match &memory {
            Mappable::Physical(physical) => {
                if !pages::open_window(addr, size, physical.file.as_raw_fd(), offset) {
                    return Err(MemoryError::OutOfMemory);
                }
            }
            // An earlier mapping there may still be accessible.
            Mappable::Multicast(_) => pages::close_window(addr, size),
        }
        drop(heap);
        let mapping = Mapping {
            base: addr,
            size,
            memory,
            offset,
            reach: Reach::NONE,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
        };
        reservation.mappings.insert(addr, mapping);
        Ok(())
    }

    /// Removes the mappings that exactly cover `[addr, addr + size)`, a part of one reservation. Does nothing if
    /// nothing is mapped there.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`] if the range covers part of a mapping, or mappings and gaps, or is not reserved.
    pub fn unmap(&self, addr: u64, size: u64) -> Result<(), MemoryError> {
        let mut reservations = self.reservations.lock();
        let (&base, reservation) = reservations
            .range_mut(..=addr)
            .next_back()
            .ok_or(MemoryError::NotMapped)?;
        let inside = size > 0 && size <= reservation.size && addr - base <= reservation.size - size;
        if inside
            && reservation
                .mappings
                .range(..addr + size)
                .next_back()
                .is_none_or(|(_, m)| m.base + m.size <= addr)
        {
            return Ok(());
        }
        let starts = exactly(&reservation.mappings, addr, size).ok_or(MemoryError::NotMapped)?;
        let mut regions = self.regions.write();
        let (mut removed, mut objects) = (Vec::new(), Vec::new());
        for start in starts {
            if let Some(m) = reservation.mappings.remove(&start) {
                regions.remove(&start);
                match m.memory {
                    Mappable::Physical(physical) => removed.push(RegionEntry {
                        region: window(m.base, m.size, Reach::NONE, m.id),
                        backing: Backing::Window(physical),
                        capacity: 0,
                    }),
                    Mappable::Multicast(object) => objects.push(object),
                }
            }
        }
        self.generation.fetch_add(1, Ordering::SeqCst);
        drop(regions);
        // Under the reservation lock, so that nothing can be mapped there before the old mapping is queued for release.
        self.heap.lock().limbo.extend(removed);
        drop(reservations);
        // The last use of an object unbinds its memory, which takes these locks.
        drop(objects);
        self.reclaim();
        Ok(())
    }

    /// Changes which devices may access the mappings that cover `[addr, addr + size)`.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`] if the range does not consist of whole mappings of one reservation.
    pub fn set_mapping_reach(
        &self,
        addr: u64,
        size: u64,
        change: impl Fn(Reach) -> Reach,
    ) -> Result<(), MemoryError> {
        let mut reservations = self.reservations.lock();
        let (_, reservation) = reservations
            .range_mut(..=addr)
            .next_back()
            .ok_or(MemoryError::NotMapped)?;
        let starts = exactly(&reservation.mappings, addr, size).ok_or(MemoryError::NotMapped)?;
        let mut regions = self.regions.write();
        for start in starts {
            let Some(m) = reservation.mappings.get_mut(&start) else {
                continue;
            };
            m.reach = change(m.reach);
            if m.reach.is_none() || matches!(m.memory, Mappable::Multicast(_)) {
                regions.remove(&start);
            } else {
                let region = window(m.base, m.size, m.reach, m.id);
                regions.insert(
                    start,
                    RegionEntry {
                        region,
                        backing: Backing::Foreign,
                        capacity: 0,
                    },
                );
            }
        }
        self.generation.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// The mapping that contains `addr`, whether or not any device may access it.
    pub fn mapping_at(&self, addr: u64) -> Option<Mapping> {
        let reservations = self.reservations.lock();
        let (_, reservation) = reservations.range(..=addr).next_back()?;
        let (_, m) = reservation.mappings.range(..=addr).next_back()?;
        (addr - m.base < m.size).then(|| m.clone())
    }
}

/// The region of a mapping.
fn window(base: u64, size: u64, reach: Reach, id: u64) -> Region {
    Region {
        base,
        size,
        kind: RegionKind::Virtual,
        id,
        read_only: false,
        owner: 0,
        reach,
    }
}

#[cfg(test)]
mod tests;

//! Multicast objects: addresses at which a `multimem` instruction accesses memory of several devices at once.
//!
//! An object has a team of devices. Memory of each device is bound to ranges of the object; a mapping of the object shows
//! at one address what is bound there for all devices. Such a mapping is no region, so that other accesses are refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::pages::Pages;
use super::{
    Access, AddressSpace, Backing, Mappable, MemoryError, Physical, Reach, Region, RegionEntry,
    RegionKind,
};

/// Why memory was not bound or unbound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindError {
    /// The device is not in the team.
    NotMember,
    /// The range exceeds the object or the memory.
    OutOfRange,
    /// Memory of the device is already bound to a part of the range.
    Overlap,
    /// The range is not exactly one that was bound.
    NotBound,
    /// The memory cannot be mapped.
    OutOfMemory,
}

/// Memory that can be bound.
#[derive(Clone)]
pub enum Bindable {
    /// Physical memory, from this offset on. It stays allocated while it is bound.
    Physical(Arc<Physical>, u64),
    /// A part of a region, from this address on. It is no longer bound when the region is freed.
    Region(Region, u64),
}

/// Memory of a device bound to a range of an object.
struct Bound {
    size: u64,
    /// Where the device accesses it.
    at: u64,
    memory: BoundMemory,
}

enum BoundMemory {
    /// Pages with physical memory, which stays allocated.
    Pages(
        Pages,
        #[allow(dead_code, reason = "keeps the memory")] Arc<Physical>,
    ),
    /// The region with this id.
    Region(u64),
}

/// A device of a team.
struct Member {
    device: i32,
    /// By offset in the object.
    bound: BTreeMap<u64, Bound>,
}

/// See the module. It is freed with its last mapping and handle.
pub struct Multicast {
    space: Arc<AddressSpace>,
    size: u64,
    devices: u32,
    tag: u64,
    members: Mutex<Vec<Member>>,
    complete: Condvar,
}

/// What a `multimem` instruction accesses at an address.
#[derive(Clone, Debug)]
pub struct MulticastWindow {
    /// The address.
    pub base: u64,
    /// Bytes from there on for which this holds.
    pub size: u64,
    /// The memory of each device of the team, in the order in which they were added.
    pub memory: Vec<u64>,
}

impl MulticastWindow {
    /// Whether `[address, address + len)` lies in the window.
    pub fn contains(&self, address: u64, len: u64) -> bool {
        address >= self.base && len <= self.size && address - self.base <= self.size - len
    }
}

impl Multicast {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The tag it was created with.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Number of devices that the team has when it is complete.
    pub fn devices(&self) -> u32 {
        self.devices
    }

    /// Whether a device is in the team.
    pub fn has(&self, device: i32) -> bool {
        self.members.lock().iter().any(|m| m.device == device)
    }

    /// Adds a device to the team. Returns false if it is a member already, or if the team is complete.
    pub fn add(&self, device: i32) -> bool {
        let mut members = self.members.lock();
        if members.len() as u32 >= self.devices || members.iter().any(|m| m.device == device) {
            return false;
        }
        members.push(Member {
            device,
            bound: BTreeMap::new(),
        });
        self.complete.notify_all();
        true
    }

    /// Waits until the team is complete; false if it is not by then.
    pub fn wait_until_complete(&self, at_most: Duration) -> bool {
        let mut members = self.members.lock();
        let missing = |members: &mut Vec<Member>| (members.len() as u32) < self.devices;
        !self
            .complete
            .wait_while_for(&mut members, missing, at_most)
            .timed_out()
            || !missing(&mut members)
    }

    /// Binds `size` bytes of a device's memory to the object from `offset` on.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(
        &self,
        device: i32,
        offset: u64,
        memory: &Bindable,
        size: u64,
    ) -> Result<(), BindError> {
        let inside = |start: u64, limit: u64| start <= limit && size <= limit - start;
        let fits = match memory {
            Bindable::Physical(physical, at) => inside(*at, physical.size()),
            Bindable::Region(region, at) => region.contains(*at, size),
        };
        if size == 0 || !fits || !inside(offset, self.size) {
            return Err(BindError::OutOfRange);
        }
        let mut members = self.members.lock();
        let member = members.iter_mut().find(|m| m.device == device);
        let bound = &mut member.ok_or(BindError::NotMember)?.bound;
        if let Some((at, below)) = bound.range(..offset + size).next_back()
            && at + below.size > offset
        {
            return Err(BindError::Overlap);
        }
        let (at, memory) = match memory {
            Bindable::Physical(physical, from) => {
                let pages = physical.window(*from, size);
                let pages = pages.ok_or(BindError::OutOfMemory)?;
                (pages.base(), BoundMemory::Pages(pages, physical.clone()))
            }
            Bindable::Region(region, at) => (*at, BoundMemory::Region(region.id)),
        };
        bound.insert(offset, Bound { size, at, memory });
        Ok(())
    }

    /// Unbinds what was bound for a device, exactly as it was bound.
    ///
    /// # Errors
    /// [`BindError::NotMember`], [`BindError::NotBound`].
    pub fn unbind(&self, device: i32, offset: u64, size: u64) -> Result<(), BindError> {
        let mut members = self.members.lock();
        let member = members.iter_mut().find(|m| m.device == device);
        let bound = &mut member.ok_or(BindError::NotMember)?.bound;
        if bound.get(&offset).is_none_or(|b| b.size != size) {
            return Err(BindError::NotBound);
        }
        let removed = bound.remove(&offset);
        drop(members);
        self.space.release_bound(removed);
        Ok(())
    }

    /// The memory of all devices at an offset, and for how many bytes that holds.
    fn memory_at(&self, offset: u64) -> Result<(u64, Vec<u64>), String> {
        let members = self.members.lock();
        let missing = self.devices as usize - members.len();
        if missing > 0 {
            return Err(format!(
                "a multicast object to which {missing} of its {} devices were not added",
                self.devices
            ));
        }
        let mut size = self.size - offset;
        let mut memory = Vec::with_capacity(members.len());
        for m in members.iter() {
            let found = m.bound.range(..=offset).next_back();
            let Some((start, bound)) = found.filter(|(at, b)| offset - **at < b.size) else {
                return Err(format!(
                    "byte {offset} of a multicast object, where no memory of device {} is bound: call \
                     cuMulticastBindMem or cuMulticastBindAddr",
                    m.device
                ));
            };
            if let BoundMemory::Region(id) = bound.memory {
                let region = self.space.find_range(bound.at, bound.size);
                if region.is_none_or(|r| r.id != id) {
                    return Err(format!(
                        "byte {offset} of a multicast object, where the bound memory of device {} was freed",
                        m.device
                    ));
                }
            }
            let inside = offset - start;
            size = size.min(bound.size - inside);
            memory.push(bound.at + inside);
        }
        Ok((size, memory))
    }
}

impl Drop for Multicast {
    fn drop(&mut self) {
        let members = std::mem::take(self.members.get_mut());
        let bound = members.into_iter().flat_map(|m| m.bound.into_values());
        self.space.release_bound(bound);
    }
}

impl AddressSpace {
    /// Creates a multicast object of `size` bytes for a team of `devices`. `tag` is the caller's.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] for a size or a team of zero.
    pub fn create_multicast(
        self: &Arc<Self>,
        size: u64,
        devices: u32,
        tag: u64,
    ) -> Result<Arc<Multicast>, MemoryError> {
        if size == 0 || devices == 0 {
            return Err(MemoryError::InvalidRequest);
        }
        Ok(Arc::new(Multicast {
            space: self.clone(),
            size,
            devices,
            tag,
            members: Mutex::default(),
            complete: Condvar::new(),
        }))
    }

    /// What a `multimem` instruction of `device` accesses at `address`. The caller holds a pin.
    ///
    /// # Errors
    /// Why it cannot, as a text that describes the address.
    pub fn multicast_at(
        &self,
        address: u64,
        device: i32,
        write: bool,
    ) -> Result<MulticastWindow, String> {
        let mapping = self.mapping_at(address);
        let Some((m, object)) = mapping.as_ref().and_then(|m| match &m.memory {
            Mappable::Multicast(object) => Some((m, object)),
            Mappable::Physical(_) => None,
        }) else {
            return Err("the address is not in a mapping of a multicast object".into());
        };
        let access = m.reach.access(device);
        if access == Access::None || write && access == Access::Read {
            return Err(format!(
                "a mapping of a multicast object that device {device} may not {}: call cuMemSetAccess",
                if access == Access::None {
                    "access"
                } else {
                    "write"
                }
            ));
        }
        let inside = address - m.base;
        let (size, memory) = object.memory_at(m.offset + inside)?;
        Ok(MulticastWindow {
            base: address,
            size: size.min(m.size - inside),
            memory,
        })
    }

    /// Releases memory that was bound, as soon as no kernel can access it.
    fn release_bound(&self, bound: impl IntoIterator<Item = Bound>) {
        for b in bound {
            if let BoundMemory::Pages(pages, _) = b.memory {
                let region = Region {
                    base: b.at,
                    size: b.size,
                    kind: RegionKind::Virtual,
                    id: self.next_id.fetch_add(1, Ordering::Relaxed),
                    read_only: false,
                    owner: 0,
                    reach: Reach::NONE,
                };
                self.heap.lock().limbo.push(RegionEntry {
                    region,
                    backing: Backing::Reserved(pages),
                    capacity: 0,
                });
            }
        }
        self.reclaim();
    }
}

#[cfg(test)]
mod tests {
    use super::super::checked;
    use super::*;

    const UNIT: u64 = 2 << 20;

    fn object(devices: u32) -> (Arc<AddressSpace>, Arc<Multicast>, u64) {
        let s = Arc::new(AddressSpace::new(1 << 30));
        let m = s.create_multicast(2 * UNIT, devices, 7).unwrap();
        let base = s.reserve(4 * UNIT, UNIT, 0).unwrap();
        (s, m, base)
    }

    #[test]
    fn a_mapping_shows_the_memory_of_all_devices() {
        let (s, m, base) = object(2);
        assert!(m.add(1) && !m.add(1) && m.add(0) && !m.add(2));
        s.map(base, UNIT, &m, UNIT).unwrap();
        s.set_mapping_reach(base, UNIT, |r| r.with(0, Access::ReadWrite))
            .unwrap();
        let a = s.create_physical(2 * UNIT, "0", 0).unwrap();
        let b = s.create_physical(UNIT, "1", 0).unwrap();
        let bind = |device, offset, p: &Arc<Physical>, at, size| {
            m.bind(device, offset, &Bindable::Physical(p.clone(), at), size)
        };
        bind(0, 0, &a, 0, 2 * UNIT).unwrap();
        assert!(s.multicast_at(base, 0, true).is_err());
        bind(1, UNIT, &b, 0, UNIT).unwrap();
        let window = s.multicast_at(base + 64, 0, true).unwrap();
        assert_eq!((window.size, window.memory.len()), (UNIT - 64, 2));
        assert!(window.contains(base + 64, UNIT - 64) && !window.contains(base + 64, UNIT - 63));
        // Device 1 comes first: it was added first.
        checked::write(window.memory[0], &5u32).unwrap();
        checked::write(window.memory[1], &6u32).unwrap();
        let at = base + UNIT;
        s.map(at, UNIT, &b, 0).unwrap();
        // SAFETY: any four bytes are a valid integer.
        assert_eq!(unsafe { checked::read::<u32>(at + 64) }, Ok(5));
        // It is no memory for other accesses, and another device may not access it.
        assert!(s.find(base).is_none() && !checked::is_mapped(base, 4, false));
        assert!(s.multicast_at(base, 1, false).is_err());
        assert!(s.multicast_at(at, 0, false).is_err());
        for (device, offset, size, at, error) in [
            (0, UNIT, UNIT, 0, BindError::Overlap),
            (2, 0, UNIT, 0, BindError::NotMember),
            (1, 0, 2 * UNIT, UNIT, BindError::OutOfRange),
            (1, 2 * UNIT, UNIT, 0, BindError::OutOfRange),
            (1, u64::MAX - UNIT + 1, UNIT, 0, BindError::OutOfRange),
            (1, 0, 0, 0, BindError::OutOfRange),
        ] {
            assert_eq!(bind(device, offset, &a, at, size), Err(error));
        }
        assert_eq!(m.unbind(0, 0, UNIT), Err(BindError::NotBound));
        assert_eq!(m.unbind(2, 0, UNIT), Err(BindError::NotMember));
        m.unbind(0, 0, 2 * UNIT).unwrap();
        assert!(s.multicast_at(base, 0, false).is_err());
    }

    #[test]
    fn bound_memory_lives_as_long_as_the_object_is_used() {
        let (s, m, base) = object(1);
        assert!(!m.wait_until_complete(Duration::from_millis(1)));
        assert!(m.add(0) && m.wait_until_complete(Duration::ZERO));
        s.map(base, 2 * UNIT, &m, 0).unwrap();
        s.set_mapping_reach(base, 2 * UNIT, |r| r.with(0, Access::ReadWrite))
            .unwrap();
        let p = s.create_physical(UNIT, "0", 0).unwrap();
        m.bind(0, 0, &Bindable::Physical(p, 0), UNIT).unwrap();
        let region = s
            .alloc_owned(UNIT, UNIT, RegionKind::Device, 0, Reach::ALL)
            .unwrap();
        m.bind(0, UNIT, &Bindable::Region(region, region.base), UNIT)
            .unwrap();
        assert_eq!(
            s.multicast_at(base + UNIT, 0, true).unwrap().memory,
            [region.base]
        );
        drop(m);
        s.free(region.base).unwrap();
        let freed = s.multicast_at(base + UNIT, 0, false).unwrap_err();
        assert!(freed.contains("was freed"), "{freed}");
        let at = s.multicast_at(base, 0, true).unwrap().memory[0];
        let pin = s.pin();
        s.unmap(base, 2 * UNIT).unwrap();
        assert!(s.multicast_at(base, 0, true).is_err());
        // A kernel may still be accessing it.
        assert!(checked::is_mapped(at, 8, true));
        drop(pin);
        assert!(!checked::is_mapped(at, 8, false));
        assert_eq!(s.used(), 0);
    }
}

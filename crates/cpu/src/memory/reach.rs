//! Which device may do what with which memory.
//!
//! All devices share the processor's memory, so any kernel could touch any allocation. A program that forgets
//! `cuCtxEnablePeerAccess` or `cuMemSetAccess` must find out here, as it would on GPUs.

use std::sync::Arc;

use super::Region;

/// What a device may do with memory (`CUmemAccess_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// Load.
    Read,
    /// Load and store.
    ReadWrite,
}

/// The rights of each device, two bits a device, and whether peers can be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reach(u64);

/// Set if `cuCtxEnablePeerAccess` opens the region to another context.
const PEERS: u64 = 1 << 63;
/// As many devices have bits of their own.
const DEVICES: i32 = 31;

impl Reach {
    /// Every device may load and store.
    pub const ALL: Reach = Reach(PEERS - 1);
    /// No device may do anything.
    pub const NONE: Reach = Reach(0);

    /// Only that device, until others are given rights.
    pub fn of(device: i32) -> Reach {
        Self::NONE.with(device, Access::ReadWrite)
    }

    /// The same, and `cuCtxEnablePeerAccess` lets others in.
    pub const fn and_peers(self) -> Reach {
        Reach(self.0 | PEERS)
    }

    /// The same with other rights for one device.
    pub fn with(self, device: i32, access: Access) -> Reach {
        if !(0..DEVICES).contains(&device) {
            return self;
        }
        let shift = 2 * device;
        let bits = match access {
            Access::None => 0,
            Access::Read => 1,
            Access::ReadWrite => 3,
        };
        Reach(self.0 & !(3 << shift) | bits << shift)
    }

    /// What that device may do.
    pub fn access(self, device: i32) -> Access {
        if !(0..DEVICES).contains(&device) {
            return Access::None;
        }
        match self.0 >> (2 * device) & 3 {
            0 => Access::None,
            3 => Access::ReadWrite,
            _ => Access::Read,
        }
    }

    /// Whether no device may do anything.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether `cuCtxEnablePeerAccess` lets others in, which a pool's and a mapping's own rights do not.
    pub const fn has_peers(self) -> bool {
        self.0 & PEERS != 0
    }

    /// What both allow.
    pub const fn and(self, other: Reach) -> Reach {
        Reach(self.0 & other.0)
    }
}

/// Who accesses memory: a device, and what its context may reach besides.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// Ordinal of the device.
    pub device: i32,
    /// Owners whose regions `cuCtxEnablePeerAccess` has opened.
    pub peers: Arc<[u64]>,
}

impl Default for Viewer {
    /// Device 0 without peers.
    fn default() -> Self {
        Self {
            device: 0,
            peers: Arc::from([]),
        }
    }
}

impl Viewer {
    /// What this viewer may do with a region.
    pub fn access(&self, region: &Region) -> Access {
        let own = region.reach.access(self.device);
        if own != Access::ReadWrite
            && region.reach.0 & PEERS != 0
            && self.peers.contains(&region.owner)
        {
            return Access::ReadWrite;
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_of_devices_are_apart() {
        let r = Reach::of(3).with(0, Access::Read);
        assert_eq!(r.access(3), Access::ReadWrite);
        assert_eq!(r.access(0), Access::Read);
        assert_eq!(r.access(1), Access::None);
        assert_eq!(r.access(-1), Access::None);
        assert_eq!(r.access(31), Access::None);
        assert_eq!(r.with(3, Access::None).with(0, Access::None), Reach::NONE);
        assert_eq!(
            r.and(Reach::of(3)).with(3, Access::Read).access(3),
            Access::Read
        );
        for device in 0..DEVICES {
            assert_eq!(Reach::ALL.access(device), Access::ReadWrite);
        }
    }
}

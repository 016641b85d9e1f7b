//! Access rights of devices to memory.
//!
//! All devices share the processor's memory, so any kernel could access any allocation. The rights are enforced so that
//! a program that lacks `cuCtxEnablePeerAccess` or `cuMemSetAccess` fails here as it would on GPUs.

use std::sync::Arc;

use super::Region;

/// A device's access to memory (`CUmemAccess_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// Load.
    Read,
    /// Load and store.
    ReadWrite,
}

/// The access of every device, two bits each, and whether peer access applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reach(u64);

/// Set if `cuCtxEnablePeerAccess` grants other contexts access.
const PEERS: u64 = 1 << 63;
/// Number of devices with bits of their own.
const DEVICES: i32 = 31;

impl Reach {
    /// Load and store for every device.
    pub const ALL: Reach = Reach(PEERS - 1);
    /// No access for any device.
    pub const NONE: Reach = Reach(0);

    /// Access for one device only.
    pub fn of(device: i32) -> Reach {
        Self::NONE.with(device, Access::ReadWrite)
    }

    /// Adds access by way of `cuCtxEnablePeerAccess`.
    pub const fn and_peers(self) -> Reach {
        Reach(self.0 | PEERS)
    }

    /// Changes the access of one device.
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

    /// The access of a device.
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

    /// Whether no device has access.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether `cuCtxEnablePeerAccess` applies. It does not apply to pools and mappings, which have their own rights.
    pub const fn has_peers(self) -> bool {
        self.0 & PEERS != 0
    }

    /// The access that both allow.
    pub const fn and(self, other: Reach) -> Reach {
        Reach(self.0 & other.0)
    }
}

/// The accessor of memory: a device, and the peers that its context has enabled.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// Ordinal of the device.
    pub device: i32,
    /// Owners whose regions `cuCtxEnablePeerAccess` has made accessible.
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
    /// The viewer's access to a region.
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
    fn devices_have_separate_rights() {
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

//! Flags of page-locked and registered host memory.

use std::collections::HashMap;

use cupyrite_engine::memory::{Region, RegionKind};
use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

/// Flags given to `cuMemHostAlloc`/`cuMemHostRegister`, by region id.
static HOST_FLAGS: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

/// Stores the flags of a region.
pub(crate) fn set_host_flags(id: u64, flags: u32) {
    HOST_FLAGS.lock().get_or_insert_default().insert(id, flags);
}

/// Removes the flags of a freed region.
pub(crate) fn remove_region(region: &Region) {
    HOST_FLAGS.lock().get_or_insert_default().remove(&region.id);
}

/// The value of `cuMemHostGetFlags`. Under unified addressing, host memory is always mapped for the device.
pub(crate) fn host_flags(region: &Region) -> u32 {
    const MAPPED: u32 = sys::CU_MEMHOSTALLOC_DEVICEMAP;
    let given = HOST_FLAGS
        .lock()
        .get_or_insert_default()
        .get(&region.id)
        .copied()
        .unwrap_or(0);
    if matches!(region.kind, RegionKind::Host | RegionKind::Managed) {
        given | MAPPED
    } else {
        given
    }
}

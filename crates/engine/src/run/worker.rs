//! State of a worker thread during a launch.

use super::memory::region_cache::RegionCache;
use super::texture_cache::ObjectCache;
use crate::cpu_features::has_x86_64_v3;
use crate::memory::{AddressSpace, Viewer};

/// State that a worker keeps between blocks.
pub struct WorkerState {
    /// Regions that memory instructions have accessed.
    pub cache: Box<RegionCache>,
    /// Textures and surfaces that instructions have used.
    pub objects: ObjectCache,
    /// Whether the machine is an x86-64-v3.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub v3: bool,
}

impl WorkerState {
    /// A worker with empty caches.
    pub fn new(viewer: Viewer) -> Self {
        Self {
            cache: Box::new(RegionCache::new(viewer)),
            objects: ObjectCache::default(),
            v3: has_x86_64_v3(),
        }
    }

    /// Drops cache entries that a change of the address space has invalidated.
    pub fn refresh(&mut self, space: &AddressSpace) {
        if self.cache.refresh(space) {
            self.objects.invalidate_memory_checks();
        }
    }
}

//! State of a worker thread during a launch.

use super::memory::model::MemoryModel;
use super::memory::region_cache::RegionCache;
#[cfg(target_arch = "x86_64")]
use super::native_context::{Chunk, NativeContext};
use super::texture_cache::ObjectCache;
use crate::cpu_features::has_x86_64_v3;
use crate::memory::{AddressSpace, Viewer};

/// State that a worker keeps between blocks.
pub struct WorkerState<M: MemoryModel> {
    /// Regions that memory instructions have accessed.
    pub cache: Box<RegionCache>,
    /// Textures and surfaces that instructions have used.
    pub objects: ObjectCache,
    /// Whether the machine is an x86-64-v3.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub v3: bool,
    /// State that machine code accesses, from its first run on.
    #[cfg(target_arch = "x86_64")]
    pub native: Option<Box<NativeContext>>,
    /// The chunks that machine code runs.
    #[cfg(target_arch = "x86_64")]
    pub chunks: Vec<Chunk>,
    /// The first warp and the register file for which they are the chunks of all warps of a block that run in turn.
    #[cfg(target_arch = "x86_64")]
    pub chunks_in_turn: Option<(usize, usize, usize)>,
    /// The memory model's state.
    pub model: M::Worker,
}

impl<M: MemoryModel> WorkerState<M> {
    /// A worker with empty caches.
    pub fn new(viewer: Viewer, model: &M) -> Self {
        Self {
            cache: Box::new(RegionCache::new(viewer)),
            objects: ObjectCache::default(),
            #[cfg(target_arch = "x86_64")]
            native: None,
            #[cfg(target_arch = "x86_64")]
            chunks: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            chunks_in_turn: None,
            v3: has_x86_64_v3(),
            model: model.begin(),
        }
    }

    /// Drops cache entries that a change of the address space has invalidated.
    pub fn refresh(&mut self, space: &AddressSpace) {
        if self.cache.refresh(space) {
            self.objects.invalidate_memory_checks();
        }
    }
}

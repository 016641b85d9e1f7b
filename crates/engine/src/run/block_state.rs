//! State that the warps of a block share: shared memory, barriers, the number of live threads.

use std::sync::Arc;

use super::aligned::Line;
use super::cluster_state::ClusterState;
use crate::address_windows::cluster_block;
use crate::fault::Coordinates;

/// Barriers that programs name.
pub const NAMED_BARRIERS: usize = 16;
/// Those, and one for each warpgroup.
pub const BARRIERS: usize = NAMED_BARRIERS + 8;

/// A barrier of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockBarrier {
    /// Threads that have arrived in this phase.
    pub arrived: u32,
    /// Threads expected; zero means every live thread of the block.
    pub expected: u32,
    /// Number of completed phases.
    pub phase: u32,
    /// Threads of this phase whose predicate is true.
    pub holds: u32,
    /// Threads of this phase that have voted.
    pub voted: u32,
    /// [`Self::holds`] and [`Self::voted`] of the last phase.
    pub result: (u32, u32),
}

impl BlockBarrier {
    /// Completes a phase at which all threads have arrived at once.
    pub fn pass(&mut self) {
        self.complete();
    }

    fn complete(&mut self) {
        self.phase = self.phase.wrapping_add(1);
        self.result = (self.holds, self.voted);
        self.arrived = 0;
        self.holds = 0;
        self.voted = 0;
        self.expected = 0;
    }

    /// Number of threads that complete the phase, if `live` threads of the block have not exited.
    pub fn threads(&self, live: u32) -> u32 {
        if self.expected == 0 {
            live
        } else {
            self.expected
        }
    }

    /// Completes the phase if all threads have arrived, and returns whether it did.
    pub fn complete_if_full(&mut self, live: u32) -> bool {
        let full = self.arrived > 0 && self.arrived >= self.threads(live);
        if full {
            self.complete();
        }
        full
    }
}

/// State that the warps of a block share.
pub struct BlockState {
    /// `%ctaid`.
    pub index: [u32; 3],
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Shared memory.
    pub memory: Vec<Line>,
    /// Offset in the shared window at which the launch addresses the block's shared memory; zero if the launch has no
    /// clusters.
    pub window: u32,
    /// State that the blocks of the cluster share.
    pub cluster: Arc<ClusterState>,
    /// Barriers 0 to 15, then those of the warpgroups.
    pub barriers: [BlockBarrier; BARRIERS],
    /// Threads that have not exited.
    pub live_threads: u32,
    /// Whether a barrier has completed since the block last released warps.
    pub released: bool,
}

impl BlockState {
    /// Address of shared memory.
    pub fn shared(&self) -> *mut u8 {
        self.memory.as_ptr().cast::<u8>().cast_mut()
    }

    /// The rank of the block of the cluster that an address names, the address of its shared memory, and the offset there;
    /// `None` if the address belongs to the executing block alone, or to no block.
    #[cold]
    pub fn in_cluster(&self, at: u64) -> Option<(usize, u64, u64)> {
        let (rank, offset) = cluster_block(at)?;
        Some((rank, *self.cluster.shared.get(rank)?, offset))
    }

    /// Whether a host address lies in the shared memory of a block of the cluster.
    pub fn is_shared(&self, p: u64) -> bool {
        let inside = |base: u64| p.wrapping_sub(base) < self.shared_bytes.into();
        inside(self.shared() as u64) || self.cluster.shared.iter().any(|&base| inside(base))
    }

    /// Completes the barriers that waited only for threads that have exited.
    pub fn threads_exited(&mut self) {
        for b in &mut self.barriers {
            if b.arrived > 0 && b.complete_if_full(self.live_threads) {
                self.released = true;
            }
        }
    }

    /// Coordinates of a lane's thread.
    pub fn coordinates(&self, block: [u32; 3], warp: u32, lane: u32) -> Coordinates {
        let t = warp * 32 + lane;
        let [x, y, _] = block.map(|n| n.max(1));
        Coordinates {
            block: self.index,
            thread: [t % x, t / x % y, t / x / y],
        }
    }
}

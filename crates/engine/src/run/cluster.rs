//! A cluster: its blocks, which are resident together. One worker at a time runs a cluster, and a cluster can yield to
//! another. A launch without clusters has clusters of one block.

use std::sync::Arc;
use std::time::Instant;

use super::block::{Block, BlockStop};
use super::cluster_state::ClusterState;
use super::lanes::lanes;
use super::launch_state::Launch;
use super::memory::model::MemoryModel;
use super::tier::Tier;
use super::worker::WorkerState;
use crate::address_windows::block_window;

/// A cluster.
pub struct Cluster {
    /// Its blocks, indexed by rank.
    blocks: Vec<Block>,
    /// What they share.
    state: Arc<ClusterState>,
}

impl Cluster {
    /// A cluster of the launch. [`Self::reset`] sets its index.
    pub fn new(launch: &Launch<'_>) -> Self {
        let mut blocks: Vec<Block> = (0..launch.cluster_blocks)
            .map(|_| Block::new(launch))
            .collect();
        let mut state = ClusterState::default();
        if launch.has_clusters || launch.program.has_clusters {
            state.shared = blocks.iter().map(Block::shared).collect();
        }
        let state = Arc::new(state);
        for (block, rank) in blocks.iter_mut().zip(0..) {
            // Without clusters, an address of the executing block alone is faster, and no other block can use it.
            let window = match launch.has_clusters {
                true => block_window(rank) as u32,
                false => 0,
            };
            block.join_cluster(&state, window);
        }
        Self { blocks, state }
    }

    /// Starts the cluster with this linear index on this worker.
    #[inline]
    pub fn reset(&mut self, launch: &Launch<'_>, linear: u64, worker: u32) {
        let (nx, ny) = (u64::from(launch.clusters[0]), u64::from(launch.clusters[1]));
        let index = if linear < nx {
            [linear as u32, 0, 0]
        } else {
            let rest = linear / nx;
            [(linear % nx) as u32, (rest % ny) as u32, (rest / ny) as u32]
        };
        self.state.reset(launch.cluster_blocks, launch.threads);
        match self.blocks.as_mut_slice() {
            [block] => block.reset(launch, index, worker),
            _ => self.reset_blocks(launch, index, worker),
        }
    }

    /// Starts the blocks of the cluster with this index.
    fn reset_blocks(&mut self, launch: &Launch<'_>, index: [u32; 3], worker: u32) {
        let size = launch.cluster;
        for (block, rank) in self.blocks.iter_mut().zip(0u32..) {
            let at = [
                rank % size[0],
                rank / size[0] % size[1],
                rank / size[0] / size[1],
            ];
            let index = std::array::from_fn(|a| index[a] * size[a] + at[a]);
            block.reset(launch, index, worker);
        }
    }

    /// Runs the blocks in turn until the cluster stops. It yields when every block has run until it stopped.
    #[inline]
    pub fn run<T: Tier, M: MemoryModel>(
        &mut self,
        launch: &Launch<'_>,
        worker: &mut WorkerState<M>,
        model: &M,
    ) -> BlockStop {
        match self.blocks.as_mut_slice() {
            [block] => block.run::<T, M>(launch, worker, model),
            _ => self.run_blocks::<T, M>(launch, worker, model),
        }
    }

    /// Runs each block that has not exited.
    fn run_blocks<T: Tier, M: MemoryModel>(
        &mut self,
        launch: &Launch<'_>,
        worker: &mut WorkerState<M>,
        model: &M,
    ) -> BlockStop {
        loop {
            let phase = self.state.phase();
            let mut yields = false;
            let mut wake_time: Option<Instant> = None;
            for rank in lanes(self.state.live()) {
                match self.blocks[rank].run::<T, M>(launch, worker, model) {
                    BlockStop::Done => self.state.block_exited(rank),
                    BlockStop::Yield => yields = true,
                    BlockStop::Sleep(time) => {
                        wake_time = Some(wake_time.map_or(time, |first| first.min(time)));
                    }
                    BlockStop::Blocked => {}
                    BlockStop::Fault => return BlockStop::Fault,
                }
            }
            if self.state.live() == 0 {
                return BlockStop::Done;
            }
            if yields {
                return BlockStop::Yield;
            }
            // Blocks may have stopped before others completed the barrier.
            if phase != self.state.phase() {
                continue;
            }
            if let Some(time) = wake_time {
                return BlockStop::Sleep(time);
            }
            if !self.force_collectives() {
                if let Some(rank) = lanes(self.state.live()).next() {
                    self.blocks[rank].report_deadlock(launch);
                }
                return BlockStop::Fault;
            }
        }
    }

    /// [`Block::force_collectives`] of the blocks that have not exited.
    fn force_collectives(&mut self) -> bool {
        let mut any = false;
        for rank in lanes(self.state.live()) {
            any |= self.blocks[rank].force_collectives();
        }
        any
    }
}

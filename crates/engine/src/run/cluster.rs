//! A cluster: its blocks, which are resident together. One worker at a time runs a cluster, and a cluster can yield to
//! another. A launch without clusters has clusters of one block.

use std::time::Instant;

use super::block::{Block, BlockStop};
use super::lanes::lanes;
use super::launch_state::Launch;
use super::memory::model::MemoryModel;
use super::tier::Tier;
use super::worker::WorkerState;

/// A cluster.
pub struct Cluster {
    /// Its blocks, indexed by rank.
    blocks: Vec<Block>,
    /// Mask, by rank, of the blocks with threads that have not exited. Not maintained for a cluster of one block.
    live: u32,
}

impl Cluster {
    /// A cluster of the launch. [`Self::reset`] sets its index.
    pub fn new(launch: &Launch<'_>) -> Self {
        let mut blocks: Vec<Block> = (0..launch.cluster_blocks)
            .map(|_| Block::new(launch))
            .collect();
        if launch.has_clusters {
            let shared: Vec<u64> = blocks.iter().map(Block::shared).collect();
            for block in &mut blocks {
                block.join_cluster(&shared);
            }
        }
        Self { blocks, live: 0 }
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
        self.live = u32::MAX >> (32 - self.blocks.len());
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
        let mut yields = false;
        let mut wake_time: Option<Instant> = None;
        for rank in lanes(self.live) {
            match self.blocks[rank].run::<T, M>(launch, worker, model) {
                BlockStop::Done => self.live &= !(1 << rank),
                BlockStop::Yield => yields = true,
                BlockStop::Sleep(time) => {
                    wake_time = Some(wake_time.map_or(time, |first| first.min(time)));
                }
                BlockStop::Fault => return BlockStop::Fault,
            }
        }
        match wake_time {
            _ if self.live == 0 => BlockStop::Done,
            Some(time) if !yields => BlockStop::Sleep(time),
            _ => BlockStop::Yield,
        }
    }
}

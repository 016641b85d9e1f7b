//! State that the blocks of a cluster share: their shared memory, which of them have exited, the barrier of the cluster.
//!
//! One worker at a time runs a cluster. The fields are atomic because the blocks share them, not because threads race.

use std::sync::atomic::{AtomicU32, Ordering};

use super::context::{Context, ExecResult, fault};
use super::memory::model::MemoryModel;
use super::warp::{FragmentState, Warp};
use crate::fault::{FaultKind, LaneFault};

/// State that the blocks of a cluster share.
#[derive(Debug, Default)]
pub struct ClusterState {
    /// Addresses of the shared memory of all blocks, by rank; empty if shared memory of other blocks has no addresses.
    pub shared: Vec<u64>,
    /// Mask, by rank, of the blocks with threads that have not exited. Not maintained for a cluster of one block.
    live: AtomicU32,
    /// Threads that have not exited.
    threads: AtomicU32,
    /// Those of them that have not arrived at the barrier in this phase.
    missing: AtomicU32,
    /// Number of completed phases of the barrier.
    phase: AtomicU32,
}

impl ClusterState {
    /// Starts a cluster of `blocks` blocks of `threads` threads.
    #[inline]
    pub fn reset(&self, blocks: u32, threads: u32) {
        self.live
            .store(u32::MAX >> (32 - blocks), Ordering::Relaxed);
        self.threads.store(blocks * threads, Ordering::Relaxed);
        self.missing.store(blocks * threads, Ordering::Relaxed);
        self.phase.store(0, Ordering::Relaxed);
    }

    /// Mask, by rank, of the blocks with threads that have not exited.
    pub fn live(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// Records that all threads of a block have exited.
    pub fn block_exited(&self, rank: usize) {
        self.live.fetch_and(!(1 << rank), Ordering::Relaxed);
    }

    /// Number of completed phases of the barrier.
    #[inline]
    pub fn phase(&self) -> u32 {
        self.phase.load(Ordering::Relaxed)
    }

    /// Threads that have arrived at the barrier in this phase, and those that it waits for.
    pub fn arrived(&self) -> (u32, u32) {
        let threads = self.threads.load(Ordering::Relaxed);
        (threads - self.missing.load(Ordering::Relaxed), threads)
    }

    /// Records that `count` more threads have arrived or, if they had not, exited.
    fn subtract_missing(&self, count: u32) {
        let missing = self.missing.load(Ordering::Relaxed) - count;
        self.missing.store(missing, Ordering::Relaxed);
        if missing == 0 {
            let threads = self.threads.load(Ordering::Relaxed);
            self.missing.store(threads, Ordering::Relaxed);
            let phase = self.phase().wrapping_add(1);
            self.phase.store(phase, Ordering::Relaxed);
        }
    }

    /// Records that the lanes `exited` of a warp have exited: the barrier no longer waits for them.
    pub fn threads_exited(&self, w: &Warp, exited: u32) {
        let arrived = w.cluster_barrier.in_phase(self.phase());
        self.threads
            .fetch_sub(exited.count_ones(), Ordering::Relaxed);
        self.subtract_missing((exited & !arrived).count_ones());
    }
}

/// The arrivals of a warp at the barrier of the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterArrivals {
    /// Lanes that have arrived and not waited since.
    arrived: u32,
    /// Lowest bit of the phase in which each lane has arrived.
    phase: u32,
}

impl ClusterArrivals {
    /// Lanes that have arrived in this phase.
    fn in_phase(&self, phase: u32) -> u32 {
        let phase = (phase & 1).wrapping_neg();
        self.arrived & !(self.phase ^ phase)
    }
}

/// `barrier.cluster.arrive`: the lanes `active` arrive.
///
/// # Errors
/// A lane that has not waited since it last arrived (PTX ISA, `barrier.cluster`: a thread must arrive only once before the
/// barrier completes).
pub fn arrive(cx: &mut Context<'_, impl MemoryModel>, w: &mut Warp, active: u32) -> ExecResult {
    let twice = w.cluster_barrier.arrived & active;
    if twice != 0 {
        return Err(fault(
            FaultKind::IllegalInstruction,
            twice,
            "the thread has not executed `barrier.cluster.wait` since its last `barrier.cluster.arrive`",
        ));
    }
    let cluster = &cx.block.cluster;
    let phase = (cluster.phase() & 1).wrapping_neg();
    let of = &mut w.cluster_barrier;
    of.arrived |= active;
    of.phase = of.phase & !active | phase & active;
    cluster.subtract_missing(active.count_ones());
    Ok(())
}

/// `barrier.cluster.wait`: the state in which the lanes `active` wait; `None` if the phase in which they arrived is complete.
///
/// # Errors
/// A lane that has not arrived.
pub fn wait(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    active: u32,
) -> Result<Option<FragmentState>, Box<LaneFault>> {
    let of = &mut w.cluster_barrier;
    let absent = active & !of.arrived;
    if absent != 0 {
        return Err(fault(
            FaultKind::IllegalInstruction,
            absent,
            "the thread has not executed `barrier.cluster.arrive`",
        ));
    }
    let phase = cx.block.cluster.phase();
    if of.in_phase(phase) & active != 0 {
        return Ok(Some(FragmentState::ClusterBarrier(phase)));
    }
    of.arrived &= !active;
    Ok(None)
}

/// Resumes the fragments of `w` that wait for a phase that has completed, and returns whether there were any.
pub fn release(cluster: &ClusterState, w: &mut Warp) -> bool {
    let mut any = false;
    for f in &mut w.fragments {
        if matches!(f.state, FragmentState::ClusterBarrier(phase) if phase != cluster.phase()) {
            w.cluster_barrier.arrived &= !f.mask;
            f.pc += 1;
            f.state = FragmentState::Ready;
            any = true;
        }
    }
    any
}

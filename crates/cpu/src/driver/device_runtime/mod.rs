//! The device runtime: what kernels launch, and what they ask the device (CUDA C++ Programming Guide, "CUDA Dynamic
//! Parallelism").
//!
//! [`run`] runs a launch of the host with everything that its kernels launch. Each grid in progress has a [`Grid`] with the
//! streams of the grid. A child runs when the block that launched it has ended or waits, when too many launches are pending,
//! or when its parent's blocks have ended. A grid has completed when its children have; then its tail launches run.
//!
//! Chains of children may be as long as the limit of pending launches. The stack of the host therefore holds only those that
//! run inside a block of their parent, at most [`MAX_NESTING`]; the others are in a list.

mod calls;
mod child;
mod copies;
mod grid;
mod queries;
mod streams;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::driver::entry::Res;
use crate::driver::module::launch::{Launch, Launcher};
use child::{Child, PendingLaunch, Work};
use grid::Grid;
use streams::StreamKey;

/// The most grids of which each runs inside a block of the one before.
const MAX_NESTING: u32 = 8;

/// A grid whose blocks have ended, until its children and its tail launches have completed.
struct EndedGrid {
    grid: Grid,
    /// The stream of the parent in which the grid runs; `None` if the caller of [`run_tree`] knows it.
    stream: Option<StreamKey>,
    /// The tail launches, once the children have completed.
    tails: Option<VecDeque<Child>>,
    _pending: Option<PendingLaunch>,
}

/// Runs a launch of the host on this thread, and all that its kernels launch.
///
/// # Errors
/// That of the first grid that fails; the others are dropped.
pub(in crate::driver) fn run(
    launch: &Launch,
    share: Option<&Arc<[u32]>>,
    launcher: Option<&Launcher>,
) -> Res {
    run_tree(Child::of_host(launch.clone()), 0, share, launcher)
}

/// Runs a grid, a copy or a fill, and all that it launches. `nesting` counts the grids inside whose blocks it runs.
fn run_tree(
    first: Child,
    nesting: u32,
    share: Option<&Arc<[u32]>>,
    mut launcher: Option<&Launcher>,
) -> Res {
    let mut ended: Vec<EndedGrid> = Vec::new();
    let mut next = Some((first, None));
    loop {
        if let Some((child, stream)) = next.take() {
            // Graphs are launched by kernels of graphs, not by their children.
            match run_blocks(child, nesting, share, launcher.take())? {
                Some((grid, pending)) => ended.push(EndedGrid {
                    grid,
                    stream,
                    tails: None,
                    _pending: pending,
                }),
                None => completed(&ended, stream),
            }
        }
        let Some(top) = ended.last_mut() else {
            return Ok(());
        };
        if top.tails.is_none() {
            if let Some((stream, child)) = top.grid.next_child()? {
                next = Some((child, Some(stream)));
                continue;
            }
            top.tails = Some(top.grid.take_tails());
        }
        let tails = top.tails.get_or_insert_default();
        let tail = tails.pop_front();
        if !tails.is_empty() {
            next = tail.map(|tail| (tail, None));
            continue;
        }
        // The last tail takes the place of its grid, so that a grid that launches itself again does not grow the list.
        let stream = ended.pop().and_then(|grid| grid.stream);
        match tail {
            Some(tail) => next = Some((tail, stream)),
            None => completed(&ended, stream),
        }
    }
}

/// Lets the stream of a completed child continue.
fn completed(ended: &[EndedGrid], stream: Option<StreamKey>) {
    if let (Some(parent), Some(stream)) = (ended.last(), stream) {
        parent.grid.child_completed(stream);
    }
}

/// Whether the context of a child has failed, so that its work is skipped.
fn context_has_failed(child: &Child) -> bool {
    match &child.work {
        Work::Kernel(launch) => launch.function.context.has_failed(),
        Work::Copy(_) | Work::Fill(_) => false,
    }
}

/// Runs a child until its blocks have ended. Returns the grid if it may have launched something.
fn run_blocks(
    child: Child,
    nesting: u32,
    share: Option<&Arc<[u32]>>,
    launcher: Option<&Launcher>,
) -> Res<Option<(Grid, Option<PendingLaunch>)>> {
    if context_has_failed(&child) {
        return Ok(None);
    }
    match &child.work {
        Work::Kernel(launch) if launch.function.kernel.uses_device_runtime() => {
            let grid = Grid::new(launch, nesting, share);
            launch.run_grid(share.map(|s| &**s), launcher, Some(&grid))?;
            Ok(Some((grid, child.pending)))
        }
        Work::Kernel(launch) => launch
            .run_grid(share.map(|s| &**s), launcher, None)
            .map(|()| None),
        Work::Copy(copy) => copy.run().map(|()| None),
        Work::Fill(fill) => fill.run().map(|()| None),
    }
}

//! Graphs that kernels launch: `cudaGraphLaunch` in device code.
//!
//! The requests of a kernel are collected while it runs. Graphs to fire and forget, also as siblings, run when the
//! kernel has ended; tail launches run when all other work of the graph with the kernel has completed. Both run on the
//! thread of that work, one node after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cupyrite_engine::GraphLauncher;
use cupyrite_sys::runtime::cudaError_t;
use parking_lot::Mutex;

use super::exec::{self, Exec};
use super::plan::Plan;
use super::{Graph, Payload};
use crate::driver::context::Context;
use crate::driver::entry::Res;

/// `cudaStreamGraphTailLaunch`, `cudaStreamGraphFireAndForget`, `cudaStreamGraphFireAndForgetAsSibling`.
const TAIL: u64 = 0x0100_0000_0000_0000;
const FIRE_AND_FORGET: u64 = 0x0200_0000_0000_0000;
const SIBLING: u64 = 0x0300_0000_0000_0000;

/// Maximum number of graphs that a graph can fire and forget, and of its pending tail launches, as in the CUDA manual.
const MAX_FIRED: usize = 120;
const MAX_TAILS: usize = 255;
/// Maximum depth of graphs that are fired by graphs.
const MAX_DEPTH: u32 = 24;

const SUCCESS: u32 = cudaError_t::cudaSuccess.0;
const INVALID_VALUE: u32 = cudaError_t::cudaErrorInvalidValue.0;
const TOO_MANY: u32 = cudaError_t::cudaErrorLaunchPendingCountExceeded.0;
const TOO_DEEP: u32 = cudaError_t::cudaErrorLaunchMaxDepthExceeded.0;

/// One execution of a graph, and the launches by its kernels.
pub(super) struct Environment {
    /// Handle of the executable graph if it can be launched from the device, else zero.
    current: u64,
    depth: u32,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    fired: Vec<PendingLaunch>,
    /// Number of graphs fired so far.
    count: usize,
    tails: VecDeque<PendingLaunch>,
    /// Whether the graph relaunches itself.
    relaunches: bool,
}

/// A launch by a kernel, until it has run.
struct PendingLaunch {
    exec: Arc<Exec>,
    plan: Arc<Plan>,
}

impl Drop for PendingLaunch {
    fn drop(&mut self) {
        self.exec.launched_by_device.store(false, Ordering::Release);
    }
}

impl GraphLauncher for Environment {
    fn launch(&self, graph: u64, stream: u64) -> u32 {
        let Ok(exec) = exec::find_exec(graph) else {
            return INVALID_VALUE;
        };
        let Some(plan) = exec.uploaded() else {
            return INVALID_VALUE;
        };
        let mut requests = self.requests.lock();
        let is_self = graph == self.current;
        match stream {
            TAIL if requests.tails.len() >= MAX_TAILS => return TOO_MANY,
            TAIL if is_self && requests.relaunches => return INVALID_VALUE,
            TAIL => {}
            // A graph can relaunch itself only as a tail.
            FIRE_AND_FORGET | SIBLING if is_self => return INVALID_VALUE,
            FIRE_AND_FORGET | SIBLING if requests.count >= MAX_FIRED => return TOO_MANY,
            FIRE_AND_FORGET | SIBLING if self.depth >= MAX_DEPTH => return TOO_DEEP,
            FIRE_AND_FORGET | SIBLING => {}
            _ => return INVALID_VALUE,
        }
        // One launch at a time, except that a running graph can relaunch itself.
        if exec.launched_by_device.swap(true, Ordering::Acquire) && !is_self {
            return INVALID_VALUE;
        }
        requests.relaunches |= is_self;
        let pending = PendingLaunch { exec, plan };
        if stream == TAIL {
            requests.tails.push_back(pending);
        } else {
            requests.count += 1;
            requests.fired.push(pending);
        }
        SUCCESS
    }

    fn current(&self) -> u64 {
        self.current
    }
}

impl Environment {
    pub(super) fn new(current: u64) -> Arc<Environment> {
        Self::at_depth(current, 0)
    }

    fn at_depth(current: u64, depth: u32) -> Arc<Environment> {
        Arc::new(Environment {
            current,
            depth,
            requests: Mutex::default(),
        })
    }

    /// Runs the graphs that a kernel has fired. Returns false if a context has failed.
    pub(super) fn run_fired(&self, context: &Arc<Context>) -> Res<bool> {
        let fired = std::mem::take(&mut self.requests.lock().fired);
        for launch in fired {
            if !run(VecDeque::from([launch]), self.depth + 1, context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs the tail launches.
    pub(super) fn run_tails(&self, context: &Arc<Context>) -> Res {
        let tails = std::mem::take(&mut self.requests.lock().tails);
        run(tails, self.depth, context).map(|_| ())
    }
}

/// Runs graphs in order, each with its tail launches before the next one. Returns false if a context has failed.
fn run(graphs: VecDeque<PendingLaunch>, depth: u32, context: &Arc<Context>) -> Res<bool> {
    let mut levels = vec![graphs];
    while let Some(level) = levels.last_mut() {
        let next = level.pop_front();
        // Before its tail launches are added, so that a graph that relaunches itself does not grow the list.
        if level.is_empty() {
            levels.pop();
        }
        let Some(launch) = next else {
            continue;
        };
        let environment = Environment::at_depth(launch.exec.handle(), depth);
        // The previous launch of a graph that relaunches itself has ended.
        let launched = &launch.exec.launched_by_device;
        launched.store(true, Ordering::Relaxed);
        if !launch.plan.run_all(context, &environment)? {
            return Ok(false);
        }
        let tails = std::mem::take(&mut environment.requests.lock().tails);
        if !tails.is_empty() {
            levels.push(tails);
        }
    }
    Ok(true)
}

/// Why a graph cannot be launched from the device.
pub(super) enum Obstacle {
    /// A node, by its handle in the instantiated graph.
    Unsupported(u64),
    /// A node of another context than the others.
    OtherContext(u64),
    /// All nodes are empty.
    Empty,
}

/// Checks that a graph can be launched from the device: kernel, memcpy, memset and child graph nodes of one context.
pub(super) fn check(graph: &Arc<Graph>) -> Result<(), Obstacle> {
    let mut context = None;
    check_nodes(graph, &mut context)?;
    context.map(|_| ()).ok_or(Obstacle::Empty)
}

fn check_nodes(graph: &Arc<Graph>, context: &mut Option<u64>) -> Result<(), Obstacle> {
    for node in graph.lock().nodes.values() {
        match &*node.payload {
            Payload::Graph(inner) => check_nodes(inner, context)?,
            Payload::Memcpy(m) if !m.is_internal() => {
                return Err(Obstacle::Unsupported(node.origin));
            }
            Payload::Kernel(k) if k.launches_kernels() => {
                return Err(Obstacle::Unsupported(node.origin));
            }
            Payload::Kernel(_) | Payload::Memcpy(_) | Payload::Memset(_) => {}
            _ => return Err(Obstacle::Unsupported(node.origin)),
        }
        let Some(own) = node.payload.context() else {
            continue;
        };
        if *context.get_or_insert(own.id) != own.id {
            return Err(Obstacle::OtherContext(node.origin));
        }
    }
    Ok(())
}

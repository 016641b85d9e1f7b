//! A grid in progress whose kernel uses the device runtime.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use cupyrite_engine::memory::RegionKind;
use parking_lot::Mutex;

use super::child::{Child, PendingLaunch};
use super::streams::{StreamKey, Streams};
use super::{MAX_NESTING, run_tree};
use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::memory::space::space;
use crate::driver::module::function::Function;
use crate::driver::module::launch::{Launch, LaunchConfig};

/// Memory for the parameters of a launch, freed when it is dropped.
pub(super) struct ParameterBuffer {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The launch that `cudaGetParameterBufferV2` has validated.
    pub(super) launch: Option<(Arc<Function>, LaunchConfig, PendingLaunch)>,
}

impl ParameterBuffer {
    /// Allocates zeroed memory.
    pub(super) fn new(bytes: u64, align: u64) -> Res<ParameterBuffer> {
        let bytes = bytes.max(1);
        let address = space().alloc(bytes, align, RegionKind::Internal)?;
        // SAFETY: the allocation has this size, and no other thread knows its address.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes as usize) };
        Ok(ParameterBuffer {
            address,
            bytes,
            launch: None,
        })
    }

    /// Copies the contents of another buffer, as far as they fit.
    pub(super) fn copy_from(&self, other: &ParameterBuffer) {
        let count = self.bytes.min(other.bytes) as usize;
        // SAFETY: both allocations have as many bytes, and differ.
        unsafe {
            std::ptr::copy_nonoverlapping(
                other.address as *const u8,
                self.address as *mut u8,
                count,
            );
        }
    }

    /// A copy of the first `bytes` bytes; missing ones are zero.
    pub(super) fn contents(&self, bytes: u32) -> Box<[u8]> {
        let mut copy = vec![0; bytes as usize].into_boxed_slice();
        let count = copy.len().min(self.bytes as usize);
        // SAFETY: the allocation has `self.bytes` bytes. Threads that still write to it race, as on a GPU.
        unsafe {
            std::ptr::copy_nonoverlapping(self.address as *const u8, copy.as_mut_ptr(), count);
        }
        copy
    }
}

impl Drop for ParameterBuffer {
    fn drop(&mut self) {
        // The address was allocated by `new` and is freed only here; a kernel cannot free it.
        let _ = space().free(self.address);
    }
}

/// State of a grid that its lock guards.
#[derive(Default)]
pub(super) struct GridState {
    pub(super) streams: Streams,
    /// The tail launches, in order.
    pub(super) tails: VecDeque<Child>,
    /// The last error of each thread that has one: a `cudaError_t` by block and thread.
    pub(super) errors: HashMap<(u64, u32), u32>,
    /// Parameter buffers that no launch has used, by address.
    pub(super) buffers: HashMap<u64, ParameterBuffer>,
    /// Errors of which a reason was logged.
    pub(super) logged: HashSet<u32>,
    /// The error of the first child that failed.
    failed: Option<Code>,
}

/// A grid in progress.
pub(super) struct Grid {
    pub(super) function: Arc<Function>,
    pub(super) context: Arc<Context>,
    share: Option<Arc<[u32]>>,
    /// Number of grids inside whose blocks this one runs.
    nesting: u32,
    pub(super) state: Mutex<GridState>,
}

impl Grid {
    pub(super) fn new(launch: &Launch, nesting: u32, share: Option<&Arc<[u32]>>) -> Grid {
        Grid {
            function: launch.function.clone(),
            context: launch.function.context.clone(),
            share: share.cloned(),
            nesting,
            state: Mutex::default(),
        }
    }

    /// A child that can run, and its stream, which continues after [`Grid::child_completed`].
    ///
    /// # Errors
    /// That of the first child that failed.
    pub(super) fn next_child(&self) -> Res<Option<(StreamKey, Child)>> {
        let mut state = self.state.lock();
        state.failed.map_or(Ok(()), Err)?;
        Ok(state.streams.next())
    }

    /// Lets the stream of a child continue.
    pub(super) fn child_completed(&self, stream: StreamKey) {
        self.state.lock().streams.ran(stream);
    }

    /// Takes the tail launches.
    pub(super) fn take_tails(&self) -> VecDeque<Child> {
        std::mem::take(&mut self.state.lock().tails)
    }

    /// Runs a child inside a block of this grid, with all that it launches. Returns false if none can run, or one has failed.
    pub(super) fn run_child(&self) -> bool {
        if self.nesting >= MAX_NESTING {
            return false;
        }
        let Ok(Some((stream, child))) = self.next_child() else {
            return false;
        };
        let outcome = run_tree(child, self.nesting + 1, self.share.as_ref(), None);
        let mut state = self.state.lock();
        match outcome {
            Ok(()) => state.streams.ran(stream),
            Err(code) => {
                state.failed.get_or_insert(code);
                state.streams.clear();
            }
        }
        outcome.is_ok()
    }

    /// Runs children inside a block of this grid until none can run. Returns false if one has failed.
    pub(super) fn run_children(&self) -> bool {
        while self.run_child() {}
        self.state.lock().failed.is_none()
    }
}

//! The capture that the streams of a graph builder record into, and its definition.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cupyrite_sys::driver::CUresult;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::graph::definition::GraphDefinition;
use crate::graph::retained::Retained;
use crate::graph::stream_capture::capture_state;
use crate::stream::{GraphRecorder, Stream};

/// A capture and its graph. Everything that records into it does so under the lock of the definition.
#[derive(Debug)]
pub(super) struct CaptureRecorder {
    pub(super) definition: GraphDefinition,
    /// The driver's number of the capture.
    pub(super) id: u64,
    /// Changed under the lock.
    pub(super) active: AtomicBool,
    /// Whether the program has ended the capture.
    pub(super) lost: AtomicBool,
    /// Whether the capture creates the graph of `definition`.
    pub(super) is_primary: bool,
    /// Streams of joined branches, which live until the capture ends.
    pub(super) joined: Mutex<Vec<Stream>>,
    /// Streams of branches to which nodes were added by handle, until they are joined: see [`is_unjoined`].
    ///
    /// [`is_unjoined`]: crate::graph::unjoined::is_unjoined
    pub(super) branches: Mutex<Vec<Stream>>,
    pub(super) retained: RetainedKeys,
}

/// The keys of [`GraphRecorder::note_retained`].
#[derive(Debug, Default)]
pub(super) struct RetainedKeys {
    /// The last one: most captures launch a kernel several times in a row.
    last: AtomicUsize,
    all: Mutex<HashSet<usize>>,
}

impl GraphRecorder for CaptureRecorder {
    fn is_recording(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    fn retain(&self, value: Retained) -> Result<()> {
        if !self.is_recording() {
            return Err(self.ended_error());
        }
        // Whether the capture goes on is checked when the work is recorded.
        self.definition.retain(value)
    }

    fn exclusively(&self, body: &mut dyn FnMut()) {
        // A forked child has no other threads.
        let _lock = self.definition.lock().ok();
        body();
    }

    fn check(&self, stream: &Stream) -> Result<()> {
        if !self.is_recording() {
            return Err(self.ended_error());
        }
        let found = capture_state(stream, false)?;
        if found.is_other(self.id) {
            // The graph belongs to the program now, which may destroy it.
            self.active.store(false, Ordering::Relaxed);
            self.lost.store(true, Ordering::Relaxed);
            if self.is_primary {
                self.definition.captured(false);
            }
            return Err(self.ended_error());
        }
        found.check_valid()
    }

    fn has_retained(&self, key: usize) -> bool {
        if self.retained.last.load(Ordering::Acquire) == key {
            return true;
        }
        let known = self.retained.all.lock().contains(&key);
        if known {
            self.retained.last.store(key, Ordering::Release);
        }
        known
    }

    fn note_retained(&self, key: usize) {
        self.retained.all.lock().insert(key);
        self.retained.last.store(key, Ordering::Release);
    }
}

impl CaptureRecorder {
    /// The error of calls after the end of the capture.
    #[cold]
    pub(super) fn ended_error(&self) -> Error {
        let problem = if self.lost.load(Ordering::Relaxed) {
            "the program has ended the capture of this graph builder, with cuStreamEndCapture or cudaStreamEndCapture; \
             begin another one"
        } else {
            "the capture of this graph builder has ended; begin another one"
        };
        Error::Driver {
            call: "GraphBuilder",
            status: CUresult::CUDA_ERROR_ILLEGAL_STATE,
            log: problem.to_owned(),
        }
    }
}

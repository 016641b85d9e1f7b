//! Definitions by stream capture: graph builders, from their begin to their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite_sys::driver::CUresult;
use parking_lot::Mutex;

use crate::error::{Error, Result, driver};
use crate::graph::capture_recorder::{CaptureRecorder, RetainedKeys};
use crate::graph::deferred_destruction::drop_released;
use crate::graph::definition::GraphDefinition;
use crate::graph::exec::Graph;
use crate::graph::instantiate::InstantiateOptions;
use crate::graph::lock::DefinitionLock;
use crate::graph::retained::Retained;
use crate::graph::stream_capture::{
    CaptureMode, capture_state, check_idle, end_capture, unjoined_branch,
};
use crate::stream::{GraphRecorder, Stream};

/// A capture: what is queued in [`GraphBuilder::stream`] becomes a node of a definition, and does not run.
///
/// Kernels that are launched in that stream are retained by the graph; for memory, use [`GraphBuilder::retain`].
///
/// ```no_run
/// # fn f(device: cupyrite::Device) -> cupyrite::Result<()> {
/// use cupyrite::graph::{CaptureMode, GraphBuilder, InstantiateOptions};
/// let stream = device.create_stream()?;
/// let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed)?;
/// builder.callback(|| println!("launched"))?;
/// let graph = builder.complete(&InstantiateOptions::default())?;
/// graph.launch(&stream)?;
/// # Ok(()) }
/// ```
///
/// Completing it consumes it:
///
/// ```compile_fail,E0382
/// # fn f(stream: cupyrite::Stream) -> cupyrite::Result<()> {
/// use cupyrite::graph::{CaptureMode, GraphBuilder, InstantiateOptions};
/// let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed)?;
/// let graph = builder.complete(&InstantiateOptions::default())?;
/// builder.callback(|| println!("too late"))?;
/// # Ok(()) }
/// ```
///
/// So does joining a builder that [`GraphBuilder::split`] returned:
///
/// ```compile_fail,E0382
/// # fn f(builder: cupyrite::graph::GraphBuilder) -> cupyrite::Result<()> {
/// let branches = builder.split(2)?;
/// builder.join(branches)?;
/// branches[0].callback(|| println!("too late"))?;
/// # Ok(()) }
/// ```
///
/// Dropping a builder that was not completed ends and discards its capture.
#[derive(Debug)]
pub struct GraphBuilder {
    /// The captured stream, which retains for the graph what is launched in it.
    stream: Stream,
    /// The same stream without that.
    pub(super) base: Stream,
    pub(super) recorder: Arc<CaptureRecorder>,
    pub(super) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Began a capture into a new graph.
    Primary,
    /// Began a capture into the body of a conditional node.
    Body,
    /// Came from `split`.
    Branch,
}

impl GraphBuilder {
    /// Begins to capture `stream`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a stream that is captured already; the driver's error, for example for the legacy
    /// default stream. Source: `cuStreamBeginCapture`.
    pub fn begin(stream: &Stream, mode: CaptureMode) -> Result<GraphBuilder> {
        check_idle(stream)?;
        let context = stream.context()?;
        // SAFETY: the handle is live.
        stream.call(|| unsafe { driver!(cuStreamBeginCapture(stream.handle(), mode.raw())) })?;
        let begun = capture_state(stream, true).and_then(|found| {
            found.check_valid()?;
            Ok(found)
        });
        match begun {
            Ok(found) => {
                let definition = GraphDefinition::root(found.graph, context, false);
                Ok(GraphBuilder::new(
                    stream,
                    definition,
                    found.id,
                    Role::Primary,
                ))
            }
            Err(error) => {
                drop(end_capture(stream));
                Err(error)
            }
        }
    }

    /// Begins to capture `stream` into the body of a conditional node, after what it contains.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::begin`]. Source: `cuStreamBeginCaptureToGraph`.
    pub fn begin_into(
        stream: &Stream,
        body: &GraphDefinition,
        mode: CaptureMode,
    ) -> Result<GraphBuilder> {
        check_idle(stream)?;
        let entered = body.enter("GraphBuilder::begin_into")?;
        // SAFETY: both handles are live.
        stream.call(|| unsafe {
            driver!(cuStreamBeginCaptureToGraph(
                stream.handle(),
                entered.handle,
                std::ptr::null(),
                std::ptr::null(),
                0,
                mode.raw()
            ))
        })?;
        let begun = capture_state(stream, false);
        drop(entered);
        match begun {
            Ok(found) => {
                let definition = body.share_internally();
                Ok(GraphBuilder::new(stream, definition, found.id, Role::Body))
            }
            Err(error) => {
                drop(end_capture(stream));
                Err(error)
            }
        }
    }

    fn new(stream: &Stream, definition: GraphDefinition, id: u64, role: Role) -> GraphBuilder {
        let recorder = Arc::new(CaptureRecorder {
            definition,
            id,
            active: AtomicBool::new(true),
            lost: AtomicBool::new(false),
            is_primary: role == Role::Primary,
            joined: Mutex::default(),
            branches: Mutex::default(),
            retained: RetainedKeys::default(),
        });
        GraphBuilder::of(recorder, stream.clone(), role)
    }

    pub(super) fn of(recorder: Arc<CaptureRecorder>, base: Stream, role: Role) -> GraphBuilder {
        GraphBuilder {
            stream: base.recorded_by(recorder.clone()),
            base,
            recorder,
            role,
        }
    }

    /// The captured stream.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The captured stream, without retaining what is launched in it.
    pub fn base_stream(&self) -> &Stream {
        &self.base
    }

    /// Whether the builder came from [`GraphBuilder::split`], and has to be joined.
    pub fn is_branch(&self) -> bool {
        self.role == Role::Branch
    }

    /// Whether the capture goes on: not after its end, also not after the program has ended it by the stream's handle. A
    /// capture that was invalidated goes on until it is ended.
    pub fn is_recording(&self) -> bool {
        if !self.recorder.is_recording() {
            return false;
        }
        let mut goes_on = false;
        self.recorder.exclusively(&mut || {
            // Notices the end of the capture; other errors do not end it.
            drop(self.recorder.check(&self.base));
            goes_on = self.recorder.is_recording();
        });
        goes_on
    }

    /// Whether a call has found that the program has ended the capture by the stream's handle.
    pub fn has_lost_capture(&self) -> bool {
        self.recorder.lost.load(Ordering::Relaxed)
    }

    /// Locks the definition, and refuses to record once the capture has ended.
    pub(super) fn lock(&self) -> Result<DefinitionLock<'_>> {
        let lock = self.recorder.definition.lock()?;
        self.recorder.check(&self.base)?;
        Ok(lock)
    }

    /// Whether both record the same graph.
    pub fn shares_capture_with(&self, other: &GraphBuilder) -> bool {
        Arc::ptr_eq(&self.recorder, &other.recorder)
    }

    /// The definition so far. It may be read; what is recorded later changes it.
    pub fn definition(&self) -> &GraphDefinition {
        &self.recorder.definition
    }

    /// Retains `value`, such as memory that a recorded kernel uses, until the graph and its launches are done.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::retain`].
    pub fn retain(&self, value: Retained) -> Result<()> {
        self.recorder.definition.retain(value)
    }

    /// Ends the capture.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a branch, which is joined instead; `CUDA_ERROR_STREAM_CAPTURE_UNJOINED` if a
    /// branch was not joined; the error of an invalidated capture; `CUDA_ERROR_ILLEGAL_STATE` if the program has ended it.
    /// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD` leaves the capture to the thread that began it. Source:
    /// `cuStreamEndCapture`.
    pub fn end(self) -> Result<GraphDefinition> {
        let ended = self.end_shared()?;
        ended.ok_or_else(|| self.recorder.ended_error())
    }

    /// [`GraphBuilder::end`] for a builder that others refer to as well: what they record later is refused. `None` if the
    /// capture was ended before.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::end`].
    #[doc(hidden)] // For the Python package, whose objects are shared.
    pub fn end_shared(&self) -> Result<Option<GraphDefinition>> {
        if self.role == Role::Branch {
            return Err(Error::argument(
                "GraphBuilder::end",
                "self",
                "is a branch of a split; pass it to join() of the builder that began the capture",
            ));
        }
        let ended = self.finish()?;
        if !ended && self.has_lost_capture() {
            return Err(self.recorder.ended_error());
        }
        Ok(ended.then(|| self.recorder.definition.share_internally()))
    }

    /// Ends the capture; false if it has ended before.
    fn finish(&self) -> Result<bool> {
        let recorder = &*self.recorder;
        let mut done = Ok(false);
        let mut joined = Vec::new();
        recorder.exclusively(&mut || {
            if !recorder.is_recording() {
                return;
            }
            let mut unjoined = false;
            let ended = match recorder.check(&self.base) {
                // The program may have begun another capture.
                Err(error) if !recorder.is_recording() => Err(error),
                _ => {
                    // An invalidated capture reports its own error.
                    unjoined = self.has_unjoined_branch().unwrap_or(false);
                    let ended = end_capture(&self.base);
                    unjoined &= ended.is_ok();
                    if unjoined {
                        Err(unjoined_branch())
                    } else {
                        ended
                    }
                }
            };
            let goes_on = ended.as_ref().is_err_and(|error| {
                error.status() == Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            });
            if !goes_on {
                joined = std::mem::take(&mut *recorder.joined.lock());
                recorder.active.store(false, Ordering::Relaxed);
                if self.role == Role::Primary {
                    recorder.definition.captured(ended.is_ok());
                    if unjoined {
                        recorder.definition.discard();
                    }
                }
            }
            done = ended.map(|()| true);
        });
        drop(joined);
        drop_released();
        done
    }

    /// Ends the capture and instantiates the graph.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::end`] and [`GraphDefinition::instantiate`].
    pub fn complete(self, options: &InstantiateOptions) -> Result<Graph> {
        self.end()?.instantiate(options)
    }
}

impl Drop for GraphBuilder {
    fn drop(&mut self) {
        if self.role == Role::Branch {
            self.recorder.exclusively(&mut || {
                if self.recorder.is_recording() {
                    // Destroying a captured stream invalidates the capture.
                    self.recorder.joined.lock().push(self.base.clone());
                }
            });
        } else {
            // The graph is discarded, so its error does not matter.
            drop(self.finish());
        }
    }
}

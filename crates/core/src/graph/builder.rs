//! Definitions by stream capture.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite_sys::driver::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus,
    CUstreamUpdateCaptureDependencies_flags,
};
use parking_lot::Mutex;

use crate::error::{Error, Result, driver};
use crate::graph::callback::HostCallback;
use crate::graph::definition::{Condition, ConditionalKind, GraphDefinition};
use crate::graph::exec::{Graph, InstantiateOptions};
use crate::graph::in_use::drop_released;
use crate::graph::retained::Retained;
use crate::stream::{EventOptions, GraphRecorder, Stream, StreamOptions, is_capturing};

/// Largest number of builders of a [`GraphBuilder::split`]; each has a stream.
const MAX_SPLIT: usize = 1024;

/// Which unsafe calls a capture forbids meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMode {
    /// Those of all threads.
    Global,
    /// Those of the thread that began the capture.
    ThreadLocal,
    /// None.
    Relaxed,
}

impl CaptureMode {
    fn raw(self) -> CUstreamCaptureMode {
        match self {
            CaptureMode::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            CaptureMode::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            CaptureMode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

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
    base: Stream,
    recorder: Arc<Recorder>,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Began a capture into a new graph.
    Primary,
    /// Began a capture into the body of a conditional node.
    Body,
    /// Came from `split`.
    Branch,
}

/// A capture and its graph.
#[derive(Debug)]
struct Recorder {
    definition: GraphDefinition,
    active: AtomicBool,
    /// Streams of joined branches, which live until the capture ends.
    joined: Mutex<Vec<Stream>>,
}

impl GraphRecorder for Recorder {
    fn is_recording(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    fn retain(&self, value: Retained) -> Result<()> {
        self.definition.retain(value)
    }
}

/// The graph of a captured stream, and the nodes that its next node depends on.
fn capture_state(stream: &Stream) -> Result<(CUgraph, Vec<CUgraphNode>)> {
    let mut status = CUstreamCaptureStatus(0);
    let mut graph: CUgraph = std::ptr::null_mut();
    let mut nodes: *const CUgraphNode = std::ptr::null();
    let mut data: *const CUgraphEdgeData = std::ptr::null();
    let (mut id, mut count) = (0, 0);
    // SAFETY: the stream is live; all results are valid for writes.
    let asked = unsafe {
        driver!(cuStreamGetCaptureInfo(
            stream.handle(),
            &mut status,
            &mut id,
            &mut graph,
            &mut nodes,
            &mut data,
            &mut count
        ))
    };
    match asked {
        // Before CUDA 12.3.
        // SAFETY: as above.
        Err(Error::Load(_)) => unsafe {
            driver!(cuStreamGetCaptureInfo_cuda12(
                stream.handle(),
                &mut status,
                &mut id,
                &mut graph,
                &mut nodes,
                &mut count
            ))?;
        },
        other => other?,
    }
    if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE || graph.is_null() {
        return Err(Error::Driver {
            call: "cuStreamGetCaptureInfo",
            status: CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            log: "a call that the capture forbids has invalidated it".to_owned(),
        });
    }
    let list = if count == 0 {
        Vec::new()
    } else {
        // SAFETY: the driver's list of `count` nodes, valid until the next call on the stream.
        unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec()
    };
    Ok((graph, list))
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
        match capture_state(stream) {
            Ok((graph, _)) => {
                let definition = GraphDefinition::root(graph, context, false);
                Ok(GraphBuilder::new(stream, definition, Role::Primary))
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
        drop(entered);
        let definition = body.share_internally();
        Ok(GraphBuilder::new(stream, definition, Role::Body))
    }

    fn new(stream: &Stream, definition: GraphDefinition, role: Role) -> GraphBuilder {
        let recorder = Arc::new(Recorder {
            definition,
            active: AtomicBool::new(true),
            joined: Mutex::default(),
        });
        GraphBuilder::of(recorder, stream.clone(), role)
    }

    fn of(recorder: Arc<Recorder>, base: Stream, role: Role) -> GraphBuilder {
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

    /// Splits the capture: returns `count - 1` further builders, whose work is independent of this one's later work and
    /// comes after its present work. Each has to be joined.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a `count` below 2 or above 1024; the driver's error.
    pub fn split(&self, count: usize) -> Result<Vec<GraphBuilder>> {
        if !(2..=MAX_SPLIT).contains(&count) {
            let problem = format!("is {count}; expected 2 to {MAX_SPLIT}");
            return Err(Error::argument("GraphBuilder::split", "count", problem));
        }
        let context = self.base.context()?;
        let forked = self.base.record_with(&EventOptions::default())?;
        let mut branches = Vec::new();
        for _ in 1..count {
            let stream = Stream::new(&context, &StreamOptions::default())?;
            stream.wait(&forked)?;
            branches.push(GraphBuilder::of(
                self.recorder.clone(),
                stream,
                Role::Branch,
            ));
        }
        Ok(branches)
    }

    /// Joins branches: later work of this builder comes after theirs.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a builder of another capture or one that is no branch; the driver's error. The
    /// branches are consumed in any case.
    pub fn join(&self, branches: Vec<GraphBuilder>) -> Result<()> {
        let branches: Vec<&GraphBuilder> = branches.iter().collect();
        self.join_shared(&branches)
    }

    /// [`GraphBuilder::join`] for builders that others refer to as well.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::join`].
    #[doc(hidden)] // For the Python package, whose objects are shared.
    pub fn join_shared(&self, branches: &[&GraphBuilder]) -> Result<()> {
        for branch in branches {
            let problem = if !self.shares_capture_with(branch) {
                "contains a builder of another graph; join builders that split() of this graph returned"
            } else if branch.role != Role::Branch {
                "contains the builder that began the capture; call join() on it instead"
            } else {
                continue;
            };
            return Err(Error::argument("GraphBuilder::join", "branches", problem));
        }
        for branch in branches {
            let event = branch.base.record_with(&EventOptions::default())?;
            self.base.wait(&event)?;
        }
        Ok(())
    }

    /// Records a call of a host function. The graph retains it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddHostNode`.
    pub fn host_callback(&self, callback: &HostCallback) -> Result<()> {
        // Added as a node: `cuLaunchHostFunc` would run the function at once if another thread has ended the capture.
        let (_, after) = capture_state(&self.base)?;
        // SAFETY: the driver named the nodes, and the capture keeps them.
        let node = unsafe { self.recorder.definition.add_callback(&after, callback)? };
        self.continue_after(node)
    }

    /// Records a call of a closure, which the graph owns. It must not call CUDA.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::host_callback`].
    pub fn callback(&self, closure: impl Fn() + Send + Sync + 'static) -> Result<()> {
        self.host_callback(&HostCallback::new(closure))
    }

    /// Makes later work of this builder depend on `node` alone.
    fn continue_after(&self, node: CUgraphNode) -> Result<()> {
        let mut node = node;
        let flags = CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES.0;
        let (stream, place) = (self.base.handle(), &raw mut node);
        // SAFETY: the stream is captured, and the node belongs to its graph.
        unsafe {
            match driver!(cuStreamUpdateCaptureDependencies(
                stream,
                place,
                std::ptr::null(),
                1,
                flags
            )) {
                Err(Error::Load(_)) => {
                    driver!(cuStreamUpdateCaptureDependencies_cuda12(
                        stream, place, 1, flags
                    ))
                }
                other => other,
            }
        }
    }

    /// Records a clone of another definition. The graph retains what the other one retains.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::add_child`].
    pub fn embed(&self, child: &GraphDefinition) -> Result<()> {
        let (_, after) = capture_state(&self.base)?;
        // SAFETY: the driver named the nodes, and the capture keeps them.
        let node = unsafe { self.recorder.definition.add_child(&after, child)? };
        self.continue_after(node)
    }

    /// A condition for conditional nodes of this graph: see [`GraphDefinition::create_condition`].
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn create_condition(&self, default: Option<u32>) -> Result<Condition> {
        self.recorder.definition.create_condition(default)
    }

    /// Records a conditional node. Its bodies are recorded with [`GraphBuilder::begin_into`].
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn conditional(
        &self,
        condition: Condition,
        kind: ConditionalKind,
        bodies: u32,
    ) -> Result<Vec<GraphDefinition>> {
        let (_, after) = capture_state(&self.base)?;
        let definition = &self.recorder.definition;
        // SAFETY: the driver named the nodes, and the capture keeps them.
        let (node, bodies) =
            unsafe { definition.add_conditional(&after, condition, kind, bodies)? };
        self.continue_after(node)?;
        Ok(bodies)
    }

    /// Ends the capture.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a branch, which is joined instead; `CUDA_ERROR_STREAM_CAPTURE_UNJOINED` if a
    /// branch was not joined; the error of an invalidated capture. Source: `cuStreamEndCapture`.
    pub fn end(self) -> Result<GraphDefinition> {
        self.end_shared()
    }

    /// [`GraphBuilder::end`] for a builder that others refer to as well: what they record later is refused.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::end`].
    #[doc(hidden)] // For the Python package, whose objects are shared.
    pub fn end_shared(&self) -> Result<GraphDefinition> {
        if self.role == Role::Branch {
            return Err(Error::argument(
                "GraphBuilder::end",
                "self",
                "is a branch of a split; pass it to join() of the builder that began the capture",
            ));
        }
        self.finish()?;
        Ok(self.recorder.definition.share_internally())
    }

    /// Ends the capture, once.
    fn finish(&self) -> Result<()> {
        if !self.recorder.active.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let ended = end_capture(&self.base);
        if self.role == Role::Primary {
            self.recorder.definition.captured(ended.is_ok());
        }
        self.recorder.joined.lock().clear();
        drop_released();
        ended
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
            if self.recorder.is_recording() {
                // Destroying a captured stream invalidates the capture.
                self.recorder.joined.lock().push(self.base.clone());
            }
        } else {
            // The graph is discarded, so its error does not matter.
            drop(self.finish());
        }
    }
}

fn check_idle(stream: &Stream) -> Result<()> {
    stream.check_live()?;
    if is_capturing(stream)? {
        return Err(Error::argument(
            "GraphBuilder::begin",
            "stream",
            "is being captured already; end that capture first",
        ));
    }
    Ok(())
}

fn end_capture(stream: &Stream) -> Result<()> {
    let mut graph: CUgraph = std::ptr::null_mut();
    let place = &raw mut graph;
    // SAFETY: the stream is live, `place` is valid for writes.
    let ended = stream.call(|| unsafe { driver!(cuStreamEndCapture(stream.handle(), place)) });
    ended.map_err(|error| {
        let hint = match error.status() {
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED) => {
                "a builder that split() returned was not joined: call join() first"
            }
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) => {
                "a call that the capture forbids has invalidated it; the graph is lost"
            }
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) => {
                "the thread that began the capture has to end it, unless the mode is relaxed"
            }
            _ => "",
        };
        error.with_log(hint)
    })
}

//! Definitions by stream capture.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cupyrite_sys::driver::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus,
    CUstreamUpdateCaptureDependencies_flags,
};
use parking_lot::Mutex;

use crate::error::{Error, Result, driver};
use crate::graph::callback::HostCallback;
use crate::graph::definition::{Condition, ConditionalKind, GraphDefinition};
use crate::graph::exec::Graph;
use crate::graph::in_use::drop_released;
use crate::graph::instantiate::InstantiateOptions;
use crate::graph::lock::DefinitionLock;
use crate::graph::retained::Retained;
use crate::graph::unjoined::is_unjoined;
use crate::stream::{EventOptions, GraphRecorder, Stream, StreamOptions, is_capturing};

const UNJOINED_HINT: &str = "a builder that split() returned was not joined: call join() first";

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

/// A capture and its graph. Everything that records into it does so under the lock of the definition.
#[derive(Debug)]
struct Recorder {
    definition: GraphDefinition,
    /// The driver's number of the capture.
    id: u64,
    /// Changed under the lock.
    active: AtomicBool,
    /// Whether the program has ended the capture.
    lost: AtomicBool,
    /// Whether the capture creates the graph of `definition`.
    is_primary: bool,
    /// Streams of joined branches, which live until the capture ends.
    joined: Mutex<Vec<Stream>>,
    /// Streams of branches to which nodes were added by handle, until they are joined: see [`is_unjoined`].
    branches: Mutex<Vec<Stream>>,
    shared: Shared,
}

/// The keys of [`GraphRecorder::note_retained`].
#[derive(Debug, Default)]
struct Shared {
    /// The last one: most captures launch a kernel several times in a row.
    last: AtomicUsize,
    all: Mutex<HashSet<usize>>,
}

impl GraphRecorder for Recorder {
    fn is_recording(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    fn retain(&self, value: Retained) -> Result<()> {
        if !self.is_recording() {
            return Err(self.ended());
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
            return Err(self.ended());
        }
        let found = capture_state(stream, false)?;
        if found.is_other(self.id) {
            // The graph belongs to the program now, which may destroy it.
            self.active.store(false, Ordering::Relaxed);
            self.lost.store(true, Ordering::Relaxed);
            if self.is_primary {
                self.definition.captured(false);
            }
            return Err(self.ended());
        }
        found.check_valid()
    }

    fn has_retained(&self, key: usize) -> bool {
        if self.shared.last.load(Ordering::Acquire) == key {
            return true;
        }
        let known = self.shared.all.lock().contains(&key);
        if known {
            self.shared.last.store(key, Ordering::Release);
        }
        known
    }

    fn note_retained(&self, key: usize) {
        self.shared.all.lock().insert(key);
        self.shared.last.store(key, Ordering::Release);
    }
}

impl Recorder {
    /// The error of calls after the end of the capture.
    #[cold]
    fn ended(&self) -> Error {
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

/// The capture of a stream.
struct CaptureState {
    status: CUstreamCaptureStatus,
    /// The driver's number of an active capture.
    id: u64,
    graph: CUgraph,
    /// What the next node depends on.
    after: Vec<CUgraphNode>,
}

impl CaptureState {
    /// Whether the capture with a number has ended. The driver reports no number of an invalidated capture.
    fn is_other(&self, id: u64) -> bool {
        match self.status {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => self.id != id,
            status => status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        }
    }

    /// Refuses an invalidated capture.
    fn check_valid(&self) -> Result<()> {
        if self.status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE {
            return Ok(());
        }
        Err(Error::Driver {
            call: "cuStreamGetCaptureInfo",
            status: CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            log: "a call that the capture forbids has invalidated it".to_owned(),
        })
    }
}

/// The capture of a stream. Without `whole`, graph and dependencies are not asked for.
fn capture_state(stream: &Stream, whole: bool) -> Result<CaptureState> {
    let mut status = CUstreamCaptureStatus(0);
    let mut graph: CUgraph = std::ptr::null_mut();
    let mut nodes: *const CUgraphNode = std::ptr::null();
    let mut data: *const CUgraphEdgeData = std::ptr::null();
    let (mut id, mut count) = (0, 0);
    stream.check_live()?;
    // SAFETY: the stream is live; all results are valid for writes or null.
    let asked = unsafe {
        if whole {
            driver!(cuStreamGetCaptureInfo(
                stream.handle(),
                &mut status,
                &mut id,
                &mut graph,
                &mut nodes,
                &mut data,
                &mut count
            ))
        } else {
            driver!(cuStreamGetCaptureInfo(
                stream.handle(),
                &mut status,
                &mut id,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut()
            ))
        }
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
    let after = if count == 0 {
        Vec::new()
    } else {
        // SAFETY: the driver's list of `count` nodes, valid until the next call on the stream.
        unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec()
    };
    Ok(CaptureState {
        status,
        id,
        graph,
        after,
    })
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
        let recorder = Arc::new(Recorder {
            definition,
            id,
            active: AtomicBool::new(true),
            lost: AtomicBool::new(false),
            is_primary: role == Role::Primary,
            joined: Mutex::default(),
            branches: Mutex::default(),
            shared: Shared::default(),
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
    fn lock(&self) -> Result<DefinitionLock<'_>> {
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
        let _lock = self.lock()?;
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
            return Err(Error::argument(
                "GraphBuilder::join",
                "graph_builders",
                problem,
            ));
        }
        let _lock = self.lock()?;
        for branch in branches {
            let event = branch.base.record_with(&EventOptions::default())?;
            self.base.wait(&event)?;
            let handle = branch.base.handle();
            let mut branches = self.recorder.branches.lock();
            branches.retain(|stream| stream.handle() != handle);
        }
        Ok(())
    }

    /// Records a call of a host function. The graph retains it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddHostNode`.
    pub fn host_callback(&self, callback: &HostCallback) -> Result<()> {
        let _lock = self.lock()?;
        // Added as a node: `cuLaunchHostFunc` would run the function at once if the program has ended the capture.
        let after = capture_state(&self.base, true)?.after;
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
            }?;
        }
        if self.role == Role::Branch {
            let mut branches = self.recorder.branches.lock();
            if branches.iter().all(|known| known.handle() != stream) {
                branches.push(self.base.clone());
            }
        }
        Ok(())
    }

    /// Whether a branch to which nodes were added by handle was not joined.
    fn has_unjoined_branch(&self) -> Result<bool> {
        let recorder = &*self.recorder;
        let branches = std::mem::take(&mut *recorder.branches.lock());
        let mut last = Vec::new();
        for branch in branches.iter().filter(|stream| !stream.is_destroyed()) {
            let found = capture_state(branch, true)?;
            if !found.is_other(recorder.id) {
                last.extend(found.after);
            }
        }
        if last.is_empty() {
            return Ok(false);
        }
        let end = capture_state(&self.base, true)?.after;
        Ok(is_unjoined(
            &recorder.definition.edge_handles()?,
            &end,
            &last,
        ))
    }

    /// Records a clone of another definition. The graph retains what the other one retains.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::add_child`].
    pub fn embed(&self, child: &GraphDefinition) -> Result<()> {
        let _locks = self.recorder.definition.lock_and_link(child)?;
        let _lock = self.lock()?;
        let after = capture_state(&self.base, true)?.after;
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
        let _lock = self.lock()?;
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
        let _lock = self.lock()?;
        let after = capture_state(&self.base, true)?.after;
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
    /// branch was not joined; the error of an invalidated capture; `CUDA_ERROR_ILLEGAL_STATE` if the program has ended it.
    /// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD` leaves the capture to the thread that began it. Source:
    /// `cuStreamEndCapture`.
    pub fn end(self) -> Result<GraphDefinition> {
        let ended = self.end_shared()?;
        ended.ok_or_else(|| self.recorder.ended())
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
            return Err(self.recorder.ended());
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

/// What the driver reports for other branches.
fn unjoined_branch() -> Error {
    Error::Driver {
        call: "cuStreamEndCapture",
        status: CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        log: UNJOINED_HINT.to_owned(),
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
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED) => UNJOINED_HINT,
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

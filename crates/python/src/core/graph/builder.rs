//! `GraphBuilder`.

use std::path::PathBuf;
use std::sync::Arc;

use cupyrite::graph::{CaptureMode, GraphBuilder};
use cupyrite::{Device, Stream, StreamOptions};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::errors::OrRaise;
use crate::core::graph::add::{Form, switch_form};
use crate::core::graph::arguments::{drop_graph_object, raised};
use crate::core::graph::callback as host;
use crate::core::graph::condition::{PyGraphCondition, accept_condition, condition_default};
use crate::core::graph::definition::{Definition, PyGraphDefinition, print_dot, write_dot};
use crate::core::graph::executable::PyGraph;
use crate::core::numbers::{number_argument, short_repr};
use crate::core::stream::PyStream;
use crate::cpython::gil_lock::GilLock;

/// A graph under construction by stream capture: what is queued with the builder as stream becomes part of the graph.
///
/// Builders come from :meth:`Device.create_graph_builder` and :meth:`Stream.create_graph_builder`. ``begin_building()``
/// starts the capture, ``end_building()`` ends it, and ``complete()`` returns a :class:`Graph`. The graph retains the
/// kernels, buffers and callbacks that were recorded with the builder.
///
/// See `Stream management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html>`_.
#[doc = example!("cuda.core.graph.GraphBuilder")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.graph._graph_builder",
    name = "GraphBuilder"
)]
pub struct PyGraphBuilder {
    state: GilLock<BuildState>,
}

/// Where a builder is in its life.
#[derive(Clone)]
enum BuildState {
    /// Not yet building; with the body of a conditional node into which it will build.
    Idle {
        stream: Stream,
        body: Option<Arc<Definition>>,
    },
    Building {
        builder: Arc<GraphBuilder>,
        definition: Arc<Definition>,
    },
    Ended {
        stream: Stream,
        definition: Arc<Definition>,
    },
    Closed,
}

/// A state that is dropped without the GIL.
struct DropState(Option<BuildState>);

impl Drop for DropState {
    fn drop(&mut self) {
        match self.0.take() {
            Some(BuildState::Idle { stream, body }) => {
                drop(body);
                drop_graph_object(stream);
            }
            Some(BuildState::Building {
                builder,
                definition,
            }) => {
                drop_graph_object(builder);
                drop(definition);
            }
            Some(BuildState::Ended { stream, definition }) => {
                drop(definition);
                drop_graph_object(stream);
            }
            _ => {}
        }
    }
}

impl Drop for PyGraphBuilder {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut(), BuildState::Closed);
        drop(DropState(Some(state)));
    }
}

impl BuildState {
    fn name(&self) -> &'static str {
        match self {
            BuildState::Idle { .. } => "has not begun building: call begin_building() first",
            BuildState::Building { builder, .. } if builder.is_branch() => {
                "is a branch of a split: call GraphBuilder.join() with it"
            }
            BuildState::Building { builder, .. } if builder.has_lost_capture() => {
                "lost its capture, which the program has ended with cuStreamEndCapture or cudaStreamEndCapture: create \
                 another one with create_graph_builder()"
            }
            BuildState::Building { .. } => "is still building: call end_building() first",
            BuildState::Ended { .. } => {
                "has finished building: create another one with create_graph_builder()"
            }
            BuildState::Closed => "was closed or joined",
        }
    }
}

/// Error for a builder in the wrong state.
#[cold]
fn wrong_state(function: &str, state: &BuildState) -> PyErr {
    PyRuntimeError::new_err(format!("{function}: this GraphBuilder {}", state.name()))
}

impl PyGraphBuilder {
    fn wrap(py: Python<'_>, state: BuildState) -> PyResult<Py<PyGraphBuilder>> {
        Py::new(
            py,
            PyGraphBuilder {
                state: GilLock::new(state),
            },
        )
    }

    /// A builder that captures this stream.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn of_stream(py: Python<'_>, stream: Stream) -> PyResult<Py<PyGraphBuilder>> {
        PyGraphBuilder::wrap(py, BuildState::Idle { stream, body: None })
    }

    /// A builder with a stream of its own.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn of_device(py: Python<'_>, device: Device) -> PyResult<Py<PyGraphBuilder>> {
        let stream = py
            .detach(|| device.create_stream_with(&StreamOptions::default()))
            .or_raise(py)?;
        PyGraphBuilder::of_stream(py, stream)
    }

    fn set_state(&self, py: Python<'_>, state: BuildState) {
        let former = std::mem::replace(&mut *self.state.lock(py), state);
        drop(DropState(Some(former)));
    }

    /// The capture in progress.
    fn building(
        &self,
        py: Python<'_>,
        function: &str,
    ) -> PyResult<(Arc<GraphBuilder>, Arc<Definition>)> {
        match &*self.state.lock(py) {
            BuildState::Building {
                builder,
                definition,
            } if !builder.has_lost_capture() => Ok((builder.clone(), definition.clone())),
            state => Err(wrong_state(function, state)),
        }
    }

    /// Makes a call on the capture in progress.
    fn record<T: Send>(
        &self,
        py: Python<'_>,
        function: &str,
        builder: Arc<GraphBuilder>,
        call: impl FnOnce(&GraphBuilder) -> cupyrite::Result<T> + Send,
    ) -> PyResult<T> {
        let (done, lost) = py.detach(|| {
            let done = call(&builder);
            let lost = builder.has_lost_capture();
            drop(builder);
            (done, lost)
        });
        if lost && done.is_err() {
            self.building(py, function)?;
        }
        done.map_err(|error| raised(py, function, error))
    }

    /// Replaces the state unless another thread has replaced it.
    fn replace_building(&self, py: Python<'_>, building: usize, state: BuildState) {
        let mut state = state;
        {
            let mut current = self.state.lock(py);
            if matches!(&*current, BuildState::Building { builder, .. } if Arc::as_ptr(builder).addr() == building)
            {
                std::mem::swap(&mut *current, &mut state);
            }
        }
        drop(DropState(Some(state)));
    }

    /// The definition of a builder that has finished.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for another state.
    pub fn finished(&self, py: Python<'_>, function: &str) -> PyResult<Arc<Definition>> {
        match &*self.state.lock(py) {
            BuildState::Ended { definition, .. } => Ok(definition.clone()),
            state => Err(wrong_state(function, state)),
        }
    }

    /// As [`PyGraphBuilder::finished`], of an argument.
    ///
    /// # Errors
    ///
    /// `ValueError` for a builder that has not finished building, `RuntimeError` for a closed one.
    pub fn finished_argument(&self, py: Python<'_>, what: &str) -> PyResult<Arc<Definition>> {
        match &*self.state.lock(py) {
            BuildState::Ended { definition, .. } => Ok(definition.clone()),
            state @ BuildState::Closed => Err(wrong_state(what, state)),
            state => Err(PyValueError::new_err(format!(
                "{what}: this GraphBuilder {}",
                state.name()
            ))),
        }
    }

    /// The stream for work that the graph records.
    ///
    /// # Errors
    ///
    /// `RuntimeError` unless the builder is building.
    pub fn recording_stream(&self, py: Python<'_>, function: &str) -> PyResult<Stream> {
        match &*self.state.lock(py) {
            BuildState::Building { builder, .. } if !builder.has_lost_capture() => {
                Ok(builder.stream().clone())
            }
            state => Err(wrong_state(&format!("{function}()"), state)),
        }
    }

    /// The stream, in any state.
    fn any_stream(&self, py: Python<'_>) -> PyResult<Stream> {
        match &*self.state.lock(py) {
            BuildState::Idle { stream, .. } | BuildState::Ended { stream, .. } => {
                Ok(stream.clone())
            }
            BuildState::Building { builder, .. } => Ok(builder.stream().clone()),
            state @ BuildState::Closed => Err(wrong_state("GraphBuilder.stream", state)),
        }
    }

    /// Records a conditional node; returns the builders of its bodies.
    fn conditional(
        &self,
        function: &str,
        form: Form,
        condition: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Py<PyGraphBuilder>>> {
        let py = condition.py();
        let (builder, definition) = self.building(py, function)?;
        let condition = accept_condition(condition, function)?;
        let (kind, count) = form.parts();
        let made = self.record(py, function, builder, |builder| {
            let context = builder.stream().context()?;
            let bodies = builder.conditional(condition, kind, count)?;
            let with_stream = |body| {
                let stream = Stream::new(&context, &StreamOptions::default())?;
                Ok((stream, body))
            };
            bodies
                .into_iter()
                .map(with_stream)
                .collect::<cupyrite::Result<Vec<_>>>()
        })?;
        if made.len() != count as usize {
            return Err(PyRuntimeError::new_err(format!(
                "{function}: the driver did not report the bodies of the conditional node"
            )));
        }
        made.into_iter()
            .map(|(stream, body)| {
                let body = Some(definition.nested(body));
                PyGraphBuilder::wrap(py, BuildState::Idle { stream, body })
            })
            .collect()
    }
}

/// An optional argument for which None is a value like others.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Given<'py>> {
        Ok(Given(Some(given.to_owned())))
    }
}

/// Converts the argument `mode`.
fn capture_mode(given: Option<&Bound<'_, PyAny>>) -> PyResult<CaptureMode> {
    let Some(given) = given else {
        return Ok(CaptureMode::Relaxed);
    };
    if given.is_none() {
        return Err(PyValueError::new_err(
            "GraphBuilder.begin_building() argument 'mode' is None; expected 'global', 'thread_local' or 'relaxed'",
        ));
    }
    let name = given.extract::<String>().map_err(|_| {
        let class = given.get_type().name().map(|name| name.to_string());
        PyTypeError::new_err(format!(
            "GraphBuilder.begin_building() argument 'mode' is of type {}; expected 'global', 'thread_local' or 'relaxed'",
            class.unwrap_or_default()
        ))
    })?;
    match name.as_str() {
        "global" => Ok(CaptureMode::Global),
        "thread_local" => Ok(CaptureMode::ThreadLocal),
        "relaxed" => Ok(CaptureMode::Relaxed),
        _ => Err(PyValueError::new_err(format!(
            "GraphBuilder.begin_building() argument 'mode' is {}; expected 'global', 'thread_local' or 'relaxed'",
            short_repr(given)
        ))),
    }
}

#[pymethods]
impl PyGraphBuilder {
    #[new]
    fn new() -> PyResult<PyGraphBuilder> {
        Err(PyNotImplementedError::new_err(
            "GraphBuilder cannot be instantiated; use Device.create_graph_builder() or Stream.create_graph_builder()",
        ))
    }

    /// The stream that is captured.
    #[getter]
    fn stream(&self, py: Python<'_>) -> PyResult<Py<PyStream>> {
        PyStream::wrap(py, self.any_stream(py)?)
    }

    /// ``(0, handle)``: the protocol by which libraries exchange streams.
    fn __cuda_stream__(&self, py: Python<'_>) -> PyResult<(u32, u64)> {
        let stream = self.any_stream(py)?;
        let handle = stream.handle().addr() as u64;
        drop_graph_object(stream);
        Ok((0, handle))
    }

    /// Whether the capture is in progress.
    #[getter]
    fn is_building(&self, py: Python<'_>) -> bool {
        let builder = match &*self.state.lock(py) {
            BuildState::Building { builder, .. } => builder.clone(),
            _ => return false,
        };
        py.detach(|| {
            let goes_on = builder.is_recording();
            drop(builder);
            goes_on
        })
    }

    /// Whether the builder is a branch of a split, which has to be joined.
    #[getter]
    fn is_join_required(&self, py: Python<'_>) -> bool {
        matches!(&*self.state.lock(py), BuildState::Building { builder, .. } if builder.is_branch())
    }

    /// Whether the builder was closed or joined.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        matches!(&*self.state.lock(py), BuildState::Closed)
    }

    /// The definition of the graph. The driver does not allow its use while it is captured.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     There is none before ``begin_building()``, until ``end_building()``, and after ``close()``.
    #[doc = example!("cuda.core.graph.GraphBuilder.graph_definition")]
    #[getter]
    fn graph_definition(&self, py: Python<'_>) -> PyResult<Py<PyGraphDefinition>> {
        let definition = match &*self.state.lock(py) {
            BuildState::Ended { definition, .. } => definition.clone(),
            BuildState::Idle {
                body: Some(body), ..
            } => body.clone(),
            state => return Err(wrong_state("GraphBuilder.graph_definition", state)),
        };
        PyGraphDefinition::wrap(py, definition)
    }

    /// Begins the capture.
    ///
    /// Parameters
    /// ----------
    /// mode : str
    ///     Which unsafe calls are forbidden meanwhile: ``'global'``, those of all threads; ``'thread_local'``, those of
    ///     this thread; ``'relaxed'``, none.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    ///     This builder.
    #[pyo3(signature = (mode=Given(None)), text_signature = "($self, mode='relaxed')")]
    fn begin_building<'py>(slf: &Bound<'py, Self>, mode: Given<'py>) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let mode = capture_mode(mode.0.as_ref())?;
        let this = slf.get();
        let (stream, body) = match &*this.state.lock(py) {
            BuildState::Idle { stream, body } => (stream.clone(), body.clone()),
            BuildState::Building { .. } => {
                return Err(PyRuntimeError::new_err(
                    "GraphBuilder.begin_building(): this GraphBuilder is building already: call end_building() first",
                ));
            }
            state => return Err(wrong_state("GraphBuilder.begin_building()", state)),
        };
        if let Some(body) = &body {
            body.check()?;
        }
        let core = body.as_ref().map(|body| &*body.core);
        let begun = py.detach(|| {
            let begun = match core {
                Some(body) => GraphBuilder::begin_into(&stream, body, mode),
                None => GraphBuilder::begin(&stream, mode),
            };
            drop(stream);
            begun
        });
        let builder = begun.or_raise(py)?;
        let definition = match body {
            Some(body) => body,
            // SAFETY: nodes are destroyed through the table of this definition's objects only.
            None => Definition::new(unsafe { builder.definition().share() }),
        };
        this.set_state(
            py,
            BuildState::Building {
                builder: Arc::new(builder),
                definition,
            },
        );
        Ok(slf.clone())
    }

    /// Ends the capture.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    ///     This builder.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     A branch was not joined, or the capture was invalidated. The builder can begin again.
    fn end_building<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let this = slf.get();
        let (builder, definition) = match &*this.state.lock(py) {
            BuildState::Building {
                builder,
                definition,
            } if !builder.is_branch() => (builder.clone(), definition.clone()),
            state => return Err(wrong_state("GraphBuilder.end_building()", state)),
        };
        let building = Arc::as_ptr(&builder).addr();
        let (result, stream, goes_on) = py.detach(|| {
            let result = builder.end_shared();
            let stream = builder.base_stream().clone();
            let goes_on = builder.is_recording();
            drop(builder);
            (result.map(|graph| graph.is_some()), stream, goes_on)
        });
        let ended_before = matches!(result, Ok(false));
        if goes_on || ended_before {
            // The thread that began the capture has to end it, or another thread has ended it.
            drop_graph_object(stream);
        } else {
            let state = match &result {
                Ok(_) => BuildState::Ended { stream, definition },
                // The graph of a failed capture is lost.
                Err(_) => BuildState::Idle { stream, body: None },
            };
            this.replace_building(py, building, state);
        }
        result.or_raise(py)?;
        if ended_before {
            return Err(PyRuntimeError::new_err(
                "GraphBuilder.end_building(): another thread has ended the building of this GraphBuilder",
            ));
        }
        Ok(slf.clone())
    }

    /// Instantiates the graph.
    ///
    /// Parameters
    /// ----------
    /// options : GraphCompleteOptions, optional
    ///     Options of the instantiation.
    ///
    /// Returns
    /// -------
    /// Graph
    #[doc = example!("cuda.core.graph.GraphBuilder.complete")]
    #[pyo3(signature = (options=None))]
    fn complete(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyGraph>> {
        let definition = self.finished(py, "GraphBuilder.complete()")?;
        PyGraph::instantiate(py, &definition, "GraphBuilder.complete", options)
    }

    /// Writes the graph to a file in the language DOT of Graphviz.
    ///
    /// Parameters
    /// ----------
    /// path : str
    ///     The file.
    /// options : GraphDebugPrintOptions, optional
    ///     What to write about each node.
    #[doc = example!("cuda.core.graph.GraphBuilder.debug_dot_print")]
    #[pyo3(signature = (path, options=None))]
    fn debug_dot_print(
        &self,
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        const FUNCTION: &str = "GraphBuilder.debug_dot_print";
        let definition = self.finished(py, "GraphBuilder.debug_dot_print()")?;
        write_dot(py, &definition, FUNCTION, path, options)
    }

    /// Prints the graph in the language DOT of Graphviz.
    ///
    /// Parameters
    /// ----------
    /// options : GraphDebugPrintOptions, optional
    ///     What to print about each node.
    #[doc = example!("cuda.core.graph.GraphBuilder.debug_print")]
    #[pyo3(signature = (options=None))]
    fn debug_print(&self, py: Python<'_>, options: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let definition = self.finished(py, "GraphBuilder.debug_print()")?;
        print_dot(py, &definition, "GraphBuilder.debug_print", options)
    }

    /// Splits the capture into independent branches, which continue after the present work.
    ///
    /// Parameters
    /// ----------
    /// count : int
    ///     Number of builders, from 2 on.
    ///
    /// Returns
    /// -------
    /// tuple of GraphBuilder
    ///     This builder, and new ones, which have to be joined.
    #[doc = example!("cuda.core.graph.GraphBuilder.split")]
    fn split<'py>(
        slf: &Bound<'py, Self>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        const FUNCTION: &str = "GraphBuilder.split()";
        let (builder, definition) = slf.get().building(py, FUNCTION)?;
        let count = number_argument(count, "GraphBuilder.split", "count", "a number of builders")?;
        if !(2..=1024).contains(&count) {
            return Err(PyValueError::new_err(format!(
                "GraphBuilder.split() argument 'count' is {count}; expected 2 to 1024"
            )));
        }
        let branches = slf
            .get()
            .record(py, FUNCTION, builder, |builder| builder.split(count))?;
        let mut all: Vec<Bound<'py, Self>> = vec![slf.clone()];
        for branch in branches {
            let state = BuildState::Building {
                builder: Arc::new(branch),
                definition: definition.clone(),
            };
            all.push(PyGraphBuilder::wrap(py, state)?.into_bound(py));
        }
        PyTuple::new(py, all)
    }

    /// Joins branches: later work of the result comes after the work of all. The other builders are closed.
    ///
    /// Parameters
    /// ----------
    /// *graph_builders : GraphBuilder
    ///     Builders of the same graph, at least two.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    ///     The builder that began the capture if it is among them, else the first one.
    #[doc = example!("cuda.core.graph.GraphBuilder.join")]
    #[staticmethod]
    #[pyo3(signature = (*graph_builders))]
    fn join<'py>(graph_builders: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        const FUNCTION: &str = "GraphBuilder.join()";
        let py = graph_builders.py();
        let mut given: Vec<(Bound<'py, Self>, Arc<GraphBuilder>)> = Vec::new();
        for item in graph_builders.iter() {
            let Ok(builder) = item.cast::<Self>() else {
                return Err(PyTypeError::new_err(format!(
                    "{FUNCTION} argument 'graph_builders' contains an object of type {}; expected a GraphBuilder",
                    item.get_type().name()?
                )));
            };
            if given.iter().any(|(known, _)| known.is(builder)) {
                return Err(PyValueError::new_err(format!(
                    "{FUNCTION} argument 'graph_builders' contains a builder twice"
                )));
            }
            let (core, _) = builder.get().building(py, FUNCTION)?;
            given.push((builder.clone(), core));
        }
        if given.len() < 2 {
            return Err(PyValueError::new_err(format!(
                "{FUNCTION} takes at least 2 graph builders, not {}",
                given.len()
            )));
        }
        let root = given
            .iter()
            .position(|(_, core)| !core.is_branch())
            .unwrap_or(0);
        let (root, root_core) = given.remove(root);
        let branches: Vec<&GraphBuilder> = given.iter().map(|(_, core)| &**core).collect();
        let joined = py.detach(|| root_core.join_shared(&branches));
        joined.map_err(|error| raised(py, FUNCTION, error))?;
        for (branch, core) in given {
            branch.get().set_state(py, BuildState::Closed);
            drop_graph_object(core);
        }
        Ok(root)
    }

    /// Records a clone of another graph.
    ///
    /// Parameters
    /// ----------
    /// child : GraphBuilder
    ///     A builder that has finished building.
    #[doc = example!("cuda.core.graph.GraphBuilder.embed")]
    fn embed(&self, py: Python<'_>, child: &Bound<'_, PyAny>) -> PyResult<()> {
        let (builder, _) = self.building(py, "GraphBuilder.embed()")?;
        let Ok(child) = child.cast::<Self>() else {
            return Err(PyTypeError::new_err(format!(
                "GraphBuilder.embed() argument 'child' is of type {}; expected a GraphBuilder",
                child.get_type().name()?
            )));
        };
        let child = child
            .get()
            .finished_argument(py, "GraphBuilder.embed() argument 'child'")?;
        let core = &*child.core;
        self.record(py, "GraphBuilder.embed()", builder, |builder| {
            builder.embed(core)
        })
    }

    /// Records a call of a host function. The function must not call CUDA.
    ///
    /// Parameters
    /// ----------
    /// fn : callable or ctypes function pointer
    ///     A callable without parameters, or a ``ctypes.CFUNCTYPE(None, ctypes.c_void_p)``. The graph retains it; a cycle
    ///     through a callable that owns the graph is not collected.
    /// user_data : int or bytes-like, optional
    ///     Argument of a ctypes function: an address, or bytes, which are copied.
    #[doc = example!("cuda.core.graph.GraphBuilder.callback")]
    #[pyo3(signature = (r#fn, *, user_data=None))]
    fn callback(
        &self,
        py: Python<'_>,
        r#fn: &Bound<'_, PyAny>,
        user_data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (builder, _) = self.building(py, "GraphBuilder.callback()")?;
        let callback = host::accept("GraphBuilder.callback", r#fn, user_data)?;
        self.record(py, "GraphBuilder.callback()", builder, |builder| {
            builder.host_callback(&callback)
        })
    }

    /// Creates a condition: see :meth:`GraphDefinition.create_condition`.
    #[pyo3(signature = (default_value=None))]
    fn create_condition(
        &self,
        py: Python<'_>,
        default_value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGraphCondition> {
        let (builder, _) = self.building(py, "GraphBuilder.create_condition()")?;
        let default = condition_default(default_value, "GraphBuilder.create_condition")?;
        let condition = self.record(py, "GraphBuilder.create_condition()", builder, |builder| {
            builder.create_condition(default)
        })?;
        Ok(PyGraphCondition { condition })
    }

    /// Records a node that runs its body if the condition is not 0.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    ///     The builder of the body.
    #[doc = example!("cuda.core.graph.GraphBuilder.if_then")]
    fn if_then(&self, condition: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyGraphBuilder>>> {
        let made = self.conditional("GraphBuilder.if_then()", Form::IfThen, condition)?;
        Ok(made.into_iter().next())
    }

    /// Records a node that runs its first body if the condition is not 0, else the second one.
    ///
    /// Returns
    /// -------
    /// tuple of GraphBuilder
    ///     The builders of both bodies.
    #[doc = example!("cuda.core.graph.GraphBuilder.if_else")]
    fn if_else<'py>(&self, condition: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let made = self.conditional("GraphBuilder.if_else()", Form::IfElse, condition)?;
        PyTuple::new(condition.py(), made)
    }

    /// Records a node that runs the body whose index is the condition's value, if there is one.
    ///
    /// Parameters
    /// ----------
    /// condition : GraphCondition
    ///     The condition.
    /// count : int
    ///     Number of bodies.
    ///
    /// Returns
    /// -------
    /// tuple of GraphBuilder
    ///     The builders of the bodies.
    #[doc = example!("cuda.core.graph.GraphBuilder.switch")]
    fn switch<'py>(
        &self,
        condition: &Bound<'py, PyAny>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let form = switch_form("GraphBuilder.switch", count)?;
        let made = self.conditional("GraphBuilder.switch()", form, condition)?;
        PyTuple::new(condition.py(), made)
    }

    /// Records a node that repeats its body as long as the condition is not 0.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    ///     The builder of the body.
    #[doc = example!("cuda.core.graph.GraphBuilder.while_loop")]
    fn while_loop(&self, condition: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyGraphBuilder>>> {
        let made = self.conditional("GraphBuilder.while_loop()", Form::While, condition)?;
        Ok(made.into_iter().next())
    }

    /// Releases the builder. A capture in progress is discarded.
    fn close(&self, py: Python<'_>) {
        self.set_state(py, BuildState::Closed);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match &*self.state.lock(py) {
            BuildState::Idle { .. } => "idle",
            BuildState::Building { .. } => "building",
            BuildState::Ended { .. } => "finished",
            BuildState::Closed => "closed",
        };
        format!("<GraphBuilder {state}>")
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyGraphBuilder>()
}

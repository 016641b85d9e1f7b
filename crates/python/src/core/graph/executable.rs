//! `Graph`, and the views by which its nodes are updated.

use std::sync::{Arc, Weak};

use cupyrite::graph::{Graph, GraphDefinition, MemcpyParams, MemsetParams, NodeKind};
use cupyrite::sys::driver::CUgraphNode;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::closable::{Closable, closed};
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::event;
use crate::core::graph::add::{PackedPointers, launch_arguments, pattern, rows};
use crate::core::graph::arguments::{
    NodeOperand, drop_graph_object, retain_owners, with_arguments,
};
use crate::core::graph::builder::PyGraphBuilder;
use crate::core::graph::callback as host;
use crate::core::graph::definition::{self, Definition, PyGraphDefinition};
use crate::core::graph::node::PyGraphNode;
use crate::core::graph::options;
use crate::core::graph::subclasses::sequence;
use crate::core::notebook;
use crate::core::numbers::size_argument;
use crate::core::stream;
use crate::generated::driver_types::class;

/// An instantiated graph.
///
/// Graphs come from :meth:`GraphBuilder.complete` and :meth:`GraphDefinition.instantiate`. A graph owns what its nodes
/// use until it is closed or garbage-collected and its launches are done. ``graph[node]`` is a view by which a node of
/// the definition is updated for later launches.
#[doc = example!("cuda.core.graph.Graph")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.graph._graph_builder",
    name = "Graph"
)]
pub struct PyGraph {
    cell: Closable<Graph>,
    /// What notebooks draw. Not owned: the graph lives on without it.
    definition: Weak<Definition>,
}

impl Drop for PyGraph {
    fn drop(&mut self) {
        if let Some(graph) = self.cell.take() {
            drop_graph_object(graph);
        }
    }
}

impl PyGraph {
    /// Instantiates a definition.
    ///
    /// # Errors
    ///
    /// Driver errors; `TypeError` for invalid options.
    pub fn instantiate(
        py: Python<'_>,
        definition: &Arc<Definition>,
        function: &str,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyGraph>> {
        let options = options::complete(function, options)?;
        definition.check()?;
        let core = &*definition.core;
        let graph = py.detach(|| {
            let made = core.instantiate(&options);
            // Dropped here: it may be the last clone of a stream.
            drop(options);
            made
        });
        Py::new(
            py,
            PyGraph {
                cell: Closable::new(graph.or_raise(py)?),
                definition: Arc::downgrade(definition),
            },
        )
    }

    /// Makes a call on the graph in a detached section.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Graph) -> cupyrite::Result<T> + Send,
    ) -> PyResult<T> {
        let graph = self.cell.get(py, "Graph")?;
        py.detach(|| {
            let done = call(&graph);
            // It is the last clone if another thread has closed the graph.
            drop(graph);
            done
        })
        .or_raise(py)
    }
}

#[pymethods]
impl PyGraph {
    #[new]
    fn new() -> PyResult<PyGraph> {
        Err(PyRuntimeError::new_err(
            "Graph cannot be instantiated; use GraphBuilder.complete() or GraphDefinition.instantiate()",
        ))
    }

    /// Driver handle, a ``cuda.bindings.driver.CUgraphExec``; 0 if the graph was closed.
    ///
    /// A program that takes it may launch the graph with calls of the driver. What the graph retains is released after a later
    /// :meth:`Device.sync <cuda.core.Device.sync>` then, because the streams of such launches are unknown.
    #[doc = example!("cuda.core.graph.Graph.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let address = self.cell.read(py, |graph| graph.handle().addr());
        handle_object(py, class::CUgraphExec, address.unwrap_or(0))
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// Launches the graph. Launches of a graph run one after the other, also in different streams.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream or GraphBuilder
    ///     The stream. NVIDIA's driver does not record launches of graphs: for a graph builder, use
    ///     :meth:`GraphBuilder.embed`.
    #[doc = example!("cuda.core.graph.Graph.launch")]
    fn launch(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let stream = stream::lend(stream, "Graph.launch", "stream", false)?;
        let stream = &*stream;
        self.call(py, |graph| graph.launch(stream))
    }

    /// Prepares the first launch, in a stream.
    fn upload(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let stream = stream::lend(stream, "Graph.upload", "stream", false)?;
        let stream = &*stream;
        self.call(py, |graph| graph.upload(stream))
    }

    /// Replaces the parameters of all nodes for later launches.
    ///
    /// Parameters
    /// ----------
    /// source : GraphBuilder or GraphDefinition
    ///     A graph with the same nodes and edges. A builder must have finished building.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     The driver refuses the update; the message has its reason and the type of the node.
    #[doc = example!("cuda.core.graph.Graph.update")]
    fn update(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let definition: Arc<Definition> = if let Ok(builder) = source.cast::<PyGraphBuilder>() {
            builder
                .get()
                .finished_argument(py, "Graph.update() argument 'source'")?
        } else if let Ok(given) = source.cast::<PyGraphDefinition>() {
            given.get().definition.clone()
        } else {
            return Err(PyTypeError::new_err(format!(
                "Graph.update() argument 'source' is of type {}; expected a GraphBuilder or a GraphDefinition",
                source.get_type().name()?
            )));
        };
        definition.check()?;
        let core = &*definition.core;
        self.call(py, |graph| graph.update(core))
    }

    /// Releases the graph. Its launches complete.
    fn close(&self, py: Python<'_>) {
        if let Some(graph) = self.cell.close(py) {
            py.detach(|| drop(graph));
        }
    }

    fn __getitem__(slf: &Bound<'_, Self>, node: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if slf.get().cell.is_closed(py) {
            return Err(closed("Graph"));
        }
        let Ok(given) = node.cast::<PyGraphNode>() else {
            return Err(PyTypeError::new_err(format!(
                "a Graph is indexed by nodes of its definition, not by {}",
                node.get_type().name()?
            )));
        };
        let (definition, _) = given.get().real()?;
        let core = &*definition.core;
        let known = slf.get().cell.read(py, |graph| graph.is_instance_of(core));
        if known == Some(false) {
            return Err(PyValueError::new_err(
                "the node belongs to another definition than the one this Graph was instantiated from",
            ));
        }
        // SAFETY: the node is live.
        let kind = given
            .get()
            .with_locked(py, |core, _, node| unsafe { core.kind_of(node) })?;
        let base = PyClassInitializer::from(PyExecutableGraphNode {
            graph: slf.clone().unbind(),
            node: given.clone().unbind(),
        });
        /// Creates an object of a class.
        macro_rules! make {
            ($class:expr) => {
                Ok(Py::new(py, base.add_subclass($class))?.into_any())
            };
        }
        match kind {
            NodeKind::CU_GRAPH_NODE_TYPE_KERNEL => make!(PyExecutableKernelNode),
            NodeKind::CU_GRAPH_NODE_TYPE_MEMCPY => make!(PyExecutableMemcpyNode),
            NodeKind::CU_GRAPH_NODE_TYPE_MEMSET => make!(PyExecutableMemsetNode),
            NodeKind::CU_GRAPH_NODE_TYPE_HOST => make!(PyExecutableHostCallbackNode),
            NodeKind::CU_GRAPH_NODE_TYPE_GRAPH => make!(PyExecutableChildGraphNode),
            NodeKind::CU_GRAPH_NODE_TYPE_EVENT_RECORD => make!(PyExecutableEventRecordNode),
            NodeKind::CU_GRAPH_NODE_TYPE_WAIT_EVENT => make!(PyExecutableEventWaitNode),
            _ => Ok(Py::new(py, base)?.into_any()),
        }
    }

    /// HTML for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let definition = slf.get().definition.upgrade();
        let definition = definition
            .map(|known| PyGraphDefinition::wrap(py, known))
            .transpose()?;
        notebook::html(py, "graph", (slf, definition))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let address = self.cell.read(py, |graph| graph.address());
        format!("<Graph handle={:#x}>", address.unwrap_or(0))
    }
}

/// A node of an instantiated graph: ``graph[node]``.
#[doc = example!("cuda.core.graph.ExecutableGraphNode")]
#[pyclass(
    frozen,
    subclass,
    module = "cuda.core.graph._subclasses",
    name = "ExecutableGraphNode"
)]
pub struct PyExecutableGraphNode {
    graph: Py<PyGraph>,
    node: Py<PyGraphNode>,
}

/// The error of the constructors.
fn not_constructible<T>(class: &str) -> PyResult<T> {
    Err(PyRuntimeError::new_err(format!(
        "{class} cannot be instantiated; use graph[node]"
    )))
}

impl PyExecutableGraphNode {
    /// Makes a call on graph and node in a detached section.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Graph, CUgraphNode) -> cupyrite::Result<T> + Send,
    ) -> PyResult<T> {
        self.call_with(py, None, call)
    }

    /// [`PyExecutableGraphNode::call`] that uses another definition as well.
    fn call_with<T: Send>(
        &self,
        py: Python<'_>,
        other: Option<&GraphDefinition>,
        call: impl FnOnce(&Graph, CUgraphNode) -> cupyrite::Result<T> + Send,
    ) -> PyResult<T> {
        let (definition, node) = self.node.get().real()?;
        let core = &*definition.core;
        self.graph.get().call(py, |graph| {
            let _locks = other.map(|other| core.lock_with(other)).transpose()?;
            let lock = core.lock()?;
            call(graph, node.get(&lock)?)
        })
    }

    fn set_enabled(&self, py: Python<'_>, enabled: bool) -> PyResult<()> {
        // SAFETY: the node is valid; the driver refuses one of another definition. The same holds for the other calls.
        self.call(py, |graph, node| unsafe {
            graph.set_enabled(node, enabled)
        })
    }

    fn is_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        // SAFETY: the node is valid; the driver refuses one of another definition.
        self.call(py, |graph, node| unsafe { graph.is_enabled(node) })
    }

    fn set_event(&self, py: Python<'_>, given: &Bound<'_, PyAny>, recorded: bool) -> PyResult<()> {
        let function = if recorded {
            "ExecutableEventRecordNode.update"
        } else {
            "ExecutableEventWaitNode.update"
        };
        let event = event::accept(given, function, "event")?;
        let event = event.get().lend(py)?;
        let event = &*event;
        // SAFETY: the node is valid, and the event is lent for this call.
        self.call(py, |graph, node| unsafe {
            graph.set_event(node, event, recorded)
        })
    }
}

#[pymethods]
impl PyExecutableGraphNode {
    #[new]
    fn new() -> PyResult<PyExecutableGraphNode> {
        not_constructible("ExecutableGraphNode")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let py = slf.py();
        let graph = slf.get().graph.get();
        let address = graph.cell.read(py, |graph| graph.address());
        Ok(format!(
            "<{} graph={:#x} node={}>",
            slf.get_type().name()?,
            address.unwrap_or(0),
            slf.get().node.bind(py).repr()?
        ))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.graph)?;
        visit.call(&self.node)
    }
}

/// A class of views.
macro_rules! view_class {
    ($(#[$doc:meta])* $class:ident = $name:literal) => {
        $(#[$doc])*
        #[pyclass(
            frozen,
            extends = PyExecutableGraphNode,
            module = "cuda.core.graph._subclasses",
            name = $name
        )]
        pub struct $class;
    };
}

view_class! {
    /// A kernel launch of an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableKernelNode")]
    PyExecutableKernelNode = "ExecutableKernelNode"
}
view_class! {
    /// A copy of an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableMemcpyNode")]
    PyExecutableMemcpyNode = "ExecutableMemcpyNode"
}
view_class! {
    /// A fill of an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableMemsetNode")]
    PyExecutableMemsetNode = "ExecutableMemsetNode"
}
view_class! {
    /// A host callback of an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableHostCallbackNode")]
    PyExecutableHostCallbackNode = "ExecutableHostCallbackNode"
}
view_class! {
    /// A child graph of an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableChildGraphNode")]
    PyExecutableChildGraphNode = "ExecutableChildGraphNode"
}
view_class! {
    /// A record of an event in an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableEventRecordNode")]
    PyExecutableEventRecordNode = "ExecutableEventRecordNode"
}
view_class! {
    /// A wait for an event in an instantiated graph.
    #[doc = example!("cuda.core.graph.ExecutableEventWaitNode")]
    PyExecutableEventWaitNode = "ExecutableEventWaitNode"
}

#[pymethods]
impl PyExecutableKernelNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableKernelNode")
    }

    /// Whether the node runs.
    #[getter]
    fn is_enabled(slf: &Bound<'_, Self>) -> PyResult<bool> {
        slf.as_super().get().is_enabled(slf.py())
    }

    /// Lets the node run in later launches.
    fn enable(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().set_enabled(slf.py(), true)
    }

    /// Makes later launches skip the node.
    fn disable(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().set_enabled(slf.py(), false)
    }

    /// Replaces the launch.
    ///
    /// Parameters
    /// ----------
    /// config : LaunchConfig
    ///     The launch configuration, without cluster and not cooperative.
    /// kernel : Kernel
    ///     The kernel.
    /// args : sequence
    ///     All arguments.
    #[pyo3(signature = (*, config, kernel, args))]
    fn update(
        slf: &Bound<'_, Self>,
        config: &Bound<'_, PyAny>,
        kernel: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        const FUNCTION: &str = "ExecutableKernelNode.update";
        let py = slf.py();
        let (config, kernel) = launch_arguments(FUNCTION, config, kernel)?;
        let args = match args.cast::<PyTuple>() {
            Ok(args) => args.clone(),
            Err(_) => sequence(FUNCTION, "args", Some(args))?.into_bound(py),
        };
        let kernel = kernel.get().get();
        with_arguments(FUNCTION, kernel, &args, |pointers, value| {
            let pointers = PackedPointers::of(pointers);
            // SAFETY: see above; one address per argument.
            slf.as_super().get().call(py, |graph, node| unsafe {
                graph.set_kernel(node, kernel, &config, pointers.get(), value)
            })
        })
    }
}

#[pymethods]
impl PyExecutableMemcpyNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableMemcpyNode")
    }

    /// Whether the node runs.
    #[getter]
    fn is_enabled(slf: &Bound<'_, Self>) -> PyResult<bool> {
        slf.as_super().get().is_enabled(slf.py())
    }

    /// Lets the node run in later launches.
    fn enable(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().set_enabled(slf.py(), true)
    }

    /// Makes later launches skip the node.
    fn disable(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().set_enabled(slf.py(), false)
    }

    /// Replaces the copy.
    ///
    /// Parameters
    /// ----------
    /// dst, src : Buffer or int
    ///     Destination and source. The graph retains buffers.
    /// size : int
    ///     Number of bytes.
    #[pyo3(signature = (*, dst, src, size))]
    fn update(
        slf: &Bound<'_, Self>,
        dst: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        const FUNCTION: &str = "ExecutableMemcpyNode.update";
        let bytes = size_argument(size, FUNCTION)?;
        let dst = NodeOperand::accept(dst, None, FUNCTION, "dst")?;
        let src = NodeOperand::accept(src, None, FUNCTION, "src")?;
        dst.check_size(bytes, FUNCTION, "dst")?;
        src.check_size(bytes, FUNCTION, "src")?;
        let params = MemcpyParams {
            destination: dst.address,
            source: src.address,
            bytes,
        };
        let value = retain_owners(vec![dst.owner, src.owner]);
        // SAFETY: see above; the caller guarantees that the addresses are valid.
        slf.as_super().get().call(slf.py(), |graph, node| unsafe {
            graph.set_memcpy(node, params, value)
        })
    }
}

#[pymethods]
impl PyExecutableMemsetNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableMemsetNode")
    }

    /// Whether the node runs.
    #[getter]
    fn is_enabled(slf: &Bound<'_, Self>) -> PyResult<bool> {
        slf.as_super().get().is_enabled(slf.py())
    }

    /// Lets the node run in later launches.
    fn enable(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().set_enabled(slf.py(), true)
    }

    /// Makes later launches skip the node.
    fn disable(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().set_enabled(slf.py(), false)
    }

    /// Replaces the fill.
    ///
    /// Parameters
    /// ----------
    /// dst, value, width, height, pitch
    ///     As in :meth:`GraphNode.memset`.
    #[pyo3(signature = (*, dst, value, width, height=None, pitch=None),
           text_signature = "($self, *, dst, value, width, height=1, pitch=0)")]
    fn update(
        slf: &Bound<'_, Self>,
        dst: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        height: Option<&Bound<'_, PyAny>>,
        pitch: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        const FUNCTION: &str = "ExecutableMemsetNode.update";
        let [width, height, pitch] = rows(FUNCTION, [Some(width), height, pitch])?;
        let element = pattern(FUNCTION, value)?;
        let dst = NodeOperand::accept(dst, None, FUNCTION, "dst")?;
        let params = MemsetParams {
            destination: dst.address,
            value: element,
            width: width.unwrap_or(0),
            height: height.unwrap_or(1),
            pitch: pitch.unwrap_or(0),
        };
        dst.check_fill(&params, FUNCTION)?;
        let owner = retain_owners(vec![dst.owner]);
        // SAFETY: see above; the caller guarantees that the address is valid.
        slf.as_super().get().call(slf.py(), |graph, node| unsafe {
            graph.set_memset(node, params, owner)
        })
    }
}

#[pymethods]
impl PyExecutableHostCallbackNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableHostCallbackNode")
    }

    /// Replaces the host function: see :meth:`GraphNode.callback`.
    #[pyo3(signature = (r#fn, *, user_data=None))]
    fn update(
        slf: &Bound<'_, Self>,
        r#fn: &Bound<'_, PyAny>,
        user_data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let callback = host::accept("ExecutableHostCallbackNode.update", r#fn, user_data)?;
        // SAFETY: the node is valid, and the executable graph keeps the callback alive.
        slf.as_super().get().call(slf.py(), |graph, node| unsafe {
            graph.set_callback(node, &callback)
        })
    }
}

#[pymethods]
impl PyExecutableChildGraphNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableChildGraphNode")
    }

    /// Replaces the child graph by one with the same nodes and edges.
    fn update(slf: &Bound<'_, Self>, child: &Bound<'_, PyAny>) -> PyResult<()> {
        let child = definition::accept(child, "ExecutableChildGraphNode.update", "child")?;
        let child = &*child.core;
        let view = slf.as_super().get();
        // SAFETY: the node is valid, and the child definition is live during this call.
        view.call_with(slf.py(), Some(child), |graph, node| unsafe {
            graph.set_child(node, child)
        })
    }
}

#[pymethods]
impl PyExecutableEventRecordNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableEventRecordNode")
    }

    /// Replaces the event.
    fn update(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.as_super().get().set_event(slf.py(), event, true)
    }
}

#[pymethods]
impl PyExecutableEventWaitNode {
    #[new]
    fn new() -> PyResult<PyClassInitializer<Self>> {
        not_constructible("ExecutableEventWaitNode")
    }

    /// Replaces the event.
    fn update(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.as_super().get().set_event(slf.py(), event, false)
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyGraph>()?;
    core.add_class::<PyExecutableGraphNode>()?;
    core.add_class::<PyExecutableKernelNode>()?;
    core.add_class::<PyExecutableMemcpyNode>()?;
    core.add_class::<PyExecutableMemsetNode>()?;
    core.add_class::<PyExecutableHostCallbackNode>()?;
    core.add_class::<PyExecutableChildGraphNode>()?;
    core.add_class::<PyExecutableEventRecordNode>()?;
    core.add_class::<PyExecutableEventWaitNode>()
}

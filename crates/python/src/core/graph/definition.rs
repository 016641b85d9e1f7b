//! `GraphDefinition`, and the table of node objects.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cupyrite::graph::{ConditionalKind, DefinitionLock, GraphDefinition, NodeKind, NodeStamp};
use cupyrite::sys::driver::CUgraphNode;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PySet, PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::graph::add::{self, Anchor};
use crate::core::graph::arguments::GraphObject;
use crate::core::graph::condition::{PyGraphCondition, condition_default};
use crate::core::graph::executable::PyGraph;
use crate::core::graph::node::PyGraphNode;
use crate::core::graph::options;
use crate::core::notebook;
use crate::generated::driver_types::class;

/// A definition, with the objects of its nodes.
pub struct Definition {
    /// The definition.
    pub core: GraphObject<GraphDefinition>,
    nodes: Arc<NodeTable>,
}

/// The node objects of a definition and of the graphs nested in it, by handle. The table does not keep them alive.
#[derive(Default)]
pub struct NodeTable {
    entries: Mutex<HashMap<usize, NodeEntry>>,
}

struct NodeEntry {
    object: Py<PyWeakrefReference>,
    serial: u64,
}

static SERIAL: AtomicU64 = AtomicU64::new(1);

impl NodeTable {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<usize, NodeEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a new node object.
    pub fn next_serial() -> u64 {
        SERIAL.fetch_add(1, Ordering::Relaxed)
    }

    /// The object of a node, if it is alive.
    fn find(&self, py: Python<'_>, node: usize) -> Option<Py<PyAny>> {
        let object = self
            .lock()
            .get(&node)
            .map(|entry| entry.object.clone_ref(py))?;
        let object = object.bind(py).upgrade()?;
        // The node, or that of its graph, may have been destroyed, and a new node has the handle.
        let stale = object
            .cast::<PyGraphNode>()
            .is_ok_and(|node| !node.get().is_valid());
        (!stale).then(|| object.unbind())
    }

    /// Adds the object of a node.
    fn add(
        &self,
        py: Python<'_>,
        node: usize,
        object: &Bound<'_, PyAny>,
        serial: u64,
    ) -> PyResult<()> {
        let object = PyWeakrefReference::new(object)?.unbind();
        let former = self.lock().insert(node, NodeEntry { object, serial });
        // Dropped without the lock.
        let _ = py;
        drop(former);
        Ok(())
    }

    /// Removes the object of a node, unless another one has taken its place.
    pub fn remove(&self, node: usize, serial: u64) {
        let removed = {
            let mut entries = self.lock();
            match entries.get(&node) {
                Some(entry) if entry.serial == serial => entries.remove(&node),
                _ => None,
            }
        };
        drop(removed);
    }
}

impl Definition {
    /// A definition whose nodes have no objects yet.
    pub fn new(core: GraphDefinition) -> Arc<Definition> {
        Arc::new(Definition {
            core: GraphObject::new(core),
            nodes: Arc::default(),
        })
    }

    /// A graph nested in this definition.
    pub fn nested(&self, core: GraphDefinition) -> Arc<Definition> {
        Arc::new(Definition {
            core: GraphObject::new(core),
            nodes: self.nodes.clone(),
        })
    }

    /// The table of node objects.
    pub fn table(&self) -> &NodeTable {
        &self.nodes
    }

    /// The object of a node: the present one, or a new one of the class for its type.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn node_object(self: &Arc<Self>, py: Python<'_>, node: TypedNode) -> PyResult<Py<PyAny>> {
        if let Some(known) = self.nodes.find(py, node.named.address()) {
            return Ok(known);
        }
        crate::core::graph::subclasses::wrap(py, self, node)
    }

    /// Registers the object of a node.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn register(
        &self,
        py: Python<'_>,
        node: usize,
        object: &Bound<'_, PyAny>,
        serial: u64,
    ) -> PyResult<()> {
        self.nodes.add(py, node, object, serial)
    }

    /// An error if the definition no longer exists.
    ///
    /// # Errors
    ///
    /// `RuntimeError`.
    pub fn check(&self) -> PyResult<()> {
        if self.core.exists() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "this GraphDefinition is not valid: it or the node to which it belongs was destroyed by the program, or its capture failed",
        ))
    }
}

/// A graph under construction: nodes and their dependencies.
///
/// Nodes are added by methods of the definition, without dependencies, or of a node, after that node. A node retains its
/// kernel, buffers, event or callback until the definition, the graphs instantiated from it and their launches are done.
/// :meth:`instantiate` returns a :class:`Graph`, which can be launched.
///
/// Definitions are equal if their handles are.
///
/// See `Graph management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html>`_.
#[doc = example!("cuda.core.graph.GraphDefinition")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.graph._graph_definition",
    name = "GraphDefinition"
)]
pub struct PyGraphDefinition {
    /// The definition.
    pub definition: Arc<Definition>,
}

impl PyGraphDefinition {
    /// Creates the object of a definition.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn wrap(py: Python<'_>, definition: Arc<Definition>) -> PyResult<Py<PyGraphDefinition>> {
        Py::new(py, PyGraphDefinition { definition })
    }

    fn anchor(&self) -> PyResult<Anchor<'_>> {
        self.definition.check()?;
        Ok(Anchor {
            definition: &self.definition,
            after: None,
            class: "GraphDefinition",
        })
    }
}

/// Converts an argument to a definition.
///
/// # Errors
///
/// `TypeError` for other types, `RuntimeError` for a definition that no longer exists.
pub fn accept(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
) -> PyResult<Arc<Definition>> {
    let Ok(definition) = given.cast::<PyGraphDefinition>() else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected a GraphDefinition",
            given.get_type().name()?
        )));
    };
    let definition = definition.get().definition.clone();
    definition.check()?;
    Ok(definition)
}

/// Writes a definition to a file in the language DOT.
///
/// # Errors
///
/// Driver errors, `TypeError` for an invalid path.
pub fn write_dot(
    py: Python<'_>,
    definition: &Definition,
    function: &str,
    path: PathBuf,
    options: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let options = options::debug(function, options)?;
    definition.check()?;
    py.detach(|| definition.core.write_dot(&path, options))
        .or_raise(py)
}

/// Prints a definition in the language DOT.
///
/// # Errors
///
/// As [`write_dot`].
pub fn print_dot(
    py: Python<'_>,
    definition: &Definition,
    function: &str,
    options: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let folder = py.import("tempfile")?.call_method0("TemporaryDirectory")?;
    let path: PathBuf = folder.getattr("name")?.extract()?;
    let path = path.join("graph.dot");
    let done = write_dot(py, definition, function, path.clone(), options)
        .and_then(|()| Ok(std::fs::read_to_string(&path)?));
    folder.call_method0("cleanup")?;
    py.import("builtins")?.call_method1("print", (done?,))?;
    Ok(())
}

#[pymethods]
impl PyGraphDefinition {
    #[new]
    fn new(py: Python<'_>) -> PyResult<PyGraphDefinition> {
        let core = py.detach(GraphDefinition::new).or_raise(py)?;
        Ok(PyGraphDefinition {
            definition: Definition::new(core),
        })
    }

    /// Driver handle, a ``cuda.bindings.driver.CUgraph``; 0 if the graph no longer exists.
    #[doc = example!("cuda.core.graph.GraphDefinition.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let core = &*self.definition.core;
        let address = py.detach(|| match core.exists() {
            true => core.handle().addr(),
            false => 0,
        });
        handle_object(py, class::CUgraph, address)
    }

    /// Whether the graph exists: False after the node to which it belongs was destroyed, and after a failed capture.
    #[getter]
    fn is_valid(&self) -> bool {
        self.definition.core.exists()
    }

    /// The entry point: a node without handle, on which all others may depend.
    #[getter]
    fn _entry(&self, py: Python<'_>) -> PyResult<Py<PyGraphNode>> {
        PyGraphNode::entry(py, self.definition.clone())
    }

    /// All nodes.
    ///
    /// Returns
    /// -------
    /// set of GraphNode
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        self.definition.check()?;
        let core = &self.definition.core;
        let found = py.detach(|| {
            let lock = core.lock()?;
            TypedNode::all(core, &lock, core.node_handles()?)
        });
        let set = PySet::empty(py)?;
        for node in found.or_raise(py)? {
            set.add(self.definition.node_object(py, node)?)?;
        }
        Ok(set)
    }

    /// All edges.
    ///
    /// Returns
    /// -------
    /// set of tuple of GraphNode
    ///     The node that runs first, and the one that waits for it.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        self.definition.check()?;
        let core = &self.definition.core;
        let found = py.detach(|| -> cupyrite::Result<Vec<[TypedNode; 2]>> {
            let lock = core.lock()?;
            let typed = |(from, to)| {
                // SAFETY: the driver has just named both nodes.
                unsafe {
                    Ok([
                        TypedNode::of(core, &lock, from)?,
                        TypedNode::of(core, &lock, to)?,
                    ])
                }
            };
            core.edge_handles()?.into_iter().map(typed).collect()
        });
        let set = PySet::empty(py)?;
        for [from, to] in found.or_raise(py)? {
            let from = self.definition.node_object(py, from)?;
            let to = self.definition.node_object(py, to)?;
            set.add((from, to))?;
        }
        Ok(set)
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
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     The driver refuses the graph; the message has its reason.
    #[doc = example!("cuda.core.graph.GraphDefinition.instantiate")]
    #[pyo3(signature = (options=None))]
    fn instantiate(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyGraph>> {
        PyGraph::instantiate(py, &self.definition, "GraphDefinition.instantiate", options)
    }

    /// Writes the graph to a file in the language DOT of Graphviz.
    ///
    /// Parameters
    /// ----------
    /// path : str
    ///     The file.
    /// options : GraphDebugPrintOptions, optional
    ///     What to write about each node.
    #[doc = example!("cuda.core.graph.GraphDefinition.debug_dot_print")]
    #[pyo3(signature = (path, options=None))]
    fn debug_dot_print(
        &self,
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        write_dot(
            py,
            &self.definition,
            "GraphDefinition.debug_dot_print",
            path,
            options,
        )
    }

    /// Creates a condition for conditional nodes.
    ///
    /// Parameters
    /// ----------
    /// default_value : int, optional
    ///     Value at the start of each launch. Default: undefined until device code sets it.
    ///
    /// Returns
    /// -------
    /// GraphCondition
    #[pyo3(signature = (default_value=None))]
    fn create_condition(
        &self,
        py: Python<'_>,
        default_value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGraphCondition> {
        self.definition.check()?;
        let default = condition_default(default_value, "GraphDefinition.create_condition")?;
        let core = &self.definition.core;
        let condition = py.detach(|| core.create_condition(default)).or_raise(py)?;
        Ok(PyGraphCondition { condition })
    }

    /// Adds a node without work and without dependencies.
    #[doc = example!("cuda.core.graph.GraphDefinition.empty")]
    fn empty(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        add::empty(py, &self.anchor()?)
    }

    /// Adds a kernel launch without dependencies: see :meth:`GraphNode.launch`.
    #[doc = example!("cuda.core.graph.GraphDefinition.launch")]
    #[pyo3(signature = (config, kernel, *args))]
    fn launch(
        &self,
        config: &Bound<'_, PyAny>,
        kernel: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        add::launch(&self.anchor()?, config, kernel, args)
    }

    /// Adds a copy without dependencies: see :meth:`GraphNode.memcpy`.
    #[doc = example!("cuda.core.graph.GraphDefinition.memcpy")]
    #[pyo3(signature = (dst, src, size, *, dst_owner=None, src_owner=None))]
    fn memcpy(
        &self,
        dst: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        dst_owner: Option<&Bound<'_, PyAny>>,
        src_owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        add::memcpy(&self.anchor()?, dst, src, size, dst_owner, src_owner)
    }

    /// Adds a fill without dependencies: see :meth:`GraphNode.memset`.
    #[doc = example!("cuda.core.graph.GraphDefinition.memset")]
    #[pyo3(signature = (dst, value, width, height=None, pitch=None, *, dst_owner=None),
           text_signature = "($self, dst, value, width, height=1, pitch=0, *, dst_owner=None)")]
    fn memset(
        &self,
        dst: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        height: Option<&Bound<'_, PyAny>>,
        pitch: Option<&Bound<'_, PyAny>>,
        dst_owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        add::memset(
            &self.anchor()?,
            dst,
            value,
            [Some(width), height, pitch],
            dst_owner,
        )
    }

    /// Adds a memory allocation without dependencies: see :meth:`GraphNode.allocate`.
    #[doc = example!("cuda.core.graph.GraphDefinition.allocate")]
    #[pyo3(signature = (size, *, device=None, memory_type=None, peer_access=None),
           text_signature = "($self, size, *, device=None, memory_type='device', peer_access=None)")]
    fn allocate(
        &self,
        size: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
        memory_type: Option<&Bound<'_, PyAny>>,
        peer_access: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        add::allocate(&self.anchor()?, size, device, memory_type, peer_access)
    }

    /// Adds a deallocation without dependencies: see :meth:`GraphNode.deallocate`.
    #[doc = example!("cuda.core.graph.GraphDefinition.deallocate")]
    fn deallocate(&self, dptr: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::deallocate(&self.anchor()?, dptr)
    }

    /// Adds a host callback without dependencies: see :meth:`GraphNode.callback`.
    #[doc = example!("cuda.core.graph.GraphDefinition.callback")]
    #[pyo3(signature = (r#fn, *, user_data=None))]
    fn callback(
        &self,
        r#fn: &Bound<'_, PyAny>,
        user_data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        add::callback(&self.anchor()?, r#fn, user_data)
    }

    /// Adds a record of an event without dependencies: see :meth:`GraphNode.record`.
    #[doc = example!("cuda.core.graph.GraphDefinition.record")]
    fn record(&self, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::event(&self.anchor()?, event, true)
    }

    /// Adds a wait for an event without dependencies: see :meth:`GraphNode.wait`.
    #[doc = example!("cuda.core.graph.GraphDefinition.wait")]
    fn wait(&self, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::event(&self.anchor()?, event, false)
    }

    /// Adds a clone of another definition without dependencies: see :meth:`GraphNode.embed`.
    #[doc = example!("cuda.core.graph.GraphDefinition.embed")]
    fn embed(&self, child: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::embed(&self.anchor()?, child)
    }

    /// Adds a node without work that depends on all given nodes.
    #[doc = example!("cuda.core.graph.GraphDefinition.join")]
    #[pyo3(signature = (*nodes))]
    fn join(&self, nodes: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        add::join(&self.anchor()?, nodes)
    }

    /// Adds an if node without dependencies: see :meth:`GraphNode.if_then`.
    #[doc = example!("cuda.core.graph.GraphDefinition.if_then")]
    fn if_then(&self, condition: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::conditional(&self.anchor()?, add::Form::IfThen, condition)
    }

    /// Adds an if-else node without dependencies: see :meth:`GraphNode.if_else`.
    #[doc = example!("cuda.core.graph.GraphDefinition.if_else")]
    fn if_else(&self, condition: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::conditional(&self.anchor()?, add::Form::IfElse, condition)
    }

    /// Adds a while node without dependencies: see :meth:`GraphNode.while_loop`.
    #[doc = example!("cuda.core.graph.GraphDefinition.while_loop")]
    fn while_loop(&self, condition: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::conditional(&self.anchor()?, add::Form::While, condition)
    }

    /// Adds a switch node without dependencies: see :meth:`GraphNode.switch`.
    #[doc = example!("cuda.core.graph.GraphDefinition.switch")]
    fn switch(
        &self,
        condition: &Bound<'_, PyAny>,
        count: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let form = add::switch_form("GraphDefinition.switch", count)?;
        add::conditional(&self.anchor()?, form, condition)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyGraphDefinition>().is_ok_and(|other| {
            self.definition.core.address() == other.get().definition.core.address()
        })
    }

    fn __hash__(&self) -> u64 {
        (self.definition.core.address() as u64).rotate_right(4)
    }

    /// HTML for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook::html(slf.py(), "graph_definition", (slf,))
    }

    fn __repr__(&self) -> String {
        format!(
            "<GraphDefinition handle={:#x}>",
            self.definition.core.address()
        )
    }
}

/// A node's handle that may cross the boundary of a detached section.
#[derive(Clone, Copy)]
pub struct NodeAddress(usize);

impl NodeAddress {
    /// Of a handle.
    pub fn of(node: CUgraphNode) -> NodeAddress {
        NodeAddress(node.expose_provenance())
    }

    /// The handle.
    pub fn get(self) -> CUgraphNode {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// A node's handle, and when the driver named it.
#[derive(Clone, Copy)]
pub struct NamedNode {
    node: NodeAddress,
    stamp: NodeStamp,
}

impl NamedNode {
    /// A node that the driver has named under the lock.
    pub fn of(lock: &DefinitionLock<'_>, node: CUgraphNode) -> NamedNode {
        NamedNode {
            node: NodeAddress::of(node),
            stamp: lock.stamp(),
        }
    }

    /// The handle as a number.
    pub fn address(self) -> usize {
        self.node.0
    }

    /// The handle, of a node that may have been destroyed.
    pub fn unchecked(self) -> CUgraphNode {
        self.node.get()
    }

    /// The handle of a node that lives as long as the lock.
    ///
    /// # Errors
    ///
    /// [`cupyrite::Error::InvalidArgument`] for a destroyed node.
    pub fn get(self, lock: &DefinitionLock<'_>) -> cupyrite::Result<CUgraphNode> {
        lock.check_node("GraphNode", self.node.get(), self.stamp)?;
        Ok(self.node.get())
    }

    /// Whether the program has destroyed the node by its handle.
    pub fn is_destroyed_by_program(self) -> bool {
        self.stamp.is_destroyed_by_program(self.node.get())
    }
}

/// A node with what determines the class of its object.
pub struct TypedNode {
    /// The node.
    pub named: NamedNode,
    /// Its type.
    pub kind: NodeKind,
    /// Kind and number of bodies of a conditional node, if they are known.
    pub conditional: Option<(ConditionalKind, usize)>,
}

impl TypedNode {
    /// Reads a node's type.
    ///
    /// # Errors
    ///
    /// Driver errors.
    ///
    /// # Safety
    ///
    /// The node is a live one of the definition, which is locked.
    pub unsafe fn of(
        core: &GraphDefinition,
        lock: &DefinitionLock<'_>,
        node: CUgraphNode,
    ) -> cupyrite::Result<TypedNode> {
        // SAFETY: the caller's contract.
        unsafe { TypedNode::with_kind(core, lock, node, core.kind_of(node)?) }
    }

    /// [`TypedNode::of`] for a known type.
    ///
    /// # Errors
    ///
    /// Driver errors.
    ///
    /// # Safety
    ///
    /// As [`TypedNode::of`].
    pub unsafe fn with_kind(
        core: &GraphDefinition,
        lock: &DefinitionLock<'_>,
        node: CUgraphNode,
        kind: NodeKind,
    ) -> cupyrite::Result<TypedNode> {
        let conditional = if kind == NodeKind::CU_GRAPH_NODE_TYPE_CONDITIONAL {
            // SAFETY: the caller's contract.
            let found = unsafe { core.conditional_params_of(node)? };
            found.map(|found| (found.kind, found.bodies.len()))
        } else {
            None
        };
        Ok(TypedNode {
            named: NamedNode::of(lock, node),
            kind,
            conditional,
        })
    }

    /// Reads the types of nodes that the driver has named under the lock.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn all(
        core: &GraphDefinition,
        lock: &DefinitionLock<'_>,
        nodes: Vec<CUgraphNode>,
    ) -> cupyrite::Result<Vec<TypedNode>> {
        // SAFETY: the driver has just named the nodes.
        let typed = |node| unsafe { TypedNode::of(core, lock, node) };
        nodes.into_iter().map(typed).collect()
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyGraphDefinition>()
}

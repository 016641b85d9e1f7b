//! `GraphNode`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::graph::DefinitionLock;
use cupyrite::sys::driver::CUgraphNode;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::graph::add::{self, Anchor};
use crate::core::graph::arguments::iterate;
use crate::core::graph::definition::{
    Definition, NamedNode, NodeTable, PyGraphDefinition, TypedNode,
};
use crate::cpython::Raised;
use crate::generated::driver_types::class;
use crate::generated::driver_types::enums;
use crate::types;

/// A node of a graph definition.
///
/// Its methods add nodes that depend on it. Nodes are equal if their handles are. A node's object exists once while it is
/// referenced: the same object comes back from :meth:`GraphDefinition.nodes`, ``pred`` and ``succ``.
#[doc = example!("cuda.core.graph.GraphNode")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core.graph._graph_node",
    name = "GraphNode"
)]
pub struct PyGraphNode {
    place: Option<NodePlace>,
    destroyed: AtomicBool,
    serial: u64,
}

struct NodePlace {
    definition: Arc<Definition>,
    /// `None` for the entry point.
    node: Option<NamedNode>,
}

impl Drop for PyGraphNode {
    fn drop(&mut self) {
        if let Some(place) = &self.place
            && let Some(node) = place.node
        {
            let table = place.definition.table();
            table.remove(node.address(), self.serial);
        }
    }
}

impl PyGraphNode {
    /// A node without graph.
    pub fn detached() -> PyGraphNode {
        PyGraphNode {
            place: None,
            destroyed: AtomicBool::new(false),
            serial: 0,
        }
    }

    /// The value of the object of a node.
    pub fn of(definition: &Arc<Definition>, node: NamedNode) -> PyGraphNode {
        PyGraphNode {
            place: Some(NodePlace {
                definition: definition.clone(),
                node: Some(node),
            }),
            destroyed: AtomicBool::new(false),
            serial: NodeTable::next_serial(),
        }
    }

    /// The number that tells the object from later ones of the same handle.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The entry point of a definition.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn entry(py: Python<'_>, definition: Arc<Definition>) -> PyResult<Py<PyGraphNode>> {
        let place = Some(NodePlace {
            definition,
            node: None,
        });
        Py::new(
            py,
            PyGraphNode {
                place,
                destroyed: AtomicBool::new(false),
                serial: 0,
            },
        )
    }

    /// Whether the node was destroyed, by this object or by the program with the driver's function.
    pub fn is_destroyed(&self) -> bool {
        let node = self.place.as_ref().and_then(|place| place.node);
        self.destroyed.load(Ordering::Relaxed)
            || node.is_some_and(NamedNode::is_destroyed_by_program)
    }

    /// Whether the graph of the node belonged to a node that was destroyed.
    fn has_lost_its_graph(&self) -> bool {
        let place = self.place.as_ref();
        place.is_some_and(|place| place.definition.core.belongs_to_destroyed_node())
    }

    /// Definition and node of a valid object; no node for the entry point. Another thread may destroy the node meanwhile, so
    /// that its handle is only used under the lock of the definition: see [`NamedNode::get`].
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a destroyed node.
    pub fn live(&self) -> PyResult<(&Arc<Definition>, Option<NamedNode>)> {
        let Some(place) = &self.place else {
            return Err(PyRuntimeError::new_err(
                "this GraphNode belongs to no graph; nodes come from the methods of GraphDefinition and GraphNode",
            ));
        };
        if self.is_destroyed() {
            let problem = if self.destroyed.load(Ordering::Relaxed) {
                "this GraphNode is not valid: destroy() was called"
            } else {
                "this GraphNode is not valid: the program destroyed it, with cuGraphDestroyNode or cudaGraphDestroyNode"
            };
            return Err(PyRuntimeError::new_err(problem));
        }
        place.definition.check()?;
        Ok((&place.definition, place.node))
    }

    /// As [`PyGraphNode::live`], for a node with a handle.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a destroyed node and for the entry point.
    pub fn real(&self) -> PyResult<(&Arc<Definition>, NamedNode)> {
        match self.live()? {
            (definition, Some(node)) => Ok((definition, node)),
            (_, None) => Err(PyRuntimeError::new_err(
                "the entry point of a graph is no node of the driver",
            )),
        }
    }

    /// Makes calls on the node in a detached section, in which no other thread uses the definition.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a destroyed node and for the entry point; driver errors.
    pub fn with_locked<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(
            &cupyrite::graph::GraphDefinition,
            &DefinitionLock<'_>,
            CUgraphNode,
        ) -> cupyrite::Result<T>
        + Send,
    ) -> PyResult<T> {
        let (definition, node) = self.real()?;
        let core = &*definition.core;
        let done = py.detach(|| {
            let lock = core.lock()?;
            call(core, &lock, node.get(&lock)?)
        });
        if done.is_err() {
            // Another thread may have destroyed the node.
            self.live()?;
        }
        done.or_raise(py)
    }

    /// Converts an argument to a node of `definition`; `None` for its entry point.
    ///
    /// # Errors
    ///
    /// `TypeError` for other types, `ValueError` for a node of another definition, `RuntimeError` for a destroyed node.
    pub fn accept(
        given: &Bound<'_, PyAny>,
        function: &str,
        parameter: &str,
        definition: &Definition,
    ) -> PyResult<Option<NamedNode>> {
        let Ok(node) = given.cast::<PyGraphNode>() else {
            return Err(PyTypeError::new_err(format!(
                "{function}() argument '{parameter}' is of type {}; expected a GraphNode",
                given.get_type().name()?
            )));
        };
        let (owner, node) = node.get().live()?;
        if owner.core.address() != definition.core.address() {
            return Err(PyValueError::new_err(format!(
                "{function}() argument '{parameter}' is a node of another graph definition"
            )));
        }
        Ok(node)
    }

    fn anchor(&self) -> PyResult<Anchor<'_>> {
        let (definition, after) = self.live()?;
        Ok(Anchor {
            definition,
            after,
            class: "GraphNode",
        })
    }

    fn address(&self) -> usize {
        let node = self.place.as_ref().and_then(|place| place.node);
        node.map_or(0, NamedNode::address)
    }

    /// The neighbours before or behind the node.
    fn neighbours(&self, py: Python<'_>, before: bool) -> PyResult<Vec<TypedNode>> {
        if self.live()?.1.is_none() {
            return Ok(Vec::new());
        }
        self.with_locked(py, |core, lock, node| {
            // SAFETY: the node is live.
            let found = unsafe {
                if before {
                    core.predecessors_of(node)?
                } else {
                    core.successors_of(node)?
                }
            };
            TypedNode::all(core, lock, found)
        })
    }

    /// Adds or removes edges to the given nodes.
    fn change_edges(
        &self,
        py: Python<'_>,
        before: bool,
        nodes: &Bound<'_, PyAny>,
        add: bool,
    ) -> PyResult<()> {
        let (definition, _) = self.real()?;
        let name = if before { "pred" } else { "succ" };
        let mut others = Vec::new();
        for other in iterate(nodes, name, "nodes", "an iterable of GraphNode")? {
            let other = PyGraphNode::accept(&other?, name, "node", definition)?;
            let Some(other) = other else {
                return Err(PyValueError::new_err(format!(
                    "{name}: the entry point has no edges that could be changed"
                )));
            };
            others.push(other);
        }
        self.with_locked(py, |core, lock, node| {
            // SAFETY: the node is live.
            let present = unsafe {
                if before {
                    core.predecessors_of(node)?
                } else {
                    core.successors_of(node)?
                }
            };
            let mut edges = Vec::new();
            for other in others {
                let other = other.get(lock)?;
                let edge = if before { (other, node) } else { (node, other) };
                if present.contains(&other) != add && !edges.contains(&edge) {
                    edges.push(edge);
                }
            }
            if edges.is_empty() {
                return Ok(());
            }
            // SAFETY: all nodes are live ones of this definition.
            unsafe {
                if add {
                    core.add_edges(&edges)
                } else {
                    core.remove_edges(&edges)
                }
            }
        })
    }

    fn proxy(slf: &Bound<'_, Self>, before: bool) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        slf.get().live()?;
        let class = py
            .import("cuda.core.graph._adjacency_set_proxy")?
            .getattr("AdjacencySetProxy")?;
        Ok(class.call1((slf, before))?.unbind())
    }
}

/// The value that is assigned to `pred` or `succ`.
fn several_nodes<'py>(name: &str, nodes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let items = nodes.try_iter().map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(nodes.py()) {
            return error;
        }
        let class = nodes.get_type().name().map(|name| name.to_string());
        PyTypeError::new_err(format!(
            "GraphNode.{name} is set to an object of type {}; expected an iterable of GraphNode",
            class.unwrap_or_default()
        ))
    })?;
    let list = PyList::empty(nodes.py());
    for item in items {
        list.append(item?)?;
    }
    Ok(list)
}

#[pymethods]
impl PyGraphNode {
    #[new]
    fn new() -> PyGraphNode {
        PyGraphNode::detached()
    }

    /// Driver handle, a ``cuda.bindings.driver.CUgraphNode``; None for the entry point and for a node that no longer
    /// exists.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.address() {
            0 => Ok(None),
            _ if !self.is_valid() => Ok(None),
            address => {
                // The driver names the graph of a node.
                if let Some(place) = &self.place {
                    let definition = &*place.definition.core;
                    py.detach(|| definition.hand_out());
                }
                handle_object(py, class::CUgraphNode, address).map(Some)
            }
        }
    }

    /// Whether the node and its definition exist.
    #[getter]
    pub fn is_valid(&self) -> bool {
        self.live().is_ok()
    }

    /// The definition of the node.
    #[getter]
    fn graph(&self, py: Python<'_>) -> PyResult<Py<PyGraphDefinition>> {
        match &self.place {
            Some(place) => PyGraphDefinition::wrap(py, place.definition.clone()),
            None => self
                .live()
                .map(|_| unreachable!("a node without graph is not live")),
        }
    }

    /// Type of the node, a ``cuda.bindings.driver.CUgraphNodeType``; None for the entry point.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.live()?.1.is_none() {
            return Ok(None);
        }
        // SAFETY: the node is live.
        let kind = self.with_locked(py, |core, _, node| unsafe { core.kind_of(node) })?;
        types::enum_member(enums::CUgraphNodeType, i64::from(kind.0))
            .map(|member| Some(member.into_bound(py).unbind()))
            .map_err(|Raised| PyErr::fetch(py))
    }

    /// The nodes that this node waits for, as a set that changes the graph when it is changed.
    #[doc = example!("cuda.core.graph.GraphNode.pred")]
    #[getter]
    fn pred(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::proxy(slf, true)
    }

    #[setter]
    fn set_pred(slf: &Bound<'_, Self>, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        let nodes = several_nodes("pred", nodes)?;
        Self::proxy(slf, true)?
            .bind(slf.py())
            .call_method1("_replace", (nodes,))?;
        Ok(())
    }

    /// The nodes that wait for this node, as a set that changes the graph when it is changed.
    #[doc = example!("cuda.core.graph.GraphNode.succ")]
    #[getter]
    fn succ(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::proxy(slf, false)
    }

    #[setter]
    fn set_succ(slf: &Bound<'_, Self>, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        let nodes = several_nodes("succ", nodes)?;
        Self::proxy(slf, false)?
            .bind(slf.py())
            .call_method1("_replace", (nodes,))?;
        Ok(())
    }

    /// Neighbours, for ``AdjacencySetProxy``.
    fn _neighbours<'py>(&self, py: Python<'py>, before: bool) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let found = self.neighbours(py, before)?;
        if !found.is_empty() {
            let (definition, _) = self.live()?;
            for node in found {
                list.append(definition.node_object(py, node)?)?;
            }
        }
        Ok(list)
    }

    /// Adds edges, for ``AdjacencySetProxy``.
    fn _connect(&self, py: Python<'_>, before: bool, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change_edges(py, before, nodes, true)
    }

    /// Removes edges, for ``AdjacencySetProxy``.
    fn _disconnect(&self, py: Python<'_>, before: bool, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change_edges(py, before, nodes, false)
    }

    /// Destroys the node, its edges, and the graphs that belong to it. Destroying it again has no effect.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     Allocation and deallocation nodes cannot be destroyed.
    #[doc = example!("cuda.core.graph.GraphNode.destroy")]
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        let (definition, node) = match self.real() {
            // Also by another thread, at this moment.
            Err(_) if self.is_destroyed() => return Ok(()),
            // With the node to which its graph belonged.
            Err(_) if self.has_lost_its_graph() => return Ok(()),
            real => real?,
        };
        let core = &*definition.core;
        let done = py.detach(|| {
            let lock = core.lock()?;
            if self.is_destroyed() {
                return Ok(());
            }
            // Another object may have destroyed it.
            if let Ok(node) = node.get(&lock) {
                // SAFETY: the node is live, and `destroyed` and the lock's record make this its last use.
                unsafe { core.destroy_node(node)? };
            }
            self.destroyed.store(true, Ordering::Relaxed);
            Ok(())
        });
        done.or_raise(py)?;
        definition.table().remove(node.address(), self.serial);
        Ok(())
    }

    /// Adds a kernel launch that depends on this node.
    ///
    /// The node retains the kernel and the arguments. A reference cycle through an argument that owns the graph is not
    /// collected.
    ///
    /// Parameters
    /// ----------
    /// config : LaunchConfig
    ///     The launch configuration.
    /// kernel : Kernel
    ///     The kernel.
    /// *args
    ///     Its arguments: see :func:`cuda.core.launch`.
    ///
    /// Returns
    /// -------
    /// KernelNode
    #[doc = example!("cuda.core.graph.GraphNode.launch")]
    #[pyo3(signature = (config, kernel, *args))]
    fn launch(
        &self,
        config: &Bound<'_, PyAny>,
        kernel: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        add::launch(&self.anchor()?, config, kernel, args)
    }

    /// Adds a copy that depends on this node.
    ///
    /// Parameters
    /// ----------
    /// dst, src : Buffer or int
    ///     Destination and source: device, page-locked or managed memory. The node retains buffers.
    /// size : int
    ///     Number of bytes.
    /// dst_owner, src_owner : object, optional
    ///     Object to retain for an address.
    ///
    /// Returns
    /// -------
    /// MemcpyNode
    #[doc = example!("cuda.core.graph.GraphNode.memcpy")]
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

    /// Adds a fill that depends on this node.
    ///
    /// Parameters
    /// ----------
    /// dst : Buffer or int
    ///     Destination. The node retains a buffer.
    /// value : int or bytes-like
    ///     Element: an int is one byte; else 1, 2 or 4 bytes.
    /// width : int
    ///     Elements per row.
    /// height : int
    ///     Rows.
    /// pitch : int
    ///     Bytes from one row to the next; unused for one row.
    /// dst_owner : object, optional
    ///     Object to retain for an address.
    ///
    /// Returns
    /// -------
    /// MemsetNode
    #[doc = example!("cuda.core.graph.GraphNode.memset")]
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

    /// Adds a memory allocation that depends on this node.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Number of bytes.
    /// device : Device or int, optional
    ///     The device. Default: the current one.
    /// memory_type : GraphMemoryType or str
    ///     ``'device'``, ``'host'`` or ``'managed'``.
    /// peer_access : list of Device or int, optional
    ///     Other devices that may access the memory.
    ///
    /// Returns
    /// -------
    /// AllocNode
    #[doc = example!("cuda.core.graph.GraphNode.allocate")]
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

    /// Adds a deallocation that depends on this node.
    ///
    /// Parameters
    /// ----------
    /// dptr : int
    ///     Address of an :class:`AllocNode`.
    ///
    /// Returns
    /// -------
    /// FreeNode
    #[doc = example!("cuda.core.graph.GraphNode.deallocate")]
    fn deallocate(&self, dptr: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::deallocate(&self.anchor()?, dptr)
    }

    /// Adds a call of a host function that depends on this node. The function must not call CUDA.
    ///
    /// Parameters
    /// ----------
    /// fn : callable or ctypes function pointer
    ///     A callable without parameters, or a ``ctypes.CFUNCTYPE(None, ctypes.c_void_p)``. The node retains it.
    /// user_data : int or bytes-like, optional
    ///     Argument of a ctypes function: an address, or bytes, which are copied.
    ///
    /// Returns
    /// -------
    /// HostCallbackNode
    #[doc = example!("cuda.core.graph.GraphNode.callback")]
    #[pyo3(signature = (r#fn, *, user_data=None))]
    fn callback(
        &self,
        r#fn: &Bound<'_, PyAny>,
        user_data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        add::callback(&self.anchor()?, r#fn, user_data)
    }

    /// Adds a record of an event that depends on this node. The node retains the event.
    #[doc = example!("cuda.core.graph.GraphNode.record")]
    fn record(&self, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::event(&self.anchor()?, event, true)
    }

    /// Adds a wait for an event that depends on this node. The node retains the event.
    #[doc = example!("cuda.core.graph.GraphNode.wait")]
    fn wait(&self, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::event(&self.anchor()?, event, false)
    }

    /// Adds a clone of another definition that depends on this node.
    ///
    /// Parameters
    /// ----------
    /// child : GraphDefinition
    ///     An independent definition, without allocation, deallocation and conditional nodes.
    ///
    /// Returns
    /// -------
    /// ChildGraphNode
    #[doc = example!("cuda.core.graph.GraphNode.embed")]
    fn embed(&self, child: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::embed(&self.anchor()?, child)
    }

    /// Adds a node without work that depends on this node and all given ones.
    #[doc = example!("cuda.core.graph.GraphNode.join")]
    #[pyo3(signature = (*nodes))]
    fn join(&self, nodes: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        add::join(&self.anchor()?, nodes)
    }

    /// Adds a node that runs its body if the condition is not 0.
    #[doc = example!("cuda.core.graph.GraphNode.if_then")]
    fn if_then(&self, condition: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::conditional(&self.anchor()?, add::Form::IfThen, condition)
    }

    /// Adds a node that runs its first body if the condition is not 0, else the second one.
    #[doc = example!("cuda.core.graph.GraphNode.if_else")]
    fn if_else(&self, condition: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::conditional(&self.anchor()?, add::Form::IfElse, condition)
    }

    /// Adds a node that repeats its body as long as the condition is not 0.
    #[doc = example!("cuda.core.graph.GraphNode.while_loop")]
    fn while_loop(&self, condition: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        add::conditional(&self.anchor()?, add::Form::While, condition)
    }

    /// Adds a node that runs the body whose index is the condition's value, if there is one.
    #[doc = example!("cuda.core.graph.GraphNode.switch")]
    fn switch(
        &self,
        condition: &Bound<'_, PyAny>,
        count: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let form = add::switch_form("GraphNode.switch", count)?;
        add::conditional(&self.anchor()?, form, condition)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<PyGraphNode>() else {
            return false;
        };
        let other = other.get();
        match (self.address(), other.address()) {
            // Entry points are equal if their definitions are.
            (0, 0) => match (&self.place, &other.place) {
                (Some(a), Some(b)) => a.definition.core.address() == b.definition.core.address(),
                (None, None) => std::ptr::eq(self, other),
                _ => false,
            },
            (a, b) => a == b,
        }
    }

    fn __hash__(&self) -> u64 {
        (self.address() as u64).rotate_right(4)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let node = slf.get();
        let class = slf.get_type().name()?;
        Ok(match &node.place {
            None => format!("<{class} without graph>"),
            Some(place) => match place.node {
                None => format!(
                    "<{class} entry of graph {:#x}>",
                    place.definition.core.address()
                ),
                Some(named) => {
                    let state = if node.is_valid() { "" } else { " destroyed" };
                    format!("<{class} handle={:#x}{state}>", named.address())
                }
            },
        })
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyGraphNode>()
}

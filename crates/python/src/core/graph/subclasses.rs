//! The classes of nodes by type, with the methods of most. Those of memory operations are in `memory_nodes`, those of
//! conditional nodes in `conditional_nodes`.

use std::sync::Arc;

use cupyrite::graph::{ConditionalKind, NodeKind, Retained};
use cupyrite::sys::driver::CUgraphNode;
use cupyrite::{Kernel, LaunchConfig};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::errors::OrRaise;
use crate::core::event;
use crate::core::event::PyEvent;
use crate::core::graph::add::{PackedPointers, launch_arguments};
use crate::core::graph::arguments::{LaunchArguments, raised, retained_ref, with_packed};
use crate::core::graph::callback as host;
use crate::core::graph::callback::PyCallback;
use crate::core::graph::definition::{self, Definition, PyGraphDefinition, TypedNode};
use crate::core::graph::node::PyGraphNode;
use crate::core::launch::config::PyLaunchConfig;
use crate::core::module::kernel::PyKernel;

/// A class of nodes without contents of its own.
macro_rules! node_class {
    ($(#[$doc:meta])* $class:ident = $name:literal) => {
        $(#[$doc])*
        #[pyclass(
            frozen,
            subclass,
            extends = PyGraphNode,
            module = "cuda.core.graph._subclasses",
            name = $name
        )]
        pub struct $class;
    };
    ($(#[$doc:meta])* $class:ident = $name:literal of $base:ident) => {
        $(#[$doc])*
        #[pyclass(
            frozen,
            subclass,
            extends = $base,
            module = "cuda.core.graph._subclasses",
            name = $name
        )]
        pub struct $class;
    };
}

node_class! {
    /// A node without work.
    #[doc = example!("cuda.core.graph.EmptyNode")]
    PyEmptyNode = "EmptyNode"
}
node_class! {
    /// A kernel launch.
    #[doc = example!("cuda.core.graph.KernelNode")]
    PyKernelNode = "KernelNode"
}
node_class! {
    /// A memory allocation of the graph.
    #[doc = example!("cuda.core.graph.AllocNode")]
    PyAllocNode = "AllocNode"
}
node_class! {
    /// A deallocation of memory of the graph.
    #[doc = example!("cuda.core.graph.FreeNode")]
    PyFreeNode = "FreeNode"
}
node_class! {
    /// A fill.
    #[doc = example!("cuda.core.graph.MemsetNode")]
    PyMemsetNode = "MemsetNode"
}
node_class! {
    /// A copy.
    #[doc = example!("cuda.core.graph.MemcpyNode")]
    PyMemcpyNode = "MemcpyNode"
}
node_class! {
    /// A clone of another definition.
    #[doc = example!("cuda.core.graph.ChildGraphNode")]
    PyChildGraphNode = "ChildGraphNode"
}
node_class! {
    /// A record of an event.
    #[doc = example!("cuda.core.graph.EventRecordNode")]
    PyEventRecordNode = "EventRecordNode"
}
node_class! {
    /// A wait for an event.
    #[doc = example!("cuda.core.graph.EventWaitNode")]
    PyEventWaitNode = "EventWaitNode"
}
node_class! {
    /// A call of a host function.
    #[doc = example!("cuda.core.graph.HostCallbackNode")]
    PyHostCallbackNode = "HostCallbackNode"
}
node_class! {
    /// A node that runs one of its bodies, or none, depending on a condition.
    #[doc = example!("cuda.core.graph.ConditionalNode")]
    PyConditionalNode = "ConditionalNode"
}
node_class! {
    /// A conditional node that runs its body if the condition is not 0.
    #[doc = example!("cuda.core.graph.IfNode")]
    PyIfNode = "IfNode" of PyConditionalNode
}
node_class! {
    /// A conditional node with a body for each outcome.
    #[doc = example!("cuda.core.graph.IfElseNode")]
    PyIfElseNode = "IfElseNode" of PyConditionalNode
}
node_class! {
    /// A conditional node that repeats its body as long as the condition is not 0.
    #[doc = example!("cuda.core.graph.WhileNode")]
    PyWhileNode = "WhileNode" of PyConditionalNode
}
node_class! {
    /// A conditional node that runs the body with the index that the condition has.
    #[doc = example!("cuda.core.graph.SwitchNode")]
    PySwitchNode = "SwitchNode" of PyConditionalNode
}

/// Creates the object of a node and registers it.
///
/// # Errors
///
/// Driver errors; `MemoryError`.
pub fn wrap(py: Python<'_>, definition: &Arc<Definition>, node: TypedNode) -> PyResult<Py<PyAny>> {
    let value = PyGraphNode::of(definition, node.named);
    let serial = value.serial();
    let base = PyClassInitializer::from(value);
    /// Creates an object of a class.
    macro_rules! make {
        ($class:expr) => {
            Py::new(py, base.add_subclass($class))?.into_any()
        };
        ($class:expr, conditional) => {
            Py::new(
                py,
                base.add_subclass(PyConditionalNode).add_subclass($class),
            )?
            .into_any()
        };
    }
    let object = match node.kind {
        NodeKind::CU_GRAPH_NODE_TYPE_EMPTY => make!(PyEmptyNode),
        NodeKind::CU_GRAPH_NODE_TYPE_KERNEL => make!(PyKernelNode),
        NodeKind::CU_GRAPH_NODE_TYPE_MEM_ALLOC => make!(PyAllocNode),
        NodeKind::CU_GRAPH_NODE_TYPE_MEM_FREE => make!(PyFreeNode),
        NodeKind::CU_GRAPH_NODE_TYPE_MEMSET => make!(PyMemsetNode),
        NodeKind::CU_GRAPH_NODE_TYPE_MEMCPY => make!(PyMemcpyNode),
        NodeKind::CU_GRAPH_NODE_TYPE_GRAPH => make!(PyChildGraphNode),
        NodeKind::CU_GRAPH_NODE_TYPE_EVENT_RECORD => make!(PyEventRecordNode),
        NodeKind::CU_GRAPH_NODE_TYPE_WAIT_EVENT => make!(PyEventWaitNode),
        NodeKind::CU_GRAPH_NODE_TYPE_HOST => make!(PyHostCallbackNode),
        NodeKind::CU_GRAPH_NODE_TYPE_CONDITIONAL => match node.conditional {
            Some((ConditionalKind::While, _)) => make!(PyWhileNode, conditional),
            Some((ConditionalKind::Switch, _)) => make!(PySwitchNode, conditional),
            Some((ConditionalKind::If, 2)) => make!(PyIfElseNode, conditional),
            Some((ConditionalKind::If, _)) => make!(PyIfNode, conditional),
            None => make!(PyConditionalNode),
        },
        _ => Py::new(py, base)?.into_any(),
    };
    definition.register(py, node.named.address(), object.bind(py), serial)?;
    Ok(object)
}

/// Reads parameters of a node in a detached section.
pub(super) fn read<T: Send>(
    node: &PyGraphNode,
    py: Python<'_>,
    read: impl FnOnce(&cupyrite::graph::GraphDefinition, CUgraphNode) -> cupyrite::Result<T> + Send,
) -> PyResult<T> {
    node.with_locked(py, |core, _, node| read(core, node))
}

/// The object of a graph that belongs to a node.
pub(super) fn nested(
    py: Python<'_>,
    node: &PyGraphNode,
    graph: cupyrite::graph::GraphDefinition,
) -> PyResult<Py<PyGraphDefinition>> {
    let (definition, _) = node.real()?;
    PyGraphDefinition::wrap(py, definition.nested(graph))
}

/// What the graph retains for a node.
pub(super) fn retained_for(node: &PyGraphNode, py: Python<'_>) -> PyResult<Option<Retained>> {
    read(node, py, |core, node| Ok(core.retained_for(node)))
}

/// A member of an enumeration of `cuda.core.typing`.
pub(super) fn typing_member(py: Python<'_>, class: &str, value: &str) -> PyResult<Py<PyAny>> {
    let class = py.import("cuda.core.typing")?.getattr(class)?;
    Ok(class.call1((value,))?.unbind())
}

#[pymethods]
impl PyEmptyNode {
    #[new]
    fn new() -> PyClassInitializer<PyEmptyNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyEmptyNode)
    }
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        base_repr(slf.as_super(), "")
    }
}

/// `repr` with details of the class.
pub(super) fn base_repr(node: &Bound<'_, PyGraphNode>, details: &str) -> PyResult<String> {
    let class = node.get_type().name()?;
    match node.get().real() {
        Ok((_, node)) => Ok(format!("<{class} handle={:#x}{details}>", node.address())),
        Err(_) => Ok(format!("<{class} not valid>")),
    }
}

#[pymethods]
impl PyKernelNode {
    #[new]
    fn new() -> PyClassInitializer<PyKernelNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyKernelNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let details = launch_config(slf)
            .map(|config| format!(" grid={:?} block={:?}", config.grid, config.block))
            .unwrap_or_default();
        base_repr(slf.as_super(), &details)
    }

    /// Grid dimensions in blocks; with a cluster, in clusters.
    #[getter]
    fn grid(slf: &Bound<'_, Self>) -> PyResult<(u32, u32, u32)> {
        launch_config(slf).map(|config| config.grid.into())
    }

    /// Block dimensions in threads.
    #[getter]
    fn block(slf: &Bound<'_, Self>) -> PyResult<(u32, u32, u32)> {
        launch_config(slf).map(|config| config.block.into())
    }

    /// Bytes of dynamic shared memory per block.
    #[getter]
    fn shmem_size(slf: &Bound<'_, Self>) -> PyResult<u32> {
        launch_config(slf).map(|config| config.shared_bytes)
    }

    /// The launch configuration.
    #[getter]
    fn config(slf: &Bound<'_, Self>) -> PyResult<PyLaunchConfig> {
        launch_config(slf).map(PyLaunchConfig::of)
    }

    /// The kernel.
    #[getter]
    fn kernel(slf: &Bound<'_, Self>) -> PyResult<Py<PyKernel>> {
        let py = slf.py();
        let (value, kernel) = read(slf.as_super().get(), py, |core, node| {
            Ok((core.kernel_value_of(node), core.kernel_of(node)))
        })?;
        if let Some(value) = value
            && let Some(known) = retained_ref::<LaunchArguments<Py<PyKernel>>>(py, &value)
        {
            return Ok(known.kernel.clone_ref(py));
        }
        if let Some(kernel) = kernel {
            return Py::new(py, PyKernel::new(kernel, None));
        }
        // SAFETY: the node is a valid kernel node.
        let found = read(slf.as_super().get(), py, |core, node| unsafe {
            core.kernel_params_of(node)
                .map(|params| (params.kernel_address(), params.is_kernel()))
        })?;
        let (address, true) = found else {
            return Err(PyRuntimeError::new_err(
                "the driver reports a CUfunction for this node, not a kernel",
            ));
        };
        // SAFETY: the driver names a live kernel. Its library is kept if this package loaded it.
        let kernel =
            unsafe { Kernel::from_handle(std::ptr::with_exposed_provenance_mut(address), None) };
        Py::new(py, PyKernel::new(kernel.or_raise(py)?, None))
    }

    /// Replaces the launch configuration, or kernel and arguments. What is not given stays.
    ///
    /// Parameters
    /// ----------
    /// config : LaunchConfig, optional
    ///     The launch configuration.
    /// kernel : Kernel, optional
    ///     The kernel; requires `args`.
    /// args : sequence, optional
    ///     All arguments.
    #[pyo3(signature = (*, config=None, kernel=None, args=None))]
    fn update(
        slf: &Bound<'_, Self>,
        config: Option<&Bound<'_, PyAny>>,
        kernel: Option<&Bound<'_, PyAny>>,
        args: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let given = |value: Option<&Bound<'_, PyAny>>| value.is_some_and(|value| !value.is_none());
        let (has_config, has_kernel, has_args) = (given(config), given(kernel), given(args));
        if has_kernel && !has_args {
            return Err(PyValueError::new_err(
                "KernelNode.update() argument 'kernel' requires 'args': the new kernel's arguments, () for none",
            ));
        }
        let current = Py::new(py, PyLaunchConfig::of(launch_config(slf)?))?;
        let config = match config {
            Some(config) if has_config => config.clone(),
            _ => current.into_bound(py).into_any(),
        };
        let node = slf.as_super().get();
        if !has_args {
            let Ok(config) = config.cast::<PyLaunchConfig>() else {
                return Err(PyTypeError::new_err(format!(
                    "KernelNode.update() argument 'config' is of type {}; expected a LaunchConfig",
                    config.get_type().name()?
                )));
            };
            let config = config.get().get();
            // SAFETY: the node is a valid kernel node.
            return read(node, py, |core, node| unsafe {
                core.set_kernel_config(node, &config)
            });
        }
        let kernel = match kernel {
            Some(kernel) if has_kernel => kernel.clone(),
            _ => Self::kernel(slf)?.into_bound(py).into_any(),
        };
        let (config, kernel) = launch_arguments("KernelNode.update", &config, &kernel)?;
        let args = sequence("KernelNode.update", "args", args)?.into_bound(py);
        let (object, kernel) = (kernel.clone().unbind(), kernel.get().get());
        with_packed(
            "KernelNode.update",
            kernel,
            &args,
            object,
            |pointers, value| {
                let pointers = PackedPointers::of(pointers);
                // SAFETY: the node is a valid kernel node; one address per argument.
                read(node, py, |core, node| unsafe {
                    core.set_kernel(node, kernel, &config, pointers.get(), Some(value))
                })
            },
        )
    }
}

/// Converts a sequence of arguments.
///
/// # Errors
///
/// `TypeError`.
pub fn sequence(
    function: &str,
    parameter: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyTuple>> {
    let given = given.filter(|given| !given.is_none());
    let tuple = given.map(|given| -> PyResult<Py<PyTuple>> {
        let items: Vec<Py<PyAny>> = given
            .try_iter()?
            .map(|item| item.map(Bound::unbind))
            .collect::<PyResult<_>>()?;
        Ok(PyTuple::new(given.py(), items)?.unbind())
    });
    match tuple {
        Some(Ok(tuple)) => Ok(tuple),
        _ => Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' must be a sequence of kernel arguments; pass () for none"
        ))),
    }
}

fn launch_config(node: &Bound<'_, PyKernelNode>) -> PyResult<LaunchConfig> {
    // SAFETY: the node is a valid kernel node.
    read(node.as_super().get(), node.py(), |core, node| unsafe {
        core.kernel_params_of(node).map(|params| params.config)
    })
}

#[pymethods]
impl PyChildGraphNode {
    #[new]
    fn new() -> PyClassInitializer<PyChildGraphNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyChildGraphNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        base_repr(slf.as_super(), "")
    }

    /// The embedded clone.
    #[getter]
    fn child_graph(slf: &Bound<'_, Self>) -> PyResult<Py<PyGraphDefinition>> {
        let (py, node) = (slf.py(), slf.as_super().get());
        // SAFETY: the node is a valid child graph node.
        let graph = read(node, py, |core, node| unsafe { core.child_of(node) })?;
        nested(py, node, graph)
    }

    /// Replaces the embedded graph by a clone of an independent definition.
    #[doc = example!("cuda.core.graph.ChildGraphNode.update")]
    fn update(slf: &Bound<'_, Self>, child: &Bound<'_, PyAny>) -> PyResult<()> {
        let child = definition::accept(child, "ChildGraphNode.update", "child")?;
        let child = &*child.core;
        let (py, node) = (slf.py(), slf.as_super().get());
        let (definition, named) = node.real()?;
        let core = &*definition.core;
        let done = py.detach(|| {
            let [lock, _other] = core.lock_and_link(child)?;
            // SAFETY: the node is a live child graph node.
            unsafe { core.set_child(named.get(&lock)?, child) }
        });
        done.map_err(|error| raised(py, "ChildGraphNode.update", error))
    }
}

/// The event of a node.
fn event_object(py: Python<'_>, node: &PyGraphNode) -> PyResult<Py<PyEvent>> {
    let event = read(node, py, |core, node| Ok(core.retained_event_of(node)))?;
    match event {
        Some(event) => PyEvent::wrap(py, event),
        None => Err(PyRuntimeError::new_err(
            "the event of this node was recorded by a capture, or belongs to another owner",
        )),
    }
}

fn set_event(
    py: Python<'_>,
    node: &PyGraphNode,
    given: &Bound<'_, PyAny>,
    recorded: bool,
) -> PyResult<()> {
    let function = if recorded {
        "EventRecordNode.update"
    } else {
        "EventWaitNode.update"
    };
    let event = event::accept(given, function, "event")?;
    let event = event.get().lend(py)?;
    let event = &*event;
    // SAFETY: the node is a valid one of this kind.
    read(node, py, |core, node| unsafe {
        core.set_event(node, event, recorded)
    })
}

#[pymethods]
impl PyEventRecordNode {
    #[new]
    fn new() -> PyClassInitializer<PyEventRecordNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyEventRecordNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        base_repr(slf.as_super(), "")
    }

    /// The event.
    #[getter]
    fn event(slf: &Bound<'_, Self>) -> PyResult<Py<PyEvent>> {
        event_object(slf.py(), slf.as_super().get())
    }

    /// Replaces the event.
    fn update(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<()> {
        set_event(slf.py(), slf.as_super().get(), event, true)
    }
}

#[pymethods]
impl PyEventWaitNode {
    #[new]
    fn new() -> PyClassInitializer<PyEventWaitNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyEventWaitNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        base_repr(slf.as_super(), "")
    }

    /// The event.
    #[getter]
    fn event(slf: &Bound<'_, Self>) -> PyResult<Py<PyEvent>> {
        event_object(slf.py(), slf.as_super().get())
    }

    /// Replaces the event.
    fn update(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<()> {
        set_event(slf.py(), slf.as_super().get(), event, false)
    }
}

#[pymethods]
impl PyHostCallbackNode {
    #[new]
    fn new() -> PyClassInitializer<PyHostCallbackNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyHostCallbackNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        base_repr(slf.as_super(), "")
    }

    /// The Python callable; None for a ctypes function.
    #[getter]
    fn callback(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let py = slf.py();
        let value = retained_for(slf.as_super().get(), py)?;
        Ok(value.and_then(|value| {
            retained_ref::<PyCallback>(py, &value).map(|callback| callback.0.clone_ref(py))
        }))
    }

    /// Replaces the host function: see :meth:`GraphNode.callback`.
    #[pyo3(signature = (r#fn, *, user_data=None))]
    fn update(
        slf: &Bound<'_, Self>,
        r#fn: &Bound<'_, PyAny>,
        user_data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let callback = host::accept("HostCallbackNode.update", r#fn, user_data)?;
        // SAFETY: the node is a valid host function node.
        read(slf.as_super().get(), slf.py(), |core, node| unsafe {
            core.set_callback(node, &callback)
        })
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyEmptyNode>()?;
    core.add_class::<PyKernelNode>()?;
    core.add_class::<PyAllocNode>()?;
    core.add_class::<PyFreeNode>()?;
    core.add_class::<PyMemsetNode>()?;
    core.add_class::<PyMemcpyNode>()?;
    core.add_class::<PyChildGraphNode>()?;
    core.add_class::<PyEventRecordNode>()?;
    core.add_class::<PyEventWaitNode>()?;
    core.add_class::<PyHostCallbackNode>()?;
    core.add_class::<PyConditionalNode>()?;
    core.add_class::<PyIfNode>()?;
    core.add_class::<PyIfElseNode>()?;
    core.add_class::<PyWhileNode>()?;
    core.add_class::<PySwitchNode>()
}

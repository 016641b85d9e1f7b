//! Adding nodes: the methods that `GraphDefinition` and `GraphNode` share.

use std::sync::Arc;

use cupyrite::FillPattern;
use cupyrite::graph::{
    AllocationParams, ConditionalKind, GraphMemoryKind, MemcpyParams, MemsetParams, NodeKind,
};
use cupyrite::sys::driver::CUgraphNode;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::device;
use crate::core::event;
use crate::core::graph::arguments::{NodeOperand, iterate, raised, retain_owners, with_packed};
use crate::core::graph::callback as host;
use crate::core::graph::condition::accept_condition;
use crate::core::graph::definition::{self, Definition, NamedNode, TypedNode};
use crate::core::graph::node::PyGraphNode;
use crate::core::graph::subclasses;
use crate::core::launch::config::PyLaunchConfig;
use crate::core::memory::copy_operand::fill_pattern;
use crate::core::module::kernel::PyKernel;
use crate::core::numbers::{address_named, number_argument, short_repr, size_argument};

/// Where a node is added: a definition, and the node it depends on.
pub struct Anchor<'a> {
    /// The definition.
    pub definition: &'a Arc<Definition>,
    /// The node.
    pub after: Option<NamedNode>,
    /// The class of the receiver, for messages.
    pub class: &'static str,
}

impl Anchor<'_> {
    fn function(&self, method: &str) -> String {
        format!("{}.{method}", self.class)
    }

    /// Adds a node with `add`, which gets the handles of the nodes on which it depends. Returns its object.
    fn add(
        &self,
        py: Python<'_>,
        kind: NodeKind,
        add: impl FnOnce(
            &cupyrite::graph::GraphDefinition,
            &[CUgraphNode],
        ) -> cupyrite::Result<CUgraphNode>
        + Send,
    ) -> PyResult<Py<PyAny>> {
        self.add_after(py, kind, self.after.into_iter().collect(), None, add)
    }

    /// [`Anchor::add`] after these nodes. Another definition that `add` uses is `other`.
    fn add_after(
        &self,
        py: Python<'_>,
        kind: NodeKind,
        after: Vec<NamedNode>,
        other: Option<&cupyrite::graph::GraphDefinition>,
        add: impl FnOnce(
            &cupyrite::graph::GraphDefinition,
            &[CUgraphNode],
        ) -> cupyrite::Result<CUgraphNode>
        + Send,
    ) -> PyResult<Py<PyAny>> {
        let core = &*self.definition.core;
        let added = py.detach(|| {
            let _locks = other.map(|other| core.lock_and_link(other)).transpose()?;
            let lock = core.lock()?;
            let mut handles = Vec::with_capacity(after.len());
            for node in after {
                handles.push(node.get(&lock)?);
            }
            let node = add(core, &handles)?;
            // SAFETY: just added.
            unsafe { TypedNode::with_kind(core, &lock, node, kind) }
        });
        match added {
            Ok(node) => subclasses::wrap(py, self.definition, node),
            Err(error) => Err(raised(py, &self.function(method(kind)), error)),
        }
    }
}

/// The method that adds nodes of a type.
fn method(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::CU_GRAPH_NODE_TYPE_KERNEL => "launch",
        NodeKind::CU_GRAPH_NODE_TYPE_MEMCPY => "memcpy",
        NodeKind::CU_GRAPH_NODE_TYPE_MEMSET => "memset",
        NodeKind::CU_GRAPH_NODE_TYPE_HOST => "callback",
        NodeKind::CU_GRAPH_NODE_TYPE_GRAPH => "embed",
        NodeKind::CU_GRAPH_NODE_TYPE_WAIT_EVENT => "wait",
        NodeKind::CU_GRAPH_NODE_TYPE_EVENT_RECORD => "record",
        NodeKind::CU_GRAPH_NODE_TYPE_MEM_ALLOC => "allocate",
        NodeKind::CU_GRAPH_NODE_TYPE_MEM_FREE => "deallocate",
        NodeKind::CU_GRAPH_NODE_TYPE_CONDITIONAL => "if_then, if_else, while_loop, switch",
        _ => "join",
    }
}

pub(super) fn empty(py: Python<'_>, anchor: &Anchor<'_>) -> PyResult<Py<PyAny>> {
    // SAFETY: `add` passes live nodes. The same holds for the other functions.
    anchor.add(
        py,
        NodeKind::CU_GRAPH_NODE_TYPE_EMPTY,
        |core, after| unsafe { core.add_empty(after) },
    )
}

/// Converts the arguments `config` and `kernel`.
pub(super) fn launch_arguments<'a, 'py>(
    function: &str,
    config: &'a Bound<'py, PyAny>,
    kernel: &'a Bound<'py, PyAny>,
) -> PyResult<(cupyrite::LaunchConfig, &'a Bound<'py, PyKernel>)> {
    let Ok(config) = config.cast::<PyLaunchConfig>() else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'config' is of type {}; expected a LaunchConfig",
            config.get_type().name()?
        )));
    };
    let Ok(kernel) = kernel.cast::<PyKernel>() else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'kernel' is of type {}; expected a Kernel",
            kernel.get_type().name()?
        )));
    };
    Ok((config.get().get(), kernel))
}

/// The pointers of packed arguments, for a detached section.
#[derive(Clone, Copy)]
pub struct PackedPointers(usize);

impl PackedPointers {
    /// Of the array of addresses.
    pub fn of(pointers: *mut *mut std::ffi::c_void) -> PackedPointers {
        PackedPointers(pointers.expose_provenance())
    }

    /// The array of addresses.
    pub fn get(self) -> *mut *mut std::ffi::c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

pub(super) fn launch(
    anchor: &Anchor<'_>,
    config: &Bound<'_, PyAny>,
    kernel: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<Py<PyAny>> {
    let (config, kernel) = launch_arguments(&anchor.function("launch"), config, kernel)?;
    let py = kernel.py();
    let core = kernel.get().get();
    let object = kernel.clone().unbind();
    with_packed("launch", core, args, object, |pointers, value| {
        let pointers = PackedPointers::of(pointers);
        anchor.add(
            py,
            NodeKind::CU_GRAPH_NODE_TYPE_KERNEL,
            // SAFETY: see above. One address per argument; the caller guarantees their meaning, as for every launch.
            move |graph, after| unsafe {
                graph.add_kernel(after, core, &config, pointers.get(), Some(value))
            },
        )
    })
}

pub(super) fn memcpy(
    anchor: &Anchor<'_>,
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    size: &Bound<'_, PyAny>,
    dst_owner: Option<&Bound<'_, PyAny>>,
    src_owner: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let function = anchor.function("memcpy");
    let bytes = size_argument(size, &function)?;
    let dst = NodeOperand::accept(dst, dst_owner, &function, "dst")?;
    let src = NodeOperand::accept(src, src_owner, &function, "src")?;
    dst.check_size(bytes, &function, "dst")?;
    src.check_size(bytes, &function, "src")?;
    let params = MemcpyParams {
        destination: dst.address,
        source: src.address,
        bytes,
    };
    let value = retain_owners(vec![dst.owner, src.owner]);
    anchor.add(
        size.py(),
        NodeKind::CU_GRAPH_NODE_TYPE_MEMCPY,
        // SAFETY: see above; the caller guarantees that the addresses are valid.
        move |graph, after| unsafe { graph.add_memcpy(after, params, value) },
    )
}

/// Converts the element of a fill.
pub(super) fn pattern(function: &str, value: &Bound<'_, PyAny>) -> PyResult<FillPattern> {
    fill_pattern(value).map_err(|error| {
        // The message names the parameter of `Buffer.fill`, which has the same name.
        let text = error.value(value.py()).to_string();
        let text = text.replace("Buffer.fill()", &format!("{function}()"));
        if error.is_instance_of::<PyTypeError>(value.py()) {
            PyTypeError::new_err(text)
        } else if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyOverflowError::new_err(text)
        } else {
            PyValueError::new_err(text)
        }
    })
}

/// `width`, `height` and `pitch` of a fill; one row if the others are absent.
pub(super) fn rows(
    function: &str,
    given: [Option<&Bound<'_, PyAny>>; 3],
) -> PyResult<[Option<usize>; 3]> {
    let mut numbers = [None; 3];
    let names = [
        ("width", "a number of elements"),
        ("height", "a number of rows"),
        ("pitch", "a number of bytes"),
    ];
    for ((number, given), (name, units)) in numbers.iter_mut().zip(given).zip(names) {
        if let Some(given) = given.filter(|given| !given.is_none()) {
            *number = Some(number_argument(given, function, name, units)?);
        }
    }
    Ok(numbers)
}

pub(super) fn memset(
    anchor: &Anchor<'_>,
    dst: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    size: [Option<&Bound<'_, PyAny>>; 3],
    dst_owner: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let function = anchor.function("memset");
    let [width, height, pitch] = rows(&function, size)?;
    let element = pattern(&function, value)?;
    let dst = NodeOperand::accept(dst, dst_owner, &function, "dst")?;
    let params = MemsetParams {
        destination: dst.address,
        value: element,
        width: width.unwrap_or(0),
        height: height.unwrap_or(1),
        pitch: pitch.unwrap_or(0),
    };
    dst.check_fill(&params, &function)?;
    let retained = retain_owners(vec![dst.owner]);
    anchor.add(
        value.py(),
        NodeKind::CU_GRAPH_NODE_TYPE_MEMSET,
        // SAFETY: see above; the caller guarantees that the addresses are valid.
        move |graph, after| unsafe { graph.add_memset(after, params, retained) },
    )
}

pub(super) fn allocate(
    anchor: &Anchor<'_>,
    size: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    memory_type: Option<&Bound<'_, PyAny>>,
    peer_access: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let py = size.py();
    let function = anchor.function("allocate");
    let bytes = size_argument(size, &function)?;
    let given = |given: Option<&Bound<'_, PyAny>>| given.is_some_and(|given| !given.is_none());
    let device = match device {
        Some(device) if given(Some(device)) => device::accept(device, &function, "device")?,
        _ => device::current(py)?,
    };
    let kind = match memory_type {
        Some(kind) if given(Some(kind)) => match kind.extract::<String>().as_deref() {
            Ok("device") => GraphMemoryKind::Device,
            Ok("host") => GraphMemoryKind::Host,
            Ok("managed") => GraphMemoryKind::Managed,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "{function}() argument 'memory_type' is {}; expected 'device', 'host' or 'managed'",
                    short_repr(kind)
                )));
            }
        },
        _ => GraphMemoryKind::Device,
    };
    let mut peers = Vec::new();
    if let Some(list) = peer_access.filter(|list| !list.is_none()) {
        let expected = "an iterable of Device or int";
        for peer in iterate(list, &function, "peer_access", expected)? {
            peers.push(device::accept(&peer?, &function, "peer_access")?);
        }
    }
    let params = AllocationParams {
        bytes,
        device,
        kind,
        peers,
        address: 0,
    };
    anchor.add(
        py,
        NodeKind::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        // SAFETY: `add` passes live nodes.
        move |graph, after| unsafe { graph.add_allocation(after, &params).map(|(node, _)| node) },
    )
}

pub(super) fn deallocate(anchor: &Anchor<'_>, dptr: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let address = address_named(dptr, &anchor.function("deallocate"), "dptr")?;
    anchor.add(
        dptr.py(),
        NodeKind::CU_GRAPH_NODE_TYPE_MEM_FREE,
        // SAFETY: see above; the caller guarantees that the memory is not used afterwards.
        move |graph, after| unsafe { graph.add_free(after, address) },
    )
}

pub(super) fn callback(
    anchor: &Anchor<'_>,
    given: &Bound<'_, PyAny>,
    user_data: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let callback = host::accept(&anchor.function("callback"), given, user_data)?;
    anchor.add(
        given.py(),
        NodeKind::CU_GRAPH_NODE_TYPE_HOST,
        // SAFETY: `add` passes live nodes; the definition keeps the callback alive.
        move |graph, after| unsafe { graph.add_callback(after, &callback) },
    )
}

pub(super) fn event(
    anchor: &Anchor<'_>,
    given: &Bound<'_, PyAny>,
    recorded: bool,
) -> PyResult<Py<PyAny>> {
    let py = given.py();
    let (method, kind) = if recorded {
        ("record", NodeKind::CU_GRAPH_NODE_TYPE_EVENT_RECORD)
    } else {
        ("wait", NodeKind::CU_GRAPH_NODE_TYPE_WAIT_EVENT)
    };
    let event = event::accept(given, &anchor.function(method), "event")?;
    let event = event.get().lend(py)?;
    let core = &*event;
    // SAFETY: `add` passes live nodes; the event is lent for this call.
    anchor.add(py, kind, |graph, after| unsafe {
        if recorded {
            graph.add_record(after, core)
        } else {
            graph.add_wait(after, core)
        }
    })
}

pub(super) fn embed(anchor: &Anchor<'_>, child: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let function = anchor.function("embed");
    let child_definition = definition::accept(child, &function, "child")?;
    let core = &*child_definition.core;
    anchor.add_after(
        child.py(),
        NodeKind::CU_GRAPH_NODE_TYPE_GRAPH,
        anchor.after.into_iter().collect(),
        Some(core),
        // SAFETY: `add_after` passes live nodes; the child definition is live during this call.
        |graph, after| unsafe { graph.add_child(after, core) },
    )
}

pub(super) fn join(anchor: &Anchor<'_>, nodes: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let py = nodes.py();
    let function = anchor.function("join");
    let mut after: Vec<NamedNode> = anchor.after.into_iter().collect();
    for given in nodes.iter() {
        let node = PyGraphNode::accept(&given, &function, "nodes", anchor.definition)?;
        if let Some(node) = node
            && !after.iter().any(|known| known.address() == node.address())
        {
            after.push(node);
        }
    }
    anchor.add_after(
        py,
        NodeKind::CU_GRAPH_NODE_TYPE_EMPTY,
        after,
        None,
        // SAFETY: `add_after` passes live nodes.
        |core, after| unsafe { core.add_empty(after) },
    )
}

/// A conditional node.
#[derive(Clone, Copy)]
pub(super) enum Form {
    IfThen,
    IfElse,
    While,
    Switch(u32),
}

impl Form {
    pub(super) fn parts(self) -> (ConditionalKind, u32) {
        match self {
            Form::IfThen => (ConditionalKind::If, 1),
            Form::IfElse => (ConditionalKind::If, 2),
            Form::While => (ConditionalKind::While, 1),
            Form::Switch(count) => (ConditionalKind::Switch, count),
        }
    }

    fn method(self) -> &'static str {
        match self {
            Form::IfThen => "if_then",
            Form::IfElse => "if_else",
            Form::While => "while_loop",
            Form::Switch(_) => "switch",
        }
    }
}

/// Converts the argument `count` of a switch.
pub(super) fn switch_form(function: &str, count: &Bound<'_, PyAny>) -> PyResult<Form> {
    let number = number_argument(count, function, "count", "a number of branches")
        .map_err(|_| None)
        .and_then(|number| u32::try_from(number).map_err(|_| Some(number)))
        .ok()
        .filter(|number| *number != 0);
    match number {
        Some(number) => Ok(Form::Switch(number)),
        None if crate::core::numbers::index(count)?.is_none() => {
            Err(PyTypeError::new_err(format!(
                "{function}() argument 'count' is of type {}; expected an int",
                count.get_type().name()?
            )))
        }
        None => Err(PyValueError::new_err(format!(
            "{function}() argument 'count' is {}; expected a number of branches from 1 on",
            short_repr(count)
        ))),
    }
}

pub(super) fn conditional(
    anchor: &Anchor<'_>,
    form: Form,
    given: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let condition = accept_condition(given, &anchor.function(form.method()))?;
    let (kind, bodies) = form.parts();
    anchor.add(
        given.py(),
        NodeKind::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        // SAFETY: `add` passes live nodes; the condition was accepted for this definition.
        move |graph, after| unsafe {
            graph
                .add_conditional(after, condition, kind, bodies)
                .map(|(node, _)| node)
        },
    )
}

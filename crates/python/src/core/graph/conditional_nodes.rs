//! The methods of conditional nodes.

use cupyrite::graph::ConditionalKind;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::graph::condition::PyGraphCondition;
use crate::core::graph::definition::PyGraphDefinition;
use crate::core::graph::node::PyGraphNode;
use crate::core::graph::subclasses::{
    PyConditionalNode, PyIfElseNode, PyIfNode, PySwitchNode, PyWhileNode, base_repr, nested, read,
    typing_member,
};

/// Condition, kind and bodies of a conditional node.
fn conditional(
    node: &PyGraphNode,
    py: Python<'_>,
) -> PyResult<Option<cupyrite::graph::ConditionalParams>> {
    // SAFETY: the node is a valid conditional node.
    read(node, py, |core, node| unsafe {
        core.conditional_params_of(node)
    })
}

/// A body of a conditional node.
fn body(node: &PyGraphNode, py: Python<'_>, index: usize) -> PyResult<Py<PyGraphDefinition>> {
    let graph = conditional(node, py)?.and_then(|found| found.bodies.into_iter().nth(index));
    match graph {
        Some(graph) => nested(py, node, graph),
        None => Err(PyRuntimeError::new_err(
            "the driver does not report the bodies of this conditional node (CUDA 13.2 and later do)",
        )),
    }
}

#[pymethods]
impl PyConditionalNode {
    #[new]
    fn new() -> PyClassInitializer<PyConditionalNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyConditionalNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let details = conditional(slf.as_super().get(), slf.py())
            .ok()
            .flatten()
            .map(|found| format!(" condition={:#x}", found.condition.handle()))
            .unwrap_or_default();
        base_repr(slf.as_super(), &details)
    }

    /// The condition; None if the driver does not report it.
    #[getter]
    fn condition(slf: &Bound<'_, Self>) -> PyResult<Option<PyGraphCondition>> {
        let found = conditional(slf.as_super().get(), slf.py())?;
        Ok(found.map(|found| PyGraphCondition {
            condition: found.condition,
        }))
    }

    /// The type, a ``GraphConditionalType``; None if the driver does not report it.
    #[getter]
    fn cond_type(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let Some(found) = conditional(slf.as_super().get(), slf.py())? else {
            return Ok(None);
        };
        let name = match found.kind {
            ConditionalKind::If => "if",
            ConditionalKind::While => "while",
            ConditionalKind::Switch => "switch",
        };
        typing_member(slf.py(), "GraphConditionalType", name).map(Some)
    }

    /// The bodies, a tuple of GraphDefinition.
    #[getter]
    fn branches<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, node) = (slf.py(), slf.as_super().get());
        let bodies = match conditional(node, py)? {
            Some(found) => found
                .bodies
                .into_iter()
                .map(|graph| nested(py, node, graph))
                .collect::<PyResult<Vec<_>>>()?,
            None => Vec::new(),
        };
        PyTuple::new(py, bodies)
    }
}

/// The initializer of a conditional class.
fn conditional_base() -> PyClassInitializer<PyConditionalNode> {
    PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyConditionalNode)
}

#[pymethods]
impl PyIfNode {
    #[new]
    fn new() -> PyClassInitializer<PyIfNode> {
        conditional_base().add_subclass(PyIfNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        PyConditionalNode::__repr__(slf.as_super())
    }

    /// The body.
    #[getter]
    fn then(slf: &Bound<'_, Self>) -> PyResult<Py<PyGraphDefinition>> {
        body(slf.as_super().as_super().get(), slf.py(), 0)
    }
}

#[pymethods]
impl PyIfElseNode {
    #[new]
    fn new() -> PyClassInitializer<PyIfElseNode> {
        conditional_base().add_subclass(PyIfElseNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        PyConditionalNode::__repr__(slf.as_super())
    }

    /// The body for a condition that is not 0.
    #[getter]
    fn then(slf: &Bound<'_, Self>) -> PyResult<Py<PyGraphDefinition>> {
        body(slf.as_super().as_super().get(), slf.py(), 0)
    }

    /// The body for 0.
    #[getter]
    fn else_(slf: &Bound<'_, Self>) -> PyResult<Py<PyGraphDefinition>> {
        body(slf.as_super().as_super().get(), slf.py(), 1)
    }
}

#[pymethods]
impl PyWhileNode {
    #[new]
    fn new() -> PyClassInitializer<PyWhileNode> {
        conditional_base().add_subclass(PyWhileNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        PyConditionalNode::__repr__(slf.as_super())
    }

    /// The body.
    #[getter]
    fn body(slf: &Bound<'_, Self>) -> PyResult<Py<PyGraphDefinition>> {
        body(slf.as_super().as_super().get(), slf.py(), 0)
    }
}

#[pymethods]
impl PySwitchNode {
    #[new]
    fn new() -> PyClassInitializer<PySwitchNode> {
        conditional_base().add_subclass(PySwitchNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        PyConditionalNode::__repr__(slf.as_super())
    }
}

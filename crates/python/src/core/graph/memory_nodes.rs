//! The methods of nodes that allocate, free, fill or copy memory.

use std::sync::Arc;

use cupyrite::graph::{GraphMemoryKind, Retained};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::graph::add::{pattern, rows};
use crate::core::graph::arguments::{NodeOperand, OperandOwner, retain_owners, retained};
use crate::core::graph::node::PyGraphNode;
use crate::core::graph::subclasses::{
    PyAllocNode, PyFreeNode, PyMemcpyNode, PyMemsetNode, base_repr, read, retained_for,
    typing_member,
};
use crate::core::numbers::size_argument;

#[pymethods]
impl PyAllocNode {
    #[new]
    fn new() -> PyClassInitializer<PyAllocNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyAllocNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let details = allocation(slf)
            .map(|found| format!(" dptr={:#x} bytesize={}", found.address, found.bytes))
            .unwrap_or_default();
        base_repr(slf.as_super(), &details)
    }

    /// Address of the memory.
    #[getter]
    fn dptr(slf: &Bound<'_, Self>) -> PyResult<u64> {
        allocation(slf).map(|found| found.address)
    }

    /// Size in bytes.
    #[getter]
    fn bytesize(slf: &Bound<'_, Self>) -> PyResult<usize> {
        allocation(slf).map(|found| found.bytes)
    }

    /// Device number.
    #[getter]
    fn device_id(slf: &Bound<'_, Self>) -> PyResult<usize> {
        allocation(slf).map(|found| found.device.ordinal())
    }

    /// Kind of memory, a ``GraphMemoryType``.
    #[getter]
    fn memory_type(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let name = match allocation(slf)?.kind {
            GraphMemoryKind::Device => "device",
            GraphMemoryKind::Host => "host",
            GraphMemoryKind::Managed => "managed",
        };
        typing_member(slf.py(), "GraphMemoryType", name)
    }

    /// Other devices that may access the memory.
    #[getter]
    fn peer_access<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let peers = allocation(slf)?.peers;
        PyTuple::new(slf.py(), peers.iter().map(|peer| peer.ordinal()))
    }
}

fn allocation(node: &Bound<'_, PyAllocNode>) -> PyResult<cupyrite::graph::AllocationParams> {
    // SAFETY: the node is a valid allocation node.
    read(node.as_super().get(), node.py(), |core, node| unsafe {
        core.allocation_params_of(node)
    })
}

#[pymethods]
impl PyFreeNode {
    #[new]
    fn new() -> PyClassInitializer<PyFreeNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyFreeNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let details = Self::dptr(slf)
            .map(|address| format!(" dptr={address:#x}"))
            .unwrap_or_default();
        base_repr(slf.as_super(), &details)
    }

    /// Address of the memory.
    #[getter]
    fn dptr(slf: &Bound<'_, Self>) -> PyResult<u64> {
        // SAFETY: the node is a valid deallocation node.
        read(slf.as_super().get(), slf.py(), |core, node| unsafe {
            core.freed_address_of(node)
        })
    }
}

#[pymethods]
impl PyMemsetNode {
    #[new]
    fn new() -> PyClassInitializer<PyMemsetNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyMemsetNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let details = fill(slf)
            .map(|found| {
                format!(
                    " dptr={:#x} value={} width={} height={}",
                    found.destination,
                    found.element(),
                    found.width,
                    found.height
                )
            })
            .unwrap_or_default();
        base_repr(slf.as_super(), &details)
    }

    /// Destination.
    #[getter]
    fn dptr(slf: &Bound<'_, Self>) -> PyResult<u64> {
        fill(slf).map(|found| found.destination)
    }

    /// Element.
    #[getter]
    fn value(slf: &Bound<'_, Self>) -> PyResult<u32> {
        fill(slf).map(|found| found.element())
    }

    /// Size of an element in bytes: 1, 2 or 4.
    #[getter]
    fn element_size(slf: &Bound<'_, Self>) -> PyResult<usize> {
        fill(slf).map(|found| found.value.width())
    }

    /// Elements per row.
    #[getter]
    fn width(slf: &Bound<'_, Self>) -> PyResult<usize> {
        fill(slf).map(|found| found.width)
    }

    /// Rows.
    #[getter]
    fn height(slf: &Bound<'_, Self>) -> PyResult<usize> {
        fill(slf).map(|found| found.height)
    }

    /// Bytes from one row to the next.
    #[getter]
    fn pitch(slf: &Bound<'_, Self>) -> PyResult<usize> {
        fill(slf).map(|found| found.pitch)
    }

    /// Replaces parameters. What is not given stays.
    ///
    /// Parameters
    /// ----------
    /// dst, value, width, height, pitch, dst_owner
    ///     As in :meth:`GraphNode.memset`.
    #[pyo3(signature = (*, dst=None, value=None, width=None, height=None, pitch=None, dst_owner=None))]
    fn update(
        slf: &Bound<'_, Self>,
        dst: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        width: Option<&Bound<'_, PyAny>>,
        height: Option<&Bound<'_, PyAny>>,
        pitch: Option<&Bound<'_, PyAny>>,
        dst_owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        const FUNCTION: &str = "MemsetNode.update";
        let (py, node) = (slf.py(), slf.as_super().get());
        let [width, height, pitch] = rows(FUNCTION, [width, height, pitch])?;
        let mut params = fill(slf)?;
        if let Some(value) = value.filter(|value| !value.is_none()) {
            params.value = pattern(FUNCTION, value)?;
        }
        params.width = width.unwrap_or(params.width);
        params.height = height.unwrap_or(params.height);
        params.pitch = pitch.unwrap_or(params.pitch);
        let operand = optional_operand(dst, dst_owner, FUNCTION, "dst")?;
        let owner = match operand {
            Some(operand) => {
                operand.check_fill(&params, FUNCTION)?;
                params.destination = operand.address;
                // Without an owner, nothing is retained any more.
                Some(retain_owners(vec![operand.owner]).unwrap_or_else(|| Arc::new(())))
            }
            None => None,
        };
        // SAFETY: the node is a valid fill node; the caller guarantees that the address is valid.
        read(node, py, |core, node| unsafe {
            core.set_memset(node, params, owner)
        })
    }
}

fn fill(node: &Bound<'_, PyMemsetNode>) -> PyResult<cupyrite::graph::MemsetParams> {
    // SAFETY: the node is a valid fill node.
    read(node.as_super().get(), node.py(), |core, node| unsafe {
        core.memset_params_of(node)
    })
}

/// An operand of an update; `None` if it stays.
fn optional_operand(
    given: Option<&Bound<'_, PyAny>>,
    owner: Option<&Bound<'_, PyAny>>,
    function: &str,
    parameter: &str,
) -> PyResult<Option<NodeOperand>> {
    match given.filter(|given| !given.is_none()) {
        Some(given) => NodeOperand::accept(given, owner, function, parameter).map(Some),
        None if owner.is_some_and(|owner| !owner.is_none()) => Err(PyValueError::new_err(format!(
            "{function}() argument '{parameter}_owner' requires '{parameter}', the address that it owns"
        ))),
        None => Ok(None),
    }
}

/// The owner of an operand that an update does not replace, and the new owner of the other one.
struct PartlyReplaced(#[expect(dead_code, reason = "held for its destructor")] Retained);

#[pymethods]
impl PyMemcpyNode {
    #[new]
    fn new() -> PyClassInitializer<PyMemcpyNode> {
        PyClassInitializer::from(PyGraphNode::detached()).add_subclass(PyMemcpyNode)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let details = copied(slf)
            .map(|found| {
                format!(
                    " dst={:#x} src={:#x} size={}",
                    found.destination, found.source, found.bytes
                )
            })
            .unwrap_or_default();
        base_repr(slf.as_super(), &details)
    }

    /// Address of the destination.
    #[getter]
    fn dst(slf: &Bound<'_, Self>) -> PyResult<u64> {
        copied(slf).map(|found| found.destination)
    }

    /// Address of the source.
    #[getter]
    fn src(slf: &Bound<'_, Self>) -> PyResult<u64> {
        copied(slf).map(|found| found.source)
    }

    /// Number of bytes.
    #[getter]
    fn size(slf: &Bound<'_, Self>) -> PyResult<usize> {
        copied(slf).map(|found| found.bytes)
    }

    /// Replaces parameters. What is not given stays.
    ///
    /// Parameters
    /// ----------
    /// dst, src, size, dst_owner, src_owner
    ///     As in :meth:`GraphNode.memcpy`.
    #[pyo3(signature = (*, dst=None, src=None, size=None, dst_owner=None, src_owner=None))]
    fn update(
        slf: &Bound<'_, Self>,
        dst: Option<&Bound<'_, PyAny>>,
        src: Option<&Bound<'_, PyAny>>,
        size: Option<&Bound<'_, PyAny>>,
        dst_owner: Option<&Bound<'_, PyAny>>,
        src_owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        const FUNCTION: &str = "MemcpyNode.update";
        let (py, node) = (slf.py(), slf.as_super().get());
        let mut params = copied(slf)?;
        if let Some(size) = size.filter(|size| !size.is_none()) {
            params.bytes = size_argument(size, FUNCTION)?;
        }
        let dst = optional_operand(dst, dst_owner, FUNCTION, "dst")?;
        let src = optional_operand(src, src_owner, FUNCTION, "src")?;
        let replaces_both = dst.is_some() && src.is_some();
        let replaces_any = dst.is_some() || src.is_some();
        let mut owners: Vec<Option<OperandOwner>> = Vec::new();
        if let Some(dst) = dst {
            dst.check_size(params.bytes, FUNCTION, "dst")?;
            params.destination = dst.address;
            owners.push(dst.owner);
        }
        if let Some(src) = src {
            src.check_size(params.bytes, FUNCTION, "src")?;
            params.source = src.address;
            owners.push(src.owner);
        }
        let value = if !replaces_any {
            None
        } else {
            let new = retain_owners(owners).unwrap_or_else(|| Arc::new(()));
            match retained_for(node, py)? {
                // The other operand's owner stays with the former ones.
                Some(former) if !replaces_both => Some(retained((PartlyReplaced(former), new))),
                _ => Some(new),
            }
        };
        // SAFETY: the node is a valid copy node; the caller guarantees that the addresses are valid.
        read(node, py, |core, node| unsafe {
            core.set_memcpy(node, params, value)
        })
    }
}

fn copied(node: &Bound<'_, PyMemcpyNode>) -> PyResult<cupyrite::graph::MemcpyParams> {
    // SAFETY: the node is a valid copy node.
    let found = read(node.as_super().get(), node.py(), |core, node| unsafe {
        core.memcpy_params_of(node)
    })?;
    found.ok_or_else(|| {
        PyValueError::new_err(
            "this MemcpyNode copies rows or arrays, which have no single address and size",
        )
    })
}

//! What a graph retains of Python objects: kernel arguments, buffers, owners.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use cupyrite::graph::{MemsetParams, Retained};
use cupyrite::{Kernel, ParamInfo, Stream, SurfaceObject, TextureObject};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

use crate::bindings::call::convert::Objects;
use crate::bindings::kernel_parameters::Packer;
use crate::core::errors::{OrRaise, to_python};
use crate::core::launch::packing::{are_numbers, pack};
use crate::core::launch::parameter::Target;
use crate::core::launch::pins::{Args, Hold, Kept};
use crate::core::memory::buffer::PyBuffer;
use crate::core::numbers::elements_of;
use crate::core::texture::object::{PySurfaceObject, PyTextureObject};
use crate::cpython::{DropAttached, Raised};

/// Drops a driver object of a graph without the GIL, in the destructor of a Python object. Unlike
/// [`drop_detached`](crate::core::closable::drop_detached), what the graph retains may contain Python objects: the thread
/// is detached in a way that PyO3 sees.
pub fn drop_graph_object<T: Send>(value: T) {
    Python::attach(|py| py.detach(|| drop(value)));
}

/// A driver object of a graph, dropped by [`drop_graph_object`].
pub struct GraphObject<T: Send>(ManuallyDrop<T>);

impl<T: Send> GraphObject<T> {
    /// Wraps a value.
    pub fn new(value: T) -> GraphObject<T> {
        GraphObject(ManuallyDrop::new(value))
    }
}

impl<T: Send> std::ops::Deref for GraphObject<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for GraphObject<T> {
    fn drop(&mut self) {
        // SAFETY: taken once; not accessed afterwards.
        drop_graph_object(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Makes a value a graph can retain.
pub fn retained<T: 'static>(value: T) -> Retained {
    Arc::new(DropAttached::new(value))
}

/// What [`retained`] was given.
pub fn retained_ref<'a, T: 'static>(py: Python<'a>, value: &'a Retained) -> Option<&'a T> {
    let value = value.downcast_ref::<DropAttached<T>>()?;
    Some(value.get(py))
}

/// Kernel and arguments of a launch in a graph.
pub struct LaunchArguments<K> {
    /// The kernel's object, or nothing.
    pub kernel: K,
    /// Textures and surfaces among the arguments, which may be closed. Dropped before their memory.
    #[expect(dead_code, reason = "held for its destructor")]
    sampled: Vec<Sampled>,
    /// The arguments, whose buffers are pinned.
    #[expect(dead_code, reason = "held for its destructor")]
    kept: Kept,
    /// Objects of other packages whose memory the arguments refer to.
    #[expect(dead_code, reason = "held for its destructor")]
    keep: Objects,
}

/// A texture or surface of a launch in a graph.
#[expect(dead_code, reason = "held for its destructor")]
enum Sampled {
    Texture(TextureObject, Option<BufferPin>),
    Surface(SurfaceObject),
}

impl Sampled {
    /// The textures and surfaces among arguments.
    fn among(args: &Bound<'_, PyTuple>) -> PyResult<Vec<Sampled>> {
        let py = args.py();
        let mut found = Vec::new();
        for arg in args.iter_borrowed() {
            if let Ok(texture) = arg.cast::<PyTextureObject>() {
                if let Some((texture, buffer)) = texture.get().for_graph(py) {
                    let pin = match buffer {
                        Some(buffer) => BufferPin::new(buffer.bind(py))?.1,
                        None => None,
                    };
                    found.push(Sampled::Texture(texture, pin));
                }
            } else if let Ok(surface) = arg.cast::<PySurfaceObject>() {
                found.extend(surface.get().for_graph(py).map(Sampled::Surface));
            }
        }
        Ok(found)
    }
}

/// Packs arguments for `submit`, which gets their addresses and what the graph must retain.
///
/// # Errors
///
/// As [`pack`], and those of `submit`.
pub fn with_packed<R, K: 'static>(
    function: &'static str,
    core: &Kernel,
    args: &Bound<'_, PyTuple>,
    kernel: K,
    submit: impl FnOnce(*mut *mut c_void, Retained) -> PyResult<R>,
) -> PyResult<R> {
    let items = items_of(args);
    // SAFETY: the tuple owns its items.
    let list = unsafe { Args::new(&items) };
    pack_for_graph(function, core, args, list, |pointers, kept, keep| {
        let value = retained(LaunchArguments {
            kernel,
            sampled: Sampled::among(args)?,
            kept,
            keep,
        });
        submit(pointers, value)
    })
}

/// Packs arguments for `submit`, which gets their addresses and what owns them.
fn pack_for_graph<R>(
    function: &'static str,
    core: &Kernel,
    args: &Bound<'_, PyTuple>,
    list: Args<'_>,
    submit: impl FnOnce(*mut *mut c_void, Kept, Objects) -> PyResult<R>,
) -> PyResult<R> {
    let py = args.py();
    let kept = Kept::for_graph(args.clone().unbind());
    let (mut packer, mut keep) = (Packer::new(), Objects::new());
    let target = Target {
        function,
        kernel: Some(core),
        params: params_of(py, core),
        hold: Hold::Kept(&kept),
    };
    let pointers =
        pack(&mut packer, list, &target, &mut keep).map_err(|Raised| PyErr::fetch(py))?;
    submit(pointers, kept, keep)
}

/// As [`with_packed`], for a kernel whose object need not be retained. `submit` gets nothing to retain if all arguments are
/// plain numbers.
///
/// # Errors
///
/// As [`with_packed`].
pub fn with_arguments<R>(
    function: &'static str,
    core: &Kernel,
    args: &Bound<'_, PyTuple>,
    submit: impl FnOnce(*mut *mut c_void, Option<Retained>) -> PyResult<R>,
) -> PyResult<R> {
    let items = items_of(args);
    // SAFETY: the tuple owns its items.
    let list = unsafe { Args::new(&items) };
    if !are_numbers(list) {
        return with_packed(function, core, args, (), |pointers, value| {
            submit(pointers, Some(value))
        });
    }
    pack_for_graph(function, core, args, list, |pointers, _, _| {
        submit(pointers, None)
    })
}

fn items_of(args: &Bound<'_, PyTuple>) -> Vec<*mut ffi::PyObject> {
    args.iter_borrowed().map(|arg| arg.as_ptr()).collect()
}

/// The kernel's parameters. Detached if they are not yet known: the driver may compile and load the code.
fn params_of<'a>(py: Python<'_>, core: &'a Kernel) -> Option<&'a [ParamInfo]> {
    match core.cached_params() {
        Some(params) => params,
        None => py.detach(|| core.params()),
    }
}

/// A pinned buffer: its memory stays valid, also if it is closed.
pub struct BufferPin(Py<PyBuffer>);

impl BufferPin {
    fn new(buffer: &Bound<'_, PyBuffer>) -> PyResult<(u64, Option<BufferPin>)> {
        let py = buffer.py();
        if buffer.get().is_graph_memory(py) {
            // It belongs to a graph, which allocates and frees it.
            let extent = buffer.get().extent();
            return if extent.open {
                Ok((extent.address, None))
            } else {
                Err(buffer.get().closed_error())
            };
        }
        match buffer.get().begin_launch(py) {
            Some(address) => Ok((address, Some(BufferPin(buffer.clone().unbind())))),
            None => Err(buffer.get().closed_error()),
        }
    }
}

impl Drop for BufferPin {
    fn drop(&mut self) {
        // SAFETY: part of an operand, or of `DropAttached`: dropped on an attached thread.
        let py = unsafe { Python::assume_attached() };
        self.0.get().unpin(py);
    }
}

/// Pins buffers for the graph that `stream` records. Called before work that uses them is recorded.
///
/// # Errors
///
/// `RuntimeError` for a closed buffer; driver errors.
#[cold]
pub fn retain_buffers(stream: &Stream, buffers: &[&Bound<'_, PyBuffer>]) -> PyResult<()> {
    let mut pins = Vec::new();
    for buffer in buffers {
        pins.extend(BufferPin::new(buffer)?.1);
    }
    let (Some(first), false) = (buffers.first(), pins.is_empty()) else {
        return Ok(());
    };
    let py = first.py();
    let value = retained(pins);
    py.detach(|| stream.retain_recorded(value)).or_raise(py)
}

/// What an operand needs.
#[expect(dead_code, reason = "held for its destructor")]
pub enum OperandOwner {
    /// A pinned buffer.
    Buffer(BufferPin),
    /// An object that owns the memory of an address.
    Object(Py<PyAny>),
}

/// An address of a copy or fill, and what the graph retains for it.
pub struct NodeOperand {
    /// The address.
    pub address: u64,
    /// The owner, if any.
    pub owner: Option<OperandOwner>,
    /// Size of a buffer in bytes.
    size: Option<usize>,
}

impl NodeOperand {
    /// Checks that a buffer has at least `bytes` bytes.
    ///
    /// # Errors
    ///
    /// `ValueError` for a smaller buffer.
    pub fn check_size(&self, bytes: usize, function: &str, parameter: &str) -> PyResult<()> {
        match self.size {
            Some(size) if size < bytes => Err(pyo3::exceptions::PyValueError::new_err(format!(
                "{function}() argument '{parameter}' has {size} bytes; the node accesses {bytes}"
            ))),
            _ => Ok(()),
        }
    }

    /// [`NodeOperand::check_size`] for a fill.
    ///
    /// # Errors
    ///
    /// As [`NodeOperand::check_size`].
    pub fn check_fill(&self, params: &MemsetParams, function: &str) -> PyResult<()> {
        let row = params.width.saturating_mul(params.value.width());
        let rows_before = params.height.saturating_sub(1);
        let bytes = rows_before.saturating_mul(params.pitch).saturating_add(row);
        self.check_size(bytes, function, "dst")
    }

    /// Converts a buffer, or an address with an optional owner.
    ///
    /// # Errors
    ///
    /// `TypeError` for other types, `ValueError` for a buffer with an owner, `RuntimeError` for a closed buffer.
    pub fn accept(
        given: &Bound<'_, PyAny>,
        owner: Option<&Bound<'_, PyAny>>,
        function: &str,
        parameter: &str,
    ) -> PyResult<NodeOperand> {
        let owner = owner.filter(|owner| !owner.is_none());
        if let Ok(buffer) = given.cast::<PyBuffer>() {
            if owner.is_some() {
                return Err(pyo3::exceptions::PyValueError::new_err(format!(
                    "{function}() argument '{parameter}' is a Buffer, which owns its memory; '{parameter}_owner' is only \
                     for an address"
                )));
            }
            let (address, pin) = BufferPin::new(buffer)?;
            return Ok(NodeOperand {
                address,
                owner: pin.map(OperandOwner::Buffer),
                size: Some(buffer.get().extent().size),
            });
        }
        let address = address_or_buffer(given, function, parameter)?;
        let owner = match owner {
            None => None,
            Some(owner) => match owner.cast::<PyBuffer>() {
                Ok(buffer) => BufferPin::new(buffer)?.1.map(OperandOwner::Buffer),
                Err(_) => Some(OperandOwner::Object(owner.clone().unbind())),
            },
        };
        Ok(NodeOperand {
            address,
            owner,
            size: None,
        })
    }
}

/// The exception for an error of a call that Python's users know as `function`, with the names of Python.
#[cold]
pub fn raised(py: Python<'_>, function: &str, error: cupyrite::Error) -> PyErr {
    let cupyrite::Error::InvalidArgument {
        parameter, problem, ..
    } = &error
    else {
        return to_python(py, &error);
    };
    let function = function.trim_end_matches("()");
    if parameter == "self" || parameter == "node" {
        PyRuntimeError::new_err(format!("{function}(): the graph or node {problem}"))
    } else {
        PyValueError::new_err(format!("{function}() argument '{parameter}' {problem}"))
    }
}

/// Iterates over an argument that contains several objects.
///
/// # Errors
///
/// `TypeError` for an object that is not iterable.
pub fn iterate<'py>(
    given: &Bound<'py, PyAny>,
    function: &str,
    parameter: &str,
    expected: &str,
) -> PyResult<Bound<'py, PyIterator>> {
    let what = || format!("{function}() argument '{parameter}'");
    elements_of(given, what, expected)
}

/// Converts an address.
fn address_or_buffer(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<u64> {
    if let Some(value) = crate::types::handle_value(crate::cpython::Obj::of(given)) {
        return Ok(value);
    }
    let invalid = || -> PyResult<PyErr> {
        Ok(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected a Buffer or an address as int",
            given.get_type().name()?
        )))
    };
    match crate::core::numbers::whole_number(given)? {
        Some(number) => number.extract::<u64>().map_err(|_| {
            pyo3::exceptions::PyOverflowError::new_err(format!(
                "{function}() argument '{parameter}' is {}; expected an address from 0 to 2**64-1",
                crate::core::numbers::short_repr(&number)
            ))
        }),
        None => Err(invalid()?),
    }
}

/// Retains the owners of operands; `None` if there are none.
pub fn retain_owners(owners: Vec<Option<OperandOwner>>) -> Option<Retained> {
    let owners: Vec<OperandOwner> = owners.into_iter().flatten().collect();
    if owners.is_empty() {
        None
    } else {
        Some(retained(owners))
    }
}

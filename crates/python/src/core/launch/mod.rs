//! `launch`, its configuration, and `ParamHolder`.
//!
//! Launches are the hottest calls: `launch` is a `METH_FASTCALL` function, argument types are recognized by address,
//! and arguments are packed on the stack.

pub mod arrays;
pub mod config;
pub mod packing;
pub mod parameter;
pub mod pins;

use pyo3::exceptions::{PyDeprecationWarning, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bindings::call::convert::Objects;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::kernel_parameters::{Packed, Packer};
use crate::bindings::symbols;
use crate::core::errors::{OrRaise, to_python};
use crate::core::graph::add::PackedPointers;
use crate::core::graph::arguments::with_packed;
use crate::core::graph::builder::PyGraphBuilder;
pub use crate::core::launch::config::PyLaunchConfig;
use crate::core::launch::packing::{are_numbers, pack};
use crate::core::launch::parameter::Target;
use crate::core::launch::pins::{Args, Hold, Kept, Pins, bound};
use crate::core::module::kernel;
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::cpython;
use crate::cpython::guard;
use crate::cpython::{Obj, Owned, R, Raised};

/// Names of the leading parameters.
const NAMES: [&str; 3] = ["stream", "config", "kernel"];

/// `launch(stream, config, kernel, *kernel_args)`.
unsafe extern "C" fn launch(
    _: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the calling convention guarantees the stated number of borrowed references and an attached thread.
        unsafe {
            let first = args;
            let args = if count > 0 {
                std::slice::from_raw_parts(first, count.cast_unsigned())
            } else {
                &[]
            };
            if names.is_null()
                && let [stream, config, kernel, args @ ..] = args
            {
                return queue(*stream, *config, *kernel, args);
            }
            let [stream, config, kernel] = named(args, first.add(args.len()), names)?;
            queue(stream, config, kernel, args.get(3..).unwrap_or_default())
        }
    })
}

/// Binds the first three arguments if some are given by keyword or missing.
///
/// # Safety
///
/// `args` are the positional arguments and `values` the keyword arguments, one for each of `names`, which is null or a
/// tuple. All are live.
#[cold]
unsafe fn named(
    args: &[*mut ffi::PyObject],
    values: *const *mut ffi::PyObject,
    names: *mut ffi::PyObject,
) -> R<[*mut ffi::PyObject; 3]> {
    let mut found = [std::ptr::null_mut(); 3];
    for (place, arg) in found.iter_mut().zip(args) {
        *place = *arg;
    }
    if !names.is_null() {
        // SAFETY: a live tuple.
        let keywords = unsafe { Obj::new(names) }.snapshot()?;
        for index in 0..keywords.len() {
            let name = keywords.get(index).text().unwrap_or_default();
            let Some(which) = NAMES.iter().position(|known| *known == name) else {
                let message = format!("launch() got an unexpected keyword argument '{name}'");
                return Err(errors::raise(ExceptionKind::Type, &message));
            };
            if !found[which].is_null() {
                let message = format!("launch() got multiple values for argument '{name}'");
                return Err(errors::raise(ExceptionKind::Type, &message));
            }
            // SAFETY: there is a value for each name.
            found[which] = unsafe { *values.add(index) };
        }
    }
    if let Some(missing) = found.iter().position(|value| value.is_null()) {
        let message = format!(
            "launch() missing 1 required argument: '{}'; expected launch(stream, config, kernel, *kernel_args)",
            NAMES[missing]
        );
        return Err(errors::raise(ExceptionKind::Type, &message));
    }
    Ok(found)
}

/// Queues a kernel.
///
/// # Safety
///
/// All are live objects held by the caller; the thread is attached.
#[inline(always)]
unsafe fn queue(
    stream: *mut ffi::PyObject,
    config: *mut ffi::PyObject,
    kernel: *mut ffi::PyObject,
    args: &[*mut ffi::PyObject],
) -> R<Owned> {
    // SAFETY: the thread is attached, the objects are live.
    let (py, stream, config, args) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            Borrowed::from_ptr(py, stream),
            Borrowed::from_ptr(py, config),
            Args::new(args),
        )
    };
    let raise = cpython::set;
    let foreign =
        !stream.is_instance_of::<PyStream>() && !stream.is_instance_of::<PyGraphBuilder>();
    let stream = stream::lend(&stream, "launch", "stream", true).map_err(raise)?;
    if foreign {
        warn_of_foreign_stream(py).map_err(raise)?;
    }
    let Ok(config) = config.cast::<PyLaunchConfig>() else {
        // SAFETY: `config` is a live object.
        return Err(invalid("config", "a LaunchConfig", unsafe {
            Obj::new(config.as_ptr())
        }));
    };
    let config = config.get().get();
    // SAFETY: as above; the caller holds the kernel during this call.
    let Some(kernel) = (unsafe { kernel::borrow(py, kernel) }) else {
        // SAFETY: `kernel` is a live argument of this call.
        return Err(invalid("kernel", "a Kernel", unsafe { Obj::new(kernel) }));
    };
    if stream.is_of_builder() && !are_numbers(args) {
        return record(py, &stream, &config, kernel, args).map_err(raise);
    }
    let (mut packer, mut keep) = (Packer::new(), Objects::new());
    // Dropped after the thread is attached again.
    let pins = Pins::new(args, &stream);
    let target = Target {
        function: "launch",
        kernel: Some(kernel),
        params: match kernel.cached_params() {
            Some(params) => params,
            None => ask_for_params(py, kernel),
        },
        hold: Hold::Launch(&pins),
    };
    let params = pack(&mut packer, args, &target, &mut keep)?;
    // Detached: the driver may wait for room in the stream's queue.
    // SAFETY: the call touches no Python object. One address per argument; number and sizes match the kernel's parameters
    // where the driver reports them, and the caller guarantees their meaning, as for every launch.
    let launched = unsafe { cpython::detached(|| kernel.launch_raw(&stream, &config, params)) };
    match launched {
        Ok(()) => {
            symbols::check_interrupt()?;
            Ok(cpython::none())
        }
        Err(error) => Err(raise(to_python(py, &error))),
    }
}

/// Records a launch in a graph, which retains kernel and arguments.
#[cold]
fn record(
    py: Python<'_>,
    stream: &cupyrite::Stream,
    config: &cupyrite::LaunchConfig,
    kernel: &cupyrite::Kernel,
    args: Args<'_>,
) -> PyResult<Owned> {
    let items = (0..args.len()).map(|index| bound(args.get(index)).to_owned());
    let args = PyTuple::new(py, items.collect::<Vec<_>>())?;
    with_packed("launch", kernel, &args, (), |pointers, value| {
        let pointers = PackedPointers::of(pointers);
        // SAFETY: as in `queue`.
        py.detach(|| unsafe {
            stream.retain_recorded(value)?;
            kernel.launch_raw(stream, config, pointers.get())
        })
        .or_raise(py)
    })?;
    Ok(cpython::none())
}

/// The kernel's parameters on its first launch. Detached: the driver may compile and load the code and wait for other
/// threads.
#[cold]
fn ask_for_params<'a>(
    py: Python<'_>,
    kernel: &'a cupyrite::Kernel,
) -> Option<&'a [cupyrite::ParamInfo]> {
    py.detach(|| kernel.params())
}

/// Warns about a stream of another library.
#[cold]
fn warn_of_foreign_stream(py: Python<'_>) -> PyResult<()> {
    PyErr::warn(
        py,
        &py.get_type::<PyDeprecationWarning>(),
        c"launch() with a foreign stream object is deprecated; create a Stream from it once with \
          Device.create_stream(obj)",
        1,
    )
}

#[cold]
fn invalid(parameter: &'static str, wanted: &str, got: Obj<'_>) -> Raised {
    let site = errors::Site {
        func: "launch",
        param: parameter,
    };
    errors::wrong_type(site, wanted, got)
}

/// Packed kernel arguments for functions of ``cuda.bindings`` that take ``kernelParams``.
///
/// The object holds its arguments and their bytes for its lifetime. The memory of its buffers stays valid as long, even
/// if they are closed; it is then freed stream-ordered on the buffers' streams. Keep the object alive until its kernels
/// are queued, and close buffers used in another stream with ``buffer.close(stream)``.
///
/// Parameters
/// ----------
/// kernel_args : sequence
///     Arguments of the types accepted by :func:`cuda.core.launch`. Without a kernel, an int has 8 bytes and a bool
///     one.
///     otherwise here.
#[pyclass(
    frozen,
    subclass,
    module = "cuda.core._kernel_arg_handler",
    name = "ParamHolder"
)]
pub struct ParamHolder {
    kept: Kept,
    packed: Packed,
}

#[pymethods]
impl ParamHolder {
    #[new]
    fn new(kernel_args: &Bound<'_, PyAny>) -> PyResult<ParamHolder> {
        let py = kernel_args.py();
        // SAFETY: the object is live.
        if unsafe { ffi::PySequence_Check(kernel_args.as_ptr()) } == 0 {
            return Err(PyTypeError::new_err(format!(
                "ParamHolder() argument 'kernel_args' must be a sequence such as a tuple, not {}",
                kernel_args.get_type().name()?
            )));
        }
        // SAFETY: the object is live; the result is a new tuple or null with an exception.
        let args: Bound<'_, PyTuple> = unsafe {
            let tuple = ffi::PySequence_Tuple(kernel_args.as_ptr());
            Bound::from_owned_ptr_or_err(py, tuple)?.cast_into()?
        };
        let items: Vec<*mut ffi::PyObject> = args.iter_borrowed().map(|arg| arg.as_ptr()).collect();
        let kept = Kept::new(args.clone().unbind());
        let target = Target {
            function: "ParamHolder",
            kernel: None,
            params: None,
            hold: Hold::Kept(&kept),
        };
        // SAFETY: the tuple owns its items.
        let args = unsafe { Args::new(&items) };
        let packed = Packed::new(|packer, keep| pack(packer, args, &target, &mut keep.objects))
            .map_err(|Raised| PyErr::fetch(py))?;
        Ok(ParamHolder { kept, packed })
    }

    /// Address of the array of argument pointers (``void **``) as an int; 0 if there are no arguments.
    #[getter]
    fn ptr(&self) -> u64 {
        self.packed.address()
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(self.kept.args())
    }
}

const DOC: &std::ffi::CStr = with_example!(
    "launch(stream, config, kernel, *kernel_args)
--

Queues a kernel in a stream.

The number and sizes of the arguments are checked against the kernel's parameters if the driver reports them (CUDA 12.4).

Parameters
----------
stream : Stream or GraphBuilder
    The stream. Other objects with ``__cuda_stream__`` are accepted and deprecated.
config : LaunchConfig
    The launch configuration.
kernel : Kernel
    The kernel.
*kernel_args
    One value per kernel parameter:

    ====================================================  ==========================================================
    bool, int                                             an integer of the parameter's size, or an address
    float; complex                                        a double; two doubles
    NumPy scalars, simple ctypes types                    their bytes
    NumPy structured scalars, Structure, Union, Array     a structure by value
    Buffer, ``__cuda_array_interface__``, DLPack          the address of device memory
    handles and structures of ``cuda.bindings``           their value
    ====================================================  ==========================================================

Raises
------
TypeError
    An argument has the invalid type or size, or their number is invalid. The message names the position, counted from 0.
OverflowError
    An int does not fit its parameter.
ValueError
    A cooperative launch has more blocks than can be resident at once.
RuntimeError
    The stream or a buffer was closed.
CUDAError
    Driver errors. Errors of the kernel itself are reported by a later call, such as ``stream.sync()``.

See `cuLaunchKernelEx <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html>`_.",
    "cuda.core.launch"
);

/// Adds the classes and the function.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyLaunchConfig>()?;
    core.add_class::<ParamHolder>()?;
    let py = core.py();
    // The function refers to its definition for the lifetime of the process.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"launch".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: launch,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    }));
    let home = pyo3::types::PyString::new(py, "cuda.core._launcher");
    // SAFETY: a complete, static definition and a live name.
    let function = unsafe {
        let created = ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), home.as_ptr());
        Bound::from_owned_ptr_or_err(py, created)?
    };
    core.add("launch", function)
}

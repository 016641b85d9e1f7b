//! `launch`, its configuration, and `ParamHolder`.
//!
//! A launch is the hottest call there is: its function is a plain C function of Python's, its objects are recognised by
//! their types' addresses, its arguments are packed on the stack.

pub mod arrays;
pub mod config;
pub mod packing;
pub mod scalar_types;

use std::ffi::c_void;

use pyo3::exceptions::{PyDeprecationWarning, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bindings::errors;
use crate::bindings::errors::Kind;
use crate::bindings::function::guard;
use crate::bindings::symbols;
use crate::core::closable::Detached;
use crate::core::errors::to_python;
pub use crate::core::launch::config::PyLaunchConfig;
pub use crate::core::launch::packing::{Args, Hold, Kept, Packer, Pins, Target};
use crate::core::module::kernel;
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// The names of the first parameters.
const NAMES: [&str; 3] = ["stream", "config", "kernel"];

/// `launch(stream, config, kernel, *kernel_args)`.
unsafe extern "C" fn launch(
    _: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the protocol gives as many borrowed references as it says, on an attached thread.
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

/// The first three arguments where some are given by name, or are missing.
///
/// # Safety
///
/// `args` are the positional arguments, `values` points to those of the keywords, one for each of `names`, which is null
/// or a tuple. All are live.
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
                return Err(errors::raise(Kind::Type, &message));
            };
            if !found[which].is_null() {
                let message = format!("launch() got multiple values for argument '{name}'");
                return Err(errors::raise(Kind::Type, &message));
            }
            // SAFETY: there is a value for each name.
            found[which] = unsafe { *values.add(index) };
        }
    }
    if let Some(missing) = found.iter().position(|value| value.is_null()) {
        let message = format!(
            "launch() misses the argument '{}'; it is launch(stream, config, kernel, *kernel_args)",
            NAMES[missing]
        );
        return Err(errors::raise(Kind::Type, &message));
    }
    Ok(found)
}

/// Queues a kernel.
///
/// # Safety
///
/// All are live objects, held by the caller; the thread is attached.
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
    let foreign = !stream.is_instance_of::<PyStream>();
    let stream = stream::lend(&stream, "launch", "stream", true).map_err(raise)?;
    if foreign {
        discourage(py).map_err(raise)?;
    }
    let Ok(config) = config.cast::<PyLaunchConfig>() else {
        // SAFETY: as above.
        return Err(wrong("config", "a LaunchConfig", unsafe {
            Obj::new(config.as_ptr())
        }));
    };
    let config = config.get().get();
    // SAFETY: as above; the caller holds the kernel until this returns.
    let Some(kernel) = (unsafe { kernel::borrow(py, kernel) }) else {
        // SAFETY: as above.
        return Err(wrong("kernel", "a Kernel", unsafe { Obj::new(kernel) }));
    };
    let mut packer = Packer::new();
    // Dropped when the thread is attached again.
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
    let params = packer.pack(args, &target)?;
    let launched = {
        // The driver may wait for room in the stream's queue.
        // SAFETY: nothing of Python's is touched until it is dropped.
        let _detached = unsafe { Detached::new(py) };
        // SAFETY: an address for each argument. Their number and sizes are the kernel's where the driver tells them;
        // what they mean to the kernel is the program's promise, as with every launch.
        unsafe { kernel.launch_raw(&stream, &config, params) }
    };
    match launched {
        Ok(()) => {
            symbols::check_interrupt()?;
            Ok(cpython::none())
        }
        Err(error) => Err(raise(to_python(py, &error))),
    }
}

/// The kernel's parameters, when it is first launched: the driver may compile and load its code for that, and wait for other
/// threads meanwhile.
#[cold]
fn ask_for_params<'a>(
    py: Python<'_>,
    kernel: &'a cupyrite::Kernel,
) -> Option<&'a [cupyrite::ParamInfo]> {
    py.detach(|| kernel.params())
}

/// Warns of a stream of another package.
#[cold]
fn discourage(py: Python<'_>) -> PyResult<()> {
    PyErr::warn(
        py,
        &py.get_type::<PyDeprecationWarning>(),
        c"launch() was given another package's stream, which is deprecated: make a Stream of it once, with \
          Device.create_stream(obj)",
        1,
    )
}

#[cold]
fn wrong(parameter: &'static str, wanted: &str, got: Obj<'_>) -> Raised {
    let site = errors::Site {
        func: "launch",
        param: parameter,
    };
    errors::wrong_type(site, wanted, got)
}

/// Kernel arguments as C takes them: packed once, for the functions of ``cuda.bindings`` that take ``kernelParams``.
///
/// The object holds its arguments, and their bytes, for as long as it lives. The memory of its buffers stays as long, also
/// when they are closed; it is freed in the order of their streams then, so let the object live until its kernels are
/// queued, and close a buffer with ``buffer.close(stream)`` where they are queued in another stream.
///
/// Parameters
/// ----------
/// kernel_args : sequence
///     The arguments, of the kinds that :func:`cuda.core.launch` takes. An int has 8 bytes and a bool one: no kernel says
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

/// Packed arguments and where they are.
struct Packed {
    /// Boxed: pointers lead into it.
    _packer: Box<Packer>,
    address: *mut *mut c_void,
}

// SAFETY: nothing changes after it was made; what it holds of Python is let go on an attached thread, as with every
// object of Python.
unsafe impl Send for Packed {}
// SAFETY: as above.
unsafe impl Sync for Packed {}

#[pymethods]
impl ParamHolder {
    #[new]
    fn new(kernel_args: &Bound<'_, PyAny>) -> PyResult<ParamHolder> {
        let py = kernel_args.py();
        // SAFETY: the object is live.
        if unsafe { ffi::PySequence_Check(kernel_args.as_ptr()) } == 0 {
            return Err(PyTypeError::new_err(format!(
                "ParamHolder() argument 'kernel_args' must be a sequence, such as a tuple, not {}",
                kernel_args.get_type().name()?
            )));
        }
        // SAFETY: the object is live; the result is a new tuple or null with an exception.
        let args: Bound<'_, PyTuple> = unsafe {
            let tuple = ffi::PySequence_Tuple(kernel_args.as_ptr());
            Bound::from_owned_ptr_or_err(py, tuple)?.cast_into()?
        };
        let mut packer = Box::new(Packer::new());
        let items: Vec<*mut ffi::PyObject> = args.iter_borrowed().map(|arg| arg.as_ptr()).collect();
        let kept = Kept::new(args.clone().unbind());
        let target = Target {
            function: "ParamHolder",
            kernel: None,
            params: None,
            hold: Hold::Kept(&kept),
        };
        // SAFETY: the tuple holds its items.
        let address = packer
            .pack(unsafe { Args::new(&items) }, &target)
            .map_err(|Raised| PyErr::fetch(py))?;
        Ok(ParamHolder {
            kept,
            packed: Packed {
                _packer: packer,
                address,
            },
        })
    }

    /// The address of the array of pointers to the arguments (``void **``), as int; 0 if there are none.
    #[getter]
    fn ptr(&self) -> usize {
        self.packed.address.expose_provenance()
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(self.kept.args())
    }
}

const DOC: &std::ffi::CStr = c"launch(stream, config, kernel, *kernel_args)
--

Queues a kernel in a stream.

Number and sizes of the arguments are compared with the kernel's parameters where the driver tells them (since CUDA 12.4).

Parameters
----------
stream : Stream or GraphBuilder
    Where the kernel is queued; other objects with ``__cuda_stream__`` are taken too, which is deprecated.
config : LaunchConfig
    The shape of the launch.
kernel : Kernel
    What is launched.
*kernel_args
    One value for each parameter of the kernel:

    ====================================================  ==========================================================
    bool, int                                             an integer of the parameter's size, or an address
    float; complex                                        a double; two doubles
    NumPy's scalars, simple types of ctypes               their own bytes
    NumPy's structured scalars, Structure, Union, Array   a structure by value
    Buffer, ``__cuda_array_interface__``, DLPack          the address of the memory on the device
    handles and structures of ``cuda.bindings``           their value
    ====================================================  ==========================================================

Raises
------
TypeError
    An argument is of the wrong kind or size, or their number is wrong. The message names its position, counted from 0.
OverflowError
    An int does not fit in its parameter.
ValueError
    A cooperative launch has more blocks than the device can hold at once.
RuntimeError
    The stream or a buffer was closed.
CUDAError
    What the driver answers. What the kernel itself does wrong shows at a later call, such as ``stream.sync()``.

See `cuLaunchKernelEx <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html>`_.";

/// Adds the classes and the function.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyLaunchConfig>()?;
    core.add_class::<ParamHolder>()?;
    let py = core.py();
    // The function points to its definition for as long as the process lives.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"launch".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: launch,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    }));
    let home = pyo3::types::PyString::new(py, "cuda.core._launcher");
    // SAFETY: the definition is complete and stays; the name is live.
    let function = unsafe {
        let made = ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), home.as_ptr());
        Bound::from_owned_ptr_or_err(py, made)?
    };
    core.add("launch", function)
}

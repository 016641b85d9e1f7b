//! `METH_FASTCALL` methods that bypass PyO3's argument parser, for calls in inner loops. The parser compares parameter
//! names as text, which costs as much as the rest of such a method.

use std::ffi::CStr;
use std::marker::PhantomData;

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::cpython;
use crate::cpython::Owned;
use crate::cpython::arguments::{Signature, bind};
use crate::cpython::errors::guard_inline;

/// A method with `N` parameters. An omitted argument and None are the same: `call` receives `None` for both.
pub trait Method<const N: usize> {
    /// Class of the method.
    type Class: PyClass;
    /// Object that the method is called with: `Class`, or `PyType` for a class method.
    type Receiver;
    /// Whether it is a class method.
    const CLASS_METHOD: bool = false;
    /// Qualified name, for messages.
    const FUNCTION: &'static str;
    /// Name of the method.
    const NAME: &'static CStr;
    /// Docstring with the signature.
    const TEXT: &'static CStr;
    /// Parameter names.
    const NAMES: [&'static str; N];
    /// Number of required parameters.
    const REQUIRED: usize = 0;
    /// Number of parameters accepted by position; the others are keyword-only.
    const POSITIONAL: usize = N;

    /// The parameter names as interned strings, to which call-site names are identical.
    fn known() -> &'static PyOnceLock<[Py<PyString>; N]>;

    /// Implements the method.
    ///
    /// # Errors
    ///
    /// Errors of the method.
    fn call<'py>(
        slf: &Bound<'py, Self::Receiver>,
        given: [Option<&Bound<'py, PyAny>>; N],
    ) -> PyResult<Py<PyAny>>;
}

/// The parameters of a method.
struct Parameters<'py, M, const N: usize>(Python<'py>, PhantomData<M>);

impl<M: Method<N>, const N: usize> Signature for Parameters<'_, M, N> {
    fn function(&self) -> &str {
        M::FUNCTION
    }

    #[inline(always)]
    fn parameters(&self) -> usize {
        N
    }

    fn name(&self, index: usize) -> &str {
        M::NAMES[index]
    }

    #[inline(always)]
    fn is_required(&self, index: usize) -> bool {
        index < M::REQUIRED
    }

    #[inline(always)]
    fn positional(&self) -> usize {
        M::POSITIONAL
    }

    #[inline(always)]
    fn find_interned(&self, name: *mut ffi::PyObject) -> Option<usize> {
        let known = M::known().get(self.0)?;
        known
            .iter()
            .position(|known| std::ptr::eq(known.as_ptr(), name))
    }
}

unsafe extern "C" fn entry<M: Method<N>, const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_inline(|| {
        // SAFETY: the calling convention guarantees the stated number of borrowed references and an attached thread;
        // the method descriptor has checked that `slf` is an instance of the class or, for a class method, a subclass.
        unsafe {
            let py = Python::assume_attached();
            let mut given = [std::ptr::null_mut(); N];
            let parameters = Parameters::<M, N>(py, PhantomData);
            bind(
                &parameters,
                args,
                count.cast_unsigned(),
                keywords,
                &mut given,
            )?;
            let slf = Borrowed::from_ptr(py, slf);
            let given =
                given.map(|object| (!object.is_null()).then(|| Borrowed::from_ptr(py, object)));
            let given = given
                .each_ref()
                .map(|object| object.as_deref().filter(|object| !object.is_none()));
            let created =
                M::call(&slf.cast_unchecked::<M::Receiver>(), given).map_err(cpython::set)?;
            Owned::take(created.into_ptr())
        }
    })
}

/// Adds the method to its class.
///
/// # Errors
///
/// Python errors.
pub fn add<M: Method<N>, const N: usize>(py: Python<'_>) -> PyResult<()> {
    M::known().get_or_init(py, || {
        M::NAMES.map(|name| PyString::intern(py, name).unbind())
    });
    let class_flag = if M::CLASS_METHOD { ffi::METH_CLASS } else { 0 };
    // The descriptor refers to the definition for the lifetime of the class.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: M::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: entry::<M, N>,
        },
        ml_flags: class_flag | ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: M::TEXT.as_ptr(),
    }));
    let class: Bound<'_, PyType> = py.get_type::<M::Class>();
    // SAFETY: the class is live, and the definition is leaked and so static.
    let created = unsafe {
        let created = if M::CLASS_METHOD {
            ffi::PyDescr_NewClassMethod(class.as_type_ptr(), definition)
        } else {
            ffi::PyDescr_NewMethod(class.as_type_ptr(), definition)
        };
        Bound::from_owned_ptr_or_err(py, created)?
    };
    let name = PyString::intern(py, M::NAME.to_str().unwrap_or_default());
    class.setattr(name, created)
}

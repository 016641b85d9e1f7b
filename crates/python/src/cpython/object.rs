//! Thin safe layer over `pyo3::ffi`.
//!
//! [`Obj`] is a borrowed reference, [`Owned`] an owned one. Invariant of both: the object is live and this thread is
//! attached to the interpreter. It is established where C passes pointers in, so conversions built on these types need
//! no `unsafe`.

use std::ffi::{CStr, CString, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

/// Error value: a Python exception is set in this thread.
#[derive(Debug)]
pub struct Raised;

/// A result whose error is the exception already set in the interpreter.
pub type R<T> = Result<T, Raised>;

/// A borrowed reference to a live object, on a thread that is attached to the interpreter.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Obj<'a>(NonNull<ffi::PyObject>, PhantomData<&'a ffi::PyObject>);

impl<'a> Obj<'a> {
    /// Wraps a borrowed pointer.
    ///
    /// # Safety
    ///
    /// `ptr` is a live object for `'a`, and the thread is attached to the interpreter for `'a`.
    #[inline(always)]
    pub unsafe fn new(ptr: *mut ffi::PyObject) -> Obj<'a> {
        // SAFETY: the caller guarantees a live object, whose address is not null.
        Obj(unsafe { NonNull::new_unchecked(ptr) }, PhantomData)
    }

    /// The object of a PyO3 reference.
    #[inline(always)]
    pub fn of(bound: &'a Bound<'_, PyAny>) -> Obj<'a> {
        // SAFETY: a `Bound` is a live object on an attached thread.
        unsafe { Obj::new(bound.as_ptr()) }
    }

    /// The pointer, still borrowed.
    #[inline(always)]
    pub fn ptr(self) -> *mut ffi::PyObject {
        self.0.as_ptr()
    }

    /// The object's type.
    #[inline(always)]
    pub fn ty(self) -> *mut ffi::PyTypeObject {
        // SAFETY: the object is live.
        unsafe { ffi::Py_TYPE(self.ptr()) }
    }

    /// Whether this is `None`.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        // SAFETY: only takes the address of the singleton.
        std::ptr::eq(self.ptr(), unsafe { ffi::Py_None() })
    }

    /// Whether the type is exactly `int`.
    #[inline(always)]
    pub fn is_exact_int(self) -> bool {
        std::ptr::eq(self.ty(), &raw mut ffi::PyLong_Type)
    }

    /// Whether the type is exactly `float`.
    #[inline(always)]
    pub fn is_exact_float(self) -> bool {
        std::ptr::eq(self.ty(), &raw mut ffi::PyFloat_Type)
    }

    /// 1 for `True`, 0 for `False`; `None` for other objects.
    #[inline(always)]
    pub fn exact_bool(self) -> Option<u64> {
        // SAFETY: only takes the addresses of the singletons.
        let (no, yes) = unsafe { (ffi::Py_False(), ffi::Py_True()) };
        if std::ptr::eq(self.ptr(), yes) {
            Some(1)
        } else {
            std::ptr::eq(self.ptr(), no).then_some(0)
        }
    }

    fn has_flag(self, flag: std::ffi::c_ulong) -> bool {
        // SAFETY: the type of a live object is live.
        unsafe { ffi::PyType_GetFlags(self.ty()) & flag != 0 }
    }

    /// Whether the type is exactly `tuple`.
    #[inline(always)]
    pub fn is_exact_tuple(self) -> bool {
        std::ptr::eq(self.ty(), &raw mut ffi::PyTuple_Type)
    }

    /// Whether the type is exactly `list`.
    #[inline(always)]
    pub fn is_exact_list(self) -> bool {
        std::ptr::eq(self.ty(), &raw mut ffi::PyList_Type)
    }

    /// Whether this is an `int` or an instance of a subclass.
    #[inline]
    pub fn is_int(self) -> bool {
        self.is_exact_int() || self.has_flag(ffi::Py_TPFLAGS_LONG_SUBCLASS)
    }

    /// Whether this is `bytes` or an instance of a subclass.
    pub fn is_bytes(self) -> bool {
        self.has_flag(ffi::Py_TPFLAGS_BYTES_SUBCLASS)
    }

    /// Address of the bytes of an exact `bytes` object, which a nul follows.
    #[inline(always)]
    pub fn exact_bytes(self) -> Option<*const u8> {
        if !std::ptr::eq(self.ty(), &raw mut ffi::PyBytes_Type) {
            return None;
        }
        // SAFETY: the object is an exact `bytes`.
        Some(unsafe { ffi::PyBytes_AsString(self.ptr()) }.cast())
    }

    /// Whether this is a `str` or an instance of a subclass.
    pub fn is_str(self) -> bool {
        self.has_flag(ffi::Py_TPFLAGS_UNICODE_SUBCLASS)
    }

    /// Whether this is a `tuple` or an instance of a subclass.
    pub fn is_tuple(self) -> bool {
        self.is_exact_tuple() || self.has_flag(ffi::Py_TPFLAGS_TUPLE_SUBCLASS)
    }

    /// Whether this is a `list` or an instance of a subclass.
    pub fn is_list(self) -> bool {
        self.has_flag(ffi::Py_TPFLAGS_LIST_SUBCLASS)
    }

    /// Whether this is a `bytearray` or an instance of a subclass.
    pub fn is_bytearray(self) -> bool {
        self.instance_of_type(&raw mut ffi::PyByteArray_Type)
    }

    /// Whether the object's type is `ty` or a subtype; does not call `__instancecheck__`.
    pub fn instance_of_type(self, ty: *mut ffi::PyTypeObject) -> bool {
        // SAFETY: both types are live.
        std::ptr::eq(self.ty(), ty) || unsafe { ffi::PyType_IsSubtype(self.ty(), ty) != 0 }
    }

    /// Whether the type fills the slot with this number (`Py_nb_int`, ...).
    pub fn has_slot(self, slot: std::ffi::c_int) -> bool {
        // SAFETY: the type of a live object is live; the call only reads a pointer.
        unsafe { !ffi::PyType_GetSlot(self.ty(), slot).is_null() }
    }

    /// Whether the object supports the buffer protocol.
    pub fn has_buffer(self) -> bool {
        // SAFETY: the object is live.
        unsafe { ffi::PyObject_CheckBuffer(self.ptr()) != 0 }
    }

    /// A new owned reference to the same object.
    pub fn owned(self) -> Owned {
        // SAFETY: the object is live and the thread attached.
        unsafe { ffi::Py_IncRef(self.ptr()) };
        Owned(self.0)
    }

    /// An attribute; `None` without an exception if it is missing.
    ///
    /// # Errors
    ///
    /// The lookup raised an exception other than `AttributeError`.
    pub fn attribute(self, name: &CStr) -> R<Option<Owned>> {
        // SAFETY: the object is live, and a `CStr` is NUL-terminated.
        let found = unsafe { ffi::PyObject_GetAttrString(self.ptr(), name.as_ptr()) };
        match Owned::take(found) {
            Ok(value) => Ok(Some(value)),
            Err(Raised) => {
                // SAFETY: an exception is set; the exception class is immortal.
                unsafe {
                    if ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
                        return Err(Raised);
                    }
                    ffi::PyErr_Clear();
                }
                Ok(None)
            }
        }
    }

    /// Calls the object without arguments.
    ///
    /// # Errors
    ///
    /// Exceptions of the call.
    pub fn call0(self) -> R<Owned> {
        // SAFETY: the object is live.
        Owned::take(unsafe { ffi::PyObject_CallNoArgs(self.ptr()) })
    }

    /// The items of a list, tuple or other iterable, as an immutable tuple.
    ///
    /// # Errors
    ///
    /// The object is not iterable, or iterating raised.
    pub fn snapshot(self) -> R<Items> {
        // SAFETY: the object is live.
        let tuple = Owned::take(unsafe { ffi::PySequence_Tuple(self.ptr()) })?;
        // SAFETY: `PySequence_Tuple` returned a tuple.
        let len = unsafe { ffi::PyTuple_Size(tuple.ptr()) };
        Ok(Items {
            tuple,
            len: len.max(0).cast_unsigned(),
        })
    }

    /// The qualified name of the type, as in Python's own messages.
    pub fn type_name(self) -> String {
        // SAFETY: the type is live; the result is a new reference or null.
        match Owned::take(unsafe { ffi::PyType_GetQualName(self.ty()) }) {
            Ok(name) => name.obj().text().unwrap_or_else(|| "object".to_owned()),
            Err(Raised) => {
                clear();
                "object".to_owned()
            }
        }
    }

    /// The name of the type, without its module and the classes around it.
    pub fn type_short_name(self) -> String {
        // SAFETY: the type of a live object is live.
        unsafe { short_name(self.ty()) }
    }

    /// `str(obj)`, or `<unprintable>` if that fails.
    pub fn display(self) -> String {
        // SAFETY: the object is live.
        let text = Owned::take(unsafe { ffi::PyObject_Str(self.ptr()) });
        text.and_then(|text| text.obj().utf8())
            .unwrap_or_else(|Raised| {
                clear();
                String::from("<unprintable>")
            })
    }

    /// The contents of a `str`.
    ///
    /// # Errors
    ///
    /// `TypeError` for other objects, `UnicodeEncodeError` for a `str` without a UTF-8 form.
    pub fn utf8(self) -> R<String> {
        let mut len: ffi::Py_ssize_t = 0;
        // SAFETY: the object is live; other types raise.
        let bytes = unsafe { ffi::PyUnicode_AsUTF8AndSize(self.ptr(), &raw mut len) };
        if bytes.is_null() {
            return Err(Raised);
        }
        // SAFETY: `PyUnicode_AsUTF8AndSize` guarantees `len` readable bytes, which live as long as the object.
        let bytes =
            unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len.max(0).cast_unsigned()) };
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The text of a `str`; `None` without an exception for other objects.
    pub fn text(self) -> Option<String> {
        if !self.is_str() {
            return None;
        }
        let mut len: ffi::Py_ssize_t = 0;
        // SAFETY: checked above to be a `str`; the bytes live as long as it does.
        let bytes = unsafe { ffi::PyUnicode_AsUTF8AndSize(self.ptr(), &raw mut len) };
        if bytes.is_null() {
            clear();
            return None;
        }
        // SAFETY: `PyUnicode_AsUTF8AndSize` guarantees `len` readable bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len.max(0).cast_unsigned()) };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The data pointer and length of a `bytes` object; null and 0 for other objects.
    pub fn bytes_data(self) -> (*mut u8, usize) {
        if !self.is_bytes() {
            return (std::ptr::null_mut(), 0);
        }
        // SAFETY: checked above to be a `bytes` object.
        unsafe {
            (
                ffi::PyBytes_AsString(self.ptr()).cast(),
                ffi::PyBytes_Size(self.ptr()).max(0).cast_unsigned(),
            )
        }
    }
}

/// The name of a type, without its module and the classes around it.
///
/// # Safety
///
/// `ty` is a live type.
pub unsafe fn short_name(ty: *mut ffi::PyTypeObject) -> String {
    // SAFETY: as promised by the caller.
    let name = Owned::take(unsafe { ffi::PyType_GetName(ty) });
    name.and_then(|name| name.obj().utf8())
        .unwrap_or_else(|Raised| {
            clear();
            String::from("?")
        })
}

/// Snapshot of the items of a sequence.
pub struct Items {
    tuple: Owned,
    len: usize,
}

impl Items {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The item at `index`. Panics unless `index` is below [`Items::len`].
    pub fn get(&self, index: usize) -> Obj<'_> {
        assert!(index < self.len);
        // SAFETY: the tuple owns its items, and the assertion keeps the index within its length.
        unsafe { Obj::new(ffi::PyTuple_GetItem(self.tuple.ptr(), index.cast_signed())) }
    }

    /// The tuple itself, to keep the items alive.
    pub fn into_owned(self) -> Owned {
        self.tuple
    }
}

/// An owned reference, dropped on the same attached thread.
pub struct Owned(NonNull<ffi::PyObject>);

impl Owned {
    /// Takes ownership of a new reference returned by C; null means that an exception is set.
    ///
    /// # Errors
    ///
    /// `ptr` is null.
    #[inline(always)]
    pub fn take(ptr: *mut ffi::PyObject) -> R<Owned> {
        NonNull::new(ptr).map(Owned).ok_or(Raised)
    }

    /// The object, borrowed.
    #[inline(always)]
    pub fn obj(&self) -> Obj<'_> {
        Obj(self.0, PhantomData)
    }

    /// The pointer, borrowed.
    #[inline(always)]
    pub fn ptr(&self) -> *mut ffi::PyObject {
        self.0.as_ptr()
    }

    /// Transfers ownership of the reference to PyO3.
    pub fn into_bound(self, py: Python<'_>) -> Bound<'_, PyAny> {
        // SAFETY: this owns one reference to a live object.
        unsafe { Bound::from_owned_ptr(py, self.into_ptr()) }
    }

    /// Transfers ownership of the reference to C.
    #[inline(always)]
    pub fn into_ptr(self) -> *mut ffi::PyObject {
        let ptr = self.0.as_ptr();
        std::mem::forget(self);
        ptr
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this owns one reference, and the thread is attached (module invariant).
        unsafe { ffi::Py_DecRef(self.ptr()) }
    }
}

/// Publishes an object to all threads for the lifetime of the process. The first object wins: later callers get that one,
/// and theirs is dropped.
pub fn publish<T>(place: &AtomicPtr<T>, made: Owned) -> *mut T {
    let ptr = made.ptr().cast::<T>();
    match place.compare_exchange(
        std::ptr::null_mut(),
        ptr,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => made.into_ptr().cast(),
        Err(first) => first,
    }
}

/// The object published in `place`; created by `make` on first use.
///
/// # Errors
///
/// Errors of `make`.
#[inline]
pub fn once<T>(place: &AtomicPtr<T>, make: impl FnOnce() -> R<Owned>) -> R<*mut T> {
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return Ok(known);
    }
    Ok(publish(place, make()?))
}

/// `None`.
#[inline(always)]
pub fn none() -> Owned {
    // SAFETY: `None` lives as long as the interpreter, and the thread is attached (module invariant).
    unsafe { Obj::new(ffi::Py_None()) }.owned()
}

/// `NotImplemented`.
pub fn not_implemented() -> Owned {
    // SAFETY: the singleton lives as long as the interpreter, and the thread is attached (module invariant).
    unsafe { Obj::new(ffi::Py_NotImplemented()) }.owned()
}

/// An `int`.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn from_i64(value: i64) -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread.
    Owned::take(unsafe { ffi::PyLong_FromLongLong(value) })
}

/// An `int`.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn from_u64(value: u64) -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread.
    Owned::take(unsafe { ffi::PyLong_FromUnsignedLongLong(value) })
}

/// A `float`.
///
/// # Errors
///
/// `MemoryError`.
pub fn from_f64(value: f64) -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread.
    Owned::take(unsafe { ffi::PyFloat_FromDouble(value) })
}

/// A `bool`.
pub fn from_bool(value: bool) -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread.
    Owned::take(unsafe { ffi::PyBool_FromLong(value.into()) })
}

/// A `str`.
///
/// # Errors
///
/// `MemoryError`.
pub fn from_str(value: &str) -> R<Owned> {
    // SAFETY: a `str` is readable for its length and is UTF-8.
    Owned::take(unsafe {
        ffi::PyUnicode_FromStringAndSize(value.as_ptr().cast::<c_char>(), value.len().cast_signed())
    })
}

/// A `str` from UTF-8.
///
/// # Errors
///
/// `UnicodeDecodeError` or `MemoryError`.
pub fn from_utf8(value: &[u8]) -> R<Owned> {
    // SAFETY: `value` is readable for its length; null selects strict decoding.
    Owned::take(unsafe {
        ffi::PyUnicode_DecodeUTF8(
            value.as_ptr().cast::<c_char>(),
            value.len().cast_signed(),
            std::ptr::null(),
        )
    })
}

/// `bytes` with this content.
///
/// # Errors
///
/// `MemoryError`.
pub fn from_bytes(value: &[u8]) -> R<Owned> {
    // SAFETY: `value` is readable for its length.
    Owned::take(unsafe {
        ffi::PyBytes_FromStringAndSize(value.as_ptr().cast::<c_char>(), value.len().cast_signed())
    })
}

/// A list of the values of `items`.
///
/// # Errors
///
/// The first error of `items`, or `MemoryError`.
pub fn list(items: impl ExactSizeIterator<Item = R<Owned>>) -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread; the list is filled before it is returned.
    let list = Owned::take(unsafe { ffi::PyList_New(items.len().cast_signed()) })?;
    for (index, item) in items.enumerate() {
        // SAFETY: the new list has more than `index` empty slots; the call takes ownership of the item's reference.
        unsafe { ffi::PyList_SetItem(list.ptr(), index.cast_signed(), item?.into_ptr()) };
    }
    Ok(list)
}

/// A tuple of `items`.
///
/// # Errors
///
/// `MemoryError`.
pub fn tuple<const N: usize>(items: [Owned; N]) -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread; the tuple is filled before it is returned.
    let tuple = Owned::take(unsafe { ffi::PyTuple_New(N.cast_signed()) })?;
    for (index, item) in items.into_iter().enumerate() {
        // SAFETY: the new tuple has more than `index` empty slots; the call takes ownership of the item's reference.
        unsafe { ffi::PyTuple_SetItem(tuple.ptr(), index.cast_signed(), item.into_ptr()) };
    }
    Ok(tuple)
}

/// An empty `dict`.
///
/// # Errors
///
/// `MemoryError`.
pub fn dict() -> R<Owned> {
    // SAFETY: no preconditions beyond an attached thread.
    Owned::take(unsafe { ffi::PyDict_New() })
}

/// Sets the entry `key` of a `dict`.
///
/// # Errors
///
/// `MemoryError`; `SystemError` for other objects.
pub fn set_entry(dict: Obj<'_>, key: &CStr, value: Obj<'_>) -> R<()> {
    // SAFETY: all objects are live, a `CStr` is NUL-terminated, and other types than dicts raise.
    match unsafe { ffi::PyDict_SetItemString(dict.ptr(), key.as_ptr(), value.ptr()) } {
        0 => Ok(()),
        _ => Err(Raised),
    }
}

/// Converts text to a C string. Removes NULs.
pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Excludes an object from garbage collection, because it refers to no object that could refer back.
#[inline(always)]
pub fn untrack<T>(object: &Bound<'_, T>) {
    // SAFETY: a live object on an attached thread; the call has no effect on an untracked object. All classes of PyO3 are
    // garbage-collected, as the call requires.
    unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
}

/// Whether this build has a GIL. Free-threaded builds have a longer object head.
pub const GIL: bool = size_of::<ffi::PyObject>() == 2 * size_of::<usize>();

/// The value of an `int`; `u64::MAX` and an exception if it is negative or too large. CPython's functions for `long` are
/// several times faster than those for `long long`, which convert large numbers byte by byte.
#[inline(always)]
pub fn as_u64(obj: Obj<'_>) -> u64 {
    // SAFETY: the object is live; other types raise.
    #[cfg(not(windows))]
    unsafe {
        ffi::PyLong_AsUnsignedLong(obj.ptr())
    }
    // SAFETY: the object is live; other types raise.
    #[cfg(windows)]
    unsafe {
        ffi::PyLong_AsUnsignedLongLong(obj.ptr())
    }
}

/// The value of an `int`; -1 and an exception if it does not fit.
#[inline(always)]
pub fn as_i64(obj: Obj<'_>) -> i64 {
    // SAFETY: the object is live; other types raise.
    #[cfg(not(windows))]
    unsafe {
        ffi::PyLong_AsLong(obj.ptr())
    }
    // SAFETY: the object is live; other types raise.
    #[cfg(windows)]
    unsafe {
        ffi::PyLong_AsLongLong(obj.ptr())
    }
}

/// The value of an `int`; `None` without an exception if it does not fit into a signed 64-bit integer.
#[inline(always)]
pub fn as_i64_if_fits(obj: Obj<'_>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the object is live; callers have checked that it is an `int`, and other types raise.
    #[cfg(not(windows))]
    let value = unsafe { ffi::PyLong_AsLongAndOverflow(obj.ptr(), &raw mut overflow) };
    // SAFETY: the object is live; callers have checked that it is an `int`, and other types raise.
    #[cfg(windows)]
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(obj.ptr(), &raw mut overflow) };
    (overflow == 0).then_some(value)
}

/// Whether an exception is set.
#[inline]
pub fn raised() -> bool {
    // SAFETY: only reads the state of this thread, which is attached.
    unsafe { !ffi::PyErr_Occurred().is_null() }
}

/// Sets the exception in code that Python calls without going through PyO3.
///
/// PyO3 decrements reference counts immediately on threads that it knows to be attached; elsewhere it defers the decrements
/// until it attaches a thread. Creating an exception drops references, so a loop of failing calls would leak memory until
/// then.
#[cold]
#[inline(never)]
pub fn set(error: PyErr) -> Raised {
    let mut error = Some(error);
    let mut restore = |py: Python<'_>| {
        if let Some(error) = error.take() {
            error.restore(py);
        }
    };
    // Before Python 3.12 a subinterpreter's thread state is not the one of `PyGILState_Ensure`, by which PyO3 attaches: it would
    // wait for the GIL that this thread holds.
    // SAFETY: callers that raise an exception are attached.
    let own_state = unsafe { ffi::PyThreadState_Get() == ffi::PyGILState_GetThisThreadState() };
    if !own_state || Python::try_attach(&mut restore).is_none() {
        // A subinterpreter, or the interpreter is finalizing. SAFETY: callers that raise an exception are attached.
        restore(unsafe { Python::assume_attached() });
    }
    Raised
}

/// Clears the current exception.
#[inline]
pub fn clear() {
    // SAFETY: only changes the state of this thread, which is attached.
    unsafe { ffi::PyErr_Clear() }
}

/// Read-only buffer view of an object's memory, released on drop.
pub struct Buffer(Box<ffi::Py_buffer>);

impl Buffer {
    /// The object's memory, C- or Fortran-contiguous; `None` without an exception if it does not support the buffer
    /// protocol.
    ///
    /// # Errors
    ///
    /// The exporter raised, for example because the memory is not contiguous or was released.
    pub fn get(obj: Obj<'_>) -> R<Option<Buffer>> {
        if !obj.has_buffer() {
            return Ok(None);
        }
        // Boxed because exporters may keep pointers into the view.
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is live and `view` is a writable `Py_buffer`.
        let status = unsafe {
            ffi::PyObject_GetBuffer(obj.ptr(), &raw mut *view, ffi::PyBUF_ANY_CONTIGUOUS)
        };
        if status != 0 {
            return Err(Raised);
        }
        Ok(Some(Buffer(view)))
    }

    /// Copies the object's memory, of up to `into.len()` bytes, and returns its size; `None` without an exception if it is
    /// larger or the object does not support the buffer protocol.
    ///
    /// # Errors
    ///
    /// As [`Buffer::get`].
    pub fn copy(obj: Obj<'_>, into: &mut [u8]) -> R<Option<usize>> {
        if !obj.has_buffer() {
            return Ok(None);
        }
        let mut view = ffi::Py_buffer::new();
        // SAFETY: the object is live; the view does not move until it is released, and its memory has `len` bytes until
        // then.
        unsafe {
            if ffi::PyObject_GetBuffer(obj.ptr(), &raw mut view, ffi::PyBUF_ANY_CONTIGUOUS) != 0 {
                return Err(Raised);
            }
            let len = view.len.max(0).cast_unsigned();
            if len <= into.len() {
                std::ptr::copy_nonoverlapping(view.buf.cast::<u8>(), into.as_mut_ptr(), len);
            }
            ffi::PyBuffer_Release(&raw mut view);
            Ok((len <= into.len()).then_some(len))
        }
    }

    /// Address of the memory.
    pub fn address(&self) -> u64 {
        self.0.buf.addr() as u64
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len.max(0).cast_unsigned()
    }

    /// Whether the exporter declares the memory read-only.
    pub fn is_readonly(&self) -> bool {
        self.0.readonly != 0
    }

    /// Number of dimensions; 0 for scalars.
    pub fn ndim(&self) -> i32 {
        self.0.ndim
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer and is released once.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
    }
}

//! Fields of CuPy arrays.
//!
//! `cupy.ndarray` is a Cython class whose fields CuPy declares in installed .pxd files, so compiled clients read them
//! directly. Their offsets are determined on the first array: arrays with distinctive values are created by CuPy's
//! public constructors, and each field must be found at a unique offset in all of them.

use cupyrite::MAX_DIMS;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::cpython::internals::{PrivateLayout, enabled};

/// Offsets of the fields of `cupy.ndarray` and `cupy.cuda.MemoryPointer` that a view reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldOffsets {
    /// A `std::vector<Py_ssize_t>`: begin and end pointers.
    shape: usize,
    /// A `std::vector<Py_ssize_t>`, in bytes.
    strides: usize,
    /// A `numpy.dtype`.
    dtype: usize,
    /// A `MemoryPointer`.
    data: usize,
    /// Class of the `MemoryPointer`; never deallocated.
    pointer_class: usize,
    /// Address, in the `MemoryPointer`.
    address: usize,
    /// Device number (an `int`), in the `MemoryPointer`.
    device: usize,
}

/// Fields of an array; `shape` and `strides` are borrowed from it.
pub struct ArrayFields<'a> {
    /// Lengths of the dimensions.
    pub shape: &'a [i64],
    /// Strides in bytes, as many as lengths.
    pub strides: &'a [i64],
    /// The `numpy.dtype`, borrowed.
    pub dtype: *mut ffi::PyObject,
    /// Address of the first element.
    pub address: u64,
    /// Device number.
    pub device: i32,
}

/// Reads a field.
///
/// # Safety
///
/// The object has a field of this type at this offset.
#[inline]
unsafe fn field<T: Copy>(obj: *mut ffi::PyObject, at: usize) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { obj.cast::<u8>().add(at).cast::<T>().read_unaligned() }
}

/// Elements of a vector; `None` if the field is not a valid vector.
///
/// # Safety
///
/// The object has a vector at this offset, which is not modified concurrently (CuPy's methods run attached).
#[inline]
unsafe fn vector<'a>(obj: *mut ffi::PyObject, at: usize) -> Option<&'a [i64]> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let first: *const i64 = field(obj, at);
        let last: *const i64 = field(obj, at + size_of::<usize>());
        let bytes = last.addr().checked_sub(first.addr())?;
        let len = bytes / size_of::<i64>();
        if len == 0 {
            return Some(&[]);
        }
        if len > MAX_DIMS || !bytes.is_multiple_of(size_of::<i64>()) || !first.is_aligned() {
            return None;
        }
        Some(std::slice::from_raw_parts(first, len))
    }
}

/// Reads an array; `None` if its fields have unexpected values.
///
/// # Safety
///
/// The object has the class for which the offsets were determined, and outlives the result.
#[inline]
pub unsafe fn read<'a>(obj: *mut ffi::PyObject, fields: &FieldOffsets) -> Option<ArrayFields<'a>> {
    // SAFETY: all objects of this class have these fields.
    unsafe {
        let data: *mut ffi::PyObject = field(obj, fields.data);
        let dtype: *mut ffi::PyObject = field(obj, fields.dtype);
        if data.is_null() || dtype.is_null() || ffi::Py_TYPE(data).addr() != fields.pointer_class {
            return None;
        }
        let (shape, strides) = (vector(obj, fields.shape)?, vector(obj, fields.strides)?);
        if shape.len() != strides.len() {
            return None;
        }
        Some(ArrayFields {
            shape,
            strides,
            dtype,
            address: field(data, fields.address),
            device: field(data, fields.device),
        })
    }
}

/// Borrowed reference to the `numpy.dtype` of an array, or null.
///
/// # Safety
///
/// As for [`read`].
#[inline]
pub unsafe fn dtype(obj: *mut ffi::PyObject, fields: &FieldOffsets) -> *mut ffi::PyObject {
    // SAFETY: all objects of this class have this field.
    unsafe { field(obj, fields.dtype) }
}

/// The field offsets of `class`, which is `ndarray` of the module `cupy`, if it has the expected layout.
pub fn find(cupy: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> Option<FieldOffsets> {
    if !enabled(PrivateLayout::Cupy) {
        return None;
    }
    // Any exception means an unknown version of CuPy.
    Probes::make(cupy, class)
        .and_then(|probes| probes.find())
        .ok()?
}

/// Arrays created to determine the field offsets.
struct Probes<'py> {
    arrays: [Bound<'py, PyAny>; 2],
    pointers: [Bound<'py, PyAny>; 2],
    dtypes: [Bound<'py, PyAny>; 2],
    array_size: usize,
    pointer_size: usize,
}

const SHAPES: [&[i64]; 2] = [&[3, 5, 7], &[2, 3, 4, 5, 6]];
/// C-order strides, and others.
const STRIDES: [&[i64]; 2] = [&[140, 28, 4], &[56, 64, 72, 80, 88]];
/// Unused addresses, which are never accessed.
const ADDRESSES: [u64; 2] = [0x1234_5600, 0x2345_6700];
const DEVICES: [i32; 2] = [77, 76];

impl<'py> Probes<'py> {
    fn make(cupy: &Bound<'py, PyAny>, class: &Bound<'py, PyType>) -> PyResult<Probes<'py>> {
        let py = cupy.py();
        let cuda = cupy.getattr("cuda")?;
        let make = |n: usize, dtype: &str, strides: Option<&[i64]>| {
            let arguments = (ADDRESSES[n], 4096, py.None(), DEVICES[n]);
            let memory = cuda.call_method1("UnownedMemory", arguments)?;
            let pointer = cuda.call_method1("MemoryPointer", (memory, 0))?;
            let keywords = PyDict::new(py);
            keywords.set_item("memptr", &pointer)?;
            if let Some(strides) = strides {
                keywords.set_item("strides", PyTuple::new(py, strides)?)?;
            }
            let shape = PyTuple::new(py, SHAPES[n])?;
            class.call((shape, dtype), Some(&keywords))
        };
        let arrays = [make(0, "f4", None)?, make(1, "f8", Some(STRIDES[1]))?];
        let both = |name: &str| -> PyResult<[Bound<'py, PyAny>; 2]> {
            Ok([arrays[0].getattr(name)?, arrays[1].getattr(name)?])
        };
        let (pointers, dtypes) = (both("data")?, both("dtype")?);
        let size_of = |class: Bound<'py, PyType>| -> PyResult<usize> {
            let size: usize = class.getattr("__basicsize__")?.extract()?;
            if (32..=1024).contains(&size) && size.is_multiple_of(8) {
                Ok(size)
            } else {
                Err(PyBufferError::new_err("unexpected class size"))
            }
        };
        Ok(Probes {
            array_size: size_of(arrays[0].get_type())?,
            pointer_size: size_of(pointers[0].get_type())?,
            arrays,
            pointers,
            dtypes,
        })
    }

    /// The offset at which `here` returns true; `None` unless it is exactly one.
    fn only(size: usize, step: usize, here: impl Fn(usize) -> bool) -> Option<usize> {
        let head = size_of::<ffi::PyObject>();
        let mut places = (head..size).step_by(step).filter(|&at| here(at));
        let first = places.next()?;
        places.next().is_none().then_some(first)
    }

    /// Offset of a vector with these elements in both arrays.
    fn vectors(&self, numbers: [&[i64]; 2]) -> Option<usize> {
        let is_vector = |n: usize, at: usize| {
            let array = self.arrays[n].as_ptr();
            // SAFETY: inside the object, whose fields are words.
            let (first, last): (usize, usize) = unsafe { (field(array, at), field(array, at + 8)) };
            // Other fields differ from this length in at least one of the arrays.
            first > 0xffff
                && first.is_multiple_of(8)
                && last.wrapping_sub(first) == size_of_val(numbers[n])
        };
        let has = |n: usize, at: usize| {
            // SAFETY: in both arrays, two words whose distance is the size of these elements: a vector.
            unsafe { vector(self.arrays[n].as_ptr(), at) }.is_some_and(|found| found == numbers[n])
        };
        Self::only(self.array_size - 8, 8, |at| {
            (0..2).all(|n| is_vector(n, at)) && (0..2).all(|n| has(n, at))
        })
    }

    /// Offset of references to these objects in both arrays.
    fn references(&self, objects: &[Bound<'py, PyAny>; 2]) -> Option<usize> {
        Self::only(self.array_size, 8, |at| {
            // SAFETY: inside the object, whose fields are words.
            (0..2).all(|n| unsafe {
                field::<usize>(self.arrays[n].as_ptr(), at) == objects[n].as_ptr().addr()
            })
        })
    }

    fn find(&self) -> PyResult<Option<FieldOffsets>> {
        let class = self.pointers[0].get_type();
        let odd = !self.pointers[1].get_type().is(&class)
            || !self.arrays[0].get_type().is(self.arrays[1].get_type())
            || self.pointers[0].is(&self.pointers[1])
            || self.dtypes[0].is(&self.dtypes[1]);
        if odd {
            return Ok(None);
        }
        let pointer = |at: usize, n: usize| {
            // SAFETY: inside the object, whose fields are words.
            unsafe { field::<u64>(self.pointers[n].as_ptr(), at) }
        };
        let device = |at: usize, n: usize| {
            // SAFETY: as above; a word has two halves.
            unsafe { field::<i32>(self.pointers[n].as_ptr(), at) }
        };
        let found = || {
            Some(FieldOffsets {
                shape: self.vectors(SHAPES)?,
                strides: self.vectors(STRIDES)?,
                dtype: self.references(&self.dtypes)?,
                data: self.references(&self.pointers)?,
                pointer_class: class.as_ptr().addr(),
                address: Self::only(self.pointer_size, 8, |at| {
                    (0..2).all(|n| pointer(at, n) == ADDRESSES[n])
                })?,
                device: Self::only(self.pointer_size, 4, |at| {
                    (0..2).all(|n| device(at, n) == DEVICES[n])
                })?,
            })
        };
        let fields = found();
        if fields.is_some() {
            // Leaked, so that its address stays unique.
            std::mem::forget(class.unbind());
        }
        Ok(fields)
    }
}

//! CuPy's arrays, read where they keep what their attributes tell.
//!
//! CuPy has no functions for C (see `dlpack_exchange`): its `__dlpack__` and `__cuda_array_interface__` take some
//! microseconds, and the attributes `shape` and `strides` alone, which make a tuple each time, more than a view may cost.
//!
//! `cupy.ndarray` is a class of Cython's whose fields CuPy declares for others (in the .pxd files that it installs), so code
//! that was compiled against it reads them. Where they lie is found out here when the first array comes: arrays with
//! conspicuous numbers are made by CuPy's public constructors, and each field has to be found in all of them, once. Where
//! anything does not agree, CuPy's arrays are viewed by DLPack like others.

use cupyrite::dlpack::{DataType, DeviceType, DlDevice};
use cupyrite::{MAX_DIMS, MemoryKind, StridedLayout, pointer_info};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::core::recent_cache::Recent;
use crate::core::view::class;
use crate::core::view::dtype;
use crate::core::view::dtype::Dtype;
use crate::core::view::import::{Consumer, Keep, Parts};

/// Where `cupy.ndarray` and `cupy.cuda.MemoryPointer` keep what a view needs: bytes from the beginning of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// A `std::vector<Py_ssize_t>`: first and last pointer.
    shape: usize,
    /// Another one; in bytes.
    strides: usize,
    /// A `numpy.dtype`.
    dtype: usize,
    /// A `MemoryPointer`.
    data: usize,
    /// The class of that; it lives for ever.
    pointer_class: usize,
    /// The address, in the pointer.
    address: usize,
    /// The number of the device (an `int`), in the pointer.
    device: usize,
}

/// What is read of an array; `shape` and `strides` are the array's own.
struct Facts<'a> {
    shape: &'a [i64],
    strides: &'a [i64],
    dtype: *mut ffi::PyObject,
    address: u64,
    device: i32,
}

/// Reads a field.
///
/// # Safety
///
/// The object has a field of this type there.
#[inline]
unsafe fn field<T: Copy>(obj: *mut ffi::PyObject, at: usize) -> T {
    // SAFETY: the caller's.
    unsafe { obj.cast::<u8>().add(at).cast::<T>().read_unaligned() }
}

/// The numbers of a vector at this place; `None` for what is none.
///
/// # Safety
///
/// The object has a vector there, and nobody changes it meanwhile (CuPy's methods run attached).
#[inline]
unsafe fn vector<'a>(obj: *mut ffi::PyObject, at: usize) -> Option<&'a [i64]> {
    // SAFETY: the caller's.
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

/// What an array says; `None` for one that keeps other things there.
///
/// # Safety
///
/// The object is an array of the class that the fields were found for, and outlives what is returned.
#[inline]
unsafe fn read<'a>(obj: *mut ffi::PyObject, fields: &Fields) -> Option<Facts<'a>> {
    // SAFETY: the fields were found in objects of this class, which all have them.
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
        Some(Facts {
            shape,
            strides,
            dtype,
            address: field(data, fields.address),
            device: field(data, fields.device),
        })
    }
}

/// What elements of a `numpy.dtype` are for a view.
#[derive(Clone, Copy)]
struct Element {
    size: usize,
    /// `None` where DLPack has no such type.
    data_type: Option<DataType>,
}

static ELEMENTS: Recent<Element, 16> = Recent::new();

fn element(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
    if let Some(known) = ELEMENTS.get(dtype.py(), dtype.as_ptr()) {
        return Ok(known);
    }
    let size = dtype::item_size(dtype)?;
    let data_type = Dtype::Numpy(dtype.clone().unbind())
        .data_type(dtype.py())
        .ok();
    let element = Element { size, data_type };
    ELEMENTS.put(dtype.py(), dtype.clone().unbind(), element);
    Ok(element)
}

/// Views an array of CuPy's; `None` where it has to be viewed in another way.
///
/// # Errors
///
/// What CuPy raises when it is asked for its stream, and the driver when it orders streams.
///
/// # Safety
///
/// The object is of the class that the fields were found for.
pub unsafe fn view(
    obj: &Bound<'_, PyAny>,
    fields: &Fields,
    consumer: Consumer,
) -> PyResult<Option<Parts>> {
    let py = obj.py();
    // SAFETY: the caller's; arrays keep an object there, or null.
    let dtype = unsafe {
        let dtype = field::<*mut ffi::PyObject>(obj.as_ptr(), fields.dtype);
        Bound::from_borrowed_ptr_or_opt(py, dtype)
    };
    let Some(dtype) = dtype else {
        return Ok(None);
    };
    // This may run Python code, and so other threads, which may change the array.
    let Element { size, data_type } = element(&dtype)?;
    // SAFETY: as above. From here until the numbers are copied this thread stays attached and calls nobody.
    let facts = unsafe { read(obj.as_ptr(), fields) };
    let Some(facts) = facts.filter(|facts| std::ptr::eq(facts.dtype, dtype.as_ptr())) else {
        return Ok(None);
    };
    let Ok(layout) = StridedLayout::with_byte_strides(facts.shape, facts.strides, size) else {
        return Ok(None);
    };
    let (base, number) = (facts.address, facts.device);
    if base == 0 && layout.volume() != 0 {
        return Ok(None);
    }
    if consumer != Consumer::Ignore {
        let producer = current_stream(py, number)?;
        consumer.wait_for(py, producer, number)?;
    }
    Ok(Some(Parts {
        base,
        room: None,
        layout,
        dtype: match data_type {
            Some(known) => Dtype::DlPack(known),
            None => Dtype::Numpy(dtype.unbind()),
        },
        device: DlDevice {
            kind: DeviceType::CUDA,
            number,
        },
        device_id: number,
        readonly: false,
        exporting: Some(obj.clone().unbind()),
        keep: Keep::Asked,
    }))
}

/// Where memory is that CuPy calls a device's: asking the driver takes as long as the rest of a view.
pub fn device(base: u64, device: DlDevice) -> DlDevice {
    let kind = match pointer_info(base).map(|info| info.kind) {
        Ok(MemoryKind::Managed) => DeviceType::CUDA_MANAGED,
        Ok(MemoryKind::Host) => DeviceType::CUDA_HOST,
        // What the driver does not know is the device's if it is anything.
        _ => DeviceType::CUDA,
    };
    DlDevice { kind, ..device }
}

/// The address of the stream that CuPy works on, on this device.
fn current_stream(py: Python<'_>, device: i32) -> PyResult<usize> {
    let stream = py
        .import(intern!(py, "cupy.cuda"))?
        .call_method1(intern!(py, "get_current_stream"), (device,))?;
    stream.getattr(intern!(py, "ptr"))?.extract()
}

/// The fields, if a class is CuPy's class of arrays and keeps them as is said above.
pub fn find(class: &Bound<'_, PyType>) -> Option<Fields> {
    let cupy = class::is_of(class, "cupy", "ndarray")?;
    // Whatever CuPy raises means that it is not the CuPy that is known here.
    Probes::make(&cupy, class)
        .and_then(|probes| probes.find())
        .ok()?
}

/// Arrays made to look for the fields in.
struct Probes<'py> {
    arrays: [Bound<'py, PyAny>; 2],
    pointers: [Bound<'py, PyAny>; 2],
    dtypes: [Bound<'py, PyAny>; 2],
    array_size: usize,
    pointer_size: usize,
}

const SHAPES: [&[i64]; 2] = [&[3, 5, 7], &[2, 3, 4, 5, 6]];
/// Those of C order, and others.
const STRIDES: [&[i64]; 2] = [&[140, 28, 4], &[56, 64, 72, 80, 88]];
/// Addresses that nobody uses: nothing is read or written there.
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
                Err(PyBufferError::new_err("a class of an odd size"))
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

    /// The only place where `here` is true; `None` where there is none, or more.
    fn only(size: usize, step: usize, here: impl Fn(usize) -> bool) -> Option<usize> {
        let head = size_of::<ffi::PyObject>();
        let mut places = (head..size).step_by(step).filter(|&at| here(at));
        let first = places.next()?;
        places.next().is_none().then_some(first)
    }

    /// Where both arrays have a vector of these numbers.
    fn vectors(&self, numbers: [&[i64]; 2]) -> Option<usize> {
        let is_vector = |n: usize, at: usize| {
            let array = self.arrays[n].as_ptr();
            // SAFETY: inside of the object, whose fields are words.
            let (first, last): (usize, usize) = unsafe { (field(array, at), field(array, at + 8)) };
            // Anything else in the object has another length in one of the arrays.
            first > 0xffff
                && first.is_multiple_of(8)
                && last.wrapping_sub(first) == size_of_val(numbers[n])
        };
        let has = |n: usize, at: usize| {
            // SAFETY: two words that are as far apart as that many numbers, in both arrays: a vector.
            unsafe { vector(self.arrays[n].as_ptr(), at) }.is_some_and(|found| found == numbers[n])
        };
        Self::only(self.array_size - 8, 8, |at| {
            (0..2).all(|n| is_vector(n, at)) && (0..2).all(|n| has(n, at))
        })
    }

    /// Where both arrays refer to these objects.
    fn references(&self, objects: &[Bound<'py, PyAny>; 2]) -> Option<usize> {
        Self::only(self.array_size, 8, |at| {
            // SAFETY: inside of the object, whose fields are words.
            (0..2).all(|n| unsafe {
                field::<usize>(self.arrays[n].as_ptr(), at) == objects[n].as_ptr().addr()
            })
        })
    }

    fn find(&self) -> PyResult<Option<Fields>> {
        let class = self.pointers[0].get_type();
        let odd = !self.pointers[1].get_type().is(&class)
            || !self.arrays[0].get_type().is(self.arrays[1].get_type())
            || self.pointers[0].is(&self.pointers[1])
            || self.dtypes[0].is(&self.dtypes[1]);
        if odd {
            return Ok(None);
        }
        let pointer = |at: usize, n: usize| {
            // SAFETY: inside of the object, whose fields are words.
            unsafe { field::<u64>(self.pointers[n].as_ptr(), at) }
        };
        let device = |at: usize, n: usize| {
            // SAFETY: as above; words have two halves.
            unsafe { field::<i32>(self.pointers[n].as_ptr(), at) }
        };
        let found = || {
            Some(Fields {
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
            // There is one such class in a process.
            std::mem::forget(class.unbind());
        }
        Ok(fields)
    }
}

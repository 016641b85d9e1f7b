//! Import of arrays by array interface and buffer protocol. DLPack import is in a module of its own.

use cupyrite::dlpack::{DeviceType, DlDevice};
use cupyrite::sys::driver::CUresult;
use cupyrite::{Device, Error, MemoryKind, PointerInfo, StridedLayout, pointer_info};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyKeyError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::core::errors::OrRaise;
use crate::core::memory::keep_alive::BufferView;
use crate::core::numbers::short_repr;
use crate::core::view::class;
use crate::core::view::class::ImportMethod;
use crate::core::view::dlpack::{by_class, from_dlpack};
use crate::core::view::dtype::{Dtype, Typestr};
use crate::core::view::layout::numbers;
use crate::core::view::state::{Consumer, MemoryOwner, ViewState, byte_span};

/// The dictionary of an array interface.
struct Interface<'py> {
    dict: Bound<'py, PyDict>,
    name: &'static str,
}

impl<'py> Interface<'py> {
    fn of(obj: &Bound<'py, PyAny>, name: &'static str) -> PyResult<Interface<'py>> {
        let py = obj.py();
        let given = obj.getattr(PyString::intern(py, name))?;
        let Ok(dict) = given.cast::<PyDict>() else {
            return Err(PyTypeError::new_err(format!(
                "{name} is of type {}; expected a dict",
                given.get_type().name()?
            )));
        };
        let interface = Interface {
            dict: dict.clone(),
            name,
        };
        let version = match interface.get(intern!(py, "version"))? {
            Some(version) => interface.convert::<i64>(&version, "version", "an int")?,
            None => 0,
        };
        // PyTorch's interface claims version 2, which differs in the stream alone; NVIDIA's package accepts its tensors.
        if version < 3 && !(version == 2 && torch_of(obj)?.is_some()) {
            return Err(PyBufferError::new_err(format!(
                "{name} is of version {version}; expected 3 or later"
            )));
        }
        if interface.get(intern!(py, "mask"))?.is_some() {
            return Err(PyBufferError::new_err(format!(
                "{name} has a mask, which views do not support"
            )));
        }
        Ok(interface)
    }

    /// An entry; `None` if it is missing or None.
    fn get(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.dict.get_item(key)?.filter(|value| !value.is_none()))
    }

    fn required(&self, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.dict
            .get_item(key)?
            .ok_or_else(|| PyKeyError::new_err(format!("{} has no entry '{key}'", self.name)))
    }

    fn convert<T>(&self, given: &Bound<'py, PyAny>, key: &str, expected: &str) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        given.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            let py = given.py();
            let displayed = short_repr(given);
            let text = format!("{}['{key}'] is {displayed}; expected {expected}", self.name);
            if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
                pyo3::exceptions::PyOverflowError::new_err(text)
            } else {
                PyTypeError::new_err(text)
            }
        })
    }

    fn layout_and_type(&self, py: Python<'py>) -> PyResult<(StridedLayout, Dtype)> {
        let text = self.required(intern!(py, "typestr"))?;
        let text = text.cast_into::<PyString>().map_err(|error| {
            let given = error.into_inner();
            let class = given
                .get_type()
                .name()
                .map_or_else(|_| "?".to_owned(), |n| n.to_string());
            PyTypeError::new_err(format!(
                "{}['typestr'] is of type {class}; expected a str",
                self.name
            ))
        })?;
        let parsed = Typestr::parse(&text.to_string_lossy()).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{}['typestr'] is '{text}'; expected byte order, kind and size, such as '<f4'",
                self.name
            ))
        })?;
        let shape = self.required(intern!(py, "shape"))?;
        let shape = numbers(&shape, self.name, "shape")?;
        let layout = match self.get(intern!(py, "strides"))? {
            Some(strides) => {
                let strides = numbers(&strides, self.name, "strides")?;
                StridedLayout::with_byte_strides(&shape, &strides, parsed.size)
            }
            None => StridedLayout::new(&shape, None, parsed.size),
        };
        let descr = if parsed.kind == b'V' {
            self.get(intern!(py, "descr"))?.map(Bound::unbind)
        } else {
            None
        };
        let dtype = Dtype::Interface(parsed, text.unbind(), descr);
        Ok((layout.or_raise(py)?, dtype))
    }

    /// Parses the `data` pair.
    fn address(&self, data: &Bound<'py, PyAny>) -> PyResult<(u64, bool)> {
        let expected = "a tuple of an address and a read-only flag";
        let Ok(pair) = data.cast::<PyTuple>() else {
            return Err(PyTypeError::new_err(format!(
                "{}['data'] is of type {}; expected {expected}",
                self.name,
                data.get_type().name()?
            )));
        };
        if pair.len() != 2 {
            return Err(PyValueError::new_err(format!(
                "{}['data'] has {} items; expected {expected}",
                self.name,
                pair.len()
            )));
        }
        let address = self.convert::<u64>(&pair.get_item(0)?, "data", expected)?;
        Ok((address, pair.get_item(1)?.is_truthy()?))
    }
}

/// Views memory by `__cuda_array_interface__` (version 3).
///
/// # Errors
///
/// `AttributeError` without the attribute; `BufferError`, `KeyError`, `TypeError` and `ValueError` for invalid
/// interfaces; `CUDAError` for memory unknown to the driver.
pub fn from_cuda_array_interface(
    obj: &Bound<'_, PyAny>,
    consumer: Consumer,
) -> PyResult<ViewState> {
    let py = obj.py();
    let interface = Interface::of(obj, "__cuda_array_interface__")?;
    let (layout, dtype) = interface.layout_and_type(py)?;
    let (base, readonly) = interface.address(&interface.required(intern!(py, "data"))?)?;
    let producer = match interface.get(intern!(py, "stream"))? {
        Some(stream) => {
            let handle =
                interface.convert::<i64>(&stream, "stream", "a stream handle, 1, 2 or None")?;
            match usize::try_from(handle) {
                Ok(handle) if handle != 0 => Some(handle),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "{}['stream'] is {handle}; expected a stream handle, 1 or 2 for the default streams, or None",
                        interface.name
                    )));
                }
            }
        }
        // Not asked for without a consumer's stream: it may initialise CUDA.
        None if consumer != Consumer::Ignore => torch_stream(obj)?,
        None => None,
    };
    let device = if base == 0 {
        if layout.volume() != 0 {
            return Err(PyBufferError::new_err(format!(
                "{}['data'] is address 0 for {} elements",
                interface.name,
                layout.volume()
            )));
        }
        DlDevice {
            kind: DeviceType::CUDA,
            number: Device::current().map_or(0, |device| device.ordinal() as i32),
        }
    } else {
        let info = pointer_info(base).or_raise(py)?;
        let number = info.device.map_or(0, |number| number as i32);
        let kind = match info.kind {
            MemoryKind::Device => DeviceType::CUDA,
            MemoryKind::Managed => DeviceType::CUDA_MANAGED,
            MemoryKind::Host => DeviceType::CUDA_HOST,
            MemoryKind::Unknown => return Err(unknown_memory(py, base, interface.name)),
        };
        DlDevice { kind, number }
    };
    if let Some(producer) = producer {
        consumer.wait_for(py, producer, device.number)?;
    }
    Ok(ViewState {
        base,
        known_bytes: None,
        layout,
        dtype,
        device,
        device_id: device.number,
        readonly,
        exporting: Some(obj.clone().unbind()),
        owner: MemoryOwner::Viewed,
    })
}

/// The module `torch`, if the object is one of its tensors.
fn torch_of<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = obj.py();
    let modules = py
        .import(intern!(py, "sys"))?
        .getattr(intern!(py, "modules"))?;
    let torch = modules.call_method1(intern!(py, "get"), (intern!(py, "torch"),))?;
    let Some(class) = torch.getattr_opt(intern!(py, "Tensor"))? else {
        return Ok(None);
    };
    Ok(obj.is_instance(&class)?.then_some(torch))
}

/// PyTorch's current stream of a tensor's device, on which the tensor's memory is written; `None` for other objects.
fn torch_stream(obj: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let py = obj.py();
    let Some(torch) = torch_of(obj)? else {
        return Ok(None);
    };
    let device = obj.getattr(intern!(py, "device"))?;
    let stream = torch
        .getattr(intern!(py, "cuda"))?
        .call_method1(intern!(py, "current_stream"), (device,))?;
    let handle: usize = stream.getattr(intern!(py, "cuda_stream"))?.extract()?;
    // 0 is the legacy default stream.
    Ok(Some(handle.max(1)))
}

fn unknown_memory(py: Python<'_>, address: u64, name: &str) -> PyErr {
    crate::core::errors::to_python(
        py,
        &Error::Driver {
            call: "cuPointerGetAttributes",
            status: CUresult::CUDA_ERROR_INVALID_VALUE,
            log: format!(
                "{name} has address {address:#x}, which is neither device memory nor page-locked host memory"
            ),
        },
    )
}

/// Device of host memory: page-locked and managed memory is device-accessible.
fn host_memory(address: u64) -> (DlDevice, i32) {
    let host = (
        DlDevice {
            kind: DeviceType::CPU,
            number: 0,
        },
        -1,
    );
    let kind = |kind| DlDevice { kind, number: 0 };
    // Queries the driver only if it is already initialized.
    if address == 0 || cupyrite::sys::loader::chosen_backend().is_none() {
        return host;
    }
    match pointer_info(address) {
        Ok(PointerInfo {
            kind: MemoryKind::Host,
            device,
        }) => (kind(DeviceType::CUDA_HOST), device.map_or(0, |d| d as i32)),
        Ok(PointerInfo {
            kind: MemoryKind::Managed,
            device,
        }) => (
            kind(DeviceType::CUDA_MANAGED),
            device.map_or(0, |d| d as i32),
        ),
        _ => host,
    }
}

/// Views host memory by `__array_interface__` (version 3).
///
/// # Errors
///
/// As [`from_cuda_array_interface`], except driver errors.
pub fn from_array_interface(obj: &Bound<'_, PyAny>) -> PyResult<ViewState> {
    let py = obj.py();
    let interface = Interface::of(obj, "__array_interface__")?;
    let (layout, mut dtype) = interface.layout_and_type(py)?;
    if matches!(&dtype, Dtype::Interface(parsed, ..) if parsed.kind == b'V')
        && matches!(class::of(obj)?, ImportMethod::Numpy)
    {
        // The interface describes extension types (bfloat16) as plain bytes; the array has the dtype.
        let known = obj.getattr(intern!(py, "dtype"))?;
        if crate::core::view::dtype::item_size(&known)? == layout.item_size() {
            dtype = Dtype::Numpy(known.unbind());
        }
    }
    let data = interface.required(intern!(py, "data"))?;
    let (base, readonly, owner) = if data.is_instance_of::<PyTuple>() {
        let (base, readonly) = interface.address(&data)?;
        (base, readonly, MemoryOwner::Viewed)
    } else if !data.is_none() && has_buffer(&data) {
        // An object that exports the memory, and an optional offset of the first element.
        let view = BufferView::take(&data, ffi::PyBUF_SIMPLE)?;
        let offset = match interface.get(intern!(py, "offset"))? {
            Some(offset) => interface.convert::<u64>(&offset, "offset", "a number of bytes")?,
            None => 0,
        };
        let (low, high) = byte_span(&layout);
        let room = i64::try_from(view.len()).unwrap_or(i64::MAX);
        let first = i64::try_from(offset).unwrap_or(i64::MAX);
        if layout.volume() != 0
            && (first.saturating_add(low) < 0 || first.saturating_add(high) > room)
        {
            return Err(PyValueError::new_err(format!(
                "{}['data'] has {room} bytes, too few for shape, strides and offset",
                interface.name
            )));
        }
        let base = (view.address() as u64).wrapping_add(offset);
        (base, view.readonly(), MemoryOwner::BufferProtocol(view))
    } else {
        return Err(interface
            .address(&data)
            .err()
            .unwrap_or_else(|| PyTypeError::new_err("__array_interface__['data'] is not memory")));
    };
    if base == 0 && layout.volume() != 0 {
        return Err(PyBufferError::new_err(format!(
            "{}['data'] is address 0 for {} elements",
            interface.name,
            layout.volume()
        )));
    }
    let (device, device_id) = host_memory(base);
    Ok(ViewState {
        base,
        known_bytes: None,
        layout,
        dtype,
        device,
        device_id,
        readonly,
        exporting: Some(obj.clone().unbind()),
        owner,
    })
}

fn has_buffer(given: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyObject_CheckBuffer(given.as_ptr()) != 0 }
}

/// Views host memory by the buffer protocol.
///
/// # Errors
///
/// Errors of the exporter; `BufferError` for suboffsets, `ValueError` for strides that are not multiples of the element
/// size.
fn from_memory(obj: &Bound<'_, PyAny>) -> PyResult<ViewState> {
    let py = obj.py();
    let view = BufferView::take(obj, ffi::PyBUF_FULL_RO)?;
    let (shape, strides, item) = view.extents()?;
    let layout = match strides {
        Some(strides) => StridedLayout::with_byte_strides(&shape, &strides, item),
        None => StridedLayout::new(&shape, None, item),
    }
    .or_raise(py)?;
    let base = view.address() as u64;
    let dtype = match plain_format(view.format(), item) {
        Some(text) => match Typestr::parse(&text) {
            Some(parsed) => Dtype::Interface(parsed, PyString::new(py, &text).unbind(), None),
            None => Dtype::BufferProtocol(obj.clone().unbind()),
        },
        None => Dtype::BufferProtocol(obj.clone().unbind()),
    };
    let (device, device_id) = host_memory(base);
    Ok(ViewState {
        base,
        known_bytes: None,
        layout,
        dtype,
        device,
        device_id,
        readonly: view.readonly(),
        exporting: Some(obj.clone().unbind()),
        owner: MemoryOwner::BufferProtocol(view),
    })
}

/// The `typestr` of a native scalar format; `None` for other formats.
fn plain_format(format: &[u8], item: usize) -> Option<String> {
    let code = match format {
        [code] | [b'@' | b'=', code] => *code,
        [b'<', code] if cfg!(target_endian = "little") => *code,
        [b'Z', b'f'] | [b'Z', b'd'] => b'Z',
        _ => return None,
    };
    let kind = match code {
        b'b' | b'h' | b'i' | b'l' | b'q' | b'n' => 'i',
        b'B' | b'H' | b'I' | b'L' | b'Q' | b'N' => 'u',
        b'e' | b'f' | b'd' => 'f',
        b'?' => 'b',
        b'Z' => 'c',
        _ => return None,
    };
    let order = match item {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    Some(format!("{order}{kind}{item}"))
}

/// Views an object by the first supported protocol.
///
/// # Errors
///
/// As [`Protocol::of`], [`Consumer::accept`] and the functions of this module.
pub fn from_any(
    obj: &Bound<'_, PyAny>,
    stream_ptr: Option<&Bound<'_, PyAny>>,
) -> PyResult<ViewState> {
    let consumer = Consumer::accept(stream_ptr);
    if let Ok(consumer) = consumer {
        match by_class(obj, consumer) {
            Ok(Some(parts)) => return Ok(parts),
            Ok(None) => {}
            // NumPy has types that only its array interface supports.
            Err(error)
                if error.is_instance_of::<PyBufferError>(obj.py())
                    && matches!(class::of(obj)?, ImportMethod::Numpy) =>
            {
                return from_array_interface(obj);
            }
            Err(error) => return Err(error),
        }
    }
    // An object without memory is reported before an invalid stream.
    let protocol = Protocol::of(obj)?;
    protocol.view(obj, consumer?)
}

/// Protocol by which an object is viewed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `__dlpack__`.
    DlPack,
    /// `__cuda_array_interface__`.
    CudaArrayInterface,
    /// `__array_interface__`.
    ArrayInterface,
    /// The buffer protocol.
    Memory,
}

impl Protocol {
    /// The first protocol that the object supports.
    ///
    /// # Errors
    ///
    /// `BufferError` if there is none; errors of its attributes except `AttributeError`.
    pub fn of(obj: &Bound<'_, PyAny>) -> PyResult<Protocol> {
        let py = obj.py();
        let has = |name: &Bound<'_, PyString>| match obj.getattr_opt(name) {
            Ok(found) => Ok(found.is_some_and(|found| !found.is_none())),
            Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(false),
            Err(error) => Err(error),
        };
        // Classes with a faster import method count as DLPack.
        let by_class = !matches!(
            class::of(obj)?,
            ImportMethod::Protocols | ImportMethod::Numpy
        );
        if by_class || has(intern!(py, "__dlpack__"))? && has(intern!(py, "__dlpack_device__"))? {
            Ok(Protocol::DlPack)
        } else if has(intern!(py, "__cuda_array_interface__"))? {
            Ok(Protocol::CudaArrayInterface)
        } else if has(intern!(py, "__array_interface__"))? {
            Ok(Protocol::ArrayInterface)
        } else if has_buffer(obj) {
            Ok(Protocol::Memory)
        } else {
            Err(PyBufferError::new_err(format!(
                "an object of type {} exposes no memory: it has neither __dlpack__ and __dlpack_device__, nor \
                 __cuda_array_interface__, nor __array_interface__, nor the buffer protocol",
                obj.get_type().name()?
            )))
        }
    }

    /// Views an object.
    ///
    /// # Errors
    ///
    /// As the functions of this module.
    pub fn view(self, obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<ViewState> {
        match self {
            Protocol::DlPack => from_dlpack(obj, consumer),
            Protocol::CudaArrayInterface => from_cuda_array_interface(obj, consumer),
            Protocol::ArrayInterface => from_array_interface(obj),
            Protocol::Memory => from_memory(obj),
        }
    }
}

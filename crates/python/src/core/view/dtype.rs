//! Element types: conversions between DLPack, array interfaces and NumPy.

use cupyrite::dlpack::DataType;
use pyo3::exceptions::{PyBufferError, PyNotImplementedError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::numbers::short_repr;

/// An element type in the representation of its source. NumPy is imported only when its dtype is requested.
pub enum Dtype {
    /// Not specified.
    Unknown,
    /// From a DLPack tensor.
    DlPack(DataType),
    /// From an array interface: `typestr`, and `descr` for structured types.
    Interface(Typestr, Py<PyString>, Option<Py<PyAny>>),
    /// A `numpy.dtype`.
    Numpy(Py<PyAny>),
    /// Determined by `numpy.asarray` from an object with the buffer protocol.
    BufferProtocol(Py<PyAny>),
}

/// Parsed `typestr` of the array interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Typestr {
    /// Type character: `i`, `f`, ...
    pub kind: u8,
    /// Whether the byte order is native.
    pub native: bool,
    /// Size of an element in bytes.
    pub size: usize,
}

impl Typestr {
    /// Parses a string such as `'<f4'`; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Typestr> {
        let bytes = text.as_bytes();
        let (&order, &kind) = (bytes.first()?, bytes.get(1)?);
        if !b"<>|=".contains(&order) || !b"biufcmMOSUV".contains(&kind) {
            return None;
        }
        let rest = text.get(2..)?;
        // Dates append the unit to the size: '<M8[ns]'.
        let digits = match rest.split_once('[') {
            Some((digits, unit)) if b"mM".contains(&kind) && unit.ends_with(']') => digits,
            Some(_) => return None,
            None => rest,
        };
        // Object references may omit their size, which is constant.
        let digits = match (kind, digits) {
            (b'O', "") => "8",
            _ => digits,
        };
        if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let count: usize = digits.parse().ok()?;
        Some(Typestr {
            kind,
            native: order
                != if cfg!(target_endian = "little") {
                    b'>'
                } else {
                    b'<'
                }
                || count == 1,
            // Text sizes count characters of 4 bytes.
            size: if kind == b'U' {
                count.checked_mul(4)?
            } else {
                count
            },
        })
    }

    /// The DLPack type; `None` if there is none.
    fn data_type(self) -> Option<DataType> {
        let bits = u8::try_from(self.size.checked_mul(8)?).ok()?;
        let code = match (self.kind, self.size) {
            (b'b', 1) => DataType::BOOL,
            (b'i', 1 | 2 | 4 | 8) => DataType::INT,
            (b'u', 1 | 2 | 4 | 8) => DataType::UINT,
            (b'f', 2 | 4 | 8) => DataType::FLOAT,
            (b'c', 8 | 16) => DataType::COMPLEX,
            _ => return None,
        };
        Some(DataType::new(code, bits))
    }
}

/// Types that NumPy supports through the package `ml_dtypes`: DLPack code, bits, name.
const ML_DTYPES: [(u8, u8, &str); 9] = [
    (DataType::BFLOAT, 16, "bfloat16"),
    (7, 8, "float8_e3m4"),
    (8, 8, "float8_e4m3"),
    (9, 8, "float8_e4m3b11fnuz"),
    (10, 8, "float8_e4m3fn"),
    (11, 8, "float8_e4m3fnuz"),
    (12, 8, "float8_e5m2"),
    (13, 8, "float8_e5m2fnuz"),
    (14, 8, "float8_e8m0fnu"),
];

/// The `typestr` of a DLPack type with one lane; `None` if NumPy has no such type.
pub fn typestr_of(dtype: DataType) -> Option<String> {
    let kind = match (dtype.code, dtype.bits) {
        (DataType::INT, 8 | 16 | 32 | 64) => 'i',
        (DataType::UINT, 8 | 16 | 32 | 64) => 'u',
        (DataType::FLOAT, 16 | 32 | 64) => 'f',
        (DataType::COMPLEX, 64 | 128) => 'c',
        (DataType::BOOL, 8) => 'b',
        (code, bits) if ML_DTYPES.iter().any(|m| (m.0, m.1) == (code, bits)) => 'V',
        _ => return None,
    };
    let bytes = dtype.bits / 8;
    let order = match bytes {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    (dtype.lanes == 1).then(|| format!("{order}{kind}{bytes}"))
}

/// `numpy.dtype`.
fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "numpy", "dtype")
}

/// Converts an argument to a `numpy.dtype`.
///
/// # Errors
///
/// NumPy's errors for invalid types; `TypeError` for types with references to Python objects.
pub fn accept<'py>(given: &Bound<'py, PyAny>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    let class = class(given.py())?;
    let created = if given.is_instance(class)? {
        given.clone()
    } else {
        class.call1((given,))?
    };
    if has_object(&created)? {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'dtype' is {}, a type of Python object references, which a view cannot have",
            short_repr(&created)
        )));
    }
    Ok(created)
}

/// Whether elements of a `numpy.dtype` are or contain references to Python objects.
fn has_object(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    dtype.getattr(intern!(dtype.py(), "hasobject"))?.is_truthy()
}

/// Size in bytes of an element of a `numpy.dtype`.
///
/// # Errors
///
/// Python errors.
pub fn item_size(dtype: &Bound<'_, PyAny>) -> PyResult<usize> {
    dtype.getattr(intern!(dtype.py(), "itemsize"))?.extract()
}

/// The NumPy type of a DLPack type.
fn numpy_of(py: Python<'_>, dtype: DataType) -> PyResult<Bound<'_, PyAny>> {
    let one = DataType::new(dtype.code, dtype.bits);
    let base = if let Some(&(_, _, name)) = ML_DTYPES
        .iter()
        .find(|m| (m.0, m.1) == (one.code, one.bits))
    {
        let more = py.import(intern!(py, "ml_dtypes")).map_err(|cause| {
            let error = PyNotImplementedError::new_err(format!(
                "NumPy supports the type {name} only with the package 'ml_dtypes', which cannot be imported; install it"
            ));
            error.set_cause(py, Some(cause));
            error
        })?;
        class(py)?.call1((more.getattr(name)?,))?
    } else {
        let Some(name) = typestr_of(one) else {
            return Err(PyTypeError::new_err(format!(
                "NumPy has no type for DLPack type code {} with {} bits",
                one.code, one.bits
            )));
        };
        class(py)?.call1((name,))?
    };
    if dtype.lanes == 1 {
        return Ok(base);
    }
    class(py)?.call1(((base, (dtype.lanes,)),))
}

impl Dtype {
    /// Reports the referenced objects to the garbage collector.
    ///
    /// # Errors
    ///
    /// Errors of the collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Dtype::Unknown | Dtype::DlPack(_) => Ok(()),
            // Strings refer to no objects.
            Dtype::Interface(_, _, descr) => visit.call(descr),
            Dtype::Numpy(object) | Dtype::BufferProtocol(object) => visit.call(object),
        }
    }

    /// Whether elements are or contain references to Python objects, which only Python may write.
    ///
    /// # Errors
    ///
    /// As [`Dtype::numpy`].
    pub fn has_objects(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Dtype::Unknown | Dtype::DlPack(_) => Ok(false),
            Dtype::Interface(parsed, ..) if parsed.kind != b'V' => Ok(parsed.kind == b'O'),
            Dtype::Interface(_, _, None) => Ok(false),
            _ => self
                .numpy(py)?
                .map_or(Ok(false), |dtype| has_object(&dtype)),
        }
    }

    /// The `numpy.dtype`; `None` for an unspecified type.
    ///
    /// # Errors
    ///
    /// `ImportError` without NumPy, `NotImplementedError` without a required package, `TypeError` for types unknown to
    /// NumPy.
    pub fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(Some(match self {
            Dtype::Unknown => return Ok(None),
            Dtype::DlPack(dtype) => numpy_of(py, *dtype)?,
            Dtype::Numpy(dtype) => dtype.bind(py).clone(),
            Dtype::Interface(parsed, text, descr) => {
                if let Some(descr) = descr
                    && parsed.kind == b'V'
                    && let Ok(dtype) = described(descr.bind(py))
                    && item_size(&dtype)? == parsed.size
                    // Plain bytes are described by one unnamed field, which is not a field in NumPy.
                    && dtype.getattr(intern!(py, "names"))?.is_truthy()?
                {
                    return Ok(Some(dtype));
                }
                class(py)?.call1((text,))?
            }
            Dtype::BufferProtocol(object) => {
                let memory = py
                    .import(intern!(py, "builtins"))?
                    .call_method1(intern!(py, "memoryview"), (object,))?;
                py.import(intern!(py, "numpy"))?
                    .call_method1(intern!(py, "asarray"), (memory,))?
                    .getattr(intern!(py, "dtype"))?
            }
        }))
    }

    /// The DLPack type.
    ///
    /// # Errors
    ///
    /// `BufferError` if DLPack has no such type.
    pub fn data_type(&self, py: Python<'_>) -> PyResult<DataType> {
        let typestr = |text: &str| Typestr::parse(text);
        let (parsed, name) = match self {
            Dtype::DlPack(dtype) => return Ok(*dtype),
            Dtype::Unknown => {
                return Err(PyBufferError::new_err(
                    "exporting requires an element type, which is unknown; specify 'dtype' when creating the view, or \
                     create a view with view(dtype=...)",
                ));
            }
            Dtype::Interface(parsed, text, _) if parsed.kind != b'V' => {
                (Some(*parsed), text.bind(py).to_string())
            }
            _ => {
                let Some(dtype) = self.numpy(py)? else {
                    return Err(unsupported("unknown"));
                };
                let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
                if let Some(&(code, bits, _)) = ML_DTYPES.iter().find(|m| m.2 == name) {
                    return Ok(DataType::new(code, bits));
                }
                let fields = dtype.getattr(intern!(py, "names"))?;
                let text: String = dtype.getattr(intern!(py, "str"))?.extract()?;
                (
                    if fields.is_none() {
                        typestr(&text)
                    } else {
                        None
                    },
                    name,
                )
            }
        };
        match parsed {
            Some(parsed) if !parsed.native => Err(PyBufferError::new_err(format!(
                "elements of type {name} have non-native byte order, which DLPack does not support"
            ))),
            Some(parsed) => parsed.data_type().ok_or_else(|| unsupported(&name)),
            None => Err(unsupported(&name)),
        }
    }

    /// Whether the type is unspecified.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Dtype::Unknown)
    }

    /// Clones the type for another view.
    pub fn clone_ref(&self, py: Python<'_>) -> Dtype {
        match self {
            Dtype::Unknown => Dtype::Unknown,
            Dtype::DlPack(dtype) => Dtype::DlPack(*dtype),
            Dtype::Interface(parsed, text, descr) => Dtype::Interface(
                *parsed,
                text.clone_ref(py),
                descr.as_ref().map(|d| d.clone_ref(py)),
            ),
            Dtype::Numpy(dtype) => Dtype::Numpy(dtype.clone_ref(py)),
            Dtype::BufferProtocol(object) => Dtype::BufferProtocol(object.clone_ref(py)),
        }
    }
}

fn unsupported(name: &str) -> PyErr {
    PyBufferError::new_err(format!("DLPack has no type for elements of type {name}"))
}

/// The structured type described by `descr` of the array interface, including padding.
fn described<'py>(descr: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    py.import(intern!(py, "numpy.lib.format"))?
        .call_method1(intern!(py, "descr_to_dtype"), (descr,))
}

//! What the elements of a view are: as DLPack, array interfaces and NumPy name types.

use cupyrite::dlpack::DataType;
use pyo3::exceptions::{PyBufferError, PyNotImplementedError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::numbers::shown;

/// A type of elements, kept as it came: NumPy is imported when somebody asks for its dtype.
pub enum Dtype {
    /// Nobody said.
    Unknown,
    /// From a DLPack tensor.
    DlPack(DataType),
    /// From an array interface: `typestr`, and `descr` where that says more.
    Interface(Typestr, Py<PyString>, Option<Py<PyAny>>),
    /// A `numpy.dtype`.
    Numpy(Py<PyAny>),
    /// What `numpy.asarray` says of this object, which shows its memory by the buffer protocol.
    Shown(Py<PyAny>),
}

/// `typestr` of the array interface, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Typestr {
    /// `i`, `f`, ...
    pub kind: u8,
    /// Whether the bytes are in the order of this machine.
    pub native: bool,
    /// Bytes of an element.
    pub size: usize,
}

impl Typestr {
    /// Takes `'<f4'` apart; `None` for what is none.
    pub fn parse(text: &str) -> Option<Typestr> {
        let bytes = text.as_bytes();
        let (&order, &kind) = (bytes.first()?, bytes.get(1)?);
        if !b"<>|=".contains(&order) || !b"biufcmMOSUV".contains(&kind) {
            return None;
        }
        let rest = text.get(2..)?;
        // Dates have their unit behind the size: '<M8[ns]'.
        let digits = match rest.split_once('[') {
            Some((digits, unit)) if b"mM".contains(&kind) && unit.ends_with(']') => digits,
            Some(_) => return None,
            None => rest,
        };
        // References to objects may come without the size that all of them have.
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
            // Text is counted in characters of 4 bytes.
            size: if kind == b'U' {
                count.checked_mul(4)?
            } else {
                count
            },
        })
    }

    /// The same for DLPack; `None` where it has no such type.
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

/// Types that NumPy has by the package `ml_dtypes`: DLPack's code, bits, name.
const MORE: [(u8, u8, &str); 9] = [
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

/// The array interface's name of a DLPack type with one lane; `None` where it has none.
pub fn typestr_of(dtype: DataType) -> Option<String> {
    let kind = match (dtype.code, dtype.bits) {
        (DataType::INT, 8 | 16 | 32 | 64) => 'i',
        (DataType::UINT, 8 | 16 | 32 | 64) => 'u',
        (DataType::FLOAT, 16 | 32 | 64) => 'f',
        (DataType::COMPLEX, 64 | 128) => 'c',
        (DataType::BOOL, 8) => 'b',
        (code, bits) if MORE.iter().any(|m| (m.0, m.1) == (code, bits)) => 'V',
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

/// What was given as a type, as a `numpy.dtype`.
///
/// # Errors
///
/// NumPy's for what is no type; `TypeError` for types with references to Python objects, which plain memory has not.
pub fn accept<'py>(given: &Bound<'py, PyAny>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    let class = class(given.py())?;
    let made = if given.is_instance(class)? {
        given.clone()
    } else {
        class.call1((given,))?
    };
    if has_object(&made)? {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'dtype' is {}, of references to Python objects; the memory holds none",
            shown(&made)
        )));
    }
    Ok(made)
}

/// Whether elements of a `numpy.dtype` are references to Python objects, or have some.
fn has_object(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    dtype.getattr(intern!(dtype.py(), "hasobject"))?.is_truthy()
}

/// Bytes of an element of a `numpy.dtype`.
///
/// # Errors
///
/// Whatever Python raises.
pub fn item_size(dtype: &Bound<'_, PyAny>) -> PyResult<usize> {
    dtype.getattr(intern!(dtype.py(), "itemsize"))?.extract()
}

/// The NumPy type of a DLPack type.
fn numpy_of(py: Python<'_>, dtype: DataType) -> PyResult<Bound<'_, PyAny>> {
    let one = DataType::new(dtype.code, dtype.bits);
    let base = if let Some(&(_, _, name)) = MORE.iter().find(|m| (m.0, m.1) == (one.code, one.bits))
    {
        let more = py.import(intern!(py, "ml_dtypes")).map_err(|cause| {
            let error = PyNotImplementedError::new_err(format!(
                "NumPy has the type {name} only with the package 'ml_dtypes', which cannot be imported; install it"
            ));
            error.set_cause(py, Some(cause));
            error
        })?;
        class(py)?.call1((more.getattr(name)?,))?
    } else {
        let Some(name) = typestr_of(one) else {
            return Err(PyTypeError::new_err(format!(
                "NumPy has no type for elements of DLPack's type code {} with {} bits",
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
    /// Shows the collector the objects that it holds.
    ///
    /// # Errors
    ///
    /// The collector's.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Dtype::Unknown | Dtype::DlPack(_) => Ok(()),
            // Texts refer to nothing.
            Dtype::Interface(_, _, descr) => visit.call(descr),
            Dtype::Numpy(object) | Dtype::Shown(object) => visit.call(object),
        }
    }

    /// Whether elements are references to Python objects, or have some: nobody but Python may write those.
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

    /// The `numpy.dtype`; None where nobody said.
    ///
    /// # Errors
    ///
    /// `ImportError` without NumPy, `NotImplementedError` without a package that is needed, `TypeError` for types that
    /// NumPy does not have.
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
                    // Plain bytes are described by one field without a name, which is none.
                    && dtype.getattr(intern!(py, "names"))?.is_truthy()?
                {
                    return Ok(Some(dtype));
                }
                class(py)?.call1((text,))?
            }
            Dtype::Shown(object) => {
                let memory = py
                    .import(intern!(py, "builtins"))?
                    .call_method1(intern!(py, "memoryview"), (object,))?;
                py.import(intern!(py, "numpy"))?
                    .call_method1(intern!(py, "asarray"), (memory,))?
                    .getattr(intern!(py, "dtype"))?
            }
        }))
    }

    /// DLPack's type.
    ///
    /// # Errors
    ///
    /// `BufferError` where it has none.
    pub fn data_type(&self, py: Python<'_>) -> PyResult<DataType> {
        let typestr = |text: &str| Typestr::parse(text);
        let (parsed, name) = match self {
            Dtype::DlPack(dtype) => return Ok(*dtype),
            Dtype::Unknown => {
                return Err(PyBufferError::new_err(
                    "the type of the elements is not known, which an export needs; give 'dtype' when the view is made, or \
                     make one that has it with view(dtype=...)",
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
                if let Some(&(code, bits, _)) = MORE.iter().find(|m| m.2 == name) {
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
                "elements of type {name} are not in the byte order of this machine, and DLPack has no others"
            ))),
            Some(parsed) => parsed.data_type().ok_or_else(|| unsupported(&name)),
            None => Err(unsupported(&name)),
        }
    }

    /// Whether nobody said.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Dtype::Unknown)
    }

    /// The same type for another view.
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
            Dtype::Shown(object) => Dtype::Shown(object.clone_ref(py)),
        }
    }
}

fn unsupported(name: &str) -> PyErr {
    PyBufferError::new_err(format!("DLPack has no type for elements of type {name}"))
}

/// The structured type that `descr` of the array interface describes, gaps included.
fn described<'py>(descr: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    py.import(intern!(py, "numpy.lib.format"))?
        .call_method1(intern!(py, "descr_to_dtype"), (descr,))
}

//! Program caches and cache keys.

use std::borrow::Cow;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::cache::{Expression, FileCache, KeyRequest, MemoryCache, PathError, ProgramCache};
use cupyrite::{CodeKind, CodeSource, ObjectCode, SourceKind};
use pyo3::exceptions::{PyOSError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::core::errors::OrRaise;
use crate::core::module::object_code;
use crate::core::module::program::options;
use crate::core::module::program::options::bytes_of;
use crate::core::module::program::{OPTIONS, kind_of, lower, source_kind, targets};
use crate::core::numbers;
use crate::site_packages;

/// Adds the cache storages and the key function.
///
/// # Errors
///
/// Python errors.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<CacheStorage>()?;
    core.add_function(wrap_pyfunction!(memory_cache, core)?)?;
    core.add_function(wrap_pyfunction!(file_cache, core)?)?;
    core.add_function(wrap_pyfunction!(program_cache_key, core)?)
}

/// Storage of the cache classes of `cuda.core.utils`.
#[pyclass(frozen, module = "cupyrite._native.core")]
pub struct CacheStorage {
    cache: Arc<dyn ProgramCache>,
}

/// Converts a system error to an `OSError` with its file.
fn os_error(error: &io::Error) -> PyErr {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<PathError>());
    match inner {
        Some(inner) => os_error_of(inner.error(), Some(inner.path())),
        None => os_error_of(error, None),
    }
}

/// Converts the system error of a file to the class of `OSError` for its number, such as `FileNotFoundError`.
fn os_error_of(system: &io::Error, path: Option<&Path>) -> PyErr {
    let text = system.to_string();
    // Python appends the number itself.
    let text = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    match (system.raw_os_error(), path) {
        (Some(number), Some(path)) => {
            PyOSError::new_err((number, text, path.to_string_lossy().into_owned()))
        }
        (Some(number), None) => PyOSError::new_err((number, text)),
        _ => PyOSError::new_err(system.to_string()),
    }
}

/// The bytes of code, which may be in a file.
///
/// # Errors
///
/// The `OSError` of a file that cannot be read.
fn bytes_of_code(code: &ObjectCode) -> PyResult<Cow<'_, [u8]>> {
    match code.code() {
        CodeSource::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        CodeSource::File(path) => match std::fs::read(path) {
            Ok(bytes) => Ok(Cow::Owned(bytes)),
            Err(error) => Err(os_error_of(&error, Some(path))),
        },
    }
}

/// Converts a key to bytes.
fn key_of(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    bytes_of(key)?.ok_or_else(|| {
        let kind = key.get_type();
        let name = kind
            .name()
            .map_or_else(|_| "?".to_owned(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "program cache key must be bytes or str, not {name}"
        ))
    })
}

/// Bytes of an object with the buffer protocol; `None` for other objects.
fn buffer_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(bytes.clone()));
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } == 0 {
        return Ok(None);
    }
    let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
    Ok(bytes.cast_into::<PyBytes>().ok())
}

#[pymethods]
impl CacheStorage {
    /// The bytes stored under a key, or None.
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key_of(key)?;
        let found = py
            .detach(|| self.cache.get(&key))
            .map_err(|error| os_error(&error))?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Stores the bytes of a buffer or an `ObjectCode` under a key.
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let key = key_of(key)?;
        let stored = if let Some(code) = object_code::borrow(value) {
            let bytes = bytes_of_code(code)?;
            py.detach(|| self.cache.put(&key, &bytes))
        } else if let Some(bytes) = buffer_of(value)? {
            let bytes = bytes.as_bytes();
            py.detach(|| self.cache.put(&key, bytes))
        } else {
            return Err(PyTypeError::new_err(format!(
                "program cache value must be an ObjectCode or a bytes-like object, not {}",
                value.get_type().name()?
            )));
        };
        stored.map_err(|error| os_error(&error))
    }

    /// Removes an entry; returns whether it existed.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = key_of(key)?;
        py.detach(|| self.cache.remove(&key))
            .map_err(|error| os_error(&error))
    }

    /// Removes all entries.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.cache.clear())
            .map_err(|error| os_error(&error))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.cache.len())
            .map_err(|error| os_error(&error))
    }

    /// Number of lookups that hit.
    #[getter]
    fn hits(&self) -> u64 {
        self.cache.hits()
    }

    /// Number of lookups that missed.
    #[getter]
    fn misses(&self) -> u64 {
        self.cache.misses()
    }
}

fn limit_of(max_size_bytes: Option<&Bound<'_, PyAny>>) -> PyResult<Option<NonZeroU64>> {
    let Some(given) = max_size_bytes.filter(|given| !given.is_none()) else {
        return Ok(None);
    };
    let expected = "expected a number of bytes above 0, or None for no limit";
    match given.extract::<i128>() {
        Ok(number) if number > 0 => Ok(NonZeroU64::new(u64::try_from(number).unwrap_or(u64::MAX))),
        Ok(number) => Err(PyValueError::new_err(format!(
            "max_size_bytes is {number}; {expected}"
        ))),
        Err(error) if error.is_instance_of::<PyTypeError>(given.py()) => Err(PyTypeError::new_err(
            format!("max_size_bytes is {}; {expected}", given.repr()?),
        )),
        Err(error) => Err(error),
    }
}

/// Creates the storage of an `InMemoryProgramCache`.
#[pyfunction]
#[pyo3(signature = (max_size_bytes=None))]
fn memory_cache(max_size_bytes: Option<&Bound<'_, PyAny>>) -> PyResult<CacheStorage> {
    let cache = MemoryCache::new(limit_of(max_size_bytes)?);
    Ok(CacheStorage {
        cache: Arc::new(cache),
    })
}

/// Creates the storage of a `FileStreamProgramCache`.
#[pyfunction]
#[pyo3(signature = (path=None, max_size_bytes=None))]
fn file_cache(
    py: Python<'_>,
    path: Option<&Bound<'_, PyAny>>,
    max_size_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<CacheStorage> {
    let limit = limit_of(max_size_bytes)?;
    let path = match path.filter(|path| !path.is_none()) {
        None => FileCache::default_directory().or_raise(py)?,
        Some(path) if path.is_instance_of::<PyBytes>() => {
            return Err(PyTypeError::new_err(
                "path is of type bytes; expected str, os.PathLike or None",
            ));
        }
        Some(path) => path.extract::<PathBuf>().map_err(|_| {
            let kind = path.get_type();
            let name = kind
                .name()
                .map_or_else(|_| "?".to_owned(), |n| n.to_string());
            PyTypeError::new_err(format!(
                "path is of type {name}; expected str, os.PathLike or None"
            ))
        })?,
    };
    let cache = py
        .detach(|| FileCache::open(path, limit))
        .map_err(|error| os_error(&error))?;
    Ok(CacheStorage {
        cache: Arc::new(cache),
    })
}

/// Converts name expressions for cache keys.
pub fn expressions_of(given: &[Bound<'_, PyAny>]) -> PyResult<Vec<Expression>> {
    given
        .iter()
        .map(|item| {
            if let Ok(text) = item.cast::<PyString>() {
                return Ok(Expression::Text(text.to_str()?.to_owned()));
            }
            match item.cast::<PyBytes>() {
                Ok(bytes) => Ok(Expression::Bytes(bytes.as_bytes().to_vec())),
                Err(_) => Err(PyTypeError::new_err(format!(
                    "name_expressions contains an item of type {}; expected str or bytes",
                    item.get_type().name()?
                ))),
            }
        })
        .collect()
}

/// Implements `make_program_cache_key`.
#[pyfunction]
#[pyo3(signature = (code, code_type, options, target_type, name_expressions=None, extra_digest=None))]
fn program_cache_key<'py>(
    py: Python<'py>,
    code: &Bound<'py, PyAny>,
    code_type: &Bound<'py, PyAny>,
    options: &Bound<'py, PyAny>,
    target_type: &Bound<'py, PyAny>,
    name_expressions: Option<&Bound<'py, PyAny>>,
    extra_digest: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let function = "make_program_cache_key()";
    let Ok(source) = source_kind(code_type) else {
        return Err(PyValueError::new_err(format!(
            "{function} argument 'code_type' is {}; expected 'c++', 'ptx' or 'nvvm'",
            code_type.repr()?
        )));
    };
    let expected = targets(source);
    let target = kind_of(target_type)?.filter(|kind| expected.iter().any(|row| row.0 == *kind));
    let Some(target) = target else {
        let names: Vec<String> = expected.iter().map(|row| format!("'{}'", row.1)).collect();
        return Err(PyValueError::new_err(format!(
            "{function} argument 'target_type' is {}; expected for {}: {}",
            target_type.repr()?,
            lower(code_type)?,
            names.join(", ")
        )));
    };
    let class = OPTIONS.get(py)?;
    if !options.is_instance(class)? {
        return Err(PyTypeError::new_err(format!(
            "{function} argument 'options' is of type {}; expected ProgramOptions",
            options.get_type().name()?
        )));
    }
    let program = crate::core::module::program::program(
        function,
        code,
        source,
        options::read(options, true)?,
    )?;
    let mut given = Vec::new();
    if let Some(list) = name_expressions {
        let what = || format!("{function} argument 'name_expressions'");
        for item in numbers::elements_of(list, what, "a list or tuple of names")? {
            given.push(item?);
        }
    }
    let expressions = expressions_of(&given)?;
    let extra_digest = match extra_digest.filter(|digest| !digest.is_none()) {
        None => None,
        Some(digest) => Some(buffer_of(digest)?.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{function} argument 'extra_digest' must be bytes-like or None"
            ))
        })?),
    };
    let extra_digest = extra_digest.as_ref().map(|digest| digest.as_bytes());
    // Reading the site-packages directories dominates the cost, and is only needed until the compiler has been found.
    static FOUND: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    let found = &FOUND[source as usize];
    if !found.load(Ordering::Relaxed) {
        site_packages::refresh(py);
    }
    let request = KeyRequest {
        program: &program,
        target,
        expressions: &expressions,
        extra_digest,
        reads_files: false,
    };
    let key = py.detach(|| request.key()).or_raise(py)?;
    found.store(true, Ordering::Relaxed);
    Ok(PyBytes::new(py, &key))
}

/// A cache access of `Program.compile`.
pub struct CacheAccess<'a, 'py> {
    cache: &'a Bound<'py, PyAny>,
    compiler: &'a cupyrite::Compiler,
    target: CodeKind,
    given: &'a [Bound<'py, PyAny>],
    expressions: Vec<Expression>,
    key: [u8; 32],
}

impl<'a, 'py> CacheAccess<'a, 'py> {
    /// Computes the key.
    ///
    /// # Errors
    ///
    /// `TypeError` if `cache` is not a program cache; `ValueError` if no key can be computed.
    pub fn new(
        cache: &'a Bound<'py, PyAny>,
        compiler: &'a cupyrite::Compiler,
        target: CodeKind,
        given: &'a [Bound<'py, PyAny>],
    ) -> PyResult<CacheAccess<'a, 'py>> {
        let py = cache.py();
        let class = py
            .import(intern!(py, "cuda.core.utils._program_cache._abc"))?
            .getattr(intern!(py, "ProgramCacheResource"))?;
        if !cache.is_instance(&class)? {
            return Err(PyTypeError::new_err(format!(
                "compile() argument 'cache' is of type {}; expected a cuda.core.utils.ProgramCacheResource or None",
                cache.get_type().name()?
            )));
        }
        let mut this = CacheAccess {
            cache,
            compiler,
            target,
            given,
            expressions: expressions_of(given)?,
            key: [0; 32],
        };
        this.key = this.current_key()?;
        Ok(this)
    }

    fn current_key(&self) -> PyResult<[u8; 32]> {
        let py = self.cache.py();
        let request = KeyRequest {
            program: self.compiler.program(),
            target: self.target,
            expressions: &self.expressions,
            extra_digest: None,
            reads_files: true,
        };
        py.detach(|| request.key()).or_raise(py)
    }

    fn has_symbols(&self) -> bool {
        self.compiler.program().source_kind() == SourceKind::Cxx && !self.given.is_empty()
    }

    /// Key of the entry with the mangled names, which are not in the code.
    fn symbols_key(&self) -> Vec<u8> {
        [self.key.as_slice(), b" symbols"].concat()
    }

    /// Looks up the compiled code.
    ///
    /// # Errors
    ///
    /// Errors of the cache.
    pub fn find(&self) -> PyResult<Option<Py<PyAny>>> {
        let py = self.cache.py();
        let get = |key: &[u8]| -> PyResult<Option<Bound<'py, PyBytes>>> {
            let found = self
                .cache
                .call_method1(intern!(py, "get"), (PyBytes::new(py, key),))?;
            if found.is_none() {
                return Ok(None);
            }
            if let Some(code) = object_code::borrow(&found) {
                return Ok(Some(PyBytes::new(py, &bytes_of_code(code)?)));
            }
            match buffer_of(&found)? {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(PyTypeError::new_err(format!(
                    "the cache's get() returned {}; expected bytes or None",
                    found.get_type().name()?
                ))),
            }
        };
        let Some(bytes) = get(&self.key)? else {
            return Ok(None);
        };
        let symbols = PyDict::new(py);
        let mut pairs = Vec::new();
        if self.has_symbols() {
            let Some(names) = get(&self.symbols_key())? else {
                return Ok(None);
            };
            let Ok(names) = std::str::from_utf8(names.as_bytes()) else {
                return Ok(None);
            };
            // One name per line, in the sort order of the expressions.
            let mut order: Vec<usize> = (0..self.given.len()).collect();
            order.sort_by_key(|at| &self.expressions[*at]);
            let names: Vec<&str> = names.lines().collect();
            if names.len() != order.len() {
                return Ok(None);
            }
            let mut sorted = vec![""; order.len()];
            for (at, name) in order.into_iter().zip(names) {
                sorted[at] = name;
            }
            for (key, name) in self.given.iter().zip(sorted) {
                symbols.set_item(key, PyBytes::new(py, name.as_bytes()))?;
                pairs.push((
                    crate::core::module::program::expression(key)?,
                    name.to_owned(),
                ));
            }
        }
        let code = ObjectCode::new(self.target, bytes.as_bytes())
            .named(self.compiler.program().options().name())
            .with_symbols(pairs);
        object_code::make_with(py, code, symbols).map(Some)
    }

    /// Stores compiled code, unless a source file has changed since the lookup.
    ///
    /// # Errors
    ///
    /// Errors of the cache. A failure to write the storage is a warning: the program was compiled.
    pub fn keep(&self, created: &Py<PyAny>, code: &ObjectCode) -> PyResult<()> {
        let py = self.cache.py();
        if self.current_key()? != self.key {
            return Ok(());
        }
        let mut kept = self
            .cache
            .set_item(PyBytes::new(py, &self.key), created.bind(py));
        if kept.is_ok() && self.has_symbols() {
            let mut order: Vec<usize> = (0..self.given.len()).collect();
            order.sort_by_key(|at| &self.expressions[*at]);
            let mut names = String::new();
            for at in order {
                let expression = crate::core::module::program::expression(&self.given[at])?;
                names.push_str(code.lowered_name(&expression).unwrap_or_default());
                names.push('\n');
            }
            let key = self.symbols_key();
            kept = self
                .cache
                .set_item(PyBytes::new(py, &key), PyBytes::new(py, names.as_bytes()));
        }
        match kept {
            Err(error) if error.is_instance_of::<PyOSError>(py) => {
                let text =
                    format!("the compiled program could not be stored in the cache: {error}\0");
                let text = std::ffi::CStr::from_bytes_until_nul(text.as_bytes()).unwrap_or(c"?");
                PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), text, 1)
            }
            other => other,
        }
    }
}

//! Program caches and cache keys.

use std::borrow::Cow;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cupyrite::cache::{
    CompileLock, EntryName, Expression, FileCache, KeyRequest, MemoryCache, PathError, ProgramCache,
};
use cupyrite::{CodeKind, CodeSource, ObjectCode, SourceKind};
use pyo3::exceptions::{PyOSError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::core::errors::OrRaise;
use crate::core::module::object_code;
use crate::core::module::program::options;
use crate::core::module::program::options::bytes_of;
use crate::core::module::program::{OPTIONS, kind_of, lower, source_kind, targets};
use crate::core::numbers;
use crate::core::wait;
use crate::site_packages;

/// Adds the cache storages and the key function.
///
/// # Errors
///
/// Python errors.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<CacheStorage>()?;
    core.add_class::<StorageLock>()?;
    core.add_function(wrap_pyfunction!(memory_cache, core)?)?;
    core.add_function(wrap_pyfunction!(file_cache, core)?)?;
    core.add_function(wrap_pyfunction!(cache_entry_name, core)?)?;
    core.add_function(wrap_pyfunction!(seal_cache_entry, core)?)?;
    core.add_function(wrap_pyfunction!(unseal_cache_entry, core)?)?;
    core.add_function(wrap_pyfunction!(lock_timeout_seconds, core)?)?;
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

/// Calls `use_bytes` with the bytes of a cache value.
///
/// # Errors
///
/// `TypeError` for other values than an `ObjectCode` or a bytes-like object; the `OSError` of a file that cannot be read.
fn with_value<T>(value: &Bound<'_, PyAny>, use_bytes: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    if let Some(code) = object_code::borrow(value) {
        Ok(use_bytes(&bytes_of_code(code)?))
    } else if let Some(bytes) = buffer_of(value)? {
        Ok(use_bytes(bytes.as_bytes()))
    } else {
        Err(PyTypeError::new_err(format!(
            "program cache value must be an ObjectCode or a bytes-like object, not {}",
            value.get_type().name()?
        )))
    }
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
        with_value(value, |bytes| py.detach(|| self.cache.put(&key, bytes)))?
            .map_err(|error| os_error(&error))
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

    /// The lock for the compilation of the program with this key, and the seconds to wait for it.
    fn compile_lock(
        &self,
        key: &Bound<'_, PyAny>,
        lock_timeout: &Bound<'_, PyAny>,
    ) -> PyResult<StorageLock> {
        Ok(StorageLock {
            cache: self.cache.clone(),
            key: key_of(key)?,
            timeout: timeout_of(lock_timeout)?,
            held: Mutex::new(None),
        })
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

/// Context manager that `compile_lock` of the cache classes of `cuda.core.utils` returns.
#[pyclass(frozen, module = "cupyrite._native.core")]
pub struct StorageLock {
    cache: Arc<dyn ProgramCache>,
    key: Vec<u8>,
    timeout: Duration,
    held: Mutex<Option<CompileLock>>,
}

impl StorageLock {
    fn replace(&self, lock: Option<CompileLock>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = lock;
    }
}

#[pymethods]
impl StorageLock {
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let lock = wait::for_lock(py, |cancelled| {
            self.cache.compile_lock(&self.key, self.timeout, cancelled)
        })?;
        self.replace(Some(lock));
        Ok(())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.replace(None);
    }

    /// Takes back the miss of the lookup before the lock.
    fn _uncount_miss(&self) {
        self.cache.uncount_miss();
    }
}

/// Converts `lock_timeout`, a number of seconds.
fn timeout_of(lock_timeout: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let expected = "expected a number of seconds, 0 or more";
    let Ok(seconds) = lock_timeout.extract::<f64>() else {
        return Err(PyTypeError::new_err(format!(
            "lock_timeout is {}; {expected}",
            lock_timeout.repr()?
        )));
    };
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("lock_timeout is {seconds}; {expected}")))
}

/// Checks the `lock_timeout` of a cache; returns it as a float.
#[pyfunction]
fn lock_timeout_seconds(lock_timeout: &Bound<'_, PyAny>) -> PyResult<f64> {
    timeout_of(lock_timeout).map(|timeout| timeout.as_secs_f64())
}

/// The name of the entry of a key: 64 hexadecimal digits.
#[pyfunction]
fn cache_entry_name(key: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(EntryName::of(&key_of(key)?).digits().to_owned())
}

/// The entry to store for a value: its bytes, and a line with a checksum.
#[pyfunction]
fn seal_cache_entry<'py>(
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let name = EntryName::of(&key_of(key)?);
    let entry = with_value(value, |code| name.seal(code))?;
    Ok(PyBytes::new(key.py(), &entry))
}

/// The bytes of a stored entry; None if the entry is damaged.
#[pyfunction]
fn unseal_cache_entry<'py>(
    key: &Bound<'py, PyAny>,
    entry: &Bound<'py, PyBytes>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let name = EntryName::of(&key_of(key)?);
    let code = name.unseal(entry.as_bytes().to_vec());
    Ok(code.map(|code| PyBytes::new(key.py(), &code)))
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

/// Converts an `OSError` of a cache to a warning: the program can be compiled without its cache.
///
/// # Errors
///
/// Other exceptions, and the warning if a filter turns it into an exception.
fn warn_of_os_error(py: Python<'_>, what: &str, error: PyErr) -> PyResult<()> {
    if !error.is_instance_of::<PyOSError>(py) {
        return Err(error);
    }
    let text = format!("{what}: {error}\0");
    let text = std::ffi::CStr::from_bytes_until_nul(text.as_bytes()).unwrap_or(c"?");
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), text, 1)
}

const NOT_READ: &str =
    "the program cache could not be read, and the program was compiled without it";
const NOT_STORED: &str = "the compiled program could not be stored in the cache";

/// What a compilation creates: an `ObjectCode` object, and the code itself.
pub type Compiled = (Py<PyAny>, ObjectCode);

/// A cache access of `Program.compile`.
pub struct CacheAccess<'a, 'py> {
    cache: &'a Bound<'py, PyAny>,
    /// `ProgramCacheResource`.
    base: Bound<'py, PyAny>,
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
            base: class,
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

    /// Finds the compiled code, or compiles and stores it. Returns the code itself only if it was compiled.
    ///
    /// # Errors
    ///
    /// Errors of the compilation, and those of the cache that are not an `OSError`.
    pub fn find_or_compile(
        &self,
        compile: impl FnOnce() -> PyResult<Compiled>,
    ) -> PyResult<(Py<PyAny>, Option<ObjectCode>)> {
        match self.find() {
            Ok(Some(found)) => return Ok((found, None)),
            Ok(None) => {}
            Err(error) => return self.compile_without(error, compile),
        }
        let Some(lock) = self.compile_lock()? else {
            return self.compile_and_keep(compile);
        };
        if let Err(error) = lock.call_method0(intern!(lock.py(), "__enter__")) {
            return self.compile_without(error, compile);
        }
        let done = self.find_again_or_compile(&lock, compile);
        self.leave(&lock, done)
    }

    /// Compiles without the cache, after an error of its storage.
    fn compile_without(
        &self,
        error: PyErr,
        compile: impl FnOnce() -> PyResult<Compiled>,
    ) -> PyResult<(Py<PyAny>, Option<ObjectCode>)> {
        warn_of_os_error(self.cache.py(), NOT_READ, error)?;
        let (created, code) = compile()?;
        Ok((created, Some(code)))
    }

    fn compile_and_keep(
        &self,
        compile: impl FnOnce() -> PyResult<Compiled>,
    ) -> PyResult<(Py<PyAny>, Option<ObjectCode>)> {
        let (created, code) = compile()?;
        self.keep(&created, &code)?;
        Ok((created, Some(code)))
    }

    /// The cache's lock for this compilation; `None` if its class does not override that of `ProgramCacheResource`.
    fn compile_lock(&self) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = self.cache.py();
        let name = intern!(py, "compile_lock");
        let class = self.cache.get_type();
        match class.getattr_opt(name)? {
            Some(method) if !method.is(&self.base.getattr(name)?) => self
                .cache
                .call_method1(name, (PyBytes::new(py, &self.key),))
                .map(Some),
            _ => Ok(None),
        }
    }

    /// With the lock: looks up again what another thread or process may have stored meanwhile.
    fn find_again_or_compile(
        &self,
        lock: &Bound<'py, PyAny>,
        compile: impl FnOnce() -> PyResult<Compiled>,
    ) -> PyResult<(Py<PyAny>, Option<ObjectCode>)> {
        let found = match self.find() {
            Ok(found) => found,
            Err(error) => return self.compile_without(error, compile),
        };
        let uncount = intern!(lock.py(), "_uncount_miss");
        if let Some(uncount) = lock.getattr_opt(uncount)? {
            uncount.call0()?;
        }
        match found {
            Some(found) => Ok((found, None)),
            None => self.compile_and_keep(compile),
        }
    }

    /// Releases the lock.
    fn leave<T>(&self, lock: &Bound<'py, PyAny>, done: PyResult<T>) -> PyResult<T> {
        let py = lock.py();
        let name = intern!(py, "__exit__");
        match done {
            Ok(value) => match lock.call_method1(name, (py.None(), py.None(), py.None())) {
                Ok(_) => Ok(value),
                Err(error) => warn_of_os_error(py, NOT_STORED, error).map(|()| value),
            },
            Err(error) => {
                let raised = (
                    error.get_type(py),
                    error.value(py).clone(),
                    error.traceback(py),
                );
                // The first error is the reason.
                let _ = lock.call_method1(name, raised);
                Err(error)
            }
        }
    }

    /// Looks up the compiled code.
    ///
    /// # Errors
    ///
    /// Errors of the cache.
    fn find(&self) -> PyResult<Option<Py<PyAny>>> {
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
    fn keep(&self, created: &Py<PyAny>, code: &ObjectCode) -> PyResult<()> {
        let py = self.cache.py();
        if self.current_key()? != self.key {
            return Ok(());
        }
        let store = || {
            // The names first: who finds the code finds its names.
            if self.has_symbols() {
                let mut order: Vec<usize> = (0..self.given.len()).collect();
                order.sort_by_key(|at| &self.expressions[*at]);
                let mut names = String::new();
                for at in order {
                    let expression = crate::core::module::program::expression(&self.given[at])?;
                    names.push_str(code.lowered_name(&expression).unwrap_or_default());
                    names.push('\n');
                }
                let key = PyBytes::new(py, &self.symbols_key());
                self.cache
                    .set_item(key, PyBytes::new(py, names.as_bytes()))?;
            }
            let key = PyBytes::new(py, &self.key);
            self.cache.set_item(key, created.bind(py))
        };
        match store() {
            Err(error) => warn_of_os_error(py, NOT_STORED, error),
            Ok(()) => Ok(()),
        }
    }
}

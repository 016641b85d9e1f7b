//! Reading of `ProgramOptions`.

use cupyrite::{CodeKind, ProgramOptions};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyList, PyString, PyTuple};

use crate::core::errors::OrRaise;
use crate::core::module::program::{kind_of, lower};

/// Reads the fields of an instance.
struct Fields<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .name()
        .map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

fn invalid(field: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let displayed = value.repr().map_or_else(
        |_| format!("of type {}", type_name(value)),
        |displayed| {
            let displayed = displayed.to_string_lossy().into_owned();
            // Sources and lists may be long; the beginning identifies the error.
            match displayed.char_indices().nth(120) {
                Some((end, _)) => format!("{}...", &displayed[..end]),
                None => displayed,
            }
        },
    );
    PyTypeError::new_err(format!(
        "ProgramOptions.{field} is {displayed}; expected {expected}"
    ))
}

/// Whether a value is this bool.
fn is(value: &Bound<'_, PyAny>, truth: bool) -> bool {
    value
        .cast::<PyBool>()
        .is_ok_and(|given| given.is_true() == truth)
}

/// Converts a str or a path.
fn text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(text.to_str()?.to_owned()));
    }
    if value.hasattr(intern!(value.py(), "__fspath__"))? {
        let path = value.call_method0(intern!(value.py(), "__fspath__"))?;
        if let Ok(text) = path.cast::<PyString>() {
            return Ok(Some(text.to_str()?.to_owned()));
        }
    }
    Ok(None)
}

/// Items of a list or tuple.
fn items<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = value.cast::<PyList>() {
        Some(list.iter().collect())
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        Some(tuple.iter().collect())
    } else {
        None
    }
}

/// Converts an int or its decimal digits.
fn number(field: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let expected = "an integer from 0 to 4294967295";
    if value.is_instance_of::<pyo3::types::PyBool>() {
        return Err(invalid(field, value, expected));
    }
    let found = if let Ok(digits) = value.cast::<PyString>() {
        digits.to_str()?.trim().parse::<i64>().ok()
    } else {
        match value.extract::<i64>() {
            Ok(number) => Some(number),
            Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
                return Err(invalid(field, value, expected));
            }
            Err(_) => None,
        }
    };
    match found.map(u32::try_from) {
        Some(Ok(number)) => Ok(number),
        _ => Err(PyValueError::new_err(format!(
            "ProgramOptions.{field} is {}; expected {expected}",
            value.str()?
        ))),
    }
}

impl<'py> Fields<'_, 'py> {
    fn value(&self, field: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self
            .object
            .getattr(PyString::intern(self.object.py(), field))?;
        Ok((!value.is_none()).then_some(value))
    }

    fn flag(&self, field: &str) -> PyResult<Option<bool>> {
        self.value(field)?
            .map(|value| value.is_truthy())
            .transpose()
    }

    fn text(&self, field: &str) -> PyResult<Option<String>> {
        let Some(value) = self.value(field)? else {
            return Ok(None);
        };
        match text(&value)? {
            Some(text) => Ok(Some(text)),
            None => Err(invalid(field, &value, "a str or None")),
        }
    }

    /// Reads the name of a file or folder; False requests nothing.
    fn path(&self, field: &str) -> PyResult<Option<String>> {
        match self.value(field)? {
            Some(value) if is(&value, false) => Ok(None),
            _ => self.text(field),
        }
    }

    /// Reads `time`. True is a file of that name, as in NVIDIA's cuda.core.
    fn time(&self, field: &str) -> PyResult<Option<String>> {
        match self.value(field)? {
            Some(value) if is(&value, true) => Ok(Some("True".to_owned())),
            _ => self.path(field),
        }
    }

    /// Reads names of files or folders: one, or any sequence of them; False requests nothing.
    fn paths(&self, field: &str) -> PyResult<Vec<String>> {
        let Some(value) = self.value(field)?.filter(|value| !is(value, false)) else {
            return Ok(Vec::new());
        };
        if let Some(text) = text(&value)? {
            return Ok(vec![text]);
        }
        let expected = "a str or a path, a sequence of these, or None";
        let is_bytes = value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>();
        // SAFETY: a live object.
        if is_bytes || unsafe { ffi::PySequence_Check(value.as_ptr()) } == 0 {
            return Err(invalid(field, &value, expected));
        }
        value
            .try_iter()?
            .map(|item| text(&item?)?.ok_or_else(|| invalid(field, &value, expected)))
            .collect()
    }

    /// Reads a str; an int is converted to its digits.
    fn text_or_number(&self, field: &str) -> PyResult<Option<String>> {
        match self.value(field)? {
            Some(value) if text(&value)?.is_none() => Ok(Some(number(field, &value)?.to_string())),
            _ => self.text(field),
        }
    }

    fn number(&self, field: &str) -> PyResult<Option<u32>> {
        self.value(field)?
            .map(|value| number(field, &value))
            .transpose()
    }

    fn texts(&self, field: &str) -> PyResult<Vec<String>> {
        let Some(value) = self.value(field)? else {
            return Ok(Vec::new());
        };
        if let Some(text) = text(&value)? {
            return Ok(vec![text]);
        }
        let expected = "a str, a list or tuple of str, or None";
        let Some(items) = items(&value) else {
            return Err(invalid(field, &value, expected));
        };
        items
            .iter()
            .map(|item| text(item)?.ok_or_else(|| invalid(field, &value, expected)))
            .collect()
    }

    fn numbers(&self, field: &str) -> PyResult<Vec<u32>> {
        let Some(value) = self.value(field)? else {
            return Ok(Vec::new());
        };
        match items(&value) {
            Some(items) => items.iter().map(|item| number(field, item)).collect(),
            None => Ok(vec![number(field, &value)?]),
        }
    }

    /// Reads macros: a str, a (name, value) tuple, or a list of these. A tuple is never a list: `("A", "B")` would then
    /// define other macros than `("A", "B", "C")`.
    fn macros(&self, field: &str) -> PyResult<Vec<String>> {
        let Some(value) = self.value(field)? else {
            return Ok(Vec::new());
        };
        let one = |item: &Bound<'py, PyAny>| -> PyResult<Option<String>> {
            if let Ok(text) = item.cast::<PyString>() {
                return Ok(Some(text.to_str()?.to_owned()));
            }
            let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
            let Some(pair) = pair else {
                return Ok(None);
            };
            let (name, content) = (pair.get_item(0)?, pair.get_item(1)?);
            match (name.cast::<PyString>(), content.cast::<PyString>()) {
                (Ok(name), Ok(content)) => {
                    Ok(Some(format!("{}={}", name.to_str()?, content.to_str()?)))
                }
                _ => Ok(None),
            }
        };
        // A RuntimeError, as in NVIDIA's cuda.core.
        let error = || {
            let displayed = value
                .repr()
                .map_or_else(|_| type_name(&value), |displayed| displayed.to_string());
            PyRuntimeError::new_err(format!(
                "ProgramOptions.{field} is {displayed}; expected a str (NAME or NAME=value), a tuple (name, value) of two \
                 str, or a non-empty list of these"
            ))
        };
        if let Some(one) = one(&value)? {
            return Ok(vec![one]);
        }
        let items = value.cast::<PyList>().ok().filter(|list| !list.is_empty());
        items
            .ok_or_else(error)?
            .iter()
            .map(|item| one(&item)?.ok_or_else(error))
            .collect()
    }

    /// Reads named NVVM IR modules.
    fn sources(&self, field: &str) -> PyResult<Vec<(String, Vec<u8>)>> {
        let Some(value) = self.value(field)? else {
            return Ok(Vec::new());
        };
        let expected =
            "a list or tuple of tuples (name, source) with a str and a str, bytes or bytearray";
        let items = items(&value).ok_or_else(|| invalid(field, &value, expected))?;
        let mut sources = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = format!("{field}[{index}]");
            let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
            let pair = pair.ok_or_else(|| invalid(&at, item, "a tuple (name, source)"))?;
            let (name, source) = (pair.get_item(0)?, pair.get_item(1)?);
            let Ok(name) = name.cast::<PyString>() else {
                return Err(invalid(
                    &format!("{at}[0]"),
                    &name,
                    "the module's name, a str",
                ));
            };
            let Some(bytes) = bytes_of(&source)? else {
                let expected = "NVVM IR as text (str or bytes) or bitcode (bytes or bytearray)";
                return Err(invalid(&format!("{at}[1]"), &source, expected));
            };
            if bytes.is_empty() {
                let name = name.to_str()?;
                let message = format!("ProgramOptions.{at}: the source of {name:?} is empty");
                return Err(PyValueError::new_err(message));
            }
            sources.push((name.to_str()?.to_owned(), bytes));
        }
        Ok(sources)
    }
}

/// Bytes of a str (UTF-8), bytes or bytearray.
pub fn bytes_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(text.to_str()?.as_bytes().to_vec()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    Ok(value.cast::<PyByteArray>().ok().map(|bytes| bytes.to_vec()))
}

/// Converts an instance of `ProgramOptions`. `macros` selects whether `define_macro` is read, whose errors are raised
/// on use.
///
/// # Errors
///
/// `TypeError` and `ValueError` that name the field, `RuntimeError` for `define_macro`.
pub fn read(object: &Bound<'_, PyAny>, macros: bool) -> PyResult<ProgramOptions> {
    let f = Fields { object };
    Ok(ProgramOptions {
        name: f.text("name")?,
        arch: f.text("arch")?,
        relocatable_device_code: f.flag("relocatable_device_code")?,
        extensible_whole_program: f.flag("extensible_whole_program")?,
        debug: f.flag("debug")?,
        lineinfo: f.flag("lineinfo")?,
        device_code_optimize: f.flag("device_code_optimize")?,
        ptxas_options: f.texts("ptxas_options")?,
        max_register_count: f.number("max_register_count")?,
        ftz: f.flag("ftz")?,
        prec_sqrt: f.flag("prec_sqrt")?,
        prec_div: f.flag("prec_div")?,
        fma: f.flag("fma")?,
        use_fast_math: f.flag("use_fast_math")?,
        extra_device_vectorization: f.flag("extra_device_vectorization")?,
        link_time_optimization: f.flag("link_time_optimization")?,
        gen_opt_lto: f.flag("gen_opt_lto")?,
        define_macro: if macros {
            f.macros("define_macro")?
        } else {
            Vec::new()
        },
        undefine_macro: f.texts("undefine_macro")?,
        include_path: f.paths("include_path")?,
        use_bundled_headers: f.flag("use_bundled_headers")?,
        pre_include: f.paths("pre_include")?,
        no_source_include: f.flag("no_source_include")?,
        std: f.text("std")?,
        builtin_move_forward: f.flag("builtin_move_forward")?,
        builtin_initializer_list: f.flag("builtin_initializer_list")?,
        disable_warnings: f.flag("disable_warnings")?,
        restrict: f.flag("restrict")?,
        device_as_default_execution_space: f.flag("device_as_default_execution_space")?,
        device_int128: f.flag("device_int128")?,
        optimization_info: f.text("optimization_info")?,
        no_display_error_number: f.flag("no_display_error_number")?,
        diag_error: f.numbers("diag_error")?,
        diag_suppress: f.numbers("diag_suppress")?,
        diag_warn: f.numbers("diag_warn")?,
        brief_diagnostics: f.flag("brief_diagnostics")?,
        time: f.time("time")?,
        split_compile: f.number("split_compile")?,
        fdevice_syntax_only: f.flag("fdevice_syntax_only")?,
        minimal: f.flag("minimal")?,
        no_cache: f.flag("no_cache")?,
        fdevice_time_trace: f.path("fdevice_time_trace")?,
        device_float128: f.flag("device_float128")?,
        frandom_seed: f.text_or_number("frandom_seed")?,
        ofast_compile: f.text_or_number("ofast_compile")?,
        pch: f.flag("pch")?,
        create_pch: f.path("create_pch")?,
        use_pch: f.path("use_pch")?,
        pch_dir: f.path("pch_dir")?,
        pch_verbose: f.flag("pch_verbose")?,
        pch_messages: f.flag("pch_messages")?,
        instantiate_templates_in_pch: f.flag("instantiate_templates_in_pch")?,
        extra_sources: f.sources("extra_sources")?,
        use_libdevice: f.flag("use_libdevice")?,
        numba_debug: f.flag("numba_debug")?,
    })
}

/// Implements `ProgramOptions.__post_init__`: sets computed defaults and checks every field.
#[pyfunction]
pub fn prepare_program_options(options: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = options.py();
    let name = options.getattr(intern!(py, "name"))?;
    if name.is_none() {
        options.setattr(intern!(py, "name"), intern!(py, "default_program"))?;
    } else if !name.is_instance_of::<PyString>() {
        return Err(invalid("name", &name, "a str or None"));
    }
    if options.getattr(intern!(py, "arch"))?.is_none() {
        let arch = py.detach(cupyrite::default_arch).or_raise(py)?;
        options.setattr(intern!(py, "arch"), arch)?;
    }
    read(options, false).map(drop)
}

/// Implements `ProgramOptions.as_bytes`.
#[pyfunction]
#[pyo3(signature = (options, backend, target_type=None))]
pub fn program_options_as_bytes<'py>(
    options: &Bound<'py, PyAny>,
    backend: &Bound<'py, PyAny>,
    target_type: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = options.py();
    let backend_name = lower(backend)?;
    let read = |options| read(options, true);
    let spelled = match backend_name.as_str() {
        "nvrtc" => read(options)?.for_nvrtc().or_raise(py)?,
        "nvvm" => {
            // Options that libNVVM does not support are reported before other errors.
            let target = target_type.map(kind_of).transpose()?.flatten();
            let target = target.unwrap_or(CodeKind::Ptx);
            read(options)?.for_nvvm(target).or_raise(py)?
        }
        _ => {
            return Err(PyValueError::new_err(format!(
                "as_bytes() argument 'backend' is {}; expected 'nvrtc' or 'nvvm'",
                backend.repr()?
            )));
        }
    };
    PyList::new(
        py,
        spelled.iter().map(|text| PyBytes::new(py, text.as_bytes())),
    )
}

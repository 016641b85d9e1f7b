//! A parameter of a kernel as its argument is checked against it, and the errors that name the two.

use cupyrite::{FREED, ParamInfo, ParamKind};
use pyo3::ffi;

use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::core::launch::pins::Hold;
use crate::core::memory::buffer::PyBuffer;
use crate::cpython;
use crate::cpython::internals::scalar_values;
use crate::cpython::internals::scalar_values::NumberKind;
use crate::cpython::{Obj, Owned, R, Raised};

/// Purpose of the arguments.
pub struct Target<'a> {
    /// Python function or class, for messages.
    pub function: &'static str,
    /// Kernel, for messages.
    pub kernel: Option<&'a cupyrite::Kernel>,
    /// The kernel's parameters, if the driver reports them.
    pub params: Option<&'a [ParamInfo]>,
    /// Owner of the buffer pins.
    pub hold: Hold<'a>,
}

/// The parameter that an argument is for.
#[derive(Clone, Copy)]
pub struct Parameter<'a> {
    /// Position, counted from 0.
    pub index: usize,
    /// Size of the parameter in bytes, or `UNKNOWN`.
    pub size: usize,
    /// What the parameter accepts.
    pub kind: ParamKind,
    /// Purpose of the arguments.
    pub target: &'a Target<'a>,
}

/// Size of a parameter that the driver does not report.
pub const UNKNOWN: usize = usize::MAX;

impl Parameter<'_> {
    /// Prefix of messages: the argument.
    #[cold]
    pub fn argument(self) -> String {
        format!(
            "{}(): kernel argument {} (counted from 0)",
            self.target.function, self.index
        )
    }

    /// Description of the parameter in messages.
    #[cold]
    pub fn description(self) -> String {
        let size = match self.size {
            1 => " of 1 byte".to_owned(),
            UNKNOWN => String::new(),
            size => format!(" of {size} bytes"),
        };
        match self.target.kernel {
            Some(kernel) => format!(
                "parameter {} of kernel '{}'{size}",
                self.index,
                kernel.name()
            ),
            None => format!("parameter {}{size}", self.index),
        }
    }

    /// Raises if the value's size differs from the parameter's, or if its number is of another kind.
    pub fn check(self, size: usize, number: NumberKind, value: Obj<'_>) -> R<()> {
        if !is_size(size, self.size) {
            return Err(size_mismatch(value, size, self));
        }
        if number.is_refused_by(self.kind) {
            return Err(kind_mismatch(value, self));
        }
        Ok(())
    }
}

/// Whether a value of `size` bytes has the size of its parameter.
#[inline(always)]
pub fn is_size(size: usize, expected: usize) -> bool {
    size == expected || expected == UNKNOWN
}

#[cold]
pub fn overflow(value: Obj<'_>, parameter: Parameter<'_>) -> Raised {
    let message = format!(
        "{} is {}, which does not fit in {}",
        parameter.argument(),
        int_text(value),
        if parameter.size == UNKNOWN {
            "8 bytes".to_owned()
        } else {
            parameter.description()
        }
    );
    errors::raise(ExceptionKind::Overflow, &message)
}

/// Text of an integer; large integers are abbreviated.
#[cold]
pub fn int_text(value: Obj<'_>) -> String {
    // SAFETY: live; a failure (too many digits) is replaced.
    match Owned::take(unsafe { ffi::PyObject_Str(value.ptr()) }) {
        Ok(text) => {
            let text = text.obj().text().unwrap_or_default();
            if text.len() <= 40 {
                format!("the int {text}")
            } else {
                "an int of more than 40 digits".to_owned()
            }
        }
        Err(Raised) => {
            cpython::clear();
            "a very large int".to_owned()
        }
    }
}

#[cold]
pub fn count_mismatch(given: usize, params: &[ParamInfo], target: &Target<'_>) -> Raised {
    let sizes: Vec<String> = params.iter().map(|p| p.size.to_string()).collect();
    let wants = match sizes.as_slice() {
        [] => "takes no arguments".to_owned(),
        [size] => format!("takes 1 argument, of {size} bytes"),
        [sizes @ .., last] => format!(
            "takes {} arguments, of {} and {last} bytes",
            params.len(),
            sizes.join(", ")
        ),
    };
    let message = format!(
        "{}(): kernel '{}' {wants}; {given} {} given",
        target.function,
        target.kernel.map_or("?", cupyrite::Kernel::name),
        if given == 1 { "was" } else { "were" }
    );
    errors::raise(ExceptionKind::Type, &message)
}

#[cold]
pub fn size_mismatch(value: Obj<'_>, size: usize, parameter: Parameter<'_>) -> Raised {
    let is = |ty: *mut ffi::PyTypeObject| value.instance_of_type(ty);
    let hint = if is(&raw mut ffi::PyFloat_Type) && scalar_values::exact(value.ty()).is_none() {
        match parameter.size {
            2 => "; a Python float is a double: pass numpy.float16(x) for a half",
            4 => {
                "; a Python float is a double: pass numpy.float32(x) or ctypes.c_float(x) for a float"
            }
            _ => "",
        }
    } else if is(&raw mut ffi::PyComplex_Type)
        && scalar_values::exact(value.ty()).is_none()
        && parameter.size == 8
    {
        "; a Python complex is two doubles: pass numpy.complex64(x) for two floats"
    } else {
        ""
    };
    let plural = if size == 1 { "" } else { "s" };
    let message = format!(
        "{} is of type {} and has {size} byte{plural}, but goes to {}{hint}",
        parameter.argument(),
        full_name(value),
        parameter.description()
    );
    errors::raise(ExceptionKind::Type, &message)
}

/// The error for an integer that goes to a floating point parameter, and the reverse.
#[cold]
pub fn kind_mismatch(value: Obj<'_>, parameter: Parameter<'_>) -> Raised {
    let (c_type, pass) = match (parameter.kind, parameter.size) {
        (ParamKind::Float, 4) => ("float", "numpy.float32(x)"),
        (ParamKind::Float, _) => ("double", "float(x) or numpy.float64(x)"),
        (_, 4) => ("32-bit integer", "int(x) or numpy.int32(x)"),
        (_, 8) => (
            "64-bit integer or an address",
            "an int, numpy.int64(x) or device memory",
        ),
        _ => ("integer", "an int"),
    };
    let message = format!(
        "{} is of type {}, but {} is a {c_type}: pass {pass}",
        parameter.argument(),
        full_name(value),
        parameter.description()
    );
    errors::raise(ExceptionKind::Type, &message)
}

#[cold]
pub fn closed(what: &str, parameter: Parameter<'_>) -> Raised {
    let message = format!("{} is a closed {what}", parameter.argument());
    errors::raise(ExceptionKind::Runtime, &message)
}

/// The error for a buffer that was closed, or whose memory the program has freed.
#[cold]
pub fn closed_buffer(buffer: &PyBuffer, parameter: Parameter<'_>) -> Raised {
    if buffer.is_freed_by_program() {
        let message = format!("{} is a closed Buffer: {FREED}", parameter.argument());
        return errors::raise(ExceptionKind::Runtime, &message);
    }
    closed("Buffer", parameter)
}

/// The error for a texture or surface whose handle no longer exists.
#[cold]
pub fn destroyed(what: &str, is_closed: bool, parameter: Parameter<'_>) -> Raised {
    if is_closed {
        return closed(what, parameter);
    }
    let message = format!(
        "{} is a {what} that was destroyed by the program, by its handle or with its context",
        parameter.argument()
    );
    errors::raise(ExceptionKind::Runtime, &message)
}

#[cold]
pub fn unsupported_type(value: Obj<'_>, parameter: Parameter<'_>) -> Raised {
    let message = if value.is_none() {
        format!(
            "{} is None; pass 0 for a null pointer",
            parameter.argument()
        )
    } else {
        format!(
            "{} is of type {}; expected a Python, NumPy or ctypes number, a NumPy or ctypes structure, a buffer or other \
             device memory, an address as int, or a handle",
            parameter.argument(),
            full_name(value)
        )
    };
    errors::raise(ExceptionKind::Type, &message)
}

/// Qualified type name, as in `numpy.float64`.
#[cold]
pub fn full_name(value: Obj<'_>) -> String {
    let name = value.type_name();
    // SAFETY: the type of a live object is live.
    let class = unsafe { Obj::new(value.ty().cast()) };
    let module = match class.attribute(c"__module__") {
        Ok(module) => module.and_then(|m| m.obj().text()).unwrap_or_default(),
        Err(Raised) => {
            cpython::clear();
            String::new()
        }
    };
    match module.as_str() {
        "" | "builtins" | "__main__" => name,
        _ => format!("{module}.{name}"),
    }
}

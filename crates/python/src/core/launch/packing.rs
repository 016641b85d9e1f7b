//! Conversion of the arguments of `cuda.core.launch` to kernel parameters.
//!
//! The type of a value determines its bytes: a Python `int` is an integer or an address of the parameter's size, a
//! `float` a double, a NumPy or ctypes value its own bytes, device memory its address. If the driver reports the
//! kernel's parameters, number and sizes are checked before anything is queued; and if the kernel's PTX is at hand, so is
//! whether an integer or a floating point number is expected.
//!
//! Programs pass hundreds of arguments, often runs of the same type: a type is classified once for each run.

use std::ffi::c_void;

use cupyrite::ParamKind;
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::bindings::call::convert::Objects;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::kernel_parameters::{Packer, Parameters, value};
use crate::core::graph::condition::PyGraphCondition;
use crate::core::launch::arrays;
use crate::core::launch::parameter::{
    Parameter, Target, UNKNOWN, closed_buffer, count_mismatch, destroyed, full_name, int_text,
    is_size, kind_mismatch, overflow, size_mismatch, unsupported_type,
};
use crate::core::launch::pins::{Args, Hold, bound};
use crate::core::memory::buffer::PyBuffer;
use crate::core::tensor_map::PyTensorMap;
use crate::core::texture::object::{PySurfaceObject, PyTextureObject};
use crate::cpython;
use crate::cpython::internals::scalar_values;
use crate::cpython::internals::scalar_values::{HEAD, NumberKind, ScalarBytes};
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::types;

/// Packs the arguments and returns the array of their addresses as taken by `cuLaunchKernel`; null for no arguments.
///
/// The bytes may lie in the argument objects and in those added to `keep`, which the caller keeps alive during the call.
///
/// # Errors
///
/// `TypeError` for a wrong number of arguments, a size that differs from the parameter's, an integer for a floating point
/// number and the reverse, and unsupported types;
/// `OverflowError` for an integer that does not fit its parameter; `RuntimeError` for a closed buffer. The message names
/// the position.
#[inline]
pub fn pack(
    packer: &mut Packer,
    args: Args<'_>,
    target: &Target<'_>,
    keep: &mut Objects,
) -> R<*mut *mut c_void> {
    let count = args.len();
    if let Some(params) = target.params
        && params.len() != count
    {
        return Err(count_mismatch(count, params, target));
    }
    if count == 0 {
        return Ok(std::ptr::null_mut());
    }
    let mut parameters = packer.begin(count)?;
    let mut index = 0;
    while index < count {
        index = pack_run(&mut parameters, args, index, target, keep)?;
    }
    Ok(parameters.pointers())
}

/// Whether all arguments are plain numbers, which keep nothing alive.
pub fn are_numbers(args: Args<'_>) -> bool {
    (0..args.len()).all(|index| {
        let value = args.get(index);
        value.is_exact_int()
            || value.is_exact_float()
            || matches!(
                scalar_values::exact(value.ty()),
                Some(ScalarBytes::Inside(_))
            )
    })
}

/// Packs the arguments from `start` on that have the same type; returns the index of the next one.
#[inline(always)]
fn pack_run(
    parameters: &mut Parameters<'_>,
    args: Args<'_>,
    start: usize,
    target: &Target<'_>,
    keep: &mut Objects,
) -> R<usize> {
    let params = target.params.unwrap_or_default();
    let size_of = |index: usize| params.get(index).map_or(UNKNOWN, |param| param.size);
    let kind_of = |index: usize| params.get(index).map_or(ParamKind::Any, |param| param.kind);
    // Only the less common conversions need it in memory.
    let parameter = |index| Parameter {
        index,
        size: size_of(index),
        kind: kind_of(index),
        target,
    };
    // Each index is that of a parameter, and its value has the type of the run: the safety conditions below.
    match ArgumentKind::of(args.get(start)) {
        ArgumentKind::Int => args.run(start, |index, value| {
            let word = match fitting_integer(value, size_of(index)) {
                Some(_) if NumberKind::Integer.is_refused_by(kind_of(index)) => {
                    return Err(kind_mismatch(value, parameter(index)));
                }
                Some(word) => word,
                None => integer(value, parameter(index))?,
            };
            // SAFETY: the index of a parameter, and a value of the run's type.
            unsafe { parameters.set_word(index, word) };
            Ok(())
        }),
        ArgumentKind::Scalar(bytes, number) => args.run(start, |index, value| {
            if !is_size(bytes.size(), size_of(index)) {
                return Err(size_mismatch(value, bytes.size(), parameter(index)));
            }
            if number.is_refused_by(kind_of(index)) {
                return Err(kind_mismatch(value, parameter(index)));
            }
            // SAFETY: the index of a parameter, and a value of the run's type.
            unsafe { scalar(parameters, index, value, bytes) }
        }),
        ArgumentKind::Buffer => args.run(start, |index, value| {
            // SAFETY: the index of a parameter, and a value of the run's type.
            let buffer = unsafe { bound(value).cast_unchecked::<PyBuffer>() };
            let address = match target.hold {
                Hold::Launch(pins) => pins.hold(buffer.get())?,
                Hold::Kept(kept) => kept.hold(buffer.get(), index)?,
            };
            let Some(address) = address else {
                return Err(closed_buffer(buffer.get(), parameter(index)));
            };
            if !is_size(8, size_of(index)) {
                return Err(size_mismatch(value, 8, parameter(index)));
            }
            if NumberKind::Integer.is_refused_by(kind_of(index)) {
                return Err(kind_mismatch(value, parameter(index)));
            }
            // SAFETY: the index of a parameter, and a value of the run's type.
            unsafe { parameters.set_word(index, address) };
            Ok(())
        }),
        ArgumentKind::Float => args.run(start, |index, value| {
            if !is_size(8, size_of(index)) {
                return Err(size_mismatch(value, 8, parameter(index)));
            }
            if NumberKind::Float.is_refused_by(kind_of(index)) {
                return Err(kind_mismatch(value, parameter(index)));
            }
            let number = value::double(value)?;
            // SAFETY: the index of a parameter, and a value of the run's type.
            unsafe { parameters.set_word(index, number.to_bits()) };
            Ok(())
        }),
        ArgumentKind::Other => {
            other(parameters, args.get(start), parameter(start), keep)?;
            Ok(start + 1)
        }
    }
}

/// Conversion of a type's values.
#[derive(Clone, Copy)]
enum ArgumentKind {
    /// Exactly `int`.
    Int,
    /// A NumPy scalar or a simple ctypes value.
    Scalar(ScalarBytes, NumberKind),
    /// A `Buffer`.
    Buffer,
    /// Exactly `float`.
    Float,
    /// Determined for each value.
    Other,
}

impl ArgumentKind {
    #[inline(always)]
    fn of(value: Obj<'_>) -> ArgumentKind {
        if value.is_exact_int() {
            ArgumentKind::Int
        } else if let Some((bytes, number)) = scalar_values::exact_number(value.ty()) {
            ArgumentKind::Scalar(bytes, number)
        } else if value.is_exact_float() {
            ArgumentKind::Float
        } else if bound(value).is_instance_of::<PyBuffer>() {
            ArgumentKind::Buffer
        } else {
            ArgumentKind::Other
        }
    }
}

/// Packs a NumPy scalar or a simple ctypes value.
///
/// # Safety
///
/// `index` is that of a parameter, and the value's number is at `bytes`.
#[inline(always)]
unsafe fn scalar(
    parameters: &mut Parameters<'_>,
    index: usize,
    value: Obj<'_>,
    bytes: ScalarBytes,
) -> R<()> {
    // SAFETY: guaranteed by the caller; an address is that of `size` bytes.
    unsafe {
        let inside = value.ptr().byte_add(HEAD);
        match bytes {
            // Immutable, and the arguments keep the object alive.
            ScalarBytes::Inside(_) => {
                parameters.set_address(index, inside.cast());
                Ok(())
            }
            // Copied: value and address (`ctypes.resize`) may change while other threads run.
            ScalarBytes::Behind(size) => {
                parameters.set_copy(index, inside.cast::<*const u8>().read(), size)
            }
            ScalarBytes::Exported(size) => exported(parameters, index, value, size),
        }
    }
}

/// Packs a number of `size` bytes through the buffer protocol.
///
/// # Safety
///
/// `index` is that of a parameter.
#[inline(never)]
unsafe fn exported(
    parameters: &mut Parameters<'_>,
    index: usize,
    value: Obj<'_>,
    size: usize,
) -> R<()> {
    // Bytes beyond the end of a shorter buffer are zero.
    let mut bytes = [0; scalar_values::LARGEST];
    Buffer::copy(value, &mut bytes)?;
    // SAFETY: guaranteed by the caller; `size` is at most that of the array.
    unsafe { parameters.set_copy(index, bytes.as_ptr(), size) }
}

/// A converted argument of a less common type.
enum Packed {
    /// A number, a handle or an address: the low `size` bytes.
    Word {
        word: u64,
        size: usize,
        number: NumberKind,
    },
    /// Bytes in an object that the arguments keep alive and unchanged.
    Address { address: *const u8, size: usize },
    /// A copy of bytes that may change, or move, while the driver reads.
    Bytes {
        bytes: SmallVec<[u8; 128]>,
        number: NumberKind,
    },
}

impl Packed {
    /// A handle or an address.
    fn address(word: u64) -> Packed {
        Packed::Word {
            word,
            size: 8,
            number: NumberKind::Integer,
        }
    }

    fn bytes(bytes: &[u8], number: NumberKind) -> Packed {
        let bytes = SmallVec::from_slice(bytes);
        Packed::Bytes { bytes, number }
    }

    fn size(&self) -> usize {
        match self {
            Packed::Word { size, .. } | Packed::Address { size, .. } => *size,
            Packed::Bytes { bytes, .. } => bytes.len(),
        }
    }

    fn number(&self) -> NumberKind {
        match self {
            Packed::Word { number, .. } | Packed::Bytes { number, .. } => *number,
            Packed::Address { .. } => NumberKind::Other,
        }
    }

    /// Writes the parameter.
    ///
    /// # Safety
    ///
    /// `index` is that of a parameter.
    unsafe fn write(&self, parameters: &mut Parameters<'_>, index: usize) -> R<()> {
        // SAFETY: as promised by the caller; the copied bytes have this length.
        unsafe {
            match self {
                Packed::Word { word, .. } => parameters.set_word(index, *word),
                Packed::Address { address, .. } => {
                    parameters.set_address(index, address.cast_mut().cast());
                }
                Packed::Bytes { bytes, .. } => {
                    return parameters.set_copy(index, bytes.as_ptr(), bytes.len());
                }
            }
        }
        Ok(())
    }
}

/// Packs a value of a less common type.
#[inline(never)]
fn other(
    parameters: &mut Parameters<'_>,
    value: Obj<'_>,
    parameter: Parameter<'_>,
    keep: &mut Objects,
) -> R<()> {
    let packed = convert(value, parameter, keep)?;
    parameter.check(packed.size(), packed.number(), value)?;
    // SAFETY: the index is that of a parameter.
    unsafe { packed.write(parameters, parameter.index) }
}

fn convert(value: Obj<'_>, parameter: Parameter<'_>, keep: &mut Objects) -> R<Packed> {
    let is = |ty: *mut ffi::PyTypeObject| value.instance_of_type(ty);
    let hold = &parameter.target.hold;
    if std::ptr::eq(value.ty(), &raw mut ffi::PyBool_Type) && parameter.size == UNKNOWN {
        // Without a parameter size, a Python bool is packed as a C `bool`.
        // SAFETY: `True` is a singleton.
        let word = std::ptr::eq(value.ptr(), unsafe { ffi::Py_True() }).into();
        let number = NumberKind::Integer;
        return Ok(Packed::Word {
            word,
            size: 1,
            number,
        });
    }
    if value.is_int() {
        return Ok(Packed::Word {
            word: integer(value, parameter)?,
            size: parameter.size,
            number: NumberKind::Integer,
        });
    }
    if let Some(word) = types::handle_value(value) {
        return Ok(Packed::Word {
            word,
            size: types::handle_size(value),
            number: NumberKind::Integer,
        });
    }
    if let Some(address) = value::structure(value)? {
        return Ok(Packed::Address {
            address: address.cast_const(),
            size: match types::any_struct_size(value) {
                0 => parameter.size,
                size => size,
            },
        });
    }
    if let Ok(condition) = bound(value).cast::<PyGraphCondition>() {
        return Ok(Packed::Word {
            word: condition.get().condition.handle(),
            size: 8,
            number: NumberKind::Other,
        });
    }
    if let Some((bytes, number)) = scalar_values::find(value)? {
        // SAFETY: the value's type or a base has its number there.
        return unsafe { number_bytes(value, bytes, number) };
    }
    if is(&raw mut ffi::PyFloat_Type) {
        return Ok(Packed::Word {
            word: value::double(value)?.to_bits(),
            size: 8,
            number: NumberKind::Float,
        });
    }
    if is(&raw mut ffi::PyComplex_Type) {
        return Ok(Packed::bytes(&complex(value)?, NumberKind::Other));
    }
    if let Some(bytes) = numpy_scalar(value, parameter)? {
        let (data, len) = bytes.obj().bytes_data();
        // SAFETY: a bytes object owned here, with `len` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(data, len) };
        return Ok(Packed::bytes(bytes, NumberKind::Other));
    }
    if let Some(view) = ctypes_value(value, parameter)? {
        // SAFETY: the view has this many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(view.address() as *const u8, view.len()) };
        return Ok(Packed::bytes(bytes, NumberKind::Other));
    }
    let py = bound(value).py();
    if let Ok(texture) = bound(value).cast::<PyTextureObject>() {
        let texture = texture.get();
        let handle = texture.use_on(py, hold.stream());
        return handle
            .map(Packed::address)
            .ok_or_else(|| destroyed("TextureObject", texture.is_closed(py), parameter));
    }
    if let Ok(surface) = bound(value).cast::<PySurfaceObject>() {
        let surface = surface.get();
        let handle = surface.use_on(py);
        return handle
            .map(Packed::address)
            .ok_or_else(|| destroyed("SurfaceObject", surface.is_closed(py), parameter));
    }
    if let Ok(map) = bound(value).cast::<PyTensorMap>() {
        let bytes = map.get().use_on(py, hold.stream());
        return Ok(Packed::bytes(&bytes, NumberKind::Other));
    }
    arrays::address(value, hold.stream(), || parameter.argument(), keep)?
        .map(Packed::address)
        .ok_or_else(|| unsupported_type(value, parameter))
}

/// The bytes of a NumPy scalar or a simple ctypes value.
///
/// # Safety
///
/// The value's number is at `bytes`.
unsafe fn number_bytes(value: Obj<'_>, bytes: ScalarBytes, number: NumberKind) -> R<Packed> {
    let size = bytes.size();
    let mut exported = [0; scalar_values::LARGEST];
    let address = match bytes {
        // SAFETY: the number follows the head of the object.
        ScalarBytes::Inside(_) => unsafe { value.ptr().byte_add(HEAD) }.cast::<u8>(),
        // SAFETY: the address of the number follows the head of the object.
        ScalarBytes::Behind(_) => unsafe { value.ptr().byte_add(HEAD).cast::<*mut u8>().read() },
        ScalarBytes::Exported(_) => {
            Buffer::copy(value, &mut exported)?;
            exported.as_mut_ptr()
        }
    };
    // SAFETY: `size` bytes are readable there, at most the length of the array.
    let bytes = unsafe { std::slice::from_raw_parts(address, size) };
    Ok(Packed::bytes(bytes, number))
}

/// The bytes of a Python complex number.
fn complex(value: Obj<'_>) -> R<[u8; 16]> {
    // SAFETY: the object is a complex number.
    let (re, im) = unsafe {
        (
            ffi::PyComplex_RealAsDouble(value.ptr()),
            ffi::PyComplex_ImagAsDouble(value.ptr()),
        )
    };
    if cpython::raised() {
        return Err(Raised);
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&re.to_le_bytes());
    bytes[8..].copy_from_slice(&im.to_le_bytes());
    Ok(bytes)
}

/// The bytes (a `bytes`) of other NumPy scalars: structured scalars, dates, types of extension packages.
fn numpy_scalar(value: Obj<'_>, parameter: Parameter<'_>) -> R<Option<Owned>> {
    let Some(numpy) = scalar_values::imported(c"numpy")? else {
        return Ok(None);
    };
    let Some(generic) = numpy.obj().attribute(c"generic")? else {
        return Ok(None);
    };
    if !value.instance_of_type(generic.ptr().cast()) {
        return Ok(None);
    }
    let Some(dtype) = value.attribute(c"dtype")? else {
        return Ok(None);
    };
    let text = |name| -> R<String> {
        let found = dtype.obj().attribute(name)?;
        Ok(found.and_then(|f| f.obj().text()).unwrap_or_default())
    };
    let has_objects = dtype.obj().attribute(c"hasobject")?;
    // SAFETY: the object is live.
    let has_objects = has_objects.is_some_and(|h| unsafe { ffi::PyObject_IsTrue(h.ptr()) } > 0);
    if has_objects || matches!(text(c"kind")?.as_str(), "O" | "U" | "S" | "T") {
        return Ok(None);
    }
    if matches!(text(c"char")?.as_str(), "g" | "G") {
        let message = format!(
            "{} is of type {}, which devices do not support: long double is double on a device (pass a numpy.float64 \
             or numpy.complex128)",
            parameter.argument(),
            full_name(value)
        );
        return Err(errors::raise(ExceptionKind::Type, &message));
    }
    let Some(method) = value.attribute(c"tobytes")? else {
        return Ok(None);
    };
    let bytes = method.obj().call0()?;
    let is_bytes = bytes.obj().is_bytes();
    Ok(is_bytes.then_some(bytes))
}

/// The memory of a ctypes structure, union, array or pointer, which is passed by value.
fn ctypes_value(value: Obj<'_>, parameter: Parameter<'_>) -> R<Option<Buffer>> {
    let Some(ctypes) = scalar_values::imported(c"_ctypes")? else {
        return Ok(None);
    };
    let is = |name| -> R<bool> {
        let class = ctypes.obj().attribute(name)?;
        Ok(class.is_some_and(|class| value.instance_of_type(class.ptr().cast())))
    };
    if is(c"_SimpleCData")? {
        // Numbers arrive here if they are not read in parameter. Other simple types hold an object, a host string, or a type
        // without device counterpart.
        let swapped = value.attribute(c"__ctype_le__")?;
        let same = swapped.is_none_or(|t| std::ptr::eq(t.ptr().cast(), value.ty()));
        let letter = value.attribute(c"_type_")?;
        let letter = letter.and_then(|l| l.obj().text()).unwrap_or_default();
        let number = letter.len() == 1 && "?cubBhHiIlLqQfdPzZFD".contains(&letter);
        if !same || !number {
            return Ok(None);
        }
    } else if !(is(c"Structure")? || is(c"Union")? || is(c"Array")? || is(c"_Pointer")?) {
        return Ok(None);
    } else if value.attribute(c"_swappedbytes_")?.is_some() {
        let message = format!(
            "{} is of type {} with swapped byte order; devices are little-endian",
            parameter.argument(),
            full_name(value)
        );
        return Err(errors::raise(ExceptionKind::Type, &message));
    }
    Buffer::get(value)
}

/// As [`integer`], for an `int` that fits in the usual sizes of parameters.
#[inline(always)]
fn fitting_integer(value: Obj<'_>, size: usize) -> Option<u64> {
    let number = cpython::as_i64_if_fits(value)?;
    let fits = matches!(size, 8 | UNKNOWN) || (size == 4 && value::fits_either(number, 4));
    fits.then_some(number.cast_unsigned())
}

/// Converts an `int`: the low bytes of the result are the value. It has the size of its parameter, 8 bytes if unknown.
#[inline(never)]
fn integer(value: Obj<'_>, parameter: Parameter<'_>) -> R<u64> {
    let size = if parameter.size == UNKNOWN {
        8
    } else {
        parameter.size
    };
    if !matches!(size, 1 | 2 | 4 | 8) {
        let message = format!(
            "{} is {}, an integer or address of up to 8 bytes, but {} expects another size",
            parameter.argument(),
            int_text(value),
            parameter.description()
        );
        return Err(errors::raise(ExceptionKind::Type, &message));
    }
    if NumberKind::Integer.is_refused_by(parameter.kind) {
        return Err(kind_mismatch(value, parameter));
    }
    // Signed or unsigned: the kind of the parameter does not tell.
    let word = match cpython::as_i64_if_fits(value) {
        Some(number) => value::fits_either(number, size).then_some(number.cast_unsigned()),
        None if size == 8 => value::unsigned(value),
        None => None,
    };
    word.ok_or_else(|| overflow(value, parameter))
}

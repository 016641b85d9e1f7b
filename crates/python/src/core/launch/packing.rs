//! Packing of kernel arguments: conversion of Python values to the bytes of kernel parameters.
//!
//! The type of a value determines its bytes: a Python `int` is an integer or an address of the parameter's size, a
//! `float` a double, a NumPy or ctypes value its own bytes, device memory its address. If the driver reports the
//! kernel's parameters, number and sizes are checked before anything is queued.
//!
//! Up to [`INLINE`] arguments are packed without heap allocation, unless structures by value are large.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use cupyrite::{ParamInfo, Stream};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::parameter_arena::{INLINE, ParameterArena};
use crate::core::launch::arrays;
use crate::core::memory::buffer::PyBuffer;
use crate::cpython;
use crate::cpython::internals::scalar_values;
use crate::cpython::internals::scalar_values::{HEAD, ScalarBytes};
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::types;

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

/// Owner of the pins of buffer arguments, which keep the packed addresses valid.
#[derive(Clone, Copy)]
pub enum Hold<'a> {
    /// For a launch: pinned until the kernel is queued.
    Launch(&'a Pins<'a>),
    /// For kept arguments, which another call launches.
    Kept(&'a Kept),
}

impl<'a> Hold<'a> {
    /// The stream of the launch, if any.
    fn stream(self) -> Option<&'a Stream> {
        match self {
            Hold::Launch(pins) => Some(pins.stream),
            Hold::Kept(_) => None,
        }
    }
}

/// Kept arguments and their pinned buffers, whose memory stays valid while this lives.
pub struct Kept {
    args: Py<PyTuple>,
    /// Positions of the pinned buffers.
    held: Mutex<Vec<usize>>,
}

impl Kept {
    /// Keeps the arguments, without pins.
    pub const fn new(args: Py<PyTuple>) -> Kept {
        Kept {
            args,
            held: Mutex::new(Vec::new()),
        }
    }

    /// The arguments.
    pub const fn args(&self) -> &Py<PyTuple> {
        &self.args
    }

    /// Pins the buffer at this position and returns its address; `None` for a closed buffer.
    fn hold(&self, buffer: &PyBuffer, index: usize) -> R<Option<u64>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.try_reserve(1).is_err() {
            return Err(errors::no_memory());
        }
        // SAFETY: arguments are converted on attached threads only.
        let address = buffer.begin_launch(unsafe { Python::assume_attached() });
        if address.is_some() {
            held.push(index);
        }
        Ok(address)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: part of a Python object, or of a failed construction: dropped on an attached thread.
        let py = unsafe { Python::assume_attached() };
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        for &index in held.iter() {
            if let Ok(value) = self.args.bind_borrowed(py).get_borrowed_item(index)
                && let Ok(buffer) = value.cast::<PyBuffer>()
            {
                buffer.get().unpin(py);
            }
        }
    }
}

/// Pins of buffer arguments during a launch. A buffer that another thread closes after its address was read is freed
/// after the launch, ordered after the stream's work.
pub struct Pins<'a> {
    args: Args<'a>,
    stream: &'a Stream,
    /// The first `count` pinned buffers.
    first: [Cell<MaybeUninit<*const PyBuffer>>; INLINE],
    count: Cell<usize>,
    /// Index range of further arguments, in which every buffer is pinned.
    more: Cell<(usize, usize)>,
}

impl<'a> Pins<'a> {
    /// No pins.
    #[inline(always)]
    pub const fn new(args: Args<'a>, stream: &'a Stream) -> Pins<'a> {
        Pins {
            args,
            stream,
            first: [const { Cell::new(MaybeUninit::uninit()) }; INLINE],
            count: Cell::new(0),
            more: Cell::new((0, 0)),
        }
    }

    /// Pins the buffer at this position and returns its address; `None` for a closed buffer. Called in the order of the
    /// arguments.
    #[inline(always)]
    fn hold(&self, buffer: &PyBuffer, index: usize) -> Option<u64> {
        // SAFETY: arguments are converted on attached threads only.
        let address = buffer.begin_launch(unsafe { Python::assume_attached() })?;
        let count = self.count.get();
        match self.first.get(count) {
            Some(place) => {
                place.set(MaybeUninit::new(buffer));
                self.count.set(count + 1);
            }
            None => self.hold_more(index),
        }
        Some(address)
    }

    #[cold]
    fn hold_more(&self, index: usize) {
        let (start, end) = self.more.get();
        self.more
            .set((if end == 0 { index } else { start }, index + 1));
    }

    #[cold]
    fn let_go_of_more(&self) {
        let (start, end) = self.more.get();
        for index in start..end {
            let value = bound(self.args.get(index));
            if let Ok(buffer) = value.cast::<PyBuffer>() {
                buffer.get().end_launch(value.py(), self.stream);
            }
        }
    }
}

impl Drop for Pins<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: launches start and end on attached threads.
        let py = unsafe { Python::assume_attached() };
        for place in self.first.iter().take(self.count.get()) {
            // SAFETY: `hold` wrote `count` buffer addresses; the arguments keep these buffers alive.
            let buffer = unsafe { &*place.get().assume_init() };
            buffer.end_launch(py, self.stream);
        }
        if self.more.get().1 != 0 {
            self.let_go_of_more();
        }
    }
}

/// The packed arguments of one launch. Must not move between [`Packer::pack`] and the end of the C call.
pub struct Packer {
    arena: ParameterArena,
    /// Objects that must live until the kernel is queued.
    keep: Vec<Owned>,
}

impl Packer {
    /// Creates an empty packer; costs nothing.
    #[inline(always)]
    pub const fn new() -> Packer {
        Packer {
            arena: ParameterArena::new(),
            keep: Vec::new(),
        }
    }

    /// Packs the arguments and returns the array of their addresses as taken by `cuLaunchKernel`; null for no
    /// arguments.
    ///
    /// The bytes may lie in the argument objects, which the caller keeps alive during the call.
    ///
    /// # Errors
    ///
    /// `TypeError` for a wrong number of arguments, a size that differs from the parameter's, and unsupported types;
    /// `OverflowError` for an integer that does not fit its parameter; `RuntimeError` for a closed buffer. The message
    /// names the position.
    #[inline]
    pub fn pack(&mut self, args: Args<'_>, target: &Target<'_>) -> R<*mut *mut c_void> {
        let count = args.len();
        if let Some(params) = target.params
            && params.len() != count
        {
            return Err(wrong_count(count, params, target));
        }
        if count == 0 {
            return Ok(std::ptr::null_mut());
        }
        let pointers = self.arena.begin(count)?;
        for index in 0..count {
            let size = match target.params {
                Some(params) => params[index].size,
                None => UNKNOWN,
            };
            let place = Place {
                index,
                size,
                target,
            };
            let at = self.one(args.get(index), place)?;
            // SAFETY: there is room for `count` pointers.
            unsafe { pointers.add(index).write(at) };
        }
        Ok(pointers)
    }

    /// Address of one argument's bytes.
    #[inline(always)]
    fn one(&mut self, value: Obj<'_>, place: Place<'_>) -> R<*mut c_void> {
        let ty = value.ty();
        if std::ptr::eq(ty, &raw mut ffi::PyLong_Type) {
            let word = integer(value, place)?;
            return self.arena.word(word);
        }
        if let Some(kind) = scalar_values::exact(ty) {
            return self.number(value, kind, place);
        }
        if let Ok(buffer) = bound(value).cast::<PyBuffer>() {
            let address = place.address_of(buffer.get(), value)?;
            return self.arena.word(address);
        }
        if std::ptr::eq(ty, &raw mut ffi::PyFloat_Type) {
            return self.double(value, place);
        }
        self.other(value, place)
    }

    /// Packs a NumPy scalar or a simple ctypes value.
    #[inline(always)]
    fn number(&mut self, value: Obj<'_>, kind: ScalarBytes, place: Place<'_>) -> R<*mut c_void> {
        // SAFETY: an instance of the type confirmed that the bytes, or their address, follow the head.
        let inside = unsafe { value.ptr().cast::<u8>().add(HEAD) };
        match kind {
            // Immutable, and the arguments keep the object alive.
            ScalarBytes::Inside(size) => {
                place.check(size, value)?;
                Ok(inside.cast())
            }
            // Copied: value and address (`ctypes.resize`) may change while other threads run.
            ScalarBytes::Behind(size) => {
                place.check(size, value)?;
                let room = self.arena.room(size)?;
                // SAFETY: the first word is the address of `size` bytes; there is room for them.
                unsafe {
                    let from = inside.cast::<*const u8>().read();
                    std::ptr::copy_nonoverlapping(from, room, size);
                }
                Ok(room.cast())
            }
        }
    }

    fn double(&mut self, value: Obj<'_>, place: Place<'_>) -> R<*mut c_void> {
        place.check(8, value)?;
        // SAFETY: the object is a float.
        let number = unsafe { ffi::PyFloat_AsDouble(value.ptr()) };
        if number == -1.0 && cpython::raised() {
            return Err(Raised);
        }
        self.arena.word(number.to_bits())
    }

    /// Packs values of less common types.
    #[inline(never)]
    fn other(&mut self, value: Obj<'_>, place: Place<'_>) -> R<*mut c_void> {
        if std::ptr::eq(value.ty(), &raw mut ffi::PyBool_Type) && place.size == UNKNOWN {
            // Without a parameter size, a Python bool is packed as a C `bool`.
            // SAFETY: `True` is a singleton.
            let truth = std::ptr::eq(value.ptr(), unsafe { ffi::Py_True() });
            return self.arena.word(truth.into());
        }
        if value.is_int() {
            let word = integer(value, place)?;
            return self.arena.word(word);
        }
        if let Some(number) = types::handle_value(value.ptr()) {
            place.check(types::handle_size(value.ptr()), value)?;
            return self.arena.word(number);
        }
        if let Some(address) = types::any_struct_ptr(value.ptr()) {
            place.check(types::any_struct_size(value.ptr()), value)?;
            if !types::prepare_struct(value.ptr()) {
                return Err(Raised);
            }
            return Ok(address.cast());
        }
        if let Some(kind) = scalar_values::find(value)? {
            return self.number(value, kind, place);
        }
        if value.instance_of_type(&raw mut ffi::PyFloat_Type) {
            return self.double(value, place);
        }
        if value.instance_of_type(&raw mut ffi::PyComplex_Type) {
            place.check(16, value)?;
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
            return self.arena.bytes(&bytes);
        }
        if let Some(at) = self.numpy_scalar(value, place)? {
            return Ok(at);
        }
        if let Some(at) = self.ctypes_value(value, place)? {
            return Ok(at);
        }
        let stream = place.target.hold.stream();
        let here = || place.name();
        match arrays::address(value, stream, here, &mut self.keep) {
            Ok(Some(address)) => {
                place.check(8, value)?;
                self.arena.word(address)
            }
            Ok(None) => Err(refuse(value, place)),
            Err(Raised) => Err(Raised),
        }
    }

    /// Packs other NumPy scalars: structured scalars, dates, types of extension packages.
    fn numpy_scalar(&mut self, value: Obj<'_>, place: Place<'_>) -> R<Option<*mut c_void>> {
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
                place.name(),
                full_name(value)
            );
            return Err(errors::raise(ExceptionKind::Type, &message));
        }
        let Some(method) = value.attribute(c"tobytes")? else {
            return Ok(None);
        };
        let bytes = method.obj().call0()?;
        let (data, len) = bytes.obj().bytes_data();
        if data.is_null() {
            return Ok(None);
        }
        place.check(len, value)?;
        // SAFETY: a bytes object owned here, with `len` bytes.
        self.arena
            .bytes(unsafe { std::slice::from_raw_parts(data, len) })
            .map(Some)
    }

    /// Packs a ctypes structure, union, array or pointer by value.
    fn ctypes_value(&mut self, value: Obj<'_>, place: Place<'_>) -> R<Option<*mut c_void>> {
        let Some(ctypes) = scalar_values::imported(c"_ctypes")? else {
            return Ok(None);
        };
        let is = |name| -> R<bool> {
            let class = ctypes.obj().attribute(name)?;
            Ok(class.is_some_and(|class| value.instance_of_type(class.ptr().cast())))
        };
        if is(c"_SimpleCData")? {
            // Numbers arrive here if they are not read in place. Other simple types hold an object, a host string, or a type
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
                place.name(),
                full_name(value)
            );
            return Err(errors::raise(ExceptionKind::Type, &message));
        }
        let Some(view) = Buffer::get(value)? else {
            return Ok(None);
        };
        place.check(view.len(), value)?;
        // Copied: the object may change, and its memory move, while the driver reads.
        // SAFETY: the view has this many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(view.address() as *const u8, view.len()) };
        self.arena.bytes(bytes).map(Some)
    }
}

/// Arguments of the C calling convention: live borrowed references.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [*mut ffi::PyObject]);

impl<'a> Args<'a> {
    /// Wraps borrowed references.
    ///
    /// # Safety
    ///
    /// Each is a live object for `'a`, and the thread is attached.
    pub unsafe fn new(args: &'a [*mut ffi::PyObject]) -> Args<'a> {
        Args(args)
    }

    /// Number of arguments.
    pub fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn get(self, index: usize) -> Obj<'a> {
        // SAFETY: live, by the contract of `new`.
        unsafe { Obj::new(self.0[index]) }
    }
}

/// The object as a PyO3 reference.
#[inline(always)]
fn bound(value: Obj<'_>) -> Borrowed<'_, '_, PyAny> {
    // SAFETY: live, and arguments are converted on attached threads only.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), value.ptr()) }
}

/// Position of an argument and its parameter.
#[derive(Clone, Copy)]
struct Place<'a> {
    index: usize,
    /// Size of the parameter in bytes, or `UNKNOWN`.
    size: usize,
    target: &'a Target<'a>,
}

/// Size of a parameter that the driver does not report.
const UNKNOWN: usize = usize::MAX;

impl Place<'_> {
    /// Prefix of messages.
    #[cold]
    fn name(self) -> String {
        format!(
            "{}(): kernel argument {} (counted from 0)",
            self.target.function, self.index
        )
    }

    /// Description of the parameter in messages.
    #[cold]
    fn parameter(self) -> String {
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

    /// Address of a buffer, which is pinned.
    #[inline(always)]
    fn address_of(self, buffer: &PyBuffer, value: Obj<'_>) -> R<u64> {
        let address = match self.target.hold {
            Hold::Launch(pins) => pins.hold(buffer, self.index),
            Hold::Kept(kept) => kept.hold(buffer, self.index)?,
        };
        match address {
            Some(address) => self.check(8, value).map(|()| address),
            None => Err(closed(self)),
        }
    }

    /// Raises if the size differs from the parameter's.
    #[inline(always)]
    fn check(self, size: usize, value: Obj<'_>) -> R<()> {
        if size == self.size || self.size == UNKNOWN {
            return Ok(());
        }
        Err(wrong_size(value, size, self.size, self))
    }
}

/// Converts an `int`: the low bytes of the result are the value. It has the size of its parameter, 8 bytes if unknown.
#[inline(always)]
fn integer(value: Obj<'_>, place: Place<'_>) -> R<u64> {
    let mut overflow = 0;
    // SAFETY: the object is an int.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.ptr(), &raw mut overflow) };
    if overflow == 0 && matches!(place.size, 8 | UNKNOWN) {
        return Ok(number.cast_unsigned());
    }
    integer_slow(value, number, overflow, place)
}

#[inline(never)]
fn integer_slow(value: Obj<'_>, number: i64, overflow: i32, place: Place<'_>) -> R<u64> {
    let size = if place.size == UNKNOWN { 8 } else { place.size };
    if size == 8 && overflow > 0 {
        // SAFETY: the object is an int.
        let number = unsafe { ffi::PyLong_AsUnsignedLongLong(value.ptr()) };
        if number != u64::MAX || !cpython::raised() {
            return Ok(number);
        }
        cpython::clear();
        return Err(too_large(value, place));
    }
    if !matches!(size, 1 | 2 | 4 | 8) {
        let message = format!(
            "{} is {}, an integer or address of up to 8 bytes, but {} expects another size",
            place.name(),
            described(value),
            place.parameter()
        );
        return Err(errors::raise(ExceptionKind::Type, &message));
    }
    let bits = 8 * size as u32;
    // Signed or unsigned: the driver does not report the parameter's type.
    let fits =
        overflow == 0 && (bits == 64 || (-(1i64 << (bits - 1))..(1i64 << bits)).contains(&number));
    if !fits {
        return Err(too_large(value, place));
    }
    Ok(number.cast_unsigned())
}

#[cold]
fn too_large(value: Obj<'_>, place: Place<'_>) -> Raised {
    let message = format!(
        "{} is {}, which does not fit in {}",
        place.name(),
        described(value),
        if place.size == UNKNOWN {
            "8 bytes".to_owned()
        } else {
            place.parameter()
        }
    );
    errors::raise(ExceptionKind::Overflow, &message)
}

/// Text of an integer; large integers are abbreviated.
#[cold]
fn described(value: Obj<'_>) -> String {
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
fn wrong_count(given: usize, params: &[ParamInfo], target: &Target<'_>) -> Raised {
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
fn wrong_size(value: Obj<'_>, size: usize, wanted: usize, place: Place<'_>) -> Raised {
    let is = |ty: *mut ffi::PyTypeObject| value.instance_of_type(ty);
    let hint = if is(&raw mut ffi::PyFloat_Type) && scalar_values::exact(value.ty()).is_none() {
        match wanted {
            2 => "; a Python float is a double: pass numpy.float16(x) for a half",
            4 => {
                "; a Python float is a double: pass numpy.float32(x) or ctypes.c_float(x) for a float"
            }
            _ => "",
        }
    } else if is(&raw mut ffi::PyComplex_Type)
        && scalar_values::exact(value.ty()).is_none()
        && wanted == 8
    {
        "; a Python complex is two doubles: pass numpy.complex64(x) for two floats"
    } else {
        ""
    };
    let plural = if size == 1 { "" } else { "s" };
    let message = format!(
        "{} is of type {} and has {size} byte{plural}, but goes to {}{hint}",
        place.name(),
        full_name(value),
        place.parameter()
    );
    errors::raise(ExceptionKind::Type, &message)
}

#[cold]
fn closed(place: Place<'_>) -> Raised {
    let message = format!("{} is a closed Buffer", place.name());
    errors::raise(ExceptionKind::Runtime, &message)
}

#[cold]
fn refuse(value: Obj<'_>, place: Place<'_>) -> Raised {
    let message = if value.is_none() {
        format!("{} is None; pass 0 for a null pointer", place.name())
    } else {
        format!(
            "{} is of type {}; expected a Python, NumPy or ctypes number, a NumPy or ctypes structure, a buffer or other \
             device memory, an address as int, or a handle",
            place.name(),
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

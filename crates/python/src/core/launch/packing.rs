//! Kernel arguments: Python's values as the bytes that a kernel's parameters are made of.
//!
//! What a value becomes is a matter of its type: a Python `int` is an integer or an address of the size that the
//! parameter has, a `float` a double, a NumPy or ctypes value its own bytes, memory of a device its address. Where the
//! driver tells the kernel's parameters, number and sizes are compared with them before anything is queued.
//!
//! Up to [`INLINE`] arguments need no memory from the heap, unless structures by value are large.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use cupyrite::{ParamInfo, Stream};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bindings::errors;
use crate::bindings::errors::Kind as Exc;
use crate::core::launch::arrays;
use crate::core::launch::scalar_types;
use crate::core::launch::scalar_types::{HEAD, Kind};
use crate::core::memory::buffer::PyBuffer;
use crate::cpython;
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::types;

/// Arguments whose pointers need no memory from the heap.
pub const INLINE: usize = 32;

/// 16-byte pieces of values that need none.
const PIECES: usize = 64;

/// What the arguments are for.
pub struct Target<'a> {
    /// The Python function or class, for messages.
    pub function: &'static str,
    /// The kernel, for messages.
    pub kernel: Option<&'a cupyrite::Kernel>,
    /// The kernel's parameters, where the driver tells them.
    pub params: Option<&'a [ParamInfo]>,
    /// What holds the buffers.
    pub hold: Hold<'a>,
}

/// What holds the buffers among the arguments, so that an address that was read stays theirs.
#[derive(Clone, Copy)]
pub enum Hold<'a> {
    /// For a launch, until the kernel is queued in its stream.
    Launch(&'a Pins<'a>),
    /// For arguments that are kept, and launched by somebody else.
    Kept(&'a Kept),
}

impl<'a> Hold<'a> {
    /// The stream of the launch, where there is one.
    fn stream(self) -> Option<&'a Stream> {
        match self {
            Hold::Launch(pins) => Some(pins.stream),
            Hold::Kept(_) => None,
        }
    }
}

/// Arguments that are kept, and the buffers among them: their memory stays until this ends, also should they be closed.
pub struct Kept {
    args: Py<PyTuple>,
    /// Positions of the buffers that are held.
    held: Mutex<Vec<usize>>,
}

impl Kept {
    /// Keeps the arguments; holds no buffer yet.
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

    /// Holds the buffer at this position; its address, or `None` where it was closed.
    fn hold(&self, buffer: &PyBuffer, index: usize) -> R<Option<u64>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.try_reserve(1).is_err() {
            return Err(errors::no_memory());
        }
        // SAFETY: arguments are converted by attached threads only.
        let address = buffer.begin_launch(unsafe { Python::assume_attached() });
        if address.is_some() {
            held.push(index);
        }
        Ok(address)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: this is part of a Python object, or of one that is being made: it ends on an attached thread.
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

/// The buffers among a launch's arguments, held until the kernel is queued: should another thread close one of them after
/// its address was read, it is freed after that, in the order of the stream too.
pub struct Pins<'a> {
    args: Args<'a>,
    stream: &'a Stream,
    /// The first buffers that are held, as many as `count`.
    first: [Cell<MaybeUninit<*const PyBuffer>>; INLINE],
    count: Cell<usize>,
    /// Where there are more: every buffer among these arguments is held, too.
    more: Cell<(usize, usize)>,
}

impl<'a> Pins<'a> {
    /// Holds nothing yet.
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

    /// Holds the buffer that is this argument; its address, or `None` where it was closed. Called in the order of the
    /// arguments.
    #[inline(always)]
    fn hold(&self, buffer: &PyBuffer, index: usize) -> Option<u64> {
        // SAFETY: arguments are converted by attached threads only.
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
        // SAFETY: launches begin and end on attached threads.
        let py = unsafe { Python::assume_attached() };
        for place in self.first.iter().take(self.count.get()) {
            // SAFETY: `hold` wrote as many addresses of buffers; the arguments hold these.
            let buffer = unsafe { &*place.get().assume_init() };
            buffer.end_launch(py, self.stream);
        }
        if self.more.get().1 != 0 {
            self.let_go_of_more();
        }
    }
}

/// Room for the packed arguments of one launch. It must not move between [`Packer::pack`] and the end of the C call.
pub struct Packer {
    pointers: MaybeUninit<[*mut c_void; INLINE]>,
    values: MaybeUninit<[u128; PIECES]>,
    /// Pieces of `values` that are taken.
    used: usize,
    more: Option<Box<More>>,
}

/// What few launches need.
#[derive(Default)]
struct More {
    pointers: Vec<*mut c_void>,
    values: Vec<Box<[u128]>>,
    /// What must stay until the kernel is queued.
    keep: Vec<Owned>,
}

impl Packer {
    /// Empty; costs nothing.
    #[inline(always)]
    pub const fn new() -> Packer {
        Packer {
            pointers: MaybeUninit::uninit(),
            values: MaybeUninit::uninit(),
            used: 0,
            more: None,
        }
    }

    #[cold]
    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Packs the arguments and gives the array of their addresses, as `cuLaunchKernel` takes it. Null for none.
    ///
    /// The bytes may lie in the objects themselves, which the caller keeps alive until the call is over.
    ///
    /// # Errors
    ///
    /// `TypeError` for another number of arguments than the kernel has parameters, for one of another size than its
    /// parameter and for what is no kernel argument; `OverflowError` for an integer that its parameter cannot hold;
    /// `RuntimeError` for a buffer that was closed. Each names the position.
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
        let pointers: *mut *mut c_void = if count <= INLINE {
            self.pointers.as_mut_ptr().cast()
        } else {
            let pointers = &mut self.more().pointers;
            if pointers.try_reserve_exact(count).is_err() {
                return Err(errors::no_memory());
            }
            pointers.as_mut_ptr()
        };
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

    /// Where one argument's bytes are.
    #[inline(always)]
    fn one(&mut self, value: Obj<'_>, place: Place<'_>) -> R<*mut c_void> {
        let ty = value.ty();
        if std::ptr::eq(ty, &raw mut ffi::PyLong_Type) {
            let word = integer(value, place)?;
            return self.word(word);
        }
        if let Some(kind) = scalar_types::exact(ty) {
            return self.number(value, kind, place);
        }
        if let Ok(buffer) = bound(value).cast::<PyBuffer>() {
            let address = place.address_of(buffer.get(), value)?;
            return self.word(address);
        }
        if std::ptr::eq(ty, &raw mut ffi::PyFloat_Type) {
            return self.double(value, place);
        }
        self.other(value, place)
    }

    /// A value of 8 bytes.
    #[inline(always)]
    fn word(&mut self, word: u64) -> R<*mut c_void> {
        let room = self.room(8)?;
        // SAFETY: there is room for 8 aligned bytes.
        unsafe { room.cast::<u64>().write(word) };
        Ok(room.cast())
    }

    /// Room for a value, 16-byte aligned.
    #[inline(always)]
    fn room(&mut self, size: usize) -> R<*mut u8> {
        let pieces = size.div_ceil(16);
        if pieces <= PIECES - self.used {
            // SAFETY: the pieces from `used` on are free.
            let at = unsafe { self.values.as_mut_ptr().cast::<u128>().add(self.used) };
            self.used += pieces;
            return Ok(at.cast());
        }
        self.large_room(pieces)
    }

    #[cold]
    fn large_room(&mut self, pieces: usize) -> R<*mut u8> {
        let mut memory: Vec<u128> = Vec::new();
        if memory.try_reserve_exact(pieces).is_err() {
            return Err(errors::no_memory());
        }
        memory.resize(pieces, 0);
        let mut memory = memory.into_boxed_slice();
        let at = memory.as_mut_ptr().cast();
        // The slice's memory stays where it is when the box moves.
        self.more().values.push(memory);
        Ok(at)
    }

    /// A copy of bytes.
    fn bytes(&mut self, bytes: &[u8]) -> R<*mut c_void> {
        let room = self.room(bytes.len())?;
        // SAFETY: there is room for as many bytes, in memory of our own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) };
        Ok(room.cast())
    }

    /// A number of NumPy's or of ctypes.
    #[inline(always)]
    fn number(&mut self, value: Obj<'_>, kind: Kind, place: Place<'_>) -> R<*mut c_void> {
        // SAFETY: the table has looked at an instance of the type: the bytes, or their address, follow the head.
        let inside = unsafe { value.ptr().cast::<u8>().add(HEAD) };
        match kind {
            // They never change, and the arguments hold the object.
            Kind::Inside(size) => {
                place.check(size, value)?;
                Ok(inside.cast())
            }
            // They may change, and their place too (`ctypes.resize`), once others run.
            Kind::Behind(size) => {
                place.check(size, value)?;
                let room = self.room(size)?;
                // SAFETY: the object's first word is the address of `size` bytes; there is room for as many.
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
        self.word(number.to_bits())
    }

    /// Everything that is not met in every launch.
    #[inline(never)]
    fn other(&mut self, value: Obj<'_>, place: Place<'_>) -> R<*mut c_void> {
        if std::ptr::eq(value.ty(), &raw mut ffi::PyBool_Type) && place.size == UNKNOWN {
            // Without a parameter to go by, a truth value is C's `bool`.
            // SAFETY: `True` is one object.
            let truth = std::ptr::eq(value.ptr(), unsafe { ffi::Py_True() });
            return self.word(truth.into());
        }
        if value.is_int() {
            let word = integer(value, place)?;
            return self.word(word);
        }
        if let Some(number) = types::handle_value(value.ptr()) {
            place.check(types::handle_size(value.ptr()), value)?;
            return self.word(number);
        }
        if let Some(address) = types::any_struct_ptr(value.ptr()) {
            place.check(types::any_struct_size(value.ptr()), value)?;
            if !types::prepare_struct(value.ptr()) {
                return Err(Raised);
            }
            return Ok(address.cast());
        }
        if let Some(kind) = scalar_types::find(value)? {
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
            return self.bytes(&bytes);
        }
        if let Some(at) = self.numpy_scalar(value, place)? {
            return Ok(at);
        }
        if let Some(at) = self.ctypes_value(value, place)? {
            return Ok(at);
        }
        let stream = place.target.hold.stream();
        let here = || place.name();
        match arrays::address(value, stream, here, &mut self.more().keep) {
            Ok(Some(address)) => {
                place.check(8, value)?;
                self.word(address)
            }
            Ok(None) => Err(refuse(value, place)),
            Err(Raised) => Err(Raised),
        }
    }

    /// A scalar of NumPy's that is no plain number: a structure by value, a date, a type that another package adds.
    fn numpy_scalar(&mut self, value: Obj<'_>, place: Place<'_>) -> R<Option<*mut c_void>> {
        let Some(numpy) = scalar_types::imported(c"numpy")? else {
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
                "{} is of type {}, which has no counterpart on a device: there, long double is double (pass a numpy.float64 \
                 or a numpy.complex128)",
                place.name(),
                full_name(value)
            );
            return Err(errors::raise(Exc::Type, &message));
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
        // SAFETY: a bytes object that is held here, with `len` bytes.
        self.bytes(unsafe { std::slice::from_raw_parts(data, len) })
            .map(Some)
    }

    /// A structure, union, array or pointer of ctypes, by value.
    fn ctypes_value(&mut self, value: Obj<'_>, place: Place<'_>) -> R<Option<*mut c_void>> {
        let Some(ctypes) = scalar_types::imported(c"_ctypes")? else {
            return Ok(None);
        };
        let is = |name| -> R<bool> {
            let class = ctypes.obj().attribute(name)?;
            Ok(class.is_some_and(|class| value.instance_of_type(class.ptr().cast())))
        };
        if is(c"_SimpleCData")? {
            // The others hold an object, a string of this process's, or a type that only hosts have.
            let swapped = value.attribute(c"__ctype_le__")?;
            let same = swapped.is_none_or(|t| std::ptr::eq(t.ptr().cast(), value.ty()));
            let letter = value.attribute(c"_type_")?;
            let letter = letter.and_then(|l| l.obj().text()).unwrap_or_default();
            if !same || !matches!(letter.as_str(), "z" | "Z" | "F" | "D") {
                return Ok(None);
            }
        } else if !(is(c"Structure")? || is(c"Union")? || is(c"Array")? || is(c"_Pointer")?) {
            return Ok(None);
        } else if value.attribute(c"_swappedbytes_")?.is_some() {
            let message = format!(
                "{} is of type {}, of swapped byte order; devices are little-endian",
                place.name(),
                full_name(value)
            );
            return Err(errors::raise(Exc::Type, &message));
        }
        let Some(view) = Buffer::get(value)? else {
            return Ok(None);
        };
        place.check(view.len(), value)?;
        // A copy: the object may be changed, and its memory moved, while the driver reads.
        // SAFETY: the view holds as many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(view.address() as *const u8, view.len()) };
        self.bytes(bytes).map(Some)
    }
}

/// The arguments as C hands them to a function: borrowed references, all live.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [*mut ffi::PyObject]);

impl<'a> Args<'a> {
    /// Wraps borrowed references.
    ///
    /// # Safety
    ///
    /// Each is a live object for `'a`, on a thread that is attached to the interpreter.
    pub unsafe fn new(args: &'a [*mut ffi::PyObject]) -> Args<'a> {
        Args(args)
    }

    /// How many.
    pub fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn get(self, index: usize) -> Obj<'a> {
        // SAFETY: live, by the contract of `new`.
        unsafe { Obj::new(self.0[index]) }
    }
}

/// The same object as PyO3 has it.
#[inline(always)]
fn bound(value: Obj<'_>) -> Borrowed<'_, '_, PyAny> {
    // SAFETY: the object is live, and conversions run on attached threads only.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), value.ptr()) }
}

/// One argument's position, and the parameter it is for.
#[derive(Clone, Copy)]
struct Place<'a> {
    index: usize,
    /// Bytes of the parameter, or `UNKNOWN`.
    size: usize,
    target: &'a Target<'a>,
}

/// The size of a parameter that the driver does not tell.
const UNKNOWN: usize = usize::MAX;

impl Place<'_> {
    /// How messages begin.
    #[cold]
    fn name(self) -> String {
        format!(
            "{}(): kernel argument {} (counted from 0)",
            self.target.function, self.index
        )
    }

    /// The parameter, for messages.
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

    /// The address of a buffer, which is held from here on.
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

    /// Refuses a value of another size than the parameter.
    #[inline(always)]
    fn check(self, size: usize, value: Obj<'_>) -> R<()> {
        if size == self.size || self.size == UNKNOWN {
            return Ok(());
        }
        Err(wrong_size(value, size, self.size, self))
    }
}

/// An `int`: the low bytes of the word are the value. It has the size of its parameter, and 8 bytes where that is not
/// known.
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
            "{} is {}, which stands for an integer or an address of up to 8 bytes, but goes to {}",
            place.name(),
            described(value),
            place.parameter()
        );
        return Err(errors::raise(Exc::Type, &message));
    }
    let bits = 8 * size as u32;
    // As a signed or as an unsigned number: the driver does not tell which the parameter is.
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
    errors::raise(Exc::Overflow, &message)
}

/// An integer as text; very large ones by their kind only.
#[cold]
fn described(value: Obj<'_>) -> String {
    // SAFETY: the object is live; a failure (too many digits) is replaced by our words.
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
    errors::raise(Exc::Type, &message)
}

#[cold]
fn wrong_size(value: Obj<'_>, size: usize, wanted: usize, place: Place<'_>) -> Raised {
    let is = |ty: *mut ffi::PyTypeObject| value.instance_of_type(ty);
    let hint = if is(&raw mut ffi::PyFloat_Type) && scalar_types::exact(value.ty()).is_none() {
        match wanted {
            2 => "; a Python float is a double: pass numpy.float16(x) for a half",
            4 => {
                "; a Python float is a double: pass numpy.float32(x) or ctypes.c_float(x) for a float"
            }
            _ => "",
        }
    } else if is(&raw mut ffi::PyComplex_Type)
        && scalar_types::exact(value.ty()).is_none()
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
    errors::raise(Exc::Type, &message)
}

#[cold]
fn closed(place: Place<'_>) -> Raised {
    let message = format!("{} is a Buffer that was closed", place.name());
    errors::raise(Exc::Runtime, &message)
}

#[cold]
fn refuse(value: Obj<'_>, place: Place<'_>) -> Raised {
    let message = if value.is_none() {
        format!("{} is None; pass 0 for a null pointer", place.name())
    } else {
        format!(
            "{} is of type {}; kernels take Python, NumPy and ctypes numbers, structures of NumPy and ctypes by value, \
             buffers and other memory of the device, addresses as int, and handles",
            place.name(),
            full_name(value)
        )
    };
    errors::raise(Exc::Type, &message)
}

/// A type's name with its module, as in `numpy.float64`.
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

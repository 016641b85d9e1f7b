//! Conversion of the values passed as `kernelParams` in `cuda.bindings`.
//!
//! Accepted forms: `None` or 0; the address of an existing `void **` (an int, a handle, an object with `__index__` or
//! `getPtr()`); an object with the buffer protocol that contains such an array (NumPy); and a pair (values, types) of
//! tuples or lists, where each type is a simple ctypes type, or `None` for an enum member or a value that has an address
//! of its own. A ctypes type is recognised by the address of its type object.

use std::sync::OnceLock;

use cupyrite_sys::waits;
use pyo3::ffi;

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::words::address as call_address;
use crate::bindings::descriptor::Int;
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::bindings::kernel_parameters::{Packer, Parameters, value};
use crate::cpython;
use crate::cpython::internals::{scalar_values, tuple};
use crate::cpython::pointer_map::PointerMap;
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::types;

/// C representation of a ctypes type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Pack {
    Bool,
    Char,
    WChar,
    I8,
    I16,
    I32,
    U8,
    U16,
    U32,
    Bits64,
    Float,
    Double,
    Pointer,
}

impl Pack {
    const ALL: [Pack; 13] = [
        Pack::Bool,
        Pack::Char,
        Pack::WChar,
        Pack::I8,
        Pack::I16,
        Pack::I32,
        Pack::U8,
        Pack::U16,
        Pack::U32,
        Pack::Bits64,
        Pack::Float,
        Pack::Double,
        Pack::Pointer,
    ];
}

/// The ctypes types, looked up on first use.
struct CtypesTypes {
    packs: PointerMap<64>,
    /// `ctypes.c_void_p`
    void_p: usize,
    /// The base of every ctypes class.
    data: usize,
}

impl CtypesTypes {
    fn load() -> R<CtypesTypes> {
        const NAMES: [(&std::ffi::CStr, Pack); 16] = [
            (c"c_bool", Pack::Bool),
            (c"c_char", Pack::Char),
            (c"c_wchar", Pack::WChar),
            (c"c_byte", Pack::I8),
            (c"c_ubyte", Pack::U8),
            (c"c_short", Pack::I16),
            (c"c_ushort", Pack::U16),
            (c"c_int", Pack::I32),
            (c"c_uint", Pack::U32),
            (c"c_long", Pack::Bits64),
            (c"c_ulong", Pack::Bits64),
            (c"c_longlong", Pack::Bits64),
            (c"c_ulonglong", Pack::Bits64),
            (c"c_float", Pack::Float),
            (c"c_double", Pack::Double),
            (c"c_void_p", Pack::Pointer),
        ];
        // SAFETY: the name ends with a nul.
        let module = Owned::take(unsafe { ffi::PyImport_ImportModule(c"ctypes".as_ptr()) })?;
        let get = |name: &std::ffi::CStr| -> R<usize> {
            let class = module.obj().attribute(name)?.ok_or_else(|| {
                errors::raise(
                    ExceptionKind::Runtime,
                    "the module ctypes lacks one of its types",
                )
            })?;
            // The reference is leaked: the map needs the class to stay alive.
            Ok(class.into_ptr().expose_provenance())
        };
        let mut known = CtypesTypes {
            packs: PointerMap::new(),
            void_p: get(c"c_void_p")?,
            data: 0,
        };
        for (name, pack) in NAMES {
            // Some names refer to the same type.
            let class = std::ptr::with_exposed_provenance_mut(get(name)?);
            known.packs.insert(class, pack as u16);
        }
        // Structure derives from _CData and object; _CData has no public name.
        let structure = module.obj().attribute(c"Structure")?.ok_or(Raised)?;
        let bases = structure.obj().attribute(c"__mro__")?.ok_or(Raised)?;
        let bases = bases.obj().snapshot()?;
        let base = bases.len().saturating_sub(2);
        known.data = bases.get(base).owned().into_ptr().expose_provenance();
        scalar_values::learn()?;
        Ok(known)
    }

    fn get() -> R<&'static CtypesTypes> {
        static KNOWN: OnceLock<CtypesTypes> = OnceLock::new();
        if let Some(known) = KNOWN.get() {
            return Ok(known);
        }
        let known = CtypesTypes::load()?;
        Ok(KNOWN.get_or_init(|| known))
    }

    #[inline]
    fn pack(&self, class: *mut ffi::PyObject) -> Option<Pack> {
        self.packs
            .get(class.cast())
            .map(|code| Pack::ALL[usize::from(code)])
    }
}

impl Packer {
    /// Packs `obj` and returns the address of the array of pointers, 0 for none.
    ///
    /// # Errors
    ///
    /// `TypeError` for an object of none of the accepted forms, tuples of different length, an unknown type, or a value
    /// that does not match its type; `OverflowError` for an integer too large for its type.
    pub fn pack(&mut self, obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
        // The launch that follows may print.
        waits::note();
        if obj.is_none() {
            return Ok(0);
        }
        if obj.is_tuple() || obj.is_list() {
            return self.pack_pair(obj, site, keep);
        }
        if obj.is_int() || types::handle_value(obj).is_some() {
            return convert::handle(obj, Int::U64, site);
        }
        // A NumPy scalar is treated as an array of one address, as in NVIDIA's package.
        if let Some(view) = Buffer::get(obj)? {
            let address = view.address();
            keep.buffers.push(view);
            return Ok(address);
        }
        if obj.has_slot(ffi::Py_nb_index) {
            return convert::int(obj, Int::U64, site);
        }
        if let Some(address) = convert::get_ptr(obj, site)? {
            return Ok(address);
        }
        Err(Packer::not_a_form(obj, site))
    }

    #[cold]
    fn not_a_form(obj: Obj<'_>, site: Site) -> Raised {
        let wanted = "None, an address, an object with the buffer protocol, or a pair of tuples (values, types)";
        errors::wrong_type(site, wanted, obj)
    }

    fn pack_pair(&mut self, obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
        let is_pair = |o: Obj<'_>| o.is_tuple() || o.is_list();
        let pair = Fixed::new(obj)?;
        if pair.len() != 2 || !is_pair(pair.get(0)) || !is_pair(pair.get(1)) {
            return Err(Packer::not_a_form(obj, site));
        }
        let values = Fixed::new(pair.get(0))?;
        let kinds = Fixed::new(pair.get(1))?;
        let n = values.len();
        if n != kinds.len() {
            let message = format!(
                "{} has tuples with different length: {n} values, {} types",
                site.prefix(),
                kinds.len()
            );
            return Err(errors::raise(ExceptionKind::Type, &message));
        }
        if n == 0 {
            return Ok(0);
        }
        let known = CtypesTypes::get()?;
        let mut parameters = self.begin(n)?;
        let mut index = 0;
        while index < n {
            let kind = kinds.get(index);
            let run = index..kinds.end_of_run(index);
            index = run.end;
            if kind.is_none() {
                for index in run {
                    let value = values.get(index);
                    own_address(value, &mut parameters, known, index, site, keep)?;
                }
                continue;
            }
            let Some(pack) = known.pack(kind.ptr()) else {
                return Err(unsupported(kind, run.start, site));
            };
            Run {
                values: &values,
                range: run,
                pack,
                known,
                site,
            }
            .write(&mut parameters)?;
        }
        let pointers = parameters.pointers();
        // Keeps the items of lists alive: another thread may change a list while C reads.
        for fixed in [pair, values, kinds] {
            keep.objects.extend(fixed.into_snapshot());
        }
        Ok(pointers.expose_provenance() as u64)
    }
}

/// The items of a tuple, or a copy of the items of a list.
struct Fixed<'a> {
    /// The items, in the tuple's memory or in `copied`.
    items: &'a [Obj<'a>],
    /// Holds the items of a list.
    snapshot: Option<Owned>,
    /// The pointers to the items, where the layout of tuples is not known.
    _copied: Vec<*mut ffi::PyObject>,
}

impl<'a> Fixed<'a> {
    #[inline]
    fn new(obj: Obj<'a>) -> R<Fixed<'a>> {
        let (tuple, snapshot) = if obj.is_tuple() {
            (obj, None)
        } else {
            let snapshot = obj.snapshot()?.into_owned();
            // SAFETY: the returned `Fixed` owns the copy.
            (unsafe { Obj::new(snapshot.ptr()) }, Some(snapshot))
        };
        // SAFETY: this is a tuple.
        let len = unsafe { ffi::PyTuple_Size(tuple.ptr()) };
        let len = len.max(0).cast_unsigned();
        let mut copied = Vec::new();
        let items = match tuple::items(tuple) {
            Some(items) => items,
            None => {
                // SAFETY: the index is within the tuple.
                let item = |index: usize| unsafe {
                    ffi::PyTuple_GetItem(tuple.ptr(), index.cast_signed())
                };
                copied.extend((0..len).map(item));
                copied.as_ptr()
            }
        };
        let items = match len {
            // An empty tuple has no address of items.
            0 => &[],
            // SAFETY: `len` pointers to items that the tuple keeps alive, which the caller or `snapshot` owns; an `Obj` is such
            // a pointer.
            len => unsafe { std::slice::from_raw_parts(items.cast::<Obj<'a>>(), len) },
        };
        Ok(Fixed {
            items,
            snapshot,
            _copied: copied,
        })
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    fn get(&self, index: usize) -> Obj<'a> {
        self.items[index]
    }

    /// The index after the last of the items from `index` on that are the same object.
    #[inline(always)]
    fn end_of_run(&self, index: usize) -> usize {
        let (first, others) = (self.items[index], &self.items[index + 1..]);
        let same = others.iter().take_while(|item| **item == first).count();
        index + 1 + same
    }

    fn into_snapshot(self) -> Option<Owned> {
        self.snapshot
    }
}

#[cold]
fn unsupported(kind: Obj<'_>, index: usize, site: Site) -> Raised {
    // SAFETY: `kind` is live for the call.
    let text = match Owned::take(unsafe { ffi::PyObject_Repr(kind.ptr()) }) {
        Ok(text) => text.obj().text().unwrap_or_default(),
        Err(Raised) => return Raised,
    };
    let message = format!(
        "{}: Unsupported type: {text} (item {index}); use a simple ctypes type or None",
        site.prefix()
    );
    errors::raise(ExceptionKind::Type, &message)
}

/// Sets a parameter whose type is `None` to the address of the value itself.
fn own_address(
    value: Obj<'_>,
    parameters: &mut Parameters<'_>,
    known: &CtypesTypes,
    index: usize,
    site: Site,
    keep: &mut Keep,
) -> R<()> {
    let address = if let Some(address) = scalar_values::address(value) {
        address
    } else if let Some(address) = convert::handle_storage(value) {
        address
    } else if let Some(address) = value::structure(value)? {
        address
    } else if value.instance_of_type(std::ptr::with_exposed_provenance_mut(known.data))
        && let Some(view) = Buffer::get(value)?
    {
        let address = view.address();
        keep.buffers.push(view);
        std::ptr::with_exposed_provenance_mut(call_address(address))
    } else if value.is_int() {
        if value.is_exact_int() || !types::is_enum_member(value) {
            return Err(no_address(value, index, site));
        }
        let word = convert::enumerator(value, site)?;
        // SAFETY: callers pass the index of a parameter.
        unsafe { parameters.set_word(index, word) };
        return Ok(());
    } else {
        match convert::get_ptr(value, site)? {
            Some(address) => std::ptr::with_exposed_provenance_mut(call_address(address)),
            None => return Err(no_address(value, index, site)),
        }
    };
    // SAFETY: as above; the caller keeps the value alive.
    unsafe { parameters.set_address(index, address.cast()) };
    Ok(())
}

#[cold]
fn no_address(value: Obj<'_>, index: usize, site: Site) -> Raised {
    let message = format!(
        "{}: item {index} has the type None, so it must know its own address (a ctypes instance or an object with \
         getPtr()), but it is {}",
        site.prefix(),
        value.type_name()
    );
    errors::raise(ExceptionKind::Type, &message)
}

/// Values with one ctypes type.
struct Run<'a> {
    values: &'a Fixed<'a>,
    range: std::ops::Range<usize>,
    pack: Pack,
    known: &'a CtypesTypes,
    site: Site,
}

impl Run<'_> {
    /// Packs the values. The type is dispatched once, so that the loop over a type's usual values is short.
    #[inline(always)]
    fn write(self, parameters: &mut Parameters<'_>) -> R<()> {
        match self.pack {
            Pack::Bool => self.each(parameters, |value| value.exact_bool()),
            Pack::I8 => self.each(parameters, signed::<1>),
            Pack::I32 => self.each(parameters, signed::<4>),
            // As in ctypes: types without a range check take the low bits.
            Pack::U8 => self.each(parameters, |value| Some(exact_int(value)? & 0xFF)),
            Pack::I16 | Pack::U16 => {
                self.each(parameters, |value| Some(exact_int(value)? & 0xFFFF))
            }
            Pack::U32 => self.each(parameters, |value| Some(exact_int(value)? & 0xFFFF_FFFF)),
            Pack::Bits64 => self.each(parameters, exact_int),
            Pack::Pointer => self.each(parameters, |value| {
                exact_int(value).filter(|word| word.cast_signed() >= 0)
            }),
            Pack::Double => self.each(parameters, |value| Some(exact_float(value)?.to_bits())),
            #[allow(clippy::cast_possible_truncation)] // a C float is what was asked for
            Pack::Float => self.each(parameters, |value| {
                Some(u64::from((exact_float(value)? as f32).to_bits()))
            }),
            Pack::Char | Pack::WChar => self.each(parameters, |_| None),
        }
    }

    /// Packs each value with `usual`, which runs no user code, or [`pack_value`] where it returns `None`.
    #[inline(always)]
    fn each(
        self,
        parameters: &mut Parameters<'_>,
        usual: impl Fn(Obj<'_>) -> Option<u64>,
    ) -> R<()> {
        for (index, &value) in self.range.clone().zip(&self.values.items[self.range]) {
            let word = match usual(value) {
                Some(word) => word,
                None => pack_value(value, self.pack, self.known, index, self.site)?,
            };
            // SAFETY: the range is within the parameters.
            unsafe { parameters.set_word(index, word) };
        }
        Ok(())
    }
}

/// The value of an exact `int`; `None` if it does not fit into a signed 64-bit integer, and for other objects.
#[inline(always)]
fn exact_int(value: Obj<'_>) -> Option<u64> {
    if !value.is_exact_int() {
        return None;
    }
    cpython::as_i64_if_fits(value).map(i64::cast_unsigned)
}

/// As [`exact_int`], for values within a signed integer of `BYTES` bytes; its bits alone.
#[inline(always)]
fn signed<const BYTES: usize>(value: Obj<'_>) -> Option<u64> {
    let word = exact_int(value)?;
    value::fits_signed(word.cast_signed(), BYTES).then_some(word & (u64::MAX >> (64 - 8 * BYTES)))
}

/// The value of an exact `float`.
#[inline(always)]
fn exact_float(value: Obj<'_>) -> Option<f64> {
    // SAFETY: the object is an exact float; reading its value runs no user code.
    (value.is_exact_float()).then(|| unsafe { ffi::PyFloat_AsDouble(value.ptr()) })
}

/// The bits of `value`, converted to `pack`.
#[inline(never)]
fn pack_value(value: Obj<'_>, pack: Pack, known: &CtypesTypes, index: usize, site: Site) -> R<u64> {
    match pack {
        Pack::Double | Pack::Float => {
            let number = match value::double(value) {
                Ok(number) => number,
                Err(Raised) => {
                    // SAFETY: an exception is set; the exception class is immortal.
                    if unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) } == 0 {
                        return Err(Raised);
                    }
                    cpython::clear();
                    let inner = simple_value(value, known, index, pack, site)?;
                    convert::float(inner.obj(), site)?
                }
            };
            #[allow(clippy::cast_possible_truncation)] // a C float is what was asked for
            Ok(if pack == Pack::Double {
                number.to_bits()
            } else {
                u64::from((number as f32).to_bits())
            })
        }
        Pack::Pointer => pointer(value, known, index, site),
        Pack::Bool | Pack::Char | Pack::WChar => small(value, pack, known, index, site),
        _ => {
            if value.is_exact_int() {
                return integer(value, pack, index, site);
            }
            integer_slow(value, pack, known, index, site)
        }
    }
}

fn integer(value: Obj<'_>, pack: Pack, index: usize, site: Site) -> R<u64> {
    let number = cpython::as_i64_if_fits(value);
    // Unsigned and wide types take the low bits, as in ctypes; `c_byte` and `c_int` are range-checked, as in NVIDIA's
    // package.
    let fits = match pack {
        Pack::I8 => number.is_some_and(|number| value::fits_signed(number, 1)),
        Pack::I32 => number.is_some_and(|number| value::fits_signed(number, 4)),
        _ => true,
    };
    if !fits {
        let message = format!(
            "{}: item {index} does not fit in its ctypes type",
            site.prefix()
        );
        return Err(errors::raise(ExceptionKind::Overflow, &message));
    }
    let word = match number {
        Some(number) => number.cast_unsigned(),
        None => value::low_bits(value),
    };
    Ok(match pack {
        Pack::I8 | Pack::U8 => word & 0xFF,
        Pack::I16 | Pack::U16 => word & 0xFFFF,
        Pack::I32 | Pack::U32 => word & 0xFFFF_FFFF,
        _ => word,
    })
}

#[inline(never)]
fn integer_slow(
    value: Obj<'_>,
    pack: Pack,
    known: &CtypesTypes,
    index: usize,
    site: Site,
) -> R<u64> {
    if value.is_int() {
        return integer(value, pack, index, site);
    }
    if value.has_slot(ffi::Py_nb_index) {
        // SAFETY: `value` is live for the call.
        let number = Owned::take(unsafe { ffi::PyNumber_Index(value.ptr()) })?;
        return integer(number.obj(), pack, index, site);
    }
    let inner = simple_value(value, known, index, pack, site)?;
    if !inner.obj().is_int() {
        return Err(wrong_value(value, index, pack, site));
    }
    integer(inner.obj(), pack, index, site)
}

/// The `value` of a ctypes instance.
fn simple_value(
    value: Obj<'_>,
    known: &CtypesTypes,
    index: usize,
    pack: Pack,
    site: Site,
) -> R<Owned> {
    if value.instance_of_type(std::ptr::with_exposed_provenance_mut(known.data))
        && let Some(inner) = value.attribute(c"value")?
    {
        return Ok(inner);
    }
    Err(wrong_value(value, index, pack, site))
}

#[cold]
fn wrong_value(value: Obj<'_>, index: usize, pack: Pack, site: Site) -> Raised {
    let wanted = match pack {
        Pack::Float | Pack::Double => "a real number",
        Pack::Pointer => "an integer, a ctypes.c_void_p, an object with getPtr() or None",
        Pack::Char => "bytes of length 1 or an integer",
        Pack::WChar => "a string of length 1 or an integer",
        _ => "an integer",
    };
    let message = format!(
        "{}: item {index} must be {wanted}, not {}",
        site.prefix(),
        value.type_name()
    );
    errors::raise(ExceptionKind::Type, &message)
}

fn pointer(value: Obj<'_>, known: &CtypesTypes, index: usize, site: Site) -> R<u64> {
    if value.is_int() {
        return convert::int(value, Int::U64, site);
    }
    if value.is_none() {
        return Ok(0);
    }
    // Objects with an address pass it: the kernel receives the address of the handle or struct, as in NVIDIA's package.
    // (`int(handle)` passes the handle.)
    if let Some(address) = convert::handle_storage(value) {
        return Ok(address.addr() as u64);
    }
    if let Some(address) = value::structure(value)? {
        return Ok(address.addr() as u64);
    }
    if value.instance_of_type(std::ptr::with_exposed_provenance_mut(known.void_p)) {
        let inner = simple_value(value, known, index, Pack::Pointer, site)?;
        if inner.obj().is_none() {
            return Ok(0);
        }
        return convert::int(inner.obj(), Int::U64, site);
    }
    if let Some(address) = convert::get_ptr(value, site)? {
        return Ok(address);
    }
    if value.has_slot(ffi::Py_nb_index) {
        return convert::int(value, Int::U64, site);
    }
    Err(wrong_value(value, index, Pack::Pointer, site))
}

fn small(value: Obj<'_>, pack: Pack, known: &CtypesTypes, index: usize, site: Site) -> R<u64> {
    let inner;
    let value = if value.instance_of_type(std::ptr::with_exposed_provenance_mut(known.data)) {
        inner = simple_value(value, known, index, pack, site)?;
        inner.obj()
    } else {
        value
    };
    match pack {
        Pack::Bool => {
            // SAFETY: `value` is live for the call.
            match unsafe { ffi::PyObject_IsTrue(value.ptr()) } {
                -1 => Err(Raised),
                truth => Ok(u64::from(truth != 0)),
            }
        }
        Pack::Char if value.is_bytes() => {
            let (data, len) = value.bytes_data();
            if len != 1 {
                return Err(wrong_value(value, index, pack, site));
            }
            // SAFETY: `len` is 1.
            Ok(u64::from(unsafe { *data }))
        }
        Pack::WChar if value.is_str() => {
            let text = value.text().unwrap_or_default();
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(u64::from(u32::from(c))),
                _ => Err(wrong_value(value, index, pack, site)),
            }
        }
        _ if value.is_int() => integer(value, Pack::U32, index, site),
        _ => Err(wrong_value(value, index, pack, site)),
    }
}

//! Struct classes of the raising modules (`cuda.bindings.nvml.PciInfo`): memory, lifetime, the Python type.
//!
//! An object represents `count` structs, `stride` bytes apart, starting at `base.data`. The memory belongs to the object
//! itself, to another object (a live view, `base.root`), to a buffer (`from_buffer`) or to an array (`from_data`), or it is
//! foreign (`from_ptr`): then [`crate::types::memory`] checks every access. The memory never moves, so exported buffers need
//! not be counted.

pub mod array;
pub mod buffer;
pub mod columns;
pub mod fields;
pub mod from_memory;
pub mod pointers;
pub mod repr;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::cpython;
use crate::cpython::{Owned, R, Raised};
use crate::types::errors::{ExceptionKind, guard_or, name_of_type, raise, type_name};
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Field, FieldKind, Kind};
use crate::types::{memory, registry, structs};

/// An object of a `Kind::Pod` class.
#[repr(C)]
pub struct Pod {
    /// Common part. `root` is null or the `Pod` whose memory this one views.
    pub base: Instance,
    /// Number of structs.
    pub count: usize,
    /// Distance in bytes from one struct to the next.
    pub stride: isize,
    /// Whether assignment raises.
    pub readonly: bool,
    /// Whether this is a struct-array class, for any number of structs.
    pub array: bool,
    /// Bytes allocated by this object; 0 if it does not own the memory.
    own: usize,
    /// Array or `owner` of `from_ptr` that keeps the memory alive; may be null.
    pub keeper: *mut ffi::PyObject,
    /// Boxed buffer view of the memory; may be null.
    pub buffer: *mut ffi::Py_buffer,
}

impl Pod {
    /// The class.
    pub fn id(&self) -> ClassId {
        ClassId(self.base.id)
    }

    /// Size in bytes of one struct.
    pub fn size(&self) -> usize {
        table::class(self.id()).1.size as usize
    }

    /// Address of struct `i`, which must be below `count`.
    pub fn at(&self, i: usize) -> *mut u8 {
        self.base.data.wrapping_offset(self.stride * i as isize)
    }

    /// Whether the structs are contiguous.
    pub fn contiguous(&self) -> bool {
        self.count < 2 || self.stride == self.size() as isize
    }

    /// Whether the memory is foreign, so that it may have been freed.
    pub fn foreign(&self) -> bool {
        self.base.state & object::FOREIGN != 0
    }

    /// Start and end address of the memory of all structs. With a negative stride, the structs lie below `data`.
    pub fn span(&self) -> (usize, usize) {
        if self.count == 0 {
            return (self.base.data as usize, self.base.data as usize);
        }
        let (first, last) = (self.at(0) as usize, self.at(self.count - 1) as usize);
        (first.min(last), first.max(last) + self.size())
    }
}

fn layout(len: usize) -> Layout {
    // Alignment 16 suffices for every C type here; `zeroed` checks the length.
    Layout::from_size_align(len, 16).unwrap_or(Layout::new::<[u64; 2]>())
}

/// The object as a pod.
///
/// # Safety
/// `obj` is a live object.
pub unsafe fn cast(obj: *mut ffi::PyObject) -> Option<*mut Pod> {
    // SAFETY: as promised by the caller.
    let id = unsafe { registry::of(obj)? };
    (table::class(id).1.kind == Kind::Pod).then_some(obj.cast())
}

/// The object as a pod of exactly class `id`.
///
/// # Safety
/// `obj` is a live object.
pub unsafe fn cast_to(obj: *mut ffi::PyObject, id: ClassId) -> Option<*mut Pod> {
    // SAFETY: the caller guarantees a live object; every object of the class is a pod.
    unsafe { (registry::of(obj)? == id).then_some(obj.cast()) }
}

/// A new object of type `ty` for `count` structs, with null `data`.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `ty` is the type of class `id` or derived from it; the GIL is held.
pub unsafe fn bare(ty: *mut ffi::PyTypeObject, id: ClassId, count: usize) -> R<*mut Pod> {
    let class = table::class(id).1;
    // SAFETY: the caller guarantees the type, whose basicsize is that of `Pod`; allocation zeroes the memory.
    unsafe {
        let obj = ffi::PyType_GenericAlloc(ty, 0).cast::<Pod>();
        if obj.is_null() {
            return Err(Raised);
        }
        (*obj).base.id = id.0;
        (*obj).count = count;
        (*obj).stride = class.size as isize;
        (*obj).array = class.flags & ARRAY != 0;
        Ok(obj)
    }
}

/// A new object of type `ty` with `count` zeroed structs of its own.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `ty` is the type of class `id` or derived from it; the GIL is held.
pub unsafe fn zeroed(ty: *mut ffi::PyTypeObject, id: ClassId, count: usize) -> R<*mut Pod> {
    let size = table::class(id).1.size as usize;
    // SAFETY: the caller guarantees the type. The layout has a non-zero size below isize::MAX; `own` stays 0 if allocation
    // fails.
    unsafe {
        let Some(len) = size
            .max(1)
            .checked_mul(count.max(1))
            .filter(|len| *len < isize::MAX as usize / 2)
        else {
            ffi::PyErr_NoMemory();
            return Err(Raised);
        };
        let obj = bare(ty, id, count)?;
        let data = alloc_zeroed(layout(len));
        if data.is_null() {
            ffi::Py_DECREF(obj.cast());
            ffi::PyErr_NoMemory();
            return Err(Raised);
        }
        (*obj).own = len;
        (*obj).base.data = data;
        Ok(obj)
    }
}

/// A new object of class `id` with `count` zeroed structs of its own.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// The GIL is held.
pub unsafe fn fresh(id: ClassId, count: usize) -> R<*mut Pod> {
    // SAFETY: the caller holds the GIL; the type is that of the class.
    unsafe { zeroed(type_of(id)?, id, count) }
}

/// The type of a class.
///
/// # Errors
/// The type could not be created.
///
/// # Safety
/// The GIL is held.
pub unsafe fn type_of(id: ClassId) -> R<*mut ffi::PyTypeObject> {
    // SAFETY: the caller holds the GIL.
    let ty = unsafe { registry::type_of(id) };
    if ty.is_null() { Err(Raised) } else { Ok(ty) }
}

/// A live view of `count` structs of class `id` at `data` inside the memory of `parent`.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `parent` is a live pod; the structs of the view lie in its memory; the GIL is held.
pub unsafe fn view(id: ClassId, parent: *mut Pod, data: *mut u8, count: usize) -> R<*mut Pod> {
    // SAFETY: the caller guarantees a live parent; the view owns a reference to the root, which therefore outlives it.
    unsafe {
        let obj = bare(type_of(id)?, id, count)?;
        let root = object::owner(parent.cast());
        ffi::Py_INCREF(root.cast());
        (*obj).base.root = root.cast();
        (*obj).base.data = data;
        (*obj).base.state = (*parent).base.state;
        (*obj).readonly = (*parent).readonly;
        Ok(obj)
    }
}

/// A new object with a contiguous copy of all structs of `from`, which keeps alive what `from` keeps alive.
///
/// # Errors
/// `MemoryError`, or `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `from` is a live pod; the GIL is held.
pub unsafe fn copy_of(from: *mut Pod) -> R<*mut Pod> {
    // SAFETY: the caller guarantees a live pod; the copy has the same number of structs.
    unsafe {
        let new = fresh((*from).id(), (*from).count)?;
        let object = Owned::take(new.cast())?;
        for i in 0..(*from).count {
            copy_struct(new, (*new).at(i), from, (*from).at(i))?;
        }
        object.into_ptr();
        Ok(new)
    }
}

/// Copies one struct of `from`'s class, with the references that keep its pointer targets alive.
///
/// # Errors
/// `ValueError` for a read-only target, or if foreign memory is no longer accessible.
///
/// # Safety
/// Both are live pods and the addresses lie in their memory; the GIL is held.
pub unsafe fn copy_struct(
    to: *mut Pod,
    target: *mut u8,
    from: *mut Pod,
    source: *const u8,
) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let size = (*from).size();
        let mut bytes = vec![0; size];
        peek(from, source, &mut bytes)?;
        poke(to, target, &bytes)?;
        let offset =
            |obj: *mut Pod, at: *const u8| (at as usize).wrapping_sub((*obj).base.data as usize);
        object::keep_same(
            to.cast(),
            offset(to, target),
            from.cast(),
            offset(from, source),
            size,
        );
    }
    Ok(())
}

/// Reads `out.len()` bytes at `at`.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod, and the bytes lie in its memory.
#[inline]
pub unsafe fn peek(this: *mut Pod, at: *const u8, out: &mut [u8]) -> R<()> {
    // SAFETY: as promised by the caller; foreign memory is read through the kernel.
    unsafe {
        if !(*this).foreign() {
            std::ptr::copy_nonoverlapping(at, out.as_mut_ptr(), out.len());
            return Ok(());
        }
        if memory::read(at as usize, out) {
            return Ok(());
        }
        gone(this, at as usize, "read")
    }
}

/// Writes bytes at `at`.
///
/// # Errors
/// `ValueError` for a read-only object, or if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod, and the bytes lie in its memory.
#[inline]
pub unsafe fn poke(this: *mut Pod, at: *mut u8, data: &[u8]) -> R<()> {
    // SAFETY: as promised by the caller; foreign memory is written through the kernel.
    unsafe {
        writable(this)?;
        if !(*this).foreign() {
            std::ptr::copy(data.as_ptr(), at, data.len());
            return Ok(());
        }
        if memory::write(at as usize, data) {
            return Ok(());
        }
        gone(this, at as usize, "written")
    }
}

#[cold]
unsafe fn gone(this: *mut Pod, address: usize, what: &str) -> R<()> {
    // SAFETY: callers pass a live pod.
    let name = unsafe { type_name(this.cast()) };
    raise(
        ExceptionKind::Value,
        &format!("{name}: the memory at {address:#x} given to from_ptr() cannot be {what}"),
    );
    Err(Raised)
}

/// Raises for a read-only object.
///
/// # Errors
/// `ValueError`.
///
/// # Safety
/// `this` is a live pod.
#[inline]
pub unsafe fn writable(this: *mut Pod) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        if (*this).readonly {
            let name = table::class((*this).id()).1.name();
            raise(
                ExceptionKind::Value,
                &format!("This {name} instance is read-only"),
            );
            return Err(Raised);
        }
    }
    Ok(())
}

/// Checks that foreign memory is readable, before it is lent to code that does not check accesses.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod.
pub unsafe fn present(this: *mut Pod) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let (start, end) = (*this).span();
        if (*this).foreign() && !memory::readable(start, end - start) {
            return gone(this, start, "read");
        }
    }
    Ok(())
}

/// Converts a result for C: a new reference, or null with an exception.
pub fn answer(result: R<Owned>) -> *mut ffi::PyObject {
    match result {
        Ok(value) => value.into_ptr(),
        Err(Raised) => null_mut(),
    }
}

/// Converts a result for C: 0, or -1 with an exception.
pub fn done(result: R<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Raised) => -1,
    }
}

// ---- the type

/// Creates the Python type of a class; null with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn make_type(id: ClassId) -> *mut ffi::PyTypeObject {
    let (lib, class) = table::class(id);
    let array = class.flags & ARRAY != 0;
    let mut methods = from_memory::methods(array);
    methods.push(structs_method_reduce(array));
    if array {
        methods.push(method_setstate());
    }
    methods.push(ffi::PyMethodDef::zeroed());
    let mut getset = vec![attribute_ptr()];
    if array {
        getset.push(array::attribute_data());
    }
    getset.extend(
        class
            .fields
            .iter()
            .filter(|f| !matches!(f.kind, FieldKind::Hidden(..)))
            .map(fields::getset),
    );
    getset.push(ffi::PyGetSetDef {
        name: std::ptr::null(),
        get: None,
        set: None,
        doc: std::ptr::null(),
        closure: null_mut(),
    });
    let mut slots = vec![
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_init, structs::init as *mut c_void),
        slot(ffi::Py_tp_dealloc, pod_dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, pod_traverse as *mut c_void),
        slot(ffi::Py_tp_clear, object::record_clear as *mut c_void),
        slot(ffi::Py_tp_repr, repr::repr as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare as *mut c_void),
        slot(ffi::Py_nb_int, to_int as *mut c_void),
        slot(ffi::Py_bf_getbuffer, buffer::get as *mut c_void),
        slot(ffi::Py_bf_releasebuffer, buffer::release as *mut c_void),
        slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getset.leak().as_mut_ptr().cast()),
    ];
    slots.extend(if array {
        array::slots()
    } else {
        vec![slot(
            ffi::Py_mp_ass_subscript,
            array::assign_single as *mut c_void,
        )]
    });
    // SAFETY: the slots match the layout of `Pod`; the caller holds the GIL.
    unsafe {
        structs::build(
            lib,
            class,
            size_of::<Pod>(),
            ffi::Py_TPFLAGS_HAVE_GC,
            slots,
            describe(id),
            None,
        )
    }
}

fn describe(id: ClassId) -> String {
    let (lib, class) = table::class(id);
    let (signature, what) = if class.flags & ARRAY != 0 {
        (
            "size=1",
            "`size` of them, zeroed; attributes are plain values for one and NumPy arrays for any other number.",
        )
    } else {
        ("", "Made with zeroed bytes.")
    };
    let mut doc = format!(
        "{}({signature})\n--\n\nC `{}`, {} bytes. {what}\n",
        class.name(),
        class.c_name,
        class.size
    );
    let shown: Vec<&Field> = class
        .fields
        .iter()
        .filter(|f| !matches!(f.kind, FieldKind::Hidden(..)))
        .collect();
    if !shown.is_empty() {
        doc.push_str("\nAttributes\n----------\n");
        for f in shown {
            doc.push_str(&format!("{} : {}\n", table::text(f.name), f.doc));
        }
    }
    doc.push_str(&format!("\nSee {}", lib.url));
    doc
}

fn attribute_ptr() -> ffi::PyGetSetDef {
    unsafe extern "C" fn get(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
        // SAFETY: the interpreter passes an instance.
        unsafe { to_int(obj) }
    }
    ffi::PyGetSetDef {
        name: c"ptr".as_ptr(),
        get: Some(get),
        set: None,
        doc: c"Address of the (first) struct; it stays the same while the object lives.".as_ptr(),
        closure: null_mut(),
    }
}

unsafe extern "C" fn to_int(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    unsafe { ffi::PyLong_FromUnsignedLongLong((*obj.cast::<Instance>()).data as u64) }
}

unsafe extern "C" fn new(
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls this slot with a type that inherits it.
        unsafe {
            let Some(id) = structs::class_of_type(ty) else {
                return null_mut();
            };
            let count = match size_argument(ty, id, args, kwargs) {
                Ok(count) => count,
                // A Python subclass may take its own arguments.
                Err(Raised)
                    if registry::exact(ty).is_none()
                        && ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) != 0 =>
                {
                    cpython::clear();
                    1
                }
                Err(Raised) => return null_mut(),
            };
            match zeroed(ty, id, count) {
                Ok(obj) => obj.cast(),
                Err(Raised) => null_mut(),
            }
        }
    })
}

unsafe fn size_argument(
    ty: *mut ffi::PyTypeObject,
    id: ClassId,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> R<usize> {
    // SAFETY: the caller passes the interpreter's arguments: `args` is a tuple, `kwargs` null or a dict.
    unsafe {
        if table::class(id).1.flags & ARRAY == 0 {
            return match structs::arguments::<0>(ty, args, kwargs, []) {
                Some(_) => Ok(1),
                None => Err(Raised),
            };
        }
        let [size] = structs::arguments(ty, args, kwargs, [c"size"]).ok_or(Raised)?;
        if size.is_null() {
            return Ok(1);
        }
        let what = || format!("{}(): size", name_of_type(ty));
        count_of(size, &what)
    }
}

/// Converts an argument to a number of structs.
///
/// # Errors
/// `TypeError` for a non-integer, `ValueError` for a negative number, `OverflowError`.
///
/// # Safety
/// `obj` is live; the GIL is held.
pub unsafe fn count_of(obj: *mut ffi::PyObject, what: &dyn Fn() -> String) -> R<usize> {
    // SAFETY: as promised by the caller.
    unsafe {
        if ffi::PyIndex_Check(obj) == 0 {
            raise(
                ExceptionKind::Type,
                &format!("{} must be an integer, not {}", what(), type_name(obj)),
            );
            return Err(Raised);
        }
        let n = ffi::PyNumber_AsSsize_t(obj, ffi::PyExc_OverflowError);
        if n == -1 && cpython::raised() {
            return Err(Raised);
        }
        if n < 0 {
            raise(
                ExceptionKind::Value,
                &format!("{} must not be negative: {n}", what()),
            );
            return Err(Raised);
        }
        Ok(n as usize)
    }
}

// ---- comparing and copying

unsafe extern "C" fn compare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: c_int,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls this slot with an instance as the first operand.
        unsafe {
            if op != ffi::Py_EQ && op != ffi::Py_NE {
                ffi::Py_INCREF(ffi::Py_NotImplemented());
                return ffi::Py_NotImplemented();
            }
            let this = a.cast::<Pod>();
            let same = match cast_to(b, (*this).id()) {
                Some(other) => equal(this, other),
                None => Ok(false),
            };
            match same {
                Ok(same) => ffi::PyBool_FromLong((same == (op == ffi::Py_EQ)).into()),
                Err(Raised) => null_mut(),
            }
        }
    })
}

/// Whether both have the same number of structs with equal members. Struct-array classes ignore padding bytes.
unsafe fn equal(a: *mut Pod, b: *mut Pod) -> R<bool> {
    // SAFETY: the caller passes live pods of the same class.
    unsafe {
        if (*a).count != (*b).count {
            return Ok(false);
        }
        let size = (*a).size();
        if !(*a).foreign() && !(*b).foreign() && (*a).contiguous() && (*b).contiguous() {
            let len = size * (*a).count;
            let x = std::slice::from_raw_parts((*a).base.data, len);
            if x == std::slice::from_raw_parts((*b).base.data, len) {
                return Ok(true);
            }
        }
        let (mut x, mut y) = (vec![0; size], vec![0; size]);
        let fields = table::class((*a).id()).1.fields;
        for i in 0..(*a).count {
            peek(a, (*a).at(i), &mut x)?;
            peek(b, (*b).at(i), &mut y)?;
            if x == y {
                continue;
            }
            let differs = |f: &Field| {
                let at = f.offset as usize;
                let end = (at + fields::width(f.kind)).min(size);
                x[at..end] != y[at..end]
            };
            if !(*a).array || fields.iter().any(differs) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn structs_method_reduce(array: bool) -> ffi::PyMethodDef {
    if !array {
        return structs::method_reduce();
    }
    ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: reduce,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__reduce__($self, /)\n--\n\nPickles and copies the structs' bytes.".as_ptr(),
    }
}

unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance.
        answer(unsafe { reduced(obj.cast()) })
    })
}

unsafe fn reduced(this: *mut Pod) -> R<Owned> {
    // SAFETY: the caller passes a live pod.
    unsafe {
        let size = (*this).size();
        let mut bytes = vec![0; size * (*this).count];
        for i in 0..(*this).count {
            peek(this, (*this).at(i), &mut bytes[i * size..(i + 1) * size])?;
        }
        let ty = cpython::Obj::new(ffi::Py_TYPE(this.cast()).cast()).owned();
        let count = cpython::from_u64((*this).count as u64)?;
        tuple([ty, tuple([count])?, cpython::from_bytes(&bytes)?])
    }
}

/// A tuple of `items`.
///
/// # Errors
/// `MemoryError`.
pub fn tuple<const N: usize>(items: [Owned; N]) -> R<Owned> {
    // SAFETY: `Owned` implies an attached thread; PyTuple_SetItem takes ownership of each item.
    unsafe {
        let tuple = Owned::take(ffi::PyTuple_New(N as isize))?;
        for (i, item) in items.into_iter().enumerate() {
            ffi::PyTuple_SetItem(tuple.ptr(), i as isize, item.into_ptr());
        }
        Ok(tuple)
    }
}

fn method_setstate() -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: c"__setstate__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: set_state,
        },
        ml_flags: ffi::METH_O,
        ml_doc: c"__setstate__($self, state, /)\n--\n\nTakes the structs' bytes back.".as_ptr(),
    }
}

unsafe extern "C" fn set_state(
    obj: *mut ffi::PyObject,
    state: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the descriptor checked that `obj` is an instance; METH_O passes one argument.
        answer(unsafe { put_state(obj.cast(), state) })
    })
}

unsafe fn put_state(this: *mut Pod, state: *mut ffi::PyObject) -> R<Owned> {
    // SAFETY: the caller passes a live pod and a live state; the bytes live as long as `state`.
    unsafe {
        let (at, len) = cpython::Obj::new(state).bytes_data();
        let size = (*this).size();
        if at.is_null() || len != size * (*this).count {
            let name = type_name(this.cast());
            let text = format!(
                "{name}.__setstate__(): {} bytes are required: this pickle was made for another layout",
                size * (*this).count
            );
            raise(ExceptionKind::Value, &text);
            return Err(Raised);
        }
        for i in 0..(*this).count {
            let bytes = std::slice::from_raw_parts(at.add(i * size), size);
            poke(this, (*this).at(i), bytes)?;
        }
    }
    Ok(cpython::none())
}

// ---- deallocation

unsafe extern "C" fn pod_dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes an unreferenced instance; views own references, so no view of its memory exists.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        let this = obj.cast::<Pod>();
        let mut exporter = null_mut();
        if !(*this).buffer.is_null() {
            let mut buffer = Box::from_raw(std::mem::replace(&mut (*this).buffer, null_mut()));
            exporter = buffer.obj;
            ffi::Py_XINCREF(exporter);
            ffi::PyBuffer_Release(&mut *buffer);
        }
        if (*this).own != 0 {
            dealloc((*this).base.data, layout((*this).own));
        }
        // Chains of objects that view each other's memory may be long: `drop_kept` avoids deep recursion.
        object::drop_kept(obj.cast(), [exporter, (*this).keeper, (*this).base.root]);
        object::free(obj);
    }
}

unsafe extern "C" fn pod_traverse(
    obj: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the collector passes a live instance; no other thread modifies objects while it runs.
    unsafe {
        let this = obj.cast::<Pod>();
        let mut rc = object::record_traverse(obj, visit, arg);
        if rc == 0 && !(*this).keeper.is_null() {
            rc = visit((*this).keeper, arg);
        }
        if rc == 0 && !(*this).buffer.is_null() && !(*(*this).buffer).obj.is_null() {
            rc = visit((*(*this).buffer).obj, arg);
        }
        rc
    }
}

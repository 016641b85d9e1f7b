//! Objects of the struct classes of the raising modules: layout, lifetime, checked access to their memory.
//!
//! An object represents `count` structs, `stride` bytes apart, starting at `base.data`. The memory belongs to the object
//! itself, to another object (a live view, `base.root`), to a buffer (`from_buffer`) or to an array (`from_data`), or it is
//! foreign (`from_ptr`): then [`cupyrite_sys::checked`] checks every access. The memory never moves, so exported buffers need
//! not be counted.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::object;
use crate::types::object::Instance;
use crate::types::registry;
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Kind};

/// An object of a `Kind::BufferStruct` class.
#[repr(C)]
pub struct BufferStruct {
    /// Common part. `root` is null or the `BufferStruct` whose memory this one views.
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

impl BufferStruct {
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

/// The object as a buffer struct.
pub fn cast(obj: Obj<'_>) -> Option<*mut BufferStruct> {
    let id = registry::of(obj)?;
    (table::class(id).1.kind == Kind::BufferStruct).then_some(obj.ptr().cast())
}

/// The object as a buffer struct of exactly class `id`, which is a class of buffer_structs.
pub fn cast_to(obj: Obj<'_>, id: ClassId) -> Option<*mut BufferStruct> {
    (registry::of(obj)? == id).then_some(obj.ptr().cast())
}

/// A buffer struct, and the reference that keeps it alive.
pub type OwnedStruct = (Owned, *mut BufferStruct);

/// A new object of type `ty` for `count` structs, with null `data`.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `ty` is the type of class `id` or derived from it.
unsafe fn alloc(ty: *mut ffi::PyTypeObject, id: ClassId, count: usize) -> R<OwnedStruct> {
    let class = table::class(id).1;
    // SAFETY: the caller guarantees the type, whose basicsize is that of `BufferStruct`; allocation zeroes the memory.
    unsafe {
        let object = Owned::take(ffi::PyType_GenericAlloc(ty, 0))?;
        let this = object.ptr().cast::<BufferStruct>();
        (*this).base.id = id.0;
        (*this).count = count;
        (*this).stride = class.size as isize;
        (*this).array = class.flags & ARRAY != 0;
        Ok((object, this))
    }
}

/// A new object of class `id` for `count` structs, with null `data`.
///
/// # Errors
/// `MemoryError`.
pub fn bare(id: ClassId, count: usize) -> R<OwnedStruct> {
    // SAFETY: the registry returns the type of the class.
    unsafe { alloc(registry::type_of(id)?, id, count) }
}

/// A new object of type `ty` with `count` zeroed structs of its own.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `ty` is the type of class `id` or derived from it.
pub unsafe fn zeroed(ty: *mut ffi::PyTypeObject, id: ClassId, count: usize) -> R<OwnedStruct> {
    let size = table::class(id).1.size as usize;
    let no_memory = || {
        // SAFETY: only sets an exception.
        unsafe { ffi::PyErr_NoMemory() };
        Raised
    };
    let len = size
        .max(1)
        .checked_mul(count.max(1))
        .filter(|len| *len < isize::MAX as usize / 2)
        .ok_or_else(no_memory)?;
    // SAFETY: the caller guarantees the type. The layout has a non-zero size below isize::MAX; `own` stays 0 if allocation
    // fails.
    unsafe {
        let (object, this) = alloc(ty, id, count)?;
        let data = alloc_zeroed(layout(len));
        if data.is_null() {
            return Err(no_memory());
        }
        (*this).own = len;
        (*this).base.data = data;
        Ok((object, this))
    }
}

/// A new object of class `id` with `count` zeroed structs of its own.
///
/// # Errors
/// `MemoryError`.
pub fn fresh(id: ClassId, count: usize) -> R<OwnedStruct> {
    // SAFETY: the registry returns the type of the class.
    unsafe { zeroed(registry::type_of(id)?, id, count) }
}

/// A live view of `count` structs of class `id` at `data` inside the memory of `parent`.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `parent` is a live buffer struct; the structs of the view lie in its memory.
pub unsafe fn view(
    id: ClassId,
    parent: *mut BufferStruct,
    data: *mut u8,
    count: usize,
) -> R<OwnedStruct> {
    // SAFETY: the caller guarantees a live parent; the view owns a reference to the root, which therefore outlives it.
    unsafe {
        let (object, this) = bare(id, count)?;
        let root = object::owner(parent.cast());
        (*this).base.root = Obj::new(root.cast()).owned().into_ptr();
        (*this).base.data = data;
        (*this).base.state = (*parent).base.state;
        (*this).readonly = (*parent).readonly;
        Ok((object, this))
    }
}

/// A new object with a contiguous copy of all structs of `from`, which keeps alive what `from` keeps alive.
///
/// # Errors
/// `MemoryError`, or `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `from` is a live buffer struct.
pub unsafe fn copy_of(from: *mut BufferStruct) -> R<OwnedStruct> {
    // SAFETY: the caller guarantees a live buffer struct; the copy has the same number of structs.
    unsafe {
        let (object, copy) = fresh((*from).id(), (*from).count)?;
        for i in 0..(*from).count {
            copy_struct(copy, (*copy).at(i), from, (*from).at(i))?;
        }
        Ok((object, copy))
    }
}

/// Copies one struct of `from`'s class, with the references that keep its pointer targets alive.
///
/// # Errors
/// `ValueError` for a read-only target, or if foreign memory is no longer accessible.
///
/// # Safety
/// Both are live buffer structs and the addresses lie in their memory; the GIL is held.
pub unsafe fn copy_struct(
    to: *mut BufferStruct,
    target: *mut u8,
    from: *mut BufferStruct,
    source: *const u8,
) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let size = (*from).size();
        let mut bytes = vec![0; size];
        peek(from, source, &mut bytes)?;
        poke(to, target, &bytes)?;
        let offset = |obj: *mut BufferStruct, at: *const u8| {
            (at as usize).wrapping_sub((*obj).base.data as usize)
        };
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
/// `this` is a live buffer struct, and the bytes lie in its memory.
#[inline]
pub unsafe fn peek(this: *mut BufferStruct, at: *const u8, out: &mut [u8]) -> R<()> {
    // SAFETY: as promised by the caller; foreign memory is read through the kernel.
    unsafe {
        if !(*this).foreign() {
            std::ptr::copy_nonoverlapping(at, out.as_mut_ptr(), out.len());
            return Ok(());
        }
        if checked::read_bytes(at as u64, out).is_ok() {
            return Ok(());
        }
        inaccessible(this, at as usize, "read")
    }
}

/// Writes bytes at `at`.
///
/// # Errors
/// `ValueError` for a read-only object, or if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live buffer struct, and the bytes lie in its memory.
#[inline]
pub unsafe fn poke(this: *mut BufferStruct, at: *mut u8, data: &[u8]) -> R<()> {
    // SAFETY: as promised by the caller; foreign memory is written through the kernel.
    unsafe {
        writable(this)?;
        if !(*this).foreign() {
            std::ptr::copy(data.as_ptr(), at, data.len());
            return Ok(());
        }
        if checked::write_bytes(at as u64, data).is_ok() {
            return Ok(());
        }
        inaccessible(this, at as usize, "written")
    }
}

#[cold]
unsafe fn inaccessible(this: *mut BufferStruct, address: usize, what: &str) -> R<()> {
    // SAFETY: callers pass a live buffer struct.
    let name = unsafe { Obj::new(this.cast()).type_short_name() };
    Err(raise(
        ExceptionKind::Value,
        &format!("{name}: the memory at {address:#x} given to from_ptr() cannot be {what}"),
    ))
}

/// Raises for a read-only object.
///
/// # Errors
/// `ValueError`.
///
/// # Safety
/// `this` is a live buffer struct.
#[inline]
pub unsafe fn writable(this: *mut BufferStruct) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        if (*this).readonly {
            let name = table::class((*this).id()).1.name();
            return Err(raise(
                ExceptionKind::Value,
                &format!("This {name} instance is read-only"),
            ));
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
/// `this` is a live buffer struct.
pub unsafe fn present(this: *mut BufferStruct) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let (start, end) = (*this).span();
        if (*this).foreign() && !checked::is_readable(start as u64, end - start) {
            return inaccessible(this, start, "read");
        }
    }
    Ok(())
}

/// Converts an argument to a number of structs.
///
/// # Errors
/// `TypeError` for a non-integer, `ValueError` for a negative number, `OverflowError`.
pub fn count_of(obj: Obj<'_>, what: &dyn Fn() -> String) -> R<usize> {
    // SAFETY: an `Obj` is live.
    unsafe {
        if ffi::PyIndex_Check(obj.ptr()) == 0 {
            let given = obj.type_short_name();
            return Err(raise(
                ExceptionKind::Type,
                &format!("{} must be an integer, not {given}", what()),
            ));
        }
        let n = ffi::PyNumber_AsSsize_t(obj.ptr(), ffi::PyExc_OverflowError);
        if n == -1 && cpython::raised() {
            return Err(Raised);
        }
        usize::try_from(n).map_err(|_| {
            raise(
                ExceptionKind::Value,
                &format!("{} must not be negative: {n}", what()),
            )
        })
    }
}

/// `tp_dealloc`
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn dealloc_struct(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes an unreferenced instance; views own references, so no view of its memory exists.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        let this = obj.cast::<BufferStruct>();
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

/// `tp_traverse`
///
/// # Safety
/// Called by the collector.
pub unsafe extern "C" fn traverse_struct(
    obj: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the collector passes a live instance; no other thread modifies objects while it runs.
    unsafe {
        let this = obj.cast::<BufferStruct>();
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

//! Struct classes of the modules whose functions raise (`cuda.bindings.nvml.PciInfo`): memory, lifetime, construction.
//!
//! An object stands for `count` structs, `stride` bytes apart, beginning at `base.data`. The memory is its own, another
//! object's (a live view, `base.root`), a buffer's (`from_buffer`), an array's (`from_data`) or somebody else's
//! (`from_ptr`: checked at every access, [`super::memory`]). It never moves, so exported buffers need no counting.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;

use super::object::{self, Instance, slot};
use super::table::{self, ClassId};
use super::{registry, structs};

/// An object of a `Kind::Pod` class.
#[repr(C)]
pub struct Pod {
    /// The common part. `root` is null or the `Pod` whose memory this one views.
    pub base: Instance,
    /// Structs.
    pub count: usize,
    /// Bytes from one struct to the next.
    pub stride: isize,
    /// Whether assignment is refused.
    pub readonly: bool,
    /// Bytes allocated for this object; 0 where the memory is not its own.
    own: usize,
    /// What else keeps the memory alive: an array, or the owner given to `from_ptr`; may be null.
    pub keeper: *mut ffi::PyObject,
    /// The buffer that holds the memory (boxed); may be null.
    pub buffer: *mut ffi::Py_buffer,
}

fn layout(len: usize) -> Layout {
    // Every C type here is happy with 16; lengths are checked by `allocate`.
    Layout::from_size_align(len, 16).unwrap_or(Layout::new::<[u64; 2]>())
}

/// A new object of type `ty` for `count` structs without memory; null with an exception.
///
/// # Safety
/// `ty` is the type of class `id` or derived from it; the GIL is held.
pub unsafe fn bare(ty: *mut ffi::PyTypeObject, id: ClassId, count: usize) -> *mut Pod {
    // SAFETY: the type's basicsize is that of Pod, and memory comes zeroed.
    unsafe {
        let obj = ffi::PyType_GenericAlloc(ty, 0).cast::<Pod>();
        if !obj.is_null() {
            (*obj).base.id = id.0;
            (*obj).count = count;
            (*obj).stride = table::class(id).1.size as isize;
        }
        obj
    }
}

/// A new object of type `ty` with `count` zeroed structs of its own; null with an exception.
///
/// # Safety
/// `ty` is the type of class `id` or derived from it; the GIL is held.
pub unsafe fn zeroed(ty: *mut ffi::PyTypeObject, id: ClassId, count: usize) -> *mut Pod {
    let size = table::class(id).1.size as usize;
    // SAFETY: the layout has a non-zero size below isize::MAX; a failed object has no memory to free.
    unsafe {
        let Some(len) = size
            .checked_mul(count.max(1))
            .filter(|len| *len < isize::MAX as usize / 2)
        else {
            ffi::PyErr_NoMemory();
            return null_mut();
        };
        let obj = bare(ty, id, count);
        if obj.is_null() {
            return obj;
        }
        let data = alloc_zeroed(layout(len.max(1)));
        if data.is_null() {
            ffi::Py_DECREF(obj.cast());
            ffi::PyErr_NoMemory();
            return null_mut();
        }
        (*obj).own = len.max(1);
        (*obj).base.data = data;
        obj
    }
}

/// A live view of `count` structs of class `id` at `data` inside the memory of `parent`; null with an exception.
///
/// # Safety
/// `data` and what follows lies in the memory `parent` stands for; the GIL is held.
pub unsafe fn view(id: ClassId, parent: *mut Pod, data: *mut u8, count: usize) -> *mut Pod {
    // SAFETY: the root outlives the view, which holds a reference to it.
    unsafe {
        let ty = registry::type_of(id);
        if ty.is_null() {
            return null_mut();
        }
        let obj = bare(ty, id, count);
        if obj.is_null() {
            return obj;
        }
        let root = object::owner(parent.cast());
        ffi::Py_INCREF(root.cast());
        (*obj).base.root = root.cast();
        (*obj).base.data = data;
        (*obj).base.state = (*parent).base.state;
        (*obj).readonly = (*parent).readonly;
        obj
    }
}

/// Makes the Python type of a class.
///
/// # Safety
/// The GIL is held.
pub unsafe fn make_type(id: ClassId) -> *mut ffi::PyTypeObject {
    let (lib, class) = table::class(id);
    let slots = vec![
        slot(ffi::Py_tp_dealloc, pod_dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, pod_traverse as *mut c_void),
        slot(ffi::Py_tp_clear, object::record_clear as *mut c_void),
    ];
    // SAFETY: the slots match the layout of `Pod`.
    unsafe {
        structs::build(
            lib,
            class,
            size_of::<Pod>(),
            ffi::Py_TPFLAGS_HAVE_GC,
            slots,
            class.name().to_owned(),
            None,
        )
    }
}

unsafe extern "C" fn pod_dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: `obj` is a dying instance; nobody views its memory any more, since views hold references.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        let this = obj.cast::<Pod>();
        object::drop_kept(obj.cast());
        if !(*this).buffer.is_null() {
            let mut buffer = Box::from_raw(std::mem::replace(&mut (*this).buffer, null_mut()));
            ffi::PyBuffer_Release(&mut *buffer);
        }
        if (*this).own != 0 {
            dealloc((*this).base.data, layout((*this).own));
        }
        ffi::Py_XDECREF((*this).keeper);
        ffi::Py_XDECREF((*this).base.root);
        object::free(obj);
    }
}

unsafe extern "C" fn pod_traverse(
    obj: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the collector runs while no other thread changes objects.
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

//! Memory of list attributes: arrays of C values that structs point to.

use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::Owned;
use crate::types::object::{Instance, drop_kept, free, record_clear, record_traverse, slot};
use crate::types::table::Elem;

/// Id of array storage; no Python class has it.
const STORAGE: u16 = u16::MAX;

/// Memory of a list attribute: an [`Instance`] without a class of the tables, and its length in bytes.
#[repr(C)]
pub struct Storage {
    /// The common part; `data` is allocated.
    pub base: Instance,
    /// Number of elements.
    pub count: usize,
    /// Element type.
    pub elem: Elem,
    /// Bytes allocated.
    len: usize,
}

static STORAGE_TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

fn storage_layout(len: usize) -> std::alloc::Layout {
    // Alignment 64 satisfies every C type; the caller checks the length.
    std::alloc::Layout::from_size_align(len.max(64), 64)
        .unwrap_or(std::alloc::Layout::new::<[u64; 8]>())
}

/// New zeroed storage of `count` elements of `size` bytes; null with `MemoryError`.
///
/// # Safety
/// The GIL is held.
pub unsafe fn new_storage(count: usize, size: usize, elem: Elem) -> *mut Storage {
    // SAFETY: the caller holds the GIL; the type's basicsize is that of `Storage`, and the layout has a non-zero size.
    unsafe {
        let ty = storage_type();
        if ty.is_null() {
            return std::ptr::null_mut();
        }
        let len = match count.checked_mul(size) {
            Some(len) if len < isize::MAX as usize / 2 => len,
            _ => {
                ffi::PyErr_NoMemory();
                return std::ptr::null_mut();
            }
        };
        let data = std::alloc::alloc_zeroed(storage_layout(len));
        if data.is_null() {
            ffi::PyErr_NoMemory();
            return std::ptr::null_mut();
        }
        let obj = ffi::PyType_GenericAlloc(ty, 0).cast::<Storage>();
        if obj.is_null() {
            std::alloc::dealloc(data, storage_layout(len));
            return obj;
        }
        (*obj).base.id = STORAGE;
        (*obj).base.data = data;
        (*obj).count = count;
        (*obj).elem = elem;
        (*obj).len = len;
        obj
    }
}

/// Whether `obj` is array storage.
///
/// # Safety
/// `obj` is a live object.
pub unsafe fn is_storage(obj: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller guarantees a live object.
    unsafe { ffi::Py_TYPE(obj) == STORAGE_TYPE.load(Ordering::Acquire) }
}

unsafe fn storage_type() -> *mut ffi::PyTypeObject {
    let known = STORAGE_TYPE.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let mut slots = [
        slot(ffi::Py_tp_dealloc, storage_dealloc as *mut _),
        slot(ffi::Py_tp_traverse, record_traverse as *mut _),
        slot(ffi::Py_tp_clear, record_clear as *mut _),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cupyrite._native.ArrayStorage".as_ptr(),
        basicsize: std::mem::size_of::<Storage>() as i32,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_HAVE_GC
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete and ends with a null slot.
    let made = Owned::take(unsafe { ffi::PyType_FromSpec(&mut spec) });
    made.map_or(std::ptr::null_mut(), |made| {
        cpython::publish(&STORAGE_TYPE, made)
    })
}

unsafe extern "C" fn storage_dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes unreferenced storage; `new_storage` allocated its data with this layout.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        let this = obj.cast::<Storage>();
        drop_kept(obj.cast(), []);
        std::alloc::dealloc((*this).base.data, storage_layout((*this).len));
        free(obj);
    }
}

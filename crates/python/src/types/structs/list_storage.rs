//! Memory of list attributes: arrays of C values that structs point to.

use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
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

/// New zeroed storage of `count` elements of `size` bytes, and its address.
///
/// # Errors
/// `MemoryError`.
pub fn new_storage(count: usize, size: usize, elem: Elem) -> R<(Owned, *mut Storage)> {
    let no_memory = || {
        // SAFETY: only sets an exception.
        unsafe { ffi::PyErr_NoMemory() };
        Raised
    };
    let ty = cpython::once(&STORAGE_TYPE, make_type)?;
    let len = count
        .checked_mul(size)
        .filter(|len| *len < isize::MAX as usize / 2)
        .ok_or_else(no_memory)?;
    // SAFETY: the type's basicsize is that of `Storage`, and the layout has a non-zero size.
    unsafe {
        let data = std::alloc::alloc_zeroed(storage_layout(len));
        if data.is_null() {
            return Err(no_memory());
        }
        let object = match Owned::take(ffi::PyType_GenericAlloc(ty, 0)) {
            Ok(object) => object,
            Err(Raised) => {
                std::alloc::dealloc(data, storage_layout(len));
                return Err(Raised);
            }
        };
        let this = object.ptr().cast::<Storage>();
        (*this).base.id = STORAGE;
        (*this).base.data = data;
        (*this).count = count;
        (*this).elem = elem;
        (*this).len = len;
        Ok((object, this))
    }
}

/// The object as array storage.
pub fn cast(obj: Obj<'_>) -> Option<*mut Storage> {
    (obj.ty() == STORAGE_TYPE.load(Ordering::Acquire)).then(|| obj.ptr().cast())
}

fn make_type() -> R<Owned> {
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
    Owned::take(unsafe { ffi::PyType_FromSpec(&raw mut spec) })
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

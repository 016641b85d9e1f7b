//! Memory and lifetime of handle and struct objects.
//!
//! Every instance has a `data` pointer to the C value. It points into the object itself, into another instance (a live
//! view, which holds a reference to that *root*), or to foreign memory (`_ptr`). Foreign memory is accessed only through
//! checked copies ([`cupyrite_sys::checked`]).
//!
//! Pointer attributes own their targets: the *root* holds a list of (offset, object) pairs. Copying a struct copies the
//! pairs, so the copy stays valid when the original changes.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;

use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::internals::reference_count;
use crate::cpython::{GIL, Obj, Owned, R, Raised};
use crate::types::registry;
use crate::types::table;
use crate::types::table::ClassId;
use cupyrite_sys::checked;

/// `data` points to foreign memory: access it through the kernel.
pub const FOREIGN: u16 = 1;

/// A handle or struct object. `tail` is the value of a handle, or the [`Links`] of a struct, whose bytes follow the
/// object.
#[repr(C)]
pub struct Instance {
    head: ffi::PyObject,
    /// The C value.
    pub data: *mut u8,
    /// The instance whose memory this one views; null if it owns its memory.
    pub root: *mut ffi::PyObject,
    weak: *mut ffi::PyObject,
    /// Class.
    pub id: u16,
    /// `FOREIGN` or 0.
    pub state: u16,
    lock: AtomicU32,
    /// Handles: the value. Structs: a pointer to [`Links`], or null.
    tail: u64,
}

/// Offset of the list of weak references.
pub const WEAK_OFFSET: usize = std::mem::offset_of!(Instance, weak);
/// Size of a handle object.
pub const HANDLE_SIZE: usize = std::mem::size_of::<Instance>();
/// Offset of a struct object's bytes.
const BYTES: usize = HANDLE_SIZE.next_multiple_of(16);

/// An object kept alive because the pointer at `offset` points into it.
struct Kept {
    offset: u32,
    object: Owned,
}

/// References of a struct object to other objects.
#[derive(Default)]
struct Links {
    /// Targets of the pointers among its bytes (owned).
    kept: Vec<Kept>,
    /// Existing views of its members, so that reading an attribute twice returns the same object. Borrowed: each view
    /// removes itself in its `tp_dealloc`.
    views: Vec<*mut Instance>,
}

/// Size of a struct object for a C type of `size` and `align` bytes.
pub fn record_size(size: usize, align: usize) -> usize {
    let slack = if align > 16 { align } else { 0 };
    (BYTES + size.max(1) + slack).next_multiple_of(8)
}

/// A new handle object of type `ty` with value `value`.
///
/// # Safety
/// `ty` is a Cupyrite handle class or derived from one, `id` its id; the GIL is held.
#[inline]
pub unsafe fn new_handle(ty: *mut ffi::PyTypeObject, id: ClassId, value: u64) -> R<Owned> {
    // SAFETY: the caller passes a handle type, whose basicsize is at least HANDLE_SIZE; the allocator zeroes the memory.
    unsafe {
        let object = Owned::take(ffi::PyType_GenericAlloc(ty, 0))?;
        let this = object.ptr().cast::<Instance>();
        (*this).tail = value;
        (*this).data = (&raw mut (*this).tail).cast();
        (*this).id = id.0;
        Ok(object)
    }
}

/// Free list of handle objects. All handle classes have the same size. A program that creates and drops events in a loop
/// spends more time allocating them than calling the driver.
struct Spare {
    count: usize,
    blocks: [*mut ffi::PyObject; SPARE],
}

/// Capacity of the free list: 32 blocks, 2 KiB.
const SPARE: usize = 32;

/// Accessed only by threads that hold the GIL, and never in a free-threaded interpreter.
struct UnderGil(UnsafeCell<Spare>);

// SAFETY: `new_own_handle` and `free_handle` hold the GIL, and skip the list in a free-threaded interpreter.
unsafe impl Sync for UnderGil {}

static FREE: UnderGil = UnderGil(UnsafeCell::new(Spare {
    count: 0,
    blocks: [std::ptr::null_mut(); SPARE],
}));

/// As [`new_handle`], for the class itself; reuses a block of the free list.
///
/// # Safety
/// `ty` is the type of the handle class `id`, not a derived one; the GIL is held.
#[inline]
pub unsafe fn new_own_handle(ty: *mut ffi::PyTypeObject, id: ClassId, value: u64) -> R<Owned> {
    // SAFETY: the caller holds the GIL. `free_handle` stores only blocks with the type's basicsize and no GC header.
    // Every field after the object header is written before the object is published.
    unsafe {
        let free = FREE.0.get();
        if !GIL || (*free).count == 0 {
            return new_handle(ty, id, value);
        }
        (*free).count -= 1;
        let block = *(*free).blocks.as_ptr().add((*free).count);
        let obj = ffi::PyObject_Init(block, ty).cast::<Instance>();
        (*obj).root = std::ptr::null_mut();
        (*obj).weak = std::ptr::null_mut();
        (*obj).id = id.0;
        (*obj).state = 0;
        (*obj).lock = AtomicU32::new(0);
        (*obj).tail = value;
        (*obj).data = (&raw mut (*obj).tail).cast();
        Owned::take(obj.cast())
    }
}

/// Stores a new value in a handle that no one else can observe: one reference, no weak references. Otherwise returns
/// false and changes nothing.
///
/// # Safety
/// `obj` was made by [`new_own_handle`]; the GIL is held.
#[inline(always)]
pub unsafe fn renew_own_handle(obj: *mut ffi::PyObject, value: u64) -> bool {
    // SAFETY: as promised by the caller.
    unsafe {
        let this = obj.cast::<Instance>();
        // Since Python 3.14 a tuple that contains the handle caches its hash; `is_unshared` returns false there.
        let alone =
            reference_count::is_unshared(obj) && (*this).weak.is_null() && (*this).state == 0;
        if alone {
            (*this).tail = value;
        }
        alone
    }
}

/// Frees a handle's memory, or adds it to the free list.
///
/// # Safety
/// Called at the end of `handle_dealloc`; the GIL is held.
#[inline]
unsafe fn free_handle(obj: *mut ffi::PyObject) {
    // SAFETY: as promised by the caller. An object of exactly a handle class has HANDLE_SIZE bytes and no GC header, and
    // owns a reference to its type.
    unsafe {
        let id = ClassId((*obj.cast::<Instance>()).id);
        let spare = FREE.0.get();
        if !GIL || (*spare).count == SPARE || !registry::is_exactly(Obj::new(obj), id) {
            return free(obj);
        }
        let ty = ffi::Py_TYPE(obj);
        *(*spare).blocks.as_mut_ptr().add((*spare).count) = obj;
        (*spare).count += 1;
        ffi::Py_DECREF(ty.cast());
    }
}

/// A new struct object of type `ty` that owns its bytes. They are zero, except for the words in `Class::ones`.
///
/// # Safety
/// `ty` is a Cupyrite struct class or derived from one, `id` its id and `align` its alignment; the GIL is held.
#[inline]
pub unsafe fn new_record(ty: *mut ffi::PyTypeObject, id: ClassId, align: usize) -> R<Owned> {
    // SAFETY: the caller passes a struct type, whose basicsize is at least `record_size`; the allocator zeroes memory.
    unsafe {
        let object = Owned::take(ffi::PyType_GenericAlloc(ty, 0))?;
        let this = object.ptr().cast::<Instance>();
        let mut at = this.cast::<u8>().add(BYTES);
        if align > 16 {
            at = at.add(at.align_offset(align));
        }
        (*this).data = at;
        (*this).id = id.0;
        for offset in table::class(id).1.ones {
            at.add(*offset as usize).cast::<u32>().write_unaligned(1);
        }
        Ok(object)
    }
}

/// The object of type `ty` that views `data` inside `parent`: the existing view, or a new one.
///
/// # Safety
/// `ty` is the type of class `id`; `parent` is a struct instance and `data` lies within its memory; the GIL is held.
pub unsafe fn view(
    ty: *mut ffi::PyTypeObject,
    id: ClassId,
    parent: *mut Instance,
    data: *mut u8,
) -> R<Owned> {
    // SAFETY: as promised by the caller; the root outlives the view, which holds a reference to it.
    unsafe {
        let root = owner(parent);
        // Without a GIL, another thread may be deallocating a view in the list, so every read makes a new view.
        if GIL {
            let _lock = locked(root);
            let links = *links(root);
            if !links.is_null() {
                let views = &(*links).views;
                if let Some(known) = views
                    .iter()
                    .find(|v| (***v).data == data && (***v).id == id.0)
                {
                    return Ok(Obj::new((*known).cast()).owned());
                }
            }
        }
        let object = Owned::take(ffi::PyType_GenericAlloc(ty, 0))?;
        let obj = object.ptr().cast::<Instance>();
        (*obj).data = data;
        (*obj).id = id.0;
        (*obj).state = (*parent).state;
        (*obj).root = Obj::new(root.cast()).owned().into_ptr();
        if GIL {
            let _lock = locked(root);
            let links = links(root);
            if (*links).is_null() {
                *links = Box::into_raw(Box::default());
            }
            (**links).views.push(obj);
        }
        Ok(object)
    }
}

/// Makes `obj` a view of foreign memory.
///
/// # Safety
/// `obj` is a new instance that no other code has seen.
pub unsafe fn look_at(obj: Obj<'_>, address: usize) {
    // SAFETY: as promised by the caller; `FOREIGN` restricts access to checked copies.
    unsafe {
        let obj = obj.ptr().cast::<Instance>();
        (*obj).data = address as *mut u8;
        (*obj).state |= FOREIGN;
    }
}

/// The instance that owns `obj`'s memory: its root, or `obj` itself.
///
/// # Safety
/// `obj` is an instance.
#[inline]
pub unsafe fn owner(obj: *mut Instance) -> *mut Instance {
    // SAFETY: `root` is null or an instance this one holds a reference to.
    unsafe {
        if (*obj).root.is_null() {
            obj
        } else {
            (*obj).root.cast()
        }
    }
}

/// Copies bytes at `offset` out of the value.
///
/// # Errors
/// `ValueError` if foreign memory cannot be read.
///
/// # Safety
/// `obj` is an instance and the range lies within its C type.
#[inline]
pub unsafe fn read(obj: *mut Instance, offset: usize, out: &mut [u8]) -> R<()> {
    // SAFETY: memory of an instance covers its whole C type; foreign memory is read through the kernel.
    unsafe {
        let at = (*obj).data.add(offset);
        if (*obj).state & FOREIGN == 0 {
            std::ptr::copy_nonoverlapping(at, out.as_mut_ptr(), out.len());
            return Ok(());
        }
        if checked::read_bytes(at as u64, out).is_ok() {
            return Ok(());
        }
        Err(inaccessible(Obj::new(obj.cast()), at as usize, "read"))
    }
}

/// Copies bytes to `offset` of the value.
///
/// # Errors
/// `ValueError` if foreign memory cannot be written.
///
/// # Safety
/// `obj` is an instance and the range lies within its C type.
#[inline]
pub unsafe fn write(obj: *mut Instance, offset: usize, data: &[u8]) -> R<()> {
    // SAFETY: memory of an instance covers its whole C type; foreign memory is written through the kernel.
    unsafe {
        let at = (*obj).data.add(offset);
        if (*obj).state & FOREIGN == 0 {
            std::ptr::copy(data.as_ptr(), at, data.len());
            return Ok(());
        }
        if checked::write_bytes(at as u64, data).is_ok() {
            return Ok(());
        }
        Err(inaccessible(Obj::new(obj.cast()), at as usize, "written"))
    }
}

#[cold]
fn inaccessible(obj: Obj<'_>, address: usize, what: &str) -> Raised {
    let name = obj.type_short_name();
    raise(
        ExceptionKind::Value,
        &format!("{name}: the memory at {address:#x} given as _ptr cannot be {what}"),
    )
}

// ---- targets of pointer attributes

struct Locked(*mut Instance);

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: every user of `locked` keeps the instance alive longer than the guard.
        unsafe { (*self.0).lock.store(0, Ordering::Release) };
    }
}

/// Spin lock for the instance's [`Links`]. No Python code runs while it is held.
unsafe fn locked(obj: *mut Instance) -> Locked {
    // SAFETY: `obj` is an instance.
    unsafe {
        while (*obj)
            .lock
            .compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
    }
    Locked(obj)
}

unsafe fn links(obj: *mut Instance) -> *mut *mut Links {
    // SAFETY: the callers pass a struct object, whose tail is this pointer.
    unsafe { (&raw mut (*obj).tail).cast() }
}

unsafe fn offset_in(owner: *mut Instance, obj: *mut Instance, offset: usize) -> u32 {
    // SAFETY: the callers pass live instances; a view's data lies within its owner's.
    unsafe {
        ((*obj).data as usize)
            .wrapping_add(offset)
            .wrapping_sub((*owner).data as usize) as u32
    }
}

/// Keeps `object` alive for the pointer at `offset` and releases the previous object.
///
/// # Safety
/// `obj` is a struct instance; the GIL is held.
pub unsafe fn keep(obj: *mut Instance, offset: usize, object: Option<Owned>) {
    // SAFETY: the list is accessed only under the lock; references are dropped after its release.
    unsafe {
        let owner = owner(obj);
        let at = offset_in(owner, obj, offset);
        let _old = {
            let _lock = locked(owner);
            let links = links(owner);
            if (*links).is_null() {
                if object.is_none() {
                    return;
                }
                *links = Box::into_raw(Box::default());
            }
            let list = &mut (**links).kept;
            let known = list.iter().position(|k| k.offset == at);
            match (known, object) {
                (Some(i), None) => Some(list.swap_remove(i).object),
                (Some(i), Some(object)) => Some(std::mem::replace(&mut list[i].object, object)),
                (None, None) => None,
                (None, Some(object)) => {
                    list.push(Kept { offset: at, object });
                    None
                }
            }
        };
    }
}

/// Whether any object is kept alive for pointers in the memory of `obj`'s owner.
///
/// # Safety
/// `obj` is a struct instance; the GIL is held.
pub unsafe fn holds_any(obj: *mut Instance) -> bool {
    // SAFETY: the list is accessed only under the lock.
    unsafe {
        let owner = owner(obj);
        let _lock = locked(owner);
        let links = *links(owner);
        !links.is_null() && !(*links).kept.is_empty()
    }
}

/// The object kept alive for the pointer at `offset`.
///
/// # Safety
/// `obj` is a struct instance; the GIL is held.
pub unsafe fn held(obj: *mut Instance, offset: usize) -> Option<Owned> {
    // SAFETY: the list is accessed only under the lock.
    unsafe {
        let owner = owner(obj);
        let at = offset_in(owner, obj, offset);
        let _lock = locked(owner);
        let links = *links(owner);
        if links.is_null() {
            return None;
        }
        let kept = (*links).kept.iter().find(|k| k.offset == at)?;
        Some(kept.object.obj().owned())
    }
}

/// Copies the references kept for `len` bytes at `from_offset` of `from` to `to_offset` of `to`, and releases the
/// previous ones there.
///
/// # Safety
/// Both are struct instances; the GIL is held.
pub unsafe fn keep_same(
    to: *mut Instance,
    to_offset: usize,
    from: *mut Instance,
    from_offset: usize,
    len: usize,
) {
    // SAFETY: each list is accessed only under its lock; one lock is held at a time.
    unsafe {
        let source = owner(from);
        let start = offset_in(source, from, from_offset);
        let target = owner(to);
        let base = offset_in(target, to, to_offset);
        let mut fresh = Vec::new();
        {
            let _lock = locked(source);
            let links = *links(source);
            if !links.is_null() {
                for k in &(*links).kept {
                    if k.offset >= start && ((k.offset - start) as usize) < len {
                        fresh.push(Kept {
                            offset: base + (k.offset - start),
                            object: k.object.obj().owned(),
                        });
                    }
                }
            }
        }
        let mut old = Vec::new();
        {
            let _lock = locked(target);
            let links = links(target);
            if !(*links).is_null() {
                let list = &mut (**links).kept;
                let mut i = 0;
                while i < list.len() {
                    let at = list[i].offset;
                    if at >= base && ((at - base) as usize) < len {
                        old.push(list.swap_remove(i));
                    } else {
                        i += 1;
                    }
                }
            }
            if !fresh.is_empty() {
                if (*links).is_null() {
                    *links = Box::into_raw(Box::default());
                }
                (**links).kept.append(&mut fresh);
            }
        }
        drop(old);
    }
}

/// A slot of a type specification.
pub fn slot(slot: i32, pfunc: *mut std::ffi::c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

// ---- deallocation

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    // Never destroyed, so that objects can be deallocated during thread exit. It is empty between uses.
    static LATER: ManuallyDrop<RefCell<Vec<usize>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Drops references. Defers those nested deeper than 32 levels, so that a long chain of structs does not overflow the
/// stack.
fn release(list: Vec<Kept>) {
    let depth = DEPTH.with(Cell::get);
    if depth >= 32 {
        LATER.with(|l| {
            l.borrow_mut()
                .extend(list.into_iter().map(|k| k.object.into_ptr() as usize));
        });
        return;
    }
    DEPTH.with(|d| d.set(depth + 1));
    drop(list);
    DEPTH.with(|d| d.set(depth));
    if depth == 0 {
        while let Some(object) = LATER.with(|l| l.borrow_mut().pop()) {
            DEPTH.with(|d| d.set(1));
            // `LATER` owned this reference.
            drop(Owned::take(object as *mut ffi::PyObject));
            DEPTH.with(|d| d.set(0));
        }
    }
}

unsafe fn drop_links(obj: *mut Instance) {
    // SAFETY: called from `tp_dealloc`. No views are left, since every view holds a reference to its root.
    unsafe {
        let links = std::mem::replace(&mut *links(obj), std::ptr::null_mut());
        if !links.is_null() {
            drop(Box::from_raw(links));
        }
    }
}

/// Releases all objects kept for pointers, the list itself, and the references in `more` (nulls are skipped).
///
/// # Safety
/// `obj` is a struct instance in its `tp_dealloc`, and owns the references.
pub unsafe fn drop_kept<const N: usize>(obj: *mut Instance, more: [*mut ffi::PyObject; N]) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut list = take_kept(obj);
        for object in more {
            if let Ok(object) = Owned::take(object) {
                list.push(Kept { offset: 0, object });
            }
        }
        if !list.is_empty() {
            release(list);
        }
        drop_links(obj);
    }
}

/// Removes a view from its root's list. `tp_dealloc` calls this first, before any other code can run.
unsafe fn unlink_view(view: *mut Instance) {
    // SAFETY: the root is live, since the view holds a reference to it; its list is accessed only under the lock.
    unsafe {
        if (*view).root.is_null() {
            return;
        }
        let root = (*view).root.cast::<Instance>();
        let _lock = locked(root);
        let links = *links(root);
        if !links.is_null() {
            let views = &mut (*links).views;
            if let Some(i) = views.iter().position(|v| *v == view) {
                views.swap_remove(i);
            }
        }
    }
}

unsafe fn take_kept(obj: *mut Instance) -> Vec<Kept> {
    // SAFETY: the pointer is null or came from `Box::into_raw`; the list is emptied under the lock.
    unsafe {
        let _lock = locked(obj);
        let links = *links(obj);
        if links.is_null() {
            Vec::new()
        } else {
            std::mem::take(&mut (*links).kept)
        }
    }
}

/// Frees the memory of a deallocated object.
///
/// # Safety
/// Called at the end of a `tp_dealloc`.
pub unsafe fn free(obj: *mut ffi::PyObject) {
    // SAFETY: the caller ends `tp_dealloc` here; the function matches the allocation. A heap type's instance owns a
    // reference to its type.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if ffi::PyType_GetFlags(ty) & ffi::Py_TPFLAGS_HAVE_GC != 0 {
            ffi::PyObject_GC_Del(obj.cast());
        } else {
            ffi::PyObject_Free(obj.cast());
        }
        ffi::Py_DECREF(ty.cast());
    }
}

/// `tp_dealloc` of handles.
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn handle_dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes an instance without references.
    unsafe {
        let this = obj.cast::<Instance>();
        unlink_view(this);
        if !(*this).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(obj);
        }
        if !(*this).root.is_null() {
            ffi::Py_DECREF((*this).root);
        }
        free_handle(obj);
    }
}

/// `tp_dealloc` of structs.
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn record_dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes an instance without references.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        let this = obj.cast::<Instance>();
        unlink_view(this);
        if !(*this).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(obj);
        }
        drop_kept(this, []);
        ffi::Py_XDECREF((*this).root);
        free(obj);
    }
}

/// `tp_traverse` of structs and storage.
///
/// # Safety
/// Called by the collector.
pub unsafe extern "C" fn record_traverse(
    obj: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut std::ffi::c_void,
) -> std::ffi::c_int {
    // SAFETY: no other thread changes objects while the collector runs.
    unsafe {
        let this = obj.cast::<Instance>();
        let mut rc = visit(ffi::Py_TYPE(obj).cast(), arg);
        if rc == 0 && !(*this).root.is_null() {
            rc = visit((*this).root, arg);
        }
        let links = *links(this);
        if !links.is_null() {
            for k in &(*links).kept {
                if rc != 0 {
                    break;
                }
                rc = visit(k.object.ptr(), arg);
            }
        }
        rc
    }
}

/// `tp_clear` of structs and storage. Keeps the root, so that a view never points to freed memory.
///
/// # Safety
/// Called by the collector.
pub unsafe extern "C" fn record_clear(obj: *mut ffi::PyObject) -> std::ffi::c_int {
    // SAFETY: the collector passes an instance.
    unsafe {
        let list = take_kept(obj.cast());
        if !list.is_empty() {
            release(list);
        }
    }
    0
}

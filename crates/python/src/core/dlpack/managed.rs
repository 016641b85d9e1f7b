//! Owned DLPack exports of other libraries.

use cupyrite::dlpack::{ManagedTensor, ManagedTensorVersioned};
use pyo3::ffi;

/// An owned export, deleted on drop.
pub struct Managed<T: Deleted>(*mut T);

// SAFETY: DLPack permits any thread to call the deleter; other fields are used only by the owning thread.
unsafe impl<T: Deleted> Send for Managed<T> {}
// SAFETY: as above; shared references read nothing.
unsafe impl<T: Deleted> Sync for Managed<T> {}

/// A structure with a deleter.
pub trait Deleted {
    /// Calls the deleter.
    ///
    /// # Safety
    ///
    /// Called once, by the owner of the export.
    unsafe fn delete(this: *mut Self);
}

impl Deleted for ManagedTensor {
    unsafe fn delete(this: *mut Self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl Deleted for ManagedTensorVersioned {
    unsafe fn delete(this: *mut Self) {
        // SAFETY: guaranteed by the caller. All versions have the deleter at this offset.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl<T: Deleted> Managed<T> {
    /// Takes ownership of an export.
    ///
    /// # Safety
    ///
    /// A live export without another owner.
    pub unsafe fn from_raw(managed: *mut T) -> Managed<T> {
        Managed(managed)
    }

    /// The export, valid while the result of [`Managed::own`] lives.
    pub fn pointer(&self) -> *const T {
        self.0
    }
}

impl<T: Deleted> Drop for Managed<T> {
    fn drop(&mut self) {
        // Deleters may run Python code; a pending exception must survive.
        // SAFETY: views are dropped attached; the fetched references are restored; the export is owned and deleted
        // once.
        unsafe {
            if ffi::PyErr_Occurred().is_null() {
                T::delete(self.0);
                if !ffi::PyErr_Occurred().is_null() {
                    ffi::PyErr_WriteUnraisable(std::ptr::null_mut());
                }
                return;
            }
            let (mut kind, mut value, mut trace) = (
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            );
            ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace);
            T::delete(self.0);
            if !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_WriteUnraisable(std::ptr::null_mut());
            }
            ffi::PyErr_Restore(kind, value, trace);
        }
    }
}

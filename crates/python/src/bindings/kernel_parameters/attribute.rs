//! Values of `kernelParams` attributes (`CUDA_KERNEL_NODE_PARAMS`), packed as `cuLaunchKernel` packs its arguments.

use std::ffi::{CStr, c_void};

use pyo3::ffi;

use crate::bindings::call::words::address as call_address;
use crate::bindings::errors::Site;
use crate::bindings::kernel_parameters::Packed;
use crate::cpython::{Obj, Owned, R, Raised};

/// Name of the capsules that own packed parameters.
const NAME: &CStr = c"cupyrite kernel parameters";

/// The address to store in the attribute, and the object that owns the memory there.
///
/// # Errors
///
/// As [`Packer::pack`](super::Packer::pack), and `MemoryError`.
pub fn pack(value: Obj<'_>, attribute: &'static str) -> R<(u64, Owned)> {
    let site = Site {
        func: "CUDA_KERNEL_NODE_PARAMS",
        param: attribute,
    };
    let packed = Box::new(Packed::new(|packer, keep| {
        let address = packer.pack(value, site, keep)?;
        // Keeps values alive whose own address was packed.
        keep.objects.push(value.owned());
        Ok(std::ptr::with_exposed_provenance_mut(call_address(address)))
    })?);
    let address = packed.address();
    let packed = Box::into_raw(packed);
    // SAFETY: `drop_packed` frees the box when the capsule is destroyed; the name is static.
    let capsule = Owned::take(unsafe {
        ffi::PyCapsule_New(packed.cast::<c_void>(), NAME.as_ptr(), Some(drop_packed))
    });
    if let Err(Raised) = capsule {
        // SAFETY: no capsule owns the box.
        drop(unsafe { Box::from_raw(packed) });
    }
    Ok((address, capsule?))
}

unsafe extern "C" fn drop_packed(capsule: *mut ffi::PyObject) {
    // SAFETY: `pack` stored a `Packed` from `Box::into_raw` in the capsule under this name.
    unsafe {
        let at = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr());
        if !at.is_null() {
            drop(Box::from_raw(at.cast::<Packed>()));
        }
    }
}

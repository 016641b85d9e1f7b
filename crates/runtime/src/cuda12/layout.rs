//! Structures in the layout of CUDA 12, as CUDA 13's and back. Where both have a member, it is at the same place.

use std::mem::{MaybeUninit, offset_of};

use cupyrite_sys::driver::CUDA_RESOURCE_VIEW_DESC;
use cupyrite_sys::runtime::{
    cudaPointerAttributes, cudaPointerAttributes_cuda12, cudaResourceDesc, cudaResourceDesc_cuda12,
    cudaResourceViewDesc_cuda12,
};

use crate::checked::{Plain, put};
use crate::errors::Res;

/// A structure that has the first `SHARED` bytes of another; its other members are zero.
pub(super) fn reshaped<const SHARED: usize, From: Plain, To: Plain>(from: &From) -> To {
    const { assert!(SHARED <= size_of::<From>() && SHARED <= size_of::<To>()) };
    let mut to = MaybeUninit::<To>::zeroed();
    // SAFETY: both are at least `SHARED` bytes long, and do not overlap. Every bit pattern is a valid `To`.
    unsafe {
        std::ptr::from_ref(from)
            .cast::<u8>()
            .copy_to_nonoverlapping(to.as_mut_ptr().cast(), SHARED);
        to.assume_init()
    }
}

/// Writes the first `SIZE` bytes of a structure.
pub(super) fn put_beginning<const SIZE: usize, T: Plain>(out: u64, of: &T) -> Res {
    const { assert!(SIZE <= size_of::<T>()) };
    let beginning = std::ptr::from_ref(of).cast::<MaybeUninit<[u8; SIZE]>>();
    // SAFETY: the structure is at least that long; bytes need no alignment, and padding no value.
    put(out, unsafe { beginning.read() })
}

pub(super) fn resource(of: &cudaResourceDesc_cuda12) -> cudaResourceDesc {
    reshaped::<{ size_of::<cudaResourceDesc_cuda12>() }, _, _>(of)
}

pub(super) fn resource_cuda12(of: &cudaResourceDesc) -> cudaResourceDesc_cuda12 {
    reshaped::<{ size_of::<cudaResourceDesc_cuda12>() }, _, _>(of)
}

pub(super) fn view_to_driver(of: &cudaResourceViewDesc_cuda12) -> CUDA_RESOURCE_VIEW_DESC {
    reshaped::<{ offset_of!(CUDA_RESOURCE_VIEW_DESC, reserved) }, _, _>(of)
}

pub(super) fn view_from_driver(of: &CUDA_RESOURCE_VIEW_DESC) -> cudaResourceViewDesc_cuda12 {
    reshaped::<{ offset_of!(CUDA_RESOURCE_VIEW_DESC, reserved) }, _, _>(of)
}

pub(super) fn pointer_attributes(of: &cudaPointerAttributes) -> cudaPointerAttributes_cuda12 {
    reshaped::<{ size_of::<cudaPointerAttributes_cuda12>() }, _, _>(of)
}

//! Device addresses with the type of what they point to.

use std::marker::PhantomData;

use cupyrite_sys::driver::CUdeviceptr;

use crate::memory::device_copy::DeviceCopy;

/// A device address as a kernel argument: `T *` in device code.
#[derive(Debug)]
#[repr(transparent)]
pub struct DevicePtr<T> {
    address: CUdeviceptr,
    pointee: PhantomData<fn() -> T>,
}

impl<T> DevicePtr<T> {
    /// From a raw address.
    pub const fn new(address: CUdeviceptr) -> Self {
        DevicePtr {
            address,
            pointee: PhantomData,
        }
    }

    /// The raw address.
    pub const fn address(self) -> CUdeviceptr {
        self.address
    }
}

impl<T> Clone for DevicePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DevicePtr<T> {}

// SAFETY: a transparent 64-bit address: the kernel's `T *`, also as an element of a buffer.
unsafe impl<T: 'static> DeviceCopy for DevicePtr<T> {}

//! Launch configurations and typed kernel arguments.

use std::ffi::c_void;
use std::marker::PhantomData;

use cupyrite_sys::driver::CUdeviceptr;

use crate::memory::{Buffer, DeviceCopy};

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Whether all blocks must be resident at once, for grid-wide synchronisation.
    pub cooperative: bool,
}

impl LaunchConfig {
    /// `blocks` blocks of `threads` threads.
    pub const fn linear(blocks: u32, threads: u32) -> Self {
        Self::new([blocks, 1, 1], [threads, 1, 1])
    }

    /// As many blocks of `threads` threads as give every one of `elements` a thread.
    ///
    /// `threads` counts at least one; more blocks than a grid holds are clamped to `u32::MAX`, which the driver rejects.
    pub const fn for_elements(elements: usize, threads: u32) -> Self {
        let threads = if threads == 0 { 1 } else { threads };
        let blocks = elements.div_ceil(threads as usize);
        let blocks = if blocks > u32::MAX as usize {
            u32::MAX
        } else if blocks == 0 {
            1
        } else {
            blocks as u32
        };
        Self::linear(blocks, threads)
    }

    /// Any grid and block, without dynamic shared memory.
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchConfig {
            grid,
            block,
            shared_bytes: 0,
            cooperative: false,
        }
    }

    /// The same with dynamic shared memory, in bytes.
    pub const fn with_shared(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// The same as a cooperative launch.
    pub const fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }
}

/// A device address as a kernel argument: `T *` on the device's side.
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

/// A value that can be passed to a kernel.
///
/// # Safety
///
/// `address` must point to `size` readable bytes that form the kernel parameter, for as long as `self` is borrowed.
pub unsafe trait KernelArg {
    /// Where the parameter's bytes lie on the host.
    fn address(&self) -> *const c_void;
    /// How many bytes it has.
    fn size(&self) -> usize;
}

// SAFETY: plain data is its own parameter.
unsafe impl<T: DeviceCopy> KernelArg for T {
    fn address(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
    fn size(&self) -> usize {
        size_of::<T>()
    }
}

// SAFETY: a transparent 64-bit address; as an argument it is the kernel's `T *`, in a buffer an array of such.
unsafe impl<T: 'static> DeviceCopy for DevicePtr<T> {}

// SAFETY: passes the address that the buffer's shared part holds, in place.
unsafe impl<T: DeviceCopy> KernelArg for &Buffer<T> {
    fn address(&self) -> *const c_void {
        self.address_place().cast()
    }
    fn size(&self) -> usize {
        size_of::<CUdeviceptr>()
    }
}

/// The arguments of a launch: a tuple of up to 16, or a slice of references for more.
///
/// # Safety
///
/// As [`KernelArg`], for each.
pub unsafe trait KernelArgs {
    /// Hands the argument addresses and sizes to `body`; no allocation for tuples.
    fn with<R>(&self, body: impl FnOnce(&[*const c_void], &[usize]) -> R) -> R;
}

// SAFETY: no arguments.
unsafe impl KernelArgs for () {
    fn with<R>(&self, body: impl FnOnce(&[*const c_void], &[usize]) -> R) -> R {
        body(&[], &[])
    }
}

// SAFETY: each element upholds the contract of `KernelArg`.
unsafe impl KernelArgs for [&dyn KernelArg] {
    fn with<R>(&self, body: impl FnOnce(&[*const c_void], &[usize]) -> R) -> R {
        let addresses: Vec<_> = self.iter().map(|a| a.address()).collect();
        let sizes: Vec<_> = self.iter().map(|a| a.size()).collect();
        body(&addresses, &sizes)
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        // SAFETY: each element upholds the contract of `KernelArg`.
        unsafe impl<$($name: KernelArg),+> KernelArgs for ($($name,)+) {
            #[allow(non_snake_case)]
            fn with<R>(&self, body: impl FnOnce(&[*const c_void], &[usize]) -> R) -> R {
                let ($($name,)+) = self;
                body(&[$($name.address()),+], &[$($name.size()),+])
            }
        }
    };
}
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
tuples!(A B C D E F G H I J K L M);
tuples!(A B C D E F G H I J K L M N);
tuples!(A B C D E F G H I J K L M N O);
tuples!(A B C D E F G H I J K L M N O P);

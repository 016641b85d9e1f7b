//! Kernel arguments: values and sizes that a launch passes.

use std::ffi::c_void;

use cupyrite_sys::driver::CUdeviceptr;

use crate::memory::device_copy::DeviceCopy;
use crate::memory::typed::Buffer;

/// A kernel argument: plain data by value, or a buffer, which passes its address.
///
/// A type that is not [`DeviceCopy`] does not compile:
///
/// ```compile_fail,E0277
/// # use cupyrite::{Kernel, LaunchConfig, Result, Stream};
/// # fn f(kernel: &Kernel, stream: &Stream) -> Result<()> {
/// let name = String::from("a pointer to this process's heap");
/// unsafe { kernel.launch(stream, &LaunchConfig::linear(1, 1), &(name,)) }
/// # }
/// ```
///
/// Nor do references to host memory, or `bool`, to which a kernel may write invalid values (pass a `u8`):
///
/// ```compile_fail,E0277
/// # use cupyrite::{Kernel, LaunchConfig, Result, Stream};
/// # fn f(kernel: &Kernel, stream: &Stream) -> Result<()> {
/// let host = [1.0f32; 4];
/// unsafe { kernel.launch(stream, &LaunchConfig::linear(1, 1), &(&host,)) }
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use cupyrite::{Kernel, LaunchConfig, Result, Stream};
/// # fn f(kernel: &Kernel, stream: &Stream) -> Result<()> {
/// unsafe { kernel.launch(stream, &LaunchConfig::linear(1, 1), &(true,)) }
/// # }
/// ```
///
/// Nor do dropped buffers:
///
/// ```compile_fail,E0505
/// # use cupyrite::{Buffer, Kernel, LaunchConfig, Result, Stream};
/// # fn f(kernel: &Kernel, stream: &Stream, x: Buffer<f32>) -> Result<()> {
/// let arguments = (&x, 1u32);
/// drop(x);
/// unsafe { kernel.launch(stream, &LaunchConfig::linear(1, 1), &arguments) }
/// # }
/// ```
///
/// These compile:
///
/// ```
/// # use cupyrite::{Buffer, Kernel, LaunchConfig, Result, Stream};
/// # fn f(kernel: &Kernel, stream: &Stream, x: Buffer<f32>) -> Result<()> {
/// let host = [1.0f32; 4];
/// let arguments = (&x, 1u32, host, u8::from(true));
/// unsafe { kernel.launch(stream, &LaunchConfig::linear(1, 1), &arguments) }
/// # }
/// ```
///
/// # Safety
///
/// `address` must point to `size` readable bytes that form the kernel parameter, for as long as `self` is borrowed.
pub unsafe trait KernelArg {
    /// The host address of the argument's bytes.
    fn address(&self) -> *const c_void;
    /// Its size in bytes.
    fn size(&self) -> usize;
}

// SAFETY: plain data is passed as its own bytes.
unsafe impl<T: DeviceCopy> KernelArg for T {
    fn address(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
    fn size(&self) -> usize {
        size_of::<T>()
    }
}

// SAFETY: passes the address in the buffer's shared state, in place.
unsafe impl<T: DeviceCopy> KernelArg for &Buffer<T> {
    fn address(&self) -> *const c_void {
        self.address_place().cast()
    }
    fn size(&self) -> usize {
        size_of::<CUdeviceptr>()
    }
}

// SAFETY: passes the address in the buffer's shared state, in place.
unsafe impl<T: DeviceCopy> KernelArg for &mut Buffer<T> {
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
    /// Calls `body` with the argument addresses and sizes; tuples allocate nothing.
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

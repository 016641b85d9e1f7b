//! Kernels with statically typed parameters.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;

use crate::error::Result;
use crate::memory::device_copy::DeviceCopy;
use crate::memory::typed::Buffer;
use crate::module::args::{KernelArg, KernelArgs};
use crate::module::kernel::Kernel;
use crate::module::launch::LaunchConfig;
use crate::stream::Stream;

/// A parameter of the C type `const T *`; its argument is a `&Buffer<T>`.
///
/// A marker type without values.
pub struct ConstPtr<T>(PhantomData<fn() -> T>);

/// A parameter of the C type `T *`, through which the kernel writes; its argument is a `&mut Buffer<T>`, so that no
/// other argument of the launch is the same buffer.
///
/// A marker type without values.
pub struct MutPtr<T>(PhantomData<fn() -> T>);

/// The type of a kernel parameter, and of its argument.
///
/// Plain data ([`DeviceCopy`]) stands for itself; pointers are [`ConstPtr`] and [`MutPtr`].
///
/// # Safety
///
/// The size of every `Arg`, as [`KernelArg::size`] has it, is `SIZE`.
pub unsafe trait Param {
    /// The argument of a launch.
    type Arg<'a>: KernelArg
    where
        Self: 'a;
    /// Size of the parameter in bytes.
    const SIZE: usize;
}

// SAFETY: the argument is the parameter.
unsafe impl<T: DeviceCopy> Param for T {
    type Arg<'a> = T;
    const SIZE: usize = size_of::<T>();
}

// SAFETY: a buffer passes its address, of 64 bits.
unsafe impl<T: DeviceCopy> Param for ConstPtr<T> {
    type Arg<'a> = &'a Buffer<T>;
    const SIZE: usize = 8;
}

// SAFETY: a buffer passes its address, of 64 bits.
unsafe impl<T: DeviceCopy> Param for MutPtr<T> {
    type Arg<'a> = &'a mut Buffer<T>;
    const SIZE: usize = 8;
}

/// The types of a kernel's parameters: a tuple of up to 16 [`Param`]s.
///
/// # Safety
///
/// As [`Param`], for each; `SIZES` has as many elements as `Args` passes.
pub unsafe trait Params {
    /// The arguments of a launch.
    type Args<'a>: KernelArgs
    where
        Self: 'a;
    /// Sizes of the parameters in bytes.
    const SIZES: &'static [usize];
}

// SAFETY: no parameters.
unsafe impl Params for () {
    type Args<'a> = ();
    const SIZES: &'static [usize] = &[];
}

macro_rules! tuples {
    ($($name:ident)+) => {
        // SAFETY: each element upholds the contract of `Param`.
        unsafe impl<$($name: Param),+> Params for ($($name,)+) {
            type Args<'a> = ($($name::Arg<'a>,)+) where Self: 'a;
            const SIZES: &'static [usize] = &[$($name::SIZE),+];
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

/// A kernel with typed parameters, from [`Kernel::typed`]; cheap to clone.
///
/// The number and sizes of the parameters were compared with the kernel's once, so a launch checks nothing; the
/// compiler checks the arguments of each launch.
///
/// ```no_run
/// use cupyrite::{ConstPtr, Device, LaunchConfig, MutPtr, Program};
///
/// # fn main() -> cupyrite::Result<()> {
/// let device = Device::new(0)?;
/// let stream = device.create_stream()?;
/// let axpy = Program::new(
///     r#"extern "C" __global__ void axpy(float a, const float *x, float *y, unsigned n)
///     {
///         unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///         if (i < n) y[i] += a * x[i];
///     }"#,
/// )
/// .compile_for(&device)?
/// .kernel("axpy")?
/// .typed::<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>()?;
/// let x = device.buffer_from(&[1.0f32; 100])?;
/// let mut y = device.buffer_from(&[2.0f32; 100])?;
/// // SAFETY: the kernel reads 100 elements of `x` and changes 100 of `y`, which is what they have.
/// unsafe { axpy.launch(&stream, &LaunchConfig::for_elements(100, 32), (3.0, &x, &mut y, 100))? };
/// stream.synchronize()?;
/// assert_eq!(y.to_vec()?, [5.0; 100]);
/// # Ok(()) }
/// ```
///
/// # What the compiler refuses
///
/// In these examples `axpy` is the kernel above. A value of another type:
///
/// ```compile_fail,E0308
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
/// unsafe { axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0f64, x, y, 100)) }
/// # }
/// ```
///
/// A buffer of another element type:
///
/// ```compile_fail,E0308
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f64>, y: &mut Buffer<f32>) -> Result<()> {
/// unsafe { axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0, x, y, 100)) }
/// # }
/// ```
///
/// A missing argument:
///
/// ```compile_fail,E0308
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
/// unsafe { axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0, x, y)) }
/// # }
/// ```
///
/// A buffer that the kernel writes, but that is borrowed immutably:
///
/// ```compile_fail,E0308
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
/// unsafe { axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0, x, y, 100)) }
/// # }
/// ```
///
/// One buffer for an input and an output:
///
/// ```compile_fail,E0502
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
/// unsafe { axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0, &*y, y, 100)) }
/// # }
/// ```
///
/// A launch without `unsafe`, which asserts that the kernel stays within its buffers:
///
/// ```compile_fail,E0133
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
/// axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0, x, y, 100))
/// # }
/// ```
///
/// A parameter of a type without a device representation:
///
/// ```compile_fail,E0277
/// # use cupyrite::*;
/// # fn f(kernel: &Kernel) -> Result<()> {
/// kernel.typed::<(ConstPtr<f32>, Vec<f32>)>().map(drop)
/// # }
/// ```
///
/// A correct launch:
///
/// ```
/// # use cupyrite::*;
/// # type Axpy = TypedKernel<(f32, ConstPtr<f32>, MutPtr<f32>, u32)>;
/// # fn f(axpy: &Axpy, stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
/// unsafe { axpy.launch(stream, &LaunchConfig::linear(1, 32), (3.0, x, y, 100)) }
/// # }
/// ```
pub struct TypedKernel<P> {
    kernel: Kernel,
    // Neither owns nor creates a `P`: `Send` and `Sync` do not depend on it.
    params: PhantomData<fn(P)>,
}

impl<P> Clone for TypedKernel<P> {
    fn clone(&self) -> Self {
        TypedKernel {
            kernel: self.kernel.clone(),
            params: PhantomData,
        }
    }
}

impl<P> fmt::Debug for TypedKernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedKernel").field(&self.kernel).finish()
    }
}

impl Kernel {
    /// Adds the types of the parameters, after checking their number and sizes against the kernel's.
    ///
    /// A driver before CUDA 12.4 does not report parameters; the types are not checked there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) naming the first parameter, counted from 0, with
    /// another size.
    pub fn typed<P: Params>(&self) -> Result<TypedKernel<P>> {
        self.check_sizes("Kernel::typed", P::SIZES)?;
        Ok(TypedKernel {
            kernel: self.clone(),
            params: PhantomData,
        })
    }
}

impl<P: Params> TypedKernel<P> {
    /// The untyped kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Queues the kernel in a stream.
    ///
    /// # Safety
    ///
    /// The types match the kernel's parameters, and the kernel accesses memory only within its buffers. Until the
    /// kernel is done, the buffers are not freed, and nothing else uses what it writes: the borrows end when this
    /// returns, but the kernel runs on. (A [`Buffer`] waits for the device before it is freed.)
    ///
    /// # Errors
    ///
    /// Same as [`Kernel::launch_raw`].
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        config: &LaunchConfig,
        args: P::Args<'_>,
    ) -> Result<()> {
        args.with(|addresses, _| {
            let params = addresses.as_ptr().cast_mut().cast::<*mut c_void>();
            // SAFETY: `Kernel::typed` has compared the number and sizes of the parameters with the kernel's. The rest
            // is the caller's contract.
            unsafe { self.kernel.launch_raw(stream, config, params) }
        })
    }
}

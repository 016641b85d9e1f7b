//! CUDA for Rust: devices, streams, memory, programs and launches, on a GPU or on the CPU device.
//!
//! ```no_run
//! use cupyrite::{Device, LaunchConfig, Program};
//!
//! # fn main() -> cupyrite::Result<()> {
//! let device = Device::new(0)?;
//! let stream = device.create_stream()?;
//! let kernel = Program::new(r#"extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }"#)
//!     .compile_for(&device)?
//!     .kernel("twice")?;
//! let x = device.buffer_from(&[1.0f32, 2.0, 3.0])?;
//! // SAFETY: the kernel touches `x[0..3]`, which is what the launch gives it.
//! unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 3), &(&x,))? };
//! stream.synchronize()?;
//! assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0]);
//! # Ok(()) }
//! ```
//!
//! Belongs here: ownership, lifetimes, the right current context, errors that explain themselves; the Python
//! layer's `cuda.core` stands on it. Does not belong here: raw declarations (`cupyrite-sys`), finding libraries
//! (`cupyrite-pathfinder`), anything of Python.
//!
//! Which device runs the program is decided once, at the first use of the driver, by `CUPYRITE_DEVICE`
//! (`auto`, `gpu` or `cpu`); see [`backend`]. What is wrong where nothing works, and what would fix it, says
//! [`doctor::examine`].

mod arguments;
mod birth;
pub mod cache;
mod context;
mod device;
mod device_buffer;
pub mod dlpack;
pub mod doctor;
mod error;
mod event;
mod frees;
mod host_buffer;
mod image;
mod ipc;
mod kernel;
mod launch;
mod layout;
mod library;
mod linker;
mod linker_options;
mod location;
pub mod managed;
mod memory;
mod object_code;
mod occupancy;
mod own_thread;
mod pool;
mod pool_end;
mod program;
mod relaxed;
mod resource;
mod status;
mod stream;
mod strided_copy;
mod transfer;
mod typed;
mod users;
mod virtual_memory;

pub use arguments::{DevicePtr, KernelArg, KernelArgs};
pub use birth::Birth;
pub use context::{Context, Entered};
pub use cupyrite_sys as sys;
pub use device::{ComputeCapability, Device};
pub use device_buffer::{
    DeviceBuffer, SimpleMemory, Taken, enter_for, is_capturing, wait_for_streams,
};
pub use error::{Error, Result};
pub use event::{Event, EventOptions, IpcEventHandle, SoleEvent};
pub use host_buffer::{HostBuffer, StreamScope};
pub use ipc::BufferDescriptor;
pub use kernel::{FunctionAttribute, Kernel, ParamInfo};
pub use launch::LaunchConfig;
pub use layout::{Index, MAX_DIMS, StrideOrder, StridedLayout};
pub use library::Library;
pub use linker::{Linker, LinkerBackend};
pub use linker_options::LinkerOptions;
pub use location::MemoryLocation;
pub use memory::{Buffer, DeviceCopy};
pub use object_code::{Code, CodeKind, ObjectCode};
pub use occupancy::{BlockSize, DynamicShared};
pub use pool::{LastPool, MemoryPool, PoolAccess, PoolAttribute, PoolKind, PoolOptions};
pub use pool_end::pools_kept_aside;
pub use program::{
    Compiler, CompilerBackend, PchStatus, Program, ProgramOptions, SourceKind,
    bundled_headers_directory, default_arch, user_cache_directory,
};
pub use relaxed::Relaxed;
pub use resource::{HostMemory, MemoryResource};
pub use status::explanation;
pub use stream::{LastStream, Stream, StreamOptions};
pub use strided_copy::{StridedMemory, copy_strided};
pub use transfer::{
    CopyOptions, CopyRange, FillPattern, MemoryKind, PointerInfo, SourceAccessOrder, copy_async,
    copy_batch_async, fill_async, pointer_info,
};
pub use typed::{ConstPtr, MutPtr, Param, Params, TypedKernel};
pub use users::Users;
pub use virtual_memory::{
    Granularity, ShareHandle, VirtualAllocation, VirtualMemory, VirtualMemoryOptions,
};

/// Which driver serves this process: NVIDIA's, or the CPU device.
///
/// Decides it if nothing has yet.
///
/// # Errors
///
/// [`Error::Load`] if `CUPYRITE_DEVICE` has an unknown value, or asks for a GPU where no driver library is found.
pub fn backend() -> Result<sys::loader::Backend> {
    init_software_driver();
    Ok(sys::loader::driver_backend()?)
}

/// What a call of the driver needs before the driver is known to be used: false in a fork of a process that used it, where
/// nothing may be called.
#[cold]
#[inline(never)]
pub(crate) fn prepare_driver() -> bool {
    if birth::forked() {
        return false;
    }
    init_software_driver();
    true
}

/// Offers the CPU device to the loader; cheap after the first time.
#[inline]
pub(crate) fn init_software_driver() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(cupyrite_cpu::install);
}

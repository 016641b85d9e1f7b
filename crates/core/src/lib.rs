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
//! This crate provides ownership, lifetimes, the right current context, and errors that explain themselves; the Python
//! package `cuda.core` is built on it. Raw declarations belong to `cupyrite-sys`, the search for libraries to
//! `cupyrite-pathfinder`, the diagnosis of installations to `cupyrite-doctor`, and Python objects to `cupyrite-python`.
//!
//! `CUPYRITE_DEVICE` (`auto`, `gpu` or `cpu`) decides at the first use of the driver which device runs the program;
//! see [`backend`]. [`mod@test`] gives each test of a program a device of its own. The crate `cupyrite-doctor` diagnoses
//! an installation that does not work and suggests fixes.

mod array;
mod backend;
mod cancellable;
pub mod checkpoint;
mod compile;
mod context;
mod deferred_drops;
#[doc(hidden)]
pub mod destroyed;
mod error;
mod fork;
pub mod graph;
mod graphics;
#[doc(hidden)]
pub mod hint;
mod memory;
mod module;
mod preparation;
mod shared;
mod status;
mod stream;
mod synchronization;
pub mod system;
mod tensor_map;
pub mod test;
mod texture;

pub use array::{Index, MAX_DIMS, StrideOrder, StridedLayout, dlpack};
pub use backend::backend;
pub use compile::{
    Compiler, CompilerBackend, Linker, LinkerBackend, LinkerOptions, PchStatus, Program,
    ProgramOptions, SourceKind, bundled_headers_directory, cache, default_arch,
    user_cache_directory,
};
pub use context::{
    ComputeCapability, Context, ContextGuard, Device, DeviceResource, RelaxedCapture, SmGroup,
    SmResource, SmSplit, WorkqueueResource, WorkqueueScope,
};
pub use cupyrite_sys as sys;
pub use error::{Error, Result, UNUSABLE_CONTEXT};
pub use fork::ForkGeneration;
pub use graphics::{GraphicsAccess, GraphicsOptions, GraphicsResource};
pub use memory::{
    Buffer, BufferDescriptor, CopyOptions, CopyRange, DeviceBuffer, DeviceCopy, DevicePtr, FREED,
    FillPattern, Granularity, HostBuffer, HostMemoryResource, MemoryAccess, MemoryKind,
    MemoryLocation, MemoryPool, MemoryResource, PointerInfo, PoolAttribute, PoolKind, PoolOptions,
    RawAllocation, ShareableHandleKind, SimpleAllocation, SourceAccessOrder, StreamScope,
    StridedMemory, UniquePool, VirtualAllocationKind, VirtualMemoryOptions, VirtualMemoryResource,
    copy_async, copy_batch_async, copy_strided, deferred_pool_count, enter_for_default_stream,
    fill_async, managed, pointer_info,
};
pub use module::{
    CodeKind, CodeSource, ConstPtr, DynamicSharedMemory, FunctionAttribute, Kernel, KernelArg,
    KernelArgs, LaunchConfig, Library, MaxPotentialBlockSize, MutPtr, ObjectCode, Param, ParamInfo,
    ParamKind, Params, TypedKernel,
};
pub use status::explain_status;
pub use stream::{
    Event, EventOptions, IpcEventHandle, Stream, StreamOptions, StreamUsage, UniqueEvent,
    UniqueStream, is_capturing, wait_for_streams,
};
pub use tensor_map::{TensorMap, TensorMapDescription, TensorMapMode};
pub use texture::{
    AddressMode, ArrayFormat, ArrayKind, ArrayOptions, FilterMode, MipmappedArray, OpaqueArray,
    PitchedMemory, ReadMode, SurfaceObject, TextureObject, TextureOptions, TextureResource,
};

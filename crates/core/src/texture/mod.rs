//! Textures and surfaces: CUDA arrays, mipmapped arrays, and the objects through which kernels read and write them.
//!
//! Belongs here: creation, copies, ownership. Every object owns what it refers to: a texture its array or buffer, a level
//! its mipmapped array. Sampling belongs to the device.

mod array;
mod copy;
mod format;
mod object;

pub use array::{ArrayKind, ArrayOptions, MipmappedArray, OpaqueArray};
pub use copy::PitchedMemory;
pub use format::ArrayFormat;
pub use object::{
    AddressMode, FilterMode, ReadMode, SurfaceObject, TextureObject, TextureOptions,
    TextureResource,
};

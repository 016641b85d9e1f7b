//! Arrays, textures and surfaces: what they are and how they are read.
//!
//! Belongs here: element formats, array memory, texture and surface objects, sampling as the CUDA Programming Guide's
//! appendix on texture fetching defines it. Does not belong here: API handles' life and argument checks (`driver`), PTX
//! (`engine`).
//!
//! A 64-bit handle in a kernel names an entry of the tables in [`objects`]. Handles are never used twice, so a worker of
//! the engine may keep what it looked up: a lock is taken once a launch and handle, not once a fetch.

mod address;
mod blocks;
mod cube;
mod descriptor;
mod format;
pub mod objects;
mod query;
mod sample;
mod srgb;
mod storage;
mod surface;
#[cfg(test)]
mod tests;
mod texel;

pub use descriptor::{
    AddressMode, Filter, Geometry, Image, Resource, ResourceView, Surface, SurfaceDescriptor,
    Texture, TextureDescriptor, TextureError,
};
pub use format::{ChannelKind, Format, Packing};
pub use sample::{Coordinates, Detail, Fetch, View};
pub use storage::{Level, Shape, Storage, StorageError};
pub use surface::{Outside, Places, Refused, read as read_element, write as write_element};
pub use texel::{LANES, Row, Rows};

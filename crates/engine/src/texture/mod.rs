//! Arrays, textures and surfaces: their memory, formats, sampling and access.
//!
//! Belongs here: element formats, array memory, texture and surface objects, and sampling as defined by the CUDA
//! Programming Guide's appendix on texture fetching. Does not belong here: API handles and argument checks
//! (`cupyrite-cpu`), PTX.
//!
//! A 64-bit handle in a kernel names an entry of the tables in [`objects`]. Handles are never reused, so an engine
//! worker may cache the lookup: it takes the lock once per launch and handle instead of once per fetch.

mod address;
mod blocks;
mod cube;
mod descriptor;
mod format;
pub mod objects;
mod query;
mod references;
mod sample;
mod sparse;
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
pub use references::{BoundReference, Reference, ReferenceKind, Sampler};
pub use sample::{Coordinates, Detail, Fetch, View};
pub use sparse::{Mappings, SparseProperties, TILE, Tiles};
pub use storage::{LEVEL_ALIGN, Level, Shape, Storage, StorageError};
pub use surface::{
    BoundaryMode, InvalidAccess, SurfaceAccess, read as read_element, write as write_element,
};
pub use texel::{LANES, Row, Rows, element_address};

//! Texture and surface queries (PTX ISA, `txq` and `suq`).

use cupyrite_ptx::textures::Query;

use super::descriptor::{AddressMode, Filter, Geometry, Image, Surface, Texture};
use super::format::{ChannelKind, Format, Packing};
use super::references::Sampler;
use super::storage::Shape;

/// The number of a channel data type, as in OpenCL (PTX ISA, table "Channel Data Type").
fn data_type(format: &Format) -> u32 {
    use ChannelKind::{Float, Signed, Snorm, Unorm, Unsigned};
    if format.packing == Packing::Rgb10A2 {
        return 0x10D6;
    }
    match (format.kind, format.bits) {
        (Snorm, 8) => 0x10D0,
        (Snorm, _) => 0x10D1,
        (Unorm, 8) => 0x10D2,
        (Unorm, _) => 0x10D3,
        (Signed, 8) => 0x10D7,
        (Signed, 16) => 0x10D8,
        (Signed, _) => 0x10D9,
        (Unsigned, 8) => 0x10DA,
        (Unsigned, 16) => 0x10DB,
        (Unsigned, _) => 0x10DC,
        (Float, 16) => 0x10DD,
        (Float, _) => 0x10DE,
    }
}

/// The number of a channel order.
fn order(format: &Format) -> u32 {
    match format.channels {
        1 => 0x10B0,
        2 => 0x10B2,
        _ => 0x10B5,
    }
}

fn extent(image: &Image, dimensions: u8, k: u8) -> u32 {
    if k < dimensions {
        image.extent[usize::from(k)]
    } else {
        0
    }
}

/// Number of layers as CUDA counts them: cubes for cubemaps.
fn array_size(shape: Shape, layers: u32) -> u32 {
    match (shape.layered, shape.cubemap) {
        (false, _) => 0,
        (true, false) => layers,
        (true, true) => layers / 6,
    }
}

/// `txq.filter_mode`: nearest, linear.
fn filter_mode(filter: Filter) -> u32 {
    u32::from(filter == Filter::Linear)
}

/// `txq.addr_mode_0`: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border.
fn address_mode(mode: AddressMode) -> u32 {
    match mode {
        AddressMode::Wrap => 0,
        AddressMode::Mirror => 1,
        AddressMode::Clamp => 3,
        AddressMode::Border => 4,
    }
}

impl Sampler {
    /// The value of an attribute; zero for those of textures.
    pub fn query(&self, what: Query) -> u32 {
        match what {
            Query::ForceUnnormalizedCoords => u32::from(self.force_unnormalized),
            Query::FilterMode => filter_mode(self.filter),
            Query::AddrMode(k) => address_mode(self.address[usize::from(k) % 3]),
            _ => 0,
        }
    }
}

impl Texture {
    /// The value of an attribute; extents are those of mipmap level `level`, zero if it does not exist.
    pub fn query(&self, what: Query, level: u32) -> u32 {
        let Some(image) = self.images.get(level as usize) else {
            return 0;
        };
        let shape = match self.geometry {
            Geometry::Array(shape) => shape,
            Geometry::Buffer => Shape {
                dimensions: 1,
                layered: false,
                cubemap: false,
            },
        };
        match what {
            Query::Width => extent(image, shape.dimensions, 0),
            // The layer count takes the place of the first missing dimension, as on an H200.
            Query::Height if shape.dimensions == 1 => match (self.geometry, shape.layered) {
                (Geometry::Buffer, _) => 0,
                (_, true) => self.layers,
                (_, false) => 1,
            },
            Query::Height => extent(image, shape.dimensions, 1),
            Query::Depth if shape.dimensions == 2 => array_size(shape, self.layers),
            Query::Depth => extent(image, shape.dimensions, 2),
            Query::ChannelDataType => data_type(&self.format),
            Query::ChannelOrder => order(&self.format),
            Query::NormalizedCoords => u32::from(self.descriptor.normalized),
            Query::ArraySize => array_size(shape, self.layers),
            Query::NumMipmapLevels => self.images.len() as u32,
            Query::NumSamples => 1,
            Query::ForceUnnormalizedCoords => u32::from(!self.descriptor.normalized),
            Query::FilterMode => filter_mode(self.descriptor.filter),
            Query::AddrMode(k) => address_mode(self.descriptor.address[usize::from(k) % 3]),
            Query::MemoryLayout => 0,
        }
    }
}

impl Surface {
    /// Number of layers including faces; zero if it is neither layered nor a cubemap.
    fn stacked(&self) -> u32 {
        if self.shape.layered || self.shape.cubemap {
            self.layers
        } else {
            0
        }
    }

    /// The value of an attribute.
    pub fn query(&self, what: Query) -> u32 {
        match what {
            Query::Width => extent(&self.image, self.shape.dimensions, 0),
            Query::Height if self.shape.dimensions == 1 => self.stacked(),
            Query::Height => extent(&self.image, self.shape.dimensions, 1),
            Query::Depth if self.shape.dimensions == 2 => self.stacked(),
            Query::Depth => extent(&self.image, self.shape.dimensions, 2),
            Query::ChannelDataType => data_type(&self.format),
            Query::ChannelOrder => order(&self.format),
            Query::ArraySize => array_size(self.shape, self.layers),
            Query::NumMipmapLevels => self.descriptor.storage.level_count(),
            // One sample, a linear layout, and no sampler.
            Query::NumSamples => 1,
            _ => 0,
        }
    }
}

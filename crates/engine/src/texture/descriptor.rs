//! Texture and surface objects and their descriptors.

use std::fmt;
use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::format::{ChannelKind, Format};
use super::sparse::{Mappings, Tiles};
use super::srgb::{self, LINEAR};
use super::storage::{Shape, Storage};
use super::texel::{Loader, Precision, interpolation, is_alpha, loader};

/// Addressing outside the texture (CUDA Programming Guide, "Texture Memory").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// Periodic; without normalised coordinates equivalent to [`Self::Clamp`].
    Wrap,
    /// The nearest texel at the edge.
    Clamp,
    /// Periodic with every other period mirrored; without normalised coordinates equivalent to [`Self::Clamp`].
    Mirror,
    /// The border colour.
    Border,
}

/// Filtering of texels or mipmap levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest one.
    Point,
    /// Interpolation between neighbours.
    Linear,
}

/// The fields of `CUDA_TEXTURE_DESC`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextureDescriptor {
    /// Addressing of each dimension.
    pub address: [AddressMode; 3],
    /// Filtering of texels.
    pub filter: Filter,
    /// Filtering of mipmap levels.
    pub mip_filter: Filter,
    /// `CU_TRSF_READ_AS_INTEGER`: 8-bit and 16-bit integers are not normalised.
    pub read_as_integer: bool,
    /// `CU_TRSF_NORMALIZED_COORDINATES`.
    pub normalized: bool,
    /// `CU_TRSF_SRGB`.
    pub srgb: bool,
    /// `CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION`.
    pub disable_trilinear_optimization: bool,
    /// `CU_TRSF_SEAMLESS_CUBEMAP`.
    pub seamless: bool,
    /// 0 and 1 disable anisotropic filtering; at most 16.
    pub max_anisotropy: u32,
    /// Offset of the level of detail.
    pub mip_bias: f32,
    /// Minimum level of detail.
    pub min_mip: f32,
    /// Maximum level of detail.
    pub max_mip: f32,
    /// The colour of [`AddressMode::Border`].
    pub border: [f32; 4],
}

impl Default for TextureDescriptor {
    /// The descriptor of a zeroed C structure.
    fn default() -> Self {
        Self {
            address: [AddressMode::Wrap; 3],
            filter: Filter::Point,
            mip_filter: Filter::Point,
            read_as_integer: false,
            normalized: false,
            srgb: false,
            disable_trilinear_optimization: false,
            seamless: false,
            max_anisotropy: 0,
            mip_bias: 0.0,
            min_mip: 0.0,
            max_mip: 0.0,
            border: [0.0; 4],
        }
    }
}

impl TextureDescriptor {
    /// Converts a `CUDA_TEXTURE_DESC`.
    ///
    /// # Errors
    /// [`TextureError::Descriptor`] for an unknown address mode, filter mode or flag, or an anisotropy above 16.
    pub fn from_c(c: &sys::CUDA_TEXTURE_DESC) -> Result<Self, TextureError> {
        let address = |m: sys::CUaddress_mode| match m {
            sys::CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP => Ok(AddressMode::Wrap),
            sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP => Ok(AddressMode::Clamp),
            sys::CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR => Ok(AddressMode::Mirror),
            sys::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER => Ok(AddressMode::Border),
            _ => Err(TextureError::Descriptor),
        };
        let filter = |m: sys::CUfilter_mode| match m {
            sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT => Ok(Filter::Point),
            sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR => Ok(Filter::Linear),
            _ => Err(TextureError::Descriptor),
        };
        let known = sys::CU_TRSF_READ_AS_INTEGER
            | sys::CU_TRSF_NORMALIZED_COORDINATES
            | sys::CU_TRSF_SRGB
            | sys::CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
            | sys::CU_TRSF_SEAMLESS_CUBEMAP;
        if c.flags & !known != 0 || c.maxAnisotropy > 16 {
            return Err(TextureError::Descriptor);
        }
        let [x, y, z] = c.addressMode;
        Ok(Self {
            address: [address(x)?, address(y)?, address(z)?],
            filter: filter(c.filterMode)?,
            mip_filter: filter(c.mipmapFilterMode)?,
            read_as_integer: c.flags & sys::CU_TRSF_READ_AS_INTEGER != 0,
            normalized: c.flags & sys::CU_TRSF_NORMALIZED_COORDINATES != 0,
            srgb: c.flags & sys::CU_TRSF_SRGB != 0,
            disable_trilinear_optimization: c.flags & sys::CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
                != 0,
            seamless: c.flags & sys::CU_TRSF_SEAMLESS_CUBEMAP != 0,
            max_anisotropy: c.maxAnisotropy,
            mip_bias: c.mipmapLevelBias,
            min_mip: c.minMipmapLevelClamp,
            max_mip: c.maxMipmapLevelClamp,
            border: c.borderColor,
        })
    }
}

/// The memory that a texture reads.
#[derive(Clone, Debug)]
pub enum Resource {
    /// One level of an array.
    Array {
        /// The memory.
        storage: Arc<Storage>,
        /// The level; zero for an array with a single level.
        level: u32,
    },
    /// All levels of a mipmapped array.
    Mipmapped {
        /// The memory.
        storage: Arc<Storage>,
    },
    /// One-dimensional device memory, indexed by element.
    Linear {
        /// First byte.
        address: u64,
        /// Size in bytes.
        bytes: u64,
        /// Format of the elements.
        format: Format,
    },
    /// Two-dimensional device memory with a pitch.
    Pitch2D {
        /// First byte.
        address: u64,
        /// Elements per row.
        width: u64,
        /// Number of rows.
        height: u64,
        /// Distance between rows in bytes.
        pitch: u64,
        /// Format of the elements.
        format: Format,
    },
}

/// `CUDA_RESOURCE_VIEW_DESC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceView {
    /// The format in which elements are read; `None` for `CU_RES_VIEW_FORMAT_NONE`.
    pub format: Option<Format>,
    /// Width, height and depth of the view in texels.
    pub size: [u64; 3],
    /// First mipmap level.
    pub first_level: u32,
    /// Last mipmap level.
    pub last_level: u32,
    /// First layer.
    pub first_layer: u32,
    /// Last layer.
    pub last_layer: u32,
}

/// Why a texture or surface cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextureError {
    /// The descriptor has an invalid value.
    Descriptor,
    /// Resource, descriptor and view do not match.
    Combination,
}

impl fmt::Display for TextureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Descriptor => "a field of the texture descriptor is invalid",
            Self::Combination => "the texture's resource, descriptor and view do not match",
        })
    }
}

impl std::error::Error for TextureError {}

/// Interpretation of a texture's coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// Element indices of linear memory.
    Buffer,
    /// Positions in an array of this shape; pitched memory is two-dimensional.
    Array(Shape),
}

/// One mipmap level, as seen by a texture or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Address of the first element.
    pub base: u64,
    /// Width, height and depth in texels.
    pub extent: [u32; 3],
    /// Distance between rows of elements in bytes.
    pub row_pitch: u64,
    /// Distance between slices, layers or faces in bytes; between layers if the level consists of tiles.
    pub slice_pitch: u64,
    /// The tiles of a sparse array.
    pub tiles: Option<Tiles>,
}

/// A texture object.
#[derive(Clone, Debug)]
pub struct Texture {
    pub(crate) descriptor: TextureDescriptor,
    pub(crate) resource: Resource,
    pub(crate) geometry: Geometry,
    /// The format that is read: the view's, otherwise the resource's.
    pub(crate) format: Format,
    /// Levels, at least one.
    pub(crate) images: Vec<Image>,
    /// Number of layers, including faces.
    pub(crate) layers: u32,
    /// Loads elements.
    pub(crate) loader: Loader,
    /// The colour of [`AddressMode::Border`], as bits of a fetch's result.
    pub(crate) border: [u32; 4],
    /// Loads elements for interpolation.
    pub(crate) blend: Loader,
    /// The border colour for interpolation.
    pub(crate) blend_border: [u32; 4],
    /// Rounding of interpolated values.
    pub(crate) precision: Precision,
}

impl Texture {
    /// Creates a texture.
    ///
    /// The memory of [`Resource::Linear`] and [`Resource::Pitch2D`] is not accessed: kernels check on each fetch that
    /// it is allocated.
    ///
    /// # Errors
    /// [`TextureError::Combination`] for a level, layer or extent that the resource lacks, a view of linear memory or
    /// in a format with another element size, and addresses and pitches that are not aligned to the element. Integers
    /// that are not normalised are never interpolated, whatever the filter.
    pub fn new(
        resource: Resource,
        descriptor: TextureDescriptor,
        view: Option<&ResourceView>,
    ) -> Result<Self, TextureError> {
        let bad = Err(TextureError::Combination);
        let (format, geometry, images, layers) = match &resource {
            Resource::Array { storage, level } => {
                of_storage(storage, *level..level.saturating_add(1), view)?
            }
            Resource::Mipmapped { storage } => of_storage(storage, 0..storage.level_count(), view)?,
            Resource::Linear {
                address,
                bytes,
                format,
            } => {
                let element = u64::from(format.element_bytes());
                let count = bytes / element;
                if view.is_some()
                    || format.is_compressed()
                    || address % element != 0
                    || count > u64::from(u32::MAX)
                    || address.checked_add(*bytes).is_none()
                {
                    return bad;
                }
                let image = Image {
                    base: *address,
                    extent: [count as u32, 1, 1],
                    row_pitch: *bytes,
                    slice_pitch: *bytes,
                    tiles: None,
                };
                (*format, Geometry::Buffer, vec![image], 1)
            }
            Resource::Pitch2D {
                address,
                width,
                height,
                pitch,
                format,
            } => {
                let element = u64::from(format.element_bytes());
                let row = width.checked_mul(element);
                let all = pitch
                    .checked_mul(*height)
                    .and_then(|n| address.checked_add(n));
                let side = 1..=1u64 << 27;
                if view.is_some()
                    || format.is_compressed()
                    || address % element != 0
                    || pitch % element != 0
                    || !side.contains(width)
                    || !side.contains(height)
                    || row.is_none_or(|row| row > *pitch)
                    || all.is_none()
                {
                    return bad;
                }
                let image = Image {
                    base: *address,
                    extent: [*width as u32, *height as u32, 1],
                    row_pitch: *pitch,
                    slice_pitch: pitch * height,
                    tiles: None,
                };
                let shape = Shape {
                    dimensions: 2,
                    layered: false,
                    cubemap: false,
                };
                (*format, Geometry::Array(shape), vec![image], 1)
            }
        };
        let integers = reads_integers(&format, &descriptor);
        let load = loader(&format, integers, descriptor.srgb);
        let (blend, precision) = interpolation(&format, descriptor.srgb)
            .filter(|_| !integers)
            .unwrap_or((load, Precision::Single));
        let border: [u32; 4] = std::array::from_fn(|k| {
            let v = border(&format, integers, k, descriptor.border[k]);
            if matches!(precision, Precision::Srgb { channels } if k < channels && !is_alpha(k, channels))
            {
                LINEAR[usize::from(srgb::encode(descriptor.border[k]))].to_bits()
            } else {
                v
            }
        });
        Ok(Self {
            descriptor,
            resource,
            geometry,
            format,
            images,
            layers,
            loader: load,
            border,
            blend,
            blend_border: std::array::from_fn(|k| {
                // In the loader's units: signed 8-bit values are not integer multiples of 16-bit ones.
                let unit = precision.unit(k);
                let v = f32::from_bits(border[k]) * unit;
                if unit == 1.0 { v } else { v.round() }.to_bits()
            }),
            precision,
        })
    }

    /// The texture's descriptor.
    pub fn descriptor(&self) -> &TextureDescriptor {
        &self.descriptor
    }

    /// The memory it reads.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The interpretation of its coordinates.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The format it reads.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its mipmap levels, at least one.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// Number of layers; for cubemaps, of all faces. 1 if it is neither layered nor a cubemap.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Whether fetches return integers.
    pub fn reads_integers(&self) -> bool {
        reads_integers(&self.format, &self.descriptor)
    }

    /// The mappings of the sparse array that it reads, if it does.
    pub fn sparse_mappings(&self) -> Option<&Mappings> {
        match &self.resource {
            Resource::Array { storage, .. } | Resource::Mipmapped { storage }
                if storage.sparse_properties().is_some() =>
            {
                storage.mappings()
            }
            _ => None,
        }
    }

    /// Whether memory is mapped into the array that it reads.
    pub fn is_accessible(&self) -> bool {
        match &self.resource {
            Resource::Array { storage, .. } | Resource::Mipmapped { storage } => {
                storage.is_accessible()
            }
            _ => true,
        }
    }

    /// The device memory it reads, if it does not read an array: first address and length in bytes.
    pub fn memory(&self) -> Option<(u64, u64)> {
        match &self.resource {
            Resource::Linear { address, bytes, .. } => Some((*address, *bytes)),
            Resource::Pitch2D {
                address,
                width,
                height,
                pitch,
                format,
            } => {
                // The last row may be shorter than the pitch.
                let row = width * u64::from(format.element_bytes());
                Some((*address, pitch * (height - 1) + row))
            }
            _ => None,
        }
    }
}

/// Channel `k` of the border, as on an H200: in the precision of a fixed-point format, and for integers the lowest bits
/// of the float's bit pattern.
fn border(format: &Format, integers: bool, k: usize, v: f32) -> u32 {
    if k >= usize::from(format.channels) {
        return 0;
    }
    let most = |bits: u8| ((1u64 << bits) - 1) as f32;
    // Adding zero turns negative zero into positive zero.
    let fixed =
        |low: f32, most: f32| ((v.max(low).min(1.0) * most - 0.5).ceil() / most + 0.0).to_bits();
    match (format.kind, format.bits) {
        (ChannelKind::Float, _) => v.to_bits(),
        (ChannelKind::Signed, bits) if integers => {
            ((v.to_bits() << (32 - bits)) as i32 >> (32 - bits)) as u32
        }
        (ChannelKind::Unsigned, bits) if integers => v.to_bits() & (u32::MAX >> (32 - bits)),
        (ChannelKind::Unsigned | ChannelKind::Unorm, bits) => fixed(0.0, most(bits)),
        (ChannelKind::Signed | ChannelKind::Snorm, bits) => fixed(-1.0, most(bits - 1)),
    }
}

fn reads_integers(format: &Format, descriptor: &TextureDescriptor) -> bool {
    format.is_integer() && (descriptor.read_as_integer || format.bits > 16)
}

type Parts = (Format, Geometry, Vec<Image>, u32);

/// The levels `all` of a storage, seen through `view`.
fn of_storage(
    storage: &Storage,
    all: std::ops::Range<u32>,
    view: Option<&ResourceView>,
) -> Result<Parts, TextureError> {
    let bad = Err(TextureError::Combination);
    let own = storage.format();
    let shape = storage.shape();
    let mut format = own;
    let (mut first, mut last) = (all.start, all.end.saturating_sub(1));
    let mut layers = (0, storage.layers() - 1);
    if let Some(view) = view {
        if let Some(f) = view.format {
            // A block of a compressed view is one element of the array.
            if f.element_bytes() != own.element_bytes() || own.is_compressed() && f != own {
                return bad;
            }
            // As on an H100: blocks are elements of 32-bit unsigned integers.
            let words = own.kind == ChannelKind::Unsigned && own.bits == 32;
            if f.is_compressed() && !own.is_compressed() && !words {
                return bad;
            }
            format = f;
        }
        first = all.start.saturating_add(view.first_level);
        last = all.start.saturating_add(view.last_level);
        if view.first_level > view.last_level || last >= all.end {
            return bad;
        }
        if shape.layered || shape.cubemap {
            layers = (view.first_layer, view.last_layer);
            let count = layers.1.wrapping_sub(layers.0).wrapping_add(1);
            if layers.0 > layers.1
                || layers.1 >= storage.layers()
                || shape.cubemap && !count.is_multiple_of(6)
            {
                return bad;
            }
        }
    }
    let scale = format.block() / own.block();
    let mut images = Vec::new();
    for n in first..=last {
        let Some(level) = storage.level(n) else {
            return bad;
        };
        let mut extent = level.extent;
        extent[0] *= scale;
        if shape.dimensions > 1 {
            extent[1] *= scale;
        }
        images.push(Image {
            base: level.base + u64::from(layers.0) * level.slice_pitch,
            extent,
            row_pitch: level.row_pitch,
            slice_pitch: level.slice_pitch,
            tiles: level.tiles,
        });
    }
    if let (Some(view), Some(image)) = (view, images.first()) {
        // The view's size, if given, must be that of its first level.
        let stacked = shape.layered || shape.cubemap;
        let fits = |have: u32, want: u64| want == 0 || want == u64::from(have);
        if !fits(image.extent[0], view.size[0])
            || shape.dimensions > 1 && !fits(image.extent[1], view.size[1])
            || !stacked && shape.dimensions > 2 && !fits(image.extent[2], view.size[2])
        {
            return bad;
        }
    }
    Ok((
        format,
        Geometry::Array(shape),
        images,
        layers.1 - layers.0 + 1,
    ))
}

/// The memory that a surface accesses.
#[derive(Clone, Debug)]
pub struct SurfaceDescriptor {
    /// The memory.
    pub storage: Arc<Storage>,
    /// The level; zero for an array with a single level.
    pub level: u32,
}

/// A surface object.
#[derive(Clone, Debug)]
pub struct Surface {
    pub(crate) descriptor: SurfaceDescriptor,
    pub(crate) image: Image,
    pub(crate) shape: Shape,
    pub(crate) format: Format,
    pub(crate) layers: u32,
}

impl Surface {
    /// Creates a surface. The caller checks that the array was created with `CUDA_ARRAY3D_SURFACE_LDST` if required.
    ///
    /// # Errors
    /// [`TextureError::Combination`] for a missing level, a block-compressed one, and one of a sparse array.
    pub fn new(descriptor: SurfaceDescriptor) -> Result<Self, TextureError> {
        let storage = &descriptor.storage;
        let format = storage.format();
        let level = storage
            .level(descriptor.level)
            .filter(|level| !format.is_compressed() && level.tiles.is_none())
            .ok_or(TextureError::Combination)?;
        Ok(Self {
            image: Image {
                base: level.base,
                extent: level.extent,
                row_pitch: level.row_pitch,
                slice_pitch: level.slice_pitch,
                tiles: None,
            },
            shape: storage.shape(),
            format,
            layers: storage.layers(),
            descriptor,
        })
    }

    /// Whether memory is mapped into the array that it accesses.
    pub fn is_accessible(&self) -> bool {
        self.descriptor.storage.is_accessible()
    }

    /// The surface's descriptor.
    pub fn descriptor(&self) -> &SurfaceDescriptor {
        &self.descriptor
    }

    /// Format of its elements.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The location of its elements.
    pub fn image(&self) -> Image {
        self.image
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of layers; for cubemaps, of all faces. 1 if it is neither layered nor a cubemap.
    pub fn layers(&self) -> u32 {
        self.layers
    }
}

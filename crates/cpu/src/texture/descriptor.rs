//! Texture and surface objects.

use std::fmt;
use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::format::{ChannelKind, Format};
use super::srgb::{self, LINEAR};
use super::storage::{Shape, Storage};
use super::texel::{Loader, Precision, interpolation, is_alpha, loader};

/// What a coordinate outside the texture means (CUDA Programming Guide, "Texture Memory").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// Periodic; only with normalised coordinates, else as [`Self::Clamp`].
    Wrap,
    /// The nearest texel of the edge.
    Clamp,
    /// Periodic, every other period mirrored; only with normalised coordinates, else as [`Self::Clamp`].
    Mirror,
    /// The border colour.
    Border,
}

/// How a value is made of texels, or of mipmap levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest one.
    Point,
    /// Interpolated between neighbours.
    Linear,
}

/// How a texture is read: the fields of `CUDA_TEXTURE_DESC`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextureDescriptor {
    /// Per dimension.
    pub address: [AddressMode; 3],
    /// Between texels.
    pub filter: Filter,
    /// Between mipmap levels.
    pub mip_filter: Filter,
    /// `CU_TRSF_READ_AS_INTEGER`: integers of 8 and 16 bits stay integers.
    pub read_as_integer: bool,
    /// `CU_TRSF_NORMALIZED_COORDINATES`.
    pub normalized: bool,
    /// `CU_TRSF_SRGB`.
    pub srgb: bool,
    /// `CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION`.
    pub disable_trilinear_optimization: bool,
    /// `CU_TRSF_SEAMLESS_CUBEMAP`.
    pub seamless: bool,
    /// 0 and 1 are none; at most 16.
    pub max_anisotropy: u32,
    /// Added to the level of detail.
    pub mip_bias: f32,
    /// Least level of detail.
    pub min_mip: f32,
    /// Greatest level of detail.
    pub max_mip: f32,
    /// What [`AddressMode::Border`] gives.
    pub border: [f32; 4],
}

impl Default for TextureDescriptor {
    /// All fields of the C structure zero.
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
    /// The descriptor that a `CUDA_TEXTURE_DESC` is.
    ///
    /// # Errors
    /// [`TextureError::Descriptor`] for an address mode, filter mode or flag that does not exist, an anisotropy above 16.
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

/// What a texture reads.
#[derive(Clone, Debug)]
pub enum Resource {
    /// One level of an array.
    Array {
        /// The memory.
        storage: Arc<Storage>,
        /// Which level; zero for an array that has only one.
        level: u32,
    },
    /// All levels of a mipmapped array.
    Mipmapped {
        /// The memory.
        storage: Arc<Storage>,
    },
    /// Device memory, one-dimensional, read by element number.
    Linear {
        /// First byte.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Format of the elements.
        format: Format,
    },
    /// Device memory as rows with a pitch.
    Pitch2D {
        /// First byte.
        address: u64,
        /// Elements in a row.
        width: u64,
        /// Rows.
        height: u64,
        /// Bytes from a row to the next.
        pitch: u64,
        /// Format of the elements.
        format: Format,
    },
}

/// `CUDA_RESOURCE_VIEW_DESC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceView {
    /// Format to read the elements as; `None` leaves it (`CU_RES_VIEW_FORMAT_NONE`).
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

/// Why a texture or surface cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextureError {
    /// The descriptor has a value that does not exist.
    Descriptor,
    /// Resource, descriptor and view do not go together.
    Combination,
}

impl fmt::Display for TextureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Descriptor => "a field of the texture descriptor has no valid value",
            Self::Combination => "the texture's resource, descriptor and view do not go together",
        })
    }
}

impl std::error::Error for TextureError {}

/// How a texture's coordinates are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// Elements of linear memory, by number.
    Buffer,
    /// An array of this shape (pitched memory is two-dimensional).
    Array(Shape),
}

/// One mipmap level as a texture or surface sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Address of the first element.
    pub base: u64,
    /// Width, height and depth in texels.
    pub extent: [u32; 3],
    /// Bytes from a row of elements to the next.
    pub row_pitch: u64,
    /// Bytes from a slice, layer or face to the next.
    pub slice_pitch: u64,
}

/// A texture object.
#[derive(Clone, Debug)]
pub struct Texture {
    pub(crate) descriptor: TextureDescriptor,
    pub(crate) resource: Resource,
    pub(crate) geometry: Geometry,
    /// Format that is read: the view's, else the resource's.
    pub(crate) format: Format,
    /// Levels, at least one.
    pub(crate) images: Vec<Image>,
    /// Layers (faces included).
    pub(crate) layers: u32,
    /// Reads its elements.
    pub(crate) loader: Loader,
    /// What [`AddressMode::Border`] gives, as bits of what a fetch gives.
    pub(crate) border: [u32; 4],
    /// Reads its elements for interpolation.
    pub(crate) blend: Loader,
    /// The border for interpolation.
    pub(crate) blend_border: [u32; 4],
    /// What interpolation rounds to.
    pub(crate) precision: Precision,
}

impl Texture {
    /// A texture.
    ///
    /// Memory of [`Resource::Linear`] and [`Resource::Pitch2D`] is not looked at now: whether it is (still) allocated is
    /// found out when a kernel reads it.
    ///
    /// # Errors
    /// [`TextureError::Combination`] for a level, layer or extent that the resource does not have, a view of linear
    /// memory or in a format whose elements have another size, addresses and pitches that are not aligned to the
    /// element. Integers that stay integers are never interpolated, whatever the filter.
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
                // As the loader gives its values: signed ones of 8 bits are no whole multiples of one of 16.
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

    /// What it reads.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// How its coordinates are understood.
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

    /// Layers: of a cubemap the faces of all of them; 1 if it is neither.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Whether a fetch gives integers.
    pub fn reads_integers(&self) -> bool {
        reads_integers(&self.format, &self.descriptor)
    }

    /// The device memory it reads, if it reads no array: first address and length in bytes.
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
                // The last row need not be as long as the pitch.
                let row = width * u64::from(format.element_bytes());
                Some((*address, pitch * (height - 1) + row))
            }
            _ => None,
        }
    }
}

/// Channel `k` of the border as an H200 has it: in the precision of the format where that is fixed, and for integers the
/// lowest bits of the number's pattern.
fn border(format: &Format, integers: bool, k: usize, v: f32) -> u32 {
    if k >= usize::from(format.channels) {
        return 0;
    }
    let most = |bits: u8| ((1u64 << bits) - 1) as f32;
    // Adding zero makes a negative zero positive.
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

/// The levels `all` of a storage, through `view`.
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
        });
    }
    if let (Some(view), Some(image)) = (view, images.first()) {
        // The view's size must be that of its first level, where it says one.
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

/// What a surface reads and writes.
#[derive(Clone, Debug)]
pub struct SurfaceDescriptor {
    /// The memory.
    pub storage: Arc<Storage>,
    /// Which level; zero for an array that has only one.
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
    /// A surface. Whether the array was made with `CUDA_ARRAY3D_SURFACE_LDST` is the caller's to check.
    ///
    /// # Errors
    /// [`TextureError::Combination`] for a level that the array does not have, or a block-compressed one.
    pub fn new(descriptor: SurfaceDescriptor) -> Result<Self, TextureError> {
        let storage = &descriptor.storage;
        let format = storage.format();
        let level = storage
            .level(descriptor.level)
            .filter(|_| !format.is_compressed())
            .ok_or(TextureError::Combination)?;
        Ok(Self {
            image: Image {
                base: level.base,
                extent: level.extent,
                row_pitch: level.row_pitch,
                slice_pitch: level.slice_pitch,
            },
            shape: storage.shape(),
            format,
            layers: storage.layers(),
            descriptor,
        })
    }

    /// What it was made from.
    pub fn descriptor(&self) -> &SurfaceDescriptor {
        &self.descriptor
    }

    /// Format of its elements.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where its elements are.
    pub fn image(&self) -> Image {
        self.image
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Layers: of a cubemap the faces of all of them; 1 if it is neither.
    pub fn layers(&self) -> u32 {
        self.layers
    }
}

//! `TextureObject` and `SurfaceObject`: handles with which kernels read and write arrays.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES,
    CU_TRSF_READ_AS_INTEGER, CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_RESOURCE_DESC_st,
    CUDA_TEXTURE_DESC_st, CUaddress_mode, CUdevice_attribute, CUdeviceptr, CUfilter_mode,
    CUresourcetype, CUsurfObject, CUtexObject,
};

use crate::context::{Context, Device};
use crate::error::{Error, Result, driver, report};
use crate::memory::device_copy::DeviceCopy;
use crate::memory::typed::Buffer;
use crate::module::args::KernelArg;
use crate::texture::array::{MipmappedArray, OpaqueArray};
use crate::texture::format::{ArrayFormat, check_channels};

/// What a coordinate outside of a texture reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// The texture is repeated; needs normalised coordinates.
    Wrap,
    /// The nearest element.
    #[default]
    Clamp,
    /// The texture is repeated, every other time reversed; needs normalised coordinates.
    Mirror,
    /// The border colour.
    Border,
}

/// How a value between elements is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FilterMode {
    /// The nearest element.
    #[default]
    Point,
    /// Interpolated.
    Linear,
}

/// How integers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// As they are.
    #[default]
    ElementType,
    /// As floats from 0 to 1, or -1 to 1; for 8-bit and 16-bit integers.
    NormalizedFloat,
}

/// Sampling state of a texture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextureOptions {
    /// What coordinates outside of the texture read, by dimension.
    pub address_mode: [AddressMode; 3],
    /// How a value between elements is read.
    pub filter_mode: FilterMode,
    /// How integers are read.
    pub read_mode: ReadMode,
    /// Whether coordinates go from 0 to 1.
    pub normalized_coords: bool,
    /// Whether 8-bit values are converted from sRGB to linear.
    pub srgb: bool,
    /// Whether trilinear filtering is exact.
    pub disable_trilinear_optimization: bool,
    /// Whether filtering crosses the edges of a cube.
    pub seamless_cubemap: bool,
    /// Greatest anisotropy, 0 for none.
    pub max_anisotropy: u32,
    /// How a value between levels is read.
    pub mipmap_filter_mode: FilterMode,
    /// Added to the level.
    pub mipmap_level_bias: f32,
    /// Lowest level.
    pub min_mipmap_level_clamp: f32,
    /// Highest level.
    pub max_mipmap_level_clamp: f32,
    /// Value of [`AddressMode::Border`].
    pub border_color: [f32; 4],
}

impl TextureOptions {
    fn descriptor(&self) -> CUDA_TEXTURE_DESC_st {
        let filter = |mode| match mode {
            FilterMode::Point => CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            FilterMode::Linear => CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
        };
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        CUDA_TEXTURE_DESC_st {
            addressMode: self.address_mode.map(|mode| match mode {
                AddressMode::Wrap => CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
                AddressMode::Clamp => CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
                AddressMode::Mirror => CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
                AddressMode::Border => CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
            }),
            filterMode: filter(self.filter_mode),
            flags: flag(
                self.read_mode == ReadMode::ElementType,
                CU_TRSF_READ_AS_INTEGER,
            ) | flag(self.normalized_coords, CU_TRSF_NORMALIZED_COORDINATES)
                | flag(self.srgb, CU_TRSF_SRGB)
                | flag(
                    self.disable_trilinear_optimization,
                    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION,
                )
                | flag(self.seamless_cubemap, CU_TRSF_SEAMLESS_CUBEMAP),
            maxAnisotropy: self.max_anisotropy,
            mipmapFilterMode: filter(self.mipmap_filter_mode),
            mipmapLevelBias: self.mipmap_level_bias,
            minMipmapLevelClamp: self.min_mipmap_level_clamp,
            maxMipmapLevelClamp: self.max_mipmap_level_clamp,
            borderColor: self.border_color,
            reserved: [0; 12],
        }
    }
}

/// Owner of linear memory.
type MemoryOwner = Arc<dyn Any + Send + Sync>;

/// What a texture or surface refers to, and keeps alive.
#[derive(Clone, Debug)]
pub struct TextureResource {
    kind: ResourceKind,
}

#[derive(Clone, Debug)]
enum ResourceKind {
    Array(OpaqueArray),
    Mipmapped(MipmappedArray),
    Linear {
        address: CUdeviceptr,
        bytes: usize,
        format: ArrayFormat,
        channels: u32,
        #[expect(dead_code, reason = "held for its destructor")]
        owner: Option<MemoryOwner>,
    },
    Pitch2D {
        address: CUdeviceptr,
        format: ArrayFormat,
        channels: u32,
        width: usize,
        height: usize,
        pitch: usize,
        #[expect(dead_code, reason = "held for its destructor")]
        owner: Option<MemoryOwner>,
    },
}

impl TextureResource {
    /// An array, or a level of a mipmapped one.
    pub fn array(array: &OpaqueArray) -> TextureResource {
        TextureResource {
            kind: ResourceKind::Array(array.clone()),
        }
    }

    /// All levels of a mipmapped array.
    pub fn mipmapped(array: &MipmappedArray) -> TextureResource {
        TextureResource {
            kind: ResourceKind::Mipmapped(array.clone()),
        }
    }

    /// A buffer, read by index without filtering.
    ///
    /// # Errors
    ///
    /// Same as [`TextureResource::linear_raw`].
    pub fn linear<T: DeviceCopy + Send + Sync>(
        buffer: &Buffer<T>,
        format: ArrayFormat,
        channels: u32,
    ) -> Result<TextureResource> {
        let owner: MemoryOwner = Arc::new(buffer.clone());
        // SAFETY: the owner keeps the buffer's memory alive.
        unsafe {
            TextureResource::linear_raw(
                buffer.address(),
                buffer.size_bytes(),
                format,
                channels,
                Some(owner),
            )
        }
    }

    /// Linear memory of `bytes` bytes, read by index without filtering.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number of channels other than 1, 2 and 4, and for bytes that are not whole
    /// elements.
    ///
    /// # Safety
    ///
    /// The memory lives as long as `owner`, or as the textures that are created from the result.
    pub unsafe fn linear_raw(
        address: CUdeviceptr,
        bytes: usize,
        format: ArrayFormat,
        channels: u32,
        owner: Option<MemoryOwner>,
    ) -> Result<TextureResource> {
        const FUNCTION: &str = "TextureResource::linear";
        check_channels(FUNCTION, channels)?;
        let element = format.bytes() * channels as usize;
        if bytes == 0 || !bytes.is_multiple_of(element) {
            return Err(Error::argument(
                FUNCTION,
                "size_bytes",
                format!(
                    "is {bytes}; expected a multiple of the element's {element} bytes, at least one element"
                ),
            ));
        }
        Ok(TextureResource {
            kind: ResourceKind::Linear {
                address,
                bytes,
                format,
                channels,
                owner,
            },
        })
    }

    /// Rows of linear memory as a picture of `width` elements and `height` rows at a distance of `pitch` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for extents of 0, a pitch smaller than a row, and channels other than 1, 2 and 4.
    ///
    /// # Safety
    ///
    /// As [`TextureResource::linear_raw`], for `pitch * height` bytes.
    pub unsafe fn pitch2d_raw(
        address: CUdeviceptr,
        (width, height, pitch): (usize, usize, usize),
        format: ArrayFormat,
        channels: u32,
        owner: Option<MemoryOwner>,
    ) -> Result<TextureResource> {
        const FUNCTION: &str = "TextureResource::pitch2d";
        check_channels(FUNCTION, channels)?;
        for (name, extent) in [("width", width), ("height", height)] {
            if extent == 0 {
                return Err(Error::argument(FUNCTION, name, "is 0; expected at least 1"));
            }
        }
        let row = width.checked_mul(format.bytes() * channels as usize);
        if row.is_none_or(|row| pitch < row) {
            return Err(Error::argument(
                FUNCTION,
                "pitch_bytes",
                format!(
                    "is {pitch}; expected at least the bytes of a row, {width} elements of {} bytes",
                    format.bytes() * channels as usize
                ),
            ));
        }
        Ok(TextureResource {
            kind: ResourceKind::Pitch2D {
                address,
                format,
                channels,
                width,
                height,
                pitch,
                owner,
            },
        })
    }

    fn check_live(&self) -> Result<()> {
        match &self.kind {
            ResourceKind::Array(array) => array.check_live(),
            ResourceKind::Mipmapped(array) => array.check_live(),
            ResourceKind::Linear { .. } | ResourceKind::Pitch2D { .. } => Ok(()),
        }
    }

    fn descriptor(&self) -> CUDA_RESOURCE_DESC_st {
        // SAFETY: integers, null pointers and enums, for which zero is valid.
        let mut found: CUDA_RESOURCE_DESC_st = unsafe { std::mem::zeroed() };
        // Writing fields of a union, of types that need no drop.
        match &self.kind {
            ResourceKind::Array(array) => {
                found.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
                found.res.array.hArray = array.handle();
            }
            ResourceKind::Mipmapped(array) => {
                found.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
                found.res.mipmap.hMipmappedArray = array.handle();
            }
            ResourceKind::Linear {
                address,
                bytes,
                format,
                channels,
                ..
            } => {
                found.resType = CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
                found.res.linear.devPtr = *address;
                found.res.linear.format = format.to_driver();
                found.res.linear.numChannels = *channels;
                found.res.linear.sizeInBytes = *bytes;
            }
            ResourceKind::Pitch2D {
                address,
                format,
                channels,
                width,
                height,
                pitch,
                ..
            } => {
                found.resType = CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
                found.res.pitch2D.devPtr = *address;
                found.res.pitch2D.format = format.to_driver();
                found.res.pitch2D.numChannels = *channels;
                found.res.pitch2D.width = *width;
                found.res.pitch2D.height = *height;
                found.res.pitch2D.pitchInBytes = *pitch;
            }
        }
        found
    }

    /// The context of an array; of linear memory, the device's own.
    fn context(&self, device: Device) -> Result<Context> {
        match &self.kind {
            ResourceKind::Array(array) => Ok(array.context().clone()),
            ResourceKind::Mipmapped(array) => Ok(array.context().clone()),
            ResourceKind::Linear { .. } | ResourceKind::Pitch2D { .. } => device.active_context(),
        }
    }

    /// The context in which an object of `device` is created.
    fn context_on(&self, function: &'static str, device: Device) -> Result<Context> {
        let context = self.context(device)?;
        if context.device() == device {
            return Ok(context);
        }
        Err(Error::argument(
            function,
            "resource",
            format!(
                "is an array of device {}, the object of device {}",
                context.device().ordinal(),
                device.ordinal()
            ),
        ))
    }
}

macro_rules! objects {
    ($(#[$doc:meta])* $name:ident, $inner:ident, $handle:ty, $kind:ident, $destroy:ident) => {
        #[derive(Debug)]
        struct $inner {
            handle: $handle,
            context: Context,
            created: u32,
            resource: TextureResource,
        }

        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            inner: Arc<$inner>,
        }

        impl $name {
            /// The driver's handle, a 64-bit kernel argument; valid while a clone of this object lives.
            pub fn handle(&self) -> $handle {
                self.inner.handle
            }

            /// Whether the program has destroyed the object, by its handle or with its context.
            pub fn is_destroyed(&self) -> bool {
                // A number, compared like the pointers of other handles.
                let handle = std::ptr::without_provenance_mut::<u8>(self.inner.handle as usize);
                OwnedKind::$kind.is_destroyed(handle, self.context().handle(), self.inner.created)
            }

            /// The context of the object.
            pub fn context(&self) -> &Context {
                &self.inner.context
            }

            /// What it refers to.
            pub fn resource(&self) -> &TextureResource {
                &self.inner.resource
            }
        }

        impl Drop for $inner {
            fn drop(&mut self) {
                // A number, compared like the pointers of other handles.
                let handle = std::ptr::without_provenance_mut::<u8>(self.handle as usize);
                if !self.context.is_current_process()
                    || OwnedKind::$kind.is_destroyed(handle, self.context.handle(), self.created)
                {
                    return;
                }
                report(self.context.with_current(|| {
                    // SAFETY: created by `new`, destroyed once, here.
                    unsafe { driver!(owned $destroy(self.handle)) }
                }));
            }
        }
    };
}

objects! {
    /// A texture: sampled reads in kernels. Cheap to clone; the last clone destroys it. Keep it until the kernels that
    /// use it are done.
    TextureObject, TextureInner, CUtexObject, Texture, cuTexObjectDestroy
}

objects! {
    /// A surface: reads and writes of an array in kernels, by position. Cheap to clone; the last clone destroys it. Keep
    /// it until the kernels that use it are done.
    SurfaceObject, SurfaceInner, CUsurfObject, Surface, cuSurfObjectDestroy
}

impl TextureObject {
    /// Creates a texture on `device`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an array of another device; otherwise the driver's error,
    /// `CUDA_ERROR_INVALID_VALUE` for options that the resource does not allow. Source: `cuTexObjectCreate`.
    pub fn new(
        device: Device,
        resource: &TextureResource,
        options: &TextureOptions,
    ) -> Result<TextureObject> {
        resource.check_live()?;
        let context = resource.context_on("TextureObject::new", device)?;
        let (memory, sampling) = (resource.descriptor(), options.descriptor());
        let mut handle: CUtexObject = 0;
        let place = &raw mut handle;
        // SAFETY: `place` is valid for writes; the descriptors are read before the call returns, and what they refer to
        // is owned by `resource`.
        let created = context.with_current(|| unsafe {
            driver!(cuTexObjectCreate(
                place,
                &raw const memory,
                &raw const sampling,
                std::ptr::null()
            ))
        });
        created.map_err(|error| match explain(device, resource, options) {
            Some(problem) => error.with_log(&problem),
            None => error,
        })?;
        Ok(TextureObject {
            inner: Arc::new(TextureInner {
                handle,
                context,
                created: OwnedKind::Texture.epoch(),
                resource: resource.clone(),
            }),
        })
    }
}

/// Why the driver refused a texture, as far as its manual tells: the rules of `cuTexObjectCreate`.
#[cold]
fn explain(device: Device, resource: &TextureResource, options: &TextureOptions) -> Option<String> {
    let limit = |attribute| device.attribute(attribute).ok().map(i64::from);
    let multiple = |name: &str, value: u64, attribute| {
        let step = limit(attribute).and_then(|step| u64::try_from(step).ok())?;
        (step != 0 && !value.is_multiple_of(step)).then(|| {
            format!(
                "the {name} is {value:#x}, which is not a multiple of the device's {step} bytes"
            )
        })
    };
    let most = |name: &str, value: usize, attribute| {
        let most = limit(attribute)?;
        (value as i64 > most).then(|| format!("the {name} is {value}, the device's limit {most}"))
    };
    use CUdevice_attribute as A;
    match &resource.kind {
        ResourceKind::Linear {
            address,
            bytes,
            format,
            channels,
            ..
        } => multiple(
            "address",
            *address,
            A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
        )
        .or_else(|| {
            most(
                "number of elements",
                bytes / (format.bytes() * *channels as usize),
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH,
            )
        }),
        ResourceKind::Pitch2D {
            address,
            width,
            height,
            pitch,
            ..
        } => multiple(
            "address",
            *address,
            A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
        )
        .or_else(|| {
            multiple(
                "pitch",
                *pitch as u64,
                A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,
            )
        })
        .or_else(|| {
            most(
                "width",
                *width,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH,
            )
        })
        .or_else(|| {
            most(
                "height",
                *height,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
            )
        })
        .or_else(|| {
            most(
                "pitch",
                *pitch,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,
            )
        }),
        ResourceKind::Array(_) | ResourceKind::Mipmapped(_) => options
            .seamless_cubemap
            .then(|| "seamless_cubemap needs an array that is a cube".to_owned()),
    }
}

impl SurfaceObject {
    /// Creates a surface on `device`, of an array with [`surface_load_store`](crate::ArrayOptions::surface_load_store).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another resource and for an array of another device; otherwise the driver's error.
    /// Source: `cuSurfObjectCreate`.
    pub fn new(device: Device, resource: &TextureResource) -> Result<SurfaceObject> {
        const FUNCTION: &str = "SurfaceObject::new";
        let problem = match &resource.kind {
            ResourceKind::Array(array) if array.options().surface_load_store => None,
            ResourceKind::Array(_) => {
                Some("is an array without surface_load_store; create it with this option")
            }
            ResourceKind::Mipmapped(_) => {
                Some("is a mipmapped array; a surface takes one of its levels")
            }
            ResourceKind::Linear { .. } | ResourceKind::Pitch2D { .. } => {
                Some("is linear memory; a surface takes an array")
            }
        };
        if let Some(problem) = problem {
            return Err(Error::argument(FUNCTION, "resource", problem));
        }
        resource.check_live()?;
        let context = resource.context_on(FUNCTION, device)?;
        let memory = resource.descriptor();
        let mut handle: CUsurfObject = 0;
        let place = &raw mut handle;
        context.with_current(|| {
            // SAFETY: as in `TextureObject::new`.
            unsafe { driver!(cuSurfObjectCreate(place, &raw const memory)) }
        })?;
        Ok(SurfaceObject {
            inner: Arc::new(SurfaceInner {
                handle,
                context,
                created: OwnedKind::Surface.epoch(),
                resource: resource.clone(),
            }),
        })
    }
}

// SAFETY: passes the handle in the object's shared state, in place.
unsafe impl KernelArg for &TextureObject {
    fn address(&self) -> *const c_void {
        (&raw const self.inner.handle).cast()
    }
    fn size(&self) -> usize {
        size_of::<CUtexObject>()
    }
}

// SAFETY: passes the handle in the object's shared state, in place.
unsafe impl KernelArg for &SurfaceObject {
    fn address(&self) -> *const c_void {
        (&raw const self.inner.handle).cast()
    }
    fn size(&self) -> usize {
        size_of::<CUsurfObject>()
    }
}

impl Device {
    /// [`TextureObject::new`].
    ///
    /// # Errors
    ///
    /// Same as [`TextureObject::new`].
    pub fn create_texture_object(
        &self,
        resource: &TextureResource,
        options: &TextureOptions,
    ) -> Result<TextureObject> {
        TextureObject::new(*self, resource, options)
    }

    /// [`SurfaceObject::new`].
    ///
    /// # Errors
    ///
    /// Same as [`SurfaceObject::new`].
    pub fn create_surface_object(&self, resource: &TextureResource) -> Result<SurfaceObject> {
        SurfaceObject::new(*self, resource)
    }
}

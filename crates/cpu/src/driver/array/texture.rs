//! Creation and queries of texture and surface objects. Sampling: `cupyrite_engine::texture`.

use std::sync::Arc;

use cupyrite_engine::texture::{
    ChannelKind, Format, Packing, Resource, ResourceView, Surface, SurfaceDescriptor, Texture,
    TextureDescriptor, TextureError, objects,
};
use cupyrite_sys::driver::{
    self as sys, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUarray_format,
    CUdevice_attribute as Attribute, CUresourcetype,
};

use crate::driver::array;
use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::device::attributes;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_with};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::entry::logs::refuse;

static TEXTURES: HandleTable<TextureObject> = HandleTable::new(HandleKind::Texture);
static SURFACES: HandleTable<SurfaceObject> = HandleTable::new(HandleKind::Surface);

/// A texture object's descriptors, as returned by queries.
struct TextureObject {
    context: u64,
    resource: CUDA_RESOURCE_DESC,
    descriptor: CUDA_TEXTURE_DESC,
    view: Option<CUDA_RESOURCE_VIEW_DESC>,
}

// SAFETY: the pointers in the descriptors are handles, which are never dereferenced.
unsafe impl Send for TextureObject {}
// SAFETY: shared references only read the descriptors.
unsafe impl Sync for TextureObject {}

/// A surface object's descriptor, as returned by queries.
struct SurfaceObject {
    context: u64,
    resource: CUDA_RESOURCE_DESC,
}

// SAFETY: the pointers in the descriptor are handles, which are never dereferenced.
unsafe impl Send for SurfaceObject {}
// SAFETY: shared references only read the descriptor.
unsafe impl Sync for SurfaceObject {}

impl From<TextureError> for Code {
    fn from(_: TextureError) -> Self {
        Code::INVALID_VALUE
    }
}

/// Destroys the texture and surface objects of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    // The engine's table is keyed by handle.
    TEXTURES.remove_where_key(|handle, t| {
        let removed = t.context == context;
        if removed {
            objects::remove_texture(handle);
        }
        removed
    });
    SURFACES.remove_where_key(|handle, s| {
        let removed = s.context == context;
        if removed {
            objects::remove_surface(handle);
        }
        removed
    });
}

/// Attributes that limit textures over linear memory.
pub(crate) const TEXTURE_ALIGNMENT: Attribute = Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
pub(crate) const TEXTURE_PITCH_ALIGNMENT: Attribute =
    Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT;
pub(crate) const LINEAR_WIDTH: Attribute =
    Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH;
pub(crate) const PITCH_2D_WIDTH: Attribute =
    Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH;
pub(crate) const PITCH_2D_HEIGHT: Attribute =
    Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT;
pub(crate) const PITCH_2D_PITCH: Attribute =
    Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH;

/// A limit of the context's device.
pub(crate) fn limit(context: &Context, attribute: Attribute) -> Res<u64> {
    attributes::get(device::by_ordinal(context.device)?, attribute).map(|v| v as u64)
}

/// The resource of a texture, and what its other descriptors are checked against.
struct TextureSource {
    resource: Resource,
    /// For an array: its flags, and its extents as in its descriptor.
    array: Option<(u32, [u64; 3])>,
}

impl TextureSource {
    fn has_flag(&self, flag: u32) -> bool {
        self.array.is_some_and(|(flags, _)| flags & flag != 0)
    }
}

fn source(context: &Context, resource: &CUDA_RESOURCE_DESC) -> Res<TextureSource> {
    // The flags are reserved and must be zero.
    if resource.flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    match resource.resType {
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
            // SAFETY: any bits are a handle.
            let handle = unsafe { resource.res.array.hArray };
            let array = array::find(handle.addr() as u64).ok_or(Code::INVALID_VALUE)?;
            Ok(TextureSource {
                resource: Resource::Array {
                    storage: array.storage().clone(),
                    level: array.level_number(),
                },
                array: Some((array.flags(), array.size())),
            })
        }
        CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            // SAFETY: any bits are a handle.
            let handle = unsafe { resource.res.mipmap.hMipmappedArray };
            let mipmapped =
                array::find_mipmapped(handle.addr() as u64).ok_or(Code::INVALID_VALUE)?;
            Ok(TextureSource {
                resource: Resource::Mipmapped {
                    storage: mipmapped.storage().clone(),
                },
                array: Some((mipmapped.flags(), mipmapped.size())),
            })
        }
        CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
            // SAFETY: a struct of integers, for which any bits are valid.
            let linear = unsafe { resource.res.linear };
            let (address, bytes) = (linear.devPtr, linear.sizeInBytes as u64);
            let format = memory_format(linear.format, linear.numChannels)?;
            let elements = bytes / u64::from(format.element_bytes());
            if elements > limit(context, LINEAR_WIDTH)? {
                return Err(Code::INVALID_VALUE);
            }
            check_address(context, address)?;
            Ok(TextureSource {
                resource: Resource::Linear {
                    address,
                    bytes,
                    format,
                },
                array: None,
            })
        }
        CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
            // SAFETY: a struct of integers, for which any bits are valid.
            let pitched = unsafe { resource.res.pitch2D };
            let (address, pitch) = (pitched.devPtr, pitched.pitchInBytes as u64);
            let (width, height) = (pitched.width as u64, pitched.height as u64);
            let format = memory_format(pitched.format, pitched.numChannels)?;
            if width > limit(context, PITCH_2D_WIDTH)?
                || height > limit(context, PITCH_2D_HEIGHT)?
                || pitch > limit(context, PITCH_2D_PITCH)?
                || !pitch.is_multiple_of(limit(context, TEXTURE_PITCH_ALIGNMENT)?)
            {
                return Err(Code::INVALID_VALUE);
            }
            check_address(context, address)?;
            Ok(TextureSource {
                resource: Resource::Pitch2D {
                    address,
                    width,
                    height,
                    pitch,
                    format,
                },
                array: None,
            })
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The format of linear memory. Normalised and compressed formats apply to arrays only.
pub(crate) fn memory_format(format: CUarray_format, channels: u32) -> Res<Format> {
    Format::new(format.0, channels)
        .filter(|f| {
            let normalised = matches!(f.kind, ChannelKind::Unorm | ChannelKind::Snorm);
            !f.is_compressed() && (!normalised || f.packing == Packing::Rgb10A2)
        })
        .ok_or(Code::INVALID_VALUE)
}

/// Checks the alignment of a texture's address. Allocation is checked when a kernel reads, because the memory may be
/// freed in the meantime.
fn check_address(context: &Context, address: u64) -> Res {
    if address != 0 && address.is_multiple_of(limit(context, TEXTURE_ALIGNMENT)?) {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// Maximum anisotropy; larger values are clamped.
const MAX_ANISOTROPY: u32 = 16;
/// Unnamed bits between the named flags, which NVIDIA's driver ignores.
pub(crate) const IGNORED_FLAGS: u32 = 0x0C;

fn descriptor(given: &CUDA_TEXTURE_DESC, source: &TextureSource) -> Res<TextureDescriptor> {
    let mut c = *given;
    c.maxAnisotropy = c.maxAnisotropy.min(MAX_ANISOTROPY);
    c.flags &= !IGNORED_FLAGS;
    let descriptor = TextureDescriptor::from_c(&c)?;
    if descriptor.seamless && !source.has_flag(sys::CUDA_ARRAY3D_CUBEMAP) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(descriptor)
}

/// Validates the view of an array; a view of linear memory is ignored.
fn view(given: &CUDA_RESOURCE_VIEW_DESC, source: &TextureSource) -> Res<Option<ResourceView>> {
    let Some((flags, size)) = source.array else {
        return Ok(None);
    };
    let storage = match &source.resource {
        Resource::Array { storage, .. } | Resource::Mipmapped { storage } => storage,
        _ => return Ok(None),
    };
    let format = Format::of_view(given.format.0).ok_or(Code::INVALID_VALUE)?;
    // A block-compressed view of an uncompressed array has four texels per element and dimension.
    let scale = u64::from(format.block() / storage.format().block());
    let extents = [given.width, given.height, given.depth].map(|extent| extent as u64);
    if scale == 0 || extents != [size[0] * scale, size[1] * scale, size[2]] {
        return Err(Code::INVALID_VALUE);
    }
    let (first_level, last_level) = (given.firstMipmapLevel, given.lastMipmapLevel);
    let (mut first_layer, mut last_layer) = (given.firstLayer, given.lastLayer);
    if first_level > last_level || first_layer > last_layer {
        return Err(Code::INVALID_VALUE);
    }
    let mut last = 0;
    if matches!(source.resource, Resource::Mipmapped { .. }) {
        last = storage.level_count() - 1;
    } else if last_level != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if flags & sys::CUDA_ARRAY3D_LAYERED == 0 {
        if last_layer != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // All faces of a cubemap.
        (first_layer, last_layer) = (0, storage.layers() - 1);
    }
    let most = storage.layers() - 1;
    Ok(Some(ResourceView {
        format: Some(format),
        size: [0; 3],
        // Levels and layers are clamped to the last one.
        first_level: first_level.min(last),
        last_level: last_level.min(last),
        first_layer: first_layer.min(most),
        last_layer: last_layer.min(most),
    }))
}

fn create_texture(out: u64, resource_at: u64, descriptor_at: u64, view_at: u64) -> Res {
    non_null(out)?;
    non_null(resource_at)?;
    non_null(descriptor_at)?;
    let context = context::current()?;
    let given_resource = get::<CUDA_RESOURCE_DESC>(resource_at)?;
    let given_descriptor = get::<CUDA_TEXTURE_DESC>(descriptor_at)?;
    let given_view = match view_at {
        0 => None,
        _ => Some(get::<CUDA_RESOURCE_VIEW_DESC>(view_at)?),
    };
    let source = source(&context, &given_resource)?;
    let descriptor = descriptor(&given_descriptor, &source)?;
    let view = match &given_view {
        Some(given) => view(given, &source)?,
        None => None,
    };
    // As on an H100, BC7 arrays in sRGB are read as such only.
    if let Resource::Array { storage, .. } | Resource::Mipmapped { storage } = &source.resource {
        let format = storage.format();
        if format.packing == Packing::Bc7 && format.srgb && !descriptor.srgb {
            return refuse(Code::INVALID_VALUE, || {
                "the format of the array is sRGB; CU_TRSF_SRGB must be set".to_owned()
            });
        }
    }
    let is_array = source.array.is_some();
    let texture = Texture::new(source.resource, descriptor, view.as_ref())?;
    let object = Arc::new(TextureObject {
        context: context.id,
        resource: given_resource,
        descriptor: given_descriptor,
        // A view of linear memory is ignored.
        view: given_view.filter(|_| is_array),
    });
    let handle = TEXTURES.insert(fresh_id(), object);
    objects::insert_texture(handle, Arc::new(texture));
    put(out, handle).inspect_err(|_| {
        let _ = TEXTURES.remove(handle);
        objects::remove_texture(handle);
    })
}

fn create_surface(out: u64, resource_at: u64) -> Res {
    non_null(out)?;
    non_null(resource_at)?;
    let context = context::current()?;
    let resource = get::<CUDA_RESOURCE_DESC>(resource_at)?;
    if resource.resType != CUresourcetype::CU_RESOURCE_TYPE_ARRAY || resource.flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: any bits are a handle.
    let handle = unsafe { resource.res.array.hArray };
    // `CUDA_ARRAY3D_SURFACE_LDST` is not required, as in NVIDIA's driver.
    let array = array::find(handle.addr() as u64).ok_or(Code::INVALID_VALUE)?;
    let surface = Surface::new(SurfaceDescriptor {
        storage: array.storage().clone(),
        level: array.level_number(),
    })?;
    let object = Arc::new(SurfaceObject {
        context: context.id,
        resource,
    });
    let handle = SURFACES.insert(fresh_id(), object);
    objects::insert_surface(handle, Arc::new(surface));
    put(out, handle).inspect_err(|_| {
        let _ = SURFACES.remove(handle);
        objects::remove_surface(handle);
    })
}

/// Removes an object from the engine's table once the work that the context has launched is done: kernels look it up
/// when they use it first.
fn after_launched_work(context: u64, remove: impl FnOnce() + Send + 'static) {
    match context::by_id(context) {
        Some(context) => context.after_launched_work(Box::new(remove)),
        None => remove(),
    }
}

/// Reports a resource descriptor.
fn put_resource(out: u64, given: &CUDA_RESOURCE_DESC) -> Res {
    put_with(out, |resource: &mut CUDA_RESOURCE_DESC| {
        resource.resType = given.resType;
        resource.res = given.res;
        resource.flags = given.flags;
    })
}

/// Looks up a texture object after the checks common to all queries.
fn texture(out: u64, handle: u64) -> Res<Arc<TextureObject>> {
    non_null(out)?;
    context::current()?;
    TEXTURES.find(handle).ok_or(Code::INVALID_VALUE)
}

driver_entry_points! {
    fn texture_create "cuTexObjectCreate" (out: u64, resource: u64, descriptor: u64, view: u64) {
        create_texture(out, resource, descriptor, view)
    }
    fn texture_destroy "cuTexObjectDestroy" (handle: u64) {
        context::current()?;
        if handle == 0 {
            return Ok(());
        }
        let texture = TEXTURES.remove(handle).map_err(|_| Code::INVALID_VALUE)?;
        after_launched_work(texture.context, move || drop(objects::remove_texture(handle)));
        Ok(())
    }
    fn texture_resource "cuTexObjectGetResourceDesc" (out: u64, handle: u64) {
        put_resource(out, &texture(out, handle)?.resource)
    }
    fn texture_descriptor "cuTexObjectGetTextureDesc" (out: u64, handle: u64) {
        put(out, texture(out, handle)?.descriptor)
    }
    fn texture_view "cuTexObjectGetResourceViewDesc" (out: u64, handle: u64) {
        // All zeros if the texture has no view.
        let given = texture(out, handle)?.view.unwrap_or_default();
        put_with(out, |view: &mut CUDA_RESOURCE_VIEW_DESC| {
            view.format = given.format;
            (view.width, view.height, view.depth) = (given.width, given.height, given.depth);
            view.firstMipmapLevel = given.firstMipmapLevel;
            view.lastMipmapLevel = given.lastMipmapLevel;
            (view.firstLayer, view.lastLayer) = (given.firstLayer, given.lastLayer);
            view.reserved = given.reserved;
        })
    }
    fn surface_create "cuSurfObjectCreate" (out: u64, resource: u64) {
        create_surface(out, resource)
    }
    fn surface_destroy "cuSurfObjectDestroy" (handle: u64) {
        context::current()?;
        if handle == 0 {
            return Ok(());
        }
        let surface = SURFACES.remove(handle).map_err(|_| Code::INVALID_VALUE)?;
        after_launched_work(surface.context, move || drop(objects::remove_surface(handle)));
        Ok(())
    }
    fn surface_resource "cuSurfObjectGetResourceDesc" (out: u64, handle: u64) {
        non_null(out)?;
        context::current()?;
        put_resource(out, &SURFACES.find(handle).ok_or(Code::INVALID_VALUE)?.resource)
    }
}

//! Texture objects: the driver's, with the runtime's descriptors.

use cupyrite_sys::driver::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES,
    CU_TRSF_READ_AS_INTEGER, CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUarray_format, CUfilter_mode,
};
use cupyrite_sys::runtime::{
    cudaResourceDesc, cudaResourceType, cudaTextureAddressMode, cudaTextureDesc,
    cudaTextureFilterMode, cudaTextureReadMode,
};

use crate::checked::{get, non_null, put};
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::{array, channel, context};

/// Converts a resource descriptor to the driver's.
///
/// # Errors
/// `cudaErrorInvalidValue` for an unknown type, `cudaErrorInvalidChannelDescriptor`.
pub(crate) fn resource_to_driver(r: &cudaResourceDesc) -> Res<CUDA_RESOURCE_DESC> {
    let mut out = CUDA_RESOURCE_DESC::default();
    out.resType.0 = r.resType.0;
    out.flags = r.flags;
    match r.resType {
        cudaResourceType::cudaResourceTypeArray => {
            // SAFETY: a handle is a number of any bits, and the whole union was read.
            out.res.array.hArray = unsafe { r.res.array.array }.cast();
        }
        cudaResourceType::cudaResourceTypeMipmappedArray => {
            // SAFETY: a handle is a number of any bits, and the whole union was read.
            out.res.mipmap.hMipmappedArray = unsafe { r.res.mipmap.mipmap }.cast();
        }
        cudaResourceType::cudaResourceTypeLinear => {
            // SAFETY: an address and integers are valid for any bits, and the whole union was read.
            let linear = unsafe { r.res.linear };
            let (format, channels) = channel::to_driver(&linear.desc)?;
            // SAFETY: the default zeroes the whole union.
            let to = unsafe { &mut out.res.linear };
            to.devPtr = linear.devPtr as u64;
            (to.format, to.numChannels) = (format, channels);
            to.sizeInBytes = linear.sizeInBytes;
        }
        cudaResourceType::cudaResourceTypePitch2D => {
            // SAFETY: an address and integers are valid for any bits, and the whole union was read.
            let pitched = unsafe { r.res.pitch2D };
            let (format, channels) = channel::to_driver(&pitched.desc)?;
            // SAFETY: the default zeroes the whole union.
            let to = unsafe { &mut out.res.pitch2D };
            to.devPtr = pitched.devPtr as u64;
            (to.format, to.numChannels) = (format, channels);
            (to.width, to.height) = (pitched.width, pitched.height);
            to.pitchInBytes = pitched.pitchInBytes;
        }
        _ => return Err(Error::INVALID_VALUE),
    }
    Ok(out)
}

/// Converts a resource descriptor from the driver's.
pub(crate) fn resource_from_driver(r: &CUDA_RESOURCE_DESC) -> Res<cudaResourceDesc> {
    let mut out = cudaResourceDesc::default();
    out.resType.0 = r.resType.0;
    out.flags = r.flags;
    match out.resType {
        cudaResourceType::cudaResourceTypeArray => {
            // SAFETY: a handle is a number, and the driver wrote the union member that the type selects.
            out.res.array.array = unsafe { r.res.array.hArray }.cast();
        }
        cudaResourceType::cudaResourceTypeMipmappedArray => {
            // SAFETY: a handle is a number, and the driver wrote the union member that the type selects.
            out.res.mipmap.mipmap = unsafe { r.res.mipmap.hMipmappedArray }.cast();
        }
        cudaResourceType::cudaResourceTypeLinear => {
            // SAFETY: the driver wrote the union member that the type selects.
            let linear = unsafe { r.res.linear };
            // SAFETY: the default zeroes the whole union.
            let to = unsafe { &mut out.res.linear };
            to.devPtr = linear.devPtr as *mut _;
            to.desc = channel::from_driver(linear.format, linear.numChannels)?;
            to.sizeInBytes = linear.sizeInBytes;
        }
        cudaResourceType::cudaResourceTypePitch2D => {
            // SAFETY: the driver wrote the union member that the type selects.
            let pitched = unsafe { r.res.pitch2D };
            // SAFETY: the default zeroes the whole union.
            let to = unsafe { &mut out.res.pitch2D };
            to.devPtr = pitched.devPtr as *mut _;
            to.desc = channel::from_driver(pitched.format, pitched.numChannels)?;
            (to.width, to.height) = (pitched.width, pitched.height);
            to.pitchInBytes = pitched.pitchInBytes;
        }
        _ => return Err(Error::UNKNOWN),
    }
    Ok(out)
}

/// The format that a texture of this resource reads, for the runtime's own checks.
fn format(r: &CUDA_RESOURCE_DESC) -> Res<Option<CUarray_format>> {
    match cudaResourceType(r.resType.0) {
        cudaResourceType::cudaResourceTypeArray => {
            // SAFETY: the type selects the union member, which was filled above.
            let handle = unsafe { r.res.array.hArray };
            Ok(Some(array::describe(handle as u64)?.Format))
        }
        // SAFETY: the type selects the union member, which `resource_to_driver` filled.
        cudaResourceType::cudaResourceTypeLinear => Ok(Some(unsafe { r.res.linear.format })),
        // SAFETY: the type selects the union member, which `resource_to_driver` filled.
        cudaResourceType::cudaResourceTypePitch2D => Ok(Some(unsafe { r.res.pitch2D.format })),
        _ => Ok(None),
    }
}

/// Integer formats, which are returned unchanged or normalised.
fn is_integer(format: CUarray_format) -> bool {
    (1..=3).contains(&format.0) || (8..=10).contains(&format.0)
}

/// `cudaResViewFormatUnsignedChar1` to `cudaResViewFormatSignedInt4`: integer views.
const INTEGER_VIEWS: std::ops::RangeInclusive<u32> = 1..=18;

fn flag(condition: bool, flag: u32) -> u32 {
    if condition { flag } else { 0 }
}

fn texture_to_driver(t: &cudaTextureDesc) -> Res<CUDA_TEXTURE_DESC> {
    let element_type = match t.readMode {
        cudaTextureReadMode::cudaReadModeElementType => true,
        cudaTextureReadMode::cudaReadModeNormalizedFloat => false,
        _ => return Err(Error::INVALID_VALUE),
    };
    Ok(CUDA_TEXTURE_DESC {
        addressMode: t.addressMode.map(|m| CUaddress_mode(m.0)),
        filterMode: CUfilter_mode(t.filterMode.0),
        flags: flag(element_type, CU_TRSF_READ_AS_INTEGER)
            | flag(t.normalizedCoords != 0, CU_TRSF_NORMALIZED_COORDINATES)
            | flag(t.sRGB != 0, CU_TRSF_SRGB)
            | flag(
                t.disableTrilinearOptimization != 0,
                CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION,
            )
            | flag(t.seamlessCubemap != 0, CU_TRSF_SEAMLESS_CUBEMAP),
        maxAnisotropy: t.maxAnisotropy,
        mipmapFilterMode: CUfilter_mode(t.mipmapFilterMode.0),
        mipmapLevelBias: t.mipmapLevelBias,
        minMipmapLevelClamp: t.minMipmapLevelClamp,
        maxMipmapLevelClamp: t.maxMipmapLevelClamp,
        borderColor: t.borderColor,
        ..CUDA_TEXTURE_DESC::default()
    })
}

fn texture_from_driver(t: &CUDA_TEXTURE_DESC) -> cudaTextureDesc {
    let has = |flag| i32::from(t.flags & flag != 0);
    cudaTextureDesc {
        addressMode: t.addressMode.map(|m| cudaTextureAddressMode(m.0)),
        filterMode: cudaTextureFilterMode(t.filterMode.0),
        readMode: if has(CU_TRSF_READ_AS_INTEGER) != 0 {
            cudaTextureReadMode::cudaReadModeElementType
        } else {
            cudaTextureReadMode::cudaReadModeNormalizedFloat
        },
        sRGB: has(CU_TRSF_SRGB),
        borderColor: t.borderColor,
        normalizedCoords: has(CU_TRSF_NORMALIZED_COORDINATES),
        maxAnisotropy: t.maxAnisotropy,
        mipmapFilterMode: cudaTextureFilterMode(t.mipmapFilterMode.0),
        mipmapLevelBias: t.mipmapLevelBias,
        minMipmapLevelClamp: t.minMipmapLevelClamp,
        maxMipmapLevelClamp: t.maxMipmapLevelClamp,
        disableTrilinearOptimization: has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
        seamlessCubemap: has(CU_TRSF_SEAMLESS_CUBEMAP),
    }
}

/// Creates a texture object. `texture` is the address of a descriptor.
pub(crate) fn create(
    out: u64,
    resource: &cudaResourceDesc,
    texture: u64,
    view: Option<CUDA_RESOURCE_VIEW_DESC>,
) -> Res {
    let resource = resource_to_driver(resource)?;
    let texture = get::<cudaTextureDesc>(texture)?;
    let texture_for_driver = texture_to_driver(&texture)?;
    let element_type = texture.readMode == cudaTextureReadMode::cudaReadModeElementType;
    let integers = match &view {
        Some(view) => INTEGER_VIEWS.contains(&view.format.0),
        None => format(&resource)?.is_some_and(is_integer),
    };
    // The driver would accept the combination with a different meaning.
    if integers && element_type && texture.filterMode == cudaTextureFilterMode::cudaFilterModeLinear
    {
        return Err(Error::INVALID_FILTER_SETTING);
    }
    let mut object = 0;
    let view = view.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    cu!(cuTexObjectCreate(
        &mut object,
        &resource,
        &texture_for_driver,
        view
    ))?;
    put(out, object).inspect_err(|_| {
        let _ = cu!(cuTexObjectDestroy(object));
    })
}

/// The resource descriptor of a texture object.
pub(crate) fn resource_of(object: u64) -> Res<cudaResourceDesc> {
    context::current()?;
    let mut resource = CUDA_RESOURCE_DESC::default();
    cu!(cuTexObjectGetResourceDesc(&mut resource, object))?;
    resource_from_driver(&resource)
}

/// The view descriptor of a texture object.
pub(crate) fn view_of(object: u64) -> Res<CUDA_RESOURCE_VIEW_DESC> {
    context::current()?;
    let mut view = CUDA_RESOURCE_VIEW_DESC::default();
    cu!(cuTexObjectGetResourceViewDesc(&mut view, object))?;
    Ok(view)
}

runtime_entry_points! {
    fn texture_create "cudaCreateTextureObject" (out: u64, resource: u64, texture: u64, view: u64) {
        non_null(out)?;
        non_null(resource)?;
        non_null(texture)?;
        context::current()?;
        let view = match view {
            0 => None,
            _ => Some(get::<CUDA_RESOURCE_VIEW_DESC>(view)?),
        };
        create(out, &get(resource)?, texture, view)
    }
    fn texture_destroy "cudaDestroyTextureObject" (object: u64) {
        context::current()?;
        cu!(cuTexObjectDestroy(object))
    }
    fn texture_resource "cudaGetTextureObjectResourceDesc" (out: u64, object: u64) {
        non_null(out)?;
        put(out, resource_of(object)?)
    }
    fn texture_descriptor "cudaGetTextureObjectTextureDesc" (out: u64, object: u64) {
        non_null(out)?;
        context::current()?;
        let mut texture = CUDA_TEXTURE_DESC::default();
        cu!(cuTexObjectGetTextureDesc(&mut texture, object))?;
        put(out, texture_from_driver(&texture))
    }
    fn texture_view "cudaGetTextureObjectResourceViewDesc" (out: u64, object: u64) {
        non_null(out)?;
        put(out, view_of(object)?)
    }
}

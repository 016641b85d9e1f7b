//! Valid extents of arrays: the tables of `cuArray3DCreate` and `cuMipmappedArrayCreate`, by the attributes the device
//! reports.

use cupyrite_sys::driver::{self as sys, CUdevice_attribute as Attribute};

use crate::driver::device::Device;
use crate::driver::device::attributes;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;

/// The shape that extents and flags select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayShape {
    One,
    Two,
    Three,
    OneLayered,
    TwoLayered,
    Cubemap,
    CubemapLayered,
}

/// Attributes that hold the maximum width, height and depth; `None` where other rules settle the dimension.
type Attributes = [Option<Attribute>; 3];

const TEXTURE_1D: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH),
    None,
    None,
];
const TEXTURE_2D: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT),
    None,
];
const TEXTURE_2D_GATHER: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    None,
];
const TEXTURE_3D: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH),
];
const TEXTURE_3D_ALTERNATE: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
];
const TEXTURE_1D_LAYERED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    None,
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
];
const TEXTURE_2D_LAYERED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
];
const TEXTURE_CUBEMAP: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH),
    None,
];
const TEXTURE_CUBEMAP_LAYERED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
];
const TEXTURE_1D_MIPMAPPED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    None,
    None,
];
const TEXTURE_2D_MIPMAPPED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    None,
];
const SURFACE_1D: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH),
    None,
    None,
];
const SURFACE_2D: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT),
    None,
];
const SURFACE_3D: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH),
];
const SURFACE_1D_LAYERED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    None,
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS),
];
const SURFACE_2D_LAYERED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS),
];
const SURFACE_CUBEMAP: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH),
    None,
];
const SURFACE_CUBEMAP_LAYERED: Attributes = [
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    Some(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
];

fn shape(size: [u64; 3], flags: u32) -> Res<ArrayShape> {
    let layered = flags & sys::CUDA_ARRAY3D_LAYERED != 0;
    let cubemap = flags & sys::CUDA_ARRAY3D_CUBEMAP != 0;
    let [width, height, depth] = size;
    if width == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if cubemap {
        let faces = if layered {
            depth > 0 && depth.is_multiple_of(6)
        } else {
            depth == 6
        };
        if width != height || !faces {
            return Err(Code::INVALID_VALUE);
        }
        return Ok(if layered {
            ArrayShape::CubemapLayered
        } else {
            ArrayShape::Cubemap
        });
    }
    match (height, depth, layered) {
        (_, 0, true) => Err(Code::INVALID_VALUE),
        (0, _, true) => Ok(ArrayShape::OneLayered),
        (_, _, true) => Ok(ArrayShape::TwoLayered),
        (0, 0, false) => Ok(ArrayShape::One),
        (_, 0, false) => Ok(ArrayShape::Two),
        (0, _, false) => Err(Code::INVALID_VALUE),
        (_, _, false) => Ok(ArrayShape::Three),
    }
}

fn within(device: &Device, size: [u64; 3], limits: Attributes) -> Res<bool> {
    for (length, attribute) in size.into_iter().zip(limits) {
        if let Some(attribute) = attribute
            && length > attributes::get(device, attribute)? as u64
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Checks the extents (in elements) and flags of an array or a mipmapped array.
///
/// # Errors
/// `INVALID_VALUE` for extents that do not match the flags or exceed the device's limits.
pub(crate) fn check(device: &Device, size: [u64; 3], flags: u32, mipmapped: bool) -> Res {
    let shape = shape(size, flags)?;
    let gather = flags & sys::CUDA_ARRAY3D_TEXTURE_GATHER != 0;
    // Texture gather requires a two-dimensional array.
    if gather && shape != ArrayShape::Two {
        return Err(Code::INVALID_VALUE);
    }
    let (texture, surface) = match shape {
        ArrayShape::One if mipmapped => (TEXTURE_1D_MIPMAPPED, SURFACE_1D),
        ArrayShape::One => (TEXTURE_1D, SURFACE_1D),
        ArrayShape::Two if mipmapped => (TEXTURE_2D_MIPMAPPED, SURFACE_2D),
        ArrayShape::Two if gather => (TEXTURE_2D_GATHER, SURFACE_2D),
        ArrayShape::Two => (TEXTURE_2D, SURFACE_2D),
        ArrayShape::Three => (TEXTURE_3D, SURFACE_3D),
        ArrayShape::OneLayered => (TEXTURE_1D_LAYERED, SURFACE_1D_LAYERED),
        ArrayShape::TwoLayered => (TEXTURE_2D_LAYERED, SURFACE_2D_LAYERED),
        ArrayShape::Cubemap => (TEXTURE_CUBEMAP, SURFACE_CUBEMAP),
        ArrayShape::CubemapLayered => (TEXTURE_CUBEMAP_LAYERED, SURFACE_CUBEMAP_LAYERED),
    };
    let fits = within(device, size, texture)?
        || shape == ArrayShape::Three && within(device, size, TEXTURE_3D_ALTERNATE)?;
    let surface_fits =
        flags & sys::CUDA_ARRAY3D_SURFACE_LDST == 0 || within(device, size, surface)?;
    if fits && surface_fits {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_arrays() {
        const L: u32 = sys::CUDA_ARRAY3D_LAYERED;
        const C: u32 = sys::CUDA_ARRAY3D_CUBEMAP;
        for (size, flags, expected) in [
            ([4, 0, 0], 0, Some(ArrayShape::One)),
            ([4, 2, 0], 0, Some(ArrayShape::Two)),
            ([4, 2, 3], 0, Some(ArrayShape::Three)),
            ([4, 0, 3], L, Some(ArrayShape::OneLayered)),
            ([4, 2, 3], L, Some(ArrayShape::TwoLayered)),
            ([4, 4, 6], C, Some(ArrayShape::Cubemap)),
            ([4, 4, 12], C | L, Some(ArrayShape::CubemapLayered)),
            ([0, 0, 0], 0, None),
            ([0, 2, 0], 0, None),
            ([4, 0, 3], 0, None),
            ([4, 0, 0], L, None),
            ([4, 2, 0], L, None),
            ([4, 2, 6], C, None),
            ([4, 4, 12], C, None),
            ([4, 4, 0], C | L, None),
            ([4, 4, 7], C | L, None),
        ] {
            assert_eq!(shape(size, flags).ok(), expected, "{size:?} {flags}");
        }
    }
}

//! Which extents an array may have: the tables of `cuArray3DCreate` and `cuMipmappedArrayCreate`, by the attributes that
//! the device reports.

use cupyrite_sys::driver as sys;

use crate::driver::device::Device;
use crate::driver::device::attributes;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;

/// What sort of array an extent and the flags make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    One,
    Two,
    Three,
    OneLayered,
    TwoLayered,
    Cubemap,
    CubemapLayered,
}

/// Attribute numbers of the greatest width, height and depth; zero where the dimension is one whose size the other rules
/// settle.
type Attributes = [i32; 3];

const TEXTURE_1D: Attributes = [21, 0, 0];
const TEXTURE_2D: Attributes = [22, 23, 0];
const TEXTURE_2D_GATHER: Attributes = [45, 46, 0];
const TEXTURE_3D: Attributes = [24, 25, 26];
const TEXTURE_3D_ALTERNATE: Attributes = [47, 48, 49];
const TEXTURE_1D_LAYERED: Attributes = [42, 0, 43];
const TEXTURE_2D_LAYERED: Attributes = [27, 28, 29];
const TEXTURE_CUBEMAP: Attributes = [52, 52, 0];
const TEXTURE_CUBEMAP_LAYERED: Attributes = [53, 53, 54];
const TEXTURE_1D_MIPMAPPED: Attributes = [77, 0, 0];
const TEXTURE_2D_MIPMAPPED: Attributes = [73, 74, 0];
const SURFACE_1D: Attributes = [55, 0, 0];
const SURFACE_2D: Attributes = [56, 57, 0];
const SURFACE_3D: Attributes = [58, 59, 60];
const SURFACE_1D_LAYERED: Attributes = [61, 0, 62];
const SURFACE_2D_LAYERED: Attributes = [63, 64, 65];
const SURFACE_CUBEMAP: Attributes = [66, 66, 0];
const SURFACE_CUBEMAP_LAYERED: Attributes = [67, 67, 68];

fn sort(size: [u64; 3], flags: u32) -> Res<Sort> {
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
            Sort::CubemapLayered
        } else {
            Sort::Cubemap
        });
    }
    match (height, depth, layered) {
        (_, 0, true) => Err(Code::INVALID_VALUE),
        (0, _, true) => Ok(Sort::OneLayered),
        (_, _, true) => Ok(Sort::TwoLayered),
        (0, 0, false) => Ok(Sort::One),
        (_, 0, false) => Ok(Sort::Two),
        (0, _, false) => Err(Code::INVALID_VALUE),
        (_, _, false) => Ok(Sort::Three),
    }
}

fn within(device: &Device, size: [u64; 3], limits: Attributes) -> Res<bool> {
    for (length, attribute) in size.into_iter().zip(limits) {
        if attribute != 0 && length > attributes::get(device, attribute)? as u64 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Checks extents (in elements) and flags of an array, or of a mipmapped one.
///
/// # Errors
/// `INVALID_VALUE` for extents that do not go with the flags, or beyond what the device reports.
pub(crate) fn check(device: &Device, size: [u64; 3], flags: u32, mipmapped: bool) -> Res {
    let sort = sort(size, flags)?;
    let gather = flags & sys::CUDA_ARRAY3D_TEXTURE_GATHER != 0;
    // Gathering is defined on two-dimensional arrays alone.
    if gather && sort != Sort::Two {
        return Err(Code::INVALID_VALUE);
    }
    let (texture, surface) = match sort {
        Sort::One if mipmapped => (TEXTURE_1D_MIPMAPPED, SURFACE_1D),
        Sort::One => (TEXTURE_1D, SURFACE_1D),
        Sort::Two if mipmapped => (TEXTURE_2D_MIPMAPPED, SURFACE_2D),
        Sort::Two if gather => (TEXTURE_2D_GATHER, SURFACE_2D),
        Sort::Two => (TEXTURE_2D, SURFACE_2D),
        Sort::Three => (TEXTURE_3D, SURFACE_3D),
        Sort::OneLayered => (TEXTURE_1D_LAYERED, SURFACE_1D_LAYERED),
        Sort::TwoLayered => (TEXTURE_2D_LAYERED, SURFACE_2D_LAYERED),
        Sort::Cubemap => (TEXTURE_CUBEMAP, SURFACE_CUBEMAP),
        Sort::CubemapLayered => (TEXTURE_CUBEMAP_LAYERED, SURFACE_CUBEMAP_LAYERED),
    };
    let fits = within(device, size, texture)?
        || sort == Sort::Three && within(device, size, TEXTURE_3D_ALTERNATE)?;
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
    fn sorts_of_arrays() {
        const L: u32 = sys::CUDA_ARRAY3D_LAYERED;
        const C: u32 = sys::CUDA_ARRAY3D_CUBEMAP;
        for (size, flags, expected) in [
            ([4, 0, 0], 0, Some(Sort::One)),
            ([4, 2, 0], 0, Some(Sort::Two)),
            ([4, 2, 3], 0, Some(Sort::Three)),
            ([4, 0, 3], L, Some(Sort::OneLayered)),
            ([4, 2, 3], L, Some(Sort::TwoLayered)),
            ([4, 4, 6], C, Some(Sort::Cubemap)),
            ([4, 4, 12], C | L, Some(Sort::CubemapLayered)),
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
            assert_eq!(sort(size, flags).ok(), expected, "{size:?} {flags}");
        }
    }
}

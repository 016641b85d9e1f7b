//! The entry points of texture and surface references (CUDA driver API, "Texture Reference Management" and "Surface Reference
//! Management").

use std::sync::Arc;

use cupyrite_sys::driver::{
    self as sys, CUDA_ARRAY_DESCRIPTOR, CUDA_TEXTURE_DESC, CUaddress_mode, CUfilter_mode,
};

use super::references::{
    Binding, SURFACE_REFERENCES, SurfaceReference, TEXTURE_REFERENCES, TextureReference,
};
use super::texture::{
    LINEAR_WIDTH, PITCH_2D_HEIGHT, PITCH_2D_PITCH, PITCH_2D_WIDTH, TEXTURE_ALIGNMENT,
    TEXTURE_PITCH_ALIGNMENT, limit, memory_format,
};
use crate::driver::array;
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{because, refuse};

/// The texture reference of a handle. As in NVIDIA's driver, its functions need no current context.
fn texture(handle: u64) -> Res<Arc<TextureReference>> {
    TEXTURE_REFERENCES.get(handle)
}

fn surface(handle: u64) -> Res<Arc<SurfaceReference>> {
    SURFACE_REFERENCES.get(handle)
}

/// The context of a reference.
fn context_of(reference: &TextureReference) -> Res<Arc<Context>> {
    context::by_id(reference.context).ok_or(Code::CONTEXT_IS_DESTROYED)
}

/// Writes a part of a reference's settings.
fn put_setting<T: Copy>(out: u64, handle: u64, f: impl FnOnce(&CUDA_TEXTURE_DESC) -> T) -> Res {
    non_null(out)?;
    let value = texture(handle)?.read(|state| f(&state.descriptor));
    put(out, value)
}

/// Changes a part of a reference's settings.
fn set(handle: u64, f: impl FnOnce(&mut CUDA_TEXTURE_DESC)) -> Res {
    texture(handle)?.change(|state| {
        f(&mut state.descriptor);
        Ok(())
    })
}

fn dimension(number: i32) -> Res<usize> {
    match usize::try_from(number) {
        Ok(n @ 0..=2) => Ok(n),
        _ => refuse(Code::INVALID_VALUE, || {
            format!("dim is {number}; valid dimensions are 0 to 2")
        }),
    }
}

/// The flags that NVIDIA's driver accepts: named ones and unnamed ones between them.
const FLAGS: u32 = 0x3f;

/// Whether the flags of a binding to an array replace the format of the reference by the array's.
fn overrides_format(flags: u32) -> Res<bool> {
    if flags & !sys::CU_TRSA_OVERRIDE_FORMAT != 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!("the flags are {flags:#x}; valid flags are CU_TRSA_OVERRIDE_FORMAT")
        });
    }
    Ok(flags != 0)
}

fn no_array(handle: u64) -> Code {
    because(Code::INVALID_HANDLE, || {
        format!("{handle:#x} is not a live array")
    })
}

fn set_address(offset: u64, handle: u64, address: u64, bytes: u64) -> Res {
    let reference = texture(handle)?;
    let context = context_of(&reference)?;
    let excess = address % limit(&context, TEXTURE_ALIGNMENT)?;
    if excess != 0 && offset == 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "the address {address:#x} is not aligned for textures, and there is no ByteOffset to return the distance \
                 of {excess} bytes"
            )
        });
    }
    if address.checked_add(bytes).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    let most = limit(&context, LINEAR_WIDTH)?;
    reference.change(|state| {
        // As in NVIDIA's driver, a launch finds out that a format does not exist.
        let element = state.memory_format().map_or(16, |f| u64::from(f.element_bytes()));
        let elements = bytes.saturating_add(excess) / element;
        if elements > most {
            return refuse(Code::INVALID_VALUE, || {
                format!("{bytes} bytes are {elements} elements; a texture of linear memory has at most {most}")
            });
        }
        put_optional(offset, excess)?;
        state.binding = Binding::Linear {
            address: address - excess,
            bytes: bytes + excess,
        };
        Ok(())
    })
}

fn set_address_2d(handle: u64, descriptor: u64, address: u64, pitch: u64) -> Res {
    let reference = texture(handle)?;
    let context = context_of(&reference)?;
    non_null(descriptor)?;
    let d = get::<CUDA_ARRAY_DESCRIPTOR>(descriptor)?;
    let (width, height) = (d.Width as u64, d.Height as u64);
    let alignment = limit(&context, TEXTURE_ALIGNMENT)?;
    let pitch_alignment = limit(&context, TEXTURE_PITCH_ALIGNMENT)?;
    // As in NVIDIA's driver, a launch finds out that a format does not exist.
    let element =
        memory_format(d.Format, d.NumChannels).map_or(0, |f| u64::from(f.element_bytes()));
    if !address.is_multiple_of(alignment) {
        return refuse(Code::INVALID_VALUE, || {
            format!("the address {address:#x} must be a multiple of {alignment}")
        });
    }
    let fits = width <= limit(&context, PITCH_2D_WIDTH)?
        && height <= limit(&context, PITCH_2D_HEIGHT)?
        && pitch <= limit(&context, PITCH_2D_PITCH)?;
    if !fits || !pitch.is_multiple_of(pitch_alignment) || pitch < width.saturating_mul(element) {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "{width} x {height} elements of {element} bytes with a pitch of {pitch}: the pitch must be a multiple of \
                 {pitch_alignment} and hold a row, and the extents must be within the device's limits"
            )
        });
    }
    reference.change(|state| {
        state.format = (d.Format.0, d.NumChannels);
        state.binding = Binding::Pitched {
            address,
            width,
            height,
            pitch,
        };
        Ok(())
    })
}

driver_entry_points! {
    fn texref_create "cuTexRefCreate" (out: u64) {
        non_null(out)?;
        let context = context::current()?;
        let (handle, _) = TextureReference::register(context.id);
        put(out, handle).inspect_err(|_| drop(TEXTURE_REFERENCES.remove_quietly(handle)))
    }
    fn texref_destroy "cuTexRefDestroy" (handle: u64) {
        // The reference of a variable is no longer found by name, and remains bound in launches that are already made.
        let reference = TEXTURE_REFERENCES.remove(handle)?;
        reference.change(|state| {
            state.binding = Binding::None;
            Ok(())
        })
    }
    fn texref_set_array "cuTexRefSetArray" (handle: u64, array: u64, flags: u32) {
        let reference = texture(handle)?;
        let replaces = overrides_format(flags)?;
        let found = array::find(array).ok_or_else(|| no_array(array))?;
        reference.change(|state| {
            if replaces {
                state.format = found.format();
            }
            state.binding = Binding::Array {
                handle: array,
                storage: found.storage().clone(),
                level: found.level_number(),
                reinterpreted: !replaces,
            };
            Ok(())
        })
    }
    fn texref_set_mipmapped "cuTexRefSetMipmappedArray" (handle: u64, mipmapped: u64, flags: u32) {
        let reference = texture(handle)?;
        let replaces = overrides_format(flags)?;
        let found = array::find_mipmapped(mipmapped).ok_or_else(|| no_array(mipmapped))?;
        reference.change(|state| {
            if replaces {
                state.format = found.format();
            }
            state.binding = Binding::Mipmapped {
                handle: mipmapped,
                storage: found.storage().clone(),
                reinterpreted: !replaces,
            };
            Ok(())
        })
    }
    fn texref_set_address "cuTexRefSetAddress_v2" (offset: u64, handle: u64, address: u64, bytes: u64) {
        set_address(offset, handle, address, bytes)
    }
    fn texref_set_address_2d "cuTexRefSetAddress2D_v3" (handle: u64, descriptor: u64, address: u64, pitch: u64) {
        set_address_2d(handle, descriptor, address, pitch)
    }
    fn texref_set_format "cuTexRefSetFormat" (handle: u64, format: u32, channels: i32) {
        let reference = texture(handle)?;
        // As in NVIDIA's driver, a binding to linear memory or a launch finds out that a format does not exist.
        if channels == 3 || channels > 4 {
            return refuse(Code::INVALID_VALUE, || format!("no format has {channels} components"));
        }
        reference.change(|state| {
            state.format = (format, channels.cast_unsigned());
            Ok(())
        })
    }
    fn texref_set_address_mode "cuTexRefSetAddressMode" (handle: u64, dim: i32, mode: u32) {
        texture(handle)?;
        let dim = dimension(dim)?;
        // As in NVIDIA's driver, an unknown mode is the default.
        let mode = match CUaddress_mode(mode) {
            known if known <= CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER => known,
            _ => CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
        };
        set(handle, |d| d.addressMode[dim] = mode)
    }
    fn texref_set_filter_mode "cuTexRefSetFilterMode" (handle: u64, mode: u32) {
        // As in NVIDIA's driver, any number is stored.
        set(handle, |d| d.filterMode = CUfilter_mode(mode))
    }
    fn texref_set_mipmap_filter_mode "cuTexRefSetMipmapFilterMode" (handle: u64, mode: u32) {
        texture(handle)?;
        if mode > CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0 {
            return refuse(Code::INVALID_VALUE, || {
                format!("the filter mode is {mode}; valid modes are 0 (point) and 1 (linear)")
            });
        }
        set(handle, |d| d.mipmapFilterMode = CUfilter_mode(mode))
    }
    fn texref_set_bias "cuTexRefSetMipmapLevelBias" (handle: u64, bias: f32) {
        set(handle, |d| d.mipmapLevelBias = bias)
    }
    fn texref_set_clamp "cuTexRefSetMipmapLevelClamp" (handle: u64, least: f32, most: f32) {
        set(handle, |d| (d.minMipmapLevelClamp, d.maxMipmapLevelClamp) = (least, most))
    }
    fn texref_set_anisotropy "cuTexRefSetMaxAnisotropy" (handle: u64, most: u32) {
        set(handle, |d| d.maxAnisotropy = most)
    }
    fn texref_set_border "cuTexRefSetBorderColor" (handle: u64, colour: u64) {
        texture(handle)?;
        non_null(colour)?;
        let colour = get_array::<f32>(colour, 4)?;
        set(handle, |d| d.borderColor.copy_from_slice(&colour))
    }
    fn texref_set_flags "cuTexRefSetFlags" (handle: u64, flags: u32) {
        texture(handle)?;
        if flags & !FLAGS != 0 {
            return refuse(Code::INVALID_VALUE, || format!("the flags are {flags:#x}; valid ones are {FLAGS:#x}"));
        }
        set(handle, |d| d.flags = flags)
    }
    fn texref_get_address "cuTexRefGetAddress_v2" (out: u64, handle: u64) {
        non_null(out)?;
        let address = texture(handle)?.read(|state| match state.binding {
            Binding::Linear { address, .. } | Binding::Pitched { address, .. } => Ok(address),
            _ => Err(Code::INVALID_VALUE),
        });
        put(out, address?)
    }
    fn texref_get_array "cuTexRefGetArray" (out: u64, handle: u64) {
        non_null(out)?;
        let array = texture(handle)?.read(|state| match state.binding {
            Binding::Array { handle, .. } => Ok(handle),
            _ => Err(Code::INVALID_VALUE),
        });
        put(out, array?)
    }
    fn texref_get_mipmapped "cuTexRefGetMipmappedArray" (out: u64, handle: u64) {
        non_null(out)?;
        let array = texture(handle)?.read(|state| match state.binding {
            Binding::Mipmapped { handle, .. } => Ok(handle),
            _ => Err(Code::INVALID_VALUE),
        });
        put(out, array?)
    }
    fn texref_get_address_mode "cuTexRefGetAddressMode" (out: u64, handle: u64, dim: i32) {
        texture(handle)?;
        let dim = dimension(dim)?;
        put_setting(out, handle, |d| d.addressMode[dim])
    }
    fn texref_get_filter_mode "cuTexRefGetFilterMode" (out: u64, handle: u64) {
        put_setting(out, handle, |d| d.filterMode)
    }
    fn texref_get_mipmap_filter_mode "cuTexRefGetMipmapFilterMode" (out: u64, handle: u64) {
        put_setting(out, handle, |d| d.mipmapFilterMode)
    }
    fn texref_get_bias "cuTexRefGetMipmapLevelBias" (out: u64, handle: u64) {
        put_setting(out, handle, |d| d.mipmapLevelBias)
    }
    fn texref_get_clamp "cuTexRefGetMipmapLevelClamp" (least: u64, most: u64, handle: u64) {
        let (low, high) = texture(handle)?.read(|state| {
            (state.descriptor.minMipmapLevelClamp, state.descriptor.maxMipmapLevelClamp)
        });
        put_optional(least, low)?;
        put_optional(most, high)
    }
    fn texref_get_anisotropy "cuTexRefGetMaxAnisotropy" (out: u64, handle: u64) {
        put_setting(out, handle, |d| d.maxAnisotropy)
    }
    fn texref_get_border "cuTexRefGetBorderColor" (out: u64, handle: u64) {
        put_setting(out, handle, |d| d.borderColor)
    }
    fn texref_get_flags "cuTexRefGetFlags" (out: u64, handle: u64) {
        put_setting(out, handle, |d| d.flags)
    }
    fn texref_get_format "cuTexRefGetFormat" (format: u64, channels: u64, handle: u64) {
        let (code, count) = texture(handle)?.read(|state| state.format);
        put_optional(format, code)?;
        put_optional(channels, count)
    }
    fn surfref_set_array "cuSurfRefSetArray" (handle: u64, array: u64, flags: u32) {
        let reference = surface(handle)?;
        if flags != 0 {
            return refuse(Code::INVALID_VALUE, || format!("the flags are {flags:#x}; they must be zero"));
        }
        let found = array::find(array).ok_or_else(|| no_array(array))?;
        if found.flags() & sys::CUDA_ARRAY3D_SURFACE_LDST == 0 {
            return refuse(Code::INVALID_VALUE, || {
                "the array was created without CUDA_ARRAY3D_SURFACE_LDST".to_owned()
            });
        }
        reference.bind(array, &found)
    }
    fn surfref_get_array "cuSurfRefGetArray" (out: u64, handle: u64) {
        non_null(out)?;
        let bound = surface(handle)?.bound().map(|(array, _)| array);
        put(out, bound.ok_or(Code::INVALID_VALUE)?)
    }
}

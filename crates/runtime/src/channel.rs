//! Channel descriptors: the runtime's description of array elements, and the equivalent driver format and channel
//! count.

use std::ffi::c_void;

use cupyrite_sys::driver::CUarray_format as Format;
use cupyrite_sys::runtime::{cudaChannelFormatDesc, cudaChannelFormatKind as ChannelKind};

use crate::array;
use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{EntryPoint, runtime_entry_points};
use crate::errors::{Error, Res};

/// First and last kind of a range of formats that the driver numbers in the same order, and the driver's first format.
const RUNS: [(ChannelKind, ChannelKind, Format); 4] = [
    // Normalised integers: one format per channel count.
    (
        ChannelKind::cudaChannelFormatKindUnsignedNormalized8X1,
        ChannelKind::cudaChannelFormatKindSignedNormalized16X4,
        Format::CU_AD_FORMAT_UNORM_INT8X1,
    ),
    // Block compression.
    (
        ChannelKind::cudaChannelFormatKindUnsignedBlockCompressed1,
        ChannelKind::cudaChannelFormatKindUnsignedBlockCompressed7SRGB,
        Format::CU_AD_FORMAT_BC1_UNORM,
    ),
    (
        ChannelKind::cudaChannelFormatKindUnsignedNormalized1010102,
        ChannelKind::cudaChannelFormatKindUnsignedNormalized1010102,
        Format::CU_AD_FORMAT_UNORM_INT_101010_2,
    ),
    // Video.
    (
        ChannelKind::cudaChannelFormatKindUnsigned8Packed422,
        ChannelKind::cudaChannelFormatKindUnsigned16Planar444,
        Format::CU_AD_FORMAT_UINT8_PACKED_422,
    ),
];

/// The driver's format and channel count.
///
/// # Errors
/// `cudaErrorInvalidChannelDescriptor` for an invalid descriptor.
pub(crate) fn to_driver(desc: &cudaChannelFormatDesc) -> Res<(Format, u32)> {
    let bad = Err(Error::INVALID_CHANNEL_DESCRIPTOR);
    let bits = [desc.x, desc.y, desc.z, desc.w];
    let channels = bits.iter().take_while(|&&b| b != 0).count();
    if channels == 0 || bits[channels..].iter().any(|&b| b != 0) || bits.iter().any(|&b| b < 0) {
        return bad;
    }
    let kind = desc.f.0;
    if desc.f == ChannelKind::cudaChannelFormatKindNV12 {
        return Ok((Format::CU_AD_FORMAT_NV12, channels as u32));
    }
    if let Some((first, _, base)) = RUNS.iter().find(|r| (r.0.0..=r.1.0).contains(&kind)) {
        return Ok((Format(base.0 + kind - first.0), channels as u32));
    }
    if channels == 3 || bits[..channels].iter().any(|&b| b != bits[0]) {
        return bad;
    }
    let format = match (desc.f, bits[0]) {
        (ChannelKind::cudaChannelFormatKindSigned, 8) => Format::CU_AD_FORMAT_SIGNED_INT8,
        (ChannelKind::cudaChannelFormatKindSigned, 16) => Format::CU_AD_FORMAT_SIGNED_INT16,
        (ChannelKind::cudaChannelFormatKindSigned, 32) => Format::CU_AD_FORMAT_SIGNED_INT32,
        (ChannelKind::cudaChannelFormatKindUnsigned, 8) => Format::CU_AD_FORMAT_UNSIGNED_INT8,
        (ChannelKind::cudaChannelFormatKindUnsigned, 16) => Format::CU_AD_FORMAT_UNSIGNED_INT16,
        (ChannelKind::cudaChannelFormatKindUnsigned, 32) => Format::CU_AD_FORMAT_UNSIGNED_INT32,
        (ChannelKind::cudaChannelFormatKindFloat, 16) => Format::CU_AD_FORMAT_HALF,
        (ChannelKind::cudaChannelFormatKindFloat, 32) => Format::CU_AD_FORMAT_FLOAT,
        _ => return bad,
    };
    Ok((format, channels as u32))
}

/// The runtime's descriptor of a driver format.
///
/// # Errors
/// `cudaErrorInvalidChannelDescriptor` for a format without a kind in the runtime.
pub(crate) fn from_driver(format: Format, channels: u32) -> Res<cudaChannelFormatDesc> {
    let (bits, kind) = match format {
        Format::CU_AD_FORMAT_SIGNED_INT8 => (8, ChannelKind::cudaChannelFormatKindSigned),
        Format::CU_AD_FORMAT_SIGNED_INT16 => (16, ChannelKind::cudaChannelFormatKindSigned),
        Format::CU_AD_FORMAT_SIGNED_INT32 => (32, ChannelKind::cudaChannelFormatKindSigned),
        Format::CU_AD_FORMAT_UNSIGNED_INT8 => (8, ChannelKind::cudaChannelFormatKindUnsigned),
        Format::CU_AD_FORMAT_UNSIGNED_INT16 => (16, ChannelKind::cudaChannelFormatKindUnsigned),
        Format::CU_AD_FORMAT_UNSIGNED_INT32 => (32, ChannelKind::cudaChannelFormatKindUnsigned),
        Format::CU_AD_FORMAT_HALF => (16, ChannelKind::cudaChannelFormatKindFloat),
        Format::CU_AD_FORMAT_FLOAT => (32, ChannelKind::cudaChannelFormatKindFloat),
        Format::CU_AD_FORMAT_NV12 => (8, ChannelKind::cudaChannelFormatKindNV12),
        Format(other) => {
            let run = RUNS
                .iter()
                .find(|(first, last, base)| (base.0..=base.0 + last.0 - first.0).contains(&other));
            let (first, _, base) = run.ok_or(Error::INVALID_CHANNEL_DESCRIPTOR)?;
            let kind = ChannelKind(first.0 + other - base.0);
            (channel_bits(kind), kind)
        }
    };
    let channel = |n| if n < channels { bits } else { 0 };
    // The only format with channels of different widths has two bits of alpha.
    let alpha = match kind {
        ChannelKind::cudaChannelFormatKindUnsignedNormalized1010102 => channel(3).min(2),
        _ => channel(3),
    };
    Ok(cudaChannelFormatDesc {
        x: channel(0),
        y: channel(1),
        z: channel(2),
        w: alpha,
        f: kind,
    })
}

/// Bits per (decoded) channel of the kinds in [`RUNS`].
fn channel_bits(kind: ChannelKind) -> i32 {
    match kind {
        ChannelKind::cudaChannelFormatKindUnsignedNormalized1010102 => 10,
        ChannelKind::cudaChannelFormatKindUnsignedNormalized16X1
        | ChannelKind::cudaChannelFormatKindUnsignedNormalized16X2
        | ChannelKind::cudaChannelFormatKindUnsignedNormalized16X4
        | ChannelKind::cudaChannelFormatKindSignedNormalized16X1
        | ChannelKind::cudaChannelFormatKindSignedNormalized16X2
        | ChannelKind::cudaChannelFormatKindSignedNormalized16X4
        | ChannelKind::cudaChannelFormatKindUnsignedBlockCompressed6H
        | ChannelKind::cudaChannelFormatKindSignedBlockCompressed6H
        | ChannelKind::cudaChannelFormatKindUnsigned16SemiPlanar420
        | ChannelKind::cudaChannelFormatKindUnsigned16SemiPlanar422
        | ChannelKind::cudaChannelFormatKindUnsigned16SemiPlanar444
        | ChannelKind::cudaChannelFormatKindUnsigned16Planar420
        | ChannelKind::cudaChannelFormatKindUnsigned16Planar422
        | ChannelKind::cudaChannelFormatKindUnsigned16Planar444 => 16,
        _ => 8,
    }
}

/// `cudaCreateChannelDesc`: a descriptor with the given values, unchecked. It is the only function that returns a
/// structure by value.
extern "C" fn create_channel_desc(x: i32, y: i32, z: i32, w: i32, f: i32) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc {
        x,
        y,
        z,
        w,
        f: ChannelKind(f as _),
    }
}

runtime_entry_points! {
    fn get_channel_desc "cudaGetChannelDesc" (out: u64, array: u64) {
        non_null(out)?;
        context::current()?;
        let descriptor = array::describe(array)?;
        put(out, from_driver(descriptor.Format, descriptor.NumChannels)?)
    }
    also [
        EntryPoint { name: "cudaCreateChannelDesc", address: create_channel_desc as *const c_void },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_round_trip() {
        for format in (0..0x100).map(Format) {
            for channels in [1, 2, 3, 4] {
                let Ok(desc) = from_driver(format, channels) else {
                    continue;
                };
                match to_driver(&desc) {
                    Ok(back) => assert_eq!(back, (format, channels)),
                    // Uncompressed formats never have three channels.
                    Err(_) => assert_eq!(channels, 3, "{format:?}"),
                }
            }
        }
        let of = |x, y, z, w, f| to_driver(&create_channel_desc(x, y, z, w, f)).ok();
        assert_eq!(of(32, 0, 0, 0, 2), Some((Format::CU_AD_FORMAT_FLOAT, 1)));
        assert_eq!(
            of(8, 8, 8, 8, 1),
            Some((Format::CU_AD_FORMAT_UNSIGNED_INT8, 4))
        );
        for (x, y, z, w, f) in [
            (0, 0, 0, 0, 2),
            (8, 16, 0, 0, 0),
            (8, 0, 8, 0, 0),
            (8, 8, 8, 0, 0),
            (8, 0, 0, 0, 2),
            (64, 0, 0, 0, 0),
            (-8, 0, 0, 0, 0),
            (32, 0, 0, 0, 3),
            (32, 0, 0, 0, 99),
        ] {
            assert_eq!(of(x, y, z, w, f), None, "{x} {y} {z} {w} {f}");
        }
    }
}

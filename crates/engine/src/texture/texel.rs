//! Decoding of elements in memory to the four components of a fetch.
//!
//! A loader handles a whole warp: addresses in, four rows of 32-bit values out (integers or the bits of `f32`). There
//! is one compiled loop per format and read mode, selected when the texture is created, so that no format decision is
//! made per lane.
//!
//! Elements are read with relaxed atomic loads: other threads may be writing them, as on a GPU, where such a read
//! yields the old or the new value.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::blocks;
use super::format::{ChannelKind, Format, Packing};
use super::srgb::LINEAR;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One value per lane.
pub type Row<T> = [T; LANES];

/// The four components of all lanes, as bits.
pub type Rows = [Row<u32>; 4];

/// Bit position of a texel's index within its block, in the block's address (addresses have 47 bits).
pub const TEXEL_SHIFT: u32 = 56;

/// The address of the element, or of the block, at a site.
pub fn element_address(site: u64) -> u64 {
    site & ((1 << TEXEL_SHIFT) - 1)
}

/// Reads the elements at `sites` for the lanes of `mask` into `out`; a site of zero yields `border`.
///
/// # Safety
/// Every other site of the mask is the address of an element of the loader's format, aligned to the element's size (for
/// block formats, the address of a block with the texel's index from bit [`TEXEL_SHIFT`] on), and stays readable.
pub type Loader = unsafe fn(sites: &Row<u64>, mask: u32, border: &[u32; 4], out: &mut Rows);

/// Decoding of one channel.
trait Channel {
    /// The value of a channel's bits, which are in the low bits.
    fn value(bits: u32) -> u32;
    /// The value of the last of two or four channels, to which sRGB does not apply.
    #[inline(always)]
    fn alpha(bits: u32) -> u32 {
        Self::value(bits)
    }
}

macro_rules! channel {
    ($name:ident, $bits:ident => $value:expr) => {
        struct $name;
        impl Channel for $name {
            #[inline(always)]
            fn value($bits: u32) -> u32 {
                $value
            }
        }
    };
}

channel!(Plain, bits => bits);
channel!(Signed8, bits => i32::from(bits as i8) as u32);
channel!(Signed16, bits => i32::from(bits as i16) as u32);
channel!(Unorm8, bits => (bits as f32 / 255.0).to_bits());
channel!(Unorm16, bits => (bits as f32 / 65535.0).to_bits());
channel!(Snorm8, bits => (f32::from(bits as i8) / 127.0).max(-1.0).to_bits());
channel!(Snorm16, bits => (f32::from(bits as i16) / 32767.0).max(-1.0).to_bits());
channel!(Half, bits => half::f16::from_bits(bits as u16).to_f32().to_bits());

// The 16-bit numbers used in interpolation.
channel!(Wide8, bits => ((bits * 257) as f32).to_bits());
channel!(Wide16, bits => (bits as f32).to_bits());
channel!(WideSigned8, bits => {
    let v = f64::from((bits as i8).max(-127)) * 32767.0 / 127.0;
    (v.round() as f32).to_bits()
});
channel!(WideSigned16, bits => f32::from((bits as i16).max(-32767)).to_bits());

struct Srgb8;
impl Channel for Srgb8 {
    #[inline(always)]
    fn value(bits: u32) -> u32 {
        LINEAR[(bits & 255) as usize].to_bits()
    }
    #[inline(always)]
    fn alpha(bits: u32) -> u32 {
        Unorm8::value(bits)
    }
}

/// Whether sRGB does not apply to channel `k` of `n`: the last of two (an H200 treats them as grey and alpha) or of
/// four.
pub fn is_alpha(k: usize, n: usize) -> bool {
    k == 3 || (k, n) == (1, 2)
}

/// sRGB for interpolation: colours from the table, a fourth channel as a 16-bit number.
struct WideSrgb8;
impl Channel for WideSrgb8 {
    #[inline(always)]
    fn value(bits: u32) -> u32 {
        Srgb8::value(bits)
    }
    #[inline(always)]
    fn alpha(bits: u32) -> u32 {
        Wide8::value(bits)
    }
}

/// Stored channels: `N` channels of `BITS` bits.
///
/// # Safety
/// As for [`Loader`], for one non-zero site.
#[inline(always)]
unsafe fn stored<const BITS: u32, const N: usize>(site: u64) -> [u32; 4] {
    let mut out = [0; 4];
    // SAFETY: guaranteed by the caller; the element's size is `BITS / 8 * N`, and it is aligned to that size.
    unsafe {
        match BITS / 8 * N as u32 {
            1 => out[0] = u32::from(AtomicU8::from_ptr(site as *mut u8).load(Relaxed)),
            2 => {
                let v = u32::from(AtomicU16::from_ptr(site as *mut u16).load(Relaxed));
                if BITS == 16 {
                    out[0] = v;
                } else {
                    out[0] = v & 255;
                    out[1] = v >> 8;
                }
            }
            4 => {
                let v = AtomicU32::from_ptr(site as *mut u32).load(Relaxed);
                let keep = u32::MAX >> (32 - BITS);
                for (k, o) in out.iter_mut().take(N).enumerate() {
                    *o = (v >> ((k as u32 * BITS) % 32)) & keep;
                }
            }
            8 => {
                let v = AtomicU64::from_ptr(site as *mut u64).load(Relaxed);
                let keep = u64::MAX >> (64 - BITS);
                for (k, o) in out.iter_mut().take(N).enumerate() {
                    *o = ((v >> ((k as u32 * BITS) % 64)) & keep) as u32;
                }
            }
            _ => {
                let low = AtomicU64::from_ptr(site as *mut u64).load(Relaxed);
                let high = AtomicU64::from_ptr((site + 8) as *mut u64).load(Relaxed);
                out = [
                    low as u32,
                    (low >> 32) as u32,
                    high as u32,
                    (high >> 32) as u32,
                ];
            }
        }
    }
    out
}

/// The loader of plain formats.
unsafe fn plain<C: Channel, const BITS: u32, const N: usize>(
    sites: &Row<u64>,
    mask: u32,
    border: &[u32; 4],
    out: &mut Rows,
) {
    for lane in 0..LANES {
        if mask >> lane & 1 == 0 {
            continue;
        }
        let site = sites[lane];
        let mut texel = *border;
        if site != 0 {
            // SAFETY: guaranteed by the caller.
            let bits = unsafe { stored::<BITS, N>(site) };
            texel = [0; 4];
            for k in 0..N {
                texel[k] = if is_alpha(k, N) {
                    C::alpha(bits[k])
                } else {
                    C::value(bits[k])
                };
            }
        }
        for k in 0..4 {
            out[k][lane] = texel[k];
        }
    }
}

/// The loader of `CU_AD_FORMAT_UNORM_INT_101010_2`: fractions, or the 16-bit numbers used in interpolation.
unsafe fn rgb10a2<const WIDE: bool>(
    sites: &Row<u64>,
    mask: u32,
    border: &[u32; 4],
    out: &mut Rows,
) {
    for lane in 0..LANES {
        if mask >> lane & 1 == 0 {
            continue;
        }
        let mut texel = *border;
        if sites[lane] != 0 {
            // SAFETY: guaranteed by the caller.
            let v = unsafe { stored::<32, 1>(sites[lane])[0] };
            let ten = |shift: u32| {
                let v = v >> shift & 1023;
                // Widens ten bits to sixteen by repeating the first six.
                if WIDE {
                    (v << 6 | v >> 4) as f32
                } else {
                    v as f32 / 1023.0
                }
                .to_bits()
            };
            let two = (v >> 30) as f32 / 3.0 * if WIDE { 65535.0 } else { 1.0 };
            texel = [ten(0), ten(10), ten(20), two.to_bits()];
        }
        for k in 0..4 {
            out[k][lane] = texel[k];
        }
    }
}

/// The loader of block formats: `decode` takes a block (its upper half zero for 8-byte blocks) and a texel's index in
/// it, and returns four components.
unsafe fn compressed<const BYTES: u32, const SRGB: bool>(
    mut decode: impl FnMut(u128, u32) -> [f32; 4],
    sites: &Row<u64>,
    mask: u32,
    border: &[u32; 4],
    out: &mut Rows,
) {
    for lane in 0..LANES {
        if mask >> lane & 1 == 0 {
            continue;
        }
        let mut texel = *border;
        if sites[lane] != 0 {
            let address = sites[lane] & ((1 << TEXEL_SHIFT) - 1);
            // SAFETY: guaranteed by the caller.
            let block = unsafe {
                if BYTES == 8 {
                    let [a, b, ..] = stored::<32, 2>(address);
                    u128::from(a) | u128::from(b) << 32
                } else {
                    let [a, b, c, d] = stored::<32, 4>(address);
                    u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64 | u128::from(d) << 96
                }
            };
            let mut values = decode(block, (sites[lane] >> TEXEL_SHIFT) as u32 & 15);
            if SRGB {
                for v in &mut values[..3] {
                    *v = LINEAR[(*v * 255.0 + 0.5) as usize & 255];
                }
            }
            texel = values.map(f32::to_bits);
        }
        for k in 0..4 {
            out[k][lane] = texel[k];
        }
    }
}

macro_rules! block_loader {
    ($name:ident, $bytes:literal, $decode:expr) => {
        unsafe fn $name<const SRGB: bool>(
            sites: &Row<u64>,
            mask: u32,
            border: &[u32; 4],
            out: &mut Rows,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { compressed::<$bytes, SRGB>($decode, sites, mask, border, out) }
        }
    };
}

block_loader!(bc1, 8, blocks::bc1);
block_loader!(bc2, 16, blocks::bc2);
block_loader!(bc3, 16, blocks::bc3);
block_loader!(bc4u, 8, |block, texel| blocks::bc4(
    block as u64,
    texel,
    false
));
block_loader!(bc4s, 8, |block, texel| blocks::bc4(
    block as u64,
    texel,
    true
));
block_loader!(bc5u, 16, |block, texel| blocks::bc5(block, texel, false));
block_loader!(bc5s, 16, |block, texel| blocks::bc5(block, texel, true));
block_loader!(bc6h_unsigned, 16, {
    let mut decoder = blocks::Bc6h::new(false, 1.0);
    move |block, texel| decoder.texel(block, texel)
});
block_loader!(bc6h_signed, 16, {
    let mut decoder = blocks::Bc6h::new(true, 1.0);
    move |block, texel| decoder.texel(block, texel)
});
block_loader!(bc6h_view_unsigned, 16, {
    let mut decoder = blocks::Bc6h::new(false, 0.0);
    move |block, texel| decoder.texel(block, texel)
});
block_loader!(bc6h_view_signed, 16, {
    let mut decoder = blocks::Bc6h::new(true, 0.0);
    move |block, texel| decoder.texel(block, texel)
});
block_loader!(bc7, 16, {
    let mut decoder = blocks::Bc7::new();
    move |block, texel| decoder.texel(block, texel)
});

/// Rounding of interpolated values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// `binary32`.
    Single,
    /// `binary16`.
    Half,
    /// Multiples of the reciprocal of this number.
    Fixed(f32),
    /// `binary16`; the last of two or four channels in multiples of 1/65535.
    Srgb {
        /// Number of channels.
        channels: usize,
    },
}

impl Precision {
    /// The unit of the loader's values of channel `k`.
    pub fn unit(self, k: usize) -> f32 {
        match self {
            Precision::Fixed(most) => most,
            Precision::Srgb { channels } if is_alpha(k, channels) => 65535.0,
            _ => 1.0,
        }
    }
}

/// The loader and the rounding for interpolation of `format`: integers of 8 to 16 bits that are normalised become
/// 16-bit numbers, sRGB becomes `binary16`, and `binary16` is unchanged, as on an H200.
pub fn interpolation(format: &Format, srgb: bool) -> Option<(Loader, Precision)> {
    macro_rules! by_count {
        ($channel:ty, $bits:literal) => {
            match format.channels {
                1 => plain::<$channel, $bits, 1>,
                2 => plain::<$channel, $bits, 2>,
                _ => plain::<$channel, $bits, 4>,
            }
        };
    }
    use ChannelKind::{Float, Unorm, Unsigned};
    match format.packing {
        Packing::Plain => {}
        Packing::Rgb10A2 => return Some((rgb10a2::<true>, Precision::Fixed(65535.0))),
        _ => return None,
    }
    let unsigned = matches!(format.kind, Unsigned | Unorm);
    Some(match (format.bits, format.kind) {
        (8, _) if unsigned && srgb => (
            by_count!(WideSrgb8, 8),
            Precision::Srgb {
                channels: format.channels.into(),
            },
        ),
        (16, Float) => (loader(format, false, false), Precision::Half),
        (8, _) if unsigned => (by_count!(Wide8, 8), Precision::Fixed(65535.0)),
        (8, _) => (by_count!(WideSigned8, 8), Precision::Fixed(32767.0)),
        (16, _) if unsigned => (by_count!(Wide16, 16), Precision::Fixed(65535.0)),
        (16, _) => (by_count!(WideSigned16, 16), Precision::Fixed(32767.0)),
        _ => return None,
    })
}

/// The loader for elements of `format`, as integers or as numbers, with or without conversion from sRGB (8-bit
/// normalised channels only).
pub fn loader(format: &Format, integers: bool, srgb: bool) -> Loader {
    macro_rules! by_count {
        ($channel:ty, $bits:literal) => {
            match format.channels {
                1 => plain::<$channel, $bits, 1>,
                2 => plain::<$channel, $bits, 2>,
                _ => plain::<$channel, $bits, 4>,
            }
        };
    }
    use ChannelKind::{Float, Signed, Snorm, Unorm, Unsigned};
    let srgb = srgb || format.srgb;
    match format.packing {
        Packing::Plain => {}
        Packing::Rgb10A2 => return rgb10a2::<false>,
        Packing::Bc1 if srgb => return bc1::<true>,
        Packing::Bc1 => return bc1::<false>,
        Packing::Bc2 if srgb => return bc2::<true>,
        Packing::Bc2 => return bc2::<false>,
        Packing::Bc3 if srgb => return bc3::<true>,
        Packing::Bc3 => return bc3::<false>,
        Packing::Bc4 if format.kind == Snorm => return bc4s::<false>,
        Packing::Bc4 => return bc4u::<false>,
        Packing::Bc5 if format.kind == Snorm => return bc5s::<false>,
        Packing::Bc5 => return bc5u::<false>,
        Packing::Bc6h { signed, opaque } => {
            return match (signed, opaque) {
                (true, true) => bc6h_signed::<false>,
                (false, true) => bc6h_unsigned::<false>,
                (true, false) => bc6h_view_signed::<false>,
                (false, false) => bc6h_view_unsigned::<false>,
            };
        }
        Packing::Bc7 if srgb => return bc7::<true>,
        Packing::Bc7 => return bc7::<false>,
    }
    match (format.bits, format.kind) {
        (8, Unsigned) if integers => by_count!(Plain, 8),
        (8, Signed) if integers => by_count!(Signed8, 8),
        (16, Unsigned) if integers => by_count!(Plain, 16),
        (16, Signed) if integers => by_count!(Signed16, 16),
        (8, Unsigned | Unorm) if srgb => by_count!(Srgb8, 8),
        (8, Unsigned | Unorm) => by_count!(Unorm8, 8),
        (8, _) => by_count!(Snorm8, 8),
        (16, Float) => by_count!(Half, 16),
        (16, Unsigned | Unorm) => by_count!(Unorm16, 16),
        (16, _) => by_count!(Snorm16, 16),
        _ => by_count!(Plain, 32),
    }
}

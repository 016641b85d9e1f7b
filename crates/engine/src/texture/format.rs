//! Element formats of arrays and textures.

use cupyrite_sys::driver as sys;

/// Interpretation of a channel's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// Unsigned integer; a texture may normalise it to 0 to 1.
    Unsigned,
    /// Signed integer; a texture may normalise it to -1 to 1.
    Signed,
    /// `binary16` or `binary32`.
    Float,
    /// Unsigned, always normalised to 0 to 1.
    Unorm,
    /// Signed, always normalised to -1 to 1.
    Snorm,
}

/// Memory layout of an element's channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Consecutive channels.
    Plain,
    /// Three 10-bit channels and one 2-bit channel in a 32-bit word, the first in the lowest bits.
    Rgb10A2,
    /// Block compression 1: 4 by 4 texels in 8 bytes.
    Bc1,
    /// Block compression 2: 16 bytes.
    Bc2,
    /// Block compression 3: 16 bytes.
    Bc3,
    /// Block compression 4: one channel, 8 bytes.
    Bc4,
    /// Block compression 5: two channels, 16 bytes.
    Bc5,
    /// Block compression 6H: three `binary16` channels, 16 bytes.
    Bc6h {
        /// Whether there are negative numbers.
        signed: bool,
        /// Whether alpha is 1; in views of other arrays, an H100 returns 0.
        opaque: bool,
    },
    /// Block compression 7: 16 bytes.
    Bc7,
}

/// The format of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Interpretation of a channel's bits.
    pub kind: ChannelKind,
    /// Bits per channel (8, 16, 32; 10 for [`Packing::Rgb10A2`]; those of a decoded channel for block formats).
    pub bits: u8,
    /// Number of channels: 1, 2 or 4; 3 for [`Packing::Bc6h`].
    pub channels: u8,
    /// Memory layout of the channels.
    pub packing: Packing,
    /// Whether the format is an sRGB format.
    pub srgb: bool,
}

impl Format {
    const fn make(kind: ChannelKind, bits: u8, channels: u8, packing: Packing) -> Self {
        Self {
            kind,
            bits,
            channels,
            packing,
            srgb: false,
        }
    }

    /// A format of `channels` consecutive channels.
    pub const fn plain(kind: ChannelKind, bits: u8, channels: u8) -> Self {
        Self::make(kind, bits, channels, Packing::Plain)
    }

    /// The format of a `CUarray_format` and a channel count; `None` for invalid combinations and for formats that the
    /// CPU device lacks (planar and packed video formats).
    ///
    /// Formats whose name includes the channel count (`CU_AD_FORMAT_UNORM_INT8X4`) require that count; block formats
    /// require the number of channels they decode to.
    pub fn new(array_format: u32, channels: u32) -> Option<Self> {
        use ChannelKind::{Float, Signed, Snorm, Unorm, Unsigned};
        use Packing::Plain;
        use sys::CUarray_format as F;
        let n = u8::try_from(channels).ok()?;
        let code = F(array_format);
        let plain = |kind, bits| matches!(n, 1 | 2 | 4).then(|| Self::make(kind, bits, n, Plain));
        let fixed =
            |kind, bits, has: u8, packing| (n == has).then(|| Self::make(kind, bits, has, packing));
        let srgb = |f: Option<Self>| f.map(|f| Self { srgb: true, ..f });
        match code {
            F::CU_AD_FORMAT_UNSIGNED_INT8 => plain(Unsigned, 8),
            F::CU_AD_FORMAT_UNSIGNED_INT16 => plain(Unsigned, 16),
            F::CU_AD_FORMAT_UNSIGNED_INT32 => plain(Unsigned, 32),
            F::CU_AD_FORMAT_SIGNED_INT8 => plain(Signed, 8),
            F::CU_AD_FORMAT_SIGNED_INT16 => plain(Signed, 16),
            F::CU_AD_FORMAT_SIGNED_INT32 => plain(Signed, 32),
            F::CU_AD_FORMAT_HALF => plain(Float, 16),
            F::CU_AD_FORMAT_FLOAT => plain(Float, 32),
            F::CU_AD_FORMAT_UNORM_INT8X1 => fixed(Unorm, 8, 1, Plain),
            F::CU_AD_FORMAT_UNORM_INT8X2 => fixed(Unorm, 8, 2, Plain),
            F::CU_AD_FORMAT_UNORM_INT8X4 => fixed(Unorm, 8, 4, Plain),
            F::CU_AD_FORMAT_UNORM_INT16X1 => fixed(Unorm, 16, 1, Plain),
            F::CU_AD_FORMAT_UNORM_INT16X2 => fixed(Unorm, 16, 2, Plain),
            F::CU_AD_FORMAT_UNORM_INT16X4 => fixed(Unorm, 16, 4, Plain),
            F::CU_AD_FORMAT_SNORM_INT8X1 => fixed(Snorm, 8, 1, Plain),
            F::CU_AD_FORMAT_SNORM_INT8X2 => fixed(Snorm, 8, 2, Plain),
            F::CU_AD_FORMAT_SNORM_INT8X4 => fixed(Snorm, 8, 4, Plain),
            F::CU_AD_FORMAT_SNORM_INT16X1 => fixed(Snorm, 16, 1, Plain),
            F::CU_AD_FORMAT_SNORM_INT16X2 => fixed(Snorm, 16, 2, Plain),
            F::CU_AD_FORMAT_SNORM_INT16X4 => fixed(Snorm, 16, 4, Plain),
            F::CU_AD_FORMAT_UNORM_INT_101010_2 => fixed(Unorm, 10, 4, Packing::Rgb10A2),
            F::CU_AD_FORMAT_BC1_UNORM => fixed(Unorm, 8, 4, Packing::Bc1),
            F::CU_AD_FORMAT_BC1_UNORM_SRGB => srgb(fixed(Unorm, 8, 4, Packing::Bc1)),
            F::CU_AD_FORMAT_BC2_UNORM => fixed(Unorm, 8, 4, Packing::Bc2),
            F::CU_AD_FORMAT_BC2_UNORM_SRGB => srgb(fixed(Unorm, 8, 4, Packing::Bc2)),
            F::CU_AD_FORMAT_BC3_UNORM => fixed(Unorm, 8, 4, Packing::Bc3),
            F::CU_AD_FORMAT_BC3_UNORM_SRGB => srgb(fixed(Unorm, 8, 4, Packing::Bc3)),
            F::CU_AD_FORMAT_BC4_UNORM => fixed(Unorm, 8, 1, Packing::Bc4),
            F::CU_AD_FORMAT_BC4_SNORM => fixed(Snorm, 8, 1, Packing::Bc4),
            F::CU_AD_FORMAT_BC5_UNORM => fixed(Unorm, 8, 2, Packing::Bc5),
            F::CU_AD_FORMAT_BC5_SNORM => fixed(Snorm, 8, 2, Packing::Bc5),
            F::CU_AD_FORMAT_BC6H_UF16 => fixed(
                Float,
                16,
                3,
                Packing::Bc6h {
                    signed: false,
                    opaque: true,
                },
            ),
            F::CU_AD_FORMAT_BC6H_SF16 => fixed(
                Float,
                16,
                3,
                Packing::Bc6h {
                    signed: true,
                    opaque: true,
                },
            ),
            F::CU_AD_FORMAT_BC7_UNORM => fixed(Unorm, 8, 4, Packing::Bc7),
            F::CU_AD_FORMAT_BC7_UNORM_SRGB => srgb(fixed(Unorm, 8, 4, Packing::Bc7)),
            _ => None,
        }
    }

    /// The format of a `CUresourceViewFormat`; `None` for `CU_RES_VIEW_FORMAT_NONE` and for unknown values.
    pub fn of_view(view_format: u32) -> Option<Self> {
        use ChannelKind::{Float, Signed, Snorm, Unorm, Unsigned};
        use sys::CUresourceViewFormat as F;
        let plain = |kind, bits, channels| Some(Self::plain(kind, bits, channels));
        let block = |kind, channels, packing| Some(Self::make(kind, 8, channels, packing));
        let bc6h = |signed| {
            Some(Self::make(
                Float,
                16,
                3,
                Packing::Bc6h {
                    signed,
                    opaque: false,
                },
            ))
        };
        match F(view_format) {
            F::CU_RES_VIEW_FORMAT_UINT_1X8 => plain(Unsigned, 8, 1),
            F::CU_RES_VIEW_FORMAT_UINT_2X8 => plain(Unsigned, 8, 2),
            F::CU_RES_VIEW_FORMAT_UINT_4X8 => plain(Unsigned, 8, 4),
            F::CU_RES_VIEW_FORMAT_SINT_1X8 => plain(Signed, 8, 1),
            F::CU_RES_VIEW_FORMAT_SINT_2X8 => plain(Signed, 8, 2),
            F::CU_RES_VIEW_FORMAT_SINT_4X8 => plain(Signed, 8, 4),
            F::CU_RES_VIEW_FORMAT_UINT_1X16 => plain(Unsigned, 16, 1),
            F::CU_RES_VIEW_FORMAT_UINT_2X16 => plain(Unsigned, 16, 2),
            F::CU_RES_VIEW_FORMAT_UINT_4X16 => plain(Unsigned, 16, 4),
            F::CU_RES_VIEW_FORMAT_SINT_1X16 => plain(Signed, 16, 1),
            F::CU_RES_VIEW_FORMAT_SINT_2X16 => plain(Signed, 16, 2),
            F::CU_RES_VIEW_FORMAT_SINT_4X16 => plain(Signed, 16, 4),
            F::CU_RES_VIEW_FORMAT_UINT_1X32 => plain(Unsigned, 32, 1),
            F::CU_RES_VIEW_FORMAT_UINT_2X32 => plain(Unsigned, 32, 2),
            F::CU_RES_VIEW_FORMAT_UINT_4X32 => plain(Unsigned, 32, 4),
            F::CU_RES_VIEW_FORMAT_SINT_1X32 => plain(Signed, 32, 1),
            F::CU_RES_VIEW_FORMAT_SINT_2X32 => plain(Signed, 32, 2),
            F::CU_RES_VIEW_FORMAT_SINT_4X32 => plain(Signed, 32, 4),
            F::CU_RES_VIEW_FORMAT_FLOAT_1X16 => plain(Float, 16, 1),
            F::CU_RES_VIEW_FORMAT_FLOAT_2X16 => plain(Float, 16, 2),
            F::CU_RES_VIEW_FORMAT_FLOAT_4X16 => plain(Float, 16, 4),
            F::CU_RES_VIEW_FORMAT_FLOAT_1X32 => plain(Float, 32, 1),
            F::CU_RES_VIEW_FORMAT_FLOAT_2X32 => plain(Float, 32, 2),
            F::CU_RES_VIEW_FORMAT_FLOAT_4X32 => plain(Float, 32, 4),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC1 => block(Unorm, 4, Packing::Bc1),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC2 => block(Unorm, 4, Packing::Bc2),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC3 => block(Unorm, 4, Packing::Bc3),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC4 => block(Unorm, 1, Packing::Bc4),
            F::CU_RES_VIEW_FORMAT_SIGNED_BC4 => block(Snorm, 1, Packing::Bc4),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC5 => block(Unorm, 2, Packing::Bc5),
            F::CU_RES_VIEW_FORMAT_SIGNED_BC5 => block(Snorm, 2, Packing::Bc5),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC6H => bc6h(false),
            F::CU_RES_VIEW_FORMAT_SIGNED_BC6H => bc6h(true),
            F::CU_RES_VIEW_FORMAT_UNSIGNED_BC7 => block(Unorm, 4, Packing::Bc7),
            _ => None,
        }
    }

    /// Width and height in texels of one element in memory: 4 for block formats, otherwise 1.
    pub const fn block(&self) -> u32 {
        match self.packing {
            Packing::Plain | Packing::Rgb10A2 => 1,
            _ => 4,
        }
    }

    /// Bytes of one element in memory: a texel or a compressed block.
    pub const fn element_bytes(&self) -> u32 {
        match self.packing {
            Packing::Plain => self.bits as u32 / 8 * self.channels as u32,
            Packing::Rgb10A2 => 4,
            Packing::Bc1 | Packing::Bc4 => 8,
            _ => 16,
        }
    }

    /// Whether the channels are integers unless a texture normalises them.
    pub const fn is_integer(&self) -> bool {
        matches!(self.kind, ChannelKind::Unsigned | ChannelKind::Signed)
    }

    /// Whether it is a block-compressed format.
    pub const fn is_compressed(&self) -> bool {
        self.block() > 1
    }
}

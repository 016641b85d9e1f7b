//! Element formats of arrays and textures.

use cupyrite_sys::driver as sys;

/// What the bits of a channel mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// Unsigned integer; a texture may read it as a number from 0 to 1.
    Unsigned,
    /// Signed integer; a texture may read it as a number from -1 to 1.
    Signed,
    /// `binary16` or `binary32`.
    Float,
    /// Unsigned, always read as a number from 0 to 1.
    Unorm,
    /// Signed, always read as a number from -1 to 1.
    Snorm,
}

/// How the channels of an element lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// One after the other.
    Plain,
    /// Three of ten bits and one of two in a 32-bit word, the first in the lowest bits.
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
}

/// The format of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// What a channel's bits mean.
    pub kind: ChannelKind,
    /// Bits of a channel (8, 16, 32; 10 for [`Packing::Rgb10A2`]; of block formats, those of a decoded channel).
    pub bits: u8,
    /// Channels: 1, 2 or 4.
    pub channels: u8,
    /// How they lie in memory.
    pub packing: Packing,
    /// The format's name says that its colours are sRGB.
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

    /// A format of `channels` plain channels.
    pub const fn plain(kind: ChannelKind, bits: u8, channels: u8) -> Self {
        Self::make(kind, bits, channels, Packing::Plain)
    }

    /// The format that a `CUarray_format` and a number of channels name; `None` where there is no such combination or
    /// the CPU device does not have it (planar and packed video formats, block compression 6H and 7).
    ///
    /// Formats whose name contains the number of channels (`CU_AD_FORMAT_UNORM_INT8X4`) take exactly that number; block
    /// formats take the number of channels that they decode to.
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
            _ => None,
        }
    }

    /// The format that a `CUresourceViewFormat` names; `None` for `CU_RES_VIEW_FORMAT_NONE`, for what the CPU
    /// device does not have (block compression 6H and 7) and for unknown values.
    pub fn of_view(view_format: u32) -> Option<Self> {
        use ChannelKind::{Float, Signed, Snorm, Unorm, Unsigned};
        // Three at a time: one, two and four channels.
        let plain =
            |kind, bits, first: u32| Some(Self::plain(kind, bits, 1 << (view_format - first)));
        match view_format {
            1..=3 => plain(Unsigned, 8, 1),
            4..=6 => plain(Signed, 8, 4),
            7..=9 => plain(Unsigned, 16, 7),
            10..=12 => plain(Signed, 16, 10),
            13..=15 => plain(Unsigned, 32, 13),
            16..=18 => plain(Signed, 32, 16),
            19..=21 => plain(Float, 16, 19),
            22..=24 => plain(Float, 32, 22),
            25 => Some(Self::make(Unorm, 8, 4, Packing::Bc1)),
            26 => Some(Self::make(Unorm, 8, 4, Packing::Bc2)),
            27 => Some(Self::make(Unorm, 8, 4, Packing::Bc3)),
            28 => Some(Self::make(Unorm, 8, 1, Packing::Bc4)),
            29 => Some(Self::make(Snorm, 8, 1, Packing::Bc4)),
            30 => Some(Self::make(Unorm, 8, 2, Packing::Bc5)),
            31 => Some(Self::make(Snorm, 8, 2, Packing::Bc5)),
            _ => None,
        }
    }

    /// Texels in one element of memory, horizontally and vertically: 4 for block formats, else 1.
    pub const fn block(&self) -> u32 {
        match self.packing {
            Packing::Plain | Packing::Rgb10A2 => 1,
            _ => 4,
        }
    }

    /// Bytes of one element of memory: of a texel, or of a compressed block.
    pub const fn element_bytes(&self) -> u32 {
        match self.packing {
            Packing::Plain => self.bits as u32 / 8 * self.channels as u32,
            Packing::Rgb10A2 => 4,
            Packing::Bc1 | Packing::Bc4 => 8,
            _ => 16,
        }
    }

    /// Whether the channels are integers, which only a texture's read mode makes numbers with a fraction.
    pub const fn is_integer(&self) -> bool {
        matches!(self.kind, ChannelKind::Unsigned | ChannelKind::Signed)
    }

    /// Whether a texture without `CU_TRSF_READ_AS_INTEGER` reads integers of this format as numbers from 0 (-1) to 1:
    /// those of 8 and 16 bits.
    pub const fn normalizable(&self) -> bool {
        self.is_integer() && self.bits <= 16
    }

    /// Whether it is one of the block-compressed formats.
    pub const fn is_compressed(&self) -> bool {
        self.block() > 1
    }
}

//! Element formats of arrays and textures.

use cupyrite_sys::driver::CUarray_format;

use crate::error::{Error, Result};

/// Format of one channel of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayFormat {
    /// Unsigned 8-bit integer.
    Uint8,
    /// Unsigned 16-bit integer.
    Uint16,
    /// Unsigned 32-bit integer.
    Uint32,
    /// Signed 8-bit integer.
    Int8,
    /// Signed 16-bit integer.
    Int16,
    /// Signed 32-bit integer.
    Int32,
    /// Half-precision floating point.
    Float16,
    /// Single-precision floating point.
    Float32,
}

impl ArrayFormat {
    /// All formats.
    pub const ALL: [ArrayFormat; 8] = [
        ArrayFormat::Uint8,
        ArrayFormat::Uint16,
        ArrayFormat::Uint32,
        ArrayFormat::Int8,
        ArrayFormat::Int16,
        ArrayFormat::Int32,
        ArrayFormat::Float16,
        ArrayFormat::Float32,
    ];

    /// The name, as NumPy spells it.
    pub const fn name(self) -> &'static str {
        match self {
            ArrayFormat::Uint8 => "uint8",
            ArrayFormat::Uint16 => "uint16",
            ArrayFormat::Uint32 => "uint32",
            ArrayFormat::Int8 => "int8",
            ArrayFormat::Int16 => "int16",
            ArrayFormat::Int32 => "int32",
            ArrayFormat::Float16 => "float16",
            ArrayFormat::Float32 => "float32",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<ArrayFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Bytes of a channel.
    pub const fn bytes(self) -> usize {
        match self {
            ArrayFormat::Uint8 | ArrayFormat::Int8 => 1,
            ArrayFormat::Uint16 | ArrayFormat::Int16 | ArrayFormat::Float16 => 2,
            ArrayFormat::Uint32 | ArrayFormat::Int32 | ArrayFormat::Float32 => 4,
        }
    }

    /// The driver's number.
    pub const fn to_driver(self) -> CUarray_format {
        match self {
            ArrayFormat::Uint8 => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
            ArrayFormat::Uint16 => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16,
            ArrayFormat::Uint32 => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
            ArrayFormat::Int8 => CUarray_format::CU_AD_FORMAT_SIGNED_INT8,
            ArrayFormat::Int16 => CUarray_format::CU_AD_FORMAT_SIGNED_INT16,
            ArrayFormat::Int32 => CUarray_format::CU_AD_FORMAT_SIGNED_INT32,
            ArrayFormat::Float16 => CUarray_format::CU_AD_FORMAT_HALF,
            ArrayFormat::Float32 => CUarray_format::CU_AD_FORMAT_FLOAT,
        }
    }

    /// The format of a driver's number; `None` for the formats that this crate does not offer.
    pub fn from_driver(number: CUarray_format) -> Option<ArrayFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.to_driver() == number)
    }
}

/// Checks a number of channels.
pub(crate) fn check_channels(function: &'static str, channels: u32) -> Result<()> {
    if matches!(channels, 1 | 2 | 4) {
        return Ok(());
    }
    Err(Error::argument(
        function,
        "num_channels",
        format!("is {channels}; expected 1, 2 or 4"),
    ))
}

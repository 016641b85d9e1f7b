//! Texel formats that OpenGL and CUDA arrays share.

use cupyrite_sys::driver::CUarray_format;

const RED: u32 = 0x1903;
const RG: u32 = 0x8227;
const RGBA: u32 = 0x1908;
const RED_INTEGER: u32 = 0x8D94;
const RG_INTEGER: u32 = 0x8228;
const RGBA_INTEGER: u32 = 0x8D99;
const BYTE: u32 = 0x1400;
const UNSIGNED_BYTE: u32 = 0x1401;
const SHORT: u32 = 0x1402;
const UNSIGNED_SHORT: u32 = 0x1403;
const INT: u32 = 0x1404;
const UNSIGNED_INT: u32 = 0x1405;
const FLOAT: u32 = 0x1406;
const HALF_FLOAT: u32 = 0x140B;

/// One format, as a CUDA array and as OpenGL's pixel transfers name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TexelFormat {
    pub(super) array_format: u32,
    pub(super) channels: u32,
    pub(super) format: u32,
    pub(super) kind: u32,
}

/// The internal formats that `cuGraphicsGLRegisterImage` lists, for one, two and four channels.
const FORMATS: &[([u32; 3], [u32; 3], CUarray_format, u32)] = &[
    (
        [0x8229, 0x822B, 0x8058],
        [RED, RG, RGBA],
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        UNSIGNED_BYTE,
    ),
    (
        [0x822A, 0x822C, 0x805B],
        [RED, RG, RGBA],
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16,
        UNSIGNED_SHORT,
    ),
    (
        [0x822D, 0x822F, 0x881A],
        [RED, RG, RGBA],
        CUarray_format::CU_AD_FORMAT_HALF,
        HALF_FLOAT,
    ),
    (
        [0x822E, 0x8230, 0x8814],
        [RED, RG, RGBA],
        CUarray_format::CU_AD_FORMAT_FLOAT,
        FLOAT,
    ),
    (
        [0x8232, 0x8238, 0x8D7C],
        [RED_INTEGER, RG_INTEGER, RGBA_INTEGER],
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        UNSIGNED_BYTE,
    ),
    (
        [0x8234, 0x823A, 0x8D76],
        [RED_INTEGER, RG_INTEGER, RGBA_INTEGER],
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16,
        UNSIGNED_SHORT,
    ),
    (
        [0x8236, 0x823C, 0x8D70],
        [RED_INTEGER, RG_INTEGER, RGBA_INTEGER],
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
        UNSIGNED_INT,
    ),
    (
        [0x8231, 0x8237, 0x8D8E],
        [RED_INTEGER, RG_INTEGER, RGBA_INTEGER],
        CUarray_format::CU_AD_FORMAT_SIGNED_INT8,
        BYTE,
    ),
    (
        [0x8233, 0x8239, 0x8D88],
        [RED_INTEGER, RG_INTEGER, RGBA_INTEGER],
        CUarray_format::CU_AD_FORMAT_SIGNED_INT16,
        SHORT,
    ),
    (
        [0x8235, 0x823B, 0x8D82],
        [RED_INTEGER, RG_INTEGER, RGBA_INTEGER],
        CUarray_format::CU_AD_FORMAT_SIGNED_INT32,
        INT,
    ),
];

/// The format for an internal format of OpenGL (`GL_RGBA8`, ...). `None` if arrays have no such format.
pub(super) fn of_internal(internal: i32) -> Option<TexelFormat> {
    // An unsized `GL_RGBA` is stored with 8 bits a channel.
    let internal = match u32::try_from(internal).ok()? {
        RGBA => 0x8058,
        sized => sized,
    };
    FORMATS
        .iter()
        .find_map(|(internals, formats, array, kind)| {
            let at = internals.iter().position(|&known| known == internal)?;
            Some(TexelFormat {
                array_format: array.0,
                channels: [1, 2, 4][at],
                format: formats[at],
                kind: *kind,
            })
        })
}

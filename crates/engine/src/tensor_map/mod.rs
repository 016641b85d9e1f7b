//! Tensor maps: the descriptor of a tensor and of the boxes that kernels copy from and to it.
//!
//! The 128 bytes are this device's own encoding; NVIDIA's is not documented. They are passed by value, and kernels copy
//! and store them, so they contain the whole description and a checksum: a kernel that uses other bytes fails with a
//! report.

mod boxes;

use cupyrite_sys::driver::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use cupyrite_sys::tensor_map::{MAX_RANK, TensorMapDescription, TensorMapMode};

pub(crate) use boxes::{TensorBox, round_to_tf32};

/// Bytes of a descriptor.
pub const BYTES: usize = 128;

const MAGIC: u32 = 0x4D54_5543;

/// Offsets of the fields that [`replace`] accesses. [`encode`] writes them in this order.
mod at {
    pub const ADDRESS: usize = 4;
    pub const RANK: usize = 12;
    pub const MODE: usize = 13;
    pub const DATA_TYPE: usize = 15;
    pub const INTERLEAVE: usize = 16;
    pub const SWIZZLE: usize = 17;
    pub const FILL: usize = 19;
    /// Extents, each with an element stride: five bytes per dimension.
    pub const DIMS: usize = 20;
    /// Five bytes per stride.
    pub const STRIDES: usize = 45;
    /// The extents of the box, two bytes each.
    pub const NUMBERS: usize = 65;
}

/// Writes fields one after the other.
struct Writer {
    bytes: [u8; BYTES],
    at: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// Reads fields in the order of [`Writer`].
struct Reader<'a> {
    bytes: &'a [u8; BYTES],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        out
    }

    fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }
}

/// FNV-1a of all bytes but those of the checksum, which are the last four.
fn checksum(bytes: &[u8; BYTES]) -> u32 {
    bytes[..BYTES - 4].iter().fold(0x811C_9DC5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Encodes a description that keeps the rules.
pub fn encode(d: &TensorMapDescription) -> [u8; BYTES] {
    let mut w = Writer {
        bytes: [0; BYTES],
        at: 0,
    };
    w.put(&MAGIC.to_le_bytes());
    w.put(&d.address.to_le_bytes());
    let rank = d.dims.len();
    let (mode, wide) = match &d.mode {
        TensorMapMode::Tiled { .. } => (0, 0),
        TensorMapMode::Im2col { .. } => (1, 0),
        TensorMapMode::Im2colWide { mode, .. } => (2, mode.0 as u8),
    };
    w.put(&[
        rank as u8,
        mode,
        wide,
        d.data_type.0 as u8,
        d.interleave.0 as u8,
        d.swizzle.0 as u8,
        d.l2_promotion.0 as u8,
        d.fill.0 as u8,
    ]);
    for index in 0..MAX_RANK {
        let extent = d.dims.get(index).copied().unwrap_or(1);
        // An extent may be 2**32.
        w.put(&((extent - 1) as u32).to_le_bytes());
        w.put(&[d.element_strides.get(index).copied().unwrap_or(1) as u8]);
    }
    for index in 0..MAX_RANK - 1 {
        let stride = d.strides.get(index).copied().unwrap_or(0);
        w.put(&stride.to_le_bytes()[..5]);
    }
    let mut numbers = [0i16; 8];
    match &d.mode {
        TensorMapMode::Tiled { box_dims } => {
            for (to, &extent) in numbers.iter_mut().zip(box_dims) {
                *to = extent as i16;
            }
        }
        TensorMapMode::Im2col {
            lower,
            upper,
            channels,
            pixels,
        } => {
            for (to, &at) in numbers.iter_mut().zip(lower) {
                *to = at as i16;
            }
            for (to, &at) in numbers[3..].iter_mut().zip(upper) {
                *to = at as i16;
            }
            numbers[6] = *channels as i16;
            numbers[7] = *pixels as i16;
        }
        TensorMapMode::Im2colWide {
            lower,
            upper,
            channels,
            pixels,
            ..
        } => {
            numbers[0] = *lower as i16;
            numbers[3] = *upper as i16;
            numbers[6] = *channels as i16;
            numbers[7] = *pixels as i16;
        }
    }
    for number in numbers {
        w.put(&number.to_le_bytes());
    }
    let sum = checksum(&w.bytes);
    w.bytes[BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    w.bytes
}

/// Decodes a descriptor; `None` for other bytes.
pub fn decode(bytes: &[u8; BYTES]) -> Option<TensorMapDescription> {
    let mut r = Reader { bytes, at: 0 };
    if u32::from_le_bytes(r.take()) != MAGIC || bytes[BYTES - 4..] != checksum(bytes).to_le_bytes()
    {
        return None;
    }
    let address = u64::from_le_bytes(r.take());
    let [rank, mode, wide, data_type, interleave, swizzle, l2, fill] = r.take::<8>();
    let rank = usize::from(rank);
    if rank == 0 || rank > MAX_RANK {
        return None;
    }
    let (mut dims, mut element_strides, mut strides) = (vec![], vec![], vec![]);
    for index in 0..MAX_RANK {
        let extent = u64::from(u32::from_le_bytes(r.take())) + 1;
        let stride = u32::from(r.byte());
        if index < rank {
            dims.push(extent);
            element_strides.push(stride);
        }
    }
    for index in 1..MAX_RANK {
        let low = r.take::<5>();
        let mut stride = [0; 8];
        stride[..5].copy_from_slice(&low);
        if index < rank {
            strides.push(u64::from_le_bytes(stride));
        }
    }
    let mut numbers = [0i16; 8];
    for number in &mut numbers {
        *number = i16::from_le_bytes(r.take());
    }
    let corner = |from: usize| -> Vec<i32> {
        numbers[from..from + rank.saturating_sub(2)]
            .iter()
            .map(|&n| i32::from(n))
            .collect()
    };
    let (channels, pixels) = (numbers[6] as u16, numbers[7] as u16);
    let mode = match mode {
        0 => TensorMapMode::Tiled {
            box_dims: numbers[..rank]
                .iter()
                .map(|&n| u32::from(n as u16))
                .collect(),
        },
        1 => TensorMapMode::Im2col {
            lower: corner(0),
            upper: corner(3),
            channels: channels.into(),
            pixels: pixels.into(),
        },
        _ => TensorMapMode::Im2colWide {
            lower: numbers[0].into(),
            upper: numbers[3].into(),
            channels: channels.into(),
            pixels: pixels.into(),
            mode: CUtensorMapIm2ColWideMode(wide.into()),
        },
    };
    let description = TensorMapDescription {
        data_type: CUtensorMapDataType(data_type.into()),
        address,
        dims,
        strides,
        element_strides,
        mode,
        interleave: CUtensorMapInterleave(interleave.into()),
        swizzle: CUtensorMapSwizzle(swizzle.into()),
        l2_promotion: CUtensorMapL2promotion(l2.into()),
        fill: CUtensorMapFloatOOBfill(fill.into()),
    };
    description.check().is_ok().then_some(description)
}

/// A field that `tensormap.replace` replaces. The number is that of the dimension; the first stride is that of the second
/// dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorMapField {
    /// `.global_address`.
    Address,
    /// `.rank`; the value is one less.
    Rank,
    /// `.box_dim`.
    BoxDim(u8),
    /// `.global_dim`.
    Dim(u8),
    /// `.global_stride`, in bytes.
    Stride(u8),
    /// `.element_stride`.
    ElementStride(u8),
    /// `.elemtype`.
    DataType,
    /// `.interleave_layout`.
    Interleave,
    /// `.swizzle_mode`.
    Swizzle,
    /// `.fill_mode`.
    Fill,
}

/// Element types, indexed by their value in `tensormap.replace`.
const ELEMENT_TYPES: [CUtensorMapDataType; 16] = [
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
];

/// Zero bytes as a GPU reads them: one dimension of one element of type `u8`.
fn blank() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[at::RANK] = 1;
    for n in 0..MAX_RANK {
        bytes[at::DIMS + 5 * n + 4] = 1;
        bytes[at::NUMBERS + 2 * n] = 1;
    }
    bytes
}

/// Replaces a field of a tiled map; returns whether the bytes are one. Zero bytes become one, because programs build maps from
/// them by replacing all fields. The new map may break the rules until other fields
/// are replaced; a copy with such a map fails. Values lose the bits that fields of a GPU do not have, as in the code of
/// ptxas 13.5 for `sm_90a`.
pub(crate) fn replace(bytes: &mut [u8; BYTES], field: TensorMapField, value: u64) -> bool {
    if *bytes == [0; BYTES] {
        *bytes = blank();
    } else if bytes[..4] != MAGIC.to_le_bytes()
        || bytes[BYTES - 4..] != checksum(bytes).to_le_bytes()
        || bytes[at::MODE] != 0
    {
        return false;
    }
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    let low = value as u32;
    match field {
        TensorMapField::Address => put(at::ADDRESS, &value.to_le_bytes()),
        TensorMapField::Rank => put(at::RANK, &[(low & 7) as u8 + 1]),
        TensorMapField::BoxDim(n) => {
            let extent = (low.wrapping_sub(1) & 0xff) as i16 + 1;
            put(at::NUMBERS + 2 * usize::from(n), &extent.to_le_bytes());
        }
        TensorMapField::Dim(n) => {
            let extent = low.wrapping_sub(1).to_le_bytes();
            put(at::DIMS + 5 * usize::from(n), &extent);
        }
        TensorMapField::Stride(n) => {
            let stride = (value & !15).to_le_bytes();
            put(at::STRIDES + 5 * usize::from(n), &stride[..5]);
        }
        TensorMapField::ElementStride(n) => {
            let stride = (low.wrapping_sub(1) & 7) as u8 + 1;
            put(at::DIMS + 5 * usize::from(n) + 4, &[stride]);
        }
        TensorMapField::DataType => {
            put(at::DATA_TYPE, &[ELEMENT_TYPES[value as usize & 15].0 as u8]);
        }
        TensorMapField::Interleave => put(at::INTERLEAVE, &[low as u8]),
        TensorMapField::Swizzle => put(at::SWIZZLE, &[low as u8]),
        TensorMapField::Fill => put(at::FILL, &[low as u8]),
    }
    let sum = checksum(bytes);
    bytes[BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(rank: usize, mode: TensorMapMode) -> TensorMapDescription {
        TensorMapDescription {
            data_type: CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            address: 0x7F00_1234_5670,
            dims: (0..rank as u64).map(|n| (1 << 32) - n).collect(),
            strides: (1..rank as u64).map(|n| (1 << 40) - 16 * n).collect(),
            element_strides: (0..rank as u32).map(|n| 8 - n).collect(),
            mode,
            interleave: CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle: CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            l2_promotion: CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            fill: CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
        }
    }

    #[test]
    fn descriptors_keep_every_field() {
        for rank in 1..=5 {
            let mut box_dims = vec![256; rank];
            box_dims[0] = 64;
            let given = description(rank, TensorMapMode::Tiled { box_dims });
            assert_eq!(decode(&encode(&given)), Some(given));
        }
        for (rank, most) in [(3, 32767), (4, 127), (5, 15)] {
            let mode = TensorMapMode::Im2col {
                lower: vec![-most - 1; rank - 2],
                upper: vec![most; rank - 2],
                channels: 64,
                pixels: 1024,
            };
            let given = description(rank, mode);
            assert_eq!(decode(&encode(&given)), Some(given));
        }
        let mode = TensorMapMode::Im2colWide {
            lower: -32768,
            upper: 32767,
            channels: 64,
            pixels: 1000,
            mode: CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
        };
        let given = description(5, mode);
        assert_eq!(decode(&encode(&given)), Some(given));
    }

    #[test]
    fn every_field_is_replaced() {
        use TensorMapField as Field;
        let tiled = |box_dims| TensorMapMode::Tiled { box_dims };
        let mut new = TensorMapDescription {
            data_type: CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            address: 0x7F00_0000_0010,
            dims: vec![7, 1 << 32],
            strides: vec![0x12_3456_7890],
            element_strides: vec![1, 8],
            interleave: CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle: CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            l2_promotion: CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            fill: CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            mode: tiled(vec![8, 256]),
        };
        for zeros in [false, true] {
            let mut bytes = encode(&description(3, tiled(vec![64, 2, 3])));
            if zeros {
                bytes = [0; BYTES];
                new.l2_promotion = CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE;
            }
            for (field, value) in [
                (Field::Address, 0x7F00_0000_0010),
                // One less than the rank.
                (Field::Rank, 1),
                (Field::Dim(0), 7),
                (Field::Dim(1), 1 << 32),
                // The lowest four bits are no part of a stride.
                (Field::Stride(0), 0x12_3456_789F),
                (Field::ElementStride(0), 1),
                (Field::ElementStride(1), 8),
                (Field::BoxDim(0), 8),
                (Field::BoxDim(1), 256),
                (Field::DataType, 7),
                (Field::Interleave, 0),
                (Field::Swizzle, 1),
                (Field::Fill, 0),
            ] {
                assert!(replace(&mut bytes, field, value), "{field:?}");
            }
            assert_eq!(decode(&bytes).as_ref(), Some(&new));
            assert!(replace(&mut bytes, Field::Rank, 5));
            assert_eq!(decode(&bytes), None, "six dimensions");
            assert!(replace(&mut bytes, Field::Rank, 1));
            assert!(decode(&bytes).is_some());
        }
    }

    #[test]
    fn only_tiled_maps_are_changed() {
        let mode = TensorMapMode::Im2colWide {
            lower: 0,
            upper: 0,
            channels: 64,
            pixels: 64,
            mode: CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
        };
        for given in [encode(&description(3, mode)), [1; BYTES]] {
            let mut bytes = given;
            assert!(!replace(&mut bytes, TensorMapField::Address, 0));
            assert_eq!(bytes, given);
        }
    }

    #[test]
    fn other_bytes_are_no_descriptor() {
        let mode = TensorMapMode::Tiled {
            box_dims: vec![64, 2],
        };
        let bytes = encode(&description(2, mode));
        assert_eq!(decode(&[0; BYTES]), None);
        for at in 0..BYTES {
            let mut changed = bytes;
            changed[at] ^= 0x10;
            assert_eq!(decode(&changed), None, "byte {at}");
        }
    }
}

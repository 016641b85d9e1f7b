//! The elements of a box: their locations in the tensor and in shared memory.

use std::array;

use cupyrite_sys::driver::{
    CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapSwizzle as Swizzle,
};
use cupyrite_sys::tensor_map::{MAX_RANK, TensorMapDescription, TensorMapMode, half_bytes};

/// A box of a tensor at a position.
#[derive(Debug)]
pub(crate) struct TensorBox {
    address: u64,
    rank: usize,
    element: u64,
    /// Numbers of elements of the box, by dimension.
    counts: [u64; MAX_RANK],
    dims: [u64; MAX_RANK],
    /// Strides of the tensor in bytes.
    strides: [u64; MAX_RANK],
    steps: [u64; MAX_RANK],
    position: [i64; MAX_RANK],
    swizzle: u64,
    /// Bytes of shared memory from row to row. With a swizzle, a row takes as many as the swizzle spans (H200, driver 580).
    pitch: u64,
    rounds: bool,
    /// Bytes of an element outside of the tensor.
    fill: [u8; 8],
    im2col: Option<PixelWalk>,
}

/// How the pixels of the im2col mode follow each other (PTX ISA, "im2col mode"). The dimensions between the first and the
/// last are spatial.
#[derive(Debug)]
struct PixelWalk {
    /// First and last position of the filter in each spatial dimension.
    bounds: [(i64, i64); MAX_RANK],
    /// Distance of the pixels from the filter's position.
    offsets: [i64; MAX_RANK],
}

impl PixelWalk {
    /// The walk of a map of `rank` dimensions from `position`.
    fn new(
        map: &TensorMapDescription,
        (lower, upper): (&[i32], &[i32]),
        position: &[i32],
        offsets: [u16; 3],
    ) -> Result<PixelWalk, String> {
        let mut walk = PixelWalk {
            bounds: [(0, 0); MAX_RANK],
            offsets: [0; MAX_RANK],
        };
        for (n, (&lower, &upper)) in lower.iter().zip(upper).enumerate() {
            let d = n + 1;
            let (least, most) = (i64::from(lower), map.dims[d] as i64 - 1 + i64::from(upper));
            // An H100 (driver 580) raises an illegal instruction.
            if !(least..=most).contains(&i64::from(position[d])) {
                return Err(format!(
                    "the coordinate {} is outside of the bounding box, which is {least} to {most}",
                    position[d]
                ));
            }
            walk.bounds[d] = (least, most);
            walk.offsets[d] = offsets[n].into();
        }
        Ok(walk)
    }

    /// Moves the filter from `at` to the next position. It returns to the lower corner of a dimension behind the upper one;
    /// a new image begins at the lower corner of all.
    fn advance(&self, at: &mut [i64; MAX_RANK], rank: usize, steps: &[u64; MAX_RANK]) {
        for d in 1..rank {
            at[d] += steps[d].cast_signed();
            let (least, most) = self.bounds[d];
            if d + 1 == rank || at[d] <= most {
                return;
            }
            at[d] = least;
        }
    }
}

/// One row of a box.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Offset in shared memory, before the swizzle.
    pub shared: u64,
    /// Bytes of the row.
    pub bytes: u64,
    /// The part inside of the tensor: its address, its offset in the row, and its bytes, which may be none.
    pub inside: (u64, u64, u64),
}

impl TensorBox {
    /// The box of `map` at these coordinates, and at these offsets in im2col mode.
    ///
    /// # Errors
    /// A feature that the device does not implement, a map of another mode, or coordinates of another rank or outside of the
    /// bounding box.
    pub(crate) fn new(
        map: &TensorMapDescription,
        coordinates: &[i32],
        offsets: Option<[u16; 3]>,
    ) -> Result<TensorBox, String> {
        let rank = map.dims.len();
        if coordinates.len() != rank {
            return Err(format!(
                "the tensor map has {rank} dimensions, the instruction {}",
                coordinates.len()
            ));
        }
        let (box_dims, im2col) = match (&map.mode, offsets) {
            (TensorMapMode::Tiled { box_dims }, None) => (box_dims.clone(), None),
            (
                TensorMapMode::Im2col {
                    lower,
                    upper,
                    channels,
                    pixels,
                },
                Some(offsets),
            ) => {
                let walk = PixelWalk::new(map, (lower, upper), coordinates, offsets)?;
                let mut counts = vec![1; rank];
                (counts[0], counts[1]) = (*channels, *pixels);
                (counts, Some(walk))
            }
            (TensorMapMode::Im2colWide { .. }, _) => {
                return Err("the CPU device does not implement wide im2col modes".to_owned());
            }
            (TensorMapMode::Tiled { .. }, Some(_)) => {
                return Err("the instruction is in im2col mode, the tensor map is tiled".to_owned());
            }
            (TensorMapMode::Im2col { .. }, None) => {
                return Err("the tensor map is in im2col mode, the instruction tiled".to_owned());
            }
        };
        if map.interleave != Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE {
            return Err("the CPU device does not implement interleaved tensors".to_owned());
        }
        let (swizzle, span) = match map.swizzle {
            Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE => (0, 0),
            Swizzle::CU_TENSOR_MAP_SWIZZLE_32B => (1, 32),
            Swizzle::CU_TENSOR_MAP_SWIZZLE_64B => (3, 64),
            Swizzle::CU_TENSOR_MAP_SWIZZLE_128B => (7, 128),
            _ => {
                return Err("the CPU device does not implement swizzles of larger atoms".to_owned());
            }
        };
        // Copies of types with `_FTZ` keep denormal numbers (H200, driver 580).
        let rounds = matches!(
            map.data_type,
            DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                | DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
        );
        let element = match half_bytes(map.data_type) {
            Some(halves) if halves > 1 => u64::from(halves / 2),
            _ => return Err("the CPU device does not implement packed types".to_owned()),
        };
        let mut made = TensorBox {
            address: map.address,
            rank,
            element,
            counts: [1; MAX_RANK],
            dims: [1; MAX_RANK],
            strides: [0; MAX_RANK],
            steps: [1; MAX_RANK],
            position: [0; MAX_RANK],
            swizzle,
            pitch: span,
            rounds,
            fill: [0; 8],
            im2col,
        };
        for d in 0..rank {
            // The first dimension is contiguous: its element stride has no effect.
            let step = if d == 0 { 1 } else { map.element_strides[d] };
            made.steps[d] = step.into();
            // The strides of the im2col mode do not change the number of pixels.
            made.counts[d] = match made.im2col {
                Some(_) => box_dims[d].into(),
                None => box_dims[d].div_ceil(step).into(),
            };
            made.dims[d] = map.dims[d];
            made.strides[d] = if d == 0 { element } else { map.strides[d - 1] };
            made.position[d] = coordinates[d].into();
        }
        if map.fill == Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA {
            // An H200 (driver 580) repeats a NaN of 16 bits.
            made.fill = [0xF7, 0x7F, 0xF7, 0x7F, 0xF7, 0x7F, 0xF7, 0x7F];
        }
        made.pitch = made.pitch.max(made.counts[0] * element);
        Ok(made)
    }

    /// Bytes of shared memory from the first row to the end of the last one. A swizzle moves units of 16 bytes within 128
    /// bytes, all of which then belong to the box.
    pub(crate) fn footprint(&self) -> u64 {
        let rows: u64 = self.counts[1..].iter().product();
        match self.swizzle {
            0 => self.bytes(),
            _ => (rows * self.pitch).next_multiple_of(128),
        }
    }

    /// Whether the bounding box of the im2col mode contains positions outside of the tensor.
    pub(crate) fn extends_beyond(&self) -> bool {
        self.im2col.as_ref().is_some_and(|walk| {
            let mut spatial = 1..self.rank - 1;
            spatial.any(|d| walk.bounds[d].0 < 0 || walk.bounds[d].1 >= self.dims[d].cast_signed())
        })
    }

    /// Whether a load rounds the elements to TF32.
    pub(crate) fn rounds(&self) -> bool {
        self.rounds
    }

    /// Bytes of the elements.
    pub(crate) fn bytes(&self) -> u64 {
        self.counts.iter().product::<u64>() * self.element
    }

    /// Bytes of an element.
    pub(crate) fn element(&self) -> u64 {
        self.element
    }

    /// Bytes of an element outside of the tensor.
    pub(crate) fn fill(&self) -> &[u8] {
        &self.fill[..self.element as usize]
    }

    /// The swizzled address in shared memory: bits 7 to 9 modify bits 4 to 6.
    pub(crate) fn swizzled(&self, address: u64) -> u64 {
        address ^ (address >> 7 & self.swizzle) << 4
    }

    /// The position of a row of a tiled box.
    fn row_position(&self, number: u64) -> [i64; MAX_RANK] {
        let mut rest = number;
        let mut at = self.position;
        for (d, at) in at.iter_mut().enumerate().skip(1) {
            *at += (rest % self.counts[d] * self.steps[d]).cast_signed();
            rest /= self.counts[d];
        }
        at
    }

    /// The rows of the box.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> {
        let row = self.counts[0] * self.element;
        let rows: u64 = self.counts[1..].iter().product();
        let mut filter = self.position;
        (0..rows).map(move |number| {
            let at = match &self.im2col {
                Some(walk) => {
                    let pixel = array::from_fn(|d| filter[d] + walk.offsets[d]);
                    walk.advance(&mut filter, self.rank, &self.steps);
                    pixel
                }
                None => self.row_position(number),
            };
            let (mut address, mut exists) = (self.address, true);
            for (d, &at) in at.iter().enumerate().take(self.rank).skip(1) {
                exists &= at >= 0 && at.cast_unsigned() < self.dims[d];
                address = address.wrapping_add((at as u64).wrapping_mul(self.strides[d]));
            }
            let first = self.position[0].max(0);
            let end =
                (self.position[0] + self.counts[0].cast_signed()).min(self.dims[0].cast_signed());
            let inside = if exists && first < end {
                (
                    address + first.cast_unsigned() * self.element,
                    (first - self.position[0]).cast_unsigned() * self.element,
                    (end - first).cast_unsigned() * self.element,
                )
            } else {
                (0, 0, 0)
            };
            Run {
                shared: number * self.pitch,
                bytes: row,
                inside,
            }
        })
    }
}

/// Rounds the bits of a 32-bit float to TF32, a significand of 10 bits: to nearest, ties to even, as an H200 (driver 580)
/// does. NaNs stay NaNs.
pub(crate) fn round_to_tf32(bits: u32) -> u32 {
    const DROPPED: u32 = (1 << 13) - 1;
    const INFINITY: u32 = 0x7F80_0000;
    const QUIET: u32 = 1 << 22;
    if bits & !(1 << 31) > INFINITY {
        return (bits | QUIET) & !DROPPED;
    }
    let is_odd = bits >> 13 & 1;
    (bits + DROPPED / 2 + is_odd) & !DROPPED
}

#[cfg(test)]
mod tests {
    use cupyrite_sys::driver::CUtensorMapL2promotion;

    use super::*;

    fn map(steps: [u32; 2]) -> TensorMapDescription {
        TensorMapDescription {
            data_type: DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            address: 0x1000,
            dims: vec![10, 6],
            strides: vec![48],
            element_strides: steps.to_vec(),
            mode: TensorMapMode::Tiled {
                box_dims: vec![4, 4],
            },
            interleave: Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle: Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            l2_promotion: CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            fill: Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        }
    }

    fn inside(steps: [u32; 2], at: [i32; 2]) -> Vec<(u64, u64, u64)> {
        let found = TensorBox::new(&map(steps), &at, None).unwrap();
        found.runs().map(|run| run.inside).collect()
    }

    #[test]
    fn rows_are_clipped() {
        let rows = |x: u64, skip: u64, len: u64, ys: &[u64]| -> Vec<(u64, u64, u64)> {
            ys.iter()
                .map(|y| (0x1000 + 48 * y + 4 * x, 4 * skip, 4 * len))
                .collect()
        };
        assert_eq!(inside([1, 1], [2, 1]), rows(2, 0, 4, &[1, 2, 3, 4]));
        assert_eq!(inside([1, 1], [-1, 1]), rows(0, 1, 3, &[1, 2, 3, 4]));
        assert_eq!(inside([1, 1], [8, 0]), rows(8, 0, 2, &[0, 1, 2, 3]));
        let mut clipped = rows(0, 0, 4, &[5]);
        clipped.extend([(0, 0, 0); 3]);
        assert_eq!(inside([1, 1], [0, 5]), clipped);
        assert_eq!(inside([1, 1], [10, 0]), [(0, 0, 0); 4]);
        assert_eq!(inside([1, 1], [i32::MIN, i32::MAX]), [(0, 0, 0); 4]);
        // The first dimension has no stride.
        assert_eq!(inside([2, 3], [0, 0]), rows(0, 0, 4, &[0, 3]));
    }

    /// The pixels that a copy reads from images of 4-byte elements with 4 channels, numbered from 1; 0 is outside.
    fn pixels(
        dims: [u64; 3],
        corners: [[i32; 2]; 2],
        steps: [u32; 3],
        (at, offsets): ([i32; 3], [u16; 2]),
        count: u32,
    ) -> Vec<u64> {
        let [width, height, images] = dims;
        let map = TensorMapDescription {
            dims: vec![4, width, height, images],
            strides: vec![16, 16 * width, 16 * width * height],
            element_strides: [vec![1], steps.to_vec()].concat(),
            mode: TensorMapMode::Im2col {
                lower: corners[0].to_vec(),
                upper: corners[1].to_vec(),
                channels: 4,
                pixels: count,
            },
            ..map([1, 1])
        };
        let at = [&[0], &at[..]].concat();
        let offsets = [offsets[0], offsets[1], 0];
        let found = TensorBox::new(&map, &at, Some(offsets)).unwrap();
        assert_eq!(found.bytes(), u64::from(16 * count));
        let pixel = |run: Run| match run.inside {
            (address, 0, 16) => (address - 0x1000) / 16 + 1,
            _ => 0,
        };
        found.runs().map(pixel).collect()
    }

    /// An H100 (driver 580) reads the same pixels.
    #[test]
    fn the_filter_moves_within_the_bounding_box() {
        let range = |from: u64, to: u64| (from..=to).collect::<Vec<_>>();
        // The next image follows the last row of the box, which has four columns and three rows.
        let box_of_4x3 = [[0, 0], [-1, -1]];
        let found = pixels([5, 4, 2], box_of_4x3, [1, 1, 1], ([2, 1, 0], [1, 1]), 12);
        let expected = [range(14, 15), range(17, 20), range(27, 30), range(32, 33)];
        assert_eq!(found, expected.concat());
        // Columns -1 and 1, then the rows follow at a distance of two: 0 and 2.
        let found = pixels(
            [3, 3, 2],
            [[-1, 0], [-1, 0]],
            [2, 2, 1],
            ([1, 0, 0], [0, 0]),
            6,
        );
        assert_eq!(found, [2, 0, 8, 0, 11, 0]);
        // The last stride is that of the images.
        let found = pixels([2, 2, 3], [[0, 0]; 2], [1, 1, 2], ([0, 1, 0], [0, 0]), 8);
        assert_eq!(found, [3, 4, 9, 10, 11, 12, 0, 0]);
    }

    #[test]
    fn modes_of_map_and_instruction_agree() {
        let tiled = map([1, 1]);
        assert!(TensorBox::new(&tiled, &[0, 0], Some([0; 3])).is_err());
        let mut other = TensorMapDescription {
            dims: vec![4, 8, 2],
            strides: vec![16, 128],
            element_strides: vec![1; 3],
            mode: TensorMapMode::Im2col {
                lower: vec![-1],
                upper: vec![-2],
                channels: 4,
                pixels: 4,
            },
            ..map([1, 1])
        };
        assert!(TensorBox::new(&other, &[0, 0, 0], None).is_err());
        let at = |map: &TensorMapDescription| TensorBox::new(map, &[0; 3], Some([0; 3])).unwrap();
        assert!(at(&other).extends_beyond());
        // The bounding box is -1 to 5.
        for (at, inside) in [(-2, false), (-1, true), (5, true), (6, false)] {
            let made = TensorBox::new(&other, &[0, at, 0], Some([0; 3]));
            assert_eq!(made.is_ok(), inside, "{at}");
        }
        other.mode = TensorMapMode::Im2colWide {
            lower: 0,
            upper: 0,
            channels: 4,
            pixels: 4,
            mode: cupyrite_sys::driver::CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
        };
        assert!(TensorBox::new(&other, &[0, 0, 0], Some([0; 3])).is_err());
    }

    #[test]
    fn swizzles_permute_units_of_16_bytes() {
        let found = TensorBox::new(&map([1, 1]), &[0, 0], None).unwrap();
        let mut units: Vec<u64> = (0..64).map(|unit| found.swizzled(unit * 16) / 16).collect();
        assert_eq!(units[8..16], [9, 8, 11, 10, 13, 12, 15, 14]);
        assert_eq!(units[56..64], [63, 62, 61, 60, 59, 58, 57, 56]);
        units.sort_unstable();
        assert_eq!(units, (0..64).collect::<Vec<_>>());
    }

    /// The values of an H200 (driver 580): rows of 16 bytes take the 128 bytes of their swizzle.
    #[test]
    fn rows_have_the_pitch_of_their_swizzle() {
        let with = |swizzle| {
            let map = TensorMapDescription {
                swizzle,
                ..map([1, 1])
            };
            let found = TensorBox::new(&map, &[0, 0], None).unwrap();
            let rows: Vec<u64> = found.runs().map(|run| run.shared).collect();
            let swizzled: Vec<u64> = rows.iter().map(|at| found.swizzled(*at)).collect();
            (rows, swizzled, found.bytes(), found.footprint())
        };
        let wide = with(Swizzle::CU_TENSOR_MAP_SWIZZLE_128B);
        assert_eq!(wide.0, [0, 128, 256, 384]);
        assert_eq!(wide.1, [0, 144, 288, 432]);
        assert_eq!((wide.2, wide.3), (64, 512));
        let narrow = with(Swizzle::CU_TENSOR_MAP_SWIZZLE_32B);
        assert_eq!(narrow.0, [0, 32, 64, 96]);
        assert_eq!((narrow.2, narrow.3), (64, 128));
        let none = with(Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE);
        assert_eq!(none.0, [0, 16, 32, 48]);
        assert_eq!((none.2, none.3), (64, 64));
    }

    /// The values of an H200 (driver 580), and numbers that have no TF32 neighbour.
    #[test]
    fn tf32_rounds_to_nearest_even() {
        for (from, to) in [
            (0x3F80_1000, 0x3F80_0000),
            (0x3F80_3000, 0x3F80_4000),
            (0x3F80_1800, 0x3F80_2000),
            (0x0001_16C2, 0x0001_2000),
            (0xBF80_3000, 0xBF80_4000),
            (0x7F7F_FFFF, 0x7F80_0000),
            (0xFF80_0000, 0xFF80_0000),
            (0x7F80_0001, 0x7FC0_0000),
            (0x7FFF_FFFF, 0x7FFF_E000),
            (0xFFFF_FFFF, 0xFFFF_E000),
        ] {
            assert_eq!(round_to_tf32(from), to, "{from:#x}");
        }
    }

    #[test]
    fn the_fill_repeats_a_nan_of_16_bits() {
        let fill = |data_type| {
            let map = TensorMapDescription {
                data_type,
                fill: Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
                ..map([1, 1])
            };
            TensorBox::new(&map, &[0, 0], None).unwrap().fill().to_vec()
        };
        let types = [
            (DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 1),
            (DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 1),
            (DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2),
            (DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 4),
        ];
        for (data_type, halves) in types {
            assert_eq!(fill(data_type), [0xF7, 0x7F].repeat(halves));
        }
    }
}

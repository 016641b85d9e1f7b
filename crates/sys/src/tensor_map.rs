//! Description of a tensor map, and the rules that the driver sets for it.
//!
//! The rules are those of the manual, except where an H200's driver (580) is more permissive: strides of zero and
//! strides smaller than a row, the address zero, and an interleaved layout of 32 bytes without a swizzle. The safe API
//! uses them to name the invalid parameter before it calls the driver; the CPU device uses them to implement the calls.
//! Source: CUDA driver API, "Tensor Map Object Management".

use crate::driver::{
    CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill, CUtensorMapIm2ColWideMode,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion, CUtensorMapSwizzle as Swizzle,
};

/// Greatest number of dimensions.
pub const MAX_RANK: usize = 5;

/// How a box of elements is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorMapMode {
    /// `cuTensorMapEncodeTiled`.
    Tiled {
        /// Extents of the box, in elements.
        box_dims: Vec<u32>,
    },
    /// `cuTensorMapEncodeIm2col`. The corners have one number for each dimension between the first and the last.
    Im2col {
        /// `pixelBoxLowerCorner`.
        lower: Vec<i32>,
        /// `pixelBoxUpperCorner`.
        upper: Vec<i32>,
        /// `channelsPerPixel`.
        channels: u32,
        /// `pixelsPerColumn`.
        pixels: u32,
    },
    /// `cuTensorMapEncodeIm2colWide`.
    Im2colWide {
        /// `pixelBoxLowerCornerWidth`.
        lower: i32,
        /// `pixelBoxUpperCornerWidth`.
        upper: i32,
        /// `channelsPerPixel`.
        channels: u32,
        /// `pixelsPerColumn`.
        pixels: u32,
        /// `mode`.
        mode: CUtensorMapIm2ColWideMode,
    },
}

/// The arguments of `cuTensorMapEncode*`. Dimensions are in the driver's order: the first one is contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapDescription {
    /// Type of the elements.
    pub data_type: DataType,
    /// Address of the tensor.
    pub address: u64,
    /// Extents in elements, one to five.
    pub dims: Vec<u64>,
    /// Strides in bytes of all dimensions but the first.
    pub strides: Vec<u64>,
    /// Distances of the elements of a box, one for each dimension.
    pub element_strides: Vec<u32>,
    /// How a box is selected.
    pub mode: TensorMapMode,
    /// Interleaved layout.
    pub interleave: Interleave,
    /// Swizzle of shared memory.
    pub swizzle: Swizzle,
    /// Promotion of the second-level cache.
    pub l2_promotion: CUtensorMapL2promotion,
    /// Value of elements outside of the tensor.
    pub fill: Fill,
}

/// A rule that the arguments break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameter of the driver's function.
    pub parameter: &'static str,
    /// The element, in the driver's order, if the parameter is an array.
    pub index: Option<usize>,
    /// The value, and what is allowed.
    pub problem: String,
}

fn violation<T>(
    parameter: &'static str,
    index: impl Into<Option<usize>>,
    problem: String,
) -> Result<T, Violation> {
    Err(Violation {
        parameter,
        index: index.into(),
        problem,
    })
}

/// Bytes of an element, twice: packed types have half bytes.
pub fn half_bytes(data_type: DataType) -> Option<u32> {
    Some(match data_type {
        DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8 => 2,
        DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16
        | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16
        | DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 => 4,
        DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32
        | DataType::CU_TENSOR_MAP_DATA_TYPE_INT32
        | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32
        | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ
        | DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
        | DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ => 8,
        DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64
        | DataType::CU_TENSOR_MAP_DATA_TYPE_INT64
        | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64 => 16,
        DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B
        | DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
        | DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B => 1,
        _ => return None,
    })
}

/// Whether the type is a floating-point type.
pub fn is_float(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16
            | DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
            | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32
            | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ
            | DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
            | DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
            | DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64
    )
}

/// Bytes of a row that a swizzle spans; `None` without one.
fn swizzle_bytes(swizzle: Swizzle) -> Result<Option<u64>, Violation> {
    Ok(match swizzle {
        Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE => None,
        Swizzle::CU_TENSOR_MAP_SWIZZLE_32B => Some(32),
        Swizzle::CU_TENSOR_MAP_SWIZZLE_64B => Some(64),
        Swizzle::CU_TENSOR_MAP_SWIZZLE_128B
        | Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B
        | Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B
        | Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B => Some(128),
        _ => {
            return violation(
                "swizzle",
                None,
                format!("is {}, which is unknown", swizzle.0),
            );
        }
    })
}

fn range<T: PartialOrd + std::fmt::Display>(
    parameter: &'static str,
    index: Option<usize>,
    value: T,
    least: T,
    most: T,
) -> Result<(), Violation> {
    if value >= least && value <= most {
        return Ok(());
    }
    violation(
        parameter,
        index,
        format!("is {value}; expected {least} to {most}"),
    )
}

impl TensorMapDescription {
    /// Checks the arguments against the rules of the driver's manual.
    ///
    /// # Errors
    ///
    /// The first violated rule.
    pub fn check(&self) -> Result<(), Violation> {
        let Some(half_bytes) = half_bytes(self.data_type) else {
            return violation(
                "tensorDataType",
                None,
                format!("is {}, which is unknown", self.data_type.0),
            );
        };
        self.check_rank()?;
        let alignment = self.check_alignment()?;
        for (index, &extent) in self.dims.iter().enumerate() {
            range("globalDim", Some(index), extent, 1, 1 << 32)?;
        }
        let granularity = match self.data_type {
            DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B => 2,
            DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
            | DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B => 128,
            _ => 1,
        };
        if !self.dims[0].is_multiple_of(granularity) {
            return violation(
                "globalDim",
                0,
                format!("is {}; expected a multiple of {granularity}", self.dims[0]),
            );
        }
        for (index, &stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(alignment) || stride >= 1 << 40 {
                return violation(
                    "globalStrides",
                    index,
                    format!(
                        "is {stride} bytes; expected a multiple of {alignment} bytes below 2**40"
                    ),
                );
            }
        }
        for (index, &stride) in self.element_strides.iter().enumerate() {
            range("elementStrides", Some(index), stride, 1, 8)?;
        }
        let inner = match &self.mode {
            TensorMapMode::Tiled { box_dims } => self.check_tiled(box_dims)?,
            TensorMapMode::Im2col {
                lower,
                upper,
                channels,
                pixels,
            } => {
                self.check_corners(lower, upper)?;
                range("channelsPerPixel", None, *channels, 1, 256)?;
                range("pixelsPerColumn", None, *pixels, 1, 1024)?;
                *channels
            }
            TensorMapMode::Im2colWide {
                lower,
                upper,
                channels,
                pixels,
                mode,
            } => {
                for (name, corner) in [
                    ("pixelBoxLowerCornerWidth", *lower),
                    ("pixelBoxUpperCornerWidth", *upper),
                ] {
                    range(name, None, corner, -(1 << 15), (1 << 15) - 1)?;
                }
                range("channelsPerPixel", None, *channels, 1, 256)?;
                range("pixelsPerColumn", None, *pixels, 1, 1024)?;
                range("mode", None, mode.0, 0, 1)?;
                *channels
            }
        };
        self.check_inner(u64::from(inner) * u64::from(half_bytes))?;
        range("l2Promotion", None, self.l2_promotion.0, 0, 3)?;
        range("oobFill", None, self.fill.0, 0, 1)?;
        if self.fill == Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
            && !is_float(self.data_type)
        {
            return violation(
                "oobFill",
                None,
                "is NAN_REQUEST_ZERO_FMA, which needs a floating-point type".to_owned(),
            );
        }
        Ok(())
    }

    fn check_rank(&self) -> Result<(), Violation> {
        let rank = self.dims.len();
        let (least, reason) = match self.mode {
            TensorMapMode::Tiled { .. } => {
                if self.interleave == Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE {
                    (1, "")
                } else {
                    (3, " for an interleaved layout")
                }
            }
            TensorMapMode::Im2col { .. } | TensorMapMode::Im2colWide { .. } => {
                (3, " in im2col mode")
            }
        };
        if !(least..=MAX_RANK).contains(&rank) {
            return violation(
                "tensorRank",
                None,
                format!("is {rank}; expected {least} to {MAX_RANK}{reason}"),
            );
        }
        for (name, len, expected) in [
            ("globalStrides", self.strides.len(), rank - 1),
            ("elementStrides", self.element_strides.len(), rank),
        ] {
            if len != expected {
                return violation(
                    name,
                    None,
                    format!("has {len} numbers; expected {expected}"),
                );
            }
        }
        Ok(())
    }

    /// Checks the address; returns the alignment of strides.
    fn check_alignment(&self) -> Result<u64, Violation> {
        range("interleave", None, self.interleave.0, 0, 2)?;
        let wide = self.interleave == Interleave::CU_TENSOR_MAP_INTERLEAVE_32B
            || matches!(
                self.data_type,
                DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
                    | DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
            );
        let alignment = if wide { 32 } else { 16 };
        if !self.address.is_multiple_of(alignment) {
            return violation(
                "globalAddress",
                None,
                format!("is {:#x}; expected a multiple of {alignment}", self.address),
            );
        }
        Ok(alignment)
    }

    /// Checks the extents of a box; returns the first one.
    fn check_tiled(&self, box_dims: &[u32]) -> Result<u32, Violation> {
        let rank = self.dims.len();
        if box_dims.len() != rank {
            return violation(
                "boxDim",
                None,
                format!("has {} numbers; expected {rank}", box_dims.len()),
            );
        }
        for (index, &extent) in box_dims.iter().enumerate() {
            range("boxDim", Some(index), extent, 1, 256)?;
        }
        let fixed = matches!(
            self.data_type,
            DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
                | DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
        );
        if fixed && box_dims[0] != 128 {
            return violation(
                "boxDim",
                0,
                format!("is {}; expected 128 for this type", box_dims[0]),
            );
        }
        Ok(box_dims[0])
    }

    fn check_corners(&self, lower: &[i32], upper: &[i32]) -> Result<(), Violation> {
        let spatial = self.dims.len() - 2;
        let bits = match spatial {
            1 => 15,
            2 => 7,
            _ => 4,
        };
        for (name, corner) in [
            ("pixelBoxLowerCorner", lower),
            ("pixelBoxUpperCorner", upper),
        ] {
            if corner.len() != spatial {
                return violation(
                    name,
                    None,
                    format!("has {} numbers; expected {spatial}", corner.len()),
                );
            }
            for (index, &at) in corner.iter().enumerate() {
                range(name, Some(index), at, -(1 << bits), (1 << bits) - 1)?;
            }
        }
        Ok(())
    }

    /// Checks the contiguous part of a box, `halves` half bytes, against interleave and swizzle.
    fn check_inner(&self, halves: u64) -> Result<(), Violation> {
        let name = match self.mode {
            TensorMapMode::Tiled { .. } => "boxDim",
            _ => "channelsPerPixel",
        };
        let index = matches!(self.mode, TensorMapMode::Tiled { .. }).then_some(0);
        let span = swizzle_bytes(self.swizzle)?;
        if self.interleave != Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE {
            if self.interleave == Interleave::CU_TENSOR_MAP_INTERLEAVE_32B
                && span.is_some_and(|bytes| bytes != 32)
            {
                return violation(
                    "swizzle",
                    None,
                    "must be 32B or NONE for an interleaved layout of 32 bytes".to_owned(),
                );
            }
            return Ok(());
        }
        if !halves.is_multiple_of(32) {
            return violation(
                name,
                index,
                format!(
                    "spans {} bytes; expected a multiple of 16 bytes",
                    halves as f64 / 2.0
                ),
            );
        }
        match span {
            Some(span) if halves > 2 * span => violation(
                name,
                index,
                format!(
                    "spans {} bytes; expected at most the {span} bytes of the swizzle",
                    halves / 2
                ),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiled(box_dims: &[u32]) -> TensorMapDescription {
        TensorMapDescription {
            data_type: DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            address: 0x1000,
            dims: vec![64; box_dims.len()],
            strides: (1..box_dims.len())
                .map(|n| 256 * 64u64.pow(n as u32 - 1))
                .collect(),
            element_strides: vec![1; box_dims.len()],
            mode: TensorMapMode::Tiled {
                box_dims: box_dims.to_vec(),
            },
            interleave: Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle: Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            l2_promotion: CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            fill: Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        }
    }

    fn refused(change: impl FnOnce(&mut TensorMapDescription)) -> (&'static str, Option<usize>) {
        let mut description = tiled(&[32, 8, 4]);
        assert_eq!(description.check(), Ok(()));
        change(&mut description);
        let violation = description.check().unwrap_err();
        assert!(!violation.problem.is_empty());
        (violation.parameter, violation.index)
    }

    #[test]
    fn each_rule_names_its_parameter() {
        assert_eq!(
            refused(|d| d.data_type = DataType(99)),
            ("tensorDataType", None)
        );
        assert_eq!(refused(|d| d.address += 8), ("globalAddress", None));
        assert_eq!(refused(|d| d.dims[1] = 0), ("globalDim", Some(1)));
        assert_eq!(
            refused(|d| d.dims[2] = (1 << 32) + 1),
            ("globalDim", Some(2))
        );
        assert_eq!(refused(|d| d.strides[0] = 8), ("globalStrides", Some(0)));
        assert_eq!(
            refused(|d| d.strides[1] = 1 << 40),
            ("globalStrides", Some(1))
        );
        assert_eq!(
            refused(|d| d.element_strides[1] = 9),
            ("elementStrides", Some(1))
        );
        assert_eq!(
            refused(|d| d.element_strides[0] = 0),
            ("elementStrides", Some(0))
        );
        let boxed = |dims: &[u32]| TensorMapMode::Tiled {
            box_dims: dims.to_vec(),
        };
        assert_eq!(
            refused(|d| d.mode = boxed(&[32, 257, 1])),
            ("boxDim", Some(1))
        );
        assert_eq!(refused(|d| d.mode = boxed(&[3, 8, 1])), ("boxDim", Some(0)));
        assert_eq!(refused(|d| d.mode = boxed(&[4])), ("boxDim", None));
        assert_eq!(
            refused(|d| d.swizzle = Swizzle::CU_TENSOR_MAP_SWIZZLE_64B),
            ("boxDim", Some(0))
        );
        assert_eq!(refused(|d| d.swizzle = Swizzle(9)), ("swizzle", None));
        assert_eq!(
            refused(|d| {
                d.interleave = Interleave::CU_TENSOR_MAP_INTERLEAVE_32B;
                d.swizzle = Swizzle::CU_TENSOR_MAP_SWIZZLE_128B;
            }),
            ("swizzle", None)
        );
        assert_eq!(
            refused(|d| {
                d.data_type = DataType::CU_TENSOR_MAP_DATA_TYPE_INT32;
                d.fill = Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
            }),
            ("oobFill", None)
        );
        assert_eq!(refused(|d| d.dims = vec![1; 6]), ("tensorRank", None));
        assert_eq!(refused(|d| d.dims.clear()), ("tensorRank", None));
    }

    /// Arguments that an H200's driver (580) accepts although the manual forbids them or does not mention them.
    #[test]
    fn the_driver_is_more_permissive_than_its_manual() {
        let mut description = tiled(&[32, 8, 4]);
        description.address = 0;
        description.strides = vec![0, 16];
        description.dims[1] = 1 << 32;
        assert_eq!(description.check(), Ok(()));
        description.strides = vec![256, 2048];
        description.interleave = Interleave::CU_TENSOR_MAP_INTERLEAVE_32B;
        assert_eq!(description.check(), Ok(()));
    }

    #[test]
    fn corners_depend_on_the_rank() {
        for (rank, most) in [(3, 32767), (4, 127), (5, 15)] {
            let mut description = tiled(&vec![4; rank]);
            description.strides = vec![256; rank - 1];
            let mut corners = |lower: i32, upper: i32| {
                description.mode = TensorMapMode::Im2col {
                    lower: vec![lower; rank - 2],
                    upper: vec![upper; rank - 2],
                    channels: 16,
                    pixels: 8,
                };
                description.check().map_err(|violation| violation.parameter)
            };
            assert_eq!(corners(-most - 1, most), Ok(()));
            assert_eq!(corners(-most - 2, most), Err("pixelBoxLowerCorner"));
            assert_eq!(corners(0, most + 1), Err("pixelBoxUpperCorner"));
        }
        let mut description = tiled(&[4, 4]);
        description.mode = TensorMapMode::Im2col {
            lower: vec![],
            upper: vec![],
            channels: 16,
            pixels: 8,
        };
        assert_eq!(description.check().unwrap_err().parameter, "tensorRank");
    }
}

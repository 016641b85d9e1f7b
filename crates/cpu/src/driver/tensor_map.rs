//! Entry points of tensor maps.

use cupyrite_engine::tensor_map::{BYTES, decode, encode};
use cupyrite_sys::driver::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use cupyrite_sys::tensor_map::{MAX_RANK, TensorMapDescription, TensorMapMode};

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{Plain, get, get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs;

/// `count` numbers of the caller.
fn numbers<T: Plain>(address: u64, count: usize) -> Res<Vec<T>> {
    if count != 0 {
        non_null(address)?;
    }
    get_array(address, count)
}

/// Checks a rank before arrays of this length are read.
fn rank(given: u32) -> Res<usize> {
    match given as usize {
        rank @ 1..=MAX_RANK => Ok(rank),
        _ => refuse(&format!("tensorRank is {given}; expected 1 to {MAX_RANK}")),
    }
}

fn refuse<T>(reason: &str) -> Res<T> {
    logs::refuse(Code::INVALID_VALUE, || reason.to_owned())
}

/// The arguments that all modes have.
struct CommonArguments {
    data_type: u32,
    rank: u32,
    address: u64,
    dims: u64,
    strides: u64,
    element_strides: u64,
    interleave: u32,
    swizzle: u32,
    l2_promotion: u32,
    fill: u32,
}

fn encode_at(
    out: u64,
    common: &CommonArguments,
    mode: impl FnOnce(usize) -> Res<TensorMapMode>,
) -> Res {
    // The manual requires a non-null address with an alignment of 64 bytes; NVIDIA's driver (H200, driver 580) does
    // not.
    non_null(out)?;
    let rank = rank(common.rank)?;
    let strides = match rank {
        1 => Vec::new(),
        _ => numbers(common.strides, rank - 1)?,
    };
    let description = TensorMapDescription {
        data_type: CUtensorMapDataType(common.data_type),
        address: common.address,
        dims: numbers(common.dims, rank)?,
        strides,
        element_strides: numbers(common.element_strides, rank)?,
        mode: mode(rank)?,
        interleave: CUtensorMapInterleave(common.interleave),
        swizzle: CUtensorMapSwizzle(common.swizzle),
        l2_promotion: CUtensorMapL2promotion(common.l2_promotion),
        fill: CUtensorMapFloatOOBfill(common.fill),
    };
    if let Err(violation) = description.check() {
        let index = match violation.index {
            Some(index) => format!("[{index}]"),
            None => String::new(),
        };
        return refuse(&format!(
            "{}{index} {}",
            violation.parameter, violation.problem
        ));
    }
    put(out, encode(&description))
}

driver_entry_points! {
    fn encode_tiled "cuTensorMapEncodeTiled" (out: u64, data_type: u32, rank: u32, address: u64, dims: u64, strides: u64,
        box_dims: u64, element_strides: u64, interleave: u32, swizzle: u32, l2_promotion: u32, fill: u32) {
        let common = CommonArguments {
            data_type, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill,
        };
        encode_at(out, &common, |rank| Ok(TensorMapMode::Tiled { box_dims: numbers(box_dims, rank)? }))
    }
    fn encode_im2col "cuTensorMapEncodeIm2col" (out: u64, data_type: u32, rank: u32, address: u64, dims: u64, strides: u64,
        lower: u64, upper: u64, channels: u32, pixels: u32, element_strides: u64, interleave: u32, swizzle: u32,
        l2_promotion: u32, fill: u32) {
        let common = CommonArguments {
            data_type, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill,
        };
        encode_at(out, &common, |rank| {
            let spatial = rank.saturating_sub(2);
            Ok(TensorMapMode::Im2col {
                lower: numbers(lower, spatial)?,
                upper: numbers(upper, spatial)?,
                channels,
                pixels,
            })
        })
    }
    fn encode_im2col_wide "cuTensorMapEncodeIm2colWide" (out: u64, data_type: u32, rank: u32, address: u64, dims: u64,
        strides: u64, lower: i32, upper: i32, channels: u32, pixels: u32, element_strides: u64, interleave: u32, mode: u32,
        swizzle: u32, l2_promotion: u32, fill: u32) {
        let common = CommonArguments {
            data_type, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill,
        };
        let mode = CUtensorMapIm2ColWideMode(mode);
        encode_at(out, &common, |_| Ok(TensorMapMode::Im2colWide { lower, upper, channels, pixels, mode }))
    }
    fn replace_address "cuTensorMapReplaceAddress" (map: u64, address: u64) {
        non_null(map)?;
        non_null(address)?;
        let Some(mut description) = decode(&get::<[u8; BYTES]>(map)?) else {
            return refuse("tensorMap is not a tensor map of this device");
        };
        description.address = address;
        if let Err(violation) = description.check() {
            return refuse(&format!("{} {}", violation.parameter, violation.problem));
        }
        put(map, encode(&description))
    }
}

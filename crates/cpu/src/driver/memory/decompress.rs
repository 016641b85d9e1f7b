//! Decompression: `cuMemBatchDecompressAsync` (CUDA driver API, "Decompression").
//!
//! GPUs with a decompression engine take raw streams of Deflate (RFC 1951), blocks of LZ4, and the raw format of Snappy.
//! The operations of a batch are independent: one that fails does not prevent the others.

use cupyrite_engine::memory::{Access, Region, RegionKind};
use cupyrite_sys::driver::{
    CU_MEM_CREATE_USAGE_HW_DECOMPRESS, CUmemDecompressAlgorithm as Algorithm, CUmemDecompressParams,
};

use crate::driver::context::Context;
use crate::driver::device::peers;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{self, refuse};
use crate::driver::memory::copy_range::move_bytes;
use crate::driver::memory::pool;
use crate::driver::memory::space::space;
use crate::driver::memory::virtual_memory;
use crate::driver::stream::{OpPlacement, resolve};

/// `CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH`: the largest source and destination of an operation in bytes.
pub(crate) const MAXIMUM_LENGTH: u64 = 4 << 20;
/// `CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK`.
pub(crate) const ALGORITHMS: u32 = Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE.0
    | Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY.0
    | Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_LZ4.0;
/// Maximum number of operations in a batch; a larger count is an error.
const MAX_OPERATIONS: u64 = 1 << 20;

/// Whether memory can take part in a decompression (`CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE`).
pub(crate) fn is_capable(region: &Region) -> bool {
    if region.kind == RegionKind::Virtual {
        let usage = virtual_memory::usage(region);
        return usage & CU_MEM_CREATE_USAGE_HW_DECOMPRESS as u16 != 0;
    }
    match pool::is_member(region) {
        true => pool::can_decompress(region),
        false => region.kind == RegionKind::Device,
    }
}

/// An operation of a batch.
struct Operation {
    algorithm: Algorithm,
    /// Address and size in bytes.
    source: (u64, u64),
    destination: (u64, u64),
    /// Address of the number of bytes that were written.
    written: u64,
}

impl Operation {
    /// Checks one of the operation's addresses.
    fn check_range(context: &Context, name: &str, (at, len): (u64, u64), wanted: Access) -> Res {
        let Some(region) = space().find_range(at, len) else {
            return refuse(Code::INVALID_VALUE, || {
                format!("{name} {at:#x}: {len} bytes are not inside one allocation")
            });
        };
        if peers::viewer(context).access(&region) < wanted {
            return refuse(Code::INVALID_VALUE, || {
                format!("{name} {at:#x}: the stream's device has no access to the memory")
            });
        }
        if !is_capable(&region) {
            return refuse(Code::INVALID_VALUE, || {
                format!(
                    "{name} {at:#x}: the memory cannot be used for decompression; allocate it with cuMemAlloc, or create it with \
                     CU_MEM_CREATE_USAGE_HW_DECOMPRESS, or its pool with CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS"
                )
            });
        }
        Ok(())
    }

    fn new(given: &CUmemDecompressParams, context: &Context) -> Res<Operation> {
        let (from, to) = (given.srcNumBytes as u64, given.dstNumBytes as u64);
        for (name, len) in [("srcNumBytes", from), ("dstNumBytes", to)] {
            if len == 0 || len > MAXIMUM_LENGTH {
                return refuse(Code::INVALID_VALUE, || {
                    format!(
                        "{name} {len}: expected 1 to {MAXIMUM_LENGTH} (CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH)"
                    )
                });
            }
        }
        if given.algo.0.count_ones() != 1 || given.algo.0 & !ALGORITHMS != 0 {
            return refuse(Code::INVALID_VALUE, || {
                format!(
                    "algo {}: expected one CUmemDecompressAlgorithm",
                    given.algo.0
                )
            });
        }
        if given.padding != [0; 20] {
            return refuse(Code::INVALID_VALUE, || "padding: must be zero".into());
        }
        let operation = Operation {
            algorithm: given.algo,
            source: (given.src.addr() as u64, from),
            destination: (given.dst.addr() as u64, to),
            written: given.dstActBytes.addr() as u64,
        };
        if !operation.written.is_multiple_of(4) {
            return refuse(Code::INVALID_VALUE, || {
                format!(
                    "dstActBytes {:#x} is not a multiple of 4",
                    operation.written
                )
            });
        }
        Self::check_range(context, "src", operation.source, Access::Read)?;
        Self::check_range(context, "dst", operation.destination, Access::ReadWrite)?;
        let count = (operation.written, 4);
        Self::check_range(context, "dstActBytes", count, Access::ReadWrite)?;
        Ok(operation)
    }

    /// Decompresses. The caller holds a pin.
    ///
    /// # Errors
    /// `ILLEGAL_ADDRESS` if memory was freed, `LAUNCH_FAILED` for data that the algorithm cannot decompress into the
    /// destination.
    fn run(&self, index: usize) -> Res {
        let lost = |_| Code::ILLEGAL_ADDRESS;
        let mut from = vec![0u8; self.source.1 as usize];
        move_bytes(from.as_mut_ptr() as u64, self.source.0, self.source.1).map_err(lost)?;
        let mut to = vec![0u8; self.destination.1 as usize];
        let outcome = decompress(self.algorithm, &from, &mut to);
        let written = *outcome.as_ref().unwrap_or(&0) as u64;
        move_bytes(self.destination.0, to.as_ptr() as u64, written).map_err(lost)?;
        let count = (written as u32).to_ne_bytes();
        move_bytes(self.written, count.as_ptr() as u64, 4).map_err(lost)?;
        outcome.map(|_| ()).map_err(|reason| {
            let text = format!(
                "operation {index} of a batch cannot decompress the {} bytes at {:#x} into {} bytes: {reason}",
                self.source.1, self.source.0, self.destination.1
            );
            logs::message(logs::Level::Error, &text);
            Code::LAUNCH_FAILED
        })
    }
}

/// Decompresses `from`; returns the number of bytes written to `to`.
///
/// # Errors
/// Why it is impossible.
fn decompress(algorithm: Algorithm, from: &[u8], to: &mut [u8]) -> Result<usize, String> {
    match algorithm {
        Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE => {
            let once = std::iter::once(from);
            miniz_oxide::inflate::decompress_slice_iter_to_slice(to, once, false, true)
                .map_err(|status| format!("Deflate: {status:?}"))
        }
        Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY => snap::raw::Decoder::new()
            .decompress(from, to)
            .map_err(|error| format!("Snappy: {error}")),
        _ => lz4_flex::block::decompress_into(from, to).map_err(|error| format!("LZ4: {error}")),
    }
}

driver_entry_points! {
    fn batch_decompress "cuMemBatchDecompressAsync" | "cuMemBatchDecompressAsync_ptsz"
        (operations: u64, count: u64, flags: u32, failed: u64, stream: u64) {
        /// The error is not that of a particular operation.
        const GENERAL: u64 = u64::MAX;
        let stream = resolve::resolve(stream, PER_THREAD)?;
        let general = |code: Code| put_optional(failed, GENERAL).err().unwrap_or(code);
        non_null(operations).map_err(general)?;
        if flags != 0 || count == 0 || count > MAX_OPERATIONS {
            return refuse(general(Code::INVALID_VALUE), || {
                format!("count {count}, flags {flags:#x}: expected 1 to {MAX_OPERATIONS} operations, and no flags")
            });
        }
        let given = get_array::<CUmemDecompressParams>(operations, count as usize).map_err(general)?;
        let mut checked = Vec::with_capacity(given.len());
        for (index, one) in given.iter().enumerate() {
            match Operation::new(one, &stream.context) {
                Ok(operation) => checked.push(operation),
                Err(code) => {
                    put_optional(failed, index as u64)?;
                    return Err(code);
                }
            }
        }
        stream.enqueue(&[], OpPlacement::Worker, move |_| {
            let _pin = space().pin();
            let outcomes = checked.iter().enumerate().map(|(index, operation)| operation.run(index));
            // All of them run.
            outcomes.fold(Ok(()), Res::and)
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFLATE: Algorithm = Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
    const SNAPPY: Algorithm = Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY;
    const LZ4: Algorithm = Algorithm::CU_MEM_DECOMPRESS_ALGORITHM_LZ4;

    fn text() -> Vec<u8> {
        (0..40_000u32)
            .flat_map(|n| (n / 7 * n).to_le_bytes())
            .collect()
    }

    fn compressed(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
        match algorithm {
            DEFLATE => miniz_oxide::deflate::compress_to_vec(data, 6),
            SNAPPY => snap::raw::Encoder::new().compress_vec(data).unwrap(),
            _ => lz4_flex::block::compress(data),
        }
    }

    #[test]
    fn data_survive_and_damaged_data_are_errors() {
        let data = text();
        for algorithm in [DEFLATE, SNAPPY, LZ4] {
            let small = compressed(algorithm, &data);
            let mut out = vec![0u8; data.len() + 100];
            assert_eq!(decompress(algorithm, &small, &mut out), Ok(data.len()));
            assert_eq!(out[..data.len()], data[..]);
            let mut exact = vec![0u8; data.len()];
            assert_eq!(decompress(algorithm, &small, &mut exact), Ok(data.len()));
            assert!(decompress(algorithm, &small, &mut exact[..data.len() - 1]).is_err());
            assert!(decompress(algorithm, &small[..small.len() / 2], &mut out).is_err());
            assert!(decompress(algorithm, &[], &mut out).is_err());
            // Any bytes: an error or a result within the destination.
            let mut state = 1u64;
            for len in 0..2000 {
                let noise: Vec<u8> = (0..len % 97)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        (state >> 56) as u8
                    })
                    .collect();
                if let Ok(n) = decompress(algorithm, &noise, &mut out[..64]) {
                    assert!(n <= 64);
                }
                let mut damaged = small.clone();
                let at = len * 7919 % damaged.len();
                damaged[at] ^= 1 << (len % 8);
                if let Ok(n) = decompress(algorithm, &damaged, &mut out) {
                    assert!(n <= out.len());
                }
            }
        }
    }

    #[test]
    fn a_small_source_with_a_large_length_allocates_nothing() {
        // Snappy states the length of its output first: here 4 GiB.
        let bomb = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
        assert!(decompress(SNAPPY, &bomb, &mut [0; 16]).is_err());
    }
}

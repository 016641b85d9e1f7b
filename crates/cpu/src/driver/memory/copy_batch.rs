//! Copies with attributes, single and batched: `cuMemcpyBatchAsync`, `cuMemcpy3DBatchAsync` and related functions.
//!
//! All copies of a batch are checked before the first one is enqueued. CUDA promises no order among them; here they run
//! in the given order.

use std::sync::Arc;

use cupyrite_sys::driver::{
    CUDA_MEMCPY3D_BATCH_OP, CUmemcpy3DOperand, CUmemcpy3DOperand_st_op_array,
    CUmemcpy3DOperand_st_op_ptr, CUmemcpy3DOperandType, CUmemcpyAttributes, CUmemcpyFlags,
    CUmemcpySrcAccessOrder as Order,
};

use crate::driver::array;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::memory::copy_job::{ARRAY, CopyDescription, CopyOperand, Job, UNIFIED};
use crate::driver::memory::copy_range::{CopyMode, ExpectedMemory, perform};
use crate::driver::memory::managed::{batch_stream, entry_indices};
use crate::driver::memory::rights;
use crate::driver::stream::Stream;
use crate::driver::stream::resolve;

const ANY: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Any, ExpectedMemory::Any);

/// The copy mode for an order of access to the source.
fn mode(order: Order, flags: u32) -> Res<CopyMode> {
    /// A hint, without effect here.
    const HINT: u32 = CUmemcpyFlags::CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.0;
    if flags & !HINT != 0 {
        return Err(Code::INVALID_VALUE);
    }
    match order {
        // At the copy's position in the stream, or at any time.
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM | Order::CU_MEMCPY_SRC_ACCESS_ORDER_ANY => {
            Ok(CopyMode::Async)
        }
        // Before the call returns.
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL => Ok(CopyMode::Sync),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn mode_of(attributes: &CUmemcpyAttributes) -> Res<CopyMode> {
    mode(attributes.srcAccessOrder, attributes.flags)
}

/// Enqueues checked copies.
fn enter(jobs: Vec<(Job, CopyMode)>, stream: &Arc<Stream>) -> Res {
    let uses = jobs.iter().flat_map(|(job, _)| job.uses());
    rights::check_copy(stream.context.device, uses)?;
    for (job, mode) in jobs {
        if !job.is_empty() {
            let (pageable, bytes) = (job.is_pageable()?, job.bytes());
            perform(stream, mode, pageable, bytes, move || job.run())?;
        }
    }
    Ok(())
}

/// Runs `check` for each index below `count`; on failure passes the index to `failed`.
fn collect(
    count: usize,
    failed: u64,
    check: impl Fn(usize) -> Res<(Job, CopyMode)>,
) -> Res<Vec<(Job, CopyMode)>> {
    let mut jobs = Vec::with_capacity(count);
    for i in 0..count {
        match check(i) {
            Ok(job) => jobs.push(job),
            Err(code) => {
                put_optional(failed, i as u64)?;
                return Err(code);
            }
        }
    }
    Ok(jobs)
}

/// Maximum number of copies in a batch; a larger count is treated as an error.
const MAX_COPIES: u64 = 1 << 24;

fn size(count: u64) -> Res<usize> {
    if count == 0 || count > MAX_COPIES {
        return Err(Code::INVALID_VALUE);
    }
    Ok(count as usize)
}

/// No particular copy failed.
const NONE: u64 = u64::MAX;

/// Addresses of the destination, source and size lists, and their length.
struct Lists(u64, u64, u64, u64);

fn copy_batch(
    lists: &Lists,
    attributes: u64,
    indices: u64,
    entries: u64,
    failed: u64,
    stream: u64,
    per_thread: bool,
) -> Res {
    put_optional(failed, NONE)?;
    let stream = batch_stream(stream, per_thread)?;
    let &Lists(to, from, sizes, count) = lists;
    for list in [to, from, sizes, attributes] {
        non_null(list)?;
    }
    let count = size(count)?;
    let to = get_array::<u64>(to, count)?;
    let from = get_array::<u64>(from, count)?;
    let sizes = get_array::<u64>(sizes, count)?;
    let entry_indices = entry_indices(indices, entries, count)?;
    let attributes = get_array::<CUmemcpyAttributes>(attributes, entries as usize)?;
    let jobs = collect(count, failed, |i| {
        let job = Job::linear(to[i], from[i], sizes[i], ANY)?;
        Ok((job, mode_of(&attributes[entry_indices[i]])?))
    })?;
    enter(jobs, &stream)
}

/// One side of an operation of a three-dimensional batch.
enum BatchOperand {
    Pointer(CUmemcpy3DOperand_st_op_ptr),
    Array(CUmemcpy3DOperand_st_op_array),
}

impl BatchOperand {
    fn new(given: &CUmemcpy3DOperand) -> Res<BatchOperand> {
        match given.r#type {
            CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER => {
                // SAFETY: a struct of integers, for which any bits are valid.
                Ok(BatchOperand::Pointer(unsafe { given.op.ptr }))
            }
            CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY => {
                // SAFETY: a struct of integers and a handle, for which any bits are valid.
                Ok(BatchOperand::Array(unsafe { given.op.array }))
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Bytes per element of the operand's array, if it names one.
    fn element(&self) -> Res<Option<u64>> {
        let BatchOperand::Array(given) = self else {
            return Ok(None);
        };
        let array = array::find(given.array.addr() as u64).ok_or(Code::INVALID_VALUE)?;
        let format = array.storage().format();
        // Block-compressed arrays cannot be copied at element offsets.
        if format.block() > 1 {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(Some(u64::from(format.element_bytes())))
    }

    /// The side of a copy in bytes. The operand's lengths are in elements of `bytes` bytes.
    fn side(&self, bytes: u64) -> Res<CopyOperand> {
        let scaled = |n: usize| (n as u64).checked_mul(bytes).ok_or(Code::INVALID_VALUE);
        Ok(match self {
            BatchOperand::Pointer(given) => CopyOperand {
                kind: UNIFIED,
                device: given.ptr,
                pitch: scaled(given.rowLength)?,
                height: given.layerHeight as u64,
                ..CopyOperand::default()
            },
            BatchOperand::Array(given) => CopyOperand {
                kind: ARRAY,
                array: given.array.addr() as u64,
                x: scaled(given.offset.x)?,
                y: given.offset.y as u64,
                z: given.offset.z as u64,
                ..CopyOperand::default()
            },
        })
    }
}

/// The copy described by one operation of a three-dimensional batch.
fn box_of(operation: &CUDA_MEMCPY3D_BATCH_OP) -> Res<(Job, CopyMode)> {
    let source = BatchOperand::new(&operation.src)?;
    let source_element = source.element()?;
    let target = BatchOperand::new(&operation.dst)?;
    let bytes = match (source_element, target.element()?) {
        (Some(a), Some(b)) if a != b => return Err(Code::INVALID_VALUE),
        (Some(a), _) | (None, Some(a)) => a,
        // Between addresses, an element is one byte.
        (None, None) => 1,
    };
    let (from, to) = (source.side(bytes)?, target.side(bytes)?);
    let extent = &operation.extent;
    let width = (extent.width as u64)
        .checked_mul(bytes)
        .ok_or(Code::INVALID_VALUE)?;
    let copy = CopyDescription {
        to,
        from,
        extent: [width, extent.height as u64, extent.depth as u64],
    };
    let mode = mode(operation.srcAccessOrder, operation.flags)?;
    Ok((Job::from_3d(&copy, false)?, mode))
}

fn box_batch(
    count: u64,
    operations: u64,
    failed: u64,
    flags: u64,
    stream: u64,
    per_thread: bool,
) -> Res {
    put_optional(failed, NONE)?;
    let stream = batch_stream(stream, per_thread)?;
    non_null(operations)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let operations = get_array::<CUDA_MEMCPY3D_BATCH_OP>(operations, size(count)?)?;
    let jobs = collect(operations.len(), failed, |i| box_of(&operations[i]))?;
    enter(jobs, &stream)
}

driver_entry_points! {
    fn batch "cuMemcpyBatchAsync_v2" | "cuMemcpyBatchAsync_v2_ptsz"
        (to: u64, from: u64, sizes: u64, count: u64, attributes: u64, indices: u64, entries: u64, stream: u64) {
        copy_batch(&Lists(to, from, sizes, count), attributes, indices, entries, 0, stream, PER_THREAD)
    }
    fn batch_v1 "cuMemcpyBatchAsync" | "cuMemcpyBatchAsync_ptsz"
        (to: u64, from: u64, sizes: u64, count: u64, attributes: u64, indices: u64, entries: u64, failed: u64,
         stream: u64) {
        copy_batch(&Lists(to, from, sizes, count), attributes, indices, entries, failed, stream, PER_THREAD)
    }
    fn batch_3d "cuMemcpy3DBatchAsync_v2" | "cuMemcpy3DBatchAsync_v2_ptsz"
        (count: u64, operations: u64, flags: u64, stream: u64) {
        box_batch(count, operations, 0, flags, stream, PER_THREAD)
    }
    fn batch_3d_v1 "cuMemcpy3DBatchAsync" | "cuMemcpy3DBatchAsync_ptsz"
        (count: u64, operations: u64, failed: u64, flags: u64, stream: u64) {
        box_batch(count, operations, failed, flags, stream, PER_THREAD)
    }
    fn copy_with_attributes "cuMemcpyWithAttributesAsync" | "cuMemcpyWithAttributesAsync_ptsz"
        (to: u64, from: u64, len: u64, attributes: u64, stream: u64) {
        let stream = resolve::resolve(stream, PER_THREAD)?;
        non_null(attributes)?;
        let mode = mode_of(&get(attributes)?)?;
        enter(vec![(Job::linear(to, from, len, ANY)?, mode)], &stream)
    }
    fn copy_3d_with_attributes "cuMemcpy3DWithAttributesAsync" | "cuMemcpy3DWithAttributesAsync_ptsz"
        (operation: u64, flags: u64, stream: u64) {
        let stream = resolve::resolve(stream, PER_THREAD)?;
        non_null(operation)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        enter(vec![box_of(&get(operation)?)?], &stream)
    }
}

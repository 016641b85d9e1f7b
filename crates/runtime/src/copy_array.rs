//! Two-dimensional copies to and from arrays (`cudaMemcpy2DToArray` and related functions), and the older copies that
//! count bytes and continue in the next row (`cudaMemcpyToArray`).

use std::ffi::c_void;

use cupyrite_sys::driver::{CUDA_MEMCPY2D, CUarray, CUmemorytype};

use crate::copy::{CopyDirection, Execution};
use crate::copy_nd::element_bytes;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::{array, context};

/// A position in an array: byte offset in the row, and row.
#[derive(Clone, Copy)]
struct ArrayPosition {
    array: u64,
    x: usize,
    y: usize,
}

/// One end of a copy.
#[derive(Clone, Copy)]
enum CopyEnd {
    Array(ArrayPosition),
    /// Address, pitch, and memory type.
    Memory(u64, usize, CUmemorytype),
}

/// Width in bytes, and rows.
type Size = (usize, usize);

fn plane(to: CopyEnd, from: CopyEnd, (width, height): Size, execution: Execution) -> Res {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let mut copy = CUDA_MEMCPY2D {
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    };
    match to {
        CopyEnd::Array(position) => {
            copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.dstArray = position.array as CUarray;
            (copy.dstXInBytes, copy.dstY) = (position.x, position.y);
        }
        CopyEnd::Memory(address, pitch, memory) => {
            check_pitch(pitch, width, height)?;
            copy.dstMemoryType = memory;
            copy.dstPitch = pitch;
            if memory == CUmemorytype::CU_MEMORYTYPE_HOST {
                copy.dstHost = address as *mut c_void;
            } else {
                copy.dstDevice = address;
            }
        }
    }
    match from {
        CopyEnd::Array(position) => {
            copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.srcArray = position.array as CUarray;
            (copy.srcXInBytes, copy.srcY) = (position.x, position.y);
        }
        CopyEnd::Memory(address, pitch, memory) => {
            check_pitch(pitch, width, height)?;
            copy.srcMemoryType = memory;
            copy.srcPitch = pitch;
            if memory == CUmemorytype::CU_MEMORYTYPE_HOST {
                copy.srcHost = address as *const c_void;
            } else {
                copy.srcDevice = address;
            }
        }
    }
    // The runtime accepts any pitch; the driver's plain function may refuse pitches other than its own.
    execution.run(
        || cu!(cuMemcpy2DUnaligned(&copy)),
        |stream| cu!(cuMemcpy2DAsync(&copy, stream)),
    )
}

/// A row must fit its pitch; the pitch of a single row is ignored.
fn check_pitch(pitch: usize, width: usize, height: usize) -> Res {
    if width > pitch && (height > 1 || pitch != 0) {
        Err(Error::INVALID_PITCH_VALUE)
    } else {
        Ok(())
    }
}

/// The memory type of the source of a copy to an array.
fn source(kind: u32) -> Res<CUmemorytype> {
    match CopyDirection::new(kind)? {
        CopyDirection::HostToHost | CopyDirection::DeviceToHost => {
            Err(Error::INVALID_MEMCPY_DIRECTION)
        }
        kind => Ok(kind.source()),
    }
}

/// The memory type of the destination of a copy from an array.
fn target(kind: u32) -> Res<CUmemorytype> {
    match CopyDirection::new(kind)? {
        CopyDirection::HostToHost | CopyDirection::HostToDevice => {
            Err(Error::INVALID_MEMCPY_DIRECTION)
        }
        kind => Ok(kind.target()),
    }
}

/// Copies between arrays are device-to-device.
fn internal(kind: u32) -> Res {
    match CopyDirection::new(kind)? {
        CopyDirection::DeviceToDevice | CopyDirection::Default => Ok(()),
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

/// Bytes per row of an array, after checking that `count` bytes from `position` on lie in it.
fn row_bytes(position: ArrayPosition, count: usize) -> Res<usize> {
    let descriptor = array::describe(position.array)?;
    let row = descriptor.Width * element_bytes(position.array as CUarray)?;
    let all = row.checked_mul(descriptor.Height.max(1));
    let end = row
        .checked_mul(position.y)
        .and_then(|n| n.checked_add(position.x)?.checked_add(count));
    match (end, all) {
        (Some(end), Some(all)) if position.x < row && end <= all => Ok(row),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Iterates over bytes in rows of `row` bytes; without a row length, the bytes are contiguous.
#[derive(Clone, Copy)]
struct Walk {
    end: CopyEnd,
    row: Option<usize>,
}

impl Walk {
    /// Bytes until the end of the row.
    fn left(&self) -> usize {
        match (self.end, self.row) {
            (CopyEnd::Array(position), Some(row)) => row.saturating_sub(position.x),
            _ => usize::MAX,
        }
    }

    fn begins_a_row(&self) -> bool {
        match self.end {
            CopyEnd::Array(position) => position.x == 0,
            CopyEnd::Memory(..) => true,
        }
    }

    fn advance(&mut self, bytes: usize) -> Res {
        match &mut self.end {
            CopyEnd::Memory(address, ..) => {
                *address = address
                    .checked_add(bytes as u64)
                    .ok_or(Error::INVALID_VALUE)?;
            }
            CopyEnd::Array(position) => {
                let row = self.row.unwrap_or(usize::MAX);
                let at = position.x.checked_add(bytes).ok_or(Error::INVALID_VALUE)?;
                position.y = position
                    .y
                    .checked_add(at / row)
                    .ok_or(Error::INVALID_VALUE)?;
                position.x = at % row;
            }
        }
        Ok(())
    }

    /// The current position as the start of several rows of `width` bytes.
    fn with_pitch(&self, width: usize) -> CopyEnd {
        match self.end {
            CopyEnd::Memory(address, _, memory) => CopyEnd::Memory(address, width, memory),
            array => array,
        }
    }
}

fn walk(end: CopyEnd, count: usize) -> Res<Walk> {
    let row = match end {
        CopyEnd::Array(position) => Some(row_bytes(position, count)?),
        CopyEnd::Memory(..) => None,
    };
    Ok(Walk { end, row })
}

/// Copies `count` bytes, continuing in the next row of an array at the end of a row.
fn run_on(to: CopyEnd, from: CopyEnd, mut count: usize, execution: Execution) -> Res {
    if count == 0 {
        return Ok(());
    }
    let (mut to, mut from) = (walk(to, count)?, walk(from, count)?);
    while count > 0 {
        let least = to.left().min(from.left());
        if least == 0 {
            return Err(Error::INVALID_VALUE);
        }
        // Whole rows are copied at once if both sides have rows of the same length or none.
        let rows = count / least;
        let size = if rows > 1
            && to.begins_a_row()
            && from.begins_a_row()
            && [to.row, from.row].iter().flatten().all(|&row| row == least)
        {
            (least, rows)
        } else {
            (least.min(count), 1)
        };
        plane(
            to.with_pitch(size.0),
            from.with_pitch(size.0),
            size,
            execution,
        )?;
        let bytes = size.0 * size.1;
        to.advance(bytes)?;
        from.advance(bytes)?;
        count -= bytes;
    }
    Ok(())
}

const fn position(array: u64, x: usize, y: usize) -> CopyEnd {
    CopyEnd::Array(ArrayPosition { array, x, y })
}

runtime_entry_points! {
    fn to_array_2d "cudaMemcpy2DToArray" | "cudaMemcpy2DToArray_ptds"
        (to: u64, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32) {
        let memory = source(kind)?;
        context::current()?;
        plane(position(to, x, y), CopyEnd::Memory(from, pitch, memory), (width, height), Execution::sync::<PER_THREAD>())
    }
    fn to_array_2d_async "cudaMemcpy2DToArrayAsync" | "cudaMemcpy2DToArrayAsync_ptsz"
        (to: u64, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32, stream: u64) {
        let memory = source(kind)?;
        context::current()?;
        let execution = Execution::queued::<PER_THREAD>(stream);
        plane(position(to, x, y), CopyEnd::Memory(from, pitch, memory), (width, height), execution)
    }
    fn from_array_2d "cudaMemcpy2DFromArray" | "cudaMemcpy2DFromArray_ptds"
        (to: u64, pitch: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        let memory = target(kind)?;
        context::current()?;
        plane(CopyEnd::Memory(to, pitch, memory), position(from, x, y), (width, height), Execution::sync::<PER_THREAD>())
    }
    fn from_array_2d_async "cudaMemcpy2DFromArrayAsync" | "cudaMemcpy2DFromArrayAsync_ptsz"
        (to: u64, pitch: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32, stream: u64) {
        let memory = target(kind)?;
        context::current()?;
        let execution = Execution::queued::<PER_THREAD>(stream);
        plane(CopyEnd::Memory(to, pitch, memory), position(from, x, y), (width, height), execution)
    }
    fn array_to_array_2d "cudaMemcpy2DArrayToArray" | "cudaMemcpy2DArrayToArray_ptds"
        (to: u64, to_x: usize, to_y: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        internal(kind)?;
        context::current()?;
        plane(position(to, to_x, to_y), position(from, x, y), (width, height), Execution::sync::<PER_THREAD>())
    }
    fn to_array "cudaMemcpyToArray" | "cudaMemcpyToArray_ptds"
        (to: u64, x: usize, y: usize, from: u64, count: usize, kind: u32) {
        let memory = source(kind)?;
        context::current()?;
        run_on(position(to, x, y), CopyEnd::Memory(from, 0, memory), count, Execution::sync::<PER_THREAD>())
    }
    fn to_array_async "cudaMemcpyToArrayAsync" | "cudaMemcpyToArrayAsync_ptsz"
        (to: u64, x: usize, y: usize, from: u64, count: usize, kind: u32, stream: u64) {
        let memory = source(kind)?;
        context::current()?;
        let execution = Execution::queued::<PER_THREAD>(stream);
        run_on(position(to, x, y), CopyEnd::Memory(from, 0, memory), count, execution)
    }
    fn from_array "cudaMemcpyFromArray" | "cudaMemcpyFromArray_ptds"
        (to: u64, from: u64, x: usize, y: usize, count: usize, kind: u32) {
        let memory = target(kind)?;
        context::current()?;
        run_on(CopyEnd::Memory(to, 0, memory), position(from, x, y), count, Execution::sync::<PER_THREAD>())
    }
    fn from_array_async "cudaMemcpyFromArrayAsync" | "cudaMemcpyFromArrayAsync_ptsz"
        (to: u64, from: u64, x: usize, y: usize, count: usize, kind: u32, stream: u64) {
        let memory = target(kind)?;
        context::current()?;
        let execution = Execution::queued::<PER_THREAD>(stream);
        run_on(CopyEnd::Memory(to, 0, memory), position(from, x, y), count, execution)
    }
    fn array_to_array "cudaMemcpyArrayToArray" | "cudaMemcpyArrayToArray_ptds"
        (to: u64, to_x: usize, to_y: usize, from: u64, x: usize, y: usize, count: usize, kind: u32) {
        internal(kind)?;
        context::current()?;
        run_on(position(to, to_x, to_y), position(from, x, y), count, Execution::sync::<PER_THREAD>())
    }
}

//! Copies to and from arrays in two dimensions (`cudaMemcpy2DToArray` and its relatives), and the older ones that count
//! bytes and go on in the next row where one ends (`cudaMemcpyToArray`).

use std::ffi::c_void;

use cupyrite_sys::driver::{CUDA_MEMCPY2D, CUarray, CUmemorytype};

use crate::copy::{Kind, Order};
use crate::copy_nd::element_bytes;
use crate::entry::{cu, entries};
use crate::errors::Error;
use crate::{Res, array, context};

/// A place in an array: bytes into the row, and the row.
#[derive(Clone, Copy)]
struct Spot {
    array: u64,
    x: usize,
    y: usize,
}

/// One end of a copy.
#[derive(Clone, Copy)]
enum End {
    Array(Spot),
    /// Address, pitch, and what the kind of the copy says it is.
    Memory(u64, usize, CUmemorytype),
}

/// Width in bytes and rows.
type Size = (usize, usize);

fn plane(to: End, from: End, (width, height): Size, order: Order) -> Res {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let mut copy = CUDA_MEMCPY2D {
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    };
    match to {
        End::Array(spot) => {
            copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.dstArray = spot.array as CUarray;
            (copy.dstXInBytes, copy.dstY) = (spot.x, spot.y);
        }
        End::Memory(address, pitch, memory) => {
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
        End::Array(spot) => {
            copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.srcArray = spot.array as CUarray;
            (copy.srcXInBytes, copy.srcY) = (spot.x, spot.y);
        }
        End::Memory(address, pitch, memory) => {
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
    // Any pitch is good for the runtime; the driver's plain form may refuse those it did not choose itself.
    order.run(
        || cu!(cuMemcpy2DUnaligned(&copy)),
        |stream| cu!(cuMemcpy2DAsync(&copy, stream)),
    )
}

/// Rows must fit their pitch, which says nothing where there is one row.
fn check_pitch(pitch: usize, width: usize, height: usize) -> Res {
    if width > pitch && (height > 1 || pitch != 0) {
        Err(Error::INVALID_PITCH_VALUE)
    } else {
        Ok(())
    }
}

/// What memory a copy to an array comes from.
fn source(kind: u32) -> Res<CUmemorytype> {
    match Kind::new(kind)? {
        Kind::HostToHost | Kind::DeviceToHost => Err(Error::INVALID_MEMCPY_DIRECTION),
        kind => Ok(kind.source()),
    }
}

/// What memory a copy from an array goes to.
fn target(kind: u32) -> Res<CUmemorytype> {
    match Kind::new(kind)? {
        Kind::HostToHost | Kind::HostToDevice => Err(Error::INVALID_MEMCPY_DIRECTION),
        kind => Ok(kind.target()),
    }
}

/// Copies between arrays stay on the device.
fn internal(kind: u32) -> Res {
    match Kind::new(kind)? {
        Kind::DeviceToDevice | Kind::Default => Ok(()),
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

/// Bytes of one row of an array, once `count` bytes from a place on are known to lie in it.
fn row_bytes(spot: Spot, count: usize) -> Res<usize> {
    let descriptor = array::describe(spot.array)?;
    let row = descriptor.Width * element_bytes(spot.array as CUarray)?;
    let all = row.checked_mul(descriptor.Height.max(1));
    let end = row
        .checked_mul(spot.y)
        .and_then(|n| n.checked_add(spot.x)?.checked_add(count));
    match (end, all) {
        (Some(end), Some(all)) if spot.x < row && end <= all => Ok(row),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// How the bytes from a place on lie in rows of `row` bytes: none if they lie one after the other.
#[derive(Clone, Copy)]
struct Walk {
    end: End,
    row: Option<usize>,
}

impl Walk {
    /// Bytes until the row ends.
    fn left(&self) -> usize {
        match (self.end, self.row) {
            (End::Array(spot), Some(row)) => row.saturating_sub(spot.x),
            _ => usize::MAX,
        }
    }

    fn begins_a_row(&self) -> bool {
        match self.end {
            End::Array(spot) => spot.x == 0,
            End::Memory(..) => true,
        }
    }

    fn advance(&mut self, bytes: usize) -> Res {
        match &mut self.end {
            End::Memory(address, ..) => {
                *address = address
                    .checked_add(bytes as u64)
                    .ok_or(Error::INVALID_VALUE)?;
            }
            End::Array(spot) => {
                let row = self.row.unwrap_or(usize::MAX);
                let at = spot.x.checked_add(bytes).ok_or(Error::INVALID_VALUE)?;
                spot.y = spot.y.checked_add(at / row).ok_or(Error::INVALID_VALUE)?;
                spot.x = at % row;
            }
        }
        Ok(())
    }

    /// The end as one of several rows of `width` bytes.
    fn with_pitch(&self, width: usize) -> End {
        match self.end {
            End::Memory(address, _, memory) => End::Memory(address, width, memory),
            array => array,
        }
    }
}

fn walk(end: End, count: usize) -> Res<Walk> {
    let row = match end {
        End::Array(spot) => Some(row_bytes(spot, count)?),
        End::Memory(..) => None,
    };
    Ok(Walk { end, row })
}

/// Copies `count` bytes; where a row of an array ends, the next one goes on.
fn run_on(to: End, from: End, mut count: usize, order: Order) -> Res {
    if count == 0 {
        return Ok(());
    }
    let (mut to, mut from) = (walk(to, count)?, walk(from, count)?);
    while count > 0 {
        let least = to.left().min(from.left());
        if least == 0 {
            return Err(Error::INVALID_VALUE);
        }
        // Whole rows go at once, where both sides have rows of the same length or none.
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
        plane(to.with_pitch(size.0), from.with_pitch(size.0), size, order)?;
        let bytes = size.0 * size.1;
        to.advance(bytes)?;
        from.advance(bytes)?;
        count -= bytes;
    }
    Ok(())
}

const fn spot(array: u64, x: usize, y: usize) -> End {
    End::Array(Spot { array, x, y })
}

entries! {
    fn to_array_2d "cudaMemcpy2DToArray" | "cudaMemcpy2DToArray_ptds"
        (to: u64, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32) {
        let memory = source(kind)?;
        context::current()?;
        plane(spot(to, x, y), End::Memory(from, pitch, memory), (width, height), Order::sync::<PER_THREAD>())
    }
    fn to_array_2d_async "cudaMemcpy2DToArrayAsync" | "cudaMemcpy2DToArrayAsync_ptsz"
        (to: u64, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32, stream: u64) {
        let memory = source(kind)?;
        context::current()?;
        let order = Order::queued::<PER_THREAD>(stream);
        plane(spot(to, x, y), End::Memory(from, pitch, memory), (width, height), order)
    }
    fn from_array_2d "cudaMemcpy2DFromArray" | "cudaMemcpy2DFromArray_ptds"
        (to: u64, pitch: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        let memory = target(kind)?;
        context::current()?;
        plane(End::Memory(to, pitch, memory), spot(from, x, y), (width, height), Order::sync::<PER_THREAD>())
    }
    fn from_array_2d_async "cudaMemcpy2DFromArrayAsync" | "cudaMemcpy2DFromArrayAsync_ptsz"
        (to: u64, pitch: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32, stream: u64) {
        let memory = target(kind)?;
        context::current()?;
        let order = Order::queued::<PER_THREAD>(stream);
        plane(End::Memory(to, pitch, memory), spot(from, x, y), (width, height), order)
    }
    fn array_to_array_2d "cudaMemcpy2DArrayToArray" | "cudaMemcpy2DArrayToArray_ptds"
        (to: u64, to_x: usize, to_y: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        internal(kind)?;
        context::current()?;
        plane(spot(to, to_x, to_y), spot(from, x, y), (width, height), Order::sync::<PER_THREAD>())
    }
    fn to_array "cudaMemcpyToArray" | "cudaMemcpyToArray_ptds"
        (to: u64, x: usize, y: usize, from: u64, count: usize, kind: u32) {
        let memory = source(kind)?;
        context::current()?;
        run_on(spot(to, x, y), End::Memory(from, 0, memory), count, Order::sync::<PER_THREAD>())
    }
    fn to_array_async "cudaMemcpyToArrayAsync" | "cudaMemcpyToArrayAsync_ptsz"
        (to: u64, x: usize, y: usize, from: u64, count: usize, kind: u32, stream: u64) {
        let memory = source(kind)?;
        context::current()?;
        let order = Order::queued::<PER_THREAD>(stream);
        run_on(spot(to, x, y), End::Memory(from, 0, memory), count, order)
    }
    fn from_array "cudaMemcpyFromArray" | "cudaMemcpyFromArray_ptds"
        (to: u64, from: u64, x: usize, y: usize, count: usize, kind: u32) {
        let memory = target(kind)?;
        context::current()?;
        run_on(End::Memory(to, 0, memory), spot(from, x, y), count, Order::sync::<PER_THREAD>())
    }
    fn from_array_async "cudaMemcpyFromArrayAsync" | "cudaMemcpyFromArrayAsync_ptsz"
        (to: u64, from: u64, x: usize, y: usize, count: usize, kind: u32, stream: u64) {
        let memory = target(kind)?;
        context::current()?;
        let order = Order::queued::<PER_THREAD>(stream);
        run_on(End::Memory(to, 0, memory), spot(from, x, y), count, order)
    }
    fn array_to_array "cudaMemcpyArrayToArray" | "cudaMemcpyArrayToArray_ptds"
        (to: u64, to_x: usize, to_y: usize, from: u64, x: usize, y: usize, count: usize, kind: u32) {
        internal(kind)?;
        context::current()?;
        run_on(spot(to, to_x, to_y), spot(from, x, y), count, Order::sync::<PER_THREAD>())
    }
}

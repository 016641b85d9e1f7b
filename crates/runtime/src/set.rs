//! Memory fills.

use cupyrite_sys::runtime::{cudaExtent, cudaPitchedPtr};

use crate::context;
use crate::copy::Execution;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};

fn line(address: u64, value: u8, count: usize, execution: Execution) -> Res {
    context::current()?;
    if count == 0 {
        return Ok(());
    }
    execution.run(
        || cu!(cuMemsetD8(address, value, count)),
        |stream| cu!(cuMemsetD8Async(address, value, count, stream)),
    )
}

fn plane(
    address: u64,
    pitch: usize,
    value: u8,
    width: usize,
    height: usize,
    execution: Execution,
) -> Res {
    context::current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    execution.run(
        || cu!(cuMemsetD2D8(address, pitch, value, width, height)),
        |stream| {
            cu!(cuMemsetD2D8Async(
                address, pitch, value, width, height, stream
            ))
        },
    )
}

fn volume(to: cudaPitchedPtr, value: u8, extent: cudaExtent, execution: Execution) -> Res {
    context::current()?;
    let cudaExtent {
        width,
        height,
        depth,
    } = extent;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    let address = to.ptr as u64;
    if height > to.ysize {
        return Err(Error::INVALID_VALUE);
    }
    // Contiguous slices are filled as one plane.
    if depth == 1 || height == to.ysize {
        let rows = height.checked_mul(depth).ok_or(Error::INVALID_VALUE)?;
        return plane(address, to.pitch, value, width, rows, execution);
    }
    let slice = to.pitch.checked_mul(to.ysize).ok_or(Error::INVALID_VALUE)? as u64;
    for z in 0..depth as u64 {
        let at = slice
            .checked_mul(z)
            .and_then(|offset| address.checked_add(offset))
            .ok_or(Error::INVALID_VALUE)?;
        plane(at, to.pitch, value, width, height, execution)?;
    }
    Ok(())
}

runtime_entry_points! {
    fn memset "cudaMemset" | "cudaMemset_ptds" (address: u64, value: i32, count: usize) {
        line(address, value as u8, count, Execution::sync::<PER_THREAD>())
    }
    fn memset_async "cudaMemsetAsync" | "cudaMemsetAsync_ptsz" (address: u64, value: i32, count: usize, stream: u64) {
        line(address, value as u8, count, Execution::queued::<PER_THREAD>(stream))
    }
    fn memset_2d "cudaMemset2D" | "cudaMemset2D_ptds"
        (address: u64, pitch: usize, value: i32, width: usize, height: usize) {
        plane(address, pitch, value as u8, width, height, Execution::sync::<PER_THREAD>())
    }
    fn memset_2d_async "cudaMemset2DAsync" | "cudaMemset2DAsync_ptsz"
        (address: u64, pitch: usize, value: i32, width: usize, height: usize, stream: u64) {
        plane(address, pitch, value as u8, width, height, Execution::queued::<PER_THREAD>(stream))
    }
    fn memset_3d "cudaMemset3D" | "cudaMemset3D_ptds" (to: cudaPitchedPtr, value: i32, extent: cudaExtent) {
        volume(to, value as u8, extent, Execution::sync::<PER_THREAD>())
    }
    fn memset_3d_async "cudaMemset3DAsync" | "cudaMemset3DAsync_ptsz"
        (to: cudaPitchedPtr, value: i32, extent: cudaExtent, stream: u64) {
        volume(to, value as u8, extent, Execution::queued::<PER_THREAD>(stream))
    }
}

//! Two- and three-dimensional copies between pitched memory and arrays: `cudaMemcpy2D`, `cudaMemcpy3D` and related
//! functions.

use std::ffi::c_void;

use cupyrite_sys::driver::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray,
    CUarray_format, CUmemorytype,
};
use cupyrite_sys::runtime::{
    cudaExtent, cudaMemcpy3DParms, cudaMemcpy3DPeerParms, cudaPitchedPtr, cudaPos,
};

use crate::checked::get;
use crate::copy::{CopyDirection, Execution};
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::{context, peer};

/// Bytes per array element, the unit of positions and extents if an array takes part.
pub(crate) fn element_bytes(array: CUarray) -> Res<usize> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR::default();
    cu!(cuArray3DGetDescriptor(&mut descriptor, array))?;
    let channel = match descriptor.Format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 | CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => 1,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_HALF => 2,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_FLOAT => 4,
        // Normalised integers have one format per channel count; block-compressed formats have no single element.
        other => return normalised_bytes(other.0).ok_or(Error::INVALID_CHANNEL_DESCRIPTOR),
    };
    Ok(channel * descriptor.NumChannels as usize)
}

/// Bytes per element of `CU_AD_FORMAT_UNORM_INT8X1` to `CU_AD_FORMAT_SNORM_INT16X4`: one, two and four channels of
/// eight, then of sixteen bits.
fn normalised_bytes(format: u32) -> Option<usize> {
    let index = format.checked_sub(CUarray_format::CU_AD_FORMAT_UNORM_INT8X1.0)? as usize;
    (index < 12).then(|| [1, 2, 4, 2, 4, 8][index % 6])
}

/// One side of a copy in the driver's terms.
struct Side {
    memory: CUmemorytype,
    address: u64,
    array: CUarray,
    pitch: usize,
    rows: usize,
    x: usize,
    y: usize,
    z: usize,
}

impl Side {
    /// The side given by either `array` or `pitched`. `element` is the array's element size, 1 for memory.
    fn new(
        array: u64,
        pitched: cudaPitchedPtr,
        position: cudaPos,
        memory: CUmemorytype,
    ) -> Res<(Side, Option<usize>)> {
        let address = pitched.ptr as u64;
        if (array != 0) == (address != 0) {
            return Err(Error::INVALID_VALUE);
        }
        let element = if array == 0 {
            None
        } else {
            Some(element_bytes(array as CUarray)?)
        };
        let x = position
            .x
            .checked_mul(element.unwrap_or(1))
            .ok_or(Error::INVALID_VALUE)?;
        let side = Side {
            memory: if array == 0 {
                memory
            } else {
                CUmemorytype::CU_MEMORYTYPE_ARRAY
            },
            address,
            array: array as CUarray,
            pitch: pitched.pitch,
            rows: pitched.ysize,
            x,
            y: position.y,
            z: position.z,
        };
        Ok((side, element))
    }

    /// Checks that rows of `width` bytes lie within pitch and height. A violation by the extent alone is a pitch error;
    /// one by the position, or with a single row or slice, is a value error.
    fn check(&self, width: usize, height: usize, depth: usize) -> Res {
        if self.memory == CUmemorytype::CU_MEMORYTYPE_ARRAY {
            return Ok(());
        }
        if ((height > 1 || depth > 1) && width > self.pitch) || (depth > 1 && height > self.rows) {
            return Err(Error::INVALID_PITCH_VALUE);
        }
        let beyond = |start: usize, size: usize, end: usize| {
            end != 0 && start.checked_add(size).is_none_or(|last| last > end)
        };
        if beyond(self.x, width, self.pitch) || beyond(self.y, height, self.rows) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(())
    }

    fn host(&self) -> *mut c_void {
        if self.memory == CUmemorytype::CU_MEMORYTYPE_HOST {
            self.address as *mut c_void
        } else {
            std::ptr::null_mut()
        }
    }

    fn device(&self) -> u64 {
        if self.memory == CUmemorytype::CU_MEMORYTYPE_HOST {
            0
        } else {
            self.address
        }
    }
}

/// Two sides and an extent with a width in bytes.
struct Job {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
    depth: usize,
}

impl Job {
    fn new(from: (Side, Option<usize>), to: (Side, Option<usize>), extent: cudaExtent) -> Res<Job> {
        let element = match (from.1, to.1) {
            (Some(a), Some(b)) if a != b => return Err(Error::INVALID_VALUE),
            (a, b) => a.or(b).unwrap_or(1),
        };
        let width = extent
            .width
            .checked_mul(element)
            .ok_or(Error::INVALID_VALUE)?;
        from.0.check(width, extent.height, extent.depth)?;
        to.0.check(width, extent.height, extent.depth)?;
        Ok(Job {
            from: from.0,
            to: to.0,
            width,
            height: extent.height,
            depth: extent.depth,
        })
    }

    fn in_one_context(&self) -> CUDA_MEMCPY3D {
        CUDA_MEMCPY3D {
            srcXInBytes: self.from.x,
            srcY: self.from.y,
            srcZ: self.from.z,
            srcMemoryType: self.from.memory,
            srcHost: self.from.host(),
            srcDevice: self.from.device(),
            srcArray: self.from.array,
            srcPitch: self.from.pitch,
            srcHeight: self.from.rows,
            dstXInBytes: self.to.x,
            dstY: self.to.y,
            dstZ: self.to.z,
            dstMemoryType: self.to.memory,
            dstHost: self.to.host(),
            dstDevice: self.to.device(),
            dstArray: self.to.array,
            dstPitch: self.to.pitch,
            dstHeight: self.to.rows,
            WidthInBytes: self.width,
            Height: self.height,
            Depth: self.depth,
            ..CUDA_MEMCPY3D::default()
        }
    }
}

/// Whether the copy is empty.
fn is_empty(extent: &cudaExtent) -> bool {
    extent.width == 0 || extent.height == 0 || extent.depth == 0
}

/// The parameters of `cudaMemcpy3D` in the driver's terms; `None` if the copy is empty. Requires a current context.
pub(crate) fn translate(parameters: &cudaMemcpy3DParms) -> Res<Option<CUDA_MEMCPY3D>> {
    let p = parameters;
    let kind = CopyDirection::new(p.kind.0)?;
    if is_empty(&p.extent) {
        return Ok(None);
    }
    let job = Job::new(
        Side::new(p.srcArray as u64, p.srcPtr, p.srcPos, kind.source())?,
        Side::new(p.dstArray as u64, p.dstPtr, p.dstPos, kind.target())?,
        p.extent,
    )?;
    Ok(Some(job.in_one_context()))
}

fn copy_3d(parameters: u64, execution: Execution) -> Res {
    let parameters = get::<cudaMemcpy3DParms>(parameters)?;
    context::current()?;
    match translate(&parameters)? {
        None => Ok(()),
        Some(copy) => execution.run(
            || cu!(cuMemcpy3D(&copy)),
            |stream| cu!(cuMemcpy3DAsync(&copy, stream)),
        ),
    }
}

fn copy_3d_peer(parameters: u64, execution: Execution) -> Res {
    let p = get::<cudaMemcpy3DPeerParms>(parameters)?;
    context::current()?;
    if is_empty(&p.extent) {
        return Ok(());
    }
    let unified = CopyDirection::Default.source();
    let job = Job::new(
        Side::new(p.srcArray as u64, p.srcPtr, p.srcPos, unified)?,
        Side::new(p.dstArray as u64, p.dstPtr, p.dstPos, unified)?,
        p.extent,
    )?;
    let (source, target) = (
        peer::context_of(p.srcDevice)?,
        peer::context_of(p.dstDevice)?,
    );
    let one = job.in_one_context();
    let copy = CUDA_MEMCPY3D_PEER {
        srcXInBytes: one.srcXInBytes,
        srcY: one.srcY,
        srcZ: one.srcZ,
        srcMemoryType: one.srcMemoryType,
        srcHost: one.srcHost,
        srcDevice: one.srcDevice,
        srcArray: one.srcArray,
        srcContext: source,
        srcPitch: one.srcPitch,
        srcHeight: one.srcHeight,
        dstXInBytes: one.dstXInBytes,
        dstY: one.dstY,
        dstZ: one.dstZ,
        dstMemoryType: one.dstMemoryType,
        dstHost: one.dstHost,
        dstDevice: one.dstDevice,
        dstArray: one.dstArray,
        dstContext: target,
        dstPitch: one.dstPitch,
        dstHeight: one.dstHeight,
        WidthInBytes: one.WidthInBytes,
        Height: one.Height,
        Depth: one.Depth,
        ..CUDA_MEMCPY3D_PEER::default()
    };
    execution.run(
        || cu!(cuMemcpy3DPeer(&copy)),
        |stream| cu!(cuMemcpy3DPeerAsync(&copy, stream)),
    )
}

/// `height` rows of `width` bytes.
#[derive(Clone, Copy)]
struct Rows {
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    width: usize,
    height: usize,
}

fn plane(rows: Rows, kind: u32, execution: Execution) -> Res {
    let kind = CopyDirection::new(kind)?;
    context::current()?;
    if rows.width == 0 || rows.height == 0 {
        return Ok(());
    }
    if rows.height > 1 && (rows.width > rows.to_pitch || rows.width > rows.from_pitch) {
        return Err(Error::INVALID_PITCH_VALUE);
    }
    // The pitch of a single row is ignored; zero is allowed.
    let pitch = |pitch: usize| match pitch {
        _ if rows.height > 1 => Ok(pitch),
        0 => Ok(rows.width),
        _ if pitch < rows.width => Err(Error::INVALID_VALUE),
        _ => Ok(rows.width),
    };
    let on_host = |memory| memory == CUmemorytype::CU_MEMORYTYPE_HOST;
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: kind.source(),
        srcHost: if on_host(kind.source()) {
            rows.from as *const c_void
        } else {
            std::ptr::null()
        },
        srcDevice: if on_host(kind.source()) { 0 } else { rows.from },
        srcPitch: pitch(rows.from_pitch)?,
        dstMemoryType: kind.target(),
        dstHost: if on_host(kind.target()) {
            rows.to as *mut c_void
        } else {
            std::ptr::null_mut()
        },
        dstDevice: if on_host(kind.target()) { 0 } else { rows.to },
        dstPitch: pitch(rows.to_pitch)?,
        WidthInBytes: rows.width,
        Height: rows.height,
        ..CUDA_MEMCPY2D::default()
    };
    // The runtime accepts any pitch; the driver's plain function may refuse pitches other than its own.
    execution.run(
        || cu!(cuMemcpy2DUnaligned(&copy)),
        |stream| cu!(cuMemcpy2DAsync(&copy, stream)),
    )
}

runtime_entry_points! {
    fn memcpy_2d "cudaMemcpy2D" | "cudaMemcpy2D_ptds"
        (to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32) {
        let rows = Rows { to, to_pitch, from, from_pitch, width, height };
        plane(rows, kind, Execution::sync::<PER_THREAD>())
    }
    fn memcpy_2d_async "cudaMemcpy2DAsync" | "cudaMemcpy2DAsync_ptsz"
        (to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32, stream: u64) {
        let rows = Rows { to, to_pitch, from, from_pitch, width, height };
        plane(rows, kind, Execution::queued::<PER_THREAD>(stream))
    }
    fn memcpy_3d "cudaMemcpy3D" | "cudaMemcpy3D_ptds" (parameters: u64) {
        copy_3d(parameters, Execution::sync::<PER_THREAD>())
    }
    fn memcpy_3d_async "cudaMemcpy3DAsync" | "cudaMemcpy3DAsync_ptsz" (parameters: u64, stream: u64) {
        copy_3d(parameters, Execution::queued::<PER_THREAD>(stream))
    }
    fn memcpy_3d_peer "cudaMemcpy3DPeer" | "cudaMemcpy3DPeer_ptds" (parameters: u64) {
        copy_3d_peer(parameters, Execution::sync::<PER_THREAD>())
    }
    fn memcpy_3d_peer_async "cudaMemcpy3DPeerAsync" | "cudaMemcpy3DPeerAsync_ptsz" (parameters: u64, stream: u64) {
        copy_3d_peer(parameters, Execution::queued::<PER_THREAD>(stream))
    }
}

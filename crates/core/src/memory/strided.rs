//! Copies between arrays with different strides.

use cupyrite_sys::driver::{CUDA_MEMCPY2D_st, CUdeviceptr, CUmemorytype};

use crate::array::layout::StridedLayout;
use crate::error::{Error, Result, driver};
use crate::memory::copy::{CopyOptions, copy_async};
use crate::stream::Stream;

/// One side of [`copy_strided`].
#[derive(Debug, Clone, Copy)]
pub struct StridedMemory<'a> {
    /// The address that the layout counts from.
    pub base: CUdeviceptr,
    /// The layout of the elements.
    pub layout: &'a StridedLayout,
    /// Whether it is host memory that the driver may not know.
    pub on_host: bool,
}

/// The largest row pitch that the driver accepts (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all devices so far).
const MAX_PITCH: i64 = i32::MAX as i64;

/// Two layouts simplified for 2D copies: rows of `width` bytes, a number of rows per call, and loops around the calls.
#[derive(Debug, PartialEq, Eq)]
struct CopyPlan {
    width: usize,
    /// The number of rows per call, and their pitches: destination, source.
    rows: (i64, i64, i64),
    /// The same for the loops around the calls, outermost first.
    loops: Vec<(i64, i64, i64)>,
    /// Byte offsets of the first elements: destination, source.
    start: (i64, i64),
}

impl CopyPlan {
    /// Both layouts have the same shape and element size, and at least one element.
    fn new(destination: &StridedLayout, source: &StridedLayout) -> CopyPlan {
        let item = destination.item_size() as i64;
        let mut start = (destination.offset_in_bytes(), source.offset_in_bytes());
        let mut axes: Vec<(i64, i64, i64)> = destination
            .shape()
            .iter()
            .zip(destination.strides().iter().zip(source.strides()))
            .filter(|&(&extent, _)| extent != 1)
            .map(|(&extent, (&to, &from))| (extent, to * item, from * item))
            .collect();
        for (extent, to, from) in &mut axes {
            if *to < 0 && *from < 0 {
                // Negative strides on both sides: start from the other end.
                start.0 += (*extent - 1) * *to;
                start.1 += (*extent - 1) * *from;
                (*to, *from) = (-*to, -*from);
            }
        }
        axes.sort_by_key(|&(_, to, from)| std::cmp::Reverse((to.abs(), from.abs())));
        let mut merged: Vec<(i64, i64, i64)> = Vec::with_capacity(axes.len());
        for (extent, to, from) in axes {
            match merged.last_mut() {
                Some(outer)
                    if to.checked_mul(extent) == Some(outer.1)
                        && from.checked_mul(extent) == Some(outer.2) =>
                {
                    *outer = (outer.0 * extent, to, from);
                }
                _ => merged.push((extent, to, from)),
            }
        }
        let mut width = item;
        if let Some(&(extent, to, from)) = merged.last()
            && (to, from) == (item, item)
        {
            width *= extent;
            merged.pop();
        }
        let pitch = |stride: i64| stride >= width && stride <= MAX_PITCH;
        let best = merged
            .iter()
            .enumerate()
            .filter(|(_, (_, to, from))| pitch(*to) && pitch(*from))
            .max_by_key(|(_, (extent, ..))| *extent)
            .map(|(axis, _)| axis);
        let rows = best.map_or((1, width, width), |axis| merged.remove(axis));
        CopyPlan {
            width: width.unsigned_abs() as usize,
            rows,
            loops: merged,
            start,
        }
    }
}

/// Queues a copy of all elements of an array to another one of the same shape and element size.
///
/// Takes one driver call if the layouts reduce to rows of one pitch, else one for each group of rows (`cuMemcpyAsync`,
/// `cuMemcpy2DAsync`).
///
/// # Errors
///
/// [`Error::InvalidArgument`] if shapes or element sizes differ, or elements of the destination share memory;
/// otherwise the driver's error.
///
/// # Safety
///
/// Until the copy is done, all elements are readable at the source and writable at the destination, and only work
/// ordered with the stream uses them. The two do not overlap.
pub unsafe fn copy_strided(
    destination: StridedMemory<'_>,
    source: StridedMemory<'_>,
    stream: &Stream,
) -> Result<()> {
    let (to, from) = (destination.layout, source.layout);
    let argument_error =
        |parameter: &str, problem: String| Error::argument("copy_strided", parameter, problem);
    if to.shape() != from.shape() {
        return Err(argument_error(
            "source",
            format!(
                "has the shape {:?}; the destination has {:?}",
                from.shape(),
                to.shape()
            ),
        ));
    }
    if to.item_size() != from.item_size() {
        return Err(argument_error(
            "source",
            format!(
                "has elements of {} bytes; the destination has {}",
                from.item_size(),
                to.item_size()
            ),
        ));
    }
    if to.volume() == 0 {
        return Ok(());
    }
    if !to.is_unique() {
        return Err(argument_error(
            "destination",
            format!(
                "has elements that share memory: shape {:?}, strides {:?}",
                to.shape(),
                to.strides()
            ),
        ));
    }
    let plan = CopyPlan::new(to, from);
    let mut indices = vec![0; plan.loops.len()];
    loop {
        let (mut to, mut from) = plan.start;
        for (&index, &(_, to_stride, from_stride)) in indices.iter().zip(&plan.loops) {
            to += index * to_stride;
            from += index * from_stride;
        }
        let (to, from) = (
            destination.base.wrapping_add_signed(to),
            source.base.wrapping_add_signed(from),
        );
        if plan.rows.0 == 1 {
            // SAFETY: the caller's contract: elements of both sides.
            unsafe { copy_async(to, from, plan.width, stream, &CopyOptions::default())? };
        } else {
            // SAFETY: the caller's contract: elements of both sides.
            unsafe {
                copy_rows(
                    &plan,
                    (to, destination.on_host),
                    (from, source.on_host),
                    stream,
                )?
            };
        }
        // Advances the loop indices, the last one fastest.
        let Some(wheel) = (0..indices.len())
            .rev()
            .find(|&wheel| indices[wheel] + 1 < plan.loops[wheel].0)
        else {
            return Ok(());
        };
        indices[wheel] += 1;
        indices[wheel + 1..].fill(0);
    }
}

/// # Safety
///
/// Same as [`copy_strided`].
unsafe fn copy_rows(
    plan: &CopyPlan,
    (to, to_host): (CUdeviceptr, bool),
    (from, from_host): (CUdeviceptr, bool),
    stream: &Stream,
) -> Result<()> {
    let kind = |host| {
        if host {
            CUmemorytype::CU_MEMORYTYPE_HOST
        } else {
            CUmemorytype::CU_MEMORYTYPE_UNIFIED
        }
    };
    let (height, to_pitch, from_pitch) = plan.rows;
    let copy = CUDA_MEMCPY2D_st {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: kind(from_host),
        srcHost: std::ptr::with_exposed_provenance(from as usize),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        srcPitch: from_pitch.unsigned_abs() as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: kind(to_host),
        dstHost: std::ptr::with_exposed_provenance_mut(to as usize),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        dstPitch: to_pitch.unsigned_abs() as usize,
        WidthInBytes: plan.width,
        Height: height.unsigned_abs() as usize,
    };
    stream.queue_copy(|| {
        // SAFETY: the caller's contract for the memory; the structure is read before the call returns.
        unsafe { driver!(cuMemcpy2DAsync(&raw const copy, stream.handle())) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[i64], strides: Option<&[i64]>) -> StridedLayout {
        StridedLayout::new(shape, strides, 4).unwrap()
    }

    #[test]
    fn plans_minimise_calls() {
        let dense = layout(&[2, 3, 4], None);
        let whole = CopyPlan::new(&dense, &dense);
        assert_eq!((whole.width, whole.rows.0, whole.loops.len()), (96, 1, 0));
        // Rows of a larger array.
        let rows = CopyPlan::new(&dense, &layout(&[2, 3, 4], Some(&[30, 10, 1])));
        assert_eq!(
            (rows.width, rows.rows, rows.loops.len()),
            (16, (6, 16, 40), 0)
        );
        // Backwards on both sides.
        let back = layout(&[2, 3, 4], Some(&[-12, -4, -1]));
        let plan = CopyPlan::new(&back, &back);
        assert_eq!(
            (plan.width, plan.start, plan.loops.len()),
            (96, (-92, -92), 0)
        );
        // A transposition: single elements, in lots.
        let plan = CopyPlan::new(&layout(&[30, 40], None), &layout(&[30, 40], Some(&[1, 30])));
        assert_eq!(
            (plan.width, plan.rows, &plan.loops[..]),
            (4, (40, 4, 120), &[(30, 160, 4)][..])
        );
        // A row that is repeated has no pitch.
        let plan = CopyPlan::new(&layout(&[5, 4], None), &layout(&[5, 4], Some(&[0, 1])));
        assert_eq!(
            (plan.width, plan.rows.0, &plan.loops[..]),
            (16, 1, &[(5, 16, 0)][..])
        );
    }
}

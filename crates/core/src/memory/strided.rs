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
    /// Where the elements are.
    pub layout: &'a StridedLayout,
    /// Whether it is memory of the host that the driver need not know.
    pub on_host: bool,
}

/// The driver takes rows that are at most this far apart (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all devices so far).
const MAX_PITCH: i64 = i32::MAX as i64;

/// What is left of two layouts: rows of `width` bytes, `rows` of them at a time, and an odometer around that.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    width: usize,
    /// How many rows a call copies, and how far apart they are: destination, source.
    rows: (i64, i64, i64),
    /// The same for the loops around the calls.
    loops: Vec<(i64, i64, i64)>,
    /// Where to begin, in bytes behind the base addresses.
    start: (i64, i64),
}

impl Plan {
    /// Both layouts have the same shape, element size, and elements.
    fn of(destination: &StridedLayout, source: &StridedLayout) -> Plan {
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
                // Backwards on both sides is forwards from the other end.
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
        Plan {
            width: width.unsigned_abs() as usize,
            rows,
            loops: merged,
            start,
        }
    }
}

/// Queues the copy of all elements of an array into another one of the same shape and element size.
///
/// It takes one call of the driver where the layouts leave rows of one pitch, and one for each lot of rows where they do not
/// (`cuMemcpyAsync`, `cuMemcpy2DAsync`).
///
/// # Errors
///
/// [`Error::InvalidArgument`] if shapes or element sizes differ, or if elements of the destination share memory; what the
/// driver says.
///
/// # Safety
///
/// All elements can be read at the source and written at the destination until the copy is done, nothing else uses them out
/// of the stream's order, and the two do not overlap.
pub unsafe fn copy_strided(
    destination: StridedMemory<'_>,
    source: StridedMemory<'_>,
    stream: &Stream,
) -> Result<()> {
    let (to, from) = (destination.layout, source.layout);
    let wrong =
        |parameter: &str, problem: String| Error::argument("copy_strided", parameter, problem);
    if to.shape() != from.shape() {
        return Err(wrong(
            "source",
            format!(
                "has the shape {:?}; the destination has {:?}",
                from.shape(),
                to.shape()
            ),
        ));
    }
    if to.item_size() != from.item_size() {
        return Err(wrong(
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
        return Err(wrong(
            "destination",
            format!(
                "has elements that share memory: shape {:?}, strides {:?}",
                to.shape(),
                to.strides()
            ),
        ));
    }
    let plan = Plan::of(to, from);
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
            // SAFETY: the caller's promise: elements of both sides.
            unsafe { copy_async(to, from, plan.width, stream, &CopyOptions::default())? };
        } else {
            // SAFETY: as above.
            unsafe {
                copy_rows(
                    &plan,
                    (to, destination.on_host),
                    (from, source.on_host),
                    stream,
                )?
            };
        }
        // The odometer, its last wheel running fastest.
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
/// As [`copy_strided`].
unsafe fn copy_rows(
    plan: &Plan,
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
    stream.call(|| {
        // SAFETY: the caller's promise for the memory; the structure is read before the call returns.
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
    fn plans_take_few_calls() {
        let dense = layout(&[2, 3, 4], None);
        let whole = Plan::of(&dense, &dense);
        assert_eq!((whole.width, whole.rows.0, whole.loops.len()), (96, 1, 0));
        // Rows of a larger array.
        let rows = Plan::of(&dense, &layout(&[2, 3, 4], Some(&[30, 10, 1])));
        assert_eq!(
            (rows.width, rows.rows, rows.loops.len()),
            (16, (6, 16, 40), 0)
        );
        // Backwards on both sides.
        let back = layout(&[2, 3, 4], Some(&[-12, -4, -1]));
        let plan = Plan::of(&back, &back);
        assert_eq!(
            (plan.width, plan.start, plan.loops.len()),
            (96, (-92, -92), 0)
        );
        // A transposition: single elements, in lots.
        let plan = Plan::of(&layout(&[30, 40], None), &layout(&[30, 40], Some(&[1, 30])));
        assert_eq!(
            (plan.width, plan.rows, &plan.loops[..]),
            (4, (40, 4, 120), &[(30, 160, 4)][..])
        );
        // A row that is repeated has no pitch.
        let plan = Plan::of(&layout(&[5, 4], None), &layout(&[5, 4], Some(&[0, 1])));
        assert_eq!(
            (plan.width, plan.rows.0, &plan.loops[..]),
            (16, 1, &[(5, 16, 0)][..])
        );
    }
}

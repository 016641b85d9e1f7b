//! Derived layouts: slices, permutations, reshapes, and changes of the element size.

use super::{Index, StridedLayout, argument_error, dense_strides, permutation};
use crate::error::Result;

impl StridedLayout {
    /// Indexes and slices the first axes; the others are unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for more indices than dimensions and for an index out
    /// of range.
    pub fn sliced(&self, indices: &[Index]) -> Result<StridedLayout> {
        if indices.len() > self.dims {
            return Err(argument_error(
                "slices",
                format!(
                    "has {} indices; there are {} dimensions",
                    indices.len(),
                    self.dims
                ),
            ));
        }
        let (mut shape, mut strides) =
            (Vec::with_capacity(self.dims), Vec::with_capacity(self.dims));
        let mut offset = self.offset;
        let outside = |axis: usize, extent: i64, index: Index| {
            argument_error(
                "slices",
                format!("{index:?} is outside of axis {axis} with {extent} elements"),
            )
        };
        for (axis, (&extent, &stride)) in self.shape().iter().zip(self.strides()).enumerate() {
            let index = indices.get(axis).copied().unwrap_or(Index::Range {
                start: 0,
                len: extent,
                step: 1,
            });
            let first = match index {
                Index::At(at) => {
                    let from_start = if at < 0 { at + extent } else { at };
                    if !(0..extent).contains(&from_start) {
                        return Err(outside(axis, extent, index));
                    }
                    from_start
                }
                Index::Range { start, len, step } => {
                    let last = len
                        .checked_sub(1)
                        .and_then(|steps| steps.checked_mul(step))
                        .and_then(|span| span.checked_add(start));
                    let inside = |at: Option<i64>| at.is_some_and(|at| (0..extent).contains(&at));
                    if len < 0 || len > 0 && !(inside(Some(start)) && inside(last)) {
                        return Err(outside(axis, extent, index));
                    }
                    shape.push(len);
                    // The stride of at most one element is not used, and its product may overflow.
                    strides.push(if len > 1 {
                        stride.saturating_mul(step)
                    } else {
                        stride
                    });
                    if len > 0 { start } else { 0 }
                }
            };
            offset = offset.saturating_add(first.saturating_mul(stride));
        }
        if shape.contains(&0) {
            strides.fill(0);
        }
        self.with(&shape, &strides, self.item_size, offset)
    }

    /// Permutes the axes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if `axes` is not a permutation of all axes.
    pub fn permuted(&self, axes: &[usize]) -> Result<StridedLayout> {
        permutation(axes, self.dims, "axis_order")?;
        let of = |numbers: &[i64]| axes.iter().map(|&axis| numbers[axis]).collect::<Vec<_>>();
        self.with(
            &of(self.shape()),
            &of(self.strides()),
            self.item_size,
            self.offset,
        )
    }

    /// Reshapes without a copy; one extent may be -1 and is computed from the others.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for another number of elements, and if the elements
    /// would have to be copied.
    pub fn reshaped(&self, shape: &[i64]) -> Result<StridedLayout> {
        let volume = self.volume();
        let mut shape = shape.to_vec();
        let holes = shape.iter().filter(|&&extent| extent == -1).count();
        if let Some(extent) = shape.iter().find(|&&extent| extent < -1) {
            return Err(argument_error(
                "shape",
                format!("holds {extent}; extents are 0 or more, or one -1"),
            ));
        }
        if holes > 1 {
            return Err(argument_error("shape", "has more than one -1"));
        }
        let known = shape
            .iter()
            .filter(|&&extent| extent != -1)
            .try_fold(1i64, |all, &extent| all.checked_mul(extent));
        let fits = known.is_some_and(|known| {
            if holes == 0 {
                known == volume
            } else {
                known != 0 && volume % known == 0
            }
        });
        let Some(known) = known.filter(|_| fits) else {
            return Err(argument_error(
                "shape",
                format!("{shape:?} does not have {volume} elements"),
            ));
        };
        if let Some(hole) = shape.iter_mut().find(|extent| **extent == -1) {
            *hole = volume / known;
        }
        let mut strides = vec![0; shape.len()];
        if volume == 0 {
            dense_strides(&shape, 0..shape.len(), &mut strides);
            return self.with(&shape, &strides, self.item_size, self.offset);
        }
        // Contiguous runs of old axes, from the last to the first, are split into new axes.
        let mut old: Vec<(i64, i64)> = Vec::with_capacity(self.dims);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            match old.last_mut() {
                _ if extent == 1 => {}
                Some(last) if stride.checked_mul(extent) == Some(last.1) => {
                    *last = (last.0 * extent, stride);
                }
                _ => old.push((extent, stride)),
            }
        }
        let mut run = old.pop().unwrap_or((1, 1));
        for axis in (0..shape.len()).rev() {
            let extent = shape[axis];
            while run.0 == 1
                && extent != 1
                && let Some(next) = old.pop()
            {
                run = next;
            }
            strides[axis] = run.1;
            if run.0 % extent != 0 {
                return Err(argument_error(
                    "shape",
                    format!("{shape:?} cannot be had of {self:?} without copying the elements"),
                ));
            }
            run = (run.0 / extent, run.1.saturating_mul(extent));
        }
        self.with(&shape, &strides, self.item_size, self.offset)
    }

    /// The axes that can be merged with the preceding axis: bit `i` for axis `i`.
    pub fn flattened_axis_mask(&self) -> u64 {
        let (shape, strides) = (self.shape(), self.strides());
        (1..self.dims)
            .filter(|&axis| shape[axis].checked_mul(strides[axis]) == Some(strides[axis - 1]))
            .fold(0, |mask, axis| mask | 1 << axis)
    }

    /// Merges axes with the preceding axis, if possible and bit `i` of the mask allows it for axis `i`. At least one
    /// axis remains.
    ///
    /// # Errors
    ///
    /// None for a layout that was checked.
    pub fn flattened(&self, mask: u64) -> Result<StridedLayout> {
        if self.shape().contains(&0) || self.dims == 0 {
            let volume = self.volume();
            return self.with(&[volume], &[volume], self.item_size, self.offset);
        }
        let mask = mask & self.flattened_axis_mask();
        let (mut shape, mut strides): (Vec<i64>, Vec<i64>) = Default::default();
        for (axis, (&extent, &stride)) in self.shape().iter().zip(self.strides()).enumerate() {
            match (shape.last_mut(), strides.last_mut()) {
                (Some(merged), Some(last)) if mask & 1 << axis != 0 => {
                    *merged = extent.saturating_mul(*merged);
                    *last = stride;
                }
                _ => {
                    shape.push(extent);
                    strides.push(stride);
                }
            }
        }
        self.with(&shape, &strides, self.item_size, self.offset)
    }

    /// Removes axes of extent 1; one axis of extent 0 remains if there are no elements.
    ///
    /// # Errors
    ///
    /// None for a layout that was checked.
    pub fn squeezed(&self) -> Result<StridedLayout> {
        if self.shape().contains(&0) {
            return self.with(&[0], &[0], self.item_size, self.offset);
        }
        let (shape, strides): (Vec<i64>, Vec<i64>) = self
            .shape()
            .iter()
            .zip(self.strides())
            .filter(|&(&extent, _)| extent != 1)
            .unzip();
        self.with(&shape, &strides, self.item_size, self.offset)
    }

    /// Inserts axes of extent 1 at the positions `axes` of the result.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for positions out of range, and for duplicates.
    pub fn unsqueezed(&self, axes: &[usize]) -> Result<StridedLayout> {
        if axes.is_empty() {
            return Ok(self.clone());
        }
        let dims = self.dims + axes.len();
        let mut added = vec![false; dims];
        for &axis in axes {
            match added.get_mut(axis) {
                Some(place) if !*place => *place = true,
                Some(_) => {
                    return Err(argument_error(
                        "axis",
                        format!("holds {axis} more than once"),
                    ));
                }
                None => {
                    return Err(argument_error(
                        "axis",
                        format!("holds {axis}; the result has the axes 0 to {}", dims - 1),
                    ));
                }
            }
        }
        let (mut shape, mut strides) = (vec![1; dims], vec![1; dims]);
        // An axis behind the last one has the stride of that one.
        let (mut from, mut next) = (self.dims, self.strides().last().copied().unwrap_or(1));
        for axis in (0..dims).rev() {
            if !added[axis] {
                from -= 1;
                shape[axis] = self.shape()[from];
                strides[axis] = self.strides()[from];
                next = shape[axis].saturating_mul(strides[axis]);
            } else {
                strides[axis] = next;
            }
        }
        self.with(&shape, &strides, self.item_size, self.offset)
    }

    /// Broadcasts to another shape: repeated axes have stride 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for fewer dimensions, and for a different extent of
    /// an axis with more than one element.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<StridedLayout> {
        let Some(more) = shape.len().checked_sub(self.dims) else {
            return Err(argument_error(
                "shape",
                format!(
                    "has {} dimensions; expected {} or more",
                    shape.len(),
                    self.dims
                ),
            ));
        };
        let mut strides = vec![0; shape.len()];
        for axis in more..shape.len() {
            let (extent, stride) = (self.shape()[axis - more], self.strides()[axis - more]);
            if extent == shape[axis] {
                strides[axis] = stride;
            } else if extent != 1 {
                return Err(argument_error(
                    "shape",
                    format!(
                        "has {} elements in axis {axis}; expected {extent}, which is not repeated",
                        shape[axis]
                    ),
                ));
            }
        }
        self.with(shape, &strides, self.item_size, self.offset)
    }

    /// Reinterprets the bytes as elements of another size: smaller ones split each element along `axis`, larger ones
    /// combine neighbours. `base` is the address of the memory, whose alignment limits the size.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the elements along the axis are not contiguous or
    /// do not divide evenly, or if another stride, the offset or the address is not a multiple of the new size.
    pub fn repacked(
        &self,
        item_size: usize,
        base: u64,
        axis: usize,
        keep_dim: bool,
    ) -> Result<StridedLayout> {
        let (old, new) = (self.item_size, item_size);
        let odd = |problem: String| Err(argument_error("itemsize", problem));
        if new == old {
            return Ok(self.clone());
        }
        if new == 0 || !(new.is_multiple_of(old) || old.is_multiple_of(new)) {
            return odd(format!(
                "is {new}; expected a multiple or a divisor of {old}"
            ));
        }
        if axis >= self.dims {
            return Err(argument_error(
                "axis",
                format!("is {axis}; there are {} dimensions", self.dims),
            ));
        }
        let (mut shape, mut strides) = (self.shape().to_vec(), self.strides().to_vec());
        if strides[axis] != 1 || shape[axis] < 1 {
            return Err(argument_error(
                "axis",
                format!(
                    "is {axis}, with {} elements {} apart; expected 1 or more that are neighbours",
                    shape[axis], strides[axis]
                ),
            ));
        }
        let mut offset = self.offset;
        if new < old {
            let factor = (old / new) as i64;
            let times = |n: &mut i64| *n = n.saturating_mul(factor);
            shape.iter_mut().skip(axis).take(1).for_each(times);
            for (other, stride) in strides.iter_mut().enumerate() {
                if other != axis {
                    *stride = stride.saturating_mul(factor);
                }
            }
            offset = offset.saturating_mul(factor);
        } else {
            let factor = (new / old) as i64;
            if shape[axis] % factor != 0 {
                return odd(format!(
                    "is {new}; {} elements of {old} bytes do not make whole ones",
                    shape[axis]
                ));
            }
            if offset % factor != 0 || !base.is_multiple_of(new as u64) {
                return odd(format!(
                    "is {new}, to which the first element is not aligned"
                ));
            }
            shape[axis] /= factor;
            for (other, stride) in strides.iter_mut().enumerate() {
                if other != axis {
                    if *stride % factor != 0 {
                        return odd(format!(
                            "is {new}, to which the stride of axis {other}, {stride}, is not aligned"
                        ));
                    }
                    *stride /= factor;
                }
            }
            offset /= factor;
            if shape[axis] == 1 && !keep_dim {
                shape.remove(axis);
                strides.remove(axis);
            }
        }
        self.with(&shape, &strides, new, offset)
    }

    /// The largest element size up to `most`, a power of two times the current one, that [`StridedLayout::repacked`]
    /// accepts.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if `most` is less than the current size.
    pub fn max_compatible_item_size(&self, most: usize, base: u64, axis: usize) -> Result<usize> {
        let possible = |&size: &usize| self.repacked(size, base, axis, true).is_ok();
        // Element sizes are small: sizes beyond the axis cannot succeed.
        let whole = self.shape().get(axis).map_or(self.item_size, |&extent| {
            self.item_size
                .saturating_mul(usize::try_from(extent).unwrap_or(0).max(1))
        });
        let factors = (0..63).rev().map(|bits| 1usize << bits);
        factors
            .filter_map(|factor| factor.checked_mul(self.item_size))
            .filter(|&size| size <= most.min(whole))
            .find(possible)
            .ok_or_else(|| {
                argument_error(
                    "max_itemsize",
                    format!(
                        "is {most}; elements have {} bytes as they are",
                        self.item_size
                    ),
                )
            })
    }
}

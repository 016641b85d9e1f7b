//! How the elements of an array lie in memory.

use std::fmt;

use crate::error::{Error, Result};

/// The most dimensions that a layout has; NumPy's limit, too.
pub const MAX_DIMS: usize = 64;

/// Shape, strides and element size of an array, with no memory of its own.
///
/// The element at `(i, j, ...)` is `offset + i * strides[0] + j * strides[1] + ...` elements behind the array's base
/// address. Strides are counted in elements, as DLPack counts them, and may be zero or negative.
///
/// A layout is checked when it is made: every element of it, in bytes, is within the range of `i64`.
///
/// ```
/// use cupyrite::{Index, StridedLayout};
///
/// # fn main() -> cupyrite::Result<()> {
/// let rows = StridedLayout::new(&[3, 4], None, 4)?;
/// let even = rows.sliced(&[Index::Range { start: 0, len: 3, step: 1 }, Index::Range { start: 1, len: 2, step: 2 }])?;
/// assert_eq!((even.shape(), even.strides(), even.offset()), (&[3, 2][..], &[4, 2][..], 1));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StridedLayout {
    /// Extents, then strides: in one piece, which is what making a view of an array costs.
    numbers: Box<[i64]>,
    dims: usize,
    /// Whether somebody gave the strides; otherwise they are those of C order.
    explicit: bool,
    item_size: usize,
    offset: i64,
}

/// What is taken of an axis, see [`StridedLayout::sliced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// One element; the axis goes.
    At(i64),
    /// `len` elements, the first at `start`, `step` apart.
    Range {
        /// The first one.
        start: i64,
        /// How many.
        len: i64,
        /// From one to the next; may be negative.
        step: i64,
    },
}

/// In what order the axes of a dense layout lie, see [`StridedLayout::dense`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrideOrder {
    /// The last axis is contiguous.
    C,
    /// The first axis is contiguous.
    Fortran,
    /// All axes, from the one with the largest stride to the contiguous one.
    Axes(Vec<usize>),
}

impl fmt::Debug for StridedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StridedLayout")
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("item_size", &self.item_size)
            .field("offset", &self.offset)
            .finish()
    }
}

fn wrong(parameter: &str, problem: impl Into<String>) -> Error {
    Error::argument("StridedLayout", parameter, problem)
}

/// The strides of dense extents, from the last axis of `order` to its first.
fn dense_strides(
    shape: &[i64],
    order: impl DoubleEndedIterator<Item = usize>,
    strides: &mut [i64],
) {
    if shape.contains(&0) {
        // Without elements strides mean nothing.
        strides.fill(0);
        return;
    }
    let mut next = 1i64;
    for axis in order.rev() {
        strides[axis] = next;
        // Too many elements are found by `checked`.
        next = next.saturating_mul(shape[axis]);
    }
}

impl StridedLayout {
    /// A layout of `shape` with `strides` in elements, or those of C order; `item_size` bytes an element.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more than [`MAX_DIMS`] dimensions, negative extents, strides of another number of
    /// dimensions, an element size of zero, and elements that no address could have.
    pub fn new(shape: &[i64], strides: Option<&[i64]>, item_size: usize) -> Result<StridedLayout> {
        let dims = shape.len();
        if dims > MAX_DIMS {
            return Err(wrong(
                "shape",
                format!("has {dims} dimensions; there may be {MAX_DIMS}"),
            ));
        }
        let mut numbers = Vec::with_capacity(2 * dims);
        numbers.extend_from_slice(shape);
        match strides {
            Some(strides) if strides.len() == dims => numbers.extend_from_slice(strides),
            Some(strides) => {
                return Err(wrong(
                    "strides",
                    format!(
                        "has {} numbers; expected {dims}, one for each dimension of 'shape'",
                        strides.len()
                    ),
                ));
            }
            None => {
                numbers.resize(2 * dims, 0);
                let (shape, strides) = numbers.split_at_mut(dims);
                dense_strides(shape, 0..dims, strides);
            }
        }
        StridedLayout {
            numbers: numbers.into_boxed_slice(),
            dims,
            explicit: strides.is_some(),
            item_size,
            offset: 0,
        }
        .checked()
    }

    /// As [`StridedLayout::new`], with strides in bytes.
    ///
    /// # Errors
    ///
    /// As there, and for strides that are not whole elements.
    pub fn with_byte_strides(
        shape: &[i64],
        strides: &[i64],
        item_size: usize,
    ) -> Result<StridedLayout> {
        let item = i64::try_from(item_size)
            .ok()
            .filter(|&item| item != 0)
            .ok_or_else(|| {
                wrong(
                    "itemsize",
                    format!("is {item_size}; expected 1 or more bytes"),
                )
            })?;
        if let Some(stride) = strides.iter().find(|&&stride| stride % item != 0) {
            return Err(wrong(
                "strides",
                format!(
                    "holds {stride}; in bytes they must be multiples of the element size, {item}"
                ),
            ));
        }
        let strides: Vec<i64> = strides.iter().map(|stride| stride / item).collect();
        StridedLayout::new(shape, Some(&strides), item_size)
    }

    /// A layout without gaps, with strides given.
    ///
    /// # Errors
    ///
    /// As [`StridedLayout::new`], and for an order that is no permutation of the axes.
    pub fn dense(shape: &[i64], item_size: usize, order: &StrideOrder) -> Result<StridedLayout> {
        let dims = shape.len();
        let mut strides = vec![0; dims];
        match order {
            StrideOrder::C => dense_strides(shape, 0..dims, &mut strides),
            StrideOrder::Fortran => dense_strides(shape, (0..dims).rev(), &mut strides),
            StrideOrder::Axes(axes) => {
                permutation(axes, dims, "stride_order")?;
                dense_strides(shape, axes.iter().copied(), &mut strides);
            }
        }
        StridedLayout::new(shape, Some(&strides), item_size)
    }

    /// Checks what every layout promises.
    fn checked(self) -> Result<StridedLayout> {
        let shape = self.shape();
        if let Some(extent) = shape.iter().find(|&&extent| extent < 0) {
            return Err(wrong(
                "shape",
                format!("holds {extent}; extents are 0 or more"),
            ));
        }
        if self.item_size == 0 || i64::try_from(self.item_size).is_err() {
            return Err(wrong(
                "itemsize",
                format!("is {}; expected 1 or more bytes", self.item_size),
            ));
        }
        if shape.contains(&0) {
            return Ok(self);
        }
        // In 128 bits: 64 products of two 64-bit numbers nearly fit, and what does not is too much in any case.
        let (mut low, mut high, mut volume) =
            (i128::from(self.offset), i128::from(self.offset), 1i128);
        for (&extent, &stride) in shape.iter().zip(self.strides()) {
            let span = i128::from(extent - 1) * i128::from(stride);
            low = low.saturating_add(span.min(0));
            high = high.saturating_add(span.max(0));
            volume = volume.saturating_mul(i128::from(extent));
        }
        let item = self.item_size as i128;
        let fits = |elements: i128| i64::try_from(elements.saturating_mul(item)).is_ok();
        if fits(volume) && fits(low) && fits(high.saturating_add(1)) {
            Ok(self)
        } else {
            Err(wrong(
                "shape",
                format!(
                    "{:?} with strides {:?} and {} bytes an element is more than any memory holds",
                    self.shape(),
                    self.strides(),
                    self.item_size
                ),
            ))
        }
    }

    /// With other extents and strides, which were given.
    fn with(
        &self,
        shape: &[i64],
        strides: &[i64],
        item_size: usize,
        offset: i64,
    ) -> Result<StridedLayout> {
        let mut numbers = Vec::with_capacity(2 * shape.len());
        numbers.extend_from_slice(shape);
        numbers.extend_from_slice(strides);
        StridedLayout {
            dims: shape.len(),
            numbers: numbers.into_boxed_slice(),
            explicit: true,
            item_size,
            offset,
        }
        .checked()
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.numbers[..self.dims]
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.numbers[self.dims..]
    }

    /// Whether strides were given, rather than those of C order taken.
    #[inline]
    pub fn has_explicit_strides(&self) -> bool {
        self.explicit
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.dims
    }

    /// Bytes of an element.
    #[inline]
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// Where the element with all indices zero is, in elements behind the base address.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The same, in bytes.
    #[inline]
    pub fn offset_in_bytes(&self) -> i64 {
        // A layout without elements may have an offset that was never checked.
        self.offset.saturating_mul(self.item_size as i64)
    }

    /// The strides in bytes.
    pub fn strides_in_bytes(&self) -> Vec<i64> {
        let item = self.item_size as i64;
        self.strides()
            .iter()
            .map(|stride| stride.saturating_mul(item))
            .collect()
    }

    /// The number of elements.
    pub fn volume(&self) -> i64 {
        if self.shape().contains(&0) {
            return 0;
        }
        self.shape().iter().product()
    }

    /// The least and the greatest element, counted from the base address; `(0, -1)` where there are none.
    pub fn bounds(&self) -> (i64, i64) {
        if self.shape().contains(&0) {
            return (0, -1);
        }
        let (mut low, mut high) = (self.offset, self.offset);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            // One extent of 1 may have any stride.
            if extent > 1 {
                let span = (extent - 1) * stride;
                low += span.min(0);
                high += span.max(0);
            }
        }
        (low, high)
    }

    /// The bytes that memory needs to hold the layout from its base address on.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if elements lie before the base address.
    pub fn required_size(&self) -> Result<usize> {
        let (low, high) = self.bounds();
        if low < 0 {
            return Err(wrong(
                "strides",
                format!(
                    "places an element {} before the base address, so no size is enough",
                    -low
                ),
            ));
        }
        Ok((high + 1).unsigned_abs() as usize * self.item_size)
    }

    fn contiguous(&self, axes: impl Iterator<Item = usize>) -> bool {
        if self.shape().contains(&0) {
            return true;
        }
        let mut next = 1;
        for axis in axes {
            let (extent, stride) = (self.shape()[axis], self.strides()[axis]);
            if extent != 1 {
                if stride != next {
                    return false;
                }
                next *= extent;
            }
        }
        true
    }

    /// Whether the elements lie one behind the other, the last index running fastest.
    pub fn is_contiguous_c(&self) -> bool {
        !self.explicit || self.contiguous((0..self.dims).rev())
    }

    /// Whether the elements lie one behind the other, the first index running fastest.
    pub fn is_contiguous_f(&self) -> bool {
        self.contiguous(0..self.dims)
    }

    /// Whether the elements lie one behind the other in some order of the axes.
    pub fn is_contiguous_any(&self) -> bool {
        self.is_contiguous_c() || self.contiguous(self.stride_order().into_iter().rev())
    }

    /// Whether the elements lie one behind the other, the first of them at the base address.
    pub fn is_dense(&self) -> bool {
        self.offset == 0 && self.is_contiguous_any()
    }

    /// Whether no two elements share memory, as far as the strides show without trying all elements: true is certain.
    pub fn is_unique(&self) -> bool {
        if self.shape().contains(&0) {
            return true;
        }
        let mut axes: Vec<(i128, i128)> = self
            .shape()
            .iter()
            .zip(self.strides())
            .filter(|&(&extent, _)| extent != 1)
            .map(|(&extent, &stride)| (i128::from(stride).abs(), i128::from(extent)))
            .collect();
        axes.sort_unstable();
        let mut span = 0;
        for (stride, extent) in axes {
            if stride <= span {
                return false;
            }
            span += stride * (extent - 1);
        }
        true
    }

    /// The axes from the one with the largest stride to the one with the smallest; of those with equal strides the longer ones
    /// first.
    pub fn stride_order(&self) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..self.dims).collect();
        axes.sort_by_key(|&axis| {
            std::cmp::Reverse((self.strides()[axis].unsigned_abs(), self.shape()[axis]))
        });
        axes
    }

    /// The dense layout of the same shape; `None` keeps the order of the axes.
    ///
    /// # Errors
    ///
    /// As [`StridedLayout::dense`].
    pub fn to_dense(&self, order: Option<&StrideOrder>) -> Result<StridedLayout> {
        if !self.explicit && matches!(order, None | Some(StrideOrder::C)) {
            return StridedLayout::new(self.shape(), None, self.item_size);
        }
        match order {
            Some(order) => StridedLayout::dense(self.shape(), self.item_size, order),
            None => StridedLayout::dense(
                self.shape(),
                self.item_size,
                &StrideOrder::Axes(self.stride_order()),
            ),
        }
    }

    /// Takes elements and ranges of the first axes; the others stay whole.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more indices than dimensions and for elements that an axis does not have.
    pub fn sliced(&self, indices: &[Index]) -> Result<StridedLayout> {
        if indices.len() > self.dims {
            return Err(wrong(
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
            wrong(
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
                    // The stride of at most one element is never used, and may not fit when multiplied.
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

    /// The axes in another order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if `axes` is no permutation of all axes.
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

    /// Another shape for the same elements in the same order; one extent may be -1 and follows from the others.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another number of elements, and where the elements would have to be copied.
    pub fn reshaped(&self, shape: &[i64]) -> Result<StridedLayout> {
        let volume = self.volume();
        let mut shape = shape.to_vec();
        let holes = shape.iter().filter(|&&extent| extent == -1).count();
        if let Some(extent) = shape.iter().find(|&&extent| extent < -1) {
            return Err(wrong(
                "shape",
                format!("holds {extent}; extents are 0 or more, or one -1"),
            ));
        }
        if holes > 1 {
            return Err(wrong("shape", "has more than one -1"));
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
            return Err(wrong(
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
        // Runs of old axes that lie as one, from the last to the first, are cut into new axes.
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
                return Err(wrong(
                    "shape",
                    format!("{shape:?} cannot be had of {self:?} without copying the elements"),
                ));
            }
            run = (run.0 / extent, run.1.saturating_mul(extent));
        }
        self.with(&shape, &strides, self.item_size, self.offset)
    }

    /// Which axes can be merged with the axis before them: bit `i` for axis `i`.
    pub fn flattened_axis_mask(&self) -> u64 {
        let (shape, strides) = (self.shape(), self.strides());
        (1..self.dims)
            .filter(|&axis| shape[axis].checked_mul(strides[axis]) == Some(strides[axis - 1]))
            .fold(0, |mask, axis| mask | 1 << axis)
    }

    /// Merges axes with the axis before them, where that can be done and bit `i` of the mask allows it for axis `i`. There is
    /// always one axis left.
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

    /// Without the axes of extent 1; with one axis of extent 0 where there are no elements.
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

    /// With axes of extent 1 added, which the result has at `axes`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for places that the result does not have, or twice the same one.
    pub fn unsqueezed(&self, axes: &[usize]) -> Result<StridedLayout> {
        let dims = self.dims + axes.len();
        let mut added = vec![false; dims];
        for &axis in axes {
            match added.get_mut(axis) {
                Some(place) if !*place => *place = true,
                Some(_) => return Err(wrong("axis", format!("holds {axis} more than once"))),
                None => {
                    return Err(wrong(
                        "axis",
                        format!("holds {axis}; the result has the axes 0 to {}", dims - 1),
                    ));
                }
            }
        }
        let (mut shape, mut strides) = (vec![1; dims], vec![1; dims]);
        let (mut from, mut next) = (self.dims, 1i64);
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

    /// Repeats axes of extent 1, and the whole, up to another shape: what is repeated has stride 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for fewer dimensions, and for other extents where there is more than one element.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<StridedLayout> {
        let Some(more) = shape.len().checked_sub(self.dims) else {
            return Err(wrong(
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
                return Err(wrong(
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

    /// The same bytes as elements of another size: smaller ones split each element along `axis`, larger ones take several
    /// neighbours together. `base` is the address that the layout is for; larger elements need it aligned.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if elements along the axis are not neighbours or do not divide evenly, if another stride,
    /// the offset or the address is no multiple of the new element.
    pub fn repacked(
        &self,
        item_size: usize,
        base: u64,
        axis: usize,
        keep_dim: bool,
    ) -> Result<StridedLayout> {
        let (old, new) = (self.item_size, item_size);
        let odd = |problem: String| Err(wrong("itemsize", problem));
        if new == old {
            return Ok(self.clone());
        }
        if new == 0 || !(new.is_multiple_of(old) || old.is_multiple_of(new)) {
            return odd(format!(
                "is {new}; expected a multiple or a divisor of {old}"
            ));
        }
        if axis >= self.dims {
            return Err(wrong(
                "axis",
                format!("is {axis}; there are {} dimensions", self.dims),
            ));
        }
        let (mut shape, mut strides) = (self.shape().to_vec(), self.strides().to_vec());
        if strides[axis] != 1 || shape[axis] < 1 {
            return Err(wrong(
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

    /// The largest element size up to `most`, the present one times a power of two, that [`StridedLayout::repacked`] takes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if `most` is less than the present one.
    pub fn max_compatible_item_size(&self, most: usize, base: u64, axis: usize) -> Result<usize> {
        let possible = |&size: &usize| self.repacked(size, base, axis, true).is_ok();
        // Sizes are a few bytes; what is asked for beyond the axis has no chance.
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
                wrong(
                    "max_itemsize",
                    format!(
                        "is {most}; elements have {} bytes as they are",
                        self.item_size
                    ),
                )
            })
    }
}

fn permutation(axes: &[usize], dims: usize, parameter: &str) -> Result<()> {
    let mut seen = [false; MAX_DIMS];
    let all = axes.len() == dims
        && dims <= MAX_DIMS
        && axes
            .iter()
            .all(|&axis| axis < dims && !std::mem::replace(&mut seen[axis], true));
    if all {
        Ok(())
    } else {
        Err(wrong(
            parameter,
            format!(
                "is {axes:?}; expected each axis from 0 to {} once",
                dims.saturating_sub(1)
            ),
        ))
    }
}

#[cfg(test)]
mod tests;

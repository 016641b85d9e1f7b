//! Strided memory layouts of arrays.

use std::fmt;

use crate::error::{Error, Result};

mod derived;

/// The largest number of dimensions, as in NumPy.
pub const MAX_DIMS: usize = 64;

/// Shape, strides and element size of an array, with no memory of its own.
///
/// The element at `(i, j, ...)` is `offset + i * strides[0] + j * strides[1] + ...` elements after the array's base
/// address. Strides are in elements, as in DLPack, and may be zero or negative.
///
/// The constructors check that the byte offset of every element fits into `i64`, in both directions.
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
    /// Extents, then strides.
    numbers: Numbers,
    dims: usize,
    /// Whether the strides were given; otherwise they are those of C order.
    explicit: bool,
    item_size: usize,
    offset: i64,
}

/// Few numbers inline, many on the heap: the allocation would dominate the cost of creating a view.
#[derive(Clone, PartialEq, Eq)]
enum Numbers {
    /// Unused elements are zero.
    Few([i64; Numbers::FEW]),
    Many(Box<[i64]>),
}

impl Numbers {
    /// Extents and strides of four dimensions.
    const FEW: usize = 8;

    /// At least as many zeros.
    #[inline]
    fn zeros(count: usize) -> Numbers {
        if count <= Self::FEW {
            Numbers::Few([0; Self::FEW])
        } else {
            Numbers::Many(vec![0; count].into_boxed_slice())
        }
    }

    #[inline]
    fn all(&self) -> &[i64] {
        match self {
            Numbers::Few(numbers) => numbers,
            Numbers::Many(numbers) => numbers,
        }
    }

    /// The extents and the strides.
    #[inline]
    fn halves(&mut self, dims: usize) -> (&mut [i64], &mut [i64]) {
        let all = match self {
            Numbers::Few(numbers) => &mut numbers[..],
            Numbers::Many(numbers) => numbers,
        };
        all[..2 * dims].split_at_mut(dims)
    }
}

/// The selection from an axis, see [`StridedLayout::sliced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// One element; removes the axis.
    At(i64),
    /// `len` elements, the first at `start`, `step` apart.
    Range {
        /// The first one.
        start: i64,
        /// The number of elements.
        len: i64,
        /// The step between elements; may be negative.
        step: i64,
    },
}

/// The axis order of a dense layout, see [`StridedLayout::dense`].
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

fn argument_error(parameter: &str, problem: impl Into<String>) -> Error {
    Error::argument("StridedLayout", parameter, problem)
}

fn lengths(strides: usize, dims: usize) -> Error {
    argument_error(
        "strides",
        format!("has {strides} numbers; expected {dims}, one for each dimension of 'shape'"),
    )
}

/// The strides of dense extents, from the last axis of `order` to its first.
fn dense_strides(
    shape: &[i64],
    order: impl DoubleEndedIterator<Item = usize>,
    strides: &mut [i64],
) {
    if shape.contains(&0) {
        // Strides without elements are never used.
        strides.fill(0);
        return;
    }
    let mut next = 1i64;
    for axis in order.rev() {
        strides[axis] = next;
        // `checked` rejects an overflow.
        next = next.saturating_mul(shape[axis]);
    }
}

impl StridedLayout {
    /// A layout of `shape` with `strides` in elements, or those of C order, and elements of `item_size` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more than [`MAX_DIMS`] dimensions, negative extents, another number of strides,
    /// an element size of zero, and an element offset that overflows.
    pub fn new(shape: &[i64], strides: Option<&[i64]>, item_size: usize) -> Result<StridedLayout> {
        let dims = shape.len();
        if dims > MAX_DIMS {
            return Err(argument_error(
                "shape",
                format!("has {dims} dimensions; there may be {MAX_DIMS}"),
            ));
        }
        let mut numbers = Numbers::zeros(2 * dims);
        let (extents, places) = numbers.halves(dims);
        extents.copy_from_slice(shape);
        match strides {
            Some(strides) if strides.len() == dims => places.copy_from_slice(strides),
            Some(strides) => return Err(lengths(strides.len(), dims)),
            None => dense_strides(shape, 0..dims, places),
        }
        StridedLayout {
            numbers,
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
    /// As [`StridedLayout::new`], and for strides that are not multiples of the element size.
    pub fn with_byte_strides(
        shape: &[i64],
        strides: &[i64],
        item_size: usize,
    ) -> Result<StridedLayout> {
        let item = i64::try_from(item_size)
            .ok()
            .filter(|&item| item != 0)
            .ok_or_else(|| {
                argument_error(
                    "itemsize",
                    format!("is {item_size}; expected 1 or more bytes"),
                )
            })?;
        if let Some(stride) = strides.iter().find(|&&stride| stride % item != 0) {
            return Err(argument_error(
                "strides",
                format!(
                    "holds {stride}; in bytes they must be multiples of the element size, {item}"
                ),
            ));
        }
        if strides.len() != shape.len() || shape.len() > MAX_DIMS {
            // `new` rejects it.
            return StridedLayout::new(shape, Some(strides), item_size);
        }
        let dims = shape.len();
        let mut numbers = Numbers::zeros(2 * dims);
        let (extents, places) = numbers.halves(dims);
        extents.copy_from_slice(shape);
        for (place, stride) in places.iter_mut().zip(strides) {
            *place = stride / item;
        }
        StridedLayout {
            numbers,
            dims,
            explicit: true,
            item_size,
            offset: 0,
        }
        .checked()
    }

    /// A layout without gaps, with strides given.
    ///
    /// # Errors
    ///
    /// As [`StridedLayout::new`], and for an order that is not a permutation of the axes.
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

    /// Whether the layout has elements and satisfies the checks, computed in 64 bits.
    #[inline(always)]
    fn is_plain(&self) -> Option<()> {
        let item = i64::try_from(self.item_size)
            .ok()
            .filter(|&item| item > 0)?;
        let (mut low, mut high, mut volume) = (self.offset, self.offset, 1i64);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            if extent < 1 {
                return None;
            }
            let span = (extent - 1).checked_mul(stride)?;
            low = low.checked_add(span.min(0))?;
            high = high.checked_add(span.max(0))?;
            volume = volume.checked_mul(extent)?;
        }
        volume.checked_mul(item)?;
        // Slices can reverse layouts, so both directions must fit.
        low.checked_mul(item)?.checked_neg()?;
        high.checked_add(1)?.checked_mul(item)?;
        Some(())
    }

    /// Checks the invariants. Takes a reference: moving the layout through a function would copy it twice.
    #[inline(always)]
    fn checked(self) -> Result<StridedLayout> {
        match self.is_plain() {
            Some(()) => Ok(self),
            None => self.checked_in_full(),
        }
    }

    #[cold]
    fn checked_in_full(self) -> Result<StridedLayout> {
        let shape = self.shape();
        if let Some(extent) = shape.iter().find(|&&extent| extent < 0) {
            return Err(argument_error(
                "shape",
                format!("holds {extent}; extents are 0 or more"),
            ));
        }
        if self.item_size == 0 || i64::try_from(self.item_size).is_err() {
            return Err(argument_error(
                "itemsize",
                format!("is {}; expected 1 or more bytes", self.item_size),
            ));
        }
        if shape.contains(&0) {
            return Ok(self);
        }
        // In 128 bits: 64 products of two 64-bit numbers nearly fit, and an overflow is an error in any case.
        let (mut low, mut high, mut volume) =
            (i128::from(self.offset), i128::from(self.offset), 1i128);
        for (&extent, &stride) in shape.iter().zip(self.strides()) {
            let span = i128::from(extent - 1) * i128::from(stride);
            low = low.saturating_add(span.min(0));
            high = high.saturating_add(span.max(0));
            volume = volume.saturating_mul(i128::from(extent));
        }
        let item = self.item_size as i128;
        let fits = |elements: i128| {
            i64::try_from(elements.saturating_mul(item)).is_ok_and(|bytes| bytes != i64::MIN)
        };
        if fits(volume) && fits(low) && fits(high.saturating_add(1)) {
            Ok(self)
        } else {
            Err(argument_error(
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

    /// The layout with other, explicit extents and strides.
    fn with(
        &self,
        shape: &[i64],
        strides: &[i64],
        item_size: usize,
        offset: i64,
    ) -> Result<StridedLayout> {
        let dims = shape.len();
        if dims > MAX_DIMS {
            return StridedLayout::new(shape, Some(strides), item_size);
        }
        let mut numbers = Numbers::zeros(2 * dims);
        let (extents, places) = numbers.halves(dims);
        extents.copy_from_slice(shape);
        places.copy_from_slice(strides);
        StridedLayout {
            dims,
            numbers,
            explicit: true,
            item_size,
            offset,
        }
        .checked()
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.numbers.all()[..self.dims]
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.numbers.all()[self.dims..2 * self.dims]
    }

    /// Whether the strides were given, and are not the default C order.
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

    /// Offset of the element with all indices zero, in elements from the base address.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// [`StridedLayout::offset`] in bytes.
    #[inline]
    pub fn offset_in_bytes(&self) -> i64 {
        // A layout without elements may have an unchecked offset.
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

    /// The lowest and the highest element offset from the base address; `(0, -1)` without elements.
    pub fn bounds(&self) -> (i64, i64) {
        if self.shape().contains(&0) {
            return (0, -1);
        }
        let (mut low, mut high) = (self.offset, self.offset);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            // An axis of extent 1 may have any stride.
            if extent > 1 {
                let span = (extent - 1) * stride;
                low += span.min(0);
                high += span.max(0);
            }
        }
        (low, high)
    }

    /// The size of the memory from the base address on that the layout needs, in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if elements precede the base address.
    pub fn required_size(&self) -> Result<usize> {
        let (low, high) = self.bounds();
        if low < 0 {
            return Err(argument_error(
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

    /// Whether the elements are contiguous in C order: the last index runs fastest.
    pub fn is_contiguous_c(&self) -> bool {
        !self.explicit || self.contiguous((0..self.dims).rev())
    }

    /// Whether the elements are contiguous in Fortran order: the first index runs fastest.
    pub fn is_contiguous_f(&self) -> bool {
        self.contiguous(0..self.dims)
    }

    /// Whether the elements are contiguous in some axis order.
    pub fn is_contiguous_any(&self) -> bool {
        self.is_contiguous_c() || self.contiguous(self.stride_order().into_iter().rev())
    }

    /// Whether the elements are contiguous from the base address on.
    pub fn is_dense(&self) -> bool {
        self.offset == 0 && self.is_contiguous_any()
    }

    /// Whether no two elements share memory, judged by the strides alone: true is certain.
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

    /// The axes from the largest stride to the smallest; of equal strides the longer axis first. C order if no strides
    /// were given.
    pub fn stride_order(&self) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..self.dims).collect();
        if !self.explicit {
            return axes;
        }
        axes.sort_by_key(|&axis| {
            std::cmp::Reverse((self.strides()[axis].unsigned_abs(), self.shape()[axis]))
        });
        axes
    }

    /// Whether the layout is dense in this order; `None` is any order of the axes.
    pub fn is_dense_in(&self, order: Option<&StrideOrder>) -> bool {
        match order {
            None => self.is_dense(),
            Some(StrideOrder::C) => self.offset == 0 && self.is_contiguous_c(),
            Some(StrideOrder::Fortran) => self.offset == 0 && self.is_contiguous_f(),
            Some(StrideOrder::Axes(_)) => false,
        }
    }

    /// The dense layout of the same shape; `None` keeps the axis order.
    ///
    /// # Errors
    ///
    /// Same as [`StridedLayout::dense`].
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
        Err(argument_error(
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

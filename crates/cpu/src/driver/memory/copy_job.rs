//! A copy of rows and slices between memory and arrays.
//!
//! The caller's structure becomes a [`Job`] that has passed every check that needs no waiting. Running it checks
//! addresses again, so that memory freed in the meantime is an error and not a crash. The entry points are in
//! `copy_nd` and `copy_batch`, graph nodes in `graph::node`.

use std::sync::Arc;

use cupyrite_sys::driver as sys;

use crate::driver::array;
use crate::driver::array::Array;
use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::memory::copy_range::{self, ExpectedMemory, RangeClass};
use crate::driver::memory::space::space;
use crate::texture::Storage;

/// One side of a copy.
#[derive(Clone, Debug)]
struct Side {
    /// Address of the first byte.
    start: u64,
    pitch: u64,
    /// Bytes from one slice to the next.
    slice: u64,
    expect: ExpectedMemory,
    /// The array that contains this side. Kept alive, so that its addresses need no further check.
    storage: Option<Arc<Storage>>,
}

/// Width in bytes, rows, slices.
type Extent = [u64; 3];

impl Side {
    /// A contiguous range of bytes.
    fn flat(start: u64, len: u64, expect: ExpectedMemory) -> Self {
        Self {
            start,
            pitch: len,
            slice: len,
            expect,
            storage: None,
        }
    }

    fn end(&self) -> copy_range::End {
        copy_range::End {
            address: self.start,
            proved: self.storage.is_some(),
        }
    }

    /// Bytes from the first byte to one past the last.
    fn span(&self, extent: Extent) -> Res<u64> {
        let [width, height, depth] = extent;
        let rows = self
            .pitch
            .checked_mul(height - 1)
            .ok_or(Code::INVALID_VALUE)?;
        let slices = self
            .slice
            .checked_mul(depth - 1)
            .ok_or(Code::INVALID_VALUE)?;
        rows.checked_add(slices)
            .and_then(|n| n.checked_add(width))
            .ok_or(Code::INVALID_VALUE)
    }

    fn classify(&self, extent: Extent) -> Res<RangeClass> {
        if self.storage.is_some() {
            return Ok(RangeClass::Known);
        }
        copy_range::classify(self.start, self.span(extent)?, self.expect)
    }
}

/// One side of a `CUDA_MEMCPY2D` or `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
struct CopyOperand {
    x: u64,
    y: u64,
    z: u64,
    /// `CUmemorytype`.
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: u64,
    height: u64,
}

pub(super) const HOST: u32 = sys::CUmemorytype::CU_MEMORYTYPE_HOST.0;
pub(super) const DEVICE: u32 = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE.0;
pub(super) const ARRAY: u32 = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY.0;
const UNIFIED: u32 = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED.0;
/// The value of `CU_DEVICE_ATTRIBUTE_MAX_PITCH`.
const MAX_PITCH: u64 = i32::MAX as u64;

fn side(p: &CopyOperand, extent: Extent) -> Res<Side> {
    let [width, height, _] = extent;
    let (base, expect) = match p.kind {
        HOST => (p.host, ExpectedMemory::Any),
        DEVICE => (p.device, ExpectedMemory::Device),
        UNIFIED => (p.device, ExpectedMemory::Any),
        ARRAY => {
            let array = array::find(p.array).ok_or(Code::INVALID_VALUE)?;
            return in_array(&array, [p.x, p.y, p.z], extent);
        }
        _ => return Err(Code::INVALID_VALUE),
    };
    // A pitch of zero means contiguous rows.
    let row = p.x.checked_add(width).ok_or(Code::INVALID_VALUE)?;
    let pitch = if p.pitch == 0 { row } else { p.pitch };
    if pitch < row || (expect == ExpectedMemory::Device && pitch > MAX_PITCH) {
        return Err(Code::INVALID_VALUE);
    }
    let rows = p.y.checked_add(height).ok_or(Code::INVALID_VALUE)?;
    let slice_height = if p.height == 0 { rows } else { p.height };
    if slice_height < rows {
        return Err(Code::INVALID_VALUE);
    }
    let slice = pitch.checked_mul(slice_height).ok_or(Code::INVALID_VALUE)?;
    let start =
        p.z.checked_mul(slice)
            .and_then(|n| {
                n.checked_add(p.y.checked_mul(pitch)?)?
                    .checked_add(p.x)?
                    .checked_add(base)
            })
            .ok_or(Code::INVALID_VALUE)?;
    Ok(Side {
        start,
        pitch,
        slice,
        expect,
        storage: None,
    })
}

/// The side that starts at byte `x` of row `y` of slice (layer, face) `z` of an array. The rows of a block-compressed
/// array are rows of blocks.
///
/// CUDA documents whole elements; hardware copies any bytes, and so does this.
fn in_array(array: &Array, [x, y, z]: [u64; 3], extent: Extent) -> Res<Side> {
    let level = array.level()?;
    let [width, height, depth] = extent;
    let inside =
        |from: u64, length: u64, all: u64| from.checked_add(length).is_some_and(|end| end <= all);
    if !inside(x, width, level.row_bytes(&array.storage().format()))
        || !inside(y, height, level.rows.into())
        || !inside(z, depth, level.slices.into())
    {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Side {
        start: level.base + z * level.slice_pitch + y * level.row_pitch + x,
        pitch: level.row_pitch,
        slice: level.slice_pitch,
        expect: ExpectedMemory::Device,
        storage: Some(array.storage().clone()),
    })
}

/// A checked copy that can run any number of times, now or later.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    to: Side,
    from: Side,
    extent: Extent,
}

/// `CUDA_MEMCPY2D_v2` as 64-bit words; the memory type is the low half of its word.
pub(crate) type Words2 = [u64; 16];
/// `CUDA_MEMCPY3D_v2` and `CUDA_MEMCPY3D_PEER` as 64-bit words.
pub(crate) type Words3 = [u64; 25];

impl Job {
    fn new(
        to: &CopyOperand,
        from: &CopyOperand,
        extent: Extent,
        accept: impl Fn(u64, u64) -> bool,
    ) -> Res<Job> {
        if extent.contains(&0) {
            return Ok(Job::nothing());
        }
        let job = Job {
            to: side(to, extent)?,
            from: side(from, extent)?,
            extent,
        };
        for side in [&job.to, &job.from] {
            if side.storage.is_some() || !accept(side.start, side.span(extent)?) {
                side.classify(extent)?;
            }
        }
        Ok(job)
    }

    /// An empty copy.
    fn nothing() -> Job {
        let side = Side::flat(0, 0, ExpectedMemory::Any);
        Job {
            to: side.clone(),
            from: side,
            extent: [0; 3],
        }
    }

    /// A copy of `len` bytes between addresses.
    ///
    /// # Errors
    /// `INVALID_VALUE` if a range does not meet its expectation.
    pub(crate) fn linear(
        to: u64,
        from: u64,
        len: u64,
        expect: (ExpectedMemory, ExpectedMemory),
    ) -> Res<Job> {
        if len == 0 {
            return Ok(Job::nothing());
        }
        let job = Job {
            to: Side::flat(to, len, expect.0),
            from: Side::flat(from, len, expect.1),
            extent: [len, 1, 1],
        };
        job.is_pageable()?;
        Ok(job)
    }

    /// The copy described by a `CUDA_MEMCPY3D` or, with `peer`, by a `CUDA_MEMCPY3D_PEER`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an unknown memory type, a pitch smaller than the row or larger than the device's maximum, a
    /// range that is not device memory where it must be or exceeds its allocation, non-zero reserved words or levels of
    /// detail, and slices lower than the rows copied. An invalid context handle returns that handle's error.
    pub(crate) fn from_3d(w: &Words3, peer: bool) -> Res<Job> {
        Job::read_3d(w, peer, |_, _| false)
    }

    /// [`Job::from_3d`] for a copy that a graph runs later. `accept` recognises ranges that will be allocated by then.
    ///
    /// # Errors
    /// As [`Job::from_3d`].
    pub(crate) fn for_later(w: &Words3, accept: impl Fn(u64, u64) -> bool) -> Res<Job> {
        Job::read_3d(w, false, accept)
    }

    fn read_3d(w: &Words3, peer: bool, accept: impl Fn(u64, u64) -> bool) -> Res<Job> {
        if peer {
            for handle in [w[8], w[19]] {
                context::by_handle_or_current(handle)?;
            }
        } else if w[8] != 0 || w[19] != 0 {
            // Reserved.
            return Err(Code::INVALID_VALUE);
        }
        // Levels of detail must be zero where the operand is an array.
        if w[3] != 0 && w[4] as u32 == ARRAY || w[14] != 0 && w[15] as u32 == ARRAY {
            return Err(Code::INVALID_VALUE);
        }
        let place = |o: usize| CopyOperand {
            x: w[o],
            y: w[o + 1],
            z: w[o + 2],
            kind: w[o + 4] as u32,
            host: w[o + 5],
            device: w[o + 6],
            array: w[o + 7],
            pitch: w[o + 9],
            height: w[o + 10],
        };
        Job::new(&place(11), &place(0), [w[22], w[23], w[24]], accept)
    }

    /// Whether the copy is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.extent.contains(&0)
    }

    /// Whether the copy touches memory unknown to CUDA.
    ///
    /// # Errors
    /// `INVALID_VALUE` if an address no longer matches the copy's description.
    pub(crate) fn is_pageable(&self) -> Res<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let (to, from) = (
            self.to.classify(self.extent)?,
            self.from.classify(self.extent)?,
        );
        Ok(to == RangeClass::Pageable || from == RangeClass::Pageable)
    }

    /// Whether both sides are device memory, so that even the blocking calls do not wait.
    pub(crate) fn is_internal(&self) -> bool {
        self.to.expect == ExpectedMemory::Device && self.from.expect == ExpectedMemory::Device
    }

    /// Number of bytes copied.
    pub(crate) fn bytes(&self) -> u64 {
        self.extent.iter().fold(1u64, |n, &e| n.saturating_mul(e))
    }

    /// Performs the copy on this thread.
    ///
    /// # Errors
    /// `INVALID_VALUE` for memory that is no longer accessible.
    pub(crate) fn run(&self) -> Res {
        if self.is_empty() {
            return Ok(());
        }
        let _pin = space().pin();
        let Job { to, from, extent } = self;
        let [width, height, depth] = *extent;
        if width == to.pitch
            && width == from.pitch
            && (depth == 1 || to.slice == from.slice && to.slice == width * height)
        {
            return copy_range::move_between(to.end(), from.end(), width * height * depth);
        }
        for z in 0..depth {
            for y in 0..height {
                let (mut t, mut f) = (to.end(), from.end());
                t.address += z * to.slice + y * to.pitch;
                f.address += z * from.slice + y * from.pitch;
                copy_range::move_between(t, f, width)?;
            }
        }
        Ok(())
    }
}

//! A copy of rows and slices between memory and arrays.
//!
//! The caller's structure becomes a [`Job`] that has passed every check that needs no waiting. Running it checks
//! addresses again, so that memory freed in the meantime is an error and not a crash. The entry points are in
//! `copy_nd` and `copy_batch`, graph nodes in `graph::node`.

use std::sync::Arc;

use cupyrite_engine::memory::Access;
use cupyrite_engine::texture::{Level, Storage, TILE};
use cupyrite_sys::driver::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemorytype};

use crate::driver::array;
use crate::driver::array::Array;
use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::copy_range::{self, ExpectedMemory, RangeClass};
use crate::driver::memory::rights::Use;
use crate::driver::memory::space::space;

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
    /// The position in a sparse array.
    sparse: Option<Box<SparsePosition>>,
}

/// A position in a level of a sparse array, whose rows are not contiguous.
#[derive(Clone, Copy, Debug)]
struct SparsePosition {
    level: Level,
    /// Byte in a row, row, slice.
    at: [u64; 3],
}

/// Width in bytes, rows, slices.
pub(crate) type Extent = [u64; 3];

impl Side {
    /// A contiguous range of bytes.
    fn flat(start: u64, len: u64, expect: ExpectedMemory) -> Self {
        Self {
            start,
            pitch: len,
            slice: len,
            expect,
            storage: None,
            sparse: None,
        }
    }

    /// The byte at `x` of a row and slice of the copy, how many bytes follow it contiguously, and whether memory is mapped
    /// there.
    fn locate(&self, x: u64, y: u64, z: u64) -> (copy_range::End, u64, bool) {
        let mut end = self.end();
        let (Some(SparsePosition { level, at }), Some(storage)) =
            (self.sparse.as_deref(), &self.storage)
        else {
            end.address += z * self.slice + y * self.pitch + x;
            return (end, u64::MAX, true);
        };
        let format = storage.format();
        let element = u64::from(format.element_bytes());
        let byte = at[0] + x;
        end.address = level.address(&format, byte / element, at[1] + y, at[2] + z) + byte % element;
        let row = level.tiles.map_or(TILE, |tiles| tiles.row_bytes());
        let inside = match level.tiles {
            Some(_) => byte % row,
            None => end.address % TILE,
        };
        let mapped = storage.mappings().is_none_or(|m| m.is_mapped(end.address));
        (end, row - inside, mapped)
    }

    /// Refuses an array with deferred mapping that has no memory.
    fn check_accessible(&self) -> Res {
        match &self.storage {
            Some(storage) if !storage.is_accessible() => refuse(Code::LAUNCH_FAILED, || {
                "no memory is mapped into the array; see cuMemMapArrayAsync".to_owned()
            }),
            _ => Ok(()),
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

/// One side of a copy, in the terms of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CopyOperand {
    /// In bytes.
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) z: u64,
    /// Level of detail of an array.
    pub(crate) level: u64,
    pub(crate) kind: CUmemorytype,
    pub(crate) host: u64,
    pub(crate) device: u64,
    pub(crate) array: u64,
    /// The context of a copy between contexts; reserved in other copies.
    pub(crate) context: u64,
    pub(crate) pitch: u64,
    pub(crate) height: u64,
}

/// A caller's `CUDA_MEMCPY2D`, `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`, not yet checked.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CopyDescription {
    pub(crate) to: CopyOperand,
    pub(crate) from: CopyOperand,
    pub(crate) extent: Extent,
}

/// Describes a copy in three dimensions; the two structures name the contexts differently.
macro_rules! description {
    ($copy:expr, $source_context:ident, $target_context:ident) => {{
        let copy = $copy;
        CopyDescription {
            from: CopyOperand {
                x: copy.srcXInBytes as u64,
                y: copy.srcY as u64,
                z: copy.srcZ as u64,
                level: copy.srcLOD as u64,
                kind: copy.srcMemoryType,
                host: copy.srcHost.addr() as u64,
                device: copy.srcDevice,
                array: copy.srcArray.addr() as u64,
                context: copy.$source_context.addr() as u64,
                pitch: copy.srcPitch as u64,
                height: copy.srcHeight as u64,
            },
            to: CopyOperand {
                x: copy.dstXInBytes as u64,
                y: copy.dstY as u64,
                z: copy.dstZ as u64,
                level: copy.dstLOD as u64,
                kind: copy.dstMemoryType,
                host: copy.dstHost.addr() as u64,
                device: copy.dstDevice,
                array: copy.dstArray.addr() as u64,
                context: copy.$target_context.addr() as u64,
                pitch: copy.dstPitch as u64,
                height: copy.dstHeight as u64,
            },
            extent: [copy.WidthInBytes, copy.Height, copy.Depth].map(|length| length as u64),
        }
    }};
}

impl From<CUDA_MEMCPY3D> for CopyDescription {
    fn from(copy: CUDA_MEMCPY3D) -> CopyDescription {
        description!(copy, reserved0, reserved1)
    }
}

impl From<CUDA_MEMCPY3D_PEER> for CopyDescription {
    fn from(copy: CUDA_MEMCPY3D_PEER) -> CopyDescription {
        description!(copy, srcContext, dstContext)
    }
}

impl From<CUDA_MEMCPY2D> for CopyDescription {
    /// A copy of one slice.
    fn from(copy: CUDA_MEMCPY2D) -> CopyDescription {
        CopyDescription {
            from: CopyOperand {
                x: copy.srcXInBytes as u64,
                y: copy.srcY as u64,
                kind: copy.srcMemoryType,
                host: copy.srcHost.addr() as u64,
                device: copy.srcDevice,
                array: copy.srcArray.addr() as u64,
                pitch: copy.srcPitch as u64,
                ..CopyOperand::default()
            },
            to: CopyOperand {
                x: copy.dstXInBytes as u64,
                y: copy.dstY as u64,
                kind: copy.dstMemoryType,
                host: copy.dstHost.addr() as u64,
                device: copy.dstDevice,
                array: copy.dstArray.addr() as u64,
                pitch: copy.dstPitch as u64,
                ..CopyOperand::default()
            },
            extent: [copy.WidthInBytes as u64, copy.Height as u64, 1],
        }
    }
}

impl CopyDescription {
    /// Sets the fields of a caller's structure.
    pub(crate) fn write_to(&self, out: &mut CUDA_MEMCPY3D) {
        let CopyDescription { to, from, extent } = self;
        let [width, height, depth] = *extent;
        out.srcXInBytes = from.x as usize;
        out.srcY = from.y as usize;
        out.srcZ = from.z as usize;
        out.srcLOD = from.level as usize;
        out.srcMemoryType = from.kind;
        out.srcHost = from.host as *const _;
        out.srcDevice = from.device;
        out.srcArray = from.array as *mut _;
        out.reserved0 = from.context as *mut _;
        out.srcPitch = from.pitch as usize;
        out.srcHeight = from.height as usize;
        out.dstXInBytes = to.x as usize;
        out.dstY = to.y as usize;
        out.dstZ = to.z as usize;
        out.dstLOD = to.level as usize;
        out.dstMemoryType = to.kind;
        out.dstHost = to.host as *mut _;
        out.dstDevice = to.device;
        out.dstArray = to.array as *mut _;
        out.reserved1 = to.context as *mut _;
        out.dstPitch = to.pitch as usize;
        out.dstHeight = to.height as usize;
        out.WidthInBytes = width as usize;
        out.Height = height as usize;
        out.Depth = depth as usize;
    }
}

pub(crate) const HOST: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_HOST;
pub(super) const DEVICE: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_DEVICE;
pub(crate) const ARRAY: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_ARRAY;
pub(super) const UNIFIED: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
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
        sparse: None,
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
        sparse: array.storage().sparse_properties().map(|_| {
            Box::new(SparsePosition {
                level,
                at: [x, y, z],
            })
        }),
    })
}

/// A checked copy that can run any number of times, now or later.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    to: Side,
    from: Side,
    extent: Extent,
}

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
    pub(crate) fn from_3d(copy: &CopyDescription, peer: bool) -> Res<Job> {
        Job::read_3d(copy, peer, |_, _| false)
    }

    /// [`Job::from_3d`] for a copy that a graph runs later. `accept` recognises ranges that will be allocated by then.
    ///
    /// # Errors
    /// As [`Job::from_3d`].
    pub(crate) fn for_later(copy: &CopyDescription, accept: impl Fn(u64, u64) -> bool) -> Res<Job> {
        Job::read_3d(copy, false, accept)
    }

    fn read_3d(copy: &CopyDescription, peer: bool, accept: impl Fn(u64, u64) -> bool) -> Res<Job> {
        let sides = [&copy.from, &copy.to];
        if peer {
            for side in sides {
                context::by_handle_or_current(side.context)?;
            }
        } else if sides.iter().any(|side| side.context != 0) {
            // Reserved.
            return Err(Code::INVALID_VALUE);
        }
        // Levels of detail must be zero where the operand is an array.
        if sides.iter().any(|s| s.level != 0 && s.kind == ARRAY) {
            return Err(Code::INVALID_VALUE);
        }
        Job::new(&copy.to, &copy.from, copy.extent, accept)
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

    /// The memory outside arrays that the copy uses.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> {
        let sides = [(&self.to, Access::ReadWrite), (&self.from, Access::Read)];
        sides.into_iter().filter_map(|(side, access)| {
            // An empty copy has no span.
            let in_memory = side.storage.is_none() && !self.is_empty();
            let span = in_memory.then(|| side.span(self.extent).ok())??;
            Some((side.start, span, access))
        })
    }

    /// Number of bytes copied.
    pub(crate) fn bytes(&self) -> u64 {
        self.extent.iter().fold(1u64, |n, &e| n.saturating_mul(e))
    }

    /// Copies from or to a sparse array: where no memory is mapped, bytes are read as zero, and not written.
    fn run_sparse(&self) -> Res {
        let [width, height, depth] = self.extent;
        for z in 0..depth {
            for y in 0..height {
                let mut x = 0;
                while x < width {
                    let (target, room, mapped) = self.to.locate(x, y, z);
                    let (source, rest, _) = self.from.locate(x, y, z);
                    let bytes = (width - x).min(room).min(rest);
                    if mapped {
                        copy_range::move_between(target, source, bytes)?;
                    }
                    x += bytes;
                }
            }
        }
        Ok(())
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
        to.check_accessible()?;
        from.check_accessible()?;
        if to.sparse.is_some() || from.sparse.is_some() {
            return self.run_sparse();
        }
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

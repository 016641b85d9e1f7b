//! Copies and fills that kernels launch. Both sides are device memory.

use std::mem::offset_of;

use cupyrite_engine::{KernelMemory, RuntimeFault};
use cupyrite_sys::runtime::{cudaError_t, cudaExtent, cudaMemcpy3DParms, cudaPitchedPtr, cudaPos};

use super::calls::refuse;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{self, Level};
use crate::driver::memory::copy_range::move_bytes;
use crate::driver::memory::space::space;

const INVALID_VALUE: u32 = cudaError_t::cudaErrorInvalidValue.0;
const INVALID_DIRECTION: u32 = cudaError_t::cudaErrorInvalidMemcpyDirection.0;
const INVALID_PITCH: u32 = cudaError_t::cudaErrorInvalidPitchValue.0;

/// `cudaMemcpyDeviceToDevice` and `cudaMemcpyDefault`.
const DEVICE_TO_DEVICE: u64 = 3;
const DEFAULT: u64 = 4;

/// Checks the direction of a copy.
pub(super) fn check_kind(kind: u64) -> Result<(), u32> {
    match kind {
        DEVICE_TO_DEVICE | DEFAULT => Ok(()),
        _ => Err(refuse(INVALID_DIRECTION, || {
            format!(
                "copy in device code: the kind is {kind}; cudaMemcpyDeviceToDevice and cudaMemcpyDefault are allowed"
            )
        })),
    }
}

/// One side: the first address, the pitch, and the bytes of a slice.
#[derive(Clone, Copy)]
struct Side {
    address: u64,
    pitch: u64,
    slice: u64,
}

impl Side {
    /// Checks that the rows do not overlap, and that the first and the last of them are allocated.
    fn check(&self, what: &str, extent: [u64; 3], overlap: u32) -> Result<(), u32> {
        let [width, height, depth] = extent;
        if height > 1 && self.pitch < width {
            return Err(refuse(overlap, || {
                format!(
                    "{what} in device code: the pitch is {}; the rows have {width} bytes",
                    self.pitch
                )
            }));
        }
        let rows = self.pitch.checked_mul(height - 1);
        let slices = self.slice.checked_mul(depth - 1);
        let last = rows
            .zip(slices)
            .and_then(|(r, s)| self.address.checked_add(r)?.checked_add(s))
            .ok_or(INVALID_VALUE)?;
        for row in [self.address, last] {
            if space().find_range(row, width).is_none() {
                return Err(refuse(INVALID_VALUE, || {
                    format!(
                        "{what} in device code: {width} bytes at {row:#x} are not allocated device memory"
                    )
                }));
            }
        }
        Ok(())
    }

    fn row(&self, y: u64, z: u64) -> u64 {
        self.address + y * self.pitch + z * self.slice
    }
}

/// A copy: extent in bytes, rows and slices.
pub(super) struct Copy {
    to: Side,
    from: Side,
    extent: [u64; 3],
}

impl Copy {
    fn new(to: Side, from: Side, extent: [u64; 3]) -> Result<Copy, u32> {
        if !extent.contains(&0) {
            to.check("copy", extent, INVALID_PITCH)?;
            from.check("copy", extent, INVALID_PITCH)?;
        }
        Ok(Copy { to, from, extent })
    }

    /// A copy of a range.
    pub(super) fn linear(to: u64, from: u64, bytes: u64) -> Result<Copy, u32> {
        Copy::pitched((to, bytes), (from, bytes), [bytes, 1])
    }

    /// A copy of rows. Each side is an address and a pitch.
    pub(super) fn pitched(to: (u64, u64), from: (u64, u64), extent: [u64; 2]) -> Result<Copy, u32> {
        let side = |(address, pitch)| Side {
            address,
            pitch,
            slice: 0,
        };
        Copy::new(side(to), side(from), [extent[0], extent[1], 1])
    }

    /// Performs the copy.
    ///
    /// # Errors
    /// `ILLEGAL_ADDRESS` for memory that is not allocated.
    pub(super) fn run(&self) -> Res {
        for_each_row(self.extent, |y, z, width| {
            let (to, from) = (self.to.row(y, z), self.from.row(y, z));
            accessible("copy", "destination", to, width)?;
            accessible("copy", "source", from, width)?;
            move_bytes(to, from, width)
        })
    }
}

/// A fill: extent in bytes, rows and slices.
pub(super) struct Fill {
    to: Side,
    value: u8,
    extent: [u64; 3],
}

impl Fill {
    /// A fill with a byte. `pitches` are that of the rows in bytes, and the rows of a slice.
    pub(super) fn new(
        to: u64,
        value: u8,
        extent: [u64; 3],
        pitches: [u64; 2],
    ) -> Result<Fill, u32> {
        let [pitch, rows] = pitches;
        let slice = pitch.checked_mul(rows).ok_or(INVALID_VALUE)?;
        let to = Side {
            address: to,
            pitch,
            slice,
        };
        if !extent.contains(&0) {
            to.check("fill", extent, INVALID_VALUE)?;
        }
        Ok(Fill { to, value, extent })
    }

    /// Performs the fill.
    ///
    /// # Errors
    /// `ILLEGAL_ADDRESS` for memory that is not allocated.
    pub(super) fn run(&self) -> Res {
        for_each_row(self.extent, |y, z, width| {
            let to = self.to.row(y, z);
            accessible("fill", "destination", to, width)?;
            // SAFETY: the range lies in a live region, which the pin of `for_each_row` keeps mapped.
            unsafe { std::ptr::write_bytes(to as *mut u8, self.value, width as usize) };
            Ok(())
        })
    }
}

/// Calls `run` with the position and the bytes of each row, while memory is pinned.
fn for_each_row(extent: [u64; 3], run: impl Fn(u64, u64, u64) -> Res) -> Res {
    let [width, height, depth] = extent;
    if extent.contains(&0) {
        return Ok(());
    }
    let _pin = space().pin();
    for z in 0..depth {
        for y in 0..height {
            run(y, z, width)?;
        }
    }
    Ok(())
}

/// Checks that a range is still allocated when the work runs. Reports one that is not as a fault, as those of kernels.
fn accessible(what: &str, side: &str, address: u64, bytes: u64) -> Res {
    if space().find_range(address, bytes).is_some() {
        return Ok(());
    }
    let text = format!(
        "cupyrite: illegal address in a {what} that a kernel launched\n  {bytes} bytes at {address:#x}, its {side}, are not \
         allocated device memory\n"
    );
    eprintln!("{}", text.trim_end());
    logs::message(Level::Error, &text);
    Err(Code::ILLEGAL_ADDRESS)
}

/// The copy that a `cudaMemcpy3DParms` in memory of the kernel describes.
pub(super) fn read_3d(
    address: u64,
    memory: &mut dyn KernelMemory,
) -> Result<Result<Copy, u32>, RuntimeFault> {
    let mut bytes = [0; size_of::<cudaMemcpy3DParms>()];
    memory.read(address, &mut bytes)?;
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let kind = word(offset_of!(cudaMemcpy3DParms, kind)) & u64::from(u32::MAX);
    let arrays = [
        word(offset_of!(cudaMemcpy3DParms, srcArray)),
        word(offset_of!(cudaMemcpy3DParms, dstArray)),
    ];
    let extent = offset_of!(cudaMemcpy3DParms, extent);
    let extent = [
        word(extent + offset_of!(cudaExtent, width)),
        word(extent + offset_of!(cudaExtent, height)),
        word(extent + offset_of!(cudaExtent, depth)),
    ];
    let side = |pointer: usize, position: usize| {
        let pitch = word(pointer + offset_of!(cudaPitchedPtr, pitch));
        let rows = word(pointer + offset_of!(cudaPitchedPtr, ysize));
        let slice = pitch.checked_mul(rows)?;
        let start = word(pointer + offset_of!(cudaPitchedPtr, ptr));
        let x = word(position + offset_of!(cudaPos, x));
        let y = word(position + offset_of!(cudaPos, y)).checked_mul(pitch)?;
        let z = word(position + offset_of!(cudaPos, z)).checked_mul(slice)?;
        let address = start.checked_add(x)?.checked_add(y)?.checked_add(z)?;
        Some(Side {
            address,
            pitch,
            slice,
        })
    };
    let to = side(
        offset_of!(cudaMemcpy3DParms, dstPtr),
        offset_of!(cudaMemcpy3DParms, dstPos),
    );
    let from = side(
        offset_of!(cudaMemcpy3DParms, srcPtr),
        offset_of!(cudaMemcpy3DParms, srcPos),
    );
    if arrays != [0; 2] {
        return Ok(Err(refuse(INVALID_VALUE, || {
            "cudaMemcpy3DAsync in device code: arrays are not supported, only memory".into()
        })));
    }
    Ok(check_kind(kind).and_then(|()| {
        let (to, from) = to.zip(from).ok_or(INVALID_VALUE)?;
        Copy::new(to, from, extent)
    }))
}

//! Setting memory: bytes, half words and words, in one and two dimensions.

use super::errors::Code;
use super::memory::space;
use super::stream::{self, Place};
use super::{Res, entries};

/// What a set does, all sizes in bytes.
#[derive(Clone, Copy)]
struct Fill {
    to: u64,
    pitch: u64,
    value: u32,
    /// Size of an element: 1, 2 or 4.
    unit: u64,
    /// Elements a row.
    width: u64,
    height: u64,
}

/// Sets up to this many bytes are done at once if the stream is idle.
const SMALL: u64 = 256 << 10;

impl Fill {
    fn row_bytes(&self) -> Res<u64> {
        self.width.checked_mul(self.unit).ok_or(Code::INVALID_VALUE)
    }

    /// Bytes from the first to one past the last.
    fn span(&self) -> Res<u64> {
        let row = self.row_bytes()?;
        if self.height > 1 && self.pitch < row {
            return Err(Code::INVALID_VALUE);
        }
        self.pitch
            .checked_mul(self.height - 1)
            .and_then(|n| n.checked_add(row))
            .ok_or(Code::INVALID_VALUE)
    }

    /// # Safety
    /// The span must be mapped and stay so.
    unsafe fn perform(&self) {
        for y in 0..self.height {
            let row = self.to + y * self.pitch;
            let n = self.width as usize;
            // SAFETY: the row lies within the span; the address is a multiple of the unit (checked on entry).
            unsafe {
                match self.unit {
                    1 => std::ptr::write_bytes(row as *mut u8, self.value as u8, n),
                    2 => std::slice::from_raw_parts_mut(row as *mut u16, n).fill(self.value as u16),
                    _ => std::slice::from_raw_parts_mut(row as *mut u32, n).fill(self.value),
                }
            }
        }
    }
}

fn set(fill: Fill, stream: u64, per_thread: bool) -> Res {
    let stream = stream::resolve(stream, per_thread)?;
    if !fill.to.is_multiple_of(fill.unit)
        || (fill.height > 1 && !fill.pitch.is_multiple_of(fill.unit))
    {
        return Err(Code::INVALID_VALUE);
    }
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    let span = fill.span()?;
    if space().find_range(fill.to, span).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    let place = if span <= SMALL {
        Place::HereIfIdle
    } else {
        Place::Worker
    };
    stream.enqueue(&[], place, move |_| {
        let _pin = space().pin();
        if space().find_range(fill.to, span).is_none() {
            return Err(Code::ILLEGAL_ADDRESS);
        }
        // SAFETY: the span lies in a live region that the pin keeps mapped.
        unsafe { fill.perform() };
        Ok(())
    });
    Ok(())
}

fn linear(to: u64, value: u32, unit: u64, count: u64, stream: u64, per_thread: bool) -> Res {
    set(
        Fill {
            to,
            pitch: 0,
            value,
            unit,
            width: count,
            height: 1,
        },
        stream,
        per_thread,
    )
}

entries! {
    fn set_d8 "cuMemsetD8_v2" | "cuMemsetD8_v2_ptds" (to: u64, value: u8, count: u64) {
        linear(to, value.into(), 1, count, 0, PER_THREAD)
    }
    fn set_d16 "cuMemsetD16_v2" | "cuMemsetD16_v2_ptds" (to: u64, value: u16, count: u64) {
        linear(to, value.into(), 2, count, 0, PER_THREAD)
    }
    fn set_d32 "cuMemsetD32_v2" | "cuMemsetD32_v2_ptds" (to: u64, value: u32, count: u64) {
        linear(to, value, 4, count, 0, PER_THREAD)
    }
    fn set_d8_async "cuMemsetD8Async" | "cuMemsetD8Async_ptsz" (to: u64, value: u8, count: u64, stream: u64) {
        linear(to, value.into(), 1, count, stream, PER_THREAD)
    }
    fn set_d16_async "cuMemsetD16Async" | "cuMemsetD16Async_ptsz" (to: u64, value: u16, count: u64, stream: u64) {
        linear(to, value.into(), 2, count, stream, PER_THREAD)
    }
    fn set_d32_async "cuMemsetD32Async" | "cuMemsetD32Async_ptsz" (to: u64, value: u32, count: u64, stream: u64) {
        linear(to, value, 4, count, stream, PER_THREAD)
    }
    fn set_2d_d8 "cuMemsetD2D8_v2" | "cuMemsetD2D8_v2_ptds" (to: u64, pitch: u64, value: u8, width: u64, height: u64) {
        set(Fill { to, pitch, value: value.into(), unit: 1, width, height }, 0, PER_THREAD)
    }
    fn set_2d_d16 "cuMemsetD2D16_v2" | "cuMemsetD2D16_v2_ptds"
        (to: u64, pitch: u64, value: u16, width: u64, height: u64) {
        set(Fill { to, pitch, value: value.into(), unit: 2, width, height }, 0, PER_THREAD)
    }
    fn set_2d_d32 "cuMemsetD2D32_v2" | "cuMemsetD2D32_v2_ptds"
        (to: u64, pitch: u64, value: u32, width: u64, height: u64) {
        set(Fill { to, pitch, value, unit: 4, width, height }, 0, PER_THREAD)
    }
    fn set_2d_d8_async "cuMemsetD2D8Async" | "cuMemsetD2D8Async_ptsz"
        (to: u64, pitch: u64, value: u8, width: u64, height: u64, stream: u64) {
        set(Fill { to, pitch, value: value.into(), unit: 1, width, height }, stream, PER_THREAD)
    }
    fn set_2d_d16_async "cuMemsetD2D16Async" | "cuMemsetD2D16Async_ptsz"
        (to: u64, pitch: u64, value: u16, width: u64, height: u64, stream: u64) {
        set(Fill { to, pitch, value: value.into(), unit: 2, width, height }, stream, PER_THREAD)
    }
    fn set_2d_d32_async "cuMemsetD2D32Async" | "cuMemsetD2D32Async_ptsz"
        (to: u64, pitch: u64, value: u32, width: u64, height: u64, stream: u64) {
        set(Fill { to, pitch, value, unit: 4, width, height }, stream, PER_THREAD)
    }
}

//! Memory fills with 8-, 16- and 32-bit values, in one and two dimensions.

use crate::driver::entry::Res;
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::graph;
use crate::driver::memory::space::space;
use crate::driver::stream::OpPlacement;
use crate::driver::stream::resolve;

/// A fill operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) to: u64,
    /// Distance between rows in bytes.
    pub(crate) pitch: u64,
    pub(crate) value: u32,
    /// Size of an element in bytes: 1, 2 or 4.
    pub(crate) unit: u64,
    /// Elements per row.
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// Up to this size in bytes, a fill runs immediately if the stream is idle.
const SMALL: u64 = 256 << 10;

impl Fill {
    fn row_bytes(&self) -> Res<u64> {
        self.width.checked_mul(self.unit).ok_or(Code::INVALID_VALUE)
    }

    /// Bytes from the first byte to one past the last.
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

    /// Whether the fill is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Checks the alignment, and that the span lies in one live region or in one that `accept` recognises. Returns the
    /// length of the span in bytes.
    ///
    /// # Errors
    /// `INVALID_VALUE` if a check fails.
    pub(crate) fn check(&self, accept: impl FnOnce(u64, u64) -> bool) -> Res<u64> {
        if !matches!(self.unit, 1 | 2 | 4)
            || !self.to.is_multiple_of(self.unit)
            || (self.height > 1 && !self.pitch.is_multiple_of(self.unit))
        {
            return Err(Code::INVALID_VALUE);
        }
        if self.is_empty() {
            return Ok(0);
        }
        let span = self.span()?;
        if space().find_range(self.to, span).is_none() && !accept(self.to, span) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(span)
    }

    /// Performs the fill on this thread.
    ///
    /// # Errors
    /// `ILLEGAL_ADDRESS` if the memory has been freed.
    pub(crate) fn run(&self) -> Res {
        let _pin = space().pin();
        if self
            .check(|_, _| false)
            .map_err(|_| Code::ILLEGAL_ADDRESS)?
            > 0
        {
            // SAFETY: the span lies in a live region that the pin keeps mapped.
            unsafe { self.perform() };
        }
        Ok(())
    }

    /// # Safety
    /// The span is mapped and stays mapped.
    unsafe fn perform(&self) {
        for y in 0..self.height {
            let row = self.to + y * self.pitch;
            let n = self.width as usize;
            // SAFETY: the row lies within the span; the address is a multiple of the unit, checked on entry.
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
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    if graph::capture::is_capturing(&stream)? {
        if fill.is_empty() {
            return Ok(());
        }
        let node = graph::Memset::prepare(fill, stream.context.clone())?;
        return graph::capture::record(&stream, graph::Payload::Memset(node));
    }
    let span = fill.check(|_, _| false)?;
    if span == 0 {
        return Ok(());
    }
    let place = if span <= SMALL {
        OpPlacement::CallerIfIdle
    } else {
        OpPlacement::Worker
    };
    stream.enqueue(&[], place, move |_| fill.run());
    Ok(())
}

/// A fill by a call without a stream argument.
fn set_now(fill: Fill, per_thread: bool) -> Res {
    // Fails while the stream is capturing: a call without a stream cannot become part of a graph.
    resolve::resolve(0, per_thread)?;
    set(fill, 0, per_thread)
}

/// A single row of elements.
fn row(to: u64, value: u32, unit: u64, count: u64) -> Fill {
    Fill {
        to,
        pitch: 0,
        value,
        unit,
        width: count,
        height: 1,
    }
}

entries! {
    fn set_d8 "cuMemsetD8_v2" | "cuMemsetD8_v2_ptds" (to: u64, value: u8, count: u64) {
        set_now(row(to, value.into(), 1, count), PER_THREAD)
    }
    fn set_d16 "cuMemsetD16_v2" | "cuMemsetD16_v2_ptds" (to: u64, value: u16, count: u64) {
        set_now(row(to, value.into(), 2, count), PER_THREAD)
    }
    fn set_d32 "cuMemsetD32_v2" | "cuMemsetD32_v2_ptds" (to: u64, value: u32, count: u64) {
        set_now(row(to, value, 4, count), PER_THREAD)
    }
    fn set_d8_async "cuMemsetD8Async" | "cuMemsetD8Async_ptsz" (to: u64, value: u8, count: u64, stream: u64) {
        set(row(to, value.into(), 1, count), stream, PER_THREAD)
    }
    fn set_d16_async "cuMemsetD16Async" | "cuMemsetD16Async_ptsz" (to: u64, value: u16, count: u64, stream: u64) {
        set(row(to, value.into(), 2, count), stream, PER_THREAD)
    }
    fn set_d32_async "cuMemsetD32Async" | "cuMemsetD32Async_ptsz" (to: u64, value: u32, count: u64, stream: u64) {
        set(row(to, value, 4, count), stream, PER_THREAD)
    }
    fn set_2d_d8 "cuMemsetD2D8_v2" | "cuMemsetD2D8_v2_ptds" (to: u64, pitch: u64, value: u8, width: u64, height: u64) {
        set_now(Fill { to, pitch, value: value.into(), unit: 1, width, height }, PER_THREAD)
    }
    fn set_2d_d16 "cuMemsetD2D16_v2" | "cuMemsetD2D16_v2_ptds"
        (to: u64, pitch: u64, value: u16, width: u64, height: u64) {
        set_now(Fill { to, pitch, value: value.into(), unit: 2, width, height }, PER_THREAD)
    }
    fn set_2d_d32 "cuMemsetD2D32_v2" | "cuMemsetD2D32_v2_ptds"
        (to: u64, pitch: u64, value: u32, width: u64, height: u64) {
        set_now(Fill { to, pitch, value, unit: 4, width, height }, PER_THREAD)
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

//! A fill of memory with one value: its checks and its execution. The entry points are in `memset`, graph nodes in
//! `graph::node`.

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::memory::space::space;

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

//! Shared code of copies of all shapes: range checks, the transfer of bytes, and the op that performs a copy.
//!
//! Addresses are checked when the call is made, so that the caller gets `INVALID_VALUE`, and again when the copy runs,
//! so that memory freed in the meantime is an error and not a crash.

use cupyrite_engine::memory::{RegionKind, checked};
use parking_lot::Mutex;

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::memory::queued;
use crate::driver::memory::space::space;
use crate::driver::stream::queue;
use crate::driver::stream::{OpPlacement, Stream};

/// The kind of memory that a caller declares for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedMemory {
    /// Device memory.
    Device,
    /// Device memory in a context that the caller names; that context's rights apply.
    Peer,
    /// Any memory of the process.
    Any,
}

/// Whether a range is known to the device, and whether copies to and from it are asynchronous.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeClass {
    Known,
    Pageable,
}

pub(crate) fn classify(address: u64, len: u64, expect: ExpectedMemory) -> Res<RangeClass> {
    if space().find_range(address, len).is_some() {
        return Ok(RangeClass::Known);
    }
    match space().find(address) {
        // The range starts in a region and exceeds it.
        Some(_) => Err(Code::INVALID_VALUE),
        None if queued::covers(address, len) => Ok(RangeClass::Known),
        None if expect != ExpectedMemory::Any || address == 0 => Err(Code::INVALID_VALUE),
        // Reserved addresses belong to the device even if they are unmapped or inaccessible.
        None if space().reservation_of(address).is_some() => Err(Code::INVALID_VALUE),
        None => {
            address.checked_add(len).ok_or(Code::INVALID_VALUE)?;
            Ok(RangeClass::Pageable)
        }
    }
}

/// Whether a range can be accessed directly.
fn direct(address: u64, len: u64, write: bool) -> bool {
    space()
        .find_range(address, len)
        .is_some_and(|r| !(write && r.kind == RegionKind::Registered && r.read_only))
}

const BOUNCE: usize = 256 << 10;

/// An address, and whether it is known to lie in memory that stays valid.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) address: u64,
    /// The address lies in an array that the copy keeps alive.
    pub(crate) proved: bool,
}

/// Copies `len` bytes; overlapping ranges are copied as if through a buffer. The caller holds a pin.
pub(crate) fn move_bytes(to: u64, from: u64, len: u64) -> Res {
    let end = |address| End {
        address,
        proved: false,
    };
    move_between(end(to), end(from), len)
}

/// [`move_bytes`] for ends that may lie in arrays.
pub(crate) fn move_between(target: End, source: End, len: u64) -> Res {
    let (to, from) = (target.address, source.address);
    if len == 0 {
        return Ok(());
    }
    let known = (
        target.proved || direct(to, len, true),
        source.proved || direct(from, len, false),
    );
    match known {
        (true, true) => {
            // SAFETY: both ranges lie in live regions that the caller's pin keeps mapped, or in arrays that the copy
            // keeps alive.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len as usize) };
            Ok(())
        }
        // SAFETY: the destination lies in a live region that the caller's pin keeps mapped, or in an array.
        (true, false) => Ok(unsafe { checked::read_into(from, to as *mut u8, len) }?),
        // SAFETY: the source lies in a live region that the caller's pin keeps mapped, or in an array.
        (false, true) => Ok(unsafe { checked::write_from(to, from as *const u8, len) }?),
        (false, false) => {
            let mut buffer = vec![0u8; BOUNCE.min(len as usize)];
            let chunks = len.div_ceil(BOUNCE as u64);
            for i in 0..chunks {
                // Copies backwards if the ranges overlap that way.
                let i = if to > from { chunks - 1 - i } else { i };
                let at = i * BOUNCE as u64;
                let n = (len - at).min(BOUNCE as u64) as usize;
                checked::read_bytes(from + at, &mut buffer[..n])?;
                checked::write_bytes(to + at, &buffer[..n])?;
            }
            Ok(())
        }
    }
}

/// When a call returns to its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyMode {
    /// After the copy.
    Sync,
    /// When the caller's pageable memory is no longer needed.
    Async,
}

/// Up to this size, the caller performs the copy immediately if the stream is idle; otherwise the source is staged.
pub(crate) const SMALL: u64 = 64 << 10;

/// Enqueues the copy. If the call waits for it, an invalid address becomes the caller's error instead of the context's.
pub(crate) fn perform(
    stream: &std::sync::Arc<Stream>,
    mode: CopyMode,
    pageable: bool,
    bytes: u64,
    copy: impl FnOnce() -> Res + Send + 'static,
) -> Res {
    if mode == CopyMode::Async && !pageable {
        let place = if bytes <= SMALL {
            OpPlacement::CallerIfIdle
        } else {
            OpPlacement::Worker
        };
        stream.enqueue(&[], place, move |_| {
            let _pin = space().pin();
            copy().map_err(|_| Code::ILLEGAL_ADDRESS)
        });
        return Ok(());
    }
    let outcome = std::sync::Arc::new(Mutex::new(Ok(())));
    let report = outcome.clone();
    let op = stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| {
        let _pin = space().pin();
        *report.lock() = copy();
        Ok(())
    });
    if let Err(code) = queue::wait(&op, &stream.context) {
        // The caller may free its memory now.
        if queue::withdraw(&op) || code != Code::NOT_PERMITTED {
            return Err(code);
        }
    }
    if mode == CopyMode::Sync {
        stream.context.printf.flush();
    }
    stream.context.check()?;
    *outcome.lock()
}

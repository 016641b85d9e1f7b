//! One-dimensional copies between device and host memory, and what copies of all shapes share.
//!
//! Addresses are checked when the call is made, so that the caller gets `INVALID_VALUE`, and again when the copy runs,
//! so that memory freed in the meantime is an error and not a crash.

use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::graph;
use crate::driver::memory::space::space;
use crate::driver::stream::queue;
use crate::driver::stream::resolve;
use crate::driver::stream::{OpPlacement, Stream};
use crate::memory::{Access, RegionKind, checked};

/// What a caller declares an address to be.
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
        None if expect != ExpectedMemory::Any || address == 0 => Err(Code::INVALID_VALUE),
        // Reserved addresses belong to the device even if they are unmapped or inaccessible.
        None if space().reservation_of(address).is_some() => Err(Code::INVALID_VALUE),
        None => {
            address.checked_add(len).ok_or(Code::INVALID_VALUE)?;
            Ok(RangeClass::Pageable)
        }
    }
}

/// Refuses device-to-device copies if one side is pool memory or a mapping to which the stream's device has no access.
/// The driver moves memory from `cuMemAlloc` between any two devices itself, and likewise memory copied to or from the
/// host.
///
/// # Errors
/// `INVALID_VALUE`.
fn check_rights(context: &Context, to: u64, from: u64, len: u64) -> Res {
    // A single device can access all memory.
    if device::all()?.len() < 2 {
        return Ok(());
    }
    let of_device = |address| {
        space()
            .find_range(address, len)
            .filter(|region| matches!(region.kind, RegionKind::Device | RegionKind::Virtual))
    };
    let (Some(target), Some(source)) = (of_device(to), of_device(from)) else {
        return Ok(());
    };
    let wanted = [
        (target, to, Access::ReadWrite),
        (source, from, Access::Read),
    ];
    for (region, address, wanted) in wanted {
        let given = region.reach.access(context.device);
        if region.reach.has_peers() || given == Access::ReadWrite || given == wanted {
            continue;
        }
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "device {}, in whose stream the copy is, has no right to the memory at {address:#x}: its pool or mapping does \
                 not grant it (cuMemPoolSetAccess, cuMemSetAccess)",
                context.device
            )
        });
    }
    Ok(())
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
const SMALL: u64 = 64 << 10;

fn linear(
    to: u64,
    from: u64,
    len: u64,
    expect: (ExpectedMemory, ExpectedMemory),
    stream: &std::sync::Arc<Stream>,
    mode: CopyMode,
) -> Res {
    if len == 0 {
        return Ok(());
    }
    let target = classify(to, len, expect.0)?;
    let source = classify(from, len, expect.1)?;
    if expect != PEER && (target, source) == (RangeClass::Known, RangeClass::Known) {
        check_rights(&stream.context, to, from, len)?;
    }
    if mode == CopyMode::Async
        && source == RangeClass::Pageable
        && target == RangeClass::Known
        && len <= SMALL
    {
        // Staged, because the caller may modify its memory after the call returns.
        let mut staged = vec![0u8; len as usize];
        checked::read_bytes(from, &mut staged)?;
        stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| {
            let _pin = space().pin();
            move_bytes(to, staged.as_ptr() as u64, len).map_err(|_| Code::ILLEGAL_ADDRESS)
        });
        return Ok(());
    }
    let pageable = target == RangeClass::Pageable || source == RangeClass::Pageable;
    perform(stream, mode, pageable, len, move || {
        move_bytes(to, from, len)
    })
}

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
    queue::wait(&op, &stream.context)?;
    if mode == CopyMode::Sync {
        stream.context.printf.flush();
    }
    stream.context.check()?;
    *outcome.lock()
}

const DD: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Device, ExpectedMemory::Device);
const PEER: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Peer, ExpectedMemory::Peer);
const HTOD: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Device, ExpectedMemory::Any);
const DTOH: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Any, ExpectedMemory::Device);
const ANY: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Any, ExpectedMemory::Any);

/// `CUmemorytype`.
const HOST: u32 = sys::CUmemorytype::CU_MEMORYTYPE_HOST.0;
const DEVICE: u32 = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE.0;
const UNIFIED: u32 = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED.0;

fn sync(
    to: u64,
    from: u64,
    len: u64,
    expect: (ExpectedMemory, ExpectedMemory),
    per_thread: bool,
) -> Res {
    // Device-to-device copies do not block the host, even in the blocking calls.
    let mode = if matches!(expect, DD | PEER) {
        CopyMode::Async
    } else {
        CopyMode::Sync
    };
    linear(
        to,
        from,
        len,
        expect,
        &resolve::resolve(0, per_thread)?,
        mode,
    )
}

fn async_(
    to: u64,
    from: u64,
    len: u64,
    expect: (ExpectedMemory, ExpectedMemory),
    stream: u64,
    per_thread: bool,
) -> Res {
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    if graph::capture::is_capturing(&stream)? {
        if len == 0 {
            return Ok(());
        }
        let kinds = match expect {
            ANY => (UNIFIED, UNIFIED),
            HTOD => (DEVICE, HOST),
            DTOH => (HOST, DEVICE),
            _ => (DEVICE, DEVICE),
        };
        let context = stream.context.clone();
        let node = graph::Memcpy::linear((kinds.0, to), (kinds.1, from), len, context)?;
        return graph::capture::record(&stream, graph::Payload::Memcpy(node));
    }
    linear(to, from, len, expect, &stream, CopyMode::Async)
}

fn peers(to: u64, from: u64) -> Res {
    context::by_handle_or_current(to)?;
    context::by_handle_or_current(from)?;
    Ok(())
}

entries! {
    fn copy_htod "cuMemcpyHtoD_v2" | "cuMemcpyHtoD_v2_ptds" (to: u64, from: u64, len: u64) {
        sync(to, from, len, HTOD, PER_THREAD)
    }
    fn copy_dtoh "cuMemcpyDtoH_v2" | "cuMemcpyDtoH_v2_ptds" (to: u64, from: u64, len: u64) {
        sync(to, from, len, DTOH, PER_THREAD)
    }
    fn copy_dtod "cuMemcpyDtoD_v2" | "cuMemcpyDtoD_v2_ptds" (to: u64, from: u64, len: u64) {
        sync(to, from, len, DD, PER_THREAD)
    }
    fn copy_any "cuMemcpy" | "cuMemcpy_ptds" (to: u64, from: u64, len: u64) {
        sync(to, from, len, ANY, PER_THREAD)
    }
    fn copy_peer "cuMemcpyPeer" | "cuMemcpyPeer_ptds"
        (to: u64, to_context: u64, from: u64, from_context: u64, len: u64) {
        peers(to_context, from_context)?;
        sync(to, from, len, PEER, PER_THREAD)
    }
    fn copy_htod_async "cuMemcpyHtoDAsync_v2" | "cuMemcpyHtoDAsync_v2_ptsz"
        (to: u64, from: u64, len: u64, stream: u64) {
        async_(to, from, len, HTOD, stream, PER_THREAD)
    }
    fn copy_dtoh_async "cuMemcpyDtoHAsync_v2" | "cuMemcpyDtoHAsync_v2_ptsz"
        (to: u64, from: u64, len: u64, stream: u64) {
        async_(to, from, len, DTOH, stream, PER_THREAD)
    }
    fn copy_dtod_async "cuMemcpyDtoDAsync_v2" | "cuMemcpyDtoDAsync_v2_ptsz"
        (to: u64, from: u64, len: u64, stream: u64) {
        async_(to, from, len, DD, stream, PER_THREAD)
    }
    fn copy_any_async "cuMemcpyAsync" | "cuMemcpyAsync_ptsz" (to: u64, from: u64, len: u64, stream: u64) {
        async_(to, from, len, ANY, stream, PER_THREAD)
    }
    fn copy_peer_async "cuMemcpyPeerAsync" | "cuMemcpyPeerAsync_ptsz"
        (to: u64, to_context: u64, from: u64, from_context: u64, len: u64, stream: u64) {
        peers(to_context, from_context)?;
        async_(to, from, len, PEER, stream, PER_THREAD)
    }
}

//! One-dimensional copies between device and host memory.

use cupyrite_engine::memory::{Access, checked};
use cupyrite_sys::driver as sys;

use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::graph;
use crate::driver::memory::copy_range::{
    CopyMode, ExpectedMemory, RangeClass, SMALL, classify, move_bytes, perform,
};
use crate::driver::memory::rights;
use crate::driver::memory::space::space;
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve;
use crate::driver::stream::{OpPlacement, Stream};

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
    if expect != PEER {
        let uses = [(to, len, Access::ReadWrite), (from, len, Access::Read)];
        rights::check_copy_in_current(&stream.context, uses)?;
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

const DD: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Device, ExpectedMemory::Device);
const PEER: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Peer, ExpectedMemory::Peer);
const HTOD: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Device, ExpectedMemory::Any);
const DTOH: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Any, ExpectedMemory::Device);
const ANY: (ExpectedMemory, ExpectedMemory) = (ExpectedMemory::Any, ExpectedMemory::Any);

/// `CUmemorytype`.
const HOST: sys::CUmemorytype = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
const DEVICE: sys::CUmemorytype = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
const UNIFIED: sys::CUmemorytype = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED;

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
    if capture_state::is_capturing(&stream)? {
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
        if expect != PEER {
            rights::check_copy_in_current(&stream.context, node.uses())?;
        }
        return graph::capture::record(&stream, graph::Payload::Memcpy(node));
    }
    linear(to, from, len, expect, &stream, CopyMode::Async)
}

fn peers(to: u64, from: u64) -> Res {
    context::by_handle_or_current(to)?;
    context::by_handle_or_current(from)?;
    Ok(())
}

driver_entry_points! {
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

//! Copies: one, two and three dimensions, between memory of the device and of the host.
//!
//! An address is checked when the call is made (so that the caller gets `INVALID_VALUE`) and again when the copy runs
//! (so that memory freed meanwhile is an error and not a crash).

use std::collections::HashSet;
use std::sync::Mutex;

use super::checked::{Plain, get};
use super::context;
use super::errors::Code;
use super::memory::space;
use super::queue::{self, lock};
use super::stream::{self, Place, Stream};
use super::{Res, entries};
use crate::memory::{Kind, checked};

/// What a caller says an address is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// It must lie in a region of the device.
    Device,
    /// Any memory of the process.
    Any,
}

/// Whether a range is known to the device, and whether copies to or from it are asynchronous.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Known,
    Pageable,
}

fn classify(address: u64, len: u64, expect: Expect) -> Res<Found> {
    match space().find(address) {
        Some(region) if region.contains(address, len) => Ok(Found::Known),
        // It begins in a region and runs out of it.
        Some(_) => Err(Code::INVALID_VALUE),
        None if expect == Expect::Device || address == 0 => Err(Code::INVALID_VALUE),
        None => {
            address.checked_add(len).ok_or(Code::INVALID_VALUE)?;
            Ok(Found::Pageable)
        }
    }
}

/// A range of bytes that may be accessed without further ado, or not.
fn direct(address: u64, len: u64, write: bool) -> bool {
    space()
        .find_range(address, len)
        .is_some_and(|r| !(write && r.kind == Kind::Registered && r.read_only))
}

const BOUNCE: usize = 256 << 10;

/// Copies `len` bytes; overlapping ranges come out as if copied through a buffer. The caller holds a pin.
fn move_bytes(to: u64, from: u64, len: u64) -> Res {
    if len == 0 {
        return Ok(());
    }
    match (direct(to, len, true), direct(from, len, false)) {
        (true, true) => {
            // SAFETY: both ranges lie in live regions, and the caller's pin keeps them mapped.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len as usize) };
            Ok(())
        }
        // SAFETY: the destination lies in a live region that the caller's pin keeps mapped.
        (true, false) => Ok(unsafe { checked::read_into(from, to as *mut u8, len) }?),
        // SAFETY: the source lies in a live region that the caller's pin keeps mapped.
        (false, true) => Ok(unsafe { checked::write_from(to, from as *const u8, len) }?),
        (false, false) => {
            let mut buffer = vec![0u8; BOUNCE.min(len as usize)];
            let chunks = len.div_ceil(BOUNCE as u64);
            for i in 0..chunks {
                // From the end if the ranges overlap that way.
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

/// How a call behaves towards its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Returns when the copy is done.
    Sync,
    /// Returns when the caller's pageable memory is no longer needed.
    Async,
}

/// Copies up to this size are done at once by the caller if the stream is idle, and staged if it is not.
const SMALL: u64 = 64 << 10;

fn linear(
    to: u64,
    from: u64,
    len: u64,
    expect: (Expect, Expect),
    stream: &std::sync::Arc<Stream>,
    mode: Mode,
) -> Res {
    if len == 0 {
        return Ok(());
    }
    let target = classify(to, len, expect.0)?;
    let source = classify(from, len, expect.1)?;
    if mode == Mode::Async && source == Found::Pageable && target == Found::Known && len <= SMALL {
        // Staged: the caller may change its memory as soon as the call returns.
        let mut staged = vec![0u8; len as usize];
        checked::read_bytes(from, &mut staged)?;
        stream.enqueue(&[], Place::HereIfIdle, move |_| {
            let _pin = space().pin();
            move_bytes(to, staged.as_ptr() as u64, len).map_err(|_| Code::ILLEGAL_ADDRESS)
        });
        return Ok(());
    }
    let pageable = target == Found::Pageable || source == Found::Pageable;
    perform(stream, mode, pageable, len, move || {
        move_bytes(to, from, len)
    })
}

/// Enters the copy into the stream; waits if it has to, in which case a bad address is the caller's error and not the
/// context's.
fn perform(
    stream: &std::sync::Arc<Stream>,
    mode: Mode,
    pageable: bool,
    bytes: u64,
    copy: impl FnOnce() -> Res + Send + 'static,
) -> Res {
    if mode == Mode::Async && !pageable {
        let place = if bytes <= SMALL {
            Place::HereIfIdle
        } else {
            Place::Worker
        };
        stream.enqueue(&[], place, move |_| {
            let _pin = space().pin();
            copy().map_err(|_| Code::ILLEGAL_ADDRESS)
        });
        return Ok(());
    }
    let outcome = std::sync::Arc::new(Mutex::new(Ok(())));
    let report = outcome.clone();
    let op = stream.enqueue(&[], Place::HereIfIdle, move |_| {
        let _pin = space().pin();
        *lock(&report) = copy();
        Ok(())
    });
    queue::wait(&op, &stream.context)?;
    if mode == Mode::Sync {
        stream.context.printf.flush();
    }
    stream.context.check()?;
    *lock(&outcome)
}

const DD: (Expect, Expect) = (Expect::Device, Expect::Device);
const HTOD: (Expect, Expect) = (Expect::Device, Expect::Any);
const DTOH: (Expect, Expect) = (Expect::Any, Expect::Device);
const ANY: (Expect, Expect) = (Expect::Any, Expect::Any);

fn sync(to: u64, from: u64, len: u64, expect: (Expect, Expect), per_thread: bool) -> Res {
    // Copies within the device do not wait for the host, even in the blocking calls.
    let mode = if expect == DD {
        Mode::Async
    } else {
        Mode::Sync
    };
    linear(
        to,
        from,
        len,
        expect,
        &stream::resolve(0, per_thread)?,
        mode,
    )
}

fn async_(
    to: u64,
    from: u64,
    len: u64,
    expect: (Expect, Expect),
    stream: u64,
    per_thread: bool,
) -> Res {
    linear(
        to,
        from,
        len,
        expect,
        &stream::resolve(stream, per_thread)?,
        Mode::Async,
    )
}

/// One side of a copy of rows and slices.
#[derive(Clone, Copy)]
struct Side {
    /// Address of the first byte.
    start: u64,
    pitch: u64,
    /// Bytes from one slice to the next.
    slice: u64,
    expect: Expect,
}

/// Width in bytes, rows, slices.
type Extent = [u64; 3];

impl Side {
    /// Bytes from the first to one past the last.
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
}

/// Where `CUDA_MEMCPY2D`/`3D` say a side is.
struct Place3 {
    x: u64,
    y: u64,
    z: u64,
    kind: u32,
    host: u64,
    device: u64,
    pitch: u64,
    height: u64,
}

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;
/// What attribute `MAX_PITCH` says.
const MAX_PITCH: u64 = i32::MAX as u64;

fn side(p: &Place3, extent: Extent) -> Res<Side> {
    let [width, height, depth] = extent;
    let (base, expect) = match p.kind {
        HOST => (p.host, Expect::Any),
        DEVICE => (p.device, Expect::Device),
        UNIFIED => (p.device, Expect::Any),
        ARRAY => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    };
    // A pitch of zero means rows without gaps.
    let row = p.x.checked_add(width).ok_or(Code::INVALID_VALUE)?;
    let pitch = if p.pitch == 0 { row } else { p.pitch };
    if pitch < row || (expect == Expect::Device && pitch > MAX_PITCH) {
        return Err(Code::INVALID_VALUE);
    }
    let rows = p.y.checked_add(height).ok_or(Code::INVALID_VALUE)?;
    let slice_height = if p.height == 0 { rows } else { p.height };
    if depth > 1 && slice_height < rows {
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
    })
}

fn blocks(
    to: &Place3,
    from: &Place3,
    extent: Extent,
    stream: u64,
    per_thread: bool,
    mode: Mode,
) -> Res {
    let stream = stream::resolve(stream, per_thread)?;
    if extent.contains(&0) {
        return Ok(());
    }
    let (to, from) = (side(to, extent)?, side(from, extent)?);
    let target = classify(to.start, to.span(extent)?, to.expect)?;
    let source = classify(from.start, from.span(extent)?, from.expect)?;
    let pageable = target == Found::Pageable || source == Found::Pageable;
    let mode = match mode {
        Mode::Sync if to.expect == Expect::Device && from.expect == Expect::Device => Mode::Async,
        other => other,
    };
    let bytes = extent.iter().fold(1u64, |n, &e| n.saturating_mul(e));
    perform(&stream, mode, pageable, bytes, move || {
        let [width, height, depth] = extent;
        if width == to.pitch
            && width == from.pitch
            && (depth == 1 || to.slice == from.slice && to.slice == width * height)
        {
            return move_bytes(to.start, from.start, width * height * depth);
        }
        for z in 0..depth {
            for y in 0..height {
                let (t, f) = (
                    to.start + z * to.slice + y * to.pitch,
                    from.start + z * from.slice + y * from.pitch,
                );
                move_bytes(t, f, width)?;
            }
        }
        Ok(())
    })
}

/// `CUDA_MEMCPY2D_v2` as 64-bit words; the memory type is the low half of its word.
type Words2 = [u64; 16];

fn copy_2d(params: u64, stream: u64, per_thread: bool, mode: Mode) -> Res {
    let w: Words2 = read(params)?;
    let place = |o: usize| Place3 {
        x: w[o],
        y: w[o + 1],
        z: 0,
        kind: w[o + 2] as u32,
        host: w[o + 3],
        device: w[o + 4],
        pitch: w[o + 6],
        height: 0,
    };
    blocks(
        &place(7),
        &place(0),
        [w[14], w[15], 1],
        stream,
        per_thread,
        mode,
    )
}

/// `CUDA_MEMCPY3D_v2` and `CUDA_MEMCPY3D_PEER` as 64-bit words.
type Words3 = [u64; 25];

fn copy_3d(params: u64, stream: u64, per_thread: bool, mode: Mode, peer: bool) -> Res {
    let w: Words3 = read(params)?;
    if peer {
        for handle in [w[8], w[19]] {
            context::by_handle_or_current(handle)?;
        }
    } else if w[8] != 0 || w[19] != 0 {
        // Reserved.
        return Err(Code::INVALID_VALUE);
    }
    // Levels of detail are an array's business.
    if w[3] != 0 || w[14] != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let place = |o: usize| Place3 {
        x: w[o],
        y: w[o + 1],
        z: w[o + 2],
        kind: w[o + 4] as u32,
        host: w[o + 5],
        device: w[o + 6],
        pitch: w[o + 9],
        height: w[o + 10],
    };
    blocks(
        &place(11),
        &place(0),
        [w[22], w[23], w[24]],
        stream,
        per_thread,
        mode,
    )
}

fn read<T: Plain>(address: u64) -> Res<T> {
    context::current()?;
    get(address)
}

fn peers(to: u64, from: u64) -> Res {
    context::by_handle_or_current(to)?;
    context::by_handle_or_current(from)?;
    Ok(())
}

/// Pairs (context, peer) for which access is enabled. It changes nothing else: there is one memory.
static PEERS: Mutex<Option<HashSet<(u64, u64)>>> = Mutex::new(None);

pub(super) fn enable_peer(mine: u64, peer: u64) -> Res {
    let new = lock(&PEERS).get_or_insert_default().insert((mine, peer));
    if new {
        Ok(())
    } else {
        Err(Code::PEER_ACCESS_ALREADY_ENABLED)
    }
}

pub(super) fn disable_peer(mine: u64, peer: u64) -> Res {
    let known = lock(&PEERS).get_or_insert_default().remove(&(mine, peer));
    if known {
        Ok(())
    } else {
        Err(Code::PEER_ACCESS_NOT_ENABLED)
    }
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
        sync(to, from, len, DD, PER_THREAD)
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
        async_(to, from, len, DD, stream, PER_THREAD)
    }
    fn copy2d "cuMemcpy2D_v2" | "cuMemcpy2D_v2_ptds" (params: u64) {
        copy_2d(params, 0, PER_THREAD, Mode::Sync)
    }
    fn copy2d_unaligned "cuMemcpy2DUnaligned_v2" | "cuMemcpy2DUnaligned_v2_ptds" (params: u64) {
        copy_2d(params, 0, PER_THREAD, Mode::Sync)
    }
    fn copy2d_async "cuMemcpy2DAsync_v2" | "cuMemcpy2DAsync_v2_ptsz" (params: u64, stream: u64) {
        copy_2d(params, stream, PER_THREAD, Mode::Async)
    }
    fn copy3d "cuMemcpy3D_v2" | "cuMemcpy3D_v2_ptds" (params: u64) {
        copy_3d(params, 0, PER_THREAD, Mode::Sync, false)
    }
    fn copy3d_async "cuMemcpy3DAsync_v2" | "cuMemcpy3DAsync_v2_ptsz" (params: u64, stream: u64) {
        copy_3d(params, stream, PER_THREAD, Mode::Async, false)
    }
    fn copy3d_peer "cuMemcpy3DPeer" | "cuMemcpy3DPeer_ptds" (params: u64) {
        copy_3d(params, 0, PER_THREAD, Mode::Sync, true)
    }
    fn copy3d_peer_async "cuMemcpy3DPeerAsync" | "cuMemcpy3DPeerAsync_ptsz" (params: u64, stream: u64) {
        copy_3d(params, stream, PER_THREAD, Mode::Async, true)
    }
}

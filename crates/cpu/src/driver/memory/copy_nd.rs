//! The entry points of copies of rows and slices between memory and arrays: `cuMemcpy2D`, `cuMemcpy3D` and their
//! variants. A call becomes a [`Job`].

use crate::driver::array;
use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{Plain, get};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::graph;
use crate::driver::memory::copy_job::{ARRAY, DEVICE, HOST, Job, Words2, Words3};
use crate::driver::memory::copy_range::{CopyMode, ExpectedMemory, perform};
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve;

/// Enqueues a copy, or adds it to the graph that the stream captures.
fn enter(words: &Words3, peer: bool, stream: u64, per_thread: bool, mode: CopyMode) -> Res {
    let stream = match mode {
        CopyMode::Sync => resolve::resolve(stream, per_thread)?,
        CopyMode::Async => resolve::resolve_for_capture(stream, per_thread)?,
    };
    if capture_state::is_capturing(&stream)? {
        if words[22..].contains(&0) {
            return Ok(());
        }
        let mut words = *words;
        // Nodes ignore the contexts of the sides, because all memory is in one address space.
        (words[8], words[19]) = (0, 0);
        let node = graph::Memcpy::prepare(words, stream.context.clone())?;
        return graph::capture::record(&stream, graph::Payload::Memcpy(node));
    }
    let job = Job::from_3d(words, peer)?;
    if job.is_empty() {
        return Ok(());
    }
    let mode = match mode {
        CopyMode::Sync if job.is_internal() => CopyMode::Async,
        other => other,
    };
    let (pageable, bytes) = (job.is_pageable()?, job.bytes());
    perform(&stream, mode, pageable, bytes, move || job.run())
}

/// Expresses a two-dimensional copy as a copy of one slice.
fn as_3d(w: &Words2) -> Words3 {
    let mut out = [0; 25];
    for (from, to) in [(0, 0), (7, 11)] {
        out[to..to + 2].copy_from_slice(&w[from..from + 2]);
        out[to + 4..to + 8].copy_from_slice(&w[from + 2..from + 6]);
        out[to + 9] = w[from + 6];
    }
    out[22..].copy_from_slice(&[w[14], w[15], 1]);
    out
}

fn copy_2d(params: u64, stream: u64, per_thread: bool, mode: CopyMode) -> Res {
    enter(&as_3d(&read(params)?), false, stream, per_thread, mode)
}

fn copy_3d(params: u64, stream: u64, per_thread: bool, mode: CopyMode, peer: bool) -> Res {
    enter(&read(params)?, peer, stream, per_thread, mode)
}

/// One end of a one-dimensional copy.
#[derive(Clone, Copy)]
enum LinearOperand {
    Address(u64, ExpectedMemory),
    /// An array and an offset in bytes.
    Array(u64, u64),
}

fn copy_flat(
    to: LinearOperand,
    from: LinearOperand,
    len: u64,
    stream: u64,
    per_thread: bool,
    mode: CopyMode,
) -> Res {
    context::current()?;
    let mut words = [0; 25];
    for (at, end) in [(0, from), (11, to)] {
        match end {
            LinearOperand::Address(start, ExpectedMemory::Device | ExpectedMemory::Peer) => {
                (words[at + 4], words[at + 6]) = (DEVICE.into(), start);
            }
            LinearOperand::Address(start, ExpectedMemory::Any) => {
                (words[at + 4], words[at + 5]) = (HOST.into(), start);
            }
            LinearOperand::Array(handle, offset) => {
                array::find(handle).ok_or(Code::INVALID_VALUE)?;
                // A one-dimensional copy reaches only the first row.
                (words[at], words[at + 4], words[at + 7]) = (offset, ARRAY.into(), handle);
            }
        }
    }
    words[22..].copy_from_slice(&[len, 1, 1]);
    enter(&words, false, stream, per_thread, mode)
}

const fn host(address: u64) -> LinearOperand {
    LinearOperand::Address(address, ExpectedMemory::Any)
}

const fn device(address: u64) -> LinearOperand {
    LinearOperand::Address(address, ExpectedMemory::Device)
}

fn read<T: Plain>(address: u64) -> Res<T> {
    context::current()?;
    get(address)
}

driver_entry_points! {
    fn copy_dtoa "cuMemcpyDtoA_v2" | "cuMemcpyDtoA_v2_ptds" (to: u64, offset: u64, from: u64, len: u64) {
        copy_flat(LinearOperand::Array(to, offset), device(from), len, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy_atod "cuMemcpyAtoD_v2" | "cuMemcpyAtoD_v2_ptds" (to: u64, from: u64, offset: u64, len: u64) {
        copy_flat(device(to), LinearOperand::Array(from, offset), len, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy_htoa "cuMemcpyHtoA_v2" | "cuMemcpyHtoA_v2_ptds" (to: u64, offset: u64, from: u64, len: u64) {
        copy_flat(LinearOperand::Array(to, offset), host(from), len, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy_atoh "cuMemcpyAtoH_v2" | "cuMemcpyAtoH_v2_ptds" (to: u64, from: u64, offset: u64, len: u64) {
        copy_flat(host(to), LinearOperand::Array(from, offset), len, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy_atoa "cuMemcpyAtoA_v2" | "cuMemcpyAtoA_v2_ptds"
        (to: u64, to_offset: u64, from: u64, from_offset: u64, len: u64) {
        let (to, from) = (LinearOperand::Array(to, to_offset), LinearOperand::Array(from, from_offset));
        copy_flat(to, from, len, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy_htoa_async "cuMemcpyHtoAAsync_v2" | "cuMemcpyHtoAAsync_v2_ptsz"
        (to: u64, offset: u64, from: u64, len: u64, stream: u64) {
        copy_flat(LinearOperand::Array(to, offset), host(from), len, stream, PER_THREAD, CopyMode::Async)
    }
    fn copy_atoh_async "cuMemcpyAtoHAsync_v2" | "cuMemcpyAtoHAsync_v2_ptsz"
        (to: u64, from: u64, offset: u64, len: u64, stream: u64) {
        copy_flat(host(to), LinearOperand::Array(from, offset), len, stream, PER_THREAD, CopyMode::Async)
    }
    fn copy2d "cuMemcpy2D_v2" | "cuMemcpy2D_v2_ptds" (params: u64) {
        copy_2d(params, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy2d_unaligned "cuMemcpy2DUnaligned_v2" | "cuMemcpy2DUnaligned_v2_ptds" (params: u64) {
        copy_2d(params, 0, PER_THREAD, CopyMode::Sync)
    }
    fn copy2d_async "cuMemcpy2DAsync_v2" | "cuMemcpy2DAsync_v2_ptsz" (params: u64, stream: u64) {
        copy_2d(params, stream, PER_THREAD, CopyMode::Async)
    }
    fn copy3d "cuMemcpy3D_v2" | "cuMemcpy3D_v2_ptds" (params: u64) {
        copy_3d(params, 0, PER_THREAD, CopyMode::Sync, false)
    }
    fn copy3d_async "cuMemcpy3DAsync_v2" | "cuMemcpy3DAsync_v2_ptsz" (params: u64, stream: u64) {
        copy_3d(params, stream, PER_THREAD, CopyMode::Async, false)
    }
    fn copy3d_peer "cuMemcpy3DPeer" | "cuMemcpy3DPeer_ptds" (params: u64) {
        copy_3d(params, 0, PER_THREAD, CopyMode::Sync, true)
    }
    fn copy3d_peer_async "cuMemcpy3DPeerAsync" | "cuMemcpy3DPeerAsync_ptsz" (params: u64, stream: u64) {
        copy_3d(params, stream, PER_THREAD, CopyMode::Async, true)
    }
}

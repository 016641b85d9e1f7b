//! The entry points of copies of rows and slices between memory and arrays: `cuMemcpy2D`, `cuMemcpy3D` and their
//! variants. A call becomes a [`Job`].

use cupyrite_sys::driver::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER};

use crate::driver::array;
use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{Plain, get};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::graph;
use crate::driver::memory::copy_job::{ARRAY, CopyDescription, CopyOperand, DEVICE, HOST, Job};
use crate::driver::memory::copy_range::{CopyMode, ExpectedMemory, perform};
use crate::driver::memory::rights;
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve;

/// Enqueues a copy, or adds it to the graph that the stream captures.
fn enter(
    mut copy: CopyDescription,
    peer: bool,
    stream: u64,
    per_thread: bool,
    mode: CopyMode,
) -> Res {
    let stream = match mode {
        CopyMode::Sync => resolve::resolve(stream, per_thread)?,
        CopyMode::Async => resolve::resolve_for_capture(stream, per_thread)?,
    };
    if capture_state::is_capturing(&stream)? {
        if copy.extent.contains(&0) {
            return Ok(());
        }
        // Nodes ignore the contexts of the sides, because all memory is in one address space.
        (copy.from.context, copy.to.context) = (0, 0);
        let node = graph::Memcpy::prepare(copy, stream.context.clone())?;
        if !peer {
            rights::check_copy_in_current(&stream.context, node.uses())?;
        }
        return graph::capture::record(&stream, graph::Payload::Memcpy(node));
    }
    let job = Job::from_3d(&copy, peer)?;
    if job.is_empty() {
        return Ok(());
    }
    if !peer {
        rights::check_copy_in_current(&stream.context, job.uses())?;
    }
    let mode = match mode {
        CopyMode::Sync if job.is_internal() => CopyMode::Async,
        other => other,
    };
    let (pageable, bytes) = (job.is_pageable()?, job.bytes());
    perform(&stream, mode, pageable, bytes, move || job.run())
}

fn copy_2d(params: u64, stream: u64, per_thread: bool, mode: CopyMode) -> Res {
    let copy = read::<CUDA_MEMCPY2D>(params)?;
    enter(copy.into(), false, stream, per_thread, mode)
}

fn copy_3d(params: u64, stream: u64, per_thread: bool, mode: CopyMode, peer: bool) -> Res {
    let copy = if peer {
        read::<CUDA_MEMCPY3D_PEER>(params)?.into()
    } else {
        read::<CUDA_MEMCPY3D>(params)?.into()
    };
    enter(copy, peer, stream, per_thread, mode)
}

/// One end of a one-dimensional copy.
#[derive(Clone, Copy)]
enum LinearOperand {
    Address(u64, ExpectedMemory),
    /// An array and an offset in bytes.
    Array(u64, u64),
}

impl LinearOperand {
    fn operand(self) -> Res<CopyOperand> {
        let mut operand = CopyOperand::default();
        match self {
            LinearOperand::Address(start, ExpectedMemory::Device | ExpectedMemory::Peer) => {
                (operand.kind, operand.device) = (DEVICE, start);
            }
            LinearOperand::Address(start, ExpectedMemory::Any) => {
                (operand.kind, operand.host) = (HOST, start);
            }
            LinearOperand::Array(handle, offset) => {
                array::find(handle).ok_or(Code::INVALID_VALUE)?;
                // A one-dimensional copy reaches only the first row.
                (operand.x, operand.kind, operand.array) = (offset, ARRAY, handle);
            }
        }
        Ok(operand)
    }
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
    let copy = CopyDescription {
        from: from.operand()?,
        to: to.operand()?,
        extent: [len, 1, 1],
    };
    enter(copy, false, stream, per_thread, mode)
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

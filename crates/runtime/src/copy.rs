//! Copies of contiguous memory, and the direction of all copies.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUmemorytype, CUstream};
use cupyrite_sys::loader::per_thread_default_stream;
use cupyrite_sys::runtime::cudaMemcpyKind;

use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::stream::handle;

/// Location of source and destination, as given by a `cudaMemcpyKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// Inferred from the addresses.
    Default,
}

impl CopyDirection {
    /// Converts a `cudaMemcpyKind`.
    pub(crate) fn new(kind: u32) -> Res<CopyDirection> {
        Ok(match cudaMemcpyKind(kind as _) {
            cudaMemcpyKind::cudaMemcpyHostToHost => CopyDirection::HostToHost,
            cudaMemcpyKind::cudaMemcpyHostToDevice => CopyDirection::HostToDevice,
            cudaMemcpyKind::cudaMemcpyDeviceToHost => CopyDirection::DeviceToHost,
            cudaMemcpyKind::cudaMemcpyDeviceToDevice => CopyDirection::DeviceToDevice,
            cudaMemcpyKind::cudaMemcpyDefault => CopyDirection::Default,
            _ => return Err(Error::INVALID_MEMCPY_DIRECTION),
        })
    }

    /// The driver's memory type of the source.
    pub(crate) fn source(self) -> CUmemorytype {
        match self {
            CopyDirection::HostToHost | CopyDirection::HostToDevice => {
                CUmemorytype::CU_MEMORYTYPE_HOST
            }
            CopyDirection::DeviceToHost | CopyDirection::DeviceToDevice => {
                CUmemorytype::CU_MEMORYTYPE_DEVICE
            }
            CopyDirection::Default => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        }
    }

    /// The driver's memory type of the destination.
    pub(crate) fn target(self) -> CUmemorytype {
        match self {
            CopyDirection::HostToHost | CopyDirection::DeviceToHost => {
                CUmemorytype::CU_MEMORYTYPE_HOST
            }
            CopyDirection::HostToDevice | CopyDirection::DeviceToDevice => {
                CUmemorytype::CU_MEMORYTYPE_DEVICE
            }
            CopyDirection::Default => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        }
    }
}

/// How a copy or fill is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Execution {
    /// By the driver's synchronous function.
    Sync,
    /// In a stream that is then synchronised: replaces the driver's synchronous function for a default stream other
    /// than the one for which it was resolved.
    Waited(CUstream),
    /// Asynchronously in a stream.
    In(CUstream),
}

impl Execution {
    /// The execution of a synchronous function.
    pub(crate) fn sync<const PER_THREAD: bool>() -> Execution {
        if PER_THREAD == per_thread_default_stream() {
            Execution::Sync
        } else {
            Execution::Waited(handle::<PER_THREAD>(0))
        }
    }

    /// The execution of an asynchronous function.
    pub(crate) fn queued<const PER_THREAD: bool>(stream: u64) -> Execution {
        Execution::In(handle::<PER_THREAD>(stream))
    }

    /// Calls the synchronous or the asynchronous driver function, and synchronises if necessary.
    pub(crate) fn run(self, now: impl FnOnce() -> Res, queue: impl FnOnce(CUstream) -> Res) -> Res {
        match self {
            Execution::Sync => now(),
            Execution::In(stream) => queue(stream),
            Execution::Waited(stream) => {
                queue(stream)?;
                cu!(cuStreamSynchronize(stream))
            }
        }
    }
}

/// A copy of `count` contiguous bytes.
pub(crate) fn linear(to: u64, from: u64, count: usize, kind: u32, execution: Execution) -> Res {
    let kind = CopyDirection::new(kind)?;
    context::current()?;
    if count == 0 {
        return Ok(());
    }
    let (host_to, host_from) = (to as *mut c_void, from as *const c_void);
    match kind {
        CopyDirection::HostToDevice => execution.run(
            || cu!(cuMemcpyHtoD(to, host_from, count)),
            |stream| cu!(cuMemcpyHtoDAsync(to, host_from, count, stream)),
        ),
        CopyDirection::DeviceToHost => execution.run(
            || cu!(cuMemcpyDtoH(host_to, from, count)),
            |stream| cu!(cuMemcpyDtoHAsync(host_to, from, count, stream)),
        ),
        CopyDirection::DeviceToDevice => execution.run(
            || cu!(cuMemcpyDtoD(to, from, count)),
            |stream| cu!(cuMemcpyDtoDAsync(to, from, count, stream)),
        ),
        // The driver's unified copies treat unknown host memory as host memory.
        CopyDirection::HostToHost | CopyDirection::Default => execution.run(
            || cu!(cuMemcpy(to, from, count)),
            |stream| cu!(cuMemcpyAsync(to, from, count, stream)),
        ),
    }
}

runtime_entry_points! {
    fn memcpy "cudaMemcpy" | "cudaMemcpy_ptds" (to: u64, from: u64, count: usize, kind: u32) {
        linear(to, from, count, kind, Execution::sync::<PER_THREAD>())
    }
    fn memcpy_async "cudaMemcpyAsync" | "cudaMemcpyAsync_ptsz"
        (to: u64, from: u64, count: usize, kind: u32, stream: u64) {
        linear(to, from, count, kind, Execution::queued::<PER_THREAD>(stream))
    }
}

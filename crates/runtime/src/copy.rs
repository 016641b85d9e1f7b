//! Copies of plain ranges of bytes, and what all copies share: the kind that says which side lies where.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUmemorytype, CUstream};
use cupyrite_sys::loader::per_thread_default_stream;
use cupyrite_sys::runtime::cudaMemcpyKind;

use crate::entry::{cu, entries};
use crate::errors::Error;
use crate::stream::handle;
use crate::{Res, context};

/// Where source and target of a copy lie, as a `cudaMemcpyKind` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// The addresses tell.
    Default,
}

impl Kind {
    /// The kind with that number.
    pub(crate) fn new(kind: u32) -> Res<Kind> {
        Ok(match cudaMemcpyKind(kind as _) {
            cudaMemcpyKind::cudaMemcpyHostToHost => Kind::HostToHost,
            cudaMemcpyKind::cudaMemcpyHostToDevice => Kind::HostToDevice,
            cudaMemcpyKind::cudaMemcpyDeviceToHost => Kind::DeviceToHost,
            cudaMemcpyKind::cudaMemcpyDeviceToDevice => Kind::DeviceToDevice,
            cudaMemcpyKind::cudaMemcpyDefault => Kind::Default,
            _ => return Err(Error::INVALID_MEMCPY_DIRECTION),
        })
    }

    /// The driver's memory type of the source.
    pub(crate) fn source(self) -> CUmemorytype {
        match self {
            Kind::HostToHost | Kind::HostToDevice => CUmemorytype::CU_MEMORYTYPE_HOST,
            Kind::DeviceToHost | Kind::DeviceToDevice => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            Kind::Default => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        }
    }

    /// The driver's memory type of the target.
    pub(crate) fn target(self) -> CUmemorytype {
        match self {
            Kind::HostToHost | Kind::DeviceToHost => CUmemorytype::CU_MEMORYTYPE_HOST,
            Kind::HostToDevice | Kind::DeviceToDevice => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            Kind::Default => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        }
    }
}

/// How a copy or fill runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// At once, by the driver's synchronous function.
    Sync,
    /// In a stream whose end is waited for: the synchronous form for a default stream that the driver's synchronous
    /// functions, as they were resolved, do not work in.
    Waited(CUstream),
    /// In a stream.
    In(CUstream),
}

impl Order {
    /// Of the synchronous form of a function.
    pub(crate) fn sync<const PER_THREAD: bool>() -> Order {
        if PER_THREAD == per_thread_default_stream() {
            Order::Sync
        } else {
            Order::Waited(handle::<PER_THREAD>(0))
        }
    }

    /// Of the asynchronous form of a function.
    pub(crate) fn queued<const PER_THREAD: bool>(stream: u64) -> Order {
        Order::In(handle::<PER_THREAD>(stream))
    }

    /// Runs one of the two forms of a driver function, then waits if need be.
    pub(crate) fn run(self, now: impl FnOnce() -> Res, queue: impl FnOnce(CUstream) -> Res) -> Res {
        match self {
            Order::Sync => now(),
            Order::In(stream) => queue(stream),
            Order::Waited(stream) => {
                queue(stream)?;
                cu!(cuStreamSynchronize(stream))
            }
        }
    }
}

fn linear(to: u64, from: u64, count: usize, kind: u32, order: Order) -> Res {
    let kind = Kind::new(kind)?;
    context::current()?;
    if count == 0 {
        return Ok(());
    }
    let (host_to, host_from) = (to as *mut c_void, from as *const c_void);
    match kind {
        Kind::HostToDevice => order.run(
            || cu!(cuMemcpyHtoD(to, host_from, count)),
            |stream| cu!(cuMemcpyHtoDAsync(to, host_from, count, stream)),
        ),
        Kind::DeviceToHost => order.run(
            || cu!(cuMemcpyDtoH(host_to, from, count)),
            |stream| cu!(cuMemcpyDtoHAsync(host_to, from, count, stream)),
        ),
        Kind::DeviceToDevice => order.run(
            || cu!(cuMemcpyDtoD(to, from, count)),
            |stream| cu!(cuMemcpyDtoDAsync(to, from, count, stream)),
        ),
        // Host memory that the driver does not know is host memory to its unified copies.
        Kind::HostToHost | Kind::Default => order.run(
            || cu!(cuMemcpy(to, from, count)),
            |stream| cu!(cuMemcpyAsync(to, from, count, stream)),
        ),
    }
}

entries! {
    fn memcpy "cudaMemcpy" | "cudaMemcpy_ptds" (to: u64, from: u64, count: usize, kind: u32) {
        linear(to, from, count, kind, Order::sync::<PER_THREAD>())
    }
    fn memcpy_async "cudaMemcpyAsync" | "cudaMemcpyAsync_ptsz"
        (to: u64, from: u64, count: usize, kind: u32, stream: u64) {
        linear(to, from, count, kind, Order::queued::<PER_THREAD>(stream))
    }
}

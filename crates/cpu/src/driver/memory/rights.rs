//! Which memory the copies and fills of a device may use, where there are several devices. NVIDIA documents little of
//! this; it was measured on two H200s (driver 580):
//!
//! - Copies look at the device of the current context, in whichever stream they are; batches look at the stream's. The
//!   copies and fills of graph nodes look at the context that the node names.
//! - Memory from `cuMemAlloc` is copied between any two devices. Pool memory and mappings are copied only where they
//!   grant the device access (`cuMemPoolSetAccess`, `cuMemSetAccess`).
//! - Copies that name the contexts of both sides (`cuMemcpyPeer`) are allowed always.
//! - Fills look at the stream's device. They need access as a kernel does, so memory from `cuMemAlloc` needs
//!   `cuCtxEnablePeerAccess`. A captured fill is checked when its graph is instantiated or updates an executable graph.
//!
//! Memory that a launched graph has not allocated yet is not checked.

use cupyrite_engine::memory::{Access, Region, RegionKind};

use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::device::peers;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::space::space;

/// A range of addresses, and the access that an operation needs.
pub(crate) type Use = (u64, u64, Access);

/// Whether access can be missing at all: a single device may use all memory.
fn several_devices() -> Res<bool> {
    Ok(device::all()?.len() > 1)
}

/// The device memory that contains a range. Host and managed memory is accessible to all devices.
fn device_memory(address: u64, len: u64) -> Option<Region> {
    space()
        .find_range(address, len)
        .filter(|region| matches!(region.kind, RegionKind::Device | RegionKind::Virtual))
}

fn refused(device: i32, address: u64, how: &str) -> Res {
    refuse(Code::INVALID_VALUE, || {
        format!("device {device} has no access to the memory at {address:#x}: {how}")
    })
}

/// Refuses a copy on `device` if a side is pool memory or a mapping that does not grant access to it. Ranges outside
/// device memory are allowed.
///
/// # Errors
/// `INVALID_VALUE`.
pub(crate) fn check_copy(device: i32, uses: impl IntoIterator<Item = Use>) -> Res {
    if !several_devices()? {
        return Ok(());
    }
    for (address, len, wanted) in uses {
        let Some(region) = device_memory(address, len) else {
            continue;
        };
        let given = region.reach.access(device);
        if !region.reach.has_peers() && given != Access::ReadWrite && given != wanted {
            return refused(
                device,
                address,
                "copy with a context (for a batch, a stream) of a device that has access, or grant access to the pool or \
                 mapping (cuMemPoolSetAccess, cuMemSetAccess)",
            );
        }
    }
    Ok(())
}

/// [`check_copy`] for the device of the current context, also of one that has failed. Without a current context, for the
/// device of `stream`, the context of the copy's stream.
///
/// # Errors
/// `INVALID_VALUE`.
pub(crate) fn check_copy_in_current(stream: &Context, uses: impl IntoIterator<Item = Use>) -> Res {
    if !several_devices()? {
        return Ok(());
    }
    let device = context::current_to_wait().map_or(stream.device, |entry| entry.context.device);
    check_copy(device, uses)
}

/// Refuses a fill in a stream of `context` if its kernels could not write to the memory.
///
/// # Errors
/// `INVALID_VALUE`.
pub(crate) fn check_fill(context: &Context, address: u64, len: u64) -> Res {
    if !several_devices()? {
        return Ok(());
    }
    let Some(region) = device_memory(address, len) else {
        return Ok(());
    };
    if peers::viewer(context).access(&region) == Access::ReadWrite {
        return Ok(());
    }
    refused(
        context.device,
        address,
        "use a stream of the memory's device, or grant access (cuCtxEnablePeerAccess, cuMemPoolSetAccess, cuMemSetAccess)",
    )
}

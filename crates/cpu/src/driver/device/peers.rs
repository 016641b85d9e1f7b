//! Peers: which context may use the memory of which other one, and what that means for its kernels.
//!
//! Copies of what `cuMemAlloc` gave need no permission, as with the real driver: it moves data between any two devices
//! itself. Memory of pools and mappings is copied by the rights that those give: see `copy::check_rights`.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::driver::context::Context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put};
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::memory::Viewer;

/// Pairs (context, peer): kernels of the first may use what the second has allocated.
static PEERS: Mutex<Option<HashSet<(u64, u64)>>> = Mutex::new(None);

/// Lets kernels of `mine` use the memory of `peer`.
///
/// # Errors
/// `PEER_ACCESS_ALREADY_ENABLED`.
pub(crate) fn enable(mine: u64, peer: u64) -> Res {
    let new = PEERS.lock().get_or_insert_default().insert((mine, peer));
    if new {
        Ok(())
    } else {
        Err(Code::PEER_ACCESS_ALREADY_ENABLED)
    }
}

/// The reverse of [`enable`].
///
/// # Errors
/// `PEER_ACCESS_NOT_ENABLED`.
pub(crate) fn disable(mine: u64, peer: u64) -> Res {
    let known = PEERS.lock().get_or_insert_default().remove(&(mine, peer));
    if known {
        Ok(())
    } else {
        Err(Code::PEER_ACCESS_NOT_ENABLED)
    }
}

/// Forgets what a context that ends was allowed, and allowed others.
pub(crate) fn forget_context(context: u64) {
    PEERS
        .lock()
        .get_or_insert_default()
        .retain(|&(mine, peer)| mine != context && peer != context);
}

/// Who a kernel of that context is to memory.
pub(crate) fn viewer(context: &Context) -> Viewer {
    let mut guard = PEERS.lock();
    let peers: Arc<[u64]> = guard
        .get_or_insert_default()
        .iter()
        .filter(|pair| pair.0 == context.id)
        .map(|pair| pair.1)
        .collect();
    Viewer {
        device: context.device,
        peers,
    }
}

/// What can be done natively with a `CUatomicOperation` on memory of the host or of a peer, as
/// `CUatomicOperationCapability` bits. It is what kernels can do on memory of their own: there is one memory.
///
/// # Errors
/// `INVALID_VALUE` for a number that is no operation.
fn capabilities(operation: u32) -> Res<u32> {
    const SIGNED: u32 = 1;
    const UNSIGNED: u32 = 2;
    const REDUCTION: u32 = 4;
    const SCALAR_32: u32 = 8;
    const SCALAR_64: u32 = 16;
    const BOTH: u32 = SCALAR_32 | SCALAR_64;
    Ok(match operation {
        // Integers: add, minimum, maximum.
        0..=2 => SIGNED | UNSIGNED | REDUCTION | BOTH,
        // Increment and decrement with a bound.
        3 | 4 => UNSIGNED | REDUCTION | SCALAR_32,
        // And, or, exclusive or.
        5..=7 => UNSIGNED | REDUCTION | BOTH,
        // Exchange, compare and swap.
        8 | 9 => UNSIGNED | BOTH,
        // Floating point: add; there is no instruction for minimum and maximum.
        10 => SIGNED | REDUCTION | BOTH,
        11 | 12 => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

fn tell_capabilities(out: u64, operations: u64, count: u32) -> Res {
    non_null(out)?;
    non_null(operations)?;
    if count == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let mut found = Vec::new();
    for operation in get_array::<u32>(operations, count as usize)? {
        found.push(capabilities(operation)?);
    }
    for (i, value) in found.into_iter().enumerate() {
        put(out.wrapping_add(4 * i as u64), value)?;
    }
    Ok(())
}

entries! {
    fn host_atomics "cuDeviceGetHostAtomicCapabilities" (out: u64, operations: u64, count: u32, device: i32) {
        device::by_ordinal(device)?;
        tell_capabilities(out, operations, count)
    }
    fn peer_atomics "cuDeviceGetP2PAtomicCapabilities"
        (out: u64, operations: u64, count: u32, from: i32, to: i32) {
        if device::by_ordinal(from)?.ordinal == device::by_ordinal(to)?.ordinal {
            return Err(Code::INVALID_DEVICE);
        }
        tell_capabilities(out, operations, count)
    }
}

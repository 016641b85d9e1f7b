//! Peer access: which context's kernels may access which other context's memory.
//!
//! Copies of memory from `cuMemAlloc` need no permission, as with NVIDIA's driver, which moves data between any two
//! devices itself. Copies of pool memory and of mappings follow their own access rights: see `memory::rights`.

use std::collections::HashSet;
use std::sync::Arc;

use cupyrite_engine::memory::Viewer;
use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::context::Context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;

/// Pairs (context, peer): kernels of the first may access memory that the second has allocated.
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

/// Reverts [`enable`].
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

/// Removes all permissions from and to a destroyed context.
pub(crate) fn remove_context(context: u64) {
    PEERS
        .lock()
        .get_or_insert_default()
        .retain(|&(mine, peer)| mine != context && peer != context);
}

/// Identifies the context's kernels in memory access checks.
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

/// Atomic capabilities of a `CUatomicOperation` on host or peer memory, as `CUatomicOperationCapability` bits. They
/// equal the capabilities on a kernel's own memory, because all memory is host memory.
///
/// # Errors
/// `INVALID_VALUE` for an unknown operation.
fn capabilities(operation: u32) -> Res<u32> {
    use sys::CUatomicOperation as Operation;
    const SIGNED: u32 = sys::CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SIGNED.0;
    const UNSIGNED: u32 = sys::CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_UNSIGNED.0;
    const REDUCTION: u32 = sys::CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_REDUCTION.0;
    const SCALAR_32: u32 = sys::CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_32.0;
    const SCALAR_64: u32 = sys::CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_64.0;
    const BOTH: u32 = SCALAR_32 | SCALAR_64;
    Ok(match Operation(operation) {
        Operation::CU_ATOMIC_OPERATION_INTEGER_ADD
        | Operation::CU_ATOMIC_OPERATION_INTEGER_MIN
        | Operation::CU_ATOMIC_OPERATION_INTEGER_MAX => SIGNED | UNSIGNED | REDUCTION | BOTH,
        Operation::CU_ATOMIC_OPERATION_INTEGER_INCREMENT
        | Operation::CU_ATOMIC_OPERATION_INTEGER_DECREMENT => UNSIGNED | REDUCTION | SCALAR_32,
        Operation::CU_ATOMIC_OPERATION_AND
        | Operation::CU_ATOMIC_OPERATION_OR
        | Operation::CU_ATOMIC_OPERATION_XOR => UNSIGNED | REDUCTION | BOTH,
        Operation::CU_ATOMIC_OPERATION_EXCHANGE | Operation::CU_ATOMIC_OPERATION_CAS => {
            UNSIGNED | BOTH
        }
        // Floating point has `add`, but no instruction for minimum and maximum.
        Operation::CU_ATOMIC_OPERATION_FLOAT_ADD => SIGNED | REDUCTION | BOTH,
        Operation::CU_ATOMIC_OPERATION_FLOAT_MIN | Operation::CU_ATOMIC_OPERATION_FLOAT_MAX => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

fn put_capabilities(out: u64, operations: u64, count: u32) -> Res {
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

driver_entry_points! {
    fn host_atomics "cuDeviceGetHostAtomicCapabilities" (out: u64, operations: u64, count: u32, device: i32) {
        device::by_ordinal(device)?;
        put_capabilities(out, operations, count)
    }
    fn peer_atomics "cuDeviceGetP2PAtomicCapabilities"
        (out: u64, operations: u64, count: u32, from: i32, to: i32) {
        if device::by_ordinal(from)?.ordinal == device::by_ordinal(to)?.ordinal {
            return Err(Code::INVALID_DEVICE);
        }
        put_capabilities(out, operations, count)
    }
}

//! Variables of device code that the program registered with this runtime: address, size, and copies. A symbol is the
//! address of the variable's host counterpart.

use crate::checked::{non_null, put};
use crate::copy::{CopyDirection, Execution, linear};
use crate::entry::runtime_entry_points;
use crate::errors::{Error, Res};
use crate::registration;

/// The device address at `offset` in a variable, of which `count` bytes are accessed.
///
/// # Errors
/// `cudaErrorInvalidSymbol` for an unknown symbol, `cudaErrorInvalidValue` for a range outside of the variable.
pub(crate) fn range(symbol: u64, offset: usize, count: usize) -> Res<u64> {
    let variable = registration::variable(symbol)?;
    match offset.checked_add(count) {
        Some(end) if end <= variable.size => Ok(variable.address + offset as u64),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Refuses the direction of a copy to a symbol unless its destination may be device memory.
pub(crate) fn to_device(kind: u32) -> Res {
    match CopyDirection::new(kind)? {
        CopyDirection::HostToDevice | CopyDirection::DeviceToDevice | CopyDirection::Default => {
            Ok(())
        }
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

/// Refuses the direction of a copy from a symbol unless its source may be device memory.
pub(crate) fn from_device(kind: u32) -> Res {
    match CopyDirection::new(kind)? {
        CopyDirection::DeviceToHost | CopyDirection::DeviceToDevice | CopyDirection::Default => {
            Ok(())
        }
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

fn copy_to(
    symbol: u64,
    from: u64,
    count: usize,
    offset: usize,
    kind: u32,
    execution: Execution,
) -> Res {
    to_device(kind)?;
    linear(range(symbol, offset, count)?, from, count, kind, execution)
}

fn copy_from(
    to: u64,
    symbol: u64,
    count: usize,
    offset: usize,
    kind: u32,
    execution: Execution,
) -> Res {
    from_device(kind)?;
    linear(to, range(symbol, offset, count)?, count, kind, execution)
}

runtime_entry_points! {
    fn get_symbol_address "cudaGetSymbolAddress" (out: u64, symbol: u64) {
        non_null(out)?;
        put(out, registration::variable(symbol)?.address)
    }
    fn get_symbol_size "cudaGetSymbolSize" (out: u64, symbol: u64) {
        non_null(out)?;
        put(out, registration::variable(symbol)?.size)
    }
    fn memcpy_to_symbol "cudaMemcpyToSymbol" | "cudaMemcpyToSymbol_ptds"
        (symbol: u64, from: u64, count: usize, offset: usize, kind: u32) {
        copy_to(symbol, from, count, offset, kind, Execution::sync::<PER_THREAD>())
    }
    fn memcpy_from_symbol "cudaMemcpyFromSymbol" | "cudaMemcpyFromSymbol_ptds"
        (to: u64, symbol: u64, count: usize, offset: usize, kind: u32) {
        copy_from(to, symbol, count, offset, kind, Execution::sync::<PER_THREAD>())
    }
    fn memcpy_to_symbol_async "cudaMemcpyToSymbolAsync" | "cudaMemcpyToSymbolAsync_ptsz"
        (symbol: u64, from: u64, count: usize, offset: usize, kind: u32, stream: u64) {
        copy_to(symbol, from, count, offset, kind, Execution::queued::<PER_THREAD>(stream))
    }
    fn memcpy_from_symbol_async "cudaMemcpyFromSymbolAsync" | "cudaMemcpyFromSymbolAsync_ptsz"
        (to: u64, symbol: u64, count: usize, offset: usize, kind: u32, stream: u64) {
        copy_from(to, symbol, count, offset, kind, Execution::queued::<PER_THREAD>(stream))
    }
}

//! `vprintf`, as a GPU and its driver execute it.
//!
//! The kernel's side ([`call`]) finds the conversions that it supports, copies their arguments into a record and
//! returns their number. The host's side ([`host`]) reads the record back and passes it to the C library's `printf`.
//! Each side supports fewer formats than the C library, and the two sets differ; a format that only one side supports
//! prints values of other arguments. The rules were derived from the output of an H100 (driver 580) for 3400 formats.

mod host;
mod scan;

use super::builtins::{peek, string};
use super::context::{Context, fault};
use super::memory::model::MemoryModel;
use super::warp::Warp;
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use scan::{ArgumentKind, Side, conversions};

/// An argument in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PrintfArgument {
    /// A number of up to 8 bytes; one of 4 bytes is extended with zeros.
    Bits(u64),
    /// A string: its address and its text.
    Text(u64, Vec<u8>),
}

/// Output of a call and the number of its arguments.
type Printed = Option<(Vec<u8>, usize)>;

/// Executes the call of one lane; `None` if the format is null.
///
/// `list` is the address of the arguments, each of which is aligned to its size.
///
/// # Errors
/// The fault of an address that cannot be read.
pub(super) fn call(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    inst: &Inst,
    lane: u32,
    format: u64,
    list: u64,
) -> Result<Printed, Box<LaneFault>> {
    if format == 0 {
        return Ok(None);
    }
    let format = string(cx, w, inst, lane, format)?;
    let mut at = list;
    let mut slots = Vec::new();
    for kind in conversions(&format, Side::Device) {
        let bytes = kind.bytes();
        if bytes == 0 {
            continue;
        }
        if list == 0 {
            let text = format!(
                "vprintf: the format {:?} takes arguments, but the call passes none",
                String::from_utf8_lossy(&format)
            );
            return Err(fault(FaultKind::IllegalAddress, 1 << lane, text));
        }
        at = at.next_multiple_of(u64::from(bytes));
        let value = peek(cx, w, inst, lane, at, bytes)?;
        at = at.wrapping_add(u64::from(bytes));
        slots.push(match kind {
            ArgumentKind::Text if value != 0 => {
                PrintfArgument::Text(value, string(cx, w, inst, lane, value)?)
            }
            _ => PrintfArgument::Bits(value),
        });
    }
    let count = slots.len();
    Ok(Some((host::print(&format, slots), count)))
}

//! `tensormap.replace` and `tensormap.cp_fenceproxy` (PTX ISA, "Data Movement and Conversion Instructions: tensormap.replace",
//! "Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy").

use super::bulk_copy::resolve_range;
use super::context::{Context, ExecResult, fault};
use super::lanes::lanes;
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{addresses, host};
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::{Address, TensorMapOp};
use crate::tensor_map::{BYTES, replace};

/// Alignment of a tensor map.
const ALIGNMENT: u32 = 64;

/// Lets the memory model decide about the access to a map, and returns its address on the host.
fn map(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lane: usize,
    (of, address): (&Address, u64),
    kind: AccessKind,
) -> Result<u64, Box<LaneFault>> {
    let size = BYTES as u32;
    let admitted = admit(cx, inst, 1 << lane, || {
        AccessRequest::of_lane(of.space, address, size, kind)
    })?;
    let write = kind == AccessKind::Store;
    let range = (size, ALIGNMENT);
    resolve_range(cx, admitted, inst, lane, (of, address), range, write)
}

/// Executes a `tensormap` instruction for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn run(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    match &program.tensor_maps[inst.target as usize] {
        TensorMapOp::Replace {
            map: of,
            field,
            value,
        } => {
            for l in lanes(active) {
                // SAFETY: the caller's contract.
                let (address, value) = unsafe {
                    let value = *regs.add(value.at as usize).cast::<u64>().add(l);
                    (addresses(regs, of)[l], value)
                };
                map(cx, inst, l, (of, address), AccessKind::Load)?;
                let at = map(cx, inst, l, (of, address), AccessKind::Store)?;
                let mut bytes = [0; BYTES];
                // SAFETY: the range was checked.
                unsafe { host::copy_out(at, &mut bytes) };
                if !replace(&mut bytes, *field, value) {
                    return Err(fault(
                        FaultKind::IllegalInstruction,
                        1 << l,
                        format!(
                            "the 128 bytes at {address:#x} are not a tensor map of a tiled tensor"
                        ),
                    ));
                }
                // SAFETY: as for the read.
                unsafe { host::copy_in(&bytes, at) };
            }
        }
        TensorMapOp::Copy { to, from } => {
            // All lanes name the same maps.
            let Some(l) = lanes(active).next() else {
                return Ok(());
            };
            // SAFETY: the caller's contract.
            let (target, source) = unsafe { (addresses(regs, to)[l], addresses(regs, from)[l]) };
            let source = map(cx, inst, l, (from, source), AccessKind::Load)?;
            let target = map(cx, inst, l, (to, target), AccessKind::Store)?;
            // SAFETY: both ranges were checked.
            unsafe { host::copy(source, target, BYTES as u64) };
        }
    }
    Ok(())
}

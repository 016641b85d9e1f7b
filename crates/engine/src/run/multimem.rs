//! `multimem.ld_reduce`, `multimem.st`, `multimem.red` (PTX ISA, "multimem"), and the other side of
//! `multimem.cp.async.bulk`.
//!
//! An instruction accesses memory of each device of a multicast object, in the order in which the devices were added. The
//! access to each element of one device is a separate one, and atomic like that of `ld`, `st` or `red`. The model admits the
//! accesses to one device together, at the addresses of its memory.

use std::sync::atomic::{Ordering, fence};

use cupyrite_ptx::ir::{Scope, Semantics};

use super::atomics::on_host;
use super::context::{Context, ExecResult, fault};
use super::lanes::{LANES, lanes};
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{addresses, get, host, refused, set};
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::{MemSpace, MultimemKind, Reg};
use crate::memory::MulticastWindow;
use crate::semantics::atomic::combine_all;

/// The memory behind an address of a multicast object, for an access of `bytes` bytes by a lane.
///
/// # Errors
/// The fault of a refused access.
pub(super) fn window(
    cx: &Context<'_, impl MemoryModel>,
    lane: usize,
    address: u64,
    bytes: u32,
    align: u32,
    write: bool,
) -> Result<MulticastWindow, Box<LaneFault>> {
    if !address.is_multiple_of(align.into()) {
        let kind = FaultKind::MisalignedAddress;
        return Err(refused(
            kind,
            lane as u32,
            address,
            bytes,
            write,
            "global",
            None,
        ));
    }
    let device = cx.launch.viewer.device;
    (cx.launch.space.multicast_at(address, device, write)).map_err(|text| {
        let verb = if write { "write" } else { "read" };
        let text = format!("{verb} of {bytes} bytes at multimem address {address:#x}: {text}");
        fault(FaultKind::IllegalAddress, 1 << lane, text)
    })
}

/// The addresses of all lanes in the memory of one device.
type DeviceAddresses = [u64; LANES];

/// The addresses of the active lanes in the memory of each device, and the lanes that access it. Objects have different
/// numbers of devices.
fn resolve(
    cx: &Context<'_, impl MemoryModel>,
    at: &[u64; LANES],
    active: u32,
    bytes: u32,
    write: bool,
) -> Result<Vec<(u32, DeviceAddresses)>, Box<LaneFault>> {
    let mut devices: Vec<(u32, DeviceAddresses)> = Vec::new();
    let mut last: Option<MulticastWindow> = None;
    let align = bytes.next_power_of_two();
    for lane in lanes(active) {
        let address = at[lane];
        let same = |w: &MulticastWindow| {
            w.contains(address, bytes.into()) && address.is_multiple_of(align.into())
        };
        let found = match last.take().filter(same) {
            Some(found) => found,
            None => window(cx, lane, address, bytes, align, write)?,
        };
        if devices.len() < found.memory.len() {
            devices.resize(found.memory.len(), (0, [0; LANES]));
        }
        for ((mask, out), memory) in devices.iter_mut().zip(&found.memory) {
            *mask |= 1 << lane;
            out[lane] = memory + (address - found.base);
        }
        last = Some(found);
    }
    Ok(devices)
}

/// `multimem.ld_reduce`, `multimem.st`, `multimem.red`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn run(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.multimem[inst.target as usize];
    let size = op.ty.bytes();
    let bytes = size * op.regs.len() as u32;
    let kind = match op.kind {
        MultimemKind::LoadReduce { .. } => AccessKind::Load,
        MultimemKind::Store => AccessKind::Store,
        MultimemKind::Reduce(_) => AccessKind::Atomic,
    };
    // SAFETY: the operands lie in the register file.
    let at = unsafe { addresses(regs, &op.address) };
    let devices = resolve(cx, &at, active, bytes, kind != AccessKind::Load)?;
    for &(mask, memory) in &devices {
        admit(cx, inst, mask, || AccessRequest {
            order: op.order,
            scope: op.scope.unwrap_or(Scope::Gpu),
            ..AccessRequest::weak(MemSpace::Global, memory, bytes, kind)
        })?;
    }
    if op.order == Semantics::Release {
        fence(Ordering::Release);
    }
    let mask = u128::MAX >> (128 - 8 * size);
    let mut values = Vec::with_capacity(devices.len());
    for lane in lanes(active) {
        let memory = || {
            let devices = devices.iter().filter(|d| d.0 >> lane & 1 != 0);
            devices.map(|d| d.1[lane])
        };
        for (k, &Reg { at, slot }) in op.regs.iter().enumerate() {
            let step = u64::from(size) * k as u64;
            // SAFETY: the operands lie in the register file. The windows contain the accesses, whose alignment was checked,
            // and the pin of the launch keeps their memory.
            unsafe {
                match op.kind {
                    MultimemKind::LoadReduce { op: reduce, wide } => {
                        values.clear();
                        values.extend(memory().map(|p| host::read(p + step, size) as u64));
                        let result = combine_all(reduce, op.ty, wide, &values);
                        set(regs, at, slot, lane, result.into());
                    }
                    MultimemKind::Store => {
                        let value = get(regs, at, slot, lane) & mask;
                        memory().for_each(|p| host::write(p + step, size, value));
                    }
                    MultimemKind::Reduce(reduce) => {
                        let value = get(regs, at, slot, lane) & mask;
                        for p in memory() {
                            on_host(p + step, reduce, op.ty, value, 0);
                        }
                    }
                }
            }
        }
    }
    if op.order == Semantics::Acquire {
        fence(Ordering::Acquire);
    }
    Ok(())
}

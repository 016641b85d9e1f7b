//! Bulk copies and reductions: `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk` (PTX ISA, "Data Movement and
//! Conversion Instructions: Asynchronous copy").
//!
//! Each active lane makes a copy of its own. A copy completes at once, and with it the transactions at its `mbarrier`.

use cupyrite_ptx::ir::{AtomOp, Semantics, Type};
use cupyrite_sys::driver::CUtensorMapDataType as DataType;

use super::atomics::on_host;
use super::context::{Context, ExecResult, fault};
use super::lanes::lanes;
use super::mbarrier;
use super::memory::model::{AccessKind, AccessRequest, Admitted, MemoryModel, admit};
use super::memory::{ResolvedAddress, addresses, host, refused, resolve};
use super::multimem;
use crate::address_windows::mapped;
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::{Address, BulkDirection, BulkOp, BulkSide, MemSpace};
use crate::tensor_map::{BYTES, TensorBox, decode, round_to_tf32};

/// Unit of bulk copies in bytes, also of their alignment.
const UNIT: u32 = 16;
/// Alignment of a box in shared memory.
const BOX_ALIGNMENT: u32 = 128;

/// Lets the memory model decide about a range that the copies of `lanes` access.
fn admit_range(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lanes: u32,
    (space, address): (MemSpace, u64),
    bytes: u32,
    kind: AccessKind,
) -> Result<Admitted, Box<LaneFault>> {
    admit(cx, inst, lanes, || AccessRequest {
        order: match kind {
            AccessKind::Atomic => Semantics::Relaxed,
            _ => Semantics::Weak,
        },
        asynchronous: true,
        ..AccessRequest::of_lane(space, address, bytes, kind)
    })
}

/// Lets the memory model decide about the parts of a box in shared memory that the copy of a lane accesses: whole rows if
/// it loads the box, otherwise the elements inside the tensor.
fn admit_box<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    inst: &Inst,
    lane: usize,
    (space, shared): (MemSpace, u64),
    found: &TensorBox,
    kind: AccessKind,
) -> Result<Admitted, Box<LaneFault>> {
    // A part of the box, which ends where its next bytes are not the next ones of memory.
    let mut part: (u64, u32) = (0, 0);
    let rows = found.runs().take_while(|_| M::CHECKS);
    for run in rows {
        let (_, skip, len) = run.inside;
        let (from, len) = match kind {
            AccessKind::Load => (run.shared + skip, len),
            _ => (run.shared, run.bytes),
        };
        let mut at = from;
        while at < from + len {
            let unit = (u64::from(UNIT) - at % u64::from(UNIT)).min(from + len - at);
            let address = found.swizzled(shared + at);
            if part.1 > 0 && part.0 + u64::from(part.1) != address {
                admit_range(cx, inst, 1 << lane, (space, part.0), part.1, kind)?;
                part.1 = 0;
            }
            if part.1 == 0 {
                part.0 = address;
            }
            part.1 += unit as u32;
            at += unit;
        }
    }
    let lanes = u32::from(part.1 > 0) << lane;
    admit_range(cx, inst, lanes, (space, part.0), part.1, kind)
}

/// Lets the memory model decide about a range, and resolves it.
fn range(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lane: usize,
    (of, address): (&Address, u64),
    (bytes, align): (u32, u32),
    kind: AccessKind,
) -> Result<u64, Box<LaneFault>> {
    let admitted = admit_range(cx, inst, 1 << lane, (of.space, address), bytes, kind)?;
    let write = kind != AccessKind::Load;
    resolve_range(
        cx,
        admitted,
        inst,
        lane,
        (of, address),
        (bytes, align),
        write,
    )
}

/// Resolves a range that must be host memory.
pub(super) fn resolve_range(
    cx: &mut Context<'_, impl MemoryModel>,
    admitted: Admitted,
    inst: &Inst,
    lane: usize,
    (of, address): (&Address, u64),
    (bytes, align): (u32, u32),
    write: bool,
) -> Result<u64, Box<LaneFault>> {
    match resolve(
        cx,
        admitted,
        of.space,
        inst.aux,
        lane as u32,
        address,
        bytes,
        align,
        write,
    )? {
        ResolvedAddress::Host(p) => Ok(p),
        ResolvedAddress::Local(_) => Err(refused(
            FaultKind::InvalidAddressSpace,
            lane as u32,
            address,
            bytes,
            write,
            "shared or global",
            None,
        )),
    }
}

fn illegal(lane: usize, text: impl Into<String>) -> Box<LaneFault> {
    fault(FaultKind::IllegalInstruction, 1 << lane, text)
}

/// The addresses of an operand in all lanes.
///
/// # Safety
/// As for [`run`].
unsafe fn all(regs: *mut u8, of: &Address) -> [u64; 32] {
    // SAFETY: the caller's contract.
    unsafe { addresses(regs, of) }
}

/// Executes a bulk copy for the lanes `active`.
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
    let op = &program.bulk[inst.target as usize];
    for l in lanes(active) {
        // SAFETY: the caller's contract.
        let (shared, object, ranks) = unsafe {
            let object = op.mbarrier.as_ref();
            let ranks = op.multicast.as_ref();
            (
                all(regs, &op.shared)[l],
                object.map(|object| (object.space, all(regs, object)[l])),
                ranks.map(|r| *regs.add(r.at as usize).cast::<u32>().add(l) & 0xffff),
            )
        };
        let Some(ranks) = ranks else {
            // SAFETY: the caller's contract.
            unsafe { copy(cx, regs, inst, l, shared, object)? };
            continue;
        };
        for rank in lanes(ranks) {
            let rank = rank as u32;
            let object = object.map(|(space, at)| (space, mapped(at, rank)));
            // SAFETY: the caller's contract.
            unsafe { copy(cx, regs, inst, l, mapped(shared, rank), object)? };
        }
    }
    Ok(())
}

/// Executes the copy of a lane to or from `shared`, and completes its transactions at `object`.
///
/// # Safety
/// As for [`run`].
unsafe fn copy(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    lane: usize,
    shared: u64,
    object: Option<(MemSpace, u64)>,
) -> ExecResult {
    let program = cx.program;
    let op = &program.bulk[inst.target as usize];
    // SAFETY: the caller's contract.
    let bytes = unsafe {
        match &op.other {
            BulkSide::Memory(other, size) => {
                let size = *regs.add(size.at as usize).cast::<u32>().add(lane);
                let other = (other, all(regs, other)[lane]);
                memory(cx, inst, lane, op, shared, other, size)?
            }
            BulkSide::Tensor(map, coordinates, offsets) => {
                let mut position = [0i32; 5];
                for (to, c) in position.iter_mut().zip(coordinates) {
                    *to = *regs.add(c.at as usize).cast::<i32>().add(lane);
                }
                let mut from_base = [0u16; 3];
                for (to, o) in from_base.iter_mut().zip(offsets.iter().flatten()) {
                    *to = *regs.add(o.at as usize).cast::<u32>().add(lane) as u16;
                }
                let map = (map, all(regs, map)[lane]);
                let position = &position[..coordinates.len()];
                let offsets = offsets.is_some().then_some(from_base);
                tensor(cx, inst, lane, op, shared, map, (position, offsets))?
            }
        }
    };
    match object {
        Some(object) => mbarrier::complete(cx, inst, lane, object, bytes),
        None => Ok(()),
    }
}

/// The accesses of a copy or reduction to the shared memory of its block and to the other side.
fn kinds(loads: bool, reduces: bool) -> (AccessKind, AccessKind) {
    match (loads, reduces) {
        (true, _) => (AccessKind::Store, AccessKind::Load),
        (false, false) => (AccessKind::Load, AccessKind::Store),
        (false, true) => (AccessKind::Load, AccessKind::Atomic),
    }
}

/// A copy or reduction of `size` bytes; returns their number.
fn memory(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lane: usize,
    op: &BulkOp,
    shared: u64,
    other: (&Address, u64),
    size: u32,
) -> Result<u64, Box<LaneFault>> {
    if !size.is_multiple_of(UNIT) {
        return Err(illegal(
            lane,
            format!("a bulk copy of {size} bytes; the number must be a multiple of {UNIT}"),
        ));
    }
    if size == 0 {
        return Ok(0);
    }
    let loads = op.direction == BulkDirection::Load;
    let (our_kind, their_kind) = kinds(loads, op.reduce.is_some());
    let ours = range(cx, inst, lane, (&op.shared, shared), (size, UNIT), our_kind)?;
    if op.multimem {
        multicast(cx, inst, lane, op, ours, other.1, size)?;
        return Ok(size.into());
    }
    let theirs = range(cx, inst, lane, other, (size, UNIT), their_kind)?;
    match op.reduce {
        Some((reduce, Some(ty))) => reduce_elements(reduce, ty, theirs, ours, size.into()),
        Some((_, None)) => return Err(illegal(lane, "a bulk reduction without a type")),
        None => {
            let (from, to) = if loads {
                (theirs, ours)
            } else {
                (ours, theirs)
            };
            // SAFETY: both ranges were checked; they may overlap.
            unsafe { host::copy(from, to, size.into()) };
        }
    }
    Ok(size.into())
}

/// A copy or reduction of `size` bytes at `from` to an address of a multicast object.
fn multicast(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lane: usize,
    op: &BulkOp,
    from: u64,
    to: u64,
    size: u32,
) -> ExecResult {
    let kind = match op.reduce {
        Some(_) => AccessKind::Atomic,
        None => AccessKind::Store,
    };
    let mut done = 0;
    while done < u64::from(size) {
        let rest = size - done as u32;
        let window = multimem::window(cx, lane, to + done, rest, UNIT, true)?;
        // A window ends where other memory is bound, at a multiple of a page.
        let part = window.size.min(rest.into());
        for &memory in &window.memory {
            let place = (MemSpace::Global, memory);
            admit_range(cx, inst, 1 << lane, place, part as u32, kind)?;
        }
        for &memory in &window.memory {
            match op.reduce {
                Some((reduce, Some(ty))) => {
                    reduce_elements(reduce, ty, memory, from + done, part);
                }
                Some((_, None)) => return Err(illegal(lane, "a bulk reduction without a type")),
                // SAFETY: the source was checked by the caller, the window contains the destination, and the pin of the launch
                // keeps its memory.
                None => unsafe { host::copy(from + done, memory, part) },
            }
        }
        done += part;
    }
    Ok(())
}

/// Combines each element at `from` with that at `to`.
fn reduce_elements(op: AtomOp, ty: Type, to: u64, from: u64, bytes: u64) {
    let size = u64::from(ty.bytes());
    for at in (0..bytes).step_by(size as usize) {
        let mut value = [0u8; 16];
        // SAFETY: both ranges were checked, and their alignment is at least that of an element.
        unsafe {
            host::copy_out(from + at, &mut value[..size as usize]);
            on_host(to + at, op, ty, u128::from_le_bytes(value), 0);
        }
    }
}

/// The PTX type of the elements, for a reduction.
fn element_type(data_type: DataType) -> Option<Type> {
    Some(match data_type {
        DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32 => Type::U32,
        DataType::CU_TENSOR_MAP_DATA_TYPE_INT32 => Type::S32,
        DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64 => Type::U64,
        DataType::CU_TENSOR_MAP_DATA_TYPE_INT64 => Type::S64,
        DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16 => Type::F16,
        DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 => Type::BF16,
        DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32 => Type::F32,
        DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64 => Type::F64,
        _ => return None,
    })
}

/// Whether the reduction exists for this type (PTX ISA, `cp.reduce.async.bulk.tensor`).
fn reduces(op: AtomOp, ty: Type) -> bool {
    use Type::{BF16, F16, F32, F64, S32, S64, U32, U64};
    match op {
        AtomOp::Add => matches!(ty, U32 | S32 | U64 | F16 | BF16 | F32 | F64),
        AtomOp::Min | AtomOp::Max => matches!(ty, U32 | S32 | U64 | S64 | F16 | BF16),
        AtomOp::Inc | AtomOp::Dec => ty == U32,
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, U32 | S32 | U64 | S64),
        _ => false,
    }
}

/// A copy or reduction of a box; returns the bytes of shared memory.
fn tensor(
    cx: &mut Context<'_, impl MemoryModel>,
    inst: &Inst,
    lane: usize,
    op: &BulkOp,
    shared: u64,
    (map, map_address): (&Address, u64),
    (position, offsets): (&[i32], Option<[u16; 3]>),
) -> Result<u64, Box<LaneFault>> {
    let at = range(
        cx,
        inst,
        lane,
        (map, map_address),
        (BYTES as u32, 64),
        AccessKind::Load,
    )?;
    let mut bytes = [0u8; BYTES];
    // SAFETY: the range was checked.
    unsafe { host::copy_out(at, &mut bytes) };
    let Some(map) = decode(&bytes) else {
        return Err(illegal(
            lane,
            format!(
                "the 128 bytes at {map_address:#x} are not a tensor map; create it with cuTensorMapEncodeTiled, and pass it as a \
                 __grid_constant__ parameter or copy it whole"
            ),
        ));
    };
    let found = TensorBox::new(&map, position, offsets).map_err(|text| illegal(lane, text))?;
    // An H200 raises an illegal instruction here and for the negative coordinates below; the manual states neither rule.
    if let Some(&first) = position.first()
        && i64::from(first) * found.element() as i64 % i64::from(UNIT) != 0
    {
        return Err(illegal(
            lane,
            format!(
                "the innermost coordinate {first} is {} bytes; it must be a multiple of {UNIT} bytes",
                i64::from(first) * found.element() as i64
            ),
        ));
    }
    let loads = op.direction == BulkDirection::Load;
    if !loads && let Some(negative) = position.iter().find(|&&at| at < 0) {
        return Err(illegal(
            lane,
            format!("the coordinate {negative} is negative; only loads allow that"),
        ));
    }
    // An H100 (driver 580) raises an illegal instruction.
    if !loads && found.extends_beyond() {
        return Err(illegal(
            lane,
            "the bounding box of the tensor map extends beyond the tensor; only loads allow that",
        ));
    }
    let reduce = match op.reduce {
        None => None,
        Some((reduce, _)) => match element_type(map.data_type) {
            Some(ty) if reduces(reduce, ty) => Some((reduce, ty)),
            _ => {
                return Err(illegal(
                    lane,
                    format!(
                        "the reduction does not exist for tensors of type {}",
                        map.data_type.0
                    ),
                ));
            }
        },
    };
    let needed = found.footprint();
    let Ok(needed) = u32::try_from(needed) else {
        return Err(illegal(lane, format!("a box of {needed} bytes")));
    };
    let (our_kind, their_kind) = kinds(loads, reduce.is_some());
    let side = (op.shared.space, shared);
    let admitted = admit_box(cx, inst, lane, side, &found, our_kind)?;
    let ours = resolve_range(
        cx,
        admitted,
        inst,
        lane,
        (&op.shared, shared),
        (needed, BOX_ALIGNMENT),
        loads,
    )?;
    // The swizzle depends on addresses of shared memory, not on those of the host.
    let place = |offset: u64| ours + (found.swizzled(shared + offset) - shared);
    for run in found.runs() {
        let (address, skip, len) = run.inside;
        if loads {
            fill(&found, &place, run.shared, run.bytes);
        }
        if len == 0 {
            continue;
        }
        let global = Address {
            space: MemSpace::Global,
            ..op.shared
        };
        let align = found.element() as u32;
        let theirs = range(
            cx,
            inst,
            lane,
            (&global, address),
            (len as u32, align),
            their_kind,
        )?;
        let mut at = 0;
        while at < len {
            let offset = run.shared + skip + at;
            // Up to the end of a 16-byte unit, which stays together.
            let part = (u64::from(UNIT) - offset % u64::from(UNIT)).min(len - at);
            let (inner, outer) = (place(offset), theirs + at);
            match reduce {
                Some((reduce, ty)) => reduce_elements(reduce, ty, outer, inner, part),
                None => {
                    let (from, to) = if loads {
                        (outer, inner)
                    } else {
                        (inner, outer)
                    };
                    // SAFETY: both ranges were checked.
                    unsafe { host::copy(from, to, part) };
                    // The PTX ISA describes no conversion by stores.
                    if found.rounds() && loads {
                        round(inner, part);
                    }
                }
            }
            at += part;
        }
    }
    Ok(found.bytes())
}

/// Rounds elements in shared memory to TF32.
fn round(from: u64, bytes: u64) {
    for at in (from..from + bytes).step_by(4) {
        let mut element = [0u8; 4];
        // SAFETY: within the range of shared memory that was checked.
        unsafe {
            host::copy_out(at, &mut element);
            let rounded = round_to_tf32(u32::from_ne_bytes(element));
            host::copy_in(&rounded.to_ne_bytes(), at);
        }
    }
}

/// Fills a row of shared memory with the value outside of the tensor.
fn fill(found: &TensorBox, place: &impl Fn(u64) -> u64, from: u64, bytes: u64) {
    let value = found.fill();
    for at in (0..bytes).step_by(value.len()) {
        // SAFETY: within the range of shared memory that was checked.
        unsafe { host::copy_in(value, place(from + at)) };
    }
}

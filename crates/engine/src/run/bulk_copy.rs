//! Bulk copies and reductions: `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk` (PTX ISA, "Data Movement and
//! Conversion Instructions: Asynchronous copy").
//!
//! Each active lane makes a copy of its own. A copy completes at once, and with it the transactions at its `mbarrier`.

use cupyrite_ptx::ir::{AtomOp, Type};
use cupyrite_sys::driver::CUtensorMapDataType as DataType;

use super::atomics::on_host;
use super::context::{Context, ExecResult, fault};
use super::lanes::lanes;
use super::mbarrier;
use super::memory::{ResolvedAddress, addresses, refused, resolve};
use crate::fault_report::{FaultKind, LaneFault};
use crate::kir::{Address, BulkDirection, BulkOp, BulkSide, MemSpace};
use crate::program::Inst;
use crate::tensor_map::{BYTES, TensorBox, decode, round_to_tf32};

/// Unit of bulk copies in bytes, also of their alignment.
const UNIT: u32 = 16;
/// Alignment of a box in shared memory.
const BOX_ALIGNMENT: u32 = 128;

/// Resolves a range that must be host memory.
fn range(
    cx: &mut Context<'_>,
    entry: u16,
    lane: usize,
    (of, address): (&Address, u64),
    (bytes, align): (u32, u32),
    write: bool,
) -> Result<u64, Box<LaneFault>> {
    match resolve(
        cx,
        of.space,
        entry,
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
pub unsafe fn run(cx: &mut Context<'_>, regs: *mut u8, inst: &Inst, active: u32) -> ExecResult {
    let program = cx.program;
    let op = &program.bulk[inst.target as usize];
    for l in lanes(active) {
        // SAFETY: the caller's contract.
        let (bytes, barrier) = unsafe {
            let shared = all(regs, &op.shared)[l];
            let bytes = match &op.other {
                BulkSide::Memory(other, size) => {
                    let size = *regs.add(size.at as usize).cast::<u32>().add(l);
                    let other = (other, all(regs, other)[l]);
                    memory(cx, inst.aux, l, op, shared, other, size)?
                }
                BulkSide::Tensor(map, coordinates) => {
                    let mut position = [0i32; 5];
                    for (to, c) in position.iter_mut().zip(coordinates) {
                        *to = *regs.add(c.at as usize).cast::<i32>().add(l);
                    }
                    let map = (map, all(regs, map)[l]);
                    let position = &position[..coordinates.len()];
                    tensor(cx, inst.aux, l, op, shared, map, position)?
                }
            };
            let barrier = op
                .mbarrier
                .as_ref()
                .map(|object| (object.space, all(regs, object)[l]));
            (bytes, barrier)
        };
        if let Some(object) = barrier {
            mbarrier::complete(cx, inst.aux, l, object, bytes)?;
        }
    }
    Ok(())
}

/// A copy or reduction of `size` bytes; returns their number.
fn memory(
    cx: &mut Context<'_>,
    entry: u16,
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
    let ours = range(cx, entry, lane, (&op.shared, shared), (size, UNIT), loads)?;
    let theirs = range(cx, entry, lane, other, (size, UNIT), !loads)?;
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
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size as usize) };
        }
    }
    Ok(size.into())
}

/// Combines each element at `from` with that at `to`.
fn reduce_elements(op: AtomOp, ty: Type, to: u64, from: u64, bytes: u64) {
    let size = u64::from(ty.bytes());
    for at in (0..bytes).step_by(size as usize) {
        let mut value = [0u8; 16];
        // SAFETY: both ranges were checked, and their alignment is at least that of an element.
        unsafe {
            let source = (from + at) as *const u8;
            std::ptr::copy_nonoverlapping(source, value.as_mut_ptr(), size as usize);
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
    cx: &mut Context<'_>,
    entry: u16,
    lane: usize,
    op: &BulkOp,
    shared: u64,
    (map, map_address): (&Address, u64),
    position: &[i32],
) -> Result<u64, Box<LaneFault>> {
    let at = range(
        cx,
        entry,
        lane,
        (map, map_address),
        (BYTES as u32, 64),
        false,
    )?;
    // SAFETY: checked; any bytes are valid.
    let bytes = unsafe { std::ptr::read(at as *const [u8; BYTES]) };
    let Some(map) = decode(&bytes) else {
        return Err(illegal(
            lane,
            format!(
                "the 128 bytes at {map_address:#x} are not a tensor map; create it with cuTensorMapEncodeTiled, and pass it as a \
                 __grid_constant__ parameter or copy it whole"
            ),
        ));
    };
    let found = TensorBox::new(&map, position).map_err(|text| illegal(lane, text))?;
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
    let ours = range(
        cx,
        entry,
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
            entry,
            lane,
            (&global, address),
            (len as u32, align),
            !loads,
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
                    // SAFETY: both ranges were checked. Shared memory overlaps no global memory.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            from as *const u8,
                            to as *mut u8,
                            part as usize,
                        );
                    }
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
        let element = at as *mut u32;
        // SAFETY: within the range of shared memory that was checked.
        unsafe { element.write_unaligned(round_to_tf32(element.read_unaligned())) };
    }
}

/// Fills a row of shared memory with the value outside of the tensor.
fn fill(found: &TensorBox, place: &impl Fn(u64) -> u64, from: u64, bytes: u64) {
    let value = found.fill();
    for at in (0..bytes).step_by(value.len()) {
        // SAFETY: within the range of shared memory that was checked.
        unsafe {
            let to = place(from + at) as *mut u8;
            std::ptr::copy_nonoverlapping(value.as_ptr(), to, value.len());
        }
    }
}

//! The general path of loads and stores, and asynchronous copies.
//!
//! One bounds check covers the lowest to the highest address of the warp. Only if it fails, each lane is checked.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use cupyrite_ptx::ir::Semantics;

use super::{
    ResolvedAddress, addresses, blend32, get, in_shared, local_base, local_read, local_word,
    local_write, refused, resolve, set,
};
use crate::engine::fault_report::FaultKind;
use crate::engine::ops::Slot;
use crate::engine::program::{Inst, MemOp, MemSpace, fixed};
use crate::engine::run::context::{Context, ExecResult};
use crate::engine::run::lanes::{LANES, first_lane, lanes};
use crate::engine::run::warp::Warp;

/// Extends a loaded element to 128 bits, as the operation requires.
#[inline(always)]
fn extend(op: &MemOp, v: u128) -> u128 {
    let bits = 8 * op.size;
    if !op.signed || bits >= 128 {
        return v;
    }
    let shift = 128 - bits;
    let v = ((v << shift) as i128 >> shift) as u128;
    if op.narrow { v & 0xffff } else { v }
}

/// An atomic read of host memory.
///
/// # Safety
/// The range is accessible and aligned to its size.
pub unsafe fn atomic_read(p: u64, size: u32, order: Semantics) -> u128 {
    let o = match order {
        Semantics::Acquire | Semantics::AcqRel => Ordering::Acquire,
        Semantics::Sc => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    };
    // SAFETY: upheld by the caller; other threads access the same memory atomically or race as the PTX says.
    unsafe {
        match size {
            1 => u128::from(AtomicU8::from_ptr(p as *mut u8).load(o)),
            2 => u128::from(AtomicU16::from_ptr(p as *mut u16).load(o)),
            4 => u128::from(AtomicU32::from_ptr(p as *mut u32).load(o)),
            8 => u128::from(AtomicU64::from_ptr(p as *mut u64).load(o)),
            _ => {
                let lo = AtomicU64::from_ptr(p as *mut u64).load(o);
                let hi = AtomicU64::from_ptr((p + 8) as *mut u64).load(o);
                u128::from(lo) | u128::from(hi) << 64
            }
        }
    }
}

/// An atomic write of host memory.
///
/// # Safety
/// As for [`atomic_read`].
pub unsafe fn atomic_write(p: u64, size: u32, v: u128, order: Semantics) {
    let o = match order {
        Semantics::Release | Semantics::AcqRel => Ordering::Release,
        Semantics::Sc => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    };
    // SAFETY: upheld by the caller.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(p as *mut u8).store(v as u8, o),
            2 => AtomicU16::from_ptr(p as *mut u16).store(v as u16, o),
            4 => AtomicU32::from_ptr(p as *mut u32).store(v as u32, o),
            8 => AtomicU64::from_ptr(p as *mut u64).store(v as u64, o),
            _ => {
                AtomicU64::from_ptr(p as *mut u64).store(v as u64, o);
                AtomicU64::from_ptr((p + 8) as *mut u64).store((v >> 64) as u64, o);
            }
        }
    }
}

/// A plain read of `size` bytes of host memory.
#[inline(always)]
unsafe fn host_read(p: u64, size: u32) -> u128 {
    // SAFETY: the caller has checked the range and its alignment.
    unsafe {
        match size {
            1 => u128::from(*(p as *const u8)),
            2 => u128::from(*(p as *const u16)),
            4 => u128::from(*(p as *const u32)),
            8 => u128::from(*(p as *const u64)),
            _ => (p as *const u128).read_unaligned(),
        }
    }
}

#[inline(always)]
unsafe fn host_write(p: u64, size: u32, v: u128) {
    // SAFETY: the caller has checked the range and its alignment.
    unsafe {
        match size {
            1 => *(p as *mut u8) = v as u8,
            2 => *(p as *mut u16) = v as u16,
            4 => *(p as *mut u32) = v as u32,
            8 => *(p as *mut u64) = v as u64,
            _ => (p as *mut u128).write_unaligned(v),
        }
    }
}

/// Checks all active lanes at once. If all accesses lie in one region, or in shared memory, turns `a` into host addresses
/// and returns true.
#[inline(always)]
fn check_all(
    cx: &mut Context<'_>,
    op: &MemOp,
    entry: u16,
    a: &mut [u64; LANES],
    active: u32,
    bytes: u32,
    align: u32,
) -> bool {
    let mut low = u64::MAX;
    let mut high = 0u64;
    let mut bits = 0u64;
    for (l, &x) in a.iter().enumerate() {
        let on = active >> l & 1 != 0;
        low = low.min(if on { x } else { u64::MAX });
        high = high.max(if on { x } else { 0 });
        bits |= if on { x } else { 0 };
    }
    if bits & u64::from(align - 1) != 0 {
        return false;
    }
    match op.space {
        MemSpace::Shared => {
            if !in_shared(high, bytes, cx.block.shared_bytes, op.store) {
                return false;
            }
            let base = cx.block.shared() as u64;
            for x in a.iter_mut() {
                *x = x.wrapping_add(base);
            }
            true
        }
        MemSpace::Global | MemSpace::Generic => {
            let Some(len) = (high - low).checked_add(u64::from(bytes)) else {
                return false;
            };
            cx.worker
                .cache
                .check(cx.launch.space, entry, low, len, op.store)
        }
        MemSpace::Local => false,
    }
}

/// A load of any kind.
#[inline(never)]
pub unsafe fn load(
    cx: &mut Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.mem[inst.target as usize];
    // SAFETY: the operands lie in the register file, and every access is checked first.
    unsafe {
        let mut a = addresses(
            regs,
            inst.args.src[0],
            op.addr32,
            inst.imm,
            inst.args.src[2],
        );
        let bytes = op.size * op.regs.len() as u32;
        if op.space == MemSpace::Local {
            return local_load(cx, w, regs, op, &a, active, bytes);
        }
        if op.size <= 8
            && !op.atomic
            && check_all(
                cx,
                op,
                inst.aux,
                &mut a,
                active,
                bytes,
                bytes.next_power_of_two(),
            )
        {
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = u64::from(op.size) * k as u64;
                match (op.size, slot) {
                    (4, Slot::R32) => {
                        let dst = regs.add(at as usize).cast::<u32>();
                        for l in lanes(active) {
                            *dst.add(l) = *((a[l] + step) as *const u32);
                        }
                    }
                    (8, Slot::R64) => {
                        let dst = regs.add(at as usize).cast::<u64>();
                        for l in lanes(active) {
                            *dst.add(l) = *((a[l] + step) as *const u64);
                        }
                    }
                    _ => {
                        for l in lanes(active) {
                            let v = extend(op, host_read(a[l] + step, op.size));
                            set(regs, at, slot, l, v);
                        }
                    }
                }
            }
            return Ok(());
        }
        // A sequentially consistent load is also ordered after earlier accesses.
        if op.atomic && op.order == Semantics::Sc {
            fence(Ordering::SeqCst);
        }
        for lane in lanes(active) {
            let l = lane as u32;
            let place = resolve(
                cx,
                op.space,
                inst.aux,
                l,
                a[l as usize],
                bytes,
                bytes.next_power_of_two(),
                false,
            )?;
            let local = if let ResolvedAddress::Local(_) = place {
                local_base(cx, w)
            } else {
                std::ptr::null_mut()
            };
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = op.size * k as u32;
                let v = match place {
                    ResolvedAddress::Host(p) if op.atomic => {
                        atomic_read(p + u64::from(step), op.size, op.order)
                    }
                    ResolvedAddress::Host(p) => host_read(p + u64::from(step), op.size),
                    ResolvedAddress::Local(o) => local_read(local, o + step, l as usize, op.size),
                };
                set(regs, at, slot, l as usize, extend(op, v));
            }
        }
        Ok(())
    }
}

/// The offset of all active lanes, if they have the same one.
#[inline(always)]
fn same_offset(a: &[u64; LANES], active: u32) -> Option<u64> {
    let first = a[first_lane(active)];
    let mut diff = 0;
    for (l, x) in a.iter().enumerate() {
        diff |= if active >> l & 1 != 0 { x ^ first } else { 0 };
    }
    (diff == 0).then_some(first)
}

unsafe fn local_load(
    cx: &mut Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    op: &MemOp,
    a: &[u64; LANES],
    active: u32,
    bytes: u32,
) -> ExecResult {
    let base = local_base(cx, w);
    let align = bytes.next_power_of_two();
    // SAFETY: every access is checked first.
    unsafe {
        if let Some(at) = same_offset(a, active)
            && op.size == 4
            && at & u64::from(align - 1) == 0
            && at + u64::from(bytes) <= u64::from(cx.launch.local_bytes)
        {
            for (k, &(reg, slot)) in op.regs.iter().enumerate() {
                let row = local_word(base, at as u32 + 4 * k as u32, 0).cast::<u32>();
                if slot == Slot::R32 {
                    blend32(row, regs.add(reg as usize).cast(), active);
                } else {
                    for l in 0..LANES {
                        if active >> l & 1 != 0 {
                            set(regs, reg, slot, l, extend(op, u128::from(*row.add(l))));
                        }
                    }
                }
            }
            return Ok(());
        }
        for lane in lanes(active) {
            let l = lane as u32;
            let ResolvedAddress::Local(o) =
                resolve(cx, op.space, 0, l, a[l as usize], bytes, align, false)?
            else {
                continue;
            };
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let v = local_read(base, o + op.size * k as u32, l as usize, op.size);
                set(regs, at, slot, l as usize, extend(op, v));
            }
        }
    }
    Ok(())
}

/// A store of any kind.
#[inline(never)]
pub unsafe fn store(
    cx: &mut Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.mem[inst.target as usize];
    // SAFETY: the operands lie in the register file, and every access is checked first.
    unsafe {
        let mut a = addresses(
            regs,
            inst.args.src[0],
            op.addr32,
            inst.imm,
            inst.args.src[2],
        );
        let bytes = op.size * op.regs.len() as u32;
        let align = bytes.next_power_of_two();
        if op.space == MemSpace::Local
            && op.size == 4
            && let Some(at) = same_offset(&a, active)
            && at & u64::from(align - 1) == 0
            && at + u64::from(bytes) <= u64::from(cx.launch.local_bytes)
            && op.regs.iter().all(|r| r.1 == Slot::R32)
        {
            let base = local_base(cx, w);
            for (k, &(reg, _)) in op.regs.iter().enumerate() {
                let row = local_word(base, at as u32 + 4 * k as u32, 0).cast::<u32>();
                blend32(regs.add(reg as usize).cast(), row, active);
            }
            return Ok(());
        }
        if !op.atomic
            && op.space != MemSpace::Local
            && check_all(cx, op, inst.aux, &mut a, active, bytes, align)
        {
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = u64::from(op.size) * k as u64;
                for l in lanes(active) {
                    host_write(a[l] + step, op.size, get(regs, at, slot, l));
                }
            }
            return Ok(());
        }
        if op.atomic && op.order == Semantics::Sc {
            fence(Ordering::SeqCst);
        }
        for lane in lanes(active) {
            let l = lane as u32;
            let place = resolve(cx, op.space, inst.aux, l, a[l as usize], bytes, align, true)?;
            let local = if let ResolvedAddress::Local(_) = place {
                local_base(cx, w)
            } else {
                std::ptr::null_mut()
            };
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = op.size * k as u32;
                let v = get(regs, at, slot, l as usize);
                match place {
                    ResolvedAddress::Host(p) if op.atomic => {
                        atomic_write(p + u64::from(step), op.size, v, op.order)
                    }
                    ResolvedAddress::Host(p) => host_write(p + u64::from(step), op.size, v),
                    ResolvedAddress::Local(o) => {
                        local_write(local, o + step, l as usize, op.size, v)
                    }
                }
            }
        }
        Ok(())
    }
}

/// `cp.async`. The copy completes at once.
pub unsafe fn cp_async(
    cx: &mut Context<'_>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let size = inst.args.imm;
    let from_imm = i64::from(inst.args.dst[1]) << 32 | i64::from(inst.args.src[3]);
    // SAFETY: both ranges are checked first and are at most 16 bytes long.
    unsafe {
        let to = addresses(
            regs,
            inst.args.src[0],
            inst.args.dst[0] != 0,
            inst.imm,
            fixed::ZERO,
        );
        let from = addresses(regs, inst.args.src[1], false, from_imm, fixed::ZERO);
        let ignore = *regs.add(inst.args.dst[2] as usize).cast::<u32>();
        let ignore = match inst.target {
            1 => ignore,
            2 => !ignore,
            _ => 0,
        };
        for lane in lanes(active) {
            let l = lane as u32;
            let dst = resolve(
                cx,
                MemSpace::Shared,
                inst.aux,
                l,
                to[l as usize],
                size,
                size,
                true,
            )?;
            let mut read = (*regs
                .add(inst.args.src[2] as usize)
                .cast::<u32>()
                .add(l as usize))
            .min(size);
            if ignore >> l & 1 != 0 {
                read = 0;
            }
            let mut buffer = [0u8; 16];
            if read > 0 {
                let src = resolve(
                    cx,
                    MemSpace::Generic,
                    inst.aux,
                    l,
                    from[l as usize],
                    read,
                    size,
                    false,
                )?;
                let ResolvedAddress::Host(p) = src else {
                    return Err(refused(
                        FaultKind::InvalidAddressSpace,
                        l,
                        from[l as usize],
                        read,
                        false,
                        "global",
                        None,
                    ));
                };
                std::ptr::copy_nonoverlapping(p as *const u8, buffer.as_mut_ptr(), read as usize);
            }
            if let ResolvedAddress::Host(p) = dst {
                std::ptr::copy_nonoverlapping(buffer.as_ptr(), p as *mut u8, size as usize);
            }
        }
    }
    Ok(())
}

//! The general path of loads and stores, and asynchronous copies.
//!
//! One bounds check covers the lowest to the highest address of the warp. Only if it fails, each lane is checked.

use std::sync::atomic::{Ordering, fence};

use cupyrite_ptx::ir::{Scope, Semantics};

use super::model::{AccessKind, AccessRequest, Admitted, MemoryModel, admit};
use super::{
    ResolvedAddress, addresses, blend32, get, host, in_shared, local_base, local_read, local_word,
    local_write, refused, resolve, set,
};
use crate::bytecode::Inst;
use crate::fault::FaultKind;
use crate::kir::{MemOp, MemSpace, Reg};
use crate::run::context::{Context, ExecResult};
use crate::run::lanes::{LANES, first_lane, lanes};
use crate::run::warp::Warp;
use crate::semantics::lane::Slot;

/// Extends a loaded element of up to 8 bytes, whose bits above its size are unspecified, as the operation requires.
#[inline(always)]
fn extend(op: &MemOp, v: u64) -> u128 {
    let shift = 64u32.saturating_sub(8 * op.size);
    let v = if op.signed {
        ((v << shift) as i64 >> shift) as i128 as u128
    } else {
        u128::from(v << shift >> shift)
    };
    if op.narrow { v & 0xffff } else { v }
}

/// Bytes of one machine access: a whole vector, or 16 bytes of a longer one.
#[inline(always)]
fn access_bytes(op: &MemOp, bytes: u32) -> u32 {
    if bytes.is_power_of_two() {
        bytes.min(16)
    } else {
        op.size
    }
}

/// The 64-bit half of an access that holds element `k`, and the element's first bit there.
#[inline(always)]
fn position(op: &MemOp, k: usize) -> (usize, u32) {
    let at = k as u32 * op.size;
    ((at / 8 % 2) as usize, at % 8 * 8)
}

/// Writes the elements of an access of one lane into their registers.
#[inline(always)]
unsafe fn set_elements(regs: *mut u8, op: &MemOp, elements: &[Reg], lane: usize, v: u128) {
    // SAFETY: the slots lie in the register file.
    unsafe {
        if op.size >= 16 {
            for &Reg { at, slot } in elements {
                set(regs, at, slot, lane, v);
            }
            return;
        }
        // In 64-bit arithmetic, which is several times faster.
        let per_half = (8 / op.size) as usize;
        for (elements, mut half) in elements.chunks(per_half).zip([v as u64, (v >> 64) as u64]) {
            for &Reg { at, slot } in elements {
                set(regs, at, slot, lane, extend(op, half));
                half = half.wrapping_shr(8 * op.size);
            }
        }
    }
}

/// The elements of an access of one lane, from their registers.
#[inline(always)]
unsafe fn get_elements(regs: *mut u8, op: &MemOp, elements: &[Reg], lane: usize) -> u128 {
    // SAFETY: the slots lie in the register file.
    unsafe {
        if op.size >= 16 {
            return elements
                .first()
                .map_or(0, |&Reg { at, slot }| get(regs, at, slot, lane));
        }
        let bits = 8 * op.size;
        let per_half = (8 / op.size) as usize;
        let mut halves = [0u64; 2];
        for (elements, half) in elements.chunks(per_half).zip(&mut halves) {
            for &Reg { at, slot } in elements.iter().rev() {
                let element = get(regs, at, slot, lane) as u64 & (u64::MAX >> (64 - bits));
                *half = half.wrapping_shl(bits) | element;
            }
        }
        u128::from(halves[0]) | u128::from(halves[1]) << 64
    }
}

/// Loads the accesses at `a` plus `step` into the registers of their elements.
///
/// # Safety
/// The accesses of all active lanes are accessible and aligned to their size, `bytes`.
#[inline(always)]
unsafe fn load_accesses(
    regs: *mut u8,
    op: &MemOp,
    elements: &[Reg],
    bytes: u32,
    (a, step): (&[u64; LANES], u64),
    active: u32,
) {
    use Slot::{R32, R64};
    let row = |at: u32| regs.wrapping_add(at as usize);
    // SAFETY: upheld by the caller; slots lie in the register file.
    unsafe {
        match (op.size, elements) {
            (1, &[Reg { at: x, slot: R32 }]) => {
                let x = row(x).cast::<u32>();
                for l in lanes(active) {
                    *x.add(l) = extend(op, host::read(a[l] + step, 1) as u64) as u32;
                }
            }
            (2, &[Reg { at: x, slot: R32 }]) => {
                let x = row(x).cast::<u32>();
                for l in lanes(active) {
                    *x.add(l) = extend(op, host::read(a[l] + step, 2) as u64) as u32;
                }
            }
            (4, &[Reg { at: x, slot: R32 }]) => {
                let x = row(x).cast::<u32>();
                for l in lanes(active) {
                    *x.add(l) = host::read_32(a[l] + step);
                }
            }
            (8, &[Reg { at: x, slot: R64 }]) => {
                let x = row(x).cast::<u64>();
                for l in lanes(active) {
                    *x.add(l) = host::read_64(a[l] + step);
                }
            }
            (4, &[Reg { at: x, slot: R32 }, Reg { at: y, slot: R32 }]) => {
                let (x, y) = (row(x).cast::<u32>(), row(y).cast::<u32>());
                for l in lanes(active) {
                    let v = host::read_64(a[l] + step);
                    *x.add(l) = v as u32;
                    *y.add(l) = (v >> 32) as u32;
                }
            }
            (
                4,
                &[
                    Reg { at: x, slot: R32 },
                    Reg { at: y, slot: R32 },
                    Reg { at: z, slot: R32 },
                    Reg { at: w, slot: R32 },
                ],
            ) => {
                let to = [x, y, z, w].map(|at| row(at).cast::<u32>());
                for l in lanes(active) {
                    let v = host::read(a[l] + step, 16);
                    for (k, to) in to.iter().enumerate() {
                        *to.add(l) = (v >> (32 * k)) as u32;
                    }
                }
            }
            (8, &[Reg { at: x, slot: R64 }, Reg { at: y, slot: R64 }]) => {
                let (x, y) = (row(x).cast::<u64>(), row(y).cast::<u64>());
                for l in lanes(active) {
                    let v = host::read(a[l] + step, 16);
                    *x.add(l) = v as u64;
                    *y.add(l) = (v >> 64) as u64;
                }
            }
            _ if op.size < 16 => {
                let mut halves = [[0u64; LANES]; 2];
                for l in lanes(active) {
                    let v = host::read(a[l] + step, bytes);
                    halves[0][l] = v as u64;
                    halves[1][l] = (v >> 64) as u64;
                }
                for (k, &Reg { at, slot }) in elements.iter().enumerate() {
                    let (half, shift) = position(op, k);
                    for l in lanes(active) {
                        let v = extend(op, halves[half][l] >> shift);
                        match slot {
                            R32 => *row(at).cast::<u32>().add(l) = v as u32,
                            R64 => *row(at).cast::<u64>().add(l) = v as u64,
                            _ => set(regs, at, slot, l, v),
                        }
                    }
                }
            }
            _ => {
                for l in lanes(active) {
                    let v = host::read(a[l] + step, bytes);
                    set_elements(regs, op, elements, l, v);
                }
            }
        }
    }
}

/// Stores the accesses at `a` plus `step` from the registers of their elements.
///
/// # Safety
/// As for [`load_accesses`], for writes.
#[inline(always)]
unsafe fn store_accesses(
    regs: *mut u8,
    op: &MemOp,
    elements: &[Reg],
    bytes: u32,
    (a, step): (&[u64; LANES], u64),
    active: u32,
) {
    use Slot::{R32, R64};
    let row = |at: u32| regs.wrapping_add(at as usize);
    // SAFETY: upheld by the caller; slots lie in the register file.
    unsafe {
        match (op.size, elements) {
            (1, &[Reg { at: x, slot: R32 }]) => {
                let x = row(x).cast::<u32>();
                for l in lanes(active) {
                    host::write(a[l] + step, 1, u128::from(*x.add(l)));
                }
            }
            (2, &[Reg { at: x, slot: R32 }]) => {
                let x = row(x).cast::<u32>();
                for l in lanes(active) {
                    host::write(a[l] + step, 2, u128::from(*x.add(l)));
                }
            }
            (4, &[Reg { at: x, slot: R32 }]) => {
                let x = row(x).cast::<u32>();
                for l in lanes(active) {
                    host::write(a[l] + step, 4, u128::from(*x.add(l)));
                }
            }
            (8, &[Reg { at: x, slot: R64 }]) => {
                let x = row(x).cast::<u64>();
                for l in lanes(active) {
                    host::write(a[l] + step, 8, u128::from(*x.add(l)));
                }
            }
            (4, &[Reg { at: x, slot: R32 }, Reg { at: y, slot: R32 }]) => {
                let (x, y) = (row(x).cast::<u32>(), row(y).cast::<u32>());
                for l in lanes(active) {
                    let v = u128::from(*x.add(l)) | u128::from(*y.add(l)) << 32;
                    host::write(a[l] + step, 8, v);
                }
            }
            (
                4,
                &[
                    Reg { at: x, slot: R32 },
                    Reg { at: y, slot: R32 },
                    Reg { at: z, slot: R32 },
                    Reg { at: w, slot: R32 },
                ],
            ) => {
                let from = [x, y, z, w].map(|at| row(at).cast::<u32>());
                for l in lanes(active) {
                    let [x, y, z, w] = from.map(|f| u128::from(*f.add(l)));
                    host::write(a[l] + step, 16, x | y << 32 | z << 64 | w << 96);
                }
            }
            (8, &[Reg { at: x, slot: R64 }, Reg { at: y, slot: R64 }]) => {
                let (x, y) = (row(x).cast::<u64>(), row(y).cast::<u64>());
                for l in lanes(active) {
                    let v = u128::from(*x.add(l)) | u128::from(*y.add(l)) << 64;
                    host::write(a[l] + step, 16, v);
                }
            }
            _ if op.size < 16 => {
                let mut halves = [[0u64; LANES]; 2];
                let mask = u64::MAX >> (64 - 8 * op.size);
                for (k, &Reg { at, slot }) in elements.iter().enumerate() {
                    let (half, shift) = position(op, k);
                    for l in lanes(active) {
                        let v = match slot {
                            R32 => u64::from(*row(at).cast::<u32>().add(l)),
                            R64 => *row(at).cast::<u64>().add(l),
                            _ => get(regs, at, slot, l) as u64,
                        };
                        halves[half][l] |= (v & mask) << shift;
                    }
                }
                for l in lanes(active) {
                    let v = u128::from(halves[0][l]) | u128::from(halves[1][l]) << 64;
                    host::write(a[l] + step, bytes, v);
                }
            }
            _ => {
                for l in lanes(active) {
                    let v = get_elements(regs, op, elements, l);
                    host::write(a[l] + step, bytes, v);
                }
            }
        }
    }
}

/// Checks all active lanes at once. If all accesses lie in one region, or in shared memory, turns `a` into host addresses
/// and returns true.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn check_all(
    cx: &mut Context<'_, impl MemoryModel>,
    _: Admitted,
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
    match op.address.space {
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

/// The access of a load or store.
fn request(op: &MemOp, addresses: [u64; LANES], bytes: u32) -> AccessRequest {
    let kind = match op.store {
        true => AccessKind::Store,
        false => AccessKind::Load,
    };
    let order = match op.order {
        Semantics::Weak if op.atomic => Semantics::Relaxed,
        order => order,
    };
    AccessRequest {
        order,
        scope: op.scope.unwrap_or(Scope::Gpu),
        ..AccessRequest::weak(op.address.space, addresses, bytes, kind)
    }
}

/// A load of any kind.
#[inline(never)]
pub unsafe fn load(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.mem[inst.target as usize];
    // SAFETY: the operands lie in the register file, and every access is checked first.
    unsafe {
        let mut a = addresses(regs, &op.address);
        let bytes = op.size * op.regs.len() as u32;
        let admitted = admit(cx, inst, active, || request(op, a, bytes))?;
        if op.address.space == MemSpace::Local {
            return local_load(cx, admitted, w, regs, op, &a, active, bytes);
        }
        let access = access_bytes(op, bytes);
        let parts = op.regs.chunks((access / op.size) as usize);
        if !op.atomic
            && check_all(
                cx,
                admitted,
                op,
                inst.aux,
                &mut a,
                active,
                bytes,
                bytes.next_power_of_two(),
            )
        {
            for (elements, step) in parts.zip((0..).step_by(access as usize)) {
                load_accesses(regs, op, elements, access, (&a, step), active);
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
                admitted,
                op.address.space,
                inst.aux,
                l,
                a[l as usize],
                bytes,
                bytes.next_power_of_two(),
                false,
            )?;
            let order = host::load_order(op.order);
            match place {
                ResolvedAddress::Host(p) => {
                    for (elements, step) in parts.clone().zip((0..).step_by(access as usize)) {
                        let v = host::read_ordered(p + step, access, order);
                        set_elements(regs, op, elements, l as usize, v);
                    }
                }
                ResolvedAddress::Local(o) => {
                    let local = local_base(cx, w);
                    for (k, &Reg { at, slot }) in op.regs.iter().enumerate() {
                        let v = local_read(local, o + op.size * k as u32, l as usize, op.size);
                        set_elements(regs, op, &[Reg { at, slot }], l as usize, v);
                    }
                }
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

#[allow(clippy::too_many_arguments)]
unsafe fn local_load(
    cx: &mut Context<'_, impl MemoryModel>,
    admitted: Admitted,
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
            for (k, &Reg { at: reg, slot }) in op.regs.iter().enumerate() {
                let row = local_word(base, at as u32 + 4 * k as u32, 0).cast::<u32>();
                if slot == Slot::R32 {
                    blend32(row, regs.add(reg as usize).cast(), active);
                } else {
                    for l in 0..LANES {
                        if active >> l & 1 != 0 {
                            let v = local_read(base, at as u32 + 4 * k as u32, l, 4);
                            set(regs, reg, slot, l, extend(op, v as u64));
                        }
                    }
                }
            }
            return Ok(());
        }
        for lane in lanes(active) {
            let l = lane as u32;
            let ResolvedAddress::Local(o) = resolve(
                cx,
                admitted,
                op.address.space,
                0,
                l,
                a[l as usize],
                bytes,
                align,
                false,
            )?
            else {
                continue;
            };
            for (k, &Reg { at, slot }) in op.regs.iter().enumerate() {
                let v = local_read(base, o + op.size * k as u32, l as usize, op.size);
                set_elements(regs, op, &[Reg { at, slot }], l as usize, v);
            }
        }
    }
    Ok(())
}

/// A store of any kind.
#[inline(never)]
pub unsafe fn store(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.mem[inst.target as usize];
    // SAFETY: the operands lie in the register file, and every access is checked first.
    unsafe {
        let mut a = addresses(regs, &op.address);
        let bytes = op.size * op.regs.len() as u32;
        let align = bytes.next_power_of_two();
        let admitted = admit(cx, inst, active, || request(op, a, bytes))?;
        if op.address.space == MemSpace::Local
            && op.size == 4
            && let Some(at) = same_offset(&a, active)
            && at & u64::from(align - 1) == 0
            && at + u64::from(bytes) <= u64::from(cx.launch.local_bytes)
            && op.regs.iter().all(|r| r.slot == Slot::R32)
        {
            let base = local_base(cx, w);
            for (k, reg) in op.regs.iter().enumerate() {
                let row = local_word(base, at as u32 + 4 * k as u32, 0).cast::<u32>();
                blend32(regs.add(reg.at as usize).cast(), row, active);
            }
            return Ok(());
        }
        let access = access_bytes(op, bytes);
        let parts = op.regs.chunks((access / op.size) as usize);
        if !op.atomic
            && op.address.space != MemSpace::Local
            && check_all(cx, admitted, op, inst.aux, &mut a, active, bytes, align)
        {
            for (elements, step) in parts.zip((0..).step_by(access as usize)) {
                store_accesses(regs, op, elements, access, (&a, step), active);
            }
            return Ok(());
        }
        if op.atomic && op.order == Semantics::Sc {
            fence(Ordering::SeqCst);
        }
        for lane in lanes(active) {
            let l = lane as u32;
            let place = resolve(
                cx,
                admitted,
                op.address.space,
                inst.aux,
                l,
                a[l as usize],
                bytes,
                align,
                true,
            )?;
            let order = host::store_order(op.order);
            match place {
                ResolvedAddress::Host(p) => {
                    for (elements, step) in parts.clone().zip((0..).step_by(access as usize)) {
                        let v = get_elements(regs, op, elements, l as usize);
                        host::write_ordered(p + step, access, v, order);
                    }
                }
                ResolvedAddress::Local(o) => {
                    let local = local_base(cx, w);
                    for (k, &Reg { at, slot }) in op.regs.iter().enumerate() {
                        let v = get(regs, at, slot, l as usize);
                        local_write(local, o + op.size * k as u32, l as usize, op.size, v);
                    }
                }
            }
        }
        Ok(())
    }
}

/// `cp.async`. The copy completes at once.
pub unsafe fn cp_async<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.copies[inst.target as usize];
    let size = op.size;
    // SAFETY: both ranges are checked first and are at most 16 bytes long.
    unsafe {
        let to = addresses(regs, &op.to);
        let from = addresses(regs, &op.from);
        let ignore = op.ignore.map_or(0, |(r, negated)| {
            let p = *regs.add(r.at as usize).cast::<u32>();
            if negated { !p } else { p }
        });
        let reads: [u32; LANES] = std::array::from_fn(|l| {
            let given = op
                .read
                .map_or(size, |r| *regs.add(r.at as usize).cast::<u32>().add(l));
            match ignore >> l & 1 {
                0 => given.min(size),
                _ => 0,
            }
        });
        let asynchronous = |request| AccessRequest {
            asynchronous: true,
            ..request
        };
        let admitted = admit(cx, inst, active, || {
            asynchronous(AccessRequest::weak(
                MemSpace::Shared,
                to,
                size,
                AccessKind::Store,
            ))
        })?;
        // Lanes that read the same number of bytes make one access.
        let mut left = match M::CHECKS {
            true => lanes(active).fold(0, |on, l| on | u32::from(reads[l] > 0) << l),
            false => 0,
        };
        while left != 0 {
            let bytes = reads[first_lane(left)];
            let group = lanes(left).fold(0, |on, l| on | u32::from(reads[l] == bytes) << l);
            left &= !group;
            admit(cx, inst, group, || {
                asynchronous(AccessRequest::weak(
                    MemSpace::Generic,
                    from,
                    bytes,
                    AccessKind::Load,
                ))
            })?;
        }
        for lane in lanes(active) {
            let l = lane as u32;
            let dst = resolve(
                cx,
                admitted,
                MemSpace::Shared,
                inst.aux,
                l,
                to[l as usize],
                size,
                size,
                true,
            )?;
            let read = reads[lane];
            let mut value = 0;
            if read > 0 {
                let src = resolve(
                    cx,
                    admitted,
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
                value = if read == size {
                    host::read(p, size)
                } else {
                    // Without the bytes that are not read.
                    let mut bytes = [0u8; 16];
                    host::copy_out(p, &mut bytes[..read as usize]);
                    u128::from_le_bytes(bytes)
                };
            }
            if let ResolvedAddress::Host(p) = dst {
                host::write(p, size, value);
            }
        }
    }
    Ok(())
}

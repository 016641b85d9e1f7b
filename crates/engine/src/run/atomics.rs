//! `atom` and `red`.
//!
//! Each lane in turn executes one host atomic, or a compare-and-swap loop where the host has no such operation. Shared and
//! local memory need no atomics, but a generic address may point anywhere; all spaces therefore share one path.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use super::context::{Context, ExecResult};
use super::lanes::lanes;
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{
    ResolvedAddress, addresses, get, host, local_base, local_read, local_write, resolve, set,
};
use super::warp::Warp;
use crate::bytecode::Inst;
use crate::kir::Reg;
use crate::semantics::atomic::{add32, combine};
use crate::semantics::lane::flush;
use cupyrite_ptx::ir::{AtomOp, Scope, Semantics, Type};

const RELAXED: Ordering = Ordering::Relaxed;

/// Executes one operation on host memory and returns the old value.
///
/// # Safety
/// The memory is valid for the type's size, and aligned to it.
pub(super) unsafe fn on_host(p: u64, op: AtomOp, ty: Type, v: u128, v2: u128) -> u128 {
    let f = |old: u64| Some(combine(op, ty, old, v as u64, v2 as u64));
    // The ordering is free: read-modify-write instructions of the supported hosts are ordered.
    let o = Ordering::AcqRel;
    // SAFETY: the caller has checked the range and its alignment.
    unsafe {
        match ty.bits() {
            8 => u128::from(
                host::atomic::<AtomicU8>(p)
                    .fetch_update(o, RELAXED, |x| f(u64::from(x)).map(|r| r as u8))
                    .unwrap_or(0),
            ),
            16 => u128::from(
                host::atomic::<AtomicU16>(p)
                    .fetch_update(o, RELAXED, |x| f(u64::from(x)).map(|r| r as u16))
                    .unwrap_or(0),
            ),
            32 => {
                let a = host::atomic::<AtomicU32>(p);
                let v = v as u32;
                u128::from(match op {
                    AtomOp::Add if !ty.is_float() => a.fetch_add(v, o),
                    AtomOp::And => a.fetch_and(v, o),
                    AtomOp::Or => a.fetch_or(v, o),
                    AtomOp::Xor => a.fetch_xor(v, o),
                    AtomOp::Exch => a.swap(v, o),
                    AtomOp::Cas => a
                        .compare_exchange(v, v2 as u32, o, Ordering::Acquire)
                        .unwrap_or_else(|x| x),
                    _ => a
                        .fetch_update(o, RELAXED, |x| f(u64::from(x)).map(|r| r as u32))
                        .unwrap_or(0),
                })
            }
            64 => {
                let a = host::atomic::<AtomicU64>(p);
                let v = v as u64;
                u128::from(match op {
                    AtomOp::Add if !ty.is_float() => a.fetch_add(v, o),
                    AtomOp::And => a.fetch_and(v, o),
                    AtomOp::Or => a.fetch_or(v, o),
                    AtomOp::Xor => a.fetch_xor(v, o),
                    AtomOp::Exch => a.swap(v, o),
                    AtomOp::Cas => a
                        .compare_exchange(v, v2 as u64, o, Ordering::Acquire)
                        .unwrap_or_else(|x| x),
                    _ => a.fetch_update(o, RELAXED, f).unwrap_or(0),
                })
            }
            _ => wide(p, op, v, v2),
        }
    }
}

/// `add.f32` in global memory, which flushes subnormal operands and results to zeros of the same sign; in shared memory it
/// does not (PTX ISA, "atom"; an H100 does so). Returns the old value as it was.
///
/// # Safety
/// As [`on_host`].
unsafe fn add_flushed(p: u64, v: u32) -> u128 {
    let v = flush(f32::from_bits(v));
    let add = |old| Some(flush(add32(flush(f32::from_bits(old)), v)).to_bits());
    // SAFETY: the caller has checked the range and its alignment.
    let at = unsafe { host::atomic::<AtomicU32>(p) };
    u128::from(at.fetch_update(Ordering::AcqRel, RELAXED, add).unwrap_or(0))
}

/// 128-bit exchange and compare-and-swap.
unsafe fn wide(p: u64, op: AtomOp, v: u128, v2: u128) -> u128 {
    // SAFETY: the caller has checked the range and its alignment.
    unsafe {
        if op == AtomOp::Cas {
            return host::compare_exchange_16(p, v, v2);
        }
        let mut old = host::read(p, 16);
        loop {
            let found = host::compare_exchange_16(p, old, v);
            if found == old {
                return old;
            }
            old = found;
        }
    }
}

/// `atom`, `red`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn atomic(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.atomics[inst.target as usize];
    if op.order == Semantics::Sc {
        fence(Ordering::SeqCst);
    }
    let size = op.ty.bytes();
    let bytes = size * op.src.len() as u32;
    let mask = if size >= 16 {
        u128::MAX
    } else {
        (1u128 << (8 * size)) - 1
    };
    // SAFETY: the operands lie in the register file, and `resolve` checks each access.
    unsafe {
        let a = addresses(regs, &op.address);
        let admitted = admit(cx, inst, active, || AccessRequest {
            order: op.order,
            scope: op.scope.unwrap_or(Scope::Gpu),
            ..AccessRequest::weak(op.address.space, a, bytes, AccessKind::Atomic)
        })?;
        for lane in lanes(active) {
            let l = lane as u32;
            let lane = l as usize;
            let place = resolve(
                cx,
                admitted,
                op.address.space,
                inst.aux,
                l,
                a[lane],
                bytes,
                bytes.next_power_of_two(),
                true,
            )?;
            for (k, &Reg { at, slot }) in op.src.iter().enumerate() {
                let v = get(regs, at, slot, lane) & mask;
                let v2 = op.src2.map_or(0, |r| get(regs, r.at, r.slot, lane) & mask);
                let step = size * k as u32;
                let old = match place {
                    ResolvedAddress::Host(p)
                        if (op.op, op.ty) == (AtomOp::Add, Type::F32) && !cx.block.is_shared(p) =>
                    {
                        add_flushed(p + u64::from(step), v as u32)
                    }
                    ResolvedAddress::Host(p) => on_host(p + u64::from(step), op.op, op.ty, v, v2),
                    ResolvedAddress::Local(o) => {
                        // Local memory belongs to the thread.
                        let base = local_base(cx, w);
                        let mut old = local_read(base, o + step, lane, size);
                        let new = on_host(&raw mut old as u64, op.op, op.ty, v, v2);
                        local_write(base, o + step, lane, size, old);
                        new
                    }
                };
                if let Some(&Reg { at, slot }) = op.dst.get(k) {
                    set(regs, at, slot, lane, old);
                }
            }
        }
    }
    Ok(())
}

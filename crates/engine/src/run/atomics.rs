//! `atom` and `red`.
//!
//! Each lane in turn executes one host atomic, or a compare-and-swap loop where the host has no such operation. Shared and
//! local memory need no atomics, but a generic address may point anywhere; all spaces therefore share one path.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use cupyrite_ptx::ir::{AtomOp, Scope, Semantics, Type};
use half::{bf16, f16};

use super::context::{Context, ExecResult};
use super::lanes::lanes;
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{
    ResolvedAddress, addresses, get, host, local_base, local_read, local_write, resolve, set,
};
use super::warp::Warp;
use crate::kir::Reg;
use crate::semantics::lane::flush;
use crate::tier::interpreter::code::Inst;

/// Applies `f` to both halves.
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// An operation on half-precision values.
fn half_op(op: AtomOp, bf: bool) -> impl Fn(u16, u16) -> u16 {
    move |a, b| {
        // Rounding twice is exact: f32 has 24 bits, more than twice the 11 of f16 and the 8 of bf16.
        let (x, y) = if bf {
            (bf16::from_bits(a).to_f32(), bf16::from_bits(b).to_f32())
        } else {
            (f16::from_bits(a).to_f32(), f16::from_bits(b).to_f32())
        };
        let r = match op {
            AtomOp::Min => x.min(y),
            AtomOp::Max => x.max(y),
            _ => x + y,
        };
        if bf {
            bf16::from_f32(r).to_bits()
        } else {
            f16::from_f32(r).to_bits()
        }
    }
}

/// The value that replaces `old`.
pub fn combine(op: AtomOp, ty: Type, old: u64, v: u64, v2: u64) -> u64 {
    use Type::*;
    let wide = ty.bits() == 64;
    match op {
        AtomOp::And => old & v,
        AtomOp::Or => old | v,
        AtomOp::Xor => old ^ v,
        AtomOp::Exch => v,
        AtomOp::Cas => {
            if old == v {
                v2
            } else {
                old
            }
        }
        AtomOp::Add => match ty {
            F32 => u64::from((f32::from_bits(old as u32) + f32::from_bits(v as u32)).to_bits()),
            F64 => (f64::from_bits(old) + f64::from_bits(v)).to_bits(),
            F16 => u64::from(half_op(op, false)(old as u16, v as u16)),
            BF16 => u64::from(half_op(op, true)(old as u16, v as u16)),
            F16x2 => u64::from(halves(old as u32, v as u32, half_op(op, false))),
            BF16x2 => u64::from(halves(old as u32, v as u32, half_op(op, true))),
            _ if wide => old.wrapping_add(v),
            _ => u64::from((old as u32).wrapping_add(v as u32)),
        },
        AtomOp::Inc => {
            if old as u32 >= v as u32 {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old as u32 > v as u32 {
                v
            } else {
                old - 1
            }
        }
        AtomOp::Min | AtomOp::Max => {
            let max = op == AtomOp::Max;
            match ty {
                S32 => u64::from(pick(max, old as i32, v as i32) as u32),
                S64 => pick(max, old as i64, v as i64) as u64,
                F16 => u64::from(half_op(op, false)(old as u16, v as u16)),
                BF16 => u64::from(half_op(op, true)(old as u16, v as u16)),
                F16x2 => u64::from(halves(old as u32, v as u32, half_op(op, false))),
                BF16x2 => u64::from(halves(old as u32, v as u32, half_op(op, true))),
                _ => pick(max, old, v),
            }
        }
        AtomOp::Popc => old,
    }
}

fn pick<T: Ord>(max: bool, a: T, b: T) -> T {
    if max { a.max(b) } else { a.min(b) }
}

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
    let add = |old| Some(flush(flush(f32::from_bits(old)) + v).to_bits());
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
    let (shared, shared_bytes) = (cx.block.shared() as u64, cx.block.shared_bytes.into());
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
                        if (op.op, op.ty) == (AtomOp::Add, Type::F32)
                            && p.wrapping_sub(shared) >= shared_bytes =>
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

//! The operations of `atom`, `red` and other reductions.
//!
//! Belongs here: which operations exist, and the value that replaces the one in memory. That nothing comes between the two is the caller's matter
//! (`run::atomics`).

use cupyrite_ptx::ir::{AtomOp, Type};
use half::{bf16, f16};

/// Whether `op` exists for `ty` (PTX ISA, "atom").
pub fn exists(op: AtomOp, ty: Type) -> bool {
    use Type::*;
    match op {
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, B32 | B64 | U32 | U64 | S32 | S64),
        AtomOp::Cas => matches!(ty.bits(), 16 | 32 | 64 | 128) && !matches!(ty, F16x2 | BF16x2),
        AtomOp::Exch => matches!(ty.bits(), 32 | 64 | 128),
        AtomOp::Add => {
            matches!(
                ty,
                U32 | S32 | B32 | U64 | S64 | B64 | F32 | F64 | F16 | F16x2 | BF16 | BF16x2
            )
        }
        AtomOp::Inc | AtomOp::Dec => matches!(ty, U32 | B32),
        AtomOp::Min | AtomOp::Max => {
            matches!(ty, U32 | S32 | U64 | S64 | F16 | F16x2 | BF16 | BF16x2)
        }
        AtomOp::Popc => false,
    }
}

/// Applies `f` to both halves.
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// The sum; if the first operand is a NaN, that one, quieted. The addition of Rust returns either operand then, as the compiler
/// orders them, and all tiers must return the same.
pub fn add32(a: f32, b: f32) -> f32 {
    const QUIET: u32 = 1 << 22;
    match a.is_nan() {
        true => f32::from_bits(a.to_bits() | QUIET),
        false => a + b,
    }
}

/// [`add32`] in double precision.
fn add64(a: f64, b: f64) -> f64 {
    const QUIET: u64 = 1 << 51;
    match a.is_nan() {
        true => f64::from_bits(a.to_bits() | QUIET),
        false => a + b,
    }
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
            F32 => u64::from(add32(f32::from_bits(old as u32), f32::from_bits(v as u32)).to_bits()),
            F64 => add64(f64::from_bits(old), f64::from_bits(v)).to_bits(),
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

/// Combines the values of an element in the memory of several devices, in their order; zero if there are none. `wide` adds
/// halves in `f32` and rounds once (`.acc::f32`).
pub fn combine_all(op: AtomOp, ty: Type, wide: bool, values: &[u64]) -> u64 {
    if !wide {
        let values = values.iter().copied();
        return values.reduce(|a, b| combine(op, ty, a, b, 0)).unwrap_or(0);
    }
    let brain = matches!(ty, Type::BF16 | Type::BF16x2);
    let sum = |shift: u32| {
        let half = |v: &u64| {
            let bits = (v >> shift) as u16;
            match brain {
                true => bf16::from_bits(bits).to_f32(),
                false => f16::from_bits(bits).to_f32(),
            }
        };
        // Not from zero, which would change the sign of a sum of negative zeros.
        let sum = values.iter().map(half).reduce(|a, b| a + b).unwrap_or(0.0);
        match brain {
            true => bf16::from_f32(sum).to_bits(),
            false => f16::from_f32(sum).to_bits(),
        }
    };
    match ty {
        Type::F16x2 | Type::BF16x2 => u64::from(sum(0)) | u64::from(sum(16)) << 16,
        _ => u64::from(sum(0)),
    }
}

fn pick<T: Ord>(max: bool, a: T, b: T) -> T {
    if max { a.max(b) } else { a.min(b) }
}

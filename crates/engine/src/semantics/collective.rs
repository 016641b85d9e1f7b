//! Instructions that the lanes of a warp execute together: `shfl`, `vote`, `match`, `redux`.
//!
//! Belongs here: their results. Which lanes have come together is the caller's matter
//! (`run::warp_collectives`); the lanes that contribute are a mask.

use cupyrite_ptx::ir::{AtomOp, ShflMode, Type, VoteMode};

/// `shfl`: the value of the lane that each lane names, or its own where that is out of range; and the mask of lanes for which
/// it is in range. `lane` is the source lane or the distance to it, `clamp` the bound and the mask of segments (PTX ISA, "shfl").
/// The value of a lane that does not participate is unspecified.
pub fn shuffle(
    mode: ShflMode,
    value: &[u32; 32],
    lane: &[u32; 32],
    clamp: &[u32; 32],
) -> ([u32; 32], u32) {
    let mut result = [0; 32];
    let mut in_range = 0;
    for own in 0..32u32 {
        let l = own as usize;
        let b = lane[l] & 31;
        let segment = clamp[l] >> 8 & 31;
        let first = own & segment;
        let bound = (first | clamp[l] & 31 & !segment).cast_signed();
        let from = match mode {
            ShflMode::Up => own.cast_signed() - b.cast_signed(),
            ShflMode::Down => (own + b).cast_signed(),
            ShflMode::Bfly => (own ^ b).cast_signed(),
            ShflMode::Idx => (first | b & !segment).cast_signed(),
        };
        let inside = match mode {
            ShflMode::Up => from >= bound,
            _ => from <= bound,
        };
        in_range |= u32::from(inside) << own;
        result[l] = value[if inside { from as usize & 31 } else { l }];
    }
    (result, in_range)
}

/// `vote`: the result of lanes of which `yes` have a true predicate. That of [`VoteMode::Ballot`] is `yes` itself.
pub fn vote(mode: VoteMode, yes: u32, participating: u32) -> bool {
    match mode {
        VoteMode::All => yes == participating,
        VoteMode::Any | VoteMode::Ballot => yes != 0,
        VoteMode::Uni => yes == participating || yes == 0,
    }
}

/// `match`: the participating lanes that have this value.
pub fn equal(values: &[u64; 32], value: u64, participating: u32) -> u32 {
    let with = values.iter().enumerate();
    with.fold(0, |lanes, (l, v)| lanes | u32::from(*v == value) << l) & participating
}

/// The operation of `redux.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduxOp {
    /// Operation.
    pub op: AtomOp,
    /// Type.
    pub ty: Type,
    /// Absolute values (`.abs`, f32).
    pub abs: bool,
    /// NaN propagates (`.NaN`, f32).
    pub nan: bool,
}

/// `redux.sync`: reduces the values of the participating lanes to one. The operations are associative and commutative, so the
/// order of the lanes does not matter. Returns zero if there are no values.
pub fn redux(op: ReduxOp, mut values: impl Iterator<Item = u32>) -> u32 {
    let mut first = values.next().unwrap_or(0);
    if op.abs {
        first &= 0x7fff_ffff;
    }
    values.fold(first, |a, b| reduce(op, a, b))
}

/// Combines two values.
fn reduce(ReduxOp { op, ty, abs, nan }: ReduxOp, a: u32, b: u32) -> u32 {
    if ty == Type::F32 {
        let (x, mut y) = (f32::from_bits(a), f32::from_bits(b));
        if abs {
            y = y.abs();
        }
        if nan && (x.is_nan() || y.is_nan()) {
            return 0x7fff_ffff;
        }
        let r = match op {
            AtomOp::Min if x == y => {
                if x.is_sign_negative() {
                    x
                } else {
                    y
                }
            }
            AtomOp::Max if x == y => {
                if x.is_sign_negative() {
                    y
                } else {
                    x
                }
            }
            AtomOp::Min => x.min(y),
            _ => x.max(y),
        };
        return if r.is_nan() { 0x7fff_ffff } else { r.to_bits() };
    }
    match op {
        AtomOp::Min if ty.is_signed() => (a as i32).min(b as i32) as u32,
        AtomOp::Max if ty.is_signed() => (a as i32).max(b as i32) as u32,
        AtomOp::Min => a.min(b),
        AtomOp::Max => a.max(b),
        AtomOp::And => a & b,
        AtomOp::Or => a | b,
        AtomOp::Xor => a ^ b,
        _ => a.wrapping_add(b),
    }
}

//! Matrix instructions: `mma`, `wmma`, `wgmma`, `ldmatrix`, `stmatrix`, `movmatrix`.

mod element;
mod float;
mod fragment;
mod multiply;
#[cfg(target_arch = "x86_64")]
mod parts;
mod quad;
mod sparse;
mod tile;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(all(test, target_arch = "x86_64"))]
mod vector_tests;
mod wgmma;
mod wmma;

use cupyrite_ptx::ir::{Instr, Op, Operand, Type, Word};

pub use multiply::Multiply;
pub use quad::QuadPairs;
pub use wgmma::Warpgroup;
pub use wmma::Tile;

use super::{Selected, Warp};
use crate::fault::{FaultDetail, FaultKind, LaneFault};
use crate::semantics::lane::{OperandRef, OperandSlot};
use element::Element;

/// Selects the warp function of a matrix instruction.
pub fn select(i: &Instr) -> Option<Selected> {
    match i.op {
        Op::Mma => multiply::select(i),
        Op::Wmma if i.mods.has(Word::Load) || i.mods.has(Word::Store) => wmma::select(i),
        Op::Wmma => multiply::select(i),
        Op::Wgmma => wgmma::select(i),
        Op::Ldmatrix => tile::load(i),
        Op::Stmatrix => tile::store(i),
        Op::Movmatrix => tile::transpose(i),
        _ => None,
    }
}

/// The fault of an instruction whose operands are not those that its function was selected for.
#[cold]
fn unexpected() -> Box<LaneFault> {
    Box::new(LaneFault {
        kind: FaultKind::IllegalInstruction,
        lane: 0,
        detail: FaultDetail::Text(
            "internal error: the operands are those of another function".into(),
        ),
    })
}

/// The extents of a product: A has `m` rows and `k` columns, B `k` rows and `n` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
}

/// The shape that an instruction names, such as `m16n8k16`.
fn shape(i: &Instr) -> Option<Shape> {
    i.mods.other.iter().find_map(|word| {
        let (m, rest) = word.text().strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Shape {
            m: m.parse().ok()?,
            n: n.parse().ok()?,
            k: k.parse().ok()?,
        })
    })
}

/// The registers of operand `k`: those of a vector, or one.
fn register_count(i: &Instr, k: usize) -> Option<usize> {
    Some(match i.operands.get(k)? {
        Operand::Vector(list) => list.len(),
        _ => 1,
    })
}

/// The lowest active lane of a warp.
fn first_lane(warp: &dyn Warp) -> usize {
    warp.active().trailing_zeros() as usize & 31
}

/// The elements of vector operand `k`, which are of this type; `None` if it has another number of them.
fn elements(i: &Instr, k: u8, count: u8, ty: Type) -> Option<Vec<OperandSlot>> {
    let found = register_count(i, usize::from(k))?;
    let part = |c| OperandSlot::new(OperandRef::Part(k, c), ty);
    (found == usize::from(count)).then(|| (0..count).map(part).collect())
}

/// The type of the registers that hold elements.
fn slot_type(e: Element) -> Type {
    match e {
        Element::F64 => Type::F64,
        Element::F32 => Type::F32,
        _ => Type::B32,
    }
}

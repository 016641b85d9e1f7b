//! Addresses of shared memory in a cluster (PTX ISA, `mapa`, `getctarank`).

use super::lanes::lane;
use super::operation::{OpFn, Selected};
use crate::address_windows::{WINDOW, cluster_block, mapped, windows};
use cupyrite_ptx::ir::{Instr, Op, Space, Type};

/// Selects the function of an instruction that maps addresses. The compiler has added the rank of the executing block to
/// the operands of `getctarank`.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    let generic = i.mods.space != Some(Space::SharedCluster);
    Some(match i.op {
        Op::Mapa => Selected::new(mapa(t, generic)?, t, &[t, Type::B32]),
        Op::Getctarank => Selected::new(rank(t, generic)?, Type::B32, &[t, Type::B32]),
        _ => return None,
    })
}

fn mapa(t: Type, generic: bool) -> Option<OpFn> {
    Some(match (t, generic) {
        (Type::U32, false) => lane!(|a: u32, rank: u32| -> u32 { mapped(a.into(), rank) as u32 }),
        (Type::U64, false) => lane!(|a: u64, rank: u32| -> u64 { mapped(a, rank) }),
        (Type::U64, true) => lane!(|a: u64, rank: u32| -> u64 {
            let base = windows().shared;
            base + mapped(a.wrapping_sub(base), rank)
        }),
        // A generic address has 64 bits.
        _ => return None,
    })
}

/// The rank of the block that an offset in the shared window names.
#[inline(always)]
fn rank_of(at: u64, own: u32) -> u32 {
    match cluster_block(at) {
        _ if at >= WINDOW => u32::MAX,
        Some((rank, _)) => rank as u32,
        None => own,
    }
}

fn rank(t: Type, generic: bool) -> Option<OpFn> {
    Some(match (t, generic) {
        (Type::U32, false) => lane!(|a: u32, own: u32| -> u32 { rank_of(a.into(), own) }),
        (Type::U64, false) => lane!(|a: u64, own: u32| -> u32 { rank_of(a, own) }),
        (Type::U64, true) => {
            lane!(|a: u64, own: u32| -> u32 { rank_of(a.wrapping_sub(windows().shared), own) })
        }
        _ => return None,
    })
}

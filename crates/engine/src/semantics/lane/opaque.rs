//! Values whose format the PTX ISA leaves open: cache policies (`createpolicy`) and the types of handles (`istypep`). The
//! formats are those that ptxas 13.5 uses for `sm_90`, as programs and libraries contain policies as constants.

use super::lanes::lane;
use super::operation::{OperandRef, OperandSlot, Selected};
use cupyrite_ptx::ir::{Instr, Op, Type, Word};

pub(super) fn select(i: &Instr) -> Option<Selected> {
    match i.op {
        Op::Createpolicy => policy(i),
        Op::Istypep => {
            let bit = match i.types.first()? {
                Type::SurfRef => 63,
                Type::SamplerRef => 62,
                _ => 61,
            };
            let code = lane!(imm n; |handle: u64| -> bool { handle >> n & 1 != 0 });
            Some(Selected::new(code, Type::Pred, &[Type::U64]).with_imm(bit))
        }
        _ => None,
    }
}

/// `createpolicy`: the priorities are in the upper 12 bits, of which the lowest four are the fraction of the accesses that
/// has the primary one. The device has no cache, so the range of a `.range` policy is not part of the value.
fn policy(i: &Instr) -> Option<Selected> {
    if i.mods.has(Word::Cvt) {
        // An access property of the host is a policy already.
        let code = lane!(|a: u64| -> u64 { a });
        return Some(Selected::new(code, Type::B64, &[Type::B64]));
    }
    let mut priorities = i.mods.other.iter().filter_map(|word| match word {
        Word::L2EvictUnchanged => Some(0x00),
        Word::L2EvictFirst => Some(0x20),
        Word::L2EvictLast => Some(0x40),
        Word::L2EvictNormal => Some(0x60),
        _ => None,
    });
    let primary = priorities.next()?;
    // The secondary priority is `evict_unchanged` or `evict_first`.
    let secondary = priorities.next().unwrap_or(0) >> 1;
    let imm = 0x100 | primary | secondary;
    let fraction = i.mods.has(Word::Fractional) && i.operands.len() > 1;
    let code = if fraction {
        lane!(imm n; |fraction: f32| -> u64 { u64::from(n | (fraction * 15.99) as u32 & 15) << 52 })
    } else {
        lane!(imm n; |_a: f32| -> u64 { u64::from(n | 15) << 52 })
    };
    let mut s = Selected::new(code, Type::B64, &[Type::F32]);
    if !fraction {
        s.srcs[0] = Some(OperandSlot::new(OperandRef::Scratch, Type::F32));
    }
    Some(s.with_imm(imm))
}

//! Addresses of memory accesses as a varying plus a uniform register.

use cupyrite_ptx::ir::{Op, Special};

use super::remove;
use super::uniformity::count_definitions;
use crate::build::CompileError;
use crate::kir::{
    Action, Function, Instruction, MemSpace, Reg, Register, Role, Source, Uniformity,
};
use crate::semantics::lane::Slot;

/// An addition of a varying and a uniform 64-bit register.
struct Sum {
    result: Reg,
    varying: Reg,
    uniform: Reg,
}

/// Of each register, whether its value differs in the lanes of a warp although it does not change during a block: what is
/// computed from `%laneid` and `%lanemask`.
fn differs_by_lane(f: &Function) -> Vec<bool> {
    use Special::{LaneId, LaneMaskEq, LaneMaskGe, LaneMaskGt, LaneMaskLe, LaneMaskLt};
    let of_lane = |r: &Register| {
        let Source::Special(special) = r.source else {
            return false;
        };
        matches!(
            special,
            LaneId | LaneMaskEq | LaneMaskGe | LaneMaskGt | LaneMaskLe | LaneMaskLt
        )
    };
    let mut differs: Vec<bool> = f.registers.iter().map(of_lane).collect();
    // Each follows the definitions of its sources.
    for i in f.launch_prologue.iter().chain(&f.block_prologue) {
        let mut reads = false;
        i.action
            .for_each(&mut |role, r| reads |= role == Role::Read && differs[r.at as usize]);
        i.action.for_each(&mut |role, r| {
            if role == Role::Write {
                differs[r.at as usize] |= reads;
            }
        });
    }
    differs
}

/// Finds memory accesses whose address is the sum of a varying register and of one that is constant for the block. The
/// memory unit then adds the uniform part once per warp. Removes additions that nothing else uses.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a pass")]
pub fn split_addresses(f: &mut Function) -> Result<(), CompileError> {
    /// A bound for the cost of each instruction: addresses are used soon after they are computed.
    const MOST_SUMS: usize = 256;
    let mut targets = vec![false; f.blocks.len()];
    for i in f.instructions() {
        match &i.action {
            Action::Branch { target, .. } => targets[target.0 as usize] = true,
            Action::BranchIndexed { targets: list, .. } => {
                list.iter().for_each(|t| targets[t.0 as usize] = true);
            }
            _ => {}
        }
    }
    let definitions = count_definitions(f);
    let differs = differs_by_lane(f);
    let mut uses = vec![0u32; f.registers.len()];
    for i in f.instructions() {
        i.guard
            .iter()
            .for_each(|g| uses[g.predicate.at as usize] += 1);
        i.action
            .for_each(&mut |role, r| uses[r.at as usize] += u32::from(role == Role::Read));
    }
    // Sums since the last branch target whose parts have not been overwritten.
    let mut sums: Vec<Sum> = Vec::new();
    let mut saved_uses = vec![0u32; f.registers.len()];
    for (block, b) in f.blocks.iter_mut().enumerate() {
        if targets[block] {
            sums.clear();
        }
        for i in &mut b.instructions {
            if let Some(address) = i.action.address_mut()
                && address.space != MemSpace::Shared
                && let Some(s) = sums.iter().find(|s| s.result == address.base)
            {
                address.base = s.varying;
                address.uniform = Some(s.uniform);
                saved_uses[s.result.at as usize] += 1;
            }
            if !sums.is_empty() {
                i.action.for_each(&mut |role, r| {
                    if role == Role::Write {
                        sums.retain(|s| s.varying != *r && s.result != *r);
                    }
                });
            }
            if let Some(sum) = uniform_sum(i, &definitions, &differs, &f.registers) {
                if sums.len() == MOST_SUMS {
                    sums.remove(0);
                }
                sums.push(sum);
            }
        }
    }
    let unused = |r: &Reg| {
        let r = r.at as usize;
        saved_uses[r] > 0 && saved_uses[r] == uses[r]
    };
    let omitted: Vec<bool> = (f.instructions())
        .map(|i| {
            let sum = uniform_sum(i, &definitions, &differs, &f.registers);
            sum.is_some_and(|s| unused(&s.result))
        })
        .collect();
    remove(f, &omitted);
    Ok(())
}

/// The parts of an unguarded 64-bit addition of a varying and a uniform register whose result has no other definition.
fn uniform_sum(
    i: &Instruction,
    definitions: &[u32],
    differs: &[bool],
    registers: &[Register],
) -> Option<Sum> {
    let Action::Lanes(op) = &i.action else {
        return None;
    };
    let adds = matches!(op.op, Some((Op::Add, ty)) if ty.bits() == 64 && !ty.is_float());
    if !adds || i.guard.is_some() {
        return None;
    }
    // One that writes the carry flag has a second destination.
    let ([Some(result), None, ..], [Some(a), Some(b), None, ..]) = (op.dst, op.src) else {
        return None;
    };
    let wide = [result, a, b].iter().all(|r| r.slot == Slot::R64);
    if !wide || definitions[result.at as usize] != 1 || result == a || result == b {
        return None;
    }
    let uniformity = |r: Reg| registers[r.at as usize].uniformity;
    let (varying, uniform) = match (uniformity(a).is_uniform(), uniformity(b).is_uniform()) {
        (true, false) => (b, a),
        (false, true) => (a, b),
        _ => return None,
    };
    let splits = uniformity(varying) == Uniformity::Varying && !differs[uniform.at as usize];
    splits.then_some(Sum {
        result,
        varying,
        uniform,
    })
}

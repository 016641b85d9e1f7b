//! Simplification of instructions before they are translated.

use std::borrow::Cow;
use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Op, Operand, Space, Special, Type, VarId};

use super::placed::{FunctionLayout, KernelLayout, PlacedModule};
use crate::address_windows::{function_address, windows};

/// The address of a variable if it is the same for every thread.
fn fixed_address(
    v: VarId,
    placed: &PlacedModule,
    of: &FunctionLayout<'_>,
    layout: &KernelLayout<'_>,
) -> Option<u64> {
    let FunctionLayout {
        id,
        function,
        frame,
        ..
    } = of;
    // In a cluster, each block has its own.
    let shared = |key: (Option<u32>, u32)| match placed.has_clusters() {
        true => None,
        false => layout.shared.get(&key).map(|&o| u64::from(o)),
    };
    match v {
        VarId::Module(n) => placed
            .globals
            .get(n as usize)
            .copied()
            .flatten()
            .or_else(|| shared((None, n))),
        VarId::Local(n) => {
            let var = of.body.vars.get(n as usize)?;
            match var.space {
                Space::Shared => shared((Some(id.0), n)),
                Space::Global | Space::Const => placed.body_globals.get(&(id.0, n)).copied(),
                // The frame of a kernel starts at offset zero of local memory.
                Space::Local | Space::Param if function.is_entry => {
                    frame.vars.get(n as usize).map(|&o| u64::from(o))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// An instruction with integers in place of known addresses, arithmetic in place of `cvta`, and all that a lane function needs
/// as its operands.
pub fn simplify<'i>(
    i: &'i Instr,
    placed: &PlacedModule,
    of: &FunctionLayout<'_>,
    layout: &KernelLayout<'_>,
) -> Cow<'i, Instr> {
    let mut has_addresses = false;
    for o in &i.operands {
        o.walk(&mut |o| has_addresses |= matches!(o, Operand::Var(..) | Operand::Func(_)));
    }
    if i.op == Op::Call || !(has_addresses || matches!(i.op, Op::Cvta | Op::Getctarank)) {
        return Cow::Borrowed(i);
    }
    let mut simplified = i.clone();
    let i = &mut simplified;
    if i.op == Op::Getctarank {
        // The rank that an address of the executing block alone has.
        i.operands.push(Operand::Special(Special::ClusterCtaRank));
    }
    for o in &mut i.operands {
        // The address of a texture reference stays symbolic.
        if matches!(o, Operand::TexAddr(_)) {
            continue;
        }
        o.walk_mut(&mut |o| match *o {
            Operand::Var(v, offset) => {
                if let Some(address) = fixed_address(v, placed, of, layout) {
                    *o = Operand::Int((address as i64).wrapping_add(offset));
                }
            }
            Operand::Func(f) => {
                let kernel = placed.kernel_addresses.of(f.0);
                *o = Operand::Int(kernel.unwrap_or_else(|| function_address(f.0)) as i64);
            }
            _ => {}
        });
    }
    if i.op == Op::Cvta {
        let window = match i.mods.space {
            Some(Space::Shared | Space::SharedCluster) => windows().shared,
            Some(Space::Local) => windows().local,
            Some(Space::Param) if !of.function.is_entry => windows().local,
            _ => 0,
        };
        if window == 0 {
            i.op = Op::Mov;
            i.types = Arc::new([Type::B64]);
        } else {
            i.op = if i.mods.to { Op::Sub } else { Op::Add };
            i.types = Arc::new([Type::U64]);
            i.operands.push(Operand::Int(window as i64));
        }
        let mods = Arc::make_mut(&mut i.mods);
        mods.space = None;
        mods.to = false;
    }
    Cow::Owned(simplified)
}

//! Register allocation: every register gets a fixed location in the kernel's register file.
//!
//! The file has three parts after the fixed locations: varying registers, values that change once per block, and values
//! that never change during a launch. A block copies the second part into the file of each of its warps; the third is
//! computed once per launch. Registers of different functions never share a location, so that only recursive calls save
//! registers. Unused registers get no location.

use cupyrite_ptx::ir::{Operand, Special};

use super::uniform::Uniformity;
use super::unit::{FunctionUnit, RegisterLocation};
use crate::program::{SaveSet, SpecialSlot, fixed};
use crate::semantics::lane::Slot;

/// The parts of the register file, as byte offsets.
pub struct RegisterFile {
    /// Start of the values that change once per block.
    pub block_from: u32,
    /// Their end.
    pub block_to: u32,
    /// End of the allocated registers.
    pub end: u32,
    /// Location of each block-wide special register that the kernel reads.
    pub block_specials: Vec<SpecialSlot>,
}

/// Whether an instruction of `units` reads a special register.
pub fn reads_special(units: &[FunctionUnit<'_>], special: Special) -> bool {
    let mut found = false;
    for o in units
        .iter()
        .flat_map(|u| &u.instrs)
        .flat_map(|i| &i.operands)
    {
        o.walk(&mut |o| found |= *o == Operand::Special(special));
    }
    found
}

/// Allocates the registers of all functions of a kernel.
pub fn allocate(units: &mut [FunctionUnit<'_>]) -> RegisterFile {
    let mut end = fixed::END;
    for u in &mut *units {
        u.save = allocate_uniformity(u, &mut end, Uniformity::Varying);
    }
    let block_from = end;
    for u in &mut *units {
        allocate_uniformity(u, &mut end, Uniformity::Block);
    }
    let mut block_specials = Vec::new();
    let coordinates = (0..3).flat_map(|axis| [Special::Ctaid(axis), Special::ClusterId(axis)]);
    for special in coordinates.chain([Special::SmId]) {
        if reads_special(units, special) {
            let slot = Slot::R32;
            block_specials.push(SpecialSlot {
                special,
                at: end,
                slot,
            });
            end += slot.bytes();
        }
    }
    let block_to = end;
    for u in &mut *units {
        allocate_uniformity(u, &mut end, Uniformity::Launch);
        for (n, uniformity) in u.uniformity.registers.iter().enumerate() {
            if let Uniformity::Tid(axis) = uniformity {
                let at = fixed::TID[usize::from(*axis) % 3];
                u.regs[n] = Some(RegisterLocation {
                    at,
                    slot: Slot::R32,
                });
            }
        }
    }
    RegisterFile {
        block_from,
        block_to,
        end,
        block_specials,
    }
}

/// Allocates the used registers of one uniformity from `end` on, grouped by shape, and returns their ranges.
fn allocate_uniformity(unit: &mut FunctionUnit<'_>, end: &mut u32, wanted: Uniformity) -> SaveSet {
    let mut used = vec![false; unit.body.regs.len()];
    for i in &unit.instrs {
        i.for_each_register(|r| used[r.0 as usize] = true);
    }
    let mut allocate_shape = |shape: Slot| {
        if shape != Slot::Pred {
            *end = end.next_multiple_of(64);
        }
        let from = *end;
        for (n, r) in unit.body.regs.iter().enumerate() {
            let slot = Slot::of(r.ty);
            if used[n] && slot == shape && unit.uniformity.registers[n] == wanted {
                unit.regs[n] = Some(RegisterLocation { at: *end, slot });
                *end += slot.bytes() * r.vector.max(1);
            }
        }
        (from, *end)
    };
    let set = SaveSet {
        preds: allocate_shape(Slot::Pred),
        r32: allocate_shape(Slot::R32),
        r64: allocate_shape(Slot::R64),
        r128: allocate_shape(Slot::R128),
    };
    *end = end.next_multiple_of(64);
    set
}

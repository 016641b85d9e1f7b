//! Where a function keeps its slots: in vector registers, or in the register file.
//!
//! A slot has one home in the whole function. The slots that are used most, weighted by loops, get registers: one for 32-bit
//! elements, two for 64-bit elements.

use std::cmp::Reverse;

use iced_x86::Register;

use super::addresses::Definition;
use super::flow::Flow;
use super::isa::Isa;
use crate::bytecode::{PlacedOperand, Program};
use crate::semantics::lane::Slot;

/// Vector registers that code may use for anything: those below this number.
pub const SCRATCH: u32 = 6;
/// The home of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The register file.
    Memory,
    /// A vector register.
    One(Register),
    /// Two vector registers, for the lower and the upper lanes.
    Two(Register, Register),
}

/// The homes of a function.
pub struct Homes {
    /// Those of the slots, by number.
    slots: Vec<Home>,
    /// With AVX2: those of the mask registers, if they are not in memory.
    masks: [Option<Register>; 8],
}

/// The mask registers that can have homes: those that cache predicates, and scratch.
const MASKS: [usize; 4] = [5, 6, 7, 3];

/// What can have registers as its home.
#[derive(Clone, Copy)]
enum Candidate {
    Slot(usize),
    Mask(usize),
}

/// The vector register with this number.
pub fn vector(n: u32) -> Register {
    Register::ZMM0 + n
}

impl Homes {
    /// Assigns homes.
    pub fn new(program: &Program, flow: &Flow, isa: Isa) -> Self {
        let mut weights = vec![0u64; flow.slots.len()];
        let mut predicates = 0;
        for b in flow.blocks.iter().filter(|b| !b.interpreted) {
            let weight = 8u64.pow(b.depth.min(5));
            for pc in b.code.clone() {
                let access = b.addresses.of_access(pc);
                let deferred = access.is_some_and(|a| a.deferred.is_some());
                let unread = deferred.then_some(program.code[pc as usize].args.src[0]);
                if matches!(b.addresses.definition(pc), Some(Definition::Deferred)) {
                    continue;
                }
                let operands = program.operands.of(pc).iter().map(|o| o.at);
                let root = access.map(|a| a.address.root.slot());
                let of_predicates = |o: &&PlacedOperand| o.slot == Slot::Pred;
                predicates +=
                    weight * program.operands.of(pc).iter().filter(of_predicates).count() as u64;
                for at in operands.filter(|at| Some(*at) != unread).chain(root) {
                    if let Some(n) = flow.number(at) {
                        weights[n] += weight;
                    }
                }
            }
        }
        let masks = match isa {
            Isa::Avx2 => &MASKS[..],
            Isa::Avx512 => &[],
        };
        let registers = |c: &Candidate| match c {
            Candidate::Slot(n) if flow.slots[*n].1 == Slot::R64 => 2,
            _ => 1,
        };
        let slots = (0..weights.len()).filter(|n| flow.slots[*n].1 != Slot::Pred);
        let slots = slots.map(|n| (weights[n], Candidate::Slot(n)));
        let masks = masks.iter().map(|k| (predicates / 3, Candidate::Mask(*k)));
        let mut order: Vec<(u64, Candidate)> = slots.chain(masks).filter(|c| c.0 > 0).collect();
        // Twice the weight per register, so that it stays an integer.
        order.sort_by_key(|(weight, c)| Reverse(2 * weight / registers(c)));
        let mut homes = Self {
            slots: vec![Home::Memory; weights.len()],
            masks: [None; 8],
        };
        let mut used = 0;
        for (_, candidate) in order {
            let needed = registers(&candidate) as u32;
            if used + needed > isa.homes() {
                continue;
            }
            let first = vector(SCRATCH + used);
            match candidate {
                Candidate::Mask(k) => homes.masks[k] = Some(Register::YMM0 + SCRATCH + used),
                Candidate::Slot(n) if needed == 1 => homes.slots[n] = Home::One(first),
                Candidate::Slot(n) => {
                    homes.slots[n] = Home::Two(first, vector(SCRATCH + used + 1));
                }
            }
            used += needed;
        }
        homes
    }

    /// The vector registers of masks.
    pub fn masks(&self) -> [Option<Register>; 8] {
        self.masks
    }

    /// The home of a slot.
    pub fn of(&self, n: usize) -> Home {
        self.slots[n]
    }

    /// The slots whose homes are registers.
    pub fn in_registers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.slots.len()).filter(|&n| self.slots[n] != Home::Memory)
    }
}

//! Where a function keeps its slots: in vector registers, or in the register file.
//!
//! A slot has one home in the whole function. The slots that are used most, weighted by loops, get registers: one for 32-bit
//! elements, two for 64-bit elements.

use std::cmp::Reverse;

use iced_x86::Register;

use super::addresses::Definition;
use super::conditional::is_short;
use super::flow::{Block, Flow};
use super::isa::Isa;
use crate::bytecode::Program;
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

/// The mask registers that can have homes: those that cache predicates, scratch, and the lanes that run.
const MASKS: [usize; 5] = [5, 6, 7, 3, RUNNING_LANES];
const RUNNING_LANES: usize = 1;

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

/// How often code accesses what can have a register, about.
struct Weights {
    slots: Vec<u64>,
    /// All predicates.
    predicates: u64,
    /// The lanes that run, in conditional code.
    running: u64,
}

impl Weights {
    fn new(program: &Program, flow: &Flow) -> Self {
        let mut weights = Self {
            slots: vec![0; flow.slots.len()],
            predicates: 0,
            running: 0,
        };
        for (n, b) in flow.blocks.iter().enumerate() {
            if b.interpreted {
                continue;
            }
            let weight = 8u64.pow(b.depth.min(5));
            b.code
                .clone()
                .for_each(|pc| weights.add(program, flow, b, pc, weight));
            if let Some(branch) = flow.branch(program, n)
                && is_short(program, flow, n, flow.block_at(branch.target))
            {
                weights.running += weight * flow.blocks[n + 1].code.len() as u64;
            }
        }
        weights
    }

    fn add(&mut self, program: &Program, flow: &Flow, block: &Block, pc: u32, weight: u64) {
        if let Some(Definition::Deferred) = block.addresses.definition(pc) {
            return;
        }
        let access = block.addresses.of_access(pc);
        let deferred = access.is_some_and(|a| a.deferred.is_some());
        let unread = deferred.then_some(program.code[pc as usize].args.src[0]);
        let root = access.map(|a| a.address.root.slot());
        let operands = program.operands.of(pc).iter().map(|o| o.at);
        for at in operands.filter(|at| Some(*at) != unread).chain(root) {
            match flow.number(at) {
                Some(n) if flow.slots[n].1 == Slot::Pred => self.predicates += weight,
                Some(n) => self.slots[n] += weight,
                None => {}
            }
        }
    }
}

impl Homes {
    /// Assigns homes.
    pub fn new(program: &Program, flow: &Flow, isa: Isa) -> Self {
        let weights = Weights::new(program, flow);
        let masks = match isa {
            Isa::Avx2 => &MASKS[..],
            Isa::Avx512 => &[],
        };
        let registers = |c: &Candidate| match c {
            Candidate::Slot(n) if flow.slots[*n].1 == Slot::R64 => 2,
            _ => 1,
        };
        let slots = weights.slots.iter().enumerate();
        let slots = slots.map(|(n, weight)| (*weight, Candidate::Slot(n)));
        let masks = masks.iter().map(|&k| match k {
            RUNNING_LANES => (weights.running, Candidate::Mask(k)),
            _ => (weights.predicates / 3, Candidate::Mask(k)),
        });
        let mut order: Vec<(u64, Candidate)> = slots.chain(masks).filter(|c| c.0 > 0).collect();
        // Twice the weight per register, so that it stays an integer.
        order.sort_by_key(|(weight, c)| Reverse(2 * weight / registers(c)));
        let mut homes = Self {
            slots: vec![Home::Memory; weights.slots.len()],
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

//! Where a function keeps its slots: in vector registers, or in the register file.
//!
//! A slot has one home in the whole function. The slots that are used most, weighted by loops, get registers: one for 32-bit
//! elements, two for 64-bit elements.

use iced_x86::Register;

use super::addresses::Definition;
use super::flow::Flow;
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

/// The homes of the slots of a function, by number.
pub struct Homes(Vec<Home>);

/// The vector register with this number.
pub fn vector(n: u32) -> Register {
    Register::ZMM0 + n
}

impl Homes {
    /// Assigns homes.
    pub fn new(program: &Program, flow: &Flow, isa: Isa) -> Self {
        let mut weights = vec![0u64; flow.slots.len()];
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
                for at in operands.filter(|at| Some(*at) != unread).chain(root) {
                    if let Some(n) = flow.number(at) {
                        weights[n] += weight;
                    }
                }
            }
        }
        let registers = |n: usize| if flow.slots[n].1 == Slot::R64 { 2 } else { 1 };
        let mut order: Vec<usize> = (0..weights.len()).filter(|&n| weights[n] > 0).collect();
        // Twice the weight per register, so that it stays an integer.
        order.sort_by_key(|&n| std::cmp::Reverse(2 * weights[n] / registers(n)));
        let mut homes = vec![Home::Memory; weights.len()];
        let mut used = 0;
        for n in order {
            let needed = registers(n) as u32;
            if used + needed > isa.homes() {
                continue;
            }
            let first = vector(SCRATCH + used);
            homes[n] = match needed {
                1 => Home::One(first),
                _ => Home::Two(first, vector(SCRATCH + used + 1)),
            };
            used += needed;
        }
        Self(homes)
    }

    /// The home of a slot.
    pub fn of(&self, n: usize) -> Home {
        self.0[n]
    }

    /// The slots whose homes are registers.
    pub fn in_registers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len()).filter(|&n| self.0[n] != Home::Memory)
    }
}

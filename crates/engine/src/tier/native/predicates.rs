//! Predicates in mask registers.
//!
//! A block keeps the predicates that it has read or written last in mask registers. What it has written is stored to the register
//! file where another block reads it, where the register is needed, and where the interpreter goes on.

use iced_x86::{Code, Register};

use super::assembler::{Source, at};
use super::emit::{Emitter, Lanes, PREDS, RUNNING};
use super::isa::Isa;
use crate::register_file::fixed;

/// The registers.
const CACHED: [Register; 3] = [Register::K5, Register::K6, Register::K7];

/// A predicate in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CachedPredicate {
    location: u32,
    /// Whether the register file has an older value. In masked code, the register has only the lanes that run then.
    dirty: bool,
}

/// The predicates in registers.
#[derive(Default)]
pub struct Predicates {
    entries: [Option<CachedPredicate>; CACHED.len()],
    next: usize,
}

/// Predicates that are stored where the interpreter goes on, and their registers.
pub type Dirty = Vec<(u32, Register)>;

impl Predicates {
    /// Those that are not in the register file.
    pub fn dirty(&self) -> Dirty {
        let entries = self.entries.iter().zip(CACHED);
        let dirty = entries.filter_map(|(e, k)| Some((e.filter(|e| e.dirty)?.location, k)));
        dirty.collect()
    }
}

impl Emitter<'_> {
    /// A predicate in a mask register. Two calls for one instruction return registers that do not replace each other.
    pub fn predicate(&mut self, location: u32) -> Register {
        let of_location = |e: &Option<CachedPredicate>| e.is_some_and(|e| e.location == location);
        let cached = self.predicates.entries.iter().position(of_location);
        if let Some(n) = cached {
            if self.predicates.next == n {
                // The instruction's next predicate must not replace this one.
                self.predicates.next = (n + 1) % CACHED.len();
            }
            return CACHED[n];
        }
        let n = self.replace(location, false);
        let from = Source::Memory(at(PREDS, location.into()));
        self.asm.op2(Code::VEX_Kmovw_kr_km16, CACHED[n], from);
        CACHED[n]
    }

    /// The register for a predicate from now on.
    fn replace(&mut self, location: u32, dirty: bool) -> usize {
        let n = self.predicates.next;
        self.predicates.next = (n + 1) % CACHED.len();
        if let Some(e) = self.predicates.entries[n]
            && e.dirty
        {
            self.store_predicate(e.location, CACHED[n]);
        }
        self.predicates.entries[n] = Some(CachedPredicate { location, dirty });
        n
    }

    /// Writes `value`, a scratch mask register, to a predicate in the lanes of the instruction.
    pub fn set_predicate(&mut self, location: u32, value: Register) {
        let n = match self.lane_mask() {
            Some(mask) if self.lanes == Lanes::Guarded => {
                let old = self.predicate(location);
                // old & !mask | value & mask
                self.asm.op3(Code::VEX_Kandw_kr_kr_kr, value, value, mask);
                let n = CACHED.iter().position(|k| *k == old).unwrap_or(0);
                self.asm.op3(Code::VEX_Kandnw_kr_kr_kr, old, mask, old);
                self.asm.op3(Code::VEX_Korw_kr_kr_kr, old, old, value);
                n
            }
            _ => {
                for e in &mut self.predicates.entries {
                    *e = e.filter(|e| e.location != location);
                }
                let n = self.replace(location, true);
                self.asm.op2(Code::VEX_Kmovw_kr_km16, CACHED[n], value);
                n
            }
        };
        // Code for one collective ends in several places. The carry flag, at a fixed location, is not among the operands.
        let at_once = location < fixed::END || self.flow.blocks[self.block].collective;
        let dirty = !at_once;
        self.predicates.entries[n] = Some(CachedPredicate { location, dirty });
        if at_once {
            self.store_predicate(location, CACHED[n]);
        }
    }

    /// Stores the predicates that other blocks read.
    pub fn store_live_predicates(&mut self) {
        let flow = self.flow;
        let live = &flow.blocks[self.block].live_out;
        for (n, k) in CACHED.into_iter().enumerate() {
            let Some(e) = self.predicates.entries[n] else {
                continue;
            };
            let number = flow.number(e.location);
            if e.dirty && number.is_none_or(|number| live.contains(number)) {
                self.store_predicate(e.location, k);
                self.predicates.entries[n] = Some(CachedPredicate { dirty: false, ..e });
            }
        }
    }

    /// Stores a mask register to the lanes of a predicate that run.
    pub fn store_predicate(&mut self, location: u32, k: Register) {
        let to = at(PREDS, location.into());
        if !self.masked {
            self.asm.store(Code::VEX_Kmovw_m16_kr, to, k);
            return;
        }
        let (bits, running, old) = (Register::R8D, Register::EDX, Register::ESI);
        let (load, store, low) = match self.asm.isa {
            Isa::Avx512 => (Code::Movzx_r32_rm16, Code::Mov_rm16_r16, Register::R8W),
            Isa::Avx2 => (Code::Movzx_r32_rm8, Code::Mov_rm8_r8, Register::R8L),
        };
        self.asm.op2(Code::VEX_Kmovw_r32_kr, bits, k);
        self.asm.op2(Code::VEX_Kmovw_r32_kr, running, RUNNING);
        self.asm.op2(load, old, Source::Memory(to));
        // (bits ^ old) & running ^ old
        self.asm.op2(Code::Xor_r32_rm32, bits, old);
        self.asm.op2(Code::And_r32_rm32, bits, running);
        self.asm.op2(Code::Xor_r32_rm32, bits, old);
        self.asm.store(store, to, low);
    }
}

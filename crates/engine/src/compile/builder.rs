//! The program under construction, and slots at the end of its register file.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_ptx::ir::{Instr, Op};

use crate::program::Program;
use crate::semantics::lane::Slot;

/// A program under construction.
pub struct ProgramBuilder {
    /// The program.
    pub program: Program,
    /// Locations of the constants, by shape and value.
    pub constants: HashMap<(Slot, u128), u32>,
    /// First free byte of the register file.
    pub end: u32,
    /// Entry point of each lowered unit.
    pub entries: Vec<u32>,
    /// The spelling of instructions, by opcode and by the address of the modifiers, which those spelled alike share.
    pub spellings: HashMap<(Op, usize), Arc<str>>,
}

impl ProgramBuilder {
    /// The spelling of an instruction.
    pub fn spelling(&mut self, i: &Instr) -> Arc<str> {
        let key = (i.op, Arc::as_ptr(&i.mods).addr());
        let spelling = self.spellings.entry(key);
        spelling.or_insert_with(|| i.mnemonic().into()).clone()
    }

    /// Allocates a slot.
    pub fn allocate_slot(&mut self, slot: Slot) -> u32 {
        if slot != Slot::Pred {
            self.end = self.end.next_multiple_of(64);
        }
        let at = self.end;
        self.end += slot.bytes();
        at
    }

    /// The slot that holds `element` in every lane.
    pub fn constant(&mut self, slot: Slot, element: u128) -> u32 {
        if let Some(&at) = self.constants.get(&(slot, element)) {
            return at;
        }
        let at = self.allocate_slot(slot);
        self.constants.insert((slot, element), at);
        at
    }
}

//! The program under construction, and slots at the end of its register file.

use std::collections::HashMap;

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
}

impl ProgramBuilder {
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

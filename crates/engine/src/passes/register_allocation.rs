//! Register allocation: every virtual register gets a location in the kernel's register file.
//!
//! The file has parts after the fixed locations: varying registers, values that change once per block, values that never
//! change during a launch. A block copies the second part into the file of each of its warps; the third is computed once
//! per launch. Varying registers of one function share a location if no thread needs them at the same time. Registers that
//! instructions write never share one across functions, so that only recursive calls must save them. A constant or a special
//! register has one location for all functions. Unused registers have none.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::liveness::{LiveRange, live_ranges};
use crate::kir::{Fixed, Function, Kernel, Reg, Source, Uniformity};
use crate::register_file::{SaveSet, fixed};
use crate::semantics::lane::Slot;

/// The locations of a kernel's registers, as byte offsets.
pub struct Allocation {
    /// Location of each register, by function; [`NONE`] for unused ones.
    pub locations: Vec<Vec<u32>>,
    /// Locations of the varying registers of each function.
    pub varying: Vec<SaveSet>,
    /// Start of the values that change once per block.
    pub block_from: u32,
    /// Their end.
    pub block_to: u32,
    /// End of the allocated registers.
    pub end: u32,
    /// Location of each value that is set before threads run, with its shape.
    pub values: Vec<(Source, Slot, u32)>,
}

impl Allocation {
    /// The text of the locations: for each function, byte offset, shape and name of its registers in the file.
    pub fn display(&self, kernel: &Kernel) -> String {
        let mut out = format!("registers: {} bytes\n", self.end);
        for (f, locations) in kernel.functions.iter().zip(&self.locations) {
            let mut lines: Vec<(u32, Reg)> = Vec::new();
            for (n, &at) in locations.iter().enumerate().skip(Fixed::ALL.len()) {
                let slot = f.registers[n].slot;
                if at != NONE {
                    lines.push((at, Reg { at: n as u32, slot }));
                }
            }
            lines.sort_unstable_by_key(|(at, r)| (*at, r.at));
            out += &format!("  function {}\n", f.name);
            for (at, r) in lines {
                let uniformity = f.registers[r.at as usize].uniformity;
                out += &format!("    {at:>6} {:?} {} {uniformity:?}\n", r.slot, f.operand(r));
            }
        }
        out
    }
}

/// The location of an unused register.
pub const NONE: u32 = u32::MAX;

/// The location of a fixed register.
const fn fixed_location(of: Fixed) -> u32 {
    match of {
        Fixed::True => fixed::ONES,
        Fixed::Carry => fixed::CARRY,
        Fixed::DiscardedPredicate => fixed::SINK_PRED,
        Fixed::Discarded32 | Fixed::Discarded64 | Fixed::Discarded128 => fixed::SINK,
        Fixed::Frame => fixed::FRAME,
    }
}

/// The location that a register has in every kernel.
fn known_location(source: Source, uniformity: Uniformity) -> Option<u32> {
    use cupyrite_ptx::ir::Special;
    let axis = |axis: u8| Some(fixed::TID[usize::from(axis) % 3]);
    match (source, uniformity) {
        (Source::Fixed(of), _) => Some(fixed_location(of)),
        (Source::Special(Special::Tid(n)), _) | (_, Uniformity::Tid(n)) => axis(n),
        (Source::Special(Special::WarpId), _) => Some(fixed::WARP_ID),
        _ => None,
    }
}

/// Which registers of a function its instructions name.
fn used(f: &Function) -> Vec<bool> {
    let mut used = vec![false; f.registers.len()];
    let prologues = f.launch_prologue.iter().chain(&f.block_prologue);
    for i in f.instructions().chain(prologues) {
        i.guard
            .iter()
            .for_each(|g| used[g.predicate.at as usize] = true);
        i.action
            .for_each(&mut |_, r: &Reg| used[r.at as usize] = true);
    }
    f.hoisted_loads
        .iter()
        .for_each(|l| used[l.to.at as usize] = true);
    used
}

/// The end of a register file that grows. It saturates, so that a file that is too large is refused.
struct FileEnd(u32);

impl FileEnd {
    fn align(&mut self) {
        self.0 = self.0.checked_next_multiple_of(64).unwrap_or(u32::MAX);
    }

    fn reserve(&mut self, slot: Slot) -> u32 {
        if slot != Slot::Pred {
            self.align();
        }
        let at = self.0;
        self.0 = self.0.saturating_add(slot.bytes());
        at
    }
}

/// Allocates the registers of all functions of a kernel.
pub fn allocate(kernel: &Kernel) -> Allocation {
    let used: Vec<Vec<bool>> = kernel.functions.iter().map(used).collect();
    let mut out = Allocation {
        locations: Vec::new(),
        varying: Vec::new(),
        block_from: 0,
        block_to: 0,
        end: 0,
        values: Vec::new(),
    };
    for f in &kernel.functions {
        let known = f.registers.iter();
        let known = known.map(|r| known_location(r.source, r.uniformity).unwrap_or(NONE));
        out.locations.push(known.collect());
    }
    let mut end = FileEnd(fixed::END);
    for wanted in [Uniformity::Varying, Uniformity::Block, Uniformity::Launch] {
        if wanted == Uniformity::Block {
            out.block_from = end.0;
        }
        for (n, f) in kernel.functions.iter().enumerate() {
            let set = allocate_written(f, &used[n], &mut out.locations[n], &mut end, wanted);
            if wanted == Uniformity::Varying {
                out.varying.push(set);
            }
        }
        // What no instruction writes has one location for all functions.
        let mut shared: HashMap<(Source, Slot), u32> = HashMap::new();
        for (n, f) in kernel.functions.iter().enumerate() {
            for (k, r) in f.registers.iter().enumerate() {
                let written = matches!(r.source, Source::Declared(..) | Source::Temporary);
                let at = &mut out.locations[n][k];
                if written || r.uniformity != wanted || !used[n][k] || *at != NONE {
                    continue;
                }
                *at = *shared.entry((r.source, r.slot)).or_insert_with(|| {
                    let at = end.reserve(r.slot);
                    out.values.push((r.source, r.slot, at));
                    at
                });
            }
        }
        end.align();
        if wanted == Uniformity::Block {
            out.block_to = end.0;
        }
    }
    out.end = end.0;
    out
}

/// Allocates the registers of one uniformity that instructions write, grouped by shape, and returns their ranges.
fn allocate_written(
    f: &Function,
    used: &[bool],
    locations: &mut [u32],
    end: &mut FileEnd,
    wanted: Uniformity,
) -> SaveSet {
    let ranges = match wanted {
        Uniformity::Varying => live_ranges(f),
        // The prologues run before the threads, so that all their results are live together.
        _ => vec![None; f.registers.len()],
    };
    let mut allocate_shape = |shape: Slot| {
        if shape != Slot::Pred {
            end.align();
        }
        let from = end.0;
        let mut intervals = Vec::new();
        for (n, r) in f.registers.iter().enumerate() {
            let written = matches!(r.source, Source::Declared(..) | Source::Temporary);
            let own = written && used[n] && r.slot == shape && r.uniformity == wanted;
            if own && locations[n] == NONE {
                match ranges[n] {
                    Some(range) => intervals.push((range, n)),
                    None => locations[n] = end.reserve(shape),
                }
            }
        }
        linear_scan(intervals, |n, reused| {
            locations[n] = reused.unwrap_or_else(|| end.reserve(shape));
            locations[n]
        });
        (from, end.0)
    };
    let set = SaveSet {
        preds: allocate_shape(Slot::Pred),
        r32: allocate_shape(Slot::R32),
        r64: allocate_shape(Slot::R64),
        r128: allocate_shape(Slot::R128),
    };
    end.align();
    set
}

/// Linear-scan register allocation (Poletto and Sarkar, 1999) without a limit: a register gets the slot that became free
/// last, which is the likeliest to be in the cache, or a new one. `assign` receives a register and the slot, if there is one,
/// and returns the slot that the register has got.
fn linear_scan(
    mut intervals: Vec<(LiveRange, usize)>,
    mut assign: impl FnMut(usize, Option<u32>) -> u32,
) {
    intervals.sort_unstable_by_key(|(range, n)| (range.from, *n));
    // The slots in use, by the ends of their ranges.
    let mut active: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    let mut free = Vec::new();
    for (range, n) in intervals {
        while let Some(&Reverse((to, at))) = active.peek()
            && to < range.from
        {
            active.pop();
            free.push(at);
        }
        let at = assign(n, free.pop());
        active.push(Reverse((range.to, at)));
    }
}

#[cfg(test)]
mod tests {
    use super::{FileEnd, Slot};

    #[test]
    fn the_end_of_a_register_file_saturates() {
        let mut end = FileEnd(u32::MAX - 100);
        end.reserve(Slot::R64);
        end.align();
        assert_eq!(end.0, u32::MAX);
    }
}

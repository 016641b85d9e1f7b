//! The blocks of a function that is compiled, and what is live where.

use std::collections::HashMap;
use std::ops::Range;

use cupyrite_ptx::ir::Semantics;

use super::addresses::BlockAddresses;
use super::collective::is_collective;
use super::isa::Isa;
use super::{lanes, local};
use crate::bytecode::{BACKWARD, GUARDED, Inst, InstKind, Program, SPIN};
use crate::kir::MemSpace;
use crate::register_file::fixed;
use crate::semantics::lane::Slot;

/// A set of slots, by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotSet(Vec<u64>);

impl SlotSet {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, n: usize) {
        self.0[n / 64] |= 1 << (n % 64);
    }

    fn remove(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
    }

    /// Whether slot `n` is in the set.
    pub fn contains(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 != 0
    }
}

/// A basic block.
#[derive(Debug)]
pub struct Block {
    /// Positions of its instructions.
    pub code: Range<u32>,
    /// Whether it consists of one instruction that the interpreter executes.
    pub interpreted: bool,
    /// Whether it consists of one [warp collective](super::collective) that code executes.
    pub collective: bool,
    /// Number of loops around it, estimated by backward branches.
    pub depth: u32,
    /// Its number among the blocks at which lanes can wait for others; `None` if none can, or if there are too many.
    pub waiting: Option<u8>,
    /// Slots that are live at its start.
    pub live_in: SlotSet,
    /// Slots that are live at its end.
    pub live_out: SlotSet,
    /// The addresses that it computes and accesses.
    pub addresses: BlockAddresses,
}

/// The most blocks at which lanes can wait.
const MOST_WAITING: usize = 64;

/// A function as the compiler sees it.
pub struct Flow {
    /// The basic blocks, sorted by position.
    pub blocks: Vec<Block>,
    /// Whether the blocks at which lanes can wait have numbers.
    pub can_wait: bool,
    /// The varying slots of 32 and 64 bits, and the predicates: location and shape.
    pub slots: Vec<(u32, Slot)>,
    numbers: HashMap<u32, usize>,
    /// Block of each position, from the start of the function.
    block_at: HashMap<u32, usize>,
}

/// Whether the compiler translates an instruction.
pub fn is_compiled(program: &Program, pc: u32, isa: Isa) -> bool {
    let inst = &program.code[pc as usize];
    match inst.kind {
        InstKind::Lanes => {
            program.vector_ops[pc as usize].is_some_and(|op| lanes::is_supported(op, isa))
        }
        InstKind::Bra => inst.flags & SPIN == 0,
        InstKind::Atom => {
            let mut operands = program.operands.of(pc).iter();
            operands.all(|o| matches!(o.slot, Slot::R32 | Slot::R64))
        }
        InstKind::FrameAddr => true,
        _ => access(program, inst).is_some() || local::access(program, inst).is_some(),
    }
}

/// A load or store that the compiler translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Whether it accesses shared memory; otherwise global memory.
    pub shared: bool,
    /// Whether addresses have 64 bits, as those of global memory always have. NVRTC before 13.1 uses them for shared memory, too.
    pub wide: bool,
    /// Whether it is a store.
    pub store: bool,
    /// Bytes of an element.
    pub size: u32,
    /// Number of elements.
    pub count: u32,
    /// Whether it has several elements of less than four bytes, or a register that is wider than its element.
    pub packed: bool,
}

/// The access of an instruction; `None` if the interpreter executes it.
pub fn access(program: &Program, inst: &Inst) -> Option<MemoryAccess> {
    let plain = matches!(
        inst.kind,
        InstKind::LdGlobal4
            | InstKind::LdGlobal8
            | InstKind::StGlobal4
            | InstKind::StGlobal8
            | InstKind::LdShared4
            | InstKind::StShared4
            | InstKind::Ld
            | InstKind::St
    );
    if !plain {
        return None;
    }
    let op = &program.mem[inst.target as usize];
    let wide = !op.address.is_narrow();
    let shared = match op.address.space {
        MemSpace::Shared => true,
        MemSpace::Global | MemSpace::Generic if wide => false,
        _ => return None,
    };
    let count = op.regs.len() as u32;
    let all = |slot| op.regs.iter().all(|r| r.slot == slot);
    let fits = match op.size {
        8 => all(Slot::R64),
        _ => all(Slot::R32) || count == 1 && all(Slot::R64),
    };
    let known = matches!((op.size, count), (1 | 2 | 4, 1 | 2 | 4) | (8, 1 | 2));
    // Kernels may rely on the warp to execute volatile accesses in step, and code executes the halves of a warp one after the
    // other. An aligned element of a vector is accessed whole.
    let relaxed = op.order == Semantics::Relaxed && count == 1;
    // Larger ones do not fit the offset of an x86 instruction.
    let near = op.address.offset.unsigned_abs() < 1 << 30;
    (fits && known && near && (!op.atomic || relaxed)).then_some(MemoryAccess {
        shared,
        wide,
        store: op.store,
        size: op.size,
        count,
        packed: op.size < 4 && count > 1 || op.size < 8 && all(Slot::R64),
    })
}

impl Flow {
    /// The blocks of the function at `range`.
    pub fn new(program: &Program, range: Range<u32>, isa: Isa) -> Self {
        let blocks = split(program, range.clone(), isa);
        let mut flow = Self {
            blocks,
            can_wait: true,
            slots: Vec::new(),
            numbers: HashMap::new(),
            block_at: HashMap::new(),
        };
        for (n, b) in flow.blocks.iter().enumerate() {
            flow.block_at.insert(b.code.start, n);
        }
        for pc in range {
            for o in program.operands.of(pc) {
                let varying = (fixed::END..program.file.block_from).contains(&o.at);
                if varying && matches!(o.slot, Slot::R32 | Slot::R64 | Slot::Pred) {
                    let next = flow.slots.len();
                    let number = *flow.numbers.entry(o.at).or_insert(next);
                    if number == next {
                        flow.slots.push((o.at, o.slot));
                    }
                }
            }
        }
        flow.find_waiting(program);
        flow.find_depths(program);
        flow.find_live(program);
        for n in 0..flow.blocks.len() {
            flow.blocks[n].addresses = BlockAddresses::new(program, &flow, n);
        }
        flow
    }

    /// Whether a block is a warp collective.
    pub fn has_collectives(&self) -> bool {
        self.blocks.iter().any(|b| b.collective)
    }

    /// The number of the slot at a location; `None` if it has none.
    pub fn number(&self, at: u32) -> Option<usize> {
        self.numbers.get(&at).copied()
    }

    /// The block that begins at a position.
    pub fn block_at(&self, pc: u32) -> usize {
        self.block_at[&pc]
    }

    /// The branch at the end of a block.
    pub fn branch<'p>(&self, program: &'p Program, block: usize) -> Option<&'p Inst> {
        let b = &self.blocks[block];
        let last = &program.code[b.code.end as usize - 1];
        (last.kind == InstKind::Bra && !b.interpreted).then_some(last)
    }

    fn successors(&self, program: &Program, block: usize) -> Vec<usize> {
        let b = &self.blocks[block];
        let last = &program.code[b.code.end as usize - 1];
        let mut out = Vec::new();
        let mut falls = true;
        match last.kind {
            InstKind::Bra => {
                out.push(self.block_at(last.target));
                falls = last.flags & GUARDED != 0;
            }
            InstKind::BrxIdx => {
                let table = &program.tables[last.target as usize];
                out.extend(table.iter().map(|&t| self.block_at(t)));
                falls = last.flags & GUARDED != 0;
            }
            InstKind::Ret | InstKind::Exit | InstKind::Trap => {
                falls = last.flags & GUARDED != 0;
            }
            _ => {}
        }
        if falls && block + 1 < self.blocks.len() {
            out.push(block + 1);
        }
        out
    }

    /// Numbers the blocks at which lanes can wait: the targets of branches, and those behind a backward branch.
    fn find_waiting(&mut self, program: &Program) {
        let mut waits = vec![false; self.blocks.len()];
        for n in 0..self.blocks.len() {
            if let Some(branch) = self.branch(program, n) {
                waits[self.block_at(branch.target)] = true;
                if branch.flags & GUARDED != 0 && n + 1 < self.blocks.len() {
                    waits[n + 1] |= branch.flags & BACKWARD != 0;
                }
            }
        }
        if waits.iter().filter(|w| **w).count() > MOST_WAITING {
            self.can_wait = false;
            return;
        }
        let mut next = 0;
        for (b, waits) in self.blocks.iter_mut().zip(waits) {
            b.waiting = waits.then_some(next);
            next += u8::from(waits);
        }
    }

    fn find_depths(&mut self, program: &Program) {
        for n in 0..self.blocks.len() {
            let last = &program.code[self.blocks[n].code.end as usize - 1];
            if last.kind == InstKind::Bra && last.flags & BACKWARD != 0 {
                let head = self.block_at(last.target);
                self.blocks[head..=n].iter_mut().for_each(|b| b.depth += 1);
            }
        }
    }

    /// Backward data-flow analysis of live variables.
    fn find_live(&mut self, program: &Program) {
        let size = self.slots.len();
        let empty = SlotSet::new(size);
        let mut reads = vec![empty.clone(); self.blocks.len()];
        let mut defines = vec![empty.clone(); self.blocks.len()];
        for (n, b) in self.blocks.iter().enumerate() {
            for pc in b.code.clone() {
                let inst = &program.code[pc as usize];
                let guarded = inst.flags & GUARDED != 0;
                if let Some(guard) = self.number(inst.guard)
                    && !defines[n].contains(guard)
                {
                    reads[n].insert(guard);
                }
                for o in program.operands.of(pc) {
                    let Some(slot) = self.number(o.at) else {
                        continue;
                    };
                    if o.written && !guarded {
                        defines[n].insert(slot);
                    } else if !defines[n].contains(slot) {
                        reads[n].insert(slot);
                    }
                }
            }
        }
        for b in &mut self.blocks {
            b.live_in = empty.clone();
            b.live_out = empty.clone();
        }
        let successors: Vec<Vec<usize>> = (0..self.blocks.len())
            .map(|n| self.successors(program, n))
            .collect();
        let mut changed = true;
        while changed {
            changed = false;
            for n in (0..self.blocks.len()).rev() {
                let mut out = empty.clone();
                for &s in &successors[n] {
                    let of = &self.blocks[s].live_in.0;
                    out.0.iter_mut().zip(of).for_each(|(to, from)| *to |= from);
                }
                let mut into = out.clone();
                for (k, word) in into.0.iter_mut().enumerate() {
                    *word = *word & !defines[n].0[k] | reads[n].0[k];
                }
                let b = &mut self.blocks[n];
                changed |= into != b.live_in;
                b.live_in = into;
                b.live_out = out;
            }
        }
    }
}

/// The slots that are live before an instruction.
#[derive(Default)]
pub struct LiveBefore {
    at: Option<(usize, u32)>,
    live: SlotSet,
}

impl LiveBefore {
    /// Goes to the instruction at `pc` of a block: the same instruction, an earlier one of the same block, or one of another
    /// block.
    pub fn go_to(&mut self, flow: &Flow, program: &Program, block: usize, pc: u32) {
        let b = &flow.blocks[block];
        let from = match self.at {
            Some((known, from)) if known == block && from >= pc => from,
            _ => {
                self.live = b.live_out.clone();
                b.code.end
            }
        };
        for at in (pc..from).rev() {
            let guarded = program.code[at as usize].flags & GUARDED != 0;
            let operands = program.operands.of(at);
            for n in operands
                .iter()
                .filter(|o| o.written)
                .filter_map(|o| flow.number(o.at))
            {
                // Under a guard, the other lanes keep their elements.
                match guarded {
                    true => self.live.insert(n),
                    false => self.live.remove(n),
                }
            }
            for n in operands
                .iter()
                .filter(|o| !o.written)
                .filter_map(|o| flow.number(o.at))
            {
                self.live.insert(n);
            }
        }
        self.at = Some((block, pc));
    }

    /// Whether slot `n` is live.
    pub fn contains(&self, n: usize) -> bool {
        self.live.contains(n)
    }
}

fn split(program: &Program, range: Range<u32>, isa: Isa) -> Vec<Block> {
    let mut starts = vec![false; range.len() + 1];
    let mut mark = |pc: u32| {
        if range.contains(&pc) {
            starts[(pc - range.start) as usize] = true;
        }
    };
    mark(range.start);
    for pc in range.clone() {
        let inst = &program.code[pc as usize];
        match inst.kind {
            InstKind::Bra => {
                mark(inst.target);
                mark(pc + 1);
            }
            InstKind::BrxIdx => {
                let table = &program.tables[inst.target as usize];
                table.iter().for_each(|&t| mark(t));
            }
            _ => {}
        }
        if !is_compiled(program, pc, isa) {
            mark(pc);
            mark(pc + 1);
        }
    }
    let mut blocks = Vec::new();
    let mut start = range.start;
    for pc in range.start + 1..=range.end {
        if pc == range.end || starts[(pc - range.start) as usize] {
            blocks.push(Block {
                code: start..pc,
                interpreted: !is_compiled(program, start, isa)
                    && !is_collective(program, start, isa),
                collective: is_collective(program, start, isa),
                depth: 0,
                waiting: None,
                live_in: SlotSet::default(),
                live_out: SlotSet::default(),
                addresses: BlockAddresses::default(),
            });
            start = pc;
        }
    }
    blocks
}

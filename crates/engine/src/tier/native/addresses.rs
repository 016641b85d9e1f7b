//! Addresses of global memory as sums of a *root*, which differs from lane to lane, and uniform slots.
//!
//! Kernels compute most addresses as `uniform + index * size`, in 64 bits and in every lane. The compiler follows these computations
//! through a block. Accesses with the same root then share one comparison of the lanes, and each adds its uniform slots in scalar
//! registers. The vector of such an address is *deferred*: it is computed where an instruction reads it as a number, where the
//! interpreter goes on, and at the end of the block, if it is live there.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::flow::{Flow, access};
use crate::bytecode::{GUARDED, Program};
use crate::register_file::fixed;
use crate::run::native_context::SAVED_ROOTS;
use crate::semantics::lane::{IntegerOp, Slot, VectorOp};

/// What differs between the lanes of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// A 32-bit slot, extended to 64 bits, times two to the power of `shift`.
    Index {
        /// Location.
        slot: u32,
        /// Whether it is signed.
        signed: bool,
        /// Logarithm of the factor, at most [`MOST_SHIFT`].
        shift: u32,
    },
    /// A 64-bit slot.
    Wide {
        /// Location.
        slot: u32,
    },
}

/// The largest distance in bytes between the elements of neighbouring lanes is two to the power of this.
pub const MOST_SHIFT: u32 = 4;

impl Root {
    /// The location of the slot.
    pub fn slot(self) -> u32 {
        match self {
            Root::Index { slot, .. } | Root::Wide { slot } => slot,
        }
    }
}

/// The sum of a root and uniform slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The root.
    pub root: Root,
    /// Tells roots apart that are in the same slot at different times.
    pub version: usize,
    /// Where the root has been saved, because its slot has been written since.
    pub saved: Option<usize>,
    /// Locations of uniform 64-bit slots, in ascending order; one may occur several times.
    pub uniforms: Vec<u32>,
}

impl Address {
    fn plus(&self, uniform: u32) -> Self {
        let mut sum = self.clone();
        let at = sum.uniforms.partition_point(|u| *u <= uniform);
        sum.uniforms.insert(at, uniform);
        sum
    }

    /// Whether the root is in this slot now.
    fn reads_root_from(&self, slot: u32) -> bool {
        self.saved.is_none() && self.root.slot() == slot
    }
}

/// A slot and the address that it holds.
pub type Holder = (u32, Address);

/// What code does before an instruction.
#[derive(Clone, Debug)]
pub enum Step {
    /// Saves the slot of a root, which the instruction writes.
    Save(Root, usize),
    /// Computes the vector of a slot.
    Compute(Holder),
}

/// How an instruction that computes an address is translated.
#[derive(Clone, Debug)]
pub enum Definition {
    /// Nothing is emitted: the vector is deferred.
    Deferred,
    /// The vector is computed from the root, because that of its source is deferred.
    Computed(Address),
}

/// The address of an access that executes in all running lanes.
#[derive(Clone, Debug)]
pub struct Access {
    /// The address, with the uniform slot of the instruction but without its offset.
    pub address: Address,
    /// The address in the base slot, if its vector is deferred.
    pub deferred: Option<Address>,
}

/// The addresses of a block.
#[derive(Debug, Default)]
pub struct BlockAddresses {
    accesses: HashMap<u32, Access>,
    definitions: HashMap<u32, Definition>,
    before: HashMap<u32, Vec<Step>>,
    /// What is computed at the end of the block, before its branch.
    pub at_end: Vec<Holder>,
    /// The slots whose vectors are deferred: each entry is valid from its position to that of the next one.
    deferred: Vec<(u32, Vec<Holder>)>,
}

impl BlockAddresses {
    /// The address of an access; `None` for other instructions.
    pub fn of_access(&self, pc: u32) -> Option<&Access> {
        self.accesses.get(&pc)
    }

    /// How the definition of an address is translated; `None` if like other instructions.
    pub fn definition(&self, pc: u32) -> Option<&Definition> {
        self.definitions.get(&pc)
    }

    /// What code does before an instruction.
    pub fn before(&self, pc: u32) -> &[Step] {
        self.before.get(&pc).map_or(&[], Vec::as_slice)
    }

    /// The slots whose vectors are deferred while the instruction at `pc` executes, in an order in which they can be computed.
    pub fn deferred(&self, pc: u32) -> &[Holder] {
        let next = self.deferred.partition_point(|(from, _)| *from <= pc);
        let last = next.checked_sub(1);
        last.map_or(&[], |n| self.deferred[n].1.as_slice())
    }

    /// Follows the addresses of block `n`.
    pub fn new(program: &Program, flow: &Flow, n: usize) -> Self {
        let b = &flow.blocks[n];
        let mut analysis = Analysis::new(program, flow, n);
        if !b.interpreted && !b.collective {
            b.code.clone().for_each(|pc| analysis.instruction(pc));
            analysis.finish();
        }
        analysis.result
    }
}

/// An instruction that reads or writes a slot.
#[derive(Clone, Copy)]
struct Event {
    pc: u32,
    reads: bool,
    writes: bool,
}

#[derive(Clone)]
struct Known {
    address: Address,
    deferred: bool,
}

struct Analysis<'a> {
    program: &'a Program,
    flow: &'a Flow,
    block: usize,
    events: HashMap<u32, Vec<Event>>,
    known: BTreeMap<u32, Known>,
    /// The version of each root whose slot still has its value.
    current: BTreeMap<Root, usize>,
    versions: usize,
    result: BlockAddresses,
}

impl<'a> Analysis<'a> {
    fn new(program: &'a Program, flow: &'a Flow, block: usize) -> Self {
        let mut events: HashMap<u32, Vec<Event>> = HashMap::new();
        for pc in flow.blocks[block].code.clone() {
            let guarded = program.code[pc as usize].flags & GUARDED != 0;
            for o in program.operands.of(pc) {
                let list = events.entry(o.at).or_default();
                if list.last().is_none_or(|e| e.pc != pc) {
                    let (reads, writes) = (false, false);
                    list.push(Event { pc, reads, writes });
                }
                if let Some(e) = list.last_mut() {
                    // Lanes that a guard excludes keep what they have.
                    e.reads |= !o.written || guarded;
                    e.writes |= o.written;
                }
            }
        }
        Self {
            program,
            flow,
            block,
            events,
            known: BTreeMap::new(),
            current: BTreeMap::new(),
            versions: 0,
            result: BlockAddresses::default(),
        }
    }

    fn is_varying(&self, slot: u32) -> bool {
        slot < self.program.file.block_from
    }

    /// The instructions after `pc` that read or write a slot.
    fn events_after(&self, slot: u32, pc: u32) -> &[Event] {
        let list = self.events.get(&slot).map_or(&[][..], Vec::as_slice);
        &list[list.partition_point(|e| e.pc <= pc)..]
    }

    fn is_live_at_end(&self, slot: u32) -> bool {
        let number = self.flow.number(slot);
        number.is_some_and(|n| self.flow.blocks[self.block].live_out.contains(n))
    }

    /// Whether anything after `pc` reads what a slot has then.
    fn is_needed(&self, slot: u32, pc: u32) -> bool {
        let next = self.events_after(slot, pc).first();
        next.map_or_else(|| self.is_live_at_end(slot), |e| e.reads)
    }

    /// The slot with the address of an unguarded access to global memory, if the access does not also read or write it as data.
    fn base(&self, pc: u32) -> Option<u32> {
        let inst = &self.program.code[pc as usize];
        let a = access(self.program, inst)?;
        let base = inst.args.src[0];
        let regs = &self.program.mem[inst.target as usize].regs;
        let plain = a.wide && !a.shared && inst.flags & GUARDED == 0 && self.is_varying(base);
        (plain && regs.iter().all(|r| r.at != base)).then_some(base)
    }

    /// The address in a slot.
    fn address(&mut self, slot: u32) -> Address {
        match self.known.get(&slot) {
            Some(known) => known.address.clone(),
            None => self.root(Root::Wide { slot }),
        }
    }

    fn root(&mut self, root: Root) -> Address {
        let next = self.versions;
        let version = *self.current.entry(root).or_insert(next);
        self.versions += usize::from(version == next);
        Address {
            root,
            version,
            saved: None,
            uniforms: Vec::new(),
        }
    }

    /// Whether an unguarded instruction is a sum of `slot` and a uniform slot; returns the latter.
    fn sum_with(&self, pc: u32, slot: u32) -> Option<u32> {
        let inst = &self.program.code[pc as usize];
        let op = self.program.vector_ops[pc as usize]?;
        if op != VectorOp::Integer(IntegerOp::Add, Slot::R64) || inst.flags & GUARDED != 0 {
            return None;
        }
        let [a, b, ..] = inst.args.src;
        let other = if a == slot { b } else { a };
        ((a == slot || b == slot) && !self.is_varying(other)).then_some(other)
    }

    /// Whether an unguarded instruction shifts `slot` to the left by a constant; returns it.
    fn shift_of(&self, pc: u32, slot: u32) -> Option<u32> {
        let inst = &self.program.code[pc as usize];
        let op = self.program.vector_ops[pc as usize]?;
        let shifts = op == VectorOp::Integer(IntegerOp::ShiftLeft, Slot::R64);
        let of_slot = inst.args.src[0] == slot && inst.flags & GUARDED == 0;
        let by = self.program.constant32(inst.args.src[1])?;
        (shifts && of_slot && by <= MOST_SHIFT).then_some(by)
    }

    /// The root that a shift of an index yields.
    fn shifted(address: &Address, by: u32) -> Option<Root> {
        let Root::Index {
            slot,
            signed,
            shift,
        } = address.root
        else {
            return None;
        };
        let plain = address.uniforms.is_empty() && address.saved.is_none();
        (plain && shift + by <= MOST_SHIFT).then_some(Root::Index {
            slot,
            signed,
            shift: shift + by,
        })
    }

    /// The address that an instruction computes, and the slot of another address that it reads for it.
    fn defined(&mut self, pc: u32) -> Option<(Address, Option<u32>)> {
        let inst = &self.program.code[pc as usize];
        let op = self.program.vector_ops[pc as usize]?;
        if inst.flags & GUARDED != 0 {
            return None;
        }
        let [a, b, c, _] = inst.args.src;
        let index = |slot: u32, signed: bool, shift: u32| {
            self.is_varying(slot).then_some(Root::Index {
                slot,
                signed,
                shift,
            })
        };
        match op {
            VectorOp::MultiplyWide { signed, add } => {
                let factor = |s| self.program.constant32(s);
                let (slot, factor) = match (factor(a), factor(b)) {
                    (_, Some(factor)) => (a, factor),
                    (Some(factor), _) => (b, factor),
                    _ => return None,
                };
                let shift = factor.is_power_of_two().then(|| factor.ilog2())?;
                if shift > MOST_SHIFT || add && self.is_varying(c) {
                    return None;
                }
                let root = index(slot, signed, shift)?;
                let address = self.root(root);
                Some((if add { address.plus(c) } else { address }, None))
            }
            VectorOp::Extend {
                bits: 32,
                signed,
                from: Slot::R32,
                to: Slot::R64,
            } => {
                let root = index(a, signed, 0)?;
                Some((self.root(root), None))
            }
            VectorOp::Integer(IntegerOp::Add, Slot::R64) => {
                let slot = if self.is_varying(a) { a } else { b };
                let uniform = self.sum_with(pc, slot)?;
                if !self.is_varying(slot) {
                    return None;
                }
                Some((self.address(slot).plus(uniform), Some(slot)))
            }
            VectorOp::Integer(IntegerOp::ShiftLeft, Slot::R64) => {
                let by = self.shift_of(pc, a)?;
                let root = Self::shifted(&self.known.get(&a)?.address, by)?;
                Some((self.root(root), Some(a)))
            }
            _ => None,
        }
    }

    /// Whether the instruction at `pc` reads `slot` only as an address, when that is `address`.
    fn reads_as_address(&self, pc: u32, slot: u32, address: &Address) -> bool {
        let shifted = |by| Self::shifted(address, by).is_some();
        self.base(pc) == Some(slot)
            || self.sum_with(pc, slot).is_some()
            || self.shift_of(pc, slot).is_some_and(shifted)
    }

    /// Whether the vector of `address`, which the instruction at `pc` computes, is to be deferred.
    fn is_deferred(&self, pc: u32, slot: u32, address: &Address) -> bool {
        let root = address.root.slot();
        let mut reads = 0;
        let mut lives = true;
        for e in self.events_after(slot, pc) {
            if e.reads && !self.reads_as_address(e.pc, slot, address) {
                return false;
            }
            reads += u32::from(e.reads);
            if e.writes {
                lives = false;
                break;
            }
        }
        if address.reads_root_from(slot) {
            // The slot keeps the root until the end of the block.
            return reads == 0;
        }
        let depends_on_slot = |(other, k): (&u32, &Known)| {
            *other != slot && k.address.reads_root_from(slot) && self.is_needed(*other, pc)
        };
        if self.known.iter().any(depends_on_slot) {
            return false;
        }
        let root_is_written = || self.events_after(root, pc).iter().any(|e| e.writes);
        !(lives && self.is_live_at_end(slot) && (address.saved.is_some() || root_is_written()))
    }

    fn step(&mut self, pc: u32, step: Step) {
        self.result.before.entry(pc).or_default().push(step);
    }

    /// Computes the vector of a slot before `pc`, if it is deferred.
    fn compute(&mut self, pc: u32, slot: u32) {
        if let Some(k) = self.known.get_mut(&slot)
            && std::mem::replace(&mut k.deferred, false)
        {
            let address = k.address.clone();
            self.step(pc, Step::Compute((slot, address)));
            self.current.retain(|root, _| root.slot() != slot);
        }
    }

    /// Prepares that the instruction at `pc` writes a slot: saves the roots that it holds, or computes what depends on them.
    fn overwrite(&mut self, pc: u32, slot: u32) {
        self.known.remove(&slot);
        let of_slot = |(root, _): &(&Root, &usize)| root.slot() == slot;
        let lost: BTreeMap<Root, usize> = (self.current.iter().filter(of_slot))
            .map(|(root, version)| (*root, *version))
            .collect();
        self.current.retain(|root, _| root.slot() != slot);
        let Some(root) = lost.keys().next().copied() else {
            return;
        };
        let depends = |k: &Known| lost.values().any(|version| *version == k.address.version);
        let dependent: Vec<u32> = (self.known.iter())
            .filter(|(_, k)| depends(k))
            .map(|(slot, _)| *slot)
            .collect();
        let is_needed = |d: &u32| self.known[d].deferred && self.is_needed(*d, pc);
        let needed: Vec<u32> = dependent.iter().copied().filter(is_needed).collect();
        match self.free_saved_root() {
            Some(to) if !needed.is_empty() => {
                self.step(pc, Step::Save(root, to));
                for d in dependent {
                    if let Some(k) = self.known.get_mut(&d) {
                        k.address.saved = Some(to);
                    }
                }
            }
            _ => {
                needed.into_iter().for_each(|d| self.compute(pc, d));
                self.known.retain(|d, _| !dependent.contains(d));
            }
        }
    }

    fn free_saved_root(&self) -> Option<usize> {
        let used: HashSet<usize> = (self.known.values())
            .filter_map(|k| k.address.saved)
            .collect();
        (0..SAVED_ROOTS).find(|n| !used.contains(n))
    }

    fn instruction(&mut self, pc: u32) {
        let operands = self.program.operands.of(pc);
        let guarded = self.program.code[pc as usize].flags & GUARDED != 0;
        let base = self.base(pc);
        let defined = self.defined(pc);
        let source = defined.as_ref().and_then(|(_, source)| *source);
        for o in operands.iter().filter(|o| !o.written || guarded) {
            if Some(o.at) != base && Some(o.at) != source {
                self.compute(pc, o.at);
            }
        }
        if let Some(base) = base {
            let uniform = self.program.code[pc as usize].args.src[2];
            let of_base = self.address(base);
            let address = match uniform {
                fixed::ZERO => of_base.clone(),
                uniform => of_base.plus(uniform),
            };
            let is_deferred = self.known.get(&base).is_some_and(|k| k.deferred);
            let deferred = is_deferred.then_some(of_base);
            self.result
                .accesses
                .insert(pc, Access { address, deferred });
        }
        let Some((address, source)) = defined else {
            for o in operands.iter().filter(|o| o.written) {
                self.overwrite(pc, o.at);
            }
            self.record(pc);
            return;
        };
        let slot = self.program.code[pc as usize].args.dst[0];
        let deferred = self.is_deferred(pc, slot, &address);
        let of_deferred = source.is_some_and(|s| self.known.get(&s).is_some_and(|k| k.deferred));
        if deferred {
            self.result.definitions.insert(pc, Definition::Deferred);
            self.known.remove(&slot);
        } else {
            if of_deferred {
                let address = address.clone();
                self.result
                    .definitions
                    .insert(pc, Definition::Computed(address));
            }
            self.overwrite(pc, slot);
        }
        self.record(pc);
        if deferred || self.current.get(&address.root) == Some(&address.version) {
            self.known.insert(slot, Known { address, deferred });
        }
    }

    /// Forgets what is not needed after `pc`, and records what is deferred while the instruction executes.
    fn record(&mut self, pc: u32) {
        let mut holders: Vec<Holder> = (self.known.iter())
            .filter(|(_, k)| k.deferred)
            .map(|(slot, k)| (*slot, k.address.clone()))
            .collect();
        holders.sort_by_key(|(slot, address)| address.reads_root_from(*slot));
        if self.result.deferred.last().map(|(_, h)| h) != Some(&holders) {
            self.result.deferred.push((pc, holders));
        }
        let mut known = std::mem::take(&mut self.known);
        known.retain(|slot, _| self.is_needed(*slot, pc));
        self.known = known;
    }

    fn finish(&mut self) {
        let end = self.flow.blocks[self.block].code.end;
        let branches = self.flow.branch(self.program, self.block).is_some();
        let mut at_end: Vec<Holder> = (self.known.iter())
            .filter(|(slot, k)| k.deferred && self.is_live_at_end(**slot))
            .map(|(slot, k)| (*slot, k.address.clone()))
            .collect();
        at_end.sort_by_key(|(slot, address)| address.reads_root_from(*slot));
        self.result.at_end = at_end;
        self.result
            .deferred
            .push((end - u32::from(branches), Vec::new()));
    }
}

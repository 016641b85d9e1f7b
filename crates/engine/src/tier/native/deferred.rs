//! Computation of the vectors of [addresses](super::addresses).

use std::mem::offset_of;

use iced_x86::{Code, Register};

use super::addresses::{Address, Definition, Holder, Root, Step};
use super::assembler::{Mask, Source, at};
use super::emit::{Emitter, Lanes, REGS64, context};
use super::homes::vector;
use crate::run::native_context::NativeContext;

const EXTEND: [Code; 2] = [
    Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256,
    Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256,
];

/// Where a root has been saved, from this byte on.
fn saved(n: usize, byte: i64) -> Source {
    let at = offset_of!(NativeContext, saved_roots) + 128 * n;
    Source::Memory(context(at + byte as usize))
}

impl Emitter<'_> {
    /// The lanes of an instruction without a guard.
    fn running_lanes(&self) -> Lanes {
        match self.masked {
            true => Lanes::Running,
            false => Lanes::All,
        }
    }

    /// Saves and computes what the instruction at `pc` requires.
    pub fn before_instruction(&mut self, pc: u32) {
        let flow = self.flow;
        self.lanes = self.running_lanes();
        for step in flow.blocks[self.block].addresses.before(pc) {
            match step {
                Step::Save(root, to) => self.save_root(*root, *to),
                Step::Compute(holder) => self.compute(holder),
            }
        }
    }

    /// Translates the current instruction if it computes an address whose vector is not computed here, or from its root. Returns
    /// whether it does.
    pub fn defines_address(&mut self) -> bool {
        let flow = self.flow;
        let Some(definition) = flow.blocks[self.block].addresses.definition(self.pc) else {
            return false;
        };
        let args = self.inst().args;
        match definition {
            // Later instructions read the root, and do not expect a result of floating-point arithmetic.
            Definition::Deferred => args.src[..2].iter().for_each(|s| self.canonicalize(*s)),
            Definition::Computed(address) => self.compute(&(args.dst[0], address.clone())),
        }
        true
    }

    /// Computes the vectors that are live at the end of the block.
    pub fn compute_at_end(&mut self) {
        let flow = self.flow;
        self.lanes = self.running_lanes();
        for holder in &flow.blocks[self.block].addresses.at_end {
            self.compute(holder);
        }
    }

    /// Computes the vectors that the interpreter needs to go on at `pc` of the block: those of the slots that `wanted` selects.
    pub fn compute_for_exit(&mut self, pc: u32, wanted: impl Fn(u32) -> bool) {
        let flow = self.flow;
        self.lanes = self.running_lanes();
        for holder in flow.blocks[self.block].addresses.deferred(pc) {
            if wanted(holder.0) {
                self.compute(holder);
            }
        }
    }

    /// Computes the vector of the base slot of the current access, if it is deferred.
    pub fn compute_base(&mut self) {
        let flow = self.flow;
        let access = flow.blocks[self.block].addresses.of_access(self.pc);
        if let Some(address) = access.and_then(|a| a.deferred.as_ref()) {
            self.compute(&(self.inst().args.src[0], address.clone()));
        }
    }

    /// The 32-bit slot of a root.
    pub fn root32(&mut self, address: &Address) -> Source {
        match address.saved {
            Some(n) => saved(n, 0),
            None => self.bits32(address.root.slot()),
        }
    }

    /// Half `part` of the 64-bit slot of a root.
    pub fn root64(&mut self, address: &Address, part: usize) -> Source {
        match address.saved {
            Some(n) => saved(n, self.asm.isa.bytes() * part as i64),
            None => self.source64(address.root.slot(), part),
        }
    }

    fn save_root(&mut self, root: Root, to: usize) {
        let halves = match root {
            Root::Index { slot, .. } => vec![self.bits32(slot)],
            Root::Wide { slot } => vec![self.source64(slot, 0), self.source64(slot, 1)],
        };
        let bytes = self.asm.isa.bytes();
        for (n, from) in halves.into_iter().enumerate() {
            let from = self.in_register(from, 0);
            if let Source::Memory(to) = saved(to, bytes * n as i64) {
                let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
                self.asm.store(store, to, from);
            }
        }
    }

    /// Computes the vector of a slot.
    fn compute(&mut self, (slot, address): &Holder) {
        let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
        let sum = vector(1);
        if let Some((first, rest)) = address.uniforms.split_first() {
            let first = Source::Memory(at(REGS64, i64::from(*first)));
            self.asm.op2(Code::Mov_r64_rm64, Register::RAX, first);
            self.add_uniforms(rest);
            let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
            self.asm.op2(broadcast, sum, Register::RAX);
        }
        for part in 0..2 {
            let v = vector(0);
            let from = match address.root {
                Root::Wide { .. } => self.root64(address, part),
                Root::Index { signed, shift, .. } => {
                    let extend = EXTEND[usize::from(signed)];
                    match address.saved {
                        Some(n) => {
                            let half = self.asm.isa.bytes() / 2 * part as i64;
                            self.asm.op2(extend, v, saved(n, half));
                        }
                        None => self.wide_source(extend, v, address.root.slot(), part),
                    }
                    if shift > 0 {
                        let left = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
                        self.asm.op2_imm(left, v, v, shift as i32, Mask::None);
                    }
                    Source::Reg(v)
                }
            };
            let to = self.destination64(*slot, part);
            match address.uniforms.is_empty() {
                true => {
                    let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                    self.asm.op2_masked(copy, to.register, from, to.mask);
                }
                false => self.asm.op3_masked(add, to.register, sum, from, to.mask),
            }
            self.finish(to);
        }
    }
}

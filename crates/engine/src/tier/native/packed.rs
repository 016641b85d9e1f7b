//! Loads and stores of up to eight bytes per lane whose elements are parts of words, or whose registers are wider than them.
//!
//! The bytes of a lane are moved as one or two words, of which shifts separate the elements. An element of less than four bytes
//! at an address of its own is part of an aligned word: that word is in the same page, so that reading all of it is allowed. Each
//! store writes the bytes of its lane alone.

use std::mem::offset_of;

use iced_x86::{Code, MemoryOperand, Register};

use super::assembler::{Label, Mask, Source, at};
use super::emit::{CONTEXT, Emitter, constant, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use super::isa::Isa;
use super::lanes::lower;
use super::scattered::indexed;
use crate::kir::{MemOp, Reg};
use crate::run::native_context::{NativeContext, constant as constants};
use crate::semantics::lane::Slot;

/// The words of the lanes, or the lower ones.
const WORD: u32 = 4;
/// An element. Its computation uses the next register, too.
const ELEMENT: u32 = 2;
/// Double words of the lower and the upper half of the lanes.
const HALVES: [u32; 2] = [3, 4];

impl<'a> Emitter<'a> {
    fn operation(&self) -> &'a MemOp {
        &self.program.mem[self.inst().target as usize]
    }

    /// Leaves an element in a scratch register, extended to 32 bits: the one at byte `from` of the words in `word`. Returns the
    /// register: the third one, or `word` if the element is a word.
    pub fn part_of_word(&mut self, op: &MemOp, word: Register, from: u32) -> Register {
        if op.size == 4 {
            return word;
        }
        let v = vector(ELEMENT);
        let above = 32 - 8 * op.size as i32;
        let left = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
        let distance = above - 8 * from as i32;
        self.asm.op2_imm(left, v, word, distance, Mask::None);
        let right = match op.signed {
            true => Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
            false => Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
        };
        self.asm.op2_imm(right, v, v, above, Mask::None);
        if op.signed && op.narrow {
            let low = constant(constants::LOW16);
            let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(and, v, v, low);
        }
        v
    }

    /// Leaves the elements that are in the same word in the third scratch register: those from number `first` on. Uses the fourth
    /// one and, if registers have 64 bits, the fifth.
    pub fn word_of_parts(&mut self, op: &MemOp, first: usize) {
        let above = 32 - 8 * op.size as i32;
        let per_word = (4 / op.size) as usize;
        for (k, r) in op.regs[first..].iter().take(per_word).enumerate() {
            let v = vector(if k == 0 { ELEMENT } else { ELEMENT + 1 });
            let s = self.low_word_of(*r);
            let left = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
            self.asm.op2_imm(left, v, s, above, Mask::None);
            let distance = above - 8 * op.size as i32 * k as i32;
            let right = Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8;
            self.asm.op2_imm(right, v, v, distance, Mask::None);
            if k > 0 {
                let or = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(or, vector(ELEMENT), vector(ELEMENT), v);
            }
        }
    }

    /// The lower 32 bits of the elements of a slot: in its register, or in the fourth scratch register.
    fn low_word_of(&mut self, r: Reg) -> Register {
        let to = vector(ELEMENT + 1);
        if r.slot == Slot::R32 {
            let s = self.source32(r.at);
            return self.in_register(s, ELEMENT + 1);
        }
        for (part, to) in [to, vector(ELEMENT + 2)].into_iter().enumerate() {
            let s = self.source64(r.at, part);
            let s = self.in_register(s, ELEMENT + 1 + part as u32);
            let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
            self.asm.op2(truncate, lower(to), s);
        }
        self.join_halves(to, vector(ELEMENT + 2));
        to
    }

    /// Writes the elements that are in `word`, word number `number` of the access. May change `word` at the last one.
    fn write_packed(&mut self, op: &'a MemOp, word: Register, number: usize) {
        let per_word = (4 / op.size) as usize;
        let elements = op.regs.iter().enumerate().skip(per_word * number);
        for (k, r) in elements.take(per_word) {
            let from = k as u32 * op.size % 4;
            let v = self.part_of_word(op, word, from);
            if r.slot == Slot::R32 {
                self.copy32(r.at, v);
                continue;
            }
            let extend = match op.signed {
                true => Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256,
                false => Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256,
            };
            let wide = vector(ELEMENT + 1);
            self.asm.op2(extend, wide, lower(v));
            self.copy64(r.at, 0, wide);
            let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
            self.asm.op2_imm(extract, lower(wide), v, 1, Mask::None);
            self.asm.op2(extend, wide, lower(wide));
            self.copy64(r.at, 1, wide);
        }
    }

    /// Writes the elements of the double words in the last two scratch registers.
    fn write_halves(&mut self, op: &'a MemOp) {
        let word = vector(1);
        for number in 0..2 {
            for (half, to) in HALVES.into_iter().zip([1, ELEMENT]) {
                let half = vector(half);
                if number == 1 {
                    let right = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
                    self.asm.op2_imm(right, half, half, 32, Mask::None);
                }
                let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
                self.asm.op2(truncate, lower(vector(to)), half);
            }
            self.join_halves(word, vector(ELEMENT));
            self.write_packed(op, word, number);
        }
    }

    /// Leaves the elements of a store of eight bytes in the last two scratch registers, as double words. Keeps the first two.
    fn read_halves(&mut self, op: &MemOp) {
        let word = |e: &mut Self, number: usize| {
            if op.size == 4 {
                let s = e.source32(op.regs[number].at);
                e.in_register(s, ELEMENT)
            } else {
                e.word_of_parts(op, number * (4 / op.size) as usize);
                vector(ELEMENT)
            }
        };
        let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
        let [low, high] = HALVES.map(vector);
        let first = word(self, 0);
        self.asm.op2(copy, high, first);
        let second = word(self, 1);
        if second != vector(ELEMENT) {
            self.asm.op2(copy, vector(ELEMENT), second);
        }
        // In each group of four lanes: the double words of the first two, then those of the last two.
        self.asm.op3(
            Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32,
            low,
            high,
            vector(ELEMENT),
        );
        self.asm.op3(
            Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32,
            high,
            high,
            vector(ELEMENT),
        );
        if self.asm.isa == Isa::Avx2 {
            // Groups 0 of both, then groups 1.
            let pick = Code::EVEX_Vshufi64x2_ymm_k1z_ymm_ymmm256b64_imm8;
            let upper = vector(ELEMENT);
            self.asm.op3_imm(pick, upper, low, high, 3, Mask::None);
            self.asm.op3_imm(pick, low, low, high, 0, Mask::None);
            self.asm.op2(copy, high, upper);
            return;
        }
        // Reorders the groups by lane: groups 0 and 1 of both registers, then groups 2 and 3.
        let pick = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
        let order = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
        self.asm
            .op3_imm(pick, vector(ELEMENT), low, high, 0xee, Mask::None);
        self.asm.op3_imm(pick, low, low, high, 0x44, Mask::None);
        self.asm.op3_imm(order, low, low, low, 0xd8, Mask::None);
        let upper = vector(ELEMENT);
        self.asm
            .op3_imm(order, high, upper, upper, 0xd8, Mask::None);
    }

    /// Loads or stores elements at consecutive addresses from `rdx` on.
    pub fn packed_consecutive(&mut self, a: MemoryAccess) {
        let op = self.operation();
        let bytes = a.size * a.count;
        let host = at(Register::RDX, self.inst().imm);
        let lanes = self.lane_mask().map_or(Mask::None, Mask::Merge);
        if bytes == 8 {
            if a.store {
                self.read_halves(op);
            }
            for (part, half) in HALVES.into_iter().enumerate() {
                let host = at(
                    Register::RDX,
                    self.inst().imm + self.asm.isa.bytes() * part as i64,
                );
                if a.store {
                    let mask = self.half(lanes, part);
                    let store = Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm;
                    self.asm.store_masked(store, host, vector(half), mask);
                } else {
                    let load = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                    self.asm.op2(load, vector(half), Source::Memory(host));
                }
            }
            if !a.store {
                self.write_halves(op);
            }
            return;
        }
        if a.store {
            self.word_of_parts(op, 0);
            let code = match bytes {
                1 => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
                2 => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
                _ => Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm,
            };
            self.asm.store_masked(code, host, vector(ELEMENT), lanes);
        } else {
            let code = match bytes {
                1 => Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128,
                2 => Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
                _ => Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512,
            };
            self.asm.op2(code, vector(WORD), Source::Memory(host));
            self.write_packed(op, vector(WORD), 0);
        }
    }

    /// Loads elements at the same address, `rdx`, in all lanes. The access is whole, as on a GPU.
    pub fn packed_equal(&mut self, a: MemoryAccess) {
        let op = self.operation();
        let bytes = a.size * a.count;
        let (code, to) = match bytes {
            1 => (Code::Movzx_r32_rm8, Register::EAX),
            2 => (Code::Movzx_r32_rm16, Register::EAX),
            4 => (Code::Mov_r32_rm32, Register::EAX),
            _ => (Code::Mov_r64_rm64, Register::RAX),
        };
        let from = at(Register::RDX, self.inst().imm);
        self.asm.op2(code, to, Source::Memory(from));
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
        for number in 0..bytes.div_ceil(4) as usize {
            if number > 0 {
                self.asm.op_imm(Code::Shr_rm64_imm8, Register::RAX, 32);
            }
            self.asm.op2(broadcast, vector(WORD), Register::EAX);
            self.write_packed(op, vector(WORD), number);
        }
    }

    /// Executes the current load or store with one access per lane, and goes to `otherwise` if one of them is not allowed.
    pub fn packed_scattered(&mut self, a: MemoryAccess, otherwise: Label) {
        if a.shared {
            self.shared_offsets(a, otherwise);
        } else {
            self.global_addresses(a, otherwise);
        }
        let op = self.operation();
        match (a.size * a.count, a.store) {
            (8, false) => {
                for (part, half) in HALVES.into_iter().enumerate() {
                    let (from, narrow) = self.scattered_half(a.shared, part);
                    let code = match narrow {
                        true => Code::EVEX_Vpgatherdq_zmm_k1_vm32y,
                        false => Code::EVEX_Vpgatherqq_zmm_k1_vm64z,
                    };
                    self.gather(code, vector(half), from, part as u32);
                }
                self.write_halves(op);
            }
            (8, true) => {
                self.read_halves(op);
                for (part, half) in HALVES.into_iter().enumerate() {
                    let (to, narrow) = self.scattered_half(a.shared, part);
                    let code = match narrow {
                        true => Code::EVEX_Vpscatterdq_vm32y_k1_zmm,
                        false => Code::EVEX_Vpscatterqq_vm64z_k1_zmm,
                    };
                    self.scatter(code, to, vector(half), part as u32);
                }
            }
            (4, false) => {
                self.gather_words(a.shared);
                self.write_packed(op, vector(WORD), 0);
            }
            (4, true) => {
                self.word_of_parts(op, 0);
                let s = vector(ELEMENT);
                if a.shared {
                    let to = indexed(Register::RDX, vector(0), 0);
                    self.scatter(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, to, s, 0);
                    return;
                }
                let code = Code::EVEX_Vpscatterqd_vm64z_k1_ymm;
                for part in 0..2 {
                    if part == 1 {
                        let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
                        self.asm.op2_imm(extract, lower(s), s, 1, Mask::None);
                    }
                    let to = indexed(Register::None, vector(part), 0);
                    self.scatter(code, to, lower(s), part);
                }
            }
            (_, false) => {
                self.gather_parts(a.shared);
                self.write_packed(op, vector(WORD), 0);
            }
            (bytes, true) => {
                self.word_of_parts(op, 0);
                self.store_by_lane(a.shared, bytes);
            }
        }
    }

    /// The memory of half `part` of the lanes, and whether its indices have 32 bits. Those of shared memory may be in the third
    /// scratch register.
    fn scattered_half(&mut self, shared: bool, part: usize) -> (MemoryOperand, bool) {
        if !shared {
            let index = vector(part as u32);
            return (indexed(Register::None, index, 0), false);
        }
        let mut index = lower(vector(0));
        if part == 1 {
            let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
            index = lower(vector(ELEMENT));
            self.asm.op2_imm(extract, index, vector(0), 1, Mask::None);
        }
        (indexed(Register::RDX, index, 0), true)
    }

    /// Gathers aligned words.
    fn gather_words(&mut self, shared: bool) {
        let word = vector(WORD);
        if shared {
            let from = indexed(Register::RDX, vector(0), 0);
            self.gather(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, word, from, 0);
            return;
        }
        let upper = vector(WORD - 1);
        for (part, to) in [word, upper].into_iter().enumerate() {
            let from = indexed(Register::None, vector(part as u32), 0);
            let code = Code::EVEX_Vpgatherqd_ymm_k1_vm64z;
            self.gather(code, lower(to), from, part as u32);
        }
        self.join_halves(word, upper);
    }

    /// Gathers the aligned words that contain elements of less than four bytes, and moves the elements to their low bytes.
    fn gather_parts(&mut self, shared: bool) {
        let word = vector(WORD);
        self.asm.op_imm(Code::Mov_r32_imm32, Register::EAX, 3);
        let right = Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32;
        if shared {
            let (index, low) = (vector(0), vector(1));
            let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
            self.asm.op2(broadcast, low, Register::EAX);
            let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(and, vector(2), index, low);
            let and_not = Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(and_not, index, low, index);
            let left = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
            self.asm.op2_imm(left, vector(2), vector(2), 3, Mask::None);
            self.gather_words(shared);
            self.asm.op3(right, word, word, vector(2));
            return;
        }
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        let and_not = Code::EVEX_Vpandnq_zmm_k1z_zmm_zmmm512b64;
        for part in 0..2u32 {
            let (address, distance) = (vector(part), vector(2 + part));
            self.asm.op2(broadcast, word, Register::RAX);
            let and = Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(and, distance, address, word);
            self.asm.op3(and_not, address, word, address);
            let left = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
            self.asm.op2_imm(left, distance, distance, 3, Mask::None);
            let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
            self.asm.op2(truncate, lower(distance), distance);
        }
        self.join_halves(vector(2), vector(3));
        self.gather_words(shared);
        self.asm.op3(right, word, word, vector(2));
    }

    /// Stores the low one or two bytes of the third scratch register in a loop over the lanes.
    fn store_by_lane(&mut self, shared: bool, bytes: u32) {
        let addresses = offset_of!(NativeContext, atomic_addresses);
        let values = offset_of!(NativeContext, atomic_values);
        let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
        self.asm.store(store, context(addresses), vector(0));
        if !shared {
            self.asm.store(
                store,
                context(addresses + self.asm.isa.bytes() as usize),
                vector(1),
            );
        }
        self.asm.store(store, context(values), vector(ELEMENT));
        match self.lane_mask() {
            None => self.load_all_lanes(),
            Some(k) => self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, k),
        }
        let element = |table: usize, size: u32| {
            let at = table as i64;
            MemoryOperand::with_base_index_scale_displ_size(CONTEXT, Register::R8, size, at, 8)
        };
        let next = self.asm.here();
        self.asm
            .op2(Code::Tzcnt_r32_rm32, Register::R8D, Register::ECX);
        let value = Source::Memory(element(values, 4));
        self.asm.op2(Code::Mov_r32_rm32, Register::ESI, value);
        let target = if shared {
            let offset = Source::Memory(element(addresses, 4));
            self.asm.op2(Code::Mov_r32_rm32, Register::EAX, offset);
            MemoryOperand::with_base_index(Register::RDX, Register::RAX)
        } else {
            let address = Source::Memory(element(addresses, 8));
            self.asm.op2(Code::Mov_r64_rm64, Register::RAX, address);
            MemoryOperand::with_base(Register::RAX)
        };
        match bytes {
            1 => self.asm.store(Code::Mov_rm8_r8, target, Register::SIL),
            _ => self.asm.store(Code::Mov_rm16_r16, target, Register::SI),
        }
        // Clears the lowest bit that is set.
        self.asm
            .op2(Code::VEX_Blsr_r32_rm32, Register::ECX, Register::ECX);
        self.asm.jump(Code::Jne_rel32_64, next);
    }
}

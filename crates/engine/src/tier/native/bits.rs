//! Translation of bit manipulation.

use std::mem::offset_of;

use cupyrite_ptx::ir::Cmp;
use iced_x86::{Code, Register};

use super::assembler::{Mask, Source};
use super::emit::{Emitter, MASK, constant, context};
use super::homes::vector;
use super::lanes::{lower, unordered};
use crate::run::native_context::{NativeContext, constant as constants};
use crate::semantics::lane::{BitOp, Slot};

/// Instructions for one width of elements.
pub struct Codes {
    /// Copies a register.
    pub copy: Code,
    /// Bitwise and.
    pub and: Code,
    /// Bitwise or.
    pub or: Code,
    /// Sum.
    pub add: Code,
    /// Difference.
    pub subtract: Code,
    /// Bitwise function of three registers.
    pub ternary: Code,
    /// Shift to the left.
    pub left: Code,
    /// Shift to the right.
    pub right: Code,
    /// Arithmetic shift to the right.
    pub right_signed: Code,
    /// The same by distances in a register.
    left_by: Code,
    right_by: Code,
    right_signed_by: Code,
    min: [Code; 2],
    max: [Code; 2],
    leading_zeros: Code,
    /// Mask of elements without common ones.
    test_not: Code,
}

/// Those for 32-bit elements.
pub const WORDS: Codes = Codes {
    copy: Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512,
    and: Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32,
    or: Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32,
    add: Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
    subtract: Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32,
    ternary: Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8,
    left: Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
    right: Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
    right_signed: Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
    left_by: Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32,
    right_by: Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32,
    right_signed_by: Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32,
    min: [
        Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
        Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
    ],
    max: [
        Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
        Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
    ],
    leading_zeros: Code::EVEX_Vplzcntd_zmm_k1z_zmmm512b32,
    test_not: Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32,
};

/// Those for 64-bit elements.
pub const LONGS: Codes = Codes {
    copy: Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512,
    and: Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64,
    or: Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64,
    add: Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
    subtract: Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64,
    ternary: Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8,
    left: Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8,
    right: Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8,
    right_signed: Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8,
    left_by: Code::EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64,
    right_by: Code::EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64,
    right_signed_by: Code::EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64,
    min: [
        Code::EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64,
        Code::EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64,
    ],
    max: [
        Code::EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64,
        Code::EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64,
    ],
    leading_zeros: Code::EVEX_Vplzcntq_zmm_k1z_zmmm512b64,
    test_not: Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64,
};

/// Table of a bitwise function: ones.
const ONES: i32 = 0xff;
/// The second operand where the first is 1, otherwise the third.
const SELECT: i32 = 0xca;
/// The first operand, or the second where the third is 1.
const OR_SELECTED: i32 = 0xf8;

/// The elements of a slot that an instruction sequence processes: all 32-bit ones, or half of the 64-bit ones.
#[derive(Clone, Copy)]
pub struct Part {
    /// Shape of the slot.
    pub slot: Slot,
    /// The half.
    pub half: usize,
}

impl Part {
    /// The parts of a slot.
    pub fn all(slot: Slot) -> impl Iterator<Item = Part> {
        let count = if slot == Slot::R64 { 2 } else { 1 };
        (0..count).map(move |half| Part { slot, half })
    }

    /// The instructions for its elements.
    pub fn codes(self) -> &'static Codes {
        if self.slot == Slot::R64 {
            &LONGS
        } else {
            &WORDS
        }
    }

    fn bits(self) -> u64 {
        if self.slot == Slot::R64 { 64 } else { 32 }
    }

    /// A 32-bit pattern in each half of an element.
    fn repeat(self, x: u32) -> u64 {
        u64::from(x) | u64::from(x) << 32
    }
}

impl Emitter<'_> {
    /// A constant in every element.
    pub fn element(&mut self, x: u64) -> Source {
        Source::Broadcast(self.asm.constant(x))
    }

    /// The elements of a source. Canonicalizes NaNs.
    pub fn part_of(&mut self, p: Part, s: u32) -> Source {
        if p.slot == Slot::R64 {
            self.source64(s, p.half)
        } else {
            self.bits32(s)
        }
    }

    /// Copies the elements of a source to a register.
    pub fn load_part(&mut self, p: Part, to: Register, s: u32) {
        let source = self.part_of(p, s);
        self.asm.op2(p.codes().copy, to, source);
    }

    /// Writes the elements of a destination.
    pub fn write_elements(&mut self, p: Part, d: u32, from: Register) {
        if p.slot == Slot::R64 {
            self.copy64(d, p.half, from);
        } else {
            self.write32(d, from);
        }
    }

    /// Loads a 32-bit source as elements of the part.
    fn load_distance(&mut self, p: Part, to: Register, s: u32) {
        if p.slot == Slot::R64 {
            let extend = Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256;
            self.wide_source(extend, to, s, p.half);
        } else {
            self.load_part(p, to, s);
        }
    }

    /// `to = bits - r`, at least zero, where `r` is limited to its low byte first.
    fn gap(&mut self, p: Part, r: Register, scratch: Register) {
        let c = p.codes();
        let byte = self.element(0xff);
        let bits = self.element(p.bits());
        self.asm.op3(c.and, r, r, byte);
        self.asm.op3(c.min[0], r, r, bits);
        self.load_element(p, scratch, p.bits());
        self.asm.op3(c.subtract, r, scratch, r);
    }

    fn load_element(&mut self, p: Part, to: Register, x: u64) {
        let from = Source::Memory(self.asm.constant(x));
        let code = match p.slot {
            Slot::R64 => Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64,
            _ => Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32,
        };
        self.asm.op2(code, to, from);
    }

    /// Translates bit manipulation.
    pub fn bits(&mut self, op: BitOp, slot: Slot, d: u32, s: [u32; 4]) {
        match op {
            BitOp::CountOnes | BitOp::LeadingZeros | BitOp::FindBit { .. } => {
                self.count(op, slot, d, s[0]);
            }
            BitOp::CopySign => self.copy_sign(slot, d, s),
            BitOp::SelectBySign | BitOp::SelectBySingle { .. } => {
                self.select_by_sign(op, slot, d, s);
            }
            BitOp::Divide { signed, remainder } => self.divide64(signed, remainder, d, s),
            _ => {
                for p in Part::all(slot) {
                    self.bits_of(p, op, s);
                    self.write_elements(p, d, vector(0));
                }
            }
        }
    }

    /// The result of an operation in the first scratch register.
    fn bits_of(&mut self, p: Part, op: BitOp, s: [u32; 4]) {
        let c = p.codes();
        let (r, second, third, scratch) = (vector(0), vector(1), vector(2), vector(3));
        match op {
            BitOp::Reverse => {
                self.load_part(p, r, s[0]);
                self.reverse(p, r, second);
            }
            BitOp::ExtractField { signed } => {
                let right = if signed {
                    c.right_signed_by
                } else {
                    c.right_by
                };
                self.load_part(p, r, s[0]);
                self.load_distance(p, second, s[1]);
                let byte = self.element(0xff);
                self.asm.op3(c.and, second, second, byte);
                self.load_distance(p, third, s[2]);
                self.gap(p, third, scratch);
                self.asm.op3(right, r, r, second);
                self.asm.op3(c.left_by, r, r, third);
                self.asm.op3(right, r, r, third);
            }
            BitOp::InsertField => {
                let (field, position) = (r, third);
                self.load_distance(p, position, s[2]);
                let byte = self.element(0xff);
                self.asm.op3(c.and, position, position, byte);
                self.load_distance(p, scratch, s[3]);
                self.gap(p, scratch, second);
                self.asm
                    .op3_imm(c.ternary, field, field, field, ONES, Mask::None);
                self.asm.op3(c.right_by, field, field, scratch);
                self.asm.op3(c.left_by, field, field, position);
                self.load_part(p, second, s[0]);
                self.asm.op3(c.left_by, second, second, position);
                let rest = self.part_of(p, s[1]);
                self.asm
                    .op3_imm(c.ternary, field, second, rest, SELECT, Mask::None);
            }
            BitOp::FunnelShift { left, wrap } => {
                let (low, high, distance, rest) = (r, second, third, scratch);
                self.load_part(p, low, s[0]);
                self.load_part(p, high, s[1]);
                self.load_part(p, distance, s[2]);
                if wrap {
                    let bits = self.element(31);
                    self.asm.op3(c.and, distance, distance, bits);
                } else {
                    let most = self.element(32);
                    self.asm.op3(c.min[0], distance, distance, most);
                }
                self.load_element(p, rest, 32);
                self.asm.op3(c.subtract, rest, rest, distance);
                let (of_low, of_high) = if left {
                    (rest, distance)
                } else {
                    (distance, rest)
                };
                self.asm.op3(c.right_by, low, low, of_low);
                self.asm.op3(c.left_by, high, high, of_high);
                self.asm.op3(c.or, r, low, high);
            }
            BitOp::SumOfDifference { signed } => {
                let n = usize::from(signed);
                self.load_part(p, second, s[0]);
                self.load_part(p, third, s[1]);
                self.asm.op3(c.max[n], r, second, third);
                self.asm.op3(c.min[n], second, second, third);
                self.asm.op3(c.subtract, r, r, second);
                let addend = self.part_of(p, s[2]);
                self.asm.op3(c.add, r, r, addend);
            }
            BitOp::Multiply24 { signed, add } => {
                for (to, s) in [(r, s[0]), (second, s[1])] {
                    let right = if signed { c.right_signed } else { c.right };
                    let source = self.part_of(p, s);
                    self.asm.op2_imm(c.left, to, source, 8, Mask::None);
                    self.asm.op2_imm(right, to, to, 8, Mask::None);
                }
                let multiply = Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(multiply, r, r, second);
                if add {
                    let addend = self.part_of(p, s[2]);
                    self.asm.op3(c.add, r, r, addend);
                }
            }
            BitOp::MultiplyHigh { signed, add } => {
                self.high_product(p, signed, s);
                if add {
                    let addend = self.part_of(p, s[2]);
                    self.asm.op3(c.add, r, r, addend);
                }
            }
            // The caller translates the others.
            _ => {}
        }
    }

    /// Reverses the bits of 32-bit words, then the words.
    fn reverse(&mut self, p: Part, r: Register, scratch: Register) {
        for (distance, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f)] {
            let mask = self.element(p.repeat(mask));
            self.asm
                .op2_imm(WORDS.right, scratch, r, distance, Mask::None);
            self.asm.op3(WORDS.and, scratch, scratch, mask);
            self.asm.op3(WORDS.and, r, r, mask);
            self.asm.op2_imm(WORDS.left, r, r, distance, Mask::None);
            self.asm.op3(WORDS.or, r, r, scratch);
        }
        let rotate = Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8;
        self.asm.op2_imm(rotate, scratch, r, 8, Mask::None);
        self.asm.op2_imm(rotate, r, r, 24, Mask::None);
        let even = self.element(p.repeat(0x00ff_00ff));
        let table = super::convert::SELECT_SECOND;
        self.asm
            .op3_imm(WORDS.ternary, r, scratch, even, table, Mask::None);
        if p.slot == Slot::R64 {
            let rotate = Code::EVEX_Vprolq_zmm_k1z_zmmm512b64_imm8;
            self.asm.op2_imm(rotate, r, r, 32, Mask::None);
        }
    }

    /// Operations whose results have 32 bits.
    fn count(&mut self, op: BitOp, slot: Slot, d: u32, s: u32) {
        let (r, scratch) = (vector(2), vector(3));
        for p in Part::all(slot) {
            let c = p.codes();
            self.load_part(p, r, s);
            match op {
                BitOp::CountOnes => self.count_ones(p, r, scratch),
                BitOp::FindBit { signed, distance } => {
                    if signed {
                        let sign = p.bits() as i32 - 1;
                        self.asm
                            .op2_imm(c.right_signed, scratch, r, sign, Mask::None);
                        let xor = Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64;
                        self.asm.op3(xor, r, r, scratch);
                    }
                    self.asm.op3(c.test_not, MASK, r, r);
                    self.asm.op2(c.leading_zeros, r, r);
                    if distance {
                        let none = Mask::Merge(MASK);
                        self.asm.op3_imm(c.ternary, r, r, r, ONES, none);
                    } else {
                        // Without a bit, the result is -1.
                        self.load_element(p, scratch, p.bits() - 1);
                        self.asm.op3(c.subtract, r, scratch, r);
                    }
                }
                _ => self.asm.op2(c.leading_zeros, r, r),
            }
            if slot == Slot::R64 {
                let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
                self.asm.op2(truncate, lower(vector(p.half as u32)), r);
            }
        }
        if slot == Slot::R64 {
            self.join_halves(vector(0), vector(1));
            self.write32(d, vector(0));
        } else {
            self.write32(d, r);
        }
    }

    /// Sums neighbouring fields, which grow from one bit to a byte, and then the bytes.
    fn count_ones(&mut self, p: Part, r: Register, scratch: Register) {
        let masks = [0x5555_5555, 0x3333_3333, 0x0f0f_0f0f];
        let [one, two, four] = masks.map(|m| self.element(p.repeat(m)));
        let c = p.codes();
        self.asm.op2_imm(c.right, scratch, r, 1, Mask::None);
        self.asm.op3(c.and, scratch, scratch, one);
        self.asm.op3(c.subtract, r, r, scratch);
        self.asm.op2_imm(c.right, scratch, r, 2, Mask::None);
        self.asm.op3(c.and, scratch, scratch, two);
        self.asm.op3(c.and, r, r, two);
        self.asm.op3(c.add, r, r, scratch);
        self.asm.op2_imm(c.right, scratch, r, 4, Mask::None);
        self.asm.op3(c.add, r, r, scratch);
        self.asm.op3(c.and, r, r, four);
        if p.slot == Slot::R64 {
            self.zero(scratch);
            let sum = Code::EVEX_Vpsadbw_zmm_zmm_zmmm512;
            self.asm.op3(sum, r, r, scratch);
        } else {
            let bytes = self.element(0x0101_0101);
            let multiply = Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(multiply, r, r, bytes);
            self.asm.op2_imm(c.right, r, r, 24, Mask::None);
        }
    }

    /// `slct`.
    fn select_by_sign(&mut self, op: BitOp, slot: Slot, d: u32, s: [u32; 4]) {
        let by = vector(0);
        self.zero(vector(1));
        if let BitOp::SelectBySingle { flush } = op {
            let source = self.source32(s[2]);
            self.asm.op2(WORDS.copy, by, source);
            if flush {
                self.flush(by);
            }
            let compare = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
            let at_least = unordered(Cmp::Ge);
            self.asm
                .op3_imm(compare, MASK, by, vector(1), at_least, Mask::None);
        } else {
            let source = self.bits32(s[2]);
            self.asm.op2(WORDS.copy, by, source);
            // Not the sign.
            let test = Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32;
            self.asm.op3(test, MASK, by, constant(constants::SIGN32));
        }
        self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::EAX, MASK);
        for p in Part::all(slot) {
            let (a, b) = (self.part_of(p, s[0]), self.part_of(p, s[1]));
            let r = vector(0);
            self.asm.op2(p.codes().copy, r, b);
            // Canonicalizing a source uses the mask.
            self.asm.op2(Code::VEX_Kmovw_kr_r32, MASK, Register::EAX);
            self.asm.op2_masked(p.codes().copy, r, a, Mask::Merge(MASK));
            let half = self.asm.isa.lanes() as i32 / 2;
            self.asm.op_imm(Code::Shr_rm32_imm8, Register::EAX, half);
            self.write_elements(p, d, r);
        }
    }

    /// `prmt` with a constant selector: bytes that move by the same distance are moved together.
    pub fn permute(&mut self, selector: u16, d: u32, s: [u32; 4]) {
        let (r, moved) = (vector(0), vector(1));
        let mut rest: Vec<u32> = (0..4).collect();
        self.zero(r);
        while let Some(&first) = rest.first() {
            let part = |byte: u32| u32::from(selector) >> (4 * byte) & 15;
            let key = |byte: u32| {
                let n = part(byte);
                // A sign is replicated from the top, so that only its source matters.
                let distance = if n & 8 != 0 {
                    n & 3
                } else {
                    byte.wrapping_sub(n) & 3
                };
                (n & 4, n & 8, distance)
            };
            let (source, sign, distance) = key(first);
            let together = |byte: &u32| key(*byte) == (source, sign, distance);
            let bytes: u32 = rest
                .iter()
                .filter(|b| together(b))
                .map(|b| 0xff << (8 * b))
                .sum();
            rest.retain(|b| !together(b));
            let from = self.bits32(s[usize::from(source != 0)]);
            if sign != 0 {
                let up = 8 * (3 - distance as i32);
                self.asm.op2_imm(WORDS.left, moved, from, up, Mask::None);
                self.asm
                    .op2_imm(WORDS.right_signed, moved, moved, 31, Mask::None);
            } else {
                let rotate = Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8;
                let left = 8 * distance as i32;
                self.asm.op2_imm(rotate, moved, from, left, Mask::None);
            }
            let bytes = self.element(bytes.into());
            self.asm
                .op3_imm(WORDS.ternary, r, moved, bytes, OR_SELECTED, Mask::None);
        }
        self.write32(d, r);
    }

    /// `prmt` with a selector in each lane.
    pub fn permute_by(&mut self, d: u32, s: [u32; 4]) {
        let (nibbles, index, of_a, of_b, r) =
            (vector(0), vector(1), vector(2), vector(3), vector(4));
        let [a, b, selector] = [s[0], s[1], s[2]].map(|s| self.bits32(s));
        // One part of the selector in each byte.
        self.asm.op2(WORDS.copy, nibbles, selector);
        self.asm
            .op3(WORDS.and, nibbles, nibbles, constant(constants::LOW16));
        for (distance, mask) in [(8, 0x00ff_00ff), (4, 0x0f0f_0f0f)] {
            self.asm
                .op2_imm(WORDS.left, index, nibbles, distance, Mask::None);
            self.asm.op3(WORDS.or, nibbles, nibbles, index);
            let mask = self.element(mask);
            self.asm.op3(WORDS.and, nibbles, nibbles, mask);
        }
        // The bytes of its element, counted from the start of its group of 16 bytes.
        let low = self.element(0x0303_0303);
        self.asm.op3(WORDS.and, index, nibbles, low);
        let bases = context(offset_of!(NativeContext, byte_bases));
        self.asm.op3(WORDS.add, index, index, Source::Memory(bases));
        let shuffle = Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512;
        for (to, scratch, from) in [(of_a, 2, a), (of_b, 3, b)] {
            let from = self.in_register(from, scratch);
            self.asm.op3(shuffle, to, from, index);
        }
        self.bytes_of_bit(r, nibbles, 2, index);
        self.asm
            .op3_imm(WORDS.ternary, r, of_b, of_a, SELECT, Mask::None);
        let (replicates, sign) = (of_a, of_b);
        self.bytes_of_bit(replicates, nibbles, 3, index);
        self.bytes_of_bit(sign, r, 7, index);
        self.asm
            .op3_imm(WORDS.ternary, replicates, sign, r, SELECT, Mask::None);
        self.write32(d, replicates);
    }

    /// Fills each byte of `to` with a bit of the same byte of `from`.
    fn bytes_of_bit(&mut self, to: Register, from: Register, bit: i32, scratch: Register) {
        self.asm.op2_imm(WORDS.right, to, from, bit, Mask::None);
        let ones = self.element(0x0101_0101);
        self.asm.op3(WORDS.and, to, to, ones);
        // Each 1 becomes 0x100 - 1.
        self.asm.op2_imm(WORDS.left, scratch, to, 8, Mask::None);
        self.asm.op3(WORDS.subtract, to, scratch, to);
    }
}

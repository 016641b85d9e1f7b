//! Translation of arithmetic on 16-bit integers, of conversions to fewer than 32 bits, and of `mov` that joins or splits
//! integers. Such integers are in 32-bit slots, zero-extended.

use iced_x86::{Code, Register};

use super::assembler::{Mask, Source};
use super::emit::{Emitter, constant};
use super::homes::vector;
use super::lanes::lower;
use crate::register_file::fixed;
use crate::run::native_context::constant as constants;
use crate::semantics::lane::{IntegerLayout, IntegerOp, Slot};

const COPY: Code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
const ADD: Code = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
const MULTIPLY: Code = Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;
const OR: Code = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
const SHIFT_LEFT: Code = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
const SHIFT_RIGHT: Code = Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8;
const SHIFT_RIGHT_SIGNED: Code = Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8;

impl Emitter<'_> {
    /// Extends the low 16 bits of a source.
    pub fn short_source(&mut self, to: Register, s: u32, signed: bool) {
        let source = self.bits32(s);
        if signed {
            self.asm.op2_imm(SHIFT_LEFT, to, source, 16, Mask::None);
            self.asm.op2_imm(SHIFT_RIGHT_SIGNED, to, to, 16, Mask::None);
        } else {
            self.asm.op2(COPY, to, source);
            self.asm.op3(AND, to, to, constant(constants::LOW16));
        }
    }

    /// Arithmetic and logic of 16-bit integers.
    pub fn integer16(&mut self, op: IntegerOp, d: u32, s: [u32; 4]) {
        use IntegerOp::*;
        let (r, other) = (vector(0), vector(1));
        let signed = matches!(op, MinSigned | MaxSigned | ShiftRightSigned | Absolute);
        self.short_source(r, s[0], signed);
        match op {
            ShiftLeft | ShiftRightSigned | ShiftRightUnsigned => {
                let distance = self.bits32(s[1]);
                let code = match op {
                    ShiftLeft => Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32,
                    ShiftRightSigned => Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32,
                    _ => Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32,
                };
                self.asm.op3(code, r, r, distance);
            }
            Not => {
                let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(xor, r, r, constant(constants::LOW16));
            }
            Negate => {
                self.zero(other);
                let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(subtract, r, other, r);
            }
            Absolute => self.asm.op2(Code::EVEX_Vpabsd_zmm_k1z_zmmm512b32, r, r),
            _ => {
                self.short_source(other, s[1], signed);
                let code = match op {
                    Add => ADD,
                    Subtract => Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32,
                    Multiply | MultiplyAdd => MULTIPLY,
                    And => AND,
                    Or => OR,
                    Xor => Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
                    MinSigned => Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
                    MinUnsigned => Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
                    MaxSigned => Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
                    _ => Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
                };
                self.asm.op3(code, r, r, other);
                if op == MultiplyAdd {
                    let addend = self.bits32(s[2]);
                    self.asm.op3(ADD, r, r, addend);
                }
            }
        }
        self.asm.op3(AND, r, r, constant(constants::LOW16));
        self.write32(d, r);
    }

    /// Writes a register whose elements are not the result of floating-point arithmetic to a 32-bit slot.
    pub fn write32(&mut self, d: u32, from: Register) {
        self.copy32(d, from);
        self.set_raw(d, false);
    }

    /// The 32-bit product of 16-bit integers, plus a 32-bit integer.
    pub fn multiply_add_wide16(&mut self, signed: bool, d: u32, s: [u32; 4]) {
        let (r, other) = (vector(0), vector(1));
        self.short_source(r, s[0], signed);
        self.short_source(other, s[1], signed);
        self.asm.op3(MULTIPLY, r, r, other);
        let addend = self.bits32(s[2]);
        self.asm.op3(ADD, r, r, addend);
        self.write32(d, r);
    }

    /// Loads the low 32 bits of a source of this shape.
    fn low_word(&mut self, to: Register, s: u32, from: Slot) {
        if from != Slot::R64 {
            let source = self.bits32(s);
            self.asm.op2(COPY, to, source);
            return;
        }
        let halves = [to, vector(to as u32 - vector(0) as u32 + 1)];
        for (part, half) in halves.into_iter().enumerate() {
            let source = self.source64(s, part);
            let source = self.in_register(source, half as u32 - vector(0) as u32);
            let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
            self.asm.op2(truncate, lower(half), source);
        }
        self.join_halves(halves[0], halves[1]);
    }

    /// A conversion to 8 or 16 bits.
    pub fn extend16(&mut self, bits: u8, signed: bool, from: Slot, d: u32, s: u32) {
        self.low_word(vector(0), s, from);
        self.extend_bits(
            32 - i32::from(bits),
            signed,
            [SHIFT_LEFT, SHIFT_RIGHT_SIGNED, SHIFT_RIGHT],
            bits < 32,
        );
        self.extend_result(vector(0));
        self.write32(d, vector(0));
    }

    /// Extends the integers in a register as the immediate of the lane function says (see `convert::extension` there).
    pub fn extend_result(&mut self, r: Register) {
        let imm = self.inst().args.imm;
        let distance = (imm & 31) as i32;
        let right = match imm & 32 != 0 {
            true => SHIFT_RIGHT_SIGNED,
            false => SHIFT_RIGHT,
        };
        self.asm.op2_imm(SHIFT_LEFT, r, r, distance, Mask::None);
        self.asm.op2_imm(right, r, r, distance, Mask::None);
        if imm & 64 != 0 {
            self.asm.op3(AND, r, r, constant(constants::LOW16));
        }
    }

    /// `mov` that joins integers.
    pub fn pack(&mut self, layout: IntegerLayout, d: u32, s: [u32; 4]) {
        let (r, next) = (vector(0), vector(1));
        match layout {
            IntegerLayout::Shorts2 => {
                self.short_source(r, s[0], false);
                self.join_word(r, next, s[1], 16);
                self.write32(d, r);
            }
            IntegerLayout::Bytes4 => {
                let byte = Source::Broadcast(self.asm.constant(0xff));
                for (n, &s) in s.iter().enumerate() {
                    let to = if n == 0 { r } else { next };
                    let source = self.bits32(s);
                    self.asm.op2(COPY, to, source);
                    self.asm.op3(AND, to, to, byte);
                    if n > 0 {
                        let distance = 8 * n as i32;
                        self.asm
                            .op2_imm(SHIFT_LEFT, next, next, distance, Mask::None);
                        self.asm.op3(OR, r, r, next);
                    }
                }
                self.write32(d, r);
            }
            IntegerLayout::Words2 => {
                for part in 0..2 {
                    let extend = Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256;
                    self.wide_source(extend, r, s[0], part);
                    self.wide_source(extend, next, s[1], part);
                    self.join_longs(r, next);
                    self.copy64(d, part, r);
                }
            }
            IntegerLayout::Shorts4 => {
                let (low, high) = (vector(2), vector(3));
                self.short_source(low, s[0], false);
                self.join_word(low, next, s[1], 16);
                self.short_source(high, s[2], false);
                self.join_word(high, next, s[3], 16);
                for part in 0..2 {
                    self.extend_half(r, low, part);
                    self.extend_half(next, high, part);
                    self.join_longs(r, next);
                    self.copy64(d, part, r);
                }
            }
        }
    }

    /// `r |= s << distance`.
    fn join_word(&mut self, r: Register, scratch: Register, s: u32, distance: i32) {
        let source = self.bits32(s);
        self.asm
            .op2_imm(SHIFT_LEFT, scratch, source, distance, Mask::None);
        self.asm.op3(OR, r, r, scratch);
    }

    /// `r |= high << 32`.
    fn join_longs(&mut self, r: Register, high: Register) {
        let shift = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
        self.asm.op2_imm(shift, high, high, 32, Mask::None);
        let or = Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(or, r, r, high);
    }

    /// Zero-extends half `part` of the elements of a register to 64 bits.
    pub fn extend_half(&mut self, to: Register, from: Register, part: usize) {
        self.widen_register(Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256, to, from, part);
    }

    /// Converts half `part` of the 32-bit elements of a register to 64-bit elements.
    pub fn widen_register(&mut self, code: Code, to: Register, from: Register, part: usize) {
        if part == 0 {
            self.asm.op2(code, to, lower(from));
        } else {
            let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
            self.asm.op2_imm(extract, lower(to), from, 1, Mask::None);
            self.asm.op2(code, to, lower(to));
        }
    }

    /// `mov` that splits an integer.
    pub fn unpack(&mut self, layout: IntegerLayout, d: [u32; 4], s: u32) {
        let (whole, r) = (vector(0), vector(2));
        let parts = match layout {
            IntegerLayout::Shorts2 | IntegerLayout::Bytes4 => {
                self.low_word(whole, s, Slot::R32);
                if layout == IntegerLayout::Bytes4 {
                    [8, 8, 8, 8]
                } else {
                    [16, 16, 0, 0]
                }
            }
            _ => {
                // The lower words, and the upper words.
                self.low_word(whole, s, Slot::R64);
                let (low, high) = (vector(3), vector(4));
                for (part, to) in [low, high].into_iter().enumerate() {
                    let source = self.source64(s, part);
                    let shift = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
                    self.asm.op2_imm(shift, to, source, 32, Mask::None);
                    let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
                    self.asm.op2(truncate, lower(to), to);
                }
                self.join_halves(low, high);
                if layout == IntegerLayout::Words2 {
                    self.write_part(d[0], whole);
                    self.write_part(d[1], low);
                    return;
                }
                for (n, from) in [whole, low].into_iter().enumerate() {
                    self.asm.op3(AND, r, from, constant(constants::LOW16));
                    self.write_part(d[2 * n], r);
                    self.asm.op2_imm(SHIFT_RIGHT, r, from, 16, Mask::None);
                    self.write_part(d[2 * n + 1], r);
                }
                return;
            }
        };
        let mut at = 0;
        for (n, width) in parts.into_iter().enumerate().filter(|p| p.1 != 0) {
            self.asm
                .op2_imm(SHIFT_LEFT, r, whole, 32 - width - at, Mask::None);
            self.asm.op2_imm(SHIFT_RIGHT, r, r, 32 - width, Mask::None);
            self.write_part(d[n], r);
            at += width;
        }
    }

    /// Writes a part of an integer, unless it is discarded.
    fn write_part(&mut self, d: u32, r: Register) {
        if d != fixed::SINK {
            self.write32(d, r);
        }
    }
}

//! Translation of integer arithmetic.

use iced_x86::Code;

use super::assembler::Mask;
use super::emit::{Emitter, MASK, constant};
use super::homes::vector;
use super::lanes::lower;
use crate::run::native_context::constant as constants;
use crate::semantics::lane::IntegerOp;

/// The instructions of a shift of 64-bit elements.
struct Shift {
    by_lane: Code,
    by_constant: Code,
}

const LEFT: Shift = Shift {
    by_lane: Code::EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64,
    by_constant: Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8,
};
const RIGHT_SIGNED: Shift = Shift {
    by_lane: Code::EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64,
    by_constant: Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8,
};
const RIGHT: Shift = Shift {
    by_lane: Code::EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64,
    by_constant: Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8,
};

impl Emitter<'_> {
    /// Integer arithmetic of 32 bits.
    pub fn integer32(&mut self, op: IntegerOp, d: u32, s: [u32; 4]) {
        use IntegerOp::*;
        let code = match op {
            Add => Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
            Subtract => Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32,
            Multiply => Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32,
            And => Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32,
            Or => Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32,
            Xor => Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
            MinSigned => Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
            MinUnsigned => Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
            MaxSigned => Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
            MaxUnsigned => Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
            ShiftLeft => Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32,
            ShiftRightSigned => Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32,
            ShiftRightUnsigned => Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32,
            MultiplyAdd => {
                let (a, b, c) = (self.bits32(s[0]), self.bits32(s[1]), self.bits32(s[2]));
                let a = self.in_register(a, 0);
                self.asm
                    .op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, vector(0), a, b);
                let to = self.destination32(d);
                let add = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3_masked(add, to.register, vector(0), c, to.mask);
                self.finish(to);
                self.set_raw(d, false);
                return;
            }
            Not => {
                let s = self.bits32(s[0]);
                let to = self.destination32(d);
                self.asm
                    .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, vector(0), s);
                let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
                let ones = constant(constants::ONES32);
                self.asm
                    .op3_masked(xor, to.register, vector(0), ones, to.mask);
                self.finish(to);
                self.set_raw(d, false);
                return;
            }
            Negate => {
                let s = self.bits32(s[0]);
                self.zero(vector(0));
                let to = self.destination32(d);
                let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
                self.asm
                    .op3_masked(subtract, to.register, vector(0), s, to.mask);
                self.finish(to);
                self.set_raw(d, false);
                return;
            }
            Absolute => {
                self.canonicalize(s[0]);
                self.unary32(Code::EVEX_Vpabsd_zmm_k1z_zmmm512b32, d, s[0]);
                self.set_raw(d, false);
                return;
            }
        };
        self.binary32(code, d, s[0], s[1]);
    }

    /// Integer arithmetic of 64 bits.
    pub fn integer64(&mut self, op: IntegerOp, d: u32, s: [u32; 4]) {
        use IntegerOp::*;
        let code = match op {
            Add => Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
            Subtract => Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64,
            Multiply => Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64,
            And => Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64,
            Or => Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64,
            Xor => Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64,
            MinSigned => Code::EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64,
            MinUnsigned => Code::EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64,
            MaxSigned => Code::EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64,
            MaxUnsigned => Code::EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64,
            ShiftLeft => return self.shift64(&LEFT, d, s),
            ShiftRightSigned => return self.shift64(&RIGHT_SIGNED, d, s),
            ShiftRightUnsigned => return self.shift64(&RIGHT, d, s),
            MultiplyAdd => {
                for part in 0..2 {
                    let (a, b) = (self.source64(s[0], part), self.source64(s[1], part));
                    let c = self.source64(s[2], part);
                    let a = self.in_register(a, 0);
                    let multiply = Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64;
                    self.asm.op3(multiply, vector(0), a, b);
                    let to = self.destination64(d, part);
                    let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
                    self.asm.op3_masked(add, to.register, vector(0), c, to.mask);
                    self.finish(to);
                }
                return;
            }
            Not => {
                for part in 0..2 {
                    let s = self.source64(s[0], part);
                    self.asm
                        .op2(Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512, vector(0), s);
                    let to = self.destination64(d, part);
                    // The complement of the last source, whatever the others are.
                    const NOT_LAST: i32 = 0x55;
                    let code = Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8;
                    let v = vector(0);
                    match to.mask {
                        Mask::None => {
                            self.asm.op3_imm(code, to.register, v, v, NOT_LAST, to.mask);
                        }
                        mask => {
                            self.asm.op3_imm(code, v, v, v, NOT_LAST, Mask::None);
                            let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                            self.asm.op2_masked(copy, to.register, v, mask);
                        }
                    }
                    self.finish(to);
                }
                return;
            }
            Negate => {
                for part in 0..2 {
                    let s = self.source64(s[0], part);
                    self.zero(vector(0));
                    let to = self.destination64(d, part);
                    let subtract = Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
                    self.asm
                        .op3_masked(subtract, to.register, vector(0), s, to.mask);
                    self.finish(to);
                }
                return;
            }
            Absolute => return self.unary64(Code::EVEX_Vpabsq_zmm_k1z_zmmm512b64, d, s[0]),
        };
        self.binary64(code, d, s[0], s[1]);
    }

    /// A shift of 64-bit elements by 32-bit distances. Distances beyond the width shift everything out.
    fn shift64(&mut self, shift: &Shift, d: u32, s: [u32; 4]) {
        // Greater ones have results of their own.
        let distance = self.program.constant32(s[1]).filter(|n| *n < 64);
        for part in 0..2 {
            let a = self.source64(s[0], part);
            if let Some(distance) = distance {
                let to = self.destination64(d, part);
                self.asm
                    .op2_imm(shift.by_constant, to.register, a, distance as i32, to.mask);
                self.finish(to);
                continue;
            }
            self.wide_source(Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256, vector(1), s[1], part);
            let a = self.in_register(a, 0);
            let to = self.destination64(d, part);
            self.asm
                .op3_masked(shift.by_lane, to.register, a, vector(1), to.mask);
            self.finish(to);
        }
    }

    /// The 64-bit product of 32-bit integers.
    pub fn multiply_wide(&mut self, signed: bool, add: bool, d: u32, s: [u32; 4]) {
        let (extend, multiply) = match signed {
            true => (
                Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256,
                Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64,
            ),
            false => (
                Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256,
                Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64,
            ),
        };
        for part in 0..2 {
            self.wide_source(extend, vector(0), s[0], part);
            self.wide_source(extend, vector(1), s[1], part);
            if add {
                self.asm.op3(multiply, vector(0), vector(0), vector(1));
                let c = self.source64(s[2], part);
                let to = self.destination64(d, part);
                let sum = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
                self.asm.op3_masked(sum, to.register, vector(0), c, to.mask);
                self.finish(to);
            } else {
                let to = self.destination64(d, part);
                self.asm
                    .op3_masked(multiply, to.register, vector(0), vector(1), to.mask);
                self.finish(to);
            }
        }
    }

    /// The upper half of the product of 32-bit integers.
    pub fn multiply_high(&mut self, signed: bool, d: u32, s: [u32; 4]) {
        self.high_product32(signed, s);
        self.copy32(d, vector(1));
        self.set_raw(d, false);
    }

    /// The same in the second scratch register.
    pub fn high_product32(&mut self, signed: bool, s: [u32; 4]) {
        let (extend, multiply) = match signed {
            true => (
                Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256,
                Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64,
            ),
            false => (
                Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256,
                Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64,
            ),
        };
        for part in [1, 0] {
            let product = vector(1 - part as u32);
            let other = vector(2);
            self.wide_source(extend, product, s[0], part);
            self.wide_source(extend, other, s[1], part);
            self.asm.op3(multiply, product, product, other);
            let shift = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
            self.asm.op2_imm(shift, product, product, 32, Mask::None);
            let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
            self.asm.op2(truncate, lower(product), product);
        }
        // The lower half is in the second register.
        self.join_halves(vector(1), vector(0));
    }

    /// Division in double precision: quotients of integers below 2^32 truncate to the right integer. The engine divides if a
    /// divisor is zero.
    pub fn divide(&mut self, signed: bool, remainder: bool, d: u32, s: [u32; 4]) {
        let (slow, done) = (self.asm.label(), self.asm.label());
        let divisor = self.bits32(s[1]);
        self.canonicalize(s[0]);
        let divisor = self.in_register(divisor, 1);
        let test = Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32;
        let mask = self.lane_mask().map_or(Mask::None, Mask::Merge);
        self.asm.op3_masked(test, MASK, divisor, divisor, mask);
        self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
        self.asm.jump(Code::Jne_rel32_64, slow);
        let from = match signed {
            true => Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er,
            false => Code::EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er,
        };
        for part in [1, 0] {
            let quotient = vector(1 - part as u32);
            self.wide_source(from, quotient, s[0], part);
            self.wide_source(from, vector(2), s[1], part);
            let division = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
            self.asm.op3(division, quotient, quotient, vector(2));
            // -2^31 / -1 does not fit 32 bits, and wraps.
            self.small_from_double(quotient);
            let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
            self.asm.op2(truncate, lower(quotient), quotient);
        }
        self.join_halves(vector(1), vector(0));
        if remainder {
            let divisor = self.source32(s[1]);
            let multiply = Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(multiply, vector(1), vector(1), divisor);
            let dividend = self.source32(s[0]);
            let dividend = self.in_register(dividend, 0);
            let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(subtract, vector(1), dividend, vector(1));
        }
        self.copy32(d, vector(1));
        self.set_raw(d, false);
        self.asm.bind(done);
        self.engine_instead(slow, done);
    }

    /// A bitwise function of three words.
    pub fn lookup(&mut self, table: u8, d: u32, s: [u32; 4]) {
        let (a, b, c) = (self.bits32(s[0]), self.bits32(s[1]), self.bits32(s[2]));
        self.asm
            .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, vector(0), a);
        let b = self.in_register(b, 1);
        let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
        self.asm
            .op3_imm(code, vector(0), b, c, table.into(), Mask::None);
        self.copy32(d, vector(0));
        self.set_raw(d, false);
    }

    /// The 32-bit product of 16-bit integers.
    pub fn multiply_wide16(&mut self, signed: bool, d: u32, s: [u32; 4]) {
        let multiply = Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;
        for n in 0..2 {
            let v = vector(n);
            let source = self.bits32(s[n as usize]);
            self.asm
                .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, v, source);
            if signed {
                let (left, right) = (
                    Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
                    Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
                );
                self.asm.op2_imm(left, v, v, 16, Mask::None);
                self.asm.op2_imm(right, v, v, 16, Mask::None);
            }
        }
        self.asm.op3(multiply, vector(0), vector(0), vector(1));
        self.copy32(d, vector(0));
        self.set_raw(d, false);
    }
}

//! Translation of half-precision arithmetic: in single precision where rounding twice is exact, otherwise in double precision
//! and rounded to odd, as the lane functions do.

use cupyrite_ptx::ir::Cmp;
use iced_x86::{Code, Register, RoundingControl};

use super::assembler::{Mask, Source};
use super::emit::{Emitter, MASK, constant};
use super::homes::vector;
use super::lanes::{lower, unordered};
use crate::run::native_context::constant as constants;
use crate::semantics::lane::{Direction, HalfFormat, HalfOp};

const COPY: Code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
const OR: Code = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
const ADD: Code = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
const SHIFT_LEFT: Code = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
const SHIFT_RIGHT: Code = Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8;
const COMPARE: Code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;

/// The canonical NaN.
const NAN: u32 = 0x7fff;

impl Emitter<'_> {
    fn word(&mut self, x: u32) -> Source {
        Source::Broadcast(self.asm.constant(u64::from(x)))
    }

    /// Converts the lower or upper half of each element of a source to single precision.
    pub fn widen_half(&mut self, to: Register, s: u32, format: HalfFormat, upper: bool) {
        let source = self.bits32(s);
        match (format, upper) {
            (HalfFormat::Brain, false) => {
                self.asm.op2_imm(SHIFT_LEFT, to, source, 16, Mask::None);
            }
            (HalfFormat::Brain, true) => {
                self.asm.op2(COPY, to, source);
                let bits = self.word(0xffff_0000);
                self.asm.op3(AND, to, to, bits);
            }
            (HalfFormat::Binary16, _) => {
                let distance = if upper { 16 } else { 0 };
                self.asm
                    .op2_imm(SHIFT_RIGHT, to, source, distance, Mask::None);
                let truncate = Code::EVEX_Vpmovdw_ymmm256_k1z_zmm;
                self.asm.op2(truncate, lower(to), to);
                let widen = Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae;
                self.asm.op2(widen, to, lower(to));
            }
        }
    }

    /// Rounds single precision to half precision, in the low half of each element. NaNs become canonical.
    fn round_to_half(
        &mut self,
        r: Register,
        format: HalfFormat,
        rounding: Direction,
        scratch: Register,
    ) {
        let nan = unordered(Cmp::Nan);
        self.asm.op3_imm(COMPARE, MASK, r, r, nan, Mask::None);
        match format {
            HalfFormat::Binary16 => {
                let round = Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae;
                self.asm
                    .op2_imm(round, lower(r), r, rounding as i32, Mask::None);
                let extend = Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256;
                self.asm.op2(extend, r, lower(r));
            }
            // To nearest: adds half a unit, or a bit less if the number is even. An overflow carries into the exponent.
            HalfFormat::Brain => {
                self.asm.op2_imm(SHIFT_RIGHT, scratch, r, 16, Mask::None);
                let one = self.word(1);
                self.asm.op3(AND, scratch, scratch, one);
                let half = self.word(0x7fff);
                self.asm.op3(ADD, r, r, half);
                self.asm.op3(ADD, r, r, scratch);
                self.asm.op2_imm(SHIFT_RIGHT, r, r, 16, Mask::None);
            }
        }
        let nan = Source::Memory(self.asm.constant(u64::from(NAN)));
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        self.asm.op2_masked(broadcast, r, nan, Mask::Merge(MASK));
    }

    /// Half-precision arithmetic.
    pub fn half_arithmetic(
        &mut self,
        op: HalfOp,
        format: HalfFormat,
        pair: bool,
        d: u32,
        s: [u32; 4],
    ) {
        if matches!(op, HalfOp::Negate | HalfOp::Absolute) {
            self.half_sign(op, format, pair, d, s[0]);
            return;
        }
        let (r, scratch, saved) = (vector(0), vector(1), vector(4));
        if pair {
            self.half_result(op, format, true, s);
            self.round_to_half(r, format, Direction::Nearest, scratch);
            self.asm.op2_imm(SHIFT_LEFT, saved, r, 16, Mask::None);
        }
        self.half_result(op, format, false, s);
        self.round_to_half(r, format, Direction::Nearest, scratch);
        if pair {
            self.asm.op3(OR, r, r, saved);
        }
        self.write32(d, r);
    }

    /// The result of an operation on the lower or upper halves, in single precision in the first scratch register: exact, or
    /// such that rounding it again is exact. Uses all scratch registers but the last.
    fn half_result(&mut self, op: HalfOp, format: HalfFormat, upper: bool, s: [u32; 4]) {
        let exact = op == HalfOp::Multiply && format == HalfFormat::Brain;
        if exact || op == HalfOp::MultiplyAdd {
            self.half_product(op == HalfOp::MultiplyAdd, format, upper, s);
            return;
        }
        let (a, b) = (vector(0), vector(1));
        self.widen_half(a, s[0], format, upper);
        self.widen_half(b, s[1], format, upper);
        let code = match op {
            HalfOp::Min | HalfOp::Max => {
                let sources = [a.into(), b.into(), b.into()];
                self.extreme32(op == HalfOp::Max, sources);
                return;
            }
            HalfOp::Add => Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er,
            HalfOp::Subtract => Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er,
            _ => Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
        };
        self.asm.op3(code, a, a, b);
    }

    /// A product, or the sum of a product and a number, rounded to odd.
    fn half_product(&mut self, add: bool, format: HalfFormat, upper: bool, s: [u32; 4]) {
        let multiply = Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er;
        let widen = Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae;
        let low = vector(3);
        for part in 0..2 {
            let (r, other) = (vector(0), vector(1));
            for (to, s) in [(r, s[0]), (other, s[1])] {
                self.widen_half(to, s, format, upper);
                self.widen_register(widen, to, to, part);
            }
            self.asm.op3(multiply, r, r, other);
            if add {
                let addend = vector(2);
                self.widen_half(addend, s[2], format, upper);
                self.widen_register(widen, addend, addend, part);
                self.odd_sum(r, addend, other);
            }
            self.odd_single(r, other);
            if part == 0 {
                let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                self.asm.op2(copy, low, r);
            }
        }
        self.join_halves(low, vector(0));
        self.asm.op2(COPY, vector(0), low);
    }

    /// `r += addend` in double precision, rounded to odd: of the two neighbours of an inexact sum, the one whose last bit is 1.
    fn odd_sum(&mut self, r: Register, addend: Register, scratch: Register) {
        let add = Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er;
        self.asm.rounding = RoundingControl::RoundUp;
        self.asm.op3(add, scratch, r, addend);
        self.asm.rounding = RoundingControl::RoundDown;
        self.asm.op3(add, r, r, addend);
        self.asm.rounding = RoundingControl::None;
        let one = Source::Broadcast(self.asm.constant(1));
        let test = Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64;
        self.asm.op3(test, MASK, r, one);
        // Also the sum of opposite numbers, which is -0 when rounding down.
        let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
        self.asm.op2_masked(copy, r, scratch, Mask::Merge(MASK));
    }

    /// Rounds double precision to odd in single precision, in the lower half of the register.
    fn odd_single(&mut self, r: Register, scratch: Register) {
        let round = Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er;
        self.asm.rounding = RoundingControl::RoundUp;
        self.asm.op2(round, lower(scratch), r);
        self.asm.rounding = RoundingControl::RoundDown;
        self.asm.op2(round, lower(r), r);
        self.asm.rounding = RoundingControl::None;
        let one = self.word(1);
        let test = Code::EVEX_Vptestnmd_kr_k1_ymm_ymmm256b32;
        self.asm.op3(test, MASK, lower(r), one);
        let copy = Code::EVEX_Vmovdqu32_ymm_k1z_ymmm256;
        self.asm
            .op2_masked(copy, lower(r), lower(scratch), Mask::Merge(MASK));
    }

    /// `neg` and `abs`.
    fn half_sign(&mut self, op: HalfOp, format: HalfFormat, pair: bool, d: u32, s: u32) {
        let (r, magnitude, bound) = (vector(0), vector(1), vector(2));
        let both = |x: u32| x | x << 16;
        let source = self.bits32(s);
        self.asm.op2(COPY, r, source);
        let bits = self.word(both(0x7fff));
        self.asm.op3(AND, magnitude, r, bits);
        let infinity = match format {
            HalfFormat::Binary16 => 0x7c00,
            HalfFormat::Brain => 0x7f80,
        };
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        let infinity = Source::Memory(self.asm.constant(both(infinity).into()));
        self.asm.op2(broadcast, bound, infinity);
        const GREATER: i32 = 6;
        let compare = Code::EVEX_Vpcmpuw_kr_k1_zmm_zmmm512_imm8;
        self.asm
            .op3_imm(compare, MASK, magnitude, bound, GREATER, Mask::None);
        if op == HalfOp::Negate {
            let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
            let sign = self.word(both(0x8000));
            self.asm.op3(xor, r, r, sign);
        } else {
            self.asm.op2(COPY, r, magnitude);
        }
        let nan = Source::Memory(self.asm.constant(both(NAN).into()));
        self.asm.op2(broadcast, bound, nan);
        let copy = Code::EVEX_Vmovdqu16_zmm_k1z_zmmm512;
        self.asm.op2_masked(copy, r, bound, Mask::Merge(MASK));
        if !pair {
            self.asm.op3(AND, r, r, constant(constants::LOW16));
        }
        self.write32(d, r);
    }

    /// Single to half precision.
    pub fn half_from_single(
        &mut self,
        format: HalfFormat,
        rounding: Direction,
        pair: bool,
        d: u32,
        s: [u32; 4],
    ) {
        let (r, scratch, saved) = (vector(0), vector(1), vector(4));
        let source = self.source32(s[0]);
        self.asm.op2(COPY, r, source);
        self.round_to_half(r, format, rounding, scratch);
        if pair {
            self.asm.op2_imm(SHIFT_LEFT, saved, r, 16, Mask::None);
            let source = self.source32(s[1]);
            self.asm.op2(COPY, r, source);
            self.round_to_half(r, format, rounding, scratch);
            self.asm.op3(OR, r, r, saved);
        }
        self.write32(d, r);
    }
}

//! Translation of `ex2`, `lg2`, `sin`, `cos` and `tanh`: the operations of the lane functions in `semantics::lane::math`, in the same
//! order.

use std::f64::consts::{FRAC_2_PI, LN_2, LOG2_E};

use iced_x86::{Code, Register};

use super::assembler::{Mask, Source};
use super::emit::{Emitter, MASK};
use super::homes::vector;
use super::isa::Isa;
use crate::semantics::lane::Approximation;

const ADD: Code = Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er;
const SUBTRACT: Code = Code::EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er;
const MULTIPLY: Code = Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er;
const COPY: Code = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
const COMPARE: Code = Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae;
const COMPARE32: Code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;

/// Adding it rounds to an integer, which is in the low bits of the sum.
const SHIFTER: f64 = 6_755_399_441_055_744.0;

impl Emitter<'_> {
    /// A double-precision constant in every lane.
    fn number(&mut self, x: f64) -> Source {
        Source::Broadcast(self.asm.constant(x.to_bits()))
    }

    /// `to = a op x`.
    fn with_number(&mut self, code: Code, to: Register, a: Register, x: f64) {
        let x = self.number(x);
        self.asm.op3(code, to, a, x);
    }

    /// Loads a constant.
    fn load_number(&mut self, to: Register, x: f64) {
        let from = Source::Memory(self.asm.constant(x.to_bits()));
        self.asm
            .op2(Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64, to, from);
    }

    /// `p = p * x + c` for each constant, rounded after each operation.
    fn polynomial(&mut self, p: Register, x: Register, constants: &[f64]) {
        for &c in constants {
            self.asm.op3(MULTIPLY, p, p, x);
            self.with_number(ADD, p, p, c);
        }
    }

    /// Converts 64-bit integers below 2^51 to double precision.
    pub fn double_from_small(&mut self, to: Register, from: Source) {
        if self.asm.isa == Isa::Avx512 {
            let convert = Code::EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er;
            self.asm.op2(convert, to, from);
            return;
        }
        self.asm.op2(COPY, to, from);
        let shifter = Source::Broadcast(self.asm.constant(SHIFTER.to_bits()));
        let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(add, to, to, shifter);
        self.with_number(SUBTRACT, to, to, SHIFTER);
    }

    /// Truncates doubles below 2^51 to 64-bit integers.
    pub fn small_from_double(&mut self, r: Register) {
        if self.asm.isa == Isa::Avx512 {
            let truncate = Code::EVEX_Vcvttpd2qq_zmm_k1z_zmmm512b64_sae;
            self.asm.op2(truncate, r, r);
            return;
        }
        const TRUNCATE: i32 = 3;
        let round = Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae;
        self.asm.op2_imm(round, r, r, TRUNCATE, Mask::None);
        self.with_number(ADD, r, r, SHIFTER);
        let shifter = Source::Broadcast(self.asm.constant(SHIFTER.to_bits()));
        let subtract = Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(subtract, r, r, shifter);
    }

    /// Translates an approximation.
    pub fn approximate(&mut self, function: Approximation, flush: bool, d: u32, s: u32) {
        let source = self.source32(s);
        let x = vector(0);
        self.asm
            .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, x, source);
        if flush {
            self.flush(x);
        }
        match function {
            Approximation::Exponential => self.by_halves(|e, v| e.exponential(v)),
            Approximation::Logarithm => {
                self.by_halves(|e, v| e.logarithm(v));
                self.special_logarithms(source, flush);
            }
            Approximation::Sine => self.by_halves(|e, v| e.sine(v, 0)),
            Approximation::Cosine => self.by_halves(|e, v| e.sine(v, 1)),
            Approximation::HyperbolicTangent => self.by_halves(|e, v| e.tangent(v)),
        }
        if flush {
            self.flush(x);
        }
        self.canonicalize_register(x, Mask::None);
        self.copy32(d, x);
        self.set_raw(d, false);
    }

    /// `div.approx`: a divisor above 2^126 has a reciprocal of zero.
    pub fn approximate_quotient(&mut self, flush: bool, d: u32, s: [u32; 4]) {
        const LARGE: u32 = 253 << 23;
        const MOST: u32 = 0x7f7f_ffff;
        const AT_MOST: i32 = 2;
        let (a, b, distance) = (vector(0), vector(1), vector(2));
        for (to, s) in [(a, s[0]), (b, s[1])] {
            let source = self.source32(s);
            self.asm
                .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, to, source);
            if flush {
                self.flush(to);
            }
        }
        let quotient = vector(3);
        let divide = Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er;
        self.asm.op3(divide, quotient, a, b);
        let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
        let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
        let compare = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
        let word = |e: &mut Self, x: u32| Source::Broadcast(e.asm.constant(u64::from(x)));
        let (magnitude, sign) = (word(self, u32::MAX >> 1), word(self, 1 << 31));
        let (least, range) = (word(self, LARGE + 1), word(self, MOST - LARGE - 1));
        self.asm.op3(and, distance, b, magnitude);
        self.asm.op3(subtract, distance, distance, least);
        self.asm
            .op3_imm(compare, MASK, distance, range, AT_MOST, Mask::None);
        self.asm.op3(and, b, b, sign);
        let multiply = Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er;
        self.asm
            .op3_masked(multiply, quotient, a, b, Mask::Merge(MASK));
        if flush {
            self.flush(quotient);
        }
        self.canonicalize_register(quotient, Mask::None);
        self.copy32(d, quotient);
        self.set_raw(d, false);
    }

    /// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`, which read and write the upper words of numbers. The engine computes
    /// NaNs.
    pub fn approximate_reciprocal(&mut self, root: bool, d: u32, s: u32) {
        const UNORDERED: i32 = 3;
        let (slow, done) = (self.asm.label(), self.asm.label());
        let results = [vector(0), vector(1)];
        let and = Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
        let head = Source::Broadcast(self.asm.constant(0xffff_ffff << 32));
        for (part, r) in results.into_iter().enumerate() {
            let source = self.source64(s, part);
            self.asm.op2(COPY, r, source);
            // The payload of a NaN may be in the lower word only.
            self.asm.op3_imm(COMPARE, MASK, r, r, UNORDERED, Mask::None);
            self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jne_rel32_64, slow);
            self.asm.op3(and, r, r, head);
            self.flush64(r);
            if root {
                self.asm.op2(Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, r, r);
            }
            let one = vector(2);
            self.load_number(one, 1.0);
            let divide = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
            self.asm.op3(divide, r, one, r);
            self.flush64(r);
            let half = Source::Broadcast(self.asm.constant(1 << 31));
            let infinity = f64::INFINITY.to_bits();
            let infinity = Source::Broadcast(self.asm.constant(infinity));
            // Rounds finite numbers.
            let finite = vector(2);
            self.asm.op3(and, finite, r, infinity);
            const NOT_EQUAL: i32 = 4;
            let compare = Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8;
            self.asm
                .op3_imm(compare, MASK, finite, infinity, NOT_EQUAL, Mask::None);
            let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3_masked(add, r, r, half, Mask::Merge(MASK));
            self.asm.op3(and, r, r, head);
        }
        self.asm
            .op3_imm(COMPARE, MASK, results[0], results[1], UNORDERED, Mask::None);
        self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
        self.asm.jump(Code::Jne_rel32_64, slow);
        for (part, r) in results.into_iter().enumerate() {
            self.copy64(d, part, r);
        }
        self.asm.bind(done);
        self.engine_instead(slow, done);
    }

    /// Replaces subnormal double-precision numbers of a register by zeros of the same sign. Uses the scratch mask.
    fn flush64(&mut self, r: Register) {
        let exponent = Source::Broadcast(self.asm.constant(f64::INFINITY.to_bits()));
        let test = Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64;
        self.asm.op3(test, MASK, r, exponent);
        let sign = Source::Broadcast(self.asm.constant(1 << 63));
        let and = Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3_masked(and, r, r, sign, Mask::Merge(MASK));
    }

    fn exponential(&mut self, w: Register) {
        let (shifted, p) = (vector(2), vector(3));
        // The instructions return the second operand if one is a NaN.
        self.load_number(p, 200.0);
        self.asm
            .op3(Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae, w, p, w);
        self.load_number(p, -200.0);
        self.asm
            .op3(Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae, w, p, w);
        self.with_number(ADD, shifted, w, SHIFTER);
        self.with_number(SUBTRACT, p, shifted, SHIFTER);
        self.asm.op3(SUBTRACT, w, w, p);
        self.with_number(MULTIPLY, w, w, LN_2);
        self.with_number(MULTIPLY, p, w, 1.0 / 362_880.0);
        self.with_number(ADD, p, p, 1.0 / 40_320.0);
        let rest = [
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ];
        self.polynomial(p, w, &rest);
        let bias = Source::Broadcast(self.asm.constant(1023));
        let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(add, shifted, shifted, bias);
        let shift = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
        self.asm.op2_imm(shift, shifted, shifted, 52, Mask::None);
        self.asm.op3(MULTIPLY, w, p, shifted);
    }

    fn tangent(&mut self, x: Register) {
        const LESS: i32 = 0x11;
        let (z, p, w) = (vector(2), vector(3), vector(4));
        self.asm.op2(COPY, w, x);
        self.with_number(MULTIPLY, x, x, 2.0 * LOG2_E);
        self.exponential(x);
        self.with_number(SUBTRACT, p, x, 1.0);
        self.with_number(ADD, x, x, 1.0);
        let divide = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
        self.asm.op3(divide, x, p, x);
        // For small arguments, the difference cancels.
        self.asm.op3(MULTIPLY, z, w, w);
        let bound = self.number(1.0 / 4096.0);
        self.asm.op3_imm(COMPARE, MASK, z, bound, LESS, Mask::None);
        self.with_number(MULTIPLY, p, z, 2.0 / 15.0);
        let one = vector(5);
        self.load_number(one, 1.0 / 3.0);
        self.asm.op3(SUBTRACT, p, one, p);
        self.asm.op3(MULTIPLY, p, z, p);
        self.load_number(one, 1.0);
        self.asm.op3(SUBTRACT, p, one, p);
        self.asm.op3_masked(MULTIPLY, x, w, p, Mask::Merge(MASK));
    }

    fn logarithm(&mut self, x: Register) {
        /// Bits of the square root of 1/2.
        const LEAST: u64 = 0x3fe6_a09e_667f_3bcd;
        let (t, e, p) = (vector(2), vector(3), vector(4));
        let least = Source::Broadcast(self.asm.constant(LEAST));
        let subtract = Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(subtract, t, x, least);
        let shift = Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8;
        self.asm.op2_imm(shift, e, t, 52, Mask::None);
        self.double_from_small(e, e.into());
        let exponent = Source::Broadcast(self.asm.constant(0xfff0_0000_0000_0000));
        self.asm
            .op3(Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64, t, t, exponent);
        self.asm.op3(subtract, x, x, t);
        self.with_number(SUBTRACT, t, x, 1.0);
        self.with_number(ADD, x, x, 1.0);
        let divide = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
        self.asm.op3(divide, t, t, x);
        let z = x;
        self.asm.op3(MULTIPLY, z, t, t);
        self.with_number(MULTIPLY, p, z, 1.0 / 13.0);
        self.with_number(ADD, p, p, 1.0 / 11.0);
        let rest = [1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0];
        self.polynomial(p, z, &rest);
        self.asm.op3(MULTIPLY, p, z, p);
        self.asm.op3(MULTIPLY, p, t, p);
        self.asm.op3(ADD, t, t, p);
        self.with_number(MULTIPLY, t, t, 2.0 * LOG2_E);
        self.asm.op3(ADD, x, e, t);
    }

    /// The logarithms of zero, infinity, negative numbers and NaNs, in the first scratch register.
    fn special_logarithms(&mut self, source: Source, flush: bool) {
        let (y, x) = (vector(0), vector(1));
        self.asm
            .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, x, source);
        if flush {
            self.flush(x);
        }
        const EQUAL: i32 = 0;
        const NOT_AT_LEAST: i32 = 0x19;
        let cases = [
            (0.0f32, EQUAL, f32::NEG_INFINITY),
            (f32::INFINITY, EQUAL, f32::INFINITY),
            (0.0, NOT_AT_LEAST, f32::NAN),
        ];
        for (than, comparison, result) in cases {
            let than = Source::Broadcast(self.asm.constant(u64::from(than.to_bits())));
            self.asm
                .op3_imm(COMPARE32, MASK, x, than, comparison, Mask::None);
            let result = Source::Memory(self.asm.constant(u64::from(result.to_bits())));
            let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
            self.asm.op2_masked(broadcast, y, result, Mask::Merge(MASK));
        }
    }

    /// Sine of `w` plus `quarter` quarter turns.
    fn sine(&mut self, w: Register, quarter: u64) {
        const FIRST: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
        const SECOND: f64 = f64::from_bits(0x3dd0_b461_1a60_0000);
        const THIRD: f64 = f64::from_bits(0x3ba3_198a_2e03_7073);
        const FAR: f64 = 1_073_741_824.0;
        const NOT_LESS: i32 = 0x15;
        let (turn, k, t) = (vector(2), vector(3), vector(4));
        let magnitude = Source::Broadcast(self.asm.constant((1 << 63) - 1));
        let and = Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(and, t, w, magnitude);
        let far = self.number(FAR);
        self.asm
            .op3_imm(COMPARE, MASK, t, far, NOT_LESS, Mask::None);
        let zero = self.number(0.0);
        self.asm.op3_masked(MULTIPLY, w, w, zero, Mask::Merge(MASK));
        self.with_number(MULTIPLY, turn, w, FRAC_2_PI);
        self.with_number(ADD, turn, turn, SHIFTER);
        self.with_number(SUBTRACT, k, turn, SHIFTER);
        if quarter != 0 {
            let quarter = Source::Broadcast(self.asm.constant(quarter));
            let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(add, turn, turn, quarter);
        }
        for part in [FIRST, SECOND, THIRD] {
            self.with_number(MULTIPLY, t, k, part);
            self.asm.op3(SUBTRACT, w, w, t);
        }
        let (r, z, sin) = (w, k, t);
        self.asm.op3(MULTIPLY, z, r, r);
        self.with_number(MULTIPLY, sin, z, 1.0 / 6_227_020_800.0);
        self.with_number(ADD, sin, sin, -1.0 / 39_916_800.0);
        let rest = [
            1.0 / 362_880.0,
            -1.0 / 5_040.0,
            1.0 / 120.0,
            -1.0 / 6.0,
            1.0,
        ];
        self.polynomial(sin, z, &rest);
        self.asm.op3(MULTIPLY, sin, r, sin);
        let cos = r;
        self.with_number(MULTIPLY, cos, z, 1.0 / 479_001_600.0);
        self.with_number(ADD, cos, cos, -1.0 / 3_628_800.0);
        let rest = [1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];
        self.polynomial(cos, z, &rest);
        let one = Source::Broadcast(self.asm.constant(1));
        let test = Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64;
        self.asm.op3(test, MASK, turn, one);
        self.asm.op2_masked(COPY, cos, sin, Mask::Merge(MASK));
        let two = Source::Broadcast(self.asm.constant(2));
        self.asm.op3(and, turn, turn, two);
        let shift = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
        self.asm.op2_imm(shift, turn, turn, 62, Mask::None);
        let xor = Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64;
        self.asm.op3(xor, w, cos, turn);
    }
}

//! Translation of conversions from and to floating-point numbers that are not in [`lanes`](super::lanes).

use cupyrite_ptx::ir::Cmp;
use iced_x86::{Code, Register, RoundingControl};

use super::assembler::{Mask, Source};
use super::avx2::Elements;
use super::emit::{Emitter, MASK, constant};
use super::homes::vector;
use super::isa::Isa;
use super::lanes::{lower, unordered};
use crate::run::native_context::constant as constants;
use crate::semantics::lane::{Conversion, Direction, Slot};

const COPY: Code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
const COMPARE: Code = Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae;

/// The rounding of an instruction whose operands are registers.
pub fn control(rounding: Direction) -> RoundingControl {
    match rounding {
        Direction::Nearest => RoundingControl::None,
        Direction::Down => RoundingControl::RoundDown,
        Direction::Up => RoundingControl::RoundUp,
        Direction::TowardsZero => RoundingControl::RoundTowardZero,
    }
}

impl Emitter<'_> {
    /// Translates a conversion.
    pub fn convert(&mut self, c: Conversion, d: u32, s: u32) {
        match c {
            Conversion::FloatFromInteger {
                double,
                bits: 64,
                signed,
                rounding,
            } => self.float_from_long(double, signed, rounding, d, s),
            Conversion::FloatFromInteger {
                double,
                bits,
                signed,
                rounding,
            } => self.float_from_word(double, bits, signed, rounding, d, s),
            Conversion::WordFromDouble { signed, rounding } => {
                self.word_from_double(signed, rounding, d, s);
            }
            Conversion::LongFromFloat {
                double,
                signed,
                rounding,
            } => {
                for part in 0..2 {
                    if double {
                        let source = self.source64(s, part);
                        let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                        self.asm.op2(copy, vector(0), source);
                    } else {
                        let widen = Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae;
                        self.wide_source(widen, vector(0), s, part);
                    }
                    self.long_from_double(signed, rounding);
                    self.copy64(d, part, vector(1));
                }
            }
            Conversion::ShortFromSingle {
                least,
                most,
                rounding,
            } => {
                self.round_single(true, rounding, s);
                let r = vector(1);
                let bound =
                    |e: &mut Self, x: i32| Source::Broadcast(e.asm.constant(u64::from(x as u32)));
                let (least, most) = (bound(self, least), bound(self, most));
                let max = Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(max, r, r, least);
                let min = Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(min, r, r, most);
                self.extend_result(r);
                self.write32(d, r);
            }
            Conversion::SingleToIntegral {
                flush,
                saturate,
                rounding,
            } => {
                let r = vector(0);
                let source = self.source32(s);
                self.asm.op2(COPY, r, source);
                if flush {
                    self.flush(r);
                }
                let round = Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae;
                self.asm.op2_imm(round, r, r, rounding as i32, Mask::None);
                match saturate {
                    true => self.saturate(r),
                    false => self.canonicalize_register(r, Mask::None),
                }
                self.write32(d, r);
            }
            Conversion::DoubleToIntegral(rounding) => self.double_to_integral(rounding, d, s),
            Conversion::SingleFromDouble {
                flush,
                saturate,
                rounding,
            } => {
                for part in 0..2u32 {
                    let source = self.source64(s, part as usize);
                    let source = self.in_register(source, part);
                    let round = Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er;
                    self.asm.rounding = control(rounding);
                    self.asm.op2(round, lower(vector(part)), source);
                    self.asm.rounding = RoundingControl::None;
                }
                let r = vector(0);
                self.join_halves(r, vector(1));
                if flush {
                    self.flush(r);
                }
                if saturate {
                    self.saturate(r);
                }
                self.write32(d, r);
            }
            Conversion::DoubleFromFlushedSingle => {
                let source = self.source32(s);
                let single = vector(2);
                self.canonicalize(s);
                self.asm.op2(COPY, single, source);
                self.flush(single);
                for part in 0..2 {
                    let widen = Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae;
                    self.widen_register(widen, vector(0), single, part);
                    self.copy64(d, part, vector(0));
                }
            }
        }
    }

    fn float_from_long(&mut self, double: bool, signed: bool, rounding: Direction, d: u32, s: u32) {
        let code = match (double, signed) {
            (true, true) => Code::EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er,
            (true, false) => Code::EVEX_Vcvtuqq2pd_zmm_k1z_zmmm512b64_er,
            (false, true) => Code::EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er,
            (false, false) => Code::EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er,
        };
        for part in 0..2u32 {
            let source = self.source64(s, part as usize);
            let source = self.in_register(source, part);
            let r = vector(part);
            let to = if double { r } else { lower(r) };
            self.asm.rounding = control(rounding);
            self.asm.op2(code, to, source);
            self.asm.rounding = RoundingControl::None;
            if double {
                self.copy64(d, part as usize, r);
            }
        }
        if !double {
            self.join_halves(vector(0), vector(1));
            self.write32(d, vector(0));
        }
    }

    fn float_from_word(
        &mut self,
        double: bool,
        bits: u8,
        signed: bool,
        rounding: Direction,
        d: u32,
        s: u32,
    ) {
        let word = vector(0);
        let source = self.bits32(s);
        self.asm.op2(COPY, word, source);
        self.extend_bits(
            32 - i32::from(bits),
            signed,
            [
                Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
                Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
                Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
            ],
            bits < 32,
        );
        if double {
            let code = match signed {
                true => Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er,
                false => Code::EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er,
            };
            for part in 0..2 {
                self.widen_register(code, vector(1), word, part);
                self.copy64(d, part, vector(1));
            }
        } else {
            let code = match signed {
                true => Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er,
                false => Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er,
            };
            self.asm.rounding = control(rounding);
            self.asm.op2(code, word, word);
            self.asm.rounding = RoundingControl::None;
            self.write32(d, word);
        }
    }

    /// Loads a double-precision constant into the lanes of a mask.
    fn load_double(&mut self, to: Register, x: f64, mask: Mask) {
        let from = Source::Memory(self.asm.constant(x.to_bits()));
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
        self.asm.op2_masked(broadcast, to, from, mask);
    }

    /// Rounds the double-precision numbers of a register to integral ones.
    fn round_double(&mut self, r: Register, rounding: Direction) {
        let round = Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae;
        self.asm.op2_imm(round, r, r, rounding as i32, Mask::None);
    }

    /// Prepares a conversion of `r` to an unsigned integer: negative numbers and NaNs become zero, and the scratch mask those that
    /// were NaNs. The instruction clamps greater numbers. Uses the third scratch register.
    fn clamp_unsigned(&mut self, r: Register) {
        let zero = vector(2);
        self.zero(zero);
        self.asm
            .op3_imm(COMPARE, MASK, r, r, unordered(Cmp::Nan), Mask::None);
        // The instruction returns the second operand if one is a NaN.
        let max = Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae;
        self.asm.op3(max, r, r, zero);
    }

    fn word_from_double(&mut self, signed: bool, rounding: Direction, d: u32, s: u32) {
        const END: f64 = 2_147_483_648.0;
        for part in 0..2u32 {
            let r = vector(part);
            let source = self.source64(s, part as usize);
            let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
            self.asm.op2(copy, r, source);
            self.round_double(r, rounding);
            let code = if signed {
                let most = vector(2);
                self.load_double(most, END - 1.0, Mask::None);
                let min = Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae;
                self.asm.op3(min, r, most, r);
                // The instruction returns the least integer for a NaN and for lesser numbers.
                Code::EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae
            } else {
                self.clamp_unsigned(r);
                Code::EVEX_Vcvttpd2udq_ymm_k1z_zmmm512b64_sae
            };
            self.asm.op2(code, lower(r), r);
            if !signed {
                let top = Source::Memory(self.asm.constant(1 << 31));
                let broadcast = Code::EVEX_Vpbroadcastd_ymm_k1z_xmmm32;
                self.asm
                    .op2_masked(broadcast, lower(r), top, Mask::Merge(MASK));
            }
        }
        self.join_halves(vector(0), vector(1));
        self.write32(d, vector(0));
    }

    /// Converts the first scratch register to 64-bit integers in the second.
    fn long_from_double(&mut self, signed: bool, rounding: Direction) {
        const END: f64 = 9_223_372_036_854_775_808.0;
        let (x, r) = (vector(0), vector(1));
        self.round_double(x, rounding);
        if signed {
            // The instruction returns the least integer for everything that does not fit.
            let convert = Code::EVEX_Vcvttpd2qq_zmm_k1z_zmmm512b64_sae;
            self.asm.op2(convert, r, x);
            let end = Source::Broadcast(self.asm.constant(END.to_bits()));
            self.asm
                .op3_imm(COMPARE, MASK, x, end, unordered(Cmp::Ge), Mask::None);
            let most = Source::Memory(self.asm.constant(i64::MAX as u64));
            let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
            self.asm.op2_masked(broadcast, r, most, Mask::Merge(MASK));
        } else {
            self.clamp_unsigned(x);
            let convert = Code::EVEX_Vcvttpd2uqq_zmm_k1z_zmmm512b64_sae;
            self.asm.op2(convert, r, x);
            let top = Source::Memory(self.asm.constant(1 << 63));
            let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
            self.asm.op2_masked(broadcast, r, top, Mask::Merge(MASK));
        }
    }

    /// The engine rounds if there is a NaN, which stays as it is.
    fn double_to_integral(&mut self, rounding: Direction, d: u32, s: u32) {
        let (slow, done) = (self.asm.label(), self.asm.label());
        let results = [vector(0), vector(1)];
        for (part, r) in results.into_iter().enumerate() {
            let source = self.source64(s, part);
            let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
            self.asm.op2(copy, r, source);
            self.round_double(r, rounding);
        }
        let nan = unordered(Cmp::Nan);
        self.asm
            .op3_imm(COMPARE, MASK, results[0], results[1], nan, Mask::None);
        self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
        self.asm.jump(Code::Jne_rel32_64, slow);
        for (part, &r) in results.iter().enumerate() {
            self.copy64(d, part, r);
        }
        self.asm.bind(done);
        self.engine_instead(slow, done);
    }

    /// Minimum or maximum in double precision: a number wins against a NaN, +0 is greater than -0, and of two NaNs the result
    /// is the second, made quiet.
    pub fn extreme64(&mut self, greater: bool, d: u32, s: [u32; 4]) {
        let (code, tie) = match greater {
            true => (
                Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae,
                Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64,
            ),
            false => (
                Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae,
                Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64,
            ),
        };
        const QUIET: u64 = 1 << 51;
        let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
        let or = Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
        let quiet = Source::Broadcast(self.asm.constant(QUIET));
        let (equal, nan) = (unordered(Cmp::Eq), unordered(Cmp::Nan));
        let merge = Mask::Merge(MASK);
        for part in 0..2 {
            let (a, b) = (self.source64(s[0], part), self.source64(s[1], part));
            let (a, b) = (self.in_register(a, 0), self.in_register(b, 1));
            let r = vector(2);
            if self.asm.isa == Isa::Avx2 {
                self.asm.avx2_extreme(Elements::Bits64, greater, r, a, b);
                self.copy64(d, part, r);
                continue;
            }
            // The instruction returns the second operand if one is a NaN, or if both are equal.
            self.asm.op3(code, r, a, b);
            self.asm.op3_imm(COMPARE, MASK, a, b, equal, Mask::None);
            self.asm.op3_masked(tie, r, a, b, merge);
            self.asm.op3_imm(COMPARE, MASK, b, b, nan, Mask::None);
            self.asm.op2_masked(copy, r, a, merge);
            self.asm.op3_imm(COMPARE, MASK, a, a, nan, Mask::None);
            self.asm.op2_masked(copy, r, b, merge);
            self.asm.op3_imm(COMPARE, MASK, r, r, nan, Mask::None);
            self.asm.op3_masked(or, r, r, quiet, merge);
            self.copy64(d, part, r);
        }
    }

    /// The magnitude of the second source with the sign of the first.
    pub fn copy_sign(&mut self, slot: Slot, d: u32, s: [u32; 4]) {
        let r = vector(0);
        if slot == Slot::R64 {
            for part in 0..2 {
                let (a, b) = (self.source64(s[0], part), self.source64(s[1], part));
                let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                self.asm.op2(copy, r, a);
                let b = self.in_register(b, 1);
                let select = Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8;
                let bits = constant(constants::MAGNITUDE64);
                self.asm
                    .op3_imm(select, r, b, bits, SELECT_SECOND, Mask::None);
                self.copy64(d, part, r);
            }
        } else {
            let (a, b) = (self.bits32(s[0]), self.bits32(s[1]));
            self.asm.op2(COPY, r, a);
            let b = self.in_register(b, 1);
            let select = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
            let bits = constant(constants::MAGNITUDE32);
            self.asm
                .op3_imm(select, r, b, bits, SELECT_SECOND, Mask::None);
            self.write32(d, r);
        }
    }
}

/// Table of a bitwise function: the second operand where the third is 1, otherwise the first.
pub const SELECT_SECOND: i32 = 0xd8;

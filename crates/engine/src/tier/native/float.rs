//! Translation of floating-point arithmetic, except approximations.

use cupyrite_ptx::ir::Cmp;
use iced_x86::{Code, Register, RoundingControl};

use super::assembler::{Mask, Source};
use super::avx2::Elements;
use super::convert::control;
use super::emit::{Emitter, MASK, constant};
use super::homes::vector;
use super::isa::Isa;
use super::lanes::{lower, unordered};
use crate::run::native_context::constant as constants;
use crate::semantics::lane::{Direction, FloatOp};

impl Emitter<'_> {
    /// Single-precision arithmetic.
    pub fn single(
        &mut self,
        op: FloatOp,
        [flush, saturate]: [bool; 2],
        rounding: Direction,
        d: u32,
        s: [u32; 4],
    ) {
        use FloatOp::*;
        let count = match op {
            Add | Subtract | Multiply | Divide | Min | Max => 2,
            MultiplyAdd => 3,
            _ => 1,
        };
        let control = control(rounding);
        let directed = control != RoundingControl::None;
        let mut sources = [Source::Reg(vector(0)); 3];
        for n in 0..count {
            sources[n] = self.source32(s[n]);
            if flush || directed {
                let to = vector(n as u32);
                self.asm
                    .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, to, sources[n]);
                if flush {
                    self.flush(to);
                }
                sources[n] = Source::Reg(to);
            }
        }
        let to = self.destination32(d);
        // Results that need more than one instruction are computed in a scratch register.
        let several = matches!(op, Min | Max | ReciprocalSquareRoot | Identity);
        let direct = !flush && !saturate && !directed && !several;
        let register = if direct { to.register } else { vector(0) };
        let mask = if direct { to.mask } else { Mask::None };
        match op {
            Identity => {
                let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                self.asm.op2(copy, register, sources[0]);
            }
            Add | Subtract | Multiply | Divide => {
                let code = match op {
                    Add => Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er,
                    Subtract => Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er,
                    Multiply => Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
                    _ => Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er,
                };
                let a = self.in_register(sources[0], 0);
                self.asm.rounding = control;
                self.asm.op3_masked(code, register, a, sources[1], mask);
            }
            MultiplyAdd => {
                self.asm.rounding = control;
                self.multiply_add32(register, sources, mask);
            }
            SquareRoot => {
                let code = Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er;
                self.asm.rounding = control;
                self.asm.op2_masked(code, register, sources[0], mask);
            }
            Reciprocal => {
                let one = vector(1);
                if let Source::Broadcast(m) = constant(constants::ONE32) {
                    let code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
                    self.asm.op2(code, one, Source::Memory(m));
                }
                let code = Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er;
                self.asm.rounding = control;
                self.asm.op3_masked(code, register, one, sources[0], mask);
            }
            ReciprocalSquareRoot => {
                self.asm
                    .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, vector(0), sources[0]);
                self.by_halves(|e, v| {
                    let root = Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er;
                    e.asm.op2(root, v, v);
                    if let Source::Broadcast(m) = constant(constants::ONE64) {
                        let code = Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
                        e.asm.op2(code, vector(2), Source::Memory(m));
                    }
                    let divide = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
                    e.asm.op3(divide, v, vector(2), v);
                });
            }
            Negate => {
                let a = self.in_register(sources[0], 0);
                let code = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
                let sign = constant(constants::SIGN32);
                self.asm.op3_masked(code, register, a, sign, mask);
            }
            Absolute => {
                let a = self.in_register(sources[0], 0);
                let code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
                let bits = constant(constants::MAGNITUDE32);
                self.asm.op3_masked(code, register, a, bits, mask);
            }
            Min | Max => self.extreme32(op == Max, sources),
        }
        self.asm.rounding = RoundingControl::None;
        if flush {
            self.flush(vector(0));
        }
        if saturate {
            self.saturate(vector(0));
        }
        if !direct {
            let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
            self.asm.op2_masked(copy, to.register, vector(0), to.mask);
        }
        let lazy = self.keeps_raw_nans(d) && !saturate;
        if !lazy && !saturate {
            self.canonicalize_register(to.register, to.mask);
        }
        self.finish(to);
        self.set_raw(d, lazy);
    }

    /// Clamps the elements of a register to 0 ..= 1; a NaN becomes +0. Uses the second scratch register.
    pub fn saturate(&mut self, r: Register) {
        // The instructions return the second operand if one is a NaN, or if both are zero.
        self.zero(vector(1));
        let max = Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae;
        self.asm.op3(max, r, r, vector(1));
        let min = Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae;
        self.asm.op3(min, r, r, constant(constants::ONE32));
    }

    /// Computes the first scratch register in double precision: widens each half into the register that `f` transforms, and
    /// rounds the results. `f` may use the scratch registers from the third on.
    pub fn by_halves(&mut self, f: impl Fn(&mut Self, Register)) {
        let (low, high) = (vector(0), vector(1));
        let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
        self.asm.op2_imm(extract, lower(high), low, 1, Mask::None);
        let widen = Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae;
        let round = Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er;
        for v in [low, high] {
            self.asm.op2(widen, v, lower(v));
            f(self, v);
            self.asm.op2(round, lower(v), v);
        }
        self.join_halves(low, high);
    }

    /// Replaces subnormal numbers of a register by zeros of the same sign. Uses the scratch mask.
    pub fn flush(&mut self, r: Register) {
        let exponent = constant(constants::EXPONENT32);
        let test = Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32;
        self.asm.op3(test, MASK, r, exponent);
        let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
        let sign = constant(constants::SIGN32);
        self.asm.op3_masked(and, r, r, sign, Mask::Merge(MASK));
    }

    /// `to = a * b + c`. `to` may be one of them.
    pub fn multiply_add32(&mut self, to: Register, [a, b, c]: [Source; 3], mask: Mask) {
        let plus = Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er;
        let times = Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er;
        let is = |s: Source, r: Register| matches!(s, Source::Reg(q) if q == r);
        if is(c, to) {
            let a = self.in_register(a, 0);
            self.asm.op3_masked(plus, to, a, b, mask);
        } else if is(a, to) {
            let b = self.in_register(b, 1);
            self.asm.op3_masked(times, to, b, c, mask);
        } else if is(b, to) {
            let a = self.in_register(a, 0);
            self.asm.op3_masked(times, to, a, c, mask);
        } else if mask == Mask::None && to != vector(0) {
            self.asm.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, to, c);
            let a = self.in_register(a, 0);
            self.asm.op3(plus, to, a, b);
        } else {
            let sum = vector(2);
            self.asm.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, sum, c);
            let a = self.in_register(a, 0);
            self.asm.op3(plus, sum, a, b);
            self.asm
                .op2_masked(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, to, sum, mask);
        }
    }

    /// Minimum or maximum in the first scratch register: a number wins against a NaN, and +0 is greater than -0.
    pub fn extreme32(&mut self, greater: bool, sources: [Source; 3]) {
        let a = self.in_register(sources[0], 0);
        let b = self.in_register(sources[1], 1);
        if self.asm.isa == Isa::Avx2 {
            let r = vector(2);
            self.asm.avx2_extreme(Elements::Bits32, greater, r, a, b);
            self.asm
                .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, vector(0), r);
            return;
        }
        let (code, tie) = match greater {
            true => (
                Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae,
                Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32,
            ),
            false => (
                Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae,
                Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32,
            ),
        };
        let compare = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
        let r = vector(2);
        // The instruction returns the second operand if one is a NaN, or if both are equal.
        self.asm.op3(code, r, a, b);
        let equal = unordered(Cmp::Eq);
        self.asm.op3_imm(compare, MASK, a, b, equal, Mask::None);
        self.asm.op3_masked(tie, r, a, b, Mask::Merge(MASK));
        let nan = unordered(Cmp::Nan);
        self.asm.op3_imm(compare, MASK, b, b, nan, Mask::None);
        let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
        self.asm.op2_masked(copy, r, a, Mask::Merge(MASK));
        self.asm.op2(copy, vector(0), r);
    }

    /// Double-precision arithmetic. The engine computes results that are NaNs, because their payload depends on the order of
    /// the operands.
    pub fn double(&mut self, op: FloatOp, d: u32, s: [u32; 4]) {
        use FloatOp::*;
        let (slow, done) = (self.asm.label(), self.asm.label());
        let results = [vector(0), vector(1)];
        for (part, r) in results.into_iter().enumerate() {
            let a = self.source64(s[0], part);
            match op {
                Add | Subtract | Multiply | Divide => {
                    let code = match op {
                        Add => Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er,
                        Subtract => Code::EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er,
                        Multiply => Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er,
                        _ => Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er,
                    };
                    let a = self.in_register(a, part as u32);
                    let b = self.source64(s[1], part);
                    self.asm.op3(code, r, a, b);
                }
                MultiplyAdd => {
                    let (b, c) = (self.source64(s[1], part), self.source64(s[2], part));
                    self.asm.op2(Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512, r, c);
                    let a = self.in_register(a, 2);
                    let code = Code::EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er;
                    self.asm.op3(code, r, a, b);
                }
                SquareRoot => self.asm.op2(Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, r, a),
                Negate | Absolute => {
                    let a = self.in_register(a, 2);
                    let (code, bits) = match op {
                        Negate => (Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64, constants::SIGN64),
                        _ => (
                            Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64,
                            constants::MAGNITUDE64,
                        ),
                    };
                    self.asm.op3(code, r, a, constant(bits));
                }
                Reciprocal | ReciprocalSquareRoot | Min | Max | Identity => {
                    if let Source::Broadcast(m) = constant(constants::ONE64) {
                        let code = Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
                        self.asm.op2(code, vector(2), Source::Memory(m));
                    }
                    let code = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
                    self.asm.op3(code, r, vector(2), a);
                }
            }
        }
        // A NaN in a lane that does not execute the instruction only costs time.
        let compare = Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae;
        let nan = unordered(Cmp::Nan);
        self.asm
            .op3_imm(compare, MASK, results[0], results[1], nan, Mask::None);
        self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
        self.asm.jump(Code::Jne_rel32_64, slow);
        for (part, &r) in results.iter().enumerate() {
            self.copy64(d, part, r);
        }
        self.asm.bind(done);
        self.engine_instead(slow, done);
    }
}

//! Translation of lane functions: moves, comparisons, conversions.

use cupyrite_ptx::ir::Cmp;
use iced_x86::{Code, Register};

use super::assembler::{Mask, Source};
use super::avx2;
use super::compare::SPARE;
use super::emit::{Emitter, Lanes, MASK, constant};
use super::homes::{Home, vector};
use super::isa::Isa;
use crate::run::native_context::constant as constants;
use crate::semantics::lane::{CompareType, Direction, FloatOp, IntegerOp, Slot, VectorOp};

/// Whether the compiler translates a lane function.
pub fn is_supported(op: VectorOp, isa: Isa) -> bool {
    let multiplies_predicates = matches!(
        op,
        VectorOp::Integer(IntegerOp::Multiply | IntegerOp::MultiplyAdd, Slot::Pred)
    );
    !multiplies_predicates && (isa == Isa::Avx512 || avx2::has_counterparts(op))
}

impl Emitter<'_> {
    /// Translates the lane function of the current instruction.
    pub fn lane_function(&mut self, op: VectorOp) {
        let args = &self.inst().args;
        let (d, s) = (args.dst[0], args.src);
        match op {
            VectorOp::Move(Slot::Pred) => {
                let p = self.predicate(s[0]);
                self.asm.op2(Code::VEX_Kmovw_kr_km16, MASK, p);
                self.set_predicate(d, MASK);
            }
            VectorOp::Move(Slot::R64) => {
                self.unary64(Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512, d, s[0])
            }
            VectorOp::Move(_) => {
                let raw = self.raw_nans.contains(&s[0]) && self.keeps_raw_nans(d);
                if !raw {
                    self.canonicalize(s[0]);
                }
                self.unary32(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, d, s[0]);
                self.set_raw(d, raw);
            }
            VectorOp::Integer(op, Slot::Pred) => self.predicate_logic(op, d, s),
            VectorOp::Integer(op, Slot::R64) => self.integer64(op, d, s),
            VectorOp::Integer(op, _) => self.integer32(op, d, s),
            VectorOp::MultiplyWide { signed, add } => self.multiply_wide(signed, add, d, s),
            VectorOp::MultiplyHigh { signed } => self.multiply_high(signed, d, s),
            VectorOp::Divide { signed, remainder } => self.divide(signed, remainder, d, s),
            VectorOp::Lookup(table) => self.lookup(table, d, s),
            VectorOp::MultiplyWide16 { signed } => self.multiply_wide16(signed, d, s),
            VectorOp::Single {
                op,
                flush,
                saturate,
                rounding,
            } => self.single(op, [flush, saturate], rounding, d, s),
            VectorOp::Approximate { function, flush } => self.approximate(function, flush, d, s[0]),
            VectorOp::Double(op @ (FloatOp::Min | FloatOp::Max)) => {
                self.extreme64(op == FloatOp::Max, d, s);
            }
            VectorOp::Double(op) => self.double(op, d, s),
            VectorOp::Compare(ty, cmp) => self.compare(ty, cmp, d, s),
            VectorOp::Select(slot) => self.select(slot, d, s),
            VectorOp::Extend {
                bits,
                signed,
                from,
                to,
            } => self.extend(bits, signed, from, to, d, s[0]),
            VectorOp::SingleFromInteger { signed } => {
                self.canonicalize(s[0]);
                let code = match signed {
                    true => Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er,
                    false => Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er,
                };
                self.unary32(code, d, s[0]);
                self.set_raw(d, false);
            }
            VectorOp::IntegerFromSingle { signed, rounding } => {
                self.integer_from_single(signed, rounding, d, s[0]);
            }
            VectorOp::DoubleFromSingle => {
                self.widen(Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae, d, s[0]);
            }
            VectorOp::DoubleFromInteger { signed } => {
                let code = match signed {
                    true => Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er,
                    false => Code::EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er,
                };
                self.widen(code, d, s[0]);
            }
            VectorOp::SingleFromDouble => {
                self.narrow(Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er, d, s[0]);
            }
            VectorOp::ApproximateQuotient { flush } => self.approximate_quotient(flush, d, s),
            VectorOp::ApproximateReciprocal { root } => {
                self.approximate_reciprocal(root, d, s[0]);
            }
            VectorOp::CompareAndCombine(c) => self.compare_and_combine(c, args.dst, s),
            VectorOp::CompareToValue(c, value) => self.compare_to_value(c, value, d, s),
            VectorOp::MagnitudeBetween(slot, low, high) => {
                self.magnitude_between(slot, [low, high], d, s[0]);
            }
            VectorOp::Integer16(op) => self.integer16(op, d, s),
            VectorOp::MultiplyAddWide16 { signed } => self.multiply_add_wide16(signed, d, s),
            VectorOp::Extend16 { bits, signed, from } => {
                self.extend16(bits, signed, from, d, s[0]);
            }
            VectorOp::Pack(layout) => self.pack(layout, d, s),
            VectorOp::Unpack(layout) => self.unpack(layout, args.dst, s[0]),
            VectorOp::Convert(c) => self.convert(c, d, s[0]),
            VectorOp::Bits(op, slot) => self.bits(op, slot, d, s),
            VectorOp::PermuteBy => self.permute_by(d, s),
            VectorOp::Permute(selector) => self.permute(selector, d, s),
            VectorOp::Carry {
                op,
                reads,
                writes,
                slot,
            } => self.carry(op, [reads, writes], slot, args.dst, s),
            VectorOp::Half { op, format, pair } => self.half_arithmetic(op, format, pair, d, s),
            VectorOp::SingleFromHalf(format) => {
                self.widen_half(vector(0), s[0], format, false);
                self.canonicalize_register(vector(0), Mask::None);
                self.write32(d, vector(0));
            }
            VectorOp::HalfFromSingle {
                format,
                rounding,
                pair,
            } => self.half_from_single(format, rounding, pair, d, s),
        }
    }

    /// Whether NaNs of a destination may stay as they are until the end of the block.
    pub fn keeps_raw_nans(&self, d: u32) -> bool {
        self.lanes != Lanes::Guarded && matches!(self.home(d), Home::One(_))
    }

    /// Records whether the NaNs of a slot may not be canonical.
    pub fn set_raw(&mut self, d: u32, raw: bool) {
        if raw {
            self.raw_nans.insert(d);
        } else if self.lanes != Lanes::Guarded {
            self.raw_nans.remove(&d);
        }
    }

    /// A 32-bit source whose NaNs are canonical, because other than floating-point arithmetic reads it.
    pub fn bits32(&mut self, location: u32) -> Source {
        self.canonicalize(location);
        self.source32(location)
    }

    /// An instruction with one source of 32 bits.
    pub fn unary32(&mut self, code: Code, d: u32, s: u32) {
        let s = self.source32(s);
        let to = self.destination32(d);
        self.asm.op2_masked(code, to.register, s, to.mask);
        self.finish(to);
    }

    /// An instruction with one source of 64 bits.
    pub fn unary64(&mut self, code: Code, d: u32, s: u32) {
        for part in 0..2 {
            let s = self.source64(s, part);
            let to = self.destination64(d, part);
            self.asm.op2_masked(code, to.register, s, to.mask);
            self.finish(to);
        }
    }

    /// An instruction with two sources of 32 bits.
    pub fn binary32(&mut self, code: Code, d: u32, a: u32, b: u32) {
        let (a, b) = (self.bits32(a), self.bits32(b));
        let a = self.in_register(a, 0);
        let to = self.destination32(d);
        self.asm.op3_masked(code, to.register, a, b, to.mask);
        self.finish(to);
        self.set_raw(d, false);
    }

    /// An instruction with two sources of 64 bits.
    pub fn binary64(&mut self, code: Code, d: u32, a: u32, b: u32) {
        for part in 0..2 {
            let (a, b) = (self.source64(a, part), self.source64(b, part));
            let a = self.in_register(a, 0);
            let to = self.destination64(d, part);
            self.asm.op3_masked(code, to.register, a, b, to.mask);
            self.finish(to);
        }
    }

    /// Clears a register.
    pub fn zero(&mut self, r: Register) {
        self.asm
            .op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, r, r, r);
    }

    /// Converts half `part` of the 32-bit elements of a slot to 64-bit elements.
    pub fn wide_source(&mut self, code: Code, to: Register, s: u32, part: usize) {
        match self.bits32(s) {
            Source::Reg(r) if part == 0 => self.asm.op2(code, to, lower(r)),
            Source::Reg(r) => {
                let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
                self.asm.op2_imm(extract, lower(to), r, 1, Mask::None);
                self.asm.op2(code, to, lower(to));
            }
            Source::Memory(mut m) | Source::Broadcast(mut m) => {
                m.displacement += self.asm.isa.bytes() / 2 * part as i64;
                self.asm.op2(code, to, Source::Memory(m));
            }
        }
    }

    /// A conversion of 32-bit to 64-bit elements.
    pub fn widen(&mut self, code: Code, d: u32, s: u32) {
        for part in 0..2 {
            self.wide_source(code, vector(0), s, part);
            self.copy64(d, part, vector(0));
        }
    }

    /// Moves the lower half of `high` to the upper half of `low`.
    pub fn join_halves(&mut self, low: Register, high: Register) {
        let insert = Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8;
        self.asm
            .op3_imm(insert, low, low, lower(high), 1, Mask::None);
    }

    /// Writes a register to half `part` of a slot, in the lanes of the instruction.
    pub fn copy64(&mut self, d: u32, part: usize, from: Register) {
        let to = self.destination64(d, part);
        let copy = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
        self.asm.op2_masked(copy, to.register, from, to.mask);
        self.finish(to);
    }

    /// Writes a register to a slot, in the lanes of the instruction.
    pub fn copy32(&mut self, d: u32, from: Register) {
        let to = self.destination32(d);
        let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
        self.asm.op2_masked(copy, to.register, from, to.mask);
        self.finish(to);
    }

    /// A conversion of 64-bit to 32-bit elements. `code` writes half a register.
    pub fn narrow(&mut self, code: Code, d: u32, s: u32) {
        for part in 0..2u32 {
            let from = self.source64(s, part as usize);
            match code {
                // Its destination can be memory, and its source can not.
                Code::EVEX_Vpmovqd_ymmm256_k1z_zmm => {
                    let from = self.in_register(from, part);
                    self.asm.op2(code, lower(vector(part)), from);
                }
                _ => self.asm.op2(code, lower(vector(part)), from),
            }
        }
        self.join_halves(vector(0), vector(1));
        self.copy32(d, vector(0));
        self.set_raw(d, false);
    }

    /// A conversion between integers.
    pub fn extend(&mut self, bits: u8, signed: bool, from: Slot, to: Slot, d: u32, s: u32) {
        match (from, to) {
            (Slot::R64, Slot::R64) => {
                self.unary64(Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512, d, s);
            }
            (Slot::R64, _) => self.narrow(Code::EVEX_Vpmovqd_ymmm256_k1z_zmm, d, s),
            (_, Slot::R64) => {
                for part in 0..2 {
                    let code = match signed {
                        true => Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256,
                        false => Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256,
                    };
                    self.wide_source(code, vector(0), s, part);
                    self.extend_bits(
                        64 - i32::from(bits),
                        signed,
                        [
                            Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8,
                            Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8,
                            Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8,
                        ],
                        bits < 32,
                    );
                    self.copy64(d, part, vector(0));
                }
            }
            _ => {
                let s = self.bits32(s);
                self.asm
                    .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, vector(0), s);
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
                self.copy32(d, vector(0));
                self.set_raw(d, false);
            }
        }
    }

    /// Extends the low bits of the first scratch register by two shifts: left, then right.
    pub fn extend_bits(&mut self, distance: i32, signed: bool, codes: [Code; 3], wanted: bool) {
        if wanted {
            let v = vector(0);
            let right = codes[if signed { 1 } else { 2 }];
            self.asm.op2_imm(codes[0], v, v, distance, Mask::None);
            self.asm.op2_imm(right, v, v, distance, Mask::None);
        }
    }

    /// Emits behind the blocks: executes the current instruction in the engine, and goes back to `done`.
    pub fn engine_instead(&mut self, slow: super::assembler::Label, done: super::assembler::Label) {
        self.rare(slow, move |e| {
            e.call_engine();
            e.asm.jump(Code::Jmp_rel32_64, done);
        });
    }

    /// `selp`.
    pub fn select(&mut self, slot: Slot, d: u32, s: [u32; 4]) {
        let p = self.predicate(s[2]);
        if slot == Slot::R64 {
            for part in 0..2 {
                let mask = if part == 0 {
                    p
                } else {
                    let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                    self.asm.op2_imm(shift, MASK, p, 8, Mask::None);
                    MASK
                };
                let (a, b) = (self.source64(s[0], part), self.source64(s[1], part));
                let b = self.in_register(b, 0);
                let blend = Code::EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64;
                self.asm
                    .op3_masked(blend, vector(1), b, a, Mask::Merge(mask));
                self.copy64(d, part, vector(1));
            }
            return;
        }
        let (a, b) = (self.bits32(s[0]), self.bits32(s[1]));
        let b = self.in_register(b, 0);
        let blend = Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32;
        match self.lane_mask() {
            None => {
                let to = self.destination32(d);
                self.asm
                    .op3_masked(blend, to.register, b, a, Mask::Merge(p));
                self.finish(to);
            }
            Some(_) => {
                self.asm.op3_masked(blend, vector(1), b, a, Mask::Merge(p));
                self.copy32(d, vector(1));
            }
        }
        self.set_raw(d, false);
    }

    /// Logic of predicates.
    pub fn predicate_logic(&mut self, op: IntegerOp, d: u32, s: [u32; 4]) {
        let a = self.predicate(s[0]);
        if op == IntegerOp::Not {
            self.asm.op2(Code::VEX_Knotw_kr_kr, MASK, a);
        } else {
            let b = self.predicate(s[1]);
            let code = match op {
                IntegerOp::And => Code::VEX_Kandw_kr_kr_kr,
                IntegerOp::Or => Code::VEX_Korw_kr_kr_kr,
                _ => Code::VEX_Kxorw_kr_kr_kr,
            };
            self.asm.op3(code, MASK, a, b);
        }
        self.set_predicate(d, MASK);
    }

    /// `setp`.
    pub fn compare(&mut self, ty: CompareType, cmp: Cmp, d: u32, s: [u32; 4]) {
        self.compare_sources(ty, cmp, s);
        self.set_predicate(d, MASK);
    }

    /// Compares two sources of 32 or 64 bits; the result is in the scratch mask.
    pub fn compare_sources(&mut self, ty: CompareType, cmp: Cmp, s: [u32; 4]) {
        use CompareType::*;
        let (code, imm) = match ty {
            Signed32 | Signed16 => (Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8, ordered(cmp)),
            Unsigned32 | Unsigned16 => (Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, ordered(cmp)),
            Signed64 => (Code::EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8, ordered(cmp)),
            Unsigned64 => (Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8, ordered(cmp)),
            Single | Half(_) => (
                Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
                unordered(cmp),
            ),
            Double => (
                Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae,
                unordered(cmp),
            ),
        };
        if matches!(ty, Signed64 | Unsigned64 | Double) {
            for (part, to) in [(1, SPARE), (0, MASK)] {
                let (a, b) = (self.source64(s[0], part), self.source64(s[1], part));
                let a = self.in_register(a, 0);
                self.asm.op3_imm(code, to, a, b, imm, Mask::None);
            }
            self.join_masks(0);
        } else {
            let (a, b) = match ty {
                Single => (self.source32(s[0]), self.source32(s[1])),
                _ => (self.bits32(s[0]), self.bits32(s[1])),
            };
            let a = self.in_register(a, 0);
            self.asm.op3_imm(code, MASK, a, b, imm, Mask::None);
        }
    }

    /// A conversion from single precision to an integer.
    pub fn integer_from_single(&mut self, signed: bool, rounding: Direction, d: u32, s: u32) {
        self.round_single(signed, rounding, s);
        self.copy32(d, vector(1));
        self.set_raw(d, false);
    }

    /// Converts single precision to 32-bit integers in the second scratch register.
    pub fn round_single(&mut self, signed: bool, rounding: Direction, s: u32) {
        let s = self.source32(s);
        if rounding == Direction::TowardsZero {
            self.asm
                .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, vector(0), s);
        } else {
            let round = Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae;
            self.asm
                .op2_imm(round, vector(0), s, rounding as i32, Mask::None);
        }
        let compare = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
        if signed {
            let convert = Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae;
            self.asm.op2(convert, vector(1), vector(0));
            // The instruction returns the least integer for everything that does not fit.
            let large = constant(constants::LARGE32);
            let at_least = unordered(Cmp::Ge);
            self.asm
                .op3_imm(compare, MASK, vector(0), large, at_least, Mask::None);
            self.broadcast_constant(vector(1), constants::MOST32, MASK);
            let nan = unordered(Cmp::Nan);
            self.asm
                .op3_imm(compare, MASK, vector(0), vector(0), nan, Mask::None);
            let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
            self.asm
                .op3_masked(xor, vector(1), vector(1), vector(1), Mask::Merge(MASK));
        } else {
            // The maximum of a NaN and zero is zero, its second operand. The conversion clamps large numbers.
            self.zero(vector(1));
            let max = Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae;
            self.asm.op3(max, vector(0), vector(0), vector(1));
            let convert = Code::EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae;
            self.asm.op2(convert, vector(1), vector(0));
        }
    }

    /// Writes a 32-bit constant to the lanes of `mask`.
    pub fn broadcast_constant(&mut self, to: Register, n: usize, mask: Register) {
        if let Source::Broadcast(m) = constant(n) {
            let code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
            self.asm
                .op2_masked(code, to, Source::Memory(m), Mask::Merge(mask));
        }
    }
}

/// The lower half of a vector register.
pub fn lower(r: Register) -> Register {
    Register::YMM0 + (r as u32 - Register::ZMM0 as u32)
}

/// The lowest quarter of a vector register.
pub fn lowest(r: Register) -> Register {
    Register::XMM0 + (r as u32 - Register::ZMM0 as u32)
}

/// Immediate of a comparison of integers.
pub fn ordered(cmp: Cmp) -> i32 {
    match cmp {
        Cmp::Eq => 0,
        Cmp::Lt => 1,
        Cmp::Le => 2,
        Cmp::Ne => 4,
        Cmp::Ge => 5,
        _ => 6,
    }
}

/// Immediate of a comparison of floating-point numbers, quiet for NaNs.
pub fn unordered(cmp: Cmp) -> i32 {
    match cmp {
        Cmp::Eq => 0x00,
        Cmp::Ne => 0x0c,
        Cmp::Lt | Cmp::Lo => 0x11,
        Cmp::Le | Cmp::Ls => 0x12,
        Cmp::Gt | Cmp::Hi => 0x1e,
        Cmp::Ge | Cmp::Hs => 0x1d,
        Cmp::Equ => 0x08,
        Cmp::Neu => 0x04,
        Cmp::Ltu => 0x19,
        Cmp::Leu => 0x1a,
        Cmp::Gtu => 0x16,
        Cmp::Geu => 0x15,
        Cmp::Num => 0x07,
        Cmp::Nan => 0x03,
    }
}

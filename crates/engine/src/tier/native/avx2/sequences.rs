//! Instructions of AVX-512 that become several of AVX2.

use iced_x86::{Code, Instruction, Register};

use super::super::assembler::{Assembler, Mask, Source};
use super::forms::Elements;
use super::masks::greater;
use super::{Operand, T0, T1, T2, half, narrowed, ones, vector};
use crate::run::native_context::constant;

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const AND_NOT: Code = Code::VEX_Vpandn_ymm_ymm_ymmm256;
const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;
const XOR: Code = Code::VEX_Vpxor_ymm_ymm_ymmm256;
const COMPARE32: Code = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
const COMPARE64: Code = Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8;
const BLEND32: Code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
const BLEND64: Code = Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm;

impl Assembler {
    /// Loads a 32-bit constant.
    fn load_constant32(&mut self, to: Register, bits: u32) {
        let from = self.constant(bits.into());
        let broadcast = Code::VEX_Vpbroadcastd_ymm_xmmm32;
        self.raw(Instruction::with2(broadcast, to, from));
    }

    fn shift(&mut self, code: Code, d: Register, a: Register, distance: i32) {
        self.raw(Instruction::with3(code, d, a, distance));
    }

    fn blend64(&mut self, d: Register, a: Register, b: Operand, condition: Register) {
        match b {
            Operand::Reg(b) => self.raw(Instruction::with4(BLEND64, d, a, b, condition)),
            Operand::Memory(b) => self.raw(Instruction::with4(BLEND64, d, a, b, condition)),
        }
    }

    /// Instructions with one source.
    pub fn unary_sequence(
        &mut self,
        code: Code,
        d: Register,
        a: Source,
        imm: Option<i32>,
        mask: Mask,
    ) {
        let elements = match code {
            Code::EVEX_Vpbroadcastd_zmm_k1z_r32
            | Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8
            | Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er
            | Code::EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae => Elements::Bits32,
            _ => Elements::Bits64,
        };
        match code {
            Code::EVEX_Vpbroadcastd_zmm_k1z_r32 | Code::EVEX_Vpbroadcastq_zmm_k1z_r64 => {
                let Source::Reg(a) = a else {
                    return self.no_counterpart(code);
                };
                let (to_vector, broadcast) = match elements {
                    Elements::Bits32 => {
                        (Code::VEX_Vmovd_xmm_rm32, Code::VEX_Vpbroadcastd_ymm_xmmm32)
                    }
                    Elements::Bits64 => {
                        (Code::VEX_Vmovq_xmm_rm64, Code::VEX_Vpbroadcastq_ymm_xmmm64)
                    }
                };
                self.raw2(to_vector, half(T0), a);
                let to = self.target(d, mask);
                self.raw2(broadcast, to, half(T0));
                if to != d {
                    self.blend(d, mask, elements);
                }
                return;
            }
            Code::EVEX_Vpmovqd_ymmm256_k1z_zmm => {
                let Source::Reg(a) = a else {
                    return self.no_counterpart(code);
                };
                self.load(T0, narrowed(a));
                self.pack64();
                self.raw2(Code::VEX_Vmovdqa_xmm_xmmm128, half(d), half(T0));
                return;
            }
            Code::EVEX_Vpmovdw_ymmm256_k1z_zmm => {
                let Source::Reg(a) = a else {
                    return self.no_counterpart(code);
                };
                self.pack_words(narrowed(a));
                self.raw2(Code::VEX_Vmovdqa_xmm_xmmm128, half(d), half(T0));
                return;
            }
            _ => {}
        }
        let a = self.operand(a, elements);
        match code {
            Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8
            | Code::EVEX_Vprolq_zmm_k1z_zmmm512b64_imm8 => {
                let a = self.in_temporary(a, T2);
                let (left, right, bits) = match elements {
                    Elements::Bits32 => (
                        Code::VEX_Vpslld_ymm_ymm_imm8,
                        Code::VEX_Vpsrld_ymm_ymm_imm8,
                        32,
                    ),
                    Elements::Bits64 => (
                        Code::VEX_Vpsllq_ymm_ymm_imm8,
                        Code::VEX_Vpsrlq_ymm_ymm_imm8,
                        64,
                    ),
                };
                let distance = imm.unwrap_or(0);
                self.shift(left, T0, a, distance);
                self.shift(right, T1, a, bits - distance);
                self.raw3(OR, T0, T0, T1);
            }
            Code::EVEX_Vpabsq_zmm_k1z_zmmm512b64 => {
                // The sign extended to all bits, whose exclusive or complements negative numbers.
                self.raw3(XOR, T0, T0, T0);
                self.raw3(greater(elements), T0, T0, a);
                self.raw3(XOR, T1, T0, a);
                self.raw3(Code::VEX_Vpsubq_ymm_ymm_ymmm256, T0, T1, T0);
            }
            Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8 => {
                let Some(distance @ 1..64) = imm else {
                    return self.no_counterpart(code);
                };
                let a = self.in_temporary(a, T2);
                self.raw3(XOR, T0, T0, T0);
                self.raw3(greater(elements), T0, T0, a);
                if distance == 63 {
                    return self.blend(d, mask, elements);
                }
                let (left, right) = (Code::VEX_Vpsllq_ymm_ymm_imm8, Code::VEX_Vpsrlq_ymm_ymm_imm8);
                self.shift(left, T0, T0, 64 - distance);
                self.shift(right, T1, a, distance);
                self.raw3(OR, T0, T0, T1);
            }
            Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er => self.single_from_unsigned(a),
            Code::EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er => {
                // 2^52 plus the integer has it in the low bits.
                let extend = Code::VEX_Vpmovzxdq_ymm_xmmm128;
                match a {
                    Operand::Reg(a) => self.raw2(extend, T0, a),
                    Operand::Memory(a) => self.raw(Instruction::with2(extend, T0, a)),
                }
                let offset = self.constant(4_503_599_627_370_496f64.to_bits());
                let broadcast = Code::VEX_Vpbroadcastq_ymm_xmmm64;
                self.raw(Instruction::with2(broadcast, T1, offset));
                self.raw3(OR, T0, T0, T1);
                self.raw3(Code::VEX_Vsubpd_ymm_ymm_ymmm256, T0, T0, T1);
            }
            Code::EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er => self.double_from_long(a, true),
            Code::EVEX_Vcvtuqq2pd_zmm_k1z_zmmm512b64_er => self.double_from_long(a, false),
            Code::EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae => self.unsigned_from_single(a),
            _ => return self.no_counterpart(code),
        }
        self.blend(d, mask, elements);
    }

    /// Unsigned integers to single precision: the upper halves times 2^16 plus the lower halves, which are exact, rounded once.
    fn single_from_unsigned(&mut self, a: Operand) {
        let a = self.in_temporary(a, T2);
        let convert = Code::VEX_Vcvtdq2ps_ymm_ymmm256;
        self.shift(Code::VEX_Vpslld_ymm_ymm_imm8, T1, a, 16);
        self.shift(Code::VEX_Vpsrld_ymm_ymm_imm8, T1, T1, 16);
        self.shift(Code::VEX_Vpsrld_ymm_ymm_imm8, T0, a, 16);
        self.raw2(convert, T0, T0);
        self.raw2(convert, T1, T1);
        self.load_constant32(T2, 65_536f32.to_bits());
        self.raw3(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, T0, T2, T1);
    }

    /// 64-bit integers to double precision: the upper words times 2^32 plus the lower words, which are exact, rounded once.
    fn double_from_long(&mut self, a: Operand, signed: bool) {
        /// Its low 32 bits count units.
        const UNITS: u64 = 0x4330_0000_0000_0000;
        /// Its low 32 bits count multiples of 2^32.
        const MULTIPLES: u64 = 0x4530_0000_0000_0000;
        /// Makes the upper word of a signed integer not negative.
        const BIAS: u64 = 1 << 31;
        let a = self.in_temporary(a, T2);
        let bits = if signed { MULTIPLES | BIAS } else { MULTIPLES };
        self.shift(Code::VEX_Vpsrlq_ymm_ymm_imm8, T0, a, 32);
        let multiples = self.constant(bits);
        self.raw3(XOR, T0, T0, multiples);
        let offset = f64::from_bits(bits) + f64::from_bits(UNITS);
        let offset = self.constant(offset.to_bits());
        self.raw3(Code::VEX_Vsubpd_ymm_ymm_ymmm256, T0, T0, offset);
        // The upper words of the units, the lower words of the integers.
        const UPPER: i32 = 0b1010_1010;
        let units = self.constant(UNITS);
        let blend = Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8;
        self.raw(Instruction::with4(blend, T1, a, units, UPPER));
        self.raw3(Code::VEX_Vaddpd_ymm_ymm_ymmm256, T0, T0, T1);
    }

    /// Single precision, not negative and no NaN, to unsigned integers: truncates; large numbers become ones.
    fn unsigned_from_single(&mut self, a: Operand) {
        const NOT_LESS: i32 = 0x15;
        let compare = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
        // From 2^31 on, the difference to 2^31 is converted, and the sign bit added.
        let a = self.in_temporary(a, T2);
        self.load_constant32(T1, 2_147_483_648f32.to_bits());
        self.raw(Instruction::with4(compare, T0, a, T1, NOT_LESS));
        self.raw3(AND, T1, T0, T1);
        self.raw3(Code::VEX_Vsubps_ymm_ymm_ymmm256, T1, a, T1);
        self.raw2(Code::VEX_Vcvttps2dq_ymm_ymmm256, T1, T1);
        self.shift(Code::VEX_Vpslld_ymm_ymm_imm8, T0, T0, 31);
        self.raw3(XOR, T0, T0, T1);
        self.load_constant32(T1, 4_294_967_296f32.to_bits());
        self.raw(Instruction::with4(compare, T1, a, T1, NOT_LESS));
        self.raw3(OR, T0, T0, T1);
    }

    /// Instructions with two sources.
    pub fn binary_sequence(
        &mut self,
        code: Code,
        d: Register,
        a: Register,
        b: Source,
        imm: Option<i32>,
        mask: Mask,
    ) {
        let elements = match code {
            Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32
            | Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8 => Elements::Bits32,
            _ => Elements::Bits64,
        };
        let b = self.operand(b, elements);
        match code {
            Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32
            | Code::EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64 => {
                let Mask::Merge(k) = mask else {
                    return self.no_counterpart(code);
                };
                self.load_mask(T1, k, elements);
                let blend = match elements {
                    Elements::Bits32 => Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm,
                    Elements::Bits64 => BLEND64,
                };
                match b {
                    Operand::Reg(b) => self.raw(Instruction::with4(blend, d, a, b, T1)),
                    Operand::Memory(b) => self.raw(Instruction::with4(blend, d, a, b, T1)),
                }
                return;
            }
            Code::EVEX_Vshufi64x2_ymm_k1z_ymm_ymmm256b64_imm8 => {
                // The lower or upper half of each source.
                let (halves, Operand::Reg(b)) = (imm, b) else {
                    return self.no_counterpart(code);
                };
                let order = if halves == Some(0) { 0x20 } else { 0x31 };
                let permute = Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8;
                self.raw(Instruction::with4(permute, T0, a, b, order));
            }
            Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64 => self.multiply64(a, b),
            Code::EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64 => {
                // Shifts the complements of negative numbers, and complements the results.
                self.raw3(XOR, T0, T0, T0);
                self.raw3(greater(elements), T0, T0, a);
                self.raw3(XOR, T1, T0, a);
                self.raw3(Code::VEX_Vpsrlvq_ymm_ymm_ymmm256, T1, T1, b);
                self.raw3(XOR, T0, T0, T1);
            }
            Code::EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64
            | Code::EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64 => {
                self.raw3(greater(elements), T0, a, b);
                self.extreme64(code == Code::EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64, a, b);
            }
            Code::EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64
            | Code::EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64 => {
                let b = self.in_temporary(b, T2);
                let flipped = self.flip_signs(a, Operand::Reg(b));
                self.raw3(greater(elements), T0, T1, flipped);
                // Back to the elements: those in temporary registers have been flipped.
                let signs = vector(constant::SIGN64);
                self.raw3(XOR, T2, T2, signs);
                let greatest = code == Code::EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64;
                self.extreme64(greatest, a, Operand::Reg(T2));
            }
            Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8
            | Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8 => {
                self.table_of_three(d, a, b, imm.unwrap_or(0) as u8);
            }
            _ => return self.no_counterpart(code),
        }
        self.blend(d, mask, elements);
    }

    /// The minimum or maximum; the first temporary register tells where `a` is greater.
    fn extreme64(&mut self, greatest: bool, a: Register, b: Operand) {
        if greatest {
            let b = self.in_temporary(b, T1);
            self.blend64(T0, b, Operand::Reg(a), T0);
        } else {
            self.blend64(T0, a, b, T0);
        }
    }

    /// The low 64 bits of products: `a.low * b.low + (a.high * b.low + a.low * b.high) * 2^32`.
    fn multiply64(&mut self, a: Register, b: Operand) {
        const MULTIPLY: Code = Code::VEX_Vpmuludq_ymm_ymm_ymmm256;
        let b = self.in_temporary(b, T2);
        let right = Code::VEX_Vpsrlq_ymm_ymm_imm8;
        self.shift(right, T0, a, 32);
        self.raw3(MULTIPLY, T0, T0, b);
        self.shift(right, T1, b, 32);
        self.raw3(MULTIPLY, T1, T1, a);
        self.raw3(Code::VEX_Vpaddq_ymm_ymm_ymmm256, T0, T0, T1);
        self.shift(Code::VEX_Vpsllq_ymm_ymm_imm8, T0, T0, 32);
        self.raw3(MULTIPLY, T1, a, b);
        self.raw3(Code::VEX_Vpaddq_ymm_ymm_ymmm256, T0, T0, T1);
    }

    /// The function of the bits of `a`, `b` and `c` whose value is bit `4a + 2b + c` of the table.
    fn table_of_three(&mut self, a: Register, b: Register, c: Operand, table: u8) {
        let (clear, set) = (table & 15, table >> 4);
        let c = self.in_temporary(c, T2);
        if clear == set {
            self.table_of_two(T0, b, c, set);
            return;
        }
        if set == !clear & 15 {
            self.table_of_two(T0, b, c, clear);
            self.raw3(XOR, T0, T0, a);
            return;
        }
        match (clear, set) {
            (0, 15) => self.load(T0, a),
            (15, 0) => self.raw3(XOR, T0, a, ones()),
            (0, _) => {
                self.table_of_two(T0, b, c, set);
                self.raw3(AND, T0, T0, a);
            }
            (_, 0) => {
                self.table_of_two(T0, b, c, clear);
                self.raw3(AND_NOT, T0, a, T0);
            }
            (_, 15) => {
                self.table_of_two(T0, b, c, clear);
                self.raw3(OR, T0, T0, a);
            }
            _ => {
                self.table_of_two(T0, b, c, set);
                self.raw3(AND, T0, T0, a);
                self.table_of_two(T1, b, c, clear);
                self.raw3(AND_NOT, T1, a, T1);
                self.raw3(OR, T0, T0, T1);
            }
        }
    }

    /// The function of the bits of `b` and `c` whose value is bit `2b + c` of the table.
    fn table_of_two(&mut self, d: Register, b: Register, c: Register, table: u8) {
        match table {
            0b0000 => self.raw3(XOR, d, d, d),
            0b1000 => self.raw3(AND, d, b, c),
            0b1110 => self.raw3(OR, d, b, c),
            0b0110 => self.raw3(XOR, d, b, c),
            0b0100 => self.raw3(AND_NOT, d, c, b),
            0b0010 => self.raw3(AND_NOT, d, b, c),
            0b1100 => self.load(d, b),
            0b1010 => self.load(d, c),
            0b1111 => self.load(d, ones()),
            _ => {
                self.table_of_two(d, b, c, !table & 15);
                self.raw3(XOR, d, d, ones());
            }
        }
    }

    /// Minimum or maximum in `d`: a number wins against a NaN, and +0 is greater than -0; of two NaNs the result is the second,
    /// made quiet. `a` and `b` are registers other than `d`.
    pub fn avx2_extreme(
        &mut self,
        elements: Elements,
        greater: bool,
        d: Register,
        a: Register,
        b: Register,
    ) {
        const EQUAL: i32 = 0;
        const UNORDERED: i32 = 3;
        let (d, a, b) = (narrowed(d), narrowed(a), narrowed(b));
        let (extreme, compare, blend) = match (elements, greater) {
            (Elements::Bits32, true) => (Code::VEX_Vmaxps_ymm_ymm_ymmm256, COMPARE32, BLEND32),
            (Elements::Bits32, false) => (Code::VEX_Vminps_ymm_ymm_ymmm256, COMPARE32, BLEND32),
            (Elements::Bits64, true) => (Code::VEX_Vmaxpd_ymm_ymm_ymmm256, COMPARE64, BLEND64),
            (Elements::Bits64, false) => (Code::VEX_Vminpd_ymm_ymm_ymmm256, COMPARE64, BLEND64),
        };
        // The instruction returns the second operand if one is a NaN, or if both are equal.
        self.raw3(extreme, d, a, b);
        self.raw(Instruction::with4(compare, T0, a, b, EQUAL));
        self.raw3(if greater { AND } else { OR }, T1, a, b);
        self.raw(Instruction::with4(blend, d, d, T1, T0));
        self.raw(Instruction::with4(compare, T0, b, b, UNORDERED));
        self.raw(Instruction::with4(blend, d, d, a, T0));
        if elements == Elements::Bits32 {
            return;
        }
        self.raw(Instruction::with4(compare, T0, a, a, UNORDERED));
        self.raw(Instruction::with4(blend, d, d, b, T0));
        let quiet = self.constant(1 << 51);
        self.raw(Instruction::with4(compare, T0, d, d, UNORDERED));
        self.raw3(AND, T0, T0, quiet);
        self.raw3(OR, d, d, T0);
    }

    /// Scalar instructions with a destination and a source.
    pub fn plain2(&mut self, code: Code, d: Register, a: Source, imm: Option<i32>) {
        match (a, imm) {
            (Source::Reg(a), None) => self.raw2(code, d, a),
            (Source::Memory(m), None) => self.raw(Instruction::with2(code, d, m)),
            (Source::Reg(a), Some(imm)) => self.raw(Instruction::with3(code, d, a, imm)),
            (Source::Memory(m), Some(imm)) => self.raw(Instruction::with3(code, d, m, imm)),
            (Source::Broadcast(_), _) => self.no_counterpart(code),
        }
    }

    /// Scalar instructions with a destination and two sources.
    pub fn plain3(&mut self, code: Code, d: Register, a: Register, b: Source, imm: Option<i32>) {
        match (b, imm) {
            (Source::Reg(b), None) => self.raw3(code, d, a, b),
            (Source::Memory(b), None) => self.raw3(code, d, a, b),
            _ => self.no_counterpart(code),
        }
    }
}

//! Mask registers, with 32 bits for each lane in memory or in a vector register, and the instructions that write them.

use std::mem::offset_of;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::super::assembler::{Assembler, Mask, Source};
use super::super::emit::CONTEXT;
use super::forms::Elements;
use super::{Operand, T0, T1, T2, half, mask_field, mask_number, narrowed, ones, vector};
use crate::run::native_context::{NativeContext, constant};

/// The bit of a mask register in [`Assembler::loaded_masks`].
fn bit(k: Register) -> u8 {
    1 << mask_number(k)
}

/// Holds the bits of masks.
pub const BITS: Register = Register::R11;
const BITS32: Register = Register::R11D;
const BITS8: Register = Register::R11L;

impl Assembler {
    /// Stores the masks that vector registers hold to the fields of the others.
    pub fn store_mask_registers(&mut self) {
        for (n, r) in self.mask_registers.into_iter().enumerate() {
            if let Some(r) = r {
                let store = Code::VEX_Vmovdqu_ymmm256_ymm;
                let field = mask_field(Register::K0 + n as u32);
                self.raw(Instruction::with2(store, field, r));
            }
        }
    }

    /// Loads them again.
    pub fn load_mask_registers(&mut self) {
        for (n, r) in self.mask_registers.into_iter().enumerate() {
            if let Some(r) = r {
                self.load(r, mask_field(Register::K0 + n as u32));
            }
        }
    }

    /// Writes the first temporary register to a mask.
    fn store_in_mask(&mut self, k: Register) {
        match self.mask(k) {
            Operand::Reg(r) => self.load(r, T0),
            Operand::Memory(m) => {
                let store = Code::VEX_Vmovdqu_ymmm256_ymm;
                self.raw(Instruction::with2(store, m, T0));
            }
        }
        self.loaded_masks |= bit(k);
    }

    /// Loads a mask to the first temporary register, unless it is there.
    fn mask_in_temporary(&mut self, k: Register) {
        if self.loaded_masks & bit(k) == 0 {
            let mask = self.mask(k);
            self.load(T0, mask);
            self.loaded_masks = bit(k);
        }
    }

    /// A mask in its register or in the first temporary register.
    fn mask_in_any(&mut self, k: Register) -> Register {
        match self.mask(k) {
            Operand::Reg(r) => r,
            Operand::Memory(_) => {
                self.mask_in_temporary(k);
                T0
            }
        }
    }

    /// Loads the bits of a mask.
    pub fn mask_bits(&mut self, to: Register, k: Register) {
        let from = self.mask_in_any(k);
        self.raw2(Code::VEX_Vmovmskps_r32_ymm, to, from);
    }

    /// Expands the bits in the low byte of the scalar temporary register to a mask.
    fn expand(&mut self, k: Register) {
        let table = MemoryOperand::with_base_index_scale_displ_size(
            CONTEXT,
            BITS,
            8,
            offset_of!(NativeContext, expanded) as i64,
            8,
        );
        self.raw(Instruction::with2(
            Code::VEX_Vpmovsxbd_ymm_xmmm64,
            T0,
            table,
        ));
        self.store_in_mask(k);
    }

    /// Moves, shifts, complements and tests of masks.
    pub fn mask_move(&mut self, code: Code, d: Register, a: Source, imm: Option<i32>) {
        match (code, a) {
            (Code::VEX_Kmovw_kr_km16 | Code::VEX_Kmovd_kr_km32, Source::Memory(m)) => {
                self.raw(Instruction::with2(Code::Movzx_r32_rm8, BITS32, m));
                self.expand(d);
            }
            (Code::VEX_Kmovw_kr_km16, Source::Reg(a)) => {
                self.mask_in_temporary(a);
                self.store_in_mask(d);
            }
            (Code::VEX_Kmovw_kr_r32, Source::Reg(a)) => {
                self.raw2(Code::Mov_r32_rm32, BITS32, a);
                self.raw2(Code::Movzx_r32_rm8, BITS32, BITS8);
                self.expand(d);
            }
            (Code::VEX_Kmovw_r32_kr, Source::Reg(a)) => self.mask_bits(d, a),
            (Code::VEX_Knotw_kr_kr, Source::Reg(a)) => {
                self.mask_in_temporary(a);
                self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, T0, T0, ones());
                self.store_in_mask(d);
            }
            // The masks of 16 and of 8 lanes that the translation tests have 8 and 4 lanes here.
            (Code::VEX_Kortestw_kr_kr, Source::Reg(a)) if a == d => {
                let lanes = self.mask_in_any(a);
                let code = Code::VEX_Vptest_ymm_ymmm256;
                self.raw(Instruction::with2(code, lanes, ones()));
            }
            (Code::VEX_Kortestb_kr_kr, Source::Reg(a)) if a == d => {
                let lanes = half(self.mask_in_any(a));
                let code = Code::VEX_Vptest_xmm_xmmm128;
                self.raw(Instruction::with2(code, lanes, ones()));
            }
            // The translation shifts masks by the lanes of half a chunk.
            (Code::VEX_Kshiftrw_kr_kr_imm8, Source::Reg(a)) if imm == Some(8) => {
                match self.mask(a) {
                    Operand::Reg(r) => {
                        let extract = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
                        self.raw(Instruction::with3(extract, half(T0), r, 1));
                    }
                    Operand::Memory(mut upper) => {
                        upper.displacement += 16;
                        let load = Code::VEX_Vmovdqu_xmm_xmmm128;
                        self.raw(Instruction::with2(load, half(T0), upper));
                    }
                }
                self.store_in_mask(d);
            }
            (Code::VEX_Kshiftrw_kr_kr_imm8, Source::Reg(a)) if imm == Some(0) => {
                self.mask_in_temporary(a);
                self.store_in_mask(d);
            }
            _ => self.no_counterpart(code),
        }
    }

    /// Logic of masks.
    pub fn mask_logic(&mut self, code: Code, d: Register, a: Register, b: Register) {
        let code = match code {
            Code::VEX_Kandw_kr_kr_kr => Code::VEX_Vpand_ymm_ymm_ymmm256,
            Code::VEX_Kandnw_kr_kr_kr => Code::VEX_Vpandn_ymm_ymm_ymmm256,
            Code::VEX_Korw_kr_kr_kr => Code::VEX_Vpor_ymm_ymm_ymmm256,
            Code::VEX_Kxorw_kr_kr_kr => Code::VEX_Vpxor_ymm_ymm_ymmm256,
            Code::VEX_Kxnorw_kr_kr_kr if a == b => {
                self.load(T0, ones());
                self.store_in_mask(d);
                return;
            }
            Code::VEX_Kunpckbw_kr_kr_kr => {
                // The first source is the upper half.
                self.mask_in_temporary(b);
                let insert = Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8;
                match self.mask(a) {
                    Operand::Reg(r) => {
                        self.raw(Instruction::with4(insert, T0, T0, half(r), 1));
                    }
                    Operand::Memory(upper) => {
                        self.raw(Instruction::with4(insert, T0, T0, upper, 1));
                    }
                }
                self.store_in_mask(d);
                return;
            }
            _ => return self.no_counterpart(code),
        };
        // The source that has just been computed comes first, if the order does not matter.
        let (a, b) =
            match self.loaded_masks & bit(b) != 0 && code != Code::VEX_Vpandn_ymm_ymm_ymmm256 {
                true => (b, a),
                false => (a, b),
            };
        let b = self.mask(b);
        self.mask_in_temporary(a);
        self.raw3(code, T0, T0, b);
        self.store_in_mask(d);
    }

    /// Stores the bits of a mask.
    pub fn store_mask(&mut self, to: MemoryOperand, k: Register) {
        self.mask_bits(BITS32, k);
        self.raw(Instruction::with2(Code::Mov_rm8_r8, to, BITS8));
    }

    /// A comparison or test whose result is a mask.
    pub fn comparison(
        &mut self,
        code: Code,
        d: Register,
        a: Register,
        b: Source,
        imm: Option<i32>,
        mask: Mask,
    ) {
        let elements = match code {
            Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8
            | Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8
            | Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae
            | Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32
            | Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32 => Elements::Bits32,
            _ => Elements::Bits64,
        };
        let a = narrowed(a);
        let b = self.operand(b, elements);
        match code {
            Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae => {
                self.compare_floating(Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, a, b, imm);
            }
            Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae => {
                self.compare_floating(Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8, a, b, imm);
            }
            Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8
            | Code::EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8 => {
                self.compare_signed(elements, a, b, imm.unwrap_or(0));
            }
            Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8
            | Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8 => {
                self.compare_unsigned(elements, a, b, imm.unwrap_or(0));
            }
            Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32 | Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64 => {
                self.test_zero(elements, a, b);
                self.complement();
            }
            Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32
            | Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64 => self.test_zero(elements, a, b),
            _ => return self.no_counterpart(code),
        }
        if let Mask::Merge(k) | Mask::Zero(k) = mask {
            self.load_mask(T1, k, elements);
            self.raw3(Code::VEX_Vpand_ymm_ymm_ymmm256, T0, T0, T1);
        }
        if elements == Elements::Bits64 {
            self.pack64();
        }
        self.store_in_mask(d);
    }

    /// Packs the low words of the 64-bit elements of the first temporary register to its lower half, and clears the upper half.
    pub fn pack64(&mut self) {
        self.raw(Instruction::with3(
            Code::VEX_Vextracti128_xmmm128_ymm_imm8,
            half(T1),
            T0,
            1,
        ));
        const EVEN: i32 = 0b10_00_10_00;
        let shuffle = Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8;
        let (low, high) = (half(T0), half(T1));
        self.raw(Instruction::with4(shuffle, low, low, high, EVEN));
    }

    fn compare_floating(&mut self, code: Code, a: Register, b: Operand, imm: Option<i32>) {
        let imm = imm.unwrap_or(0);
        match b {
            Operand::Reg(b) => self.raw(Instruction::with4(code, T0, a, b, imm)),
            Operand::Memory(b) => self.raw(Instruction::with4(code, T0, a, b, imm)),
        }
    }

    fn complement(&mut self) {
        self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, T0, T0, ones());
    }

    fn test_zero(&mut self, elements: Elements, a: Register, b: Operand) {
        self.raw3(Code::VEX_Vpand_ymm_ymm_ymmm256, T0, a, b);
        self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, T1, T1, T1);
        self.raw3(equal(elements), T0, T0, T1);
    }

    fn compare_signed(&mut self, elements: Elements, a: Register, b: Operand, imm: i32) {
        match imm {
            EQUAL | NOT_EQUAL => self.raw3(equal(elements), T0, a, b),
            GREATER | LESS_OR_EQUAL => self.raw3(greater(elements), T0, a, b),
            _ => {
                let b = self.in_temporary(b, T1);
                self.raw3(greater(elements), T0, b, a);
            }
        }
        if matches!(imm, NOT_EQUAL | LESS_OR_EQUAL | GREATER_OR_EQUAL) {
            self.complement();
        }
    }

    fn compare_unsigned(&mut self, elements: Elements, a: Register, b: Operand, imm: i32) {
        if matches!(imm, EQUAL | NOT_EQUAL) {
            return self.compare_signed(elements, a, b, imm);
        }
        if elements == Elements::Bits32 {
            // `a >= b` if `a` is the maximum of both; `a <= b` if it is the minimum.
            let extreme = match imm {
                LESS | GREATER_OR_EQUAL => Code::VEX_Vpmaxud_ymm_ymm_ymmm256,
                _ => Code::VEX_Vpminud_ymm_ymm_ymmm256,
            };
            self.raw3(extreme, T0, a, b);
            self.raw3(equal(elements), T0, T0, a);
            if matches!(imm, LESS | GREATER) {
                self.complement();
            }
            return;
        }
        // Signed comparisons order numbers as unsigned ones do if the signs are flipped.
        let b = self.flip_signs(a, b);
        self.compare_signed(elements, T1, Operand::Reg(b), imm);
    }

    /// Flips the signs of 64-bit elements: those of `a` in the second temporary register, those of `b` in the third, which is
    /// returned.
    pub fn flip_signs(&mut self, a: Register, b: Operand) -> Register {
        let signs = vector(constant::SIGN64);
        let b = self.in_temporary(b, T2);
        self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, T2, b, signs);
        self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, T1, a, signs);
        T2
    }
}

const EQUAL: i32 = 0;
const LESS_OR_EQUAL: i32 = 2;
const LESS: i32 = 1;
const NOT_EQUAL: i32 = 4;
const GREATER_OR_EQUAL: i32 = 5;
const GREATER: i32 = 6;

fn equal(elements: Elements) -> Code {
    match elements {
        Elements::Bits32 => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
        Elements::Bits64 => Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256,
    }
}

/// The comparison of signed integers.
pub fn greater(elements: Elements) -> Code {
    match elements {
        Elements::Bits32 => Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256,
        Elements::Bits64 => Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256,
    }
}

//! Translation of comparisons: `setp`, `set` and `testp`.

use cupyrite_ptx::ir::{BoolOp, Cmp};
use iced_x86::{Code, Register};

use super::assembler::{Mask, Source};
use super::emit::{Emitter, MASK, constant};
use super::homes::vector;
use super::lanes::{ordered, unordered};
use crate::register_file::fixed;
use crate::run::native_context::constant as constants;
use crate::semantics::lane::{CompareType, Comparison, Slot};

/// A second scratch mask. It can hold a mask, but not select the lanes of a vector instruction.
pub const SPARE: Register = Register::K0;

impl Emitter<'_> {
    /// `setp` with a combination or with two destinations.
    pub fn compare_and_combine(&mut self, c: Comparison, d: [u32; 4], s: [u32; 4]) {
        self.comparison(c, s);
        if !c.pair || d[1] == fixed::SINK_PRED {
            self.combine_results(c, s[2]);
            self.set_predicate(d[0], MASK);
            return;
        }
        // The complement is computed first, because the results are in the scratch masks in the end.
        self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::EAX, MASK);
        self.asm.op2(Code::VEX_Knotw_kr_kr, MASK, MASK);
        self.combine_results(c, s[2]);
        self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, MASK);
        self.asm.op2(Code::VEX_Kmovw_kr_r32, MASK, Register::EAX);
        self.combine_results(c, s[2]);
        self.asm.op2(Code::VEX_Kmovw_kr_r32, SPARE, Register::ECX);
        if d[0] != fixed::SINK_PRED {
            self.set_predicate(d[0], MASK);
        }
        self.set_predicate(d[1], SPARE);
    }

    /// `set`.
    pub fn compare_to_value(&mut self, c: Comparison, value: u32, d: u32, s: [u32; 4]) {
        self.comparison(c, s);
        self.combine_results(c, s[2]);
        let value = Source::Memory(self.asm.constant(u64::from(value)));
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        self.asm
            .op2_masked(broadcast, vector(0), value, Mask::Zero(MASK));
        self.copy32(d, vector(0));
        self.set_raw(d, false);
    }

    /// Combines the scratch mask with the third source of a comparison.
    fn combine_results(&mut self, c: Comparison, source: u32) {
        let Some(op) = c.combination else {
            return;
        };
        let mut other = self.predicate(source);
        if c.negated {
            self.asm.op2(Code::VEX_Knotw_kr_kr, SPARE, other);
            other = SPARE;
        }
        let code = match op {
            BoolOp::And => Code::VEX_Kandw_kr_kr_kr,
            BoolOp::Or => Code::VEX_Korw_kr_kr_kr,
            BoolOp::Xor => Code::VEX_Kxorw_kr_kr_kr,
        };
        self.asm.op3(code, MASK, MASK, other);
    }

    /// Compares the first two sources; the result is in the scratch mask.
    fn comparison(&mut self, c: Comparison, s: [u32; 4]) {
        let (a, b) = (vector(0), vector(1));
        let (code, imm) = match c.ty {
            CompareType::Signed16 | CompareType::Unsigned16 => {
                let signed = c.ty == CompareType::Signed16;
                self.short_source(a, s[0], signed);
                self.short_source(b, s[1], signed);
                (Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8, ordered(c.cmp))
            }
            CompareType::Half(format) => {
                self.widen_half(a, s[0], format, false);
                self.widen_half(b, s[1], format, false);
                (
                    Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
                    unordered(c.cmp),
                )
            }
            CompareType::Single if c.flush => {
                for (to, s) in [(a, s[0]), (b, s[1])] {
                    let source = self.source32(s);
                    let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                    self.asm.op2(copy, to, source);
                    self.flush(to);
                }
                (
                    Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
                    unordered(c.cmp),
                )
            }
            ty => return self.compare_sources(ty, c.cmp, s),
        };
        self.asm.op3_imm(code, MASK, a, b, imm, Mask::None);
    }

    /// Whether magnitudes are at least `low` and at most `high`.
    pub fn magnitude_between(&mut self, slot: Slot, [low, high]: [u64; 2], d: u32, s: u32) {
        let distance = Source::Broadcast(self.asm.constant(high - low));
        let least = Source::Broadcast(self.asm.constant(low));
        let v = vector(0);
        // A single comparison, of the distance from the least magnitude.
        let at_most = ordered(Cmp::Le);
        if slot == Slot::R64 {
            for part in [1, 0] {
                let source = self.source64(s, part);
                let r = self.in_register(source, 0);
                let and = Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
                self.asm.op3(and, v, r, constant(constants::MAGNITUDE64));
                let subtract = Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
                self.asm.op3(subtract, v, v, least);
                let compare = Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8;
                self.asm
                    .op3_imm(compare, MASK, v, distance, at_most, Mask::None);
                self.join_masks(part);
            }
        } else {
            let source = self.source32(s);
            let r = self.in_register(source, 0);
            let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(and, v, r, constant(constants::MAGNITUDE32));
            let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(subtract, v, v, least);
            let compare = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
            self.asm
                .op3_imm(compare, MASK, v, distance, at_most, Mask::None);
        }
        self.set_predicate(d, MASK);
    }

    /// Collects masks of halves of 64-bit slots, the upper half first: the scratch mask holds that of `part`, and in the end
    /// that of all lanes. Uses the second scratch mask between the two calls.
    pub fn join_masks(&mut self, part: usize) {
        if part == 1 {
            self.asm.op2(Code::VEX_Kmovw_kr_km16, SPARE, MASK);
        } else {
            let join = Code::VEX_Kunpckbw_kr_kr_kr;
            self.asm.op3(join, MASK, SPARE, MASK);
        }
    }
}

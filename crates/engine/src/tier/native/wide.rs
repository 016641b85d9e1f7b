//! Translation of products and quotients of 64-bit integers, and of arithmetic with the carry flag.

use iced_x86::{Code, Register};

use super::assembler::{Mask, Source};
use super::bits::Part;
use super::emit::{Emitter, MASK};
use super::homes::vector;
use crate::register_file::fixed;
use crate::semantics::lane::{CarryOp, Slot};

const COPY: Code = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
const AND: Code = Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
const ADD: Code = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
const SUBTRACT: Code = Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
const MULTIPLY: Code = Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64;
const SHIFT_RIGHT: Code = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
const SHIFT_RIGHT_SIGNED: Code = Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8;

/// Integers below this bound have exact quotients in double precision: a quotient differs from the next integer by more than
/// its rounding error.
const EXACT: u64 = 1 << 51;

impl Emitter<'_> {
    /// The upper half of the product of the first two sources, in the first scratch register.
    pub fn high_product(&mut self, p: Part, signed: bool, s: [u32; 4]) {
        if p.slot == Slot::R64 {
            self.high_product64(p.half, signed, s);
        } else {
            self.high_product32(signed, s);
            self.asm.op2(COPY, vector(0), vector(1));
        }
    }

    /// Half `part` of the upper halves of products of 64-bit integers, from four products of 32-bit integers.
    fn high_product64(&mut self, part: usize, signed: bool, s: [u32; 4]) {
        let (a, b, a_high, b_high, sum) = (vector(0), vector(1), vector(2), vector(3), vector(4));
        let (x, y) = (self.source64(s[0], part), self.source64(s[1], part));
        self.asm.op2(COPY, a, x);
        self.asm.op2(COPY, b, y);
        self.asm.op2_imm(SHIFT_RIGHT, a_high, a, 32, Mask::None);
        self.asm.op2_imm(SHIFT_RIGHT, b_high, b, 32, Mask::None);
        self.asm.op3(MULTIPLY, sum, a, b);
        self.asm.op2_imm(SHIFT_RIGHT, sum, sum, 32, Mask::None);
        self.asm.op3(MULTIPLY, b, a_high, b);
        self.asm.op3(ADD, sum, sum, b);
        self.asm.op3(MULTIPLY, a, a, b_high);
        let low = Source::Broadcast(self.asm.constant(0xffff_ffff));
        self.asm.op3(AND, b, sum, low);
        self.asm.op3(ADD, a, a, b);
        self.asm.op2_imm(SHIFT_RIGHT, a, a, 32, Mask::None);
        self.asm.op2_imm(SHIFT_RIGHT, sum, sum, 32, Mask::None);
        self.asm.op3(MULTIPLY, a_high, a_high, b_high);
        self.asm.op3(ADD, a, a, a_high);
        self.asm.op3(ADD, a, a, sum);
        if signed {
            // A negative factor counts as 2^64 more, and the product as the other factor more in the upper half.
            for (factor, other) in [(x, y), (y, x)] {
                self.asm
                    .op2_imm(SHIFT_RIGHT_SIGNED, b, factor, 63, Mask::None);
                self.asm.op3(AND, b, b, other);
                self.asm.op3(SUBTRACT, a, a, b);
            }
        }
    }

    /// Division of 64-bit integers in double precision. The engine divides if an integer is too large, or a divisor zero.
    pub fn divide64(&mut self, signed: bool, remainder: bool, d: u32, s: [u32; 4]) {
        let (slow, done) = (self.asm.label(), self.asm.label());
        let (a, b) = (vector(0), vector(1));
        let magnitude = |e: &mut Self, to: Register, from: Source| {
            let code = match signed {
                true => Code::EVEX_Vpabsq_zmm_k1z_zmmm512b64,
                false => COPY,
            };
            e.asm.op2(code, to, from);
        };
        // Results are written when all operands are known to be small, because they may replace operands.
        for part in 0..2 {
            let (x, y) = (self.source64(s[0], part), self.source64(s[1], part));
            magnitude(self, a, x);
            magnitude(self, b, y);
            // Zero becomes the greatest integer.
            let one = Source::Broadcast(self.asm.constant(1));
            self.asm.op3(SUBTRACT, b, b, one);
            let or = Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(or, a, a, b);
            let large = Source::Broadcast(self.asm.constant(!(EXACT - 1)));
            let test = Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64;
            let mask = self.half_mask(part).map_or(Mask::None, Mask::Merge);
            self.asm.op3_masked(test, MASK, a, large, mask);
            self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jne_rel32_64, slow);
        }
        for part in 0..2 {
            let (x, y) = (self.source64(s[0], part), self.source64(s[1], part));
            self.double_from_small(a, x);
            self.double_from_small(b, y);
            let divide = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
            self.asm.op3(divide, a, a, b);
            self.small_from_double(a);
            if remainder {
                let multiply = Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64;
                self.asm.op3(multiply, a, a, y);
                let x = self.in_register(x, 1);
                self.asm.op3(SUBTRACT, a, x, a);
            }
            self.copy64(d, part, a);
        }
        self.asm.bind(done);
        self.engine_instead(slow, done);
    }

    /// Sums that read or write the carry flag.
    pub fn carry(
        &mut self,
        op: CarryOp,
        [reads, writes]: [bool; 2],
        slot: Slot,
        d: [u32; 4],
        s: [u32; 4],
    ) {
        let product = matches!(op, CarryOp::MultiplyAdd | CarryOp::MultiplyHighAdd { .. });
        let flag = reads.then(|| self.predicate(s[if product { 3 } else { 2 }]));
        // The upper half first, because its carries are shifted.
        let mut parts: Vec<Part> = Part::all(slot).collect();
        parts.reverse();
        for p in parts {
            let c = p.codes();
            let (r, addend) = (vector(0), vector(1));
            match op {
                CarryOp::Add | CarryOp::Subtract => self.load_part(p, r, s[0]),
                CarryOp::MultiplyAdd => self.low_product(p, s),
                CarryOp::MultiplyHighAdd { signed } => self.high_product(p, signed, s),
            }
            self.load_part(p, addend, s[if product { 2 } else { 1 }]);
            let (less, at_least) = (1, 5);
            let borrows = op == CarryOp::Subtract && !reads;
            if op == CarryOp::Subtract && reads {
                const NOT: i32 = 0x55;
                self.asm
                    .op3_imm(c.ternary, addend, addend, addend, NOT, Mask::None);
            }
            let compare = match slot {
                Slot::R64 => Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8,
                _ => Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8,
            };
            if borrows {
                // The flag is set if there is no borrow.
                self.asm
                    .op3_imm(compare, MASK, r, addend, at_least, Mask::None);
                self.asm.op3(c.subtract, r, r, addend);
            } else {
                self.asm.op3(c.add, r, r, addend);
                self.asm.op3_imm(compare, MASK, r, addend, less, Mask::None);
            }
            self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, MASK);
            if let Some(flag) = flag {
                // Adds one, and carries where the sum becomes zero.
                let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                let distance = if p.half == 1 { 8 } else { 0 };
                self.asm.op2_imm(shift, MASK, flag, distance, Mask::None);
                let one = self.element(1);
                let merge = Mask::Merge(MASK);
                self.asm.op3_masked(c.add, r, r, one, merge);
                let test = match slot {
                    Slot::R64 => Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64,
                    _ => Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32,
                };
                self.asm.op3_masked(test, MASK, r, r, merge);
                self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::EDX, MASK);
                self.asm
                    .op2(Code::Or_rm32_r32, Register::ECX, Register::EDX);
            }
            // The carries of the upper half wait in a third register, which no emission for operands uses.
            if p.half == 1 {
                let half = self.asm.isa.lanes() as i32 / 2;
                self.asm.op_imm(Code::Shl_rm32_imm8, Register::ECX, half);
                self.asm
                    .op2(Code::Mov_r32_rm32, Register::EAX, Register::ECX);
            } else if slot == Slot::R64 {
                self.asm
                    .op2(Code::Or_rm32_r32, Register::EAX, Register::ECX);
            } else {
                self.asm
                    .op2(Code::Mov_r32_rm32, Register::EAX, Register::ECX);
            }
            self.write_elements(p, d[0], r);
        }
        if writes && d[1] != fixed::SINK_PRED {
            self.asm.op2(Code::VEX_Kmovw_kr_r32, MASK, Register::EAX);
            self.set_predicate(d[1], MASK);
        }
    }

    /// The low half of the product of the first two sources, in the first scratch register.
    fn low_product(&mut self, p: Part, s: [u32; 4]) {
        let code = match p.slot {
            Slot::R64 => Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64,
            _ => Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32,
        };
        self.load_part(p, vector(0), s[0]);
        let other = self.part_of(p, s[1]);
        self.asm.op3(code, vector(0), vector(0), other);
    }
}

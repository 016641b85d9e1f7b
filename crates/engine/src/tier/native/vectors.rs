//! Loads and stores of vectors at consecutive addresses. Each lane's vector is accessed whole, as on a GPU.

use std::mem::offset_of;

use iced_x86::{Code, Register};

use super::assembler::{Mask, Source, at};
use super::emit::{Emitter, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use super::isa::Isa;
use super::lanes::lower;
use crate::kir::Reg;
use crate::run::native_context::NativeContext;

/// Interleave the lower or the upper 8 bytes of each group of 16 bytes.
const HALVES: [Code; 2] = [
    Code::EVEX_Vpunpcklqdq_zmm_k1z_zmm_zmmm512b64,
    Code::EVEX_Vpunpckhqdq_zmm_k1z_zmm_zmmm512b64,
];

const LOAD: Code = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;

impl<'a> Emitter<'a> {
    /// Loads or stores the vectors of all lanes, the first of which is at `rdx`. Stores of 16 bytes write all lanes.
    pub fn vectors(&mut self, a: MemoryAccess) {
        let inst = self.inst();
        let regs: &'a [Reg] = &self.program.mem[inst.target as usize].regs;
        match (a.size, a.count, a.store) {
            (4, 2, false) => self.load_pairs32(regs, inst.imm),
            (4, 2, true) => self.store_pairs32(regs, inst.imm),
            (4, _, false) => self.load_fours(regs, inst.imm),
            (4, _, true) => self.store_fours(regs, inst.imm),
            (_, _, false) => self.load_pairs64(regs, inst.imm),
            (_, _, true) => self.store_pairs64(regs, inst.imm),
        }
    }

    /// Loads the same vector, which is at `rdx`, in all lanes.
    pub fn equal_vectors(&mut self, a: MemoryAccess, regs: &[Reg], offset: i64) {
        let all = vector(0);
        let from = Source::Memory(at(Register::RDX, offset));
        let load = match a.size * a.count {
            8 => Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64,
            _ => Code::EVEX_Vbroadcasti32x4_zmm_k1z_m128,
        };
        self.asm.op2(load, all, from);
        for (n, r) in regs.iter().enumerate() {
            // The element in each group of the vector's size.
            let pick = 0x55 * n as i32;
            if a.size == 4 {
                let code = Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8;
                self.asm.op2_imm(code, vector(1), all, pick, Mask::None);
                self.copy32(r.at, vector(1));
            } else {
                let code = Code::EVEX_Vpermq_zmm_k1z_zmmm512b64_imm8;
                self.asm.op2_imm(code, vector(1), all, pick, Mask::None);
                self.copy64(r.at, 0, vector(1));
                self.copy64(r.at, 1, vector(1));
            }
        }
    }

    fn load_pairs32(&mut self, regs: &[Reg], offset: i64) {
        for part in 0..2u32 {
            let from = at(
                Register::RDX,
                offset + self.asm.isa.bytes() * i64::from(part),
            );
            self.asm.op2(LOAD, vector(part), Source::Memory(from));
        }
        let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
        let shift = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
        for (n, r) in regs.iter().enumerate() {
            for part in 0..2 {
                let v = vector(part);
                if n == 1 {
                    self.asm.op2_imm(shift, v, v, 32, Mask::None);
                }
                self.asm.op2(truncate, lower(vector(2 + part)), v);
            }
            self.join_halves(vector(2), vector(3));
            self.copy32(r.at, vector(2));
        }
    }

    fn store_pairs32(&mut self, regs: &[Reg], offset: i64) {
        let extend = Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256;
        let shift = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
        let lanes = self.lane_mask().map_or(Mask::None, Mask::Merge);
        for part in 0..2 {
            let (low, high) = (vector(0), vector(1));
            self.wide_source(extend, low, regs[0].at, part);
            self.wide_source(extend, high, regs[1].at, part);
            self.asm.op2_imm(shift, high, high, 32, Mask::None);
            let or = Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(or, low, low, high);
            let mask = self.half(lanes, part);
            let to = at(Register::RDX, offset + self.asm.isa.bytes() * part as i64);
            let store = Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm;
            self.asm.store_masked(store, to, low, mask);
        }
    }

    /// Loads the vectors of 16 bytes of all lanes to the first four scratch registers.
    fn load_rows(&mut self, offset: i64) {
        for n in 0..4u32 {
            let from = at(Register::RDX, offset + self.asm.isa.bytes() * i64::from(n));
            self.asm.op2(LOAD, vector(n), Source::Memory(from));
        }
    }

    /// [`Self::load_fours`] for 8 lanes: rows of lane `n` and `n + 4`, transposed by unpacking twice.
    fn load_fours_avx2(&mut self, regs: &[Reg], offset: i64) {
        for n in 0..4u32 {
            let lane = |lane: u32| at(Register::RDX, offset + 16 * i64::from(lane));
            self.asm.op2(LOAD, vector(n), Source::Memory(lane(n)));
            let insert = Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8;
            let upper = Source::Memory(lane(n + 4));
            self.asm
                .op3_imm(insert, vector(n), vector(n), upper, 1, Mask::None);
        }
        let (low, high) = (
            Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32,
        );
        // The first two elements of lanes 0 and 1, of lanes 2 and 3, then the last two.
        self.asm.op3(low, vector(4), vector(0), vector(1));
        self.asm.op3(high, vector(0), vector(0), vector(1));
        self.asm.op3(low, vector(1), vector(2), vector(3));
        self.asm.op3(high, vector(2), vector(2), vector(3));
        let pairs = [(vector(4), vector(1)), (vector(0), vector(2))];
        for (n, r) in regs.iter().enumerate() {
            let (first, last) = pairs[n / 2];
            self.asm.op3(HALVES[n % 2], vector(3), first, last);
            self.copy32(r.at, vector(3));
        }
    }

    fn load_fours(&mut self, regs: &[Reg], offset: i64) {
        if self.asm.isa == Isa::Avx2 {
            return self.load_fours_avx2(regs, offset);
        }
        self.load_rows(offset);
        let pick = Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32;
        let (low, high) = (vector(4), vector(5));
        for (n, r) in regs.iter().enumerate() {
            let table = context(offset_of!(NativeContext, of_four) + 64 * n);
            for (to, first) in [(low, 0), (high, 2)] {
                self.asm.op2(LOAD, to, Source::Memory(table));
                self.asm.op3(pick, to, vector(first), vector(first + 1));
            }
            self.join_halves(low, high);
            self.copy32(r.at, low);
        }
    }

    fn load_pairs64(&mut self, regs: &[Reg], offset: i64) {
        self.load_rows(offset);
        if self.asm.isa == Isa::Avx2 {
            // Unpacking yields the elements of lanes 0, 2, 1, 3.
            const ORDER: i32 = 0b11_01_10_00;
            for (n, r) in regs.iter().enumerate() {
                for part in 0..2u32 {
                    let (to, first) = (vector(4), 2 * part);
                    self.asm
                        .op3(HALVES[n], to, vector(first), vector(first + 1));
                    let order = Code::EVEX_Vpermq_zmm_k1z_zmmm512b64_imm8;
                    self.asm.op2_imm(order, to, to, ORDER, Mask::None);
                    self.copy64(r.at, part as usize, to);
                }
            }
            return;
        }
        let pick = Code::EVEX_Vpermi2q_zmm_k1z_zmm_zmmm512b64;
        for (n, r) in regs.iter().enumerate() {
            let table = context(offset_of!(NativeContext, of_two) + 64 * n);
            for part in 0..2u32 {
                let first = 2 * part;
                self.asm.op2(LOAD, vector(4), Source::Memory(table));
                self.asm
                    .op3(pick, vector(4), vector(first), vector(first + 1));
                self.copy64(r.at, part as usize, vector(4));
            }
        }
    }

    fn store_fours(&mut self, regs: &[Reg], offset: i64) {
        let source = |e: &mut Self, n: usize, scratch| {
            let s = e.source32(regs[n].at);
            e.in_register(s, scratch)
        };
        let (low, high) = (
            Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32,
        );
        // In each group of four lanes: the first two elements of two lanes, then the last two.
        let (a, b) = (source(self, 0, 0), source(self, 1, 1));
        self.asm.op3(low, vector(2), a, b);
        self.asm.op3(high, vector(3), a, b);
        let (c, d) = (source(self, 2, 0), source(self, 3, 1));
        self.asm.op3(low, vector(4), c, d);
        self.asm.op3(high, vector(5), c, d);
        for (k, (first, last)) in [(2, 4), (3, 5)].into_iter().enumerate() {
            self.store_lanes(vector(first), vector(last), 4, 2 * k, offset);
        }
    }

    fn store_pairs64(&mut self, regs: &[Reg], offset: i64) {
        for part in 0..2 {
            let (a, b) = (
                self.source64(regs[0].at, part),
                self.source64(regs[1].at, part),
            );
            let a = self.in_register(a, 1);
            let b = self.in_register(b, 2);
            let offset = offset + 2 * self.asm.isa.bytes() * part as i64;
            self.store_lanes(a, b, 2, 0, offset);
        }
    }

    /// Stores vectors whose first 8 bytes are in `a` and whose last are in `b`: in each group of `group` lanes, those of the
    /// lanes `lane` and `lane + 1`. Uses the first scratch register.
    fn store_lanes(&mut self, a: Register, b: Register, group: usize, lane: usize, offset: i64) {
        for (k, code) in HALVES.into_iter().enumerate() {
            self.asm.op3(code, vector(0), a, b);
            for n in 0..self.asm.isa.bytes() as usize / 16 {
                let lane = group * n + lane + k;
                let to = at(Register::RDX, offset + 16 * lane as i64);
                let extract = Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8;
                self.asm.store_imm(extract, to, vector(0), n as i32);
            }
        }
    }
}

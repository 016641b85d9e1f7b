//! Loads and stores under a mask, gathers, and scatters. Where AVX2 has no instruction, a loop accesses memory lane by lane.

use std::mem::offset_of;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::super::assembler::{Assembler, Label, Mask};
use super::super::emit::{CONTEXT, context};
use super::forms::Elements;
use super::masks::BITS;
use super::{T0, T1, T2, half, is_mask, narrowed, narrowed_index, whole};
use crate::run::native_context::NativeContext;

/// The lane of a loop.
const LANE: Register = Register::R10;
/// The index of the lane.
const INDEX: Register = Register::R9;
const INDEX32: Register = Register::R9D;
/// The element of the lane.
const VALUE: Register = Register::RDI;
const VALUE32: Register = Register::EDI;

/// The element of the lane in a table of the context.
fn element(table: usize, size: u32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(CONTEXT, LANE, size, table as i64, 8)
}

fn values() -> usize {
    offset_of!(NativeContext, lane_values)
}

fn indices() -> usize {
    offset_of!(NativeContext, lane_indices)
}

/// Sizes of the index and the element of a scatter.
fn scatter(code: Code) -> Option<(u32, u32)> {
    Some(match code {
        Code::EVEX_Vpscatterdd_vm32z_k1_zmm => (4, 4),
        Code::EVEX_Vpscatterdq_vm32y_k1_zmm => (4, 8),
        Code::EVEX_Vpscatterqd_vm64z_k1_ymm => (8, 4),
        Code::EVEX_Vpscatterqq_vm64z_k1_zmm => (8, 8),
        _ => return None,
    })
}

impl Assembler {
    fn store_vector(&mut self, to: MemoryOperand, from: Register) {
        self.raw(Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, to, from));
    }

    /// Emits `body` in a loop over the lanes of a mask, of which only the first `count` matter.
    fn by_lane(&mut self, k: Register, count: u32, body: impl FnOnce(&mut Self)) {
        let (next, done) = (self.label(), self.label());
        self.mask_bits(Register::R11D, k);
        self.op_imm(Code::And_rm32_imm32, Register::R11D, (1 << count) - 1);
        self.jump(Code::Je_rel32_64, done);
        self.bind(next);
        self.raw2(Code::Tzcnt_r32_rm32, Register::R10D, Register::R11D);
        body(self);
        self.raw2(Code::VEX_Blsr_r32_rm32, Register::R11D, Register::R11D);
        self.jump(Code::Jne_rel32_64, next);
        self.bind(done);
    }

    /// The first element of the lanes of a mask, in `eax` if there is one register with 32-bit elements, in `rax` if there are two
    /// with 64-bit elements.
    pub fn first_element(&mut self, of: &[Register], k: Register) {
        for (n, r) in of.iter().enumerate() {
            self.store_vector(context(values() + 32 * n), whole(*r));
        }
        self.mask_bits(Register::R11D, k);
        self.raw2(Code::Tzcnt_r32_rm32, Register::R10D, Register::R11D);
        if of.len() == 1 {
            let first = element(values(), 4);
            self.raw(Instruction::with2(Code::Mov_r32_rm32, Register::EAX, first));
        } else {
            let first = element(values(), 8);
            self.raw(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, first));
        }
    }

    /// Jumps if a bit of a register is set.
    pub fn jump_if_any_bit(&mut self, r: Register, to: Label) {
        let r = whole(r);
        self.raw2(Code::VEX_Vptest_ymm_ymmm256, r, r);
        self.jump(Code::Jne_rel32_64, to);
    }

    /// A load under a mask, if it is one that may not access the memory of other lanes; returns whether it is.
    pub fn masked_load(&mut self, code: Code, d: Register, m: MemoryOperand, mask: Mask) -> bool {
        let (Mask::Merge(k) | Mask::Zero(k)) = mask else {
            return false;
        };
        let (load, elements) = match code {
            Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512 => {
                (Code::VEX_Vpmaskmovd_ymm_ymm_m256, Elements::Bits32)
            }
            Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512 => {
                (Code::VEX_Vpmaskmovq_ymm_ymm_m256, Elements::Bits64)
            }
            Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128 => {
                return self.load_by_lane(Code::Movzx_r32_rm8, 1, d, m, mask);
            }
            Code::EVEX_Vpmovsxbd_zmm_k1z_xmmm128 => {
                return self.load_by_lane(Code::Movsx_r32_rm8, 1, d, m, mask);
            }
            Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256 => {
                return self.load_by_lane(Code::Movzx_r32_rm16, 2, d, m, mask);
            }
            Code::EVEX_Vpmovsxwd_zmm_k1z_ymmm256 => {
                return self.load_by_lane(Code::Movsx_r32_rm16, 2, d, m, mask);
            }
            _ => return self.gather(code, d, m, k),
        };
        self.load_mask(T1, k, elements);
        self.raw(Instruction::with3(load, T0, T1, m));
        self.blend(d, mask, elements);
        true
    }

    /// Loads elements of `size` bytes in a loop, zeros in the other lanes.
    fn load_by_lane(
        &mut self,
        load: Code,
        size: u32,
        d: Register,
        m: MemoryOperand,
        mask: Mask,
    ) -> bool {
        let Mask::Zero(k) = mask else {
            return false;
        };
        self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, T0, T0, T0);
        self.store_vector(context(values()), T0);
        self.by_lane(k, 8, |asm| {
            asm.raw(Instruction::with2(load, VALUE32, at_lane(m, size)));
            asm.raw(Instruction::with2(
                Code::Mov_rm32_r32,
                element(values(), 4),
                VALUE32,
            ));
        });
        self.load(d, context(values()));
        true
    }

    fn gather(&mut self, code: Code, d: Register, m: MemoryOperand, k: Register) -> bool {
        let (code, elements) = match code {
            Code::EVEX_Vpgatherdd_zmm_k1_vm32z => {
                (Code::VEX_Vpgatherdd_ymm_vm32y_ymm, Elements::Bits32)
            }
            Code::EVEX_Vpgatherdq_zmm_k1_vm32y => {
                (Code::VEX_Vpgatherdq_ymm_vm32x_ymm, Elements::Bits64)
            }
            Code::EVEX_Vpgatherqd_ymm_k1_vm64z => {
                (Code::VEX_Vpgatherqd_xmm_vm64y_xmm, Elements::Bits32)
            }
            Code::EVEX_Vpgatherqq_zmm_k1_vm64z => {
                (Code::VEX_Vpgatherqq_ymm_vm64y_ymm, Elements::Bits64)
            }
            _ => return false,
        };
        self.load_mask(T1, k, elements);
        let mask = match code {
            Code::VEX_Vpgatherqd_xmm_vm64y_xmm => half(T1),
            _ => T1,
        };
        self.raw(Instruction::with3(code, d, narrowed_index(m), mask));
        true
    }

    /// Loads the 32-bit elements of all lanes, at signed indices, with one scalar load each: where the data is not in the first-level
    /// cache, that takes less than half the time of a gather.
    pub fn gather_by_scalars(&mut self, d: Register, from: MemoryOperand) {
        let index = narrowed(from.index);
        let element = |lane: Register| {
            let (base, scale) = (from.base, from.scale);
            MemoryOperand::with_base_index_scale_displ_size(base, lane, scale, from.displacement, 8)
        };
        let (first, second) = (LANE, INDEX);
        for (to, from, upper) in [(T0, index, false), (T2, T1, true)] {
            if upper {
                let extract = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
                self.raw(Instruction::with3(extract, half(T1), index, 1));
            }
            for pair in 0..2 {
                match pair {
                    0 => self.raw2(Code::VEX_Vmovq_rm64_xmm, INDEX, half(from)),
                    _ => {
                        let extract = Code::VEX_Vpextrq_rm64_xmm_imm8;
                        self.raw(Instruction::with3(extract, INDEX, half(from), 1));
                    }
                }
                self.raw2(Code::Movsxd_r64_rm32, first, INDEX32);
                self.op_imm(Code::Sar_rm64_imm8, second, 32);
                for (n, lane) in [(0, first), (1, second)] {
                    if (pair, n) == (0, 0) {
                        let load = Code::VEX_Vmovd_xmm_rm32;
                        self.raw(Instruction::with2(load, half(to), element(lane)));
                        continue;
                    }
                    let insert = Code::VEX_Vpinsrd_xmm_xmm_rm32_imm8;
                    let (to, element) = (half(to), element(lane));
                    self.raw(Instruction::with4(insert, to, to, element, 2 * pair + n));
                }
            }
        }
        let join = Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8;
        self.raw(Instruction::with4(join, narrowed(d), T0, half(T2), 1));
    }

    /// A store.
    pub fn avx2_store(&mut self, code: Code, to: MemoryOperand, from: Register, mask: Mask) {
        if is_mask(from) {
            self.store_mask(to, from);
            return;
        }
        if let (Some((index, size)), Mask::Merge(k)) = (scatter(code), mask) {
            self.scatter_by_lane(to, from, index, size, k);
            return;
        }
        let from = narrowed(from);
        match (code, mask) {
            (
                Code::EVEX_Vmovdqa32_zmmm512_k1z_zmm
                | Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm
                | Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
                Mask::None,
            ) => self.store_vector(to, from),
            (Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, Mask::Merge(k)) => {
                self.load_mask(T1, k, Elements::Bits32);
                let store = Code::VEX_Vpmaskmovd_m256_ymm_ymm;
                self.raw(Instruction::with3(store, to, T1, from));
            }
            (Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm, Mask::Merge(k)) => {
                self.load_mask(T1, k, Elements::Bits64);
                let store = Code::VEX_Vpmaskmovq_m256_ymm_ymm;
                self.raw(Instruction::with3(store, to, T1, from));
            }
            (Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, Mask::None) => {
                self.pack_lanes(from, offset_of!(NativeContext, low_bytes));
                let join = Code::VEX_Vpunpckldq_xmm_xmm_xmmm128;
                self.raw3(join, half(T0), half(T0), half(T1));
                self.raw(Instruction::with2(Code::VEX_Vmovq_rm64_xmm, to, half(T0)));
            }
            (Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, Mask::None) => {
                self.pack_words(from);
                let store = Code::VEX_Vmovdqu_xmmm128_xmm;
                self.raw(Instruction::with2(store, to, half(T0)));
            }
            (Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, Mask::Merge(k)) => {
                self.store_by_lane(Code::Mov_rm8_r8, Register::DIL, 1, to, from, k);
            }
            (Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, Mask::Merge(k)) => {
                self.store_by_lane(Code::Mov_rm16_r16, Register::DI, 2, to, from, k);
            }
            _ => self.no_counterpart(code),
        }
    }

    /// A store with an immediate.
    pub fn avx2_store_imm(&mut self, code: Code, to: MemoryOperand, from: Register, imm: i32) {
        match code {
            Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8 => {
                let extract = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
                self.raw(Instruction::with3(extract, to, narrowed(from), imm));
            }
            _ => self.no_counterpart(code),
        }
    }

    /// Packs the low 16 bits of the elements to the lower half of the first temporary register.
    pub fn pack_words(&mut self, from: Register) {
        self.pack_lanes(from, offset_of!(NativeContext, low_words));
        let join = Code::VEX_Vpunpcklqdq_xmm_xmm_xmmm128;
        self.raw3(join, half(T0), half(T0), half(T1));
    }

    /// Packs the low parts of the 32-bit elements by a table: those of the lower four lanes in the first temporary register, those
    /// of the others in the second.
    fn pack_lanes(&mut self, from: Register, table: usize) {
        let shuffle = Code::VEX_Vpshufb_ymm_ymm_ymmm256;
        self.raw3(shuffle, T0, from, context(table));
        let extract = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
        self.raw(Instruction::with3(extract, half(T1), T0, 1));
    }

    /// Stores the low parts of 32-bit elements to consecutive addresses.
    fn store_by_lane(
        &mut self,
        store: Code,
        part: Register,
        size: u32,
        to: MemoryOperand,
        from: Register,
        k: Register,
    ) {
        self.store_vector(context(values()), from);
        self.by_lane(k, 8, |asm| {
            let value = element(values(), 4);
            asm.raw(Instruction::with2(Code::Mov_r32_rm32, VALUE32, value));
            asm.raw(Instruction::with2(store, at_lane(to, size), part));
        });
    }

    fn scatter_by_lane(
        &mut self,
        to: MemoryOperand,
        from: Register,
        index: u32,
        size: u32,
        k: Register,
    ) {
        self.store_vector(context(indices()), whole(to.index));
        self.store_vector(context(values()), whole(from));
        let count = if index.max(size) == 8 { 4 } else { 8 };
        self.by_lane(k, count, |asm| {
            let load = match index {
                4 => Code::Movsxd_r64_rm32,
                _ => Code::Mov_r64_rm64,
            };
            asm.raw(Instruction::with2(load, INDEX, element(indices(), index)));
            let target = match to.base {
                Register::None => MemoryOperand::with_base_displ_size(INDEX, to.displacement, 8),
                base => MemoryOperand::with_base_index_scale_displ_size(
                    base,
                    INDEX,
                    to.scale,
                    to.displacement,
                    8,
                ),
            };
            let value = element(values(), size);
            if size == 4 {
                asm.raw(Instruction::with2(Code::Mov_r32_rm32, VALUE32, value));
                asm.raw(Instruction::with2(Code::Mov_rm32_r32, target, VALUE32));
            } else {
                asm.raw(Instruction::with2(Code::Mov_r64_rm64, VALUE, value));
                asm.raw(Instruction::with2(Code::Mov_rm64_r64, target, VALUE));
            }
        });
    }
}

/// The element of the lane of consecutive elements.
fn at_lane(m: MemoryOperand, size: u32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(m.base, LANE, size, m.displacement, 8)
}

const _: () = assert!(BITS as u32 == Register::R11 as u32);

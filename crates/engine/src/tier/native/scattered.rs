//! Loads and stores whose addresses are neither consecutive nor equal.

use std::mem::offset_of;

use iced_x86::{Code, MemoryOperand, Register};

use super::addresses::{Address, Root};
use super::assembler::{Label, Mask, Source, at};
use super::emit::{Emitter, Lanes, MASK, REGS64, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use super::isa::Isa;
use super::lanes::lower;
use crate::register_file::fixed;
use crate::run::native_context::NativeContext;

/// Comparisons of unsigned integers.
const LESS: i32 = 1;
const GREATER: i32 = 6;
/// Comparison of integers.
const NOT_EQUAL: i32 = 4;

/// The index of an address.
#[derive(Clone, Copy)]
struct Index {
    signed: bool,
    scale: u32,
}

/// The index of an address at which an access is executed lane by lane; `None` if the lanes have 64-bit addresses.
fn index_of(a: MemoryAccess, address: &Address) -> Option<Index> {
    let Root::Index { signed, shift, .. } = address.root else {
        return None;
    };
    let scale = 1 << shift;
    let fits = a.count == 1 && matches!(a.size, 4 | 8) && !a.packed;
    // Larger scales are no part of an instruction. An aligned element has aligned neighbours.
    (fits && scale <= 8 && scale % a.size == 0).then_some(Index { signed, scale })
}

/// IndexedElements in memory.
#[derive(Clone, Copy)]
struct IndexedElements {
    base: Register,
    /// The scratch register with the indices.
    index: u32,
    scale: u32,
    displacement: i64,
    /// Whether lanes that do not run may load, too.
    any_lane: bool,
}

impl IndexedElements {
    fn at(self, index: Register) -> MemoryOperand {
        let Self {
            base,
            scale,
            displacement,
            ..
        } = self;
        MemoryOperand::with_base_index_scale_displ_size(base, index, scale, displacement, 8)
    }
}

impl Emitter<'_> {
    /// Executes the current load or store with one access per lane, and goes to `otherwise` if one of them is not allowed.
    pub fn scattered(&mut self, a: MemoryAccess, otherwise: Label) {
        let flow = self.flow;
        let access = flow.blocks[self.block].addresses.of_access(self.pc);
        if let Some(access) = access
            && let Some(index) = index_of(a, &access.address)
        {
            self.by_index(a, &access.address, index, otherwise);
            return;
        }
        self.compute_base();
        if a.shared {
            self.shared_offsets(a, otherwise);
        } else {
            self.global_addresses(a, otherwise);
        }
        let inst = self.inst();
        let op = &self.program.mem[inst.target as usize];
        let shared = |displacement| IndexedElements {
            base: Register::RDX,
            index: 0,
            scale: 1,
            displacement,
            any_lane: false,
        };
        for (n, r) in op.regs.iter().enumerate() {
            let offset = n as i64 * i64::from(a.size);
            match (a.shared, a.size) {
                (true, 4) => self.elements32(a.store, r.at, shared(offset)),
                (true, _) => self.elements64(a.store, r.at, shared(offset)),
                (false, 4) => self.global32(a.store, r.at, offset),
                (false, _) => self.global64(a.store, r.at, offset),
            }
        }
    }

    /// Leaves offsets in shared memory in the first scratch register, and the address of shared memory in `rdx`.
    pub fn shared_offsets(&mut self, a: MemoryAccess, otherwise: Label) {
        self.offsets(a, offset_of!(NativeContext, shared_bytes), otherwise);
        let shared = Source::Memory(context(offset_of!(NativeContext, shared)));
        self.asm.op2(Code::Mov_r64_rm64, Register::RDX, shared);
    }

    /// Leaves offsets in the first scratch register. They are multiples of the size of the access, and below the limit that is in
    /// this field of the context.
    pub fn offsets(&mut self, a: MemoryAccess, limit: usize, otherwise: Label) {
        if a.wide {
            self.wide_offsets(a, limit, otherwise);
            return;
        }
        let inst = self.inst();
        let bytes = (a.size * a.count) as i32;
        let lanes = self.lane_mask().map_or(Mask::None, Mask::Merge);
        let base = self.source32(inst.args.src[0]);
        let base = self.in_register(base, 0);
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
        self.asm
            .op_imm(Code::Mov_r32_imm32, Register::EAX, inst.imm as i32);
        self.asm.op2(broadcast, vector(1), Register::EAX);
        self.asm.op3(
            Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
            vector(0),
            base,
            vector(1),
        );
        let limit = Source::Memory(context(limit));
        self.asm.op2(Code::Mov_r64_rm64, Register::RCX, limit);
        self.asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, bytes);
        self.asm.jump(Code::Jb_rel32_64, otherwise);
        self.asm.op2(broadcast, vector(1), Register::ECX);
        let compare = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
        self.asm
            .op3_imm(compare, MASK, vector(0), vector(1), GREATER, lanes);
        self.none_of_mask(otherwise);
        self.asm
            .op_imm(Code::Mov_r32_imm32, Register::EAX, bytes - 1);
        self.asm.op2(broadcast, vector(1), Register::EAX);
        let test = Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32;
        self.asm.op3_masked(test, MASK, vector(0), vector(1), lanes);
        self.none_of_mask(otherwise);
    }

    fn none_of_mask(&mut self, otherwise: Label) {
        self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
        self.asm.jump(Code::Jne_rel32_64, otherwise);
    }

    /// [`Self::offsets`] of 64-bit addresses.
    fn wide_offsets(&mut self, a: MemoryAccess, limit: usize, otherwise: Label) {
        let bytes = (a.size * a.count) as i32;
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        self.wide_addresses();
        let limit = Source::Memory(context(limit));
        self.asm.op2(Code::Mov_r64_rm64, Register::RCX, limit);
        self.asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, bytes);
        self.asm.jump(Code::Jb_rel32_64, otherwise);
        self.asm.op2(broadcast, vector(2), Register::RCX);
        self.compare_addresses(GREATER, otherwise);
        self.check_alignment(bytes, otherwise);
        let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
        for part in 0..2 {
            self.asm.op2(truncate, lower(vector(part)), vector(part));
        }
        self.join_halves(vector(0), vector(1));
    }

    /// Leaves 64-bit addresses in the first two scratch registers.
    fn wide_addresses(&mut self) {
        let inst = self.inst();
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        self.asm.op2_imm64(Register::RAX, inst.imm as u64);
        let uniform = inst.args.src[2];
        if uniform != fixed::ZERO {
            let uniform = Source::Memory(at(REGS64, uniform.into()));
            self.asm.op2(Code::Add_r64_rm64, Register::RAX, uniform);
        }
        self.asm.op2(broadcast, vector(2), Register::RAX);
        for part in 0..2 {
            let base = self.source64(inst.args.src[0], part);
            let to = vector(part as u32);
            let base = self.in_register(base, part as u32);
            self.asm.op3(
                Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
                to,
                base,
                vector(2),
            );
        }
    }

    /// Checks that the addresses are multiples of `bytes`.
    fn check_alignment(&mut self, bytes: i32, otherwise: Label) {
        self.asm
            .op_imm(Code::Mov_r32_imm32, Register::EAX, bytes - 1);
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        self.asm.op2(broadcast, vector(2), Register::RAX);
        for part in 0..2 {
            let lanes = self.lanes_of_part(part);
            let test = Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64;
            self.asm
                .op3_masked(test, MASK, vector(part), vector(2), lanes);
            self.asm.op2(Code::VEX_Kortestb_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jne_rel32_64, otherwise);
        }
    }

    /// Leaves addresses in global memory in the first two scratch registers.
    pub fn global_addresses(&mut self, a: MemoryAccess, otherwise: Label) {
        let bytes = (a.size * a.count) as i32;
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        self.wide_addresses();
        let [base, end] = self.cached_region(a.store);
        self.asm.op2(Code::Mov_r64_rm64, Register::RCX, base);
        self.asm.op2(broadcast, vector(2), Register::RCX);
        self.compare_addresses(LESS, otherwise);
        self.asm.op2(Code::Mov_r64_rm64, Register::RCX, end);
        self.asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, bytes);
        self.asm.jump(Code::Jb_rel32_64, otherwise);
        self.asm.op2(broadcast, vector(2), Register::RCX);
        self.compare_addresses(GREATER, otherwise);
        self.check_alignment(bytes, otherwise);
    }

    fn compare_addresses(&mut self, comparison: i32, otherwise: Label) {
        for part in 0..2 {
            let lanes = self.lanes_of_part(part);
            let compare = Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8;
            self.asm
                .op3_imm(compare, MASK, vector(part), vector(2), comparison, lanes);
            self.asm.op2(Code::VEX_Kortestb_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jne_rel32_64, otherwise);
        }
    }

    /// The mask of the instruction's lanes in a half of the chunk. Uses the scratch mask.
    pub fn lanes_of_part(&mut self, part: u32) -> Mask {
        match self.lane_mask() {
            None => Mask::None,
            Some(k) if part == 0 => Mask::Merge(k),
            Some(k) => {
                let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                self.asm.op2_imm(shift, MASK, k, 8, Mask::None);
                Mask::Merge(MASK)
            }
        }
    }

    /// Fills the scratch mask, which gathers and scatters clear, with the lanes of a half of the chunk.
    fn fill_mask(&mut self, part: u32) {
        match self.lane_mask() {
            None => self.asm.op3(Code::VEX_Kxnorw_kr_kr_kr, MASK, MASK, MASK),
            Some(k) => {
                let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                let distance = 8 * part as i32;
                self.asm.op2_imm(shift, MASK, k, distance, Mask::None);
            }
        }
    }

    /// Gathers the lanes of half `part` of the chunk; of the whole chunk if elements and indices have 32 bits.
    pub fn gather(&mut self, code: Code, to: Register, from: MemoryOperand, part: u32) {
        self.fill_mask(part);
        let from = Source::Memory(from);
        self.asm.op2_masked(code, to, from, Mask::Merge(MASK));
    }

    /// Scatters lanes as [`Self::gather`] gathers them.
    pub fn scatter(&mut self, code: Code, to: MemoryOperand, from: Register, part: u32) {
        self.fill_mask(part);
        self.asm.store_masked(code, to, from, Mask::Merge(MASK));
    }

    /// Executes the current access to global memory at indices, with one access per lane, and goes to `otherwise` if one of them is
    /// not allowed.
    fn by_index(&mut self, a: MemoryAccess, address: &Address, index: Index, otherwise: Label) {
        self.index_bounds(a, address, index, otherwise);
        // The lanes that do not run get indices within the bounds, too.
        let indices = self.root32(address);
        let indices = self.in_register(indices, 0);
        let max = Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32;
        self.asm.op3(max, vector(1), vector(1), indices);
        let min = Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32;
        self.asm.op3(min, vector(1), vector(1), vector(2));
        if self.asm.isa == Isa::Avx2 {
            let lanes = self.lane_mask().map_or(Mask::None, Mask::Zero);
            let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
            self.asm
                .op3_masked(xor, vector(2), indices, vector(1), lanes);
            self.asm.jump_if_any_bit(vector(2), otherwise);
        } else {
            let lanes = self.lane_mask().map_or(Mask::None, Mask::Merge);
            let compare = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
            self.asm
                .op3_imm(compare, MASK, indices, vector(1), NOT_EQUAL, lanes);
            self.none_of_mask(otherwise);
        }
        let r = self.program.mem[self.inst().target as usize].regs[0].at;
        let elements = IndexedElements {
            base: Register::RAX,
            index: 1,
            scale: index.scale,
            displacement: 0,
            any_lane: true,
        };
        match a.size {
            4 => self.elements32(a.store, r, elements),
            _ => self.elements64(a.store, r, elements),
        }
    }

    /// Leaves the uniform part of the address in `rax`, and the least and the greatest index that are allowed in all lanes of the second
    /// and the third scratch register. Goes to `otherwise` if there are none.
    fn index_bounds(&mut self, a: MemoryAccess, address: &Address, index: Index, otherwise: Label) {
        let inst = self.inst();
        let asm = &mut self.asm;
        asm.op_imm(Code::Mov_rm64_imm32, Register::RAX, inst.imm as i32);
        self.add_uniforms(&address.uniforms);
        let asm = &mut self.asm;
        asm.op_imm(Code::Test_rm32_imm32, Register::EAX, a.size as i32 - 1);
        asm.jump(Code::Jne_rel32_64, otherwise);
        let [base, end] = self.cached_region(a.store);
        let asm = &mut self.asm;
        let (least, greatest, bound) = (Register::RDX, Register::RCX, Register::RSI);
        let shift = index.scale.ilog2() as i32;
        asm.op2(Code::Mov_r64_rm64, greatest, end);
        asm.op_imm(Code::Sub_rm64_imm32, greatest, a.size as i32);
        asm.jump(Code::Jb_rel32_64, otherwise);
        asm.op2(Code::Sub_r64_rm64, greatest, Register::RAX);
        asm.jump(Code::Jo_rel32_64, otherwise);
        asm.op2(Code::Mov_r64_rm64, least, base);
        asm.op2(Code::Sub_r64_rm64, least, Register::RAX);
        asm.jump(Code::Jo_rel32_64, otherwise);
        if shift > 0 {
            asm.op_imm(Code::Sar_rm64_imm8, greatest, shift);
            // Rounds up.
            asm.op_imm(Code::Add_rm64_imm8, least, index.scale as i32 - 1);
            asm.jump(Code::Jo_rel32_64, otherwise);
            asm.op_imm(Code::Sar_rm64_imm8, least, shift);
        }
        let first = if index.signed { i32::MIN } else { 0 };
        asm.op_imm(Code::Mov_rm64_imm32, bound, first);
        asm.op2(Code::Cmp_r64_rm64, least, bound);
        asm.op2(Code::Cmovl_r64_rm64, least, bound);
        asm.op_imm(Code::Mov_rm64_imm32, bound, i32::MAX);
        asm.op2(Code::Cmp_r64_rm64, greatest, bound);
        asm.op2(Code::Cmovg_r64_rm64, greatest, bound);
        asm.op2(Code::Cmp_r64_rm64, least, greatest);
        asm.jump(Code::Jg_rel32_64, otherwise);
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
        asm.op2(broadcast, vector(1), Register::EDX);
        asm.op2(broadcast, vector(2), Register::ECX);
    }

    /// Loads or stores elements of four bytes. Uses `zmm3`.
    fn elements32(&mut self, store: bool, r: u32, e: IndexedElements) {
        let index = vector(e.index);
        if store {
            let s = self.source32(r);
            let s = self.in_register(s, 3);
            let code = Code::EVEX_Vpscatterdd_vm32z_k1_zmm;
            self.scatter(code, e.at(index), s, 0);
            return;
        }
        if self.asm.isa == Isa::Avx2 && (e.any_lane || self.lanes == Lanes::All) {
            self.asm.gather_by_scalars(vector(3), e.at(index));
        } else {
            let code = Code::EVEX_Vpgatherdd_zmm_k1_vm32z;
            self.gather(code, vector(3), e.at(index), 0);
        }
        self.copy32(r, vector(3));
    }

    /// Loads or stores elements of eight bytes. Uses `zmm2` and `zmm3`.
    fn elements64(&mut self, store: bool, r: u32, e: IndexedElements) {
        for part in 0..2 {
            let index = match part {
                0 => lower(vector(e.index)),
                _ => {
                    let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
                    let to = lower(vector(2));
                    self.asm
                        .op2_imm(extract, to, vector(e.index), 1, Mask::None);
                    to
                }
            };
            if store {
                let s = self.source64(r, part as usize);
                let s = self.in_register(s, 3);
                let code = Code::EVEX_Vpscatterdq_vm32y_k1_zmm;
                self.scatter(code, e.at(index), s, part);
            } else {
                let code = Code::EVEX_Vpgatherdq_zmm_k1_vm32y;
                self.gather(code, vector(3), e.at(index), part);
                self.copy64(r, part as usize, vector(3));
            }
        }
    }

    fn global32(&mut self, store: bool, r: u32, offset: i64) {
        if store {
            let s = self.source32(r);
            let s = self.in_register(s, 2);
            let code = Code::EVEX_Vpscatterqd_vm64z_k1_ymm;
            self.scatter(
                code,
                indexed(Register::None, vector(0), offset),
                lower(s),
                0,
            );
            let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
            let upper = lower(vector(2));
            self.asm.op2_imm(extract, upper, s, 1, Mask::None);
            self.scatter(code, indexed(Register::None, vector(1), offset), upper, 1);
            return;
        }
        for part in 0..2 {
            let element = indexed(Register::None, vector(part), offset);
            let code = Code::EVEX_Vpgatherqd_ymm_k1_vm64z;
            self.gather(code, lower(vector(2 + part)), element, part);
        }
        self.join_halves(vector(2), vector(3));
        self.copy32(r, vector(2));
    }

    fn global64(&mut self, store: bool, r: u32, offset: i64) {
        for part in 0..2 {
            let element = indexed(Register::None, vector(part), offset);
            if store {
                let s = self.source64(r, part as usize);
                let s = self.in_register(s, 2);
                self.scatter(Code::EVEX_Vpscatterqq_vm64z_k1_zmm, element, s, part);
            } else {
                let code = Code::EVEX_Vpgatherqq_zmm_k1_vm64z;
                self.gather(code, vector(2), element, part);
                self.copy64(r, part as usize, vector(2));
            }
        }
    }
}

/// Memory at `base`, if it is a register, plus an element of `index` plus `displacement`.
pub fn indexed(base: Register, index: Register, displacement: i64) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(base, index, 1, displacement, 8)
}

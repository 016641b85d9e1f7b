//! Loads and stores of local memory.
//!
//! Local memory of a warp is interleaved: word `w` of lane `l` is at `128 * w + 4 * l`
//! ([`local_word`](crate::run::memory::local_word)). If the lanes access the same offset, a word of the chunk is a vector in
//! memory; otherwise it is gathered or scattered. Only its own thread accesses the word of a lane, so that elements of less than
//! four bytes can be stored by replacing the word. What is not allowed is executed by the engine, which raises the fault.

use std::mem::offset_of;

use iced_x86::{Code, Register};

use super::assembler::{Label, Mask, Source, at};
use super::emit::{Emitter, GUARD, Lanes, REGS32, REGS64, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use super::lanes::lower;
use super::scattered::indexed;
use crate::bytecode::{Inst, InstKind, Program};
use crate::kir::{MemOp, MemSpace};
use crate::register_file::fixed;
use crate::run::native_context::{Chunk, NativeContext, STRIDES};
use crate::semantics::lane::Slot;

/// Bytes from a word of a lane to its next one.
const ROW: i64 = 128;

/// The access to local memory of an instruction; `None` if it is none, or if the interpreter executes it.
pub fn access(program: &Program, inst: &Inst) -> Option<MemoryAccess> {
    if !matches!(inst.kind, InstKind::Ld | InstKind::St) {
        return None;
    }
    let op = &program.mem[inst.target as usize];
    if op.address.space != MemSpace::Local {
        return None;
    }
    let slot = if op.size == 8 { Slot::R64 } else { Slot::R32 };
    let fits = op.regs.iter().all(|r| r.slot == slot);
    let count = op.regs.len() as u32;
    let known = matches!((op.size, count), (1 | 2 | 4, 1 | 2 | 4) | (8, 1 | 2));
    // Larger ones do not fit the offset of an x86 instruction.
    let near = op.address.offset.unsigned_abs() < 1 << 30;
    (fits && known && near).then_some(MemoryAccess {
        shared: false,
        wide: !op.address.is_narrow(),
        store: op.store,
        size: op.size,
        count,
        packed: false,
    })
}

/// How the lanes access local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offsets {
    /// All at the same offset: `rdx` is the address of the first lane's word.
    Equal,
    /// Each at its own: the first scratch register has the distances of the words from `rdx`.
    Different,
}

impl Emitter<'_> {
    /// Translates the address of a local variable: the start of the frame plus an offset.
    pub fn frame_address(&mut self) {
        let inst = self.inst();
        self.asm.op2_imm64(Register::RAX, inst.imm as u64);
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        self.asm.op2(broadcast, vector(1), Register::RAX);
        for part in 0..2 {
            let half = self.asm.isa.bytes() / 2 * part as i64;
            let frame = at(REGS32, i64::from(fixed::FRAME) + half);
            let extend = Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256;
            self.asm.op2(extend, vector(0), Source::Memory(frame));
            let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(add, vector(0), vector(0), vector(1));
            self.copy64(inst.args.dst[0], part, vector(0));
        }
    }

    /// Translates the load or store of local memory of the current instruction.
    pub fn local_access(&mut self, a: MemoryAccess) {
        let inst = self.inst();
        let op = &self.program.mem[inst.target as usize];
        if a.store {
            op.regs.iter().for_each(|r| self.canonicalize(r.at));
        }
        self.canonicalize(inst.args.src[0]);
        let (different, engine) = (self.asm.label(), self.asm.label());
        let done = self.asm.label();
        if self.lanes == Lanes::Guarded {
            self.asm.op2(Code::VEX_Kortestw_kr_kr, GUARD, GUARD);
            self.asm.jump(Code::Je_rel32_64, done);
        }
        self.equal_offset(a, different, engine);
        self.elements(a, op, Offsets::Equal);
        self.asm.bind(done);
        self.rare(different, move |e| {
            e.different_offsets(a, engine);
            e.elements(a, op, Offsets::Different);
            e.asm.jump(Code::Jmp_rel32_64, done);
        });
        self.engine_instead(engine, done);
        if !a.store && self.lanes != Lanes::Guarded {
            for r in &op.regs {
                self.raw_nans.remove(&r.at);
            }
        }
    }

    /// Leaves the address of the word in `rdx` and the position of the element in it, in bits, in each lane of the last scratch
    /// register but one, if all lanes access the same offset.
    fn equal_offset(&mut self, a: MemoryAccess, different: Label, engine: Label) {
        let inst = self.inst();
        let bytes = (a.size * a.count) as i32;
        let base = inst.args.src[0];
        let offset = Source::Memory(at(Register::RAX, inst.imm));
        if a.wide {
            self.equal64(base, different);
            let uniform = inst.args.src[2];
            if uniform != fixed::ZERO {
                let uniform = Source::Memory(at(REGS64, uniform.into()));
                self.asm.op2(Code::Add_r64_rm64, Register::RAX, uniform);
            }
            self.asm.op2(Code::Lea_r64_m, Register::RCX, offset);
        } else {
            self.equal32(base, different);
            // The address wraps at 32 bits.
            self.asm.op2(Code::Lea_r32_m, Register::ECX, offset);
        }
        let asm = &mut self.asm;
        if bytes > 1 {
            asm.op_imm(Code::Test_rm32_imm32, Register::ECX, bytes - 1);
            asm.jump(Code::Jne_rel32_64, engine);
        }
        let limit = Source::Memory(context(offset_of!(NativeContext, local_bytes)));
        asm.op2(Code::Mov_r64_rm64, Register::RDX, limit);
        asm.op_imm(Code::Sub_rm64_imm32, Register::RDX, bytes);
        asm.jump(Code::Jb_rel32_64, engine);
        asm.op2(Code::Cmp_r64_rm64, Register::RCX, Register::RDX);
        asm.jump(Code::Ja_rel32_64, engine);
        if bytes < 4 {
            asm.op2(Code::Mov_r32_rm32, Register::EAX, Register::ECX);
            asm.op_imm(Code::And_rm32_imm32, Register::EAX, 3);
            asm.op_imm(Code::Shl_rm32_imm8, Register::EAX, 3);
            let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
            asm.op2(broadcast, vector(4), Register::EAX);
            asm.op_imm(Code::And_rm64_imm32, Register::RCX, -4);
        }
        asm.op_imm(Code::Shl_rm64_imm8, Register::RCX, 5);
        self.local_memory();
        self.asm
            .op2(Code::Add_r64_rm64, Register::RDX, Register::RCX);
    }

    /// Leaves the distances of the words from `rdx` in the first scratch register, and the positions of the elements in them, in
    /// bits, in the last one but one.
    fn different_offsets(&mut self, a: MemoryAccess, engine: Label) {
        self.offsets(a, offset_of!(NativeContext, local_bytes), engine);
        self.local_memory();
        let index = vector(0);
        let left = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
        if a.size * a.count < 4 {
            self.asm.op_imm(Code::Mov_r32_imm32, Register::EAX, 3);
            let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
            self.asm.op2(broadcast, vector(1), Register::EAX);
            let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(and, vector(4), index, vector(1));
            let and_not = Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3(and_not, index, vector(1), index);
            self.asm.op2_imm(left, vector(4), vector(4), 3, Mask::None);
        }
        self.asm.op2_imm(left, index, index, 5, Mask::None);
        let steps = STRIDES.iter().position(|s| *s == 4).unwrap_or(0);
        let lanes = context(offset_of!(NativeContext, steps32) + 64 * steps);
        let add = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
        self.asm.op3(add, index, index, Source::Memory(lanes));
    }

    /// Leaves the address of the chunk's local memory in `rdx`.
    fn local_memory(&mut self) {
        let chunk = Source::Memory(context(offset_of!(NativeContext, chunk)));
        self.asm.op2(Code::Mov_r64_rm64, Register::RDX, chunk);
        let local = at(Register::RDX, offset_of!(Chunk, local) as i64);
        self.asm
            .op2(Code::Mov_r64_rm64, Register::RDX, Source::Memory(local));
    }

    fn load_row(&mut self, to: Register, row: i64, offsets: Offsets) {
        match offsets {
            Offsets::Equal => {
                let load = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                let from = at(Register::RDX, ROW * row);
                self.asm.op2(load, to, Source::Memory(from));
            }
            Offsets::Different => {
                let from = indexed(Register::RDX, vector(0), ROW * row);
                self.gather(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, to, from, 0);
            }
        }
    }

    fn store_row(&mut self, row: i64, from: Register, offsets: Offsets) {
        match offsets {
            Offsets::Equal => {
                let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
                let to = at(Register::RDX, ROW * row);
                let lanes = self.lane_mask().map_or(Mask::None, Mask::Merge);
                self.asm.store_masked(store, to, from, lanes);
            }
            Offsets::Different => {
                let to = indexed(Register::RDX, vector(0), ROW * row);
                self.scatter(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, to, from, 0);
            }
        }
    }

    /// Loads or stores the elements.
    fn elements(&mut self, a: MemoryAccess, op: &MemOp, offsets: Offsets) {
        match (a.size, a.store) {
            (1 | 2, false) => self.load_parts(a, op, offsets),
            (1 | 2, true) => self.store_parts(a, op, offsets),
            (4, _) => {
                for (row, r) in (0..).zip(&op.regs) {
                    if a.store {
                        let s = self.source32(r.at);
                        let s = self.in_register(s, 1);
                        self.store_row(row, s, offsets);
                    } else if offsets == Offsets::Equal {
                        let to = self.destination32(r.at);
                        let load = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                        let from = Source::Memory(at(Register::RDX, ROW * row));
                        self.asm.op2_masked(load, to.register, from, to.mask);
                        self.finish(to);
                    } else {
                        self.load_row(vector(1), row, offsets);
                        self.copy32(r.at, vector(1));
                    }
                }
            }
            (_, false) => {
                for (row, r) in (0..).step_by(2).zip(&op.regs) {
                    self.load_row(vector(1), row, offsets);
                    self.load_row(vector(2), row + 1, offsets);
                    self.join_words(r.at);
                }
            }
            (_, true) => {
                for (row, r) in (0..).step_by(2).zip(&op.regs) {
                    for word in 0..2 {
                        self.word_of64(r.at, word);
                        self.store_row(row + word, vector(3), offsets);
                    }
                }
            }
        }
    }

    /// Writes the 64-bit elements whose lower words are in the second scratch register, and whose upper words are in the third.
    fn join_words(&mut self, r: u32) {
        let (low, high) = (vector(3), vector(4));
        for part in 0..2 {
            for (to, from) in [(low, vector(1)), (high, vector(2))] {
                if part == 1 {
                    let extract = Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8;
                    self.asm.op2_imm(extract, lower(to), from, 1, Mask::None);
                }
                let from = if part == 1 { to } else { from };
                let extend = Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256;
                self.asm.op2(extend, to, lower(from));
            }
            let left = Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
            self.asm.op2_imm(left, high, high, 32, Mask::None);
            let or = Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(or, low, low, high);
            self.copy64(r, part, low);
        }
    }

    /// Leaves the lower or upper words of 64-bit elements in the fourth scratch register. Keeps the first one.
    fn word_of64(&mut self, r: u32, word: i64) {
        let halves = [vector(3), vector(4)];
        for (part, to) in halves.into_iter().enumerate() {
            let s = self.source64(r, part);
            let mut s = self.in_register(s, 1);
            if word == 1 {
                let right = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
                self.asm.op2_imm(right, vector(2), s, 32, Mask::None);
                s = vector(2);
            }
            let truncate = Code::EVEX_Vpmovqd_ymmm256_k1z_zmm;
            self.asm.op2(truncate, lower(to), s);
        }
        self.join_halves(vector(3), vector(4));
    }

    /// Loads elements of less than four bytes.
    fn load_parts(&mut self, a: MemoryAccess, op: &MemOp, offsets: Offsets) {
        let row = vector(1);
        for (k, r) in (0..).zip(&op.regs) {
            let first = k * a.size;
            if first.is_multiple_of(4) {
                self.load_row(row, i64::from(first / 4), offsets);
                if a.size * a.count < 4 {
                    let right = Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32;
                    self.asm.op3(right, row, row, vector(4));
                }
            }
            let v = self.part_of_word(op, row, first % 4);
            self.copy32(r.at, v);
        }
    }

    /// Stores elements of less than four bytes.
    fn store_parts(&mut self, a: MemoryAccess, op: &MemOp, offsets: Offsets) {
        let bytes = a.size * a.count;
        for first in (0..op.regs.len()).step_by((4 / a.size) as usize) {
            self.word_of_parts(op, first);
            let row = i64::from(first as u32 * a.size / 4);
            if bytes < 4 {
                let ones = (1u32 << (8 * bytes)) - 1;
                self.asm
                    .op_imm(Code::Mov_r32_imm32, Register::EAX, ones as i32);
                let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
                self.asm.op2(broadcast, vector(3), Register::EAX);
                let left = Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32;
                for v in [vector(2), vector(3)] {
                    self.asm.op3(left, v, v, vector(4));
                }
                self.load_row(vector(1), row, offsets);
                let and_not = Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(and_not, vector(1), vector(3), vector(1));
                let or = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(or, vector(2), vector(2), vector(1));
            }
            self.store_row(row, vector(2), offsets);
        }
    }
}

//! Translation of atomics: additions of 32-bit integers in code, the others by the engine.

use std::mem::offset_of;

use cupyrite_ptx::ir::{AtomOp, Semantics, Type};
use iced_x86::{Code, MemoryOperand, Register};

use super::assembler::{Mask, Source};
use super::emit::{Emitter, GUARD, Lanes, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use crate::kir::{AtomicOp, MemSpace};
use crate::run::native_context::NativeContext;
use crate::semantics::lane::Slot;

/// Whether an atomic adds 32-bit integers in shared memory; `None` if it is another one than code makes.
fn addition(op: &AtomicOp) -> Option<bool> {
    let integer = matches!(op.ty, Type::U32 | Type::S32);
    let plain = op.op == AtomOp::Add && integer && op.order != Semantics::Sc && op.src2.is_none();
    let single = op.src.len() == 1 && op.dst.len() <= 1;
    let narrow = op.src.iter().chain(&op.dst).all(|r| r.slot == Slot::R32);
    if !(plain && single && narrow) {
        return None;
    }
    match op.address.space {
        MemSpace::Shared => Some(true),
        MemSpace::Global | MemSpace::Generic if !op.address.is_narrow() => Some(false),
        _ => None,
    }
}

/// An element of a table of the context by lane, `r8`.
fn element(table: usize, size: u32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(
        super::emit::CONTEXT,
        Register::R8,
        size,
        table as i64,
        8,
    )
}

impl Emitter<'_> {
    /// Translates the atomic of the current instruction.
    pub fn atomic(&mut self) {
        let inst = self.inst();
        let op = &self.program.atomics[inst.target as usize];
        let sources = op.src.iter().chain(&op.src2);
        sources.for_each(|r| self.canonicalize(r.at));
        self.canonicalize(op.address.base.at);
        let done = self.asm.label();
        if self.lanes == Lanes::Guarded {
            self.asm.op2(Code::VEX_Kortestw_kr_kr, GUARD, GUARD);
            self.asm.jump(Code::Je_rel32_64, done);
        }
        match addition(op) {
            Some(shared) => {
                let engine = self.asm.label();
                self.add_by_lane(op, shared, engine);
                self.asm.bind(done);
                self.engine_instead(engine, done);
            }
            None => {
                self.call_engine();
                self.asm.bind(done);
            }
        }
        if self.lanes != Lanes::Guarded {
            op.dst.iter().for_each(|r| {
                self.raw_nans.remove(&r.at);
            });
        }
    }

    /// Adds in a loop over the lanes. Shared memory of a block belongs to its worker, unless it is in a cluster.
    fn add_by_lane(&mut self, op: &AtomicOp, shared: bool, engine: super::assembler::Label) {
        let access = MemoryAccess {
            shared,
            wide: !op.address.is_narrow(),
            store: true,
            size: 4,
            count: 1,
        };
        let addresses = offset_of!(NativeContext, atomic_addresses);
        let values = offset_of!(NativeContext, atomic_values);
        let results = offset_of!(NativeContext, atomic_results);
        let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
        if shared {
            let flag = context(offset_of!(NativeContext, shared_by_cluster));
            self.asm.mem_imm(Code::Cmp_rm32_imm8, flag, 0);
            self.asm.jump(Code::Jne_rel32_64, engine);
            self.shared_offsets(access, engine);
            self.asm.store(store, context(addresses), vector(0));
        } else {
            self.global_addresses(access, engine);
            self.asm.store(store, context(addresses), vector(0));
            self.asm.store(store, context(addresses + 64), vector(1));
        }
        let value = self.source32(op.src[0].at);
        let value = self.in_register(value, 2);
        self.asm.store(store, context(values), value);
        match self.lane_mask() {
            None => self.asm.op_imm(Code::Mov_r32_imm32, Register::ECX, 0xffff),
            Some(k) => self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, k),
        }
        let next = self.asm.here();
        self.asm
            .op2(Code::Tzcnt_r32_rm32, Register::R8D, Register::ECX);
        let value = Source::Memory(element(values, 4));
        self.asm.op2(Code::Mov_r32_rm32, Register::ESI, value);
        let target = if shared {
            let offset = Source::Memory(element(addresses, 4));
            self.asm.op2(Code::Mov_r32_rm32, Register::EAX, offset);
            MemoryOperand::with_base_index(Register::RDX, Register::RAX)
        } else {
            let address = Source::Memory(element(addresses, 8));
            self.asm.op2(Code::Mov_r64_rm64, Register::RAX, address);
            MemoryOperand::with_base(Register::RAX)
        };
        match (shared, op.dst.first()) {
            (true, None) => self.asm.store(Code::Add_rm32_r32, target, Register::ESI),
            (true, Some(_)) => {
                self.asm
                    .op2(Code::Mov_r32_rm32, Register::EDI, Source::Memory(target));
                self.asm
                    .op2(Code::Add_r32_rm32, Register::ESI, Register::EDI);
                self.asm.store(Code::Mov_rm32_r32, target, Register::ESI);
                self.asm
                    .store(Code::Mov_rm32_r32, element(results, 4), Register::EDI);
            }
            (false, _) => {
                self.asm.locked(Code::Xadd_rm32_r32, target, Register::ESI);
                if !op.dst.is_empty() {
                    self.asm
                        .store(Code::Mov_rm32_r32, element(results, 4), Register::ESI);
                }
            }
        }
        // Clears the lowest bit that is set.
        self.asm
            .op2(Code::VEX_Blsr_r32_rm32, Register::ECX, Register::ECX);
        self.asm.jump(Code::Jne_rel32_64, next);
        if let Some(r) = op.dst.first() {
            let load = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
            let from = Source::Memory(context(results));
            self.asm.op2_masked(load, vector(0), from, Mask::None);
            self.copy32(r.at, vector(0));
        }
    }
}

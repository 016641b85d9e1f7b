//! Translation of atomics: those of 32 and 64 bits by a loop over the lanes, the others by the engine.

use std::mem::offset_of;

use cupyrite_ptx::ir::{AtomOp, Semantics, Type};
use iced_x86::{Code, MemoryOperand, Register};

use super::assembler::{Label, Mask, Source};
use super::emit::{CONTEXT, Emitter, GUARD, Lanes, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use crate::kir::{AtomicOp, MemSpace};
use crate::run::native_context::NativeContext;
use crate::semantics::lane::Slot;

/// An operation that code executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    AddFloat,
    And,
    Or,
    Xor,
    Min { signed: bool },
    Max { signed: bool },
    Exchange,
    Increment,
    Decrement,
    CompareAndSwap,
}

/// An atomic that code executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Atomic {
    operation: Operation,
    /// Whether it has 64 bits; otherwise 32.
    wide: bool,
    /// Whether it accesses shared memory; otherwise global memory.
    shared: bool,
}

/// The atomic of an instruction; `None` if the engine executes it.
fn atomic(op: &AtomicOp) -> Option<Atomic> {
    use Type::{B32, B64, F32, F64, S32, S64, U32, U64};
    let signed = matches!(op.ty, S32 | S64);
    let integer = matches!(op.ty, B32 | U32 | S32 | B64 | U64 | S64);
    let operation = match op.op {
        AtomOp::Add if integer => Operation::Add,
        AtomOp::Add if matches!(op.ty, F32 | F64) => Operation::AddFloat,
        AtomOp::And => Operation::And,
        AtomOp::Or => Operation::Or,
        AtomOp::Xor => Operation::Xor,
        AtomOp::Min if integer => Operation::Min { signed },
        AtomOp::Max if integer => Operation::Max { signed },
        AtomOp::Exch => Operation::Exchange,
        AtomOp::Inc => Operation::Increment,
        AtomOp::Dec => Operation::Decrement,
        AtomOp::Cas => Operation::CompareAndSwap,
        _ => return None,
    };
    let (wide, slot) = match op.ty.bits() {
        32 => (false, Slot::R32),
        64 => (true, Slot::R64),
        _ => return None,
    };
    let mut registers = op.src.iter().chain(&op.src2).chain(&op.dst);
    let fits = registers.all(|r| r.slot == slot);
    let single = op.src.len() == 1 && op.dst.len() <= 1;
    let swaps = operation == Operation::CompareAndSwap;
    if op.order == Semantics::Sc || !fits || !single || op.src2.is_some() != swaps {
        return None;
    }
    let shared = match op.address.space {
        MemSpace::Shared => true,
        MemSpace::Global | MemSpace::Generic if !op.address.is_narrow() => false,
        _ => return None,
    };
    Some(Atomic {
        operation,
        wide,
        shared,
    })
}

/// The lane.
const LANE: Register = Register::R8;
/// The address of its element.
const ADDRESS: Register = Register::R9;
/// The value in memory.
const OLD: Register = Register::RDI;
/// The operand.
const VALUE: Register = Register::RSI;
/// The second operand of `cas`.
const VALUE2: Register = Register::R11;
/// The value that replaces the one in memory.
const NEW: Register = Register::R10;

/// `MXCSR` for additions that take subnormal operands and results as zeros of their sign, with all exceptions masked.
const FLUSHING: u64 = 0x9fc0;

/// The lower half of a general-purpose register.
fn narrow(r: Register) -> Register {
    Register::EAX + (r as u32 - Register::RAX as u32)
}

/// An element of a table of the context by lane.
fn element(table: usize, size: u32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(CONTEXT, LANE, size, table as i64, 8)
}

impl Atomic {
    fn size(self) -> u32 {
        if self.wide { 8 } else { 4 }
    }

    /// The form of an instruction for its width.
    fn code(self, narrow: Code, wide: Code) -> Code {
        if self.wide { wide } else { narrow }
    }

    /// The part of a register of its width.
    fn part(self, r: Register) -> Register {
        if self.wide { r } else { narrow(r) }
    }
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
        match atomic(op) {
            Some(a) => {
                let engine = self.asm.label();
                self.by_lane(a, op, engine);
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

    /// Executes an atomic in a loop over the lanes. Shared memory of a block belongs to its worker, unless it is in a cluster.
    fn by_lane(&mut self, a: Atomic, op: &AtomicOp, engine: Label) {
        let access = MemoryAccess {
            shared: a.shared,
            wide: !op.address.is_narrow(),
            store: true,
            size: a.size(),
            count: 1,
            packed: false,
        };
        let addresses = offset_of!(NativeContext, atomic_addresses);
        let results = offset_of!(NativeContext, atomic_results);
        let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
        if a.shared {
            let flag = context(offset_of!(NativeContext, shared_by_cluster));
            self.asm.mem_imm(Code::Cmp_rm32_imm8, flag, 0);
            self.asm.jump(Code::Jne_rel32_64, engine);
            self.shared_offsets(access, engine);
            self.asm.store(store, context(addresses), vector(0));
        } else {
            self.global_addresses(access, engine);
            let bytes = self.asm.isa.bytes() as usize;
            self.asm.store(store, context(addresses), vector(0));
            self.asm.store(store, context(addresses + bytes), vector(1));
        }
        self.keep_values(a, op.src[0].at, offset_of!(NativeContext, atomic_values));
        if let Some(r) = op.src2 {
            self.keep_values(a, r.at, offset_of!(NativeContext, atomic_values2));
        }
        match self.lane_mask() {
            None => self.load_all_lanes(),
            Some(k) => self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, k),
        }
        // In global memory, `add.f32` flushes subnormal numbers (PTX ISA, "atom").
        let flushes = a.operation == Operation::AddFloat && !a.wide && !a.shared;
        let mxcsr = context(offset_of!(NativeContext, saved_mxcsr));
        if flushes {
            self.asm.op1_mem(Code::VEX_Vstmxcsr_m32, mxcsr);
            let flushing = self.asm.constant(FLUSHING);
            self.asm.op1_mem(Code::VEX_Vldmxcsr_m32, flushing);
        }
        let next = self.asm.here();
        let lane = narrow(LANE);
        self.asm.op2(Code::Tzcnt_r32_rm32, lane, Register::ECX);
        self.load_value(a, VALUE, offset_of!(NativeContext, atomic_values));
        if op.src2.is_some() {
            self.load_value(a, VALUE2, offset_of!(NativeContext, atomic_values2));
        }
        let target = if a.shared {
            let offset = Source::Memory(element(addresses, 4));
            let to = narrow(ADDRESS);
            self.asm.op2(Code::Mov_r32_rm32, to, offset);
            MemoryOperand::with_base_index(Register::RDX, ADDRESS)
        } else {
            let address = Source::Memory(element(addresses, 8));
            self.asm.op2(Code::Mov_r64_rm64, ADDRESS, address);
            MemoryOperand::with_base(ADDRESS)
        };
        let result = !op.dst.is_empty();
        match a.shared {
            true => self.on_shared(a, target, result),
            false => self.on_global(a, target, result),
        }
        if result {
            let code = a.code(Code::Mov_rm32_r32, Code::Mov_rm64_r64);
            let to = element(results, a.size());
            self.asm.store(code, to, a.part(OLD));
        }
        // Clears the lowest bit that is set.
        self.asm
            .op2(Code::VEX_Blsr_r32_rm32, Register::ECX, Register::ECX);
        self.asm.jump(Code::Jne_rel32_64, next);
        if flushes {
            self.asm.op1_mem(Code::VEX_Vldmxcsr_m32, mxcsr);
        }
        if let Some(r) = op.dst.first() {
            let load = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
            for part in 0..if a.wide { 2 } else { 1 } {
                let bytes = self.asm.isa.bytes() as usize;
                let from = Source::Memory(context(results + bytes * part));
                self.asm.op2_masked(load, vector(0), from, Mask::None);
                match a.wide {
                    true => self.copy64(r.at, part, vector(0)),
                    false => self.copy32(r.at, vector(0)),
                }
            }
        }
    }

    /// Stores the elements of a source to a table of the context.
    fn keep_values(&mut self, a: Atomic, r: u32, table: usize) {
        let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
        for part in 0..if a.wide { 2 } else { 1 } {
            let value = match a.wide {
                true => self.source64(r, part),
                false => self.source32(r),
            };
            let value = self.in_register(value, 2);
            let bytes = self.asm.isa.bytes() as usize;
            self.asm.store(store, context(table + bytes * part), value);
        }
    }

    fn load_value(&mut self, a: Atomic, to: Register, table: usize) {
        let code = a.code(Code::Mov_r32_rm32, Code::Mov_r64_rm64);
        let from = Source::Memory(element(table, a.size()));
        self.asm.op2(code, a.part(to), from);
    }

    /// The operation of one lane on memory that no other thread accesses.
    fn on_shared(&mut self, a: Atomic, target: MemoryOperand, result: bool) {
        let load = a.code(Code::Mov_r32_rm32, Code::Mov_r64_rm64);
        let store = a.code(Code::Mov_rm32_r32, Code::Mov_rm64_r64);
        if a.operation == Operation::Add && !result {
            let add = a.code(Code::Add_rm32_r32, Code::Add_rm64_r64);
            self.asm.store(add, target, a.part(VALUE));
            return;
        }
        self.asm.op2(load, a.part(OLD), Source::Memory(target));
        self.combine(a);
        self.asm.store(store, target, a.part(NEW));
    }

    /// The operation of one lane on memory that other threads may access.
    fn on_global(&mut self, a: Atomic, target: MemoryOperand, result: bool) {
        let copy = a.code(Code::Mov_r32_rm32, Code::Mov_r64_rm64);
        let accumulator = a.part(Register::RAX);
        let whole = match a.operation {
            Operation::And if !result => Some((Code::And_rm32_r32, Code::And_rm64_r64)),
            Operation::Or if !result => Some((Code::Or_rm32_r32, Code::Or_rm64_r64)),
            Operation::Xor if !result => Some((Code::Xor_rm32_r32, Code::Xor_rm64_r64)),
            Operation::Add => Some((Code::Xadd_rm32_r32, Code::Xadd_rm64_r64)),
            Operation::Exchange => Some((Code::Xchg_rm32_r32, Code::Xchg_rm64_r64)),
            _ => None,
        };
        if let Some((narrow, wide)) = whole {
            let code = a.code(narrow, wide);
            self.asm.locked(code, target, a.part(VALUE));
            if result {
                self.asm.op2(copy, a.part(OLD), a.part(VALUE));
            }
            return;
        }
        let exchange = a.code(Code::Cmpxchg_rm32_r32, Code::Cmpxchg_rm64_r64);
        if a.operation == Operation::CompareAndSwap {
            self.asm.op2(copy, accumulator, a.part(VALUE));
            self.asm.locked(exchange, target, a.part(VALUE2));
            self.asm.op2(copy, a.part(OLD), accumulator);
            return;
        }
        self.asm.op2(copy, accumulator, Source::Memory(target));
        let again = self.asm.here();
        self.asm.op2(copy, a.part(OLD), accumulator);
        self.combine(a);
        self.asm.locked(exchange, target, a.part(NEW));
        self.asm.jump(Code::Jne_rel8_64, again);
    }

    /// Computes the value that replaces the one in memory, as [`combine`](crate::semantics::atomic::combine). Keeps `rax`.
    fn combine(&mut self, a: Atomic) {
        let (old, value, new) = (a.part(OLD), a.part(VALUE), a.part(NEW));
        let value2 = a.part(VALUE2);
        let copy = a.code(Code::Mov_r32_rm32, Code::Mov_r64_rm64);
        let compare = a.code(Code::Cmp_r32_rm32, Code::Cmp_r64_rm64);
        let pick = |e: &mut Self, narrow, wide| {
            e.asm.op2(copy, new, value);
            e.asm.op2(compare, old, value);
            e.asm.op2(a.code(narrow, wide), new, old);
        };
        let apply = |e: &mut Self, narrow, wide| {
            e.asm.op2(copy, new, old);
            e.asm.op2(a.code(narrow, wide), new, value);
        };
        match a.operation {
            Operation::Add => apply(self, Code::Add_r32_rm32, Code::Add_r64_rm64),
            Operation::And => apply(self, Code::And_r32_rm32, Code::And_r64_rm64),
            Operation::Or => apply(self, Code::Or_r32_rm32, Code::Or_r64_rm64),
            Operation::Xor => apply(self, Code::Xor_r32_rm32, Code::Xor_r64_rm64),
            Operation::Exchange => self.asm.op2(copy, new, value),
            Operation::Min { signed: true } => {
                pick(self, Code::Cmovl_r32_rm32, Code::Cmovl_r64_rm64);
            }
            Operation::Min { signed: false } => {
                pick(self, Code::Cmovb_r32_rm32, Code::Cmovb_r64_rm64);
            }
            Operation::Max { signed: true } => {
                pick(self, Code::Cmovg_r32_rm32, Code::Cmovg_r64_rm64);
            }
            Operation::Max { signed: false } => {
                pick(self, Code::Cmova_r32_rm32, Code::Cmova_r64_rm64);
            }
            Operation::Increment => {
                self.asm.op2(copy, new, old);
                self.asm.op_imm(Code::Add_rm32_imm8, new, 1);
                self.asm.op2(Code::Xor_r32_rm32, value2, value2);
                self.asm.op2(compare, old, value);
                self.asm.op2(Code::Cmovae_r32_rm32, new, value2);
            }
            Operation::Decrement => {
                self.asm.op2(copy, new, old);
                self.asm.op_imm(Code::Sub_rm32_imm8, new, 1);
                // The subtraction borrows from zero only.
                self.asm.op2(Code::Cmovb_r32_rm32, new, value);
                self.asm.op2(compare, old, value);
                self.asm.op2(Code::Cmova_r32_rm32, new, value);
            }
            Operation::CompareAndSwap => {
                self.asm.op2(copy, new, old);
                self.asm.op2(compare, old, value);
                let swap = a.code(Code::Cmove_r32_rm32, Code::Cmove_r64_rm64);
                self.asm.op2(swap, new, value2);
            }
            Operation::AddFloat => {
                let to = a.code(Code::VEX_Vmovd_xmm_rm32, Code::VEX_Vmovq_xmm_rm64);
                let from = a.code(Code::VEX_Vmovd_rm32_xmm, Code::VEX_Vmovq_rm64_xmm);
                let add = a.code(
                    Code::VEX_Vaddss_xmm_xmm_xmmm32,
                    Code::VEX_Vaddsd_xmm_xmm_xmmm64,
                );
                self.asm.op2(to, Register::XMM0, old);
                self.asm.op2(to, Register::XMM1, value);
                self.asm
                    .op3(add, Register::XMM0, Register::XMM0, Register::XMM1);
                self.asm.op2(from, new, Register::XMM0);
            }
        }
    }
}

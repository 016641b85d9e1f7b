//! Translation of control flow, entries and exits.
//!
//! The code exists twice: for all lanes of a chunk, and for a part of them (*masked*). A branch that the lanes of the first
//! take in different ways continues in the second. There, lanes wait at the block that they have branched to, and the lanes
//! at the first block run, as in the interpreter; lanes that come to a block where others wait take them along. When all
//! lanes of the chunk run again, the code for all of them continues.

use std::cmp::Reverse;
use std::mem::offset_of;

use iced_x86::{Code, MemoryOperand, Register};

use super::assembler::{Label, Mask, Source, at};
use super::conditional::is_short;
use super::emit::{
    CONTEXT, Emitter, ExitStub, GUARD, INDICES, Lanes, MASK, PENDING, PREDS, REGS32, REGS64,
    RUNNING, RUNNING_UPPER, context,
};
use super::flow::{LiveBefore, access};
use super::isa::Isa;
use super::local;
use crate::bytecode::{BACKWARD, GUARD_NOT, GUARDED, InstKind};
use crate::run::native_context::{Chunk, NativeContext};

/// The field for the lanes that wait at a block.
fn waiting(number: u8) -> MemoryOperand {
    context(offset_of!(NativeContext, waiting) + 2 * usize::from(number))
}

/// The lanes that wait at a block, at the end of a block, where no predicate is read from its register any more.
const MASK_OF_WAITING: Register = Register::K5;

const CALLEE_SAVED: [Register; 6] = [
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

impl<'a> Emitter<'a> {
    /// The function that runs the chunks: `extern "sysv64" fn(context)`.
    pub fn prologue(&mut self) {
        for r in CALLEE_SAVED {
            self.asm.op1(Code::Push_r64, r);
        }
        // The stack pointer is a multiple of 16 at calls.
        self.asm.op_imm(Code::Sub_rm64_imm8, Register::RSP, 8);
        self.asm.op2(Code::Mov_r64_rm64, CONTEXT, Register::RDI);
        let chunk = Source::Memory(context(offset_of!(NativeContext, chunk)));
        self.asm.op2(Code::Mov_r64_rm64, Register::RDX, chunk);
        let next = self.next_chunk;
        self.asm.bind(next);
        for (r, field) in [
            (REGS32, offset_of!(Chunk, regs32)),
            (REGS64, offset_of!(Chunk, regs64)),
            (PREDS, offset_of!(Chunk, preds)),
            (INDICES, offset_of!(Chunk, indices)),
        ] {
            let from = Source::Memory(at(Register::RDX, field as i64));
            self.asm.op2(Code::Mov_r64_rm64, r, from);
        }
        if self.flow.has_collectives() {
            self.begin_or_resume();
        }
        let fuel = context(offset_of!(NativeContext, fuel));
        self.asm
            .op2(Code::Mov_r32_rm32, Register::EAX, Source::Memory(fuel));
        let left = context(offset_of!(NativeContext, left));
        self.asm.store(Code::Mov_rm32_r32, left, Register::EAX);
        let lanes = at(Register::RDX, offset_of!(Chunk, lanes) as i64);
        let all = self.asm.isa.all_lanes() as i32;
        self.asm.mem_imm(Code::Cmp_rm32_imm32, lanes, all);
        let whole = self.asm.label();
        self.asm.jump(Code::Je_rel8_64, whole);
        let entry = context(offset_of!(NativeContext, masked_entry));
        self.asm.op1_mem(Code::Jmp_rm64, entry);
        self.asm.bind(whole);
        let entry = context(offset_of!(NativeContext, entry));
        self.asm.op1_mem(Code::Jmp_rm64, entry);
    }

    /// The ends of a chunk at position `eax`: of masked code, and of code for all lanes. The next chunk runs, unless lanes wait.
    pub fn end(&mut self) {
        let chunk = Source::Memory(context(offset_of!(NativeContext, chunk)));
        let field = |offset: usize| at(Register::RDX, offset as i64);
        let masked_exit = self.masked_exit;
        self.asm.bind(masked_exit);
        // All homes: lanes that wait have values, too.
        self.move_homes(true, |_| true);
        self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, RUNNING);
        self.asm.op2(Code::Mov_r64_rm64, Register::RDX, chunk);
        let there = field(offset_of!(Chunk, there));
        self.asm.store(Code::Mov_rm32_r32, there, Register::ECX);
        let lanes = Source::Memory(field(offset_of!(Chunk, lanes)));
        self.asm.op2(Code::Xor_r32_rm32, Register::ECX, lanes);
        let differences = context(offset_of!(NativeContext, differences));
        self.asm
            .store(Code::Or_rm32_r32, differences, Register::ECX);
        let pending = context(offset_of!(NativeContext, pending));
        self.asm.store(Code::Mov_rm64_r64, pending, PENDING);
        let exited = context(offset_of!(NativeContext, exited));
        self.asm.store(Code::Mov_rm64_r64, exited, Register::RDX);
        // Lanes that wait, and a register file that the next chunk must not overwrite, are left to the caller.
        self.asm.op2(Code::Mov_r64_rm64, Register::RSI, PENDING);
        let exclusive = context(offset_of!(NativeContext, exclusive));
        self.asm
            .op2(Code::Mov_r32_rm32, Register::ECX, Source::Memory(exclusive));
        self.asm
            .op2(Code::Or_r64_rm64, Register::RSI, Register::RCX);
        let common = self.asm.label();
        self.asm.jump(Code::Jmp_rel32_64, common);

        let exit = self.full_exit;
        self.asm.bind(exit);
        self.asm
            .op2(Code::Mov_r32_rm32, Register::ESI, Source::Memory(exclusive));
        let there = self.asm.label();
        self.asm.jump(Code::Jmp_rel32_64, there);
        let exit = self.full_return;
        self.asm.bind(exit);
        self.asm
            .op2(Code::Xor_r32_rm32, Register::ESI, Register::ESI);
        self.asm.bind(there);
        self.asm.op2(Code::Mov_r64_rm64, Register::RDX, chunk);
        let there = field(offset_of!(Chunk, there));
        let all = self.asm.isa.all_lanes() as i32;
        self.asm.mem_imm(Code::Mov_rm32_imm32, there, all);
        self.asm.bind(common);
        let pc = field(offset_of!(Chunk, pc));
        self.asm.store(Code::Mov_rm32_r32, pc, Register::EAX);
        let meeting = context(offset_of!(NativeContext, meeting));
        let first = self.asm.label();
        let known = self.asm.label();
        self.asm.mem_imm(Code::Cmp_rm32_imm8, meeting, -1);
        self.asm.jump(Code::Je_rel8_64, first);
        self.asm
            .op2(Code::Xor_r32_rm32, Register::EAX, Source::Memory(meeting));
        self.asm
            .store(Code::Or_rm32_r32, differences, Register::EAX);
        self.asm.jump(Code::Jmp_rel8_64, known);
        self.asm.bind(first);
        self.asm.store(Code::Mov_rm32_r32, meeting, Register::EAX);
        self.asm.bind(known);
        let left = Source::Memory(context(offset_of!(NativeContext, left)));
        let least = context(offset_of!(NativeContext, least));
        self.asm.op2(Code::Mov_r32_rm32, Register::EAX, left);
        let more = self.asm.label();
        self.asm
            .op2(Code::Cmp_r32_rm32, Register::EAX, Source::Memory(least));
        self.asm.jump(Code::Jge_rel8_64, more);
        self.asm.store(Code::Mov_rm32_r32, least, Register::EAX);
        self.asm.bind(more);
        let done = self.asm.label();
        if self.flow.has_collectives() {
            self.end_of_pair(common, done);
        }
        self.asm.op_imm(
            Code::Add_rm64_imm8,
            Register::RDX,
            size_of::<Chunk>() as i32,
        );
        let chunk = context(offset_of!(NativeContext, chunk));
        self.asm.store(Code::Mov_rm64_r64, chunk, Register::RDX);
        self.asm
            .op2(Code::Test_rm64_r64, Register::RSI, Register::RSI);
        self.asm.jump(Code::Jne_rel8_64, done);
        let end = Source::Memory(context(offset_of!(NativeContext, end)));
        self.asm.op2(Code::Cmp_r64_rm64, Register::RDX, end);
        let next = self.next_chunk;
        self.asm.jump(Code::Jne_rel32_64, next);
        self.asm.bind(done);
        self.asm.op0(Code::VEX_Vzeroupper);
        self.asm.op_imm(Code::Add_rm64_imm8, Register::RSP, 8);
        for &r in CALLEE_SAVED.iter().rev() {
            self.asm.op1(Code::Pop_r64, r);
        }
        self.asm.op0(Code::Retnq);
    }

    /// Executes the instruction at position `eax` for the lanes `ecx` in the engine; `eax` is 1 if it faults.
    pub fn execute_instruction(&mut self) {
        let execute = self.execute;
        self.asm.bind(execute);
        self.asm.op_imm(Code::Sub_rm64_imm8, Register::RSP, 8);
        self.move_homes(true, |_| true);
        let saved = |n: u32| context(offset_of!(NativeContext, saved_masks) + 4 * n as usize);
        let masks = match self.asm.isa {
            Isa::Avx2 => 0..0,
            Isa::Avx512 => 1..8,
        };
        for n in masks.clone() {
            let k = Register::K0 + n;
            self.asm.store(Code::VEX_Kmovd_m32_kr, saved(n), k);
        }
        self.asm.store_mask_registers();
        self.asm.op2(Code::Mov_r64_rm64, Register::RDI, CONTEXT);
        self.asm
            .op2(Code::Mov_r32_rm32, Register::ESI, Register::EAX);
        self.asm
            .op2(Code::Mov_r32_rm32, Register::EDX, Register::ECX);
        self.asm.op0(Code::VEX_Vzeroupper);
        let function = context(offset_of!(NativeContext, execute));
        self.asm.op1_mem(Code::Call_rm64, function);
        for n in masks {
            let from = Source::Memory(saved(n));
            self.asm
                .op2(Code::VEX_Kmovd_kr_km32, Register::K0 + n, from);
        }
        self.asm.load_mask_registers();
        self.move_homes(false, |_| true);
        self.asm.op_imm(Code::Add_rm64_imm8, Register::RSP, 8);
        self.asm.op0(Code::Retnq);
    }

    /// Runs the lanes that wait at the first block at which any do.
    pub fn dispatch_waiting(&mut self) {
        let dispatch = self.dispatch;
        self.asm.bind(dispatch);
        self.asm.op2(Code::Tzcnt_r64_rm64, Register::RCX, PENDING);
        let blocks = Source::Memory(context(offset_of!(NativeContext, blocks)));
        self.asm.op2(Code::Mov_r64_rm64, Register::RAX, blocks);
        // The block takes its lanes along.
        self.asm
            .op3(Code::VEX_Kxorw_kr_kr_kr, RUNNING, RUNNING, RUNNING);
        let to = MemoryOperand::with_base_index_scale(Register::RAX, Register::RCX, 8);
        self.asm.op1_mem(Code::Jmp_rm64, to);
    }

    /// The entry of a block for all lanes.
    pub fn enter_full(&mut self, block: usize) -> Label {
        let entry = self.asm.here();
        let flow = self.flow;
        let live = &flow.blocks[block].live_in;
        self.move_homes(false, |n| live.contains(n));
        let label = self.full[block];
        self.asm.jump(Code::Jmp_rel32_64, label);
        entry
    }

    /// The entry of a block for a part of the lanes.
    pub fn enter_masked(&mut self, body: Label) -> Label {
        let entry = self.asm.here();
        // All homes: exits store all of them, and lanes that are elsewhere have values.
        self.move_homes(false, |_| true);
        let lanes = Source::Memory(at(Register::RDX, offset_of!(Chunk, lanes) as i64));
        self.asm.op2(Code::VEX_Kmovd_kr_km32, RUNNING, lanes);
        self.upper_lanes();
        self.clear_waiting();
        self.asm.jump(Code::Jmp_rel32_64, body);
        entry
    }

    pub fn upper_lanes(&mut self) {
        let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
        self.asm
            .op2_imm(shift, RUNNING_UPPER, RUNNING, 8, Mask::None);
    }

    /// Translates all blocks for all lanes or for a part of them.
    pub fn blocks(&mut self, masked: bool) -> Vec<Label> {
        self.masked = masked;
        let mut bodies = Vec::new();
        for n in 0..self.flow.blocks.len() {
            self.begin_block(n);
            let label = if masked {
                self.partial[n]
            } else {
                self.full[n]
            };
            self.asm.bind(label);
            if masked {
                self.merge_waiting(n);
            }
            bodies.push(self.asm.here());
            self.block(n);
        }
        bodies
    }

    pub fn block(&mut self, n: usize) {
        let flow = self.flow;
        let b = &flow.blocks[n];
        if b.interpreted {
            let exit = self.exit(b.code.start);
            self.asm.jump(Code::Jmp_rel32_64, exit);
            return;
        }
        if b.collective {
            self.collective(n);
            return;
        }
        let mut branch = None;
        for pc in b.code.clone() {
            self.before_instruction(pc);
            self.begin_instruction(pc);
            let inst = self.inst();
            if inst.kind == InstKind::Bra && inst.flags & GUARDED != 0 {
                // Where the interpreter executes the branch, no register is replaced any more.
                self.predicate(inst.guard);
            }
            let dirty = self.predicates.dirty();
            if !dirty.is_empty() {
                self.dirty_predicates.insert((self.masked, pc), dirty);
            }
            if inst.kind == InstKind::Bra {
                branch = Some(inst);
            } else if self.defines_address() {
                continue;
            } else if let Some(op) = self.program.vector_ops[pc as usize] {
                self.lane_function(op);
            } else if inst.kind == InstKind::Atom {
                self.atomic();
            } else if inst.kind == InstKind::FrameAddr {
                self.frame_address();
            } else if let Some(a) = access(self.program, inst) {
                self.memory_access(a);
            } else if let Some(a) = local::access(self.program, inst) {
                self.local_access(a);
            }
        }
        self.compute_at_end();
        self.store_live_predicates();
        // Other blocks rely on canonical NaNs.
        for location in std::mem::take(&mut self.raw_nans) {
            let number = flow.number(location);
            if number.is_some_and(|number| b.live_out.contains(number)) {
                self.raw_nans.insert(location);
                self.canonicalize(location);
            }
        }
        self.raw_nans.clear();
        let Some(inst) = branch else {
            return;
        };
        let target = flow.block_at(inst.target);
        let backward = inst.flags & BACKWARD != 0;
        let guarded = inst.flags & GUARDED != 0;
        match (self.masked, guarded) {
            (false, false) => self.go_full(target, backward),
            (false, true) => self.branch_full(n, target, backward),
            (true, false) => self.go_masked(n, target, backward),
            (true, true) => self.branch_masked(n, target, backward),
        }
    }

    /// Decrements the fuel at a backward branch, and exits to the interpreter when it is used up.
    fn burn(&mut self, target: usize) {
        let left = context(offset_of!(NativeContext, left));
        self.asm.op1_mem(Code::Dec_rm32, left);
        let exit = self.exit_at(target);
        self.asm.jump(Code::Jle_rel32_64, exit);
    }

    /// The exit to the interpreter at the start of a block.
    fn exit_at(&mut self, block: usize) -> Label {
        let current = std::mem::replace(&mut self.block, block);
        let exit = self.exit(self.flow.blocks[block].code.start);
        self.block = current;
        exit
    }

    fn go_full(&mut self, target: usize, backward: bool) {
        if backward {
            self.burn(target);
        }
        let to = self.full[target];
        self.asm.jump(Code::Jmp_rel32_64, to);
    }

    /// A branch that all lanes of the chunk take, or none, or that continues in masked code.
    fn branch_full(&mut self, n: usize, target: usize, backward: bool) {
        let inst = self.inst();
        let negated = inst.flags & GUARD_NOT != 0;
        let p = self.predicate(inst.guard);
        // The carry flag tells whether the predicate is true in all lanes, the zero flag whether in none.
        self.asm.op2(Code::VEX_Kortestw_kr_kr, p, p);
        let (all, not_all, some) = match negated {
            false => (Code::Jb_rel32_64, Code::Jae_rel32_64, Code::Jne_rel32_64),
            true => (Code::Je_rel32_64, Code::Jne_rel32_64, Code::Jae_rel32_64),
        };
        let diverge = self.asm.label();
        if backward {
            let stay = self.asm.label();
            self.asm.jump(not_all, stay);
            self.go_full(target, backward);
            self.asm.bind(stay);
        } else {
            let to = self.full[target];
            self.asm.jump(all, to);
        }
        self.asm.jump(some, diverge);
        if !self.flow.can_wait {
            // The interpreter executes the branch.
            let pc = self.pc;
            let exit = self.exit(pc);
            self.cold.push(Box::new(move |e| {
                e.asm.bind(diverge);
                e.asm.jump(Code::Jmp_rel32_64, exit);
            }));
            return;
        }
        self.cold.push(Box::new(move |e| {
            (e.block, e.masked, e.lanes) = (n, true, Lanes::Running);
            e.asm.bind(diverge);
            let short = is_short(e.program, e.flow, n, target);
            if short && negated {
                return e.short_conditional(n, target, p);
            }
            e.asm.op2(Code::VEX_Knotw_kr_kr, GUARD, p);
            if short {
                return e.short_conditional(n, target, GUARD);
            }
            e.clear_waiting();
            e.asm.op2(Code::VEX_Kmovw_kr_km16, MASK, p);
            let (taken, rest) = if negated {
                (GUARD, MASK)
            } else {
                (MASK, GUARD)
            };
            e.divide_lanes(n, target, backward, taken, rest);
        }));
    }

    /// Sends `taken` to the target and `rest` to the next block: those at the first of the two blocks run.
    fn divide_lanes(
        &mut self,
        n: usize,
        target: usize,
        backward: bool,
        taken: Register,
        rest: Register,
    ) {
        let (waits, runs) = if backward {
            (n + 1, taken)
        } else {
            (target, rest)
        };
        let leaves = if backward { rest } else { taken };
        self.wait(waits, leaves);
        self.asm.op2(Code::VEX_Kmovw_kr_km16, RUNNING, runs);
        self.upper_lanes();
        if backward {
            self.go_masked(n, target, backward);
        } else {
            let next = self.partial[n + 1];
            self.asm.jump(Code::Jmp_rel32_64, next);
        }
    }

    /// No lanes wait at any block.
    pub fn clear_waiting(&mut self) {
        self.asm
            .op2(Code::Xor_r32_rm32, Register::R15D, Register::R15D);
    }

    /// Lets lanes wait at a block.
    pub fn wait(&mut self, block: usize, lanes: Register) {
        let Some(number) = self.flow.blocks[block].waiting else {
            return;
        };
        let field = waiting(number);
        self.asm.op2(
            Code::VEX_Kmovw_kr_km16,
            MASK_OF_WAITING,
            Source::Memory(field),
        );
        self.asm.op3(
            Code::VEX_Korw_kr_kr_kr,
            MASK_OF_WAITING,
            MASK_OF_WAITING,
            lanes,
        );
        self.asm
            .store(Code::VEX_Kmovw_m16_kr, field, MASK_OF_WAITING);
        self.asm
            .op_imm(Code::Bts_rm64_imm8, PENDING, i32::from(number));
    }

    /// Masked code goes to a block, unless lanes wait at one before it.
    fn go_masked(&mut self, n: usize, target: usize, backward: bool) {
        if backward {
            self.burn(target);
        } else {
            let between = self.flow.blocks[n + 1..target].iter();
            let numbers = between.filter_map(|b| b.waiting);
            let set = numbers.fold(0u64, |set, number| set | 1 << number);
            if set != 0 {
                let go = self.asm.label();
                self.asm.op2_imm64(Register::RAX, set);
                self.asm
                    .store_register(Code::Test_rm64_r64, PENDING, Register::RAX);
                self.asm.jump(Code::Je_rel32_64, go);
                self.wait(target, RUNNING);
                let dispatch = self.dispatch;
                self.asm.jump(Code::Jmp_rel32_64, dispatch);
                self.asm.bind(go);
            }
        }
        let to = self.partial[target];
        self.asm.jump(Code::Jmp_rel32_64, to);
    }

    /// A branch in masked code.
    fn branch_masked(&mut self, n: usize, target: usize, backward: bool) {
        let inst = self.inst();
        let p = self.predicate(inst.guard);
        let taken = MASK;
        match inst.flags & GUARD_NOT != 0 {
            false => self.asm.op3(Code::VEX_Kandw_kr_kr_kr, taken, p, RUNNING),
            true => self.asm.op3(Code::VEX_Kandnw_kr_kr_kr, taken, p, RUNNING),
        }
        let (none, all) = (self.asm.label(), self.asm.label());
        self.asm.op2(Code::VEX_Kortestw_kr_kr, taken, taken);
        self.asm.jump(Code::Je_rel32_64, none);
        self.asm
            .op3(Code::VEX_Kxorw_kr_kr_kr, GUARD, taken, RUNNING);
        self.asm.op2(Code::VEX_Kortestw_kr_kr, GUARD, GUARD);
        self.asm.jump(Code::Je_rel32_64, all);
        self.divide_lanes(n, target, backward, taken, GUARD);
        self.asm.bind(all);
        self.go_masked(n, target, backward);
        self.asm.bind(none);
    }

    /// The start of a block in masked code: takes along the lanes that wait there, and returns to the interpreter where other
    /// fragments of the warp may be.
    fn merge_waiting(&mut self, n: usize) {
        let flow = self.flow;
        let b = &flow.blocks[n];
        if let Some(number) = b.waiting {
            let (merge, on) = (self.asm.label(), self.asm.label());
            self.asm
                .op_imm(Code::Bt_rm64_imm8, PENDING, i32::from(number));
            self.asm.jump(Code::Jb_rel32_64, merge);
            self.asm.bind(on);
            let full = self.full[n];
            self.cold.push(Box::new(move |e| {
                e.asm.bind(merge);
                let field = waiting(number);
                e.asm
                    .op2(Code::VEX_Kmovw_kr_km16, MASK, Source::Memory(field));
                e.asm.mem_imm(Code::Mov_rm16_imm16, field, 0);
                e.asm.op3(Code::VEX_Korw_kr_kr_kr, RUNNING, RUNNING, MASK);
                e.upper_lanes();
                e.asm
                    .op_imm(Code::Btr_rm64_imm8, PENDING, i32::from(number));
                e.asm.op2(Code::VEX_Kortestw_kr_kr, RUNNING, RUNNING);
                e.asm.jump(Code::Jae_rel32_64, on);
                e.asm.store_register(Code::Test_rm64_r64, PENDING, PENDING);
                e.asm.jump(Code::Jne_rel32_64, on);
                let stop = context(offset_of!(NativeContext, stop));
                e.asm.mem_imm(Code::Cmp_rm32_imm8, stop, -1);
                e.asm.jump(Code::Jne_rel32_64, on);
                e.asm.jump(Code::Jmp_rel32_64, full);
            }));
        }
        let stop = context(offset_of!(NativeContext, stop));
        self.asm
            .mem_imm(Code::Cmp_rm32_imm32, stop, b.code.start as i32);
        let exit = self.exit(b.code.start);
        self.asm.jump(Code::Jbe_rel32_64, exit);
    }

    /// Emits what lies behind the blocks.
    pub fn finish_translation(&mut self) {
        loop {
            let cold = std::mem::take(&mut self.cold);
            if cold.is_empty() {
                break;
            }
            for emit in cold {
                emit(self);
            }
        }
        let mut stubs = std::mem::take(&mut self.stubs);
        // The live slots of a block are found from its end to its start.
        stubs.sort_by_key(|s| (s.block, Reverse(s.pc)));
        let mut live = LiveBefore::default();
        for stub in stubs {
            self.asm.bind(stub.label);
            let ExitStub { block, pc, .. } = stub;
            let flow = self.flow;
            (self.block, self.masked) = (block, stub.masked);
            for (location, k) in (self.dirty_predicates.get(&(stub.masked, pc)).cloned())
                .into_iter()
                .flatten()
            {
                self.store_predicate(location, k);
            }
            if stub.masked {
                self.compute_for_exit(pc, |_| true);
                self.let_others_wait(stub.others);
                self.asm
                    .op_imm(Code::Mov_r32_imm32, Register::EAX, pc as i32);
                let to = self.masked_exit;
                self.asm.jump(Code::Jmp_rel32_64, to);
                continue;
            }
            let inst = &self.program.code[pc as usize];
            let returns = inst.kind == InstKind::Ret && inst.flags & GUARDED == 0;
            if !returns {
                live.go_to(flow, self.program, block, pc);
                let number = |slot| flow.number(slot);
                self.compute_for_exit(pc, |slot| number(slot).is_some_and(|n| live.contains(n)));
                self.move_homes(true, |n| live.contains(n));
            }
            self.asm
                .op_imm(Code::Mov_r32_imm32, Register::EAX, pc as i32);
            let to = if returns {
                self.full_return
            } else if stub.suspends {
                self.suspend
            } else {
                self.full_exit
            };
            self.asm.jump(Code::Jmp_rel32_64, to);
        }
    }
}

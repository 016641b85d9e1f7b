//! The state of the translation of one function, and access to slots and predicates.
//!
//! Registers:
//!
//! | register | contents |
//! |---|---|
//! | `rbx`, `r12`, `r13` | slots of 32 and 64 bits and predicates of the chunk, by location |
//! | `rbp` | thread indices of the chunk |
//! | `r14` | [`NativeContext`] |
//! | `r15` | the blocks at which lanes wait, in masked code |
//! | `zmm0` to `zmm5` | scratch; `zmm5` is the destination, if its home is the register file |
//! | `zmm6` to `zmm31` | [homes](super::homes); fewer with [AVX2](super::avx2) |
//! | `k1`, `k2` | the lanes that run, and those of the upper half, in masked code |
//! | `k0`, `k3`, `k4` | scratch; `k4` is the guard of the instruction |
//! | `k5` to `k7` | [predicates](super::predicates) that the block has read or written |

use std::collections::{BTreeSet, HashMap};
use std::mem::offset_of;

use iced_x86::{Code, MemoryOperand, Register};

use super::assembler::{Assembler, Label, Mask, Source, at};
use super::checks::Roots;
use super::flow::Flow;
use super::homes::{Home, Homes, SCRATCH, vector};
use super::isa::Isa;
use super::memory::Groups;
use super::predicates::{Dirty, Predicates};
use crate::bytecode::{GUARD_NOT, GUARDED, Inst, Program};
use crate::register_file::fixed;
use crate::run::native_context::NativeContext;

/// Slots of 32 bits.
pub const REGS32: Register = Register::RBX;
/// Slots of 64 bits.
pub const REGS64: Register = Register::R12;
/// Predicates.
pub const PREDS: Register = Register::R13;
/// Thread indices.
pub const INDICES: Register = Register::RBP;
/// The context.
pub const CONTEXT: Register = Register::R14;
/// Blocks at which lanes wait.
pub const PENDING: Register = Register::R15;
/// The lanes that run.
pub const RUNNING: Register = Register::K1;
/// Those of the upper half of the chunk.
pub const RUNNING_UPPER: Register = Register::K2;
/// Scratch mask.
pub const MASK: Register = Register::K3;
/// The lanes that execute a guarded instruction.
pub const GUARD: Register = Register::K4;

/// A field of the context.
pub fn context(offset: usize) -> MemoryOperand {
    at(CONTEXT, offset as i64)
}

/// A [constant](crate::run::native_context::constant) in every lane.
pub fn constant(n: usize) -> Source {
    Source::Broadcast(context(offset_of!(NativeContext, constants) + 8 * n))
}

/// An exit to the interpreter, which is emitted behind the code.
pub struct ExitStub {
    /// Where it begins.
    pub label: Label,
    /// Whether masked code jumps there.
    pub masked: bool,
    /// The block of the position.
    pub block: usize,
    /// The position at which the interpreter goes on.
    pub pc: u32,
    /// Whether the chunk waits there for its peer, if that still runs.
    pub suspends: bool,
    /// The block at which the lanes wait that do not run, in [short conditional code](super::conditional).
    pub others: Option<usize>,
}

/// Emits code that is rarely executed.
pub type Cold<'a> = Box<dyn FnOnce(&mut Emitter<'a>) + 'a>;

/// The translation of a function.
pub struct Emitter<'a> {
    /// The instructions so far.
    pub asm: Assembler,
    /// The program.
    pub program: &'a Program,
    /// The blocks of the function.
    pub flow: &'a Flow,
    /// Where slots live.
    pub homes: &'a Homes,
    /// Whether the code that is emitted runs a part of the lanes.
    pub masked: bool,
    /// The block that is being translated.
    pub block: usize,
    /// The position that is being translated.
    pub pc: u32,
    /// The lanes that the instruction writes.
    pub lanes: Lanes,
    /// In [short conditional code](super::conditional): the block at which the other lanes go on.
    pub others: Option<usize>,
    /// Slots whose elements may be NaNs that are not canonical.
    pub raw_nans: BTreeSet<u32>,
    /// Addresses that have been checked in the block.
    pub groups: Groups,
    /// Roots of addresses that have been compared in the block.
    pub roots: Roots,
    /// The predicates in mask registers.
    pub predicates: Predicates,
    /// The predicates that are not in the register file, by whether code is masked, and position.
    pub dirty_predicates: HashMap<(bool, u32), Dirty>,
    /// Exits to the interpreter.
    pub stubs: Vec<ExitStub>,
    /// Code that is rarely executed, to be emitted behind the blocks.
    pub cold: Vec<Cold<'a>>,
    /// The start of each block in code for all lanes.
    pub full: Vec<Label>,
    /// The start of each block in code for a part of the lanes.
    pub partial: Vec<Label>,
    /// Executes an instruction by its function in the engine.
    pub execute: Label,
    /// Begins the chunk `rdx`.
    pub next_chunk: Label,
    /// Ends a chunk at position `eax`.
    pub full_exit: Label,
    /// Ends a chunk whose lanes are at a `ret`, position `eax`.
    pub full_return: Label,
    /// Ends a chunk in masked code at position `eax`.
    pub masked_exit: Label,
    /// Runs the first block at which lanes wait.
    pub dispatch: Label,
    /// Lets a chunk wait for its peer at position `eax`.
    pub suspend: Label,
}

/// The lanes that an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// All lanes of the chunk.
    All,
    /// Those that run.
    Running,
    /// Those of its guard.
    Guarded,
}

/// Where an instruction writes a vector.
#[derive(Clone, Copy)]
pub struct Destination {
    /// The register to write.
    pub register: Register,
    /// The lanes to write.
    pub mask: Mask,
    store: Option<MemoryOperand>,
}

impl<'a> Emitter<'a> {
    /// An empty translation.
    pub fn new(program: &'a Program, flow: &'a Flow, homes: &'a Homes, isa: Isa) -> Self {
        let mut asm = Assembler::new(isa);
        asm.mask_registers = homes.masks();
        let mut labels = |n: usize| (0..n).map(|_| asm.label()).collect::<Vec<_>>();
        let (full, partial) = (labels(flow.blocks.len()), labels(flow.blocks.len()));
        let (execute, next_chunk) = (asm.label(), asm.label());
        let (full_exit, full_return) = (asm.label(), asm.label());
        let (masked_exit, dispatch) = (asm.label(), asm.label());
        let suspend = asm.label();
        Self {
            asm,
            program,
            flow,
            homes,
            masked: false,
            block: 0,
            pc: 0,
            lanes: Lanes::All,
            others: None,
            raw_nans: BTreeSet::new(),
            groups: Groups::default(),
            roots: Roots::default(),
            predicates: Predicates::default(),
            dirty_predicates: HashMap::new(),
            stubs: Vec::new(),
            cold: Vec::new(),
            full,
            partial,
            execute,
            next_chunk,
            full_exit,
            full_return,
            masked_exit,
            dispatch,
            suspend,
        }
    }

    /// The instruction that is being translated.
    pub fn inst(&self) -> &'a Inst {
        &self.program.code[self.pc as usize]
    }

    /// Forgets what is known inside a block.
    pub fn begin_block(&mut self, block: usize) {
        self.block = block;
        self.predicates = Predicates::default();
        self.raw_nans.clear();
        self.groups = Groups::of_block(self.program, &self.flow.blocks[block]);
        self.roots = Roots::default();
    }

    /// Selects the lanes of the instruction at `pc`, and computes its guard.
    pub fn begin_instruction(&mut self, pc: u32) {
        self.pc = pc;
        let inst = self.inst();
        self.lanes = if self.masked {
            Lanes::Running
        } else {
            Lanes::All
        };
        if inst.flags & GUARDED != 0 && inst.kind != crate::bytecode::InstKind::Bra {
            let p = self.predicate(inst.guard);
            let negated = inst.flags & GUARD_NOT != 0;
            match (self.masked, negated) {
                (false, false) => self.asm.op2(Code::VEX_Kmovw_kr_km16, GUARD, p),
                (false, true) => self.asm.op2(Code::VEX_Knotw_kr_kr, GUARD, p),
                (true, false) => self.asm.op3(Code::VEX_Kandw_kr_kr_kr, GUARD, p, RUNNING),
                (true, true) => self.asm.op3(Code::VEX_Kandnw_kr_kr_kr, GUARD, p, RUNNING),
            }
            self.lanes = Lanes::Guarded;
            // What the instruction writes may be no result of arithmetic, and must not change at the end of the block.
            for o in self.program.operands.of(pc) {
                if o.written {
                    self.canonicalize(o.at);
                }
            }
        }
    }

    /// The mask register of the instruction's lanes; `None` if it executes in all of them.
    pub fn lane_mask(&self) -> Option<Register> {
        match self.lanes {
            Lanes::All => None,
            Lanes::Running => Some(RUNNING),
            Lanes::Guarded => Some(GUARD),
        }
    }

    /// The mask of the instruction's lanes for half `part` of a slot of 64 bits. May use the scratch mask.
    pub fn half_mask(&mut self, part: usize) -> Option<Register> {
        match (self.lanes, part) {
            (Lanes::All, _) => None,
            (Lanes::Running, 0) => Some(RUNNING),
            (Lanes::Running, _) => Some(RUNNING_UPPER),
            (Lanes::Guarded, 0) => Some(GUARD),
            (Lanes::Guarded, _) => {
                self.asm
                    .op2_imm(Code::VEX_Kshiftrw_kr_kr_imm8, MASK, GUARD, 8, Mask::None);
                Some(MASK)
            }
        }
    }

    /// The home of the slot at a location.
    pub fn home(&self, location: u32) -> Home {
        let number = self.flow.number(location);
        number.map_or(Home::Memory, |n| self.homes.of(n))
    }

    /// The 32-bit elements of the slot at a location.
    pub fn source32(&mut self, location: u32) -> Source {
        if let Some(axis) = fixed::TID.iter().position(|t| *t == location) {
            return Source::Memory(at(INDICES, 128 * axis as i64));
        }
        match self.home(location) {
            Home::One(r) => Source::Reg(r),
            _ => Source::Memory(at(REGS32, location.into())),
        }
    }

    /// Half `part` of the 64-bit elements of the slot at a location.
    pub fn source64(&mut self, location: u32, part: usize) -> Source {
        match self.home(location) {
            Home::Two(low, high) => Source::Reg([low, high][part]),
            _ => Source::Memory(self.half64(location, part)),
        }
    }

    /// A source in a register: its own, or the scratch register with this number.
    pub fn in_register(&mut self, source: Source, scratch: u32) -> Register {
        if let Source::Reg(r) = source {
            return r;
        }
        let to = vector(scratch);
        self.asm
            .op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, to, source);
        to
    }

    /// Where the instruction writes the 32-bit elements of a slot. Uses the last scratch register.
    pub fn destination32(&mut self, location: u32) -> Destination {
        let mask = self.lane_mask();
        self.destination(
            self.home_register(location, 0),
            at(REGS32, location.into()),
            mask,
        )
    }

    /// Where the instruction writes half `part` of the 64-bit elements of a slot. Uses the last scratch register.
    pub fn destination64(&mut self, location: u32, part: usize) -> Destination {
        let mask = self.half_mask(part);
        self.destination(
            self.home_register(location, part),
            self.half64(location, part),
            mask,
        )
    }

    /// Half `part` of the 64-bit elements of the slot at a location, in the register file.
    fn half64(&self, location: u32, part: usize) -> MemoryOperand {
        let offset = self.asm.isa.bytes() * part as i64;
        at(REGS64, i64::from(location) + offset)
    }

    /// Loads the bits of all lanes of a chunk to `ecx`.
    pub fn load_all_lanes(&mut self) {
        let lanes = self.asm.isa.all_lanes() as i32;
        self.asm.op_imm(Code::Mov_r32_imm32, Register::ECX, lanes);
    }

    fn home_register(&self, location: u32, part: usize) -> Option<Register> {
        match self.home(location) {
            Home::Memory => None,
            Home::One(r) => Some(r),
            Home::Two(low, high) => Some([low, high][part]),
        }
    }

    fn destination(
        &mut self,
        home: Option<Register>,
        memory: MemoryOperand,
        mask: Option<Register>,
    ) -> Destination {
        let register = home.unwrap_or(vector(SCRATCH - 1));
        if home.is_none() && mask.is_some() {
            // The other lanes keep their elements.
            self.asm.op2(
                Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512,
                register,
                Source::Memory(memory),
            );
        }
        Destination {
            register,
            mask: mask.map_or(Mask::None, Mask::Merge),
            store: home.is_none().then_some(memory),
        }
    }

    /// Completes the write to a destination.
    pub fn finish(&mut self, d: Destination) {
        if let Some(to) = d.store {
            self.asm
                .store(Code::EVEX_Vmovdqa32_zmmm512_k1z_zmm, to, d.register);
        }
    }

    /// The exit to the interpreter at `pc` of the current block.
    pub fn exit(&mut self, pc: u32) -> Label {
        let label = self.asm.label();
        self.stubs.push(ExitStub {
            label,
            masked: self.masked,
            block: self.block,
            pc,
            suspends: false,
            others: self.others,
        });
        label
    }

    /// Executes the current instruction by its function in the engine, with all slots in the register file.
    pub fn call_engine(&mut self) {
        self.compute_base();
        let mask = self.lane_mask();
        self.asm
            .op_imm(Code::Mov_r32_imm32, Register::EAX, self.pc as i32);
        match mask {
            None => self.load_all_lanes(),
            Some(k) => self.asm.op2(Code::VEX_Kmovw_r32_kr, Register::ECX, k),
        }
        self.asm.jump(Code::Call_rel32_64, self.execute);
        self.asm
            .op2(Code::Test_rm32_r32, Register::EAX, Register::EAX);
        let exit = self.exit(self.pc);
        self.asm.jump(Code::Jne_rel32_64, exit);
    }

    /// Loads or stores the homes in registers.
    pub fn move_homes(&mut self, store: bool, wanted: impl Fn(usize) -> bool) {
        let bytes = self.asm.isa.bytes();
        for n in self.homes.in_registers() {
            if !wanted(n) {
                continue;
            }
            let location = i64::from(self.flow.slots[n].0);
            let mut move_one = |r: Register, memory: MemoryOperand| {
                if store {
                    self.asm
                        .store(Code::EVEX_Vmovdqa32_zmmm512_k1z_zmm, memory, r);
                } else {
                    let from = Source::Memory(memory);
                    self.asm.op2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, r, from);
                }
            };
            match self.homes.of(n) {
                Home::Memory => {}
                Home::One(r) => move_one(r, at(REGS32, location)),
                Home::Two(low, high) => {
                    move_one(low, at(REGS64, location));
                    move_one(high, at(REGS64, location + bytes));
                }
            }
        }
    }

    /// Makes the NaNs of a slot canonical, if they may not be.
    pub fn canonicalize(&mut self, location: u32) {
        if !self.raw_nans.remove(&location) {
            return;
        }
        if let Home::One(r) = self.home(location) {
            let mask = if self.masked {
                Mask::Merge(RUNNING)
            } else {
                Mask::None
            };
            self.canonicalize_register(r, mask);
        }
    }

    /// Makes the NaNs in the lanes of a register canonical. Uses the scratch mask.
    pub fn canonicalize_register(&mut self, r: Register, mask: Mask) {
        if self.asm.isa == Isa::Avx2 {
            return self.asm.avx2_canonicalize(r, mask);
        }
        const UNORDERED: i32 = 3;
        self.asm.op3_imm(
            Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
            MASK,
            r,
            r,
            UNORDERED,
            mask,
        );
        let nan = constant(crate::run::native_context::constant::NAN32);
        let Source::Broadcast(nan) = nan else { return };
        self.asm.op2_masked(
            Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32,
            r,
            Source::Memory(nan),
            Mask::Merge(MASK),
        );
    }
}

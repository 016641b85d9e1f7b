//! Warp collectives: `shfl`, `vote`, `redux`, `match`, `elect`, `bar.warp.sync`, `activemask`.
//!
//! A chunk is half a warp, and a collective needs both (with AVX2 there are four chunks, and the interpreter executes collectives). The two chunks of a whole warp, *peers*, therefore take turns: the one
//! that comes to a collective first stores its slots, as at an exit, and *waits* there while the other one runs. When that comes to the
//! same collective, it reads what the first has contributed from the register file, leaves its own contribution in
//! [`NativeContext::exchange`], and goes on without storing anything. At the next collective it waits in turn: the first one
//! goes on, with the result of the first collective, and completes the second one. So slots are stored and loaded once per
//! collective and warp, and the interpreter is not involved.
//!
//! This is limited to what needs no analysis at run time: all 32 lanes are live, have come to the same position in code for all
//! lanes of a chunk, and are members. In all other cases (a warp with fewer threads, lanes that are elsewhere, other member
//! masks) both chunks exit to the interpreter at the positions where they are, and it executes the collective.
//!
//! `shfl`, `vote`, `redux` of integers, `bar.warp.sync` and `activemask` are translated; the engine executes the others for
//! both chunks.

use std::mem::offset_of;

use cupyrite_ptx::ir::{AtomOp, ShflMode, Type, VoteMode};
use iced_x86::{Code, MemoryOperand, Register};

use super::assembler::{Label, Mask, Source, at};
use super::emit::{Emitter, Lanes, MASK, PREDS, constant, context};
use super::homes::vector;
use super::isa::Isa;
use crate::bytecode::{GUARDED, InstKind, Program, VOTE_NOT, shfl_mode, vote_mode};
use crate::register_file::fixed;
use crate::run::native_context::{Chunk, NativeContext, constant as constants};
use crate::run::warp_collectives::members_at;
use crate::semantics::collective::ReduxOp;

/// The chunk that runs.
const CHUNK: Register = Register::RDX;
/// Its peer.
const PEER: Register = Register::RCX;

/// Whether code executes an instruction as a warp collective.
pub fn is_collective(program: &Program, pc: u32, isa: Isa) -> bool {
    let inst = &program.code[pc as usize];
    let known = matches!(
        inst.kind,
        InstKind::Shfl
            | InstKind::Vote
            | InstKind::Redux
            | InstKind::Match
            | InstKind::Elect
            | InstKind::BarWarp
            | InstKind::ActiveMask
    );
    known && inst.flags & GUARDED == 0 && isa == Isa::Avx512
}

/// Whether `redux` is one of integers.
fn is_integer(op: ReduxOp) -> bool {
    op.ty != Type::F32
}

/// A field of the chunk that runs.
fn own_field(offset: usize) -> MemoryOperand {
    at(CHUNK, offset as i64)
}

/// A field of its peer.
fn peer_field(offset: usize) -> MemoryOperand {
    at(PEER, offset as i64)
}

impl Emitter<'_> {
    /// Starts or resumes the chunk `rdx`, if it has a peer. Otherwise falls through.
    pub fn begin_or_resume(&mut self) {
        let alone = self.asm.label();
        self.asm
            .mem_imm(Code::Cmp_rm64_imm8, own_field(offset_of!(Chunk, peer)), 0);
        self.asm.jump(Code::Je_rel8_64, alone);
        let left = Source::Memory(own_field(offset_of!(Chunk, left)));
        self.asm.op2(Code::Mov_r32_rm32, Register::EAX, left);
        let left = context(offset_of!(NativeContext, left));
        self.asm.store(Code::Mov_rm32_r32, left, Register::EAX);
        let resume = own_field(offset_of!(Chunk, resume));
        self.asm
            .op2(Code::Mov_r64_rm64, Register::RAX, Source::Memory(resume));
        self.asm.mem_imm(Code::Mov_rm64_imm32, resume, 0);
        self.asm.op1(Code::Jmp_rm64, Register::RAX);
        self.asm.bind(alone);
    }

    /// Lets the chunk that runs wait at position `eax`, with its slots in the register file, while its peer runs. If that does
    /// not run on either, the chunk exits.
    pub fn suspend_chunk(&mut self) {
        let suspend = self.suspend;
        self.asm.bind(suspend);
        let exit = self.full_exit;
        self.load_peer(exit);
        self.asm.mem_imm(
            Code::Cmp_rm64_imm8,
            peer_field(offset_of!(Chunk, resume)),
            0,
        );
        self.asm.jump(Code::Je_rel32_64, exit);
        let waits = own_field(offset_of!(Chunk, waits));
        self.asm.store(Code::Mov_rm32_r32, waits, Register::EAX);
        let left = Source::Memory(context(offset_of!(NativeContext, left)));
        self.asm.op2(Code::Mov_r32_rm32, Register::EAX, left);
        let left = own_field(offset_of!(Chunk, left));
        self.asm.store(Code::Mov_rm32_r32, left, Register::EAX);
        let there = own_field(offset_of!(Chunk, there));
        self.asm.mem_imm(Code::Mov_rm32_imm32, there, 0xffff);
        self.run_peer();
    }

    /// Makes the peer the chunk that runs.
    fn run_peer(&mut self) {
        self.asm.op2(Code::Mov_r64_rm64, CHUNK, PEER);
        let chunk = context(offset_of!(NativeContext, chunk));
        self.asm.store(Code::Mov_rm64_r64, chunk, CHUNK);
        let next = self.next_chunk;
        self.asm.jump(Code::Jmp_rel32_64, next);
    }

    /// What follows the exit of a chunk, `rdx`: the peer runs if it can, or exits if it waits (`exits`). Falls through with the last
    /// chunk of the warp when both have exited, or jumps to `returns` if lanes wait at blocks while the peer can run. `rsi` is
    /// not zero if the code is to return.
    pub fn end_of_pair(&mut self, exits: Label, returns: Label) {
        let (advance, runs, waits) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.asm.op2(
            Code::Mov_r64_rm64,
            PEER,
            Source::Memory(own_field(offset_of!(Chunk, peer))),
        );
        self.asm.op2(Code::Test_rm64_r64, PEER, PEER);
        self.asm.jump(Code::Je_rel32_64, advance);
        self.asm.op2(Code::Add_r64_rm64, PEER, CHUNK);
        self.asm.mem_imm(
            Code::Cmp_rm64_imm8,
            peer_field(offset_of!(Chunk, resume)),
            0,
        );
        self.asm.jump(Code::Jne_rel32_64, runs);
        self.asm.mem_imm(
            Code::Cmp_rm32_imm8,
            peer_field(offset_of!(Chunk, waits)),
            -1,
        );
        self.asm.jump(Code::Jne_rel32_64, waits);
        // Both have exited.
        self.asm.op2(Code::Cmp_r64_rm64, CHUNK, PEER);
        self.asm.op2(Code::Cmovb_r64_rm64, CHUNK, PEER);
        let sum = context(offset_of!(NativeContext, returns));
        self.asm
            .op2(Code::Or_r64_rm64, Register::RSI, Source::Memory(sum));
        self.asm.jump(Code::Jmp_rel32_64, advance);

        self.asm.bind(runs);
        self.asm.store(Code::Or_rm64_r64, sum, Register::RSI);
        let chunk = context(offset_of!(NativeContext, chunk));
        self.asm.store(Code::Mov_rm64_r64, chunk, PEER);
        let pending = context(offset_of!(NativeContext, pending));
        self.asm.mem_imm(Code::Cmp_rm64_imm8, pending, 0);
        self.asm.jump(Code::Jne_rel32_64, returns);
        self.run_peer();

        self.asm.bind(waits);
        self.asm.op2(Code::Mov_r64_rm64, CHUNK, PEER);
        let position = own_field(offset_of!(Chunk, waits));
        self.asm
            .op2(Code::Mov_r32_rm32, Register::EAX, Source::Memory(position));
        self.asm.mem_imm(Code::Mov_rm32_imm32, position, -1);
        let exclusive = Source::Memory(context(offset_of!(NativeContext, exclusive)));
        self.asm.op2(Code::Mov_r32_rm32, Register::ECX, exclusive);
        self.asm
            .op2(Code::Or_r64_rm64, Register::RSI, Register::RCX);
        let left = Source::Memory(own_field(offset_of!(Chunk, left)));
        self.asm.op2(Code::Mov_r32_rm32, Register::ECX, left);
        let left = context(offset_of!(NativeContext, left));
        self.asm.store(Code::Mov_rm32_r32, left, Register::ECX);
        self.asm.jump(Code::Jmp_rel32_64, exits);
        self.asm.bind(advance);
    }

    /// Loads the addresses of the chunk that runs and of its peer; goes to `alone` if it has none.
    fn load_peer(&mut self, alone: Label) {
        let chunk = Source::Memory(context(offset_of!(NativeContext, chunk)));
        self.asm.op2(Code::Mov_r64_rm64, CHUNK, chunk);
        let distance = Source::Memory(own_field(offset_of!(Chunk, peer)));
        self.asm.op2(Code::Mov_r64_rm64, PEER, distance);
        self.asm.op2(Code::Test_rm64_r64, PEER, PEER);
        self.asm.jump(Code::Je_rel32_64, alone);
        self.asm.op2(Code::Add_r64_rm64, PEER, CHUNK);
    }

    /// Translates the collective that is block `n`, in code for all lanes of a chunk. In masked code, it exits.
    pub fn collective(&mut self, n: usize) {
        let pc = self.flow.blocks[n].code.start;
        self.begin_instruction(pc);
        let stop = self.exit(pc);
        if self.masked {
            self.asm.jump(Code::Jmp_rel32_64, stop);
            return;
        }
        if let Some(stub) = self.stubs.last_mut() {
            stub.suspends = true;
        }
        self.load_peer(stop);
        let waits = peer_field(offset_of!(Chunk, waits));
        self.asm.mem_imm(Code::Cmp_rm32_imm32, waits, pc as i32);
        self.asm.jump(Code::Jne_rel32_64, stop);
        let inst = self.inst();
        let (resume, result) = (self.asm.label(), self.asm.label());
        let translated = match inst.kind {
            InstKind::Match | InstKind::Elect => false,
            InstKind::Redux => is_integer(self.program.redux[inst.target as usize]),
            _ => true,
        };
        if !translated {
            self.call_engine();
            self.load_peer(stop);
            self.release_peer(resume);
            self.cold.push(Box::new(move |e| {
                e.asm.bind(resume);
                let live = &e.flow.blocks[n].live_out;
                e.move_homes(false, |n| live.contains(n));
                let next = e.full[n + 1];
                e.asm.jump(Code::Jmp_rel32_64, next);
            }));
            return;
        }
        self.check_members(stop);
        self.exchange(true);
        self.release_peer(resume);
        self.asm.bind(result);
        match inst.kind {
            InstKind::Shfl => self.shuffle(),
            InstKind::Vote => self.vote(),
            InstKind::Redux => self.reduce(),
            InstKind::ActiveMask => {
                const ONES: i32 = 0xff;
                let (code, v) = (Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8, vector(0));
                self.asm.op3_imm(code, v, v, v, ONES, Mask::None);
                self.copy32(inst.args.dst[0], v);
            }
            _ => {}
        }
        self.cold.push(Box::new(move |e| {
            (e.block, e.pc, e.masked, e.lanes) = (n, pc, false, Lanes::All);
            e.asm.bind(resume);
            let live = &e.flow.blocks[n].live_in;
            e.move_homes(false, |n| live.contains(n));
            e.exchange(false);
            e.asm.jump(Code::Jmp_rel32_64, result);
        }));
    }

    /// Lets the peer go on at a label when this chunk stops.
    fn release_peer(&mut self, resume: Label) {
        let waits = peer_field(offset_of!(Chunk, waits));
        self.asm.mem_imm(Code::Mov_rm32_imm32, waits, -1);
        let resume = Source::Memory(self.asm.address_of(resume));
        self.asm.op2(Code::Lea_r64_m, Register::RAX, resume);
        let to = peer_field(offset_of!(Chunk, resume));
        self.asm.store(Code::Mov_rm64_r64, to, Register::RAX);
    }

    /// Loads the 32-bit elements of the peer, which waits, of the slot at a location.
    fn load_of_peer(&mut self, to: Register, location: u32) {
        let (field, offset) = match fixed::TID.iter().position(|t| *t == location) {
            Some(axis) => (offset_of!(Chunk, indices), 128 * axis as i64),
            None => (offset_of!(Chunk, regs32), i64::from(location)),
        };
        let base = Source::Memory(peer_field(field));
        self.asm.op2(Code::Mov_r64_rm64, Register::RSI, base);
        let from = Source::Memory(at(Register::RSI, offset));
        self.asm.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, to, from);
    }

    /// Goes to `other` unless all lanes are members in every lane.
    fn check_members(&mut self, other: Label) {
        let Some(location) = members_at(self.inst()) else {
            return;
        };
        let file = &self.program.file;
        let from = location as usize;
        let known =
            location >= file.block_to && file.template[from..from + 128].iter().all(|b| *b == 0xff);
        if known {
            return;
        }
        for of_peer in [false, true] {
            let members = if of_peer {
                self.load_of_peer(vector(0), location);
                vector(0)
            } else {
                let members = self.source32(location);
                self.in_register(members, 0)
            };
            let equal = Code::EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32;
            self.asm
                .op3(equal, MASK, members, constant(constants::ONES32));
            self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jae_rel32_64, other);
        }
    }

    /// Loads what the peer has contributed into `zmm1`, or `edi` if it is a predicate: from the slots of a peer that `waits`, to
    /// which this chunk leaves its own contribution; otherwise what the peer has left.
    fn exchange(&mut self, waits: bool) {
        let inst = self.inst();
        let location = inst.args.src[0];
        match inst.kind {
            InstKind::Shfl | InstKind::Redux => {
                let exchanged = context(offset_of!(NativeContext, exchange));
                if waits {
                    self.load_of_peer(vector(1), location);
                    let own = self.source32(location);
                    let own = self.in_register(own, 0);
                    let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
                    self.asm.store(store, exchanged, own);
                } else {
                    let load = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                    self.asm.op2(load, vector(1), Source::Memory(exchanged));
                }
            }
            InstKind::Vote => {
                let exchanged = context(offset_of!(NativeContext, exchanged_predicate));
                let from = if waits {
                    let own = Source::Memory(at(PREDS, location.into()));
                    self.asm.op2(Code::Movzx_r32_rm16, Register::EAX, own);
                    self.asm.store(Code::Mov_rm32_r32, exchanged, Register::EAX);
                    let base = Source::Memory(peer_field(offset_of!(Chunk, preds)));
                    self.asm.op2(Code::Mov_r64_rm64, Register::RSI, base);
                    at(Register::RSI, location.into())
                } else {
                    exchanged
                };
                self.asm
                    .op2(Code::Movzx_r32_rm16, Register::EDI, Source::Memory(from));
            }
            _ => {}
        }
    }

    /// `shfl`, with the elements of the peer in `zmm1`: the formulas of [`shuffle`](crate::semantics::collective::shuffle).
    fn shuffle(&mut self) {
        /// The second source where the third one is set, otherwise the first.
        const SECOND_IF_THIRD: i32 = 0xd8;
        /// The second source where the first one is set, otherwise the third.
        const SECOND_IF_FIRST: i32 = 0xca;
        const AT_MOST: i32 = 2;
        const AT_LEAST: i32 = 5;
        let inst = self.inst();
        let ([value, lane, clamp, _], dst) = (inst.args.src, inst.args.dst);
        let mode = shfl_mode(inst.aux);
        let [number, from, segment, bound] = [2, 3, 4, 5].map(vector);
        let first = own_field(offset_of!(Chunk, first_lane));
        let or = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
        let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
        let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
        let select = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
        let five_bits = Source::Broadcast(self.asm.constant(31 | 31 << 32));
        self.asm.op2(
            Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32,
            number,
            Source::Memory(first),
        );
        let steps = Source::Memory(context(offset_of!(NativeContext, steps32)));
        self.asm.op3(or, number, number, steps);
        let lane = self.source32(lane);
        let lane = self.in_register(lane, 3);
        self.asm.op3(and, from, lane, five_bits);
        let clamp = self.source32(clamp);
        let clamp = self.in_register(clamp, 4);
        self.asm.op3(and, bound, clamp, five_bits);
        let shift = Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8;
        self.asm.op2_imm(shift, segment, clamp, 8, Mask::None);
        match mode {
            ShflMode::Up => {
                let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(subtract, from, number, from);
            }
            ShflMode::Down => {
                let add = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
                self.asm.op3(add, from, number, from);
            }
            ShflMode::Bfly => self.asm.op3(xor, from, number, from),
            ShflMode::Idx => {
                self.asm
                    .op3_imm(select, from, number, segment, SECOND_IF_THIRD, Mask::None);
            }
        }
        self.asm
            .op3_imm(select, segment, number, bound, SECOND_IF_FIRST, Mask::None);
        let inside = match mode {
            ShflMode::Up => AT_LEAST,
            _ => AT_MOST,
        };
        let compare = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
        self.asm
            .op3_imm(compare, MASK, from, segment, inside, Mask::None);
        let copy = Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512;
        self.asm.op2_masked(copy, number, from, Mask::Merge(MASK));
        // The chunk's own elements come first in the table, whichever half of the warp it is.
        self.asm.op3(xor, number, number, Source::Broadcast(first));
        let value = self.source32(value);
        let value = self.in_register(value, 0);
        let permute = Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32;
        self.asm.op3(permute, number, value, vector(1));
        self.copy32(dst[0], number);
        self.set_predicate(dst[1], MASK);
    }

    /// `vote`, with the predicate of the peer in `edi`.
    fn vote(&mut self) {
        let (eax, edi, esi) = (Register::EAX, Register::EDI, Register::ESI);
        let (al, sil) = (Register::AL, Register::SIL);
        let inst = self.inst();
        let own_bits = Source::Memory(at(PREDS, inst.args.src[0].into()));
        self.asm.op2(Code::Movzx_r32_rm16, eax, own_bits);
        if inst.aux & VOTE_NOT != 0 {
            for r in [eax, edi] {
                self.asm.op_imm(Code::Xor_rm32_imm32, r, 0xffff);
            }
        }
        let all = |e: &mut Self, to: Register| {
            e.asm.op2(Code::And_r32_rm32, esi, edi);
            e.asm.op_imm(Code::Cmp_rm32_imm32, esi, 0xffff);
            e.asm.op1(Code::Sete_rm8, to);
        };
        match vote_mode(inst.aux) {
            VoteMode::Ballot => {
                let first = Source::Memory(own_field(offset_of!(Chunk, first_lane)));
                self.asm.op2(Code::Mov_r32_rm32, Register::ECX, first);
                self.asm.op2(Code::Shl_rm32_CL, eax, Register::CL);
                self.asm.op_imm(Code::Xor_rm32_imm8, Register::ECX, 16);
                self.asm.op2(Code::Shl_rm32_CL, edi, Register::CL);
                self.asm.op2(Code::Or_r32_rm32, eax, edi);
                let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
                self.asm.op2(broadcast, vector(0), eax);
                self.copy32(inst.args.dst[0], vector(0));
                return;
            }
            VoteMode::All => {
                self.asm.op2(Code::Mov_r32_rm32, esi, eax);
                all(self, al);
            }
            VoteMode::Any => {
                self.asm.op2(Code::Or_r32_rm32, eax, edi);
                self.asm.op1(Code::Setne_rm8, al);
            }
            VoteMode::Uni => {
                self.asm.op2(Code::Mov_r32_rm32, esi, eax);
                self.asm.op2(Code::Or_r32_rm32, eax, edi);
                self.asm.op1(Code::Sete_rm8, al);
                all(self, sil);
                self.asm.op2(Code::Or_r8_rm8, al, sil);
            }
        }
        self.asm.op2(Code::Movzx_r32_rm8, eax, al);
        self.asm.op1(Code::Neg_rm32, eax);
        self.asm.op2(Code::VEX_Kmovw_kr_r32, MASK, eax);
        self.set_predicate(inst.args.dst[0], MASK);
    }

    /// `redux` of integers, with the elements of the peer in `zmm1`.
    fn reduce(&mut self) {
        let inst = self.inst();
        let ReduxOp { op, ty, .. } = self.program.redux[inst.target as usize];
        let code = match (op, ty.is_signed()) {
            (AtomOp::Min, true) => Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
            (AtomOp::Min, false) => Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
            (AtomOp::Max, true) => Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
            (AtomOp::Max, false) => Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
            (AtomOp::And, _) => Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32,
            (AtomOp::Or, _) => Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32,
            (AtomOp::Xor, _) => Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
            _ => Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
        };
        let value = self.source32(inst.args.src[0]);
        let value = self.in_register(value, 0);
        let (sum, moved) = (vector(0), vector(1));
        self.asm.op3(code, sum, value, moved);
        // Each step combines the parts that it swaps, so that in the end every lane has the result.
        const SWAP_HALVES: i32 = 0x4e;
        const SWAP_NEIGHBOURS: i32 = 0xb1;
        for order in [SWAP_HALVES, SWAP_NEIGHBOURS] {
            let swap = Code::EVEX_Vshufi32x4_zmm_k1z_zmm_zmmm512b32_imm8;
            self.asm.op3_imm(swap, moved, sum, sum, order, Mask::None);
            self.asm.op3(code, sum, sum, moved);
        }
        for order in [SWAP_HALVES, SWAP_NEIGHBOURS] {
            let swap = Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8;
            self.asm.op2_imm(swap, moved, sum, order, Mask::None);
            self.asm.op3(code, sum, sum, moved);
        }
        self.copy32(inst.args.dst[0], sum);
    }
}

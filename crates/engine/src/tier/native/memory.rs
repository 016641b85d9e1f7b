//! Translation of loads and stores.
//!
//! The addresses of the lanes are checked once per block and address register, with all offsets that the block uses: whether
//! they are consecutive or equal, aligned, and allowed. The outcome and the address in host memory are kept in the context.
//! Accesses that are neither are executed by the engine.

use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;

use iced_x86::{Code, Register};

use super::assembler::{Label, Mask, Source, at};
use super::emit::{Emitter, GUARD, Lanes, MASK, REGS64, context};
use super::flow::{MemoryAccess, access};
use super::homes::vector;
use super::isa::Isa;
use super::lanes::lowest;
use crate::bytecode::{GUARDED, Program};
use crate::register_file::fixed;
use crate::run::memory::region_cache::Cached;
use crate::run::native_context::{GROUPS, NativeContext, STRIDES, pattern};

/// What accesses must share to be checked together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    base: u32,
    uniform: u32,
    shared: bool,
    stride: u32,
}

/// Accesses that are checked together.
#[derive(Clone, Debug)]
struct Group {
    /// Offsets of the first byte and past the last byte of a lane.
    offsets: Range<i64>,
    /// Alignment of all of them.
    align: u32,
    /// Whether there is a store.
    stores: bool,
}

/// The groups of a block.
#[derive(Default)]
pub struct Groups {
    list: Vec<Group>,
    /// The group of each access.
    of: HashMap<u32, usize>,
    /// The checked group whose outcome is in each entry of the context.
    checked: [Option<usize>; GROUPS],
}

impl Groups {
    /// Finds the groups of a block. A group ends where its address register is written.
    pub fn of_block(program: &Program, code: Range<u32>) -> Self {
        let mut groups = Self::default();
        let mut open: HashMap<Key, usize> = HashMap::new();
        for pc in code {
            let inst = &program.code[pc as usize];
            if let Some(a) = access(program, inst)
                && inst.flags & GUARDED == 0
            {
                let key = Key {
                    base: inst.args.src[0],
                    uniform: inst.args.src[2],
                    shared: a.shared,
                    stride: a.size * a.count,
                };
                let bytes = i64::from(a.size * a.count);
                let n = *open.entry(key).or_insert_with(|| {
                    groups.list.push(Group {
                        offsets: inst.imm..inst.imm + bytes,
                        align: 1,
                        stores: false,
                    });
                    groups.list.len() - 1
                });
                // One that spans more than a page is rarely allowed as a whole.
                const MOST: i64 = 1 << 16;
                let group = &mut groups.list[n];
                let from = group.offsets.start.min(inst.imm);
                let to = group.offsets.end.max(inst.imm + bytes);
                // The alignment of the first access is that of all.
                let aligned = (inst.imm - group.offsets.start) % bytes == 0;
                if aligned
                    && to - from <= MOST
                    && from >= i64::from(i32::MIN / 2)
                    && to <= i64::from(i32::MAX / 2)
                {
                    group.offsets = from..to;
                    group.align = group.align.max(a.size * a.count);
                    group.stores |= a.store;
                    groups.of.insert(pc, n);
                }
            }
            for o in program.operands.of(pc) {
                if o.written {
                    open.retain(|key, _| key.base != o.at && key.uniform != o.at);
                }
            }
        }
        groups
    }
}

/// The index of a table of steps.
fn stride_index(stride: u32) -> Option<usize> {
    STRIDES.iter().position(|s| *s == stride)
}

impl<'a> Emitter<'a> {
    /// Translates the load or store of the current instruction.
    pub fn memory_access(&mut self, a: MemoryAccess) {
        let inst = self.inst();
        let op = &self.program.mem[inst.target as usize];
        if a.store {
            op.regs.iter().for_each(|r| self.canonicalize(r.at));
        }
        self.canonicalize(inst.args.src[0]);
        let (slow, done) = (self.asm.label(), self.asm.label());
        let equal = self.asm.label();
        if self.lanes == Lanes::Guarded {
            self.asm.op2(Code::VEX_Kortestw_kr_kr, GUARD, GUARD);
            self.asm.jump(Code::Je_rel32_64, done);
        }
        if a.store && a.size * a.count == 16 && self.lanes != Lanes::All {
            // There is no store of vectors of 16 bytes under a mask.
            self.call_engine();
            self.asm.bind(done);
            return;
        }
        let group = self.groups.of.get(&self.pc).copied();
        let slot = group.map(|n| n % GROUPS);
        match group {
            Some(n) if self.groups.checked[n % GROUPS] == Some(n) => {
                let slot = n % GROUPS;
                let patterns = context(offset_of!(NativeContext, patterns) + 4 * slot);
                self.asm
                    .mem_imm(Code::Cmp_rm32_imm8, patterns, pattern::EQUAL as i32);
                self.asm.jump(Code::Ja_rel32_64, slow);
                self.asm.jump(Code::Je_rel32_64, equal);
                self.load_host(slot);
            }
            _ => {
                let alone = Group {
                    offsets: inst.imm..inst.imm + i64::from(a.size * a.count),
                    align: a.size * a.count,
                    stores: a.store,
                };
                let group = group.map_or(alone, |n| self.groups.list[n].clone());
                self.check(a, &group, slot, equal, slow);
            }
        }
        if let Some(n) = group {
            self.groups.checked[n % GROUPS] = Some(n);
        }
        self.consecutive(a);
        self.asm.bind(done);
        if a.store {
            self.rare(equal, move |e| e.asm.jump(Code::Jmp_rel32_64, slow));
        } else {
            self.rare(equal, move |e| {
                if let Some(slot) = slot {
                    e.load_host(slot);
                }
                e.equal(a);
                e.asm.jump(Code::Jmp_rel32_64, done);
            });
        }
        let engine = self.asm.label();
        let packed = a.packed || a.size < 4 || (a.size, a.count) == (4, 2);
        if packed {
            self.rare(slow, move |e| {
                e.packed_scattered(a, engine);
                e.asm.jump(Code::Jmp_rel32_64, done);
            });
            self.engine_instead(engine, done);
        } else if a.count == 1 {
            self.rare(slow, move |e| {
                e.scattered(a, engine);
                e.asm.jump(Code::Jmp_rel32_64, done);
            });
            self.engine_instead(engine, done);
        } else {
            self.engine_instead(slow, done);
        }
        if !a.store && self.lanes != Lanes::Guarded {
            for r in &op.regs {
                self.raw_nans.remove(&r.at);
            }
        }
    }

    /// Emits code behind the blocks, with the current instruction as context.
    pub fn rare(&mut self, label: Label, f: impl FnOnce(&mut Emitter<'a>) + 'a) {
        let (block, pc, masked, lanes) = (self.block, self.pc, self.masked, self.lanes);
        self.cold.push(Box::new(move |e| {
            (e.block, e.pc, e.masked, e.lanes) = (block, pc, masked, lanes);
            e.asm.bind(label);
            f(e);
        }));
    }

    fn load_host(&mut self, slot: usize) {
        let host = context(offset_of!(NativeContext, hosts) + 8 * slot);
        self.asm
            .op2(Code::Mov_r64_rm64, Register::RDX, Source::Memory(host));
    }

    /// Checks the addresses of a group. Falls through with the address of the first lane, without offset, in `rdx` if they are
    /// consecutive; goes to `equal` if they are equal, and to `slow` otherwise.
    fn check(
        &mut self,
        a: MemoryAccess,
        group: &Group,
        slot: Option<usize>,
        equal: Label,
        slow: Label,
    ) {
        let stride = a.size * a.count;
        let Some(steps) = stride_index(stride) else {
            self.asm.jump(Code::Jmp_rel32_64, slow);
            return;
        };
        let (other, not_consecutive) = (self.asm.label(), self.asm.label());
        let span = group.offsets.end - group.offsets.start;
        let base = self.inst().args.src[0];
        if a.wide {
            self.differences64(base, steps, not_consecutive);
        } else {
            self.differences32(base, steps, not_consecutive);
        }
        let rest = i64::from(stride) * (self.asm.isa.lanes() as i64 - 1);
        self.bounds(a, group, span + rest, other);
        if !a.shared {
            // Later warps of the pattern access it. The accesses are too far apart for the prefetcher of the processor.
            const AHEAD: i64 = 1024;
            let later = at(Register::RDX, group.offsets.start + AHEAD);
            self.asm.op1_mem(Code::Prefetcht0_m8, later);
        }
        self.keep_outcome(slot, pattern::CONSECUTIVE);
        let group = group.clone();
        let base_of_equal = move |e: &mut Emitter<'a>| {
            if a.wide {
                e.equal64(base, other);
            } else {
                e.equal32(base, other);
            }
            e.bounds(a, &group, span, other);
            e.keep_outcome(slot, pattern::EQUAL);
            e.asm.jump(Code::Jmp_rel32_64, equal);
        };
        self.rare(not_consecutive, base_of_equal);
        self.rare(other, move |e| {
            if let Some(slot) = slot {
                let patterns = context(offset_of!(NativeContext, patterns) + 4 * slot);
                e.asm
                    .mem_imm(Code::Mov_rm32_imm32, patterns, pattern::OTHER as i32);
            }
            e.asm.jump(Code::Jmp_rel32_64, slow);
        });
    }

    /// Keeps the address in `rdx` and the pattern for later accesses of the group.
    fn keep_outcome(&mut self, slot: Option<usize>, pattern: u32) {
        if let Some(slot) = slot {
            let host = context(offset_of!(NativeContext, hosts) + 8 * slot);
            let patterns = context(offset_of!(NativeContext, patterns) + 4 * slot);
            self.asm.store(Code::Mov_rm64_r64, host, Register::RDX);
            self.asm
                .mem_imm(Code::Mov_rm32_imm32, patterns, pattern as i32);
        }
    }

    /// The first 32-bit element of the lanes that run, in `eax`. `scratch` may be overwritten.
    fn first32(&mut self, of: Register, scratch: Register) {
        let from = match self.lane_mask() {
            None => of,
            Some(k) if self.asm.isa == Isa::Avx2 => return self.asm.first_element(&[of], k),
            Some(k) => {
                let compress = Code::EVEX_Vpcompressd_zmmm512_k1z_zmm;
                self.asm.op2_masked(compress, scratch, of, Mask::Zero(k));
                scratch
            }
        };
        self.asm
            .op2(Code::EVEX_Vmovd_rm32_xmm, Register::EAX, lowest(from));
    }

    /// Whether the 32-bit addresses are consecutive: leaves that of the first lane of the chunk in `rax`, or jumps.
    fn differences32(&mut self, base: u32, steps: usize, otherwise: Label) {
        let addresses = self.source32(base);
        let addresses = self.in_register(addresses, 0);
        let table = context(offset_of!(NativeContext, steps32) + 64 * steps);
        let subtract = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
        self.asm
            .op3(subtract, vector(1), addresses, Source::Memory(table));
        self.first32(vector(1), vector(2));
        self.all_equal32(vector(1), otherwise);
    }

    /// Whether the 32-bit addresses are equal: leaves them in `rax`, or jumps.
    pub fn equal32(&mut self, base: u32, otherwise: Label) {
        let addresses = self.source32(base);
        let addresses = self.in_register(addresses, 0);
        self.first32(addresses, vector(2));
        self.all_equal32(addresses, otherwise);
    }

    fn all_equal32(&mut self, v: Register, otherwise: Label) {
        let broadcast = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
        self.asm.op2(broadcast, vector(2), Register::EAX);
        if self.asm.isa == Isa::Avx2 {
            let lanes = self.lane_mask().map_or(Mask::None, Mask::Zero);
            let xor = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
            self.asm.op3_masked(xor, vector(2), vector(2), v, lanes);
            self.asm.jump_if_any_bit(vector(2), otherwise);
            return;
        }
        const NOT_EQUAL: i32 = 4;
        let mask = self.lane_mask().map_or(Mask::None, Mask::Merge);
        let compare = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
        self.asm
            .op3_imm(compare, MASK, v, vector(2), NOT_EQUAL, mask);
        self.asm.op2(Code::VEX_Kortestw_kr_kr, MASK, MASK);
        self.asm.jump(Code::Jne_rel32_64, otherwise);
    }

    /// Whether the 64-bit addresses are consecutive: leaves that of the first lane of the chunk in `rax`, or jumps.
    fn differences64(&mut self, base: u32, steps: usize, otherwise: Label) {
        for part in 0..2 {
            let addresses = self.source64(base, part);
            let addresses = self.in_register(addresses, part as u32);
            let half = self.asm.isa.bytes() as usize * part;
            let table = offset_of!(NativeContext, steps64) + 128 * steps + half;
            let subtract = Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
            let table = Source::Memory(context(table));
            self.asm
                .op3(subtract, vector(part as u32), addresses, table);
        }
        self.all_equal64([vector(0), vector(1)], otherwise);
    }

    /// Whether the 64-bit addresses are equal: leaves them in `rax`, or jumps.
    pub fn equal64(&mut self, base: u32, otherwise: Label) {
        let (low, high) = (self.source64(base, 0), self.source64(base, 1));
        let low = self.in_register(low, 0);
        let high = self.in_register(high, 1);
        self.all_equal64([low, high], otherwise);
    }

    /// Whether the 64-bit elements of the lanes that run are equal: leaves them in `rax`, or jumps.
    fn all_equal64(&mut self, v: [Register; 2], otherwise: Label) {
        let compress = Code::EVEX_Vpcompressq_zmmm512_k1z_zmm;
        let to_gpr = Code::EVEX_Vmovq_rm64_xmm;
        let mask = self.lane_mask();
        match mask {
            None => self.asm.op2(to_gpr, Register::RAX, lowest(v[0])),
            Some(k) if self.asm.isa == Isa::Avx2 => self.asm.first_element(&v, k),
            Some(k) => {
                // The first lane that runs is in the upper half if the lower half has none.
                let upper = self.asm.label();
                let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                self.asm.op2_imm(shift, MASK, k, 8, Mask::None);
                self.asm
                    .op2_masked(compress, vector(2), v[1], Mask::Zero(MASK));
                self.asm.op2(to_gpr, Register::RAX, lowest(vector(2)));
                self.asm
                    .op2_masked(compress, vector(2), v[0], Mask::Zero(k));
                self.asm.op2(Code::VEX_Kortestb_kr_kr, k, k);
                self.asm.jump(Code::Je_rel8_64, upper);
                self.asm.op2(to_gpr, Register::RAX, lowest(vector(2)));
                self.asm.bind(upper);
            }
        }
        let broadcast = Code::EVEX_Vpbroadcastq_zmm_k1z_r64;
        self.asm.op2(broadcast, vector(2), Register::RAX);
        if self.asm.isa == Isa::Avx2 {
            for (part, to) in [(1, vector(3)), (0, vector(2))] {
                let lanes = mask.map_or(Mask::None, Mask::Merge);
                let lanes = match self.half(lanes, part) {
                    Mask::Merge(k) => Mask::Zero(k),
                    lanes => lanes,
                };
                let xor = Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64;
                self.asm.op3_masked(xor, to, vector(2), v[part], lanes);
            }
            let or = Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
            self.asm.op3(or, vector(2), vector(2), vector(3));
            self.asm.jump_if_any_bit(vector(2), otherwise);
            return;
        }
        const NOT_EQUAL: i32 = 4;
        let compare = Code::EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8;
        for part in [1, 0] {
            let lanes = match mask {
                None => Mask::None,
                Some(k) if part == 0 => Mask::Merge(k),
                Some(k) => {
                    let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                    self.asm.op2_imm(shift, MASK, k, 8, Mask::None);
                    Mask::Merge(MASK)
                }
            };
            self.asm
                .op3_imm(compare, MASK, v[part], vector(2), NOT_EQUAL, lanes);
            self.asm.op2(Code::VEX_Kortestb_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jne_rel32_64, otherwise);
        }
    }

    /// Checks alignment and bounds of the group's range at the address in `rax`, which is `span` bytes long, and leaves the
    /// address in host memory, without offset, in `rdx`.
    fn bounds(&mut self, a: MemoryAccess, group: &Group, span: i64, otherwise: Label) {
        let asm = &mut self.asm;
        if a.wide {
            let uniform = self.program.code[self.pc as usize].args.src[2];
            if uniform != fixed::ZERO {
                let uniform = Source::Memory(at(REGS64, uniform.into()));
                asm.op2(Code::Add_r64_rm64, Register::RAX, uniform);
            }
        }
        let start = Source::Memory(at(Register::RAX, group.offsets.start));
        if a.wide {
            asm.op2(Code::Lea_r64_m, Register::RDX, start);
        } else {
            // The address wraps at 32 bits.
            asm.op2(Code::Lea_r32_m, Register::EDX, start);
        }
        if group.align > 1 {
            asm.op_imm(Code::Test_rm32_imm32, Register::EDX, group.align as i32 - 1);
            asm.jump(Code::Jne_rel32_64, otherwise);
        }
        if a.shared {
            let bytes = Source::Memory(context(offset_of!(NativeContext, shared_bytes)));
            asm.op2(Code::Mov_r64_rm64, Register::RCX, bytes);
            asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, span as i32);
            asm.jump(Code::Jb_rel32_64, otherwise);
            asm.op2(Code::Cmp_r64_rm64, Register::RDX, Register::RCX);
            asm.jump(Code::Ja_rel32_64, otherwise);
            let shared = Source::Memory(context(offset_of!(NativeContext, shared)));
            asm.op2(Code::Add_r64_rm64, Register::RDX, shared);
        } else {
            let entry = i64::from(self.program.code[self.pc as usize].aux & 0xff);
            let size = size_of::<Cached>() as i64;
            let end = if group.stores {
                offset_of!(Cached, write_end)
            } else {
                offset_of!(Cached, end)
            };
            let cache = Source::Memory(context(offset_of!(NativeContext, cache)));
            asm.op2(Code::Mov_r64_rm64, Register::RSI, cache);
            let field =
                |offset: usize| Source::Memory(at(Register::RSI, entry * size + offset as i64));
            asm.op2(
                Code::Cmp_r64_rm64,
                Register::RDX,
                field(offset_of!(Cached, base)),
            );
            asm.jump(Code::Jb_rel32_64, otherwise);
            asm.op2(Code::Mov_r64_rm64, Register::RCX, field(end));
            asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, span as i32);
            asm.jump(Code::Jb_rel32_64, otherwise);
            asm.op2(Code::Cmp_r64_rm64, Register::RDX, Register::RCX);
            asm.jump(Code::Ja_rel32_64, otherwise);
        }
        if group.offsets.start != 0 {
            asm.op_imm(
                Code::Sub_rm64_imm32,
                Register::RDX,
                group.offsets.start as i32,
            );
        }
    }

    /// Loads or stores elements at consecutive addresses from `rdx` on.
    fn consecutive(&mut self, a: MemoryAccess) {
        if a.packed {
            self.packed_consecutive(a);
            return;
        }
        let inst = self.inst();
        let op = &self.program.mem[inst.target as usize];
        let host = |offset: i64| at(Register::RDX, inst.imm + offset);
        let bytes = self.asm.isa.bytes();
        let mask = self.lane_mask().map_or(Mask::None, Mask::Merge);
        match (a.size, a.count) {
            (4, 1) if a.store => {
                let s = self.source32(op.regs[0].at);
                let s = self.in_register(s, 0);
                let code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
                self.asm.store_masked(code, host(0), s, mask);
            }
            (1 | 2, 1) if a.store => {
                let s = self.source32(op.regs[0].at);
                let s = self.in_register(s, 0);
                let code = match a.size {
                    1 => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
                    _ => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
                };
                self.asm.store_masked(code, host(0), s, mask);
            }
            (8, 1) if a.store => {
                for part in 0..2 {
                    let s = self.source64(op.regs[0].at, part);
                    let s = self.in_register(s, 0);
                    let mask = self.half(mask, part);
                    let code = Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm;
                    self.asm
                        .store_masked(code, host(bytes * part as i64), s, mask);
                }
            }
            (4, 1) => {
                let to = self.destination32(op.regs[0].at);
                let code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                let from = Source::Memory(host(0));
                self.asm.op2_masked(code, to.register, from, to.mask);
                self.finish(to);
            }
            (1 | 2, 1) => {
                let code = match (a.size, op.signed) {
                    (1, false) => Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128,
                    (1, true) => Code::EVEX_Vpmovsxbd_zmm_k1z_xmmm128,
                    (_, false) => Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
                    (_, true) => Code::EVEX_Vpmovsxwd_zmm_k1z_ymmm256,
                };
                let from = Source::Memory(host(0));
                let v = vector(0);
                let zeroing = match mask {
                    Mask::Merge(k) => Mask::Zero(k),
                    other => other,
                };
                self.asm.op2_masked(code, v, from, zeroing);
                if op.signed && op.narrow {
                    let low = super::emit::constant(crate::run::native_context::constant::LOW16);
                    self.asm
                        .op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, v, v, low);
                }
                let to = self.destination32(op.regs[0].at);
                let copy = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
                self.asm.op2_masked(copy, to.register, v, to.mask);
                self.finish(to);
            }
            (8, 1) => {
                for part in 0..2 {
                    let to = self.destination64(op.regs[0].at, part);
                    let code = Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512;
                    let from = Source::Memory(host(bytes * part as i64));
                    self.asm.op2_masked(code, to.register, from, to.mask);
                    self.finish(to);
                }
            }
            _ => self.vectors(a),
        }
    }

    /// The mask of half `part` of 64-bit elements.
    pub fn half(&mut self, mask: Mask, part: usize) -> Mask {
        match mask {
            Mask::Merge(k) if part == 1 => {
                let shift = Code::VEX_Kshiftrw_kr_kr_imm8;
                self.asm.op2_imm(shift, MASK, k, 8, Mask::None);
                Mask::Merge(MASK)
            }
            mask => mask,
        }
    }

    /// Loads elements at the same address, `rdx`, in all lanes.
    fn equal(&mut self, a: MemoryAccess) {
        if a.packed {
            self.packed_equal(a);
            return;
        }
        let inst = self.inst();
        let op = &self.program.mem[inst.target as usize];
        if a.count > 1 {
            self.equal_vectors(a, &op.regs, inst.imm);
            return;
        }
        for (n, r) in op.regs.iter().enumerate() {
            let from = at(Register::RDX, inst.imm + n as i64 * i64::from(a.size));
            match a.size {
                8 => {
                    for part in 0..2 {
                        let to = self.destination64(r.at, part);
                        let code = Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
                        let from = Source::Memory(from);
                        self.asm.op2_masked(code, to.register, from, to.mask);
                        self.finish(to);
                    }
                }
                4 => {
                    let to = self.destination32(r.at);
                    let code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
                    let from = Source::Memory(from);
                    self.asm.op2_masked(code, to.register, from, to.mask);
                    self.finish(to);
                }
                _ => {
                    let code = match (a.size, op.signed) {
                        (1, false) => Code::Movzx_r32_rm8,
                        (1, true) => Code::Movsx_r32_rm8,
                        (_, false) => Code::Movzx_r32_rm16,
                        (_, true) => Code::Movsx_r32_rm16,
                    };
                    self.asm.op2(code, Register::EAX, Source::Memory(from));
                    if op.signed && op.narrow {
                        self.asm.op_imm(Code::And_rm32_imm32, Register::EAX, 0xffff);
                    }
                    let to = self.destination32(r.at);
                    let code = Code::EVEX_Vpbroadcastd_zmm_k1z_r32;
                    self.asm
                        .op2_masked(code, to.register, Register::EAX, to.mask);
                    self.finish(to);
                }
            }
        }
    }
}

//! Translation of loads and stores.
//!
//! The addresses of the lanes are [checked](super::checks) once per block and address, with all offsets that the block uses: whether
//! they are consecutive or equal, aligned, and allowed. The outcome and the address in host memory are kept in the context.
//! Accesses that are neither are [executed lane by lane](super::scattered), or by the engine.

use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;

use iced_x86::{Code, Register};

use super::addresses::Access;
use super::assembler::{Label, Mask, Source, at};
use super::emit::{Emitter, GUARD, Lanes, MASK, context};
use super::flow::{Block, MemoryAccess, access};
use super::homes::vector;
use crate::bytecode::{GUARDED, Program};
use crate::run::native_context::{GROUPS, NativeContext, pattern};

/// What accesses must share to be checked together: the address without the offset of the instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// Of global memory: the version of the root, and the uniform slots.
    Root {
        version: usize,
        uniforms: Vec<u32>,
        stride: u32,
    },
    /// Without a known address: the slots of the instruction.
    Slot {
        base: u32,
        uniform: u32,
        stride: u32,
    },
}

/// Accesses that are checked together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Offsets of the first byte and past the last byte of a lane.
    pub offsets: Range<i64>,
    /// Alignment of all of them.
    pub align: u32,
    /// Whether there is a store.
    pub stores: bool,
}

/// The groups of a block.
#[derive(Default)]
pub struct Groups {
    list: Vec<Group>,
    /// The group of each access.
    of: HashMap<u32, usize>,
    /// The position of the last access of each group.
    last: Vec<u32>,
    /// For the version and the stride of each root, the last position at which a group is checked.
    last_checks: HashMap<(usize, u32), u32>,
    /// The checked group whose outcome is in each entry of the context.
    checked: [Option<usize>; GROUPS],
}

impl Groups {
    /// Finds the groups of a block. A group of a slot ends where the slot is written.
    pub fn of_block(program: &Program, block: &Block) -> Self {
        let mut groups = Self::default();
        let mut open: HashMap<Key, usize> = HashMap::new();
        for pc in block.code.clone() {
            let inst = &program.code[pc as usize];
            if let Some(a) = access(program, inst)
                && inst.flags & GUARDED == 0
            {
                let stride = a.size * a.count;
                let key = match block.addresses.of_access(pc) {
                    Some(Access { address, .. }) => Key::Root {
                        version: address.version,
                        uniforms: address.uniforms.clone(),
                        stride,
                    },
                    None => Key::Slot {
                        base: inst.args.src[0],
                        uniform: inst.args.src[2],
                        stride,
                    },
                };
                let root = block.addresses.of_access(pc);
                let root = root.map(|a| (a.address.version, stride));
                let bytes = i64::from(a.size * a.count);
                let known = groups.list.len();
                let n = *open.entry(key).or_insert_with(|| {
                    groups.list.push(Group {
                        offsets: inst.imm..inst.imm + bytes,
                        align: 1,
                        stores: false,
                    });
                    groups.last.push(pc);
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
                    groups.last[n] = pc;
                }
                if let Some(root) = root
                    && (n == known || groups.of.get(&pc) != Some(&n))
                {
                    groups.last_checks.insert(root, pc);
                }
            }
            for o in program.operands.of(pc) {
                if o.written {
                    open.retain(|key, _| match key {
                        Key::Root { .. } => true,
                        Key::Slot { base, uniform, .. } => ![*base, *uniform].contains(&o.at),
                    });
                }
            }
        }
        groups
    }

    /// Whether code checks an address with the same root and stride after `pc`.
    pub fn checks_root_after(&self, version: usize, stride: u32, pc: u32) -> bool {
        let last = self.last_checks.get(&(version, stride));
        last.is_some_and(|last| *last > pc)
    }
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
        let checked = group.filter(|n| self.groups.checked[n % GROUPS] == Some(*n));
        let checked = checked.map(|n| n % GROUPS);
        if let Some(slot) = checked {
            let patterns = context(offset_of!(NativeContext, patterns) + 4 * slot);
            self.asm
                .mem_imm(Code::Cmp_rm32_imm8, patterns, pattern::EQUAL as i32);
            self.asm.jump(Code::Ja_rel32_64, slow);
            self.asm.jump(Code::Je_rel32_64, equal);
            self.load_host(slot);
        } else {
            let alone = Group {
                offsets: inst.imm..inst.imm + i64::from(a.size * a.count),
                align: a.size * a.count,
                stores: a.store,
            };
            let kept = group.filter(|n| self.groups.last[*n] > self.pc);
            let slot = kept.map(|n| n % GROUPS);
            let of_access = group.map_or(alone, |n| self.groups.list[n].clone());
            self.check(a, &of_access, slot, equal, slow);
            if let Some(slot) = slot {
                self.groups.checked[slot] = kept;
            }
        }
        self.consecutive(a);
        self.asm.bind(done);
        if a.store {
            self.rare(equal, move |e| e.asm.jump(Code::Jmp_rel32_64, slow));
        } else {
            self.rare(equal, move |e| {
                if let Some(slot) = checked {
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
                e.compute_base();
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
        let (block, pc, masked) = (self.block, self.pc, self.masked);
        let (lanes, others) = (self.lanes, self.others);
        self.cold.push(Box::new(move |e| {
            (e.block, e.pc, e.masked) = (block, pc, masked);
            (e.lanes, e.others) = (lanes, others);
            e.asm.bind(label);
            f(e);
            e.others = None;
        }));
    }

    fn load_host(&mut self, slot: usize) {
        let host = context(offset_of!(NativeContext, hosts) + 8 * slot);
        self.asm
            .op2(Code::Mov_r64_rm64, Register::RDX, Source::Memory(host));
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

//! Checks of the addresses of loads and stores: whether they are consecutive or equal in the lanes, and allowed.

use std::mem::offset_of;

use iced_x86::{Code, Register};

use super::addresses::{Address, Root};
use super::assembler::{Label, Mask, Source, at};
use super::emit::{Emitter, MASK, REGS64, context};
use super::flow::MemoryAccess;
use super::homes::vector;
use super::isa::Isa;
use super::lanes::lowest;
use super::memory::Group;
use crate::register_file::fixed;
use crate::run::memory::region_cache::Cached;
use crate::run::native_context::{NativeContext, ROOTS, STRIDES, pattern};

/// The index of a table of steps.
fn stride_index(stride: u32) -> Option<usize> {
    STRIDES.iter().position(|s| *s == stride)
}

/// The roots of addresses whose lanes have been compared in the block.
#[derive(Default)]
pub struct Roots {
    /// The version of the root and the stride in each entry of the context.
    checked: [Option<(usize, u32)>; ROOTS],
    next: usize,
}

impl Roots {
    /// The entry that code has filled for a root.
    fn known(&self, version: usize, stride: u32) -> Option<usize> {
        let key = Some((version, stride));
        self.checked.iter().position(|c| *c == key)
    }

    /// The entry for a root that code compares now.
    fn add(&mut self, version: usize, stride: u32) -> usize {
        let n = self.next % ROOTS;
        self.next += 1;
        self.checked[n] = Some((version, stride));
        n
    }
}

fn root_pattern(n: usize) -> iced_x86::MemoryOperand {
    context(offset_of!(NativeContext, root_patterns) + 4 * n)
}

fn root_first(n: usize) -> iced_x86::MemoryOperand {
    context(offset_of!(NativeContext, root_firsts) + 8 * n)
}

impl<'a> Emitter<'a> {
    /// Checks the addresses of a group. Falls through with the address of the first lane, without offset, in `rdx` if they are
    /// consecutive; goes to `equal` if they are equal, and to `slow` otherwise.
    pub fn check(
        &mut self,
        a: MemoryAccess,
        group: &Group,
        slot: Option<usize>,
        equal: Label,
        slow: Label,
    ) {
        let flow = self.flow;
        let Some(steps) = stride_index(a.size * a.count) else {
            self.asm.jump(Code::Jmp_rel32_64, slow);
            return;
        };
        match flow.blocks[self.block].addresses.of_access(self.pc) {
            Some(access) => self.check_address(a, &access.address, group, slot, equal, slow),
            None => self.check_base(a, steps, group, slot, equal, slow),
        }
    }

    /// [`Self::check`] of a sum of a root and uniform slots.
    fn check_address(
        &mut self,
        a: MemoryAccess,
        address: &'a Address,
        group: &Group,
        slot: Option<usize>,
        equal: Label,
        slow: Label,
    ) {
        let stride = a.size * a.count;
        let version = address.version;
        let known = self.roots.known(version, stride);
        let again = self.groups.checks_root_after(version, stride, self.pc);
        let kept = (known.is_none() && again).then(|| self.roots.add(version, stride));
        let (other_root, other) = (self.asm.label(), self.asm.label());
        let not_consecutive = self.asm.label();
        let span = group.offsets.end - group.offsets.start;
        if let Some(n) = known {
            let equal = pattern::EQUAL as i32;
            self.asm
                .mem_imm(Code::Cmp_rm32_imm8, root_pattern(n), equal);
            self.asm.jump(Code::Ja_rel32_64, other);
            self.asm.jump(Code::Je_rel32_64, not_consecutive);
            self.load_first(n);
        } else {
            self.consecutive_root(address, stride, not_consecutive, other_root);
            self.keep_root(kept, pattern::CONSECUTIVE);
        }
        let rest = i64::from(stride) * (self.asm.isa.lanes() as i64 - 1);
        self.add_uniforms(&address.uniforms);
        self.bounds(a, group, span + rest, other);
        self.prefetch(group);
        self.keep_outcome(slot, pattern::CONSECUTIVE);
        let group = group.clone();
        self.rare(not_consecutive, move |e| {
            if let Some(n) = known {
                e.load_first(n);
            } else {
                e.equal_root(address, other_root);
                e.keep_root(kept, pattern::EQUAL);
            }
            e.add_uniforms(&address.uniforms);
            e.bounds(a, &group, span, other);
            e.keep_outcome(slot, pattern::EQUAL);
            e.asm.jump(Code::Jmp_rel32_64, equal);
        });
        self.rare(other_root, move |e| {
            if let Some(n) = kept {
                let other = pattern::OTHER as i32;
                e.asm.mem_imm(Code::Mov_rm32_imm32, root_pattern(n), other);
            }
            e.asm.jump(Code::Jmp_rel32_64, other);
        });
        self.neither(other, slot, slow);
    }

    /// [`Self::check`] of a base slot.
    fn check_base(
        &mut self,
        a: MemoryAccess,
        steps: usize,
        group: &Group,
        slot: Option<usize>,
        equal: Label,
        slow: Label,
    ) {
        let (other, not_consecutive) = (self.asm.label(), self.asm.label());
        let span = group.offsets.end - group.offsets.start;
        let base = self.inst().args.src[0];
        if a.wide {
            let addresses = self.sources64(base);
            self.differences64(addresses, steps, not_consecutive);
        } else {
            let addresses = self.source32(base);
            self.differences32(addresses, steps, not_consecutive);
        }
        let rest = i64::from(a.size * a.count) * (self.asm.isa.lanes() as i64 - 1);
        self.add_uniform_of(a);
        self.bounds(a, group, span + rest, other);
        if !a.shared {
            self.prefetch(group);
        }
        self.keep_outcome(slot, pattern::CONSECUTIVE);
        let group = group.clone();
        self.rare(not_consecutive, move |e| {
            if a.wide {
                e.equal64(base, other);
            } else {
                e.equal32(base, other);
            }
            e.add_uniform_of(a);
            e.bounds(a, &group, span, other);
            e.keep_outcome(slot, pattern::EQUAL);
            e.asm.jump(Code::Jmp_rel32_64, equal);
        });
        self.neither(other, slot, slow);
    }

    /// Emits behind the blocks: keeps that a group is neither consecutive nor equal, and goes to `slow`.
    fn neither(&mut self, label: Label, slot: Option<usize>, slow: Label) {
        self.rare(label, move |e| {
            if let Some(slot) = slot {
                let patterns = context(offset_of!(NativeContext, patterns) + 4 * slot);
                e.asm
                    .mem_imm(Code::Mov_rm32_imm32, patterns, pattern::OTHER as i32);
            }
            e.asm.jump(Code::Jmp_rel32_64, slow);
        });
    }

    /// Prefetches what later warps of the pattern access. The accesses are too far apart for the prefetcher of the processor.
    fn prefetch(&mut self, group: &Group) {
        const AHEAD: i64 = 1024;
        let later = at(Register::RDX, group.offsets.start + AHEAD);
        self.asm.op1_mem(Code::Prefetcht0_m8, later);
    }

    /// Whether the lanes of a root are `stride` bytes apart: leaves that of the first lane of the chunk in `rax`, or jumps to
    /// `other` if the extension to 64 bits makes a gap, and to `otherwise` in other cases.
    fn consecutive_root(&mut self, address: &Address, stride: u32, otherwise: Label, other: Label) {
        let Root::Index { signed, shift, .. } = address.root else {
            let addresses = [0, 1].map(|part| self.root64(address, part));
            if let Some(steps) = stride_index(stride) {
                self.differences64(addresses, steps, otherwise);
            }
            return;
        };
        if stride != 1 << shift {
            self.asm.jump(Code::Jmp_rel32_64, otherwise);
            return;
        }
        let index = self.root32(address);
        self.differences32(index, 0, otherwise);
        let last = at(Register::RAX, self.asm.isa.lanes() as i64 - 1);
        self.asm
            .op2(Code::Lea_r32_m, Register::ECX, Source::Memory(last));
        self.asm
            .op2(Code::Cmp_r32_rm32, Register::ECX, Register::EAX);
        let wraps = match signed {
            true => Code::Jl_rel32_64,
            false => Code::Jb_rel32_64,
        };
        self.asm.jump(wraps, other);
        self.scale_index(signed, shift);
    }

    /// Whether the lanes of a root are equal: leaves their value in `rax`, or jumps.
    fn equal_root(&mut self, address: &Address, otherwise: Label) {
        let Root::Index { signed, shift, .. } = address.root else {
            let addresses = [0, 1].map(|part| self.root64(address, part));
            self.equal_sources64(addresses, otherwise);
            return;
        };
        let index = self.root32(address);
        self.equal_source32(index, otherwise);
        self.scale_index(signed, shift);
    }

    /// Makes the index in `eax` a distance in bytes in `rax`.
    fn scale_index(&mut self, signed: bool, shift: u32) {
        match signed {
            true => {
                self.asm
                    .op2(Code::Movsxd_r64_rm32, Register::RAX, Register::EAX);
            }
            false => self
                .asm
                .op2(Code::Mov_r32_rm32, Register::EAX, Register::EAX),
        }
        if shift > 0 {
            self.asm
                .op_imm(Code::Shl_rm64_imm8, Register::RAX, shift as i32);
        }
    }

    fn load_first(&mut self, n: usize) {
        let first = Source::Memory(root_first(n));
        self.asm.op2(Code::Mov_r64_rm64, Register::RAX, first);
    }

    /// Keeps the first lane of a root, in `rax`, and the pattern, if later checks read them.
    fn keep_root(&mut self, n: Option<usize>, pattern: u32) {
        let Some(n) = n else { return };
        self.asm
            .store(Code::Mov_rm64_r64, root_first(n), Register::RAX);
        self.asm
            .mem_imm(Code::Mov_rm32_imm32, root_pattern(n), pattern as i32);
    }

    /// Adds uniform slots to `rax`.
    pub fn add_uniforms(&mut self, uniforms: &[u32]) {
        for u in uniforms {
            let u = Source::Memory(at(REGS64, i64::from(*u)));
            self.asm.op2(Code::Add_r64_rm64, Register::RAX, u);
        }
    }

    /// Adds the uniform slot of the current instruction to `rax`.
    fn add_uniform_of(&mut self, a: MemoryAccess) {
        let uniform = self.inst().args.src[2];
        if a.wide && uniform != fixed::ZERO {
            self.add_uniforms(&[uniform]);
        }
    }

    fn sources64(&mut self, slot: u32) -> [Source; 2] {
        [0, 1].map(|part| self.source64(slot, part))
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
    fn differences32(&mut self, addresses: Source, steps: usize, otherwise: Label) {
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
        self.equal_source32(addresses, otherwise);
    }

    fn equal_source32(&mut self, addresses: Source, otherwise: Label) {
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
    fn differences64(&mut self, addresses: [Source; 2], steps: usize, otherwise: Label) {
        for (part, addresses) in addresses.into_iter().enumerate() {
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
        let addresses = self.sources64(base);
        self.equal_sources64(addresses, otherwise);
    }

    fn equal_sources64(&mut self, [low, high]: [Source; 2], otherwise: Label) {
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
            let lanes = self.lanes_of_part(part);
            self.asm
                .op3_imm(compare, MASK, v[part as usize], vector(2), NOT_EQUAL, lanes);
            self.asm.op2(Code::VEX_Kortestb_kr_kr, MASK, MASK);
            self.asm.jump(Code::Jne_rel32_64, otherwise);
        }
    }

    /// The first byte, and the end for loads or stores, of the region that the current instruction accessed last. Uses `rsi`.
    pub fn cached_region(&mut self, store: bool) -> [Source; 2] {
        let cache = Source::Memory(context(offset_of!(NativeContext, cache)));
        self.asm.op2(Code::Mov_r64_rm64, Register::RSI, cache);
        let entry = usize::from(self.inst().aux as u8) * size_of::<Cached>();
        let end = match store {
            true => offset_of!(Cached, write_end),
            false => offset_of!(Cached, end),
        };
        [offset_of!(Cached, base), end]
            .map(|field| Source::Memory(at(Register::RSI, (entry + field) as i64)))
    }

    /// Checks alignment and bounds of the group's range at the address in `rax`, which is `span` bytes long, and leaves the
    /// address in host memory, without offset, in `rdx`.
    fn bounds(&mut self, a: MemoryAccess, group: &Group, span: i64, otherwise: Label) {
        let region = (!a.shared).then(|| self.cached_region(group.stores));
        let asm = &mut self.asm;
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
        if let Some([base, end]) = region {
            asm.op2(Code::Cmp_r64_rm64, Register::RDX, base);
            asm.jump(Code::Jb_rel32_64, otherwise);
            asm.op2(Code::Mov_r64_rm64, Register::RCX, end);
            asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, span as i32);
            asm.jump(Code::Jb_rel32_64, otherwise);
            asm.op2(Code::Cmp_r64_rm64, Register::RDX, Register::RCX);
            asm.jump(Code::Ja_rel32_64, otherwise);
        } else {
            let bytes = Source::Memory(context(offset_of!(NativeContext, shared_bytes)));
            asm.op2(Code::Mov_r64_rm64, Register::RCX, bytes);
            asm.op_imm(Code::Sub_rm64_imm32, Register::RCX, span as i32);
            asm.jump(Code::Jb_rel32_64, otherwise);
            asm.op2(Code::Cmp_r64_rm64, Register::RDX, Register::RCX);
            asm.jump(Code::Ja_rel32_64, otherwise);
            let shared = Source::Memory(context(offset_of!(NativeContext, shared)));
            asm.op2(Code::Add_r64_rm64, Register::RDX, shared);
        }
        if group.offsets.start != 0 {
            asm.op_imm(
                Code::Sub_rm64_imm32,
                Register::RDX,
                group.offsets.start as i32,
            );
        }
    }
}

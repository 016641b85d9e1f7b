//! Loads and stores: addresses to host memory, with every access checked.
//!
//! The common case is decided in a few vector instructions: all lanes consecutive means one check of one range and
//! one copy. Otherwise the lowest and the highest address are checked against one region, and only if that fails each
//! lane by itself.
//!
//! Threads of a grid may race on memory, as on a GPU; accesses here go through raw pointers and never create references
//! to device memory.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use cupyrite_ptx::ir::Semantics;

use super::exec::{Cx, Done};
use super::ops::Slot;
use super::program::{Inst, MemOp, MemSpace, fixed};
use super::report::{FaultKind, LaneFault, What};
use super::warp::{ALL, LANES, Warp, zeroed_lines};
use super::window::{WINDOW, windows};
use crate::memory::AddressSpace;

/// A region as an instruction last saw it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cached {
    base: u64,
    end: u64,
    /// `end`, or zero if stores are refused.
    write_end: u64,
}

/// Regions recently used, by memory instruction.
pub struct RegionCache {
    entries: [Cached; 256],
    generation: u64,
}

impl RegionCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self {
            entries: [Cached::default(); 256],
            generation: 0,
        }
    }

    /// Forgets everything if regions have come or gone.
    pub fn refresh(&mut self, space: &AddressSpace) {
        let now = space.generation();
        if now != self.generation {
            self.entries = [Cached::default(); 256];
            self.generation = now;
        }
    }

    #[inline(always)]
    fn hit(&self, entry: u16, address: u64, len: u64, write: bool) -> bool {
        let e = &self.entries[usize::from(entry & 0xff)];
        let end = if write { e.write_end } else { e.end };
        address >= e.base && address < end && end - address >= len
    }

    #[cold]
    #[inline(never)]
    fn find(
        &mut self,
        space: &AddressSpace,
        entry: u16,
        address: u64,
        len: u64,
        write: bool,
    ) -> bool {
        let Some(r) = space.find_range(address, len) else {
            return false;
        };
        if write && r.read_only {
            return false;
        }
        self.entries[usize::from(entry & 0xff)] = Cached {
            base: r.base,
            end: r.base + r.size,
            write_end: if r.read_only { 0 } else { r.base + r.size },
        };
        true
    }

    /// Whether `[address, address + len)` lies in one region that allows the access.
    #[inline(always)]
    pub fn check(
        &mut self,
        space: &AddressSpace,
        entry: u16,
        address: u64,
        len: u64,
        write: bool,
    ) -> bool {
        self.hit(entry, address, len, write) || self.find(space, entry, address, len, write)
    }
}

/// Writes `v` into the lanes `m` of a 32-bit slot.
///
/// # Safety
/// `at` is such a slot of the register file `regs`.
#[inline(always)]
pub unsafe fn splat32(regs: *mut u8, at: u32, v: u32, m: u32) {
    for l in 0..LANES {
        if m >> l & 1 != 0 {
            // SAFETY: the caller's promise.
            unsafe { *regs.add(at as usize).cast::<u32>().add(l) = v };
        }
    }
}

/// Writes `v` into the lanes `m` of a 64-bit slot.
///
/// # Safety
/// `at` is such a slot of the register file `regs`.
#[inline(always)]
pub unsafe fn splat64(regs: *mut u8, at: u32, v: u64, m: u32) {
    for l in 0..LANES {
        if m >> l & 1 != 0 {
            // SAFETY: the caller's promise.
            unsafe { *regs.add(at as usize).cast::<u64>().add(l) = v };
        }
    }
}

#[cold]
#[inline(never)]
fn refused(
    kind: FaultKind,
    lane: u32,
    address: u64,
    bytes: u32,
    write: bool,
    space: &'static str,
    limit: Option<u64>,
) -> Box<LaneFault> {
    Box::new(LaneFault {
        kind,
        lane,
        what: What::Access {
            address,
            bytes,
            write,
            space,
            limit,
        },
    })
}

#[inline(always)]
unsafe fn consecutive(a: *const u64, step: u64) -> bool {
    // SAFETY: `a` is a 64-bit slot.
    unsafe {
        let first = *a;
        let mut diff = 0u64;
        for l in 0..LANES {
            diff |= *a.add(l) ^ first.wrapping_add(step.wrapping_mul(l as u64));
        }
        diff == 0
    }
}

/// Load of one element of `N` (4 or 8) bytes a lane, global or generic.
#[inline(always)]
pub unsafe fn ld_simple<const N: usize>(
    cx: &mut Cx<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    m: u32,
) -> Done {
    // SAFETY: places of a decoded instruction lie in the register file; `check` covers the copied range.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u64>();
        if m == ALL && consecutive(a, N as u64) {
            let start = (*a).wrapping_add(inst.imm as u64);
            if start % N as u64 == 0
                && cx
                    .worker
                    .cache
                    .check(cx.run.space, inst.aux, start, 32 * N as u64, false)
            {
                let dst = regs.add(inst.args.dst[0] as usize);
                std::ptr::copy_nonoverlapping(start as *const u8, dst, 32 * N);
                return Ok(());
            }
        }
        load(cx, w, regs, inst, m)
    }
}

/// Store of one element of `N` (4 or 8) bytes a lane, global or generic.
#[inline(always)]
pub unsafe fn st_simple<const N: usize>(
    cx: &mut Cx<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    m: u32,
) -> Done {
    // SAFETY: as for loads.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u64>();
        if m == ALL && consecutive(a, N as u64) {
            let start = (*a).wrapping_add(inst.imm as u64);
            if start % N as u64 == 0
                && cx
                    .worker
                    .cache
                    .check(cx.run.space, inst.aux, start, 32 * N as u64, true)
            {
                let src = regs.add(inst.args.src[1] as usize);
                std::ptr::copy_nonoverlapping(src, start as *mut u8, 32 * N);
                return Ok(());
            }
        }
        store(cx, w, regs, inst, m)
    }
}

/// Whether all active lanes' 4-byte accesses fit into shared memory, and the offset of the first.
#[inline(always)]
unsafe fn shared4_ok(limit: u32, a: *const u32, imm: u32, m: u32) -> bool {
    if limit < 4 {
        return false;
    }
    let top = limit - 4;
    let mut bad = 0u32;
    for l in 0..LANES {
        // SAFETY: `a` is a 32-bit slot.
        let at = unsafe { *a.add(l) }.wrapping_add(imm);
        let wrong = u32::from(at > top) | u32::from(at & 3 != 0);
        bad |= wrong & (m >> l);
    }
    bad & 1 == 0
}

/// Load of one 4-byte element from shared memory, 32-bit address.
#[inline(always)]
pub unsafe fn ld_shared4(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    // SAFETY: every active lane's access was checked.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u32>();
        let imm = inst.imm as u32;
        if !shared4_ok(cx.core.shared_bytes, a, imm, m) {
            return Err(shared_fault(cx, a, imm, m, false));
        }
        let base = cx.core.shared();
        let dst = regs.add(inst.args.dst[0] as usize).cast::<u32>();
        if m == ALL {
            let first = *a;
            let mut step = 0u32;
            let mut same = 0u32;
            for l in 0..LANES {
                step |= *a.add(l) ^ first.wrapping_add(4 * l as u32);
                same |= *a.add(l) ^ first;
            }
            let from = base.add(first.wrapping_add(imm) as usize);
            if step == 0 {
                std::ptr::copy_nonoverlapping(from, dst.cast(), 128);
            } else if same == 0 {
                let v = *from.cast::<u32>();
                for l in 0..LANES {
                    *dst.add(l) = v;
                }
            } else {
                for l in 0..LANES {
                    *dst.add(l) = *base
                        .add((*a.add(l)).wrapping_add(imm) as usize)
                        .cast::<u32>();
                }
            }
            return Ok(());
        }
        let mut left = m;
        while left != 0 {
            let l = left.trailing_zeros() as usize;
            left &= left - 1;
            *dst.add(l) = *base
                .add((*a.add(l)).wrapping_add(imm) as usize)
                .cast::<u32>();
        }
        Ok(())
    }
}

/// Store of one 4-byte element to shared memory, 32-bit address.
#[inline(always)]
pub unsafe fn st_shared4(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    // SAFETY: every active lane's access was checked.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u32>();
        let imm = inst.imm as u32;
        if !shared4_ok(cx.core.shared_bytes, a, imm, m) {
            return Err(shared_fault(cx, a, imm, m, true));
        }
        let base = cx.core.shared();
        let src = regs.add(inst.args.src[1] as usize).cast::<u32>();
        let mut left = m;
        while left != 0 {
            let l = left.trailing_zeros() as usize;
            left &= left - 1;
            *base
                .add((*a.add(l)).wrapping_add(imm) as usize)
                .cast::<u32>() = *src.add(l);
        }
        Ok(())
    }
}

#[cold]
unsafe fn shared_fault(
    cx: &Cx<'_>,
    a: *const u32,
    imm: u32,
    m: u32,
    write: bool,
) -> Box<LaneFault> {
    let limit = cx.core.shared_bytes;
    for l in 0..32u32 {
        // SAFETY: `a` is a 32-bit slot.
        let at = unsafe { *a.add(l as usize) }.wrapping_add(imm);
        if m >> l & 1 != 0 && (u64::from(at) + 4 > u64::from(limit) || at & 3 != 0) {
            return shared_refused(u64::from(at), 4, l, limit, write);
        }
    }
    shared_refused(0, 4, 0, limit, write)
}

fn shared_refused(at: u64, bytes: u32, lane: u32, limit: u32, write: bool) -> Box<LaneFault> {
    let outside = at.saturating_add(u64::from(bytes)) > u64::from(limit);
    let kind = if outside {
        FaultKind::IllegalAddress
    } else {
        FaultKind::MisalignedAddress
    };
    refused(
        kind,
        lane,
        at,
        bytes,
        write,
        "shared",
        Some(u64::from(limit)),
    )
}

/// Addresses of all lanes, offset included; those of idle lanes mean nothing.
///
/// # Safety
/// `at` is a slot of the width that `narrow` says.
#[inline(always)]
pub unsafe fn addresses(regs: *mut u8, at: u32, narrow: bool, imm: i64) -> [u64; LANES] {
    let mut out = [0u64; LANES];
    // SAFETY: the caller's promise.
    unsafe {
        if narrow {
            let a = regs.add(at as usize).cast::<u32>();
            for (l, o) in out.iter_mut().enumerate() {
                *o = u64::from((*a.add(l)).wrapping_add(imm as u32));
            }
        } else {
            let a = regs.add(at as usize).cast::<u64>();
            for (l, o) in out.iter_mut().enumerate() {
                *o = (*a.add(l)).wrapping_add(imm as u64);
            }
        }
    }
    out
}

/// Where an access of one lane goes.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Host memory: the whole access is at this address.
    Host(u64),
    /// Local memory, at this offset.
    Local(u32),
}

/// Resolves one lane's access of `bytes` bytes.
///
/// # Errors
/// The fault, if the access is not allowed.
#[allow(clippy::too_many_arguments)]
pub fn resolve(
    cx: &mut Cx<'_>,
    space: MemSpace,
    entry: u16,
    lane: u32,
    address: u64,
    bytes: u32,
    align: u32,
    write: bool,
) -> Result<Place, Box<LaneFault>> {
    let misaligned = address & u64::from(align - 1) != 0;
    let local = |cx: &Cx<'_>, at: u64| {
        let limit = cx.run.local_bytes;
        if at
            .checked_add(u64::from(bytes))
            .is_none_or(|e| e > u64::from(limit))
        {
            return Err(refused(
                FaultKind::IllegalAddress,
                lane,
                at,
                bytes,
                write,
                "local",
                Some(u64::from(limit)),
            ));
        }
        if misaligned {
            return Err(refused(
                FaultKind::MisalignedAddress,
                lane,
                at,
                bytes,
                write,
                "local",
                None,
            ));
        }
        Ok(Place::Local(at as u32))
    };
    let shared = |cx: &Cx<'_>, at: u64| {
        let limit = cx.core.shared_bytes;
        if misaligned
            || at
                .checked_add(u64::from(bytes))
                .is_none_or(|e| e > u64::from(limit))
        {
            return Err(shared_refused(at, bytes, lane, limit, write));
        }
        Ok(Place::Host(cx.core.shared() as u64 + at))
    };
    match space {
        MemSpace::Local => local(cx, address),
        MemSpace::Shared => shared(cx, address),
        MemSpace::Global | MemSpace::Generic => {
            if space == MemSpace::Generic {
                let win = windows();
                if address.wrapping_sub(win.shared) < WINDOW {
                    return shared(cx, address - win.shared);
                }
                if address.wrapping_sub(win.local) < WINDOW {
                    return local(cx, address - win.local);
                }
            }
            if !cx
                .worker
                .cache
                .check(cx.run.space, entry, address, u64::from(bytes), write)
            {
                return Err(refused(
                    FaultKind::IllegalAddress,
                    lane,
                    address,
                    bytes,
                    write,
                    "global",
                    None,
                ));
            }
            if misaligned {
                return Err(refused(
                    FaultKind::MisalignedAddress,
                    lane,
                    address,
                    bytes,
                    write,
                    "global",
                    None,
                ));
            }
            Ok(Place::Host(address))
        }
    }
}

/// Pointer to the 4-byte word that holds offset `at` of a lane's local memory.
#[inline(always)]
pub fn local_word(base: *mut u8, at: u32, lane: usize) -> *mut u8 {
    base.wrapping_add((at as usize / 4) * 128 + lane * 4 + (at as usize & 3))
}

/// The warp's local memory, allocated on first use.
pub fn local_base(cx: &Cx<'_>, w: &mut Warp) -> *mut u8 {
    let bytes = cx.run.local_bytes as usize * LANES;
    if w.local.len() * 64 < bytes {
        w.local = zeroed_lines(bytes);
    }
    w.local.as_mut_ptr().cast()
}

/// Reads `size` bytes of local memory.
///
/// # Safety
/// The range was checked and is aligned to its size (at most 4 matter).
pub unsafe fn local_read(base: *mut u8, at: u32, lane: usize, size: u32) -> u128 {
    // SAFETY: the caller's promise.
    unsafe {
        let p = local_word(base, at, lane);
        match size {
            1 => u128::from(*p),
            2 => u128::from(*p.cast::<u16>()),
            4 => u128::from(*p.cast::<u32>()),
            _ => {
                let mut v = 0u128;
                for k in 0..size / 4 {
                    v |= u128::from(*local_word(base, at + 4 * k, lane).cast::<u32>()) << (32 * k);
                }
                v
            }
        }
    }
}

/// Writes `size` bytes of local memory.
///
/// # Safety
/// As for [`local_read`].
pub unsafe fn local_write(base: *mut u8, at: u32, lane: usize, size: u32, v: u128) {
    // SAFETY: the caller's promise.
    unsafe {
        let p = local_word(base, at, lane);
        match size {
            1 => *p = v as u8,
            2 => *p.cast::<u16>() = v as u16,
            4 => *p.cast::<u32>() = v as u32,
            _ => {
                for k in 0..size / 4 {
                    *local_word(base, at + 4 * k, lane).cast::<u32>() = (v >> (32 * k)) as u32;
                }
            }
        }
    }
}

/// Reads one lane of a slot.
///
/// # Safety
/// `at` is a slot of shape `slot`.
#[inline(always)]
pub unsafe fn get(regs: *mut u8, at: u32, slot: Slot, lane: usize) -> u128 {
    // SAFETY: the caller's promise.
    unsafe {
        let p = regs.add(at as usize);
        match slot {
            Slot::Pred => u128::from(*p.cast::<u32>() >> lane & 1),
            Slot::R32 => u128::from(*p.cast::<u32>().add(lane)),
            Slot::R64 => u128::from(*p.cast::<u64>().add(lane)),
            Slot::R128 => *p.cast::<u128>().add(lane),
        }
    }
}

/// Writes one lane of a slot.
///
/// # Safety
/// `at` is a slot of shape `slot`.
#[inline(always)]
pub unsafe fn set(regs: *mut u8, at: u32, slot: Slot, lane: usize, v: u128) {
    // SAFETY: the caller's promise.
    unsafe {
        let p = regs.add(at as usize);
        match slot {
            Slot::Pred => {
                let p = p.cast::<u32>();
                *p = *p & !(1 << lane) | ((v as u32 & 1) << lane);
            }
            Slot::R32 => *p.cast::<u32>().add(lane) = v as u32,
            Slot::R64 => *p.cast::<u64>().add(lane) = v as u64,
            Slot::R128 => *p.cast::<u128>().add(lane) = v,
        }
    }
}

/// Extends a loaded element to 128 bits the way the destination wants it.
#[inline(always)]
fn extend(op: &MemOp, v: u128) -> u128 {
    let bits = 8 * op.size;
    if !op.signed || bits >= 128 {
        return v;
    }
    let shift = 128 - bits;
    let v = ((v << shift) as i128 >> shift) as u128;
    if op.narrow { v & 0xffff } else { v }
}

/// An atomic read of host memory.
///
/// # Safety
/// The range was checked and is aligned to its size.
pub unsafe fn atomic_read(p: u64, size: u32, order: Semantics) -> u128 {
    let o = match order {
        Semantics::Acquire | Semantics::AcqRel => Ordering::Acquire,
        Semantics::Sc => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    };
    // SAFETY: the caller's promise; other threads access the same memory atomically or race as the PTX says.
    unsafe {
        match size {
            1 => u128::from(AtomicU8::from_ptr(p as *mut u8).load(o)),
            2 => u128::from(AtomicU16::from_ptr(p as *mut u16).load(o)),
            4 => u128::from(AtomicU32::from_ptr(p as *mut u32).load(o)),
            8 => u128::from(AtomicU64::from_ptr(p as *mut u64).load(o)),
            _ => {
                let lo = AtomicU64::from_ptr(p as *mut u64).load(o);
                let hi = AtomicU64::from_ptr((p + 8) as *mut u64).load(o);
                u128::from(lo) | u128::from(hi) << 64
            }
        }
    }
}

/// An atomic write of host memory.
///
/// # Safety
/// As for [`atomic_read`].
pub unsafe fn atomic_write(p: u64, size: u32, v: u128, order: Semantics) {
    let o = match order {
        Semantics::Release | Semantics::AcqRel => Ordering::Release,
        Semantics::Sc => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    };
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(p as *mut u8).store(v as u8, o),
            2 => AtomicU16::from_ptr(p as *mut u16).store(v as u16, o),
            4 => AtomicU32::from_ptr(p as *mut u32).store(v as u32, o),
            8 => AtomicU64::from_ptr(p as *mut u64).store(v as u64, o),
            _ => {
                AtomicU64::from_ptr(p as *mut u64).store(v as u64, o);
                AtomicU64::from_ptr((p + 8) as *mut u64).store((v >> 64) as u64, o);
            }
        }
    }
}

/// A plain read of `size` bytes of host memory.
#[inline(always)]
unsafe fn host_read(p: u64, size: u32) -> u128 {
    // SAFETY: the caller has checked the range and its alignment.
    unsafe {
        match size {
            1 => u128::from(*(p as *const u8)),
            2 => u128::from(*(p as *const u16)),
            4 => u128::from(*(p as *const u32)),
            8 => u128::from(*(p as *const u64)),
            _ => (p as *const u128).read_unaligned(),
        }
    }
}

#[inline(always)]
unsafe fn host_write(p: u64, size: u32, v: u128) {
    // SAFETY: the caller has checked the range and its alignment.
    unsafe {
        match size {
            1 => *(p as *mut u8) = v as u8,
            2 => *(p as *mut u16) = v as u16,
            4 => *(p as *mut u32) = v as u32,
            8 => *(p as *mut u64) = v as u64,
            _ => (p as *mut u128).write_unaligned(v),
        }
    }
}

/// Host addresses of all active lanes if one check covers them: everything in one region, or all in shared memory.
#[inline(always)]
fn all_at_once(
    cx: &mut Cx<'_>,
    op: &MemOp,
    entry: u16,
    a: &mut [u64; LANES],
    m: u32,
    bytes: u32,
    align: u32,
) -> bool {
    let mut low = u64::MAX;
    let mut high = 0u64;
    let mut bits = 0u64;
    for (l, &x) in a.iter().enumerate() {
        let on = m >> l & 1 != 0;
        low = low.min(if on { x } else { u64::MAX });
        high = high.max(if on { x } else { 0 });
        bits |= if on { x } else { 0 };
    }
    if bits & u64::from(align - 1) != 0 {
        return false;
    }
    match op.space {
        MemSpace::Shared => {
            if high
                .checked_add(u64::from(bytes))
                .is_none_or(|e| e > u64::from(cx.core.shared_bytes))
            {
                return false;
            }
            let base = cx.core.shared() as u64;
            for x in a.iter_mut() {
                *x = x.wrapping_add(base);
            }
            true
        }
        MemSpace::Global | MemSpace::Generic => {
            let Some(len) = (high - low).checked_add(u64::from(bytes)) else {
                return false;
            };
            cx.worker
                .cache
                .check(cx.run.space, entry, low, len, op.store)
        }
        MemSpace::Local => false,
    }
}

/// Any load.
#[inline(never)]
pub unsafe fn load(cx: &mut Cx<'_>, w: &mut Warp, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    let program = cx.program;
    let op = &program.mem[inst.target as usize];
    // SAFETY: places lie in the register file; every access is checked before it is made.
    unsafe {
        let mut a = addresses(regs, inst.args.src[0], op.addr32, inst.imm);
        let bytes = op.size * op.regs.len() as u32;
        if op.space == MemSpace::Local {
            return local_load(cx, w, regs, op, &a, m, bytes);
        }
        if op.size <= 8
            && !op.atomic
            && all_at_once(
                cx,
                op,
                inst.aux,
                &mut a,
                m,
                bytes,
                bytes.next_power_of_two(),
            )
        {
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = u64::from(op.size) * k as u64;
                let mut left = m;
                match (op.size, slot) {
                    (4, Slot::R32) => {
                        let dst = regs.add(at as usize).cast::<u32>();
                        while left != 0 {
                            let l = left.trailing_zeros() as usize;
                            left &= left - 1;
                            *dst.add(l) = *((a[l] + step) as *const u32);
                        }
                    }
                    (8, Slot::R64) => {
                        let dst = regs.add(at as usize).cast::<u64>();
                        while left != 0 {
                            let l = left.trailing_zeros() as usize;
                            left &= left - 1;
                            *dst.add(l) = *((a[l] + step) as *const u64);
                        }
                    }
                    _ => {
                        while left != 0 {
                            let l = left.trailing_zeros() as usize;
                            left &= left - 1;
                            let v = extend(op, host_read(a[l] + step, op.size));
                            set(regs, at, slot, l, v);
                        }
                    }
                }
            }
            return Ok(());
        }
        // `Sc` and acquiring loads keep later accesses behind them.
        if op.atomic && op.order == Semantics::Sc {
            fence(Ordering::SeqCst);
        }
        let mut left = m;
        while left != 0 {
            let l = left.trailing_zeros();
            left &= left - 1;
            let place = resolve(
                cx,
                op.space,
                inst.aux,
                l,
                a[l as usize],
                bytes,
                bytes.next_power_of_two(),
                false,
            )?;
            let local = if let Place::Local(_) = place {
                local_base(cx, w)
            } else {
                std::ptr::null_mut()
            };
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = op.size * k as u32;
                let v = match place {
                    Place::Host(p) if op.atomic => {
                        atomic_read(p + u64::from(step), op.size, op.order)
                    }
                    Place::Host(p) => host_read(p + u64::from(step), op.size),
                    Place::Local(o) => local_read(local, o + step, l as usize, op.size),
                };
                set(regs, at, slot, l as usize, extend(op, v));
            }
        }
        Ok(())
    }
}

/// If all active lanes want the same offset, that offset.
#[inline(always)]
fn same_offset(a: &[u64; LANES], m: u32) -> Option<u64> {
    let first = a[m.trailing_zeros() as usize & 31];
    let mut diff = 0;
    for (l, x) in a.iter().enumerate() {
        diff |= if m >> l & 1 != 0 { x ^ first } else { 0 };
    }
    (diff == 0).then_some(first)
}

unsafe fn local_load(
    cx: &mut Cx<'_>,
    w: &mut Warp,
    regs: *mut u8,
    op: &MemOp,
    a: &[u64; LANES],
    m: u32,
    bytes: u32,
) -> Done {
    let base = local_base(cx, w);
    let align = bytes.next_power_of_two();
    // SAFETY: every access is checked before it is made.
    unsafe {
        if let Some(at) = same_offset(a, m)
            && op.size == 4
            && at & u64::from(align - 1) == 0
            && at + u64::from(bytes) <= u64::from(cx.run.local_bytes)
        {
            for (k, &(reg, slot)) in op.regs.iter().enumerate() {
                let row = local_word(base, at as u32 + 4 * k as u32, 0).cast::<u32>();
                if slot == Slot::R32 {
                    blend32(row, regs.add(reg as usize).cast(), m);
                } else {
                    for l in 0..LANES {
                        if m >> l & 1 != 0 {
                            set(regs, reg, slot, l, extend(op, u128::from(*row.add(l))));
                        }
                    }
                }
            }
            return Ok(());
        }
        let mut left = m;
        while left != 0 {
            let l = left.trailing_zeros();
            left &= left - 1;
            let Place::Local(o) = resolve(cx, op.space, 0, l, a[l as usize], bytes, align, false)?
            else {
                continue;
            };
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let v = local_read(base, o + op.size * k as u32, l as usize, op.size);
                set(regs, at, slot, l as usize, extend(op, v));
            }
        }
    }
    Ok(())
}

/// Copies the lanes `m` of a row of 32 words.
///
/// # Safety
/// Both rows are valid for 128 bytes.
#[inline(always)]
pub unsafe fn blend32(src: *const u32, dst: *mut u32, m: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if m == ALL {
            std::ptr::copy_nonoverlapping(src, dst, LANES);
        } else {
            for l in 0..LANES {
                let keep = (m >> l & 1).wrapping_sub(1);
                *dst.add(l) = *dst.add(l) & keep | *src.add(l) & !keep;
            }
        }
    }
}

/// Any store.
#[inline(never)]
pub unsafe fn store(cx: &mut Cx<'_>, w: &mut Warp, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    let program = cx.program;
    let op = &program.mem[inst.target as usize];
    // SAFETY: places lie in the register file; every access is checked before it is made.
    unsafe {
        let mut a = addresses(regs, inst.args.src[0], op.addr32, inst.imm);
        let bytes = op.size * op.regs.len() as u32;
        let align = bytes.next_power_of_two();
        if op.space == MemSpace::Local
            && op.size == 4
            && let Some(at) = same_offset(&a, m)
            && at & u64::from(align - 1) == 0
            && at + u64::from(bytes) <= u64::from(cx.run.local_bytes)
            && op.regs.iter().all(|r| r.1 == Slot::R32)
        {
            let base = local_base(cx, w);
            for (k, &(reg, _)) in op.regs.iter().enumerate() {
                let row = local_word(base, at as u32 + 4 * k as u32, 0).cast::<u32>();
                blend32(regs.add(reg as usize).cast(), row, m);
            }
            return Ok(());
        }
        if !op.atomic
            && op.space != MemSpace::Local
            && all_at_once(cx, op, inst.aux, &mut a, m, bytes, align)
        {
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = u64::from(op.size) * k as u64;
                let mut left = m;
                while left != 0 {
                    let l = left.trailing_zeros() as usize;
                    left &= left - 1;
                    host_write(a[l] + step, op.size, get(regs, at, slot, l));
                }
            }
            return Ok(());
        }
        if op.atomic && op.order == Semantics::Sc {
            fence(Ordering::SeqCst);
        }
        let mut left = m;
        while left != 0 {
            let l = left.trailing_zeros();
            left &= left - 1;
            let place = resolve(cx, op.space, inst.aux, l, a[l as usize], bytes, align, true)?;
            let local = if let Place::Local(_) = place {
                local_base(cx, w)
            } else {
                std::ptr::null_mut()
            };
            for (k, &(at, slot)) in op.regs.iter().enumerate() {
                let step = op.size * k as u32;
                let v = get(regs, at, slot, l as usize);
                match place {
                    Place::Host(p) if op.atomic => {
                        atomic_write(p + u64::from(step), op.size, v, op.order)
                    }
                    Place::Host(p) => host_write(p + u64::from(step), op.size, v),
                    Place::Local(o) => local_write(local, o + step, l as usize, op.size, v),
                }
            }
        }
        Ok(())
    }
}

/// `cp.async`, done at once.
pub unsafe fn cp_async(cx: &mut Cx<'_>, _w: &mut Warp, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    let size = inst.args.imm;
    let from_imm = i64::from(inst.args.dst[1]) << 32 | i64::from(inst.args.src[3]);
    // SAFETY: both ranges are checked before the copy; they are at most 16 bytes long.
    unsafe {
        let to = addresses(regs, inst.args.src[0], inst.args.dst[0] != 0, inst.imm);
        let from = addresses(regs, inst.args.src[1], false, from_imm);
        let ignore = *regs.add(inst.args.dst[2] as usize).cast::<u32>();
        let ignore = match inst.target {
            1 => ignore,
            2 => !ignore,
            _ => 0,
        };
        let mut left = m;
        while left != 0 {
            let l = left.trailing_zeros();
            left &= left - 1;
            let dst = resolve(
                cx,
                MemSpace::Shared,
                inst.aux,
                l,
                to[l as usize],
                size,
                size,
                true,
            )?;
            let mut read = (*regs
                .add(inst.args.src[2] as usize)
                .cast::<u32>()
                .add(l as usize))
            .min(size);
            if ignore >> l & 1 != 0 {
                read = 0;
            }
            let mut buffer = [0u8; 16];
            if read > 0 {
                let src = resolve(
                    cx,
                    MemSpace::Generic,
                    inst.aux,
                    l,
                    from[l as usize],
                    read,
                    size,
                    false,
                )?;
                let Place::Host(p) = src else {
                    return Err(refused(
                        FaultKind::InvalidAddressSpace,
                        l,
                        from[l as usize],
                        read,
                        false,
                        "global",
                        None,
                    ));
                };
                std::ptr::copy_nonoverlapping(p as *const u8, buffer.as_mut_ptr(), read as usize);
            }
            if let Place::Host(p) = dst {
                std::ptr::copy_nonoverlapping(buffer.as_ptr(), p as *mut u8, size as usize);
            }
        }
    }
    let _ = fixed::SINK;
    Ok(())
}

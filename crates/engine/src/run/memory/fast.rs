//! Fast paths of loads and stores of one element of 4 or 8 bytes per lane.
//!
//! A few vector instructions find out whether the addresses of all lanes are consecutive. If they are, one bounds check
//! and one copy serve the warp; otherwise [`super::general`] takes over.

use super::addresses;
use super::general::{load, store};
use super::host::{read_row, read_shared_32, read_shared_row, write_row, write_shared_32};
use super::model::{AccessKind, AccessRequest, MemoryModel, admit};
use crate::bytecode::{Inst, Program};
use crate::kir::MemSpace;
use crate::run::context::{Context, ExecResult};
use crate::run::lanes::{ALL, LANES, lanes};
use crate::run::warp::Warp;

/// Whether the 32 addresses increase by `STEP` bytes.
#[inline(always)]
unsafe fn consecutive<const STEP: i64, const V3: bool>(a: *const u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if V3 {
        // SAFETY: `a` is a 64-bit slot; the caller runs on a machine with AVX2.
        return unsafe { consecutive_v3::<STEP>(a) };
    }
    // SAFETY: `a` is a 64-bit slot.
    unsafe {
        let first = *a;
        let mut diff = 0u64;
        for l in 0..LANES {
            diff |= *a.add(l) ^ first.wrapping_add((STEP as u64).wrapping_mul(l as u64));
        }
        diff == 0
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn consecutive_v3<const STEP: i64>(a: *const u64) -> bool {
    use std::arch::x86_64::*;
    // SAFETY: `a` is a 64-bit slot, aligned to 64.
    unsafe {
        let p = a.cast::<__m256i>();
        let step = _mm256_set1_epi64x(4 * STEP);
        let mut want = _mm256_add_epi64(
            _mm256_set1_epi64x(*a as i64),
            _mm256_setr_epi64x(0, STEP, 2 * STEP, 3 * STEP),
        );
        let mut diff = _mm256_setzero_si256();
        for k in 0..LANES / 4 {
            diff = _mm256_or_si256(diff, _mm256_xor_si256(want, _mm256_load_si256(p.add(k))));
            want = _mm256_add_epi64(want, step);
        }
        _mm256_testz_si256(diff, diff) != 0
    }
}

/// Prefetches what later warps of a consecutive access pattern will load. The loads of an interpreter are too far apart
/// for the hardware prefetcher.
#[inline(always)]
fn prefetch<const V3: bool>(address: u64) {
    #[cfg(target_arch = "x86_64")]
    if V3 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let p = address.wrapping_add(1024) as *const i8;
        // SAFETY: a prefetch never faults, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(p);
            _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The access of all lanes to consecutive elements of `N` bytes in global memory.
fn row<const N: usize>(start: u64, kind: AccessKind) -> AccessRequest {
    let addresses = std::array::from_fn(|l| start + (l * N) as u64);
    AccessRequest::weak(MemSpace::Global, addresses, N as u32, kind)
}

/// Loads one element of `N` (4 or 8) bytes per lane from global or generic memory.
#[inline(always)]
pub unsafe fn ld_simple<const N: usize, const STEP: i64, const V3: bool>(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    // SAFETY: the operands lie in the register file, and `check` covers the copied range.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u64>();
        if active == ALL && consecutive::<STEP, V3>(a) {
            let plus = *regs.add(inst.args.src[2] as usize).cast::<u64>();
            let start = (*a).wrapping_add(plus).wrapping_add(inst.imm as u64);
            if start % N as u64 == 0
                && cx
                    .worker
                    .cache
                    .check(cx.launch.space, inst.aux, start, 32 * N as u64, false)
            {
                admit(cx, inst, active, || row::<N>(start, AccessKind::Load))?;
                prefetch::<V3>(start);
                let dst = regs.add(inst.args.dst[0] as usize);
                read_row::<N, V3>(start, dst);
                return Ok(());
            }
        }
        load(cx, w, regs, inst, active)
    }
}

/// Stores one element of `N` (4 or 8) bytes per lane to global or generic memory.
#[inline(always)]
pub unsafe fn st_simple<const N: usize, const STEP: i64, const V3: bool>(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    // SAFETY: the operands lie in the register file, and `check` covers the copied range.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u64>();
        if active == ALL && consecutive::<STEP, V3>(a) {
            let plus = *regs.add(inst.args.src[2] as usize).cast::<u64>();
            let start = (*a).wrapping_add(plus).wrapping_add(inst.imm as u64);
            if start % N as u64 == 0
                && cx
                    .worker
                    .cache
                    .check(cx.launch.space, inst.aux, start, 32 * N as u64, true)
            {
                admit(cx, inst, active, || row::<N>(start, AccessKind::Store))?;
                prefetch::<V3>(start);
                let src = regs.add(inst.args.src[1] as usize);
                write_row::<N, V3>(src, start);
                return Ok(());
            }
        }
        store(cx, w, regs, inst, active)
    }
}

/// Whether the 4-byte accesses of all active lanes are aligned and lie in shared memory.
#[inline(always)]
unsafe fn shared4_ok(limit: u32, a: *const u32, imm: u32, active: u32) -> bool {
    if limit < 4 {
        return false;
    }
    let top = limit - 4;
    let mut bad = 0u32;
    for l in 0..LANES {
        // SAFETY: `a` is a 32-bit slot.
        let at = unsafe { *a.add(l) }.wrapping_add(imm);
        let wrong = u32::from(at > top) | u32::from(at & 3 != 0);
        bad |= wrong & (active >> l);
    }
    bad & 1 == 0
}

/// The access of one word per lane in shared memory, 32-bit address.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
unsafe fn shared_words(
    program: &Program,
    regs: *mut u8,
    inst: &Inst,
    kind: AccessKind,
) -> AccessRequest {
    let address = &program.mem[inst.target as usize].address;
    // SAFETY: upheld by the caller.
    let addresses = unsafe { addresses(regs, address) };
    AccessRequest::weak(address.space, addresses, 4, kind)
}

/// Loads one 4-byte element per lane from the shared memory of the block, 32-bit address. Accesses outside of it take the
/// general path: they are faults, or reach another block of the cluster.
#[inline(always)]
pub unsafe fn ld_shared4(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    // SAFETY: `shared4_ok` has checked the access of every active lane.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u32>();
        let mut imm = inst.imm as u32;
        // As `in_shared`: a load that begins in shared memory is valid.
        let limit = cx.block.shared_bytes.next_multiple_of(4);
        if !shared4_ok(limit, a, imm, active) {
            imm = imm.wrapping_sub(cx.block.window);
            if !shared4_ok(limit, a, imm, active) {
                return load(cx, w, regs, inst, active);
            }
        }
        let program = cx.program;
        admit(cx, inst, active, || {
            shared_words(program, regs, inst, AccessKind::Load)
        })?;
        let base = cx.block.shared();
        let dst = regs.add(inst.args.dst[0] as usize).cast::<u32>();
        if active == ALL {
            let first = *a;
            let mut step = 0u32;
            let mut same = 0u32;
            for l in 0..LANES {
                step |= *a.add(l) ^ first.wrapping_add(4 * l as u32);
                same |= *a.add(l) ^ first;
            }
            let from = base.add(first.wrapping_add(imm) as usize);
            if step == 0 {
                read_shared_row(from, dst.cast());
            } else if same == 0 {
                let v = read_shared_32(from);
                for l in 0..LANES {
                    *dst.add(l) = v;
                }
            } else {
                for l in 0..LANES {
                    *dst.add(l) = read_shared_32(base.add((*a.add(l)).wrapping_add(imm) as usize));
                }
            }
            return Ok(());
        }
        for l in lanes(active) {
            *dst.add(l) = read_shared_32(base.add((*a.add(l)).wrapping_add(imm) as usize));
        }
        Ok(())
    }
}

/// Stores one 4-byte element per lane to the shared memory of the block, as [`ld_shared4`].
#[inline(always)]
pub unsafe fn st_shared4(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    // SAFETY: `shared4_ok` has checked the access of every active lane.
    unsafe {
        let a = regs.add(inst.args.src[0] as usize).cast::<u32>();
        let mut imm = inst.imm as u32;
        if !shared4_ok(cx.block.shared_bytes, a, imm, active) {
            imm = imm.wrapping_sub(cx.block.window);
            if !shared4_ok(cx.block.shared_bytes, a, imm, active) {
                return store(cx, w, regs, inst, active);
            }
        }
        let program = cx.program;
        admit(cx, inst, active, || {
            shared_words(program, regs, inst, AccessKind::Store)
        })?;
        let base = cx.block.shared();
        let src = regs.add(inst.args.src[1] as usize).cast::<u32>();
        for l in lanes(active) {
            let to = base.add((*a.add(l)).wrapping_add(imm) as usize);
            write_shared_32(to, *src.add(l));
        }
        Ok(())
    }
}

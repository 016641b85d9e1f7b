//! Memory accesses of kernels: address resolution, bounds checks, local memory, slots of the register file.
//!
//! Loads and stores are in [`fast`] and [`general`]; they use this file and [`host`]. Every access first passes [`model`].
//! Threads of a grid may race on memory, as on a GPU. All accesses therefore go through raw pointers, which only [`host`]
//! dereferences, and never create references to device memory.

pub mod fast;
pub mod general;
pub mod host;
pub mod model;
pub mod region_cache;

use self::model::{Admitted, MemoryModel};
use super::aligned::zeroed_lines;
use super::block_state::BlockState;
use super::context::{Context, fault};
use super::lanes::{ALL, LANES};
use super::warp::Warp;
use crate::address_windows::{WINDOW, cluster_block, windows};
use crate::fault::{FaultDetail, FaultKind, LaneFault};
use crate::kir::{Address, MemSpace};
use crate::register_file::fixed;
use crate::semantics::lane::Slot;

/// Writes `v` into the lanes `active` of a 32-bit slot.
///
/// # Safety
/// `at` is such a slot of the register file `regs`.
#[inline(always)]
pub unsafe fn splat32(regs: *mut u8, at: u32, v: u32, active: u32) {
    for l in 0..LANES {
        if active >> l & 1 != 0 {
            // SAFETY: upheld by the caller.
            unsafe { *regs.add(at as usize).cast::<u32>().add(l) = v };
        }
    }
}

/// Writes `v` into the lanes `active` of a 64-bit slot.
///
/// # Safety
/// `at` is such a slot of the register file `regs`.
#[inline(always)]
pub unsafe fn splat64(regs: *mut u8, at: u32, v: u64, active: u32) {
    for l in 0..LANES {
        if active >> l & 1 != 0 {
            // SAFETY: upheld by the caller.
            unsafe { *regs.add(at as usize).cast::<u64>().add(l) = v };
        }
    }
}

/// The fault of a refused access.
#[cold]
#[inline(never)]
pub fn refused(
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
        detail: FaultDetail::Access {
            address,
            bytes,
            write,
            space,
            limit,
        },
    })
}

/// Whether an aligned access lies in the shared memory of a block, which has `limit` bytes.
///
/// A load may begin in it and end behind it: compilers merge loads at the end of dynamic shared memory, whose size they do
/// not know, to one of a vector. A GPU allocates shared memory in units that hold the rest of the vector.
#[inline(always)]
pub fn in_shared(at: u64, bytes: u32, limit: u32, write: bool) -> bool {
    /// Size of the largest vector.
    const VECTOR: u32 = 32;
    let limit = if write || bytes > VECTOR || at >= u64::from(limit) {
        limit
    } else {
        // Backed: shared memory consists of lines of 64 bytes.
        limit.next_multiple_of(VECTOR)
    };
    at.checked_add(u64::from(bytes))
        .is_some_and(|end| end <= u64::from(limit))
}

/// The fault of a refused access to shared memory.
#[cold]
pub fn shared_refused(at: u64, bytes: u32, lane: u32, limit: u32, write: bool) -> Box<LaneFault> {
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

/// The address in every lane. That of an inactive lane is unspecified.
///
/// # Safety
/// The registers of `of` are slots of `regs`.
#[inline(always)]
pub unsafe fn addresses(regs: *mut u8, of: &Address) -> [u64; LANES] {
    let at = of.base.at;
    let imm = of.offset;
    let mut out = [0u64; LANES];
    // SAFETY: upheld by the caller.
    unsafe {
        if of.is_narrow() {
            let a = regs.add(at as usize).cast::<u32>();
            for (l, o) in out.iter_mut().enumerate() {
                *o = u64::from((*a.add(l)).wrapping_add(imm as u32));
            }
        } else {
            let a = regs.add(at as usize).cast::<u64>();
            let plus = of.uniform.map_or(fixed::ZERO, |r| r.at);
            let imm = (*regs.add(plus as usize).cast::<u64>()).wrapping_add(imm as u64);
            for (l, o) in out.iter_mut().enumerate() {
                *o = (*a.add(l)).wrapping_add(imm);
            }
        }
    }
    out
}

/// Target of an access of one lane.
#[derive(Clone, Copy, Debug)]
pub enum ResolvedAddress {
    /// Host memory at this address.
    Host(u64),
    /// Local memory at this offset.
    Local(u32),
}

/// Resolves an access outside of the shared memory that the executing block has to itself.
#[cold]
fn other_shared(
    block: &BlockState,
    at: u64,
    bytes: u32,
    lane: u32,
    misaligned: bool,
    write: bool,
) -> Result<ResolvedAddress, Box<LaneFault>> {
    // The blocks of a cluster have shared memory of the same size.
    let limit = block.shared_bytes;
    match block.in_cluster(at) {
        None => match cluster_block(at) {
            Some((rank, _)) if !block.cluster.shared.is_empty() => {
                let blocks = block.cluster.shared.len();
                let text = format!(
                    "shared::cluster address {at:#x}, which is of rank {rank}; the number of blocks of the cluster is {blocks}"
                );
                Err(fault(FaultKind::ClusterBlockNotPresent, 1 << lane, text))
            }
            _ => Err(shared_refused(at, bytes, lane, limit, write)),
        },
        Some((rank, ..)) if block.cluster.live() & 1 << rank == 0 => {
            let text = format!(
                "shared::cluster address {at:#x}: the block of rank {rank} of the cluster has exited"
            );
            Err(fault(FaultKind::ClusterBlockNotPresent, 1 << lane, text))
        }
        Some((_, base, offset)) if !misaligned && in_shared(offset, bytes, limit, write) => {
            Ok(ResolvedAddress::Host(base + offset))
        }
        Some(_) => {
            let kind = match misaligned {
                true => FaultKind::MisalignedAddress,
                false => FaultKind::IllegalAddress,
            };
            let limit = Some(limit.into());
            Err(refused(
                kind,
                lane,
                at,
                bytes,
                write,
                "shared::cluster",
                limit,
            ))
        }
    }
}

/// Resolves an access of one lane that the model has admitted: checks its bounds, alignment and access rights.
///
/// # Errors
/// The fault of a refused access.
#[allow(clippy::too_many_arguments)]
pub fn resolve<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    _: Admitted,
    space: MemSpace,
    entry: u16,
    lane: u32,
    address: u64,
    bytes: u32,
    align: u32,
    write: bool,
) -> Result<ResolvedAddress, Box<LaneFault>> {
    let misaligned = address & u64::from(align - 1) != 0;
    let local = |cx: &Context<'_, M>, at: u64| {
        let limit = cx.launch.local_bytes;
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
        Ok(ResolvedAddress::Local(at as u32))
    };
    let shared = |cx: &Context<'_, M>, at: u64| {
        let limit = cx.block.shared_bytes;
        if misaligned || !in_shared(at, bytes, limit, write) {
            return other_shared(cx.block, at, bytes, lane, misaligned, write);
        }
        Ok(ResolvedAddress::Host(cx.block.shared() as u64 + at))
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
            let cache = &mut cx.worker.cache;
            let padded = || cx.program.padded.iter().any(|v| v.allows(address, bytes));
            let allowed = cache.hit(entry, address, u64::from(bytes), write)
                || !write && padded()
                || cache.find(cx.launch.space, entry, address, u64::from(bytes), write);
            if !allowed {
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
            Ok(ResolvedAddress::Host(address))
        }
    }
}

/// Pointer to the 4-byte word that holds offset `at` of a lane's local memory.
#[inline(always)]
pub fn local_word(base: *mut u8, at: u32, lane: usize) -> *mut u8 {
    base.wrapping_add((at as usize / 4) * 128 + lane * 4 + (at as usize & 3))
}

/// The warp's local memory, allocated on first use.
pub fn local_base(cx: &Context<'_, impl MemoryModel>, w: &mut Warp) -> *mut u8 {
    // 64 bytes more than a thread may use, because results of up to eight bytes are read whole.
    let bytes = (cx.launch.local_bytes as usize + 64) * LANES;
    if w.local.len() * 64 < bytes {
        w.local = zeroed_lines(bytes);
    }
    w.local.as_mut_ptr().cast()
}

/// Reads `size` bytes of local memory.
///
/// # Safety
/// The range is accessible, and aligned to its size or to 4 bytes.
pub unsafe fn local_read(base: *mut u8, at: u32, lane: usize, size: u32) -> u128 {
    // SAFETY: upheld by the caller.
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
    // SAFETY: upheld by the caller.
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

/// Writes up to 16 bytes of local memory, of any alignment.
///
/// # Safety
/// The range lies in the lane's local memory.
pub unsafe fn local_write_bytes(base: *mut u8, at: u32, lane: usize, size: u32, v: u128) {
    for k in 0..size.min(16) {
        // SAFETY: upheld by the caller.
        unsafe { local_write(base, at + k, lane, 1, v >> (8 * k) & 0xff) };
    }
}

/// Reads up to 16 bytes of local memory, of any alignment.
///
/// # Safety
/// The range lies in the lane's local memory.
pub unsafe fn local_read_bytes(base: *mut u8, at: u32, lane: usize, size: u32) -> u128 {
    let mut v = 0;
    for k in 0..size.min(16) {
        // SAFETY: upheld by the caller.
        v |= unsafe { local_read(base, at + k, lane, 1) } << (8 * k);
    }
    v
}

/// Reads one lane of a slot.
///
/// # Safety
/// `at` is a slot of shape `slot`.
#[inline(always)]
pub unsafe fn get(regs: *mut u8, at: u32, slot: Slot, lane: usize) -> u128 {
    // SAFETY: upheld by the caller.
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
    // SAFETY: upheld by the caller.
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

/// Copies the lanes `active` of a row of 32 words.
///
/// # Safety
/// Both rows are valid for 128 bytes.
#[inline(always)]
pub unsafe fn blend32(src: *const u32, dst: *mut u32, active: u32) {
    // SAFETY: upheld by the caller.
    unsafe {
        if active == ALL {
            std::ptr::copy_nonoverlapping(src, dst, LANES);
        } else {
            for l in 0..LANES {
                let keep = (active >> l & 1).wrapping_sub(1);
                *dst.add(l) = *dst.add(l) & keep | *src.add(l) & !keep;
            }
        }
    }
}

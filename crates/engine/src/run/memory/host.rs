//! Reads and writes of host memory that other threads may access at the same time.
//!
//! The invariant: an access of 1, 2, 4, 8 or 16 bytes that is aligned to its size is one machine access. A GPU executes
//! aligned vector accesses of up to 16 bytes whole, and programs rely on that (the descriptors of decoupled look-back in
//! CUB), although the PTX ISA guarantees it only for the elements of a vector.
//!
//! Processors with AVX execute aligned 16-byte moves whole (Intel SDM, volume 3, "Guaranteed Atomic Operations"; AMD APM,
//! volume 2, "Access Atomicity"). Older processors do not document it, and other architectures access 16 bytes in two
//! halves here.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use cupyrite_ptx::ir::Semantics;

#[cfg(not(target_arch = "x86_64"))]
use crate::run::lanes::LANES;

/// A relaxed access of 16 bytes.
#[cfg(target_arch = "x86_64")]
mod sixteen {
    use std::arch::x86_64::__m128i;

    use parking_lot::Mutex;

    /// # Safety
    /// The range is accessible and aligned to 16 bytes.
    #[inline(always)]
    pub unsafe fn read(p: u64) -> u128 {
        // SAFETY: upheld by the caller; any bytes are valid. LLVM neither splits nor merges a volatile access that the
        // machine supports (LangRef, "Volatile Memory Accesses"): this is one MOVDQA or MOVAPS.
        unsafe { std::mem::transmute(std::ptr::read_volatile(p as *const __m128i)) }
    }

    /// # Safety
    /// As for [`read`], for writes.
    #[inline(always)]
    pub unsafe fn write(p: u64, v: u128) {
        // SAFETY: upheld by the caller; LLVM neither splits nor merges a volatile access that the machine supports
        // (LangRef, "Volatile Memory Accesses").
        unsafe {
            std::ptr::write_volatile(p as *mut __m128i, std::mem::transmute::<u128, __m128i>(v))
        }
    }

    /// Assembly, because LLVM may inline the intrinsic into code for machines without the instruction, and then calls a
    /// library function that is not linked.
    unsafe fn locked(p: u64, old: u128, new: u128) -> u128 {
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        // SAFETY: the caller of `compare_exchange` passes valid memory. LLVM reserves RBX, which keeps its value.
        unsafe {
            std::arch::asm!(
                "xchg {new}, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, {new}",
                new = inout(reg) new as u64 => _,
                in("rcx") (new >> 64) as u64,
                in("rdi") p,
                inout("rax") low,
                inout("rdx") high,
                options(nostack),
            );
        }
        u128::from(low) | u128::from(high) << 64
    }

    /// Writes `new` if the memory contains `old`; returns what it contained. Without CMPXCHG16B, which every processor
    /// with AVX has, this is atomic only with respect to itself.
    ///
    /// # Safety
    /// As for [`write`].
    pub unsafe fn compare_exchange(p: u64, old: u128, new: u128) -> u128 {
        if is_x86_feature_detected!("cmpxchg16b") {
            // SAFETY: the machine has the instruction; the caller upholds the rest.
            return unsafe { locked(p, old, new) };
        }
        static LOCK: Mutex<()> = Mutex::new(());
        let _guard = LOCK.lock();
        // SAFETY: upheld by the caller.
        unsafe {
            let found = read(p);
            if found == old {
                write(p, new);
            }
            found
        }
    }
}

/// An access of 16 bytes in two halves.
#[cfg(not(target_arch = "x86_64"))]
mod sixteen {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use parking_lot::Mutex;

    /// # Safety
    /// The range is accessible and aligned to 16 bytes.
    #[inline(always)]
    pub unsafe fn read(p: u64) -> u128 {
        // SAFETY: upheld by the caller.
        unsafe {
            let low = AtomicU64::from_ptr(p as *mut u64).load(Relaxed);
            let high = AtomicU64::from_ptr((p + 8) as *mut u64).load(Relaxed);
            u128::from(low) | u128::from(high) << 64
        }
    }

    /// # Safety
    /// As for [`read`], for writes.
    #[inline(always)]
    pub unsafe fn write(p: u64, v: u128) {
        // SAFETY: upheld by the caller.
        unsafe {
            AtomicU64::from_ptr(p as *mut u64).store(v as u64, Relaxed);
            AtomicU64::from_ptr((p + 8) as *mut u64).store((v >> 64) as u64, Relaxed);
        }
    }

    /// Writes `new` if the memory contains `old`; returns what it contained. Atomic with respect to itself.
    ///
    /// # Safety
    /// As for [`write`].
    pub unsafe fn compare_exchange(p: u64, old: u128, new: u128) -> u128 {
        static LOCK: Mutex<()> = Mutex::new(());
        let _guard = LOCK.lock();
        // SAFETY: upheld by the caller.
        unsafe {
            let found = read(p);
            if found == old {
                write(p, new);
            }
            found
        }
    }
}

pub use sixteen::compare_exchange as compare_exchange_16;

/// A relaxed read of 1, 2, 4, 8 or 16 bytes.
///
/// # Safety
/// The range is accessible and aligned to its size.
#[inline(always)]
pub unsafe fn read(p: u64, size: u32) -> u128 {
    // SAFETY: upheld by the caller.
    unsafe { read_ordered(p, size, Ordering::Relaxed) }
}

/// A relaxed write of the low `size` bytes of `v`: 1, 2, 4, 8 or 16.
///
/// # Safety
/// The range is writable and aligned to its size.
#[inline(always)]
pub unsafe fn write(p: u64, size: u32, v: u128) {
    // SAFETY: upheld by the caller.
    unsafe { write_ordered(p, size, v, Ordering::Relaxed) }
}

/// A relaxed read of an aligned word.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub unsafe fn read_32(p: u64) -> u32 {
    // SAFETY: upheld by the caller.
    unsafe { AtomicU32::from_ptr(p as *mut u32).load(Ordering::Relaxed) }
}

/// A relaxed read of an aligned double word.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub unsafe fn read_64(p: u64) -> u64 {
    // SAFETY: upheld by the caller.
    unsafe { AtomicU64::from_ptr(p as *mut u64).load(Ordering::Relaxed) }
}

/// Reads an aligned word of shared memory. The warps of a cluster run in turn, so that no other thread accesses it.
///
/// # Safety
/// The word is accessible, and belongs to the block that this thread runs.
#[inline(always)]
pub unsafe fn read_shared_32(p: *const u8) -> u32 {
    // SAFETY: upheld by the caller.
    unsafe { *p.cast::<u32>() }
}

/// Writes an aligned word of shared memory.
///
/// # Safety
/// As for [`read_shared_32`], for writes.
#[inline(always)]
pub unsafe fn write_shared_32(p: *mut u8, v: u32) {
    // SAFETY: upheld by the caller.
    unsafe { *p.cast::<u32>() = v }
}

/// Reads 32 consecutive words of shared memory into a register's slot.
///
/// # Safety
/// As for [`read_shared_32`]; `to` is a 32-bit slot.
#[inline(always)]
pub unsafe fn read_shared_row(from: *const u8, to: *mut u8) {
    // SAFETY: upheld by the caller; shared memory and register files do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, 128) }
}

/// Copies bytes out of device memory, in accesses of any size.
///
/// # Safety
/// The range at `from` is accessible.
#[inline(always)]
pub unsafe fn copy_out(from: u64, to: &mut [u8]) {
    // SAFETY: upheld by the caller; `to` is borrowed exclusively, hence not device memory that kernels access.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) }
}

/// Copies bytes into device memory, in accesses of any size.
///
/// # Safety
/// The range at `to` is writable.
#[inline(always)]
pub unsafe fn copy_in(from: &[u8], to: u64) {
    // SAFETY: upheld by the caller; `from` is borrowed, hence not device memory that kernels write.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) }
}

/// Copies `bytes` bytes between ranges of device memory, which may overlap, in accesses of any size.
///
/// # Safety
/// The range at `from` is accessible, and that at `to` is writable.
#[inline(always)]
pub unsafe fn copy(from: u64, to: u64, bytes: u64) {
    // SAFETY: upheld by the caller.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) }
}

/// Writes zeros.
///
/// # Safety
/// The range is writable.
pub unsafe fn fill_zero(p: u64, bytes: u64) {
    // SAFETY: upheld by the caller.
    unsafe { std::ptr::write_bytes(p as *mut u8, 0, bytes as usize) }
}

/// The atomic integer of type `A` at an address of device memory.
///
/// # Safety
/// The integer is accessible and aligned to its size as long as the result is used; `A` is one of the standard library's
/// atomic integers.
#[inline(always)]
pub unsafe fn atomic<'a, A>(p: u64) -> &'a A {
    // SAFETY: upheld by the caller; the standard library's atomics have the layout of their integers.
    unsafe { &*(p as *const A) }
}

/// The host's order for a load.
pub fn load_order(order: Semantics) -> Ordering {
    match order {
        Semantics::Acquire | Semantics::AcqRel => Ordering::Acquire,
        Semantics::Sc => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    }
}

/// The host's order for a store.
pub fn store_order(order: Semantics) -> Ordering {
    match order {
        Semantics::Release | Semantics::AcqRel => Ordering::Release,
        Semantics::Sc => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    }
}

/// A read of 1, 2, 4, 8 or 16 bytes, with an order of [`load_order`].
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub unsafe fn read_ordered(p: u64, size: u32, order: Ordering) -> u128 {
    // SAFETY: upheld by the caller; other threads access the same memory atomically or race as the PTX says.
    unsafe {
        match size {
            1 => u128::from(AtomicU8::from_ptr(p as *mut u8).load(order)),
            2 => u128::from(AtomicU16::from_ptr(p as *mut u16).load(order)),
            4 => u128::from(AtomicU32::from_ptr(p as *mut u32).load(order)),
            8 => u128::from(AtomicU64::from_ptr(p as *mut u64).load(order)),
            _ => {
                let v = sixteen::read(p);
                if order != Ordering::Relaxed {
                    fence(order);
                }
                v
            }
        }
    }
}

/// A write of the low `size` bytes of `v`: 1, 2, 4, 8 or 16, with an order of [`store_order`].
///
/// # Safety
/// As for [`write`].
#[inline(always)]
pub unsafe fn write_ordered(p: u64, size: u32, v: u128, order: Ordering) {
    // SAFETY: upheld by the caller.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(p as *mut u8).store(v as u8, order),
            2 => AtomicU16::from_ptr(p as *mut u16).store(v as u16, order),
            4 => AtomicU32::from_ptr(p as *mut u32).store(v as u32, order),
            8 => AtomicU64::from_ptr(p as *mut u64).store(v as u64, order),
            _ => {
                if order != Ordering::Relaxed {
                    fence(order);
                }
                sixteen::write(p, v);
                if order == Ordering::SeqCst {
                    fence(order);
                }
            }
        }
    }
}

/// Reads a row of 32 elements of `N` (4 or 8) bytes, aligned to `N`, into a register's slot. No element is read in parts.
///
/// Processors split an unaligned vector move at cache lines and at multiples of 8 bytes from its start, never elsewhere: the
/// array copies of Java's virtual machines rely on that, too. A copy by `memcpy` could consist of any moves.
///
/// # Safety
/// The row is accessible, and `to` is a slot of this element size. `V3` requires AVX2.
#[inline(always)]
pub unsafe fn read_row<const N: usize, const V3: bool>(from: u64, to: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: upheld by the caller.
    unsafe {
        if V3 {
            rows::read_v3::<N>(from, to);
        } else {
            rows::read::<N>(from, to);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for k in (0..LANES * N).step_by(N) {
        // SAFETY: upheld by the caller.
        unsafe {
            let to = to.add(k);
            match N {
                4 => *to.cast::<u32>() = read_32(from + k as u64),
                _ => *to.cast::<u64>() = read_64(from + k as u64),
            }
        }
    }
}

/// Writes a row; see [`read_row`].
///
/// # Safety
/// As for [`read_row`], for writes.
#[inline(always)]
pub unsafe fn write_row<const N: usize, const V3: bool>(from: *const u8, to: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: upheld by the caller.
    unsafe {
        if V3 {
            rows::write_v3::<N>(from, to);
        } else {
            rows::write::<N>(from, to);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for k in (0..LANES * N).step_by(N) {
        // SAFETY: upheld by the caller.
        unsafe {
            let from = from.add(k);
            match N {
                4 => write(to + k as u64, 4, u128::from(*from.cast::<u32>())),
                _ => write(to + k as u64, 8, u128::from(*from.cast::<u64>())),
            }
        }
    }
}

/// Rows in vector moves. They are written in assembly because LLVM may replace a loop of loads and stores by `memcpy`.
#[cfg(target_arch = "x86_64")]
mod rows {
    use std::arch::asm;
    use std::arch::x86_64::{__m128i, __m256i};

    use crate::run::lanes::LANES;

    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn read_v3<const N: usize>(from: u64, to: *mut u8) {
        for k in 0..LANES * N / 32 {
            let v: __m256i;
            // SAFETY: the caller's guarantee covers both rows.
            unsafe {
                asm!("vmovdqu {v}, [{p}]", v = lateout(ymm_reg) v, p = in(reg) from + 32 * k as u64,
                    options(readonly, nostack, preserves_flags));
                *to.cast::<__m256i>().add(k) = v;
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn write_v3<const N: usize>(from: *const u8, to: u64) {
        for k in 0..LANES * N / 32 {
            // SAFETY: the caller's guarantee covers both rows.
            unsafe {
                let v = *from.cast::<__m256i>().add(k);
                asm!("vmovdqu [{p}], {v}", v = in(ymm_reg) v, p = in(reg) to + 32 * k as u64,
                    options(nostack, preserves_flags));
            }
        }
    }

    #[inline(always)]
    pub unsafe fn read<const N: usize>(from: u64, to: *mut u8) {
        for k in 0..LANES * N / 16 {
            let v: __m128i;
            // SAFETY: the caller's guarantee covers both rows.
            unsafe {
                asm!("movdqu {v}, [{p}]", v = lateout(xmm_reg) v, p = in(reg) from + 16 * k as u64,
                    options(readonly, nostack, preserves_flags));
                *to.cast::<__m128i>().add(k) = v;
            }
        }
    }

    #[inline(always)]
    pub unsafe fn write<const N: usize>(from: *const u8, to: u64) {
        for k in 0..LANES * N / 16 {
            // SAFETY: the caller's guarantee covers both rows.
            unsafe {
                let v = *from.cast::<__m128i>().add(k);
                asm!("movdqu [{p}], {v}", v = in(xmm_reg) v, p = in(reg) to + 16 * k as u64,
                    options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::run::aligned::Line;

    /// A value whose bytes are all equal.
    fn uniform(byte: u64) -> u128 {
        u128::from(byte & 255) * (u128::MAX / 255)
    }

    /// Runs `write` with changing values in one thread and counts torn results of `read` in another.
    fn torn(write: impl Fn(u64, u128) + Sync, read: impl Fn(u64) -> u128) -> usize {
        let line = std::cell::UnsafeCell::new(Line([0; 64]));
        let p = line.get() as u64;
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    write(p, uniform(n));
                    n += 1;
                }
            });
            let count = (0..2_000_000).filter(|_| {
                let v = read(p);
                v != uniform(v as u64)
            });
            let count = count.count();
            stop.store(true, Ordering::Relaxed);
            count
        })
    }

    #[test]
    fn sixteen_bytes_are_read_and_written_at_once() {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx") {
            // SAFETY: the line has 64 bytes and their alignment.
            unsafe {
                let load = |p| read(p, 16);
                assert_eq!(torn(|p, v| write(p, 16, v), load), 0);
                let ordered = |p| read_ordered(p, 16, Ordering::Acquire);
                let store = |p, v| write_ordered(p, 16, v, Ordering::SeqCst);
                assert_eq!(torn(store, ordered), 0);
                // Compare-and-swap writes at once, and does not see parts of a write.
                let swap = |p, v| {
                    let old = read(p, 16);
                    compare_exchange_16(p, old, v);
                };
                assert_eq!(torn(swap, load), 0);
                let unchanged = |p| compare_exchange_16(p, 0, 0);
                assert_eq!(torn(|p, v| write(p, 16, v), unchanged), 0);
            }
        }
    }
}

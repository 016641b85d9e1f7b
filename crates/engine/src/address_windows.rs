//! Generic addresses of shared memory, local memory, functions and kernels.
//!
//! Device pointers are host addresses. The windows are a range of the process's address space that is reserved without
//! access rights: no allocation can overlap it, and a host access to it faults.

use std::sync::OnceLock;

use crate::limits::{MAX_CLUSTER, MAX_SHARED, RESERVED_SHARED};

/// Size of each window.
pub const WINDOW: u64 = 16 << 20;

/// Distance between the addresses of the blocks of a cluster.
const BLOCK_STRIDE: u64 = 512 << 10;

const _: () = assert!(
    (MAX_SHARED + RESERVED_SHARED) as u64 <= BLOCK_STRIDE
        && (MAX_CLUSTER as u64 + 1) * BLOCK_STRIDE <= WINDOW
);

/// The block's rank and the offset in its shared memory that an offset in the shared window names; `None` for the executing
/// block. The window begins with the memory of the executing block, and those of all blocks of the cluster follow in the
/// order of their ranks: byte `offset` of the block with rank `rank` is at `(rank + 1) * BLOCK_STRIDE + offset`, for every
/// block of the cluster. An address below `BLOCK_STRIDE` names memory of the block that uses it. In a launch with clusters,
/// the address of a variable is that of its block in the cluster, so that other blocks can use it.
pub fn cluster_block(at: u64) -> Option<(usize, u64)> {
    let rank = (at / BLOCK_STRIDE).checked_sub(1)?;
    Some((rank as usize, at % BLOCK_STRIDE))
}

/// Offset in the shared window of the memory of the block with this rank, for every block of the cluster.
pub fn block_window(rank: u32) -> u64 {
    (u64::from(rank) + 1) * BLOCK_STRIDE
}

/// The offset in the shared window that names the same byte of the block with this rank as `at` of its own block. Ranks that
/// no cluster has give an offset that names no block.
pub fn mapped(at: u64, rank: u32) -> u64 {
    const LAST: u32 = (WINDOW / BLOCK_STRIDE) as u32 - 2;
    let rank = if at < WINDOW { rank.min(LAST) } else { LAST };
    block_window(rank) + at % BLOCK_STRIDE
}

/// Addresses of the windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Generic address of offset 0 of the block's shared memory. See [`cluster_block`] for other blocks.
    pub shared: u64,
    /// Generic address of offset 0 of the thread's local memory.
    pub local: u64,
    /// Address of function 0.
    pub code: u64,
    /// First address of kernels, which differ in all modules.
    pub kernels: u64,
}

/// The windows of this process.
pub fn windows() -> Windows {
    static BASE: OnceLock<u64> = OnceLock::new();
    let base = *BASE.get_or_init(|| {
        let span = (5 * WINDOW) as usize;
        // SAFETY: an anonymous mapping at an address that the kernel chooses affects no other memory.
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                span,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if p == libc::MAP_FAILED {
            // Not a canonical address on the supported hosts, so that no allocation can have it.
            0x0100_0000_0000_0000
        } else {
            (p as u64).next_multiple_of(WINDOW)
        }
    });
    Windows {
        shared: base,
        local: base + WINDOW,
        code: base + 2 * WINDOW,
        kernels: base + 3 * WINDOW,
    }
}

/// Address of the function with this index in its module.
pub fn function_address(index: u32) -> u64 {
    windows().code + 16 * (u64::from(index) + 1)
}

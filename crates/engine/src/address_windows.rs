//! Generic addresses of shared memory, local memory and functions.
//!
//! Device pointers are host addresses. The windows are a range of the process's address space that is reserved without
//! access rights: no allocation can overlap it, and a host access to it faults.

use std::sync::OnceLock;

/// Size of each window.
pub const WINDOW: u64 = 16 << 20;

/// Addresses of the windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Generic address of offset 0 of the block's shared memory.
    pub shared: u64,
    /// Generic address of offset 0 of the thread's local memory.
    pub local: u64,
    /// Address of function 0.
    pub code: u64,
}

/// The windows of this process.
pub fn windows() -> Windows {
    static BASE: OnceLock<u64> = OnceLock::new();
    let base = *BASE.get_or_init(|| {
        let span = (4 * WINDOW) as usize;
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
    }
}

/// Address of the function with this index in its module.
pub fn function_address(index: u32) -> u64 {
    windows().code + 16 * (u64::from(index) + 1)
}

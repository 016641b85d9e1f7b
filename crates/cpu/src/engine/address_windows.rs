//! Generic addresses of what is not host memory: shared memory, local memory, functions.
//!
//! Device pointers are host addresses, so the windows are a piece of the process's address space that is reserved
//! and never backed: no allocation can collide with them, and a host access to one is caught.

use std::sync::OnceLock;

/// Size of each window.
pub const WINDOW: u64 = 16 << 20;

/// Where the windows are.
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
        // SAFETY: a fresh anonymous reservation without access; nothing else is touched.
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
            // Not canonical on any machine that runs this, hence never an allocation.
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

/// Address of a function, by its index in the module.
pub fn function_address(index: u32) -> u64 {
    windows().code + 16 * (u64::from(index) + 1)
}

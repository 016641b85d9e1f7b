//! Memory that holds machine code.

use std::io;

/// A mapping with machine code, which can be read and executed but not written.
#[derive(Debug)]
pub struct ExecutableMemory {
    base: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the mapping belongs to the object, not to a thread.
unsafe impl Send for ExecutableMemory {}
// SAFETY: nothing writes to the mapping until it is dropped, so that threads can share it.
unsafe impl Sync for ExecutableMemory {}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl ExecutableMemory {
    /// A mapping with a copy of `code`. It is never writable and executable at the same time.
    ///
    /// # Errors
    /// The operating system has no memory, or does not allow programs to execute memory that they have written (SELinux
    /// `execmem`, PaX).
    pub fn new(code: &[u8]) -> io::Result<Self> {
        let bytes = code.len().max(1);
        // SAFETY: an anonymous mapping at an address that the kernel chooses affects no other memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = Self { base, bytes };
        // SAFETY: the mapping is new, writable and as large as the code.
        let protected = unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), base.cast(), code.len());
            libc::mprotect(base, bytes, libc::PROT_READ | libc::PROT_EXEC)
        };
        if protected != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(memory)
    }

    /// Address of the first byte.
    pub fn base(&self) -> u64 {
        self.base as u64
    }
}

impl Drop for ExecutableMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this object.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

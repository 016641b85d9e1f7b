//! Checked access to foreign memory: reads and writes that fail instead of faulting.
//!
//! An object made with `_ptr=address` views foreign memory. The address may be wrong, and the memory may be unmapped
//! later. Every access therefore goes through the kernel, which checks it: `process_vm_readv` and `process_vm_writev` on
//! the current process, about 0.3 µs. If the kernel refuses the call, `mincore` checks each page before a plain copy.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once the kernel has refused `process_vm_readv` or `process_vm_writev`.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Copies from `address` into `out`; false if any of it cannot be read.
pub fn read(address: usize, out: &mut [u8]) -> bool {
    if out.is_empty() {
        return true;
    }
    if !fits(address, out.len()) {
        return false;
    }
    if !REFUSED.load(Ordering::Relaxed) {
        let local = libc::iovec {
            iov_base: out.as_mut_ptr().cast(),
            iov_len: out.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: out.len(),
        };
        // SAFETY: `out` is a live slice; the kernel checks the remote range.
        let n = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        if n >= 0 {
            return n as usize == out.len();
        }
        if !refused() {
            return false;
        }
    }
    if !mapped(address, out.len()) {
        return false;
    }
    // SAFETY: `mapped` found every page of the range mapped. It does not detect pages without read permission.
    unsafe { std::ptr::copy(address as *const u8, out.as_mut_ptr(), out.len()) };
    true
}

/// Copies `data` to `address`; false if any of it cannot be written.
pub fn write(address: usize, data: &[u8]) -> bool {
    if data.is_empty() {
        return true;
    }
    if !fits(address, data.len()) {
        return false;
    }
    if !REFUSED.load(Ordering::Relaxed) {
        let local = libc::iovec {
            iov_base: data.as_ptr().cast_mut().cast(),
            iov_len: data.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: data.len(),
        };
        // SAFETY: `data` is a live slice, which the call only reads; the kernel checks the remote range.
        let n = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
        if n >= 0 {
            return n as usize == data.len();
        }
        if !refused() {
            return false;
        }
    }
    if !mapped(address, data.len()) {
        return false;
    }
    // SAFETY: `mapped` found every page of the range mapped. It does not detect pages without write permission.
    unsafe { std::ptr::copy(data.as_ptr(), address as *mut u8, data.len()) };
    true
}

/// Whether `len` bytes at `address` can be read.
pub fn readable(address: usize, len: usize) -> bool {
    let mut scratch = [0u8; 1024];
    let mut done = 0;
    while done < len {
        let n = (len - done).min(scratch.len());
        let Some(at) = address.checked_add(done) else {
            return false;
        };
        if !read(at, &mut scratch[..n]) {
            return false;
        }
        done += n;
    }
    true
}

fn fits(address: usize, len: usize) -> bool {
    address != 0 && address.checked_add(len).is_some()
}

fn refused() -> bool {
    let error = std::io::Error::last_os_error().raw_os_error();
    let refused = matches!(
        error,
        Some(libc::EPERM) | Some(libc::ENOSYS) | Some(libc::EACCES)
    );
    if refused {
        REFUSED.store(true, Ordering::Relaxed);
    }
    refused
}

fn mapped(address: usize, len: usize) -> bool {
    let page = 4096usize;
    let first = address & !(page - 1);
    let Some(end) = address.checked_add(len) else {
        return false;
    };
    let mut at = first;
    while at < end {
        let mut seen = 0u8;
        // SAFETY: `seen` holds the result for one page; the kernel checks the address.
        let rc = unsafe { libc::mincore(at as *mut libc::c_void, page, &mut seen) };
        if rc != 0 {
            return false;
        }
        at = match at.checked_add(page) {
            Some(next) => next,
            None => return false,
        };
    }
    true
}

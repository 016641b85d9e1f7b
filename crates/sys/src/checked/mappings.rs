//! The mappings of this process, as the kernel describes them one at a time (`PROCMAP_QUERY`, Linux 6.11).

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI64, Ordering};

/// `struct procmap_query` of `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
struct ProcmapQuery {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// `_IOWR('f', 17, struct procmap_query)`
const PROCMAP_QUERY: u32 =
    3 << 30 | (size_of::<ProcmapQuery>() as u32) << 16 | (b'f' as u32) << 8 | 17;
const PROCMAP_QUERY_VMA_READABLE: u64 = 1;
const PROCMAP_QUERY_VMA_WRITABLE: u64 = 2;
const PROCMAP_QUERY_VMA_SHARED: u64 = 8;

/// `/proc/self/maps`, opened once in a process [14 µs]: the process in the upper half, the descriptor in the lower one. The
/// descriptor that a forked process inherits describes its parent.
static MAPS: AtomicI64 = AtomicI64::new(UNOPENED);
const UNOPENED: i64 = -1;
/// The kernel lacks the query, or a sandbox denies it.
const UNSUPPORTED: i64 = -2;

/// The descriptor of `/proc/self/maps`; `None` if the query is not supported.
fn maps() -> Option<i32> {
    let found = MAPS.load(Ordering::Relaxed);
    if found == UNSUPPORTED {
        return None;
    }
    let process = i64::from(std::process::id());
    if found >> 32 == process {
        return Some(found as i32);
    }
    // `File` opens it so that `exec` closes it.
    let Ok(file) = File::open("/proc/self/maps") else {
        MAPS.store(UNSUPPORTED, Ordering::Relaxed);
        return None;
    };
    let file = file.into_raw_fd();
    // If another thread has opened it at the same time, one descriptor stays open unused.
    MAPS.store(process << 32 | i64::from(file), Ordering::Relaxed);
    Some(file)
}

/// The bytes from `address` to the end of its mapping, if that is memory of the program which it may read and write: neither shared
/// nor of a file, whose pages can be missing. `None` otherwise, and if the kernel does not say.
///
/// Guard regions within a mapping (`MADV_GUARD_INSTALL`, Linux 6.13) are not reported: an access to them faults, as it does in
/// a copy of the program's own.
pub(super) fn private_bytes(address: u64) -> Option<u64> {
    let mut query = ProcmapQuery {
        size: size_of::<ProcmapQuery>() as u64,
        query_addr: address,
        ..ProcmapQuery::default()
    };
    // SAFETY: the kernel writes to `query`, whose size it contains. A descriptor that no longer is that of the file rejects the
    // request, whose number contains the size, too.
    let rc = unsafe { libc::ioctl(maps()?, PROCMAP_QUERY as _, &raw mut query) };
    if rc != 0 {
        // An address without a mapping has ENOENT.
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOENT) {
            MAPS.store(UNSUPPORTED, Ordering::Relaxed);
        }
        return None;
    }
    let wanted = PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_VMA_WRITABLE;
    let found = query.vma_flags & (wanted | PROCMAP_QUERY_VMA_SHARED);
    let holds = (query.vma_start..query.vma_end).contains(&address);
    (holds && found == wanted && query.inode == 0).then(|| query.vma_end - address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_memory_of_the_program_is_accessible() {
        const PAGE: usize = 64 << 10;
        let protect = |at: *mut libc::c_void, rights| {
            // SAFETY: pages of the mapping below, which nothing else uses.
            assert_eq!(unsafe { libc::mprotect(at, PAGE, rights) }, 0);
        };
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_ANONYMOUS);
        let map = |bytes, flags| {
            // SAFETY: a new mapping.
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) }
        };
        let private = map(3 * PAGE, flags | libc::MAP_PRIVATE);
        let shared = map(PAGE, flags | libc::MAP_SHARED);
        assert!(private != libc::MAP_FAILED && shared != libc::MAP_FAILED);
        let start = private as u64;
        let Some(bytes) = private_bytes(start + 5) else {
            // The kernel lacks the query.
            assert_eq!(MAPS.load(Ordering::Relaxed), UNSUPPORTED);
            return;
        };
        assert!(bytes >= 3 * PAGE as u64 - 5);
        let middle = start + PAGE as u64;
        for rights in [libc::PROT_NONE, libc::PROT_READ] {
            protect(middle as *mut _, rights);
            assert_eq!(private_bytes(start + 5), Some(PAGE as u64 - 5));
            assert_eq!(private_bytes(middle), None);
        }
        assert_eq!(private_bytes(shared as u64), None);
        assert_eq!(private_bytes(4096), None);
        assert_eq!(private_bytes(u64::MAX), None);
        // SAFETY: unmaps the two mappings.
        unsafe {
            libc::munmap(private, 3 * PAGE);
            libc::munmap(shared, PAGE);
        }
        // The query goes on after failures.
        let mut local = 0;
        assert!(private_bytes((&raw mut local).addr() as u64).is_some());
    }
}

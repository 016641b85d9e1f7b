//! Pages from the operating system, and how much there is of them.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

/// An anonymous mapping: usable bytes at [`Pages::base`], then at least one inaccessible page.
pub(crate) struct Pages {
    map: u64,
    map_len: u64,
    base: u64,
    /// The file whose memory it shows instead, if that is so.
    pub(super) file: Option<Arc<OwnedFd>>,
}

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;

impl Pages {
    /// Maps at least `size` bytes aligned to `align` (a power of two), zeroed. `None` if the system refuses.
    pub(crate) fn map(size: u64, align: u64) -> Option<Pages> {
        let huge = size >= HUGE;
        let align = align.max(if huge { HUGE } else { PAGE });
        let pages = Self::reserve(size, align)?;
        let body_len = size.checked_next_multiple_of(PAGE)? as usize;
        // SAFETY: the range lies within the mapping just made.
        let rc = unsafe {
            libc::mprotect(
                pages.base as *mut _,
                body_len,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if rc != 0 {
            return None;
        }
        if huge {
            // SAFETY: the range lies within the mapping just made; the advice changes no contents.
            unsafe { libc::madvise(pages.base as *mut _, body_len, libc::MADV_HUGEPAGE) };
        }
        Some(pages)
    }

    /// Reserves addresses for at least `size` bytes aligned to `align` (a power of two, at least a page); an access
    /// faults. `None` if the system refuses.
    pub(super) fn reserve(size: u64, align: u64) -> Option<Pages> {
        let body = size.checked_next_multiple_of(PAGE)?;
        // Reserved without access first: the slack around the aligned body is the guard.
        let map_len = body.checked_add(align)?.checked_add(PAGE)?;
        let len = usize::try_from(map_len).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no memory of ours.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return None;
        }
        let map = p as u64;
        Some(Pages {
            map,
            map_len,
            base: map.next_multiple_of(align),
            file: None,
        })
    }

    /// [`Self::reserve`] at exactly that address, a multiple of a page. `None` if any of it is taken.
    ///
    /// There is no guard behind it: who asks for addresses may ask for those that follow next, so that memory can grow.
    pub(super) fn reserve_at(base: u64, size: u64) -> Option<Pages> {
        let map_len = size
            .checked_next_multiple_of(PAGE)
            .filter(|&n| base.checked_add(n).is_some())?;
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let len = usize::try_from(map_len).ok()?;
        // SAFETY: the flag makes the call fail where anything is mapped, so that it touches no memory of ours.
        let p = unsafe { libc::mmap(base as *mut _, len, libc::PROT_NONE, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return None;
        }
        let pages = Pages {
            map: p as u64,
            map_len,
            base: p as u64,
            file: None,
        };
        // Systems that do not know the flag take the address for a wish.
        (pages.base == base).then_some(pages)
    }

    /// First usable address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of address space taken.
    pub(crate) fn len(&self) -> u64 {
        self.map_len
    }

    /// Gives the memory back and keeps the addresses: an access faults from now on.
    pub(crate) fn retire(&mut self) {
        self.file = None;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces exactly the mapping this value owns; nobody is using it (the caller checked the pins).
        let p = unsafe {
            libc::mmap(
                self.map as *mut _,
                self.map_len as usize,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        debug_assert_ne!(p, libc::MAP_FAILED);
    }
}

/// Shows `[base, base + size)`, which the caller has reserved, the memory of a file from `offset` on.
pub(super) fn open_window(base: u64, size: u64, file: i32, offset: u64) -> bool {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: replaces exactly the range, which belongs to a reservation of the caller.
    let p = unsafe {
        libc::mmap(
            base as *mut _,
            size as usize,
            rights,
            flags,
            file,
            offset as i64,
        )
    };
    p != libc::MAP_FAILED
}

/// Takes the memory out of `[base, base + size)` and keeps the addresses: an access faults from now on.
pub(super) fn close_window(base: u64, size: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: replaces exactly the range, which belongs to a reservation; nobody is using it (the caller checked the
    // pins).
    let p = unsafe { libc::mmap(base as *mut _, size as usize, libc::PROT_NONE, flags, -1, 0) };
    debug_assert_ne!(p, libc::MAP_FAILED);
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapping this value owns.
        unsafe { libc::munmap(self.map as *mut _, self.map_len as usize) };
    }
}

fn meminfo(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Memory of the machine in bytes, or of the control group this process lives in; `CUPYRITE_CPU_MEMORY` (bytes)
/// lowers it.
pub(crate) fn physical_memory() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let mut total = meminfo("MemTotal").unwrap_or(4 << 30);
        for path in [
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        ] {
            total = total.min(number(path).unwrap_or(u64::MAX));
        }
        if let Some(n) = std::env::var("CUPYRITE_CPU_MEMORY")
            .ok()
            .and_then(|v| v.trim().parse().ok())
        {
            total = total.min(n);
        }
        total & !(PAGE - 1)
    })
}

/// Memory that can be used now without the system having to kill anybody.
pub(crate) fn available_memory() -> u64 {
    let mut free = meminfo("MemAvailable").unwrap_or(u64::MAX);
    for (max, now) in [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ] {
        if let (Some(max), Some(now)) = (number(max), number(now)) {
            free = free.min(max.saturating_sub(now));
        }
    }
    free
}

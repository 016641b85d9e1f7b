//! Pages from the operating system, and how much memory it has.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// An anonymous mapping: usable bytes at [`Pages::base`], then at least one inaccessible page.
pub(crate) struct Pages {
    map: u64,
    map_len: u64,
    base: u64,
    /// The file whose memory is mapped instead, if any.
    pub(super) file: Option<Arc<OwnedFd>>,
}

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;

impl Pages {
    /// Maps at least `size` zeroed bytes aligned to `align` (a power of two). `None` on failure.
    pub(crate) fn map(size: u64, align: u64) -> Option<Pages> {
        let huge = size >= HUGE;
        let align = align.max(if huge { HUGE } else { PAGE });
        let pages = Self::reserve(size, align)?;
        let body_len = size.checked_next_multiple_of(PAGE)? as usize;
        // SAFETY: the range lies within the new mapping.
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
            // SAFETY: the range lies within the new mapping; the advice does not change its contents.
            unsafe { libc::madvise(pages.base as *mut _, body_len, libc::MADV_HUGEPAGE) };
        }
        Some(pages)
    }

    /// Reserves inaccessible addresses for at least `size` bytes aligned to `align` (a power of two, at least a page).
    /// `None` on failure.
    pub(crate) fn reserve(size: u64, align: u64) -> Option<Pages> {
        let body = size.checked_next_multiple_of(PAGE)?;
        // Reserved without access: the slack around the aligned body serves as guard.
        let map_len = body.checked_add(align)?.checked_add(PAGE)?;
        let len = usize::try_from(map_len).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice affects no existing memory.
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

    /// [`Self::reserve`] at exactly that page-aligned address. `None` if part of the range is in use.
    ///
    /// No guard follows: programs reserve the adjacent addresses later to grow an allocation in place.
    pub(super) fn reserve_at(base: u64, size: u64) -> Option<Pages> {
        let map_len = size
            .checked_next_multiple_of(PAGE)
            .filter(|&n| base.checked_add(n).is_some())?;
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let len = usize::try_from(map_len).ok()?;
        // SAFETY: with this flag the call fails if anything is mapped there, so it affects no existing memory.
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
        // Systems that do not know the flag treat the address as a hint.
        (pages.base == base).then_some(pages)
    }

    /// Size of a page in bytes.
    pub(crate) const SIZE: u64 = PAGE;

    /// Maps the pages of a file that contain `[offset, offset + size)`. `None` on failure.
    pub(crate) fn of_file(file: &OwnedFd, offset: u64, size: u64) -> Option<Pages> {
        let skip = offset % PAGE;
        let len = skip.checked_add(size)?.checked_next_multiple_of(PAGE)?;
        let pages = Self::reserve(len, PAGE)?;
        open_window(pages.base, len, file.as_raw_fd(), offset - skip).then_some(pages)
    }

    /// First usable address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Length of the address range in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.map_len
    }

    /// Releases the memory and keeps the addresses, which become inaccessible.
    pub(crate) fn retire(&mut self) {
        self.file = None;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces exactly the mapping that this value owns; no access is in progress, because the caller
        // checked the pins.
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

/// Maps zeroed memory at `[base, base + size)`, which the caller has reserved.
pub(crate) fn open_zeros(base: u64, size: u64) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let Ok(len) = usize::try_from(size) else {
        return false;
    };
    // SAFETY: replaces exactly the range, which belongs to the caller's reservation.
    let p = unsafe { libc::mmap(base as *mut _, len, rights, flags, -1, 0) };
    p != libc::MAP_FAILED
}

/// Maps a file's memory from `offset` on at `[base, base + size)`, which the caller has reserved.
pub(crate) fn open_window(base: u64, size: u64, file: i32, offset: u64) -> bool {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: replaces exactly the range, which belongs to the caller's reservation.
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

/// Unmaps `[base, base + size)` and keeps the addresses, which become inaccessible.
pub(super) fn close_window(base: u64, size: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: replaces exactly the range, which belongs to a reservation; no access is in progress, because the caller
    // checked the pins.
    let p = unsafe { libc::mmap(base as *mut _, size as usize, libc::PROT_NONE, flags, -1, 0) };
    debug_assert_ne!(p, libc::MAP_FAILED);
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapping that this value owns.
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

/// Memory in bytes of the machine, or of the process's control group; `CUPYRITE_CPU_MEMORY` (bytes) lowers it.
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
        // The driver has refused an invalid value; without the driver, it counts as unset.
        if let Ok(Some(n)) = crate::settings::memory() {
            total = total.min(n);
        }
        total & !(PAGE - 1)
    })
}

/// Memory that can be used without triggering the out-of-memory killer, in bytes.
pub fn available_memory() -> u64 {
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

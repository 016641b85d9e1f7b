//! Anonymous files of the system that hold memory which several processes map.
//!
//! Such a file has no name in any directory: it is there while a process has it open or mapped, and so nothing is left
//! behind by a process that dies. Its size is sealed: a file that its owner could make shorter would kill whoever reads
//! behind the new end.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;

const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A file of that size, all zeros, whose name is only shown by the system. `None` if the system refuses.
pub(crate) fn create(name: &str, size: u64) -> Option<OwnedFd> {
    // The signal that comes with a file larger than the process may make would end it.
    // SAFETY: a limit is plain data that the call fills in.
    let most = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        limit.rlim_cur
    };
    if most != libc::RLIM_INFINITY && size > most {
        return None;
    }
    let name = CString::new(name).ok()?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; the call makes a new descriptor.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is new and belongs to nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: both calls change a file of ours.
    let done = unsafe {
        libc::ftruncate(fd, i64::try_from(size).ok()?) == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) == 0
    };
    done.then_some(file)
}

/// A file of [`create`], with what its name has after `prefix`, and its size.
pub(crate) struct Known {
    pub(crate) file: OwnedFd,
    pub(crate) label: String,
    pub(crate) size: u64,
}

/// Looks at a descriptor that somebody gave us, which remains his. `None` if it is not one of [`create`] whose name begins
/// with `prefix`.
pub(crate) fn recognise(descriptor: i32, prefix: &str) -> Option<Known> {
    // SAFETY: asks for the flags of a number that may be no descriptor, which the system says.
    if descriptor < 0 || unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it was open a moment ago; if the caller closes it meanwhile the calls below fail.
    let theirs = unsafe { BorrowedFd::borrow_raw(descriptor) };
    check(theirs.try_clone_to_owned().ok()?, prefix)
}

/// The same for a descriptor of another process of this user, as long as that process lives and has it open.
pub(crate) fn recognise_in(process: u32, descriptor: i32, prefix: &str) -> Option<Known> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    // Looked at before it is opened: opening a device or a pipe of somebody else's could do something.
    let target = std::fs::read_link(&path).ok()?;
    target
        .to_str()?
        .strip_prefix("/memfd:")?
        .strip_prefix(prefix)?;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .ok()?;
    check(file.into(), prefix)
}

/// What the system calls what a descriptor is of, for messages.
pub(crate) fn describe(descriptor: i32) -> String {
    match std::fs::read_link(format!("/proc/self/fd/{descriptor}")) {
        Ok(target) => target.display().to_string(),
        Err(_) => format!("{descriptor}, which is no descriptor,"),
    }
}

fn check(file: OwnedFd, prefix: &str) -> Option<Known> {
    let target = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let label = target
        .to_str()?
        .strip_prefix("/memfd:")?
        .strip_prefix(prefix)?
        .trim_end_matches(" (deleted)")
        .to_owned();
    // SAFETY: asks a descriptor of ours for its seals.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if seals < 0 || seals & SEALS != SEALS {
        return None;
    }
    // SAFETY: a stat structure is plain data that the call fills in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is ours, and the structure has room.
    if unsafe { libc::fstat(file.as_raw_fd(), &mut stat) } != 0 || stat.st_size <= 0 {
        return None;
    }
    Some(Known {
        file,
        label,
        size: stat.st_size as u64,
    })
}

/// Reads as many bytes as `out` has; false at the end of the file or on an error.
pub(crate) fn read(file: &OwnedFd, offset: u64, out: &mut [u8]) -> bool {
    let Ok(offset) = i64::try_from(offset) else {
        return false;
    };
    // SAFETY: `out` has room for as many bytes.
    let n = unsafe { libc::pread(file.as_raw_fd(), out.as_mut_ptr().cast(), out.len(), offset) };
    n == out.len() as isize
}

/// Writes all bytes; false on an error.
pub(crate) fn write(file: &OwnedFd, offset: u64, bytes: &[u8]) -> bool {
    let Ok(offset) = i64::try_from(offset) else {
        return false;
    };
    // SAFETY: `bytes` are as many bytes.
    let n = unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), offset) };
    n == bytes.len() as isize
}

/// Reads numbers that stand one after the other.
pub(crate) fn read_words<const N: usize>(file: &OwnedFd, offset: u64) -> Option<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: any bytes are numbers, and the slice covers exactly the array.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 8 * N) };
    read(file, offset, bytes).then_some(words)
}

/// Writes numbers one after the other; false on an error.
pub(crate) fn write_words(file: &OwnedFd, offset: u64, words: &[u64]) -> bool {
    // SAFETY: numbers are bytes, and the slice covers exactly the array.
    let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
    write(file, offset, bytes)
}

/// Gives the memory of a part of the file back to the system; it reads as zeros from then on.
pub(crate) fn punch(file: &OwnedFd, offset: u64, len: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: changes a file of ours; whoever maps it reads zeros there.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) };
}

/// The first part of a file, mapped: numbers that several processes read and change.
pub(crate) struct Words {
    at: *mut libc::c_void,
    len: usize,
}

// SAFETY: the memory is only reached through atomics.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Maps the first `count` numbers of a file that has as many. `None` if the system refuses.
    pub(crate) fn map(file: &OwnedFd, count: usize) -> Option<Words> {
        let len = count.checked_mul(8)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, fd, 0) };
        (at != libc::MAP_FAILED).then_some(Words { at, len })
    }

    /// One of the numbers.
    ///
    /// # Panics
    /// If there are not as many.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len / 8);
        // SAFETY: within the mapping, aligned, and only reached through atomics.
        unsafe { AtomicU64::from_ptr(self.at.cast::<u64>().add(index)) }
    }

    /// Sleeps until somebody [wakes](Self::wake) those who sleep at a number, unless its lower half is no longer `seen`.
    pub(crate) fn sleep(&self, index: usize, seen: u32, timeout: Duration) {
        let time = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let word = self.word(index).as_ptr().cast::<u32>();
        // SAFETY: a word within the mapping (its lower half comes first on both machines), and a complete time.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word,
                libc::FUTEX_WAIT,
                seen,
                &raw const time,
            )
        };
    }

    /// Wakes those of all processes who sleep at a number.
    pub(crate) fn wake(&self, index: usize) {
        let word = self.word(index).as_ptr().cast::<u32>();
        // SAFETY: a word within the mapping.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapping this value owns.
        unsafe { libc::munmap(self.at, self.len) };
    }
}

/// A process, so that another one that is given its number later is not taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
    /// When it began, in the system's ticks since the machine did.
    pub(crate) start: u64,
}

impl Process {
    /// This one.
    pub(crate) fn own() -> Process {
        static OWN: Mutex<Option<Process>> = Mutex::new(None);
        let id = std::process::id();
        let mut own = OWN.lock();
        // A forked child is another one.
        if own.is_none_or(|own| own.id != id) {
            let start = state_of(id).map_or(0, |(_, start)| start);
            *own = Some(Process { id, start });
        }
        own.unwrap_or(Process { id, start: 0 })
    }

    /// Whether it still runs. One that has ended and that its parent has not yet asked about does not.
    pub(crate) fn is_alive(self) -> bool {
        self == Process::own()
            || state_of(self.id).is_some_and(|(state, start)| {
                start == self.start && !matches!(state, 'Z' | 'X' | 'x')
            })
    }
}

/// State and beginning of a process (proc(5), `/proc/PID/stat`, fields 3 and 22).
fn state_of(id: u32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field, a name in parentheses, may hold anything.
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Sixteen random bytes: what tells files of different processes apart.
pub(crate) fn nonce() -> [u64; 2] {
    let mut words = [0u64; 2];
    // SAFETY: room for sixteen bytes.
    let n = unsafe { libc::getrandom(words.as_mut_ptr().cast(), 16, 0) };
    if n != 16 {
        // Not random, but of this process and moment.
        use std::sync::atomic::Ordering;
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let own = Process::own();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        words = [u64::from(own.id) << 32 | count, own.start];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_name_and_seals() {
        let file = create("cupyrite-test-7", 4096).unwrap();
        let known = recognise(file.as_raw_fd(), "cupyrite-test-").unwrap();
        assert_eq!((known.label.as_str(), known.size), ("7", 4096));
        assert!(recognise(file.as_raw_fd(), "cupyrite-other-").is_none());
        assert!(recognise(-1, "").is_none());
        assert!(recognise(1 << 20, "").is_none());
        let other = recognise_in(std::process::id(), file.as_raw_fd(), "cupyrite-test-").unwrap();
        assert!(write_words(&file, 8, &[1, 2]));
        assert_eq!(read_words(&other.file, 0), Some([0u64, 1, 2]));
        assert!(!write_words(&file, 4096, &[1]));
        assert_eq!(read_words::<1>(&file, 4092), None);
        punch(&file, 0, 4096);
        assert_eq!(read_words(&other.file, 8), Some([0u64, 0]));
        // SAFETY: an ordinary descriptor, closed at the end.
        let plain =
            unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"cupyrite-test-8".as_ptr(), 0)) };
        assert!(recognise(plain.as_raw_fd(), "cupyrite-test-").is_none());
        drop(file);
    }

    #[test]
    fn processes_are_told_apart() {
        let own = Process::own();
        assert!(own.start > 0 && own.is_alive());
        assert!(
            !Process {
                start: own.start + 1,
                ..own
            }
            .is_alive()
        );
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // Ended and not waited for is ended.
        let there = Process {
            id: child.id(),
            start: state_of(child.id()).map_or(0, |s| s.1),
        };
        for _ in 0..2000 {
            if !there.is_alive() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!there.is_alive());
        child.wait().unwrap();
        assert_ne!(nonce(), nonce());
    }
}

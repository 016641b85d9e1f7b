//! Anonymous files whose memory several processes map.
//!
//! Such a file has no directory entry. It exists while a process has it open or mapped, so a process that dies leaves
//! nothing behind. Its size is sealed: otherwise its creator could truncate it and crash every process that accesses
//! the lost part.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;

const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Creates a zeroed file of that size; the name is for diagnostics. `None` on failure.
pub fn create(name: &str, size: u64) -> Option<OwnedFd> {
    // A file beyond the process's file size limit would raise a fatal signal.
    // SAFETY: the limit is plain data that the call fills in.
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
    // SAFETY: the name is a C string; the call creates a new descriptor.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is new and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: both calls operate on our own file.
    let done = unsafe {
        libc::ftruncate(fd, i64::try_from(size).ok()?) == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) == 0
    };
    done.then_some(file)
}

/// Creates an empty file on disk, in the folder for temporary files, without a directory entry.
///
/// # Errors
/// The folder cannot be written.
pub fn temporary() -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("cupyrite-checkpoint-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A file created by [`create`]: the part of its name after `prefix`, and its size.
pub struct IdentifiedFile {
    /// The file.
    pub file: OwnedFd,
    /// The rest of its name.
    pub label: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Validates a descriptor that another process passed; the caller keeps its ownership. `None` if it is not a file of
/// [`create`] whose name starts with `prefix`.
pub fn recognise(descriptor: i32, prefix: &str) -> Option<IdentifiedFile> {
    // SAFETY: queries the flags of a number; an invalid descriptor returns an error.
    if descriptor < 0 || unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it was open a moment ago; if the caller closes it in the meantime, the calls below fail.
    let theirs = unsafe { BorrowedFd::borrow_raw(descriptor) };
    check(theirs.try_clone_to_owned().ok()?, prefix)
}

/// [`recognise`] for a descriptor of another process of this user, while that process lives and has it open.
pub fn recognise_in(process: u32, descriptor: i32, prefix: &str) -> Option<IdentifiedFile> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    // Checked before opening, because opening a device or a pipe may have side effects.
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

/// The system's name for a descriptor's file, for messages.
pub fn describe(descriptor: i32) -> String {
    match std::fs::read_link(format!("/proc/self/fd/{descriptor}")) {
        Ok(target) => target.display().to_string(),
        Err(_) => format!("{descriptor} (not a descriptor)"),
    }
}

fn check(file: OwnedFd, prefix: &str) -> Option<IdentifiedFile> {
    let target = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let label = target
        .to_str()?
        .strip_prefix("/memfd:")?
        .strip_prefix(prefix)?
        .trim_end_matches(" (deleted)")
        .to_owned();
    // SAFETY: queries the seals of our own descriptor.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if seals < 0 || seals & SEALS != SEALS {
        return None;
    }
    // SAFETY: a stat structure is plain data that the call fills in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is ours and the structure has the right size.
    if unsafe { libc::fstat(file.as_raw_fd(), &mut stat) } != 0 || stat.st_size <= 0 {
        return None;
    }
    Some(IdentifiedFile {
        file,
        label,
        size: stat.st_size as u64,
    })
}

/// Fills `out` from the file; false at the end of the file or on an error.
pub(crate) fn read(file: &OwnedFd, offset: u64, out: &mut [u8]) -> bool {
    let Ok(offset) = i64::try_from(offset) else {
        return false;
    };
    // SAFETY: `out` has room for that many bytes.
    let n = unsafe { libc::pread(file.as_raw_fd(), out.as_mut_ptr().cast(), out.len(), offset) };
    n == out.len() as isize
}

/// Writes all bytes; false on an error.
pub(crate) fn write(file: &OwnedFd, offset: u64, bytes: &[u8]) -> bool {
    let Ok(offset) = i64::try_from(offset) else {
        return false;
    };
    // SAFETY: `bytes` has that many bytes.
    let n = unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), offset) };
    n == bytes.len() as isize
}

/// Reads consecutive 64-bit words.
pub fn read_words<const N: usize>(file: &OwnedFd, offset: u64) -> Option<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: any bytes are valid integers, and the slice covers exactly the array.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 8 * N) };
    read(file, offset, bytes).then_some(words)
}

/// Writes consecutive 64-bit words; false on an error.
pub fn write_words(file: &OwnedFd, offset: u64, words: &[u64]) -> bool {
    // SAFETY: integers have no padding, and the slice covers exactly the array.
    let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
    write(file, offset, bytes)
}

/// Releases the memory of a range of the file, which then reads as zeros.
pub(crate) fn punch(file: &OwnedFd, offset: u64, len: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: changes our own file; processes that map it read zeros there.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) };
}

/// A mapping of a file's first words, which several processes read and modify.
pub struct Words {
    at: *mut libc::c_void,
    len: usize,
}

// SAFETY: the memory is accessed only through atomics.
unsafe impl Send for Words {}
// SAFETY: shared references access the memory only through atomics; `at` and `len` never change.
unsafe impl Sync for Words {}

impl Words {
    /// Maps the first `count` words of a file that has as many. `None` on failure.
    pub fn map(file: &OwnedFd, count: usize) -> Option<Words> {
        let len = count.checked_mul(8)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, fd, 0) };
        (at != libc::MAP_FAILED).then_some(Words { at, len })
    }

    /// One of the words.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len / 8);
        // SAFETY: within the mapping, aligned, and accessed only through atomics.
        unsafe { AtomicU64::from_ptr(self.at.cast::<u64>().add(index)) }
    }

    /// Sleeps until [`Self::wake`] is called for the word, unless its lower half differs from `seen`.
    pub fn sleep(&self, index: usize, seen: u32, timeout: Duration) {
        let time = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let word = self.word(index).as_ptr().cast::<u32>();
        // SAFETY: a word within the mapping (both architectures are little-endian), and a complete time.
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

    /// Wakes all waiters of a word, in all processes.
    pub fn wake(&self, index: usize) {
        let word = self.word(index).as_ptr().cast::<u32>();
        // SAFETY: a word within the mapping.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapping that this value owns.
        unsafe { libc::munmap(self.at, self.len) };
    }
}

/// Identifies a process, even if its id is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub id: u32,
    /// Start time in clock ticks since boot.
    pub start: u64,
}

impl Process {
    /// The calling process.
    pub fn current() -> Process {
        static CURRENT: Mutex<Option<Process>> = Mutex::new(None);
        let id = std::process::id();
        let mut cached = CURRENT.lock();
        // A forked child is a different process.
        if cached.is_none_or(|process| process.id != id) {
            let start = state_of(id).map_or(0, |(_, start)| start);
            *cached = Some(Process { id, start });
        }
        cached.unwrap_or(Process { id, start: 0 })
    }

    /// Whether it still runs. Zombies do not.
    pub fn is_alive(self) -> bool {
        self == Process::current()
            || state_of(self.id).is_some_and(|(state, start)| {
                start == self.start && !matches!(state, 'Z' | 'X' | 'x')
            })
    }
}

/// State and start time of a process (proc(5), `/proc/PID/stat`, fields 3 and 22).
fn state_of(id: u32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field, a name in parentheses, may contain any characters.
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Sixteen random bytes, which distinguish files of different processes.
pub fn nonce() -> [u64; 2] {
    let mut words = [0u64; 2];
    // SAFETY: the array has room for sixteen bytes.
    let n = unsafe { libc::getrandom(words.as_mut_ptr().cast(), 16, 0) };
    if n != 16 {
        // Not random, but unique to this process and moment.
        use std::sync::atomic::Ordering;
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let own = Process::current();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        words = [u64::from(own.id) << 32 | count, own.start];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_name_and_seals() {
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
        // SAFETY: a regular descriptor, closed at the end.
        let plain =
            unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"cupyrite-test-8".as_ptr(), 0)) };
        assert!(recognise(plain.as_raw_fd(), "cupyrite-test-").is_none());
        drop(file);
    }

    #[test]
    fn processes_are_distinguished() {
        let own = Process::current();
        assert!(own.start > 0 && own.is_alive());
        assert!(
            !Process {
                start: own.start + 1,
                ..own
            }
            .is_alive()
        );
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // A zombie does not run.
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

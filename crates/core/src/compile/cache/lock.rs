//! Locks for compilations: of threads that miss the same key at once, one compiles, and the others wait for its result.
//!
//! The locks save work and nothing depends on them: a thread that waits for longer than the timeout goes on without the
//! lock, and so does one whose file system has no locks. Entries are written atomically with or without a lock.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Pauses between attempts to lock a file: the first and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// Lock for the compilation of one program, from [`ProgramCache::compile_lock`](super::ProgramCache::compile_lock). It is
/// released when it is dropped.
#[must_use = "dropping the lock releases it"]
pub struct CompileLock(Option<Box<dyn Send>>);

impl CompileLock {
    /// A lock that is released by dropping `guard`.
    pub fn held(guard: impl Send + 'static) -> CompileLock {
        CompileLock(Some(Box::new(guard)))
    }

    /// No lock: the cache has none, or the wait ended without it.
    pub fn not_held() -> CompileLock {
        CompileLock(None)
    }

    /// Whether the lock is held.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for CompileLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompileLock").field(&self.is_held()).finish()
    }
}

/// Locks of the keys of a cache in memory.
#[derive(Debug, Default)]
pub(super) struct KeyLocks {
    /// The process that holds each lock. After a fork, the child has no thread that would release those of its parent.
    holders: Mutex<HashMap<Arc<[u8]>, u32>>,
    released: Condvar,
}

impl KeyLocks {
    /// Locks a key. Waits at most for `timeout`, and until `cancelled` returns true.
    pub(super) fn lock(
        self: &Arc<KeyLocks>,
        key: &[u8],
        timeout: Duration,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> CompileLock {
        let started = Instant::now();
        let process = std::process::id();
        let mut holders = self.holders.lock();
        while holders.get(key) == Some(&process) {
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return CompileLock::not_held();
            }
            self.released.wait_for(&mut holders, left.min(PAUSES[1]));
            // It may run code that uses this cache.
            if MutexGuard::unlocked(&mut holders, &mut *cancelled) {
                return CompileLock::not_held();
            }
        }
        let key: Arc<[u8]> = key.into();
        holders.insert(key.clone(), process);
        CompileLock::held(HeldKey {
            locks: self.clone(),
            key,
            process,
        })
    }
}

struct HeldKey {
    locks: Arc<KeyLocks>,
    key: Arc<[u8]>,
    process: u32,
}

impl Drop for HeldKey {
    fn drop(&mut self) {
        let mut holders = self.locks.holders.lock();
        if holders.get(&self.key) == Some(&self.process) {
            holders.remove(&self.key);
        }
        drop(holders);
        self.locks.released.notify_all();
    }
}

/// Locks a file for this open file description. Waits at most for `timeout`, and until `is_stored` or `cancelled` returns
/// true. The system releases the lock when the process ends.
pub(super) fn lock_file(
    file: File,
    timeout: Duration,
    is_stored: impl Fn() -> bool,
    cancelled: &mut dyn FnMut() -> bool,
) -> CompileLock {
    let started = Instant::now();
    let mut pause = PAUSES[0];
    loop {
        match flock::try_lock(&file) {
            Ok(true) => return CompileLock::held(flock::LockedFile(file)),
            Ok(false) => {}
            // The file system has no locks (ENOLCK, EOPNOTSUPP, ENOSYS), or cannot reach its server.
            Err(error) => {
                log::debug!("no lock for a compilation: {error}");
                return CompileLock::not_held();
            }
        }
        let left = timeout.saturating_sub(started.elapsed());
        // All waiting processes read what was stored, instead of one after the other with the lock.
        if left.is_zero() || is_stored() {
            return CompileLock::not_held();
        }
        std::thread::sleep(left.min(pause));
        if cancelled() {
            return CompileLock::not_held();
        }
        pause = (pause * 3 / 2).min(PAUSES[1]);
    }
}

/// flock(2), also on NFS, where the kernel asks the server. `File::try_lock` needs Rust 1.89.
#[cfg(unix)]
mod flock {
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::os::fd::AsRawFd;

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        loop {
            // SAFETY: the descriptor is open while `file` is borrowed.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => return Ok(false),
                _ => return Err(error),
            }
        }
    }

    pub(super) struct LockedFile(pub(super) File);

    impl Drop for LockedFile {
        fn drop(&mut self) {
            // Closing the descriptor does not suffice: a forked process may have a copy of it.
            // SAFETY: the descriptor is open until `self.0` is dropped.
            unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
        }
    }
}

#[cfg(not(unix))]
mod flock {
    use std::fs::File;
    use std::io::{self, ErrorKind};

    pub(super) fn try_lock(_file: &File) -> io::Result<bool> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) struct LockedFile(#[allow(dead_code)] pub(super) File);
}

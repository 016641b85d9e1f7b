//! Caches of compiled programs, and their keys.
//!
//! Stores bytes under keys, in memory (`memory`) and on disk (`file`, `entry`), lets one of several threads or processes
//! compile what all of them miss (`lock`), and computes keys that depend on every input of a compilation (`key`,
//! `includes`, `identity`). Compilation itself does not belong here.

mod entry;
mod file;
mod identity;
mod includes;
mod key;
mod lock;
mod memory;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use self::entry::EntryName;
pub use self::file::{FileCache, PathError};
pub use self::key::{Expression, KeyRequest};
pub use self::lock::CompileLock;
pub use self::memory::MemoryCache;

/// A store of bytes under keys: [`MemoryCache`], [`FileCache`].
pub trait ProgramCache: Send + Sync {
    /// The bytes stored under a key; `None` if the key has no entry.
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>>;

    /// Stores bytes under a key, replacing an existing entry.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    fn put(&self, key: &[u8], bytes: &[u8]) -> io::Result<()>;

    /// Removes an entry; returns whether it existed.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    fn remove(&self, key: &[u8]) -> io::Result<bool>;

    /// The number of entries.
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    fn len(&self) -> io::Result<usize>;

    /// Whether the cache has no entries.
    ///
    /// # Errors
    ///
    /// Same as [`ProgramCache::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Removes all entries.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    fn clear(&self) -> io::Result<()>;

    /// Locks the compilation of the program with this key, after [`ProgramCache::get`] found no entry. Look up the entry
    /// again with the lock, and compile only if it is still missing; the lock is released when it is dropped. So one of
    /// several threads or processes compiles, and the others find its result.
    ///
    /// Waits at most for `timeout`, until the entry is stored, or until `cancelled` returns true, which is called between
    /// short pauses. Never fails: the caller goes on without the lock then. A thread must not lock a key twice. The default
    /// implementation locks nothing.
    fn compile_lock(
        &self,
        key: &[u8],
        timeout: Duration,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> CompileLock {
        let _ = (key, timeout, cancelled);
        CompileLock::not_held()
    }

    /// Number of [`ProgramCache::get`] calls on this object that found an entry.
    fn hits(&self) -> u64;

    /// Number of those that did not.
    fn misses(&self) -> u64;

    /// Takes back one miss: after a second lookup with the lock, which counts instead of the first. The default
    /// implementation does nothing.
    fn uncount_miss(&self) {}
}

/// Counts of hits and misses.
#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Counts {
    fn count(&self, found: bool) {
        let counter = if found { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn uncount_miss(&self) {
        let less = |misses: u64| misses.checked_sub(1);
        let _ = self
            .misses
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

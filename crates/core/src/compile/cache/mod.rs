//! Caches of compiled programs, and their keys.
//!
//! Stores bytes under keys, in memory (`memory`) and on disk (`file`), and computes keys that depend on every input of
//! a compilation (`key`, `includes`, `identity`). Compilation itself does not belong here.

mod file;
mod identity;
mod includes;
mod key;
mod memory;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::file::{FileCache, PathError};
pub use self::key::{Expression, KeyRequest};
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

    /// Number of [`ProgramCache::get`] calls on this object that found an entry.
    fn hits(&self) -> u64;

    /// Number of those that did not.
    fn misses(&self) -> u64;
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

    fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

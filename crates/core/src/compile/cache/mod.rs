//! Caches of compiled programs, and the keys of what is in them.
//!
//! Belongs here: keeping bytes under keys, in memory (`memory`) and on disk (`file`), and making keys that change
//! with everything that code is compiled from (`key`, `includes`, `identity`). Does not belong here: compiling.

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

/// Something that keeps bytes under keys: [`MemoryCache`], [`FileCache`].
pub trait ProgramCache: Send + Sync {
    /// What is kept under a key; `None` if nothing is.
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>>;

    /// Keeps bytes under a key, instead of what was there.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    fn put(&self, key: &[u8], bytes: &[u8]) -> io::Result<()>;

    /// Forgets a key; whether something was there.
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

    /// Whether there is no entry.
    ///
    /// # Errors
    ///
    /// Same as [`ProgramCache::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Forgets everything.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    fn clear(&self) -> io::Result<()>;

    /// How often [`ProgramCache::get`] of this object found something.
    fn hits(&self) -> u64;

    /// How often it did not.
    fn misses(&self) -> u64;
}

/// Counts of what was found and what was not.
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

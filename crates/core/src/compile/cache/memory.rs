//! A cache in this process's memory.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::lock::KeyLocks;
use super::{CompileLock, Counts, ProgramCache};

/// A cache of compiled programs in memory; a full cache evicts the least recently used entries.
#[derive(Debug, Default)]
pub struct MemoryCache {
    limit: Option<NonZeroU64>,
    counts: Counts,
    inner: Mutex<CacheState>,
    locks: Arc<KeyLocks>,
}

#[derive(Debug, Default)]
struct CacheState {
    entries: HashMap<Arc<[u8]>, CacheEntry>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, Arc<[u8]>>,
    clock: u64,
    bytes: u64,
}

#[derive(Debug)]
struct CacheEntry {
    bytes: Arc<[u8]>,
    used: u64,
}

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl std::panic::RefUnwindSafe for MemoryCache {}

impl MemoryCache {
    /// A cache for at most this many bytes of code; `None` for no limit.
    pub fn new(limit: Option<NonZeroU64>) -> MemoryCache {
        MemoryCache {
            limit,
            ..Default::default()
        }
    }

    fn inner(&self) -> MutexGuard<'_, CacheState> {
        // Held for updates that do not panic.
        self.inner.lock()
    }

    /// The entry of a key, shared instead of copied.
    pub fn get_shared(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        let mut guard = self.inner();
        let inner = &mut *guard;
        let found = inner.entries.get_mut(key).map(|entry| {
            inner.clock += 1;
            if let Some(key) = inner.order.remove(&entry.used) {
                inner.order.insert(inner.clock, key);
            }
            entry.used = inner.clock;
            entry.bytes.clone()
        });
        drop(guard);
        self.counts.count(found.is_some());
        found
    }
}

impl CacheState {
    fn remove(&mut self, key: &[u8]) -> bool {
        let Some(entry) = self.entries.remove(key) else {
            return false;
        };
        self.order.remove(&entry.used);
        self.bytes -= entry.bytes.len() as u64;
        true
    }
}

impl ProgramCache for MemoryCache {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.get_shared(key).map(|bytes| bytes.to_vec()))
    }

    fn put(&self, key: &[u8], bytes: &[u8]) -> io::Result<()> {
        let limit = self.limit.map_or(u64::MAX, NonZeroU64::get);
        let bytes: Arc<[u8]> = bytes.into();
        let mut inner = self.inner();
        inner.remove(key);
        if bytes.len() as u64 > limit {
            return Ok(());
        }
        inner.clock += 1;
        let used = inner.clock;
        let key: Arc<[u8]> = key.into();
        inner.bytes += bytes.len() as u64;
        inner.order.insert(used, key.clone());
        inner.entries.insert(key, CacheEntry { bytes, used });
        while inner.bytes > limit {
            let Some((_, oldest)) = inner.order.pop_first() else {
                break;
            };
            inner.remove(&oldest);
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> io::Result<bool> {
        Ok(self.inner().remove(key))
    }

    fn len(&self) -> io::Result<usize> {
        Ok(self.inner().entries.len())
    }

    fn clear(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.entries.clear();
        inner.order.clear();
        inner.bytes = 0;
        Ok(())
    }

    fn compile_lock(
        &self,
        key: &[u8],
        timeout: Duration,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> CompileLock {
        self.locks.lock(key, timeout, cancelled)
    }

    fn hits(&self) -> u64 {
        self.counts.hits()
    }

    fn misses(&self) -> u64 {
        self.counts.misses()
    }

    fn uncount_miss(&self) {
        self.counts.uncount_miss();
    }
}

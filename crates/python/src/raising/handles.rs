//! Handles that libraries crash on once they are dead: which ones are alive, and one call at a time for each.
//!
//! nvJitLink, NVVM and nvFatbin take a handle for a pointer and look no further: destroyed twice, used after it was
//! destroyed or made up, it ends the process. All of them come from `create()`, so those that are alive are known.
//! Calls with the same handle wait for each other (without the GIL): the libraries do not lock, and one thread may
//! destroy what another is compiling.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use cupyrite_sys::loader::Library;
use pyo3::ffi;

use crate::desc::HandleKind;

/// A handle's place in the account: whether it is alive. Locked while C works with it.
pub type Entry = Arc<Mutex<bool>>;

/// Addresses are spread well enough by one multiplication.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // The map takes its bits from both ends.
        self.0 = (self.0 ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}

type Map = HashMap<u64, Entry, BuildHasherDefault<AddressHasher>>;

static LIVE: [Mutex<Option<Map>>; HandleKind::COUNT] =
    [const { Mutex::new(None) }; HandleKind::COUNT];

fn live<T>(kind: HandleKind, f: impl FnOnce(&mut Map) -> T) -> T {
    // Held for a few instructions and with the GIL, so that a fork never finds it locked.
    let mut map = LIVE[kind as usize]
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    f(map.get_or_insert_default())
}

/// Enters a handle that the library just made.
pub fn made(kind: HandleKind, value: u64) {
    if value != 0 {
        live(kind, |map| map.insert(value, Arc::new(Mutex::new(true))));
    }
}

/// Takes out a handle that the library just destroyed; its lock is held.
pub fn ended(kind: HandleKind, value: u64, alive: &mut bool) {
    *alive = false;
    live(kind, |map| map.remove(&value));
}

/// The place of a handle that is alive.
pub fn find(kind: HandleKind, value: u64) -> Option<Entry> {
    live(kind, |map| map.get(&value).cloned())
}

/// Locks a handle: waits, without the GIL, for the call that has it. `None` if that call ended the handle.
///
/// Nothing that runs Python code may happen while the lock is held: that code could call with the same handle.
pub fn lock(entry: &Entry) -> Option<MutexGuard<'_, bool>> {
    let guard = match entry.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            // SAFETY: this thread is attached; its state is restored before Python is touched.
            unsafe {
                let thread = ffi::PyEval_SaveThread();
                let guard = entry.lock().unwrap_or_else(PoisonError::into_inner);
                ffi::PyEval_RestoreThread(thread);
                guard
            }
        }
    };
    if *guard { Some(guard) } else { None }
}

impl HandleKind {
    /// Whether calls with the same handle wait for each other. NVML locks by itself, and a call that waits for an
    /// event must not keep others from the set.
    pub const fn exclusive(self) -> bool {
        matches!(
            self,
            HandleKind::NvJitLink | HandleKind::Nvvm | HandleKind::NvFatbin
        )
    }

    /// The status that the library has for a null handle.
    pub const fn invalid(self) -> i64 {
        match self {
            HandleKind::NvJitLink => 10,
            HandleKind::Nvvm | HandleKind::NvFatbin => 5,
            HandleKind::NvmlEventSet | HandleKind::NvmlSystemEventSet => 2,
        }
    }

    /// What makes such handles.
    pub const fn maker(self) -> &'static str {
        match self {
            HandleKind::NvJitLink => "nvjitlink.create()",
            HandleKind::Nvvm => "nvvm.create_program()",
            HandleKind::NvFatbin => "nvfatbin.create()",
            HandleKind::NvmlEventSet => "nvml.event_set_create()",
            HandleKind::NvmlSystemEventSet => "nvml.system_event_set_create()",
        }
    }

    /// The functions that tell the size of the library's log for a handle, and the log; first come first served.
    pub const fn logs(self) -> &'static [(Library, &'static str, &'static str)] {
        match self {
            HandleKind::NvJitLink => &[
                (Library::NvJitLink, "get_error_log_size", "get_error_log"),
                (Library::NvJitLink, "get_info_log_size", "get_info_log"),
            ],
            HandleKind::Nvvm => &[(Library::Nvvm, "get_program_log_size", "get_program_log")],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_live_until_they_end() {
        let kind = HandleKind::NvmlSystemEventSet;
        assert!(find(kind, 64).is_none());
        made(kind, 64);
        made(kind, 0);
        assert!(find(kind, 0).is_none(), "null is no handle");
        assert!(find(HandleKind::Nvvm, 64).is_none(), "of another library");
        let entry = find(kind, 64).expect("alive");
        let waiting = find(kind, 64).expect("alive");
        let mut guard = entry.lock().expect("nobody else has it");
        ended(kind, 64, &mut guard);
        drop(guard);
        assert!(find(kind, 64).is_none());
        assert!(!*waiting.lock().expect("nobody else has it"));
        // The same address again is another handle.
        made(kind, 64);
        assert!(*find(kind, 64).expect("alive").lock().expect("free"));
        assert!(!*waiting.lock().expect("free"));
    }
}

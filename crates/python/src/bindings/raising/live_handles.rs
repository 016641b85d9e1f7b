//! Handles that libraries crash on once they are dead: which ones are alive, and one call at a time for each.
//!
//! nvJitLink, NVVM and nvFatbin take a handle for a pointer and look no further: destroyed twice, used after it was
//! destroyed or made up, it ends the process. All of them come from `create()`, so those that are alive are known.
//! Calls with the same handle wait for each other (without the GIL): the libraries do not lock, and one thread may
//! destroy what another is compiling.
//!
//! nvJitLink also keeps memory of the thread that makes a linker, until it has linked: whatever another thread does
//! with it before that corrupts the process's memory. So it is refused there; destroying is put off until the
//! thread makes its next linker.

use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use cupyrite_sys::loader::CudaLibrary;

use crate::bindings::descriptor::HandleKind;
use crate::cpython;

/// What is known about a handle.
#[derive(Debug)]
pub struct State {
    /// Whether it was not destroyed yet.
    pub alive: bool,
    /// The thread whose memory it has; none once that does not matter.
    pub thread: Option<u64>,
    /// Texts given for it: nvJitLink keeps the address of an input's name, and reads there when it links.
    pub texts: Vec<CString>,
}

impl State {
    /// Whether it has memory of another thread than this one.
    pub fn elsewhere(&self) -> bool {
        self.thread.is_some_and(|thread| thread != this_thread())
    }
}

/// A number for the calling thread that no other thread ever has. The standard library's costs ten times as much.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A handle's place in the account. Locked while C works with it.
pub type Entry = Arc<Mutex<State>>;

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
        self.0 = cpython::pointer_map::spread(self.0 ^ value).rotate_left(32);
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
        let thread = (kind == HandleKind::NvJitLink).then(this_thread);
        let state = State {
            alive: true,
            thread,
            texts: Vec::new(),
        };
        live(kind, |map| map.insert(value, Arc::new(Mutex::new(state))));
    }
}

/// Takes out a handle that the library just destroyed; its lock is held.
pub fn ended(kind: HandleKind, value: u64, state: &mut State) {
    state.alive = false;
    live(kind, |map| map.remove(&value));
}

/// Takes out a handle that has no lock.
pub fn ended_unlocked(kind: HandleKind, value: u64) {
    live(kind, |map| map.remove(&value));
}

/// Linkers that a thread has to destroy.
static PUT_OFF: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Leaves a linker to the thread whose memory it has.
pub fn put_off(thread: u64, value: u64) {
    PUT_OFF
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((thread, value));
}

/// The linkers that are left to this thread.
pub fn left_to_this_thread() -> Vec<u64> {
    let mut all = PUT_OFF.lock().unwrap_or_else(PoisonError::into_inner);
    if all.is_empty() {
        return Vec::new();
    }
    let this = this_thread();
    let mut mine = Vec::new();
    all.retain(|(thread, value)| {
        if *thread == this {
            mine.push(*value);
        }
        *thread != this
    });
    mine
}

/// The place of a handle that is alive.
pub fn find(kind: HandleKind, value: u64) -> Option<Entry> {
    live(kind, |map| map.get(&value).cloned())
}

/// Locks a handle: waits, without the GIL, for the call that has it. `None` if that call ended the handle.
///
/// Nothing that runs Python code may happen while the lock is held: that code could call with the same handle.
pub fn lock(entry: &Entry) -> Option<MutexGuard<'_, State>> {
    let guard = match entry.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            // SAFETY: this thread is attached; its state is restored before Python is touched.
            unsafe { cpython::detached(|| entry.lock().unwrap_or_else(PoisonError::into_inner)) }
        }
    };
    if guard.alive { Some(guard) } else { None }
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
    pub const fn logs(self) -> &'static [(CudaLibrary, &'static str, &'static str)] {
        match self {
            HandleKind::NvJitLink => &[
                (
                    CudaLibrary::NvJitLink,
                    "get_error_log_size",
                    "get_error_log",
                ),
                (CudaLibrary::NvJitLink, "get_info_log_size", "get_info_log"),
            ],
            HandleKind::Nvvm => &[(CudaLibrary::Nvvm, "get_program_log_size", "get_program_log")],
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
        assert!(!waiting.lock().expect("nobody else has it").alive);
        // The same address again is another handle.
        made(kind, 64);
        assert!(find(kind, 64).expect("alive").lock().expect("free").alive);
        assert!(!waiting.lock().expect("free").alive);
    }

    #[test]
    fn linkers_belong_to_their_threads() {
        let kind = HandleKind::NvJitLink;
        made(kind, 128);
        let entry = find(kind, 128).expect("alive");
        assert!(!entry.lock().expect("free").elsewhere());
        let there = entry.clone();
        std::thread::spawn(move || {
            let state = there.lock().expect("free");
            assert!(state.elsewhere());
            put_off(state.thread.expect("a thread"), 128);
            assert!(left_to_this_thread().is_empty());
        })
        .join()
        .expect("no panic");
        assert_eq!(left_to_this_thread(), [128]);
        assert!(left_to_this_thread().is_empty());
    }
}

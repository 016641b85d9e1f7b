//! Registry of live handles, for libraries that crash on invalid ones. Serializes the calls with each handle.
//!
//! nvJitLink, NVVM and nvFatbin dereference a handle unchecked: a double free, a use-after-free or an invented handle
//! crashes the process. All handles come from `create()`, so the live ones are known. Calls with the same
//! handle wait for each other (without the GIL): the libraries do not lock, and one thread could destroy what another
//! is compiling.
//!
//! An nvJitLink linker also refers to memory of the thread that created it until it has linked. Using it on another
//! thread before that corrupts memory, so such calls are refused. Destruction on another thread is deferred until the
//! creating thread makes its next linker.

use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::bindings::descriptor::Module;

use crate::bindings::descriptor::HandleKind;
use crate::cpython;

/// State of a handle.
#[derive(Debug)]
pub struct HandleState {
    /// False once the handle is destroyed.
    pub alive: bool,
    /// The thread whose memory it refers to; `None` if it refers to none.
    pub thread: Option<u64>,
    /// Text arguments: nvJitLink keeps the address of an input's name and reads it when it links.
    pub texts: Vec<CString>,
}

impl HandleState {
    /// Whether it refers to memory of another thread.
    pub fn belongs_to_other_thread(&self) -> bool {
        self.thread.is_some_and(|thread| thread != this_thread())
    }
}

/// A number unique to the calling thread. `std::thread::current().id()` costs ten times as much.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A handle's entry in the registry. Locked while C uses the handle.
pub type SharedState = Arc<Mutex<HandleState>>;

/// Hashes an address with one multiplication.
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
        // The map uses both the high and the low bits.
        self.0 = cpython::pointer_map::spread(self.0 ^ value).rotate_left(32);
    }
}

type Map = HashMap<u64, SharedState, BuildHasherDefault<AddressHasher>>;

static LIVE: [Mutex<Option<Map>>; HandleKind::COUNT] =
    [const { Mutex::new(None) }; HandleKind::COUNT];

fn live<T>(kind: HandleKind, f: impl FnOnce(&mut Map) -> T) -> T {
    // Held for a few instructions and with the GIL, so a fork never copies it locked.
    let mut map = LIVE[kind as usize]
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    f(map.get_or_insert_default())
}

/// Registers a handle that the library just created.
pub fn register(kind: HandleKind, value: u64) {
    if value != 0 {
        let thread = (kind == HandleKind::NvJitLink).then(this_thread);
        let state = HandleState {
            alive: true,
            thread,
            texts: Vec::new(),
        };
        live(kind, |map| map.insert(value, Arc::new(Mutex::new(state))));
    }
}

/// Removes a handle that the library just destroyed; the caller holds its lock.
pub fn unregister(kind: HandleKind, value: u64, state: &mut HandleState) {
    state.alive = false;
    live(kind, |map| map.remove(&value));
}

/// Removes a handle of a kind that is not locked.
pub fn unregister_unlocked(kind: HandleKind, value: u64) {
    live(kind, |map| map.remove(&value));
}

/// Linkers whose destruction is deferred: thread and handle.
static DEFERRED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Defers the destruction of a linker to the thread whose memory it refers to.
pub fn defer_destroy(thread: u64, value: u64) {
    DEFERRED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((thread, value));
}

/// Takes the linkers that this thread has to destroy.
pub fn take_deferred() -> Vec<u64> {
    let mut all = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The entry of a live handle.
pub fn find(kind: HandleKind, value: u64) -> Option<SharedState> {
    live(kind, |map| map.get(&value).cloned())
}

/// Locks a handle: waits, without the GIL, for the call that uses it. `None` if that call destroyed the handle.
///
/// No Python code may run while the lock is held: it could call with the same handle.
pub fn lock(entry: &SharedState) -> Option<MutexGuard<'_, HandleState>> {
    let guard = match entry.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            // SAFETY: this thread is attached, and the closure touches no Python.
            unsafe { cpython::detached(|| entry.lock().unwrap_or_else(PoisonError::into_inner)) }
        }
    };
    if guard.alive { Some(guard) } else { None }
}

impl HandleKind {
    /// Whether calls with the same handle are serialized. NVML locks internally, and a call that waits for an event must
    /// not block other calls with the event set.
    pub const fn exclusive(self) -> bool {
        matches!(
            self,
            HandleKind::NvJitLink | HandleKind::Nvvm | HandleKind::NvFatbin
        )
    }

    /// The library's status for a null handle.
    pub const fn invalid(self) -> i64 {
        match self {
            HandleKind::NvJitLink => 10,
            HandleKind::Nvvm | HandleKind::NvFatbin => 5,
            HandleKind::NvmlEventSet | HandleKind::NvmlSystemEventSet => 2,
        }
    }

    /// The Python function that creates such handles.
    pub const fn constructor(self) -> &'static str {
        match self {
            HandleKind::NvJitLink => "nvjitlink.create()",
            HandleKind::Nvvm => "nvvm.create_program()",
            HandleKind::NvFatbin => "nvfatbin.create()",
            HandleKind::NvmlEventSet => "nvml.event_set_create()",
            HandleKind::NvmlSystemEventSet => "nvml.system_event_set_create()",
        }
    }

    /// The functions that return a log's size and text; the first log that is not empty counts.
    pub const fn logs(self) -> &'static [(Module, &'static str, &'static str)] {
        match self {
            HandleKind::NvJitLink => &[
                (Module::NvJitLink, "get_error_log_size", "get_error_log"),
                (Module::NvJitLink, "get_info_log_size", "get_info_log"),
            ],
            HandleKind::Nvvm => &[(Module::Nvvm, "get_program_log_size", "get_program_log")],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_live_until_unregistered() {
        let kind = HandleKind::NvmlSystemEventSet;
        assert!(find(kind, 64).is_none());
        register(kind, 64);
        register(kind, 0);
        assert!(find(kind, 0).is_none(), "null is no handle");
        assert!(find(HandleKind::Nvvm, 64).is_none(), "of another library");
        let entry = find(kind, 64).expect("alive");
        let waiting = find(kind, 64).expect("alive");
        let mut guard = entry.lock().expect("unlocked");
        unregister(kind, 64, &mut guard);
        drop(guard);
        assert!(find(kind, 64).is_none());
        assert!(!waiting.lock().expect("unlocked").alive);
        // A reused address is a new handle.
        register(kind, 64);
        assert!(find(kind, 64).expect("alive").lock().expect("free").alive);
        assert!(!waiting.lock().expect("free").alive);
    }

    #[test]
    fn linkers_belong_to_their_threads() {
        let kind = HandleKind::NvJitLink;
        register(kind, 128);
        let entry = find(kind, 128).expect("alive");
        assert!(!entry.lock().expect("free").belongs_to_other_thread());
        let there = entry.clone();
        std::thread::spawn(move || {
            let state = there.lock().expect("free");
            assert!(state.belongs_to_other_thread());
            defer_destroy(state.thread.expect("a thread"), 128);
            assert!(take_deferred().is_empty());
        })
        .join()
        .expect("no panic");
        assert_eq!(take_deferred(), [128]);
        assert!(take_deferred().is_empty());
    }
}

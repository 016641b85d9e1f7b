//! The lock of a checkpoint: while a process is locked, entry points that could change the state of a device wait.
//!
//! Calls in progress are counted, so that locking can wait for them. Queries are not locked: threads that keep Python's
//! global lock during a query must not wait for a thread that needs that lock.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The state of the process: a `CUprocessState`.
static STATE: AtomicU32 = AtomicU32::new(RUNNING);

pub(crate) const RUNNING: u32 = 0;
pub(crate) const LOCKED: u32 = 1;
pub(crate) const CHECKPOINTED: u32 = 2;
pub(crate) const FAILED: u32 = 3;
/// New calls wait, and the lock waits for calls in progress; queries report the process as running.
const LOCKING: u32 = u32::MAX;

/// Counters of calls in progress. Threads are spread over them, so that they do not contend.
const COUNTERS: usize = 16;

#[repr(align(64))]
struct Counter(AtomicU64);

static INSIDE: [Counter; COUNTERS] = [const { Counter(AtomicU64::new(0)) }; COUNTERS];

static WAITING: Mutex<()> = Mutex::new(());
static UNLOCKED: Condvar = Condvar::new();

thread_local! {
    /// The thread's counter, and how many of its calls are nested: a callback may call the driver.
    static THREAD: Cell<(u8, u32)> = const { Cell::new((u8::MAX, 0)) };
}

/// A call in progress.
pub(crate) struct CallGuard(bool);

impl Drop for CallGuard {
    fn drop(&mut self) {
        if self.0 {
            let _ = THREAD.try_with(|thread| {
                let (counter, depth) = thread.get();
                thread.set((counter, depth - 1));
                if depth == 1 {
                    INSIDE[usize::from(counter)]
                        .0
                        .fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    }
}

/// Begins a call; waits while the process is locked.
pub(crate) fn enter(name: &str) -> CallGuard {
    let entered = THREAD.try_with(|thread| {
        let (mut counter, depth) = thread.get();
        if depth == 0 {
            if counter == u8::MAX {
                static NEXT: AtomicU32 = AtomicU32::new(0);
                counter = (NEXT.fetch_add(1, Ordering::Relaxed) as usize % COUNTERS) as u8;
            }
            let inside = &INSIDE[usize::from(counter)].0;
            inside.fetch_add(1, Ordering::SeqCst);
            while is_locked() && !is_query(name) {
                inside.fetch_sub(1, Ordering::SeqCst);
                wait_until_unlocked();
                inside.fetch_add(1, Ordering::SeqCst);
            }
        }
        thread.set((counter, depth + 1));
    });
    // A thread that is ending has no counter. The lock does not wait for its call.
    CallGuard(entered.is_ok())
}

/// Whether calls wait. After a failed restoration they do not: they return the error of their context.
fn is_locked() -> bool {
    !matches!(STATE.load(Ordering::SeqCst), RUNNING | FAILED)
}

/// Whether an entry point changes nothing on a device.
fn is_query(name: &str) -> bool {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let base = base.strip_suffix("_v").unwrap_or(name);
    base.contains("Get")
        || base.ends_with("Query")
        || matches!(
            base,
            "cuCtxSetCurrent" | "cuCtxPushCurrent" | "cuCtxPopCurrent" | "cuEventElapsedTime"
        )
}

fn wait_until_unlocked() {
    let mut waiting = WAITING.lock();
    while is_locked() {
        // The time limit only guards against a wake-up before the wait.
        UNLOCKED.wait_for(&mut waiting, Duration::from_millis(100));
    }
}

/// The state of the process.
pub(crate) fn state() -> u32 {
    match STATE.load(Ordering::SeqCst) {
        LOCKING => RUNNING,
        state => state,
    }
}

/// Whether the device memory of the process is in a file.
pub(crate) fn is_checkpointed() -> bool {
    state() == CHECKPOINTED
}

/// Changes the state. [`RUNNING`] and [`FAILED`] let the waiting calls continue.
pub(crate) fn set_state(state: u32) {
    STATE.store(state, Ordering::SeqCst);
    if !is_locked() {
        let _waiting = WAITING.lock();
        UNLOCKED.notify_all();
    }
}

/// Locks a running process and waits for the calls in progress. False if they did not end in time; the process is
/// running again then.
pub(crate) fn lock(deadline: Option<Instant>) -> bool {
    STATE.store(LOCKING, Ordering::SeqCst);
    while INSIDE.iter().any(|c| c.0.load(Ordering::SeqCst) != 0) {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            set_state(RUNNING);
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    STATE.store(LOCKED, Ordering::SeqCst);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_not_locked() {
        for name in [
            "cuCtxGetCurrent",
            "cuStreamQuery",
            "cuMemGetInfo_v2",
            "cuCtxPushCurrent_v2",
            "cuEventElapsedTime_v2",
            "cuDeviceGetAttribute",
        ] {
            assert!(is_query(name), "{name}");
        }
        for name in [
            "cuMemAlloc_v2",
            "cuLaunchKernel",
            "cuStreamSynchronize",
            "cuMemcpyDtoH_v2",
            "cuMemFree_v2",
        ] {
            assert!(!is_query(name), "{name}");
        }
    }
}

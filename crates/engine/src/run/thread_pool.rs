//! The worker threads of the process.
//!
//! A launch runs on the calling thread and on idle pool threads; concurrent launches share the pool. Threads do not survive
//! `fork`, so that a child process creates a pool of its own.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::{Condvar, Mutex};

/// Number of threads that run blocks, including the calling one: `CUPYRITE_CPU_THREADS`, by default the number of cores.
pub fn threads() -> usize {
    static N: OnceLock<usize> = OnceLock::new();
    *N.get_or_init(|| {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // The driver has refused an invalid value; without the driver, it counts as unset.
        let wanted = crate::settings::threads().ok().flatten();
        wanted.unwrap_or_else(cores).min(1024)
    })
}

/// The work of one launch.
struct Job {
    /// The closure, which lives while the job is listed or a helper is inside.
    work: *const (dyn Fn(u32) + Sync),
    id: u64,
    /// Number of helpers that may still join.
    wanted: usize,
    /// Number of the next helper.
    next: u32,
    /// Number of helpers inside.
    inside: usize,
}

// SAFETY: the closure is `Sync`, and `run` keeps it alive until no thread can reach it.
unsafe impl Send for Job {}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    serial: u64,
    threads: usize,
    idle: usize,
}

struct Pool {
    pid: u32,
    state: Mutex<PoolState>,
    /// Signals that there is a job.
    work: Condvar,
    /// Signals that a helper has left a job.
    left: Condvar,
}

/// The pool of this process. It is never freed.
fn pool() -> &'static Pool {
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
    let pid = std::process::id();
    let current = POOL.load(Ordering::Acquire);
    // SAFETY: a pool is never freed.
    if let Some(p) = unsafe { current.as_ref() }
        && p.pid == pid
    {
        return p;
    }
    let new = Box::into_raw(Box::new(Pool {
        pid,
        state: Mutex::new(PoolState::default()),
        work: Condvar::new(),
        left: Condvar::new(),
    }));
    match POOL.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a pool is never freed.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: no other thread has seen `new`; `other` was published and is never freed.
            unsafe {
                drop(Box::from_raw(new));
                &*other
            }
        }
    }
}

/// The loop of a pool thread.
fn serve(pool: &'static Pool) {
    let mut state = pool.state.lock();
    loop {
        let found = state.jobs.iter_mut().find(|j| j.wanted > 0).map(|j| {
            j.wanted -= 1;
            j.inside += 1;
            j.next += 1;
            (j.work, j.id, j.next)
        });
        let Some((work, id, number)) = found else {
            state.idle += 1;
            pool.work.wait(&mut state);
            state.idle -= 1;
            continue;
        };
        drop(state);
        // SAFETY: `inside` counts this thread, so that `run` has not returned.
        let call = unsafe { &*work };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(number)));
        state = pool.state.lock();
        if let Some(j) = state.jobs.iter_mut().find(|j| j.id == id) {
            j.inside -= 1;
        }
        if result.is_err() {
            log::error!("a worker of the CPU device panicked; this is a bug in cupyrite");
        }
        pool.left.notify_all();
    }
}

/// Runs `work(0)` on the calling thread and `work(1)`, `work(2)`, ... on up to `helpers` idle pool threads. Returns when
/// all of them have returned.
pub fn run(helpers: usize, work: &(dyn Fn(u32) + Sync)) {
    if helpers == 0 {
        return work(0);
    }
    let pool = pool();
    // SAFETY: only the lifetime changes, and this function does not return while a thread can reach the closure.
    let erased: &'static (dyn Fn(u32) + Sync) = unsafe { std::mem::transmute(work) };
    let id = {
        let mut state = pool.state.lock();
        state.serial += 1;
        let id = state.serial;
        state.jobs.push_back(Job {
            work: erased,
            id,
            wanted: helpers,
            next: 0,
            inside: 0,
        });
        let most = threads().saturating_sub(1);
        while state.idle < helpers && state.threads < most {
            state.threads += 1;
            let spawned = std::thread::Builder::new()
                .name("cupyrite-worker".into())
                .spawn(move || serve(pool));
            if spawned.is_err() {
                // The calling thread does the work.
                state.threads -= 1;
                break;
            }
            if state.threads >= helpers {
                break;
            }
        }
        id
    };
    if helpers == 1 {
        pool.work.notify_one();
    } else {
        pool.work.notify_all();
    }
    /// Removes the job, even if `work(0)` panics.
    struct JobGuard {
        pool: &'static Pool,
        id: u64,
    }
    impl Drop for JobGuard {
        fn drop(&mut self) {
            let mut state = self.pool.state.lock();
            loop {
                let Some(n) = state.jobs.iter().position(|j| j.id == self.id) else {
                    return;
                };
                state.jobs[n].wanted = 0;
                if state.jobs[n].inside == 0 {
                    state.jobs.remove(n);
                    return;
                }
                self.pool.left.wait(&mut state);
            }
        }
    }
    let _guard = JobGuard { pool, id };
    work(0);
}

//! The process's worker threads.
//!
//! A launch runs on the thread that makes it and on as many pool threads as have time; several launches share the
//! pool. Threads do not survive `fork`, so that a child makes a pool of its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// Number of threads that run blocks, the calling one included: `CUPYRITE_CPU_THREADS`, or one for each core.
pub fn threads() -> usize {
    static N: OnceLock<usize> = OnceLock::new();
    *N.get_or_init(|| {
        let asked = std::env::var("CUPYRITE_CPU_THREADS")
            .ok()
            .and_then(|v| v.trim().parse::<usize>().ok());
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        asked
            .filter(|&n| n > 0)
            .unwrap_or_else(cores)
            .clamp(1, 1024)
    })
}

/// The work of one launch, as the pool sees it.
struct Job {
    /// The closure; alive as long as the job is listed or anyone is inside.
    work: *const (dyn Fn(u32) + Sync),
    id: u64,
    /// Helpers that may still join.
    wanted: usize,
    /// Number of the next helper.
    next: u32,
    /// Helpers inside.
    inside: usize,
}

// SAFETY: the closure is `Sync`, and `run` keeps it alive until no thread can reach it any more.
unsafe impl Send for Job {}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    serial: u64,
    threads: usize,
    idle: usize,
}

struct Pool {
    pid: u32,
    state: Mutex<State>,
    /// Something to do.
    work: Condvar,
    /// Somebody has left a job.
    left: Condvar,
}

/// The pool of this process. It is never freed: its threads end with the process.
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
    let fresh = Box::into_raw(Box::new(Pool {
        pid,
        state: Mutex::new(State::default()),
        work: Condvar::new(),
        left: Condvar::new(),
    }));
    match POOL.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a pool is never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: nobody else has seen it; `other` was published and is never freed.
            unsafe {
                drop(Box::from_raw(fresh));
                &*other
            }
        }
    }
}

fn serve(pool: &'static Pool) {
    let mut state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let found = state.jobs.iter_mut().find(|j| j.wanted > 0).map(|j| {
            j.wanted -= 1;
            j.inside += 1;
            j.next += 1;
            (j.work, j.id, j.next)
        });
        let Some((work, id, number)) = found else {
            state.idle += 1;
            state = pool
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            continue;
        };
        drop(state);
        // SAFETY: `inside` counts this thread, so that `run` has not returned.
        let call = unsafe { &*work };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(number)));
        state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(j) = state.jobs.iter_mut().find(|j| j.id == id) {
            j.inside -= 1;
        }
        if result.is_err() {
            log::error!("a worker of the CPU device panicked; this is a bug in cupyrite");
        }
        pool.left.notify_all();
    }
}

/// Runs `work(0)` here and `work(1)`, `work(2)`, ... on up to `helpers` pool threads, as they have time; returns when
/// all that began are done.
pub fn run(helpers: usize, work: &(dyn Fn(u32) + Sync)) {
    if helpers == 0 {
        return work(0);
    }
    let pool = pool();
    // SAFETY: only the lifetime changes; this function does not return before nobody can reach the closure.
    let forever: &'static (dyn Fn(u32) + Sync) = unsafe { std::mem::transmute(work) };
    let id = {
        let mut state = pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.serial += 1;
        let id = state.serial;
        state.jobs.push_back(Job {
            work: forever,
            id,
            wanted: helpers,
            next: 0,
            inside: 0,
        });
        let most = threads().saturating_sub(1);
        while state.idle < helpers && state.threads < most {
            state.threads += 1;
            let made = std::thread::Builder::new()
                .name("cupyrite-worker".into())
                .spawn(move || serve(pool));
            if made.is_err() {
                // The caller does the work alone.
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
        pool.work.notify_one()
    } else {
        pool.work.notify_all()
    }
    /// Leaves the job even if the caller's own part panics.
    struct Leave {
        pool: &'static Pool,
        id: u64,
    }
    impl Drop for Leave {
        fn drop(&mut self) {
            let mut state = self
                .pool
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            loop {
                let Some(n) = state.jobs.iter().position(|j| j.id == self.id) else {
                    return;
                };
                state.jobs[n].wanted = 0;
                if state.jobs[n].inside == 0 {
                    state.jobs.remove(n);
                    return;
                }
                state = self
                    .pool
                    .left
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
    let _leave = Leave { pool, id };
    work(0);
}

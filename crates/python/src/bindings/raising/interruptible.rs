//! Calls that may never return: they run on a worker thread, so that Ctrl-C can abandon them.
//!
//! Without a GPU, `cuFileDriverOpen` spins forever inside the library, and no signal interrupts it. Only the main thread
//! runs Python's signal handlers. It hands such calls to a worker and polls for signals while it waits. An
//! abandoned call continues in the background; its arguments and results stay alive until it returns, if need be for
//! the rest of the process. Other threads run no signal handlers and call directly.
//!
//! cuFile uses the calling thread's CUDA context, so the worker sets the same context for the call.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pyo3::ffi;

use crate::bindings::call::frame::Frame;
use crate::bindings::call::general;
use crate::bindings::call::results::Returned;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Function, MAX_WORDS, Thunk};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::raising::check;
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// Interval at which a waiting thread checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Whether this thread's calls run on a worker: true on the main thread, which alone runs signal handlers.
fn applies() -> bool {
    // SAFETY: neither function has preconditions.
    unsafe { libc::gettid() == libc::getpid() }
}

/// A pending C call: everything the worker needs, without Python objects.
struct Job {
    thunk: Thunk,
    symbol: usize,
    words: [u64; MAX_WORDS],
    /// The caller's CUDA context.
    context: usize,
    returned: Mutex<Option<Returned>>,
    done: Condvar,
}

impl Job {
    fn run(&self) -> Returned {
        context::set(self.context);
        let symbol = std::ptr::with_exposed_provenance::<c_void>(self.symbol);
        // SAFETY: `call` packed the words for this symbol's C signature and keeps everything they point at alive until
        // the result is published. The thunk touches no Python.
        let value = unsafe { (self.thunk)(symbol, self.words.as_ptr()) };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        context::set(0);
        Returned { value, errno }
    }

    fn tell(&self, returned: Returned) {
        *lock(&self.returned) = Some(returned);
        self.done.notify_all();
    }

    /// Waits up to `time` for the call's return value.
    fn wait(&self, time: Duration) -> Option<Returned> {
        let returned = lock(&self.returned);
        let (returned, _) = self
            .done
            .wait_timeout_while(returned, time, |returned| returned.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        *returned
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---------------------------------------------------------------------------------------------------------
// Workers

/// A thread that waits for jobs. One idle worker is kept; a busy one leads to a new thread.
struct Worker {
    next: Mutex<Option<Arc<Job>>>,
    more: Condvar,
}

/// The idle worker and its process ID: a forked child has none of its parent's threads.
static IDLE: Mutex<Option<(u32, Arc<Worker>)>> = Mutex::new(None);

/// Runs the job on a worker.
fn start(job: &Arc<Job>) -> R<()> {
    // `try_lock`: a fork may copy the lock in its locked state, and it would never be released in the child.
    let idle = match IDLE.try_lock() {
        Ok(mut idle) => idle.take().filter(|(pid, _)| *pid == std::process::id()),
        Err(_) => None,
    };
    if let Some((_, worker)) = idle {
        *lock(&worker.next) = Some(job.clone());
        worker.more.notify_one();
        return Ok(());
    }
    let worker = Arc::new(Worker {
        next: Mutex::new(Some(job.clone())),
        more: Condvar::new(),
    });
    let started = std::thread::Builder::new()
        .name("cupyrite-call".to_owned())
        .spawn(move || work(&worker));
    match started {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("no thread for the call: {error}");
            Err(errors::raise(ExceptionKind::Runtime, &message))
        }
    }
}

fn work(worker: &Arc<Worker>) {
    loop {
        let mut next = lock(&worker.next);
        let job = loop {
            match next.take() {
                Some(job) => break job,
                None => {
                    next = worker
                        .more
                        .wait(next)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(next);
        let returned = job.run();
        // Become idle before publishing the result, so that the caller's next call finds this worker.
        let stays = offer(worker);
        job.tell(returned);
        if !stays {
            return;
        }
    }
}

/// Makes this worker the idle one unless there is one already; returns whether it did.
fn offer(worker: &Arc<Worker>) -> bool {
    let Ok(mut idle) = IDLE.try_lock() else {
        return false;
    };
    let pid = std::process::id();
    if idle.as_ref().is_some_and(|(owner, _)| *owner == pid) {
        return false;
    }
    *idle = Some((pid, worker.clone()));
    true
}

// ---------------------------------------------------------------------------------------------------------
// The call

/// An abandoned call, and everything it needs to stay alive.
struct Left {
    f: &'static Function,
    job: Arc<Job>,
    #[allow(dead_code, reason = "held, not read")]
    frame: Box<Frame>,
    #[allow(dead_code, reason = "held, not read")]
    args: Vec<Owned>,
}
// SAFETY: values are only moved between threads. `call` and `tidy` create and drop them on attached threads.
unsafe impl Send for Left {}

static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// Drops the abandoned calls that have returned.
fn tidy() {
    let mut left = lock(&LEFT);
    if left.is_empty() {
        return;
    }
    let mut over = Vec::new();
    let mut at = 0;
    while at < left.len() {
        if left[at].job.wait(Duration::ZERO).is_some() {
            over.push(left.swap_remove(at));
        } else {
            at += 1;
        }
    }
    drop(left);
    // Outside the lock: dropping objects can run arbitrary code.
    drop(over);
}

/// Hook of functions that may never return: runs the call on a worker and waits for it.
///
/// # Errors
///
/// Those of the call itself, or a signal handler raised during the wait.
pub fn call(arguments: Arguments<'_>) -> R<Owned> {
    if !applies() {
        return general::call(arguments);
    }
    let f = arguments.f;
    tidy();
    let mut frame = Box::new(Frame::new());
    frame.prepare(arguments)?;
    // An abandoned call of this function is still running. A second one would block on it inside C: wait for its result.
    if let Some(job) = same(f) {
        let returned = wait(f, &job)?;
        check(f, returned, None)?;
        return frame.answer(arguments, returned);
    }
    let symbol = symbols::symbol(f)?;
    let mut words = [0; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let job = Arc::new(Job {
        thunk: f.thunk,
        symbol: symbol.expose_provenance(),
        words,
        context: context::get(),
        returned: Mutex::new(None),
        done: Condvar::new(),
    });
    start(&job)?;
    match wait(f, &job) {
        Ok(returned) => {
            check(f, returned, None)?;
            frame.answer(arguments, returned)
        }
        Err(Raised) => {
            let args = (0..f.params.len())
                .filter_map(|index| arguments.get(index).map(Obj::owned))
                .collect();
            lock(&LEFT).push(Left {
                f,
                job,
                frame,
                args,
            });
            Err(Raised)
        }
    }
}

/// The abandoned call of this function, if the function has neither arguments nor results.
fn same(f: &'static Function) -> Option<Arc<Job>> {
    if !f.params.is_empty() || !f.results.is_empty() {
        return None;
    }
    lock(&LEFT)
        .iter()
        .find(|left| std::ptr::eq(left.f, f))
        .map(|left| left.job.clone())
}

/// Waits without the GIL and polls for signals.
fn wait(f: &'static Function, job: &Job) -> R<Returned> {
    loop {
        // SAFETY: this thread is attached, and the closure touches no Python.
        let returned = unsafe { cpython::detached(|| job.wait(LOOK)) };
        if let Some(returned) = returned {
            return Ok(returned);
        }
        // SAFETY: `detached` attached this thread again.
        if unsafe { ffi::PyErr_CheckSignals() } != 0 {
            errors::note(&format!(
                "{}() was left behind: it goes on in the background until the library returns",
                f.name
            ));
            return Err(Raised);
        }
    }
}

// ---------------------------------------------------------------------------------------------------------
// The CUDA context

/// The calling thread's CUDA context, read through the driver if the process has loaded it. Never loads the driver.
mod context {
    use crate::bindings::raising::interruptible::{OnceLock, c_int, c_void};

    type Get = unsafe extern "C" fn(*mut usize) -> c_int;
    type Set = unsafe extern "C" fn(usize) -> c_int;

    fn driver() -> Option<(Get, Set)> {
        static DRIVER: OnceLock<(Get, Set)> = OnceLock::new();
        if let Some(known) = DRIVER.get() {
            return Some(*known);
        }
        // SAFETY: the names end with a nul. The handle is never closed, so the addresses stay valid. The driver exports
        // the symbols with these signatures.
        unsafe {
            let flags = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
            let handle = libc::dlopen(c"libcuda.so.1".as_ptr(), flags);
            if handle.is_null() {
                return None;
            }
            let get = libc::dlsym(handle, c"cuCtxGetCurrent".as_ptr());
            let set = libc::dlsym(handle, c"cuCtxSetCurrent".as_ptr());
            if get.is_null() || set.is_null() {
                return None;
            }
            let found = (
                std::mem::transmute::<*mut c_void, Get>(get),
                std::mem::transmute::<*mut c_void, Set>(set),
            );
            Some(*DRIVER.get_or_init(|| found))
        }
    }

    /// The current context; 0 without one.
    pub fn get() -> usize {
        let Some((get, _)) = driver() else { return 0 };
        let mut context = 0usize;
        // SAFETY: the driver writes one pointer, which `context` has room for.
        match unsafe { get(&raw mut context) } {
            0 => context,
            _ => 0,
        }
    }

    /// Makes a context current; 0 unsets it.
    pub fn set(context: usize) {
        if let Some((_, set)) = driver() {
            // SAFETY: the context was current on the calling thread, or is null. Before the driver is initialized the
            // call only returns an error.
            unsafe { set(context) };
        }
    }
}

//! Calls that may never come back: they run on a thread of their own, so that Ctrl-C can leave them behind.
//!
//! Without a GPU, `cuFileDriverOpen` spins for ever inside the library; no signal ends that. The main thread, which
//! alone runs Python's signal handlers, therefore hands such calls to a worker and waits for it, looking for signals
//! meanwhile. A call that is left behind goes on; everything it works with is kept until it is over, for as long as
//! the process lives if need be. Other threads get no signals and call directly.
//!
//! cuFile works with the calling thread's CUDA context, so the worker takes it over for the call.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pyo3::ffi;

use crate::bindings::call::general::Arguments;
use crate::bindings::descriptor::{Function, MAX_WORDS, Raising, Thunk};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::raising::{Call, Returned};
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// How often a waiting thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Whether calls of this thread are handed to a worker: only the main thread gets signals.
pub fn applies() -> bool {
    // SAFETY: neither has preconditions.
    unsafe { libc::gettid() == libc::getpid() }
}

/// A C call on its way: what the worker needs, none of it Python's.
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
        // SAFETY: the words were made for this symbol's C signature, and everything they point at is kept until
        // the result is told. The thread knows nothing of Python.
        let value = unsafe { (self.thunk)(symbol, self.words.as_ptr()) };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        context::set(0);
        Returned { value, errno }
    }

    fn tell(&self, returned: Returned) {
        *lock(&self.returned) = Some(returned);
        self.done.notify_all();
    }

    /// What the call returned, if it did within `time`.
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

/// A thread that waits for jobs. One is kept; another is made while that one is busy.
struct Worker {
    next: Mutex<Option<Arc<Job>>>,
    more: Condvar,
}

/// The worker that waits, and the process it belongs to: a forked child has none of its parent's threads.
static IDLE: Mutex<Option<(u32, Arc<Worker>)>> = Mutex::new(None);

/// Has a worker run the job.
fn start(job: &Arc<Job>) -> R<()> {
    // Only tried: a fork may find the lock taken, and nobody would ever release it.
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
        // Offered before the caller knows, so that its next call finds this worker.
        let stays = offer(worker);
        job.tell(returned);
        if !stays {
            return;
        }
    }
}

/// Makes a worker the one that waits, unless there is one.
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

/// A call that was left behind, and what it works with.
struct Left {
    f: &'static Function,
    job: Arc<Job>,
    #[allow(dead_code, reason = "held, not read")]
    call: Box<Call>,
    #[allow(dead_code, reason = "held, not read")]
    args: Vec<Owned>,
}
// SAFETY: only moved between threads; made and dropped by threads that are attached to the interpreter.
unsafe impl Send for Left {}

static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// Lets go of what calls worked with that are over by now.
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
    // Outside of the lock: letting go of objects can run any code.
    drop(over);
}

/// Makes the call on a worker and waits for it.
///
/// # Errors
///
/// As the call itself, or a signal handler raised meanwhile.
pub fn call(arguments: Arguments<'_>, raising: &'static Raising) -> R<Owned> {
    let f = arguments.f;
    tidy();
    let mut call = Box::new(Call::new());
    call.prepare(arguments, raising)?;
    // The library is at it already: another call would wait for that one inside of C.
    if let Some(job) = same(f) {
        let returned = wait(f, &job)?;
        call.check(arguments, raising, returned, None)?;
        return call.finish(arguments, raising, returned);
    }
    let symbol = symbols::symbol(f)?;
    let words = call.words(arguments, &[]);
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
            call.check(arguments, raising, returned, None)?;
            call.finish(arguments, raising, returned)
        }
        Err(Raised) => {
            let args = (0..f.params.len())
                .filter_map(|index| arguments.get(index).map(Obj::owned))
                .collect();
            lock(&LEFT).push(Left { f, job, call, args });
            Err(Raised)
        }
    }
}

/// The call of this function that was left behind, if it has neither arguments nor results of its own.
fn same(f: &'static Function) -> Option<Arc<Job>> {
    if !f.params.is_empty() || !f.results.is_empty() {
        return None;
    }
    lock(&LEFT)
        .iter()
        .find(|left| std::ptr::eq(left.f, f))
        .map(|left| left.job.clone())
}

/// Waits without the GIL, and looks for signals now and then.
fn wait(f: &'static Function, job: &Job) -> R<Returned> {
    loop {
        // SAFETY: this thread is attached; its state is restored before Python is touched.
        let returned = unsafe { cpython::detached(|| job.wait(LOOK)) };
        if let Some(returned) = returned {
            return Ok(returned);
        }
        // SAFETY: attached.
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

/// The calling thread's CUDA context, by the driver if the process has loaded it; it is never loaded for this.
mod context {
    use crate::bindings::raising::interruptible::{OnceLock, c_int, c_void};

    type Get = unsafe extern "C" fn(*mut usize) -> c_int;
    type Set = unsafe extern "C" fn(usize) -> c_int;

    fn driver() -> Option<(Get, Set)> {
        static DRIVER: OnceLock<(Get, Set)> = OnceLock::new();
        if let Some(known) = DRIVER.get() {
            return Some(*known);
        }
        // SAFETY: the names end with a nul. The handle is kept, so the addresses stay good; the driver exports the
        // symbols with these signatures.
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

    /// The current context; 0 if there is none.
    pub fn get() -> usize {
        let Some((get, _)) = driver() else { return 0 };
        let mut context = 0usize;
        // SAFETY: there is room for the result.
        match unsafe { get(&raw mut context) } {
            0 => context,
            _ => 0,
        }
    }

    /// Makes a context current, or none.
    pub fn set(context: usize) {
        if let Some((_, set)) = driver() {
            // SAFETY: the context was current in a thread that waits, or it is none. Before the driver is
            // initialised this does nothing but say so.
            unsafe { set(context) };
        }
    }
}

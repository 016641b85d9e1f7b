//! Waits for work that Ctrl-C ends: a signal handler that raises, such as Python's own for SIGINT, ends the wait within a
//! fraction of a second. The work goes on.
//!
//! Python runs signal handlers on its main thread only. Other threads call the driver's waits.

use std::cell::Cell;
use std::time::{Duration, Instant};

use cupyrite::sys::loader::{self, Backend};
use cupyrite::{Device, Event, Result, Stream};
use pyo3::prelude::*;

use crate::bindings::raising::exit_guard::Inside;
use crate::bindings::symbols::{self, WorkGoesOn};
use crate::core::errors::OrRaise;
use crate::cpython;

/// Whether signal handlers run on this thread.
#[inline]
fn runs_signal_handlers() -> bool {
    thread_local! {
        static ANSWER: Cell<Option<bool>> = const { Cell::new(None) };
    }
    ANSWER.get().unwrap_or_else(|| {
        // SAFETY: neither function has preconditions.
        let answer = unsafe { libc::gettid() == libc::getpid() };
        ANSWER.set(Some(answer));
        answer
    })
}

/// A wait of crate [`cupyrite`], with and without a condition that ends it.
trait Wait: Sync {
    fn wait(&self) -> Result<()>;
    fn wait_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool>;
}

impl Wait for Stream {
    fn wait(&self) -> Result<()> {
        self.synchronize()
    }
    fn wait_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        self.synchronize_unless(cancelled)
    }
}

impl Wait for Event {
    fn wait(&self) -> Result<()> {
        self.synchronize()
    }
    fn wait_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        self.synchronize_unless(cancelled)
    }
}

impl Wait for Device {
    fn wait(&self) -> Result<()> {
        self.synchronize()
    }
    fn wait_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        self.synchronize_unless(cancelled)
    }
}

/// Waits on a detached thread. Returns false if a signal handler raised; [`completed`] reports the exception.
fn wait(waited: &impl Wait) -> Result<bool> {
    if !runs_signal_handlers() {
        return waited.wait().map(|()| true);
    }
    if loader::chosen_backend() == Some(Backend::Gpu) {
        return waited.wait_unless(&mut symbols::interrupt_requested);
    }
    // The CPU device's waits check for signals. An interrupt is an error, which `to_python` replaces.
    let _work_goes_on = WorkGoesOn::begin();
    waited.wait().map(|()| true)
}

/// Reports the exception of a signal handler that ended a wait.
///
/// # Errors
///
/// That exception, if `done` is false.
pub fn completed(py: Python<'_>, done: bool) -> PyResult<()> {
    if !done && symbols::check_interrupt().is_err() {
        return Err(PyErr::fetch(py));
    }
    Ok(())
}

/// Whether a query may answer a wait for work that is done, with the GIL, as queries in the bindings: they do not wait. Errors
/// are those of the wait that follows.
///
/// Not on the CPU device: its driver flushes kernel output at waits only, those of launches that this package does not see
/// included, and waits for done work cost as little as queries.
#[inline]
fn query_suffices() -> bool {
    loader::chosen_backend() == Some(Backend::Gpu) && symbols::keeps_gil()
}

/// Waits for the work of a stream.
///
/// # Errors
///
/// The error of the work, or the exception of a signal handler.
pub fn for_stream(py: Python<'_>, stream: &Stream) -> PyResult<()> {
    if query_suffices() && matches!(stream.is_synchronized(), Ok(true)) {
        return Ok(());
    }
    // SAFETY: the wait touches no Python objects: hooks that drop some attach the thread.
    let done = unsafe { cpython::detached(|| wait(stream)) }.or_raise(py)?;
    completed(py, done)
}

/// Waits for an event.
///
/// # Errors
///
/// As [`for_stream`].
pub fn for_event(py: Python<'_>, event: &Event) -> PyResult<()> {
    if query_suffices() && matches!(event.is_synchronized(), Ok(true)) {
        return Ok(());
    }
    // SAFETY: as in `for_stream`.
    let done = unsafe { cpython::detached(|| wait(event)) }.or_raise(py)?;
    completed(py, done)
}

/// Waits for all work of a device's context.
///
/// # Errors
///
/// As [`for_stream`].
pub fn for_device(py: Python<'_>, device: Device) -> PyResult<()> {
    let done = py.detach(|| wait(&device)).or_raise(py)?;
    completed(py, done)
}

/// On a detached thread, before a copy for which the driver waits: waits for the stream's earlier work if there is any and
/// `is_blocking()`. Returns false if a signal handler raised; [`completed`] reports the exception.
///
/// # Errors
///
/// The error of the work.
pub fn before_blocking_copy(stream: &Stream, is_blocking: impl FnOnce() -> bool) -> Result<bool> {
    // The copy reports the error of a failed query.
    if runs_signal_handlers() && matches!(stream.is_done(), Ok(false)) && is_blocking() {
        return wait(stream);
    }
    Ok(true)
}

/// Interval at which a compilation checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// When the compilation of the thread last checked for signals, and whether a handler raised.
    static COMPILATION: Cell<(Option<Instant>, bool)> = const { Cell::new((None, false)) };
}

/// Compiles on a detached thread; process exit waits for it. `compile` receives what ends the compilation, if signal handlers run on this thread: one
/// that raises.
///
/// # Errors
///
/// The error of the compilation, or the exception of a signal handler.
pub fn for_compilation<T: Send>(
    py: Python<'_>,
    compile: impl FnOnce(Option<fn() -> bool>) -> Result<T> + Send,
) -> PyResult<T> {
    let inside = Inside::begin(py);
    if !runs_signal_handlers() {
        let compile = || {
            let compiled = compile(None);
            drop(inside);
            compiled
        };
        return py.detach(compile).or_raise(py);
    }
    let outer = COMPILATION.replace((None, false));
    let compiled = py.detach(|| {
        let compiled = compile(Some(is_interrupted));
        drop(inside);
        compiled
    });
    // The compiler may have ended before it was cancelled.
    let interrupted = COMPILATION.replace(outer).1;
    completed(py, !interrupted)?;
    compiled.or_raise(py)
}

/// Waits on a detached thread. `wait` receives what ends the wait by returning true: a signal handler that raised, if they run
/// on this thread.
///
/// # Errors
///
/// The exception of a signal handler.
pub fn for_lock<T: Send>(
    py: Python<'_>,
    wait: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send,
) -> PyResult<T> {
    let mut interrupted = false;
    let locked = py.detach(|| {
        wait(&mut || {
            interrupted = runs_signal_handlers() && symbols::interrupt_requested();
            interrupted
        })
    });
    completed(py, !interrupted)?;
    Ok(locked)
}

/// Whether a signal handler has raised during the compilation. NVRTC ends a compilation only if all calls say so.
fn is_interrupted() -> bool {
    let (checked, interrupted) = COMPILATION.get();
    let now = Instant::now();
    if interrupted || checked.is_some_and(|checked| now - checked < CHECK_INTERVAL) {
        return interrupted;
    }
    let interrupted = symbols::interrupt_requested();
    COMPILATION.set((Some(now), interrupted));
    interrupted
}

//! Host memory lent to queued copies: how the borrow ends.
//!
//! Safe functions that queue a copy from or to borrowed host memory wait for it, and a wait can fail while the copy is
//! pending. What would make the wait fail is refused before the copy is queued: a captured stream, a capture that forbids
//! the thread to wait, a host callback. If the wait fails nevertheless, [`settle`] waits by queries until the device has
//! left the memory. If that cannot be established, the process is aborted: safe code would go on with memory that the
//! device still uses.

use std::cell::Cell;
use std::time::Duration;

use cupyrite_sys::driver::{CUresult, CUstreamCaptureStatus};

use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Error, Result};
use crate::stream::capture::capture_status;
use crate::stream::{Event, Stream};

/// Pause between two queries.
const PAUSE: Duration = Duration::from_micros(50);

thread_local! {
    /// Whether the thread runs a host callback of this crate.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a host callback: meanwhile the thread can lend no memory, because it must not wait.
pub(crate) fn within_callback<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_CALLBACK.set(self.0);
        }
    }
    let _restore = Restore(IN_CALLBACK.replace(true));
    body()
}

/// Refuses to lend memory to copies of a stream that is captured, and in a host callback.
pub(crate) fn check(function: &'static str, stream: &Stream) -> Result<()> {
    if IN_CALLBACK.get() {
        return Err(Error::Driver {
            call: function,
            status: CUresult::CUDA_ERROR_NOT_PERMITTED,
            log: "a host callback must not call CUDA: it cannot wait for the copy".to_owned(),
        });
    }
    if capture_status(stream)? != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        // The copy would run when the graph is launched, after the borrow.
        let problem = "is being captured; a graph borrows no host memory";
        return Err(Error::argument(function, "stream", problem));
    }
    Ok(())
}

/// Queues a copy that uses borrowed memory, and waits for it.
///
/// # Errors
///
/// Those of [`check`]; the error of a query of the stream, such as that of a capture that forbids waiting (nothing is
/// queued then); that of the copy or of earlier work. In no case does the device use the memory afterwards.
pub(crate) fn copy_and_wait(
    function: &'static str,
    stream: &Stream,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    check(function, stream)?;
    // Fails where the wait would fail.
    stream.is_done()?;
    let queued = copy();
    let waited = stream.synchronize();
    if waited.is_err() {
        // Also if the copy failed: part of it may have been queued.
        settle(stream, None);
    }
    queued.and(waited)
}

/// Returns when no work uses the borrowed memory, after a wait has failed. `last` is recorded after the last copy;
/// without it all work of the stream counts.
///
/// Aborts the process if the driver refuses to tell.
#[cold]
pub(crate) fn settle(stream: &Stream, mut last: Option<&Event>) {
    let _relaxed = RelaxedCapture::enter();
    loop {
        let done = match last {
            Some(event) => event.is_done(),
            None => stream.is_done(),
        };
        match done {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) if has_stopped(&error) => return,
            // The event was recorded in a capture that another thread began after the check.
            Err(error) if last.is_some() && is_of_capture(&error) => last = None,
            // Another thread captures the stream, or one that excludes its use. If the stream itself is captured, the query
            // has invalidated the capture, so that a copy in it never runs. A copy before it is done, at the latest,
            // when the capture has ended and the query succeeds.
            Err(error) if is_of_capture(&error) && !is_recorded(stream) => {}
            Err(error) => {
                // The program has destroyed the stream, for example.
                let context = match stream.context_if_destroyed() {
                    Some(context) => Ok(context.clone()),
                    None => stream.context(),
                };
                match context.and_then(|context| context.synchronize()) {
                    Ok(()) => return,
                    Err(again) if has_stopped(&again) => return,
                    Err(_) => abort(&error),
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a capture is the reason of an error.
fn is_of_capture(error: &Error) -> bool {
    let range = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0
        ..=CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.0;
    error
        .status()
        .is_some_and(|status| range.contains(&status.0))
}

/// Whether an error means that the context runs no work any more.
fn has_stopped(error: &Error) -> bool {
    error.leaves_context_unusable()
        || matches!(
            error.status(),
            Some(
                CUresult::CUDA_ERROR_DEINITIALIZED
                    | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
                    | CUresult::CUDA_ERROR_UNKNOWN
            )
        )
}

/// Whether the stream is captured into a graph that can still be instantiated.
fn is_recorded(stream: &Stream) -> bool {
    capture_status(stream)
        .is_ok_and(|status| status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE)
}

#[cold]
fn abort(error: &Error) -> ! {
    eprintln!(
        "cupyrite: a copy of borrowed host memory is pending, and the driver refuses to wait for it: {error}\n\
         the process is aborted: it would go on with memory that the device still uses"
    );
    std::process::abort()
}

//! Resolution of stream handles, including the default streams, and the per-thread default streams.

use std::cell::RefCell;
use std::sync::Arc;

use super::capture_state;
use super::{STREAMS, Stream, StreamKind};
use crate::driver::context::green::Green;
use crate::driver::context::{self, StackEntry};
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::because;

/// `CU_STREAM_LEGACY`.
const LEGACY_HANDLE: u64 = 1;
/// `CU_STREAM_PER_THREAD`.
pub(crate) const PER_THREAD_HANDLE: u64 = 2;
/// A thread's default streams, one per context.
struct ThreadStreams(Vec<Arc<Stream>>);
impl Drop for ThreadStreams {
    fn drop(&mut self) {
        for stream in &self.0 {
            capture_state::stream_ends(stream);
            stream.abandon();
        }
    }
}

thread_local! {
    static PER_THREAD: RefCell<ThreadStreams> = const { RefCell::new(ThreadStreams(Vec::new())) };
}

fn per_thread_stream(StackEntry { context, green }: &StackEntry) -> Res<Arc<Stream>> {
    let id = |green: Option<&Arc<Green>>| green.map(|g| g.id);
    PER_THREAD
        .try_with(|streams| {
            let mut streams = streams.borrow_mut();
            streams
                .0
                .retain(|s| s.context.is_active() && !s.is_abandoned());
            let own = |s: &&Arc<Stream>| {
                s.context.id == context.id && id(s.green()) == id(green.as_ref())
            };
            if let Some(s) = streams.0.iter().find(own) {
                return s.clone();
            }
            let made = match green {
                Some(green) => Stream::of_green(green, StreamKind::PerThread, 0),
                None => Stream::default_of(context, StreamKind::PerThread),
            };
            streams.0.push(made.clone());
            made
        })
        .map_err(|_| Code::DEINITIALIZED)
}

/// Resolves a stream handle for work that cannot be captured, and for waits. `per_thread` selects the default stream of
/// a null handle.
///
/// # Errors
/// Those of [`look_up`]; `STREAM_CAPTURE_UNSUPPORTED` for a capturing stream, `STREAM_CAPTURE_IMPLICIT` for the legacy
/// stream while a stream that it synchronises with is capturing. Both invalidate the capture.
pub(crate) fn resolve(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    let stream = look_up(handle, per_thread)?;
    capture_state::refuse(&stream)?;
    Ok(stream)
}

/// Resolves a stream handle for work that can be captured; the caller checks [`capture_state::is_capturing`].
///
/// # Errors
/// Those of [`look_up`]; `STREAM_CAPTURE_IMPLICIT` for the legacy stream while a stream that it synchronises with is
/// capturing.
pub(crate) fn resolve_for_capture(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    let stream = look_up(handle, per_thread)?;
    capture_state::refuse_implicit(&stream)?;
    Ok(stream)
}

/// Resolves a stream handle for queries of the stream itself. `per_thread` selects the default stream of a null handle.
///
/// # Errors
/// `INVALID_HANDLE` for an invalid handle, `INVALID_CONTEXT` for a default stream without a current context, the sticky
/// error of a failed context.
pub(crate) fn look_up(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    let stream = find(handle, per_thread)?;
    stream.context.check()?;
    Ok(stream)
}

/// Resolves the stream handle of a wait, as [`resolve`] does. The context may have failed: the wait ends when the work
/// of the stream has, and returns the sticky error.
pub(crate) fn resolve_to_wait(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    let stream = find(handle, per_thread)?;
    capture_state::refuse(&stream)?;
    Ok(stream)
}

/// The stream of a handle, in a context that is active but may have failed.
fn find(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    match handle {
        0 if per_thread => per_thread_stream(&context::current_to_wait()?),
        0 | LEGACY_HANDLE => {
            let entry = context::current_to_wait()?;
            Ok(match &entry.green {
                Some(green) => green.default_stream(),
                None => entry.context.legacy_stream(),
            })
        }
        PER_THREAD_HANDLE => per_thread_stream(&context::current_to_wait()?),
        _ => {
            let stream = STREAMS.get(handle)?;
            if stream.green().is_some_and(|g| !g.is_active()) {
                return Err(because(Code::STREAM_DETACHED, || {
                    "the green context of the stream is destroyed".into()
                }));
            }
            stream.context.check_active()?;
            Ok(stream)
        }
    }
}

/// Invalidates the stream handles of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    STREAMS.remove_where(|s| {
        let removed = s.context.id == context;
        if removed {
            capture_state::stream_ends(s);
            s.abandon();
        }
        removed
    });
}

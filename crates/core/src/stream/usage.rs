//! The streams that use an allocation.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::context::capture_mode::RelaxedCapture;
use crate::stream::Stream;
use crate::stream::capture::is_capturing;

/// The streams whose work uses an allocation, and the stream that frees it.
///
/// Streams are kept until the memory is freed. Beyond a threshold, idle streams without other owners are dropped: see
/// [`StreamUsage::add`].
#[derive(Debug)]
pub struct StreamUsage {
    stream: Stream,
    /// The number of the thread, if `stream` is its per-thread default stream; else 0.
    thread: u64,
    /// `None` until there is one: most allocations are used by one stream only, and stay smaller.
    others: Mutex<Option<Box<OtherStreams>>>,
}

#[derive(Debug)]
struct OtherStreams {
    streams: Vec<Stream>,
    /// Length at which idle streams are pruned.
    limit: usize,
}

/// Smallest length at which idle streams are pruned.
const FEW: usize = 8;

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl std::panic::RefUnwindSafe for StreamUsage {}

impl StreamUsage {
    /// A new allocation, freed in stream order on `stream`.
    #[inline(always)]
    pub fn new(stream: Stream) -> StreamUsage {
        // Computed first: nothing can fail after it, which lets the compiler build the value in place.
        let thread = thread_of(&stream);
        StreamUsage {
            thread,
            stream,
            others: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<OtherStreams>>> {
        // Held for a few instructions that do not panic.
        self.others.lock()
    }

    /// The stream that frees the memory.
    #[inline]
    pub fn deallocation_stream(&self) -> &Stream {
        &self.stream
    }

    /// Sets the stream that frees the memory, which first waits for the former one.
    pub fn set_deallocation_stream(&mut self, stream: &Stream) {
        let thread = thread_of(stream);
        if stream.handle() != self.stream.handle() || thread != self.thread {
            let before = self.deallocation_stream_here();
            self.stream = stream.clone();
            self.thread = thread;
            self.add(&before);
        }
    }

    /// Replaces a stream that was only a default choice: the new one does not wait for it.
    pub fn replace_deallocation_stream(&mut self, stream: &Stream) {
        self.stream = stream.clone();
        self.thread = thread_of(stream);
    }

    /// The stream that frees the memory, as seen from the calling thread. The per-thread default stream of another
    /// thread cannot be named here; the legacy default stream, which waits for all of them, takes its place.
    fn deallocation_stream_here(&self) -> Stream {
        if self.thread == thread_of(&self.stream) {
            self.stream.clone()
        } else {
            Stream::legacy_default()
        }
    }

    /// Adds a stream whose work uses the memory. A default stream belongs to the memory's device unless it is bound to
    /// another one ([`Stream::on_device`]). Returns true if the list is so long that the streams of
    /// [`StreamUsage::unshared_streams`] should be pruned.
    pub fn add(&self, stream: &Stream) -> bool {
        let thread = thread_of(stream);
        if *stream == self.stream && thread == self.thread {
            return false;
        }
        let mut others = self.lock();
        let others = others.get_or_insert_with(|| {
            Box::new(OtherStreams {
                streams: Vec::new(),
                limit: FEW,
            })
        });
        let of_thread = thread != 0;
        let legacy;
        let stream = if of_thread {
            // The thread may have ended when the memory is freed: see `deallocation_stream_here`.
            let named = Stream::legacy_default();
            legacy = match stream.default_device() {
                Some(device) => named.on_device(device),
                None => named,
            };
            &legacy
        } else {
            stream
        };
        if !others.streams.contains(stream) {
            others.streams.push(stream.clone());
        }
        others.streams.len() > others.limit
    }

    /// Clones of the streams that only this list owns, for [`StreamUsage::retain_idle`].
    pub fn unshared_streams(&self) -> Vec<Stream> {
        let unshared_streams = |stream: &&Stream| !stream.is_default() && stream.clone_count() == 1;
        self.lock()
            .iter()
            .flat_map(|others| &others.streams)
            .filter(unshared_streams)
            .cloned()
            .collect()
    }

    /// Keeps the idle streams, for [`StreamUsage::remove_idle`]. Calls the driver: do not hold a lock.
    pub fn retain_idle(mut streams: Vec<Stream>) -> Vec<Stream> {
        if streams.is_empty() {
            return streams;
        }
        // The program did not request these queries, so they must not invalidate a capture.
        let _relaxed = RelaxedCapture::enter();
        // Querying a captured stream invalidates the capture.
        streams.retain(|stream| {
            matches!(is_capturing(stream), Ok(false)) && matches!(stream.is_done(), Ok(true))
        });
        streams
    }

    /// Removes idle streams that only this list and `idle` own. Dropping the result and `idle` destroys them.
    #[must_use = "dropping them destroys streams, which should not happen under a lock"]
    pub fn remove_idle(&self, idle: &[Stream]) -> Vec<Stream> {
        let mut others = self.lock();
        let Some(others) = others.as_mut() else {
            return Vec::new();
        };
        // One clone belongs to the list, one to the caller.
        let (removed, kept): (Vec<Stream>, Vec<Stream>) = std::mem::take(&mut others.streams)
            .into_iter()
            .partition(|stream| {
                stream.clone_count() == 2 && idle.iter().any(|o| o.handle() == stream.handle())
            });
        others.limit = FEW.max(2 * kept.len());
        others.streams = kept;
        removed
    }

    /// [`StreamUsage::add`], and prunes idle streams of a long list.
    pub fn add_and_prune(&self, stream: &Stream) {
        if self.add(stream) {
            let idle = StreamUsage::retain_idle(self.unshared_streams());
            drop(self.remove_idle(&idle));
        }
    }

    /// Takes out the streams that the deallocation stream has to wait for.
    pub fn take_other_streams(&mut self) -> Vec<Stream> {
        let others = self.others.get_mut();
        let mut streams = others.take().map_or_else(Vec::new, |others| others.streams);
        if self.thread != thread_of(&self.stream) {
            streams.push(self.deallocation_stream_here());
        }
        streams
    }

    /// All streams: the caller decides where their last clones are dropped.
    pub fn into_streams(mut self) -> Vec<Stream> {
        let mut streams = self.take_other_streams();
        streams.push(self.stream);
        streams
    }

    /// Whether only the deallocation stream uses the memory, and this crate owns it or it is a default stream.
    #[inline]
    pub fn is_exclusive_and_not_foreign(&mut self) -> bool {
        self.is_exclusive() && !self.stream.is_foreign()
    }

    /// Whether there is only a deallocation stream that this crate owns, and not even an empty list of others: nothing
    /// else is owned then.
    #[inline(always)]
    pub(crate) fn is_single_owned_stream(&mut self) -> bool {
        let others = self.others.get_mut();
        // An owned stream is no default stream, so `thread` is 0.
        others.is_none() && self.stream.is_owned()
    }

    /// Whether the deallocation stream has no others to wait for.
    #[inline]
    pub fn is_exclusive(&mut self) -> bool {
        let others = self.others.get_mut();
        others
            .as_ref()
            .is_none_or(|others| others.streams.is_empty())
            && self.thread == thread_of(&self.stream)
    }

    /// Whether the deallocation stream has others to wait for.
    pub fn has_other_streams(&self) -> bool {
        let others = self.lock();
        self.thread != thread_of(&self.stream)
            || others
                .as_ref()
                .is_some_and(|others| !others.streams.is_empty())
    }

    /// All streams whose work uses the memory, the deallocation stream last.
    pub fn streams(&self) -> Vec<Stream> {
        let known = self.lock().as_ref().map(|others| others.streams.clone());
        let mut streams = known.unwrap_or_default();
        streams.push(self.deallocation_stream_here());
        streams
    }
}

/// A number for the calling thread if `stream` is the per-thread default stream; else 0.
#[inline]
fn thread_of(stream: &Stream) -> u64 {
    if !stream.is_per_thread() {
        return 0;
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

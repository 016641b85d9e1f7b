//! The streams whose work a piece of memory must outlive.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::CUdeviceptr;

use crate::context::capture_mode::RelaxedCapture;
use crate::context::device::Device;
use crate::error::report;
use crate::memory::copy::pointer_info;
use crate::memory::raw::{is_capturing, wait_before_end};
use crate::stream::Stream;

/// The streams whose work uses a piece of memory, and the one that frees it.
///
/// Streams are kept until the memory is freed. Those that nobody else has any more are let go of once their work is done,
/// when there are many: see [`StreamUsage::add`].
#[derive(Debug)]
pub struct StreamUsage {
    stream: Stream,
    /// Whose per-thread default stream is meant, where `stream` is that; else 0.
    thread: u64,
    /// None until there is one: most memory has one stream all its life, and is smaller for it.
    others: Mutex<Option<Box<Others>>>,
}

#[derive(Debug)]
struct Others {
    streams: Vec<Stream>,
    /// How many there may be before those that are done are looked for.
    limit: usize,
}

/// As many streams are never looked through.
const FEW: usize = 8;

impl StreamUsage {
    /// Memory that nobody uses yet, freed in the order of `stream`.
    #[inline(always)]
    pub fn new(stream: Stream) -> StreamUsage {
        // First: nothing can fail any more while the value is put together, which lets the compiler do that in its place.
        let thread = thread_of(&stream);
        StreamUsage {
            thread,
            stream,
            others: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Others>>> {
        // Held for a few instructions that do not panic.
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream that frees the memory.
    #[inline]
    pub fn deallocation_stream(&self) -> &Stream {
        &self.stream
    }

    /// Has another stream free the memory, after the work of the one set before.
    pub fn set_deallocation_stream(&mut self, stream: &Stream) {
        let thread = thread_of(stream);
        if stream.handle() != self.stream.handle() || thread != self.thread {
            let before = self.own();
            self.stream = stream.clone();
            self.thread = thread;
            self.add(&before);
        }
    }

    /// As [`StreamUsage::set_deallocation_stream`], where the one set before was only taken for want of another.
    pub fn replace_deallocation_stream(&mut self, stream: &Stream) {
        self.stream = stream.clone();
        self.thread = thread_of(stream);
    }

    /// The stream that frees the memory, as it means something to this thread: where it is the per-thread default stream of
    /// another thread, which cannot be named here, it is the legacy one, that waits for all of them.
    fn own(&self) -> Stream {
        if self.thread == thread_of(&self.stream) {
            self.stream.clone()
        } else {
            Stream::legacy_default()
        }
    }

    /// Notes that work of `stream` uses the memory. A default stream is that of the memory's device, unless it says of which
    /// it is ([`Stream::on_device`]). True where there are so many streams by now that [`StreamUsage::unshared_streams`] is
    /// worth a look.
    pub fn add(&self, stream: &Stream) -> bool {
        let thread = thread_of(stream);
        if *stream == self.stream && thread == self.thread {
            return false;
        }
        let mut others = self.lock();
        let others = others.get_or_insert_with(|| {
            Box::new(Others {
                streams: Vec::new(),
                limit: FEW,
            })
        });
        let of_thread = thread != 0;
        let legacy;
        let stream = if of_thread {
            // By the time that the memory is freed that may be another thread's business: see `own`.
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

    /// Clones of the streams that nobody but this list has, for [`StreamUsage::retain_idle`].
    pub fn unshared_streams(&self) -> Vec<Stream> {
        let unshared_streams = |stream: &&Stream| !stream.is_default() && stream.clones() == 1;
        self.lock()
            .iter()
            .flat_map(|others| &others.streams)
            .filter(unshared_streams)
            .cloned()
            .collect()
    }

    /// Those of some streams whose work is done, for [`StreamUsage::remove_idle`]. It asks the driver: hold no lock meanwhile.
    pub fn retain_idle(mut streams: Vec<Stream>) -> Vec<Stream> {
        if streams.is_empty() {
            return streams;
        }
        // Nobody asked for this: another stream's capture goes on.
        let _relaxed = RelaxedCapture::enter();
        // A stream that is being captured must not be asked.
        streams.retain(|stream| {
            matches!(is_capturing(stream), Ok(false)) && matches!(stream.is_done(), Ok(true))
        });
        streams
    }

    /// Lets go of streams that [`StreamUsage::retain_idle`] found, where still nobody else has them. Dropping the result, and what was
    /// given, destroys them.
    #[must_use = "dropping them destroys streams, which should not happen under a lock"]
    pub fn remove_idle(&self, idle: &[Stream]) -> Vec<Stream> {
        let mut others = self.lock();
        let Some(others) = others.as_mut() else {
            return Vec::new();
        };
        // One clone is the list's, one the caller's.
        let (gone, kept): (Vec<Stream>, Vec<Stream>) = std::mem::take(&mut others.streams)
            .into_iter()
            .partition(|stream| {
                stream.clones() == 2 && idle.iter().any(|o| o.handle() == stream.handle())
            });
        others.limit = FEW.max(2 * kept.len());
        others.streams = kept;
        gone
    }

    /// As [`StreamUsage::add`], and lets go of streams that are done where there are many.
    pub fn add_and_prune(&self, stream: &Stream) {
        if self.add(stream) {
            let idle = StreamUsage::retain_idle(self.unshared_streams());
            drop(self.remove_idle(&idle));
        }
    }

    /// The streams that the freeing one has to wait for, taken out.
    pub fn take_other_streams(&mut self) -> Vec<Stream> {
        let others = self
            .others
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut streams = others.take().map_or_else(Vec::new, |others| others.streams);
        if self.thread != thread_of(&self.stream) {
            streams.push(self.own());
        }
        streams
    }

    /// All streams, for who chooses where the last clones of them end.
    pub fn into_streams(mut self) -> Vec<Stream> {
        let mut streams = self.take_other_streams();
        streams.push(self.stream);
        streams
    }

    /// Whether nothing but the freeing stream, which is the crate's own or a default one, is known to use the memory.
    #[inline]
    pub fn is_exclusive_and_not_foreign(&mut self) -> bool {
        self.is_exclusive() && !self.stream.is_foreign()
    }

    /// Whether there is the freeing stream alone, of this crate's making, without so much as a list for others: beside it
    /// nothing is owned then.
    #[inline(always)]
    pub(crate) fn is_single_owned_stream(&mut self) -> bool {
        let others = self
            .others
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // A stream of this crate's is no default one, so that no thread is meant.
        others.is_none() && self.stream.is_owned()
    }

    /// Whether the freeing stream has nobody to wait for.
    #[inline]
    pub fn is_exclusive(&mut self) -> bool {
        let others = self
            .others
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        others
            .as_ref()
            .is_none_or(|others| others.streams.is_empty())
            && self.thread == thread_of(&self.stream)
    }

    /// Whether the freeing stream has others to wait for.
    pub fn has_other_streams(&self) -> bool {
        let others = self.lock();
        self.thread != thread_of(&self.stream)
            || others
                .as_ref()
                .is_some_and(|others| !others.streams.is_empty())
    }

    /// Makes the freeing stream wait for the others, which are let go of; `address` is the memory's. What fails goes to
    /// `log`: memory is freed in any case.
    pub fn order_free_after_others(&mut self, address: CUdeviceptr) {
        let others = self.take_other_streams();
        let ordered = || {
            // A default stream is one of the current context, which has to be one of the memory's device.
            let _entered = if others.iter().chain([&self.stream]).any(Stream::is_default) {
                let device = match pointer_info(address)?.device {
                    Some(ordinal) => Device::new(ordinal)?,
                    None => Device::current()?,
                };
                Some(device.enter()?.0)
            } else {
                None
            };
            wait_before_end(&self.stream, &others)
        };
        report(ordered());
    }

    /// All streams whose work uses the memory, the freeing one last.
    pub fn streams(&self) -> Vec<Stream> {
        let known = self.lock().as_ref().map(|others| others.streams.clone());
        let mut streams = known.unwrap_or_default();
        streams.push(self.own());
        streams
    }
}

/// A number for the calling thread where `stream` is the per-thread default stream; else 0.
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

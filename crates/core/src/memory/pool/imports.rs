//! The allocations imported from the pool of another process.

use std::collections::HashMap;

use cupyrite_sys::driver::{CUdeviceptr, CUmemPoolPtrExportData, CUmemoryPool};
use parking_lot::{Mutex, MutexGuard};

use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Result, driver, report};
use crate::memory::copy::free_async;
use crate::memory::pool::pending_frees::PendingFrees;
use crate::stream::Stream;
use crate::stream::capture::{is_capturing, wait_for_streams};
use crate::stream::event::Event;

/// Allocations imported from a pool. Each is imported once, however many buffers refer to it: drivers do not count
/// imports.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    state: Mutex<ImportTable>,
    /// Frees that may be pending.
    frees: PendingFrees,
}

#[derive(Debug, Default)]
struct ImportTable {
    addresses: HashMap<[u8; 64], CUdeviceptr>,
    live: HashMap<CUdeviceptr, Import>,
}

#[derive(Debug)]
struct Import {
    bytes: [u8; 64],
    buffers: usize,
    /// Streams on which all buffers but the last were freed.
    streams: Vec<Stream>,
    /// Length at which idle streams are pruned.
    limit: usize,
}

/// Smallest length at which idle streams are pruned.
const FEW: usize = 8;

impl Import {
    /// Records a stream on which a buffer was freed. Returns idle streams; dropping them may destroy them.
    fn freed_on(&mut self, stream: &Stream) -> Vec<Stream> {
        if self.streams.contains(stream) {
            return Vec::new();
        }
        let mut removed = Vec::new();
        if self.streams.len() >= self.limit {
            let _relaxed = RelaxedCapture::enter();
            // Default streams belong to some context and borrowed ones may be destroyed: neither is queried.
            let is_done = |stream: &Stream| {
                stream.is_owned()
                    && matches!(is_capturing(stream), Ok(false))
                    && matches!(stream.is_done(), Ok(true))
            };
            let streams = std::mem::take(&mut self.streams);
            (removed, self.streams) = streams.into_iter().partition(is_done);
            self.limit = FEW.max(2 * self.streams.len());
        }
        self.streams.push(stream.clone());
        removed
    }
}

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl std::panic::RefUnwindSafe for Imports {}

impl Imports {
    // Held across the driver's import, queries and free, which neither wait for work nor call back, so that no thread
    // imports what another one frees.
    fn lock(&self) -> MutexGuard<'_, ImportTable> {
        self.state.lock()
    }

    pub(crate) fn add(&self, pool: CUmemoryPool, bytes: &[u8; 64]) -> Result<CUdeviceptr> {
        let mut state = self.lock();
        if let Some(&address) = state.addresses.get(bytes)
            && let Some(import) = state.live.get_mut(&address)
        {
            import.buffers += 1;
            return Ok(address);
        }
        let address = import_pointer(pool, bytes)?;
        state.addresses.insert(*bytes, address);
        let import = Import {
            bytes: *bytes,
            buffers: 1,
            streams: Vec::new(),
            limit: FEW,
        };
        state.live.insert(address, import);
        Ok(address)
    }

    /// Frees the memory with its last buffer, after what the streams held that the others were freed on.
    pub(crate) fn release(&self, address: CUdeviceptr, stream: &Stream) -> Result<()> {
        let mut state = self.lock();
        let streams = match state.live.get_mut(&address) {
            Some(import) if import.buffers > 1 => {
                import.buffers -= 1;
                let removed = import.freed_on(stream);
                drop(state);
                drop(removed);
                return Ok(());
            }
            Some(_) => state.live.remove(&address).map(|import| {
                state.addresses.remove(&import.bytes);
                import.streams
            }),
            None => None,
        };
        let streams = streams.unwrap_or_default();
        // Memory can be dropped anywhere; freeing it is refused while this thread captures, or another one globally.
        let relaxed = RelaxedCapture::enter();
        // A captured stream cannot wait for uncaptured work, and trying it invalidates the capture; it frees nothing,
        // either.
        let can_wait = matches!(is_capturing(stream), Ok(false));
        if can_wait {
            report(wait_for_streams(stream, &streams));
        }
        // SAFETY: the last buffer of the memory is being dropped.
        let done = unsafe { free_async(address, stream) };
        drop(state);
        if can_wait && done.is_ok() {
            self.frees.record(stream);
        }
        // Streams are dropped without the lock and in the thread's own mode: their owners may be dropped with them.
        drop(relaxed);
        drop(streams);
        done
    }

    /// The events of all pending frees, for [`deferred_destroy`](crate::memory::pool::deferred_destroy); no buffer is
    /// left.
    pub(crate) fn into_pending_frees(self) -> Vec<Event> {
        self.frees.into_events()
    }
}

fn import_pointer(pool: CUmemoryPool, bytes: &[u8; 64]) -> Result<CUdeviceptr> {
    let mut address: CUdeviceptr = 0;
    let mut data = CUmemPoolPtrExportData { reserved: *bytes };
    // SAFETY: `address` is valid for writes, the handle is live, and the driver validates the bytes.
    unsafe { driver!(cuMemPoolImportPointer(&mut address, pool, &mut data))? };
    Ok(address)
}

//! Deferred destruction of memory pools.
//!
//! `cuMemPoolDestroy` may be called at any time: a pool with pending frees is documented to be destroyed "once there
//! are no more outstanding allocations". NVIDIA's driver 580 violates this.
//!
//! - A pool of this process: if two streams have pending frees when the pool is destroyed, the driver uses the pool
//!   after its destruction. It crashes when one of the streams is destroyed, hangs when a library is unloaded, or
//!   leaks the memory. The calls alone, in one thread, show it within seconds when several processes share the GPU.
//! - A pool of another process: destroyed before the host has waited for its pending frees, it leaks device memory (32
//!   MiB per pool on an H200) until the importing process exits. It is not enough that the frees are done: of pools
//!   destroyed after `cuEventQuery` had reported every stream done, half leaked; none leaked after a wait for the
//!   streams, the context or an event after each free, not even if these events were done already. A pool that is
//!   never destroyed leaks as well.
//!
//! So a pool is destroyed once its memory is free. How that is detected depends on its origin ([`Origin`]):
//!
//! - For a pool of this process the driver reports the reserved memory (`CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`),
//!   which, unlike the used memory, includes pending frees.
//! - The driver does not report it for imported pools (`CUDA_ERROR_INVALID_VALUE`). An event is recorded after each
//!   free ([`pending_frees`]). Once an event is done, the host waits for it, which returns at once; after all events
//!   the pool can be destroyed.
//!
//! A pool with pending frees is deferred; one of this process gets a release threshold of 0, so that the driver
//! releases its memory as soon as a stream, an event or a context is synchronised. Deferred pools are checked after
//! each such wait, and whenever a pool is created or imported. Nothing blocks.
//!
//! Events in contexts that their owner may destroy are not kept (`Context::is_permanent`): frees there count as done,
//! and defer no pool.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUmemPool_attribute, CUmemoryPool, CUresult};
use parking_lot::{Mutex, MutexGuard};

use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::memory::pool::options::PoolKind;
use crate::memory::pool::pending_frees;
use crate::stream::event::Event;
use crate::synchronization::{self, HookOwner, Synchronized};

/// The origin of a pool, which determines how its pending frees are detected.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Created by this process: the driver reports its memory.
    Local(PoolKind),
    /// Imported from another process: the events of [`pending_frees`].
    Imported(Vec<Event>),
}

/// A pool without owners.
#[derive(Debug)]
struct RetiredPool {
    handle: CUmemoryPool,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    origin: Origin,
    generation: ForkGeneration,
    /// Number of failed attempts to destroy it.
    tries: u32,
    /// Number of scans to skip before the next attempt. Memory that the program allocated from the pool by driver
    /// calls may never be freed.
    rests: u32,
}

// SAFETY: pool handles may be used from any thread; they are only ever passed to the driver.
unsafe impl Send for RetiredPool {}

/// Pools that wait for their destruction.
struct DeferredPools {
    pools: Vec<RetiredPool>,
    /// A thread has taken pools out, and calls the driver.
    scanning: bool,
    /// Another thread requested a scan meanwhile.
    again: bool,
}

static DEFERRED: Mutex<DeferredPools> = Mutex::new(DeferredPools {
    pools: Vec::new(),
    scanning: false,
    again: false,
});
/// Number of deferred pools, including those taken out by a scan.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Attempts after which the back-off stops growing: it skips one scan less than 2 to this power.
const MAX_TRIES: u32 = 5;

/// The pools to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Those whose back-off has expired.
    Due,
    /// All of them.
    All,
}

// Held for a few instructions that do not panic.
fn deferred() -> MutexGuard<'static, DeferredPools> {
    DEFERRED.lock()
}

/// Destroys a pool without owners, now or later. Pending frees defer it; an allocation of a pool of this process that
/// is never freed defers it forever.
///
/// # Safety
///
/// The handle is live or destroyed by the program, of this origin and epoch, and only this function destroys it.
pub(crate) unsafe fn destroy_or_defer(handle: CUmemoryPool, created: u32, origin: Origin) {
    let _relaxed = RelaxedCapture::enter();
    let mut pool = RetiredPool {
        handle,
        created,
        origin,
        generation: ForkGeneration::current(),
        tries: 0,
        rests: 0,
    };
    if !pool.try_destroy() {
        pool.retire();
        synchronization::set_hook(HookOwner::Pools, |waited| {
            destroy_ready(match waited {
                Synchronized::StreamOrEvent => Scan::Due,
                Synchronized::Context { .. } => Scan::All,
            });
        });
        COUNT.fetch_add(1, Ordering::Relaxed);
        deferred().pools.push(pool);
    }
}

/// Destroys the deferred pools that have no pending frees left. Called after the host has waited for work, when the
/// driver releases memory.
#[inline]
pub(crate) fn destroy_ready(which: Scan) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        scan(which);
    }
}

/// Number of pools whose destruction is deferred because of pending frees. For tests and diagnostics.
pub fn deferred_pool_count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

#[cold]
#[inline(never)]
fn scan(mut which: Scan) {
    // Once more if another thread came meanwhile; later requests are left to the next scan.
    for _ in 0..2 {
        let mut due = {
            let mut deferred = deferred();
            if deferred.scanning {
                // The wait of this thread may have released memory after the other thread's check.
                deferred.again = true;
                return;
            }
            if std::mem::take(&mut deferred.again) {
                which = Scan::All;
            }
            let due = deferred.take(which);
            if due.is_empty() {
                return;
            }
            deferred.scanning = true;
            due
        };
        let before = due.len();
        {
            let _relaxed = RelaxedCapture::enter();
            // In a forked child they are the parent's, and only forgotten.
            due.retain_mut(|pool| pool.generation.is_current() && !pool.retry());
        }
        COUNT.fetch_sub(before - due.len(), Ordering::Relaxed);
        let mut deferred = deferred();
        deferred.pools.append(&mut due);
        deferred.scanning = false;
        if !deferred.again {
            return;
        }
    }
}

impl DeferredPools {
    fn take(&mut self, which: Scan) -> Vec<RetiredPool> {
        let mut due = Vec::new();
        let (mut all, mut at) = (std::mem::take(&mut self.pools), 0);
        while at < all.len() {
            let pool = &mut all[at];
            if pool.rests == 0 || which == Scan::All {
                due.push(all.swap_remove(at));
            } else {
                pool.rests -= 1;
                at += 1;
            }
        }
        self.pools = all;
        due
    }
}

impl RetiredPool {
    /// Tries again; returns whether the pool is destroyed.
    fn retry(&mut self) -> bool {
        let destroyed = self.try_destroy();
        if !destroyed {
            self.tries = (self.tries + 1).min(MAX_TRIES);
            self.rests = (1 << self.tries) - 2;
        }
        destroyed
    }

    /// Destroys the pool if its memory is free; returns whether it did.
    fn try_destroy(&mut self) -> bool {
        let none = std::ptr::null_mut();
        if OwnedKind::MemoryPool.is_destroyed(self.handle, none, self.created) {
            return true;
        }
        let free = match &mut self.origin {
            Origin::Local(_) => self.is_empty(),
            Origin::Imported(events) => pending_frees::all_done(events),
        };
        if !free {
            return false;
        }
        // SAFETY: the handle is live and destroyed only here, as `destroy_or_defer` requires.
        match unsafe { driver!(owned cuMemPoolDestroy(self.handle)) } {
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                ..
            }) => false,
            done => {
                report(done);
                true
            }
        }
    }

    /// Whether the driver reports no memory for a pool of this process, or cannot report any.
    fn is_empty(&self) -> bool {
        type C = CUresult;
        match self.reserved() {
            Ok(left) => left == 0,
            // The driver does not support the query for this pool, or is shut down.
            Err(Error::Driver {
                status:
                    C::CUDA_ERROR_NOT_SUPPORTED
                    | C::CUDA_ERROR_INVALID_VALUE
                    | C::CUDA_ERROR_DEINITIALIZED,
                ..
            }) => true,
            // For example, a kernel has failed: the pending frees may never be done.
            Err(error) => {
                log::debug!("a pool that ends does not say what it has: {error}");
                false
            }
        }
    }

    /// Trims the pool and returns the bytes still reserved.
    fn reserved(&self) -> Result<u64> {
        let mut left = 0u64;
        let place = (&raw mut left).cast();
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the handle is live; the attribute has eight bytes.
        unsafe {
            driver!(cuMemPoolTrimTo(self.handle, 0))?;
            driver!(cuMemPoolGetAttribute(self.handle, attribute, place))?;
        }
        Ok(left)
    }

    /// Makes the driver release the memory of a pool of this process as soon as it is free, and allocate no more from
    /// it implicitly. Imported pools have no such attribute, and nothing is allocated from them.
    fn retire(&self) {
        let Origin::Local(kind) = self.origin else {
            return;
        };
        let mut none = 0u64;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let place = (&raw mut none).cast();
        // SAFETY: the handle is live; the driver reads eight bytes.
        report(unsafe { driver!(cuMemPoolSetAttribute(self.handle, attribute, place)) });
        // A destroyed pool must not be the current one of its location.
        if let Err(error) = self.replace(kind) {
            // Drivers before CUDA 13 have current pools for devices only.
            log::debug!("whether a pool that ends is a current one is not known: {error}");
        }
    }

    /// Replaces this pool by the location's default pool, if it is the location's current pool.
    fn replace(&self, kind: PoolKind) -> Result<()> {
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `pool` and `location` are valid for reads and writes; the last calls get handles from the driver.
        unsafe {
            if let PoolKind::Device(device) = kind {
                driver!(cuDeviceGetMemPool(&mut pool, device.handle()))?;
                if pool == self.handle {
                    driver!(cuDeviceGetDefaultMemPool(&mut pool, device.handle()))?;
                    driver!(cuDeviceSetMemPool(device.handle(), pool))?;
                }
            } else {
                let (sort, mut location) = kind.to_raw();
                driver!(cuMemGetMemPool(&mut pool, &mut location, sort))?;
                if pool == self.handle {
                    driver!(cuMemGetDefaultMemPool(&mut pool, &mut location, sort))?;
                    driver!(cuMemSetMemPool(&mut location, sort, pool))?;
                }
            }
        }
        Ok(())
    }
}

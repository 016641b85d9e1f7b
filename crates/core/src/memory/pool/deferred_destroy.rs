//! How pools end.
//!
//! `cuMemPoolDestroy` may be called at any time: a pool whose memory is still being freed in the order of some stream is to
//! go "once there are no more outstanding allocations". NVIDIA's driver 580 does not get that right.
//!
//! - A pool of this process: where two streams have freed memory of it and it is destroyed before they are through with that,
//!   the driver uses the pool after it is gone. It crashes when one of the streams ends, waits for ever when a library is
//!   unloaded, or keeps the memory. The calls alone, by one thread, show it within seconds when several processes share the
//!   GPU.
//! - A pool of another process: destroyed before the host has waited for the frees of its memory, it leaves memory of the
//!   device behind (32 MiB for each such pool on an H200) until the process that imported it ends. That the frees are done is
//!   not enough: of pools that were destroyed when `cuEventQuery` said that every stream was past them, half were left behind;
//!   of those whose host had waited for the streams, for an event behind each free or for the context, none, and a wait for
//!   events that were done already served as well. Nor may such a pool just be forgotten: then all of them are left behind.
//!
//! So a pool is destroyed when its memory is free. How that is known is another matter for either kind ([`Origin`]):
//!
//! - The driver says of a pool of this process what it has (`CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`, which counts what is yet
//!   to be freed, unlike the memory in use).
//! - It says nothing of an imported one (`CUDA_ERROR_INVALID_VALUE`). There an event is recorded behind each free
//!   ([`frees`]). When the driver says that one is done it is waited for, which returns at once, and when that was done with
//!   all of them the pool can go.
//!
//! Where the memory is not free the pool is kept aside, one of this process with a release threshold of 0: the driver gives
//! its memory back by itself as soon as a stream, an event or a context is waited for. After each such wait, and with each pool
//! that is made or imported, the pools kept aside are looked at again. Nothing waits.
//!
//! Events in contexts that somebody else may destroy are not kept (`Context::lasts`): imported memory that was freed there is
//! not known to be free, and no pool is kept aside for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::{CUmemPool_attribute, CUmemoryPool, CUresult};

use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::memory::pool::PoolKind;
use crate::memory::pool::pending_frees;
use crate::stream::event::Event;

/// Where a pool is from, and so what tells that its memory is free.
#[derive(Debug)]
pub(crate) enum Origin {
    /// This process made it: the driver tells.
    Made(PoolKind),
    /// Another process made it: what [`frees`] noted tells.
    Imported(Vec<Event>),
}

/// A pool that nobody has any more.
#[derive(Debug)]
struct Ended {
    handle: CUmemoryPool,
    origin: Origin,
    generation: ForkGeneration,
    /// How often it could not be destroyed.
    tries: u32,
    /// How many looks it is left out of before the next try. A pool may have memory that nobody will ever free: somebody
    /// took it by the driver's own calls.
    rests: u32,
}

// SAFETY: pool handles may be used from any thread; they are only ever passed to the driver.
unsafe impl Send for Ended {}

/// The pools that are kept aside.
struct Aside {
    pools: Vec<Ended>,
    /// Somebody has taken some of them out, and asks the driver.
    looking: bool,
    /// Somebody else came meanwhile.
    again: bool,
}

static ASIDE: Mutex<Aside> = Mutex::new(Aside {
    pools: Vec::new(),
    looking: false,
    again: false,
});
/// As many are kept aside, or looked at.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// After so many tries the rests do not get longer: they are one less than 2 to this power.
const MOST_TRIES: u32 = 5;

/// Which pools are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Those that have rested.
    Rested,
    /// All.
    All,
}

// Held for a few instructions that leave the lists whole.
fn aside() -> MutexGuard<'static, Aside> {
    ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a pool that nobody has any more, now or later. Memory of it may be yet to be freed in the order of streams; what was
/// taken from a pool of this process and is never freed keeps it aside for ever.
///
/// # Safety
///
/// The handle is live and of this origin, and nobody destroys it but this function.
pub(crate) unsafe fn end(handle: CUmemoryPool, origin: Origin) {
    let _relaxed = RelaxedCapture::enter();
    let mut pool = Ended {
        handle,
        origin,
        generation: ForkGeneration::current(),
        tries: 0,
        rests: 0,
    };
    if !pool.try_destroy() {
        pool.retire();
        COUNT.fetch_add(1, Ordering::Relaxed);
        aside().pools.push(pool);
    }
}

/// Destroys what was kept aside and can be destroyed now: called after the host has waited for some work, which is when the
/// driver notices that memory is free.
#[inline]
pub(crate) fn look(which: Look) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        look_again(which);
    }
}

/// How many pools have ended that could not be destroyed yet, because memory of theirs is still to be freed in the order of
/// a stream. For tests, and to look at.
pub fn deferred_pool_count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

#[cold]
#[inline(never)]
fn look_again(mut which: Look) {
    // A second time where somebody came meanwhile; what comes then is left to the next look.
    for _ in 0..2 {
        let mut due = {
            let mut aside = aside();
            if aside.looking {
                // What this thread has waited for may have freed what the other one was told of just before.
                aside.again = true;
                return;
            }
            if std::mem::take(&mut aside.again) {
                which = Look::All;
            }
            let due = aside.take(which);
            if due.is_empty() {
                return;
            }
            aside.looking = true;
            due
        };
        let before = due.len();
        {
            let _relaxed = RelaxedCapture::enter();
            // In a is_forked_child child they are the parent's, and only forgotten.
            due.retain_mut(|pool| pool.generation.is_current() && !pool.look());
        }
        COUNT.fetch_sub(before - due.len(), Ordering::Relaxed);
        let mut aside = aside();
        aside.pools.append(&mut due);
        aside.looking = false;
        if !aside.again {
            return;
        }
    }
}

impl Aside {
    fn take(&mut self, which: Look) -> Vec<Ended> {
        let mut due = Vec::new();
        let (mut all, mut at) = (std::mem::take(&mut self.pools), 0);
        while at < all.len() {
            let pool = &mut all[at];
            if pool.rests == 0 || which == Look::All {
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

impl Ended {
    /// Whether it is destroyed now.
    fn look(&mut self) -> bool {
        let gone = self.try_destroy();
        if !gone {
            self.tries = (self.tries + 1).min(MOST_TRIES);
            self.rests = (1 << self.tries) - 2;
        }
        gone
    }

    /// Destroys the pool if its memory is free; whether it is gone.
    fn try_destroy(&mut self) -> bool {
        let free = match &mut self.origin {
            Origin::Made(_) => self.is_empty(),
            Origin::Imported(events) => pending_frees::all_done(events),
        };
        if !free {
            return false;
        }
        // SAFETY: the handle is live, and destroyed here alone, as `end` was promised.
        match unsafe { driver!(cuMemPoolDestroy(self.handle)) } {
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

    /// Whether the driver says that a pool of this process has no memory, or will never say more.
    fn is_empty(&self) -> bool {
        type C = CUresult;
        match self.reserved() {
            Ok(left) => left == 0,
            // It does not know this of such a pool, or is over: nothing better can be done.
            Err(Error::Driver {
                status:
                    C::CUDA_ERROR_NOT_SUPPORTED
                    | C::CUDA_ERROR_INVALID_VALUE
                    | C::CUDA_ERROR_DEINITIALIZED,
                ..
            }) => true,
            // A kernel has failed, for one: what is yet to be freed may never be.
            Err(error) => {
                log::debug!("a pool that ends does not say what it has: {error}");
                false
            }
        }
    }

    /// Gives back what can be given back; the bytes that are left.
    fn reserved(&self) -> Result<u64> {
        let mut left = 0u64;
        let place = (&raw mut left).cast();
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the handle is live; eight bytes are what the attribute needs.
        unsafe {
            driver!(cuMemPoolTrimTo(self.handle, 0))?;
            driver!(cuMemPoolGetAttribute(self.handle, attribute, place))?;
        }
        Ok(left)
    }

    /// For a pool of this process, has the driver give the memory back as soon as it is free, and allocate no more of it by
    /// itself. An imported one has no such attribute, and nothing is allocated from it.
    fn retire(&self) {
        let Origin::Made(kind) = self.origin else {
            return;
        };
        let mut none = 0u64;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let place = (&raw mut none).cast();
        // SAFETY: the handle is live; the driver reads eight bytes.
        report(unsafe { driver!(cuMemPoolSetAttribute(self.handle, attribute, place)) });
        // A pool that is destroyed is not the current one of its place any more.
        if let Err(error) = self.replace(kind) {
            // Drivers before CUDA 13 have current pools of devices only.
            log::debug!("whether a pool that ends is a current one is not known: {error}");
        }
    }

    /// Puts the place's default pool in the place of this one, where this is what is allocated from when none is named.
    fn replace(&self, kind: PoolKind) -> Result<()> {
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `pool` and `location` are valid places; the last calls are given what the driver said.
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

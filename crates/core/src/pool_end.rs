//! How pools end.
//!
//! `cuMemPoolDestroy` may be called at any time: a pool whose memory is still being freed in the order of some stream is to
//! go "once there are no more outstanding allocations". NVIDIA's driver 580 does not get that right. Where two streams have
//! freed memory of the pool and the pool is destroyed before they are through with it, the driver uses the pool after it is
//! gone: it crashes when one of the streams ends, waits for ever when a library is unloaded, or keeps the memory. The calls
//! alone, by one thread, show it within seconds when several processes share the GPU.
//!
//! So a pool is destroyed when the driver says that it has no memory any more (`CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`, which
//! counts what is yet to be freed, unlike the memory in use). Where that is not so the pool is kept aside, with a release
//! threshold of 0: the driver gives its memory back by itself as soon as a stream, an event or a context is waited for.
//! After each such wait, and with each pool that is made or ends, the pools kept aside are looked at again. Nothing waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::{CUmemPool_attribute, CUmemoryPool, CUstreamCaptureMode};

use crate::birth::Birth;
use crate::device::Device;
use crate::error::{Result, driver, report};

/// A pool that nobody has any more.
#[derive(Debug)]
struct Ended {
    handle: CUmemoryPool,
    birth: Birth,
    /// How often it could not be destroyed.
    tries: u32,
    /// How often it is not looked at before the next try. A pool may have memory that nobody will ever free: somebody
    /// took it by the driver's own calls.
    rests: u32,
}

// SAFETY: pool handles may be used from any thread; they are only ever passed to the driver.
unsafe impl Send for Ended {}

static ENDED: Mutex<Vec<Ended>> = Mutex::new(Vec::new());
/// As many are kept aside.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The longest rest is 2 to this power.
const LONGEST_REST: u32 = 10;

// Held for a few instructions that leave the list whole.
fn ended() -> MutexGuard<'static, Vec<Ended>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a pool of this process that nobody has any more, now or later; no allocation of this crate's is left in it, though
/// some may be yet to be freed in the order of their streams.
///
/// # Safety
///
/// The handle is live, and nobody destroys it but this function. `device` is the device whose pool it may be.
pub(crate) unsafe fn end(handle: CUmemoryPool, device: Option<Device>) {
    let _relaxed = Relaxed::enter();
    let mut pool = Ended {
        handle,
        birth: Birth::now(),
        tries: 0,
        rests: 0,
    };
    if !pool.try_destroy() {
        pool.retire(device);
        let mut list = ended();
        list.push(pool);
        COUNT.store(list.len(), Ordering::Relaxed);
    }
}

/// Ends a pool of another process, of which nothing can be asked.
///
/// # Safety
///
/// As [`end`].
pub(crate) unsafe fn end_imported(handle: CUmemoryPool) {
    let _relaxed = Relaxed::enter();
    // SAFETY: the caller's promise.
    report(unsafe { driver!(cuMemPoolDestroy(handle)) });
}

/// Destroys what was kept aside and can be destroyed now: called after the host has waited for some work.
#[inline]
pub(crate) fn after_wait() {
    if COUNT.load(Ordering::Relaxed) != 0 {
        look_again();
    }
}

/// How many pools have ended that could not be destroyed yet, because memory of theirs is still to be freed in the order of
/// a stream. For tests, and to look at.
pub fn pools_kept_aside() -> usize {
    COUNT.load(Ordering::Relaxed)
}

#[cold]
#[inline(never)]
fn look_again() {
    // Another thread that comes meanwhile finds the list empty, which is well: the driver is asked once.
    let mut list = std::mem::take(&mut *ended());
    let relaxed = Relaxed::enter();
    // In a forked child they are the parent's, and only forgotten.
    list.retain_mut(|pool| pool.birth.is_here() && !pool.look());
    drop(relaxed);
    let mut now = ended();
    now.append(&mut list);
    COUNT.store(now.len(), Ordering::Relaxed);
}

impl Ended {
    /// Whether it is destroyed now.
    fn look(&mut self) -> bool {
        if self.rests > 0 {
            self.rests -= 1;
            return false;
        }
        let done = self.try_destroy();
        if !done {
            self.tries = (self.tries + 1).min(LONGEST_REST);
            self.rests = (1 << self.tries) - 2;
        }
        done
    }

    /// Destroys the pool if it has no memory left; whether it is gone.
    fn try_destroy(&mut self) -> bool {
        match self.reserved() {
            Ok(0) => {}
            Ok(_) => return false,
            // The driver is gone, or does not know this of such a pool. Nothing better can be done for it.
            Err(error) => log::debug!("a pool that ends does not say what it has: {error}"),
        }
        // SAFETY: the handle is live, and destroyed here alone, as `end` was promised.
        report(unsafe { driver!(cuMemPoolDestroy(self.handle)) });
        true
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

    /// Has the driver give the memory back as soon as it is free, and allocate no more of it by itself.
    fn retire(&self, device: Option<Device>) {
        let mut none = 0u64;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the handle is live; the driver reads eight bytes.
        report(unsafe {
            driver!(cuMemPoolSetAttribute(
                self.handle,
                attribute,
                (&raw mut none).cast()
            ))
        });
        // A pool that is destroyed is not the device's current one any more.
        if let Some(device) = device {
            report(self.replace(device));
        }
    }

    fn replace(&self, device: Device) -> Result<()> {
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `pool` is a valid place for the results; the last call is given what the driver said.
        unsafe {
            driver!(cuDeviceGetMemPool(&mut pool, device.handle()))?;
            if pool != self.handle {
                return Ok(());
            }
            driver!(cuDeviceGetDefaultMemPool(&mut pool, device.handle()))?;
            driver!(cuDeviceSetMemPool(device.handle(), pool))
        }
    }
}

/// While it lives, the calls of this thread do not count as parts of a capture. The driver refuses what is done here to a
/// thread that captures, or while another one captures globally, and spoils their capture; but a pool may end anywhere, by
/// Python's collector for one, and nothing of a graph depends on it.
struct Relaxed(Option<CUstreamCaptureMode>);

impl Relaxed {
    fn enter() -> Relaxed {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        Relaxed(exchange(mode).ok())
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mode) = self.0 {
            report(exchange(mode).map(drop));
        }
    }
}

/// Sets the thread's mode; gives the one before.
fn exchange(mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: a valid place, which is read and written.
    unsafe { driver!(cuThreadExchangeStreamCaptureMode(&mut mode))? };
    Ok(mode)
}

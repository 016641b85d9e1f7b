//! Memory pools: the default one of each device and those callers make. All take their memory from the same heap, so a
//! pool is its accounts and its settings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::checked::{get, non_null, put};
use super::errors::Code;
use super::handles::{HandleKind, Table, fresh_id, handle_of};
use super::queue::lock;
use super::{Res, device, entries, memory};
use crate::memory::Region;

static POOLS: Table<Pool> = Table::new(HandleKind::Pool);

struct Pool {
    id: u64,
    device: i32,
    is_default: bool,
    settings: Mutex<Settings>,
    /// Bytes of live allocations.
    used: AtomicU64,
}

#[derive(Clone, Copy)]
struct Settings {
    /// REUSE_FOLLOW_EVENT_DEPENDENCIES, ALLOW_OPPORTUNISTIC, ALLOW_INTERNAL_DEPENDENCIES.
    reuse: [u32; 3],
    release_threshold: u64,
    /// Highest use; reset by the caller.
    high: u64,
}

/// Which pool a region was allocated from, by region id.
static MEMBERS: Mutex<Option<HashMap<u64, Arc<Pool>>>> = Mutex::new(None);

fn new_pool(id: u64, device: i32, is_default: bool) -> Arc<Pool> {
    let settings = Mutex::new(Settings {
        reuse: [1; 3],
        release_threshold: 0,
        high: 0,
    });
    Arc::new(Pool {
        id,
        device,
        is_default,
        settings,
        used: AtomicU64::new(0),
    })
}

/// The default pool of a device; its handle is made known on first use.
fn default_pool(ordinal: i32) -> Res<u64> {
    let device = device::by_ordinal(ordinal)?;
    let handle = handle_of(HandleKind::Pool, device.default_pool);
    if POOLS.find(handle).is_none() {
        POOLS.insert(
            device.default_pool,
            new_pool(device.default_pool, ordinal, true),
        );
    }
    Ok(handle)
}

fn current_pool(ordinal: i32) -> Res<u64> {
    let set = *lock(&device::by_ordinal(ordinal)?.current_pool);
    if set != 0 && POOLS.find(set).is_some() {
        Ok(set)
    } else {
        default_pool(ordinal)
    }
}

/// Takes a freed region off its pool's account.
pub(super) fn leave(region: &Region) {
    if let Some(pool) = lock(&MEMBERS).get_or_insert_default().remove(&region.id) {
        pool.used.fetch_sub(region.size, Ordering::Relaxed);
    }
}

/// The pool handle of a region, zero if it came from none.
pub(super) fn pool_of(region: &Region) -> u64 {
    lock(&MEMBERS)
        .get_or_insert_default()
        .get(&region.id)
        .map_or(0, |p| handle_of(HandleKind::Pool, p.id))
}

/// The device a location names: type 1 is a device, its id follows.
fn located(location: u64) -> Res<i32> {
    let [kind, id] = get::<[u32; 2]>(location)?;
    if kind != 1 {
        return Err(Code::NOT_SUPPORTED);
    }
    device::by_ordinal(id as i32).map(|d| d.ordinal)
}

const PINNED: u32 = 1;

entries! {
    fn device_default_pool "cuDeviceGetDefaultMemPool" (out: u64, device: i32) {
        non_null(out)?;
        put(out, default_pool(device)?)
    }
    fn device_pool "cuDeviceGetMemPool" (out: u64, device: i32) {
        non_null(out)?;
        put(out, current_pool(device)?)
    }
    fn device_set_pool "cuDeviceSetMemPool" (device: i32, pool: u64) {
        let device = device::by_ordinal(device)?;
        let found = POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        if found.device != device.ordinal {
            return Err(Code::INVALID_VALUE);
        }
        *lock(&device.current_pool) = pool;
        Ok(())
    }
    fn mem_default_pool "cuMemGetDefaultMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        if kind != PINNED {
            return Err(Code::NOT_SUPPORTED);
        }
        put(out, default_pool(located(location)?)?)
    }
    fn mem_pool "cuMemGetMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        if kind != PINNED {
            return Err(Code::NOT_SUPPORTED);
        }
        put(out, current_pool(located(location)?)?)
    }
    fn pool_create "cuMemPoolCreate" (out: u64, props: u64) {
        non_null(out)?;
        // CUmemPoolProps: allocation type, handle types, location {type, id}, ...
        let [kind, handle_types, location, id] = get::<[u32; 4]>(props)?;
        if kind != PINNED {
            return Err(Code::INVALID_VALUE);
        }
        if handle_types != 0 || location != 1 {
            return Err(Code::NOT_SUPPORTED);
        }
        let ordinal = device::by_ordinal(id as i32).map_err(|_| Code::INVALID_VALUE)?.ordinal;
        let id = fresh_id();
        let handle = POOLS.insert(id, new_pool(id, ordinal, false));
        put(out, handle).inspect_err(|_| { let _ = POOLS.remove(handle); })
    }
    fn pool_destroy "cuMemPoolDestroy" (pool: u64) {
        let found = POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        if found.is_default {
            return Err(Code::INVALID_VALUE);
        }
        // Allocations from it stay until they are freed.
        POOLS.remove(pool).map(|_| ()).map_err(|_| Code::INVALID_VALUE)
    }
    fn pool_trim "cuMemPoolTrimTo" (pool: u64, _keep: u64) {
        POOLS.find(pool).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }
    fn pool_get_attribute "cuMemPoolGetAttribute" (pool: u64, attribute: u32, out: u64) {
        non_null(out)?;
        let pool = POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        let used = pool.used.load(Ordering::Relaxed);
        let settings = *lock(&pool.settings);
        match attribute {
            1..=3 => put(out, settings.reuse[attribute as usize - 1]),
            4 => put(out, settings.release_threshold),
            5 | 7 => put(out, used),
            6 | 8 => put(out, settings.high.max(used)),
            9 => put(out, PINNED),
            10 => put(out, 0u32),
            11 => put(out, pool.device),
            12 => put(out, 1u32),
            13 => put(out, memory::space().capacity()),
            14 => put(out, 0u32),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn pool_set_attribute "cuMemPoolSetAttribute" (pool: u64, attribute: u32, value: u64) {
        non_null(value)?;
        let pool = POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        match attribute {
            1..=3 => {
                let value = get::<u32>(value)?;
                lock(&pool.settings).reuse[attribute as usize - 1] = u32::from(value != 0);
            }
            4 => {
                let value = get::<u64>(value)?;
                lock(&pool.settings).release_threshold = value;
            }
            // The high-water marks can only be reset.
            6 | 8 => {
                if get::<u64>(value)? != 0 {
                    return Err(Code::INVALID_VALUE);
                }
                let used = pool.used.load(Ordering::Relaxed);
                lock(&pool.settings).high = used;
            }
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
    fn pool_get_access "cuMemPoolGetAccess" (out: u64, pool: u64, location: u64) {
        non_null(out)?;
        POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        located(location)?;
        // CU_MEM_ACCESS_FLAGS_PROT_READWRITE: there is one memory, which every device reaches.
        put(out, 3u32)
    }
    fn pool_set_access "cuMemPoolSetAccess" (pool: u64, map: u64, count: u64) {
        POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        if count == 0 || count > 64 {
            return if count == 0 { Ok(()) } else { Err(Code::INVALID_VALUE) };
        }
        // CUmemAccessDesc: location {type, id}, flags.
        for [kind, id, flags] in super::checked::get_array::<[u32; 3]>(map, count as usize)? {
            if kind != 1 || device::by_ordinal(id as i32).is_err() || !matches!(flags, 0 | 1 | 3) {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(())
    }
    fn alloc_from_pool "cuMemAllocFromPoolAsync" | "cuMemAllocFromPoolAsync_ptsz"
        (out: u64, size: u64, pool: u64, stream: u64) {
        let pool = POOLS.find(pool).ok_or(Code::INVALID_VALUE)?;
        let region = memory::alloc_async(out, size, stream, PER_THREAD)?;
        join(&pool, region);
        Ok(())
    }
    fn alloc_async "cuMemAllocAsync" | "cuMemAllocAsync_ptsz" (out: u64, size: u64, stream: u64) {
        let device = super::stream::resolve(stream, PER_THREAD)?.context.device;
        let pool = POOLS.find(current_pool(device)?).ok_or(Code::INVALID_VALUE)?;
        let region = memory::alloc_async(out, size, stream, PER_THREAD)?;
        join(&pool, region);
        Ok(())
    }
}

/// Puts a new region on the pool's account.
fn join(pool: &Arc<Pool>, region: Option<Region>) {
    if let Some(r) = region {
        lock(&MEMBERS)
            .get_or_insert_default()
            .insert(r.id, pool.clone());
        let used = pool.used.fetch_add(r.size, Ordering::Relaxed) + r.size;
        let mut settings = lock(&pool.settings);
        settings.high = settings.high.max(used);
    }
}

//! Memory pools: the default pool of each location, and pools created by the program (CUDA driver API, "Stream Ordered
//! Memory Allocator"; CUDA C++ Programming Guide, same title).
//!
//! A pool keeps freed blocks for reuse and returns those beyond its release threshold to the system at the next
//! synchronisation. Allocations take effect immediately, earlier than required. Frees are stream-ordered: a block is
//! reused only after the stream has reached its free. All pools share one heap.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite_engine::memory::{MemoryError, Parked, Reach, Region, RegionKind};
use cupyrite_sys::driver::{CUmemAllocationType, CUmemLocation, CUmemLocationType};
use parking_lot::Mutex;

use crate::driver::context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, put};
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::memory::ipc::{Exported, Shareable, Sharing};
use crate::driver::memory::space::{out_of_memory, space};
use crate::driver::stream::Stream;

mod attributes;
pub(crate) mod entries;

pub(crate) use self::attributes::access_of;

static POOLS: HandleTable<Pool> = HandleTable::new(HandleKind::Pool);

const PINNED: CUmemAllocationType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
const MANAGED: CUmemAllocationType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
const NO_LOCATION: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE;
const DEVICE: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
const HOST: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST;
const HOST_NUMA: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA;

/// Location of a pool's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PoolLocation {
    Device(i32),
    Host,
    /// A NUMA node of the host. The node is recorded; all host memory is the same.
    Node(i32),
    /// Managed memory without a preferred location.
    Anywhere,
}

/// A pool's location and memory kind.
pub(crate) type PoolKind = (PoolLocation, RegionKind);

/// A pool.
pub(crate) struct Pool {
    id: u64,
    kind: PoolKind,
    is_default: bool,
    /// Maximum bytes of live allocations, or zero for no limit.
    most: u64,
    /// Whether its memory can take part in decompressions.
    decompress: bool,
    pub(crate) sharing: Sharing,
    state: Mutex<PoolState>,
}

/// Mutable state of a pool.
struct PoolState {
    /// `CU_MEMPOOL_ATTR_REUSE_*`: follow event dependencies, allow opportunistic, allow internal dependencies.
    reuse: [u32; 3],
    release_threshold: u64,
    reach: Reach,
    /// Bytes of live allocations, and their high-water mark since the last reset.
    used: u64,
    used_high: u64,
    /// Bytes of live allocations and cached blocks, and the high-water mark.
    reserved: u64,
    reserved_high: u64,
    /// Cached free blocks, oldest first.
    kept: Vec<CachedBlock>,
    /// Destroyed pools return freed memory to the system.
    destroyed: bool,
}

/// A freed block.
struct CachedBlock {
    memory: Parked,
    /// Id of the stream that freed the block.
    stream: u64,
}

/// A live allocation of a pool.
struct Member {
    pool: Arc<Pool>,
    base: u64,
    /// Size of the underlying block in bytes.
    capacity: u64,
    /// A free is queued in a stream.
    doomed: bool,
    /// Present if other processes may import the allocation.
    exported: Option<Exported>,
}

/// Live allocations of all pools, by region id.
static MEMBERS: Mutex<Option<HashMap<u64, Member>>> = Mutex::new(None);
/// Handles of the default pool of each location and kind, and of the current one if set.
static CHOSEN: Mutex<Option<HashMap<PoolKind, (u64, u64)>>> = Mutex::new(None);
/// Number of cached blocks of all pools. A synchronisation skips the pools if it is zero.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Bytes that a block accounts for in its pool.
fn cost(bytes: u64) -> u64 {
    bytes.next_multiple_of(512)
}

impl PoolState {
    fn grow(&mut self, used: u64, reserved: u64) {
        self.used += used;
        self.used_high = self.used_high.max(self.used);
        self.reserved += reserved;
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    /// The best-fitting cached block: large enough, not much too large, and usable by the stream.
    fn take(&mut self, size: u64, stream: u64) -> Option<Parked> {
        let opportunistic = self.reuse[1] != 0;
        let fits = |k: &CachedBlock| {
            let capacity = k.memory.capacity();
            capacity >= size
                && capacity <= size.saturating_mul(2).max(4096)
                && (opportunistic || k.stream == stream)
        };
        let best = self
            .kept
            .iter()
            .enumerate()
            .filter(|(_, k)| fits(k))
            .min_by_key(|(_, k)| k.memory.capacity())?
            .0;
        KEPT.fetch_sub(1, Ordering::Relaxed);
        Some(self.kept.remove(best).memory)
    }

    /// Releases cached blocks, oldest first, until at most `keep` bytes are reserved.
    fn trim(&mut self, keep: u64) {
        let mut removed = 0;
        while removed < self.kept.len() && self.reserved > keep {
            self.reserved -= cost(self.kept[removed].memory.capacity());
            removed += 1;
        }
        KEPT.fetch_sub(removed, Ordering::Relaxed);
        for kept in self.kept.drain(..removed) {
            space().release(kept.memory);
        }
    }
}

impl Pool {
    fn new(
        id: u64,
        kind: PoolKind,
        is_default: bool,
        (most, decompress): (u64, bool),
        sharing: Sharing,
    ) -> Arc<Pool> {
        context::on_synchronize(trim_all);
        let reach = match kind {
            (PoolLocation::Device(device), RegionKind::Device) => Reach::of(device),
            _ => Reach::ALL,
        };
        Arc::new(Pool {
            id,
            kind,
            is_default,
            most,
            decompress,
            state: Mutex::new(PoolState {
                reuse: [1; 3],
                release_threshold: 0,
                reach,
                used: 0,
                used_high: 0,
                reserved: 0,
                reserved_high: 0,
                kept: Vec::new(),
                // Memory imported from another process is not cached.
                destroyed: sharing.is_imported(),
            }),
            sharing,
        })
    }

    fn handle(&self) -> u64 {
        handle_of(HandleKind::Pool, self.id)
    }
}

pub(crate) fn find(handle: u64) -> Res<Arc<Pool>> {
    POOLS.find(handle).ok_or(Code::INVALID_VALUE)
}

/// Handles of the default and the current pool of a location and kind. Creates the default pool on first use.
fn chosen(kind: PoolKind) -> (u64, u64) {
    let mut guard = CHOSEN.lock();
    let (default, current) = guard
        .get_or_insert_default()
        .entry(kind)
        .or_insert_with(|| {
            let id = fresh_id();
            (
                POOLS.insert(id, Pool::new(id, kind, true, (0, false), Sharing::No)),
                0,
            )
        });
    if *current == 0 || POOLS.find(*current).is_none() {
        *current = *default;
    }
    (*default, *current)
}

fn choose(kind: PoolKind, pool: u64) -> Res {
    let found = find(pool)?;
    if found.kind != kind || found.sharing.is_imported() {
        return Err(Code::INVALID_VALUE);
    }
    chosen(kind);
    if let Some(entry) = CHOSEN.lock().get_or_insert_default().get_mut(&kind) {
        entry.1 = pool;
    }
    Ok(())
}

fn device_kind(ordinal: i32) -> Res<PoolKind> {
    let ordinal = device::by_ordinal(ordinal)?.ordinal;
    Ok((PoolLocation::Device(ordinal), RegionKind::Device))
}

/// The pool that `cuMemAllocAsync` uses on a device.
pub(crate) fn current_of(ordinal: i32) -> Res<Arc<Pool>> {
    find(chosen(device_kind(ordinal)?).1)
}

/// Validates a NUMA node. Node 0 exists even where the system reports no nodes. `otherwise` is the error for a missing
/// node.
pub(crate) fn node(id: u32, otherwise: Code) -> Res<i32> {
    let there = || std::path::Path::new(&format!("/sys/devices/system/node/node{id}")).exists();
    i32::try_from(id)
        .ok()
        .filter(|&id| id == 0 || (id > 0 && there()))
        .ok_or_else(|| {
            because(otherwise, || {
                format!(
                    "NUMA node {} does not exist on this machine",
                    id.cast_signed()
                )
            })
        })
}

/// The location and kind of a pool with that allocation type and location.
fn pool_kind(kind: CUmemAllocationType, location: &CUmemLocation) -> Res<PoolKind> {
    let id = location_id(location);
    let device = || {
        device::by_ordinal(id)
            .map(|d| PoolLocation::Device(d.ordinal))
            .map_err(|_| Code::INVALID_VALUE)
    };
    match (kind, location.r#type) {
        (PINNED, DEVICE) => Ok((device()?, RegionKind::Device)),
        (PINNED, HOST) => Ok((PoolLocation::Host, RegionKind::Host)),
        (MANAGED, DEVICE) => Ok((device()?, RegionKind::Managed)),
        (MANAGED, HOST) => Ok((PoolLocation::Host, RegionKind::Managed)),
        (MANAGED, NO_LOCATION) => Ok((PoolLocation::Anywhere, RegionKind::Managed)),
        (PINNED, HOST_NUMA) => Ok((
            PoolLocation::Node(node(id as u32, Code::INVALID_VALUE)?),
            RegionKind::Host,
        )),
        (MANAGED, HOST_NUMA) => Ok((
            PoolLocation::Node(node(id as u32, Code::INVALID_VALUE)?),
            RegionKind::Managed,
        )),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn pool_kind_at(location: u64, kind: u32) -> Res<PoolKind> {
    let location = get::<CUmemLocation>(location)?;
    pool_kind(CUmemAllocationType(kind), &location)
}

/// Runs an allocation; if memory is short, retries after all pools have released their cached blocks.
pub(crate) fn with_relief<T>(allocate: impl Fn() -> Result<T, MemoryError>) -> Res<T> {
    match allocate() {
        Err(MemoryError::OutOfMemory) if KEPT.load(Ordering::Relaxed) > 0 => {
            for pool in POOLS.pick(|_| true) {
                pool.state.lock().trim(0);
            }
            Ok(allocate()?)
        }
        other => Ok(other?),
    }
}

/// Allocates `size` bytes from a pool for use in `stream`.
///
/// # Errors
/// `OUT_OF_MEMORY`.
pub(crate) fn allocate(pool: &Arc<Pool>, size: u64, stream: &Stream) -> Res<Region> {
    let owner = stream.context.id;
    let (kept, reach) = {
        let mut state = pool.state.lock();
        if pool.most != 0 && state.used.saturating_add(cost(size)) > pool.most {
            let (used, most) = (state.used, pool.most);
            return refuse(Code::OUT_OF_MEMORY, || {
                format!(
                    "an allocation of {size} bytes failed: the memory pool is limited to {most} bytes, of which {used} are in use"
                )
            });
        }
        (state.take(size, stream.id), state.reach)
    };
    let mut capacity = size;
    let mut fresh = true;
    let again = kept.and_then(|memory| {
        capacity = memory.capacity();
        fresh = false;
        space().unpark(memory, size, owner, reach).ok()
    });
    let region = match again {
        Some(region) => region,
        None => with_relief(|| match pool.sharing.arena() {
            Some(arena) => space().alloc_in(arena, size, pool.kind.1, owner, reach),
            None => space().alloc_owned(size, 512, pool.kind.1, owner, reach),
        })
        .map_err(|code| out_of_memory(code, size))?,
    };
    enter(pool, &region, capacity, fresh, reach);
    Ok(region)
}

/// Accounts a live allocation to a pool.
fn enter(pool: &Arc<Pool>, region: &Region, capacity: u64, fresh: bool, reach: Reach) {
    let size = region.size;
    MEMBERS.lock().get_or_insert_default().insert(
        region.id,
        Member {
            pool: pool.clone(),
            base: region.base,
            capacity,
            doomed: false,
            exported: None,
        },
    );
    let mut state = pool.state.lock();
    state.grow(size, if fresh { cost(size) } else { 0 });
    // Another thread may have changed the access rights in the meantime.
    if state.reach != reach {
        space().set_reach(region.base, state.reach);
    }
}

/// Adds an allocation of another process to an imported pool; `map` maps it.
///
/// # Errors
/// The error of `map`.
pub(crate) fn add_imported(
    pool: &Arc<Pool>,
    map: impl FnOnce(RegionKind, Reach) -> Result<Region, MemoryError>,
) -> Res<Region> {
    let reach = pool.state.lock().reach;
    let region = map(pool.kind.1, reach)?;
    enter(pool, &region, region.size, true, reach);
    Ok(region)
}

/// Returns `read` of the export record of the allocation at `address`; `export` creates the record on first use.
///
/// # Errors
/// `INVALID_VALUE` if no allocation of a shareable pool starts at `address`; the error of `export`.
pub(crate) fn exported<T>(
    address: u64,
    export: impl FnOnce(&Arc<Shareable>, &Region) -> Res<Exported>,
    read: impl FnOnce(&Exported) -> T,
) -> Res<T> {
    let region = space()
        .find(address)
        .filter(|r| r.base == address)
        .ok_or(Code::INVALID_VALUE)?;
    let mut members = MEMBERS.lock();
    let member = members
        .get_or_insert_default()
        .get_mut(&region.id)
        .filter(|m| !m.doomed)
        .ok_or(Code::INVALID_VALUE)?;
    let Sharing::Made(made) = &member.pool.sharing else {
        return refuse(Code::INVALID_VALUE, || {
            "the allocation's memory pool is not exportable".into()
        });
    };
    let exported = match member.exported.take() {
        Some(exported) => exported,
        None => export(made, &region)?,
    };
    Ok(read(member.exported.insert(exported)))
}

/// The device ordinal or the number of a NUMA node, by the location's type.
pub(crate) fn location_id(location: &CUmemLocation) -> i32 {
    // SAFETY: an integer, for which any bits are valid.
    unsafe { location.anon0.id }
}

/// A pool's location and kind as two words for another process.
pub(crate) fn words_of((place, kind): PoolKind) -> [u64; 2] {
    let place = match place {
        PoolLocation::Device(number) | PoolLocation::Node(number) => 1 + u64::from(number as u32),
        PoolLocation::Host | PoolLocation::Anywhere => 0,
    };
    [place, u64::from(kind == RegionKind::Host)]
}

/// The inverse of [`words_of`].
///
/// # Errors
/// `INVALID_VALUE` for a device that this process does not have.
pub(crate) fn kind_from_words([place, kind]: [u64; 2]) -> Res<PoolKind> {
    match (place, kind) {
        (0, 1) => Ok((PoolLocation::Host, RegionKind::Host)),
        (1.., 1) => {
            let number = u32::try_from(place - 1).map_err(|_| Code::INVALID_VALUE)?;
            Ok((
                PoolLocation::Node(node(number, Code::INVALID_VALUE)?),
                RegionKind::Host,
            ))
        }
        (1.., 0) => {
            let ordinal = i32::try_from(place - 1).map_err(|_| Code::INVALID_VALUE)?;
            let device = device::by_ordinal(ordinal).map_err(|_| Code::INVALID_VALUE)?;
            Ok((PoolLocation::Device(device.ordinal), RegionKind::Device))
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Registers a pool and writes its handle to the caller. The limits are its maximum size, and whether its memory can take
/// part in decompressions.
///
/// # Errors
/// `INVALID_VALUE` if that write fails.
pub(crate) fn install(out: u64, kind: PoolKind, limits: (u64, bool), sharing: Sharing) -> Res {
    let id = fresh_id();
    let handle = POOLS.insert(id, Pool::new(id, kind, false, limits, sharing));
    put(out, handle).inspect_err(|_| {
        let _ = POOLS.remove(handle);
    })
}

/// Whether the region was allocated from a pool.
pub(crate) fn is_member(region: &Region) -> bool {
    MEMBERS
        .lock()
        .get_or_insert_default()
        .contains_key(&region.id)
}

/// Returns a live allocation to its pool; `stream` (an id, or zero) may reuse it immediately.
///
/// # Errors
/// `INVALID_VALUE` if the region is not live or is not from a pool.
pub(crate) fn return_block(region: &Region, stream: u64) -> Res {
    let member = MEMBERS
        .lock()
        .get_or_insert_default()
        .remove(&region.id)
        .ok_or(Code::INVALID_VALUE)?;
    let parked = space().park(member.base, |r| r.id == region.id);
    let mut state = member.pool.state.lock();
    state.used -= region.size;
    match parked {
        Ok(memory) if !state.destroyed => {
            state.kept.push(CachedBlock { memory, stream });
            KEPT.fetch_add(1, Ordering::Relaxed);
        }
        Ok(memory) => {
            state.reserved -= cost(member.capacity);
            space().release(memory);
        }
        Err(e) => {
            state.reserved -= cost(member.capacity);
            return Err(e.into());
        }
    }
    Ok(())
}

/// Removes a region that was freed otherwise from its pool's accounting.
pub(crate) fn remove_member(region: &Region) {
    let member = MEMBERS.lock().get_or_insert_default().remove(&region.id);
    if let Some(member) = member {
        let mut state = member.pool.state.lock();
        state.used -= region.size;
        state.reserved -= cost(member.capacity);
    }
}

/// The pool handle of a region; zero if it is not from a pool.
pub(crate) fn pool_of(region: &Region) -> u64 {
    MEMBERS
        .lock()
        .get_or_insert_default()
        .get(&region.id)
        .map_or(0, |m| m.pool.handle())
}

/// The handle types as which a region's pool can be exported; zero if it is not from a pool.
pub(crate) fn handle_types(region: &Region) -> u64 {
    MEMBERS
        .lock()
        .get_or_insert_default()
        .get(&region.id)
        .map_or(0, |m| m.pool.sharing.handle_types().into())
}

/// Whether the region's pool was created for decompression.
pub(crate) fn can_decompress(region: &Region) -> bool {
    let mut members = MEMBERS.lock();
    let member = members.get_or_insert_default().get(&region.id);
    member.is_some_and(|m| m.pool.decompress)
}

/// The device of the region's pool.
pub(crate) fn device_of(region: &Region) -> Option<i32> {
    match MEMBERS
        .lock()
        .get_or_insert_default()
        .get(&region.id)?
        .pool
        .kind
        .0
    {
        PoolLocation::Device(ordinal) => Some(ordinal),
        PoolLocation::Host | PoolLocation::Node(_) | PoolLocation::Anywhere => None,
    }
}

/// Called after a synchronisation: pools release cached blocks beyond their thresholds.
pub(crate) fn trim_all() {
    if KEPT.load(Ordering::Relaxed) == 0 {
        return;
    }
    for pool in POOLS.pick(|_| true) {
        let mut state = pool.state.lock();
        let keep = state.release_threshold;
        state.trim(keep);
    }
}

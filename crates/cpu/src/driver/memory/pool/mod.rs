//! Memory pools: the default one of each place and those callers make (CUDA driver API, "Stream Ordered Memory
//! Allocator" and CUDA C++ Programming Guide of the same name).
//!
//! A pool keeps what is freed and hands it out again; beyond its release threshold it gives memory back when somebody
//! synchronises. An allocation is made when the call is, which is earlier than promised; a free takes effect in the
//! stream's order, and only what a stream has really freed is used again. All pools stand on one heap.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::context::Context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, Table, fresh_id, handle_of};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::graph;
use crate::driver::memory::allocation::{short, space};
use crate::driver::memory::ipc::{self, Exported, Shareable, Sharing};
use crate::driver::stream::{self, Place as Where, Stream};
use crate::memory::{Access, Kind, MemoryError, Parked, Reach, Region};

mod attributes;

pub(crate) use self::attributes::access_of;
use self::attributes::{access_flags, attribute, set_access, set_attribute};

static POOLS: Table<Pool> = Table::new(HandleKind::Pool);

/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: u32 = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED.0;
/// `CU_MEM_ALLOCATION_TYPE_MANAGED`.
const MANAGED: u32 = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED.0;
/// `CU_MEM_LOCATION_TYPE_*`.
const NOWHERE: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE.0;
const DEVICE: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE.0;
const HOST: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST.0;
const HOST_NUMA: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA.0;

/// Where a pool's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Device(i32),
    Host,
    /// A NUMA node of the host. What is asked of it is remembered; the memory is the same as all of the host's.
    Node(i32),
    /// Managed memory without a preferred place.
    Anywhere,
}

/// What a pool is made of.
pub(crate) type Sort = (Place, Kind);

/// A pool.
pub(crate) struct Pool {
    id: u64,
    sort: Sort,
    is_default: bool,
    /// Most bytes of live allocations, or zero.
    most: u64,
    pub(crate) sharing: Sharing,
    state: Mutex<State>,
}

/// What changes about a pool.
struct State {
    /// REUSE_FOLLOW_EVENT_DEPENDENCIES, ALLOW_OPPORTUNISTIC, ALLOW_INTERNAL_DEPENDENCIES.
    reuse: [u32; 3],
    release_threshold: u64,
    reach: Reach,
    /// Bytes of live allocations, and the most there have been since the caller reset the mark.
    used: u64,
    used_high: u64,
    /// The same with what is kept for reuse.
    reserved: u64,
    reserved_high: u64,
    /// Freed and kept, oldest first.
    kept: Vec<Kept>,
    /// Destroyed: what is freed goes back to the system.
    destroyed: bool,
}

/// A freed block.
struct Kept {
    memory: Parked,
    /// Id of the stream that freed it.
    stream: u64,
}

/// A live allocation of a pool.
struct Member {
    pool: Arc<Pool>,
    base: u64,
    /// Bytes its memory was allocated with.
    capacity: u64,
    /// A stream has been told to free it.
    doomed: bool,
    /// Other processes may import it.
    exported: Option<Exported>,
}

/// Live allocations of all pools, by region id.
static MEMBERS: Mutex<Option<HashMap<u64, Member>>> = Mutex::new(None);
/// Handles of the pools of each sort: the default one, and the current one if it was set.
static CHOSEN: Mutex<Option<HashMap<Sort, (u64, u64)>>> = Mutex::new(None);
/// Blocks kept by all pools: when there are none, a synchronisation need not look.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// What a block costs a pool.
fn cost(bytes: u64) -> u64 {
    bytes.next_multiple_of(512)
}

impl State {
    fn grow(&mut self, used: u64, reserved: u64) {
        self.used += used;
        self.used_high = self.used_high.max(self.used);
        self.reserved += reserved;
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    /// The kept block that fits best: big enough, not much too big, and allowed to that stream.
    fn take(&mut self, size: u64, stream: u64) -> Option<Parked> {
        let opportunistic = self.reuse[1] != 0;
        let fits = |k: &Kept| {
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

    /// Gives kept blocks back, the oldest first, until no more than `keep` bytes are reserved.
    fn trim(&mut self, keep: u64) {
        let mut gone = 0;
        while gone < self.kept.len() && self.reserved > keep {
            self.reserved -= cost(self.kept[gone].memory.capacity());
            gone += 1;
        }
        KEPT.fetch_sub(gone, Ordering::Relaxed);
        for kept in self.kept.drain(..gone) {
            space().release(kept.memory);
        }
    }
}

impl Pool {
    fn new(id: u64, sort: Sort, is_default: bool, most: u64, sharing: Sharing) -> Arc<Pool> {
        let reach = match sort {
            (Place::Device(device), Kind::Device) => Reach::of(device),
            _ => Reach::ALL,
        };
        Arc::new(Pool {
            id,
            sort,
            is_default,
            most,
            state: Mutex::new(State {
                reuse: [1; 3],
                release_threshold: 0,
                reach,
                used: 0,
                used_high: 0,
                reserved: 0,
                reserved_high: 0,
                kept: Vec::new(),
                // What another process made is not kept for reuse.
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

/// Handles of the default and the current pool of a sort; the former is made when it is first asked for.
fn chosen(sort: Sort) -> (u64, u64) {
    let mut guard = CHOSEN.lock();
    let (default, current) = guard
        .get_or_insert_default()
        .entry(sort)
        .or_insert_with(|| {
            let id = fresh_id();
            (
                POOLS.insert(id, Pool::new(id, sort, true, 0, Sharing::No)),
                0,
            )
        });
    if *current == 0 || POOLS.find(*current).is_none() {
        *current = *default;
    }
    (*default, *current)
}

fn choose(sort: Sort, pool: u64) -> Res {
    let found = find(pool)?;
    if found.sort != sort || found.sharing.is_imported() {
        return Err(Code::INVALID_VALUE);
    }
    chosen(sort);
    if let Some(entry) = CHOSEN.lock().get_or_insert_default().get_mut(&sort) {
        entry.1 = pool;
    }
    Ok(())
}

fn device_sort(ordinal: i32) -> Res<Sort> {
    let ordinal = device::by_ordinal(ordinal)?.ordinal;
    Ok((Place::Device(ordinal), Kind::Device))
}

/// The pool `cuMemAllocAsync` uses on a device.
pub(crate) fn current_of(ordinal: i32) -> Res<Arc<Pool>> {
    find(chosen(device_sort(ordinal)?).1)
}

/// A NUMA node that this machine has; the first one is there also where the system names none. `otherwise` is the answer for
/// one that is not there.
pub(crate) fn node(id: u32, otherwise: Code) -> Res<i32> {
    let there = || std::path::Path::new(&format!("/sys/devices/system/node/node{id}")).exists();
    i32::try_from(id)
        .ok()
        .filter(|&id| id == 0 || (id > 0 && there()))
        .ok_or_else(|| {
            because(otherwise, || {
                format!("this machine has no NUMA node {}", id.cast_signed())
            })
        })
}

/// What a pool of that allocation type at that location is made of.
fn sort_of(kind: u32, location: u32, id: u32) -> Res<Sort> {
    let device = || {
        device::by_ordinal(id as i32)
            .map(|d| Place::Device(d.ordinal))
            .map_err(|_| Code::INVALID_VALUE)
    };
    match (kind, location) {
        (PINNED, DEVICE) => Ok((device()?, Kind::Device)),
        (PINNED, HOST) => Ok((Place::Host, Kind::Host)),
        (MANAGED, DEVICE) => Ok((device()?, Kind::Managed)),
        (MANAGED, HOST) => Ok((Place::Host, Kind::Managed)),
        (MANAGED, NOWHERE) => Ok((Place::Anywhere, Kind::Managed)),
        (PINNED, HOST_NUMA) => Ok((Place::Node(node(id, Code::INVALID_VALUE)?), Kind::Host)),
        (MANAGED, HOST_NUMA) => Ok((Place::Node(node(id, Code::INVALID_VALUE)?), Kind::Managed)),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn sort_at(location: u64, kind: u32) -> Res<Sort> {
    let [place, id] = get::<[u32; 2]>(location)?;
    sort_of(kind, place, id)
}

/// Runs an allocation; if memory is short, once more after every pool has given back what it keeps.
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

/// Takes `size` bytes out of a pool for work in `stream`.
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
                    "an allocation of {size} bytes failed: the pool was made for {most} bytes, {used} are in use"
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
            Some(arena) => space().alloc_in(arena, size, pool.sort.1, owner, reach),
            None => space().alloc_owned(size, 512, pool.sort.1, owner, reach),
        })
        .map_err(|code| short(code, size))?,
    };
    enter(pool, &region, capacity, fresh, reach);
    Ok(region)
}

/// Puts a live allocation on a pool's account.
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
    // Somebody may have changed the rights meanwhile.
    if state.reach != reach {
        space().set_reach(region.base, state.reach);
    }
}

/// Makes memory that another process allocated an allocation of an imported pool's: `map` maps it.
///
/// # Errors
/// What `map` says.
pub(crate) fn adopt(
    pool: &Arc<Pool>,
    map: impl FnOnce(Kind, Reach) -> Result<Region, MemoryError>,
) -> Res<Region> {
    let reach = pool.state.lock().reach;
    let region = map(pool.sort.1, reach)?;
    enter(pool, &region, region.size, true, reach);
    Ok(region)
}

/// What `read` says of the exported allocation at `address`, which is `export`ed now if it was not before.
///
/// # Errors
/// `INVALID_VALUE` if no allocation of a shareable pool begins there; what `export` says.
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
            "the memory pool of the allocation was not made to be exported".into()
        });
    };
    let exported = match member.exported.take() {
        Some(exported) => exported,
        None => export(made, &region)?,
    };
    Ok(read(member.exported.insert(exported)))
}

/// A pool's sort as two words, for another process.
pub(crate) fn words_of((place, kind): Sort) -> [u64; 2] {
    let place = match place {
        Place::Device(number) | Place::Node(number) => 1 + u64::from(number as u32),
        Place::Host | Place::Anywhere => 0,
    };
    [place, u64::from(kind == Kind::Host)]
}

/// The reverse of [`words_of`].
///
/// # Errors
/// `INVALID_VALUE` for a device that this process has not.
pub(crate) fn sort_of_words([place, kind]: [u64; 2]) -> Res<Sort> {
    match (place, kind) {
        (0, 1) => Ok((Place::Host, Kind::Host)),
        (1.., 1) => {
            let number = u32::try_from(place - 1).map_err(|_| Code::INVALID_VALUE)?;
            Ok((Place::Node(node(number, Code::INVALID_VALUE)?), Kind::Host))
        }
        (1.., 0) => {
            let ordinal = i32::try_from(place - 1).map_err(|_| Code::INVALID_VALUE)?;
            let device = device::by_ordinal(ordinal).map_err(|_| Code::INVALID_VALUE)?;
            Ok((Place::Device(device.ordinal), Kind::Device))
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Makes a pool and tells the caller its handle.
///
/// # Errors
/// `INVALID_VALUE` if the caller cannot be told.
pub(crate) fn install(out: u64, sort: Sort, most: u64, sharing: Sharing) -> Res {
    let id = fresh_id();
    let handle = POOLS.insert(id, Pool::new(id, sort, false, most, sharing));
    put(out, handle).inspect_err(|_| {
        let _ = POOLS.remove(handle);
    })
}

/// Whether the region came from a pool.
pub(crate) fn is_member(region: &Region) -> bool {
    MEMBERS
        .lock()
        .get_or_insert_default()
        .contains_key(&region.id)
}

/// Puts a live allocation back into its pool: `stream` (an id, or zero) may have it again at once.
///
/// # Errors
/// `INVALID_VALUE` if the region is not live or came from no pool.
pub(crate) fn give_back(region: &Region, stream: u64) -> Res {
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
            state.kept.push(Kept { memory, stream });
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

/// Takes a region that was freed otherwise off its pool's account.
pub(crate) fn leave(region: &Region) {
    let member = MEMBERS.lock().get_or_insert_default().remove(&region.id);
    if let Some(member) = member {
        let mut state = member.pool.state.lock();
        state.used -= region.size;
        state.reserved -= cost(member.capacity);
    }
}

/// The pool handle of a region, zero if it came from none.
pub(crate) fn pool_of(region: &Region) -> u64 {
    MEMBERS
        .lock()
        .get_or_insert_default()
        .get(&region.id)
        .map_or(0, |m| m.pool.handle())
}

/// The handle types a region's pool can be exported as; zero if it came from none.
pub(crate) fn handle_types(region: &Region) -> u64 {
    MEMBERS
        .lock()
        .get_or_insert_default()
        .get(&region.id)
        .map_or(0, |m| m.pool.sharing.handle_types().into())
}

/// The device of the pool a region came from.
pub(crate) fn device_of(region: &Region) -> Option<i32> {
    match MEMBERS
        .lock()
        .get_or_insert_default()
        .get(&region.id)?
        .pool
        .sort
        .0
    {
        Place::Device(ordinal) => Some(ordinal),
        Place::Host | Place::Node(_) | Place::Anywhere => None,
    }
}

/// Somebody has synchronised: pools give back what they keep beyond their thresholds.
pub(crate) fn settle() {
    if KEPT.load(Ordering::Relaxed) == 0 {
        return;
    }
    for pool in POOLS.pick(|_| true) {
        let mut state = pool.state.lock();
        let keep = state.release_threshold;
        state.trim(keep);
    }
}

/// Frees in a stream's order.
///
/// # Errors
/// `INVALID_VALUE` for an address that is not the first one of an allocation, `STREAM_CAPTURE_UNSUPPORTED` if the stream
/// is not captured while another is that prohibits it.
fn free_async(address: u64, stream: &Arc<Stream>) -> Res {
    if graph::capture::is_capturing(stream)? {
        // A graph frees what graphs allocate.
        let node = graph::memory::Free::read(address)?;
        return graph::capture::record(stream, graph::Payload::MemFree(node));
    }
    graph::capture::reject_if_capturing()?;
    if let Some(free) = graph::memory::free_later(address) {
        let free = free?;
        stream.enqueue(&[], Where::HereIfIdle, move |_| {
            free().map_err(|_| Code::ILLEGAL_ADDRESS)
        });
        return Ok(());
    }
    let region = freeable(address)?;
    if let Some(member) = MEMBERS.lock().get_or_insert_default().get_mut(&region.id) {
        // Freed a second time before the stream came to the first.
        if std::mem::replace(&mut member.doomed, true) {
            return Err(Code::INVALID_VALUE);
        }
    }
    stream.enqueue(&[], Where::HereIfIdle, free_work(region, stream.id));
    Ok(())
}

/// The allocation at `address`, if `cuMemFreeAsync` may free it.
///
/// # Errors
/// `INVALID_VALUE` if it may not, `NOT_SUPPORTED` for managed memory that came from no pool.
pub(crate) fn freeable(address: u64) -> Res<Region> {
    let region = space()
        .find(address)
        .filter(|r| r.base == address)
        .ok_or(Code::INVALID_VALUE)?;
    match region.kind {
        // Memory that was opened by a handle is closed, not freed.
        Kind::Device if ipc::is_opened(&region) => Err(Code::INVALID_VALUE),
        Kind::Device => Ok(region),
        _ if is_member(&region) => Ok(region),
        Kind::Managed => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// What `cuMemFreeAsync` does when the stream reaches it.
fn free_work(region: Region, stream: u64) -> impl FnOnce(&Arc<Context>) -> Res + Send + 'static {
    move |_| {
        if is_member(&region) {
            return give_back(&region, stream);
        }
        let gone = space().free_if(region.base, |r| r.id == region.id)?;
        crate::driver::memory::pointer::forget(&gone);
        Ok(())
    }
}

/// Allocates in a stream's order and tells the caller where. CUDA gives a null pointer for no bytes here.
fn alloc_async(out: u64, size: u64, pool: &Arc<Pool>, stream: &Arc<Stream>) -> Res {
    if pool.sharing.is_imported() {
        return refuse(Code::INVALID_VALUE, || {
            "a memory pool of another process hands out no memory here: import its allocations"
                .into()
        });
    }
    if size == 0 {
        return put(out, 0u64);
    }
    if graph::capture::is_capturing(stream)? {
        let (Place::Device(ordinal), Kind::Device) = pool.sort else {
            return Err(Code::NOT_SUPPORTED);
        };
        let node = graph::memory::Allocate::captured(size, ordinal, stream.context.id)?;
        let address = node.address();
        graph::capture::record(stream, graph::Payload::MemAlloc(node))?;
        return put(out, address);
    }
    graph::capture::reject_if_capturing()?;
    let region = allocate(pool, size, stream)?;
    put(out, region.base).inspect_err(|_| {
        let _ = give_back(&region, stream.id);
    })
}

entries! {
    fn device_default_pool "cuDeviceGetDefaultMemPool" (out: u64, device: i32) {
        non_null(out)?;
        put(out, chosen(device_sort(device)?).0)
    }
    fn device_pool "cuDeviceGetMemPool" (out: u64, device: i32) {
        non_null(out)?;
        put(out, chosen(device_sort(device)?).1)
    }
    fn device_set_pool "cuDeviceSetMemPool" (device: i32, pool: u64) {
        choose(device_sort(device)?, pool)
    }
    fn mem_default_pool "cuMemGetDefaultMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        put(out, chosen(sort_at(location, kind)?).0)
    }
    fn mem_pool "cuMemGetMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        put(out, chosen(sort_at(location, kind)?).1)
    }
    fn mem_set_pool "cuMemSetMemPool" (location: u64, kind: u32, pool: u64) {
        choose(sort_at(location, kind)?, pool)
    }
    fn pool_create "cuMemPoolCreate" (out: u64, props: u64) {
        non_null(out)?;
        // CUmemPoolProps: allocation type, handle types, location {type, id}, security attributes, largest size.
        let words = get::<[u32; 8]>(props)?;
        let sort = sort_of(words[0], words[2], words[3])?;
        graph::capture::reject_if_capturing()?;
        let most = u64::from(words[6]) | u64::from(words[7]) << 32;
        install(out, sort, most, Sharing::of(words[1], sort)?)
    }
    fn pool_destroy "cuMemPoolDestroy" (pool: u64) {
        if find(pool)?.is_default {
            return Err(Code::INVALID_VALUE);
        }
        graph::capture::reject_if_capturing()?;
        // Allocations from it stay until they are freed.
        let pool = POOLS.remove(pool).map_err(|_| Code::INVALID_VALUE)?;
        let mut state = pool.state.lock();
        state.destroyed = true;
        state.trim(0);
        Ok(())
    }
    fn pool_trim "cuMemPoolTrimTo" (pool: u64, keep: u64) {
        graph::capture::reject_if_capturing()?;
        find(pool)?.state.lock().trim(keep);
        Ok(())
    }
    fn pool_get_attribute "cuMemPoolGetAttribute" (pool: u64, id: u32, out: u64) {
        non_null(out)?;
        graph::capture::reject_if_capturing()?;
        attribute(&*find(pool)?, sys::CUmemPool_attribute(id), out)
    }
    fn pool_set_attribute "cuMemPoolSetAttribute" (pool: u64, id: u32, value: u64) {
        non_null(value)?;
        graph::capture::reject_if_capturing()?;
        set_attribute(&*find(pool)?, sys::CUmemPool_attribute(id), value)
    }
    fn pool_get_access "cuMemPoolGetAccess" (out: u64, pool: u64, location: u64) {
        non_null(out)?;
        let pool = find(pool)?;
        let access = match get::<[u32; 2]>(location)? {
            [DEVICE, id] => pool.state.lock().reach.access(device::by_ordinal(id as i32)?.ordinal),
            [HOST, _] if pool.sort.1 != Kind::Device => Access::ReadWrite,
            [HOST, _] => Access::None,
            _ => return Err(Code::INVALID_VALUE),
        };
        put(out, access_flags(access))
    }
    fn pool_set_access "cuMemPoolSetAccess" (pool: u64, map: u64, count: u64) {
        set_access(&find(pool)?, map, count)
    }
    fn alloc_from_pool "cuMemAllocFromPoolAsync" | "cuMemAllocFromPoolAsync_ptsz"
        (out: u64, size: u64, pool: u64, stream: u64) {
        non_null(out)?;
        let pool = find(pool)?;
        alloc_async(out, size, &pool, &stream::resolve_for_capture(stream, PER_THREAD)?)
    }
    fn alloc_from_current "cuMemAllocAsync" | "cuMemAllocAsync_ptsz" (out: u64, size: u64, stream: u64) {
        non_null(out)?;
        let stream = stream::resolve_for_capture(stream, PER_THREAD)?;
        alloc_async(out, size, &current_of(stream.context.device)?, &stream)
    }
    fn mem_free_async "cuMemFreeAsync" | "cuMemFreeAsync_ptsz" (address: u64, stream: u64) {
        let stream = stream::resolve_for_capture(stream, PER_THREAD)?;
        free_async(address, &stream)
    }
}

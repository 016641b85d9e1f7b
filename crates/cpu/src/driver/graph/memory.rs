//! Graph-allocated memory.
//!
//! An allocation has its address as soon as its node is added, but is backed by memory only between its allocation and
//! its free; outside that time the address behaves like freed memory. Memory that is allocated when its graph is
//! destroyed stays allocated until it is freed.
//!
//! The liveness of an allocation is tracked twice: in launch order, to validate launches, and in execution order, to
//! validate accesses.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use super::plan::Plan;
use super::{Code, Payload, payload_of};
use crate::driver::context;
use crate::driver::device::{self, Device};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put};
use crate::driver::entry::entries;
use crate::driver::memory::pool;
use crate::driver::memory::space::space;
use crate::driver::stream::{OpPlacement, Stream};
use crate::memory::{Parked, Reach, RegionKind};

const PINNED: u32 = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED.0;
const DEVICE: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE.0;

/// Memory figures of a device's graphs. As on a GPU, memory is reserved when an allocation first takes it and stays
/// reserved for later allocations of any graph until a trim; the system has it back as soon as it is free.
#[derive(Default)]
struct Account {
    used: AtomicU64,
    used_high: AtomicU64,
    reserved: AtomicU64,
    reserved_high: AtomicU64,
}

static ACCOUNTS: Mutex<BTreeMap<i32, Arc<Account>>> = Mutex::new(BTreeMap::new());

fn account(device: i32) -> Arc<Account> {
    ACCOUNTS.lock().entry(device).or_default().clone()
}

impl Account {
    /// Counts memory that an allocation takes: first what earlier allocations have left, then new memory.
    fn begin(&self, bytes: u64) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.used_high.fetch_max(used, Ordering::Relaxed);
        self.reserved.fetch_max(used, Ordering::Relaxed);
        self.reserved_high.fetch_max(used, Ordering::Relaxed);
    }

    /// Counts as unreserved what no allocation uses.
    fn trim(&self) {
        let used = self.used.load(Ordering::Relaxed);
        self.reserved.store(used, Ordering::Relaxed);
    }
}

/// Backing of an address.
enum Memory {
    /// Reserved.
    Parked(Parked),
    /// A live region.
    Live,
    /// The context that owned the region has been destroyed.
    Gone,
}

/// An allocation, shared by its node and the node's copies.
struct Allocation {
    address: u64,
    size: u64,
    owner: u64,
    /// The devices that may access it.
    reach: Reach,
    account: Arc<Account>,
    memory: Mutex<Memory>,
    /// Whether it is live after all launches so far.
    lives: AtomicBool,
}

/// Every allocation that has a node or memory, by address.
static ALLOCATIONS: Mutex<BTreeMap<u64, Weak<Allocation>>> = Mutex::new(BTreeMap::new());
/// Live allocations, which exist without a node.
static LIVING: Mutex<BTreeMap<u64, Arc<Allocation>>> = Mutex::new(BTreeMap::new());

fn allocation(address: u64) -> Option<Arc<Allocation>> {
    ALLOCATIONS.lock().get(&address)?.upgrade()
}

/// Whether the range lies in a graph allocation, live or not.
pub(in crate::driver) fn covers(address: u64, len: u64) -> bool {
    let known = ALLOCATIONS.lock();
    let below = known.range(..=address).next_back();
    below.and_then(|(_, a)| a.upgrade()).is_some_and(|a| {
        let offset = address - a.address;
        offset < a.size && len <= a.size - offset
    })
}

impl Allocation {
    fn new(size: u64, device: &Device, owner: u64, reach: Reach) -> Res<Arc<Allocation>> {
        let region =
            pool::with_relief(|| space().alloc_owned(size, 512, RegionKind::Device, owner, reach))?;
        let parked = space().park(region.base, |r| r.id == region.id)?;
        let account = account(device.ordinal);
        let allocation = Arc::new(Allocation {
            address: region.base,
            size,
            owner,
            reach,
            account,
            memory: Mutex::new(Memory::Parked(parked)),
            lives: AtomicBool::new(false),
        });
        ALLOCATIONS
            .lock()
            .insert(region.base, Arc::downgrade(&allocation));
        Ok(allocation)
    }

    /// Backs the address with memory.
    fn begin(self: &Arc<Self>) -> Res {
        let mut memory = self.memory.lock();
        match std::mem::replace(&mut *memory, Memory::Gone) {
            Memory::Parked(parked) => {
                match space().unpark(parked, self.size, self.owner, self.reach) {
                    Ok(_) => {
                        *memory = Memory::Live;
                        self.account.begin(self.size);
                        LIVING.lock().insert(self.address, self.clone());
                        Ok(())
                    }
                    Err(parked) => {
                        *memory = Memory::Parked(parked);
                        Err(Code::OUT_OF_MEMORY)
                    }
                }
            }
            Memory::Live => {
                *memory = Memory::Live;
                Err(Code::INVALID_VALUE)
            }
            Memory::Gone => Err(Code::OUT_OF_MEMORY),
        }
    }

    /// Removes the memory.
    fn end(&self) -> Res {
        let mut memory = self.memory.lock();
        if !matches!(*memory, Memory::Live) {
            return Err(Code::INVALID_VALUE);
        }
        let parked = space().park(self.address, |r| r.size == self.size);
        self.account.used.fetch_sub(self.size, Ordering::Relaxed);
        *memory = parked.map_or(Memory::Gone, Memory::Parked);
        drop(memory);
        let last = LIVING.lock().remove(&self.address);
        drop(last);
        Ok(())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut *self.memory.lock(), Memory::Gone);
        if let Memory::Parked(parked) = memory {
            ALLOCATIONS.lock().remove(&self.address);
            space().release(parked);
        } else {
            ALLOCATIONS.lock().remove(&self.address);
        }
    }
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS` as 64-bit words: pool properties, access descriptors and their count, size, address.
pub(super) type AllocWords = [u64; 15];

/// An allocation node.
#[derive(Clone)]
pub(in crate::driver) struct Allocate {
    words: AllocWords,
    /// The access descriptors, which the words point to.
    access: Arc<[[u32; 3]]>,
    allocation: Arc<Allocation>,
}

impl Allocate {
    /// Validates the caller's parameters and reserves the memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a size of zero, and for properties other than pinned memory on an existing device;
    /// `NOT_SUPPORTED` for shareable memory; `OUT_OF_MEMORY`.
    pub(super) fn read(w: &AllocWords) -> Res<Allocate> {
        const MAX_ACCESS_DESCRIPTORS: u64 = 1024;
        let (kind, handles) = (w[0] as u32, (w[0] >> 32) as u32);
        let (location, ordinal) = (w[1] as u32, (w[1] >> 32) as i32);
        if kind != PINNED || location != DEVICE || w[13] == 0 || w[12] > MAX_ACCESS_DESCRIPTORS {
            return Err(Code::INVALID_VALUE);
        }
        if handles != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let device = device::by_ordinal(ordinal).map_err(|_| Code::INVALID_VALUE)?;
        let access: Arc<[[u32; 3]]> = match w[12] {
            0 => Arc::from([]),
            n => {
                non_null(w[11])?;
                get_array::<[u32; 3]>(w[11], n as usize)?.into()
            }
        };
        let mut reach = Reach::of(device.ordinal);
        for &[location, id, flags] in access.iter() {
            let peer = device::by_ordinal(id as i32).map_err(|_| Code::INVALID_VALUE)?;
            if location != DEVICE {
                return Err(Code::INVALID_VALUE);
            }
            reach = reach.with(peer.ordinal, pool::access_of(flags)?);
        }
        let owner = context::current_any()?.map_or(0, |c| c.id);
        let allocation = Allocation::new(w[13], device, owner, reach)?;
        Ok(Self::make(*w, access, allocation))
    }

    fn make(
        mut words: AllocWords,
        access: Arc<[[u32; 3]]>,
        allocation: Arc<Allocation>,
    ) -> Allocate {
        words[11] = if access.is_empty() {
            0
        } else {
            access.as_ptr() as u64
        };
        words[14] = allocation.address;
        Allocate {
            words,
            access,
            allocation,
        }
    }

    /// The node of a captured `cuMemAllocAsync`.
    pub(in crate::driver) fn captured(size: u64, ordinal: i32, owner: u64) -> Res<Allocate> {
        let device = device::by_ordinal(ordinal)?;
        let mut words = [0; 15];
        words[0] = PINNED.into();
        words[1] = u64::from(DEVICE) | u64::from(ordinal as u32) << 32;
        words[13] = size;
        let allocation = Allocation::new(size, device, owner, Reach::of(device.ordinal))?;
        Ok(Self::make(words, Arc::from([]), allocation))
    }

    pub(in crate::driver) fn address(&self) -> u64 {
        self.allocation.address
    }

    pub(super) fn words(&self) -> AllocWords {
        debug_assert_eq!(self.words[12], self.access.len() as u64);
        self.words
    }

    pub(super) fn run(&self) -> Res {
        self.allocation.begin()
    }
}

/// A free node.
#[derive(Clone)]
pub(in crate::driver) struct Free {
    allocation: Arc<Allocation>,
}

impl Free {
    /// # Errors
    /// `INVALID_VALUE` for an address that no graph allocates.
    pub(in crate::driver) fn read(address: u64) -> Res<Free> {
        let allocation = allocation(address).ok_or(Code::INVALID_VALUE)?;
        Ok(Free { allocation })
    }

    pub(super) fn address(&self) -> u64 {
        self.allocation.address
    }

    pub(super) fn run(&self) -> Res {
        self.allocation.end()
    }
}

/// Frees a graph allocation outside of graphs. `None` for other addresses, otherwise the stream-ordered work that frees
/// it.
///
/// # Errors
/// `INVALID_VALUE` if the allocation is not live, or will not be when the work runs.
pub(in crate::driver) fn free_later(address: u64) -> Option<Res<impl FnOnce() -> Res + Send>> {
    let found = allocation(address)?;
    if !found.lives.swap(false, Ordering::AcqRel) {
        return Some(Err(Code::INVALID_VALUE));
    }
    Some(Ok(move || found.end()))
}

/// Validates a launch against what will be live when it runs, and records what is live after it. With `auto_free`, live
/// allocations that the graph allocates again are freed first.
///
/// # Errors
/// `INVALID_VALUE` if the launch would allocate live memory or free memory that is not live.
pub(super) fn launch(plan: &Plan, auto_free: bool, stream: &Arc<Stream>) -> Res {
    let mut after: HashMap<u64, (Arc<Allocation>, bool)> = HashMap::new();
    let mut stale = Vec::new();
    for payload in plan.payloads() {
        let (allocation, begins) = match payload {
            Payload::MemAlloc(a) => (&a.allocation, true),
            Payload::MemFree(f) => (&f.allocation, false),
            _ => continue,
        };
        let entry = after.entry(allocation.address);
        let (_, lives) = entry.or_insert_with(|| {
            let lives = allocation.lives.load(Ordering::Acquire);
            (allocation.clone(), lives)
        });
        if *lives == begins {
            if !(begins && auto_free) {
                return Err(Code::INVALID_VALUE);
            }
            stale.push(allocation.clone());
        }
        *lives = begins;
    }
    for allocation in stale {
        stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| {
            allocation.end().map_err(|_| Code::ILLEGAL_ADDRESS)
        });
    }
    for (allocation, lives) in after.into_values() {
        allocation.lives.store(lives, Ordering::Release);
    }
    Ok(())
}

/// Accessor of one of an account's values.
type Value = fn(&Account) -> &AtomicU64;

/// The account of a device, and the accessor for a `CUgraphMem_attribute`.
fn attribute(ordinal: i32, id: u32) -> Res<(Arc<Account>, Value)> {
    let account = account(device::by_ordinal(ordinal)?.ordinal);
    use sys::CUgraphMem_attribute as Attribute;
    let value: Value = match Attribute(id) {
        Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => |a| &a.used,
        Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => |a| &a.used_high,
        Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => |a| &a.reserved,
        Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => |a| &a.reserved_high,
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok((account, value))
}

entries! {
    fn graph_mem_get "cuDeviceGetGraphMemAttribute" (device: i32, id: u32, out: u64) {
        non_null(out)?;
        let (account, value) = attribute(device, id)?;
        put(out, value(&account).load(Ordering::Relaxed))
    }
    fn graph_mem_set "cuDeviceSetGraphMemAttribute" (device: i32, id: u32, value: u64) {
        non_null(value)?;
        let (account, high) = attribute(device, id)?;
        use sys::CUgraphMem_attribute as Attribute;
        // The high-water marks can only be reset.
        let now = match Attribute(id) {
            Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => &account.used,
            Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => &account.reserved,
            _ => return Err(Code::INVALID_VALUE),
        };
        if get::<u64>(value)? != 0 {
            return Err(Code::INVALID_VALUE);
        }
        high(&account).store(now.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }
    fn graph_mem_trim "cuDeviceGraphMemTrim" (device: i32) {
        account(device::by_ordinal(device)?.ordinal).trim();
        Ok(())
    }
    fn mem_alloc_get "cuGraphMemAllocNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::MemAlloc(a) => put(out, a.words()),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn mem_free_get "cuGraphMemFreeNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::MemFree(f) => put(out, f.address()),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

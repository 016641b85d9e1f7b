//! Graph-allocated memory.
//!
//! An allocation has its address as soon as its node is added, but is backed by memory only between its allocation and
//! its free; outside that time the address behaves like freed memory. Memory that is allocated when its graph is
//! destroyed stays allocated until it is freed.
//!
//! The liveness of an allocation is tracked twice: in launch order, to validate launches, and in execution order, to
//! validate accesses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cupyrite_engine::memory::{Parked, Reach, RegionKind};
use cupyrite_sys::driver::{
    self as sys, CUDA_MEM_ALLOC_NODE_PARAMS, CUmemAccessDesc, CUmemPoolProps,
};
use parking_lot::Mutex;

use super::memory_reuse::Claim;
use super::plan::Plan;
use super::{Code, Payload, payload_of};
use crate::driver::context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{Kept, get, get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::memory::pool;
use crate::driver::memory::queued;
use crate::driver::memory::space::space;
use crate::driver::stream::{OpPlacement, Stream};

const PINNED: sys::CUmemAllocationType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
const DEVICE: sys::CUmemLocationType = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;

/// Unit of the memory figures, as on an H200 (driver 580).
const UNIT: u64 = 32 << 20;

/// Memory figures of a device's graphs. As on a GPU, memory counts as used and reserved from the first allocation that
/// takes it until a trim, also after the graph has freed it: later allocations of any graph reuse it. The memory itself
/// returns to the system as soon as it is freed.
#[derive(Default)]
struct Account {
    /// Memory of the live allocations.
    live: AtomicU64,
    /// `USED_MEM_CURRENT` and `RESERVED_MEM_CURRENT`: a multiple of [`UNIT`].
    held: AtomicU64,
    used_high: AtomicU64,
    reserved_high: AtomicU64,
}

static ACCOUNTS: Mutex<BTreeMap<i32, Arc<Account>>> = Mutex::new(BTreeMap::new());

fn account(device: i32) -> Arc<Account> {
    ACCOUNTS.lock().entry(device).or_default().clone()
}

impl Account {
    /// Counts memory that an allocation takes: first memory that earlier ones have freed, then new memory.
    fn begin(&self, bytes: u64) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.hold(live);
    }

    /// Counts memory that a launch needs. Each of its allocations has separate memory, even if their lifetimes do not
    /// overlap.
    fn hold(&self, bytes: u64) {
        let held = bytes.next_multiple_of(UNIT);
        self.held.fetch_max(held, Ordering::Relaxed);
        self.used_high.fetch_max(held, Ordering::Relaxed);
        self.reserved_high.fetch_max(held, Ordering::Relaxed);
    }

    fn end(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts only the memory of live allocations.
    fn trim(&self) {
        let live = self.live.load(Ordering::Relaxed);
        self.held
            .store(live.next_multiple_of(UNIT), Ordering::Relaxed);
    }
}

/// Backing of an address.
enum Memory {
    /// Reserved.
    Parked(Parked),
    /// A live region of that size.
    Live(u64),
    /// The context that owned the region has been destroyed.
    Gone,
}

/// Memory for allocations, shared by the nodes that allocate it one after the other, and by their copies.
pub(super) struct Allocation {
    address: u64,
    /// The size of the largest allocation that it can be used for.
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
    fn new(request: &AllocationRequest) -> Res<Arc<Allocation>> {
        let AllocationRequest {
            owner,
            reach,
            device,
            ..
        } = *request;
        let size = request.size();
        let region =
            pool::with_relief(|| space().alloc_owned(size, 512, RegionKind::Device, owner, reach))?;
        let parked = space().park(region.base, |r| r.id == region.id)?;
        let account = account(device);
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

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Sets whether it is live after all work queued so far; returns whether it was.
    fn set_lives(&self, lives: bool) -> bool {
        if lives {
            queued::add(self.address, self.size);
        } else {
            queued::remove(self.address);
        }
        self.lives.swap(lives, Ordering::AcqRel)
    }

    /// Backs `size` bytes at the address with memory.
    fn begin(self: &Arc<Self>, size: u64) -> Res {
        let mut memory = self.memory.lock();
        match std::mem::replace(&mut *memory, Memory::Gone) {
            Memory::Parked(parked) => match space().unpark(parked, size, self.owner, self.reach) {
                Ok(_) => {
                    *memory = Memory::Live(size);
                    self.account.begin(size);
                    LIVING.lock().insert(self.address, self.clone());
                    Ok(())
                }
                Err(parked) => {
                    *memory = Memory::Parked(parked);
                    Err(Code::OUT_OF_MEMORY)
                }
            },
            Memory::Live(size) => {
                *memory = Memory::Live(size);
                Err(Code::INVALID_VALUE)
            }
            Memory::Gone => Err(Code::OUT_OF_MEMORY),
        }
    }

    /// Removes the memory.
    fn end(&self) -> Res {
        let mut memory = self.memory.lock();
        let Memory::Live(size) = *memory else {
            return Err(Code::INVALID_VALUE);
        };
        let parked = space().park(self.address, |r| r.size == size);
        self.account.end(size);
        *memory = parked.map_or(Memory::Gone, Memory::Parked);
        drop(memory);
        let last = LIVING.lock().remove(&self.address);
        drop(last);
        Ok(())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        queued::remove(self.address);
        let memory = std::mem::replace(&mut *self.memory.lock(), Memory::Gone);
        if let Memory::Parked(parked) = memory {
            ALLOCATIONS.lock().remove(&self.address);
            space().release(parked);
        } else {
            ALLOCATIONS.lock().remove(&self.address);
        }
    }
}

/// Validated parameters of an allocation node to be created.
pub(in crate::driver) struct AllocationRequest {
    pool: Kept<CUmemPoolProps>,
    access: Arc<[CUmemAccessDesc]>,
    size: u64,
    device: i32,
    owner: u64,
    reach: Reach,
}

impl AllocationRequest {
    /// Validates the caller's parameters.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a size of zero, and for properties other than pinned memory on an existing device;
    /// `NOT_SUPPORTED` for shareable memory.
    pub(super) fn read(given: &CUDA_MEM_ALLOC_NODE_PARAMS) -> Res<AllocationRequest> {
        const MAX_ACCESS_DESCRIPTORS: usize = 1024;
        let (props, count) = (&given.poolProps, given.accessDescCount);
        if props.allocType != PINNED
            || props.location.r#type != DEVICE
            || given.bytesize == 0
            || count > MAX_ACCESS_DESCRIPTORS
        {
            return Err(Code::INVALID_VALUE);
        }
        if props.handleTypes.0 != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let device = device::by_ordinal(pool::location_id(&props.location))
            .map_err(|_| Code::INVALID_VALUE)?;
        let access: Arc<[CUmemAccessDesc]> = match count {
            0 => Arc::from([]),
            n => {
                let descriptors = given.accessDescs.addr() as u64;
                non_null(descriptors)?;
                get_array::<CUmemAccessDesc>(descriptors, n)?.into()
            }
        };
        let mut reach = Reach::of(device.ordinal);
        for CUmemAccessDesc { location, flags } in access.iter() {
            let peer =
                device::by_ordinal(pool::location_id(location)).map_err(|_| Code::INVALID_VALUE)?;
            if location.r#type != DEVICE {
                return Err(Code::INVALID_VALUE);
            }
            reach = reach.with(peer.ordinal, pool::access_of(*flags)?);
        }
        Ok(AllocationRequest {
            pool: Kept(*props),
            access,
            size: given.bytesize as u64,
            device: device.ordinal,
            owner: context::current_any()?.map_or(0, |c| c.id),
            reach,
        })
    }

    /// The parameters of a captured `cuMemAllocAsync`.
    pub(in crate::driver) fn captured(
        size: u64,
        ordinal: i32,
        owner: u64,
    ) -> Res<AllocationRequest> {
        let device = device::by_ordinal(ordinal)?;
        let mut props = CUmemPoolProps {
            allocType: PINNED,
            ..CUmemPoolProps::default()
        };
        props.location.r#type = DEVICE;
        props.location.anon0.id = ordinal;
        Ok(AllocationRequest {
            pool: Kept(props),
            access: Arc::from([]),
            size,
            device: device.ordinal,
            owner,
            reach: Reach::of(device.ordinal),
        })
    }

    fn size(&self) -> u64 {
        self.size
    }

    /// Whether the memory can be used.
    pub(super) fn fits(&self, allocation: &Allocation) -> bool {
        self.size() <= allocation.size
            && self.owner == allocation.owner
            && self.reach == allocation.reach
            && Arc::ptr_eq(&account(self.device), &allocation.account)
    }

    /// The node, with the memory of an earlier one or with new memory.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY`.
    pub(in crate::driver) fn place(self, claim: Option<&Claim>) -> Res<Allocate> {
        let allocation = match claim {
            Some(claim) => claim.allocation.clone(),
            None => Allocation::new(&self)?,
        };
        Ok(Allocate {
            pool: self.pool,
            access: self.access,
            size: self.size,
            allocation,
        })
    }
}

/// An allocation node.
#[derive(Clone)]
pub(in crate::driver) struct Allocate {
    pool: Kept<CUmemPoolProps>,
    /// The access descriptors, to which the reported parameters point.
    access: Arc<[CUmemAccessDesc]>,
    size: u64,
    allocation: Arc<Allocation>,
}

impl Allocate {
    pub(in crate::driver) fn address(&self) -> u64 {
        self.allocation.address
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn params(&self) -> CUDA_MEM_ALLOC_NODE_PARAMS {
        CUDA_MEM_ALLOC_NODE_PARAMS {
            poolProps: self.pool.0,
            accessDescs: if self.access.is_empty() {
                std::ptr::null()
            } else {
                self.access.as_ptr()
            },
            accessDescCount: self.access.len(),
            bytesize: self.size as usize,
            dptr: self.address(),
        }
    }

    pub(super) fn run(&self) -> Res {
        self.allocation.begin(self.size)
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

    pub(super) fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
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
    if !found.set_lives(false) {
        return Some(Err(Code::INVALID_VALUE));
    }
    Some(Ok(move || found.end()))
}

/// Counts the memory of a launch together with all other live memory.
fn count<'a>(launched: impl Iterator<Item = &'a Arc<Allocation>>) {
    let mut needed: Vec<(&Arc<Account>, u64)> = Vec::new();
    let mut addresses = HashSet::new();
    for allocation in launched {
        addresses.insert(allocation.address);
        let account = &allocation.account;
        match needed.iter_mut().find(|(a, _)| Arc::ptr_eq(a, account)) {
            Some((_, bytes)) => *bytes += allocation.size,
            None => needed.push((account, allocation.size)),
        }
    }
    if needed.is_empty() {
        return;
    }
    let living = LIVING.lock();
    for (account, bytes) in needed {
        let others = living
            .values()
            .filter(|a| Arc::ptr_eq(&a.account, account) && !addresses.contains(&a.address));
        account.hold(bytes + others.map(|a| a.size).sum::<u64>());
    }
}

/// Validates a launch against the allocations that will be live when it runs, and records those that are live after it.
/// With `auto_free`, live allocations that the graph allocates again are freed first.
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
    count(after.values().map(|(allocation, _)| allocation));
    for allocation in stale {
        stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| {
            allocation.end().map_err(|_| Code::ILLEGAL_ADDRESS)
        });
    }
    for (allocation, lives) in after.into_values() {
        allocation.set_lives(lives);
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
        Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT
        | Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => |a| &a.held,
        Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => |a| &a.used_high,
        Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => |a| &a.reserved_high,
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok((account, value))
}

driver_entry_points! {
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
        let is_high = matches!(
            Attribute(id),
            Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH | Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
        );
        if !is_high || get::<u64>(value)? != 0 {
            return Err(Code::INVALID_VALUE);
        }
        high(&account).store(account.held.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }
    fn graph_mem_trim "cuDeviceGraphMemTrim" (device: i32) {
        account(device::by_ordinal(device)?.ordinal).trim();
        Ok(())
    }
    fn mem_alloc_get "cuGraphMemAllocNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::MemAlloc(a) => put(out, a.params()),
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

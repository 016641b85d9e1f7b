//! Multicast objects (CUDA driver API, "Multicast Object Management").
//!
//! Their handles are those of virtual memory: `cuMemMap`, `cuMemRelease`, `cuMemRetainAllocationHandle` and the functions
//! for shareable handles, in `virtual_memory`, take them too. Multicast needs compute capability 9.0, as on GPUs.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use cupyrite_engine::memory::{BindError, Bindable, Mappable, Multicast, files};
use cupyrite_sys::driver::{self as sys, CUmemAllocationHandleType, CUmulticastObjectProp};
use parking_lot::Mutex;

use crate::driver::device::{self, Device};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, fresh_id, handle_of};
use crate::driver::entry::logs::refuse;
use crate::driver::memory::pool;
use crate::driver::memory::space::space;
use crate::driver::memory::virtual_memory::{self, GRANULARITY};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: u64 =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0 as u64;
/// All `CUmemAllocationHandleType`s.
const HANDLE_TYPES: u64 = 0xf;
/// How long a call waits for the devices of the team that other threads may be adding.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// Prefix of the name of an exported object's file; the label follows.
const NAME: &str = "cupyrite-multicast-";

impl Device {
    /// Whether the device can be a member of a multicast object.
    pub(crate) fn has_multicast(&self) -> bool {
        self.capability.0 >= 9
    }
}

/// An object created by `cuMulticastCreate`.
struct CreatedObject {
    /// Dropped with its last handle and mapping.
    object: Weak<Multicast>,
    handle_types: u64,
    /// Keeps the object alive while handles exist, and the number of handles.
    held: Option<(Arc<Multicast>, u64)>,
}

/// By the id in the handle and in the object's tag.
static OBJECTS: Mutex<Option<HashMap<u64, CreatedObject>>> = Mutex::new(None);

fn with_entry<T>(
    matches: impl Fn(u64, &CreatedObject) -> bool,
    f: impl FnOnce(&mut CreatedObject) -> T,
) -> Option<T> {
    let mut guard = OBJECTS.lock();
    let all = guard.get_or_insert_default();
    all.retain(|_, e| e.object.strong_count() > 0);
    let mut found = all.iter_mut().filter(|(tag, e)| matches(**tag, e));
    found.next().map(|(_, e)| f(e))
}

/// Whether an entry has live handles of this value.
fn is(handle: u64) -> impl Fn(u64, &CreatedObject) -> bool {
    move |tag, e| e.held.is_some() && handle_of(HandleKind::Multicast, tag) == handle
}

/// The object of a handle, and the types as which it can be exported.
fn find(handle: u64) -> Option<(Arc<Multicast>, u64)> {
    with_entry(is(handle), |e| {
        Some((e.held.as_ref()?.0.clone(), e.handle_types))
    })
    .flatten()
}

fn object(handle: u64) -> Res<(Arc<Multicast>, u64)> {
    match find(handle) {
        Some(found) => Ok(found),
        None => refuse(Code::INVALID_VALUE, || {
            format!("mcHandle {handle:#x} is not a handle of a multicast object")
        }),
    }
}

/// The object of a handle for a mapping; `None` if it is a handle of something else.
pub(crate) fn mappable(handle: u64) -> Option<Res<Mappable>> {
    let (object, _) = find(handle)?;
    Some(complete(&object).map(|()| Mappable::Multicast(object)))
}

/// Releases one handle; `None` if it is a handle of something else.
pub(crate) fn release(handle: u64) -> Option<()> {
    let removed = with_entry(is(handle), |e| {
        if let Some((_, count)) = &mut e.held {
            *count -= 1;
            if *count > 0 {
                return None;
            }
        }
        e.held.take()
    })?;
    // Dropped outside the lock.
    drop(removed);
    Some(())
}

/// A new handle of a mapped object.
pub(crate) fn retain(object: Arc<Multicast>) -> Res<u64> {
    let tag = object.tag();
    let handle = handle_of(HandleKind::Multicast, tag);
    with_entry(
        |known, _| known == tag,
        |e| e.held.get_or_insert((object, 0)).1 += 1,
    )
    .map(|()| handle)
    .ok_or(Code::INVALID_VALUE)
}

/// A number of this process, by which it recognises its own descriptors.
fn process_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

/// Exports an object as a descriptor; `None` if the handle is one of something else.
pub(crate) fn export(handle: u64, kind: u32) -> Option<Res<OwnedFd>> {
    let (object, handle_types) = find(handle)?;
    if u64::from(kind) != DESCRIPTOR || handle_types & DESCRIPTOR == 0 {
        return Some(refuse(Code::INVALID_VALUE, || {
            format!(
                "handleType {kind}: the multicast object was created with handleTypes {handle_types:#x}"
            )
        }));
    }
    let name = format!("{NAME}{:x}-{}", process_number(), object.tag());
    Some(files::create(&name, object.size()).ok_or(Code::OPERATING_SYSTEM))
}

/// Imports an object that this process has exported; `None` if the descriptor is one of something else.
pub(crate) fn import(descriptor: i32) -> Option<Res<u64>> {
    let label = files::recognise(descriptor, NAME)?.label;
    let tag = label
        .split_once('-')
        .filter(|(process, _)| u64::from_str_radix(process, 16) == Ok(process_number()))
        .and_then(|(_, tag)| tag.parse().ok());
    let Some(tag) = tag else {
        return Some(refuse(Code::NOT_SUPPORTED, || {
            format!(
                "descriptor {descriptor} is a multicast object of another process; on the CPU device, each process has \
                 devices of its own, and only the process that created the object can import it"
            )
        }));
    };
    let live = with_entry(|known, _| known == tag, |e| e.object.upgrade()).flatten();
    Some(match live {
        Some(object) => retain(object),
        None => refuse(Code::INVALID_VALUE, || {
            format!("descriptor {descriptor}: the multicast object no longer exists")
        }),
    })
}

/// Validates `CUmulticastObjectProp`, save the size.
fn check(p: &CUmulticastObjectProp) -> Res {
    let devices = device::all()?;
    if !devices.iter().all(Device::has_multicast) {
        return refuse(Code::NOT_SUPPORTED, || {
            "multicast objects need compute capability 9.0: set CUPYRITE_CPU_COMPUTE_CAPABILITY"
                .into()
        });
    }
    if p.numDevices == 0 || p.numDevices as usize > devices.len() {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "prop.numDevices {}: expected 1 to {}, the number of devices (CUPYRITE_CPU_DEVICES)",
                p.numDevices,
                devices.len()
            )
        });
    }
    if p.flags != 0 || p.handleTypes & !HANDLE_TYPES != 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "prop.flags {:#x}, prop.handleTypes {:#x}: flags must be 0, and handleTypes a combination of \
                 CUmemAllocationHandleType",
                p.flags, p.handleTypes
            )
        });
    }
    if p.handleTypes & !DESCRIPTOR != 0 {
        return refuse(Code::NOT_SUPPORTED, || {
            format!(
                "prop.handleTypes {:#x}: only CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR is supported",
                p.handleTypes
            )
        });
    }
    Ok(())
}

/// Refuses numbers that are not multiples of the granularity.
fn whole(numbers: &[(&str, u64)]) -> Res {
    match numbers.iter().find(|(_, n)| !n.is_multiple_of(GRANULARITY)) {
        None => Ok(()),
        Some((name, n)) => refuse(Code::INVALID_VALUE, || {
            format!("{name} {n:#x} is not a multiple of the granularity of {GRANULARITY} bytes")
        }),
    }
}

/// Waits until all devices were added, which another thread may do.
fn complete(object: &Multicast) -> Res {
    if object.wait_until_complete(PATIENCE) {
        return Ok(());
    }
    refuse(Code::ILLEGAL_STATE, || {
        format!(
            "not all {} devices were added to the multicast object within {} seconds: call cuMulticastAddDevice for each before \
             memory is bound or the object is mapped",
            object.devices(),
            PATIENCE.as_secs()
        )
    })
}

/// Memory to be bound, the device that it belongs to (`None` for the host's), and whether it can be exported.
struct Source {
    memory: Bindable,
    device: Option<i32>,
    exportable: bool,
}

/// The memory of a handle.
fn of_handle(handle: u64, offset: u64) -> Res<Source> {
    let Some((physical, device, handle_types)) = virtual_memory::of_handle(handle) else {
        return refuse(Code::INVALID_VALUE, || {
            format!("memHandle {handle:#x} is not a handle of memory")
        });
    };
    Ok(Source {
        memory: Bindable::Physical(physical, offset),
        device,
        exportable: handle_types != 0,
    })
}

/// The memory at an address.
fn of_address(address: u64) -> Res<Source> {
    if let Some(mapping) = space().mapping_at(address)
        && let Mappable::Physical(physical) = mapping.memory
    {
        let kind = virtual_memory::kind_of(physical.tag());
        let (device, handle_types) = kind.ok_or(Code::INVALID_VALUE)?;
        return Ok(Source {
            memory: Bindable::Physical(physical, mapping.offset + (address - mapping.base)),
            device,
            exportable: handle_types != 0,
        });
    }
    match space().find(address).filter(pool::is_member) {
        Some(region) => Ok(Source {
            device: pool::device_of(&region),
            exportable: pool::handle_types(&region) != 0,
            memory: Bindable::Region(region, address),
        }),
        None => refuse(Code::INVALID_VALUE, || {
            format!("memptr {address:#x} is not memory of cuMemCreate or of a memory pool")
        }),
    }
}

/// Binds memory. `device` is the one that the caller names.
fn bind(
    handle: u64,
    device: Option<i32>,
    mc_offset: u64,
    source: impl FnOnce() -> Res<Source>,
    (size, flags): (u64, u64),
) -> Res {
    let (object, handle_types) = object(handle)?;
    if flags != 0 || size == 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!("size {size}, flags {flags:#x}: size must not be 0, and flags must be 0")
        });
    }
    whole(&[("mcOffset", mc_offset), ("size", size)])?;
    let source = source()?;
    let named = device
        .map(device::by_ordinal)
        .transpose()?
        .map(|d| d.ordinal);
    let owner = match (named, source.device) {
        (None, Some(owner)) => owner,
        // Memory of the host is bound for a device that is named. All its nodes are one.
        (Some(named), None) => named,
        (Some(named), Some(owner)) if named == owner => named,
        (named, owner) => {
            return refuse(Code::INVALID_DEVICE, || match (named, owner) {
                (Some(named), Some(owner)) => {
                    format!("dev {named}: the memory is that of device {owner}")
                }
                _ => "memory of the host can be bound for a device with the _v2 functions only"
                    .into(),
            });
        }
    };
    if !object.has(owner) && object.wait_until_complete(Duration::ZERO) {
        return refuse(Code::INVALID_DEVICE, || {
            format!("device {owner} was not added to the multicast object")
        });
    }
    complete(&object)?;
    if handle_types != 0 && !source.exportable {
        return refuse(Code::INVALID_VALUE, || {
            "a multicast object with handleTypes takes only memory that was created with requestedHandleTypes".into()
        });
    }
    object.bind(owner, mc_offset, &source.memory, size).or_else(|error| match error {
        BindError::OutOfMemory => Err(Code::OUT_OF_MEMORY),
        BindError::NotMember => refuse(Code::INVALID_DEVICE, || {
            format!("device {owner} was not added to the multicast object")
        }),
        BindError::Overlap => refuse(Code::INVALID_VALUE, || {
            format!("memory of device {owner} is already bound to a part of [{mc_offset:#x}, +{size:#x})")
        }),
        BindError::OutOfRange | BindError::NotBound => refuse(Code::INVALID_VALUE, || {
            format!(
                "{size:#x} bytes exceed the memory, or at mcOffset {mc_offset:#x} the multicast object of {:#x} bytes",
                object.size()
            )
        }),
    })
}

/// Refuses access rights of devices that are not in the team of an object that is mapped in the range.
pub(crate) fn check_access(address: u64, size: u64, devices: &[i32]) -> Res {
    let end = address.saturating_add(size);
    let mut at = address;
    while at < end
        && let Some(m) = space().mapping_at(at)
    {
        if let Mappable::Multicast(object) = &m.memory
            && let Some(other) = devices.iter().find(|d| !object.has(**d))
        {
            return refuse(Code::INVALID_DEVICE, || {
                format!(
                    "device {other} was not added to the multicast object mapped at {:#x}",
                    m.base
                )
            });
        }
        at = m.base + m.size;
    }
    Ok(())
}

driver_entry_points! {
    fn multicast_granularity "cuMulticastGetGranularity" (out: u64, prop: u64, option: u32) {
        non_null(out)?;
        check(&get(prop)?)?;
        if option > sys::CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_RECOMMENDED.0 {
            return refuse(Code::INVALID_VALUE, || format!("option {option}: expected a CUmulticastGranularity_flags"));
        }
        put(out, GRANULARITY)
    }
    fn multicast_create "cuMulticastCreate" (out: u64, prop: u64) {
        non_null(out)?;
        let prop = get::<CUmulticastObjectProp>(prop)?;
        check(&prop)?;
        let size = prop.size as u64;
        whole(&[("prop.size", size)])?;
        let object = space().create_multicast(size, prop.numDevices, fresh_id()).map_err(|_| Code::INVALID_VALUE)?;
        let tag = object.tag();
        let entry = CreatedObject {
            object: Arc::downgrade(&object),
            handle_types: prop.handleTypes,
            held: Some((object, 1)),
        };
        OBJECTS.lock().get_or_insert_default().insert(tag, entry);
        let handle = handle_of(HandleKind::Multicast, tag);
        put(out, handle).inspect_err(|_| { let _ = release(handle); })
    }
    fn multicast_add_device "cuMulticastAddDevice" (handle: u64, device: i32) {
        let (object, _) = object(handle)?;
        let device = device::by_ordinal(device)?.ordinal;
        if object.add(device) {
            return Ok(());
        }
        refuse(Code::INVALID_VALUE, || match object.has(device) {
            true => format!("device {device} was already added to the multicast object"),
            false => format!("all {} devices were already added to the multicast object", object.devices()),
        })
    }
    fn multicast_bind_mem "cuMulticastBindMem" (handle: u64, mc_offset: u64, memory: u64, offset: u64, size: u64, flags: u64) {
        whole(&[("memOffset", offset)])?;
        bind(handle, None, mc_offset, || of_handle(memory, offset), (size, flags))
    }
    fn multicast_bind_mem_v2 "cuMulticastBindMem_v2" (handle: u64, device: i32, mc_offset: u64, memory: u64, offset: u64, size: u64, flags: u64) {
        whole(&[("memOffset", offset)])?;
        bind(handle, Some(device), mc_offset, || of_handle(memory, offset), (size, flags))
    }
    fn multicast_bind_addr "cuMulticastBindAddr" (handle: u64, mc_offset: u64, address: u64, size: u64, flags: u64) {
        whole(&[("memptr", address)])?;
        bind(handle, None, mc_offset, || of_address(address), (size, flags))
    }
    fn multicast_bind_addr_v2 "cuMulticastBindAddr_v2" (handle: u64, device: i32, mc_offset: u64, address: u64, size: u64, flags: u64) {
        whole(&[("memptr", address)])?;
        bind(handle, Some(device), mc_offset, || of_address(address), (size, flags))
    }
    fn multicast_unbind "cuMulticastUnbind" (handle: u64, device: i32, mc_offset: u64, size: u64) {
        let (object, _) = object(handle)?;
        let device = device::by_ordinal(device)?.ordinal;
        whole(&[("mcOffset", mc_offset), ("size", size)])?;
        object.unbind(device, mc_offset, size).or_else(|error| match error {
            BindError::NotMember => refuse(Code::INVALID_DEVICE, || {
                format!("device {device} was not added to the multicast object")
            }),
            _ => refuse(Code::INVALID_VALUE, || {
                format!("[{mc_offset:#x}, +{size:#x}) is not a range that was bound for device {device}")
            }),
        })
    }
}

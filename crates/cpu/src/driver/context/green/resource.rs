//! `CUdevResource`: device resources as the caller holds them, and descriptors.
//!
//! The structures are plain values without an owner; their padding holds the identity of the resource.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_sys::driver::{self as sys, CU_DEV_SM_RESOURCE_GROUP_PARAMS};
use parking_lot::Mutex;

use super::Green;
use super::split::{self, Granularity, Group, SmSet};
use crate::driver::context;
use crate::driver::device::{self, Device};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, fresh_id, handle_of};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::stream::resolve;

/// `CUdevResource` as 64-bit words: type, padding of 92 bytes, 40 bytes of the type's structure, and a pointer.
type Words = [u64; 18];

/// Bytes of a `CUdevResource`.
const BYTES: u64 = 144;
/// First word of the type's structure.
const DATA: usize = 12;
/// Marks structures that this device has filled in.
const MAGIC: u32 = 0x4355_5052;

const SM: u32 = sys::CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM.0;
const WORKQUEUE_CONFIG: u32 = sys::CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG.0;
const WORKQUEUE: u32 = sys::CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE.0;
const BALANCED: u32 = sys::CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED.0;

/// Multiprocessors of a device.
#[derive(Clone, Copy)]
struct Sms {
    device: i32,
    set: SmSet,
    /// The split that it comes from; zero if it comes from a query.
    split: u64,
    granularity: Granularity,
    alignment: u32,
    flags: u32,
    /// Whether it is the remainder of a split.
    is_rest: bool,
}

/// `CUdevWorkqueueConfigResource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Workqueues {
    device: i32,
    limit: u32,
    scope: u32,
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Sms {
    /// Those of a device or of a green context.
    fn queried(device: &Device, set: SmSet) -> Sms {
        let granularity = Granularity::of(device.capability, device.threads as u32);
        Sms {
            device: device.ordinal,
            set,
            split: 0,
            granularity,
            alignment: granularity.alignment,
            flags: 0,
            is_rest: false,
        }
    }

    /// A part of these.
    fn part(&self, set: SmSet, split: u64, alignment: u32, flags: u32) -> Sms {
        Sms {
            set,
            split,
            alignment,
            flags,
            ..*self
        }
    }

    /// The remainder of a split.
    fn rest(&self, set: SmSet, split: u64, alignment: u32) -> Sms {
        Sms {
            is_rest: true,
            ..self.part(set, split, alignment, 0)
        }
    }

    /// An empty set is an invalid resource.
    fn words(&self) -> Words {
        let mut w = [0; 18];
        if self.set.len() == 0 {
            return w;
        }
        w[0] = pair(SM, MAGIC);
        w[1] = self.split;
        w[2] = pair(self.device as u32, self.is_rest.into());
        w[3..12].copy_from_slice(&self.set.0);
        let minimum = self.granularity.minimum.min(self.alignment);
        w[DATA] = pair(self.set.len(), minimum);
        w[DATA + 1] = pair(self.alignment, self.flags);
        w
    }

    fn read(address: u64) -> Res<Sms> {
        non_null(address)?;
        let w = get::<Words>(address)?;
        if w[0] as u32 != SM {
            return refuse(Code::INVALID_RESOURCE_TYPE, || {
                format!(
                    "the resource has type {}, not CU_DEV_RESOURCE_TYPE_SM",
                    w[0] as u32
                )
            });
        }
        let invalid = || {
            because(Code::INVALID_VALUE, || {
                "the resource does not come from this device's driver".into()
            })
        };
        if (w[0] >> 32) as u32 != MAGIC {
            return Err(invalid());
        }
        let device = device::by_ordinal(w[2] as i32).map_err(|_| invalid())?;
        let set = SmSet(std::array::from_fn(|i| w[3 + i]));
        if set.len() == 0 || !set.is_subset(&SmSet::first(device.threads as u32)) {
            return Err(invalid());
        }
        let (alignment, flags) = (w[DATA + 1] as u32, (w[DATA + 1] >> 32) as u32);
        Ok(Sms {
            is_rest: w[2] >> 32 != 0,
            ..Sms::queried(device, set).part(set, w[1], alignment, flags)
        })
    }
}

impl Workqueues {
    /// The configuration without green contexts.
    fn of(device: i32) -> Workqueues {
        let wanted = std::env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok();
        let limit = wanted.and_then(|text| text.trim().parse::<u32>().ok());
        Workqueues {
            device,
            limit: limit.map_or(8, |n| n.clamp(1, 32)),
            scope: 0,
        }
    }

    fn words(&self) -> Words {
        let mut w = [0; 18];
        w[0] = pair(WORKQUEUE_CONFIG, MAGIC);
        w[DATA] = pair(self.device as u32, self.limit);
        w[DATA + 1] = self.scope.into();
        w
    }

    fn from_words(w: &Words) -> Res<Workqueues> {
        let found = Workqueues {
            device: w[DATA] as i32,
            limit: (w[DATA] >> 32) as u32,
            scope: w[DATA + 1] as u32,
        };
        device::by_ordinal(found.device).map_err(|_| Code::INVALID_VALUE)?;
        if found.limit == 0 || found.scope > BALANCED {
            return refuse(Code::INVALID_VALUE, || {
                format!(
                    "the work queues have wqConcurrencyLimit {} and sharingScope {}; the limit is at least 1, the scope 0 or 1",
                    found.limit, found.scope
                )
            });
        }
        Ok(found)
    }
}

/// The resources of a green context.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Descriptor {
    pub(super) device: i32,
    pub(super) sms: SmSet,
    alignment: u32,
    workqueues: Workqueues,
}

/// Descriptors live as long as the process, so equal ones share a handle.
static DESCRIPTORS: Mutex<Option<HashMap<Descriptor, u64>>> = Mutex::new(None);

/// The descriptor of a handle.
///
/// # Errors
/// `INVALID_VALUE` for an invalid handle.
pub(super) fn descriptor(handle: u64) -> Res<Descriptor> {
    let descriptors = DESCRIPTORS.lock();
    let mut all = descriptors.iter().flatten();
    let found = all.find(|(_, h)| **h == handle);
    found.map(|(d, _)| *d).ok_or_else(|| {
        because(Code::INVALID_VALUE, || {
            format!("{handle:#x} is not a resource descriptor")
        })
    })
}

fn generate(resources: u64, count: u32) -> Res<u64> {
    /// Maximum number of resources in a descriptor.
    const MAX_RESOURCES: u32 = 4096;
    non_null(resources)?;
    if count == 0 || count > MAX_RESOURCES {
        return refuse(Code::INVALID_VALUE, || {
            format!("nbResources is {count}; it must be 1 to {MAX_RESOURCES}")
        });
    }
    let conflict =
        |why: &str| -> Res<u64> { refuse(Code::INVALID_RESOURCE_CONFIGURATION, || why.into()) };
    let (mut sms, mut workqueues): (Option<Sms>, Option<Workqueues>) = (None, None);
    for n in 0..u64::from(count) {
        let at = n.checked_mul(BYTES).and_then(|n| resources.checked_add(n));
        let at = at.ok_or(Code::INVALID_VALUE)?;
        let w = get::<Words>(at)?;
        match w[0] as u32 {
            SM => {
                let more = Sms::read(at)?;
                let Some(known) = &mut sms else {
                    sms = Some(more);
                    continue;
                };
                if more.device != known.device {
                    return conflict("the resources are of different devices");
                }
                if known.split == 0
                    || known.split != more.split
                    || known.alignment != more.alignment
                {
                    return conflict(
                        "several sets of multiprocessors must come from one split and have the same alignment",
                    );
                }
                if known.set.intersects(&more.set) {
                    return conflict("the sets of multiprocessors overlap");
                }
                known.set = known.set.union(&more.set);
                known.is_rest |= more.is_rest;
            }
            WORKQUEUE_CONFIG | WORKQUEUE => {
                if workqueues.is_some() {
                    return conflict("a descriptor has at most one resource of work queues");
                }
                if w[0] as u32 == WORKQUEUE && (w[0] >> 32) as u32 != MAGIC {
                    return Err(Code::INVALID_VALUE);
                }
                workqueues = Some(Workqueues::from_words(&w)?);
            }
            kind => {
                return refuse(Code::INVALID_RESOURCE_TYPE, || {
                    format!("resource {n} has type {kind}")
                });
            }
        }
    }
    let ordinal = match (&sms, &workqueues) {
        (Some(s), Some(w)) if s.device != w.device => {
            return conflict("the resources are of different devices");
        }
        (Some(s), _) => s.device,
        (None, Some(w)) => w.device,
        (None, None) => return Err(Code::INVALID_VALUE),
    };
    let device = device::by_ordinal(ordinal)?;
    let all = || Sms::queried(device, SmSet::first(device.threads as u32));
    let sms = sms.unwrap_or_else(all);
    // The remainder of a split is not aligned to clusters (observed on an H200).
    let most = if sms.is_rest { 2 } else { u32::MAX };
    let descriptor = Descriptor {
        device: ordinal,
        sms: sms.set,
        alignment: sms.alignment.min(most),
        workqueues: workqueues.unwrap_or_else(|| Workqueues::of(ordinal)),
    };
    let mut descriptors = DESCRIPTORS.lock();
    let handle = descriptors
        .get_or_insert_default()
        .entry(descriptor)
        .or_insert_with(|| handle_of(HandleKind::ResourceDescriptor, fresh_id()));
    Ok(*handle)
}

/// Writes a resource of a device, or of a green context on it.
pub(super) fn put_resource(out: u64, kind: u32, ordinal: i32, green: Option<&Green>) -> Res {
    non_null(out)?;
    let device = device::by_ordinal(ordinal)?;
    let words = match kind {
        SM => match green {
            Some(g) => {
                let sms = Sms::queried(device, g.resources.sms);
                sms.part(sms.set, 0, g.resources.alignment, 0).words()
            }
            None => Sms::queried(device, SmSet::first(device.threads as u32)).words(),
        },
        WORKQUEUE_CONFIG | WORKQUEUE => {
            let workqueues = green.map_or_else(
                || Workqueues::of(ordinal),
                |green| green.resources.workqueues,
            );
            let mut words = workqueues.words();
            words[0] = pair(kind, MAGIC);
            words
        }
        _ => {
            return refuse(Code::INVALID_RESOURCE_TYPE, || {
                format!("{kind} is not a CUdevResourceType of a device")
            });
        }
    };
    put(out, words)
}

/// Writes the groups and the rest of a split.
fn put_split(result: u64, rest: u64, groups: &[Sms], remainder: &Sms) -> Res {
    if result != 0 {
        for (n, group) in groups.iter().enumerate() {
            put(result + n as u64 * BYTES, group.words())?;
        }
    }
    if rest != 0 {
        put(rest, remainder.words())?;
    }
    Ok(())
}

fn split_groups(result: u64, count: u32, input: u64, rest: u64, flags: u32, params: u64) -> Res {
    non_null(params)?;
    let input = Sms::read(input)?;
    if flags != 0 || count == 0 || count > split::MAX_SMS {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "flags is {flags:#x}, nbGroups is {count}: flags must be 0, nbGroups 1 to {}",
                split::MAX_SMS
            )
        });
    }
    let given = get_array::<CU_DEV_SM_RESOURCE_GROUP_PARAMS>(params, count as usize)?;
    if given.iter().any(|g| g.reserved.iter().any(|&r| r != 0)) {
        return refuse(Code::INVALID_VALUE, || {
            "the reserved members of groupParams must be zero".into()
        });
    }
    let mut groups: Vec<Group> = given
        .iter()
        .map(|g| Group {
            count: g.smCount,
            coscheduled: g.coscheduledSmCount,
            preferred: g.preferredCoscheduledSmCount,
            flags: g.flags,
            domain: g.localityDomainId,
        })
        .collect();
    let (sets, left) = split::by_groups(input.set, input.granularity, &mut groups, result != 0)?;
    let id = fresh_id();
    let parts: Vec<Sms> = sets
        .iter()
        .zip(&groups)
        .map(|(set, g)| input.part(*set, id, g.unit(input.granularity), g.flags))
        .collect();
    let remainder = input.rest(left, id, input.granularity.alignment.min(2));
    for (n, group) in groups.iter().enumerate() {
        let params = params + (n * size_of::<CU_DEV_SM_RESOURCE_GROUP_PARAMS>()) as u64;
        put(params, group.count)?;
    }
    put_split(result, rest, &parts, &remainder)
}

fn split_by_count(result: u64, count: u64, input: u64, rest: u64, flags: u32, minimum: u32) -> Res {
    non_null(count)?;
    let input = Sms::read(input)?;
    if input.split != 0 {
        return refuse(Code::INVALID_RESOURCE_CONFIGURATION, || {
            "the result of a split can be split again by cuDevSmResourceSplit, or from its green context".into()
        });
    }
    let wanted = match result {
        0 => u32::MAX,
        _ => get::<u32>(count)?,
    };
    // A green context can have another alignment than its device.
    let granularity = input.granularity.with_alignment(input.alignment);
    let (sets, left) = split::by_count(input.set, granularity, flags, minimum, wanted)?;
    let id = fresh_id();
    let alignment = match flags & split::IGNORE_COSCHEDULING {
        0 => granularity.alignment,
        _ => granularity.alignment.min(2),
    };
    let parts: Vec<Sms> = sets
        .iter()
        .map(|set| input.part(*set, id, alignment, 0))
        .collect();
    put_split(result, rest, &parts, &input.rest(left, id, alignment))?;
    put(count, parts.len() as u32)
}

driver_entry_points! {
    fn device_resource "cuDeviceGetDevResource" (device: i32, out: u64, kind: u32) {
        put_resource(out, kind, device::by_ordinal(device)?.ordinal, None)
    }
    fn context_resource "cuCtxGetDevResource" (handle: u64, out: u64, kind: u32) {
        if handle == 0 {
            return refuse(Code::INVALID_CONTEXT, || "hCtx is null".into());
        }
        let current = context::entry_by_handle_or_current(handle)?;
        put_resource(out, kind, current.context.device, current.green.as_deref())
    }
    fn green_resource "cuGreenCtxGetDevResource" (handle: u64, out: u64, kind: u32) {
        let green: Arc<Green> = super::entries::find(handle)?;
        put_resource(out, kind, green.primary.device, Some(&*green))
    }
    fn stream_resource "cuStreamGetDevResource" | "cuStreamGetDevResource_ptsz" (stream: u64, out: u64, kind: u32) {
        let stream = resolve::look_up(stream, PER_THREAD)?;
        if kind != SM {
            return refuse(Code::INVALID_RESOURCE_TYPE, || {
                format!("{kind} is not a CUdevResourceType of a stream")
            });
        }
        put_resource(out, kind, stream.context.device, stream.green().map(|g| &**g))
    }
    fn split_count "cuDevSmResourceSplitByCount"
        (result: u64, count: u64, input: u64, rest: u64, flags: u32, minimum: u32) {
        split_by_count(result, count, input, rest, flags, minimum)
    }
    fn split "cuDevSmResourceSplit" (result: u64, count: u32, input: u64, rest: u64, flags: u32, params: u64) {
        split_groups(result, count, input, rest, flags, params)
    }
    fn generate_descriptor "cuDevResourceGenerateDesc" (out: u64, resources: u64, count: u32) {
        non_null(out)?;
        put(out, generate(resources, count)?)
    }
}

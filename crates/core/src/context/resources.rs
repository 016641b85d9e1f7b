//! Device resources (multiprocessors and work queues), and their partition.

use std::fmt;

use cupyrite_sys::driver::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUdevResource, CUdevResourceType, CUdevSmResourceGroup_flags,
    CUdevWorkqueueConfigScope, CUresult,
};

use crate::context::handle::{Context, Device};
use crate::error::{Error, Result, driver};

/// A resource without contents.
fn empty() -> Box<CUdevResource> {
    // SAFETY: integers, byte arrays and a pointer, for which zeros are valid.
    Box::new(unsafe { std::mem::zeroed::<CUdevResource>() })
}

/// Multiprocessors of a device, as a whole or a part: `CUdevResource` of type `CU_DEV_RESOURCE_TYPE_SM`.
///
/// A value describes a part of a device; it reserves nothing. [`Device::create_green_context`] does.
#[derive(Clone)]
pub struct SmResource {
    pub(super) raw: Box<CUdevResource>,
    /// Whether it is only a description of a split that was not made.
    pub(super) is_estimate: bool,
}

// SAFETY: a value without thread affinity. The driver's pointer in it is only passed back to the driver.
unsafe impl Send for SmResource {}
// SAFETY: a shared value is never modified.
unsafe impl Sync for SmResource {}

impl fmt::Debug for SmResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmResource")
            .field("sm_count", &self.sm_count())
            .field("coscheduled_alignment", &self.coscheduled_alignment())
            .field("is_estimate", &self.is_estimate)
            .finish()
    }
}

/// One group of [`SmResource::split`]: `CU_DEV_SM_RESOURCE_GROUP_PARAMS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmGroup {
    /// Number of multiprocessors; 0 for as many as are left.
    pub count: u32,
    /// Number of multiprocessors that are guaranteed to run the blocks of one cluster; 0 for the device's default.
    pub coscheduled: u32,
    /// Preferred value of `coscheduled`; 0 for none.
    pub preferred_coscheduled: u32,
    /// Whether multiprocessors that do not satisfy the co-scheduling constraints may be included.
    pub backfill: bool,
}

/// The result of [`SmResource::split`].
#[derive(Clone, Debug)]
pub struct SmSplit {
    /// The groups, in the order requested.
    pub groups: Vec<SmResource>,
    /// The multiprocessors that are in no group; may be empty.
    pub remainder: SmResource,
}

impl SmResource {
    fn new(raw: Box<CUdevResource>) -> SmResource {
        let is_estimate = false;
        SmResource { raw, is_estimate }
    }

    /// A copy that describes `count` multiprocessors.
    fn estimate(&self, count: u32) -> SmResource {
        let mut described = self.clone();
        described.raw.anon0.sm.smCount = count;
        described.is_estimate = true;
        described
    }

    /// Number of multiprocessors.
    pub fn sm_count(&self) -> u32 {
        // SAFETY: the constructors set the member of this type.
        unsafe { self.raw.anon0.sm.smCount }
    }

    /// Smallest number of multiprocessors of a part.
    pub fn min_partition_size(&self) -> u32 {
        // SAFETY: the constructors set the member of this type.
        unsafe { self.raw.anon0.sm.minSmPartitionSize }
    }

    /// Number of multiprocessors that are guaranteed to be co-scheduled.
    pub fn coscheduled_alignment(&self) -> u32 {
        // SAFETY: the constructors set the member of this type.
        unsafe { self.raw.anon0.sm.smCoscheduledAlignment }
    }

    /// `CUdevSmResourceGroup_flags`.
    pub fn flags(&self) -> u32 {
        // SAFETY: the constructors set the member of this type.
        unsafe { self.raw.anon0.sm.flags }
    }

    /// Whether it is the result of [`SmResource::estimate_split`], which no green context can use.
    pub fn is_estimate(&self) -> bool {
        self.is_estimate
    }

    /// The driver's structure.
    pub fn as_raw(&self) -> &CUdevResource {
        &self.raw
    }

    /// Splits the multiprocessors into disjoint groups. On drivers before CUDA 13.1, the groups must have the same size.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for counts that the device does not allow, `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION`
    /// if there are too few multiprocessors; [`Error::Unsupported`] for a split that needs a newer driver. Source:
    /// `cuDevSmResourceSplit`.
    pub fn split(&self, groups: &[SmGroup]) -> Result<SmSplit> {
        self.check_groups(groups)?;
        let mut made = vec![*empty(); groups.len()];
        let mut rest = empty();
        let mut params = parameters(groups);
        // SAFETY: the arrays have `groups.len()` elements; the driver keeps none of the addresses.
        let outcome = unsafe {
            driver!(cuDevSmResourceSplit(
                made.as_mut_ptr(),
                groups.len() as u32,
                &*self.raw,
                &mut *rest,
                0,
                params.as_mut_ptr()
            ))
        };
        match outcome {
            Err(Error::Load(_)) => return self.split_equally(groups),
            outcome => outcome.map_err(|error| self.with_counts(error, groups))?,
        }
        Ok(self.finish(made, rest))
    }

    /// The error of a failed split. The driver does not say which count it refuses: what the device allows is added.
    #[cold]
    fn with_counts(&self, error: Error, groups: &[SmGroup]) -> Error {
        if error.status().is_none() {
            return error;
        }
        let counts: Vec<u32> = groups.iter().map(|group| group.count).collect();
        error.with_log(&format!(
            "the counts are {counts:?}; expected multiples of {}, at least {}, of {} multiprocessors together",
            self.coscheduled_alignment(),
            self.min_partition_size(),
            self.sm_count()
        ))
    }

    fn check_groups(&self, groups: &[SmGroup]) -> Result<()> {
        if groups.is_empty() {
            return Err(Error::argument("SmResource::split", "groups", "is empty"));
        }
        if self.is_estimate {
            let problem = "is the result of an estimate, which cannot be split";
            return Err(Error::argument("SmResource::split", "self", problem));
        }
        Ok(())
    }

    fn finish(&self, made: Vec<CUdevResource>, rest: Box<CUdevResource>) -> SmSplit {
        let groups = made.into_iter().map(|raw| SmResource::new(Box::new(raw)));
        let is_some = rest.r#type == CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
        SmSplit {
            groups: groups.collect(),
            remainder: if is_some {
                SmResource::new(rest)
            } else {
                self.estimate(0)
            },
        }
    }

    /// The sizes that [`SmResource::split`] would return, without a split.
    ///
    /// # Errors
    ///
    /// As [`SmResource::split`]. A group for which nothing is left is no error here.
    pub fn estimate_split(&self, groups: &[SmGroup]) -> Result<SmSplit> {
        self.check_groups(groups)?;
        let mut rest = empty();
        let mut params = parameters(groups);
        // SAFETY: as in `split`; without results, the driver only fills in the parameters and the rest.
        let outcome = unsafe {
            driver!(cuDevSmResourceSplit(
                std::ptr::null_mut(),
                groups.len() as u32,
                &*self.raw,
                &mut *rest,
                0,
                params.as_mut_ptr()
            ))
        };
        let counts: Vec<u32> = match outcome {
            Err(Error::Load(_)) => {
                let split = self.split_equally(groups)?;
                split.groups.iter().map(SmResource::sm_count).collect()
            }
            outcome => {
                outcome.map_err(|error| self.with_counts(error, groups))?;
                params.iter().map(|p| p.smCount).collect()
            }
        };
        let used = counts.iter().fold(0, |n: u32, &c| n.saturating_add(c));
        Ok(SmSplit {
            groups: counts.iter().map(|&n| self.estimate(n)).collect(),
            remainder: self.estimate(self.sm_count().saturating_sub(used)),
        })
    }

    /// A split by `cuDevSmResourceSplitByCount`, for drivers that have no other.
    fn split_equally(&self, groups: &[SmGroup]) -> Result<SmSplit> {
        const IGNORE_COSCHEDULING: u32 = 1;
        let unsupported = |problem: &str| Error::Unsupported {
            function: "SmResource::split",
            problem: format!("{problem} need a driver of CUDA 13.1 (cuDevSmResourceSplit)"),
        };
        let first = groups[0];
        if groups.iter().any(|g| *g != first) {
            return Err(unsupported("groups of different sizes"));
        }
        if first.coscheduled != 0 || first.preferred_coscheduled != 0 {
            return Err(unsupported("numbers of co-scheduled multiprocessors"));
        }
        let alignment = self.coscheduled_alignment().max(1);
        let count = match first.count {
            0 if groups.len() > 1 => return Err(unsupported("several groups of unknown size")),
            0 => self.sm_count() / alignment * alignment,
            count => count,
        };
        let mut made = vec![*empty(); groups.len()];
        let mut rest = empty();
        let mut number = groups.len() as u32;
        let flags = if first.backfill {
            IGNORE_COSCHEDULING
        } else {
            0
        };
        // SAFETY: `made` has `number` elements; the driver keeps none of the addresses.
        unsafe {
            driver!(cuDevSmResourceSplitByCount(
                made.as_mut_ptr(),
                &mut number,
                &*self.raw,
                &mut *rest,
                flags,
                count
            ))
        }
        .map_err(|error| self.with_counts(error, groups))?;
        let split = self.finish(made, rest);
        // This function rounds up and creates fewer groups; the other one refuses such requests.
        let exact = |g: &SmResource| g.sm_count() == count;
        if number as usize != groups.len() || !split.groups.iter().all(exact) {
            let status = if number as usize == groups.len() {
                CUresult::CUDA_ERROR_INVALID_VALUE
            } else {
                CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
            };
            let error = Error::driver("cuDevSmResourceSplitByCount", status);
            return Err(self.with_counts(error, groups));
        }
        Ok(split)
    }
}

fn parameters(groups: &[SmGroup]) -> Vec<CU_DEV_SM_RESOURCE_GROUP_PARAMS> {
    const BACKFILL: u32 = CUdevSmResourceGroup_flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL.0;
    let groups = groups.iter();
    groups
        .map(|g| CU_DEV_SM_RESOURCE_GROUP_PARAMS {
            smCount: g.count,
            coscheduledSmCount: g.coscheduled,
            preferredCoscheduledSmCount: g.preferred_coscheduled,
            flags: if g.backfill { BACKFILL } else { 0 },
            localityDomainId: 0,
            reserved: [0; 11],
        })
        .collect()
}

/// The scope within which work queues are shared: `CUdevWorkqueueConfigScope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkqueueScope {
    /// All contexts of the device share all work queues.
    Device,
    /// Where possible, green contexts with this scope use different work queues.
    GreenContextBalanced,
}

/// The configuration of work queues: `CUdevResource` of type `CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG`.
#[derive(Clone)]
pub struct WorkqueueResource {
    pub(super) raw: Box<CUdevResource>,
    device: Device,
}

// SAFETY: a value without thread affinity. The driver's pointer in it is only passed back to the driver.
unsafe impl Send for WorkqueueResource {}
// SAFETY: a shared value is never modified: changes take `&mut self`.
unsafe impl Sync for WorkqueueResource {}

impl fmt::Debug for WorkqueueResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkqueueResource")
            .field("device", &self.device.ordinal())
            .field("concurrency_limit", &self.concurrency_limit())
            .field("scope", &self.scope())
            .finish()
    }
}

impl WorkqueueResource {
    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Expected maximum number of concurrent streams.
    pub fn concurrency_limit(&self) -> u32 {
        // SAFETY: the constructor's query set the member of this type.
        unsafe { self.raw.anon0.wqConfig.wqConcurrencyLimit }
    }

    /// Scope of sharing.
    pub fn scope(&self) -> WorkqueueScope {
        // SAFETY: the constructor's query set the member of this type.
        match unsafe { self.raw.anon0.wqConfig.sharingScope } {
            CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED => {
                WorkqueueScope::GreenContextBalanced
            }
            _ => WorkqueueScope::Device,
        }
    }

    /// Sets the expected maximum number of concurrent streams.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for 0.
    pub fn set_concurrency_limit(&mut self, limit: u32) -> Result<()> {
        if limit == 0 {
            return Err(Error::argument(
                "WorkqueueResource::set_concurrency_limit",
                "limit",
                "is 0; at least 1 is needed",
            ));
        }
        self.raw.anon0.wqConfig.wqConcurrencyLimit = limit;
        Ok(())
    }

    /// Sets the scope of sharing.
    pub fn set_scope(&mut self, scope: WorkqueueScope) {
        self.raw.anon0.wqConfig.sharingScope = match scope {
            WorkqueueScope::Device => CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX,
            WorkqueueScope::GreenContextBalanced => {
                CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED
            }
        };
    }

    /// The driver's structure.
    pub fn as_raw(&self) -> &CUdevResource {
        &self.raw
    }
}

/// A resource of [`Device::create_green_context`].
#[derive(Clone, Copy, Debug)]
pub enum DeviceResource<'a> {
    /// Multiprocessors.
    Sm(&'a SmResource),
    /// Work queues.
    Workqueue(&'a WorkqueueResource),
}

/// Calls a query of a resource.
fn query(
    kind: CUdevResourceType,
    call: impl FnOnce(*mut CUdevResource, CUdevResourceType) -> Result<()>,
) -> Result<Box<CUdevResource>> {
    let mut raw = empty();
    call(&mut *raw, kind)?;
    Ok(raw)
}

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
const WORKQUEUES: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG;

impl Device {
    fn resource(self, kind: CUdevResourceType) -> Result<Box<CUdevResource>> {
        // SAFETY: `out` is valid for writes.
        query(kind, |out, kind| unsafe {
            driver!(cuDeviceGetDevResource(self.handle(), out, kind))
        })
    }

    /// All multiprocessors of the device.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuDeviceGetDevResource`.
    pub fn sm_resource(self) -> Result<SmResource> {
        self.resource(SM).map(SmResource::new)
    }

    /// The work queues of the device.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_TYPE` on drivers before CUDA 13.1. Source: `cuDeviceGetDevResource`.
    pub fn workqueue_resource(self) -> Result<WorkqueueResource> {
        let raw = self.resource(WORKQUEUES)?;
        Ok(WorkqueueResource { raw, device: self })
    }
}

impl Context {
    fn resource(&self, kind: CUdevResourceType) -> Result<Box<CUdevResource>> {
        // SAFETY: the handle is live, and `out` is valid for writes.
        query(kind, |out, kind| unsafe {
            driver!(cuCtxGetDevResource(self.handle(), out, kind))
        })
    }

    /// The multiprocessors of the context: all of the device, or those of the green context.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuCtxGetDevResource`.
    pub fn sm_resource(&self) -> Result<SmResource> {
        self.resource(SM).map(SmResource::new)
    }

    /// The work queues of the context.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_TYPE` on drivers before CUDA 13.1. Source: `cuCtxGetDevResource`.
    pub fn workqueue_resource(&self) -> Result<WorkqueueResource> {
        let raw = self.resource(WORKQUEUES)?;
        let device = self.device();
        Ok(WorkqueueResource { raw, device })
    }
}

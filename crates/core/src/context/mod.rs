//! Devices and contexts, and the current context of each call.

pub(crate) mod capture_mode;
mod current;
mod device;
mod green;
mod handle;
mod lookup;
mod primary;
mod resources;
mod synchronize;

pub use capture_mode::RelaxedCapture;
pub use current::ContextGuard;
pub(crate) use current::current_handle;
pub use device::ComputeCapability;
pub use handle::{Context, Device};
pub use resources::{
    DeviceResource, SmGroup, SmResource, SmSplit, WorkqueueResource, WorkqueueScope,
};

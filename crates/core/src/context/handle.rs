//! Devices and contexts: what identifies them, and what they share.
//!
//! A device owns its primary context, and a context belongs to a device. Calls that use them are in the files beside this
//! one.

use std::fmt;
use std::sync::OnceLock;

use cupyrite_sys::driver::{CUcontext, CUdevice, CUgreenCtx};

use crate::error::{driver, report};
use crate::fork::ForkGeneration;
use crate::shared::Shared;

/// A CUDA device.
///
/// Opening a device initialises the driver and nothing else: the primary context is retained when it is first needed.
/// The value is a reference to the state of the device in this process, and `Copy`.
#[derive(Clone, Copy)]
pub struct Device {
    pub(super) shared: &'static DeviceState,
}

/// The state of a device in this process.
pub(super) struct DeviceState {
    pub(super) handle: CUdevice,
    pub(super) ordinal: usize,
    /// Retained on first use, never released.
    pub(super) primary: OnceLock<Context>,
}

/// A CUDA context: a device's address space and everything created in it.
///
/// Cheap to clone. Every object of this crate knows its context and makes it current for calls that need it, so
/// programs need not manage the current context.
///
/// The runtime API and other libraries share a device's primary context. This crate retains it once, on first use, and
/// keeps it until the process exits, so that no object outlives it. A green context
/// ([`Device::create_green_context`]) lives as long as its clones. Any other context belongs to its creator.
#[derive(Clone, Debug)]
pub struct Context {
    pub(super) inner: Shared<ContextState>,
}

#[derive(Debug)]
pub(super) struct ContextState {
    pub(super) handle: CUcontext,
    device: Device,
    /// Handles of the driver belong to one process.
    generation: ForkGeneration,
    /// The green context that this is, if this crate has created it.
    pub(super) green: Option<GreenContext>,
}

// SAFETY: context handles may be used from any thread (CUDA C++ Programming Guide, "Context"); this crate only passes
// them to the driver.
unsafe impl Send for ContextState {}
// SAFETY: context handles may be used from several threads at once: the driver synchronises.
unsafe impl Sync for ContextState {}

/// A green context that this crate has created.
#[derive(Debug)]
pub(super) struct GreenContext {
    pub(super) handle: CUgreenCtx,
    pub(super) context: CUcontext,
}

impl Drop for GreenContext {
    fn drop(&mut self) {
        if crate::fork::is_driver_ready() {
            // SAFETY: this value created the handle and is its only owner. Objects in the context keep it alive.
            report(unsafe { driver!(cuGreenCtxDestroy(self.handle)) });
        }
    }
}

impl ContextState {
    pub(super) fn new(handle: CUcontext, device: Device) -> ContextState {
        ContextState {
            handle,
            device,
            generation: ForkGeneration::current(),
            green: None,
        }
    }
}

impl Device {
    /// The ordinal, counted from 0.
    #[inline]
    pub fn ordinal(&self) -> usize {
        self.shared.ordinal
    }

    /// The driver's handle.
    #[inline]
    pub fn handle(&self) -> CUdevice {
        self.shared.handle
    }
}

impl Context {
    /// The driver's handle.
    #[inline]
    pub fn handle(&self) -> CUcontext {
        self.inner.handle
    }

    /// The device of the context.
    #[inline]
    pub fn device(&self) -> Device {
        self.inner.device
    }

    /// Whether the context belongs to this process, and not to its parent before a fork.
    #[inline]
    pub(crate) fn is_current_process(&self) -> bool {
        self.inner.generation.is_current()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.ordinal())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.ordinal() == other.ordinal()
    }
}
impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.ordinal().hash(state);
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Context {}

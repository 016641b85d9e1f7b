//! A device that belongs to one test.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::RefUnwindSafe;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cupyrite_sys::loader::Backend;
use parking_lot::Mutex;

use super::harness::{print_uncaptured, test_name};
use super::reservations::Reservations;
use crate::context::{Context, Device, current_handle};
use crate::error::{Error, Result, driver, report};
use crate::fork;
use crate::memory::{MemoryPool, PoolAttribute};

/// A [`Device`] that belongs to the calling test until it is dropped; see [the module](super). Its primary context is
/// current on the thread.
///
/// It stays on its thread. Other threads of the test use a copy of the device: `let device = *device;`.
#[must_use = "the device belongs to the test until this is dropped: bind it to a name"]
pub struct TestDevice {
    device: Device,
    reservations: &'static Reservations,
    state: Mutex<Begun>,
    denies_leaks: AtomicBool,
    /// The current context and the reservation belong to the thread: `Sync`, but not `Send`.
    thread: PhantomData<MutexGuard<'static, ()>>,
}

/// What the test found.
#[derive(Default)]
struct Begun {
    /// The thread's current context before.
    context: Option<Context>,
    /// Bytes in use; `None` if unknown.
    memory: Option<u64>,
    /// Why no other test can use the device.
    unusable: Option<String>,
}

impl TestDevice {
    /// Takes over the reservation of the device.
    pub(super) fn new(device: Device, reservations: &'static Reservations) -> TestDevice {
        TestDevice {
            device,
            reservations,
            state: Mutex::default(),
            denies_leaks: AtomicBool::new(false),
            thread: PhantomData,
        }
    }

    /// Resets the primary context if something has left it unusable that is not a test with a device of its own.
    pub(super) fn begin(&self) -> std::result::Result<(), String> {
        if let Err(fault) = wait(self.device) {
            print_uncaptured(&format!(
                "{}: code without a TestDevice left an error behind on device {}, which is reset: {fault}",
                test_name(),
                self.ordinal()
            ));
            if let Some(reason) = self.recover(&fault) {
                return Err(reason);
            }
        }
        self.state.lock().memory = memory_in_use(self.device);
        Ok(())
    }

    /// Makes the primary context current on the thread.
    pub(super) fn enter(&self) -> Result<()> {
        self.state.lock().context = Context::current()?;
        self.device.context()?.set_current()
    }

    /// Fails the test if it leaves device memory allocated. Without this call, that is only printed: the figure also
    /// contains memory that a test allocates once for all, such as the variables of a library in a `static`.
    ///
    /// On the CPU device, all allocations and the variables of loaded libraries count. On a GPU, those from the current
    /// memory pool count ([`MemoryPool::current`], `cuMemAllocAsync`): the driver counts nothing else per process.
    pub fn deny_leaks(&self) {
        self.denies_leaks.store(true, Ordering::Relaxed);
    }

    /// Runs `body`, waits for the device, and returns the error of a kernel that failed. Then the primary context is
    /// reset: streams, events and buffers from before are refused, libraries and kernels stay usable.
    ///
    /// ```no_run
    /// # fn check(kernel: cupyrite::Kernel) {
    /// use cupyrite::sys::driver::CUresult;
    /// use cupyrite::{LaunchConfig, test};
    ///
    /// let device = test::device();
    /// let fault = device.expect_fault(|| {
    ///     let stream = device.create_stream()?;
    ///     // SAFETY: the kernel executes `trap`, and nothing else.
    ///     unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 1), &())? };
    ///     stream.synchronize()
    /// });
    /// assert_eq!(fault.status(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If no kernel fails, also if `body` returns another error; if the context cannot be reset.
    #[track_caller]
    pub fn expect_fault(&self, body: impl FnOnce() -> Result<()>) -> Error {
        let result = body();
        let Err(fault) = wait(self.device) else {
            match result {
                Ok(()) => panic!(
                    "expected a fault on device {}, but no kernel failed",
                    self.ordinal()
                ),
                Err(error) => panic!(
                    "expected a fault on device {}; the body failed with another error: {error}",
                    self.ordinal()
                ),
            }
        };
        if let Some(reason) = self.recover(&fault) {
            panic!("{reason}");
        }
        report(self.device.context().and_then(Context::set_current));
        self.state.lock().memory = memory_in_use(self.device);
        match result {
            Err(error) if error.status() == fault.status() => error,
            _ => fault,
        }
    }

    /// Resets the primary context. Returns why the device is unusable, if that fails.
    fn recover(&self, fault: &Error) -> Option<String> {
        let done = reset(self.device).and_then(|()| wait(self.device));
        let reason = done.err().map(|error| {
            format!(
                "device {} is unusable since {} ({fault}): resetting its context failed ({error})",
                self.ordinal(),
                test_name()
            )
        });
        self.state.lock().unusable.clone_from(&reason);
        reason
    }

    /// What the test has left behind, as the messages that fail it and those that do not.
    fn end(&self) -> (Option<String>, Option<String>) {
        let begun = self.state.lock().memory;
        if let Err(fault) = wait(self.device) {
            let reason = self.recover(&fault);
            let ordinal = self.ordinal();
            // The test's own failure may be the consequence.
            let text = match thread::panicking() {
                true => format!("device {ordinal} was in an error state: {fault}"),
                false => format!(
                    "the test left a CUDA error behind on device {ordinal}: {fault}\nIf it is intended: device.expect_fault(|| ...)"
                ),
            };
            return (Some(text), reason);
        }
        // Unwinding may not have freed the test's memory yet; the test has failed for another reason.
        if thread::panicking() {
            return (None, None);
        }
        let (Some(before), Some(after)) = (begun, memory_in_use(self.device)) else {
            return (None, None);
        };
        if after <= before {
            return (None, None);
        }
        let text = format!(
            "the test left {} bytes of device memory allocated on device {} (buffers, loaded libraries)",
            after - before,
            self.ordinal()
        );
        match self.denies_leaks.load(Ordering::Relaxed) {
            true => (Some(text), None),
            false => (None, Some(text)),
        }
    }

    /// Restores the thread's current context.
    fn leave(&self) {
        let before = self.state.lock().context.take();
        let Ok(mine) = self.device.context() else {
            return;
        };
        if current_handle().is_ok_and(|current| current != mine.handle()) {
            return;
        }
        report(match before {
            Some(context) => context.set_current(),
            // SAFETY: null stands for no context.
            None => unsafe { driver!(cuCtxSetCurrent(std::ptr::null_mut())) },
        });
    }
}

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl RefUnwindSafe for TestDevice {}

impl Deref for TestDevice {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

impl fmt::Debug for TestDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TestDevice({})", self.ordinal())
    }
}

impl Drop for TestDevice {
    fn drop(&mut self) {
        // The reservation belongs to the parent, and a thread that this process does not have may hold its lock.
        if fork::is_forked_child() {
            return;
        }
        let (failure, note) = match self.state.get_mut().unusable {
            Some(_) => (None, None),
            None => self.end(),
        };
        self.leave();
        let unusable = self.state.get_mut().unusable.take();
        self.reservations.release(self.device.ordinal(), unusable);
        if let Some(note) = note {
            print_uncaptured(&format!("{}: {note}", test_name()));
        }
        match failure {
            // A second panic would end the process.
            Some(text) if thread::panicking() => eprintln!("{text}"),
            Some(text) => panic!("{text}"),
            None => {}
        }
    }
}

/// Waits for the primary context, and returns its error.
fn wait(device: Device) -> Result<()> {
    device.context()?.synchronize()
}

/// Resets the primary context, and makes it usable.
fn reset(device: Device) -> Result<()> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: a plain integer; both pointers are valid for writes. The objects of the context notice the reset.
    unsafe {
        driver!(cuDevicePrimaryCtxReset(device.handle()))?;
        driver!(cuDevicePrimaryCtxGetState(
            device.handle(),
            &mut flags,
            &mut active
        ))?;
    }
    if active == 0 {
        // On a GPU a reset context is inactive, although it was retained. Its handle stays the same. As every context of
        // `Device::context`, it is kept until the process exits.
        Context::retain_primary(device)?;
    }
    Ok(())
}

/// Bytes that this process has allocated on the device; `None` if unknown.
fn memory_in_use(device: Device) -> Option<u64> {
    if crate::backend().ok()? == Backend::Gpu {
        return MemoryPool::current(&device)
            .ok()?
            .attribute(PoolAttribute::UsedCurrent)
            .ok();
    }
    let processes = device.to_system_device().ok()?.compute_processes().ok()?;
    let mine = processes.iter().find(|info| info.pid == std::process::id());
    mine.map_or(Some(0), |info| info.used_memory)
}

//! Devices.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::OnceLock;

use cupyrite_sys::driver::{CUdevice, CUdevice_attribute, CUresult, CUuuid};

use crate::context::{Context, ContextGuard, current_handle};
use crate::error::{Error, Result, driver};
use crate::memory::typed::{Buffer, DeviceCopy};
use crate::stream::event::{Event, EventOptions, UniqueEvent};
use crate::stream::{Stream, StreamOptions};

/// A CUDA device.
///
/// Opening one initialises the driver and nothing else: the primary context comes with the first thing that needs it.
/// The value is a reference to what this process knows of the device; copy it freely.
#[derive(Clone, Copy)]
pub struct Device {
    shared: &'static Shared,
}

/// What the process knows of a device.
struct Shared {
    handle: CUdevice,
    ordinal: usize,
    /// Retained on first use, never released.
    primary: OnceLock<Context>,
}

static TABLE: OnceLock<Vec<Shared>> = OnceLock::new();

/// All devices, once the driver is initialised.
#[inline]
fn table() -> Result<&'static [Shared]> {
    match TABLE.get() {
        Some(table) => Ok(table),
        None => initialise(),
    }
}

#[cold]
fn initialise() -> Result<&'static [Shared]> {
    let mut count: c_int = 0;
    // SAFETY: `cuInit` takes a plain integer; `count` is a valid place for the result.
    unsafe {
        driver!(cuInit(0))?;
        crate::fork::mark_driver_used();
        driver!(cuDeviceGetCount(&mut count))?;
    }
    let mut made = Vec::new();
    for ordinal in 0..count {
        let mut handle = CUdevice::default();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDeviceGet(&mut handle, ordinal))? };
        made.push(Shared {
            handle,
            ordinal: ordinal as usize,
            primary: OnceLock::new(),
        });
    }
    // Where two threads come here at once, their tables are the same.
    Ok(TABLE.get_or_init(|| made))
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

/// A device's compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The number before the point.
    pub major: u32,
    /// The number after the point.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Device {
    /// Opens the device with the given ordinal, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there are not that many devices; [`Error::Load`] if there is no driver and the
    /// CPU device is ruled out; otherwise what the driver says.
    pub fn new(ordinal: usize) -> Result<Device> {
        let table = table()?;
        match table.get(ordinal) {
            Some(shared) => Ok(Device { shared }),
            None => {
                let problem = format!(
                    "is {ordinal}, but there {}",
                    match table.len() {
                        0 => "is no device".to_owned(),
                        1 => "is one device, number 0".to_owned(),
                        n => format!("are {n} devices, numbers 0 to {}", n - 1),
                    }
                );
                Err(Error::argument("Device::new", "ordinal", problem))
            }
        }
    }

    /// Number of devices.
    ///
    /// # Errors
    ///
    /// [`Error::Load`], or what the driver says; a machine with a driver but without a GPU gives
    /// `CUDA_ERROR_NO_DEVICE` from the driver's initialisation.
    pub fn count() -> Result<usize> {
        table().map(<[Shared]>::len)
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// As [`Device::count`].
    pub fn all() -> Result<Vec<Device>> {
        Ok(table()?.iter().map(|shared| Device { shared }).collect())
    }

    /// The device of the calling thread's current context; the first device where the thread has none.
    ///
    /// # Errors
    ///
    /// As [`Device::new`]. Source: `cuCtxGetCurrent`, `cuCtxGetDevice`.
    #[inline]
    pub fn current() -> Result<Device> {
        let table = table()?;
        // Asking for the device of no context would fail, and calls that fail wait for the log's callbacks; asking for
        // the context does not. Nearly always it is a primary one, which is known.
        let handle = current_handle()?;
        if handle.is_null() {
            return match table.first() {
                Some(shared) => Ok(Device { shared }),
                None => Device::new(0),
            };
        }
        let primary = |shared: &&Shared| {
            shared
                .primary
                .get()
                .is_some_and(|context| context.handle() == handle)
        };
        if let Some(shared) = table.iter().find(primary) {
            return Ok(Device { shared });
        }
        let mut device = CUdevice::default();
        // SAFETY: `device` is a valid place for the result.
        unsafe { driver!(cuCtxGetDevice(&mut device))? };
        Device::from_handle(device)
    }

    /// The device with this handle.
    #[inline]
    pub(crate) fn from_handle(handle: CUdevice) -> Result<Device> {
        let table = table()?;
        // Handles are ordinals wherever CUDA runs; that they are is looked at, not relied on.
        usize::try_from(handle)
            .ok()
            .and_then(|index| table.get(index))
            .filter(|shared| shared.handle == handle)
            .or_else(|| table.iter().find(|shared| shared.handle == handle))
            .map(|shared| Device { shared })
            .ok_or_else(|| Error::driver("cuCtxGetDevice", CUresult::CUDA_ERROR_INVALID_DEVICE))
    }

    /// The primary contexts that were retained so far.
    pub(crate) fn retained() -> impl Iterator<Item = &'static Context> {
        TABLE
            .get()
            .into_iter()
            .flatten()
            .filter_map(|shared| shared.primary.get())
    }

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

    /// The primary context. It is retained when it is first asked for, and kept until the process ends.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_OUT_OF_MEMORY` for one. Source: `cuDevicePrimaryCtxRetain`.
    #[inline]
    pub fn context(&self) -> Result<&'static Context> {
        match self.shared.primary.get() {
            Some(context) => Ok(context),
            None => self.retain(),
        }
    }

    #[cold]
    fn retain(self) -> Result<&'static Context> {
        // No lock of ours around a call that can take long: where two threads come here at once, both retain.
        let made = Context::retain_primary(self)?;
        if self.shared.primary.set(made).is_err() {
            // Another thread was first. The reference that this one took goes back, theirs stays.
            // SAFETY: it undoes exactly one retain.
            unsafe { driver!(cuDevicePrimaryCtxRelease(self.handle()))? };
        }
        match self.shared.primary.get() {
            Some(context) => Ok(context),
            None => unreachable!("it was set above, and it is never taken out"),
        }
    }

    /// The context that this device's work goes to on the calling thread: the current one if it is of this device, else
    /// the primary one.
    ///
    /// # Errors
    ///
    /// As [`Device::context`].
    #[inline]
    pub fn active_context(&self) -> Result<Context> {
        self.active().map(|(context, _)| context)
    }

    /// The same, and whether it is current.
    #[inline]
    fn active(&self) -> Result<(Context, bool)> {
        // There are devices, so the driver is initialised.
        let handle = current_handle()?;
        if !handle.is_null() {
            if let Some(primary) = self.shared.primary.get()
                && primary.handle() == handle
            {
                return Ok((primary.clone(), true));
            }
            // SAFETY: the driver has just named it.
            let current = unsafe { Context::from_handle(handle)? };
            if current.device() == *self {
                return Ok((current, true));
            }
        }
        Ok((self.context()?.clone(), false))
    }

    /// Has [`Device::active_context`] current on the calling thread while the guard lives, and returns both.
    ///
    /// # Errors
    ///
    /// As [`Device::context`].
    #[inline]
    pub fn enter(&self) -> Result<(ContextGuard, Context)> {
        match self.active()? {
            (context, true) => Ok((ContextGuard::already(), context)),
            (context, false) => Ok((context.enter()?, context)),
        }
    }

    /// Whether kernels of this device can reach the memory of another one.
    ///
    /// # Errors
    ///
    /// What the driver says. Source: `cuDeviceCanAccessPeer`.
    pub fn can_access_peer(&self, peer: Device) -> Result<bool> {
        let mut can: c_int = 0;
        // SAFETY: `can` is a valid place for the result.
        unsafe {
            driver!(cuDeviceCanAccessPeer(
                &mut can,
                self.handle(),
                peer.handle()
            ))?
        };
        Ok(can != 0)
    }

    /// Where the device is on the PCI bus: `domain:bus:device.function`, hexadecimal.
    ///
    /// # Errors
    ///
    /// What the driver says. Source: `cuDeviceGetPCIBusId`.
    pub fn pci_bus_id(&self) -> Result<String> {
        let mut text = [0 as c_char; 64];
        // SAFETY: the buffer is as long as the call is told.
        unsafe {
            driver!(cuDeviceGetPCIBusId(
                text.as_mut_ptr(),
                text.len() as c_int,
                self.handle()
            ))?
        };
        text[text.len() - 1] = 0;
        // SAFETY: terminated just above.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }
            .to_string_lossy()
            .into_owned())
    }

    /// The device's name; that of the CPU device begins with `CPU`.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn name(&self) -> Result<String> {
        let mut name = [0 as c_char; 256];
        // SAFETY: the buffer is as long as the call is told.
        unsafe {
            driver!(cuDeviceGetName(
                name.as_mut_ptr(),
                name.len() as c_int,
                self.handle()
            ))?
        };
        name[name.len() - 1] = 0;
        // SAFETY: terminated just above.
        Ok(unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned())
    }

    /// The device's UUID.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: `uuid` is a valid place for the result.
        unsafe { driver!(cuDeviceGetUuid(&mut uuid, self.handle()))? };
        Ok(uuid.bytes.map(|b| b as u8))
    }

    /// Bytes of memory.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn total_memory(&self) -> Result<usize> {
        let mut bytes = 0usize;
        // SAFETY: `bytes` is a valid place for the result.
        unsafe { driver!(cuDeviceTotalMem(&mut bytes, self.handle()))? };
        Ok(bytes)
    }

    /// One attribute.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that the driver does not know.
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        let mut value: c_int = 0;
        // SAFETY: `value` is a valid place for the result.
        unsafe { driver!(cuDeviceGetAttribute(&mut value, attribute, self.handle()))? };
        Ok(value)
    }

    /// The compute capability, such as 9.0.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn compute_capability(&self) -> Result<ComputeCapability> {
        let major =
            self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor =
            self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(ComputeCapability {
            major: major as u32,
            minor: minor as u32,
        })
    }

    /// Makes a stream that does not wait for the legacy default stream.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn create_stream(&self) -> Result<Stream> {
        self.create_stream_with(&StreamOptions::default())
    }

    /// Makes a stream with options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a priority that the device does not have; otherwise what the driver says.
    pub fn create_stream_with(&self, options: &StreamOptions) -> Result<Stream> {
        let (_entered, context) = self.enter()?;
        Stream::create(context, options)
    }

    /// Makes an event.
    ///
    /// # Errors
    ///
    /// What the driver says. Source: `cuEventCreate`.
    pub fn create_event(&self, options: &EventOptions) -> Result<Event> {
        self.create_unique_event(options).map(UniqueEvent::share)
    }

    /// As [`Device::create_event`], for one owner who may never share it.
    ///
    /// # Errors
    ///
    /// As [`Device::create_event`].
    #[inline(always)]
    pub fn create_unique_event(&self, options: &EventOptions) -> Result<UniqueEvent> {
        // Common, and soon said; `enter` would say the same.
        if let Some(primary) = self.shared.primary.get()
            && current_handle()? == primary.handle()
        {
            return UniqueEvent::create_here(primary.clone(), options);
        }
        // By value, so that the options need no place in memory.
        self.create_event_elsewhere(*options)
    }

    /// [`Device::create_unique_event`] where the primary context is not current.
    #[inline(never)]
    fn create_event_elsewhere(self, options: EventOptions) -> Result<UniqueEvent> {
        let (_entered, context) = self.enter()?;
        UniqueEvent::create(context, &options)
    }

    /// Allocates memory for `len` elements, contents unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size overflows; `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn buffer<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self.context()?, len)
    }

    /// Allocates memory for `len` elements and zeroes it.
    ///
    /// # Errors
    ///
    /// As [`Device::buffer`].
    pub fn buffer_zeroed<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.buffer(len)?;
        buffer.zero()?;
        Ok(buffer)
    }

    /// Allocates memory and copies `data` into it.
    ///
    /// # Errors
    ///
    /// As [`Device::buffer`].
    pub fn buffer_from<T: DeviceCopy>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.buffer(data.len())?;
        buffer.copy_from(data)?;
        Ok(buffer)
    }

    /// Waits until all work of the device is done: of the current context if it is of this device, else of the primary
    /// one.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn synchronize(&self) -> Result<()> {
        let (_entered, context) = self.enter()?;
        context.synchronize()
    }
}

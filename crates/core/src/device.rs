//! Devices.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use cupyrite_sys::driver::{CUdevice, CUdevice_attribute, CUuuid};

use crate::context::Context;
use crate::error::{Error, Result, driver};
use crate::memory::{Buffer, DeviceCopy};
use crate::stream::{Stream, StreamOptions};

/// A CUDA device and its primary context.
///
/// Cheap to clone. Opening a device initialises the driver and retains the device's primary context.
#[derive(Clone, Debug)]
pub struct Device {
    handle: CUdevice,
    ordinal: usize,
    context: Context,
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
        let count = Self::count()?;
        if ordinal >= count {
            let problem = format!(
                "is {ordinal}, but there {}",
                match count {
                    0 => "is no device".to_owned(),
                    1 => "is one device, number 0".to_owned(),
                    n => format!("are {n} devices, numbers 0 to {}", n - 1),
                }
            );
            return Err(Error::argument("Device::new", "ordinal", problem));
        }
        let mut handle: CUdevice = Default::default();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDeviceGet(&mut handle, ordinal as c_int))? };
        let context = Context::primary(handle, ordinal)?;
        Ok(Device {
            handle,
            ordinal,
            context,
        })
    }

    /// Number of devices.
    ///
    /// # Errors
    ///
    /// [`Error::Load`], or what the driver says; a machine with a driver but without a GPU gives
    /// `CUDA_ERROR_NO_DEVICE` from the driver's initialisation.
    pub fn count() -> Result<usize> {
        let mut count: c_int = 0;
        // SAFETY: `cuInit` takes a plain integer; `count` is a valid place for the result.
        unsafe {
            driver!(cuInit(0))?;
            driver!(cuDeviceGetCount(&mut count))?;
        }
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// As [`Device::count`] and [`Device::new`].
    pub fn all() -> Result<Vec<Device>> {
        (0..Self::count()?).map(Device::new).collect()
    }

    /// The ordinal, counted from 0.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The driver's handle.
    pub fn handle(&self) -> CUdevice {
        self.handle
    }

    /// The primary context.
    pub fn context(&self) -> &Context {
        &self.context
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
                self.handle
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
        unsafe { driver!(cuDeviceGetUuid(&mut uuid, self.handle))? };
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
        unsafe { driver!(cuDeviceTotalMem(&mut bytes, self.handle))? };
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
        unsafe { driver!(cuDeviceGetAttribute(&mut value, attribute, self.handle))? };
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
        Stream::new(&self.context, &StreamOptions::default())
    }

    /// Makes a stream with options.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn create_stream_with(&self, options: &StreamOptions) -> Result<Stream> {
        Stream::new(&self.context, options)
    }

    /// Allocates memory for `len` elements, contents unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the size overflows; `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn buffer<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(&self.context, len)
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

    /// Waits until all work of the device's primary context is done.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn synchronize(&self) -> Result<()> {
        self.context.synchronize()
    }
}

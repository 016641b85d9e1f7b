//! Kernels of loaded code.

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use cupyrite_sys::driver::{CUdevice, CUfunction, CUfunction_attribute, CUkernel, CUresult};

use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::module::library::{self, Library};

/// Attributes of a kernel, as the driver names them.
pub use cupyrite_sys::driver::CUfunction_attribute as FunctionAttribute;

/// Where a kernel parameter lies in the parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// A kernel; cheap to clone. It keeps its library loaded, and belongs to no context: it runs in that of the stream it
/// is launched in.
#[derive(Clone, Debug)]
pub struct Kernel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUkernel,
    name: OnceLock<Box<str>>,
    /// Kept loaded; none for a foreign handle, whose owner sees to that.
    library: Option<Library>,
    params: OnceLock<Option<Box<[ParamInfo]>>>,
}

// SAFETY: kernel handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; what changes after construction is in `OnceLock`s.
unsafe impl Sync for Inner {}

impl Kernel {
    pub(crate) fn from_library(handle: CUkernel, name: &str, library: Library) -> Kernel {
        Kernel {
            inner: Arc::new(Inner {
                handle,
                name: OnceLock::from(Box::from(name)),
                library: Some(library),
                params: OnceLock::new(),
            }),
        }
    }

    /// A kernel that something else has loaded.
    ///
    /// A handle that this crate has given out keeps its library loaded again; for one of another origin, `library`
    /// is kept where it is given.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the handle is null.
    ///
    /// # Safety
    ///
    /// The handle must be that of a kernel, whose library stays loaded for as long as this kernel lives.
    pub unsafe fn from_handle(handle: CUkernel, library: Option<Library>) -> Result<Kernel> {
        if handle.is_null() {
            let problem = "is null; expected the handle of a kernel";
            return Err(Error::argument("Kernel::from_handle", "handle", problem));
        }
        let library = library::of_kernel(handle).or(library);
        Ok(Kernel {
            inner: Arc::new(Inner {
                handle,
                name: OnceLock::new(),
                library,
                params: OnceLock::new(),
            }),
        })
    }

    /// Its name in the code; empty for a foreign handle whose driver cannot tell (before CUDA 12.3).
    pub fn name(&self) -> &str {
        self.inner.name.get_or_init(|| {
            if self.check_loaded("cuKernelGetName").is_err() {
                return Box::default();
            }
            // SAFETY: the handle is live, as `from_handle` demands.
            let name = unsafe { library::kernel_name(self.handle()) };
            name.unwrap_or_default().into()
        })
    }

    /// The driver's handle; valid while this kernel lives.
    #[inline]
    pub fn handle(&self) -> CUkernel {
        self.inner.handle
    }

    /// An error in place of a driver call that would use a kernel of an unloaded library: NVIDIA's driver crashes.
    #[inline(always)]
    pub(crate) fn check_loaded(&self, call: &'static str) -> Result<()> {
        match &self.inner.library {
            Some(library) if !library.is_loaded() => Err(self.unloaded(call)),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn unloaded(&self, call: &'static str) -> Error {
        let name = self.inner.name.get().map_or("", |name| name);
        library::unloaded(call, &format!("the library of kernel `{name}`"))
    }

    /// The handle as the functions take it that know kernels of a context (`cuLaunchKernel`, `cuOccupancy...`): they
    /// accept a kernel without context too, and then mean the context of the stream or the current one.
    #[inline]
    pub fn function(&self) -> CUfunction {
        self.inner.handle.cast()
    }

    /// The function that this kernel is in the context that is current.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` if none is current; errors of loading the code there.
    pub fn function_for_current_context(&self) -> Result<CUfunction> {
        self.check_loaded("cuKernelGetFunction")?;
        let mut function: CUfunction = std::ptr::null_mut();
        // SAFETY: `function` is a valid place for the result, the handle is live.
        unsafe { driver!(cuKernelGetFunction(&mut function, self.handle()))? };
        Ok(function)
    }

    /// The library that it belongs to; `None` for a foreign handle.
    pub fn library(&self) -> Option<&Library> {
        self.inner.library.as_ref()
    }

    /// Its parameters, asked for once; `None` where the driver cannot tell.
    #[inline]
    pub fn params(&self) -> Option<&[ParamInfo]> {
        match self.inner.params.get() {
            Some(params) => params.as_deref(),
            None => self.try_params().ok().flatten(),
        }
    }

    /// As [`Kernel::params`], where they were asked for before: the driver is not called, which may have to compile and load
    /// the code for its answer.
    #[inline]
    pub fn cached_params(&self) -> Option<Option<&[ParamInfo]>> {
        self.inner.params.get().map(Option::as_deref)
    }

    /// Its parameters, asked for once; `None` where the driver is too old to tell (before CUDA 12.4).
    ///
    /// # Errors
    ///
    /// What the driver says; code that is compiled on first use may fail here.
    pub fn try_params(&self) -> Result<Option<&[ParamInfo]>> {
        if let Some(params) = self.inner.params.get() {
            return Ok(params.as_deref());
        }
        self.check_loaded("cuKernelGetParamInfo")?;
        // SAFETY: the handle is live.
        let ask = || unsafe { params_of(self.handle()) };
        let params = match ask() {
            // Code that is loaded when it is first used takes a context for that; any device's will do.
            Err(e) if e.status() == Some(CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
                let _entered = Device::new(0)?.enter()?;
                ask()?
            }
            other => other?,
        };
        Ok(self.inner.params.get_or_init(|| params).as_deref())
    }

    /// One attribute on a device, such as the registers a thread needs.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that the driver does not know.
    pub fn attribute(&self, device: &Device, attribute: CUfunction_attribute) -> Result<i32> {
        match self.attribute_on(device.handle(), attribute) {
            // The code is compiled when it is first used on a device, and that takes a context.
            Err(e) if e.status() == Some(CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
                let _entered = device.enter()?;
                self.attribute_on(device.handle(), attribute)
            }
            other => other,
        }
    }

    /// The same with the driver's handle of a device.
    pub(crate) fn attribute_on(
        &self,
        device: CUdevice,
        attribute: CUfunction_attribute,
    ) -> Result<i32> {
        self.check_loaded("cuKernelGetAttribute")?;
        let mut value: c_int = 0;
        // SAFETY: `value` is a valid place for the result, the handle is live.
        unsafe {
            driver!(cuKernelGetAttribute(
                &mut value,
                attribute,
                self.handle(),
                device
            ))?
        };
        Ok(value)
    }

    /// Sets an attribute on a device, such as the largest dynamic shared memory.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that cannot be set, or a value out of its range.
    pub fn set_attribute(
        &self,
        device: &Device,
        attribute: CUfunction_attribute,
        value: i32,
    ) -> Result<()> {
        self.check_loaded("cuKernelSetAttribute")?;
        // SAFETY: the handle is live.
        unsafe {
            driver!(cuKernelSetAttribute(
                attribute,
                value,
                self.handle(),
                device.handle()
            ))
        }
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Kernel {}

impl std::hash::Hash for Kernel {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.handle().hash(state);
    }
}

/// The kernel's parameters, or `None` where the driver is too old to tell (before CUDA 12.4).
///
/// # Safety
///
/// The handle must be of a kernel whose library is loaded.
unsafe fn params_of(handle: CUkernel) -> Result<Option<Box<[ParamInfo]>>> {
    let mut params = Vec::new();
    loop {
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: the handle is live, both results have valid places.
        match unsafe {
            driver!(cuKernelGetParamInfo(
                handle,
                params.len(),
                &mut offset,
                &mut size
            ))
        } {
            Ok(()) => params.push(ParamInfo { offset, size }),
            // The documented end of the list.
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_INVALID_VALUE,
                ..
            }) => break,
            Err(Error::Load(_)) => return Ok(None),
            Err(e) => return Err(e),
        }
    }
    Ok(Some(params.into()))
}

//! Kernels of loaded libraries.

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use cupyrite_sys::driver::{CUdevice, CUfunction, CUfunction_attribute, CUkernel, CUresult};

use crate::context::Device;
use crate::error::{Error, Result, driver};
use crate::module::library::{self, Library};
use crate::module::signature::ParamKind;

/// Attributes of a kernel, as the driver names them.
pub use cupyrite_sys::driver::CUfunction_attribute as FunctionAttribute;

/// The position of a parameter in the kernel's parameter block, and what it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// What it accepts, if the kernel's PTX is at hand: see [`ObjectCode::kernel`](crate::ObjectCode::kernel).
    pub kind: ParamKind,
}

/// A kernel; cheap to clone. It keeps its library loaded. It belongs to no context, and runs in that of the stream in
/// which it is launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    inner: Arc<KernelState>,
}

#[derive(Debug)]
struct KernelState {
    handle: CUkernel,
    name: OnceLock<Box<str>>,
    /// The library, kept loaded; `None` for a borrowed handle, whose owner keeps it.
    library: Option<Library>,
    params: OnceLock<Option<Box<[ParamInfo]>>>,
    /// The kinds of the parameters; empty if they are unknown.
    kinds: Arc<[ParamKind]>,
}

// SAFETY: kernel handles may be used from any thread.
unsafe impl Send for KernelState {}
// SAFETY: the driver synchronises calls with the handle; later changes are in `OnceLock`s.
unsafe impl Sync for KernelState {}

impl Kernel {
    pub(crate) fn from_library(handle: CUkernel, name: &str, library: Library) -> Kernel {
        Kernel {
            inner: Arc::new(KernelState {
                handle,
                name: OnceLock::from(Box::from(name)),
                library: Some(library),
                params: OnceLock::new(),
                kinds: Arc::default(),
            }),
        }
    }

    /// Adds the kinds of the parameters. For a kernel without clones.
    pub(crate) fn with_kinds(mut self, kinds: Arc<[ParamKind]>) -> Kernel {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.kinds = kinds;
        }
        self
    }

    /// Borrows a kernel of another owner.
    ///
    /// A handle that came from this crate keeps its library loaded again; for another handle, `library` is kept if it
    /// is given.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the handle is null.
    ///
    /// # Safety
    ///
    /// The handle must be that of a kernel whose library stays loaded while this value lives.
    pub unsafe fn from_handle(handle: CUkernel, library: Option<Library>) -> Result<Kernel> {
        if handle.is_null() {
            let problem = "is null; expected the handle of a kernel";
            return Err(Error::argument("Kernel::from_handle", "handle", problem));
        }
        let library = library::library_of_kernel(handle).or(library);
        Ok(Kernel {
            inner: Arc::new(KernelState {
                handle,
                name: OnceLock::new(),
                library,
                params: OnceLock::new(),
                kinds: Arc::default(),
            }),
        })
    }

    /// Its name in the code; empty for a borrowed handle if the driver cannot tell (before CUDA 12.3), and for an
    /// unloaded library.
    pub fn name(&self) -> &str {
        self.inner.name.get_or_init(|| {
            if self.check_loaded("cuKernelGetName").is_err() {
                return Box::default();
            }
            // SAFETY: the handle is live, as `from_handle` requires.
            let name = unsafe { library::kernel_name(self.handle()) };
            name.unwrap_or_default().into()
        })
    }

    /// The driver's handle; valid while this kernel lives.
    #[inline]
    pub fn handle(&self) -> CUkernel {
        self.inner.handle
    }

    /// An error instead of a driver call on a kernel of an unloaded library, which crashes NVIDIA's driver.
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

    /// The handle for functions that take a `CUfunction` (`cuLaunchKernel`, `cuOccupancy...`): they accept a kernel,
    /// too, and then use the context of the stream or the current one.
    #[inline]
    pub fn function(&self) -> CUfunction {
        self.inner.handle.cast()
    }

    /// The kernel's function in the current context.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` if no context is current; errors of loading the code there.
    pub fn function_for_current_context(&self) -> Result<CUfunction> {
        self.check_loaded("cuKernelGetFunction")?;
        let mut function: CUfunction = std::ptr::null_mut();
        // SAFETY: `function` is valid for writes, the handle is live.
        unsafe { driver!(cuKernelGetFunction(&mut function, self.handle()))? };
        Ok(function)
    }

    /// Its library; `None` for a borrowed handle.
    pub fn library(&self) -> Option<&Library> {
        self.inner.library.as_ref()
    }

    /// An address that no other kernel has while a clone of this one lives.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Its parameters, queried once; `None` if the driver cannot tell.
    #[inline]
    pub fn params(&self) -> Option<&[ParamInfo]> {
        match self.inner.params.get() {
            Some(params) => params.as_deref(),
            None => self.try_params().ok().flatten(),
        }
    }

    /// [`Kernel::params`] if they were queried before. Never calls the driver, which may have to compile and load the
    /// code for the answer.
    #[inline]
    pub fn cached_params(&self) -> Option<Option<&[ParamInfo]>> {
        self.inner.params.get().map(Option::as_deref)
    }

    /// Its parameters, queried once; `None` if the driver is too old (before CUDA 12.4).
    ///
    /// # Errors
    ///
    /// The driver's error; code that is compiled on first use may fail here.
    pub fn try_params(&self) -> Result<Option<&[ParamInfo]>> {
        if let Some(params) = self.inner.params.get() {
            return Ok(params.as_deref());
        }
        self.check_loaded("cuKernelGetParamInfo")?;
        // SAFETY: the handle is live.
        let ask = || unsafe { params_of(self.handle()) };
        let mut params = match ask() {
            // Code that is loaded on first use needs a context for that; any device's will do.
            Err(e) if e.status() == Some(CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
                let _entered = Device::new(0)?.enter()?;
                ask()?
            }
            other => other?,
        };
        if let Some(params) = &mut params
            && params.len() == self.inner.kinds.len()
        {
            for (param, kind) in params.iter_mut().zip(&*self.inner.kinds) {
                param.kind = *kind;
            }
        }
        Ok(self.inner.params.get_or_init(|| params).as_deref())
    }

    /// Queries an attribute on a device, such as the registers per thread.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that the driver does not know.
    pub fn attribute(&self, device: &Device, attribute: CUfunction_attribute) -> Result<i32> {
        match self.attribute_on(device.handle(), attribute) {
            // The code is compiled on first use on a device, which needs a context.
            Err(e) if e.status() == Some(CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
                let _entered = device.enter()?;
                self.attribute_on(device.handle(), attribute)
            }
            other => other,
        }
    }

    /// [`Kernel::attribute`] with the driver's handle of the device.
    pub(crate) fn attribute_on(
        &self,
        device: CUdevice,
        attribute: CUfunction_attribute,
    ) -> Result<i32> {
        self.check_loaded("cuKernelGetAttribute")?;
        let mut value: c_int = 0;
        // SAFETY: `value` is valid for writes, the handle is live.
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

    /// Sets an attribute on a device, such as the largest size of dynamic shared memory.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a read-only attribute or a value out of range.
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

/// The kernel's parameters, or `None` if the driver is too old (before CUDA 12.4).
///
/// # Safety
///
/// The handle must be of a kernel whose library is loaded.
unsafe fn params_of(handle: CUkernel) -> Result<Option<Box<[ParamInfo]>>> {
    let mut params = Vec::new();
    loop {
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: the handle is live; both results are valid for writes.
        match unsafe {
            driver!(cuKernelGetParamInfo(
                handle,
                params.len(),
                &mut offset,
                &mut size
            ))
        } {
            Ok(()) => params.push(ParamInfo {
                offset,
                size,
                kind: ParamKind::Any,
            }),
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

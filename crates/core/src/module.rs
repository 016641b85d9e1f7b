//! Loaded code and its kernels.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::sync::Arc;

use cupyrite_sys::driver::{CUfunction, CUfunction_attribute, CUjit_option, CUmodule, CUresult};

use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result, driver, report};

/// Attributes of a kernel, as the driver names them.
pub use cupyrite_sys::driver::CUfunction_attribute as FunctionAttribute;

/// Room for what the driver says about code that it cannot load.
const LOG_BYTES: usize = 16 << 10;

/// Code loaded into a context; cheap to clone, unloaded with the last clone and the last of its kernels.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUmodule,
    context: Context,
}

// SAFETY: module handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `Module::load` and is unloaded once, here.
        report(
            self.context
                .with_current(|| unsafe { driver!(cuModuleUnload(self.handle)) }),
        );
    }
}

impl Module {
    /// Loads PTX text, a cubin or a fat binary.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] with the loader's log: `CUDA_ERROR_INVALID_PTX` with line and column,
    /// `CUDA_ERROR_NO_BINARY_FOR_GPU` for code of another architecture, ...
    pub fn load(device: &Device, code: &[u8]) -> Result<Module> {
        let context = device.context().clone();
        // PTX is text and must end in NUL; the other formats carry their length.
        let mut owned = Vec::with_capacity(code.len() + 1);
        owned.extend_from_slice(code);
        owned.push(0);
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
        let mut handle: CUmodule = std::ptr::null_mut();
        let loaded = context.with_current(|| {
            // SAFETY: the image ends in NUL, options and values are as many as said, the log buffer is as long as said,
            // and all of them outlive the call.
            unsafe {
                driver!(cuModuleLoadDataEx(
                    &mut handle,
                    owned.as_ptr().cast(),
                    options.len() as c_uint,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                ))
            }
        });
        match loaded {
            Ok(()) => Ok(Module {
                inner: Arc::new(Inner { handle, context }),
            }),
            Err(Error::Driver { call, status, .. }) => {
                let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
                let log = String::from_utf8_lossy(&log[..end]).into_owned();
                Err(Error::Driver { call, status, log })
            }
            Err(e) => Err(e),
        }
    }

    /// The driver's handle; valid while a clone of this module or one of its kernels lives.
    pub fn handle(&self) -> CUmodule {
        self.inner.handle
    }

    /// A kernel by its name in the code (mangled for C++ without `extern "C"`).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there is none of that name.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let c_name = CString::new(name).map_err(|_| {
            Error::argument("Module::kernel", "name", format!("{name:?} contains a NUL"))
        })?;
        let mut handle: CUfunction = std::ptr::null_mut();
        let context = &self.inner.context;
        // SAFETY: `handle` is a valid place for the result, the name ends in NUL.
        match context.with_current(|| unsafe {
            driver!(cuModuleGetFunction(
                &mut handle,
                self.handle(),
                c_name.as_ptr()
            ))
        }) {
            Ok(()) => {}
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_FOUND,
                ..
            }) => {
                return Err(Error::argument(
                    "Module::kernel",
                    "name",
                    format!("the code has no kernel {name:?}"),
                ));
            }
            Err(e) => return Err(e),
        }
        let params = context.with_current(|| params_of(handle))?;
        Ok(Kernel {
            handle,
            name: name.into(),
            params,
            module: self.clone(),
        })
    }

    /// Address and size in bytes of a `__device__` or `__constant__` variable.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there is none of that name.
    pub fn global(&self, name: &str) -> Result<(u64, usize)> {
        let c_name = CString::new(name).map_err(|_| {
            Error::argument("Module::global", "name", format!("{name:?} contains a NUL"))
        })?;
        let (mut address, mut size) = (0u64, 0usize);
        let found = self.inner.context.with_current(|| {
            // SAFETY: both results have valid places, the name ends in NUL.
            unsafe {
                driver!(cuModuleGetGlobal(
                    &mut address,
                    &mut size,
                    self.handle(),
                    c_name.as_ptr()
                ))
            }
        });
        match found {
            Ok(()) => Ok((address, size)),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_FOUND,
                ..
            }) => Err(Error::argument(
                "Module::global",
                "name",
                format!("the code has no variable {name:?}"),
            )),
            Err(e) => Err(e),
        }
    }
}

/// Where a kernel parameter lies in the parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// The kernel's parameters, or `None` where the driver is too old to tell (before CUDA 12.4).
fn params_of(handle: CUfunction) -> Result<Option<Box<[ParamInfo]>>> {
    let mut params = Vec::new();
    loop {
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: the handle is live, both results have valid places.
        match unsafe {
            driver!(cuFuncGetParamInfo(
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

/// A kernel; it keeps its module loaded.
#[derive(Clone, Debug)]
pub struct Kernel {
    handle: CUfunction,
    name: Box<str>,
    params: Option<Box<[ParamInfo]>>,
    module: Module,
}

// SAFETY: function handles may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above; nothing here changes after construction.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Its name in the code.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's handle; valid while this kernel lives.
    pub fn handle(&self) -> CUfunction {
        self.handle
    }

    /// The module that it belongs to.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Its parameters; `None` where the driver is too old to tell.
    pub fn params(&self) -> Option<&[ParamInfo]> {
        self.params.as_deref()
    }

    /// One attribute, such as the registers a thread needs.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that the driver does not know.
    pub fn attribute(&self, attribute: CUfunction_attribute) -> Result<i32> {
        let mut value: c_int = 0;
        // SAFETY: `value` is a valid place for the result, the handle is live.
        self.context().with_current(|| unsafe {
            driver!(cuFuncGetAttribute(&mut value, attribute, self.handle))
        })?;
        Ok(value)
    }

    /// Sets an attribute, such as the largest dynamic shared memory.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that cannot be set, or a value out of its range.
    pub fn set_attribute(&self, attribute: CUfunction_attribute, value: i32) -> Result<()> {
        // SAFETY: the handle is live.
        self.context()
            .with_current(|| unsafe { driver!(cuFuncSetAttribute(self.handle, attribute, value)) })
    }

    /// The context it was loaded into.
    pub(crate) fn context(&self) -> &Context {
        &self.module.inner.context
    }
}

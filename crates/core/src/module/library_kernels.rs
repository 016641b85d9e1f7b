//! Kernels of a library, by name.

use cupyrite_sys::driver::{CUkernel, CUresult};

use crate::error::{Result, driver};
use crate::module::kernel::Kernel;
use crate::module::library::{Library, c_name, describe_missing_kernel};

impl Library {
    /// A kernel by its name in the code (mangled for C++ without `extern "C"`).
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND`, with the existing names.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let c_name = c_name("kernel", name)?;
        self.check_loaded("cuLibraryGetKernel")?;
        let mut handle: CUkernel = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes, the name is NUL-terminated, the library is live.
        let found = unsafe {
            driver!(cuLibraryGetKernel(
                &mut handle,
                self.handle(),
                c_name.as_ptr()
            ))
        };
        found.map_err(|e| match e.status() {
            Some(CUresult::CUDA_ERROR_NOT_FOUND) => {
                let names = self.kernel_names().unwrap_or_default();
                e.with_log(&describe_missing_kernel(name, &names))
            }
            _ => e,
        })?;
        self.register_kernel(handle);
        Ok(Kernel::from_library(handle, name, self.clone()))
    }
}

//! Libraries of device code, and lookup of a program's kernels.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUdeviceptr, CUjit_option, CUkernel, CUlibrary, CUlibraryOption};

use crate::checked::{get_text, non_null, put, put_optional};
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::{capture, context, kernel, registration};

/// The options of a load: pairs of parallel lists, each with a count.
struct Options {
    jit: *mut CUjit_option,
    jit_values: *mut *mut c_void,
    jit_count: u32,
    library: *mut CUlibraryOption,
    library_values: *mut *mut c_void,
    library_count: u32,
}

/// Writes a library handle to the caller.
fn put_library(out: u64, library: CUlibrary) -> Res {
    put(out, library as u64).inspect_err(|_| {
        capture::relaxed(|| {
            let _ = cu!(cuLibraryUnload(library));
        });
    })
}

fn load_data(out: u64, code: u64, o: &Options) -> Res {
    non_null(out)?;
    non_null(code)?;
    context::ready()?;
    let mut library: CUlibrary = std::ptr::null_mut();
    cu!(cuLibraryLoadData(
        &mut library,
        code as *const c_void,
        o.jit,
        o.jit_values,
        o.jit_count,
        o.library,
        o.library_values,
        o.library_count
    ))?;
    put_library(out, library)
}

fn load_file(out: u64, path: u64, o: &Options) -> Res {
    non_null(out)?;
    let path = get_text(path)?;
    context::ready()?;
    let mut library: CUlibrary = std::ptr::null_mut();
    cu!(cuLibraryLoadFromFile(
        &mut library,
        path.as_ptr(),
        o.jit,
        o.jit_values,
        o.jit_count,
        o.library,
        o.library_values,
        o.library_count
    ))?;
    put_library(out, library)
}

runtime_entry_points! {
    fn library_load_data "cudaLibraryLoadData"
        (out: u64, code: u64, jit: u64, jit_values: u64, jit_count: u32, options: u64, values: u64, count: u32) {
        load_data(out, code, &Options {
            jit: jit as *mut _,
            jit_values: jit_values as *mut _,
            jit_count,
            library: options as *mut _,
            library_values: values as *mut _,
            library_count: count,
        })
    }
    fn library_load_file "cudaLibraryLoadFromFile"
        (out: u64, path: u64, jit: u64, jit_values: u64, jit_count: u32, options: u64, values: u64, count: u32) {
        load_file(out, path, &Options {
            jit: jit as *mut _,
            jit_values: jit_values as *mut _,
            jit_count,
            library: options as *mut _,
            library_values: values as *mut _,
            library_count: count,
        })
    }
    fn library_unload "cudaLibraryUnload" (library: u64) {
        context::ready()?;
        cu!(cuLibraryUnload(library as CUlibrary))
    }
    fn library_get_kernel "cudaLibraryGetKernel" (out: u64, library: u64, name: u64) {
        non_null(out)?;
        let name = get_text(name)?;
        context::ready()?;
        let mut kernel: CUkernel = std::ptr::null_mut();
        cu!(cuLibraryGetKernel(&mut kernel, library as CUlibrary, name.as_ptr()))?;
        put(out, kernel as u64)
    }
    fn library_get_global "cudaLibraryGetGlobal" (out: u64, bytes_out: u64, library: u64, name: u64) {
        let name = get_text(name)?;
        context::current()?;
        let (mut address, mut bytes): (CUdeviceptr, usize) = (0, 0);
        cu!(cuLibraryGetGlobal(&mut address, &mut bytes, library as CUlibrary, name.as_ptr()))?;
        put_optional(out, address)?;
        put_optional(bytes_out, bytes)
    }
    fn library_get_managed "cudaLibraryGetManaged" (out: u64, bytes_out: u64, library: u64, name: u64) {
        let name = get_text(name)?;
        context::current()?;
        let (mut address, mut bytes): (CUdeviceptr, usize) = (0, 0);
        cu!(cuLibraryGetManaged(&mut address, &mut bytes, library as CUlibrary, name.as_ptr()))?;
        put_optional(out, address)?;
        put_optional(bytes_out, bytes)
    }
    fn library_get_unified_function "cudaLibraryGetUnifiedFunction" (out: u64, library: u64, name: u64) {
        non_null(out)?;
        let name = get_text(name)?;
        context::current()?;
        let mut address: *mut c_void = std::ptr::null_mut();
        cu!(cuLibraryGetUnifiedFunction(&mut address, library as CUlibrary, name.as_ptr()))?;
        put(out, address as u64)
    }
    fn library_get_kernel_count "cudaLibraryGetKernelCount" (out: u64, library: u64) {
        non_null(out)?;
        context::ready()?;
        let mut count = 0;
        cu!(cuLibraryGetKernelCount(&mut count, library as CUlibrary))?;
        put(out, count)
    }
    fn library_enumerate_kernels "cudaLibraryEnumerateKernels" (out: u64, count: u32, library: u64) {
        non_null(out)?;
        context::ready()?;
        cu!(cuLibraryEnumerateKernels(out as *mut CUkernel, count, library as CUlibrary))
    }
    fn get_func_by_symbol "cudaGetFuncBySymbol" (out: u64, symbol: u64) {
        non_null(out)?;
        context::current()?;
        put(out, kernel::function(symbol)? as u64)
    }
    fn get_kernel "cudaGetKernel" (out: u64, stub: u64) {
        non_null(out)?;
        // A library's kernel is not a host stub.
        let kernel = registration::kernel_of_stub(stub).unwrap_or(Err(Error::INVALID_DEVICE_FUNCTION))?;
        put(out, kernel)
    }
}

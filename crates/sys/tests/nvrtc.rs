//! The installed NVRTC (`cargo xtask test` installs it): it is found, loaded, and opens its companion library when it
//! compiles.

use std::ffi::CStr;
use std::ptr::null_mut;

use cupyrite_sys::loader::{CudaLibrary, LoadErrorKind, library_found_via, library_path};
use cupyrite_sys::nvrtc::{
    nvrtcCompileProgram, nvrtcCreateProgram, nvrtcDestroyProgram, nvrtcGetPTX, nvrtcGetPTXSize,
    nvrtcResult, nvrtcVersion,
};

#[test]
fn compiles_a_kernel() {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both results point to local integers.
    match unsafe { nvrtcVersion(&raw mut major, &raw mut minor) } {
        Ok(status) => assert_eq!(status, nvrtcResult::NVRTC_SUCCESS),
        Err(error) => {
            assert_eq!(error.kind, LoadErrorKind::LibraryNotFound, "{error}");
            eprintln!("skipped: {error}");
            return;
        }
    }
    assert!((12..=13).contains(&major), "NVRTC {major}.{minor}");
    assert!(library_path(CudaLibrary::Nvrtc).is_some_and(|path| path.is_absolute()));
    assert!(library_found_via(CudaLibrary::Nvrtc).is_some());

    let source =
        c"extern \"C\" __global__ void k(float *x) { x[threadIdx.x] = sinf(x[threadIdx.x]); }";
    let options = [c"--gpu-architecture=compute_89".as_ptr()];
    let mut program = null_mut();
    let mut size = 0;
    let ok = |result: Result<nvrtcResult, _>| assert_eq!(result, Ok(nvrtcResult::NVRTC_SUCCESS));
    // SAFETY: strings are NUL-terminated, results have room for what is stored, the program is live until destroyed,
    // and the buffer has the size that NVRTC returned.
    unsafe {
        ok(nvrtcCreateProgram(
            &raw mut program,
            source.as_ptr(),
            c"k.cu".as_ptr(),
            0,
            null_mut(),
            null_mut(),
        ));
        ok(nvrtcCompileProgram(program, 1, options.as_ptr().cast_mut()));
        ok(nvrtcGetPTXSize(program, &raw mut size));
        let mut ptx = vec![0_u8; size];
        ok(nvrtcGetPTX(program, ptx.as_mut_ptr().cast()));
        ok(nvrtcDestroyProgram(&raw mut program));
        let text = CStr::from_bytes_until_nul(&ptx).expect("PTX ends with a nul");
        assert!(text.to_string_lossy().contains(".visible .entry k("));
    }
}

//! Handles that the program destroys through `cupyrite_sys`, in a process that used the raw functions before the safe API.
//!
//! One test: it needs a process whose first driver call is a raw one.

use cupyrite::{Device, sys};
use sys::driver::{CUresult, CUstream};

#[test]
fn raw_calls_before_the_first_owner_change_nothing() {
    cupyrite_cpu::install();
    let mut stream: CUstream = std::ptr::null_mut();
    // SAFETY: valid places for the results; the handle is not null.
    unsafe {
        sys::driver::cuInit(0).unwrap();
        let mut context = std::ptr::null_mut();
        sys::driver::cuDevicePrimaryCtxRetain(&mut context, 0).unwrap();
        sys::driver::cuCtxSetCurrent(context).unwrap();
        sys::driver::cuStreamCreate(&mut stream, 0).unwrap();
        // Resolves the function before the safe API could observe it.
        let status = sys::driver::cuStreamDestroy(stream).unwrap();
        assert_eq!(status, CUresult::CUDA_SUCCESS);
    }
    let device = Device::new(0).unwrap();
    let owned = device.create_stream().unwrap();
    owned.synchronize().unwrap();
    // SAFETY: a live stream without work.
    let status = unsafe { sys::driver::cuStreamDestroy(owned.handle()) }.unwrap();
    assert_eq!(status, CUresult::CUDA_SUCCESS);
    let error = owned.synchronize().unwrap_err().to_string();
    assert!(error.contains("destroyed"), "{error}");
}

//! Devices, errors and the context that appears when it is needed.

use super::*;

#[test]
fn a_failure_is_the_threads_last_error_until_it_is_taken() {
    ok!("cudaGetLastError");
    assert_eq!(rt!("cudaSetDevice", 99), Error::INVALID_DEVICE);
    ok!("cudaDeviceSynchronize");
    assert_eq!(rt!("cudaPeekAtLastError"), Error::INVALID_DEVICE);
    std::thread::spawn(|| ok!("cudaPeekAtLastError"))
        .join()
        .unwrap();
    assert_eq!(rt!("cudaGetLastError"), Error::INVALID_DEVICE);
    ok!("cudaGetLastError");
}

#[test]
fn a_null_or_wild_out_pointer_is_an_invalid_value() {
    assert_eq!(rt!("cudaGetDevice", 0u64), Error::INVALID_VALUE);
    assert_eq!(
        rt!("cudaGetDeviceCount", 0xdead_beefu64),
        Error::INVALID_VALUE
    );
}

#[test]
fn every_thread_begins_on_device_0_and_gets_its_primary_context() {
    std::thread::spawn(|| {
        let mut device = -1;
        ok!("cudaGetDevice", &mut device);
        assert_eq!(device, 0);
        ok!("cudaDeviceSynchronize");
        ok!("cudaGetDevice", &mut device);
        assert_eq!(device, 0);
    })
    .join()
    .unwrap();
}

#[test]
fn codes_have_names_and_sentences() {
    type Text = unsafe extern "C" fn(u32) -> *const std::ffi::c_char;
    // SAFETY: both functions take a number and return a constant text.
    let text = |name: &str, error: u32| unsafe {
        let f = std::mem::transmute::<*const c_void, Text>(address(name));
        std::ffi::CStr::from_ptr(f(error)).to_str().unwrap()
    };
    assert_eq!(text("cudaGetErrorName", 0), "cudaSuccess");
    assert_eq!(text("cudaGetErrorName", 700), "cudaErrorIllegalAddress");
    assert_eq!(text("cudaGetErrorName", 424242), "unrecognized error code");
    assert!(text("cudaGetErrorString", 2).contains("memory"));
}

#[test]
fn codes_of_the_driver_keep_their_number_where_the_runtime_has_one() {
    use cupyrite_sys::driver::CUresult;
    assert_eq!(Error::from(CUresult(201)), Error::DEVICE_UNINITIALIZED);
    assert_eq!(Error::from(CUresult(202)), Error::UNKNOWN);
    assert_eq!(Error::from(CUresult(500)), Error::SYMBOL_NOT_FOUND);
}

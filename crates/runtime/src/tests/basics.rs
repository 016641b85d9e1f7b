//! Devices, errors, and lazily created contexts.

use super::*;

#[test]
fn failures_set_the_last_error_until_it_is_taken() {
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
fn invalid_out_pointers_are_invalid_values() {
    assert_eq!(rt!("cudaGetDevice", 0u64), Error::INVALID_VALUE);
    assert_eq!(
        rt!("cudaGetDeviceCount", 0xdead_beefu64),
        Error::INVALID_VALUE
    );
}

#[test]
fn threads_start_with_the_primary_context_of_device_0() {
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
fn codes_have_names_and_descriptions() {
    type Text = unsafe extern "C" fn(u32) -> *const std::ffi::c_char;
    // SAFETY: both functions take a number and return a constant string.
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
fn driver_codes_keep_their_number() {
    use cupyrite_sys::driver::CUresult;
    assert_eq!(Error::from(CUresult(201)), Error::DEVICE_UNINITIALIZED);
    assert_eq!(Error::from(CUresult(202)), Error::UNKNOWN);
    assert_eq!(Error::from(CUresult(500)), Error::SYMBOL_NOT_FOUND);
}

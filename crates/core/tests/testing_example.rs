//! The example of docs/testing.md.

use cupyrite::sys::driver::CUresult;
use cupyrite::{LaunchConfig, Program, Result, test};

const CODE: &str = r#"
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < 0) __trap();
    if (i < n) y[i] += a * x[i];
}
"#;

#[test]
fn saxpy_adds() -> Result<()> {
    let Some(device) = test::require().nvrtc().device() else {
        return Ok(());
    };
    let kernel = Program::new(CODE).compile_for(&device)?.kernel("saxpy")?;
    let stream = device.create_stream()?;
    let (x, y) = (
        device.buffer_from(&[1.0f32, 2.0, 3.0])?,
        device.buffer_from(&[1.0f32; 3])?,
    );
    // SAFETY: both buffers have the three elements that the kernel accesses.
    unsafe {
        kernel.launch(
            &stream,
            &LaunchConfig::for_elements(3, 128),
            &(3i32, 2.0f32, &x, &y),
        )?
    };
    stream.synchronize()?;
    assert_eq!(y.to_vec()?, [3.0, 5.0, 7.0]);
    Ok(())
}

#[test]
fn saxpy_refuses_a_negative_length() -> Result<()> {
    let Some(device) = test::require().nvrtc().device() else {
        return Ok(());
    };
    let kernel = Program::new(CODE).compile_for(&device)?.kernel("saxpy")?;
    let fault = device.expect_fault(|| {
        let (stream, x) = (device.create_stream()?, device.buffer_zeroed::<f32>(1)?);
        // SAFETY: with a negative length the kernel accesses nothing.
        unsafe {
            kernel.launch(
                &stream,
                &LaunchConfig::linear(1, 1),
                &(-1i32, 2.0f32, &x, &x),
            )?
        };
        stream.synchronize()
    });
    assert_eq!(fault.status(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    Ok(())
}

#[test]
fn devices_access_each_other() -> Result<()> {
    let Some([first, second]) = test::require().capability(7, 5).devices() else {
        return Ok(());
    };
    assert!(first.can_access_peer(*second)?);
    Ok(())
}

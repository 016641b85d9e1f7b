//! `out = a * x + y`, compiled at run time and run on the selected device.
//!
//! ```text
//! cargo run --release --example saxpy
//! CUPYRITE_DEVICE=cpu cargo run --release --example saxpy
//! ```

use cupyrite::{Device, LaunchConfig, Program, Result};

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}
"#;

fn main() -> Result<()> {
    let device = Device::new(0)?;
    println!(
        "device   {} (compute capability {})",
        device.name()?,
        device.compute_capability()?
    );

    let kernel = Program::new(SAXPY)
        .named("saxpy.cu")
        .compile_for(&device)?
        .kernel("saxpy")?;

    let n = 1usize << 24;
    let a = 2.0f32;
    let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.5).collect();
    let y: Vec<f32> = (0..n).map(|i| (i % 777) as f32).collect();
    let (dx, dy, out) = (
        device.buffer_from(&x)?,
        device.buffer_from(&y)?,
        device.buffer::<f32>(n)?,
    );

    let stream = device.create_stream()?;
    let before = stream.record()?;
    // SAFETY: the kernel reads `n` elements of each input and writes `n` of the output; all three buffers have `n`.
    unsafe {
        kernel.launch(
            &stream,
            &LaunchConfig::for_elements(n, 256),
            &(a, &dx, &dy, &out, n),
        )?
    };
    let after = stream.record()?;
    stream.synchronize()?;

    let time = after.elapsed_since(&before)?;
    let bytes = 3.0 * size_of_val(x.as_slice()) as f64;
    println!(
        "kernel   {:.3} ms, {:.1} GB/s",
        time.as_secs_f64() * 1e3,
        bytes / time.as_secs_f64() / 1e9
    );

    let result = out.to_vec()?;
    let wrong = (0..n)
        .filter(|&i| result[i] != a.mul_add(x[i], y[i]))
        .count();
    println!("result   {wrong} of {n} elements differ from the host's fused multiply-add");
    if wrong != 0 {
        std::process::exit(1);
    }
    Ok(())
}

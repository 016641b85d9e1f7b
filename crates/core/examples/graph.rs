//! A chain of kernels recorded once and launched a hundred times.
//!
//! ```text
//! cargo run --release --example graph
//! CUPYRITE_DEVICE=cpu cargo run --release --example graph
//! ```

use std::sync::Arc;

use cupyrite::graph::{CaptureMode, GraphBuilder, InstantiateOptions};
use cupyrite::{Device, LaunchConfig, Program, Result};

const CODE: &str = r#"
extern "C" __global__ void increase(float *x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
extern "C" __global__ void halve(float *x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 0.5f;
}
"#;

/// Launches the graph `launches` times on `n` numbers; returns the largest difference from the host's result.
pub fn run(n: u32, launches: u32) -> Result<f32> {
    let device = Device::new(0)?;
    let stream = device.create_stream()?;
    let code = Program::new(CODE).named("graph.cu").compile_for(&device)?;
    let (increase, halve) = (code.kernel("increase")?, code.kernel("halve")?);
    let x = Arc::new(device.buffer_from(&vec![0.0f32; n as usize])?);
    let config = LaunchConfig::for_elements(n as usize, 256);

    let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed)?;
    // The graph owns the memory that its kernels use.
    builder.retain(x.clone())?;
    // SAFETY: the kernels touch `x[0..n]`.
    unsafe {
        increase.launch(builder.stream(), &config, &(&*x, n))?;
        halve.launch(builder.stream(), &config, &(&*x, n))?;
    }
    let graph = builder.complete(&InstantiateOptions::default())?;

    let mut expected = 0.0f32;
    for _ in 0..launches {
        graph.launch(&stream)?;
        expected = (expected + 1.0) * 0.5;
    }
    stream.synchronize()?;
    let found = x.to_vec()?;
    Ok(found
        .iter()
        .map(|value| (value - expected).abs())
        .fold(0.0, f32::max))
}

#[allow(dead_code)] // A test includes this file.
fn main() -> Result<()> {
    let difference = run(1 << 16, 100)?;
    println!("largest difference from the host: {difference}");
    assert!(difference == 0.0);
    Ok(())
}

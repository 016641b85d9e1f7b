//! Histogram of bytes: each block counts in its shared memory with atomics, then adds its counts to the global
//! histogram.
//!
//! ```text
//! cargo run --release --example histogram [FILE]
//! CUPYRITE_DEVICE=cpu cargo run --release --example histogram
//! ```

use cupyrite::{ConstPtr, Device, LaunchConfig, MutPtr, Program, Result};

const SOURCE: &str = r#"
extern "C" __global__ void histogram(const unsigned char *data, unsigned *counts, unsigned bins, size_t n)
{
    // As many counters as the launch gives room for.
    extern __shared__ unsigned local[];
    for (unsigned bin = threadIdx.x; bin < bins; bin += blockDim.x)
        local[bin] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        atomicAdd(&local[data[i] % bins], 1u);
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < bins; bin += blockDim.x)
        if (local[bin])
            atomicAdd(&counts[bin], local[bin]);
}
"#;

/// Counts bytes on the device; returns its counts and the host's.
pub fn run(data: &[u8]) -> Result<(Vec<u32>, Vec<u32>)> {
    const BINS: usize = 256;
    let device = Device::new(0)?;
    let histogram = Program::new(SOURCE)
        .named("histogram.cu")
        .compile_for(&device)?
        .kernel("histogram")?
        .typed::<(ConstPtr<u8>, MutPtr<u32>, u32, usize)>()?;

    let bytes = device.buffer_from(data)?;
    let mut counts = device.buffer_zeroed::<u32>(BINS)?;
    let stream = device.create_stream()?;
    let config = LaunchConfig::linear(64, 256).with_shared((BINS * size_of::<u32>()) as u32);
    let before = stream.record()?;
    // SAFETY: the kernel reads all of `bytes` and adds to all of `counts`; its shared memory holds as many counters.
    unsafe {
        histogram.launch(
            &stream,
            &config,
            (&bytes, &mut counts, BINS as u32, data.len()),
        )?;
    }
    let after = stream.record()?;
    stream.synchronize()?;
    let time = after.elapsed_since(&before)?.as_secs_f64();
    println!("device   {}", device.name()?);
    println!(
        "kernel   {:.3} ms, {:.1} GB/s",
        time * 1e3,
        data.len() as f64 / time / 1e9
    );

    let mut expected = vec![0u32; BINS];
    for byte in data {
        expected[usize::from(*byte)] += 1;
    }
    Ok((counts.to_vec()?, expected))
}

/// Pseudo-random bytes, used if no file is given.
pub fn sample(n: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // The square makes small bytes more frequent.
        let x = (state >> 56) as u32;
        (x * x / 256) as u8
    };
    std::iter::repeat_with(next).take(n).collect()
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    let data = match std::env::args_os().nth(1) {
        None => sample(1 << 22),
        Some(file) => std::fs::read(&file).unwrap_or_else(|error| {
            eprintln!("{}: {error}", file.display());
            std::process::exit(2);
        }),
    };
    let (device, host) = run(&data)?;
    let most = (0u8..=255).max_by_key(|&byte| host[usize::from(byte)]);
    println!(
        "result   {} bytes, most often {:#04x}",
        data.len(),
        most.unwrap_or_default()
    );
    if device != host {
        println!("         the host counts otherwise");
        std::process::exit(1);
    }
    Ok(())
}

//! The sum of a vector, in two kernels: each block sums its part with warp shuffles and shared memory, then one block
//! sums the blocks.
//!
//! ```text
//! cargo run --release --example reduction
//! CUPYRITE_DEVICE=cpu cargo run --release --example reduction
//! ```

use cupyrite::{ConstPtr, Device, LaunchConfig, MutPtr, Program, Result};

const SOURCE: &str = r#"
// The sum over a block; thread 0 has it. `partial` has room for a value of each warp.
__device__ long long block_sum(long long value)
{
    __shared__ long long partial[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    if (lane == 0)
        partial[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? partial[lane] : 0;
    if (warp == 0)
        for (int offset = 16; offset > 0; offset /= 2)
            value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

// Each thread takes every (blocks * threads)-th element, so that a warp always reads neighbours.
extern "C" __global__ void sum(const long long *in, long long *out, unsigned n)
{
    long long value = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value += in[i];
    value = block_sum(value);
    if (threadIdx.x == 0)
        out[blockIdx.x] = value;
}
"#;

/// Sums `n` numbers on the device; returns that sum and the host's.
pub fn run(n: usize) -> Result<(i64, i64)> {
    const BLOCKS: u32 = 128;
    const THREADS: u32 = 256;
    let device = Device::new(0)?;
    let sum = Program::new(SOURCE)
        .named("reduction.cu")
        .compile_for(&device)?
        .kernel("sum")?
        .typed::<(ConstPtr<i64>, MutPtr<i64>, u32)>()?;

    let data: Vec<i64> = (0..n as i64).map(|i| (i * 7919) % 1009 - 504).collect();
    let input = device.buffer_from(&data)?;
    let mut blocks = device.buffer::<i64>(BLOCKS as usize)?;
    let mut total = device.buffer::<i64>(1)?;
    let stream = device.create_stream()?;
    let before = stream.record()?;
    // SAFETY: the first launch reads the `n` elements of `input` and writes one per block; the second reads those and
    // writes one. Both run in the same stream, in this order.
    unsafe {
        sum.launch(
            &stream,
            &LaunchConfig::linear(BLOCKS, THREADS),
            (&input, &mut blocks, n as u32),
        )?;
        sum.launch(
            &stream,
            &LaunchConfig::linear(1, THREADS),
            (&blocks, &mut total, BLOCKS),
        )?;
    }
    let after = stream.record()?;
    stream.synchronize()?;

    let time = after.elapsed_since(&before)?.as_secs_f64();
    println!("device   {}", device.name()?);
    println!(
        "kernels  {:.3} ms, {:.1} GB/s",
        time * 1e3,
        size_of_val(data.as_slice()) as f64 / time / 1e9
    );
    Ok((total.to_vec()?[0], data.iter().sum()))
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    let (device, host) = run(1 << 22)?;
    println!("result   {device}, the host says {host}");
    if device != host {
        std::process::exit(1);
    }
    Ok(())
}

//! Heat diffusion on a plate in two halves, computed by two streams concurrently.
//!
//! Each step of a half needs the boundary row of the other half from the previous step. Events make the streams wait
//! for each other and measure the total time.
//!
//! ```text
//! cargo run --release --example heat
//! CUPYRITE_DEVICE=cpu cargo run --release --example heat
//! ```

use cupyrite::{Buffer, Device, LaunchConfig, Program, Result};

const SOURCE: &str = r#"
// One step of the rows [first, last) of a plate; its rim keeps its temperature.
extern "C" __global__ void step(const float *from, float *to, unsigned width, unsigned first, unsigned last)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y + first;
    if (x + 1 >= width || y >= last)
        return;
    unsigned i = y * width + x;
    to[i] = from[i] + 0.2f * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width] - 4 * from[i]);
}
"#;

/// The kernel's step, on the host. Both use a fused multiply-add, so the results are bit-identical.
fn step_on_host(from: &[f32], to: &mut [f32], width: usize, height: usize) {
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let i = y * width + x;
            let around = from[i - 1] + from[i + 1] + from[i - width] + from[i + width];
            to[i] = 0.2f32.mul_add((-4.0f32).mul_add(from[i], around), from[i]);
        }
    }
}

/// Computes `steps` steps; returns the largest difference from the host's result.
pub fn run(width: usize, height: usize, steps: usize) -> Result<f32> {
    let device = Device::new(0)?;
    let kernel = Program::new(SOURCE)
        .named("heat.cu")
        .compile_for(&device)?
        .kernel("step")?;

    // A hot spot in a cold plate with one warm side.
    let mut plate = vec![0.0f32; width * height];
    plate[..width].fill(50.0);
    plate[(height / 2) * width + width / 3] = 10_000.0;
    let plates: [Buffer<f32>; 2] = [device.buffer_from(&plate)?, device.buffer_from(&plate)?];

    let cut = height / 2;
    let halves = [(1, cut), (cut, height - 1)];
    let streams = [device.create_stream()?, device.create_stream()?];
    let begin = [streams[0].record()?, streams[1].record()?];
    for number in 0..steps {
        let (from, to) = (&plates[number % 2], &plates[(number + 1) % 2]);
        for (stream, (first, last)) in streams.iter().zip(halves) {
            let rows = last - first;
            let config = LaunchConfig::new(
                [(width as u32).div_ceil(32), (rows as u32).div_ceil(4), 1],
                [32, 4, 1],
            );
            // The halves write different rows of one buffer, so it is passed by shared reference.
            let args = (from, to, width as u32, first as u32, last as u32);
            // SAFETY: the kernel reads the rows from `first - 1` to `last` and writes those between, all within the
            // plates. The events below keep the other stream from writing rows that are read here.
            unsafe { kernel.launch(stream, &config, &args)? };
        }
        let done = [streams[0].record()?, streams[1].record()?];
        streams[0].wait(&done[1])?;
        streams[1].wait(&done[0])?;
    }
    let end = [streams[0].record()?, streams[1].record()?];
    streams[0].synchronize()?;
    streams[1].synchronize()?;

    println!("device   {}", device.name()?);
    for (half, (begin, end)) in begin.iter().zip(&end).enumerate() {
        let time = end.elapsed_since(begin)?.as_secs_f64();
        println!(
            "stream {half} {:.3} ms, {:.1} us a step",
            time * 1e3,
            time * 1e6 / steps as f64
        );
    }

    let result = plates[steps % 2].to_vec()?;
    let (mut now, mut next) = (plate.clone(), plate);
    for _ in 0..steps {
        step_on_host(&now, &mut next, width, height);
        std::mem::swap(&mut now, &mut next);
    }
    let differences = result.iter().zip(&now).map(|(a, b)| (a - b).abs());
    Ok(differences.fold(0.0, f32::max))
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    let difference = run(512, 512, 100)?;
    println!("result   differs from the host's by {difference:e} at most");
    // The order of additions is the same, but the device compiler may fuse other multiplications than the host's.
    if difference > 1e-2 {
        std::process::exit(1);
    }
    Ok(())
}

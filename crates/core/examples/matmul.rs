//! The product of two matrices, tile by tile through shared memory.
//!
//! ```text
//! cargo run --release --example matmul
//! CUPYRITE_DEVICE=cpu cargo run --release --example matmul
//! ```

use cupyrite::{ConstPtr, Device, LaunchConfig, MutPtr, Program, Result};

/// Width and height of a tile; a block has one thread per element.
const TILE: u32 = 16;

const SOURCE: &str = r#"
// c (m x n) = a (m x k) * b (k x n), all row by row.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, unsigned m, unsigned n, unsigned k)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (unsigned at = 0; at < k; at += TILE) {
        // What lies outside of the matrices counts as zero, so that their sizes need be no multiples of a tile's.
        tile_a[y][x] = row < m && at + x < k ? a[row * k + at + x] : 0;
        tile_b[y][x] = at + y < k && column < n ? b[(at + y) * n + column] : 0;
        __syncthreads();
        for (unsigned i = 0; i < TILE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
"#;

/// Multiplies an `m` x `k` by a `k` x `n` matrix; returns how many elements differ from the host's product.
pub fn run(m: u32, n: u32, k: u32) -> Result<usize> {
    let device = Device::new(0)?;
    let matmul = Program::new(SOURCE)
        .named("matmul.cu")
        .option(format!("--define-macro=TILE={TILE}"))
        .compile_for(&device)?
        .kernel("matmul")?
        .typed::<(ConstPtr<f32>, ConstPtr<f32>, MutPtr<f32>, u32, u32, u32)>()?;

    // Small integers: sums of their products are exact in any order.
    let value = |i: u32| f32::from((i.wrapping_mul(2_654_435_761) >> 29) as u8) - 4.0;
    let a: Vec<f32> = (0..m * k).map(value).collect();
    let b: Vec<f32> = (0..k * n).map(|i| value(i + 12345)).collect();
    let (da, db) = (device.buffer_from(&a)?, device.buffer_from(&b)?);
    let mut dc = device.buffer::<f32>((m * n) as usize)?;

    let config = LaunchConfig::new([n.div_ceil(TILE), m.div_ceil(TILE), 1], [TILE, TILE, 1]);
    let stream = device.create_stream()?;
    let before = stream.record()?;
    // SAFETY: the kernel reads m * k and k * n elements and writes m * n; the buffers have as many.
    unsafe { matmul.launch(&stream, &config, (&da, &db, &mut dc, m, n, k))? };
    let after = stream.record()?;
    stream.synchronize()?;

    let time = after.elapsed_since(&before)?.as_secs_f64();
    println!("device   {}", device.name()?);
    println!(
        "kernel   {:.3} ms, {:.1} GFLOP/s",
        time * 1e3,
        2.0 * f64::from(m) * f64::from(n) * f64::from(k) / time / 1e9
    );

    let c = dc.to_vec()?;
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut wrong = 0;
    for row in 0..m {
        let mut expected = vec![0.0f32; n];
        for i in 0..k {
            let factor = a[row * k + i];
            for (sum, b) in expected.iter_mut().zip(&b[i * n..(i + 1) * n]) {
                *sum += factor * b;
            }
        }
        let found = &c[row * n..(row + 1) * n];
        wrong += found.iter().zip(&expected).filter(|(x, y)| x != y).count();
    }
    Ok(wrong)
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    let wrong = run(500, 300, 700)?;
    println!("result   {wrong} elements differ from the host's");
    if wrong != 0 {
        std::process::exit(1);
    }
    Ok(())
}

//! Two streams process host data from page-locked memory: one part is copied while the other is computed. Both read
//! coefficients in managed memory. A strided copy also transposes a matrix.
//!
//! ```text
//! cargo run --release --example staging
//! CUPYRITE_DEVICE=cpu cargo run --release --example staging
//! ```

use cupyrite::managed::{Advice, advise, prefetch_async};
use cupyrite::{
    Device, DevicePtr, HostBuffer, LaunchConfig, MemoryLocation, MemoryPool, PoolKind, PoolOptions,
    Program, Result, StridedLayout, StridedMemory, copy_strided,
};

const SOURCE: &str = r#"
extern "C" __global__ void polynomial(const float *x, const float *coefficients, int degree, float *y, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = degree; k >= 0; k--)
        sum = fmaf(sum, x[i], coefficients[k]);
    y[i] = sum;
}
"#;

/// Evaluates a polynomial at `2 * n` points, half of them in each stream; returns how many values differ from those
/// of the host.
pub fn run(n: usize) -> Result<usize> {
    let device = Device::new(0)?;
    let kernel = Program::new(SOURCE)
        .named("polynomial.cu")
        .compile_for(&device)?
        .kernel("polynomial")?;
    let streams = [device.create_stream()?, device.create_stream()?];

    // The host writes this memory once; the kernels only read it.
    let coefficients = [1.0f32, -0.5, 0.25, 2.0];
    let pool = MemoryPool::with_kind(PoolKind::Managed(None), &PoolOptions::default())?;
    let shared = pool.allocate(size_of_val(&coefficients), &streams[0])?;
    shared.write(&coefficients, &streams[0])?;
    let range = (shared.address(), shared.size());
    advise(range, Advice::ReadMostly(true))?;
    prefetch_async(
        &[range],
        &[MemoryLocation::Device(device.ordinal())],
        &streams[0],
    )?;
    streams[0].synchronize()?;

    let places = |part: usize| (0..n).map(move |i| (i * 2 + part) as f32 / n as f32 - 1.0);
    let mut parts = Vec::new();
    for part in 0..2 {
        let input = HostBuffer::from_slice(&places(part).collect::<Vec<f32>>())?;
        let output = HostBuffer::filled(n, 0.0f32)?;
        let there = (device.buffer::<f32>(n)?, device.buffer::<f32>(n)?);
        parts.push((input, output, there));
    }
    let [(in0, out0, (x0, y0)), (in1, out1, (x1, y1))] = &mut parts[..] else {
        unreachable!("two parts");
    };
    let config = LaunchConfig::for_elements(n, 256);
    let degree = coefficients.len() as i32 - 1;
    let table = DevicePtr::<f32>::new(shared.address());
    // The copies borrow their buffers until the scope has waited: `out0` cannot be read inside it.
    streams[0].scope(|first| {
        streams[1].scope(|second| {
            first.upload(in0, x0)?;
            second.upload(in1, x1)?;
            // SAFETY: the kernel reads `n` elements of its input and all coefficients, and writes `n` elements of its
            // output; each stream has its own buffers, and the coefficients are not written.
            unsafe {
                kernel.launch(first.stream(), &config, &(&*x0, table, degree, &*y0, n))?;
                kernel.launch(second.stream(), &config, &(&*x1, table, degree, &*y1, n))?;
            }
            first.download(y0, out0)?;
            second.download(y1, out1)
        })
    })?;

    let value = |x: f32| {
        coefficients
            .iter()
            .rev()
            .fold(0.0f32, |sum, c| sum.mul_add(x, *c))
    };
    let differ = |part: usize, out: &[f32]| {
        let wrong = places(part).zip(out).filter(|&(x, &y)| value(x) != y);
        wrong.count()
    };
    Ok(differ(0, out0) + differ(1, out1))
}

/// Copies a matrix to the device and back transposed; returns whether the result is correct.
pub fn transpose(rows: usize, columns: usize) -> Result<bool> {
    let device = Device::new(0)?;
    let stream = device.create_stream()?;
    let matrix: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    let there = device.buffer_from(&matrix)?;
    let back = HostBuffer::filled(matrix.len(), 0.0f32)?;
    let (r, c) = (rows as i64, columns as i64);
    let dense = StridedLayout::new(&[c, r], None, size_of::<f32>())?;
    // A transposed view, `columns` by `rows`: its strides are swapped.
    let turned = StridedLayout::new(&[c, r], Some(&[1, c]), size_of::<f32>())?;
    let destination = StridedMemory {
        base: back.address(),
        layout: &dense,
        on_host: true,
    };
    let source = StridedMemory {
        base: there.address(),
        layout: &turned,
        on_host: false,
    };
    // SAFETY: both layouts are within their buffers, which have no other user and outlive the copy.
    unsafe { copy_strided(destination, source, &stream)? };
    stream.synchronize()?;
    Ok((0..columns).all(|j| (0..rows).all(|i| back[j * rows + i] == matrix[i * columns + j])))
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    let n = 1 << 20;
    println!("device   {}", Device::new(0)?.name()?);
    let wrong = run(n)?;
    println!(
        "result   {wrong} of {} values differ from the host's",
        2 * n
    );
    let turned = transpose(300, 200)?;
    println!(
        "result   the transposed matrix is {}",
        if turned { "right" } else { "wrong" }
    );
    if wrong != 0 || !turned {
        std::process::exit(1);
    }
    Ok(())
}

//! Two processes share device memory without copies. The first creates a shareable memory pool and fills a buffer from
//! it; the second waits for that on the device, squares the numbers in place, and exits.
//!
//! ```text
//! cargo run --release --example two_processes
//! CUPYRITE_DEVICE=cpu cargo run --release --example two_processes
//! ```
//!
//! The second process gets the pool's file descriptor as its standard input (unrelated processes would use a Unix
//! socket), and the descriptors of the buffer and the event as bytes in an environment variable.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use cupyrite::{
    BufferDescriptor, Device, DeviceBuffer, DevicePtr, Event, EventOptions, IpcEventHandle,
    LaunchConfig, MemoryPool, PoolOptions, Program, Result,
};

/// Variable with the descriptors for the second process; not set in the first process.
pub const TOLD: &str = "CUPYRITE_EXAMPLE_TOLD";

const SOURCE: &str = r#"
extern "C" __global__ void ramp(float *x, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] = i % 1000;
}
extern "C" __global__ void square(float *x, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}
"#;

/// Launches one of the kernels on all numbers of a buffer.
fn start(name: &str, x: &DeviceBuffer, stream: &cupyrite::Stream) -> Result<()> {
    let kernel = Program::new(SOURCE)
        .named("two_processes.cu")
        .compile_for(&Device::new(0)?)?
        .kernel(name)?;
    let n = x.size() / size_of::<f32>();
    let config = LaunchConfig::for_elements(n, 256);
    // SAFETY: the kernels access `n` floats; the buffer has as many.
    unsafe { kernel.launch(stream, &config, &(DevicePtr::<f32>::new(x.address()), n)) }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses the 64 bytes of a descriptor; `None` for any other text.
fn from_hex(text: &str) -> Option<[u8; 64]> {
    let mut bytes = [0; 64];
    if text.len() != 128 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

/// The first process: shares `n` numbers with the process that `other` starts; returns how many results are wrong.
pub fn first(n: usize, mut other: Command) -> Result<usize> {
    let device = Device::new(0)?;
    let stream = device.create_stream()?;
    let pool = MemoryPool::new(&device, &PoolOptions::default().shareable(true))?;
    let x = pool.allocate(n * size_of::<f32>(), &stream)?;
    start("ramp", &x, &stream)?;
    // The other process's work starts after this event; this process does not wait for it.
    let filled = stream.record_with(&EventOptions {
        ipc: true,
        ..EventOptions::default()
    })?;
    let described = x.descriptor()?;
    let told = format!(
        "{} {} {}",
        to_hex(&described.bytes),
        described.size,
        to_hex(&filled.ipc_handle()?.bytes)
    );
    let ended = other
        .env(TOLD, told)
        .stdin(Stdio::from(pool.export()?))
        .status()
        .expect("this program starts itself");
    assert!(ended.success(), "the other process failed: {ended}");
    // The other process has exited, so its work is complete and its import is released.
    let mut numbers = vec![0.0f32; n];
    x.read(&mut numbers, &stream)?;
    let right = |i: usize| ((i % 1000) as f32).powi(2);
    Ok((0..n).filter(|&i| numbers[i] != right(i)).count())
}

/// The second process; `told` is the value of [`TOLD`].
pub fn second(told: &str) -> Result<()> {
    let words: Vec<&str> = told.split(' ').collect();
    let &[buffer, size, event] = &words[..] else {
        panic!("{TOLD} is {told:?}; expected three words");
    };
    let descriptor = BufferDescriptor {
        bytes: from_hex(buffer).expect("the 64 bytes of a buffer"),
        size: size.parse().expect("a number of bytes"),
    };
    let handle = IpcEventHandle {
        bytes: from_hex(event).expect("the 64 bytes of an event"),
    };

    let device = Device::new(0)?;
    let stream = device.create_stream()?;
    let pool = MemoryPool::import(&device, std::io::stdin().as_fd())?;
    let x = pool.import_buffer(&descriptor, &stream)?;
    let filled = {
        let (_entered, context) = device.enter()?;
        Event::open(&context, &handle, false)?
    };
    stream.wait(&filled)?;
    start("square", &x, &stream)?;
    // Free the import and wait: this must complete before the first process frees the memory.
    x.close(None)?;
    stream.synchronize()
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    if let Ok(told) = std::env::var(TOLD) {
        return second(&told);
    }
    let n = 1 << 20;
    println!("device   {}", Device::new(0)?.name()?);
    let itself = std::env::current_exe().expect("a program knows where it is");
    let wrong = first(n, Command::new(itself))?;
    println!("result   {wrong} of {n} numbers are wrong");
    if wrong != 0 {
        std::process::exit(1);
    }
    Ok(())
}

//! One kernel template, instantiated for several types and operations by name expressions. The compiler returns the
//! mangled names; compiled instances are cached in memory.
//!
//! ```text
//! cargo run --release --example templates
//! CUPYRITE_DEVICE=cpu cargo run --release --example templates
//! ```

use std::collections::HashMap;

use cupyrite::{ConstPtr, Device, DeviceCopy, LaunchConfig, MutPtr, ObjectCode, Program, Result};

const SOURCE: &str = r#"
struct Add { template <class T> static __device__ T apply(T a, T b) { return a + b; } };
struct Larger { template <class T> static __device__ T apply(T a, T b) { return a > b ? a : b; } };

template <class Operation, class T>
__global__ void combine(const T *a, const T *b, T *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = Operation::template apply<T>(a[i], b[i]);
}
"#;

/// A host type and its name in CUDA C++.
pub trait Element: DeviceCopy + PartialEq {
    /// Its name in CUDA C++.
    const NAME: &'static str;
}
impl Element for f32 {
    const NAME: &'static str = "float";
}
impl Element for f64 {
    const NAME: &'static str = "double";
}
impl Element for i32 {
    const NAME: &'static str = "int";
}

/// Cache of compiled instances, by name expression.
pub struct Instances {
    device: Device,
    compiled: HashMap<String, ObjectCode>,
}

impl Instances {
    /// An empty cache.
    pub fn new(device: Device) -> Instances {
        Instances {
            device,
            compiled: HashMap::new(),
        }
    }

    /// How many instances have been compiled.
    pub fn count(&self) -> usize {
        self.compiled.len()
    }

    /// Combines two slices on the device with the operation of this name.
    pub fn combine<T: Element>(&mut self, operation: &str, a: &[T], b: &[T]) -> Result<Vec<T>> {
        assert_eq!(a.len(), b.len());
        let device = &self.device;
        let expression = format!("combine<{operation}, {}>", T::NAME);
        let code = match self.compiled.get(&expression) {
            Some(code) => code,
            None => {
                let code = Program::new(SOURCE)
                    .named("templates.cu")
                    .name_expression(&expression)
                    .compile_for(device)?;
                self.compiled.entry(expression.clone()).or_insert(code)
            }
        };
        // Looks the kernel up by its name expression.
        let kernel = code
            .kernel(&expression)?
            .typed::<(ConstPtr<T>, ConstPtr<T>, MutPtr<T>, u32)>()?;
        let (da, db) = (device.buffer_from(a)?, device.buffer_from(b)?);
        let mut out = device.buffer::<T>(a.len())?;
        let stream = device.create_stream()?;
        let config = LaunchConfig::for_elements(a.len(), 128);
        // SAFETY: the kernel accesses `a.len()` elements of each buffer; all three have as many.
        unsafe { kernel.launch(&stream, &config, (&da, &db, &mut out, a.len() as u32))? };
        stream.synchronize()?;
        out.to_vec()
    }
}

/// Runs several instances; returns how many results are wrong, and how many instances were compiled.
pub fn run(n: usize) -> Result<(usize, usize)> {
    let device = Device::new(0)?;
    println!("device   {}", device.name()?);
    let mut instances = Instances::new(device);
    let mut wrong = 0;
    let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, (n - i) as f32 * 0.5)).unzip();
    for _ in 0..2 {
        let sums = instances.combine("Add", &a, &b)?;
        wrong += (0..n).filter(|&i| sums[i] != a[i] + b[i]).count();
    }
    let larger = instances.combine("Larger", &a, &b)?;
    wrong += (0..n).filter(|&i| larger[i] != a[i].max(b[i])).count();
    let (a, b): (Vec<f64>, Vec<f64>) = (0..n).map(|i| (i as f64, 1.0 / (i + 1) as f64)).unzip();
    let sums = instances.combine("Add", &a, &b)?;
    wrong += (0..n).filter(|&i| sums[i] != a[i] + b[i]).count();
    let (a, b): (Vec<i32>, Vec<i32>) = (0..n as i32).map(|i| (i, 1000 - i)).unzip();
    let larger = instances.combine("Larger", &a, &b)?;
    wrong += (0..n).filter(|&i| larger[i] != a[i].max(b[i])).count();
    Ok((wrong, instances.count()))
}

#[allow(dead_code)] // a test runs the example without it
fn main() -> Result<()> {
    let (wrong, compiled) = run(100_000)?;
    println!(
        "result   {compiled} instances compiled for 5 uses, {wrong} elements differ from the host's"
    );
    if wrong != 0 {
        std::process::exit(1);
    }
    Ok(())
}

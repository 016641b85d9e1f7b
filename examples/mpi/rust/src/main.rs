//! A stencil with a process for each band of rows, started by MPI: ranks exchange edge rows as MPI messages.
//!
//! ```text
//! cargo build --release
//! mpiexec -n 4 target/release/halo-exchange [--size N] [--steps N] [--messages device|host]
//! CUPYRITE_DEVICE=cpu CUPYRITE_CPU_DEVICES=4 mpiexec -n 4 target/release/halo-exchange
//! ```
//!
//! Each rank takes the device of its number on its machine. While neighbours exchange edge rows, a stream computes the
//! rest.
//!
//! On the CPU device, device memory is host memory, and every MPI library accesses it. On a GPU, messages go through
//! page-locked host memory, unless `--messages device` says that the MPI library is CUDA-aware; with any other, the
//! program crashes then.
//!
//! Until the first message, all ranks agree on what failed, and end together: with status 77 if one has no device. A
//! rank that fails later aborts the others.

mod field;

use std::fmt::Display;
use std::ops::Range;
use std::process::ExitCode;

use cupyrite::sys::driver::CUdeviceptr;
use cupyrite::sys::loader::Backend;
use cupyrite::{
    Buffer, CopyOptions, Device, Error, HostBuffer, Kernel, LaunchConfig, Program, Stream,
    copy_async,
};
use mpi::collective::SystemOperation;
use mpi::datatype::{DynBufferMut, SystemDatatype};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use mpi::{Count, Rank, Threading};

const SOURCE: &str = r#"
// Rows [first, first + rows) of a field. The left and the right side keep their temperature.
extern "C" __global__ void step(const float *in, float *out, unsigned width, unsigned first, unsigned rows)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= rows)
        return;
    size_t i = (size_t)(first + y) * width + x;
    bool side = x == 0 || x == width - 1;
    out[i] = side ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
extern "C" __global__ void heat(const float *in, double *sum, unsigned width, unsigned rows)
{
    unsigned y = blockIdx.x * blockDim.x + threadIdx.x;
    double mine = 0;
    if (y < rows)
        for (unsigned x = 0; x < width; x++)
            mine += in[(size_t)(1 + y) * width + x];
    atomicAdd(sum, mine);
}
"#;
/// Exit status of a program that the machine cannot run.
const SKIPPED: u8 = 77;
/// Rows and columns of a field of 4 GiB.
const LARGEST: usize = 32768;

/// Returns the value of this rank if all ranks have one. Otherwise the first rank without one prints its reason, and all
/// return `status`.
fn agree<T>(
    world: &SimpleCommunicator,
    mine: Result<T, impl Display>,
    status: u8,
) -> Result<T, u8> {
    let mut failed = vec![false; world.size() as usize];
    world.all_gather_into(&mine.is_err(), &mut failed[..]);
    let first = failed.iter().position(|&failed| failed);
    match mine {
        Ok(value) if first.is_none() => return Ok(value),
        Err(reason) if first == Some(world.rank() as usize) => {
            let machine = mpi::environment::processor_name().unwrap_or_default();
            let place = format!("rank {} on {machine}", world.rank());
            match status {
                SKIPPED => println!("skipped: {place}: no device: {reason}"),
                _ => eprintln!("{place}: {reason}"),
            }
        }
        _ => {}
    }
    // Some launchers kill the other ranks when one ends, also the one that prints.
    world.barrier();
    Err(status)
}

/// The size of the field, the number of steps, and whether messages go through page-locked memory, if that is given.
fn parse(
    mut arguments: impl Iterator<Item = String>,
    ranks: Rank,
) -> Result<([usize; 2], Option<bool>), String> {
    let (mut size, mut steps, mut staged) = (128, 30, None);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let wrong = |expected: &str| format!("{name} {value:?}: expected {expected}");
        let number = || value.parse().map_err(|_| wrong("a number"));
        match (name.as_str(), value.as_str()) {
            ("--size", _) => size = number()?,
            ("--steps", _) => steps = number()?,
            ("--messages", "device") => staged = Some(false),
            ("--messages", "host") => staged = Some(true),
            ("--messages", _) => return Err(wrong("device or host")),
            _ => return Err(wrong("--size N, --steps N or --messages device|host")),
        }
    }
    let least = ranks as usize + 2;
    if !(least..=LARGEST).contains(&size) {
        let allowed = format!("{least} to {LARGEST} for {ranks} ranks");
        return Err(format!("--size {size}: expected {allowed}"));
    }
    Ok(([size, steps], staged))
}

/// The device of this rank: that of its number among the `local` ranks of this machine. More ranks than devices share
/// them.
fn choose_device(local: &SimpleCommunicator) -> Result<Device, Error> {
    let device = Device::new(local.rank() as usize % Device::count()?.max(1))?;
    // Page-locked memory and a CUDA-aware MPI library use the current context.
    device.context()?.set_current()?;
    Ok(device)
}

struct Neighbour {
    rank: Rank,
    /// The row that is sent there, and the row that is received from there.
    rows: [usize; 2],
    /// Page-locked memory for both, unless MPI accesses device memory.
    staging: Option<[HostBuffer<f32>; 2]>,
}

/// The rows of this rank, between two rows of its neighbours or of the field's edge.
struct Band {
    stream: Stream,
    step: Kernel,
    heat: Kernel,
    /// Both have `rows + 2` rows of `width` elements.
    fields: [Buffer<f32>; 2],
    /// The heat of this rank, and of all.
    sums: [Buffer<f64>; 2],
    rows: usize,
    width: usize,
    staged: bool,
    neighbours: Vec<Neighbour>,
}

/// Queued copies use the page-locked memory of the neighbours.
impl Drop for Band {
    fn drop(&mut self) {
        if let Err(error) = self.stream.synchronize() {
            eprintln!("{error}");
        }
    }
}

impl Band {
    fn new(
        world: &SimpleCommunicator,
        device: Device,
        width: usize,
        staged: bool,
    ) -> Result<Band, Error> {
        let own = field::rows_of(world.rank(), world.size(), width);
        let (rows, mut neighbours) = (own.len(), Vec::new());
        for (offset, edge, outside) in [(-1, 1, 0), (1, rows, rows + 1)] {
            let rank = world.rank() + offset;
            if (0..world.size()).contains(&rank) {
                let row = || HostBuffer::filled(width, 0.0f32);
                neighbours.push(Neighbour {
                    rank,
                    rows: [edge, outside],
                    staging: if staged { Some([row()?, row()?]) } else { None },
                });
            }
        }
        let code = Program::new(SOURCE)
            .named("halo_exchange.cu")
            .compile_for(&device)?;
        let field = field::initial(width, own.start - 1..own.end + 1);
        Ok(Band {
            stream: device.create_stream()?,
            step: code.kernel("step")?,
            heat: code.kernel("heat")?,
            // Both: the edges of the whole field are not computed.
            fields: [device.buffer_from(&field)?, device.buffer_from(&field)?],
            sums: [device.buffer_zeroed(1)?, device.buffer_zeroed(1)?],
            rows,
            width,
            staged,
            neighbours,
        })
    }

    /// The field that step `number` reads, and the step before it writes.
    fn field(&self, number: usize) -> &Buffer<f32> {
        &self.fields[number % 2]
    }

    /// Queues the computation of rows between 1 and `self.rows`.
    fn advance(&self, number: usize, rows: Range<usize>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let (width, first, rows) = (self.width as u32, rows.start as u32, rows.len() as u32);
        let config = LaunchConfig::new([width.div_ceil(32), rows.div_ceil(8), 1], [32, 8, 1]);
        let arguments = (
            self.field(number),
            self.field(number + 1),
            width,
            first,
            rows,
        );
        // SAFETY: the kernel reads one row more on each side, and fields have `self.rows + 2`. `compute` queues it for rows
        // that are not in messages.
        unsafe { self.step.launch(&self.stream, &config, &arguments) }
    }

    /// Queues the copy of a row between `self.fields` and page-locked memory of `self.neighbours`.
    fn copy_row(&self, from: CUdeviceptr, to: CUdeviceptr) -> Result<(), Error> {
        let bytes = self.width * size_of::<f32>();
        // SAFETY: both are rows, and live until `drop` has waited for the stream. `compute` waits for the copy of a sent row
        // before it sends it, and for that of a received row, by the next step's event, before it receives another.
        unsafe { copy_async(to, from, bytes, &self.stream, &CopyOptions::default()) }
    }

    /// One step: both edge rows first, then all others while the edge rows are exchanged.
    fn compute(&self, world: &SimpleCommunicator, number: usize) -> Result<(), Error> {
        let target = self.field(number + 1).address();
        let address = |row: usize| target + (row * self.width * size_of::<f32>()) as CUdeviceptr;
        self.advance(number, 1..2)?;
        self.advance(number, self.rows.max(2)..self.rows + 1)?;
        let mut messages = Vec::new();
        for neighbour in &self.neighbours {
            let mut rows = neighbour.rows.map(address);
            if let Some(staging) = &neighbour.staging {
                self.copy_row(rows[0], staging[0].address())?;
                rows = staging.each_ref().map(HostBuffer::address);
            }
            // SAFETY: `self` owns both rows. They are sent and received below, after the event, with which all earlier work
            // is complete; the launch after it accesses other rows of this field.
            let rows = rows.map(|row| unsafe { message::<f32>(row, self.width) });
            messages.push((world.process_at_rank(neighbour.rank), rows));
        }
        let edges = self.stream.record()?;
        self.advance(number, 2..self.rows)?;
        edges.synchronize()?;
        mpi::request::multiple_scope(2 * messages.len(), |scope, requests| {
            for (neighbour, [sent, received]) in &mut messages {
                requests.add(neighbour.immediate_receive_into(scope, received));
                requests.add(neighbour.immediate_send(scope, sent));
            }
            requests.wait_all(&mut Vec::new());
        });
        for neighbour in &self.neighbours {
            if let Some([_, received]) = &neighbour.staging {
                self.copy_row(received.address(), address(neighbour.rows[1]))?;
            }
        }
        Ok(())
    }

    /// The sum over all ranks after all steps.
    fn total_heat(&self, world: &SimpleCommunicator, steps: usize) -> Result<f64, Error> {
        let [mine, all] = &self.sums;
        let config = LaunchConfig::for_elements(self.rows, 64);
        let arguments = (self.field(steps), mine, self.width as u32, self.rows as u32);
        // SAFETY: the kernel reads `self.rows` rows from row 1 on, and adds to one number.
        unsafe { self.heat.launch(&self.stream, &config, &arguments)? };
        self.stream.synchronize()?;
        if self.staged {
            let mut total = [0.0];
            world.all_reduce_into(&mine.to_vec()?[..], &mut total, SystemOperation::sum());
            return Ok(total[0]);
        }
        // SAFETY: `self` owns both numbers, and all work is complete.
        let [mine, mut total] = [mine, all].map(|sum| unsafe { message::<f64>(sum.address(), 1) });
        world.all_reduce_into(&mine, &mut total, SystemOperation::sum());
        Ok(all.to_vec()?[0])
    }

    /// Computes all steps. Returns their seconds, the heat of all ranks, and the rows of this rank.
    fn solve(
        &self,
        world: &SimpleCommunicator,
        steps: usize,
    ) -> Result<(f64, f64, Vec<f32>), Error> {
        world.barrier();
        let start = mpi::time();
        for number in 0..steps {
            self.compute(world, number)?;
        }
        self.stream.synchronize()?;
        world.barrier();
        let seconds = mpi::time() - start;
        let field = self.field(steps).to_vec()?;
        let rows = field[self.width..field.len() - self.width].to_vec();
        Ok((seconds, self.total_heat(world, steps)?, rows))
    }
}

/// Memory for MPI alone. It is not a slice, as the host may have no access.
///
/// # Safety
///
/// MPI can access `len` elements at `address` when it uses the message, and nothing else writes them meanwhile.
unsafe fn message<T>(address: CUdeviceptr, len: usize) -> DynBufferMut<'static>
where
    T: Equivalence<Out = SystemDatatype>,
{
    let pointer = std::ptr::with_exposed_provenance_mut::<T>(address as usize);
    // SAFETY: the caller's contract.
    unsafe { DynBufferMut::from_raw(pointer, len as Count, T::equivalent_datatype()) }
}

/// Returns the exit status of all ranks if they end without a result.
fn run(world: &SimpleCommunicator) -> Result<(), u8> {
    let (rank, ranks) = (world.rank(), world.size());
    let (mut numbers, staged) = agree(world, parse(std::env::args().skip(1), ranks), 2)?;
    // Ranks with different arguments use the field of rank 0.
    world.process_at_rank(0).broadcast_into(&mut numbers);
    let [size, steps] = numbers;

    let local = world.split_shared(rank);
    let device = agree(world, choose_device(&local), SKIPPED)?;
    let name = agree(world, device.name(), SKIPPED)?;
    let staged = staged.unwrap_or(matches!(cupyrite::backend(), Ok(Backend::Gpu)));
    let band = agree(world, Band::new(world, device, size, staged), 1)?;
    if rank == 0 {
        let version = mpi::environment::library_version().unwrap_or_default();
        let (library, here) = (version.lines().next().unwrap_or_default(), local.size());
        println!("on {name}: {ranks} ranks, {here} on this machine, {library:.40}");
    }
    let (seconds, heat, rows) = band.solve(world, steps).unwrap_or_else(|error| {
        // The others may wait for messages of this rank.
        eprintln!("rank {rank}: {error}");
        world.abort(1)
    });
    let own = field::rows_of(rank, ranks, size);
    agree(world, field::check(size, steps, own, &rows, heat), 1)?;
    if rank == 0 {
        let (place, time) = (if staged { "host" } else { "device" }, 1e3 * seconds);
        print!("{steps} steps on {ranks} bands in {time:.1} ms, ");
        println!("messages in {place} memory, heat {heat:.1}");
        println!("done: the results are right");
    }
    Ok(())
}

fn main() -> ExitCode {
    // The CPU device has threads; this one alone calls MPI.
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).expect("called once");
    match run(&universe.world()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(status) => ExitCode::from(status),
    }
}

//! Launch configurations, and kernel launches.

use std::ffi::{c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::mem::MaybeUninit;

use cupyrite_sys::driver::{
    CUdevice, CUdevice_attribute, CUfunction, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchAttributeValue_union_clusterDim, CUlaunchConfig, CUresult,
    CUstream,
};
use cupyrite_sys::waits;

use crate::error::{Error, Result, driver};
use crate::module::args::KernelArgs;
use crate::module::kernel::{FunctionAttribute, Kernel};
use crate::stream::Stream;

/// The shape and the attributes of a launch.
///
/// See [`cuLaunchKernelEx`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// Blocks in x, y and z; with a [cluster](Self::cluster), clusters in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Blocks per cluster in x, y and z: they run at the same time and can access each other's shared memory. Needs
    /// compute capability 9.0.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
    /// Whether all blocks must be resident at once, for grid-wide synchronisation.
    pub cooperative: bool,
    /// Whether the kernel may start before the preceding one in the stream has ended. It waits for the other's results
    /// itself (`griddepcontrol.wait`).
    pub programmatic_stream_serialization: bool,
}

impl LaunchConfig {
    /// `blocks` blocks of `threads` threads.
    pub const fn linear(blocks: u32, threads: u32) -> Self {
        Self::new([blocks, 1, 1], [threads, 1, 1])
    }

    /// As many blocks of `threads` threads as give each of `elements` a thread.
    ///
    /// 0 threads count as 1; more than `u32::MAX` blocks are clamped, and rejected by the driver.
    pub const fn for_elements(elements: usize, threads: u32) -> Self {
        let threads = if threads == 0 { 1 } else { threads };
        let blocks = elements.div_ceil(threads as usize);
        let blocks = if blocks > u32::MAX as usize {
            u32::MAX
        } else if blocks == 0 {
            1
        } else {
            blocks as u32
        };
        Self::linear(blocks, threads)
    }

    /// Any grid and block, without dynamic shared memory.
    #[inline]
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchConfig {
            grid,
            block,
            cluster: None,
            shared_bytes: 0,
            cooperative: false,
            programmatic_stream_serialization: false,
        }
    }

    /// Sets the cluster. The grid then counts clusters: a grid of 4 and a cluster of 2 are 8 blocks.
    #[must_use]
    pub const fn with_cluster(mut self, blocks: [u32; 3]) -> Self {
        self.cluster = Some(blocks);
        self
    }

    /// Sets the dynamic shared memory, in bytes.
    #[must_use]
    pub const fn with_shared(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Makes the launch cooperative.
    #[must_use]
    pub const fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Lets the kernel start before the preceding one has ended.
    #[must_use]
    pub const fn with_programmatic_stream_serialization(mut self) -> Self {
        self.programmatic_stream_serialization = true;
        self
    }

    /// Blocks in x, y and z: the grid, multiplied by the cluster if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a product exceeds 32 bits.
    pub fn blocks(&self) -> Result<[u32; 3]> {
        let Some(cluster) = self.cluster else {
            return Ok(self.grid);
        };
        let mut blocks = self.grid;
        for (n, of) in blocks.iter_mut().zip(cluster) {
            *n = n.checked_mul(of).ok_or_else(|| {
                let problem = format!(
                    "{} clusters of {} blocks are more blocks than 32 bits can count",
                    Dims(self.grid),
                    Dims(cluster)
                );
                Error::argument("Kernel::launch", "config.grid", problem)
            })?;
        }
        Ok(blocks)
    }

    /// Calls `body` with the driver's representation, for `cuLaunchKernelEx` and occupancy queries.
    ///
    /// # Errors
    ///
    /// Those of [`LaunchConfig::blocks`] and of `body`.
    pub fn with_raw<R>(
        &self,
        stream: CUstream,
        body: impl FnOnce(&CUlaunchConfig) -> Result<R>,
    ) -> Result<R> {
        let mut attributes = Attributes::new();
        if self.cooperative {
            let value = CUlaunchAttributeValue { cooperative: 1 };
            attributes.push(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value);
        }
        if let Some([x, y, z]) = self.cluster {
            let value = CUlaunchAttributeValue {
                clusterDim: CUlaunchAttributeValue_union_clusterDim { x, y, z },
            };
            attributes.push(
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                value,
            );
        }
        if self.programmatic_stream_serialization {
            let value = CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            };
            attributes.push(
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                value,
            );
        }
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (self.blocks()?, self.block);
        body(&CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: self.shared_bytes,
            hStream: stream,
            attrs: attributes.list.as_mut_ptr().cast(),
            numAttrs: attributes.len,
        })
    }

    /// Whether the launch needs no attributes.
    #[inline]
    fn is_plain(&self) -> bool {
        self.cluster.is_none() && !self.cooperative && !self.programmatic_stream_serialization
    }

    /// Launches `function` in `stream`.
    ///
    /// # Safety
    ///
    /// The handles are live. `params` has the address of each parameter, with as many readable bytes as the parameter
    /// has. The kernel's memory accesses are valid.
    #[inline]
    unsafe fn submit(
        &self,
        function: CUfunction,
        stream: CUstream,
        params: *mut *mut c_void,
    ) -> Result<()> {
        // The kernel may print.
        waits::note();
        if !self.is_plain() {
            return self.with_raw(stream, |config| {
                // SAFETY: the configuration and its attributes live during the call; the rest is the caller's
                // contract.
                unsafe {
                    driver!(cuLaunchKernelEx(
                        config,
                        function,
                        params,
                        std::ptr::null_mut()
                    ))
                }
            });
        }
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (self.grid, self.block);
        // SAFETY: the caller's contract; the driver copies the arguments before it returns.
        unsafe {
            driver!(cuLaunchKernel(
                function,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                self.shared_bytes,
                stream,
                params,
                std::ptr::null_mut(),
            ))
        }
    }
}

/// A launch's attributes, on the stack.
struct Attributes {
    list: [MaybeUninit<CUlaunchAttribute>; 3],
    len: c_uint,
}

impl Attributes {
    const fn new() -> Attributes {
        Attributes {
            list: [const { MaybeUninit::uninit() }; 3],
            len: 0,
        }
    }

    fn push(&mut self, id: CUlaunchAttributeID, value: CUlaunchAttributeValue) {
        self.list[self.len as usize].write(CUlaunchAttribute {
            id,
            pad: [0; 4],
            value,
        });
        self.len += 1;
    }
}

impl Kernel {
    /// Launches the kernel in a stream.
    ///
    /// Checks the number and sizes of the arguments first. [`Kernel::typed`] checks them once, when the kernel is
    /// looked up, and the compiler checks the types.
    ///
    /// # Safety
    ///
    /// The arguments must have the types that the kernel expects. Memory that it accesses through them must belong to
    /// this context, and must not be freed or used in a conflicting way until the kernel is done.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] naming the position of an invalid argument, counted from 0; otherwise as
    /// [`Kernel::launch_raw`].
    pub unsafe fn launch<A: KernelArgs + ?Sized>(
        &self,
        stream: &Stream,
        config: &LaunchConfig,
        args: &A,
    ) -> Result<()> {
        args.with(|addresses, sizes| {
            self.check_sizes("Kernel::launch", sizes)?;
            let params = addresses.as_ptr().cast_mut().cast::<*mut c_void>();
            // SAFETY: `check_sizes` has compared the arguments with the parameters. The rest is the caller's contract.
            unsafe { self.launch_raw(stream, config, params) }
        })
    }

    /// Launches the kernel with the addresses of its arguments, unchecked.
    ///
    /// # Safety
    ///
    /// `params` points to one address per parameter, each valid for reads of the parameter's size until the call
    /// returns. Otherwise as [`Kernel::launch`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a cooperative grid that does not fit on the device at once;
    /// `CUDA_ERROR_INVALID_VALUE` and the like, with the cause, for another invalid shape; `CUDA_ERROR_INVALID_HANDLE`
    /// after the program has unloaded the library. A later call, such as the stream's `synchronize`, reports errors of
    /// the kernel itself.
    #[inline]
    pub unsafe fn launch_raw(
        &self,
        stream: &Stream,
        config: &LaunchConfig,
        params: *mut *mut c_void,
    ) -> Result<()> {
        self.check_loaded("cuLaunchKernel")?;
        if stream.is_of_builder() {
            self.retain_for_graph(stream)?;
        }
        // A `CUkernel` runs in the context of its stream (`cuLaunchKernel`), whichever is current.
        let launched =
            // SAFETY: both owners are borrowed, so the handles are live; the rest is the caller's contract.
            stream.queue(|| unsafe { config.submit(self.function(), stream.handle(), params) });
        match launched {
            Ok(()) => Ok(()),
            Err(error) => Err(self.explain(stream, config, error)),
        }
    }

    /// Retains the kernel for the graph that the stream records.
    #[cold]
    fn retain_for_graph(&self, stream: &Stream) -> Result<()> {
        stream.retain_recorded_once(self.address(), || std::sync::Arc::new(self.clone()))
    }

    /// Checks the number and sizes of arguments against the kernel's parameters.
    pub(crate) fn check_sizes(&self, function: &'static str, sizes: &[usize]) -> Result<()> {
        let Some(params) = self.params() else {
            return Ok(());
        };
        if sizes.len() != params.len() {
            let problem = format!(
                "has {} arguments, kernel `{}` takes {}",
                sizes.len(),
                self.name(),
                params.len()
            );
            return Err(Error::argument(function, "args", problem));
        }
        match sizes
            .iter()
            .zip(params)
            .position(|(given, p)| *given != p.size)
        {
            None => Ok(()),
            Some(i) => {
                let problem = format!(
                    "has {} bytes, parameter {i} of kernel `{}` has {}",
                    sizes[i],
                    self.name(),
                    params[i].size
                );
                Err(Error::argument(function, format!("args.{i}"), problem))
            }
        }
    }

    /// Adds the cause to a launch error: the driver may report no more than "invalid value".
    #[cold]
    fn explain(&self, stream: &Stream, config: &LaunchConfig, error: Error) -> Error {
        let Error::Driver { call, status, log } = error else {
            return error;
        };
        if status == CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
            && let Ok(most) = self.max_resident_blocks(stream, config)
        {
            let problem = format!(
                "a cooperative launch of {} blocks of kernel `{}`, but no more than {most} of {} threads fit on the \
                 device at the same time",
                Dims(config.grid),
                self.name(),
                Dims(config.block),
            );
            return Error::argument("Kernel::launch", "config.grid", problem);
        }
        let shape = [
            CUresult::CUDA_ERROR_INVALID_VALUE,
            CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE,
            CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
        ];
        let found = if shape.contains(&status) {
            self.describe_invalid_config(stream, config)
                .unwrap_or_default()
        } else {
            String::new()
        };
        // The driver's own sentence would say the same again.
        let log = if found.is_empty() { log } else { found };
        Error::Driver { call, status, log }
    }

    /// The number of blocks of a configuration that fit on the device at once.
    fn max_resident_blocks(&self, stream: &Stream, config: &LaunchConfig) -> Result<u64> {
        let threads: u64 = config.block.iter().map(|&n| u64::from(n)).product();
        let mut blocks: c_int = 0;
        stream.with_current(|| {
            // SAFETY: the result is valid for writes; the handle is live.
            unsafe {
                driver!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &mut blocks,
                    self.function(),
                    c_int::try_from(threads).unwrap_or(c_int::MAX),
                    config.shared_bytes as usize,
                ))?;
            }
            let processors =
                device_limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            Ok(u64::from(blocks.unsigned_abs()) * processors)
        })
    }

    /// Describes why a configuration cannot be launched; empty if no reason is found.
    fn describe_invalid_config(&self, stream: &Stream, config: &LaunchConfig) -> Result<String> {
        use CUdevice_attribute as Limit;
        let mut text = String::new();
        let mut say = |sentence: std::fmt::Arguments<'_>| {
            if !text.is_empty() {
                text.push('\n');
            }
            // Writing to a `String` cannot fail.
            let _ = text.write_fmt(sentence);
        };
        let limits = |names: [Limit; 3]| -> Result<[u64; 3]> {
            let [x, y, z] = names;
            Ok([device_limit(x)?, device_limit(y)?, device_limit(z)?])
        };
        let grid = config.blocks()?;
        let (device, most_blocks, most_threads, opt_in, major) = stream.with_current(|| {
            Ok((
                current_device()?,
                limits([
                    Limit::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                    Limit::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                    Limit::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
                ])?,
                limits([
                    Limit::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                    Limit::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                    Limit::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
                ])?,
                device_limit(Limit::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
                device_limit(Limit::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ))
        })?;
        let limit = |name| -> Result<u64> {
            Ok(u64::from(self.attribute_on(device, name)?.unsigned_abs()))
        };
        let threads: u64 = config.block.iter().map(|&n| u64::from(n)).product();
        let most = limit(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if threads > most {
            say(format_args!(
                "a block of {} has {threads} threads; kernel `{}` runs with up to {most}",
                Dims(config.block),
                self.name()
            ));
        }
        for (name, given, most, said) in [
            ("grid", grid, most_blocks, false),
            ("block", config.block, most_threads, threads > most),
        ] {
            if !said
                && !given
                    .iter()
                    .zip(most)
                    .all(|(&n, most)| (1..=most).contains(&u64::from(n)))
            {
                let [x, y, z] = most;
                say(format_args!(
                    "the {name} is {}; each dimension is at least 1, the device takes up to ({x}, {y}, {z})",
                    Dims(given)
                ));
            }
        }
        let most = limit(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?;
        if u64::from(config.shared_bytes) > most {
            let taken = limit(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
            say(format_args!(
                "{} bytes of dynamic shared memory; kernel `{}` may use {most}, and up to {} once its attribute \
                 MAX_DYNAMIC_SHARED_SIZE_BYTES says so",
                config.shared_bytes,
                self.name(),
                opt_in.saturating_sub(taken)
            ));
        }
        if let Some(cluster) = config.cluster {
            let blocks: u64 = cluster.iter().map(|&n| u64::from(n)).product();
            if major < 9 {
                say(format_args!(
                    "clusters need a device of compute capability 9.0 or higher"
                ));
            } else if blocks == 0 || blocks > 8 {
                say(format_args!(
                    "a cluster of {} has {blocks} blocks; kernels run in clusters of 1 to 8 blocks unless their attribute \
                     NON_PORTABLE_CLUSTER_SIZE_ALLOWED is set",
                    Dims(cluster)
                ));
            }
        }
        Ok(text)
    }
}

/// The current context's device.
fn current_device() -> Result<CUdevice> {
    let mut device: CUdevice = 0;
    // SAFETY: `device` is valid for writes.
    unsafe { driver!(cuCtxGetDevice(&mut device))? };
    Ok(device)
}

/// An attribute of the current context's device.
fn device_limit(attribute: CUdevice_attribute) -> Result<u64> {
    let mut value: c_int = 0;
    // SAFETY: `value` is valid for writes.
    unsafe {
        driver!(cuDeviceGetAttribute(
            &mut value,
            attribute,
            current_device()?
        ))?
    };
    Ok(u64::from(value.unsigned_abs()))
}

/// Displays three dimensions as a tuple.
struct Dims([u32; 3]);

impl std::fmt::Display for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

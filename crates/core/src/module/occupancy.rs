//! Occupancy queries.
//!
//! Source: CUDA driver API, "Occupancy".

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use cupyrite_sys::driver::{CUlaunchConfig, CUoccupancyB2DSize};

use crate::context::Device;
use crate::error::{Result, driver};
use crate::module::kernel::Kernel;
use crate::module::launch::LaunchConfig;
use crate::stream::Stream;

/// The dynamic shared memory of a block, in bytes.
#[non_exhaustive]
pub enum DynamicSharedMemory<'a> {
    /// Independent of the block size.
    Bytes(usize),
    /// A function of the block size; called on this thread during the query.
    PerBlock(&'a mut dyn FnMut(u32) -> usize),
    /// A C function of the block size.
    Function(unsafe extern "C" fn(c_int) -> usize),
}

/// The block size with the highest occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaxPotentialBlockSize {
    /// The smallest number of blocks that reaches it.
    pub min_grid_size: u32,
    /// Threads per block.
    pub max_block_size: u32,
}

type Panic = Box<dyn Any + Send>;

/// A closure that the driver calls back, and its panic.
struct Asked<'a> {
    ask: &'a mut dyn FnMut(u32) -> usize,
    panic: Option<Panic>,
}

thread_local! {
    /// The [`Asked`] of this thread's current query; null outside of one.
    static ASKED: Cell<*mut ()> = const { Cell::new(std::ptr::null_mut()) };
}

/// The callback for [`DynamicSharedMemory::PerBlock`].
unsafe extern "C" fn ask(threads: c_int) -> usize {
    let asked = ASKED.get().cast::<Asked<'_>>();
    if asked.is_null() {
        return 0;
    }
    // SAFETY: set by this thread's current query, which owns the closure and waits for the driver.
    let asked = unsafe { &mut *asked };
    if asked.panic.is_some() {
        return 0;
    }
    // A panic must not unwind the driver's frames.
    match catch_unwind(AssertUnwindSafe(|| (asked.ask)(threads.unsigned_abs()))) {
        Ok(bytes) => bytes,
        Err(panic) => {
            asked.panic = Some(panic);
            0
        }
    }
}

fn count(n: u32) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

impl Kernel {
    /// The number of blocks of `block_size` threads with this dynamic shared memory that a multiprocessor runs at the
    /// same time.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a block without threads. Source:
    /// `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
    pub fn max_active_blocks(
        &self,
        device: &Device,
        block_size: u32,
        dynamic_shared: usize,
    ) -> Result<u32> {
        let mut blocks: c_int = 0;
        self.with_device(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            device,
            || {
                // SAFETY: the result is valid for writes, the handle is live.
                unsafe {
                    driver!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        &mut blocks,
                        self.function(),
                        count(block_size),
                        dynamic_shared,
                    ))
                }
            },
        )?;
        Ok(blocks.unsigned_abs())
    }

    /// The block size of at most `limit` threads (0: no limit) with the highest occupancy.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuOccupancyMaxPotentialBlockSize`.
    pub fn max_potential_block_size(
        &self,
        device: &Device,
        dynamic_shared: DynamicSharedMemory<'_>,
        limit: u32,
    ) -> Result<MaxPotentialBlockSize> {
        let (mut grid, mut block): (c_int, c_int) = (0, 0);
        let mut query = |function: CUoccupancyB2DSize, bytes: usize| {
            self.with_device("cuOccupancyMaxPotentialBlockSize", device, || {
                // SAFETY: both results are valid for writes; the handle is live; the callback lives during the call.
                unsafe {
                    driver!(cuOccupancyMaxPotentialBlockSize(
                        &mut grid,
                        &mut block,
                        self.function(),
                        function,
                        bytes,
                        count(limit),
                    ))
                }
            })
        };
        match dynamic_shared {
            DynamicSharedMemory::Bytes(bytes) => query(None, bytes)?,
            DynamicSharedMemory::Function(function) => query(Some(function), 0)?,
            DynamicSharedMemory::PerBlock(closure) => {
                let mut asked = Asked {
                    ask: closure,
                    panic: None,
                };
                // The closure may make a nested query.
                let before = ASKED.replace((&raw mut asked).cast());
                let result = query(Some(ask), 0);
                ASKED.set(before);
                if let Some(panic) = asked.panic {
                    resume_unwind(panic);
                }
                result?;
            }
        }
        Ok(MaxPotentialBlockSize {
            min_grid_size: grid.unsigned_abs(),
            max_block_size: block.unsigned_abs(),
        })
    }

    /// The dynamic shared memory per block, in bytes, with which a multiprocessor runs this many blocks of
    /// `block_size` threads at the same time.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if so many do not fit. Source: `cuOccupancyAvailableDynamicSMemPerBlock`.
    pub fn available_dynamic_shared(
        &self,
        device: &Device,
        blocks: u32,
        block_size: u32,
    ) -> Result<usize> {
        let mut bytes = 0usize;
        self.with_device("cuOccupancyAvailableDynamicSMemPerBlock", device, || {
            // SAFETY: the result is valid for writes, the handle is live.
            unsafe {
                driver!(cuOccupancyAvailableDynamicSMemPerBlock(
                    &mut bytes,
                    self.function(),
                    count(blocks),
                    count(block_size),
                ))
            }
        })?;
        Ok(bytes)
    }

    /// The largest number of blocks per cluster for a configuration in a stream; the configuration's own cluster is
    /// ignored.
    ///
    /// # Errors
    ///
    /// The driver's error; `CUDA_ERROR_NOT_SUPPORTED` on devices without clusters (before compute capability 9.0).
    /// Source: `cuOccupancyMaxPotentialClusterSize`.
    pub fn max_potential_cluster_size(
        &self,
        config: &LaunchConfig,
        stream: &Stream,
    ) -> Result<u32> {
        self.clusters(config, stream, |clusters, config| {
            // SAFETY: the result is valid for writes; the handle is live; the configuration lives during the call.
            unsafe {
                driver!(cuOccupancyMaxPotentialClusterSize(
                    clusters,
                    self.function(),
                    config
                ))
            }
        })
    }

    /// The number of clusters of a configuration that the stream's device runs at the same time.
    ///
    /// # Errors
    ///
    /// As [`Kernel::max_potential_cluster_size`]. Source: `cuOccupancyMaxActiveClusters`.
    pub fn max_active_clusters(&self, config: &LaunchConfig, stream: &Stream) -> Result<u32> {
        self.clusters(config, stream, |clusters, config| {
            // SAFETY: the result is valid for writes; the handle is live; the configuration lives during the call.
            unsafe {
                driver!(cuOccupancyMaxActiveClusters(
                    clusters,
                    self.function(),
                    config
                ))
            }
        })
    }

    fn clusters(
        &self,
        config: &LaunchConfig,
        stream: &Stream,
        ask: impl Fn(&mut c_int, &CUlaunchConfig) -> Result<()>,
    ) -> Result<u32> {
        self.check_loaded("cuOccupancyMaxActiveClusters")?;
        let mut clusters: c_int = 0;
        config.with_raw(stream.handle(), |config| {
            stream.with_current(|| ask(&mut clusters, config))
        })?;
        Ok(clusters.unsigned_abs())
    }

    /// Runs a query with a context of the device current: a kernel has none of its own.
    fn with_device<T>(
        &self,
        call: &'static str,
        device: &Device,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.check_loaded(call)?;
        let _entered = device.enter()?;
        body()
    }
}

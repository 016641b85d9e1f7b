//! How much of a kernel fits on a device at once.
//!
//! Source: CUDA driver API, "Occupancy".

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use cupyrite_sys::driver::{CUlaunchConfig, CUoccupancyB2DSize};

use crate::context::device::Device;
use crate::error::{Result, driver};
use crate::module::kernel::Kernel;
use crate::module::launch::LaunchConfig;
use crate::stream::Stream;

/// How many bytes of dynamic shared memory a block needs.
#[non_exhaustive]
pub enum DynamicSharedMemory<'a> {
    /// The same for every size of block.
    Bytes(usize),
    /// Depends on the threads of a block; asked by the calling thread before the query returns.
    PerBlock(&'a mut dyn FnMut(u32) -> usize),
    /// The same as a C function.
    Function(unsafe extern "C" fn(c_int) -> usize),
}

/// The launch that fills a device best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaxPotentialBlockSize {
    /// The fewest blocks that fill the device.
    pub min_grid_size: u32,
    /// Threads of each.
    pub max_block_size: u32,
}

type Panic = Box<dyn Any + Send>;

/// A closure on its way through the driver, and what it panicked with.
struct Asked<'a> {
    ask: &'a mut dyn FnMut(u32) -> usize,
    panic: Option<Panic>,
}

thread_local! {
    /// The [`Asked`] of the query that this thread is in; null outside of one.
    static ASKED: Cell<*mut ()> = const { Cell::new(std::ptr::null_mut()) };
}

/// What the driver calls for [`DynamicSharedMemory::PerBlock`].
unsafe extern "C" fn ask(threads: c_int) -> usize {
    let asked = ASKED.get().cast::<Asked<'_>>();
    if asked.is_null() {
        return 0;
    }
    // SAFETY: set by the query that this thread is in, whose closure it is and which waits for the driver.
    let asked = unsafe { &mut *asked };
    if asked.panic.is_some() {
        return 0;
    }
    // The driver's frames must not be unwound.
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
    /// Blocks of `block_size` threads, each with so many bytes of dynamic shared memory, that a multiprocessor of a
    /// device runs at the same time.
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
                // SAFETY: the result has a valid place, the handle is live.
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

    /// The size of block, of at most `limit` threads (0: no limit), with which the kernel fills a device best.
    ///
    /// # Errors
    ///
    /// What the driver says. Source: `cuOccupancyMaxPotentialBlockSize`.
    pub fn max_potential_block_size(
        &self,
        device: &Device,
        dynamic_shared: DynamicSharedMemory<'_>,
        limit: u32,
    ) -> Result<MaxPotentialBlockSize> {
        let (mut grid, mut block): (c_int, c_int) = (0, 0);
        let mut query = |function: CUoccupancyB2DSize, bytes: usize| {
            self.with_device("cuOccupancyMaxPotentialBlockSize", device, || {
                // SAFETY: both results have valid places, the handle is live, and the function is there during the call.
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
                // The closure may itself make such a query.
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

    /// Bytes of dynamic shared memory that a block may have for so many blocks of `block_size` threads to run on a
    /// multiprocessor of a device at the same time.
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
            // SAFETY: the result has a valid place, the handle is live.
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

    /// Blocks of the largest cluster that can be launched with a configuration in a stream; its own cluster does not
    /// matter.
    ///
    /// # Errors
    ///
    /// What the driver says; `CUDA_ERROR_NOT_SUPPORTED` on devices without clusters (before compute capability 9.0).
    /// Source: `cuOccupancyMaxPotentialClusterSize`.
    pub fn max_potential_cluster_size(
        &self,
        config: &LaunchConfig,
        stream: &Stream,
    ) -> Result<u32> {
        self.clusters(config, stream, |clusters, config| {
            // SAFETY: the result has a valid place, the handle is live, the configuration is there during the call.
            unsafe {
                driver!(cuOccupancyMaxPotentialClusterSize(
                    clusters,
                    self.function(),
                    config
                ))
            }
        })
    }

    /// Clusters of a configuration that run on the stream's device at the same time.
    ///
    /// # Errors
    ///
    /// As [`Kernel::max_potential_cluster_size`]. Source: `cuOccupancyMaxActiveClusters`.
    pub fn max_active_clusters(&self, config: &LaunchConfig, stream: &Stream) -> Result<u32> {
        self.clusters(config, stream, |clusters, config| {
            // SAFETY: as above.
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

    /// Runs a query where a context of the device is current: a kernel by itself has none.
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

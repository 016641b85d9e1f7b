//! `KernelOccupancy`.

use std::ffi::c_int;

use cupyrite::sys::checked::is_executable_address;
use cupyrite::sys::driver::CUresult;
use cupyrite::{Device, DynamicSharedMemory, Error, Kernel, LaunchConfig, MaxPotentialBlockSize};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

use crate::bindings::custom::driver::not_a_function;
use crate::core::closable::DropDetached;
use crate::core::device;
use crate::core::errors::{OrRaise, to_python};
use crate::core::keyword_only::KeywordOnly;
use crate::core::launch::config::PyLaunchConfig;
use crate::core::stream;
use crate::cpython::{Obj, Raised};
use crate::generated::driver_types::class;
use crate::types;

/// Occupancy queries of a kernel.
///
/// Obtained from :attr:`Kernel.occupancy`. Queries refer to the current device, or to the stream's device.
///
/// See `Occupancy <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__OCCUPANCY.html>`_.
#[pyclass(
    frozen,
    subclass,
    module = "cuda.core._module",
    name = "KernelOccupancy"
)]
pub struct PyKernelOccupancy {
    kernel: DropDetached<Kernel>,
}

impl PyKernelOccupancy {
    /// Creates the occupancy object of a kernel.
    pub fn of(kernel: Kernel) -> PyKernelOccupancy {
        PyKernelOccupancy {
            kernel: DropDetached::new(kernel),
        }
    }
}

/// Converts a count of threads or blocks; invalid counts raise the driver's error.
fn count(
    py: Python<'_>,
    call: &'static str,
    parameter: &str,
    given: c_int,
    least: c_int,
) -> PyResult<u32> {
    match u32::try_from(given) {
        Ok(count) if given >= least => Ok(count),
        _ => Err(to_python(
            py,
            &Error::Driver {
                call,
                status: CUresult::CUDA_ERROR_INVALID_VALUE,
                log: format!("{parameter} is {given}; expected at least {least}"),
            },
        )),
    }
}

/// Converts a size in bytes.
fn bytes(function: &str, parameter: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    // SAFETY: a live object; a new reference, or null with an exception.
    let index = unsafe {
        Bound::from_owned_ptr_or_err(given.py(), pyo3::ffi::PyNumber_Index(given.as_ptr()))
    };
    let Ok(index) = index else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected an int",
            given.get_type().name()?
        )));
    };
    index.extract::<usize>().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{function}() argument '{parameter}' is {index}; expected a number of bytes, at least 0"
        ))
    })
}

#[pymethods]
impl PyKernelOccupancy {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyKernelOccupancy> {
        Err(PyRuntimeError::new_err(
            "KernelOccupancy cannot be instantiated; use Kernel.occupancy",
        ))
    }

    /// Maximum number of resident blocks per multiprocessor of the current device.
    ///
    /// Parameters
    /// ----------
    /// block_size : int
    ///     Threads per block.
    /// dynamic_shared_memory_size : int
    ///     Bytes of dynamic shared memory per block.
    ///
    /// Returns
    /// -------
    /// int
    fn max_active_blocks_per_multiprocessor(
        &self,
        py: Python<'_>,
        block_size: c_int,
        dynamic_shared_memory_size: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        let shared = bytes(
            "max_active_blocks_per_multiprocessor",
            "dynamic_shared_memory_size",
            dynamic_shared_memory_size,
        )?;
        let call = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
        let threads = count(py, call, "block_size", block_size, 1)?;
        self.query(py, |kernel, device| {
            kernel.max_active_blocks(device, threads, shared)
        })
    }

    /// Block size with the highest occupancy on the current device.
    ///
    /// Parameters
    /// ----------
    /// dynamic_shared_memory_needed : int or CUoccupancyB2DSize or callable
    ///     Bytes of dynamic shared memory per block; or a C or Python function that maps a block size to these bytes.
    /// block_size_limit : int
    ///     Maximum block size; 0: the device's limit.
    ///
    /// Returns
    /// -------
    /// MaxPotentialBlockSizeOccupancyResult
    ///     A named tuple: ``min_grid_size``, the smallest grid with full occupancy, and ``max_block_size``, the block
    ///     size.
    fn max_potential_block_size<'py>(
        &self,
        py: Python<'py>,
        dynamic_shared_memory_needed: &Bound<'py, PyAny>,
        block_size_limit: c_int,
    ) -> PyResult<Bound<'py, PyAny>> {
        let needed = dynamic_shared_memory_needed;
        let limit = count(
            py,
            "cuOccupancyMaxPotentialBlockSize",
            "block_size_limit",
            block_size_limit,
            0,
        )?;
        let b2d_size =
            types::class_type(class::CUoccupancyB2DSize).map_err(|Raised| PyErr::fetch(py))?;
        let best = if needed.cast::<PyInt>().is_ok() {
            let function = "max_potential_block_size";
            let shared = bytes(function, "dynamic_shared_memory_needed", needed)?;
            self.query(py, |kernel, device| {
                kernel.max_potential_block_size(device, DynamicSharedMemory::Bytes(shared), limit)
            })?
        } else if Obj::of(needed).instance_of_type(b2d_size)
            && let Some(address) = types::handle_value(Obj::of(needed))
        {
            if address != 0 && !is_executable_address(address) {
                let site = "max_potential_block_size() argument 'dynamic_shared_memory_needed'";
                return Err(PyValueError::new_err(not_a_function(site, address)));
            }
            // SAFETY: the class holds the address of a C function of this type, or null, which is None.
            let function = unsafe {
                std::mem::transmute::<usize, Option<unsafe extern "C" fn(c_int) -> usize>>(
                    address as usize,
                )
            };
            self.query(py, |kernel, device| {
                let shared =
                    function.map_or(DynamicSharedMemory::Bytes(0), DynamicSharedMemory::Function);
                kernel.max_potential_block_size(device, shared, limit)
            })?
        } else if needed.is_callable() {
            self.best_of_callable(needed, limit)?
        } else {
            return Err(PyTypeError::new_err(format!(
                "max_potential_block_size() argument 'dynamic_shared_memory_needed' is of type {}; expected an int, a \
                 CUoccupancyB2DSize or a callable",
                needed.get_type().name()?
            )));
        };
        let class = PyModule::import(py, "cuda.core._module")?
            .getattr("MaxPotentialBlockSizeOccupancyResult")?;
        class.call1((best.min_grid_size, best.max_block_size))
    }

    /// Bytes of dynamic shared memory available per block if a number of blocks is resident per multiprocessor of the
    /// current device.
    ///
    /// Parameters
    /// ----------
    /// num_blocks_per_multiprocessor : int
    ///     Blocks per multiprocessor.
    /// block_size : int
    ///     Threads per block.
    ///
    /// Returns
    /// -------
    /// int
    fn available_dynamic_shared_memory_per_block(
        &self,
        py: Python<'_>,
        num_blocks_per_multiprocessor: c_int,
        block_size: c_int,
    ) -> PyResult<usize> {
        let call = "cuOccupancyAvailableDynamicSMemPerBlock";
        let blocks = count(
            py,
            call,
            "num_blocks_per_multiprocessor",
            num_blocks_per_multiprocessor,
            1,
        )?;
        let threads = count(py, call, "block_size", block_size, 1)?;
        self.query(py, |kernel, device| {
            kernel.available_dynamic_shared(device, blocks, threads)
        })
    }

    /// Maximum cluster size in blocks for a launch configuration; the configuration's own cluster is ignored.
    ///
    /// Parameters
    /// ----------
    /// config : LaunchConfig
    ///     The launch configuration.
    /// stream : Stream
    ///     Stream of the launch.
    ///
    /// Returns
    /// -------
    /// int
    #[pyo3(
        signature = (config, *, stream=KeywordOnly(None)),
        text_signature = "($self, config, *, stream)"
    )]
    fn max_potential_cluster_size(
        &self,
        config: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<u32> {
        let stream = stream.get("KernelOccupancy.max_potential_cluster_size", "stream")?;
        let py = config.py();
        let function = "max_potential_cluster_size";
        let config = accept_config(config, function)?;
        let stream = stream::lend(stream, function, "stream", false)?;
        py.detach(|| self.kernel.max_potential_cluster_size(&config, &stream))
            .or_raise(py)
    }

    /// Maximum number of resident clusters of a launch configuration on the stream's device.
    ///
    /// Parameters
    /// ----------
    /// config : LaunchConfig
    ///     The launch configuration.
    /// stream : Stream
    ///     Stream of the launch.
    ///
    /// Returns
    /// -------
    /// int
    #[pyo3(
        signature = (config, *, stream=KeywordOnly(None)),
        text_signature = "($self, config, *, stream)"
    )]
    fn max_active_clusters(
        &self,
        config: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<u32> {
        let stream = stream.get("KernelOccupancy.max_active_clusters", "stream")?;
        let py = config.py();
        let function = "max_active_clusters";
        let config = accept_config(config, function)?;
        let stream = stream::lend(stream, function, "stream", false)?;
        py.detach(|| self.kernel.max_active_clusters(&config, &stream))
            .or_raise(py)
    }
}

impl PyKernelOccupancy {
    fn best_of_callable(
        &self,
        callable: &Bound<'_, PyAny>,
        limit: u32,
    ) -> PyResult<MaxPotentialBlockSize> {
        let py = callable.py();
        let device = device::current(py)?;
        let callable = callable.clone().unbind();
        let mut raised: Option<PyErr> = None;
        let best = py.detach(|| {
            let mut ask = |threads: u32| -> usize {
                if raised.is_some() {
                    return 0;
                }
                let answer = Python::attach(|py| {
                    let answer = callable.bind(py).call1((threads,))?;
                    bytes(
                        "max_potential_block_size",
                        "dynamic_shared_memory_needed",
                        &answer,
                    )
                });
                match answer {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        raised = Some(error);
                        0
                    }
                }
            };
            let best = self.kernel.max_potential_block_size(
                &device,
                DynamicSharedMemory::PerBlock(&mut ask),
                limit,
            );
            (best, raised.take())
        });
        match best {
            (_, Some(raised)) => Err(raised),
            (best, None) => best.or_raise(py),
        }
    }

    /// Runs a query for the current device.
    fn query<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&Kernel, &Device) -> cupyrite::Result<T> + Send,
    ) -> PyResult<T> {
        let device = device::current(py)?;
        py.detach(|| ask(&self.kernel, &device)).or_raise(py)
    }
}

/// Converts a `LaunchConfig` argument.
fn accept_config(given: &Bound<'_, PyAny>, function: &str) -> PyResult<LaunchConfig> {
    match given.cast::<PyLaunchConfig>() {
        Ok(config) => Ok(config.get().get()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{function}() argument 'config' is of type {}; expected a LaunchConfig",
            given.get_type().name()?
        ))),
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyKernelOccupancy>()
}

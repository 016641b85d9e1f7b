//! `LaunchConfig`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cupyrite::LaunchConfig;
use pyo3::exceptions::{PyDeprecationWarning, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use crate::core::device;
use crate::core::errors::{ExceptionClass, OrRaise};
use crate::core::numbers;

/// Three dimensions. A concurrent launch may read a mixture of old and new values, which is safe.
#[derive(Default)]
struct Dims([AtomicU32; 3]);

impl Dims {
    fn new(dims: [u32; 3]) -> Dims {
        Dims(dims.map(AtomicU32::new))
    }

    #[inline(always)]
    fn get(&self) -> [u32; 3] {
        let [x, y, z] = &self.0;
        // Not `map`, whose code is not always inlined.
        [
            x.load(Ordering::Relaxed),
            y.load(Ordering::Relaxed),
            z.load(Ordering::Relaxed),
        ]
    }

    fn set(&self, dims: [u32; 3]) {
        for (place, n) in self.0.iter().zip(dims) {
            place.store(n, Ordering::Relaxed);
        }
    }
}

/// Configuration of a launch: grid, blocks and launch attributes.
///
/// Parameters
/// ----------
/// grid : int or tuple of up to three ints
///     Grid dimensions in blocks; with a cluster, in clusters: ``grid=4, cluster=2`` launches 8 blocks.
/// cluster : int or tuple of up to three ints, optional
///     Cluster dimensions in blocks. The blocks of a cluster are co-scheduled and access each other's shared memory.
///     Requires compute capability 9.0.
/// block : int or tuple of up to three ints
///     Block dimensions in threads.
/// shmem_size : int, optional
///     Bytes of dynamic shared memory per block. Default: 0.
/// is_cooperative : bool
///     Whether the launch is cooperative: all blocks are resident at once, so the grid can synchronize.
/// programmatic_stream_serialization : bool
///     Whether the kernel may start before the preceding kernel in the stream has completed.
///
/// The keyword ``cooperative_launch`` of cuda.core 0.x is accepted and deprecated.
///
/// Raises
/// ------
/// ValueError
///     Missing or malformed grid or block, dimensions below 1 or beyond 32 bits.
/// CUDAError
///     The device does not support clusters.
///
/// See `cuLaunchKernelEx <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html>`_.
#[doc = example!("cuda.core.LaunchConfig")]
#[pyclass(
    frozen,
    subclass,
    weakref,
    module = "cuda.core._launch_config",
    name = "LaunchConfig"
)]
pub struct PyLaunchConfig {
    grid: Dims,
    block: Dims,
    /// All zero for no cluster.
    cluster: Dims,
    shared_bytes: AtomicU32,
    cooperative: AtomicBool,
    programmatic_serialization: AtomicBool,
}

impl PyLaunchConfig {
    /// The value of the object of a configuration.
    pub fn of(config: LaunchConfig) -> PyLaunchConfig {
        PyLaunchConfig {
            grid: Dims::new(config.grid),
            block: Dims::new(config.block),
            cluster: Dims::new(config.cluster.unwrap_or_default()),
            shared_bytes: AtomicU32::new(config.shared_bytes),
            cooperative: AtomicBool::new(config.cooperative),
            programmatic_serialization: AtomicBool::new(config.programmatic_stream_serialization),
        }
    }

    /// The current configuration.
    #[inline(always)]
    pub fn get(&self) -> LaunchConfig {
        let mut config = LaunchConfig::new(self.grid.get(), self.block.get());
        let cluster = self.cluster.get();
        if cluster != [0; 3] {
            config.cluster = Some(cluster);
        }
        config.shared_bytes = self.shared_bytes.load(Ordering::Relaxed);
        config.cooperative = self.cooperative.load(Ordering::Relaxed);
        config.programmatic_stream_serialization =
            self.programmatic_serialization.load(Ordering::Relaxed);
        config
    }
}

#[pymethods]
impl PyLaunchConfig {
    #[new]
    #[pyo3(signature = (grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=None,
                        programmatic_stream_serialization=None, *, cooperative_launch=None))]
    #[pyo3(
        text_signature = "(grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=False, \
                            programmatic_stream_serialization=False)"
    )]
    #[allow(clippy::too_many_arguments)] // parameters of the Python constructor
    fn new(
        py: Python<'_>,
        grid: Option<&Bound<'_, PyAny>>,
        cluster: Option<&Bound<'_, PyAny>>,
        block: Option<&Bound<'_, PyAny>>,
        shmem_size: Option<&Bound<'_, PyAny>>,
        is_cooperative: Option<&Bound<'_, PyAny>>,
        programmatic_stream_serialization: Option<&Bound<'_, PyAny>>,
        cooperative_launch: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyLaunchConfig> {
        let flag = |value: Option<&Bound<'_, PyAny>>| value.map_or(Ok(false), |v| v.is_truthy());
        let needed = |field: &str, value: Option<&Bound<'_, PyAny>>| match value {
            Some(value) => dims(field, value, DimsError::Value),
            None => Err(PyValueError::new_err(format!(
                "LaunchConfig.{field} is required: an int or a tuple of up to three ints"
            ))),
        };
        let grid = needed("grid", grid)?;
        let block = needed("block", block)?;
        let cluster = cluster
            .map(|value| {
                supports_clusters(py)?;
                dims("cluster", value, DimsError::Value)
            })
            .transpose()?;
        let mut cooperative = flag(is_cooperative)?;
        if let Some(value) = cooperative_launch {
            PyErr::warn(
                py,
                &py.get_type::<PyDeprecationWarning>(),
                c"LaunchConfig(cooperative_launch=...) is deprecated; use is_cooperative",
                1,
            )?;
            if is_cooperative.is_some() {
                return Err(PyTypeError::new_err(
                    "LaunchConfig: is_cooperative and cooperative_launch are one parameter; pass one of them",
                ));
            }
            cooperative = value.is_truthy()?;
        }
        Ok(PyLaunchConfig {
            grid: Dims::new(grid),
            block: Dims::new(block),
            cluster: Dims::new(cluster.unwrap_or_default()),
            shared_bytes: AtomicU32::new(shmem_size.map_or(Ok(0), |value| shared_bytes(value))?),
            cooperative: AtomicBool::new(cooperative),
            programmatic_serialization: AtomicBool::new(flag(programmatic_stream_serialization)?),
        })
    }

    /// Grid dimensions in blocks; with a cluster, in clusters. Accepts an int or a tuple of up to three ints.
    #[getter]
    fn grid(&self) -> (u32, u32, u32) {
        self.grid.get().into()
    }

    #[setter]
    fn set_grid(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.grid.set(dims("grid", value, DimsError::Type)?);
        Ok(())
    }

    /// Block dimensions in threads. Accepts an int or a tuple of up to three ints.
    #[getter]
    fn block(&self) -> (u32, u32, u32) {
        self.block.get().into()
    }

    #[setter]
    fn set_block(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.block.set(dims("block", value, DimsError::Type)?);
        Ok(())
    }

    /// Cluster dimensions in blocks, or None. Accepts None, an int or a tuple of up to three ints.
    #[doc = example!("cuda.core.LaunchConfig.cluster")]
    #[getter]
    fn cluster(&self) -> Option<(u32, u32, u32)> {
        let cluster = self.cluster.get();
        (cluster != [0; 3]).then(|| cluster.into())
    }

    #[setter]
    fn set_cluster(&self, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let cluster = value.map(|value| {
            supports_clusters(value.py())?;
            dims("cluster", value, DimsError::Type)
        });
        self.cluster.set(cluster.transpose()?.unwrap_or_default());
        Ok(())
    }

    /// Bytes of dynamic shared memory per block.
    #[getter]
    fn shmem_size(&self) -> u32 {
        self.shared_bytes.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_shmem_size(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.shared_bytes
            .store(shared_bytes(value)?, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the launch is cooperative.
    #[doc = example!("cuda.core.LaunchConfig.is_cooperative")]
    #[getter]
    fn is_cooperative(&self) -> bool {
        self.cooperative.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_cooperative(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.cooperative
            .store(value.is_truthy()?, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the kernel may start before the preceding kernel in the stream has completed.
    #[doc = example!("cuda.core.LaunchConfig.programmatic_stream_serialization")]
    #[getter]
    fn programmatic_stream_serialization(&self) -> bool {
        self.programmatic_serialization.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_programmatic_stream_serialization(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.programmatic_serialization
            .store(value.is_truthy()?, Ordering::Relaxed);
        Ok(())
    }

    fn __eq__(&self, other: &Bound<'_, PyLaunchConfig>) -> bool {
        self.get() == other.get().get()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.get().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let truth = |value: bool| if value { "True" } else { "False" };
        let tuple = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        let config = self.get();
        format!(
            "LaunchConfig(grid={}, cluster={}, block={}, shmem_size={}, is_cooperative={}, \
             programmatic_stream_serialization={})",
            tuple(config.grid),
            config.cluster.map_or("None".to_owned(), tuple),
            tuple(config.block),
            config.shared_bytes,
            truth(config.cooperative),
            truth(config.programmatic_stream_serialization)
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let this = slf.get();
        let values = (
            this.grid(),
            this.cluster(),
            this.block(),
            this.shmem_size(),
            this.is_cooperative(),
            this.programmatic_stream_serialization(),
        );
        Ok((slf.get_type().into_any(), values.into_pyobject(slf.py())?))
    }
}

/// Exception type for malformed dimensions.
#[derive(Clone, Copy)]
enum DimsError {
    /// In the constructor.
    Value,
    /// On attribute assignment.
    Type,
}

/// Converts dimensions: an int, or a tuple or list of up to three; missing dimensions are 1.
fn dims(field: &str, value: &Bound<'_, PyAny>, error_type: DimsError) -> PyResult<[u32; 3]> {
    let refuse = |problem: &str| {
        let displayed = numbers::short_repr(value);
        let text = format!(
            "LaunchConfig.{field} is {displayed}{problem}; expected an int, or a tuple of up to three ints"
        );
        match error_type {
            DimsError::Value => PyValueError::new_err(text),
            DimsError::Type => PyTypeError::new_err(text),
        }
    };
    let mut dims = [1; 3];
    let parts: Vec<Bound<'_, PyAny>> = if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().collect()
    } else if let Ok(list) = value.cast::<PyList>() {
        list.iter().collect()
    } else {
        vec![value.clone()]
    };
    if parts.len() > 3 {
        return Err(refuse(&format!(", which has {} items", parts.len())));
    }
    for (dim, part) in dims.iter_mut().zip(&parts) {
        let Some(number) = index(part)? else {
            return Err(refuse(""));
        };
        let number = number.extract::<i64>().ok();
        *dim = match number.map(u32::try_from) {
            Some(Ok(number)) if number >= 1 => number,
            _ => {
                let range = "expected dimensions from 1 to 2**32 - 1";
                return Err(PyValueError::new_err(format!(
                    "LaunchConfig.{field} is {}; {range}",
                    numbers::short_repr(value)
                )));
            }
        };
    }
    Ok(dims)
}

/// Converts an object with `__index__` to an int; `None` for other objects.
fn index<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    if let Ok(number) = value.cast::<PyInt>() {
        return Ok(Some(number.clone()));
    }
    let Some(method) = value.getattr_opt("__index__")? else {
        return Ok(None);
    };
    match method.call0() {
        Ok(number) => Ok(number.cast_into().ok()),
        // Arrays of several elements have the method and raise.
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn shared_bytes(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let Some(number) = index(value)? else {
        return Err(PyTypeError::new_err(format!(
            "LaunchConfig.shmem_size is {}; expected a number of bytes as int",
            numbers::short_repr(value)
        )));
    };
    match number.extract::<i64>() {
        Ok(bytes) if bytes < 0 => Err(PyValueError::new_err(format!(
            "LaunchConfig.shmem_size is {bytes}; expected at least 0 bytes"
        ))),
        Ok(bytes) if bytes <= i64::from(i32::MAX) => Ok(bytes as u32),
        _ => Err(PyOverflowError::new_err(format!(
            "LaunchConfig.shmem_size is {}; expected a number of bytes below 2**31",
            numbers::short_repr(value)
        ))),
    }
}

/// Raises if the current device does not support clusters.
fn supports_clusters(py: Python<'_>) -> PyResult<()> {
    let capability = device::current(py)?.compute_capability().or_raise(py)?;
    if capability.major >= 9 {
        return Ok(());
    }
    Err(ExceptionClass::Cuda.error(
        py,
        format!(
            "LaunchConfig.cluster requires a device of compute capability 9.0; the current device has {capability}"
        ),
    ))
}

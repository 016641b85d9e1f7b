//! `KernelAttributes`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cupyrite::{Device, FunctionAttribute, Kernel};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use crate::core::closable::DropDetached;
use crate::core::device;
use crate::core::errors::OrRaise;

/// Cache of constant attribute values by device and attribute, shared by all views of one kernel.
type AttributeCache = Arc<Mutex<HashMap<(usize, u32), i32>>>;

/// Driver attributes of a kernel on the current device; ``attributes[device]`` selects another device.
///
/// Obtained from :attr:`Kernel.attributes`. All attributes are read-only. Integer attributes are also callable as in
/// cuda.core 0.x (``attributes.num_regs()``, ``attributes.num_regs(device)``), which is deprecated.
///
/// See `CUfunction_attribute <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>`_.
#[pyclass(
    frozen,
    subclass,
    module = "cuda.core._module",
    name = "KernelAttributes"
)]
pub struct PyKernelAttributes {
    kernel: DropDetached<Kernel>,
    /// None: the device that is current when an attribute is read.
    device: Option<Device>,
    cache: AttributeCache,
}

impl PyKernelAttributes {
    /// The attributes of a kernel on the current device.
    pub fn of(kernel: Kernel) -> PyKernelAttributes {
        PyKernelAttributes {
            kernel: DropDetached::new(kernel),
            device: None,
            cache: AttributeCache::default(),
        }
    }

    fn value(&self, py: Python<'_>, attribute: FunctionAttribute) -> PyResult<i32> {
        let device = match self.device {
            Some(device) => device,
            None => device::current(py)?,
        };
        let key = (device.ordinal(), attribute.0);
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = cache().get(&key) {
            return Ok(*value);
        }
        // Detached: the driver may have to load the code first.
        let value = py
            .detach(|| self.kernel.attribute(&device, attribute))
            .or_raise(py)?;
        if !SETTABLE.contains(&attribute) {
            cache().insert(key, value);
        }
        Ok(value)
    }

    /// An integer attribute that is also callable.
    fn number(
        slf: &Bound<'_, Self>,
        attribute: FunctionAttribute,
        name: &str,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let value = slf.get().value(py, attribute)?;
        let class = PyModule::import(py, "cuda.core._module")?.getattr("_AttributeValue")?;
        let created = class.call1((value,))?;
        created.setattr("_attributes", slf)?;
        created.setattr("_name", name)?;
        Ok(created.unbind())
    }

    fn truth(&self, py: Python<'_>, attribute: FunctionAttribute) -> PyResult<Py<PyBool>> {
        let value = self.value(py, attribute)?;
        Ok(PyBool::new(py, value != 0).to_owned().unbind())
    }
}

/// Attributes that programs can set; their values are not cached.
const SETTABLE: [FunctionAttribute; 7] = [
    FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
    FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
    FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    FunctionAttribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
];

#[pymethods]
impl PyKernelAttributes {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyKernelAttributes> {
        Err(PyRuntimeError::new_err(
            "KernelAttributes cannot be instantiated; use Kernel.attributes",
        ))
    }

    /// The attributes on a device.
    ///
    /// Parameters
    /// ----------
    /// device : Device or int or None
    ///     None selects the device that is current when an attribute is read.
    fn __getitem__(&self, device: &Bound<'_, PyAny>) -> PyResult<PyKernelAttributes> {
        let device = if device.is_none() {
            None
        } else {
            Some(device::accept(
                device,
                "KernelAttributes.__getitem__",
                "device",
            )?)
        };
        Ok(PyKernelAttributes {
            kernel: DropDetached::new((*self.kernel).clone()),
            device,
            cache: self.cache.clone(),
        })
    }

    /// int: Maximum number of threads per block.
    #[getter]
    fn max_threads_per_block(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        Self::number(slf, attribute, "max_threads_per_block")
    }

    /// int: Bytes of static shared memory per block.
    #[getter]
    fn shared_size_bytes(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        Self::number(slf, attribute, "shared_size_bytes")
    }

    /// int: Bytes of constant memory declared by the code.
    #[getter]
    fn const_size_bytes(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES;
        Self::number(slf, attribute, "const_size_bytes")
    }

    /// int: Bytes of local memory per thread.
    #[getter]
    fn local_size_bytes(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
        Self::number(slf, attribute, "local_size_bytes")
    }

    /// int: Registers per thread.
    #[getter]
    fn num_regs(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::number(
            slf,
            FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS,
            "num_regs",
        )
    }

    /// int: PTX version of the source, 10 * major + minor.
    #[getter]
    fn ptx_version(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::number(
            slf,
            FunctionAttribute::CU_FUNC_ATTRIBUTE_PTX_VERSION,
            "ptx_version",
        )
    }

    /// int: Architecture of the machine code, 10 * major + minor.
    #[getter]
    fn binary_version(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::number(
            slf,
            FunctionAttribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION,
            "binary_version",
        )
    }

    /// bool: Whether loads from global memory are cached in L1 by default (``-Xptxas --dlcm=ca``).
    #[getter]
    fn cache_mode_ca(&self, py: Python<'_>) -> PyResult<Py<PyBool>> {
        self.truth(py, FunctionAttribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)
    }

    /// int: Maximum bytes of dynamic shared memory of a launch.
    #[getter]
    fn max_dynamic_shared_size_bytes(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        Self::number(slf, attribute, "max_dynamic_shared_size_bytes")
    }

    /// int: Preferred percentage of the L1 cache used as shared memory; -1: the driver decides.
    #[getter]
    fn preferred_shared_memory_carveout(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        Self::number(slf, attribute, "preferred_shared_memory_carveout")
    }

    /// bool: Whether the kernel can only be launched with a cluster.
    #[getter]
    fn cluster_size_must_be_set(&self, py: Python<'_>) -> PyResult<Py<PyBool>> {
        self.truth(
            py,
            FunctionAttribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
        )
    }

    /// int: Required cluster width in blocks; 0: any.
    #[getter]
    fn required_cluster_width(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
        Self::number(slf, attribute, "required_cluster_width")
    }

    /// int: Required cluster height in blocks; 0: any.
    #[getter]
    fn required_cluster_height(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT;
        Self::number(slf, attribute, "required_cluster_height")
    }

    /// int: Required cluster depth in blocks; 0: any.
    #[getter]
    fn required_cluster_depth(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH;
        Self::number(slf, attribute, "required_cluster_depth")
    }

    /// bool: Whether clusters may exceed the portable cluster size of the architecture.
    #[getter]
    fn non_portable_cluster_size_allowed(&self, py: Python<'_>) -> PyResult<Py<PyBool>> {
        self.truth(
            py,
            FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
        )
    }

    /// int: Scheduling policy of the blocks of a cluster (``CUclusterSchedulingPolicy``).
    #[getter]
    fn cluster_scheduling_policy_preference(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        Self::number(slf, attribute, "cluster_scheduling_policy_preference")
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyKernelAttributes>()
}

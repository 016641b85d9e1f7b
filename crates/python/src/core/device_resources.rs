//! `DeviceResources`, `SMResource`, `WorkqueueResource`: resources of devices and green contexts.

use cupyrite::{
    Context, Device, DeviceResource, SmGroup, SmResource, Stream, WorkqueueResource, WorkqueueScope,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PySequence, PyString, PyTuple};

use crate::core::closable::DropDetached;
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::OrRaise;
use crate::core::numbers;
use crate::core::options::{OptionClass, Options};
use crate::cpython::gil_lock::GilLock;

/// Whose resources a `DeviceResources` object returns.
enum Source {
    Device(Device),
    Context(Context),
    /// A default stream: that of the context that is current at the query.
    DefaultStream(Stream),
}

/// The resources of a device, of a context or of a stream's context. Each query returns a new object.
///
/// Instances are :attr:`Device.resources`, :attr:`Context.resources` and :attr:`Stream.resources`.
///
/// See `Green contexts <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GREEN__CONTEXTS.html>`_.
#[doc = example!("cuda.core.DeviceResources")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core._device_resources",
    name = "DeviceResources"
)]
pub struct PyDeviceResources {
    source: DropDetached<Source>,
}

impl PyDeviceResources {
    fn wrap(py: Python<'_>, source: Source) -> PyResult<Py<PyDeviceResources>> {
        let source = DropDetached::new(source);
        Py::new(py, PyDeviceResources { source })
    }

    /// The resources of a device.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn of_device(py: Python<'_>, device: Device) -> PyResult<Py<PyDeviceResources>> {
        Self::wrap(py, Source::Device(device))
    }

    /// The resources of a context.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn of_context(py: Python<'_>, context: Context) -> PyResult<Py<PyDeviceResources>> {
        Self::wrap(py, Source::Context(context))
    }

    /// The resources of a stream's context.
    ///
    /// # Errors
    ///
    /// `MemoryError`, driver errors.
    pub fn of_stream(py: Python<'_>, stream: Stream) -> PyResult<Py<PyDeviceResources>> {
        if stream.is_default() {
            return Self::wrap(py, Source::DefaultStream(stream));
        }
        Self::of_context(py, stream.context().or_raise(py)?)
    }
}

#[pymethods]
impl PyDeviceResources {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyDeviceResources> {
        Err(PyRuntimeError::new_err(
            "DeviceResources cannot be instantiated; use Device.resources, Context.resources or Stream.resources",
        ))
    }

    /// The multiprocessors, a new :class:`SMResource`.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     Error of the driver.
    #[getter]
    fn sm(&self, py: Python<'_>) -> PyResult<Py<PySmResource>> {
        let queried = match &*self.source {
            Source::Device(device) => device.sm_resource(),
            Source::Context(context) => context.sm_resource(),
            Source::DefaultStream(stream) => stream.sm_resource(),
        };
        PySmResource::wrap(py, queried.or_raise(py)?)
    }

    /// The work queues, a new :class:`WorkqueueResource`.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     Error of the driver. ``CUDA_ERROR_INVALID_RESOURCE_TYPE`` before CUDA 13.1.
    #[doc = example!("cuda.core.DeviceResources.workqueue")]
    #[getter]
    fn workqueue(&self, py: Python<'_>) -> PyResult<Py<PyWorkqueueResource>> {
        let queried = match &*self.source {
            Source::Device(device) => device.workqueue_resource(),
            Source::Context(context) => context.workqueue_resource(),
            Source::DefaultStream(stream) => stream.workqueue_resource(),
        };
        let queues = GilLock::new(queried.or_raise(py)?);
        Py::new(py, PyWorkqueueResource { queues })
    }
}

/// Multiprocessors (SMs) of a device: all of them or a part.
///
/// A value describes a part of a device and reserves nothing. :meth:`Device.create_context` creates a context that runs
/// on it. Instances are :attr:`DeviceResources.sm` and results of :meth:`split`.
#[doc = example!("cuda.core.SMResource")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core._device_resources",
    name = "SMResource"
)]
pub struct PySmResource {
    sms: SmResource,
}

impl PySmResource {
    fn wrap(py: Python<'_>, sms: SmResource) -> PyResult<Py<PySmResource>> {
        Py::new(py, PySmResource { sms })
    }
}

static SM_OPTIONS: OptionClass =
    OptionClass::new("cuda.core._device_resources", "SMResourceOptions");

#[pymethods]
impl PySmResource {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySmResource> {
        Err(PyRuntimeError::new_err(
            "SMResource cannot be instantiated; use Device.resources.sm or SMResource.split()",
        ))
    }

    /// Address of the driver's ``CUdevResource`` structure, valid as long as this object.
    #[getter]
    fn handle(&self) -> usize {
        std::ptr::from_ref(self.sms.as_raw()).addr()
    }

    /// Number of multiprocessors.
    #[getter]
    fn sm_count(&self) -> u32 {
        self.sms.sm_count()
    }

    /// Smallest number of multiprocessors of a part.
    #[getter]
    fn min_partition_size(&self) -> u32 {
        self.sms.min_partition_size()
    }

    /// Number of multiprocessors that are guaranteed to be co-scheduled.
    #[getter]
    fn coscheduled_alignment(&self) -> u32 {
        self.sms.coscheduled_alignment()
    }

    /// Flags of the driver's structure: ``CUdevSmResourceGroup_flags``.
    #[getter]
    fn flags(&self) -> u32 {
        self.sms.flags()
    }

    /// Splits the multiprocessors into disjoint groups.
    ///
    /// Parameters
    /// ----------
    /// options : SMResourceOptions or dict
    ///     The sizes of the groups.
    /// dry_run : bool, optional
    ///     Only compute the sizes: the results cannot be used for a context or split again. A group for which nothing is
    ///     left is no error then. Default: False.
    ///
    /// Returns
    /// -------
    /// tuple of (list of SMResource, SMResource)
    ///     The groups and the multiprocessors that are in none, which may be 0.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     A field has the wrong type.
    /// ValueError
    ///     A field is negative or too large, sequences have different lengths, or this is the result of a dry run.
    /// CUDAError
    ///     The device does not allow these sizes. Before CUDA 13.1, the driver only splits into groups of equal size.
    #[doc = example!("cuda.core.SMResource.split")]
    #[pyo3(signature = (options, *, dry_run=false))]
    fn split(
        &self,
        py: Python<'_>,
        options: &Bound<'_, PyAny>,
        dry_run: bool,
    ) -> PyResult<(Py<PyList>, Py<PySmResource>)> {
        let given = Options::require("SMResource.split", &SM_OPTIONS, options)?;
        let groups = groups(py, &given)?;
        if self.sms.is_estimate() {
            return Err(PyValueError::new_err(if self.sms.sm_count() == 0 {
                "SMResource.split(): this resource has no multiprocessors"
            } else {
                "SMResource.split(): this is the result of a dry run, which cannot be split"
            }));
        }
        let split = if dry_run {
            self.sms.estimate_split(&groups)
        } else {
            self.sms.split(&groups)
        };
        let split = split.or_raise(py)?;
        let made = split.groups.into_iter().map(|g| PySmResource::wrap(py, g));
        let made = PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)?;
        Ok((made.unbind(), PySmResource::wrap(py, split.remainder)?))
    }

    fn __repr__(&self) -> String {
        let kind = if self.sms.is_estimate() && self.sms.sm_count() != 0 {
            " dry_run"
        } else {
            ""
        };
        format!(
            "<SMResource sm_count={} coscheduled_alignment={}{kind}>",
            self.sms.sm_count(),
            self.sms.coscheduled_alignment()
        )
    }
}

/// The elements of a field that is a sequence, or `None` for a scalar.
fn elements<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    match value.cast::<PySequence>() {
        Ok(sequence) if !is_text => Ok(Some(sequence.try_iter()?.collect::<PyResult<_>>()?)),
        _ => Ok(None),
    }
}

/// The groups that `SMResourceOptions` describes.
fn groups(py: Python<'_>, options: &Options<'_>) -> PyResult<Vec<SmGroup>> {
    const EXPECTED: &str = "an int from 0 to 2**32 - 1, a sequence of such ints, or None";
    let count_field = intern!(py, "count");
    let number = |field: &Bound<'_, PyString>, value: &Bound<'_, PyAny>| -> PyResult<u32> {
        if value.is_none() {
            return Ok(0);
        }
        let extracted = match numbers::index(value)? {
            Some(number) => number.extract::<u32>(),
            None => Err(PyTypeError::new_err("")),
        };
        extracted.map_err(|error| options.type_error(field, value, EXPECTED, error))
    };
    let given = options.value(count_field)?;
    let counts = given.as_ref().map(elements).transpose()?.flatten();
    let mut groups = match (&counts, &given) {
        (Some(counts), _) => {
            let mut groups = Vec::with_capacity(counts.len());
            for count in counts {
                let count = number(count_field, count)?;
                groups.push(SmGroup {
                    count,
                    ..SmGroup::default()
                });
            }
            groups
        }
        (None, Some(count)) => vec![SmGroup {
            count: number(count_field, count)?,
            ..SmGroup::default()
        }],
        (None, None) => vec![SmGroup::default()],
    };
    if groups.is_empty() {
        return Err(PyValueError::new_err(
            "SMResourceOptions.count is an empty sequence; it needs one element for each group",
        ));
    }
    let mut assign = |field: &Bound<'_, PyString>,
                      set: &dyn Fn(&mut SmGroup, &Bound<'_, PyAny>) -> PyResult<()>|
     -> PyResult<()> {
        let Some(value) = options.value(field)? else {
            return Ok(());
        };
        let Some(values) = elements(&value)? else {
            return groups.iter_mut().try_for_each(|g| set(g, &value));
        };
        if counts.is_none() {
            return Err(PyValueError::new_err(format!(
                "SMResourceOptions.{field} is a sequence, but SMResourceOptions.count is not: several groups need a \
                 sequence of counts"
            )));
        }
        if values.len() != groups.len() {
            return Err(PyValueError::new_err(format!(
                "SMResourceOptions.{field} has {} elements; SMResourceOptions.count has {}",
                values.len(),
                groups.len()
            )));
        }
        let mut pairs = groups.iter_mut().zip(&values);
        pairs.try_for_each(|(g, value)| set(g, value))
    };
    let field = intern!(py, "coscheduled_sm_count");
    assign(field, &|g, v| number(field, v).map(|n| g.coscheduled = n))?;
    let field = intern!(py, "preferred_coscheduled_sm_count");
    assign(field, &|g, v| {
        number(field, v).map(|n| g.preferred_coscheduled = n)
    })?;
    assign(intern!(py, "backfill"), &|g, v| {
        v.is_truthy().map(|b| g.backfill = b)
    })?;
    Ok(groups)
}

/// The configuration of work queues: how many streams are expected to run concurrently, and who shares the queues.
///
/// Instances are :attr:`DeviceResources.workqueue`.
#[doc = example!("cuda.core.WorkqueueResource")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core._device_resources",
    name = "WorkqueueResource"
)]
pub struct PyWorkqueueResource {
    queues: GilLock<WorkqueueResource>,
}

static QUEUE_OPTIONS: OptionClass =
    OptionClass::new("cuda.core._device_resources", "WorkqueueResourceOptions");

#[pymethods]
impl PyWorkqueueResource {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyWorkqueueResource> {
        Err(PyRuntimeError::new_err(
            "WorkqueueResource cannot be instantiated; use Device.resources.workqueue",
        ))
    }

    /// Address of the driver's ``CUdevResource`` structure, valid as long as this object.
    #[getter]
    fn handle(&self, py: Python<'_>) -> usize {
        std::ptr::from_ref(self.queues.lock(py).as_raw()).addr()
    }

    /// Expected maximum number of concurrent streams. For a device: the driver's limit, ``CUDA_DEVICE_MAX_CONNECTIONS``.
    #[getter]
    fn concurrency_limit(&self, py: Python<'_>) -> u32 {
        self.queues.lock(py).concurrency_limit()
    }

    /// Scope of sharing, a :class:`~cuda.core.typing.WorkqueueSharingScopeType`.
    #[getter]
    fn sharing_scope(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let scope = match self.queues.lock(py).scope() {
            WorkqueueScope::Device => "device_ctx",
            WorkqueueScope::GreenContextBalanced => "green_ctx_balanced",
        };
        PyModule::import(py, intern!(py, "cuda.core.typing"))?
            .getattr(intern!(py, "WorkqueueSharingScopeType"))?
            .call1((scope,))
            .map(Bound::unbind)
    }

    /// Device of the work queues.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        let device = self.queues.lock(py).device();
        device::object(py, device)
    }

    /// Changes the configuration, for contexts that are created with this object afterwards.
    ///
    /// Parameters
    /// ----------
    /// options : WorkqueueResourceOptions or dict
    ///     The fields to change; None keeps a field.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     A field has the wrong type.
    /// ValueError
    ///     `sharing_scope` is unknown, or `concurrency_limit` is not from 1 to 2**32 - 1.
    #[doc = example!("cuda.core.WorkqueueResource.configure")]
    fn configure(&self, py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let (scope, limit) = queue_options("WorkqueueResource.configure", options)?;
        let mut queues = self.queues.lock(py);
        if let Some(scope) = scope {
            queues.set_scope(scope);
        }
        if let Some(limit) = limit {
            queues.set_concurrency_limit(limit).or_raise(py)?;
        }
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let queues = self.queues.lock(py);
        format!(
            "<WorkqueueResource device={} concurrency_limit={} sharing_scope={}>",
            queues.device().ordinal(),
            queues.concurrency_limit(),
            match queues.scope() {
                WorkqueueScope::Device => "device_ctx",
                WorkqueueScope::GreenContextBalanced => "green_ctx_balanced",
            }
        )
    }
}

/// The elements of `ContextOptions.resources`.
///
/// # Errors
///
/// `TypeError` for an object that is not iterable, such as a single resource.
pub fn resource_list<'py>(resources: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    let what = || "ContextOptions.resources".to_owned();
    numbers::elements_of(
        resources,
        what,
        "a sequence of SMResource and WorkqueueResource",
    )
}

/// Creates a green context of a device with `ContextOptions.resources`.
///
/// # Errors
///
/// `TypeError` for objects that are no resources, `ValueError` for no resources or results of a dry run; driver errors.
pub fn create_context(
    py: Python<'_>,
    device: Device,
    resources: &Bound<'_, PyAny>,
) -> PyResult<Context> {
    enum Accepted {
        Sm(SmResource),
        Queues(WorkqueueResource),
    }
    let mut accepted = Vec::new();
    for resource in resource_list(resources)? {
        let resource = resource?;
        if let Ok(sm) = resource.cast::<PySmResource>() {
            if sm.get().sms.is_estimate() {
                return Err(PyValueError::new_err(
                    "ContextOptions.resources contains the result of a dry run of SMResource.split(), which reserves \
                     nothing",
                ));
            }
            accepted.push(Accepted::Sm(sm.get().sms.clone()));
        } else if let Ok(queues) = resource.cast::<PyWorkqueueResource>() {
            accepted.push(Accepted::Queues(queues.get().queues.lock(py).clone()));
        } else {
            return Err(PyTypeError::new_err(format!(
                "ContextOptions.resources contains an object of type {}; expected SMResource or WorkqueueResource",
                resource.get_type().name()?
            )));
        }
    }
    let list: Vec<DeviceResource<'_>> = accepted
        .iter()
        .map(|resource| match resource {
            Accepted::Sm(sm) => DeviceResource::Sm(sm),
            Accepted::Queues(queues) => DeviceResource::Workqueue(queues),
        })
        .collect();
    py.detach(|| device.create_green_context(&list))
        .or_raise(py)
}

/// Reads `WorkqueueResourceOptions`.
///
/// # Errors
///
/// `TypeError` and `ValueError` that name the field.
fn queue_options(
    function: &str,
    options: &Bound<'_, PyAny>,
) -> PyResult<(Option<WorkqueueScope>, Option<u32>)> {
    let py = options.py();
    let given = Options::require(function, &QUEUE_OPTIONS, options)?;
    let field = intern!(py, "sharing_scope");
    let scope = match given.value(field)? {
        None => None,
        Some(value) => match value.extract::<String>().ok().as_deref() {
            Some("device_ctx") => Some(WorkqueueScope::Device),
            Some("green_ctx_balanced") => Some(WorkqueueScope::GreenContextBalanced),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "WorkqueueResourceOptions.sharing_scope is {}; expected 'device_ctx', 'green_ctx_balanced' or None",
                    numbers::short_repr(&value)
                )));
            }
        },
    };
    let limit = given.get::<u32>(intern!(py, "concurrency_limit"))?;
    if limit == Some(0) {
        return Err(PyValueError::new_err(
            "WorkqueueResourceOptions.concurrency_limit is 0; expected an int from 1 to 2**32 - 1, or None",
        ));
    }
    Ok((scope, limit))
}

/// Implements `WorkqueueResourceOptions.__post_init__`.
#[pyfunction]
fn check_workqueue_options(options: &Bound<'_, PyAny>) -> PyResult<()> {
    queue_options("WorkqueueResourceOptions", options).map(drop)
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyDeviceResources>()?;
    core.add_class::<PySmResource>()?;
    core.add_class::<PyWorkqueueResource>()?;
    core.add_function(wrap_pyfunction!(check_workqueue_options, core)?)
}

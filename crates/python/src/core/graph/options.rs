//! Reading of `GraphCompleteOptions` and `GraphDebugPrintOptions`.

use cupyrite::graph::{DotOptions, InstantiateOptions};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::core::options::{OptionClass, Options};
use crate::core::stream;

static COMPLETE: OptionClass =
    OptionClass::new("cuda.core.graph._graph_builder", "GraphCompleteOptions");
static DEBUG: OptionClass =
    OptionClass::new("cuda.core.graph._graph_builder", "GraphDebugPrintOptions");

/// Converts `GraphCompleteOptions` given to `function`.
///
/// # Errors
///
/// `TypeError` that names the invalid field.
pub fn complete(function: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<InstantiateOptions> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(InstantiateOptions::default());
    };
    let py = given.py();
    let options = Options::accept(function, &COMPLETE, Some(given))?;
    let upload_stream = options
        .value(intern!(py, "upload_stream"))?
        .map(|stream| stream::accept(&stream, function, "options.upload_stream", false))
        .transpose()?;
    Ok(InstantiateOptions {
        auto_free_on_launch: options.flag(intern!(py, "auto_free_on_launch"), false)?,
        upload_stream,
        device_launch: options.flag(intern!(py, "device_launch"), false)?,
        use_node_priority: options.flag(intern!(py, "use_node_priority"), false)?,
    })
}

/// The fields of `GraphDebugPrintOptions`, in the order of the driver's flags.
const FLAGS: [&str; 16] = [
    "verbose",
    "runtime_types",
    "kernel_node_params",
    "memcpy_node_params",
    "memset_node_params",
    "host_node_params",
    "event_node_params",
    "ext_semas_signal_node_params",
    "ext_semas_wait_node_params",
    "kernel_node_attributes",
    "handles",
    "mem_alloc_node_params",
    "mem_free_node_params",
    "batch_mem_op_node_params",
    "extra_topo_info",
    "conditional_node_params",
];

/// Converts `GraphDebugPrintOptions` given to `function`.
///
/// # Errors
///
/// `TypeError` for other types.
pub fn debug(function: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<DotOptions> {
    let mut flags = 0;
    if let Some(given) = given.filter(|given| !given.is_none()) {
        let options = Options::accept(function, &DEBUG, Some(given))?;
        for (bit, name) in FLAGS.iter().enumerate() {
            if options.flag(&PyString::intern(given.py(), name), false)? {
                flags |= 1 << bit;
            }
        }
    }
    Ok(DotOptions { flags })
}

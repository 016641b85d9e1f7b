//! Instantiation of definitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraphExec, CUgraphInstantiate_flags as Flags,
    CUgraphInstantiateResult as InstantiateResult, CUresult,
};
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{Error, Result, driver};
use crate::fork::ForkGeneration;
use crate::graph::definition::GraphDefinition;
use crate::graph::exec::{Graph, GraphExec, HANDLES_IN_USE, LaunchState};
use crate::graph::exec_reasons::{describe_node, instantiate_problem};
use crate::stream::Stream;

/// Options of [`GraphDefinition::instantiate`].
#[derive(Clone, Debug, Default)]
pub struct InstantiateOptions {
    /// Frees memory that the graph allocated and did not free before each further launch.
    pub auto_free_on_launch: bool,
    /// Uploads the graph in this stream.
    pub upload_stream: Option<Stream>,
    /// Lets device code launch the graph.
    pub device_launch: bool,
    /// Runs the nodes with their own priorities, not with that of the stream.
    pub use_node_priority: bool,
}

impl GraphDefinition {
    /// Instantiates the graph.
    ///
    /// # Errors
    ///
    /// The driver's error, with its reason. Source: `cuGraphInstantiateWithParams`.
    pub fn instantiate(&self, options: &InstantiateOptions) -> Result<Graph> {
        let mut flags = 0u64;
        let mut set = |on: bool, flag: Flags| {
            if on {
                flags |= u64::from(flag.0);
            }
        };
        set(
            options.auto_free_on_launch,
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
        );
        set(
            options.upload_stream.is_some(),
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
        );
        set(
            options.device_launch,
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH,
        );
        set(
            options.use_node_priority,
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
        );
        let mut handle: CUgraphExec = std::ptr::null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
            flags,
            hUploadStream: options
                .upload_stream
                .as_ref()
                .map_or(std::ptr::null_mut(), Stream::handle),
            ..CUDA_GRAPH_INSTANTIATE_PARAMS::default()
        };
        if let Some(stream) = &options.upload_stream {
            stream.check_live()?;
        }
        let entered = self.enter("GraphDefinition::instantiate")?;
        let handles_deferred_destruction = HANDLES_IN_USE.load(Ordering::Relaxed);
        let held_by_driver = self.prepare_to_instantiate(&entered, handles_deferred_destruction)?;
        // SAFETY: the graph and the stream are live; the other two are valid for writes.
        let done = unsafe {
            driver!(cuGraphInstantiateWithParams(
                &mut handle,
                entered.handle,
                &mut params
            ))
        };
        let content = entered.lock.state().retention.seal();
        self.finish_instantiating(&entered);
        let failed = match done {
            Ok(()) => params.result_out != InstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS,
            Err(_) => true,
        };
        if failed {
            let reason = format!(
                "{}{}",
                instantiate_problem(params.result_out),
                describe_node(params.hErrNode_out)
            );
            let error = match done {
                Err(error) => error,
                Ok(()) => Error::driver(
                    "cuGraphInstantiateWithParams",
                    CUresult::CUDA_ERROR_INVALID_VALUE,
                ),
            };
            return Err(error.with_log(&reason));
        }
        // SAFETY: the context is current, or that of the definition.
        let context = unsafe { Context::from_handle(entered.context)? };
        drop(entered);
        Ok(Graph {
            inner: Arc::new(GraphExec {
                handle,
                source: self.mutex().clone(),
                created: OwnedKind::GraphExec.epoch(),
                context,
                generation: ForkGeneration::current(),
                state: Mutex::new(LaunchState {
                    noted: content.is_some() && !held_by_driver,
                    ..LaunchState::default()
                }),
                content,
                held_by_driver,
                handed_out: AtomicBool::new(false),
            }),
        })
    }
}

//! Graphs: work that is described once and launched many times.
//!
//! A [`GraphDefinition`] describes nodes and their dependencies. It is built node by node, or by a [`GraphBuilder`],
//! which records what is queued in a stream. [`GraphDefinition::instantiate`] makes a [`Graph`], which is launched. A
//! graph owns the kernels, memory, events and callbacks of its nodes until it and its last launch are done.
//!
//! Queues of work belong to [`Stream`](crate::Stream), memory to [`DeviceBuffer`](crate::DeviceBuffer).
//!
//! See [Graph management](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).

mod add;
mod attributes;
mod branches;
mod builder;
mod callback;
mod capture_recorder;
mod captured_nodes;
mod change;
mod condition;
mod deferred_destruction;
mod definition;
mod definition_state;
mod edges;
mod exec;
mod exec_reasons;
mod exec_update;
mod instantiate;
mod launches;
mod lock;
mod memory;
mod node;
mod params;
mod read;
mod retained;
mod stream_capture;
mod unjoined;

pub use builder::GraphBuilder;
pub use callback::HostCallback;
pub use condition::{Condition, ConditionalKind};
pub use deferred_destruction::drop_released;
pub use definition::{DotOptions, GraphDefinition};
pub use definition_state::NodeStamp;
pub use edges::Edge;
pub use exec::Graph;
pub use instantiate::InstantiateOptions;
pub use lock::DefinitionLock;
pub use memory::{GraphMemory, GraphMemoryAttribute, GraphMemoryResource};
pub use node::{Node, NodeId, NodeKind};
pub use params::{
    AllocationParams, ConditionalParams, GraphMemoryKind, KernelNodeParams, MemcpyParams,
    MemsetParams,
};
pub use retained::Retained;
pub use stream_capture::CaptureMode;

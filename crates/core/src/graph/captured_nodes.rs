//! Nodes that a builder adds to its capture by handle: callbacks, child graphs and conditional nodes.

use cupyrite_sys::driver::{CUgraphNode, CUstreamUpdateCaptureDependencies_flags};

use crate::error::{Error, Result, driver};
use crate::graph::builder::{GraphBuilder, Role};
use crate::graph::callback::HostCallback;
use crate::graph::condition::{Condition, ConditionalKind};
use crate::graph::definition::GraphDefinition;
use crate::graph::stream_capture::capture_state;

impl GraphBuilder {
    /// Records a call of a host function. The graph retains it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddHostNode`.
    pub fn host_callback(&self, callback: &HostCallback) -> Result<()> {
        let _lock = self.lock()?;
        // Added as a node: `cuLaunchHostFunc` would run the function at once if the program has ended the capture.
        let after = capture_state(&self.base, true)?.after;
        // SAFETY: the driver named the nodes, and the capture keeps them.
        let node = unsafe { self.recorder.definition.add_callback(&after, callback)? };
        self.continue_after(node)
    }

    /// Records a call of a closure, which the graph owns. It must not call CUDA.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::host_callback`].
    pub fn callback(&self, closure: impl Fn() + Send + Sync + 'static) -> Result<()> {
        self.host_callback(&HostCallback::new(closure))
    }

    /// Makes later work of this builder depend on `node` alone.
    fn continue_after(&self, node: CUgraphNode) -> Result<()> {
        let mut node = node;
        let flags = CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES.0;
        let (stream, place) = (self.base.handle(), &raw mut node);
        // SAFETY: the stream is captured, and the node belongs to its graph.
        unsafe {
            match driver!(cuStreamUpdateCaptureDependencies(
                stream,
                place,
                std::ptr::null(),
                1,
                flags
            )) {
                Err(Error::Load(_)) => {
                    driver!(cuStreamUpdateCaptureDependencies_cuda12(
                        stream, place, 1, flags
                    ))
                }
                other => other,
            }?;
        }
        if self.role == Role::Branch {
            let mut branches = self.recorder.branches.lock();
            if branches.iter().all(|known| known.handle() != stream) {
                branches.push(self.base.clone());
            }
        }
        Ok(())
    }

    /// Records a clone of another definition. The graph retains what the other one retains.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::add_child`].
    pub fn embed(&self, child: &GraphDefinition) -> Result<()> {
        let _locks = self.recorder.definition.lock_and_link(child)?;
        let _lock = self.lock()?;
        let after = capture_state(&self.base, true)?.after;
        // SAFETY: the driver named the nodes, and the capture keeps them.
        let node = unsafe { self.recorder.definition.add_child(&after, child)? };
        self.continue_after(node)
    }

    /// A condition for conditional nodes of this graph: see [`GraphDefinition::create_condition`].
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn create_condition(&self, default: Option<u32>) -> Result<Condition> {
        let _lock = self.lock()?;
        self.recorder.definition.create_condition(default)
    }

    /// Records a conditional node. Its bodies are recorded with [`GraphBuilder::begin_into`].
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn conditional(
        &self,
        condition: Condition,
        kind: ConditionalKind,
        bodies: u32,
    ) -> Result<Vec<GraphDefinition>> {
        let _lock = self.lock()?;
        let after = capture_state(&self.base, true)?.after;
        let definition = &self.recorder.definition;
        // SAFETY: the driver named the nodes, and the capture keeps them.
        let (node, bodies) =
            unsafe { definition.add_conditional(&after, condition, kind, bodies)? };
        self.continue_after(node)?;
        Ok(bodies)
    }
}

//! Conditions, and what conditional nodes do with them.

use cupyrite_sys::driver::{CUgraphConditionalHandle, CUgraphConditionalNodeType};

use crate::memory::DeviceCopy;

/// A value that device code sets (`cudaGraphSetConditional`) and that conditional nodes test.
///
/// It belongs to the definition that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    handle: CUgraphConditionalHandle,
}

impl Condition {
    /// The driver's handle, which device code takes as a `cudaGraphConditionalHandle`.
    pub const fn handle(self) -> CUgraphConditionalHandle {
        self.handle
    }

    /// From the driver's handle. Nodes accept it if
    /// [`GraphDefinition::create_condition`](super::GraphDefinition::create_condition) of their graph returned it.
    pub const fn from_handle(handle: CUgraphConditionalHandle) -> Condition {
        Condition { handle }
    }
}

// SAFETY: a 64-bit handle, which device code takes by value.
unsafe impl DeviceCopy for Condition {}

/// What a conditional node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionalKind {
    /// Runs the first body if the condition is not 0, else the second one, if there is one.
    If,
    /// Runs the body as long as the condition is not 0.
    While,
    /// Runs the body with the index that the condition has.
    Switch,
}

impl ConditionalKind {
    pub(crate) fn raw(self) -> CUgraphConditionalNodeType {
        match self {
            ConditionalKind::If => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
            ConditionalKind::While => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
            ConditionalKind::Switch => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH,
        }
    }

    pub(crate) fn from_raw(kind: CUgraphConditionalNodeType) -> Option<ConditionalKind> {
        [
            ConditionalKind::If,
            ConditionalKind::While,
            ConditionalKind::Switch,
        ]
        .into_iter()
        .find(|known| known.raw() == kind)
    }
}

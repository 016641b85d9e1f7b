//! Descriptions of arrays in memory: strided layouts and the DLPack structures.

pub mod dlpack;
pub(crate) mod layout;

pub use layout::{Index, MAX_DIMS, StrideOrder, StridedLayout};

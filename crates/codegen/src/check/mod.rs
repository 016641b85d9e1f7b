//! Comparisons of the IR with independent sources: the interface manifests and the C compiler.

pub mod facts;
pub mod layout;

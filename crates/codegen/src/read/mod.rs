//! Headers to the C half of the IR: the pinned packages, libclang, declarations, macros, and the merge of header sets.
//!
//! Nothing here knows about Python.

pub mod declarations;
pub mod fetch;
pub mod foreign;
pub mod libclang;
pub mod macros;
pub mod manual;
pub mod merge;
pub mod sources;

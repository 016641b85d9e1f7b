//! Back ends: each turns the IR into generated files, as (path from the repository root, contents) pairs.

pub mod python_functions;
pub mod python_types;
pub mod stubs;

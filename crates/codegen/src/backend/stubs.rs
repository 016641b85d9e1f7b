//! The `.pyi` stubs.

use std::path::PathBuf;

use crate::ir;

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &ir::Api) -> Vec<(PathBuf, String)> {
    let _ = api;
    Vec::new()
}

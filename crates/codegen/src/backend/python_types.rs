//! Tables of the Python enums, struct and handle classes.

use std::path::PathBuf;

use crate::ir;

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &ir::Api) -> Vec<(PathBuf, String)> {
    let _ = api;
    Vec::new()
}

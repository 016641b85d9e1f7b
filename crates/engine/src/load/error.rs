//! Errors of loading modules.

use std::fmt;

use super::device_runtime;

/// Reason why a module cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// The text is not valid PTX.
    InvalidPtx,
    /// A PTX version or an address size that the device does not support.
    UnsupportedPtxVersion,
    /// A variable or function that is declared but not defined.
    UnresolvedSymbol,
    /// Not enough memory for the variables.
    OutOfMemory,
}

/// Failure to load a module.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// Reason.
    pub kind: LoadErrorKind,
    /// Line of the PTX, from one; zero if unknown.
    pub line: u32,
    /// Column, from one; zero if unknown.
    pub column: u32,
    /// Message, with line, column and token if they are known.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// The error of a symbol that is used but not defined.
pub fn unresolved(name: &str, line: u32) -> LoadError {
    LoadError {
        kind: LoadErrorKind::UnresolvedSymbol,
        line,
        column: 0,
        message: format!(
            "ptx line {line}: `{name}` is declared but not defined in this module{}",
            device_runtime::reason(name).map_or(String::new(), |why| format!(": {why}"))
        ),
    }
}

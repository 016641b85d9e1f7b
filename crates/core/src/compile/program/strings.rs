//! Strings that compilers take and return.

use crate::error::{Error, Result};
use crate::module::object_code::CodeKind;

pub(super) fn c_string(parameter: &str, text: impl Into<Vec<u8>>) -> Result<std::ffi::CString> {
    std::ffi::CString::new(text).map_err(|e| {
        let problem = format!("contains a NUL at byte {}", e.nul_position());
        Error::argument("Program", parameter, problem)
    })
}

/// The error for a target that the source cannot be compiled to.
pub(super) fn wrong_target(target: CodeKind, right: &str) -> Error {
    let problem = format!("is {target}; it can be {right}");
    Error::argument("Program::compile", "target", problem)
}

/// Text from a C library, up to its NUL; invalid UTF-8 is replaced.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

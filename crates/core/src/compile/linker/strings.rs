//! Strings that linkers take and return, and names of codes in messages.

use std::ffi::CString;

use crate::error::{Error, Result};
use crate::module::object_code::ObjectCode;

pub(super) fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

pub(super) fn c_string(parameter: &str, text: &[u8]) -> Result<CString> {
    CString::new(text).map_err(|_| {
        let problem = format!("{:?} contains a NUL", String::from_utf8_lossy(text));
        Error::argument("Linker::new", parameter, problem)
    })
}

/// The bytes of a code followed by a NUL, which is not counted: PTX is text.
pub(super) fn with_nul(code: &[u8]) -> Vec<u8> {
    let mut owned = Vec::with_capacity(code.len() + 1);
    owned.extend_from_slice(code);
    owned.push(0);
    owned
}

pub(super) fn display(code: &ObjectCode) -> String {
    match code.name() {
        "" => format!("{} without a name", code.kind()),
        name => format!("{} {name:?}", code.kind()),
    }
}

//! Errors of the parser.

use crate::ir::Pos;
use std::fmt;

/// Reason why a text was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not valid PTX.
    Invalid,
    /// The `.version` is newer than [`crate::NEWEST_VERSION`].
    UnsupportedVersion,
    /// The `.target` does not name a known architecture.
    UnsupportedTarget,
}

/// Rejection of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Reason.
    pub kind: ErrorKind,
    /// Start of the offending token.
    pub pos: Pos,
    /// The offending token as written, shortened if long; empty at the end of the text.
    pub token: String,
    /// Message of one line that names the token; without the position.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.pos.line, self.pos.column, self.message
        )
    }
}

impl std::error::Error for Error {}

/// A token for a message: on one line, at most 40 characters.
pub(crate) fn shortened(token: &str) -> String {
    const LONGEST: usize = 40;
    let mut out: String = token
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if token.chars().nth(LONGEST).is_some() {
        out.push_str("...");
    }
    out
}

//! What a rejected text is answered with.

use crate::ir::Pos;
use std::fmt;

/// Why a text was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// It is not valid PTX.
    Invalid,
    /// Its `.version` is newer than [`crate::NEWEST_VERSION`].
    UnsupportedVersion,
    /// Its `.target` names no known architecture.
    UnsupportedTarget,
}

/// A rejected text: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Why.
    pub kind: ErrorKind,
    /// Where the offending token begins.
    pub pos: Pos,
    /// The offending token as written, shortened if long; empty at the end of the text.
    pub token: String,
    /// One line of prose that names the token, without the position.
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

/// A token as it is shown in a message: on one line, at most 40 characters.
pub(crate) fn shown(token: &str) -> String {
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

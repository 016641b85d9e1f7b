//! PTX text to typed IR, and back.
//!
//! Belongs here: the instruction table, the lexer, the parser, name resolution, type checks, diagnostics, the printer. Does not
//! belong here: anything that executes.
//!
//! [`parse`] reads a whole module. It accepts the PTX ISA up to [`NEWEST_VERSION`], never recurses deeper than a fixed
//! limit, and uses memory in proportion to the length of the text, whatever numbers the text contains. [`print`](fn@print) writes one.
#![forbid(unsafe_code)]

mod error;
pub mod ir;
pub mod isa;
pub mod link;
mod parse;
mod print;
pub mod textures;

pub use error::{Error, ErrorKind};
pub use parse::known_architecture;
pub use print::{print, special_name};

/// Newest supported `.version`, that of CUDA 13.5. No other limit of the PTX version exists in this workspace.
pub const NEWEST_VERSION: (u32, u32) = (9, 5);

/// Parses the text of a PTX module; trailing NUL characters are ignored.
///
/// # Errors
/// The first violation, with its line, column and token: [`ErrorKind::Invalid`] for text that is not valid PTX,
/// [`ErrorKind::UnsupportedVersion`] for a newer `.version`, [`ErrorKind::UnsupportedTarget`] for an unknown `.target`.
pub fn parse(text: &str) -> Result<ir::Module, Error> {
    parse::Parser::new(text.trim_end_matches('\0')).module()
}

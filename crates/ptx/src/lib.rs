//! PTX text to typed IR.
//!
//! Belongs here: the lexer, the parser, name resolution, type checks, diagnostics. Does not belong here:
//! anything that executes.
#![forbid(unsafe_code)]

pub mod ir;

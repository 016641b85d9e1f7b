//! From source to device code: compilers, linkers, and the cache of what they produce.
//!
//! Device code itself, and what it is loaded into, is in [`module`](crate::module).

pub mod cache;
mod dedicated_thread;
pub(crate) mod linker;
pub(crate) mod program;

pub use linker::{Linker, LinkerBackend, LinkerOptions};
pub use program::{
    Compiler, CompilerBackend, PchStatus, Program, ProgramOptions, SourceKind,
    bundled_headers_directory, default_arch, user_cache_directory,
};

//! The searches: dynamic libraries, and paths that are found without being loaded.
//!
//! `engine` has the locations of a dynamic library and their order, `load` loads a matching file after its
//! dependencies, or only locates it. `paths` finds headers, tools, static libraries and bitcode. `probe` records the
//! examined locations; `toolkit` and `version` read CUDA majors and versions from files and names.

mod engine;
mod finder;
mod load;
mod located;
mod paths;
mod probe;
mod toolkit;
mod version;

pub use finder::Finder;
pub use located::{LoadedLibrary, LocatedLibrary, LocatedPath};
pub use paths::{
    cuda_path_or_home, find_binary, find_header_directory, locate_binary, locate_bitcode_library,
    locate_header_directory, locate_static_library,
};

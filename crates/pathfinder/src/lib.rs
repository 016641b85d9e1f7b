//! Finding and loading NVIDIA's libraries, headers and tools.
//!
//! Belongs here: locations (wheels, conda, toolkits, system), loading libraries, and errors that list the searched
//! locations. Does not belong here: C signatures, Python.
//!
//! A library is one descriptor in [`table::LIBRARIES`]; one engine searches for any of them. A [`Finder`] holds the
//! inputs of a search: platform, environment, file system and loader. All four can be replaced, so that every
//! platform is tested on any.
//!
//! The order for libraries: loaded libraries, the override `CUPYRITE_LIB_<NAME>`, installed wheels, conda, the system
//! loader, the library's own variables (`CUDNN_PATH`, `NCCL_HOME`), `CUDA_PATH`, `CUDA_HOME`, Windows'
//! `ProgramFiles`, the toolkit of the system's CUDA runtime, usual installation folders. The newest CUDA major comes
//! first, unless `CUPYRITE_CUDA_MAJOR` selects one. The search does not depend on the working directory and executes
//! nothing.
//!
//! ```
//! match cupyrite_pathfinder::load("nvrtc") {
//!     Ok(library) => println!("{} ({})", library.path.display(), library.found_via),
//!     Err(error) => println!("{error}"), // every searched location, and what to install
//! }
//! ```

pub mod environment;
mod error;
pub mod files;
mod found_via;
pub mod loader;
pub mod platform;
mod search;
pub mod table;

pub use environment::{Environment, set_site_packages, site_packages};
pub use error::{
    FileDefect, FindError, FindErrorKind, LoadError, LoadErrorKind, SearchOutcome, SearchedLocation,
};
pub use found_via::FoundVia;
pub use platform::{Arch, Os, Platform};
pub use search::{
    Finder, LoadedLibrary, LocatedLibrary, LocatedPath, cuda_path_or_home, find_binary,
    find_header_directory, locate_binary, locate_bitcode_library, locate_header_directory,
    locate_static_library,
};
pub use table::{LIBRARIES, LibraryDescriptor};

/// Finds the library called `name` (`"nvrtc"`, `"cuda"`) and loads it, after its dependencies. See [`Finder::load`].
///
/// # Errors
///
/// As [`Finder::load`].
pub fn load(name: &str) -> Result<LoadedLibrary, LoadError> {
    Finder::new(&Environment::current()).load(name)
}

/// Finds the library called `name` without loading it. See [`Finder::locate`].
///
/// # Errors
///
/// As [`Finder::locate`].
pub fn locate(name: &str) -> Result<LocatedLibrary, LoadError> {
    Finder::new(&Environment::current()).locate(name)
}

//! Finding and loading NVIDIA's libraries, headers and tools.
//!
//! Belongs here: where they lie (wheels, conda, toolkits, system), opening libraries, and errors that say
//! what was looked for and where. Does not belong here: any C signature, any Python.
//!
//! A library is one row of [`table::LIBRARIES`], and one engine reads rows. A [`Finder`] holds everything a
//! search depends on: the platform, the environment, the file system and the loader. All four can be made up,
//! so that every platform is tested on any.
//!
//! The order for libraries: what the process has loaded already, the override `CUPYRITE_LIB_<NAME>`,
//! installed wheels, conda, the system's own loader, the library's own variables (`CUDNN_PATH`, `NCCL_HOME`),
//! `CUDA_PATH`, `CUDA_HOME`, Windows' `ProgramFiles`, the toolkit of the system's CUDA runtime, well-known
//! folders. The newest CUDA major comes first, unless `CUPYRITE_CUDA_MAJOR` asks for one. Nothing depends on
//! the working directory, and nothing is executed.
//!
//! ```
//! match cupyrite_pathfinder::load("nvrtc") {
//!     Ok(library) => println!("{} ({})", library.path.display(), library.found_via),
//!     Err(error) => println!("{error}"), // every place looked at, and what to install
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

/// Finds the library called `name` (`"nvrtc"`, `"cuda"`) and loads it into this process, what it depends on
/// first. See [`Finder::load`].
///
/// # Errors
///
/// As [`Finder::load`].
pub fn load(name: &str) -> Result<LoadedLibrary, LoadError> {
    Finder::new(&Environment::current()).load(name)
}

/// Finds the library called `name` without loading anything. See [`Finder::locate`].
///
/// # Errors
///
/// As [`Finder::locate`].
pub fn locate(name: &str) -> Result<LocatedLibrary, LoadError> {
    Finder::new(&Environment::current()).locate(name)
}

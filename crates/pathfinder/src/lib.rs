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

pub mod dl;
mod elf;
pub mod environment;
mod error;
pub mod files;
mod find;
mod find_toolkit;
mod found;
mod ldso;
mod load;
pub mod platform;
mod search;
pub mod table;
mod version;
mod walk;

use dl::Loader;
use files::Files;

pub use environment::{Environment, set_site_packages, site_packages};
pub use error::{Fault, FindError, FindErrorKind, LoadError, LoadErrorKind, Looked, Outcome};
pub use find::{
    binary, bitcode_library, cuda_path_or_home, header_directory, locate_binary,
    locate_header_directory, static_library,
};
pub use found::{Found, FoundVia, Loaded, Located};
pub use platform::{Arch, Os, Platform};
pub use table::{LIBRARIES, Library};

/// Everything a search depends on.
#[derive(Clone, Copy)]
pub struct Finder<'a> {
    /// Whose layouts and names.
    pub platform: Platform,
    /// Variables and the folders of the Python installation.
    pub environment: &'a Environment,
    /// The file system.
    pub files: &'a dyn Files,
    /// The dynamic loader.
    pub loader: &'a dyn Loader,
}

impl<'a> Finder<'a> {
    /// A search on this machine, with its own loader and file system.
    pub fn new(environment: &'a Environment) -> Finder<'a> {
        Finder {
            platform: Platform::CURRENT,
            environment,
            files: &files::RealFiles,
            loader: &dl::System,
        }
    }
}

/// Finds the library called `name` (`"nvrtc"`, `"cuda"`) and loads it into this process, what it depends on
/// first. See [`Finder::load`].
///
/// # Errors
///
/// As [`Finder::load`].
pub fn load(name: &str) -> Result<Loaded, LoadError> {
    Finder::new(&Environment::current()).load(name)
}

/// Finds the library called `name` without loading anything. See [`Finder::locate`].
///
/// # Errors
///
/// As [`Finder::locate`].
pub fn locate(name: &str) -> Result<Located, LoadError> {
    Finder::new(&Environment::current()).locate(name)
}

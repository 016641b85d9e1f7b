//! Finding and loading NVIDIA's libraries.
//!
//! Belongs here: where libraries lie (wheels, conda, toolkits, system), opening them, and errors that say
//! what was looked for and where. Does not belong here: any C signature, any Python.
//!
//! A library is one row of [`table::LIBRARIES`]; [`search::search`] is the one engine that reads rows. Its
//! order: what the process has loaded already, the override `CUPYRITE_LIB_<NAME>`, installed wheels, conda,
//! the system's own loader, `CUDA_PATH`, `CUDA_HOME`, well-known folders. Within a step CUDA 13 comes before
//! CUDA 12.
//!
//! ```
//! match cupyrite_pathfinder::load("nvrtc") {
//!     Ok(library) => println!("{} ({})", library.path.display(), library.found_via),
//!     Err(error) => println!("{error}"), // every place looked at, and what to install
//! }
//! ```

pub mod dl;
pub mod environment;
mod error;
pub mod files;
pub mod platform;
pub mod search;
pub mod table;

pub use environment::{Environment, set_site_packages, site_packages};
pub use error::{LoadError, LoadErrorKind, Looked, Outcome};
pub use platform::{Arch, Os, Platform};
pub use search::{FoundVia, Loaded};
pub use table::{LIBRARIES, Library};

/// Finds the library called `name` (`"nvrtc"`, `"cuda"`) and loads it into this process.
///
/// Nothing is remembered between calls: a library installed after a failed attempt is found by the next one,
/// and a loaded one is recognised at the price of one `dlopen` with `RTLD_NOLOAD`.
///
/// # Errors
///
/// [`LoadErrorKind::Unknown`] if there is no such row, [`LoadErrorKind::NotFound`] if it lies in none of the
/// places, [`LoadErrorKind::Failed`] if a file was found and the system's loader refused it: the search then
/// stops, because a broken installation should be seen, not skipped.
pub fn load(name: &str) -> Result<Loaded, LoadError> {
    let library = table::library(name).ok_or_else(|| LoadError::unknown(name))?;
    search::search(library, &Environment::current(), &dl::System)
}

//! The CUDA libraries as C sees them: types, constants, and symbols that resolve on first use.
//!
//! Belongs here: generated declarations, the loader beneath them, and the access to addresses a caller names. Does not
//! belong here: safe wrappers, ownership, the CPU device itself and our own CUDA runtime (they plug in from above).

pub mod abi;
pub mod checked;
pub mod destroyed;
mod generated;
pub mod loader;

pub use generated::{cudla, cufile, driver, nvfatbin, nvjitlink, nvml, nvrtc, nvvm, runtime};

use loader::{Library, Table};

/// The functions of a library.
pub fn table(library: Library) -> &'static Table {
    match library {
        Library::Driver => &driver::TABLE,
        Library::Nvrtc => &nvrtc::TABLE,
        Library::NvJitLink => &nvjitlink::TABLE,
        Library::Nvvm => &nvvm::TABLE,
        Library::NvFatbin => &nvfatbin::TABLE,
        Library::Nvml => &nvml::TABLE,
        Library::CuFile => &cufile::TABLE,
        Library::Cudla => &cudla::TABLE,
        Library::Runtime => &runtime::TABLE,
    }
}

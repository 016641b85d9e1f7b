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

use loader::{CudaLibrary, SymbolTable};

/// The functions of a library.
pub fn table(library: CudaLibrary) -> &'static SymbolTable {
    match library {
        CudaLibrary::Driver => &driver::TABLE,
        CudaLibrary::Nvrtc => &nvrtc::TABLE,
        CudaLibrary::NvJitLink => &nvjitlink::TABLE,
        CudaLibrary::Nvvm => &nvvm::TABLE,
        CudaLibrary::NvFatbin => &nvfatbin::TABLE,
        CudaLibrary::Nvml => &nvml::TABLE,
        CudaLibrary::CuFile => &cufile::TABLE,
        CudaLibrary::Cudla => &cudla::TABLE,
        CudaLibrary::Runtime => &runtime::TABLE,
    }
}

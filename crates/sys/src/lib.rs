//! C interfaces of the CUDA libraries: types, constants, and symbols that resolve on first use.
//!
//! Belongs here: generated declarations, the loader beneath them, checked access to addresses from callers, and
//! the rules of tensor maps, which the CPU device and the safe API share. Does not belong here: safe wrappers, ownership, the
//! CPU device and this project's CUDA runtime, which register themselves with the loader.

pub mod abi;
pub mod checked;
mod generated;
pub mod loader;
pub mod tensor_map;
pub mod waits;

pub use generated::{cudla, cufile, driver, nvfatbin, nvjitlink, nvml, nvrtc, nvvm, runtime};

use loader::{CudaLibrary, SymbolTable};

/// The symbol table of a library.
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

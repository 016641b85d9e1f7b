//! The Python modules of the bindings, and the C library that each of them shows.

use cupyrite_sys::loader::CudaLibrary;

/// A Python module with generated tables. Several modules may show one C library: `cuda.bindings.driver` returns statuses,
/// `cuda.bindings._v2.driver` raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Module {
    /// `cuda.bindings.driver`
    Driver,
    /// `cuda.bindings.runtime`
    Runtime,
    /// `cuda.bindings.nvrtc`
    Nvrtc,
    /// `cuda.bindings.nvjitlink`
    NvJitLink,
    /// `cuda.bindings.nvvm`
    Nvvm,
    /// `cuda.bindings.nvfatbin`
    NvFatbin,
    /// `cuda.bindings.nvml`
    Nvml,
    /// `cuda.bindings.cufile`
    CuFile,
    /// `cuda.bindings.cudla`
    Cudla,
    /// `cuda.bindings._v2.driver`
    DriverV2,
    /// `cuda.bindings._v2.nvrtc`
    NvrtcV2,
    /// `cuda.bindings._v2.runtime`
    RuntimeV2,
}

impl Module {
    /// Number of modules.
    pub const COUNT: usize = 12;

    /// The C library whose functions the module calls.
    #[inline(always)]
    pub const fn library(self) -> CudaLibrary {
        match self {
            Module::Driver | Module::DriverV2 => CudaLibrary::Driver,
            Module::Runtime | Module::RuntimeV2 => CudaLibrary::Runtime,
            Module::Nvrtc | Module::NvrtcV2 => CudaLibrary::Nvrtc,
            Module::NvJitLink => CudaLibrary::NvJitLink,
            Module::Nvvm => CudaLibrary::Nvvm,
            Module::NvFatbin => CudaLibrary::NvFatbin,
            Module::Nvml => CudaLibrary::Nvml,
            Module::CuFile => CudaLibrary::CuFile,
            Module::Cudla => CudaLibrary::Cudla,
        }
    }

    /// The module that shows a library under C's names, or the only one.
    pub const fn first(library: CudaLibrary) -> Module {
        match library {
            CudaLibrary::Driver => Module::Driver,
            CudaLibrary::Runtime => Module::Runtime,
            CudaLibrary::Nvrtc => Module::Nvrtc,
            CudaLibrary::NvJitLink => Module::NvJitLink,
            CudaLibrary::Nvvm => Module::Nvvm,
            CudaLibrary::NvFatbin => Module::NvFatbin,
            CudaLibrary::Nvml => Module::Nvml,
            CudaLibrary::CuFile => Module::CuFile,
            CudaLibrary::Cudla => Module::Cudla,
        }
    }

    /// The name: `cuda.bindings._v2.driver`.
    pub const fn name(self) -> &'static str {
        match self {
            Module::Driver => "cuda.bindings.driver",
            Module::Runtime => "cuda.bindings.runtime",
            Module::Nvrtc => "cuda.bindings.nvrtc",
            Module::NvJitLink => "cuda.bindings.nvjitlink",
            Module::Nvvm => "cuda.bindings.nvvm",
            Module::NvFatbin => "cuda.bindings.nvfatbin",
            Module::Nvml => "cuda.bindings.nvml",
            Module::CuFile => "cuda.bindings.cufile",
            Module::Cudla => "cuda.bindings.cudla",
            Module::DriverV2 => "cuda.bindings._v2.driver",
            Module::NvrtcV2 => "cuda.bindings._v2.nvrtc",
            Module::RuntimeV2 => "cuda.bindings._v2.runtime",
        }
    }
}

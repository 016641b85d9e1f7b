//! The libraries, and what is particular to one of them.

use std::ffi::{CStr, CString, c_void};

use super::Row;

/// A library whose symbols this crate declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum CudaLibrary {
    /// The CUDA driver API: `libcuda.so.1`, or the CPU device.
    Driver = 0,
    /// The run-time compiler: `libnvrtc`.
    Nvrtc = 1,
    /// The linker of device code: `libnvJitLink`.
    NvJitLink = 2,
    /// The compiler of NVVM IR: `libnvvm`.
    Nvvm = 3,
    /// The maker of fat binaries: `libnvfatbin`.
    NvFatbin = 4,
    /// The management library: `libnvidia-ml`, which comes with the driver, or the CPU device's.
    Nvml = 5,
    /// GPUDirect Storage: `libcufile`.
    CuFile = 6,
    /// The deep learning accelerator of NVIDIA's SoCs: `libcudla`.
    Cudla = 7,
    /// The CUDA runtime API: `libcudart`, or this project's own.
    Runtime = 8,
}

impl CudaLibrary {
    /// How many there are.
    pub const COUNT: usize = 9;

    /// All of them, in the order of their numbers.
    pub const ALL: [CudaLibrary; CudaLibrary::COUNT] = [
        CudaLibrary::Driver,
        CudaLibrary::Nvrtc,
        CudaLibrary::NvJitLink,
        CudaLibrary::Nvvm,
        CudaLibrary::NvFatbin,
        CudaLibrary::Nvml,
        CudaLibrary::CuFile,
        CudaLibrary::Cudla,
        CudaLibrary::Runtime,
    ];

    /// The name [`cupyrite_pathfinder`] knows it by.
    pub const fn name(self) -> &'static str {
        match self {
            CudaLibrary::Driver => "cuda",
            CudaLibrary::Nvrtc => "nvrtc",
            CudaLibrary::NvJitLink => "nvJitLink",
            CudaLibrary::Nvvm => "nvvm",
            CudaLibrary::NvFatbin => "nvfatbin",
            CudaLibrary::Nvml => "nvml",
            CudaLibrary::CuFile => "cufile",
            CudaLibrary::Cudla => "cudla",
            CudaLibrary::Runtime => "cudart",
        }
    }

    /// The library with this [`name`](Library::name).
    pub fn from_name(name: &str) -> Option<CudaLibrary> {
        CudaLibrary::ALL.into_iter().find(|l| l.name() == name)
    }

    /// The package on PyPI that has the library; empty for those that come with the driver.
    pub const fn package(self) -> &'static str {
        match self {
            CudaLibrary::Driver | CudaLibrary::Nvml => "",
            CudaLibrary::Nvrtc => "nvidia-cuda-nvrtc",
            CudaLibrary::NvJitLink => "nvidia-nvjitlink",
            CudaLibrary::Nvvm => "nvidia-nvvm",
            CudaLibrary::NvFatbin => "nvidia-nvfatbin",
            CudaLibrary::CuFile => "nvidia-cufile",
            CudaLibrary::Cudla => "nvidia-cudla",
            CudaLibrary::Runtime => "nvidia-cuda-runtime",
        }
    }

    /// What to do about a function that the installed library is too old for.
    pub(super) fn newer(self) -> String {
        match self.package() {
            "" => "a newer NVIDIA driver has it".to_owned(),
            package => format!("a newer one has it: pip install --upgrade {package}"),
        }
    }

    /// Looks a function up under the names that releases of the library export it by.
    pub(super) fn find(
        self,
        row: &SymbolDescriptor,
        lookup: impl Fn(&CStr) -> *const c_void,
    ) -> *const c_void {
        let address = lookup(row.export);
        if !address.is_null() || self != CudaLibrary::NvJitLink {
            return address;
        }
        // The first releases of nvJitLink have the names that their header's inline functions call, not the plain
        // ones: `__nvJitLinkCreate_12_0`. Every later release of the same major keeps them.
        for major in [13, 12] {
            let mut name = b"__".to_vec();
            name.extend_from_slice(row.export.to_bytes());
            name.extend_from_slice(format!("_{major}_0").as_bytes());
            if let Ok(name) = CString::new(name) {
                let address = lookup(&name);
                if !address.is_null() {
                    return address;
                }
            }
        }
        std::ptr::null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::PerThreadVariant;

    #[test]
    fn numbers_and_names_lead_back() {
        for (number, library) in CudaLibrary::ALL.into_iter().enumerate() {
            assert_eq!(library as usize, number);
            assert_eq!(CudaLibrary::from_name(library.name()), Some(library));
        }
        assert_eq!(CudaLibrary::from_name("NVRTC"), None);
    }

    #[test]
    fn the_search_for_libraries_knows_every_name() {
        for library in CudaLibrary::ALL {
            assert!(
                cupyrite_pathfinder::LIBRARIES
                    .iter()
                    .any(|l| l.name == library.name()),
                "{library:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_says_who_has_it() {
        assert_eq!(CudaLibrary::Nvml.newer(), "a newer NVIDIA driver has it");
        assert_eq!(
            CudaLibrary::Nvvm.newer(),
            "a newer one has it: pip install --upgrade nvidia-nvvm"
        );
    }

    const CREATE: SymbolDescriptor = SymbolDescriptor {
        name: c"nvJitLinkCreate",
        export: c"nvJitLinkCreate",
        version: 0,
        per_thread: PerThreadVariant::None,
    };

    extern "C" fn plain() {}
    extern "C" fn versioned() {}

    #[test]
    fn nvjitlink_is_asked_for_plain_names_first() {
        let both = |name: &CStr| match name.to_bytes() {
            b"nvJitLinkCreate" => plain as *const c_void,
            b"__nvJitLinkCreate_12_0" => versioned as *const c_void,
            _ => std::ptr::null(),
        };
        assert_eq!(
            CudaLibrary::NvJitLink.find(&CREATE, both),
            plain as *const c_void
        );
        let old = |name: &CStr| match name.to_bytes() {
            b"nvJitLinkCreate" => std::ptr::null(),
            _ => both(name),
        };
        assert_eq!(
            CudaLibrary::NvJitLink.find(&CREATE, old),
            versioned as *const c_void
        );
        assert!(CudaLibrary::Nvvm.find(&CREATE, old).is_null());
        assert!(
            CudaLibrary::NvJitLink
                .find(&CREATE, |_| std::ptr::null())
                .is_null()
        );
    }
}

//! The libraries, their names and packages, and the symbol names of old releases.

use std::ffi::{CStr, CString, c_void};

use super::SymbolDescriptor;

/// A library whose symbols this crate declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum CudaLibrary {
    /// The CUDA driver API: `libcuda.so.1`, or the CPU device.
    Driver = 0,
    /// The run-time compiler: `libnvrtc`.
    Nvrtc = 1,
    /// The device linker: `libnvJitLink`.
    NvJitLink = 2,
    /// The compiler of NVVM IR: `libnvvm`.
    Nvvm = 3,
    /// The fat binary creator: `libnvfatbin`.
    NvFatbin = 4,
    /// The management library: `libnvidia-ml`, which comes with the driver, or the CPU device's.
    Nvml = 5,
    /// GPUDirect Storage: `libcufile`.
    CuFile = 6,
    /// The deep learning accelerator of NVIDIA's SoCs: `libcudla`.
    Cudla = 7,
    /// The CUDA runtime API: `libcudart`, or this project's runtime.
    Runtime = 8,
}

impl CudaLibrary {
    /// Number of libraries.
    pub const COUNT: usize = 9;

    /// All libraries, in discriminant order.
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

    /// The name in [`cupyrite_pathfinder`].
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

    /// The library with this [`name`](CudaLibrary::name).
    pub fn from_name(name: &str) -> Option<CudaLibrary> {
        CudaLibrary::ALL.into_iter().find(|l| l.name() == name)
    }

    /// The PyPI package that contains the library; empty for libraries installed with the driver.
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

    /// The command that installs a library new enough for a missing function.
    pub(super) fn upgrade_advice(self) -> String {
        match self.package() {
            "" => "install a newer NVIDIA driver".to_owned(),
            package => format!("pip install --upgrade {package}"),
        }
    }

    /// Looks up a function under each name by which a release of the library exports it.
    pub(super) fn find_symbol(
        self,
        symbol: &SymbolDescriptor,
        lookup: impl Fn(&CStr) -> *const c_void,
    ) -> *const c_void {
        let address = lookup(symbol.export);
        if !address.is_null() || self != CudaLibrary::NvJitLink {
            return address;
        }
        // The first releases of nvJitLink export only the names that their header's inline functions call:
        // `__nvJitLinkCreate_12_0`. Later releases of the same major keep them.
        for major in [13, 12] {
            let mut name = b"__".to_vec();
            name.extend_from_slice(symbol.export.to_bytes());
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
    fn discriminants_and_names_round_trip() {
        for (number, library) in CudaLibrary::ALL.into_iter().enumerate() {
            assert_eq!(library as usize, number);
            assert_eq!(CudaLibrary::from_name(library.name()), Some(library));
        }
        assert_eq!(CudaLibrary::from_name("NVRTC"), None);
    }

    #[test]
    fn pathfinder_has_every_name() {
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
    fn upgrade_advice_names_the_package() {
        assert_eq!(
            CudaLibrary::Nvml.upgrade_advice(),
            "install a newer NVIDIA driver"
        );
        assert_eq!(
            CudaLibrary::Nvvm.upgrade_advice(),
            "pip install --upgrade nvidia-nvvm"
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
    fn nvjitlink_looks_up_plain_names_first() {
        let both = |name: &CStr| match name.to_bytes() {
            b"nvJitLinkCreate" => plain as *const c_void,
            b"__nvJitLinkCreate_12_0" => versioned as *const c_void,
            _ => std::ptr::null(),
        };
        assert_eq!(
            CudaLibrary::NvJitLink.find_symbol(&CREATE, both),
            plain as *const c_void
        );
        let old = |name: &CStr| match name.to_bytes() {
            b"nvJitLinkCreate" => std::ptr::null(),
            _ => both(name),
        };
        assert_eq!(
            CudaLibrary::NvJitLink.find_symbol(&CREATE, old),
            versioned as *const c_void
        );
        assert!(CudaLibrary::Nvvm.find_symbol(&CREATE, old).is_null());
        assert!(
            CudaLibrary::NvJitLink
                .find_symbol(&CREATE, |_| std::ptr::null())
                .is_null()
        );
    }
}

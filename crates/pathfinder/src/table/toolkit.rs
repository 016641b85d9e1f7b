//! The dynamic libraries of the toolkit, in the same order as `SUPPORTED_NVIDIA_LIBNAMES`.

use super::libraries::{TOOLKIT, VERSIONED};
use super::{Arch, LibraryDescriptor, Packages};

pub(super) const ROWS: [LibraryDescriptor; 29] = [
    LibraryDescriptor {
        name: "cudart",
        linux_sonames: &["libcudart.so.13", "libcudart.so.12"],
        windows_dlls: &["cudart64_13.dll", "cudart64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cuda_runtime/bin",
        ],
        packages: Packages::new(
            "nvidia-cuda-runtime",
            "nvidia-cuda-runtime-cu12",
            "cuda-cudart",
        ),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nvfatbin",
        linux_sonames: &["libnvfatbin.so.13", "libnvfatbin.so.12"],
        windows_dlls: &["nvfatbin_130_0.dll", "nvfatbin_120_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/nvfatbin/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/nvfatbin/bin",
        ],
        packages: Packages::new("nvidia-nvfatbin", "nvidia-nvfatbin-cu12", "libnvfatbin"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nvJitLink",
        linux_sonames: &["libnvJitLink.so.13", "libnvJitLink.so.12"],
        windows_dlls: &["nvJitLink_130_0.dll", "nvJitLink_120_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/nvjitlink/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/nvjitlink/bin",
        ],
        packages: Packages::new("nvidia-nvjitlink", "nvidia-nvjitlink-cu12", "libnvjitlink"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nvrtc",
        linux_sonames: &["libnvrtc.so.13", "libnvrtc.so.12"],
        windows_dlls: &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cuda_nvrtc/bin",
        ],
        add_dll_directory: true,
        companions: &["libnvrtc-builtins.so."],
        packages: Packages::new("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "cuda-nvrtc"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nvvm",
        linux_sonames: &["libnvvm.so.4", "libnvvm.so"],
        windows_dlls: &["nvvm70.dll", "nvvm64_40_0.dll", "nvvm64.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_nvcc/nvvm/lib64"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cuda_nvcc/nvvm/bin",
        ],
        linux_root_dirs: &["nvvm/lib64"],
        windows_root_dirs: &["nvvm/bin/x64", "nvvm/bin/arm64", "nvvm/bin"],
        program_files_dirs: &[
            "NVIDIA GPU Computing Toolkit/CUDA/v*/nvvm/bin/x64",
            "NVIDIA GPU Computing Toolkit/CUDA/v*/nvvm/bin/arm64",
            "NVIDIA GPU Computing Toolkit/CUDA/v*/nvvm/bin",
        ],
        canary: true,
        packages: Packages::new("nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "cuda-nvcc-impl"),
        ..TOOLKIT
    },
    LibraryDescriptor {
        name: "cublas",
        linux_sonames: &["libcublas.so.13", "libcublas.so.12"],
        windows_dlls: &["cublas64_13.dll", "cublas64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cublas/bin",
        ],
        dependencies: &["cublasLt"],
        packages: Packages::new("nvidia-cublas", "nvidia-cublas-cu12", "libcublas"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cublasLt",
        linux_sonames: &["libcublasLt.so.13", "libcublasLt.so.12"],
        windows_dlls: &["cublasLt64_13.dll", "cublasLt64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cublas/bin",
        ],
        packages: Packages::new("nvidia-cublas", "nvidia-cublas-cu12", "libcublas"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cufft",
        linux_sonames: &["libcufft.so.12", "libcufft.so.11"],
        windows_dlls: &["cufft64_12.dll", "cufft64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cufft/bin",
        ],
        add_dll_directory: true,
        packages: Packages::new("nvidia-cufft", "nvidia-cufft-cu12", "libcufft"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cufftw",
        linux_sonames: &["libcufftw.so.12", "libcufftw.so.11"],
        windows_dlls: &["cufftw64_12.dll", "cufftw64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cufft/bin",
        ],
        dependencies: &["cufft"],
        packages: Packages::new("nvidia-cufft", "nvidia-cufft-cu12", "libcufft"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "curand",
        linux_sonames: &["libcurand.so.11", "libcurand.so.10"],
        windows_dlls: &["curand64_11.dll", "curand64_10.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/curand/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/curand/bin",
        ],
        packages: Packages::new("nvidia-curand", "nvidia-curand-cu12", "libcurand"),
        ..TOOLKIT
    },
    LibraryDescriptor {
        name: "cusolver",
        linux_sonames: &["libcusolver.so.12", "libcusolver.so.11"],
        windows_dlls: &["cusolver64_12.dll", "cusolver64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusolver/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cusolver/bin",
        ],
        dependencies: &["nvJitLink", "cusparse", "cublasLt", "cublas"],
        packages: Packages::new("nvidia-cusolver", "nvidia-cusolver-cu12", "libcusolver"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cusolverMg",
        linux_sonames: &["libcusolverMg.so.12", "libcusolverMg.so.11"],
        windows_dlls: &["cusolverMg64_12.dll", "cusolverMg64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusolver/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cusolver/bin",
        ],
        dependencies: &["nvJitLink", "cublasLt", "cublas"],
        packages: Packages::new("nvidia-cusolver", "nvidia-cusolver-cu12", "libcusolver"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cusparse",
        linux_sonames: &["libcusparse.so.12"],
        windows_dlls: &["cusparse64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusparse/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cusparse/bin",
        ],
        dependencies: &["nvJitLink"],
        packages: Packages::new("nvidia-cusparse", "nvidia-cusparse-cu12", "libcusparse"),
        ..TOOLKIT
    },
    LibraryDescriptor {
        name: "nppc",
        linux_sonames: &["libnppc.so.13", "libnppc.so.12"],
        windows_dlls: &["nppc64_13.dll", "nppc64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppial",
        linux_sonames: &["libnppial.so.13", "libnppial.so.12"],
        windows_dlls: &["nppial64_13.dll", "nppial64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppicc",
        linux_sonames: &["libnppicc.so.13", "libnppicc.so.12"],
        windows_dlls: &["nppicc64_13.dll", "nppicc64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppidei",
        linux_sonames: &["libnppidei.so.13", "libnppidei.so.12"],
        windows_dlls: &["nppidei64_13.dll", "nppidei64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppif",
        linux_sonames: &["libnppif.so.13", "libnppif.so.12"],
        windows_dlls: &["nppif64_13.dll", "nppif64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppig",
        linux_sonames: &["libnppig.so.13", "libnppig.so.12"],
        windows_dlls: &["nppig64_13.dll", "nppig64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppim",
        linux_sonames: &["libnppim.so.13", "libnppim.so.12"],
        windows_dlls: &["nppim64_13.dll", "nppim64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppist",
        linux_sonames: &["libnppist.so.13", "libnppist.so.12"],
        windows_dlls: &["nppist64_13.dll", "nppist64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppisu",
        linux_sonames: &["libnppisu.so.13", "libnppisu.so.12"],
        windows_dlls: &["nppisu64_13.dll", "nppisu64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nppitc",
        linux_sonames: &["libnppitc.so.13", "libnppitc.so.12"],
        windows_dlls: &["nppitc64_13.dll", "nppitc64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "npps",
        linux_sonames: &["libnpps.so.13", "libnpps.so.12"],
        windows_dlls: &["npps64_13.dll", "npps64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nvblas",
        linux_sonames: &["libnvblas.so.13", "libnvblas.so.12"],
        windows_dlls: &["nvblas64_13.dll", "nvblas64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cublas/bin",
        ],
        dependencies: &["cublas", "cublasLt"],
        packages: Packages::new("nvidia-cublas", "nvidia-cublas-cu12", "libcublas"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "nvjpeg",
        linux_sonames: &["libnvjpeg.so.13", "libnvjpeg.so.12"],
        windows_dlls: &["nvjpeg64_13.dll", "nvjpeg64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/nvjpeg/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/nvjpeg/bin",
        ],
        packages: Packages::new("nvidia-nvjpeg", "nvidia-nvjpeg-cu12", "libnvjpeg"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cupti",
        linux_sonames: &["libcupti.so.13", "libcupti.so.12"],
        windows_dlls: &[
            "cupti64_13.dll",
            "cupti64_2026.3.1.dll",
            "cupti64_2026.3.0.dll",
            "cupti64_2026.2.1.dll",
            "cupti64_2026.2.0.dll",
            "cupti64_2026.1.2.dll",
            "cupti64_2026.1.1.dll",
            "cupti64_2026.1.0.dll",
            "cupti64_2025.4.1.dll",
            "cupti64_2025.3.1.dll",
            "cupti64_2025.2.1.dll",
            "cupti64_2025.1.1.dll",
            "cupti64_2024.3.2.dll",
            "cupti64_2024.2.1.dll",
            "cupti64_2024.1.1.dll",
            "cupti64_2023.3.1.dll",
            "cupti64_2023.2.2.dll",
            "cupti64_2023.1.1.dll",
            "cupti64_2022.4.1.dll",
        ],
        windows_majors: &[
            13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 12, 12, 12, 12, 12, 12, 12, 12, 12,
        ],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin/arm64",
            "nvidia/cuda_cupti/bin",
        ],
        linux_root_dirs: &["extras/CUPTI/lib64", "lib"],
        windows_root_dirs: &["extras/CUPTI/lib64", "bin/x64", "bin/arm64", "bin"],
        program_files_dirs: &[
            "NVIDIA GPU Computing Toolkit/CUDA/v*/extras/CUPTI/lib64",
            "NVIDIA GPU Computing Toolkit/CUDA/v*/bin/x64",
            "NVIDIA GPU Computing Toolkit/CUDA/v*/bin/arm64",
            "NVIDIA GPU Computing Toolkit/CUDA/v*/bin",
        ],
        canary: true,
        packages: Packages::new("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12", "cuda-cupti"),
        ..VERSIONED
    },
    LibraryDescriptor {
        name: "cudla",
        linux_sonames: &["libcudla.so.1"],
        windows_dlls: &["cudla.dll"],
        windows_archs: &[Arch::Aarch64],
        linux_wheel_dirs: &["nvidia/cu13/lib"],
        windows_wheel_dirs: &["nvidia/cu13/bin/x86_64", "nvidia/cu13/bin/arm64"],
        packages: Packages::new("nvidia-cudla", "", "libcudla"),
        ..TOOLKIT
    },
    LibraryDescriptor {
        name: "cufile",
        linux_sonames: &["libcufile.so.0"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cufile/lib"],
        packages: Packages::new("nvidia-cufile", "nvidia-cufile-cu12", "libcufile"),
        ..TOOLKIT
    },
];

//! The dynamic libraries. The first 29 are the toolkit's, in the order of `SUPPORTED_NVIDIA_LIBNAMES`.

use super::{Arch, Library, Origin, Packages};

/// What most libraries of the toolkit share.
const TOOLKIT: Library = Library {
    name: "",
    origin: Origin::Toolkit,
    linux_sonames: &[],
    windows_dlls: &[],
    windows_archs: &[Arch::X86_64, Arch::Aarch64],
    linux_wheel_dirs: &[],
    windows_wheel_dirs: &[],
    linux_root_dirs: &["lib64", "lib"],
    windows_root_dirs: &["bin/x64", "bin"],
    dependencies: &[],
    optional_dependencies: &[],
    companions: &[],
    deep_bind: false,
    add_dll_directory: false,
    canary: false,
    root_variables: &[],
    variable_dirs: &[],
    packages: Packages {
        pip: "",
        pip_cuda12: "",
        conda: "",
    },
};

const PRODUCT: Library = Library {
    origin: Origin::Product,
    ..TOOLKIT
};

const DRIVER: Library = Library {
    origin: Origin::Driver,
    ..TOOLKIT
};

/// Every dynamic library this crate knows.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: "cudart",
        linux_sonames: &["libcudart.so.13", "libcudart.so.12"],
        windows_dlls: &["cudart64_13.dll", "cudart64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cuda_runtime/bin",
        ],
        ..TOOLKIT
    },
    Library {
        name: "nvfatbin",
        linux_sonames: &["libnvfatbin.so.13", "libnvfatbin.so.12"],
        windows_dlls: &["nvfatbin_130_0.dll", "nvfatbin_120_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/nvfatbin/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/nvfatbin/bin",
        ],
        ..TOOLKIT
    },
    Library {
        name: "nvJitLink",
        linux_sonames: &["libnvJitLink.so.13", "libnvJitLink.so.12"],
        windows_dlls: &["nvJitLink_130_0.dll", "nvJitLink_120_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/nvjitlink/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/nvjitlink/bin",
        ],
        ..TOOLKIT
    },
    Library {
        name: "nvrtc",
        linux_sonames: &["libnvrtc.so.13", "libnvrtc.so.12"],
        windows_dlls: &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cuda_nvrtc/bin",
        ],
        add_dll_directory: true,
        companions: &["libnvrtc-builtins.so."],
        ..TOOLKIT
    },
    Library {
        name: "nvvm",
        linux_sonames: &["libnvvm.so.4", "libnvvm.so"],
        windows_dlls: &["nvvm70.dll", "nvvm64_40_0.dll", "nvvm64.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_nvcc/nvvm/lib64"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cuda_nvcc/nvvm/bin",
        ],
        linux_root_dirs: &["nvvm/lib64"],
        canary: true,
        ..TOOLKIT
    },
    Library {
        name: "cublas",
        linux_sonames: &["libcublas.so.13", "libcublas.so.12"],
        windows_dlls: &["cublas64_13.dll", "cublas64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cublas/bin",
        ],
        dependencies: &["cublasLt"],
        ..TOOLKIT
    },
    Library {
        name: "cublasLt",
        linux_sonames: &["libcublasLt.so.13", "libcublasLt.so.12"],
        windows_dlls: &["cublasLt64_13.dll", "cublasLt64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cublas/bin",
        ],
        ..TOOLKIT
    },
    Library {
        name: "cufft",
        linux_sonames: &["libcufft.so.12", "libcufft.so.11"],
        windows_dlls: &["cufft64_12.dll", "cufft64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cufft/bin",
        ],
        add_dll_directory: true,
        ..TOOLKIT
    },
    Library {
        name: "cufftw",
        linux_sonames: &["libcufftw.so.12", "libcufftw.so.11"],
        windows_dlls: &["cufftw64_12.dll", "cufftw64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cufft/bin",
        ],
        dependencies: &["cufft"],
        ..TOOLKIT
    },
    Library {
        name: "curand",
        linux_sonames: &["libcurand.so.11", "libcurand.so.10"],
        windows_dlls: &["curand64_11.dll", "curand64_10.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/curand/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/curand/bin",
        ],
        ..TOOLKIT
    },
    Library {
        name: "cusolver",
        linux_sonames: &["libcusolver.so.12", "libcusolver.so.11"],
        windows_dlls: &["cusolver64_12.dll", "cusolver64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusolver/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cusolver/bin",
        ],
        dependencies: &["nvJitLink", "cusparse", "cublasLt", "cublas"],
        ..TOOLKIT
    },
    Library {
        name: "cusolverMg",
        linux_sonames: &["libcusolverMg.so.12", "libcusolverMg.so.11"],
        windows_dlls: &["cusolverMg64_12.dll", "cusolverMg64_11.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusolver/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cusolver/bin",
        ],
        dependencies: &["nvJitLink", "cublasLt", "cublas"],
        ..TOOLKIT
    },
    Library {
        name: "cusparse",
        linux_sonames: &["libcusparse.so.12"],
        windows_dlls: &["cusparse64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusparse/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cusparse/bin",
        ],
        dependencies: &["nvJitLink"],
        ..TOOLKIT
    },
    Library {
        name: "nppc",
        linux_sonames: &["libnppc.so.13", "libnppc.so.12"],
        windows_dlls: &["nppc64_13.dll", "nppc64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        ..TOOLKIT
    },
    Library {
        name: "nppial",
        linux_sonames: &["libnppial.so.13", "libnppial.so.12"],
        windows_dlls: &["nppial64_13.dll", "nppial64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppicc",
        linux_sonames: &["libnppicc.so.13", "libnppicc.so.12"],
        windows_dlls: &["nppicc64_13.dll", "nppicc64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppidei",
        linux_sonames: &["libnppidei.so.13", "libnppidei.so.12"],
        windows_dlls: &["nppidei64_13.dll", "nppidei64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppif",
        linux_sonames: &["libnppif.so.13", "libnppif.so.12"],
        windows_dlls: &["nppif64_13.dll", "nppif64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppig",
        linux_sonames: &["libnppig.so.13", "libnppig.so.12"],
        windows_dlls: &["nppig64_13.dll", "nppig64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppim",
        linux_sonames: &["libnppim.so.13", "libnppim.so.12"],
        windows_dlls: &["nppim64_13.dll", "nppim64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppist",
        linux_sonames: &["libnppist.so.13", "libnppist.so.12"],
        windows_dlls: &["nppist64_13.dll", "nppist64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppisu",
        linux_sonames: &["libnppisu.so.13", "libnppisu.so.12"],
        windows_dlls: &["nppisu64_13.dll", "nppisu64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nppitc",
        linux_sonames: &["libnppitc.so.13", "libnppitc.so.12"],
        windows_dlls: &["nppitc64_13.dll", "nppitc64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "npps",
        linux_sonames: &["libnpps.so.13", "libnpps.so.12"],
        windows_dlls: &["npps64_13.dll", "npps64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/npp/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/npp/bin",
        ],
        dependencies: &["nppc"],
        ..TOOLKIT
    },
    Library {
        name: "nvblas",
        linux_sonames: &["libnvblas.so.13", "libnvblas.so.12"],
        windows_dlls: &["nvblas64_13.dll", "nvblas64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cublas/bin",
        ],
        dependencies: &["cublas", "cublasLt"],
        ..TOOLKIT
    },
    Library {
        name: "nvjpeg",
        linux_sonames: &["libnvjpeg.so.13", "libnvjpeg.so.12"],
        windows_dlls: &["nvjpeg64_13.dll", "nvjpeg64_12.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/nvjpeg/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/nvjpeg/bin",
        ],
        ..TOOLKIT
    },
    Library {
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
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cuda_cupti/bin",
        ],
        linux_root_dirs: &["extras/CUPTI/lib64", "lib"],
        canary: true,
        ..TOOLKIT
    },
    Library {
        name: "cudla",
        linux_sonames: &["libcudla.so.1"],
        windows_dlls: &["cudla.dll"],
        windows_archs: &[Arch::Aarch64],
        linux_wheel_dirs: &["nvidia/cu13/lib"],
        windows_wheel_dirs: &["nvidia/cu13/bin/x86_64", "nvidia/cu13/bin"],
        ..TOOLKIT
    },
    Library {
        name: "cufile",
        linux_sonames: &["libcufile.so.0"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cufile/lib"],
        ..TOOLKIT
    },
    Library {
        name: "cublasmp",
        linux_sonames: &["libcublasmp.so.0"],
        linux_wheel_dirs: &["nvidia/cublasmp/cu13/lib", "nvidia/cublasmp/cu12/lib"],
        dependencies: &["cublas", "cublasLt", "nvshmem_host"],
        ..PRODUCT
    },
    Library {
        name: "cuda",
        linux_sonames: &["libcuda.so.1"],
        windows_dlls: &["nvcuda.dll"],
        ..DRIVER
    },
    Library {
        name: "cudensitymat",
        linux_sonames: &["libcudensitymat.so.0"],
        linux_wheel_dirs: &["cuquantum/lib"],
        dependencies: &[
            "cutensornet",
            "cutensor",
            "cusolver",
            "cublasLt",
            "cublas",
            "curand",
            "cusparse",
            "nvJitLink",
        ],
        ..PRODUCT
    },
    Library {
        name: "cudnn",
        linux_sonames: &["libcudnn.so.9"],
        windows_dlls: &["cudnn64_9.dll"],
        linux_wheel_dirs: &["nvidia/cudnn/lib"],
        windows_wheel_dirs: &["nvidia/cudnn/bin"],
        dependencies: &["cublasLt"],
        optional_dependencies: &["nvrtc"],
        add_dll_directory: true,
        root_variables: &["CUDNN_PATH"],
        variable_dirs: &["lib", "lib64"],
        ..PRODUCT
    },
    Library {
        name: "cudss",
        linux_sonames: &["libcudss.so.1", "libcudss.so.0"],
        windows_dlls: &["cudss64_1.dll", "cudss64_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cu12/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cu12/bin",
        ],
        dependencies: &["cublas", "cublasLt"],
        optional_dependencies: &["nvrtc"],
        ..PRODUCT
    },
    Library {
        name: "cufftMp",
        linux_sonames: &["libcufftMp.so.12", "libcufftMp.so.11"],
        linux_wheel_dirs: &["nvidia/cufftmp/cu13/lib", "nvidia/cufftmp/cu12/lib"],
        dependencies: &["nvshmem_host"],
        deep_bind: true,
        ..PRODUCT
    },
    Library {
        name: "cupauliprop",
        linux_sonames: &["libcupauliprop.so.0"],
        linux_wheel_dirs: &["cuquantum/lib"],
        ..PRODUCT
    },
    Library {
        name: "cusolverMp",
        linux_sonames: &["libcusolverMp.so.0"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cu12/lib"],
        dependencies: &["cublas", "cudart", "cusolver", "nccl"],
        ..PRODUCT
    },
    Library {
        name: "cusparseLt",
        linux_sonames: &["libcusparseLt.so.0"],
        windows_dlls: &["cusparseLt_13.dll", "cusparseLt.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusparselt/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cusparselt/bin",
        ],
        ..PRODUCT
    },
    Library {
        name: "custabilizer",
        linux_sonames: &["libcustabilizer.so.0"],
        linux_wheel_dirs: &["cuquantum/lib"],
        ..PRODUCT
    },
    Library {
        name: "custatevec",
        linux_sonames: &["libcustatevec.so.1"],
        linux_wheel_dirs: &["cuquantum/lib"],
        dependencies: &["cublas", "cublasLt"],
        ..PRODUCT
    },
    Library {
        name: "cutensor",
        linux_sonames: &["libcutensor.so.2"],
        windows_dlls: &["cutensor.dll"],
        linux_wheel_dirs: &["cutensor/lib"],
        windows_wheel_dirs: &["cutensor/bin"],
        dependencies: &["cublasLt"],
        ..PRODUCT
    },
    Library {
        name: "cutensorMg",
        linux_sonames: &["libcutensorMg.so.2"],
        windows_dlls: &["cutensorMg.dll"],
        linux_wheel_dirs: &["cutensor/lib"],
        windows_wheel_dirs: &["cutensor/bin"],
        dependencies: &["cutensor", "cublasLt"],
        ..PRODUCT
    },
    Library {
        name: "cutensorMp",
        linux_sonames: &["libcutensorMp.so.2"],
        linux_wheel_dirs: &["cutensor/lib"],
        dependencies: &["cutensor", "cublasLt", "cudart", "nccl"],
        ..PRODUCT
    },
    Library {
        name: "cutensornet",
        linux_sonames: &["libcutensornet.so.2"],
        linux_wheel_dirs: &["cuquantum/lib"],
        dependencies: &["cutensor", "cublas", "cusolver"],
        ..PRODUCT
    },
    Library {
        name: "mathdx",
        linux_sonames: &["libmathdx.so.0"],
        windows_dlls: &["mathdx64_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cu12/lib"],
        windows_wheel_dirs: &[
            "nvidia/cu13/bin/x86_64",
            "nvidia/cu13/bin",
            "nvidia/cu12/bin",
        ],
        dependencies: &["nvrtc"],
        ..PRODUCT
    },
    Library {
        name: "nccl",
        linux_sonames: &["libnccl.so.2"],
        linux_wheel_dirs: &["nvidia/nccl/lib"],
        root_variables: &["NCCL_HOME"],
        variable_dirs: &["lib", "lib64", "build/lib"],
        ..PRODUCT
    },
    Library {
        name: "nvcudla",
        linux_sonames: &["libnvcudla.so"],
        ..DRIVER
    },
    Library {
        name: "nvml",
        linux_sonames: &["libnvidia-ml.so.1"],
        windows_dlls: &["nvml.dll"],
        ..DRIVER
    },
    Library {
        name: "nvpl_fftw",
        linux_sonames: &["libnvpl_fftw.so.0"],
        linux_wheel_dirs: &["nvpl/lib"],
        ..PRODUCT
    },
    Library {
        name: "nvshmem_host",
        linux_sonames: &["libnvshmem_host.so.3"],
        linux_wheel_dirs: &["nvidia/nvshmem/lib"],
        ..PRODUCT
    },
];

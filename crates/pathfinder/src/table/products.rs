//! The dynamic libraries of the driver and of products outside the toolkit.

use super::libraries::{DRIVER, PRODUCT};
use super::{LibraryDescriptor, Packages};

pub(super) const ROWS: [LibraryDescriptor; 21] = [
    LibraryDescriptor {
        name: "cublasmp",
        linux_sonames: &["libcublasmp.so.0"],
        linux_wheel_dirs: &["nvidia/cublasmp/cu13/lib", "nvidia/cublasmp/cu12/lib"],
        dependencies: &["cublas", "cublasLt", "nvshmem_host"],
        packages: Packages::new(
            "nvidia-cublasmp-cu13",
            "nvidia-cublasmp-cu12",
            "libcublasmp-dev",
        ),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cuda",
        linux_sonames: &["libcuda.so.1"],
        windows_dlls: &["nvcuda.dll"],
        ..DRIVER
    },
    LibraryDescriptor {
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
        packages: Packages::new("cudensitymat-cu13", "cudensitymat-cu12", "cudensitymat"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cudnn",
        linux_sonames: &["libcudnn.so.9"],
        windows_dlls: &["cudnn64_9.dll"],
        linux_wheel_dirs: &["nvidia/cudnn/lib"],
        windows_wheel_dirs: &["nvidia/cudnn/bin"],
        program_files_dirs: &[
            "NVIDIA/CUDNN/v9.*/bin/*/x64",
            "NVIDIA/CUDNN/v9.*/bin/*/arm64",
            "NVIDIA/CUDNN/v9.*/bin/*",
            "NVIDIA/CUDNN/v9.*/bin",
        ],
        dependencies: &["cublasLt"],
        optional_dependencies: &["nvrtc"],
        add_dll_directory: true,
        root_variables: &["CUDNN_PATH"],
        linux_variable_dirs: &["lib", "lib64"],
        windows_variable_dirs: &["bin/x64", "bin/arm64", "bin"],
        packages: Packages::new("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "cudnn"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cudss",
        linux_sonames: &["libcudss.so.1", "libcudss.so.0"],
        windows_dlls: &["cudss64_1.dll", "cudss64_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cu12/lib"],
        windows_wheel_dirs: &["nvidia/cu13/bin", "nvidia/cu12/bin"],
        dependencies: &["cublas", "cublasLt"],
        optional_dependencies: &["nvrtc"],
        packages: Packages::new("nvidia-cudss-cu13", "nvidia-cudss-cu12", "libcudss-dev"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cufftMp",
        linux_sonames: &["libcufftMp.so.12", "libcufftMp.so.11"],
        linux_wheel_dirs: &["nvidia/cufftmp/cu13/lib", "nvidia/cufftmp/cu12/lib"],
        dependencies: &["nvshmem_host"],
        deep_bind: true,
        packages: Packages::new(
            "nvidia-cufftmp-cu13",
            "nvidia-cufftmp-cu12",
            "libcufftmp-dev",
        ),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cupauliprop",
        linux_sonames: &["libcupauliprop.so.0"],
        linux_wheel_dirs: &["cuquantum/lib"],
        packages: Packages::new("cupauliprop-cu13", "cupauliprop-cu12", "cupauliprop"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cusolverMp",
        linux_sonames: &["libcusolverMp.so.0"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cu12/lib"],
        dependencies: &["cublas", "cudart", "cusolver", "nccl"],
        packages: Packages::new(
            "nvidia-cusolvermp-cu13",
            "nvidia-cusolvermp-cu12",
            "libcusolvermp-dev",
        ),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cusparseLt",
        linux_sonames: &["libcusparseLt.so.0"],
        windows_dlls: &["cusparseLt_13.dll", "cusparseLt.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cusparselt/lib"],
        windows_wheel_dirs: &["nvidia/cu13/bin/x64", "nvidia/cusparselt/bin"],
        packages: Packages::new(
            "nvidia-cusparselt-cu13",
            "nvidia-cusparselt-cu12",
            "cusparselt",
        ),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "custabilizer",
        linux_sonames: &["libcustabilizer.so.0"],
        linux_wheel_dirs: &["cuquantum/lib"],
        packages: Packages::new("custabilizer-cu13", "custabilizer-cu12", "custabilizer"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "custatevec",
        linux_sonames: &["libcustatevec.so.1"],
        linux_wheel_dirs: &["cuquantum/lib"],
        dependencies: &["cublas", "cublasLt"],
        packages: Packages::new("custatevec-cu13", "custatevec-cu12", "custatevec"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cutensor",
        linux_sonames: &["libcutensor.so.2"],
        windows_dlls: &["cutensor.dll"],
        linux_wheel_dirs: &["cutensor/lib"],
        windows_wheel_dirs: &["cutensor/bin"],
        dependencies: &["cublasLt"],
        packages: Packages::new("cutensor-cu13", "cutensor-cu12", "cutensor"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cutensorMg",
        linux_sonames: &["libcutensorMg.so.2"],
        windows_dlls: &["cutensorMg.dll"],
        linux_wheel_dirs: &["cutensor/lib"],
        windows_wheel_dirs: &["cutensor/bin"],
        dependencies: &["cutensor", "cublasLt"],
        packages: Packages::new("cutensor-cu13", "cutensor-cu12", "cutensor"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cutensorMp",
        linux_sonames: &["libcutensorMp.so.2"],
        linux_wheel_dirs: &["cutensor/lib"],
        dependencies: &["cutensor", "cublasLt", "cudart", "nccl"],
        packages: Packages::new("cutensor-cu13", "cutensor-cu12", "cutensor"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "cutensornet",
        linux_sonames: &["libcutensornet.so.2"],
        linux_wheel_dirs: &["cuquantum/lib"],
        dependencies: &["cutensor", "cublas", "cusolver"],
        packages: Packages::new("cutensornet-cu13", "cutensornet-cu12", "cutensornet"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "mathdx",
        linux_sonames: &["libmathdx.so.0"],
        windows_dlls: &["mathdx64_0.dll"],
        linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cu12/lib"],
        windows_wheel_dirs: &["nvidia/cu13/bin", "nvidia/cu12/bin"],
        dependencies: &["nvrtc"],
        packages: Packages::new(
            "nvidia-libmathdx-cu13",
            "nvidia-libmathdx-cu12",
            "libmathdx",
        ),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "nccl",
        linux_sonames: &["libnccl.so.2"],
        linux_wheel_dirs: &["nvidia/nccl/lib"],
        root_variables: &["NCCL_HOME"],
        linux_variable_dirs: &["lib", "lib64", "build/lib"],
        packages: Packages::new("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nccl"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "nvcudla",
        linux_sonames: &["libnvcudla.so"],
        ..DRIVER
    },
    LibraryDescriptor {
        name: "nvml",
        linux_sonames: &["libnvidia-ml.so.1"],
        windows_dlls: &["nvml.dll"],
        ..DRIVER
    },
    LibraryDescriptor {
        name: "nvpl_fftw",
        linux_sonames: &["libnvpl_fftw.so.0"],
        linux_wheel_dirs: &["nvpl/lib"],
        packages: Packages::new("nvpl-fft", "nvpl-fft", "libnvpl-fft0"),
        ..PRODUCT
    },
    LibraryDescriptor {
        name: "nvshmem_host",
        linux_sonames: &["libnvshmem_host.so.3"],
        linux_wheel_dirs: &["nvidia/nvshmem/lib"],
        packages: Packages::new("nvidia-nvshmem-cu13", "nvidia-nvshmem-cu12", "libnvshmem3"),
        ..PRODUCT
    },
];

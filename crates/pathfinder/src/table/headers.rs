//! The header sets. The first 17 are the toolkit's.

use super::{HeaderSet, Origin, Packages};

const TOOLKIT: HeaderSet = HeaderSet {
    name: "",
    origin: Origin::Toolkit,
    header: "",
    on_windows: true,
    wheel_dirs: &[],
    root_dirs: &["include"],
    linux_subdirs: &[],
    windows_subdirs: &[],
    root_variables: &[],
    linux_system_dirs: &[],
    windows_system_dirs: &[],
    multiarch: false,
    packages: Packages::NONE,
};

const PRODUCT: HeaderSet = HeaderSet {
    origin: Origin::Product,
    ..TOOLKIT
};

/// Every known header set.
pub const HEADERS: &[HeaderSet] = &[
    HeaderSet {
        name: "cccl",
        header: "cuda/std/version",
        wheel_dirs: &["nvidia/cu13/include/cccl", "nvidia/cuda_cccl/include"],
        linux_subdirs: &["cccl"],
        windows_subdirs: &["targets/x64/cccl", "targets/x64"],
        packages: Packages::new("nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12", "cuda-cccl"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cublas",
        header: "cublas.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cublas/include"],
        packages: Packages::new("nvidia-cublas", "nvidia-cublas-cu12", "libcublas-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cudart",
        header: "cuda_runtime.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_runtime/include"],
        packages: Packages::new(
            "nvidia-cuda-runtime",
            "nvidia-cuda-runtime-cu12",
            "cuda-cudart-dev",
        ),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cudla",
        header: "cudla.h",
        wheel_dirs: &["nvidia/cu13/include"],
        on_windows: false,
        packages: Packages::new("nvidia-cudla", "", "libcudla-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cufft",
        header: "cufft.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cufft/include"],
        packages: Packages::new("nvidia-cufft", "nvidia-cufft-cu12", "libcufft-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cufile",
        header: "cufile.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cufile/include"],
        on_windows: false,
        packages: Packages::new("nvidia-cufile", "nvidia-cufile-cu12", "libcufile-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "curand",
        header: "curand.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/curand/include"],
        packages: Packages::new("nvidia-curand", "nvidia-curand-cu12", "libcurand-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cusolver",
        header: "cusolverDn.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cusolver/include"],
        packages: Packages::new("nvidia-cusolver", "nvidia-cusolver-cu12", "libcusolver-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cusparse",
        header: "cusparse.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cusparse/include"],
        packages: Packages::new("nvidia-cusparse", "nvidia-cusparse-cu12", "libcusparse-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "npp",
        header: "npp.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/npp/include"],
        packages: Packages::new("nvidia-npp", "nvidia-npp-cu12", "libnpp-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvcc",
        header: "fatbinary_section.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_nvcc/include"],
        packages: Packages::new("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12", "cuda-nvcc"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvfatbin",
        header: "nvFatbin.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/nvfatbin/include"],
        packages: Packages::new("nvidia-nvfatbin", "nvidia-nvfatbin-cu12", "libnvfatbin-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvjitlink",
        header: "nvJitLink.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/nvjitlink/include"],
        packages: Packages::new(
            "nvidia-nvjitlink",
            "nvidia-nvjitlink-cu12",
            "libnvjitlink-dev",
        ),
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvjpeg",
        header: "nvjpeg.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/nvjpeg/include"],
        packages: Packages::new("nvidia-nvjpeg", "nvidia-nvjpeg-cu12", "libnvjpeg-dev"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvrtc",
        header: "nvrtc.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_nvrtc/include"],
        packages: Packages::new(
            "nvidia-cuda-nvrtc",
            "nvidia-cuda-nvrtc-cu12",
            "cuda-nvrtc-dev",
        ),
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvvm",
        header: "nvvm.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_nvcc/nvvm/include"],
        root_dirs: &["nvvm/include"],
        packages: Packages::new("nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "cuda-nvcc-impl"),
        ..TOOLKIT
    },
    HeaderSet {
        name: "profiler",
        header: "cuda_profiler_api.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_profiler_api/include"],
        packages: Packages::new(
            "nvidia-cuda-profiler-api",
            "nvidia-cuda-profiler-api-cu12",
            "cuda-profiler-api",
        ),
        ..TOOLKIT
    },
    HeaderSet {
        name: "cudensitymat",
        header: "cudensitymat.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        packages: Packages::new("cudensitymat-cu13", "cudensitymat-cu12", "cudensitymat"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cudnn",
        header: "cudnn.h",
        wheel_dirs: &["nvidia/cudnn/include"],
        root_variables: &["CUDNN_PATH"],
        linux_system_dirs: &["/usr/include", "/usr/local/include"],
        windows_system_dirs: &["${ProgramFiles}/NVIDIA/CUDNN/v9.*/include"],
        multiarch: true,
        packages: Packages::new("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "cudnn"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cupauliprop",
        header: "cupauliprop.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        packages: Packages::new("cupauliprop-cu13", "cupauliprop-cu12", "cupauliprop"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cusolverMp",
        header: "cusolverMp.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cu12/include"],
        on_windows: false,
        packages: Packages::new(
            "nvidia-cusolvermp-cu13",
            "nvidia-cusolvermp-cu12",
            "libcusolvermp-dev",
        ),
        ..PRODUCT
    },
    HeaderSet {
        name: "cusparseLt",
        header: "cusparseLt.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cusparselt/include"],
        packages: Packages::new(
            "nvidia-cusparselt-cu13",
            "nvidia-cusparselt-cu12",
            "cusparselt-dev",
        ),
        ..PRODUCT
    },
    HeaderSet {
        name: "custabilizer",
        header: "custabilizer.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        packages: Packages::new("custabilizer-cu13", "custabilizer-cu12", "custabilizer"),
        ..PRODUCT
    },
    HeaderSet {
        name: "custatevec",
        header: "custatevec.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        packages: Packages::new("custatevec-cu13", "custatevec-cu12", "custatevec"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cute",
        header: "cute/tensor.hpp",
        wheel_dirs: &["cutlass_library/source/include"],
        packages: Packages::new("nvidia-cutlass", "nvidia-cutlass", "cutlass"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cutensor",
        header: "cutensor.h",
        wheel_dirs: &["cutensor/include"],
        packages: Packages::new("cutensor-cu13", "cutensor-cu12", "cutensor"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cutensornet",
        header: "cutensornet.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        packages: Packages::new("cutensornet-cu13", "cutensornet-cu12", "cutensornet"),
        ..PRODUCT
    },
    HeaderSet {
        name: "cutlass",
        header: "cutlass/cutlass.h",
        wheel_dirs: &["cutlass_library/source/include"],
        packages: Packages::new("nvidia-cutlass", "nvidia-cutlass", "cutlass"),
        ..PRODUCT
    },
    HeaderSet {
        name: "mathdx",
        header: "libmathdx.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cu12/include"],
        packages: Packages::new(
            "nvidia-libmathdx-cu13",
            "nvidia-libmathdx-cu12",
            "libmathdx-dev",
        ),
        ..PRODUCT
    },
    HeaderSet {
        name: "nccl",
        header: "nccl.h",
        wheel_dirs: &["nvidia/nccl/include"],
        root_dirs: &["include", "build/include"],
        on_windows: false,
        root_variables: &["NCCL_HOME"],
        linux_system_dirs: &["/usr/include", "/usr/local/include"],
        packages: Packages::new("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nccl"),
        ..PRODUCT
    },
    HeaderSet {
        name: "nvshmem",
        header: "nvshmem.h",
        wheel_dirs: &["nvidia/nvshmem/include"],
        on_windows: false,
        linux_system_dirs: &["/usr/include/nvshmem_*"],
        packages: Packages::new(
            "nvidia-nvshmem-cu13",
            "nvidia-nvshmem-cu12",
            "libnvshmem-dev",
        ),
        ..PRODUCT
    },
];

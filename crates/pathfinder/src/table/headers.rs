//! The sets of headers. The first 17 are the toolkit's.

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
    packages: Packages {
        pip: "",
        pip_cuda12: "",
        conda: "",
    },
};

const PRODUCT: HeaderSet = HeaderSet {
    origin: Origin::Product,
    ..TOOLKIT
};

/// Every set of headers this crate knows.
pub const HEADERS: &[HeaderSet] = &[
    HeaderSet {
        name: "cccl",
        header: "cuda/std/version",
        wheel_dirs: &["nvidia/cu13/include/cccl", "nvidia/cuda_cccl/include"],
        linux_subdirs: &["cccl"],
        windows_subdirs: &["targets/x64/cccl", "targets/x64"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cublas",
        header: "cublas.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cublas/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cudart",
        header: "cuda_runtime.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_runtime/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cudla",
        header: "cudla.h",
        wheel_dirs: &["nvidia/cu13/include"],
        on_windows: false,
        ..TOOLKIT
    },
    HeaderSet {
        name: "cufft",
        header: "cufft.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cufft/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cufile",
        header: "cufile.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cufile/include"],
        on_windows: false,
        ..TOOLKIT
    },
    HeaderSet {
        name: "curand",
        header: "curand.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/curand/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cusolver",
        header: "cusolverDn.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cusolver/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cusparse",
        header: "cusparse.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cusparse/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "npp",
        header: "npp.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/npp/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvcc",
        header: "fatbinary_section.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_nvcc/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvfatbin",
        header: "nvFatbin.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/nvfatbin/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvjitlink",
        header: "nvJitLink.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/nvjitlink/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvjpeg",
        header: "nvjpeg.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/nvjpeg/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvrtc",
        header: "nvrtc.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_nvrtc/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "nvvm",
        header: "nvvm.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_nvcc/nvvm/include"],
        root_dirs: &["nvvm/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "profiler",
        header: "cuda_profiler_api.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cuda_profiler_api/include"],
        ..TOOLKIT
    },
    HeaderSet {
        name: "cudensitymat",
        header: "cudensitymat.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
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
        ..PRODUCT
    },
    HeaderSet {
        name: "cupauliprop",
        header: "cupauliprop.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        ..PRODUCT
    },
    HeaderSet {
        name: "cusolverMp",
        header: "cusolverMp.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cu12/include"],
        on_windows: false,
        ..PRODUCT
    },
    HeaderSet {
        name: "cusparseLt",
        header: "cusparseLt.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cusparselt/include"],
        ..PRODUCT
    },
    HeaderSet {
        name: "custabilizer",
        header: "custabilizer.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        ..PRODUCT
    },
    HeaderSet {
        name: "custatevec",
        header: "custatevec.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        ..PRODUCT
    },
    HeaderSet {
        name: "cute",
        header: "cute/tensor.hpp",
        wheel_dirs: &["cutlass_library/source/include"],
        ..PRODUCT
    },
    HeaderSet {
        name: "cutensor",
        header: "cutensor.h",
        wheel_dirs: &["cutensor/include"],
        ..PRODUCT
    },
    HeaderSet {
        name: "cutensornet",
        header: "cutensornet.h",
        wheel_dirs: &["cuquantum/include"],
        on_windows: false,
        ..PRODUCT
    },
    HeaderSet {
        name: "cutlass",
        header: "cutlass/cutlass.h",
        wheel_dirs: &["cutlass_library/source/include"],
        ..PRODUCT
    },
    HeaderSet {
        name: "mathdx",
        header: "libmathdx.h",
        wheel_dirs: &["nvidia/cu13/include", "nvidia/cu12/include"],
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
        ..PRODUCT
    },
    HeaderSet {
        name: "nvshmem",
        header: "nvshmem.h",
        wheel_dirs: &["nvidia/nvshmem/include"],
        on_windows: false,
        linux_system_dirs: &["/usr/include/nvshmem_*"],
        ..PRODUCT
    },
];

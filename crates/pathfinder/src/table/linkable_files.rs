//! Static libraries and LLVM bitcode libraries, which are linked and never loaded.

use super::{LinkableFile, Origin, Packages};

/// Every known static library.
pub const STATIC_LIBRARIES: &[LinkableFile] = &[LinkableFile {
    name: "cudadevrt",
    origin: Origin::Toolkit,
    linux_file: "libcudadevrt.a",
    windows_file: "cudadevrt.lib",
    linux_wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"],
    windows_wheel_dirs: &[
        "nvidia/cu13/lib/x64",
        "nvidia/cu13/lib/arm64",
        "nvidia/cuda_runtime/lib/x64",
    ],
    conda_dirs: &["lib"],
    linux_root_dirs: &["lib64", "lib"],
    windows_root_dirs: &["lib/x64", "lib/arm64"],
    packages: Packages::new(
        "nvidia-cuda-runtime",
        "nvidia-cuda-runtime-cu12",
        "cuda-cudart-dev",
    ),
}];

/// Every known bitcode library.
pub const BITCODE_LIBRARIES: &[LinkableFile] = &[
    LinkableFile {
        name: "device",
        origin: Origin::Toolkit,
        linux_file: "libdevice.10.bc",
        windows_file: "libdevice.10.bc",
        linux_wheel_dirs: &[
            "nvidia/cu13/nvvm/libdevice",
            "nvidia/cuda_nvcc/nvvm/libdevice",
        ],
        windows_wheel_dirs: &[
            "nvidia/cu13/nvvm/libdevice",
            "nvidia/cuda_nvcc/nvvm/libdevice",
        ],
        conda_dirs: &["nvvm/libdevice"],
        linux_root_dirs: &["nvvm/libdevice"],
        windows_root_dirs: &["nvvm/libdevice"],
        packages: Packages::new("nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "cuda-nvcc-impl"),
    },
    LinkableFile {
        name: "nccl_device",
        origin: Origin::Product,
        linux_file: "libnccl_device.bc",
        windows_file: "",
        linux_wheel_dirs: &["nvidia/nccl/lib"],
        windows_wheel_dirs: &[],
        conda_dirs: &["lib"],
        linux_root_dirs: &["lib"],
        windows_root_dirs: &[],
        packages: Packages::new("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nccl"),
    },
    LinkableFile {
        name: "nvshmem_device",
        origin: Origin::Product,
        linux_file: "libnvshmem_device.bc",
        windows_file: "",
        linux_wheel_dirs: &["nvidia/nvshmem/lib"],
        windows_wheel_dirs: &[],
        conda_dirs: &["lib"],
        linux_root_dirs: &["lib"],
        windows_root_dirs: &[],
        packages: Packages::new(
            "nvidia-nvshmem-cu13",
            "nvidia-nvshmem-cu12",
            "libnvshmem-dev",
        ),
    },
];
